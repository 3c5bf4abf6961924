"""What is recommended when it has to end, and what that is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from surefoot import case, make, simulate
from surefoot.characteristics import Characteristics
from surefoot.designs.base import Outcome
from surefoot.designs.recommend import isotonic, supported, wilson


@given(st.lists(st.tuples(st.integers(0, 12), st.floats(0, 1)), min_size=1, max_size=6))
def test_isotonic_is_the_regression(levels: list[tuple[int, float]]) -> None:
    n = np.array([float(k) for k, _ in levels])
    total = n * np.array([m for _, m in levels])
    found = isotonic(total[None], n[None])[0]
    seen = n > 0
    if not seen.any():
        assert np.isnan(found).all()
        return
    want = isotonic_regression(total[seen] / n[seen], weights=n[seen]).x
    np.testing.assert_allclose(found[seen], want, atol=1e-12)
    assert np.all(np.diff(found) >= -1e-12)


def test_p_is_the_weakest_of_the_others() -> None:
    against = np.log(np.array([[1.0, 20.0, 5.0], [1.0, 20.0, 0.5], [1.0, 20.0, 5.0]]))
    out = np.array([[False] * 3, [False] * 3, [False, False, True]])
    np.testing.assert_allclose(supported(against, out, np.array([0, 0, 0])), [0.2, 1.0, 0.05])


def test_wilson() -> None:
    low, high = wilson(np.array([0.0, 15.0]), np.array([10.0, 30.0]))
    np.testing.assert_allclose(low, [0, 0.3315], atol=1e-3)
    np.testing.assert_allclose(high, [0.2775, 0.6685], atol=1e-3)


def test_in_words_and_in_the_table() -> None:
    problem, scenario = case("levels-thall", budget=300)
    design, rng = make("surefoot-levels"), np.random.default_rng(3)
    state = design.start(problem)
    while not state.ending.any():
        cohort = design.ask(state)
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
        state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
    assert state.pulls[0] == 300
    advice = state.recommendation()
    said = advice.words(problem)
    assert said.startswith(
        f"Best supported: {problem.names[advice.arm[0]]} at {advice.dose[0] + 1:.0f} (certified up to "
    )
    assert advice.harm_interval[0][0] <= advice.harm[0] <= advice.harm_interval[1][0] + 0.2

    numbers = Characteristics(simulate(problem, scenario, design, 50)).to_dict()
    for key in ("named_best", "recommended_best", "recommended_over_limit"):
        assert set(numbers[key]) == {"count", "rate", "se"}
    assert numbers["named_best"]["rate"] <= numbers["recommended_best"]["rate"]
    assert sum(numbers["selection"].values()) > 0.999
    assert "drug A at 4" in numbers["selection"]


def test_every_design_recommends() -> None:
    for name, scenario in (("surefoot-linear", "paper-linear"), ("safebai-monotonic", "paper-drug")):
        problem, truth = case(scenario, 3, budget=200)
        result = simulate(problem, truth, make(name), 5)
        assert np.all((result.recommended >= 0) & (result.recommended < 3))
        assert np.all(result.p == 1)


def test_options_of_a_composed_design_are_its_policys() -> None:
    design: Any = make("surefoot-levels", growth="0.1", first=5)
    assert (design.policy.growth, design.policy.first) == (0.1, 5)
    assert design.options["first"] == 3
