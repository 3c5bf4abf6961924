"""The checker agrees with the designs on every dose and every ending, and stops a design that is too sure of itself."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from surefoot import CASES, Arm, Noise, Problem, Study, case, make
from surefoot.designs import DESIGNS, Design
from surefoot.designs.base import RUNNING, Outcome
from surefoot.designs.compose import Composed
from surefoot.designs.levels_evidence import climb
from surefoot.designs.levels_wagers import FAR
from surefoot.designs.linear import SafeBAILinear
from surefoot.designs.monotonic import CLIMB, SafeBAIMonotonic
from surefoot.designs.surefoot import SurefootLevels, SurefootLinear, SurefootMonotonic
from surefoot.study import checker
from surefoot.study.checker import CLOSE, THEOREMS, Given, Staged
from surefoot.study.published import certified, default, stage_of, stakes_of, theorem_of
from surefoot.study.study import Study as Live

from .subjects import problem, run, subjects
from .test_attacks import chained

LIVE = [name for name in DESIGNS if theorem_of(make(name)) in THEOREMS]
BANK = [
    (design, name)
    for name, it in CASES.items()
    if it.claim
    for design in LIVE
    if make(design).shape == case(name)[0].shape
]


def played(p: Problem, truth: Any, design: Design, seed: int, most: int) -> Iterator[tuple[Any, Any, Given, Any]]:
    """A trial of the design: state, cohort, the cohort as it would be published, the state after it."""
    rng, state = np.random.default_rng(seed), design.start(p)
    for number in range(1, most + 1):
        if state.ending[0] != RUNNING:
            return
        cohort = design.ask(state)
        stakes = stakes_of(cohort) if isinstance(design, Composed) else stage_of(state, number)
        data = {"dose": cohort.dose[0].tolist(), "n": cohort.n[0].tolist(), "stakes": stakes}
        given = Given(number, 1, {**data, "n": [0] * len(p.arms)}, 1)
        given.n = data["n"]
        effect, harm, _ = truth.draw(rng, p, cohort.dose, cohort.n, state.pulls)
        given.came = {
            (i, a): (k, float(effect[0, i]), float(harm[0, i]))
            for i, (a, k) in enumerate(zip(given.dose, given.n, strict=True))
            if k
        }
        after = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
        yield state, cohort, given, after
        state = after


@pytest.mark.parametrize("chosen, name", BANK)
def test_certifies_what_the_design_asks_for_and_concludes_what_it_concludes(chosen: str, name: str) -> None:
    """Every catalogue case: scalar code and arrays agree to 1e-9 on doses, and on who is out when.

    Of the paper's designs the checker's radius has the number of pulls rounded up: its bound may be a hair below the
    design's; never above.
    """
    p, truth = case(name)
    design, theorem = make(chosen), THEOREMS[theorem_of(make(chosen))](p.to_dict(), {})
    for state, cohort, given, after in played(p, truth, design, 3, 25):
        theorem.publish(given.dose, given.stakes)
        for arm, dose in enumerate(given.dose):
            if cohort.n[0, arm]:
                assert theorem.refusal(arm, dose) is None
            if not isinstance(theorem, Staged):
                assert math.isclose(theorem.certified(arm), certified(design, state)[arm], rel_tol=CLOSE)
        theorem.take(given)
        for arm in np.flatnonzero((after.standing != state.standing)[0]).tolist():
            assert theorem.out(arm)


@pytest.mark.parametrize("name", LIVE)
def test_refuses_a_dose_that_is_a_hair_too_high(name: str) -> None:
    """One in a million above what is certified."""
    design = make(name)
    p = problem(design.shape)
    theorem = THEOREMS[theorem_of(design)](p.to_dict(), {})
    seen = 0
    for _, _, given, _ in played(p, subjects(p).truth, design, 5, 40):
        theorem.publish(given.dose, given.stakes)
        for arm in range(len(p.arms)):
            most = theorem.certified(arm)
            if p.arms[arm].start < most < p.arms[arm].largest:
                seen += 1
                assert theorem.refusal(arm, most) is None and theorem.refusal(arm, most * (1 + 1e-6)) is not None
        theorem.take(given)
    assert seen > 3 or design.shape == "levels"


def test_refuses_a_level_whose_neighbour_below_is_not_calm() -> None:
    p = problem("levels", binary=True)
    theorem = THEOREMS["surefoot-levels/2"](p.to_dict(), {})

    def take(level: int, n: int, harms: int, stakes: list[float | None]) -> None:
        given = Given(1, 1, {"dose": [float(level)] * 3, "n": [0] * 3, "stakes": [stakes, None, None]}, 1)
        given.came = {(0, float(level)): (n, 0.0, float(harms))}
        theorem.take(given)

    bets: list[float | None] = [1.0, None, 1.0, None, None]
    assert theorem.refusal(0, 1.0) is None and theorem.refusal(0, 2.0) is not None
    take(0, 30, 0, bets)
    assert theorem.certified(0) == 1.0, "the first level is known to be safe: its readings certify nothing more"
    take(1, 30, 0, [None] * 5)
    assert theorem.certified(0) == 1.0, "what was not staked is not bet"
    take(1, 30, 0, bets)
    assert theorem.certified(0) == 2.0 and "not certified" in str(theorem.refusal(0, 3.0))
    take(2, 60, 60, bets)
    assert theorem.certified(0) == 1.0, "barred"
    assert "levels" in str(theorem.refusal(0, 0.5)) and "largest" in str(theorem.refusal(0, 4.0))


@dataclass(frozen=True)
class Overconfident(SafeBAILinear):
    """Raises its doses by 1%."""

    def decide(self, s: Any) -> Any:
        after = super().decide(s)
        return replace(after, dose=np.minimum(after.dose * 1.01, 1.0))


@dataclass(frozen=True)
class Overclimbing(SafeBAIMonotonic):
    """Goes 1% further than what is certified for limit + slack."""

    def decide(self, s: Any) -> Any:
        after = super().decide(s)
        return replace(after, dose=np.where(after.phase == CLIMB, np.minimum(after.dose * 1.01, 1.0), after.dose))


def too_sure(kind: Any) -> type[Design]:
    """The same for a design of ours: it certifies and gives 1% more than it may; a level, at half the evidence."""

    class TooSure(type(kind.evidence)):  # type: ignore[misc]
        def certified(self, state: Any) -> Any:
            most = super().certified(state)
            if kind.shape == "levels":
                wealth = self.harms(state, "calm", state.problem.ceiling, FAR, above=False)
                return np.maximum(most, np.minimum(climb(wealth, 0.5 * math.log(3 / (0.1 * 0.1))) + 1, 3.0))
            return np.where(most > state.problem.starts, np.minimum(most * 1.01, 1.0), most)

    @dataclass(frozen=True)
    class Sure(kind):  # type: ignore[misc]
        evidence: ClassVar[Any] = TooSure()

        def plan(self, state: Any, u: Any) -> Any:
            return replace(super().plan(state, u), dose=self.evidence.certified(state))

    return Sure


SURE: list[Any] = [
    Overconfident,
    Overclimbing,
    too_sure(SurefootLinear),
    too_sure(SurefootMonotonic),
    too_sure(SurefootLevels),
]


def caught(kind: type[Design], seed: int) -> bool:
    """A study by a design that is too sure of itself: whether the guard paused it; nothing that was released lacks the
    checker's word."""
    paper = kind in (Overconfident, Overclimbing)  # with so many pulls that rounding up is nothing
    p = problem(kind.shape, (2.0 if kind is Overconfident else 0.5) if paper else 0.2, binary=kind.shape == "levels")
    design: Any = kind(unit=1.0) if kind is Overclimbing else kind.name
    study = Study.create("sqlite://", "s", p, design=design, seed=seed, watch="warn")
    run(study, subjects(p, seed))
    view, pause = study.view, study.log()[-1]
    for given, theorem in view.replay():
        for arm, n in enumerate(given.n):
            assert not n or theorem.refusal(arm, given.dose[arm]) is None
    if kind.shape == "linear" or not paper:
        start = 1.0 if kind.shape == "levels" else p.arms[0].start
        raised = [a for g in view.cohorts for a, n in zip(g.dose, g.n, strict=True) if n and start < a < 1.0]
        assert not raised, "every dose above the start was 1% too high"
    if seed == 0:
        study.resume("we trust the design")
        assert study.view.standing == "paused", "it cannot be talked into it"
    return view.standing == "paused" and pause.data["by"] == "checker" and "not certified" in str(pause.reason)


