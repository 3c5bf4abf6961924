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

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from array_api_compat import array_namespace

from ..arrays import Array, like
from ..problem import Problem, Shape, choice, number
from .base import blank
from .settle import round_down, settle, wanted
from .staged import Staged, StageState, stage

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
    """Algorithm 2 of the paper. schedule: theory (the default) or paper (a constant, without a guarantee)."""

    schedule: Schedule = "theory"
    unit: float = (
        1.0  # epsilon_l = unit * 2^-l; the paper has 1. Set it to the scale of the readings where that is far from 1.
    )

    name: ClassVar[str] = "safebai-monotonic"
    shape: ClassVar[Shape] = "monotonic"

    def __post_init__(self) -> None:
        choice("schedule", self.schedule, get_args(Schedule))
        number("unit", self.unit, above=0)

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

    def epsilon(self, s: MonotonicState) -> Array:
        xp = array_namespace(s.pulls)
        eps: Array = self.unit * 2.0 ** -xp.astype(s.epoch, xp.float64)[:, None]
        return eps

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
        N = 2 * p.sigma**2 * log / self.epsilon(s) ** 2  # rounded up by `stage`
        return stage(replace(s, t=t[:, -1]), dose, xp.where(pending, N, 0.0))

    def decide(self, s: MonotonicState) -> MonotonicState:
        xp, p = array_namespace(s.pulls), s.problem
        a0, M, K = like(s.dose, p.starts), like(s.dose, p.largest), like(s.dose, p.lipschitz)
        gamma, ceiling, eps = p.limit, p.ceiling, self.epsilon(s)
        n = xp.astype(xp.maximum(s.n, xp.ones_like(s.n)), xp.float64)
        a, f, g, came = s.dose, s.effect / n, s.harm / n, s.want > 0
        phase = xp.where(came, s.phase, DONE)
        safing, climbing, bisecting, back = phase == SAFE, phase == CLIMB, phase == BISECT, phase == BACK
        above = g - eps >= gamma  # this dose is shown to be unsafe
        harm_at_start = xp.where(came & (a == a0), g - eps, -xp.inf)

        # L9-L12: raise the safe dose while there is room above the noise floor
        up = round_down(p, xp.minimum(a + (gamma - g - eps) / K, M))
        on = safing & (gamma - g > 2 * eps) & (up > a)
        a_s = xp.where(on, up, s.safe)
        f_s = xp.where(safing, f, s.f_s)
        safe_ends = safing & ~on
        top = safe_ends & (a >= M)  # the largest dose is safe: one estimate serves both bounds

        # L14-L20: raise the unsafe dose towards limit + slack until it has crossed the limit
        crosses = climbing & above
        up = round_down(p, xp.minimum(a + (ceiling - g - eps) / K, M))
        higher = climbing & ~above & (ceiling - g > 2 * eps) & (up > a)
        a_u = xp.where(higher, up, xp.where(top, M, s.a_u))

        # L22-L29: bring it back down by bisection, as far as it can still be shown to be unsafe
        lands = bisecting & above
        a_u = xp.where(lands, a, a_u)
        halfway = round_down(p, (s.a_u + xp.where(bisecting, a, a_s)) / 2)
        turns = safe_ends & ~top & s.crossed
        again = bisecting & ~above & (K * (s.a_u - halfway) > eps) & (halfway > a)
        bisects = again | (turns & (halfway > a_s))
        gives_up = (bisecting & ~above & ~again) | (turns & ~bisects)
        climbs = higher | (safe_ends & ~top & ~s.crossed)

        phase = xp.where(
            on,
            SAFE,
            xp.where(climbs, CLIMB, xp.where(bisects, BISECT, xp.where(gives_up, BACK, xp.full_like(phase, DONE)))),
        )
        s = replace(
            s, phase=phase, safe=a_s, a_u=a_u, crossed=s.crossed | crosses, f_s=f_s,
            f_u=xp.where(climbing | lands | back | top, f, s.f_u), estimate=xp.where(safing, f, s.estimate),
        )  # fmt: skip
        dose = xp.where(on, a_s, xp.where(bisects, halfway, a_u))

        # L30: at the end of the epoch, bounds and elimination; then the next epoch begins at the safe doses
        ends = xp.all((phase == DONE) | ~wanted(s) | (harm_at_start > gamma), axis=1)[:, None]
        fresh = ends & wanted(s)
        bounded = s.crossed | (s.a_u >= M)
        s = settle(
            replace(
                s,
                lower=xp.where(fresh, s.f_s - eps, s.lower),
                upper=xp.where(fresh & bounded, s.f_u + eps, s.upper),
                unsafe=xp.where(fresh & s.crossed, s.a_u, s.unsafe),
                epoch=xp.where(ends[:, 0], s.epoch + 1, s.epoch),
                phase=xp.where(ends, SAFE, phase),
            ),
            harm_at_start,
        )
        return self.estimate(s, xp.where(ends, s.safe, dose))
