"""The picture of a study: doses given above, bounds on the value below, one column an arm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..designs.base import ACTIVE, STANDINGS
from ..plots import BLUE, GREY, ORANGE, SKY
from .fold import View


@dataclass(frozen=True)
class ArmStory:
    """One arm: when it was given which dose to how many, and what was known after each cohort."""

    name: str
    given: list[tuple[int, float, int]]  # subjects of the study so far, dose, how many
    subjects: list[int]  # of the bounds below
    lower: list[float]
    upper: list[float]
    certified: list[float]
    out: tuple[int, str] | None  # when it left, and how


def story_data(view: View) -> list[ArmStory]:
    closed = [given for given in view.cohorts if given.closed]
    upto = np.cumsum([given.size for given in closed]).tolist()
    states = [view.design.verdict(s) for s in (*view.before[1 : len(closed)], view.state)] if closed else []
    stories = []
    for arm, name in enumerate(view.problem.names):
        given = [(k, c.dose[arm], c.n[arm]) for c, k in zip(closed, upto, strict=True) if c.n[arm]]
        left = next((k for k, s in zip(upto, states, strict=True) if int(s.standing[0, arm]) != ACTIVE), None)
        out = None if left is None else (left, STANDINGS[int(view.state.standing[0, arm])])
        lower, upper, safe = ([float(getattr(s, k)[0, arm]) for s in states] for k in ("lower", "upper", "safe"))
        stories.append(ArmStory(name, given, upto, lower, upper, safe, out))
    return stories


def story(view: View, path: str | Path | None = None) -> Any:
    from matplotlib.figure import Figure

    arms = story_data(view)
    figure = Figure(figsize=(max(2.6 * len(arms), 5.2), 4.8), layout="constrained")
    axes = figure.subplots(2, len(arms), sharex=True, sharey="row", squeeze=False)
    winner = int(view.state.winner[0])
    for i, (arm, (top, low)) in enumerate(zip(arms, axes.T, strict=True)):
        if arm.given:
            at, dose, n = (np.array(x) for x in zip(*arm.given, strict=True))
            top.scatter(at, dose, s=10 + 60 * n / n.max(), color=BLUE, alpha=0.75, lw=0, label="doses given")
        if arm.subjects:
            when = [*arm.subjects, 1.04 * arm.subjects[-1]]  # what is known at the end is known from then on
            low_, high, certified = ([*x, x[-1]] for x in (arm.lower, arm.upper, arm.certified))
            top.step(when, certified, where="post", color=ORANGE, lw=1.2, label="certified dose")
            known = np.isfinite(low_)
            low.fill_between(
                when, np.where(known, low_, np.nan), np.where(np.isfinite(high), high, 1e9), where=known.tolist(),
                step="post", color=SKY, alpha=0.45, lw=0, label="bounds on the value",
            )  # fmt: skip
        if arm.out:
            for axis in (top, low):
                axis.axvline(arm.out[0], color=GREY, lw=1.2, ls=":", label=arm.out[1])
        top.set_title(arm.name + (", the winner" if i == winner else f", {arm.out[1]}" if arm.out else ""), fontsize=10)
        low.set_xlabel("subjects of the study")
    seen = [x for arm in arms for x in (*arm.lower, *arm.upper) if np.isfinite(x)]
    if seen:
        margin = 0.1 * max(max(seen) - min(seen), 1e-9)
        axes[1, 0].set_ylim(min(seen) - margin, max(seen) + margin)
    axes[0, 0].set_ylabel("dose")
    axes[1, 0].set_ylabel("effect")
    handles: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=160)
    return figure
