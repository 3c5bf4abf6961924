import numpy as np
import pytest

from surefoot import SurefootError, case, make, simulate
from surefoot.designs.oracle import Oracle
from surefoot.simulate import Result
from surefoot.testing import DesignSuite


class Linear(Oracle):
    """With a shape, so that the suite knows which bank of scenarios to use."""

    shape = "linear"


class Monotonic(Oracle):
    shape = "monotonic"


def told(name: str, arms: int | None = None) -> Oracle:
    problem, scenario = case(name, arms)
    kind = Linear if problem.shape == "linear" else Monotonic
    return kind(tuple(scenario.truth(problem).dose))


class TestLinear(DesignSuite):
    design = told("paper-linear", 3)
    trials = 100
    symmetric = False  # arms are pulled in turns, ties in arm order

    def test_refuses_the_other_shape(self) -> None:
        """It takes both, if the doses are right."""

    def simulated(self, name: str) -> Result:
        return simulate(*case(name), told(name), self.trials, seed=1, progress=False)


class TestMonotonic(TestLinear):
    design = told("paper-drug", 3)


def test_it_must_be_told() -> None:
    problem = case("paper-linear", 3)[0]
    assert not Oracle().guarantee
    with pytest.raises(SurefootError, match="3 arms; got None"):
        Oracle().start(problem)
    with pytest.raises(SurefootError, match="between start and max"):
        Oracle((0.01, 1.0, 1.0)).start(problem)
    with pytest.raises(SurefootError, match="commas between"):
        make("oracle", doses="a,b")
    assert make("oracle", doses="0.5,1,0.2") == Oracle((0.5, 1.0, 0.2))


def test_an_arm_without_a_safe_dose_is_never_pulled() -> None:
    problem, scenario = case("unsafe-start", 3)
    result = simulate(problem, scenario, told("unsafe-start", 3), 20, progress=False)
    assert result.by_arm[0].sum() == 0 and not result.unsafe.any()
    assert np.all(result.winner == 1)
