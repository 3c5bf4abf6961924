"""Tables for a terminal of any width, without a broken word: what does not fit is left out or told row by row.

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
    """Rows to be printed by Rich. `drop`: columns that may be left out where there is no room, the first to go first;
    without any, a table that is too wide becomes a block of facts for each row."""

    rows: Sequence[Row]
    title: str = ""
    drop: Sequence[str] = ()
    by: str = ""  # a column whose values each get a table of their own where one is too wide
    more: str = "a wider terminal"  # where to see what was left out
    columns: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.columns = list(dict.fromkeys(key for row in self.rows for key in row))

    def __rich_console__(self, console: Any, options: Any) -> Any:
        columns, left, title = self.columns, list[str](), self.title
        groups = list(dict.fromkeys(row[self.by] for row in self.rows)) if self.by else []
        if len(groups) > 1 and self._least([key for key in columns if key not in self.drop]) > options.max_width:
            yield f"[italic]{title}[/]"
            for group in groups:
                mine = [row for row in self.rows if row[self.by] == group]
                rows = [{key: x for key, x in row.items() if key != self.by} for row in mine]
                yield Fit(rows, f"{self.by}: {group}", self.drop, more=self.more)
            return
        if self.rows and self._least(columns) > options.max_width and len(self.rows) > 1:  # said once, in the title
            same = [key for key in columns if key and len({row.get(key, "") for row in self.rows}) == 1]
            said = [f"{key}: {self.rows[0][key]}" for key in same if self.rows[0].get(key, "") not in ("", title)]
            title = "; ".join(filter(None, [title, *said]))
            columns = [key for key in columns if key not in same] or columns
        for key in self.drop:
            if self._least(columns) <= options.max_width:
                break
            if key in columns:
                columns = [name for name in columns if name != key]
                left.append(key)
        if self._least(columns) > options.max_width:
            yield from self._facts(columns, title, options.max_width)
            return
        yield self._table(columns, title, options.max_width)
        if left:
            yield f"[dim]Not shown here: {', '.join(left)} ({self.more}).[/]"

    def _table(self, columns: Sequence[str], title: str, room: int) -> Any:
        from rich.table import Table

        table = Table(title=title or None, title_justify="left")
        least = [self._word(key) for key in columns]
        most = [self._word(key, 10**6) for key in columns]
        spare, wish = room - sum(least) - 3 * len(columns) - 1, sum(most) - sum(least)
        share = min(spare / wish, 1.0) if wish else 0.0
        for key, small, large in zip(columns, least, most, strict=True):
            numeric = all(_plain(row.get(key, "") or "0")[:1] in "0123456789-≥≤<>±" for row in self.rows)
            table.add_column(
                key, width=small + int(share * (large - small)), justify="right" if numeric and self.rows else "left"
            )
        for row in self.rows:
            table.add_row(*(row.get(key, "") for key in columns))
        return table

    def _facts(self, columns: Sequence[str], title: str, room: int) -> Any:
        """A block for each row: its first cell, then a line for each other fact."""
        from rich.table import Table
        from rich.text import Text

        if title:
            yield Text.from_markup(f"[italic]{title}[/]")
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
