"""What readings cost, and whether the promise holds for them.

`python -m benchmarks.readings [part ...] [--trials N] [--seed S] [--only WORD]`, the word a part of the row's name:

sigma      pulls with a sigma that is known, declared twice too large, or not known; two arms at one level
failures   how often the promise fails where sigmas differ between arms and readings and nobody knows them
ends       whether random monotonic problems end where nobody knows sigma
bounded    readings between 0 and 1 that vary little: by their sigma, by bets on binary ones, by how they vary
low        binary effects at low rates, with each design
late       effects that take three cohorts to come: calendar time and pulls with a pipeline of 1, 2 and 3
blocks     how long tell and ask take in a study of many blocks (trials: how many)
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from surefoot import Arm, Noise, Problem, Scenario, make, simulate
from surefoot.catalogue import case
from surefoot.characteristics import upper_bound
from surefoot.designs.base import RUNNING, Outcome
from surefoot.noise import Bernoulli, Beta, Bounded, Gaussian, Guessed, PerArm
from surefoot.scenario import Linear, Table
from surefoot.study import Study


def said(*cells: Any) -> None:
    print("| " + " | ".join(str(x) for x in cells) + " |", flush=True)


def one_level(effects: tuple[float, ...], noise: Any, delta: float = 0.1) -> tuple[Problem, Scenario]:
    arms = tuple(Arm(f"arm {k}", levels=("only",)) for k in range(len(effects)))
    problem = Problem(arms=arms, limit=0.5, slack=0.1, delta=delta, shape="levels", noise=noise)
    return problem, Scenario(tuple(Table((0.0,), (x,)) for x in effects), (Table((0.0,), (0.1,)),) * len(effects))


def far_apart() -> tuple[Problem, Scenario]:
    """Yields and impurities by temperature, of four catalysts: levels differ by many sigmas."""
    at = np.arange(40.0, 121.0, 10.0)
    curves = (85, 75, 12, 0.5, 0.05), (70, 80, 14, 0.4, 0.045), (60, 70, 10, 0.8, 0.04), (90, 95, 15, 1.0, 0.05)
    effect = tuple(a / (1 + np.exp((m - at) / s)) for a, m, s, *_ in curves)
    harm = tuple(b * np.exp(k * (at - 40)) for *_, b, k in curves)
    arms = tuple(Arm(name, levels=tuple(at)) for name in ("Pd", "Ni", "Cu", "Fe"))
    problem = Problem(arms, 5.0, "levels", (Gaussian(3.0), Gaussian(0.6)), 2.0, 0.1)
    curve = [tuple(Table(tuple(map(float, range(9))), tuple(x)) for x in both) for both in (effect, harm)]
    return problem, Scenario(curve[0], curve[1])


def mean_of(x: Any) -> str:
    return f"{np.mean(x):,.0f} ± {np.std(x) / np.sqrt(len(x)):,.0f}"


def failed(result: Any) -> str:
    """The share of trials, and in brackets its upper bound at 99%."""
    wrong = result.wrong | (result.unsafe_pulls > 0)
    return f"{wrong.mean():.3f} ({upper_bound(int(wrong.sum()), len(wrong)):.3f})"


def sigma(trials: int = 200, seed: int = 4, only: str = "") -> None:
    said("problem", "known", "twice too large", "not known, guess right", "guess three times too large", "a third")
    said(*["---"] * 6)
    problems: list[Any] = [
        (
            f"two arms, one level, gap {gap:g} sigma",
            *one_level((gap, 0.0), (Gaussian(1.0), Bernoulli())),
            "surefoot-levels",
        )
        for gap in (1.0, 0.3, 0.1)
    ]
    problems += [
        ("paper-linear, 5 arms", *case("paper-linear", 5), "surefoot-linear"),
        ("paper-drug, 3 arms", *case("paper-drug", 3), "surefoot-monotonic"),
        ("four arms, nine levels, far apart", *far_apart(), "surefoot-levels"),
    ]
    for name, problem, scenario, design in (x for x in problems if only in x[0]):
        row = []
        for kind, times in ((Gaussian, 1), (Gaussian, 2), (Guessed, 1), (Guessed, 3), (Guessed, 1 / 3)):
            noise = tuple(x if x.binary else kind(times * x.scale) for x in problem.noises)
            result = simulate(
                problem.but(noise=noise), replace(scenario, noise=problem.noises), make(design), trials, seed
            )
            row.append(result.pulls)
        said(name, mean_of(row[0]), *(f"{np.mean(x) / np.mean(row[0]):.2f}" for x in row[1:]))


def failures(trials: int = 300, seed: int = 9, only: str = "") -> None:
    said("design", "sigmas", "delta 0.1", "0.5", "0.9", "no end in 200,000")
    said(*["---"] * 6)
    rises = ((0.3, 0.5, 0.6), (0.3, 0.45, 0.55), (0.2, 0.4, 0.5), (0.1, 0.28, 0.5))
    curves = [Table((0, 1, 2), x) for x in rises]
    arms = tuple(Arm(f"arm {k}", levels=(1, 2, 3)) for k in range(3))
    levels = Problem(arms=arms, limit=0.3, slack=0.05, delta=0.1, shape="levels", noise=Gaussian(0.3))
    cases = {
        "surefoot-linear": case("paper-linear", 3),
        "surefoot-monotonic": case("paper-drug", 3),
        "surefoot-levels": (levels, Scenario(tuple(curves[:3]), (curves[3],) * 3)),
    }
    for name, (problem, scenario) in cases.items():
        s = 0.5 * problem.sigma
        kinds = {
            "one arm's five times larger": (PerArm((Gaussian(s), Gaussian(5 * s), Gaussian(s))), Gaussian(s)),
            "the effect's five times larger": (Gaussian(5 * s), Gaussian(s)),
            "the harm's five times larger": (Gaussian(s), Gaussian(5 * s)),
        }
        for words, noise in kinds.items() if only in name else ():
            row, spent = [], 0
            for delta in (0.1, 0.5, 0.9):
                asked = problem.but(noise=Guessed(s / 3), delta=delta, budget=200_000)
                result = simulate(asked, replace(scenario, noise=noise), make(name), trials, seed)
                row.append(failed(result))
                spent += int(np.sum(result.winner < 0))
            said(name, words, *row, spent)


def ends(trials: int = 64, seed: int = 1, only: str = "") -> None:
    said("random-monotonic", "median pulls", "most, in medians", "no end in 10^9", "failed")
    said(*["---"] * 5)
    for instance in range(10):
        problem, scenario = case("random-monotonic", instance=instance)
        truth = replace(scenario, noise=problem.noises)
        asked = problem.but(noise=tuple(x if x.binary else Guessed(x.scale) for x in problem.noises))
        found = simulate(asked, truth, make("surefoot-monotonic"), trials, seed)
        middle = np.median(found.pulls)
        most, lost = f"{found.pulls.max() / middle:.1f}", int(np.sum(found.winner < 0))
        said(instance, f"{middle:,.0f}", most, lost, failed(found))


def bounded(trials: int = 300, seed: int = 3, only: str = "") -> None:
    said("Beta, mean 0.2, sd 0.12 against 0.1, 0.065; surefoot-levels", "pulls, delta 0.1", "failed at delta 0.5")
    said(*["---"] * 3)
    truth = (PerArm((Beta(0, 1, sd=0.12), Beta(0, 1, sd=0.065))), Bernoulli())
    for words, noise in KINDS_OF_BOUNDED.items():
        row = []
        for delta in (0.1, 0.5):
            problem, scenario = one_level((0.2, 0.1), (noise, Bernoulli()), delta)
            row.append(simulate(problem, replace(scenario, noise=truth), make("surefoot-levels"), trials, seed))
        said(words, mean_of(row[0].pulls), failed(row[1]))


KINDS_OF_BOUNDED: dict[str, Noise] = {
    "sigma 1/2": Gaussian(0.5),
    "bets on binary readings": Bounded(0, 1),
    "bets that learn the spread": Bounded(0, 1, True),
}


def low(trials: int = 100, seed: int = 2, only: str = "") -> None:
    said("binary effects of 5, 4, 3.5, 3%", "pulls, delta 0.1", "times the best", "failed")
    said(*["---"] * 4)
    rates = (0.05, 0.04, 0.035, 0.03)
    arms = tuple(Arm(f"arm {k}", start=1.0, max=1.0, lipschitz=1.0) for k in range(4))
    lines = Scenario(tuple(Linear(x) for x in rates), (Linear(0.1),) * 4)
    straight = Problem(arms=arms, limit=0.5, delta=0.1, shape="linear", noise=Bernoulli())
    problems = (straight, lines), (straight.but(shape="monotonic", slack=0.1), lines), one_level(rates, Bernoulli())
    found = {p.shape: simulate(p, truth, make(f"surefoot-{p.shape}"), trials, seed) for p, truth in problems}
    least = min(np.mean(x.pulls) for x in found.values())
    for shape, x in found.items():
        said(f"surefoot-{shape}", mean_of(x.pulls), f"{np.mean(x.pulls) / least:.2f}", failed(x))


def late(trials: int = 2000, seed: int = 5, only: str = "", delay: int = 3) -> None:
    said("design", "delta", "pipeline", "pulls", "calendar, in cohorts", "failed")
    said(*["---"] * 6)
    for name, instance in (("surefoot-linear", "paper-linear"), ("surefoot-monotonic", "paper-drug")):
        for delta in (0.1, 0.9) if only in name else ():
            for pipeline in (1, 2, 3):
                problem, scenario = case(instance, 3)
                asked = problem.but(delta=delta, slack=problem.slack and 0.5)
                pulls, steps, wrong = waiting(asked, scenario, make(name), trials, delay, pipeline, seed)
                said(name, delta, pipeline, mean_of(pulls), mean_of(steps), f"{np.mean(wrong):.4f}")


def waiting(
    problem: Problem, scenario: Scenario, design: Any, trials: int, delay: int, pipeline: int, seed: int
) -> tuple[Any, ...]:
    """Trials in which effects come `delay` steps after their harms; a step takes a cohort of every trial that may have
    one. What is decided next is decided with the harms that are known and the mean effects so far; what is proved
    counts cohorts in their order."""
    truth, rng = scenario.truth(problem), np.random.default_rng(seed)
    best = truth.value >= np.nanmax(truth.value) - 1e-12
    state = design.start(problem, trials)
    n_all, y_all = np.zeros((2, trials, len(problem.arms)))
    unsafe, steps = np.zeros(trials, bool), np.zeros(trials, int)
    waits: list[tuple[int, Any, Outcome]] = []
    for step in range(100_000):
        while waits and waits[0][0] <= step:
            _, cohort, outcome = waits.pop(0)
            state = design.tell(state, cohort, outcome)
            n_all, y_all = n_all + outcome.n, y_all + outcome.effect
        running = np.asarray(state.ending == RUNNING)
        if not running.any():
            break
        steps[running] = step
        if len(waits) >= pipeline:
            continue
        ahead = state
        for _, cohort, outcome in waits:
            expected = outcome.n * y_all / np.maximum(n_all, 1)
            ahead = design.tell(ahead, cohort, replace(outcome, effect=expected))
        cohort = design.ask(ahead)
        cohort = replace(cohort, n=np.where(running[:, None], cohort.n, 0))
        effect, harm, g = scenario.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
        unsafe |= np.any((cohort.n > 0) & scenario.unsafe(problem, cohort.dose, g), axis=1)
        waits.append((step + delay, cohort, Outcome(cohort.n, effect, harm)))
    wrong = (state.winner >= 0) & ~best[np.maximum(state.winner, 0)]
    return state.pulls, steps, wrong | unsafe


def blocks(trials: int = 10_000, seed: int = 1, only: str = "", size: int = 10_000) -> None:
    problem, scenario = one_level((0.0501, 0.05, 0.0499), (Guessed(0.3), Bernoulli()), 0.05)
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        study = Study.create(Path(folder) / "blocks.db", "blocks", problem, seed=1, blocks=True, watch="warn")
        told, asked = list[Any](), list[Any]()
        while len(told) < trials and (todo := timed(asked, study.ask)):
            for a in todo:
                y = float(scenario.effect[problem.names.index(a.arm)](np.array(0.0)))
                effect = size * y + 0.3 * size**0.5 * rng.standard_normal()
                harm = float(rng.binomial(size, 0.1))
                timed(told, study.tell, a.id, n=size, effect=effect, effect_sd=0.3, harm=harm, confirm="a day")
        cold = list[Any]()
        timed(cold, lambda: Study.open(Path(folder) / "blocks.db").ask())
        said("blocks", "", "tell, first tenth", "tell, last tenth", "slowest", "ask, last tenth", "slowest", "cold ask")
        said(*["---"] * 8)
        k = max(len(told) // 10, 1)
        rows = (np.array(x).T for x in (told, asked, cold))
        for words, t, q, c in zip(("on the clock", "of the processor"), *rows, strict=True):
            times = (np.median(t[:k]), np.median(t[-k:]), t.max(), np.median(q[-k:]), q.max(), c[0])
            said(f"{len(told):,} of {size:,}", words, *(f"{1000 * x:.1f} ms" for x in times))


def timed(into: list[Any], call: Any, *args: Any, **more: Any) -> Any:
    wall, work = time.perf_counter(), time.process_time()
    found = call(*args, **more)
    into.append((time.perf_counter() - wall, time.process_time() - work))
    return found


PARTS = {f.__name__: f for f in (sigma, failures, ends, bounded, low, late, blocks)}


def command() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readings")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="part", help=", ".join(PARTS))
    for key, kind in (("trials", int), ("seed", int), ("only", str)):
        parser.add_argument(f"--{key}", type=kind)
    given = vars(parser.parse_args())
    for part in given.pop("parts") or PARTS:
        begin = time.perf_counter()
        PARTS[part](**{key: x for key, x in given.items() if x is not None})
        print(f"\n{part}: {time.perf_counter() - begin:.0f} s\n", flush=True)


if __name__ == "__main__":
    command()
