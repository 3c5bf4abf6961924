"""A ladder of doses (rungs) above the last one that is certified, each with the log of a wealth."""

from __future__ import annotations

from ..arrays import Array, Chosen, along, array_namespace, device, like

RUNGS = 32


def ladder(base: Array, step: Array, largest: Array) -> Array:
    """The doses of the rungs, (rungs, arms); the last is the largest dose."""
    xp = array_namespace(base)
    up = like(base, [[float(j + 1)] for j in range(RUNGS)])
    top = like(base, [[0.0]] * (RUNGS - 1) + [[xp.inf]])
    return xp.minimum(base + step * up + top, largest)


def moved(wealth: Array, passed: Array) -> Array:
    """The ladders from the new base, so many rungs up; those beyond the last are at the largest dose, as it is."""
    which = Chosen(passed > 0)
    if which.count == 0:
        return wealth
    xp = array_namespace(wealth)
    k, j = xp.astype(which.rows(passed), xp.int64)[:, None], xp.arange(RUNGS, device=device(wealth))
    return which.put(wealth, along(which.rows(wealth), xp.minimum(k + j, RUNGS - 1)))


def regrid(wealth: Array, step: Array, need: Array) -> tuple[Array, Array]:
    """The ladders finer or coarser by powers of 2 so that they cover `need`.

    A new rung takes the wealth of the old one at or above it, or the least where there are two: if harm is too high at
    the new rung then so it is there. The last rung, at the largest dose, takes the least of all that are left out.
    """
    xp = array_namespace(wealth)
    some = (need > 1e-150) & (need < 1e150) & (step > 1e-150)
    finer = xp.log2(xp.where(some, RUNGS * step, 1.0) / xp.where(some, need, 1.0))
    finer = xp.clip(xp.floor(finer), -1.0, 60.0)
    which = Chosen(finer != 0)
    if which.count == 0:
        return wealth, step
    old, times = which.rows(wealth), 0.5 ** which.rows(finer)[:, None]
    j = xp.arange(RUNGS, dtype=xp.float64, device=device(step))

    def at(index: Array) -> Array:
        return along(old, xp.astype(xp.minimum(index, RUNGS - 1.0), xp.int64))

    new = xp.minimum(at(xp.floor(j * times)), at(xp.ceil((j + 1) * times) - 1))
    new = xp.where(j == RUNGS - 1, xp.min(old, axis=-1, keepdims=True), new)
    return which.put(wealth, new), step * 0.5**finer


def first_false(certain: Array) -> Array:
    """How many are true before the first that is not, along the last axis."""
    xp = array_namespace(certain)
    count = xp.argmin(xp.astype(certain, xp.int8), axis=-1)
    return xp.astype(xp.where(xp.all(certain, axis=-1), certain.shape[-1], count), xp.float64)
