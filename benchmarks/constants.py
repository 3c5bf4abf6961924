"""How the constants of our designs were chosen: each changed alone, on random instances and not on the paper's or on
published ones.

python -m benchmarks.constants SHAPE [--instances 40] [--trials 24] [--first 1000] [NAME=VALUE ...]

A row is the geometric mean over instances of mean pulls with the constant changed over mean pulls as it is, with the
standard error over instances. Without names, all of `TRIED`; names are changed together. Instances from 1,000 on, which
no other table uses; what was chosen there is looked at again from 2,000 on.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np

from surefoot import Problem, Scenario, case, make, simulate
from surefoot.bounds import Mixture

HOMES = {
    "linear": ("linear_evidence", "linear_policy", "linear_wealth"),
    "monotonic": ("monotonic_estimates", "monotonic_policy"),
    "levels": ("levels_evidence", "levels_wagers"),
}
REST = {"SAFETY": 0.95, "CALM": 0.9}  # of delta, shared with the verdict
TRIED: dict[str, dict[str, Sequence[Any]]] = {  # small letters are options of the policy
    "linear": {
        "SAFETY": (0.15, 0.45),
        "SHARED": (0.25, 0.5),
        "CAP": (0.1, 0.2),
        "SPARE": (0.0, 1.5),
        "EASE": (0.25, 0.8),
        "ESTABLISHED": (0.1, 1.5),
        "FLOOR": (0.01, 0.2),
        "CLOSE": (1.0, 4.0),
        "RARELY": (0.25, 0.75),
        "HASTE": (6.0, 25.0),
        "growth": (0.0075, 0.015, 0.03),
        "first": (3, 5, 8),
        "CONTRAST": (Mixture(0.5, 1.6, 5, 5, 1, 0.1, 0.15), Mixture(0.7, 1.6, 5, 5, 1, 0.1, 0.05)),
        "TOGETHER": (Mixture(1.2, 1.5, 3, 2, 1), Mixture(2.0, 1.5, 6, 2, 1)),
    },
    "monotonic": {
        "growth": (0.02, 0.05, 0.1),
        "cohort": (1, 5),
        "UP": (0.5, 0.9),
        "DOWN": (0.2, 0.5),
        "BALANCE": (2.0, 4.0),
        "CLIMBING": (1.0, 4.0),
        "ASIDE": (0.2, 0.45),
        "first": (5, 20),
        "ENOUGH": (0.15, 0.5),
        "LEAST": (0.005, 0.08),
        "RISE": (0.2, 0.7),
        "BEND": (0.1, 0.4),
        "ODD": (6.0, 25.0),
        "FEW": (2.0, 30.0),
        "NEAR": (0.5, 2.0),
        "TOGETHER": (0.05, 0.2),
        "DOSES": (6, 12),
        "MOST": (16.0, 1e9),
        "PLENTY": (30.0, 1e9),
    },
    "levels": {
        "growth": (0.01, 0.03, 0.06),
        "margin": (0.25, 1.0),
        "hope": (0.5, 2.0),
        "few": (0.5, 2.0),
        "rare": (0.25, 1.0),
        "CALM": (0.05, 0.25),
        "HARM_SHARE": (0.1, 0.5),
        "NEAR": (Mixture(1.2, 2.0, 3, 7, 1, 0.12, 0.1), Mixture(0.8, 2.0, 3, 7, 1, 0.12, 0.03)),
        "GAP": (Mixture(1.6, 2.0, 4, 7, 1, 0.1, 0.15), Mixture(1.1, 2.0, 3, 7, 1, 0.1, 0.04)),
    },
}


def pulls(shape: str, made: Sequence[tuple[Problem, Scenario]], trials: int, changes: dict[str, Any]) -> Any:
    """The log of mean pulls on every instance."""
    for name in REST.keys() & changes.keys():
        changes = {**changes, "VERDICT": REST[name] - changes[name]}
    with ExitStack() as stack:
        for home in (import_module(f"surefoot.designs.{name}") for name in HOMES[shape]):
            for key, value in changes.items():
                if hasattr(home, key):
                    stack.enter_context(patch.object(home, key, value))
        design = make(f"surefoot-{shape}", **{key: value for key, value in changes.items() if key.islower()})
        return np.log([simulate(*it, design, trials, seed=3, progress=False).pulls.mean() for it in made])


def main(arguments: Sequence[str] | None = ("linear", "--instances", "8")) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=list(TRIED))
    parser.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--instances", type=int, default=40)
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--first", type=int, default=1000)
    args = parser.parse_intermixed_args(arguments)
    which = range(args.first, args.first + args.instances)
    made = [case(f"random-{args.shape}", instance=i, budget=10**8) for i in which]
    rows = [{name: value} for name, values in TRIED[args.shape].items() for value in values]
    if args.changes:
        given = (it.partition("=") for it in args.changes)
        rows = [{key: type(TRIED[args.shape].get(key, [0.0])[0])(value) for key, _, value in given}]
    usual = pulls(args.shape, made, args.trials, {})
    print(f"usual: geometric mean {math.exp(usual.mean()):,.0f} pulls\n")
    print("| tried | pulls, as a part of the usual |\n|---|---|", flush=True)
    for changes in rows:
        what = ", ".join(f"{key} {value}" for key, value in changes.items())
        found = pulls(args.shape, made, args.trials, changes) - usual
        error = found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
        print(f"| {what} | {math.exp(found.mean()):.3f} ± {error:.3f} |", flush=True)


if __name__ == "__main__":
    main(None)
