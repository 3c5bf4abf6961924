"""The cache makes a long study quick to open, and nothing else: not believed by verify, not needed, not dangerous."""

from __future__ import annotations

import hashlib
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from surefoot import make
from surefoot.designs import DESIGNS
from surefoot.study import Study, cache
from surefoot.study.checker import THEOREMS
from surefoot.study.published import theorem_of
from surefoot.study.sql import SqlJournal

from .subjects import finish, problem, subjects

LIVE = [name for name in DESIGNS if theorem_of(make(name)) in THEOREMS]


@pytest.fixture(autouse=True)
def often(monkeypatch: Any) -> None:
    monkeypatch.setattr(cache, "STEP", 30)


def told(url: str, name: str, cohorts: int = 6) -> Study:
    p = problem(make(name).shape)
    study, people = Study.create(url, "s", p, name, seed=1, watch="warn"), subjects(p)
    for _ in range(cohorts):
        study.tell_many(people.rows(study.ask()))
    return study


@pytest.mark.parametrize("name", LIVE)
def test_a_study_goes_on_from_it_as_from_its_events(name: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    told(url, name)
    people = subjects(problem(make(name).shape))
    one, two = Study.open(url), Study.open(url)
    one._remember = lambda: None  # type: ignore[method-assign]
    two.journal.kept = lambda study: None  # type: ignore[method-assign]
    assert one.view.seq == two.view.seq and one._kept >= 30, "what was kept is read, not made anew"
    assert one.status() == two.status() and one.ask() == two.ask()
    assert one.certificate().content == two.certificate().content
    first = one.readings()[0]
    one.correct(first["id"], harm=first["harm"] + 0.01, reason="typo")
    assert sum(finish(Study.open(url), people, most=60)) > 0
    again = Study.open(url)
    assert again.verify()["ok"] and again.status() == two.status()


def test_is_kept_in_both_databases(url: str) -> None:
    study = told(url, "surefoot-monotonic")
    assert study.journal.kept("s") is not None and study.journal.kept("t") is None
    other = Study.open(url)
    other._remember = lambda: None  # type: ignore[method-assign]
    assert other.status() == study.status() and other._kept > 0


@pytest.mark.parametrize("body", [b"", b"[]\n", b"nonsense", b'["s", 40, "0", "0", "0"]\n'])
def test_one_that_cannot_be_used_is_passed_over(body: bytes, tmp_path: Path) -> None:
    study = told(f"sqlite:///{tmp_path}/s.db", "surefoot-linear")
    study.journal.keep("s", body)
    assert Study.open(tmp_path / "s.db").status() == study.status()


def test_another_package_does_not_read_it(tmp_path: Path, monkeypatch: Any) -> None:
    study = told(f"sqlite:///{tmp_path}/s.db", "surefoot-linear")
    kept = study.journal.kept("s")
    assert kept and cache.key(kept) is not None
    monkeypatch.setattr(cache, "package", lambda: "another")
    assert cache.key(kept) is None


def test_reading_it_runs_nothing(tmp_path: Path) -> None:
    """A file that somebody put in its place, with a digest that fits."""
    study = told(f"sqlite:///{tmp_path}/s.db", "surefoot-linear")

    class Bad:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "touched",)

    body = pickle.dumps({"seq": Bad()}, protocol=5)
    head = cache.dump(study.view).partition(b"\n")[0].rpartition(b",")[0]
    digest = hashlib.sha256(body).hexdigest()
    study.journal.keep("s", head + f', "{digest}"]'.encode() + b"\n" + body)
    kept = study.journal.kept("s")
    assert kept and cache.key(kept) is not None
    assert Study.open(tmp_path / "s.db").status() == study.status()
    assert not (tmp_path / "touched").exists()


def test_a_journal_that_was_changed_where_it_stands_is_folded_anew(tmp_path: Path) -> None:
    study = told(f"sqlite:///{tmp_path}/s.db", "surefoot-linear")
    given = study.view.open
    assert given
    with closing(sqlite3.connect(tmp_path / "s.db")) as db, db:
        db.execute("UPDATE surefoot_events SET payload = replace(payload, '0.', '1.') WHERE seq = ?", (given.seq,))
    status = Study.open(tmp_path / "s.db").status()
    assert not status["holds"] and f"event {given.seq} was changed" in status["trouble"]


def test_verify_does_not_look_at_it(tmp_path: Path) -> None:
    study = told(f"sqlite:///{tmp_path}/s.db", "surefoot-linear")
    with closing(sqlite3.connect(tmp_path / "s.db")) as db, db:
        db.execute("UPDATE surefoot_events SET payload = replace(payload, '0.', '1.') WHERE seq = 3")
    report = Study.open(tmp_path / "s.db").verify()
    assert not report["ok"] and report["event"] == 3
    assert study.journal.file
    cast(SqlJournal, study.journal)._beside("s").unlink()
    status = Study.open(tmp_path / "s.db").status()
    assert not status["holds"] and "event 3 was changed" in status["trouble"]
