"""What the baselines share: how wide their bounds are, and when they stop."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, replace
from ..bounds import RHO
from ..problem import Problem, SurefootError
from .base import ACTIVE, Cohort, Design, Outcome, S, select
from .settle import settle


class AnyShape(Design[S]):
    """A design that takes problems of either shape."""

    shape: ClassVar[Any] = "any"

    def start(self, problem: Problem, trials: int = 1, xp: Any = np) -> S:
        if trials < 1:
            raise SurefootError(f"trials must be at least 1; got {trials}")
        return self._within_budget(self.begin(problem, trials, xp))


def finite_top(problem: Problem, name: str) -> NDArray[np.float64]:
    """The largest doses, for designs that cannot do without."""
    if endless := [arm.name for arm in problem.arms if math.isinf(arm.largest)]:
        raise SurefootError(f"{name} needs a largest dose (max) for every arm; there is none for {', '.join(endless)}")
    return problem.largest


def abbasi_yadkori(problem: Problem, t: Array, L2: float, S: float, sigma: float) -> Array:
    """beta_t of the paper's appendix, after Theorem 2 of Abbasi-Yadkori, Pal and Szepesvari (2011), with lambda = 1:
    sigma sqrt(log(d (1 + (t - 1) L^2) / delta)) + S. `t` counts pulls of all arms; S bounds the parameter."""
    d = len(problem.arms)
    return sigma * np.sqrt(np.log(d * (1.0 + (t - 1.0) * L2) / problem.delta)) + S


def mixture_radius(n: Array, alpha: Array) -> Array:
    """By how many sigmas a mean of n readings may be off at any time, but for probability alpha (Robbins 1970)."""
    some = np.maximum(n, 1)
    radius = np.sqrt((some + RHO) * (2 * np.log(1 / alpha) + np.log1p(some / RHO))) / some
    return np.where(n > 0, radius, np.inf)


def gathered(s: Any, cohort: Cohort, outcome: Outcome) -> Any:
    """A state that sums readings at one dose an arm, with these taken in; those at other doses are left out."""
    ours = (outcome.n > 0) & (cohort.dose == s.dose)
    sums = {
        key: getattr(s, key) + np.where(ours, getattr(outcome, key), 0.0)
        for key in ("effect", "harm")
        if hasattr(s, key)
    }
    return replace(s, rounds=s.rounds + 1, n=s.n + np.where(ours, outcome.n, 0), **sums)


def conclude(s: S, harm_at_start: Array, ready: Array = True) -> S:
    """End where one arm's lower bound is above the upper bounds of all others at once, in the trials that are `ready`.

    These designs eliminate nobody on the way, so until then an arm only leaves when its start dose is shown unsafe.
    """
    p = s.problem
    if np.any((harm_at_start > p.limit) & (s.standing == ACTIVE)):
        nobody_beaten = replace(s, upper=np.full_like(s.upper, np.inf))
        s = replace(settle(nobody_beaten, harm_at_start), upper=s.upper)
    active = s.standing == ACTIVE
    bar = np.max(np.where(active, s.lower, -np.inf), axis=1, keepdims=True) + (p.tolerance or 0.0)
    close = (np.sum(active & (s.upper > bar), axis=1) <= 1) & ready
    if not np.any(close):
        return s
    ended = settle(s, np.full_like(s.lower, -np.inf))
    return select(close & (ended.found > 0), ended, s)
