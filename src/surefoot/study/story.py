"""The picture of a study: the data of `pictures`, from its cohorts."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce

import numpy as np

from ..designs.base import ACTIVE, STANDINGS, join
from ..pictures import ArmStory
from .checker import Sums
from .fold import View


def story_data(view: View) -> list[ArmStory]:
    """One arm each: when it was given which dose to how many, and what was known after each cohort."""
    closed = [given for given in view.cohorts if given.closed]
    every = [view.came(given) for given in view.cohorts]  # what the open cohort has so far counts too
    after = np.cumsum([sum(came[0] for came in rows.values()) for rows in every])
    upto = after[: len(closed)]
    states = reduce(join, [*view.before[1 : len(closed)], view.state])  # as trials side by side: one look at all
    known, some, stories = view.design.verdict(states), slice(len(closed)), []
    advice = view.design.recommendation(view.state, odds=False)
    for arm, name in enumerate(view.problem.names):
        given = [
            (k, dose, n, effect / n, harm / n)
            for k, rows in zip(after.tolist(), every, strict=True)
            for (i, dose), (n, effect, harm, *_) in rows.items()
            if i == arm and n
        ]
        at = [np.array(column, dtype=float) for column in zip(*given, strict=True)] or [np.zeros(0)] * 5
        left = np.flatnonzero(known.standing[some, arm] != ACTIVE)
        out = (float(upto[left[0]]), STANDINGS[int(known.standing[-1, arm])]) if len(left) else None
        low, high, safe, may = (x[some, arm] for x in (known.lower, known.upper, known.safe, known.certified))
        unsafe = float(known.unsafe[-1, arm])
        story = ArmStory(name, (at[0], at[1], at[2]), upto, low, high, safe, may, unsafe, out, at[3], at[4])
        advised = float(advice.dose[0]) if int(advice.arm[0]) == arm and len(at[0]) else None
        stories.append(replace(story, sigma=_sigma(every, arm), advised=advised))
    return stories


def _sigma(every: list[Sums], arm: int) -> tuple[float, float] | None:
    """Of an arm's effects and harms, by how they vary within cohorts; None where that is not kept, or not known yet."""
    rows = [x for came in every for (i, _), x in came.items() if i == arm and len(x) > 3 and x[0] > 1]
    free = sum(n - 1 for n, *_ in rows)
    return (math.sqrt(sum(x[3] for x in rows) / free), math.sqrt(sum(x[4] for x in rows) / free)) if free else None
