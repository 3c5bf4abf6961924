"""What makes a study of monotone curves end, whatever policy it has: Theorem 2b of docs/guarantees.md.

Visits. A small share of the pulls is forced. All arms left are visited in turn at their highest certified dose, so that
they climb; at one dose after another between it and the start, so that in the end every dose is near one that was
visited; and, twice, at the dose visited before that tells them apart best. The k-th visit has k^2 pulls or more, and
its means are taken to be off by no more than the fourth root of that allows. Effect and harm never fall, so visits
bound both at every dose, and what they bound is bet on: such bets lose nothing if the bounds are right. Only the last
half of all visits counts, so that no early error lasts.

Caps. The policy's own stakes shrink with the number of pulls, so that all of them together lose less than the visits
gain. In a study that goes as it should they are far from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..arrays import Array, array_namespace, device, floats, like, pick, replace
from ..problem import Problem
from .base import Cohort, Outcome
from .compose import Floor
from .ladder import RUNGS
from .monotonic_cells import ABOVE, BELOW
from .monotonic_evidence import MonotonicState, Stakes
from .settle import round_down, wanted

SHARE = 0.02  # of all pulls are forced
FIRST = 2  # the first visit is the second: one pull tells nothing
GOLDEN = 0.5 * (5**0.5 - 1)  # its multiples, less whole numbers, come near everything soon
MORE = 8  # room for so many visits at a time
WIDE = 2.5  # sigmas, over the fourth root of a visit's pulls: how far off its means may be
PART = 1 / 3  # of the gap between two arms, from either end: effects that far are bet on
CAP = 12.0  # sigmas (or log ratios), over the eighth root of an arm's pulls: no stake of the policy is larger. That is
# far more than any study needs, and yet all of them together lose less than in proportion to the pulls
STAKED = 64.0  # times the pulls to the power 3/4: so many binary effects or counts, which have no size, may be bet on
FINEST = 1e-9  # of an arm's doses: ladders reach at least that far


@dataclass(frozen=True)
class Visits:
    """(trials, arms, visits, 4): the dose, how many pulls, sums of effects and harms; and for every trial how many
    visits are complete, how many pulls were forced, and whether the last cohort was."""

    seen: Array
    count: Array
    pulls: Array
    forced: Array


class Bounds(NamedTuple):
    """Of effect and harm from below and above."""

    least: Array
    most: Array
    calm: Array
    harsh: Array


class MonotonicFloor(Floor[MonotonicState]):
    def begin(self, state: MonotonicState) -> Visits:
        xp, base = array_namespace(state.base), state.base
        seen = xp.zeros((*base.shape, MORE, 4), dtype=xp.float64, device=device(base))
        return Visits(seen, xp.zeros_like(state.pulls), xp.zeros_like(state.pulls), state.pulls < 0)

    def due(self, s: MonotonicState) -> Array:
        """The trials in which the next cohort is forced, (trials,)."""
        xp, v = array_namespace(s.base), s.floor
        lacks = floats((v.count + FIRST) ** 2) - xp.max(here(v)[..., 1], axis=1)
        return floats(v.pulls) + len(s.problem.arms) * lacks <= SHARE * floats(s.pulls)

    def visit(self, state: MonotonicState, dose: Array, n: Array) -> tuple[Array, Array]:
        """The doses (to be lowered to levels) and numbers of the next cohort, no larger than the policy's own."""
        xp, s, v = array_namespace(dose), state, state.floor
        due, start, turn = self.due(s)[:, None], like(dose, s.problem.starts), (v.count % 4)[:, None]
        if not bool(xp.any(due)):
            return dose, n
        way = (floats(v.count) * GOLDEN)[:, None]
        way = xp.where((v.count % 12 == 1)[:, None], 0.0, way - xp.floor(way))
        there, begun, best = start + way * (s.base - start), here(v), contest(s).dose
        there = xp.where(turn == 0, s.base, xp.where((turn >= 2) & xp.isfinite(best), best, there))
        there = xp.where(begun[..., 1] > 0, begun[..., 0], there)
        many = xp.minimum((v.count + FIRST)[:, None] ** 2, xp.max(n, axis=1, keepdims=True))
        return xp.where(due, there, dose), xp.where(due, xp.where(wanted(s), many, 0), n)

    def remember(self, state: MonotonicState, cohort: Cohort, outcome: Outcome, before: MonotonicState) -> Visits:
        xp, v, due = array_namespace(cohort.dose), state.floor, self.due(before)
        came = due[:, None] & (outcome.n > 0)
        old, n = here(v), floats(outcome.n)
        new = xp.stack(
            [cohort.dose, old[..., 1] + n, old[..., 2] + outcome.effect, old[..., 3] + outcome.harm], axis=-1
        )
        slot = xp.arange(v.seen.shape[2], device=device(n)) == v.count[:, None, None]
        seen = xp.where((slot & came[..., None])[..., None], new[:, :, None, :], v.seen)
        pulls = v.pulls + xp.where(due, xp.sum(outcome.n, axis=1), 0)
        complete = due & (xp.max(here(replace(v, seen=seen))[..., 1], axis=1) >= floats((v.count + FIRST) ** 2))
        count = v.count + xp.astype(complete, v.count.dtype)
        if int(xp.max(count)) + 1 >= seen.shape[2]:  # the last place stays free
            seen = xp.concat([seen, xp.zeros_like(seen[:, :, :MORE, :])], axis=2)
        return Visits(seen, count, pulls, due)

    def stakes(self, state: MonotonicState, cohort: Cohort, own: Array) -> Array:
        """The policy's, none above what is allowed, and in a visit what the visits before it are sure of. Ladders are
        never made much finer or coarser than what the highest dose may certify, and in a visit only for that: each time
        they forget, and made finer and coarser by turns they would lose more than is gained."""
        xp, s, p = array_namespace(own), state, state.problem
        stakes, known = self.capped(s, cohort, Stakes(*(own[..., i] for i in range(own.shape[-1])))), used(s)
        top, wide = round_down(p, s.base), like(own, p.largest) - like(own, p.starts)
        due = self.due(s)[:, None]
        reach = top + (p.ceiling - bounds(p, known, top).harsh) / like(top, p.lipschitz) - s.base
        want = xp.where(due, RUNGS * s.step, stakes.reach)
        far = xp.where(want > reach, xp.minimum(want, 4 * reach), reach)
        far = xp.where(reach > 0, far, want)
        stakes = stakes._replace(reach=xp.where(far > 0, xp.maximum(far, FINEST * wide), xp.nan))
        if bool(xp.any(due)):
            stakes = Stakes(*(xp.where(due, y, x) for x, y in zip(stakes, self.sure(s, cohort, stakes), strict=True)))
        return xp.stack(list(stakes), axis=-1)

    def capped(self, s: MonotonicState, cohort: Cohort, own: Stakes) -> Stakes:
        """Stakes that all together lose less than in proportion to the pulls."""
        xp, p = array_namespace(s.base), s.problem
        n = xp.maximum(floats(s.n + cohort.n), 1.0 + 0.0 * s.base)
        most, harms = CAP * n**-0.125, p.noises[1].tilted
        low, high = (harms(p.limit + 0.0 * n, sign * most) for sign in (-1.0, 1.0))
        harm = xp.where(xp.isfinite(own.harm), xp.clip(own.harm, low, high), xp.nan)
        if p.noises[0].ratios:
            below, above = (
                xp.where(s.total[..., sums][..., 0] + floats(cohort.n) <= STAKED * n**0.75, x, xp.nan)
                for x, sums in ((own.below, BELOW), (own.above, ABOVE))
            )
        else:
            below, above = (xp.where(x < xp.inf, xp.minimum(x, most), x) for x in (own.below, own.above))
        # of the next rung; those of higher ones are smaller
        bound = p.ceiling - like(n, p.lipschitz) * xp.maximum(s.base - cohort.dose, 0.0)
        return own._replace(climb=xp.maximum(own.climb, harms(bound, -most)), harm=harm, below=below, above=above)

    def sure(self, s: MonotonicState, cohort: Cohort, own: Stakes) -> Stakes:
        """Those of a visit: harm is bet to be where it surely is, effects where they surely tell the arms apart."""
        xp, p, told = array_namespace(s.base), s.problem, contest(s)
        here = bounds(p, used(s), cohort.dose[..., None])
        under, over = (x[..., 0] for x in told.on(s, cohort.dose[..., None], here))
        calm, harsh = here.calm[..., 0], here.harsh[..., 0]
        size = xp.where(told.gap > 0, told.gap / p.noises[0].scale, xp.nan)
        return own._replace(
            climb=xp.where(harsh < p.ceiling, harsh, xp.nan),
            harm=xp.where(calm > p.limit, calm, xp.where(harsh < p.limit, harsh, xp.nan)),
            below=xp.where(over, size, xp.nan),
            above=xp.where(under, size, xp.nan),
        )


