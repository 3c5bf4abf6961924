"""Attacks that once got through: by what stands in events, by edits under a running study, by who says so."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from surefoot import Noise, Study, SurefootError
from surefoot.designs.linear_evidence import LinearEvidence
from surefoot.study import checker
from surefoot.study.checker import ORIGIN, Event, Given, check
from surefoot.study.keys import Key, countersign
from surefoot.study.terminal import read_json
from surefoot.study.verify import EMBEDDED
from surefoot.study.verify import check as verify

from .subjects import problem, run, subjects
from .test_certificate import sealed


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
    assert record.theorem.certified(0) == record.theorem.arms[0].start


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "-1e999"])
@pytest.mark.parametrize("name, shape", [("surefoot-linear", "linear"), ("surefoot-monotonic", "monotonic")])
def test_a_harm_that_is_no_number_is_never_safe(name: str, shape: str, number: str) -> None:
    _, events = begun(name, shape)
    told = next(k for k, e in enumerate(events) if e.kind == "told")
    forged = chained(events, told, json.dumps(events[told].data | {"harm": "X"}).replace('"X"', number))
    report = check(forged)
    assert not report["ok"] and report["event"] == told + 1


@pytest.mark.parametrize("stake", [[3, 0.2, 1], [3, 0, 1], [0, 1, 1], [3, True, 1], [2.5, 1, 1], [3, 1, 2], [3, 1]])
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
    data["stakes"] = [[want, 1, 1] for want, *_ in data["stakes"]]
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


@pytest.mark.parametrize("at", ["yesterday", "2026-01-01T00:00:00"])
def test_a_time_that_cannot_be_read_is_said(tmp_path: Path, at: str) -> None:
    """The second is of no zone."""
    p = problem()
    study = Study.create(tmp_path / "s.db", "s", p, seed=1, watch="warn")
    last = study.log()[-1]
    forged = last._replace(at=at)
    with closing(sqlite3.connect(tmp_path / "s.db")) as raw, raw:
        raw.execute("UPDATE surefoot_events SET at = ?, hash = ? WHERE seq = ?", (at, forged.seal(), last.seq))
    with pytest.raises(SurefootError, match="does not hold"):
        Study.open(tmp_path / "s.db").ask()


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


def forged(events: list[Event], *more: tuple[str, Any, str | None], upto: int | None = None) -> dict[str, Any]:
    """What the checker says of a chain of one's own: the first events, and more that somebody made."""
    out = list(events[:upto])
    for kind, data, reason in more:
        text = data if isinstance(data, str) else json.dumps(data)
        last = out[-1]
        made = last._replace(
            seq=last.seq + 1, kind=kind, payload=text, reason=reason, key=None, prev=last.hash, hash=""
        )
        out.append(made._replace(hash=made.seal()))
    return check(out)


def certifying(events: list[Event], *told: Any) -> dict[str, Any]:
    """What readings certify, as a cohort says it."""
    record = checker.Record()
    out = list(events)
    for kind, data, reason in told:
        out.append(out[-1]._replace(kind=kind, payload=json.dumps(data), reason=reason))
    for event in sealed(out):
        record.take(event)
    return {"certified": [record.ahead().certified(arm) for arm in range(record.theorem.d)]}


ACTOR = {"by": "actor"}


def half(name: str = "surefoot-linear", shape: str = "linear", binary: bool = False) -> tuple[list[Event], int]:
    """A study with one reading of its first cohort, of subject 1; and how many subjects that has."""
    p = problem(shape, binary=binary)
    study = Study.create("sqlite://", "s", p, name, seed=1, watch="warn")
    asked = study.ask()
    study.tell_many(subjects(p).rows(asked[:1]))
    return study.log(), len(asked)


@pytest.mark.parametrize("data", [
    {"id": 1}, {"id": 1, "dose": 0.3}, {"id": 2}, {"id": 2, "n": 5}, {"id": 2, "effect": 0.1},
    {"id": 2, "effect": 0.1, "harm": 0.1, "n": 1000}, {"id": 2, "effect": 0.1, "harm": True},
    {"id": 2, "effect": 0.1, "harm": "0.1"}, {"id": 2, "effect": 0.1, "harm": 10**400}, {"id": 0, "harm": 0.1},
    {"id": -1, "harm": 0.1}, {"id": True, "harm": 0.1}, {"id": 2.0, "harm": 0.1}, {"id": 10**9, "harm": 0.1},
    '{"id": 2, "effect": 0.1, "harm": 0.1, "harm": -9.0}', '{"id": 2, "effect": 0.1, "harm": -1e999}', "[]", "2", "",
])  # fmt: skip
def test_a_reading_that_tells_nothing_or_too_much_is_refused(data: Any) -> None:
    """An empty one counted as if another subject had been told: the cohort was taken for complete."""
    events, _ = half()
    assert forged(events)["ok"] and forged(events, ("told", {"id": 2, "effect": 0.1, "harm": 0.1}, None))["ok"]
    report = forged(events, ("told", data, None))
    assert not report["ok"] and report["event"] == len(events) + 1, report


