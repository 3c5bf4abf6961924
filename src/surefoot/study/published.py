"""What of a design stands in the journal: its theorem, a digest of the evidence, its stakes, and the first event."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import platform
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..designs import DESIGNS, Design, make
from ..designs import theorem_of as theorem_of
from ..designs.base import Cohort, Outcome
from ..designs.compose import POLICIES, Composed, Policy
from ..problem import Problem, SurefootError, choice, number
from ..registry import PLUGINS, Registry, a_class
from .checker import THEOREMS, Broken, Theorem

CHECKERS: Registry[type[Theorem]] = Registry("checkers", {}, a_class(Theorem), "theorem")
CHECKERS.known = THEOREMS  # the very ones that the checker looks at
NOT_HERE = f"not installed here: install its package, or name a module that registers it in {PLUGINS}"


def checked(theorem: str) -> bool:
    """Whether the checker knows a theorem; one that somebody else's package offers is loaded."""
    return theorem in CHECKERS and bool(CHECKERS[theorem])


def certified(design: Design, state: Any) -> list[float]:
    """The largest dose of every arm that may be given, as the design has it."""
    safe = design.evidence.certified(state) if isinstance(design, Composed) else state.safe
    return [float(x) for x in safe[0]]


def stakes_of(asked: Cohort) -> list[Any]:
    """What is published of an arm: its stakes. None where nothing is staked."""
    rows = asked.stakes[0].tolist() if asked.stakes is not None else [[]] * asked.n.shape[1]
    return [[x if x == x else None for x in row] if any(x == x for x in row) else None for row in rows]


def stage_of(state: Any, first: int = 1) -> list[Any]:
    """The same for the paper's designs: how many pulls an arm's stage has in all, the number of its estimate, and the
    cohort with which the stage began."""
    want = state.want[0]
    if hasattr(state, "t"):  # Algorithm 2 counts the estimates of all arms, in arm order
        number = int(state.t[0]) - int((want > 0).sum()) + np.cumsum(want > 0)
    else:
        number = np.full(want.shape, int(state.rounds[0]) + 1)
    return [[int(w), int(k), first] if w else None for w, k in zip(want, number, strict=True)]


class Asked(NamedTuple):
    """A cohort as it is published."""

    dose: list[float]
    n: list[int]
    stakes: list[Any]


def told(dose: list[float], stakes: Any, came: Sequence[Any]) -> tuple[Cohort, Outcome]:
    """What came back of every arm, for a design: how many, sums of effects and of harms, and how they vary."""
    n, effect, harm, *squares = (np.array([x], dtype=float) for x in zip(*came, strict=True))
    many = n.astype(np.int64)
    pair = (squares[0], squares[1]) if squares else None
    return Cohort(np.array([dose]), many, stakes), Outcome(many, effect, harm, pair)


def published(design: Any, problem: Problem, stakes: Sequence[Any]) -> Any:
    """Stakes as an array again; None of a design that has none."""
    if not isinstance(design, Composed):
        return None
    none = [None] * len(design.evidence.stakes(problem))
    return np.array([[row or none for row in stakes]], dtype=float)


class Absent(Policy[Any]):
    """A policy that is not installed here: what it chose, and what came of it, can be looked at and checked."""

    def choose(self, state: Any, u: Any) -> Cohort:
        raise SurefootError(f"what comes next is for the policy {type(self).__qualname__!r}, which is {NOT_HERE}")

    def stakes(self, state: Any, cohort: Cohort) -> Any:
        return self.choose(state, None).stakes


def absent(design: Design) -> str | None:
    """That the policy of a study's design is not installed, in words; None where it is."""
    policy = getattr(design, "policy", None)
    return f"its policy {type(policy).__qualname__!r} is {NOT_HERE}" if isinstance(policy, Absent) else None


def designed(setup: Mapping[str, Any]) -> Design:
    """The design of a study, by its first event."""
    name = setup["options"].get("policy")
    if name is None or name in POLICIES:
        return make(setup["design"], **setup["options"])
    design = make(setup["design"])
    if not isinstance(design, Composed) or not isinstance(name, str) or not name.isprintable():
        raise SurefootError(f"{design.name} has no policy {name!r}")
    return replace(design, policy=type(name, (Absent,), {"__module__": "not installed", "on": design.name})())


def digest_of(design: Design) -> str:
    """Of the text of the module that holds the evidence, and of those that its bets come from."""
    return _digest((type(design.evidence) if isinstance(design, Composed) else type(design)).__module__)


