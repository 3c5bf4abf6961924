"""A kind of noise: what is assumed of one reading, how it is drawn, which readings there can be, how to bet on them.

A kind is a class. What it does not say for itself is what holds for every sigma-sub-Gaussian reading, so a new kind
begins with its name, its scale and how it is drawn, and sharpens the rest where it can. Ours are in `noise`.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .arrays import Array
from .bounds import Mixture, log_mixture, normal_mixture, subgaussian_bet
from .checks import SurefootError, known_keys, number
from .registry import Registry, a_class

Sums = NDArray[Any]


class _ByName(ABCMeta):
    """`Noise("gaussian", 0.4)` is `Gaussian(0.4)`: the kind by its name, as in a problem file."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _named(*args, **kwargs) if cls is Noise else super().__call__(*args, **kwargs)


class Noise(metaclass=_ByName):
    """One reading's noise, by its kind and that kind's fields.

    Parameters
    ----------
    kind
        "gaussian" and "rademacher" (plus or minus sigma) with `sigma`, "gaussian-guess" with a guess of a sigma that
        nobody knows, "bernoulli" (0 or 1), "bounded" between `low` and `high`, "poisson" counts of `about` so many;
        `surefoot schema` lists all.
    *values, **fields
        The fields of the kind, in its units: those of the reading.

    Raises
    ------
    SurefootError
        If there is no such kind, or a field is missing or not above 0.

    Examples
    --------
    >>> from surefoot import Noise
    >>> Noise("gaussian", 0.4)
    Gaussian(sigma=0.4)
    >>> Noise("bernoulli").scale  # a reading in [0, 1] is sub-Gaussian with this sigma
    0.5
    """

    kind: ClassVar[str]
    exact: ClassVar[bool] = False  # whether `divergence` is that of the law itself, and not only of what is assumed
    binary: ClassVar[bool] = False  # whether a reading is 0 or 1
    known: ClassVar[bool] = True  # whether the scale is; else it is a guess, and the readings have to tell it
    counts: ClassVar[bool] = False  # whether a reading is a whole number from 0 on
    ratios: ClassVar[bool] = False  # whether bets are likelihood ratios, which hold whatever the mean and need no scale
    subgaussian: ClassVar[bool] = True  # whether `scale` is what it says
    alone: ClassVar[bool] = False  # whether it can only be drawn by itself, without a correlation to another reading
    worst: tuple[float, float] | None = None  # the least effect and the largest harm, where there are such

    if TYPE_CHECKING:

        def __init__(self, kind: str = "gaussian", *values: Any, **fields: Any) -> None: ...

    @property
    def scale(self) -> float:
        """A reading is sigma-sub-Gaussian around its mean with this sigma: E exp(g noise) <= exp(g^2 sigma^2 / 2)."""
        raise self.lacks("its scale")

    def draw(self, rng: np.random.Generator, n: Sums, mean: Sums) -> tuple[Sums, Sums]:
        """The sum of n readings of this mean, exactly distributed, and the noise in it in units of the scale."""
        raise self.lacks("how it is drawn")

    def squares(self, rng: np.random.Generator, n: Sums, total: Sums, mean: Sums) -> Sums:
        """The sum of squared distances of n readings from their own mean, given their sum."""
        raise self.lacks("how its readings vary, for which this problem asks")

    def both(self, rng: np.random.Generator, n: Sums, mean: Sums) -> tuple[Sums, Sums]:
        """The sum of n readings, and that of their squared distances from their own mean."""
        total, _ = self.draw(rng, n, mean)
        return total, self.squares(rng, n, total, mean)

    def reading(self, name: str, value: Any) -> float:
        """A reading as a float, or an error that says why it cannot be one."""
        return number(name, value)

    def assumption(self) -> str:
        """What is assumed, in words."""
        return f"{self.kind} (sigma {self.scale:g}, sub-Gaussian)"

    def lacks(self, what: str) -> SurefootError:
        return SurefootError(f"{type(self).__name__} noise does not say {what}")

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    def bet(self, total: Array, n: Array, bound: Array, guess: Array, above: bool) -> Array:
        """Log of the wealth from one bet on the sum of n readings that their mean is above (or below) `bound`."""
        return subgaussian_bet(total, n, bound, guess, self.scale, above)

    def tilted(self, mean: Array, by: Array) -> Array:
        """A guess above the mean, or below it: by a bet on it no pull can lose more than in proportion to `by`."""
        return mean + self.scale * by

    def mixture(self, total: Array, weight: Array, square: Array, x: Array, above: bool, prior: Mixture) -> Array:
        """Log of the wealth from a mixture of bets that a mean is above (or below) x.

        `total`, `weight` and `square` are sums of w * reading, w and w^2 with weights fixed before the readings;
        `prior` is over g in units of 1/(w scale). It decreases in x if `above`, and else increases. Arrays have as many
        axes as each other, and may be broadcast.
        """
        off = (total - x * weight) / self.scale
        return log_mixture(off if above else -off, square, prior)

    def universal(self, n: Array, mean: Array) -> tuple[Any, Any]:
        """(w, c) such that w * divergence(mean, x) - c is the log of a mixture that is a supermartingale where x is the
        true mean, for the mean of n readings at every n (NumPy arrays)."""
        return normal_mixture(n)

    def divergence(self, mean: Array, other: Array) -> Any:
        """How many nats a reading of this mean tells against another mean (NumPy arrays)."""
        return (mean - other) ** 2 / (2 * self.scale**2)


