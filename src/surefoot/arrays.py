"""The few things that array code needs beyond the array API standard."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace, device

Array = Any  # an array of any array-API namespace


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


def rows(x: Array, where: Array) -> Array:
    """The entries of x, or rows of entries, where `where` is true, in order."""
    xp = array_namespace(x)
    flat = xp.reshape(x, (-1, *x.shape[where.ndim :]))
    return xp.take(flat, xp.nonzero(xp.reshape(where, (-1,)))[0], axis=0)


def put(x: Array, where: Array, values: Array) -> Array:
    """`x` with these values where `where` is true: what `rows` took out goes back."""
    xp = array_namespace(x)
    flat, chosen = xp.reshape(x, (-1, *x.shape[where.ndim :])), xp.reshape(where, (-1,))
    rank = xp.cumulative_sum(xp.astype(chosen, xp.int64)) - 1 + flat.shape[0]
    index = xp.where(chosen, rank, xp.arange(flat.shape[0], device=device(x)))
    return xp.reshape(xp.take(xp.concat([flat, values]), index, axis=0), x.shape)
