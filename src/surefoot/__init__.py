"""Surefoot: which of several options is best at its highest safe level, found without stepping over the limit."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .catalogue import CASES, case
from .characteristics import Characteristics
from .designs import DESIGNS, Cohort, Design, Outcome, Policy, Verdict, make
from .problem import Arm, Noise, Problem, SurefootError
from .registry import register
from .scenario import Scenario, load
from .simulate import Result, simulate

if TYPE_CHECKING:
    from .client import Client as Client
    from .study import Study as Study

__version__ = "0.3.0"
__all__ = [
    "CASES",
    "DESIGNS",
    "Arm",
    "Characteristics",
    "Cohort",
    "Design",
    "Noise",
    "Outcome",
    "Policy",
    "Problem",
    "Result",
    "Scenario",
    "SurefootError",
    "Verdict",
    "case",
    "load",
    "make",
    "register",
    "simulate",
]
if find_spec("sqlalchemy"):  # what a study needs
    __all__ += ["Study"]


def __getattr__(name: str) -> Any:
    if name == "Study":  # made known here, imported when used: it needs the extra `study`
        from .study import Study

        return Study
    if name == "Client":  # needs the extra `web`
        from .client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
