"""The theorem, for any policy: what is concluded from readings, whoever chose them and however they were staked."""

import math
from dataclasses import replace
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, case, simulate
from surefoot.designs.base import STOPPED, Cohort, Outcome
from surefoot.designs.compose import Policy
from surefoot.designs.monotonic_cells import ABOVE, BELOW, GAP, LED, OVER, UNDER, WIDTH, N, down, table, up
from surefoot.designs.monotonic_evidence import (
    ALONE,
    CLIMB,
    MORE,
    SAFE,
    STOP,
    UNSAFE,
    VERDICT,
    MonotonicEvidence,
    MonotonicState,
    Stakes,
    or_alone,
)
from surefoot.designs.surefoot import SurefootMonotonic
from surefoot.scenario import Linear, Table
from surefoot.simulate import Result
from surefoot.testing import failures_allowed, play

from . import strategies
from .policies import Anyhow, Astray, OnEdge, OnlyArmThree
from .properties import MonotonicSuite, bounds_hold, kept
from .small import flat

DESIGN = SurefootMonotonic()
EVIDENCE = MonotonicEvidence()
NONE = math.nan


def close(gap: float, kind: str = "doses", **changes: Any) -> tuple[Problem, Scenario]:
    """Three arms whose values are `gap` apart, the best one last: one limited by its largest dose, one whose effect
    jumps just above the limit, one whose effect rises with the dose."""
    levels = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5) if kind == "levels" else None
    noise = Noise("bernoulli") if kind == "binary" else Noise("gaussian", 0.3)
    arms = tuple(
        Arm(name, 0.0, m, 1.0, levels) for name, m in (("a", 0.6), ("b", 0.2 if levels is None else 0.6), ("c", 0.6))
    )
    problem = Problem(arms, 0.3, "monotonic", noise, slack=0.2, **changes)
    v = 0.5 - gap
    effect = (Table((0.0, 0.3, 0.32), (v, v, 1.0)), Linear(0.0, v), Table((0.0, 0.25, 0.3), (0.3, 0.5, 0.5)))
    harm = (
        (Linear(1.0), Linear(0.5), Linear(1.0)) if kind != "levels" else (Linear(1.0, 0.05), Linear(0.55), Linear(1.0))
    )
    return problem, Scenario(effect, harm)


POLICIES = [Anyhow(), Astray(), OnEdge(edges=(0.3, 0.2, 0.3)), OnlyArmThree()]


class TestAnyPolicyConforms(MonotonicSuite):
    """A random policy on our evidence keeps the promise of a design, and the protocol."""

    design = SurefootMonotonic(Astray())
    trials = 30

    @property
    def small(self) -> tuple[Problem, Scenario]:
        problem, scenario = flat()
        return problem.but(budget=400), scenario

    def test_budget(self) -> None:
        problem, scenario = self.small
        result = simulate(problem.but(budget=200), scenario, self.design, 20)
        assert result.pulls.max() <= 200

    def simulated(self, name: str) -> Result:
        return simulate(*case(name, budget=400), self.design, self.trials, seed=1)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
def test_safe_and_right_under_any_policy(policy: Policy[Any]) -> None:
    """At a delta at which a broken proof would show; with and without a tolerance."""
    results = []
    for k, (kind, tolerance) in enumerate(product(["doses", "levels", "binary"], [None, 0.02])):
        problem, scenario = close(0.04, kind, delta=0.5, tolerance=tolerance, budget=250)
        results.append(simulate(problem, scenario, SurefootMonotonic(policy), 50, seed=5 + k))
    kept(results, 0.5, 28)


# One arm, against the table of lemma 5 in words and loops

LEVELS = (0.0, 1.0, 2.0, 3.0, 4.0)


DOSE = WIDTH  # of the pulls below: in a column of its own


