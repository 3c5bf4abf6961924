"""A cell: so many trials of one design on one instance of the paper. It is run once, kept as a JSON file, and read back
when the same cell is asked for again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..catalogue import case
from ..designs import DESIGNS, Cohort, Design, Outcome, Verdict, find, make
from ..designs.base import ENDINGS, RUNNING
from ..plots import axis_of
from ..problem import Problem
from ..scenario import Scenario
from ..simulate import Array, simulate

AXIS = 1_000_000  # regret is noted up to so many pulls
GRID_TOP = -0.5  # the largest dose of the paper's drug model; only a grid of doses can have used it


def settings(name: str, problem: Problem, scenario: Scenario) -> dict[str, Any]:
    """Options that a design cannot know by itself: what the oracle is told, and the paper's grid on its drug model."""
    if name == "oracle":
        return {"doses": tuple(float(x) for x in scenario.truth(problem).dose)}
    if name in ("safeopt", "stageopt") and scenario.name == "paper-drug":
        return {"top": GRID_TOP}
    return {}


def design_for(spec: str, problem: Problem, scenario: Scenario) -> Design:
    """A design from its name and options, such as `safeopt:expanders=lipschitz:grid=30`."""
    name, options = find(spec)
    return make(name, **settings(name, problem, scenario) | options)


@cache
def code(design: str) -> str:
    """The version, and a digest of the source that decides what comes out: of what simulates, of the design, and of all
    that these import. What other code ran is not taken for what this code would do."""
    package, found = __name__.split(".")[0], set[str]()
    waiting = {simulate.__module__, case.__module__, DESIGNS[design].__module__}
    while waiting:
        found.add(name := waiting.pop())
        used = {str(getattr(it, "__module__", "")) for it in vars(sys.modules[name]).values()}
        waiting |= {it for it in used - found if it.split(".")[0] == package}
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(Path(str(sys.modules[name].__file__)).read_bytes())
    return f"{__version__}+{digest.hexdigest()[:10]}"


@dataclass(frozen=True)
class Cell:
    """What to run. Two cells that differ in any of these are different cells."""

    scenario: str
    arms: int
    design: str  # a spec, see `design_for`
    trials: int
    seed: int
    delta: float
    slack: float | None
    cap: int  # the most pulls of a trial
    code: str = ""  # by default that of now

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", self.code or code(find(self.design)[0]))

    @property
    def file(self) -> str:
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:10]
        design = re.sub(r"[:/]+", "_", self.design)
        return f"{self.scenario}-{self.arms}-{design}-{digest}.json"

    def setup(self) -> tuple[Problem, Scenario, Design]:
        changes: dict[str, Any] = {"delta": self.delta, "budget": self.cap}
        if self.slack is not None:
            changes["slack"] = self.slack
        problem, scenario = case(self.scenario, self.arms, **changes)
        # The best arm comes last, so that no design has it from breaking ties by the order of the arms.
        problem = problem.but(arms=problem.arms[::-1])
        scenario = replace(scenario, effect=scenario.effect[::-1], harm=scenario.harm[::-1])
        return problem, scenario, design_for(self.design, problem, scenario)


@dataclass(frozen=True)
class Ran:
    """What came of a cell. Arrays are one number a trial; regret is (trials, points) at the pulls `at`."""

    cell: Cell
    pulls: Array
    ending: Array  # index into ENDINGS
    wrong: Array
    unsafe: Array
    over: Array  # pulls above the limit
    at: Array
    regret: Array
    seconds: float

    @property
    def capped(self) -> Array:
        capped: Array = self.ending == ENDINGS.index("budget-spent")
        return capped

    def save(self, folder: Path) -> None:
        numbers = {key: getattr(self, key).tolist() for key in ARRAYS}
        text = json.dumps({"cell": asdict(self.cell), "seconds": self.seconds, **numbers})
        half = folder / (self.cell.file + ".part")
        half.write_text(text, encoding="utf-8")
        os.replace(half, folder / self.cell.file)  # a cell is there whole or not at all


ARRAYS = ("pulls", "ending", "wrong", "unsafe", "over", "at", "regret")


