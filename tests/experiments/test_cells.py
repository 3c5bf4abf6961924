from dataclasses import replace

import numpy as np
import pytest

from surefoot import SurefootError, case, simulate
from surefoot.designs.oracle import Oracle
from surefoot.designs.safeopt import SafeOpt
from surefoot.experiments.cells import AXIS, Cell, Ran, design_for, settings
from surefoot.plots import axis_of, regret_data
from surefoot.simulate import simulate_all

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
    cell = replace(CELL, design=spec, trials=6, seed=3, cap=400 if "safeopt" in spec else 100_000)
    (one,) = simulate_all([cell.run()], progress=False)
    two = simulate(*cell.setup(), 6, 3, progress=False, trace=True)
    np.testing.assert_array_equal(one.pulls, two.pulls)
    np.testing.assert_array_equal(one.winner, two.winner)
    np.testing.assert_allclose(one.regret.mean(axis=0), regret_data(two, axis_of(AXIS)).mean, atol=1e-12)


def test_parts_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.designs.linear.SafeBAILinear.chunk", 3)
    cell = replace(CELL, trials=7)
    ran = Ran.of(cell, simulate_all([cell.run()], progress=False)[0])
    assert ran.regret.shape == (7, len(ran.at)) and not np.isnan(ran.regret).any()


def test_the_best_arm_stands_last() -> None:
    problem, scenario, _ = CELL.setup()
    assert scenario.truth(problem).best == 2 and problem.names[-1] == "arm 1"
