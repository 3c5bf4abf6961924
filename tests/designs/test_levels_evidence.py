"""The theorem's steps, one by one, and the promise under any policy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import array_api_strict
import numpy as np
import pytest
import scipy

from surefoot import Noise, Problem, Scenario, case, simulate
from surefoot.arrays import Array
from surefoot.bounds import Mixture
from surefoot.designs.base import STOPPED, Cohort, Outcome
from surefoot.designs.levels_evidence import STAKES, VERDICT, LevelsEvidence, LevelsState, climb, descend
from surefoot.designs.levels_policy import LevelsPolicy
from surefoot.designs.levels_wagers import FAR, GAP, NEAR, wager
from surefoot.designs.surefoot import SurefootLevels
from surefoot.scenario import Table
from surefoot.simulate import Result
from surefoot.testing import DesignSuite, failures_allowed

from .properties import kept

BINARY = Noise("bernoulli")


class TestSuite(DesignSuite):
    design = SurefootLevels()
    trials = 8  # of each case, and judged over all of them together; benchmarks play more
    symmetric = False  # of equals the first comes first

    @property
    def small(self) -> tuple[Problem, Scenario]:
        problem, scenario = case("levels-gaussian", 3)
        return problem.but(noise=Noise("gaussian", 0.4 * problem.sigma)), scenario

    def simulated(self, name: str) -> Result:
        return simulate(*case(name, budget=400), self.design, self.trials, seed=1)


# Wagers


@pytest.mark.parametrize("prior", [FAR, NEAR, GAP])
@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("x", [0.003, 0.3, 0.5, 0.95])
def test_a_wager_gains_nothing_where_its_null_holds(prior: Mixture, above: bool, x: float) -> None:
    """Exactly, for binary readings: the mean of the wealth is at most 1 for every mean on the null's side."""
    for n in (1, 7, 60):
        k = np.arange(n + 1.0)
        wealth = np.exp(wager(np.full(n + 1, float(n)), k, np.full(n + 1, x), BINARY, prior, above)[0])
        for m in np.linspace(0, x, 5) if above else np.linspace(x, 1, 5):
            assert np.sum(scipy.stats.binom.pmf(k, n, m) * wealth) <= 1 + 1e-12
        assert np.sum(scipy.stats.binom.pmf(k, n, x) * wealth) == pytest.approx(1)


@pytest.mark.parametrize("noise", [BINARY, Noise("gaussian", 0.7)])
@pytest.mark.parametrize("above", [True, False])
def test_a_wager_is_convex_and_its_slope_is_right(noise: Noise, above: bool) -> None:
    x = np.linspace(0.02, 0.98, 200)
    n, y = np.full(200, 40.0), np.full(200, 17.0)
    value, slope = wager(n, y, x, noise, GAP, above, half=0.0)
    h = 1e-6
    up, down = (wager(n, y, x + d, noise, GAP, above)[0] for d in (h, -h))
    np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=1e-5, atol=1e-6)
    assert np.all(np.diff(value, 2) > -1e-9)
    assert np.all((np.diff(value) < 0) == above)


def test_a_wager_goes_on_along_its_tangent_where_no_mean_can_be() -> None:
    """With a tolerance a leader is compared with x - tolerance, which may be below 0."""
    n, y, x = np.full(3, 900.0), np.full(3, 400.0), np.array([-0.2, -0.01, 0.0])
    value, slope = wager(n, y, x, BINARY, GAP, True, half=0.0)
    np.testing.assert_allclose(value, value[2] + slope[2] * x)


def test_equal_arms_within_a_tolerance_end() -> None:
    ran = simulate(*case("levels-tie"), SurefootLevels(), 24, 1, progress=False)
    assert ran.pulls.max() < 10 * np.median(ran.pulls)


STOOD = (  # level, then stakes: readings, and of them effects or harms, of a trial at 48,313 pulls
    ((15, 12, 0, 5914, 12), (8, 0, 316, 3, 12), (1, 1, 0, 2909, 6), (6, 0, 164, 2, 9)),
    ((21, 6884, 0, 2289, 6872), (422, 0, 453, 0, 6), (2, 713, 0, 1182, 3404), (231, 0, 240, 0, 4)),
    ((24, 2644, 0, 6074, 2635), (160, 0, 148, 0, 61), (3, 257, 0, 3059, 1302), (81, 0, 76, 0, 34)),
)


