"""Trials round by round: what a picture of single trials is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .designs.base import Cohort, Verdict
from .device import numpy

Array = NDArray[Any]
KEYS = ("pulls", "guess", "dose", "n", "lower", "upper", "safe", "unsafe", "certified", "standing")


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


class Story:
    """Collects the rounds of trials that begin together."""

    def __init__(self, trials: int) -> None:
        self.trials = trials
        self.frames: list[dict[str, Array]] = []
        self.verdict: Verdict | None = None

    def add(self, rows: Array, cohort: Cohort, verdict: Verdict) -> None:
        last = self.frames[-1] if self.frames else None
        frame, playing = {}, numpy(cohort.n).any(axis=1)  # the others have ended
        for key in KEYS:
            value = numpy(getattr(cohort if key in ("dose", "n") else verdict, key))
            full = last[key].copy() if last else np.zeros((self.trials, *value.shape[1:]), value.dtype)
            full[rows[playing]] = value[playing]
            frame[key] = full
        ended = np.ones(self.trials, bool)
        ended[rows[playing]] = False
        frame["n"][ended] = 0
        self.frames.append(frame)

    def end(self, rows: Array, ended: Verdict) -> None:
        found = {f.name: numpy(x) for f in fields(ended)[1:] if (x := getattr(ended, f.name)) is not None}
        if self.verdict is None:
            blank: dict[str, Any] = {k: np.zeros((self.trials, *x.shape[1:]), x.dtype) for k, x in found.items()}
            self.verdict = replace(ended, **blank)
        for name, x in found.items():
            getattr(self.verdict, name)[rows] = x

    def close(self, rounds: Array) -> Trace:
        assert self.verdict is not None
        if not self.frames:  # the budget did not allow the first cohort
            self.add(np.arange(self.trials), Cohort(self.verdict.safe, self.verdict.standing), self.verdict)
            frames = {key: x[:, None][:, :0] for key, x in self.frames[0].items()}
        else:
            frames = {key: np.stack([frame[key] for frame in self.frames], axis=1) for key in KEYS}
        return Trace(rounds, **frames, verdict=self.verdict)


def join_traces(traces: Sequence[Trace]) -> Trace:
    most = max(t.pulls.shape[1] for t in traces)

    def pad(x: Array, hold: bool) -> Array:
        tail = x[:, -1:] if hold else np.zeros_like(x[:, -1:])
        return np.concatenate([x] + [tail] * (most - x.shape[1]), axis=1)

    joined = {k: np.concatenate([pad(getattr(t, k), k != "n") for t in traces]) for k in KEYS}
    first, *others = (t.verdict for t in traces)
    ends: dict[str, Any] = {
        f.name: np.concatenate([getattr(v, f.name) for v in (first, *others)])
        for f in fields(first)[1:]
        if getattr(first, f.name) is not None
    }
    return Trace(np.concatenate([t.rounds for t in traces]), **joined, verdict=replace(first, **ends))
