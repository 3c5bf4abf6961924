"""Checker and design agree where readings are of other kinds: on every dose to 1e-9, and on who is out when."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, make
from surefoot.designs.base import RUNNING, Outcome
from surefoot.study.checker import CLOSE, THEOREMS, Given
from surefoot.study.published import certified, stakes_of, theorem_of

from .subjects import problem, scenario

KINDS: dict[str, Any] = {
    "guess": Noise("gaussian-guess", 0.1),
    "a guess and binary": (Noise("gaussian-guess", 0.6), Noise("bernoulli")),
    "bounded": Noise("bounded", 0.0, 1.5),
    "counts": Noise("poisson", 0.5),
    "counts and a guess": (Noise("poisson", 0.2), Noise("gaussian-guess", 0.3)),
    "spread": Noise("bounded", 0.0, 1.5, True),
    "spread and a guess": (Noise("bounded", 0.0, 1.5, True), Noise("gaussian-guess", 0.3)),
}


def agreed(asked: Problem, seed: int, most: int) -> int:
    """Plays a study; in how many cohorts checker and design agreed on everything, and how many arms went out."""
    design, truth, rng = make(f"surefoot-{asked.shape}"), scenario(asked), np.random.default_rng(seed)
    theorem, state, out = THEOREMS[theorem_of(design)](asked.to_dict(), {}), design.start(asked), 0
    for number in range(1, most):
        if state.ending[0] != RUNNING:
            break
        cohort = design.ask(state)
        effect, harm, _, *squares = truth.draw(rng, asked, cohort.dose, cohort.n, state.pulls)
        stakes = stakes_of(cohort)
        given = Given(number, 1, {"dose": cohort.dose[0].tolist(), "n": [0] * len(asked.arms), "stakes": stakes}, 1)
        given.n = cohort.n[0].tolist()
        sums = [np.asarray(x)[0].tolist() for x in (cohort.n, effect, harm, *squares)]
        given.came = {(i, a): tuple(x[i] for x in sums) for i, a in enumerate(given.dose) if given.n[i]}
        theorem.publish(given.dose, given.stakes)
        for arm in range(len(asked.arms)):
            assert math.isclose(theorem.certified(arm), certified(design, state)[arm], rel_tol=CLOSE)
        after = design.tell(state, cohort, Outcome(cohort.n, effect, harm, tuple(squares) or None))
        theorem.take(given)
        for arm in np.flatnonzero((after.standing != state.standing)[0]).tolist():
            assert theorem.out(arm)
            out += 1
        state = after
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ["linear", "monotonic", "levels"])
def test_agree(shape: str, kind: str) -> None:
    if ("spread" in kind and shape != "levels") or ("counts" in kind and shape == "linear"):
        return
    noise = KINDS[kind]
    assert agreed(problem(shape).but(noise=noise, limit=0.4, budget=4000), 1, 30) >= 0


def test_agree_to_the_end_where_sigma_is_not_known() -> None:
    """With and without a tolerance, and whatever the guess is."""
    for guess, more in ((0.05, {}), (0.6, {}), (0.1, {"tolerance": 0.05})):
        asked = problem("levels").but(noise=Noise("gaussian-guess", guess), delta=0.3, **more)
        assert agreed(asked, 2, 400) >= (1 if more else 2)


@pytest.mark.parametrize("effect", [Noise("gaussian", 0.1), Noise("poisson", 0.5)])
@pytest.mark.parametrize("shape", ["monotonic", "levels"])
def test_agree_to_the_end_on_counts(shape: str, effect: Any) -> None:
    """Three times as many events as in the other cases, so that there is an end soon."""
    asked = problem(shape).but(noise=(effect, Noise("poisson", 1.0)), delta=0.3)
    assert agreed(asked, 3, 400) >= 1


def test_counts_are_whole_and_bet_by_theorems_that_can() -> None:
    data = problem("levels").but(noise=Noise("poisson", 0.5)).to_dict()
    theorem = THEOREMS["surefoot-levels/2"](data, {})
    assert [theorem.harm.possible(x, 4) for x in (0.0, 7.0, math.nan, -1.0, 1.5)] == [True, True, True, False, False]
    curves: Any = THEOREMS["surefoot-monotonic/4"](problem("monotonic").to_dict() | {"noise": data["noise"]}, {})
    curves.bet(0, 0.0, (4, 7.0, 1.0, 0.0, 0.0), [None, None, None, 3.0, None])
    assert curves.at[0][0.0][1:] == [[4, 4, 7], [0, 0, 0]], "likelihood ratios have no weight"
    for name in ("surefoot-linear/6", "safebai-linear/1"):
        with pytest.raises(ValueError, match="no bets on counts"):
            THEOREMS[name](problem().to_dict() | {"noise": data["noise"]}, {})


def test_agree_where_every_arm_begins_at_its_largest_dose() -> None:
    """Nothing is climbed there: more of delta is the verdict's, and all of the stake is on the effect."""
    asked = problem("monotonic").but(
        arms=[Arm(name, 1.0, 1.0, 1.0) for name in "AB"], noise=Noise("bernoulli"), limit=0.8
    )
    assert agreed(asked, 1, 200) == 1
