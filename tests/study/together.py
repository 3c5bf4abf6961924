"""Four processes, each with two threads on one `Study`, tell one study at once, and one reads it all the while:
python -m tests.study.together URL

Prints how long the reader's `status` took.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback

import numpy as np

from surefoot.study import Study

from .subjects import problem, run, subjects

PROBLEM = problem("linear", sigma=0.2)
TELLERS, THREADS = 4, 2


def teller(url: str, k: int) -> None:
    """Threads on one study, each telling every eighth subject, now alone, now in batches, until the study ends."""
    study, people = Study.open(url, "s"), subjects(PROBLEM)
    wrong: list[BaseException] = []

    def work(me: int) -> None:
        try:
            while study.status()["standing"] == "running":
                mine = [a for a in study.ask() if a.subject % (TELLERS * THREADS) == me]
                if not mine:
                    time.sleep(0.002)
                elif me % 2:
                    for a in mine[:3]:
                        r = people.read(a)
                        study.tell(a.id, r["effect"], r["harm"], key=f"teller {me}, subject {a.subject}")
                else:
                    study.tell_many(people.rows(mine[:5]))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k + TELLERS * j,)) for j in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


def reader(url: str) -> list[float]:
    times = []
    study = Study.open(url, "s")
    while True:
        began = time.perf_counter()
        found = study.status()
        times.append(time.perf_counter() - began)
        if found["standing"] != "running":
            return times


def together(url: str) -> list[float]:
    """Run it, check that the end is the same as that of one process alone, and return the reader's times."""
    Study.create(url, "s", PROBLEM, seed=11, watch="warn").journal.engine.dispose()
    children = []
    for k in range(TELLERS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                teller(url, k)
                code = 0
            except BaseException:
                traceback.print_exc()
            os._exit(code)
        children.append(child)
    times = reader(url)
    for child in children:
        _, status = os.waitpid(child, 0)
        assert status == 0, "a teller failed"
    study = Study.open(url, "s")
    assert study.verify(head=study.view.hash)["ok"]
    told = [event.data["id"] for event in study.log() if event.kind == "told"]
    assert sorted(told) == list(range(1, len(told) + 1)), "nothing lost, nothing doubled"
    alone = Study.create("sqlite://", "s", PROBLEM, seed=11, watch="warn")
    run(alone, subjects(PROBLEM))
    for name in ("lower", "upper", "safe", "standing", "winner", "ending", "pulls"):
        np.testing.assert_array_equal(getattr(alone.verdict(), name), getattr(study.verdict(), name))
    return times


if __name__ == "__main__":
    url = sys.argv[1]
    times = together(url)
    print(f"{len(times):,} reads, 99th percentile {1000 * float(np.quantile(times, 0.99)):.1f} ms")
