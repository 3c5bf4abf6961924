"""The protocol report, from a file to a page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, SurefootError, case, make
from surefoot.checks import write
from surefoot.decisions import HEAD, decision_table, until_given
from surefoot.designs import default
from surefoot.designs.base import Outcome
from surefoot.plan import Plan, _pauses, curves
from surefoot.reports import Part, to_html, to_markdown
from surefoot.scenario import Table
from surefoot.study.watch import Watches
from surefoot.study.watch_bets import Sums

from .test_cli import run  # noqa: F401
from .test_scenario import SET


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the trials that go on to the end."""
    monkeypatch.setattr("surefoot.plan.FEW", 2)


def test_from_file_to_report(run: Any, tmp_path: Path) -> None:  # noqa: F811
    path, out = tmp_path / "set.toml", tmp_path / "report.html"
    path.write_text(SET, encoding="utf-8")
    command = "plan", str(path), "--budgets", "30,60", "--trials", "10"
    assert run(*command, "--out", str(out), "--json").json == {"files": [str(out), str(out.with_suffix(".md"))]}
    page, text = out.read_text(encoding="utf-8"), out.with_suffix(".md").read_text(encoding="utf-8")
    for said in (
        "Which of 2 arms has the largest effect", "With probability at least 0.9", "When it stops", "A is better",
        "B is better", "named: best / wrong", "over the limit", "90%", "10 mg", "The first cohorts", "seed 0",
        "surefoot plan ", "--designs surefoot-levels,boin,three-plus-three", "none could be wrong",
        "± is one standard error", "surefoot-levels/2",
        "To a name it takes, about: A is better ", "no rule for futility", "No watch is simulated",
        "is named without a test of its own start dose", "harmed at the first level of one arm: 11 of 11, ",
    ):  # fmt: skip
        assert said in page
        assert said in text
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=", page)  # it needs nothing else
    assert page.count("<svg") == 2
    ET.fromstring(page.split("\n", 1)[1].replace('<meta charset="utf-8">', ""))  # well formed
    again = tmp_path / "again.html"
    run(*command, "--out", str(again))
    assert again.read_text(encoding="utf-8") == page
    assert "cannot write the report" in run(*command[:-1], "1", "--out", str(tmp_path / "no" / "report.html")).err
    with pytest.raises(SurefootError, match="cannot write"):
        write(tmp_path, page)


def test_a_scenario_outside_the_assumptions_stands_by_itself_in_short() -> None:
    """Where no start dose is safe every name is wrong: that may not be left out of the first thing that is read."""
    problem, truth = case("levels-thall")
    toxic = replace(truth, name="toxic", harm=(Table((0, 1, 2, 3, 4), (0.9,) * 5),) * 3)
    text = to_markdown(Plan(problem, [truth, toxic], [make("surefoot-levels")], [60], trials=4).parts())
    short = text.split("## In short")[1].split("##")[0]
    assert f"from the least to the most over {truth.name}:" in short
    said = short.split("toxic by itself, since it is outside the assumptions: harm is above the limit")[1]
    *_, over = next(cell for cell in said.split("\n") if cell.startswith("| 60 |")).strip("| ").split(" | ")
    assert over == "100%" and "| an arm is named | and that is wrong | all are stopped |" in said


def test_so_many_harms_at_the_first_level_pause_a_study() -> None:
    """As said, whatever the others show: here they show none of a thousand. One harm fewer does not."""
    problem, _ = case("levels-thall")
    pairs = re.findall(r"(\d+) of (\d+)", _pauses(problem))
    assert len(pairs) == 4
    for r, n in ((int(r), int(n)) for r, n in pairs):
        for harms in (r - 1, r):
            watch = Watches(problem, 0.01)
            for arm in range(3):
                watch.bands[arm][1][0] = Sums.of(1000, 0.0, 0) if arm else Sums.of(n, 0.0, harms)
            watch.touched = {0, 1, 2}
            assert [alarm.watch for alarm in watch.alarms()] == ["start"] * (harms == r)
    assert not _pauses(case("levels-gaussian")[0])


def test_one_problem_only(run: Any) -> None:  # noqa: F811
    assert "different problems" in run("plan", "levels-thall", "levels-brock", "--trials", "2").err


