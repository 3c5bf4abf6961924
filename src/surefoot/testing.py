"""A conformance suite that any design must pass, a user's own too. With pytest, three lines:

    class TestMine(surefoot.testing.DesignSuite):
        design = MyDesign()
        trials = 2000

Every `test_` method plays the design and raises AssertionError with what went wrong; what does not apply is skipped and
says why; `pytest -s` shows what it is doing. The guarantee is tested at a level at which a design that keeps its word
fails less than once in a million runs of the whole suite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import Any
from unittest import SkipTest

import numpy as np
from array_api_compat import is_array_api_obj

from .arrays import array_namespace
from .catalogue import CASES, case
from .designs.base import ENDINGS, RUNNING, Cohort, Design, Outcome, Verdict, take
from .problem import Problem, SurefootError
from .scenario import Scenario
from .simulate import Result, simulate

FALSE_ALARM = 1e-6
LOOKS, FEW, SOON = 3, 20, 1_000  # scenarios and trials of a first look, and their budget
ROUNDS = 250  # of a trial, where every one of them is looked at: more than ours have, and a slow policy has thousands


def play(
    design: Design,
    problem: Problem,
    scenario: Scenario,
    trials: int = 3,
    seed: int = 0,
    xp: Any = np,
    rounds: int = 10_000,
) -> Iterator[tuple[Any, Cohort, Outcome, Any]]:
    """Round by round: state, cohort, outcome, next state, until every trial has ended.

    The noise belongs to trial, round and arm name: it is the same whatever the order of arms, the batch, the number of
    pulls or the namespace, so that runs can be compared with each other number by number. The design plays on copies:
    what is yielded has not been in its hands.
    """
    state = design.start(problem, trials, xp)
    for k in range(rounds):
        if bool(xp.all(state.ending != RUNNING)):
            return
        rngs = [[np.random.default_rng([seed, i, k, *map(ord, name)]) for name in problem.names] for i in range(trials)]
        u = xp.asarray(np.array([np.random.default_rng([seed, i, k]).random(design.draws) for i in range(trials)]))
        cohort = design.ask(fresh(state), u)
        n, dose = np.asarray(cohort.n), np.asarray(cohort.dose)
        sums = []
        for curves, noise in zip((scenario.effects, scenario.harms), problem.noises, strict=True):
            z = np.array([[rng.standard_normal() for rng in row] for row in rngs])
            sums.append(xp.asarray(n * curves(dose) + noise.scale * np.sqrt(n) * z))
        outcome = Outcome(cohort.n, *sums)
        after = design.tell(fresh(state), fresh(cohort), fresh(outcome))
        yield state, cohort, outcome, after
        state = after
    raise AssertionError(f"{design.name} had not ended after {rounds:,} rounds")


def final(design: Design, problem: Problem, scenario: Scenario, **options: Any) -> tuple[int, Verdict]:
    """How many rounds it took, and the verdict at the end."""
    states = [after for *_, after in play(design, problem, scenario, **options)]
    return len(states), design.verdict(states[-1])


def fresh(batch: Any) -> Any:
    """A copy, arrays and all."""
    return replace(batch, **{name: array_namespace(x).asarray(x, copy=True) for name, x in arrays(batch).items()})


def arrays(batch: Any) -> dict[str, Any]:
    return {f.name: x for f in fields(batch) if is_array_api_obj(x := getattr(batch, f.name))}


def assert_same(one: Any, two: Any, tolerance: float = 0.0) -> None:
    """Two batches (states, cohorts, verdicts) hold the same numbers."""
    for name, x in arrays(one).items():
        a, b = np.asarray(x), np.asarray(getattr(two, name))
        if a.ndim == b.ndim and a.shape != b.shape:  # room that one of them has to spare
            least = tuple(slice(min(sizes)) for sizes in zip(a.shape, b.shape, strict=True))
            a, b = a[least], b[least]
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=name)


def failures_allowed(trials: int, delta: float, tests: int = 1) -> int:
    """The most failures in so many trials that a failure rate of delta leads to, but for one run in a million."""
    from scipy.special import betainc

    k = np.arange(float(trials))
    return int(np.sum(betainc(k + 1, trials - k, delta) > FALSE_ALARM / tests))  # more than k: more often than that


class DesignSuite:
    """Subclass it with a `design`. `trials`: how many each scenario of the guarantee's bank gets; `budget`: how many
    pulls each of them may take, for a design that is slow (a trial that names nothing has not failed)."""

    design: Design
    trials: int = 2000
    budget: int | None = None
    symmetric: bool = True  # permuting the arms permutes the answer; False for designs that break ties by arm order

    @property
    def small(self) -> tuple[Problem, Scenario]:
        """A problem of the design's shape that ends soon."""
        return case({"linear": "paper-linear", "levels": "levels-gaussian"}.get(self.design.shape, "paper-drug"), 3)

    def test_shapes(self) -> None:
        problem, scenario = self.small
        for state, cohort, _, after in play(self.design, problem, scenario, trials=4):
            assert cohort.dose.shape == cohort.n.shape == (4, 3), "a cohort is (trials, arms)"
            for name, x in arrays(after).items():
                assert x.shape[0] == 4, f"{name} of the state must have trials as its first axis; got {x.shape}"
            asked = np.asarray(cohort.n).sum(axis=1)
            assert np.all((asked > 0) == (np.asarray(state.ending) == RUNNING)), (
                "a running trial asks for a pull, an ended one rests"
            )
            given = np.asarray(cohort.n) > 0
            dose = np.asarray(cohort.dose)
            assert np.all(~given | ((dose >= problem.starts) & (dose <= problem.largest))), (
                "doses lie between start and max"
            )
        verdict = self.design.verdict(after)
        assert set(verdict.endings()) <= set(ENDINGS[1:]), verdict.endings()
        assert np.all(np.asarray(verdict.winner) < 3)

    def test_refuses_the_other_shape(self) -> None:
        other = case("paper-drug" if self.design.shape == "linear" else "paper-linear")[0]
        try:
            self.design.start(other)
        except SurefootError as error:
            assert other.shape in str(error)
        else:
            raise AssertionError("a problem of another shape must be refused")

    def test_pure(self) -> None:
        """Nothing that was handed in changes, and the same call gives the same answer."""
        for state, cohort, outcome, after in islice(play(self.design, *self.small), ROUNDS):
            before = {id(b): {k: np.array(v) for k, v in arrays(b).items()} for b in (state, cohort, outcome)}
            assert_same(self.design.tell(state, cohort, outcome), after)
            self.design.ask(state, np.zeros((3, self.design.draws)))
            self.design.verdict(state)
            for b in (state, cohort, outcome):
                for name, x in before[id(b)].items():
                    np.testing.assert_array_equal(
                        x, np.asarray(getattr(b, name)), err_msg=f"{name} was changed in place"
                    )

    def test_batch_is_its_trials(self) -> None:
        """Trials played side by side are the trials played one by one."""
        problem, scenario = self.small
        singles = [take(self.design.start(problem, 3), np.array([i])) for i in range(3)]
        for state, cohort, outcome, _ in islice(play(self.design, problem, scenario), ROUNDS):
            for i in range(3):
                row = np.array([i])
                assert_same(take(state, row), singles[i])
                singles[i] = self.design.tell(singles[i], take(cohort, row), take(outcome, row))

    def test_namespaces_agree(self) -> None:
        """NumPy and array-api-strict, the letter of the array API standard, give the same run."""
        if not self.design.portable:
            raise SkipTest(f"{self.design.name} is for NumPy alone")
        import array_api_strict

        pairs = zip(play(self.design, *self.small), play(self.design, *self.small, xp=array_api_strict), strict=True)
        for (*_, a), (*_, b) in islice(pairs, ROUNDS):
            assert all(type(x) is type(b.pulls) for x in arrays(b).values()), "the state left its namespace"
            assert_same(a, b, 1e-12)

    def test_ended_trials_rest(self) -> None:
        problem, scenario = self.small
        *_, (_, cohort, outcome, after) = play(self.design, problem, scenario)
        again = self.design.tell(after, cohort, replace(outcome, n=outcome.n + 1))
        assert_same(again, after)
        assert not np.asarray(self.design.ask(after, np.zeros((3, self.design.draws))).n).any()

    def test_permuting_arms(self) -> None:
        """The names of the arms carry the noise along, so another order gives the same answer in another order."""
        if not self.symmetric:
            raise SkipTest(f"{self.design.name} breaks ties by the order of arms")
        problem, scenario = self.small
        order = np.array([2, 0, 1])
        turned = problem.but(arms=tuple(problem.arms[i] for i in order))
        same = Scenario(tuple(scenario.effect[i] for i in order), tuple(scenario.harm[i] for i in order))
        rounds, one = final(_constant(self.design), problem, scenario)
        rounds2, two = final(_constant(self.design), turned, same)
        told = "does the design break ties by the order of arms? That is allowed: set symmetric = False"
        assert rounds == rounds2, f"with the arms in another order it takes {rounds2} rounds, not {rounds}: {told}"
        np.testing.assert_array_equal(one.ending, two.ending)
        np.testing.assert_array_equal([problem.names[k] for k in one.winner], [turned.names[k] for k in two.winner])
        for name in ("lower", "upper", "safe", "unsafe", "standing", "out_round"):
            np.testing.assert_allclose(getattr(one, name)[:, order], getattr(two, name), rtol=1e-12, err_msg=name)

    def test_tell_is_total(self) -> None:
        """Any dose and any number of pulls may come back; a reading that is not finite may not."""
        problem, scenario = self.small
        rng = np.random.default_rng(0)
        state = self.design.start(problem, 8)
        pulls = np.zeros(8, dtype=np.int64)
        for _ in range(40):
            u = rng.random((8, self.design.draws))
            asked = self.design.ask(state, u)
            dose = np.where(rng.random(asked.dose.shape) < 0.3, problem.starts, asked.dose)
            n = np.clip(asked.n + rng.integers(-1, 2, asked.n.shape), 0, None)
            f, g = n * scenario.effects(dose), n * scenario.harms(dose)
            pulls += np.where(state.ending == RUNNING, n.sum(axis=1), 0)
            state = self.design.tell(state, Cohort(dose, n), Outcome(n, f, g))
            np.testing.assert_array_equal(state.pulls, pulls, err_msg="every pull that came back counts")
        bad = np.full((8, 3), np.nan)
        asked = self.design.ask(self.design.start(problem, 8), np.zeros((8, self.design.draws)))
        for effect, harm in ((bad, 0 * bad + 1), (0 * bad + 1, bad)):
            outcome = Outcome(
                np.ones((8, 3), np.int64),
                np.nan_to_num(effect) if effect is not bad else bad,
                harm if harm is bad else np.ones((8, 3)),
            )
            try:
                self.design.tell(self.design.start(problem, 8), asked, outcome)
            except SurefootError:
                continue
            raise AssertionError("a missing reading must be an error, never taken as safe")

    def test_budget(self) -> None:
        """A budget is never exceeded, and a trial that spends it names no arm."""
        problem, scenario = self.small
        for budget in (1, 100, 5000):
            result = simulate(problem.but(budget=budget), scenario, self.design, 20, progress=False)
            assert result.pulls.max() <= budget
            spent = np.array(ENDINGS)[result.ending] == "budget-spent"
            assert np.all(result.winner[spent] == -1)
            assert np.all(result.winner[~spent] >= 0)

    def test_guarantee(self) -> None:
        """On every scenario that keeps to the assumptions: wrong or unsafe in no more trials than delta allows, and no
        more over all of them. The beginning of a few trials of a few comes first: what is grossly unsafe is seen within
        seconds, also where it never ends."""
        if not self.design.guarantee:
            raise SkipTest(f"{self.design.name} has no guarantee")
        bank = [name for name, it in CASES.items() if it.claim and it.make(it.arms)[0].shape == self.design.shape]
        tests = len(bank) + LOOKS + 2
        plain = type(self).simulated is DesignSuite.simulated
        for look in (True, False) if plain else (False,):
            failed, played, worst = 0, 0, 0.0
            for name in bank[:LOOKS] if look else bank:
                result = self._soon(name) if look else self.simulated(name)
                bad, trials, delta = int((result.wrong | result.unsafe).sum()), result.trials, result.problem.delta
                failed, played, worst = failed + bad, played + trials, max(worst, delta)
                said = f"{bad} of {trials} trials failed, {delta:.0%} allowed"
                print(f"{self.design.label} on {name}: {said}", flush=True)
                self._kept(name, bad, trials, delta, tests)
            self._kept("all scenarios together", failed, played, worst, tests)

    def _soon(self, name: str) -> Result:
        return simulate(*case(name, budget=SOON), self.design, FEW, seed=1, progress=False)

    def simulated(self, name: str) -> Result:
        """So many trials of a scenario; to be overridden where some would take too long."""
        most = {} if self.budget is None else {"budget": self.budget}
        return simulate(*case(name, **most), self.design, self.trials, seed=1, progress=False)

    def _kept(self, where: str, failed: int, trials: int, delta: float, tests: int) -> None:
        assert failed <= failures_allowed(trials, delta, tests), (
            f"{self.design.label} does not keep its promise: {where}: failed in {failed} of {trials} trials "
            f"at delta {delta:g}"
        )