@pytest.mark.parametrize("data", [
    {"id": 1, "harm": -9.0, "was": {"effect": "as told"}}, {"id": 1, "harm": -9.0, "was": {}},
    {"id": 1, "was": {"harm": "as told"}}, {"id": 2, "dose": 0.5, "was": {"dose": 0.1}},
    {"id": 1, "harm": -9.0, "was": {"harm": 99.0}}, {"id": 1, "harm": None, "was": {"harm": "as told"}},
    {"id": 1, "weight": 5, "was": {"weight": 1}},
])  # fmt: skip
def test_a_correction_says_all_that_it_changes(data: dict[str, Any]) -> None:
    events, _ = half()
    told = next(e.data for e in events if e.kind == "told")
    good = {"id": 1, "harm": 0.3, "was": {"harm": told["harm"]}}
    assert forged(events, ("corrected", good, "typo"))["ok"] and not forged(events, ("corrected", good, None))["ok"]
    data = data | {"was": {k: told[k] if x == "as told" else x for k, x in data["was"].items()}}
    assert not forged(events, ("corrected", data, "typo"))["ok"]


def test_those_who_dropped_out_count_as_a_reading_that_can_be() -> None:
    events, _ = half()
    void, lift = ("voided", {"id": 2}, "left"), {"effect": 0.0, "harm": 1.0}
    assert forged(events, void, ("resumed", {"voids": lift}, "on"))["ok"]
    for harm in ("-1e999", '"0"', "NaN", "null"):
        assert not forged(events, void, ("resumed", f'{{"voids": {{"effect": 0.0, "harm": {harm}}}}}', "on"))["ok"]
    for more in ({"effect": 0.0, "harm": 1.0, "dose": 0.9}, {"harm": 1.0}, {}):
        assert not forged(events, void, ("resumed", {"voids": more}, "on"))["ok"]
    again = {"id": 2, "harm": -9.0, "was": {"harm": 1.0}}
    report = forged(events, void, ("resumed", {"voids": lift}, "on"), ("corrected", again, "typo"))
    assert not report["ok"] and "no reading that could be corrected" in report["message"]


def test_binary_readings_are_0_or_1_and_the_worst_is_the_worst() -> None:
    events, _ = half("surefoot-monotonic", "monotonic", binary=True)
    assert forged(events, ("told", {"id": 2, "effect": 1.0, "harm": 0.0}, None))["ok"]
    for harm in (-5.0, 0.5, 2.0, 1e300):
        assert not forged(events, ("told", {"id": 2, "effect": 1.0, "harm": harm}, "sure"))["ok"]
    first = events[0].data
    assert first["worst"] == [0.0, 1.0]
    assert not check(chained(events, 0, json.dumps(first | {"worst": [1.0, 0.0]})))["ok"]


def test_a_cohort_is_not_withdrawn_at_will() -> None:
    """Else one could look at the first readings of a stage, and try again until they please."""
    events, _ = half()
    report = forged(events, ("closed", {}, "these do not please"))
    assert not report["ok"] and "only after a correction" in report["message"]


def test_a_cohort_without_end_is_an_answer_not_a_crash() -> None:
    events, _ = half()
    opened = next(k for k, e in enumerate(events) if e.kind == "opened")
    for n in (10**12, 10**400, -1, 1.5, None, True):
        data = events[opened].data
        data["n"][0] = n
        assert not check(chained(events[: opened + 1], opened, json.dumps(data)))["ok"]


@pytest.mark.parametrize("name, shape", [("safebai-linear", "linear"), ("safebai-monotonic", "monotonic")])
def test_a_stage_is_not_tried_again_until_it_pleases(name: str, shape: str) -> None:
    """A number has one share of delta: it is for one estimate, unless a reading was corrected."""
    p = problem(shape)
    theorem: Any = checker.THEOREMS[f"{name}/1"](checker.DECODE(json.dumps(p.to_dict())), {})
    dose = [0.2] * 3

    def publish(want: int, number: int, first: int, at: float = 0.2, anew: bool = False) -> None:
        theorem.publish([at, 0.2, 0.2], [[want, number, first], None, None], anew=anew)

    def take(n: int) -> None:
        given = Given(1, 1, {"dose": dose, "n": [0] * 3, "stakes": [[1, 1, 1], None, None]}, 1)
        given.came = {(0, 0.2): (n, 0.1, 0.1)}
        theorem.take(given)

    publish(4, 1, 1)
    take(3)
    for want, number, first, at in ((3, 1, 1, 0.2), (5, 1, 1, 0.2), (4, 1, 1, 0.3), (4, 2, 1, 0.2), (4, 2, 2, 0.2)):
        with pytest.raises(ValueError, match="a number is used once"):  # it is under way, and not over
            publish(want, number, first, at)
    publish(4, 1, 1)
    take(1)
    shown = list(theorem.estimates(0))
    publish(4, 1, 1)
    take(4)
    assert list(theorem.estimates(0)) == shown != [], "more of what is complete changes nothing"
    for first in (1, 2, 4):
        with pytest.raises(ValueError, match="a number is used once"):
            publish(5, 1, first)
    publish(5, 1, 1, anew=True)
    assert not list(theorem.estimates(0))


def test_the_papers_theorems_need_a_sigma_that_is_known() -> None:
    data = problem().to_dict() | {"noise": {"kind": "gaussian-guess", "guess": 0.01}}
    with pytest.raises(ValueError, match="sigma that is known"):
        checker.THEOREMS["safebai-linear/1"](data, {})


def test_a_study_begins_once() -> None:
    events, _ = half()
    assert not forged(events, ("created", events[0].data | {"seed": 7}, None))["ok"]
    assert not check(events[1:])["ok"] and not check([])["ok"]
    assert not forged(events, ("praised", {}, None))["ok"], "nor does it hold what nobody knows"


