"""python -m benchmarks.device [rates] [agree]: an accelerator beside one core.

    rates   trials a second at several widths
    agree   failures and means on every scenario of the catalogue, against NumPy, in standard errors

Options: --device cuda --trials 20000 --seconds 20 --widths 4096,65536 --designs NAME,... --scenarios NAME,... --out DIR
    --workers 4: also so many processes on the device, each with trials of its own, at the smallest width (start
    nvidia-cuda-mps-control -d before)
Needs NumPy, PyTorch and array-api-compat alone: a borrowed machine may have no more.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from multiprocessing import get_context
from typing import Any

from surefoot.catalogue import CASES, case
from surefoot.check import WIDE
from surefoot.checks import SurefootError
from surefoot.designs import DESIGNS, make
from surefoot.simulate import simulate

RATES = (("surefoot-monotonic", "paper-drug"), ("surefoot-linear", "paper-linear"), ("safebai-linear", "paper-linear"))
WIDTHS = {"surefoot-monotonic": (8192, 65536), "surefoot-linear": (8192, 65536), "safebai-linear": (65536, 1 << 20)}


def say(text: str) -> None:
    print(text, flush=True)


def rates(options: argparse.Namespace) -> None:
    for name, scenario in RATES:
        if options.designs and name not in options.designs:
            continue
        problem, truth = case(scenario, 10)
        design = make(name)
        wide: list[tuple[Any, int | None]] = [(options.device, w) for w in options.widths or WIDTHS[name]]
        for device, width in [(None, None), *wide]:
            trials, took = (2 * width if width else design.chunk), 0.0
            try:
                simulate(problem, truth, design, 64, device=device, width=width and 64, progress=False)  # warm
                while True:
                    began = time.perf_counter()
                    result = simulate(problem, truth, design, trials, 1, device=device, width=width, keep=False)
                    took = time.perf_counter() - began
                    if took > options.seconds / 4 or trials > 10**8:
                        break
                    trials = int(trials * max(2, min(8, options.seconds / 2 / took)))
            except SurefootError as error:
                say(f"{name:20} {device or 'one core':9} width {width}: {error}")
                continue
            where = f"{device} at {width:,}" if device else "one core"
            say(
                f"{name:20} {where:18} {trials / took:12,.0f} trials/s ({trials:,} in {took:.1f} s; "
                f"pulls {result.sums.mean:,.1f} ± {result.sums.sd / math.sqrt(trials):.1f})"
            )
        if options.workers > 1:
            width = min(w for _, w in wide if w)
            jobs = [(name, scenario, options.device, width, seed) for seed in range(1, options.workers + 1)]
            with get_context("spawn").Pool(options.workers) as pool:
                times = pool.starmap(alone, jobs, chunksize=1)
            took, trials = max(end for _, end in times) - min(start for start, _ in times), 3 * width // 2 * len(jobs)
            many = f"{len(jobs)} processes at {width:,}"
            say(f"{name:20} {many} {trials / took:12,.0f} trials/s ({trials:,} in {took:.1f} s)")


def alone(name: str, scenario: str, device: str, width: int, seed: int) -> tuple[float, float]:
    """When one of several processes began, and when it ended."""
    problem, truth = case(scenario, 10)
    simulate(problem, truth, make(name), 64, device=device, width=64, progress=False)  # warm
    began = time.time()
    simulate(problem, truth, make(name), 3 * width // 2, seed, device=device, width=width, keep=False, progress=False)
    return began, time.time()


def agree(options: argparse.Namespace) -> None:
    """z of the difference in mean pulls, and of the share that failed; beyond 4 in absolute value it is marked. Runs
    are those of `surefoot check --trials 20000`: what this has kept in the same folder is not played again."""
    bad, worst = 0, 0.0
    for name in options.designs or [n for n, kind in DESIGNS.items() if kind().guarantee and kind.portable]:
        design = make(name)
        for scenario in options.scenarios or CASES:
            problem, truth = case(scenario, budget=10**9)
            if problem.shape != design.shape:
                continue
            began, found = time.perf_counter(), []
            try:
                for device in (None, options.device):
                    how: dict[str, Any] = {"device": device, "width": min(options.trials, WIDE) if device else None}
                    how |= {"out": options.out, "keep": False, "progress": False}
                    found.append(simulate(problem, truth, design, options.trials, 1, **how))
            except SurefootError as error:
                say(f"{name:20} {scenario:24} {error}")
                continue
            one, two = (result.sums for result in found)
            z = (one.mean - two.mean) / max(math.hypot(*(s.sd / math.sqrt(s.trials) for s in (one, two))), 1e-12)
            z = 0.0 if one.mean == two.mean else z
            rate = (one.counts["failed"] + two.counts["failed"]) / (one.trials + two.trials)
            spread = math.sqrt(max(rate * (1 - rate), 1e-12) * (1 / one.trials + 1 / two.trials))
            y = (one.counts["failed"] / one.trials - two.counts["failed"] / two.trials) / spread
            mark = "  <--" if max(abs(z), abs(y)) > 4 else ""
            bad, worst = bad + bool(mark), max(worst, abs(z), abs(y))
            say(
                f"{name:20} {scenario:24} pulls {one.mean:12,.1f} {two.mean:12,.1f} z {z:+.1f}  failed "
                f"{one.counts['failed']}/{one.trials} {two.counts['failed']}/{two.trials} z {y:+.1f} "
                f"({time.perf_counter() - began:.0f} s){mark}"
            )
    say(f"largest z {worst:.1f}; {bad} beyond 4")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device")

    def names(text: str) -> list[str]:
        return [x.strip() for x in text.split(",")]

    parser.add_argument("parts", nargs="*", default=["rates", "agree"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--widths", type=lambda text: [int(x) for x in text.split(",")])
    parser.add_argument("--designs", type=names)
    parser.add_argument("--scenarios", type=names)
    options = parser.parse_args(arguments or [])
    try:
        import torch

        kind = torch.cuda.get_device_name() if options.device.startswith("cuda") and torch.cuda.is_available() else ""
        say(f"PyTorch {torch.__version__} {kind}")
    except ImportError:
        say("PyTorch is not installed: nothing to compare with")
        return
    known: dict[str, Any] = {"rates": rates, "agree": agree}
    for part in options.parts:
        known[part](options)


if __name__ == "__main__":
    main(sys.argv[1:])
