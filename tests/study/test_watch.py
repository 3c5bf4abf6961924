"""The watches: a valid study is hardly ever paused, and each broken assumption is seen."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, Scenario, case
from surefoot.scenario import Linear, Table
from surefoot.study.checker import Given, Record
from surefoot.study.watch import READINGS, WATCHES, Watches, looking
from surefoot.study.watch_bets import Slopes, noise_evidence, one_sided
from surefoot.testing import failures_allowed


def make_problem(shape: str, kind: str = "gaussian") -> Problem:
    noise = Noise("bernoulli") if kind == "bernoulli" else Noise(kind, 0.5)
    arms = (Arm("A", 0.2, 1.0, 1.0), Arm("B", 0.2, 1.0, 1.0))
    if shape == "linear":
        return Problem(arms, 0.5, "linear", noise)
    return Problem(arms, 0.5, "monotonic", noise, slack=0.2)


def opened(record: Record, dose: list[float], n: list[int]) -> Given:
    given = Given(len(record.cohorts) + 1, len(record.harm), {"dose": dose, "n": n}, 7)
    record.cohorts.append(given)
    record.add_subjects(given.size)
    return given


def of(given: Given, arm: int) -> list[int]:
    """The subjects of an arm."""
    return [subject for subject, i in given.subjects() if i == arm]


def play(p: Problem, truth: Scenario, rng: np.random.Generator, doses: Any, n: int = 100, looks: int = 1) -> set[str]:
    """A study of cohorts at these doses; the names of the watches that ever fired, looking often."""
    watches, record, fired = Watches(p, 0.01), Record(), set[str]()
    record.setup = {"plausible": None}
    for dose in doses:
        given = opened(record, [dose] * 2, [n] * 2)
        at = np.array([[dose, dose]])
        means = truth.effects(at)[0], truth.harms(at)[0]
        for k, (subject, arm) in enumerate(given.subjects()):
            for values, mean, noise in zip((record.effect, record.harm), means, truth.noises(p), strict=True):
                m = float(mean[arm]) + (truth.drift * subject / 1000 if values is record.harm else 0.0)
                values[subject] = _draw(rng, m, noise)
            if k % max(given.size // looks, 1) == 0:
                watches.update(record)
                fired |= {alarm.watch for alarm in watches.alarms()}
        given.closed = True
        watches.update(record)
        fired |= {alarm.watch for alarm in watches.alarms()}
    return fired


def _draw(rng: np.random.Generator, mean: float, noise: Noise) -> float:
    if noise.kind == "bernoulli":
        return float(rng.random() < mean)
    z = rng.standard_normal() if noise.kind == "gaussian" else rng.choice([-1.0, 1.0])
    return float(mean + noise.scale * z)


FINE = Scenario((Linear(0.5), Linear(0.3)), (Linear(0.45), Linear(0.5)))


def test_a_valid_study_is_hardly_ever_paused() -> None:
    """Harm at the limit at the largest dose, effects on the line: the hardest truth that keeps to the assumptions."""
    rng, wrong = np.random.default_rng(5), []
    for shape, kind in product(("linear", "monotonic"), ("gaussian", "bernoulli", "rademacher")):
        p = make_problem(shape, kind)
        wrong.append(sum(bool(play(p, FINE, rng, (0.2, 0.3, 0.5, 1.0, 1.0), n=30, looks=8)) for _ in range(10)))
    assert max(wrong) <= failures_allowed(10, 0.01, 7) and sum(wrong) <= failures_allowed(6 * 10, 0.01, 7), wrong


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
    """The three of the shape count once."""
    level = Watches(make_problem("linear"), 0.01).level
    assert math.isclose(sum(level[w] for w in ("start", "certified", "line", "noise", "drift")), 0.01)


def test_the_order_of_arrival_does_not_matter() -> None:
    """Harm is often known at once and its absence late: what arrives first is not what counts first."""
    p = make_problem("linear", "bernoulli")
    record, watches = Record(), Watches(p, 0.01)
    record.setup = {"plausible": None}
    given = opened(record, [0.2] * 2, [50] * 2)
    for subject in of(given, 0)[20:]:
        record.harm[subject] = record.effect[subject] = 1.0  # all but the first 20 of A have come, and all were harmed
    watches.update(record)
    assert not list(watches.alarms())
    for subject in of(given, 0):
        record.harm[subject] = record.effect[subject] = 1.0
    watches.update(record)
    assert {a.watch for a in watches.alarms()} >= {"start"}


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_one_reading_that_is_held_back_blinds_nobody(kind: str) -> None:
    p = make_problem("linear", kind)
    record, watches = Record(), Watches(p, 0.01)
    record.setup = {"plausible": None}
    given = opened(record, [0.2] * 2, [60] * 2)
    for subject in of(given, 0)[1:]:
        record.harm[subject] = record.effect[subject] = 1.0
    watches.update(record)
    assert {a.watch for a in watches.alarms()} >= {"start"}


def test_taking_in_bit_by_bit_is_taking_in_at_once() -> None:
    p, rng = make_problem("linear"), np.random.default_rng(2)
    one, two, record = Watches(p, 0.01), Watches(p, 0.01), Record()
    record.setup = {"plausible": None}
    for _ in (1, 2):
        given = opened(record, [0.3, 0.4], [31, 16])
        for subject in rng.permutation(range(given.first, given.first + 47)).tolist():
            record.effect[subject], record.harm[subject] = rng.standard_normal(2)
            one.update(record)
        given.closed = True
    two.update(record)
    one.update(record)
    np.testing.assert_allclose(one.bands, two.bands, rtol=1e-12, atol=1e-12)
    for name in ("noise", "drift"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-12, atol=1e-12, err_msg=name)


def test_the_two_supermartingales() -> None:
    """Ville's inequality, by simulation of 4,000 paths of 400 terms; and a control that must exceed it."""
    rng = np.random.default_rng(0)
    n = np.arange(1, 401)
    for scale, holds in ((1.0, True), (2.0, False)):
        z = scale * rng.standard_normal((4000, 400))
        totals = z[:1000].cumsum(axis=1)[:, ::10].tolist()
        seen_ = [[one_sided(s, k, 1.0) for s, k in zip(row, n[::10].tolist(), strict=True)] for row in totals]
        over = sum(max(row) >= math.log(20) for row in seen_)
        assert bool(over <= failures_allowed(1000, 0.05)) is holds
        squares = (z[:400] ** 2).cumsum(axis=1)
        steps = n[::20].tolist()
        evidence = np.array([[noise_evidence(k, row[k - 1]) for k in steps] for row in squares.tolist()])
        seen = (evidence.max(axis=1) > math.log(20)).sum()
        assert bool(seen <= failures_allowed(400, 0.05)) is holds


