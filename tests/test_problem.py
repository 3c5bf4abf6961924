import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, SurefootError, case, make
from surefoot.noise import Bounded
from surefoot.problem import number

ARMS = (Arm("a", 0.1, 1.5, 1.0), Arm("b", 0.2, 1.5, 1.0))
GAUSSIAN = Noise("gaussian", 0.5)


def linear(**changes: Any) -> Problem:
    given: dict[str, Any] = {"arms": ARMS, "limit": 1.0, "shape": "linear", "noise": GAUSSIAN}
    return Problem(**given | changes)


def monotonic(**changes: Any) -> Problem:
    return linear(**{"shape": "monotonic", "slack": 0.2} | changes)


def refused(make: Any, message: str) -> None:
    with pytest.raises(SurefootError) as error:
        make()
    assert str(error.value) == message


INF, NAN = math.inf, math.nan
LIPSCHITZ = (
    "arm 'b': lipschitz is missing: by how much harm rises at most for one unit of dose. Every dose above the start "
    "rests on it, so take a number that you would stand for; if it is too small, doses are unsafe, if it is too large, "
    "it takes longer"
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limit": NAN}, "limit must be finite and above 0; got nan"),
        ({"limit": INF}, "limit must be finite and above 0; got inf"),
        ({"limit": 0}, "limit must be finite and above 0; got 0"),
        ({"limit": "1"}, "limit must be a number; got '1'"),
        ({"limit": True}, "limit must be a number; got True"),
        ({"limit": 1e200}, "limit must be of a size between 1e-50 and 1e+50; got 1e+200"),
        ({"limit": 10**400}, "limit must be finite and above 0; got a whole number of more than 308 digits"),
        ({"delta": 0}, "delta must be between 0 and 1, both excluded; got 0"),
        ({"delta": 1}, "delta must be between 0 and 1, both excluded; got 1"),
        ({"delta": NAN}, "delta must be finite; got nan"),
        ({"delta": 1e-320}, "delta must be of a size between 1e-50 and 1e+50; got 9.99989e-321"),
        ({"shape": "liner"}, "shape must be one of linear, monotonic, levels; got 'liner' (did you mean 'linear'?)"),
        ({"signals": "none"}, "signals must be one of any, independent; got 'none'"),
        ({"slack": 0.1}, "slack is for monotonic and levels; leave it out here; got 0.1"),
        ({"tolerance": 0}, "tolerance must be finite and above 0; got 0"),
        ({"refine": -1}, "refine must be finite and above 0; got -1"),
        ({"budget": 0}, "budget must be finite and at least 1; got 0"),
        ({"budget": 1.5}, "budget must be a whole number of pulls, at most 10^12; got 1.5"),
        ({"budget": 10**13}, "budget must be a whole number of pulls, at most 10^12; got 10000000000000"),
        ({"noise": 0.5}, "noise must be a Noise, or a pair of them (effect, harm); got 0.5"),
        ({"noise": None}, "noise must be a Noise, or a pair of them (effect, harm); got None"),
        ({"arms": None}, "arms must be a list of Arm; got None"),
        ({"arms": ["a", "b"]}, "arms must be a list of Arm; got ['a', 'b']"),
        ({"arms": []}, "a problem needs at least two arms to choose between; got 0: []"),
        ({"arms": [Arm("a", 1), Arm("a", 2)]}, "arm names must differ; got 'a' more than once"),
        (
            {"arms": [Arm("a", 0), Arm("b", 1)]},
            "arm 'a': start in the linear shape must be finite and above 0; got 0.0",
        ),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    refused(lambda: linear(**changes), message)


def test_one_arm_is_not_a_choice() -> None:
    with pytest.raises(SurefootError, match="at least two arms to choose between; got 1"):
        linear(arms=[Arm("a", 1)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"slack": None},
            "slack is missing: the monotonic shape needs one above 0 (how far over the limit a pull may go)",
        ),
        ({"slack": 0}, "slack must be finite and above 0; got 0"),
        ({"arms": (Arm("a", 0), Arm("b", 0, 1))}, "arm 'a': max must be finite in the monotonic shape; got inf"),
        ({"arms": (Arm("a", 0, 1, 2.0), Arm("b", 0, 1))}, LIPSCHITZ),
    ],
)
def test_monotonic_refuses(changes: dict[str, Any], message: str) -> None:
    refused(lambda: monotonic(**changes), message)


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ({"name": " ", "start": 1}, "an arm's name must be a line of 1 to 200 characters that can be printed; got ' '"),
        ({"name": 5, "start": 1}, "an arm's name must be a line of 1 to 200 characters that can be printed; got 5"),
        ({"start": NAN}, "arm 'a': start must be finite; got nan"),
        ({"start": -INF}, "arm 'a': start must be finite; got -inf"),
        ({"start": 1, "max": NAN}, "arm 'a': max must be a number; got nan"),
        ({"start": 2, "max": 1}, "arm 'a': start must be at or below max; got start 2, max 1"),
        ({"start": 1, "lipschitz": 0}, "arm 'a': lipschitz must be a number and above 0; got 0"),
        ({"start": 1, "levels": 3}, "arm 'a': levels must be a list of doses; got 3"),
        ({"start": 1, "levels": "12"}, "arm 'a': levels must be a list of doses; got '12'"),
        ({"start": 1, "levels": []}, "arm 'a': levels must be a list of rising doses; got []"),
        ({"start": 1, "levels": [1, 1]}, "arm 'a': levels must be a list of rising doses; got [1.0, 1.0]"),
        ({"start": 1, "levels": [1, NAN]}, "arm 'a': a level must be finite; got nan"),
        (
            {"start": 1, "max": 3, "levels": [2, 3]},
            "arm 'a': levels must begin at the start dose 1 and end at or below max 3; got [2.0, 3.0]",
        ),
        (
            {"start": 1, "max": 3, "levels": [1, 4]},
            "arm 'a': levels must begin at the start dose 1 and end at or below max 3; got [1.0, 4.0]",
        ),
    ],
)
def test_an_arm_refuses(arm: dict[str, Any], message: str) -> None:
    refused(lambda: Arm(**{"name": "a"} | arm), message)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (
            ("gausian", 1.0),
            "noise kind must be one of gaussian, gaussian-guess, rademacher, bernoulli, bounded, beta, poisson; got "
            "'gausian' (did you mean 'gaussian'?)",
        ),
        (
            ("gaussian",),
            "gaussian noise needs a sigma (its standard deviation; where nobody knows it, see gaussian-guess); "
            "got none",
        ),
        (("rademacher", 0), "noise sigma must be finite and above 0; got 0"),
        (("bernoulli", 0.3), "bernoulli noise has sigma 0.5 and takes no other; got 0.3"),
    ],
)
def test_noise_refuses(noise: tuple[Any, ...], message: str) -> None:
    refused(lambda: Noise(*noise), message)


