"""The decision table of the first cohorts: what a design does after each possible number of harms.

Designs step batches, so a table is a batch: every state once for each outcome of its next cohort.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from .arrays import Array
from .designs.base import ENDINGS, RUNNING, STANDINGS, Cohort, Design, Outcome, repeat, take
from .problem import Problem

COHORTS, MOST = 3, 64  # of an arm, and outcomes of all of them
TURNS = 12  # so long is waited for an arm's next cohort
HEAD = ["cohort", "given", "harms, cohort by cohort", "then: standing", "safe for sure up to", "next"]


@dataclass(frozen=True)
class Row:
    cohort: int
    given: str
    path: tuple[str, ...]  # harms, cohort by cohort
    then: tuple[str, ...]  # standing, certified dose, what is next


def decision_table(p: Problem, design: Design, arm: int = 0) -> list[list[str]]:
    """The head, and a row for every path of harms through the first cohorts that include `arm`; outcomes in a row that
    lead to the same are one row. The other arms have no harm, and half of all readings show an effect."""
    rows: list[Row] = []
    state, cohorts = design.start(p), 0
    paths: list[tuple[str, ...]] = [()]
    for _ in range(TURNS):
        cohort = _ask(design, state)
        here = np.flatnonzero((cohort.n[:, arm] > 0) & (state.ending == RUNNING))
        if len(here) == 0:
            if not np.any(cohort.n > 0):
                break
            state = design.tell(state, cohort, _quiet(p, cohort))
            continue
        harms = _harms(p, int(cohort.n[:, arm].max()))
        if cohorts == COHORTS or len(here) * len(harms) > MOST:
            break
        cohorts += 1
        many = len(harms)
        cohort, paths = repeat(take(cohort, here), many), [paths[i] for i in here]
        state = design.tell(
            repeat(take(state, here), many), cohort, _outcome(p, cohort, arm, np.tile(harms, len(here)))
        )
        paths = [(*path, f"{x:.3g}") for path in paths for x in harms]
        after = _ask(design, state)
        for k, path in enumerate(paths):
            given = f"{int(cohort.n[k, arm])} at {p.arms[arm].label(float(cohort.dose[k, arm]))}"
            safe = str(p.arms[arm].label(float(state.safe[k, arm])))
            then = STANDINGS[int(state.standing[k, arm])], safe, _next(p, int(state.ending[k]), after, k)
            rows.append(Row(cohorts, given, path, then))
    return [HEAD, *_merged(rows)]


def _merged(rows: list[Row]) -> list[list[str]]:
    found = []
    for (number, given, before, then), same in groupby(rows, lambda r: (r.cohort, r.given, r.path[:-1], r.then)):
        last = [row.path[-1] for row in same]
        path = ", ".join([*before, last[0] if len(last) == 1 else f"{last[0]} to {last[-1]}"])
        found.append([str(number), given, path, *then])
    return found


def _ask(design: Design, state: Any) -> Cohort:
    return design.ask(state, np.full((len(state.pulls), design.draws), 0.5))


def _harms(p: Problem, n: int) -> Array:
    """Numbers of binary harms, all of them; means of others, some around the limit."""
    if p.noises[1].binary:
        return np.arange(n + 1.0)
    return p.limit + p.noises[1].scale / np.sqrt(n) * np.array([-3.0, -1.0, 0.0, 1.0, 3.0])


def _quiet(p: Problem, cohort: Cohort) -> Outcome:
    """No harm (as far below the limit as one sigma, or 0), and an effect in half of the readings."""
    calm = 0.0 if p.noises[1].binary else min(0.0, p.limit - p.noises[1].scale)
    return Outcome(cohort.n, np.floor(cohort.n / 2.0), cohort.n * calm)


def _outcome(p: Problem, cohort: Cohort, arm: int, harms: Array) -> Outcome:
    came, n = _quiet(p, cohort), cohort.n[:, arm]
    harm = came.harm.copy()
    harm[:, arm] = np.minimum(harms, n) if p.noises[1].binary else harms * n
    return replace(came, harm=harm)


def _next(p: Problem, ending: int, after: Cohort, k: int) -> str:
    if ending != RUNNING:
        return ENDINGS[ending]
    each = zip(p.arms, after.n[k], after.dose[k], strict=True)
    return "; ".join(f"{arm.name}: {int(n)} at {arm.label(float(dose))}" for arm, n, dose in each if n)