def test_the_decision_table_is_what_the_design_does() -> None:
    problem, _ = case("levels-thall", budget=100)
    design = make("surefoot-levels")
    head, *rows = decision_table(problem, design)
    assert head == HEAD
    assert {row[0] for row in rows} == {"1", "2", "3"}
    first = [row for row in rows if row[0] == "1"]
    assert first[0][3].startswith("0") and first[-1][3].endswith("3")  # all outcomes of three subjects
    state = design.start(problem)
    cohort = design.ask(state)
    state = design.tell(state, cohort, Outcome(cohort.n, np.floor(cohort.n / 2), np.zeros_like(cohort.n, dtype=float)))
    after = design.ask(state)
    assert first[0][4] == f"up: {after.n[0, 0]} at {after.dose[0, 0] + 1:.0f}"


def test_the_decision_table_holds_where_a_dose_meeting_would() -> None:
    """Up after no harm or one of three, never after two or three; down from the second level, not up to the third."""
    problem, _ = case("levels-thall")
    found = {(row[0], row[2], row[3]): row[4] for row in decision_table(problem, make("surefoot-levels"))[1:]}
    assert found["1", "none yet", "0 to 1"] == "up: 3 at 2"
    assert found["1", "none yet", "2 to 3"].startswith("again: 3 at 1")
    assert found["2", "0; or 1", "0 to 1"] == "again: 3 at 2"
    assert found["2", "0; or 1", "2 to 3"].startswith("down: 3 at 1")
    assert not any(then.startswith("up") and harms[-1] in "23" for (_, _, harms), then in found.items())


def test_of_a_large_cohort_the_table_says_where_the_decision_turns() -> None:
    """Of too many counts to step them all; at both sides of the turn the design does what is said."""
    problem, design = case("levels-thall")[0], make("surefoot-levels", first=500)
    head, up, again = decision_table(problem, design)
    last, begin = int(up[3].split()[-1]), int(again[3].split()[0])
    assert (up[3].split()[0], again[3].split()[-1], begin) == ("0", "500", last + 1)
    assert up[4].startswith("up: ") and again[4].startswith("again: ")
    state = design.start(problem)
    cohort = design.ask(state)
    for harms, level in ((last, 1), (begin, 0)):
        came = np.where(np.arange(cohort.n.shape[1]) == 0, float(harms), 0.0)[None]
        _, asked, _ = until_given(
            problem, design, design.tell(state, cohort, Outcome(cohort.n, np.floor(cohort.n / 2), came)), 0
        )
        assert asked.dose[0, 0] == level
    page = to_html([Part("table", rows=rows) for rows in ([head, up, again], [head])])
    assert page.count("<tr>") == 4, "a head alone is a table too"


def test_levels_by_name_are_all_in_the_picture_and_in_the_exposure() -> None:
    problem, truth = case("ramp-crashes")
    picture = curves(problem, truth)
    assert all(f">{stage}</text>" in picture for stage in ("1%", "5%", "20%", "50%", "100%"))
    assert picture.count("<circle") == 20
    assert ">0.01</text>" in picture
    two = problem.but(arms=(problem.arms[0], Arm("change B", levels=("a", "b", "c", "d", "<e>"))))
    picture = curves(two, truth)
    assert all(picture.count(f">{x}</text>") == 2 for x in ("1%", "a", "&lt;e&gt;")), "a row for each arm"
    problem, truth = case("levels-thall")
    text = to_markdown(Plan(problem, [truth], [make("boin")], [60], trials=20).parts())
    assert "## Who gets what, and what is recommended" in text
    assert "| drug A | 5 | 0.4 * | 0.9 | " in text
    assert "no rule for futility" in text and "To a name" not in text, "it names one when its subjects are spent"


@pytest.mark.parametrize("name", ["paper-linear", "binary", "dose-levels"])
def test_every_shape(name: str) -> None:
    problem, truth = case(name, 3)
    plan = Plan(problem, [truth], [make(default(problem.shape))], [40], trials=3)
    blocks = plan.parts()
    first = next(block.rows for block in blocks if block.rows and list(block.rows[0]) == HEAD)
    assert len(first) >= 2
    ET.fromstring(curves(problem, truth))
    assert "nan" not in to_markdown(blocks).replace("nan</", "")
    assert to_html(blocks).startswith("<!doctype html>")
