"""SafeBAI-Linear: Algorithm 1 of Wang, Wagenmaker and Jamieson, line by line; L numbers are lines of its pseudocode.

Guarantee (Lemmas 1 to 3). An epoch pulls every active arm N_l times at one dose fixed beforehand, so by Hoeffding each
of its two means is off by more than epsilon_l with probability at most delta/(4 d l^2); over both readings, d arms and
all epochs that is at most delta * pi^2/12 < delta, whatever the dependence between the readings. Otherwise every
certified dose is safe, and no arm that is eliminated is the best. Refining and stopping an arm at its start dose use
the same events, so the one delta covers them. Levels: rounding both doses down to a level keeps
safe <= largest safe level <= unsafe, since rounding down is monotone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..arrays import array_namespace, like, replace
from ..checks import number_or
from ..problem import Problem, Shape
from .base import blank
from .settle import round_down, settle, wanted
from .staged import Staged, StageState, stage, units


@dataclass(frozen=True)
class SafeBAILinear(Staged[StageState]):
    """Algorithm 1 of the paper: every epoch halves the tolerance and throws the last one's data away.

    when: The paper's Algorithm 1, to compare with, or where its proof is the one that was agreed on.
    unit: of the tolerances: in epoch l it is unit / 2^l; a number, or "auto": the limit, which is 1 on the paper's
        instances
    """

    unit: float | str = "auto"

    name: ClassVar[str] = "safebai-linear"
    shape: ClassVar[Shape] = "linear"
    chunk: ClassVar[int] = 4096  # it ends after a few rounds: what a round costs by itself matters most

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", number_or("unit", self.unit, "auto"))

    def begin(self, problem: Problem, trials: int, xp: Any) -> StageState:
        first = blank(problem, trials, xp)
        none = xp.zeros((trials, len(problem.arms)), dtype=xp.int64)
        s = StageState(**first, dose=first["safe"], want=none, n=none, effect=first["safe"], harm=first["safe"])
        return self.next_epoch(s)

    def next_epoch(self, s: StageState) -> StageState:
        xp, p = array_namespace(s.pulls), s.problem
        l = xp.astype(s.rounds + 1, xp.float64)[:, None]
        d, delta = len(p.arms), p.delta
        _, unit, sigma = units(p, self.unit, p.limit)
        N = 2 * sigma**2 * xp.log(8 * d * l**2 / delta) / (unit * 2.0**-l) ** 2  # rounded up by `stage`
        return stage(s, s.safe, xp.where(wanted(s), N, 0.0))

    def decide(self, s: StageState) -> StageState:
        xp, p = array_namespace(s.pulls), s.problem
        a0, M, gamma = like(s.dose, p.starts), like(s.dose, p.largest), p.limit
        a, pulled = s.dose, s.want > 0
        an = a * xp.astype(xp.maximum(s.n, xp.ones_like(s.n)), xp.float64)
        l = xp.astype(s.rounds, xp.float64)[:, None]
        e_f, e = (unit * 2.0**-l / a for unit in units(p, self.unit, p.limit)[:2])  # of effect and harm
        theta, mu = s.effect / an, s.harm / an
        # L11, L12; where a denominator is at or below 0 they bound nothing: the start dose, and the largest dose.
        safe = xp.clip(gamma / xp.where(mu + e > 0, mu + e, xp.inf), a0, M)
        unsafe = xp.where(mu - e > 0, gamma / xp.where(mu - e > 0, mu - e, 1.0), M)
        at_top = a >= M
        safe = xp.where(at_top, M, round_down(p, safe))
        harm_at_start = xp.where(pulled, a0 * (mu - e), -xp.inf)
        unsafe = xp.where(at_top, M, round_down(p, xp.clip(unsafe, a0, M)))
        s = replace(
            s,
            safe=xp.where(pulled, safe, s.safe),
            unsafe=xp.where(pulled, unsafe, s.unsafe),
            estimate=xp.where(pulled, safe * theta, s.estimate),
            lower=xp.where(pulled, safe * (theta - e_f), s.lower),
            upper=xp.where(pulled, unsafe * (theta + e_f), s.upper),
        )
        return self.next_epoch(settle(s, harm_at_start))