def both(at: Any, levels: bool, noise: Noise, x: Any, exact: bool = True) -> list[Any]:
    """`down` and `up` of an arm with these pulls, from start dose 1 or (levels) 0 to largest dose 4, as they came."""
    arm = Arm("a", 0.0, 4.0, 1.0, LEVELS) if levels else Arm("a", 1.0, 4.0, 1.0)
    problem = Problem((arm, Arm("b", 0.0, 4.0, 1.0)), 0.3, "monotonic", (noise, noise), slack=0.2)
    doses, rows, row = np.full((1, 2, MORE), np.inf), np.zeros((1, 2, MORE, WIDTH)), np.zeros(1, int)
    came = np.random.default_rng(len(at)).permutation(len(at))
    doses[0, 0, : len(at)], rows[0, 0, : len(at)] = at[came, DOSE], at[came, :WIDTH]
    state = SimpleNamespace(doses=doses, at=rows, kept=np.array([[len(at), 0]]))
    return [f(problem, table(state, row, row), x, exact)[0, 0] for f in (down, up)]


def every_b(at: Any, levels: bool) -> list[float]:
    """Largest safe doses of every kind: without levels each dose pulled, and some between them."""
    if levels:
        return list(LEVELS)
    doses = sorted({1.0, 4.0, *(float(x) for x in at[:, DOSE])})
    every = [*doses, *((a + b) / 2 for a, b in pairwise(doses))]
    return [b for b in every if 1.0 <= b <= 4.0]


def slowly(at: Any, levels: bool, noise: Noise, x: float) -> tuple[float, float]:
    """`down` and `up`, by the table: for every b, every pull on its side, and the least."""

    def effect(rows: Any, sums: slice, above: bool) -> float:
        total = [np.array(sum((row[sums][i] for row in rows), 0.0)) for i in range(3)]
        return float(noise.mixture(total[2], total[1], total[0], np.array(x), above, GAP))

    below, above = [], []
    for b in every_b(at, levels):
        low, high = [r for r in at if r[DOSE] <= b], [r for r in at if r[DOSE] > b]
        one = sum(r[OVER] for r in low) + effect(high, BELOW, False)
        if levels or b == 4.0:  # b can be that dose exactly, so that its pulls speak of both
            here = [r for r in low if r[DOSE] == b]
            under = [r for r in low if r[DOSE] < b]
            other = sum(r[OVER] for r in under) + effect(here + high, BELOW, False)
            one = float(np.logaddexp(one, other)) - math.log(2) if here else one
        below.append(one)
        above.append(sum(r[LED] for r in high) + effect(low, ABOVE, True))
    return min(below), min(above)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.integers(0, 6), st.sampled_from([-3.0, 0.1, 0.5, 0.9]))
def test_down_and_up_are_the_least_over_every_largest_safe_dose(
    seed: int, levels: bool, binary: bool, many: int, x: float
) -> None:
    """Also below the start dose and between levels; pulls of which only some are bet on."""
    rng, noise = np.random.default_rng(seed), Noise("bernoulli") if binary else Noise("gaussian", 0.4)
    doses = np.arange(0.0, 4.1) if rng.random() < 0.3 else np.arange(-1.0, 4.1, 0.5)
    many = min(many, len(doses))
    at = np.zeros((many, WIDTH + 1))
    at[:, DOSE] = np.sort(rng.choice(doses, many, replace=False))
    n = rng.integers(1, 30, many)
    at[:, N], at[:, [OVER, UNDER, LED]] = n, rng.normal(0, 2, (many, 3)) * rng.integers(0, 2, (many, 3))
    for sums in (BELOW, ABOVE):
        w = rng.integers(0, 2, many) * (1.0 if binary else rng.uniform(0.1, 3, many))
        at[:, sums] = np.stack([n * w**2, n * w, w * rng.binomial(n, 0.5)], axis=-1)
    mine, theirs = both(at, levels, noise, np.array([[x]]))
    least = slowly(at, levels, noise, x)
    assert mine <= least[0] + 1e-9 and theirs <= least[1] + 1e-9, "no more than at the true b, whichever that is"
    if not levels or np.isin(at[:, DOSE], LEVELS).all():  # between levels there are cells that hold no level
        assert (mine, theirs) == pytest.approx(least, abs=1e-9)
    for found, most in zip((mine, theirs), both(at, levels, noise, np.array([[x]]), exact=False), strict=True):
        assert found <= most + 1e-9, "the screen is an upper bound"


