from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from surefoot import Study, SurefootError, case, register
from surefoot.study import simulated
from surefoot.study.journal import JOURNALS, Journal
from surefoot.testing import JournalSuite

EXAMPLE = Path(__file__).parents[2] / "examples" / "surefoot-example-plugin" / "src"


class TestConformance(JournalSuite):
    """On SQLite and on PostgreSQL."""


class TestOfSomebodyElse(JournalSuite):
    """The example package's, by its scheme."""

    @pytest.fixture
    def url(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        monkeypatch.syspath_prepend(str(EXAMPLE))
        monkeypatch.setattr(JOURNALS, "known", {})
        register(importlib.import_module("surefoot_example.lines").Lines)
        yield f"lines://{tmp_path}/trial"

    def test_a_study_lives_on_it(self, url: str) -> None:
        problem, truth = case("paper-linear", 2, budget=30)
        study = Study.create(url, "ä/1", problem, actor="me", seed=1)
        while asked := study.ask():
            study.tell_many(simulated(problem, truth, asked, 5))
        file = Path(url.removeprefix("lines://")) / "%C3%A4%2F1.jsonl"
        whole = file.read_bytes()
        file.write_bytes(whole + b'[["killed half way')
        again = Study.open(url, actor="you")
        assert again.verify()["ok"] and again.journal.counts("ä/1")["told"] == 30
        assert [e.kind for e in again.journal.page("ä/1", most=2, kind="told")] == ["told"] * 2
        again.export()
        assert file.read_bytes().startswith(whole) and again.verify()["ok"]
        with pytest.raises(SurefootError, match="there is no folder"):
            Study.open("lines:///nowhere/at/all")


def test_an_address_that_means_nothing() -> None:
    with pytest.raises(SurefootError, match=r"not a database URL|SQLite or PostgreSQL"):
        Journal("no-such://x")


def test_a_password_is_not_shown() -> None:
    with pytest.raises(SurefootError) as caught:
        Journal("postgresql+psycopg://me:secret@127.0.0.1:1/x", create=True)
    assert "secret" not in str(caught.value)


def test_sqlite_is_set_up_for_durability(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s.db", create=True)
    with journal.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_who_stops_reading_half_way_leaves_no_connection_open(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s.db", create=True)
    with journal.writing("one") as now:
        for k in range(3):
            now.add("told", {"id": k}, "me")
    half = journal.each("one")
    assert next(half).seq == 1 and journal.engine.pool.checkedout() == 0
    assert [event.seq for event in half] == [2, 3]
