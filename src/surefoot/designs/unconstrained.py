"""The unconstrained design, a control: it answers the same question and ignores the limit when it pulls.

What it needs fewer than a safe design is what safety costs; the simulator flags its pulls as unsafe. The rules are
ours. The error of a mean of n readings is at most sigma sqrt((n + rho) (2 log(1/alpha) + log(1 + n/rho))) / n at all
times with probability 1 - alpha (normal mixture, Robbins 1970). Eliminations are as in Algorithm 1, and a round adds a
tenth to the pulls of every arm that is left.

Linear shape: every pull is at the largest dose M, where it tells most about both slopes; alpha = delta/(2 d) for two
readings of d arms. Monotonic shape: bisection from the largest dose down. An arm is pulled at one dose until its harm
there is known to be above the limit or at most at it; the effect there then bounds the value from above or from below,
and the next dose is half way between the nearest two. A dose too near to the limit to tell is given up for another one.
The k-th dose of an arm has alpha = delta/(2 d k (k + 1)), which sums to the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, replace
from ..problem import Problem
from .base import Cohort, Outcome, State, blank
from .baseline import AnyShape, finite_top, gathered, mixture_radius
from .settle import round_down, settle, wanted

GROWTH = 0.1  # a round adds a tenth to the pulls of every arm that is left


@dataclass(frozen=True, kw_only=True)
class UnconstrainedState(State):
    """What came back at the present dose of every arm; `safe` and `unsafe` are the nearest doses known to be so."""

    dose: Array
    n: Array
    effect: Array  # summed
    harm: Array
    k: Array  # which dose of the arm this is, from 1
    given_up: Array  # how many were too near to the limit


@dataclass(frozen=True)
class Unconstrained(AnyShape[UnconstrainedState]):
    """A control that ignores the limit when it pulls: only the largest dose in the linear shape, bisection from there
    in the monotonic one. Its pulls are unsafe.

    when: Not a design for people: what it would cost if harm were no matter.
    """

    name: ClassVar[str] = "unconstrained"
    portable: ClassVar[bool] = False

    @property
    def guarantee(self) -> bool:
        return False

    def begin(self, problem: Problem, trials: int, xp: Any) -> UnconstrainedState:
        first = blank(problem, trials, np)
        dose = np.zeros_like(first["safe"]) + finite_top(problem, self.name)
        none, zero = np.zeros_like(first["standing"]), np.zeros_like(dose)
        return UnconstrainedState(**first, dose=dose, n=none, effect=zero, harm=zero, k=none + 1, given_up=none)

    def plan(self, state: UnconstrainedState, u: Array) -> Cohort:
        some = np.maximum(np.ceil(GROWTH * state.n), 1).astype(np.int64)
        return Cohort(state.dose, np.where(wanted(state), some, 0))

    def learn(self, state: UnconstrainedState, cohort: Cohort, outcome: Outcome) -> UnconstrainedState:
        s = gathered(state, cohort, outcome)
        p, n = s.problem, np.maximum(s.n, 1)
        unit = mixture_radius(s.n, p.delta / (2 * len(p.arms) * (s.k * (s.k + 1) if p.shape == "monotonic" else 1)))
        y, z, e_y, e_z = s.effect / n, s.harm / n, unit * p.noises[0].scale, unit * p.noises[1].scale
        s = self.lines(s, y, z, e_y, e_z) if p.shape == "linear" else self.bisect(s, y, z, e_y, e_z)
        return settle(s, np.full_like(s.lower, -np.inf))

    def lines(self, s: UnconstrainedState, y: Array, z: Array, e_y: Array, e_z: Array) -> UnconstrainedState:
        p, M = s.problem, s.dose
        high, low = np.maximum(z + e_z, 1e-300), np.maximum(z - e_z, 1e-300)
        safe = round_down(p, np.clip(M * (p.limit / high), p.starts, M))
        unsafe = round_down(p, np.clip(M * (p.limit / low), p.starts, M))
        lower, upper = safe / M * (y - e_y), unsafe / M * (y + e_y)
        return replace(s, safe=safe, unsafe=unsafe, estimate=safe / M * y, lower=lower, upper=upper)

    def bisect(self, s: UnconstrainedState, y: Array, z: Array, e_y: Array, e_z: Array) -> UnconstrainedState:
        p, x = s.problem, s.dose
        final: Array = x == s.safe  # no dose above it can be safe: both bounds come from here
        above, below = (z - e_z > p.limit) & ~final, (z + e_z <= p.limit) | final
        lo: Array = np.where(below, x, s.safe)
        hi: Array = np.where(above, x, s.unsafe)
        unclear = ~above & ~below & (e_z <= p.noises[1].scale * 0.5 ** (s.given_up + 1.0))
        given_up = s.given_up + unclear
        share = np.where(unclear, np.where(given_up % 2 == 1, 0.25, 0.75), 0.5)
        there = round_down(p, lo + share * (hi - lo))
        there = np.where(there > lo, there, np.maximum(round_down(p, np.nextafter(hi, -math.inf)), lo))
        moves = (above | below | unclear) & (there != x)
        final = below & (lo == there)
        return replace(
            s,
            safe=lo,
            unsafe=hi,
            lower=np.where(below, np.maximum(s.lower, y - e_y), s.lower),
            upper=np.where(above | final, np.minimum(s.upper, y + e_y), s.upper),
            estimate=np.where(below, y, s.estimate),
            given_up=given_up,
            dose=np.where(moves, there, x),
            k=s.k + moves,
            n=np.where(moves, 0, s.n),
            effect=np.where(moves, 0.0, s.effect),
            harm=np.where(moves, 0.0, s.harm),
        )
