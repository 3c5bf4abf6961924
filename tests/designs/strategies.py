"""Problems and their hidden truths, drawn by hypothesis: wide, and with the corners that break things drawn often.

An honest one keeps to its assumptions; the others may also start above the limit or have a wrong Lipschitz constant.
"""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from surefoot.problem import Arm, Noise, Problem
from surefoot.scenario import Curve, Emax, Linear, Logistic, Scenario, Table

Case = tuple[Problem, Scenario]


def _maybe(values: st.SearchStrategy[float]) -> st.SearchStrategy[float | None]:
    return st.none() | values


def _levels(start: float, largest: float, count: int) -> tuple[float, ...]:
    return tuple(sorted({min(start + (largest - start) * k / max(count - 1, 1), largest) for k in range(count)}))


def noises() -> st.SearchStrategy[Noise]:
    return st.sampled_from([1e-9, 1e-3, 0.05, 0.3, 0.7, 3.0]).map(lambda s: Noise("gaussian", s))


@st.composite
def linear(draw: st.DrawFn, honest: bool = False) -> Case:
    """Slopes from 0 up, ties, starts at the limit and above it, arms without a largest dose or with start = max."""
    d = draw(st.integers(2, 4))
    limit = draw(st.sampled_from([0.01, 1.0, 20.0]))
    slopes = st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.0, 1.1, 4.0])
    arms, effect, harm = [], list[Curve](), list[Curve]()
    for i in range(d):
        mu = draw(slopes) * limit
        starts = [0.01, 0.1, 0.2, 1.0]  # at slope 1 the last one is at the limit, at 4 above it
        start = draw(st.sampled_from([x for x in starts if x * mu <= limit or not honest]))
        largest = start * draw(st.sampled_from([1.0, 1.5, 8.0, math.inf])) if mu else start * 5
        levels = None
        if math.isfinite(largest) and draw(st.booleans()):
            levels = _levels(start, largest, draw(st.integers(1, 6)))
        arms.append(Arm(f"arm {i}", start, largest, levels=levels))
        effect.append(Linear(draw(slopes)))
        harm.append(Linear(mu))
    problem = Problem(
        tuple(arms), limit, "linear", (draw(noises()), draw(noises())), delta=draw(st.sampled_from([1e-9, 0.1, 0.9])),
        tolerance=draw(_maybe(st.sampled_from([1e-6, 0.1, 2.0]))), refine=draw(_maybe(st.sampled_from([1e-6, 0.1]))),
        budget=draw(st.sampled_from([1000, 10**6, 10**6])),
    )  # fmt: skip
    return problem, Scenario(tuple(effect), tuple(harm))


@st.composite
def monotonic(draw: st.DrawFn, honest: bool = False) -> Case:
    """Every kind of curve, flat ones too, any sign of limit and dose, levels near and far, start = max."""
    d = draw(st.integers(2, 4))
    shift = draw(st.sampled_from([-0.5, 0.0, 0.1]))  # moves limit and harm together, also below 0
    limit = 0.3 + shift
    arms, effect, harm = [], list[Curve](), list[Curve]()
    bent = Table((-3.0, -0.6, 0.4, 0.5), (shift, shift, shift + 0.9, shift + 0.9))
    curves: list[Curve] = [Logistic(1.0), Logistic(0.01), Linear(0.3, shift), Linear(0.0, 0.2), Emax(1.0, 0.5), bent]
    for i in range(d):
        start = draw(st.sampled_from([-3.0, -1.0, 0.0, 0.2]))
        largest = start + draw(st.sampled_from([0.0, 0.5, 1.5, 4.0]))
        levels = _levels(start, largest, draw(st.integers(1, 12))) if draw(st.booleans()) else None
        dose, tight = (
            np.linspace(start, largest + 1e-3, 2000),
            Linear(1.0, limit - start),
        )  # at the limit from the start
        every: list[Curve] = [*curves, tight]
        fits = [curve for curve in every if curve(dose[:1])[0] <= limit or not honest]
        effect.append(draw(st.sampled_from(curves)))
        harm.append(draw(st.sampled_from(fits)))
        steep = np.max(np.diff(harm[-1](dose)) / np.diff(dose)) if honest else 0.0
        K = draw(st.sampled_from([k for k in (0.25, 1.0, 4.0) if k >= steep - 1e-9]))
        arms.append(Arm(f"arm {i}", start, largest, K, levels))
    problem = Problem(
        tuple(arms), limit, "monotonic", (draw(noises()), draw(noises())), slack=draw(st.sampled_from([0.1, 0.5])),
        delta=draw(st.sampled_from([1e-9, 0.1, 0.9])), tolerance=draw(_maybe(st.sampled_from([1e-6, 0.1, 2.0]))),
        refine=draw(_maybe(st.sampled_from([1e-6, 0.1]))), budget=draw(st.sampled_from([1000, 10**6, 10**6])),
    )  # fmt: skip
    return problem, Scenario(tuple(effect), tuple(harm))
