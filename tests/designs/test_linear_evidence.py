"""The theorem, for any policy: what is concluded from readings, whoever chose them and however they were staked."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, case, simulate
from surefoot.designs.base import ACTIVE, REFUTED, STOPPED, Cohort, Outcome
from surefoot.designs.compose import Policy
from surefoot.designs.linear_bars import sigmas
from surefoot.designs.linear_evidence import CAP, LinearEvidence, claimed, second
from surefoot.designs.linear_wealth import SHARED, wealth
from surefoot.designs.surefoot import SurefootLinear
from surefoot.scenario import Linear
from surefoot.simulate import Result
from surefoot.testing import DesignSuite, failures_allowed, play

from . import strategies
from .policies import Anyhow, Hostile, OnlyArmThree
from .properties import bounds_hold, kept
from .small import easy

DESIGN = SurefootLinear()
POLICIES = [Anyhow(), Hostile(), OnlyArmThree()]


class TestAnyPolicyConforms(DesignSuite):
    """A random policy on our evidence keeps the promise of a design, and the protocol."""

    design = SurefootLinear(Anyhow())
    trials = 20  # of each scenario, and judged over all of them together
    symmetric = False
    small = property(lambda self: easy())

    def simulated(self, name: str) -> Result:
        arms = 8 if name == "hundred-arms" else None
        return simulate(*case(name, arms, budget=250), self.design, self.trials, seed=1)


def close(gap: float, **changes: Any) -> tuple[Problem, Scenario]:
    """Three arms whose values are next to each other, the best one last, by different slopes; start doses far below the
    largest safe ones."""
    arms = tuple(Arm(name, 0.3, largest) for name, largest in (("a", 10.0), ("b", 0.9), ("c", 10.0)))
    problem = Problem(arms, 1.0, "linear", Noise("gaussian", 0.3), **changes)
    theta = ((1 - gap) * 0.8, (1 - gap) / 0.9, 1.0)
    return problem, Scenario(tuple(map(Linear, theta)), (Linear(0.8), Linear(0.5), Linear(1.0)))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
def test_safe_and_right_under_any_policy(policy: Policy[Any]) -> None:
    """At a delta at which a broken proof would show; with and without a tolerance."""
    results = []
    for k, (signals, tolerance) in enumerate(product(["independent", "any"], [None, 0.02])):
        problem, scenario = close(0.04, delta=0.5, signals=signals, tolerance=tolerance, budget=600)
        results.append(simulate(problem, scenario, SurefootLinear(policy), 80, seed=5 + k))
    kept(results, 0.5, 15)


@pytest.mark.parametrize("kind", ["levels", "binary"])
def test_levels_and_binary_readings_under_any_policy(kind: str) -> None:
    if kind == "levels":
        arms = tuple(Arm(name, 0.25, levels=(0.25, 0.5, 1.0)) for name in "abc")
        problem = Problem(arms, 1.0, "linear", Noise("gaussian", 0.3), delta=0.5, budget=600)
        scenario = Scenario((Linear(1.9), Linear(0.95), Linear(1.0)), (Linear(1.1), Linear(0.95), Linear(0.9)))
    else:
        arms = tuple(Arm(name, 0.3, 1.0) for name in "abc")
        problem = Problem(arms, 0.2, "linear", Noise("bernoulli"), delta=0.5, budget=800)
        scenario = Scenario((Linear(0.4), Linear(0.19), Linear(0.2)), (Linear(0.42), Linear(0.1), Linear(0.19)))
    designs = [DESIGN, *map(SurefootLinear, POLICIES)]
    kept([simulate(problem, scenario, design, 80, seed=6 + k) for k, design in enumerate(designs)], 0.5, 10)


@pytest.mark.parametrize("policy", [None, *POLICIES], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("kind", ["cone", "cap", "binary"])
def test_the_wealth_against_a_true_claim_is_that_of_a_fair_game(policy: Policy[Any] | None, kind: str) -> None:
    """Lemma 5 by itself: at the true bar it doubles in no more than half of the trials, at any time."""
    largest, noise = (0.8, Noise("bernoulli")) if kind == "binary" else (0.8 if kind == "cap" else 9.0, None)
    arms = tuple(Arm(name, 0.5, largest) for name in "abc")
    problem = Problem(arms, 0.3, "linear", noise or Noise("gaussian", 0.3), delta=0.01, signals="independent")
    slope = (0.3, 0.3, 0.3) if kind == "cap" else (0.3, 0.4, 0.5)
    scenario = Scenario(tuple(Linear(0.9 * mu) for mu in slope), tuple(Linear(mu) for mu in slope))
    best = int(np.argmax(scenario.truth(problem).value))
    t = scenario.truth(problem).value[best] * sigmas(problem)[1] / (problem.limit * sigmas(problem)[0])
    design, trials = SurefootLinear() if policy is None else SurefootLinear(policy), 400
    others = np.tile([[i] for i in range(3) if i != best], trials)
    row, arm, u = np.arange(trials), np.full(trials, best), np.full((1, trials), t / (1 + t))
    rng, state, most = np.random.default_rng(3), design.start(problem, trials), np.zeros(trials)
    for _ in range(60):
        cohort = design.ask(state, rng.random((trials, design.draws)))
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
        state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
        log = wealth(problem, claimed(state, row, arm, others), u, u)
        most = np.maximum(most, log[0])
    assert np.sum(most >= math.log(2)) <= failures_allowed(trials, 0.5, 12)


@settings(max_examples=8, deadline=None)
@given(strategies.linear(honest=True), st.integers(0, 2**32), st.sampled_from([DESIGN, SurefootLinear(Anyhow())]))
def test_bounds_hold(made: strategies.Case, seed: int, design: SurefootLinear) -> None:
    problem, scenario = made
    bounds_hold(design, problem.but(budget=500), scenario, seed)


def test_the_shares_of_delta() -> None:
    """One delta covers all, and so it does the intervals with the doses."""
    evidence = LinearEvidence()
    assert math.isclose(sum(evidence.shares.values()), 1.0) and evidence.intervals_share(close(0.1)[0]) == 1.0
    assert 0 < CAP < 1 and 0 < SHARED < 1


def test_stakes_have_names() -> None:
    problem, _ = close(0.1)
    names = LinearEvidence().stakes(problem)
    assert names == ("own", "led", "against a", "against b", "against c")
    assert DESIGN.ask(DESIGN.start(problem, 2)).stakes.shape == (2, 3, 5)


def test_what_is_not_staked_is_not_bet() -> None:
    """Nor what is given above the certified dose, nor a stake that is none; doses are certified all the same."""
    problem, _ = close(0.1)
    n, start = np.full((1, 3), 50), DESIGN.start(problem)
    stakes = np.full((1, 3, 5), 0.5)
    stakes[0, 2] = (np.nan, -1.0, np.inf, 0.0, np.nan)
    cohort = Cohort(np.array([[0.3, 0.8, 0.3]]), n, stakes)
    for it in (cohort, replace(cohort, stakes=None)):
        state = DESIGN.tell(start, it, Outcome(n, 0.2 * n, 0.1 * n))
        for bets in (state.own, state.led, state.own_shared, state.led_shared):
            assert np.all((bets.v[0] > 0).reshape(3, -1) == [[it is cohort], [False], [False]])
        assert np.all(state.data.v > 0) and np.all(state.safe > 0.3)
    assert DESIGN.verdict(state).lower[0, 1] == -math.inf


def test_shared_stakes_against_others_need_a_led_one() -> None:
    """Else an arm whose shared bets have won could be counted among those that led once they have."""
    problem, _ = close(0.1)
    n, stakes = np.full((1, 3), 50), np.full((1, 3, 5), 0.5)
    stakes[0, 0, 1] = np.nan
    state = DESIGN.tell(DESIGN.start(problem), Cohort(np.full((1, 3), 0.3), n, stakes), Outcome(n, 0.2 * n, 0.1 * n))
    assert np.all(state.own_shared.v > 0)
    np.testing.assert_array_equal(state.led_shared.v[0] > 0, [[False] * 3, [True] * 3, [True] * 3])


def test_the_certified_dose_never_falls() -> None:
    for state, _, _, after in play(DESIGN, *case("saturated-none"), trials=20):
        assert np.all(after.safe >= state.safe) and np.all(after.unsafe <= state.unsafe)


def test_a_start_dose_above_the_limit_is_stopped() -> None:
    problem, scenario = close(0.5, delta=0.1)
    hot = Scenario(scenario.effect, (Linear(6.0), *scenario.harm[1:]))
    result = simulate(problem, hot, DESIGN, 40, seed=11, trace=True)
    assert np.mean(result.winner == 2) >= 0.8
    assert result.trace is not None
    verdict = result.trace.verdict
    stopped = np.flatnonzero(verdict.standing[:, 0] == STOPPED)
    assert len(stopped) >= 35
    assert "above the limit" in verdict.reason(0, int(stopped[0]))
    n = np.full((1, 3), 200)
    state = DESIGN.tell(DESIGN.start(problem), Cohort(np.full((1, 3), 0.3), n), Outcome(n, 1.0 * n, 8.0 * n))
    assert DESIGN.verdict(state).endings() == ["all-stopped"] and state.winner[0] == -1


def test_an_arm_that_was_stopped_is_never_named() -> None:
    """Though the others have not been pulled yet."""
    problem, _ = close(0.1)
    n = np.array([[200, 0, 0]])
    state = DESIGN.tell(DESIGN.start(problem), Cohort(np.full((1, 3), 0.3), n), Outcome(n, 1.0 * n, 8.0 * n))
    assert state.standing[0, 0] == STOPPED and state.winner[0] != 0


def test_a_dose_of_zero_or_less_tells_nothing() -> None:
    problem, _ = close(0.1)
    one, zero = np.ones((1, 3), np.int64), np.zeros((1, 3))
    state = DESIGN.tell(DESIGN.start(problem), Cohort(zero - [0, 1, 2], one), Outcome(one, zero, zero))
    assert np.all(state.n == 0) and np.all(DESIGN.ask(state).dose == 0.3)


def test_doses_beyond_the_largest_are_set_aside() -> None:
    """A binary harm cannot go on rising: counted as if it did, it would certify what is not safe."""
    arms = (Arm("a", 0.5, 4.0), Arm("b", 0.5, 4.0))
    problem = Problem(arms, 0.2, "linear", Noise("bernoulli"), delta=0.05)
    rng, n, state = np.random.default_rng(1), np.full((200, 2), 30), DESIGN.start(problem, 200)
    for k in range(12):
        asked = DESIGN.ask(state)
        dose = np.where(k % 2, 50.0, asked.dose)
        readings = [rng.binomial(n, np.minimum(0.1 * dose, 1.0)).astype(float) for _ in range(2)]
        state = DESIGN.tell(state, replace(asked, dose=dose, n=n), Outcome(n, *readings))
    assert np.mean(np.any(state.safe > 2.0, axis=1)) <= 0.05


@pytest.mark.parametrize("kind", ["gaussian", "binary", "levels"])
def test_intervals_hold_together_with_the_doses(kind: str) -> None:
    if kind == "binary":
        arms = tuple(Arm(name, 0.3, 1.0) for name in "ab")
        problem = Problem(arms, 0.2, "linear", Noise("bernoulli"), delta=0.5, budget=1500)
        scenario = Scenario((Linear(0.4), Linear(0.1)), (Linear(0.42), Linear(0.1)))
    elif kind == "levels":
        arms = tuple(Arm(name, 0.25, levels=(0.25, 0.5, 1.0)) for name in "ab")
        problem = Problem(arms, 1.0, "linear", Noise("gaussian", 0.5), delta=0.5, budget=1500)
        scenario = Scenario((Linear(1.0), Linear(1.9)), (Linear(0.8), Linear(1.2)))
    else:
        problem, scenario = close(0.3, delta=0.5, budget=1500)
    truth = scenario.truth(problem)
    bad = np.zeros(60, bool)
    for k, (*_, after) in enumerate(play(DESIGN, problem, scenario, trials=60, seed=15)):
        if k % 8:  # they take their time
            continue
        v = DESIGN.verdict(after)
        bad |= ((v.lower > truth.value) | (v.upper < truth.value)).any(axis=1)
        bad |= ((v.safe > truth.dose + 1e-9) | (v.unsafe < truth.dose - 1e-9)).any(axis=1)
        effect = scenario.effects(v.safe)
        bad |= ((v.effect_lower > effect) | (v.effect_upper < effect)).any(axis=1)
    assert bad.sum() <= failures_allowed(60, 0.5, 10)


def test_nobody_looks_again_at_an_arm_whose_start_dose_is_over_the_limit() -> None:
    p, _ = case("paper-linear", 3)
    state = DESIGN.start(p)
    state = replace(state, standing=np.array([[REFUTED, ACTIVE, REFUTED]]), n=np.array([[4, 4000, 4]]))
    assert second(state).tolist() == [[True, False, True]]
    state = replace(state, harm_at_start=np.array([[2 * p.limit, 0.0, 0.0]]))
    assert second(state).tolist() == [[False, False, True]]
    cohort = DESIGN.ask(state, np.zeros((1, 0)))
    assert cohort.n[0, 0] == 0 and cohort.n[0, 2] > 0
