"""The four figures of Wang, Wagenmaker and Jamieson's experiments: which cells make each, and its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..catalogue import CASES
from ..designs import DESIGNS
from ..designs import find as design_of
from ..plots import Bound, Pulls, Regret, pulls_line, regret_curve
from ..problem import SurefootError, choice, number
from ..simulate import Array
from .cells import Cell, Ran


@dataclass(frozen=True)
class Figure:
    name: str
    scenario: str
    kind: str  # pulls or regret
    arms: tuple[int, ...]
    trials: int
    caption: str


FIGURES = {
    it.name: it
    for it in (
        Figure("linear-pulls", "paper-linear", "pulls", (5, 10, 20), 10, "Pulls to termination, linear model"),
        Figure("linear-regret", "paper-linear", "regret", (10,), 10, "Simple regret, linear model"),
        Figure("drug-pulls", "paper-drug", "pulls", (3, 5, 10, 20), 20, "Pulls to termination, drug response model"),
        Figure("drug-regret", "paper-drug", "regret", (20,), 20, "Simple regret, drug response model"),
    )
}
QUICK = {"linear-pulls": (5, 10), "linear-regret": (10,), "drug-pulls": (3, 5), "drug-regret": (5,)}
CAP, QUICK_CAP, QUICK_TRIALS = 1_000_000, 20_000, 5
ONE_BY_ONE = ("safeopt", "stageopt", "safe-lts")  # decide after every pull, so they take long to run
LIPSCHITZ = "safeopt:expanders=lipschitz:lipschitz=0.25"  # the steepest slope of the drug model's harm
DEFAULT = {  # the oracle last, as it is not in all figures: so that a design has one colour
    "paper-linear": ("safebai-linear", "surefoot-linear", "safeopt", "safe-lts", "oracle"),
    "paper-drug": (
        "safebai-monotonic", "surefoot-monotonic", "safeopt", LIPSCHITZ, "safebai-monotonic:schedule=paper", "oracle",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What to reproduce. `designs`: specs (see `design_for`), by default those of the paper and ours."""

    figures: tuple[str, ...] = tuple(FIGURES)
    trials: int | None = None  # by default the paper's: 10 in the linear model, 20 in the drug model
    delta: float = 0.1
    slack: float = 0.2
    designs: tuple[str, ...] | None = None
    seed: int = 1
    quick: bool = False

    def __post_init__(self) -> None:
        for name in self.figures:
            choice("figure", name, FIGURES)
        for spec in self.designs or ():
            design_of(spec)
        number("trials", self.trials or 1, least=1)
        number("seed", self.seed, least=0)
        for cell in self.cells:  # what does not fit is refused before anything runs
            problem, _, design = cell.setup()
            design.start(problem)
        if not self.cells:
            raise SurefootError(f"none of {', '.join(self.designs or ())} is for {', '.join(self.figures)}")

    @property
    def chosen(self) -> list[Figure]:
        figures = [FIGURES[name] for name in dict.fromkeys(self.figures)]
        return [replace(it, arms=QUICK[it.name], trials=QUICK_TRIALS) if self.quick else it for it in figures]

    def specs(self, it: Figure) -> list[str]:
        """The designs of a figure: those of the other shape are left out, and regret is not the oracle's."""
        shape = CASES[it.scenario].make(2)[0].shape
        wanted = self.designs or [
            spec
            for spec in DEFAULT[it.scenario]
            if spec.split(":")[0] in DESIGNS and not (spec == "oracle" and it.kind == "regret")
        ]
        return [spec for spec in dict.fromkeys(wanted) if DESIGNS[design_of(spec)[0]].shape in ("any", shape)]

    def cells_of(self, it: Figure) -> dict[tuple[str, int], Cell]:
        """By spec and number of arms."""
        slack = self.slack if it.scenario == "paper-drug" else None
        cells = {}
        for spec in self.specs(it):
            cap = QUICK_CAP if self.quick and spec.split(":")[0] in ONE_BY_ONE else CAP
            for d in it.arms:
                trials = self.trials or it.trials
                cells[spec, d] = Cell(it.scenario, d, spec, trials, self.seed, self.delta, slack, cap)
        return cells

    @property
    def cells(self) -> list[Cell]:
        return list(dict.fromkeys(cell for it in self.chosen for cell in self.cells_of(it).values()))


Runs = Mapping[Cell, Ran]


def label(spec: str) -> str:
    """safeopt (lipschitz) for safeopt:expanders=lipschitz"""
    name, *options = spec.split(":")
    values = [option.partition("=")[2] for option in options]
    return f"{name} ({', '.join(values)})" if values else name


def pulls_of(plan: Plan, it: Figure, runs: Runs) -> tuple[list[Pulls], list[Bound]]:
    """The lines of a pulls figure: measured, and what the theorems say."""
    from ..theory import summary

    cells = plan.cells_of(it)
    lines = []
    for spec in plan.specs(it):
        rans = [runs[cells[spec, d]] for d in it.arms]
        lines.append(pulls_line(label(spec), it.arms, [r.pulls for r in rans], [r.capped for r in rans]))
    if not cells:
        return lines, []
    told = [summary(*next(iter(plan.cells_of(replace(it, arms=(d,))).values())).setup()[:2]) for d in it.arms]
    names = {
        "upper_bound": "upper bound, Algorithm 1" if it.scenario == "paper-linear" else "upper bound, Algorithm 2",
        "certified_bound": "lower bound, doses certified",
        "characteristic_time": "characteristic time",
        "lower_bound": "lower bound",
    }
    bounds = [
        Bound(name, np.array(it.arms), np.array([one[key]["pulls"] for one in told]))
        for key, name in names.items()
        if all("pulls" in one[key] for one in told)
    ]
    return lines, bounds


def regret_lines(plan: Plan, it: Figure, runs: Runs) -> list[Regret]:
    cells = plan.cells_of(it)
    rans = {spec: runs[cells[spec, it.arms[0]]] for spec in plan.specs(it)}
    most = max(float(ran.pulls.max()) for ran in rans.values())
    curves = []
    for spec, ran in rans.items():
        shown: Array = ran.at <= (ran.cell.cap if ran.capped.any() else most * 1.2)
        ended = float("nan") if ran.capped.any() else float(ran.pulls.mean())
        curves.append(regret_curve(label(spec), ran.at[shown], ran.regret[:, shown], ended))
    return curves


def find(runs: Runs, scenario: str, spec: str) -> dict[int, Ran]:
    """What was run of a design on an instance, by number of arms."""
    found = {c.arms: ran for c, ran in runs.items() if (c.scenario, c.design) == (scenario, spec)}
    return dict(sorted(found.items()))
