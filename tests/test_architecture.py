"""ARCHITECTURE.md stays true: what it names exists, and it names every module."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "surefoot"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)(?::([\w.]+))?`", TEXT)))  # (file, name or "")


def where(file: str) -> Path:
    return (ROOT if file.startswith(("tests/", "benchmarks/")) else PACKAGE) / file


def names(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """What a module defines: functions, classes, their methods, and what it assigns."""
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(prefix + node.name)
        if isinstance(node, ast.ClassDef):
            found |= names(node.body, f"{prefix}{node.name}.")
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[":".join(filter(None, pair)) for pair in NAMED])
def test_what_is_named_exists(file: str, name: str) -> None:
    assert where(file).is_file()
    assert not name or name in names(ast.parse(where(file).read_text(encoding="utf-8")).body)


def test_every_module_is_named() -> None:
    modules = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if not path.name.startswith("__")}
    assert not modules - {file for file, _ in NAMED}, "add these to the table of layers in ARCHITECTURE.md"


def layers() -> list[list[str]]:
    """The modules of each row of the table, from the top."""
    table = TEXT.split("## Layers")[1].split("##")[0]
    rows = [re.findall(r"`([\w/]+\.py)(?=`|:)", line) for line in table.splitlines() if line.startswith("| `")]
    return [list(dict.fromkeys(row)) for row in rows]


def imports(file: str) -> set[str]:
    """The modules of the package that a module needs to be imported, as files."""
    here = PACKAGE / file
    found: set[Path] = set()
    for node in ast.parse(here.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            found |= {base.with_suffix(".py"), *(base / f"{name.name}.py" for name in node.names)}
    return {str(path.relative_to(PACKAGE)) for path in found if path.is_file()}


ROWS = layers()


@pytest.mark.parametrize("row", range(len(ROWS)), ids=[row[0] for row in ROWS])
def test_each_layer_knows_only_those_above(row: int) -> None:
    below = {file for later in ROWS[row + 1 :] for file in later} - {f for r in ROWS[: row + 1] for f in r}
    wrong = {file: imports(file) & below for file in ROWS[row] if imports(file) & below}
    assert not wrong, f"these import what stands below them in ARCHITECTURE.md: {wrong}"
