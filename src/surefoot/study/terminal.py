"""What the commands of a study have in common: options, files, and printing what people wrote as it stands."""

from __future__ import annotations

import functools
import inspect
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from ..problem import SurefootError
from ..tables import Fit
from . import Study
from .blocks import COLUMNS
from .checker import DECODE
from .journal import UNKNOWN
from .status import to_do
from .text import content_of, shown

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


def _reading(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"a reading is a number; of yes-or-no readings yes is 1, no is 0; got {text!r}"
        ) from None


Effect = Annotated[float | None, typer.Option(parser=_reading, metavar="NUMBER", help="The effect read; yes is 1.")]
Harm = Annotated[float | None, typer.Option(parser=_reading, metavar="NUMBER", help="The harm read; yes is 1.")]
Dose = Annotated[str | None, typer.Option(help="The dose given, where it is not the one assigned.")]
OF_BLOCK = {"n": "how many subjects came", "mean": "the mean, in place of the sum", "sd": "its standard deviation",
            "squares": "the sum of squares, in place of the sd"}  # fmt: skip

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


def of_blocks(command: Run) -> Run:
    """With the options of a block: whatever can be told of one can be corrected, too."""
    shape, more = inspect.signature(command, eval_str=True), list[inspect.Parameter]()
    own = [p for p in shape.parameters.values() if p.kind is not p.VAR_KEYWORD]
    for key in COLUMNS:
        kind = Annotated[float | None, typer.Option(help=f"Of a block: {OF_BLOCK[key.split('_')[-1]]}.")]
        more.append(inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))
    command.__signature__ = shape.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    return command


def say(text: Any, label: str = "", style: str = "yellow") -> None:
    """Print what people wrote as it stands: no markup in it means anything."""
    console.print(Text.assemble((f"{label} ", style) if label else "", shown(text)), highlight=False)


def grid(*head: str) -> Callable[..., None]:
    """A table whose cells are printed as they stand; called without a row it is shown, as it fits."""
    rows: list[dict[str, str]] = []

    def row(*cells: Any) -> None:
        if cells:
            rows.append({key: escape(shown(cell)) for key, cell in zip(head, cells, strict=True)})
        else:
            console.print(Fit(rows or [dict.fromkeys(head, "")], keys=head[:1]), highlight=False)

    return row


def paragraph(text: str, indent: str = "  ") -> None:
    """Lines that are broken between words alone; what comes after the first is indented."""
    lines = textwrap.wrap(text, console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    console.print(Text("\n".join(lines)), highlight=False, soft_wrap=True)


def as_said(dose: Any, digits: int = 6) -> str:
    """A dose, or the name of a level; nothing where there is none."""
    return "" if dose is None else dose if isinstance(dose, str) else f"{dose:.{digits}g}"


def as_dose(text: str | None) -> Any:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def opened(db: str | None, study: str | None, actor: str | None = None) -> Study:
    return Study.open(which(db), study, actor=actor)


def which(db: str | None) -> str:
    if not db:
        raise SurefootError("which database? give --db FILE, or set SUREFOOT_DB")
    return db


def print_json(data: dict[str, Any]) -> None:
    print(json.dumps(data, allow_nan=False))


def answer(as_json: bool, said: str, **data: Any) -> None:
    print_json(data) if as_json else say(said)


def done(study: Study, as_json: bool, said: str, **more: Any) -> None:
    """What every writing command ends with: what was done, and where the study stands now."""
    view = study.view
    if as_json:
        print_json(
            {"study": study.name, "standing": view.standing, "head": {"seq": view.seq, "hash": view.hash}, **more}
        )
        return
    say(said)
    say_standing(view)


def say_standing(view: Any) -> None:
    if view.standing == "paused":
        say("; ".join(str(e.reason) for e in view.paused), "paused:")
        say(to_do(view), "what to do:")
    elif view.standing == "ended" and view.concluded:
        winner = view.concluded["winner"]
        say(
            view.concluded["ending"] + (f", {view.problem.names[winner]}" if winner is not None else ""),
            "ended:",
            "green",
        )
    elif view.standing == "stopped":
        say(view.stopped.reason, "stopped:")


def read_json(path: Path) -> dict[str, Any]:
    try:
        data = DECODE(content_of(path))  # a name that stands twice is refused
    except (ValueError, RecursionError) as error:
        if isinstance(error, SurefootError):
            raise
        raise SurefootError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise SurefootError(f"{path} must hold a JSON object; got {type(data).__name__}")
    return data
