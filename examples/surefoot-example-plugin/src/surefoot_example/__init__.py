"""One of each: a policy, a design, a curve, a kind of noise, a scenario. The entry points are in pyproject.toml."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surefoot import Arm, Cohort, Design, Noise, Outcome, Problem, Scenario
from surefoot.catalogue import Case
from surefoot.designs.base import ACTIVE, BEST_ARM, State, blank
from surefoot.designs.monotonic_policy import MonotonicPolicy
from surefoot.scenario import Emax


@dataclass(frozen=True)
class Blocks(MonotonicPolicy):
    """What surefoot-monotonic would do next, in whole blocks of `each` pulls: a ward, a plate, a day.

    It stands on our evidence, so it is safe and right as it is, and may run live studies; only slower.

    when: Subjects come in groups of one size.
    each: pulls of a block
    """

    name: ClassVar[str] = "blocks"
    each: int = 10

    def choose(self, state: Any, u: Any) -> Cohort:
        cohort = super().choose(state, u)
        return replace(cohort, n=-(-cohort.n // self.each) * self.each)


@dataclass(frozen=True, kw_only=True)
class Sums(State):
    """What `SameForAll` keeps."""

    n: Any
    total: Any


@dataclass(frozen=True)
class SameForAll(Design[Sums]):
    """Every arm so often at its start dose, then the one that did best: a design with no theorem.

    when: Never; to see how a design is made.
    each: pulls of every arm
    """

    each: int = 100

    name: ClassVar[str] = "same-for-all"
    shape: ClassVar[Any] = "monotonic"
    portable: ClassVar[bool] = False  # NumPy alone

    @property
    def guarantee(self) -> bool:
        return False

    def begin(self, problem: Problem, trials: int, xp: Any) -> Sums:
        none = np.zeros((trials, len(problem.arms)))
        return Sums(**blank(problem, trials, xp), n=none, total=none)

    def plan(self, state: Sums, u: Any) -> Cohort:
        return Cohort(state.safe, np.full(state.n.shape, self.each))

    def learn(self, state: Sums, cohort: Cohort, outcome: Outcome) -> Sums:
        n, total = state.n + outcome.n, state.total + outcome.effect * (outcome.n > 0)
        mean = np.where(state.standing == ACTIVE, total / np.maximum(n, 1), -np.inf)
        done = np.all(n >= self.each, axis=1)
        return replace(
            state, n=n, total=total, rounds=state.rounds + 1, estimate=mean,
            ending=np.where(done, BEST_ARM, state.ending), winner=np.where(done, mean.argmax(axis=1), state.winner),
        )  # fmt: skip


@dataclass(frozen=True)
class HockeyStick:
    """low until `knee`, then up by `slope`"""

    knee: float
    slope: float = 1.0
    low: float = 0.0

    def __call__(self, dose: Any) -> Any:
        return self.low + self.slope * np.maximum(dose - self.knee, 0.0)


@dataclass(frozen=True)
class Uniform(Noise):
    """Anywhere within `width` of the mean, all as likely."""

    width: float
    kind: ClassVar[str] = "uniform"

    @property
    def scale(self) -> float:
        return self.width / 3**0.5  # uniform noise is sub-Gaussian with its own standard deviation

    def draw(self, rng: np.random.Generator, n: Any, mean: Any) -> tuple[Any, Any]:
        sums = np.vectorize(lambda k: float(rng.uniform(-self.width, self.width, int(k)).sum()), otypes=[float])(n)
        return n * mean + sums, sums / self.scale


def sticks(arms: int) -> tuple[Problem, Scenario]:
    """Harm that is nothing for a while and then rises; the last arm is the best."""
    problem = Problem(
        [Arm(f"arm {k + 1}", 0.0, 2.0, 1.0) for k in range(arms)], 0.3, "monotonic", Noise("gaussian", 0.2), 0.2, 0.1
    )
    effect = [Emax(0.4 + 0.4 * (k == arms - 1), 0.3) for k in range(arms)]
    return problem, Scenario(effect, [HockeyStick(0.5, 0.5) for _ in range(arms)])


STICKS = Case("example-sticks", " ".join((sticks.__doc__ or "").split()), sticks, 3)