def test_a_trial_that_once_stood_for_ever_ends_with_its_next_reading() -> None:
    """With 234 nats against what had to be refuted: more cells were in doubt than were cut again."""
    problem, _ = case("levels-tie")
    design, levels = SurefootLevels(), np.array(STOOD, float).reshape(1, 3, 2, 2, 5)
    count, total = (np.insert(levels[:, :, k], 0, 0.0, axis=2) for k in (0, 1))
    n, effect, harm = (
        np.array([rows], float)
        for rows in (
            ((3, 5997, 319), (3, 17877, 459), (3, 23492, 160)),
            ((0, 2943, 186), (1, 9000, 259), (2, 11780, 101)),
            ((0, 585, 166), (0, 1757, 244), (0, 2351, 81)),
        )
    )
    known: dict[str, Any] = {"n": n, "effect": effect, "harm": harm, "count": count, "total": total}
    state = replace(design.start(problem), pulls=np.array([48_313]), **known)
    one = np.array([[1, 0, 0]])
    after = design.tell(state, Cohort(1.0 * one, one, np.zeros((1, 3, 5))), Outcome(one, 0.0 * one, 0.0 * one))
    assert after.winner[0] == 1


def test_levels_are_certified_in_order() -> None:
    wealth = np.array([[0.0, 3.0, 4.0, 0.0], [0.0, -9.0, 4.0, 5.0], [0.0, 8.0, -2.0, 5.0], [9.0, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(climb(wealth, 4.0), [2, 0, 1, 0])  # levels at and above: 7 4 0, 0 9 5, 11 3 5, 0 0 0
    np.testing.assert_array_equal(descend(wealth, 4.0), [2, np.inf, 1, 0])  # at and below: 0 3 7 7, ..., 0 8 6 11


# The infimum


def played(name: str = "levels-thall", rounds: int = 60, trials: int = 30, **changes: Any) -> LevelsState:
    problem, scenario = case(name, **changes)
    design, rng = SurefootLevels(), np.random.default_rng(5)
    state: LevelsState = design.start(problem, trials)
    for _ in range(rounds):
        cohort = design.ask(state)
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
        state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
    return state


@pytest.mark.parametrize("name", ["levels-thall", "levels-gaussian"])
@pytest.mark.parametrize("tolerance", [None, 0.1])
def test_no_value_has_less_evidence_than_is_said(name: str, tolerance: float | None) -> None:
    s = played(name, 40, tolerance=tolerance)
    evidence, shift = LevelsEvidence(), np.zeros(s.safe.shape)
    shift[:, 1] = tolerance or 0.0
    live = np.ones(s.safe.shape, bool)
    terms = evidence.terms(s)
    least = evidence.weigh(s, terms, live, shift)[1]
    wide = np.concatenate([np.linspace(-1, 5, 301), [-1e6, 1e6]])
    x = wide if name == "levels-gaussian" else np.linspace(tolerance or 0.0, 1, 301)  # a mean is in [0, 1]
    u = terms.rival(np.tile(x, (len(s.pulls), 1, 1)))[0].min(axis=2)
    v = terms.led(x - shift[..., None])[0].min(axis=2)
    assert np.all(u + v.sum(axis=1, keepdims=True) - v >= least[..., None] - 1e-6)


def test_refining_cells_only_helps_and_decides() -> None:
    """At a goal just below the true infimum the finer cells find it, where the first ones did not."""
    s = played("levels-thall", 70)
    evidence, live = LevelsEvidence(), np.ones(s.safe.shape, bool)
    terms, none = evidence.terms(s), np.zeros(s.safe.shape)
    x = np.linspace(0, 1, 1000)
    u = terms.rival(np.tile(x, (len(s.pulls), 1, 1)))[0].min(axis=2)
    v = terms.led(np.tile(x, (*s.safe.shape, 1)))[0].min(axis=2)
    true = (u + v.sum(axis=1, keepdims=True) - v).min(axis=2)
    for goal in np.quantile(true[true > 0], [0.3, 0.7]) - 0.02:
        delta = math.exp(-goal) / VERDICT
        if delta < 1:
            t = replace(s, problem=s.problem.but(delta=delta))
            found = evidence.weigh(t, terms, live, none)[1]
            assert np.all(found <= true + 1e-6)
            assert np.all((found >= goal) | (true < goal + 0.015))


# Any policy


@dataclass(frozen=True)
class Anything(LevelsPolicy):
    """Arms, levels, numbers and stakes at random, or the worst there is: everything staked, one arm alone."""

    kind: Literal["random", "all", "one", "jump"] = "random"
    draws = 60

    def choose(self, state: LevelsState, u: Array) -> Cohort:
        trials, arms, _ = state.n.shape
        top = self.evidence.certified(state)
        dose = np.floor(u[:, :arms] * (top + 1)) if self.kind in ("random", "all") else top
        n = np.floor(u[:, arms : 2 * arms] * 6)
        if self.kind == "one":
            n = np.where(np.arange(arms) == arms - 1, 4, 0) + 0 * n
        stakes = (u[:, 2 * arms : 2 * arms + arms * len(STAKES)] > 0.4).reshape(trials, arms, -1)
        staked = np.ones_like(stakes) if self.kind != "random" else stakes
        return Cohort(np.minimum(dose, top), n.astype(np.int64), staked.astype(float))


@pytest.mark.parametrize("name", ["levels-cliff", "levels-gaussian"])
def test_any_policy_is_safe_and_right(name: str) -> None:
    problem, scenario = case(name, delta=0.5, budget=250)
    kinds: list[Any] = ["random", "all", "one", "jump"]
    policies = [SurefootLevels(policy=Anything(kind=kind)) for kind in kinds]
    kept([simulate(problem, scenario, it, 60, seed=2 + k) for k, it in enumerate(policies)], 0.5, 20)


@pytest.mark.parametrize("delta", [0.1, 0.5])
def test_a_climb_onto_a_ledge(delta: float) -> None:
    """Every level from the second on is a hair above the ceiling: the third may be given with probability delta."""
    levels = 5
    harm = [0.1, *[0.5001] * (levels - 1)]
    problem, scenario = case("levels-flat", 2, delta=delta, budget=300)
    flat = tuple(Table(tuple(range(levels - 1)), tuple(harm[: levels - 1])) for _ in range(2))
    result = simulate(problem, replace(scenario, harm=flat), SurefootLevels(policy=Anything(kind="jump")), 150, seed=1)
    assert result.unsafe.any() or delta < 0.5, "the attack is worth its place"
    assert int(result.unsafe.sum()) <= failures_allowed(150, delta)


def test_a_true_claim_is_refuted_no_more_often_than_promised() -> None:
    """Two arms that are the same but for a hair: whatever is staked, the best one's claim survives."""
    problem, scenario = case("levels-tie", 2, delta=0.9, tolerance=None, budget=600)
    hair = replace(scenario, effect=(scenario.effect[0], Table((0, 1, 2), (0.2, 0.4999, 0.6))))
    result = simulate(problem, hair, SurefootLevels(policy=Anything(kind="all")), 200, seed=3)
    assert int(result.wrong.sum()) <= failures_allowed(200, VERDICT * 0.9 + 0.1)


# The rest


def test_p_is_an_error_probability() -> None:
    """At any budget, wrong and p <= alpha no more often than alpha, and the shares of the certificates."""
    for budget in (60, 300):
        problem, scenario = case("levels-thall", delta=0.5, budget=budget)
        result = simulate(problem, scenario, SurefootLevels(), 100, seed=4)
        wrong = ~result.good[result.recommended]
        for alpha in (0.05, 0.2, 0.5):
            allowed = alpha + (1 - VERDICT) * problem.delta
            assert int((wrong & (result.p <= alpha)).sum()) <= failures_allowed(100, allowed, 9)


def test_an_unsafe_start_is_stopped() -> None:
    problem, scenario = case("levels-flat", 3)
    high = Table((0, 1, 2, 3), (0.6, 0.7, 0.8, 0.9))
    weak = replace(scenario, effect=scenario.effect[::-1], harm=(high, *scenario.harm[1:]))
    design, rng, trials = SurefootLevels(), np.random.default_rng(0), 60  # about 8% are stopped before they are refuted
    state = design.start(problem, trials)
    while np.any(state.ending == 0):
        cohort = design.ask(state)
        effect, harm, _ = weak.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
        state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
    assert np.all(state.standing[:, 0] > 0)
    assert np.any(state.standing[:, 0] == STOPPED)
    assert not np.any(state.winner == 0)


@pytest.mark.parametrize("policy", [LevelsPolicy(), Anything(kind="jump")])
def test_a_barred_level_is_not_given_again_and_new_levels_begin_small(policy: LevelsPolicy) -> None:
    problem, scenario = case("levels-cliff", 3, delta=1e-3)
    design, rng = SurefootLevels(policy=policy), np.random.default_rng(0)
    state = design.start(problem, 20)
    for _ in range(150):
        if np.all(state.ending > 0):
            break
        cohort = design.ask(state, rng.random((20, design.draws)))
        given = cohort.n > 0
        assert np.all(~given | (cohort.dose < state.barred))
        new = np.take_along_axis(state.n, cohort.dose.astype(int)[..., None], axis=2)[..., 0] == 0
        assert np.all(cohort.n[given & new] <= (3 if policy == LevelsPolicy() else 5))
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
        after = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
        assert np.all(after.barred <= state.barred)
        state = after
    assert np.isfinite(state.barred).any() or policy == LevelsPolicy(), "who stays there sees it barred"


def test_nothing_staked_nothing_learned() -> None:
    problem, _ = case("levels-thall")
    design = SurefootLevels()
    state = design.start(problem, 2)
    n = np.full((2, 3), 50)
    told = design.tell(state, Cohort(np.zeros((2, 3)), n), Outcome(n, n * 0.9, n * 0.0))
    assert not told.count.any()
    np.testing.assert_allclose(told.against, 0, atol=1e-12)
    assert told.n.sum() == 300


def test_a_dose_that_is_no_level_is_set_aside() -> None:
    problem, _ = case("levels-thall")
    design = SurefootLevels()
    n = np.full((1, 3), 5)
    told = design.tell(design.start(problem), Cohort(np.full((1, 3), 0.5), n), Outcome(n, n * 1.0, n * 0.0))
    assert told.pulls[0] == 15
    assert not told.n.any()


def test_bounds_of_a_verdict_hold() -> None:
    problem, scenario = case("levels-thall")
    truth, bad = scenario.truth(problem), np.zeros((40, 3), bool)
    for rounds in (20, 80):
        v = SurefootLevels().verdict(played("levels-thall", rounds, 40, delta=0.05))
        bad |= (v.lower > truth.value + 1e-9) | (v.upper < truth.value - 1e-9)
        bad |= (v.safe > truth.dose) | (v.unsafe < truth.dose)
    assert int(bad.any(axis=1).sum()) <= failures_allowed(40, 0.1)


def test_it_runs_on_the_letter_of_the_standard_with_binary_readings() -> None:
    problem, scenario = case("levels-thall", budget=300)
    rng = np.random.default_rng(1)
    design = SurefootLevels()
    one, two = design.start(problem, 2), design.start(problem, 2, array_api_strict)
    for _ in range(12):
        cohort, same = design.ask(one), design.ask(two)
        np.testing.assert_array_equal(cohort.n, np.asarray(same.n))
        np.testing.assert_array_equal(cohort.stakes, np.asarray(same.stakes))
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, cohort.n, one.pulls)
        one = design.tell(one, cohort, Outcome(cohort.n, effect, harm))
        xp = array_api_strict
        two = design.tell(two, same, Outcome(same.n, xp.asarray(effect), xp.asarray(harm)))
        advice, again = design.recommendation(one), design.recommendation(two)
        np.testing.assert_array_equal(advice.arm, np.asarray(again.arm))
        np.testing.assert_allclose(advice.p, np.asarray(again.p))


def test_many_arms_end_before_every_arm_has_what_one_of_three_would() -> None:
    """Floors and cohorts are those of three arms: a hundred would otherwise need a hundred times a root of them."""
    problem, scenario = case("levels-flat", 20, budget=5_000)
    result = simulate(problem, scenario, SurefootLevels(), 2, seed=1)
    assert np.all(result.winner == 0)


def test_a_level_that_clearly_seems_too_high_gets_at_most_its_share() -> None:
    """Three of three harmed at the second level: the first comes before it is given again, and again."""
    problem, _ = case("levels-first", 2)
    design = SurefootLevels()
    state = design.start(problem)
    for _ in range(40):
        cohort = design.ask(state)
        given = np.where(cohort.n > 0, cohort.dose, 0.0)
        now = np.take_along_axis(state.n, given.astype(int)[..., None], axis=2)[..., 0]
        again = (given > 0) & (now > 0)
        assert np.all(~again | (now < 0.5 * state.n.sum(axis=2))), "never as much as all others together"
        harm = np.where(cohort.dose > 0, cohort.n, 0) * 1.0
        state = design.tell(state, cohort, Outcome(cohort.n, np.floor(cohort.n / 2), harm))