def test_what_it_derives() -> None:
    p = monotonic(
        arms=(Arm("a", 0, 2, 0.5, levels=(0, 1)), Arm("b", -1, 3, 1.0)),
        noise=[Noise("gaussian", 0.2), Noise("bernoulli")], limit=-0.5, budget=1e6,
    )  # fmt: skip
    assert p.names == ["a", "b"]
    assert p.starts.tolist() == [0, -1]
    assert p.largest.tolist() == [1, 3]  # the last level, not max
    assert p.lipschitz.tolist() == [0.5, 1]
    assert p.levels is not None
    assert p.levels.tolist() == [[0, 1], [-INF, INF]]
    assert p.sigma == 0.5
    assert p.ceiling == -0.3
    assert isinstance(p.budget, int)
    assert linear().ceiling == 1.0
    assert linear().levels is None
    assert linear(delta=np.float64(0.1)).delta == 0.1
    assert linear().but(delta=0.2) == linear(delta=0.2)
    assert hash(linear()) == hash(linear())


@given(st.floats() | st.integers() | st.text() | st.none() | st.booleans())
def test_number_gives_a_float_or_an_error(value: Any) -> None:
    try:
        x = number("x", value, above=0)
    except SurefootError as error:
        assert str(error).startswith("x must be ")
    else:
        assert x == float(value)
        assert 0 < x < INF


