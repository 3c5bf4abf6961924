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

from ..arrays import Array, Chosen, array_namespace, device, floats, like, pick, replace
from ..problem import Problem
from .base import Cohort, Outcome, take
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
        due = Chosen(self.due(state))
        if due.count == 0:
            return dose, n
        there, many = self.forced(take(state, due.index), due.rows(n))
        return due.put(dose, there), due.put(n, many)

    def forced(self, s: MonotonicState, n: Array) -> tuple[Array, Array]:
        """Of trials in which the next cohort is forced; the policy wants n."""
        xp, v = array_namespace(n), s.floor
        start, turn = like(s.base, s.problem.starts), (v.count % 4)[:, None]
        way = (floats(v.count) * GOLDEN)[:, None]
        way = xp.where((v.count % 12 == 1)[:, None], 0.0, way - xp.floor(way))
        there, begun, best = start + way * (s.base - start), here(v), contest(s).dose
        there = xp.where(turn == 0, s.base, xp.where((turn >= 2) & xp.isfinite(best), best, there))
        there = xp.where(begun[..., 1] > 0, begun[..., 0], there)
        many = xp.minimum((v.count + FIRST)[:, None] ** 2, xp.max(n, axis=1, keepdims=True))
        return there, xp.where(wanted(s), many, 0)

    def remember(self, state: MonotonicState, cohort: Cohort, outcome: Outcome, before: MonotonicState) -> Visits:
        xp, v, due = array_namespace(cohort.dose), state.floor, self.due(before)
        came = Chosen(due[:, None] & (outcome.n > 0))
        if came.count == 0:
            return Visits(v.seen, v.count, v.pulls, due)
        n, effect, harm, dose = (came.rows(x) for x in (outcome.n, outcome.effect, outcome.harm, cohort.dose))
        slot = came.within(xp.take(v.count, came.index // came.shape[1]), v.seen.shape[2])
        old = slot.rows(v.seen)
        seen = slot.put(v.seen, xp.stack([dose, old[:, 1] + floats(n), old[:, 2] + effect, old[:, 3] + harm], axis=-1))
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
        due = self.due(s)
        reach = top + (p.ceiling - harshest(p, known, top[..., None])[..., 0]) / like(top, p.lipschitz) - s.base
        want = xp.where(due[:, None], RUNGS * s.step, stakes.reach)
        far = xp.where(want > reach, xp.minimum(want, 4 * reach), reach)
        far = xp.where(reach > 0, far, want)
        stakes = stakes._replace(reach=xp.where(far > 0, xp.maximum(far, FINEST * wide), xp.nan))
        every, which = xp.stack(list(stakes), axis=-1), Chosen(due)
        if which.count == 0:
            return every
        mine = self.sure(take(s, which.index), take(cohort, which.index), which.rows(stakes.reach))
        return which.put(every, xp.stack(list(mine), axis=-1))

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

    def sure(self, s: MonotonicState, cohort: Cohort, reach: Array) -> Stakes:
        """Those of a visit: harm is bet to be where it surely is, effects where they surely tell the arms apart."""
        xp, p, told = array_namespace(s.base), s.problem, contest(s)
        here = bounds(p, used(s), cohort.dose[..., None])
        under, over = (x[..., 0] for x in told.on(s, cohort.dose[..., None], here))
        calm, harsh = here.calm[..., 0], here.harsh[..., 0]
        size = xp.where(told.gap > 0, told.gap / p.noises[0].scale, xp.nan)
        return Stakes(
            climb=xp.where(harsh < p.ceiling, harsh, xp.nan),
            reach=reach,
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
    xp, count = array_namespace(s.base), s.floor.count[:, None, None]
    k = xp.arange(max(int(xp.max(count)), 1), device=device(s.base))
    seen = s.floor.seen[:, :, : k.shape[0], :]
    n = seen[..., 1]
    some = xp.where(n > 0, n, 1.0)
    use = (n > 0) & (k < count) & (2 * k >= count)
    return Used(use, seen[..., 0], seen[..., 2] / some, seen[..., 3] / some, WIDE * some**-0.25)


def bounds(p: Problem, known: Used, dose: Array) -> Bounds:
    """What the visits say of these doses, (trials, arms, any)."""
    xp = array_namespace(dose)
    use, there, effect, harm, error = (x[:, :, None, :] for x in known)
    off = dose[..., None] - there
    sy, sz = (noise.scale * error for noise in p.noises)
    return Bounds(
        xp.max(xp.where(use & (off >= 0), effect - sy, -xp.inf), axis=-1),
        xp.min(xp.where(use & (off <= 0), effect + sy, xp.inf), axis=-1),
        xp.max(xp.where(use & (off >= 0), harm - sz, -xp.inf), axis=-1),
        harshest(p, known, dose),
    )


def harshest(p: Problem, known: Used, dose: Array) -> Array:
    """The last of these alone."""
    xp = array_namespace(dose)
    use, there, _, harm, error = (x[:, :, None, :] for x in known)
    off, K = dose[..., None] - there, like(dose, p.lipschitz)[:, None, None]
    return xp.min(xp.where(use, harm + p.noises[1].scale * error + K * xp.maximum(off, 0.0), xp.inf), axis=-1)


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
    xp, (trials, arms, many, width) = array_namespace(v.seen), v.seen.shape
    every = Chosen.at(xp.arange(trials * arms, device=device(v.seen)), (trials, arms))
    found = every.within(xp.repeat(v.count, arms), many).rows(v.seen)
    return xp.reshape(found, (trials, arms, width))
