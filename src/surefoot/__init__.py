"""Surefoot: which of several options is best at its highest safe level, found without stepping over the limit."""

from typing import TYPE_CHECKING, Any

from .catalogue import CASES, case
from .characteristics import Characteristics
from .designs import DESIGNS, Design, make
from .problem import Arm, Noise, Problem, SurefootError
from .scenario import Scenario, load
from .simulate import simulate

if TYPE_CHECKING:
    from .client import Client as Client
    from .study import Study as Study

__version__ = "0.2.0"
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


def __getattr__(name: str) -> Any:
    if name == "Study":  # made known here, imported when used: it needs the extra `study`
        from .study import Study

        return Study
    if name == "Client":  # needs the extra `web`
        from .client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
