"""A journal in a folder: a file a study, a line of JSON a transaction. `surefoot study create --db lines:///data/trial`."""

import fcntl
import json
import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, unquote

from surefoot import SurefootError
from surefoot.study.journal import Event, Journal

LOCKS: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)  # a lock on a file holds between processes only


class Lines(Journal):
    """For a folder on a disk of this machine. A line that was not written to its end never was."""

    scheme: ClassVar[str] = "lines"

    def __init__(self, url: str | Path, *, create: bool = False):
        super().__init__(url)
        self.folder = Path(str(url).partition("://")[2])
        if create:
            self.folder.mkdir(parents=True, exist_ok=True)
        elif not self.folder.is_dir():
            raise SurefootError(f"there is no folder {self.folder}: create a study in it first")

    def path(self, study: str) -> Path:
        return self.folder / f"{quote(study, safe='')}.jsonl"

    def names(self) -> list[str]:
        return sorted(unquote(path.stem) for path in self.folder.glob("*.jsonl") if path.stat().st_size)

    def events(self, study: str, after: int = 0) -> Iterator[Event]:
        path = self.path(study)
        if not path.exists():
            return
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):
                    yield from (event for row in json.loads(line) if (event := Event(*row)).seq > after)

    @contextmanager
    def locked(self, study: str) -> Iterator[None]:
        path = self.path(study)
        with LOCKS[path.resolve()], path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # gone with the process, however it ends
            yield

    def append(self, events: Sequence[Event]) -> None:
        with self.path(events[0].study).open("r+b") as file:
            whole = file.read().rfind(b"\n") + 1  # what a process that was killed left behind it goes
            file.truncate(whole)
            file.seek(whole)
            file.write(json.dumps([list(event) for event in events]).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
