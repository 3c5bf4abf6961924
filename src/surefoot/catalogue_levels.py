"""Named cases with ordered levels: published dose-finding scenarios as drugs beside each other, a ramp behind a
guardrail, cases that try to break the guarantee, and a random family. They are part of `catalogue.CASES`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .catalogue import Made, _case, _log, _one_of, _readings
from .problem import Arm, Noise, Problem
from .scenario import Scenario, Table

Curve = Sequence[float]


def _table(values: Curve) -> Table:
    return Table(tuple(float(k) for k in range(len(values))), tuple(float(x) for x in values))


def _levels(
    effect: Sequence[Curve], harm: Sequence[Curve], *, limit: float = 0.3, names: Any = None, noise: Any = None,
    correlation: float = 0.0, what: str = "drug", **problem: Any,
) -> Made:  # fmt: skip
    """Effects and harms by level, one row an arm."""
    arms = tuple(
        Arm(f"{what} {chr(ord('A') + i)}", levels=tuple(names or range(1, len(row) + 1)))
        for i, row in enumerate(effect)
    )
    made = Problem(arms, limit, "levels", noise or Noise("bernoulli"), **{"slack": 0.2, "delta": 0.1, **problem})
    scenario = Scenario(tuple(map(_table, effect)), tuple(map(_table, harm)), correlation=correlation)
    return made, scenario


def _times(curve: Curve, *factors: float) -> list[list[float]]:
    return [[x * factor for x in curve] for factor in factors]


@_case("levels-thall", 3, fixed=True)
def levels_thall(d: int) -> Made:
    """Thall, Herrick, Nguyen, Venier and Norris (2014), EffTox, five doses; rivals with 0.6 and 0.4 of its efficacy."""
    return _levels(_times([0.2, 0.4, 0.6, 0.8, 0.9], 1.0, 0.6, 0.4), [[0.05, 0.1, 0.15, 0.2, 0.4]] * d)


@_case("levels-riviere", 3, fixed=True)
def levels_riviere(d: int) -> Made:
    """Riviere, Yuan, Jourdan, Dubois and Zohar (2018), six doses of a targeted agent, toxicity at most 0.35: scenario
    1, whose efficacy reaches a plateau, and the two groups of scenario 2 as rivals."""
    one, two = [0.005, 0.01, 0.02, 0.05, 0.1, 0.15], [0.01, 0.05, 0.1, 0.25, 0.5, 0.7]
    effect = [[0.01, 0.1, 0.3, 0.5, 0.8, 0.8], [0.4] * 6, [0.01, 0.02, 0.05, 0.1, 0.35, 0.55]]
    return _levels(effect, [one, two, two], limit=0.35)


@_case("levels-brock", 2, fixed=True)
def levels_brock(d: int) -> Made:
    """The scenario in Brock's R package escalation: efficacy hardly rises above the third dose, toxicity does; a rival
    with 0.6 of its efficacy."""
    effect = _times([0.25, 0.27, 0.52, 0.54, 0.54], 1.0, 0.6)
    return _levels(effect, [[0.02, 0.12, 0.17, 0.38, 0.55]] * d)


@_case("levels-boinet", 4, fixed=True)
def levels_boinet(d: int) -> Made:
    """The scenario in Yamaguchi and Takeda's R package boinet, four doses, the third close below the limit; rivals with
    0.5, 0.5 and 0.25 of its efficacy."""
    return _levels(_times([0.15, 0.3, 0.45, 0.6], 1.0, 0.5, 0.5, 0.25), [[0.05, 0.15, 0.25, 0.4]] * d)


@_case("ramp-crashes", 2, fixed=True)
def ramp_crashes(d: int) -> Made:
    """A guardrail: at most 1% of sessions crash, in five ramp stages. One change converts more and is safe throughout,
    the other crashes from the third stage on."""
    harm = [[0.004, 0.0045, 0.005, 0.0055, 0.006], [0.005, 0.007, 0.014, 0.018, 0.02]]
    return _levels(
        [[0.12] * 5, [0.1] * 5], harm, limit=0.01, slack=0.01, delta=0.05, what="change",
        names=("1%", "5%", "20%", "50%", "100%"),
    )  # fmt: skip


@_case("levels-cliff", 3)
def levels_cliff(d: int) -> Made:
    """Harm jumps from almost nothing far over the ceiling; above it the rivals look best."""
    rivals = [[0.1, 0.15 + 0.01 * k, 0.95, 0.95] for k in range(d - 1)]
    return _levels([[0.2, 0.4, 0.5, 0.5], *rivals], [[0.02, 0.05, 0.9, 0.95]] * d)


@_case("levels-first", 3)
def levels_first(d: int) -> Made:
    """Only the first level is safe, and the second is over the ceiling."""
    return _levels([[0.6, 0.9, 0.9]] + [[0.3 - 0.02 * k, 0.95, 0.95] for k in range(d - 1)], [[0.2, 0.55, 0.8]] * d)


@_case("levels-flat", 3)
def levels_flat(d: int) -> Made:
    """Every level is safe and has the same effect."""
    return _levels([[x] * 4 for x in [0.7, *(0.4 - 0.05 * k for k in range(d - 1))]], [[0.1] * 4] * d)


@_case("levels-gaussian", 3)
def levels_gaussian(d: int) -> Made:
    """Gaussian readings with a correlation, no slack, arms with three to five levels."""
    effect = [[1.0, 2.0, 3.0, 3.5, 4.0]] + [[0.5, 1.5 - 0.1 * k, 4.0] for k in range(d - 1)]
    harm = [[-1.0, -0.8, -0.5, 1.0, 1.5]] + [[-1.0, -0.6, 0.6]] * (d - 1)
    return _levels(effect, harm, limit=0.0, slack=0.0, noise=Noise("gaussian", 1.0), correlation=0.7)


@_case("levels-tie", 3)
def levels_tie(d: int) -> Made:
    """Equal arms; a tolerance lets any of them win."""
    return _levels([[0.2, 0.5, 0.6]] * d, [[0.05, 0.1, 0.5]] * d, tolerance=0.2)


@_case("random-levels", 3, family=True)
def random_levels(d: int, instance: int = 0) -> Made:
    """Random tables: two to six levels, the largest safe one anywhere, harms up to nine tenths of the limit below it
    and from a fifth more above it, values at least a tenth apart from the best."""
    rng = np.random.default_rng([3, instance])
    kinds = _one_of(rng, (4, ("bernoulli",) * 2), (1, ("gaussian",) * 2), (1, ("gaussian", "bernoulli")))
    limit, scale = 0.1 + 0.3 * rng.random(), 0.3 + 0.6 * rng.random()
    noise = tuple(Noise(k, None if k == "bernoulli" else _log(rng, 0.2, 0.6) * (scale, limit)[i])
                  for i, k in enumerate(kinds))  # fmt: skip
    value = scale * (0.1 + 0.8 * rng.random(d))
    value[int(rng.random() * d)] = scale
    effect, harm = [], []
    for x in value:
        levels = 2 + int(5 * rng.random())
        safe = int(levels * rng.random())  # the largest safe one
        low = limit * (0.02 + 0.88 * np.sort(rng.random(safe + 1)))
        high = limit * (1.2 + 1.2 * np.sort(rng.random(levels - safe - 1)))
        rise = x * np.sort(rng.random(safe))
        beyond = x + (0.98 - x) * np.sort(rng.random(levels - safe - 1))
        effect.append([*rise, float(x), *beyond])
        harm.append([*low, *high])
    slack = limit * _one_of(rng, (1, 0.2), (2, 0.5), (2, 1.0))
    return _levels(effect, harm, limit=limit, slack=slack, noise=noise, **_readings(rng))
