import os
import signal
import subprocess
import sys
import time
import tracemalloc
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from surefoot import Design, SurefootError, case, make, simulate
from surefoot.designs.base import BEST_ARM, BUDGET_SPENT, ENDINGS, RUNNING
from surefoot.simulate import DOSE_BINS, Going, Result, Run, simulate_all

LINEAR, MONOTONIC = make("safebai-linear"), make("safebai-monotonic")


class Small(type(LINEAR)):  # type: ignore[misc]
    """In small chunks, so that a few trials make several."""

    chunk = 64


def assert_equal(one: Result, two: Result) -> None:
    assert one.sums.to_dict() == two.sums.to_dict()
    assert one.columns is not None and two.columns is not None and list(one.columns) == list(two.columns)
    for name, column in one.columns.items():
        np.testing.assert_array_equal(column, two.columns[name], err_msg=name)


@pytest.mark.parametrize("name", ["paper-linear", "binary-harm"])
def test_the_seed_decides_and_nothing_else(name: str) -> None:
    problem, scenario = case(name, 3)
    design = LINEAR if name == "paper-linear" else MONOTONIC
    one = simulate(problem, scenario, design, 300, 7)
    assert_equal(one, simulate(problem, scenario, design, 300, 7))
    assert not np.array_equal(one.pulls, simulate(problem, scenario, design, 300, 8).pulls)


def test_workers_do_not_matter() -> None:
    problem, scenario = case("paper-linear", 3)
    runs = [simulate(problem, scenario, Small(), 300, 7, workers=workers, trace=True) for workers in (1, 2)]
    assert_equal(*runs)
    traces = [run.trace for run in runs]
    assert traces[0] is not None
    for f in fields(traces[0]):
        if f.name != "verdict":
            np.testing.assert_array_equal(*(getattr(trace, f.name) for trace in traces))


def test_a_run_is_cut_wide_while_others_keep_the_workers_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of a second would hold 256 trials, and one as wide as is best 4,096; the numbers are the same."""
    made = [case("random-linear", instance=k) for k in range(6)]
    runs = [Run(*it, make("safebai-linear"), 3000, seed=1) for it in made]
    alone = [it.pulls for it in simulate_all(runs, progress=False)]
    monkeypatch.setattr(sys.modules[Going.__module__], "SECONDS", 1e-6)
    sizes = []
    job = Going.job

    def noted(self: Going, *of: Any) -> Any:
        sizes.append((one := job(self, *of)).trials)
        return one

    monkeypatch.setattr(Going, "job", noted)
    both = simulate_all(runs, workers=2, progress=False)
    assert max(sizes) > 2000, "what is left of a run after its first part"
    for one, two in zip(alone, both, strict=True):
        np.testing.assert_array_equal(one, two.pulls)


def test_more_trials_go_on_from_fewer() -> None:
    problem, scenario = case("paper-linear", 3)
    few, more = (simulate(problem, scenario, Small(), trials, 7) for trials in (128, 192))
    np.testing.assert_array_equal(few.pulls, more.pulls[:128])


def test_trials_are_not_copies_of_each_other() -> None:
    """Chunks have seeds of their own; in two arms' certified doses two trials hardly ever agree."""
    result = simulate(*case("paper-linear", 3), Small(), 256, 7)
    assert len(np.unique(result.safe)) > 250


@pytest.mark.parametrize("name", ["paper-linear", "equal-arms", "unsafe-start", "paper-drug", "harmless"])
def test_the_trace_adds_up(name: str) -> None:
    problem, scenario = case(name, 3)
    design: Design = LINEAR if problem.shape == "linear" else MONOTONIC
    result = simulate(problem, scenario, design, 60, 3, trace=True)
    assert_equal(result, simulate(problem, scenario, design, 60, 3))  # looking changes nothing
    t = result.trace
    assert t is not None
    np.testing.assert_array_equal(t.rounds, result.rounds)
    np.testing.assert_array_equal(t.n.sum(axis=(1, 2)), result.pulls)
    np.testing.assert_array_equal(np.cumsum(t.n.sum(axis=2), axis=1), t.pulls)
    np.testing.assert_array_equal(t.n.sum(axis=(0, 1)), result.by_arm.sum(axis=1))
    np.testing.assert_array_equal(t.guess[:, -1], result.winner)
    for i in range(60):
        ended = result.rounds[i] - 1
        for key in ("pulls", "lower", "upper", "safe", "unsafe", "standing", "guess", "dose"):
            x = getattr(t, key)[i]
            np.testing.assert_array_equal(x[ended:], np.broadcast_to(x[ended], x[ended:].shape), err_msg=key)
            if key not in ("dose", "guess"):
                np.testing.assert_array_equal(x[-1], getattr(t.verdict, key)[i], err_msg=key)
        assert np.all(t.n[i, : ended + 1].sum(axis=1) > 0)
        assert not t.n[i, ended + 1 :].any()
    assert np.all(t.dose >= problem.starts)
    assert np.all(t.dose <= problem.largest)


