"""Our designs as they come: evidence and our own policy on it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, case, make, simulate
from surefoot.designs.base import REFUTED, Outcome
from surefoot.designs.surefoot import SurefootLinear
from surefoot.scenario import Linear
from surefoot.simulate import Result
from surefoot.testing import DesignSuite, failures_allowed

from . import strategies
from .properties import failed, kept, no_end_without_a_pull
from .small import linear

DESIGN = SurefootLinear()


class TestConformance(DesignSuite):
    design = DESIGN
    trials = 15  # of each scenario, and judged over all of them together
    symmetric = False  # sums over arms are taken in another order
    small = property(lambda self: linear())

    def simulated(self, name: str) -> Result:
        """Where arms are a hair apart a budget ends what would go on for long."""
        return simulate(*case(name, 15 if name == "hundred-arms" else None, budget=2500), self.design, self.trials, 1)


def two(ratio: float = 0.95, **changes: Any) -> tuple[Problem, Scenario]:
    """Two arms, one of which has `ratio` times the value of the other by less effect and less harm."""
    arms = (Arm("a", 0.5, 10.0), Arm("b", 0.5, 10.0))
    problem = Problem(arms, 1.0, "linear", Noise("gaussian", 0.5), delta=0.1)
    return problem.but(**changes), Scenario((Linear(1.0), Linear(0.8 * ratio)), (Linear(1.0), Linear(0.8)))


@settings(max_examples=15, deadline=None)
@given(strategies.linear(), st.integers(0, 2**32))
def test_ends_whatever_comes_back(made: strategies.Case, seed: int) -> None:
    problem = made[0].but(budget=min(made[0].budget, 1000))
    no_end_without_a_pull(DESIGN, problem, seed, most=1001)


def test_is_made_again_from_its_options() -> None:
    design = make("surefoot-linear", growth="0.2", cohort=4)
    assert design.options == {"growth": 0.2, "cohort": 4, "first": 4}
    assert make(design.name, **design.options) == design


@pytest.mark.parametrize("signals", ["independent", "any"])
def test_two_arms_of_nearly_equal_value(signals: str) -> None:
    """Where being wrong is easiest; a budget ends those that would go on for long."""
    near = [simulate(*two(ratio, budget=1500, signals=signals), DESIGN, 150, seed=3) for ratio in (0.999, 0.97)]
    kept(near, 0.1, 10)
    close = simulate(*two(0.8, signals=signals), DESIGN, 60, seed=5)
    assert np.all(close.winner >= 0), "and these do end"


@pytest.mark.parametrize("largest", [10.0, 0.8])
def test_any_dependence_of_the_readings(largest: float) -> None:
    """Readings tied to each other, in either way, at values near each other, saturated and not."""
    problem, scenario = two(0.97, budget=2500)
    problem = problem.but(arms=tuple(Arm(arm.name, arm.start, largest) for arm in problem.arms))
    tied = (Scenario(scenario.effect, scenario.harm, correlation=x) for x in (-1.0, 1.0))
    kept([simulate(problem, truth, DESIGN, 150, seed=6) for truth in tied], 0.1, 10)


@pytest.mark.parametrize("options", [{"growth": 0.0}, {"growth": 0.0, "cohort": 3}, {"growth": 1.0}, {"first": 1}])
def test_cohorts(options: dict[str, Any]) -> None:
    problem, scenario = two(0.4, noise=Noise("gaussian", 0.2))
    result = simulate(problem, scenario, make("surefoot-linear", **options), 60, seed=7)
    assert failed(result) <= failures_allowed(60, 0.1, 10)
    assert np.all(result.winner >= 0)


def test_a_tolerance_only_ever_helps() -> None:
    problem, scenario = two(0.97)
    pulls = []
    for tolerance in (None, 0.01, 0.3):
        result = simulate(problem.but(tolerance=tolerance, budget=10**6), scenario, DESIGN, 30, seed=8)
        assert failed(result) <= failures_allowed(30, 0.1, 10) and np.all(result.winner >= 0)
        pulls.append(result.pulls.mean())
    assert max(pulls[1:]) < 1.15 * pulls[0] and pulls[2] < 0.5 * pulls[0]


def test_equal_arms_end_with_a_tolerance() -> None:
    problem, scenario = case("equal-arms", budget=10**6)
    result = simulate(problem, scenario, DESIGN, 20, seed=9)
    assert np.all(result.winner >= 0), "arms that cannot be told apart are within the tolerance of each other"


def test_refine_knows_the_winners_dose() -> None:
    problem, scenario = two(0.5)
    width = 0.05
    plain, refined = (simulate(problem.but(refine=r), scenario, DESIGN, 60, seed=10) for r in (None, width))
    assert failed(refined) <= failures_allowed(60, 0.1, 10)
    assert refined.pulls.mean() > plain.pulls.mean()
    assert np.mean((refined.safe <= 1.0) & (refined.safe >= 1.0 - width)) >= 0.8
    both = np.log([30 / 0.3, 30 / 0.05])  # what the two bounds need, had each one bet of the right size
    ideal = (0.5 / width * np.sqrt(2 * both).sum()) ** 2
    assert refined.pulls.mean() < 2.5 * ideal


def test_an_arm_whose_first_pulls_are_lost_is_judged_as_the_others() -> None:
    problem, scenario = two(0.5)
    rng = np.random.default_rng(13)
    state, first = DESIGN.start(problem, 10), True
    while np.any(state.ending == 0) and state.pulls.max() < 100_000:
        cohort = DESIGN.ask(state)
        n = np.where(first, np.array([1, 0]), 1) * cohort.n
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, n, state.pulls)
        state, first = DESIGN.tell(state, replace(cohort, n=n), Outcome(n, effect, harm)), False
    assert np.all(state.standing[:, 1] == REFUTED)


def binary(ratio: float, limit: float, **changes: Any) -> tuple[Problem, Scenario]:
    """Two arms with binary readings; the second has `ratio` times the value of the first."""
    arms = tuple(Arm(name, 0.1, 1.0) for name in "ab")
    problem = Problem(arms, limit, "linear", Noise("bernoulli"), delta=0.1)
    return problem.but(**changes), Scenario((Linear(0.9), Linear(0.9 * ratio)), (Linear(limit), Linear(limit * 1.2)))


def test_binary_readings() -> None:
    """Values near each other, harms from rare to frequent; a budget ends those that would go on for long."""
    results = []
    for limit, correlation in ((0.02, 0.0), (0.02, 1.0), (0.3, -1.0), (0.3, 1.0), (0.6, 0.0)):
        problem, scenario = binary(1.1, limit, budget=4000, signals="any" if correlation else "independent")
        tied = Scenario(scenario.effect, scenario.harm, correlation=correlation)
        results.append(simulate(problem, tied, DESIGN, 70, seed=20))
    kept(results, 0.1, 20)


@pytest.mark.parametrize("which", [0, 1])
def test_binary_readings_take_fewer_pulls_than_a_sigma_of_one_half(which: int) -> None:
    """Harms, and effects of a few per cent."""
    problem, scenario = case("low-rates", budget=10**7) if which == 0 else binary(0.5, 0.1)
    sigma, binary_noise = Noise("gaussian", 0.5), problem.noises
    untold_noise = tuple(sigma if i == which else x for i, x in enumerate(binary_noise))
    told, untold = (
        simulate(problem.but(noise=noise), Scenario(scenario.effect, scenario.harm, noise=binary_noise), DESIGN, 20, 21)
        for noise in (binary_noise, untold_noise)
    )
    assert np.all(told.winner >= 0) and told.pulls.mean() < 0.8 * untold.pulls.mean()


LEVELS = (0.25, 0.5, 1.0)


def stepped(theta: float, mu: float = 1.2, **changes: Any) -> tuple[Problem, Scenario]:
    """Two arms with levels: one of value 1 at its last level, one of theta / 2, as its last level is not safe."""
    arms = tuple(Arm(name, 0.25, levels=LEVELS) for name in "ab")
    problem = Problem(arms, 1.0, "linear", Noise("gaussian", 0.5), delta=0.1)
    return problem.but(**changes), Scenario((Linear(1.0), Linear(theta)), (Linear(0.8), Linear(mu)))


@pytest.mark.parametrize("signals", ["independent", "any"])
def test_levels_are_what_a_value_is_judged_by(signals: str) -> None:
    """Between its levels the rival would be as good as the winner; it cannot be given there."""
    problem, scenario = stepped(1.5, signals=signals, budget=100_000)
    assert list(scenario.truth(problem).value) == [1.0, 0.75] and 1.5 / 1.2 == 1.0 / 0.8
    result = simulate(problem, scenario, DESIGN, 50, seed=17, trace=True)
    assert failed(result) <= failures_allowed(50, 0.1, 10)
    assert np.all(result.winner >= 0) and result.pulls.mean() < 3000
    assert result.trace is not None
    unsafe = result.trace.verdict.unsafe
    assert np.isin(unsafe, LEVELS).all() and np.mean(unsafe[:, 1] == 0.5) > 0.9


def test_levels_of_nearly_equal_value() -> None:
    """Where being wrong is easiest: by levels next to the limit, on either side, and by effects."""
    results, both = [], ("independent", "any")
    near = (1.98, 1.05, None, "independent"), (1.98, 1.98, 0.005, "any"), *((0.98, 1.0, None, x) for x in both)
    for k, (theta, mu, tolerance, signals) in enumerate(near):
        problem, scenario = stepped(theta, mu, signals=signals, budget=1000, tolerance=tolerance)
        results.append(simulate(problem, scenario, DESIGN, 70, seed=18 + k))
    kept(results, 0.1, 20)


def test_levels_and_doses_side_by_side() -> None:
    """One arm with levels, one without, with a tolerance and a dose to be found."""
    problem, scenario = stepped(1.5, refine=0.1, tolerance=0.1, budget=100_000)
    mixed = problem.but(arms=(problem.arms[0], Arm("b", 0.25, 3.0)))
    result = simulate(mixed, Scenario(scenario.effect, (Linear(0.8), Linear(2.0))), DESIGN, 60, seed=19)
    assert failed(result) <= failures_allowed(60, 0.1, 10) and np.all(result.winner >= 0)
