import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Scenario, SurefootError, case, load, make, simulate
from surefoot.scenario import Curves, Emax, Linear, Logistic, Table, load_all

# Curves


def test_curves_against_their_formulas() -> None:
    a = np.array([-2.0, 0.0, 0.5, 3.0])
    np.testing.assert_allclose(Linear(2.0, 1.0)(a), 2 * a + 1)
    np.testing.assert_allclose(Logistic(3.0, -1.0)(a), 1 / (1 + np.exp(-(3 * a - 1))))
    positive = a[2:]
    np.testing.assert_allclose(Emax(2.0, 0.7, 1.5)(positive), 2 * positive**1.5 / (0.7**1.5 + positive**1.5))
    np.testing.assert_array_equal(Emax(2.0, 0.7, 1.5)(a[:2]), 0)
    np.testing.assert_allclose(Table((0.0, 1.0), (1.0, 3.0))(a), [1, 1, 2, 3])
    assert Logistic(1000.0)(np.array([-1e9, 1e9])).tolist() == [0, 1]  # and no overflow


@given(
    st.permutations(
        [Linear(2.0), Linear(-1.0, 3.0), Logistic(1.0), Emax(1.0, 2.0), Table((0.0, 1.0), (0.0, 2.0)), np.cos]
    )
)
def test_curves_together_are_the_curves_alone(curves: Any) -> None:
    dose = np.linspace(0.1, 3.0, 12).reshape(2, 6)
    np.testing.assert_allclose(Curves(curves)(dose), np.stack([f(dose[:, i]) for i, f in enumerate(curves)], axis=1))


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: Emax(1.0, 0.0), "emax: ed50 must be above 0; got 0.0"),
        (lambda: Emax(1.0, 1.0, -1.0), "emax: hill must be above 0; got -1.0"),
        (lambda: Table((0.0, 1.0), (0.0,)), "table: needs as many values as doses; got 2 and 1"),
        (lambda: Table((), ()), "table: needs as many values as doses; got 0 and 0"),
        (lambda: Table((1.0, 0.0), (0.0, 1.0)), "table: doses must rise and values must not fall"),
        (lambda: Table((0.0, 1.0), (1.0, 0.0)), "table: doses must rise and values must not fall"),
        (lambda: Scenario((Linear(1.0),), ()), "effect and harm need a curve for every arm; got 1 and 0"),
        (lambda: Scenario((1.0,), (Linear(1.0),)), "effect must hold one curve an arm .*; got 1.0"),  # type: ignore[arg-type]
        (lambda: Scenario((), (), correlation=1.1), "correlation must be between -1 and 1; got 1.1"),
        (lambda: Scenario((), (), drift=math.nan), "drift must be finite; got nan"),
    ],
)
def test_refuses(make_it: Any, message: str) -> None:
    with pytest.raises(SurefootError, match=message):
        make_it()


# Truth


def linear(start: float = 0.1, largest: float = math.inf, levels: Any = None, **changes: Any) -> Problem:
    arms = tuple(Arm(name, start, largest, levels=levels) for name in "ab")
    return Problem(arms, 1.0, "linear", Noise("gaussian", 1.0)).but(**changes)


def monotonic(start: float, largest: float, limit: float, **changes: Any) -> Problem:
    arms = tuple(Arm(name, start, largest, 1.0) for name in "ab")
    return Problem(arms, limit, "monotonic", Noise("gaussian", 1.0), slack=0.1).but(**changes)


@given(st.floats(0.01, 100), st.floats(0.01, 9.9), st.floats(0.1, 50))
def test_truth_of_lines(theta: float, mu: float, largest: float) -> None:
    for M in (largest, math.inf):
        truth = Scenario((Linear(theta), Linear(0.0)), (Linear(mu),) * 2).truth(linear(0.1, M))
        dose = min(1 / mu, M)
        np.testing.assert_allclose(truth.dose, dose, rtol=1e-8)
        assert dose < M or np.all(truth.dose == M)  # where the largest dose is safe it is that, to the last bit
        np.testing.assert_allclose(truth.value, [dose * theta, 0], rtol=1e-8)
        assert truth.best == 0


