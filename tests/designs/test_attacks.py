"""A small part of `benchmarks.attacks`: policies that know the truth and are found by hill-climbing, at delta 0.9."""

import pytest

from benchmarks.attacks import DELTA, SHAPES, climb
from surefoot.testing import failures_allowed


@pytest.mark.parametrize("shape", SHAPES)
def test_the_worst_that_is_found_keeps_the_promise(shape: str) -> None:
    trials = 40
    _, (failed, _, _) = climb(shape, seed=3, steps=4, trials=trials)
    assert failed <= failures_allowed(4 * trials, DELTA, len(SHAPES))
