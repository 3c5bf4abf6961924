"""Small studies, and subjects whose readings depend on nothing but a seed and their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot import Arm, Noise, Problem, Scenario
from surefoot.scenario import Linear, Table
from surefoot.study import Assignment, Study


def problem(shape: str = "linear", sigma: float = 0.2, binary: bool = False, **changes: Any) -> Problem:
    noise = Noise("bernoulli") if binary else Noise("gaussian", sigma)
    if shape == "linear":
        arms = tuple(Arm(name, 0.2, 1.0) for name in ("A", "B", "C"))
        limit = 0.5 if binary else 1.0
        return Problem(arms, limit, "linear", noise, **{"delta": 0.1, **changes})
    if shape == "levels":
        arms = tuple(Arm(name, levels=("low", "middle", "high", "top")) for name in ("A", "B", "C"))
        return Problem(arms, 0.4, "levels", noise, **{"slack": 0.1, "delta": 0.1, **changes})
    arms = tuple(Arm(name, 0.0, 1.0, 1.0) for name in ("A", "B"))
    return Problem(arms, 0.4, "monotonic", noise, **{"slack": 0.3, "delta": 0.1, **changes})


def scenario(of: Problem) -> Scenario:
    """A truth that keeps to the assumptions; A is the best arm."""
    d = len(of.arms)
    if of.shape == "levels":
        rise = [(0.2, 0.4, 0.7, 0.8), (0.2, 0.3, 0.4, 0.5), (0.1, 0.2, 0.3, 0.4)]
        harm = (0.05, 0.15, 0.25, 0.7)
        return Scenario(tuple(Table((0, 1, 2, 3), x) for x in rise), (Table((0, 1, 2, 3), harm),) * 3)
    if of.shape == "linear":
        return Scenario(tuple(Linear(s) for s in (1.0, 0.5, 0.3)[:d]), tuple(Linear(s) for s in (0.7, 0.6, 0.5)[:d]))
    return Scenario(tuple(Linear(s, 0.1) for s in (0.8, 0.2)), tuple(Linear(0.6, 0.05) for _ in range(d)))


@dataclass(frozen=True)
class Subjects:
    """Readings of `n` subjects by their numbers, whoever asks and in whatever order."""

    of: Problem
    truth: Scenario
    seed: int = 0

    def read(self, a: Assignment) -> dict[str, float]:
        rng = np.random.default_rng([self.seed, a.subject])
        arm = self.of.names.index(a.arm)
        dose = self.of.starts.copy()
        dose[arm] = self.of.arms[arm].place(a.dose)
        means = float(self.truth.effects(dose)[arm]), float(self.truth.harms(dose)[arm])
        out = []
        for mean, noise in zip(means, self.of.noises, strict=True):
            if noise.kind == "bernoulli":
                out.append(float(rng.random() < mean))
            else:
                out.append(mean + noise.scale * float(rng.standard_normal()))
        return {"effect": out[0], "harm": out[1]}

    def rows(self, assignments: Sequence[Assignment]) -> list[dict[str, Any]]:
        return [{"id": a.id, **self.read(a)} for a in assignments]


def subjects(of: Problem, seed: int = 0) -> Subjects:
    return Subjects(of, scenario(of), seed)


def finish(study: Study, people: Subjects, most: int = 10**6) -> Iterator[int]:
    """Tell cohort after cohort until the study gives out no more; yields how many were told."""
    while study.view.standing == "running" and (open_ := study.ask()) and most > 0:
        study.tell_many(people.rows(open_[:most]))
        most -= len(open_)
        yield len(open_)


def run(study: Study, people: Subjects) -> Study:
    for _ in finish(study, people):
        pass
    return study