def test_pulls_over_the_line_are_counted() -> None:
    problem, scenario = case("unsafe-start", 3)
    result = simulate(problem, scenario, LINEAR, 100, 3, trace=True)
    assert result.trace is not None
    n, harm = result.trace.n, scenario.harms(result.trace.dose)
    over = np.where(harm > problem.limit * (1 + 1e-9), n, 0)
    assert over.any()
    np.testing.assert_array_equal(result.over_pulls, over.sum(axis=(1, 2)))
    np.testing.assert_array_equal(result.unsafe_pulls, result.over_pulls)  # there is no slack
    np.testing.assert_allclose(result.excess, (over * (harm - problem.limit)).sum(axis=(1, 2)))
    assert result.by_arm[0, :DOSE_BINS].sum() == 0  # no dose of the first arm is safe
    assert result.by_arm[0, DOSE_BINS] == n[:, :, 0].sum()

    problem, scenario = case("paper-drug", 3)
    result = simulate(problem, scenario, MONOTONIC, 100, 3, trace=True)
    assert result.trace is not None
    over = np.where(scenario.harms(result.trace.dose) > problem.limit, result.trace.n, 0)
    np.testing.assert_array_equal(result.over_pulls, over.sum(axis=(1, 2)))
    assert not result.unsafe.any()
    assert result.by_arm[:, DOSE_BINS].sum() == over.sum()


def test_wrong_counts_against_value_and_tolerance() -> None:
    problem, scenario = case("paper-linear", 3)
    result = simulate(problem, scenario, LINEAR, 4)
    other = replace(result, columns=dict(result.columns or {}) | {"winner": np.array([0, 1, 2, -1])})
    assert other.wrong.tolist() == [False, True, True, False]
    near = replace(other, problem=problem.but(tolerance=0.4))
    assert near.wrong.tolist() == [False, False, True, False]  # values 1, 0.6 and 0.2


def test_the_budget() -> None:
    problem, scenario = case("paper-linear", 3)
    free = simulate(problem, scenario, LINEAR, 300, 1)
    middle = int(np.median(free.pulls))
    tight = simulate(problem.but(budget=middle), scenario, LINEAR, 300, 1)
    assert set(tight.ending) == {BEST_ARM, BUDGET_SPENT}
    assert tight.pulls.max() <= middle
    np.testing.assert_array_equal(tight.winner >= 0, tight.ending == BEST_ARM)
    # who knows the winner when the budget ends its refining has won
    refined = simulate(problem.but(budget=int(free.pulls.max()), refine=1e-6), scenario, LINEAR, 300, 1)
    assert np.all(refined.ending == BEST_ARM)
    none = simulate(problem.but(budget=1), scenario, LINEAR, 3, trace=True)
    assert none.pulls.tolist() == [0, 0, 0]
    assert none.trace is not None
    assert none.trace.lower.shape == (3, 0, 3)


def test_exact_ties_end_too() -> None:
    problem, scenario = case("equal-arms", tolerance=None)
    result = simulate(problem, scenario, LINEAR, 50)
    assert RUNNING not in result.ending
    assert not result.wrong.any()
    assert result.pulls.max() <= problem.budget


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trials": 0}, "trials must be a whole number of at least 1; got 0"),
        ({"trials": 1.5}, "trials must be a whole number of at least 1; got 1.5"),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
        ({"design": MONOTONIC}, "safebai-monotonic is for the monotonic shape; this problem is linear"),
    ],
)
def test_refuses(given: dict[str, Any], message: str) -> None:
    problem, scenario = case("paper-linear", 3)
    options: dict[str, Any] = {"design": LINEAR, "trials": 1}
    with pytest.raises(SurefootError, match=message):
        simulate(problem, scenario, **options | given)


def test_memory_is_bounded_by_the_chunk() -> None:
    problem, scenario = case("paper-linear", 10)

    def peak(trials: int) -> int:
        tracemalloc.start()
        simulate(problem, scenario, LINEAR, trials)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    chunk = LINEAR.chunk
    small, large = peak(chunk), peak(8 * chunk)
    a_trial = 2 * 8 * 9  # nine numbers, twice while they are joined
    assert large - small < 7 * chunk * a_trial + 100_000


SLOW = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # what was begun in the background may have it ignored
import numpy as np
from surefoot.catalogue import CASES, Case, paper_linear
from surefoot.cli import main
from surefoot.scenario import Scenario

def harm(dose):
    if np.ndim(dose):  # a batch of trials
        os.write(2, b"%d\\n" % os.getpid())
        time.sleep(0.1)
    return dose

def make(d):
    problem, scenario = paper_linear(d)
    return problem, Scenario(scenario.effect, (harm,) * d)

CASES.add(Case("slow", "", make, 2))
main()
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_stops_at_once_and_leaves_nobody_behind(workers: int) -> None:
    command = [sys.executable, "-c", SLOW, "simulate", "slow", "--trials", "1000000", "--workers", str(workers)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        assert child.stderr is not None
        at_work = set[str]()
        while len(at_work) < workers:
            line = child.stderr.readline()
            assert line.strip().isdigit(), line + child.stderr.read()
            at_work.add(line)
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does it: everybody in the foreground hears it
        out, err = child.communicate(timeout=120)
    assert child.returncode == 130
    assert out == ""
    assert [line for line in err.splitlines() if not line.isdigit()] == ["interrupted; nothing was kept"]
    patience = time.monotonic() + 60
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < patience:
            os.killpg(child.pid, 0)  # is there still somebody?
            time.sleep(0.05)


def test_endings_have_names() -> None:
    assert ENDINGS == ("running", "best-arm", "within-tolerance", "budget-spent", "all-stopped")
