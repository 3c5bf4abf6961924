"""How the constants of surefoot-linear were chosen: each changed alone, on random instances and not on the paper's.

python -m benchmarks.linear_constants [--instances 40] [--trials 24] [NAME=VALUE ...]

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

from surefoot import bounds, case, make, simulate
from surefoot.bounds import Mixture
from surefoot.designs import linear_evidence, linear_policy, linear_wealth

HOMES = (linear_evidence, linear_policy, linear_wealth)
SHARES = {"SAFETY": 0.3, "UNSAFE": 0.05}
TRIED: dict[str, Sequence[Any]] = {
    "SAFETY": (0.15, 0.45),  # the verdict has the rest
    "SHARED": (0.1, 0.4),
    "CAP": (0.1, 0.4),
    "SPARE": (0.0, 1.5),
    "EASE": (0.25, 0.8),
    "ESTABLISHED": (0.1, 1.5),
    "FLOOR": (0.01, 0.2),
    "BALANCE": (1.2, 4.0),
    "CLOSE": (0.3, 2.0),
    "HASTE": (0.0, 2.0, 6.0),
    "growth": (0.01, 0.03, 0.06),
    "CONTRAST": (Mixture(0.5, 1.6, 5, 5, 1, 0.1, 0.15), Mixture(0.7, 1.6, 5, 5, 1, 0.1, 0.05)),
    "TOGETHER": (Mixture(1.2, 1.5, 3, 2, 1), Mixture(2.0, 1.5, 6, 2, 1)),
}


def pulls(instances: int, trials: int, name: str = "growth", value: Any = None) -> Any:
    """The log of mean pulls on every instance."""
    changes = {} if value is None or name == "growth" else {name: value}
    if name == "SAFETY" and value is not None:
        changes["VERDICT"] = 1 - value - SHARES["UNSAFE"]
    design = make("surefoot-linear", **({"growth": value} if name == "growth" and value is not None else {}))
    patches = [patch.object(home, key, x) for home in HOMES for key, x in changes.items() if hasattr(home, key)]
    for it in patches:
        it.start()
    try:
        made = [case("random-linear", instance=1000 + i, budget=10**8) for i in range(instances)]
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
    rows = [(name, value) for name, values in TRIED.items() for value in values]
    if args.changes:
        rows = [(key, float(value)) for key, _, value in (it.partition("=") for it in args.changes)]
    usual = pulls(args.instances, args.trials)
    print("| constant | is | tried | pulls, as a part of the usual |\n|---|---|---|---|")
    for name, value in rows:
        found = pulls(args.instances, args.trials, name, value) - usual
        now = next((getattr(home, name) for home in (*HOMES, bounds) if hasattr(home, name)), 0.015)
        error = found.std(ddof=1) / math.sqrt(len(found))
        print(f"| {name} | {now} | {value} | {math.exp(found.mean()):.3f} ± {error:.3f} |", flush=True)


if __name__ == "__main__":
    main()
