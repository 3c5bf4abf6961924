"""A journal in a database: an append-only table of events.

One class serves SQLite (WAL, immediate transactions, full fsync) and PostgreSQL (an advisory lock a study). Many
studies share a table. Nothing else is ever stored: what a study knows is the fold of its events (see `fold`).
"""

from __future__ import annotations

import os
import sqlite3
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from ..problem import SurefootError
from .checker import ORIGIN, Event
from .journal import JOURNALS, UNKNOWN, Journal
from .rows import Rows, Transaction, caches, events, last, metadata, one, read


class Lost(SurefootError):
    """A commit that was not answered."""


class SqlJournal(Journal):
    """`url`: a database URL of SQLAlchemy, or the path of a SQLite file."""

    engine: sa.Engine

    def __init__(self, url: str | Path, *, create: bool = False):
        text = str(url)
        self.url = self.shown = text if "://" in text else f"sqlite:///{text}"
        with self._explained("opened"):
            parsed = sa.make_url(self.url)
        self.shown = parsed.render_as_string(hide_password=True)
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise SurefootError(
                f"the journal lives in SQLite or PostgreSQL; got {parsed.get_backend_name()!r}: "
                f"use sqlite:///file.db or postgresql+psycopg://user@host/database"
                + "".join(f" or {scheme}://..." for scheme in JOURNALS)
            )
        if parsed.get_backend_name() == "postgresql" and parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        self.sqlite = parsed.get_backend_name() == "sqlite"
        file = parsed.database if self.sqlite and not parsed.query else None
        self.file = Path(file) if file and file != ":memory:" else None
        if self.file and not create and not self.file.exists():
            raise SurefootError(f"there is no file {file}: create a study in it first, or check --db")
        self.archive = self.file is not None and _only_readable(self.file)
        if self.archive:  # SQLite would want to write beside it otherwise
            parsed = parsed.set(database=f"file:{quote(str(file))}", query={"immutable": "1", "uri": "true"})
        options: dict[str, Any] = {"pool_pre_ping": True}
        if self.sqlite:
            options = {"connect_args": {"timeout": 60}}
            if not self.file and not parsed.query:  # in memory: one connection, or each thread would have its own
                options = {"connect_args": {"check_same_thread": False}, "poolclass": sa.pool.StaticPool}
        try:
            with self._explained("opened"):
                self.engine = sa.create_engine(parsed, **options)
        except ImportError as error:
            raise SurefootError(f"{self.shown} needs a driver: pip install 'surefoot[postgres]' ({error})") from error
        weakref.finalize(self, self.engine.dispose)
        if self.sqlite:
            sa.event.listen(self.engine, "connect", _prepare)
            sa.event.listen(self.engine, "begin", _begin)
        self._seen = _identity(self.file)
        if create:
            self._create()

    def close(self) -> None:
        self.engine.dispose()

    def _create(self) -> None:
        with self._explained("created"):
            if self.sqlite:
                with self.engine.connect().execution_options(surefoot_begin=None) as connection:
                    connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # kept in the file
            self._seen = self._seen or _identity(self.file)
            with self._locked("") as connection:
                metadata.create_all(connection)
                if not self.sqlite:
                    caches.create(connection, checkfirst=True)

    def names(self) -> list[str]:
        """The studies in this database."""
        with self._reading() as connection:
            if not sa.inspect(connection).has_table(events.name):
                return []
            first = sa.select(events.c.study).where(events.c.seq == 1).order_by(events.c.study)
            return list(connection.execute(first).scalars())

    def events(self, study: str, after: int = 0) -> Iterator[Event]:
        return read(self._reading, study, after)

    def head(self, study: str) -> tuple[int, str, str] | None:
        with self._explained("read"):
            self._same_file()
            with self.engine.connect() as connection:
                found = last(connection, study)
                connection.rollback()
        return tuple(found) if found else None

    def page(
        self, study: str, before: int | None = None, most: int = 100, kind: str | None = None, words: str | None = None
    ) -> list[Event]:
        c, some = events.c, sa.select(events).where(events.c.study == study)
        if before is not None:
            some = some.where(c.seq < before)
        if kind:
            some = some.where(c.kind == kind)
        if words:
            some = some.where(sa.or_(*(x.icontains(words, autoescape=True) for x in (c.actor, c.reason, c.payload))))
        with self._reading() as connection:
            return [Event._make(row) for row in connection.execute(some.order_by(c.seq.desc()).limit(most)).all()]

    def counts(self, study: str, after: int = 0) -> dict[str, int]:
        c = events.c
        some = sa.select(c.kind, sa.func.count()).where((c.study == study) & (c.seq > after)).group_by(c.kind)
        with self._reading() as connection:
            return {kind: int(n) for kind, n in connection.execute(some).all()}

    def event(self, study: str, seq: int) -> Event | None:
        with self._reading() as connection:
            return one(connection, study, seq)

    def kept(self, study: str) -> bytes | None:
        """The cache of a study (see `cache`): a file beside that of SQLite, a row in PostgreSQL."""
        with suppress(OSError, sa.exc.SQLAlchemyError):
            if self.sqlite:
                return self._beside(study).read_bytes() if self.file else None
            with self.engine.connect() as connection:
                return connection.execute(sa.select(caches.c.body).where(caches.c.study == study)).scalar()
        return None

    def keep(self, study: str, body: bytes) -> None:
        """Replace it. Where that cannot be done nothing is lost but time."""
        with suppress(OSError, sa.exc.SQLAlchemyError):
            if not self.sqlite:
                with self.engine.begin() as connection:
                    connection.execute(caches.delete().where(caches.c.study == study))
                    connection.execute(caches.insert(), {"study": study, "body": body})
            elif self.file and not self.archive:
                part = self._beside(study).with_suffix(f".{os.getpid()}")
                with open(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, self.file.stat().st_mode), "wb") as out:
                    out.write(body)
                part.replace(self._beside(study))

    def _beside(self, study: str) -> Path:
        assert self.file
        return self.file.with_name(f"{self.file.name}-{zlib.crc32(study.encode()):08x}.cache")

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._explained("read"):
            self._same_file()
            with self.engine.connect() as connection:
                yield connection
                connection.rollback()
                self._fold_in(connection)

    @contextmanager
    def writing(self, study: str) -> Iterator[Transaction]:
        try:
            with self._explained("written"), self._locked(study) as connection:
                transaction = Transaction(Rows(connection), study)
                yield transaction
                if transaction.added:
                    connection.execute(events.insert(), [event._asdict() for event in transaction.added])
        except Lost:
            if not self._there(transaction):
                raise

    def _there(self, transaction: Transaction) -> bool:
        """After a commit that was not answered: whether it is in the journal all the same."""
        try:
            with self._reading() as connection:
                found = last(connection, transaction.study)
        except SurefootError:
            return False
        if self.sqlite and (found.hash if found else ORIGIN) != transaction.hash:
            raise SurefootError(f"the journal {self.shown} could not be written; nothing was changed")
        return bool(found) and found.hash == transaction.hash

    @contextmanager
    def _locked(self, study: str) -> Iterator[sa.Connection]:
        self._same_file()
        now = self.engine.connect().execution_options(surefoot_begin="BEGIN IMMEDIATE")
        with now as connection:
            begun = connection.begin()
            try:
                if not self.sqlite:
                    lock = sa.cast(_LOCK + zlib.crc32(study.encode()), sa.BigInteger)
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock)))
                yield connection
                self._same_file(connection)
            except BaseException:
                begun.rollback()
                raise
            try:
                begun.commit()
            except sa.exc.SQLAlchemyError as error:
                raise Lost(f"the journal {self.shown} did not answer: {_said(error)}; {UNKNOWN}") from error
            self._fold_in(connection)

    def _fold_in(self, connection: sa.Connection) -> None:
        """Bring what stands in SQLite's log beside the file into the file: a copy of it alone is complete then."""
        if self.file and not self.archive:
            driver: Any = connection.connection.driver_connection
            with suppress(sqlite3.Error):  # what is committed is committed; the next command tries again
                driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _same_file(self, held: sa.Connection | None = None) -> None:
        """A file that was deleted or replaced is still open for us, and what is written there nobody will ever see."""
        if self._seen and _identity(self.file) != self._seen:
            if held:
                held.detach()  # else it would be given back to a pool that is no more, and stay open
            self.engine.dispose()
            what = "was replaced by another" if self.file and self.file.exists() else "is gone"
            raise SurefootError(
                f"the file {self.file} {what} since the study was opened; nothing was changed: "
                f"put it back, or open the study again"
            )

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Errors of the database in words; whatever was under way has been rolled back by then."""
        try:
            yield
        except sa.exc.ArgumentError as error:
            raise SurefootError(f"{self.shown!r} is not a database URL, such as sqlite:///trial.db: {error}") from error
        except sa.exc.SQLAlchemyError as error:
            raise SurefootError(
                f"the journal {self.shown} could not be {done}: {_said(error)}; nothing was changed"
            ) from error


def _said(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


def _identity(file: Path | None) -> tuple[int, int] | None:
    try:
        found = os.stat(file) if file else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found else None


_LOCK = 0x5F007 << 32  # where our advisory locks in PostgreSQL begin


def _only_readable(file: Path) -> bool:
    log = file.with_name(file.name + "-wal")
    return file.exists() and not os.access(file, os.W_OK) and not (log.exists() and log.stat().st_size)


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver leaves transactions to `_begin`
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: sa.Connection) -> None:
    if begin := connection.get_execution_options().get("surefoot_begin", "BEGIN"):
        connection.exec_driver_sql(begin)
