"""Safe-LTS on a problem of arms with linear responses.

From Moradipari, Amani, Alizadeh and Thrampoulidis, "Safe linear Thompson sampling with side information" (2021): ridge
estimates with lambda = 1 of the slopes of effect and harm, a sampled slope of the effect, theta + beta_t V^(-1/2) eta,
and the pull with the largest sampled effect among those whose harm is certified. From the appendix of Wang, Wagenmaker
and Jamieson: arms are orthogonal coordinates, so each has estimates of its own; beta_t is their Abbasi-Yadkori formula;
and it stops as Algorithm 1 does, with these bounds: one arm's safe dose times the lower bound of its slope is above
every other's largest possible dose times the upper one.

Decided here: eta is standard normal, without the inflation that the regret theorem asks for (more of it would sample
even more widely). s_effect = s_harm = 5 bound both slopes: with s_effect = 1 weak arms are hardly ever sampled again,
and it does not stop in reasonable time. No guarantee is declared: beta_t as printed covers one reading, not two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, replace
from ..problem import Problem, Shape, number
from .base import Cohort, Design, Outcome, State, blank
from .baseline import abbasi_yadkori, conclude, finite_top
from .settle import round_down, wanted


@dataclass(frozen=True, kw_only=True)
class SafeLTSState(State):
    """Per arm: V = 1 + sum of a^2, and the sums of a * effect and a * harm."""

    V: Array
    ay: Array
    az: Array


@dataclass(frozen=True)
class SafeLTS(Design):
    """Safe linear Thompson sampling (Moradipari et al. 2021), with the stopping rule of Algorithm 1.

    when: Made for small regret, not for an answer. To compare with.
    s_effect: a bound on the slope of effects
    s_harm: and of harms
    """

    s_effect: float = 5.0
    s_harm: float = 5.0

    name: ClassVar[str] = "safe-lts"
    shape: ClassVar[Shape] = "linear"
    draws: ClassVar[int] = 1
    portable: ClassVar[bool] = False
    chunk: ClassVar[int] = 64

    def __post_init__(self) -> None:
        number("s_effect", self.s_effect, above=0)
        number("s_harm", self.s_harm, above=0)

    @property
    def guarantee(self) -> bool:
        return False

    def begin(self, problem: Problem, trials: int, xp: Any) -> SafeLTSState:
        finite_top(problem, self.name)
        none = np.zeros((trials, len(problem.arms)))
        return SafeLTSState(**blank(problem, trials, np), V=none + 1.0, ay=none, az=none)

    def need(self, state: SafeLTSState) -> Array:
        return np.ones_like(state.pulls)

    def radius(self, s: SafeLTSState, S: float, sigma: float) -> Array:
        """beta_t / sqrt(V), which bounds the error of a slope."""
        L2 = float(np.max(s.problem.largest) ** 2)
        return abbasi_yadkori(s.problem, s.pulls[:, None] + 1, L2, S, sigma) / np.sqrt(s.V)

    def plan(self, state: SafeLTSState, u: Array) -> Cohort:
        from scipy.special import ndtri

        s, p = state, state.problem
        eta = ndtri(spread(u[:, 0], len(p.arms)))
        slope = s.ay / s.V + self.radius(s, self.s_effect, p.noises[0].scale) * eta
        dose = np.where(slope > 0, s.safe, p.starts)
        arm = np.argmax(np.where(wanted(s), slope * dose, -np.inf), axis=1)
        return Cohort(dose, (np.arange(len(p.arms)) == arm[:, None]).astype(np.int64))

    def learn(self, state: SafeLTSState, cohort: Cohort, outcome: Outcome) -> SafeLTSState:
        p, a, n, came = state.problem, cohort.dose, outcome.n, outcome.n > 0
        s = replace(
            state,
            rounds=state.rounds + 1,
            pulls=state.pulls + np.sum(n, axis=1),
            V=state.V + np.where(came, n * a**2, 0.0),
            ay=state.ay + np.where(came, a * outcome.effect, 0.0),
            az=state.az + np.where(came, a * outcome.harm, 0.0),
        )
        theta, mu = s.ay / s.V, s.az / s.V
        e = self.radius(s, self.s_effect, p.noises[0].scale)
        w = self.radius(s, self.s_harm, p.noises[1].scale)
        high, low = np.maximum(mu + w, 1e-300), np.maximum(mu - w, 1e-300)
        safe = round_down(p, np.clip(p.limit / high, p.starts, p.largest))
        unsafe = round_down(p, np.clip(p.limit / low, p.starts, p.largest))
        lower, upper = safe * (theta - e), unsafe * (theta + e)
        s = replace(s, safe=safe, unsafe=unsafe, estimate=safe * theta, lower=lower, upper=upper)
        return conclude(s, p.starts * (mu - w))


def spread(u: Array, d: int) -> Array:
    """d uniform numbers from each of `u`: splitmix64 (Steele, Lea and Flood 2014) seeded by its 53 bits."""
    x = (u * 2.0**53).astype(np.uint64)[:, None] + np.arange(1, d + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
