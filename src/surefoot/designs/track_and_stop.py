"""Track-and-Stop (Garivier and Kaufmann 2016), a control: the best arm where harm is no matter, one dose an arm.

Pulls follow the shares that would tell the arms of the present estimates apart soonest (their Theorem 5), with D-
tracking: an arm below sqrt(t) - d/2 pulls comes first, else the arm furthest behind its share. Divergences are those of
the noise: exact for Gaussian and binary readings, what sigma-sub-Gaussian readings tell at least for others.

It stops when the generalised likelihood ratio, the least over all rivals a of n_b d(m_b, x) + n_a d(m_a, x) at the
common mean x of leader b and rival, is above a threshold:
- `heuristic`: log((1 + log t) / delta), as in their experiments; no theorem says that it errs at most delta.
- `proven`: log((d - 1)/delta) and what the mixtures of `Noise.universal` cost for both arms. Their product over the two
  arms is a supermartingale at the true means; if a is the true best, some common x makes both divergences at most those
  at the true means. So only the d - 1 pairs with the true best arm can err, each with probability delta/(d - 1). For
  binary readings the mixture is that of their Theorem 10, whose log(2 t (d - 1)/delta) is an upper bound of this.

A round adds a share `growth` to all pulls; 0 pulls one at a time, as printed, and takes long to simulate.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ..arrays import Array, replace
from ..noise import Noise
from ..problem import Problem, choice, number
from .base import ACTIVE, BEST_ARM, WITHIN_TOLERANCE, Cohort, Outcome, State, blank
from .baseline import AnyShape, finite_top, gathered, mixture_radius

Threshold = Literal["proven", "heuristic"]


@dataclass(frozen=True, kw_only=True)
class OneDoseState(State):
    dose: Array
    n: Array
    effect: Array  # summed
    want: Array  # pulls of the next cohort


class OneDose(AnyShape[OneDoseState]):
    """A design that compares arms at one dose each. A subclass says at which, who is next, and when it is enough."""

    portable: ClassVar[bool] = False

    @abstractmethod
    def dose(self, problem: Problem) -> Array:
        """nan where the arm is never pulled."""

    @abstractmethod
    def enough(self, s: OneDoseState, leader: Array, mean: Array) -> Array:
        """Whether the leader is known to be best, (trials,)."""

    def begin(self, problem: Problem, trials: int, xp: Any) -> OneDoseState:
        first = blank(problem, trials, np)
        dose = self.dose(problem) + 0.0 * first["safe"]
        none = np.zeros_like(first["standing"])
        never = np.isnan(dose)
        return OneDoseState(
            **first, dose=np.where(never, first["safe"], dose), n=none, effect=none + 0.0, want=none + ~never
        )

    def plan(self, state: OneDoseState, u: Array) -> Cohort:
        return Cohort(state.dose, state.want)

    @abstractmethod
    def next_pulls(self, s: OneDoseState, leader: Array, mean: Array) -> Array:
        """How many pulls of every arm come next, once each has one."""

    def learn(self, state: OneDoseState, cohort: Cohort, outcome: Outcome) -> OneDoseState:
        p = state.problem
        s: OneDoseState = gathered(state, cohort, outcome)
        active, (leader, mean) = s.standing == ACTIVE, leading(s)
        won = self.enough(s, leader, mean) & np.all(~active | (s.n > 0), axis=1)
        radius = p.noises[0].scale * mixture_radius(s.n, p.delta / len(p.arms))
        first = active & (s.n == 0)
        some = np.where(np.any(first, axis=1, keepdims=True), first, self.next_pulls(s, leader, mean))
        how = WITHIN_TOLERANCE if p.tolerance is not None else BEST_ARM
        return replace(
            s,
            want=some.astype(np.int64),
            estimate=np.where(active & (s.n > 0), mean, -np.inf),
            lower=mean - radius,
            upper=mean + radius,
            found=np.where(won, how, s.found),
            ending=np.where(won, how, s.ending),
            winner=np.where(won, leader[:, 0], s.winner),
        )


@dataclass(frozen=True)
class TrackAndStop(OneDose):
    """Track-and-Stop at the largest doses, whatever their harm.

    when: The best arm where harm is no matter: how far our bounds are from the best known ones.
    threshold: proven, or heuristic: that of the paper
    growth: a round adds this share of all pulls; 0: one at a time, which takes long
    """

    threshold: Threshold = "proven"
    growth: float = 0.01

    name: ClassVar[str] = "track-and-stop"

    def __post_init__(self) -> None:
        choice("threshold", self.threshold, get_args(Threshold))
        number("growth", self.growth, least=0)

    @property
    def guarantee(self) -> bool:
        return False

    def dose(self, problem: Problem) -> Array:
        return finite_top(problem, self.name)

    def next_pulls(self, s: OneDoseState, leader: Array, mean: Array) -> Array:
        active, n = s.standing == ACTIVE, s.n.astype(float)
        t = n.sum(axis=1, keepdims=True)
        size = np.maximum(np.ceil(self.growth * t), 1.0)
        d = active.sum(axis=1, keepdims=True)
        shares = best_shares(mean, leader, active, s.problem.tolerance or 0.0, s.problem.noises[0])
        least = np.sqrt(t) - d / 2
        behind = np.round(np.maximum(np.where(active, (t + size) * shares - n, -np.inf), 0.0), 9)  # ties are ties
        starved = active & (n < least)
        behind = np.where(np.any(starved, axis=1, keepdims=True), np.where(starved, least - n, 0.0), behind)
        most = np.arange(n.shape[1]) == np.argmax(np.where(active, behind, -1.0), axis=1)[:, None]
        some = np.floor(behind * np.minimum(size / np.maximum(behind.sum(axis=1, keepdims=True), 1e-300), 1.0))
        return np.where(most, np.maximum(some, 1.0), some)

    def enough(self, s: OneDoseState, leader: Array, mean: Array) -> Array:
        p, n = s.problem, s.n.astype(float)
        rival = (s.standing == ACTIVE) & (np.arange(n.shape[1]) != leader)
        if self.threshold == "heuristic":
            weight, bar = n, np.log((1 + np.log(np.maximum(n.sum(axis=1, keepdims=True), 1.0))) / p.delta)
        else:
            weight, cost = p.noises[0].universal(n, mean)
            bar = math.log((len(p.arms) - 1) / p.delta) + cost + np.take_along_axis(cost, leader, axis=1)
        ratio = likelihood_ratio(weight, mean, leader, p.tolerance or 0.0, p.noises[0])
        return np.all(~rival | (ratio >= bar), axis=1)


def leading(s: OneDoseState) -> tuple[Array, Array]:
    """The active arm with the largest mean, (trials, 1), and the means."""
    mean = s.effect / np.maximum(s.n, 1)
    return np.argmax(np.where((s.standing == ACTIVE) & (s.n > 0), mean, -np.inf), axis=1)[:, None], mean


def likelihood_ratio(n: Array, mean: Array, leader: Array, tolerance: float, noise: Noise) -> Array:
    """Log of the generalised likelihood ratio of "the leader is better than this arm, less the tolerance" against not.

    With a tolerance the rival's mean is moved down by it, which is exact where divergences depend on the difference
    alone, as for Gaussian readings. 0 where the leader is not ahead.
    """
    n_b, m_b = (np.take_along_axis(x, leader, axis=1) for x in (n, mean))
    m = np.minimum(mean - tolerance, m_b)
    x = (n_b * m_b + n * m) / np.maximum(n_b + n, 1e-300)
    return n_b * noise.divergence(m_b, x) + n * noise.divergence(m, x)


def best_shares(mean: Array, leader: Array, active: Array, tolerance: float, noise: Noise) -> Array:
    """The shares of pulls w* of Theorem 5: those with which the least likelihood ratio grows fastest.

    With x_a = w_a / w_b, g_a(x) = d(m_b, m) + x d(m_a, m), m = (m_b + x m_a)/(1 + x), is the same y for all rivals a,
    and y is where the sum of d(m_b, m) / d(m_a, m) is 1. g_a is concave with slope d(m_a, m), so Newton's method comes
    from below; y by bisection. Arms that look alike are taken to be a little apart.
    """
    m_b = np.take_along_axis(mean, leader, axis=1)
    rival = active & (np.arange(mean.shape[1]) != leader)
    if noise.binary:  # at 0 or 1 a single reading would settle all
        m_b = np.clip(m_b, 1e-3, 1 - 1e-3)
    low = np.minimum(mean - tolerance, m_b - 0.02 * noise.scale)
    low = np.clip(low, 1e-4, None) if noise.binary else low
    low = np.where(rival, np.minimum(low, m_b * (1 - 1e-3) if noise.binary else low), m_b - noise.scale)
    far = np.maximum(noise.divergence(m_b, low), 1e-300)

    def ratios(y: Array) -> tuple[Array, Array]:
        x = y / np.maximum(noise.divergence(low, m_b), 1e-300)
        for _ in range(6):
            m = (m_b + x * low) / (1 + x)
            up, down = noise.divergence(m_b, m), np.maximum(noise.divergence(low, m), 1e-300)
            x = np.maximum(x + (y - up - x * down) / down, x)
        return np.where(rival, x, 0.0), np.where(rival, up / down, 0.0)

    least, most = np.zeros_like(m_b), np.min(np.where(rival, far, np.inf), axis=1, keepdims=True)
    for _ in range(16):
        y = 0.5 * (least + most)
        over = ratios(y)[1].sum(axis=1, keepdims=True) > 1 + 1e-9
        least, most = np.where(over, least, y), np.where(over, y, most)
    w = ratios(least)[0] + (np.arange(mean.shape[1]) == leader)
    return w / w.sum(axis=1, keepdims=True)
