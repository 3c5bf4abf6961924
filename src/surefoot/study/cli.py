"""`surefoot study`: every command is a few lines over Study."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..designs import make
from ..problem import Problem, SurefootError
from ..scenario import load
from . import Study, guard
from .journal import Journal

app = typer.Typer(
    no_args_is_help=True,
    help="Run a live study: ask what to try next, tell what happened, get a certificate. "
    "The journal is a SQLite file or a PostgreSQL database: --db, or SUREFOOT_DB.",
)
console = Console()

Db = Annotated[str | None, typer.Option("--db", envvar="SUREFOOT_DB", help="SQLite file or database URL.")]
Name = Annotated[str | None, typer.Option("--study", help="Which one, where the database holds several.")]
Actor = Annotated[str | None, typer.Option(envvar="SUREFOOT_ACTOR", help="Who does this; the user of the system else.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object and nothing else.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Of an assignment, from `ask`.", show_default=False)]
Reason = Annotated[str, typer.Option(help="Why; it goes into the journal.", show_default=False)]
Effect = Annotated[float | None, typer.Option(help="The effect that was read.")]
Harm = Annotated[float | None, typer.Option(help="The harm that was read.")]
Dose = Annotated[float | None, typer.Option(help="The dose given, where it is not the one assigned.")]


def _open(db: str | None, study: str | None, actor: str | None = None) -> Study:
    return Study.open(_db(db), study, actor=actor)


def _db(db: str | None) -> str:
    if not db:
        raise SurefootError("which database? give --db FILE, or set SUREFOOT_DB")
    return db


def _print(data: dict[str, Any]) -> None:
    print(json.dumps(data, allow_nan=False))


def _done(study: Study, as_json: bool, said: str, **more: Any) -> None:
    """What every writing command ends with: what was done, and where the study stands now."""
    view = study.view
    if as_json:
        _print({"study": study.name, "standing": view.standing, "head": {"seq": view.seq, "hash": view.hash}, **more})
        return
    console.print(said, highlight=False)
    _say_standing(view)


def _say_standing(view: Any) -> None:
    if view.standing == "paused":
        console.print("[yellow]paused:[/] " + "; ".join(str(e.reason) for e in view.paused), highlight=False)
    elif view.standing == "ended":
        verdict = view.design.verdict(view.state)
        winner = int(verdict.winner[0])
        console.print(
            f"[green]ended:[/] {verdict.endings()[0]}" + (f", {view.problem.names[winner]}" if winner >= 0 else "")
        )
    elif view.standing == "stopped":
        console.print(f"[yellow]stopped:[/] {view.stopped.reason}", highlight=False)


@app.command()
def create(
    problem: Annotated[Path, typer.Argument(metavar="PROBLEM.toml", show_default=False)],
    db: Db = None,
    study: Annotated[str | None, typer.Option("--study", help="Its name; that of the file by default.")] = None,
    design: Annotated[str | None, typer.Option(help="A name from `surefoot designs`.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A design's option.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the order of assignments; drawn where none is given.")] = None,
    warn: Annotated[bool, typer.Option("--warn", help="Assumption watches warn instead of pausing.")] = False,
    watch_level: Annotated[float, typer.Option(help="How often the watches together may be wrong.")] = 0.01,
    actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Begin a study."""
    it = Problem.load(problem)
    pairs = [option.partition("=") for option in set_ or ()]
    if bad := [key for key, equals, _ in pairs if not equals]:
        raise SurefootError(f"--set takes KEY=VALUE; got {bad[0]!r}")
    chosen = make(design or guard.default(it.shape), **{key: value for key, _, value in pairs})
    made = Study.create(
        _db(db), study or problem.stem, it, chosen,
        actor=actor, seed=seed, watch="warn" if warn else "pause", watch_level=watch_level,
    )  # fmt: skip
    given = made.view.open
    size = given.size if given else 0
    _done(made, as_json, f"study {made.name!r}: {chosen.name}, {size:,} assignments are open", open=size)


