"""The designs by name."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from ..problem import SurefootError, choice
from .base import Cohort, Design, Outcome, Verdict
from .clinic import Boin, ThreePlusThree
from .compose import Policy
from .levels_policy import SurefootLevels
from .linear import SafeBAILinear
from .monotonic import SafeBAIMonotonic
from .oracle import Oracle
from .safe_lts import SafeLTS
from .safeopt import SafeOpt
from .stageopt import StageOpt
from .surefoot_linear import SurefootLinear
from .surefoot_monotonic import SurefootMonotonic
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
    Boin,
    ThreePlusThree,
)
DESIGNS: dict[str, type[Design]] = {design.name: design for design in KINDS}

DEFAULTS = {"linear": "surefoot-linear", "monotonic": "surefoot-monotonic", "levels": "surefoot-levels"}


def default(shape: str) -> str:
    """The name of the design to use for a shape when none is asked for."""
    return DEFAULTS[shape]


def options(kind: type[Design]) -> dict[str, Any]:
    """The options of a design and their defaults; of a composed one those of its policy."""
    found: dict[str, Any] = {}
    for f in fields(kind):  # type: ignore[arg-type]
        default: Any = f.default if f.default_factory is MISSING else f.default_factory()
        mine = isinstance(default, Policy) and is_dataclass(default)
        found |= {g.name: getattr(default, g.name) for g in fields(default)} if mine else {f.name: default}
    return found


def make(name: str, **given: Any) -> Design:
    """The design of that name. Options that come as strings (from a command line) are read by their default's type."""
    kind = DESIGNS[choice("design", name, DESIGNS)]
    known = options(kind)
    for key, value in given.items():
        choice(f"an option of {name}", key, known)
        if isinstance(value, str) and isinstance(known[key], (int, float)):
            try:
                given[key] = type(known[key])(value)
            except ValueError:
                raise SurefootError(f"{key} of {name} must be a number; got {value!r}") from None
    if given and (policy := getattr(kind(), "policy", None)) is not None:
        return kind(policy=type(policy)(**given))  # type: ignore[call-arg]
    return kind(**given)


__all__ = ["DESIGNS", "Cohort", "Design", "Outcome", "SafeBAILinear", "SafeBAIMonotonic", "Verdict", "default", "make"]
