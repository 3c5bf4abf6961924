"""Many trials of a design on a scenario, in chunks of a fixed size that each have a seed of their own.

Results depend on the seed alone, never on the number of workers. Memory is bounded by the chunk and a few numbers a
trial; time grows with decisions taken, not with pulls, since a cohort's outcome is drawn as a sum.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .designs.base import RUNNING, Cohort, Design, Outcome, State, Verdict, take
from .problem import Problem, SurefootError
from .scenario import Scenario, Truth

Array = NDArray[Any]
DOSE_BINS = 5  # pulls are counted by dose range, in so many equal parts of start to largest safe dose, and above it


@dataclass(frozen=True)
class Trace:
    """The trials round by round, (trials, rounds) or (trials, rounds, arms); an ended trial holds its last values."""

    rounds: Array  # of each trial, (trials,)
    pulls: Array  # made so far
    guess: Array
    dose: Array  # given in this round
    n: Array
    lower: Array
    upper: Array
    safe: Array
    unsafe: Array
    certified: Array  # the largest dose that may be given
    standing: Array
    verdict: Verdict  # at the end


@dataclass(frozen=True)
class Result:
    """What came of each trial, and sums over trials by arm.

    Examples
    --------
    >>> from surefoot import case, make, simulate
    >>> result = simulate(*case("paper-linear", 2), make("safebai-linear"), 20, seed=1, progress=False)
    >>> result
    <Result: safebai-linear on paper-linear, 20 trials, seed 1, mean pulls ...>
    >>> int(result.wrong.sum()), int(result.unsafe.sum())
    (0, 0)
    """

    problem: Problem
    scenario: Scenario
    design: Design
    seed: int
    truth: Truth
    pulls: Array  # (trials,)
    rounds: Array
    ending: Array
    winner: Array
    safe: Array  # the winner's certified dose, nan where there is no winner
    recommended: Array  # the arm to use if it had to end there: the winner, or what is supported best
    dose: Array  # the dose of it that seems to be the largest safe one
    p: Array  # the error probability that the data support for that arm
    unsafe_pulls: Array  # above the limit, plus slack where there is one
    over_pulls: Array  # above the limit
    excess: Array  # harm above the limit, summed over those pulls
    by_arm: Array  # (arms, DOSE_BINS + 1): pulls summed over trials, by dose range; with ordered levels (arms, levels)
    seconds: float
    trace: Trace | None = None

    def __repr__(self) -> str:
        return (
            f"<Result: {self.design.label} on {self.scenario.name}, {self.trials:,} trials, seed {self.seed}, "
            f"mean pulls {float(self.pulls.mean()):,.0f}>"
        )

    def _repr_html_(self) -> str:
        from .characteristics import Characteristics

        return Characteristics(self)._repr_html_()

    @property
    def trials(self) -> int:
        return len(self.pulls)

    @property
    def wrong(self) -> Array:
        """Trials that named an arm that is not the best (nor within the tolerance of it), or has no safe dose."""
        named = self.winner >= 0
        wrong: Array = named & ~self.good[np.where(named, self.winner, 0)]
        return wrong

    @property
    def good(self) -> Array:
        """Arms that may be named: the best, and with a tolerance those within it."""
        value, best = self.truth.value, self.truth.value.max()
        short = best - (self.problem.tolerance or 0.0) - 1e-9 * max(abs(best), 1e-300)
        good: Array = (value >= short) & ~np.isneginf(value)
        return good

    @property
    def recommended_over(self) -> Array:
        """Trials whose recommended dose is above the limit."""
        arms, at = np.arange(len(self.problem.arms)), np.where(np.isnan(self.dose), 0.0, self.dose)
        harm = self.scenario.harms(np.where(arms == self.recommended[:, None], at[:, None], self.problem.starts))
        limit = self.problem.limit + 1e-9 * max(abs(self.problem.limit), 1e-300)
        over: Array = np.any((harm > limit) & (arms == self.recommended[:, None]), axis=1)
        return over

    @property
    def unsafe(self) -> Array:
        return self.unsafe_pulls > 0


def simulate(
    problem: Problem,
    scenario: Scenario,
    design: Design,
    trials: int = 1000,
    seed: int = 0,
    *,
    workers: int = 1,
    trace: bool = False,
    progress: bool = True,
    xp: Any = np,
) -> Result:
    """Play `trials` trials. A progress bar shows on a terminal after two seconds; Ctrl-C stops at once, workers too.

    Parameters
    ----------
    problem, scenario, design
        What is known, the truth, and the rule.
    trials
        How many.
    seed
        The same seed gives the same numbers, whatever the workers.
    workers
        Processes; -1 for every core.
    trace
        Keep every round, for pictures.
    progress
        Whether to show a bar.
    xp
        An array namespace: NumPy, or for a GPU that of PyTorch or CuPy.

    Returns
    -------
    Result

    Raises
    ------
    SurefootError
        If the design is not for this shape, or a number is not what it must be.

    Examples
    --------
    >>> from surefoot import case, make, simulate
    >>> result = simulate(*case("paper-linear", 3), make("surefoot-linear"), trials=10, seed=1, progress=False)
    >>> result.trials, result.problem.names[result.truth.best]
    (10, 'arm 1')
    """
    for name, value, least in (("trials", trials, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise SurefootError(f"{name} must be a whole number of at least {least}; got {value!r}")
    if workers == 0 or not isinstance(workers, int):
        raise SurefootError(f"workers must be a whole number of at least 1 (or -1 for every core); got {workers!r}")
    began = time.perf_counter()
    truth = scenario.truth(problem)
    design.start(problem, 1)  # a shape that does not fit is refused here, not in a worker
    sizes = [min(design.chunk, trials - done) for done in range(0, trials, design.chunk)]
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    jobs = ((problem, scenario, design, truth, size, s, trace, xp) for size, s in zip(sizes, seeds, strict=True))
    bar, parts = _Bar(trials, progress), []
    try:
        for size, part in zip(sizes, _run(jobs, workers, len(sizes), bar.show), strict=True):
            parts.append(part)
            bar.done += size
            bar.show()
    finally:
        bar.stop()
    joined = {k: np.concatenate([part[k] for part in parts]) for k in parts[0] if k not in ("by_arm", "trace")}
    return Result(
        problem, scenario, design, int(seed), truth,
        by_arm=np.sum([part["by_arm"] for part in parts], axis=0),
        trace=_join_traces([part["trace"] for part in parts]) if trace else None,
        seconds=time.perf_counter() - began, **joined,
    )  # fmt: skip


def _run(
    jobs: Iterable[tuple[Any, ...]], workers: int, count: int, tick: Callable[[int], None]
) -> Iterator[dict[str, Any]]:
    if workers == 1 or count == 1:
        yield from starmap(partial(play, tick=tick), jobs)
    else:
        from joblib import Parallel, delayed

        yield from Parallel(n_jobs=workers, return_as="generator")(delayed(play)(*job) for job in jobs)


class _Bar:
    """A progress bar on the terminal once it has taken two seconds: how many trials have ended."""

    def __init__(self, total: int, wanted: bool) -> None:
        self.total, self.wanted, self.done = total, wanted and sys.stderr.isatty(), 0
        self.began = time.perf_counter()
        self.bar: Any = None

    def show(self, more: int = 0) -> None:
        """`more`: beside those of the chunks that are done, of the one that is being played."""
        if self.bar is None and self.wanted and time.perf_counter() - self.began > 2:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.bar.add_task("trials", total=self.total)
            self.bar.start()
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.done + more)

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()


def play(
    problem: Problem, scenario: Scenario, design: Design, truth: Truth, trials: int,
    seed: np.random.SeedSequence, trace: bool, xp: Any, tick: Callable[[int], None] = lambda ended: None,
) -> dict[str, Any]:  # fmt: skip
    """One chunk of trials, from start to end. `tick` is told after every turn how many have ended."""
    noise, randomness = (np.random.default_rng(s) for s in seed.spawn(2))
    limit = problem.limit + 1e-9 * max(abs(problem.limit), 1e-300)
    out: dict[str, Any] = {
        k: np.zeros(trials, dtype=np.int64) for k in ("pulls", "rounds", "ending", "unsafe_pulls", "over_pulls")
    }
    out |= {"winner": np.full(trials, -1), "safe": np.full(trials, np.nan), "excess": np.zeros(trials)}
    out |= {"recommended": np.full(trials, -1), "dose": np.full(trials, np.nan), "p": np.ones(trials)}
    by_arm = np.zeros((len(problem.arms), DOSE_BINS + 1) if problem.shape != "levels" else problem.levels.shape)
    rows = np.arange(trials)  # which trials are still in the batch
    state, story = design.start(problem, trials, xp), _Story() if trace else None
    while True:
        done = _numpy(state.ending) != RUNNING
        tick(trials - len(rows) + int(done.sum()))
        if done.mean() > 0.1 or done.all():
            ended = take(state, xp.asarray(np.flatnonzero(done)))
            _record(out, rows[done], ended, design)
            if story is not None:
                story.end(trials, rows[done], design.verdict(ended))
            if done.all():
                break
            rows, state = rows[~done], take(state, xp.asarray(np.flatnonzero(~done)))
        u = xp.asarray(randomness.random((trials, design.draws))[rows]) if design.draws else None
        cohort = design.ask(state, u)
        dose, n = _numpy(cohort.dose), _numpy(cohort.n)
        effect, harm, mean_harm = scenario.draw(noise, problem, dose, n, _numpy(state.pulls))
        state = design.tell(state, cohort, Outcome(cohort.n, xp.asarray(effect), xp.asarray(harm)))

        over = np.where(mean_harm > limit, n, 0)
        if over.any():
            out["over_pulls"][rows] += over.sum(axis=1)
            out["unsafe_pulls"][rows] += np.where(scenario.unsafe(problem, dose, mean_harm), n, 0).sum(axis=1)
            out["excess"][rows] += (over * (mean_harm - problem.limit)).sum(axis=1)
        _count_doses(by_arm, problem, truth, dose, n)
        if story is not None:
            story.add(trials, rows, Cohort(dose, n), design.verdict(state))
    return out | {"by_arm": by_arm, "trace": story.close(out["rounds"]) if story is not None else None}


def _numpy(x: Any) -> Array:
    return x if isinstance(x, np.ndarray) else np.asarray(x.cpu() if hasattr(x, "cpu") else x)


def _record(out: dict[str, Any], rows: Array, verdict: State, design: Design) -> None:
    if len(rows) == 0:
        return
    advice = design.recommendation(verdict)
    for name, x in (("recommended", advice.arm), ("dose", advice.dose), ("p", advice.p)):
        out[name][rows] = _numpy(x)
    for key in ("pulls", "rounds", "ending", "winner"):
        out[key][rows] = _numpy(getattr(verdict, key))
    winner = out["winner"][rows]
    safe = np.take_along_axis(_numpy(verdict.safe), np.maximum(winner, 0)[:, None], axis=1)[:, 0]
    out["safe"][rows] = np.where(winner >= 0, safe, np.nan)


def _count_doses(by_arm: Array, problem: Problem, truth: Truth, dose: Array, n: Array) -> None:
    """Add pulls by arm and by part of the way from the start to the largest safe dose; the last part lies above it.
    Ordered levels are counted one by one."""
    if problem.shape == "levels":
        _add(by_arm, np.clip(dose, 0, problem.largest).astype(np.int64), n)
        return
    width = np.where(np.isnan(truth.dose), 0.0, truth.dose - problem.starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = DOSE_BINS * (dose - problem.starts) / width
    part = np.where(np.isnan(part), 0, np.clip(part, 0, DOSE_BINS - 1))
    above = np.isnan(truth.dose) | (dose > truth.dose * (1 + 1e-12 * np.sign(truth.dose)))
    _add(by_arm, np.where(above, DOSE_BINS, part).astype(np.int64), n)


def _add(by_arm: Array, part: Array, n: Array) -> None:
    at = part + by_arm.shape[1] * np.arange(len(by_arm))
    by_arm += np.bincount(at.ravel(), weights=n.ravel(), minlength=by_arm.size).reshape(by_arm.shape)


class _Story:
    """Collects a chunk's rounds."""

    KEYS = ("pulls", "guess", "dose", "n", "lower", "upper", "safe", "unsafe", "certified", "standing")

    def __init__(self) -> None:
        self.frames: list[dict[str, Array]] = []
        self.verdict: Verdict | None = None

    def add(self, trials: int, rows: Array, cohort: Cohort, verdict: Verdict) -> None:
        last = self.frames[-1] if self.frames else None
        frame, playing = {}, cohort.n.any(axis=1)  # the others have ended
        for key in self.KEYS:
            value = _numpy(getattr(cohort if key in ("dose", "n") else verdict, key))
            full = last[key].copy() if last else np.zeros((trials, *value.shape[1:]), value.dtype)
            full[rows[playing]] = value[playing]
            frame[key] = full
        ended = np.ones(trials, bool)
        ended[rows[playing]] = False
        frame["n"][ended] = 0
        self.frames.append(frame)

    def end(self, trials: int, rows: Array, ended: Verdict) -> None:
        found = {f.name: _numpy(x) for f in fields(ended)[1:] if (x := getattr(ended, f.name)) is not None}
        if self.verdict is None:
            blank: dict[str, Any] = {k: np.zeros((trials, *x.shape[1:]), x.dtype) for k, x in found.items()}
            self.verdict = replace(ended, **blank)
        for name, x in found.items():
            getattr(self.verdict, name)[rows] = x

    def close(self, rounds: Array) -> Trace:
        assert self.verdict is not None
        if not self.frames:  # the budget did not allow the first cohort
            none = Cohort(self.verdict.safe, self.verdict.standing)
            self.add(len(rounds), np.arange(len(rounds)), none, self.verdict)
            frames = {key: x[:, None][:, :0] for key, x in self.frames[0].items()}
        else:
            frames = {key: np.stack([frame[key] for frame in self.frames], axis=1) for key in self.KEYS}
        return Trace(rounds, **frames, verdict=self.verdict)


def _join_traces(traces: list[Trace]) -> Trace:
    most = max(t.pulls.shape[1] for t in traces)

    def pad(x: Array, hold: bool) -> Array:
        tail = x[:, -1:] if hold else np.zeros_like(x[:, -1:])
        return np.concatenate([x] + [tail] * (most - x.shape[1]), axis=1)

    keys = _Story.KEYS
    joined = {k: np.concatenate([pad(getattr(t, k), k != "n") for t in traces]) for k in keys}
    first, *others = (t.verdict for t in traces)
    ends: dict[str, Any] = {
        f.name: np.concatenate([getattr(v, f.name) for v in (first, *others)])
        for f in fields(first)[1:]
        if getattr(first, f.name) is not None
    }
    return Trace(np.concatenate([t.rounds for t in traces]), **joined, verdict=replace(first, **ends))
