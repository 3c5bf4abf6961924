"""Kill a process that tells readings, at random moments, again and again: python -m tests.study.soak 500 [URL]

Without a URL of a PostgreSQL server, in SQLite files.

After every kill: all readings that were acknowledged are there, none twice, and the chain verifies.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from surefoot.study import Study

from .subjects import problem, subjects

PROBLEM = problem("monotonic", sigma=0.3)


def teller(url: str, name: str, acknowledged: Path) -> None:
    """Tell without end; note every reading as soon as `tell` has returned, and not before."""
    study, people = Study.open(url, name), subjects(PROBLEM)
    with acknowledged.open("ab", buffering=0) as file:
        for k in range(10**9):
            asked = study.ask(limit=7)
            if not asked:
                return
            if k % 5 == 4:
                rows = people.rows(asked)
                study.tell_many(rows)
                file.write("".join(f"{r['id']} {r['effect']!r} {r['harm']!r}\n" for r in rows).encode())
            else:
                r = people.read(asked[0])
                study.tell(asked[0].id, r["effect"], r["harm"])
                file.write(f"{asked[0].id} {r['effect']!r} {r['harm']!r}\n".encode())


def soak(kills: int, folder: Path, server: str | None = None, seed: int = 0) -> None:
    rng = random.Random(seed)
    done = started = 0
    while done < kills:
        started += 1
        url, acknowledged = server or f"sqlite:///{folder}/s{started}.db", folder / f"acknowledged{started}"
        name = f"soak {os.getpid()} {'abcdefghjkmnpqrstuvwxyz'[started % 23] * started}"
        Study.create(url, name, PROBLEM, seed=started, watch="warn").journal.engine.dispose()
        acknowledged.touch()
        ended = False
        while done < kills and not ended:
            child = os.fork()
            if child == 0:
                try:
                    teller(url, name, acknowledged)
                finally:
                    os._exit(0)
            time.sleep(rng.expovariate(1 / 0.08))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            done += os.WIFSIGNALED(status)
            ended = check(url, name, acknowledged)
    print(f"{done} kills in {started} studies: every acknowledged reading was there, none twice, every chain verified")


def check(url: str, name: str, acknowledged: Path) -> bool:
    """Everything holds; and whether the study has ended."""
    study = Study.open(url, name)
    report = study.verify()
    assert report["ok"], report["message"]
    there = {r["id"]: (r["effect"], r["harm"]) for r in study.readings() if r["status"] == "told"}
    lines = acknowledged.read_text().splitlines()
    for line in lines:
        id, effect, harm = line.split()
        assert there.get(id) == (float(effect), float(harm)), (
            f"{line} was acknowledged; the journal has {there.get(id)}"
        )
    told = [event for event in study.log() if event.kind == "told"]
    assert len(told) == len({event.data["id"] for event in told}) == len(there), "a reading is there twice"
    assert len(there) <= len(lines) + 7, "and nothing but the last command is there without being acknowledged"
    # the next child begins with what is there: note what was told without having been acknowledged
    known = {line.split()[0] for line in lines}
    with acknowledged.open("a") as file:
        file.writelines(f"{id} {e!r} {h!r}\n" for id, (e, h) in there.items() if id not in known)
    return study.view.standing != "running"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        soak(int(sys.argv[1]) if len(sys.argv) > 1 else 500, Path(name), sys.argv[2] if len(sys.argv) > 2 else None)
