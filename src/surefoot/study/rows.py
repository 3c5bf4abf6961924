"""The rows of a journal: how new events get their place and their seal; and of one in a database, its tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import Any, Protocol

import sqlalchemy as sa

from ..problem import SurefootError
from .checker import ORIGIN, VERSION, Event

Payload = Mapping[str, Any]


def dumps(payload: Payload) -> str:
    return json.dumps(payload, allow_nan=False, separators=(",", ":"))


metadata = sa.MetaData()
events = sa.Table(
    "surefoot_events",
    metadata,
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

caches = sa.Table(
    "surefoot_caches",
    sa.MetaData(),
    sa.Column("study", sa.String(200), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

_LAST = (
    sa.select(events.c.seq, events.c.hash, events.c.at)
    .where(events.c.study == sa.bindparam("name"))
    .order_by(events.c.seq.desc())
    .limit(1)
)


def now() -> datetime:
    return datetime.now(UTC)


def stamp() -> str:
    return now().isoformat(timespec="microseconds")


def last(connection: sa.Connection, study: str) -> Any:
    return connection.execute(_LAST, {"name": study}).first()


def one(connection: sa.Connection, study: str, seq: int) -> Event | None:
    row = connection.execute(sa.select(events).where((events.c.study == study) & (events.c.seq == seq))).first()
    return Event._make(row) if row else None


Opened = Callable[[], AbstractContextManager[sa.Connection]]


def read(opened: Opened, study: str, after: int, most: int = 10_000) -> Iterator[Event]:
    """Some at a time: a long study is not to be in memory twice. Who stops half way leaves no connection open."""
    c = events.c
    while True:
        some = sa.select(events).where((c.study == study) & (c.seq > after)).order_by(c.seq).limit(most)
        with opened() as connection:
            rows = connection.execute(some).all()
        yield from map(Event._make, rows)
        if len(rows) < most:
            return
        after = rows[-1].seq


def understood(event: Event) -> Event:
    """What is not understood must not be guessed at."""
    if event.version == VERSION:
        return event
    age, what = ("a newer", "upgrade surefoot") if event.version > VERSION else ("an older", "use that one")
    raise SurefootError(
        f"study {event.study!r} was written by {age} surefoot (format {event.version}; this one reads "
        f"{VERSION}): {what} to go on with it"
    )


class Source(Protocol):
    """Where a transaction reads the study that it writes to: a journal, or one connection to its database."""

    def head(self, study: str) -> Any: ...
    def events(self, study: str, after: int = 0) -> Iterator[Event]: ...
    def event(self, study: str, seq: int) -> Event | None: ...
    def actors(self, study: str) -> set[str]: ...


class Rows:
    """A journal's rows as one connection sees them."""

    def __init__(self, connection: sa.Connection):
        self.connection = connection

    def head(self, study: str) -> Any:
        return last(self.connection, study)

    def events(self, study: str, after: int = 0) -> Iterator[Event]:
        return read(lambda: nullcontext(self.connection), study, after)

    def event(self, study: str, seq: int) -> Event | None:
        return one(self.connection, study, seq)

    def actors(self, study: str) -> set[str]:
        actors = sa.select(events.c.actor).where(events.c.study == study).distinct()
        return set(self.connection.execute(actors).scalars())


class Transaction:
    """What may be done with one study while its lock is held. Nothing is written before the transaction ends."""

    def __init__(self, source: Source, study: str):
        self.source, self.study = source, study
        self.added: list[Event] = []
        self.seq: int
        self.hash: str
        self.at: str
        self.seq, self.hash, self.at = source.head(study) or (0, ORIGIN, "")

    def read(self, after: int = 0) -> Iterator[Event]:
        return map(understood, self.source.events(self.study, after)) if self.seq > after else iter(())

    each = read

    def event(self, seq: int) -> Event | None:
        return self.source.event(self.study, seq)

    def actors(self) -> set[str]:
        """All who ever did something in the study."""
        return self.source.actors(self.study)

    def add(
        self, kind: str, payload: Payload, actor: str, reason: str | None = None, key: str | None = None, at: str = ""
    ) -> Event:
        at = at or max(stamp(), self.at)
        event = Event(
            self.study, self.seq + 1, at, actor, kind, VERSION, reason, key, dumps(payload), self.hash, hash=""
        )
        return self.copy(event._replace(hash=event.seal()))

    def clock_back(self) -> str:
        """The time, if that is before that of the last event; else nothing."""
        return at if (at := stamp()) < self.at else ""

    def copy(self, event: Event) -> Event:
        """Add an event that has its place and its hash already."""
        self.added.append(event)
        self.seq, self.hash, self.at = event.seq, event.hash, event.at
        return event
