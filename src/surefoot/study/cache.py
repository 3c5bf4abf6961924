"""What a long study amounts to, kept so that the next command need not fold all of it again.

It is only a cache: keyed by the hash of the event that it stands at and by a digest of the whole package, made anew
when either differs, and never read by `verify` or the checker. It may be deleted at any time. Reading it makes nothing
but numbers and the few classes named here, so that a file that somebody put in its place cannot run anything.
"""

from __future__ import annotations

import array
import hashlib
import io
import json
import pickle
import platform
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..problem import Problem, SurefootError
from . import checker
from .checker import THEOREMS, Event
from .fold import View
from .published import designed
from .watch import Alarm, Watches
from .watch_bets import Slopes, Sums

STEP, COHORTS = 20_000, 300  # events, or cohorts, after which it is worth keeping another
NUMBERS = {("array", "_array_reconstructor"), ("array", "array"), ("numpy", "dtype"), ("numpy", "ndarray")}
for core in ("numpy.core", "numpy._core"):
    NUMBERS |= {(f"{core}.multiarray", x) for x in ("_reconstruct", "scalar")} | {(f"{core}.numeric", "_frombuffer")}
OURS: tuple[Any, ...] = (
    View,
    Event,
    Watches,
    Sums,
    Slopes,
    Alarm,
    checker.Arm,
    checker.Given,
    checker.Kind,
    checker.Stage,
    *THEOREMS.values(),
)


@cache
def package() -> str:
    """A digest of all code that an answer could depend on."""
    found = hashlib.sha256(f"{np.__version__} {platform.python_version()}".encode())
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()


def dump(view: View) -> bytes:
    view.watches  # noqa: B018 (brought up to date, so that they are in it)
    for given in view.cohorts:
        vars(given).pop("arms", None)  # the seed gives them again
    out = io.BytesIO()
    kept = {k: x for k, x in vars(view).items() if k not in ("problem", "design")}
    _Pickler(out, view).dump(kept | {"before": packed(view.before)})
    body = out.getvalue()
    head = [view.name, view.seq, view.hash, package(), hashlib.sha256(body).hexdigest()]
    return json.dumps(head).encode() + b"\n" + body


def key(kept: bytes) -> tuple[int, str] | None:
    """The event that it stands at, number and hash; None where this package cannot use it."""
    line, _, body = kept.partition(b"\n")
    try:
        _, seq, hash_, made_by, digest = json.loads(line)
    except (ValueError, TypeError):
        return None
    return (seq, hash_) if made_by == package() and digest == hashlib.sha256(body).hexdigest() else None


def load(kept: bytes, first: Event) -> View | None:
    """The view as it was, of a study with this first event."""
    setup, view = first.data, View()
    problem, design = Problem.from_dict(setup["problem"]), designed(setup)
    begun = design.start(problem)
    known = {(kind.__module__, kind.__qualname__): kind for kind in (*OURS, *_kinds(begun))}
    anew = {"problem": problem, "design": design, "inside": begun.problem}
    try:
        found = _Unpickler(io.BytesIO(kept.partition(b"\n")[2]), known, anew).load()
        vars(view).update(found, problem=problem, design=design, before=list(unpacked(found["before"])))
    except (pickle.UnpicklingError, SurefootError, ValueError, TypeError, AttributeError, EOFError, LookupError):
        return None
    return view


def packed(states: list[Any]) -> Any:
    """States of a design with each of their arrays as one: ten thousand times fifty small ones take seconds to keep."""
    first = states[0] if states else None
    if not states or len({(type(x), getattr(x, "shape", 0), getattr(x, "dtype", 0)) for x in states}) > 1:
        return states
    if isinstance(first, np.ndarray):
        return np.concatenate(states).reshape(len(states), *first.shape)
    if not is_dataclass(first) or isinstance(first, Problem) or not vars(first):
        return states
    return type(first), {name: packed([vars(it)[name] for it in states]) for name in vars(first)}


def unpacked(kept: Any) -> Iterator[Any]:
    if not isinstance(kept, tuple):
        yield from kept
        return
    kind, columns = kept
    for values in zip(*map(unpacked, columns.values()), strict=True):
        it = object.__new__(kind)
        vars(it).update(zip(columns, values, strict=True))
        yield it


def _kinds(state: Any) -> Iterator[type]:
    """The classes of a state and of what it holds."""
    if is_dataclass(state) and not isinstance(state, (type, Problem)):
        yield type(state)
        for field in fields(state):
            yield from _kinds(getattr(state, field.name))


class _Pickler(pickle.Pickler):
    """The problem and the design by their names. By a table of their classes: a `persistent_id` is asked of everything,
    and takes longer than all the rest."""

    def __init__(self, out: io.BytesIO, view: View):
        super().__init__(out, protocol=5)
        # the problem as its evidence takes it is another one where readings are not taken as they are
        self.apart = {id(view.state.problem): "inside", id(view.problem): "problem", id(view.design): "design"}
        self.dispatch_table = {type(it): self._by_name for it in (view.problem, view.design)}

    def _by_name(self, it: Any) -> Any:
        return (apart, (self.apart[id(it)],)) if id(it) in self.apart else it.__reduce_ex__(5)


def apart(name: str) -> Any:
    """Stands in a cache for what is not kept in it."""
    raise pickle.UnpicklingError(f"{name} is made anew, and not from a cache")


class _Unpickler(pickle.Unpickler):
    def __init__(self, body: io.BytesIO, known: dict[tuple[str, str], Any], found: dict[str, Any]):
        super().__init__(body)
        self.known = known | {(apart.__module__, apart.__qualname__): found.__getitem__}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in NUMBERS:
            return getattr(array, name) if module == "array" else super().find_class(module, name)
        if (module, name) not in self.known:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a cache")
        return self.known[module, name]
