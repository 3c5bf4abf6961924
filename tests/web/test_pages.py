"""The pages and the API over HTTP: the same study, told through each."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot import Arm, Client, Noise, Problem, Study, SurefootError, case
from surefoot.study import simulated
from surefoot.study.rehearsal import rehearse
from surefoot.web import serve
from surefoot.web.app import table_markdown
from surefoot.web.hub import name_of, path_of
from surefoot.web.lab_work import START
from surefoot.web.work import as_read

from .server import Server, play, serving, token

ROOT = Path(__file__).parents[2]


def robot(server: Server, name: str = "robot", role: str = "statistician", site: str | None = None) -> str:
    return str(server.site.access.add_token(name, role, site, 1, "test"))


def loop(study: Any, problem: Any, truth: Any) -> None:
    """A service's loop: the same words for a file and for a server."""
    first, second, *_ = study.ask()
    study.tell(first.id, effect=0.3, harm=0.2, key="one")
    study.tell(first.id, effect=0.3, harm=0.2, key="one")
    study.tell(second.id, harm=0.1)
    assert [a.id for a in study.awaiting()] == [second.id]
    study.tell(second.id, effect=0.2)
    study.pause("lunch")
    assert not study.ask()
    study.resume("back")
    study.assign(1, "north")
    study.give_back([study.ask(site="north")[0].id], "not needed")
    study.correct(first.id, harm=0.25, reason="digits swapped")
    while asked := study.ask():
        study.tell_many(simulated(problem, truth, asked, 5))


def test_the_same_loop_on_a_file_and_on_a_server(tmp_path: Path) -> None:
    problem, truth = case("paper-linear", 3, budget=60)
    own = Study.create(tmp_path / "own.db", "it/1", problem, seed=4, actor="x")
    loop(own, problem, truth)
    with (
        serving(tmp_path / "served.db") as server,
        Client.create(server.url, robot(server), "it/1", problem, seed=4) as far,
    ):
        loop(far, problem, truth)
        told = [[e.kind, e.payload] for e in far.log() if e.kind != "created"]
        assert told == [[e.kind, e.payload] for e in own.log() if e.kind != "created"]
        for key in ("standing", "winner", "arms", "readings", "recommendation"):
            assert far.status()[key] == json.loads(json.dumps(own.status()[key]))
        mine, theirs = own.verdict(), far.verdict()
        assert theirs.endings() == mine.endings() and theirs.reason(0) == mine.reason(0)
        words = own.certificate().content["concluded"]["words"]
        assert far.certificate().content["concluded"]["words"] == words
        assert far.verify()["ok"]
        with pytest.raises(SurefootError, match="is ended: there is nothing to pause"):
            far.pause("again")
        with pytest.raises(SurefootError, match="looks like"):
            far.tell("x", harm=float("nan"))
        with Client(server.url, robot(server, "two")) as same:
            assert same.name == "it/1", "the only one"
    with pytest.raises(SurefootError, match="https alone"):
        Client("http://far.example", "t", "x")


def test_requests_that_count_once(server: Server) -> None:
    bearer = {"authorization": f"Bearer {robot(server)}", "idempotency-key": "k1"}
    api = server.client(headers=bearer)
    study = server.site.hub.study("one")
    before = len(study.log())
    answers = [api.post("/api/v1/studies/one/assignments", json={"count": 1, "site": "s"}) for _ in range(3)]
    assert len({a.text for a in answers}) == 1 and len(study.log()) == before + 1
    other = api.post("/api/v1/studies/one/assignments", json={"count": 2, "site": "s"})
    assert other.status_code == 422 and "another request" in other.json()["detail"]
    id = answers[0].json()["assignments"][0]["id"]
    reading = {"id": id, "effect": 0.1, "harm": 0.2}
    assert [api.post("/api/v1/studies/one/readings", json=reading).status_code for _ in range(2)] == [200, 200]
    assert len(study.log()) in (before + 2, before + 3), "one reading, and a cohort that it may have opened"
    wrong = api.post("/api/v1/studies/one/readings", json=reading | {"harm": "nan"})
    assert wrong.status_code == 422 and wrong.headers["content-type"] == "application/problem+json"
    assert set(wrong.json()) == {"type", "title", "status", "detail"}
    assert api.post("/api/v1/studies/one/readings", json=reading | {"more": 1}).status_code == 422


