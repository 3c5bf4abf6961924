"""Where jobs are played: here, in processes of this machine, on a Dask cluster, on a Ray cluster.

Each takes jobs and gives futures. What was lost with a worker is played again by whoever asks; it comes out the same.
"""

from __future__ import annotations

import os
import pickle
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .checks import SurefootError
from .play import Job, Played, play

PATIENCE = 300  # seconds that a cluster may be away before its parts are given up


class Lost(Exception):
    """What a job becomes when its worker is gone."""


class Workers:
    """So many jobs at a time (`slots`), so many of them played (`hands`); a job's future may raise Lost."""

    slots: int = 1
    hands: int = 1

    def submit(self, job: Job) -> Future[Played]:
        raise NotImplementedError

    def shares(self) -> dict[int, float]:
        """Of jobs that are being played, by their future's id: the share that is done, where that can be seen."""
        return {}

    def close(self) -> None:
        """End them at once, whatever they do."""


class Here(Workers):
    """This process."""

    def __init__(self, tick: Callable[[float], None]) -> None:
        self.tick = tick

    def submit(self, job: Job) -> Future[Played]:
        future: Future[Played] = Future()
        future.set_result(play(job, self.tick))
        return future


@dataclass
class _Process:
    """A worker process with an executor of its own, so that its death is nobody else's."""

    file: Path
    executor: Any = None
    future: Any = None

    def begin(self, anew: bool) -> Any:
        if anew:
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context

            self.executor = ProcessPoolExecutor(1, get_context("spawn"), _quiet)
        return self.executor


class Local(Workers):
    """Processes of this machine. Designs and curves may be written anywhere, in a notebook too (cloudpickle)."""

    def __init__(self, count: int) -> None:
        import tempfile  # only here: it takes long to import

        self.slots = self.hands = count
        self.folder = tempfile.TemporaryDirectory(prefix="surefoot-")  # where workers say how far they are
        self.all = [_Process(Path(self.folder.name) / str(k)) for k in range(count)]

    def submit(self, job: Job) -> Future[Played]:
        import cloudpickle

        one = next(p for p in self.all if p.future is None or p.future.done())
        one.file.write_bytes(b"")
        anew = one.executor is None or (one.future is not None and _broken(one.future))
        with _no_main():
            try:
                one.future = one.begin(anew).submit(_in_worker, cloudpickle.dumps(job), str(one.file))
            except BrokenExecutor:  # it was killed while it had nothing to do
                one.future = one.begin(True).submit(_in_worker, cloudpickle.dumps(job), str(one.file))
        return _translated(one.future)

    def shares(self) -> dict[int, float]:
        found = {}
        for one in self.all:
            with suppress(OSError, ValueError):
                if one.future is not None and not one.future.done() and (data := one.file.read_bytes()):
                    found[id(one.future.outer)] = float(data)
        return found

    def close(self) -> None:
        for one in self.all:
            if one.executor is not None:
                watcher = one.executor._executor_manager_thread
                for process in list((one.executor._processes or {}).values()):
                    process.terminate()
                one.executor.shutdown(wait=False, cancel_futures=True)
                if watcher is not None:  # Python would wake it at its end, when its pipe may be closed
                    watcher.join(5.0)
        self.folder.cleanup()


def _quiet() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers


