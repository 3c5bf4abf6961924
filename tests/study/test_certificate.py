"""The certificate says what the journal says, and verifying finds what does not hold."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from surefoot import Study, SurefootError
from surefoot.study.checker import ORIGIN, Event
from surefoot.study.rows import dumps
from surefoot.study.verify import check, differences

from .subjects import problem, run, subjects


def lived(url: str | Path, shape: str = "linear") -> Study:
    """A study in which much has happened."""
    p = problem(shape)
    people = subjects(p)
    study = Study.create(url, "trial & error", p, actor="site <1>", seed=4, watch="warn")
    a, b, c, *_ = study.ask()
    study.void(a.id, "moved away")
    study.resume("had other reasons")
    study.tell(b.id, 0.1, 0.1, dose=0.15)
    study.tell(c.id, 0.2, 0.3)
    study.correct(c.id, harm=0.2, reason="a 3 was a 2")
    study.pause("summer")
    study.resume("autumn")
    return run(study, people)


@pytest.fixture(scope="module")
def study() -> Study:
    return lived(f"{tempfile.mkdtemp()}/s.db")


def test_says_what_happened(study: Study) -> None:
    c = study.certificate().content
    assert c["concluded"]["winner"] == "A" and c["concluded"]["final"]
    assert c["head"] == {"seq": study.view.seq, "hash": study.view.hash}
    assert [n["reason"] for n in c["pauses"]] == ["had other reasons", "summer", "autumn"]
    assert [n["was"] for n in c["corrections"]] == [{"harm": 0.3}]
    assert [n["reason"] for n in c["voids"]["subjects"]] == ["moved away"]
    assert c["voids"]["count_as"] == "pause" and len(c["voids"]["tipping_points"]) == 1
    assert any(d["dose"] == 0.15 and "certified too" in d["what"] for d in c["deviations"])
    assert sum(row["pulls"] for row in c["pulls"]) == study.status()["readings"]
    assert {a["standing"] for a in c["arms"]} == {"winner", "refuted"}
    for a in c["arms"]:
        low = a["effect_there"]["lower"]  # of the effect there, which may be far below the value
        assert low is None or low <= a["effect_there"]["estimate"]
    assert c["watches"]["level"] == 0.01 and {"surefoot", "numpy", "python"} <= c["versions"].keys()
    json.loads(study.certificate().to_json())


def test_the_page_has_it_all_and_escapes_what_people_wrote(study: Study) -> None:
    page = study.certificate().to_html()
    for text in ("trial &amp; error", "site &lt;1&gt;", "a 3 was a 2", "moved away", "Tipping point", study.view.hash):
        assert text in page
    assert "<1>" not in page and "nan" not in page


@pytest.mark.parametrize("shape", ["linear", "monotonic"])
def test_of_an_open_study_is_no_conclusion(shape: str, tmp_path: Path) -> None:
    study = Study.create(tmp_path / "s.db", "s", problem(shape), seed=1)
    c = study.certificate()
    assert c.content["concluded"]["winner"] is None and not c.content["concluded"]["final"]
    assert "interim" in c.to_html()


def test_a_budget_that_is_spent(tmp_path: Path) -> None:
    p = problem(budget=20)
    study = run(Study.create(tmp_path / "s.db", "s", p, seed=1), subjects(p))
    c = study.certificate().content["concluded"]
    assert c["ending"] == "budget-spent" and c["winner"] is None and "budget" in c["words"]
    assert study.status()["recommendation"] in c["words"]
    assert "Best supported: " in c["words"] and "shown to be safe up to" in c["words"] and "exclude" in c["words"]


def test_verifies(study: Study, tmp_path: Path) -> None:
    plain = study.verify()
    assert plain["ok"] and "to notice removed last events" in plain["message"]
    assert "removed" not in study.verify(head=study.view.hash)["message"]
    certificate = study.certificate().content
    assert study.verify(certificate=certificate)["ok"]
    for name, text in (("c.json", study.certificate().to_json()), ("c.html", study.certificate().to_html())):
        (tmp_path / name).write_text(text)
        for way in (tmp_path / name, str(tmp_path / name), text):
            assert study.verify(certificate=way)["ok"]
    with pytest.raises(SurefootError, match=r"cannot read none\.json: No such file"):
        study.verify(certificate=Path("none.json"))
    certificate["arms"][0]["safe_dose"] += 1e-6
    report = study.verify(certificate=certificate)
    assert not report["ok"] and "arms.1.safe_dose" in report["message"]
    assert not list(differences(certificate, certificate, ""))
    assert not study.verify(certificate={"head": {"seq": 10**6}})["ok"]
    assert not study.verify(certificate={"x": 1})["ok"]


def sealed(events: list[Event]) -> list[Event]:
    """What somebody would do who knows how the hashes are made."""
    out: list[Event] = []
    for k, event in enumerate(events, 1):
        event = event._replace(seq=k, prev=out[-1].hash if out else ORIGIN)
        out.append(event._replace(hash=event.seal()))
    return out


@settings(max_examples=150)
@given(data=st.data(), how=st.sampled_from(["change", "drop", "add", "swap"]), clever=st.booleans())
def test_any_tampering_is_found_given_the_head(study: Study, data: st.DataObject, how: str, clever: bool) -> None:
    events = study.log()
    head = events[-1].hash
    k = data.draw(st.integers(0, len(events) - 1))
    if how == "change":
        fields = ["at", "actor", "kind", "reason", "key", "payload", "study"] + ([] if clever else ["prev", "hash"])
        field = data.draw(st.sampled_from(fields))
        old = getattr(events[k], field)
        text = data.draw(st.text().filter(lambda x: x != old))
        new: Any = {field: dumps({**events[k].data, "x": 1}) if field == "payload" else text}
        events[k] = events[k]._replace(**new)
    elif how == "drop":
        del events[k]
    elif how == "add":
        events.insert(k + 1, events[data.draw(st.integers(0, len(events) - 1))])
    else:
        j = data.draw(st.integers(0, len(events) - 1).filter(lambda j: j != k))
        events[j], events[k] = events[k], events[j]
    report = check(sealed(events) if clever else events, head)
    assert not report["ok"], f"{how} at {k} went unseen"
    if not clever and how in ("change", "drop") and k < len(events) - 1:
        assert report["event"] is not None and report["event"] <= k + 2


def test_the_fold_is_checked_and_not_only_the_hashes(study: Study) -> None:
    """Hashes made anew, no head known: what the design would not have done is found all the same."""
    events = study.log()
    at = next(k for k, e in enumerate(events) if e.kind == "opened" and k > 5)
    bad = events[at].data
    bad["dose"] = [x * 1.01 for x in bad["dose"]]
    changed = [*events[:at], events[at]._replace(payload=dumps(bad)), *events[at + 1 :]]
    report = check(sealed(changed))
    assert not report["ok"] and report["event"] == at + 1
    told = next(k for k, e in enumerate(events) if e.kind == "told")
    report = check(sealed([*events[: told + 1], events[told], *events[told + 1 :]]))
    assert not report["ok"] and report["event"] == told + 2
    assert not check([])["ok"]


def test_another_machine_may_differ_in_the_last_digit(study: Study) -> None:
    """Doses off by 1e-12, as under another CPU: still what the design asked for, for the fold and for the guard."""
    events = []
    for e in study.log():
        data = e.data
        if e.kind == "opened":
            data["dose"] = [x if x == 0.2 else x * (1 + 1e-12) for x in data["dose"]]
        events.append(e._replace(payload=dumps(data)))
    moved = sealed(events)
    assert check(moved)["ok"]
    copy = Study.load("sqlite://", {"surefoot": "study", "events": [e._asdict() for e in moved]})
    assert copy.verdict().endings() == study.verdict().endings()
    assert copy.verdict().rounds == study.verdict().rounds
    assert "best arm" in copy.certificate().content["concluded"]["words"]


def test_tampering_in_the_database(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    study = lived(tmp_path / "s.db")
    head = study.view.hash
    study.journal.engine.dispose()
    with closing(sqlite3.connect(tmp_path / "s.db")) as raw, raw:
        raw.execute("UPDATE surefoot_events SET payload = replace(payload, '0.2', '0.1') WHERE kind = 'corrected'")
    report = Study.open(tmp_path / "s.db").verify(head=head)
    assert not report["ok"] and "was changed" in report["message"]
