"""What sums of bets say of an arm's value at a bar: the statistics of Theorem 1, docs/guarantees.md (lemmas 4 and 5).

A bar x is a number that a value is compared with. It is written t = x sigma_harm / (limit sigma_effect), or
u = t / (1 + t), from 0 to 1. Two readings tell on which side of it an arm's value theta * a* is:

cone  (1 - u) effect - u harm has mean above 0 where limit*theta/mu is above the bar
cap   effect - a x / reach has mean above 0 where theta*reach is above the bar

Doses and reach are in units of the start dose, readings in units of their sigma. A cell is all bars between two, and
every function gives the least over a cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ..arrays import Array, array_namespace, device
from ..problem import Problem

TINY = 1e-16  # of 1 - u: what lies beyond is taken as there
STEPS = (0.1, 0.25, 0.5, 0.9, 1.5, 3.0, 6.0, math.inf)  # ends of cells, from where evidence seems to be weakest


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

    @classmethod
    def on(cls, pulls: Pulls) -> Bets:
        """With a stake of 1 on each of these."""
        once = pulls.n * pulls.dose**2
        return cls(once, pulls.dose * pulls.effect, pulls.dose * pulls.harm, once)

    def add(self, one: Bets, stake: Any) -> Bets:
        """With those too, at so many times their stake."""
        v, y, z, w = self.v + stake**2 * one.v, self.y + stake * one.y, self.z + stake * one.z, self.w + stake * one.w
        return Bets(v, y, z, w)

    def at(self, index: Array) -> Bets:
        """Those at these places of the flattened arrays."""
        return Bets(*(flat(x, index) for x in (self.v, self.y, self.z, self.w)))


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
    """x at these places of its flattened array."""
    xp = array_namespace(x)
    x = xp.reshape(x, (-1,))
    return xp.take(x, index) if index.ndim == 1 else xp.reshape(xp.take(x, xp.reshape(index, (-1,))), index.shape)


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


def shrink(p: Problem, u: Array) -> Any:
    """The sigma of the effect at a bar, in units of `sigmas`: a binary effect that is bet on has a mean of at most the
    bar (lemma 3). It never falls as the bar rises."""
    if not binary(p)[0]:
        return 1.0
    xp, bar = array_namespace(u), height(p, u) * sigmas(p)[0]
    q = xp.clip(bar, 1e-12, 0.499)
    return xp.where(bar < 0.499, xp.sqrt((1 - 2 * q) / (2 * xp.log((1 - q) / q))) / sigmas(p)[0], 1.0)


def height(p: Problem, u: Array) -> Array:
    """The bar at u, in units of the effect's sigma."""
    xp = array_namespace(u)
    return u / xp.maximum(1 - u, TINY) * (p.limit / sigmas(p)[1])


def tolerance(p: Problem) -> float:
    """As a difference of t."""
    return (p.tolerance or 0.0) * sigmas(p)[1] / (p.limit * sigmas(p)[0])


def lowered(u: Array, shift: float) -> Array:
    """The u of the bar whose t is lower by `shift`, or 0."""
    xp = array_namespace(u)
    fall = shift * (1 - u)
    return xp.maximum(u - fall, 0.0) / xp.maximum(1 - fall, 0.5 * TINY) if shift else u


@dataclass(frozen=True)
class Cone:
    """The cone over cells of bars, for one sigma of the effect: by what depends on bars alone. `along` and `across`, at
    both ends, are such that along * effect - across * harm is its statistic, of sigma 1: the cosine and sine of the
    bar's angle where readings are independent and the effect's sigma is 1."""

    along: tuple[Array, Array]
    across: tuple[Array, Array]
    sigma: Any  # of the effect, in units of `sigmas`
    bound: bool  # whether the least statistic may lie inside: that of independent readings

    @classmethod
    def over(cls, p: Problem, ends: tuple[Array, ...], r: Any) -> Cone:
        independent = p.signals == "independent"
        along, across = zip(*(directions(u, r, independent) for u in ends), strict=True)
        return cls((along[0], along[-1]), (across[0], across[-1]), r, independent)

    def least(self, y: Array, z: Array) -> Array:
        """The least statistic: at an end, but for -hypot(y / r, z) where it falls at `low` and rises at `high`, as it
        is a sinusoid in the bar's angle."""
        xp, (c, d), (s, t), r = array_namespace(y), self.along, self.across, self.sigma
        if c is d:
            return c * y - s * z
        ends = xp.minimum(c * y - s * z, d * y - t * z)
        if not self.bound:
            return ends
        rz = r**2 * z
        turns = (s * y + c * rz > 0) & (t * y + d * rz < 0)
        return xp.where(turns, -xp.sqrt((y / r) ** 2 + z**2), ends)


@dataclass(frozen=True)
class Cells:
    """Cells of bars. Bars by themselves are cells without width: their ends are the same arrays."""

    cones: tuple[Cone, ...]  # for the sigmas that the effect has at the ends: between them it has those in between
    height: tuple[Array, Array]

    @classmethod
    def between(cls, p: Problem, low: Array, high: Array) -> Cells:
        ends = (low,) if low is high else (low, high)
        noises = [shrink(p, u) for u in (ends if binary(p)[0] else ends[:1])]
        heights = [height(p, u) for u in ends]
        return cls(tuple(Cone.over(p, ends, r) for r in noises), (heights[0], heights[-1]))

    def cone(self, y: Array, z: Array) -> Array:
        """The least statistic."""
        return least(*(cone.least(y, z) for cone in self.cones))

    def over(self, bets: Bets, reach: Array, capped: Any) -> Array:
        """The least evidence that a value is above: it takes both cone and cap, but for arms whose value is `capped`,
        theta * reach whatever their harm."""
        xp = array_namespace(bets.y)
        cap = self.cap(bets.y - bets.w / reach * self.height[1])
        return xp.where(capped, cap, xp.minimum(cap, self.cone(bets.y, bets.z)))

    def under(self, bets: Bets, reach: Array) -> tuple[Array, Array]:
        """The least evidence that a value is below, by cone and by cap."""
        return self.cone(-bets.y, -bets.z), self.cap(bets.w / reach * self.height[0] - bets.y)

    def cap(self, x: Array) -> Array:
        """The least of x over the sigma of the effect."""
        return least(*(x / cone.sigma for cone in self.cones))


def least(*found: Array) -> Array:
    """Of these arrays, entry by entry."""
    return reduce(array_namespace(found[0]).minimum, found)


def directions(u: Array, r: Any, independent: bool) -> tuple[Array, Array]:
    """1 - u and u, over the sigma of (1 - u) effect - u harm where the effect's is r and the harm's 1 (lemma 4)."""
    xp, rest = array_namespace(u), 1 - u
    sigma = xp.sqrt((rest * r) ** 2 + u**2) if independent else rest * r + u
    return rest / sigma, u / sigma


def spread(low: Array, u: Array, high: Array, least: float) -> Array:
    """The ends of cells that cover all bars from `least` on, along a first axis. They are finest about u, where the
    evidence is nearly least: it grows with the square of the distance from there."""
    xp = array_namespace(u)
    unit = xp.minimum(xp.abs(u - low), xp.abs(high - u)) + 0.15 * xp.abs(high - low)
    ends = xp.asarray([-x for x in reversed(STEPS)] + [0.0, *STEPS], device=device(u))
    return xp.clip(u + (unit + TINY) * ends[:, None], least, 1.0)
