"""Surefoot-Monotonic as it comes: the evidence of Theorem 2 and our own policy on it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, SurefootError, case, make, simulate
from surefoot.arrays import Chosen
from surefoot.designs.base import STOPPED, Cohort, Outcome
from surefoot.designs.monotonic_estimates import CROSS, DOSES, LOW, by_dose, crosses, guess, of_arms, remember
from surefoot.designs.monotonic_policy import MOST, RISK, Memory, MonotonicPolicy, shown
from surefoot.designs.surefoot import SurefootMonotonic
from surefoot.scenario import Linear, Table
from surefoot.simulate import Result
from surefoot.testing import failures_allowed, play

from . import strategies
from .properties import MonotonicSuite, failed, kept, no_end_without_a_pull
from .small import drug

DESIGN = SurefootMonotonic()


class TestConformance(MonotonicSuite):
    design = DESIGN
    trials = 10  # of each scenario, and judged over all of them together

    @property
    def small(self) -> tuple[Problem, Scenario]:
        problem, scenario = drug()
        return problem.but(budget=400), scenario

    def simulated(self, name: str) -> Result:
        return simulate(*case(name, budget=400), self.design, self.trials, seed=1)


def test_a_policy_reads_what_is_known_and_no_more() -> None:
    problem, _ = drug()
    state = DESIGN.start(problem, 3)
    np.testing.assert_array_equal(state.certified, DESIGN.verdict(state).certified)
    for name in ("lower", "upper", "estimate"):
        with pytest.raises(SurefootError, match="not kept in the state"):
            np.where(state.standing == 0, getattr(state, name), 0.0)

    class Bad(MonotonicPolicy):
        def choose(self, state: Any, u: Any) -> Cohort:
            return Cohort(np.array(None), state.n)

    design = SurefootMonotonic(Bad())
    with pytest.raises(SurefootError, match=r"dose of a policy's Cohort must be an array of shape \(1, 3\)"):
        design.ask(design.start(problem))


def two(gap: float = 0.2, slope: float = 0.5, **changes: Any) -> tuple[Problem, Scenario]:
    """Two arms with harm = dose and a limit of 1/2, and effects that rise by `slope` and differ by `gap`."""
    arms = (Arm("a", 0.0, 1.0, 1.0), Arm("b", 0.0, 1.0, 1.0))
    problem = Problem(arms, 0.5, "monotonic", Noise("gaussian", 0.1), slack=0.2, delta=0.1)
    return problem.but(**changes), Scenario((Linear(slope, gap), Linear(slope)), (Linear(1.0), Linear(1.0)))


@pytest.mark.parametrize("bad", [{"growth": -1.0}, {"cohort": 0}, {"first": 0}, {"growth": "much"}])
def test_options_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(SurefootError):
        make("surefoot-monotonic", **bad)


def test_is_made_again_from_its_options() -> None:
    design = make("surefoot-monotonic", growth="0.2", cohort=4)
    assert design.options == {"growth": 0.2, "cohort": 4, "first": MonotonicPolicy().first}
    assert make(design.name, **design.options) == design


def test_fixed_cohorts_have_their_size() -> None:
    design = make("surefoot-monotonic", growth=0.0, cohort=3, first=3)
    for state, cohort, _, _ in play(design, *two(0.5, noise=Noise("gaussian", 0.05)), trials=3):
        assert set(np.unique(cohort.n)) <= {0, 3}
        assert np.all((cohort.n.sum(axis=1) > 0) == (state.ending == 0))


@settings(max_examples=8, deadline=None)
@given(strategies.monotonic(), st.integers(0, 2**32))
def test_ends_whatever_comes_back(made: strategies.Case, seed: int) -> None:
    problem = made[0].but(budget=100)
    no_end_without_a_pull(DESIGN, problem, seed, most=101)


@pytest.mark.parametrize("name", ["paper-drug", "effect-jump", "lipschitz-tight", "binary", "dose-levels"])
def test_every_pull_is_at_a_certified_dose(name: str) -> None:
    problem, scenario = case(name, budget=500)
    for state, cohort, _, _ in play(DESIGN, problem, scenario, trials=4):
        assert np.all((cohort.n == 0) | (cohort.dose <= state.base))


def test_no_uncertified_dose_is_asked_for_whatever_was_given() -> None:
    """Somebody gave more than was asked for: a harm seen there is no reason to go there."""
    problem, scenario = two()
    rng, n = np.random.default_rng(1), np.full((20, 2), 200)
    for high in (0.9, 1.0):
        state = DESIGN.start(problem, 20)
        for k in range(12):
            asked = DESIGN.ask(state)
            assert np.all((asked.n == 0) | (asked.dose <= state.base))
            dose = np.full_like(asked.dose, high if k else 0.0)
            effect, harm, _ = scenario.draw(rng, problem, dose, n, state.pulls)
            state = DESIGN.tell(state, Cohort(dose, n, asked.stakes), Outcome(n, effect, harm))


FAR = {  # what once kept it from ending: levels, Lipschitz constant, slack, noise, and effect and harm of each arm
    "a dose between two levels is lowered to one that tells nothing": (
        ((0.0, 0.25, 0.5, 0.75, 1.0), 1.0, 0.2, Noise("gaussian", 0.3)),
        ((0.4, 0.475, 0.55, 0.625, 0.7), (0.0, 0.175, 0.35, 0.525, 0.7)),
        ((0.0, 0.075, 0.15, 0.225, 0.3), (0.0, 0.175, 0.35, 0.525, 0.7)),
    ),
    "the worse effect at the first level over the limit is above the better value": (
        ((0.0, 0.196, 0.305, 0.923, 1.0), 0.55, 0.4, Noise("gaussian", 0.3)),
        ((0.16, 0.31, 0.43, 0.48, 0.56), (0.46, 0.56, 0.61, 0.94, 0.98)),
        ((0.08, 0.19, 0.31, 0.4, 0.5), (0.35, 0.45, 0.47, 0.80, 0.84)),
    ),
    "a line between two near levels says that the worse arm is the better": (
        ((0.0, 0.09, 0.45, 0.54, 1.0), 0.7, 0.4, Noise("gaussian", 0.3)),
        ((0.24, 0.29, 0.351, 0.392, 0.407), (0.169, 0.221, 0.401, 0.44, 0.707)),
        ((0.08, 0.242, 0.317, 0.46, 0.536), (0.257, 0.305, 0.47, 0.53, 0.838)),
    ),
    "the best arm is safe at its largest level and is told nowhere else": (
        ((0.0, 0.1, 0.184, 0.401, 1.0), 0.28, 0.2, Noise("gaussian", 0.3)),
        ((0.251, 0.431, 0.475, 0.492, 0.685), (0.274, 0.296, 0.318, 0.367, 0.47)),
        ((0.201, 0.375, 0.542, 0.561, 0.72), (0.459, 0.47, 0.47, 0.53, 0.685)),
    ),
    "binary effects: those that led take more from what is shown of harm": (
        ((0.0, 0.118, 0.186, 1.0), 0.21, 0.2, Noise("bernoulli")),
        ((0.251, 0.312, 0.451, 0.63), (0.362, 0.385, 0.394, 0.53)),
        ((0.169, 0.343, 0.369, 0.522), (0.313, 0.329, 0.34, 0.47)),
    ),
}


@pytest.mark.parametrize("cause", FAR)
def test_levels_far_apart_end(cause: str) -> None:
    (levels, lipschitz, slack, noise), *curves = FAR[cause]
    arms = tuple(Arm(f"arm {k}", 0.0, 1.0, lipschitz, levels) for k in range(2))
    problem = Problem(arms, 0.5, "monotonic", noise, slack=slack, budget=10**5)
    effect, harm = (tuple(Table(levels, row) for row in rows) for rows in zip(*curves, strict=True))
    ran = simulate(problem, Scenario(effect, harm), DESIGN, 12, seed=5, progress=False)
    assert (ran.winner >= 0).all() and ran.pulls.max() < 10 * np.median(ran.pulls)


def test_two_arms_of_nearly_equal_value() -> None:
    """Where being wrong is easiest, also where the readings are tied to each other; a budget ends those that would go
    on for long."""
    problem, scenario = two(0.02, delta=0.5, budget=600)
    tied = [(problem, Scenario(scenario.effect, scenario.harm, correlation=x)) for x in (-1.0, 1.0)]
    near = [two(0.002, slope, delta=0.5, budget=600) for slope in (0.0, 2.0)]
    kept([simulate(*it, DESIGN, 50, seed=3) for it in (*near, *tied)], 0.5, 10)


def test_an_effect_that_jumps_above_the_limit() -> None:
    """Pulls of the better arm above the limit look bad for no reason that counts, and of the worse one good."""
    jump, flat = Table((0.0, 0.5, 0.52, 1.0), (0.0, 0.3, 1.0, 1.0)), Table((0.0, 1.0), (0.35, 0.35))
    problem, scenario = two(delta=0.5, budget=1000)
    result = simulate(problem, Scenario((jump, flat), scenario.harm), DESIGN, 100, seed=4)
    assert failed(result) <= failures_allowed(100, 0.5, 10)


@pytest.mark.parametrize("options", [{"growth": 0.0, "cohort": 3}, {"growth": 1.0}, {"first": 1}])
def test_cohorts(options: dict[str, Any]) -> None:
    problem, scenario = two(0.5, noise=Noise("gaussian", 0.05))
    result = simulate(problem, scenario, make("surefoot-monotonic", **options), 20, seed=6)
    assert failed(result) <= failures_allowed(20, 0.1, 10) and np.all(result.winner >= 0)


def test_a_tolerance_helps() -> None:
    problem, scenario = two(0.1, 0.1)
    plain, tolerant = (simulate(problem.but(tolerance=x), scenario, DESIGN, 30, seed=7) for x in (None, 0.3))
    for result in (plain, tolerant):
        assert failed(result) <= failures_allowed(30, 0.1, 10) and np.all(result.winner >= 0)
    assert tolerant.pulls.mean() < plain.pulls.mean()


@pytest.mark.parametrize("instance", [0, 4])
def test_no_pulls_are_spent_on_arms_that_are_within_the_tolerance(instance: int) -> None:
    """Of several arms as good as each other, those that are shown to be near enough are left alone: else the leader is
    pulled for their sake for ever, and the last one that is not near waits."""
    problem, scenario = case("random-monotonic", instance=instance)
    second, first = np.sort(scenario.truth(problem).value)[-2:]
    plain, tolerant = (
        simulate(problem.but(tolerance=x, budget=10**6), scenario, DESIGN, 24, seed=77)
        for x in (None, 10 * (first - second))
    )
    assert np.all(tolerant.winner >= 0) and tolerant.pulls.mean() < 0.8 * plain.pulls.mean()


def test_refine_knows_the_winners_dose() -> None:
    problem, scenario = two(0.3)
    width = 0.1
    result = simulate(problem.but(refine=width, budget=10**6), scenario, DESIGN, 8, seed=8)
    assert failed(result) <= failures_allowed(8, 0.1, 10)
    assert np.all(result.pulls < 900_000), "it ends for it knows, not because of the budget"
    assert np.mean((result.safe <= 0.5) & (result.safe >= 0.5 - width)) >= 0.8


def test_a_start_dose_above_the_limit_is_stopped() -> None:
    problem, scenario = two(0.3)
    hot = Scenario(scenario.effect, (Linear(0.1, 0.65), scenario.harm[1]))
    result = simulate(problem, hot, DESIGN, 20, seed=9, trace=True)
    assert np.mean(result.winner == 1) >= 0.8 and result.trace is not None
    stopped = np.flatnonzero(result.trace.verdict.standing[:, 0] == STOPPED)
    assert len(stopped) >= 16
    assert np.all(result.trace.verdict.out_lower[stopped, 0] <= 0.5001), "no more is shown than: above the limit"


def test_a_limit_above_every_binary_harm() -> None:
    """limit + slack above 1: no dose can be above it, and none is held back."""
    arms = (Arm("a", 0.0, 1.0, 1.0), Arm("b", 0.0, 1.0, 1.0))
    problem = Problem(arms, 0.85, "monotonic", Noise("bernoulli"), slack=0.2, delta=0.1, budget=200_000)
    scenario = Scenario((Linear(0.9), Linear(0.3)), (Linear(0.9, 0.05), Linear(0.9, 0.05)))
    assert np.all(simulate(problem, scenario, DESIGN, 10, seed=11).winner == 0)


def test_an_arm_with_one_dose_only() -> None:
    arms = (Arm("a", 1.0, 1.0, 1.0), Arm("b", 0.0, 2.0, 1.0))
    problem = Problem(arms, 0.5, "monotonic", Noise("gaussian", 0.1), slack=0.2, delta=0.1)
    scenario = Scenario((Linear(0.1, 0.9), Linear(0.1)), (Linear(0.2), Linear(0.3)))
    assert np.all(simulate(problem, scenario, DESIGN, 10, seed=14).winner == 0)


ONCE_STALLED = ["flat-effect", "start-near-limit", "dose-levels", "equal-drugs", "harmless"]


@pytest.mark.parametrize("name", ONCE_STALLED)
def test_ends_without_a_runaway_tail(name: str) -> None:
    result = simulate(*case(name, budget=10**9), DESIGN, 10, seed=2)
    assert np.all(result.winner >= 0) and result.pulls.max() < 40 * np.median(result.pulls)


def test_a_plateau_hides_no_value() -> None:
    """Its slope was believed to be a part of the Lipschitz constant, and the dose that counts was far beyond."""
    result = simulate(*case("plateau", budget=10**9), DESIGN, 16, seed=2)
    assert np.all(result.winner == 0) and np.median(result.pulls) < 150_000


def test_a_knee_at_the_limit_is_found() -> None:
    """A rival was told from the leader by the effect on the flat part, where nothing is told of its harm: one trial in
    fifty took two hundred times as many pulls as the others."""
    result = simulate(*case("knee", budget=10**9), DESIGN, 48, seed=1)
    assert np.all(result.winner == 0) and result.pulls.max() < 15 * np.median(result.pulls)


def test_no_rival_is_left_at_a_level_under_the_limit() -> None:
    """Where it should be over the limit lies between two levels: at the lower one nothing was told, without end."""
    arms = tuple(Arm(name, 0.0, 1.0, 1.0, levels=tuple(k / 20 for k in range(21))) for name in "ab")
    problem = Problem(arms, 0.5, "monotonic", Noise("gaussian", 0.1), slack=0.2, delta=0.1, budget=200)
    scenario = Scenario((Linear(0.3, 0.03), Linear(0.3)), (Linear(0.72), Linear(0.73)))
    for state, _, _, _ in play(DESIGN, problem, scenario, trials=2):
        now, crossing = MonotonicPolicy().now(state), state.memory.guess.crossing
        given = now.rival & (np.floor(20 * crossing + 1) / 20 <= state.base) & (crossing < 1)
        assert np.all(~given | (now.dose > crossing - 1e-9) | shown(state, now.x))


def test_an_estimate_that_went_to_and_fro_holds_no_leader_back() -> None:
    problem, scenario = case("random-monotonic", instance=126, budget=300_000)
    result = simulate(problem, scenario, DESIGN, 10, seed=5)
    assert np.all(result.winner >= 0) and result.pulls.max() < 40 * np.median(result.pulls)


def test_many_pulls_outvote_a_few_odd_ones() -> None:
    """Where harm reaches the limit, for all that is known. Arms of trials that had no end: 24 early pulls at -1 read a
    harm far over the limit, half a million at 0.48 one far under it; and the other way round."""
    problem, _ = case("harmless")
    odd = problem.limit - 4 * problem.noises[1].scale / 5**0.5  # of some thousands of fives one is
    known = np.zeros((4, DOSES, 4))
    for k, pulls in enumerate(
        [
            ((-1.0, 24, 0.8), (0.48, 500_000, 0.05)), ((-0.2, 500_000, 0.9), (0.1, 24, 0.0)), ((0.0, 10, 0.3),),
            (*((-2 + 0.01 * j, 1, problem.limit) for j in range(DOSES - 2)),
             (0.0, 850_000, problem.limit), (0.2, 5, odd)),
        ]
    ):  # fmt: skip
        for j, (dose, n, harm) in enumerate(pulls):
            known[k, j] = n, n * dose, 0.0, n * harm
    arms = of_arms(problem, known, np.zeros(4, int))._replace(start=np.full(4, -3.0), largest=np.full(4, 1.0))
    low, high = crosses(problem, by_dose(problem, np.moveaxis(known, 0, -1)), arms)
    np.testing.assert_array_equal(low, [0.48, -3.0, -3.0, -3.0])
    np.testing.assert_array_equal(high, [1.0, -0.2, 1.0, 1.0])


def test_a_leader_goes_away_from_where_it_tells_nothing() -> None:
    """Its place is one where its effect is below the rival's, however it came to be."""
    problem, scenario = two(0.1, 1.0)
    state = next(s for s, *_ in play(DESIGN, problem, scenario, trials=1) if int(s.rounds[0]) == 40)
    policy, place = MonotonicPolicy(), state.memory.place.copy()
    leader = int(policy.leader(state)[0])
    place[0, leader, LOW] = 0.0
    state = replace(state, memory=Memory(state.memory.known, place, guess(problem, state.memory.known, place)))
    now = policy.now(state)
    assert now.moves[0, leader] and not np.any(now.moves[0] & now.rival[0]) and not np.any(now.climbs[0])
    assert policy.choose(state, np.zeros((1, 0))).n[0, leader] > 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([1, 7, 10**6])), min_size=1, max_size=60), st.integers(0, 1))