def test_nothing_is_given_in_a_pause_or_after_a_stop() -> None:
    study, events = begun("surefoot-linear", "linear")
    opened = [k for k, e in enumerate(events) if e.kind == "opened"][-1]
    for kind, said in (("paused", ACTOR), ("stopped", {})):
        report = forged(events, (kind, said, "no"), ("opened", events[opened].data, None), upto=opened)
        assert not report["ok"] and report["event"] == opened + 2
    two = forged(events, ("opened", events[opened].data, None))
    assert not two["ok"] and "another cohort is open" in two["message"]
    first = study.view.cohorts[-1].first
    reading = ("told", {"id": first, "effect": 0.1, "harm": 0.1}, None)
    assert forged(events, reading)["ok"] and not forged(events, ("stopped", {}, "no"), reading)["ok"]
    ending = {"ending": "best-arm", "winner": 0, "after": 1, "out": [None] * 3}
    assert not forged(events, ("ended", ending, None))["ok"]
    assert not forged(events, ("ended", ending | {"ending": "budget-spent"}, None))["ok"], "a budget names nobody"
    spent = ("ended", ending | {"ending": "budget-spent", "winner": None}, None)
    assert not forged(events, spent)["ok"], "nor is it spent"
    setup = events[0].data
    less = chained(events, 0, json.dumps(setup | {"problem": setup["problem"] | {"budget": 3}}))
    assert forged(less, spent)["ok"] and not forged(less, ("paused", ACTOR, "no"), spent)["ok"]
    assert not forged(events, ("ended", ending | {"ending": "all-stopped", "winner": None}, None))["ok"]
    assert not forged(events, ("resumed", {}, "there was no pause"))["ok"]


def test_who_dropped_out_has_no_reading_and_who_has_one_does_not_drop_out() -> None:
    events, _ = half()
    void = ("voided", {"id": 2}, "left")
    assert forged(events, void)["ok"] and not forged(events, void, void)["ok"]
    assert not forged(events, ("voided", {"id": 1}, "left"))["ok"]
    told = ("told", {"id": 2, "effect": 0.1, "harm": 0.1}, None)
    assert not forged(events, void, told)["ok"]
    assert not forged(events, void, ("resumed", {}, "on"), told)["ok"], "somebody else has the place"


def test_what_was_certified_is_what_the_readings_certify() -> None:
    _, events = begun("surefoot-linear", "linear")
    opened = [k for k, e in enumerate(events) if e.kind == "opened"][-1]
    data = events[opened].data
    assert check(chained(events, opened, json.dumps(data)))["ok"]
    data["certified"][0] *= 1.0 + 1e-6
    assert not check(chained(events, opened, json.dumps(data)))["ok"]


def test_the_dose_of_a_harm_is_not_changed_when_its_effect_comes() -> None:
    """The harm may have certified doses by then."""
    events, _ = half()
    harm, effect = ("told", {"id": 2, "harm": 0.1}, None), {"id": 2, "effect": 0.1}
    assert forged(events, harm, ("told", effect, None))["ok"]
    assert not forged(events, harm, ("told", effect | {"dose": 0.9}, None))["ok"]
    assert not forged(events, ("told", effect, None))["ok"], "and an effect alone is none"


@pytest.mark.parametrize("change", [
    {"n": 0}, {"n": -5}, {"n": True}, {"n": 2.0}, {"n": None}, {"harm_spread": -1.0}, {"harm_spread": None},
    {"effect_spread": None}, {"weight": 2},
])  # fmt: skip
def test_a_block_says_how_many_it_is_of_and_how_they_vary(change: dict[str, Any]) -> None:
    p = problem().but(noise=Noise("gaussian-guess", 0.2))
    study = Study.create("sqlite://", "s", p, seed=1, watch="warn", blocks=True)
    good = {"id": 1, "n": 8, "effect": 0.8, "harm": 0.8, "effect_spread": 0.3, "harm_spread": 0.3}
    assert forged(study.log(), ("told", good, None))["ok"]
    data = {key: x for key, x in (good | change).items() if x is not None}
    assert not forged(study.log(), ("told", data, None))["ok"]


def test_an_event_holds_texts_and_whole_numbers() -> None:
    """Else it would have its hash and say something else."""
    events, _ = half()
    for change in ({"seq": 2.0}, {"version": [1]}, {"actor": {"a": 1}}, {"reason": 0.5}):
        out = list(events)
        out[1] = out[1]._replace(**change)
        report = check(out)
        assert not report["ok"] and report["event"] == 2
        with pytest.raises(SurefootError, match="does not hold"):
            Study.load("sqlite://", {"surefoot": "study", "events": [e._asdict() for e in out]})


def test_a_name_that_stands_twice_is_refused_wherever_json_is_read(tmp_path: Path) -> None:
    """One reader would see the first, and another the last."""
    study, _ = begun("surefoot-linear", "linear")
    certificate = json.dumps(study.certificate().content)
    twice = certificate.replace('"surefoot": "certificate"', '"surefoot": "certificate", "study": "another"', 1)
    assert study.verify(certificate=certificate)["ok"] and json.loads(twice) == json.loads(certificate)
    assert not study.verify(certificate=twice)["ok"]
    file = tmp_path / "study.json"
    file.write_text(json.dumps(study.export()))
    assert checker.main([str(file)]) == 0
    file.write_text(file.read_text().replace('"surefoot": "study"', '"surefoot": "study", "study": "another"', 1))
    assert checker.main([str(file)]) == 2
    with pytest.raises(SurefootError, match="stands twice"):
        read_json(file)


