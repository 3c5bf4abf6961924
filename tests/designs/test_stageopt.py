import numpy as np

from surefoot import simulate
from surefoot.designs.safeopt import SafeOpt
from surefoot.designs.stageopt import StageOpt
from surefoot.testing import play

from . import small
from .test_safeopt import Linear


class TestConformance(Linear):
    design = StageOpt(grid=20, s_harm=1.0)


def test_first_expanders_then_the_largest_upper_bound() -> None:
    design = StageOpt(grid=20, top=-0.5, length=3.0, expand_for=20)
    stages = {True: 0, False: 0}
    for k, (state, cohort, *_) in zip(range(300), play(design, *small.drug()), strict=False):
        b = design.bounds(state)
        for i in np.flatnonzero(state.ending == 0):
            arm = int(np.argmax(cohort.n[i]))
            at = int(np.argmin(np.abs(state.grid.dose[arm] - cohort.dose[i, arm])))
            expanding = k < 20 and bool(state.expander[i].any())
            stages[expanding] += 1
            score = np.where(state.expander[i], b.sd[i], -1) if expanding else np.where(b.safe[i], b.f_upper[i], -99)
            assert score[arm, at] == score.max()
    assert min(stages.values()) > 20


def test_it_ends_with_the_same_arm_as_safeopt() -> None:
    for problem, scenario in (small.easy(), small.flat()):
        top = None if problem.shape == "linear" else -0.5
        for kind in (SafeOpt, StageOpt):
            design = kind(grid=20, top=top, length=3.0)
            result = simulate(problem.but(budget=20_000), scenario, design, 3, progress=False)
            assert np.all(result.winner == 0) and not result.unsafe.any()
