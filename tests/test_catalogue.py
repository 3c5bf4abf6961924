import math

import numpy as np
import pytest

from surefoot import CASES, SurefootError, case, make, simulate

CLAIMED = [name for name, it in CASES.items() if it.claim]
OUTSIDE = [name for name, it in CASES.items() if not it.claim]
FAMILIES = [name for name, it in CASES.items() if it.family]
WITH_DOSES = [name for name in CASES if case(name)[0].shape != "levels"]  # the others: test_catalogue_levels.py
LINEAR_7 = [2.2328014732, 0.247303525943, 6.27905190663, 0.0240736486141, 0.24815295824, 0.686748976191, 0.661319836041]
MONOTONIC_7 = [
    0.327120217695,
    0.720756631534,
    -0.887454348459,
    1.29943722076,
    0.249037640061,
    0.444845875118,
    0.376951527657,
]


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
    assert problem.tolerance is not None or value[-1] - value[-2] > 1e-4 * abs(value[-1])


@pytest.mark.parametrize("name", WITH_DOSES)
@pytest.mark.parametrize("arms", [2, 7])
def test_scales_and_ends(name: str, arms: int) -> None:
    problem, scenario = case(name, arms)
    result = simulate(problem, scenario, make(f"safebai-{problem.shape}"), 3)
    assert len(problem.arms) == arms
    assert np.all(result.ending > 0)


@pytest.mark.parametrize("name", ["paper-linear", "paper-drug", "saturated-none", "emax"])
def test_which_rivals_are_alike(name: str) -> None:
    """The paper's are, all but one; the hard cases' are not, since a trial that lost the best arm would never end."""
    problem, scenario = case(name, 5)
    value = np.sort(scenario.truth(problem).value)[:3]
    assert bool(np.all(np.diff(value) > 0.01 * value[1:])) != name.startswith("paper")


@pytest.mark.parametrize("family", [name for name in FAMILIES if name in WITH_DOSES])
def test_random_instances_keep_to_the_assumptions(family: str) -> None:
    scales, gaps, capped, near, signals, kinds = [], [], [], [], [], set()
    for k in range(100):
        problem, scenario = case(family, instance=k)
        truth = scenario.truth(problem)
        assert scenario.violations(problem) == [], k
        assert scenario.name == f"{family} {k}"
        assert (len(problem.arms), problem.delta) == (8, 0.1)
        value = np.sort(truth.value)
        scales.append(value[-1])
        gaps.append(1 - value[-2] / value[-1])
        capped.append(np.mean(truth.dose == problem.largest))
        near.append(np.any(np.diff(value) < 0.05 * value[1:]))
        signals.append(problem.signals)
        kinds |= {noise.kind for noise in problem.noises}
    assert min(gaps) > 0.0199
    assert np.mean(np.array(gaps) < 0.05) > 0.1
    assert 0.1 < np.mean(capped) < 0.5  # arms whose largest dose is safe
    assert np.mean(near) > 0.5
    assert any(0.005 < x < 0.02 for x in scales)
    assert any(50 < x < 200 for x in scales)
    assert 0.4 < np.mean(np.array(signals) == "any") < 0.6
    assert {"gaussian", "rademacher"} <= kinds


@pytest.mark.parametrize("family", FAMILIES)
def test_random_instances_can_be_had_again(family: str) -> None:
    assert case(family, 4, instance=3) == case(family, 4, instance=3)
    assert case(family, 4, instance=3) != case(family, 4, instance=4)
    assert case(family, 4) == case(family, 4, instance=0)
    assert case(family, 4, instance=3, delta=0.01)[0].delta == 0.01


def test_random_instances_are_the_same_everywhere() -> None:
    problem, scenario = case("random-linear", 3, instance=7)
    found = [problem.limit, *problem.starts, *scenario.truth(problem).value]
    np.testing.assert_allclose(found, LINEAR_7, rtol=1e-9)
    problem, scenario = case("random-monotonic", 3, instance=7)
    found = [problem.limit, *problem.starts, *scenario.truth(problem).value]
    np.testing.assert_allclose(found, MONOTONIC_7, rtol=1e-9)


def test_instances_are_for_families() -> None:
    with pytest.raises(SurefootError, match=r"paper-drug is one case .*: random-linear and random-monotonic"):
        case("paper-drug", instance=1)
    for instance in (-1, 1.5, True):
        with pytest.raises(SurefootError, match=f"instance must be a whole number of at least 0; got {instance}"):
            case("random-linear", instance=instance)  # type: ignore[arg-type]


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
    with pytest.raises(SurefootError, match="slack is for monotonic and levels"):
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
