"""What is recommended when it has to end, and what that is worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, case, make, simulate
from surefoot.arrays import Chosen
from surefoot.characteristics import Characteristics
from surefoot.designs import default
from surefoot.designs.base import Outcome
from surefoot.designs.linear_evidence import each
from surefoot.designs.linear_wealth import wealth
from surefoot.designs.monotonic_evidence import sides
from surefoot.designs.recommend import chances, isotonic, normal, supported, wilson
from surefoot.scenario import Table
from surefoot.testing import failures_allowed


@given(st.lists(st.tuples(st.integers(0, 12), st.floats(0, 1)), min_size=1, max_size=6))
def test_isotonic_is_the_regression(levels: list[tuple[int, float]]) -> None:
    n = np.array([float(k) for k, _ in levels])
    total = n * np.array([m for _, m in levels])
    found = isotonic(total[None], n[None])[0]
    seen = n > 0
    if not seen.any():
        assert np.isnan(found).all()
        return
    want = scipy.optimize.isotonic_regression(total[seen] / n[seen], weights=n[seen]).x
    np.testing.assert_allclose(found[seen], want, atol=1e-12)
    assert np.all(np.diff(found) >= -1e-12)


def test_p_is_the_weakest_of_the_others() -> None:
    against = np.log(np.array([[1.0, 20.0, 5.0], [1.0, 20.0, 0.5], [1.0, 20.0, 5.0]]))
    out = np.array([[False] * 3, [False] * 3, [False, False, True]])
    np.testing.assert_allclose(supported(against, out, np.array([0, 0, 0])), [0.2, 1.0, 0.05])


def test_chances_are_those_of_draws() -> None:
    """Of three mixtures of two normals: how often each draw is the largest; a stopped arm has none."""
    rng = np.random.default_rng(1)
    weight = np.array([[[0.7, 0.3], [1.0, 0.0], [0.5, 0.5]]])
    mean = np.array([[[0.5, 0.8], [0.6, 9.0], [0.2, 0.7]]])
    error = np.array([[[0.1, 0.05], [0.02, 1.0], [0.1, 0.2]]])
    which = rng.random((200_000, 3)) < weight[0, :, 0]
    at = np.where(which, mean[0, :, 0], mean[0, :, 1]) + rng.standard_normal((200_000, 3)) * np.where(
        which, error[0, :, 0], error[0, :, 1]
    )
    found = chances((weight, mean, error), np.ones((1, 3), bool))
    np.testing.assert_allclose(found[0], np.bincount(at.argmax(axis=1)) / 200_000, atol=0.02)
    two = np.array([[True, False, True]])
    np.testing.assert_allclose(chances((weight, mean, error), two)[0, 1], 0)
    unknown = np.where(np.arange(3)[None, :, None] == 2, np.nan, mean)
    np.testing.assert_allclose(chances((weight, unknown, error), np.ones((1, 3), bool)), 1 / 3)
    z = np.linspace(-8, 8, 401)
    np.testing.assert_allclose(normal(z), scipy.special.ndtr(z), atol=2e-4)


@pytest.mark.parametrize("name", ["paper-linear", "paper-drug", "levels-thall", "levels-gaussian"])
def test_the_estimated_probability_is_there_for_every_shape(name: str) -> None:
    """From no knowledge to near certainty, once no rival climbs; and it is said to be without promise."""
    problem, scenario = case(name, budget=4000)
    design, rng = make(default(problem.shape)), np.random.default_rng(2)
    state = design.start(problem, 4)
    arms = len(problem.arms)
    np.testing.assert_allclose(design.recommendation(state).chance, 1 / arms)
    for _ in range(50):
        cohort = design.ask(state)
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
        state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
    found = design.recommendation(state)
    blind = found.climbing.any(axis=1)
    assert np.all(np.where(blind, np.isnan(found.chance), (found.chance > 1 / arms) & (found.chance <= 1 + 1e-9)))
    for trial in range(4):
        said = found.words(problem, trial=trial)
        assert ("may be worth more above what was given" if blind[trial] else "is the best, without promise: ") in said


def test_no_probability_is_said_while_a_rival_climbs() -> None:
    """A steep declared slope keeps arms low. Another than Pd, the best, seems to be worth most where it was given; and
    Pd has not come to its limit."""
    arms = tuple(Arm(name, 40.0, 120.0, lipschitz=3.0) for name in ("Pd", "Ni", "Cu", "Fe"))
    noise = Noise("gaussian", 3.0), Noise("gaussian", 0.6)
    problem = Problem(arms, 5.0, "monotonic", noise, 2.0, 0.1, budget=150)
    at = np.arange(40.0, 121.0, 5.0)
    curves = [(85, 75, 12, 0.5, 0.05), (70, 80, 14, 0.4, 0.045), (60, 70, 10, 0.8, 0.04), (90, 95, 15, 1.0, 0.05)]
    effect = [Table(tuple(at), tuple(a / (1 + np.exp((m - at) / s)))) for a, m, s, _, _ in curves]
    harm = [Table(tuple(at), tuple(b * np.exp(k * (at - 40)))) for *_, b, k in curves]
    truth = Scenario(tuple(effect), tuple(harm))
    found = ended(make("surefoot-monotonic"), problem, truth, 16, 1)[1]
    wrong = found.arm != truth.truth(problem).best
    assert wrong.any() and np.all(found.climbing[wrong, 0]) and np.all(np.isnan(found.chance[wrong]))
    said = found.words(problem, trial=int(np.argmax(wrong)))
    assert said.split(". ")[-1].startswith("No probability that it is the best: Pd")


def ended(design: Any, problem: Any, truth: Any, trials: int, seed: int) -> tuple[Any, Any]:
    """States at the end, and what is recommended then."""
    state, rng = design.start(problem, trials), np.random.default_rng(seed)
    while np.any(state.ending == 0):
        cohort = design.ask(state)
        effect, harm, _ = truth.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
        state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
    return state, design.recommendation(state)


def test_the_estimated_probability_is_about_right_with_levels() -> None:
    """On random instances, none of them named yet: where it is said, on average about as often as it was so."""
    said, was = list[float](), list[float]()
    for instance in range(500, 505):
        problem, scenario = case("random-levels", instance=instance, budget=200)
        found = ended(make("surefoot-levels"), problem, scenario, 20, instance)[1]
        there = ~np.isnan(found.chance)
        said += found.chance[there].tolist()
        was += (found.arm == scenario.truth(problem).best)[there].tolist()
    assert len(said) > 50 and abs(np.mean(said) - np.mean(was)) < 0.25  # of 50 trials the error is 0.06


def test_wilson() -> None:
    low, high = wilson(np.array([0.0, 15.0]), np.array([10.0, 30.0]))
    np.testing.assert_allclose(low, [0, 0.3315], atol=1e-3)
    np.testing.assert_allclose(high, [0.2775, 0.6685], atol=1e-3)


def test_in_words_and_in_the_table() -> None:
    problem, scenario = case("levels-thall", budget=300)
    design = make("surefoot-levels")
    state, advice = ended(design, problem, scenario, 1, 3)
    assert state.pulls[0] == 300
    said = advice.words(problem)
    named = f"Best supported: {problem.names[advice.arm[0]]} at {advice.dose[0] + 1:.0f} ("
    assert said.startswith(named + "an estimate; declared safe at 1, its start)")
    assert advice.harm_interval[0][0] <= advice.harm[0] <= advice.harm_interval[1][0] + 0.2

    numbers = Characteristics(simulate(problem, scenario, design, 50)).to_dict()
    for key in ("named_best", "recommended_best", "recommended_over_limit"):
        assert set(numbers[key]) == {"count", "rate", "se"}
    assert numbers["named_best"]["rate"] <= numbers["recommended_best"]["rate"]
    assert sum(numbers["selection"].values()) > 0.999
    assert "drug A at 4" in numbers["selection"]


def test_every_design_recommends() -> None:
    for name, scenario in (("safebai-linear", "paper-linear"), ("safebai-monotonic", "paper-drug")):
        problem, truth = case(scenario, 3, budget=200)
        result = simulate(problem, truth, make(name), 5)
        assert np.all((result.recommended >= 0) & (result.recommended < 3))
        assert np.all(result.p == 1)


@pytest.mark.parametrize(
    ("name", "scenario"), [("surefoot-linear", "paper-linear"), ("surefoot-monotonic", "paper-drug")]
)
def test_p_at_the_end_is_that_of_the_verdict(name: str, scenario: str) -> None:
    """Named: at most the share of delta that names; on the way there it falls, and half way it says little."""
    problem, truth = case(scenario, 3, delta=0.2)
    result = simulate(problem, truth, make(name), 20, 1)
    assert np.all(result.winner == result.recommended)
    assert np.all(result.p <= 0.65 * problem.delta)
    short = simulate(problem.but(budget=int(np.median(result.pulls) / 2)), truth, make(name), 20, 1)
    assert np.median(short.p) > 0.2
    assert Characteristics(short).numbers["recommended_best"]["rate"] > 0.5


@pytest.mark.parametrize(
    ("name", "scenario", "budgets"),
    [
        ("surefoot-linear", "equal-arms", (60, 600)),
        ("surefoot-monotonic", "equal-drugs", (60, 400)),
        ("surefoot-levels", "levels-thall", (60, 200)),
    ],
)
def test_what_the_data_support(name: str, scenario: str, budgets: tuple[int, ...]) -> None:
    """Theorem 4, where it is hardest: arms that are the same but for a hair. Delta is tiny, so that its shares do not
    matter."""
    problem, truth = case(scenario, None if name == "surefoot-levels" else 3, delta=1e-6)
    effect = [_less(truth.effect[0], 1e-6 * k) for k in range(3)]
    truth = replace(truth, effect=tuple(effect), harm=truth.harm[:1] * 3)
    for budget in budgets:
        result = simulate(problem.but(budget=budget, tolerance=None), truth, make(name), 80, 7)
        wrong = ~result.good[result.recommended]
        assert wrong.mean() > 0.3  # it can fail
        for alpha in (0.05, 0.2, 0.5):
            assert np.sum(wrong & (result.p <= alpha)) <= failures_allowed(80, alpha, 21)


def _less(curve: Any, share: float) -> Any:
    if isinstance(curve, Table):
        return replace(curve, value=tuple(x * (1 - share) for x in curve.value))
    return replace(curve, slope=curve.slope * (1 - share))


def test_the_other_arm_without_readings_is_not_excluded() -> None:
    problem, _ = case("paper-linear", 3)
    design = make("surefoot-linear")
    advice = design.recommendation(design.start(problem, 2))
    np.testing.assert_allclose(advice.p, 1)
    assert "exclude no other arm" in advice.words(problem)


def test_it_runs_on_the_letter_of_the_standard() -> None:
    problem, truth = case("paper-linear", 3, delta=0.5)
    rng, design, xp = np.random.default_rng(1), make("surefoot-linear"), array_api_strict
    one, two = design.start(problem, 2), design.start(problem, 2, xp)
    for _ in range(12):
        cohort = design.ask(one)
        effect, harm, _ = truth.draw(rng, problem, cohort.dose, cohort.n, one.pulls)
        one = design.tell(one, cohort, Outcome(cohort.n, effect, harm))
        two = design.tell(two, design.ask(two), Outcome(*(xp.asarray(x) for x in (cohort.n, effect, harm))))
    advice, again = design.recommendation(one), design.recommendation(two)
    np.testing.assert_array_equal(advice.arm, np.asarray(again.arm))
    for key in ("p", "dose", "effect", "harm", "safe"):
        np.testing.assert_allclose(getattr(advice, key), np.asarray(getattr(again, key)))


def test_options_of_a_composed_design_are_its_policys() -> None:
    design: Any = make("surefoot-levels", growth="0.1", first=5)
    assert (design.policy.growth, design.policy.first) == (0.1, 5)
    assert design.options["first"] == 5


def half_way(name: str, scenario: str, budget: int) -> Any:
    """States of trials that are near their end."""
    problem, truth = case(scenario, 3, delta=0.1, budget=budget)
    design = make(name)
    state, _ = ended(design, problem, truth, 8, 5)
    none = np.full_like(state.winner, -1)
    return design, replace(
        state, winner=none, standing=np.zeros_like(state.standing)
    )  # what refuted an arm is not to count


def test_the_evidence_is_never_above_that_at_any_value_of_lines() -> None:
    design, state = half_way("surefoot-linear", "paper-linear", 500)
    found, every = design.against(state), state.standing >= 0
    bars = np.linspace(0.0, 1.0, 6001)[:, None]

    def at_many(p: Any, claims: Any, places: Any) -> Any:
        u = bars + 0.0 * places[0]
        return (np.min(wealth(p, claims, u, u), axis=0),) * 2

    least_ = np.reshape(each(state, Chosen(every), None, at_many)[0], every.shape)
    leads = np.arange(3) == state.look.leader[:, None]
    assert np.all(found <= least_ + 1e-9)
    assert np.all((found > least_ - 0.3) | (least_ < 1) | leads)  # and not far below where it matters
    assert np.max(found[~leads]) > 1


def test_the_evidence_is_never_above_that_at_any_value_of_curves() -> None:
    design, state = half_way("surefoot-monotonic", "paper-drug", 1600)
    found, (row, arm) = design.against(state), np.nonzero(state.standing >= 0)
    x = np.linspace(-0.5, 1.5, 1001)[None] + 0 * row[:, None]
    mine, theirs = sides(state, row * state.n.shape[1] + arm, 0 * state.standing, x, 0.0, True)
    least_ = np.reshape(np.min(mine + theirs, axis=1), found.shape)
    assert np.all((found <= least_ + 1e-9) | (found == 0))
    assert np.all((found > least_ - 0.5) | (found == 0))
    assert np.max(found) > 1
