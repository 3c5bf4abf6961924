"""Anytime-valid bounds, each a pure function that names its theorem; proofs are in docs/guarantees.md.

All of them are Ville's inequality for a mixture of elementary supermartingales (Robbins 1970; Howard, Ramdas, McAuliffe
and Sekhon 2021). Readings are standardised by their sigma; `s` is a sum of weight * noise with weights fixed before
each reading (predictable), `v` the sum of weight^2. Then exp(g s - g^2 v / 2) is a supermartingale for every g, and so
is a mixture of them over a fixed set of g. Mixtures are over few values of g: sums of exponentials are all that the
array API offers, and all that is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from .arrays import Array, array_namespace, in_parts, like


@dataclass(frozen=True)
class Mixture:
    """A prior over g: `dense` values from `top` down by `ratio` share what is left by `tails`, which is spread over
    values beyond both ends by steps of 2.5, the first step weighing most, and by `nothing`: g = 0, no bet at all."""

    top: float
    ratio: float
    dense: int
    below: int = 8
    above: int = 0
    tails: float = 0.15
    nothing: float = 0.0

    @cached_property
    def atoms(self) -> tuple[Any, Any]:
        """The values of g and the logarithms of their weights."""
        middle = self.top * self.ratio ** -np.arange(float(self.dense))
        under, over = 1 + np.arange(self.below), 1 + np.arange(self.above)
        g = np.concatenate([middle, middle[-1] * 2.5**-under, self.top * 2.5**over])
        tail = np.concatenate([1 / (under * (under + 1)), 0.5 / (over * (over + 1))])
        weight = [np.full(self.dense, (1 - self.tails - self.nothing) / self.dense), self.tails * tail / tail.sum()]
        if self.nothing:
            g, weight = np.concatenate([[0.0], g]), [np.array([self.nothing]), *weight]
        return g, np.log(np.concatenate(weight))


# How far a dose is from the largest safe one, as a share of it: a tenth to nine tenths are expected.
SHORTFALL = Mixture(top=0.9, ratio=1.8, dense=5, below=12)
# How far a value is from a level, as a share of it: a tenth to seven tenths are expected; some stake is never bet.
CONTRAST = Mixture(top=0.7, ratio=1.6, dense=5, below=5, above=1, tails=0.1, nothing=0.15)
# How far the evidence that an arm gives is from what was expected of it, over all arms at once.
TOGETHER = Mixture(top=1.6, ratio=1.5, dense=5, below=2, above=1)
# How far a binary mean is from another, in log odds: a sixteenth to 1 are expected; some of the stake is never bet.
TILT = Mixture(top=1.0, ratio=2.0, dense=5, below=6, above=1, tails=0.1, nothing=0.15)
# Any scale at all, in units of the signal that is known before the first reading.
ANY = Mixture(top=1.0, ratio=1.8, dense=9, below=12, above=2)
# The log of how many times lower, or higher, the rate of a binary reading is than the one tested.
LOWERED = Mixture(top=2.5, ratio=1.8, dense=6, below=12, above=1)
RAISED = Mixture(top=1.6, ratio=1.8, dense=6, below=12)


def atoms(mixture: Mixture, x: Array) -> tuple[Array, Array]:
    """The atoms along a new first axis of `x`, where sums over them are fastest."""
    g, log_weight = columns(mixture, x.ndim)
    return (g, log_weight) if isinstance(x, np.ndarray) else (like(x, g), like(x, log_weight))


@cache
def columns(mixture: Mixture, ndim: int) -> tuple[Any, Any]:
    """Its atoms before so many axes."""
    g, log_weight = (np.reshape(values, (-1, *[1] * ndim)) for values in mixture.atoms)
    return g, log_weight


def added(x: Array) -> Array:
    """The sum over the first axis, one after another: in the same order whatever the shape of the rest. NumPy adds so
    by itself, and many times faster, but for single numbers."""
    if isinstance(x, np.ndarray) and x.size > x.shape[0]:
        return np.add.reduce(x, axis=0)
    return reduce(add, (x[i, ...] for i in range(x.shape[0])))


def log_sum(e: Array, *of: Array) -> tuple[Array, ...]:
    """The log of the sum of exp(e) over the first axis, and the mean of each of these with weights exp(e)."""
    xp = array_namespace(e)
    top = xp.max(e, axis=0)
    x = xp.exp(e - top)
    total = added(x)
    return top + xp.log(total), *(added(x * f) / total for f in of)


def log_mixture(s: Array, v: Array, mixture: Mixture) -> Array:
    """Robbins' mixture: log of the mean of exp(g s - g^2 v / 2) over the prior. Increasing and convex in s."""
    xp = array_namespace(s)
    g, log_weight = atoms(mixture, s)
    e = g * s + (log_weight - 0.5 * g**2 * v)
    top = xp.max(e, axis=0)
    return top + xp.log(added(xp.exp(e - top)))


