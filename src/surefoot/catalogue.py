"""Named cases, each a Problem and its hidden Scenario: the paper's two instances, two random families, hard cases that
try to break the guarantee, and cases outside the assumptions, about which nothing is claimed.

`case("paper-drug", arms=5, delta=0.01)` makes one, `case("random-linear", instance=3)` the third (from 0) of a family;
`CASES` lists them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .problem import Arm, Noise, Problem, SurefootError
from .registry import Registry
from .scenario import Array, Curve, Emax, Linear, Logistic, Scenario, Table

Made = tuple[Problem, Scenario]


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    make: Callable[..., Made]  # of the number of arms, and of the instance where there are instances
    arms: int  # by default
    fixed: bool = False  # whether that is the only number there can be
    claim: bool = True  # whether the assumptions hold, and with them the guarantee
    family: bool = False  # whether it has instances: 0, 1, 2, ...


def _a_case(thing: Any) -> str | None:
    return None if isinstance(thing, Case) else "a surefoot.catalogue.Case"


CASES: Registry[Case] = Registry("scenarios", {}, _a_case)


def case(name: str, arms: int | None = None, *, instance: int | None = None, **changes: Any) -> Made:
    """A scenario of the catalogue: the problem, and its hidden truth.

    Parameters
    ----------
    name
        One of `CASES` (`surefoot scenarios` lists them).
    arms
        How many, where it scales.
    instance
        For the random families: the same number gives the same instance, everywhere; 0 by default.
    **changes
        Fields of the Problem: delta, slack, budget, ...

    Returns
    -------
    (Problem, Scenario)

    Raises
    ------
    SurefootError
        If there is no such scenario, or it does not scale.

    Examples
    --------
    >>> import surefoot
    >>> problem, truth = surefoot.case("paper-drug", 3, delta=0.05)
    >>> problem
    <Problem: 3 arms (drug 1, drug 2, drug 3), monotonic, limit 0.3 + slack 0.2, delta 0.05, noise gaussian 0.316228>
    """
    it = CASES[name]
    if arms is not None and (isinstance(arms, bool) or not isinstance(arms, int) or arms < 2):
        raise SurefootError(f"arms must be a whole number of at least 2; got {arms!r}")
    if it.fixed and arms not in (None, it.arms):
        raise SurefootError(f"{name} has {it.arms} arms and does not scale; leave arms out")
    which: tuple[int, ...] = ()
    if instance is not None:
        if not it.family:
            families = " and ".join(one.name for one in CASES.values() if one.family)
            raise SurefootError(f"{name} is one case and has no instances (those that have: {families})")
        if isinstance(instance, bool) or not isinstance(instance, int) or instance < 0:
            raise SurefootError(f"instance must be a whole number of at least 0; got {instance!r}")
        which, name = (instance,), f"{name} {instance}"
    problem, scenario = it.make(arms or it.arms, *which)
    return problem.but(**changes), replace(scenario, name=name)


def _case(name: str, arms: int = 5, **flags: bool) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    def add(make: Callable[..., Made]) -> Callable[..., Made]:
        CASES.add(Case(name, " ".join((make.__doc__ or "").split()), make, arms, **flags))
        return make

    return add


def _linear(
    theta: Any, mu: Any, *, start: Any = 0.1, max: Any = math.inf, limit: float = 1.0, sigma: float = 0.5**0.5,
    noise: Any = None, correlation: float = 0.0, actual: Any = None, drift: float = 0.0, **problem: Any,
) -> Made:  # fmt: skip
    """Slopes theta of the effect and mu of the harm, one an arm; start and max one for all or one an arm."""
    theta, mu, start, max = np.broadcast_arrays(*(np.asarray(x, float) for x in (theta, mu, start, max)))
    arms = tuple(Arm(f"arm {i + 1}", start[i], max[i]) for i in range(len(theta)))
    effect, harm = ([Linear(float(x)) for x in slopes] for slopes in (theta, mu))
    made = Problem(arms, limit, "linear", noise or Noise("gaussian", sigma), **{"delta": 0.1, **problem})
    return made, Scenario(tuple(effect), tuple(harm), noise=actual, correlation=correlation, drift=drift)


def _monotonic(
    effect: Sequence[Curve], harm: Sequence[Curve], *, start: Any = -3.0, max: Any = 0.5, limit: float = 0.3,
    lipschitz: Any = 1.0, levels: Any = None, noise: Any = None, correlation: float = 0.0, **problem: Any,
) -> Made:  # fmt: skip
    d = len(effect)
    start, max, lipschitz = (np.broadcast_to(np.asarray(x, float), (d,)) for x in (start, max, lipschitz))
    arms = tuple(Arm(f"drug {i + 1}", start[i], max[i], lipschitz[i], levels) for i in range(d))
    noise = noise or Noise("gaussian", 0.1**0.5)
    made = Problem(arms, limit, "monotonic", noise, **{"slack": 0.2, "delta": 0.1, **problem})
    return made, Scenario(tuple(effect), tuple(harm), correlation=correlation)


def _first(value: float, other: float, arms: int) -> list[float]:
    return [value] + [other] * (arms - 1)


def _falling(value: float, other: float, arms: int, by: float = 0.97) -> list[float]:
    """The first, then rivals that are a little less each: a trial that loses the best arm, as one in ten may, is not
    left with arms that nothing can tell apart, for ever."""
    return [value] + [other * by**k for k in range(arms - 1)]


def _drugs(slope: float, other: float, arms: int) -> list[Curve]:
    """Logistic curves, the rivals' effect a little less each (2 to 4%, by how far up the curve it is)."""
    return [Logistic(slope), *(Logistic(other, -0.04 * k) for k in range(arms - 1))]


