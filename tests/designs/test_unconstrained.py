import numpy as np
import pytest

from surefoot import SurefootError, case, simulate
from surefoot.catalogue import CASES
from surefoot.designs.unconstrained import Unconstrained
from surefoot.simulate import Result
from surefoot.testing import DesignSuite, failures_allowed

from . import small


class Linear(Unconstrained):
    """Claims what it does not keep."""

    guarantee = True
    shape = "linear"


class Monotonic(Linear):
    shape = "monotonic"


class TestLinear(DesignSuite):
    design = Linear()
    trials = 100
    small = property(lambda self: small.linear())

    def test_refuses_the_other_shape(self) -> None:
        """It takes both."""

    def test_guarantee(self) -> None:
        """The control fails here, and exactly here."""
        with pytest.raises(AssertionError, match="does not keep its promise"):
            super().test_guarantee()

    def simulated(self, name: str) -> Result:
        problem, scenario = case(name)
        if np.any(np.isinf(problem.largest)):
            problem, scenario = case("saturated-none")
        return simulate(problem, scenario, self.design, self.trials, progress=False)


class TestMonotonic(TestLinear):
    design = Monotonic()
    small = property(lambda self: small.drug())


@pytest.mark.parametrize("name", [n for n, it in CASES.items() if it.claim and case(n)[0].shape != "levels"])
def test_its_answers_are_right_and_its_pulls_are_flagged(name: str) -> None:
    problem, scenario = case(name)
    if np.any(np.isinf(problem.largest)):
        with pytest.raises(SurefootError, match="largest dose"):
            Unconstrained().start(problem)
        return
    result = simulate(problem.but(budget=10**5), scenario, Unconstrained(), 10, progress=False)
    assert result.wrong.sum() <= failures_allowed(10, problem.delta, len(CASES))
    over = scenario.harms(problem.largest) > problem.ceiling * (1 + 1e-9)
    assert np.all(result.unsafe == over.any())