def test_readings_have_names() -> None:
    assert READINGS == ("effect", "harm")


def test_who_takes_over_from_a_drop_out_is_seen() -> None:
    """A replacement's readings count like those of any other subject."""
    from surefoot.study import Study

    study = Study.create("sqlite://", "s", make_problem("monotonic"), seed=1)
    asked = study.ask()
    study.void(asked[0].id, "left")
    study.resume("another takes the place")
    size = len(asked)
    study.tell_many([{"id": a.id, "effect": 0.1, "harm": 0.1} for a in study.ask()[: size - 1]])
    view = study.view
    before = sum(s.n for arm in view.watches.bands for s in arm[1])
    (last,) = study.ask()
    assert last.subject == size + 1 and before == size - 1
    study.tell(last.id, 0.1, 0.1)
    assert sum(s.n for arm in study.view.watches.bands for s in arm[1]) == size


def test_levels_are_watched_without_distances() -> None:
    """A jump from one level to the next is allowed; a first level above the limit, and a fall, are seen."""
    arms = (Arm("A", levels=("low", "mid", "top")), Arm("B", levels=("low", "mid", "top")))
    p = Problem(arms, 0.5, "levels", Noise("gaussian", 0.5), slack=0.1)
    rng, doses = np.random.default_rng(1), [0.0, 1.0, 2.0] * 4

    def truth(*harm: float) -> Scenario:
        return Scenario((Table((0, 1, 2), (0.1, 0.2, 0.3)),) * 2, (Table((0, 1, 2), harm),) * 2)

    assert play(p, truth(0.1, 0.2, 9.0), rng, doses) == set()
    assert "start" in play(p, truth(0.9, 0.9, 0.9), rng, doses)
    falls = Scenario(truth(0.1, 0.1, 0.1).effect, (lambda a: 0.4 - 0.2 * a,) * 2)
    assert "falling" in play(p, falls, rng, doses)


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_bets_on_slopes_hold_though_doses_look_at_the_readings(slope: float) -> None:
    """A true line, and doses that climb when readings were low and come down when they were high."""
    rng, level, trials = np.random.default_rng(3), 0.3, 80
    edges, wrong = [0.2 * 10.0 ** (np.arange(8) / 8)], np.zeros((2, 2))
    for _ in range(trials):
        slopes, dose, most = Slopes(edges, [0.2], [1.0, 1.0]), 0.2, np.full((2, 2), -np.inf)
        for _ in range(60):
            n = int(rng.integers(1, 4))
            seen = slope * dose + rng.standard_normal((2, n))
            for r in range(2):
                slopes.add(0, r, dose, seen[r])
                now = [slopes.evidence(r, sign)[0] for sign in (1, -1)]
                most[r] = np.maximum(most[r], now)
            low = seen[1].mean() < slope * dose
            dose = min(dose * 1.4, 2.0) if low else max(dose / 1.2, 0.2)
        wrong += most >= math.log(1 / level)
    assert (wrong <= failures_allowed(trials, level)).all(), wrong


def test_bets_on_slopes_balance_exactly() -> None:
    """Weights times doses sum to 0 or less at every moment, whatever the noise: the slope cancels."""
    slopes, rng = Slopes([np.array([0.5])], [0.2], [1.0, 1.0]), np.random.default_rng(0)
    for _ in range(200):
        dose, n = float(rng.choice([0.2, 0.4, 0.7, 1.5])), int(rng.integers(1, 5))
        if rng.random() < 0.5:  # a line of slope 3 in units of the start dose
            slopes.add(0, 1, dose, np.full(n, 3.0 * dose / 0.2))
        else:
            slopes.add_block(0, 1, dose, n, n * 3.0 * dose / 0.2)
        left, total, _ = slopes.sums[:, 0, 1, 0]
        assert (left >= 0).all() and np.allclose(total, -3.0 * left)


def test_only_watches_that_can_fire_are_listed() -> None:
    """By shape, by whether a sigma is known, by whether an order is."""
    thall, drug, lines = (case(name)[0] for name in ("levels-thall", "paper-drug", "paper-linear"))
    assert list(looking(thall, False)) == ["start", "falling", "drift"]  # yes or no: its spread is that of its mean
    assert list(looking(drug, True)) == ["start", "certified", "falling", "steep", "noise"]
    assert list(looking(lines, False)) == ["start", "certified", "line", "noise", "drift"]
    assert looking(thall.but(noise=(Noise("gaussian-guess", 1.0),) * 2), False) == {}
    half = thall.but(noise=(Noise("gaussian", 1.0), Noise("gaussian-guess", 1.0)))
    assert list(looking(half, False)) == ["falling", "noise", "drift"]