# The paper's instances


@_case("paper-linear", 10)
def paper_linear(d: int) -> Made:
    """The paper's linear instance: one best arm, one at gap 0.4, the others at gap 0.8; largest dose 1.5, safe for the
    best arm's rivals only beyond reach."""
    return _linear([1.0, 0.9] + [1.0] * (d - 2), [1.0, 1.5] + [5.0] * (d - 2), max=1.5, signals="independent")


@_case("paper-drug", 10)
def paper_drug(d: int) -> Made:
    """The paper's drug instance: logistic curves, one drug that works below the limit, the others only above it.
    Largest dose 0.5 (the paper's -0.5 would leave a slack of 0.08 at most); delta and slack are not given there."""
    return _monotonic([Logistic(x) for x in _first(0.01, 10.0, d)], [Logistic(1.0)] * d, signals="independent")


# Random families: instances that somebody could have, so that no design is made for the few named ones


def _log(rng: np.random.Generator, low: float, high: float, size: int | None = None) -> Any:
    """Even on the scale of logarithms. Only `random` is drawn from: its stream is the same on every platform."""
    return low * (high / low) ** rng.random(size)


def _one_of(rng: np.random.Generator, *options: tuple[float, Any]) -> Any:
    """One of (weight, option)."""
    weights = np.cumsum([weight for weight, _ in options])
    return options[int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))][1]


def _values(rng: np.random.Generator, d: int, scale: float) -> Array:
    """The value of every arm: the best at `scale`, in any place; the next one at least 2% of that below, in one
    instance of four within 5%; in one of three, two of the others within 5% of each other."""
    share = 0.1 + 0.85 * rng.random(d)
    if rng.random() < 0.25:
        share[0] = 0.95 + 0.03 * rng.random()
    if d > 3 and rng.random() < 1 / 3:
        share[2] = share[1] * (0.95 + 0.05 * rng.random())
    share[d - 1] = 1.0
    return np.asarray(scale * share[np.argsort(rng.random(d))])


def _readings(rng: np.random.Generator) -> dict[str, Any]:
    """Half declare their readings independent and have them so; the others have some correlation."""
    if rng.random() < 0.5:
        return {"signals": "independent"}
    return {"correlation": _one_of(rng, (1, 0.0), (1, 1.0), (1, -1.0), (3, round(2 * rng.random() - 1, 3)))}