def _constant(design: Design) -> Design:
    """The design with a schedule that does not count across arms, where it has the choice."""
    return replace(design, schedule="paper") if hasattr(design, "schedule") else design  # type: ignore[type-var]


def chained(events: Sequence[Any], origin: str) -> bool:
    """Whether each event has its hash, and that of the one before it."""
    before = [origin, *(event.hash for event in events)]
    return all(event.prev == hash_ and event.seal() == event.hash for event, hash_ in zip(events, before, strict=False))


class JournalSuite:
    """What any journal of a study must do: subclass it with a fixture or attribute `url` of an unused database.

    class TestMine(surefoot.testing.JournalSuite):
        @pytest.fixture
        def url(self): return "postgresql+psycopg://..."
    """

    def test_keeps_events_in_order_and_chained(self, url: str) -> None:
        from .study.journal import ORIGIN, Journal

        journal = Journal(url, create=True)
        for k in range(3):
            with journal.writing("one") as now:
                now.add("told", {"id": k}, "me", reason="why" if k else None)
                now.add("told", {"id": -k}, "me", key=f"k{k}")
        with journal.writing("two") as now:
            now.add("told", {"id": 9}, "you")
        events = Journal(url).read("one")
        assert [e.seq for e in events] == [1, 2, 3, 4, 5, 6]
        assert [e.data["id"] for e in events] == [0, 0, 1, -1, 2, -2]
        assert chained(events, ORIGIN)
        assert journal.read("one", after=4) == events[4:]
        assert journal.names() == ["one", "two"]
        assert journal.read("three") == []
        assert list(journal.each("one")) == events and journal.event("one", 3) == events[2]
        assert journal.event("one", 7) is None and journal.kept("one") is None
        journal.keep("one", b"new")
        assert journal.kept("one") in (b"new", None), "what is in memory alone needs no cache"

    def test_all_or_nothing(self, url: str) -> None:
        from .study.journal import Journal

        journal = Journal(url, create=True)
        try:
            with journal.writing("one") as now:
                now.add("told", {}, "me")
                raise RuntimeError("half way")
        except RuntimeError:
            pass
        assert journal.read("one") == []
        for keys in (("k", None, "k"), ("k",)):
            try:
                with journal.writing("one") as now:
                    for key in keys:
                        now.add("told", {}, "me", key=key)
            except SurefootError as error:
                assert "nothing was changed" in str(error)
        assert [e.key for e in journal.read("one")] == ["k"], "a key is used once in a study"

    def test_one_writer_at_a_time_and_readers_all_the_while(self, url: str) -> None:
        import threading

        from .study.journal import ORIGIN, Journal

        Journal(url, create=True)
        seen: list[int] = []
        done = threading.Event()

        def write() -> None:
            journal = Journal(url)
            for _ in range(25):
                with journal.writing("one") as now:
                    now.add("told", {"after": now.seq}, "me")

        def read() -> None:
            journal = Journal(url)
            while not seen or not done.is_set():
                seen.append(len(journal.read("one")))

        reader, writers = threading.Thread(target=read), [threading.Thread(target=write) for _ in range(4)]
        for thread in (reader, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        reader.join()
        events = Journal(url).read("one")
        assert [e.data["after"] for e in events] == list(range(100))
        assert chained(events, ORIGIN)
        assert seen == sorted(seen) and len(seen) > 0

    def test_a_reader_does_not_wait_for_a_writer(self, url: str) -> None:
        from .study.journal import Journal

        journal, other = Journal(url, create=True), Journal(url)
        with journal.writing("one") as now:
            now.add("told", {}, "me")
            assert other.read("one") == [], "and it sees nothing that may yet be undone"
        assert len(other.read("one")) == 1

    def test_a_newer_format_is_refused(self, url: str) -> None:
        from .study.checker import VERSION
        from .study.journal import Journal

        journal = Journal(url, create=True)
        with journal.writing("one") as now:
            event = now.add("told", {}, "me")
            now.added[0] = event._replace(version=VERSION + 1)
        try:
            journal.read("one")
        except SurefootError as error:
            assert "newer surefoot" in str(error)
        else:
            raise AssertionError("what is not understood must not be guessed at")
