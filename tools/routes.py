"""Write the table route x role into the documents: `python tools/routes.py docs/page.md`."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from surefoot.web.app import create_app, table_markdown

if __name__ == "__main__":
    file = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        made = table_markdown(create_app(Path(folder) / "none.db"))
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"\| \| \| nobody.*?\n(?!\|)", lambda _: made, text, flags=re.DOTALL), encoding="utf-8")
