"""python -m benchmarks.engine [memory] [workers] [dask] [before PATH] [left]: the engine, in ratios of one run.

    memory        peak memory at 10^5, 10^6, 10^7 trials of safebai-linear
    workers       two local processes beside one
    dask          a Dask cluster of two workers beside two local processes
    before PATH   rates beside those of an earlier version, whose sources are under PATH, each in a process of its own
    left          how right the time left is, from 10% of a run on

Times are the best of three. Run it on a quiet machine: ratios with others at work say little.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from surefoot import case, make, simulate
from surefoot.progress import Bar, seconds_left

ROOT = Path(__file__).parent.parent
RATE = """
import sys, time
from surefoot import case, make, simulate
scenario, name, trials, *options = sys.argv[1:]
problem, truth = case(scenario, 10)
design, trials = make(name, **dict(it.split("=") for it in options)), int(trials)
simulate(problem, truth, design, 16, progress=False)
began = time.process_time()
result = simulate(problem, truth, design, trials, 1, progress=False)
print(trials / (time.process_time() - began), result.pulls.mean())
"""
PEAK = """
import resource, sys
from surefoot import case, make, simulate
r = simulate(*case("paper-linear", 10), make("safebai-linear"), int(sys.argv[1]), keep=False, progress=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, r.seconds)
"""
AGAINST = (  # the last ones decide so seldom that they take about as many pulls as 0.1.0
    ("safebai-linear", "paper-linear", 100_000),
    ("surefoot-linear", "paper-linear", 16_384),
    ("surefoot-monotonic", "paper-drug", 4_096),
    ("surefoot-linear", "paper-linear", 16_384, "growth=0.03"),
    ("surefoot-monotonic", "paper-drug", 4_096, "growth=0.12"),
)


def python(code: str, *arguments: str, path: str = "") -> list[float]:
    env = {**os.environ, "OMP_NUM_THREADS": "1"} | ({"PYTHONPATH": path} if path else {})
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=env)
    return [float(x) for x in done.stdout.split()]


def memory(most: int = 10**7) -> None:
    for trials in (10**5, 10**6, 10**7):
        if trials <= most:
            peak, seconds = python(PEAK, str(trials))
            print(f"{trials:>12,} trials: peak {peak:,.0f} MiB, {trials / seconds:,.0f} trials/s", flush=True)


def before(path: str) -> None:
    """CPU seconds, so that others on the machine matter less."""
    for design, scenario, trials, *options in AGAINST:
        told = (scenario, design, str(trials))
        rates = [(python(RATE, *told, path=path), python(RATE, *told, *options)) for _ in range(3)]
        (old, were), (new, are) = (max(side) for side in zip(*rates, strict=True))
        print(f"{':'.join([design, *options])}, {scenario}: {old:,.0f} before, {new:,.0f} now, {new / old:.2f} times; "
              f"{were:,.0f} pulls before, {are:,.0f} now", flush=True)  # fmt: skip


def best(*ways: dict[str, Any]) -> list[float]:
    """Of three runs each, in turn: a machine's pace drifts."""
    problem, truth = case("paper-drug", 10)
    seconds: list[list[float]] = [[] for _ in ways]
    for k in range(3 * len(ways)):
        began = time.perf_counter()
        how = ways[k % len(ways)]
        simulate(problem, truth, make("safebai-monotonic"), 100_000, 1, keep=False, progress=False, **how)
        seconds[k % len(ways)].append(time.perf_counter() - began)
    return [min(each) for each in seconds]


def workers() -> None:
    one, two = best({}, {"workers": 2})
    print(f"one process {one:.1f} s, two {two:.1f} s: {one / two:.2f} times", flush=True)


def dask() -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = ["--scheduler-file", f"{folder}/scheduler.json"]
        start = [sys.executable, "-m", "dask"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        all_ = [subprocess.Popen([*start, "scheduler", "--port", "18786", "--no-dashboard", *told], **quiet)]
        mine = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", folder]
        all_ += [subprocess.Popen([*start, "worker", *told, *mine], **quiet) for _ in range(2)]
        try:
            time.sleep(5)
            took, two = best({"cluster": "tcp://127.0.0.1:18786"}, {"workers": 2})
            print(f"Dask, two workers {took:.1f} s: {two / took:.2f} of two processes", flush=True)
        finally:
            for process in all_:
                process.kill()


def left() -> None:
    """The total that was foretold at every moment, over the one it took."""
    seen = list[tuple[float, float, float]]()

    class Noting(Bar):
        def show(self) -> None:
            now = time.monotonic()
            done, rest = seconds_left(self.paces, now - self.began, now)
            if rest is not None:
                seen.append((done, now - self.began, rest))

    sys.modules["surefoot.simulate"].Bar = Noting  # type: ignore[attr-defined]
    for name, arms, design, trials, count in (
        ("paper-linear", 10, "safebai-linear", 200_000, 1), ("paper-drug", 5, "safebai-monotonic", 4000, 2),
        ("paper-drug", 5, "safebai-monotonic", 1000, 1),
    ):  # fmt: skip
        seen.clear()
        began = time.monotonic()
        simulate(*case(name, arms), make(design), trials, workers=count, keep=False)
        whole = time.monotonic() - began
        ratio = [rest / max(whole - at, 0.05) for done, at, rest in seen if at > 0.1 * whole and whole - at > 0.3]
        told = f"{min(ratio):.2f} to {max(ratio):.2f}" if ratio else "too short to say"
        print(f"{design}, {trials:,} trials, {count} at work, {whole:.1f} s: left over what it took {told}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    arguments = arguments or ["memory", "workers", "dask", "left"]
    for name in arguments:
        if name == "memory":
            memory()
        elif name == "workers":
            workers()
        elif name == "dask":
            dask()
        elif name == "left":
            left()
        elif name == "before":
            before(arguments[arguments.index("before") + 1])


if __name__ == "__main__":
    main(sys.argv[1:])
