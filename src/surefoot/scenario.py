"""The hidden truth, for simulation only: how effect and harm of every arm respond to the dose, and the noise.

A Design never sees a Scenario. Outcomes are drawn exactly for whole cohorts: the sum of n readings costs one draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import array_namespace, device, like
from .checks import SurefootError, choice, known_keys, number
from .noise import Noise, draw_squares, draw_sums, noises_to_dict, parse_noises
from .problem import HIDDEN, Problem, read_toml, visible
from .registry import Registry

Array = NDArray[Any]
Curve = Callable[[Array], Array]


@dataclass(frozen=True)
class Linear:
    """slope * dose + intercept"""

    slope: float
    intercept: float = 0.0

    def __call__(self, dose: Array) -> Array:
        return self.slope * dose + self.intercept


@dataclass(frozen=True)
class Logistic:
    """1 / (1 + exp(-(slope * dose + shift)))"""

    slope: float
    shift: float = 0.0

    def __call__(self, dose: Array) -> Array:
        curve: Array = 0.5 * (1.0 + _xp(dose).tanh(0.5 * (self.slope * dose + self.shift)))  # never overflows
        return curve


@dataclass(frozen=True)
class Emax:
    """max * dose^hill / (ed50^hill + dose^hill), 0 for doses at or below 0"""

    max: float
    ed50: float
    hill: float = 1.0

    def __post_init__(self) -> None:
        for name in ("ed50", "hill"):
            if bool(_xp(x := getattr(self, name)).any(_xp(x).asarray(x <= 0))):
                raise SurefootError(f"emax: {name} must be above 0; got {x!r}")

    def __call__(self, dose: Array) -> Array:
        with np.errstate(divide="ignore"):
            ratio: Array = (self.ed50 / _xp(dose).where(dose > 0.0, dose, 0.0)) ** self.hill
        return self.max / (1.0 + ratio)


@dataclass(frozen=True)
class Table:
    """Straight lines between the points (dose, value); level before the first and after the last; never falling. With
    ordered levels `dose` is left out, and there is one value a level."""

    dose: tuple[float, ...]
    value: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("dose", "value"):
            object.__setattr__(self, name, tuple(number(f"table: a {name}", x) for x in getattr(self, name)))
        if len(self.dose) != len(self.value) or not self.dose:
            raise SurefootError(f"table: needs as many values as doses; got {len(self.dose)} and {len(self.value)}")
        if any(np.diff(self.dose) <= 0) or any(np.diff(self.value) < 0):
            raise SurefootError(
                f"table: doses must rise and values must not fall; got dose {list(self.dose)}, value {list(self.value)}"
            )

    def __call__(self, dose: Array) -> Array:
        if (xp := _xp(dose)) is np:
            return np.interp(dose, self.dose, self.value)
        at, value = like(dose, self.dose), like(dose, self.value)
        k = xp.clip(xp.searchsorted(at, xp.reshape(dose, (-1,)), side="right") - 1, 0, max(len(self.dose) - 2, 0))
        k, more = xp.reshape(k, (-1,)), xp.reshape(k + 1 if len(self.dose) > 1 else k, (-1,))
        left, low, high = (xp.reshape(xp.take(x, i), dose.shape) for x, i in ((at, k), (value, k), (value, more)))
        width = xp.reshape(xp.take(at, more), dose.shape) - left
        share = xp.clip((dose - left) / xp.where(width > 0, width, 1.0), 0.0, 1.0)
        curve: Array = low + (high - low) * share
        return curve


def _xp(dose: Any) -> Any:
    """The namespace of an array of doses; NumPy for a number."""
    return np if isinstance(dose, (np.ndarray, float, int)) else array_namespace(dose)


def _a_curve(thing: Any) -> str | None:
    good = isinstance(thing, type) and is_dataclass(thing) and "__call__" in vars(thing)
    return None if good else "a dataclass that can be called with an array of doses"


CURVES: Registry[type] = Registry(
    "curves", {"linear": Linear, "logistic": Logistic, "emax": Emax, "table": Table}, _a_curve
)


class Curves:
    """One curve an arm, evaluated on an array whose last axis is the arms. Curves of one kind go in one array call."""

    def __init__(self, curves: Sequence[Curve]):
        self.curves = tuple(curves)
        self.there: dict[str, Any] = {}  # by device
        self.groups: list[tuple[Any, Curve]] = []
        kinds: tuple[Any, ...] = (Linear, Logistic, Emax)
        for kind in kinds:
            at = [i for i, curve in enumerate(curves) if type(curve) is kind]
            if at:
                columns = {f.name: np.array([getattr(curves[i], f.name) for i in at]) for f in fields(kind)}
                self.groups.append((slice(None) if len(at) == len(curves) else at, kind(**columns)))
        self.groups += [(i, curve) for i, curve in enumerate(curves) if type(curve) not in kinds]

    def __call__(self, dose: Array) -> Array:
        if not isinstance(dose, np.ndarray):
            return self._elsewhere(dose)
        if len(self.groups) == 1 and isinstance(self.groups[0][0], slice):
            return self.groups[0][1](dose)
        out = np.empty_like(dose)
        for at, curve in self.groups:
            out[..., at] = curve(dose[..., at])
        return out

    def _elsewhere(self, dose: Any) -> Any:
        """The same in another namespace, on its device; the curves' numbers are taken there once."""
        xp, key = array_namespace(dose), str(device(dose))
        if key not in self.there:
            every = np.arange(len(self.curves))
            groups = [(np.atleast_1d(every[at]), curve) for at, curve in self.groups]
            back = np.argsort(np.concatenate([at for at, _ in groups]))
            self.there[key] = [(like(dose, at), _moved(curve, dose)) for at, curve in groups], like(dose, back)
        groups, back = self.there[key]
        if len(groups) == 1:
            return groups[0][1](dose)
        return xp.take(xp.concat([curve(xp.take(dose, at, axis=-1)) for at, curve in groups], axis=-1), back, axis=-1)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "there": {}}