def test_what_is_remembered_stays_in_order(pulls: list[tuple[float, int]], arm: int) -> None:
    """Doses rise, those without pulls come last, and no pull is lost."""
    problem, _ = two()
    known, place = np.zeros((1, 2, DOSES, 4)), np.zeros((1, 2, 3))
    came, now = Chosen(np.arange(2)[None] == arm), guess(problem, known, place)
    total = np.zeros(4)
    for dose, n in pulls:
        count, doses = np.where(np.arange(2) == arm, n, 0)[None], np.full((1, 2), dose)
        outcome = Outcome(count, 0.5 * count, 0.1 * count)
        known, now = remember(problem, known, place, came, Cohort(doses, count), outcome, now)
        mine, used = known[0, arm], known[0, arm, :, 0] > 0
        total += np.array([n, n * dose, 0.5 * n, 0.1 * n])
        assert np.all(used[:-1] >= used[1:]) and np.all(known[0, 1 - arm] == 0)
        assert np.all(np.diff(mine[used, 1] / mine[used, 0]) >= -1e-12)
        np.testing.assert_allclose(mine.sum(axis=0), total)


def test_an_arm_is_estimated_alike_alone_and_among_others() -> None:
    """To the last digit: no trial depends on who else is in memory."""
    (problem, _), rng = two(), np.random.default_rng(7)
    known = np.zeros((1, 2, DOSES, 4))
    now, (alone, both) = (
        guess(problem, known, np.zeros((1, 2, 3))),
        (Chosen(np.array([[True, x]])) for x in (False, True)),
    )
    for _ in range(60):
        place, dose, n = rng.random((1, 2, 3)), rng.random((1, 2)), rng.integers(1, 50, (1, 2))
        outcome = Outcome(n, n * rng.random((1, 2)), n * rng.random((1, 2)))
        one, (known, now) = (remember(problem, known, place, x, Cohort(dose, n), outcome, now) for x in (alone, both))
        np.testing.assert_array_equal(one[0][:, 0], known[:, 0])
        for x, y in zip(vars(one[1]).values(), vars(now).values(), strict=True):
            np.testing.assert_array_equal(x[:, 0], y[:, 0])


