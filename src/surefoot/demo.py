"""One simulated trial told as a story in the terminal."""

from __future__ import annotations

import numpy as np
from rich.console import Console

from .checks import between
from .designs.base import ACTIVE, ENDINGS
from .problem import Problem
from .simulate import Result
from .tables import Fit

MOST_ROUNDS = 40  # shown of a longer trial


def introduce(console: Console, p: Problem) -> None:
    """The question, in words."""
    slack = f", and no pull may ever be above {p.ceiling:g}" if p.slack else ""
    console.print(
        f"[bold]{len(p.arms)} drugs: which one works best at its highest safe dose?[/] More of a drug works better "
        f"and harms more. Safe means a harm of at most {p.limit:g}{slack}. Nobody knows the curves; each drug starts "
        f"at a dose known to be safe. A wrong answer or too harmful a pull: together they may happen with probability "
        f"{p.delta:g}.\nA cell says how many pulls were made at which dose, and where the drug's value lies.\n"
    )


def tell(console: Console, result: Result) -> None:
    """The first trial of a Result that was simulated with `trace=True`."""
    p, t = result.problem, result.trace
    assert t is not None
    rows = []
    rounds = int(t.rounds[0])
    shown = set(np.unique(np.linspace(0, rounds - 1, MOST_ROUNDS).astype(int)).tolist())
    for k in range(rounds):
        leaving = t.standing[0, k] != (t.standing[0, k - 1] if k else ACTIVE)
        if k in shown or leaving.any():
            cells = [_cell(result, k, i, bool(leaving[i])) for i in range(len(p.arms))]
            named = dict(zip(p.names, cells, strict=True))
            rows.append({"round": str(k + 1), "pulls": f"{t.pulls[0, k]:,}", **named})
    console.print(Fit(rows, f"One trial, {result.design.name}"))
    verdict = t.verdict
    console.print(f"[bold]Verdict: {ENDINGS[int(result.ending[0])]}[/] after {result.pulls[0]:,} pulls.")
    for i, name in enumerate(p.names):
        truth = f"[dim](in truth {result.truth.value[i]:.3g} at dose {result.truth.dose[i]:.3g})[/]"
        console.print(f"  {name}: {verdict.reason(i)} {truth}")


def _cell(result: Result, k: int, arm: int, leaves: bool) -> str:
    t = result.trace
    assert t is not None
    n, dose = t.n[0, k, arm], t.dose[0, k, arm]
    if t.standing[0, k, arm] != ACTIVE and not n:
        return "[dim]out[/]"
    text = f"{n:,} at {dose:.2f}" if n else "rests"
    low, high = t.lower[0, k, arm], t.upper[0, k, arm]
    text += f"\n{between(low, high, '.2f')}" if np.isfinite(low) else ""
    return f"{text}  [red]out[/]" if leaves else text
