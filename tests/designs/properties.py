"""What holds for any design, on any problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from surefoot import Design, Problem, Scenario, simulate
from surefoot.designs.base import ACTIVE, ALL_STOPPED, ENDINGS, RUNNING, Outcome, take
from surefoot.designs.monotonic_evidence import MonotonicState
from surefoot.simulate import Result
from surefoot.testing import DesignSuite, assert_same, failures_allowed, play


def failed(result: Result) -> int:
    return int((result.wrong | result.unsafe).sum())


def kept(results: Iterable[Result], delta: float, tests: int) -> None:
    """Wrong or unsafe in no more trials than delta allows, in each of the results and in all of them together: what is
    wrong with a proof shows in most of them, so that a few trials of each show what many of one would."""
    bad = [(failed(result), len(result.pulls)) for result in results]
    for found, trials in (*bad, (sum(found for found, _ in bad), sum(trials for _, trials in bad))):
        assert found <= failures_allowed(trials, delta, tests), f"{found} of {trials} failed: {bad}"


class MonotonicSuite(DesignSuite):
    """The suite for designs on the evidence of Theorem 2, whose states have room for as many doses as were pulled in
    any trial of the batch."""

    symmetric = False

    def test_batch_is_its_trials(self) -> None:
        def short(state: MonotonicState) -> MonotonicState:
            many = int(np.isfinite(state.doses).sum(axis=-1).max())
            return replace(state, doses=state.doses[:, :, :many], at=state.at[:, :, :many])

        problem, scenario = self.small
        singles = [take(self.design.start(problem, 3), np.array([i])) for i in range(3)]
        for state, cohort, outcome, _ in play(self.design, problem, scenario):
            for i in range(3):
                row = np.array([i])
                assert_same(short(take(state, row)), short(singles[i]))
                singles[i] = self.design.tell(singles[i], take(cohort, row), take(outcome, row))


def no_end_without_a_pull(design: Design, p: Problem, seed: int, most: int, trials: int = 4) -> None:
    """A running trial always asks for a pull, so the budget ends it at the latest, even with absurd readings."""
    rng = np.random.default_rng(seed)
    state = design.start(p, trials)
    sizes = np.array([1e-3, 0.01, 0.1, 0.3, 1.0, 1e6])
    for _ in range(most):
        running = state.ending == RUNNING
        cohort = design.ask(state)
        np.testing.assert_array_equal(cohort.n.sum(axis=1) > 0, running)
        dose = cohort.dose[cohort.n > 0], np.broadcast_to(p.starts, cohort.n.shape)[cohort.n > 0]
        assert np.all(dose[0] >= dose[1])
        assert np.all((cohort.dose <= p.largest) | (cohort.n == 0))
        if not running.any():
            break
        f, g = (rng.choice(sizes, cohort.n.shape) * rng.uniform(-1, 1, cohort.n.shape) for _ in range(2))
        state = design.tell(state, cohort, Outcome(cohort.n, cohort.n * f, cohort.n * (p.limit + g)))
        for standing, winner in zip(state.standing, state.winner, strict=True):
            assert winner == -1 or standing[winner] == ACTIVE
    v = design.verdict(state)
    assert set(v.endings()) <= set(ENDINGS[1:]), f"still running after {most} rounds"
    assert np.all(v.pulls <= p.budget)


def bounds_hold(design: Design, p: Problem, scenario: Scenario, seed: int) -> None:
    """At delta 1e-9 nothing fails at all: every bound holds in every round, no pull is unsafe, no winner is wrong."""
    p = p.but(delta=1e-9)
    assert not scenario.violations(p)
    result = simulate(p, scenario, design, 10, seed, trace=True)
    assert not result.wrong.any()
    assert not result.unsafe.any()
    assert not np.any(result.ending == ALL_STOPPED)
    trace, truth = result.trace, result.truth
    assert trace is not None
    for low, x, high in ((trace.lower, truth.value, trace.upper), (trace.safe, truth.dose, trace.unsafe)):
        hair = 1e-9 * (1 + np.abs(x))
        assert np.all(low <= x + hair)
        assert np.all(high >= x - hair)