def test_a_level_that_was_pulled_speaks_of_both_whatever_was_pulled_beside_it() -> None:
    """If the largest safe level is that one, half of the stake is on the effect there, from the first pull on: it may
    not be put there later, once the next level has been pulled and it is known which half has won."""
    at = np.zeros((2, WIDTH + 1))
    at[:, DOSE], at[:, N] = (0.0, 1.0), 100
    at[0, BELOW] = 100, 100, 0
    for over in (-5.0, 5.0):
        at[:, OVER] = over, 50.0
        one, two = (both(at[:k], True, Noise("gaussian", 1.0), np.zeros((1, 1)))[0] for k in (1, 2))
        assert two == pytest.approx(np.logaddexp(over, math.log(GAP.nothing)) - math.log(2), abs=0.5)
        assert one <= two + 1e-9


def test_the_largest_dose_speaks_of_both_half_and_half() -> None:
    """b = M: harm there is at most the limit, and the effect is the value."""
    at = np.zeros((1, WIDTH + 1))
    at[0, [DOSE, N, OVER]], at[0, BELOW] = (4.0, 50, 1.5), (50, 50, 0)
    noise = Noise("gaussian", 1.0)
    below = noise.mixture(np.zeros(1), np.full(1, 50.0), np.full(1, 50.0), np.ones(1), False, GAP)
    half = np.logaddexp(below, 1.5) - math.log(2)
    assert both(at, False, noise, np.ones((1, 1)))[0] == pytest.approx(min(half[0], below[0]))


# What the whole evidence does with a cohort


def told(state: MonotonicState, dose: Any, n: int, effect: Any, harm: Any, /, **stakes: Any) -> MonotonicState:
    """The state after n pulls of every arm at these doses with these mean readings; what is not staked is nan."""
    shape = state.standing.shape
    many = np.full(shape, n)
    every = np.stack([np.broadcast_to(stakes.get(name, NONE), shape) for name in Stakes._fields], axis=-1)
    sums = (many * np.broadcast_to(x, shape) for x in (effect, harm))
    cohort = Cohort(np.broadcast_to(np.asarray(dose, float), shape), many, every.astype(float))
    return DESIGN.evidence.learn(state, cohort, Outcome(many, *sums))  # type: ignore[no-any-return]


def start(**changes: Any) -> MonotonicState:
    return EVIDENCE.begin(close(0.1, **changes)[0], 1, np)


def test_the_shares_of_delta() -> None:
    assert math.isclose(CLIMB + VERDICT + SAFE + UNSAFE + STOP, 1.0)
    assert math.isclose(np.exp(GAP.atoms[1]).sum(), 1.0)


@given(st.floats(-1e6, 700))
def test_a_part_of_the_stake_is_on_the_arm_alone(led: float) -> None:
    found = float(or_alone(np.array(led)))
    assert math.isclose(found, math.log(ALONE + (1 - ALONE) * math.exp(led)), rel_tol=1e-9, abs_tol=1e-12)


def test_stakes_have_names() -> None:
    problem, _ = close(0.1)
    assert EVIDENCE.stakes(problem) == Stakes._fields
    assert DESIGN.ask(DESIGN.start(problem, 2)).stakes.shape == (2, 3, 5)


