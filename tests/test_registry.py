"""Designs, policies, curves, noises and scenarios of others: registered, offered by a package, or as module:Name."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import surefoot
from surefoot import Arm, Noise, Problem, Scenario, SurefootError, make, register
from surefoot.catalogue import CASES
from surefoot.designs import DESIGNS, POLICIES, find, policies
from surefoot.designs.linear_policy import LinearPolicy
from surefoot.designs.monotonic_policy import MonotonicPolicy
from surefoot.designs.surefoot import SurefootLinear
from surefoot.registry import Registry, imported, split
from surefoot.scenario import CURVES, Linear

EXAMPLE = Path(__file__).parent.parent / "examples" / "surefoot-example-plugin"


@pytest.fixture
def clean() -> Iterator[None]:
    """What a test registers is gone after it."""
    before = {kind: dict(registry.known) for kind, registry in Registry.every.items()}
    path = list(sys.path)
    yield
    for kind, known in before.items():
        there = Registry.every[kind].known
        there.clear()
        there.update(known)
    sys.path[:] = path


def test_ours_are_imported_when_asked_for() -> None:
    assert [(name, kind.name) for name, kind in DESIGNS.items()] == [(name, name) for name in DESIGNS]
    asks = "import sys, surefoot; surefoot.make('safe-lts'); print(*sorted(m for m in sys.modules if 'designs.s' in m))"
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"surefoot.designs.{name}" for name in ("safe_lts", "settle")]


@pytest.mark.usefixtures("clean")
def test_what_is_registered_is_there_by_name() -> None:
    @register
    @dataclass(frozen=True)
    class Mine(SurefootLinear):
        name: ClassVar[str] = "mine"

    assert make("mine", cohort=3) == Mine().but(cohort=3)
    assert list(DESIGNS)[-1] == "mine" and "mine" in DESIGNS and len(DESIGNS) == len(list(DESIGNS))
    assert DESIGNS.name(Mine) == "mine" and DESIGNS.origin("mine") == __name__
    assert DESIGNS.origin("surefoot-linear") == CURVES.origin("linear") == CASES.origin("paper-drug") == "surefoot"
    register(Mine)  # again is no harm
    with pytest.raises(SurefootError, match=r"the design 'mine' is there already \(.*Mine\)"):
        register(SurefootLinear, "mine")
    with pytest.raises(SurefootError, match=r"design must be one of .*did you mean 'mine'"):
        make("minee")


@pytest.mark.usefixtures("clean")
def test_a_policy_is_an_option_of_its_design() -> None:
    @dataclass(frozen=True)
    class Slow(MonotonicPolicy):
        name: ClassVar[str] = "slow"
        pause: int = 2

    assert make("surefoot-monotonic").label == "surefoot-monotonic"
    register(Slow)
    design = make("surefoot-monotonic", policy="slow", pause="3")
    assert getattr(design, "policy", None) == Slow(pause=3) and design.label == "slow:pause=3"
    assert make(design.name, **design.options) == design
    assert "leaves the choice to it" in design.meanings["growth"] and "leaves" not in design.meanings.get("pause", "")
    assert "leaves the choice" not in make("surefoot-monotonic").meanings["growth"]
    assert find("slow:pause=3") == ("surefoot-monotonic", {"policy": "slow", "pause": "3"})
    assert make("slow", pause=3) == design
    with pytest.raises(SurefootError, match="did you mean 'slow'"):
        make("slo")
    with pytest.raises(SurefootError, match="'linear' is a curve; a design is one of surefoot-linear"):
        make("linear")
    with pytest.raises(
        SurefootError, match=r"Bad.begin hides the method MonotonicPolicy.begin: give this option another"
    ):
        type("Bad", (MonotonicPolicy,), {"__annotations__": {"begin": int}})
    assert policies("monotonic") == ["slow"] and policies("linear") == []
    with pytest.raises(SurefootError, match="the policy slow is for surefoot-monotonic; got surefoot-linear"):
        make("surefoot-linear", policy="slow")
    with pytest.raises(SurefootError, match="policy must be one of slow; got 'fast'"):
        make("surefoot-monotonic", policy="fast")
    with pytest.raises(SurefootError, match="an option of surefoot-monotonic must be one of policy, growth"):
        make("surefoot-monotonic", policy="slow", pace=3)


@pytest.mark.usefixtures("clean")
def test_what_cannot_be_registered_says_why() -> None:
    with pytest.raises(SurefootError, match=r"is nothing that can be registered: .*a design is a subclass of"):
        register(3)
    with pytest.raises(SurefootError, match="a policy needs a name without blanks, commas, : and =; give name="):
        register(MonotonicPolicy)
    with pytest.raises(SurefootError, match="a curve must be a dataclass that can be called"):
        CURVES.add(int)
    with pytest.raises(SurefootError, match="is not registered"):
        CURVES.name(int)


@pytest.mark.usefixtures("clean")
def test_module_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_designs.py").write_text(
        "from dataclasses import dataclass\nfrom surefoot.designs.surefoot import SurefootLinear\n"
        "from surefoot.designs.linear_policy import LinearPolicy\n"
        "@dataclass(frozen=True)\nclass One(SurefootLinear):\n    name = 'one'\n"
        "@dataclass(frozen=True)\nclass Two(LinearPolicy):\n    name = 'two'\n"
    )
    monkeypatch.chdir(tmp_path)
    assert find("my_designs:One:growth=0") == ("one", {"growth": "0"})
    assert find(f"{tmp_path / 'my_designs.py'}:Two") == ("surefoot-linear", {"policy": "two"})
    assert make("one").label == "one" and list(POLICIES.known) == ["two"]
    for bad, said in (
        ("my_designs:Won", "what to take from my_designs must be one of .*One, Two; got 'Won'"),
        ("no_such_module:One", "no_such_module:One cannot be imported: No module named"),
        ("my_designs:dataclass", "a design must be a subclass of surefoot.designs.base.Design; got"),
        ("one:growth", "a design with options is one:KEY=VALUE"),
        (":growth=0", "a design is written NAME:KEY=VALUE or MODULE:NAME:KEY=VALUE; got ':growth=0'"),
    ):
        with pytest.raises(SurefootError, match=said):
            find(bad)
    with pytest.raises(SurefootError, match="design must be one of"):
        make("my_designs:One")  # only a command line imports what it is told
    assert split("a:b=1:c=2") == ("a", {"b": "1", "c": "2"}) and imported("json") is json


@pytest.mark.usefixtures("clean")
def test_curves_and_noises_in_a_file(tmp_path: Path) -> None:
    sys.path.insert(0, str(EXAMPLE / "src"))
    surefoot_example: Any = importlib.import_module("surefoot_example")

    register(surefoot_example.HockeyStick, "hockey-stick")
    register(surefoot_example.Uniform)
    problem = Problem((Arm("a", 0.0, 2.0, 1.0), Arm("b", 0.0, 2.0, 1.0)), 0.3, "monotonic", Noise("uniform", 0.4), 0.2)
    truth = Scenario((Linear(1.0),) * 2, (surefoot_example.HockeyStick(0.5), surefoot_example.HockeyStick(0.7)))
    (tmp_path / "x.toml").write_text(truth.to_toml(problem))
    again, found = surefoot.load(tmp_path / "x.toml")
    assert (again, found) == (problem, truth) and problem.noises[0].scale == 0.4 / 3**0.5
    result = surefoot.simulate(problem, truth, make("safebai-monotonic"), 3, progress=False)
    assert result.trials == 3
    with pytest.raises(SurefootError, match="uniform and uniform readings can only be drawn without correlation"):
        tied = Scenario(truth.effect, truth.harm, correlation=0.5)
        surefoot.simulate(problem, tied, make("safebai-monotonic"), 3, progress=False)


@pytest.mark.usefixtures("clean")
def test_without_its_policy_a_study_is_looked_at_and_checked(tmp_path: Path) -> None:
    """But not gone on with: what comes next is for the policy, which may be on another machine."""
    from typer.testing import CliRunner

    from surefoot import Study
    from surefoot.study.cli import app as live
    from surefoot.web.board import board

    @register
    @dataclass(frozen=True)
    class Slow(LinearPolicy):
        name: ClassVar[str] = "slow"

    problem = surefoot.case("paper-linear", 2)[0]
    study = Study.create(tmp_path / "s.db", "s", problem, "slow", actor="me", seed=1, pipeline=2)
    while study.status()["cohort"] < 5:
        for a in study.ask():
            study.tell(a.id, 0.1, 0.1)
    certificate = study.certificate().content
    del POLICIES.known["slow"]
    again = Study.open(tmp_path / "s.db", actor="me")
    assert again.verify(certificate=certificate)["ok"] and "policy=not installed/slow" in repr(again)
    assert again.certificate().content["concluded"] == certificate["concluded"]
    status = again.status()
    assert status["holds"] and "its policy 'slow' is not installed here" in status["trouble"]
    assert again.look(board)["trouble"] == status["trouble"]
    shown = CliRunner().invoke(live, ["status", "--db", str(tmp_path / "s.db")])
    assert shown.exit_code == 0 and shown.output.startswith("can only be looked at: its policy 'slow'")
    for call in (again.ask, lambda: again.tell("x", 0.1, 0.1), lambda: again.pause("tea"), again.preview):
        with pytest.raises(SurefootError, match="policy 'slow'"):
            call()
    register(Slow)
    assert Study.open(tmp_path / "s.db", actor="me").ask() == study.ask()


@pytest.mark.usefixtures("clean")
def test_a_theorem_of_ones_own_runs_live_with_a_checker(tmp_path: Path) -> None:
    """And only with one; the certificate names it."""
    from surefoot import Study
    from surefoot.designs.linear_evidence import LinearEvidence
    from surefoot.study.checker import SurefootLinear as Ours

    class Evidence(LinearEvidence):
        theorem: ClassVar[str] = "mine/1"

    @dataclass(frozen=True)
    class Mine(SurefootLinear):
        name: ClassVar[str] = "mine"
        evidence: ClassVar[Any] = Evidence()

    problem = surefoot.case("paper-linear", 2)[0]
    with pytest.raises(SurefootError, match=r"'mine' is not known by its name .*: surefoot.register\(Mine\) first"):
        Study.create(tmp_path / "no.db", "s", problem, Mine(), actor="me")
    register(Mine)
    with pytest.raises(SurefootError, match="mine as set has no theorem that certifies its doses"):
        Study.create(tmp_path / "no.db", "s", problem, "mine", actor="me")

    @register
    class Check(Ours):
        theorem = "mine/1"

    study = Study.create(tmp_path / "s.db", "s", problem, "mine", actor="me", seed=1)
    for a in study.ask():
        study.tell(a.id, effect=a.dose, harm=a.dose)
    assert study.ask() and study.verify()["ok"]
    assert study.certificate().to_dict()["design"]["theorem"]["name"] == "mine/1"

    @dataclass(frozen=True)
    class Nameless(type(SurefootLinear().policy)):  # type: ignore[misc]
        pass

    with pytest.raises(SurefootError, match="has no name to be found by when the study is opened again"):
        Study.create(tmp_path / "t.db", "t", problem, SurefootLinear(Nameless()), actor="me")


LOOK = """
import json, sys
from surefoot import CASES, DESIGNS, Study, case, make, simulate
from surefoot.cli import main
from surefoot.registry import Registry
from surefoot.study import Journal
found = {k: [n for n in r if r.origin(n) == "surefoot-example-plugin"] for k, r in Registry.every.items()}
problem, truth = case("example-sticks")
design = make("surefoot-monotonic", policy="blocks")
study = Study.create("sqlite:///" + sys.argv[1], "one", problem, design, actor="me")
while asked := study.ask():
    study.tell_many([{"id": a.id, "effect": 0.8 if a.arm == "arm 3" else 0.0, "harm": 0.5 * a.dose} for a in asked])
