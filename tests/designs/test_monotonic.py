import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, SurefootError, case, make, simulate
from surefoot.designs.base import ENDINGS, Outcome
from surefoot.designs.monotonic import SafeBAIMonotonic
from surefoot.scenario import Linear
from surefoot.testing import DesignSuite

from . import strategies
from .properties import bounds_hold, no_end_without_a_pull
from .reference import Read, Referee, algorithm_2, compare

THEORY, PAPER = SafeBAIMonotonic(unit=1.0), SafeBAIMonotonic("paper", unit=1.0)  # as printed


def constant(p: Problem, read: Read) -> Referee:
    return algorithm_2(p, read, constant=True)


class TestConformance(DesignSuite):
    design = THEORY
    trials = 500


class TestPaperSchedule(DesignSuite):
    design = PAPER


@pytest.mark.parametrize(
    "name", ["paper-drug", "harmless", "dose-levels", "lipschitz-tight", "equal-drugs", "steep-harm", "emax"]
)
def test_is_the_pseudocode(name: str) -> None:
    endings = compare(THEORY, algorithm_2, *case(name, 4), trials=30, seed=1)
    assert set(endings) == {"within-tolerance" if name == "equal-drugs" else "best-arm"}
    compare(PAPER, constant, *case(name, 4), trials=10, seed=2)


def test_is_the_pseudocode_while_refining() -> None:
    problem, scenario = case("paper-drug", 3, refine=0.2)
    compare(THEORY, algorithm_2, problem, scenario, trials=30, seed=1)
    compare(THEORY, algorithm_2, problem.but(tolerance=0.3), scenario, trials=30, seed=2)


@settings(max_examples=60)
@given(strategies.monotonic(), st.booleans(), st.sampled_from([1.0, 5.0]))
def test_is_the_pseudocode_on_any_problem(made: strategies.Case, theory: bool, loud: float) -> None:
    compare(THEORY if theory else PAPER, algorithm_2 if theory else constant, *made, trials=3, seed=0, loud=loud)


@pytest.mark.parametrize(
    ("slack", "figures"),
    [(0.5, {3: 14_700, 5: 25_500, 10: 52_700, 20: 109_400}), (0.2, {3: 37_000, 5: 66_900, 10: 147_900})],
)
def test_reference_figures(slack: float, figures: dict[int, int]) -> None:
    """Means of 100 to 300 runs of an independent implementation that tests the crossing later; near, not equal."""
    for arms, pulls in figures.items():
        result = simulate(*case("paper-drug", arms, slack=slack), THEORY, 500, seed=5)
        assert result.pulls.mean() == pytest.approx(pulls, rel=0.15)


def test_reference_figures_of_the_papers_schedule() -> None:
    for arms, pulls in {3: 18_600, 5: 31_000, 10: 62_000}.items():
        assert simulate(*case("paper-drug", arms), PAPER, 500, seed=5).pulls.mean() == pytest.approx(pulls, rel=0.15)


@settings(max_examples=50)
@given(strategies.monotonic(), st.integers(0, 2**32))
def test_ends_whatever_comes_back(made: strategies.Case, seed: int) -> None:
    no_end_without_a_pull(THEORY, made[0], seed, most=1000)


@settings(max_examples=40)
@given(strategies.monotonic(honest=True), st.integers(0, 2**32))
def test_bounds_hold(made: strategies.Case, seed: int) -> None:
    bounds_hold(THEORY, *made, seed)


def two(**changes: object) -> Problem:
    arms = (Arm("a", 0.0, 2.0, 1.0), Arm("b", 0.0, 2.0, 1.0))
    return Problem(arms, 0.3, "monotonic", Noise("gaussian", 0.01), slack=0.2).but(**changes)


def test_t_counts_estimates_in_arm_order() -> None:
    p = two(noise=Noise("gaussian", 1.0))
    expected = [np.ceil(2 * np.log(8 * t**2 / p.delta) * 4) for t in (1, 2)]
    np.testing.assert_array_equal(THEORY.ask(THEORY.start(p)).n, [expected])
    np.testing.assert_array_equal(PAPER.ask(PAPER.start(p)).n, [[np.ceil(2 * np.log(64 / p.delta) * 4)] * 2])


