"""`surefoot study`: every command is a few lines over Study. Here are those that write; `cli_look` has the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..checks import write
from ..designs import make, options_of
from ..problem import Problem, SurefootError
from . import Study, cli_look
from .published import default
from .requests import deviation, recorded
from .status import assignments, held, idle
from .terminal import (
    Actor,
    Db,
    Dose,
    Effect,
    Harm,
    Id,
    Json,
    Name,
    Reason,
    answer,
    app,
    as_dose,
    as_said,
    done,
    grid,
    of_blocks,
    opened,
    print_json,
    read_json,
    say,
    say_standing,
    which,
    writes,
)
from .text import table as rows_of
from .text import to_csv

__all__ = ["app", "cli_look"]

ECHO = 12  # readings of a table that are said again


@app.command()
@writes
def create(
    problem: Annotated[Path, typer.Argument(metavar="PROBLEM.toml", show_default=False)],
    db: Db = None,
    study: Annotated[str | None, typer.Option("--study", help="Its name; that of the file by default.")] = None,
    design: Annotated[str | None, typer.Option(help="A name from `surefoot designs`.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A design's option.")] = None,
    most: Annotated[int | None, typer.Option("--budget", help="The most subjects.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the order of assignments; drawn where none is given.")] = None,
    warn: Annotated[bool, typer.Option("--warn", help="Assumption watches warn instead of pausing.")] = False,
    watch_level: Annotated[float, typer.Option(help="How often the watches together may be wrong.")] = 0.01,
    plausible: Annotated[list[str] | None, typer.Option(metavar="READING=LOW:HIGH", help="Outside, confirm.")] = None,
    anyone: Annotated[bool, typer.Option("--anyone-lifts", help="Who told a reading may lift its alarm, too.")] = False,
    blocks: Annotated[bool, typer.Option("--blocks", help="Tell n and sums, an arm at a time.")] = False,
    pipeline: Annotated[int, typer.Option(help="So many cohorts at once, while effects are awaited.")] = 1,
    actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Begin a study."""
    it = Problem.load(problem)
    it = it if most is None else it.but(budget=most)
    chosen = make(design or default(it.shape), **options_of(set_))
    made = Study.create(
        which(db), study or problem.stem, it, chosen,
        actor=actor, seed=seed, watch="warn" if warn else "pause", watch_level=watch_level,
        plausible=_ranges(plausible), lift="anyone" if anyone else "another",
        blocks=blocks, pipeline=pipeline,
    )  # fmt: skip
    given = made.view.open
    size = given.size if given else 0
    what = "blocks" if blocks else "assignments"
    upto = f"at most {it.budget:,} subjects" if it.most else "no budget"
    said = f"study {made.name!r}: {chosen.label}, {upto}, {size:,} {what} are open"
    done(made, as_json, said, open=size, budget=it.most)


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
    it = opened(db, study, actor)
    if reserve is not None and site is None:
        raise SurefootError("--reserve needs --for SITE: for whom?")
    if reserve is not None:
        found = it.assign(reserve, str(site))
    else:
        found = it.awaiting(site=site) if awaiting else it.ask(limit, site=site)
    view, by = it.view, it.look(held)
    note = None if found else "no effect is due" if awaiting else it.look(lambda view: idle(view, site))
    if as_json:
        of = {name: [view.identify(s) for s in own] for name, own in by.items()}
        rows = [a._asdict() for a in found]
        print_json({"study": it.name, "standing": view.standing, "assignments": rows, "reserved": of, "note": note})
        return
    say_standing(view)
    if note and view.standing == "running":
        say(note)
    if site is None and limit is None and not awaiting:  # who holds what
        found += [a for name in by for a in assignments(view, site=name)]
    what = "n" if view.setup.get("blocks") else "subject"
    whose = ("for",) if view.reserved.keys() & {a.subject for a in found} else ()
    rows = [a._asdict() | {"for": view.reserved.get(a.subject, "")} for a in (found if limit else found[:50])]
    if rows:
        _table(rows, "id", what, "arm", "dose", *whose, "why")
    if len(found) > 50 and not limit:
        say(f"and {len(found) - 50:,} more (--limit, --json)")