# TOML

sizes = st.floats(1e-6, 1e6)
noises = st.builds(Noise, st.sampled_from(["gaussian", "rademacher"]), sizes) | st.just(Noise("bernoulli"))


@st.composite
def arms(draw: st.DrawFn, linear: bool) -> tuple[Arm, ...]:
    lines = st.text(min_size=1, max_size=200).filter(lambda x: bool(x.strip()) and x.isprintable())
    names = draw(st.lists(lines, min_size=2, max_size=4, unique=True))
    made = []
    for name in names:
        doses = sorted(draw(st.sets(sizes if linear else st.floats(-1e6, 1e6), min_size=2, max_size=5)))
        largest = INF if linear and draw(st.booleans()) else doses[-1]
        levels = tuple(doses) if draw(st.booleans()) else None
        made.append(Arm(name, doses[0], largest, draw(sizes), levels))
    return tuple(made)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    straight = draw(st.booleans())
    return Problem(
        draw(arms(straight)), draw(sizes), "linear" if straight else "monotonic", (draw(noises), draw(noises)),
        slack=None if straight else draw(sizes), delta=draw(st.floats(1e-9, 0.999)),
        signals=draw(st.sampled_from(["any", "independent"])), tolerance=draw(st.none() | sizes),
        budget=draw(st.integers(1, 10**12)), refine=draw(st.none() | sizes),
    )  # fmt: skip


@given(problems())
def test_toml_round_trip(problem: Problem) -> None:
    assert Problem.from_dict(tomllib.loads(problem.to_toml())) == problem


def test_toml_round_trip_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(linear().to_toml(), encoding="utf-8")
    assert Problem.load(path) == linear()


