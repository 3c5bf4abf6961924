import csv
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from surefoot.cli import main
from surefoot.experiments.cost import Cost
from surefoot.experiments.paper import Plan
from surefoot.experiments.reproduce import command, expected, reproduce
from surefoot.theory import summary

PLAN = Plan(figures=("linear-pulls", "linear-regret"), trials=2, designs=("safebai-linear", "oracle"))


def surefoot(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


@pytest.fixture(autouse=True, scope="module")
def no_timing() -> Iterator[None]:
    """What a pull costs is measured elsewhere; a bound that takes seconds is a bound after one round too, and is found
    once for all runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surefoot.theory.certified.ROUNDS", 1)
        patch.setattr("surefoot.theory.summary", cache(summary))
        patch.setattr("surefoot.experiments.reproduce.costs", lambda: [Cost(500, 1e-4, 0.02), Cost(2000, 1e-4, 0.4)])
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "here"
    assert reproduce(PLAN, out) == out / "report.html"
    return out


def test_the_folder(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    figures = {f"{name}.{suffix}" for name in PLAN.figures for suffix in ("png", "svg", "csv")}
    assert names == figures | {"report.html", "run.json", "parts"}
    rows = list(csv.DictReader((folder / "linear-pulls.csv").read_text().splitlines()))
    assert [(row["design"], row["arms"]) for row in rows[:4]] == [
        ("safebai-linear", "5"), ("safebai-linear", "10"), ("safebai-linear", "20"), ("oracle", "5"),
    ]  # fmt: skip
    assert {row["design"] for row in rows[6:]} == {
        "upper bound, Algorithm 1",
        "characteristic time",
        "lower bound",
        "lower bound, doses certified",
    }
    facts = json.loads((folder / "run.json").read_text())
    assert facts["command"] == command(PLAN) and len(facts["claims"]) == 8


def test_the_report_stands_alone(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    assert len(re.findall(r'src="data:image/png;base64,', text)) == 2
    assert not re.search(r"(src|href)=['\"](https?:)?//", text) and "<script" not in text
    for words in ("safebai-linear", "cannot be told", "seed 1", command(PLAN), "numpy", "What had to be decided"):
        assert words in text


def test_it_goes_on_where_it_was(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = sorted((folder / "parts").glob("*.json"))
    before = {cell: cell.stat().st_mtime_ns for cell in cells}
    cells[0].unlink()
    cells[1].write_text("{")
    with pytest.warns(UserWarning, match="damaged"):
        reproduce(PLAN, folder)
    after = {cell: cell.stat().st_mtime_ns for cell in sorted((folder / "parts").glob("*.json"))}
    assert set(after) == set(before)
    assert [cell for cell in cells if after[cell] != before[cell]] == cells[:2]
    assert "4 of 6 cells are there already" in capsys.readouterr().err


def test_a_folder_with_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    arguments = [
        "reproduce",
        "--out",
        str(tmp_path),
        "--figures",
        "linear-pulls",
        "--designs",
        "oracle",
        "--trials",
        "1",
    ]
    assert surefoot(*arguments) == 2
    assert "holds something else" in capsys.readouterr().err
    assert surefoot(*arguments, "--force") == 0
    assert (tmp_path / "thesis.txt").read_text() == "mine" and (tmp_path / "report.html").exists()
    file = tmp_path / "thesis.txt"
    assert surefoot("reproduce", "--out", str(file)) == 2
    assert "is a file" in capsys.readouterr().err


def test_unknown_names_list_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert surefoot("reproduce", "--figures", "fig1") == 2
    assert "linear-pulls, linear-regret, drug-pulls, drug-regret" in capsys.readouterr().err
    assert surefoot("reproduce", "--designs", "thompson") == 2
    assert "safe-lts" in capsys.readouterr().err
    assert surefoot("reproduce", "--designs", "oracle", "--workers", "0") == 2
    assert "workers" in capsys.readouterr().err


def test_how_long_it_takes() -> None:
    """What is expected of a cell never exceeds its cap."""
    for plan in (Plan(), Plan(quick=True)):
        assert all(0 < expected(cell) <= max(cell.cap, 1000) for cell in plan.cells)


def test_the_command_to_run_it_again() -> None:
    assert command(Plan()) == "surefoot reproduce"
    assert command(PLAN) == (
        "surefoot reproduce --figures linear-pulls,linear-regret --designs safebai-linear,oracle --trials 2"
    )
    assert command(Plan(delta=0.01, quick=True)) == "surefoot reproduce --delta 0.01 --quick"
