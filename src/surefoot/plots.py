"""Pictures of simulations. Data are computed apart from drawing, so that they can be drawn some other way too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .designs.base import ACTIVE, STANDINGS
from .problem import SurefootError
from .simulate import Array, Result

# Okabe and Ito's colours, which the colour-blind can tell apart
BLUE, ORANGE, GREEN, RED, SKY, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#7F7F7F"


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
    from matplotlib.figure import Figure

    p, arms = result.problem, story_data(result, trial)
    figure = Figure(figsize=(max(2.6 * len(arms), 5.2), 4.8), layout="constrained")
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
            top.scatter(when[mask], dose[mask], s=size, color=colour, alpha=0.75, lw=0, label=label)
        low.axhline(arm.value, color=GREEN, lw=1.2, label="true value")
        known = np.isfinite(arm.lower)
        low.fill_between(
            arm.pulls, np.where(known, arm.lower, np.nan), np.where(np.isfinite(arm.upper), arm.upper, 1e9),
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
    if path is not None:
        figure.savefig(path, dpi=160)
    return figure
