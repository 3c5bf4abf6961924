import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import HealthCheck, settings

# Of BLAS one thread a process: there is a worker a core, and a second thread would wait in circles for what is small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples in every run: a failure is a change in the code, not in the dice.
# To look for new ones: pytest --hypothesis-profile=search
BUSY = [HealthCheck.too_slow]  # the machine may be
settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=BUSY)
settings.register_profile("search", deadline=None, suppress_health_check=BUSY)
settings.load_profile("fixed")

# A command line is put together from its annotations once in a process, as it is for a user, not once a call.
typer.main.get_command = cache(typer.main.get_command)

# Tests that take a second of a core or so (pytest --durations=0 says which): `make test-fast` leaves them out. Files
# stand in the order of what they take: the longest are dealt first, so that no core waits for one at the end. With a +
# they find lines that no others do; the rest are not traced, nor what they start: it would cost them 40% and more.
# (Threads of a server are lost to a test that is not traced: of those that share one, only the last may be.)
LINES = [line.split() for line in (Path(__file__).parent / "slow.txt").read_text().splitlines()]
SLOW = {name: bool(traced) for name, *traced in LINES}
ORDER = list(dict.fromkeys(f"tests/{name.split('::')[0]}" for name in SLOW))
# In these files quick ones find no line either
UNTRACED = (
    "tests/designs/test_attacks.py", "tests/designs/test_ladder.py", "tests/designs/test_levels_evidence.py",
    "tests/designs/test_linear_", "tests/designs/test_monotonic.py", "tests/designs/test_monotonic_evidence.py",
    "tests/designs/test_recommend.py", "tests/designs/test_surefoot.py", "tests/designs/test_unconstrained.py",
    "tests/study/test_processes.py", "tests/study/test_replay.py", "tests/study/test_tutorial.py",
    "tests/study/test_voids.py", "tests/test_architecture.py", "tests/test_bounds.py", "tests/test_examples.py",
    "tests/test_play.py",
)  # fmt: skip
TRACED = "COVERAGE_PROCESS_CONFIG"  # tells processes of a traced one to be traced as well


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: k for k, name in enumerate(ORDER)}
    items.sort(key=lambda item: place.get(item.nodeid.split("::")[0], len(ORDER)))
    for item in items:
        name = re.sub(r"\[.*|^tests/", "", item.nodeid)
        if name in SLOW:
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(UNTRACED) or not SLOW.get(name, True):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    os.environ.pop(TRACED, None)  # see below; a worker sets it anew


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """A worker is traced by one tracer, not by three: those that began with its process and with its options would go
    on wherever the last one pauses."""
    cov: Any = session.config.pluginmanager.getplugin("_cov")
    if "PYTEST_XDIST_WORKER" in os.environ and cov and cov.cov_controller:
        cov.cov_controller.pause()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    told = os.environ.pop(TRACED, None) if item.get_closest_marker("no_cover") else None
    try:
        return (yield)
    finally:
        if told:
            os.environ[TRACED] = told
