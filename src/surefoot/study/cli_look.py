"""`surefoot study`: the commands that look and change nothing."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ..checks import between, percent, write
from ..problem import SurefootError
from ..scenario import Scenario, load_all
from .ahead import merged, same_arms
from .journal import Journal
from .status import content
from .terminal import (
    Db,
    Json,
    Name,
    answer,
    app,
    as_said,
    grid,
    opened,
    paragraph,
    print_json,
    read_json,
    say,
    say_standing,
    which,
)
from .text import shown


@app.command()
def status(db: Db = None, study: Name = None, as_json: Json = False) -> None:
    """Where the study stands: every arm, up to where it is shown to be safe and may be given, its bounds."""
    it = opened(db, study)
    found = it.status()
    if as_json:
        print_json(found)
        raise typer.Exit(0 if found["holds"] else 1)
    if found["trouble"]:
        say(found["trouble"], "can only be looked at:" if found["holds"] else "does not verify:", "red")
    design = it.view.design.label if found["holds"] else found["design"]
    upto = f" of {found['budget']:,} readings" if found["budget"] else " readings, no budget"
    of = f"{design}, {found['readings']:,}{upto}, cohort {found['cohort']}"
    sites = ", ".join(f"{n:,} for {site}" for site, n in found["reserved"].items())
    of += f", {found['open']:,} open" + (f" ({sites})" if sites else "")
    of += f", {found['awaiting']:,} await their effect" if found["awaiting"] else ""
    say(f"{found['standing']} ({of})", f"{shown(it.name)}:", "bold")
    if found["holds"]:
        say_standing(it.view)
        when = "at its end" if found["standing"] in ("ended", "stopped") else "if it had to end now"
        paragraph(f"{when}: {found['recommendation']}")
    row = grid("arm", "standing", "shown safe (* declared)", "may be tried", "subjects", "open, at", "value")
    blocks = found["holds"] and bool(it.view.setup.get("blocks"))
    for a in found["arms"]:
        safe, most, dose = (as_said(a[k], 4) for k in ("safe", "certified", "dose"))
        nxt = f"{a['open']:,}{' block' * blocks} at {dose}" if a["open"] else "none"
        value = between(a["lower"], a["upper"]) if safe else ""
        safe += " *" if a.get("safe_is") == "declared" else ""
        row(a["arm"], a["standing"], safe, most, f"{a['pulls']:,}", nxt, value)
    row()
    heads = (key if f"{key}s" in (found["rates"] or [{}])[0] else f"mean {key}" for key in ("harm", "effect"))
    row = grid("arm", "dose given", "subjects", *heads)
    for r in found["rates"]:
        dose = as_said(r["from"], 4) + (f" to {as_said(r['to'], 4)}" if r["to"] != r["from"] else "")
        row(r["arm"], dose, f"{r['n']:,}", *(_rate(r, key) for key in ("harm", "effect")))
    if found["rates"]:
        row()
    for a in found["arms"]:
        if a["standing"] != "active":
            paragraph(f"{shown(a['arm'])}: {a['why']}")
    if not found["holds"]:
        raise typer.Exit(1)


def _rate(row: dict[str, Any], key: str) -> str:
    """A mean; of yes or no how many of how many."""
    yes = row.get(f"{key}s")
    said = f"{row[key]:.4g}" if yes is None else f"{yes:,} of {row['n']:,} ({percent(row[key])})"
    return said + ", over the limit" * (key == "harm" and row["over_limit"])


@app.command()
def preview(db: Db = None, study: Name = None, as_json: Json = False) -> None:
    """What the open cohort's mean harm and effect in each arm would lead to."""
    it = opened(db, study)
    rows = it.preview()
    if as_json:
        print_json({"study": it.name, "rows": rows})
        return
    heads = (key if rows and f"{key}s" in rows[0] else f"mean {key}" for key in ("harm", "effect"))
    row = grid("arm", *heads, "then: standing", "safe dose", "next", "ending")
    for r in merged(rows):
        end = r["ending"] + (f": {r['winner']}" if r["winner"] else "")
        row(r["arm"], r["harm"], r["effect"], r["standing"], as_said(r["safe"]), r["then"], end)
    row() if rows else say("no cohort is open: there is nothing to look ahead to")


