"""What is about true of an arm, for Surefoot-Monotonic's policy; no proof rests on it.

All pulls of an arm are remembered by dose. Harm and effect at a place are estimated by a line: every dose pulled tells
of its slope, and of the mean the less the further off it is. Where the pulls at the place itself say something else
than the others do, the others are believed that much less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from array_api_compat import array_namespace, device

from ..arrays import Array, like, put, rows
from ..problem import Problem
from .base import Cohort, Outcome
from .recommend import Estimates
from .settle import round_down

RISE = 0.4  # of its Lipschitz constant: how fast harm is expected to rise before the pulls say how fast
BEND = 0.2  # of its slope: by how much a line is expected to be off, for each unit of distance
ODD = 12.0  # squared errors by which other doses may say something else and still be believed; more where few pulls
FEW = 8.0  # say so, twice as much for so many: one odd pull must not outvote millions beside it
NEAR = 1.0  # pulls are near where harm can change by less than what is left to limit + slack
DOSES, TOGETHER = 24, 0.1  # so many doses are remembered apart, and only if harm may differ by this part of the slack
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
    count: Array  # pulls near
    crossing: Array  # the dose where harm reaches the limit, at most the largest
    value: Array  # the effect there


def nothing(like_this: Array) -> Array:
    """The memory of no pulls, (trials, arms, DOSES, 4): how many at a dose, and sums of doses, effects and harms."""
    xp = array_namespace(like_this)
    return xp.zeros((*like_this.shape, DOSES, 4), dtype=xp.float64, device=device(like_this))


def keep(p: Problem, known: Array, came: Array, cohort: Cohort, outcome: Outcome) -> Array:
    """With these pulls, added to those at nearly the same dose or in place of what tells least by now."""
    xp = array_namespace(known)
    old, a, n, effect, harm = (
        rows(x, came) for x in (known, cohort.dose, xp.astype(outcome.n, xp.float64), outcome.effect, outcome.harm)
    )
    K = rows(xp.zeros_like(cohort.dose) + like(known, p.lipschitz), came)
    count = old[..., 0]
    off = xp.where(count > 0, xp.abs(old[..., 1] / xp.where(count > 0, count, 1.0) - a[:, None]), xp.inf)
    close = xp.min(off, axis=-1) <= TOGETHER * (p.ceiling - p.limit) / K
    spare = xp.argmin(xp.where(count > 0, count / xp.maximum(off, 1e-100) ** 2, -1.0), axis=-1)
    into = xp.where(close, xp.argmin(off, axis=-1), spare)
    here = (xp.arange(DOSES, device=device(known)) == into[:, None])[..., None]
    new = xp.stack([n, n * a, effect, harm], axis=-1)[:, None, :]
    return put(known, came, xp.where(here, new + xp.where(close[:, None, None], old, 0.0), old))


class Seen(NamedTuple):
    """Pulls as seen from places, (arms, 3, DOSES): how many, at which distance, and the weights of a line's slope."""

    n: Array
    off: Array
    local: Array
    weight: Array
    width: Array  # (arms, 1)


def guess(p: Problem, known: Array, place: Array, came: Array, before: Guess | None) -> Guess:
    """What is known of the arms that were pulled, and of the others what was known before."""
    xp = array_namespace(place)
    arms = [rows(xp.zeros_like(place[..., 0]) + like(place, x), came) for x in (p.lipschitz, p.starts, p.largest)]
    mine, at = rows(known, came), rows(place, came)
    # where harm reaches the limit: two steps of Newton's method; half of the second where it turns back, and no more
    # than half the way to where it cannot be
    low, high = crosses(p, mine, arms[1], arms[2])
    first = xp.clip(at_places(p, mine, at[:, CROSS:], *arms).crossing, low, high)
    now = at_places(p, mine, xp.concat([at[:, :CROSS], first[:, None]], axis=1), *arms)
    back = xp.where((first - at[:, CROSS]) * (now.crossing - first) < 0, 0.5 * (first - now.crossing), 0.0)
    there = now.crossing + back
    there = xp.where(there > high, 0.5 * (first + high), xp.where(there < low, 0.5 * (first + low), there))
    value = now.value + now.gain[:, CROSS] * (there - now.crossing)
    now = replace(now, crossing=there, value=within(p, mine, there, value))
    if before is None:
        return Guess(*(xp.reshape(x, (*came.shape, *x.shape[1:])) for x in vars(now).values()))
    return Guess(*(put(getattr(before, name), came, x) for name, x in vars(now).items()))