def radius(v: Array, alpha: Any, mixture: Mixture, steps: int = 4) -> Array:
    """The u with log_mixture(u, v) = log(1/alpha): P(s >= u(v) at any time) <= alpha (Ville).

    Newton's method from above on a convex increasing function never passes the root, so stopping it early is safe.
    """

    def newton(v: Array, goal: Array) -> Array:
        xp = array_namespace(v)
        g, log_weight = atoms(mixture, v)
        if mixture.nothing:
            g, log_weight = g[1:, ...], log_weight[1:, ...]
        rest = log_weight - 0.5 * g**2 * v
        u = xp.min((goal - rest) / g, axis=0)  # where one g alone gets there
        for _ in range(steps):
            log_total, slope = log_sum(g * u + rest, g)
            u = u - (log_total - goal) / slope
        return u

    xp = array_namespace(v)
    return in_parts(newton, v, -xp.log(xp.zeros_like(v) + alpha))


def log_tilt(total: Array, n: Array, x: Array, above: bool) -> Array:
    """The mixture for binary readings: log of the mean over |g| in TILT of exp(g total - n log(1 + x (e^g - 1))), with
    g > 0 against a mean of x or less (`above`), g < 0 against a mean of x or more.

    A reading of mean m has E exp(g reading) = 1 + m (e^g - 1), at most 1 + x (e^g - 1) where m is on the null's side of
    x: a mixture of likelihood ratios of other means against x. It decreases in x if `above`, and else increases.
    """
    xp = array_namespace(total)
    g, log_weight = atoms(TILT, max(total, x, key=lambda it: it.ndim))
    g = g if above else -g
    chance = 1 + xp.clip(x, 0.0, 1.0) * xp.expm1(g)  # a mean is never outside [0, 1], whatever x is
    e = g * total - n * xp.log(chance) + log_weight
    top = xp.max(e, axis=0)
    return top + xp.log(added(xp.exp(e - top)))


def subgaussian_bet(total: Array, n: Array, bound: Array, guess: Array, sigma: float, above: bool) -> Array:
    """Log of the wealth from one bet that a mean is above (or below) `bound`, staked by a `guess` made beforehand:
    exp(g (x - bound) - g^2 sigma^2/2) for every reading x, with g = (guess - bound) / sigma^2 (`off` / sigma^2).

    Where the guess is on the other side, nothing is staked. The expected wealth is at most 1 for every mean that is not
    above (below) the bound, so the product over readings with predictable bounds and guesses is a supermartingale, and
    P(it ever reaches 1/alpha) <= alpha (Ville).
    """
    xp = array_namespace(total)
    off = xp.maximum(guess - bound if above else bound - guess, 0.0)
    seen = total - n * bound if above else n * bound - total
    return off * (seen - off * (0.5 * n)) / sigma**2


