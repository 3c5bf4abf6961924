"""The problem file: all mistakes at once with their lines, one schema for editors, and files written for people."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from surefoot import Arm, Problem, SurefootError, case, load
from surefoot.catalogue import CASES
from surefoot.new import QUESTIONS, asked, write
from surefoot.noise import KINDS
from surefoot.scenario import CURVES
from surefoot.schema import ARM, PROBLEM, json_schema, page, places

from .test_scenario import EXAMPLE, SET

BAD = """shape = "monotonc"
limit = "30%"
slakc = 0.2
delta = 5
noise = { kind = "gausian", sigma = 0.3 }

[[arms]]
name = "drug A"
strt = -3.0
max = 0.5
effect = { curve = "logistic", slop = 0.01 }

[[arms]]
name = "drug B"
start = 2
max = 0.5
"""
LEVELS = """shape = "levels"
limit = 30
budget = 1.5
correlation = 2
noise = { kind = "bernoulli" }
[[arms]]
name = "drug A"
start = 1
[[arms]]
name = "drug B"
levels = [1, 2, 3]
[[scenarios]]
name = "x"
nam = 1
[[scenarios.arms]]
name = "drug C"
[[scenarios.arms]]
name = "drug B"
harm = { curve = "table", value = [0.1, 0.2] }
"""


def said(text: str, tmp_path: Path) -> list[str]:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(SurefootError) as error:
        load(tmp_path / "x.toml")
    return str(error.value).splitlines()


def test_all_mistakes_at_once_with_their_lines(tmp_path: Path) -> None:
    found = said(BAD, tmp_path)
    assert found[0].endswith("x.toml has 10 things to correct:")
    for line in (
        "slack is missing: the monotonic shape needs one above 0 (how far over the limit a pull may go)",
        "line 1: shape must be one of linear, monotonic, levels; got 'monotonc' (did you mean 'monotonic'?)",
        "line 2: limit must be a number; got '30%'",
        "line 4: delta must be between 0 and 1, both excluded; got 5",
        "line 7: arm 1 lacks start",
        "line 11: a key of arm 'drug A': effect must be one of slope, shift; got 'slop' (did you mean 'slope'?)",
        "line 13: arm 'drug B': start must be at or below max; got start 2, max 0.5",
    ):
        assert f"  {line}" in found
    for start, end in (("  line 3: ", "got 'slakc' (did you mean 'slack'?)"), ("  line 5: ", "mean 'gaussian'?)")):
        assert any(line.startswith(start) and line.endswith(end) for line in found)


def test_levels_and_scenarios_say_what_they_need(tmp_path: Path) -> None:
    found = said(LEVELS, tmp_path)
    for line in (
        "slack is missing: the levels shape needs one of 0 or more (how far over the limit a pull may go)",
        "line 2: limit is a share here, where harm is yes or no: between 0 and 1; got 30 (is 0.3 meant?)",
        "line 3: budget must be a whole number of pulls, at most 10^12; got 1.5",
        "line 4: correlation must be between -1 and 1; got 2",
        "line 6: arm 1 lacks levels",
        "line 8: arm 1 has a start dose: in the levels shape the first level is the start",
        "line 15: scenario 1: the name of an arm must be one of drug B; got 'drug C' (did you mean 'drug B'?)",
        "line 17: arm 'drug B': harm needs one value a level, 3 in all; got [0.1, 0.2]",
    ):
        assert f"  {line}" in found


def test_one_mistake_is_one_line(tmp_path: Path) -> None:
    assert said(EXAMPLE.replace("limit", "limt", 1), tmp_path)[0].endswith("things to correct:")
    (one,) = said(EXAMPLE.replace("delta = 0.1", "delta = 1.0"), tmp_path)
    assert one.endswith("delta must be between 0 and 1, both excluded; got 1.0") and ", line " in one


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("[[arms]]", "[arms]", "arms must be a list of tables"),
        ('noise = { kind = "bernoulli" }', 'noise = "bernoulli"', "noise"),
        ('name = "x"\nnam = 1', 'name = "x"\nactual_noise = { kind = "loud" }', "loud"),
        ('[[scenarios.arms]]\nname = "drug C"', "[[scenarios.arms]]", "lacks name"),
    ],
)
def test_what_is_of_the_wrong_kind_is_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    path, lists = tmp_path / "p.toml", LEVELS if new != "[arms]" else 'shape = "levels"\nlimit = 1\n[[arms]]\n'
    path.write_text(lists.replace(old, new))
    with pytest.raises(SurefootError, match=said):
        load(path)


def test_the_schema_knows_every_field() -> None:
    assert set(PROBLEM) == {f.name for f in fields(Problem)}
    assert set(ARM) == {f.name for f in fields(Arm)} - {"labels"}
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert [one["properties"]["kind"]["const"] for one in schema["$defs"]["noise"]["oneOf"]] == list(KINDS)
    assert [one["properties"]["curve"]["const"] for one in schema["$defs"]["curve"]["oneOf"]] == list(CURVES)
    told = page()
    assert all(f"| `{key}` |" in told for key in (*PROBLEM, *ARM, *KINDS, *CURVES))


VALID = jsonschema.Draft202012Validator(json_schema())


def plain(data: Any) -> Any:
    """As JSON has it, which has no infinity."""
    return json.loads(json.dumps(data).replace("Infinity", "1e300"))


@pytest.mark.parametrize("name", [name for name in CASES if name != "falling-harm"])  # it is a function of Python
def test_the_schema_takes_every_case(name: str) -> None:
    problem, truth = case(name)
    VALID.validate(plain(truth.to_dict(problem)))
    VALID.validate(plain(problem.to_dict()))


def test_the_schema_takes_and_refuses_what_we_do() -> None:
    for text in (EXAMPLE, SET):
        VALID.validate(tomllib.loads(text))
    for text in (BAD, LEVELS, EXAMPLE.replace("slack", "slakc"), EXAMPLE.replace("slope", "slop")):
        assert not VALID.is_valid(tomllib.loads(text))
    data = tomllib.loads(EXAMPLE)
    assert not VALID.is_valid({**data, "delta": 1}) and not VALID.is_valid({**data, "arms": data["arms"][:1]})


@pytest.mark.parametrize("shape", ["linear", "monotonic", "levels"])
def test_new_files_are_ready_to_use(shape: str, tmp_path: Path) -> None:
    for truth in (True, False):
        (tmp_path / "x.toml").write_text(write({"shape": shape}, truth))
        problem = Problem.load(tmp_path / "x.toml")
        assert problem.shape == shape and problem.names == ["A", "B"]
        VALID.validate(tomllib.loads((tmp_path / "x.toml").read_text()))
    (tmp_path / "x.toml").write_text(write({"shape": shape}))
    problem, found = load(tmp_path / "x.toml")
    assert found.violations(problem) == [] and found.truth(problem).best == 0
    assert set(asked(shape)) < set(QUESTIONS)
    (tmp_path / "x.toml").write_text(write({"shape": shape, "limit": "0.01", "effect": "yes-no", "harm": "yes-no"}))
    problem, found = load(tmp_path / "x.toml")
    assert found.truth(problem).value.max() < 0.2, "beside rare harms no effect that nearly everybody shows"


def test_places() -> None:
    found = places(
        'a = 1\n[[x]]\nb = { c = 2, d = "e = f" } # g = 1\n[[x]]\n[[x.y]]\nb = 3\n[[x.y]]\n"b" = 4\n[z.w]\nv = 1'
    )
    assert found == {
        ("a",): 1, ("x", 0): 2, ("x", 0, "b"): 3, ("x", 0, "b", "c"): 3, ("x", 0, "b", "d"): 3, ("x", 1): 4,
        ("x", 1, "y", 0): 5, ("x", 1, "y", 0, "b"): 6, ("x", 1, "y", 1): 7, ("x", 1, "y", 1, "b"): 8,
        ("z", "w"): 9, ("z", "w", "v"): 10,
    }  # fmt: skip
