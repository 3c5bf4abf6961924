from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, Scenario, SurefootError, case, make, simulate
from surefoot.designs.base import ACTIVE
from surefoot.designs.linear_estimates import Line, Pair
from surefoot.designs.linear_policy import FLOOR, HASTE, RARELY, LinearPolicy, roles, turns
from surefoot.designs.surefoot import SurefootLinear
from surefoot.scenario import Linear
from surefoot.testing import play

DESIGN = SurefootLinear()


@pytest.mark.parametrize("bad", [{"growth": -1.0}, {"cohort": 0}, {"first": 0}, {"growth": "much"}])
def test_options_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(SurefootError):
        make("surefoot-linear", **bad)


def test_fixed_cohorts_have_their_size() -> None:
    design = SurefootLinear(LinearPolicy(growth=0.0, cohort=3, first=3))
    for state, cohort, _, _ in play(design, *case("paper-linear", 3), trials=4):
        assert set(np.unique(cohort.n)) <= {0, 3}
        assert np.all((cohort.n.sum(axis=1) > 0) == (state.ending == 0))


def test_every_pull_is_at_the_certified_dose() -> None:
    for state, cohort, *_ in play(DESIGN, *case("saturated-none"), trials=20):
        assert np.all((cohort.n == 0) | (cohort.dose == state.safe))


def test_no_arm_that_may_be_best_is_starved() -> None:
    for state, cohort, *_ in play(DESIGN, *case("paper-linear", 6), trials=10):
        running = (state.standing == ACTIVE) & (state.ending == 0)[:, None] & (state.found == 0)[:, None]
        equal = state.n.sum(axis=1, keepdims=True) / np.maximum(running.sum(axis=1, keepdims=True), 1)
        assert np.all((cohort.n > 0) | ~running | (state.n >= FLOOR * equal))


def test_cohorts_are_shares_of_the_pulls_and_small_where_doses_climb() -> None:
    """What the proof that it ends asks of them: at most a fixed share of the pulls, and one more."""
    most, climbing, there = LinearPolicy().growth * (1 + HASTE), list[float](), list[float]()
    for state, cohort, *_ in play(DESIGN, *case("paper-linear", 6), trials=20):
        some = (cohort.n > 0) & (state.n > 0)
        assert np.all(~some | (cohort.n <= np.ceil(most * state.n)))
        told = state.data.v / np.maximum(state.n * (state.safe / state.problem.starts) ** 2, 1e-9)
        early, share = some & (state.look.evidence < 1.0) & (state.n > 20), cohort.n / np.maximum(state.n, 1)
        climbing += list(share[early & (told < 0.4)])
        there += list(share[early & (told > 0.65)])
    assert np.mean(climbing) < 0.7 * np.mean(there)


def test_leader_or_weakest_rival_has_a_whole_turn() -> None:
    for state, *_ in play(DESIGN, *case("paper-linear", 6), trials=10):
        part, open_ = turns(state, state.n.astype(float), *roles(state)), (state.found == 0) & (state.ending == 0)
        assert np.all((part == 0) | ((part >= RARELY) & (part <= 1)))
        assert np.all(part.max(axis=1)[open_] == 1)


def test_stakes_of_the_leader_and_of_the_others() -> None:
    """The leader's readings are bet against all claims but its own, the others' against their own alone."""
    for state, cohort, *_ in play(DESIGN, *case("paper-linear", 4), trials=10):
        own, led, against = cohort.stakes[..., 0], cohort.stakes[..., 1], cohort.stakes[..., 2:]
        assert np.all(own > 0)
        leads = led > 0
        assert np.all(leads.sum(axis=1) <= 1)
        assert np.all(~leads | (np.arange(4) == state.look.leader[:, None]))
        itself = np.eye(4, dtype=bool)
        assert np.all(np.isnan(against) | (itself != leads[..., None]))


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_stakes_reach_any_gap(gap: float) -> None:
    """With noise in proportion: not many times the pulls, however small the gap."""
    arms = (Arm("a", 0.5, 1.5), Arm("b", 0.5, 1.5))
    problem = Problem(arms, 1.0, "linear", Noise("gaussian", 10 * gap), delta=0.1, budget=10**8)
    scenario = Scenario((Linear(1.0), Linear(1 - gap)), (Linear(1.0), Linear(1.0)))
    result = simulate(problem, scenario, DESIGN, 20, seed=1)
    assert np.all(result.winner >= 0) and result.pulls.max() < 100_000


ONCE_STALLED = ["binary-harm-near-limit", "hair-gap", "low-rates", "far-levels", "start-at-limit"]


@pytest.mark.parametrize("name", ONCE_STALLED)
def test_ends_without_a_runaway_tail(name: str) -> None:
    result = simulate(*case(name, budget=10**12), DESIGN, 12, seed=2)
    assert np.all(result.winner >= 0) and result.pulls.max() < 40 * np.median(result.pulls)


def test_a_leader_that_rests_on_its_harm_is_pulled() -> None:
    """Its cap, known to a hair, hid that its cone had shown next to nothing: rivals took four times the pulls."""
    result = simulate(*case("nearly-saturated", budget=10**9), DESIGN, 48, seed=1)
    assert result.wrong.sum() <= 5 and np.median(result.pulls) < 3_000


@pytest.mark.parametrize("independent", [True, False])
def test_where_the_evidence_is_weakest(independent: bool) -> None:
    """Begun half way and looked for three times, it is nowhere much less."""
    rng, many = np.random.default_rng(1), 400

    def log(low: float, high: float) -> Any:
        return low * (high / low) ** rng.random(many)

    def line(value: Any) -> Line:
        mu, cap = top * log(0.02, 1.0), top / np.where(rng.random(many) < 0.3, np.inf, log(1.0, 30.0))
        return Line(value * np.maximum(mu, cap), mu, cap, log(5.0, 2_000.0))

    top, high = log(0.5, 10.0), log(0.003, 300.0)
    low = high * (1 - 0.5 * rng.random(many) ** 2)
    pair = Pair(line(low), line(high), np.zeros(many), independent)
    bar = 0.5 * (low + high)
    for _ in range(3):
        bar = pair.weakest(low, bar, high)[0]
    least = np.min(pair.at(low + (high - low) * np.linspace(0, 1, 401)[:, None])[0][3], axis=0)
    assert np.mean(pair.at(bar)[0][3] > 1.1 * least + 1e-9) < 0.02


def test_a_best_arm_that_was_refuted_by_error_comes_back() -> None:
    """Else the two next, which differ by a thousandth, would have to be parted: 1,400 medians."""
    values = (1.0, 0.9, 0.899, 0.5, 0.5, 0.4, 0.3, 0.2)
    arms, noise = tuple(Arm(f"arm {i}", 0.3, 1.5) for i in range(8)), Noise("gaussian", 1.0)
    truth = Scenario(tuple(Linear(x) for x in values), (Linear(1.0),) * 8)
    result = simulate(Problem(arms, 1.0, "linear", noise, delta=0.5), truth, DESIGN, 4000, seed=5)
    assert np.all(result.winner >= 0) and result.pulls.max() < 40 * np.median(result.pulls)
