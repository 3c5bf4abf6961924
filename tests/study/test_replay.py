"""Whatever happens to a study, what it knows is the fold of its journal, bit for bit."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import fields, is_dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from surefoot import Study, SurefootError, make
from surefoot.designs import DESIGNS
from surefoot.study.checker import THEOREMS
from surefoot.study.fold import View
from surefoot.study.published import theorem_of
from surefoot.study.status import Assignment, assignments

from .subjects import Subjects, problem, subjects

VALUES = st.floats(-2, 2, allow_nan=False)


class Life(RuleBasedStateMachine):
    """A study and two models of it: what was told, by id, and a view that takes one event after the other."""

    server: str | None = None  # of PostgreSQL, else SQLite

    @initialize(
        design=st.sampled_from([n for n in DESIGNS if theorem_of(make(n)) in THEOREMS]),
        binary=st.booleans(),
        seed=st.integers(0, 5),
        warn=st.booleans(),
    )
    def begin(self, design: str, binary: bool, seed: int, warn: bool) -> None:
        self.folder = tempfile.mkdtemp()
        self.url = f"sqlite:///{self.folder}/s.db"
        if self.server:
            self.url = fresh(self.server)
        self.problem = problem(make(design).shape, sigma=0.1, binary=binary)
        self.people: Subjects = subjects(self.problem, seed)
        self.study = Study.create(self.url, "s", self.problem, design, seed=seed, watch="warn" if warn else "pause")
        self.model = View()
        self.told: dict[str, dict[str, float]] = {}
        self.voided: set[str] = set()

    def open(self) -> list[Assignment]:
        return self.study.ask() if self.study.view.standing == "running" else []

    def value(self, x: float) -> float:
        return float(x > 0) if self.problem.noises[0].kind == "bernoulli" else x

    @rule(k=st.integers(0, 50), part=st.booleans())
    def tell(self, k: int, part: bool) -> None:
        if not (asked := self.open()):
            return
        a = asked[k % len(asked)]
        r = self.people.read(a)
        if part:
            self.study.tell(a.id, harm=r["harm"])
            self.told[a.id] = {"harm": r["harm"]}
        else:
            self.study.tell(a.id, r["effect"], r["harm"])
            self.told[a.id] = r

    @rule()
    def tell_what_is_due(self) -> None:
        for a in self.study.awaiting()[:3]:
            effect = self.people.read(a)["effect"]
            self.study.tell(a.id, effect=effect)
            self.told[a.id]["effect"] = effect

    @rule(most=st.integers(1, 2000))
    def tell_many(self, most: int) -> None:
        rows = self.people.rows(self.open()[:most])
        self.study.tell_many(rows)
        self.told |= {r["id"]: {"effect": r["effect"], "harm": r["harm"]} for r in rows}

    @rule(k=st.integers(0, 50), dose=st.floats(0.01, 1.0))
    def tell_another_dose(self, k: int, dose: float) -> None:
        if asked := self.open():
            a = asked[k % len(asked)]
            r = self.people.read(a)
            labels = self.people.of.arms[0].labels
            self.study.tell(
                a.id, r["effect"], r["harm"], labels[k % len(labels)] if labels else dose, confirm="so it was"
            )
            self.told[a.id] = r

    @rule(k=st.integers(0, 50))
    def void(self, k: int) -> None:
        if asked := self.open():
            a = asked[k % len(asked)]
            self.study.void(a.id, "left")
            self.voided.add(a.id)

    @rule(k=st.integers(0, 10_000), effect=VALUES, harm=VALUES)
    def correct(self, k: int, effect: float, harm: float) -> None:
        done = [i for i, r in self.told.items() if len(r) == 2]
        if done:
            id = done[k % len(done)]
            new = {"effect": self.value(effect), "harm": self.value(harm)}
            if new != self.told[id]:
                self.study.correct(id, new["effect"], new["harm"], reason="it was wrong")
                self.told[id] = new

    @rule(k=st.integers(0, 50))
    def tell_a_late_one(self, k: int) -> None:
        late = [r for r in self.study.readings() if r["status"] == "withdrawn"]
        if late:
            row = late[k % len(late)]
            self.study.tell(row["id"], 1.0, 0.0)
            self.told[row["id"]] = {"effect": 1.0, "harm": 0.0}

    @precondition(lambda self: self.study.view.standing == "running")
    @rule()
    def pause(self) -> None:
        self.study.pause("holiday")

    @precondition(lambda self: self.study.view.standing == "paused")
    @rule(count=st.booleans())
    def resume(self, count: bool) -> None:
        # Who made a watch speak may not lift that, and lifting one pause can make the next watch speak
        who = f"somebody else {self.study.view.seq}"
        vacant = "open" in self.study.view.gone.values()
        self.study.resume("go", voids={"effect": 0.0, "harm": 1.0} if vacant and count else None, actor=who)

    @rule(id=st.text(max_size=5), x=VALUES)
    def nonsense(self, id: str, x: float) -> None:
        before = self.study.view.seq
        with pytest.raises(SurefootError):
            self.study.tell(id, x, x)
        assert self.study.view.seq == before

    @rule()
    def crash(self) -> None:
        """All that was in memory is gone."""
        self.study = Study.open(self.url)

    @invariant()
    def is_the_fold_of_its_journal(self) -> None:
        if not hasattr(self, "study"):
            return
        view = self.study.view
        for event in self.study.journal.read("s", self.model.seq):
            self.model.take(event)
        for other in (self.model, View().follow_up(self.study.journal.read("s"))):
            same(view, other)
        rows = {r["id"]: r for r in self.study.readings()}
        for id, told in self.told.items():
            assert {k: rows[id][k] for k in told} == told, "every acknowledged reading is there"
        assert sum(r["status"] in ("told", "effect due") for r in rows.values()) == len(self.told), "and none twice"
        assert {i for i, r in rows.items() if r["status"] == "void"} == self.voided
        assert not [e for e in view.notes if e.data.get("by") == "checker"], "checker and design always agree"

    def teardown(self) -> None:
        if hasattr(self, "study"):
            report = self.study.verify(head=self.study.view.hash)
            assert report["ok"], report["message"]
            assert self.study.verify(certificate=self.study.certificate().content)["ok"]
            shutil.rmtree(self.folder)


def same(a: View, b: View) -> None:
    for (name, x), y in zip(leaves(a.state).items(), leaves(b.state).values(), strict=True):
        np.testing.assert_array_equal(x, y, err_msg=name)
    for key in ("seq", "hash", "subjects", "standing", "keys", "fired", "stale"):
        assert getattr(a, key) == getattr(b, key), key
    assert assignments(a) == assignments(b)
    for one, two in zip(a.cohorts, b.cohorts, strict=True):
        assert (one.dose, one.n, one.left, one.closed, one.came) == (two.dose, two.n, two.left, two.closed, two.came)


def leaves(state: Any) -> dict[str, Any]:
    """All arrays of a state, those of what it holds too."""
    found: dict[str, Any] = {}
    for f in fields(state):
        x = getattr(state, f.name)
        if isinstance(x, np.ndarray):
            found[f.name] = x
        elif is_dataclass(x) and f.name != "problem":
            found |= {f"{f.name}.{name}": y for name, y in leaves(x).items()}
    return found


def fresh(server: str) -> str:
    """A new database on a server."""
    import uuid

    name = f"r{uuid.uuid4().hex[:12]}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return sa.make_url(server).set(database=name).render_as_string(hide_password=False)


def test_on_sqlite() -> None:
    run_state_machine_as_test(Life, settings=settings(max_examples=8, stateful_step_count=25, deadline=None))


def test_on_postgres(postgres: str) -> None:
    live: Any = type("OnPostgres", (Life,), {"server": postgres})
    run_state_machine_as_test(live, settings=settings(max_examples=4, stateful_step_count=20, deadline=None))
