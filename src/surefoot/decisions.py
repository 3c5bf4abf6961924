"""The decision table of the first cohorts: what a design does after each possible number of harms.

Designs step batches, so a table is a batch: every state once for each outcome of its next cohort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from .arrays import Array
from .designs.base import ACTIVE, ENDINGS, RUNNING, STANDINGS, Cohort, Design, Outcome, expected_squares, repeat, take
from .problem import Problem

COHORTS, MOST = 3, 64  # of an arm, and outcomes of all of them
FIRST = 16  # of more possible counts than that, so many are looked at before those where the decision turns
TURNS = 60  # so long is waited for an arm's next cohort
HEAD = ["cohort", "given", "harms before", "harms now", "what comes next"]
Path = tuple[str, ...]  # harms, cohort by cohort


def decision_table(p: Problem, design: Design, arm: int = 0) -> list[list[str]]:
    """The head, and a row for every path of harms through the first cohorts of `arm`; what leads to the same is one
    row. The other arms have no harm, and half of all readings show an effect."""
    table, paths = [HEAD], list[Path]([()])
    state, cohort, _ = until_given(p, design, design.start(p), arm)
    for number in range(1, COHORTS + 1):
        here = np.flatnonzero((cohort.n[:, arm] > 0) & (state.ending == RUNNING))
        harms = _harms(p, max(int(cohort.n[:, arm].max()), 1))
        state, cohort, paths = take(state, here), take(cohort, here), [paths[i] for i in here]
        step = partial(_step, p, design, state, cohort, arm)
        if number == 1 and len(harms) > MOST:
            harms = turns(harms, lambda some: step(some)[2])  # noqa: B023  (it is done with here)
        if not len(here) or len(here) * len(harms) > MOST:
            break
        given, (state, cohort, _), then = step(harms)
        paths = [(*path, f"{x:.12g}" if p.noises[1].binary else f"{x:.3g}") for path in paths for x in harms]
        kept = [k for k, path in enumerate(paths) if not p.noises[1].binary or float(path[-1]) <= int(given.n[k, arm])]
        table += [[str(number), *row] for row in _merged([(_given(p, given, arm, k), paths[k], then[k]) for k in kept])]
    return table


def _step(
    p: Problem, design: Design, state: Any, cohort: Cohort, arm: int, harms: Array
) -> tuple[Cohort, tuple[Any, Cohort, Array], list[str]]:
    """Every state with each of these harms: what was given, what comes after it, and that in words."""
    given = repeat(cohort, len(harms))
    outcome = _outcome(p, given, arm, np.tile(harms, len(cohort.n)))
    after = until_given(p, design, design.tell(repeat(state, len(harms)), given, outcome), arm)
    return given, after, [what_next(p, after[0], given, *after[1:], arm, k) for k in range(len(given.n))]


def turns(counts: Array, then: Callable[[Array], Sequence[Any]]) -> Array:
    """Of counts in rising order the ends, and both sides of wherever the decision turns: some are looked at, and then
    it is halved between those that differ."""
    some = sorted({*range(0, len(counts), max(len(counts) // FIRST, 1)), len(counts) - 1})
    seen = dict[int, Any]()
    while some:
        seen |= zip(some, then(counts[some]), strict=True)
        some = [(a + b) // 2 for a, b in pairwise(sorted(seen)) if b - a > 1 and seen[a] != seen[b]]
    edges = {k for a, b in pairwise(sorted(seen)) if seen[a] != seen[b] for k in (a, b)}
    return counts[sorted({0, *edges, len(counts) - 1})]


def _merged(rows: list[tuple[str, Path, str]]) -> list[list[str]]:
    """Neighbouring numbers of harms that lead to the same are one row, and so are earlier ones that make no
    difference."""
    each: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for (given, before), group in groupby(rows, lambda row: (row[0], row[1][:-1])):
        now = []
        for then, same in groupby(group, lambda row: row[2]):
            last = [path[-1] for _, path, _ in same]
            now.append((last[0] if len(last) == 1 else f"{last[0]} to {last[-1]}", then))
        each.setdefault((given, tuple(now)), []).append(", ".join(before) or "none yet")
    return [
        [given, "; or ".join(before), harms, then]
        for (given, now), before in each.items()
        for harms, then in now
    ]  # fmt: skip


def until_given(p: Problem, design: Design, state: Any, arm: int, turns: int = TURNS) -> tuple[Any, Cohort, Array]:
    """Every trial at the moment when the arm is next given something, what that is, and how many cohorts of others
    came before: without harm."""
    waits = np.zeros(len(state.pulls), dtype=np.int64)
    for _ in range(turns):
        cohort = _ask(design, state)
        wait = (cohort.n[:, arm] == 0) & (state.ending == RUNNING) & (state.standing[:, arm] == ACTIVE)
        if not wait.any():
            break
        cohort = replace(cohort, n=np.where(wait[:, None], cohort.n, 0))
        state, waits = design.tell(state, cohort, _quiet(p, cohort)), waits + wait
    return state, _ask(design, state), waits


def _ask(design: Design, state: Any) -> Cohort:
    return design.ask(state, np.full((len(state.pulls), design.draws), 0.5))


def _harms(p: Problem, n: int) -> Array:
    """Numbers of binary harms, all of them; means of others, some around the limit."""
    if p.noises[1].binary:
        return np.arange(n + 1.0)
    return p.limit + p.noises[1].scale / np.sqrt(n) * np.array([-3.0, -1.0, 0.0, 1.0, 3.0])


def _quiet(p: Problem, cohort: Cohort) -> Outcome:
    """No harm (as far below the limit as one sigma, or 0), and an effect in half of the readings."""
    calm = 0.0 if p.noises[1].counts else min(0.0, p.limit - p.noises[1].scale)
    return Outcome(cohort.n, np.floor(cohort.n / 2.0), cohort.n * calm, expected_squares(p, cohort.n))


def _outcome(p: Problem, cohort: Cohort, arm: int, harms: Array) -> Outcome:
    came, n = _quiet(p, cohort), cohort.n[:, arm]
    harm = came.harm.copy()
    harm[:, arm] = np.minimum(harms, n) if p.noises[1].binary else harms * n
    return replace(came, harm=harm)


def _given(p: Problem, cohort: Cohort, arm: int, k: int) -> str:
    return f"{int(cohort.n[k, arm])} at {p.arms[arm].label(float(cohort.dose[k, arm]))}"


def what_next(p: Problem, state: Any, was: Cohort, after: Cohort, waits: Array, arm: int, k: int) -> str:
    """Up, again or down, how many, and whether the others come first."""
    out = state.standing[k, arm] != ACTIVE and not after.n[k, arm]
    if not waits[k] and (state.ending[k] != RUNNING or out):
        ended = ENDINGS[int(state.ending[k])] if state.ending[k] != RUNNING else STANDINGS[int(state.standing[k, arm])]
        return f"{p.names[arm]}: {ended}"
    if not after.n[k, arm]:
        return "rests; the others go on"
    step = after.dose[k, arm] - was.dose[k, arm]
    way = "up" if step > 1e-12 else "down" if step < -1e-12 else "again"
    return f"{way}: {_given(p, after, arm, k)}" + (", after the others" if waits[k] else "")