again = Study.open("sqlite:///" + sys.argv[1], "one", actor="me")
found["study"] = [again.verdict().endings()[0], again.view.design.label, again.verify()["ok"]]
folder = "lines://" + sys.argv[1] + ".lines"
copy = Study.load(folder, again.export(), actor="me")
found["copy"] = [type(copy.journal).__name__, Study.open(folder, actor="you").verify()["ok"], Journal(folder).names()]
print(json.dumps(found))
main(["compare", "example-sticks", "--trials", "4", "--designs", "same-for-all,blocks,surefoot-monotonic", "--json"])
"""


def test_a_package_of_somebody_else(tmp_path: Path) -> None:
    """Installed without a network, seen by name everywhere, and its policy runs a live study."""
    pip = ["pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(tmp_path)]
    subprocess.run([sys.executable, "-m", *pip, str(EXAMPLE)], check=True)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-c", LOOK, str(tmp_path / "s.db")], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    seen, compared = map(json.loads, run.stdout.splitlines())
    assert seen.pop("copy") == ["Lines", True, ["one"]]
    assert seen.pop("study") == ["best-arm", "blocks", True]
    assert {kind: names for kind, names in seen.items() if names} == {
        "designs": ["same-for-all"], "policies": ["blocks"], "curves": ["hockey-stick"], "noises": ["uniform"],
        "scenarios": ["example-sticks"], "journals": ["lines"],
    }  # fmt: skip
    labels = [row["label"] for row in compared["designs"]]
    assert labels == ["same-for-all", "blocks", "surefoot-monotonic"]


def test_a_package_that_is_broken_is_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    offers: Any = {"surefoot.designs": (EntryPoint("broken", "no_such_module:Design", "surefoot.designs"),)}
    monkeypatch.setattr("surefoot.registry._offers", lambda group: offers.get(group, ()))
    with pytest.warns(UserWarning, match=r"the design 'broken' that a package offers \(no_such_module:Design\) cannot"):
        assert "broken" not in dict(DESIGNS.items())
    with pytest.raises(SurefootError, match="cannot be used: No module named"):
        make("broken")
