"""The wealth against claims "arm k is best", at a bar and at every bar: Theorem 1, docs/guarantees.md (lemmas 5, 7).

If the claim is true then, at the bar that is k's value, k's value is at least that and every other's at most that. The
first is bet against with the pulls of k, the second with those of the arms that have led.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..arrays import Array, Chosen, array_namespace
from ..bounds import CONTRAST, TOGETHER, Mixture, added, atoms, log_mixture, log_tilt
from ..problem import Problem
from .linear_bars import Bets, Cells, Rates, flat, lowered, sigmas, spread, tolerance

SHARED = 0.4  # share of the bet against a claim that is of one size for all arms
Batch = TypeVar("Batch")

PARTS = 3  # of a cell that has not enough wealth as a whole

# (claims,): bars, as u: below, about, and above where the wealth is least, and where it was least before
Places = tuple[Array, Array, Array, Array]


@dataclass(frozen=True)
class Reaches:
    """Lemma 4: what is known of the largest safe doses, in units of the start dose."""

    certain: Array  # theta times this is at most the value, or (no levels, and not capped) the largest dose
    possible: Array  # theta times this is at least the value
    capped: Array  # whether that is all that a leader has to show: levels, or its largest dose is certified
    line: Array  # log of the share of the own bet that is on the cone
    cap: Array  # and on the cap


@dataclass(frozen=True)
class Claims:
    """Claims and what is bet against them, (claims,), also by those who led, (leaders, claims). Bars are along an axis
    before these: arrays are worked through along the last, which is long."""

    own: Bets
    led: Bets
    own_shared: Bets
    led_shared: Bets
    own_rates: Rates | None
    led_rates: Rates | None
    arm: Reaches
    leaders: Reaches
    named: Array  # which of the leaders is to be named; None: it does not matter

    def take(self, which: Array) -> Claims:
        return taken(self, lambda x: array_namespace(x).take(x, which, axis=-1))


def taken(it: Batch, change: Callable[[Array], Array]) -> Batch:
    """A dataclass of arrays, or of such dataclasses, with every array changed."""
    values = vars(it).values()  # in the order of its fields, as it was made
    return type(it)(*(x if x is None else change(x) if hasattr(x, "shape") else taken(x, change) for x in values))


def wealth(p: Problem, claims: Claims, low: Array, high: Array) -> Array:
    """Lemma 5: the least log of the wealth against each claim over the bars from low to high, (cells, claims).

    With a tolerance an arm that led is bet to be above the bar, and above what is lower by the tolerance, whichever is
    less; the arm that is to be `named` only above the latter.
    """
    xp, shift = array_namespace(low), tolerance(p)
    same = low is high
    low = low[:, None, :]
    high = low if same else high[:, None, :]
    mine = theirs = Cells.between(p, low, high)
    if shift:
        less = lowered(high, shift)
        theirs = Cells.between(
            p, lowered(low, shift), high if claims.named is None else xp.where(claims.named, less, high)
        )
    up = xp.sum(theirs.over(claims.led_shared, claims.leaders.certain, claims.leaders.capped), axis=1, keepdims=True)
    v = claims.own_shared.v + xp.sum(claims.led_shared.v, axis=0)
    line, cap = mine.under(claims.own_shared, claims.arm.possible)
    together = split(up + line, up + cap, v, TOGETHER, claims.arm)
    ups = xp.sum(above(p, theirs, claims.led, claims.led_rates, claims.leaders), axis=1, keepdims=True)
    apart = ups + below(p, mine, claims.own, claims.own_rates, claims.arm)
    return added_logs(apart + math.log(1 - SHARED), together + math.log(SHARED))[:, 0, :]


def above(p: Problem, cells: Cells, bets: Bets, rates: Rates | None, reach: Reaches) -> Array:
    """Log of the wealth from bets with the pulls of an arm that led, that its value is above."""
    xp = array_namespace(bets.v)
    if rates is None:
        return log_mixture(cells.over(bets, reach.certain, reach.capped), bets.v, CONTRAST)
    line = log_mixture(cells.cone(bets.y, bets.z), bets.v, CONTRAST)
    cap = ratio(p, rates, cells.height[1], reach.certain, True)
    return xp.where(reach.capped, cap, xp.minimum(line, cap))


def below(p: Problem, cells: Cells, bets: Bets, rates: Rates | None, reach: Reaches) -> Array:
    """Log of the wealth from bets with an arm's own pulls, that its value is below."""
    line, cap = cells.under(bets, reach.possible)
    if rates is None:
        return split(line, cap, bets.v, CONTRAST, reach)
    by_rates = ratio(p, rates, cells.height[0], reach.possible, False)
    return added_logs(log_mixture(line, bets.v, CONTRAST) + reach.line, by_rates + reach.cap)


