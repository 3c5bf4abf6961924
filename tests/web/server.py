"""The real server in a thread, and studies to look at."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import argon2
import httpx
import numpy as np
import uvicorn

from surefoot import Study, case
from surefoot.study import simulated
from surefoot.web import create_app
from surefoot.web.access import _users
from surefoot.web.app import SERVER
from surefoot.web.gate import Safety

ARABIC = ("كريم الزنك مع اللانولين والجلسرين وشمع العسل، " * 9)[:199] + "ب"
# As long as may be
NAMES = (("a cream with zinc oxide, lanolin, glycerol, beeswax; " * 9)[:199] + "x", ARABIC, "W" * 200)
PASSWORD = "correct horse battery"


class Server:
    """`url`, `app`, and browsers (httpx clients) for people of each role."""

    def __init__(self, url: str, app: Any):
        self.url, self.app, self.site = url, app, app.state.site
        self.clients: list[httpx.Client] = []

    def client(self, headers: dict[str, str] | None = None, **options: Any) -> httpx.Client:
        headers = {"sec-fetch-site": "same-origin"} | (headers or {})
        # a connection is let go of long before the server does: none is closed while something is sent
        limits = httpx.Limits(keepalive_expiry=1)
        how: dict[str, Any] = {"headers": headers, "follow_redirects": True, "timeout": 60, "limits": limits} | options
        self.clients.append(httpx.Client(base_url=self.url, **how))
        return self.clients[-1]

    def person(self, name: str, role: str, site: str | None = None) -> httpx.Client:
        """Somebody of that role, logged in."""
        if name not in [user.name for user in self.site.access.users()]:
            self.site.access.add_user(name, role, site, "test")
            self.site.access._do(_users.update().where(_users.c.name == name).values(password=hashed()))
        client = self.client()
        client.cookies.set("surefoot", self.site.access.begin(name))
        return client


@cache
def hashed() -> str:
    """Of the password that all have: argon2 is slow on purpose."""
    return argon2.PasswordHasher().hash(PASSWORD)


def token(client: httpx.Client, page: str = "/") -> str:
    """The token of the forms on a page."""
    found = re.search(r'name="token" value="([^"]+)"', client.get(page).text)
    assert found
    return found[1]


def bound(port: int = 0) -> socket.socket:
    """To this port, or to one that is free. Several may be: so a port can be kept while nobody listens."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", port))
    return held


@contextmanager
def serving(db: Path | str, safety: Safety | None = None, port: int = 0, **options: Any) -> Iterator[Server]:
    app = create_app(db, safety, **options)
    held = bound(port)
    config = uvicorn.Config(app, **SERVER | {"log_level": "critical", "timeout_graceful_shutdown": 1})
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [held]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    running = Server(f"http://127.0.0.1:{held.getsockname()[1]}", app)
    try:
        yield running
    finally:
        for client in running.clients:
            client.close()
        server.should_exit = True
        thread.join(10)
        held.close()
        running.site.access.engine.dispose()
        running.site.hub.journal.engine.dispose()


def play(
    db: Path | str, name: str, kind: str, arms: int | None = None, most: int | None = None, **options: Any
) -> Study:
    """A study of a case, so many cohorts on; to its end where none are given."""
    problem, truth = case(kind, arms, **options.pop("changes", {}))
    names = options.pop("names", problem.names)
    problem = problem.but(arms=tuple(replace(it, name=x) for it, x in zip(problem.arms, names, strict=True)))
    study = Study.create(db, name, problem, actor="simulation", seed=8, watch="warn", **options)
    rounds = 0
    while (most is None or rounds < most) and (asked := study.ask()):
        study.tell_many(simulated(problem, truth, asked, 5))
        rounds += 1
    return study


def long_study(db: Path, name: str, readings: int) -> Study:
    """So many readings one by one, and a cohort open that has as many again: quick, by the door that `tell` uses."""
    problem, truth = case("tiny-gap", 5)
    study = Study.create(db, name, problem, "safebai-linear", actor="clinic", seed=1, watch="warn")
    rng, left = np.random.default_rng(1), readings
    while left:
        some = study.ask()[:left]
        left -= len(some)
        dose, arm = np.array([a.dose for a in some]), [problem.names.index(a.arm) for a in some]
        means = (curves(np.tile(dose[:, None], 5))[range(len(some)), arm] for curves in (truth.effects, truth.harms))
        effect, harm = ((mean + rng.normal(size=len(some))).tolist() for mean in means)
        with study._writing() as add:
            for a, x, y in zip(some, effect, harm, strict=True):
                add("told", {"id": a.subject, "effect": x, "harm": y})
    return study
