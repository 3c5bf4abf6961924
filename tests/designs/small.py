"""Problems that end within a few hundred pulls, for designs that make one pull at a time."""

from surefoot import Noise, Problem, Scenario, case
from surefoot.scenario import Linear


def linear() -> tuple[Problem, Scenario]:
    problem, scenario = case("paper-linear", 3)
    return problem.but(noise=Noise("gaussian", 0.1)), scenario


def easy() -> tuple[Problem, Scenario]:
    """Far apart, with slopes of at most 1."""
    problem = linear()[0].but(noise=Noise("gaussian", 0.05))
    return problem, Scenario((Linear(1.0), Linear(0.1), Linear(0.1)), (Linear(1.0),) * 3)


def drug() -> tuple[Problem, Scenario]:
    problem, scenario = case("paper-drug", 3)
    return problem.but(noise=Noise("gaussian", 0.05)), scenario


def flat() -> tuple[Problem, Scenario]:
    problem, scenario = case("flat-effect", 3)
    return problem.but(noise=Noise("gaussian", 0.05)), scenario
