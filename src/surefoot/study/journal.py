"""The journal: events in order, each sealed with the hash of the one before it; only ever added to.

Ours lives in SQLite or PostgreSQL (see `sql`). A journal of another kind is a subclass with a `scheme` that says four
things: which studies there are, their events, how to be alone with one, and how to add to it. Nothing else is ever
stored: what a study knows is the fold of its events (see `fold`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from ..checks import SurefootError
from ..registry import Registry, a_class
from .checker import ORIGIN, Event
from .rows import Transaction, understood

UNKNOWN = "whether it was written is unknown: send it again, it will not double"
__all__ = ["JOURNALS", "ORIGIN", "Event", "Journal"]


class Journal:
    """`Journal(url)` is one of the kind that the address names: `sqlite:///trial.db` or the path of a file,
    `postgresql+psycopg://..`, or the scheme of a journal that is registered (`surefoot.register`, or an entry point of
    the group `surefoot.journals`)."""

    scheme: ClassVar[str] = ""
    file: Path | None = None  # where it is one
    archive = False  # may only be read
    engine: Any = None  # of the database, where it is one

    def __new__(cls, url: str | Path, **options: Any) -> Journal:
        if cls is not Journal:
            return super().__new__(cls)
        from .sql import SqlJournal

        scheme = str(url).partition("://")[0] if "://" in str(url) else ""
        ours = scheme.partition("+")[0] in ("", "sqlite", "postgresql") or scheme not in JOURNALS
        return super().__new__(SqlJournal if ours else JOURNALS[scheme])

    def __init__(self, url: str | Path, *, create: bool = False):
        """Open it, or make a new one; where it is missing and not to be made, say so."""
        self.url = self.shown = str(url)

    # What each kind says
    def names(self) -> list[str]:
        """The studies in it, in order."""
        raise NotImplementedError

    def events(self, study: str, after: int = 0) -> Iterator[Event]:
        """The events of a study after this sequence number, in order; those that are written for good, and no wait for
        a writer."""
        raise NotImplementedError

    def locked(self, study: str) -> AbstractContextManager[None]:
        """Nobody else adds to this study, from any thread or process, until the block ends."""
        raise NotImplementedError

    def append(self, events: Sequence[Event]) -> None:
        """Add events to the study that is locked: all of them are kept for good when this returns, or none."""
        raise NotImplementedError

    # What follows from it; a kind that can do it quicker does
    def each(self, study: str, after: int = 0) -> Iterator[Event]:
        """The events after one, so that a long study is not in memory as a whole."""
        return map(understood, self.events(study, after))

    def read(self, study: str, after: int = 0) -> Sequence[Event]:
        return list(self.each(study, after))

    def head(self, study: str) -> tuple[int, str, str] | None:
        """Number, hash and time of the last event. It may be asked often."""
        found = deque(self.events(study), 1)
        return (found[0].seq, found[0].hash, found[0].at) if found else None

    def event(self, study: str, seq: int) -> Event | None:
        return next((e for e in self.events(study, seq - 1) if e.seq == seq), None)

    def actors(self, study: str) -> set[str]:
        return {e.actor for e in self.events(study)}

    def page(
        self, study: str, before: int | None = None, most: int = 100, kind: str | None = None, words: str | None = None
    ) -> list[Event]:
        """The last events before one, newest first; of a kind, with words in the actor, the reason or the content."""
        found = [e for e in self.events(study) if (before is None or e.seq < before) and kind in (None, e.kind)]
        said = [e for e in found if not words or words.casefold() in f"{e.actor} {e.reason} {e.payload}".casefold()]
        return said[: -most - 1 : -1]

    def counts(self, study: str, after: int = 0) -> dict[str, int]:
        """How many events of each kind came after one."""
        return dict(Counter(e.kind for e in self.events(study, after)))

    def kept(self, study: str) -> bytes | None:
        """The cache of a study (see `cache`); none is no loss but of time."""
        return None

    def keep(self, study: str, body: bytes) -> None:
        """Replace it."""

    @contextmanager
    def writing(self, study: str) -> Iterator[Transaction]:
        """One transaction on a study: whoever holds it is alone, and all of it is kept or nothing."""
        with self.locked(study):
            transaction = Transaction(self, study)
            yield transaction
            new = [e.key for e in transaction.added if e.key is not None]
            old = [e.key for e in self.events(study) if e.key in new] if new else []
            if len({*new, *old}) < len(new) + len(old):
                raise SurefootError("a key was used in this study before; nothing was changed")
            if transaction.added:
                self.append(transaction.added)

    def close(self) -> None:
        """Let go of files and connections."""


JOURNALS: Registry[type[Journal]] = Registry("journals", {}, a_class(Journal), "scheme")


def copied(journal: Journal, events: Sequence[Event]) -> Journal:
    with journal.writing(events[0].study) as transaction:
        if transaction.seq:
            raise SurefootError(f"there is a study {events[0].study!r} in {journal.shown} already")
        for event in events:
            transaction.copy(event)
    return journal
