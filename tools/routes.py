"""Write the table route x role into the documents: `python -m tools.routes docs/page.md`."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from surefoot.web.access import ROLES
from surefoot.web.app import create_app, table


def table_markdown(app: Any) -> str:
    lines = [f"| | | {' | '.join(('nobody', *ROLES))} |", "|" + "---|" * (3 + len(ROLES))]
    for method, path, roles in table(app):
        cells = ["yes" if not roles else ""] + ["yes" if not roles or role in roles else "" for role in ROLES]
        lines.append(f"| {method} | `{path}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        made = table_markdown(create_app(Path(folder) / "none.db"))
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"\| \| \| nobody.*?\n(?!\|)", lambda _: made, text, flags=re.DOTALL), encoding="utf-8")
