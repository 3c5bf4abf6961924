"""One trial, simulated or a study with simulated subjects, told as a story in the terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from .checks import between
from .pictures import ArmStory, stories
from .problem import Arm, Problem
from .scenario import Scenario
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


def tell(console: Console, of: Any, scenario: Scenario) -> None:
    """The first trial of a Result that was simulated with `trace=True`, or a Study: cohort by cohort how many at which
    dose, and what was known of each arm after it."""
    arms, p, *_ = stories(of, 0)
    what, design = ("trial", of.design) if isinstance(of, Result) else ("study", of.view.design)
    trace = of.trace if isinstance(of, Result) else None
    verdict, truth, rows = trace.verdict if trace else of.verdict(), scenario.truth(p), []
    moments = max((arm.pulls for arm in arms), key=len).tolist()
    shown = set(np.linspace(0, len(moments) - 1, MOST_ROUNDS).astype(int).tolist())
    for k, at in enumerate(moments):
        if k in shown or any(arm.out and arm.out[0] == at for arm in arms):
            cells = {escape(it.name): _cell(it, arm, k, at) for it, arm in zip(p.arms, arms, strict=True)}
            rows.append({"cohort": str(k + 1), "subjects": f"{at:,.0f}", **cells})
    console.print(Fit(rows, f"One {what}, {design.name}"))
    console.print(f"[bold]Verdict: {verdict.endings()[0]}[/] after {int(verdict.pulls[0]):,} subjects.")
    for i, name in enumerate(p.names):
        so = f"[dim](in truth {truth.value[i]:.3g} at dose {truth.dose[i]:.3g})[/]"
        console.print(f"  {escape(name)}: {escape(verdict.reason(i))} {so}")


def _cell(it: Arm, arm: ArmStory, k: int, at: float) -> str:
    when, dose, n = arm.given
    given = np.flatnonzero(when == at)
    if arm.out and at > arm.out[0] and not len(given):
        return "[dim]out[/]"
    text = ", ".join(f"{n[j]:,.0f} at {it.label(dose[j])}" for j in given) or "rests"
    text += f"\n{between(arm.lower[k], arm.upper[k], '.2f')}" if len(given) and np.isfinite(arm.lower[k]) else ""
    return text + "  [red]out[/]" * bool(arm.out and at == arm.out[0])
