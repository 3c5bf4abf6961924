"""A study that nobody can break, forge or quietly change: what was tried on 0.1.0, and worked there."""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from surefoot import Scenario, Study, SurefootError
from surefoot.cli import main
from surefoot.designs import linear_evidence as evidence_module
from surefoot.designs import linear_policy
from surefoot.designs.linear_evidence import LinearEvidence
from surefoot.scenario import Linear, Table
from surefoot.study import Paused, published, rows, simulated
from surefoot.study.checker import Broken
from surefoot.study.fold import View
from surefoot.study.keys import Key, countersign, signers
from surefoot.study.text import distinct, skeleton
from surefoot.study.verify import differences

from .subjects import problem, run, subjects


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.create(tmp_path / "s.db", "s", problem(), actor="ann", seed=1, watch="warn")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Study:
    made = Study.create(tmp_path_factory.mktemp("e") / "s.db", "s", problem(), actor="ann", seed=1, watch="warn")
    return run(made, subjects(problem()))


def together(*works: Any) -> list[BaseException]:
    """All of them at once, in threads; what they raised."""
    wrong: list[BaseException] = []

    def guarded(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


class TestThreads:
    def test_writers_and_readers_share_one_study(self, url: str) -> None:
        p = problem(sigma=0.35).but(budget=60)
        study, people = Study.create(url, "s", p, seed=11, watch="warn"), subjects(p)

        def write(k: int) -> None:
            while study.verdict().endings() == ["running"]:
                for a in [a for a in study.ask() if a.subject % 2 == k][:3]:
                    r = people.read(a)
                    study.tell(a.id, r["effect"], r["harm"], actor=f"thread {k}")

        def read() -> None:
            while study.status()["standing"] == "running":
                study.readings()

        assert not together(lambda: write(0), lambda: write(1), read, read)
        again = Study.open(url)
        assert again.verify(head=study.view.hash)["ok"]
        told = [e.data["id"] for e in again.log() if e.kind == "told"]
        assert sorted(told) == list(range(1, len(told) + 1))
        assert {e.actor for e in again.log() if e.kind == "told"} == {"thread 0", "thread 1"}

    def test_in_memory_too(self) -> None:
        study = Study.create("sqlite://", "s", problem(), seed=1)
        rows = subjects(problem()).rows(study.ask())
        assert not together(*(lambda r=r: study.tell(**r) for r in rows))
        assert len(study.view.cohorts) == 2

    def test_the_fold_refuses_an_event_that_is_not_the_next(self, study: Study) -> None:
        view = View()
        first, second = study.log()[:2]
        view.take(first)
        for wrong in (first, second._replace(seq=3), second._replace(prev="0" * 64)):
            with pytest.raises(ValueError, match="does not follow event 1"):
                view.take(wrong)
        view.take(second)


class TestCertificates:
    @pytest.mark.parametrize("change", [
        {"head": {"seq": 0}}, {"head": {"seq": -1}}, {"head": {"seq": 2.5}}, {"head": {"seq": True}},
        {"head": {"seq": 10**9}}, {"head": None}, {"head": "x"},
    ])  # fmt: skip
    def test_one_with_another_head_is_refused(self, ended: Study, change: dict[str, Any]) -> None:
        content = ended.certificate().content
        if isinstance(change["head"], dict):
            change = {"head": content["head"] | change["head"]}
        assert not ended.verify(certificate=content | change)["ok"]

    @pytest.mark.parametrize("nonsense", [{}, [], "null", "x", "", 3, {"surefoot": "certificate"}, "<!doctype html>"])
    def test_what_is_none_is_refused(self, ended: Study, nonsense: Any) -> None:
        report = ended.verify(certificate=nonsense)
        assert not report["ok"] and "certificate" in report["message"]

    def test_every_field_is_compared_and_the_answer_says_so(self, ended: Study) -> None:
        content = ended.certificate().content
        report = ended.verify(certificate=content)
        assert report["ok"] and report["compared"] == list(content)
        for path, leaf in leaves(content):
            changed = json.loads(json.dumps(content))
            at = changed
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = other(leaf)
            assert next(differences(content, changed, "")), path
            del at[path[-1]]
            assert next(differences(content, changed, "")), path
        changes: list[dict[str, Any]] = [{"and": "more"}, {"covered": "all"}, {"arms": []}]
        for change in changes:
            assert not ended.verify(certificate=content | change)["ok"]

    def test_the_page_carries_it(self, ended: Study) -> None:
        page = ended.certificate().to_html()
        assert ended.verify(certificate=page)["compared"][-1] == "the page"
        assert not ended.verify(certificate=page.replace("A is the best arm", "B is the best arm"))["ok"]
        seen, _, embedded = page.partition("<script")
        assert not ended.verify(certificate=seen.replace("best arm", "worst arm") + "<script" + embedded)["ok"]

    def test_an_old_one_passes_and_what_came_since_is_said(self, study: Study) -> None:
        old, head = study.certificate(), study.view.hash
        study.tell_many(subjects(problem()).rows(study.ask()[:3]))
        for given in ({"certificate": old.content}, {"head": head}):
            report = study.verify(**given)
            assert report["ok"] and report["since"] == {"told": 3} and "3 told" in report["message"]


def leaves(x: Any, path: tuple[Any, ...] = ()) -> Any:
    for key, value in x.items() if isinstance(x, dict) else enumerate(x):
        if isinstance(value, (dict, list)) and value:
            yield from list(leaves(value, (*path, key)))[:4] if len(path) > 1 else leaves(value, (*path, key))
        else:
            yield (*path, key), value


def other(x: Any) -> Any:
    if isinstance(x, bool) or x is None:
        return "x"
    return x * (1 + 1e-6) + 1e-300 if isinstance(x, (int, float)) else f"{x}x" if isinstance(x, str) else [1]


class TestAnotherVersion:
    """Proof and policy are apart: a policy may change under a study, evidence may not."""

    def test_of_the_policy_changes_nothing_that_was_concluded(self, study: Study, monkeypatch: Any) -> None:
        people = subjects(problem())
        for _ in range(4):
            study.tell_many(people.rows(study.ask()))
        before = study.certificate().content
        monkeypatch.setattr(linear_policy, "FLOOR", 0.5)
        monkeypatch.setattr(linear_policy.LinearPolicy, "choose", lazily)
        again = Study.open(study.journal.url)
        assert again.certificate().content == before
        assert again.ask() == study.ask(), "what is out is out"
        run(again, people)
        assert again.view.ended and again.verify(certificate=before)["ok"]
        monkeypatch.undo()
        assert again.verify()["ok"] and Study.open(study.journal.url).status() == again.status()

    @pytest.mark.parametrize("ends", [False, True])
    def test_of_the_evidence_is_refused(self, study: Study, monkeypatch: Any, ends: bool) -> None:
        people = subjects(problem())
        for _ in range(100 if ends else 6):
            study.tell_many(people.rows(study.ask()))
        words = study.certificate().content["concluded"]["words"]
        first = next(c for c in study.view.cohorts if max(c.dose) > 0.2)
        monkeypatch.setattr(evidence_module, "SAFETY", 0.5)
        again = Study.open(study.journal.url)
        with pytest.raises(SurefootError, match=rf"event {first.seq} certified"):
            again.ask()
        with pytest.raises(SurefootError, match="can only be looked at"):
            again.pause("x")
        with pytest.raises(SurefootError, match="cannot be adopted"):
            again.adopt("it looks better")
        assert not again.verify()["ok"] and f"event {first.seq}" in again.status()["trouble"]
        if ends:
            assert again.status()["standing"] != "running"
            assert again.certificate().content["concluded"]["words"].startswith(words[:20])

    def test_that_only_rounds_otherwise_is_adopted_with_a_reason(self, study: Study, monkeypatch: Any) -> None:
        people = subjects(problem())
        for _ in range(6):
            study.tell_many(people.rows(study.ask()))
        monkeypatch.setattr(published, "_digest", lambda module: "another")
        monkeypatch.setattr(
            LinearEvidence, "certified", lambda self, s: np.where(s.safe > 0.2, s.safe * (1 - 1e-8), 0.2)
        )
        again = Study.open(study.journal.url, actor="bob")
        with pytest.raises(SurefootError, match="can only be looked at"):
            again.ask()
        with pytest.raises(SurefootError, match="reason"):
            again.adopt("")
        again.adopt("another processor, the last digits differ")
        assert again.ask()
        assert "another processor" in json.dumps(again.certificate().content["record"])
        run(again, people)
        assert Study.open(study.journal.url).view.ended

    def test_of_its_text_alone_is_adopted(self, study: Study, monkeypatch: Any) -> None:
        with pytest.raises(SurefootError, match="nothing to adopt"):
            study.adopt("why not")
        monkeypatch.setattr(published, "_digest", lambda module: "another")
        with pytest.raises(SurefootError, match="come out the same: adopt it"):
            study.ask()
        study.adopt("a comment was changed")
        assert study.ask()

    def test_of_the_theorem_is_refused(self, study: Study, monkeypatch: Any) -> None:
        monkeypatch.setattr(LinearEvidence, "theorem", "surefoot-linear/99")
        with pytest.raises(SurefootError, match="this surefoot has surefoot-linear/99"):
            Study.open(study.journal.url).ask()


def lazily(self: Any, state: Any, u: Any) -> Any:
    from surefoot import designs

    return designs.Cohort(np.minimum(state.safe, 0.5), np.where(state.standing == 0, 7, 0))


class TestTheFile:
    def edit(self, study: Study, sql: str) -> None:
        study.journal.engine.dispose()
        with closing(sqlite3.connect(str(study.journal.file))) as raw, raw:
            raw.execute(sql)

    def test_an_edited_dose_is_not_handed_out(self, study: Study) -> None:
        self.edit(study, "UPDATE surefoot_events SET payload = replace(payload, '0.2', '0.9') WHERE kind = 'opened'")
        with pytest.raises(SurefootError, match="was changed"):
            Study.open(study.journal.url).ask()

    def test_nor_one_whose_hashes_were_made_anew(self, study: Study) -> None:
        opened = study.log()[-1]
        data = opened.data | {"dose": [0.9] * 3}
        forged = opened._replace(payload=rows.dumps(data))
        study.journal.engine.dispose()
        with closing(sqlite3.connect(str(study.journal.file))) as raw, raw:
            raw.execute(
                "UPDATE surefoot_events SET payload = ?, hash = ? WHERE seq = 2", (forged.payload, forged.seal())
            )
            again = Study.open(study.journal.url)
        with pytest.raises(SurefootError, match="not certified"):
            again.ask()
        assert "not certified" in again.status()["trouble"] and not again.verify()["ok"]

    def test_an_edited_reading_of_a_past_cohort(self, study: Study) -> None:
        people = subjects(problem())
        for _ in range(4):
            study.tell_many(people.rows(study.ask()))
        self.edit(
            study, "UPDATE surefoot_events SET payload = replace(payload, '\"harm\":0.', '\"harm\":0.0') WHERE seq < 12"
        )
        again = Study.open(study.journal.url)
        with pytest.raises(SurefootError, match=r"event .* certified|was changed"):
            again.ask()
        assert again.status()["trouble"]

    def test_the_file_alone_is_complete(self, study: Study, tmp_path: Path) -> None:
        """No log beside it is needed while nothing runs, though the study is still open here."""
        study.tell_many(subjects(problem()).rows(study.ask()))
        shutil.copy(tmp_path / "s.db", tmp_path / "copy.db")
        assert Study.open(tmp_path / "copy.db").log() == study.log()

    def test_a_backup_at_any_time(self, url: str, tmp_path: Path) -> None:
        study = Study.create(url, "s", problem(), seed=1)
        study.tell(study.ask()[0].id, 0.1, 0.1)
        assert Study.open(study.backup(tmp_path / "b.db")).log() == study.log()
        with pytest.raises(SurefootError, match="already"):
            study.backup(tmp_path / "b.db")
        with pytest.raises(SurefootError):
            study.backup(tmp_path / "no" / "b.db")

    @pytest.mark.parametrize("replaced", [False, True])
    def test_one_that_is_gone_or_replaced_is_noticed(self, study: Study, tmp_path: Path, replaced: bool) -> None:
        a = study.ask()[0]
        for name in ("s.db", "s.db-wal", "s.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        if replaced:
            Study.create(tmp_path / "s.db", "s", problem(), seed=2)
        with pytest.raises(SurefootError, match="replaced" if replaced else "is gone"):
            study.tell(a.id, 0.1, 0.1)
        with pytest.raises(SurefootError, match="replaced" if replaced else "is gone"):
            study.ask()

    def test_one_that_goes_just_before_the_commit(self, study: Study, tmp_path: Path, monkeypatch: Any) -> None:
        a = study.ask()[0]
        real = View.follow

        def unlink(view: View) -> Any:
            (tmp_path / "s.db").unlink(missing_ok=True)
            return real(view)

        monkeypatch.setattr(View, "follow", unlink)
        with pytest.raises(SurefootError, match="is gone"):
            study.tell(a.id, 0.1, 0.1)

    def test_a_clock_that_goes_backwards(self, study: Study, monkeypatch: Any) -> None:
        real = rows.now
        monkeypatch.setattr(rows, "now", lambda: real() - timedelta(hours=1))
        study.tell(study.ask()[0].id, 0.1, 0.1)
        study.tell(study.ask()[0].id, 0.1, 0.1)
        notes = [e for e in study.log() if e.kind == "clock"]
        assert len(notes) == 1 and notes[0].at < study.log()[0].at and notes[0].data == {}
        assert study.verify()["ok"] and "clock" in json.dumps(study.certificate().content["record"])


class TestLostConnections:
    def broken(self, study: Study, monkeypatch: Any, after: bool, dead: bool) -> None:
        """The connection is cut before or after the commit, and perhaps for good."""
        real = sa.RootTransaction.commit

        def commit(transaction: Any) -> None:
            if after:
                real(transaction)
            else:
                transaction.rollback()
            if dead:
                monkeypatch.setattr(study.journal, "_reading", refuse)
            raise sa.exc.OperationalError("COMMIT", {}, Exception("server closed the connection"))

        def refuse() -> Any:
            raise SurefootError("no server")

        monkeypatch.setattr(sa.RootTransaction, "commit", commit)

    @pytest.mark.parametrize("after", [False, True])
    def test_what_is_not_known_is_not_said(self, url: str, monkeypatch: Any, after: bool) -> None:
        study = Study.create(url, "s", problem(), seed=1)
        a = study.ask()[0]
        with monkeypatch.context() as patch:
            self.broken(study, patch, after, dead=True)
            with pytest.raises(SurefootError, match="unknown: send it again, it will not double") as caught:
                study.tell(a.id, 0.1, 0.2)
            assert "nothing was changed" not in str(caught.value)
        study.tell(a.id, 0.1, 0.2)
        assert [e.kind for e in study.log()] == ["created", "opened", "told"]

    def test_what_was_written_after_all_is_found(self, url: str, monkeypatch: Any) -> None:
        study = Study.create(url, "s", problem(), seed=1)
        with monkeypatch.context() as patch:
            self.broken(study, patch, after=True, dead=False)
            study.tell(study.ask()[0].id, 0.1, 0.2)
        assert study.log()[-1].kind == "told"

    def test_a_server_that_came_back(self, postgres: str, tmp_path: Path) -> None:
        """Connections are tested before use."""
        from .test_replay import fresh

        study = Study.create(fresh(postgres), "s", problem(), seed=1)
        with study.journal.engine.connect() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        other_ = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")
        with other_.connect() as connection:
            connection.exec_driver_sql(f"SELECT pg_terminate_backend({pid})")
        other_.dispose()
        study.tell(study.ask()[0].id, 0.1, 0.1)

    def test_an_interrupt_on_the_command_line(self, study: Study, monkeypatch: Any, capsys: Any) -> None:
        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Study, "tell", interrupted)
        with pytest.raises(SystemExit):
            main(["study", "tell", study.ask()[0].id, "--harm", "1", "--db", str(study.journal.file)])
        assert "unknown: send it again, it will not double" in capsys.readouterr().err


class TestSites:
    def test_eight_sites_that_ask_at_once_get_eight(self, url: str) -> None:
        Study.create(url, "s", problem(), seed=1)
        got: list[str] = []

        def take(site: str) -> Any:
            return lambda: got.extend(a.id for a in Study.open(url).assign(1, f"site no {site}"))

        sites = [take(site) for site in "abcdefgh"]
        assert not together(*sites)
        assert len(set(got)) == 8
        study = Study.open(url)
        assert not {a.id for a in study.ask()} & set(got)
        assert [a.id for a in study.ask(site="site no a")] and study.status()["open"] == len(study.ask()) + 8
        mine = study.ask(site="site no a")[0]
        with pytest.raises(SurefootError, match="reason"):
            study.give_back([mine.id], "")
        study.give_back([mine.id], "the patient did not come")
        assert mine in study.ask()
        with pytest.raises(SurefootError, match="not reserved"):
            study.give_back([mine.id], "again")
        run_reserved(study)
        assert study.verify()["ok"]

    def test_what_a_desk_sees(self, study: Study) -> None:
        desk = study.desk("site 3", actor="nurse")
        first = desk.next(2)
        assert [set(a) for a in first] == [{"id", "arm", "dose"}] * 2
        assert desk.open() == first
        desk.tell(first[0]["id"], 0.1, 0.1)
        assert desk.open() == first[1:]
        assert study.log()[-1].actor == "nurse"
        shown = json.dumps([first, desk.open()])
        assert "seed" not in shown and "certified" not in shown
        assert not [name for name in dir(desk) if not name.startswith("_") and name not in DESK]


DESK = ("actor", "awaiting", "check", "next", "open", "site", "tell", "void")


def run_reserved(study: Study) -> None:
    people = subjects(problem())
    for row in [r for r in study.readings() if r["status"] == "open"]:
        a = next(a for a in study.ask(site=row["site"]) if a.id == row["id"])
        study.tell_many(people.rows([a]))


class TestCheckpoints:
    def test_prove_that_the_journal_extends_them(self, study: Study, tmp_path: Path) -> None:
        key, witness = Key.new(tmp_path / "key"), Key.new(tmp_path / "witness")
        assert stat.S_IMODE(os.stat(tmp_path / "key").st_mode) == 0o600
        with pytest.raises(SurefootError, match="already"):
            Key.new(tmp_path / "key")
        study.tell_many(subjects(problem()).rows(study.ask()))
        note = countersign(study.checkpoint(tmp_path / "key"), witness)
        assert signers(note) == {key.public, witness.public}
        study.tell(study.ask()[0].id, 0.1, 0.1)
        for public in (key.public, witness.public):
            report = study.verify(checkpoint=note, keys=[public])
            assert report["ok"] and report["authenticated"] and "authenticated up to event" in report["message"]
        plain = study.verify()
        assert plain["ok"] and not plain["authenticated"] and "consistent, not authenticated" in plain["message"]
        assert not study.verify(checkpoint=note, keys=["00" * 32])["ok"]
        assert not study.verify(checkpoint=note)["ok"]
        changes: list[dict[str, Any]] = [
            {"events": 3},
            {"head": "0" * 64},
            {"study": "t"},
            {"at": "x"},
            {"signatures": []},
        ]
        for change in changes:
            assert not study.verify(checkpoint=note | change, keys=[key.public])["ok"]
        private = json.loads((tmp_path / "key").read_text())["private"]
        assert private not in json.dumps(study.export()), "a key is never in the journal"

    def test_a_whole_chain_made_anew_is_found(self, study: Study, tmp_path: Path) -> None:
        from surefoot.study.verify import check

        from .test_certificate import sealed

        key = Key.new(tmp_path / "key")
        study.tell_many(subjects(problem()).rows(study.ask()))
        note = study.checkpoint(tmp_path / "key")
        events = study.log()
        told = next(k for k, e in enumerate(events) if e.kind == "told")
        forged = sealed([*events[:told], events[told]._replace(actor="mallory"), *events[told + 1 :]])
        assert check(forged)["ok"] and not check(forged, checkpoint=note, keys=[key.public])["ok"]

    def test_a_key_that_others_can_read_is_refused(self, study: Study, tmp_path: Path) -> None:
        Key.new(tmp_path / "key")
        os.chmod(tmp_path / "key", 0o644)
        with pytest.raises(SurefootError, match="chmod 600"):
            study.checkpoint(tmp_path / "key")
        for bad in ("none", "s.db"):
            with pytest.raises(SurefootError):
                study.checkpoint(tmp_path / bad)


class TestReadingsThatCannotBe:
    def test_are_refused_unless_confirmed_with_a_reason(self, tmp_path: Path) -> None:
        p = problem()
        study = Study.create(tmp_path / "s.db", "s", p, seed=1, plausible={"harm": (-1, 3), "effect": (-2, 2)})
        a, b = study.ask()[:2]
        for values in ({"effect": 0.1, "harm": 31.0}, {"effect": -5.0, "harm": 0.1}):
            with pytest.raises(SurefootError, match=r"harm from -1 to 3.*confirm"):
                study.tell(a.id, values["effect"], values["harm"])
        study.tell(a.id, 0.1, 31.0, confirm="seen twice, by two people")
        with pytest.raises(SurefootError, match="a reason"):
            study.tell(b.id, 0.1, 31.0, confirm=" ")
        assert [e.reason for e in study.log() if e.kind == "told"] == ["seen twice, by two people"]
        assert study.verify()["ok"] and Study.open(study.journal.url).view.harm[a.subject] == 31.0
        for bad in ({"dose": (0, 1)}, {"harm": (1, 0)}, {"harm": 3}, {}, [1], {"harm": (0, math.nan)}):
            with pytest.raises(SurefootError):
                Study.create(tmp_path / "t.db", "t", p, plausible=bad)  # type: ignore[arg-type]

    def test_a_pause_by_a_watch_is_lifted_by_another(self, tmp_path: Path) -> None:
        p = problem()
        study = Study.create(tmp_path / "s.db", "s", p, actor="ann", seed=1)
        while study.view.standing == "running":
            study.tell_many([{"id": a.id, "effect": 0.1, "harm": 3.0} for a in study.ask()], actor="bob")
        assert study.log()[-1].data["by"] == "watch"
        with pytest.raises(Paused, match=r"by a watch on .*What to do: .* also at a dose that was flagged"):
            study.ask()
        with pytest.raises(SurefootError, match=r"another actor lifts that .ann"):
            study.resume("it is fine", actor="bob")
        study.resume("we looked into it", actor="ann")
        alone = Study.create(tmp_path / "t.db", "t", p, actor="bob", seed=1)
        while alone.view.standing == "running":
            alone.tell_many([{"id": a.id, "effect": 0.1, "harm": 3.0} for a in alone.ask()])
        alone.resume("there is nobody else")


class TestBrokenAssumptions:
    """`python -m benchmarks.watches` has a dozen of them; see docs/trust.md for where there is no power."""

    def live(self, p: Any, harm: Any, seed: int) -> Study:
        study = Study.create("sqlite://", "s", p, seed=seed)
        truth = Scenario((Linear(0.9), Linear(0.7), Linear(0.6)), (harm,) * 3)
        while study.view.standing == "running" and study.view.subjects < 1500:
            study.tell_many(simulated(p, truth, study.ask(), seed))
        return study

    @pytest.mark.parametrize("times", [1.2, 1.35, 1.5])
    def test_start_doses_over_the_limit_name_nobody(self, times: float) -> None:
        for seed in range(4):
            study = self.live(problem(sigma=0.3), Linear(5 * times), seed)
            assert study.view.standing in ("paused", "ended") and study.view.subjects < 400
            assert study.status()["winner"] is None
            assert study.certificate().content["concluded"]["winner"] is None
            if study.view.standing == "paused":
                assert str(study.log()[-1].reason).startswith("start")
            assert study.verify()["ok"]

    def test_a_resumed_study_still_names_nobody(self) -> None:
        study = self.live(problem(sigma=0.3), Linear(6.0), 1)
        while study.view.standing == "paused":
            study.resume("we go on")
            truth = Scenario((Linear(0.9), Linear(0.7), Linear(0.6)), (Linear(6.0),) * 3)
            while study.view.standing == "running":
                study.tell_many(simulated(study.view.problem, truth, study.ask(), 1))
        assert study.view.standing == "ended" and study.status()["winner"] is None
        assert "No arm is named" in study.certificate().content["concluded"]["words"]
        assert study.verify()["ok"]

    def test_a_jump_of_harm_where_a_line_was_declared(self) -> None:
        p = problem(sigma=0.3)
        jump = Table((0.0, 0.6, 0.61, 2.0), (0.0, 0.3, 1.3, 1.6))
        seen = [self.live(p.but(arms=tuple(replace(a, max=2.0) for a in p.arms)), jump, seed) for seed in range(4)]
        assert sum(study.view.standing == "paused" for study in seen) >= 3


class TestNames:
    NASTY = ("[bold]x[/bold]", "[red]", "x[/]", "=cmd()", "@x", "a\u00a0b")

    def test_everything_printed_is_escaped(self, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
        p = problem()
        arms = tuple(replace(arm, name=name) for arm, name in zip(p.arms, ("A [1]", "B [/red]", "=1+1"), strict=True))
        study = Study.create(tmp_path / "s.db", "[b]s[/i]", p.but(arms=arms), actor="[ann]", seed=1)
        study.pause("we saw [/] and [blink]x")
        study.resume("[on]")
        study.tell(study.ask()[0].id, 0.1, 0.1)
        monkeypatch.setenv("COLUMNS", "250")

        def said(*arguments: str) -> str:
            with pytest.raises(SystemExit) as stop:
                main(["study", *arguments, "--db", str(tmp_path / "s.db")])
            assert stop.value.code == 0
            return str(capsys.readouterr().out)

        assert "A [1]" in said("status") and "B [/red]" in said("ask")
        assert "[/] and [blink]x" in said("log") and "[ann]" in said("log") and "[b]s[/i]" in said("list")
        assert ",'=1+1," in said("export")
        said("certificate")
        said("preview")

    @pytest.mark.parametrize("name", ["a\u202eb", "a\x1b[31m", "a\nb", "x" * 201, "\u200b", "a\u0000"])
    def test_names_that_cannot_be_read_are_refused(self, tmp_path: Path, name: str) -> None:
        p = problem()
        calls: list[Any] = [
            lambda: replace(p.arms[0], name=name),
            lambda: Study.create(tmp_path / "s.db", name, p),
            lambda: Study.create(tmp_path / "s.db", "s", p, actor=name * 2 if name[0] == "x" else name),
        ]
        for call in calls:
            with pytest.raises(SurefootError, match="that can be printed"):
                call()
        assert not (tmp_path / "s.db").exists()

    @pytest.mark.parametrize("one, two", [("A", "\u0410"), ("drug 1", "drug l"), ("drug 1", "Drug  1"), ("corn", "com"),
                                          ("\u00e9", "e\u0301"), ("O2", "02")])  # fmt: skip
    def test_names_that_look_alike_are_refused(self, tmp_path: Path, one: str, two: str) -> None:
        p = problem()
        arms = (replace(p.arms[0], name=one), replace(p.arms[1], name=two), p.arms[2])
        with pytest.raises(SurefootError, match="look alike"):
            Study.create(tmp_path / "s.db", "s", p.but(arms=arms))
        Study.create(tmp_path / "s.db", one, p)
        with pytest.raises(SurefootError, match="look alike"):
            Study.create(tmp_path / "s.db", two, p)
        assert skeleton(one) == skeleton(two)
        distinct("x", ["drug 1", "drug 2", "A", "B", "placebo"])


def test_endings_imports_and_exports_are_events(ended: Study, tmp_path: Path) -> None:
    end = next(e for e in ended.log() if e.kind == "ended")
    assert end.data["ending"] == "best-arm" and end.data["winner"] == 0 and len(end.data["out"]) == 3
    copy = Study.load(tmp_path / "c.db", ended.export(), actor="carl")
    assert [e.kind for e in copy.log()[-2:]] == ["exported", "imported"]
    assert copy.log()[-1].actor == "carl" and copy.verify()["ok"]


def test_stakes_are_in_the_journal_before_the_readings(ended: Study) -> None:
    names = LinearEvidence().stakes(problem())
    for event in ended.log():
        if event.kind == "opened":
            for staked, n in zip(event.data["stakes"], event.data["n"], strict=True):
                assert not n or len(staked) == len(names)
    first = ended.log()[0].data["theorem"]
    assert first["name"] == "surefoot-linear/6" and len(first["digest"]) == 64


@pytest.mark.parametrize("shape", ["linear", "monotonic"])
def test_any_single_change_is_found(shape: str, tmp_path: Path) -> None:
    """A stake, a dose, a reading, a number, a name: as it stands, and with all hashes made anew given a checkpoint."""
    from surefoot.study.checker import check as alone
    from surefoot.study.verify import check

    from .test_certificate import sealed

    key, p = Key.new(tmp_path / "key"), problem(shape)
    study = Study.create(tmp_path / "s.db", "s", p, seed=1, watch="warn")
    for _ in range(6):
        study.tell_many(subjects(p).rows(study.ask()))
    note, events = study.checkpoint(tmp_path / "key"), study.log()
    rng, seen = np.random.default_rng(0), set[str]()
    for _ in range(100):
        at = int(rng.integers(len(events)))
        data = events[at].data
        paths = [path for path, _ in leaves(data)]
        if not paths:
            continue
        path = paths[int(rng.integers(len(paths)))]
        seen.add(str(path[0]))
        inner = data
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = other(inner[path[-1]])
        changed = [*events[:at], events[at]._replace(payload=rows.dumps(data)), *events[at + 1 :]]
        for report in (check(changed), alone(changed)):
            assert not report["ok"] and report["event"] == at + 1, path
        assert not check(sealed(changed), checkpoint=note, keys=[key.public])["ok"], path
    assert {"stakes", "harm", "effect", "dose"} <= seen


class TestCorrections:
    def test_outside_of_the_plausible_range_they_are_confirmed(self) -> None:
        study = Study.create("sqlite://", "s", problem(), seed=1, plausible={"harm": [-1, 2]}, watch="warn")
        id = study.ask()[0].id
        study.tell(id, 0.1, 0.1)
        with pytest.raises(SurefootError, match="expects harm from -1 to 2"):
            study.correct(id, harm=7.0, reason="typo")
        study.correct(id, harm=7.0, reason="it was read twice", confirm=True)
        study.correct(id, harm=0.2, reason="and it was the wrong subject")
        noted = [e.data.get("confirmed") for e in study.log() if e.kind == "corrected"]
        assert noted == [True, None] and study.verify()["ok"]

    def test_one_that_nobody_confirmed_does_not_follow(self) -> None:
        study = Study.create("sqlite://", "s", problem(), seed=1, plausible={"harm": [-1, 2]}, watch="warn")
        id = study.ask()[0].id
        study.tell(id, 0.1, 0.1)
        with study._writing() as add, pytest.raises(Broken, match="nobody confirmed"):
            add("corrected", {"id": 1, "harm": 7.0, "was": {"harm": 0.1}}, "typo")


class TestStatusOfWhatDoesNotHold:
    def test_says_so_first_and_shows_what_was_before(self, tmp_path: Path, capsys: Any) -> None:
        study = Study.create(tmp_path / "s.db", "s", problem(), seed=1, watch="warn")
        study.tell_many(subjects(problem()).rows(study.ask()[:5]))
        with closing(sqlite3.connect(tmp_path / "s.db")) as db, db:
            db.execute("UPDATE surefoot_events SET payload = replace(payload, '0.', '1.') WHERE seq = 5")
        status = Study.open(tmp_path / "s.db").status()
        assert not status["holds"] and status["readings"] == 2 and "event 5 was changed" in status["trouble"]
        with pytest.raises(SystemExit, match="1"):
            main(["study", "status", "--db", str(tmp_path / "s.db")])
        out = capsys.readouterr().out
        assert out.startswith("does not verify: event 5 (told) does not hold: event 5 was changed") and "arm" in out
        with pytest.raises(SurefootError, match="event 5 was changed"):
            Study.open(tmp_path / "s.db").ask()

    def test_content_that_cannot_be_read_is_no_traceback(self, tmp_path: Path) -> None:
        study = Study.create(tmp_path / "s.db", "s", problem(), seed=1, watch="warn")
        study.tell_many(subjects(problem()).rows(study.ask()[:5]))
        with closing(sqlite3.connect(tmp_path / "s.db")) as db, db:
            db.execute("UPDATE surefoot_events SET payload = 'null' WHERE seq = 4")
        assert not Study.open(tmp_path / "s.db").status()["holds"]


def test_files_that_are_no_keys(tmp_path: Path) -> None:
    with pytest.raises(SurefootError, match="cannot write"):
        Key.new(tmp_path / "no" / "key")
    (tmp_path / "key").write_text("{}")
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(SurefootError, match="is not a key: make one with"):
        Key.load(tmp_path / "key")
