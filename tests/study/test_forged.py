"""Studies that nobody would be led to, made up event by event and sealed: the checker says no, as the evidence does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, Study, make, simulate
from surefoot.designs import linear_evidence
from surefoot.designs.base import ACTIVE, ENDINGS, REFUTED, Cohort, Outcome
from surefoot.scenario import Linear, Scenario
from surefoot.study.checker import ORIGIN, THEOREMS, Broken, Event, Given, Record, check

from .subjects import Subjects, problem, run, subjects

LINES = Problem((Arm("A", 0.2, 1.0), Arm("B", 0.2, 1.0)), 1.0, "linear", Noise("gaussian", 0.2), delta=0.05)
NAN = float("nan")


class Forge:
    """Events of anybody's making, one after the other, as long as the checker takes them."""

    def __init__(self, asked: Problem, design: str, **change: Any) -> None:
        self.base = Study.create("sqlite://", "s", asked, design, seed=1, watch="warn").log()[0]
        self.events, self.record = list[Event](), Record()
        self.add("created", {**self.base.data, **change})

    def add(self, kind: str, data: Any, reason: str | None = None) -> None:
        before = self.events[-1].hash if self.events else ORIGIN
        event = self.base._replace(seq=len(self.events) + 1, kind=kind, payload=json.dumps(data), prev=before, hash="")
        event = event._replace(reason=reason, key=None)
        event = event._replace(hash=event.seal())
        self.record.take(event)
        self.events.append(event)

    def open(self, dose: list[float], n: list[int], stakes: list[Any]) -> Given:
        theorem = self.record.ahead()
        known = [theorem.certified(arm) for arm in range(theorem.d)]
        self.add("opened", {"dose": dose, "n": n, "stakes": stakes, "certified": known})
        return self.record.cohorts[-1]

    def tell(self, subject: int, effect: float, harm: float) -> None:
        self.add("told", {"id": subject, "effect": effect, "harm": harm})


def test_no_dose_below_zero_turns_a_line_round() -> None:
    forge = Forge(LINES, "safebai-linear")
    with pytest.raises(Broken, match=r"A at dose -0\.2 is not certified"):
        forge.open([-0.2, 0.2], [1, 0], [[1, 1, 1], None])


def test_a_late_reading_of_a_withdrawn_stage_opens_nothing_anew() -> None:
    """Else an estimate could be made again and again until it pleases, with one correction."""
    forge = Forge(LINES, "safebai-linear")
    first = forge.open([0.2, 0.2], [100, 1], [[100, 1, 1], [1, 1, 1]]).first
    forge.tell(first, 0.1, 0.1)
    forge.add("corrected", {"id": first, "effect": 0.2, "was": {"effect": 0.1}}, "a digit")
    forge.add("closed", {}, "withdrawn")
    again = forge.open([0.1, 0.2], [2, 0], [[2, 1, 1], None])
    for subject in range(again.first, again.first + 2):
        forge.tell(subject, 0.1, 0.1)
    forge.tell(first + 1, 0.1, 0.1)
    with pytest.raises(Broken, match="a number is used once"):
        forge.open([0.15, 0.2], [2, 0], [[2, 1, 1], None])
    assert "Cohorts of stages that were set aside after a correction: 1." in check(forge.events)["says"]


@pytest.mark.parametrize(
    ("design", "change", "why"),
    [
        ("surefoot-linear", {"noise": {"kind": "bounded", "low": 0.1, "high": 1.0}}, "lines go through 0"),
        ("surefoot-linear", {"limit": -1.0}, "above"),
        ("surefoot-monotonic", {"arms": [{"name": x, "start": 0.0, "lipschitz": 1.0} for x in "AB"]}, "largest dose"),
        ("surefoot-monotonic", {"levels": [0.1, 0.5]}, "doses cannot be so"),
        ("surefoot-monotonic", {"levels": [0.0, 0.5, 0.5]}, "doses cannot be so"),
    ],
)
def test_problems_that_no_theorem_is_about(design: str, change: dict[str, Any], why: str) -> None:
    """They are refused when they are read, and so by who knows the events alone."""
    curve = Problem(
        (Arm("A", 0.0, 0.5, 1.0), Arm("B", 0.0, 0.5, 1.0)),
        0.4,
        "monotonic",
        Noise("gaussian", 0.3),
        slack=0.3,
        delta=0.05,
    )
    asked = (LINES if "linear" in design else curve).to_dict()
    if levels := change.pop("levels", None):
        change["arms"] = [{**asked["arms"][0], "levels": levels}, asked["arms"][1]]
    with pytest.raises(Broken, match=why):
        Forge(LINES if "linear" in design else curve, design, problem=asked | change)


