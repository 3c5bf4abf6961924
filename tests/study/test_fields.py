"""Every field of every event, changed by somebody who makes all hashes anew: the checker alone notices, or it is one
of the few that no theorem rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from surefoot import Study, SurefootError, make
from surefoot.designs import DESIGNS
from surefoot.scenario import Linear, Scenario
from surefoot.study import simulated
from surefoot.study.checker import Event, SurefootLinear, check
from surefoot.study.fold import View
from surefoot.study.published import CHECKERS
from surefoot.study.rows import dumps
from surefoot.study.verify import check as verify

from .subjects import problem, run, subjects
from .test_certificate import sealed
from .test_checker import LIVE, SURE

# What is derived, to 1e-9; all else is what somebody has declared, chosen or read: a note that is signed or a head from
# elsewhere, says that it is as it was. (An arm that is said to be out was, then; perhaps earlier.)
DERIVED = {"created": {"voids", "worst"}, "opened": {"n", "certified"}, "ended": {"ending", "winner", "after", "out"}}


@cache
def ended(name: str) -> list[Event]:
    p = problem(make(name).shape, sigma=0.1)
    study = run(Study.create("sqlite://", "s", p, name, seed=1, watch="warn"), subjects(p))
    study.export()
    return study.log()


def leaves(x: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
    for key, value in inner:
        yield from leaves(value, (*path, key))
    if path and not (isinstance(x, (dict, list)) and x):
        yield path


def others(x: Any, derived: bool) -> list[Any]:
    """What might stand there in its place: of another kind and, where that is derived, a little off."""
    if isinstance(x, bool):
        return ["no", 2]
    if isinstance(x, (int, float)):
        return [[x], "1", {}, *([x * (1 + 1e-6) + 1e-6, x + 1, None, 10**400] if derived else [])]
    if isinstance(x, str):
        return [7, [x], *([f"{x}x", None] if derived else [])]
    return [["x"], {"all": "well"}, *([1] if derived else [])]


def changed(event: Event, path: tuple[Any, ...], to: Any) -> Event:
    data = event.data
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    return event._replace(payload=dumps(data))


@pytest.mark.parametrize("name", LIVE)
def test_every_field_is_derived_or_is_of_its_kind(name: str) -> None:
    events = ended(name)
    assert check(events)["ok"] and {"created", "opened", "told", "ended"} <= {e.kind for e in events}
    tried = 0
    for kind in ("created", "opened", "told", "ended", "exported"):
        at = max(k for k, e in enumerate(events) if e.kind == kind)
        for path in leaves(events[at].data):
            was = leaf(events[at].data, path)
            for to in others(was, path[0] in DERIVED.get(kind, ())):
                forged = sealed([*events[:at], changed(events[at], path, to), *events[at + 1 :]])
                weaker = path[0] == "out" and was is not None and (to is None or to == was + 1)
                assert weaker or path[0] == "options" or "levels" in path or not check(forged)["ok"], (kind, path, to)
                tried += 1
    assert tried > 100


def leaf(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


@pytest.mark.parametrize("name", LIVE)
def test_an_ending_says_nothing_that_the_readings_do_not(name: str) -> None:
    """A false `safe`, `standing`, `out` or `withheld` was passed over; and so was an end that had not come."""
    events = ended(name)
    at = next(k for k, e in enumerate(events) if e.kind == "ended")
    end, arms = events[at].data, len(events[0].data["problem"]["arms"])
    assert end["ending"] == "best-arm" and end["winner"] == 0
    none, early = {"winner": None}, [1 if arm else None for arm in range(arms)]
    for lie in (
        {"safe": [9.9] * arms}, {"standing": ["stopped"] * arms}, {"withheld": [1]}, none | {"withheld": [1]},
        none | {"withheld": "harm at the start dose of B"}, none | {"withheld": [True]}, {"out": early},
        {"out": [*end["out"], None]}, {"out": end["out"][:-1]}, {"out": [end["after"]] * arms},
        {"after": 1, "out": early}, none | {"ending": "all-stopped"}, {"ending": "budget-spent"}, none,
    ):  # fmt: skip
        assert not check(sealed([*events[:at], events[at]._replace(payload=dumps(end | lie))]))["ok"], lie
    spent = dumps({"ending": "budget-spent", "winner": None, "after": end["after"], "out": end["out"]})
    assert check(sealed([*events[:at], events[at]._replace(payload=spent)]))["ok"] is name.startswith("safebai")
    assert not verify(sealed([*events[:at], events[at]._replace(payload=spent)]))["ok"]


def test_what_a_watch_said_is_what_it_saw() -> None:
    """Its words are the reason of a pause; `verify` has them from the readings, the checker knows no watches."""
    p = problem(sigma=0.3)
    study = Study.create("sqlite://", "s", p, seed=1)
    truth = Scenario((Linear(0.9), Linear(0.7), Linear(0.6)), (Linear(7.0),) * 3)
    while study.view.standing == "running":
        study.tell_many(simulated(p, truth, study.ask(), 1))
    *events, last = study.log()
    arm, name = last.data["arm"], p.names[last.data["arm"]]
    assert last.kind == "paused" and last.data == {"by": "watch", "watch": "start", "arm": arm, "reading": "harm"}
    assert verify([*events, last])["ok"] and check([*events, last])["ok"]
    words, number = str(last.reason), next(w for w in str(last.reason).split() if w.strip(",;").count("."))
    for reason, fine in (
        (f"start: {name}: all is well", False), (words.replace(name, "D", 1), False),
        (words.replace(number, "9.99", 1), False),
        (words.replace(number, f"{float(number.strip(',;')) * 1.0001!r}", 1), True),
    ):  # fmt: skip
        assert verify(sealed([*events, last._replace(reason=reason)]))["ok"] is fine, reason
    for data in (
        {"by": "watch"}, {"by": "watch", "watch": "start", "arm": 3, "reading": "harm"}, {}, {"by": "God"},
        {"by": "watch", "watch": "mood", "arm": 0, "reading": "harm"}, {"by": "actor", "watch": "start"},
        {"by": "watch", "watch": "start", "arm": True, "reading": "harm"}, last.data | {"message": "all is well"},
        {"by": "watch", "watch": "start", "arm": 0, "reading": "mood"}, last.data | {"level": 0.5},
    ):  # fmt: skip
        assert not check(sealed([*events, last._replace(payload=json.dumps(data))]))["ok"], data
    other = last.data | {"arm": (arm + 1) % 3}
    assert not verify(sealed([*events, last._replace(payload=json.dumps(other))]))["ok"]


@pytest.mark.parametrize("change", [
    {"plausible": {"harm": [-1e999, 1e999]}}, {"plausible": {"harm": [2, 1]}}, {"plausible": {"harm": "ab"}},
    {"plausible": {"harm": [0, 1, 2]}}, {"seed": -1}, {"seed": 2**64}, {"blocks": 1}, {"pipeline": True},
    {"lift": "me"},
    {"watch": {"level": 0.01, "do": "warn", "digest": "", "note": "all is well"}}, {"versions": {"approved": "yes"}},
    {"theorem": {"name": "surefoot-linear/6", "digest": "", "proved": "yes"}}, {"versions": {"numpy": {}}},
])  # fmt: skip
def test_settings_are_in_their_bounds(change: dict[str, Any]) -> None:
    first, *rest = ended("surefoot-linear")
    text = json.dumps(first.data | change).replace("Infinity", "1e999")
    report = check(sealed([first._replace(payload=text), *rest]))
    assert not report["ok"] and report["event"] == 1, report


def test_a_block_far_larger_than_was_asked_for_is_confirmed_by_somebody() -> None:
    """And what is plausible of a block is its mean: once its sum was held against the range of one reading."""
    study = Study.create("sqlite://", "s", problem(), seed=1, blocks=True, plausible={"harm": (0, 0.5)}, watch="warn")
    first, other, third = study.ask()
    study.tell(first.id, n=first.n, effect_mean=0.1, harm_mean=0.3)
    with pytest.raises(SurefootError, match=r"got effect 0\.1, harm 0\.6; this study expects harm"):
        study.tell(other.id, n=other.n, effect_mean=0.1, harm_mean=0.6)
    many, events = 10 * other.n + 1, study.log()
    told = {"id": other.subject, "n": many, "effect": 0.1, "harm": 0.1}
    for n, reason, fine in ((many, None, False), (many, "they all came", True), (many - 1, None, True)):
        last = events[-1]._replace(kind="told", payload=json.dumps(told | {"n": n}), reason=reason)
        assert check(sealed([*events, last]))["ok"] is fine
    study.tell(other.id, n=other.n, effect_mean=0.1, harm_mean=0.2)
    study.correct(other.id, n=many, effect_mean=0.1, harm_mean=0.2, reason="all of them", confirm=True)
    assert study.verify()["ok"] and check(study.log())["ok"] and third in study.ask()
    data = events[1].data
    data["n"][0] = 10**400
    assert not check(sealed([events[0], events[1]._replace(payload=json.dumps(data))]))["ok"]


def test_a_head_of_long_ago_says_nothing_of_what_came_since() -> None:
    events = ended("surefoot-linear")
    assert check(events, events[-1].hash)["message"] == f"all {len(events)} events hold"
    assert "the head is that of event 2, and vouches for none after it" in check(events, events[1].hash)["message"]
    assert not check(events, "0" * 64)["ok"] and not check(events, "")["ok"]
    assert not check([events[0]._replace(seq=True), *events[1:]])["ok"], "and true is no number"


@pytest.mark.parametrize("again", ["bob", "Bob", "b\u043eb", " bob", "b0b", "\uff42\uff4f\uff42"])
def test_nobody_lifts_a_pause_of_their_own_under_another_spelling(again: str) -> None:
    study = Study.create("sqlite://", "s", problem(), seed=1, actor="ann")
    study.tell_many([{"id": a.id, "effect": 9.0, "harm": 9.0} for a in study.ask()], actor="bob")
    with pytest.raises(SurefootError, match=r"another actor lifts that \(ann\)"):
        study.resume("it is fine", actor=again)
    last = study.log()[-1]
    lifted = last._replace(kind="resumed", payload="{}", reason="it is fine", actor=f"{again}\u200b")
    assert not verify(sealed([*study.log(), lifted]))["ok"]
    study.resume("looked at", actor="ann")


def test_no_package_puts_a_checker_of_its_own_in_the_place_of_one_of_ours() -> None:
    class Lenient(SurefootLinear):
        def refusal(self, arm: int, dose: float, free: bool = False) -> str | None:
            return None

    with pytest.raises(SurefootError, match="is there already"):
        CHECKERS.add(Lenient, "surefoot-linear/6")


@pytest.mark.parametrize("kind", SURE)
def test_evidence_that_has_changed_is_refused_for_every_design(kind: Any, monkeypatch: Any) -> None:
    """Of ours by what was certified, of the paper's by what a stage asks for: 1% is enough, or a level."""
    p = problem(kind.shape, binary=kind.shape == "levels")
    study = Study.create("sqlite://", "s", p, kind.name, seed=1, watch="warn")
    people, start = subjects(p), max(a.start for a in p.arms)
    while len(study.view.cohorts) < 40 and study.ask():
        study.tell_many(people.rows(study.ask()))
    assert any(max(given.dose) > start for given in study.view.cohorts)
    monkeypatch.setitem(DESIGNS.known, kind.name, kind)
    assert "; this surefoot makes it" in str(View().follow_up(study.log()).trouble)
    report = verify(study.log())
    assert not report["ok"] and ("this surefoot" in report["message"] or "the stage asks for" in report["message"])
