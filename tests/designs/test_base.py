import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import array_api_strict
import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, SurefootError, make
from surefoot.designs import DESIGNS
from surefoot.designs.base import (
    ACTIVE,
    BEATEN,
    BEST_ARM,
    ENDINGS,
    STANDINGS,
    STOPPED,
    WITHIN_TOLERANCE,
    Cohort,
    Outcome,
    State,
    blank,
    repeat,
    select,
    take,
)
from surefoot.designs.linear import SafeBAILinear
from surefoot.designs.settle import round_down, settle, wanted

DESIGN = SafeBAILinear()
NONE = [-math.inf] * 3


def problem(**changes: Any) -> Problem:
    arms = tuple(Arm(name, 0.1, 1.5) for name in "abc")
    return Problem(arms, 1.0, "linear", Noise("gaussian", 0.7)).but(**changes)


def settled(lower: list[float], upper: list[float], harm: list[float] = NONE, **changes: Any) -> State:
    """One trial of three arms with these bounds, decided upon."""
    fields: dict[str, Any] = {
        k: changes.pop(k) for k in ("found", "winner", "standing", "safe", "unsafe") if k in changes
    }
    state: Any = replace(State(**blank(problem(**changes), 1, np)), rounds=np.array([4]))
    state = replace(
        state, lower=np.array([lower]), upper=np.array([upper]), **{k: np.array([v]) for k, v in fields.items()}
    )
    decided: State = settle(state, np.array([harm]))
    return decided


def test_elimination() -> None:
    s = settled([0.5, 0.1, 0.2], [0.9, 0.5, 0.6])
    assert s.standing[0].tolist() == [ACTIVE, BEATEN, ACTIVE]  # 0.5 is at the bar, 0.6 above it
    assert (s.out_round[0, 1], s.out_by[0, 1], s.out_upper[0, 1], s.out_lower[0, 1]) == (4, 0, 0.5, 0.5)
    assert (s.winner[0], s.ending[0]) == (-1, 0)


def test_the_last_one_wins() -> None:
    s = settled([0.5, 0.1, 0.2], [0.9, 0.5, 0.4])
    assert (s.winner[0], ENDINGS[s.ending[0]]) == (0, "best-arm")


def test_an_arm_never_eliminates_itself() -> None:
    """Bounds that contradict themselves, as bad luck can make them: somebody stays."""
    s = settled([0.5, 0.4, 0.3], [0.1, 0.1, 0.1])
    assert s.standing[0].tolist() == [ACTIVE, BEATEN, BEATEN]
    assert s.winner[0] == 0
    s = settled(NONE, NONE)  # the bar is nowhere: two of them are no better than the first
    assert (s.standing[0] == ACTIVE).sum() == 1


def test_no_bounds_no_elimination() -> None:
    s = settled(NONE, [math.inf] * 3)
    assert s.standing[0].tolist() == [ACTIVE] * 3
    nan = settled([0.5, 0.1, 0.2], [0.9, math.nan, math.nan])
    assert nan.standing[0].tolist() == [ACTIVE] * 3


def test_stopping() -> None:
    s = settled([0.5, 0.1, 0.2], [0.9, 0.5, 0.6], [1.01, 1.0, -9.0])
    assert s.standing[0].tolist() == [STOPPED, ACTIVE, ACTIVE]  # who is stopped eliminates nobody; at the limit is safe
    assert (s.out_round[0, 0], s.out_lower[0, 0]) == (4, 1.01)
    s = settled([0.5, 0.1, 0.2], [0.9, 0.5, 0.6], [2.0, 2.0, 2.0])
    assert (ENDINGS[s.ending[0]], s.winner[0]) == ("all-stopped", -1)
    s = settled([0.5, 0.1, 0.2], [0.9, 0.5, 0.6], [2.0, -9.0, 2.0])
    assert (ENDINGS[s.ending[0]], s.winner[0]) == ("best-arm", 1)


def test_tolerance() -> None:
    assert settled([0.5, 0.1, 0.2], [0.9, 0.7, 0.6], tolerance=0.19).ending[0] == 0
    s = settled([0.5, 0.1, 0.2], [0.9, 0.7, 0.6], tolerance=0.2)
    assert (ENDINGS[s.ending[0]], s.winner[0]) == ("within-tolerance", 0)
    s = settled([0.5, 0.1, 0.2], [0.9, 0.4, 0.4], tolerance=0.2)
    assert ENDINGS[s.ending[0]] == "best-arm"  # who is alone is the best, tolerance or not


def test_refining() -> None:
    won: dict[str, Any] = {"lower": [0.5, 0.1, 0.2], "upper": [0.9, 0.4, 0.4], "unsafe": [0.6, 1.5, 1.5]}
    assert settled(**won, refine=0.4, safe=[0.1, 0.1, 0.1]).ending[0] == 0
    s = settled(**won, refine=0.5, safe=[0.1, 0.1, 0.1])
    assert (s.ending[0], s.winner[0]) == (BEST_ARM, 0)
    going = settled(**won, refine=0.4, safe=[0.1, 0.1, 0.1])
    assert (going.found[0], going.winner[0]) == (BEST_ARM, 0)
    assert wanted(going)[0].tolist() == [True, False, False]


