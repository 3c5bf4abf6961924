"""What a person does with a study: ask, tell, void, correct, pause, stop."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Arm, Noise, Problem, Study, SurefootError, case, make
from surefoot.designs import DESIGNS
from surefoot.designs.base import RUNNING, Outcome
from surefoot.study.checker import THEOREMS, Given
from surefoot.study.fold import View
from surefoot.study.published import default, theorem_of
from surefoot.study.status import Paused
from surefoot.testing import arrays

from .subjects import problem, run, subjects

STAGED = "safebai-linear"  # large cohorts, of every arm


def new(url: str, shape: str = "linear", seed: int = 1, design: str | None = None, **changes: Any) -> Study:
    watch = changes.pop("watch", "pause")
    return Study.create(url, "trial", problem(shape, **changes), design, actor="site 1", seed=seed, watch=watch)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return new(f"sqlite:///{tmp_path / 'study.db'}", design=STAGED)


def test_the_design_where_none_is_asked_for(tmp_path: Path) -> None:
    assert new(f"{tmp_path}/l.db").view.design.name == "surefoot-linear"
    for shape in ("linear", "monotonic"):
        assert DESIGNS[default(shape)].shape == shape


@pytest.mark.parametrize("design", ["surefoot-linear", STAGED])
def test_a_study_from_beginning_to_end(url: str, design: str) -> None:
    study = run(new(url, design=design), subjects(problem()))
    verdict = study.verdict()
    assert verdict.endings() == ["best-arm"]
    assert verdict.problem.names[int(verdict.winner[0])] == "A"
    assert study.ask() == []
    again = Study.open(url)
    assert again.status() == study.status()
    assert again.verify(head=study.view.hash)["ok"]


@pytest.mark.parametrize("name", [n for n in DESIGNS if theorem_of(make(n)) in THEOREMS])
def test_the_study_decides_as_the_design_does(name: str, tmp_path: Path) -> None:
    """Told in any order, one by one, through many reopenings: the very numbers of the design played directly."""
    design = make(name)
    people = subjects(problem(design.shape, sigma=0.1))
    study = new(f"{tmp_path}/s.db", design.shape, design=name, sigma=0.1)
    state = design.start(people.of)
    rng = np.random.default_rng(0)
    while state.ending[0] == RUNNING:
        asked = study.ask()
        cohort = design.ask(state)
        came = Counter(a.arm for a in asked)
        assert [came[name] for name in people.of.names] == cohort.n[0].tolist()
        readings = {a: people.read(a) for a in asked}
        sums = [
            [math.fsum(r[key] for a, r in readings.items() if a.arm == name) for name in people.of.names]
            for key in ("effect", "harm")
        ]
        for k in rng.permutation(len(asked)):
            a = asked[k]
            r = readings[a]
            if rng.random() < 0.3:
                study.tell(a.id, harm=r["harm"])
                study.tell(a.id, effect=r["effect"])
            else:
                study.tell(a.id, r["effect"], r["harm"])
            if rng.random() < 0.05:
                study = Study.open(study.journal.url)
        state = design.tell(state, cohort, Outcome(cohort.n, np.array([sums[0]]), np.array([sums[1]])))
        for key, x in arrays(state).items():
            np.testing.assert_array_equal(x, getattr(study.view.state, key), err_msg=key)
        if study.view.subjects > 400:
            break


def test_assignments_come_in_a_random_order_that_stays(study: Study) -> None:
    asked = study.ask()
    assert study.ask() == asked
    assert study.ask(limit=2) == asked[:2]
    assert [a.subject for a in asked] == list(range(1, len(asked) + 1))
    people = subjects(problem())
    orders = set()
    for _ in range(3):
        orders.add(tuple(a.arm for a in study.ask()[:12]))
        study.tell_many(people.rows(study.ask()))
    assert len(orders) == 3


def test_a_reading_takes_its_assignment_off_the_list(study: Study) -> None:
    asked = study.ask()
    study.tell(asked[3].id, 0.1, 0.1)
    assert study.ask() == asked[:3] + asked[4:]


def test_the_order_is_the_same_under_every_numpy() -> None:
    """Literal values: should they ever change, studies under way would mix up their subjects."""
    assert Given(3, 1, {"dose": [1.0] * 3, "n": [4, 4, 4]}, 7).arms == [0, 2, 2, 0, 0, 1, 1, 2, 1, 0, 2, 1]


def test_arms_are_not_confounded_with_time(tmp_path: Path) -> None:
    """Over many seeds every arm has every place in the order equally often (a chi-squared bound at 1e-6)."""
    from scipy.special import chdtri

    data = {"dose": [1.0, 1.0], "n": [3, 3]}
    first = np.zeros(6)
    for seed in range(4000):
        arms = np.array(Given(1, 1, data, seed).arms)
        assert arms.sum() == 3
        first += arms
    assert ((first - 2000) ** 2 / 1000).sum() < chdtri(6, 1e-6)


def test_harm_today_and_effect_next_month(study: Study) -> None:
    a = study.ask()[0]
    study.tell(a.id, harm=0.5)
    assert a.id not in [b.id for b in study.ask()]
    assert [b.id for b in study.awaiting()] == [a.id]
    study.tell(a.id, effect=0.2)
    assert not study.awaiting()
    row = study.readings()[0]
    assert (row["effect"], row["harm"], row["status"]) == (0.2, 0.5, "told")


def test_a_dose_that_differs_is_set_aside_and_asked_again(study: Study) -> None:
    """The staged designs wait for pulls at the dose they asked for; the certificate lists the others."""
    people, asked = subjects(problem()), study.ask()
    first = asked[0]
    study.tell(first.id, 0.1, 0.1, dose=0.25, confirm="two spoons")
    study.tell_many(people.rows(asked[1:]))
    again = study.ask()
    assert [(a.arm, a.dose) for a in again] == [(first.arm, first.dose)]
    study.tell_many(people.rows(again))
    assert len(study.ask()) > 1
    found = study.certificate().content["deviations"]
    assert [(d["arm"], d["dose"]) for d in found] == [(first.arm, 0.25)]
    assert "not certified" in found[0]["what"]
    assert study.verify()["ok"]


def test_keys_make_retries_harmless(url: str) -> None:
    study = new(url)
    a, b = study.ask()[:2]
    study.tell(a.id, 0.1, 0.2, key="k1")
    study.correct(a.id, harm=0.3, reason="typo")
    seq = study.view.seq
    study.tell(a.id, 0.1, 0.2, key="k1")  # a retry that comes late
    Study.open(url).tell(a.id, 0.1, 0.2, key="k1")
    assert study.view.seq == seq
    with pytest.raises(SurefootError, match="another request"):
        study.tell(b.id, 0.1, 0.2, key="k1")
    study.tell(b.id, 0.1, 0.2)
    study.tell(b.id, 0.1, 0.2)  # and without a key, the same again is no news
    assert study.view.seq == seq + 1


class TestVoid:
    def test_counts_as_the_worst_reading_where_readings_are_binary(self, tmp_path: Path) -> None:
        study = new(f"{tmp_path}/s.db", binary=True)
        a = study.ask()[0]
        study.void(a.id, "moved away")
        assert study.view.standing == "running"
        view = study.view
        assert (view.effect[a.subject], view.harm[a.subject], view.gone[a.subject]) == (0.0, 1.0, "counts")
        assert a.id not in [b.id for b in study.ask()]
        with pytest.raises(SurefootError, match="voided"):
            study.tell(a.id, 1, 0)
        with pytest.raises(SurefootError, match="voided before"):
            study.void(a.id, "again")
        study.tell_many(subjects(study.view.problem).rows(study.ask()))
        assert len(study.view.cohorts) == 2
        tips = study.certificate().content["voids"]["tipping_points"]
        assert [(t["arm"], t["dropped"]) for t in tips] == [(a.arm, 1)]
        assert study.verify()["ok"]

    def test_a_whole_cohort_may_drop_out(self, tmp_path: Path) -> None:
        study = new(f"{tmp_path}/s.db", binary=True)
        for a in study.ask():
            study.void(a.id, "lost")
        assert len(study.view.cohorts) == 2 or study.view.ended
        assert Study.open(study.journal.url).status() == study.status()

    def test_else_pauses_for_a_decision_and_another_takes_the_place(self, study: Study) -> None:
        asked = study.ask()
        a = asked[0]
        study.void(a.id, "moved away")
        with pytest.raises(Paused, match=r"is paused by site 1 on .*: moved away\. What to do: .* dropped out"):
            study.ask()
        study.resume("had nothing to do with the study")
        again = study.ask()
        assert again[:-1] == asked[1:]
        assert (again[-1].arm, again[-1].dose, again[-1].subject) == (a.arm, a.dose, len(asked) + 1)
        study.void(again[-1].id, "moved away too")
        study.resume("again")
        third = study.ask()[-1]
        assert (third.arm, third.subject) == (a.arm, len(asked) + 2)
        with pytest.raises(SurefootError, match="voided"):
            study.tell(again[-1].id, 0.1, 0.1)
        study.tell_many(subjects(problem()).rows(study.ask()))
        assert study.ask()[0].subject == len(asked) + 3
        tips = study.certificate().content["voids"]["tipping_points"]
        assert [(t["arm"], t["dropped"]) for t in tips] == [(a.arm, 2)]
        assert tips[0]["harm"]["above"] is not None, "enough harm in two drop-outs would have changed a decision"
        assert study.verify()["ok"]
        assert Study.open(study.journal.url).status() == study.status()

    def test_or_the_decision_counts_it_as_a_reading(self, study: Study) -> None:
        a = study.ask()[0]
        with pytest.raises(SurefootError, match="not paused"):
            study.resume("x")
        study.void(a.id, "moved away")
        study.resume("the worst we can think of", voids={"effect": -1.0, "harm": 2.0})
        assert (study.view.effect[a.subject], study.view.harm[a.subject]) == (-1.0, 2.0)
        assert study.verify()["ok"]

    def test_nobody_can_void_after_a_reading(self, study: Study) -> None:
        a = study.ask()[0]
        study.tell(a.id, harm=0.1)
        with pytest.raises(SurefootError, match="cannot be voided"):
            study.void(a.id, "inconvenient")


class TestCorrect:
    def test_in_the_open_cohort(self, study: Study) -> None:
        a = study.ask()[0]
        study.tell(a.id, 0.1, 0.2)
        study.correct(a.id, harm=0.4, reason="two sheets were swapped")
        assert study.readings()[0]["harm"] == 0.4
        note = study.certificate().content["corrections"][0]
        assert (note["harm"], note["was"]) == (0.4, {"harm": 0.2})

    def test_is_as_if_it_had_been_told_so_where_the_same_doses_follow(self, tmp_path: Path) -> None:
        """A correction in a cohort whose decision does not move the doses: all later evidence stays."""
        people = subjects(problem())
        studies = [new(f"{tmp_path}/{k}.db", design=STAGED) for k in (0, 1)]
        for k, study in enumerate(studies):
            rows = people.rows(study.ask())
            if k:
                wrong = {**rows[0], "effect": rows[0]["effect"] + 0.01}
                study.tell_many([wrong, *rows[1:]])
                study.correct(rows[0]["id"], effect=rows[0]["effect"], reason="typo")
            else:
                study.tell_many(rows)
            run(study, people)
        one, two = (study.verdict() for study in studies)
        for name in ("lower", "upper", "safe", "standing", "winner", "ending"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))

    def test_leads_to_another_cohort_and_flags_what_was_given(self, url: str) -> None:
        people, study = subjects(problem()), new(url, design=STAGED, watch="warn")
        rows = []
        while all(dose <= 0.2 for dose in study.view.cohorts[-1].dose):
            rows = people.rows(study.ask())
            study.tell_many(rows)
        risen = study.view.cohorts[-1]
        arm = int(np.argmax(risen.dose))
        name = study.view.problem.names[arm]
        of_arm = {r["id"] for r in study.readings() if r["arm"] == name}
        row = next(r for r in rows if r["id"] in of_arm)
        part = people.rows(study.ask(limit=3))
        study.tell_many(part)
        study.correct(row["id"], harm=row["harm"] + 500, reason="the unit was wrong")
        last = study.view.cohorts[-1]
        assert risen.closed and last.number == risen.number + 1, "the open cohort was withdrawn"
        assert last.dose[arm] == 0.2
        found = study.certificate().content["deviations"]
        assert (risen.number, name) in [(d["cohort"], d["arm"]) for d in found]
        late = [r for r in study.readings() if r["cohort"] == risen.number and r["status"] == "withdrawn"]
        assert len(late) == risen.size - 3
        study.tell(late[0]["id"], 0.1, 0.1)  # had been treated already: nothing is lost
        assert study.verify()["ok"]
        assert Study.open(url).status() == study.status()
        run(study, people)
        assert study.verify(head=study.view.hash)["ok"]

    def test_may_reopen_a_study_that_had_ended(self, tmp_path: Path) -> None:
        people, study = subjects(problem()), new(f"{tmp_path}/s.db", design=STAGED, watch="warn")
        run(study, people)
        assert study.view.ended
        first = study.certificate()
        for row in [r for r in study.readings() if r["cohort"] == len(study.view.cohorts) and r["arm"] == "A"][:3]:
            study.correct(row["id"], effect=-200.0, reason="sign")
            if not study.view.ended:
                break
        assert not study.view.ended
        assert study.ask()
        assert study.certificate().content["concluded"]["winner"] is None
        assert study.verify(certificate=first.content)["ok"], "the earlier certificate still follows from its events"

    def test_of_the_dose_given(self, study: Study) -> None:
        a = study.ask()[0]
        study.tell(a.id, 0.1, 0.2)
        study.correct(a.id, dose=0.15, reason="half a pill")
        assert study.readings()[0]["dose"] == 0.15
        study.correct(a.id, dose=0.2, reason="a whole one after all")
        assert study.readings()[0]["dose"] == 0.2
        assert not study.certificate().content["deviations"]
        study.tell(study.ask()[0].id, harm=0.1)
        with pytest.raises(SurefootError, match="effect has not been told"):
            study.correct(study.awaiting()[0].id, effect=1.0, reason="r")
        assert study.verify()["ok"]

    @pytest.mark.parametrize("bad", [{}, {"harm": math.nan}, {"effect": "x"}])
    def test_refuses_nonsense(self, study: Study, bad: dict[str, Any]) -> None:
        a, b = study.ask()[:2]
        study.tell(a.id, 0.1, 0.2)
        for id, values in ((a.id, bad), (b.id, {"harm": 0.1}), (a.id, {"harm": 0.2})):
            with pytest.raises(SurefootError):
                study.correct(id, reason="r", **values)
        with pytest.raises(SurefootError, match="reason"):
            study.correct(a.id, harm=0.3)


class TestPause:
    def test_nothing_is_given_out_and_nothing_is_lost(self, study: Study) -> None:
        asked, people = study.ask(), subjects(problem())
        study.pause("holiday")
        desk = study.desk("site 2")
        gives: list[Callable[[], Any]] = [study.ask, lambda: study.assign(1, "site 2"), desk.next, desk.open]
        for give in gives[:2]:
            with pytest.raises(Paused, match=r"by site 1 on .*: holiday\. What to do: resume it with a reason"):
                give()
        for give in gives[2:]:  # who treats is not told why: it may say how it goes
            with pytest.raises(Paused, match=r"is paused: nothing is given out until it is resumed$"):
                give()
        assert desk.awaiting() == [] and study.status()["to_do"] == "resume it with a reason, or stop it"
        study.tell_many(people.rows(asked))  # treated before the pause
        assert len(study.view.cohorts) == 1, "no cohort is opened in a pause"
        with pytest.raises(SurefootError, match="nothing to pause"):
            study.pause("again")
        study.resume("back")
        assert len(study.view.cohorts) == 2
        assert study.verify()["ok"]

    def test_stop_is_for_good(self, study: Study) -> None:
        a, b = study.ask()[:2]
        study.tell(a.id, 0.1, 0.1)
        study.stop("no money")
        assert study.ask() == []
        acts: list[Callable[[], Any]] = [
            lambda: study.tell(b.id, 0.1, 0.1),
            lambda: study.void(b.id, "r"),
            lambda: study.pause("r"),
            lambda: study.resume("r"),
            lambda: study.stop("r"),
        ]
        for act in acts:
            with pytest.raises(SurefootError, match="stopped"):
                act()
        assert "no money" in study.certificate().content["concluded"]["words"]


class TestBadInput:
    """A clear error, and nothing changed."""

    BAD = st.one_of(
        st.sampled_from([math.nan, math.inf, -math.inf, "0.1", "x", True, [], {}, b"1", 1e300, 10**400]),
        st.text(),
        st.binary(),
    )

    @settings(max_examples=100)
    @given(effect=BAD | st.just(0.5), harm=BAD | st.none(), dose=BAD | st.none(), data=st.data())
    def test_readings(self, effect: Any, harm: Any, dose: Any, data: st.DataObject) -> None:
        study = shared()
        before = study.view.seq
        with pytest.raises(SurefootError):
            study.tell(data.draw(st.sampled_from(study.ask())).id, effect, harm, dose)
        assert study.view.seq == before

    @settings(max_examples=100)
    @given(id=BAD | st.from_regex(r"[0-9a-f]{4}-[0-9]{1,30}", fullmatch=True) | st.integers() | st.none())
    def test_ids(self, id: Any) -> None:
        study = shared()
        if isinstance(id, str) and id.startswith(study.view.tag):
            return
        with pytest.raises(SurefootError):
            study.tell(id, 0.1, 0.1)

    def test_ids_of_another_study_or_not_yet_assigned(self, tmp_path: Path, study: Study) -> None:
        other = Study.create(study.journal.url, "other", problem(), seed=1)
        with pytest.raises(SurefootError, match="not of study 'trial'"):
            study.tell(other.ask()[0].id, 0.1, 0.1)
        with pytest.raises(SurefootError, match="has not been assigned"):
            study.tell(f"{study.view.tag}-{study.view.subjects + 1}", 0.1, 0.1)

    def test_told_twice_with_other_values(self, study: Study) -> None:
        a = study.ask()[0]
        study.tell(a.id, 0.1, 0.2, dose=0.19)
        others: list[dict[str, Any]] = [{"effect": 0.2}, {"harm": 0.3}, {"harm": 0.2, "dose": 0.2}]
        for values in others:
            with pytest.raises(SurefootError, match="use correct"):
                study.tell(a.id, **values)
        study.tell(a.id, 0.1, 0.2, dose=0.19)

    def test_a_binary_reading_is_0_or_1(self, tmp_path: Path) -> None:
        study = new(f"{tmp_path}/s.db", binary=True)
        with pytest.raises(SurefootError, match="0 or 1"):
            study.tell(study.ask()[0].id, 0.5, 1)

    @pytest.mark.parametrize(
        "text, said",
        [
            ("", "lacks the column"),
            ("id,effect\n", "lacks the column 'harm'"),
            ("id,effect,harm,extra\n", "means nothing here: 'extra'"),
            ("id,effect,harm,harm\n", "twice"),
            ("id,effect,harm\n{a},1,nan\n{b},x,1\n{b},1,\nzz,1,1\n{b},1\n", "line 2.*line 3.*line 4.*line 5.*line 6"),
            ("id,effect,harm\n{a},0.1,0.1\n{a},0.2,0.1\n", "line 3"),
            ('id,effect,harm\n"{a},0.1,0.1\n', "not a CSV"),
            ("id,effect,harm\n\x00,1,1\n", ""),
        ],
    )
    def test_csv_is_all_or_nothing(self, tmp_path: Path, study: Study, text: str, said: str) -> None:
        import re

        a, b = study.ask()[:2]
        file = tmp_path / "r.csv"
        file.write_text(text.format(a=a.id, b=b.id))
        before = study.view.seq
        with pytest.raises(SurefootError) as caught:
            study.tell_many(file)
        assert re.search(said, str(caught.value), re.S), str(caught.value)
        assert study.view.seq == before == Study.open(study.journal.url).view.seq
        assert [x.id for x in study.ask()[:2]] == [a.id, b.id]

    def test_csv_and_tables(self, tmp_path: Path, study: Study) -> None:
        a, b, c, d = study.ask()[:4]
        file = tmp_path / "r.csv"
        file.write_text(f"\ufeffid, effect ,harm,dose,key\n{a.id},0.1,0.2,,k\n\n{b.id},,0.3,0.1,\n", encoding="utf-8")
        assert study.tell_many(file) == 2
        assert study.tell_many(file) == 0
        assert study.tell_many([{"id": c.id, "effect": np.float64(1), "harm": 2}]) == 1

        class Frame:
            def to_dict(self, orient: str) -> list[dict[str, Any]]:
                assert orient == "records"
                return [{"id": d.id, "effect": 0.1, "harm": 0.1}]

        assert study.tell_many(Frame()) == 1  # type: ignore[arg-type]
        for rows in (3, [3], [{"x": 1}], {"id": a.id}, tmp_path / "none.csv", tmp_path):
            with pytest.raises(SurefootError):
                study.tell_many(rows)  # type: ignore[arg-type]

    def test_creating(self, tmp_path: Path) -> None:
        url = f"{tmp_path}/s.db"
        cases: list[tuple[str, dict[str, Any]]] = [
            ("simulation only", {"design": make("safebai-monotonic", schedule="paper"), "problem": problem("drug")}),
            ("simulation only", {"design": "safeopt"}),
            ("one of", {"design": "none"}),
            ("shape", {"design": "safebai-monotonic"}),
            ("seed", {"seed": -1}),
            ("seed", {"seed": 1.5}),
            ("watch", {"watch": "ignore"}),
            ("watch_level", {"watch_level": 0}),
            ("name", {"name": " "}),
            ("name", {"name": "a\nb"}),
            ("actor", {"actor": ""}),
            ("could not begin", {"problem": problem(sigma=1e3), "design": STAGED}),
            ("could not begin.*budget", {"problem": problem(budget=5), "design": STAGED}),
            ("URL", {"url": "sqlite:/x://"}),
            ("SQLite or PostgreSQL", {"url": "mysql://x/y"}),
            ("could not be", {"url": f"{tmp_path}/no/such/folder/s.db"}),
        ]
        for said, changes in cases:
            args: dict[str, Any] = {"url": url, "name": "n", "problem": problem()} | changes
            with pytest.raises(SurefootError, match=said):
                Study.create(args.pop("url"), args.pop("name"), args.pop("problem"), **args)
        assert not Path(url).exists() or Study.create(url, "n", problem()).view.seq == 2
        with pytest.raises(SurefootError, match="already"):
            Study.create(url, "n", problem())

    def test_opening(self, tmp_path: Path) -> None:
        url = f"{tmp_path}/s.db"
        with pytest.raises(SurefootError, match="no file"):
            Study.open(url)
        assert not Path(url).exists()
        Path(url).write_text("this is no database, and long enough to look like a header of one, or so one would hope")
        with pytest.raises(SurefootError, match="not a database"):
            Study.open(url)
        Path(url).unlink()
        Path(url).touch()
        with pytest.raises(SurefootError, match="no study"):
            Study.open(url)
        Study.create(url, "a", problem())
        Study.create(url, "b", problem())
        with pytest.raises(SurefootError, match="'a', 'b'"):
            Study.open(url)
        with pytest.raises(SurefootError, match="must be one of"):
            Study.open(url, "c")
        assert Study.open(url, "b").name == "b"


_shared: list[Study] = []


def shared() -> Study:
    """One study for the property tests that change nothing."""
    if not _shared:
        import tempfile

        _shared.append(new(f"{tempfile.mkdtemp()}/s.db"))
    return _shared[0]


def test_an_arm_without_a_largest_dose(tmp_path: Path) -> None:
    from dataclasses import replace

    p = problem()
    p = p.but(arms=tuple(replace(arm, max=math.inf) for arm in p.arms), noise=Noise("gaussian", 0.1))
    study = Study.create(f"{tmp_path}/s.db", "s", p, seed=1)
    assert study.view.problem == p
    run(study, subjects(p))
    assert study.view.ended
    assert study.certificate().to_html()


def test_export_and_import(url: str, tmp_path: Path) -> None:
    study = new(url)
    study.tell_many(subjects(problem()).rows(study.ask()))
    data = study.export()
    copy = Study.load(f"{tmp_path}/copy.db", data)
    assert copy.log()[:-1] == study.log() and copy.log()[-1].kind == "imported"
    for key in ("arms", "standing", "cohort", "readings", "open"):
        assert copy.status()[key] == study.status()[key]
    with pytest.raises(SurefootError, match="already"):
        Study.load(f"{tmp_path}/copy.db", data)
    data["events"][3]["actor"] = "somebody else"
    for bad in (data, {}, {"surefoot": "study", "events": [{"x": 1}]}, {"surefoot": "study", "events": []}):
        with pytest.raises(SurefootError):
            Study.load(f"{tmp_path}/other.db", bad)
    assert not Path(f"{tmp_path}/other.db").exists()


def test_what_says_nothing_is_not_told(study: Study) -> None:
    first = study.ask()[0].id
    with pytest.raises(SurefootError, match="nothing to tell"):
        study.tell(first)
    with pytest.raises(SurefootError, match="not in blocks"):
        study.tell(first, 1.0, 1.0, n=3)


def test_it_is_shown_in_a_line_and_as_a_table(study: Study) -> None:
    study.tell(study.ask()[0].id, 0.1, 0.1)
    assert repr(study) == f"<Study 'trial': running, 1 reading, {STAGED}>"
    assert study._repr_html_().count("<tr") >= len(study.view.problem.arms)


def test_the_view_is_a_fold(study: Study) -> None:
    """One event at a time, or all at once: the same."""
    run(study, subjects(problem()))
    one = View()
    for event in study.log():
        one.take(event)
    two = View().follow_up(study.journal.read(study.name))
    for view in (one, two):
        np.testing.assert_array_equal(view.state.lower, study.view.state.lower)
        assert (view.seq, view.hash, view.subjects) == (study.view.seq, study.view.hash, study.view.subjects)


def test_a_site_that_nobody_reserved_for_is_told_so_and_a_desk_is_just_empty(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "x.db", "x", case("paper-linear", 2)[0], actor="me")
    study.assign(2, "bench 1")
    with pytest.raises(SurefootError, match="nobody has reserved as 'bench1'; known: 'bench 1'"):
        study.ask(site="bench1")
    desk = study.desk("bench 2")
    assert len(study.ask(site="bench 1")) == 2 and desk.open() == desk.awaiting() == []


def test_a_notebook_shows_where_it_stands(tmp_path: Path) -> None:
    """A study, its verdict and its certificate in words, not in arrays."""
    arms = tuple(Arm(name, levels=(40, 50)) for name in ("A<b>", "B"))
    asked = Problem(arms, 0.3, "levels", Noise("bernoulli"), 0.2, 0.1, budget=6)
    study = Study.create(tmp_path / "x.db", "x", asked, actor="me")
    shown = study._repr_html_()
    assert "<b>x</b>: running, 0 of 6 readings, surefoot-levels" in shown and "if it had to end now: Best sup" in shown
    while runs := study.ask():
        study.tell_many([{"id": a.id, "effect": 1, "harm": 0} for a in runs])
    assert "budget-spent, 6 of 6 readings" in study._repr_html_() and "A<b>" not in study._repr_html_()
    assert repr(study.verdict()) == "<Verdict: budget-spent, 2 arms>"
    assert "largest safe dose 40 to 50" in study.verdict()._repr_html_()
    certificate = study.certificate()
    assert repr(certificate).startswith("<Certificate of 'x': ") and len(repr(certificate)) < 900
    assert certificate._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