@pytest.mark.parametrize("kind", SURE)
def test_a_dose_that_only_the_design_certifies_is_not_released(kind: type[Design], monkeypatch: Any) -> None:
    """1% too high, or a level too early, is caught in every study; in 100: python -m tests.study.agree sure 100."""
    monkeypatch.setitem(DESIGNS.known, kind.name, kind)
    assert all(caught(kind, seed) for seed in range(5))


def test_an_ending_that_only_the_design_sees_is_not_recorded(monkeypatch: Any) -> None:
    monkeypatch.setattr(checker.SurefootLinear, "out", lambda self, arm, named=None: False)
    p = problem()
    study = run(Study.create("sqlite://", "s", p, "surefoot-linear", seed=1, watch="warn"), subjects(p))
    assert study.view.standing == "paused" and "was not out after cohort" in str(study.log()[-1].reason)
    assert study.status()["winner"] is None and study.certificate().content["concluded"]["winner"] is None


def lively(study: Live, people: Any, seed: int, most: int) -> None:
    """Tell a study with all that may happen: parts of readings, late effects, other doses, drop-outs, pauses, readings
    of cohorts that were withdrawn, and corrections of harms and doses, some of them undone later."""
    rng = random.Random(seed)
    done: list[str] = []
    undo: dict[str, Any] = {}
    seen: dict[str, Any] = {}
    while ((asked := study.ask()) or study.awaiting()) and len(done) < most:
        view, late = study.view, study.awaiting()
        rows = [{"id": a.id, "effect": people.read(a)["effect"]} for a in late if not asked or rng.random() < 0.5]
        gone = {id for id, a in seen.items() if a.subject in view.gone or not view.find(a.subject).withdrawn}
        left = [a for id, a in seen.items() if id not in gone and id not in done]
        for a in [*rng.sample(asked, min(len(asked), rng.randint(1, 40))), *left[: rng.randint(0, 2)]]:
            what = rng.random()
            if what < 0.05 and a not in left:
                study.void(a.id, "left")
                if study.view.standing == "paused":
                    study.resume("go on", voids={"effect": 0.0, "harm": 1.0} if rng.random() < 0.5 else None)
                continue
            labels = people.of.arms[people.of.names.index(a.arm)].labels
            other = rng.choice(labels) if labels else rng.uniform(0.05, 1.0)
            rows.append({"id": a.id, **people.read(a), "dose": other if what < 0.12 else None, "confirm": "so it was"})
            if view.pipeline > 1 and rng.random() < 0.5:
                del rows[-1]["effect"]
            done.append(a.id)
        study.tell_many(rows)
        seen |= {a.id: a for a in asked}
        if undo and rng.random() < 0.5:
            study.correct(**undo, reason="it was right")
            undo = {}
        elif done and rng.random() < 0.25:
            id = rng.choice(done)
            row = next(r for r in study.readings() if r["id"] == id)
            new = 1.0 - row["harm"] if view.setup["voids"] == "worst" else row["harm"] + rng.gauss(0, 0.3)
            given = rng.uniform(0.05, 1.0) if row["dose"] == row["assigned"] else row["assigned"]
            changes = {"dose": given} if rng.random() < 0.2 and people.of.shape != "levels" else {"harm": new}
            undo = {"id": id, **{key: row[key] for key in changes}} if rng.random() < 0.5 else {}
            study.correct(id, **changes, reason="typo")


