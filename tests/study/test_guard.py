"""The guard agrees with the designs on every dose, and stops a design that is too sure of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from surefoot import CASES, Arm, Noise, Problem, Study, case, make
from surefoot.bounds import rate_upper, slope_upper
from surefoot.designs import DESIGNS, Design, SafeBAILinear
from surefoot.designs.base import RUNNING, Cohort, Outcome
from surefoot.designs.linear_evidence import SAFETY, LinearEvidence
from surefoot.designs.surefoot import SurefootLinear
from surefoot.study import guard
from surefoot.study.guard import CLOSE, Came, Round, refusal, stages, summed

from .subjects import problem, run, subjects

BANK = [
    (design, name)
    for name, it in CASES.items()
    if it.claim
    for design in guard.THEOREMS
    if make(design).shape == case(name)[0].shape
]


@pytest.mark.parametrize("chosen, name", BANK)
def test_certifies_every_dose_that_the_design_asks_for(chosen: str, name: str) -> None:
    """Every catalogue case, played to its end: the guard's scalar code and the design's arrays agree to 1e-9.

    The guard's radius has the number of pulls rounded up, and Newton's method comes from above: its bound may be a hair
    below the design's; never above.
    """
    p, truth = case(name)
    design = make(chosen)
    theorem, rng = guard.THEOREMS[design.name], np.random.default_rng(3)
    state, rounds = design.start(p), list[Round]()
    tightest = math.inf
    while state.ending[0] == RUNNING and len(rounds) < 60:
        cohort = design.ask(state)
        bound = theorem(p, {}, rounds)
        for arm in range(len(p.arms)):
            if cohort.n[0, arm]:
                dose = float(cohort.dose[0, arm])
                assert refusal(p, bound, arm, dose) is None
                if dose > p.arms[arm].start:
                    tightest = min(tightest, (p.ceiling - bound(arm, dose)) / abs(p.ceiling))
        effect, harm, _ = truth.draw(rng, p, cohort.dose, cohort.n, state.pulls)
        came = {
            (i, float(cohort.dose[0, i])): Came(int(cohort.n[0, i]), float(effect[0, i]), float(harm[0, i]))
            for i in range(len(p.arms))
            if cohort.n[0, i]
        }
        asked = tuple((float(a), int(n)) for a, n in zip(cohort.dose[0], cohort.n[0], strict=True))
        rounds.append(Round(asked, came))
        state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
    assert tightest > -CLOSE


def test_agrees_with_the_pooled_design_on_the_slope_itself() -> None:
    """By bisection and by Newton's method, from few pulls to many, signals weak and strong: the same slope."""
    p, rng = problem(sigma=0.2), np.random.default_rng(1)
    for pulls in (1, 5, 40, 1000, 10**6):
        doses = [float(x) for x in rng.uniform(0.2, 1.0, 3)]
        harms = [float(x) for x in rng.normal(0.3, 0.2, 3)]
        came = {(0, a): Came(pulls, 0.0, pulls * a * h) for a, h in zip(doses, harms, strict=True)}
        bound = guard.surefoot_linear(p, {}, [Round(((0.2, pulls),) * 3, came)])
        v = sum((a / 0.2) ** 2 * c.n for (_, a), c in came.items())
        z = sum(a / 0.2 * c.harm / 0.2 for (_, a), c in came.items())
        slope = float(slope_upper(np.array([v]), np.array([z]), SAFETY * p.delta / 3, steps=50)[0])
        assert math.isclose(bound(0, 0.2), slope * 0.2, rel_tol=1e-9)
        assert bound(1, 0.2) == math.inf, "nothing is known of an arm without readings"


def test_agrees_with_the_pooled_design_on_the_rate_of_binary_harms() -> None:
    """From a few pulls to many, from no harm at all to nothing but harm."""
    arms = tuple(Arm(name, 0.2, 1.0) for name in "abc")
    p = Problem(arms, 3.0, "linear", Noise("bernoulli"))  # so that it need not look back
    for pulls in (1, 7, 40, 1000, 10**6):
        for share in (0.0, 0.01, 0.3, 1.0):
            came = {(0, a): Came(pulls, 0.0, round(pulls * share)) for a in (0.2, 0.5, 0.9)}
            came[0, 0.0] = Came(3, 0.0, 0.0)  # a dose of 0 tells nothing
            bound = guard.surefoot_linear(p, {}, [Round(((0.2, pulls),) * 3, came)])
            n, dose, total = (np.array([x]) for x in (3.0 * pulls, 8.0 * pulls, 3.0 * round(pulls * share)))
            rate = rate_upper(n, dose, total, SAFETY * p.delta / 3, steps=50)
            assert math.isclose(bound(0, 0.2), float(rate[0]), rel_tol=1e-9)
            assert bound(1, 0.2) == math.inf, "nothing is known of an arm without readings"


def test_what_was_certified_once_stays_certified() -> None:
    """By the guard as by the design: a dose that the present readings alone would not certify, earlier ones did."""
    for noise in (Noise("gaussian", 0.2), Noise("bernoulli")):
        p = Problem(tuple(Arm(name, 0.2, 1.0) for name in "ab"), 0.3, "linear", noise)
        asked, few, many = ((0.2, 200), (0.2, 0)), {(0, 0.2): Came(200, 0.0, 4.0)}, {(0, 0.2): Came(200, 0.0, 60.0)}
        rounds = [Round(asked, few), Round(asked, many)]
        design = make("surefoot-linear")
        state = design.start(p)
        for k in range(2):
            n = np.array([[200, 0]])
            state = design.tell(state, Cohort(np.full((1, 2), 0.2), n), Outcome(n, 0.0 * n, n * (0.02, 0.3)[k]))
        dose = float(state.safe[0, 0])
        assert dose > 0.3
        assert refusal(p, guard.surefoot_linear(p, {}, rounds), 0, dose) is None
        assert refusal(p, guard.surefoot_linear(p, {}, rounds), 0, dose * 1.01) is not None
        assert refusal(p, guard.surefoot_linear(p, {}, rounds[1:]), 0, dose) is not None


