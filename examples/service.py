"""A service that ramps up two changes behind a guardrail: every morning it tells yesterday's aggregates.

    python examples/service.py postgresql+psycopg://user@host/db     (or sqlite:///ramp.db)

Each change may be shown to more and more of the traffic. The effect is revenue a user, whose sigma nobody knows; the
harm is a crash (0 or 1), and no more than 1% of users may have one. All that the warehouse keeps is n, sums and sums of
squares a day. `yesterday` is the only part to be replaced: here it makes numbers up.
"""

from __future__ import annotations

import sys

import numpy as np

from surefoot import Arm, Noise, Problem, make
from surefoot.study import Assignment, Study

STAGES = ("1%", "5%", "20%", "50%", "100%")
PROBLEM = Problem(
    arms=(Arm("new search", levels=STAGES), Arm("new checkout", levels=STAGES)),
    limit=0.01,
    slack=0.005,
    delta=0.05,
    shape="levels",
    noise=(Noise("gaussian-guess", 3.0), Noise("bernoulli")),
)


def yesterday(block: Assignment, rng: np.random.Generator) -> dict[str, float]:
    """Users who came, and sums over them: of revenue, of its squares, of crashes."""
    stage = STAGES.index(str(block.dose))
    n = round(block.n * rng.uniform(0.9, 1.1)) or 1  # traffic is never what was asked for
    revenue = (1.0 if block.arm == "new search" else 0.7) + 0.1 * stage + 2.5 * rng.standard_normal(n)
    crashes = rng.binomial(n, (0.002, 0.003, 0.004, 0.005, 0.03)[stage])
    return {"n": n, "effect": revenue.sum(), "effect_squares": (revenue**2).sum(), "harm": float(crashes)}


def morning(study: Study, rng: np.random.Generator) -> bool:
    """What a cron job does: tell what came back, and hand the next stages to the router. False where it is over."""
    for block in study.ask(blocks=True):
        study.tell(block.id, **yesterday(block, rng), key=f"warehouse {block.id}")  # sent twice, it counts once
    for block in study.ask(blocks=True):
        print(f"today: {block.arm} at {block.dose} for {block.n:,} users ({block.why})")
    return study.view.standing == "running"


def main(url: str, days: int = 10_000, seed: int = 1) -> Study:
    rng = np.random.default_rng(seed)
    daily = make("surefoot-levels", first=2000)  # users of an arm a day, at least
    study = Study.create(url, "ramp-up", PROBLEM, daily, actor="cron", seed=seed, blocks=True, watch="warn")
    while days > 0 and morning(study, rng):
        days -= 1
    print(study.verdict().reason(0), study.verdict().reason(1), sep="\n")
    return study


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///ramp.db")
