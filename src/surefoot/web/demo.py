"""A study with simulated subjects that arrive while you watch."""

from __future__ import annotations

import threading
from pathlib import Path

from ..problem import Arm, Noise, Problem, SurefootError
from ..scenario import Linear, Scenario
from ..study import Study, simulated

NAME, ACTOR = "creams (demo)", "simulated clinic"
PROBLEM = Problem(
    arms=(Arm("cream A", 0.2, 2.0), Arm("cream B", 0.2, 2.0), Arm("cream C", 0.2, 2.0)),
    limit=1.0, shape="linear", noise=Noise("gaussian", 0.3), delta=0.05, budget=5000,
)  # fmt: skip
TRUTH = Scenario(effect=(Linear(0.9), Linear(0.5), Linear(0.4)), harm=(Linear(0.7), Linear(0.8), Linear(0.6)))


def begin(folder: Path) -> Path:
    """A database with the study, at its beginning."""
    db = folder / "demo.db"
    Study.create(db, NAME, PROBLEM, actor=ACTOR, seed=8)
    return db


class Arrivals(threading.Thread):
    """One subject every `pace` seconds, until the study ends; it waits while the study is paused."""

    def __init__(self, db: Path, pace: float = 0.8):
        super().__init__(daemon=True)
        self.db, self.pace, self.over = db, pace, threading.Event()

    def run(self) -> None:
        study = Study.open(self.db, NAME, actor=ACTOR)
        while not self.over.wait(self.pace):
            try:
                asked = study.ask(1)
                study.tell_many(simulated(PROBLEM, TRUTH, asked, 5))
            except SurefootError:  # somebody else told it, or it may only be looked at
                continue
            if study.look(lambda view: view.standing) in ("ended", "stopped"):
                return

    def stop(self) -> None:
        self.over.set()
        self.join(5)
