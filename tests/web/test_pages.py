"""The pages and the API over HTTP: the same study, told through each."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot import Arm, Client, Noise, Problem, Study, SurefootError, case, make
from surefoot.checks import path_of
from surefoot.study import simulated
from surefoot.study.rehearsal import rehearse
from surefoot.study.status import grouped
from surefoot.web import serve
from surefoot.web.board import since
from surefoot.web.charts import Axes, number, ticks
from surefoot.web.hub import name_of
from surefoot.web.jobs import Jobs
from surefoot.web.lab_work import START, report
from surefoot.web.work import WORK, as_read
from tools.routes import table_markdown

from .server import Server, play, serving, token

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("jobs")


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
    with pytest.raises(
        SurefootError, match=r"is paused by .*: lunch\. What to do: resume it with a reason, or stop it"
    ):
        study.ask()
    study.resume("back")
    study.assign(1, "north")
    study.give_back([study.ask(site="north")[0].id], "not needed")
    study.correct(first.id, harm=0.25, reason="digits swapped")
    while asked := study.ask():
        study.tell_many(simulated(problem, truth, asked, 5))


def test_the_same_loop_on_a_file_and_on_a_server(tmp_path: Path) -> None:
    problem, truth = case("paper-linear", 3, budget=40)
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


def test_a_client_says_what_is_wrong(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = tmp_path / "two.db"
    for name in ("a", "b"):
        play(db, name, "paper-linear", 2, most=0)
    with serving(db) as two:
        with pytest.raises(SurefootError, match="does not hold one study alone, name one: 'a', 'b'"):
            Client(two.url, robot(two))
        with Client(two.url, robot(two, "two"), "a") as far:
            with pytest.raises(SurefootError, match="harm must be a number"):
                far.tell(far.ask(blocks=False)[0].id, harm=b"3")
            with pytest.raises(SurefootError, match="told subject by subject"):
                far.ask(blocks=True)
            far.void(far.ask()[0].id, "left")
            assert far.preview()
            far.stop("no money")
            assert far.status()["standing"] == "stopped"
        design = make("surefoot-linear", cohort=7)
        with Client.create(two.url, robot(two, "three"), "c", case("paper-linear", 2)[0], design) as other:
            assert two.site.hub.study("c").view.design == design and other.studies() == ["a", "b", "c"]
    monkeypatch.setattr("surefoot.client.PAUSE", 0.01)
    with pytest.raises(SurefootError, match=r"does not answer .* send it again"):
        Client(two.url, "gone")
    monkeypatch.setattr("surefoot.client.Client._at", lambda self, rest="": "/../../login")
    with Client(server.url, robot(server, "lost"), "one") as lost, pytest.raises(SurefootError, match="not in JSON"):
        lost.status()


def test_jobs_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many for one person, so many for all, so long; what fails says so."""
    monkeypatch.setattr("surefoot.web.jobs.WAITING", 5)
    monkeypatch.setattr("surefoot.web.jobs.KEPT", 2)
    jobs = Jobs(spare=True)
    try:
        with pytest.raises(SurefootError, match="this is a defect: KeyError"):
            jobs.wait(jobs.start("nothing", "ann"))
        with pytest.raises(SurefootError, match="no file"):
            jobs.wait(jobs.start("readings", "ann", url=f"{tmp_path}/none.db", study="x"))
        monkeypatch.setattr(jobs, "free", threading.Semaphore(0))
        many = [jobs.start("look", "ann") for _ in range(4)]
        with pytest.raises(SurefootError, match="four things are being worked out for you"):
            jobs.start("look", "ann")
        jobs.start("look", "bob")
        with pytest.raises(SurefootError, match="too much is being worked out"):
            jobs.start("look", "cyd")
        with pytest.raises(SurefootError, match="took longer than 0 seconds, and was given up"):
            jobs.wait(many[0], 0.01)
        assert many[0].state == "cancelled" and jobs.find(many[1].id, "bob") is None and len(jobs.jobs) == 5
        jobs._too_long(many[1])
        assert many[1].state == "failed" and "given up after 10 minutes" in many[1].words
    finally:
        jobs.close()
    assert not any(job.live for job in jobs.jobs.values())


