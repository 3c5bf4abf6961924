"""What a SafeOpt pull costs: the rank-one update on the grid against the textbook, which factors a t x t matrix."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..designs.base import Cohort, Outcome
from ..designs.gp import Kernel, rbf_kernel
from ..designs.safeopt import SafeOpt
from ..problem import Arm, Noise, Problem
from ..simulate import Array

SIZES = (500, 1000, 2000)


@dataclass(frozen=True)
class Cost:
    """Seconds a pull after t pulls."""

    t: int
    grid: float  # the posterior, sets and the next dose, with rank-one updates
    textbook: float  # the posterior alone, by a Cholesky factor


def textbook(kernel: Kernel, noise: float, grid: Array, doses: Array, readings: Array) -> tuple[Array, Array]:
    """Mean and variance on the grid after t readings (Rasmussen and Williams 2006, Algorithm 2.1)."""
    from scipy.linalg import cho_solve, cholesky, solve_triangular

    chol = cholesky(kernel(doses[:, None], doses) + noise * np.eye(len(doses)), lower=True)
    cross = kernel(doses[:, None], grid)
    mean = cross.T @ cho_solve((chol, True), readings)
    return mean, kernel(grid, grid) - np.sum(solve_triangular(chol, cross, lower=True) ** 2, axis=0)


def costs(sizes: tuple[int, ...] = SIZES) -> list[Cost]:
    """Measured now: one trial, pulls spread over the grid of the first arm, the fastest of a few repeats."""
    arms = Arm("a", -3.0, -0.5, 1.0), Arm("b", -3.0, -0.5, 1.0)
    problem = Problem(arms, 0.3, "monotonic", Noise("gaussian", 0.3), slack=0.2)
    design, kernel, rng = SafeOpt(), rbf_kernel(1.0, 1.0), np.random.default_rng(0)
    state = design.start(problem)
    grid = state.grid.dose[0]
    doses = grid[rng.integers(20, size=max(sizes) + 20)]
    readings = 0.1 + 0.3 * rng.standard_normal(len(doses))
    n, out = np.array([[1, 0]]), []
    for t, (dose, z) in enumerate(zip(doses, readings, strict=True)):
        cohort, outcome = Cohort(np.array([[dose, -3.0]]), n), Outcome(n, *(np.array([[x, 0.0]]) for x in (z, z)))
        if t in sizes:
            ours = _fastest(lambda c=cohort, o=outcome, s=state: design.ask(design.tell(s, c, o)), 20)  # type: ignore[misc]
            theirs = _fastest(lambda t=t: textbook(kernel, 0.09, grid, doses[:t], readings[:t]), 3 + 8000 // t)  # type: ignore[misc]
            out.append(Cost(t, ours, theirs))
        state = design.tell(state, cohort, outcome)
    return out


def _fastest(call: Callable[[], object], times: int) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
