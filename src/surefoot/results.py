"""What came of many trials: sums and exact counts, and where it was asked for one number a trial.

Sums of one part added to those of another are those of both, exactly and in any order: whole numbers and fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import SurefootError
from .designs.base import Design
from .problem import Problem
from .scenario import Scenario, Truth, hair
from .trace import Trace

Array = NDArray[Any]
DOSE_BINS = 5  # pulls are counted by dose range, in so many equal parts of start to largest safe dose, and above it
COLUMNS: dict[str, Any] = {  # of every trial, and what stands there before it has ended
    "pulls": 0, "rounds": 0, "ending": 0, "winner": -1,
    "safe": np.nan,  # the winner's dose shown to be safe, nan where there is no winner
    "recommended": -1,  # the arm to use if it had to end there: the winner, or what is supported best
    "dose": np.nan,  # the dose of it that seems to be the largest safe one
    "p": 1.0,  # the error probability that the data support for that arm
    "unsafe_pulls": 0,  # above the limit, plus slack where there is one
    "over_pulls": 0,  # above the limit
    "excess": 0.0,  # harm above the limit, summed over those pulls
}  # fmt: skip


def dose_edges(problem: Problem, truth: Truth) -> Array:
    """(DOSE_BINS, arms): from which dose on a pull belongs to the next part of the way from the start to the largest
    safe dose; the last part lies above it, and all doses of an arm without a safe one do. Ordered levels are counted
    one by one."""
    if problem.shape == "levels":
        assert problem.levels is not None
        return np.arange(1.0, problem.levels.shape[1])[:, None] + np.zeros(len(problem.arms))
    width = truth.dose - problem.starts
    edges = np.array([problem.starts + np.where(width > 0, width, np.inf) * k / DOSE_BINS for k in range(1, DOSE_BINS)])
    above = np.nextafter(truth.dose * (1 + 1e-12 * np.sign(truth.dose)), np.inf)
    return np.where(np.isnan(truth.dose), -np.inf, np.concatenate([edges, above[None]]))


def good_arms(problem: Problem, truth: Truth) -> Array:
    """Arms that may be named: the best, and with a tolerance those within it."""
    value, best = truth.value, truth.value.max()
    short = best - (problem.tolerance or 0.0) - hair(best)
    good: Array = (value >= short) & ~np.isneginf(value)
    return good


def no_single_best(problem: Problem, truth: Truth) -> str | None:
    """In words, where there is not one best arm to be found; None where there is."""
    good = [name for name, yes in zip(problem.names, good_arms(problem, truth), strict=True) if yes]
    if not good:
        return "no arm is safe: whatever is named is wrong, and right is only that all are stopped"
    every = len(good) == len(problem.arms) > 1
    if problem.tolerance:
        return "all arms are within the tolerance of the best, so that any is right to name" if every else None
    which = "all arms" if every else " and ".join(good)
    equal = f"{which} are equally the best: any of these is right to name, and only a tolerance or a budget ends it"
    return equal if len(good) > 1 else None


@dataclass
class Sums:
    """Over trials. `pulls` says how many trials made so many pulls; `counts` of trials or pulls by what they are."""

    trials: int = 0
    pulls: Counter[int] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    most_rounds: int = 0
    excess: Fraction = Fraction(0)
    share: Fraction = Fraction(0)  # of the way to its largest safe dose that the winner is shown to be safe for
    by_arm: Any = 0  # pulls, see `Result.by_arm`

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.trials + other.trials, self.pulls + other.pulls, self.counts + other.counts,
            max(self.most_rounds, other.most_rounds), self.excess + other.excess, self.share + other.share,
            self.by_arm + other.by_arm,
        )  # fmt: skip

    def quantile(self, q: float) -> float:
        """Of the pulls, as NumPy has it."""
        values = np.array(sorted(self.pulls))
        last = np.cumsum([self.pulls[x] for x in values.tolist()]) - 1  # the place of the last trial with that value
        at = q * (self.trials - 1)
        low, high = values[np.searchsorted(last, [np.floor(at), np.ceil(at)])].tolist()
        return float(low + (high - low) * (at - np.floor(at)))

    @property
    def mean(self) -> float:
        return sum(x * k for x, k in self.pulls.items()) / self.trials

    @property
    def sd(self) -> float:
        """From whole numbers, so that nothing cancels."""
        total, squares = (sum(x**power * k for x, k in self.pulls.items()) for power in (1, 2))
        more = self.trials * squares - total**2
        return float(more / (self.trials * (self.trials - 1))) ** 0.5 if self.trials > 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON, exactly."""
        counts = {key: count for key, count in sorted(self.counts.items()) if count}
        return {
            "trials": self.trials, "pulls": sorted(self.pulls.items()), "counts": counts,
            "most_rounds": self.most_rounds, "excess": str(self.excess), "share": str(self.share),
            "by_arm": np.asarray(self.by_arm).tolist(),
        }  # fmt: skip

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Sums:
        fractions = {key: Fraction(data[key]) for key in ("excess", "share")}
        pulls = Counter({int(x): int(k) for x, k in data["pulls"]})
        return Sums(
            **dict(data) | fractions
            | {"pulls": pulls, "counts": Counter(data["counts"]), "by_arm": np.array(data["by_arm"], dtype=np.int64)}
        )  # fmt: skip


