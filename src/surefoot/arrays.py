"""The few things that array code needs beyond the array API standard."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

import array_api_compat
import numpy as np
from array_api_compat import is_torch_array

Array = Any  # an array of any array-API namespace
NUMPY = np.ndarray, np.generic
SHORT = 30  # entries of a row, so few that NumPy's reductions along it take longer than to turn the array round first
BLOCK = 6144  # entries that are worked on together where what they need for it should stay in a core's cache


if TYPE_CHECKING:  # whose arguments are checked field by field
    from dataclasses import replace as replace
else:

    def replace(batch: Any, /, **changes: Any) -> Any:
        """As in `dataclasses`, for states and what goes with them: to hand thirty fields to `__init__`, many times a
        round, takes as long as a tenth of all that is done with small arrays."""
        kind = type(batch)
        known = kind.__dataclass_fields__.keys()
        if hasattr(kind, "__post_init__") or not changes.keys() <= known:
            return dataclasses.replace(batch, **changes)
        new, old = object.__new__(kind), vars(batch)
        vars(new).update(old if old.keys() <= known else {name: old[name] for name in known if name in old}, **changes)
        return new


def _quick() -> ModuleType:
    """NumPy, with what is called most often called as the standard has it, and no other way: to look for other ways
    first takes longer than to add two small arrays."""

    def reduction(ufunc: Any) -> Any:
        def reduced(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
            turns = axis == 1 == x.ndim - 1 and x.shape[1] <= SHORT and x.size > BLOCK
            if turns and (ufunc is not np.add or x.dtype.kind != "f"):  # that sum depends on the order
                return reduced(x.T.copy(), axis=0, dtype=dtype)[:, None if keepdims else ...]
            return ufunc.reduce(x, axis, dtype, None, keepdims)

        return reduced

    def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
        return x.take(indices, axis)

    def reshape(x: Array, /, shape: tuple[int, ...]) -> Array:
        return x.reshape(shape)

    def astype(x: Array, dtype: Any, /, *, copy: bool = True) -> Array:
        return x.astype(dtype, copy=copy)

    quick = ModuleType("numpy")
    vars(quick).update(vars(np), take=take, reshape=reshape, astype=astype)
    for name, ufunc in {
        "sum": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "all": np.logical_and,
        "any": np.logical_or,
    }.items():
        setattr(quick, name, reduction(ufunc))
    return quick


QUICK = _quick()


def array_namespace(x: Array) -> Any:
    """The namespace of an array. NumPy's is NumPy itself, which keeps to the standard: what array_api_compat puts
    around it, and its lookup, take longer than to add two small arrays."""
    return QUICK if isinstance(x, NUMPY) else array_api_compat.array_namespace(x)


def device(x: Array) -> Any:
    """Where an array lives."""
    return "cpu" if isinstance(x, NUMPY) else array_api_compat.device(x)


def like(x: Array, values: Any) -> Array:
    """`values` as an array in the namespace and on the device of `x`."""
    return array_namespace(x).asarray(values, device=device(x))


def pick(x: Array, index: Array) -> Array:
    """x[i, index[i]] for every row i, as a column."""
    xp, (many, width) = array_namespace(x), x.shape
    place = xp.arange(many, device=device(index)) * width + index
    return xp.take(xp.reshape(x, (-1,)), place)[:, None]


def along(x: Array, index: Array) -> Array:
    """x[i, index[i, j]] for every row i: entries, or rows of them, along the second axis. Many times faster than the
    standard's `take_along_axis`."""
    xp, (many, width) = array_namespace(x), x.shape[:2]
    place = xp.arange(many, device=device(index))[:, None] * width + index
    found = xp.take(xp.reshape(x, (-1, *x.shape[2:])), xp.reshape(place, (-1,)), axis=0)
    return xp.reshape(found, (*index.shape, *x.shape[2:]))


