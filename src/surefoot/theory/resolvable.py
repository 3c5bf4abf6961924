"""Whether a problem can be resolved, as far as that can be known before the first pull.

Levels of the monotonic shape are all that can stand in the way. From a level a on, all that is known of the next level
b is that its harm is between g(a) and g(a) + K (b - a). So b is certified, sooner or later, where g(a) + K (b - a) <
limit + slack, and no safe dose lies above a where g(a) > limit. In between, for

    limit + slack - K (b - a) <= g(a) <= limit,

pulls at a and below can do neither, whatever their number: the instance with g(b) = limit (its effect there as large as
may be) and one with g(b) above limit + slack agree in all that may ever be seen. There are such truths if K (b - a) is
above the slack, and else only those with g(a) at the limit itself. Doses without levels can always be climbed by
smaller steps, and in the linear shape pulls at any dose tell the slope, and so whether any other dose is safe.
"""

from __future__ import annotations

import math
from itertools import pairwise

from ..noise import Bounded
from ..problem import Arm, Problem, SurefootError

MANY = 20  # readings for a step, from which on they are said to be many


def doubts(problem: Problem) -> list[str]:
    """What may keep a study from ever ending, for some truths: to be told when the problem is read. Empty: nothing."""
    if problem.slack is None:
        return []
    found = []
    for arm in problem.arms:
        for a, b, rise in _wide(problem, arm):
            found.append(
                f"the next level of {arm.name} after {a:g}, {b:g}, may be {rise:g} above it in harm; slack is "
                f"{problem.slack:g}: where harm at {a:g} is {problem.ceiling - rise:g} or more, and within the limit, "
                "nothing can certify it, nor show that it is over the limit"
            )
    return found


def dear(problem: Problem) -> list[str]:
    """What makes every level dear: harm between two ends that are far from the limit. A bet that is fair for every law
    of mean c on [0, 1] pays at most 1/(1 - c) for a reading of 0, so log(1/delta) takes that many, however clear."""
    harm = problem.noises[1]
    if not isinstance(harm, Bounded) or problem.shape != "levels":
        return []
    c = (problem.ceiling - harm.low) / (harm.high - harm.low)
    least = math.ceil(math.log(1 / problem.delta) / -math.log1p(-c)) if 0 < c < 1 else 0
    said = (
        f"harm is declared between {harm.low:g} and {harm.high:g}, and limit + slack is {problem.ceiling:g}: a level "
        f"is certified by no fewer than {least} readings of an arm, however clear they are; ends as near as harm can "
        f"be, or a sigma where earlier readings give one (gaussian; surefoot pilot), take fewer"
    )
    return [said] if least > MANY else []


def impossible(problem: Problem) -> list[str]:
    """Why no study of this problem can find the best arm, whatever the truth: reasons to refuse it. Empty: none.

    Binary harms are never below 0: a rise of limit + slack or more to the next level leaves it open for every truth.
    An arm with such a level can never be refuted, as its effect there may be anything; so no two arms may have one.
    """
    found, harm = [], problem.noises[1]
    if harm.binary and problem.limit < 0:
        found.append(f"harm is 0 or 1, so its mean is never within a limit of {problem.limit:g}: no dose is safe")
    if problem.budget < len(problem.arms):
        found.append(f"a budget of {problem.budget} leaves arms that are never pulled: there are {len(problem.arms)}")
    if harm.binary and problem.tolerance is None:
        open_ = [
            (arm, a, b, rise)
            for arm in problem.arms
            for a, b, rise in _wide(problem, arm)[:1]
            if rise >= problem.ceiling
        ]
        if len({arm.name for arm, *_ in open_}) > 1:
            found += [
                f"the next level of {arm.name} after {a:g}, {b:g}, may be {rise:g} above it in harm; limit + slack is "
                f"{problem.ceiling:g}: nothing can certify it"
                for arm, a, b, rise in open_
            ]
    return found


def remarks(problem: Problem) -> list[str]:
    """All of it in sentences."""
    kinds = ("cannot be resolved", impossible), ("may never end", doubts), ("is dear", dear)
    return [f"This {what}: {line}." for what, find in kinds for line in find(problem)]


def refuse(problem: Problem) -> None:
    """An error where no study of this problem can find the best arm."""
    if reasons := impossible(problem):
        raise SurefootError("this problem cannot be resolved: " + "; ".join(reasons))


def _wide(problem: Problem, arm: Arm) -> list[tuple[float, float, float]]:
    """The steps between levels that may raise harm by more than the slack: from, to, by how much."""
    if problem.shape != "monotonic" or problem.slack is None or arm.levels is None:
        return []
    steps = [(a, b, arm.lipschitz * (b - a)) for a, b in pairwise(arm.levels)]
    return [step for step in steps if step[2] > problem.slack * (1 + 1e-9)]
