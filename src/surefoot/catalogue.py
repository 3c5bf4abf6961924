"""Named cases, each a Problem and its hidden Scenario: the paper's two instances, hard cases that try to break the
guarantee, and cases outside the assumptions, about which nothing is claimed.

`case("paper-drug", arms=5, delta=0.01)` makes one; `CASES` lists them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .problem import Arm, Noise, Problem, SurefootError, choice
from .scenario import Array, Curve, Emax, Linear, Logistic, Scenario, Table

Made = tuple[Problem, Scenario]


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    make: Callable[[int], Made]
    arms: int  # by default
    fixed: bool = False  # whether that is the only number there can be
    claim: bool = True  # whether the assumptions hold, and with them the guarantee


CASES: dict[str, Case] = {}


def case(name: str, arms: int | None = None, **changes: Any) -> Made:
    """The case of that name with so many arms; `changes` are fields of the Problem (delta, slack, budget, ...)."""
    it = CASES[choice("scenario", name, CASES)]
    if arms is not None and (isinstance(arms, bool) or not isinstance(arms, int) or arms < 2):
        raise SurefootError(f"arms must be a whole number of at least 2; got {arms!r}")
    if it.fixed and arms not in (None, it.arms):
        raise SurefootError(f"{name} has {it.arms} arms and does not scale; leave arms out")
    problem, scenario = it.make(arms or it.arms)
    return problem.but(**changes), replace(scenario, name=name)


def _case(name: str, arms: int = 5, **flags: bool) -> Callable[[Callable[[int], Made]], Callable[[int], Made]]:
    def add(make: Callable[[int], Made]) -> Callable[[int], Made]:
        CASES[name] = Case(name, " ".join((make.__doc__ or "").split()), make, arms, **flags)
        return make

    return add


def _linear(
    theta: Any, mu: Any, *, start: Any = 0.1, max: Any = math.inf, limit: float = 1.0, sigma: float = 0.5**0.5,
    noise: Any = None, correlation: float = 0.0, actual: Any = None, drift: float = 0.0, **problem: Any,
) -> Made:  # fmt: skip
    """Slopes theta of the effect and mu of the harm, one an arm; start and max one for all or one an arm."""
    theta, mu, start, max = np.broadcast_arrays(*(np.asarray(x, float) for x in (theta, mu, start, max)))
    arms = tuple(Arm(f"arm {i + 1}", start[i], max[i]) for i in range(len(theta)))
    effect, harm = ([Linear(float(x)) for x in slopes] for slopes in (theta, mu))
    made = Problem(arms, limit, "linear", noise or Noise("gaussian", sigma), **{"delta": 0.1, **problem})
    return made, Scenario(tuple(effect), tuple(harm), noise=actual, correlation=correlation, drift=drift)


def _monotonic(
    effect: Sequence[Curve], harm: Sequence[Curve], *, start: float = -3.0, max: float = 0.5, limit: float = 0.3,
    lipschitz: Any = 1.0, levels: Any = None, noise: Any = None, correlation: float = 0.0, **problem: Any,
) -> Made:  # fmt: skip
    d = len(effect)
    constants = np.broadcast_to(np.asarray(lipschitz, float), (d,))
    arms = tuple(Arm(f"drug {i + 1}", start, max, float(constants[i]), levels) for i in range(d))
    noise = noise or Noise("gaussian", 0.1**0.5)
    made = Problem(arms, limit, "monotonic", noise, **{"slack": 0.2, "delta": 0.1, **problem})
    return made, Scenario(tuple(effect), tuple(harm), correlation=correlation)


def _first(value: float, other: float, arms: int) -> list[float]:
    return [value] + [other] * (arms - 1)


# The paper's instances


@_case("paper-linear", 10)
def paper_linear(d: int) -> Made:
    """The paper's linear instance: one best arm, one at gap 0.4, the others at gap 0.8; largest dose 1.5, safe for the
    best arm's rivals only beyond reach."""
    return _linear([1.0, 0.9] + [1.0] * (d - 2), [1.0, 1.5] + [5.0] * (d - 2), max=1.5, signals="independent")


@_case("paper-drug", 10)
def paper_drug(d: int) -> Made:
    """The paper's drug instance: logistic curves, one drug that works below the limit, the others only above it.
    Largest dose 0.5 (the paper's -0.5 would leave a slack of 0.08 at most); delta and slack are not given there."""
    return _monotonic([Logistic(x) for x in _first(0.01, 10.0, d)], [Logistic(1.0)] * d, signals="independent")


# Hard cases: the assumptions hold, and so must the guarantee


@_case("saturated-none")
def saturated_none(d: int) -> Made:
    """Case 1 of Theorem 2: no arm's largest dose is safe."""
    return _linear(_first(1.0, 0.8, d), _first(1.0, 1.6, d), max=_first(1.2, 1.0, d))