@_case("random-linear", 8, family=True)
def random_linear(d: int, instance: int = 0) -> Made:
    """Random lines: slopes over decades, any start and largest doses, some arms safe at their largest dose, some values
    within 5% of each other, some instances with values near 0.01 or 100."""
    rng = np.random.default_rng([1, instance])
    scale = _one_of(rng, (6, _log(rng, 0.3, 3.0)), (1, _log(rng, 0.007, 0.014)), (1, _log(rng, 70.0, 140.0)))
    limit = _log(rng, 0.3, 3.0) * _one_of(rng, (1, 1.0), (1, scale))
    kind = _one_of(rng, (3, "gaussian"), (1, "rademacher"))
    sigmas = scale * _log(rng, 0.1, 1.5), limit * _log(rng, 0.1, 1.5)
    sigmas = _one_of(rng, (1, sigmas), (2, (min(sigmas),) * 2))  # apart, or one for both
    crossing = _log(rng, 0.03, 30.0, d)  # where harm is at the limit
    far = _log(rng, 1.05, 10.0, d)  # the largest dose, in crossings; below 1 it is safe
    far = np.where(rng.random(d) < 0.3, 0.3 + 0.7 * rng.random(d), np.where(rng.random() < 0.2, math.inf, far))
    top = crossing * np.minimum(far, 1.0)
    return _linear(
        _values(rng, d, scale) / top, limit / crossing, start=top * _log(rng, 0.02, 0.8, d), max=crossing * far,
        limit=limit, noise=tuple(Noise(kind, sigma) for sigma in sigmas), **_readings(rng),
    )  # fmt: skip


@_case("random-monotonic", 8, family=True)
def random_monotonic(d: int, instance: int = 0) -> Made:
    """Random logistic, emax and table curves, with Lipschitz constants up to twice as large as need be, any start and
    largest doses, some arms safe at their largest dose, some values within 5% of each other or near 0.01 or 100."""
    rng = np.random.default_rng([2, instance])
    kinds = _one_of(rng, (6, ("gaussian",) * 2), (2, ("rademacher",) * 2), (1, ("bernoulli",) * 2),
                    (1, ("gaussian", "bernoulli")))  # fmt: skip
    limit = 0.1 + 0.3 * rng.random()
    slack = limit * (0.25 + rng.random())
    scale = _one_of(rng, (4, _log(rng, 0.3, 0.9)), (1, _log(rng, 0.007, 0.014)), (1, _log(rng, 70.0, 140.0)))
    scale = 0.3 + 0.6 * rng.random() if kinds[0] == "bernoulli" else scale
    sigmas = scale * _log(rng, 0.15, 1.0), limit * _log(rng, 0.3, 1.5)
    noise = tuple(Noise(k, None if k == "bernoulli" else x) for k, x in zip(kinds, sigmas, strict=True))
    value = _values(rng, d, scale)
    most = 1.0 if kinds[0] == "bernoulli" else math.inf
    readings, arms = _readings(rng), [_drug(rng, limit, x, most) for x in value]
    while True:
        effect, harm, start, largest, lipschitz = zip(*arms, strict=True)
        made = _monotonic(
            effect, harm, start=start, max=largest, limit=limit, slack=slack, lipschitz=lipschitz, noise=noise,
            **readings,
        )  # fmt: skip
        again = _too_steep(*made)
        if not np.any(again):
            return made
        arms = [_drug(rng, limit, x, most) if a else arm for arm, x, a in zip(arms, value, again, strict=True)]


