"""report.html: one file that opens from disk, with the figures inside it."""

from __future__ import annotations

import base64
import platform
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .. import __version__
from ..reports import Part
from .claims import Claim
from .paper import Plan, Runs

PULLS = ("design", "arms", "mean pulls", "sd", "trials", "hit the cap", "wrong", "unsafe", "pulls over the limit",
         "seconds")  # fmt: skip


def parts(
    plan: Plan, runs: Runs, claims: Sequence[Claim], tables: Mapping[str, list[dict[str, Any]]], out: Path, command: str
) -> Iterator[Part]:
    trials = sorted({cell.trials for cell in runs})
    caps = sorted({cell.cap for cell in runs})
    yield Part("title", "Best arm identification with safety constraints: the experiments, run again")
    yield Part(
        "text",
        f"The figures of Wang, Wagenmaker and Jamieson's paper, {' and '.join(map(str, trials))} trials a point, "
        f"delta = {plan.delta:g}, slack (epsilon_safe) = {plan.slack:g}, seed {plan.seed}. A trial is capped at "
        f"{' or '.join(f'{cap:,}' for cap in caps)} pulls; one that hit its cap counts as the cap and is shown so.",
    )
    if plan.quick:
        yield Part("text", "A quick run: fewer arms, fewer trials, an early cap. Its figures are a sketch.")
    yield Part("heading", "What the paper says, and what was measured here")
    head = ["the paper says", "measured here", "verdict"]
    yield Part("table", rows=[head, *([c.says, c.measured, c.verdict] for c in claims)])
    for it in plan.chosen:
        if it.name not in tables:
            continue
        picture = base64.b64encode((out / f"{it.name}.png").read_bytes()).decode()
        said = escape(f"{it.caption}: {', '.join(dict.fromkeys(str(row['design']) for row in tables[it.name]))}")
        links = f'<p>Also as <a href="{it.name}.svg">SVG</a> and <a href="{it.name}.csv">CSV</a>.</p>'
        yield Part("heading", it.caption)
        shown = f'<img alt="{said}" width="540" src="data:image/png;base64,{picture}"/>{links}'
        yield Part("picture", _caption(it.kind, it.arms), [[shown]])
        if it.kind == "pulls":
            yield Part("table", rows=[PULLS, *map(_pulls, tables[it.name])])
    yield Part("heading", "What had to be decided")
    yield from (Part("text", note) for note in NOTES)
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "matplotlib"))
    yield Part("heading", "How to run it again")
    yield Part("code", command)
    yield Part(
        "text",
        "The same seed gives the same numbers, whatever the workers; only times differ. Made with surefoot "
        f"{__version__}, {packages}, Python {platform.python_version()}, {platform.system()} {platform.machine()}.",
    )


def _caption(kind: str, arms: Sequence[int]) -> str:
    if kind == "pulls":
        return (
            "Mean pulls to the end of a trial against the number of arms, both axes logarithmic; bars are one standard "
            "deviation. Grey: what the theorems say: a lower bound for any design (Theorem 1 in the linear model), the "
            "sharper characteristic time of the linear model, and the upper bound that the paper proves."
        )
    return (
        "The best value less the true effect of the arm that would be named now, at the dose shown to be safe; "
        f"{arms[0]} arms, mean over trials, band of one standard error. A trial that has ended holds its last value."
    )


def _pulls(row: dict[str, Any]) -> list[str]:
    if "sd" not in row:  # a bound
        return [row["design"], f"{row['arms']}", f"{row['mean']:,.0f}", *[""] * (len(PULLS) - 3)]
    least = "at least " if row["capped"] else ""
    return [
        row["design"], f"{row['arms']}", f"{least}{row['mean']:,.0f}", f"{row['sd']:,.0f}", f"{row['trials']}",
        f"{row['capped']}", f"{row['wrong']}", f"{row['unsafe']}", f"{row['over_limit_share']:.1%}",
        f"{row['seconds']:,.1f}",
    ]  # fmt: skip


NOTES = (
    "The paper gives neither delta nor epsilon_safe of its experiments. The variances it prints are taken as such.",
    "Drug model: the appendix has a largest dose of -0.5, where no epsilon_safe above 0.08 has a meaning; here that is "
    "the top of SafeOpt's grid, and the largest dose is 0.5 for the designs that climb.",
    "SafeOpt has no stopping rule of its own. It stops when one arm's lower bound over safe doses is above every other "
    "arm's upper bound over possibly safe doses. Which doses are expanders is not said either: here those that could "
    "enlarge the safe set if their harm were read, without noise, at its lower bound; or, with Lipschitz expanders, "
    "those whose lower bound + 0.25 x distance to a dose outside the set is at most the limit (the harm is nowhere "
    "steeper).",
    "Linear model: SafeOpt's beta_t uses parameter bounds of 1 (effect) and 5 (harm), Safe-LTS 5 for both.",
    "Algorithm 2 is shown twice: as its theorem has it, and with the constant schedule of the appendix.",
    "Before its first decision a design would name an arm at random, at its start dose. The best arm stands last in "
    "the list, so that no design has it from breaking ties by order.",
)
