"""Tables for a terminal of any width, without a broken word: what does not fit beside the rest stands below it.

A table is a list of rows, each a mapping from column to text (Rich's markup may be in it). How wide it may be is known
only when it is printed, so it is decided there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

WHOLE = 22  # cells of up to so many characters are kept on one line

Row = Mapping[str, str]


@dataclass
class Fit:
    """Rows to be printed by Rich. A table that is too wide is cut into several with the columns `keys` in each; where
    there are none, or they do not help, it becomes a block of facts for each row. So nothing is left out."""

    rows: Sequence[Row]
    title: str = ""
    by: str = ""  # a column whose values each get a table of their own where one is too wide
    keys: Sequence[str] = ()
    columns: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.columns = list(dict.fromkeys(key for row in self.rows for key in row))

    def __rich_console__(self, console: Any, options: Any) -> Any:
        columns, title, room = self.columns, self.title, options.max_width
        groups = list(dict.fromkeys(row[self.by] for row in self.rows)) if self.by else []
        if len(groups) > 1 and self._least(columns) > room:
            yield from self._said(title)
            for group in groups:
                mine = [row for row in self.rows if row[self.by] == group]
                rows = [{key: x for key, x in row.items() if key != self.by} for row in mine]
                yield Fit(rows, f"{self.by}: {group}", keys=self.keys)
            return
        if not self.keys and self._least(columns) > room and len(self.rows) > 1:  # said once, in the title
            same = [key for key in columns if key and len({row.get(key, "") for row in self.rows}) == 1]
            said = [f"{key}: {self.rows[0][key]}" for key in same if self.rows[0].get(key, "") not in ("", title)]
            title = "; ".join(filter(None, [title, *said]))
            columns = [key for key in columns if key not in same] or columns
        parts = self._parts(columns, room)
        if any(self._least(part) > room for part in parts):
            yield from self._facts(columns, title, room)
            return
        yield from self._said(title)
        yield from (self._table(part, room) for part in parts)

    def _parts(self, columns: Sequence[str], room: int) -> list[list[str]]:
        """The columns of each table."""
        keys = [key for key in columns if key in self.keys]
        parts = [list(columns)] if self._least(columns) <= room or not keys else [keys]
        for key in columns if parts[-1] == keys else ():
            if key not in keys:
                parts = [*parts, keys] if self._least([*parts[-1], key]) > room and parts[-1] != keys else parts
                parts[-1] = [*parts[-1], key]
        return parts

    def _said(self, title: str) -> Any:
        from rich.text import Text

        if title:
            yield Text.from_markup(f"[italic]{title}[/]")

    def _table(self, columns: Sequence[str], room: int) -> Any:
        from rich.table import Table

        table = Table()
        least = [self._word(key) for key in columns]
        most = [self._word(key, 10**6) for key in columns]
        spare, wish = room - sum(least) - 3 * len(columns) - 1, sum(most) - sum(least)
        share = min(spare / wish, 1.0) if wish else 0.0
        for key, small, large in zip(columns, least, most, strict=True):
            cells = [_plain(row.get(key, "") or "0") for row in self.rows]
            numeric = cells and all(x[0] in "0123456789-≥≤<>±" and not any(map(str.isalpha, x)) for x in cells)
            table.add_column(key, width=small + int(share * (large - small)), justify="right" if numeric else "left")
        for row in self.rows:
            table.add_row(*(row.get(key, "") for key in columns))
        return table

    def _facts(self, columns: Sequence[str], title: str, room: int) -> Any:
        """A block for each row: its first cell, then a line for each other fact."""
        from rich.table import Table
        from rich.text import Text

        yield from self._said(title)
        head, *others = columns
        words = [len(word) for key in others for word in key.split()]
        keys = max([1, *words, *(len(key) for key in others if len(key) <= WHOLE + 4)])
        aligned = keys + max((self._word(key) for key in others), default=0) + 6 <= room
        for row in self.rows:
            yield Text.from_markup(f"[bold]{head + ' ' if head else ''}{row.get(head, '')}[/]")
            facts = [(key, row[key]) for key in others if row.get(key, "")]
            if not aligned:
                for key, cell in facts:
                    lines = wrap(f"{key}: {_plain(cell)}", room, initial_indent="  ", subsequent_indent="    ",
                                 break_long_words=False, break_on_hyphens=False)  # fmt: skip
                    yield Text("\n".join(lines), no_wrap=True, overflow="ignore")
                continue
            grid = Table.grid(padding=(0, 2), pad_edge=True)
            grid.add_column(width=keys + 2)  # what it is set in counts too
            grid.add_column(ratio=1)
            for key, cell in facts:
                grid.add_row(f"[dim]{key}[/]", cell)
            yield grid

    def _word(self, key: str, whole: int = WHOLE) -> int:
        """The least width of a column: its longest word, and every cell of up to so many characters."""
        from rich.cells import cell_len

        cells = [line for row in self.rows for line in _plain(row.get(key, "")).splitlines()]
        words = [cell_len(word) for text in (key, *cells) for word in text.split()]
        return max([1, *words, *(cell_len(x) for x in (*cells, *([key] * (whole > WHOLE))) if len(x) <= whole)])

    def _least(self, columns: Sequence[str]) -> int:
        return sum(self._word(key) for key in columns) + 3 * len(columns) + 1


def _plain(text: str) -> str:
    from rich.text import Text

    return Text.from_markup(text).plain


__all__ = ["Fit"]