def test_a_known_winner_stays_unless_it_falls() -> None:
    known: dict[str, Any] = {"found": WITHIN_TOLERANCE, "winner": 1, "tolerance": 0.5, "refine": 0.01}
    s = settled([0.5, 0.4, 0.3], [0.9, 0.8, 0.7], **known)
    assert (s.winner[0], s.found[0]) == (1, WITHIN_TOLERANCE)  # another one leads now, and that is within the tolerance
    s = settled([0.5, 0.1, 0.3], [0.9, 0.2, 0.7], **known)
    assert (s.winner[0], s.standing[0, 1]) == (0, BEATEN)
    s = settled([0.5, 0.4, 0.3], [0.9, 0.8, 0.7], [-9.0, 2.0, -9.0], **known)
    assert (s.winner[0], s.standing[0, 1]) == (0, STOPPED)


def test_guess() -> None:
    v = DESIGN.verdict(DESIGN.start(problem(), 3))
    assert v.guess.tolist() == [0, 0, 0]
    v = replace(
        v,
        estimate=np.array([[0.1, 0.2, 0.3]] * 3),
        standing=np.array([[0, 0, BEATEN]] * 3),
        winner=np.array([-1, 0, 2]),
    )
    assert v.guess.tolist() == [1, 0, 2]


def test_take_repeat_select() -> None:
    state = replace(DESIGN.start(problem(), 3), pulls=np.array([1, 2, 3]))
    assert take(state, np.array([2, 0])).pulls.tolist() == [3, 1]
    assert repeat(state, 2).pulls.tolist() == [1, 1, 2, 2, 3, 3]
    assert repeat(state, 2).lower.shape == (6, 3)
    other = replace(state, pulls=-state.pulls, lower=np.full((3, 3), 7.0))
    mixed = select(np.array([True, False, True]), other, state)
    assert mixed.pulls.tolist() == [-1, 2, -3]
    assert mixed.lower[:, 0].tolist() == [7, -math.inf, 7]
    assert mixed.problem is state.problem


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_round_down(xp: Any) -> None:
    p = problem(
        arms=(Arm("a", 0.1, 1.5, levels=(0.1, 0.5, 1.0)), Arm("b", 0.1, 1.5), Arm("c", 0.1, 9.0, levels=(0.1,)))
    )
    dose = xp.asarray([[0.1, 0.2, 0.3], [0.49999, 0.1, 9.0], [0.5, 1.5, 0.1], [9.0, 1.0, 1.0]])
    expected = [[0.1, 0.2, 0.1], [0.1, 0.1, 0.1], [0.5, 1.5, 0.1], [1.0, 1.0, 0.1]]
    np.testing.assert_array_equal(np.asarray(round_down(p, dose)), expected)
    assert round_down(problem(), dose) is dose


def told(**changes: Any) -> State:
    state = DESIGN.start(problem(), 2)
    cohort = DESIGN.ask(state)
    given = {"n": cohort.n, "effect": cohort.n * 1.0, "harm": cohort.n * 1.0} | changes
    dose = given.pop("dose", cohort.dose)
    told: State = DESIGN.tell(state, Cohort(dose, cohort.n), Outcome(**given))
    return told


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["effect", "harm", "dose"])
def test_a_reading_that_is_missing_is_an_error(name: str, bad: float) -> None:
    x = np.ones((2, 3))
    x[1, 2] = bad
    with pytest.raises(SurefootError, match=f"every {name} that came back must be finite"):
        told(**{name: x})


def test_where_nothing_came_back_nothing_is_read() -> None:
    n = np.zeros((2, 3), np.int64)
    state = told(n=n, effect=np.full((2, 3), np.nan), harm=np.full((2, 3), np.nan))
    assert state.pulls.tolist() == [0, 0]
    assert np.all(np.isfinite(state.harm))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["n", "effect", "harm", "dose"])
def test_shapes_are_checked(name: str) -> None:
    with pytest.raises(SurefootError, match=r"must have shape \(2, 3\) \(trials, arms\); got \(2, 2\)"):
        told(**{name: np.ones((2, 2), np.int64)})
    with pytest.raises(SurefootError, match="n must be 0 or more in every arm; got one that is negative or nan"):
        told(n=np.full((2, 3), -1))
    with pytest.raises(SurefootError, match="n must be 0 or more in every arm"):
        told(n=np.full((2, 3), np.nan))


def test_start_and_ask() -> None:
    with pytest.raises(SurefootError, match="trials must be at least 1; got 0"):
        DESIGN.start(problem(), 0)

    @dataclass(frozen=True)
    class Random(SafeBAILinear):
        draws: ClassVar[int] = 2

    with pytest.raises(SurefootError, match=r"randomises: ask needs u, uniform draws of shape \(trials, 2\)"):
        Random().ask(Random().start(problem()))


def test_make() -> None:
    assert make("safebai-linear", unit="0.5") == SafeBAILinear(0.5)
    with pytest.raises(
        SurefootError, match=r"design must be one of .* got 'safebai-liner' .did you mean 'safebai-linear'"
    ):
        make("safebai-liner")
    with pytest.raises(SurefootError, match="an option of safebai-linear must be one of unit; got 'units'"):
        make("safebai-linear", units=1)


def test_names() -> None:
    assert ENDINGS == ("running", "best-arm", "within-tolerance", "budget-spent", "all-stopped")
    assert STANDINGS == ("active", "beaten", "refuted", "stopped")


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_says_when_to_use_it_and_what_its_options_mean(name: str) -> None:
    design = make(name)
    assert {"when", *design.options} <= design.meanings.keys()
