"""Errors that say what came, what was needed and what to do; the checks that raise them; what is written alike."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

MANY = 15  # names that an error lists
NAME = 200  # characters that a name may have
SIZE = 1e50  # numbers between 1/SIZE and SIZE can be squared and divided without overflow; the others are refused


class SurefootError(ValueError):
    """Something that came from the user and cannot be used; the message says what came, what was needed and what to do.

    Examples
    --------
    >>> import surefoot
    >>> try:
    ...     surefoot.make("surefoot-liner")
    ... except surefoot.SurefootError as error:
    ...     print(str(error)[-33:])
    (did you mean 'surefoot-linear'?)
    """


def number(name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf, finite: bool = True) -> float:
    """`value` as a float, or an error that says what came and what was needed."""
    if type(value) is float and -SIZE <= value <= SIZE and above == least == -math.inf:
        return value  # most are: readings
    need = ("finite" if finite else "a number") + (f" and above {above:g}" if above > -math.inf else "")
    need += f" and at least {least:g}" if least > -math.inf else ""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise SurefootError(f"{name} must be a number; got {value!r}")
    try:
        x = float(value)
    except OverflowError:
        raise SurefootError(f"{name} must be {need}; got a whole number of more than 308 digits") from None
    if math.isnan(x) or (finite and math.isinf(x)) or x <= above or x < least:
        raise SurefootError(f"{name} must be {need}; got {value!r}")
    if SIZE < abs(x) < math.inf or (above == 0 and x < 1 / SIZE):
        raise SurefootError(f"{name} must be of a size between {1 / SIZE:g} and {SIZE:g}; got {x:g}")
    return x


def number_or(name: str, value: Any, *words: str) -> Any:
    """One of `words`, or a number above 0, which may come as a string (from a command line)."""
    if value in words:
        return value
    try:
        return number(name, float(value), above=0)
    except (TypeError, ValueError):
        need = " or ".join(["a number above 0", *words])
        raise SurefootError(f"{name} must be {need}; got {value!r}") from None


def choice(name: str, value: Any, options: Iterable[str]) -> Any:
    options = list(options)
    if value not in options:
        import difflib  # only here: what an error needs should not make every import longer

        near = difflib.get_close_matches(str(value), options, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        some = options if len(options) <= MANY else [*options[:MANY], f"... ({len(options)} in all)"]
        raise SurefootError(f"{name} must be one of {', '.join(some)}; got {value!r}{hint}")
    return value


def line(what: str, value: Any, most: int = NAME) -> str:
    """A line of text that can be printed, without blanks around it."""
    good = isinstance(value, str) and value.strip() and len(value) <= most and value.isprintable()
    if not good:
        shown = ascii(value) if not isinstance(value, str) or len(value) < 100 else f"{len(value):,} characters"
        raise SurefootError(f"{what} must be a line of 1 to {most:,} characters that can be printed; got {shown}")
    return str(value).strip()


def known_keys(where: str, data: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Refuse a mapping with a key that means nothing here: a misspelt `slakc` must not pass as no slack."""
    if not isinstance(data, Mapping):
        raise SurefootError(f"{where} must be a table of keys and values; got {data!r}")
    for key in data:
        choice(f"a key of {where}", key, keys)


def between(low: float | None, high: float | None, form: str = ".4g") -> str:
    """An interval in words: `0.2 to 0.5`, `≥ 0.2` where it has no upper end, `unknown` where it has neither."""
    ends = [f"{x:{form}}" if x is not None and math.isfinite(x) else "" for x in (low, high)]
    if all(ends):
        return " to ".join(ends)
    return f"≥ {ends[0]}" if ends[0] else f"≤ {ends[1]}" if ends[1] else "unknown"


def percent(share: float) -> str:
    """To three digits: limits may be a percent, and what is over them a little more."""
    return f"{100 * share:.3g}%"


def path_of(name: str) -> str:
    """A study's name as a part of an address: no slash, no leading dot."""
    safe = name.replace("~", "~0").replace("/", "~1").replace("\\", "~3")
    return quote(("~2" + safe[1:]) if safe.startswith(".") else safe, safe="")


def write(path: Path, content: str | bytes, else_: str = "") -> None:
    """Whole or not at all, and there after a power cut; what is there already is replaced, and a device or a pipe is
    written to. `else_`: what to say more where it fails."""
    data, half = content if isinstance(content, bytes) else content.encode(), None
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        real = path.resolve()
        half = real.with_name(f".{real.name}.{os.getpid()}.half")
        with half.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        half.replace(real)
    except (OSError, ValueError) as error:
        if half is not None:
            half.unlink(missing_ok=True)
        raise SurefootError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}{else_}") from error


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The head is the first row."""
    head, *others = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *others))


def html_table(rows: Mapping[str, Any]) -> str:
    """Names and values for a notebook."""
    cells = "".join(f"<tr><th>{escape(str(k))}</th><td>{escape(str(x))}</td></tr>" for k, x in rows.items())
    return f"<table>{cells}</table>"
