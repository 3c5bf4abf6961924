"""`surefoot study`: every command is a few lines over Study."""

from __future__ import annotations

import functools
import json
import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from ..designs import make
from ..problem import Problem, SurefootError
from ..scenario import load
from . import Study
from .fold import default
from .journal import UNKNOWN, Journal
from .text import shown, to_csv

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
Dose = Annotated[str | None, typer.Option(help="The dose given, where it is not the one assigned.")]


Run = TypeVar("Run", bound=Callable[..., None])


def writes(command: Run) -> Run:
    """A command that is interrupted says what is known: nothing."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            raise SurefootError(f"interrupted: {UNKNOWN}") from None

    return run  # type: ignore[return-value]


def say(text: Any, label: str = "", style: str = "yellow") -> None:
    """Print what people wrote as it stands: no markup in it means anything."""
    console.print(Text.assemble((f"{label} ", style) if label else "", shown(text)), highlight=False)


def grid(*head: str) -> Callable[..., None]:
    """A table whose cells are printed as they stand; called without a row it is shown. Only the last column is wrapped,
    between words; where the others leave it no room, every row is a paragraph instead."""
    rows: list[list[str]] = []

    def row(*cells: Any) -> None:
        if cells:
            rows.append([shown(cell) for cell in cells])
            return
        widths = [max(map(cell_len, column)) for column in zip(head, *rows, strict=True)]
        room = console.width - sum(widths[:-1]) - 3 * len(head) - 1
        words = max((cell_len(word) for line in rows for word in line[-1].split()), default=0)
        if room < max(words, cell_len(head[-1]), min(widths[-1], 24)):
            for line in rows:
                paragraph(", ".join(f"{name} {cell}" for name, cell in zip(head, line, strict=True) if cell))
            return
        table = Table(*(Column(name, no_wrap=True) for name in head[:-1]), Column(head[-1], max_width=max(room, 1)))
        for line in rows:
            table.add_row(*map(Text, line))
        console.print(table)

    return row


def paragraph(text: str, indent: str = "  ") -> None:
    """Lines that are broken between words alone; what comes after the first is indented."""
    lines = textwrap.wrap(text, console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    console.print(Text("\n".join(lines)), highlight=False, soft_wrap=True)


def as_said(dose: Any) -> str:
    """A dose, or the name of a level."""
    return dose if isinstance(dose, str) else f"{dose:.6g}"


def _dose(text: str | None) -> Any:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


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
    say(said)
    _say_standing(view)


def _say_standing(view: Any) -> None:
    if view.standing == "paused":
        say("; ".join(str(e.reason) for e in view.paused), "paused:")
    elif view.standing == "ended" and view.concluded:
        winner = view.concluded["winner"]
        say(
            view.concluded["ending"] + (f", {view.problem.names[winner]}" if winner is not None else ""),
            "ended:",
            "green",
        )
    elif view.standing == "stopped":
        say(view.stopped.reason, "stopped:")


@app.command()
@writes
def create(
    problem: Annotated[Path, typer.Argument(metavar="PROBLEM.toml", show_default=False)],
    db: Db = None,
    study: Annotated[str | None, typer.Option("--study", help="Its name; that of the file by default.")] = None,
    design: Annotated[str | None, typer.Option(help="A name from `surefoot designs`.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A design's option.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the order of assignments; drawn where none is given.")] = None,
    warn: Annotated[bool, typer.Option("--warn", help="Assumption watches warn instead of pausing.")] = False,
    watch_level: Annotated[float, typer.Option(help="How often the watches together may be wrong.")] = 0.01,
    plausible: Annotated[list[str] | None, typer.Option(metavar="READING=LOW:HIGH", help="Outside, confirm.")] = None,
    anyone: Annotated[bool, typer.Option("--anyone-lifts", help="A watch's pause is lifted by anybody.")] = False,
    actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Begin a study."""
    it = Problem.load(problem)
    pairs = [option.partition("=") for option in set_ or ()]
    if bad := [key for key, equals, _ in pairs if not equals]:
        raise SurefootError(f"--set takes KEY=VALUE; got {bad[0]!r}")
    chosen = make(design or default(it.shape), **{key: value for key, _, value in pairs})
    made = Study.create(
        _db(db), study or problem.stem, it, chosen,
        actor=actor, seed=seed, watch="warn" if warn else "pause", watch_level=watch_level,
        plausible=_ranges(plausible), lift="anyone" if anyone else "another",
    )  # fmt: skip
    given = made.view.open
    size = given.size if given else 0
    _done(made, as_json, f"study {made.name!r}: {chosen.name}, {size:,} assignments are open", open=size)


