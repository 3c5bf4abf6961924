"""A live study with ordered levels, from the first ask to the certificate; people see the names of levels alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from typer.testing import CliRunner

from surefoot import SurefootError
from surefoot.scenario import Linear
from surefoot.study import Study, checker, terminal
from surefoot.study.cli import app
from surefoot.study.watch import Watches

from .subjects import problem, run, scenario, subjects


@pytest.mark.parametrize("seed", range(2))
def test_from_ask_to_certificate_with_a_budget_of_200(seed: int) -> None:
    p = problem("levels", binary=True, budget=200)
    study = Study.create("sqlite://", "s", p, seed=seed)
    assert study.view.design.name == "surefoot-levels"
    assert {a.dose for a in study.ask()} == {"low"}, "the first level is known to be safe"
    run(study, subjects(p, seed))
    status, said = study.status(), study.certificate().content
    assert status["ending"] in ("best-arm", "budget-spent") and status["readings"] <= 200
    assert said["concluded"]["winner"] in (None, "A")
    assert {row["dose"] for row in said["pulls"]} <= {"low", "middle", "high", "top"}
    assert "no level was assigned but the first of an arm, or one above a level" in said["covered"]
    assert "never fall from one level to the next" in " ".join(said["assumptions"])
    exposed = said["exposure"]
    assert exposed["subjects"] == status["readings"] == sum(row["pulls"] for row in said["pulls"])
    over = [row["pulls"] for row in said["pulls"] if row["seems"].startswith("above")]
    assert exposed["seem_above_limit"] == sum(over) >= exposed["seem_above_ceiling"]
    assert exposed["shown_above_limit"] <= exposed["subjects"]
    assert "seem to be above the limit" in study.certificate().to_html()
    report = study.verify(certificate=study.certificate())
    assert report["ok"], report["message"]
    alone = checker.check(study.log())
    assert alone["ok"] and "surefoot-levels/2" in alone["says"][0], alone["message"]


def test_nothing_is_said_to_be_shown_that_is_declared_and_no_start_dose_counts_as_over() -> None:
    p = problem("levels", binary=True, budget=30)
    study = Study.create("sqlite://", "s", p, seed=1)
    assert "declared safe, not shown" in study.status()["recommendation"]
    assert {a["safe_is"] for a in study.status()["arms"]} == {"declared"}
    assert {a.why for a in study.ask()} == {"cohort 1: the start dose, declared safe"}
    seen = set()
    while ask := study.ask():
        seen |= {a.why.partition(": ")[2].partition(";")[0] for a in ask if a.dose == "middle"}
        for k, a in enumerate(ask):  # one in three of the first level is harmed, nobody above it
            study.tell(a.id, 1, int(a.dose == "low" and k % 3 == 0))
    assert seen == {"one level above the start, which is declared safe"}
    said, page = study.certificate().content, study.certificate().to_html()
    assert said["exposure"]["seem_above_limit"] == 0, "harm never falls with the level"
    assert {row["seems"] for row in said["pulls"] if row["dose"] == "low"} == {"declared safe"}
    assert "Ended undecided" in page and "(declared)" in page and "? to ?" not in page
    n = next(row["pulls"] for row in said["pulls"] if row["dose"] == "middle")
    assert f"0 of {n} (0%; 0 to 0." in page


def test_ends_with_the_best_arm() -> None:
    p = problem("levels", sigma=0.2)
    study = run(Study.create("sqlite://", "s", p, seed=1), subjects(p))
    assert study.status()["winner"] == "A" and checker.check(study.log())["ok"]
    assert study.certificate().content["arms"][0]["safe_dose"] in ("low", "middle", "high")


def test_doses_are_told_and_corrected_by_the_names_of_levels() -> None:
    p = problem("levels", binary=True)
    study = Study.create("sqlite://", "s", p, seed=1)
    a, b, *_ = study.ask()
    with pytest.raises(SurefootError, match="has the levels low, middle, high, top and nothing between; got 1"):
        study.tell(a.id, 1, 0, dose=1)
    study.tell(a.id, 1, 0, dose="middle")
    with pytest.raises(SurefootError, match="dose was told as middle before; got high"):
        study.tell(a.id, 1, 0, dose="high")
    study.tell(b.id, 1, 0)
    study.correct(b.id, dose="middle", reason="the other vial")
    rows = {row["id"]: row for row in study.readings()}
    assert rows[a.id]["dose"] == rows[b.id]["dose"] == "middle" and rows[b.id]["assigned"] == "low"
    assert [d["dose"] for d in study.certificate().content["deviations"]] == ["middle", "middle"]


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal.console, "width", 200)
    p = problem("levels", binary=True)
    (tmp_path / "p.toml").write_text(p.to_toml())
    db = ["--db", str(tmp_path / "s.db")]

    def surefoot(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, *db], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    assert "at most 200 subjects" in surefoot("create", str(tmp_path / "p.toml"), "--seed", "1", "--budget", "200")
    first = json.loads(surefoot("ask", "--json"))["assignments"][0]
    assert first["dose"] == "low" and "low" in surefoot("ask", "--limit", "1")
    surefoot("tell", first["id"], "--effect", "1", "--harm", "0", "--dose", "middle")
    status = surefoot("status")
    assert "1 of 200 readings" in status and "0 of 1 (0%)" in status and "middle" in surefoot("export")
    row = json.loads(surefoot("status", "--json"))["rates"][0]
    assert (row["n"], row["effects"], row["harms"]) == (1, 1, 0)
    assert "3 at low" in surefoot("log") and "dose middle" in surefoot("log") and "stakes" not in surefoot("log")
    table = surefoot("preview")
    assert "up: 3 at middle" in table and "after the others" in table and table.count("0, 1, 2, 3 of 3") <= 6
    (tmp_path / "truth.toml").write_text(scenario(p).to_toml(p))
    soon = surefoot("forecast", str(tmp_path / "truth.toml"), "--trials", "5")
    assert "the budget ends it every time" in " ".join(soon.split())


@pytest.mark.parametrize("watch", ["pause", "warn"])
def test_no_arm_is_named_where_the_first_levels_are_unsafe(watch: Literal["pause", "warn"]) -> None:
    """Harm at the first level is 1.5 times the limit: a watch, or the last look before a name, sees it."""
    p = problem("levels", sigma=0.3)
    unsafe = replace(subjects(p), truth=replace(scenario(p), harm=(Linear(0.1, 1.5 * p.limit),) * 3))
    for seed in range(2):
        study = Study.create("sqlite://", "s", p, seed=seed, watch=watch)
        run(study, replace(unsafe, seed=seed))
        if watch == "pause":
            assert study.status()["standing"] == "paused"
            while study.view.standing == "paused":
                study.resume("we go on", actor="another")
                run(study, replace(unsafe, seed=seed))
        status, said = study.status(), study.certificate().content["concluded"]
        assert status["winner"] is None and said["winner"] is None
        assert study.view.refuted_starts and study.verify()["ok"] and checker.check(study.log())["ok"]


def test_a_doubt_before_a_name_is_an_event(monkeypatch: Any) -> None:
    """Where no watch has fired and `start` is at 1 in 20, the study says why it names nobody; a valid one names."""
    p = problem("levels", sigma=0.1)
    monkeypatch.setattr(Watches, "alarms", lambda self: iter(()))
    unsafe = replace(subjects(p), truth=replace(scenario(p), harm=(Linear(0.1, 1.05 * p.limit),) * 3))
    study = run(Study.create("sqlite://", "s", p, seed=1, watch="warn"), unsafe)
    *_, warned, ended = [e for e in study.log() if e.kind in ("warned", "ended")]
    assert warned.data["watch"] == "start"
    assert ended.data["winner"] is None and ended.data["withheld"] == [warned.data["arm"]] and study.verify()["ok"]
    assert checker.check(study.log())["ok"]
