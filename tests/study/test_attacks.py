"""Attacks that once got through: by what stands in events, by edits under a running study, by who says so."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from surefoot import Study, SurefootError
from surefoot.study import checker
from surefoot.study.checker import ORIGIN, Event, check

from .subjects import problem, subjects


def chained(events: list[Event], at: int, payload: str) -> list[Event]:
    """A chain of one's own, hashes and all, with another payload in one place."""
    out: list[Event] = []
    for k, event in enumerate(events):
        event = event._replace(prev=out[-1].hash if out else ORIGIN, payload=payload if k == at else event.payload)
        out.append(event._replace(hash=event.seal()))
    return out


def begun(name: str, shape: str, cohorts: int = 2) -> tuple[Study, list[Event]]:
    p = problem(shape)
    study = Study.create("sqlite://", "s", p, name, seed=1, watch="warn")
    for _ in range(cohorts):
        study.tell_many(subjects(p).rows(study.ask()))
    return study, study.log()


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "-1e999", "1e999"])
def test_a_stake_that_is_no_number_certifies_nothing(number: str) -> None:
    """A guess that is not finite made every rung of the climb look passed."""
    _, events = begun("surefoot-monotonic", "monotonic")
    opened = [k for k, e in enumerate(events) if e.kind == "opened"]
    data = events[opened[0]].data
    data["stakes"][0][0] = "X"
    forged = chained(events, opened[0], json.dumps(data).replace('"X"', number))
    record = checker.Record()
    try:
        for event in forged[: opened[1]]:
            record.take(event)
    except ValueError:
        return
    assert record.theorem.certified(0) == record.theorem.arms[0]["start"]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "-1e999"])
@pytest.mark.parametrize("name, shape", [("surefoot-linear", "linear"), ("surefoot-monotonic", "monotonic")])
def test_a_harm_that_is_no_number_is_never_safe(name: str, shape: str, number: str) -> None:
    _, events = begun(name, shape)
    told = next(k for k, e in enumerate(events) if e.kind == "told")
    forged = chained(events, told, json.dumps(events[told].data | {"harm": "X"}).replace('"X"', number))
    report = check(forged)
    assert not report["ok"] and report["event"] == told + 1


@pytest.mark.parametrize("stake", [[3, 0.2], [3, 0], [0, 1], [3, True], [2.5, 1]])
def test_stages_are_counted_in_whole_numbers(stake: list[Any]) -> None:
    """The shares of delta of all numbers 1, 2, 3 and so on sum to what is promised; those of others do not."""
    _, events = begun("safebai-linear", "linear", 1)
    opened = next(k for k, e in enumerate(events) if e.kind == "opened")
    data = events[opened].data
    data["stakes"][0] = stake
    assert not check(chained(events, opened, json.dumps(data)))["ok"]


def test_two_arms_do_not_share_the_number_of_an_estimate() -> None:
    _, events = begun("safebai-monotonic", "monotonic", 1)
    opened = next(k for k, e in enumerate(events) if e.kind == "opened")
    data = events[opened].data
    data["stakes"] = [[want, 1] for want, _ in data["stakes"]]
    assert not check(chained(events, opened, json.dumps(data)))["ok"]


def test_a_payload_that_is_nested_without_end_is_an_answer_not_a_crash() -> None:
    study, events = begun("surefoot-linear", "linear", 1)
    forged = chained(events, len(events) - 1, "[" * 200_000)
    assert not check(forged)["ok"]
    with pytest.raises(SurefootError, match="does not hold"):
        Study.load("sqlite://", {"surefoot": "study", "events": [e._asdict() for e in forged]})
    assert study.verify()["ok"]


@pytest.mark.parametrize("edit", ["DELETE", "UPDATE", "an older copy"])
def test_a_journal_that_is_changed_under_a_running_study(tmp_path: Path, edit: str) -> None:
    """Nothing is handed out from memory that the journal does not say any more."""
    p = problem()
    study = Study.create(tmp_path / "s.db", "s", p, seed=1, watch="warn")
    study.tell_many(subjects(p).rows(study.ask()))
    last = study.view.seq
    with closing(sqlite3.connect(tmp_path / "s.db")) as raw, raw:
        if edit == "UPDATE":
            raw.execute("UPDATE surefoot_events SET payload = replace(payload, '0.', '1.') WHERE seq = ?", (last,))
        else:
            raw.execute("DELETE FROM surefoot_events WHERE seq > ?", (last - 1 if edit == "DELETE" else 1,))
    with pytest.raises(SurefootError, match="does not hold"):
        study.ask()


def test_a_time_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    p = problem()
    study = Study.create(tmp_path / "s.db", "s", p, seed=1, watch="warn")
    last = study.log()[-1]
    forged = last._replace(at="yesterday")
    with closing(sqlite3.connect(tmp_path / "s.db")) as raw, raw:
        raw.execute("UPDATE surefoot_events SET at = ?, hash = ? WHERE seq = ?", ("yesterday", forged.seal(), last.seq))
    again = Study.open(tmp_path / "s.db")
    with pytest.raises(SurefootError, match="no time that can be read"):
        again.tell(again.ask()[0].id, 0.1, 0.1)


def test_who_lifts_a_pause_is_not_taken_for_who_told_the_reading(tmp_path: Path) -> None:
    """Ann's readings fire one watch after the other. Bob lifts both; Ann lifts neither."""
    p = problem()
    study = Study.create(tmp_path / "s.db", "s", p, seed=1, actor="ann")
    study.tell_many([{"id": a.id, "effect": 9.0, "harm": 9.0} for a in study.ask()])
    pauses = 0
    while study.view.standing == "paused":
        if pauses:  # before bob came there was nobody else
            with pytest.raises(SurefootError, match="another actor lifts that"):
                study.resume("it is fine", actor="ann")
        study.resume("looked at", actor="bob")
        pauses += 1
    assert pauses >= 2 and study.verify()["ok"]