def crosses(p: Problem, known: Array, start: Array, largest: Array) -> tuple[Array, Array]:
    """Between which doses harm reaches the limit, for all that is known of it: harm never falls, so it is below the
    limit up to a dose where all pulls from it on are below it together, and above from one where all up to it are
    above. A few odd pulls at a dose are outvoted by many at others, and no arm stays where it tells nothing."""
    xp = array_namespace(known)
    dose, n, _, harm = by_dose(known)
    over, some = harm - p.limit * n, xp.where(n > 0, n, 1.0)
    upto, count = xp.cumulative_sum(over, axis=1), xp.cumulative_sum(some, axis=1)
    since, rest = upto[:, -1:] - upto + over, count[:, -1:] - count + some
    below, above = (xp.where(n > 0, x, 0.0) for x in (-since / xp.sqrt(rest), upto / xp.sqrt(count)))
    far = p.noises[1].scale * math.sqrt(ODD)
    low = xp.maximum(xp.max(xp.where(below > far, dose, -xp.inf), axis=1), start)
    high = xp.minimum(xp.min(xp.where(above > far, dose, xp.inf), axis=1), largest)
    clash, down = low > high, xp.max(above, axis=1) > xp.max(below, axis=1)  # then the stronger counts alone
    return xp.where(clash & down, start, low), xp.where(clash & ~down, largest, high)


def within(p: Problem, known: Array, dose: Array, value: Array) -> Array:
    """The value, not below what is sure of lower doses nor above what is sure of higher ones: effects never fall. All
    pulls from a lower dose on up to this one count together, so that a few odd ones are outvoted."""
    xp = array_namespace(known)
    at, n, effect, _ = by_dose(known)
    ends = []
    for side, sign in ((at <= dose[:, None], -1.0), (at >= dose[:, None], 1.0)):
        some, total = (xp.where(side & (n > 0), x, 0.0) for x in (n, effect))
        if sign < 0:
            some, total = xp.flip(some, axis=1), xp.flip(total, axis=1)
        many, total = xp.cumulative_sum(some, axis=1), xp.cumulative_sum(total, axis=1)
        count = xp.maximum(many, 1.0)
        far = p.noises[0].scale * xp.sqrt(ODD * (1 + FEW / count) / count)
        ends.append(sign * xp.min(xp.where(many > 0, sign * total / count + far, xp.inf), axis=1))
    return xp.where(ends[0] < ends[1], xp.clip(value, *ends), value)


def by_dose(known: Array) -> tuple[Array, ...]:
    """Doses, rising and infinite where there are no more, and how many pulls, sums of effects and harms there."""
    xp, some = array_namespace(known), known[..., 0] > 0
    dose = xp.where(some, known[..., 1] / xp.where(some, known[..., 0], 1.0), xp.inf)
    order = xp.argsort(dose, axis=1)
    return tuple(xp.take_along_axis(x, order, axis=1) for x in (dose, known[..., 0], known[..., 2], known[..., 3]))


