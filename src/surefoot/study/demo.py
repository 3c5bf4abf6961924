"""Simulated subjects for a real study, and the story of it in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from ..checks import between
from ..demo import MOST_ROUNDS
from ..designs import Design
from ..problem import Problem, SurefootError
from ..scenario import Scenario
from ..tables import Fit
from .journal import Journal
from .status import Assignment
from .story import story_data
from .study import Study

NAME = "demo"  # of the study and of who runs it: by these it is known as one


def simulated(
    problem: Problem, scenario: Scenario, assignments: Sequence[Assignment], seed: int
) -> list[dict[str, Any]]:
    """A reading for each assignment, as if the scenario were the truth: rows for `tell_many`.

    A subject's readings depend on the seed, the cohort's first subject and the place among those asked for.
    """
    if not assignments:
        return []
    rng = np.random.default_rng([seed, assignments[0].subject])
    arm = np.array([problem.names.index(a.arm) for a in assignments])
    n = np.eye(len(problem.arms), dtype=np.int64)[arm]
    dose = np.where(
        n > 0,
        np.array([[problem.arms[i].place(a.dose)] for i, a in zip(arm, assignments, strict=True)]),
        problem.starts,
    )
    effect, harm, _ = scenario.draw(rng, problem, dose, n, np.array([a.subject - 1 for a in assignments]))
    rows = np.arange(len(arm))
    return [
        {"id": a.id, "effect": e, "harm": h}
        for a, e, h in zip(assignments, effect[rows, arm].tolist(), harm[rows, arm].tolist(), strict=True)
    ]


def clear(path: Path) -> None:
    """Remove an earlier demonstration. Anything else that is there is left alone, and an error."""
    if not path.exists():
        return
    try:
        journal = Journal(path)
        ours = journal.names() == [NAME] and journal.read(NAME)[0].actor == NAME
        journal.close()
    except SurefootError:
        ours = False
    if not ours:
        raise SurefootError(f"{path} is there already and is not an earlier demo: choose another file with --db")
    try:
        for old in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            old.unlink(missing_ok=True)
    except OSError as error:
        raise SurefootError(f"cannot replace {path}: {error.strerror or error}") from error


def play(path: Path, problem: Problem, scenario: Scenario, design: Design, seed: int) -> Study:
    """A whole study in a new SQLite file; an earlier demonstration there is replaced."""
    clear(path)
    study = Study.create(path, NAME, problem, design, actor=NAME, seed=seed, watch="warn")
    while asked := study.ask():
        study.tell_many(simulated(problem, scenario, asked, seed))
    return study


def tell(console: Console, study: Study, scenario: Scenario) -> None:
    """Cohort by cohort: how many subjects at which dose, and what was known of each arm after it."""
    view = study.view
    p, truth, arms = view.problem, scenario.truth(view.problem), story_data(view)
    rows = []
    shown = set(np.linspace(0, len(view.cohorts) - 1, MOST_ROUNDS).astype(int).tolist())
    for k, given in enumerate(view.cohorts):
        if k not in shown and not any(arm.out and arm.out[0] == arm.pulls[k] for arm in arms):
            continue
        cells = []
        for i, arm in enumerate(arms):
            if not given.n[i]:
                cells.append("rests" if arm.out is None or arm.pulls[k] < arm.out[0] else "out")
                continue
            low, high = arm.lower[k], arm.upper[k]
            text = f"{given.n[i]:,} at {study.view.problem.arms[i].label(given.dose[i])}"
            text += f"\n{between(low, high, '.2f')}" if np.isfinite(low) else ""
            cells.append(text + ("  [red]out[/]" if arm.out and arm.out[0] == arm.pulls[k] else ""))
        row = [str(given.number), f"{arms[0].pulls[k]:,}", *cells]
        rows.append(dict(zip(["cohort", "subjects", *map(escape, p.names)], row, strict=True)))
    console.print(Fit(rows, f"One study, {view.design.name}"))
    verdict = study.verdict()
    console.print(f"[bold]Verdict: {verdict.endings()[0]}[/] after {view.subjects:,} subjects.")
    for i, name in enumerate(p.names):
        known = f"[dim](in truth {truth.value[i]:.3g} at dose {truth.dose[i]:.3g})[/]"
        console.print(f"  {escape(name)}: {escape(verdict.reason(i))} {known}")