def test_the_arm_that_is_named_is_not_one_that_was_refuted(monkeypatch: Any) -> None:
    """All others being out says nothing if it is out itself, or if there is no such arm."""
    p = problem()
    study = run(Study.create("sqlite://", "s", p, seed=1, watch="warn"), subjects(p))
    events, view = study.log(), study.view
    ended = next(k for k, e in enumerate(events) if e.kind == "ended")
    data = events[ended].data
    assert data["winner"] == 0 and check(events)["ok"]
    for winner in (1, -3, 3, True, 0.0, "A"):
        assert not check(chained(events, ended, json.dumps(data | {"winner": winner})))["ok"]
    assert view.unfounded(data) is None
    monkeypatch.setattr(type(view.theorem), "refuted", lambda self, arm, named: False)
    monkeypatch.setattr(type(view.theorem), "out", lambda self, arm, named=None: True)
    assert view.unfounded(data | {"out": [None, 1, 1]}) is None, "the others were out after the first cohort"
    assert "A is named, and was out" in str(view.unfounded(data | {"out": [1, 1, 1]})), "and so was this one"


def test_a_correction_after_the_end_is_concluded_anew() -> None:
    """The old ending stays in the journal, and is not what the study says any more."""
    p = problem()
    study = run(Study.create("sqlite://", "s", p, seed=1, watch="warn"), subjects(p))
    assert study.status()["winner"] == "A"
    row = next(r for r in study.readings() if r["arm"] == "A")
    study.correct(row["id"], effect=row["effect"] + 1e-3, reason="a digit")
    endings = [e.data for e in study.log() if e.kind == "ended"]
    assert len(endings) == 2 and study.status()["winner"] == "A" and study.verify()["ok"]
    for row in [r for r in study.readings() if r["arm"] == "A"]:
        study.correct(row["id"], effect=-5.0, reason="the sign")
    assert study.status()["winner"] != "A" and study.verify()["ok"] and check(study.log())["ok"]
    assert study.certificate().content["concluded"]["winner"] != "A"


def test_what_is_not_plausible_has_a_reason_in_the_journal() -> None:
    study = Study.create("sqlite://", "s", problem(), seed=1, watch="warn", plausible={"harm": [0.0, 2.0]})
    wild, tame = {"id": 1, "effect": 0.1, "harm": -3.0}, {"id": 1, "effect": 0.1, "harm": 0.1}
    events = study.log()
    assert forged(events, ("told", wild, "it was read twice"))["ok"] and not forged(events, ("told", wild, None))["ok"]
    correction = {"id": 1, "harm": -3.0, "was": {"harm": 0.1}}
    told = ("told", tame, None)
    assert not forged(events, told, ("corrected", correction, "typo"))["ok"]
    assert forged(events, told, ("corrected", correction | {"confirmed": True}, "typo"))["ok"]


def test_no_more_cohorts_are_under_way_than_was_said() -> None:
    """All harms of the first are in, and its effects are awaited."""
    for pipeline in (1, 2):
        study = Study.create("sqlite://", "s", problem(), seed=1, watch="warn", pipeline=pipeline)
        events, size = study.log(), study.view.cohorts[0].size
        harms = [("told", {"id": k, "harm": 0.1}, None) for k in range(1, size + 1)]
        more = events[1].data | (certifying(events, *harms) if pipeline == 2 else {})
        assert forged(events, *harms)["ok"] and not forged(events, *harms[1:], ("opened", more, None))["ok"]
        assert forged(events, *harms, ("opened", more, None))["ok"] == (pipeline == 2)
        late = ("told", {"id": 1, "effect": 0.1}, None)
        assert not forged(events, harms[0], late, *harms[1:-1], ("opened", more, None))["ok"], "one harm is missing"


def with_problem(**changes: Any) -> list[Event]:
    """The events of a small study, chained anew, with another problem in the first."""
    events, _ = half()
    first = events[0].data
    problem = {k: x for k, x in (first["problem"] | changes).items() if x is not None}
    return chained(events, 0, json.dumps(first | {"problem": problem}))


@pytest.mark.parametrize("noise", [
    {"kind": "bernoulli", "guess": 0.1}, {"kind": "gaussian", "sigma": 0.2, "guess": 0.1}, {"kind": "gaussian"},
    {"kind": "gaussian", "sigma": -0.2}, {"kind": "gaussian", "sigma": 0}, {"kind": "gaussian", "sigma": "0.2"},
    {"kind": "gaussian", "sigma": True}, {"kind": "gaussian", "sigma": 0.2, "spread": True}, {"kind": "loud"},
    {"kind": "bounded", "low": 1.0, "high": 0.0, "spread": False}, {"kind": "poisson", "about": 0.5},
    {"kind": "bounded", "low": 0.0, "high": 1.0, "spread": True}, {"sigma": 0.2},
    {"effect": {"kind": "gaussian", "sigma": 0.2}}, {"effect": {"kind": "bernoulli"}, "kind": "bernoulli"},
    {"effect": {"kind": "bernoulli"}, "harm": {"kind": "bernoulli", "guess": 0.1}},
    {"effect": {"kind": "gaussian", "sigma": 0.2}, "harm": {"kind": "gaussian", "sigma": 0.2}, "kind": "bernoulli"},
])  # fmt: skip
def test_a_noise_says_what_its_kind_says_and_nothing_else(noise: dict[str, Any]) -> None:
    """A guess beside binary readings changed what they were taken for."""
    assert check(with_problem())["ok"]
    report = check(with_problem(noise=noise))
    assert not report["ok"] and report["event"] == 1, report
    with pytest.raises(SurefootError, match="does not hold"):
        events = with_problem(noise=noise)
        Study.load("sqlite://", {"surefoot": "study", "events": [e._asdict() for e in events]})


