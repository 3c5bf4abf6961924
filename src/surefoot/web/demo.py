"""A study with simulated subjects that arrive while you watch."""

from __future__ import annotations

import threading
from pathlib import Path

from ..problem import SurefootError
from ..study import Study, simulated
from .lab_work import START, read

NAME, ACTOR = "creams (demo)", "simulated clinic"
PROBLEM, (TRUTH, *_) = read(START)


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
