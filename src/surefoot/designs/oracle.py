"""The oracle, a control: it has been told every arm's largest safe dose, and compares the arms there.

Nothing is left to find out about harm, so what a safe design needs beyond its pulls is the price of not knowing.

The rule is ours. Per arm, n readings with mean m are sigma-sub-Gaussian around the true effect x, so mixing
exp(lambda (sum - n x) - lambda^2 sigma^2 n/2) over lambda ~ N(0, 1/(rho sigma^2)) gives the supermartingale
exp(w (m - x)^2/(2 sigma^2)) / sqrt(1 + n/rho), w = n^2/(n + rho) (Robbins 1970). Every arm is pulled on noise of its
own, so the product over two arms is one as well. If arm k is in truth at least as good as arm b, some common x makes
both squares at most those at the true effects; the smallest sum is w_b w_k/(w_b + w_k) (m_b - m_k)^2/(2 sigma^2). So by
Ville, naming b once this, less the two logarithms, is at least log((d - 1)/delta) against every k is wrong with
probability at most delta: only the d - 1 pairs with the true best arm can err. Which arm next, top-two: the leader or
the rival with the least evidence against it, whichever has fewer pulls, a tenth more at a time. Nobody is eliminated on
the way, since bounds of one arm alone (which are told too) are wider than this comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array
from ..problem import Problem, SurefootError
from .base import ACTIVE, ALL_STOPPED, BEST_ARM, RUNNING, STOPPED, WITHIN_TOLERANCE, Cohort, Outcome, State, blank
from .baseline import GROWTH, RHO, AnyShape, mixture_radius


@dataclass(frozen=True, kw_only=True)
class OracleState(State):
    dose: Array
    n: Array
    effect: Array  # summed


@dataclass(frozen=True)
class Oracle(AnyShape[OracleState]):
    """A control that has been told every arm's largest safe dose (doses; simulations fill them in) and compares the
    arms there."""

    doses: tuple[float, ...] | None = None

    name: ClassVar[str] = "oracle"
    portable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        given: Any = self.doses
        if given is not None:
            try:
                given = given.split(",") if isinstance(given, str) else given
                object.__setattr__(self, "doses", tuple(float(x) for x in given))
            except (TypeError, ValueError):
                raise SurefootError(f"doses must be one dose an arm, commas between; got {self.doses!r}") from None

    @property
    def guarantee(self) -> bool:
        return self.doses is not None

    def dose(self, problem: Problem) -> Array:
        """nan where no dose is safe."""
        if self.doses is None or len(self.doses) != len(problem.arms):
            need = f"oracle needs to be told the largest safe dose of each of the {len(problem.arms)} arms"
            raise SurefootError(f"{need}; got {self.doses}")
        dose = np.array(self.doses)
        if np.any((dose < problem.starts) | (dose > problem.largest)):
            raise SurefootError(f"oracle's doses must lie between start and max of their arms; got {self.doses}")
        return dose

    def begin(self, problem: Problem, trials: int, xp: Any) -> OracleState:
        first = blank(problem, trials, np)
        never = np.zeros_like(first["safe"]) + np.isnan(self.dose(problem)) > 0
        dose = np.where(never, first["safe"], self.dose(problem))
        return OracleState(
            **first
            | {
                "safe": dose,
                "unsafe": dose,
                "standing": np.where(never, STOPPED, ACTIVE),
                "out_lower": np.where(never, problem.limit, np.nan),
                "ending": np.where(np.all(never, axis=1), ALL_STOPPED, RUNNING),
            },
            dose=dose, n=np.zeros_like(first["standing"]), effect=np.zeros_like(dose),
        )  # fmt: skip

    def evidence(self, s: OracleState) -> tuple[Array, Array, Array]:
        """Per trial the leader, (trials, 1), per arm the evidence that the leader is better, and the means."""
        active, mean = s.standing == ACTIVE, s.effect / np.maximum(s.n, 1)
        leader = np.argmax(np.where(active & (s.n > 0), mean, -np.inf), axis=1)[:, None]
        w, cost = s.n**2 / (s.n + RHO), 0.5 * np.log1p(s.n / RHO)
        w_b, m_b, cost_b = (np.take_along_axis(x, leader, axis=1) for x in (w, mean, cost))
        gap = np.maximum(m_b - mean + (s.problem.tolerance or 0.0), 0.0)
        found = w_b * w / np.maximum(w_b + w, 1e-300) * gap**2 / (2 * s.problem.noises[0].scale ** 2) - cost - cost_b
        rival = active & (np.arange(mean.shape[1]) != leader)
        return leader, np.where(rival, found, np.inf), mean

    def plan(self, state: OracleState, u: Array) -> Cohort:
        s, arms = state, np.arange(state.n.shape[1])
        active = s.standing == ACTIVE
        leader, evidence, _ = self.evidence(s)
        rival = np.argmin(evidence + np.log(np.maximum(s.n, 1)), axis=1)[:, None]
        n_b, n_k = (np.take_along_axis(s.n, k, axis=1) for k in (leader, rival))
        arm = np.where((n_b <= n_k) | ~np.isfinite(np.take_along_axis(evidence, rival, axis=1)), leader, rival)
        some = np.maximum(np.ceil(GROWTH * np.minimum(n_b, n_k)), 1).astype(np.int64)
        first = np.any(active & (s.n == 0), axis=1, keepdims=True)  # one pull of every arm, to begin with
        n = np.where(first, active & (s.n == 0), np.where(arms == arm, some, 0))
        return Cohort(s.dose, n.astype(np.int64))

    def learn(self, state: OracleState, cohort: Cohort, outcome: Outcome) -> OracleState:
        p = state.problem
        ours = (outcome.n > 0) & (cohort.dose == state.dose)
        s = replace(
            state,
            rounds=state.rounds + 1,
            n=state.n + np.where(ours, outcome.n, 0),
            effect=state.effect + np.where(ours, outcome.effect, 0.0),
        )
        leader, evidence, mean = self.evidence(s)
        active = s.standing == ACTIVE
        bar = math.log((len(p.arms) - 1) / p.delta)
        won = np.all(evidence >= bar, axis=1) & np.all(~active | (s.n > 0), axis=1)
        radius = p.noises[0].scale * mixture_radius(s.n, p.delta / len(p.arms))
        how = WITHIN_TOLERANCE if p.tolerance is not None else BEST_ARM
        return replace(
            s,
            estimate=np.where(active & (s.n > 0), mean, -np.inf),
            lower=mean - radius,
            upper=mean + radius,
            found=np.where(won, how, s.found),
            ending=np.where(won, how, s.ending),
            winner=np.where(won, leader[:, 0], s.winner),
        )