@_case("saturated-rivals")
def saturated_rivals(d: int) -> Made:
    """Case 2 of Theorem 2: the rivals' largest dose is safe, the best arm's is not."""
    return _linear(_first(1.0, 0.8, d), _first(1.0, 0.5, d), max=_first(2.0, 0.7, d))


@_case("saturated-best")
def saturated_best(d: int) -> Made:
    """Case 3 of Theorem 2: the best arm's largest dose is safe, the rivals' is not."""
    return _linear(_first(1.0, 0.8, d), _first(0.5, 2.0, d), max=_first(1.0, 2.0, d))


@_case("saturated-all")
def saturated_all(d: int) -> Made:
    """Case 4 of Theorem 2: every largest dose is safe."""
    return _linear(_first(1.0, 0.7, d), 0.5, max=1.0 + np.zeros(d))


@_case("start-at-limit")
def start_at_limit(d: int) -> Made:
    """The best arm's start dose is its largest safe one: any step up is a step over the line."""
    return _linear(_first(1.0, 0.6, d), _first(1.0, 1.0, d), start=_first(1.0, 0.2, d), max=2.0)


@_case("start-near-limit", 4)
def start_near_limit(d: int) -> Made:
    """Monotonic: every start dose is a hair below the limit, and harm rises as fast as it may."""
    return _monotonic([Linear(x) for x in _first(0.9, 0.4, d)], [Linear(1.0)] * d, start=0.299, max=0.8)


@_case("tiny-gap", 3)
def tiny_gap(d: int) -> Made:
    """Values within 2% of each other, from different slopes."""
    return _linear(_first(1.0, 1.96, d), _first(1.0, 2.0, d))


@_case("equal-arms", 4)
def equal_arms(d: int) -> Made:
    """All arms have the same value; a tolerance lets any of them win."""
    return _linear(np.linspace(0.5, 1.0, d), np.linspace(0.5, 1.0, d), tolerance=0.2)


@_case("equal-drugs", 3)
def equal_drugs(d: int) -> Made:
    """Monotonic: all arms are the same; a tolerance lets any of them win."""
    return _monotonic([Logistic(1.0)] * d, [Logistic(1.0)] * d, tolerance=0.15)


@_case("hundred-arms", 100)
def hundred_arms(d: int) -> Made:
    """A hundred arms, values spread evenly below the best one's."""
    return _linear(np.linspace(1.0, 0.2, d) * np.r_[1.0, np.full(d - 1, 0.8)], 1.0 + np.zeros(d))


@_case("lipschitz-tight", 4)
def lipschitz_tight(d: int) -> Made:
    """Harm rises as fast as its Lipschitz constant allows, at a different constant for every arm."""
    K = np.geomspace(0.25, 4.0, d)
    effect = [Table((0.0, 0.3 / k, 1.0 / k), (0.1, v, v)) for k, v in zip(K, _first(0.9, 0.5, d), strict=True)]
    return _monotonic(effect, [Linear(k) for k in K], lipschitz=K, start=0.01, max=2.0)


@_case("flat-effect", 4)
def flat_effect(d: int) -> Made:
    """Effects that do not depend on the dose at all."""
    return _monotonic([Linear(0.0, x) for x in _first(0.8, 0.4, d)], [Logistic(1.0)] * d)


@_case("effect-jump", 4)
def effect_jump(d: int) -> Made:
    """The rivals' effect jumps from nothing to everything just above the limit, where it does not count."""
    edge = math.log(0.31 / 0.69)  # where harm is 0.31, a hair above the limit
    jump = Table((-4.0, edge, edge + 0.01, 1.0), (0.1, 0.1, 1.0, 1.0))
    return _monotonic([Linear(0.0, 0.45), *[jump] * (d - 1)], [Logistic(1.0)] * d)


@_case("steep-harm", 4)
def steep_harm(d: int) -> Made:
    """Harm is nothing for most of the way, then rises as fast as it may through limit and slack."""
    wall = Table((-3.0, -0.5, 0.4, 0.5), (0.0, 0.0, 0.9, 0.9))
    return _monotonic([Logistic(x) for x in _first(0.01, 6.0, d)], [wall] * d)


@_case("harmless", 3)
def harmless(d: int) -> Made:
    """Monotonic: the largest dose of every arm is safe, so its value is the effect there."""
    return _monotonic([Logistic(x) for x in _first(2.0, 0.1, d)], [Logistic(0.2, -3.0)] * d, max=1.0)


@_case("emax", 4)
def emax(d: int) -> Made:
    """Emax curves with different potencies for effect and harm, doses from 0.05."""
    effect = [Emax(x, 0.5) for x in _first(1.0, 0.6, d)]
    return _monotonic(effect, [Emax(1.0, 2.0, 1.5)] * d, start=0.05, max=3.0)


@_case("dose-levels", 4)
def dose_levels(d: int) -> Made:
    """Doses may only be given at eleven levels, which lie close enough for the Lipschitz constant to step up."""
    levels = tuple(round(x, 3) for x in np.linspace(0.0, 1.0, 11))
    harm: list[Curve] = [Linear(0.5, 0.06)] * d
    effect: list[Curve] = [Linear(x) for x in _first(1.0, 0.3, d)]
    return _monotonic(effect, harm, start=0.0, max=1.0, lipschitz=0.5, levels=levels)


