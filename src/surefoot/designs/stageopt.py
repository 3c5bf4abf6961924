"""StageOpt on a problem of arms.

From Sui, Zhuang, Burdick and Yue, "Stagewise safe Bayesian optimization with Gaussian processes" (2018): first expand
the safe set, pulling the most uncertain expander; then maximise inside it, pulling the dose with the largest upper
bound on its effect. Everything else (processes, bounds, expanders, stopping rules) is as in SafeOpt, whose file says
what was decided. Decided here: the first stage takes the first `expand_for` pulls, or all while there is an expander if
`expand_for` is 0; pulls without an expander maximise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Array
from ..problem import number
from .safeopt import Bounds, SafeOpt, SafeOptState, pick
from .settle import wanted


@dataclass(frozen=True)
class StageOpt(SafeOpt):
    """StageOpt (Sui et al. 2018): expands the safe set, then pulls where the effect's upper bound is largest.

    when: As safeopt, first expanding and then optimising. To compare with.
    expand_for: pulls of the first stage; 0: while there are expanders
    """

    expand_for: int = 0

    name: ClassVar[str] = "stageopt"

    def __post_init__(self) -> None:
        super().__post_init__()
        number("expand_for", self.expand_for, least=0)

    def choose(self, s: SafeOptState, b: Bounds) -> Array:
        ours = wanted(s)[:, :, None]
        expanders = s.expander & ours
        expanding = np.any(expanders, axis=(1, 2))
        if self.expand_for:
            expanding &= s.pulls < self.expand_for
        return np.where(expanding, pick(expanders, b.sd), pick(b.safe & ours, b.f_upper))
