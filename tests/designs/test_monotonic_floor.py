"""The floor of Theorem 2b: where its visits are, what they bet, and that it ends a study whatever the policy does."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot import Arm, Noise, Problem, Scenario, simulate
from surefoot.designs.base import Cohort
from surefoot.designs.compose import Policy
from surefoot.designs.monotonic_floor import CAP, FINEST, FIRST, SHARE, MonotonicFloor, bounds, contest, used
from surefoot.designs.surefoot import SurefootMonotonic
from surefoot.scenario import Linear
from surefoot.testing import play

from .policies import Astray


@dataclass(frozen=True)
class OnlyTheThird(Policy[Any]):
    """Pulls arm 3 alone, at its start dose, and bets on nothing."""

    floor = MonotonicFloor()

    def choose(self, state: Any, u: Any) -> Cohort:
        return Cohort(state.safe, np.where(np.arange(state.n.shape[1]) == 2, 2_000, 0) + 0 * state.n)

    def stakes(self, state: Any, cohort: Cohort) -> Any:
        return np.full((*cohort.dose.shape, 5), np.nan)


@dataclass(frozen=True)
class Wild(Astray):
    """Stakes of any size."""

    floor = MonotonicFloor()


def three(**changes: Any) -> tuple[Problem, Scenario]:
    """Harm is the dose, up to 1/2; the second arm is the best."""
    arms = tuple(Arm(name, 0.0, 1.0, 1.0) for name in "abc")
    problem = Problem(arms, 0.5, "monotonic", Noise("gaussian", 0.02), slack=0.3, delta=0.1)
    return problem.but(**changes), Scenario((Linear(0.2), Linear(0.2, 0.3), Linear(0.2, 0.1)), (Linear(1.0),) * 3)


def test_visits_are_where_the_rule_says() -> None:
    seen = list[int]()
    problem = three(noise=Noise("gaussian", 0.1), budget=300_000)
    for state, cohort, _, _ in play(SurefootMonotonic(OnlyTheThird()), *problem, trials=1):
        floor, visits = MonotonicFloor(), state.floor
        k, due = int(visits.count[0]), bool(floor.due(state)[0])
        assert visits.pulls[0] <= SHARE * state.pulls[0] + 1e-9
        if not due:
            assert (cohort.n > 0).tolist() == [[False, False, True]]
            continue
        left = state.standing[0] == 0
        assert np.all(cohort.n[0] == np.where(left, (k + FIRST) ** 2, 0))
        assert np.all(cohort.dose <= state.base)
        told, others = contest(state), np.full_like(cohort.stakes, 0.5)
        np.testing.assert_array_equal(floor.stakes(state, cohort, others), cohort.stakes)  # whatever the policy stakes
        if k % 4 == 0:
            assert np.all(cohort.dose == state.base)
        elif k % 12 == 1:
            assert np.all(cohort.dose == 0)
        elif k % 4 >= 2:
            assert np.all((cohort.dose[0] == told.dose[0]) | np.isnan(told.dose[0]))
            on = left & ~np.isnan(told.dose[0])
            size = np.where(told.leads[0], cohort.stakes[0, :, 4], cohort.stakes[0, :, 3])
            assert np.all(size[on] > 0)  # there it is bet on
        # what is sure is true: harm is the dose, the second arm leads
        sure = bounds(state.problem, used(state), cohort.dose[..., None])
        assert np.all((sure.calm[..., 0] <= cohort.dose) & (cohort.dose <= sure.harsh[..., 0]))
        assert told.gap.max() == 0 or np.argmax(told.leads[0]) == 1
        seen.append(k)
    assert seen == list(range(len(seen)))
    assert len(seen) > 15


def test_a_policy_that_pulls_one_arm_alone_ends() -> None:
    result = simulate(*three(budget=10**6), SurefootMonotonic(OnlyTheThird()), 8, seed=1, progress=False)
    assert np.all(result.winner == 1)


def test_no_stake_of_a_policy_is_above_its_cap() -> None:
    problem = three(budget=900)
    for state, cohort, _, _ in play(SurefootMonotonic(Wild()), *problem, trials=4):
        free, p = ~MonotonicFloor().due(state)[:, None], state.problem
        most = CAP * np.maximum(state.n + cohort.n, 1) ** -0.125
        climb, reach, harm, below, above = (cohort.stakes[..., i] for i in range(5))
        assert np.all(np.isnan(reach) | (reach >= FINEST * (p.largest - p.starts)))
        next_rung = p.ceiling - np.maximum(state.base - cohort.dose, 0.0)
        for guess, bound in ((harm, p.limit), (climb, next_rung)):
            off = np.where(np.isfinite(guess) & (guess < np.inf), bound - guess, 0.0) / p.noises[1].scale
            assert np.all(~free | (off <= most * (1 + 1e-9)))
        for size in (below, above):
            assert np.all(~free | ~np.isfinite(size) | (size <= most))


def test_visits_forget_an_early_error() -> None:
    """Only the last half of them counts."""
    design = SurefootMonotonic(OnlyTheThird())
    state = design.start(three()[0])
    visits = np.zeros((1, 3, 16, 4)) + np.array([0.2, 400.0, 0.0, 80.0])
    visits[:, :, 1, 3] = 4_000.0  # a harm of 10 at the dose 0.2
    for count, harm in ((2, 10.0), (8, 0.2)):
        known = used(replace(state, floor=replace(state.floor, seen=visits, count=np.array([count]))))
        found = bounds(state.problem, known, np.full((1, 3, 1), 0.3))
        assert np.all((found.calm < harm) & (found.calm > harm - 0.1))
