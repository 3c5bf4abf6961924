"""The journal: an append-only table of events, each sealed with the hash of the one before it.

One class serves SQLite (WAL, immediate transactions, full fsync) and PostgreSQL (an advisory lock a study). Many
studies share a table. Nothing else is ever stored: what a study knows is the fold of its events (see `fold`).
"""

from __future__ import annotations

import json
import os
import sqlite3
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from ..problem import SurefootError
from .checker import ORIGIN, Event, broken_link

VERSION = 2  # of the rows and payloads that this code writes, and the only one that it reads
UNKNOWN = "whether it was written is unknown: send it again, it will not double"

Payload = Mapping[str, Any]
__all__ = ["ORIGIN", "Event", "Journal", "broken_link"]


def dumps(payload: Payload) -> str:
    return json.dumps(payload, allow_nan=False, separators=(",", ":"))


_metadata = sa.MetaData()
_events = sa.Table(
    "surefoot_events",
    _metadata,
    sa.Column("study", sa.String(200), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.String(32), nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("key", sa.String(200)),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("prev", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.UniqueConstraint("study", "key"),
    sqlite_with_rowid=False,
)

_caches = sa.Table(
    "surefoot_caches",
    sa.MetaData(),
    sa.Column("study", sa.String(200), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

_LAST = (
    sa.select(_events.c.seq, _events.c.hash, _events.c.at)
    .where(_events.c.study == sa.bindparam("name"))
    .order_by(_events.c.seq.desc())
    .limit(1)
)


class Lost(SurefootError):
    """A commit that was not answered."""


class Transaction:
    """What may be done with one study while its lock is held. Nothing is written before the transaction ends."""

    def __init__(self, connection: sa.Connection, study: str):
        self.connection, self.study = connection, study
        self.added: list[Event] = []
        self.seq: int
        self.hash: str
        self.at: str
        self.seq, self.hash, self.at = _last(connection, study) or (0, ORIGIN, "")

    def read(self, after: int = 0) -> Iterator[Event]:
        return _read(self.connection, self.study, after) if self.seq > after else iter(())

    each = read

    def event(self, seq: int) -> Event | None:
        return _one(self.connection, self.study, seq)

    def actors(self) -> set[str]:
        """All who ever did something in the study."""
        return set(
            self.connection.execute(
                sa.select(_events.c.actor).where(_events.c.study == self.study).distinct()
            ).scalars()
        )

    def add(self, kind: str, payload: Payload, actor: str, reason: str | None = None, key: str | None = None) -> Event:
        at = now().isoformat(timespec="microseconds")
        event = Event(
            self.study, self.seq + 1, at, actor, kind, VERSION, reason, key, dumps(payload), self.hash, hash=""
        )
        return self.copy(event._replace(hash=event.seal()))

    def clock_back(self) -> float:
        """By how many seconds the clock is behind the last event; 0 where it is not."""
        then = datetime.fromisoformat(self.at) if self.at else now()
        return max((then - now()).total_seconds(), 0.0)

    def copy(self, event: Event) -> Event:
        """Add an event that has its place and its hash already."""
        self.added.append(event)
        self.seq, self.hash, self.at = event.seq, event.hash, event.at
        return event


class Journal:
    """`url`: a database URL of SQLAlchemy, or the path of a SQLite file."""

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
            raise SurefootError(f"{self.shown} needs a driver: pip install surefoot[postgres] ({error})") from error
        weakref.finalize(self, self.engine.dispose)
        if self.sqlite:
            sa.event.listen(self.engine, "connect", _prepare)
            sa.event.listen(self.engine, "begin", _begin)
        self._seen = _identity(self.file)
        if create:
            self._create()

    def _create(self) -> None:
        with self._explained("created"):
            if self.sqlite:
                with self.engine.connect().execution_options(surefoot_begin=None) as connection:
                    connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # kept in the file
            self._seen = self._seen or _identity(self.file)
            with self._locked("") as connection:
                _metadata.create_all(connection)
                if not self.sqlite:
                    _caches.create(connection, checkfirst=True)

    def names(self) -> list[str]:
        """The studies in this database."""
        with self._reading() as connection:
            if not sa.inspect(connection).has_table(_events.name):
                return []
            first = sa.select(_events.c.study).where(_events.c.seq == 1).order_by(_events.c.study)
            return list(connection.execute(first).scalars())

    def read(self, study: str, after: int = 0) -> Sequence[Event]:
        """The events of a study after this sequence number. Never waits for a writer."""
        return list(self.each(study, after))

    def each(self, study: str, after: int = 0) -> Iterator[Event]:
        """The same one by one, so that a long study is not in memory as a whole."""
        with self._reading() as connection:
            yield from _read(connection, study, after)

    def head(self, study: str) -> tuple[int, str, str] | None:
        """Number, hash and time of the last event. It touches nothing else, so it may be asked often."""
        with self._explained("read"):
            self._same_file()
            with self.engine.connect() as connection:
                last = _last(connection, study)
                connection.rollback()
        return tuple(last) if last else None

    def page(
        self, study: str, before: int | None = None, most: int = 100, kind: str | None = None, words: str | None = None
    ) -> list[Event]:
        """The last events before one, newest first; of a kind, with words in the actor, the reason or the content."""
        c, some = _events.c, sa.select(_events).where(_events.c.study == study)
        if before is not None:
            some = some.where(c.seq < before)
        if kind:
            some = some.where(c.kind == kind)
        if words:
            some = some.where(sa.or_(*(x.icontains(words, autoescape=True) for x in (c.actor, c.reason, c.payload))))
        with self._reading() as connection:
            return [Event._make(row) for row in connection.execute(some.order_by(c.seq.desc()).limit(most)).all()]

    def counts(self, study: str, after: int = 0) -> dict[str, int]:
        """How many events of each kind came after one."""
        c = _events.c
        some = sa.select(c.kind, sa.func.count()).where((c.study == study) & (c.seq > after)).group_by(c.kind)
        with self._reading() as connection:
            return {kind: int(n) for kind, n in connection.execute(some).all()}

    def event(self, study: str, seq: int) -> Event | None:
        with self._reading() as connection:
            return _one(connection, study, seq)

    def kept(self, study: str) -> bytes | None:
        """The cache of a study (see `cache`): a file beside that of SQLite, a row in PostgreSQL."""
        with suppress(OSError, sa.exc.SQLAlchemyError):
            if self.sqlite:
                return self._beside(study).read_bytes() if self.file else None
            with self.engine.connect() as connection:
                return connection.execute(sa.select(_caches.c.body).where(_caches.c.study == study)).scalar()
        return None

    def keep(self, study: str, body: bytes) -> None:
        """Replace it. Where that cannot be done nothing is lost but time."""
        with suppress(OSError, sa.exc.SQLAlchemyError):
            if not self.sqlite:
                with self.engine.begin() as connection:
                    connection.execute(_caches.delete().where(_caches.c.study == study))
                    connection.execute(_caches.insert(), {"study": study, "body": body})
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
        """One transaction on a study: whoever holds it is alone, and all of it is kept or nothing."""
        try:
            with self._explained("written"), self._locked(study) as connection:
                transaction = Transaction(connection, study)
                yield transaction
                if transaction.added:
                    connection.execute(_events.insert(), [event._asdict() for event in transaction.added])
        except Lost:
            if not self._there(transaction):
                raise

    def _there(self, transaction: Transaction) -> bool:
        """After a commit that was not answered: whether it is in the journal all the same."""
        try:
            with self._reading() as connection:
                last = _last(connection, transaction.study)
        except SurefootError:
            return False
        if self.sqlite and (last.hash if last else ORIGIN) != transaction.hash:
            raise SurefootError(f"the journal {self.shown} could not be written; nothing was changed")
        return bool(last) and last.hash == transaction.hash

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
                self._same_file()
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

    def _same_file(self) -> None:
        """A file that was deleted or replaced is still open for us, and what is written there nobody will ever see."""
        if self._seen and _identity(self.file) != self._seen:
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


def now() -> datetime:
    return datetime.now(UTC)


def _said(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


def _identity(file: Path | None) -> tuple[int, int] | None:
    try:
        found = os.stat(file) if file else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found else None


_LOCK = 0x5F007 << 32  # where our advisory locks in PostgreSQL begin


def _last(connection: sa.Connection, study: str) -> Any:
    return connection.execute(_LAST, {"name": study}).first()


def _one(connection: sa.Connection, study: str, seq: int) -> Event | None:
    row = connection.execute(sa.select(_events).where((_events.c.study == study) & (_events.c.seq == seq))).first()
    return Event._make(row) if row else None


def _read(connection: sa.Connection, study: str, after: int, most: int = 10_000) -> Iterator[Event]:
    """Some at a time: a long study is not to be in memory twice."""
    c = _events.c
    while True:
        some = sa.select(_events).where((c.study == study) & (c.seq > after)).order_by(c.seq).limit(most)
        rows = connection.execute(some).all()
        for event in map(Event._make, rows):
            if event.version != VERSION:
                newer = event.version > VERSION
                age, what = ("a newer", "upgrade surefoot") if newer else ("an older", "use that one")
                raise SurefootError(
                    f"study {study!r} was written by {age} surefoot (format {event.version}; this one reads "
                    f"{VERSION}): {what} to go on with it"
                )
            yield event
        if len(rows) < most:
            return
        after = rows[-1].seq


def _only_readable(file: Path) -> bool:
    log = file.with_name(file.name + "-wal")
    return file.exists() and not os.access(file, os.W_OK) and not (log.exists() and log.stat().st_size)


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver leaves transactions to `_begin`
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: sa.Connection) -> None:
    if begin := connection.get_execution_options().get("surefoot_begin", "BEGIN"):
        connection.exec_driver_sql(begin)
