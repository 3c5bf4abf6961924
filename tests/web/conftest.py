from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot import make

from ..study.conftest import postgres as postgres
from .server import Server, play, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a running study `one` of three arms, whose cohorts are enough for all tests of a file."""
    db = tmp_path_factory.mktemp("web") / "studies.db"
    play(db, "one", "paper-linear", 3, most=2, design=make("surefoot-linear", cohort=8))
    with serving(db) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real Chromium; where none is to be had tests fail, unless a variable says to skip them."""
    from .browser import chromium, find

    try:
        find()
    except OSError as error:
        if os.environ.get("SUREFOOT_NO_BROWSER") == "skip":
            pytest.skip(str(error))
        pytest.fail(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with chromium() as it:
            yield it


@pytest.fixture
def jobs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of their own are traced where they are what is tested: it takes them half as long again."""
    if request.node.name not in ("test_work_in_the_background", "test_jobs_have_limits"):
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "studies.db"