@app.command(name="return")
@writes
def return_(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", show_default=False)], reason: Reason,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Assignments that were reserved and are not used: others may have them."""
    it = opened(db, study, actor)
    it.give_back(ids, reason)
    done(it, as_json, f"{len(ids)} returned")


@app.command(name="next")
@writes
def next_(
    site: Annotated[str, typer.Option("--for", help="For whom.")],
    count: Annotated[int, typer.Option("--count", help="How many more.")] = 1,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """For who treats and enters data: the next subjects, reserved, with arm and dose and nothing else."""
    it = opened(db, study, actor)
    found = it.desk(site).next(count)
    note = None if found else it.look(idle)
    if as_json:
        print_json({"assignments": found, "note": note})
        return
    _table(found, *found[0]) if found else say(note)


def _table(assignments: list[dict[str, Any]], *columns: str) -> None:
    row = grid(*columns)
    for a in assignments:
        row(*(as_said(a[name]) if name == "dose" else a[name] for name in columns))
    row()


@app.command()
@of_blocks
@writes
def tell(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="Of an assignment, from `ask`.")] = None,
    effect: Effect = None, harm: Harm = None, dose: Dose = None,
    table: Annotated[Path | None, typer.Option("--csv", help="Many: columns id, effect, harm[, ...].")] = None,
    key: Annotated[str | None, typer.Option(help="A retried request with the same key counts once.")] = None,
    confirm: Annotated[str | None, typer.Option(help="Why it is true although out of range.")] = None,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False, **block: Any,
) -> None:  # fmt: skip
    """What came of an assignment, or of many from a CSV file (all of them or none). Of a block: n and sums or means."""
    it = opened(db, study, actor)
    if (table is None) == (id is None):
        raise SurefootError("tell one assignment by its ID, or many with --csv FILE")
    if table is not None:
        new, ids = it.tell_many(table), [row["id"] for _, row in rows_of(table)]
    else:
        before, ids = it.view.seq, [str(id)]
        it.tell(ids[0], effect, harm, as_dose(dose), key=key, confirm=confirm, **block)
        new = int(it.view.seq > before)
    apart = it.look(lambda view: [said for one in ids if (said := deviation(view, one))])
    for said in () if as_json else apart:
        say(said, "deviation:")
    said = f"{new:,} told" if new else "told before: nothing new"
    now = it.look(lambda view: [recorded(view, one, actor=it.actor) for one in ids])
    for one in () if as_json or not table else [*now[:ECHO], *[f"and {len(now) - ECHO:,} more"] * (len(now) > ECHO)]:
        say(one)
    done(
        it,
        as_json,
        said if table else f"{said}; {now[0]}",
        told=new,
        recorded=now if table else now[0],
        deviations=apart,
    )


@app.command()
@writes
def void(id: Id, reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """A subject dropped out before any reading, or a block is lost. For good: what is only late can be waited for."""
    it = opened(db, study, actor)
    it.void(id, reason)
    done(it, as_json, f"{id} is void")


@app.command()
@of_blocks
@writes
def correct(
    id: Id, reason: Reason, effect: Effect = None, harm: Harm = None, dose: Dose = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="True although out of range.")] = False,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False, **block: Any,
) -> None:  # fmt: skip
    """A reading, or a block, was wrong: replace it, keep the old one on record, decide anew."""
    it = opened(db, study, actor)
    was = it.look(lambda view: view.reading(view.subject(id)))
    undone = it.correct(id, effect, harm, reason, dose=as_dose(dose), confirm=confirm, **block)
    now = it.look(lambda view: recorded(view, id, was))
    found = it.certificate().content["deviations"]
    if not as_json:
        for row in found:
            say(f"cohort {row['cohort']}, {row['arm']}: {row['what']}", "deviation:")
    if undone and not as_json:
        say(undone, "reopened:")
    done(it, as_json, f"corrected; {now}", recorded=now, deviations=found, undone=undone)


