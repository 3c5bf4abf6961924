"""Pictures of simulations: pulls against arms, simple regret, one trial's story, many scenarios side by side.

Each has a function that computes its data from simulated results (`..._data`) and one that draws them, so that the data
can be drawn some other way too. Every drawing function returns a matplotlib Figure, and writes it where `path` says.
The pictures are made for half a page's width: small, no title, the legend outside, colours and markers that the
colour-blind can tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .characteristics import Characteristics
from .designs.base import ACTIVE, BUDGET_SPENT, STANDINGS
from .problem import SurefootError
from .simulate import Array, Result

# Okabe and Ito's colours, which the colour-blind can tell apart
BLUE, ORANGE, GREEN, RED, SKY, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#7F7F7F"
PURPLE, BLACK = "#CC79A7", "#000000"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
MARKERS = "osD^vPX*"
WIDTH = 3.4  # inches: half a page
SMALL: dict[Any, Any] = {
    "font.size": 8,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "svg.hashsalt": "surefoot",
    "svg.fonttype": "none",
}


LEGEND: dict[str, Any] = {
    "loc": "outside lower center", "ncols": 2, "fontsize": 6.5, "frameon": False, "handlelength": 1.6,
    "columnspacing": 0.8,
}  # fmt: skip


def _figure(height: float, width: float = WIDTH) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _style(figure: Any) -> None:
    for axis in figure.axes:
        axis.tick_params(labelsize=7)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)


def _save(figure: Any, path: str | Path | None) -> Any:
    """PNG at 300 dots an inch; SVG without a date, so that the same data give the same file."""
    if path is not None:
        metadata = {"Date": None} if str(path).endswith(".svg") else None
        figure.savefig(path, dpi=300, metadata=metadata)
    return figure


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


def pulls(lines: Sequence[Pulls], bounds: Sequence[Bound] = (), path: str | Path | None = None) -> Any:
    """Mean pulls to the end with bars of one standard deviation; an arrow where runs hit their cap."""
    import matplotlib as mpl

    with mpl.rc_context(SMALL):
        figure = _figure(2.5 + 0.16 * ((len(lines) + len(bounds) + 2) // 2))
        axis, shown = figure.subplots(), []
        for k, (line, colour, marker) in enumerate(zip(lines, _cycle(COLOURS), _cycle(MARKERS), strict=False)):
            at = line.arms * 1.02 ** (k - (len(lines) - 1) / 2)  # side by side, so that no bar hides another
            low = np.minimum(line.sd, 0.999 * line.mean)
            bars = axis.errorbar(
                at, line.mean, [low, line.sd], color=colour, marker=marker, ms=3.5, lw=1, elinewidth=0.8, capsize=1.5,
                label=line.name,
            )  # fmt: skip
            shown.append(bars)
            for x, y in zip(at[line.capped > 0], line.mean[line.capped > 0], strict=True):
                arrow = {"arrowstyle": "<-", "color": colour, "lw": 1, "shrinkA": 0, "shrinkB": 0}
                axis.annotate("", (x, y), (0, 13), textcoords="offset points", arrowprops=arrow)
        for bound, style in zip(bounds, _cycle((":", "--", "-.")), strict=False):
            shown += axis.plot(bound.arms, bound.pulls, color=GREY, ls=style, lw=1, label=bound.name)
        if any(np.any(line.capped > 0) for line in lines):
            shown += axis.plot([], [], color=BLACK, lw=0, marker=r"$\uparrow$", label="some runs hit their cap")
        ticks = sorted({int(x) for line in lines for x in line.arms})
        axis.set(xscale="log", yscale="log", xlabel="number of arms", ylabel="pulls to the end of a trial")
        axis.set_xticks(ticks, [str(x) for x in ticks])
        axis.set_xticks([], minor=True)
        axis.grid(axis="y", lw=0.3, color="#DDDDDD")
        _style(figure)
        figure.legend(handles=shown, **LEGEND)
        return _save(figure, path)


def _cycle(values: Iterable[Any]) -> Iterable[Any]:
    values = list(values)
    while True:
        yield from values


# Simple regret


@dataclass(frozen=True)
class Regret:
    """How far the arm that a design would name, at its certified dose, is from the best: mean over trials and its
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


