import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, case, simulate
from surefoot.designs.base import STOPPED, Cohort, Outcome
from surefoot.designs.surefoot_monotonic import (
    CALM,
    GOOD,
    HIGH,
    OVER,
    RUNGS,
    STOP,
    VERDICT,
    SurefootMonotonic,
    first_false,
    regrid,
    rungs,
    share,
)
from surefoot.scenario import Linear, Table
from surefoot.simulate import Result
from surefoot.testing import DesignSuite, failures_allowed, play

DESIGN = SurefootMonotonic()


class TestConformance(DesignSuite):
    design = DESIGN
    trials = 120
    symmetric = False  # ties go to the first arm

    def simulated(self, name: str) -> Result:
        budget = 300_000 if name == "effect-jump" else 10**9  # it takes long
        return simulate(*case(name, budget=budget), self.design, self.trials, seed=1)


def two(gap: float = 0.2, slope: float = 0.5, **changes: Any) -> tuple[Problem, Scenario]:
    """Two arms with harm = dose and a limit of 1/2, and effects that rise by `slope` and differ by `gap`."""
    arms = (Arm("a", 0.0, 1.0), Arm("b", 0.0, 1.0))
    problem = Problem(arms, 0.5, "monotonic", Noise("gaussian", 0.2), slack=0.2, delta=0.1)
    return problem.but(**changes), Scenario((Linear(slope, gap), Linear(slope)), (Linear(1.0), Linear(1.0)))


def failed(result: Result) -> int:
    return int((result.wrong | result.unsafe).sum())


def test_the_shares_of_delta() -> None:
    assert math.isclose(CALM + GOOD + OVER + VERDICT + STOP, 1.0)
    many = replace(DESIGN.start(two()[0], 10_000), moves=np.arange(10_000)[:, None])
    assert 0.999 < np.exp(share(many)).sum() <= 1, "what the places to stay pay"


def test_rungs_are_certified_in_order() -> None:
    for certain, count in (([0, 0, 1, 1], 0), ([1, 0, 1, 1], 1), ([1, 1, 1, 0], 3), ([1, 1, 1, 1], 4)):
        assert first_false(np.array([certain], bool))[0] == count


@given(st.integers(0, 2**32 - 1), st.floats(0, 1.2), st.integers(0, RUNGS), st.floats(-12, 3))
def test_new_rungs_are_never_richer_than_the_old(seed: int, edge: float, passed: int, need: float) -> None:
    """Above any dose where harm becomes too high, the lowest rung has at most the wealth that the lowest one had."""
    rng = np.random.default_rng(seed)
    base, step, top = np.zeros((1, 1)), np.full((1, 1), rng.uniform(0.001, 0.05)), np.ones((1, 1))
    wealth = rng.normal(size=(1, 1, RUNGS))
    before = rungs(base, step, top)
    up = np.minimum(base + passed * step, 1.0) if passed < RUNGS else top
    assume(edge >= up[0, 0])  # what was passed is certain
    after, finer = regrid(wealth, step, np.array([[passed]]), np.array([[10.0**need]]))
    now = rungs(up, finer, top)
    lowest = [w[x > edge][0] if np.any(x > edge) else 0.0 for w, x in ((wealth, before), (after, now))]
    assert lowest[1] <= lowest[0]


@pytest.mark.parametrize("name", ["paper-drug", "effect-jump", "lipschitz-tight", "binary", "dose-levels"])
def test_every_pull_is_at_a_certified_dose(name: str) -> None:
    """And what is certified never contradicts itself, however far the play has come."""
    problem, scenario = case(name, budget=100_000)
    for state, cohort, _, after in play(DESIGN, problem, scenario, trials=10):
        assert np.all((cohort.n == 0) | (cohort.dose <= np.maximum(state.base[..., HIGH], state.safe)))
        assert np.all(after.base >= state.base) and np.all(after.safe >= state.safe)
        assert np.all(after.unsafe <= state.unsafe)
        assert np.all((after.moves >= state.moves) & ((after.moves == state.moves) | (after.bet_v == 0)))


