"""Array code beyond the standard: what is done another way gives the same numbers."""

import numpy as np
import pytest

from surefoot.arrays import BLOCK, SHORT, array_namespace


@pytest.mark.parametrize("name", ["sum", "min", "max", "any", "all"])
@pytest.mark.parametrize("wide", [1, 10, SHORT, SHORT + 1])
def test_reductions_along_short_rows_are_numpys(name: str, wide: int) -> None:
    """To the last bit, sums of what is not whole too, for few rows as for many."""
    rng = np.random.default_rng(1)
    for many in (3, BLOCK):
        x = rng.standard_normal((many, wide))
        for it in (x, (100 * x).astype(np.int64), x > 0):
            for keep in (False, True):
                found = getattr(array_namespace(it), name)(it, axis=1, keepdims=keep)
                np.testing.assert_array_equal(found, getattr(np, name)(it, axis=1, keepdims=keep), strict=True)
