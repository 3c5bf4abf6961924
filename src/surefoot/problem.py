"""What the experimenter knows: the arms, the limit and slack, delta, the noise, the shape of the responses.

Everything is checked when it is made, so that nothing downstream has to ask again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .checks import SurefootError, choice, html_table, known_keys, line, number
from .noise import Bounded, Noise, noises_to_dict, parse_noises

Shape = Literal["linear", "monotonic", "levels"]
Signals = Literal["any", "independent"]


@dataclass(frozen=True)
class Arm:
    """An option that can be tried at any dose from `start` to `max`, or at the `levels` between.

    Parameters
    ----------
    name
        What people call it.
    start
        A dose known to be safe. Without one the arm has ordered levels alone, and nothing is known of distances
        between them (shape "levels"): doses are then 0, 1, 2, ..., and `labels` holds what was given.
    max
        The largest dose that may be given; without an end by default.
    lipschitz
        Harm rises by at most this much for every unit of dose. The monotonic shape relies on it, so it has no usual
        value there; the others do not use it.
    levels
        The doses that can be given, rising; without a start dose numbers or names, the first known to be safe.
    labels
        Filled in: what the levels are called.

    Raises
    ------
    SurefootError
        If a number is missing, not finite or out of order.

    Examples
    --------
    >>> from surefoot import Arm
    >>> Arm("drug A", start=0.1, max=2.0).largest
    2.0
    >>> Arm("drug B", levels=("10 mg", "20 mg")).label(1)
    '20 mg'
    """

    name: str
    start: float = math.nan
    max: float = math.inf
    lipschitz: float = math.inf  # how fast harm can rise with the dose: nothing is known of it
    levels: tuple[Any, ...] | None = None
    labels: tuple[str | float, ...] | None = None

    def __post_init__(self) -> None:
        line("an arm's name", self.name)
        me, put = f"arm {self.name!r}: ", object.__setattr__
        if self.labels is None and self.levels is not None and isinstance(self.start, float) and math.isnan(self.start):
            self._order(me)
        put(self, "start", number(me + "start", self.start))
        put(self, "max", number(me + "max", self.max, finite=False))
        put(self, "lipschitz", number(me + "lipschitz", self.lipschitz, above=0, finite=False))
        if self.start > self.max:
            raise SurefootError(f"{me}start must be at or below max; got start {self.start:g}, max {self.max:g}")
        if self.levels is not None:
            if isinstance(self.levels, str) or not isinstance(self.levels, Iterable):
                raise SurefootError(f"{me}levels must be a list of doses; got {self.levels!r}")
            levels = tuple(number(me + "a level", x) for x in self.levels)
            if not levels or any(b <= a for a, b in pairwise(levels)):
                raise SurefootError(f"{me}levels must be a list of rising doses; got {list(levels)}")
            if levels[0] != self.start or levels[-1] > self.max:
                raise SurefootError(
                    f"{me}levels must begin at the start dose {self.start:g} and end at or below max {self.max:g}; "
                    f"got {list(levels)}"
                )
            put(self, "levels", levels)

    def _order(self, me: str) -> None:
        """Ordered levels: their names are kept as labels, and doses are their places."""
        if isinstance(self.levels, str) or not isinstance(self.levels, Iterable):
            raise SurefootError(f"{me}levels must be a list of numbers or names; got {self.levels!r}")
        labels = tuple(self.levels)
        for x in labels:
            if isinstance(x, bool) or not isinstance(x, (str, int, float)) or not str(x).strip():
                raise SurefootError(f"{me}a level must be a number or a name; got {x!r}")
        numbers = [x for x in labels if not isinstance(x, str)]
        if not labels or len({str(x) for x in labels}) < len(labels) or any(b <= a for a, b in pairwise(numbers)):
            raise SurefootError(f"{me}levels must differ and be in rising order; got {list(labels)}")
        places = tuple(float(k) for k in range(len(labels)))
        for key, value in (("labels", labels), ("start", 0.0), ("max", places[-1]), ("levels", places)):
            object.__setattr__(self, key, value)

    def label(self, dose: float) -> str:
        """A dose as it is said to people: the name of its level, where levels have names."""
        return f"{dose:.4g}" if self.labels is None else str(self.labels[round(dose)])

    def said(self, dose: float) -> Any:
        """A dose as people give it and tell it: a number, or what its level is called."""
        return dose if self.labels is None else self.labels[round(dose)]

    def sure(self, safe: float) -> str:
        """Up to where it is safe, in words: a start dose is declared to be, and nothing is shown."""
        at = self.label(safe)
        return f"shown to be safe up to {at}" if self.safe_is(safe) == "shown" else f"declared safe at {at}, its start"

    def safe_is(self, safe: float) -> str:
        """What makes a dose safe."""
        return "shown" if safe > self.start else "declared"

    def place(self, said: Any) -> Any:
        """The dose behind what people say."""
        if self.labels is None:
            return said
        text = f"{said:g}" if isinstance(said, float) and said.is_integer() else str(said)
        for k, label in enumerate(self.labels):
            if label == said or str(label) == text:
                return float(k)
        names = ", ".join(map(str, self.labels))
        raise SurefootError(f"arm {self.name!r} has the levels {names} and nothing between; got {said!r}")

    @property
    def largest(self) -> float:
        """The largest dose that may ever be given."""
        return self.levels[-1] if self.levels else self.max

    def to_dict(self) -> dict[str, Any]:
        if self.labels is not None:
            return {"name": self.name, "levels": list(self.labels)}
        known = {key: x for key in ("max", "lipschitz") if math.isfinite(x := getattr(self, key))}
        levels = {"levels": list(self.levels)} if self.levels else {}
        return {"name": self.name, "start": self.start, **known, **levels}


@dataclass(frozen=True, repr=False)
class Problem:
    """All that the experimenter knows and asks for; checked when it is made.

    Parameters
    ----------
    arms
        The options, at least two `Arm`.
    limit
        Harm must stay at or below it, in the units of the harm reading.
    shape
        "linear" (lines through 0), "monotonic" (curves that never fall, harm with a Lipschitz constant) or "levels"
        (ordered levels; effect and harm never fall from one to the next).
    noise
        One `Noise` for both readings, or a pair (effect, harm).
    slack
        How far above the limit a pull may go, in the same units; not in the linear shape.
    delta
        Error probability, for a wrong arm or an unsafe pull together.
    signals
        Whether the two readings of one pull may depend on each other ("any") or do not ("independent").
    tolerance
        An arm whose value is within it of the best is good enough; in units of the effect.
    budget
        The most pulls there may ever be.
    refine
        Go on with the winner until its largest safe dose is known to within this, in units of the dose.

    Raises
    ------
    SurefootError
        If something is missing or cannot be; the message says what to do.

    Examples
    --------
    >>> from surefoot import Arm, Noise, Problem
    >>> arms = (Arm("A", 0.1, 2.0), Arm("B", 0.1, 2.0))
    >>> Problem(arms, limit=1.0, shape="linear", noise=Noise("gaussian", 0.3), delta=0.1)
    <Problem: 2 arms (A, B), linear, limit 1, delta 0.1, noise gaussian 0.3>
    """

    shared: ClassVar[bool] = True  # by all trials of a batch

    arms: tuple[Arm, ...]
    limit: float
    shape: Shape
    noise: Noise | tuple[Noise, Noise]
    slack: float | None = None
    delta: float = 0.05
    signals: Signals = "any"
    tolerance: float | None = None
    budget: int = 10**9
    refine: float | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        choice("shape", self.shape, get_args(Shape))
        choice("signals", self.signals, get_args(Signals))
        linear = self.shape == "linear"
        put(self, "limit", number("limit", self.limit, above=0 if linear else -math.inf))
        if not 0 < number("delta", self.delta) < 1:
            raise SurefootError(f"delta must be between 0 and 1, both excluded; got {self.delta!r}")
        put(self, "delta", number("delta", self.delta, above=0))
        noise = (self.noise, self.noise) if isinstance(self.noise, Noise) else self.noise
        if not isinstance(noise, (tuple, list)) or len(noise) != 2 or not all(isinstance(x, Noise) for x in noise):
            raise SurefootError(f"noise must be a Noise, or a pair of them (effect, harm); got {self.noise!r}")
        put(self, "noise", tuple(noise))
        for key in ("tolerance", "refine"):
            if getattr(self, key) is not None:
                put(self, key, number(key, getattr(self, key), above=0))
        budget = number("budget", self.budget, least=1)
        if budget != int(budget) or budget > 10**12:
            raise SurefootError(f"budget must be a whole number of pulls, at most 10^12; got {self.budget!r}")
        put(self, "budget", int(budget))
        if linear and self.slack is not None:
            raise SurefootError(f"slack is for monotonic and levels; leave it out here; got {self.slack!r}")
        if not linear:
            if self.slack is None:
                need = "one of 0 or more" if self.shape == "levels" else "one above 0"
                raise SurefootError(
                    f"slack is missing: the {self.shape} shape needs {need} (how far over the limit a pull may go)"
                )
            least: Any = {"least": 0.0} if self.shape == "levels" else {"above": 0.0}
            put(self, "slack", number("slack", self.slack, **least))
        if self.shape == "levels" and self.refine is not None:
            raise SurefootError(f"refine is a distance between doses, and levels have none; got {self.refine!r}")
        self._check_arms(linear)

    def _check_arms(self, linear: bool) -> None:
        if not isinstance(self.arms, (tuple, list)) or not all(isinstance(arm, Arm) for arm in self.arms):
            raise SurefootError(f"arms must be a list of Arm; got {self.arms!r}")
        arms = tuple(self.arms)
        object.__setattr__(self, "arms", arms)
        if len(arms) < 2:
            raise SurefootError(f"a problem needs at least two arms to choose between; got {len(arms)}: {list(arms)}")
        names = [arm.name for arm in arms]
        if twice := sorted(name for name, k in Counter(names).items() if k > 1):
            raise SurefootError(f"arm names must differ; got {', '.join(map(repr, twice))} more than once")
        for arm in arms:
            if (self.shape == "levels") != (arm.labels is not None):
                need = "levels and no start dose" if self.shape == "levels" else "a start dose"
                raise SurefootError(f"arm {arm.name!r} needs {need} in the {self.shape} shape; got {arm.to_dict()}")
            if linear and any(isinstance(noise, Bounded) and noise.low != 0 for noise in self.noises):
                raise SurefootError("bounded readings begin at low = 0 in the linear shape, where lines go through 0")
            if linear:
                number(f"arm {arm.name!r}: start in the linear shape", arm.start, above=0)
            if not linear and math.isinf(arm.max):
                raise SurefootError(f"arm {arm.name!r}: max must be finite in the monotonic shape; got {arm.max!r}")
            if self.shape == "monotonic" and math.isinf(arm.lipschitz):
                raise SurefootError(
                    f"arm {arm.name!r}: lipschitz is missing: by how much harm rises at most for one unit of dose. "
                    f"Every dose above the start rests on it, so take a number that you would stand for; if it is too "
                    f"small, doses are unsafe, if it is too large, it takes longer"
                )

    # The numbers of all arms as arrays, in arm order.
    @cached_property
    def names(self) -> list[str]:
        return [arm.name for arm in self.arms]

    @cached_property
    def starts(self) -> NDArray[np.float64]:
        return np.array([arm.start for arm in self.arms])

    @cached_property
    def largest(self) -> NDArray[np.float64]:
        return np.array([arm.largest for arm in self.arms])

    @cached_property
    def lipschitz(self) -> NDArray[np.float64]:
        return np.array([arm.lipschitz for arm in self.arms])

    @cached_property
    def levels(self) -> NDArray[np.float64] | None:
        """Levels as (arms, most levels), filled up with +inf; an arm without levels has -inf alone. None: no levels."""
        if all(arm.levels is None for arm in self.arms):
            return None
        most = max(len(arm.levels or ()) for arm in self.arms)
        rows = [list(arm.levels or (-math.inf,)) for arm in self.arms]
        return np.array([row + [math.inf] * (most - len(row)) for row in rows])

    @property
    def sigma(self) -> float:
        """One sigma that holds for both readings."""
        return max(noise.scale for noise in self.noises)

    @property
    def noises(self) -> tuple[Noise, Noise]:
        """Of the effect and of the harm."""
        assert isinstance(self.noise, tuple)
        return self.noise

    @property
    def squares(self) -> bool:
        """Whether the evidence wants to know how the readings of a cohort vary, beside their sums."""
        return any(not noise.known or getattr(noise, "spread", False) for noise in self.noises)

    @property
    def most(self) -> int | None:
        """The budget; None where there is none."""
        return self.budget if self.budget < Problem.budget else None

    @property
    def ceiling(self) -> float:
        """The harm that no pull may exceed: the limit, plus the slack where there is one."""
        return self.limit + (self.slack or 0.0)

    def but(self, **changes: Any) -> Problem:
        """The same problem with some fields changed, checked again."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        names = ", ".join(self.names[:4]) + (", ..." if len(self.names) > 4 else "")
        slack = f" + slack {self.slack:g}" if self.slack else ""
        noise = " and ".join(dict.fromkeys(x.kind + ("" if x.binary else f" {x.scale:g}") for x in self.noises))
        return (
            f"<Problem: {len(self.arms)} arms ({names}), {self.shape}, limit {self.limit:g}{slack}, "
            f"delta {self.delta:g}, noise {noise}>"
        )

    def _repr_html_(self) -> str:
        keys = ("shape", "limit", "slack", "delta", "signals", "tolerance", "budget", "refine")
        known = {key: getattr(self, key) for key in keys if getattr(self, key) not in (None, Problem.budget)}
        known |= {"effect": self.noises[0].assumption(), "harm": self.noises[1].assumption()}
        return html_table(known) + html_table(
            {arm.name: f"{arm.said(arm.start)} to {arm.said(arm.largest)}" for arm in self.arms}
        )

    # TOML
    def to_dict(self) -> dict[str, Any]:
        keys = ("shape", "limit", "slack", "delta", "signals", "tolerance", "budget", "refine")
        out = {key: getattr(self, key) for key in keys if getattr(self, key) is not None}
        return out | {"noise": noises_to_dict(self.noises), "arms": [arm.to_dict() for arm in self.arms]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Problem:
        known_keys("the problem", data, [f.name for f in fields(cls)])
        if missing := [key for key in ("shape", "limit", "noise", "arms") if key not in data]:
            raise SurefootError(f"the problem lacks {', '.join(missing)}")
        if not isinstance(data["arms"], list):
            raise SurefootError(f"arms must be a list of tables ([[arms]] in TOML); got {data['arms']!r}")
        arms = []
        for k, arm in enumerate(data["arms"], 1):
            known_keys(f"arm {k}", arm, [f.name for f in fields(Arm) if f.name != "labels"])
            needs = ("name", "levels" if data["shape"] == "levels" else "start")
            if missing := [key for key in needs if key not in arm]:
                raise SurefootError(f"arm {k} lacks {', '.join(missing)}")
            arms.append(Arm(**arm))
        return cls(**{**data, "arms": tuple(arms), "noise": parse_noises("noise", data["noise"])})

    def to_toml(self) -> str:
        """As a problem file; `Problem.load` reads it."""
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Problem:
        """Read a problem file. A scenario file serves too: its hidden truth (curves and the like) is left out."""
        from .schema import read

        return cls.from_dict(visible(read(path)))


HIDDEN = ("correlation", "drift", "actual_noise", "scenarios")  # the keys of a scenario file that no experimenter knows


def visible(data: Mapping[str, Any]) -> dict[str, Any]:
    """What of a scenario file is the problem."""
    arms = [{k: v for k, v in arm.items() if k not in ("effect", "harm")} for arm in data["arms"]]
    return {k: v for k, v in data.items() if k not in HIDDEN} | {"arms": arms}


def read_toml(path: str | Path) -> dict[str, Any]:
    try:
        import tomllib

        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SurefootError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # what tomllib refuses, bytes that are not UTF-8, whole numbers of 5,000 digits
        raise SurefootError(f"{path} is not valid TOML: {error}") from error


__all__ = ["HIDDEN", "Arm", "Noise", "Problem", "Shape", "Signals", "SurefootError", "choice", "known_keys", "number"]