@app.command()
@writes
def ask(
    db: Db = None, study: Name = None,
    limit: Annotated[int | None, typer.Option(help="Only the next so many.")] = None,
    awaiting: Annotated[bool, typer.Option("--awaiting", help="Those whose effect is due instead.")] = False,
    reserve: Annotated[int | None, typer.Option(help="Reserve the next so many; needs --for.")] = None,
    site: Annotated[str | None, typer.Option("--for", help="Those reserved for this site.")] = None,
    actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """The open assignments: whom to give what."""
    it = _open(db, study, actor)
    if reserve is not None and site is None:
        raise SurefootError("--reserve needs --for SITE: for whom?")
    if reserve is not None:
        found = it.assign(reserve, str(site))
    else:
        found = it.awaiting() if awaiting else it.ask(limit, site=site)
    if as_json:
        _print({"study": it.name, "standing": it.view.standing, "assignments": [a._asdict() for a in found]})
        return
    _say_standing(it.view)
    row = grid("id", "subject", "arm", "dose", "why")
    for a in found if limit or len(found) <= 50 else found[:50]:
        row(a.id, a.subject, a.arm, as_said(a.dose), a.why)
    row()
    if len(found) > 50 and not limit:
        say(f"and {len(found) - 50:,} more (--limit, --json)")


@app.command(name="return")
@writes
def return_(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", show_default=False)], reason: Reason,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Assignments that were reserved and are not used: others may have them."""
    it = _open(db, study, actor)
    it.give_back(ids, reason)
    _done(it, as_json, f"{len(ids)} returned")


@app.command(name="next")
@writes
def next_(
    site: Annotated[str, typer.Option("--for", help="For whom.")],
    count: Annotated[int, typer.Option("--count", help="How many more.")] = 1,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """For who treats and enters data: the next subjects, reserved, with arm and dose and nothing else."""
    found = _open(db, study, actor).desk(site).next(count)
    if as_json:
        _print({"assignments": found})
        return
    row = grid("id", "arm", "dose")
    for a in found:
        row(a["id"], a["arm"], as_said(a["dose"]))
    row()


@app.command()
@writes
def tell(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="Of an assignment, from `ask`.")] = None,
    effect: Effect = None, harm: Harm = None, dose: Dose = None,
    table: Annotated[Path | None, typer.Option("--csv", help="Many: columns id, effect, harm[, dose, key].")] = None,
    key: Annotated[str | None, typer.Option(help="A retried request with the same key counts once.")] = None,
    confirm: Annotated[str | None, typer.Option(help="Why a reading out of its range is true all the same.")] = None,
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
        it.tell(str(id), effect, harm, _dose(dose), key=key, confirm=confirm)
        new = int(it.view.seq > before)
    _done(it, as_json, f"{new:,} told" if new else "told before: nothing new", told=new)


@app.command()
@writes
def void(id: Id, reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """A subject dropped out before any reading."""
    it = _open(db, study, actor)
    it.void(id, reason)
    _done(it, as_json, f"{id} is void")


@app.command()
@writes
def correct(
    id: Id, reason: Reason, effect: Effect = None, harm: Harm = None, dose: Dose = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="It is true although out of its range.")] = False,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """A reading was wrong: replace it, keep the old one on record, decide anew."""
    it = _open(db, study, actor)
    it.correct(id, effect, harm, reason, dose=_dose(dose), confirm=confirm)
    found = it.certificate().content["deviations"]
    if not as_json:
        for row in found:
            say(f"cohort {row['cohort']}, {row['arm']}: {row['what']}", "deviation:")
    _done(it, as_json, f"{id} is corrected", deviations=found)


@app.command()
@writes
def pause(reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """Give out no assignments until `resume`."""
    it = _open(db, study, actor)
    it.pause(reason)
    _done(it, as_json, "no assignments are given out")


@app.command()
@writes
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
@writes
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
        raise typer.Exit(0 if found["holds"] else 1)
    if found["trouble"]:
        say(found["trouble"], "does not verify:", "red")
    of = f"{found['design']}, {found['readings']:,} readings, cohort {found['cohort']}, {found['open']:,} open"
    of += f", {found['awaiting']:,} await their effect" if found["awaiting"] else ""
    say(f"{found['standing']} ({of})", f"{shown(it.name)}:", "bold")
    if found["holds"]:
        _say_standing(it.view)
        paragraph(f"if it had to end now: {found['recommendation']}")
    row = grid("arm", "standing", "certified", "pulls", "open", "next dose", "value")
    for a in found["arms"]:
        value = " to ".join("?" if x is None else f"{x:.4g}" for x in (a["lower"], a["upper"]))
        nxt = as_said(a["dose"]) if a["open"] else ""
        row(a["arm"], a["standing"], as_said(a["certified"]), f"{a['pulls']:,}", f"{a['open']:,}", nxt, value)
    row()
    for a in found["arms"]:
        if a["standing"] != "active":
            paragraph(f"{shown(a['arm'])}: {a['why']}")
    if not found["holds"]:
        raise typer.Exit(1)


@app.command()
def preview(db: Db = None, study: Name = None, as_json: Json = False) -> None:
    """What the open cohort's mean harm and effect in each arm would lead to."""
    it = _open(db, study)
    rows = it.preview()
    if as_json:
        _print({"study": it.name, "rows": rows})
        return
    row = grid("arm", "mean harm", "mean effect", "then: standing", "certified dose", "next", "ending")
    for r in rows:
        nxt = f"{r['next']['n']:,} at {as_said(r['next']['dose'])}" if r["next"] else ""
        end = r["ending"] + (f": {r['winner']}" if r["winner"] else "")
        row(r["arm"], f"{r['harm']:.4g}", f"{r['effect']:.4g}", r["standing"], as_said(r["certified"]), nxt, end)
    row() if rows else say("no cohort is open: there is nothing to look ahead to")


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
    row = grid("scenario", "pulls to go, mean", "10% / median / 90%", "winners", "endings")
    for r in rows:
        p = r["pulls"]
        shares = ", ".join(f"{k} {v:.0%}" for k, v in r["winners"].items())
        ends = ", ".join(f"{k} {v:,}" for k, v in r["endings"].items())
        spread = " / ".join(f"{p[q]:,.0f}" for q in ("p10", "p50", "p90"))
        row(r["scenario"], f"{p['mean']:,.0f} ± {p['se']:,.0f}", spread, shares, ends)
    row()


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
    _print({"picture": str(out)}) if as_json else say(f"the picture is in {out}")


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
    say("event, time (UTC), actor, what; content, reason, hash", style="dim")
    for e in events:
        content = "" if e.kind == "created" else _brief(e.data)
        said = [f"{e.seq}  {e.at[:19].replace('T', ' ')}  {e.actor}  {e.kind}", content, e.reason, f"hash {e.hash[:8]}"]
        paragraph("; ".join(shown(x) for x in said if x), "    ")


@app.command()
@writes
def export(
    out: Annotated[Path | None, typer.Option(help="A .csv (readings) or .json (everything).")] = None,
    db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """The readings as CSV, or everything as JSON (--json, or a file that ends so), to be imported elsewhere."""
    it = _open(db, study)
    if out is not None:
        _write(out, out.read_text(encoding="utf-8") if out.exists() else "")  # or nothing is noted
    if as_json or (out is not None and out.suffix == ".json"):
        text = json.dumps(it.export(), allow_nan=False) + "\n"
    else:
        text = to_csv(it.readings())
    if out is None:
        print(text, end="")
        return
    _write(out, text)
    if as_json:
        _print({"file": str(out)})
    else:
        say(f"written to {out}")


@app.command(name="import")
@writes
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False)], db: Db = None, as_json: Json = False
) -> None:
    """A study from its JSON export, hash for hash."""
    it = Study.load(_db(db), _read_json(file))
    _done(it, as_json, f"study {it.name!r} is in {it.journal.shown}")


@app.command()
def verify(
    db: Db = None, study: Name = None,
    head: Annotated[str | None, typer.Option(help="A hash, kept outside of the database.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="A certificate (JSON or HTML) to check as well.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="A signed checkpoint that the journal must extend.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="The public key that signed it.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Check the chain of hashes, the evidence and a certificate anew. Exit code 1 where something does not hold."""
    it = _open(db, study)
    note = _read_json(checkpoint) if checkpoint else None
    report = it.verify(head, _text(certificate) if certificate else None, note, key or ())
    if as_json:
        _print(report)
    else:
        say(report["message"], "holds:" if report["ok"] else "does not hold:", "green" if report["ok"] else "red")
        if report["compared"]:
            say(", ".join(report["compared"]), "compared:", "dim")
        say(f"head {report['head']}")
    if not report["ok"]:
        raise typer.Exit(1)


@app.command()
@writes
def checkpoint(
    out: Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False)],
    key: Annotated[Path, typer.Option(help="A private key, from `surefoot key new`.", show_default=False)],
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """A small signed note of where the journal stands, to be kept by somebody else."""
    it = _open(db, study, actor)
    note = it.checkpoint(key)
    _write(out, json.dumps(note, indent=2) + "\n")
    _done(it, as_json, f"signed: event {note['events']:,} in {out}", checkpoint=note)


@app.command()
def witness(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False)],
    key: Annotated[Path, typer.Option(help="The private key of the witness.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Countersign a checkpoint that was shown to you: it is in your hands too from then on."""
    from .keys import Key, countersign

    note = countersign(_read_json(file), Key.load(key))
    _write(file, json.dumps(note, indent=2) + "\n")
    _print(note) if as_json else say(f"{file} has {len(note['signatures'])} signatures")


@app.command()
@writes
def adopt(reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """Go on with a version whose evidence is the same theorem and differs in rounding alone."""
    it = _open(db, study, actor)
    it.adopt(reason)
    _done(it, as_json, "adopted")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE.db", show_default=False)],
    db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """A SQLite file with the study as it is now; at any time, whoever is at work."""
    it = _open(db, study)
    it.backup(file)
    _print({"file": str(file)}) if as_json else say(f"study {it.name!r} is in {file} too")


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
        say(found.content["concluded"]["words"])
        say(found.content["covered"])
        say(f"head {found.content['head']['hash']}" + (f"; written to {out}" if out else ""))


@app.command(name="list")
def list_(db: Db = None, as_json: Json = False) -> None:
    """The studies in a database."""
    names = Journal(_db(db)).names()
    if as_json:
        _print({"studies": names})
    else:
        for name in names or ["none"]:
            say(name)


def _brief(data: dict[str, Any], most: int = 100) -> str:
    """A payload in words, cut between two of them where it is long."""
    text = ", ".join(f"{key} {json.dumps(x, ensure_ascii=False)}" for key, x in data.items())
    return text if len(text) <= most else text[:most].rpartition(" ")[0] + " ..."


def _write(path: Path, text: str) -> None:
    """All of it or nothing: a file that is there already is replaced in one step."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SurefootError(f"cannot write {path}: {error.strerror or error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SurefootError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, SurefootError):
            raise
        raise SurefootError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise SurefootError(f"{path} must hold a JSON object; got {type(data).__name__}")
    return data


def _ranges(given: list[str] | None) -> dict[str, list[float]] | None:
    found = {}
    for text in given or ():
        reading, _, ends = text.partition("=")
        try:
            found[reading] = [float(x) for x in ends.split(":")]
        except ValueError:
            raise SurefootError(f"--plausible takes READING=LOW:HIGH; got {text!r}") from None
    return found or None
