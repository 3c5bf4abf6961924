"""BOIN and 3+3 against what is published of them, and against their exact operating characteristics."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot import Noise, Problem, Scenario, SurefootError, case, make, simulate
from surefoot.designs.base import Cohort, Outcome
from surefoot.designs.clinic import Boin, ClinicState, ThreePlusThree
from surefoot.problem import Arm
from surefoot.scenario import Table


def drugs(*harms: list[float], budget: int = 10**9) -> tuple[Problem, Scenario]:
    arms = tuple(Arm(f"drug {i}", levels=tuple(range(len(row)))) for i, row in enumerate(harms))
    problem = Problem(arms, 0.3, "levels", Noise("bernoulli"), slack=0.2, budget=budget)
    tables = [Table(tuple(range(len(row))), tuple(row)) for row in harms]
    flat = [Table(t.dose, (0.5,) * len(t.dose)) for t in tables]
    return problem, Scenario(tuple(flat), tuple(tables))


@pytest.mark.parametrize(
    ("target", "low", "high"),
    [(0.15, 0.118, 0.179), (0.2, 0.157, 0.238), (0.25, 0.197, 0.298), (0.3, 0.236, 0.359), (0.35, 0.276, 0.419),
     (0.4, 0.316, 0.480)],
)  # fmt: skip
def test_boundaries_of_the_paper(target: float, low: float, high: float) -> None:
    """Table 1 of Liu and Yuan (2015); 0.3585 is printed as 0.358 or 0.359."""
    np.testing.assert_allclose(Boin().boundaries(target), (low, high), atol=1e-3)


def after(harms: int, n: int, level: int = 1) -> ClinicState:
    """One drug of two, `n` subjects at a level, so many harmed."""
    problem, _ = drugs([0.1] * 4, [0.1] * 4, budget=600)
    design = Boin()
    s = design.start(problem)
    s = type(s)(**{**vars(s), "level": np.full((1, 2), float(level))})
    cohort = Cohort(s.level, np.array([[n, 0]]))
    return design.tell(s, cohort, Outcome(cohort.n, np.zeros((1, 2)), np.array([[float(harms), 0.0]])))


@pytest.mark.parametrize(
    ("n", "up_to", "down_from", "gone_from"),
    [(3, 0, 2, 3), (6, 1, 3, 4), (9, 2, 4, 5), (12, 2, 5, 7), (15, 3, 6, 8), (18, 4, 7, 9)],
)
def test_decisions_of_the_paper(n: int, up_to: int, down_from: int, gone_from: int) -> None:
    """The decision table for a target of 0.3 in cohorts of three, as the BOIN software prints it."""
    for harms in range(n + 1):
        s = after(harms, n)
        step = 1 if harms <= up_to else -1 if harms >= down_from else 0
        assert s.level[0, 0] == 1 + step, harms
        assert (s.top[0, 0] == 0) == (harms >= gone_from), harms


def test_three_plus_three_is_exactly_as_often_right_as_it_should_be() -> None:
    """P(up from a level) = q^3 + 3 p q^2 q^3, so the law of the chosen level is a product."""
    rates = [0.05, 0.1, 0.2, 0.35]
    up = [(1 - p) ** 3 + 3 * p * (1 - p) ** 5 for p in rates]
    law = [np.prod(up[:k]) * ((1 - up[k]) if k < 4 else 1) for k in range(5)]  # k levels passed
    trials = 20_000
    result = simulate(*drugs(rates, rates), ThreePlusThree(), trials, trace=True)
    assert result.trace is not None
    chosen = result.trace.verdict.safe
    for arm in range(2):
        for k, p in enumerate(law):
            seen = np.mean(chosen[:, arm] == k - 1)
            assert abs(seen - p) < 5 * (p * (1 - p) / trials) ** 0.5 + 1e-9


def test_boin_finds_the_level_about_as_often_as_published() -> None:
    """A target of 0.3, 36 subjects: where the levels are far apart it is found in most trials."""
    result = simulate(*drugs([0.05, 0.12, 0.3, 0.6], [0.3, 0.6, 0.7, 0.8]), Boin(), 2000, trace=True)
    assert result.trace is not None
    chosen = result.trace.verdict.safe
    assert 0.6 < np.mean(chosen[:, 0] == 2) < 0.85
    assert np.mean(chosen[:, 1] == 0) > 0.6
    assert np.mean(chosen[:, 1] == -1) > 0.05  # it is stopped at times
    assert result.pulls.max() == 2 * Boin().subjects


@pytest.mark.parametrize("name", ["boin", "three-plus-three"])
def test_budget_and_promise(name: str) -> None:
    problem, scenario = case("levels-thall", budget=200)
    design = make(name)
    result = simulate(problem, scenario, design, 100)
    assert not design.guarantee
    assert result.pulls.max() <= 200
    assert np.all(result.ending > 0)
    assert np.mean(result.recommended == 0) > 0.5


def test_refusals() -> None:
    with pytest.raises(SurefootError, match="boin is for binary harms; got gaussian"):
        make("boin").start(case("levels-gaussian")[0])
    with pytest.raises(SurefootError, match="three-plus-three needs at least one subject an arm; the budget is 2"):
        make("three-plus-three").start(case("levels-thall", budget=2)[0])