def test_the_climb_by_hand() -> None:
    """Without noise worth the name, harm = dose and K = 2: how the doses go up, cross the limit and come back."""
    arms = tuple(Arm(name, 0.0, 2.0, lipschitz=2.0) for name in "ab")
    p = two(arms=arms, slack=0.15, noise=Noise("gaussian", 1e-9), refine=0.02)
    scenario = Scenario((Linear(1.0), Linear(1.0, -5.0)), (Linear(1.0),) * 2)
    result = simulate(p, scenario, THEORY, 1, trace=True)
    assert result.trace is not None
    epochs: list[list[float]] = [
        [0, 0],  # epsilon 1/2, then 1/4: no room for a step, neither to 0.3 nor to 0.45
        [0, 0],
        [0, 0.0875, 0, 0.1625, 0.24375],  # 1/8: (0.3 - 0 - 1/8)/2; then the climb from where it stood, at 0
        [0.0875, 0.1625, 0.2, 0.24375, 0.315625, 0.3515625],  # 1/16
        [0.2, 0.234375, 0.2515625, 0.3515625],  # 1/32: 0.3515625 - 1/32 is above 0.3, it has crossed
        [0.2515625, 0.26796875, 0.276171875, 0.3138671875, 0.33271484375],  # 1/64: bisects, and lands the second time
    ]
    expected = [dose for epoch in epochs for dose in epoch]
    np.testing.assert_allclose(result.trace.dose[0, : len(expected), 0], expected, atol=1e-7)
    assert result.winner[0] == 0
    assert 0.28 <= result.safe[0] <= 0.3


def test_start_dose_above_the_limit_is_stopped() -> None:
    scenario = Scenario((Linear(1.0), Linear(1.0)), (Linear(1.0), Linear(1.0, 0.45)))
    result = simulate(two(), scenario, THEORY, 50, trace=True)
    assert result.trace is not None
    assert np.all(result.winner == 0)
    assert "stopped" in result.trace.verdict.reason(1)
    assert "above the limit 0.3" in result.trace.verdict.reason(1)


def test_levels_out_of_reach_end_with_the_budget() -> None:
    """The next level is so far that no bound can certify it: it stays where it is, safely, and says so."""
    arms = tuple(Arm(name, 0.0, 2.0, 1.0, levels=(0.0, 2.0)) for name in "ab")
    scenario = Scenario((Linear(1.0), Linear(0.9)), (Linear(0.4),) * 2)
    result = simulate(two(arms=arms, budget=10**6), scenario, THEORY, 20)
    assert {ENDINGS[k] for k in result.ending} == {"budget-spent"}
    assert not result.over_pulls.any()


@pytest.mark.parametrize("limit", [-0.2, 0.0])
def test_limits_at_and_below_zero(limit: float) -> None:
    scenario = Scenario((Linear(1.0, 1.0), Linear(0.5)), (Linear(1.0, limit - 0.5),) * 2)
    result = simulate(two(limit=limit), scenario, THEORY, 50)
    assert np.all(result.winner == 0)
    assert not result.unsafe.any()
    np.testing.assert_allclose(result.truth.dose, 0.5)


def test_only_the_theory_schedule_has_a_guarantee() -> None:
    assert THEORY.guarantee
    assert not PAPER.guarantee
    assert make("safebai-monotonic", schedule="paper", unit=1.0) == PAPER
    with pytest.raises(SurefootError, match="schedule must be one of theory, paper; got 'constant'"):
        make("safebai-monotonic", schedule="constant")


def test_what_a_stage_did_not_ask_for_is_set_aside() -> None:
    p = two(noise=Noise("gaussian", 1.0))
    state = THEORY.start(p)
    cohort = THEORY.ask(state)
    n, one = cohort.n, np.ones_like(cohort.n)
    early = THEORY.tell(state, type(cohort)(cohort.dose + 1e-9, n), Outcome(n, n * 9.0, n * 9.0))
    np.testing.assert_array_equal(THEORY.ask(early).n, n)  # another dose: asked for again
    assert early.pulls[0] == n.sum()
    more = THEORY.tell(state, cohort, Outcome(n + 1, n * 0.5, n * 0.1))
    np.testing.assert_array_equal(THEORY.ask(more).n, n)  # more than was asked for: which ones would be chosen by hand
    part = THEORY.tell(state, cohort, Outcome(one, one * 0.5, one * 0.1))
    np.testing.assert_array_equal(THEORY.ask(part).n, n - 1)  # a part of it: the rest is asked for
    assert part.rounds[0] == 0
