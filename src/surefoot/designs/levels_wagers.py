"""The wagers of Surefoot-Levels, and the least evidence over all that is not known. See `levels_evidence`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..arrays import Array, Chosen, array_namespace, blocks, device, like, put, rows, where_least
from ..bounds import Mixture, atoms, log_sum
from ..noise import Noise, Unknown

VARY = (0.9, 0.75, 0.5, 0.3, 0.15, 0.06, 0.02)  # sizes of bets that learn the spread, in units of the whole range
FAR_SHARE = 0.1  # of a wager without a known sigma that is on bets by its bound: they hold far from all readings, too
HARM_SHARE = 0.25  # of the wager against "value >= x, b" that is staked on harm at b; the rest on effects from b on

SIXTHS = [k / 6 for k in range(7)]
ROOM = 4096  # levels times cells of x that are looked at together

# How far a mean is from the number it is tested against, in log odds (binary readings) or sigmas
FAR = Mixture(top=2.8, ratio=2.0, dense=3, below=6, tails=0.1, nothing=0.02)  # the ceiling
NEAR = Mixture(top=1.2, ratio=2.0, dense=3, below=7, above=1, tails=0.12, nothing=0.03)  # the limit
GAP = Mixture(top=0.8, ratio=2.0, dense=5, below=6, above=2, tails=0.12, nothing=0.04)  # x


def wager(
    count: Array, total: Array, x: Array, noise: Noise, prior: Mixture, above: bool, *more: Array, half: Any = None
) -> tuple[Array, Array]:
    """The log wealth of a mixture of bets that a mean is above (or below) x; and where a `half` is given, its slope in
    x. Convex in x, but for a sigma that is not known: then it is one that it is not below from x - half to x + half,
    and that is convex.

    Binary readings: likelihood ratios of odds e^g times higher (lower) than those of x; counts: of means so many times
    higher. Others: Robbins' mixture. Where the squares of bounded readings are known (`more`), half of the stake is on
    bets that learn how they vary. Where sigma is not known, `more` are `pooled` sums of all readings staked, and most
    of the stake is on exp(g a - g^2 a^2/2) for every reading x + a: its mean is at most 1 whatever sigma is.
    """
    xp, sign, at = array_namespace(total), 1.0 if above else -1.0, x
    g, log_weight = atoms(prior, total)
    g = sign * g
    if noise.kind == "bernoulli":
        rise = xp.expm1(g)
        at = xp.minimum(xp.maximum(x, 0.0), 1.0)  # a mean is never outside [0, 1], whatever x is
        chance = 1 + at * rise
        bets, falls, times = (g * total + log_weight) - count * xp.log(chance), rise / chance, count
        if more:
            l, even = xp.reshape(like(total, VARY), (-1, *[1] * total.ndim)), math.log(0.5)
            vary = sign * l * (total - count * at) + (l + xp.log1p(-l)) * more[0] + (even - math.log(len(VARY)))
            bets, falls = xp.concat([bets + even, vary]), xp.concat([falls + 0.0 * bets, sign * l + 0.0 * vary])
    elif noise.ratios:
        rise = xp.expm1(g)
        bets, falls, times = g * total - count * x * rise + log_weight, rise, count
    else:
        g = g / noise.scale
        bets, falls, times = (log_weight - 0.5 * (g * noise.scale) ** 2 * count) + g * (total - count * x), g, count
        if more:
            n, off, q = more[0], more[1] - more[0] * x, more[2]
            a2 = q + off**2 / xp.maximum(n, xp.ones_like(n)) + (0.0 if half is None else n * half**2)
            near = g * off - 0.5 * g**2 * a2 + (log_weight + math.log1p(-FAR_SHARE))
            falls, times = xp.concat([g * count + 0.0 * bets, g * n - g**2 * off]), 1.0
            bets = xp.concat([bets + math.log(FAR_SHARE), near])
    if half is None:
        return log_sum(bets)[0], 0.0
    value, slope = log_sum(bets, falls)
    slope = -times * slope
    return value + slope * (x - at), slope  # outside it goes on along its tangent


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

    def each(self, cut: Callable[[Array], Array]) -> Terms:
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

    def rival(self, x: Array, half: Any = None) -> tuple[Array, Array]:
        """Log wealth against "value >= x, largest safe level b", and with a `half` its slope: (trials, arms, levels,
        x). x is of every arm, (trials, arms, x), or one for all of a trial's."""
        xp = array_namespace(x)
        n, y, *more = (z[..., None] for z in self.below)
        effect, slope = wager(n, y, x[..., None, :], self.noise, GAP, False, *more, half=half)
        value, part = self.mixed(effect + self.stake)
        return xp.where(self.may_rival[..., None], value, xp.inf), part * slope

    def led(self, x: Array, half: Any = None) -> tuple[Array, Array]:
        """The same against "value <= x, largest safe level b"."""
        xp = array_namespace(x)
        n, y, *more = (z[..., None] for z in self.above)
        value, slope = wager(n, y, x[..., None, :], self.noise, GAP, True, *more, half=half)
        return xp.where(self.may_led[..., None], value + (self.stake + self.low_after[..., None]), xp.inf), slope

    def bet(self) -> tuple[Array, Array]:
        """How many readings are bet below and above x. Where sigma is not known, they are before they count."""
        below, above = (z[2] if len(z) == 5 else z[0] for z in (self.below, self.above))
        return below, above

    def floors(self) -> tuple[Array, Array]:
        """What `rival` and `led` are at least, whatever x is: (trials, arms)."""
        xp, nothing = array_namespace(self.high), math.log(GAP.nothing)
        down, up = (xp.where(n > 0, nothing, xp.zeros_like(n)) for n in self.bet())
        rival = xp.where(self.may_rival, self.mixed(down[..., None])[0][..., 0], xp.inf)
        return xp.min(rival, axis=2), xp.min(xp.where(self.may_led, self.low_after + up, xp.inf), axis=2)