def test_what_jobs_look_up(tmp_path: Path) -> None:
    """The work of a job, here, on a study of a few cohorts."""
    db = tmp_path / "x.db"
    study = play(db, "one", "paper-linear", 3, most=2)

    def done(kind: str, **asked: Any) -> Any:
        return WORK[kind](lambda *_: None, url=f"sqlite:///{db}", study="one", **asked)

    first = study.readings()[0]["id"]
    words = {"command": "correct", "actor": "ann", "arguments": {"id": first, "harm": 9.0, "reason": "typed wrongly"}}
    assert done("look", **words)["arms"] and done("verify")["ok"] and first in done("readings")
    text = f"id,effect,harm\n{study.ask()[0].id},0.1,0.1"
    assert done("look", command="tell_many", actor="ann", arguments={"text": text})["standing"] == ["running"] * 2
    assert "<html" in done("certificate")["html"] and done("preview")["rows"]
    assert done("forecast", trials=2)["forecasts"][0]["trials"] == 2
    with pytest.raises(SurefootError, match="1 to 20,000 trials"):
        done("forecast", trials=0)
    with pytest.raises(SurefootError, match="this text is about the arms cream A"):
        done("forecast", trials=2, text=START)
    assert len(study.log()) == len(Study.open(db, "one").log())


def test_what_the_lab_simulates() -> None:
    """The work of a job, here: what is written into the page, and what is refused."""
    said: list[float] = []
    made = report(lambda part, _: said.append(part), START, ["surefoot-linear"], 2, [100])
    assert said and "surefoot-linear" in made["html"]
    for designs, trials, words in (([], 2, "at least one design"), (["safebai-linear"], 0, "trials must be from 1")):
        with pytest.raises(SurefootError, match=words):
            report(lambda *_: None, START, designs, trials, [100])
    with pytest.raises(SurefootError, match="give every arm a curve"):
        report(lambda *_: None, case("paper-linear", 2)[0].to_toml(), ["safebai-linear"], 2, [100])


def test_few_points_of_many_doses_and_what_has_changed_since(tmp_path: Path) -> None:
    rows = [{"n": k, "dose": 0.1 * k, "effect": 1.0, "harm": 0.1 * k} for k in range(1, 31)]
    few = grouped(rows)
    assert len(few) == 8 and sum(row["n"] for row in few) == sum(row["n"] for row in rows)
    assert all(abs(row["harm"] - row["dose"]) < 1e-9 for row in few) and len(grouped(rows[:8])) == 8
    view = play(tmp_path / "x.db", "x", "paper-linear", 2, most=20).view
    assert since(view, view.seq) == []
    changed = {row["arm"]: row["changes"] for row in since(view, 1)}
    assert "→" in changed["arm 2"][0] and "safe dose 0.1 → " in changed["arm 1"][0], changed


def test_pictures_of_little() -> None:
    assert (number(None), number("x"), ticks(1.0, 1.0)) == ("?", "x", [1.0])
    picture = Axes((0, 0, 100, 50), (0, 4), (0, 1))
    picture.steps([0, 1, 2, 3], [0.5, None, 0.2, 0.3], "upper")
    assert "".join(picture.parts).count("<polyline") == 2, "broken where there is nothing"


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


def test_a_site_of_any_name_sees_what_it_reserved(server: Server) -> None:
    client, study = server.person("reserves", "statistician"), server.site.hub.study("one")
    asked = {"token": token(client), "key": "ward", "site": "ward 1/2 ~&", "count": "1"}
    shown = client.post("/study/one/take", data=asked)
    (mine,) = study.ask(site="ward 1/2 ~&")
    assert "1 reserved for ward 1/2" in shown.text and mine.id in shown.text
    study.give_back([mine.id], "a test", actor="reserves")


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
        "write it anew: python -m tools.routes docs/page.md"
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