@pytest.mark.parametrize("bad", [NONE, math.inf, -math.inf])
def test_what_is_not_staked_is_not_bet(bad: float) -> None:
    """Readings that would decide everything decide nothing."""
    state = first = start()
    for dose in (0.0, 0.1, 0.5):
        state = told(state, dose, 10_000, [0.0, 1.0, 2.0], 0.0, climb=bad, reach=bad, harm=bad, below=bad, above=bad)
    for name in ("base", "safe", "unsafe", "standing", "winner", "ending", "wealth"):
        np.testing.assert_array_equal(getattr(state, name), getattr(first, name), err_msg=name)
    assert np.all(state.at[..., OVER:] == 0)
    v = EVIDENCE.verdict(state, state)
    assert np.all(v.lower == -np.inf) and np.all(v.upper == np.inf)
    cohort = Cohort(np.zeros((1, 3)), np.full((1, 3), 9))  # without stakes at all
    after = DESIGN.tell(DESIGN.start(close(0.1)[0]), cohort, Outcome(cohort.n, 1.0 * cohort.n, 9.0 * cohort.n))
    assert np.all(after.at[..., OVER:] == 0) and np.all(after.base == 0)


@pytest.mark.parametrize("size", [-1.0, 0.0, 1e-300, 1e-170, 1e70, 1e300])
def test_sizes_that_are_none(size: float) -> None:
    """One so small that its square is 0 would hide what was bet on harm beside it until it has won."""
    state = told(start(), 0.5, 100, 0.5, 0.0, harm=0.1, below=size, above=size)
    assert np.all(state.at[..., LED] == 0) and np.all(state.at[..., BELOW] == 0) and np.all(state.at[..., ABOVE] == 0)


def test_doses_off_the_levels_say_nothing_of_harm_below_the_limit() -> None:
    """Above the largest safe level, and safe."""
    state = told(start(kind="levels"), 0.25, 100, 0.5, 0.0, harm=0.1, above=0.3)
    assert np.all(state.at[..., UNDER] == 0) and np.all(state.safe == 0.0)
    state = told(state, 0.2, 100, 0.5, 0.0, harm=0.1, above=0.3)
    assert np.all(state.total[..., UNDER] > 0) and np.all(state.safe == 0.2)


def test_the_bracket() -> None:
    """From below by bets at and above a dose, from above by bets at and below one."""
    state = told(start(), 0.2, 400, 0.5, 0.1, harm=0.15)
    np.testing.assert_array_equal(state.safe, 0.2)
    state = told(state, [0.4, 0.2, 0.4], 400, 0.5, [0.5, 0.1, 0.5], harm=[0.45, 0.15, 0.45])
    np.testing.assert_array_equal(state.unsafe, [[0.4, 0.2, 0.4]])
    again = told(state, [0.3, 0.1, 0.3], 1, 0.5, 0.3, harm=0.31)
    np.testing.assert_array_equal(again.safe, state.safe)
    np.testing.assert_array_equal(again.unsafe, state.unsafe)
    levels = told(start(kind="levels"), 0.4, 400, 0.5, 0.5, harm=0.45)
    np.testing.assert_array_equal(levels.unsafe, 0.3)


@pytest.mark.parametrize("tolerance", [None, 0.01])
def test_who_led_longest_is_refuted_too(tolerance: float | None) -> None:
    """An arm that was bet on most while it seemed the best, and is not: another leads since, with smaller bets."""
    state = told(start(tolerance=tolerance), 0.1, 1000, [0.4, 0.2, 0.4], 0.05, harm=0.1, above=[1.0, NONE, NONE])
    assert np.all(state.standing == 0)
    stakes: dict[str, Any] = {"harm": [0.45, 0.15, 0.15], "below": [1.0, 1.0, NONE], "above": [NONE, NONE, 0.5]}
    state = told(state, [0.4, 0.2, 0.2], 1000, [0.3, 0.1, 0.9], [0.5, 0.1, 0.1], **stakes)
    assert np.argmax(state.total[0, :, ABOVE][:, 0]) == 0
    np.testing.assert_array_equal(state.standing, [[2, 2, 0]])
    assert (state.winner, state.ending, state.out_by[0, 0]) == (2, 1, 2)


