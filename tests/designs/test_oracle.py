import numpy as np
import pytest

from benchmarks.track import instance
from surefoot import SurefootError, case, make, simulate
from surefoot.designs.oracle import Oracle
from surefoot.simulate import Result
from surefoot.testing import DesignSuite, failures_allowed

from . import small


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
    trials = 12  # of each scenario, and judged over all of them together
    symmetric = False  # arms are pulled in turns, ties in arm order
    small = property(lambda self: small.linear())

    def test_refuses_the_other_shape(self) -> None:
        """It takes both, if the doses are right."""

    def simulated(self, name: str) -> Result:
        arms = 15 if name == "hundred-arms" else None
        return simulate(*case(name, arms, budget=400), told(name, arms), self.trials, seed=1, progress=False)


class TestMonotonic(TestLinear):
    design = told("paper-drug", 3)
    small = property(lambda self: small.drug())


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


@pytest.mark.parametrize("name", ["paper-linear", "binary"])
def test_no_design_of_ours_needs_fewer_pulls(name: str) -> None:
    problem, scenario = case(name, 3)
    ours = simulate(problem, scenario, make(f"surefoot-{problem.shape}"), 10, progress=False)
    ran = simulate(problem, scenario, told(name, 3), 25, progress=False)
    assert ran.pulls.mean() < ours.pulls.mean()


def test_low_rates_are_told_apart_by_likelihood_ratios() -> None:
    """Effects of 5, 4, 3.5 and 3%: with sigma 1/2 it took 323,663 pulls."""
    problem, scenario = instance((0.05, 0.04, 0.035, 0.03), "monotonic")
    ran = simulate(problem, scenario, make("oracle", doses=(1.0,) * 4), 15, progress=False)
    assert ran.pulls.mean() < 40_000 and ran.wrong.sum() <= failures_allowed(15, problem.delta)


def test_an_arm_without_a_safe_dose_is_never_pulled() -> None:
    problem, scenario = case("unsafe-start", 3)
    result = simulate(problem, scenario, told("unsafe-start", 3), 20, progress=False)
    assert result.by_arm[0].sum() == 0 and not result.unsafe.any()
    assert np.all(result.winner == 1)
