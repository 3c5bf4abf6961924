"""Anytime-valid bounds, each a pure function that names its theorem; proofs are in docs/guarantees.md.

All of them are Ville's inequality for a mixture of elementary supermartingales (Robbins 1970; Howard, Ramdas, McAuliffe
and Sekhon 2021). Readings are standardised by their sigma; `s` is a sum of weight * noise with weights fixed before
each reading (predictable), `v` the sum of weight^2. Then exp(g s - g^2 v / 2) is a supermartingale for every g, and so
is a mixture of them over a fixed set of g. Mixtures are over few values of g: sums of exponentials are all that the
array API offers, and all that is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .arrays import Array, like
from .problem import Noise


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
SHORTFALL = Mixture(top=0.9, ratio=1.8, dense=5)
# How far a value is from another, in units of the signal: 8% to 50% are expected; some of the stake is never bet.
CONTRAST = Mixture(top=0.5, ratio=1.6, dense=5, below=6, above=2, tails=0.1, nothing=0.15)
# Any scale at all, in units of the signal that is known before the first reading.
ANY = Mixture(top=1.0, ratio=1.8, dense=9, above=2)


def log_mixture(s: Array, v: Array, mixture: Mixture) -> Array:
    """Robbins' mixture: log of the mean of exp(g s - g^2 v / 2) over the prior. Increasing and convex in s."""
    xp = array_namespace(s)
    g, log_weight = (like(s, x) for x in mixture.atoms)
    e = g * s[..., None] - 0.5 * g**2 * v[..., None] + log_weight
    top = xp.max(e, axis=-1, keepdims=True)
    return top[..., 0] + xp.log(xp.sum(xp.exp(e - top), axis=-1))


def radius(v: Array, alpha: Any, mixture: Mixture, steps: int = 4) -> Array:
    """The u with log_mixture(u, v) = log(1/alpha): P(s >= u(v) at any time) <= alpha (Ville).

    Newton's method from above on a convex increasing function never passes the root, so stopping it early is safe.
    """
    xp = array_namespace(v)
    g, log_weight = (like(v, x) for x in mixture.atoms)
    if mixture.nothing:
        g, log_weight = g[1:], log_weight[1:]
    goal = -xp.log(xp.zeros_like(v) + alpha)
    v = v[..., None]
    u = xp.min((goal[..., None] - log_weight + 0.5 * g**2 * v) / g, axis=-1)  # where one g alone gets there
    for _ in range(steps):
        e = g * u[..., None] - 0.5 * g**2 * v + log_weight
        top = xp.max(e, axis=-1, keepdims=True)
        x = xp.exp(e - top)
        total = xp.sum(x, axis=-1)
        u = u - (top[..., 0] + xp.log(total) - goal) / (xp.sum(x * g, axis=-1) / total)
    return u


def bet(total: Array, n: Array, bound: Array, guess: Array, noise: Noise, above: bool) -> Array:
    """Log of the wealth from one bet that a mean is above (or below) `bound`, staked by a `guess` made beforehand.

    Where the guess is on the other side, nothing is staked. A sub-Gaussian reading: exp(g (x - bound) - g^2 sigma^2/2)
    with g = (guess - bound) / sigma^2. A binary reading: the likelihood ratio of guess against bound, which is exact.
    In both the expected wealth is at most 1 for every mean that is not above (below) the bound, so the product over
    readings with predictable bounds and guesses is a supermartingale, and P(it ever reaches 1/alpha) <= alpha (Ville).
    """
    xp = array_namespace(total)
    sign = 1.0 if above else -1.0
    if noise.kind == "bernoulli":
        bound = xp.where(bound <= 0, 1e-3, bound) if above else xp.where(bound >= 1, 1 - 1e-3, bound)
        on = (sign * (guess - bound) > 0) & (bound > 0) & (bound < 1)
        p = xp.where(on, bound, 0.5)
        q = xp.where(on, xp.clip(guess, 0.5 * p if not above else p, 0.5 * (1 + p) if above else p), p)
        return total * xp.log(q / p) + (n - total) * xp.log((1 - q) / (1 - p))
    var = noise.scale**2
    stake = xp.maximum(sign * (guess - bound), 0.0) / var
    return stake * sign * (total - n * bound) - 0.5 * stake**2 * var * n


def slope_upper(v: Array, z: Array, alpha: float, steps: int = 4) -> Array:
    """An upper confidence sequence for m >= 0 where z = m v + s: P(bound < m at any time) <= alpha.

    To test a slope m, bet g = r m for r in SHORTFALL: what matters is how far the slope is below m as a share of m. For
    fixed m that is a mixture as any other; e(m) increases in m from z/v on, so the m that are not rejected end where
    e(m) = 1/alpha. Newton's method comes from above, as in `radius`.
    """
    xp = array_namespace(v)
    r, log_weight = (like(v, x) for x in SHORTFALL.atoms)
    goal, q = float(np.log(1 / alpha)), r - r**2 / 2
    v, z = v[..., None], z[..., None]
    m = xp.min((r * z + xp.sqrt((r * z) ** 2 + 4 * v * q * (goal - log_weight))) / (2 * v * q), axis=-1)
    for _ in range(steps):
        e = m[..., None] ** 2 * v * q - r * m[..., None] * z + log_weight
        slope = 2 * m[..., None] * v * q - r * z
        top = xp.max(e, axis=-1, keepdims=True)
        x = xp.exp(e - top)
        total = xp.sum(x, axis=-1)
        m = m - (top[..., 0] + xp.log(total) - goal) / (xp.sum(x * slope, axis=-1) / total)
    return m