@app.command()
def forecast(
    scenario: Annotated[list[Path], typer.Argument(metavar="SCENARIO.toml...", show_default=False)],
    trials: Annotated[int, typer.Option(help="Simulated continuations.")] = 1000,
    seed: Annotated[int, typer.Option()] = 0, db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """How many subjects are still to go, if a scenario were the truth."""
    it, truths = opened(db, study), list[Scenario]()
    for path in scenario:
        problem, found = load_all(path)
        same_arms(it.view, problem, str(path))
        truths += found
    rows = it.forecast(truths, trials, seed)
    if as_json:
        print_json({"forecasts": rows})
        return
    row = grid("scenario", "subjects to go, mean", "10% / median / 90%", "winners", "recommended", "endings")
    for r in rows:
        p = r["pulls"]
        named, best = (
            ", ".join(f"{k} {v:.0%}" for k, v in r[key].items()) or "none" for key in ("winners", "recommended")
        )
        ends = ", ".join(f"{k} {v:,}" for k, v in r["endings"].items())
        ends = "the budget ends it every time" if [*r["endings"]] == ["budget-spent"] else ends
        spread = " / ".join(f"{p[q]:,.0f}" for q in ("p10", "p50", "p90"))
        row(r["scenario"], f"{p['mean']:,.0f} ± {p['se']:,.0f}", spread, named, best, ends)
    row()


@app.command()
def story(
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("surefoot-study.png"),
    doses: Annotated[bool, typer.Option("--doses", help="Dose against harm and effect, in place of time.")] = False,
    db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """A picture: doses given and what is known over time; or with --doses, dose against harm and effect."""
    it = opened(db, study)
    try:
        from ..plots import responses
        from ..plots import story as over_time

        (responses if doses else over_time)(it, out)
    except ImportError as error:
        raise SurefootError("pictures need matplotlib: pip install 'surefoot[plots]'") from error
    except (OSError, ValueError) as error:
        raise SurefootError(f"cannot write the picture to {out}: {error}") from error
    answer(as_json, f"the picture is in {out}", picture=str(out))


@app.command()
def log(
    db: Db = None, study: Name = None,
    last: Annotated[int | None, typer.Option(help="Only the last so many events.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Every event: when, who, what, why."""
    it = opened(db, study)
    events = it.log()[-last if last else 0 :]
    if as_json:
        print_json({"study": it.name, "events": [e._asdict() | {"payload": e.data} for e in events]})
        return
    say("event, time (UTC), actor, what; content, reason, hash", style="dim")
    view = None
    with suppress(SurefootError):  # a journal that does not hold is shown as it stands
        view = it.view
    for e in events:
        head = f"{e.seq}  {e.at[:19].replace('T', ' ')}  {e.actor}  {e.kind}"
        said = [head, content(view, e), e.reason, f"hash {e.hash[:8]}"]
        paragraph("; ".join(shown(x) for x in said if x), "    ")


@app.command()
def verify(
    db: Db = None, study: Name = None,
    head: Annotated[str | None, typer.Option(help="A hash, kept outside of the database.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="A certificate (JSON or HTML) to check as well.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="A signed checkpoint that the journal must extend.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="The public key that signed it.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Check the chain of hashes, the evidence and a certificate anew. Exit code 1 where something does not hold, and
    where what a certificate concluded was withdrawn since; 0 where it was superseded alone, by more readings say."""
    it = opened(db, study)
    note = read_json(checkpoint) if checkpoint else None
    report = it.verify(head, certificate, note, key or ())
    if as_json:
        print_json(report)
    else:
        holds = "holds:" if not report["superseded"] else "holds, but superseded:"
        holds = "holds, but withdrawn:" if report["withdrawn"] else holds
        colour = "red" if report["withdrawn"] else "yellow" if report["superseded"] else "green"
        say(report["message"], holds if report["ok"] else "does not hold:", colour if report["ok"] else "red")
        if report["compared"]:
            say(", ".join(report["compared"]), "compared:", "dim")
        say(f"head {report['head']}")
    if not report["ok"] or report["withdrawn"]:
        raise typer.Exit(1)


@app.command()
def certificate(
    out: Annotated[Path | None, typer.Option(help="A .html or .json file; in words to the screen else.")] = None,
    db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """What was concluded, at which delta, under which assumptions, from which evidence."""
    found = opened(db, study).certificate()
    if out is not None:
        write(out, found.to_json() if out.suffix == ".json" else found.to_html())
    if as_json:
        print(json.dumps(found.content, allow_nan=False))
    else:
        say(found.content["concluded"]["words"])
        say(found.content["covered"])
        say(f"head {found.content['head']['hash']}" + (f"; written to {out}" if out else ""))


@app.command(name="list")
def list_(db: Db = None, as_json: Json = False) -> None:
    """The studies in a database."""
    names = Journal(which(db)).names()
    if as_json:
        print_json({"studies": names})
    else:
        for name in names or ["none"]:
            say(name)