@pytest.mark.parametrize(
    ("curve", "dose"),
    [
        (Logistic(2.0, 0.5), (math.log(0.3 / 0.7) - 0.5) / 2),
        (Emax(1.0, 0.4, 2.0), 0.4 * (0.3 / 0.7) ** 0.5),
        (Table((-9.0, 0.0, 1.0, 2.0), (0.0, 0.1, 0.3, 0.9)), 1.0),
        (Table((0.0, 1.0, 1.5, 2.0), (0.0, 0.3, 0.3, 0.9)), 1.5),  # level at the limit: the end of it
        (Linear(0.0, 0.3), 5.0),  # at the limit everywhere: safe everywhere
        (lambda a: np.where(a < 1.25, 0.0, 1.0), 1.25),  # a jump
    ],
)
def test_truth_of_other_curves(curve: Any, dose: float) -> None:
    truth = Scenario((Linear(1.0), Linear(1.0)), (curve, Linear(0.0))).truth(monotonic(-5.0, 5.0, 0.3))
    np.testing.assert_allclose(truth.dose, [dose, 5.0], atol=1e-12)


def test_truth_with_levels_counts_levels_alone() -> None:
    levels = (0.1, 0.3, 0.5, 0.7)
    truth = Scenario((Linear(1.0), Linear(2.0)), (Linear(1 / 0.69), Linear(2.0))).truth(linear(0.1, 1.0, levels))
    assert truth.dose.tolist() == [0.5, 0.5]  # the second one's level lies at the limit exactly
    assert truth.best == 1
    mixed = linear(arms=(Arm("a", 0.1, 1.0, levels=(0.1,)), Arm("b", 0.1, 1.0)))  # one level, beside none at all
    np.testing.assert_allclose(Scenario((Linear(1.0),) * 2, (Linear(0.0),) * 2).truth(mixed).dose, [0.1, 1.0])


def test_truth_where_the_start_is_unsafe() -> None:
    truth = Scenario((Linear(9.0), Linear(1.0)), (Linear(10.1), Linear(1.0))).truth(linear())
    assert math.isnan(truth.dose[0])
    assert truth.value[0] == -math.inf
    assert truth.best == 1


def test_truth_without_bound_is_an_error() -> None:
    with pytest.raises(SurefootError, match="never reaches the limit: its value is unbounded"):
        Scenario((Linear(1.0),) * 2, (Linear(0.0), Linear(1.0))).truth(linear())
    with pytest.raises(SurefootError, match="curves for 1 arms, the problem has 2"):
        Scenario((Linear(1.0),), (Linear(1.0),)).truth(linear())


# Assumptions


def test_violations_are_named() -> None:
    line, p = (Linear(1.0),) * 2, linear(0.1, 2.0)
    assert Scenario(line, line).violations(p) == []
    assert Scenario(line, line).violations(linear()) == []
    for scenario, problem, expected in [
        (Scenario(line, (Linear(20.0), Linear(1.0))), p, "harm is above the limit at the start dose (a)"),
        (Scenario((Linear(1.0), Linear(-1.0)), line), p, "effect falls with the dose (b)"),
        (Scenario((Linear(1.0, 0.1),) * 2, line), p, "effect is not a line through 0 (a, b)"),
        (Scenario(line, line, drift=0.1), p, "harm drifts by 0.1 with every 1,000 pulls"),
        (Scenario(line, line, noise=(Noise("gaussian", 2.0),) * 2), p, "effect noise has sigma 2, declared 1"),
        (
            Scenario(line, line, correlation=0.5),
            p.but(signals="independent"),
            "readings have correlation 0.5, declared",
        ),
        (Scenario(line, line), monotonic(0.0, 2.0, 0.3, noise=Noise("bernoulli")), "effect of a binary reading leaves"),
        (Scenario(line, (Linear(1.1),) * 2), monotonic(0.0, 2.0, 0.3), "harm rises faster than the Lipschitz constant"),
        (Scenario(line, (np.cos,) * 2), monotonic(0.0, 2.0, 2.0), "harm falls with the dose (a, b)"),
    ]:
        assert any(found.startswith(expected) for found in scenario.violations(problem)), expected


def test_drift_is_that_of_the_middle_of_the_cohort() -> None:
    scenario = Scenario((Linear(1.0),) * 2, (Linear(1.0),) * 2, drift=2.0)
    dose, n = np.full((1, 2), 0.5), np.array([[500, 500]])
    *_, harm = scenario.draw(np.random.default_rng(0), linear(), dose, n, np.array([3000]))
    np.testing.assert_allclose(harm, 0.5 + 2.0 * 3.5)


