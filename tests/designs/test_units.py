"""No design depends on units: the same problem in milligrams and grams, in percent and shares, is the same study."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, Scenario, make, simulate
from surefoot.catalogue import case
from surefoot.designs import DESIGNS
from surefoot.noise import Bounded

NAMES = ["safebai-linear", "surefoot-linear", "safebai-monotonic", "surefoot-monotonic", "surefoot-levels"]
DOSE, EFFECT, HARM = 1000.0, 1e-3, 3.7  # no powers of 2: where evidence is flat rounding must not choose


@dataclass(frozen=True)
class InUnits:
    """A curve in other units of dose and reading."""

    curve: Any
    dose: float
    reading: float

    def __call__(self, dose: Any) -> Any:
        return self.reading * self.curve(dose / self.dose)


def other_noise(noise: Noise, unit: float) -> Noise:
    if isinstance(noise, Bounded):
        return Bounded(unit * noise.low, unit * noise.high)
    return type(noise)(unit * noise.scale)  # type: ignore[arg-type]


def other(problem: Problem, scenario: Scenario) -> tuple[Problem, Scenario]:
    dose = 1.0 if problem.shape == "levels" else DOSE
    arms = tuple(
        arm if arm.labels else Arm(arm.name, dose * arm.start, dose * arm.max, HARM / dose * arm.lipschitz)
        for arm in problem.arms
    )
    noise = tuple(other_noise(x, unit) for x, unit in zip(problem.noises, (EFFECT, HARM), strict=True))
    slack = None if problem.slack is None else HARM * problem.slack
    same = problem.but(arms=arms, limit=HARM * problem.limit, slack=slack, noise=noise)
    curves = {
        key: tuple(InUnits(x, dose, unit) for x in getattr(scenario, key))
        for key, unit in (("effect", EFFECT), ("harm", HARM))
    }
    return same, replace(scenario, effect=curves["effect"], harm=curves["harm"])


LEVELS = Problem(
    arms=(Arm("a", levels=(1, 2, 3)), Arm("b", levels=(1, 2, 3))), limit=0.3, slack=0.1, delta=0.1, shape="levels",
    noise=Noise("gaussian", 0.3),
)  # fmt: skip


@pytest.mark.parametrize("noise", ["known", "guess", "bounded"])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_study_in_other_units(name: str, noise: str) -> None:
    shape = DESIGNS[name].shape
    problem, scenario = case("paper-linear", 3) if shape == "linear" else case("paper-drug", 3)
    if shape == "levels":
        from surefoot.scenario import Table

        rises = [Table((0, 1, 2), values) for values in ((0.3, 0.5, 0.7), (0.1, 0.3, 0.4), (0.1, 0.2, 0.5))]
        problem, scenario = LEVELS, Scenario((rises[0], rises[1]), (rises[2], rises[2]))
    if noise == "guess":
        if name.startswith("safebai"):
            return
        problem = problem.but(noise=Noise("gaussian-guess", problem.sigma), budget=300)
    if noise == "known" and shape == "monotonic":
        problem = problem.but(noise=Noise("gaussian", 0.1))  # it ends in half as many rounds
    if noise == "bounded":
        problem = problem.but(noise=Bounded(0, 2), budget=300)
    found = []
    for p, truth in ((problem, scenario), other(problem, scenario)):
        design = make(name)
        result = simulate(p, truth, design, trials=10, seed=5)
        found.append(np.stack([result.pulls, result.rounds, result.winner, result.ending]))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("shape", ["linear", "monotonic"])
@pytest.mark.parametrize("name", ["unconstrained", "track-and-stop"])
def test_controls_give_the_same_doses_in_other_units(name: str, shape: str) -> None:
    """Cohort by cohort. `oracle` is told doses; BOIN and 3+3 are for binary harms on levels, which have no unit; the
    kernels and norms that SafeOpt, StageOpt and Safe-LTS assume are in units of the readings."""
    problem, scenario = case("paper-linear" if shape == "linear" else "paper-drug", 2)
    problem = problem.but(budget=60)
    found = []
    for (p, truth), unit in (((problem, scenario), 1.0), (other(problem, scenario), DOSE)):
        trace = simulate(p, truth, make(name), trials=1, seed=5, trace=True).trace
        assert trace is not None
        found.append((trace.n, np.where(trace.n > 0, trace.dose / unit, 0.0)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9)
