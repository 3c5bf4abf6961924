import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, SurefootError, case, make, simulate
from surefoot.designs.base import BEATEN, STOPPED, Outcome
from surefoot.designs.linear import SafeBAILinear
from surefoot.scenario import Linear
from surefoot.testing import DesignSuite

from . import strategies
from .properties import bounds_hold, no_end_without_a_pull
from .reference import algorithm_1, compare

DESIGN = SafeBAILinear(unit=1.0)  # as printed


class TestConformance(DesignSuite):
    design = DESIGN


@pytest.mark.parametrize("name", ["paper-linear", "saturated-best", "start-at-limit", "equal-arms", "unsafe-start"])
def test_is_the_pseudocode(name: str) -> None:
    endings = compare(DESIGN, algorithm_1, *case(name, 4), trials=100, seed=1)
    assert set(endings) == {"within-tolerance" if name == "equal-arms" else "best-arm"}


def test_is_the_pseudocode_where_the_largest_dose_is_barely_safe() -> None:
    """Once certified it stays so (L13), though a later estimate alone would not certify it again."""
    arms = tuple(Arm(name, 0.1, largest) for name, largest in (("a", 0.97), ("b", 0.9), ("c", 0.95)))
    p = Problem(arms, 1.0, "linear", Noise("gaussian", 0.5), delta=0.5)
    scenario = Scenario((Linear(1.0), Linear(1.06), Linear(1.0)), (Linear(1.0), Linear(1.08), Linear(1.0)))
    compare(DESIGN, algorithm_1, p, scenario, trials=100, seed=1, loud=2.0)


def test_is_the_pseudocode_while_refining() -> None:
    problem, scenario = case("paper-linear", 3, refine=0.05)
    compare(DESIGN, algorithm_1, problem, scenario, trials=50, seed=1)
    compare(DESIGN, algorithm_1, problem.but(tolerance=0.6), scenario, trials=50, seed=2)


@settings(max_examples=100)
@given(strategies.linear(), st.sampled_from([1.0, 5.0]))
def test_is_the_pseudocode_on_any_problem(made: strategies.Case, loud: float) -> None:
    compare(DESIGN, algorithm_1, *made, trials=3, seed=0, loud=loud)


@pytest.mark.parametrize(
    ("delta", "arms", "pulls"),
    [(0.1, 5, 9953), (0.1, 10, 18083), (0.1, 20, 34952), (0.01, 5, 12503), (0.01, 10, 22259), (0.01, 20, 42387)],
)
def test_reference_figures(delta: float, arms: int, pulls: int) -> None:
    """The means of 100,000 runs of an independent implementation; both means have an error."""
    trials, other = 20_000, 100_000
    result = simulate(*case("paper-linear", arms, delta=delta), DESIGN, trials, seed=5)
    se = result.pulls.std() * (1 / trials + 1 / other) ** 0.5
    assert abs(result.pulls.mean() - pulls) < 5.5 * se + 0.5  # the figures are rounded to whole pulls


@settings(max_examples=100)
@given(strategies.linear(), st.integers(0, 2**32))
def test_ends_whatever_comes_back(made: strategies.Case, seed: int) -> None:
    no_end_without_a_pull(DESIGN, made[0], seed, most=100)


@settings(max_examples=100)
@given(strategies.linear(honest=True), st.integers(0, 2**32))
def test_bounds_hold(made: strategies.Case, seed: int) -> None:
    bounds_hold(DESIGN, *made, seed)


def two(**changes: object) -> Problem:
    arms = (Arm("a", 0.1, 1.5), Arm("b", 0.1, 1.5))
    return Problem(arms, 1.0, "linear", Noise("gaussian", 0.7)).but(**changes)


def test_first_epoch_by_hand() -> None:
    p = two()
    state = DESIGN.start(p)
    cohort = DESIGN.ask(state)
    N = int(np.ceil(2 * 0.7**2 * np.log(8 * 2 / 0.05) * 4))
    np.testing.assert_array_equal(cohort.n, [[N, N]])
    # means (2.0, 0.05) and (1.0, -2.0) at dose 0.1, epsilon 1/2: mu within 0.5 +- 5 and -20 +- 5
    outcome = Outcome(cohort.n, N * np.array([[2.0, 1.0]]), N * np.array([[0.05, -2.0]]))
    v = DESIGN.verdict(DESIGN.tell(state, cohort, outcome))
    np.testing.assert_allclose(v.safe, [[1 / 5.5, 0.1]])  # a denominator below 0 certifies nothing but the start
    np.testing.assert_allclose(v.unsafe, [[1.5, 1.5]])
    np.testing.assert_allclose(v.lower, [[15 / 5.5, 0.5]])
    np.testing.assert_allclose(v.upper, [[37.5, 22.5]])
    assert v.endings() == ["running"]
    assert v.winner[0] == -1


def test_reasons_in_numbers() -> None:
    problem, scenario = case("unsafe-start", 3)
    trace = simulate(problem, scenario, DESIGN, 1, trace=True).trace
    assert trace is not None
    v = trace.verdict
    assert v.standing[0].tolist() == [STOPPED, 0, BEATEN]
    assert v.out_lower[0, 0] > problem.limit
    assert v.out_upper[0, 2] <= v.out_lower[0, 2]
    assert v.reason(0).startswith(f"stopped in round {v.out_round[0, 0]}: harm at its start dose 0.1 is at least 1.")
    assert v.reason(1).startswith("best-arm: value ")
    expected = f"beaten in round {v.out_round[0, 2]}: its value is at most {v.out_upper[0, 2]:.4g}, and arm 2's"
    assert v.reason(2).startswith(expected)


def test_all_stopped() -> None:
    scenario = Scenario((Linear(1.0),) * 2, (Linear(40.0),) * 2)
    result = simulate(two(), scenario, DESIGN, 50)
    assert set(result.ending) == {4}
    assert np.all(result.winner == -1)
    assert np.all(result.unsafe)  # the problem said that its start doses were safe


def test_a_winner_who_is_beaten_while_it_is_refined_loses() -> None:
    p = two(tolerance=50.0, refine=1e-6)
    state = DESIGN.start(p)
    for means in ([[2.0, 1.9]], [[-50.0, 0.0]]):
        cohort = DESIGN.ask(state)
        state = DESIGN.tell(state, cohort, Outcome(cohort.n, cohort.n * np.array(means), cohort.n * 0.5))
    assert state.standing[0].tolist() == [BEATEN, 0]
    assert state.winner[0] == 1
    assert DESIGN.ask(state).n[0, 1] > 0


def test_refine_knows_the_winners_dose() -> None:
    problem, scenario = case("paper-linear", 4)
    plain = simulate(problem, scenario, DESIGN, 200, trace=True)
    fine = simulate(problem.but(refine=0.02), scenario, DESIGN, 200, trace=True)
    assert fine.trace is not None
    won = fine.trace.verdict
    width = (won.unsafe - won.safe)[np.arange(200), fine.winner]
    assert np.all(fine.winner == 0)
    assert np.all(width <= 0.02)
    assert np.all(np.abs(fine.safe - 1.0) <= 0.02)
    assert plain.pulls.mean() < fine.pulls.mean()


def test_unit_sets_the_first_step() -> None:
    problem, scenario = case("small-limit")
    coarse, fine = (simulate(problem, scenario, make("safebai-linear", unit=u), 200) for u in (1.0, 1e-3))
    assert fine.rounds.mean() < coarse.rounds.mean()
    assert not fine.wrong.any()
    with pytest.raises(SurefootError, match="unit must be a number above 0 or auto; got 0"):
        SafeBAILinear(unit=0)
