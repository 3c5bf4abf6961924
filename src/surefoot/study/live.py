"""A view that is kept in step with its journal: caught up with before each command, and added to in one transaction."""

from __future__ import annotations

import gc
import getpass
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ..checks import NAME, SurefootError, line
from . import cache
from .fold import View
from .journal import Journal
from .published import absent, digest_of
from .rows import Transaction
from .verify import WRONG

Seen = TypeVar("Seen")


class Unsound(SurefootError):
    """The journal does not hold."""


@dataclass(eq=False)
class Brought:
    """A reading that somebody wants written, and what became of it."""

    row: Mapping[str, Any]
    who: str
    done: bool = False
    refused: SurefootError | None = None


class Live:
    """What the commands of a study have in common. Any number of threads and processes may use it."""

    def __init__(self, journal: Journal, name: str, actor: str | None = None):
        self.journal, self.name, self.actor = journal, name, who_is(actor)
        self._view, self._lock = View(), threading.RLock()
        self._now: Transaction  # while a command writes
        self._brought: deque[Brought] = deque()  # readings of threads that wait for the one that writes
        self._kept = self._folded = 0  # the event that the cache stands at, and how many cohorts are in it
        self._passed: tuple[Any, Any] = (None, None)  # the open cohort and the evidence that it was last checked by

    @property
    def view(self) -> View:
        """What the journal amounts to now. Not for use by several threads at once: the methods below are."""
        with self._lock:
            self._catch_up(self.journal)
            self._remember()
            return self._view

    def look(self, at: Callable[[View], Seen]) -> Seen:
        """What a function sees in the view, while no other thread changes it. It must be quick, and change nothing."""
        with self._lock:
            return at(self.view)

    def _catch_up(self, source: Any) -> None:
        """Take in what is new; each event's seal is checked, and that it is the next."""
        of = (self.name,) if source is self.journal else ()
        if not of and self._view.seq and (source.seq, source.hash) == (self._view.seq, self._view.hash):
            return
        try:
            with no_collecting():
                if not self._view.seq:
                    self._view = self._remembered(source, *of) or View()
                self._view.follow_up(source.each(*of, max(self._view.seq - 1, 0)))
        except BaseException as error:
            self._view = View()
            if not isinstance(error, WRONG) or type(error) is SurefootError:
                raise
            raise Unsound(f"the journal does not hold: {error}; see verify") from error

    def _remembered(self, source: Any, *of: str) -> View | None:
        """From the cache, if the event that it stands at, the first and the one of the open cohort are in the journal
        with their hashes: what is handed out is what the journal says."""
        kept = self.journal.kept(self.name)
        at = cache.key(kept) if kept else None
        first = source.event(*of, 1) if at else None
        if not kept or not at or not first:
            return None
        last, view = source.event(*of, at[0]), cache.load(kept, first)
        if not view or not last or (view.seq, view.hash, last.hash) != (*at, at[1]) or view.created != first:
            return None
        given = view.open
        opened = source.event(*of, given.seq) if given else None
        for event in filter(None, (first, last, opened)):
            if event.seal() != event.hash:
                return None
        if given and (not opened or [opened.data[k] for k in ("dose", "n")] != [given.dose, given.n]):
            return None
        self._kept, self._folded = view.seq, view.done
        return view

    def _remember(self) -> None:
        """Keep a cache, where many events have come since the last; it is of no use without the policy's memory."""
        if not self._view.seq or absent(self._view.design):
            return
        more = self._view.done - self._folded  # each cohort is a decision, which takes longer than many readings
        if self._view.seq - self._kept >= cache.STEP or more >= max(cache.COHORTS, self._folded // 4):
            self._kept, self._folded = self._view.seq, self._view.done
            self.journal.keep(self.name, cache.dump(self._view))

    def _who(self, actor: str | None) -> str:
        return self.actor if actor is None else who_is(actor)

    @contextmanager
    def _writing(self, actor: str | None = None, doubtful: bool = False) -> Iterator[Callable[..., None]]:
        """One command: catch up with the journal, let the caller add events, add what follows from them.

        The view is only good if what was put into it is in the journal: else it is folded anew at the next use.
        """
        who, touched = self._who(actor), False
        with self._lock:
            try:
                with self.journal.writing(self.name) as transaction:
                    self._now = transaction
                    self._catch_up(transaction)
                    if self._view.seq and not doubtful:
                        self._sound(self._view)

                    def add(
                        kind: str, data: Mapping[str, Any], reason: str | None = None, key: str | None = None,
                        by: str = who,
                    ) -> None:  # fmt: skip
                        nonlocal touched
                        touched = True
                        if back := transaction.clock_back():
                            self._view.take(transaction.add("clock", {}, by, at=back))
                        self._view.take(transaction.add(kind, data, by, reason, key))

                    yield add
                    if transaction.added:
                        self._follow(add)
                self._remember()
            except BaseException:
                if touched:
                    self._view = View()
                raise

    def _follow(self, add: Callable[..., None]) -> None:
        """Add what the view calls for."""
        while follows := self._view.follow():
            add(*follows)

    def _bring(self, mine: Brought, write: Callable[[list[Brought]], None]) -> None:
        """Write a reading, and with it those that other threads have brought meanwhile: they wait for the disk once.
        Where that fails as a whole, each is written by itself."""
        self._brought.append(mine)
        with self._lock:
            batch = list[Brought]()
            while not mine.done and self._brought:
                batch.append(self._brought.popleft())
            if not mine.done:
                try:
                    write(batch if mine in batch else [mine])
                except BaseException:
                    if batch in ([], [mine]):
                        raise
                    write([mine])
        if mine.refused:
            raise mine.refused

    def _sound(self, view: View) -> None:
        """Nothing is handed out or taken in on evidence that is not the one that was published."""
        if doubt := self._doubt(view):
            raise SurefootError(f"study {self.name!r} can only be looked at: {doubt}")

    def _doubt(self, view: View) -> str | None:
        if missing := absent(view.design):
            return missing
        if view.trouble:
            return f"{view.trouble}; go on with the version that it was begun with ({_begun(view)})"
        if view.digest != digest_of(view.design):
            return (
                f"the module that holds the evidence ({view.setup['theorem']['name']}) is not the one that it was "
                f"begun with ({_begun(view)}); all {len(view.cohorts):,} cohorts come out the same: "
                f"adopt it with a reason"
            )
        given = view.open
        if given and not view.stale and self._passed != (given, view.theorem):
            if no := view.refusal(given.dose, given.n, given.stakes):
                return f"event {given.seq} opened a cohort that its readings do not certify: {no}"
            self._passed = given, view.theorem
        return None


def _begun(view: View) -> str:
    return f"surefoot {view.setup['versions']['surefoot']}"


@contextmanager
def no_collecting() -> Iterator[None]:
    """Leave garbage for later: a hundred thousand small objects are made and kept here, and none of them is garbage."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def who_is(actor: str | None) -> str:
    if actor is None:
        try:
            actor = getpass.getuser()
        except (OSError, KeyError):
            actor = "unknown"
    return line("actor", actor, NAME + 50)  # a name, and its role on the page
