"""The conformance suite catches what it is there to catch: each design here is broken in one way."""

from dataclasses import dataclass, replace
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest

from surefoot import Noise, SurefootError
from surefoot.designs.base import RUNNING, Cohort, Outcome
from surefoot.designs.linear import SafeBAILinear
from surefoot.designs.monotonic import SafeBAIMonotonic
from surefoot.testing import DesignSuite, failures_allowed

METHODS = [name for name in dir(DesignSuite) if name.startswith("test_")]


def caught(broken: Any, trials: int = 2000) -> dict[str, str]:
    """The tests of the suite that fail, and what they say."""
    suite = type("Suite", (DesignSuite,), {"design": broken, "trials": trials})()
    found = {}
    for name in METHODS:
        try:
            getattr(suite, name)()
        except SkipTest:
            continue
        except Exception as error:
            found[name] = str(error)
    return found


def test_a_sound_design_passes() -> None:
    assert caught(SafeBAILinear(), trials=200) == {}


@dataclass(frozen=True)
class Overconfident(SafeBAILinear):
    """Believes that sigma is a quarter of what it is."""

    def begin(self, problem: Any, trials: int, xp: Any) -> Any:
        noise = tuple(Noise("gaussian", noise.scale / 4) for noise in problem.noises)
        return super().begin(problem.but(noise=noise), trials, xp)


@dataclass(frozen=True)
class Bold(SafeBAIMonotonic):
    """Believes that harm rises a quarter as fast as it may."""

    def begin(self, problem: Any, trials: int, xp: Any) -> Any:
        arms = tuple(replace(arm, lipschitz=arm.lipschitz / 4) for arm in problem.arms)
        return super().begin(problem.but(arms=arms), trials, xp)


@pytest.mark.parametrize("broken", [Overconfident(), Bold()])
def test_overconfidence_is_caught(broken: Any) -> None:
    found = caught(broken)
    assert set(found) == {"test_guarantee"}
    assert "does not keep its promise" in found["test_guarantee"]


@dataclass(frozen=True)
class Writes(SafeBAILinear):
    """Changes what it was given."""

    what: str = "state"

    def tell(self, state: Any, cohort: Cohort, outcome: Outcome) -> Any:
        new = super().tell(state, cohort, outcome)
        x = {"state": state.lower, "cohort": cohort.dose, "outcome": outcome.harm}[self.what]
        if isinstance(x, np.ndarray):
            x[...] = 0.0
        return new


@pytest.mark.parametrize(("what", "field"), [("state", "lower"), ("cohort", "dose"), ("outcome", "harm")])
def test_changing_what_was_given_is_caught(what: str, field: str) -> None:
    assert f"{field} was changed in place" in caught(Writes(what=what), 10)["test_pure"]


@dataclass(frozen=True)
class Forgets(SafeBAILinear):
    """Takes only what it asked for."""

    def learn(self, state: Any, cohort: Cohort, outcome: Outcome) -> Any:
        if not np.array_equal(np.asarray(cohort.dose), np.asarray(state.dose)):
            raise KeyError("this dose was not asked for")
        return super().learn(state, cohort, outcome)


def test_a_tell_that_is_not_total_is_caught() -> None:
    assert "this dose was not asked for" in caught(Forgets(), 100)["test_tell_is_total"]


@dataclass(frozen=True)
class Credulous(SafeBAILinear):
    """Takes a missing harm for none."""

    def tell(self, state: Any, cohort: Cohort, outcome: Outcome) -> Any:
        return super().tell(state, cohort, replace(outcome, harm=np.nan_to_num(np.asarray(outcome.harm))))


def test_taking_a_missing_reading_for_safe_is_caught() -> None:
    assert "never taken as safe" in caught(Credulous(), 100)["test_tell_is_total"]


@dataclass(frozen=True)
class Restless(SafeBAILinear):
    """Goes on changing trials that have ended."""

    def tell(self, state: Any, cohort: Cohort, outcome: Outcome) -> Any:
        new = super().tell(state, cohort, outcome)
        return replace(new, pulls=new.pulls + (state.ending != RUNNING))


def test_changing_finished_trials_is_caught() -> None:
    assert "test_ended_trials_rest" in caught(Restless(), 100)


@dataclass(frozen=True)
class Homesick(SafeBAILinear):
    """Leaves the namespace it was started in."""

    def learn(self, state: Any, cohort: Cohort, outcome: Outcome) -> Any:
        new = super().learn(state, cohort, outcome)
        return replace(new, estimate=np.asarray(new.estimate))


def test_leaving_the_namespace_is_caught() -> None:
    assert set(caught(Homesick(), 100)) == {"test_namespaces_agree"}


@dataclass(frozen=True)
class Mixes(SafeBAILinear):
    """Trials of one batch look at each other."""

    def learn(self, state: Any, cohort: Cohort, outcome: Outcome) -> Any:
        new = super().learn(state, cohort, outcome)
        return replace(new, estimate=new.estimate + 0.1 * float(np.asarray(outcome.harm).mean()))


def test_trials_that_look_at_each_other_are_caught() -> None:
    assert "test_batch_is_its_trials" in caught(Mixes(), 100)


@dataclass(frozen=True)
class Spendthrift(SafeBAILinear):
    """Does not look at the budget."""

    def _within_budget(self, s: Any) -> Any:
        return s


def test_going_over_the_budget_is_caught() -> None:
    assert set(caught(Spendthrift(), 100)) == {"test_budget"}


@dataclass(frozen=True)
class Anything(SafeBAILinear):
    """Takes problems of any shape."""

    def start(self, problem: Any, trials: int = 1, xp: Any = np) -> Any:
        try:
            return super().start(problem, trials, xp)
        except SurefootError:
            return None


def test_taking_another_shape_is_caught() -> None:
    assert "test_refuses_the_other_shape" in caught(Anything(), 100)


@dataclass(frozen=True)
class Reckless(SafeBAILinear):
    """Believes that the limit is fifty times what it is."""

    def begin(self, problem: Any, trials: int, xp: Any) -> Any:
        return super().begin(problem.but(limit=50 * problem.limit), trials, xp)


def test_what_is_grossly_unsafe_is_seen_at_once_and_what_is_done_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    suite = type("Suite", (DesignSuite,), {"design": Reckless(), "trials": 100_000})()
    with pytest.raises(AssertionError, match="does not keep its promise: paper-linear: failed in 20 of 20 trials"):
        suite.test_guarantee()
    assert capsys.readouterr().out == "safebai-linear on paper-linear: 20 of 20 trials failed, 10% allowed\n"


def test_what_does_not_apply_is_skipped_with_a_word() -> None:
    suite: Any = type("Suite", (DesignSuite,), {"design": SafeBAIMonotonic(schedule="paper"), "symmetric": False})()
    with pytest.raises(SkipTest, match="safebai-monotonic has no guarantee"):
        suite.test_guarantee()
    with pytest.raises(SkipTest, match="breaks ties by the order of arms"):
        suite.test_permuting_arms()


def test_failures_allowed() -> None:
    """A design that fails exactly as often as it may is caught once in a million runs, and not much less often."""
    from scipy.stats import binom

    for tests in (1, 20):
        most = failures_allowed(2000, 0.1, tests)
        assert binom.sf(most, 2000, 0.1) <= 1e-6 / tests < binom.sf(most - 1, 2000, 0.1)
