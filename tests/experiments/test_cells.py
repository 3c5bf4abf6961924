import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surefoot import SurefootError, case, simulate
from surefoot.designs.oracle import Oracle
from surefoot.designs.safeopt import SafeOpt
from surefoot.experiments.cells import Cell, Watched, design_for, kept, run, settings
from surefoot.plots import axis_of, regret_data

CELL = Cell("paper-linear", 3, "safebai-linear", 4, 1, 0.1, None, 100_000)


def test_a_design_from_its_spec() -> None:
    drug, linear = case("paper-drug", 3), case("paper-linear", 3)
    assert design_for("safeopt:expanders=lipschitz:grid=30", *drug) == SafeOpt(expanders="lipschitz", grid=30, top=-0.5)
    assert design_for("safeopt:top=-1", *drug) == SafeOpt(top=-1.0)
    assert design_for("safeopt", *linear) == SafeOpt()
    assert design_for("oracle", *linear) == Oracle(tuple(linear[1].truth(linear[0]).dose))
    assert settings("safebai-linear", *linear) == {}
    with pytest.raises(SurefootError, match="NAME:KEY=VALUE"):
        design_for("safeopt:lipschitz", *drug)


@pytest.mark.parametrize("spec", ["safebai-linear", "oracle", "safeopt:s_harm=1"])
def test_watching_changes_nothing_and_notes_the_regret_of_the_trace(spec: str) -> None:
    """The same as the regret from a full trace, for designs with stages and with single pulls."""
    problem, scenario, design = replace(CELL, design=spec, cap=400 if "safeopt" in spec else 100_000).setup()
    at = axis_of(100_000)
    watched = Watched(design, problem, scenario, at, lambda pulls, left: None)
    one = simulate(problem, scenario, watched, 6, 3, progress=False)
    two = simulate(problem, scenario, design, 6, 3, progress=False, trace=True)
    np.testing.assert_array_equal(one.pulls, two.pulls)
    np.testing.assert_array_equal(one.winner, two.winner)
    np.testing.assert_allclose(watched.regret(6).mean(axis=0), regret_data(two, at).mean, atol=1e-12)


def test_chunks_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.designs.linear.SafeBAILinear.chunk", 3)
    ran = run(replace(CELL, trials=7))
    assert ran.regret.shape == (7, len(ran.at)) and not np.isnan(ran.regret).any()


def test_a_cell_comes_back_as_it_was(tmp_path: Path) -> None:
    assert kept(CELL, tmp_path) is None
    ran = run(CELL)
    ran.save(tmp_path)
    back = kept(CELL, tmp_path)
    assert back is not None and back.cell == CELL and back.seconds == ran.seconds
    for key in ("pulls", "wrong", "unsafe", "capped", "regret"):
        np.testing.assert_array_equal(getattr(back, key), getattr(ran, key))
    assert [path.name for path in tmp_path.iterdir()] == [CELL.file]


def test_any_other_setting_is_another_cell() -> None:
    changes = [{"arms": 4}, {"trials": 5}, {"seed": 2}, {"delta": 0.2}, {"cap": 7}, {"design": "oracle"}]
    files = {replace(CELL, **change).file for change in changes} | {CELL.file}  # type: ignore[arg-type]
    assert len(files) == len(changes) + 1


@pytest.mark.parametrize("damage", ["cut", "empty", "short", "other"])
def test_a_damaged_cell_is_not_used(damage: str, tmp_path: Path) -> None:
    run(CELL).save(tmp_path)
    path = tmp_path / CELL.file
    text = path.read_text()
    data = json.loads(text)
    if damage == "short":
        data["pulls"].pop()
    elif damage == "other":
        data["cell"]["seed"] = 99
    path.write_text({"cut": text[:200], "empty": ""}.get(damage, json.dumps(data)))
    with pytest.warns(UserWarning, match="damaged .*running it again"):
        assert kept(CELL, tmp_path) is None


def test_the_best_arm_stands_last() -> None:
    problem, scenario, _ = CELL.setup()
    assert scenario.truth(problem).best == 2 and problem.names[-1] == "arm 1"
