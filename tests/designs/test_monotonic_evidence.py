"""The theorem, for any policy: what is concluded from readings, whoever chose them and however they were staked."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, case, simulate
from surefoot.designs.base import STOPPED, Cohort, Outcome
from surefoot.designs.compose import Policy
from surefoot.designs.monotonic_evidence import (
    ABOVE,
    BELOW,
    CLIMB,
    DOSE,
    GAP,
    LED,
    MORE,
    N,
    OVER,
    SAFE,
    STOP,
    UNDER,
    UNSAFE,
    VERDICT,
    WIDTH,
    MonotonicEvidence,
    MonotonicState,
    Stakes,
    down,
    up,
)
from surefoot.designs.surefoot import SurefootMonotonic
from surefoot.scenario import Linear, Table
from surefoot.simulate import Result
from surefoot.testing import failures_allowed, play

from . import strategies
from .policies import Anyhow, Astray, OnEdge, OnlyArmThree
from .properties import MonotonicSuite, bounds_hold
from .small import flat

DESIGN = SurefootMonotonic()
EVIDENCE = MonotonicEvidence()
NONE = math.nan


def failed(result: Result) -> int:
    return int((result.wrong | result.unsafe).sum())


def close(gap: float, kind: str = "doses", **changes: Any) -> tuple[Problem, Scenario]:
    """Three arms whose values are `gap` apart, the best one last: one limited by its largest dose, one whose effect
    jumps just above the limit, one whose effect rises with the dose."""
    levels = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5) if kind == "levels" else None
    noise = Noise("bernoulli") if kind == "binary" else Noise("gaussian", 0.3)
    arms = tuple(Arm(name, 0.0, m, 1.0, levels) for name, m in (("a", 0.6), ("b", 0.2 if levels is None else 0.6), ("c", 0.6)))
    problem = Problem(arms, 0.3, "monotonic", noise, slack=0.2, **changes)
    v = 0.5 - gap
    effect = (Table((0.0, 0.3, 0.32), (v, v, 1.0)), Linear(0.0, v), Table((0.0, 0.25, 0.3), (0.3, 0.5, 0.5)))
    harm = (Linear(1.0), Linear(0.5), Linear(1.0)) if kind != "levels" else (Linear(1.0, 0.05), Linear(0.55), Linear(1.0))
    return problem, Scenario(effect, harm)


POLICIES = [Anyhow(), Astray(), OnEdge(edges=(0.3, 0.2, 0.3)), OnlyArmThree()]


class TestAnyPolicyConforms(MonotonicSuite):
    """A random policy on our evidence keeps the promise of a design, and the protocol."""

    design = SurefootMonotonic(Astray())
    trials = 30

    @property
    def small(self) -> tuple[Problem, Scenario]:
        problem, scenario = flat()
        return problem.but(budget=1000), scenario

    def test_budget(self) -> None:
        problem, scenario = self.small
        result = simulate(problem.but(budget=200), scenario, self.design, 20)
        assert result.pulls.max() <= 200

    def simulated(self, name: str) -> Result:
        return simulate(*case(name, budget=400), self.design, self.trials, seed=1)


@pytest.mark.parametrize("delta", [0.5, 0.9])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("kind", ["doses", "levels", "binary"])
def test_safe_and_right_under_any_policy(policy: Policy[Any], kind: str, delta: float) -> None:
    """At a delta at which a broken proof would show; with and without a tolerance."""
    for tolerance in (None, 0.02):
        problem, scenario = close(0.04, kind, delta=delta, tolerance=tolerance, budget=400)
        result = simulate(problem, scenario, SurefootMonotonic(policy), 200, seed=5)
        assert failed(result) <= failures_allowed(200, delta, 48)


# One arm, against the table of lemma 5 in words and loops

LEVELS = (0.0, 1.0, 2.0, 3.0, 4.0)


def state_with(at: Any, levels: bool, noise: Noise) -> MonotonicState:
    """Arm 0 with these pulls, from start dose 1 or (levels) 0 to largest dose 4."""
    arm = Arm("a", 0.0, 4.0, 1.0, LEVELS) if levels else Arm("a", 1.0, 4.0)
    problem = Problem((arm, Arm("b", 0.0, 4.0)), 0.3, "monotonic", (noise, noise), slack=0.2)
    state = EVIDENCE.begin(problem, 1, np)
    rows = np.zeros((1, 2, MORE, WIDTH))
    rows[..., DOSE] = np.inf
    rows[0, 0, : len(at)] = at
    return replace(state, at=rows)


def every_b(at: Any, levels: bool) -> list[float]:
    """Largest safe doses of every kind: without levels each dose pulled, and some between them."""
    if levels:
        return list(LEVELS)
    doses = sorted({1.0, 4.0, *(float(x) for x in at[:, DOSE])})
    every = [*doses, *((a + b) / 2 for a, b in zip(doses, doses[1:], strict=False))]
    return [b for b in every if 1.0 <= b <= 4.0]


def slowly(at: Any, levels: bool, noise: Noise, x: float) -> tuple[float, float]:
    """`down` and `up`, by the table: for every b, every pull on its side, and the least."""

    def effect(rows: Any, sums: slice, above: bool) -> float:
        total = [np.array(sum((row[sums][i] for row in rows), 0.0)) for i in range(3)]
        return float(noise.mixture(total[2], total[1], total[0], np.array(x), above, GAP))

    below, above = [], []
    for b in every_b(at, levels):
        low, high = [r for r in at if r[DOSE] <= b], [r for r in at if r[DOSE] > b]
        one = sum(r[OVER] for r in low) + effect(high, BELOW, False)
        if levels or b == 4.0:  # b can be that dose exactly, so that its pulls speak of both
            here = [r for r in low if r[DOSE] == b]
            under = [r for r in low if r[DOSE] < b]
            other = sum(r[OVER] for r in under) + effect(here + high, BELOW, False)
            one = float(np.logaddexp(one, other)) - math.log(2) if here else one
        below.append(one)
        above.append(sum(r[LED] for r in high) + effect(low, ABOVE, True))
    return min(below), min(above)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.integers(0, 6), st.sampled_from([-3.0, 0.1, 0.5, 0.9]))
def test_down_and_up_are_the_least_over_every_largest_safe_dose(
    seed: int, levels: bool, binary: bool, many: int, x: float
) -> None:
    """Also below the start dose and between levels; pulls of which only some are bet on."""
    rng, noise = np.random.default_rng(seed), Noise("bernoulli") if binary else Noise("gaussian", 0.4)
    doses = np.arange(0.0, 4.1) if rng.random() < 0.3 else np.arange(-1.0, 4.1, 0.5)
    many = min(many, len(doses))
    at = np.zeros((many, WIDTH))
    at[:, DOSE] = np.sort(rng.choice(doses, many, replace=False))
    n = rng.integers(1, 30, many)
    at[:, N], at[:, [OVER, UNDER, LED]] = n, rng.normal(0, 2, (many, 3)) * rng.integers(0, 2, (many, 3))
    for sums in (BELOW, ABOVE):
        w = rng.integers(0, 2, many) * (1.0 if binary else rng.uniform(0.1, 3, many))
        at[:, sums] = np.stack([n * w**2, n * w, w * rng.binomial(n, 0.5)], axis=-1)
    state, row, level = state_with(at, levels, noise), np.zeros(1, int), np.array([[x]])
    mine, theirs = (float(f(state, row, row, level, True)[0, 0]) for f in (down, up))
    least = slowly(at, levels, noise, x)
    assert mine <= least[0] + 1e-9 and theirs <= least[1] + 1e-9, "no more than at the true b, whichever that is"
    if not levels or np.isin(at[:, DOSE], LEVELS).all():  # between levels there are cells that hold no level
        assert (mine, theirs) == pytest.approx(least, abs=1e-9)
    for f, found in ((down, mine), (up, theirs)):
        assert found <= float(f(state, row, row, level, False)[0, 0]) + 1e-9, "the screen is an upper bound"


def test_a_level_that_was_pulled_speaks_of_both_whatever_was_pulled_beside_it() -> None:
    """If the largest safe level is that one, half of the stake is on the effect there, from the first pull on: it may
    not be put there later, once the next level has been pulled and it is known which half has won."""
    at = np.zeros((2, WIDTH))
    at[:, DOSE], at[:, N] = (0.0, 1.0), 100
    at[0, BELOW], row = (100, 100, 0), np.zeros(1, int)
    for over in (-5.0, 5.0):
        at[:, OVER] = over, 50.0
        one, two = (down(state_with(at[:k], True, Noise("gaussian", 1.0)), row, row, np.zeros((1, 1)), True) for k in (1, 2))
        assert two[0, 0] == pytest.approx(np.logaddexp(over, math.log(GAP.nothing)) - math.log(2), abs=0.5)
        assert one <= two + 1e-9