def test_no_arm_is_named_where_a_start_is_doubted() -> None:
    """Theorem 5: whoever is told so by a watch, and not the policy, is who says that nobody is named."""
    p = problem()
    events = run(Study.create("sqlite://", "s", p, seed=1, watch="warn"), subjects(p)).log()
    k = next(k for k, e in enumerate(events) if e.kind == "ended")
    said = json.dumps({"by": "watch", "watch": "start", "arm": 0, "reading": "harm"})
    forged = list[Event]()
    for e in [*events[:k], events[k]._replace(kind="warned", payload=said, reason=None), *events[k:]]:
        e = e._replace(seq=len(forged) + 1, prev=forged[-1].hash if forged else ORIGIN)
        forged.append(e._replace(hash=e.seal()))
    report = check(forged)
    assert not report["ok"] and "a watch says that a start dose is not safe" in report["message"]


def test_likelihood_ratios_do_not_pile_up_beside_the_product() -> None:
    """Lemma 1: binary effects have no weight, and are bet on only where their harms, whose sigma is not known, count.
    All arms are alike, so "A0 is best" is true; who lets in those alone that were lucky refutes it, if that is let."""
    d, n, wrong = 150, 100, 0
    arms = tuple(Arm(f"A{i}", 1.0, 1.0) for i in range(d))
    p = Problem(arms, 1.0, "linear", (Noise("bernoulli"), Noise("gaussian-guess", 0.3)), delta=0.05)
    design: Any = make("surefoot-linear")
    for seed in range(6):
        rng = np.random.default_rng(seed)
        state, alone = design.start(p), THEOREMS["surefoot-linear/6"](p.to_dict(), {})

        def told(count: list[int], own: Any, led: Any, rng: Any = rng, alone: Any = alone) -> Any:
            nonlocal state
            many, stakes = np.array(count)[None, :], np.full((1, d, d + 2), NAN)
            stakes[0, :, 0], stakes[0, :, 1] = own, led
            effect = rng.binomial(many, 0.5).astype(float)
            harm = 0.5 * many + 0.3 * np.sqrt(many) * rng.standard_normal(many.shape)
            square = np.where(many > 1, 0.09 * rng.chisquare(np.maximum(many - 1, 1)), 0.0)
            state = design.tell(
                state, Cohort(np.ones((1, d)), many, stakes), Outcome(many, effect, harm, (square, square))
            )
            rows = [[None if np.isnan(x) else x for x in row[:2]] for row in stakes[0]]
            given = Given(1, 1, {"dose": [1.0] * d, "n": [0] * d, "stakes": rows}, 1)
            given.n = count
            given.came = {
                (i, 1.0): (k, float(effect[0, i]), float(harm[0, i]), 0.0, float(square[0, i]))
                for i, k in enumerate(count)
                if k
            }
            alone.take(given)
            return effect[0]

        good = told([0] + [n] * (d - 1), NAN, 1.0) > 0.575 * n
        told(np.where(good, 4, 0).tolist(), NAN, np.where(good, 1.0, NAN))
        told([40] + [0] * (d - 1), NAN, NAN)
        told([3000] + [0] * (d - 1), [1.0] + [NAN] * (d - 1), NAN)
        true = np.arange(d)[None, :] == 0
        wrong += bool(linear_evidence.refuted(state, true)[0][0, 0]) + alone.refuted(0, None)
    assert wrong == 0  # it was 9 of 10, and 13 of 20


def test_harms_of_those_that_led_count_before_their_effects_do() -> None:
    """Lemma 6 of Theorem 2, where sigma of effects is not known: an arm is in the product from its first bet on harm,
    and not from when it pleases. A0 is the best: the others are over the limit from 0.3 on, where effects begin."""
    d, wrong = 80, 0
    arms = (Arm("A0", 1.0, 1.0, 1.0), *(Arm(f"A{i}", 0.0, 1.0, 1.0) for i in range(1, d)))
    noise = (Noise("gaussian-guess", 0.3), Noise("gaussian", 0.3))
    p, design = Problem(arms, 0.4, "monotonic", noise, slack=0.3, delta=0.05), make("surefoot-monotonic")
    dose, mean, over = (np.array([x] + [y] * (d - 1)) for x, y in ((1.0, 0.5), (1.0, 5.0), (0.3, 0.41)))
    one = np.arange(d) == 0
    for seed in range(6):
        rng, state = np.random.default_rng(seed), design.start(p)

        def told(count: Any, harm: Any, below: Any, above: Any, rng: Any = rng) -> Any:
            nonlocal state
            many, stakes = np.asarray(count)[None, :], np.full((1, d, 5), NAN)
            stakes[0, :, 2], stakes[0, :, 3], stakes[0, :, 4] = harm, below, above
            effect, harms = (many * x + 0.3 * np.sqrt(many) * rng.standard_normal(many.shape) for x in (mean, over))
            square = np.where(many > 1, 0.09 * rng.chisquare(np.maximum(many - 1, 1)), 0.0)
            state = design.tell(state, Cohort(dose[None], many, stakes), Outcome(many, effect, harms, (square, square)))
            return harms[0]

        seen = sum(told(np.where(one, 0, 1), 0.2, NAN, np.where(one, NAN, 1.0)) for _ in range(5))
        good = (0.2 * (0.4 * 5 - seen - 0.1 * 5) / 0.09 > 0.7) & ~one
        told(np.where(good, 8, 0), NAN, NAN, NAN)
        told(np.where(good, 8, 0), NAN, NAN, np.where(good, 1.0, NAN))
        for many, below in ((8, NAN), (8, 2.0), (300, 1.0)):
            told(np.where(one, many, 0), NAN, np.where(one, below, NAN), NAN)
        other = np.full((1, d), np.flatnonzero(good)[0])
        evidence: Any = design.evidence  # type: ignore[attr-defined]
        wrong += bool(evidence.refuted(state, one[None], other, 0.0)[0][0, 0]) or state.standing[0, 0] == REFUTED
    assert wrong == 0  # it was 5 of 10