def test_there_is_room_for_any_number_of_doses() -> None:
    """And it does not matter in which order they came."""
    doses = np.random.default_rng(1).permutation(np.linspace(0.0, 0.19, 3 * MORE))
    one, two = start(), start()
    for dose in doses:
        one = told(one, dose, 2, dose, 0.2, harm=0.25, below=0.2, above=0.3)
    for dose in np.sort(doses):
        two = told(two, dose, 2, dose, 0.2, harm=0.25, below=0.2, above=0.3)
    assert one.at.shape[2] >= 3 * MORE
    one_table, two_table = (table(s, np.zeros(1, int), np.zeros(1, int)) for s in (one, two))
    assert np.all(np.diff(one_table.dose[0]) > 0) and one_table.dose.shape[1] == 3 * MORE
    for x, y in zip(one_table, two_table, strict=True):
        np.testing.assert_allclose(x, y)


def test_doses_beyond_the_largest_are_set_aside() -> None:
    first = start()
    state = told(first, 0.7, 1000, 1.0, 0.0, climb=0.0, reach=0.1, harm=0.1, below=0.5, above=0.5)
    np.testing.assert_array_equal(state.at, first.at)
    np.testing.assert_array_equal(state.base, first.base)


def test_a_dose_that_was_not_given_may_be_anything() -> None:
    state = DESIGN.start(close(0.1)[0])
    n, asked = np.array([[5, 0, 0]]), DESIGN.ask(state)
    one, other = (
        DESIGN.tell(state, replace(asked, dose=np.array([[0.0, x, x]])), Outcome(n, 0.1 * n, 0.1 * n))
        for x in (0.0, math.nan)
    )
    for name in ("wealth", "base", "doses", "at", "n"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_what_is_certified_is_never_taken_back() -> None:
    for state, _, _, after in play(SurefootMonotonic(Astray()), *close(0.1, delta=0.5, budget=1500), trials=20):
        assert np.all(after.base >= state.base) and np.all(after.safe >= state.safe)
        assert np.all(after.unsafe <= state.unsafe)
        out = (state.standing > 0) & (state.ending == 0)[:, None]
        assert np.all(after.standing[out] == state.standing[out])


def test_a_start_dose_above_the_limit_is_stopped_and_never_named() -> None:
    state = told(start(), 0.0, 200, [1.0, 0.1, 0.1], [0.9, 0.1, 0.1], harm=[0.8, NONE, NONE], above=[1.0, NONE, NONE])
    assert state.standing[0, 0] == STOPPED and state.winner[0] != 0
    assert "above the limit" in state.reason(0)
    state = told(state, 0.0, 200, 0.1, 0.9, harm=0.8)
    assert state.endings() == ["all-stopped"] and state.winner[0] == -1


# With the true values


@pytest.mark.parametrize("policy", [None, *POLICIES], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("kind", ["doses", "levels", "binary"])
def test_the_wealth_against_a_true_claim_is_that_of_a_fair_game(policy: Policy[Any] | None, kind: str) -> None:
    """Lemmas 5 and 6 by themselves: at the true values it doubles in no more than half of the trials, at any time."""
    problem, scenario = close(0.0, kind, delta=0.01, budget=500)
    truth, trials = scenario.truth(problem), 120
    design = DESIGN if policy is None else SurefootMonotonic(policy)
    most = np.full((6, trials), -np.inf)
    rng, state = np.random.default_rng(8), design.start(problem, trials)
    row = np.arange(trials)
    for _ in range(35):
        cohort = design.ask(state, rng.random((trials, design.draws)))
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
        state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
        x = [np.full((trials, 1), v) for v in truth.value]
        arms = [table(state, row, 0 * row + k) for k in range(3)]
        mine, theirs = ([f(problem, arms[k], x[k], True)[:, 0] for k in range(3)] for f in (down, up))
        one = np.array([*mine, *theirs])
        one[2] += or_alone(theirs[0] + theirs[1])  # the claim of the last, which is as true as the others
        most = np.maximum(most, one)
    for log in most:
        assert np.sum(log >= math.log(2)) <= failures_allowed(trials, 0.5, 90)


@pytest.mark.parametrize("far", [0.15, 0.3])
def test_no_dose_above_the_ceiling_is_certified_more_often_than_its_share(far: float) -> None:
    """All rungs next to the dose where harm is too high, and all pulls on it: the hardest there is."""
    arms = (Arm("a", 1.0, 1.04, 1.0), Arm("b", 1.0, 1.04, 1.0))
    problem = Problem(arms, 0.3, "monotonic", Noise("gaussian", 1.0), slack=0.02, delta=0.9)
    trials, rng = 300, np.random.default_rng(3)
    state, broken = EVIDENCE.begin(problem, trials, np), np.zeros(trials, bool)
    for k in range(150):
        n = np.full((trials, 2), math.ceil(1.02**k))
        dose = np.full((trials, 2), 1.02)
        harm = n * 0.32 + np.sqrt(n) * rng.standard_normal(n.shape)
        stakes = np.broadcast_to([0.32 - far, [NONE, 0.01, 0.1][k % 3], NONE, NONE, NONE], (trials, 2, 5))
        state = EVIDENCE.learn(state, Cohort(dose, n, stakes), Outcome(n, 0.0 * n, harm))
        broken |= np.any(state.base > 1.02 + 1e-9, axis=1)
    assert 0.02 * trials < broken.sum() <= failures_allowed(trials, CLIMB * 0.9, 2), "it happens, and not too often"


def test_a_tolerance_ends_it_with_the_same_readings_or_earlier() -> None:
    problem, scenario = close(0.1, delta=0.2, budget=6000)
    problem = problem.but(noise=Noise("gaussian", 0.1))
    tolerant = problem.but(tolerance=0.15)
    trials, rng = 12, np.random.default_rng(4)
    plain, other = DESIGN.start(problem, trials), DESIGN.start(tolerant, trials)
    earlier = np.zeros(trials, bool)
    while np.any(plain.ending == 0):
        cohort = DESIGN.ask(plain)
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, cohort.n, plain.pulls)
        outcome = Outcome(cohort.n, effect, harm)
        plain, other = DESIGN.tell(plain, cohort, outcome), DESIGN.tell(other, cohort, outcome)
        named = plain.winner >= 0
        assert np.all(other.winner[named] >= 0)
        earlier |= (other.winner >= 0) & ~named
    assert earlier.any()


@pytest.mark.parametrize("kind", ["doses", "levels", "binary"])
def test_intervals_hold_together(kind: str) -> None:
    problem, scenario = close(0.1, kind, delta=0.5, budget=400)
    truth = scenario.truth(problem)
    for policy in (DESIGN.policy, POLICIES[2]):
        design, bad = SurefootMonotonic(policy), np.zeros((2, 40), bool)
        rng, state = np.random.default_rng(15), design.start(problem, 40)
        while np.any(state.ending == 0):
            cohort = design.ask(state, rng.random((40, design.draws)))
            effect, harm, _ = scenario.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
            state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
            if state.rounds.max() % 10:  # they take their time
                continue
            v = design.verdict(state)
            bad[0] |= ((v.lower > truth.value) | (v.upper < truth.value)).any(axis=1)
            bad[1] |= ((v.safe > truth.dose + 1e-9) | (v.unsafe < truth.dose - 1e-9)).any(axis=1)
        assert bad[0].sum() <= failures_allowed(40, 0.5, 12)
        assert bad[1].sum() <= failures_allowed(40, (SAFE + UNSAFE) * 0.5, 12)


@settings(max_examples=6, deadline=None)
@given(strategies.monotonic(honest=True), st.integers(0, 2**32), st.sampled_from([DESIGN, SurefootMonotonic(Astray())]))
def test_bounds_hold(made: strategies.Case, seed: int, design: SurefootMonotonic) -> None:
    problem, scenario = made
    bounds_hold(design, problem.but(budget=80), scenario, seed)