@_case("rademacher")
def rademacher(d: int) -> Made:
    """Readings of the heaviest shape there is for their sigma: the mean plus or minus sigma."""
    return _linear(_first(1.0, 0.8, d), _first(1.0, 1.6, d), max=1.5, noise=Noise("rademacher", 0.7))


@_case("binary", 4)
def binary(d: int) -> Made:
    """Effect and harm are both yes or no."""
    return _monotonic([Logistic(x) for x in _first(0.05, 5.0, d)], [Logistic(1.0)] * d, noise=Noise("bernoulli"))


@_case("binary-harm", 4)
def binary_harm(d: int) -> Made:
    """The standard trial: harm is yes or no, effect a number, and subjects who are harmed also show more effect."""
    noise = (Noise("gaussian", 0.4), Noise("bernoulli"))
    effect: list[Curve] = [Logistic(x) for x in _first(0.05, 5.0, d)]
    return _monotonic(effect, [Logistic(1.0)] * d, noise=noise, correlation=0.8)


@_case("correlated-same")
def correlated_same(d: int) -> Made:
    """The two readings of a pull have the very same noise (correlation 1)."""
    return _linear(_first(1.0, 0.7, d), _first(1.0, 1.4, d), correlation=1.0)


@_case("correlated-opposite")
def correlated_opposite(d: int) -> Made:
    """The two readings of a pull have opposite noise (correlation -1)."""
    return _linear(_first(1.0, 0.7, d), _first(1.0, 1.4, d), correlation=-1.0)


@_case("small-values")
def small_values(d: int) -> Made:
    """Values near 0.01 under a limit of 1."""
    return _linear(_first(0.012, 0.008, d), 1.0 + np.zeros(d), sigma=0.1)


@_case("large-values")
def large_values(d: int) -> Made:
    """Values near 100 under a limit of 1: harm is faint and the largest safe doses are far from the start."""
    return _linear(_first(1.2, 0.8, d), 0.01 + np.zeros(d), start=1.0, sigma=0.5)


@_case("small-limit")
def small_limit(d: int) -> Made:
    """Everything at the scale of a thousandth."""
    return _linear(_first(1.0, 0.6, d), 1.0 + np.zeros(d), start=1e-4, limit=1e-3, sigma=5e-4)


@_case("large-limit")
def large_limit(d: int) -> Made:
    """Everything at the scale of a thousand."""
    return _linear(_first(1.0, 0.6, d), 1.0 + np.zeros(d), start=100.0, limit=1e3, sigma=300.0)


# Outside the assumptions: nothing is claimed; what happens is measured


@_case("wrong-sigma", claim=False)
def wrong_sigma(d: int) -> Made:
    """The noise is three times what the problem declares."""
    return _linear(_first(1.0, 0.8, d), _first(1.0, 1.6, d), max=1.5, sigma=0.3, actual=Noise("gaussian", 0.9))


@_case("wrong-lipschitz", 4, claim=False)
def wrong_lipschitz(d: int) -> Made:
    """Harm rises up to four times as fast as the problem declares."""
    return _monotonic([Logistic(x) for x in _first(0.01, 10.0, d)], [Logistic(4.0)] * d, lipschitz=0.25)


@_case("bent-lines", claim=False)
def bent_lines(d: int) -> Made:
    """Harm of a linear problem turns upwards half way to the limit."""
    problem, scenario = _linear(_first(1.0, 0.8, d), _first(1.0, 1.6, d), max=1.5)
    bent = Table((0.0, 0.4, 1.5), (0.0, 0.2, 2.4))
    return problem, replace(scenario, harm=(bent,) * d)


@_case("drift", claim=False)
def drifting(d: int) -> Made:
    """Harm creeps up by 0.02 with every 1,000 pulls."""
    return _linear(_first(1.0, 0.8, d), _first(1.0, 1.6, d), max=1.5, drift=0.02)


def _humped(dose: Array) -> Array:
    return 0.6 * np.exp(-0.5 * ((np.asarray(dose) + 1.5) / 0.5) ** 2)


@_case("falling-harm", 4, claim=False)
def falling_harm(d: int) -> Made:
    """Harm rises over a hump above the limit and falls again with the dose."""
    problem, scenario = _monotonic([Logistic(x) for x in _first(0.01, 10.0, d)], [Logistic(1.0)] * d, lipschitz=0.75)
    return problem, replace(scenario, harm=(_humped,) * d)


@_case("unsafe-start", claim=False)
def unsafe_start(d: int) -> Made:
    """The start dose of the arm with the largest slope is not safe; that arm has no value and is to be stopped."""
    return _linear([2.0, 1.2, *[0.6] * (d - 2)], _first(15.0, 1.6, d), max=1.5)