class Contest(NamedTuple):
    """Who leads by the visits, what is sure of the values from below (of the leader) or above, by how much these are
    apart, 0 where that is not known, and the dose visited before that tells most."""

    leads: Array
    bar: Array
    gap: Array
    dose: Array

    def on(self, s: MonotonicState, dose: Array, here: Bounds) -> tuple[Array, Array]:
        """Whether the effect at a dose of the leader, of a rival, (trials, arms, any), is to be bet on: it is nearer to
        what is known of the value than a third of the gap."""
        under, over = sides(s, dose, here)
        leads, bar, part = (x[..., None] for x in (self.leads, self.bar, PART * self.gap))
        yes = part > 0
        return yes & leads & under & (here.least > bar - part), yes & ~leads & over & (here.most < bar + part)


def contest(s: MonotonicState) -> Contest:
    xp, p, known, live = array_namespace(s.base), s.problem, used(s), wanted(s)
    seen = bounds(p, known, known.dose)
    under, over = (known.use & x for x in sides(s, known.dose, seen))
    low = xp.max(xp.where(under & live[..., None], seen.least, -xp.inf), axis=-1)
    high = xp.min(xp.where(over, seen.most, xp.inf), axis=-1)
    leader = xp.argmax(low, axis=1)
    leads = xp.arange(low.shape[1], device=device(low)) == leader[:, None]
    gap = xp.where(live & ~leads, pick(low, leader) + (p.tolerance or 0.0) - high, xp.inf)
    gap = xp.where(leads, xp.min(gap, axis=1, keepdims=True), gap)
    gap = xp.where(xp.isfinite(gap) & (gap > 0), gap, 0.0)
    told = Contest(leads, xp.where(leads, low, high), gap, low)
    under, over = (known.use & x for x in told.on(s, known.dose, seen))
    # as far from the limit as that allows
    far = xp.where(under, -seen.harsh, xp.where(over, seen.calm, -xp.inf))
    dose = xp.take_along_axis(known.dose, xp.argmax(far, axis=-1)[..., None], axis=-1)[..., 0]
    return told._replace(dose=xp.where(xp.any(under | over, axis=-1), dose, xp.nan))