def _drug(rng: np.random.Generator, limit: float, value: float, most: float) -> tuple[Any, ...]:
    """Curves of effect and harm, start and largest dose and Lipschitz constant of an arm of that value."""
    # Harm: at the start it is a part of the limit, at `crossing` it is the limit, at the largest dose more, or less
    at_start, safe = limit * (0.05 + 0.8 * rng.random()), rng.random() < 0.25
    way = 0.5 + 0.45 * rng.random() if safe else 1.1 + 1.2 * rng.random()  # largest dose, start 0 and crossing 1
    harm: Curve
    match _one_of(rng, (1, "logistic"), (1, "emax"), (1, "table")):
        case "logistic":
            slope, shift = _log(rng, 0.1, 10.0), 4 * rng.random() - 2
            start, crossing = ((_logit(x) - shift) / slope for x in (at_start, limit))
            harm, steepest = Logistic(slope, shift), slope / 4
        case "emax":
            hill, crossing = _log(rng, 0.7, 3.0), _log(rng, 0.1, 10.0)
            ed50 = crossing * _log(rng, 1.0, 3.0)
            highest = limit * (1 + (ed50 / crossing) ** hill)
            highest, ed50 = (highest, ed50) if highest <= 1 else (1.0, crossing * (1 / limit - 1) ** (1 / hill))
            start = ed50 * (highest / at_start - 1) ** (-1 / hill)
            harm = Emax(highest, ed50, hill)
            bend = ed50 * (max(hill - 1, 0) / (hill + 1)) ** (1 / hill)  # where it is steepest
            x = np.clip(bend, start, start + way * (crossing - start)) / ed50
            steepest = highest * hill / ed50 * x ** (hill - 1) / (1 + x**hill) ** 2
        case _:
            start, width = 4 * rng.random() - 2, _log(rng, 0.1, 10.0)
            crossing = start + width
            bends = np.array([0.1, 0.6]) + 0.3 * rng.random(2)
            rise = at_start + (limit - at_start) * np.sort(rng.random(2))
            doses = [start, *(start + width * bends), crossing, crossing + width]
            harm = Table(tuple(doses), (at_start, *rise, limit, limit + (1 - limit) * rng.random()))
            steepest = float(np.max(np.diff(harm.value) / np.diff(harm.dose)))
    largest = start + way * (crossing - start)
    top, width = min(crossing, largest), min(crossing, largest) - start

    # Effect: it passes through the value at the largest safe dose
    effect: Curve
    kind = _one_of(rng, (1, "logistic"), (1, "emax"), (1, "table"))
    if kind == "logistic" and value < 1:
        slope = _log(rng, 0.1, 10.0) / width
        effect = Logistic(slope, _logit(value) - slope * top)
    elif kind == "emax" and start > 0 and most > 1:
        hill, ed50 = _log(rng, 0.7, 3.0), top * _log(rng, 0.1, 3.0)
        effect = Emax(value * (1 + (ed50 / top) ** hill), ed50, hill)
    else:
        low = value * np.sort(rng.random(2))
        beyond = min(value * (1 + rng.random()), most)
        effect = Table((start, start + width * (0.2 + 0.6 * rng.random()), top, top + width), (*low, value, beyond))
    return effect, harm, start, largest, steepest * _log(rng, 1.0, 2.0)


def _logit(x: float) -> float:
    return math.log(x / (1 - x))


def _too_steep(problem: Problem, scenario: Scenario) -> Array:
    """Arms that would be on the other side of the middle between the two best values if harm was misjudged by 2% of the
    limit: as nobody can know harm so well, nobody could tell them from the best, or from the others."""
    value = scenario.truth(problem).value
    low, high = (scenario.truth(problem.but(limit=problem.limit * x)).value for x in (0.98, 1.02))
    middle = np.sort(value)[-2:].mean()
    return np.asarray(np.where(value > middle, low <= middle, high >= middle))


# Hard cases: the assumptions hold, and so must the guarantee


@_case("saturated-none")
def saturated_none(d: int) -> Made:
    """Case 1 of Theorem 2: no arm's largest dose is safe."""
    return _linear(_falling(1.0, 0.8, d), _first(1.0, 1.6, d), max=_first(1.2, 1.0, d))


@_case("saturated-rivals")
def saturated_rivals(d: int) -> Made:
    """Case 2 of Theorem 2: the rivals' largest dose is safe, the best arm's is not."""
    return _linear(_falling(1.0, 0.8, d), _first(1.0, 0.5, d), max=_first(2.0, 0.7, d))


@_case("saturated-best")
def saturated_best(d: int) -> Made:
    """Case 3 of Theorem 2: the best arm's largest dose is safe, the rivals' is not."""
    return _linear(_falling(1.0, 0.8, d), _first(0.5, 2.0, d), max=_first(1.0, 2.0, d))


@_case("saturated-all")
def saturated_all(d: int) -> Made:
    """Case 4 of Theorem 2: every largest dose is safe."""
    return _linear(_falling(1.0, 0.7, d), 0.5, max=1.0 + np.zeros(d))


