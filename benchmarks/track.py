"""Track-and-Stop beside ours: the two binary instances of Garivier and Kaufmann (2016), Table 1, delta 0.1.

One dose an arm and no harm, so that nothing is left of our problem but the best arm: mean pulls, standard error, wrong.
"""

from __future__ import annotations

from typing import Any

from surefoot import Arm, Noise, Problem, Scenario, make, simulate
from surefoot.scenario import Linear

INSTANCES = ((0.5, 0.45, 0.43, 0.4), (0.3, 0.21, 0.2, 0.19, 0.18))
TRIALS = 400


def instance(means: tuple[float, ...], shape: Any) -> tuple[Problem, Scenario]:
    arms = tuple(Arm(f"arm {i + 1}", 1.0, 1.0, 1.0, levels=(1.0,)) for i in range(len(means)))
    problem = Problem(arms, 0.5, shape, Noise("bernoulli"), slack=0.4 if shape == "monotonic" else None, delta=0.1)
    return problem, Scenario(tuple(Linear(x) for x in means), (Linear(0.0),) * len(means))


def main(trials: int = TRIALS) -> None:
    rows: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
        ("Track-and-Stop, heuristic threshold", "monotonic", "track-and-stop", {"threshold": "heuristic"}),
        ("Track-and-Stop, proven threshold", "monotonic", "track-and-stop", {"threshold": "proven"}),
        ("oracle", "monotonic", "oracle", {}),
        ("surefoot-monotonic", "monotonic", "surefoot-monotonic", {}),
        ("surefoot-linear", "linear", "surefoot-linear", {}),
    )
    print(f"mean pulls of {trials} trials\n\n| | .5 .45 .43 .4 | .3 .21 .2 .19 .18 |\n|---|---|---|")
    for title, shape, name, options in rows:
        cells = []
        for means in INSTANCES:
            more: dict[str, Any] = {"doses": (1.0,) * len(means)} if name == "oracle" else options
            problem, scenario = instance(means, shape)
            ran = simulate(problem, scenario, make(name, **more), trials, seed=1, progress=False)
            error = ran.pulls.std(ddof=1) / trials**0.5
            cells.append(f"{ran.pulls.mean():,.0f} ± {error:,.0f} ({int(ran.wrong.sum())} wrong)")
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