def against(t: Terms, x: Array, half: Array | None, shift: Array, which: Array) -> tuple[Array, ...]:
    """Evidence against "k is best" for these k: at x, (trials, cells); and where there is a `half`, a number that it is
    not below from x - half to x + half.

    Every term is convex in x for fixed b, so its tangent bounds it from below; the least tangent over b is concave, and
    so is their sum over arms: it is least at an end of the cell. `shift`, (trials, arms): the values of these arms are
    compared with x - shift. An arm that never led says the same for every x.
    """
    xp = array_namespace(x)
    x = x[:, None, :] + 0.0 * shift[..., None]
    never = xp.min(xp.where(t.may_led, t.stake + t.low_after, xp.inf), axis=2)[..., None] + 0.0 * x
    mine = ends(t, Terms.rival, Chosen(which), x, half, xp.full_like(x, -xp.inf))
    theirs = ends(t, Terms.led, Chosen(xp.any(t.bet()[1] > 0, axis=2)), x - shift[..., None], half, never)
    found = [u + (xp.sum(v, axis=1, keepdims=True) - v) for u, v in zip(mine, theirs, strict=True)]
    return tuple(found[:1]) if half is None else (found[0], xp.minimum(*found[1:]))


def ends(
    t: Terms, side: Callable[..., tuple[Array, Array]], pairs: Chosen, x: Array, half: Array | None, elsewhere: Array
) -> list[Array]:
    """Of these arms, the least over b: at x, and of the tangents there at both ends of the cell. On a processor in
    blocks that its cache can hold."""
    xp, found = array_namespace(x), []
    off = None if half is None else half[:, None, :] + 0.0 * x
    for part in blocks(pairs.index, ROOM // (t.high.shape[-1] * x.shape[-1])):
        index = pairs.index[part]

        def cut(z: Array, index: Array = index) -> Array:
            return xp.take(xp.reshape(z, (-1, z.shape[-1])), index, axis=0)

        width = None if off is None else cut(off)[:, None, :]
        value, slope = side(t.each(cut), cut(x), width)
        all_ = [value] if width is None else [value, value - width * slope, value + width * slope]
        found.append([xp.min(z, axis=1) for z in all_])
    if not found:
        return [elsewhere] * (1 if half is None else 3)
    return [pairs.put(elsewhere, xp.concat(parts)) for parts in zip(*found, strict=True)]


def beyond(t: Terms, low: Array, high: Array, shift: Array) -> tuple[Array, Array]:
    """The least evidence where x is below `low`, and above `high`, (trials, arms): what was not bet is not lost."""
    xp = array_namespace(low)
    if t.noise.kind == "bernoulli":  # there is nothing below 0 and above 1
        none = t.high[..., 0] * 0 + xp.inf
        return none, none
    (floor_u, floor_v), t = t.floors(), t.far()
    u = xp.min(t.rival(high[:, None, None])[0][..., 0], axis=2)
    v = xp.min(t.led(low[:, None, None] - shift[..., None])[0][..., 0], axis=2)
    under = floor_u + xp.sum(v, axis=1, keepdims=True) - v
    over = u + xp.sum(floor_v, axis=1, keepdims=True) - floor_v
    return under, over


def infimum(t: Terms, edges: Array, shift: Array, which: Array, goal: float) -> tuple[Array, Array, Array]:
    """The evidence against the claims in `which` over all values: a number it is not below, -inf where it cannot reach
    the goal; about how much it is; and at which x.

    The cells between the edges, and what is beyond them, cover all values.
    """
    xp = array_namespace(edges)
    x = 0.5 * (edges[:, :-1] + edges[:, 1:])
    (seen,) = against(t, x, None, shift, which)
    under, over = beyond(t, edges[:, 0], edges[:, -1], shift)
    about, outer = xp.min(seen, axis=2), xp.minimum(under, over)
    x = xp.take_along_axis(x, where_least(seen, axis=2), axis=1)
    less = about - 1e-9  # not by rounding alone
    x = xp.where(under < less, edges[:, :1], xp.where(over < less, edges[:, -1:], x))
    about = xp.minimum(about, outer)
    bound, hopes = xp.full_like(about, -xp.inf), which & (about >= goal)
    if bool(xp.any(hopes)):
        row, arm = xp.nonzero(hopes)

        def cut(z: Array) -> Array:
            return xp.take(z, row, axis=0)

        found = split(t.each(cut), cut(edges), arm, cut(shift), goal)
        bound = put(bound, hopes, xp.minimum(found, rows(outer, hopes)))
    return bound, about, x


def split(t: Terms, edges: Array, arm: Array, shift: Array, goal: float) -> Array:
    """The least evidence against the claim of one arm a row, in these cells and, where it might yet reach the goal, in
    finer ones: the four weakest of all are split, again and again."""
    xp, left, right = array_namespace(edges), edges[:, :-1], edges[:, 1:]
    one = xp.arange(shift.shape[1], device=device(arm)) == arm[:, None]
    first = last = least = left[:, :0]
    found = xp.full_like(left[:, 0], -xp.inf)
    for _ in range(16):
        seen, cells = (rows(z, one) for z in against(t, 0.5 * (left + right), 0.5 * (right - left), shift, one))
        first, last, least = (xp.concat(z, axis=1) for z in ((first, left), (last, right), (least, cells)))
        found = xp.maximum(found, xp.min(least, axis=1))
        if not bool(xp.any((found < goal) & (xp.min(seen, axis=1) >= goal))):
            break
        order = xp.argsort(least, axis=1)
        least, first, last = (xp.take_along_axis(z, order, axis=1) for z in (least, first, last))
        least, finer = least[:, 4:], first[:, :4, None] + (last - first)[:, :4, None] * like(left, SIXTHS)
        first, last = first[:, 4:], last[:, 4:]
        left, right = (xp.reshape(z, (z.shape[0], -1)) for z in (finer[..., :-1], finer[..., 1:]))
    return found