def kept(cell: Cell, folder: Path) -> Ran | None:
    """The cell from an earlier run; None where there is none. One that cannot be read is run again, with a warning."""
    path = folder / cell.file
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if Cell(**data["cell"]) != cell:
            raise ValueError("it holds another cell")
        arrays = {key: np.array(data[key]) for key in ARRAYS}
        sizes = {len(arrays[key]) for key in ARRAYS if key != "at"}
        if sizes != {cell.trials} or arrays["regret"].shape != (cell.trials, len(arrays["at"])):
            raise ValueError("its numbers are not complete")
        return Ran(cell, seconds=float(data["seconds"]), **arrays)
    except (ValueError, KeyError, TypeError) as error:
        warnings.warn(f"{path} is damaged ({error}); running it again", stacklevel=2)
        return None


def run(cell: Cell, report: Callable[[int, int], None] = lambda pulls, left: None) -> Ran:
    """Play it. `report` is told now and then how many pulls the trials have made and how many trials go on."""
    problem, scenario, design = cell.setup()
    watched = Watched(design, problem, scenario, axis_of(AXIS), report)
    result = simulate(problem, scenario, watched, cell.trials, cell.seed, progress=False)
    return Ran(
        cell, result.pulls, result.ending, result.wrong, result.unsafe, result.over_pulls, watched.at,
        watched.regret(cell.trials), result.seconds,
    )  # fmt: skip


class Watched(Design):
    """Plays as the design inside it, and notes the simple regret of every trial on an axis of pulls as it goes.

    A trace of every round would do too, but a design that decides after every pull has hundreds of thousands.
    Before its first decision a design would name an arm at random, at its start dose.
    """

    def __init__(
        self, inner: Design, problem: Problem, scenario: Scenario, at: Array, report: Callable[[int, int], None]
    ) -> None:
        self.inner, self.at, self.report = inner, at, report
        self.name, self.chunk, self.draws = inner.name, inner.chunk, inner.draws  # type: ignore[misc]
        self.effects, self.best = scenario.effects, float(scenario.truth(problem).value.max())
        self.first = self.best - float(scenario.effects(problem.starts).mean())
        self.curves: list[Array] = []  # one for every time that trials were started, (trials, points + 1)
        self.told = time.monotonic()

    def start(self, problem: Problem, trials: int = 1, xp: Any = np) -> Any:
        state = self.inner.start(problem, trials, xp)
        self.rows, self.running = np.arange(trials), state.ending == RUNNING
        self.curves.append(np.full((trials, len(self.at) + 1), np.nan))
        self.curves[-1][:, 0] = self.first
        return state

    def ask(self, state: Any, u: Array | None = None) -> Cohort:
        return self.inner.ask(state, u)

    def tell(self, state: Any, cohort: Cohort, outcome: Outcome) -> Any:
        if len(state.pulls) < len(self.rows):  # ended trials have been taken out of the batch
            self.rows = self.rows[self.running]
        new = self.inner.tell(state, cohort, outcome)
        self.running = new.ending == RUNNING
        each = np.arange(len(new.pulls))
        named = self.effects(new.safe)[each, new.guess]
        decided = new.rounds > 0
        column = np.where(decided, np.searchsorted(self.at, new.pulls), 0)  # the last decision up to here stands
        self.curves[-1][self.rows, column] = np.where(decided, self.best - named, self.first)
        if time.monotonic() > self.told + 1:
            self.told = time.monotonic()
            self.report(int(new.pulls.max()), int(self.running.sum()))
        return new

    def regret(self, trials: int) -> Array:
        """Of the last so many trials that were started, (trials, points): a gap holds the value before it."""
        curve = np.concatenate(self.curves)[-trials:]
        seen = np.where(np.isnan(curve), 0, np.arange(curve.shape[1]))
        return np.take_along_axis(curve, np.maximum.accumulate(seen, axis=1), axis=1)[:, :-1]

    def verdict(self, state: Any) -> Verdict:
        return self.inner.verdict(state)

    def begin(self, problem: Problem, trials: int, xp: Any) -> Any:
        return self.inner.begin(problem, trials, xp)

    def plan(self, state: Any, u: Array) -> Cohort:
        return self.inner.plan(state, u)

    def learn(self, state: Any, cohort: Cohort, outcome: Outcome) -> Any:
        return self.inner.learn(state, cohort, outcome)
