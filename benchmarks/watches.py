"""How soon broken assumptions are noticed: python -m benchmarks.watches [studies [part of a name]]

Whole studies of the live designs with simulated subjects, without a journal. For each broken assumption: how often a
watch fired, after how many subjects, and how many had been given a dose over the limit by then; for studies that no
watch stopped, to their end. And the false alarms of valid studies, which may be 1 in 100.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from surefoot import Arm, Noise, Problem, Scenario, make
from surefoot.designs.base import RUNNING, STOPPED, Outcome
from surefoot.scenario import Linear
from surefoot.scenario import Table as Points
from surefoot.study.checker import Given, Record
from surefoot.study.published import default
from surefoot.study.watch import Watches

MOST = 1500  # subjects of a study


def line_problem(binary: bool = False) -> Problem:
    noise = Noise("bernoulli") if binary else Noise("gaussian", 0.3)
    return Problem(tuple(Arm(x, 0.2, 2.0) for x in "ABC"), 0.5 if binary else 1.0, "linear", noise, delta=0.1)


def curve_problem() -> Problem:
    arms = tuple(Arm(x, 0.0, 2.0, 1.0) for x in "ABC")
    return Problem(arms, 0.4, "monotonic", Noise("gaussian", 0.2), slack=0.2, delta=0.1)


def level_problem() -> Problem:
    arms = tuple(Arm(x, levels=("low", "middle", "high", "top")) for x in "ABC")
    return Problem(arms, 0.3, "levels", Noise("bernoulli"), slack=0.1, delta=0.1)


GOOD = (Linear(0.9), Linear(0.7), Linear(0.6))
SAFE = (Linear(0.7), Linear(0.8), Linear(0.6))
RISES = (Linear(0.5, 0.2), Linear(0.3, 0.2), Linear(0.25, 0.2))
CALM = (Linear(0.5, 0.05), Linear(0.4, 0.05), Linear(0.6, 0.05))


def of(curve: Any) -> tuple[Any, ...]:
    return (curve,) * 3


def cases() -> dict[str, tuple[Problem, Scenario]]:
    line, yes_no, curve, steps = line_problem(), line_problem(True), curve_problem(), level_problem()
    better, calm = (Linear(0.1, 0.5), Linear(0.1, 0.3), Linear(0.1, 0.2)), of(Linear(0.08, 0.1))
    low = (Linear(0.4), Linear(0.3), Linear(0.25))
    jump, wall = (
        Points((0.0, 0.6, 0.61, 2.0), (0.0, 0.3, 1.1, 1.4)),
        Points((0.0, 0.3, 0.32, 2.0), (0.1, 0.2, 0.8, 0.9)),
    )
    return {
        "valid: lines": (line, Scenario(GOOD, SAFE)),
        "valid: lines, binary": (yes_no, Scenario(low, low)),
        "valid: curves": (curve, Scenario(RISES, CALM)),
        "valid: levels": (steps, Scenario(better, calm)),
        "valid: levels, the first at the limit": (steps, Scenario(better, of(Linear(0.1, 0.3)))),
        "first levels at 1.2 times the limit": (steps, Scenario(better, of(Linear(0.1, 0.36)))),
        "first levels at 1.5 times the limit": (steps, Scenario(better, of(Linear(0.1, 0.45)))),
        "first levels at twice the limit": (steps, Scenario(better, of(Linear(0.1, 0.6)))),
        "first level of one arm at twice the limit": (steps, Scenario(better, (Linear(0.1, 0.6), *calm[1:]))),
        "start doses at 1.2 times the limit": (line, Scenario(GOOD, of(Linear(6.0)))),
        "start doses at 1.5 times the limit": (line, Scenario(GOOD, of(Linear(7.5)))),
        "start doses at 1.2 times the limit, binary": (yes_no, Scenario(low, of(Linear(0.0, 0.6)))),
        "start doses at 1.5 times the limit, curves": (curve, Scenario(RISES, of(Linear(0.1, 0.6)))),
        "harm 0.7 a^2": (line, Scenario(GOOD, of(lambda a: 0.7 * a**2))),
        "harm 2 a^3": (line, Scenario(GOOD, of(lambda a: 2 * a**3))),
        "harm jumps by 0.8": (line, Scenario(GOOD, of(jump))),
        "harm jumps, curves": (curve, Scenario(RISES, of(wall))),
        "effect falls again": (curve, Scenario(of(lambda a: 0.8 - 0.5 * np.abs(a - 0.3)), CALM)),
        "effect flattens, lines": (line, Scenario(of(lambda a: np.minimum(a, 0.4)), SAFE)),
        "sigma twice as large": (line, Scenario(GOOD, SAFE, noise=(Noise("gaussian", 0.6),) * 2)),
        "harm drifts by 0.5 in 1,000": (line, Scenario(GOOD, SAFE, drift=0.5)),
    }


def play(p: Problem, truth: Scenario, seed: int) -> tuple[str, int, int, bool]:
    """The watch that fired first, subjects and those over the limit until then, and whether an arm was named."""
    design, rng = make(default(p.shape)), np.random.default_rng(seed)
    state, record, watches = design.start(p), Record(), Watches(p, 0.01)
    record.setup, record.squares = {"plausible": None}, False
    over = 0
    noises = truth.noises(p)
    while state.ending[0] == RUNNING and len(record.harm) < MOST:
        cohort = design.ask(state)
        data = {"dose": cohort.dose[0].tolist(), "n": cohort.n[0].tolist()}
        given = Given(len(record.cohorts) + 1, len(record.harm), data, seed)
        record.cohorts.append(given)
        record.add_subjects(given.size)
        means = truth.effects(cohort.dose)[0], truth.harms(cohort.dose)[0]
        over += int(sum(n for n, harm in zip(given.n, means[1], strict=True) if harm > p.limit * (1 + 1e-9)))
        for subject, arm in given.subjects():
            drift = truth.drift * subject / 1000
            for values, mean, noise, more in zip(
                (record.effect, record.harm), means, noises, (0.0, drift), strict=True
            ):
                m = float(mean[arm]) + more
                draw = float(rng.random() < m) if noise.binary else m + noise.scale * rng.standard_normal()
                values[subject] = draw
        given.closed, given.came = True, record.sums(given)
        watches.update(record)
        for alarm in watches.alarms():
            return alarm.watch, len(record.harm) - 1, over, False
        n = cohort.n
        sums = [[math.fsum(c[k] for (i, _), c in given.came.items() if i == arm) for arm in range(3)] for k in (1, 2)]
        state = design.tell(state, cohort, Outcome(n, np.array([sums[0]]), np.array([sums[1]])))
    named = int(state.winner[0]) >= 0 and not (state.standing == STOPPED).any()  # as a study has it
    doubt = next(watches.doubts(), None) if named else None
    return "start, at the end" if doubt else "", len(record.harm) - 1, over, named and not doubt


def main(studies: int = 40, part: str = "") -> None:
    head = ("assumption", "noticed", "by", "subjects until then", "over the limit until then", "an arm named")
    table = Table(*head, title=f"Watches at a joint level of 0.01, {studies} studies each", title_justify="left")
    for name, (p, truth) in cases().items():
        if part not in name:
            continue
        with np.errstate(over="ignore"):
            found = [play(p, truth, seed) for seed in range(studies)]
        fired = [f for f in found if f[0]]
        by = ", ".join(f"{watch} {n}" for watch, n in Counter(f[0] for f in fired).most_common())
        mean = [f"{np.mean([f[k] for f in found]):,.0f}" for k in (1, 2)]
        table.add_row(name, f"{len(fired) / studies:.0%}", by, *mean, f"{np.mean([f[3] for f in found]):.0%}")
    Console(width=150).print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40, *sys.argv[2:3])
