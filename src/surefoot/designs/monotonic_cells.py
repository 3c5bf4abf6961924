"""Lemma 5 of Theorem 2 in docs/guarantees.md: what the bets on one arm come to, wherever its largest safe dose b lies.

The doses that were pulled cut an arm's line into cells, within which it makes no difference where b is. Sums of bets
over the doses up to b, or above it, are prefix and suffix sums; the least over the cells that may hold b counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..arrays import BLOCK, Array, Chosen, along, array_namespace, blocks, clip, device, like
from ..bounds import TILT, Mixture
from ..noise import Noise
from ..problem import Problem

GAP = Mixture(top=1.0, ratio=1.7, dense=5, above=1, tails=0.1, nothing=0.4)  # the difference seen is 1

# What is kept of an arm's pulls at one dose: how many and the sum of their effects; the logs of wealth from bets on
# harm (above the limit; below it; below it while leading); sums of bets on the effect (below x; above x while leading)
N, EFFECT, OVER, UNDER, LED, BELOW, ABOVE = 0, 1, 2, 3, 4, slice(5, 8), slice(8, 11)
WIDTH = 11


class Table(NamedTuple):
    """The pulls of some arms, one after another: which arm, the doses that were bet on, rising and infinite where there
    are no more, (arms, doses), and what is kept of them, (arms, doses, WIDTH)."""

    arm: Array
    dose: Array
    at: Array


def table(s: Any, row: Array, arm: Array) -> Table:
    """These arms of these trials. Doses are kept in the order in which they came."""
    xp, (_, d, many) = array_namespace(s.at), s.doses.shape
    pair = row * d + arm
    dose = xp.take(xp.reshape(s.doses, (-1, many)), pair, axis=0)
    order = xp.argsort(dose, axis=1)[:, : max(int(xp.max(xp.take(xp.reshape(s.kept, (-1,)), pair))), 1)]
    index = xp.reshape(pair[:, None] * many + order, (-1,))
    mine = xp.reshape(xp.take(xp.reshape(s.at, (-1, WIDTH)), index, axis=0), (*order.shape, WIDTH))
    return Table(arm, along(dose, order), mine)


def told(test: Callable[..., Array], s: Any, row: Array, arm: Array, x: Array, exact: bool) -> Array:
    """What a test, `down` or `up`, says of these arms of these trials. Those with about as many doses are asked
    together: a table is as wide as the most that one of its arms has."""
    xp = array_namespace(x)
    order = xp.argsort(xp.take(xp.reshape(s.kept, (-1,)), row * s.n.shape[1] + arm))
    found = [
        test(s.problem, table(s, xp.take(row, i), xp.take(arm, i)), xp.take(x, i, axis=0), exact)
        for i in (order[part] for part in blocks(order, BLOCK // 12))
    ]
    return xp.take(xp.concat(found), xp.argsort(order), axis=0)


def down(p: Problem, t: Table, x: Array, exact: bool) -> Array:
    """Of these arms: the least evidence, over their largest safe dose b, that the value is below x."""
    xp = array_namespace(x)
    found = before(t.at[..., OVER])[..., None] + cells(x, t.at[..., BELOW], p.noises[0], False, exact)
    same, only = exactly(p, t)
    if bool(xp.any(same)):  # b may be a dose that was pulled: its own pulls speak of harm and of effect, half and half
        half = xp.logaddexp(found[:, 1:, :], found[:, :-1, :]) - math.log(2)
        fixed = xp.take(like(t.dose, p.starts) >= like(t.dose, p.largest), t.arm)  # b is known: all speak of the effect
        half = xp.where(fixed[:, None, None], found[:, :-1, :], half)
        half = xp.where(only[..., None], half, xp.minimum(half, found[:, 1:, :]))
        found = xp.concat([found[:, :1, :], xp.where(same[..., None], half, found[:, 1:, :])], axis=1)
    return xp.min(xp.where(possible(p, t)[..., None], found, xp.inf), axis=1)


def up(p: Problem, t: Table, x: Array, exact: bool) -> Array:
    """Of these arms, by the bets made while they led: the least evidence, over b, that the value is above x."""
    xp = array_namespace(x)
    found = before(t.at[..., LED], -1)[..., None] + cells(x, t.at[..., ABOVE], p.noises[0], True, exact)
    return xp.min(xp.where(possible(p, t)[..., None], found, xp.inf), axis=1)


def cells(x: Array, sums: Array, noise: Noise, above: bool, exact: bool) -> Array:
    """The evidence of each cell at each x, (arms, doses + 1, x): from the doses up to it if `above`, else from the
    doses above it. It changes only at doses where something was bet, of which there are few."""
    xp, staked = array_namespace(x), sums[..., 0] > 0
    ends = xp.concat([staked, xp.ones_like(staked[:, :1])], axis=1)  # whether it is another one in the next cell
    each, one = Chosen(ends), xp.astype(xp.reshape(ends, (-1,)), xp.int64)
    few = each.rows(before(sums, 1 if above else -1, axis=1))
    there = xp.take(x, each.index // ends.shape[1], axis=0)
    size = BLOCK // x.shape[1]
    found = xp.concat([evidence(noise, few[i, None, :], there[i, :], above, exact) for i in blocks(there, size)])
    return xp.reshape(xp.take(found, xp.cumulative_sum(one) - one, axis=0), (*ends.shape, x.shape[1]))


def evidence(noise: Noise, sums: Array, x: Array, above: bool, exact: bool) -> Array:
    """The log of the wealth from bets that the effect is above x (or below); if not `exact`, at most by how much: what
    the best of all sizes of bet would have come to, less what is never bet."""
    xp = array_namespace(x)
    v, w, y = (sums[..., i] for i in range(3))
    if exact:
        return noise.mixture(y, w, v, x, above, GAP)
    m = y / xp.where(w > 0, w, 1.0)
    off = xp.maximum(m - x if above else x - m, 0.0)
    if noise.binary:
        q, x = clip(m, 1e-12, 1 - 1e-12), clip(x, 1e-12, 1 - 1e-12)
        best = xp.where(off > 0, v * (q * xp.log(q / x) + (1 - q) * xp.log((1 - q) / (1 - x))), 0.0)
    elif noise.ratios:
        q, x = xp.maximum(m, 1e-12), xp.maximum(x, 1e-12)
        best = xp.where(off > 0, v * (q * xp.log(q / x) - q + x), 0.0)
    else:
        best = off**2 * (w**2 / (2 * noise.scale**2 * xp.where(v > 0, v, 1.0)))
    nothing = TILT.nothing if noise.ratios else GAP.nothing
    return best + xp.log1p(nothing * xp.expm1(-best))


def possible(p: Problem, t: Table) -> Array:
    """The cells that may hold b: (arms, doses + 1). It is never below the start dose."""
    xp = array_namespace(t.dose)
    start = xp.take(like(t.dose, p.starts), t.arm)[:, None]
    yes = xp.ones_like(start) > 0
    return xp.concat([t.dose > start, yes], axis=1) & xp.concat([yes, xp.isfinite(t.dose)], axis=1)


def exactly(p: Problem, t: Table) -> tuple[Array, Array]:
    """The cells but the first that begin at the largest dose or at a level, so that b may be that dose exactly; and
    those of them in which it can be no other: with no other level before the next dose that was pulled."""
    xp, dose = array_namespace(t.dose), t.dose
    same = only = dose >= xp.take(like(dose, p.largest), t.arm)[:, None]
    if p.levels is not None:
        levels = xp.take(like(dose, p.levels), t.arm, axis=0)[:, None, :]
        above = xp.concat([dose[:, 1:], xp.full_like(dose[:, :1], xp.inf)], axis=1)[..., None]
        between = xp.any((levels > dose[..., None]) & (levels < above) & xp.isfinite(levels), axis=-1)
        same = same | xp.any(levels == dose[..., None], axis=-1)
        only = same & ~between
    return same & xp.isfinite(dose), only


def before(x: Array, way: int = 1, axis: int = -1) -> Array:
    """Sums of all before each, and of all; backwards: of each and all after it, and of none."""
    xp = array_namespace(x)
    axis = axis % x.ndim
    none = xp.zeros_like(xp.take(x, xp.arange(1, device=device(x)), axis=axis))
    if way > 0:
        return xp.concat([none, xp.cumulative_sum(x, axis=axis)], axis=axis)
    return xp.concat([xp.flip(xp.cumulative_sum(xp.flip(x, axis=axis), axis=axis), axis=axis), none], axis=axis)


def mean(sums: Array) -> Array:
    """The mean effect of the pulls that were bet on, by the sums of their bets; 0 where there are none."""
    xp = array_namespace(sums)
    w, y = sums[..., 1], sums[..., 2]
    return y / xp.where(w > 0, w, 1.0)
