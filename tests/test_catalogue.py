import math

import numpy as np
import pytest

from surefoot import CASES, SurefootError, case, make, simulate

CLAIMED = [name for name, it in CASES.items() if it.claim]
OUTSIDE = [name for name, it in CASES.items() if not it.claim]


def test_there_are_enough() -> None:
    assert len(CLAIMED) >= 14
    assert {"wrong-sigma", "wrong-lipschitz", "bent-lines", "drift", "falling-harm"} <= set(OUTSIDE)


@pytest.mark.parametrize("name", CASES)
def test_keeps_to_the_assumptions_or_says_how_not(name: str) -> None:
    problem, scenario = case(name)
    assert CASES[name].about
    assert scenario.name == name
    assert len(problem.arms) == CASES[name].arms
    assert bool(scenario.violations(problem)) is not CASES[name].claim


@pytest.mark.parametrize("name", CLAIMED)
def test_has_one_best_arm_or_a_tolerance(name: str) -> None:
    problem, scenario = case(name)
    value = np.sort(scenario.truth(problem).value)
    assert np.all(np.isfinite(value))
    assert problem.tolerance is not None or value[-1] - value[-2] > 1e-3 * abs(value[-1])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("arms", [2, 7])
def test_scales_and_ends(name: str, arms: int) -> None:
    problem, scenario = case(name, arms)
    result = simulate(problem, scenario, make(f"safebai-{problem.shape}"), 3)
    assert len(problem.arms) == arms
    assert np.all(result.ending > 0)


def test_the_papers_linear_instance() -> None:
    problem, scenario = case("paper-linear", 4)
    truth = scenario.truth(problem)
    np.testing.assert_allclose(truth.dose, [1, 1 / 1.5, 0.2, 0.2])
    np.testing.assert_allclose(truth.value, [1, 0.6, 0.2, 0.2])
    assert problem.sigma**2 == pytest.approx(0.5)
    assert (problem.delta, problem.limit, problem.signals) == (0.1, 1.0, "independent")
    assert problem.starts.tolist() == [0.1] * 4
    assert problem.largest.tolist() == [1.5] * 4


def test_the_papers_drug_instance() -> None:
    problem, scenario = case("paper-drug", 4)
    truth = scenario.truth(problem)
    edge = math.log(3 / 7)
    np.testing.assert_allclose(truth.dose, edge)
    np.testing.assert_allclose(truth.value, [1 / (1 + math.exp(-k * edge)) for k in (0.01, 10, 10, 10)])
    assert problem.sigma**2 == pytest.approx(0.1)
    assert (problem.delta, problem.slack, problem.limit, problem.signals) == (0.1, 0.2, 0.3, "independent")


def test_changes_and_errors() -> None:
    assert case("paper-drug", delta=0.01, slack=0.5)[0].delta == 0.01
    with pytest.raises(
        SurefootError, match=r"scenario must be one of paper-linear, .* \(did you mean 'paper-drug'\?\)"
    ):
        case("paper-drugs")
    for arms in (1, 2.5, True):
        with pytest.raises(SurefootError, match=f"arms must be a whole number of at least 2; got {arms}"):
            case("paper-drug", arms)  # type: ignore[arg-type]
    with pytest.raises(SurefootError, match="slack is for the monotonic shape"):
        case("paper-linear", slack=0.2)


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_the_assumptions_it_still_ends(name: str) -> None:
    problem, scenario = case(name)
    result = simulate(problem, scenario, make(f"safebai-{problem.shape}"), 200)
    assert np.all(result.ending > 0)


def test_wrong_sigma_does_break_the_promise() -> None:
    """The case is worth its place: what the design was not told does harm."""
    result = simulate(*case("wrong-sigma"), make("safebai-linear"), 500)
    assert (result.wrong | result.unsafe).mean() > 0.1
