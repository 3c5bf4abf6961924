"""Attacks on the promise: hill-climbing over scenario and policy, at a delta at which a broken proof would show.

python -m benchmarks.attacks [linear monotonic levels] [--climbs 4] [--steps 40] [--trials 200] [--seed 1]

A climb begins at random and keeps a change if no fewer trials fail, by unsafe pulls or by the wrong arm. What a climb
has found is counted anew, with other seeds, so that luck in the climb does not count. The policy knows the truth, which
none does: it may ride the edge of what is safe, pull one arm alone, say that anybody leads, and stake anything.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surefoot import Arm, Noise, Problem, Scenario, make, simulate
from surefoot.characteristics import upper_bound
from surefoot.designs.base import Cohort
from surefoot.designs.compose import Policy
from surefoot.scenario import Linear, Table
from surefoot.simulate import Result

Genes = Any  # numbers from 0 to 1
DELTA = 0.9
ARMS = 3
SHAPES = ("linear", "monotonic", "levels")
EVIDENCE: dict[str, Any] = {shape: make(f"surefoot-{shape}").evidence for shape in SHAPES}  # type: ignore[attr-defined]
POLICY = 11  # genes of the policy; the others are the scenario's


@dataclass(frozen=True)
class Attacker(Policy[Any]):
    """Our policy, spoiled: each gene takes it further from what it would do."""

    inner: Policy[Any]
    genes: tuple[float, ...]
    edges: tuple[float, ...]  # the largest safe doses

    draws: ClassVar[int] = 3 * ARMS + ARMS * 8

    def begin(self, state: Any) -> Any:
        return self.inner.begin(state)

    def remember(self, state: Any, cohort: Cohort, outcome: Any) -> Any:
        return self.inner.remember(state, cohort, outcome)

    def choose(self, state: Any, u: Any) -> Cohort:
        whim, size, only, edge, hair, low, *_ = self.genes
        ours, arms = self.inner.choose(state, u[:, :0]), np.arange(ARMS)
        some = 1 + np.floor(30 * size**3 * u[:, :ARMS]).astype(np.int64)
        n = np.where(u[:, ARMS : 2 * ARMS] < whim, some * (u[:, 2 * ARMS : 3 * ARMS] < 0.5), ours.n)
        n = np.where(arms == int(only * 1.99 * ARMS), some, np.where(only < 0.5, 0, 1) * n)
        near = np.asarray(self.edges) * (1 + 0.1 * (hair - 0.5)) + 0.0 * ours.dose
        ride = u[:, ARMS : 2 * ARMS] < edge
        dose = np.where(ride, near, ours.dose) * (1 - 0.5 * (u[:, :ARMS] < 0.5 * low) * low)
        if state.problem.shape == "levels":
            dose = np.floor(dose)
        return Cohort(dose, n, self.spoiled(state, Cohort(dose, n), u[:, 3 * ARMS :]))

    def spoiled(self, state: Any, cohort: Cohort, u: Any) -> Any:
        """Our stakes, times anything, and stakes where there are none."""
        scale, noise, claim, drop, flat = self.genes[6:11]
        p, top = state.problem, EVIDENCE[state.problem.shape].certified(state)
        stakes = self.inner.stakes(state, Cohort(np.clip(cohort.dose, p.starts, top), cohort.n))
        x = u[:, : ARMS * stakes.shape[2]].reshape(stakes.shape)
        fill = np.array(fallback(state.problem, stakes.shape[2]))
        stakes = np.where(np.isnan(stakes) & (x < claim), fill, np.where(flat > 0.7, fill, stakes))
        spoil = 10.0 ** (2 * (scale - 0.5) + 4 * noise**2 * (x - 0.5))
        guess = 1 + 0.5 * (scale - 0.5) + noise * (x - 0.5)  # of a harm, which is no size
        stakes = stakes * np.where(np.array(guesses(state.problem, stakes.shape[2])), guess, spoil)
        return np.where(x > 1 - 0.7 * drop, np.nan, stakes)

    def stakes(self, state: Any, cohort: Cohort) -> Any:
        raise AssertionError("its cohorts have stakes")


def fallback(p: Problem, many: int) -> list[float]:
    """Stakes for readings that ours stake nothing on."""
    if p.shape == "monotonic":
        return [p.limit, 0.1, p.limit * 1.2, 0.3, 0.3]
    return [0.3 if p.shape == "linear" else 1.0] * many


def guesses(p: Problem, many: int) -> list[bool]:
    return [i in (0, 2) and p.shape == "monotonic" for i in range(many)]


def log(x: float, low: float, high: float) -> float:
    return float(low * (high / low) ** x)


def lines(g: Genes) -> tuple[Problem, Scenario]:
    """Values next to each other; largest doses below and above where harm is at the limit; any noise."""
    binary, cross, far = g[0] > 0.8, [log(x, 0.3, 3.0) for x in g[1:4]], [0.5 + 1.5 * x for x in g[4:7]]
    limit, size = (0.3, 0.3) if binary else (1.0, log(g[9], 0.2, 5.0))
    dose = [c * min(1.0, f) for c, f in zip(cross, far, strict=True)]
    value = [size, *(size * (1 - 0.3 * x**2) for x in g[7:9])]
    arms = tuple(Arm(f"arm {i}", dose[i] * log(g[10 + i], 0.05, 1.0), cross[i] * far[i]) for i in range(ARMS))
    noise = Noise("bernoulli") if binary else Noise("gaussian", log(g[13], 0.1, 1.0))
    problem = Problem(
        arms, limit, "linear", noise, delta=DELTA, signals="independent" if g[14] > 0.5 else "any", budget=600,
        tolerance=0.1 * size * g[15] if g[15] > 0.7 else None,
    )  # fmt: skip
    effect, harm = (
        tuple(Linear(x / a) for x, a in zip(*it, strict=True)) for it in ((value, dose), ([limit] * 3, cross))
    )
    return problem, Scenario(effect, harm, correlation=0.0 if g[14] > 0.5 or binary else 4 * g[14] - 1)


def curves(g: Genes) -> tuple[Problem, Scenario]:
    """Harm reaches the limit somewhere between 0 and 1 and rises on; effects that jump behind it, or do not."""
    limit, slack, binary = 0.3, log(g[0], 0.05, 0.4), g[1] > 0.7
    at = [0.15 + 0.8 * x for x in g[2:5]]
    value = [0.5, *(0.5 - 0.1 * x for x in g[5:7])]
    first = [limit * min(x, 0.98) for x in g[7:10]]
    effect, harm, arms = [], [], []
    for i, (a, v, h) in enumerate(zip(at, value, first, strict=True)):
        top = limit + (1 - a) * log(g[10], 0.1, 0.6)
        steepest = max((limit - h) / a, (top - limit) / (1 - a))
        effect.append(Table((0.0, a, min(a + 0.01, 0.999), 1.0), (v * g[11], v, v + 0.4 * g[12], v + 0.4 * g[12])))
        harm.append(Table((0.0, a, 1.0), (h, limit, top)))
        arms.append(Arm(f"arm {i}", 0.0, 1.0, steepest * (1 + g[13])))
    noise = Noise("bernoulli") if binary else Noise("gaussian", log(g[14], 0.05, 0.5))
    problem = Problem(
        tuple(arms), limit, "monotonic", noise, slack=slack, delta=DELTA, budget=1500,
        tolerance=0.05 * g[15] if g[15] > 0.7 else None,
    )  # fmt: skip
    return problem, Scenario(tuple(effect), tuple(harm))


def steps(g: Genes) -> tuple[Problem, Scenario]:
    """Four levels: one that is the largest safe one, cliffs behind it, values next to each other."""
    limit, slack, binary = 0.3, 0.3 * g[0], g[1] > 0.4
    effect, harm = [], []
    for i in range(ARMS):
        b, v = int(3.99 * g[2 + i]), 0.5 - (0.1 * g[4 + i] if i else 0.0)
        below = [limit * (1 - g[7] * (b - l) / 4) * (0.9 + 0.1 * g[8]) for l in range(b + 1)]
        harm.append(below + [limit + 1e-3 + (limit + slack) * (0.02 + g[9]) * (l - b) / 4 for l in range(b + 1, 4)])
        effect.append([v * (1 - g[10] * (b - l) / 4) for l in range(b + 1)] + [v + 0.4 * g[11]] * (3 - b))
    arms = tuple(Arm(f"arm {i}", levels=(1, 2, 3, 4)) for i in range(ARMS))
    noise = Noise("bernoulli") if binary else Noise("gaussian", log(g[12], 0.05, 0.6))
    problem = Problem(
        arms, limit, "levels", noise, slack=slack, delta=DELTA, budget=400, tolerance=0.05 if g[13] > 0.7 else None
    )
    at = (0.0, 1.0, 2.0, 3.0)
    return problem, Scenario(tuple(Table(at, tuple(x)) for x in effect), tuple(Table(at, tuple(x)) for x in harm))


MAKE: dict[str, Callable[[Genes], tuple[Problem, Scenario]]] = {"linear": lines, "monotonic": curves, "levels": steps}


def play(shape: str, genes: Genes, trials: int, seed: int) -> Result:
    problem, scenario = MAKE[shape](genes[POLICY:])
    design: Any = make(f"surefoot-{shape}")
    attacker = Attacker(design.policy, tuple(map(float, genes[:POLICY])), tuple(scenario.truth(problem).dose))
    return simulate(problem, scenario, type(design)(attacker), trials, seed, progress=False)


def failed(result: Result) -> tuple[int, int, int]:
    """Trials that failed, with unsafe pulls, with the wrong arm."""
    return int((result.unsafe | result.wrong).sum()), int(result.unsafe.sum()), int(result.wrong.sum())


def climb(shape: str, seed: int, steps: int, trials: int) -> tuple[Genes, tuple[int, int, int]]:
    """The worst genes that were found, and how often they failed when counted anew."""
    rng = np.random.default_rng([seed, SHAPES.index(shape)])
    best = max((rng.random(POLICY + 16) for _ in range(4)), key=lambda g: failed(play(shape, g, trials, seed))[0])
    most = failed(play(shape, best, trials, seed))[0]
    for step in range(steps):
        moved = rng.random(len(best)) < 0.3
        genes = np.clip(best + moved * rng.normal(0, 0.25, len(best)), 0.0, 1.0)
        now = failed(play(shape, genes, trials, seed + 1 + step))[0]
        if now >= most:
            best, most = genes, now
    return best, failed(play(shape, best, 4 * trials, seed + 10_000))


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=SHAPES, metavar="SHAPE", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--climbs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--trials", type=int, default=200, help="of each step; four times as many count in the end")
    parser.add_argument("--seed", type=int, default=1, help="of the first climb; the others follow")
    asked = parser.parse_args(arguments)
    print(f"| design, delta {DELTA} | seed | failed | unsafe | wrong | failed, 99% bound |\n|---|---|---|---|---|---|")
    for shape in asked.shapes:
        for seed in range(asked.seed, asked.seed + asked.climbs):
            genes, found = climb(shape, seed, asked.steps, asked.trials)
            many = 4 * asked.trials
            shares = " | ".join(f"{x / many:.3f}" for x in found)
            bound = upper_bound(found[0], many)
            print(
                f"| surefoot-{shape} | {seed} | {shares} | {bound:.3f}{'' if bound < DELTA else ' **broken**'} |",
                flush=True,
            )
            if bound >= DELTA:
                print([round(float(x), 4) for x in genes], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
