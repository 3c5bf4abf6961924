"""What is about true of an arm, for Surefoot-Monotonic's policy; no proof rests on it.

All pulls of an arm are remembered by dose. Harm and effect at a place are estimated by a line: every dose pulled tells
of its slope and of the mean, the less the further off it is. Where the pulls at the place itself say something else
than the others do, the others are believed that much less.

Most of a simulation's time is spent here, so arms stand along the last axis, after their doses: sums over doses then go
along many arms at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, Chosen, along, array_namespace, blocks, clip, device, dot, first, floats, last, like
from ..problem import Problem
from .base import Cohort, Outcome
from .recommend import Estimates
from .settle import round_down

RISE = 0.4  # of its Lipschitz constant: how fast harm is expected to rise before the pulls say how fast
BEND = 0.2  # of its slope: by how much a line is expected to be off, for each unit of distance
ODD = 12.0  # squared errors by which other doses may say something else and still be believed; more where few pulls
FEW = 8.0  # say so, twice as much for so many: one odd pull must not outvote millions beside it
WIDTH = 10.0  # errors of a mean of all pulls: by so much harm changes where most of a slope is taken from. The more
# pulls, the nearer by: curves bend, and the slope of lower doses would hold a leader back
NEAR = 1.0  # pulls are near where harm can change by less than what is left to limit + slack
DOSES, TOGETHER = 8, 0.02  # so many doses are remembered apart, and only if harm may differ by this part of the slack
LOCAL, LINE = 0.1, 0.3  # parts of the slack: where pulls are at a place, and a line is at least so wide
TINY = 1e-300  # what is known of nothing
LOWER = cache(np.tri)  # of so many rows
HIGH, LOW, CROSS = 0, 1, 2  # the places: as a rival, as the leader, and where harm was thought to reach the limit


@dataclass(frozen=True)
class Guess:
    """What is estimated at the places, (trials, arms, 3), and between them, (trials, arms)."""

    harm: Array
    effect: Array
    harm_error: Array
    effect_error: Array
    rise: Array  # slope of the harm
    gain: Array  # slope of the effect
    count: Array  # pulls near the first two places
    crossing: Array  # the dose where harm reaches the limit, at most the largest
    value: Array  # the effect there, or at the level below


class Arms(NamedTuple):
    """What is known beforehand of some arms, (arms,); of the slopes of both readings, (2, arms), effect first; and the
    levels, (levels, arms), where there are any."""

    lipschitz: Array
    start: Array
    largest: Array
    expected: Array
    least: Array
    most: Array
    levels: Array

    def level(self, dose: Array) -> Array:
        """The level at or below a dose, or the dose itself where there are none."""
        xp, levels = array_namespace(dose), self.levels
        if levels.shape[0] == 0:
            return dose
        floor = xp.max(xp.where(levels <= dose, levels, -xp.inf), axis=0)
        return xp.where(xp.isinf(levels[0, :]), dose, floor)


class Doses(NamedTuple):
    """What was read of some arms, (DOSES, arms), at rising doses: how many pulls, their mean dose, the means of both
    readings, (2, DOSES, arms), effect first, and the variances of these means. Without pulls any dose, and infinite.
    `used`: whether there are any; `all`: of all doses, (arms,)."""

    n: Array
    used: Array
    all: Array
    dose: Array
    mean: Array
    var: Array


def nothing(like_this: Array) -> Array:
    """The memory of no pulls, (trials, arms, DOSES, 4): how many at a dose, and sums of doses, effects and harms. Doses
    rise, and those without pulls come last."""
    xp = array_namespace(like_this)
    return xp.zeros((*like_this.shape, DOSES, 4), dtype=xp.float64, device=device(like_this))


def remember(
    p: Problem, known: Array, place: Array, came: Chosen, cohort: Cohort, outcome: Outcome, before: Guess
) -> tuple[Array, Guess]:
    """The memory with these pulls, and what follows of the arms that came; of the others what was known before."""
    xp, n = array_namespace(known), floats(outcome.n)
    # one arm alone comes twice: its sums would be added in another order than those of many, and a trial would depend
    # on who else is in memory
    these = came if came.count > 1 else Chosen.at(xp.repeat(came.index, 2), came.shape)
    new = these.rows(xp.stack([n, n * cohort.dose, outcome.effect, outcome.harm], axis=-1))
    at, dose, rise, arms = (*map(these.rows, (place, cohort.dose, before.rise)), of_arms(p, known, these.index))
    now, found = [], []
    for part in blocks(dose):
        some, old = Arms(*(x[..., part] for x in arms)), Chosen.at(these.index[part], came.shape).rows(known)
        now.append(keep(p, old, new[part, :], dose[part], some))
        found.append(estimate(p, last(now[-1]), last(at[part, :]), last(rise[part, :]), some))
    fields = zip(vars(before).values(), zip(*found, strict=True), strict=True)
    guess = Guess(*(came.put(x, first(xp.concat(parts, axis=-1))[: came.count, ...]) for x, parts in fields))
    return came.put(known, xp.concat(now)[: came.count, ...]), guess


def guess(p: Problem, known: Array, place: Array) -> Guess:
    """What is known of all arms."""
    xp, shape = array_namespace(known), place.shape[:2]
    every = xp.arange(shape[0] * shape[1], device=device(known))
    flat, arms = (last(xp.reshape(known, (-1, DOSES, 4))), last(xp.reshape(place, (-1, 3)))), of_arms(p, known, every)
    found = estimate(p, *flat, xp.stack([arms.expected[1, :]] * 3), arms)
    return Guess(*(xp.reshape(first(x), (*shape, *x.shape[:-1])) for x in found))


def of_arms(p: Problem, x: Array, index: Array) -> Arms:
    """Of these (trial, arm), in the namespace of x."""
    xp, arm, K = array_namespace(x), index % len(p.arms), p.lipschitz
    slope, start, largest = (xp.take(like(x, y), arm) for y in (K, p.starts, p.largest))
    expected, least, most = (
        xp.take(like(x, [[of_effect] * len(K), of_harm * K]), arm, axis=1)
        for of_effect, of_harm in ((0.0, RISE), (0.0, 0.05), (math.inf, 1.0))
    )
    levels = xp.zeros((0, len(K)), device=device(x)) if p.levels is None else like(x, p.levels.T)
    return Arms(slope, start, largest, expected, least, most, xp.take(levels, arm, axis=1))


def keep(p: Problem, known: Array, new: Array, dose: Array, arms: Arms) -> Array:
    """With `new` pulls, (arms, 4), at a `dose`, added to those at nearly the same one, or put between the others. Where
    there is no room, the two neighbours become one that differ least, as they are seen from the dose. `known` is (arms,
    DOSES, 4)."""
    xp, n, many = array_namespace(known), last(known[..., 0]), dose.shape[0]
    at, used = last(known[..., 1]) / xp.maximum(n, 1.0), n > 0
    place, full = (xp.sum(xp.astype(x, xp.int64), axis=0) for x in (used & (at < dose), used))
    below = xp.where(place > 0, dose - row(at, xp.maximum(place - 1, 0)), xp.inf)
    above = xp.where(place < full, row(at, xp.minimum(place, DOSES - 1)) - dose, xp.inf)
    close = xp.minimum(below, above) <= TOGETHER * (p.ceiling - p.limit) / arms.lipschitz
    out, joined = full, Chosen(~close & (full >= DOSES))
    if joined.count:
        alike = nearest(*(xp.take(x, joined.index, axis=-1) for x in (n, at, dose)))
        out, (gone, stays) = joined.put(full, alike), (joined.within(alike + i, DOSES) for i in (0, 1))
        known = stays.put(known, gone.rows(known) + stays.rows(known))
    to = xp.where(close, xp.where(below <= above, place - 1, place), xp.where(out < place, place - 1, place))
    known = in_order(known, Chosen(~close), out, to)
    spot = Chosen.at(xp.arange(many, device=device(to)) * DOSES + to, (many, DOSES))
    return spot.put(known, new + spot.rows(known) * floats(close)[:, None])


def nearest(n: Array, at: Array, dose: Array) -> Array:
    """The place of the first of the two neighbours that differ least, as they are seen from a new dose."""
    xp, ((a, b), (one, other)) = array_namespace(n), ((x[:-1, :], x[1:, :]) for x in (at, n))
    apart = (b - a) ** 2 * (one * other / (one + other + TINY)) / xp.maximum((a + b - 2 * dose) ** 2, 1e-200)
    apart = xp.where((a < dose) & (dose <= b), xp.inf, apart)  # the new ones come between these two
    return which_row(apart <= xp.min(apart, axis=0), earliest=True) - 1


def in_order(known: Array, which: Chosen, out: Array, to: Array) -> Array:
    """Of these arms the doses between `out` and `to` moved by one: over the former, so that the latter is free."""
    if which.count == 0:
        return known
    xp, out, to = array_namespace(known), which.rows(out), which.rows(to)
    j = xp.arange(DOSES, device=device(out))[:, None]
    down, up = (xp.astype(x, xp.int64) for x in ((j >= out) & (j < to), (j > to) & (j <= out)))
    return which.put(known, along(which.rows(known), first(j + down - up)))


def estimate(p: Problem, known: Array, at: Array, rise: Array, arms: Arms) -> tuple[Array, ...]:
    """The fields of a Guess, from (DOSES, 4, arms), places (3, arms) and the slopes of harm there before; arms come
    last in them, too."""
    xp, doses = array_namespace(known), by_dose(p, known)
    # where harm reaches the limit: two steps of Newton's method; half of the second where it turns back, and no more
    # than half the way to where it cannot be. Each is from a level where there are any: all between two is made up
    low, high = crosses(p, doses, arms)
    here, on_levels = arms.level(at[CROSS, :]), arms.levels.shape[0] > 0
    found, near = [], []
    for which in (HIGH, LOW):
        seen = seen_from(p, doses, at[which, :], rise[which, :], arms)
        found.append(lines(p, seen, doses, arms))
        left = NEAR * xp.maximum(p.ceiling - found[-1][0][1, :], 0.25 * (p.ceiling - p.limit))
        near.append(dot(doses.n, xp.exp(seen.away * (-arms.lipschitz / left))))

    def step(place: Array) -> Array:
        mean, _, slope = lines(p, seen_from(p, doses, place, rise[CROSS, :], arms), doses, arms, slice(1, 2))
        return crossing(p, place, mean[0, :], slope[0, :], arms)

    one = arms.level(clip(step(here), low, high))
    known_at = here if on_levels else one
    mean, error, slope = lines(p, seen_from(p, doses, known_at, rise[CROSS, :], arms), doses, arms)
    found.append((mean, error, slope))
    two = step(one) if on_levels else crossing(p, one, mean[1, :], slope[1, :], arms)
    turns = (one - here) * (two - one) < 0
    there = two + xp.where(turns, 0.5 * (one - two), 0.0)
    if on_levels:  # it is between the two then
        out = (there < xp.minimum(here, one)) | (there >= xp.maximum(here, one))
        there = xp.where(turns & out, 0.5 * (here + one), there)
    there = xp.where(there > high, 0.5 * (one + high), xp.where(there < low, 0.5 * (one + low), there))
    last_one = arms.level(there)
    value = within(p, doses, last_one, mean[0, :] + slope[0, :] * (last_one - known_at))
    both = (xp.stack([x[reading, :] for x in of]) for of in zip(*found, strict=True) for reading in (1, 0))
    return *both, xp.stack(near), there, value


def by_dose(p: Problem, known: Array) -> Doses:
    xp, n = array_namespace(known), known[:, 0, :]
    some, used, (sy, sz) = xp.maximum(n, 1.0), n > 0, (noise.scale for noise in p.noises)
    once = xp.where(used, 1 / some, xp.inf)
    mean = xp.stack([known[:, 2, :] / some, known[:, 3, :] / some])
    return Doses(n, used, xp.sum(n, axis=0), known[:, 1, :] / some, mean, xp.stack([sy**2 * once, sz**2 * once]))


def crosses(p: Problem, doses: Doses, arms: Arms) -> tuple[Array, Array]:
    """Between which doses harm reaches the limit, for all that is known of it: harm never falls, so it is below the
    limit up to a dose where all pulls from it on are below it together, and above from one where all up to it are
    above. A few odd pulls at a dose are outvoted by many at others, and no arm stays where it tells nothing."""
    xp, n = array_namespace(doses.n), doses.n
    over, some = (doses.mean[1, ...] - p.limit) * n, xp.maximum(n, 1.0)
    upto, count = sums_upto(over), sums_upto(some)
    since, rest = upto[-1, :] - upto + over, count[-1, :] - count + some
    below, above = -since / (rest * surely(rest, count)), upto / (count * surely(count, count))
    far = p.noises[1].scale
    lowest, highest = which_row((below > far) & doses.used), which_row((above > far) & doses.used, earliest=True)
    low = xp.where(lowest > 0, row(doses.dose, xp.maximum(lowest - 1, 0)), arms.start)
    high = xp.where(highest > 0, row(doses.dose, xp.maximum(highest - 1, 0)), arms.largest)
    low, high = xp.maximum(low, arms.start), xp.minimum(high, arms.largest)
    clash, down = low > high, xp.max(above, axis=0) > xp.max(below, axis=0)  # then the stronger counts alone
    return xp.where(clash & down, arms.start, low), xp.where(clash & ~down, arms.largest, high)


def within(p: Problem, doses: Doses, dose: Array, value: Array) -> Array:
    """The value, not below what is sure of lower doses nor above what is sure of higher ones: effects never fall. All
    pulls from a lower dose on up to this one count together, so that a few odd ones are outvoted."""
    xp, n, sigma = array_namespace(dose), doses.n, p.noises[0].scale
    effect = doses.mean[0, ...] * n
    count, total = sums_upto(n), sums_upto(effect)
    ends = []
    for side, sign in ((doses.dose <= dose, -1.0), (doses.dose < dose, 1.0)):
        last_one = which_row(side & doses.used)
        upto, here = (xp.where(last_one > 0, row(x, xp.maximum(last_one - 1, 0)), 0.0) for x in (count, total))
        many, far = (upto - count + n, total - here - effect) if sign < 0 else (count - upto, total - here)
        none = floats(many < 1) * 1e300
        many = xp.maximum(many, 1.0)
        ends.append(sign * xp.min(far / many + sigma * surely(many, count) + none, axis=0))
    return xp.where(ends[0] < ends[1], clip(value, *ends), value)


def surely(many: Array, upto: Array) -> Array:
    """Sigmas by which the mean of so many pulls may be off, of all that were made: the fewer they are, the more others
    like them might have been the oddest."""
    xp = array_namespace(many)
    found, few = xp.log(xp.maximum(upto[-1, :], 1.0) / many), FEW / many
    found *= 2.0
    found += ODD
    few += 1.0
    found *= few
    found /= many
    return xp.sqrt(found)


class Seen(NamedTuple):
    """Doses as seen from a place, (DOSES, arms): at which distance (with its sign, without, squared), which are there,
    and the weights of a line's slope, times their levers."""

    off: Array
    away: Array
    square: Array
    local: Array  # 1 where they are, else 0
    far: Array  # the other way round
    weight: Array
    lever: Array  # (arms,): what the weights come to with their levers, and that of the expected slope
    firm: Array  # (arms,): by itself
    few: Array  # (arms,): squared errors by which other doses may be off


