"""What the page's forms and the API do when nothing goes wrong by malice: accounts, the lab, a study."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import surefoot.web
from surefoot import SurefootError
from surefoot.study.keys import Key
from surefoot.web.app import demonstrate
from surefoot.web.lab_work import START

from .server import PASSWORD, Server, play, serving, token


def shown(answer: httpx.Response) -> str:
    """The link or the token that is shown once."""
    found = re.search(r'<code class="secret">(?:[^<#]*#)?([^<]+)</code>', answer.text)
    assert answer.status_code == 200 and found, answer.text
    return found[1]


def test_an_admin_lets_people_in(server: Server) -> None:
    """By a link that works once, and by tokens that end."""
    boss, guest = server.person("door", "admin"), server.client()
    form, person = {"token": token(boss)}, {"name": "new one", "role": "reader"}
    mine = {"link": shown(boss.post("/access/user", data=form | person)), "password": PASSWORD, "again": "another one"}
    assert "the two passwords differ" in guest.post("/first", data=mine).text
    assert "Welcome, new one." in guest.post("/first", data=mine | {"again": PASSWORD}).text
    assert shown(boss.post("/access/change", data=form | person | {"do": "link"})) != mine["link"]
    robot = form | {"name": "robot 7", "role": "reader"}
    assert "for how many days" in boss.post("/access/token", data=robot | {"days": "some"}).text
    api = server.client({"authorization": f"Bearer {shown(boss.post('/access/token', data=robot | {'days': '2'}))}"})
    assert api.get("/api/v1/studies").status_code == 200
    assert "The token has ended." in boss.post("/access/token/end", data=robot).text
    assert api.get("/api/v1/studies").status_code == 401


def test_the_lab_by_its_form(server: Server) -> None:
    client = server.person("lab", "statistician")
    form = {"token": token(client), "text": START, "shape": "linear", "limit": "1", "delta": "0.05"}
    arms = {f"arm{k}_{key}": x for k in range(2) for key, x in (("name", f"arm {k}"), ("start", "0.1"), ("max", "2"))}
    more = client.post("/lab/form", data=form | arms | {"add": "1"}).text
    assert "arm2_name" in more and 'value="arm 3"' in more
    assert "arm1_name" not in client.post("/lab/form", data=form | arms | {"remove": "1"}).text
    for wrong, said in (({"trials": "x"}, "how many trials"), ({"trials": "2", "budgets": "all"}, "whole numbers")):
        assert said in client.post("/lab/run", data=form | wrong).text
    assert client.get("/lab/report/none").status_code == 404


def test_a_study_without_a_script(tmp_path: Path) -> None:
    """Told, dropped, given back, voided and signed by plain forms, each with its words on the next page."""
    study = play(tmp_path / "x.db", "one", "paper-linear", 3, most=0)
    public = Key.new(tmp_path / "key").public
    with serving(tmp_path / "x.db", key=tmp_path / "key") as server:
        client = server.person("plain", "statistician")
        one, two, three, *_ = study.ask()
        form = {"token": token(client), "reason": "left", "step": "do"}
        told = client.post("/study/one/tell", data=form | {"id": one.id, "effect": "0,1", "harm": "0.1", "key": "a"})
        assert f"{one.id}: told." in told.text
        assert f"{two.id} is void." in client.post("/study/one/dropped", data=form | {"id": two.id, "key": "b"}).text
        study.resume("noted")
        mine = study.assign(1, "north")[0].id
        back = client.post("/study/one/change", data=form | {"command": "give_back", "ids": f"{mine},", "key": "c"})
        assert "Done" in back.text
        assert (
            "Done" in client.post("/study/one/change", data=form | {"command": "void", "id": three.id, "key": "d"}).text
        )
        kinds = [event.kind for event in study.log()]
        assert kinds.count("voided") == 2 and "returned" in kinds
        note = client.post("/study/one/checkpoint", data=form).json()
        assert study.verify(checkpoint=note, keys=[public])["authenticated"]
        assert "how many trials" in client.post("/study/one/forecast", data=form | {"trials": "x"}).text


def test_a_desk_by_the_api(server: Server) -> None:
    """A machine of one site takes what is next, and can tell and void what is its own."""
    study, access = server.site.hub.study("one"), server.site.access
    other = study.assign(1, "south", actor="test")[0].id
    entry, plans = (
        server.client({"authorization": f"Bearer {access.add_token(f'desk {role}', role, site, 1, 'test')}"})
        for role, site in (("data entry", "north"), ("statistician", None))
    )
    path = "/api/v1/studies/one"
    mine = entry.post(f"{path}/assignments", json={"count": 1}).json()["assignments"]
    assert mine and set(mine[0]) == {"id", "arm", "dose"}
    for what, body in (("readings/many", {"rows": [{"id": other, "harm": 1}]}), ("void", {"id": other, "reason": "x"})):
        assert entry.post(f"{path}/{what}", json=body).status_code == 422
    assert "for which site?" in plans.post(f"{path}/assignments", json={"count": 1}).text
    long = plans.post(f"{path}/assignments", json={"count": 1, "site": "s"}, headers={"idempotency-key": "k" * 201})
    assert long.status_code == 400


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held, pytest.raises(SurefootError, match="Give another --port"):
        demonstrate(port=held.getsockname()[1], browse=False)


def test_what_the_page_needs_is_said(monkeypatch: Any) -> None:
    with pytest.raises(AttributeError):
        surefoot.web.nothing  # noqa: B018
    monkeypatch.delattr(surefoot.web, "app")
    monkeypatch.delitem(sys.modules, "surefoot.web.app")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(SurefootError, match=r"pip install 'surefoot\[web\]'"):
        surefoot.web.serve  # noqa: B018