class Used(NamedTuple):
    """The visits that count, (trials, arms, visits): doses, mean effects and harms, and the error of both in sigmas."""

    use: Array
    dose: Array
    effect: Array
    harm: Array
    error: Array


def used(s: MonotonicState) -> Used:
    xp, v = array_namespace(s.base), s.floor
    k, count = xp.arange(v.seen.shape[2], device=device(s.base)), v.count[:, None, None]
    n = v.seen[..., 1]
    some = xp.where(n > 0, n, 1.0)
    use = (n > 0) & (k < count) & (2 * k >= count)
    return Used(use, v.seen[..., 0], v.seen[..., 2] / some, v.seen[..., 3] / some, WIDE * some**-0.25)


def bounds(p: Problem, known: Used, dose: Array) -> Bounds:
    """What the visits say of these doses, (trials, arms) or (trials, arms, any)."""
    xp = array_namespace(dose)
    if dose.ndim == 2:
        return Bounds(*(x[..., 0] for x in bounds(p, known, dose[..., None])))
    use, there, effect, harm, error = (x[:, :, None, :] for x in known)
    off, K = dose[..., None] - there, like(dose, p.lipschitz)[:, None, None]
    sy, sz = (noise.scale * error for noise in p.noises)
    return Bounds(
        xp.max(xp.where(use & (off >= 0), effect - sy, -xp.inf), axis=-1),
        xp.min(xp.where(use & (off <= 0), effect + sy, xp.inf), axis=-1),
        xp.max(xp.where(use & (off >= 0), harm - sz, -xp.inf), axis=-1),
        xp.min(xp.where(use, harm + sz + K * xp.maximum(off, 0.0), xp.inf), axis=-1),
    )


def sides(s: MonotonicState, dose: Array, here: Bounds) -> tuple[Array, Array]:
    """Whether a dose, (trials, arms, any), is surely one up to which, or from which on, an arm's value can be told."""
    xp, p = array_namespace(dose), s.problem
    start, largest = (like(dose, x)[:, None] for x in (p.starts, p.largest))
    over = here.calm > p.limit
    if p.levels is not None:  # the largest safe level itself, where the next is over the limit
        levels = like(dose, p.levels)
        up = xp.min(xp.where(levels[:, None, :] > dose[..., None], levels[:, None, :], xp.inf), axis=-1)
        over = over | (xp.isfinite(up) & (bounds(p, used(s), up).calm > p.limit))
    return (here.harsh < p.limit) | (dose <= start), over | (dose >= largest)


def here(v: Visits) -> Array:
    """Of the visit that is not complete, (trials, arms, 4)."""
    xp = array_namespace(v.seen)
    index = xp.broadcast_to(v.count[:, None, None, None], (*v.seen.shape[:2], 1, 4))
    return xp.take_along_axis(v.seen, index, axis=2)[:, :, 0, :]
