"""What people type and what is printed of it: names, reasons, tables."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..checks import SurefootError, line
from .blocks import COLUMNS as BLOCK

# Of a table of readings; all but the first three may be left out, and of blocks those too that have a mean instead
COLUMNS = ("id", "effect", "harm", "arm", "dose", "key", "confirm", *BLOCK)
NEEDED = f"needed are id, effect and harm, of blocks n too; if wanted {', '.join(x for x in COLUMNS[3:] if x != 'n')}"

# Letters of other scripts that look like Latin ones, and digits that look like letters
TWINS = str.maketrans(
    "АВЕЅІЈКМНОРСТХУаеіјорсухѕӏԁɡΑΒΕΖΗΙΚΜΝΟΡΤΥΧοινρα01|_",  # noqa: RUF001
    "ABESIJKMHOPCTXYaeijopcyxsldgABEZHIKMNOPTYXoivpaoll-",
)


def file(value: Any) -> Path:
    """The path of a file."""
    if not isinstance(value, (str, Path)) or not str(value).strip() or "\0" in str(value):
        raise SurefootError(f"the path of a file is needed; got {value!a}")
    return Path(value)


def reason(value: Any) -> str:
    return line("a reason", value, 10_000)


def skeleton(name: str) -> str:
    """What is left of a name to the eye."""
    plain = unicodedata.normalize("NFKD", name)
    kept = "".join(c for c in plain if c.isprintable() and not unicodedata.combining(c) and not c.isspace())
    return kept.translate(TWINS).casefold().replace("i", "l").replace("rn", "m").replace("vv", "w")


def distinct(what: str, names: Iterable[str]) -> None:
    """Refuse names that look alike."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(skeleton(name), name)) != name:
            raise SurefootError(f"{what} {other!r} and {name!r} look alike: choose names that nobody can mix up")


def shown(value: Any) -> str:
    """For a terminal: control characters and marks that turn the direction of writing as their codes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Text that a spreadsheet would take for a formula gets an apostrophe before it."""

    def cell(x: Any) -> Any:
        return f"'{x}" if isinstance(x, str) and x.lstrip()[:1] in ("=", "+", "-", "@", "\t", "\r", "|") else x

    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: cell(x) for key, x in row.items()} for row in rows)
    return out.getvalue()


def content_of(given: Any) -> Any:
    """The text of a file, where its path is given; else what is given."""
    path = Path(given) if isinstance(given, str) and given.lstrip()[:1] not in "{<" else given
    try:
        if not isinstance(path, Path) or (path is not given and not path.is_file()):
            return given
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SurefootError(f"cannot read {given}: {getattr(error, 'strerror', None) or error}") from error


def table(rows: str | Path | io.TextIOBase | Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of readings with a name each for error messages: from the path of a CSV file, an open one, or a table."""
    if isinstance(rows, io.TextIOBase):
        yield from _parsed("the table", rows)
        return
    if isinstance(rows, (str, Path)):
        path = file(rows)
        try:
            with path.open(newline="", encoding="utf-8-sig") as opened:
                yield from _parsed(str(path), opened)
        except OSError as error:
            raise SurefootError(f"cannot read {path}: {error.strerror or error}") from error
        return
    if hasattr(rows, "to_dict"):  # a data frame
        rows = rows.to_dict("records")
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise SurefootError(f"tell_many takes the path of a CSV file or a table of rows; got {rows!r}")
    found: list[Any] = list(rows)
    for k, row in enumerate(found, 1):
        if not isinstance(row, Mapping) or set(row) - set(COLUMNS):
            raise SurefootError(f"row {k} must be a mapping with the keys {', '.join(COLUMNS)}; got {row!r}")
    yield from ((f"row {k}", dict(row)) for k, row in enumerate(found, 1))


def _parsed(path: str, opened: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        reader = csv.reader(opened, strict=True)
        head = [name.strip() for name in next(reader, [])]
        for what, names in (
            ("lacks the column", [n for n in COLUMNS[:3] if n not in head and f"{n}_mean" not in head]),
            ("has a column that means nothing here:", [n for n in head if n not in COLUMNS]),
            ("has a column twice:", sorted({n for n in head if head.count(n) > 1})),
        ):
            if names:
                raise SurefootError(f"{path} {what} {', '.join(map(repr, names))}; {NEEDED}")
        for cells in reader:
            if not cells:
                continue
            row: dict[str, Any] = dict(zip(head, (c.strip() or None for c in cells), strict=False))
            if len(cells) != len(head):
                row = {"id": f"{len(cells)} cells instead of {len(head)}"}
            for name in ("effect", "harm", "dose", *BLOCK):
                if row.get(name) is not None:
                    with suppress(ValueError):  # else it is told as it stands, and refused with its name
                        row[name] = float(row[name])
            yield f"line {reader.line_num}", row
    except (csv.Error, ValueError) as error:
        if isinstance(error, SurefootError):
            raise
        raise SurefootError(f"{path} is not a CSV file: {error}") from error
