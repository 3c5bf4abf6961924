"""The same numbers from one core, two processes and a cluster, whoever is killed on the way."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import SurefootError, case, make, simulate
from surefoot.results import Result
from surefoot.simulate import Run, simulate_all
from surefoot.workers import agree, open_workers, versions


class Small(type(make("safebai-linear"))):  # type: ignore[misc]
    """In small parts, so that a few trials make several."""

    chunk = 16


def run(trials: int = 480, keep: bool = True) -> Run:
    return Run(*case("paper-linear", 3), Small(), trials, 7, keep=keep)


def assert_same(one: Result, two: Result) -> None:
    assert one.sums.to_dict() == two.sums.to_dict()


def kill_one(found: list[int]) -> Any:
    """A sink that kills a process when the first trials are back."""
    rows = list[Any]()

    def sink(run: Run, columns: dict[str, Any]) -> None:
        rows.append(columns["pulls"])
        if found:
            os.kill(found.pop(), signal.SIGKILL)

    return sink, rows


def test_a_killed_process_costs_its_own_part() -> None:
    victim, rows = list[int](), list[Any]()

    def sink(run: Run, columns: dict[str, Any]) -> None:
        rows.append(columns["pulls"])
        if not victim:
            victim.append(multiprocessing.active_children()[0].pid or 0)
            os.kill(victim[0], signal.SIGKILL)

    (many,) = simulate_all([run()], workers=2, progress=False, sink=sink)
    one = simulate(*case("paper-linear", 3), Small(), 480, 7)
    assert victim
    assert_same(one, many)
    np.testing.assert_array_equal(np.concatenate(rows), one.pulls)


class Fatal(Small):
    def plan(self, state: Any, u: Any) -> Any:
        if len(state.pulls) > 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().plan(state, u)


def test_a_part_that_kills_every_worker_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["surefoot.simulate"], "TRIES", 2)
    with pytest.raises(SurefootError, match=r"trials \d+ to \d+ were lost with their worker 2 times"):
        simulate(*case("paper-linear", 3), Fatal(), 32, workers=2, progress=False)


def start(*words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "dask", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV, cwd=ROOT)


ROOT = Path(__file__).parent.parent
ENV = {**os.environ, "COVERAGE_PROCESS_CONFIG": "", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[int]]]:
    """A scheduler and two workers, processes of their own. Its address, and the workers' pids."""
    distributed = pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    told = "--scheduler-file", str(file)
    all_ = [start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *told)]
    try:
        all_ += [
            start("worker", *told, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder))
            for _ in range(2)
        ]
        while not file.exists() or not file.read_text().endswith("}"):
            assert all_[0].poll() is None, "the scheduler has ended"
            time.sleep(0.1)
        with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(2)
            address = client.scheduler.address
        yield address, [worker.pid for worker in all_[1:]]
    finally:
        for process in all_:
            process.kill()
            process.wait()


@pytest.mark.filterwarnings("ignore")
def test_dask_gives_the_same_numbers_with_a_worker_killed(cluster: tuple[str, list[int]]) -> None:
    address, pids = cluster
    one = simulate(*case("paper-linear", 3), Small(), 480, 7)
    sink, rows = kill_one(pids[:1])
    (many,) = simulate_all([run()], cluster=address, progress=False, sink=sink)
    assert_same(one, many)
    np.testing.assert_array_equal(np.concatenate(rows), one.pulls)


def test_versions_are_compared_first() -> None:
    agree({"tcp://10.0.0.1:4000": versions()})
    other = versions() | {"NumPy": "1.0"}
    with pytest.raises(SurefootError, match=r"worker tcp://10.0.0.1:4000 has NumPy 1.0, here .*Install surefoot=="):
        agree({"tcp://10.0.0.1:4000": other})
    with pytest.raises(SurefootError, match="surefoot none"):
        agree({"w": {"Python": versions()["Python"], "NumPy": versions()["NumPy"]}})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, "localhost:8786"), "a cluster is tcp://HOST:PORT"),
        ((1, "http://localhost"), "a cluster is tcp://HOST:PORT"),
        ((2, "tcp://localhost:1"), "give one of the two"),
        ((0, None), "workers must be a whole number"),
    ],
)
def test_refuses(given: tuple[int, str | None], message: str) -> None:
    with pytest.raises(SurefootError, match=message):
        open_workers(*given, lambda share: None)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, address in (("distributed", "tcp://localhost:1"), ("ray", "ray://localhost:1")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(SurefootError, match=r"pip install 'surefoot\[(dask|ray)\]'"):
            open_workers(1, address, lambda share: None)
