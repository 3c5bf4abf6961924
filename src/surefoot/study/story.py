"""The picture of a study: the data of `pictures`, from its cohorts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..designs.base import ACTIVE, STANDINGS
from ..pictures import ArmStory
from .fold import View
from .published import certified


def story_data(view: View) -> list[ArmStory]:
    """One arm each: when it was given which dose to how many, and what was known after each cohort."""
    closed = [given for given in view.cohorts if given.closed]
    upto = np.cumsum([sum(came[0] for came in given.came.values()) for given in closed])
    states = [*view.before[1 : len(closed)], view.state] if closed else []
    verdicts = [view.design.verdict(state) for state in states]
    allowed = [certified(view.design, state) for state in states]
    stories = []
    for arm, name in enumerate(view.problem.names):
        given = [
            (int(k), c.dose[arm], c.n[arm], *_means(c, arm)) for c, k in zip(closed, upto, strict=True) if c.n[arm]
        ]
        at = [np.array(column, dtype=float) for column in zip(*given, strict=True)] or [np.zeros(0)] * 5
        left = next((k for k, v in enumerate(verdicts) if int(v.standing[0, arm]) != ACTIVE), None)
        out = None if left is None else (float(upto[left]), STANDINGS[int(view.state.standing[0, arm])])
        low, high, safe = [
            np.array([float(getattr(v, key)[0, arm]) for v in verdicts]) for key in ("lower", "upper", "safe")
        ]
        may = np.array([row[arm] for row in allowed])
        unsafe = float(view.design.verdict(view.state).unsafe[0, arm])
        stories.append(ArmStory(name, (at[0], at[1], at[2]), upto, low, high, safe, may, unsafe, out, at[3], at[4]))
    return stories


def _means(given: Any, arm: int) -> tuple[float, float]:
    """Of the readings of one arm in a cohort."""
    rows = [came for (i, _), came in given.came.items() if i == arm]
    n = sum(row[0] for row in rows)
    return (sum(r[1] for r in rows) / n, sum(r[2] for r in rows) / n) if n else (float("nan"), float("nan"))