def regret(curves: Sequence[Regret], path: str | Path | None = None) -> Any:
    """Mean simple regret with bands of one standard error; a marker where the mean trial ends."""
    import matplotlib as mpl

    with mpl.rc_context(SMALL):
        figure = _figure(2.3 + 0.16 * ((len(curves) + 1) // 2))
        axis = figure.subplots()
        for curve, colour, marker in zip(curves, _cycle(COLOURS), _cycle(MARKERS), strict=False):
            low, high = curve.mean - curve.se, curve.mean + curve.se
            axis.fill_between(
                curve.pulls, np.maximum(low, 1e-12), np.maximum(high, 1e-12), color=colour, alpha=0.2, lw=0
            )
            ends = np.isfinite(curve.ended)
            axis.plot(
                curve.pulls, curve.mean, color=colour, marker=marker, ms=4, label=curve.name,
                markevery=[min(int(np.searchsorted(curve.pulls, curve.ended)), len(curve.pulls) - 1)] if ends else [],
            )  # fmt: skip
        least = min((float(c.mean[c.mean > 0].min()) for c in curves if np.any(c.mean > 0)), default=1e-3)
        axis.set(
            xscale="log",
            yscale="log",
            xlabel="pulls so far (marker: mean end of a trial)",
            ylabel="simple regret (effect)",
        )
        axis.set_ylim(bottom=max(0.7 * least, 1e-4))
        axis.grid(axis="y", lw=0.3, color="#DDDDDD")
        _style(figure)
        figure.legend(**LEGEND)
        return _save(figure, path)


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


def scenarios_data(tables: Iterable[Characteristics]) -> list[ScenarioRow]:
    rows = [t.numbers for t in tables]
    return [
        ScenarioRow(
            n["scenario"], n["design"], n["pulls"]["median"], n["pulls"]["p90"], n["failed"]["rate"],
            n["failed"]["upper"], n["delta"],
        )
        for n in rows
    ]  # fmt: skip


def scenarios(rows: Sequence[ScenarioRow], path: str | Path | None = None) -> Any:
    """Pulls (left) and failures with their 99% upper bound against delta (right), one line a scenario."""
    import matplotlib as mpl

    names = list(dict.fromkeys(row.scenario for row in rows))
    designs = list(dict.fromkeys(row.design for row in rows))
    with mpl.rc_context(SMALL):
        figure = _figure(0.9 + 0.16 * len(names) * max(1.0, 0.5 * len(designs)), 2 * WIDTH)
        left, right = figure.subplots(1, 2, sharey=True)
        for k, (design, colour, marker) in enumerate(zip(designs, COLOURS, MARKERS, strict=False)):
            mine = [row for row in rows if row.design == design]
            y = np.array([names.index(row.scenario) for row in mine]) + 0.6 * ((k + 0.5) / len(designs) - 0.5)
            column = {
                key: np.array([getattr(row, key) for row in mine]) for key in ("median", "p90", "failed", "upper")
            }
            left.hlines(y, column["median"], column["p90"], color=colour, lw=1)
            left.plot(column["median"], y, marker, color=colour, ms=3.5, label=design)
            right.hlines(y, column["failed"], column["upper"], color=colour, lw=1)
            right.plot(column["failed"], y, marker, color=colour, ms=3.5)
        for k, name in enumerate(names):
            delta = next(row.delta for row in rows if row.scenario == name)
            right.plot([delta, delta], [k - 0.45, k + 0.45], color=GREY, lw=1.2, label="delta" if not k else None)
        left.set(xscale="log", xlabel="pulls in a trial: median to 90%", yticks=range(len(names)), yticklabels=names)
        left.set_ylim(len(names) - 0.4, -0.6)
        right.set(xlabel="failed trials: rate to 99% upper bound")
        right.set_xlim(left=-0.003)
        right.tick_params(left=False)
        for axis in (left, right):
            axis.grid(lw=0.3, color="#DDDDDD")
        _style(figure)
        figure.legend(loc="outside lower center", ncols=4, fontsize=7, frameon=False)
        return _save(figure, path)


# The story of one trial


@dataclass(frozen=True)
class ArmStory:
    """One arm of one trial: where it was pulled and what was known of it, against the pulls of the trial so far."""

    name: str
    given: tuple[Array, Array, Array]  # pulls so far, dose, how many
    pulls: Array  # of the bounds below
    lower: Array
    upper: Array
    out: tuple[float, str] | None  # when it left, and how
    safe_dose: float  # the truth: largest safe dose, and the dose at limit + slack
    ceiling_dose: float
    value: float


def story_data(result: Result, trial: int = 0) -> list[ArmStory]:
    """The story of one trial of a Result that was simulated with `trace=True`."""
    t, p = result.trace, result.problem
    if t is None:
        raise SurefootError("a story needs the rounds of the trial: simulate with trace=True")
    rounds = int(t.rounds[trial])
    pulls, n = t.pulls[trial, :rounds], t.n[trial, :rounds]
    ceiling = result.scenario.truth(p.but(limit=p.ceiling, slack=p.slack)).dose
    stories = []
    for i, name in enumerate(p.names):
        came, standing = n[:, i] > 0, t.standing[trial, :rounds, i]
        left = np.flatnonzero(standing != ACTIVE)
        out = (float(pulls[left[0]]), STANDINGS[standing[left[0]]]) if len(left) else None
        until = slice(0, left[0] + 1 if len(left) else rounds)
        given = (pulls[came], t.dose[trial, :rounds, i][came], n[:, i][came])
        lower, upper = t.lower[trial, :rounds, i][until], t.upper[trial, :rounds, i][until]
        truth = (float(x[i]) for x in (result.truth.dose, ceiling, result.truth.value))
        stories.append(ArmStory(name, given, pulls[until], lower, upper, out, *truth))
    return stories


def story(result: Result, trial: int = 0, path: str | Path | None = None) -> Any:
    """Doses given (above) and bounds on the value (below) over one trial, one column an arm."""
    p, arms = result.problem, story_data(result, trial)
    figure = _figure(4.8, max(2.6 * len(arms), 5.2))
    axes = figure.subplots(2, len(arms), sharex=True, sharey="row", squeeze=False)
    winner = int(result.winner[trial])
    for i, (arm, (top, low)) in enumerate(zip(arms, axes.T, strict=True)):
        when, dose, n = arm.given
        top.axhline(arm.safe_dose, color=GREEN, lw=1.2, label="harm at the limit")
        if p.slack is not None:
            top.axhline(arm.ceiling_dose, color=RED, lw=1.2, ls="--", label="harm at limit + slack")
        over = dose > arm.safe_dose
        for mask, colour, label in (
            (~over, BLUE, "pulls at or below the limit"),
            (over, ORANGE, "pulls inside the slack"),
        ):
            size = 10 + 60 * n[mask] / max(n.max(), 1)
            top.scatter(when[mask], dose[mask], s=size, color=colour, alpha=0.75, lw=0)
            if mask.any():
                top.scatter([], [], s=30, color=colour, alpha=0.75, lw=0, label=label)
        low.axhline(arm.value, color=GREEN, lw=1.2, label="true value")
        known = np.isfinite(arm.lower) | np.isfinite(arm.upper)
        low.fill_between(
            arm.pulls, np.clip(arm.lower, -1e9, None), np.clip(arm.upper, None, 1e9),
            where=known.tolist(), step="post", color=SKY, alpha=0.45, lw=0, label="bounds on the value",
        )  # fmt: skip
        if arm.out:
            for axis in (top, low):
                axis.axvline(arm.out[0], color=GREY, lw=1.2, ls=":", label=arm.out[1])
        top.set_title(arm.name + (", the winner" if i == winner else f", {arm.out[1]}" if arm.out else ""), fontsize=10)
        low.set_xlabel("pulls of the whole trial")
        low.set_xscale("log")
    axes[0, 0].set_ylabel("dose")
    axes[1, 0].set_ylabel("effect")
    values = np.array([arm.value for arm in arms])
    spread = max(float(np.ptp(values[np.isfinite(values)])), 0.2)
    axes[1, 0].set_ylim(values.min() - 0.8 * spread, values.max() + 0.8 * spread)
    handles = {label: h for axis in axes[:, 0] for h, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    for arm_axes in axes.T:
        for axis in arm_axes:
            for h, label in zip(*axis.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, h)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return _save(figure, path)
