"""Trials played side by side, from start to end. A batch is refilled as its trials end, so that it stays full.

A *part* is a run of PART trials with a seed of its own, and only trials that still run draw from its stream. So what
comes of a trial depends on the seed, its part and its place in it, and never on who else is in memory with it.
On a device there is one stream for a whole job instead: equal in law to the others, and not number by number.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .arrays import Array, array_namespace, device, dot, floats, like, replace
from .designs.base import ALL_STOPPED, RUNNING, Cohort, Design, Outcome, State, join, repeat, take
from .device import Device, numpy
from .noise import Bernoulli, Gaussian, Rademacher
from .problem import Problem
from .results import COLUMNS, Marks, Sums, dose_edges
from .scenario import Scenario, Truth, hair
from .trace import Story, Trace

SINGLE = Gaussian, Bernoulli, Rademacher  # drawn by `Together`
PART = 256  # trials that share a seed of their own; another number gives other numbers


@dataclass(frozen=True)
class Job:
    """Some parts of a run, to be played in one go: `trials` from `first` on, which begins a part."""

    problem: Problem
    scenario: Scenario
    design: Design
    truth: Truth
    seed: int
    first: int
    trials: int
    keep: bool = False  # columns, one number a trial, beside the sums
    trace: bool = False
    watch: Any = None  # notes more about every trial, see `Watch`
    rounds: int | None = None  # about how many a trial takes, where that is known; for the time that is left
    width: int | None = None  # trials side by side; by default what suits the design
    xp: Any = np
    device: Device | None = None

    @property
    def part(self) -> int:
        """Trials with a seed of their own: they begin together."""
        return part_size(self.design)

    @property
    def room(self) -> int:
        """How many trials are in memory at once."""
        return self.trials if self.trace else max(self.width or self.design.chunk, self.part)

    @property
    def step(self) -> int:
        """So many begin together."""
        return self.part if self.device is None else max(self.room // 4, 1)


def part_size(design: Design) -> int:
    return min(PART, design.chunk)


@dataclass(frozen=True)
class Played:
    """What came of a job."""

    first: int
    trials: int
    sums: Sums
    columns: dict[str, Array] | None
    trace: Trace | None
    seconds: float


class Watch:
    """Looks on, and gives columns of its own. It is copied for every job."""

    def begin(self, job: Job) -> None:
        """Before the first cohort of a job."""

    def note(self, rows: Array, state: State) -> None:
        """After a decision: the state of these trials, numbered from 0 in the job; some may have ended before. It is
        only lent: what is to be known later must be copied."""

    def columns(self) -> dict[str, Array]:
        """By name, a row for every trial."""
        return {}


@dataclass(frozen=True)
class Batch:
    """The trials in memory: their states, and what a design is not told of them, (trials,)."""

    state: State
    over: Array  # pulls above the limit
    unsafe: Array  # pulls that break the promise
    excess: Array  # harm above the limit, summed over those pulls


class Streams:
    """The random numbers of every part that is in the batch, drawn for those of its trials that still run."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.live: dict[int, tuple[np.random.Generator, np.random.Generator]] = {}
        self.at: list[tuple[int, Any]] = []  # the rows of each part in the batch that still run

    def look(self, rows: Array, running: Array) -> None:
        """Who is in the batch now."""
        parts = rows // self.job.part
        first, last = int(parts[0]), int(parts[-1])
        bounds = np.searchsorted(parts, np.arange(first, last + 2)).tolist()
        self.at = []
        for k, (a, b) in enumerate(pairwise(bounds), first):
            if b > a:
                self.at.append((k, slice(a, b) if running[a:b].all() else a + np.flatnonzero(running[a:b])))
        self.live = {k: self.live.get(k) or self._generators(k) for k, _ in self.at}

    def _generators(self, part: int) -> tuple[np.random.Generator, np.random.Generator]:
        seed = np.random.SeedSequence(self.job.seed, spawn_key=(self.job.first // self.job.part + part,))
        noise, choices = (np.random.default_rng(s) for s in seed.spawn(2))
        return noise, choices

    def uniform(self, state: State) -> Array:
        u = np.zeros((state.pulls.shape[0], self.job.design.draws))
        for k, at in self.at:
            u[at] = self.live[k][1].random(u[at].shape)
        return like(state.pulls, u)

    def draw(self, state: State, cohort: Cohort) -> list[Array]:
        """What the scenario answers to a cohort."""
        dose, n, pulls = numpy(cohort.dose), numpy(cohort.n), numpy(state.pulls)
        problem, scenario, full = self.job.problem, self.job.scenario, list[Array]()
        if not problem.squares and all(type(noise) in SINGLE for noise in scenario.noises(problem)):
            one = Together([(self.live[k][0], at) for k, at in self.at])
            full = list(scenario.draw(one, problem, dose, n, pulls))
        for k, at in () if full else self.at:
            drawn = scenario.draw(self.live[k][0], problem, dose[at], n[at], pulls[at])
            full = full or [np.zeros(dose.shape) for _ in drawn]
            for whole, x in zip(full, drawn, strict=True):
                whole[at] = x
        return [like(cohort.dose, x) for x in full]


@dataclass(frozen=True)
class Together:
    """The generators of all parts as one, for noises whose sums are drawn entry by entry: each draws for its rows."""

    parts: list[tuple[np.random.Generator, Any]]

    def standard_normal(self, shape: tuple[int, ...]) -> Array:
        out = np.zeros(shape)
        for rng, at in self.parts:
            out[at] = rng.standard_normal(out[at].shape)
        return out

    def binomial(self, n: Array, p: Array) -> Array:
        out = np.zeros_like(n)
        for rng, at in self.parts:
            out[at] = rng.binomial(n[at], p[at])
        return out


class OnDevice:
    """One stream for all trials of a job, drawn on the device."""

    def __init__(self, job: Job, device: Device) -> None:
        self.job, self.rng = job, device.generator(job.seed, job.first)

    def look(self, rows: Array, running: Array) -> None:
        """It does not matter who is in the batch."""

    def uniform(self, state: State) -> Array:
        return self.rng.random((state.pulls.shape[0], self.job.design.draws))

    def draw(self, state: State, cohort: Cohort) -> list[Array]:
        n, pulls = floats(cohort.n), floats(state.pulls)
        return list(self.job.scenario.draw(self.rng, self.job.problem, cohort.dose, n, pulls))


def play(job: Job, tick: Callable[[float], None] = lambda share: None) -> Played:
    """All trials of a job. `tick` is told after every turn about which share of the work is done."""
    began = time.perf_counter()
    with job.device.ready() if job.device else nullcontext():
        table = Table(job)
        while table.seat():
            table.turn()
            tick(table.share)
    columns, counts = table.columns, numpy(table.counts)
    by_arm = np.diff(counts, axis=0, append=0).T * -1
    sums = Marks(job.problem, job.scenario, job.truth, columns).sums(by_arm, job.part)
    if job.keep:
        columns = columns | table.watch.columns()
    story = table.story.close(columns["rounds"]) if table.story is not None else None
    return Played(job.first, job.trials, sums, columns if job.keep else None, story, time.perf_counter() - began)


class Table:
    """The trials in memory, and what came of those that have ended."""

    def __init__(self, job: Job) -> None:
        self.job, self.design = job, job.design
        state = job.design.start(job.problem, 1, job.xp)
        if job.device is not None:
            state = job.device.put(state)
        state = replace(state, owned=True)
        xp, none = array_namespace(state.pulls), state.pulls
        self.fresh = Batch(state, none, none, xp.astype(none, xp.float64))
        self.batch, self.rows = take(self.fresh, none[:0]), np.arange(0)  # nobody yet
        self.source = Streams(job) if job.device is None else OnDevice(job, job.device)
        self.columns = {name: np.full(job.trials, blank) for name, blank in COLUMNS.items()}
        edges = dose_edges(job.problem, job.truth)
        self.edges = [like(state.safe, row) for row in edges]
        self.counts = xp.zeros((len(edges) + 1, edges.shape[1]), dtype=xp.int64, device=device(none))
        self.story, self.watch = Story(job.trials) if job.trace else None, copy(job.watch or Watch())
        self.watch.begin(job)
        self.begun, self.turns = 0, 0
        self.ended, self.rounds = 0, 0  # trials that have ended, and the decisions that they took

    def seat(self) -> bool:
        """Take out those that have ended, put in those that wait, and say whether anybody plays."""
        while True:
            running = numpy(self.batch.state.ending) == RUNNING
            left, more = int(running.sum()), self.fitting(int(running.sum()))
            if left < (len(running) if more else 0.85 * len(running)):
                self.record(~running)
                self.rows, self.batch = self.rows[running], self._of(running)
                running = running[running]
            if not more:
                break
            self.rows = np.concatenate([self.rows, np.arange(self.begun, self.begun + more)])
            new = repeat(self.fresh, more)
            self.batch, self.begun = join(self.batch, new) if left else new, self.begun + more
        if left:
            self.source.look(self.rows, running)
            self.turns += left
        return left > 0

    def fitting(self, left: int) -> int:
        """How many may begin beside those that are left: whole parts, once a quarter of the room is free."""
        job = self.job
        waiting, free = job.trials - self.begun, job.room - left
        if free < max(job.room // 4, min(job.step, waiting)):
            return 0
        return waiting if waiting <= free else free // job.step * job.step

    def _of(self, chosen: Array) -> Batch:
        return take(self.batch, like(self.batch.over, np.flatnonzero(chosen)))

    def turn(self) -> None:
        """One cohort for everybody, and what becomes of it."""
        s, design = self.batch.state, self.design
        cohort = design.ask(s, self.source.uniform(s) if design.draws else None)
        effect, harm, mean_harm, *squares = self.source.draw(s, cohort)
        state = design.tell(s, cohort, Outcome(cohort.n, effect, harm, tuple(squares) or None))
        self.batch = replace(self.batch, state=state)
        self.count(cohort, mean_harm)
        self.watch.note(self.rows, state)
        if self.story is not None:
            self.story.add(self.rows, cohort, design.verdict(state))

    def count(self, cohort: Cohort, harm: Array) -> None:
        """Pulls by dose range, and those above the limit."""
        xp, p, b = array_namespace(harm), self.job.problem, self.batch
        beyond = [dot(cohort.n, xp.astype(cohort.dose >= edge, cohort.n.dtype)) for edge in self.edges]
        self.counts = self.counts + xp.stack([xp.sum(cohort.n, axis=0), *beyond])
        above = (harm > p.limit + hair(p.limit)) & (cohort.n > 0)
        if bool(xp.any(above)):
            over = xp.where(above, cohort.n, 0)
            unsafe = xp.where(self.job.scenario.unsafe(p, cohort.dose, harm), cohort.n, 0)
            excess = xp.sum(xp.astype(over, xp.float64) * (harm - p.limit), axis=1)
            self.batch = replace(
                b, over=b.over + xp.sum(over, axis=1), unsafe=b.unsafe + xp.sum(unsafe, axis=1),
                excess=b.excess + excess,
            )  # fmt: skip

    def record(self, chosen: Array) -> None:
        """The columns of trials that have ended."""
        rows, batch = self.rows[chosen], self._of(chosen)
        s, advice, put = batch.state, self.design.recommendation(batch.state, odds=False), self.columns
        found = {"recommended": advice.arm, "dose": advice.dose, "p": advice.p}
        found |= {key: getattr(s, key) for key in ("pulls", "rounds", "ending", "winner")}
        found |= {"over_pulls": batch.over, "unsafe_pulls": batch.unsafe, "excess": batch.excess}
        for name, x in found.items():
            put[name][rows] = numpy(x)
        self.ended, self.rounds = self.ended + len(rows), self.rounds + int(put["rounds"][rows].sum())
        put["recommended"][rows[put["ending"][rows] == ALL_STOPPED]] = -1  # of arms that are all unsafe none is advised
        winner = put["winner"][rows]
        safe = np.take_along_axis(numpy(s.safe), np.maximum(winner, 0)[:, None], axis=1)[:, 0]
        put["safe"][rows] = np.where(winner >= 0, safe, np.nan)
        if self.story is not None:
            self.story.end(rows, self.design.verdict(s))

    @property
    def share(self) -> float:
        """About which part of the work is done: decisions, of those that all trials will take as far as one can see."""
        typical = self.rounds / self.ended if self.ended else self.job.rounds
        if not typical:
            return 0.0
        expected = self.job.trials * max(typical, self.turns / max(self.begun, 1))
        return min(self.turns / expected, 0.99)