def seen_from(p: Problem, doses: Doses, at: Array, rise: Array, arms: Arms) -> Seen:
    xp, slack, n = array_namespace(at), p.ceiling - p.limit, doses.n
    off, firm = doses.dose - at, (2 * slack / arms.lipschitz) ** 2
    away, square = xp.abs(off), off * off
    narrow = (WIDTH * p.noises[1].scale / rise) ** 2 / xp.maximum(doses.all, 1.0)
    narrow = xp.maximum(narrow, (LINE * slack / arms.lipschitz) ** 2)
    w = square / xp.minimum(firm, narrow)
    w += 1.0
    w = n / w
    lever = off - dot(w, off) / xp.maximum(xp.sum(w, axis=0), 1e-9)
    local = floats(away <= LOCAL * slack / arms.lipschitz)
    few = ODD * (1 + FEW / xp.maximum(dot(local, n), 1.0))
    w *= lever
    return Seen(off, away, square, local, 1 - local, w, dot(w, lever) + firm, firm, few)


def lines(p: Problem, seen: Seen, doses: Doses, arms: Arms, which: slice = slice(0, 2)) -> tuple[Array, Array, Array]:
    """Of these readings: mean at the place, its error (at most that of one pull) and slope, (readings, arms)."""
    xp, y = array_namespace(seen.off), doses.mean[which, ...]
    slope = (dot(seen.weight, y) + seen.firm * arms.expected[which, :]) / seen.lever
    scales = like(slope, [[noise.scale] for noise in p.noises])[which, :]
    slope = clip(slope, xp.minimum(arms.least[which, :], scales / xp.sqrt(seen.lever)), arms.most[which, :])
    sure = ((BEND * slope) ** 2)[:, None, :] * seen.square
    sure += doses.var[which, ...]
    sure = 1 / sure
    there = y - slope[:, None, :] * seen.off
    there *= sure
    own, rest = (xp.maximum(dot(sure, x), TINY) for x in (seen.local, seen.far))
    mine, theirs = dot(there, seen.local) / own, dot(there, seen.far) / rest
    odd = xp.maximum((mine - theirs) ** 2 - seen.few * (1 / own + 1 / rest), 0.0)
    rest = 1 / (1 / rest + odd)
    total = own + rest
    unknown = like(total, [[0.0], [p.limit - 0.5 * (p.ceiling - p.limit)]])[which, :]
    mean = xp.where(total > 1e9 * TINY, (own * mine + rest * theirs) / total, unknown)
    return mean, xp.minimum(1 / xp.sqrt(total), scales), slope


