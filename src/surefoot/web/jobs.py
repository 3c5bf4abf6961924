"""Long work in processes of its own: so many at a time, so long, so much memory; with progress, and an end on demand.

A job is a JSON line to `python -m surefoot.web.work` and JSON lines back: how far it is, then what came of it. Killing
the process is always safe: it writes nothing that lasts.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from ..problem import SurefootError

AT_ONCE, WAITING, KEPT = 2, 20, 100
LONGEST = 600.0  # seconds of a job


@dataclass
class Job:
    id: str
    kind: str
    owner: str
    about: str  # the study, or nothing
    asked: dict[str, Any]
    state: str = "waiting"  # running, done, failed, cancelled
    progress: float = 0.0
    words: str = ""
    result: Any = None
    began: float = field(default_factory=time.monotonic)
    process: subprocess.Popen[str] | None = None
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def live(self) -> bool:
        return self.state in ("waiting", "running")


class Jobs:
    def __init__(self, spare: bool = False) -> None:
        self.jobs: OrderedDict[str, Job] = OrderedDict()
        self.lock = threading.Lock()
        self.free = threading.Semaphore(AT_ONCE)
        self.spare, self.warm = spare, list[subprocess.Popen[str]]()  # one that has done its imports already
        self.closed = False

    def start(self, kind: str, owner: str, about: str = "", **asked: Any) -> Job:
        job = Job(secrets.token_urlsafe(12), kind, owner, about, asked)
        with self.lock:
            if sum(j.live for j in self.jobs.values()) >= WAITING:
                raise SurefootError("too much is being worked out already: try again in a minute, or cancel some")
            if sum(j.live and j.owner == owner for j in self.jobs.values()) >= 4:
                raise SurefootError("four things are being worked out for you already: cancel one, or wait")
            self.jobs[job.id] = job
            while len(self.jobs) > KEPT:
                old = next((key for key, j in self.jobs.items() if not j.live), None)
                if old is None:
                    break
                del self.jobs[old]
        threading.Thread(target=self._run, args=(job,), daemon=True).start()
        return job

    def wait(self, job: Job, most: float = 60.0) -> Any:
        """The result of a job that is short; raises what it raised."""
        if not job.over.wait(most):
            self.cancel(job)
            raise SurefootError(f"this took longer than {most:.0f} seconds, and was given up")
        if job.state != "done":
            raise SurefootError(job.words or "this was cancelled")
        return job.result

    def find(self, id: str, owner: str) -> Job | None:
        job = self.jobs.get(id)
        return job if job and job.owner == owner else None

    def cancel(self, job: Job) -> None:
        with self.lock:
            if job.live:
                job.state, job.words = "cancelled", "cancelled"
        if job.process:
            job.process.kill()

    def close(self) -> None:
        self.closed = True
        for job in list(self.jobs.values()):
            self.cancel(job)
        for process in self.warm:
            process.kill()
            process.wait()

    def _process(self) -> subprocess.Popen[str]:
        with self.lock:
            process = self.warm.pop() if self.warm else None
        if process is None or process.poll() is not None:
            process = _spawn()
        if self.spare and not self.closed:
            self.warm.append(_spawn())
        return process

    def _run(self, job: Job) -> None:
        with self.free:
            try:
                if job.live:
                    self._work(job)
            finally:
                job.over.set()

    def _work(self, job: Job) -> None:
        process = job.process = self._process()
        if job.state == "waiting":
            job.state = "running"
        else:
            process.kill()
        timer = threading.Timer(LONGEST, self._too_long, (job,))
        timer.daemon = True
        timer.start()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps({"kind": job.kind, **job.asked}) + "\n")
            process.stdin.close()
            for text in process.stdout:
                self._heard(job, json.loads(text))
        except (OSError, ValueError):
            pass
        finally:
            timer.cancel()
            process.stdout.close()
            process.wait()
            if job.state == "running":
                job.state, job.words = "failed", "it ended without a word: it may have needed too much memory"

    def _heard(self, job: Job, said: dict[str, Any]) -> None:
        if not job.live:
            return
        if "progress" in said:
            job.progress, job.words = float(said["progress"]), str(said.get("words", ""))
        elif "error" in said:
            job.state, job.words = "failed", str(said["error"])
        else:
            job.result, job.progress, job.state = said["result"], 1.0, "done"

    def _too_long(self, job: Job) -> None:
        if job.live:
            job.state, job.words = "failed", f"given up after {LONGEST / 60:.0f} minutes"
        if job.process:
            job.process.kill()


def _spawn() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "surefoot.web.work"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
        start_new_session=True,
    )
