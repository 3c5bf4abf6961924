"""The page under load: `python -m benchmarks.page [readings] [seconds]`.

Readers of the board look once a second, twice as often as an open page does; people enter one reading after another, in
processes of their own, against a real server. Telling is compared with the same eight writers on the database without
any page.
"""

from __future__ import annotations

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


def build(db: Path, readings: int) -> Study:
    """A study with so many readings, and a cohort that is long enough for all who enter."""
    problem, truth = case("tiny-gap", 5)
    study = Study.create(db, "big", problem, actor="bench", seed=1, watch="warn")
    told = 0
    while told < readings and (asked := study.ask()):
        told += study.tell_many(simulated(problem, truth, asked, 5))
    return study


def writer(where: str, seconds: float) -> None:
    """A process: on the database itself, or through a server (`url token`)."""
    if where.startswith("http"):
        from surefoot import Client

        url, token = where.split()
        study: Any = Client(url, token, "big")
    else:
        study = Study.open(where, "big", actor="bench")
        study.status()
    print("ready", flush=True)
    sys.stdin.readline()
    took, until, count, name = [], time.monotonic() + seconds, 0, f"site {os.getpid()}"
    while time.monotonic() < until:
        mine = study.assign(10, name)
        while mine and time.monotonic() < until:
            began = time.perf_counter()
            study.tell(mine.pop().id, effect=0.1, harm=0.2)
            took.append(time.perf_counter() - began)
            count += 1
        if mine:
            study.give_back([a.id for a in mine], "the bench is over")
        else:
            time.sleep(0.005)  # where none is open, the others are at the last of a cohort
    print(json.dumps({"count": count, "took": took}), flush=True)


def writers(where: str, seconds: float, meanwhile: Any = None) -> tuple[float, list[float]]:
    """Readings a second of all writers together, and how long each took."""
    made = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.page", "writer", where, str(seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(WRITERS)
    ]  # fmt: skip
    for one in made:
        assert one.stdout and one.stdout.readline().strip() == "ready"
    if meanwhile:
        meanwhile.start()
    for one in made:
        assert one.stdin
        one.stdin.write("go\n")
        one.stdin.flush()
    found = [json.loads(one.communicate()[0]) for one in made]
    return sum(f["count"] for f in found) / seconds, [x for f in found for x in f["took"]]


class Readers(threading.Thread):
    """Fifty open pages: each asks for the board about once a second."""

    def __init__(self, url: str, cookie: str, seconds: float):
        super().__init__()
        self.url, self.cookie, self.seconds, self.took = url, cookie, seconds, list[float]()

    def run(self) -> None:
        threads = [threading.Thread(target=self.one, args=(k,)) for k in range(READERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def one(self, k: int) -> None:
        with httpx.Client(base_url=self.url, cookies={"surefoot": self.cookie}, timeout=60) as client:
            time.sleep(k / READERS)
            until = time.monotonic() + self.seconds
            tag = ""
            while time.monotonic() < until:
                began = time.perf_counter()
                answer = client.get("/study/big/board", headers={"if-none-match": tag})  # as browsers do
                assert answer.status_code in (200, 304)
                tag = answer.headers["etag"]
                self.took.append(time.perf_counter() - began)
                time.sleep(max(1.0 - (time.perf_counter() - began), 0.0))


def quantiles(took: list[float]) -> str:
    p50, p99 = np.quantile(took, [0.5, 0.99]) * 1000
    return f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms of {len(took):,}"


def memory(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def main(readings: int = 100_000, seconds: float = 20.0, requests: int = 10_000) -> None:
    from surefoot.web.access import Access

    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "big.db"
        build(db, readings)
        print(f"a study of {readings:,} readings, {READERS} readers, {WRITERS} who enter, {seconds:.0f} s each")
        alone, took = writers(str(db), seconds)
        print(f"telling without a page: {alone:,.1f} a second; {quantiles(took)}")
        access = Access(db)
        access.redeem(access.link(None, "bench"), "ann", "correct horse battery")
        cookie, token = access.begin("ann"), access.add_token("robot", "statistician", None, 1, "bench")
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
                beside, took = writers(str(db), seconds, readers := Readers(url, cookie, seconds))
                readers.join()
                print(
                    f"telling on the database beside the page: {beside:,.1f} a second, {beside / alone:.2f} of it alone"
                )
                print(f"  the board: {quantiles(readers.took)}; telling: {quantiles(took)}")
                through, took = writers(f"{url} {token}", seconds, readers := Readers(url, cookie, seconds))
                readers.join()
                print(
                    f"telling through the server that shows the board: {through:,.1f} a second, {through / alone:.2f}"
                )
                print(f"  the board: {quantiles(readers.took)}; telling: {quantiles(took)}")
                before = memory(server.pid)
                for k in range(requests):
                    client.get(("/study/big/board", "/", "/study/big/journal", "/study/big/enter")[k % 4])
                    if k % (requests // 4) == 0:
                        print(f"  memory after {k:,} more requests: {memory(server.pid):,.0f} MB")
                print(f"memory over {requests:,} requests: {before:,.0f} to {memory(server.pid):,.0f} MB")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["writer"]:
        writer(sys.argv[2], float(sys.argv[3]))
    else:
        main(*(int(x) for x in sys.argv[1:]))