@_case("nearly-saturated", 3)
def nearly_saturated(d: int) -> Made:
    """The best arm's largest dose is safe, but only just, and effects are known far better than harms: that its value
    is above a rival's rests on its harm until the dose is certified, and on the rival's harm from then on."""
    noise = Noise("gaussian", 0.001), Noise("gaussian", 0.2)
    return _linear(_falling(1.0, 0.97, d), _first(0.95, 1.0, d), start=0.15, max=_first(1.0, 2.7, d), noise=noise)


@_case("start-at-limit")
def start_at_limit(d: int) -> Made:
    """The best arm's start dose is its largest safe one: any step up is a step over the line."""
    return _linear(_falling(1.0, 0.6, d), _first(1.0, 1.0, d), start=_first(1.0, 0.2, d), max=2.0)


@_case("start-near-limit", 4)
def start_near_limit(d: int) -> Made:
    """Monotonic: every start dose is a hair below the limit, and harm rises as fast as it may."""
    return _monotonic([Linear(x) for x in _falling(0.9, 0.4, d)], [Linear(1.0)] * d, start=0.299, max=0.8)


@_case("tiny-gap", 3)
def tiny_gap(d: int) -> Made:
    """Values within 2% of the next one, from different slopes."""
    return _linear(_falling(1.0, 1.96, d, 0.99), _first(1.0, 2.0, d))


@_case("equal-arms", 4)
def equal_arms(d: int) -> Made:
    """All arms have the same value; a tolerance lets any of them win."""
    return _linear(np.linspace(0.5, 1.0, d), np.linspace(0.5, 1.0, d), tolerance=0.2)


@_case("equal-drugs", 3)
def equal_drugs(d: int) -> Made:
    """Monotonic: all arms are the same; a tolerance lets any of them win."""
    return _monotonic([Logistic(1.0)] * d, [Logistic(1.0)] * d, tolerance=0.15)


@_case("hundred-arms", 100)
def hundred_arms(d: int) -> Made:
    """A hundred arms, values spread evenly below the best one's."""
    return _linear(np.linspace(1.0, 0.2, d) * np.r_[1.0, np.full(d - 1, 0.8)], 1.0 + np.zeros(d))


@_case("lipschitz-tight", 4)
def lipschitz_tight(d: int) -> Made:
    """Harm rises as fast as its Lipschitz constant allows, at a different constant for every arm."""
    K = np.geomspace(0.25, 4.0, d)
    values = zip(K, _falling(0.9, 0.5, d), strict=True)
    effect = [Table((0.0, 0.3 / k, 1.0 / k), (min(0.1, v), v, v)) for k, v in values]
    return _monotonic(effect, [Linear(k) for k in K], lipschitz=K, start=0.01, max=2.0)


@_case("flat-effect", 4)
def flat_effect(d: int) -> Made:
    """Effects that do not depend on the dose at all."""
    return _monotonic([Linear(0.0, x) for x in _falling(0.8, 0.4, d)], [Logistic(1.0)] * d)


@_case("effect-jump", 4)
def effect_jump(d: int) -> Made:
    """The rivals' effect jumps from nothing to everything just above the limit, where it does not count."""
    edge = math.log(0.31 / 0.69)  # where harm is 0.31, a hair above the limit
    first, *low = _falling(0.45, 0.1, d)
    jumps = [Table((-4.0, edge, edge + 0.01, 1.0), (x, x, 1.0, 1.0)) for x in low]
    return _monotonic([Linear(0.0, first), *jumps], [Logistic(1.0)] * d)


@_case("steep-harm", 4)
def steep_harm(d: int) -> Made:
    """Harm is nothing for most of the way, then rises as fast as it may through limit and slack."""
    wall = Table((-3.0, -0.5, 0.4, 0.5), (0.0, 0.0, 0.9, 0.9))
    return _monotonic(_drugs(0.01, 6.0, d), [wall] * d)


@_case("plateau", 3)
def plateau(d: int) -> Made:
    """The best arm's harm stays just below the limit for most of the way, which its Lipschitz constant does not say."""
    flat, even = Table((0.0, 0.7, 1.9, 2.4), (0.05, 0.28, 0.3, 0.55)), Table((0.0, 1.9, 2.4), (0.05, 0.3, 0.4))
    first, *low = _falling(0.75, 0.6, d)
    effects = [Table((0.0, 1.9, 2.4), (0.35, first, 0.8)), *(Table((0.0, 1.9, 2.4), (0.1, x, 0.7)) for x in low)]
    slopes, noise = _first(5.0, 1.0, d), Noise("gaussian", 0.2)
    return _monotonic(effects, [flat, *[even] * (d - 1)], start=0.0, max=2.4, lipschitz=slopes, noise=noise)


