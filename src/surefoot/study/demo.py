"""Simulated subjects for a real study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..designs import Design
from ..problem import Problem, SurefootError
from ..scenario import Scenario
from .journal import Journal
from .status import Assignment
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
