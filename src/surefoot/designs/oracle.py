"""The oracle, a control: it has been told every arm's largest safe dose, and compares the arms there.

Nothing is left to find out about harm, so what a safe design needs beyond its pulls is the price of not knowing. It
stops by the bets of our own designs, with all of delta for the verdict. Pulls go to the leader b or to the rival a with
the least likelihood ratio: to b while the sum over rivals of d(m_b, x_a) / d(m_a, x_a), at the common means x_a, is
above 1, which it is not at the best shares (Garivier and Kaufmann 2016, Theorem 5); a twentieth more at a time.

Naming b is wrong with probability at most delta. Suppose arm k is in truth the best, x its mean, and b another. The
bets that readings of b have a mean above x (which it is not) and those that readings of k have one below x (which it is
not) are two supermartingales of different pulls (`Noise.mixture`, exact likelihood ratios for binary readings), so
their product is one, and for the d - 1 others b together P(any ever reaches (d - 1)/delta) <= delta (Ville). The
infimum over x is at most its value at the true x; b is named once it is log((d - 1)/delta) or more against every k.
Both logs are convex in x: the infimum is found by golden section. With a tolerance the bets on k are against x + it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, replace
from ..bounds import Mixture
from ..problem import Problem, SurefootError
from .base import ACTIVE, ALL_STOPPED, RUNNING, STOPPED
from .track_and_stop import OneDose, OneDoseState, likelihood_ratio

# The difference of two means, in sigmas (in log odds where binary): 0.02 to 2 are expected
DIFFERENCE = Mixture(top=2.0, ratio=2.0, dense=7, below=6, above=2)


GROWTH = 0.05  # a round adds a twentieth to the pulls of one arm, and more where there are many: there rounds are too


@dataclass(frozen=True)
class Oracle(OneDose):
    """A control that has been told every arm's largest safe dose and compares the arms there.

    when: Not a design: what it would cost if every largest safe dose were known.
    doses: of every arm; simulations fill them in
    """

    doses: tuple[float, ...] | None = None

    name: ClassVar[str] = "oracle"

    def __post_init__(self) -> None:
        given: Any = self.doses
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

    def begin(self, problem: Problem, trials: int, xp: Any) -> OneDoseState:
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

    def next_pulls(self, s: OneDoseState, leader: Array, mean: Array) -> Array:
        noise, shift, n = s.problem.noises[0], s.problem.tolerance or 0.0, s.n.astype(float)
        arms = np.arange(n.shape[1])
        rival = (s.standing == ACTIVE) & (arms != leader)
        ratio = np.where(rival, likelihood_ratio(n, mean, leader, shift, noise), np.inf)
        weakest = np.argmin(ratio + np.log(np.maximum(n, 1.0)), axis=1)[:, None]
        n_b, m_b = (np.take_along_axis(x, leader, axis=1) for x in (n, mean))
        low = np.minimum(mean - shift, m_b)
        x = (n_b * m_b + n * low) / np.maximum(n_b + n, 1.0)
        up, down = noise.divergence(m_b, x), noise.divergence(low, x)
        # where leader and rival look alike, as many pulls of each
        parts = np.where(down > 1e-12, up / np.maximum(down, 1e-12), (n / np.maximum(n_b, 1.0)) ** 2)
        ahead = np.sum(np.where(rival, parts, 0.0), axis=1, keepdims=True) > 1
        arm = np.where(ahead | ~np.any(rival, axis=1, keepdims=True), leader, weakest)
        return np.where(arms == arm, np.maximum(np.ceil(max(GROWTH, 0.002 * n.shape[1]) * n), 1.0), 0.0)

    def enough(self, s: OneDoseState, leader: Array, mean: Array) -> Array:
        p, n = s.problem, s.n.astype(float)
        noise, bar, shift = p.noises[0], math.log((len(p.arms) - 1) / p.delta), p.tolerance or 0.0
        rival = (s.standing == ACTIVE) & (np.arange(n.shape[1]) != leader)
        # the least over x is at most the likelihood ratio, and at most what it is at the common mean: these come first
        won = np.all(~rival | (likelihood_ratio(n, mean, leader, shift, noise) >= bar), axis=1)
        for find in (common, smallest):
            row, k = np.nonzero(rival & won[:, None])
            if not len(row):  # as in most rounds
                break
            two = [(s.effect[row, i], n[row, i]) for i in (leader[row, 0], k)]

            def evidence(x: Array, two: Any = two) -> Array:
                (y_b, n_b), (y_k, n_k) = two
                above = noise.mixture(y_b, n_b, n_b, x, True, DIFFERENCE)
                return above + noise.mixture(y_k, n_k, n_k, x + shift, False, DIFFERENCE)

            (m_b, n_b), (m_k, n_k) = ((y / np.maximum(m, 1.0), m) for y, m in two)
            short = find(evidence, np.minimum(m_k - shift, m_b), m_b, n_k / np.maximum(n_b + n_k, 1.0)) < bar
            won = won & (np.bincount(row[short], minlength=len(won)) == 0)
        return won


def common(f: Any, low: Array, high: Array, share: Array) -> Array:
    """f at the common mean: `share` of the way from high to low."""
    return f(high + share * (low - high))


def smallest(f: Any, low: Array, high: Array, share: Array, steps: int = 32) -> Array:
    """The least value of a convex function between low and high, by golden section."""
    part = (math.sqrt(5) - 1) / 2
    for _ in range(steps):
        a, b = high - part * (high - low), low + part * (high - low)
        left = f(a) < f(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    return f(0.5 * (low + high))
