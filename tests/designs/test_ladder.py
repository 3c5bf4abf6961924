import math

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

from surefoot.designs.ladder import RUNGS, first_false, ladder, moved, regrid


def test_rungs_are_certified_in_order() -> None:
    for certain, count in (([0, 0, 1, 1], 0), ([1, 0, 1, 1], 1), ([1, 1, 1, 0], 3), ([1, 1, 1, 1], 4)):
        assert first_false(np.array([certain], bool))[0] == count


def test_the_last_rung_is_the_largest_dose() -> None:
    for step in (0.0, 1e-300, 0.01, 1 / RUNGS, 5.0):
        doses = ladder(np.zeros(1), np.array([step]), np.ones(1))[:, 0]
        assert len(doses) == RUNGS and doses[-1] == 1 and np.all(np.diff(doses) >= 0) and np.all(doses <= 1)
        np.testing.assert_array_equal(doses[:-1], np.minimum(step * np.arange(1.0, RUNGS), 1))


@given(
    st.integers(0, 2**32 - 1),
    st.floats(0, 1.2),
    st.integers(0, RUNGS),
    st.floats(-12, 3).map(lambda x: 10.0**x) | st.sampled_from([0.0, -1.0, 1e-320, 1e300, math.nan, math.inf]),
)
@example(0, 0.9, 5, 1e9)
def test_new_rungs_are_never_richer_than_the_old(seed: int, edge: float, passed: int, need: float) -> None:
    """Above any dose where harm becomes too high, the lowest rung has at most the wealth that the lowest one had."""
    rng = np.random.default_rng(seed)
    base, step, top = np.zeros(1), np.array([rng.uniform(0.001, 0.05)]), np.ones(1)
    wealth = rng.normal(size=(1, RUNGS))
    for _ in range(3):  # what is left by one change is changed again
        before = ladder(base, step, top).T
        up = np.minimum(base + passed * step, 1.0) if passed < RUNGS else top
        assume(edge >= up[0])  # what was passed is certain
        after, finer = regrid(moved(wealth, np.array([float(passed)])), step, np.array([need]))
        now = ladder(up, finer, top).T
        lowest = [w[x > edge][0] if np.any(x > edge) else 0.0 for w, x in ((wealth, before), (after, now))]
        assert lowest[1] <= lowest[0]
        wealth, base, step, passed = after, up, finer, int(rng.integers(0, 3))


def test_a_ladder_covers_what_is_needed() -> None:
    """Twice as much at most; in one go where it gets finer, by doubling where it gets coarser."""
    wealth, step = np.zeros((1, RUNGS)), np.array([0.1])
    for need in (1e-6, 0.01, 3.0, 3.2, 50.0):
        now = step
        for _ in range(10):
            _, now = regrid(wealth, now, np.array([need]))
        assert need <= RUNGS * now[0] <= 2 * need


def test_nothing_moves_where_nothing_is_needed() -> None:
    wealth, step = np.arange(1.0 * RUNGS)[None, :], np.array([0.1])
    for need in (math.nan, 0.0, -1.0, RUNGS * 0.1):
        after, now = regrid(wealth, step, np.array([need]))
        np.testing.assert_array_equal(after, wealth)
        assert now == step


def test_any_reach_leaves_a_ladder() -> None:
    """However often it is asked for, nothing becomes infinite or nan."""
    for need in (math.inf, 1e308, 1e-308):
        wealth, step = np.zeros((1, RUNGS)), np.array([0.1])
        for _ in range(1200):
            wealth, step = regrid(wealth, step, np.array([need]))
        assert np.isfinite(step[0]) and np.all(np.isfinite(ladder(np.zeros(1), step, np.ones(1))))
