"""The watches: a valid study is hardly ever paused, and each broken assumption is seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, Scenario
from surefoot.scenario import Linear, Table
from surefoot.study.given import Given
from surefoot.study.watch import READINGS, WATCHES, Watches, mixture_radius, noise_evidence
from surefoot.testing import failures_allowed


def make_problem(shape: str, kind: str = "gaussian") -> Problem:
    noise = Noise("bernoulli") if kind == "bernoulli" else Noise(kind, 0.5)
    arms = (Arm("A", 0.2, 1.0), Arm("B", 0.2, 1.0))
    if shape == "linear":
        return Problem(arms, 0.5, "linear", noise)
    return Problem(arms, 0.5, "monotonic", noise, slack=0.2)


def play(p: Problem, truth: Scenario, rng: np.random.Generator, doses: Any, n: int = 100, looks: int = 1) -> set[str]:
    """A study of cohorts at these doses; the names of the watches that ever fired, looking often."""
    watches, cohorts, fired, done = Watches(p, 0.01), list[Given](), set[str](), 0
    for k, dose in enumerate(doses, 1):
        data = {"dose": [dose] * 2, "n": [n] * 2, "bound": [None] * 2}
        given = Given(k, done + 1, data, 7, "", k)
        cohorts.append(given)
        at = np.array([[dose, dose]])
        means = truth.effects(at)[0], truth.harms(at)[0]
        for s, place in enumerate(given.place):
            arm = given.arm(place)
            for values, mean, noise in zip((given.effect, given.harm), means, truth.noises(p), strict=True):
                m = float(mean[arm]) + (truth.drift * (done + s) / 1000 if values is given.harm else 0.0)
                values[place] = _draw(rng, m, noise)
            if s % max(given.size // looks, 1) == 0:
                watches.update(cohorts)
                fired |= {alarm.watch for alarm in watches.alarms()}
        given.closed, given.left, done = True, 0, done + given.size
        watches.update(cohorts)
        fired |= {alarm.watch for alarm in watches.alarms()}
    return fired


def _draw(rng: np.random.Generator, mean: float, noise: Noise) -> float:
    if noise.kind == "bernoulli":
        return float(rng.random() < mean)
    z = rng.standard_normal() if noise.kind == "gaussian" else rng.choice([-1.0, 1.0])
    return float(mean + noise.scale * z)


FINE = Scenario((Linear(0.5), Linear(0.3)), (Linear(0.45), Linear(0.5)))


@pytest.mark.parametrize("shape", ["linear", "monotonic"])
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli", "rademacher"])
def test_a_valid_study_is_hardly_ever_paused(shape: str, kind: str) -> None:
    """Harm at the limit at the largest dose, effects on the line: the hardest truth that keeps to the assumptions."""
    p, rng = make_problem(shape, kind), np.random.default_rng(5)
    wrong = sum(bool(play(p, FINE, rng, (0.2, 0.3, 0.5, 1.0, 1.0), n=30, looks=8)) for _ in range(150))
    assert wrong <= failures_allowed(150, 0.01)


def bent(*points: tuple[float, float]) -> Table:
    return Table(tuple(x for x, _ in points), tuple(y for _, y in points))


def falls(dose: Any) -> Any:
    return 0.6 - 0.6 * dose


LOUD = Noise("gaussian", 0.5), Noise("gaussian", 0.8)
BROKEN: dict[str, tuple[str, Scenario]] = {
    "start": ("linear", Scenario((Linear(0.5),) * 2, (Linear(5.0),) * 2)),
    "certified": ("monotonic", Scenario((Linear(0.5),) * 2, (Linear(1.5),) * 2)),
    "falling": ("monotonic", Scenario((falls, falls), (Linear(0.4),) * 2)),
    "steep": ("monotonic", Scenario((Linear(0.5),) * 2, (bent((0.2, 0.0), (0.29, 0.0), (0.3, 0.6)),) * 2)),
    "line": ("linear", Scenario((bent((0.2, 0.0), (0.9, 0.0), (1.0, 0.5)),) * 2, (Linear(0.4),) * 2)),
    "noise": ("linear", Scenario((Linear(0.5),) * 2, (Linear(0.4),) * 2, noise=LOUD)),
    "drift": ("monotonic", Scenario((Linear(0.0, 0.2),) * 2, (Linear(0.0, 0.2),) * 2, drift=0.2)),
}  # fmt: skip


@pytest.mark.parametrize("watch", BROKEN)
def test_a_broken_assumption_is_seen(watch: str) -> None:
    shape, truth = BROKEN[watch]
    p, rng = make_problem(shape), np.random.default_rng(1)
    doses = (0.3,) if watch == "drift" else (0.2, 0.3, 0.6, 1.0)
    fired = play(p, truth, rng, doses, n=2000 if watch == "drift" else 400)
    assert watch in fired


def test_every_watch_is_tested() -> None:
    assert set(BROKEN) == set(WATCHES)


def test_levels_add_up_to_the_one_stated() -> None:
    """The five that share their bounds count once."""
    level = Watches(make_problem("linear"), 0.01).level
    assert math.isclose(level["start"] + level["noise"] + level["drift"], 0.01)
    assert len({level[w] for w in ("start", "certified", "falling", "steep", "line")}) == 1


def test_only_an_unbroken_beginning_is_looked_at() -> None:
    """Harm is often known at once and its absence late: what arrives first is not what counts first."""
    p = make_problem("linear", "bernoulli")
    given = Given(1, 1, {"dose": [0.2] * 2, "n": [50] * 2, "bound": [None] * 2}, 7, "", 1)
    watches = Watches(p, 0.01)
    for place in range(1, 50):
        given.harm[place] = given.effect[place] = 1.0  # all but the first of A have come, and all were harmed
    watches.update([given])
    assert not list(watches.alarms())
    given.harm[0] = given.effect[0] = 0.0
    watches.update([given])
    assert {a.watch for a in watches.alarms()} >= {"start"}


def test_taking_in_bit_by_bit_is_taking_in_at_once() -> None:
    p, rng = make_problem("linear"), np.random.default_rng(2)
    data = {"dose": [0.3, 0.4], "n": [31, 16], "bound": [None] * 2}
    one, two = Watches(p, 0.01), Watches(p, 0.01)
    cohorts = []
    for k in (1, 2):
        given = Given(k, 47 * (k - 1) + 1, data, 7, "", k)
        cohorts.append(given)
        for place in rng.permutation(47):
            given.effect[place], given.harm[place] = rng.standard_normal(2)
            one.update(cohorts)
        given.closed = True
    two.update(cohorts)
    one.update(cohorts)
    for name in ("n", "sum", "dose", "noise", "drift"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-12, atol=1e-12, err_msg=name)


def test_the_two_supermartingales() -> None:
    """Ville's inequality, by simulation of 4,000 paths of 400 terms; and a control that must exceed it."""
    rng = np.random.default_rng(0)
    n = np.arange(1, 401)
    for scale, holds in ((1.0, True), (1.5, False)):
        z = scale * rng.standard_normal((4000, 400))
        radius = np.array([mixture_radius(k, 0.05) for k in n.tolist()])
        over = (np.abs(z.cumsum(axis=1)) > radius).any(axis=1).sum()
        assert bool(over <= failures_allowed(4000, 0.05)) is holds
        squares = (z[:400] ** 2).cumsum(axis=1)
        steps = n[::20].tolist()
        evidence = np.array([[noise_evidence(k, row[k - 1]) for k in steps] for row in squares.tolist()])
        seen = (evidence.max(axis=1) > math.log(20)).sum()
        assert bool(seen <= failures_allowed(400, 0.05)) is holds


def test_readings_have_names() -> None:
    assert READINGS == ("effect", "harm")
