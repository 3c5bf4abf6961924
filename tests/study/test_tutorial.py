"""docs/tutorial.md runs as printed: every block in order, in an empty folder, and what follows it is what it prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```$", re.M | re.S)


def plain(text: str) -> str:
    """What may differ from run to run: hashes; and blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in re.sub(r"\b[0-9a-f]{64}\b", "HASH", text).strip().splitlines())


def played(folder: Path) -> list[tuple[str, str, str]]:
    """Kind, code and output of every block that does something."""
    out, space = [], dict[str, object]()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for kind, code in BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):
        if kind == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(code, "tutorial", "exec"), space)
            out.append((kind, code, said.getvalue()))
        elif kind == "sh":
            env = {**os.environ, "PATH": path, "COLUMNS": "100"}
            done = subprocess.run(["sh", "-ec", code], cwd=folder, env=env, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            out.append((kind, code, done.stdout))
        else:
            out.append((kind, code, ""))
    return out


def test_the_tutorial_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = ""
    for kind, code, output in played(tmp_path):
        if kind == "text":
            assert plain(said) == plain(code)
            said = ""
        else:
            assert not said.strip(), f"this was printed and is not in the tutorial: {said}"
            said = output
    assert not said.strip()
    assert Path("creams.html").exists()