@_case("knee", 3)
def knee(d: int) -> Made:
    """The rivals' harm stays at the limit for long and then bends, while their effect rises: where the limit is
    reached, and so their value, can be told from above the bend alone."""
    flat, even = Table((0.0, 1.4, 1.9, 2.4), (0.05, 0.2997, 0.3, 0.7)), Table((0.0, 1.9, 2.4), (0.05, 0.3, 0.4))
    first, *low = _falling(0.6, 0.56, d)
    steep = [Table((0.0, 1.4, 2.4), (x - 0.66, x - 0.6, x + 0.6)) for x in low]
    effects, noise = [Table((0.0, 1.9, 2.4), (0.3, first, 0.7)), *steep], Noise("gaussian", 0.15)
    return _monotonic(effects, [even, *[flat] * (d - 1)], start=0.0, max=2.4, noise=noise)


@_case("harmless", 3)
def harmless(d: int) -> Made:
    """Monotonic: the largest dose of every arm is safe, so its value is the effect there."""
    return _monotonic(_drugs(2.0, 0.1, d), [Logistic(0.2, -3.0)] * d, max=1.0)


@_case("emax", 4)
def emax(d: int) -> Made:
    """Emax curves with different potencies for effect and harm, doses from 0.05."""
    effect = [Emax(x, 0.5) for x in _falling(1.0, 0.6, d)]
    return _monotonic(effect, [Emax(1.0, 2.0, 1.5)] * d, start=0.05, max=3.0)


@_case("dose-levels", 4)
def dose_levels(d: int) -> Made:
    """Doses may only be given at eleven levels, which lie close enough for the Lipschitz constant to step up."""
    levels = tuple(round(x, 3) for x in np.linspace(0.0, 1.0, 11))
    harm: list[Curve] = [Linear(0.5, 0.06)] * d
    effect: list[Curve] = [Linear(x) for x in _falling(1.0, 0.3, d)]
    return _monotonic(effect, harm, start=0.0, max=1.0, lipschitz=0.5, levels=levels)


@_case("rademacher")
def rademacher(d: int) -> Made:
    """Readings of the heaviest shape there is for their sigma: the mean plus or minus sigma."""
    return _linear(_falling(1.0, 0.8, d), _first(1.0, 1.6, d), max=1.5, noise=Noise("rademacher", 0.7))


@_case("binary", 4)
def binary(d: int) -> Made:
    """Effect and harm are both yes or no."""
    return _monotonic(_drugs(0.05, 5.0, d), [Logistic(1.0)] * d, noise=Noise("bernoulli"))


@_case("binary-harm", 4)
def binary_harm(d: int) -> Made:
    """The standard trial: harm is yes or no, effect a number, and subjects who are harmed also show more effect."""
    noise = (Noise("gaussian", 0.4), Noise("bernoulli"))
    return _monotonic(_drugs(0.05, 5.0, d), [Logistic(1.0)] * d, noise=noise, correlation=0.8)


@_case("correlated-same")
def correlated_same(d: int) -> Made:
    """The two readings of a pull have the very same noise (correlation 1)."""
    return _linear(_falling(1.0, 0.7, d), _first(1.0, 1.4, d), correlation=1.0)


@_case("correlated-opposite")
def correlated_opposite(d: int) -> Made:
    """The two readings of a pull have opposite noise (correlation -1)."""
    return _linear(_falling(1.0, 0.7, d), _first(1.0, 1.4, d), correlation=-1.0)


@_case("small-values")
def small_values(d: int) -> Made:
    """Values near 0.01 under a limit of 1."""
    return _linear(_falling(0.012, 0.008, d), 1.0 + np.zeros(d), sigma=0.1)


@_case("large-values")
def large_values(d: int) -> Made:
    """Values near 100 under a limit of 1: harm is faint and the largest safe doses are far from the start."""
    return _linear(_falling(1.2, 0.8, d), 0.01 + np.zeros(d), start=1.0, sigma=0.5)