@pytest.mark.parametrize("name", LIVE)
def test_agrees_on_random_studies(name: str) -> None:
    """With voids, corrections, other doses and partial cohorts; 1,000 of each design: python -m tests.study.agree."""
    for seed in (1, 2):  # binary; with late effects and a tolerance
        agree(name, seed)


def agree(name: str, seed: int, most: int = 150) -> int:
    """Through a study of about so many readings; returns how many cohorts it had. Kinds of readings, a tolerance,
    whether the winner is refined and whether effects may come late go by the seed."""
    design, binary = make(name), seed % 2 == 1
    ours = isinstance(design, Composed)
    p = problem(design.shape, sigma=0.1, binary=binary, **({"tolerance": 0.2} if seed % 4 > 1 else {}))
    p = p.but(refine=0.2) if seed % 5 > 2 and design.shape != "levels" else p
    if ours and not binary and seed % 3 == 1:
        p = p.but(noise=Noise("gaussian-guess", 0.15))
    pipeline = 3 if ours and seed % 3 == 2 else 1
    study = Study.create("sqlite://", "s", p, name, seed=seed, watch="warn", lift="anyone", pipeline=pipeline)
    lively(study, subjects(p, seed), seed, most)
    view = study.view
    assert not [e.reason for e in view.notes if e.data.get("by") == "checker"]
    assert not view.trouble and view.apart <= CLOSE, "what every cohort certified is what the design had"

    def same(theorem: Any, state: Any, given: Any = None) -> None:
        if isinstance(theorem, Staged) or int(state.ending[0]) != RUNNING or (given and pipeline > 1):
            return  # a design that has ended (after a correction: before later cohorts) learns nothing more
        for arm, safe in enumerate(certified(view.design, state)):
            assert math.isclose(theorem.certified(arm), safe, rel_tol=CLOSE), (seed, given and given.number, arm)

    for given, theorem in view.replay():
        same(theorem, view.before[given.number - 1], given)
    same(view.theorem, view.state)
    if seed % 10 == 0:  # the same walk once more
        report = study.verify(head=view.hash)
        assert report["ok"], report["message"]
    alone = checker.check(study.log())
    assert alone["ok"], alone["message"]
    return len(view.cohorts)


