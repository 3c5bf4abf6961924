"""The studies of a database, held open: each once, with what was last worked out of it.

A page never waits for the journal: its head is looked at a few times a second for all readers together, and what a page
shows is worked out at most once for a head, and less often where that takes long.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from anyio import to_thread

from ..study import Study
from ..study.journal import Journal
from .gate import Denied

OPEN = 64  # studies held open
OFTEN = 0.4  # seconds between two looks at a head


def name_of(part: str) -> str:
    for code, sign in (("~1", "/"), ("~3", "\\"), ("~2", "."), ("~0", "~")):
        part = part.replace(code, sign)
    return part


class Kept:
    """Something worked out of a study: for which head, when, and how long it took."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seq, self.at, self.took = -1, 0.0, 0.0
        self.value: Any = None

    def fresh(self, head: int) -> bool:
        """For this head, or not older than ten times what it takes to work it out."""
        old = time.monotonic() - self.at
        return self.seq == head or (self.seq >= 0 and old < min(max(1.0, 10 * self.took), 30))


class Hub:
    def __init__(self, url: str | Path):
        self.url = str(url)
        self.journal = Journal(url, create=True)
        self.lock = threading.Lock()
        self.open: OrderedDict[str, Study] = OrderedDict()
        self.heads: dict[str, tuple[float, tuple[int, str, str]]] = {}
        self.kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()

    def study(self, part: str) -> Study:
        return self.named(name_of(part))

    def named(self, name: str) -> Study:
        with self.lock:
            if name in self.open:
                self.open.move_to_end(name)
                return self.open[name]
        if self.journal.head(name) is None:
            raise Denied(404, "Not there", f"there is no study {name!r}")
        with self.lock:
            study = self.open.setdefault(name, Study(self.journal, name, "page"))
            while len(self.open) > OPEN:
                self.open.popitem(last=False)
        return study

    def head(self, name: str, now: bool = False) -> tuple[int, str, str]:
        """Number, hash and time of a study's last event, at most a moment old."""
        at, found = self.heads.get(name, (0.0, None))
        if now or found is None or time.monotonic() - at > OFTEN:
            found = self.journal.head(name)
            if found is None:
                raise Denied(404, "Not there", f"there is no study {name!r}")
            self.heads[name] = time.monotonic(), found
        return found

    def touched(self, name: str) -> None:
        """Something was done here: the next page shows it."""
        self.heads.pop(name, None)
        with self.lock:
            for key in [key for key in self.kept if key[0] == name]:
                del self.kept[key]  # whoever is at it works for the one that is gone

    def recent(self, part: str, what: str) -> tuple[Study, int, Any] | None:
        """What was worked out, where that needs no look at the journal: most readers of a board come by here."""
        name, now = name_of(part), time.monotonic()
        study, kept = self.open.get(name), self.kept.get((name, what))
        at, head = self.heads.get(name, (0.0, (0, "", "")))
        if study is None or kept is None or now - at > OFTEN or kept.seq < 0 or not kept.fresh(head[0]):
            return None
        return study, kept.seq, kept.value

    def worked_out(self, study: Study, what: str, how: Callable[[], Any]) -> tuple[int, Any]:
        """The value for the present head, or for one that is not older than ten times what it takes to work it out."""
        with self.lock:
            kept = self.kept.setdefault((study.name, what), Kept())
            self.kept.move_to_end((study.name, what))
            while len(self.kept) > 4 * OPEN:
                self.kept.popitem(last=False)
        head = self.head(study.name)[0]
        if kept.fresh(head):
            return kept.seq, kept.value
        if not kept.lock.acquire(blocking=kept.seq < 0):
            return kept.seq, kept.value  # somebody is at it
        try:
            if kept.seq != head or kept.seq < 0:
                began = time.monotonic()
                seq = self.head(study.name)[0]
                kept.value = how()
                kept.seq, kept.at, kept.took = seq, time.monotonic(), time.monotonic() - began
        finally:
            kept.lock.release()
        return kept.seq, kept.value


class Watchers:
    """Tells every open page when a study has new events: one look at the journal for all of them."""

    def __init__(self, hub: Hub):
        self.hub = hub
        self.watched: dict[str, set[asyncio.Queue[int]]] = {}
        self.task: asyncio.Task[None] | None = None

    async def changes(self, name: str, since: int) -> AsyncIterator[int | None]:
        """Heads as they come, from one that is after `since`; None every few seconds while nothing does."""
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        self.watched.setdefault(name, set()).add(queue)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._look())
        try:
            head = (await to_thread.run_sync(self.hub.head, name))[0]
            while True:
                if head > since:
                    since = head
                    yield head
                try:
                    head = await asyncio.wait_for(queue.get(), 5.0)
                except TimeoutError:
                    yield None
        finally:
            self.watched[name].discard(queue)
            if not self.watched[name]:
                del self.watched[name]

    async def _look(self) -> None:
        seen: dict[str, int] = {}
        while self.watched:
            for name in list(self.watched):
                try:
                    head = (await to_thread.run_sync(self.hub.head, name))[0]
                except Exception:  # the file is away for a moment: pages go on waiting
                    continue
                if seen.get(name) != head:
                    seen[name] = head
                    for queue in list(self.watched.get(name, ())):
                        if queue.full():
                            queue.get_nowait()
                        queue.put_nowait(head)
            await asyncio.sleep(0.5)
