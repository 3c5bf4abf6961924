"""How fast the simulation is, on one core, and how its cost grows. Times are the best of a few runs."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from surefoot import Noise, Problem, Scenario, case, make, simulate

from .engine import python

LINEAR = make("safebai-linear")


def seconds(run: Callable[[], Any], repeats: int = 3) -> float:
    best = math.inf
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return best


def per_trial(problem: Problem, scenario: Scenario, trials: int) -> float:
    return seconds(lambda: simulate(problem, scenario, LINEAR, trials, progress=False)) / trials


def researchers_loop(
    theta: list[float], mu: list[float], sigma: float, gamma: float, a0: float, M: float, delta: float
) -> tuple[int, int]:
    """Algorithm 1 as one writes it to see it run: pull by pull, one trial. Returns the winner and the pulls."""
    d, l, pulls = len(theta), 1, 0
    safe, active = [a0] * d, list(range(d))
    while len(active) > 1:
        eps = 2.0**-l
        N = math.ceil(2 * sigma**2 * math.log(8 * d * l**2 / delta) / eps**2)
        lower, upper = {}, {}
        for i in active:
            a, y, z = safe[i], 0.0, 0.0
            for _ in range(N):
                y += a * theta[i] + random.gauss(0, sigma)
                z += a * mu[i] + random.gauss(0, sigma)
            pulls += N
            th, m, e = y / (a * N), z / (a * N), eps / a
            unsafe = M
            if a < M:
                safe[i] = min(max(gamma / (m + e), a0), M) if m + e > 0 else a0
                unsafe = min(gamma / (m - e), M) if m - e > 0 else M
            lower[i], upper[i] = safe[i] * (th - e), unsafe * (th + e)
        best = max(active, key=lambda i: lower[i])
        active = [i for i in active if i == best or upper[i] >= lower[best]]
        l += 1
    return active[0], pulls


def against_the_loop() -> None:
    problem, scenario = case("paper-linear", 10)
    theta, mu = ([curve.slope for curve in curves] for curves in (scenario.effect, scenario.harm))  # type: ignore[attr-defined]
    rates = []
    for trials in (20_000, 100_000):
        rates.append(1 / per_trial(problem, scenario, trials))
        print(f"safebai-linear, paper-linear, 10 arms, {trials:,} trials: {rates[-1]:,.0f} trials/s")
    random.seed(1)
    runs: list[tuple[int, int]] = []
    began = time.perf_counter()
    while time.perf_counter() - began < 3 or len(runs) < 20:
        runs.append(researchers_loop(theta, mu, problem.sigma, 1.0, 0.1, 1.5, problem.delta))
    loop = len(runs) / (time.perf_counter() - began)
    ours = simulate(problem, scenario, LINEAR, 20_000, progress=False).pulls.mean()
    theirs = statistics.mean(n for _, n in runs)
    print(f"per-pull Python loop: {loop:,.1f} trials/s (mean pulls {theirs:,.0f}, ours {ours:,.0f})")
    print(f"ratio: {max(rates) / loop:,.0f} times as fast")


def growth() -> None:
    problem, scenario = case("paper-linear", 10)
    times = {trials: per_trial(problem, scenario, trials) for trials in (2_048, 20_480, 204_800)}
    print("time a trial by number of trials:", _ratios(times))
    arms = {d: per_trial(*case("paper-linear", d), 20_480) / d for d in (5, 10, 20, 40, 80)}
    print("time a trial and arm by number of arms:", _ratios(arms))
    pulls = {}
    for scale in (1, 10, 100, 1000):
        noise = tuple(Noise(noise.kind, noise.scale * scale) for noise in problem.noises)
        louder = problem.but(noise=noise, budget=10**12)
        result = simulate(louder, scenario, LINEAR, 20_480, progress=False)
        # the louder the noise, the smaller the first epochs are beside it: the epochs stay, and so must the time
        pulls[f"{result.pulls.mean():,.0f} pulls"] = per_trial(louder, scenario, 20_480) / result.rounds.mean()
    print("time a decision by mean pulls of a trial:", _ratios(pulls))


def _ratios(times: dict[Any, float]) -> str:
    first = next(iter(times.values()))
    return ", ".join(
        f"{key:,} x{t / first:.2f}" if isinstance(key, int) else f"{key} x{t / first:.2f}" for key, t in times.items()
    )


def import_time() -> None:
    def child(code: str) -> float:
        return seconds(lambda: python(code), 7)

    nothing, numpy, whole = child("pass"), child("import numpy"), child("import surefoot")
    print(f"import surefoot: {whole - nothing:.3f} s, of which numpy {numpy - nothing:.3f} s")


def main() -> None:
    against_the_loop()
    growth()
    import_time()


if __name__ == "__main__":
    main()