@app.command()
@writes
def pause(reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """Give out no assignments until `resume`."""
    it = opened(db, study, actor)
    it.pause(reason)
    done(it, as_json, "no assignments are given out")


@app.command()
@writes
def resume(
    reason: Reason,
    void_effect: Annotated[float | None, typer.Option(help="Count drop-outs as this effect.")] = None,
    void_harm: Annotated[float | None, typer.Option(help="And this harm; else others take their places.")] = None,
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Go on after a pause."""
    it = opened(db, study, actor)
    voids = {k: x for k, x in (("effect", void_effect), ("harm", void_harm)) if x is not None}
    if len(voids) == 1:
        raise SurefootError("to count drop-outs as a reading give both --void-effect and --void-harm")
    flagged = bool(it.view.fired) and any(event.data.get("by") == "watch" for event in it.view.paused)
    it.resume(reason, voids=voids or None)
    goes = it.view.standing == "running"
    said = "the study goes on" + " as before, also at a dose that was flagged" * flagged
    done(it, as_json, said if goes else "resumed")


@app.command()
@writes
def stop(reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """End the study for good, whatever the design says."""
    it = opened(db, study, actor)
    it.stop(reason)
    done(it, as_json, "the study is over")


@app.command()
@writes
def export(
    out: Annotated[Path | None, typer.Option(help="A .csv (readings) or .json (everything).")] = None,
    db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """The readings as CSV, or everything as JSON (--json, or a file that ends so), to be imported elsewhere."""
    it = opened(db, study)
    if out is not None:
        write(out, out.read_text(encoding="utf-8") if out.exists() else "")  # or nothing is noted
    if as_json or (out is not None and out.suffix == ".json"):
        text = json.dumps(it.export(), allow_nan=False) + "\n"
    else:
        text = to_csv(it.readings())
    if out is None:
        print(text, end="")
        return
    write(out, text)
    answer(as_json, f"written to {out}", file=str(out))


@app.command(name="import")
@writes
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False)], db: Db = None, as_json: Json = False
) -> None:
    """A study from its JSON export, hash for hash."""
    it = Study.load(which(db), read_json(file))
    done(it, as_json, f"study {it.name!r} is in {it.journal.shown}")


@app.command()
@writes
def checkpoint(
    out: Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False)],
    key: Annotated[Path, typer.Option(help="A private key, from `surefoot key new`.", show_default=False)],
    db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """A small signed note of where the journal stands, to be kept by somebody else."""
    it = opened(db, study, actor)
    note = it.checkpoint(key)
    write(out, json.dumps(note, indent=2) + "\n")
    done(it, as_json, f"signed: event {note['events']:,} in {out}", checkpoint=note)


@app.command()
def witness(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False)],
    key: Annotated[Path, typer.Option(help="The private key of the witness.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Countersign a checkpoint that was shown to you: it is in your hands too from then on."""
    from .keys import Key, countersign

    note = countersign(read_json(file), Key.load(key))
    write(file, json.dumps(note, indent=2) + "\n")
    answer(as_json, f"{file} has {len(note['signatures'])} signatures", **note)


@app.command()
@writes
def adopt(reason: Reason, db: Db = None, study: Name = None, actor: Actor = None, as_json: Json = False) -> None:
    """Go on with a version whose evidence is the same theorem and differs in rounding alone."""
    it = opened(db, study, actor)
    it.adopt(reason)
    done(it, as_json, "adopted")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE.db", show_default=False)],
    db: Db = None, study: Name = None, as_json: Json = False,
) -> None:  # fmt: skip
    """A SQLite file with the study as it is now; at any time, whoever is at work."""
    it = opened(db, study)
    it.backup(file)
    answer(as_json, f"study {it.name!r} is in {file} too", file=str(file))


def _ranges(given: list[str] | None) -> dict[str, list[float]] | None:
    found = {}
    for text in given or ():
        reading, _, ends = text.partition("=")
        try:
            found[reading] = [float(x) for x in ends.split(":")]
        except ValueError:
            raise SurefootError(f"--plausible takes READING=LOW:HIGH; got {text!r}") from None
    return found or None