ODD_ONES = [  # dose, pulls, harm, effect; of arms 7 and 3 of random-monotonic 126, in trials that had no end
    ((0.0739, 10, 0.12, 0.002), (0.4261, 1, -0.23, -0.006), (0.4965, 42_000_000, 0.4045, 0.0088)),
    ((0.3707, 8_700_000, 0.286, 0.0082), (0.4491, 1, 0.89, 0.0225), (0.4825, 1, 0.7, 0.0182)),
]  # fmt: skip


@pytest.mark.parametrize("pulls", ODD_ONES)
def test_one_odd_pull_does_not_outvote_millions_beside_it(pulls: Any) -> None:
    """Harm reaches the limit, 0.372, near 0.415, and the effect there is 0.0087 and 0.0096."""
    problem, _ = case("random-monotonic", instance=126)
    arms = len(problem.arms)
    known, place = np.zeros((1, arms, DOSES, 4)), np.full((1, arms, 3), pulls[-1][0])
    for j, (dose, n, harm, effect) in enumerate(pulls):
        known[:, :, j] = n, n * dose, n * effect, n * harm
    arm = 7 if pulls is ODD_ONES[0] else 3
    for _ in range(5):
        found = guess(problem, known, place)
        assert 0.38 < found.crossing[0, arm] < 0.46 and 0.007 < found.value[0, arm] < 0.011
        place[..., CROSS] = found.crossing


def test_no_cohort_is_staked_for_more_than_it_may_bring() -> None:
    """A passing error in an estimate, and a cohort of millions: the bet must not outweigh what comes after it."""
    problem, scenario = two(0.3)
    for k, (state, cohort, _, _) in enumerate(play(DESIGN, problem, scenario, trials=3)):
        stakes = DESIGN.policy.stakes(state, Cohort(cohort.dose, np.full_like(cohort.n, 10**8)))
        before = np.max(state.total[..., [5, 8]], axis=-1, keepdims=True)
        size, far = np.sqrt((MOST + before) / 1e8), 0.1 * np.sqrt(2 * RISK[0] / 1e8)
        assert not np.any(stakes[..., 3:] > 1.01 * size) and not np.any(np.abs(stakes[..., 2] - 0.5) > 1.01 * far)
        if k == 30:
            return