@dataclass(frozen=True)
class Marks:
    """How each of some trials is judged, from their columns."""

    problem: Problem
    scenario: Scenario
    truth: Truth
    columns: Mapping[str, Array]

    @property
    def wrong(self) -> Array:
        """Trials that named an arm that is not the best (nor within the tolerance of it), or has no safe dose."""
        winner = self.columns["winner"]
        wrong: Array = (winner >= 0) & ~good_arms(self.problem, self.truth)[np.maximum(winner, 0)]
        return wrong

    @property
    def unsafe(self) -> Array:
        unsafe: Array = self.columns["unsafe_pulls"] > 0
        return unsafe

    @property
    def recommended_best(self) -> Array:
        arm = self.columns["recommended"]
        best: Array = (arm >= 0) & good_arms(self.problem, self.truth)[np.maximum(arm, 0)]
        return best

    @property
    def recommended_over(self) -> Array:
        """Trials whose recommended dose is above the limit."""
        arm, dose = self.columns["recommended"], np.nan_to_num(self.columns["dose"])
        over, limit = np.zeros(len(arm), bool), self.problem.limit + hair(self.problem.limit)
        for k in range(len(self.problem.arms)):
            mine = np.flatnonzero(arm == k)
            at = np.repeat(self.problem.starts[None], len(mine), axis=0)
            at[:, k] = dose[mine]
            over[mine] = self.scenario.harms(at)[:, k] > limit
        return over

    @property
    def share(self) -> Array:
        """How far the winner is shown to be safe, on the way to its largest safe dose; nan where that has no sense."""
        winner = self.columns["winner"]
        start, largest = self.problem.starts[winner], self.truth.dose[winner]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(largest > start, (self.columns["safe"] - start) / (largest - start), 1.0)
        return np.where((winner >= 0) & np.isfinite(largest), share, np.nan)

    def sums(self, by_arm: Any, part: int) -> Sums:
        """Fractions are summed part by part, so that they do not depend on which parts came together."""
        c, p = self.columns, self.problem
        wrong, unsafe, share = self.wrong, self.unsafe, self.share
        found = {
            "named best": (c["winner"] >= 0) & ~wrong, "wrong": wrong, "unsafe": unsafe, "failed": wrong | unsafe,
            "recommended best": self.recommended_best, "recommended over": self.recommended_over,
            "shares": ~np.isnan(share), "rounds": c["rounds"], "over pulls": c["over_pulls"],
            "unsafe pulls": c["unsafe_pulls"],
        }  # fmt: skip
        counts = Counter({key: int(x.sum()) for key, x in found.items()})
        counts.update({f"ending {k}": int(n) for k, n in enumerate(np.bincount(c["ending"]))})
        for k, arm in enumerate(p.arms):
            dose = c["dose"][c["recommended"] == k]
            if arm.labels is None:
                counts[f"selected {k}"] = len(dose)
            else:
                counts.update({f"selected {k} {j}": int((dose == j).sum()) for j in range(len(arm.labels))})
        values, times = np.unique(c["pulls"], return_counts=True)
        pulls = Counter(dict(zip(values.tolist(), times.tolist(), strict=True)))
        starts = np.arange(0, len(wrong), part)
        excess, way = (
            sum(map(Fraction, np.add.reduceat(x, starts).tolist()), Fraction(0))
            for x in (c["excess"], np.nan_to_num(share))
        )
        return Sums(len(wrong), pulls, counts, int(c["rounds"].max()), excess, way, by_arm)


@dataclass(frozen=True)
class Result:
    """What came of the trials of one run. The columns, one number a trial, are there where they were kept.

    Examples
    --------
    >>> from surefoot import case, make, simulate
    >>> result = simulate(*case("paper-linear", 2), make("safebai-linear"), 20, seed=1, progress=False)
    >>> result
    <Result: safebai-linear on paper-linear, 20 trials, seed 1, mean pulls ...>
    >>> int(result.wrong.sum()), int(result.unsafe.sum())
    (0, 0)
    """

    problem: Problem
    scenario: Scenario
    design: Design
    seed: int
    truth: Truth
    sums: Sums
    seconds: float  # of one core
    columns: Mapping[str, Array] | None = None
    trace: Trace | None = None

    def __repr__(self) -> str:
        return (
            f"<Result: {self.design.label} on {self.scenario.name}, {self.trials:,} trials, seed {self.seed}, "
            f"mean pulls {self.sums.mean:,.0f}>"
        )

    def _repr_html_(self) -> str:
        from .characteristics import Characteristics

        return Characteristics(self)._repr_html_()

    @property
    def trials(self) -> int:
        """How many trials were simulated."""
        return self.sums.trials

    @property
    def good(self) -> Array:
        """Of every arm, whether it may be named."""
        return good_arms(self.problem, self.truth)

    @property
    def by_arm(self) -> Array:
        """(arms, DOSE_BINS + 1): pulls summed over trials, by dose range; with ordered levels (arms, levels)."""
        return np.asarray(self.sums.by_arm)

    def __getattr__(self, name: str) -> Array:
        """A column by its name: pulls, rounds, ending, winner, ... (see COLUMNS)."""
        columns = vars(self).get("columns")
        if name not in COLUMNS and name not in (columns or ()):
            raise AttributeError(f"a Result has no {name!r}")
        if columns is None:
            raise SurefootError(
                f"{name} of every trial was not kept: simulate(..., keep=True), or --keep FILE on the command line"
            )
        column: Array = columns[name]
        return column

    @cached_property
    def marks(self) -> Marks:
        if self.columns is None:
            return Marks(self.problem, self.scenario, self.truth, {"winner": self.winner})  # says what to do
        return Marks(self.problem, self.scenario, self.truth, self.columns)

    @property
    def wrong(self) -> Array:
        """Of every trial, whether it named an arm that is not the best (nor within the tolerance of it)."""
        return self.marks.wrong

    @property
    def unsafe(self) -> Array:
        """Of every trial, whether it made a pull above the limit, plus slack where there is one."""
        return self.marks.unsafe