def binary_bet(total: Array, n: Array, bound: Array, guess: Array, above: bool) -> Array:
    """The same for binary readings: the likelihood ratio of guess against bound, which is exact."""
    xp = array_namespace(total)
    sign = 1.0 if above else -1.0
    bound = xp.where(bound <= 0, 1e-3, bound) if above else xp.where(bound >= 1, 1 - 1e-3, bound)
    on = (sign * (guess - bound) > 0) & (bound > 0) & (bound < 1)
    p = xp.where(on, bound, 0.5)
    q = xp.where(on, xp.clip(guess, 0.5 * p if not above else p, 0.5 * (1 + p) if above else p), p)
    return total * xp.log(q / p) + (n - total) * xp.log((1 - q) / (1 - p))


def log_counts(total: Array, n: Array, x: Array, above: bool) -> Array:
    """The mixture for Poisson counts: log of the mean over |g| in TILT of exp(g total - n x (e^g - 1)), with g > 0
    against a mean of x or less (`above`), g < 0 against a mean of x or more.

    A count of mean m has E exp(g count) = exp(m (e^g - 1)), at most exp(x (e^g - 1)) where m is on the null's side:
    a mixture of likelihood ratios of means e^g times higher (lower). Linear in x for every g.
    """
    xp = array_namespace(total)
    g, log_weight = atoms(TILT, max(total, x, key=lambda it: it.ndim))
    g = g if above else -g
    return log_sum(g * total - n * x * xp.expm1(g) + log_weight)[0]


def count_bet(total: Array, n: Array, bound: Array, guess: Array, least: float, above: bool) -> Array:
    """`subgaussian_bet` for Poisson counts: the likelihood ratio of guess against bound. Its mean is exp((guess/bound -
    1) (mean - bound)) for each, at most 1 where the mean is not above (below) the bound. A bound that is not above 0 is
    taken as `least`, where the bet is that the mean is above."""
    xp = array_namespace(total)
    bound = xp.where(bound <= 0, least, bound) if above else bound
    on = ((guess > bound) if above else (guess < bound)) & (bound > 0)
    p = xp.where(on, bound, 1.0)
    q = xp.where(on, xp.maximum(guess, 0.5 * p), p)
    return total * xp.log(q / p) - n * (q - p)


def slope_upper(v: Array, z: Array, alpha: float, steps: int = 4) -> Array:
    """An upper confidence sequence for m >= 0 where z = m v + s: P(bound < m at any time) <= alpha.

    To test a slope m, bet g = r m for r in SHORTFALL: what matters is how far the slope is below m as a share of m. For
    fixed m that is a mixture as any other; e(m) increases in m from z/v on, so the m that are not rejected end where
    e(m) = 1/alpha. Newton's method comes from above, as in `radius`.
    """

    def newton(v: Array, z: Array) -> Array:
        xp = array_namespace(v)
        r, log_weight = atoms(SHORTFALL, v)
        goal, q = float(np.log(1 / alpha)), r - r**2 / 2
        vq, rz = v * q, r * z
        m = xp.min((rz + xp.sqrt(rz**2 + (4 * q * (goal - log_weight)) * v)) / (2 * vq), axis=0)
        for _ in range(steps):
            a = m * vq
            b = a - rz
            x = xp.exp(m * b + log_weight)  # none is above the goal, since one alone was to reach it
            total = added(x)
            m = m - (xp.log(total) - goal) * total / added(x * (a + b))
        return m

    return in_parts(newton, v, z)


# Bets that squares are small: how many times larger sigma^2 is than what they seem to say, less 1, halved
SPREADS = np.array([0.5 * (1.25**k - 1) for k in (0.03, 0.06, 0.12, 0.25, 0.5, 1, 2, 3, 4.5, 7, 11, 16, 20)])


