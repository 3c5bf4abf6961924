"""Draw the pictures of the documentation again: runs the blocks of gallery.md, and the picture on the first page."""

import os
import re
import shutil
from pathlib import Path

HERE = Path(__file__).parent


def draw() -> None:
    os.chdir(HERE)
    Path("gallery").mkdir(exist_ok=True)
    space: dict[str, object] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", Path("gallery.md").read_text(encoding="utf-8"), re.M | re.S):
        exec(compile(code, "gallery.md", "exec"), space)
    shutil.copy("gallery/responses.png", "story.png")


if __name__ == "__main__":
    draw()