def at_places(p: Problem, known: Array, at: Array, lipschitz: Array, start: Array, largest: Array) -> Guess:
    """What these pulls, (arms, DOSES, 4), say about places, (arms, any); the last is where harm may reach the limit."""
    xp, slack, K = array_namespace(at), p.ceiling - p.limit, lipschitz[:, None]
    n = known[:, None, :, 0]
    some = xp.where(n > 0, n, 1.0)
    off = xp.where(n > 0, known[:, None, :, 1] / some - at[..., None], 0.0)
    wide = 2 * slack / K
    seen = Seen(n, off, xp.abs(off) <= TOGETHER * slack / K[..., None], n / (1 + (off / wide[..., None]) ** 2), wide)
    one, (sy, sz) = xp.ones_like(at), (noise.scale for noise in p.noises)
    g, g_error, rise = line(seen, known[:, None, :, 3] / some, sz, RISE * K * one, 0.05 * K * one, K * one)
    f, f_error, gain = line(seen, known[:, None, :, 2] / some, sy, 0.0 * one, 0.0 * one, xp.inf * one)
    g = xp.where(xp.isinf(g_error), p.limit - 0.5 * slack, g)
    crossing = xp.clip(at[:, -1] + (p.limit - g[:, -1]) / rise[:, -1], start, largest)
    value = f[:, -1] + gain[:, -1] * (crossing - at[:, -1])
    left = NEAR * xp.maximum(p.ceiling - g, 0.25 * slack)
    count = xp.sum(n * xp.exp(-(K / left)[..., None] * xp.abs(off)), axis=-1)
    g_error, f_error = (xp.minimum(e, s * one) for e, s in ((g_error, sz), (f_error, sy)))
    return Guess(g, f, g_error, f_error, rise, gain, count, crossing, value)


def line(seen: Seen, y: Array, sigma: float, expected: Array, least: Array, most: Array) -> tuple[Any, ...]:
    """Mean at the places, its error (infinite where nothing is known) and slope, `expected` beforehand."""
    xp, (n, off, local, w, wide) = array_namespace(y), seen
    total = xp.maximum(xp.sum(w, axis=-1), 1e-9)
    lever = off - (xp.sum(w * off, axis=-1) / total)[..., None]
    firm = wide**2 * expected, wide**2
    slope = (xp.sum(w * lever * y, axis=-1) + firm[0]) / (xp.sum(w * lever**2, axis=-1) + firm[1])
    slope = xp.clip(slope, least, most)
    sure = xp.where(n > 0, 1 / (sigma**2 / xp.where(n > 0, n, 1.0) + (BEND * slope[..., None] * off) ** 2), 0.0)
    there = y - slope[..., None] * off
    own, rest = (xp.sum(xp.where(x, sure, 0.0), axis=-1) for x in (local, ~local))
    mine, theirs = (
        xp.sum(xp.where(x, sure * there, 0.0), axis=-1) / xp.where(y > 0, y, 1.0)
        for x, y in ((local, own), (~local, rest))
    )
    own_var, var = (1 / xp.where(x > 0, x, 1e-300) for x in (own, rest))
    firm_enough = ODD * (1 + FEW / xp.maximum(xp.sum(xp.where(local, n, 0.0), axis=-1), 1.0))
    odd = xp.maximum((mine - theirs) ** 2 - firm_enough * (own_var + var), xp.zeros_like(var))
    rest = xp.where((own > 0) & (rest > 0), 1 / (var + odd), rest)
    total = own + rest
    mean = (own * mine + rest * theirs) / xp.where(total > 0, total, 1.0)
    return mean, xp.where(total > 0, 1 / xp.sqrt(xp.where(total > 0, total, 1.0)), xp.inf), slope


def seems(state: Any) -> Estimates | None:
    """Where harm seems to reach the limit, as far as doses may be given; by the estimates of the policy, if any."""
    guess = getattr(state.memory, "guess", None)
    if not isinstance(guess, Guess):
        return None
    xp, p = array_namespace(state.base), state.problem
    dose = round_down(p, xp.minimum(guess.crossing, state.base))
    off = dose - guess.crossing
    effect = xp.where(state.n > 0, guess.value + guess.gain[..., -1] * off, -xp.inf)
    harm = guess.harm[..., -1] + guess.rise[..., -1] * off
    of_effect, of_harm = (
        (y - 1.96 * error[..., -1], y + 1.96 * error[..., -1])
        for y, error in ((effect, guess.effect_error), (harm, guess.harm_error))
    )
    return Estimates(dose, effect, harm, of_effect, of_harm)
