"""The journal: an append-only table of events, each sealed with the hash of the one before it.

One class serves SQLite (WAL, immediate transactions, full fsync) and PostgreSQL (an advisory lock a study). Many
studies share a table. Nothing else is ever stored: what a study knows is the fold of its events (see `fold`).
"""

from __future__ import annotations

import hashlib
import json
import os
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import sqlalchemy as sa

from ..problem import SurefootError

VERSION = 1  # of the rows and payloads that this code writes, and the newest that it reads
ORIGIN = "0" * 64  # what the first event has as the hash of the one before

Payload = Mapping[str, Any]


class Event(NamedTuple):
    """One row of the journal. `payload` is the JSON text that was hashed."""

    study: str
    seq: int
    at: str  # UTC
    actor: str
    kind: str
    version: int
    reason: str | None
    key: str | None  # of a request that may be retried
    payload: str
    prev: str
    hash: str

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.payload)
        return found

    def seal(self) -> str:
        """The hash of everything in the event but the hash itself; `prev` ties it to all events before."""
        return hashlib.sha256(json.dumps(list(self[:-1]), ensure_ascii=True).encode()).hexdigest()


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


class Load(NamedTuple):
    """A whole study for folding: all events but the readings, these as (seq, payload, key), and the last hash."""

    events: Sequence[Event]
    told: Sequence[Any]
    hash: str


