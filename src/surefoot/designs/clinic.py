"""What dose-finding trials use today, for comparison on ordered levels with binary harm: BOIN and 3+3. No guarantee.

Both look for the level of one drug whose harm is nearest to the limit. Here the drugs are tried one after the other,
each with an equal share of the budget, and in the end the drug with the largest
observed effect at its chosen level is named.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, replace
from ..problem import Problem, Shape, SurefootError, number
from .base import ALL_STOPPED, BEST_ARM, RUNNING, STOPPED, Cohort, Design, Outcome, State, blank
from .recommend import Estimates, isotonic, wilson


@dataclass(frozen=True, kw_only=True)
class ClinicState(State):
    """Sums at every level, (trials, arms, levels), and where each drug stands."""

    n: Array
    effect: Array
    harm: Array
    level: Array  # (trials, arms): the present one
    top: Array  # the highest that may still be given; -1: none, the drug is stopped
    done: Array


class OneByOne(Design[ClinicState]):
    """One drug after the other. A subclass says where one goes after a cohort (`move`) and what it ends with."""

    shape: ClassVar[Shape] = "levels"
    portable: ClassVar[bool] = False
    cohort: int
    subjects: int

    @property
    def guarantee(self) -> bool:
        return False

    @abstractmethod
    def move(self, s: ClinicState, n: Array, z: Array) -> ClinicState:
        """With the next level, the top and whether it is done, of every drug; n and z at its present level."""

    @abstractmethod
    def choice(self, s: ClinicState) -> Array:
        """The chosen level of every drug, -1 where none is fit."""

    def begin(self, problem: Problem, trials: int, xp: Any) -> ClinicState:
        if problem.noises[1].kind != "bernoulli":
            raise SurefootError(f"{self.name} is for binary harms; got {problem.noises[1].kind}")
        assert problem.levels is not None
        first, zero = blank(problem, trials, np), np.zeros((trials, *problem.levels.shape))
        none = np.zeros_like(first["safe"])
        top = none + problem.largest
        return ClinicState(**first, n=zero, effect=zero, harm=zero, level=none, top=top, done=none > 0)

    def share(self, problem: Problem) -> int:
        """Subjects of every drug."""
        each = problem.budget // len(problem.arms)
        return self.subjects if problem.budget == Problem.budget else each

    def plan(self, state: ClinicState, u: Array) -> Cohort:
        s = state
        turn = np.cumsum(~s.done, axis=1) == 1
        left = self.share(s.problem) - s.n.sum(axis=2)
        return Cohort(s.level, np.where(turn & ~s.done, np.clip(left, 1, self.cohort), 0).astype(np.int64))

    def learn(self, state: ClinicState, cohort: Cohort, outcome: Outcome) -> ClinicState:
        s, came = state, outcome.n > 0
        here = (cohort.dose[..., None] == np.arange(s.n.shape[2])) & came[..., None]
        n, y, z = (np.where(here, x[..., None], 0.0) for x in (outcome.n, outcome.effect, outcome.harm))
        s = replace(s, rounds=s.rounds + 1, n=s.n + n, effect=s.effect + y, harm=s.harm + z)
        now = s.level.astype(int)[..., None]
        moved = self.move(s, *(np.take_along_axis(x, now, axis=2)[..., 0] for x in (s.n, s.harm)))
        ours = came & ~s.done
        top: Array = np.where(ours, moved.top, s.top)
        level = np.where(ours, moved.level, s.level)
        done = s.done | (ours & (moved.done | (s.n.sum(axis=2) >= self.share(s.problem)) | (top < 0)))
        s = replace(s, level=np.maximum(np.minimum(level, top), 0), top=top, done=done)
        chosen = self.choice(s)
        seen = np.maximum(chosen, 0).astype(int)[..., None]
        rate = np.take_along_axis(s.effect / np.maximum(s.n, 1), seen, axis=2)[..., 0]
        estimate = np.where(chosen >= 0, rate, -np.inf)
        s = replace(s, safe=chosen, estimate=estimate, standing=np.where(done & (chosen < 0), STOPPED, s.standing))
        over = done.all(axis=1)
        found: Array = np.where(over, np.where((chosen >= 0).any(axis=1), BEST_ARM, ALL_STOPPED), RUNNING)
        won = found == BEST_ARM
        return replace(s, found=found * won, winner=np.where(won, np.argmax(estimate, axis=1), -1), ending=found)

    def seems(self, state: ClinicState) -> Estimates:
        level = np.maximum(state.safe, 0).astype(int)[..., None]
        n, y, z = (np.take_along_axis(x, level, axis=2)[..., 0] for x in (state.n, state.effect, state.harm))
        some = np.maximum(n, 1)
        return Estimates(np.maximum(state.safe, 0), state.estimate, z / some, wilson(y, n), wilson(z, n))

    def _within_budget(self, s: ClinicState) -> ClinicState:
        if s.problem.budget < len(s.problem.arms):
            raise SurefootError(f"{self.name} needs at least one subject an arm; the budget is {s.problem.budget}")
        return s


@dataclass(frozen=True)
class Boin(OneByOne):
    """The Bayesian optimal interval design (Liu and Yuan 2015) for one drug after the other: up where the observed rate
    of harm at the present level is at most lambda_e, down where it is at least lambda_d; a level, and those above, is
    given up where its rate is above the limit with posterior probability 0.95. The level with the isotonic estimate
    nearest to the limit is chosen. A budget is shared equally by the drugs.

    when: What dose-finding trials use: a target rate, one drug after the other. No error probability.
    cohort: subjects between two decisions
    subjects: of every drug, where there is no budget
    """

    cohort: int = 3
    subjects: int = 36

    name: ClassVar[str] = "boin"

    def __post_init__(self) -> None:
        number("cohort", self.cohort, least=1)
        number("subjects", self.subjects, least=1)

    def boundaries(self, target: float) -> tuple[float, float]:
        """lambda_e and lambda_d with the recommended phi_1 = 0.6 and phi_2 = 1.4 times the target."""
        low, high = 0.6 * target, min(1.4 * target, 0.999)
        e = math.log((1 - low) / (1 - target)) / math.log(target * (1 - low) / (low * (1 - target)))
        d = math.log((1 - target) / (1 - high)) / math.log(high * (1 - target) / (target * (1 - high)))
        return e, d

    def move(self, s: ClinicState, n: Array, z: Array) -> ClinicState:
        from scipy.special import betainc

        target = s.problem.limit
        low, high = self.boundaries(target)
        gone = (n >= 3) & (1 - betainc(1 + z, 1 + n - z, target) > 0.95)
        top = np.where(gone, np.minimum(s.top, s.level - 1), s.top)
        rate = z / np.maximum(n, 1)
        level = s.level + np.where(rate <= low, 1, np.where(rate >= high, -1, 0))
        return replace(s, level=np.clip(level, 0, np.maximum(top, 0)), top=top, done=top < 0)

    def choice(self, s: ClinicState) -> Array:
        rank = np.arange(s.n.shape[2])
        weight = np.where(s.n > 0, (s.n + 0.1) ** 2 * (s.n + 1.1), 0.0)
        rate = (s.harm + 0.05) / (s.n + 0.1)
        weight = weight / ((s.harm + 0.05) * (s.n - s.harm + 0.05))  # one over the posterior variance
        smooth = isotonic(rate * weight, weight) + 1e-10 * rank  # of equals below the limit the higher, above the lower
        off = np.where((s.n > 0) & (rank <= s.top[..., None]), np.abs(smooth - s.problem.limit), np.inf)
        return np.where(np.isfinite(off).any(axis=2), np.argmin(off, axis=2), -1.0)


@dataclass(frozen=True)
class ThreePlusThree(OneByOne):
    """3+3 for one drug after the other: three subjects a level, three more where one of them is harmed; up where none
    of three or one of six is, else the level below is chosen. It ends by itself, long before most budgets.

    when: What many trials still use: to compare with.
    """

    name: ClassVar[str] = "three-plus-three"
    cohort: ClassVar[int] = 3  # type: ignore[misc]
    subjects: ClassVar[int] = 36  # type: ignore[misc]

    def move(self, s: ClinicState, n: Array, z: Array) -> ClinicState:
        passes = ((n >= 3) & (z == 0)) | ((n >= 6) & (z <= 1))
        fails = (z >= 2) | ((n >= 6) & ~passes)
        top = np.where(fails, s.level - 1, s.top)
        done = fails | (passes & (s.level >= s.top))
        return replace(s, level=np.where(passes & ~done, s.level + 1, s.level), top=top, done=done)

    def choice(self, s: ClinicState) -> Array:
        """The highest level tried that was not failed; while there is one, those not yet passed do not count."""
        n, z = s.n, s.harm
        passed = ((n >= 3) & (z == 0)) | ((n >= 6) & (z <= 1))
        rank = np.arange(n.shape[2])
        best = np.max(np.where(passed & (rank <= s.top[..., None]), rank, -1), axis=2)
        return np.where((best < 0) & (s.top >= 0) & ~s.done, 0.0, best)
