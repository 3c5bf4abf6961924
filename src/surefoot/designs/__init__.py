"""The designs by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..problem import SurefootError, choice
from ..registry import Later, Registry, a_class, imported, split
from .base import Cohort, Design, Outcome, Verdict
from .compose import POLICIES, Composed, Policy

OURS = {
    "surefoot-linear": "surefoot:SurefootLinear",
    "surefoot-monotonic": "surefoot:SurefootMonotonic",
    "surefoot-levels": "surefoot:SurefootLevels",
    "safebai-linear": "linear:SafeBAILinear",
    "safebai-monotonic": "monotonic:SafeBAIMonotonic",
    "safeopt": "safeopt:SafeOpt",
    "stageopt": "stageopt:StageOpt",
    "safe-lts": "safe_lts:SafeLTS",
    "oracle": "oracle:Oracle",
    "unconstrained": "unconstrained:Unconstrained",
    "track-and-stop": "track_and_stop:TrackAndStop",
    "boin": "clinic:Boin",
    "three-plus-three": "clinic:ThreePlusThree",
}
DESIGNS: Registry[type[Design]] = Registry(
    "designs", {name: Later(f"{__name__}.{where}") for name, where in OURS.items()}, a_class(Design)
)

DEFAULTS = {"linear": "surefoot-linear", "monotonic": "surefoot-monotonic", "levels": "surefoot-levels"}


def default(shape: str) -> str:
    """The name of the design to use for a shape when none is asked for."""
    return DEFAULTS[shape]


def make(name: str, **options: Any) -> Design:
    """The design of that name.

    Parameters
    ----------
    name
        One of `DESIGNS`: ours, a registered one, or one that an installed package offers. The name of a policy means
        the design that it is for, with that policy.
    **options
        What it is set by (`surefoot designs` lists them). Strings, as a command line has them, are read by the type of
        the default. `policy` is the name of a policy to choose instead of the design's own; it brings its own options.

    Returns
    -------
    Design

    Raises
    ------
    SurefootError
        If there is no such design, option or policy, or the value cannot be used; the nearest name is suggested.

    Examples
    --------
    >>> import surefoot
    >>> surefoot.make("surefoot-linear", cohort=3, growth=0).label
    'surefoot-linear:growth=0:cohort=3'
    """
    if isinstance(name, str) and name not in DESIGNS and name in POLICIES:
        name, options = POLICIES[name].on, {"policy": name, **options}
    if ":" in str(name) and name not in DESIGNS:  # only the command line's simulations import what they are told
        raise SurefootError(
            f"design must be one of those known by name; got {name!r}: surefoot.register it, offer it as an entry "
            f"point, or name a module that registers it in SUREFOOT_PLUGINS"
        )
    DESIGNS.check(name, *POLICIES)
    design = DESIGNS[name]()
    if "policy" in options and isinstance(design, Composed):
        design = design.but(policy=options.pop("policy"))
    known = design.options
    for key, value in options.items():
        choice(f"an option of {name}", key, known)
        if isinstance(value, str) and isinstance(known[key], (int, float)) and (key, value) != ("unit", "auto"):
            try:
                options[key] = type(known[key])(value)
            except ValueError:
                raise SurefootError(f"{key} of {name} must be a number; got {value!r}") from None
    return design.but(**options)


def theorem_of(design: Design) -> str:
    """The name and number of the theorem that a design rests on."""
    return design.evidence.theorem if isinstance(design, Composed) else f"{design.name}/1"


def find(spec: str) -> tuple[str, dict[str, Any]]:
    """`name:key=value`, as a command line has it, as a name that is registered and options. `module:Name` is imported;
    the name of a policy means the design that it is for, with that policy."""
    name, options = split(spec)
    name = "three-plus-three" if name == "3+3" else name
    if "policy" in options:
        options["policy"] = POLICIES.find(options["policy"].replace("/", ":"))
    if name in POLICIES:
        return POLICIES[name].on, {"policy": name, **options}
    if ":" not in name:
        DESIGNS.check(name, *POLICIES)
    ours = name.split(":")[0] in DESIGNS
    if ":" in name and not ours and isinstance(thing := imported(name), type) and issubclass(thing, Policy):
        return thing.on, {"policy": POLICIES.find(name), **options}
    return DESIGNS.find(name), options


def options_of(given: Sequence[str] | None) -> dict[str, str]:
    """What `--set KEY=VALUE` says, as a command line has it."""
    pairs = [text.partition("=") for text in given or ()]
    if bad := [key for key, equals, _ in pairs if not equals]:
        raise SurefootError(f"--set takes KEY=VALUE; got {bad[0]!r}")
    return {key: value for key, _, value in pairs}


def policies(shape: str) -> list[str]:
    """The policies of others, on designs for this shape."""
    return [name for name, kind in POLICIES.items() if DESIGNS[kind.on].shape == shape]


__all__ = [
    "DESIGNS", "POLICIES", "Cohort", "Design", "Outcome", "Policy", "Verdict",
    "default", "find", "make", "options_of", "policies", "theorem_of",
]  # fmt: skip
