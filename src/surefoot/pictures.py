"""Pictures of one trial or study: its story over time, and what was learned of every arm, dose by dose.

The data are the same for a simulated trial and a live study; only a simulation knows the truth, and draws it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from .designs.base import STANDINGS, out_since
from .designs.recommend import standard_error
from .problem import Arm, Noise, Problem, SurefootError
from .simulate import Array, Result

# Okabe and Ito's colours, which the colour-blind can tell apart
BLUE, ORANGE, GREEN, RED, SKY, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#7F7F7F"
PURPLE = "#CC79A7"
LOGARITHMIC = 1000  # subjects, from which on their axis is logarithmic
CROWD = 40  # dots, from which on they are drawn below the lines: fewer would be hidden, more would hide


@dataclass(frozen=True)
class ArmStory:
    """One arm: where it was pulled and what was known of it, against the pulls of the whole trial so far."""

    name: str
    given: tuple[Array, Array, Array]  # pulls so far, dose, how many
    pulls: Array  # of the four below
    lower: Array  # bounds on the value
    upper: Array
    safe: Array  # the dose shown to be within the limit
    certified: Array  # what may be given: for the ceiling, limit + slack; as `safe` where there is no slack
    unsafe: float  # no safe dose lies above it, as known at the end
    out: tuple[float, str] | None  # when it left, and how
    effect: Array | None = None  # mean readings of what was given, one by one with `given`; a simulation has the curve
    harm: Array | None = None
    curves: tuple[Any, Any] | None = None  # the truth: effect and harm as functions of the dose
    truth: tuple[float, float, float] | None = None  # largest safe dose, dose at limit + slack, value
    sigma: tuple[float, float] | None = None  # of effects and harms, as they vary within cohorts; None: not kept
    advised: float | None = None  # the dose that is recommended, of the arm that is


def story_data(result: Result, trial: int = 0) -> list[ArmStory]:
    """One trial of a Result that was simulated with `trace=True`."""
    t, p = result.trace, result.problem
    if t is None:
        raise SurefootError("a story needs the rounds of the trial: simulate with trace=True")
    rounds = int(t.rounds[trial])
    pulls, n = t.pulls[trial, :rounds], t.n[trial, :rounds]
    ceiling = result.scenario.truth(p.but(limit=p.ceiling, slack=p.slack)).dose
    stories = []
    for i, name in enumerate(p.names):
        came, standing = n[:, i] > 0, t.standing[trial, :rounds, i]
        left = out_since(standing)
        out = (float(pulls[left]), STANDINGS[standing[left]]) if left < rounds else None
        until = slice(0, left + 1)
        given = (pulls[came], t.dose[trial, :rounds, i][came], n[:, i][came])
        seen = [x[trial, :rounds, i][until] for x in (t.lower, t.upper, t.safe, t.certified)]
        curves = (_curve(result.scenario.effects, i, p), _curve(result.scenario.harms, i, p))
        truth = (float(result.truth.dose[i]), float(ceiling[i]), float(result.truth.value[i]))
        unsafe = float(t.verdict.unsafe[trial, i])
        known = ArmStory(name, given, pulls[until], seen[0], seen[1], seen[2], seen[3], unsafe, out)
        stories.append(replace(known, curves=curves, truth=truth))
    return stories


def _curve(curves: Any, arm: int, p: Problem) -> Any:
    return lambda dose: curves(np.where(np.arange(len(p.arms)) == arm, np.asarray(dose)[:, None], p.starts))[:, arm]


def story(result: Any, path: str | Path | None = None, trial: int = 0) -> Any:
    """The doses given over one trial or study and, where bounds on values are known, these; one column an arm.

    Parameters
    ----------
    result
        A `Result` that was simulated with `trace=True`, or a `Study`.
    path
        Where to write it (.png, .svg or .pdf).
    trial
        Which trial of the result.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    SurefootError
        If the result has no trace.
    """
    arms, p, winner, _ = stories(result, trial)
    word = "pulls of the whole trial" if isinstance(result, Result) else "subjects of the study"
    return draw_story(arms, p, winner, word, path)


def stories(result: Any, trial: int) -> tuple[list[ArmStory], Problem, int, str]:
    """The arms, the problem, the winner, and what the highest certified dose is called: at an end none is given."""
    if isinstance(result, Result):
        return story_data(result, trial), result.problem, int(result.winner[trial]), "might be given next"
    if not hasattr(getattr(result, "view", None), "cohorts"):
        raise SurefootError(f"a picture is of a Result or a Study; got {type(result).__name__}")
    from .study.story import story_data as of_study

    view = result.view
    may = "might be given next" if view.standing in ("ended", "stopped") else "may be given"
    return of_study(view), view.problem, int(view.state.winner[0]), may


def _title(arm: ArmStory, wins: bool) -> str:
    return arm.name + (", the winner" if wins else f", {arm.out[1]}" if arm.out else "")


def draw_story(arms: Sequence[ArmStory], p: Problem, winner: int, word: str, path: Any = None) -> Any:
    bounded = [bool(np.isfinite(arm.lower).any()) for arm in arms]
    rows = 2 if sum(bounded) >= len(arms) / 2 and any(bounded) else 1  # no row of empty panels
    same = len({arm.labels for arm in p.arms}) == 1
    figure, axes = _panels(rows, arms, sharex=True, sharey="row" if same else False)
    for i, arm in enumerate(arms):
        top, (when, dose, n) = axes[0, i], arm.given
        if arm.truth:
            top.axhline(arm.truth[0], color=GREEN, lw=1.2, label="harm at the limit (truth)")
            if p.slack:
                top.axhline(arm.truth[1], color=RED, lw=1.2, ls="--", label="harm at limit + slack (truth)")
        if len(arm.pulls):
            if p.slack:
                top.step(arm.pulls, arm.certified, where="post", color=ORANGE, lw=1.2, label="may be given")
            shown = int(np.sum([p.arms[i].safe_is(x) != "shown" for x in arm.safe]))  # it only rises
            for part in (slice(0, shown + 1), slice(shown, None)):
                at, safe = arm.pulls[part], arm.safe[part]
                if len(safe):
                    safe = np.append(safe[:-1], safe[-2]) if part.start == 0 and 0 < shown < len(arm.safe) else safe
                    top.step(at, safe, where="post", color=BLUE, lw=1.2, **_sure(p.arms[i], safe[0]))
        if len(when):
            top.scatter(when, dose, s=8 + 45 * n / n.max(), color="#555555", alpha=0.45, lw=0, label="cohorts given",
                        zorder=3 if len(when) < CROWD else 1)  # fmt: skip
        if arm.advised is not None:
            top.plot([1.0], [arm.advised], "<", color=PURPLE, ms=7, transform=top.get_yaxis_transform(),
                     clip_on=False, zorder=4, label="recommended dose", lw=0)  # fmt: skip
        if rows == 2:
            _bounds(axes[1, i], arm)
        for axis in axes[:, i]:
            if arm.out:
                axis.axvline(arm.out[0], color="#333333", lw=1.0, ls=":", label=arm.out[1])
            counted(axis, max((float(a.pulls[-1]) for a in arms if len(a.pulls)), default=0.0))
        _levels(top.yaxis, p.arms[i])
        top.set_title(_title(arm, i == winner), fontsize=10)
        axes[-1, i].set_xlabel(word)
    axes[0, 0].set_ylabel("dose")
    if rows == 2:
        axes[1, 0].set_ylabel("value (effect)")
        ends = [x for arm in arms for x in (*arm.lower[-1:], *arm.upper[-1:], *(arm.truth or ())[2:])]
        for axis in axes[1, :]:
            _limits(axis, ends)
    return _finish(figure, path)


def _bounds(axis: Any, arm: ArmStory) -> None:
    if arm.truth:
        axis.axhline(arm.truth[2], color=GREEN, lw=1.2, label="value (truth)")
    known = np.isfinite(arm.lower) | np.isfinite(arm.upper)
    if known.any():
        axis.fill_between(
            arm.pulls, np.clip(arm.lower, -1e9, None), np.clip(arm.upper, None, 1e9), where=known.tolist(), step="post",
            color=SKY, alpha=0.45, lw=0, label="bounds on the value",
        )  # fmt: skip


def responses(result: Any, path: str | Path | None = None, trial: int = 0) -> Any:
    """Dose against harm and effect, for each arm, with limit, slack and what is certified: for a dose meeting.

    A dot is a dose that was given, its size how many got it. In a study it stands at the mean of their readings, with
    two standard errors: by how the arm's readings vary where nobody knows sigma, else as declared; in a simulation on
    the true curve.

    Parameters
    ----------
    result
        A `Result` that was simulated with `trace=True`, or a `Study`.
    path
        Where to write it (.png, .svg or .pdf).
    trial
        Which trial of the result.

    Returns
    -------
    matplotlib.figure.Figure
    """
    arms, p, winner, may = stories(result, trial)
    figure, axes = _panels(2, arms, sharex="col", sharey="row")
    for i, arm in enumerate(arms):
        top, low = axes[:, i]
        start, most = p.starts[i], float(p.largest[i])
        end = most if np.isfinite(most) else 1.1 * max([start, *arm.given[1], *((arm.truth or ())[:1])])
        grid = np.linspace(start, end, 200)
        top.axhline(p.limit, color=GREEN, lw=1.2, label="limit")
        if p.slack:
            top.axhspan(p.limit, p.ceiling, color=ORANGE, alpha=0.18, lw=0, label="slack")
        for axis, k, key in ((top, 1, "harm"), (low, 0, "effect")):
            if arm.curves:
                axis.plot(grid, arm.curves[k](grid), color=GREY, lw=1.2, label="truth")
            noise = p.noises[k]
            if arm.sigma and not (noise.binary or noise.counts):
                noise = Noise("gaussian", arm.sigma[k])
            _dots(axis, arm, k, getattr(arm, key), noise)
            if arm.advised is not None:
                axis.plot([arm.advised], [0.0], "^", color=PURPLE, ms=7, transform=axis.get_xaxis_transform(),
                          clip_on=False, zorder=4, label="recommended dose", lw=0)  # fmt: skip
            if len(arm.safe) and not (arm.out and arm.out[1] == "stopped"):  # its start looks unsafe: no dose is known
                axis.axvline(arm.safe[-1], color=BLUE, lw=1.2, **_sure(p.arms[i], arm.safe[-1]))
                if p.slack:
                    axis.axvline(arm.certified[-1], color=ORANGE, lw=1.2, ls="--", label=may)
                if arm.unsafe < end:
                    axis.axvline(arm.unsafe, color=RED, lw=1.0, ls=":", label="no safe dose above")
        if len(arm.lower) and np.isfinite(arm.lower[-1]):
            high = arm.upper[-1] if np.isfinite(arm.upper[-1]) else None
            low.axhspan(arm.lower[-1], high if high is not None else low.get_ylim()[1], color=SKY, alpha=0.3, lw=0,
                        label="bounds on the value")  # fmt: skip
        top.set_title(_title(arm, i == winner), fontsize=10)
        low.set_xlabel("dose")
        _levels(low.xaxis, p.arms[i])
    axes[0, 0].set_ylabel("harm")
    axes[1, 0].set_ylabel("effect")
    if p.ceiling > 0:  # what is far above is of no interest
        axes[0, 0].set_ylim(top=min(axes[0, 0].get_ylim()[1], 2.5 * p.ceiling))
    for axis, noise in zip(axes[:, 0], p.noises[::-1], strict=True):
        if noise.worst is not None:  # nothing can be read beyond
            low, high = noise.worst
            axis.set_ylim(*np.clip(axis.get_ylim(), low - 0.03 * (high - low), high + 0.03 * (high - low)))
    return _finish(figure, path)


def _levels(axis: Any, arm: Arm) -> None:
    """Names of levels as ticks, as many as there is room for; of doses a few."""
    from matplotlib.ticker import MaxNLocator

    if arm.labels is None:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        return
    names, across = [str(x) for x in arm.labels], axis.axis_name == "x"
    words = across and any(isinstance(x, str) for x in arm.labels) and sum(map(len, names)) > 24
    every = 1 if words or not across else -(-sum(len(x) + 1 for x in names) // 36)
    axis.set_ticks(range(0, len(names), every), names[::every], **({"rotation": 40, "ha": "right"} if words else {}))
    (axis.axes.set_xlim if across else axis.axes.set_ylim)(-0.4, len(names) - 0.6)


def _sure(arm: Arm, safe: float) -> dict[str, str]:
    """How the line of a safe dose looks: a start dose is declared, not shown."""
    shown = arm.safe_is(safe) == "shown"
    return {"ls": "-" if shown else "-.", "label": "shown to be safe" if shown else "declared safe, not shown"}


def _dots(axis: Any, arm: ArmStory, k: int, mean: Array | None, noise: Noise) -> None:
    """The doses given, put together where they are the same to a hundredth of their range."""
    _, dose, n = arm.given
    if not len(dose):
        return
    width = max(float(np.ptp(dose)), 1e-12) / 100
    bins = np.round((dose - dose.min()) / width).astype(int)
    many = np.bincount(bins, weights=n)
    used = many > 0
    with np.errstate(invalid="ignore"):
        at = (np.bincount(bins, weights=n * dose) / many)[used]
        if mean is not None:
            y = (np.bincount(bins, weights=n * mean) / many)[used]
        else:
            y = arm.curves[k](at) if arm.curves else np.zeros_like(at)
    many = many[used]
    if mean is not None:
        axis.errorbar(at, y, 2 * standard_error(noise, y, many), fmt="none", ecolor=GREY, elinewidth=0.7, alpha=0.6,
                      label="two standard errors")  # fmt: skip
    axis.scatter(at, y, s=6 + 60 * many / many.max(), color=BLUE, alpha=0.6, lw=0, label="doses given", zorder=3)


@cache
def _kind() -> type:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows as it is, without %matplotlib inline."""

        def _repr_png_(self) -> bytes:
            out = BytesIO()
            self.savefig(out, format="png", dpi=120)
            return out.getvalue()

    return Picture