class Chosen:
    """Some entries of an array of a `shape`: taken out of such arrays, or rows of entries, in order, and put back."""

    def __init__(self, mask: Array) -> None:
        xp = array_namespace(mask)
        self.shape: tuple[int, ...] = mask.shape
        self.index = xp.nonzero(xp.reshape(mask, (-1,)))[0]

    @classmethod
    def at(cls, index: Array, shape: tuple[int, ...]) -> Chosen:
        """Those at these places of a flattened array."""
        it = cls.__new__(cls)
        it.index, it.shape = index, shape
        return it

    @property
    def count(self) -> int:
        return int(self.index.shape[0])

    @cached_property
    def back(self) -> Array:
        """For every entry the place of what is to stand there, in all entries and after them the new ones."""
        xp, size = array_namespace(self.index), math.prod(self.shape)
        every = xp.arange(size, device=device(self.index))
        mine = xp.searchsorted(self.index, every)
        here = xp.take(self.index, xp.minimum(mine, self.count - 1)) == every
        return xp.where(here, mine + size, every)

    def rows(self, x: Array) -> Array:
        return array_namespace(x).take(self._flat(x), self.index, axis=0)

    def put(self, x: Array, values: Array, over: bool = False) -> Array:
        """`x` with these values there; `over`: written into `x` itself, which nobody else holds, if that is faster."""
        xp = array_namespace(x)
        if self.count in (0, math.prod(self.shape)):
            return xp.reshape(values, x.shape) if self.count else x
        if isinstance(x, np.ndarray) or is_torch_array(x):  # not in the standard, and several times faster
            new = self._flat(x) if over else xp.asarray(self._flat(x), copy=True)
            new[self.index] = values
            return xp.reshape(new, x.shape)
        return xp.reshape(xp.take(xp.concat([self._flat(x), values]), self.back, axis=0), x.shape)

    def _flat(self, x: Array) -> Array:
        return array_namespace(x).reshape(x, (-1, *x.shape[len(self.shape) :]))

    def spread(self, values: Array, elsewhere: Any) -> Array:
        """These values there, and the same everywhere else."""
        xp = array_namespace(values)
        return self.put(xp.full(self.shape, elsewhere, dtype=values.dtype, device=device(values)), values)

    def among(self, which: Array) -> Chosen:
        """Those of them where `which`, one for each, is true."""
        xp = array_namespace(which)
        return Chosen.at(xp.take(self.index, xp.nonzero(which)[0]), self.shape)

    def within(self, place: Array, many: int) -> Chosen:
        """Of `many` entries of each of them the one at this place."""
        return Chosen.at(self.index * many + place, (*self.shape, many))

    @property
    def mask(self) -> Array:
        xp = array_namespace(self.index)
        return self.spread(xp.ones(self.index.shape, dtype=xp.bool, device=device(self.index)), False)


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


def dot(x: Array, y: Array) -> Array:
    """The sum of x * y over the axis before the last; the product, which nobody needs, is not made where there is a
    way not to."""
    if isinstance(x, np.ndarray):
        return np.einsum("...ij,...ij->...j", x, y)
    return array_namespace(x).sum(x * y, axis=-2)


def clip(x: Array, low: Array, high: Array) -> Array:
    """x between two arrays (the standard's `clip` takes as long as ten other operations where they are small)."""
    xp = array_namespace(x)
    return xp.minimum(xp.maximum(x, low), high)


def where_least(x: Array, axis: int) -> Array:
    """The first place along an axis where a number without a unit is least, or above that by rounding alone: where
    evidence is flat, or values are tied, the choice must not depend on the units of the readings."""
    xp = array_namespace(x)
    return xp.argmax(xp.astype(x <= xp.min(x, axis=axis, keepdims=True) + 1e-9, xp.int8), axis=axis)


def blocks(x: Array, size: int = BLOCK) -> list[slice]:
    """The parts of x's first axis to be worked on together, all about as large: all of it on a device."""
    many = x.shape[0]
    parts = -(-many // max(size, 1)) if isinstance(x, np.ndarray) else 1
    size = max(-(-many // max(parts, 1)), 1)
    return [slice(i, i + size) for i in range(0, many, size)]


def in_parts(f: Callable[..., Array], *xs: Array) -> Array:
    """f of arrays of one shape, entry by entry, of as many entries at a time as `blocks` has together."""
    xp, flat = array_namespace(xs[0]), [array_namespace(x).reshape(x, (-1,)) for x in xs]
    parts = [f(*(x[part] for x in flat)) for part in blocks(flat[0])]
    return xp.reshape(xp.concat(parts), xs[0].shape) if parts else xs[0]


def last(x: Array) -> Array:
    """With the first axis as the last, in memory too."""
    xp = array_namespace(x)
    turned = xp.permute_dims(x, (*range(1, x.ndim), 0))
    return xp.reshape(xp.reshape(turned, (-1,)), turned.shape)


def first(x: Array) -> Array:
    """With the last axis as the first."""
    return array_namespace(x).permute_dims(x, (x.ndim - 1, *range(x.ndim - 1)))