def test_no_uncertified_dose_is_asked_for_whatever_was_given() -> None:
    """Somebody gave more than was asked for, on the ladder and off it: a harm seen there is no reason to go there."""
    problem, scenario = two()
    rng = np.random.default_rng(1)
    n = np.full((20, 2), 200)
    for high in (0.9, 0.905):
        state = DESIGN.start(problem, 20)
        for k in range(12):
            asked = DESIGN.ask(state)
            assert np.all((asked.n == 0) | (asked.dose <= np.maximum(state.base[..., HIGH], state.safe)))
            dose = np.full_like(asked.dose, high if k else 0.0)
            effect, harm, _ = scenario.draw(rng, problem, dose, n, state.pulls)
            state = DESIGN.tell(state, Cohort(dose, n), Outcome(n, effect, harm))


@pytest.mark.parametrize("slope", [0.0, 0.5, 2.0])
def test_two_arms_of_nearly_equal_value(slope: float) -> None:
    """Where being wrong is easiest; a budget ends those that would go on for long."""
    result = simulate(*two(0.002, slope, budget=20_000), DESIGN, 400, seed=3)
    assert failed(result) <= failures_allowed(400, 0.1, 10)


def test_an_effect_that_jumps_above_the_limit() -> None:
    """Pulls of the better arm above the limit look bad for no reason that counts, and of the worse one good."""
    jump = Table((0.0, 0.5, 0.52, 1.0), (0.0, 0.3, 1.0, 1.0))
    flat = Table((0.0, 1.0), (0.35, 0.35))
    problem, scenario = two(budget=30_000)
    result = simulate(problem, Scenario((jump, flat), scenario.harm), DESIGN, 300, seed=4)
    assert failed(result) <= failures_allowed(300, 0.1, 10)


@pytest.mark.parametrize("correlation", [-1.0, 1.0])
def test_any_dependence_of_the_readings(correlation: float) -> None:
    problem, scenario = two(0.02, budget=20_000)
    tied = Scenario(scenario.effect, scenario.harm, correlation=correlation)
    result = simulate(problem, tied, DESIGN, 300, seed=5)
    assert failed(result) <= failures_allowed(300, 0.1, 10)


@pytest.mark.parametrize("options", [{"growth": 0.0}, {"growth": 0.0, "cohort": 3}, {"growth": 1.0}, {"first": 1}])
def test_cohorts(options: dict[str, Any]) -> None:
    problem, scenario = two(0.5, noise=Noise("gaussian", 0.05))
    result = simulate(problem, scenario, SurefootMonotonic(**options), 40, seed=6)
    assert failed(result) <= failures_allowed(40, 0.1, 10)
    assert np.all(result.winner >= 0)


def test_tolerance() -> None:
    problem, scenario = two(0.1, 0.1)
    result = simulate(problem.but(tolerance=0.3), scenario, DESIGN, 100, seed=7)
    assert failed(result) <= failures_allowed(100, 0.1, 10)
    assert np.all(result.winner >= 0)
    assert result.pulls.mean() < simulate(problem, scenario, DESIGN, 100, seed=7).pulls.mean()


@pytest.mark.parametrize("width", [0.1, 0.02])
def test_refine_knows_the_winners_dose(width: float) -> None:
    problem, scenario = two(0.3)
    result = simulate(problem.but(refine=width, budget=10**6), scenario, DESIGN, 40, seed=8)
    assert failed(result) <= failures_allowed(40, 0.1, 10)
    assert np.all(result.pulls < 900_000), "it ends for it knows, not because of the budget"
    assert np.mean((result.safe <= 0.5) & (result.safe >= 0.5 - width)) >= 0.8


