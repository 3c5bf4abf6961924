"""Why a drop-out counts as the worst reading: those who are harmed may be the ones who leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, Scenario, make, simulate
from surefoot.scenario import Linear
from surefoot.testing import failures_allowed

LEAVE = 0.5  # of those who are harmed
PROBLEM = Problem((Arm("A", 0.2, 1.0), Arm("B", 0.2, 1.0)), 0.3, "linear", Noise("bernoulli"), delta=0.1, refine=0.2)
TRUE = Scenario((Linear(0.6), Linear(0.3)), (Linear(0.45), Linear(0.45)))


def replaced(dose: Any) -> Any:
    """The share of harm among those who stay, where somebody else takes the place of each who left."""
    p = 0.45 * dose
    return p * (1 - LEAVE) / (1 - p * LEAVE)


@pytest.mark.parametrize("counts_as_worst", [True, False])
def test_drop_outs_that_depend_on_harm(counts_as_worst: bool) -> None:
    """Counted as harmed, the study sees the true harm or more, and stays safe; replaced, it sees less and does not."""
    seen = TRUE if counts_as_worst else Scenario(TRUE.effect, (replaced, replaced))
    result = simulate(PROBLEM, seen, make("safebai-linear", unit=1.0), 500, seed=4, progress=False, trace=True)
    assert result.trace is not None
    given = np.where(result.trace.n > 0, result.trace.dose, 0.0).max(axis=(1, 2))
    unsafe = int((0.45 * given > PROBLEM.limit).sum())
    if counts_as_worst:
        assert unsafe <= failures_allowed(500, PROBLEM.delta)
    else:
        assert unsafe > 250, "the control: most of these studies gave a dose above the limit"