def test_agrees_with_the_design_on_the_number_itself() -> None:
    """Where n is not rounded (it is what it is), guard and design give the same certified dose to 1e-9."""
    p = problem(sigma=0.2)
    design = SafeBAILinear()
    state = design.start(p)
    cohort = design.ask(state)
    n = cohort.n
    harm = np.array([[0.05, 0.07, 0.09]]) * n
    after = design.tell(state, cohort, Outcome(n, 0 * harm, harm))
    came = {(i, 0.2): Came(int(n[0, i]), 0.0, float(harm[0, i])) for i in range(3)}
    rounds = [Round(tuple((0.2, int(k)) for k in n[0]), came)]
    bound = guard.safebai_linear(p, {}, rounds)
    for i in range(3):
        own = 0.5 + harm[0, i] / n[0, i]  # epsilon_1 = 1/2
        exact = 0.2 * math.sqrt(2 * math.log(8 * 3 / p.delta) / n[0, i])  # with n rounded up
        expected = (own - 0.5 + exact) / 0.2
        assert math.isclose(bound(i, 1.0), expected, rel_tol=1e-12)
        assert bound(i, float(after.safe[0, i])) <= max(p.limit, 0.2 * expected) * (1 + 1e-9)


@dataclass(frozen=True)
class Overconfident(SafeBAILinear):
    """Raises its doses by as much as it pleases."""

    name: ClassVar[str] = "overconfident"

    def decide(self, s: Any) -> Any:
        after = super().decide(s)
        return replace(after, dose=np.minimum(after.dose * 1.05, 1.0))


class TooSure(LinearEvidence):
    def learn(self, state: Any, cohort: Any, outcome: Any) -> Any:
        after = super().learn(state, cohort, outcome)
        return replace(after, safe=np.where(outcome.n > 0, np.minimum(after.safe * 1.05, 1.0), after.safe))


@dataclass(frozen=True)
class OverconfidentPooled(SurefootLinear):
    """So does this one."""

    name: ClassVar[str] = "overconfident"
    evidence: ClassVar[LinearEvidence] = TooSure()


@pytest.mark.parametrize(
    "kind, theorem", [(Overconfident, guard.safebai_linear), (OverconfidentPooled, guard.surefoot_linear)]
)
def test_a_dose_that_only_the_design_certifies_is_not_released(
    kind: type[Design], theorem: guard.Theorem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DESIGNS, "overconfident", kind)
    monkeypatch.setitem(guard.THEOREMS, "overconfident", theorem)
    p = problem()
    study = Study.create(f"{tmp_path}/s.db", "s", p, design="overconfident", seed=2)
    run(study, subjects(p))
    assert study.view.standing == "paused"
    pause = study.log()[-1]
    assert pause.data["by"] == "guard"
    assert "the guard can only bound its harm by" in str(pause.reason)
    assert study.verify()["ok"]
    for given in study.view.cohorts:  # nothing that was released lacks the guard's word
        bound = study.view.theorem(given.number)
        assert all(refusal(p, bound, i, a) is None for i, a in enumerate(given.dose) if given.n[i])
    study.resume("we trust the design")
    assert study.view.standing == "paused", "it cannot be talked into it"


def test_refuses_doses_beyond_the_largest_and_between_levels() -> None:
    arm = Arm("A", 0.1, 1.0, levels=(0.1, 0.5, 0.9))
    p = Problem((arm, replace(arm, name="B")), 1.0, "linear", Noise("gaussian", 1.0))

    def safe(arm: int, dose: float) -> float:
        return 0.0

    assert refusal(p, safe, 0, 0.5) is None
    assert "levels" in str(refusal(p, safe, 0, 0.4))
    assert "largest" in str(refusal(p, safe, 0, 1.1))
    assert "largest" in str(refusal(p, safe, 0, math.nan))
    assert refusal(p, lambda arm, dose: math.inf, 0, 0.1) is None, "the start dose is known to be safe"
    assert "bound its harm by inf" in str(refusal(p, lambda arm, dose: math.inf, 0, 0.5))


def test_stages_wait_for_what_was_asked() -> None:
    def came(n: int, dose: float = 1.0) -> dict[tuple[int, float], Came]:
        return {(0, dose): Came(n, 0.0, 2.0 * n)} if n else {}

    asked = ((1.0, 4), (1.0, 0))
    assert list(stages([Round(asked, came(4))])) == [{0: (1.0, 4, 8.0)}]
    assert list(stages([Round(asked, came(3))])) == []
    assert list(stages([Round(asked, came(3)), Round(((1.0, 1), (1.0, 0)), came(1))])) == [{0: (1.0, 4, 8.0)}]
    assert list(stages([Round(asked, came(5))])) == [], "more than was asked for is set aside"
    assert list(stages([Round(asked, came(4, dose=2.0))])) == [], "and so is another dose"


def test_every_theorem_is_of_a_design_and_each_shape_has_one() -> None:
    assert set(guard.THEOREMS) <= set(DESIGNS)
    for shape in ("linear", "monotonic"):
        assert DESIGNS[guard.default(shape)].shape == shape


def test_sums_are_exact() -> None:
    readings = [(0, 1.0, x, -x) for x in (1e16, 1.0, -1e16, 1.0)]
    assert summed(readings) == {(0, 1.0): Came(4, 2.0, -2.0)}