def test_a_tolerance_above_all_values_refutes_nobody() -> None:
    """All arms are within it of the best, and one of them is named so at once: not as the best, which it may not be."""
    arms = (Arm("A", 0.1, 1.0), Arm("B", 0.1, 1.0))
    p = Problem(arms, 1.0, "linear", Noise("gaussian", 0.3), delta=0.05, tolerance=2.0)
    truth = Scenario(tuple(Linear(x) for x in (0.5, 0.45)), (Linear(1.0), Linear(1.0)))
    design = make("surefoot-linear")
    result = simulate(p, truth, design, 400, seed=3, progress=False)
    wrong = result.ending[result.winner == 1]
    assert (result.ending == ENDINGS.index("within-tolerance")).all() and len(wrong) > 10
    odds = design.recommendation(told_of(p, truth, design)).p
    assert (odds > p.delta).all()  # that neither is the best is not supported


def told_of(p: Problem, truth: Scenario, design: Any) -> Any:
    """400 trials of ten cohorts."""
    rng, state = np.random.default_rng(3), design.start(p, 400)
    for _ in range(10):
        cohort = design.ask(state)
        effect, harm, _ = truth.draw(rng, p, cohort.dose, cohort.n, state.pulls)
        state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
    return state


def test_an_arm_that_was_refuted_may_come_back_and_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study says when each arm was out for good, and the checker agrees, after a correction too."""
    monkeypatch.setattr(linear_evidence, "SECOND", 0.5)
    asked = problem(sigma=0.3)
    truth = Scenario(tuple(Linear(x) for x in (1.0, 0.9, 0.85)), (Linear(0.7),) * 3)
    study, people, stood = Study.create("sqlite://", "s", asked, seed=1, watch="warn"), Subjects(asked, truth), [ACTIVE]
    bad = ""
    while open_ := study.ask():
        rows = people.rows(open_)
        for a, row in zip(open_, rows, strict=True):
            if a.arm == "A" and REFUTED not in stood:
                row["effect"], bad = row["effect"] - 1.2 * a.dose, a.id
        study.tell_many(rows)
        stood.append(int(study.view.state.standing[0, 0]))
    assert REFUTED in stood and stood[-1] == ACTIVE and study.status()["winner"] == "A"
    assert check(study.log())["events"] == len(study.log())
    study.correct(bad, effect=0.1, reason="a digit")
    run(study, people)
    assert check(study.log())["events"] == len(study.log())


def test_a_winner_that_came_back_is_named_though_the_bets_against_it_stand() -> None:
    """Those who led before lead no more, so that what they won is never lost again: only the others must be refuted."""
    lines = Problem(tuple(Arm(x, 0.3, 1.5) for x in "ABC"), 1.0, "linear", Noise("gaussian", 1.0), delta=0.1)
    study, out = Study.create("sqlite://", "s", lines, seed=1, watch="warn", blocks=True), False
    while open_ := study.ask():  # A reads too low and B too high until A is refuted
        effect = {"A": 1.0 - 0.5 * (not out), "B": 0.9 + 0.2 * (not out), "C": 0.899}
        study.tell_many(
            {"id": a.id, "n": a.n, "effect": a.n * a.dose * effect[a.arm], "harm": a.n * a.dose} for a in open_
        )
        out |= bool(study.view.state.standing[0, 0])
    assert out and study.status()["winner"] == "A" and check(study.log())["ok"]


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_near_enough_once_is_near_enough_while_the_winner_is_refined(seed: int) -> None:
    lines = Problem(
        tuple(Arm(x, 0.3, 1.0) for x in "ABC"), 1.0, "linear", Noise("gaussian", 1.0), delta=0.1, tolerance=0.1,
        refine=0.02,
    )  # fmt: skip
    rng, study = (
        np.random.default_rng(seed),
        Study.create("sqlite://", "s", lines, seed=seed, watch="warn", blocks=True),
    )
    while open_ := study.ask():
        study.tell_many(
            {
                "id": a.id, "n": a.n,
                "effect": a.n * a.dose * {"A": 0.8, "B": 0.76, "C": 0.4}[a.arm] + a.n**0.5 * rng.standard_normal(),
                "harm": a.n * a.dose * 1.2 + a.n**0.5 * rng.standard_normal(),
            }
            for a in open_
        )  # fmt: skip
    assert study.status()["ending"] in ("best-arm", "within-tolerance") and check(study.log())["ok"]
