"""Pictures of simulations: pulls against arms, simple regret, many scenarios side by side; `story` and `responses` of
one trial or study are in `pictures`.

Each has a function that computes its data from simulated results (`..._data`) and one that draws them, so that the data
can be drawn some other way too. Every drawing function returns a matplotlib Figure, and writes it where `path` says.
The pictures are made for half a page's width: small, no title, the legend outside, colours and markers that the
colour-blind can tell apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .characteristics import Characteristics
from .designs.base import BUDGET_SPENT
from .pictures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    blank_figure,
    counts,
    plain_axes,
    responses,
    saved,
    story,
    story_data,
)  # fmt: skip
from .problem import SurefootError
from .simulate import Array, Result

BLACK = "#000000"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
MARKERS = "osD^vPX*"
OURS = dict.fromkeys(("surefoot-linear", "surefoot-monotonic", "surefoot-levels"), BLUE)
PAPER = dict.fromkeys(("safebai-linear", "safebai-monotonic"), RED)
OTHERS = {"safeopt": GREEN, "stageopt": PURPLE, "safe-lts": ORANGE, "boin": GREEN, "three-plus-three": ORANGE,
          "track-and-stop": SKY, "oracle": GREY, "unconstrained": BLACK}  # fmt: skip
WIDTH = 3.4  # inches: half a page
SMALL: dict[Any, Any] = {
    "font.size": 8,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "svg.hashsalt": "surefoot",
    "svg.fonttype": "none",
}


def _legend(names: Sequence[str]) -> dict[str, Any]:
    """Two columns where names are short enough for half a page; handles so long that a dashed line is seen as one."""
    short = max(map(len, names), default=0) <= 24
    return {"loc": "outside lower center", "ncols": 2 if short else 1, "fontsize": 6.5, "frameon": False,
            "handlelength": 2.8, "columnspacing": 0.8}  # fmt: skip


def _rows(names: Sequence[str]) -> float:
    """Inches for them."""
    return 0.16 * -(-len(names) // int(_legend(names)["ncols"]))


def looks(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Colour, marker and line of each design: a design has one colour in every figure, its variants other lines."""
    fixed, used, found = OURS | PAPER | OTHERS, dict[str, int](), []
    bases = [re.split(r"[:( ]", name)[0] for name in names]
    free = [c for c in (PURPLE, ORANGE, SKY, BLACK, GREY, GREEN) if c not in {fixed.get(base) for base in bases}]
    for base in bases:
        if base not in fixed:
            fixed[base] = free[(len(fixed) - len(OURS | PAPER | OTHERS)) % len(free)] if free else GREY
        k = used[base] = used.get(base, -1) + 1
        found.append(
            (fixed[base], MARKERS[(list(fixed).index(base) + k) % len(MARKERS)], ("-", "--", ":", "-.")[k % 4])
        )
    return found


# Pulls against arms


@dataclass(frozen=True)
class Pulls:
    """How many pulls one design took, by number of arms. A run that hit its cap counts as the cap: a lower bound."""

    name: str
    arms: Array
    mean: Array
    sd: Array
    trials: Array
    capped: Array  # how many trials hit the cap


@dataclass(frozen=True)
class Bound:
    """What a theorem says, by number of arms."""

    name: str
    arms: Array
    pulls: Array