def _moved(curve: Any, dose: Any) -> Any:
    """A curve of arrays with these where the doses are."""
    if not is_dataclass(curve) or isinstance(curve, Table):
        return curve
    return replace(curve, **{f.name: like(dose, getattr(curve, f.name)) for f in fields(curve)})  # type: ignore[type-var]


@dataclass(frozen=True)
class Truth:
    """What an oracle knows of a problem: per arm the largest safe dose (nan where none is) and the value there."""

    dose: Array
    value: Array  # -inf where no dose is safe

    @property
    def best(self) -> int:
        return int(np.argmax(self.value))


@dataclass(frozen=True)
class Scenario:
    """The hidden truth, for simulations alone: curves of effect and harm, one an arm, and what else is hidden.

    Parameters
    ----------
    effect, harm
        One curve an arm: a function of an array of doses, such as `Linear`, `Logistic`, `Emax` or `Table` of
        `surefoot.scenario`.
    noise
        The actual noise where it differs from what the problem declares.
    correlation
        In [-1, 1]; ties the two readings of one pull.
    drift
        By how much harm rises with every 1,000 pulls of the trial (outside the assumptions).
    name
        What it is called in tables.

    Examples
    --------
    >>> from surefoot import Scenario, case
    >>> from surefoot.scenario import Linear
    >>> truth = Scenario((Linear(1.0), Linear(0.5)), (Linear(1.0), Linear(0.8)))
    >>> problem, _ = case("paper-linear", 2)
    >>> truth.truth(problem).best, truth.violations(problem)
    (0, [])
    """

    effect: tuple[Curve, ...]
    harm: tuple[Curve, ...]
    noise: tuple[Noise, Noise] | None = None
    correlation: float = 0.0
    drift: float = 0.0
    name: str = field(default="custom", compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        for key in ("effect", "harm"):
            put(self, key, tuple(getattr(self, key)))
            for curve in getattr(self, key):
                if not callable(curve):
                    raise SurefootError(f"{key} must hold one curve an arm (a function of the dose); got {curve!r}")
        if len(self.effect) != len(self.harm):
            raise SurefootError(
                f"effect and harm need a curve for every arm; got {len(self.effect)} and {len(self.harm)}"
            )
        if isinstance(self.noise, Noise):
            put(self, "noise", (self.noise, self.noise))
        if not -1 <= number("correlation", self.correlation) <= 1:
            raise SurefootError(f"correlation must be between -1 and 1; got {self.correlation!r}")
        number("drift", self.drift)

    @cached_property
    def effects(self) -> Curves:
        return Curves(self.effect)

    @cached_property
    def harms(self) -> Curves:
        return Curves(self.harm)

    def truth(self, problem: Problem) -> Truth:
        """Largest safe dose and value of every arm; the dose by bisection, since any monotone curve may come."""
        self.check(problem)
        low, high = problem.starts.copy(), problem.largest.copy()
        while np.any(np.isinf(high)):  # no largest dose: double until the harm is above the limit
            reach = np.where(np.isinf(high), 2 * np.maximum(np.abs(low), 1.0), high)
            over = self.harms(reach) > problem.limit
            high, low = np.where(over, reach, high), np.where(over | np.isfinite(high), low, reach)
            if np.any(low > 1e300):
                raise SurefootError(
                    "an arm without a largest dose has a harm that never reaches the limit: its value is unbounded"
                )
        allowed = problem.limit + hair(problem.limit)
        fits = self.harms(high) <= allowed
        for _ in range(200):
            mid = 0.5 * (low + high)
            if np.all((mid == low) | (mid == high)):  # no number lies between them
                break
            safe = self.harms(mid) <= problem.limit
            low, high = np.where(safe, mid, low), np.where(safe, high, mid)
        dose = np.where(fits, problem.largest, low)
        if problem.levels is not None:
            # a level at the limit to within rounding counts as safe, as it does when pulls are judged
            real = np.isfinite(problem.levels)  # the others only fill up the rows
            levels = np.where(real, problem.levels, problem.starts[:, None])
            harm = self.harms(levels.T).T
            top = np.where(real & (harm <= allowed), levels, -np.inf).max(axis=1)
            dose = np.where(np.isfinite(problem.levels[:, 0]), top, dose)
        safe = self.harms(problem.starts) <= allowed
        dose = np.where(safe, np.maximum(dose, problem.starts), np.nan)
        return Truth(dose, np.where(safe, self.effects(np.where(safe, dose, problem.starts)), -np.inf))

    def check(self, problem: Problem) -> None:
        if len(self.effect) != len(problem.arms):
            raise SurefootError(
                f"the scenario has curves for {len(self.effect)} arms, the problem has {len(problem.arms)}"
            )

    def violations(self, problem: Problem) -> list[str]:
        """Which assumptions of the problem this truth breaks, as seen on a fine grid of doses; empty where none."""
        self.check(problem)
        found = []
        with np.errstate(invalid="ignore"):
            top = np.where(np.isinf(problem.largest), problem.starts * 1000, problem.largest)
        dose = np.linspace(problem.starts, top, 2001)
        f, g = self.effects(dose), self.harms(dose)
        slack = 1e-9 * (1 + np.abs(g).max(axis=0))
        rules = {
            "harm is above the limit at the start dose": self.harms(problem.starts)
            > problem.limit + hair(problem.limit),
            "harm falls with the dose": np.any(np.diff(g, axis=0) < -slack, axis=0),
            "effect falls with the dose": np.any(np.diff(f, axis=0) < -1e-9 * (1 + np.abs(f).max(axis=0)), axis=0),
        }
        if problem.shape == "linear":
            for key, y in (("effect", f), ("harm", g)):
                bent = np.abs(y - dose * (y[-1] / dose[-1])) > 1e-9 * (1 + np.abs(y).max(axis=0))
                rules[f"{key} is not a line through 0"] = np.any(bent, axis=0)
        if problem.shape == "monotonic":
            steep = np.diff(g, axis=0) > problem.lipschitz * np.diff(dose, axis=0) + slack
            rules["harm rises faster than the Lipschitz constant"] = np.any(steep, axis=0)
        for key, y, noise in (("effect", f, self.noises(problem)[0]), ("harm", g, self.noises(problem)[1])):
            if noise.worst is not None:
                low, high = noise.worst
                said = "a binary reading leaves [0, 1]" if noise.binary else f"a bounded one leaves [{low:g}, {high:g}]"
                rules[f"{key} of {said}"] = np.any((y < low) | (y > high), axis=0)
            if noise.counts and not noise.binary:
                rules[f"{key} of a count is below 0"] = np.any(y < 0, axis=0)
        for rule, broken in rules.items():
            if np.any(broken):
                found.append(f"{rule} ({', '.join(n for n, b in zip(problem.names, broken, strict=True) if b)})")
        for key, actual, told in zip(("effect", "harm"), self.noises(problem), problem.noises, strict=True):
            if told.counts and not told.binary:
                if actual.kind != told.kind:
                    found.append(f"{key} noise is {actual.kind}, declared {told.kind}")
            elif told.known and actual.scale > told.scale:
                found.append(f"{key} noise has sigma {actual.scale:g}, declared {told.scale:g}")
        if self.drift:
            found.append(f"harm drifts by {self.drift:g} with every 1,000 pulls")
        if self.correlation and problem.signals == "independent":
            found.append(f"readings have correlation {self.correlation:g}, declared independent")
        return found

    def unsafe(self, problem: Problem, dose: Array, harm: Array) -> Array:
        """Which doses break the promise, `harm` their mean harms. With ordered levels a level may be given if the one
        just below it is at or below the ceiling; the first always may."""
        if problem.shape == "levels":
            drifted = harm - self.harms(dose)
            harm = _xp(dose).where(dose >= 1, self.harms(dose - 1) + drifted, -np.inf)
        return harm > problem.ceiling + hair(problem.ceiling)

    def noises(self, problem: Problem) -> tuple[Noise, Noise]:
        return problem.noises if self.noise is None else self.noise

    def draw(self, rng: Any, problem: Problem, dose: Array, n: Array, pulls: Array) -> tuple[Array, ...]:
        """Sums of the effects and harms of `n` pulls at `dose`, (trials, arms) each, the mean harm at those doses, and
        where the problem wants them the squares (see `Outcome`).

        `pulls` (trials,): how many were made before, for the drift; a cohort has the drift of its middle.
        """
        f, g = self.effects(dose), self.harms(dose)
        if self.drift:
            g = g + self.drift * (pulls + 0.5 * _xp(n).sum(n, axis=1))[:, None] / 1000
        if not problem.squares:
            return *draw_sums(rng, n, (f, g), self.noises(problem), self.correlation), g
        effect, harm, *squares = draw_squares(rng, n, (f, g), self.noises(problem), self.correlation)
        return effect, harm, g, *squares

    # TOML
    def to_dict(self, problem: Problem) -> dict[str, Any]:
        data = problem.to_dict()
        names = {kind: name for name, kind in CURVES.items()}
        for arm, f, g in zip(data["arms"], self.effect, self.harm, strict=True):
            curve: Any
            for key, curve in (("effect", f), ("harm", g)):
                if type(curve) not in names:
                    raise SurefootError(
                        f"a Python function cannot be written to TOML: {curve!r}; use one of {', '.join(CURVES)}"
                    )
                arm[key] = {"curve": names[type(curve)]} | {
                    k: list(v) if isinstance(v, tuple) else v for k, v in asdict(curve).items()
                }
                if problem.shape == "levels" and type(curve) is Table and curve.dose == tuple(range(len(curve.dose))):
                    del arm[key]["dose"]  # one value a level
        arms = data.pop("arms")
        hidden = {"correlation": self.correlation, "drift": self.drift}
        data |= {k: v for k, v in hidden.items() if v}
        return data | ({"actual_noise": noises_to_dict(self.noise)} if self.noise else {}) | {"arms": arms}

    def to_toml(self, problem: Problem) -> str:
        """As a scenario file, with its problem; `surefoot.load` reads both."""
        import tomli_w

        return tomli_w.dumps(self.to_dict(problem))


def hair(limit: float) -> float:
    """Above the limit means above it by more than 1e-9 relative: rounding is not a violation."""
    return 1e-9 * max(abs(limit), 1e-300)


def parse_curve(where: str, data: Any, levels: int | None = None) -> Curve:
    """A curve from its table of numbers. With ordered `levels` (how many), a table may be one value a level."""
    if not isinstance(data, Mapping) or "curve" not in data:
        raise SurefootError(
            f'{where} must be a table with a curve, such as {{ curve = "linear", slope = 1.0 }}; got {data!r}'
        )
    kind = CURVES[choice(f"{where}: curve", data["curve"], CURVES)]
    params = {k: v for k, v in data.items() if k != "curve"}
    if levels is not None and kind is Table and "dose" not in params and isinstance(params.get("value"), list):
        if len(params["value"]) != levels:
            raise SurefootError(f"{where} needs one value a level, {levels} in all; got {params['value']!r}")
        params["dose"] = list(range(levels))
    known_keys(where, params, [f.name for f in fields(kind)])
    for key, value in params.items():
        if kind is not Table:
            number(f"{where}: {key}", value)
        elif not isinstance(value, list):
            raise SurefootError(f"{where}: {key} must be a list of numbers; got {value!r}")
    try:
        curve: Curve = kind(**params)
    except TypeError as error:
        needs = ", ".join(f.name for f in fields(kind))
        raise SurefootError(
            f"{where}: a {data['curve']} curve needs {needs}; got {', '.join(params) or 'nothing'}"
        ) from error
    return curve


def load(path: str | Path) -> tuple[Problem, Scenario]:
    """Read a scenario file: a problem file whose arms also have `effect` and `harm`.

    Parameters
    ----------
    path
        Of a TOML file (`surefoot new` writes one).

    Returns
    -------
    (Problem, Scenario)

    Raises
    ------
    SurefootError
        With all that is wrong in the file, line by line; or where it holds several truths, which `load_all` reads.

    Examples
    --------
    >>> from pathlib import Path
    >>> from surefoot import case, load
    >>> problem, truth = case("paper-linear", 3)
    >>> _ = Path("mine.toml").write_text(truth.to_toml(problem))
    >>> load("mine.toml") == (problem, truth)
    True
    """
    problem, found = load_all(path)
    if len(found) > 1:
        names = ", ".join(repr(one.name) for one in found)
        raise SurefootError(f"{path} holds {len(found)} scenarios ({names}): surefoot.scenario.load_all reads them all")
    return problem, found[0]


def load_all(path: str | Path) -> tuple[Problem, list[Scenario]]:
    """One problem and its truths: that of its arms, if they have curves, and one for each of `[[scenarios]]`, with a
    `name` and `[[scenarios.arms]]`. What a scenario does not say is as in the rest of the file."""
    from .schema import read

    data = read(path)
    problem, parts, found = Problem.from_dict(visible(data)), data.get("scenarios", []), list[Scenario]()
    shown = {key: value for key, value in data.items() if key in HIDDEN and key != "scenarios"}
    if not parts or all("effect" in arm and "harm" in arm for arm in data["arms"]):
        found.append(_truth(problem, data["arms"], shown, Path(path).stem))
    for k, part in enumerate(parts, 1):
        changed = {arm["name"]: arm for arm in part.get("arms", [])}
        arms = [arm | changed.get(arm["name"], {}) for arm in data["arms"]]
        hidden = shown | {key: value for key, value in part.items() if key in HIDDEN}
        found.append(_truth(problem, arms, hidden, str(part.get("name", f"scenario {k}"))))
    names = [one.name for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SurefootError(f"scenario names must differ; got {', '.join(map(repr, twice))} more than once")
    return problem, found


def has_truth(path: str | Path) -> bool:
    """Whether a file says anything of the truth, or is a problem alone."""
    data = read_toml(path)
    arms = data.get("arms", [])
    return "scenarios" in data or any(isinstance(arm, dict) and {"effect", "harm"} & arm.keys() for arm in arms)


def _truth(problem: Problem, arms: list[dict[str, Any]], hidden: dict[str, Any], name: str) -> Scenario:
    curves: dict[str, list[Curve]] = {"effect": [], "harm": []}
    for arm, known in zip(arms, problem.arms, strict=True):
        for key, into in curves.items():
            if key not in arm:
                raise SurefootError(
                    f"arm {arm['name']!r} has no {key} curve: this is a problem file; a simulation needs a scenario "
                    "(Problem.load reads a problem without one)"
                )
            into.append(
                parse_curve(f"arm {arm['name']!r}: {key}", arm[key], len(known.labels) if known.labels else None)
            )
    if "actual_noise" in hidden:
        hidden = {"noise": parse_noises("actual_noise", hidden["actual_noise"])} | {
            key: value for key, value in hidden.items() if key != "actual_noise"
        }
    return Scenario(tuple(curves["effect"]), tuple(curves["harm"]), name=name, **hidden)


__all__ = ["CURVES", "Curves", "Emax", "Linear", "Logistic", "Scenario", "Table", "Truth", "load", "load_all"]
