"""What a SafeOpt pull costs, and how many times the textbook's posterior update costs that, in one run."""

from dataclasses import replace

from surefoot import case, simulate
from surefoot.designs.safeopt import SafeOpt
from surefoot.experiments.cost import costs


def main() -> None:
    print("SafeOpt: one pull of one trial (posterior, sets, next dose) against the textbook posterior alone")
    print(f"{'pulls so far':>12} {'one pull, us':>14} {'textbook, us':>14} {'ratio':>8}")
    for cost in costs():
        ours, theirs = cost.grid * 1e6, cost.textbook * 1e6
        print(f"{cost.t:>12,} {ours:>14,.0f} {theirs:>14,.0f} {theirs / ours:>8,.1f}")
    print("SafeOpt simulated on paper-drug, 10 arms, everything included: microseconds a pull")
    problem, scenario = case("paper-drug", 10)
    for trials in (1, SafeOpt.chunk):
        short, long = (
            simulate(replace(problem, budget=n), scenario, SafeOpt(top=-0.5), trials, progress=False).seconds
            for n in (100, 1100)
        )
        print(f"{trials:>12} trials side by side {(long - short) / 1000 / trials * 1e6:>8,.0f}")


if __name__ == "__main__":
    main()