ARM: dict[str, Any] = {"name": "A", "start": 0.2, "max": 1.0, "lipschitz": 1.0}
B, C = ARM | {"name": "B"}, ARM | {"name": "C"}


@pytest.mark.parametrize("changes", [
    {"delta": 0}, {"delta": 1.0}, {"delta": -0.1}, {"tolerance": -0.1}, {"slack": -0.1}, {"limit": "1"},
    {"limit": None}, {"arms": [ARM, ARM | {"name": "B"}, ARM]},
    {"shape": "monotonic"}, {"shape": "levels"}, {"weight": 2}, {"budget": 0},
    {"arms": [ARM, B | {"weight": 2}, C]}, {"arms": [ARM, B | {"start": 0.0}, C]},
    {"arms": [ARM, B | {"start": 2.0}, C]}, {"arms": [ARM, B | {"lipschitz": 0}, C]},
    {"arms": [ARM, B | {"levels": [0.2, 0.9, 0.5]}, C]},
])  # fmt: skip
def test_a_problem_is_one_that_the_theorem_is_about(changes: dict[str, Any]) -> None:
    assert check(with_problem(arms=[ARM, B, C]))["ok"]
    report = check(with_problem(**changes))
    assert not report["ok"] and report["event"] == 1, report


@pytest.mark.parametrize("change", [
    {"voids": "worst", "worst": [0.0, -9.0]}, {"voids": "best"}, {"pipeline": 0}, {"pipeline": 1.5}, {"seed": "1"},
    {"plausible": {"dose": [0.0, 1.0]}}, {"weight": 2},
])  # fmt: skip
def test_settings_are_what_they_can_be(change: dict[str, Any]) -> None:
    """Of Gaussian readings there is no worst one, so that nobody who dropped out counts as one that pleases."""
    events, _ = half()
    report = check(chained(events, 0, json.dumps(events[0].data | change)))
    assert not report["ok"] and report["event"] == 1, report


def test_stages_are_not_opened_ahead_of_their_effects() -> None:
    events, _ = half("safebai-linear")
    assert check(events)["ok"] and not check(chained(events, 0, json.dumps(events[0].data | {"pipeline": 2})))["ok"]


@pytest.mark.parametrize("kind", checker.FIELDS)
def test_what_nobody_reads_is_in_no_event(kind: str) -> None:
    """Else it could say anything, and somebody might believe it."""
    events, _ = half()
    good: dict[str, Any] = {"told": {"id": 2, "effect": 0.1, "harm": 0.1}, "voided": {"id": 2}}
    good |= {"created": events[0].data, "opened": events[1].data, "corrected": {"id": 1, "harm": 0.3, "was": {}}}
    told = next(e.data for e in events if e.kind == "told")
    good["corrected"]["was"] = {"harm": told["harm"]}
    good |= {"assigned": {"ids": [2], "for": "site 3"}, "returned": {"ids": [2]}, "paused": ACTOR}
    good["warned"] = {"by": "watch", "watch": "start", "arm": 1, "reading": "harm"}
    report = forged(events, (kind, good.get(kind, {}) | {"weight": 2}, "why"))
    assert not report["ok"] and ("what is not known" in report["message"] or kind in ("created", "clock")), report
    possible = kind not in ("created", "opened", "closed", "resumed", "ended", "clock")
    assert forged(events, (kind, good.get(kind, {}), "why"))["ok"] is possible


def test_an_ending_is_one_of_those_there_are() -> None:
    events, _ = half()
    for kind, winner in (("praised", None), ("all-stopped", 0), ("running", None), ("best-arm", None)):
        ending = {"ending": kind, "winner": winner, "after": 1, "out": [None] * 3}
        assert not forged(events, ("ended", ending, None))["ok"]
    events = begun("surefoot-linear", "linear")[1]
    held, seen = ending | {"withheld": [1]}, {"by": "watch", "watch": "start", "arm": 1, "reading": "harm"}
    for arm, fine in ((1, True), (2, False)):
        assert forged(events, ("warned", seen | {"arm": arm}, "it saw"), ("ended", held, None))["ok"] is fine


def test_an_event_of_another_format_is_not_guessed_at() -> None:
    events, _ = half()
    out = [*events[:-1], events[-1]._replace(version=3)]
    assert not check(chained(out, -1, ""))["ok"]


def test_an_event_is_of_this_study() -> None:
    events, _ = half()
    out = [*events[:-1], events[-1]._replace(study="another")]
    assert check(chained(events, -1, ""))["ok"] and not check(chained(out, -1, ""))["ok"]


@pytest.mark.parametrize("key", ["dose", "n", "stakes", "certified"])
def test_a_cohort_says_what_every_arm_is_given(key: str) -> None:
    events, _ = half()
    for change in (lambda x: x[:-1], lambda x: [*x, x[-1]], lambda x: None, lambda x: "abc"):
        data = events[1].data
        data[key] = change(data[key])
        assert not check(chained(events[:2], 1, json.dumps(data)))["ok"]
    data = events[1].data
    del data[key]
    assert not check(chained(events[:2], 1, json.dumps(data)))["ok"]