def sigma_upper(free: Array, squares: Array, alpha: float, steps: int = 3) -> Array:
    """An upper confidence sequence for the sigma of normal readings: P(bound < sigma at any time) <= alpha.

    `squares` is a sum of squared distances of readings from the mean of their cohort, and `free` that of their numbers,
    less 1 for every cohort: squares / sigma^2 is chi-square, so exp(-g squares / sigma^2) (1 + 2 g)^(free/2) is a
    martingale for every g > 0, and so is its mean over g in SPREADS. Its log falls with y = 1/sigma^2 and is convex, so
    that Newton's method stays below the root where it begins below it, as one g alone does. Infinite at first.
    """
    xp = array_namespace(free)
    g = xp.reshape(like(free, SPREADS), (-1, *[1] * free.ndim))
    goal, some = float(np.log(len(SPREADS) / alpha)), squares > 0
    q, rest = xp.where(some, squares, 1.0), 0.5 * free * xp.log1p(2 * g)
    y = xp.max((rest - goal) / (g * q), axis=0)  # where one g alone gets there
    some = some & (y > 0)
    y = xp.where(some, y, 1.0)
    for _ in range(steps):
        log_total, slope = log_sum(rest - g * q * y, g)
        y = y + (log_total - goal) / (slope * q)
    return xp.where(some, 1 / xp.sqrt(xp.where(some, y, 1.0)), xp.inf)


def rate_upper(n: Array, dose: Array, total: Array, alpha: float, steps: int = 4) -> Array:
    """An upper confidence sequence for m where binary readings have means m * dose: P(bound < m at any time) <= alpha.

    n readings, `dose` and `total` the sums of their doses and of themselves. To test m, bet exp(-g z) over its mean,
    1 - m a (1 - exp(-g)), for g in LOWERED. The log of the mean is concave in the dose a, so the product over readings
    is least where all are given at the mean dose; that increases in m and is convex. Newton's method as in `radius`.
    """
    xp = array_namespace(n)
    g, log_weight = atoms(LOWERED, n)
    c, rest = 1 - xp.exp(-g), log_weight - g * total
    goal = float(np.log(1 / alpha))
    p = xp.minimum(xp.min((1 - xp.exp((rest - goal) / n)) / c, axis=0), 1.0)
    for _ in range(steps):
        log_total, slope = log_sum(rest - n * xp.log(1 - p * c), c / (1 - p * c))
        p = xp.minimum(p - (log_total - goal) / (n * slope), 1.0)
    return p * n / dose


def rate_lower(n: Array, dose: Array, total: Array, alpha: float, steps: int = 4) -> Array:
    """The same from below: P(bound > m at any time) <= alpha. The bet is exp(g z) over 1 + m a (exp(g) - 1)."""
    xp = array_namespace(n)
    g, log_weight = atoms(RAISED, n)
    c, rest = xp.exp(g) - 1, log_weight + g * total
    goal = float(np.log(1 / alpha))
    p = xp.maximum(xp.max((xp.exp((rest - goal) / n) - 1) / c, axis=0), 0.0)
    for _ in range(steps):
        log_total, slope = log_sum(rest - n * xp.log(1 + p * c), c / (1 + p * c))
        p = xp.maximum(p + (log_total - goal) / (n * slope), 0.0)
    return p * n / dose


# Mixtures over all values, for controls and tables (NumPy)

RHO = 10.0  # the normal mixture is tightest after some tens of readings


def normal_mixture(n: Any, rho: float = RHO) -> tuple[Any, Any]:
    """Robbins' normal mixture (1970) over g ~ N(0, 1/(rho sigma^2)): that of exp(g (sum - n x) - g^2 sigma^2 n/2) is
    exp(w (mean - x)^2/(2 sigma^2) - c) with w = n^2/(n + rho) and c = log(1 + n/rho)/2. Returns w and c."""
    n = np.asarray(n, float)
    return n**2 / (n + rho), 0.5 * np.log1p(n / rho)


def beta_mixture(n: Any, mean: Any) -> Any:
    """Krichevsky and Trofimov's mixture (1981) of likelihoods over means ~ Beta(1/2, 1/2), against a mean x: the log of
    the ratio is n kl(mean, x) - c, exactly. Returns c, at most log(2 sqrt(n)) (n >= 1)."""
    from scipy.special import betaln, xlogy

    ones, zeros = n * mean, n * (1 - mean)
    return xlogy(ones, mean) + xlogy(zeros, 1 - mean) - betaln(ones + 0.5, zeros + 0.5) + betaln(0.5, 0.5)