@contextmanager
def _no_main() -> Iterator[None]:
    """A worker does not read the script that it was started from: that would start it again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _in_worker(job: bytes, file: str) -> Played:
    said = time.monotonic()

    def tick(share: float) -> None:
        nonlocal said
        if time.monotonic() > said + 0.3:
            said = time.monotonic()
            Path(file).write_text(f"{share:.4f}")

    return play(pickle.loads(job), tick)


def _broken(future: Any) -> bool:
    return not future.cancelled() and future.exception() is not None


def _translated(inner: Any) -> Future[Played]:
    """The future with a lost worker as Lost."""
    outer: Future[Played] = Future()
    inner.outer = outer

    def done(it: Any) -> None:
        error = CancelledError() if it.cancelled() else it.exception()
        if error is None:
            outer.set_result(it.result())
        else:
            outer.set_exception(Lost(str(error)) if _is_loss(error) else error)

    inner.add_done_callback(done)
    return outer


GONE = ("BrokenProcessPool", "TerminatedWorkerError", "KilledWorker", "CommClosedError", "CancelledError",
        "FutureCancelledError", "ConnectionError", "WorkerCrashedError", "NodeDiedError", "RaySystemError",
        "RayActorError", "OwnerDiedError", "ObjectLostError", "StreamLostError", "ClientClosed")  # fmt: skip


def _is_loss(error: BaseException) -> bool:
    return any(kind.__name__ in GONE for kind in type(error).__mro__) or isinstance(error, (OSError, TimeoutError))


# Clusters


def versions() -> dict[str, str]:
    """What must be the same everywhere for the same numbers."""
    from . import __version__  # the package is not whole yet when this is read

    return {"Python": platform.python_version(), "NumPy": np.__version__, "surefoot": __version__}


def _ask() -> Callable[[], dict[str, str]]:
    """A function that a worker can run whether or not it has surefoot."""

    def ask() -> dict[str, str]:
        import importlib
        import platform

        found = {"Python": platform.python_version()}
        for name, module in (("NumPy", "numpy"), ("surefoot", "surefoot")):
            try:
                found[name] = importlib.import_module(module).__version__
            except ImportError:
                found[name] = "none"
        return found

    return ask


def agree(theirs: dict[str, dict[str, str]]) -> None:
    """Refuse a cluster on which anything else would come out, or nothing."""
    mine = versions()
    for worker, has in theirs.items():
        if wrong := [f"{key} {has.get(key, 'none')}, here {mine[key]}" for key in mine if has.get(key) != mine[key]]:
            raise SurefootError(
                f"worker {worker} has {'; '.join(wrong)}: the same numbers need the same versions everywhere. Install "
                f"surefoot=={mine['surefoot']} numpy=={mine['NumPy']} there, for Python {mine['Python']}"
            )


class Dask(Workers):
    """A Dask cluster by its scheduler's address. A scheduler that comes back is found again."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            raise SurefootError(f"{address} needs Dask: pip install 'surefoot[dask]'") from None
        self.address, self.distributed = address, distributed
        self.client: Any = None
        self.out: dict[Future[Played], Any] = {}
        self._connect(30)

    def _connect(self, patience: float) -> None:
        until = time.monotonic() + patience
        while True:
            try:
                self.client = self.distributed.Client(self.address, timeout=10, set_as_default=False)
                self.client.wait_for_workers(1, timeout=max(until - time.monotonic(), 1))
                theirs = self.client.run(_ask())
                break
            except (OSError, TimeoutError) as error:
                if time.monotonic() > until:
                    raise SurefootError(
                        f"no Dask workers at {self.address} for {patience:.0f} seconds: {error}. Start them with `dask "
                        "scheduler` and `dask worker ADDRESS --nthreads 1`"
                    ) from None
                time.sleep(0.5)
        agree(theirs)
        self.hands = max(sum(self.client.nthreads().values()), 1)
        self.slots = 2 * self.hands  # one that is played, and one that waits

    def submit(self, job: Job) -> Future[Played]:
        if self.client is None or self.client.status != "running":
            self._connect(PATIENCE)
        outer: Future[Played] = Future()
        inner = self.out[outer] = self.client.submit(play, job, pure=False, retries=10)
        inner.add_done_callback(lambda _: self._settle(outer))
        return outer

    def _settle(self, outer: Future[Played]) -> None:
        if (inner := self.out.pop(outer, None)) is None:  # by the other of the two that call this
            return
        try:
            outer.set_result(inner.result(timeout=60))
        except BaseException as error:
            outer.set_exception(Lost(str(error)) if _is_loss(error) else error)

    def shares(self) -> dict[int, float]:
        """Nothing can be seen of jobs that are being played; those that will not come are settled."""
        if self.client.status not in ("running", "connecting"):
            for outer in list(self.out):
                self._settle(outer)
        return {}

    def close(self) -> None:
        with suppress(Exception):
            self.client.close(timeout=1)


class Ray(Workers):
    """A Ray cluster by its address, `ray://host:10001`."""

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ImportError:
            raise SurefootError(f"{address} needs Ray: pip install 'surefoot[ray]'") from None
        self.ray, self.address = ray, address
        self._connect()

    def _connect(self) -> None:  # with Ray
        ray = self.ray
        try:
            ray.init(self.address, ignore_reinit_error=True, log_to_driver=False, logging_level="ERROR")
        except ImportError:
            raise SurefootError(f"{self.address} needs Ray's client too: pip install 'surefoot[ray]'") from None
        except (OSError, RuntimeError, ValueError) as error:
            raise SurefootError(f"no Ray cluster at {self.address}: {error}") from None
        self.play = ray.remote(max_retries=10, num_cpus=1)(play)
        self.hands = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        self.slots = 2 * self.hands
        agree({"of Ray": ray.get(ray.remote(_ask()).remote())})

    def submit(self, job: Job) -> Future[Played]:  # with Ray
        if not self.ray.is_initialized():
            self._connect()
        return _translated(self.play.remote(job).future())

    def close(self) -> None:  # with Ray
        with suppress(Exception):
            self.ray.shutdown()


def open_workers(count: int, cluster: str | None, tick: Callable[[float], None]) -> Workers:
    """Processes, or a cluster by its address."""
    if isinstance(count, bool) or not isinstance(count, int) or (count < 1 and count != -1):
        raise SurefootError(f"workers must be a whole number of at least 1 (or -1 for every core); got {count!r}")
    if cluster is None:
        count = os.cpu_count() or 1 if count == -1 else count
        return Local(count) if count > 1 else Here(tick)
    if count != 1:
        raise SurefootError("workers are processes of this machine, a cluster has its own: give one of the two")
    kind, known = cluster.split("://")[0], {"tcp": Dask, "tls": Dask, "ray": Ray}
    if "://" not in cluster or kind not in known:
        raise SurefootError(
            f"a cluster is tcp://HOST:PORT or tls://HOST:PORT (Dask), or ray://HOST:PORT; got {cluster!r}"
        )
    made: Workers = known[kind](cluster)
    return made
