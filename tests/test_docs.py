"""What the documentation shows runs: blocks of Python, docstrings, notebooks; commands parse; the site builds."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import surefoot
from surefoot.cli import app
from surefoot.registry import Registry
from surefoot.study.cli import app as live

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|console|sh)\n(.*?)^```$", re.M | re.S)
ELSEWHERE = {"tutorial.md"}  # runs as printed in tests/study/test_tutorial.py
SLOW = {"gallery.md": 3, "page.md": 0, "readings.md": 0, "scale.md": 0}
# how many blocks are run of pages that take long, need a server or a study that is under way; the rest must compile


def blocks(page: Path, kinds: tuple[str, ...]) -> list[str]:
    return [code for kind, code in BLOCK.findall(page.read_text(encoding="utf-8")) if kind in kinds]


@pytest.fixture
def clean() -> Iterator[None]:
    """What a page registers is gone after it."""
    before = {kind: dict(registry.known) for kind, registry in Registry.every.items()}
    yield
    for kind, known in before.items():
        there = Registry.every[kind].known
        there.clear()
        there.update(known)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in ELSEWHERE], ids=lambda page: page.name)
def test_blocks_of_python_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gallery").mkdir()
    space: dict[str, Any] = {"__name__": "page"}
    for k, code in enumerate(blocks(page, ("python",))):
        made = compile(code, f"{page.name}, block {k + 1}", "exec", dont_inherit=True)
        if k < SLOW.get(page.name, 1000):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(made, space)


def commands(page: Path) -> list[str]:
    lines = [line.split(" #")[0].strip() for code in blocks(page, ("console", "sh")) for line in code.splitlines()]
    return [line for line in lines if line.startswith("surefoot ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_parse(page: Path) -> None:
    """They are not run: some take hours; but every name and option is there."""
    for line in commands(page):
        words = shlex.split(re.sub(r"[|>&].*", "", line))[1:]
        it = live if words[0] == "study" else app
        command: Any = typer.main.get_command(it)
        words = words[1:] if words[0] == "study" else words
        if not words or words[0].startswith("-"):
            continue
        assert words[0] in command.commands, line
        command.commands[words[0]].make_context(words[0], list(words[1:]))


def test_extras_are_quoted_for_every_shell() -> None:
    """zsh takes brackets for a pattern."""
    files = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.md")]
    for path in files:
        bare = re.findall(r"pip install (?!['\"])\S*\[.*", path.read_text(encoding="utf-8"))
        assert not bare, f"{path}: {bare}"


@pytest.mark.parametrize("name", [n for n in surefoot.__all__ if n.islower() or n[1:].islower()])
def test_every_public_name_says_what_it_is(name: str) -> None:
    it = getattr(surefoot, name)
    text = it.__doc__ or ""
    assert len(text) > 40, f"{name} has no docstring"
    if name != "SurefootError":
        assert "Examples\n" in text, f"{name} has no example"


def test_problems_and_results_are_shown_in_a_line_and_as_a_table() -> None:
    problem, truth = surefoot.case("paper-drug", 5)
    result = surefoot.simulate(problem, truth, surefoot.make("safebai-monotonic"), 2, progress=False)
    for it, words in ((problem, "slack"), (result, "safebai-monotonic")):
        assert words in repr(it) and "\n" not in repr(it) and "<table" in it._repr_html_()


@pytest.mark.usefixtures("clean")
def test_examples_of_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    tried = 0
    for name in surefoot.__all__:
        it = getattr(surefoot, name)
        for test in finder.find(it, name, globs={}, module=importlib.import_module("surefoot")):
            out = io.StringIO()
            failed, attempted = runner.run(test, out=out.write)
            assert not failed, out.getvalue()
            tried += attempted
    assert tried > 20


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    site = tmp_path / "html"
    run = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "trees")]
    done = subprocess.run([*run, str(ROOT / "docs"), str(site)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (site / "index.html").read_text(encoding="utf-8")
    assert "Which of several options is best" in page
    fetched = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page)
    assert not fetched, f"the site must work without a network: {fetched}"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with contextlib.chdir(tmp_path):
        os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        client = NotebookClient(book, timeout=600, startup_timeout=600, kernel_name="python3")
        client.create_kernel_manager().transport = "ipc"  # no port that another process may take first
        client.execute()
        names: dict[str, object] = {}
        for cell in book.cells:  # once more from the top, where its files are there
            exec(cell.source if cell.cell_type == "code" else "", names)
    assert not any("outputs" in cell and not cell.get("execution_count") for cell in book.cells)
    shown = [out.get("data", {}) for cell in book.cells for out in cell.get("outputs", ())]
    drawn = sum("image/png" in data for data in shown)
    assert drawn == sum("responses(" in cell.source for cell in book.cells), "pictures are shown as they are"