def test_a_stage_that_does_not_please_is_not_asked_for_again() -> None:
    """In the journal, that is: only after a correction may its number be used for another."""
    _, events = begun("safebai-linear", "linear", 2)
    opened = [k for k, e in enumerate(events) if e.kind == "opened"]
    first, second = (events[k].data for k in opened[:2])
    again = second | {"stakes": first["stakes"], "dose": first["dose"], "n": first["n"]}
    assert check(chained(events[: opened[1] + 1], opened[1], json.dumps(second)))["ok"]
    report = check(chained(events[: opened[1] + 1], opened[1], json.dumps(again)))
    other = [[want + 1, *rest] for want, *rest in first["stakes"]]
    assert report["ok"], "what is complete stays as it is"
    data = again | {"stakes": other}
    report = check(chained(events[: opened[1] + 1], opened[1], json.dumps(data)))
    assert not report["ok"] and "a number is used once" in report["message"], report


def test_a_study_that_the_theorem_is_not_about_is_not_begun() -> None:
    with pytest.raises(SurefootError, match="no kind of noise beta"):
        Study.create("sqlite://", "s", problem().but(noise=Noise("beta")), seed=1)


def test_a_correction_tells_nothing_for_the_first_time() -> None:
    """An effect that is told as a correction would be evidence without having been told."""
    events, _ = half()
    harm = ("told", {"id": 2, "harm": 0.1}, None)
    more = {"id": 2, "harm": 0.2, "effect": 5.0, "was": {"harm": 0.1}}
    assert forged(events, harm, ("corrected", {"id": 2, "harm": 0.2, "was": {"harm": 0.1}}, "typo"))["ok"]
    for data in (more, {"id": 2, "was": {}}, {"id": 3, "harm": 0.2, "was": {}}, more | {"was": {"harm": 0.1, "n": 1}}):
        assert not forged(events, harm, ("corrected", data, "typo"))["ok"]


def test_a_block_of_nobody_is_none() -> None:
    p = problem().but(noise=Noise("bounded", 0.0, 1.0), limit=0.5)
    study = Study.create("sqlite://", "s", p, seed=1, watch="warn", blocks=True)
    for n in (0, 1):
        assert forged(study.log(), ("told", {"id": 1, "n": n, "effect": 0.0, "harm": 0.0}, None))["ok"] is (n == 1)


def test_a_cohort_that_is_withdrawn_while_effects_are_awaited_is_withdrawn_once() -> None:
    """It waits in line behind those cohorts; once it was withdrawn again and again, and `correct` never came back."""
    p = problem()
    study = Study.create("sqlite://", "s", p, seed=1, watch="warn", pipeline=3)
    people, first = subjects(p), study.ask()
    while max(a.dose for a in study.ask()) == 0.2:
        study.tell_many([{"id": a.id, "harm": people.read(a)["harm"]} for a in study.ask()])
    open_ = study.ask()
    study.correct(first[0].id, harm=9.0, reason="typo")
    assert [e.kind for e in study.log()].count("closed") == 1 and study.verify()["ok"]
    assert not {a.id for a in study.ask()} & {a.id for a in open_}, "nobody is given what is not certified any more"
    with pytest.raises(SurefootError, match="was withdrawn"):
        study.void(open_[0].id, "left")
    study.tell_many(people.rows(open_[:1]))  # who was treated already
    study.tell_many([{"id": a.id, "effect": people.read(a)["effect"]} for a in study.awaiting()])
    assert study.ask() and study.verify()["ok"] and check(study.log())["ok"]


def test_an_ending_that_a_correction_leads_back_to_holds_as_it_did() -> None:
    """It was concluded after a cohort, and what came since, by a reading that was wrong, does not undo that."""
    p = problem(sigma=0.1, tolerance=0.2)
    for name in ("safebai-linear", "surefoot-linear"):
        study = run(Study.create("sqlite://", "s", p, name, seed=1, watch="warn"), subjects(p))
        end, subject = study.view.concluded, study.view.identify(1)
        assert end and end["after"] == len(study.view.cohorts)
        was = study.view.harm[1]
        study.correct(subject, harm=was + 3.0, reason="typo")
        study.tell_many(subjects(p).rows(study.ask()))
        study.correct(subject, harm=was, reason="it was right")
        assert study.view.concluded == end and study.verify()["ok"] and check(study.log())["ok"]
        for wrong in (0, 99, 1.0, None):
            events = study.log()
            assert not check(chained(events, len(events) - 1, json.dumps(end | {"after": wrong})))["ok"]


def test_names_that_look_alike_do_not_come_in_by_an_import(tmp_path: Path) -> None:
    for name in ("\u0410", "A ", "a"):  # the first is a Cyrillic one
        events = with_problem(arms=[ARM, B | {"name": name}, C])
        with pytest.raises(SurefootError, match="does not hold"):
            Study.load("sqlite://", {"surefoot": "study", "events": [e._asdict() for e in events]})
    url, (events, _) = tmp_path / "s.db", half()
    Study.create(url, "Trial 1", problem(), seed=1)
    for alike in ("Tria1 l", "Tri\u0430l 1", "Trial 1", "", "s\n", "s" * 1000):
        renamed = [e._asdict() for e in chained([e._replace(study=alike) for e in events], -1, "")]
        with pytest.raises(SurefootError, match=r"look alike|already|name|does not hold"):
            Study.load(url, {"surefoot": "study", "events": renamed})
    assert Study.open(url).name == "Trial 1"


