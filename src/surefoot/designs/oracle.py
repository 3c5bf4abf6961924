"""The oracle, a control: it has been told every arm's largest safe dose, and compares the arms there.

Nothing is left to find out about harm, so what a safe design needs beyond its pulls is the price of not knowing. Pulls
follow the shares of Track-and-Stop. It stops by the bets of our own designs, with all of delta for the verdict.

Naming b is wrong with probability at most delta. Suppose arm k is in truth the best, x its mean, and b another. The
bets that readings of b have a mean above x (which it is not) and those that readings of k have one below x (which it is
not) are two supermartingales of different pulls (`Noise.mixture`, exact likelihood ratios for binary readings), so
their product is one, and for the d - 1 others b together P(any ever reaches (d - 1)/delta) <= delta (Ville). The
infimum over x is at most its value at the true x; b is named once it is log((d - 1)/delta) or more against every k.
Both logs are convex in x: the infimum is found by golden section. With a tolerance the bets on k are against x + it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array
from ..bounds import Mixture
from ..problem import Problem, SurefootError, number
from .base import ACTIVE, ALL_STOPPED, RUNNING, STOPPED
from .track_and_stop import Tracking, TrackState, likelihood_ratio

# The difference of two means, in sigmas (in log odds where binary): 0.02 to 2 are expected
DIFFERENCE = Mixture(top=2.0, ratio=2.0, dense=7, below=6, above=2)


@dataclass(frozen=True)
class Oracle(Tracking):
    """A control that has been told every arm's largest safe dose (doses; simulations fill them in) and compares the
    arms there. growth: how much is added to all pulls at a time."""

    doses: tuple[float, ...] | None = None
    growth: float = 0.05

    name: ClassVar[str] = "oracle"

    def __post_init__(self) -> None:
        given: Any = self.doses
        number("growth", self.growth, least=0)
        if given is not None:
            try:
                given = given.split(",") if isinstance(given, str) else given
                object.__setattr__(self, "doses", tuple(float(x) for x in given))
            except (TypeError, ValueError):
                raise SurefootError(f"doses must be one dose an arm, commas between; got {self.doses!r}") from None

    @property
    def guarantee(self) -> bool:
        return self.doses is not None

    def dose(self, problem: Problem) -> Array:
        if self.doses is None or len(self.doses) != len(problem.arms):
            need = f"oracle needs to be told the largest safe dose of each of the {len(problem.arms)} arms"
            raise SurefootError(f"{need}; got {self.doses}")
        dose = np.array(self.doses)
        if np.any((dose < problem.starts) | (dose > problem.largest)):
            raise SurefootError(f"oracle's doses must lie between start and max of their arms; got {self.doses}")
        return dose

    def begin(self, problem: Problem, trials: int, xp: Any) -> TrackState:
        s = super().begin(problem, trials, xp)
        never = np.isnan(self.dose(problem)) | np.zeros(s.dose.shape, bool)
        return replace(
            s,
            safe=s.dose,
            unsafe=s.dose,
            standing=np.where(never, STOPPED, ACTIVE),
            out_lower=np.where(never, problem.limit, np.nan),
            ending=np.where(np.all(never, axis=1), ALL_STOPPED, RUNNING),
        )

    def enough(self, s: TrackState, leader: Array, mean: Array) -> Array:
        p, n = s.problem, s.n.astype(float)
        noise, bar, shift = p.noises[0], math.log((len(p.arms) - 1) / p.delta), p.tolerance or 0.0
        rival = (s.standing == ACTIVE) & (np.arange(n.shape[1]) != leader)
        # no bets win more than the likelihood ratio: a look at that first
        won = np.all(~rival | (likelihood_ratio(n, mean, leader, shift, noise) >= bar), axis=1)
        row, k = np.nonzero(rival & won[:, None])
        b = leader[row, 0]

        def evidence(x: Array) -> Array:
            above = noise.mixture(s.effect[row, b], n[row, b], n[row, b], x, True, DIFFERENCE)
            return above + noise.mixture(s.effect[row, k], n[row, k], n[row, k], x + shift, False, DIFFERENCE)

        low, high = np.minimum(mean[row, k] - shift, mean[row, b]), mean[row, b]
        short = smallest(evidence, low, high) < bar
        return won & (np.bincount(row[short], minlength=len(won)) == 0)


def smallest(f: Any, low: Array, high: Array, steps: int = 32) -> Array:
    """The least value of a convex function between low and high, by golden section."""
    part = (math.sqrt(5) - 1) / 2
    for _ in range(steps):
        a, b = high - part * (high - low), low + part * (high - low)
        left = f(a) < f(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    return f(0.5 * (low + high))