def blank_figure(width: float, height: float) -> Any:
    """A matplotlib Figure to draw in, of so many inches."""
    return _kind()(figsize=(width, height), layout="constrained")


def _panels(rows: int, arms: Sequence[ArmStory], **how: Any) -> tuple[Any, Any]:
    figure = blank_figure(max(2.6 * len(arms), 5.2), 1.0 + 1.9 * rows)
    return figure, figure.subplots(rows, len(arms), squeeze=False, **how)


def counted(axis: Any, most: float) -> None:
    """An axis of subjects so far: logarithmic where they are many."""
    if most < LOGARITHMIC:
        axis.set_xlim(0, 1.04 * max(most, 1.0))
    else:
        counts(axis)


def counts(axis: Any, which: str = "x", subs: Sequence[float] = (1.0,)) -> None:
    """A logarithmic axis of counts whose labels never touch."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(axis, f"set_{which}scale")("log")
    scale = getattr(axis, f"{which}axis")
    scale.set_major_locator(LogLocator(subs=subs))
    scale.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x < 1e6 else f"{x:.0e}"))
    scale.set_minor_formatter(NullFormatter())


def _limits(axis: Any, values: Sequence[float]) -> None:
    seen = [x for x in values if np.isfinite(x)]
    if seen:
        margin = 0.15 * max(max(seen) - min(seen), 0.1)
        axis.set_ylim(min(seen) - margin, max(seen) + margin)


def _finish(figure: Any, path: str | Path | None) -> Any:
    plain_axes(figure, 7.5)
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return saved(figure, path, dpi=160)


def plain_axes(figure: Any, size: float) -> None:
    for axis in figure.axes:
        axis.tick_params(labelsize=size)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)


def saved(figure: Any, path: str | Path | None, dpi: int) -> Any:
    """SVG without a date, so that the same data give the same file."""
    if path is not None:
        figure.savefig(path, dpi=dpi, metadata={"Date": None} if str(path).endswith(".svg") else None)
    return figure
