"""A small part of `benchmarks.attacks`: policies that know the truth, on scenarios made to break the promise."""

import numpy as np
import pytest

from benchmarks.attacks import DELTA, POLICY, SHAPES, failed, play
from surefoot.testing import failures_allowed


@pytest.mark.parametrize("shape", SHAPES)
def test_an_attack_keeps_below_delta(shape: str) -> None:
    genes = np.random.default_rng(3).random(POLICY + 16)
    result = play(shape, genes, 60, seed=1)
    assert failed(result)[0] <= failures_allowed(60, DELTA, len(SHAPES))
    assert result.rounds.max() > 10