@app.command()
def ask(
    db: Db = None, study: Name = None,
    limit: Annotated[int | None, typer.Option(help="Only the next so many.")] = None,
    awaiting: Annotated[bool, typer.Option("--awaiting", help="Those whose effect is due instead.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """The open assignments: whom to give what."""
    it = _open(db, study)
    found = it.awaiting() if awaiting else it.ask(limit)
    if as_json:
        _print({"study": it.name, "standing": it.view.standing, "assignments": [a._asdict() for a in found]})
        return
    _say_standing(it.view)
    table = Table("id", "subject", "arm", "dose", "why")
    for a in found if limit or len(found) <= 50 else found[:50]:
        table.add_row(a.id, str(a.subject), a.arm, f"{a.dose:.6g}", a.why)
    console.print(table)
    if len(found) > 50 and not limit:
        console.print(f"and {len(found) - 50:,} more (--limit, --json)")


@app.command()
def tell(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="Of an assignment, from `ask`.")] = None,
    effect: Effect = None, harm: Harm = None, dose: Dose = None,
    table: Annotated[Path | None, typer.Option("--csv", help="Many: columns id, effect, harm[, dose, key].")] = None,
    key: Annotated[str | None, typer.Option(help="A retried request with the same key counts once.")] = None,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """What came of an assignment, or of many from a CSV file (all of them or none)."""
    it = _open(db, study, actor)
    if (table is None) == (id is None):
        raise SurefootError("tell one assignment by its ID, or many with --csv FILE")
    if table is not None:
        new = it.tell_many(table)
    else:
        before = it.view.seq
        it.tell(str(id), effect, harm, dose, key=key)
        new = int(it.view.seq > before)
    _done(it, as_json, f"{new:,} told" if new else "told before: nothing new", told=new)


@app.command()
def void(id: Id, reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """A subject dropped out before any reading."""
    it = _open(db, study, actor)
    it.void(id, reason)
    _done(it, as_json, f"{id} is void")


@app.command()
def correct(
    id: Id, reason: Reason, effect: Effect = None, harm: Harm = None, dose: Dose = None,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """A reading was wrong: replace it, keep the old one on record, decide anew."""
    it = _open(db, study, actor)
    it.correct(id, effect, harm, reason, dose=dose)
    found = it.certificate().content["deviations"]
    if not as_json:
        for row in found:
            console.print(f"[yellow]deviation:[/] cohort {row['cohort']}, {row['arm']}: {row['what']}", highlight=False)
    _done(it, as_json, f"{id} is corrected", deviations=found)


@app.command()
def pause(reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """Give out no assignments until `resume`."""
    it = _open(db, study, actor)
    it.pause(reason)
    _done(it, as_json, "no assignments are given out")


@app.command()
def resume(
    reason: Reason,
    void_effect: Annotated[float | None, typer.Option(help="Count drop-outs as this effect.")] = None,
    void_harm: Annotated[float | None, typer.Option(help="And this harm; else others take their places.")] = None,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Go on after a pause."""
    it = _open(db, study, actor)
    voids = {k: x for k, x in (("effect", void_effect), ("harm", void_harm)) if x is not None}
    if len(voids) == 1:
        raise SurefootError("to count drop-outs as a reading give both --void-effect and --void-harm")
    it.resume(reason, voids=voids or None)
    _done(it, as_json, "the study goes on")


@app.command()
def stop(reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """End the study for good, whatever the design says."""
    it = _open(db, study, actor)
    it.stop(reason)
    _done(it, as_json, "the study is over")


@app.command()
def status(db: Db = None, study: Name = None, as_json: Json = False) -> None:
    """Where the study stands: every arm, its certified dose, its bounds."""
    it = _open(db, study)
    found = it.status()
    if as_json:
        _print(found)
        return
    of = f"{found['design']}, {found['readings']:,} readings, cohort {found['cohort']}, {found['open']:,} open"
    of += f", {found['awaiting']:,} await their effect" if found["awaiting"] else ""
    console.print(f"[bold]{it.name}[/]: {found['standing']} ({of})", highlight=False)
    _say_standing(it.view)
    table = Table("arm", "standing", "certified dose", "value", "pulls", "open", "next dose", "why")
    for a in found["arms"]:
        value = " to ".join("?" if x is None else f"{x:.4g}" for x in (a["lower"], a["upper"]))
        nxt = f"{a['dose']:.4g}" if a["open"] else ""
        why = a["why"] if a["standing"] != "active" else ""
        numbers = f"{a['certified']:.4g}", value, f"{a['pulls']:,}", f"{a['open']:,}", nxt
        table.add_row(a["arm"], a["standing"], *numbers, why)
    console.print(table)


@app.command()
def preview(db: Db = None, study: Name = None, as_json: Json = False) -> None:
    """What the open cohort's mean harm and effect in each arm would lead to."""
    it = _open(db, study)
    rows = it.preview()
    if as_json:
        _print({"study": it.name, "rows": rows})
        return
    table = Table("arm", "mean harm", "mean effect", "then: standing", "certified dose", "next", "ending")
    for r in rows:
        nxt = f"{r['next']['n']:,} at {r['next']['dose']:.4g}" if r["next"] else ""
        end = r["ending"] + (f": {r['winner']}" if r["winner"] else "")
        table.add_row(
            r["arm"], f"{r['harm']:.4g}", f"{r['effect']:.4g}", r["standing"], f"{r['certified']:.4g}", nxt, end
        )
    console.print(table if rows else "no cohort is open: there is nothing to look ahead to")


@app.command()
def forecast(
    scenario: Annotated[list[Path], typer.Argument(metavar="SCENARIO.toml...", show_default=False)],
    trials: Annotated[int, typer.Option(help="Simulated continuations.")] = 1000,
    seed: Annotated[int, typer.Option()] = 0, db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """How many pulls are still to go, if a scenario were the truth."""
    rows = _open(db, study).forecast([load(path)[1] for path in scenario], trials, seed)
    if as_json:
        _print({"forecasts": rows})
        return
    table = Table("scenario", "pulls to go, mean", "10% / median / 90%", "winners", "endings")
    for r in rows:
        p = r["pulls"]
        shares = ", ".join(f"{k} {v:.0%}" for k, v in r["winners"].items())
        ends = ", ".join(f"{k} {v:,}" for k, v in r["endings"].items())
        spread = " / ".join(f"{p[q]:,.0f}" for q in ("p10", "p50", "p90"))
        table.add_row(r["scenario"], f"{p['mean']:,.0f} ± {p['se']:,.0f}", spread, shares, ends)
    console.print(table)


@app.command()
def story(
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("surefoot-study.png"),
    db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """A picture: doses given and what is known, over time."""
    it = _open(db, study)
    try:
        from .story import story as draw

        draw(it.view, out)
    except ImportError as error:
        raise SurefootError("pictures need matplotlib: pip install surefoot[plots]") from error
    except (OSError, ValueError) as error:
        raise SurefootError(f"cannot write the picture to {out}: {error}") from error
    _print({"picture": str(out)}) if as_json else console.print(f"the picture is in {out}")


@app.command()
def log(
    db: Db = None, study: Name = None,
    last: Annotated[int | None, typer.Option(help="Only the last so many events.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Every event: when, who, what, why."""
    it = _open(db, study)
    events = it.log()[-last if last else 0 :]
    if as_json:
        _print({"study": it.name, "events": [e._asdict() | {"payload": e.data} for e in events]})
        return
    table = Table("event", "time (UTC)", "actor", "what", "content", "reason", "hash")
    for e in events:
        content = "" if e.kind == "created" else e.payload if len(e.payload) <= 100 else e.payload[:97] + "..."
        table.add_row(str(e.seq), e.at[:19].replace("T", " "), e.actor, e.kind, content, e.reason or "", e.hash[:8])
    console.print(table)


@app.command()
def export(
    out: Annotated[Path | None, typer.Option(help="A .csv (readings) or .json (everything).")] = None,
    db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """The readings as CSV, or everything as JSON (--json, or a file that ends so), to be imported elsewhere."""
    it = _open(db, study)
    if as_json or (out is not None and out.suffix == ".json"):
        text = json.dumps(it.export(), allow_nan=False) + "\n"
    else:
        text = _csv(it.readings())
    if out is None:
        print(text, end="")
        return
    _write(out, text)
    if as_json:
        _print({"file": str(out)})
    else:
        console.print(f"written to {out}")


@app.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False)], db: Db = None, as_json: Json = False
) -> None:
    """A study from its JSON export, hash for hash."""
    it = Study.load(_db(db), _read_json(file))
    _done(it, as_json, f"study {it.name!r} is in {it.journal.shown}")


@app.command()
def verify(
    db: Db = None, study: Name = None,
    head: Annotated[str | None, typer.Option(help="The last hash, kept outside of the database.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="A certificate (JSON) to check as well.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Check the chain of hashes, the fold and a certificate anew. Exit code 1 where something does not hold."""
    it = _open(db, study)
    report = it.verify(head, _read_json(certificate) if certificate else None)
    if as_json:
        _print(report)
    else:
        console.print(
            ("[green]holds:[/] " if report["ok"] else "[red]does not hold:[/] ") + report["message"], highlight=False
        )
        console.print(f"head {report['head']}", highlight=False)
    if not report["ok"]:
        raise typer.Exit(1)


@app.command()
def certificate(
    out: Annotated[Path | None, typer.Option(help="A .html or .json file; in words to the screen else.")] = None,
    db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """What was concluded, at which delta, under which assumptions, from which evidence."""
    found = _open(db, study).certificate()
    if out is not None:
        _write(out, found.to_json() if out.suffix == ".json" else found.to_html())
    if as_json:
        print(json.dumps(found.content, allow_nan=False))
    else:
        console.print(found.content["concluded"]["words"], highlight=False)
        console.print(found.content["covered"], highlight=False)
        console.print(f"head {found.content['head']['hash']}" + (f"; written to {out}" if out else ""), highlight=False)


@app.command(name="list")
def list_(db: Db = None, as_json: Json = False) -> None:
    """The studies in a database."""
    names = Journal(_db(db)).names()
    if as_json:
        _print({"studies": names})
    else:
        console.print("\n".join(names) or "none", highlight=False)


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _write(path: Path, text: str) -> None:
    """All of it or nothing: a file that is there already is replaced in one step."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SurefootError(f"cannot write {path}: {error.strerror or error}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SurefootError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise SurefootError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise SurefootError(f"{path} must hold a JSON object; got {type(data).__name__}")
    return data
