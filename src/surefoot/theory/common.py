"""What every statement needs: gaps, kl, and the truth of a problem that a statement is about."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..checks import SurefootError
from ..noise import Gaussian
from ..problem import Problem, Shape
from ..scenario import Scenario, Truth

Array = NDArray[np.float64]
HAIR = 1e-9  # relative; what differs by less is taken for rounding, as everywhere where pulls are judged
TINY = 1e-200  # in place of a harm slope of 0, so that ratios stay numbers


class NotStated(SurefootError):
    """A theorem says nothing about this problem; the message says which of its assumptions fails."""


def gaps(problem: Problem, scenario: Scenario) -> Array:
    """Delta_i of Section 3, both settings: how far each arm's value is below the best one's (inf: no safe dose)."""
    value = scenario.truth(problem).value
    return np.where(np.isfinite(value), value.max() - value, np.inf)


def kl(delta: float) -> float:
    """kl(delta, 1 - delta), the evidence that a delta-PAC algorithm needs against every alternative."""
    return (1 - 2 * delta) * math.log((1 - delta) / delta) if delta < 0.5 else 0.0


def truth_of(problem: Problem, scenario: Scenario, shape: Shape, bound: Literal["lower", "upper"]) -> Truth:
    """The truth of a problem that the paper's statements are about; else NotStated."""
    if problem.shape != shape:
        raise NotStated(f"it is a statement about the {shape} shape; this problem is {problem.shape}")
    if problem.levels is not None:
        raise NotStated("doses may only be given at levels; the paper's doses have no steps")
    truth = within_assumptions(problem, scenario)
    if bound == "upper" and problem.refine is not None:
        raise NotStated("the problem asks to refine the winner's dose; the paper stops once the best arm is known")
    if bound == "lower":
        check_readings(problem, scenario)
        if not all(isinstance(noise, Gaussian) for noise in scenario.noises(problem)):
            raise NotStated("the noise is not Gaussian, and a lower bound depends on its law")
    return truth


def within_assumptions(problem: Problem, scenario: Scenario) -> Truth:
    """The truth, if it is as the problem declares and one arm is the best."""
    if broken := scenario.violations(problem):
        raise NotStated("the scenario is not as the problem declares: " + "; ".join(broken))
    truth = scenario.truth(problem)
    second, best = np.sort(truth.value)[-2:]
    if best - second <= HAIR * abs(best):
        raise NotStated("two arms have the same, largest value; the paper assumes that one arm is the best")
    return truth


def check_readings(problem: Problem, scenario: Scenario) -> None:
    """What lower bounds need: the best arm must be found, and the law of the readings is known."""
    if problem.tolerance is not None:
        raise NotStated("the problem has a tolerance, so an algorithm need not find the best arm")
    if not all(noise.exact for noise in scenario.noises(problem)):
        raise NotStated("the noise is not Gaussian or binary, and a lower bound depends on its law")
    if scenario.correlation:
        raise NotStated(f"the two readings have correlation {scenario.correlation:g}; none is assumed")


def variances(problem: Problem, scenario: Scenario) -> tuple[float, float]:
    effect, harm = scenario.noises(problem)
    return effect.scale**2, harm.scale**2


def named(problem: Problem, which: Any) -> str:
    names = [name for name, yes in zip(problem.names, which, strict=True) if yes]
    return ", ".join(names if len(names) < 6 else [*names[:4], f"and {len(names) - 4} others"])
