from __future__ import annotations

from pathlib import Path

import pytest

from surefoot import SurefootError
from surefoot.study.journal import Journal
from surefoot.testing import JournalSuite


class TestConformance(JournalSuite):
    """On SQLite and on PostgreSQL."""


def test_a_password_is_not_shown() -> None:
    with pytest.raises(SurefootError) as caught:
        Journal("postgresql+psycopg://me:secret@127.0.0.1:1/x", create=True)
    assert "secret" not in str(caught.value)


def test_sqlite_is_set_up_for_durability(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s.db", create=True)
    with journal.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
