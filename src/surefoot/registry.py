"""Things by name: ours, those that somebody registered, and those that installed packages offer.

One registry each for designs, policies, curves, noises, scenarios and journals. A package offers its own under the
entry-point group `surefoot.designs` (and so on); a script says `surefoot.register(Mine)`; the command line also takes
`module:Name` and `file.py:Name`. Nothing is imported before it is asked for, and never because a file that came from
elsewhere says so: a study's journal names things that are registered, and no others.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .checks import MANY, SurefootError, choice

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
METHODS = (property, cached_property, classmethod, staticmethod)
PLUGINS = "SUREFOOT_PLUGINS"  # modules to import at first need, commas between: for code that is not installed


class Later(str):
    """Where a thing of ours is, `module:Name`, before it is asked for: most who import surefoot need one design."""


class Registry(Mapping[str, T], Generic[T]):
    """Things of one kind by name. `fits` says what a thing of this kind is, in words, or None where it is one."""

    every: dict[str, Registry[Any]] = {}  # noqa: RUF012

    def __init__(
        self, kind: str, ours: Mapping[str, T | Later], fits: Callable[[Any], str | None], named: str = "name"
    ):
        self.kind, self.fits, self.named = kind, fits, named
        self.known: dict[str, Any] = dict(ours)  # T, or where it is
        Registry.every[kind] = self

    @property
    def one(self) -> str:
        """One of this kind, in words."""
        return "noise kind" if self.kind == "noises" else self.kind.removesuffix("s").replace("policie", "policy")

    def offered(self) -> dict[str, EntryPoint]:
        """What installed packages offer and nobody has asked for yet."""
        _plugins()
        return {point.name: point for point in _offers(f"surefoot.{self.kind}") if point.name not in self.known}

    def add(self, thing: T, name: str | None = None) -> T:
        """Register a thing under its own name or another; a name is taken, but by the same thing defined again."""
        if need := self.fits(thing):
            raise SurefootError(f"a {self.one} must be {need}; got {thing!r}")
        name = name or getattr(thing, self.named, None)
        if not isinstance(name, str) or not name or any(c in name for c in ":=, \n"):
            raise SurefootError(
                f"a {self.one} needs a name without blanks, commas, : and =; give {self.named}=; got {name!r}"
            )
        if name in self.known and _place(self.known[name]) != _place(thing):
            place = ".".join(_place(self.known[name]))
            raise SurefootError(f"the {self.one} {name!r} is there already ({place}): use that name, or give another")
        self.known[name] = thing
        return thing

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str) or name not in self.known:
            self.check(name)
            self._load(self.offered()[name])
        if isinstance(self.known[name], Later):
            module, attribute = _place(self.known[name])
            self.known[name] = getattr(importlib.import_module(module), attribute)
        thing: T = self.known[name]
        return thing

    def check(self, name: Any, *more: str) -> None:
        """An error where there is nothing of that name (nor in `more`): what there is, or what it is the name of."""
        others = (r for r in Registry.every.values() if r is not self and isinstance(name, str) and name in r)
        if name not in self and name not in more and (other := next(others, None)):
            raise SurefootError(f"{name!r} is a {other.one}; a {self.one} is one of {', '.join([*self, *more][:MANY])}")
        if not (known := [*self, *more]):
            raise SurefootError(f"{self.one} {name!r} is not known here: install its package, or {PLUGINS}=its_module")
        choice(self.one, name, known)

    def _load(self, point: EntryPoint) -> None:
        package = point.dist.name if point.dist else "a package"
        try:
            self.add(point.load(), point.name)
        except Exception as error:
            raise SurefootError(
                f"the {self.one} {point.name!r} that {package} offers ({point.value}) cannot be used: {error}"
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter([*self.known, *self.offered()])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.known or name in self.offered())

    def items(self) -> Any:
        """Those that can be used; what a package offers and cannot be loaded is left out, with a warning."""
        for point in self.offered().values():
            try:
                self._load(point)
            except SurefootError as error:
                warnings.warn(str(error), stacklevel=2)
        return [(name, self[name]) for name in self.known]

    def values(self) -> Any:
        return [thing for _, thing in self.items()]

    def find(self, name: str) -> str:
        """A name as typed on a command line: one that is known, or `module:Name`, imported and registered here."""
        if ":" not in name or name in self.known:
            self.check(name)
            return name
        if (known := name.split(":")[0]) in self:
            raise SurefootError(f"a {self.one} with options is {known}:KEY=VALUE (NAME:KEY=VALUE); got {name!r}")
        return self.name(self.add(imported(name)))

    def name(self, thing: Any) -> str:
        """The name that a thing is registered under."""
        found = next((n for n, it in self.known.items() if _place(it) == _place(thing) and self[n] is thing), None)
        if found is None:
            raise SurefootError(f"{thing!r} is not registered: surefoot.register it, or offer it as an entry point")
        return found

    def origin(self, name: str) -> str:
        """Whose it is: surefoot's, a package's or a module's."""
        module = _place(self[name])[0]
        offers = (p.dist.name for p in _offers(f"surefoot.{self.kind}") if p.name == name and p.dist)
        return "surefoot" if module.split(".")[0] == __name__.split(".")[0] else next(offers, module)


