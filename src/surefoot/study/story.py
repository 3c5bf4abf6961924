"""The picture of a study: the data of `pictures`, from its cohorts."""

from __future__ import annotations

import math
import weakref
from dataclasses import replace
from typing import Any

import numpy as np

from ..designs.base import STANDINGS, out_since
from ..pictures import ArmStory
from .checker import Sums
from .fold import View


def story_data(view: View, most: int | None = None) -> list[ArmStory]:
    """One arm each: when it was given which dose to how many, and what was known after each cohort, or after some that
    are evenly apart, about `most` of them."""
    many = sum(given.closed for given in view.cohorts)
    every = [view.came(given) for given in view.cohorts]  # what the open cohort has so far counts too
    after = np.cumsum([sum(came[0] for came in rows.values()) for rows in every])
    step = 1 << max(math.ceil(math.log2(many / most)), 0) if many and most else 1  # so that most are the same next time
    moments = sorted({*range(0, many, step), many - 1} - {-1})
    states = [view.before[k + 1] if k + 1 < many else view.state for k in moments] or [view.state]
    known = [_verdict(view, state) for state in states]
    upto, some, stories = after[moments], slice(len(moments)), []
    advice = view.design.recommendation(view.state, odds=False)
    given: list[list[tuple[float, ...]]] = [[] for _ in view.problem.arms]
    for k, rows in zip(after.tolist(), every, strict=True):
        for (arm, dose), (n, effect, harm, *_) in rows.items():
            given[arm] += [(k, dose, n, effect / n, harm / n)] if n else []
    for arm, name in enumerate(view.problem.names):
        at = [np.array(column, dtype=float) for column in zip(*given[arm], strict=True)] or [np.zeros(0)] * 5
        standing, low, high, safe, may = (
            np.array([getattr(v, key)[0, arm] for v in known][some])
            for key in ("standing", "lower", "upper", "safe", "certified")
        )
        left, unsafe = out_since(standing), float(known[-1].unsafe[0, arm])
        out = (float(upto[left]), STANDINGS[int(known[-1].standing[0, arm])]) if left < len(upto) else None
        story = ArmStory(name, (at[0], at[1], at[2]), upto, low, high, safe, may, unsafe, out, at[3], at[4])
        advised = float(advice.dose[0]) if int(advice.arm[0]) == arm and len(at[0]) else None
        stories.append(replace(story, sigma=_sigma(every, arm), advised=advised))
    return stories


_seen: dict[int, tuple[Any, Any]] = {}  # states that are alive -> their verdicts


def _verdict(view: View, state: Any) -> Any:
    """Bounds take a while, and those of the past do not change."""
    kept = _seen.get(id(state))
    if kept is None or kept[0]() is not state:
        if len(_seen) > 20_000:
            _seen.clear()
        kept = _seen[id(state)] = weakref.ref(state), view.design.verdict(state)
    return kept[1]


def _sigma(every: list[Sums], arm: int) -> tuple[float, float] | None:
    """Of an arm's effects and harms, by how they vary within cohorts; None where that is not kept, or not known yet."""
    rows = [x for came in every for (i, _), x in came.items() if i == arm and len(x) > 3 and x[0] > 1]
    free = sum(n - 1 for n, *_ in rows)
    return (math.sqrt(sum(x[3] for x in rows) / free), math.sqrt(sum(x[4] for x in rows) / free)) if free else None
