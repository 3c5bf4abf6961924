"""Kinds of noise, and how two readings of a pull are drawn. What a kind is: `kind`."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .arrays import Array, array_namespace
from .bounds import Mixture, beta_mixture, binary_bet, count_bet, log_counts, log_tilt
from .checks import SurefootError, number
from .kind import KINDS, Noise, Sums, noises_to_dict, parse_noises


@dataclass(frozen=True)
class _Scaled(Noise):
    """Noise of a declared sigma, its standard deviation."""

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", number("noise sigma", self.sigma, above=0))

    @property
    def scale(self) -> float:
        return self.sigma


class _Normal(Noise):
    exact: ClassVar[bool] = True

    def draw(self, rng: np.random.Generator, n: Sums, mean: Sums) -> tuple[Sums, Sums]:
        return self.follow(rng, n, mean, 0.0, 0.0)

    def follow(
        self, rng: np.random.Generator, n: Sums, mean: Sums, other: Any, correlation: float
    ) -> tuple[Sums, Sums]:
        """The same with a correlation to the noise `other` of another reading, in units of its scale."""
        xp = array_namespace(n)
        noise = xp.sqrt(xp.astype(n, xp.float64)) * rng.standard_normal(n.shape)
        if correlation:
            noise = correlation * other + math.sqrt(1 - correlation**2) * noise
        return n * mean + self.scale * noise, noise

    def squares(self, rng: np.random.Generator, n: Sums, total: Sums, mean: Sums) -> Sums:
        """Chi-square with n - 1 degrees of freedom, whatever the sum."""
        free = np.maximum(n - 1, 0)
        return np.asarray(self.scale**2 * np.where(free > 0, rng.chisquare(np.maximum(free, 1)), 0.0))


@dataclass(frozen=True)
class Gaussian(_Scaled, _Normal):
    """Normal with standard deviation sigma."""

    kind: ClassVar[str] = "gaussian"


@dataclass(frozen=True)
class Guessed(_Normal):
    """Normal with a standard deviation of which there is only a guess, the same at every dose of an arm. Nothing that
    is promised rests on the guess: it sets the sizes of the first bets. In a simulation it is what is drawn."""

    guess: float

    kind: ClassVar[str] = "gaussian-guess"
    known: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "guess", number("noise guess", self.guess, above=0))

    @property
    def scale(self) -> float:
        return self.guess

    def assumption(self) -> str:
        return f"gaussian (sigma not known, guessed {self.scale:g}; the same at every dose of an arm)"


class Unknown(Gaussian):
    """Normal, with a sigma that nobody knows: what evidence takes readings for of which there is a guess."""


class _Coin(Noise):
    """A reading with two values, one scale above and below their middle."""

    @abstractmethod
    def chance(self, mean: Sums) -> Sums:
        """Of the higher one."""

    @abstractmethod
    def total(self, ones: Sums, n: Sums, mean: Sums) -> Sums:
        """The sum of n readings of which `ones` have the higher value."""

    def draw(self, rng: np.random.Generator, n: Sums, mean: Sums) -> tuple[Sums, Sums]:
        p = self.chance(mean)
        ones = rng.binomial(n, p)
        return self.total(ones, n, mean), 2.0 * (ones - n * p)

    def squares(self, rng: np.random.Generator, n: Sums, total: Sums, mean: Sums) -> Sums:
        """By how many of the two values the sum is made of."""
        none, each = self.total(np.zeros_like(n), n, mean), 2 * self.scale
        ones = np.round((total - none) / each)
        return np.asarray(each**2 * ones * (1 - ones / np.maximum(n, 1)))


@dataclass(frozen=True)
class Rademacher(_Scaled, _Coin):
    """Sigma above or below the mean, as a fair coin falls."""

    kind: ClassVar[str] = "rademacher"

    def chance(self, mean: Sums) -> Sums:
        return 0.0 * mean + 0.5

    def total(self, ones: Sums, n: Sums, mean: Sums) -> Sums:
        return n * mean + self.scale * (2.0 * ones - n)


@dataclass(frozen=True)
class Bernoulli(_Coin):
    """0 or 1."""

    kind: ClassVar[str] = "bernoulli"
    exact: ClassVar[bool] = True
    binary: ClassVar[bool] = True
    counts: ClassVar[bool] = True
    ratios: ClassVar[bool] = True
    worst = (0.0, 1.0)

    @property
    def scale(self) -> float:
        return 0.5  # of any reading in [0, 1] (Hoeffding's lemma)

    def chance(self, mean: Sums) -> Sums:
        chance: Sums = array_namespace(mean).clip(mean, 0.0, 1.0)
        return chance

    def total(self, ones: Sums, n: Sums, mean: Sums) -> Sums:
        xp = array_namespace(ones)
        total: Sums = xp.astype(ones, xp.float64)
        return total

    def reading(self, name: str, value: Any) -> float:
        x = number(name, value)
        if x not in (0.0, 1.0):
            raise SurefootError(f"{name} is binary in this study: it must be 0 or 1; got {value!r}")
        return x

    def assumption(self) -> str:
        return "yes or no"

    def bet(self, total: Array, n: Array, bound: Array, guess: Array, above: bool) -> Array:
        return binary_bet(total, n, bound, guess, above)

    def tilted(self, mean: Array, by: Array) -> Array:
        """A bet with a lower guess loses where a reading is 1, with a higher one where it is 0."""
        xp = array_namespace(by)
        mean = xp.clip(mean, 0.0, 1.0)
        return xp.where(by < 0, mean * xp.exp(by), 1 - (1 - mean) * xp.exp(-by))

    def mixture(self, total: Array, weight: Array, square: Array, x: Array, above: bool, prior: Mixture) -> Array:
        """Of likelihood ratios, over log odds of their own; weights must be 1, and the prior is not asked."""
        return log_tilt(total, weight, x, above)

    def universal(self, n: Array, mean: Array) -> tuple[Any, Any]:
        return n, beta_mixture(n, mean)

    def divergence(self, mean: Array, other: Array) -> Any:
        from scipy.special import rel_entr

        mean, other = np.clip(mean, 0, 1), np.clip(other, 0, 1)
        return rel_entr(mean, other) + rel_entr(1 - mean, 1 - other)


class Varying(Bernoulli):
    """Between 0 and 1, with squares: what evidence takes bounded readings for whose spread is told."""


@dataclass(frozen=True)
class Bounded(_Coin):
    """Between `low` and `high`, and nothing else is known. `spread`: how the readings vary is told too, and bet on: far
    fewer are needed where they vary little. Drawn as the widest of these: one of the two ends."""

    low: float = 0.0
    high: float = 1.0
    spread: bool = False

    kind: ClassVar[str] = "bounded"

    def __post_init__(self) -> None:
        for key in ("low", "high"):
            object.__setattr__(self, key, number(f"noise {key}", getattr(self, key)))
        if self.low >= self.high:
            raise SurefootError(f"bounded noise needs low below high; got low {self.low:g}, high {self.high:g}")
        if not isinstance(self.spread, bool):
            raise SurefootError(f"noise spread must be true or false; got {self.spread!r}")

    @property
    def scale(self) -> float:
        return 0.5 * (self.high - self.low)  # Hoeffding's lemma

    @property
    def worst(self) -> tuple[float, float]:  # type: ignore[override]
        return self.low, self.high

    def chance(self, mean: Sums) -> Sums:
        return np.clip((mean - self.low) / (self.high - self.low), 0, 1)

    def total(self, ones: Sums, n: Sums, mean: Sums) -> Sums:
        return n * self.low + (self.high - self.low) * ones

    def reading(self, name: str, value: Any) -> float:
        x = number(name, value)
        if not self.low <= x <= self.high:
            raise SurefootError(f"{name} is between {self.low:g} and {self.high:g} in this study; got {value!r}")
        return x

    def assumption(self) -> str:
        return f"between {self.low:g} and {self.high:g}"


@dataclass(frozen=True)
class Beta(Bounded):
    """What bounded readings may be in truth: a beta law between low and high with this standard deviation, or less
    where the mean leaves no room for it. Drawn one by one."""

    sd: float = 0.1

    kind: ClassVar[str] = "beta"
    alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sd", number("noise sd", self.sd, above=0))

    def draw(self, rng: np.random.Generator, n: Sums, mean: Sums) -> tuple[Sums, Sums]:
        total, _ = self.both(rng, n, mean)
        return total, (total - n * mean) / self.scale

    def both(self, rng: np.random.Generator, n: Sums, mean: Sums) -> tuple[Sums, Sums]:
        wide = self.high - self.low
        m = np.clip((mean - self.low) / wide, 1e-6, 1 - 1e-6).ravel()
        size = np.maximum(m * (1 - m) / (self.sd / wide) ** 2 - 1, 0.05)
        which = np.repeat(np.arange(n.size), n.ravel())
        x = rng.beta((m * size)[which], ((1 - m) * size)[which])
        total = np.bincount(which, x, n.size)
        squares = np.bincount(which, (x - (total / np.maximum(n.ravel(), 1))[which]) ** 2, n.size)
        return n * self.low + wide * total.reshape(n.shape), wide**2 * squares.reshape(n.shape)


@dataclass(frozen=True)
class Poisson(Noise):
    """A count, Poisson with any mean: events in a fixed time, per so much exposure. `about` is a mean that may be
    expected; it sets the sizes of cells and cohorts, and no promise rests on it."""

    about: float

    kind: ClassVar[str] = "poisson"
    counts: ClassVar[bool] = True
    ratios: ClassVar[bool] = True
    subgaussian: ClassVar[bool] = False
    alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "about", number("noise about", self.about, above=0))

    @property
    def scale(self) -> float:
        return math.sqrt(self.about)  # a standard deviation that may be expected

    def draw(self, rng: np.random.Generator, n: Sums, mean: Sums) -> tuple[Sums, Sums]:
        total = rng.poisson(n * np.maximum(mean, 0.0)).astype(float)
        return total, (total - n * mean) / self.scale

    def squares(self, rng: np.random.Generator, n: Sums, total: Sums, mean: Sums) -> Sums:
        """Given their sum, each event falls on any of the n readings alike."""
        most, row = int(n.max(initial=1)), np.repeat(np.arange(n.size), total.ravel().astype(int))
        place, many = np.unique(row * most + rng.integers(np.maximum(n.ravel(), 1)[row]), return_counts=True)
        squares = np.bincount(place // most, many.astype(float) ** 2, n.size).reshape(n.shape)
        return squares - total**2 / np.maximum(n, 1)

    def reading(self, name: str, value: Any) -> float:
        x = number(name, value)
        if x < 0 or x != int(x):
            raise SurefootError(f"{name} is a count in this study: a whole number from 0 on; got {value!r}")
        return x

    def assumption(self) -> str:
        return "Poisson counts"

    def bet(self, total: Array, n: Array, bound: Array, guess: Array, above: bool) -> Array:
        return count_bet(total, n, bound, guess, 1e-3 * self.about, above)

    def tilted(self, mean: Array, by: Array) -> Array:
        xp = array_namespace(by)
        return xp.where(mean > 0, mean, 0.0) * xp.exp(by)

    def mixture(self, total: Array, weight: Array, square: Array, x: Array, above: bool, prior: Mixture) -> Array:
        """Of likelihood ratios, over the log of how many times higher a mean is; weights must be 1."""
        return log_counts(total, weight, x, above)

    def divergence(self, mean: Array, other: Array) -> Any:
        from scipy.special import kl_div

        return kl_div(np.maximum(mean, 0), np.maximum(other, 0))


@dataclass(frozen=True)
class PerArm(Noise):
    """What may be in truth: every arm has a noise of its own. For simulation alone."""

    kinds: tuple[Noise, ...]

    kind: ClassVar[str] = "per-arm"
    alone: ClassVar[bool] = True

    @property
    def scale(self) -> float:
        return max(noise.scale for noise in self.kinds)

    def draw(self, rng: np.random.Generator, n: Sums, mean: Sums) -> tuple[Sums, Sums]:
        drawn = [noise.draw(rng, n[:, k], mean[:, k]) for k, noise in enumerate(self.kinds)]
        off = [noise.scale / self.scale * x for noise, (_, x) in zip(self.kinds, drawn, strict=True)]
        return np.stack([total for total, _ in drawn], axis=1), np.stack(off, axis=1)

    def both(self, rng: np.random.Generator, n: Sums, mean: Sums) -> tuple[Sums, Sums]:
        columns = [noise.both(rng, n[:, k], mean[:, k]) for k, noise in enumerate(self.kinds)]
        return np.stack([x for x, _ in columns], axis=1), np.stack([x for _, x in columns], axis=1)


KINDS.known.update({kind.kind: kind for kind in (Gaussian, Guessed, Rademacher, Bernoulli, Bounded, Beta, Poisson)})


# Two readings


def draw_squares(
    rng: np.random.Generator, n: Sums, means: tuple[Sums, Sums], noises: tuple[Noise, Noise], correlation: float
) -> tuple[Sums, Sums, Sums, Sums]:
    """`draw_sums`, and for each reading the sum of its squared distances from its mean in the cohort."""
    if any(noise.alone for noise in noises):
        (effect, wide), (harm, high) = (x.both(rng, n, mean) for x, mean in zip(noises, means, strict=True))
        return effect, harm, wide, high
    sums = draw_sums(rng, n, means, noises, correlation)
    wide, high = (x.squares(rng, n, total, mean) for x, total, mean in zip(noises, sums, means, strict=True))
    return *sums, wide, high


def draw_sums(
    rng: np.random.Generator, n: Sums, means: tuple[Sums, Sums], noises: tuple[Noise, Noise], correlation: float
) -> tuple[Sums, Sums]:
    """Sums over n pulls of two readings with these means, noises and correlation; exact, in a few draws an arm.

    Two readings of two values (Bernoulli or Rademacher) share their uniform with probability |correlation|, one turned
    over where it is negative. With a Gaussian reading, its noise is correlation * (the other's, standardised by its
    sigma) + sqrt(1 - correlation^2) * N(0, 1): it stays sigma-sub-Gaussian, and Gaussian if the other is.
    """
    effect, harm = noises
    xp = array_namespace(n)
    if isinstance(effect, _Coin) and isinstance(harm, _Coin) and not (effect.alone or harm.alone):
        p, q = effect.chance(means[0]), harm.chance(means[1])
        ones = rng.binomial(n, q)
        both = p * q
        if correlation:
            tied = xp.minimum(p, q) if correlation > 0 else xp.clip(p + q - 1, 0.0, 1.0)
            both = (1 - abs(correlation)) * both + abs(correlation) * tied
        with np.errstate(divide="ignore", invalid="ignore"):
            given_one = xp.clip(xp.where(q > 0, both / q, 0.0), 0.0, 1.0)
            given_zero = xp.clip(xp.where(q < 1, (p - both) / (1 - q), 0.0), 0.0, 1.0)
        tied = rng.binomial(ones, given_one) + rng.binomial(n - ones, given_zero)
        return effect.total(tied, n, means[0]), harm.total(ones, n, means[1])
    last = 0 if isinstance(effect, _Normal) else 1  # the reading that is drawn given the other: a Gaussian one
    second = noises[last]
    if not isinstance(second, _Normal) or effect.alone or harm.alone:
        if correlation:
            raise SurefootError(f"{effect.kind} and {harm.kind} readings can only be drawn without correlation")
        return effect.draw(rng, n, means[0])[0], harm.draw(rng, n, means[1])[0]
    one, other = noises[1 - last].draw(rng, n, means[1 - last])
    two, _ = second.follow(rng, n, means[last], other, correlation)
    return (two, one) if last == 0 else (one, two)


__all__ = [
    "KINDS", "Bernoulli", "Beta", "Bounded", "Gaussian", "Guessed", "Noise", "PerArm", "Poisson", "Rademacher",
    "Unknown", "Varying", "draw_squares", "draw_sums", "noises_to_dict", "parse_noises",
]  # fmt: skip