def _place(thing: Any) -> tuple[str, str]:
    """Module and name where a thing is defined; of a scenario, where it is made."""
    if isinstance(thing, Later):
        module, _, name = thing.partition(":")
        return module, name
    made = getattr(thing, "make", thing)
    return str(getattr(made, "__module__", "")), str(getattr(made, "__qualname__", made))


def register(thing: T, name: str | None = None) -> T:
    """Make a design, policy, curve, noise kind, scenario or journal known by its name. Also a decorator of classes.

    Parameters
    ----------
    thing
        A subclass of `Design`, `Policy`, `Noise` or of a journal; a dataclass that is a curve; or a `Case`.
    name
        By default the thing's own: `name` of a design, policy, curve or case, `kind` of a noise, `scheme` of a journal.

    Returns
    -------
    The thing itself.

    Raises
    ------
    SurefootError
        If it is none of these, has no name, or has the name of one of ours.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import surefoot
    >>> @surefoot.register
    ... @dataclass(frozen=True)
    ... class Steps:
    ...     "A step of `height` at `at`"
    ...     at: float
    ...     height: float = 1.0
    ...     name = "steps"
    ...     def __call__(self, dose):
    ...         return self.height * (dose >= self.at)
    >>> surefoot.scenario.CURVES["steps"] is Steps
    True
    """
    for registry in Registry.every.values():
        if registry.fits(thing) is None:
            return registry.add(thing, name)  # type: ignore[no-any-return]
    kinds = "; ".join(f"a {r.one} is {r.fits(None)}" for r in Registry.every.values())
    raise SurefootError(f"{thing!r} is nothing that can be registered: {kinds}")


def a_class(base: type) -> Callable[[Any], str | None]:
    """The check of a registry of subclasses."""
    need = f"a subclass of {base.__module__}.{base.__qualname__}"
    return lambda thing: None if isinstance(thing, type) and issubclass(thing, base) else need


def no_shadows(kind: type, *may: str) -> None:
    """Refuse a class one of whose own fields takes the place of a method that it inherits, but for those it may."""
    with suppress(NameError):
        own = {*inspect.get_annotations(kind), *vars(kind)}
        for base in kind.__mro__[1:]:
            for key in own & vars(base).keys():
                was, now = vars(base)[key], vars(kind).get(key)
                hides = inspect.isfunction(was) or isinstance(was, property)
                if (
                    hides
                    and not key.startswith("__")
                    and key not in may
                    and not (callable(now) or isinstance(now, METHODS))
                ):
                    raise SurefootError(
                        f"{kind.__name__}.{key} hides the method {base.__name__}.{key}: give this option another name"
                    )


def about(kind: type) -> str:
    """The first paragraph of its docstring."""
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def meanings(kind: type) -> dict[str, str]:
    """What stands in its docstring, and in those it inherits, as lines `name: words`; further lines are indented."""
    docs = (inspect.cleandoc(one.__doc__ or "") for one in reversed(kind.__mro__))
    found = [pair for doc in docs for pair in re.findall(r"^(\w+): (.+(?:\n +.+)*)", doc, re.M)]
    return {key: " ".join(words.split()) for key, words in found}


def split(spec: str) -> tuple[str, dict[str, str]]:
    """`name:key=value:key=value`, the name possibly `module:Name`, as name and options."""
    parts = spec.split(":")
    names = [part for part in parts if "=" not in part]
    if parts[: len(names)] != names or len(names) > 2 or not names[0]:
        raise SurefootError(f"a design is written NAME:KEY=VALUE or MODULE:NAME:KEY=VALUE; got {spec!r}")
    pairs = (part.partition("=") for part in parts[len(names) :])
    return ":".join(names), {key.strip(): value for key, _, value in pairs}


@cache
def _offers(group: str) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # it takes a seventh of the time that `import surefoot` does

    return tuple(entry_points(group=group))


@cache
def _plugins() -> None:
    for module in filter(None, (x.strip() for x in os.environ.get(PLUGINS, "").split(","))):
        imported(module)


def imported(name: str) -> Any:
    """`module` or `module:Name`; a file's folder (`file.py:Name`) and the folder we are in are looked at too."""
    module, _, attribute = name.partition(":")
    path = Path(module) if module.endswith(".py") else None
    folder = str(path.resolve().parent) if path else os.getcwd()
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        found = importlib.import_module(path.stem if path else module)
    except Exception as error:
        raise SurefootError(f"{name} cannot be imported: {error}") from error
    if not attribute:
        return found
    choice(f"what to take from {module}", attribute, [n for n in vars(found) if not n.startswith("_")])
    return getattr(found, attribute)


__all__ = ["Registry", "register"]