def crossing(p: Problem, at: Array, harm: Array, rise: Array, arms: Arms) -> Array:
    """The dose where a line reaches the limit."""
    return clip(at + (p.limit - harm) / rise, arms.start, arms.largest)


def sums_upto(x: Array) -> Array:
    """Of each row and all before it. As a product, which is several times faster than a running sum."""
    return like(x, LOWER(x.shape[0])) @ x


def row(x: Array, index: Array) -> Array:
    """x[index[i], i] for every i."""
    xp, many = array_namespace(x), index.shape[0]
    return xp.take(xp.reshape(x, (-1,)), index * many + xp.arange(many, device=device(index)))


def which_row(mask: Array, earliest: bool = False) -> Array:
    """The last (or first) row where the mask is true, from 1 on; 0 where it never is."""
    xp, rows = array_namespace(mask), mask.shape[0]
    rank = xp.astype(xp.arange(1, rows + 1, device=device(mask)), xp.uint8)[:, None]
    most = xp.max(xp.astype(mask, xp.uint8) * (xp.flip(rank) if earliest else rank), axis=0)
    found = xp.astype(most, xp.int64)
    return xp.where(found > 0, rows + 1 - found, 0) if earliest else found


def seems(state: Any) -> Estimates | None:
    """Where harm seems to reach the limit, as far as doses may be given; by the estimates of the policy, if any."""
    guess = getattr(state.memory, "guess", None)
    if not isinstance(guess, Guess):
        return None
    xp, p = array_namespace(state.base), state.problem
    dose = round_down(p, xp.minimum(guess.crossing, state.base))
    off = dose - round_down(p, guess.crossing)
    effect = xp.where(state.n > 0, guess.value + guess.gain[..., -1] * off, -xp.inf)
    harm = guess.harm[..., -1] + guess.rise[..., -1] * off
    of_effect, of_harm = (
        (y - 1.96 * error[..., -1], y + 1.96 * error[..., -1])
        for y, error in ((effect, guess.effect_error), (harm, guess.harm_error))
    )
    return Estimates(dose, effect, harm, of_effect, of_harm)
