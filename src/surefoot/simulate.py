"""Many trials of designs on scenarios: runs are cut into jobs, jobs are played somewhere, and their sums added up.

A job is a few parts (see `play`) that are played together. How a run is cut, who plays which job and in which order
they come back changes nothing: sums are added exactly, and columns put together in order. Memory is bounded by the
batches being played, time grows with decisions taken and not with pulls: a cohort's outcome is drawn as a sum.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .designs.base import Design
from .device import Device
from .play import Job, Played, Watch, part_size
from .problem import Problem, SurefootError
from .progress import Bar, Pace
from .results import DOSE_BINS, Array, Result, Sums
from .scenario import Scenario, Truth
from .store import Kept, Store
from .trace import Trace, join_traces
from .workers import Lost, Workers, open_workers

KEEP = 100_000  # up to so many trials one number a trial is kept without being asked for
SECONDS = 10.0  # about how long a job should take
LONG = 60.0  # and at most, where a longer one is worth it
ON_DEVICE = 128  # times as many trials side by side as on a core
TRIES = 5  # so often a job may be lost with its worker
Sink = Callable[["Run", dict[str, Array]], None]


@dataclass(frozen=True)
class Run:
    """So many trials of a design on a scenario. `keep`: the columns too, one number a trial."""

    problem: Problem
    scenario: Scenario
    design: Design
    trials: int = 1000
    seed: int = 0
    keep: bool = True
    trace: bool = False
    watch: Watch | None = None
    rounds: int | None = None  # about how many decisions a trial takes, where that is known
    device: str | None = None
    width: int | None = None
    xp: Any = np

    def __post_init__(self) -> None:
        for name, value, least in (("trials", self.trials, 1), ("seed", self.seed, 0), ("width", self.width or 1, 1)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise SurefootError(f"{name} must be a whole number of at least {least}; got {value!r}")

    @cached_property
    def truth(self) -> Truth:
        return self.scenario.truth(self.problem)

    @property
    def room(self) -> int:
        """How many trials are played side by side."""
        return self.width or self.design.chunk * (ON_DEVICE if self.device else 1)

    @property
    def label(self) -> str:
        return f"{self.scenario.name}, {len(self.problem.arms)} arms, {self.design.name}"


def simulate(
    problem: Problem,
    scenario: Scenario,
    design: Design,
    trials: int = 1000,
    seed: int = 0,
    *,
    workers: int = 1,
    cluster: str | None = None,
    device: str | None = None,
    width: int | None = None,
    out: str | Path | None = None,
    keep: bool | None = None,
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
        The same seed gives the same numbers, whatever the workers or the cluster.
    workers
        Processes of this machine; -1 for every core.
    cluster
        The address of a Dask (`tcp://`, `tls://`) or Ray (`ray://`) cluster.
    device
        Where arrays live and numbers are drawn (`cuda`); equal in law, not bit by bit.
    width
        How many trials are played side by side.
    out
        A folder that keeps what is done, and goes on from there.
    keep
        One number a trial beside the sums; by default up to 100,000 trials.
    trace
        Keep every round, for pictures.
    progress
        Whether to show a bar.
    xp
        An array namespace: NumPy, or that of PyTorch or CuPy.

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
    run = Run(
        problem, scenario, design, trials, seed, keep=trials <= KEEP if keep is None else keep, trace=trace,
        device=device, width=width, xp=xp,
    )  # fmt: skip
    (result,) = simulate_all([run], workers=workers, cluster=cluster, out=out, progress=progress)
    return result


def simulate_all(
    runs: Sequence[Run],
    *,
    workers: int = 1,
    cluster: str | None = None,
    out: str | Path | Store | None = None,
    progress: bool | str = True,
    sink: Sink | None = None,
) -> list[Result]:
    """All runs, jobs of all of them side by side. With a `sink`, columns go there, in order, and are not held."""
    store = Store(Path(out)) if isinstance(out, (str, Path)) else out
    if any(run.device for run in runs) and cluster:
        raise SurefootError("a device is of this machine: leave out the cluster, or the device")
    if bound := [run.design.label for run in runs if run.device and not run.design.portable]:
        raise SurefootError(f"{bound[0]} works with NumPy alone, on a CPU: leave out the device, or the design")
    going = [Going(run, store, sink) for run in runs]
    bar = Bar([one.pace for one in going], bool(progress), progress == "lines")
    busy: list[tuple[Going, int]] = []

    def tick(share: float) -> None:
        one, first = busy[-1]
        one.pace.going[first] = (one.pace.going[first][0], share, one.pace.going[first][2])
        bar.show()

    team = open_workers(workers, cluster, tick)
    flying: dict[Future[Played], tuple[Going, Job]] = {}
    try:
        while True:
            while len(flying) < team.slots and (one := _next(going, team.slots)):
                others = sum(it.at < it.run.trials for it in going) - 1
                job = one.job(team.hands, len(going), others)
                busy[:] = [(one, job.first)]
                flying[team.submit(job)] = one, job
            if not flying:
                break
            done, _ = wait(flying, timeout=0.2, return_when=FIRST_COMPLETED)
            _look(team, flying)
            for future in done:
                one, job = flying.pop(future)
                one.back(job, future)
                if one.complete and len(going) > 1:
                    bar.say(f"{one.run.label}: done")
            bar.show()
    finally:
        bar.stop()
        team.close()
    return [one.result() for one in going]


def _next(going: Iterable[Going], slots: int) -> Going | None:
    """Whose job is next: what was lost first, then the first of every run, so that it is known what each costs, then in
    order. A run waits while too many of its jobs are back before an earlier one."""
    waiting = [one for one in going if one.lost or (one.at < one.run.trials and one.ahead < 4 * slots)]
    return min(waiting, key=lambda one: (not one.lost, one.begun), default=None)


def _look(team: Workers, flying: dict[Future[Played], tuple[Going, Job]]) -> None:
    shares = team.shares()
    for future, (one, job) in flying.items():
        if (share := shares.get(id(future))) is not None:
            one.pace.going[job.first] = (job.trials, share, one.pace.going[job.first][2])


@dataclass
class Going:
    """A run that is being played: what has come back, and what is out."""

    run: Run
    store: Store | None
    sink: Sink | None
    kept: Kept | None = None
    at: int = 0  # the first trial that nobody has been given
    merged: int = 0  # the first trial whose job is not back, or not all before it are
    seconds: float = 0.0
    sums: Sums | None = None
    lost: list[Job] = field(default_factory=list)
    back_early: dict[int, Played] = field(default_factory=dict)
    columns: list[dict[str, Array]] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    tries: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        run = self.run
        run.design.start(run.problem, 1)  # a shape that does not fit is refused here, not in a worker
        self.device = Device(run.device) if run.device else None
        self.pace = Pace(run.trials, weight=run.rounds or 1.0)
        if self.store is None:
            return
        if run.trace:
            raise SurefootError("a trace is not kept in a folder: leave out trace, or out")
        self.kept = self.store.kept(run)
        self.at = self.merged = self.pace.before = self.kept.done
        self.sums, self.seconds = self.kept.sums, self.kept.seconds
        if run.keep:
            for block in self.kept.columns():
                self._give(block)

    @property
    def begun(self) -> bool:
        return self.at > 0

    @property
    def ahead(self) -> int:
        return len(self.pace.going) + len(self.back_early)

    @property
    def complete(self) -> bool:
        return self.merged == self.run.trials

    def job(self, slots: int, runs: int, others: int) -> Job:
        """The next one: about ten seconds' worth, and towards the end smaller ones, so that nobody waits long. While
        enough `others` have jobs to give nobody waits, and a batch is as wide as is best."""
        run, now = self.run, time.monotonic()
        if self.lost:
            job = self.lost.pop()
        else:
            size = self._size(slots, runs, others, now)
            job = Job(
                run.problem, run.scenario, run.design, run.truth, run.seed, self.at, size, run.keep, run.trace,
                run.watch, run.rounds, run.room, self.device.xp if self.device else run.xp, self.device,
            )  # fmt: skip
            self.at += size
        self.pace.going[job.first] = (job.trials, 0.0, now)
        return job

    def _size(self, slots: int, runs: int, others: int, now: float) -> int:
        run, part, left = self.run, part_size(self.run.design), self.run.trials - self.at
        chunk, cost = run.room, self.pace.cost(now)
        if self.device:
            return min(left, 8 * chunk)
        if run.trace:
            return min(left, part)
        first = chunk if slots == runs == 1 else part  # while nobody knows how long it takes
        want = first if cost is None else min(SECONDS / cost, 64 * chunk)
        if cost is not None and others > 2 * slots:
            wide = min(2 * chunk, LONG / cost)
            return min(left, max(int(max(want, wide)) // part, 1) * part)
        fair = left / (2 * slots) if slots > 1 else left
        return min(left, max(int(min(want, fair)) // part, 1) * part)

    def back(self, job: Job, future: Future[Played]) -> None:
        """Take what came of a job, or put it back where its worker was lost."""
        del self.pace.going[job.first]
        try:
            played = future.result()
        except Lost as error:
            self.tries[job.first] += 1
            if self.tries[job.first] >= TRIES:
                last = job.first + job.trials - 1
                raise SurefootError(
                    f"trials {job.first} to {last} were lost with their worker {TRIES} times ({error}): is there "
                    "enough memory?"
                ) from None
            self.lost.append(job)
            return
        self.pace.done, self.pace.seconds = self.pace.done + job.trials, self.pace.seconds + played.seconds
        self.back_early[job.first] = played
        while (following := self.back_early.pop(self.merged, None)) is not None:
            self._merge(following)

    def _merge(self, played: Played) -> None:
        if self.kept is not None:
            self.kept.add(played)
            self.sums = self.kept.sums
        else:
            self.sums = played.sums if self.sums is None else self.sums + played.sums
        self.merged, self.seconds = self.merged + played.trials, self.seconds + played.seconds
        if played.columns is not None:
            self._give(played.columns)
        if played.trace is not None:
            self.traces.append(played.trace)

    def _give(self, columns: dict[str, Array]) -> None:
        if self.sink is not None:
            self.sink(self.run, columns)
        else:
            self.columns.append(columns)

    def result(self) -> Result:
        run = self.run
        assert self.sums is not None
        columns = (
            {key: np.concatenate([x[key] for x in self.columns]) for key in self.columns[0]} if self.columns else None
        )
        return Result(
            run.problem, run.scenario, run.design, int(run.seed), run.truth, self.sums, self.seconds, columns,
            join_traces(self.traces) if self.traces else None,
        )  # fmt: skip


__all__ = ["DOSE_BINS", "Array", "Result", "Run", "Trace", "simulate", "simulate_all"]