BASE = """shape = "linear"
limit = 1.0
noise = { kind = "gaussian", sigma = 0.5 }
[[arms]]
name = "a"
start = 0.1
[[arms]]
name = "b"
start = 0.1
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("limit = 1.0", "", "the problem lacks limit"),
        ("limit = 1.0", "limt = 1.0", "a key of the problem must be one of .*; got 'limt' .did you mean 'limit'?"),
        ("limit = 1.0", "limit = 1.0\nslakc = 1", "a key of the problem .*; got 'slakc' .did you mean 'slack'?"),
        ('name = "a"', "", "arm 1 lacks name"),
        ('name = "a"', 'name = "a"\nstrat = 1', "a key of arm 1 must be .*; got 'strat' .did you mean 'start'?"),
        ("sigma", "sigm", "a key of noise must be one of kind, sigma; got 'sigm'"),
        ('kind = "gaussian", sigma = 0.5', 'effect = { kind = "bernoulli" }', "noise names one reading only; it needs"),
        ('{ kind = "gaussian", sigma = 0.5 }', "0.5", "noise must be a table of keys and values; got 0.5"),
        ("[[arms]]", "[arms]", "is not valid TOML"),
        ("limit = 1.0", "limit = ", "is not valid TOML"),
        ("limit = 1.0", f"limit = 1{'0' * 5000}", "is not valid TOML"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(BASE, encoding="utf-8")
    Problem.load(path)
    path.write_text(BASE.replace(old, new), encoding="utf-8")
    with pytest.raises(SurefootError, match=message):
        Problem.load(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SurefootError, match=r"cannot read .*nowhere\.toml: No such file"):
        Problem.load(tmp_path / "nowhere.toml")
    with pytest.raises(SurefootError, match=r"cannot read .*: Is a directory"):
        Problem.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes("name = 'é'".encode("latin-1"))
    with pytest.raises(SurefootError, match="is not valid TOML"):
        Problem.load(tmp_path / "latin.toml")


def test_arms_that_are_no_list() -> None:
    data = tomllib.loads(BASE)
    refused(lambda: Problem.from_dict(data | {"arms": 3}), "arms must be a list of tables ([[arms]] in TOML); got 3")
    refused(lambda: Problem.from_dict(data | {"arms": [3]}), "arm 1 must be a table of keys and values; got 3")
    with pytest.raises(SurefootError, match="the problem lacks shape, limit, noise, arms"):
        Problem.from_dict({})


# Ordered levels


def ordered(**changes: Any) -> Problem:
    arms = (Arm("A", levels=("1%", "10%", "50%")), Arm("B", levels=(1, 2.5)))
    known: dict[str, Any] = {"arms": arms, "limit": 0.3, "shape": "levels", "noise": Noise("bernoulli"), "slack": 0.0}
    return Problem(**{**known, **changes})


def test_ordered_levels_are_places_with_labels() -> None:
    p = ordered()
    assert p.arms[0].labels == ("1%", "10%", "50%")
    assert p.starts.tolist() == [0.0, 0.0]
    assert p.largest.tolist() == [2.0, 1.0]
    assert p.levels is not None
    assert p.levels.tolist() == [[0.0, 1.0, 2.0], [0.0, 1.0, math.inf]]
    assert [p.arms[0].label(1.0), p.arms[1].label(1.0), Arm("C", 0.5).label(0.125)] == ["10%", "2.5", "0.125"]
    assert p.but(delta=0.2).arms == p.arms
    assert p.ceiling == 0.3


def test_ordered_levels_go_to_toml_and_back(tmp_path: Path) -> None:
    p = ordered(slack=0.2)
    path = tmp_path / "levels.toml"
    path.write_text(p.to_toml())
    assert Problem.load(path) == p
    assert "start" not in path.read_text()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Arm("A", levels=("x", "x")), "arm 'A': levels must differ and be in rising order; got ['x', 'x']"),
        (lambda: Arm("A", levels=(2, 1)), "arm 'A': levels must differ and be in rising order; got [2, 1]"),
        (lambda: Arm("A", levels=()), "arm 'A': levels must differ and be in rising order; got []"),
        (lambda: Arm("A", levels=("a", None)), "arm 'A': a level must be a number or a name; got None"),
        (
            lambda: Arm("A", levels="high"),  # type: ignore[arg-type]
            "arm 'A': levels must be a list of numbers or names; got 'high'",
        ),
        (lambda: Arm("A"), "arm 'A': start must be finite; got nan"),
        (lambda: ordered(slack=-0.1), "slack must be finite and at least 0; got -0.1"),
        (
            lambda: ordered(slack=None),
            "slack is missing: the levels shape needs one of 0 or more (how far over the limit a pull may go)",
        ),
        (lambda: ordered(refine=0.1), "refine is a distance between doses, and levels have none; got 0.1"),
        (
            lambda: ordered(shape="monotonic", slack=0.1),
            "arm 'A' needs a start dose in the monotonic shape; got {'name': 'A', 'levels': ['1%', '10%', '50%']}",
        ),
    ],
)
def test_refuses_levels(make: Any, message: str) -> None:
    refused(make, message)


def test_a_problem_and_a_design_at_a_glance() -> None:
    problem, _ = case("paper-drug", 2, budget=500)
    assert "<table" in problem._repr_html_() and "500" in problem._repr_html_()
    assert repr(make("safebai-linear")) == "<safebai-linear: linear, with a guarantee>"
    with pytest.raises(SurefootError, match="only surefoot-levels by how they vary"):
        make("surefoot-linear").start(case("paper-linear", 2)[0].but(noise=Bounded(0, 2, spread=True)))