# Files

EXAMPLE = """
shape = "monotonic"          # or "linear"
limit = 0.3
slack = 0.2                  # monotonic only
delta = 0.1
noise = { kind = "gaussian", sigma = 0.316 }   # gaussian | rademacher | bernoulli
signals = "independent"      # or "any"; a scenario may also set correlation = 0.5
[[arms]]
name = "drug A"
start = -3.0
max = 0.5
lipschitz = 1.0
effect = { curve = "logistic", slope = 0.01 }  # 1/(1+exp(-(slope*a+shift))), shift 0 by default
harm = { curve = "logistic", slope = 1.0 }
[[arms]]
name = "drug B"
start = -3.0
max = 0.5
lipschitz = 1.0
levels = [-3.0, -2.8, -2.6, -2.4, -2.2]
effect = { curve = "logistic", slope = 10.0, shift = 0.0 }
harm = { curve = "emax", max = 0.5, ed50 = 0.5, hill = 1.0 }
[[arms]]
name = "drug C"
start = -3.0
max = 0.5
lipschitz = 1.0
effect = { curve = "linear", slope = 0.05, intercept = 0.2 }
harm = { curve = "table", dose = [-3.0, 0.5], value = [0.0, 0.6] }
"""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    path = tmp_path / "example.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    return path


def test_the_example_file_loads_and_runs(example: Path) -> None:
    problem, scenario = load(example)
    assert scenario.name == "example"
    assert scenario.effect == (Logistic(0.01), Logistic(10.0), Linear(0.05, 0.2))
    assert scenario.harm == (Logistic(1.0), Emax(0.5, 0.5), Table((-3.0, 0.5), (0.0, 0.6)))
    assert Problem.load(example) == problem
    result = simulate(problem, scenario, make("safebai-monotonic"), 50)
    assert np.all(result.winner == 0)
    assert not result.unsafe.any()


@pytest.mark.parametrize("name", ["paper-drug", "lipschitz-tight", "emax", "wrong-sigma", "binary-harm", "drift"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    problem, scenario = case(name)
    path = tmp_path / "again.toml"
    path.write_text(scenario.to_toml(problem), encoding="utf-8")
    assert load(path) == (problem, scenario)


def test_a_function_cannot_be_written() -> None:
    problem, scenario = case("falling-harm")
    with pytest.raises(SurefootError, match="a Python function cannot be written to TOML"):
        scenario.to_toml(problem)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('harm = { curve = "logistic", slope = 1.0 }', "", "arm 'drug A' has no harm curve: this is a problem file"),
        (
            '"logistic", slope = 1.0',
            '"logistic"',
            "arm 'drug A': harm: a logistic curve needs slope, shift; got nothing",
        ),
        ('"logistic", slope = 1.0', '"logit", slope = 1.0', "curve must be one of linear, .*; got 'logit'"),
        ('"logistic", slope = 1.0', '"logistic", slop = 1.0', "a key of arm 'drug A': harm must be .*; got 'slop'"),
        ('"logistic", slope = 1.0', '"logistic", slope = "1"', "arm 'drug A': harm: slope must be a number; got '1'"),
        ('{ curve = "logistic", slope = 1.0 }', "1.0", "arm 'drug A': harm must be a table with a curve"),
        ("dose = [-3.0, 0.5]", "dose = 1.0", "arm 'drug C': harm: dose must be a list of numbers; got 1.0"),
        ("dose = [-3.0, 0.5]", 'dose = [-3.0, "x"]', "table: a dose must be a number; got 'x'"),
        ("dose = [-3.0, 0.5], value = [0.0, 0.6]", "dose = [0.0]", "a table curve needs dose, value; got dose"),
        ("delta = 0.1", "delta = 0.1\ncorrelation = 2", "correlation must be between -1 and 1; got 2"),
        ("delta = 0.1", 'delta = 0.1\nactual_noise = { kind = "x" }', "noise kind must be one of"),
    ],
)
def test_files_that_cannot_be_used(example: Path, old: str, new: str, message: str) -> None:
    assert old in EXAMPLE
    example.write_text(EXAMPLE.replace(old, new), encoding="utf-8")
    with pytest.raises(SurefootError, match=message):
        load(example)


# Ordered levels

