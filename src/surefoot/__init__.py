"""Surefoot: which of several options is best at its highest safe level, found without stepping over the limit."""

from .catalogue import CASES, case
from .characteristics import Characteristics
from .designs import DESIGNS, Design, make
from .problem import Arm, Noise, Problem, SurefootError
from .scenario import Scenario, load
from .simulate import simulate

__version__ = "0.1.0"
__all__ = [
    "CASES",
    "DESIGNS",
    "Arm",
    "Characteristics",
    "Design",
    "Noise",
    "Problem",
    "Scenario",
    "SurefootError",
    "case",
    "load",
    "make",
    "simulate",
]
