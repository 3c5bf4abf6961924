"""What sums of bets say of an arm's value at a bar: the statistics of Theorem 1, docs/guarantees.md (lemmas 4 and 5).

A bar x is a number that a value is compared with. It is written t = x sigma_harm / (limit sigma_effect), or
u = t / (1 + t), from 0 to 1. Two readings tell on which side of it an arm's value theta * a* is:

cone  (1 - u) effect - u harm has mean above 0 where limit*theta/mu is above the bar
cap   effect - a x / reach has mean above 0 where theta*reach is above the bar

Doses and reach are in units of the start dose, readings in units of their sigma. `low` and `high` are the ends of a
cell of bars, and every function gives the least over the cell. One bar is a cell with the same array at both ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace, device

from ..arrays import Array
from ..problem import Problem

TINY = 1e-16  # of 1 - u: what lies beyond is taken as there


@dataclass(frozen=True)
class Pulls:
    """What came back of an arm: how many pulls, their dose, the sums of effects and harms."""

    n: Array
    dose: Array
    effect: Array
    harm: Array

    def times(self, weight: Array) -> Pulls:
        """As if there were so many times as many."""
        return Pulls(weight * self.n, self.dose, weight * self.effect, weight * self.harm)


@dataclass(frozen=True)
class Bets:
    """Sums over bets. A pull at dose a with a stake has the weight a * stake."""

    v: Array  # of weight^2
    y: Array  # of weight * effect
    z: Array  # of weight * harm
    w: Array  # of weight * dose

    def add(self, pulls: Pulls, stake: Array) -> Bets:
        """With these pulls bet too."""
        weight = pulls.dose * stake
        once = pulls.n * weight
        return Bets(
            self.v + once * weight,
            self.y + weight * pulls.effect,
            self.z + weight * pulls.harm,
            self.w + once * pulls.dose,
        )

    def at(self, index: Array) -> Bets:
        """Those at these places of the flattened arrays, with an axis for bars after them."""
        return Bets(*(flat(x, index) for x in (self.v, self.y, self.z, self.w)))

    def where(self, these: Array) -> Bets:
        """None of the others."""
        xp = array_namespace(these)
        return Bets(*(xp.where(these, x, 0.0) for x in (self.v, self.y, self.z, self.w)))


@dataclass(frozen=True)
class Rates:
    """Sums over bets on binary effects, which are bet by likelihood ratios: pulls, their doses, their effects."""

    n: Array
    dose: Array
    total: Array

    def add(self, pulls: Pulls, on: Array) -> Rates:
        xp = array_namespace(on)
        n = xp.where(on, pulls.n, 0.0)
        return Rates(self.n + n, self.dose + n * pulls.dose, self.total + xp.where(on, pulls.effect, 0.0))

    def at(self, index: Array) -> Rates:
        return Rates(*(flat(x, index) for x in (self.n, self.dose, self.total)))


def flat(x: Array, index: Array) -> Array:
    """x at these places of its flattened array, with a last axis of 1."""
    xp = array_namespace(x)
    return xp.reshape(xp.take(xp.reshape(x, (-1,)), xp.reshape(index, (-1,))), (*index.shape, 1))


def binary(p: Problem) -> tuple[bool, bool]:
    """Whether effect and harm are."""
    return p.noises[0].kind == "bernoulli", p.noises[1].kind == "bernoulli"


def sigmas(p: Problem) -> tuple[float, float]:
    """Of effect and harm: the units of the sums. A harm that is bet on has a mean of at most the limit (lemma 3)."""
    effect, harm = p.noises
    return effect.scale, harm.scale if harm.kind != "bernoulli" else half(p.limit)


def half(mean: float) -> float:
    """The sigma of a binary reading whose mean is at most `mean` (Kearns and Saul 1998); 1/2 from 1/2 on."""
    return 0.5 if mean >= 0.499 else math.sqrt((1 - 2 * mean) / (2 * math.log((1 - mean) / mean)))


def shrink(p: Problem, high: Array) -> Any:
    """The sigma of the effect at bars up to `high`, in units of `sigmas`: a binary effect that is bet on has a mean of
    at most the bar (lemma 3)."""
    if not binary(p)[0]:
        return 1.0
    xp = array_namespace(high)
    q = xp.clip(height(p, high) * sigmas(p)[0], 1e-12, 0.499)
    return xp.sqrt((1 - 2 * q) / (2 * xp.log((1 - q) / q))) / sigmas(p)[0]


def height(p: Problem, u: Array) -> Array:
    """The bar at u, in units of the effect's sigma."""
    xp = array_namespace(u)
    return u / xp.maximum(1 - u, TINY) * (p.limit / sigmas(p)[1])


