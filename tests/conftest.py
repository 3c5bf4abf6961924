import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main
from hypothesis import settings

# The same examples in every run: a failure is a change in the code, not in the dice.
# To look for new ones: pytest --hypothesis-profile=search
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile("fixed")

# A command line is put together from its annotations once in a process, as it is for a user, not once a call.
typer.main.get_command = cache(typer.main.get_command)

# Tests that take a second of a core or so (pytest --durations=0 says which): `make test-fast` leaves them out.
SLOW = set((Path(__file__).parent / "slow.txt").read_text().split())
# Those of them that are thousands of trials are not traced, nor what they start: it would cost them 40%, and finds no
# line that the others do not.
TRIALS = ("tests/designs/", "tests/test_bounds.py")
TRACED = "COVERAGE_PROCESS_CONFIG"  # tells processes of a traced one to be traced as well


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if re.sub(r"\[.*|^tests/", "", item.nodeid) in SLOW:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow") and item.nodeid.startswith(TRIALS):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    told = os.environ.pop(TRACED, None) if item.get_closest_marker("no_cover") else None
    try:
        return (yield)
    finally:
        if told:
            os.environ[TRACED] = told