KINDS: Registry[type[Noise]] = Registry("noises", {}, a_class(Noise), "kind")


def _named(kind: str = "gaussian", *values: Any, **given: Any) -> Noise:
    """A kind by its name, with its own fields by place or by name."""
    cls = KINDS[kind]
    own: list[Any] = list(fields(cls))  # type: ignore[arg-type]
    given |= zip([f.name for f in own] or ["sigma"], values, strict=False)
    if kind == "bernoulli" and (sigma := given.pop("sigma", None)) not in (None, 0.5):
        raise SurefootError(f"bernoulli noise has sigma 0.5 and takes no other; got {sigma!r}")
    known_keys(f"{kind} noise", given, [f.name for f in own])
    if lacks := [f.name for f in own if f.default is MISSING and given.get(f.name) is None]:
        more = " (its standard deviation; where nobody knows it, see gaussian-guess)" if lacks == ["sigma"] else ""
        raise SurefootError(f"{kind} noise needs a {', '.join(lacks)}{more}; got none")
    return cls(**given)


def parse_noise(where: str, data: Any) -> Noise:
    if not isinstance(data, Mapping):
        known_keys(where, data, ())
    cls = KINDS[data.get("kind", "gaussian")]
    known_keys(where, data, ("kind", *([f.name for f in fields(cls)] or ["sigma"])))  # type: ignore[arg-type]
    return Noise(**data)


def parse_noises(where: str, data: Any) -> tuple[Noise, Noise]:
    """`{kind, sigma}` for both readings, or `{effect = {..}, harm = {..}}` apart."""
    if isinstance(data, Mapping) and ("effect" in data or "harm" in data):
        known_keys(where, data, ("effect", "harm"))
        for key in ("effect", "harm"):
            if key not in data:
                raise SurefootError(f"{where} names one reading only; it needs {where}.{key} too")
        return parse_noise(f"{where}.effect", data["effect"]), parse_noise(f"{where}.harm", data["harm"])
    both = parse_noise(where, data)
    return both, both


def noises_to_dict(noises: tuple[Noise, Noise]) -> dict[str, Any]:
    effect, harm = noises
    return effect.to_dict() if effect == harm else {"effect": effect.to_dict(), "harm": harm.to_dict()}
