"""Gaussian processes on a grid of doses, one an arm, with the exact posterior after any number of pulls.

Effect and harm of an arm have the same prior and are read at the same doses, so they share one posterior covariance.
A kernel on a grid of G doses is a G x G matrix K = Phi Phi^T: 1 column of Phi is enough for the linear kernel, and some
15 for a smooth one, beyond which the eigenvalues of K are rounding. So the process is a Bayesian linear regression on
the features Phi, with a covariance Sigma of the weights, and a pull is one rank-one update of Sigma: its cost does not
depend on how many came before it. (The textbook inverts a t x t matrix after t pulls.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..problem import Problem
from .base import Cohort, Outcome, State

Kernel = Callable[[Array, Array], Array]
ROUNDING = 1e-15  # eigenvalues below this share of the largest are taken as 0


def linear_kernel(variance: float) -> Kernel:
    return lambda a, b: variance * a * b


def rbf_kernel(variance: float, length: float) -> Kernel:
    return lambda a, b: variance * np.exp(-0.5 * ((a - b) / length) ** 2)


@dataclass(frozen=True)
class Grid:
    """The doses of every arm, (arms, G), the first of them the start dose, and the kernel's features on them."""

    shared: ClassVar[bool] = True

    kernel: Kernel
    dose: NDArray[np.float64]
    phi: NDArray[np.float64]  # (arms, G, rank)
    to_phi: NDArray[np.float64]  # (arms, G, rank): kernel(dose, grid) @ to_phi are the features of any dose

    @classmethod
    def of(cls, kernel: Kernel, problem: Problem, top: Array, size: int) -> Grid:
        """`size` even steps from start to `top`; where an arm has levels, those (the last one repeated to fill up)."""
        levels = [
            np.array(arm.levels)[np.array(arm.levels) <= high] if arm.levels else np.linspace(arm.start, high, size)
            for arm, high in zip(problem.arms, top, strict=True)
        ]
        most = max(map(len, levels))
        dose = np.array([np.concatenate([x, np.full(most - len(x), x[-1])]) for x in levels])
        value, vector = np.linalg.eigh(kernel(dose[:, :, None], dose[:, None, :]))
        keep = value > ROUNDING * value[:, -1:]
        rank = int(keep.sum(axis=1).max())
        value, vector, keep = value[:, None, -rank:], vector[:, :, -rank:], keep[:, None, -rank:]
        root = np.sqrt(np.where(keep, value, 1.0))
        return cls(kernel, dose, np.where(keep, vector * root, 0.0), np.where(keep, vector / root, 0.0))

    @property
    def rank(self) -> int:
        return int(self.phi.shape[2])


@dataclass(frozen=True, kw_only=True)
class GPState(State):
    """The posterior of every arm: of the weights, and what follows from it on the grid."""

    cov: Array  # (trials, arms, rank, rank), of the weights of either reading
    weights: Array  # (trials, arms, 2, rank), their means: effect, harm
    mean: Array  # (trials, arms, 2, G), of effect and harm on the grid
    var: Array  # (trials, arms, G)


def prior(grid: Grid, trials: int) -> dict[str, Any]:
    """The fields of a GPState before the first pull."""
    d, G, r = grid.phi.shape
    return {
        "cov": np.tile(np.eye(r), (trials, d, 1, 1)),
        "weights": np.zeros((trials, d, 2, r)),
        "mean": np.zeros((trials, d, 2, G)),
        "var": np.tile(np.sum(grid.phi**2, axis=2), (trials, 1, 1)),
    }


def absorb(s: GPState, grid: Grid, noise: float, cohort: Cohort, outcome: Outcome) -> dict[str, Array]:
    """Those fields after a cohort: per arm n readings of variance `noise` at one dose are one of variance noise/n."""
    cov, weights, mean, var = s.cov.copy(), s.weights.copy(), s.mean.copy(), s.var.copy()
    came = outcome.n > 0
    order = np.argsort(~came, axis=1, kind="stable")  # the arms that were pulled, first
    rows = np.arange(len(came))
    for i in range(int(came.sum(axis=1).max())):  # once, where one arm is pulled at a time
        arm = order[:, i]
        n = outcome.n[rows, arm]
        readings = np.stack([outcome.effect[rows, arm], outcome.harm[rows, arm]], axis=1)
        readings = np.where((n > 0)[:, None], readings, 0.0) / np.maximum(n, 1)[:, None]
        phi = (grid.kernel(cohort.dose[rows, arm, None], grid.dose[arm])[:, None, :] @ grid.to_phi[arm])[:, 0]
        spread = (cov[rows, arm] @ phi[:, :, None])[:, :, 0]
        with np.errstate(divide="ignore"):
            total = np.sum(phi * spread, axis=1) + noise / n  # infinite where nothing came: no change
        gain = spread / total[:, None]
        surprise = readings - (weights[rows, arm] @ phi[:, :, None])[:, :, 0]
        on_grid = (grid.phi[arm] @ spread[:, :, None])[:, :, 0]
        cov[rows, arm] -= gain[:, :, None] * spread[:, None, :]
        weights[rows, arm] += surprise[:, :, None] * gain[:, None, :]
        mean[rows, arm] += (surprise / total[:, None])[:, :, None] * on_grid[:, None, :]
        var[rows, arm] -= on_grid**2 / total[:, None]
        np.maximum(var, 0.0, out=var)
    return {"cov": cov, "weights": weights, "mean": mean, "var": var}