def test_what_the_checker_prints_is_printed_as_it_is(tmp_path: Path, capsys: Any) -> None:
    """Codes of a terminal in a name or a kind could have written "all events hold" over what it says."""
    file = tmp_path / "study.json"
    for events in (
        with_problem(arms=[ARM | {"name": "A\x1b[2J\u202e"}, B, C]),
        [half()[0][0]._replace(kind="x\n\x1b[A")],
    ):
        file.write_text(json.dumps({"surefoot": "study", "events": [e._asdict() for e in events]}))
        checker.main([str(file)])
        said = capsys.readouterr().out
        assert all(line.isprintable() for line in said.splitlines()) and len(said.splitlines()) <= 8


@pytest.mark.parametrize("change", [
    {"actor": 5}, {"actor": None}, {"actor": ""}, {"actor": "a\nb"}, {"at": 5}, {"at": "x"}, {"at": ""}, {"reason": 0},
    {"key": 5}, {"reason": "\ud800"}, {"at": "\ud800"}, {"study": ""},
])  # fmt: skip
def test_who_when_and_why_are_lines_of_text(change: dict[str, Any]) -> None:
    events, _ = half()
    out = [*events[:-1], events[-1]._replace(**change)]
    with contextlib.suppress(TypeError):  # what is no text has no seal either
        out = chained(out, -1, "")
    assert not check(out)["ok"]


@pytest.mark.parametrize("name", ["surefoot-linear", "safebai-linear"])
def test_what_cannot_be_computed_certifies_nothing(name: str) -> None:
    """With a delta of 1e-320, or a harm of 1e300, an upper bound was nan, and so the largest dose was allowed."""
    assert not check(with_problem(delta=1e-320))["ok"] and not check(with_problem(limit=1e60))["ok"]
    events, _ = half()
    assert not forged(events, ("told", {"id": 2, "effect": 0.1, "harm": 1e300}, None))["ok"]
    theorem: Any = next(x for key, x in checker.THEOREMS.items() if key.startswith(name))(problem().to_dict(), {})
    given = Given(
        1, 1, {"dose": [0.2] * 3, "n": [0] * 3, "stakes": [[4, 1, 1] if "safe" in name else [1.0] * 5] * 3}, 1
    )
    given.came = {(0, 0.2): (4, 0.0, float("nan"))}
    theorem.publish(given.dose, given.stakes)
    theorem.take(given)
    assert theorem.certified(0) == 0.2


def test_a_page_with_two_certificates_and_a_note_of_another_study(tmp_path: Path) -> None:
    """One reader would see the first, another the last; and a witness's signature is for the journal it was shown."""
    keys = [Key.new(tmp_path / f"key{k}") for k in range(2)]
    studies = [begun("surefoot-linear", "linear", 1)[0], begun("surefoot-linear", "linear", 2)[0]]
    study, page = studies[1], studies[1].certificate().to_html()
    assert study.verify(certificate=page)["ok"]
    found = EMBEDDED.search(page)
    assert found
    for other in (found.group(0), found.group(0).replace('"best', '"worst')):
        for forged_page in (page.replace("</body>", f"{other}</body>"), page.replace("<body>", f"<body>{other}")):
            assert not study.verify(certificate=forged_page)["ok"]
    mine, theirs = (countersign(it.checkpoint(tmp_path / "key0"), keys[1]) for it in studies)
    public = [keys[1].public]
    assert studies[0].verify(checkpoint=mine, keys=public)["authenticated"]
    for note in (
        theirs,
        mine | {"signatures": theirs["signatures"]},
        mine | {"head": theirs["head"]},
        theirs | {"events": 1},
    ):
        report: Any = {"ok": False}
        with contextlib.suppress(SurefootError):
            report = studies[0].verify(checkpoint=note, keys=public)
        assert not report["ok"]


def test_events_stand_in_the_order_of_their_times() -> None:
    """All of them in UTC and written alike; a clock that went back is an event."""
    events = begun("surefoot-linear", "linear", 1)[1]
    back = "2020-01-01T00:00:00.000000+00:00"
    at = next(k for k, e in enumerate(events) if e.kind == "told")
    wrong = ["2099-01-01T00:00:00.000000+02:00", "2099-01-01T00:00:00+00:00", "2099-W01-1T00:00:00.000000+00:00"]
    for when in (back, *wrong):
        assert not check(sealed([*events[:at], events[at]._replace(at=when)]))["ok"], when
    clock = events[at]._replace(kind="clock", payload="{}", at=back)
    assert check(sealed([*events[:at], clock, events[at]]))["ok"]
    swapped = [*events[:at], events[at + 1], events[at]]
    assert events[at].at < events[at + 1].at and not check(sealed(swapped))["ok"]


def test_nothing_but_what_puts_the_record_right_follows_a_stop() -> None:
    events, _ = half()
    told = next(e.data for e in events if e.kind == "told")
    stop: tuple[str, Any, str] = ("stopped", {}, "enough")
    for kind, data in (("voided", {"id": 2}), ("stopped", {}), ("paused", ACTOR), ("assigned", {"ids": []})):
        assert forged(events, (kind, data, "why"))["ok"] and not forged(events, stop, (kind, data, "why"))["ok"], kind
    right = {"id": 1, "harm": 0.3, "was": {"harm": told["harm"]}}
    assert forged(events, stop, ("corrected", right, "typo"), ("exported", {}, None))["ok"]