def test_what_is_known_is_not_sent_again(server: Server) -> None:
    api = server.client(headers={"authorization": f"Bearer {robot(server, 'reads')}"})
    for path in ("", "/verdict", "/assignments", "/events?after=2"):
        first = api.get(f"/api/v1/studies/one{path}")
        again = api.get(f"/api/v1/studies/one{path}", headers={"if-none-match": first.headers["etag"]})
        assert again.status_code == 304 and not again.content
    page = server.person("reader", "reader")
    tag = page.get("/study/one/board").headers["etag"]
    assert page.get("/study/one/board", headers={"if-none-match": tag}).status_code == 304


def test_events_as_they_come(server: Server) -> None:
    study = server.site.hub.study("one")
    client = Client(server.url, robot(server, "follows"), "one")
    seen, head = [], len(study.log())
    threading.Timer(0.2, lambda: study.pause("a doubt", actor="ann")).start()
    for event in client.follow(after=head - 1):
        seen.append(event.kind)
        if event.kind == "paused":
            break
    assert len(seen) == 2
    study.resume("it was nothing", actor="bob")
    client.close()


def test_a_paste_is_checked_then_told_as_a_whole(server: Server) -> None:
    client, study = server.person("pastes", "statistician"), server.site.hub.study("one")
    form = {"token": token(client)}
    rows = [f"{a.id}\t0,2\t0,1" for a in study.ask(3)]
    before = len(study.log())
    bad = client.post("/study/one/paste", data=form | {"text": "\n".join(["id\teffect\tharm", rows[0], "zz-9\t1\t1"])})
    assert bad.status_code == 422 and "line 3" in bad.text and len(study.log()) == before
    good = form | {"text": "\n".join(["id\teffect\tharm", *rows])}
    checked = client.post("/study/one/paste", data=good)
    assert f"{len(rows)} rows hold" in checked.text and len(study.log()) == before
    for said in (f"{len(rows)} told", "nothing is new"):
        assert said in client.post("/study/one/paste", data=good | {"step": "tell"}).text
    assert sum(e.kind == "told" for e in study.log()[before:]) == len(rows)
    assert study.log()[before].actor == "pastes (statistician)"


def test_changes_are_shown_first(server: Server) -> None:
    client, study = server.person("changes", "statistician"), server.site.hub.study("one")
    first = study.readings()[0]["id"]
    form = {"token": token(client), "command": "correct", "id": first, "harm": "9", "reason": "typed wrongly"}
    before = len(study.log())
    look = client.post("/study/one/change", data=form)
    assert "what would change" in look.text and "safe dose" in look.text.lower() and len(study.log()) == before
    assert client.post("/study/one/change", data=form | {"reason": " "}).status_code == 422
    key = re.search(r'name="key" value="([^"]+)"', look.text)
    assert key
    done = [client.post("/study/one/change", data=form | {"step": "do", "key": key[1]}) for _ in range(2)]
    assert [a.status_code for a in done] == [200, 200] and "Done: correct a reading" in done[1].text
    assert sum(e.kind == "corrected" for e in study.log()) == 1


def test_a_rehearsal_changes_nothing(tmp_path: Path) -> None:
    study = play(tmp_path / "x.db", "x", "paper-linear", 3, most=3)
    before = study.log()
    found = rehearse(tmp_path / "x.db", "x", "stop", actor="ann", reason="enough")
    assert found["standing"] == ["running", "stopped"] and study.log() == before
    with pytest.raises(SurefootError, match="nothing to resume"):
        rehearse(tmp_path / "x.db", "x", "resume", actor="ann", reason="on")
    first = study.readings()[0]["id"]
    found = rehearse(tmp_path / "x.db", "x", "correct", actor="ann", id=first, harm=50.0, reason="x")
    study.correct(first, harm=50.0, reason="x")
    assert found["deviations"] == study.certificate().content["deviations"]
    assert [a["certified"][1] for a in found["arms"]] == [a["certified"] for a in study.status()["arms"]]


