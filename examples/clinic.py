"""A clinic that sees harm within a day and the effect a month later.

    python examples/clinic.py [study.db]

Two drugs at four doses. Toxicity (0 or 1) is known when the patient leaves; the response (0 or 1) four weeks later.
With a pipeline of 2 the next cohort is treated while the responses of the last are awaited: doses rise on harms, which
are in, and drugs are compared on whole cohorts in their order.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from surefoot import Arm, Noise, Problem
from surefoot.study import Study

DOSES = ("10 mg", "20 mg", "40 mg", "80 mg")
PROBLEM = Problem(
    arms=(Arm("drug A", levels=DOSES), Arm("drug B", levels=DOSES)),
    limit=0.3,
    slack=0.2,
    delta=0.1,
    shape="levels",
    noise=Noise("bernoulli"),
    budget=150,
)
TOXICITY = (0.05, 0.1, 0.2, 0.55)
RESPONSE = {"drug A": (0.2, 0.4, 0.7, 0.8), "drug B": (0.1, 0.15, 0.2, 0.3)}


def main(file: str | Path = "clinic.db", pipeline: int = 2, seed: int = 1) -> tuple[Study, int]:
    """The study, and how many weeks it took."""
    rng = np.random.default_rng(seed)
    study = Study.create(file, "clinic", PROBLEM, actor="ward", seed=seed, pipeline=pipeline)
    due: list[tuple[int, str, float]] = []  # week, patient, response
    week = 0
    while study.view.standing in ("running", "paused"):  # in a pause `ask` raises an error that says why
        study.tell_many([{"id": id, "effect": response} for when, id, response in due if when <= week])
        due = [row for row in due if row[0] > week]
        toxic = []
        for a in study.ask():
            dose = DOSES.index(str(a.dose))
            toxic.append({"id": a.id, "harm": float(rng.random() < TOXICITY[dose])})
            due.append((week + 4, a.id, float(rng.random() < RESPONSE[a.arm][dose])))
        study.tell_many(toxic)
        week += 1
    print(f"{study.status()['readings']} patients, {week} weeks, {study.status()['recommendation']}")
    return study, week


if __name__ == "__main__":
    main(*sys.argv[1:2])
