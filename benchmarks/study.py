"""How long a live study takes: python -m benchmarks.study [--million]

With --million also one of a million readings, each command in a process of its own (five minutes and 2 GB more).

Single tells are bound by the disk: each is on it before `tell` returns. So the disk's own rate stands beside.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from surefoot import case
from surefoot.study import Study
from surefoot.study.status import assignments

READINGS = 100_000


def main() -> None:
    table = Table("live study", "measured", "wanted", title="Live studies", title_justify="left")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        syncs = 1 / median(lambda: sync(folder / "disk"), 200)
        table.add_row("the disk alone: 4 KiB appended and synced, a second", f"{syncs:,.0f}", "")

        url = f"sqlite:///{folder}/long.db"
        problem, _ = case("paper-linear", 10)
        study = Study.create(url, "long", problem.but(delta=0.1), seed=1, watch="warn")
        for upto in (1_000, READINGS):
            grow(study, upto)
            whole, own = single(study, 500)
            table.add_row(f"single tells a second, after {upto:,} readings", f"{1 / whole:,.0f}", "300")
            table.add_row("its own work, ms a tell (the rest waits for the disk)", f"{1e3 * own:.2f}", "flat")

        seconds = median(lambda: Study.open(url).view, 5)
        table.add_row(f"open {READINGS:,} readings, s", f"{seconds:.2f}", "0.5")
        for cache in folder.glob("*.cache"):
            cache.unlink()
        seconds = median(lambda: Study.open(url).view, 1)
        table.add_row("the same without its cache, all seals checked, s", f"{seconds:.2f}", "")
        opened = Study.open(url)
        assert opened.view.seq > READINGS
        began = time.perf_counter()
        assignments(opened.view, 100)
        table.add_row("ask for the next 100 after, first time, ms", f"{1e3 * (time.perf_counter() - began):.1f}", "10")
        table.add_row("ask again, through the journal, ms", f"{1e3 * median(lambda: opened.ask(100), 50):.1f}", "10")
        everyone = len(opened.ask())
        table.add_row(f"ask for all {everyone:,} open, ms", f"{1e3 * median(opened.ask, 10):.1f}", "")
        began = time.perf_counter()
        report = opened.verify()
        assert report["ok"], report["message"]
        table.add_row(f"verify {report['events']:,} events, s", f"{time.perf_counter() - began:.1f}", "")

        fresh = Study.create(f"sqlite:///{folder}/many.db", "many", problem.but(delta=0.1), seed=1, watch="warn")
        grow(fresh, 7_260)
        rows = readings(fresh, 10_000)
        began = time.perf_counter()
        fresh.tell_many(rows)
        table.add_row(f"tell_many of {len(rows):,} readings, s", f"{time.perf_counter() - began:.2f}", "2")

        said = subprocess.run(
            [sys.executable, "-m", "tests.study.together", f"sqlite:///{folder}/together.db"],
            capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1],
        )  # fmt: skip
        table.add_row("status while 8 processes tell", said.stdout.strip(), "no lock error")
        if "--million" in sys.argv:
            grow(study, 1_000_000)
            for row in million(study, folder):
                table.add_row(*row)
    Console().print(table)


def million(study: Study, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Commands on a study of a million readings, from the start of Python to its end."""
    db, at = ["--db", f"{folder}/long.db"], study.ask(1)[0].id
    surefoot = [sys.executable, "-m", "surefoot", "study"]
    part = {"status": ["status"], "ask": ["ask", "--limit", "10"], "tell": ["tell", at, "--effect=0.1", "--harm=0.1"]}
    for name, arguments in part.items():
        yield f"a million readings: {name}, s and MB", measured([*surefoot, *arguments, *db]), "3 and 500"
    yield "a million readings: verify, s and MB", measured([*surefoot, "verify", *db]), "30"
    export = folder / "export.json"
    with export.open("w") as file:
        json.dump(study.export(), file)
    checker = Path(sys.modules["surefoot.study.checker"].__file__ or "")
    yield "a million readings: the checker, s and MB", measured([sys.executable, str(checker), str(export)]), "60"


def measured(command: list[str]) -> str:
    """Seconds by the clock, seconds of the processor, and the most memory of any command so far."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{time.perf_counter() - began:.1f} ({own:.1f} on the processor), at most {after.ru_maxrss / 1024:,.0f}"


def median(what: Callable[[], Any], times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        what()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def sync(path: Path) -> None:
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(file, bytes(4096))
    os.fdatasync(file)
    os.close(file)


def readings(study: Study, most: int) -> list[dict[str, Any]]:
    """Of arms that all are alike, so that the study goes on."""
    rng = np.random.default_rng(0)
    sigma = study.view.problem.sigma
    asked = study.ask(limit=most)
    noise = sigma * rng.standard_normal((len(asked), 2))
    return [
        {"id": a.id, "effect": 0.5 * a.dose + x, "harm": 0.9 * a.dose + y}
        for a, (x, y) in zip(asked, noise.tolist(), strict=True)
    ]


def grow(study: Study, upto: int) -> None:
    while (left := upto - (study.view.seq - 1 - len(study.view.cohorts))) > 0:
        study.tell_many(readings(study, left))


def single(study: Study, count: int) -> tuple[float, float]:
    """Seconds a tell, each on disk before the next: in all, and on the processor."""
    rows = readings(study, count)
    began, own = time.perf_counter(), time.process_time()
    for row in rows:
        study.tell(**row)
    return (time.perf_counter() - began) / len(rows), (time.process_time() - own) / len(rows)


if __name__ == "__main__":
    main()
