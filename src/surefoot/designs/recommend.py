"""What to do if it had to end now. Estimates, no certificates; only `p` has a theorem (docs/guarantees.md)."""

from __future__ import annotations

from array_api_compat import array_namespace

from ..arrays import Array


def isotonic(total: Array, count: Array) -> Array:
    """Means of the levels along the last axis that never fall, nearest to the readings (weighted by their number).

    The min-max formula: of level l, the largest over i <= l of the least over j >= l of the mean of levels i to j. A
    level without readings takes after the nearest below it that has some.
    """
    xp, L = array_namespace(total), total.shape[-1]
    n, y = xp.astype(count, xp.float64), total
    ends = [xp.cumulative_sum(x, axis=-1, include_initial=True) for x in (n, y)]
    n, y = (x[..., None, 1:] - x[..., :-1, None] for x in ends)  # (..., i, j): of levels i to j
    mean = xp.where(n > 0, y / xp.where(n > 0, n, 1.0), xp.inf)
    least = (xp.min(mean[..., : l + 1, l:], axis=-1) for l in range(L))
    found = xp.stack([xp.max(xp.where(xp.isinf(x), -xp.inf, x), axis=-1) for x in least], axis=-1)
    some = xp.sum(xp.astype(count, xp.float64), axis=-1, keepdims=True) > 0
    return xp.where(some, found, xp.nan)