LEVELS = """
shape = "levels"
limit = 0.3
slack = 0.2
noise = { effect = { kind = "bernoulli" }, harm = { kind = "bernoulli" } }
[[arms]]
name = "drug A"
levels = [1, 2, 3]
effect = { curve = "table", value = [0.2, 0.4, 0.6] }
harm = { curve = "table", value = [0.05, 0.6, 0.7] }
[[arms]]
name = "drug B"
levels = ["low", "high"]
effect = { curve = "table", value = [0.2, 0.3] }
harm = { curve = "table", value = [0.1, 0.2] }
"""


def test_a_file_with_ordered_levels(tmp_path: Path) -> None:
    path = tmp_path / "levels.toml"
    path.write_text(LEVELS)
    problem, scenario = load(path)
    truth = scenario.truth(problem)
    assert truth.dose.tolist() == [0.0, 1.0]
    assert truth.value.tolist() == [0.2, 0.3]
    assert scenario.violations(problem) == []
    path.write_text(scenario.to_toml(problem))
    assert "dose" not in path.read_text()
    assert load(path) == (problem, scenario)


def test_a_level_is_unsafe_if_the_one_below_is_over_the_ceiling(tmp_path: Path) -> None:
    path = tmp_path / "levels.toml"
    path.write_text(LEVELS)
    problem, scenario = load(path)
    dose = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    unsafe = scenario.unsafe(problem, dose, scenario.harms(dose))
    assert unsafe.tolist() == [[False, False], [False, False], [True, False]]


def test_a_table_of_levels_has_one_value_each(tmp_path: Path) -> None:
    path = tmp_path / "levels.toml"
    path.write_text(LEVELS.replace("[0.2, 0.4, 0.6]", "[0.2, 0.4]"))
    with pytest.raises(SurefootError, match=r"'drug A': effect needs one value a level, 3 in all; got \[0.2, 0.4\]"):
        load(path)


SET = """
shape = "levels"
limit = 0.3
slack = 0.2
delta = 0.1
noise = { effect = { kind = "bernoulli" }, harm = { kind = "bernoulli" } }
[[arms]]
name = "A"
levels = ["10 mg", "20 mg", "40 mg"]
harm = { curve = "table", value = [0.05, 0.2, 0.5] }
[[arms]]
name = "B"
levels = ["10 mg", "20 mg", "40 mg"]
harm = { curve = "table", value = [0.05, 0.2, 0.5] }
[[scenarios]]
name = "A is better"
arms = [
  { name = "A", effect = { curve = "table", value = [0.2, 0.8, 0.9] } },
  { name = "B", effect = { curve = "table", value = [0.1, 0.1, 0.2] } },
]
[[scenarios]]
name = "B is better"
correlation = 0.3
[[scenarios.arms]]
name = "A"
effect = { curve = "table", value = [0.1, 0.1, 0.2] }
[[scenarios.arms]]
name = "B"
effect = { curve = "table", value = [0.2, 0.8, 0.9] }
"""


def test_many_truths_of_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "set.toml"
    path.write_text(SET, encoding="utf-8")
    problem, (a, b) = load_all(path)
    assert (a.name, b.name, a.correlation, b.correlation) == ("A is better", "B is better", 0.0, 0.3)
    assert [one.truth(problem).best for one in (a, b)] == [0, 1]
    assert a.harm == b.harm
    with pytest.raises(
        SurefootError, match=rf"holds 2 scenarios \('{a.name}', '{b.name}'\): .*load_all reads them all"
    ):
        load(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'name = "B is better"',
            'name = "A is better"',
            "scenario names must differ; got 'A is better' more than once",
        ),
        ("correlation = 0.3", "corelation = 0.3", "corelation"),
        ("correlation = 0.3", "effect = 0.3", "a key of scenario 2 must be one of name, arms, .*; got 'effect'"),
        ('[[scenarios.arms]]\nname = "A"', '[[scenarios.arms]]\nname = "C"', "the name of an arm must be one of A, B"),
        ("[[scenarios]]", "[scenarios]", "not valid TOML"),
        ('[[scenarios.arms]]\nname = "A"\neffect', '[[scenarios.arms]]\nname = "A"\neffects', "effects"),
    ],
)
def test_a_set_that_is_wrong(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "set.toml"
    path.write_text(SET.replace(old, new), encoding="utf-8")
    with pytest.raises(SurefootError, match=message):
        load_all(path)
