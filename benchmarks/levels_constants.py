"""How the constants of surefoot-levels were chosen: each changed alone, on random instances and not on published ones.

python -m benchmarks.levels_constants [--instances 24] [--trials 32] [--first 1000] [--published] [NAME=VALUE ...]

A row is the geometric mean over instances of mean subjects with the constant changed over mean subjects as it is, with
the standard error over instances. Without names, all of `TRIED`. Instances from 1,000 on, which no other table uses;
what was chosen there is looked at again from 2,000 on, and on the published cases with --published.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np

from surefoot import case, make, simulate
from surefoot.bounds import Mixture
from surefoot.designs import levels_evidence, levels_wagers
from surefoot.problem import Problem
from surefoot.scenario import Scenario

HOMES = (levels_evidence, levels_wagers)
PUBLISHED = ("levels-thall", "levels-riviere", "levels-brock", "levels-boinet")
TRIED: dict[str, Sequence[Any]] = {
    "growth": (0.01, 0.03, 0.06),
    "margin": (0.25, 1.0),
    "hope": (0.5, 2.0),
    "few": (0.5, 2.0),
    "rare": (0.25, 1.0),
    "CALM": (0.05, 0.25),  # the verdict has the rest
    "HARM_SHARE": (0.1, 0.5),
    "NEAR": (Mixture(1.2, 2.0, 3, 7, 1, 0.12, 0.1), Mixture(0.8, 2.0, 3, 7, 1, 0.12, 0.03)),
    "GAP": (Mixture(1.6, 2.0, 4, 7, 1, 0.1, 0.15), Mixture(1.1, 2.0, 3, 7, 1, 0.1, 0.04)),
}
SHARES = levels_evidence.CALM + levels_evidence.VERDICT


def changed(name: str, value: Any) -> dict[str, Any]:
    return {name: value, "VERDICT": SHARES - value} if name == "CALM" else {name: value}


def subjects(made: Sequence[tuple[Problem, Scenario]], trials: int, changes: dict[str, Any]) -> Any:
    """The log of mean subjects on every instance; small letters are options of the policy."""
    with ExitStack() as stack:
        for home in HOMES:
            for key, x in changes.items():
                if hasattr(home, key):
                    stack.enter_context(patch.object(home, key, x))
        design = make("surefoot-levels", **{key: x for key, x in changes.items() if key.islower()})
        return np.log([simulate(*it, design, trials, seed=3, progress=False).pulls.mean() for it in made])


def rows(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if args.changes:
        yield {key: float(value) for key, _, value in (it.partition("=") for it in args.changes)}
        return
    for name, values in TRIED.items():
        yield from (changed(name, value) for value in values)


def main(arguments: Sequence[str] | None = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("changes", nargs="*", metavar="NAME=VALUE", help="changed together")
    parser.add_argument("--instances", type=int, default=24)
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--published", action="store_true")
    args = parser.parse_args(arguments)
    random = range(args.first, args.first + args.instances)
    made = [case("random-levels", instance=i, budget=10**6) for i in random]
    if args.published:
        made = [case(name) for name in PUBLISHED]
    usual = subjects(made, args.trials, {})
    print(f"usual: geometric mean {math.exp(usual.mean()):,.0f} subjects\n")
    print("| tried | subjects, as a part of the usual |\n|---|---|", flush=True)
    for changes in rows(args):
        found = subjects(made, args.trials, changes) - usual
        error = found.std(ddof=1) / math.sqrt(len(found))
        what = ", ".join(f"{key} {value}" for key, value in changes.items())
        print(f"| {what} | {math.exp(found.mean()):.3f} ± {error:.3f} |", flush=True)


if __name__ == "__main__":
    main(None)