@cache
def _digest(module: str) -> str:
    package = __name__.split(".")[0]
    try:
        held = {str(getattr(x, "__module__", "")) for x in vars(importlib.import_module(module)).values()}
        inspect.getsource(importlib.import_module(module))
    except (ImportError, OSError, TypeError) as error:
        raise SurefootError(
            f"the journal keeps a digest of the code that its evidence comes from, and {module} has no file: put the "
            f"design into a module of its own"
        ) from error
    bets = (f"{package}.bounds", f"{package}.noise", f"{package}.designs.l")  # of designs: ladder, levels_*, linear_*
    names = [module, *sorted(name for name in held - {module} if name.startswith(bets)), f"{package}.designs.readings"]
    texts = [inspect.getsource(importlib.import_module(name)) for name in names]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def default(shape: str) -> str:
    """The design of a live study where none is asked for."""
    return next(name for name in (f"surefoot-{shape}", f"safebai-{shape}") if checked(theorem_of(make(name))))


def live(shape: str) -> list[str]:
    """The designs that may run a live study of this shape."""
    return [name for name, kind in DESIGNS.items() if kind.shape == shape and checked(theorem_of(make(name)))]


def setup(
    problem: Problem, design: Design, seed: Any, watch: dict[str, Any], lift: Any, plausible: Any, blocks: bool,
    pipeline: Any,
) -> dict[str, Any]:  # fmt: skip
    """The payload of the first event, where it may be; a seed is drawn where none is given."""
    choice("watch", watch["do"], ("pause", "warn"))
    choice("lift", lift, ("another", "anyone"))
    if not 0 < number("watch_level", watch["level"]) < 1:
        raise SurefootError(f"watch_level must be between 0 and 1, both excluded; got {watch['level']!r}")
    if seed is None:
        seed = secrets.randbits(63)
    elif type(seed) is not int or not 0 <= seed < 2**64:
        raise SurefootError(f"seed must be a whole number from 0 to 2^64 - 1; got {seed!r}")
    if type(pipeline) is not int or not 1 <= pipeline <= 100:
        raise SurefootError(f"pipeline must be a whole number from 1 to 100; got {pipeline!r}")
    if pipeline > 1 and not isinstance(design, Composed):
        raise SurefootError(f"{design.name} decides after whole stages: it has a pipeline of 1; got {pipeline}")
    if design.name not in DESIGNS:
        raise SurefootError(
            f"the design {design.name!r} is not known by its name when the study is opened again: "
            f"surefoot.register({type(design).__name__}) first"
        )
    if design.options.get("policy") and design.options["policy"] not in POLICIES:
        raise SurefootError(
            f"the policy {design.options['policy']} has no name to be found by when the study is opened again: "
            f"give it one and surefoot.register it"
        )
    if not checked(theorem_of(design)) or not design.guarantee:
        raise SurefootError(
            f"{design.name} as set has no theorem that certifies its doses, so it is for simulation only; "
            f"for a live study of this shape use {' or '.join(live(problem.shape))}"
        )
    try:
        THEOREMS[theorem_of(design)](problem.to_dict(), design.options)
    except Broken as error:
        raise SurefootError(f"{design.name} cannot run this problem live: {error}") from None
    effect, harm = (noise.worst for noise in problem.noises)
    worst = [effect[0], harm[1]] if effect and harm and not blocks else None
    return {
        "problem": problem.to_dict(),
        "design": design.name,
        "options": design.options,
        "theorem": {"name": theorem_of(design), "digest": digest_of(design)},
        "seed": seed,
        "voids": "worst" if worst else "pause",
        "worst": worst,
        "blocks": blocks,
        "pipeline": pipeline,
        "plausible": ranges(plausible),
        "lift": lift,
        "watch": watch | {"level": float(watch["level"])},
    }


def versions() -> dict[str, str]:
    from .. import __version__

    return {"surefoot": __version__, "numpy": np.__version__, "python": platform.python_version()}


def ranges(plausible: Any) -> dict[str, list[float]] | None:
    """What is plausible: for effect, harm or both two numbers that rise."""
    if plausible is None:
        return None
    if not isinstance(plausible, Mapping) or not plausible:
        raise SurefootError(f"plausible must give a range for effect, harm or both; got {plausible!r}")
    found = {}
    for key, ends in plausible.items():
        choice("a plausible reading", key, ("effect", "harm"))
        if isinstance(ends, str) or not isinstance(ends, Sequence) or len(ends) != 2:
            raise SurefootError(f"the plausible range of {key} must be two numbers; got {ends!r}")
        found[key] = [number(f"an end of the plausible {key}", x) for x in ends]
        if found[key][0] >= found[key][1]:
            raise SurefootError(f"the plausible range of {key} must rise; got {ends!r}")
    return found
