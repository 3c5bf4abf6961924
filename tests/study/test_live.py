"""Readings that several threads bring at once are written together, and are told as if each came alone."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from surefoot import Study, SurefootError
from surefoot.study.live import Brought

from .subjects import problem


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.create(tmp_path / "s.db", "s", problem(), actor="ann", seed=1, watch="warn")


def test_readings_that_wait_are_written_together(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one transaction, each with its actor; what is refused takes nobody along."""
    asked = study.ask()
    tells: list[tuple[str, float, float, str]] = [(a.id, 0.1, 0.2, f"nurse {k}") for k, a in enumerate(asked)]
    tells += [("nobody", 1.0, 1.0, "eve"), (asked[0].id, 0.0, math.nan, "eve")]
    begun, write, transactions, wrong = len(study.log()), study.journal.writing, list[str](), list[str]()

    def counted(name: str) -> Any:
        transactions.append(name)
        return write(name)

    def tell(id: str, effect: float, harm: float, who: str) -> None:
        try:
            study.tell(id, effect, harm, actor=who)
        except SurefootError as error:
            wrong.append(str(error))

    monkeypatch.setattr(study.journal, "writing", counted)
    threads = [threading.Thread(target=tell, args=each) for each in tells]
    with study._lock:  # somebody writes: the others gather
        for thread in threads:
            thread.start()
        while len(study._brought) < len(tells):
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert len(transactions) == 1 and len(wrong) == 2
    told = [e for e in study.log()[begun:] if e.kind == "told"]
    assert {(e.data["id"], e.actor) for e in told} == {(a.subject, f"nurse {k}") for k, a in enumerate(asked)}
    assert study.log()[-1].actor == told[-1].actor, "the next cohort is opened by who told the last"
    assert study.log()[-1].kind == "opened" and study.verify()["ok"]


def test_what_fails_together_is_tried_alone(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, take = study.ask(), type(study.view).take

    def broken(view: Any, event: Any, data: Any = None) -> None:
        if event.kind == "told" and event.data["id"] == asked[0].subject:
            raise SurefootError("a defect")
        take(view, event, data)

    monkeypatch.setattr(type(study.view), "take", broken)
    mine, *others = (Brought({"id": a.id, "effect": 0.1, "harm": 0.1}, "ann") for a in asked)
    study._brought.extend(others)
    with pytest.raises(SurefootError, match="a defect"):
        study._bring(mine, study._tell_each)
    for one in others:
        study._bring(one, study._tell_each)
    assert sum(e.kind == "told" for e in study.log()) == len(asked) - 1
