"""How the constants of surefoot-monotonic's policy were chosen: each changed alone, on random instances and not on the
paper's.

python -m benchmarks.monotonic_constants [--instances 40] [--trials 24] [NAME=VALUE ...]

A row is the geometric mean over instances of mean pulls with the constant changed over mean pulls as it is, with the
standard error over instances. Without names, all of `TRIED`. Instances from 1,000 on, which no other table uses.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

from surefoot import case, make, simulate
from surefoot.designs import monotonic_estimates, monotonic_policy
from surefoot.designs.monotonic_policy import MonotonicPolicy

HOMES = (monotonic_estimates, monotonic_policy)
TRIED: dict[str, Sequence[float]] = {
    "growth": (0.04, 0.1, 0.15),
    "first": (5, 20),
    "ENOUGH": (0.15, 0.5),
    "LEAST": (0.005, 0.08),
    "RISE": (0.2, 0.7),
    "BEND": (0.1, 0.4),
    "ODD": (6.0, 25.0),
    "NEAR": (0.5, 2.0),
    "TOGETHER": (0.05, 0.2),
    "DOSES": (12, 40),
}


def pulls(instances: int, trials: int, name: str = "", value: Any = None) -> Any:
    """The log of mean pulls on every instance."""
    options = {name: value} if hasattr(MonotonicPolicy, name) else {}
    design = make("surefoot-monotonic", **options)
    patches = [patch.object(home, name, value) for home in HOMES if hasattr(home, name)]
    for it in patches:
        it.start()
    try:
        made = [case("random-monotonic", instance=1000 + i, budget=10**8) for i in range(instances)]
        return np.log([simulate(*it, design, trials, seed=3, progress=False).pulls.mean() for it in made])
    finally:
        for it in patches:
            it.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--instances", type=int, default=40)
    parser.add_argument("--trials", type=int, default=24)
    args = parser.parse_args()
    rows: list[tuple[str, float]] = [(name, value) for name, values in TRIED.items() for value in values]
    if args.changes:
        rows = [(key, float(value)) for key, _, value in (it.partition("=") for it in args.changes)]
    rows = [(name, int(value) if name in ("first", "DOSES") else value) for name, value in rows]
    usual = pulls(args.instances, args.trials)
    print("| constant | is | tried | pulls, as a part of the usual |\n|---|---|---|---|")
    for name, value in rows:
        found = pulls(args.instances, args.trials, name, value) - usual
        now = next(getattr(home, name) for home in (MonotonicPolicy, *HOMES) if hasattr(home, name))
        error = found.std(ddof=1) / math.sqrt(len(found))
        print(f"| {name} | {now} | {value} | {math.exp(found.mean()):.3f} ± {error:.3f} |", flush=True)


if __name__ == "__main__":
    main()
