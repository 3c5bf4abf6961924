"""A cell: so many trials of one design on one instance of the paper, with the regret of each on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..catalogue import case
from ..designs import Design, find, make
from ..designs.base import ENDINGS, State
from ..play import Job, Watch
from ..plots import axis_of
from ..problem import Problem
from ..scenario import Scenario
from ..simulate import Array, Result, Run

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

    def setup(self) -> tuple[Problem, Scenario, Design]:
        changes: dict[str, Any] = {"delta": self.delta, "budget": self.cap}
        if self.slack is not None:
            changes["slack"] = self.slack
        problem, scenario = case(self.scenario, self.arms, **changes)
        # The best arm comes last, so that no design has it from breaking ties by the order of the arms.
        problem = problem.but(arms=problem.arms[::-1])
        scenario = replace(scenario, effect=scenario.effect[::-1], harm=scenario.harm[::-1])
        return problem, scenario, design_for(self.design, problem, scenario)

    def run(self, rounds: int | None = None) -> Run:
        """To be simulated; `rounds`: about how many decisions a trial takes."""
        return Run(*self.setup(), self.trials, self.seed, watch=Regret(), rounds=rounds)


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

    @staticmethod
    def of(cell: Cell, result: Result) -> Ran:
        return Ran(
            cell, result.pulls, result.ending, result.wrong, result.unsafe, result.over_pulls, axis_of(AXIS),
            result.regret, result.seconds,
        )  # fmt: skip


class Regret(Watch):
    """Notes the simple regret of every trial on an axis of pulls as it goes.

    A trace of every round would do too, but a design that decides after every pull has hundreds of thousands.
    Before its first decision a design would name an arm at random, at its start dose.
    """

    def __repr__(self) -> str:
        return f"regret up to {AXIS}"

    def begin(self, job: Job) -> None:
        self.at, self.effects, self.best = axis_of(AXIS), job.scenario.effects, float(job.truth.value.max())
        self.first = self.best - float(job.scenario.effects(job.problem.starts).mean())
        self.curve = np.full((job.trials, len(self.at) + 1), np.nan)
        self.curve[:, 0] = self.first

    def note(self, rows: Array, state: State) -> None:
        named = self.effects(state.safe)[np.arange(len(rows)), state.guess]
        decided = state.rounds > 0
        column = np.where(decided, np.searchsorted(self.at, state.pulls), 0)  # the last decision up to here stands
        self.curve[rows, column] = np.where(decided, self.best - named, self.first)

    def columns(self) -> dict[str, Array]:
        """(trials, points): a gap holds the value before it."""
        seen = np.where(np.isnan(self.curve), 0, np.arange(self.curve.shape[1]))
        filled = np.take_along_axis(self.curve, np.maximum.accumulate(seen, axis=1), axis=1)
        return {"regret": filled[:, :-1]}
