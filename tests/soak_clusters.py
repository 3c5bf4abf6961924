"""The same numbers from one core, a Ray and a Dask cluster, a worker killed on the way and the Dask scheduler started
again in the middle: python -m tests.soak_clusters [ray] [dask]. Part of `make soak`: it takes a minute or two."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from surefoot import case, make
from surefoot.simulate import Run, simulate_all

ROOT = Path(__file__).parent.parent
RUN = Run(*case("paper-drug", 5), make("safebai-monotonic"), 12_000, 3, keep=False)
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}


def expect(cluster: str, meanwhile: Any) -> None:
    """The numbers of the cluster while something happens to it, against those of this process."""
    one = simulate_all([RUN], progress=False)[0].sums.to_dict()
    thread = threading.Thread(target=meanwhile, daemon=True)
    thread.start()
    many = simulate_all([RUN], cluster=cluster, progress=False)[0].sums.to_dict()
    thread.join()
    assert one == many, f"{cluster} gave other numbers"
    print(f"{cluster}: {RUN.trials:,} trials, the same numbers", flush=True)


def ray() -> None:
    """A head with two workers, in a process group of its own; one of its worker processes is killed."""
    command = ["ray", "start", "--head", "--num-cpus=2", "--port=6390", "--ray-client-server-port=10001"]
    command += ["--include-dashboard=false", "--disable-usage-stats"]
    tool = Path(sys.executable).with_name("ray")
    if importlib.util.find_spec("grpc") is None:
        print("Ray: not tried, its client is not installed: pip install 'surefoot[ray]'", flush=True)
        return
    subprocess.run([tool, *command[1:]], check=True, **QUIET)

    def kill() -> None:
        busy: list[str] = []
        for _ in range(200):
            found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
            busy = [line.split()[0] for line in found.splitlines() if "ray::play" in line]
            if busy:
                os.kill(int(busy[0]), signal.SIGKILL)
                break
            time.sleep(0.1)
        assert busy, "nobody was at work: it was too quick"
        print(f"Ray: killed {busy[0]}", flush=True)

    try:
        expect("ray://127.0.0.1:10001", kill)
    finally:
        subprocess.run([tool, "stop", "--force"], check=True, **QUIET)


def dask() -> None:
    """A worker is killed, then the scheduler is killed and started again at its address."""
    with tempfile.TemporaryDirectory() as folder:
        start = [sys.executable, "-m", "dask"]
        mine = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", folder]
        head = [*start, "scheduler", "--port", "18787", "--no-dashboard"]
        address = "tcp://127.0.0.1:18787"
        all_ = [subprocess.Popen(head, **QUIET)]
        all_ += [subprocess.Popen([*start, "worker", address, *mine], **QUIET) for _ in range(2)]
        time.sleep(5)

        def kill() -> None:
            time.sleep(8)
            all_[1].kill()
            time.sleep(2)
            all_[0].kill()
            all_[0].wait()
            time.sleep(2)
            all_.append(subprocess.Popen(head, **QUIET))
            all_.append(subprocess.Popen([*start, "worker", address, *mine], **QUIET))
            print("Dask: a worker killed, the scheduler started again", flush=True)

        try:
            expect(address, kill)
        finally:
            for process in all_:
                process.kill()


if __name__ == "__main__":
    for name in sys.argv[1:] or ["dask", "ray"]:
        {"ray": ray, "dask": dask}[name]()