class Transaction:
    """What may be done with one study while its lock is held. Nothing is written before the transaction ends."""

    def __init__(self, connection: sa.Connection, study: str):
        self.connection, self.study = connection, study
        self.added: list[Event] = []
        last = connection.execute(
            sa.select(_events.c.seq, _events.c.hash)
            .where(_events.c.study == study)
            .order_by(_events.c.seq.desc())
            .limit(1)
        ).first()
        self.seq, self.hash = (int(last[0]), str(last[1])) if last else (0, ORIGIN)

    def read(self, after: int = 0) -> Sequence[Event]:
        return _read(self.connection, self.study, after) if self.seq > after else []

    def load(self) -> Load:
        return _load(self.connection, self.study)

    def add(self, kind: str, payload: Payload, actor: str, reason: str | None = None, key: str | None = None) -> Event:
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        event = Event(
            self.study, self.seq + 1, at, actor, kind, VERSION, reason, key, dumps(payload), self.hash, hash=""
        )
        return self.copy(event._replace(hash=event.seal()))

    def copy(self, event: Event) -> Event:
        """Add an event that has its place and its hash already."""
        self.added.append(event)
        self.seq, self.hash = event.seq, event.hash
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
        if file and file != ":memory:" and not create and not Path(file).exists():
            raise SurefootError(f"there is no file {file}: create a study in it first, or check --db")
        if file and _only_readable(Path(file)):  # an archive: SQLite would want to write beside it otherwise
            parsed = parsed.set(database=f"file:{quote(file)}", query={"immutable": "1", "uri": "true"})
        try:
            with self._explained("opened"):
                self.engine = sa.create_engine(parsed, connect_args={"timeout": 60} if self.sqlite else {})
        except ImportError as error:
            raise SurefootError(f"{self.shown} needs a driver: pip install surefoot[postgres] ({error})") from error
        weakref.finalize(self, self.engine.dispose)
        if self.sqlite:
            sa.event.listen(self.engine, "connect", _prepare)
            sa.event.listen(self.engine, "begin", _begin)
        if create:
            self._create()

    def _create(self) -> None:
        with self._explained("created"):
            if self.sqlite:
                with self.engine.connect().execution_options(surefoot_begin=None) as connection:
                    connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # kept in the file
            with self._locked("") as connection:
                _metadata.create_all(connection)

    def names(self) -> list[str]:
        """The studies in this database."""
        with self._explained("read"), self.engine.connect() as connection:
            if not sa.inspect(connection).has_table(_events.name):
                return []
            first = sa.select(_events.c.study).where(_events.c.seq == 1).order_by(_events.c.study)
            return list(connection.execute(first).scalars())

    def read(self, study: str, after: int = 0) -> Sequence[Event]:
        """The events of a study after this sequence number. Never waits for a writer."""
        with self._explained("read"), self.engine.connect() as connection:
            return _read(connection, study, after)

    def load(self, study: str) -> Load:
        """All events of a study, those of readings in short: what opening a long study spends its time on."""
        with self._explained("read"), self.engine.connect() as connection:
            return _load(connection, study)

    @contextmanager
    def writing(self, study: str) -> Iterator[Transaction]:
        """One transaction on a study: whoever holds it is alone, and all of it is kept or nothing."""
        with self._explained("written"), self._locked(study) as connection:
            transaction = Transaction(connection, study)
            yield transaction
            if transaction.added:
                connection.execute(_events.insert(), [event._asdict() for event in transaction.added])

    @contextmanager
    def _locked(self, study: str) -> Iterator[sa.Connection]:
        now = self.engine.connect().execution_options(surefoot_begin="BEGIN IMMEDIATE")
        with now as connection, connection.begin():
            if not self.sqlite:
                lock = sa.cast(_LOCK + zlib.crc32(study.encode()), sa.BigInteger)
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock)))
            yield connection

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Errors of the database in words; whatever was under way has been rolled back by then."""
        try:
            yield
        except sa.exc.ArgumentError as error:
            raise SurefootError(f"{self.shown!r} is not a database URL, such as sqlite:///trial.db: {error}") from error
        except sa.exc.SQLAlchemyError as error:
            said = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise SurefootError(f"the journal {self.shown} could not be {done}: {said}; nothing was changed") from error


_LOCK = 0x5F007 << 32  # where our advisory locks in PostgreSQL begin


def _read(connection: sa.Connection, study: str, after: int) -> Sequence[Event]:
    rows = connection.execute(
        sa.select(_events).where((_events.c.study == study) & (_events.c.seq > after)).order_by(_events.c.seq)
    )
    return _known(study, [Event._make(row) for row in rows])


def _load(connection: sa.Connection, study: str) -> Load:
    c = _events.c
    last = connection.execute(sa.select(c.seq, c.hash).where(c.study == study).order_by(c.seq.desc()).limit(1)).first()
    if last is None:
        return Load([], [], ORIGIN)
    ours = (c.study == study) & (c.seq <= last.seq)  # no later ones, so that both halves end at the same event
    rows = connection.execute(
        sa.select(_events).where(ours & ((c.kind != "told") | (c.version > VERSION))).order_by(c.seq)
    )
    events = _known(study, [Event._make(row) for row in rows])
    told = connection.execute(sa.select(c.seq, c.payload, c.key).where(ours & (c.kind == "told")).order_by(c.seq))
    return Load(events, told.all(), last.hash)


def _known(study: str, events: Sequence[Event]) -> Sequence[Event]:
    if events and (newest := max(event.version for event in events)) > VERSION:
        raise SurefootError(
            f"study {study!r} was written by a newer surefoot (format {newest}; this one reads up to {VERSION}): "
            f"upgrade surefoot to go on with it"
        )
    return events


def _only_readable(file: Path) -> bool:
    log = file.with_name(file.name + "-wal")
    return file.exists() and not os.access(file, os.W_OK) and not (log.exists() and log.stat().st_size)


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver leaves transactions to `_begin`
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: sa.Connection) -> None:
    if begin := connection.get_execution_options().get("surefoot_begin", "BEGIN"):
        connection.exec_driver_sql(begin)


def broken_link(events: Sequence[Event]) -> tuple[int, str] | None:
    """The first event that does not hold in the chain, and why; None where all do."""
    hash_, study = ORIGIN, events[0].study if events else ""
    for seq, event in enumerate(events, 1):
        if event.seq != seq or event.study != study:
            return seq, f"event {seq} is missing: number {event.seq} stands in its place"
        if event.prev != hash_:
            return seq, f"event {seq} does not follow the one before it: the hashes differ"
        if event.seal() != event.hash:
            return seq, f"event {seq} was changed: its content does not have its hash"
        hash_ = event.hash
    return None