def test_a_start_dose_above_the_limit_is_stopped() -> None:
    problem, scenario = two(0.3)
    hot = Scenario(scenario.effect, (Linear(0.1, 0.65), scenario.harm[1]))
    result = simulate(problem, hot, DESIGN, 40, seed=9, trace=True)
    assert np.mean(result.winner == 1) >= 0.8
    assert result.trace is not None
    stopped = np.flatnonzero(result.trace.verdict.standing[:, 0] == STOPPED)
    assert len(stopped) >= 35
    assert np.all(result.trace.verdict.out_lower[stopped, 0] <= 0.5001), "no more is shown than: above the limit"
    n, state = np.full((1, 2), 100), DESIGN.start(problem)
    for _ in range(4):
        state = DESIGN.tell(state, Cohort(np.zeros((1, 2)), n), Outcome(n, 0.0 * n, 0.9 * n))
    assert DESIGN.verdict(state).endings() == ["all-stopped"] and state.winner[0] == -1


def test_an_arm_that_was_stopped_is_never_named() -> None:
    """Though the other has not been pulled yet."""
    problem, _ = two()
    n, state = np.array([[100, 0]]), DESIGN.start(problem)
    for _ in range(4):
        state = DESIGN.tell(state, Cohort(np.zeros((1, 2)), n), Outcome(n, 0.0 * n, 0.9 * n))
    assert state.standing[0, 0] == STOPPED and state.winner[0] != 0


def test_a_dose_that_was_not_given_may_be_anything() -> None:
    problem, _ = two()
    n, state = np.array([[5, 0]]), DESIGN.start(problem)
    one, other = (
        DESIGN.tell(state, Cohort(np.array([[0.0, x]]), n), Outcome(n, 0.1 * n, 0.1 * n)) for x in (0.0, math.nan)
    )
    for name in ("wealth", "base", "over", "alarm"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_limit_above_every_binary_harm() -> None:
    """limit + slack above 1: no dose can be above it, and none is held back."""
    arms = (Arm("a", 0.0, 1.0), Arm("b", 0.0, 1.0))
    problem = Problem(arms, 0.85, "monotonic", Noise("bernoulli"), slack=0.2, delta=0.1, budget=200_000)
    scenario = Scenario((Linear(0.9), Linear(0.3)), (Linear(0.9, 0.05), Linear(0.9, 0.05)))
    assert np.all(simulate(problem, scenario, DESIGN, 20, seed=11).winner == 0)


def test_effects_as_steep_as_harm() -> None:
    """To tell the arms apart, both have to come within a hundredth of their largest safe doses."""
    problem, scenario = two(0.01, 1.0, noise=Noise("gaussian", 0.02), budget=2_000_000, limit=0.508)
    result = simulate(problem, scenario, DESIGN, 10, seed=12)
    assert failed(result) <= failures_allowed(10, 0.1, 10)
    assert np.all(result.winner >= 0)


def test_intervals_hold_together() -> None:
    problem, scenario = two(0.2, budget=20_000)
    truth = scenario.truth(problem).value
    bad = np.zeros(100, bool)
    for *_, after in play(DESIGN, problem, scenario, trials=100, seed=13):
        v = DESIGN.verdict(after)
        bad |= ((v.lower > truth) | (v.upper < truth)).any(axis=1)
        effect = scenario.effects(v.safe)
        bad |= ((v.effect_lower > effect) | (v.effect_upper < effect)).any(axis=1)
    assert bad.sum() <= failures_allowed(100, 0.1, 10)


def test_an_arm_with_one_dose_only() -> None:
    arms = (Arm("a", 1.0, 1.0), Arm("b", 0.0, 2.0))
    problem = Problem(arms, 0.5, "monotonic", Noise("gaussian", 0.1), slack=0.2, delta=0.1)
    scenario = Scenario((Linear(0.1, 0.9), Linear(0.1)), (Linear(0.2), Linear(0.3)))
    assert np.all(simulate(problem, scenario, DESIGN, 10, seed=14).winner == 0)