def test_who_changes_the_course_of_a_study_says_why() -> None:
    events, _ = half()
    courses: list[list[tuple[str, Any]]] = [
        [("voided", {"id": 2})], [("paused", ACTOR)], [("stopped", {})], [("paused", ACTOR), ("resumed", {})]
    ]  # fmt: skip
    for more in courses:
        steps = [(kind, data, "why") for kind, data in more]
        assert forged(events, *steps)["ok"]
        assert not forged(events, *steps[:-1], (*more[-1], None))["ok"], more


def test_an_export_says_nothing_beside_its_events(tmp_path: Path) -> None:
    study, file = begun("surefoot-linear", "linear", 1)[0], tmp_path / "study.json"
    data = study.export()
    for change, code in (({}, 0), ({"study": "another"}, 2), ({"note": "all is well"}, 2), ({"format": 1}, 2)):
        file.write_text(json.dumps(data | change))
        assert checker.main([str(file)]) == code
        if code:
            with pytest.raises(SurefootError, match="not the export"):
                Study.load("sqlite://", data | change)


def test_a_key_is_of_one_request() -> None:
    events = begun("surefoot-linear", "linear", 1)[1]
    at = [k for k, e in enumerate(events) if e.kind == "told"]
    for keys in (("a", "b"), ("a", "a")):
        out = list(events)
        for k, key in zip(at, keys, strict=False):
            out[k] = out[k]._replace(key=key)
        data = {"surefoot": "study", "events": [e._asdict() for e in sealed(out)]}
        if keys == ("a", "b"):
            Study.load("sqlite://", data)
        else:
            with pytest.raises(SurefootError, match="key was that of another request"):
                Study.load("sqlite://", data)


def test_what_is_no_rounding_is_not_adopted_by_an_event_that_says_so(monkeypatch: Any) -> None:
    """Somebody who writes to the journal could have had any difference passed over."""
    study, events = begun("surefoot-linear", "linear", 3)
    payload = json.dumps({"digest": study.view.digest})
    adopted = events[1]._replace(kind="adopted", payload=payload, reason="as it is")
    real = LinearEvidence.certified
    for off, fine in ((1e-8, True), (1e-2, False)):
        monkeypatch.setattr(LinearEvidence, "certified", lambda self, s, off=off: real(self, s) * (1 - off))
        assert not verify(events)["ok"]
        report = verify(sealed([*events[:2], adopted, *events[2:]]))
        assert report["ok"] is fine, report


def test_a_study_that_went_on_in_two_copies(tmp_path: Path) -> None:
    """Both are consistent, and a note of one does not fit the other; nor one from after a backup that was put back."""
    key, people = Key.new(tmp_path / "key"), subjects(problem())
    study = begun("surefoot-linear", "linear", 1)[0]
    early = study.checkpoint(tmp_path / "key")
    copies = [Study.open(study.backup(tmp_path / f"{k}.db")) for k in range(3)]
    for k, copy in enumerate(copies[:2]):
        copy.tell_many([row | {"effect": row["effect"] + k} for row in people.rows(copy.ask())])
    notes = [copy.checkpoint(tmp_path / "key") for copy in copies[:2]]
    for k, copy in enumerate(copies):
        for note, ok in ((early, True), (notes[0], k == 0), (notes[1], k == 1)):
            assert copy.verify(checkpoint=note, keys=[key.public])["ok"] is ok


def test_a_correction_of_a_correction_while_assignments_are_reserved() -> None:
    p = problem()
    study = Study.create("sqlite://", "s", p, seed=1, watch="warn")
    people, first = subjects(p), study.ask()
    while max(a.dose for a in study.ask()) == 0.2:
        study.tell_many(people.rows(study.ask()))
    raised = max(study.ask(), key=lambda a: a.dose).arm
    wrong, held = next(a for a in first if a.arm == raised), study.assign(3, "site 3")
    was = people.read(wrong)["harm"]
    study.correct(wrong.id, harm=50.0, reason="typo")
    assert study.view.cohorts[-2].withdrawn and not {a.id for a in held} & {a.id for a in study.ask(site="site 3")}
    study.correct(wrong.id, harm=was, reason="the typo was one")
    study.give_back([held[0].id], "not treated")
    study.tell_many(people.rows(held[1:]))  # they were treated already
    assert study.ask() and study.verify()["ok"] and check(study.log())["ok"]


def test_a_study_ends_once_and_nothing_is_opened_after_its_end() -> None:
    """An ending that names nobody, put after one that names an arm, needs no other chain; and says another thing."""
    p = problem()
    events = run(Study.create("sqlite://", "s", p, seed=1, watch="warn"), subjects(p)).log()
    end = next(e.data for e in events if e.kind == "ended")
    opened = [e.data for e in events if e.kind == "opened"][-1]
    spent = end | {"ending": "budget-spent", "winner": None}
    assert check(events)["ok"] and end["winner"] == 0
    for more in (("ended", spent, None), ("ended", end, None), ("opened", opened, None)):
        assert not forged(events, more)["ok"]


@pytest.mark.parametrize("change", [
    {"lift": "nobody"}, {"watch": {"level": 0.01, "do": "nothing", "digest": ""}},
    {"watch": {"level": 0, "do": "warn", "digest": ""}}, {"watch": {"level": 3, "do": "warn", "digest": ""}},
])  # fmt: skip
def test_what_a_watch_does_is_one_of_what_it_can_do(change: dict[str, Any]) -> None:
    events, _ = half()
    assert not verify(chained(events, 0, json.dumps(events[0].data | change)))["ok"]
