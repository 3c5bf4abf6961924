"""The guard: the designs' safety theorems once more, from raw readings, in plain scalar code.

It shares nothing with the designs: a dose that the two do not both certify is not released. A theorem is one function
of the problem, the design's options and the rounds so far; it returns an upper bound on the harm of any arm at any
dose, and all its bounds hold together with probability at least 1 - delta. A design whose name is not in `THEOREMS`
cannot run a live study.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..problem import Problem

CLOSE = 1e-9  # how far guard and design may differ, relative to the limit


class Came(NamedTuple):
    """Readings of one arm at one dose in one round."""

    n: int
    effect: float  # sums
    harm: float


class Round(NamedTuple):
    """What the design asked of every arm (dose, pulls), and what came back by arm and dose actually given."""

    asked: tuple[tuple[float, int], ...]
    came: dict[tuple[int, float], Came]


Bound = Callable[[int, float], float]
Theorem = Callable[[Problem, Mapping[str, Any], Sequence[Round]], Bound]  # the mapping: the design's options


def summed(readings: Iterable[tuple[int, float, float, float]]) -> dict[tuple[int, float], Came]:
    """Readings (arm, dose, effect, harm), summed exactly by arm and dose."""
    lists: dict[tuple[int, float], tuple[list[float], list[float]]] = {}
    for arm, dose, effect, harm in readings:
        effects, harms = lists.setdefault((arm, dose), ([], []))
        effects.append(effect)
        harms.append(harm)
    return {at: Came(len(e), math.fsum(e), math.fsum(h)) for at, (e, h) in lists.items()}


def stages(rounds: Sequence[Round]) -> Iterator[dict[int, tuple[float, int, float]]]:
    """The complete stages of a staged design: arm -> dose, pulls, sum of harms.

    A stage is complete once every arm has the pulls asked of it, at the dose asked; it may take several rounds. Other
    doses are set aside, and so are more pulls than were asked for: the bounds are for a number fixed beforehand.
    """
    stage: dict[int, tuple[float, int, float]] = {}
    for round_ in rounds:
        short = False
        for arm, (dose, asked) in enumerate(round_.asked):
            came = round_.came.get((arm, dose), Came(0, 0.0, 0.0))
            if asked and came.n <= asked:
                _, n, harm = stage.get(arm, (dose, 0, 0.0))
                stage[arm] = (dose, n + came.n, harm + came.harm)
            short |= asked > 0 and came.n != asked
        if stage and not short:
            yield stage
            stage = {}


def _sigma(problem: Problem) -> float:
    effect, harm = problem.noises
    return max(effect.scale, harm.scale)


def safebai_linear(problem: Problem, options: Mapping[str, Any], rounds: Sequence[Round]) -> Bound:
    """Lemma 1 of the paper. In epoch l every mean of n readings is within sigma sqrt(2 log(8 d l^2/delta)/n) of the
    truth, all together with probability 1 - delta; harm is a slope times the dose."""
    d, sigma = len(problem.arms), _sigma(problem)
    slope = [math.inf] * d
    for l, stage in enumerate(stages(rounds), 1):
        for arm, (dose, n, harm) in stage.items():
            radius = sigma * math.sqrt(2 * math.log(8 * d * l * l / problem.delta) / n)
            slope[arm] = min(slope[arm], (harm / n + radius) / dose)
    return lambda arm, dose: dose * slope[arm]


def safebai_monotonic(problem: Problem, options: Mapping[str, Any], rounds: Sequence[Round]) -> Bound:
    """Lemma 13 of the paper. In Estimate t the mean of n readings is within sigma sqrt(2 log(8 t^2/delta)/n) of the
    truth, all together with probability 1 - delta; harm never falls, and rises by at most K for each unit of dose."""
    sigma, t = _sigma(problem), 0
    known: list[list[tuple[float, float]]] = [[] for _ in problem.arms]
    for stage in stages(rounds):
        for arm in sorted(stage):
            dose, n, harm = stage[arm]
            t += 1
            known[arm].append((dose, harm / n + sigma * math.sqrt(2 * math.log(8 * t * t / problem.delta) / n)))

    def bound(arm: int, dose: float) -> float:
        K = problem.arms[arm].lipschitz
        return min((upper + K * max(dose - a, 0.0) for a, upper in known[arm]), default=math.inf)

    return bound


def _prior(top: float, dense: int, above: int) -> list[tuple[float, float]]:
    """Values and logs of weights: `dense` values by steps of 1.8, and 15% on others beyond them by steps of 2.5."""
    values = [top * 1.8**-j for j in range(dense)]
    tail = [(values[-1] * 2.5**-k, 1 / (k * (k + 1))) for k in range(1, 13)]
    tail += [(top * 2.5**k, 0.5 / (k * (k + 1))) for k in range(1, above + 1)]
    total = sum(weight for _, weight in tail)
    weights = [(x, 0.85 / dense) for x in values] + [(x, 0.15 * weight / total) for x, weight in tail]
    return [(x, math.log(weight)) for x, weight in weights]


def _log_sum(logs: list[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs))


def _last(logs: Callable[[float], list[float]], goal: float, low: float, most: float = math.inf) -> float:
    """Where the log of the sum of exp(logs), which increases from `low` on, reaches the goal, or `most`."""

    def short(m: float) -> bool:
        return _log_sum(logs(m)) < goal

    high = min(low + 1, most)
    while high < most and short(high):
        low, high = high, min(2 * high, most)
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if short(middle) else (low, middle)
    return high


class Moment(NamedTuple):
    """Sums over the readings of one arm so far: how many, their doses a in start doses, harms z in units of sigma."""

    n: int = 0
    a: float = 0.0
    z: float = 0.0
    aa: float = 0.0
    az: float = 0.0

    def plus(self, a: float, came: Came, sigma: float) -> Moment:
        z = came.harm / sigma
        return Moment(self.n + came.n, self.a + a * came.n, self.z + z, self.aa + a * a * came.n, self.az + a * z)


def _moments(problem: Problem, rounds: Sequence[Round], arm: int, sigma: float) -> list[Moment]:
    """The moments at which an arm's doses were certified: in each round first after what was given at other doses than
    asked, one after another, then after the rest. Doses beyond the largest are set aside."""
    it, found = problem.arms[arm], [Moment()]
    for round_ in rounds:
        came = sorted((dose == round_.asked[arm][0], dose) for k, dose in round_.came if k == arm)
        for _, dose in came:
            if 0 < dose <= it.largest:
                found.append(found[-1].plus(dose / it.start, round_.came[arm, dose], sigma))
    return found[1:]


def surefoot_linear(problem: Problem, options: Mapping[str, Any], rounds: Sequence[Round]) -> Bound:
    """Theorem 1 of docs/guarantees.md. A test of the slope m of an arm's harm reaches d / (0.3 delta) with probability
    0.3 delta / d at most if m is the slope, and it increases in m from the estimate on. Doses a are in start doses. A
    slope that was refuted at any moment stays refuted.

    The mean over r of exp(r m (m v - z) - (r m)^2 v / 2), v = sum a^2, z = sum a harm, harms in units of sigma. Binary
    harms: the mean over g of exp(-g z) / (1 - m a (1 - exp(-g)))^n, z = sum harm, a the mean dose; m a is at most 1.
    """
    noise, goal = problem.noises[1], math.log(len(problem.arms) / (0.3 * problem.delta))
    binary = noise.binary
    prior = _prior(2.5, 6, 1) if binary else _prior(0.9, 5, 0)
    sigma = 1.0 if binary else noise.scale
    moments = [_moments(problem, rounds, arm, sigma) for arm in range(len(problem.arms))]

    def logs(at: Moment, m: float) -> list[float]:
        if binary:
            p = min(m * at.a / at.n, 1.0)
            return [w - g * at.z - at.n * math.log1p(p * math.expm1(-g)) for g, w in prior]
        return [w + r * m * (m * at.aa * (1 - r / 2) - at.az) for r, w in prior]

    def slope(at: Moment) -> float:
        if binary:
            return _last(lambda m: logs(at, m), goal, at.z / at.a, at.n / at.a)
        return _last(lambda m: logs(at, m), goal, max(at.az / at.aa, 0.0))

    def bound(arm: int, dose: float) -> float:
        if not moments[arm]:
            return math.inf
        a = dose / problem.arms[arm].start
        most = problem.limit / sigma / a * (1 + CLOSE)  # the slope at which this dose is just safe
        shown = (at for at in reversed(moments[arm][:-1]) if _log_sum(logs(at, most)) >= goal)
        upper = slope(moments[arm][-1])
        if upper > most and (before := next(shown, None)):
            upper = slope(before)
        return a * upper * sigma

    return bound


THEOREMS: dict[str, Theorem] = {
    "safebai-linear": safebai_linear,
    "safebai-monotonic": safebai_monotonic,
    "surefoot-linear": surefoot_linear,
}


def default(shape: str) -> str:
    """The design of a live study where none is asked for."""
    return next(name for name in (f"surefoot-{shape}", f"safebai-{shape}") if name in THEOREMS)


def refusal(problem: Problem, bound: Bound, arm: int, dose: float) -> str | None:
    """Why this dose of this arm may not be given; None where it may."""
    it, ceiling = problem.arms[arm], problem.ceiling
    here = f"{it.name} at dose {dose:.6g}"
    if not math.isfinite(dose) or dose > it.largest + CLOSE * abs(it.largest):
        return f"{here} is above its largest dose {it.largest:.6g}"
    if it.levels is not None and dose not in it.levels:
        return f"{here} is none of its levels {', '.join(f'{x:g}' for x in it.levels)}"
    if dose <= it.start:
        return None  # known to be safe
    upper = bound(arm, dose)
    if upper <= ceiling + CLOSE * max(abs(problem.limit), abs(ceiling)):
        return None
    return f"{here}: the guard can only bound its harm by {upper:.9g}, above {ceiling:.9g}"