def test_runs_alone_on_any_python(tmp_path: Path) -> None:
    """One file, the standard library, no package: what it says, and what it does with a file that was changed."""
    p = problem()
    study = run(Study.create(tmp_path / "s.db", "\u0639", p, seed=1, watch="warn"), subjects(p))
    data = study.export()
    (tmp_path / "study.json").write_text(json.dumps(data))
    (tmp_path / "checker.py").write_text(Path(checker.__file__).read_text())

    def alone(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", "checker.py", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    done = alone("study.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "A is the best arm" in done.stdout and "Consistent, not authenticated" in done.stdout
    ascii_ = (
        [sys.executable, "-S", "checker.py", "study.json"],
        {"PYTHONIOENCODING": "ascii"},
    )  # that has no such letter
    said = subprocess.run(ascii_[0], cwd=tmp_path, capture_output=True, text=True, timeout=60, env=ascii_[1])
    assert said.returncode == 0 and "Study '\\u0639'" in said.stdout
    assert alone("study.json", "--head", study.view.hash).returncode == 0
    assert alone("study.json", "--head", "0" * 64).returncode == 1
    assert alone("none.json").returncode == 2 and alone().returncode == 2
    data["events"][3]["payload"] = data["events"][3]["payload"].replace("0.", "1.")
    (tmp_path / "study.json").write_text(json.dumps(data))
    done = alone("study.json")
    assert done.returncode == 1 and "event 4 was changed" in done.stdout


def test_imports_nothing_but_the_standard_library() -> None:
    import ast

    tree = ast.parse(Path(checker.__file__).read_text())
    names = [n.module if isinstance(n, ast.ImportFrom) else n.names[0].name
             for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]  # fmt: skip
    assert {str(name).split(".")[0] for name in names} <= set(sys.stdlib_module_names)


def test_refuses_doses_beyond_the_largest_and_between_levels() -> None:
    arm = Arm("A", 0.1, 1.0, levels=(0.1, 0.5, 0.9))
    p = Problem((arm, replace(arm, name="B")), 1.0, "linear", Noise("gaussian", 1.0))
    theorem = THEOREMS["safebai-linear/1"](p.to_dict(), {})
    assert "levels" in str(theorem.refusal(0, 0.4))
    assert theorem.refusal(0, 0.05) is not None and theorem.refusal(0, 0.05, free=True) is None, "low, and none of them"
    assert "largest" in str(theorem.refusal(0, 1.1))
    assert "largest" in str(theorem.refusal(0, math.nan))
    assert theorem.refusal(0, 0.1) is None, "the start dose is known to be safe"
    assert "not certified" in str(theorem.refusal(0, 0.5))


def test_stages_wait_for_what_was_asked() -> None:
    p = problem()

    def shown(*cohorts: tuple[float, int, int, int, float, int]) -> int:
        theorem: Any = THEOREMS["safebai-linear/1"](p.to_dict(), {})
        for dose, want, number, first, given_dose, n in cohorts:
            given = Given(1, 1, {"dose": [dose] * 3, "n": [0] * 3, "stakes": [[want, number, first], None, None]}, 1)
            given.n, given.came = [want, 0, 0], {(0, given_dose): (n, 0.0, 0.1 * n)}
            theorem.publish(given.dose, given.stakes)
            theorem.take(given)
        return len(list(theorem.estimates(0)))

    one = (0.2, 4, 1, 1, 0.2, 4)
    assert shown(one) == 1
    assert shown((0.2, 4, 1, 1, 0.2, 3)) == 0
    assert shown((0.2, 4, 1, 1, 0.2, 3), (0.2, 4, 1, 1, 0.2, 1)) == 1
    assert shown((0.2, 4, 1, 1, 0.2, 5)) == 0, "more than was asked for is set aside"
    assert shown((0.2, 4, 1, 1, 0.3, 4)) == 0, "and so is another dose"
    assert shown(one, (0.3, 4, 2, 2, 0.3, 4)) == 2
    assert shown(one, (0.3, 4, 1, 1, 0.3, 4)) == 1, "a stage begun anew takes the place of what had its number"
    assert shown(one, (0.3, 4, 2, 2, 0.3, 3), (0.2, 4, 1, 1, 0.2, 1), (0.3, 4, 2, 2, 0.3, 1)) == 2, "and gives it back"
    assert shown(one, (0.3, 4, 2, 2, 0.3, 3), (0.3, 4, 3, 3, 0.3, 4)) == 2, "the second lacks a pull"
    moved = (0.3, 4, 2, 2, 0.3, 2), (0.3, 4, 2, 1, 0.3, 2)
    assert shown(one, *moved) == 1, "after a correction it may have begun earlier: all that asked for it since count"
    with pytest.raises(ValueError, match="a number is used once"):
        shown(one, (0.3, 4, 1, 2, 0.3, 4))


@pytest.mark.parametrize(
    "name, shape, many", [("safebai-linear/1", "linear", 3), ("safebai-monotonic/1", "monotonic", 1)]
)
def test_estimates_are_as_sure_as_the_paper_says(name: str, shape: str, many: int) -> None:
    """sigma sqrt(2 log(8 w t^2/delta)/n), w = d for epochs that all arms share; nothing of a stage that was left."""
    theorem: Any = THEOREMS[name](problem(shape, sigma=0.2).to_dict(), {})
    arms = len(theorem.arms)
    for withdrawn in (True, False):
        given = Given(1, 1, {"dose": [0.2] * arms, "n": [0] * arms, "stakes": [[5, 3, 1], *[None] * (arms - 1)]}, 1)
        given.came, given.withdrawn = {(0, 0.2): (5, 0.5, 0.1)}, withdrawn
        theorem.publish(given.dose, given.stakes)
        theorem.take(given)
        assert bool(list(theorem.estimates(0))) is not withdrawn
    radius = 0.2 * math.sqrt(2 * math.log(8 * many * 9 / 0.1) / 5)
    bounds = 0.2, 0.1 - radius, 0.1 + radius, 0.02 - radius, 0.02 + radius
    assert list(theorem.estimates(0)) == [pytest.approx(bounds)]


SHARES = {
    "surefoot-linear": {0.3, 0.05, 0.65},
    "surefoot-monotonic": {0.35, 0.53, 0.04},
    "surefoot-levels": {0.1, 0.05, 0.8},
}


@pytest.mark.parametrize("name", SHARES)
def test_no_more_of_delta_is_spent_than_there_is(name: str, monkeypatch: Any) -> None:
    """The shares are those of docs/guarantees.md: a checker that asks for less would agree with every design."""
    design, spent, goal = make(name), set[float](), checker.Theorem.goal
    p = problem(design.shape)
    theorem: Any = THEOREMS[theorem_of(design)](p.to_dict(), {})

    def noted(self: Any, share: float, each: bool = True) -> float:
        spent.add(share)
        found = float(goal(self, share, each))
        assert found == math.log((len(p.arms) if each else 1) / (share * p.delta))
        return found

    monkeypatch.setattr(checker.Theorem, "goal", noted)
    for _, _, given, _ in played(p, subjects(p).truth, design, 5, 6):
        theorem.take(given)
    for arm in range(len(p.arms)):
        theorem.out(arm)
    assert spent == SHARES[name] and sum(spent) <= 1


def test_no_harm_at_all_certifies_the_largest_dose() -> None:
    """A bound below 0 must not be worse than one just above it."""
    for harm in (0.2, -5.0):
        theorem: Any = THEOREMS["safebai-linear/1"](problem().to_dict(), {})
        given = Given(1, 1, {"dose": [0.2] * 3, "n": [4, 0, 0], "stakes": [[4, 1, 1], None, None]}, 1)
        given.came = {(0, 0.2): (4, 0.0, 4 * harm)}
        theorem.publish(given.dose, given.stakes)
        theorem.take(given)
        assert theorem.certified(0) == (1.0 if harm < 0 else min(0.2 / next(theorem.estimates(0))[4], 1.0))


def test_each_shape_has_a_design_that_may_run_live() -> None:
    for shape in ("linear", "monotonic", "levels"):
        assert DESIGNS[default(shape)].shape == shape


def test_bets_rest_on_doses_that_were_certified_and_on_arms_that_lead() -> None:
    """Theorem 1, lemma 1, and Theorem 2, lemma 5: after a correction a dose that was given may not be certified."""
    linear: Any = THEOREMS["surefoot-linear/6"](problem().to_dict(), {})
    curves: Any = THEOREMS["surefoot-monotonic/4"](problem("monotonic").to_dict(), {})

    def take(theorem: Any, dose: float, stakes: list[float | None]) -> None:
        arms = len(theorem.arms)
        given = Given(1, 1, {"dose": [dose] * arms, "n": [0] * arms, "stakes": [stakes, *[None] * (arms - 1)]}, 1)
        given.came = {(0, dose): (4, 2.0, 0.4)}
        theorem.take(given)

    for dose, bet in ((0.9, False), (0.2, True)):
        take(linear, dose, [1.0] * 5)
        assert all((sums[0] > 0) is bet for sums in linear.bets[0]), dose
    before = [list(sums) for sums in linear.bets[0]]
    take(linear, 0.2, [0.0, None, -1.0, 1e60, 0.0])
    assert linear.bets[0] == before, "nor on nothing"
    for leads, dose in ((None, 0.1), (1.0, 0.2)):
        take(curves, dose, [0.1, None, 0.1, 1.0, leads])
        over, under = curves.at[0][dose][0]
        assert over == 0.0 and (under > 0) is bool(leads)


def test_a_sigma_that_is_not_known_has_its_share_of_delta_and_squares_their_bets() -> None:
    """ "Readings" in docs/guarantees.md: 0.1 delta for the sigmas, the rest for the theorem."""
    theorem: Any = THEOREMS["surefoot-linear/6"](problem().but(noise=Noise("gaussian-guess", 0.2)).to_dict(), {})
    assert theorem.delta == pytest.approx(0.9 * 0.1)
    assert theorem.spread == pytest.approx(math.log(len(checker.WIDER) * 2 * 3 / (0.1 * 0.1)))
    data = problem("levels", binary=True).to_dict() | {
        "noise": {"kind": "bounded", "low": 0.0, "high": 2.0, "spread": True}
    }
    levels: Any = THEOREMS["surefoot-levels/2"](data, {})
    given = Given(1, 1, {"dose": [0.0] * 3, "n": [0] * 3, "stakes": [[1.0] * 5, None, None]}, 1)
    given.came = {(0, 0.0): (4, 4.0, 4.0, 0.8, 0.8)}
    levels.take(given)
    assert [sums[3] for sums in levels.bets[0][0]] == pytest.approx([0.2] * 5), "0.8 / 2^2, around 1/2"


@pytest.mark.parametrize("noise, squares", [
    ({"kind": "gaussian", "sigma": 0.3}, False), ({"kind": "gaussian-guess", "guess": 0.3}, True),
    ({"kind": "bernoulli"}, False), ({"kind": "poisson", "about": 0.5}, False),
    ({"kind": "bounded", "low": 0.0, "high": 1.0, "spread": True}, False),
])  # fmt: skip
def test_no_point_of_a_cell_has_less_wealth_than_the_cell(noise: dict[str, Any], squares: bool) -> None:
    """Else a claim would be refuted that is true at a point nobody looked at."""
    kind, rng = checker.Kind(noise, 1, True), random.Random(1)
    kind.squares, kind.weight, kind.origin = squares, [1.0], 0.4
    for _ in range(200):
        n, low = rng.randint(1, 60), rng.uniform(0.0, 0.9)
        total, high = float(rng.randint(0, n)), low + rng.uniform(0.0, 0.1)
        off = total - n * kind.origin
        sums = (n, n, total, rng.uniform(0.0, n / 4), n, off, rng.uniform(0.0, n) + off * off / n)
        for sign, cell in ((1, (high, low)), (-1, (low, high))):
            least = kind.wager(sums, cell, sign, checker.NEAR)
            for z in (low, 0.7 * low + 0.3 * high, 0.5 * (low + high), high):
                assert least <= kind.wager(sums, (z, z), sign, checker.NEAR) + 1e-9


def test_what_is_no_number_refutes_nothing() -> None:
    """Far out a sum of bets may be the difference of two infinite ones."""
    for evidence, shown in ((2.0, True), (0.5, False), (math.nan, False)):
        assert checker.everywhere(1.0, [0.0, 1.0], lambda x, y, e=evidence: e) is shown  # type: ignore[misc]


@pytest.mark.parametrize("signals", ["any", "independent"])
@pytest.mark.parametrize("binary", [False, True])
def test_no_bar_of_a_cell_has_less_wealth_than_the_cell(signals: str, binary: bool) -> None:
    """The same for lines, Lemmas 4 and 5, along a study: over its cells, parts of them and bars in them."""
    design, rng = SurefootLinear(), random.Random(2)
    p = problem(binary=binary, signals=signals, tolerance=0.1)
    theorem: Any = THEOREMS[theorem_of(design)](p.to_dict(), {})
    for _, _, given, _ in played(p, subjects(p).truth, design, 5, 12):
        theorem.take(given)
        for _ in range(10):
            low = rng.uniform(0.05, 0.9)
            high, arm, named = low + rng.uniform(0.0, 0.09), rng.randrange(3), rng.choice((None, 0, 1))
            least = theorem.wealth(arm, low, high, named)
            middle = 0.5 * (low + high)
            for x, y in ((low, low), (low, middle), (middle, middle), (middle, high), (high, high)):
                assert least <= theorem.wealth(arm, x, y, named) + 1e-9


def test_readings_at_an_angle_have_their_least_in_between() -> None:
    p = problem(signals="independent")
    theorem: Any = THEOREMS["surefoot-linear/6"](p.to_dict(), {})
    found = theorem.cone(0.2, 0.8, 1.0, 1.0, -1.0), theorem.cone(0.2, 0.8, 1.0, -1.0, 1.0)
    points = [[theorem.cone(u, u, 1.0, y, -y) for u in np.linspace(0.2, 0.8, 601)] for y in (1.0, -1.0)]
    assert found == pytest.approx([min(x) for x in points])


def test_stages_that_went_back_and_forth_count_as_they_were_published() -> None:
    """After corrections that undo each other a stage goes on with what it had, although others were tried since: a
    cohort says with which one its stage began. Once the design counted those pulls, and the checker did not."""
    p = problem("monotonic", sigma=0.1, tolerance=0.2)
    study = Study.create("sqlite://", "s", p, make("safebai-monotonic", unit=1.0), seed=2, watch="warn")
    people, cohorts = subjects(p, 102), []

    def tell(short: int = 0) -> list[Any]:
        asked = study.ask()
        rows = people.rows(asked)
        study.tell_many(
            [row | ({"dose": 0.9, "confirm": "so it was"} if k < short else {}) for k, row in enumerate(rows)]
        )
        cohorts.append(asked)
        return asked

    while max(a.dose for a in study.ask()) == 0.0:
        tell()
    tell(short=1)  # one got another dose: the stage lacks a pull
    began = study.view.cohorts[-1]
    first, was = cohorts[-2][0], people.read(cohorts[-2][0])["harm"]
    study.correct(first.id, harm=was + 1.0, reason="typo")
    assert study.view.cohorts[-1].stakes != began.stakes, "it goes back"
    tell()
    study.correct(first.id, harm=was, reason="it was right")
    view = study.view
    assert view.cohorts[-1].stakes == began.stakes and sum(view.cohorts[-1].n) == 1, "and on, with what it had"
    tell()
    theorem: Any = view.theorem
    assert list(theorem.estimates(0)) and not [e for e in study.log() if e.kind == "paused"]
    assert study.verify()["ok"] and checker.check(study.log())["ok"]
    # another beginning would count other pulls
    events = study.log()
    opened = [k for k, e in enumerate(events) if e.kind == "opened"]
    for wrong in (1, 99, 0):
        data = events[opened[-2]].data
        data["stakes"] = [row and [*row[:2], wrong] for row in data["stakes"]]
        assert not checker.check(chained(events, opened[-2], json.dumps(data)))["ok"]


def test_two_fifths_of_the_stake_are_on_one_size_for_all_arms(monkeypatch: Any) -> None:
    """Lemma 5: 0.6 of what is bet apart is left where that bet is lost, and no more."""
    theorem: Any = THEOREMS["surefoot-linear/6"](problem().to_dict(), {})
    monkeypatch.setattr(theorem, "logs", lambda *_: (0.0, 0.0))
    monkeypatch.setattr(theorem, "sides", lambda *_: (-1e6, -1e6))
    assert theorem.wealth(0, 0.5, 0.5, None) == pytest.approx(math.log(0.6))
