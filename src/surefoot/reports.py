"""Reports: lists of headings, paragraphs, tables and pictures, shown as Markdown or as HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from .checks import markdown_table

SHORT = 30  # characters, up to which the cells of a column stay on one line


@dataclass(frozen=True)
class Part:
    """A heading, a paragraph, a table (its head is the first row), or a picture (SVG or an image, with a caption)."""

    kind: Literal["title", "heading", "text", "table", "picture", "code"]
    text: str = ""
    rows: Sequence[Sequence[str]] = ()


def to_markdown(parts: Sequence[Part]) -> str:
    """Pictures are left out: the numbers behind them are in the tables."""
    out = []
    for part in parts:
        if part.kind == "table":
            out.append(markdown_table(part.rows))
        elif part.kind != "picture":
            marks = {"title": "# {}", "heading": "## {}", "code": "```\n{}\n```"}
            out.append(marks.get(part.kind, "{}").format(part.text))
    return "\n\n".join(out) + "\n"


STYLE = """body{font:15px/1.5 Georgia,serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid #ccc}
table{border-collapse:collapse;font:12px/1.35 sans-serif;margin:.8rem 0}
th,td{border:1px solid #ccc;padding:.25rem .45rem;text-align:left;vertical-align:top}
th{background:#f3f3f0}.n{text-align:right}td.n,td.s{white-space:nowrap}.wide{overflow-x:auto}pre{background:#f3f3f0;padding:.6rem;white-space:pre-wrap}
figure{margin:1rem 0}figcaption{font:12px sans-serif;color:#555}svg,img{max-width:100%;height:auto}
@page{size:A4;margin:16mm 14mm}
@media print{body{margin:0;padding:0;max-width:none;font-size:11px}table{font-size:8.5px}h2,h2+p{break-after:avoid}
figure,tr{break-inside:avoid}thead{display:table-header-group}.wide{overflow:visible}}"""


def to_html(parts: Sequence[Part]) -> str:
    """One file that needs nothing else, and prints."""
    body = [_html(part) for part in parts]
    title = escape(next((b.text for b in parts if b.kind == "title"), "protocol"))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _html(part: Part) -> str:
    if part.kind == "table":
        head, *rows = part.rows
        columns = zip(head, *rows, strict=True)
        looks = [_look(cells) for _, *cells in columns]
        top, *lines = (
            "".join(f"<{tag} {how}>{escape(cell)}</{tag}>" for cell, how in zip(row, looks, strict=True))
            for tag, row in (("th", head), *(("td", row) for row in rows))
        )
        return (
            f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>'
            + "".join(f"<tr>{x}</tr>" for x in lines)
            + "</tbody></table></div>"
        )
    if part.kind == "picture":
        return f"<figure>{part.rows[0][0]}<figcaption>{escape(part.text)}</figcaption></figure>"
    tag = {"title": "h1", "heading": "h2", "text": "p", "code": "pre"}[part.kind]
    return f"<{tag}>{escape(part.text)}</{tag}>"


def _look(cells: Sequence[str]) -> str:
    """Numbers to the right, what is short on one line."""
    if 2 * sum(map(_number, cells)) > sum(map(bool, cells)):
        return 'class="n"'
    return 'class="s"' if all(len(cell) <= SHORT for cell in cells) else ""


def _number(cell: str) -> bool:
    return (cell[:1].isdigit() and not any(c.isalpha() for c in cell) and len(cell) < 24) or cell == "the end"