def lowered(u: Array, shift: float) -> Array:
    """The u of the bar whose t is lower by `shift`, or 0."""
    xp = array_namespace(u)
    fall = shift * (1 - u)
    return xp.maximum(u - fall, 0.0) / xp.maximum(1 - fall, 0.5 * TINY) if shift else u


def statistic(p: Problem, u: Array, y: Array, z: Array, r: Any = 1.0) -> Array:
    """The cone's: standardised evidence that limit*theta/mu is above the bar at u; r is the sigma of the effect."""
    xp = array_namespace(u)
    total = (1 - u) * y - u * z
    return total / (xp.hypot((1 - u) * r, u) if p.signals == "independent" else (1 - u) * r + u)


def cone(p: Problem, low: Array, high: Array, y: Array, z: Array) -> Array:
    """The least statistic over a cell: at one of its ends, but of independent readings -hypot(y / r, z) where it falls
    at `low` and rises at `high`: it is a sinusoid in the angle whose tangent is u / ((1 - u) r)."""
    xp = array_namespace(low)
    r = shrink(p, high)
    if low is high:
        return statistic(p, low, y, z, r)
    ends = xp.minimum(statistic(p, low, y, z, r), statistic(p, high, y, z, r))
    if p.signals != "independent":
        return ends
    turns = (low * y + (1 - low) * r**2 * z > 0) & (high * y + (1 - high) * r**2 * z < 0)
    return xp.where(turns, -xp.hypot(y / r, z), ends)


def over(p: Problem, low: Array, high: Array, bets: Bets, reach: Array, capped: Any) -> Array:
    """The least evidence over a cell that a value is above: it takes both cone and cap, but for arms whose value is
    `capped`, theta * reach whatever their harm."""
    xp = array_namespace(low)
    line = cone(p, low, high, bets.y, bets.z)
    cap = (bets.y - bets.w * height(p, high) / reach) / shrink(p, high)
    return xp.where(capped | (cap < line), cap, line)


def under(p: Problem, low: Array, high: Array, bets: Bets, reach: Array) -> tuple[Array, Array]:
    """The least evidence over a cell that a value is below, by cone and by cap."""
    cap = (bets.w * height(p, low) / reach - bets.y) / shrink(p, high)
    return cone(p, low, high, -bets.y, -bets.z), cap


def cells(low: Array, u: Array, high: Array, many: int) -> Array:
    """The ends of cells that cover [0, 1], finest at u, where the evidence is nearly least.

    A cell's bound is short by its width times a slope. The evidence grows with the square of the distance from u, so
    cells that do so too are all as good as the first.
    """
    xp = array_namespace(u)
    unit = xp.minimum(xp.abs(u - low), xp.abs(high - u)) + 0.15 * xp.abs(high - low)
    steps = [0.12 * math.tan(math.pi / 2 * i / (many + 1)) for i in range(1, many + 1)] + [3.0, 6.0, math.inf]
    ends = [-x for x in reversed(steps)] + [0.0] + steps
    return xp.clip(u + (unit + TINY) * xp.asarray(ends, device=device(u)), 0.0, 1.0)
