"""The lower bound that knows of certificates: hand-made figures, other bounds, and designs that are measured."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, Scenario, case, make, simulate
from surefoot.scenario import Linear, Table
from surefoot.theory import NotStated, certified_lower_bound, characteristic_time, doubts, impossible, kl
from surefoot.theory.certified import _Curve, _kl_plus, _kl_slope, _Line, _Pairs, _Program, _Side


def one_dose(effects: Any, noise: Noise, delta: float = 0.1, shape: Any = "linear") -> tuple[Problem, Scenario]:
    """Arms with a single level, which is safe: nothing but the best arm is to be found."""
    arms = tuple(Arm(f"arm {i}", 1.0, 1.0, levels=(1.0,)) for i in range(len(effects)))
    slack = None if shape == "linear" else 0.1
    problem = Problem(arms, 2.0, shape, noise, slack=slack, delta=delta)
    return problem, Scenario(tuple(Linear(x) for x in effects), (Linear(0.1),) * len(arms))


def test_two_gaussian_arms_at_one_dose() -> None:
    """8 sigma^2 kl / gap^2, the bound of Kaufmann, Cappe and Garivier for two arms."""
    made = one_dose((0.7, 0.3), Noise("gaussian", 0.5))
    assert certified_lower_bound(*made).pulls == pytest.approx(8 * 0.25 * kl(0.1) / 0.16, rel=0.02)


@cache
def bound_of(name: str, arms: int) -> Any:
    """They take seconds."""
    return certified_lower_bound(*case(name, arms))


def test_it_is_above_the_characteristic_time() -> None:
    bound = bound_of("paper-linear", 2)
    assert bound.pulls > 1.5 * characteristic_time(*case("paper-linear", 2)).pulls
    assert bound.over == 0


@pytest.mark.parametrize("name", ["tiny-gap", "saturated-all"])
def test_it_is_not_below_the_characteristic_time(name: str) -> None:
    assert bound_of(name, 2).pulls > 0.98 * characteristic_time(*case(name, 2)).pulls


def test_the_drug_instance() -> None:
    problem, scenario = case("paper-drug", 10)
    bound = bound_of("paper-drug", 10)
    assert bound.pulls == pytest.approx(770, rel=0.05)
    assert 1100 < bound.rate * kl(0.1) < 1703  # a grid of doses without the dual check said 1,703
    assert 0.5 < bound.over < 0.65
    assert bound.by_arm.sum() == pytest.approx(bound.pulls, rel=1e-6)
    small = certified_lower_bound(problem.but(delta=1e-12), scenario)
    assert 0.85 < small.pulls / (bound.rate * kl(1e-12)) < 1.001


@pytest.mark.parametrize("name, arms", [("paper-linear", 2), ("binary", 2), ("saturated-all", 2)])
def test_no_design_of_ours_is_below_it(name: str, arms: int) -> None:
    problem, scenario = case(name, arms)
    ran = simulate(problem, scenario, make(f"surefoot-{problem.shape}"), 10, progress=False)
    assert ran.pulls.mean() > bound_of(name, arms).pulls


def test_control_a_design_that_is_told_the_safe_doses_is_below_it() -> None:
    problem, scenario = case("paper-drug", 10)
    oracle = make("oracle", doses=tuple(scenario.truth(problem).dose))
    ran = simulate(problem, scenario, oracle, 20, progress=False)
    assert ran.pulls.mean() < 0.5 * bound_of("paper-drug", 10).pulls


def test_more_doses_prove_more() -> None:
    """What the grid does: fewer doses lose tightness, and never gain."""
    problem, scenario = case("paper-drug", 2)
    truth = scenario.truth(problem)
    found = []
    for many in (12, 24, 48):
        arm = _Curve(problem, scenario, 1, False, float(truth.dose[1]))
        arm.place(many)
        side = _Side(arm, 1, float(truth.value[0]))
        found.append(_Program([side], 0.1, exact=True).solve(_Pairs([side], [0.0], 0))[0])
    assert found == sorted(found)
    assert found[2] > 1.2 * found[0]


def test_instances_are_within_the_assumptions_and_others_win_there() -> None:
    """What is told apart is told from something: by the harm at the doses, never falling, never too steep."""
    problem, scenario = case("paper-drug", 3)
    truth = scenario.truth(problem)
    for i in (0, 1):
        arm = _Curve(problem, scenario, i, i == 0, float(truth.dose[i]))
        arm.place(20)
        y = np.union1d(np.linspace(problem.starts[i], problem.largest[i], 3000), arm.doses)
        seen = list[Any]()
        arm.told = lambda y, effect, harm, seen=seen: seen.append((effect, harm)) or 0.0 * harm  # type: ignore[method-assign, misc]
        x = float(truth.value[1 - i]) if i == 0 else float(truth.value[0])
        arm.others(x, y)
        for effect, harm in seen:
            effect = np.broadcast_to(effect, harm.shape)
            assert np.all(np.diff(harm, axis=1) >= -1e-12) and np.all(np.diff(effect, axis=1) >= -1e-12)
            assert np.all(np.diff(harm, axis=1) <= problem.lipschitz[i] * np.diff(y) + 1e-12)
            assert np.all(harm[:, 0] <= problem.limit)
            # harm that stays at the limit stands for harm just above it
            last = np.sum(harm < problem.limit - 1e-9 if i == 0 else harm <= problem.limit + 1e-9, axis=1) - 1
            value = effect[np.arange(len(effect)), np.maximum(last, 0)]
            assert np.all(value <= x + 1e-3) if i == 0 else np.all(value >= x - 1e-12)


def test_lines_have_the_value_they_are_said_to_have() -> None:
    problem, scenario = case("paper-linear", 3)
    truth = scenario.truth(problem)
    for i in (0, 1):
        arm = _Line(problem, scenario, i, i == 0, float(truth.dose[i]))
        arm.place(20)
        y, seen = np.array([problem.starts[i]]), list[Any]()
        arm.told = lambda y, effect, harm, seen=seen: seen.append((effect / y, harm / y)) or 0.0 * harm  # type: ignore[method-assign, misc]
        arm.others(0.8, y)
        (theta, mu), *_ = seen
        value = theta * np.minimum(problem.limit / np.maximum(mu, 1e-200), problem.largest[i])
        assert np.all(value <= 0.8 + 1e-9) if i == 0 else np.all(value >= 0.8 - 1e-9)
        assert np.all(mu * problem.starts[i] <= problem.limit + 1e-9) and np.all(mu >= 0)


def test_tangents_are_below() -> None:
    q, p = np.meshgrid(np.linspace(0, 0.9, 50), np.linspace(0, 0.9, 50))
    assert np.all(_kl_plus(q, 0.1) >= _kl_plus(p, 0.1) + _kl_slope(p, 0.1) * (q - p) - 1e-12)
    assert _kl_plus(0.9, 0.1) == pytest.approx(kl(0.1))


def test_what_it_is_not_stated_for() -> None:
    problem, scenario = case("paper-drug", 3)
    assert certified_lower_bound(problem.but(delta=0.6), scenario).pulls == 0
    for changed, truth in (
        (problem.but(tolerance=0.1), scenario),
        case("rademacher", 3),
        case("wrong-lipschitz", 3),
        case("equal-drugs", 3),
    ):
        with pytest.raises(NotStated):
            certified_lower_bound(changed, truth)


# Before the first pull


def stepped(levels: Any, K: float = 1.0, noise: Any = None, **more: Any) -> Problem:
    arms = (Arm("drug 1", 0.0, 1.0, K, levels=levels), Arm("drug 2", 0.0, 1.0, K, levels=levels))
    return Problem(arms, 0.3, "monotonic", noise or Noise("gaussian", 0.3), **{"slack": 0.1, **more})


def test_levels_that_are_too_far_apart_are_told() -> None:
    assert doubts(stepped((0.0, 0.1, 0.2))) == []  # a rise of the slack can be certified but for harm at the limit
    found = doubts(stepped((0.0, 0.1, 0.4)))
    assert len(found) == 2
    assert found[1].startswith("the next level of drug 2 after 0.1, 0.4, may be 0.3 above it in harm; slack is 0.1:")
    assert doubts(stepped(None)) == [] == doubts(case("paper-linear")[0])
    assert impossible(stepped((0.0, 0.1, 0.4))) == [], "harm may be so low that it is certified all the same"


def test_what_no_study_can_resolve_is_refused() -> None:
    binary = Noise("bernoulli")
    assert len(impossible(stepped((0.0, 0.5), noise=binary))) == 2
    assert impossible(stepped((0.0, 0.5), noise=binary))[0].endswith("limit + slack is 0.4: nothing can certify it")
    assert impossible(stepped((0.0, 0.3), noise=binary)) == []
    assert impossible(stepped((0.0, 0.5), noise=binary, tolerance=0.5)) == []
    assert "no dose is safe" in impossible(stepped(None, noise=binary).but(limit=-0.1))[0]
    assert "never pulled" in impossible(stepped(None, budget=1))[0]


def test_a_truth_in_the_gap_has_two_instances_that_agree_on_all_that_may_be_pulled() -> None:
    """The doubt in numbers: harm 0.25 at 0.1 leaves the next level, 0.3 further, open."""
    problem = stepped((0.0, 0.1, 0.4))
    curves = [Table((0.0, 0.1, 0.4), (0.2, 0.25, top)) for top in (0.3, 0.45)]
    for curve in curves:
        assert Scenario((Linear(1.0),) * 2, (curve,) * 2).violations(problem) == []
    assert [float(c(np.array(0.4))) > problem.ceiling for c in curves] == [False, True]
