"""Blocks: the readings of many subjects told as one, by their number and sums. What may be told of one, and how."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ..problem import Noise, SurefootError, number
from .checker import READINGS

COLUMNS = ("n", *(f"{key}_{what}" for what in ("squares", "mean", "sd") for key in READINGS))


def block_in(noises: tuple[Noise, Noise], data: Mapping[str, Any], n: Any, squares: bool) -> dict[str, Any]:
    """What somebody tells of a block, as the journal has it: n, sums, and where sigma is not known (`squares`) the sums
    of squared distances from the mean of the block. `n`: as told before, if it was."""
    given = {key: data[key] for key in ("effect", "harm", *COLUMNS) if data.get(key) is not None}
    found: dict[str, Any] = {}
    if "n" in given or n is not None:
        n = found["n"] = _whole(given.get("n", n))
    elif given:
        raise SurefootError("n is missing: of how many subjects are these the sums?")
    for key, noise in zip(READINGS, noises, strict=True):
        mine = {name[len(key) + 1 :]: x for name, x in given.items() if name.startswith(f"{key}_")}
        if key in given and "mean" in mine:
            raise SurefootError(f"{key}: a sum or a mean, not both; got {given[key]!r} and {mine['mean']!r}")
        if key not in given and "mean" not in mine:
            if mine:
                raise SurefootError(f"{key}: {', '.join(mine)} without its sum or mean")
            continue
        total = number(key, given[key]) if key in given else n * number(f"{key}_mean", mine["mean"])
        found[key] = possible(key, noise, total, n)
        spread = _spread(key, noise, total, n, mine)
        if squares and spread is None and noise.counts:
            spread = 0.0  # how counts vary is not asked for, and never bet on
        if squares and spread is None:
            raise SurefootError(f"{key}: sigma is not known in this study: tell {key}_squares or {key}_sd as well")
        if spread is not None:
            found[f"{key}_spread"] = spread
    return found


def _whole(n: Any) -> int:
    value = number("n", n)
    if value != int(value) or value < 1:
        raise SurefootError(f"n must be a whole number of at least 1; got {n!r}: a block that nobody came of is voided")
    return int(value)


def possible(key: str, noise: Noise, total: float, n: int) -> float:
    """A sum that n readings can have."""
    if noise.worst is not None:
        low, high = noise.worst
        hair = 1e-9 * n * max(abs(low), abs(high))
        if not n * low - hair <= total <= n * high + hair:
            raise SurefootError(
                f"{key}: a mean of {total / n:g} is not between {low:g} and {high:g}; got a sum of {total:g}"
            )
        total = min(max(total, n * low), n * high)
    if noise.counts:
        if total < 0 or abs(total - round(total)) > 1e-6 * max(1.0, abs(total)):
            kind = "binary" if noise.binary else "a count"
            raise SurefootError(f"{key} is {kind} in this study: {n} readings sum up to a whole number; got {total:g}")
        total = float(round(total))
    return total


def _spread(key: str, noise: Noise, total: float, n: int, given: Mapping[str, Any]) -> float | None:
    """The sum of squared distances from the mean, from a sum of squares (exactly: large numbers cancel) or an sd."""
    if noise.binary:
        return total * (1 - total / n)
    if "sd" in given and "squares" in given:
        raise SurefootError(f"{key}: squares or an sd, not both")
    if "sd" in given:
        return (n - 1) * number(f"{key}_sd", given["sd"], least=0) ** 2
    if "squares" not in given:
        return 0.0 if n == 1 else None
    squares = number(f"{key}_squares", given["squares"], least=0)
    left = float(Fraction(squares) - Fraction(total) ** 2 / n)
    rounding = 1e-12 * squares
    if left < -rounding:
        raise SurefootError(
            f"{key}: squares that sum up to {squares:g} are too small for a sum of {total:g} over {n}: "
            f"at least {total * total / n:g}"
        )
    return max(left, 0.0) + 4 * math.ulp(squares)  # what was rounded away can only make it look more precise