def ratio(p: Problem, rates: Rates, height: Array, reach: Array, up: bool) -> Array:
    """Log of the wealth from likelihood ratios of binary effects, that theta * reach is above (below) a bar: their mean
    at the mean dose is compared (lemma 3)."""
    xp = array_namespace(height)
    dose = rates.dose / xp.maximum(rates.n, xp.ones_like(rates.n)) * (sigmas(p)[0] / reach)
    return log_tilt(rates.total, rates.n, dose * height, up)


def split(line: Array, cap: Array, v: Array, mixture: Mixture, shares: Reaches) -> Array:
    """Log of the wealth of two bets that share one stake: mixtures of the cone's statistic and of the cap's."""
    xp = array_namespace(line)
    g, log_weight = atoms(mixture, line)
    rest = log_weight - 0.5 * g**2 * v
    a, b = g * line + (rest + shares.line), g * cap + (rest + shares.cap)
    top = xp.maximum(xp.max(a, axis=0), xp.max(b, axis=0))
    return top + xp.log(added(xp.exp(a - top)) + added(xp.exp(b - top)))


def added_logs(a: Array, b: Array) -> Array:
    """log(exp(a) + exp(b)), one of which may be -inf."""
    xp = array_namespace(a)
    top = xp.maximum(a, b)
    return top + xp.log(xp.exp(a - top) + xp.exp(b - top))


def refutation(p: Problem, claims: Claims, places: Places, goal: float) -> tuple[Array, Array]:
    """The least log of the wealth, as far as it is below the goal, and the bar there: at two bars and, where these
    pass, at all."""
    xp, (low, u, high, before) = array_namespace(places[0]), places
    bars = xp.stack([u, before])
    log = wealth(p, claims, bars, bars)
    total, u = xp.min(log, axis=0), xp.where(log[0, :] <= log[1, :], u, before)
    passed = Chosen(total >= goal)
    if passed.count == 0:
        return total, u
    bars = spread(passed.rows(low), passed.rows(u), passed.rows(high), first(p, claims))
    found = over_all(p, claims.take(passed.index), bars, xp.full_like(bars[0, :], goal))
    return passed.put(total, found[0]), passed.put(u, found[1])


def infimum(p: Problem, claims: Claims, places: Places) -> tuple[Array, Array]:
    """The least log of the wealth over all bars, and where."""
    low, u, high, _ = places
    at = u[None, :]
    return over_all(p, claims, spread(low, u, high, first(p, claims)), wealth(p, claims, at, at)[0, :], 4)


def first(p: Problem, claims: Claims) -> float:
    """The least bar to look at: where an arm is to be `named` it is near enough to any that is worth less than the
    tolerance."""
    return 0.0 if claims.named is None else tolerance(p) / (1 + tolerance(p))


def over_all(p: Problem, claims: Claims, bars: Array, enough: Array, times: int = 2) -> tuple[Array, Array]:
    """Lemma 7: the least log of the wealth over the cells between these bars, as far as it is below `enough`; where.

    A cell has at most the wealth of each of its parts: where it has not enough it is parted, so many times.
    """
    xp = array_namespace(bars)
    total, middle = wealth(p, claims, bars[:-1, :], bars[1:, :]), 0.5 * (bars[:-1, :] + bars[1:, :])
    short = Chosen(total < enough)
    if short.count and times:
        which = short.index % bars.shape[1]
        low, high = flat(bars, short.index), flat(bars, short.index + bars.shape[1])
        parts = xp.stack([low, *(low + (high - low) * (i / PARTS) for i in range(1, PARTS)), high])
        found = over_all(p, claims.take(which), parts, xp.take(enough, which), times - 1)
        total, middle = short.put(total, found[0]), short.put(middle, found[1])
    least = xp.argmin(total, axis=0)[None, :]
    return tuple(xp.take_along_axis(x, least, axis=0)[0, :] for x in (total, middle))
