from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from surefoot import SurefootError, case, make
from surefoot.demo import tell
from surefoot.study import Study, simulated
from surefoot.study.demo import play

from .subjects import problem, scenario


def test_a_whole_study_with_simulated_subjects(tmp_path: Path) -> None:
    p = problem()
    truth = scenario(p)
    for name in ("safebai-linear", "surefoot-linear"):  # one that is there already is replaced
        study = play(tmp_path / "demo.db", p, truth, make(name), seed=3)
    assert study.view.ended and Study.open(tmp_path / "demo.db").verify()["ok"]
    out = io.StringIO()
    tell(Console(file=out, width=150), study, truth)
    assert "Verdict: best-arm" in out.getvalue() and "in truth" in out.getvalue()


def test_a_study_that_is_no_demonstration_is_left_alone(tmp_path: Path) -> None:
    p = problem()
    Study.create(tmp_path / "real.db", "demo", p, actor="ann")
    Study.create(tmp_path / "two.db", "demo", p, actor="demo")
    Study.create(tmp_path / "two.db", "real", p, actor="demo")
    (tmp_path / "empty.db").touch()
    for name in ("real", "two", "empty"):
        file = tmp_path / f"{name}.db"
        before = Study.open(file, "demo").log() if name != "empty" else None
        with pytest.raises(SurefootError, match="not an earlier demo"):
            play(file, p, scenario(p), make("surefoot-linear"), seed=3)
        assert before is None or Study.open(file, "demo").log() == before


def test_simulated_subjects_read_as_the_scenario_says() -> None:
    p, truth = case("paper-drug", 3)
    study = Study.create("sqlite://", "s", p, "safebai-monotonic", seed=1, watch="warn")
    assert simulated(p, truth, [], 1) == []
    study.tell_many(simulated(p, truth, study.ask(), 1))
    asked = study.ask() * 400
    rows = simulated(p, truth, asked, 2)
    for i, name in enumerate(p.names):
        own = [k for k, a in enumerate(asked) if a.arm == name]
        mean = np.mean([rows[k]["effect"] for k in own])
        at = np.tile(next(a.dose for a in asked if a.arm == name), (1, 3))
        assert abs(mean - truth.effects(at)[0, i]) < 5 * p.sigma / np.sqrt(len(own))