def pulls_data(results: Iterable[Result]) -> list[Pulls]:
    """One line a design, from results on problems with different numbers of arms."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.design.label, []).append(result)
    return [
        pulls_line(
            name, [len(r.problem.arms) for r in rs], [r.pulls for r in rs], [r.ending == BUDGET_SPENT for r in rs]
        )
        for name, rs in groups.items()
    ]


def pulls_line(name: str, arms: Sequence[int], pulls: Sequence[Array], capped: Sequence[Array]) -> Pulls:
    order = np.argsort(arms)
    columns = [
        (arms[k], pulls[k].mean(), pulls[k].std(ddof=1) if len(pulls[k]) > 1 else 0.0, len(pulls[k]), capped[k].sum())
        for k in order
    ]
    return Pulls(name, *(np.array(column) for column in zip(*columns, strict=True)))


def pulls(
    results: Sequence[Pulls | Result], bounds: Sequence[Bound] | str | Path = (), path: str | Path | None = None
) -> Any:
    """Mean pulls to the end with bars of one standard deviation; an arrow where runs hit their cap.

    Parameters
    ----------
    results
        Results of simulations with different numbers of arms, or what `pulls_data` made of them.
    bounds
        What theorems say, each a `Bound`.
    path
        Where to write it (.png, .svg or .pdf); it may come second, too.

    Returns
    -------
    matplotlib.figure.Figure
    """
    import matplotlib as mpl

    if isinstance(bounds, (str, Path)):
        path, bounds = bounds, ()
    lines = [x for x in results if isinstance(x, Pulls)] + pulls_data(x for x in results if isinstance(x, Result))
    with mpl.rc_context(SMALL):
        names = [*(line.name for line in lines), *(x.name for x in bounds), "some runs hit their cap"]
        figure = blank_figure(WIDTH, 2.5 + _rows(names))
        ticks = sorted({int(x) for line in lines for x in line.arms})
        axis, shown = figure.subplots(), []
        seen = looks([line.name for line in lines])
        for k, (line, (colour, marker, dash)) in enumerate(zip(lines, seen, strict=True)):
            apart = 1.02 if len(ticks) > 1 else 1.3 ** (1 / max(len(lines) - 1, 1))
            at = line.arms * apart ** (k - (len(lines) - 1) / 2)  # side by side, so that no bar hides another
            low = np.minimum(line.sd, 0.999 * line.mean)
            bars = axis.errorbar(
                at, line.mean, [low, line.sd], color=colour, marker=marker, ls=dash, ms=3.5, lw=1, elinewidth=0.8,
                capsize=1.5, label=line.name,
            )  # fmt: skip
            shown.append(bars)
            for x, y in zip(at[line.capped > 0], line.mean[line.capped > 0], strict=True):
                arrow = {"arrowstyle": "<-", "color": colour, "lw": 1, "shrinkA": 0, "shrinkB": 0}
                axis.annotate("", (x, y), (0, 13), textcoords="offset points", arrowprops=arrow)
        for bound, style in zip(bounds, _cycle((":", "--", "-.")), strict=False):
            shown += axis.plot(bound.arms, bound.pulls, color=GREY, ls=style, lw=1, label=bound.name)
        if any(np.any(line.capped > 0) for line in lines):
            shown += axis.plot([], [], color=BLACK, lw=0, marker=r"$\uparrow$", label="some runs hit their cap")
            axis.margins(y=0.15)  # room for the arrows
        axis.set(xscale="log", xlabel="number of arms", ylabel="pulls to the end of a trial")
        counts(axis, "y", (1.0, 2.0, 5.0))
        axis.set_xticks(ticks, [str(x) for x in ticks])
        axis.set_xticks([], minor=True)
        axis.set_xlim(ticks[0] / 1.2, ticks[-1] * 1.2)
        axis.grid(axis="y", lw=0.3, color="#DDDDDD")
        plain_axes(figure, 7)
        figure.legend(handles=shown, **_legend(names))
        return saved(figure, path, dpi=300)


def _cycle(values: Iterable[Any]) -> Iterable[Any]:
    values = list(values)
    while True:
        yield from values


# Simple regret


@dataclass(frozen=True)
class Regret:
    """How far the arm that a design would name, at its safe dose, is from the best: mean over trials and its
    standard error, on a common axis of pulls. A trial that has ended holds its last value."""

    name: str
    pulls: Array
    mean: Array
    se: Array
    ended: float  # mean pulls to the end; nan where some runs hit their cap


def regret_data(result: Result, at: Array | None = None) -> Regret:
    """From a Result that was simulated with `trace=True`; `at`: the axis of pulls, by default 200 points, even in the
    logarithm. Before its first decision a design would name an arm at random, at its start dose."""
    t, p = result.trace, result.problem
    if t is None:
        raise SurefootError("regret needs the rounds of the trials: simulate with trace=True")
    if at is None:
        at = axis_of(int(result.pulls.max()))
    value = result.scenario.effects(t.safe)
    guessed = np.take_along_axis(value, t.guess[:, :, None], axis=2)[:, :, 0]
    start = float(result.scenario.effects(p.starts).mean())
    rows = []
    for k in range(result.trials):
        rounds = int(t.rounds[k])
        before = np.searchsorted(t.pulls[k, :rounds], at, side="right")
        rows.append(np.concatenate([[start], guessed[k, :rounds]])[before])
    ended = np.nan if np.any(result.ending == BUDGET_SPENT) else float(result.pulls.mean())
    return regret_curve(result.design.label, at, result.truth.value.max() - np.array(rows), ended)


def axis_of(most: int, points: int = 200) -> Array:
    """Whole numbers of pulls up to `most`, even in the logarithm."""
    return np.unique(np.geomspace(1, max(most, 2), points).round().astype(np.int64))


def regret_curve(name: str, at: Array, regrets: Array, ended: float) -> Regret:
    """From the regret of each trial, (trials, points)."""
    n = len(regrets)
    se = regrets.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(regrets.shape[1])
    return Regret(name, at, regrets.mean(axis=0), se, ended)


def regret(results: Sequence[Regret | Result], path: str | Path | None = None) -> Any:
    """Mean simple regret with bands of one standard error; a marker where the mean trial ends, an arrow where some runs
    hit their cap.

    Parameters
    ----------
    results
        Results that were simulated with `trace=True`, or what `regret_data` made of them.
    path
        Where to write it (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    import matplotlib as mpl

    curves = [x if isinstance(x, Regret) else regret_data(x) for x in results]
    with mpl.rc_context(SMALL):
        names = [curve.name for curve in curves]
        figure = blank_figure(WIDTH, 2.3 + _rows(names))
        axis = figure.subplots()
        for curve, (colour, marker, dash) in zip(curves, looks(names), strict=True):
            low, high = curve.mean - curve.se, curve.mean + curve.se
            axis.fill_between(
                curve.pulls, np.maximum(low, 1e-12), np.maximum(high, 1e-12), color=colour, alpha=0.2, lw=0
            )
            ends = np.isfinite(curve.ended)
            axis.plot(
                curve.pulls, curve.mean, color=colour, marker=marker, ls=dash, ms=4, label=curve.name,
                markevery=[min(int(np.searchsorted(curve.pulls, curve.ended)), len(curve.pulls) - 1)] if ends else [],
            )  # fmt: skip
            if not ends:
                axis.plot(curve.pulls[-1:], curve.mean[-1:], ">", color=colour, ms=4)
        least = min((float(c.mean[c.mean > 0].min()) for c in curves if np.any(c.mean > 0)), default=1e-3)
        axis.set(
            xscale="log",
            yscale="log",
            xlabel="pulls so far (marker: mean end of a trial)",
            ylabel="simple regret (effect)",
        )
        axis.set_ylim(bottom=max(0.7 * least, 1e-4))
        axis.grid(axis="y", lw=0.3, color="#DDDDDD")
        plain_axes(figure, 7)
        figure.legend(**_legend(names))
        return saved(figure, path, dpi=300)


# Operating characteristics across scenarios


@dataclass(frozen=True)
class ScenarioRow:
    """One design on one scenario."""

    scenario: str
    design: str
    median: float  # pulls
    p90: float
    failed: float  # rate of trials that were wrong or unsafe, and its 99% upper bound
    upper: float
    delta: float
    capped: int = 0  # trials that hit their cap


def scenarios_data(tables: Iterable[Characteristics]) -> list[ScenarioRow]:
    rows = [t.numbers for t in tables]
    return [
        ScenarioRow(
            n["scenario"], n["label"], n["pulls"]["median"], n["pulls"]["p90"], n["failed"]["rate"],
            n["failed"]["upper"], n["delta"], n["endings"]["budget-spent"],
        )
        for n in rows
    ]  # fmt: skip


def scenarios(results: Sequence[ScenarioRow | Characteristics | Result], path: str | Path | None = None) -> Any:
    """Pulls (left) and failures with their 99% upper bound against delta (right), one line a scenario; hollow where
    runs hit their cap, and so named no arm.

    Parameters
    ----------
    results
        Results, their Characteristics, or what `scenarios_data` made of them.
    path
        Where to write it (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    import matplotlib as mpl

    tables = [Characteristics(x) if isinstance(x, Result) else x for x in results]
    rows = [x if isinstance(x, ScenarioRow) else scenarios_data([x])[0] for x in tables]
    names = list(dict.fromkeys(row.scenario for row in rows))
    designs = list(dict.fromkeys(row.design for row in rows))
    with mpl.rc_context(SMALL):
        figure = blank_figure(2 * WIDTH, 0.9 + 0.16 * len(names) * max(1.0, 0.5 * len(designs)))
        left, right = figure.subplots(1, 2, sharey=True)
        for k, (design, (colour, marker, _)) in enumerate(zip(designs, looks(designs), strict=True)):
            mine = [row for row in rows if row.design == design]
            y = np.array([names.index(row.scenario) for row in mine]) + 0.6 * ((k + 0.5) / len(designs) - 0.5)
            column = {
                key: np.array([getattr(row, key) for row in mine]) for key in ("median", "p90", "failed", "upper")
            }
            left.hlines(y, column["median"], column["p90"], color=colour, lw=1)
            left.plot(column["median"], y, marker, color=colour, ms=3.5, label=design)
            capped = np.array([row.capped > 0 for row in mine])
            left.plot(column["p90"][capped], y[capped], ">", color=colour, mfc="white", ms=4)
            right.hlines(y, column["failed"], column["upper"], color=colour, lw=1)
            right.plot(column["failed"], y, marker, color=colour, ms=3.5)
            right.plot(column["failed"][capped], y[capped], marker, color=colour, mfc="white", ms=3.5)
        for k, name in enumerate(names):
            delta = next(row.delta for row in rows if row.scenario == name)
            right.plot([delta, delta], [k - 0.45, k + 0.45], color=GREY, lw=1.2, label="delta" if not k else None)
        counts(left, "x", (1.0, 2.0, 5.0))
        left.set(xlabel="pulls in a trial: median to 90%", yticks=range(len(names)), yticklabels=names)
        left.set_ylim(len(names) - 0.4, -0.6)
        right.set(xlabel="failed trials: rate to 99% upper bound")
        right.set_xlim(left=-0.003)
        right.tick_params(left=False)
        for axis in (left, right):
            axis.grid(lw=0.3, color="#DDDDDD")
        plain_axes(figure, 7)
        figure.legend(loc="outside lower center", ncols=4, fontsize=7, frameon=False)
        return saved(figure, path, dpi=300)


__all__ = [
    "pulls", "pulls_data", "regret", "regret_data", "responses", "scenarios", "scenarios_data", "story", "story_data",
]  # fmt: skip
