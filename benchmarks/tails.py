"""How far the longest trials run: the largest number of pulls over the median, case by case.

python -m benchmarks.tails [--design surefoot-monotonic] [--family random-monotonic] [--instances 200] [--first 0]
    [--trials 1000] [--delta 0.1] [--budget 1000000000] [--catalogue] [--device cuda]

A row a case, as it comes, and at the end the worst. `--catalogue` plays the named cases of the design's shape whose
assumptions hold in place of the family. A trial that the budget ended is counted as one without an end.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from surefoot import CASES, case, make, simulate


def cases(shape: str, family: str | None, first: int, instances: int) -> Iterator[tuple[str, int | None]]:
    if family is not None:
        yield from ((family, k) for k in range(first, first + instances))
    else:
        named = (it for it in CASES.values() if it.claim and not it.family)
        yield from ((it.name, None) for it in named if case(it.name)[0].shape == shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="surefoot-monotonic")
    parser.add_argument("--family", default="random-monotonic")
    parser.add_argument("--catalogue", action="store_true")
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=10**9)
    parser.add_argument("--delta", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", help="where they are simulated, such as cuda")
    args = parser.parse_args()
    design, worst = make(args.design), (0.0, "")
    print("| case | median pulls | largest / median | without an end | failed |\n|---|---|---|---|---|")
    for name, k in cases(design.shape, None if args.catalogue else args.family, args.first, args.instances):
        problem, scenario = case(name, instance=k, budget=args.budget, delta=args.delta)
        width = args.trials if args.device else None
        found = simulate(
            problem,
            scenario,
            design,
            args.trials,
            args.seed,
            device=args.device,
            width=width,
            keep=True,
            progress=False,
        )
        median = float(np.median(found.pulls))
        ratio, open_ended = found.pulls.max() / median, int(np.sum(found.winner < 0))
        worst = max(worst, (float(ratio), scenario.name))
        failed = int((found.wrong | found.unsafe).sum())
        print(f"| {scenario.name} | {median:,.0f} | {ratio:.1f} | {open_ended} | {failed} |", flush=True)
    print(f"\nlargest / median is {worst[0]:.1f} at most ({worst[1]}); it is to be below 40")


if __name__ == "__main__":
    main()
