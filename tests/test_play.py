"""What comes of a trial depends on the seed and its part alone, whoever else is in memory with it."""

from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from surefoot import DESIGNS, case
from surefoot.designs.base import Outcome, take
from surefoot.experiments import design_for
from surefoot.play import Job, Played, Watch, play

CASES_OF = {"linear": "paper-linear", "any": "paper-linear", "monotonic": "binary-harm", "levels": "levels-tie"}


def job(name: str, trials: int, cap: int, **more: Any) -> Job:
    problem, scenario = case(CASES_OF[DESIGNS[name].shape], 3, budget=cap)
    return Job(
        problem, scenario, design_for(name, problem, scenario), scenario.truth(problem), 5, 0, trials, True, **more
    )


def assert_same(one: Played, two: Played) -> None:
    assert one.sums.to_dict() == two.sums.to_dict()
    assert one.columns is not None and two.columns is not None
    for key, column in one.columns.items():
        np.testing.assert_array_equal(column, two.columns[key], err_msg=key)


@pytest.mark.parametrize("name", list(DESIGNS))
def test_the_batch_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One part after another, or all side by side: parts of four, so that a few trials make several."""
    monkeypatch.setattr("surefoot.play.PART", 4)
    cap = {"safebai-linear": 10**5, "safebai-monotonic": 10**5, "surefoot-monotonic": 300}.get(name, 150)
    whole = job(name, 11, min(cap, 20) if "opt" in name else cap, width=11)
    assert_same(play(whole), play(replace(whole, width=8)))


@pytest.mark.parametrize("name", list(DESIGNS))
def test_a_state_that_nobody_else_holds_may_be_written_over(name: str) -> None:
    """With the same numbers; one that somebody may hold never is."""
    it = job(name, 1, 300)
    start = it.design.start(it.problem, 3)
    rng, pair = np.random.default_rng(1), [start, take(replace(start, owned=True), np.arange(3))]
    for _ in range(12):
        u = rng.random((3, it.design.draws))
        cohort = it.design.ask(pair[0], u)
        pulls = pair[0].pulls.astype(float)
        effect, harm, _, *squares = it.scenario.draw(rng, it.problem, cohort.dose, cohort.n, pulls)
        outcome = Outcome(cohort.n, effect, harm, tuple(squares) or None)
        before = deepcopy(pair[0])
        new = it.design.tell(pair[0], cohort, outcome)
        np.testing.assert_equal(inside(pair[0]), inside(before))
        pair = [new, it.design.tell(pair[1], cohort, outcome)]
        np.testing.assert_equal(inside(pair[1]), inside(replace(new, owned=True)))


def inside(x: Any) -> Any:
    return {f.name: inside(getattr(x, f.name)) for f in fields(x)} if is_dataclass(x) else x


def test_jobs_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a run do not depend on how it was cut into jobs, fractions included."""
    monkeypatch.setattr("surefoot.play.PART", 8)
    whole = play(job("safebai-monotonic", 60, 10**6))
    parts = [play(replace(job("safebai-monotonic", size, 10**6), first=at)) for at, size in ((0, 8), (8, 32), (40, 20))]
    assert (parts[0].sums + (parts[1].sums + parts[2].sums)).to_dict() == whole.sums.to_dict()
    assert whole.sums.excess > 0
    assert whole.columns is not None
    together = np.concatenate([part.columns["safe"] for part in parts if part.columns])
    np.testing.assert_array_equal(together, whole.columns["safe"])


def test_the_share_that_is_done() -> None:
    """It rises to the end, and is about right on the way."""
    shares = list[float]()
    play(job("safebai-monotonic", 600, 10**6, width=256), shares.append)
    assert shares[-1] > 0.9 and all(0 <= x < 1 for x in shares)
    middle = [x for x in shares[len(shares) // 4 : 3 * len(shares) // 4] if x]
    assert min(middle) > 0.1 and max(middle) < 0.95


def test_a_watch_sees_every_decision() -> None:
    class Counting(Watch):
        def begin(self, job: Job) -> None:
            self.most = np.zeros(job.trials, dtype=np.int64)

        def note(self, rows: Any, state: Any) -> None:
            self.most[rows] = state.rounds

        def columns(self) -> dict[str, Any]:
            return {"seen": self.most}

    played = play(job("safebai-linear", 500, 10**6, width=256, watch=Counting()))
    assert played.columns is not None
    np.testing.assert_array_equal(played.columns["seen"], played.columns["rounds"])
