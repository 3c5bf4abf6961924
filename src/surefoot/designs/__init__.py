"""The designs by name."""

from __future__ import annotations

from typing import Any

from ..problem import SurefootError, choice
from .base import Cohort, Design, Outcome, Verdict
from .clinic import Boin, ThreePlusThree
from .linear import SafeBAILinear
from .monotonic import SafeBAIMonotonic
from .oracle import Oracle
from .safe_lts import SafeLTS
from .safeopt import SafeOpt
from .stageopt import StageOpt
from .surefoot import SurefootLevels, SurefootLinear, SurefootMonotonic
from .track_and_stop import TrackAndStop
from .unconstrained import Unconstrained

KINDS: tuple[type[Design], ...] = (
    SurefootLinear,
    SurefootMonotonic,
    SurefootLevels,
    SafeBAILinear,
    SafeBAIMonotonic,
    SafeOpt,
    StageOpt,
    SafeLTS,
    Oracle,
    Unconstrained,
    TrackAndStop,
    Boin,
    ThreePlusThree,
)
DESIGNS: dict[str, type[Design]] = {design.name: design for design in KINDS}

DEFAULTS = {"linear": "surefoot-linear", "monotonic": "surefoot-monotonic", "levels": "surefoot-levels"}


def default(shape: str) -> str:
    """The name of the design to use for a shape when none is asked for."""
    return DEFAULTS[shape]


def make(name: str, **options: Any) -> Design:
    """The design of that name. Options that come as strings (from a command line) are read by their default's type."""
    kind = DESIGNS[choice("design", name, DESIGNS)]
    known = kind().options
    for key, value in options.items():
        choice(f"an option of {name}", key, known)
        if isinstance(value, str) and isinstance(known[key], (int, float)):
            try:
                options[key] = type(known[key])(value)
            except ValueError:
                raise SurefootError(f"{key} of {name} must be a number; got {value!r}") from None
    return kind().but(**options)


__all__ = ["DESIGNS", "Cohort", "Design", "Outcome", "SafeBAILinear", "SafeBAIMonotonic", "Verdict", "default", "make"]
