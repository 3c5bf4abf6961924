"""The wagers of Surefoot-Levels, and the least evidence over all that is not known. See `levels_evidence`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..arrays import Array, array_namespace, like, put, rows
from ..bounds import Mixture, added, atoms, log_sum
from ..noise import Noise, Unknown

VARY = (0.9, 0.75, 0.5, 0.3, 0.15, 0.06, 0.02)  # sizes of bets that learn the spread, in units of the whole range
FAR_SHARE = 0.1  # of a wager without a known sigma that is on bets by its bound: they hold far from all readings, too
HARM_SHARE = 0.25  # of the wager against "value >= x, b" that is staked on harm at b; the rest on effects from b on

# How far a mean is from the number it is tested against, in log odds (binary readings) or sigmas
FAR = Mixture(top=2.8, ratio=2.0, dense=3, below=6, tails=0.1, nothing=0.02)  # the ceiling
NEAR = Mixture(top=1.2, ratio=2.0, dense=3, below=7, above=1, tails=0.12, nothing=0.03)  # the limit
GAP = Mixture(top=0.8, ratio=2.0, dense=5, below=6, above=2, tails=0.12, nothing=0.04)  # x


def wager(
    count: Array, total: Array, x: Array, noise: Noise, prior: Mixture, above: bool, *more: Array, half: Any = 0.0
) -> tuple[Array, Array]:
    """The log wealth of a mixture of bets that a mean is above (or below) x, and its slope in x. Convex in x, but for
    a sigma that is not known: then it is one that it is not below from x - half to x + half, and that is convex.

    Binary readings: likelihood ratios of odds e^g times higher (lower) than those of x; counts: of means so many times
    higher. Others: Robbins' mixture. Where the squares of bounded readings are known (`more`), half of the stake is on
    bets that learn how they vary. Where sigma is not known, `more` are `pooled` sums of all readings staked, and most
    of the stake is on exp(g a - g^2 a^2/2) for every reading x + a: its mean is at most 1 whatever sigma is.
    """
    xp, sign = array_namespace(total), 1.0 if above else -1.0
    g, log_weight = atoms(prior, total)
    g = sign * g
    if noise.kind == "bernoulli":
        rise = xp.expm1(g)
        chance = 1 + xp.clip(x, 0.0, 1.0) * rise  # a mean is never outside [0, 1], whatever x is
        bets, falls = g * total - count * xp.log(chance) + log_weight, count * rise / chance
        if more:
            l, even = xp.reshape(like(total, VARY), (-1, *[1] * total.ndim)), math.log(0.5)
            vary = sign * l * (total - count * x) + (l + xp.log1p(-l)) * more[0] + (even - math.log(len(VARY)))
            bets, falls = xp.concat([bets + even, vary]), xp.concat([falls + 0.0 * bets, sign * count * l + 0.0 * vary])
    elif noise.ratios:
        rise = xp.expm1(g)
        bets, falls = g * total - count * x * rise + log_weight, count * rise
    else:
        g = g / noise.scale
        bets, falls = g * (total - count * x) - 0.5 * (g * noise.scale) ** 2 * count + log_weight, g * count
        if more:
            n, off, q = more[0], more[1] - more[0] * x, more[2]
            a2 = q + off**2 / xp.maximum(n, xp.ones_like(n)) + n * half**2
            near = g * off - 0.5 * g**2 * a2 + (log_weight + math.log1p(-FAR_SHARE))
            bets, falls = (
                xp.concat([bets + math.log(FAR_SHARE), near]),
                xp.concat([falls + 0.0 * bets, g * n - g**2 * off]),
            )
    value, part = log_sum(bets)
    return value, -added(part * falls)


def pooled(sums: Callable[[Array], Array], n: Array, total: Array, squares: Array) -> tuple[Array, Array, Array]:
    """How many readings there are at some levels together, their sum and squared distances from their mean, from those
    of each level."""
    xp = array_namespace(n)
    one = xp.ones_like(n)
    many, all_ = sums(n), sums(total)
    apart = sums(total**2 / xp.maximum(n, one)) - all_**2 / xp.maximum(many, one)
    return many, all_, sums(squares) + xp.maximum(apart, xp.zeros_like(n))


class Terms(NamedTuple):
    """What the verdict needs of every arm, for b at each level: (trials, arms, levels)."""

    noise: Noise
    below: tuple[Array, ...]  # count, total (and what else `wager` takes) at levels b and above
    above: tuple[Array, ...]  # at levels b and below
    high_before: Array  # wealth `high` of the levels below b
    high: Array  # and at b
    low_after: Array  # wealth `low` of the levels above b
    may_rival: Array  # whether b can be there: at or below every level shown to be over the limit
    may_led: Array  # at or above every level shown to be good
    stake: float = 0.0  # the log of the share of it that is bet on effects

    def take(self, index: Array) -> Terms:
        xp = array_namespace(index)

        def cut(a: Array) -> Array:
            return xp.take(a, index, axis=0)

        below, above = (tuple(map(cut, z)) for z in (self.below, self.above))
        rest = {name: cut(getattr(self, name)) for name in self._fields[3:8]}
        return self._replace(below=below, above=above, **rest)

    def mixed(self, effect: Array) -> tuple[Array, Array]:
        """The wagers on harm below b, and on harm and effect from b on; and the part of the effect in the latter."""
        xp = array_namespace(effect)
        before, here = self.high_before[..., None], self.high[..., None]
        a, b = math.log(HARM_SHARE) + here, math.log(1 - HARM_SHARE) + effect
        top = xp.maximum(a, b)
        value = top + xp.log(xp.exp(a - top) + xp.exp(b - top))
        return before + value, xp.exp(b - value)

    def far(self, share: float = FAR_SHARE) -> Terms:
        """With no bets but those that are monotone in x, as all are where sigma is known."""
        if not isinstance(self.noise, Unknown) or len(self.below) < 3:
            return self
        return self._replace(below=self.below[:2], above=self.above[:2], stake=math.log(share))

    def rival(self, x: Array, half: Any = 0.0) -> tuple[Array, Array]:
        """Log wealth against "value >= x, largest safe level b", and its slope: (trials, arms, levels, x)."""
        xp = array_namespace(x)
        n, y, *more = (z[..., None] for z in self.below)
        effect, slope = wager(n, y, x[:, None, None, :], self.noise, GAP, False, *more, half=half)
        value, part = self.mixed(effect + self.stake)
        return xp.where(self.may_rival[..., None], value, xp.inf), part * slope

    def led(self, x: Array, half: Any = 0.0) -> tuple[Array, Array]:
        """The same against "value <= x, largest safe level b"; x is (trials, arms, x)."""
        xp = array_namespace(x)
        n, y, *more = (z[..., None] for z in self.above)
        value, slope = wager(n, y, x[:, :, None, :], self.noise, GAP, True, *more, half=half)
        return xp.where(self.may_led[..., None], value + (self.stake + self.low_after[..., None]), xp.inf), slope

    def floors(self) -> tuple[Array, Array]:
        """What `rival` and `led` are at least, whatever x is: (trials, arms). Where sigma is not known, readings are
        bet on before they count."""
        xp, nothing = array_namespace(self.high), math.log(GAP.nothing)
        many = (z[2] if len(z) == 5 else z[0] for z in (self.below, self.above))
        down, up = (xp.where(n > 0, nothing, xp.zeros_like(n)) for n in many)
        rival = xp.where(self.may_rival, self.mixed(down[..., None])[0][..., 0], xp.inf)
        return xp.min(rival, axis=2), xp.min(xp.where(self.may_led, self.low_after + up, xp.inf), axis=2)


def against(t: Terms, left: Array, right: Array, shift: Array) -> tuple[Array, Array]:
    """Evidence against "k is best" for every k, in cells of x: the least in each, and that in the middle of each.

    Every term is convex in x for fixed b, so its tangent at the middle bounds it from below; the least tangent over b
    is concave, and so is their sum over arms: it is least at an end of the cell. `shift`, (trials, arms): the values of
    these arms are compared with x - shift.
    """
    xp = array_namespace(left)
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    half = half[:, None, None, :]
    (u, du), (v, dv) = t.rival(middle, half), t.led(middle[:, None, :] - shift[..., None], half)

    def summed(way: float) -> Array:
        mine, theirs = xp.min(u + way * half * du, axis=2), xp.min(v + way * half * dv, axis=2)
        return mine + xp.sum(theirs, axis=1, keepdims=True) - theirs

    return xp.minimum(summed(-1.0), summed(1.0)), summed(0.0)


def beyond(t: Terms, low: Array, high: Array, shift: Array) -> tuple[Array, Array]:
    """The least evidence where x is below `low`, and above `high`, (trials, arms): what was not bet is not lost."""
    xp = array_namespace(low)
    if t.noise.kind == "bernoulli":  # there is nothing below 0 and above 1
        none = t.high[..., 0] * 0 + xp.inf
        return none, none
    (floor_u, floor_v), t = t.floors(), t.far()
    u = xp.min(t.rival(high[:, None])[0][..., 0], axis=2)
    v = xp.min(t.led(low[:, None, None] - shift[..., None])[0][..., 0], axis=2)
    under = floor_u + xp.sum(v, axis=1, keepdims=True) - v
    over = u + xp.sum(floor_v, axis=1, keepdims=True) - floor_v
    return under, over


def infimum(t: Terms, edges: Array, shift: Array, which: Array, goal: float) -> tuple[Array, Array, Array]:
    """The evidence against each claim over all values: a number it is not below, about how much it is, and at which x.

    The cells between the edges, and what is beyond them, cover all values. Of the claims in `which`, those that might
    reach the goal get finer cells: the four weakest are split, again and again.
    """
    xp = array_namespace(edges)
    left, right = edges[:, :-1], edges[:, 1:]
    cells, seen = against(t, left, right, shift)
    under, over = beyond(t, edges[:, 0], edges[:, -1], shift)
    about, outer = xp.min(seen, axis=2), xp.minimum(under, over)
    x = xp.take_along_axis(0.5 * (left + right), xp.argmin(seen, axis=2), axis=1)
    x = xp.where(under < about, edges[:, :1], xp.where(over < about, edges[:, -1:], x))
    bound = xp.minimum(xp.min(cells, axis=2), outer)

    which = which & (bound < goal) & (about >= goal) & (outer >= goal)
    if bool(xp.any(which)):
        row, arm = xp.nonzero(which)
        ends = xp.take(left, row, axis=0), xp.take(right, row, axis=0)
        found = split(t.take(row), *ends, rows(cells, which), arm, xp.take(shift, row, axis=0), goal)
        bound = put(bound, which, xp.minimum(found, rows(outer, which)))
    return bound, xp.minimum(about, outer), x


def split(t: Terms, left: Array, right: Array, cells: Array, arm: Array, shift: Array, goal: float) -> Array:
    """The least evidence against the claim of one arm a row, in these cells and finer ones."""
    xp = array_namespace(left)
    found = xp.min(cells, axis=1)
    rest = xp.full_like(found, xp.inf)
    for _ in range(8):
        order = xp.argsort(cells, axis=1)
        rest = xp.minimum(rest, xp.min(xp.take_along_axis(cells, order[:, 4:], axis=1), axis=1))
        left, right = (xp.take_along_axis(z, order[:, :4], axis=1) for z in (left, right))
        ends = left[..., None] + (right - left)[..., None] * like(left, [k / 6 for k in range(7)])
        left, right = (xp.reshape(z, (z.shape[0], -1)) for z in (ends[..., :-1], ends[..., 1:]))
        both = against(t, left, right, shift)
        cells, seen = (xp.take_along_axis(z, arm[:, None, None], axis=1)[:, 0, :] for z in both)
        found = xp.maximum(found, xp.minimum(rest, xp.min(cells, axis=1)))
        if not bool(xp.any((found < goal) & (xp.min(seen, axis=1) >= goal) & (rest >= goal))):
            break
    return found
