"""The page under load: `python -m benchmarks.page [readings] [turns] [seconds]`.

Readers of the board look once a second, twice as often as an open page does; people enter one reading after another, in
processes of their own. Three ways take short turns, so that whatever else the machine does falls on all of them alike:
eight who tell on the database and no page in use; the same while fifty read; eight who tell through the server while
fifty read.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from surefoot import Study, case
from surefoot.study import simulated

READERS, WRITERS = 50, 8
WAYS = {"database": "telling, no page", "beside": "telling beside the page", "through": "telling through the page"}


def build(db: Path, readings: int) -> Study:
    """A study with so many readings, and a cohort that is long enough for all who enter."""
    problem, truth = case("tiny-gap", 5)
    study = Study.create(db, "big", problem, actor="bench", seed=1, watch="warn")
    told = 0
    while told < readings and (asked := study.ask()):
        told += study.tell_many(simulated(problem, truth, asked, 5))
    return study


def writer(where: str) -> None:
    """A process: on the database itself, or through a server (`url token`). A line in is so many seconds of work."""
    if where.startswith("http"):
        from surefoot import Client

        url, token = where.split()
        study: Any = Client(url, token, "big")
    else:
        study = Study.open(where, "big", actor="bench")
        study.status()
    print("ready", flush=True)
    for line in sys.stdin:
        took, until, mine = list[float](), time.monotonic() + float(line), list[Any]()
        while time.monotonic() < until:
            mine = mine or study.assign(10, f"site {os.getpid()}")
            if not mine:
                time.sleep(0.005)  # the others are at the last of a cohort
                continue
            began = time.perf_counter()
            study.tell(mine.pop().id, effect=0.1, harm=0.2)
            took.append(time.perf_counter() - began)
        if mine:
            study.give_back([a.id for a in mine], "the turn is over")
        print(json.dumps(took), flush=True)


class Writers:
    """Eight processes that wait for their turn."""

    def __init__(self, where: str):
        command = [sys.executable, "-m", "benchmarks.page", "writer", where]
        self.made = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(WRITERS)
        ]
        for one in self.made:
            assert one.stdout and one.stdout.readline().strip() == "ready"

    def turn(self, seconds: float) -> list[float]:
        """How long each reading took to tell."""
        for one in self.made:
            assert one.stdin
            one.stdin.write(f"{seconds}\n")
            one.stdin.flush()
        return [x for one in self.made if one.stdout for x in json.loads(one.stdout.readline())]

    def close(self) -> None:
        for one in self.made:
            one.communicate()


class Readers:
    """Fifty open pages: each asks for the board about once a second, as browsers do, while they are wanted."""

    def __init__(self, port: int, cookie: str):
        self.port, self.cookie, self.took = port, cookie, list[float]()
        self.wanted, self.over = threading.Event(), False
        self.threads = [threading.Thread(target=self.one, args=(k,), daemon=True) for k in range(READERS)]
        for thread in self.threads:
            thread.start()

    def one(self, k: int) -> None:
        while True:
            self.wanted.wait()
            if self.over:
                return
            far, tag = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60), ""
            time.sleep(k / READERS)
            while self.wanted.is_set() and not self.over:
                began = time.perf_counter()
                far.request(
                    "GET", "/study/big/board", headers={"if-none-match": tag, "cookie": f"surefoot={self.cookie}"}
                )
                answer = far.getresponse()
                answer.read()
                assert answer.status in (200, 304)
                tag = answer.headers["etag"]
                self.took.append(time.perf_counter() - began)
                time.sleep(max(1.0 - (time.perf_counter() - began), 0.0))

    def close(self) -> None:
        self.over = True
        self.wanted.set()


def quantiles(took: list[float]) -> str:
    p50, p99 = np.quantile(took, [0.5, 0.99]) * 1000
    return f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms of {len(took):,}"


def memory(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def processor(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(db: Path, url: str, port: int, cookie: str, token: str, turns: int, seconds: float, server: int) -> None:
    near, far, readers = Writers(str(db)), Writers(f"{url} {token}"), Readers(port, cookie)
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    seen: dict[str, list[float]] = {"beside": [], "through": []}
    used = dict.fromkeys(WAYS, 0.0)
    for _ in range(turns):
        for way in WAYS:
            began = len(readers.took)
            if way != "database":
                readers.wanted.set()
                time.sleep(1.2)
                began = len(readers.took)
            spent = processor(server)
            found = (far if way == "through" else near).turn(seconds)
            used[way] += processor(server) - spent
            readers.wanted.clear()
            rates[way].append(len(found) / seconds)
            took[way] += found
            if way in seen:
                seen[way] += readers.took[began:]
            time.sleep(1.2)
    for way, words in WAYS.items():
        ratio = sum(rates[way]) / sum(rates["database"])
        by_turn = " ".join(f"{x / y:.2f}" for x, y in zip(rates[way], rates["database"], strict=True))
        print(
            f"{words}: {np.mean(rates[way]):,.1f} a second, {ratio:.2f} of no page ({by_turn}); {quantiles(took[way])}"
        )
        if way in seen:
            print(f"  the board: {quantiles(seen[way])}")
        print(f"  the server's processor: {used[way] / (turns * seconds):.0%}")
    for one in (near, far, readers):
        one.close()


def main(readings: int = 100_000, turns: int = 4, seconds: float = 6.0, requests: int = 10_000) -> None:
    from surefoot.web.access import Access

    with tempfile.TemporaryDirectory() as folder:
        db = Path(os.environ.get("SUREFOOT_BENCH_DB", Path(folder) / "big.db"))
        if not db.exists():
            build(db, readings)
        access = Access(db)
        access.redeem(access.link(None, "bench"), "ann", "correct horse battery")
        cookie = access.begin("ann")
        token = access.add_token(f"robot {time.time()}", "statistician", None, 1, "bench")
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
        server = subprocess.Popen(
            [sys.executable, "-m", "surefoot", "serve", "--db", str(db), "--no-browser", "--port", str(port)],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        url = f"http://127.0.0.1:{port}"
        try:
            with httpx.Client(base_url=url, cookies={"surefoot": cookie}, timeout=60) as client:
                while True:
                    try:
                        client.get("/study/big")
                        break
                    except httpx.TransportError:
                        time.sleep(0.2)
                print(
                    f"{readings:,} readings, {READERS} readers, {WRITERS} who enter, {turns} turns of {seconds:.0f} s"
                )
                if turns:
                    load(db, url, port, cookie, token, turns, seconds, server.pid)
                before = memory(server.pid)
                for k in range(requests):
                    client.get(("/study/big/board", "/", "/study/big/journal", "/study/big/enter")[k % 4])
                    if k % max(requests // 8, 1) == 0:
                        print(f"  memory after {k:,} requests: {memory(server.pid):,.0f} MB", flush=True)
                print(f"memory over {requests:,} requests: {before:,.0f} to {memory(server.pid):,.0f} MB")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["writer"]:
        writer(sys.argv[2])
    else:
        main(*(int(x) for x in sys.argv[1:]))
