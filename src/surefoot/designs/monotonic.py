"""SafeBAI-Monotonic: Algorithm 2 of Wang, Wagenmaker and Jamieson; L numbers are lines of its pseudocode.

In an epoch every active arm climbs towards the limit (SAFE), then either climbs on towards limit + slack (CLIMB) or,
once it is known to have crossed the limit, bisects back down (BISECT, and BACK when that gives up). The pseudocode
visits arm after arm; here one stage makes one Estimate of every arm that is not DONE with its epoch, side by side.
Arms do not influence each other within an epoch, so only t, which counts Estimates, is handed out in another order.

Guarantee (Lemmas 13, 15, 18 and 23). Estimate number t takes N = 2 sigma^2 log(8 t^2/delta)/epsilon^2 pulls, so by
Hoeffding one of its two means is off by more than epsilon with probability at most delta/(2 t^2), given all before it;
over all t that is at most delta * pi^2/12 < delta, whatever the dependence between the readings. Otherwise no pull is
above limit + slack and no arm that is eliminated is the best. The paper's constant schedule has no such sum, and so no
guarantee.

Readings of the pseudocode that keep the proof:
- L4: epsilon_l is 2^-l anew in every epoch, and N_{l,t} is computed anew for every Estimate.
- L18 is also tested after the first Estimate of the climb, or the epoch bound log2(8/slack) can fail.
- L19, L27: the dose that was shown unsafe is kept; the index as printed would point at the one before it.
- L27: back at the old unsafe dose it is estimated again, since its old estimate has a larger epsilon.
- A known Lipschitz constant K divides the steps, and L26 reads K (a_u - a) <= epsilon.
- A largest dose M: doses are capped there. If M is certified safe, the value is f(M), and one Estimate serves both
  bounds; if the climb reaches M without crossing, f(M) still bounds the value, since no dose above M counts.
- Levels: doses are rounded down to one, and a step that leads to no new level ends the climb or the bisection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from ..arrays import Array, array_namespace, like, replace
from ..checks import number_or
from ..problem import Problem, Shape, choice
from .base import blank
from .settle import round_down, settle, wanted
from .staged import Staged, StageState, stage, units

Schedule = Literal["theory", "paper"]
SAFE, CLIMB, BISECT, BACK, DONE = range(5)


@dataclass(frozen=True, kw_only=True)
class MonotonicState(StageState):
    """a_s is `safe`; a_u is the dose of the climb, from L19 on one that was shown to be unsafe."""

    epoch: Array  # l
    t: Array  # Estimates so far
    phase: Array
    a_u: Array
    crossed: Array  # unsafe(i) of the pseudocode
    f_s: Array  # this epoch's estimate of the effect at a_s
    f_u: Array  # and at a_u


@dataclass(frozen=True)
class SafeBAIMonotonic(Staged[MonotonicState]):
    """Algorithm 2 of the paper: as Algorithm 1, climbing by steps that the Lipschitz constants allow.

    when: The paper's Algorithm 2, to compare with.
    schedule: theory, or paper: a constant, without a guarantee
    unit: of the tolerances: in epoch l it is unit / 2^l; a number, or "auto": the root of 10 times sigma, which is 1 on
        the paper's instances
    """

    schedule: Schedule = "theory"
    unit: float | str = "auto"

    name: ClassVar[str] = "safebai-monotonic"
    shape: ClassVar[Shape] = "monotonic"

    def __post_init__(self) -> None:
        choice("schedule", self.schedule, get_args(Schedule))
        object.__setattr__(self, "unit", number_or("unit", self.unit, "auto"))

    @property
    def guarantee(self) -> bool:
        return self.schedule == "theory"

    def begin(self, problem: Problem, trials: int, xp: Any) -> MonotonicState:
        first = blank(problem, trials, xp)
        a0, none = first["safe"], xp.zeros((trials, len(problem.arms)), dtype=xp.int64)
        s = MonotonicState(
            **first, dose=a0, want=none, n=none, effect=a0, harm=a0,
            epoch=xp.ones(trials, dtype=xp.int64), t=xp.zeros(trials, dtype=xp.int64),
            phase=none, a_u=a0, crossed=none > 0, f_s=a0, f_u=a0,
        )  # fmt: skip
        return self.estimate(s, a0)

    def units(self, p: Problem) -> tuple[float, float, float]:
        return units(p, self.unit, math.sqrt(10) * p.noises[1].scale)

    def epsilon(self, s: MonotonicState) -> tuple[Array, Array]:
        """Of effect and harm."""
        xp = array_namespace(s.pulls)
        part = 2.0 ** -xp.astype(s.epoch, xp.float64)[:, None]
        effect, harm, _ = self.units(s.problem)
        return effect * part, harm * part

    def estimate(self, s: MonotonicState, dose: Array) -> MonotonicState:
        """Estimate(dose, N) for every arm that is not done with its epoch; t is handed out in arm order."""
        xp, p = array_namespace(s.pulls), s.problem
        pending = wanted(s) & (s.phase != DONE)
        t = s.t[:, None] + xp.cumulative_sum(xp.astype(pending, xp.int64), axis=1)
        log = (
            xp.log(8 * xp.astype(t, xp.float64) ** 2 / p.delta)
            if self.schedule == "theory"
            else xp.log(like(dose, 8**2 / p.delta))
        )
        N = 2 * self.units(p)[2] ** 2 * log / self.epsilon(s)[1] ** 2  # rounded up by `stage`
        return stage(replace(s, t=t[:, -1]), dose, xp.where(pending, N, 0.0))

    def decide(self, s: MonotonicState) -> MonotonicState:
        """One Estimate of every arm has come: each goes on with the part of its epoch that it is in."""
        xp, e, phase = array_namespace(s.pulls), self.estimated(s), s.phase
        s = replace(s, phase=xp.full_like(phase, DONE))  # with its epoch, if no part goes on
        s = self.safe_climb(s, e, e.came & (phase == SAFE))
        s = self.unsafe_climb(s, e, e.came & (phase == CLIMB))
        s = self.bisection(s, e, e.came & (phase == BISECT))
        s = replace(s, f_u=xp.where(e.came & (phase == BACK), e.f, s.f_u))
        return self.end_of_epoch(s, e)

    def estimated(self, s: MonotonicState) -> Estimates:
        xp, p, (eps_f, eps) = array_namespace(s.pulls), s.problem, self.epsilon(s)
        n = xp.astype(xp.maximum(s.n, xp.ones_like(s.n)), xp.float64)
        f, g = s.effect / n, s.harm / n
        return Estimates(
            s.want > 0, s.dose, f, g, eps_f, eps, g - eps >= p.limit, like(f, p.largest), like(f, p.lipschitz)
        )

    def safe_climb(self, s: MonotonicState, e: Estimates, here: Array) -> MonotonicState:
        """L9-L12: raise the safe dose while there is room above the noise floor."""
        xp, gamma = array_namespace(s.pulls), s.problem.limit
        up = e.step(s.problem, gamma)
        on = here & (gamma - e.g > 2 * e.eps) & (up > e.a)
        f_s, estimate = (xp.where(here, e.f, x) for x in (s.f_s, s.estimate))
        s = go(replace(s, safe=xp.where(on, up, s.safe), f_s=f_s, estimate=estimate), on, SAFE, up)
        ends = here & ~on
        # the largest dose is safe: one estimate serves both bounds
        top = ends & (e.a >= e.M)
        s = replace(s, a_u=xp.where(top, e.M, s.a_u), f_u=xp.where(top, e.f, s.f_u))
        # L13, L21: on to the unsafe dose, which is still to be found, or to be brought down
        s = go(s, ends & ~top & ~s.crossed, CLIMB, s.a_u)
        turns = ends & ~top & s.crossed
        return self.halve(s, turns, s.safe, turns)

    def unsafe_climb(self, s: MonotonicState, e: Estimates, here: Array) -> MonotonicState:
        """L14-L20: raise the unsafe dose towards limit + slack until it has crossed the limit."""
        xp, ceiling = array_namespace(s.pulls), s.problem.ceiling
        up = e.step(s.problem, ceiling)
        on = here & ~e.above & (ceiling - e.g > 2 * e.eps) & (up > e.a)
        s = replace(s, f_u=xp.where(here, e.f, s.f_u), crossed=s.crossed | (here & e.above))
        return go(replace(s, a_u=xp.where(on, up, s.a_u)), on, CLIMB, up)

    def bisection(self, s: MonotonicState, e: Estimates, here: Array) -> MonotonicState:
        """L22-L29: bring the unsafe dose back down by bisection, as far as it can still be shown to be unsafe."""
        xp, lands = array_namespace(s.pulls), here & e.above
        s = replace(s, a_u=xp.where(lands, e.a, s.a_u), f_u=xp.where(lands, e.f, s.f_u))
        near = e.K * (s.a_u - round_down(s.problem, (s.a_u + e.a) / 2)) <= e.eps
        return self.halve(s, here & ~e.above, e.a, ~near)

    def halve(self, s: MonotonicState, here: Array, low: Array, far: Array) -> MonotonicState:
        """L22, L25-L27: half way from `low` to the unsafe dose, or back at that where they are not `far` apart."""
        half = round_down(s.problem, (s.a_u + low) / 2)
        on = here & far & (half > low)
        return go(go(s, on, BISECT, half), here & ~on, BACK, s.a_u)

    def end_of_epoch(self, s: MonotonicState, e: Estimates) -> MonotonicState:
        """L30: once all arms are done, bounds and elimination; then the next epoch begins at the safe doses."""
        xp, p = array_namespace(s.pulls), s.problem
        harm_at_start = xp.where(e.came & (e.a == like(e.a, p.starts)), e.g - e.eps, -xp.inf)
        ends = xp.all((s.phase == DONE) | ~wanted(s) | (harm_at_start > p.limit), axis=1)[:, None]
        fresh, dose = ends & wanted(s), xp.where(s.phase == DONE, s.a_u, s.dose)
        bounded = s.crossed | (s.a_u >= e.M)
        s = replace(
            s,
            lower=xp.where(fresh, s.f_s - e.eps_f, s.lower),
            upper=xp.where(fresh & bounded, s.f_u + e.eps_f, s.upper),
            unsafe=xp.where(fresh & s.crossed, s.a_u, s.unsafe),
            epoch=xp.where(ends[:, 0], s.epoch + 1, s.epoch),
            phase=xp.where(ends, SAFE, s.phase),
        )
        s = settle(s, harm_at_start)
        return self.estimate(s, xp.where(ends, s.safe, dose))


class Estimates(NamedTuple):
    """What came back of every arm: f^ and g^ at the dose a, within eps_f and eps; `above`: a is shown to be unsafe."""

    came: Array
    a: Array
    f: Array
    g: Array
    eps_f: Array
    eps: Array
    above: Array
    M: Array
    K: Array

    def step(self, p: Problem, bar: float) -> Array:
        """L10, L16: as far up as harm cannot pass `bar`."""
        xp = array_namespace(self.a)
        return round_down(p, xp.minimum(self.a + (bar - self.g - self.eps) / self.K, self.M))


def go(s: MonotonicState, where: Array, phase: int, dose: Array) -> MonotonicState:
    """`s` with these arms in this phase, to be estimated at this dose."""
    xp = array_namespace(s.pulls)
    return replace(s, phase=xp.where(where, phase, s.phase), dose=xp.where(where, dose, s.dose))