@pytest.mark.parametrize(("kind", "arms"), [("paper-linear", 3), ("paper-drug", 3), ("levels-thall", 3)])
def test_a_forecast_as_read_so_far(tmp_path: Path, kind: str, arms: int) -> None:
    study = play(tmp_path / "x.db", "x", kind, arms, most=4, changes={"budget": 400})
    row = study.forecast(study.look(as_read), trials=10)[0]
    assert 0 < row["pulls"]["mean"] < 500


@pytest.mark.parametrize(
    "name", ["a/b", "..", ".", "~1", "a~0/~", "100%", "دراسة", "a b?c#d&e", "back\\slash", "x" * 200]
)
def test_names_in_addresses(tmp_path: Path, name: str) -> None:
    assert "/" not in path_of(name) and name_of(httpx.URL(f"http://x/{path_of(name)}").path[1:]) == name


def test_the_table_in_the_documents_is_the_code(server: Server) -> None:
    assert table_markdown(server.app) in (ROOT / "docs" / "page.md").read_text(encoding="utf-8"), (
        "write it anew: python -m surefoot.web.table docs/page.md"
    )


def test_the_service_of_the_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Twenty lines, as printed."""
    code = re.search(
        r"```python\n(import os.*?)```", (ROOT / "docs" / "page.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert code and code[1].count("\n") <= 20
    arms = (Arm("cream A", 0.5, 2.0), Arm("cream B", 0.5, 2.0))
    problem = Problem(arms=arms, limit=1.0, shape="linear", noise=Noise("gaussian", 0.02), delta=0.1)
    Study.create(tmp_path / "x.db", "creams", problem, actor="x", seed=1)
    with serving(tmp_path / "x.db") as server:
        monkeypatch.setenv("SUREFOOT_URL", server.url)
        monkeypatch.setenv("SUREFOOT_TOKEN", robot(server))
        exec(compile(code[1], "docs/page.md", "exec"), {})
    assert capsys.readouterr().out.startswith("cream A is the best arm.")


def test_names_are_refused_in_words(server: Server) -> None:
    client = server.person("names", "statistician")
    form = {"token": token(client), "key": "n", "text": START}
    for name in ("x" * 201, "", "0ne"):
        answer = client.post("/lab/create", data=form | {"name": name})
        assert answer.status_code == 422 and ("must be a line" in answer.text or "look alike" in answer.text)
    assert client.post("/lab/create", data=form | {"name": "ط" * 200}).status_code == 200


def test_on_postgresql(postgres: str, tmp_path: Path) -> None:
    """Accounts, a study and a page on the database that several clinics share."""
    with serving(postgres) as server, Client.create(server.url, robot(server), "pg", case("paper-linear", 3)[0]) as far:
        first = far.assign(1, "north")[0]
        far.tell(first.id, effect=0.1, harm=0.2)
        page = server.person("reads", "reader").get("/study/pg")
        assert "Running: cohort 1" in page.text and far.verify()["ok"]


def test_it_is_not_put_in_the_open(tmp_path: Path) -> None:
    with pytest.raises(SurefootError, match="in the open"):
        serve(tmp_path / "x.db", host="0.0.0.0")
    with pytest.raises(SurefootError, match="behind-proxy"):
        serve(tmp_path / "x.db", sso="x-user")
    with pytest.raises(SurefootError, match="both"):
        serve(tmp_path / "x.db", certificate=Path("x"))


def test_what_is_vendored_is_what_it_was() -> None:
    import hashlib

    static = ROOT / "src" / "surefoot" / "web" / "static"
    text = (static / "LICENSES.txt").read_text(encoding="utf-8")
    for name in ("htmx.min.js", "htmx-sse.min.js"):
        assert hashlib.sha256((static / name).read_bytes()).hexdigest() in text