@_case("small-limit")
def small_limit(d: int) -> Made:
    """Everything at the scale of a thousandth."""
    return _linear(_falling(1.0, 0.6, d), 1.0 + np.zeros(d), start=1e-4, limit=1e-3, sigma=5e-4)


@_case("large-limit")
def large_limit(d: int) -> Made:
    """Everything at the scale of a thousand."""
    return _linear(_falling(1.0, 0.6, d), 1.0 + np.zeros(d), start=100.0, limit=1e3, sigma=300.0)


# Cases that designs were once seen not to end on, each for a cause of its own


@_case("binary-harm-near-limit", 3)
def binary_harm_near_limit(d: int) -> Made:
    """Rare binary harm, start doses next to the limit: harm is so noisy that it long looks to be above it."""
    noise = (Noise("gaussian", 0.3), Noise("bernoulli"))
    return _linear(_falling(0.5, 0.4, d), 0.05, start=0.9, max=1.5, limit=0.05, noise=noise)


@_case("hair-gap", 2)
def hair_gap(d: int) -> Made:
    """Values that differ by one in 5,000, and little noise."""
    return _linear(_falling(1.0, 0.9998, d), 1.0, max=1.5, sigma=0.05)


@_case("low-rates", 4)
def low_rates(d: int) -> Made:
    """Binary effects of a few per cent at one dose, which is known to be safe."""
    return _linear(_falling(0.05, 0.04, d, 0.87), 0.1, start=1.0, max=1.0, limit=0.3, noise=Noise("bernoulli"))


@_case("far-levels", 3)
def far_levels(d: int) -> Made:
    """Levels up to a thousand times the start dose, where harm is far below the noise; which is safe has to be seen."""
    problem, scenario = _linear(_falling(1.0, 0.6, d), 0.04, sigma=0.5)
    arms = tuple(replace(arm, levels=(0.1, 0.5, 20.0, 100.0)) for arm in problem.arms)
    return problem.but(arms=arms, refine=1.0), scenario


# Outside the assumptions: nothing is claimed; what happens is measured


@_case("wrong-sigma", claim=False)
def wrong_sigma(d: int) -> Made:
    """The noise is three times what the problem declares."""
    return _linear(_falling(1.0, 0.8, d), _first(1.0, 1.6, d), max=1.5, sigma=0.3, actual=Noise("gaussian", 0.9))


@_case("wrong-lipschitz", 4, claim=False)
def wrong_lipschitz(d: int) -> Made:
    """Harm rises up to four times as fast as the problem declares."""
    return _monotonic(_drugs(0.01, 10.0, d), [Logistic(4.0)] * d, lipschitz=0.25)


@_case("bent-lines", claim=False)
def bent_lines(d: int) -> Made:
    """Harm of a linear problem turns upwards half way to the limit."""
    problem, scenario = _linear(_falling(1.0, 0.8, d), _first(1.0, 1.6, d), max=1.5)
    bent = Table((0.0, 0.4, 1.5), (0.0, 0.2, 2.4))
    return problem, replace(scenario, harm=(bent,) * d)


@_case("drift", claim=False)
def drifting(d: int) -> Made:
    """Harm creeps up by 0.02 with every 1,000 pulls."""
    return _linear(_falling(1.0, 0.8, d), _first(1.0, 1.6, d), max=1.5, drift=0.02)


def _humped(dose: Array) -> Array:
    return 0.6 * math.e ** (-2 * (dose + 1.5) ** 2)  # on any array


@_case("falling-harm", 4, claim=False)
def falling_harm(d: int) -> Made:
    """Harm rises over a hump above the limit and falls again with the dose."""
    problem, scenario = _monotonic(_drugs(0.01, 10.0, d), [Logistic(1.0)] * d, lipschitz=0.75)
    return problem, replace(scenario, harm=(_humped,) * d)


@_case("unsafe-start", claim=False)
def unsafe_start(d: int) -> Made:
    """The start dose of the arm with the largest slope is not safe; that arm has no value and is to be stopped."""
    return _linear([2.0, *_falling(1.2, 0.6, d - 1)], _first(15.0, 1.6, d), max=1.5)


from . import catalogue_levels  # noqa: E402, F401 (adds its cases)
