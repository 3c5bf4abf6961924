"""The few things that array code needs beyond the array API standard."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from array_api_compat import array_namespace, device, is_numpy_array

Array = Any  # an array of any array-API namespace
BLOCK = 1024  # entries that are worked on together where what they need for it should stay in a core's cache


def like(x: Array, values: Any) -> Array:
    """`values` as an array in the namespace and on the device of `x`."""
    return array_namespace(x).asarray(values, device=device(x))


def pick(x: Array, index: Array) -> Array:
    """x[i, index[i]] for every row i, as a column."""
    return array_namespace(x).take_along_axis(x, index[:, None], axis=1)


def scatter(where: Array, values: Array) -> Array:
    """An array like `where` that holds `values`, one for every true entry in order, and anything elsewhere."""
    xp = array_namespace(where)
    if values.shape[0] == 0:
        return xp.zeros(where.shape, dtype=values.dtype, device=device(where))
    rank = xp.cumulative_sum(xp.astype(xp.reshape(where, (-1,)), xp.int64)) - 1
    return xp.reshape(xp.take(values, xp.maximum(rank, 0)), where.shape)


class Chosen:
    """The entries where `mask` is true: taken out of arrays, or rows of entries, in order, and put back."""

    def __init__(self, mask: Array) -> None:
        xp = array_namespace(mask)
        self.mask, self.size = mask, math.prod(mask.shape)
        self.index = xp.nonzero(xp.reshape(mask, (-1,)))[0]
        self.count = self.index.shape[0]

    @cached_property
    def back(self) -> Array:
        """For every entry the place of what is to stand there, in all entries and after them the new ones."""
        xp = array_namespace(self.mask)
        mask = xp.reshape(self.mask, (-1,))
        rank = xp.cumulative_sum(xp.astype(mask, xp.int64)) + (self.size - 1)
        return xp.where(mask, rank, xp.arange(self.size, device=device(mask)))

    def rows(self, x: Array) -> Array:
        xp = array_namespace(x)
        return xp.take(xp.reshape(x, (-1, *x.shape[self.mask.ndim :])), self.index, axis=0)

    def put(self, x: Array, values: Array) -> Array:
        """`x` with these values there."""
        xp = array_namespace(x)
        if self.count == self.size:
            return xp.reshape(values, x.shape)
        flat = xp.reshape(x, (-1, *x.shape[self.mask.ndim :]))
        return xp.reshape(xp.take(xp.concat([flat, values]), self.back, axis=0), x.shape)

    def spread(self, values: Array, elsewhere: Any) -> Array:
        """These values there, and the same everywhere else."""
        xp = array_namespace(values)
        return self.put(xp.full(self.mask.shape, elsewhere, dtype=values.dtype, device=device(values)), values)

    def among(self, which: Array) -> Chosen:
        """Those of them where `which`, one for each, is true."""
        return Chosen(self.spread(which, False))


def rows(x: Array, where: Array) -> Array:
    """The entries of x, or rows of entries, where `where` is true, in order."""
    return Chosen(where).rows(x)


def put(x: Array, where: Array, values: Array) -> Array:
    """`x` with these values where `where` is true: what `rows` took out goes back."""
    return Chosen(where).put(x, values)


def floats(x: Array) -> Array:
    """Whole numbers as float64."""
    xp = array_namespace(x)
    return xp.astype(x, xp.float64)


def clip(x: Array, low: Array, high: Array) -> Array:
    """x between two arrays (the standard's `clip` takes as long as ten other operations where they are small)."""
    xp = array_namespace(x)
    return xp.minimum(xp.maximum(x, low), high)


def blocks(x: Array) -> list[slice]:
    """The parts of x's first axis to be worked on together: all of it on a device."""
    many = x.shape[0]
    size = BLOCK if is_numpy_array(x) else max(many, 1)
    return [slice(i, i + size) for i in range(0, many, size)]


def last(x: Array) -> Array:
    """With the first axis as the last, in memory too."""
    xp = array_namespace(x)
    turned = xp.permute_dims(x, (*range(1, x.ndim), 0))
    return xp.reshape(xp.reshape(turned, (-1,)), turned.shape)


def first(x: Array) -> Array:
    """With the last axis as the first."""
    return array_namespace(x).permute_dims(x, (x.ndim - 1, *range(x.ndim - 1)))
