"""The design lab's reading and writing of problems, and its jobs."""

from __future__ import annotations

import math
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..characteristics import brief
from ..designs import DESIGNS, POLICIES, Design, make, policies
from ..noise import KINDS
from ..plan import Plan
from ..problem import Problem, SurefootError
from ..reports import to_html
from ..scenario import CURVES, Scenario, load_all

Say = Callable[[float, str], None]
MOST, SEED = 20_000, 0  # trials of a cell, and the seed of all of them
ARMS = 500  # of a study
TEXT, LINE = 200_000, 5_000  # characters of a problem, and of a line of it
FIELDS = ("limit", "slack", "delta", "tolerance", "budget")
START = """\
shape = "linear"
limit = 1.0
delta = 0.05
noise = { kind = "gaussian", sigma = 0.3 }
budget = 5000

[[arms]]
name = "cream A"
start = 0.2
max = 2.0
effect = { curve = "linear", slope = 0.9 }
harm = { curve = "linear", slope = 0.7 }

[[arms]]
name = "cream B"
start = 0.2
max = 2.0
effect = { curve = "linear", slope = 0.5 }
harm = { curve = "linear", slope = 0.8 }

[[arms]]
name = "cream C"
start = 0.2
max = 2.0
effect = { curve = "linear", slope = 0.4 }
harm = { curve = "linear", slope = 0.6 }
"""


def parse(text: str) -> dict[str, Any]:
    longest = max(map(len, text.splitlines()), default=0)
    if len(text) > TEXT or longest > LINE:  # Python's reader takes minutes for some of them
        raise SurefootError(
            f"a problem has at most {TEXT:,} characters and {LINE:,} in a line; got {len(text):,}, {longest:,}"
        )
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SurefootError(f"this is not TOML: {error}") from error


def few_enough(data: Mapping[str, Any]) -> None:
    """A page shows a row for each arm; with very many the server would be at one request for minutes."""
    arms = data.get("arms")
    if isinstance(arms, list) and len(arms) > ARMS:
        raise SurefootError(f"a study on this server has at most {ARMS:,} arms; got {len(arms):,}")


def read(text: str) -> tuple[Problem, list[Scenario]]:
    """A problem and its truths; without any where no arm has curves."""
    data = parse(text)
    few_enough(data)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "the arms.toml"
        file.write_text(text, encoding="utf-8")
        try:
            arms = data.get("arms")
            bare = isinstance(arms, list) and not any("effect" in a or "harm" in a for a in arms if isinstance(a, dict))
            return (Problem.load(file), []) if bare and "scenarios" not in data else load_all(file)
        except SurefootError as error:
            raise SurefootError(str(error).replace(str(file), "the text")) from error


def fitting(shape: str) -> list[str]:
    """Designs and policies that can be simulated, those of installed packages too."""
    return [name for name, kind in DESIGNS.items() if kind.shape in (shape, "any")] + policies(shape)


def named(name: str) -> Design:
    """A design, or the one that a policy is for, with that policy."""
    return make(POLICIES[name].on, policy=name) if name in POLICIES else make(name)


def parameters(kinds: Mapping[str, Any]) -> dict[str, list[str]]:
    """Of every curve or noise that there is, the names of its fields."""
    return {name: [f.name for f in fields(kind)] for name, kind in kinds.items()}


def _values(kinds: Mapping[str, Any], kind: str, one: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, " ".join(map(str, one[name])) if isinstance(one.get(name), list) else _text(one.get(name)))
        for name in parameters(kinds).get(kind, [])
    ]


# The form: a flat set of fields, and the TOML it stands for
def to_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the form shows of a problem, as text."""
    noise = data.get("noise", {})
    out: dict[str, Any] = {k: _text(data.get(k)) for k in FIELDS} | {"shape": str(data.get("shape", "linear"))}
    out["signals"] = str(data.get("signals", "any"))
    for key in ("effect", "harm"):
        one = noise.get(key, noise) if isinstance(noise, Mapping) else {}
        one = one if isinstance(one, Mapping) else {}
        out[f"noise_{key}"] = kind = str(one.get("kind", "gaussian"))
        out[f"noise_{key}_values"] = _values(KINDS, kind, one)
    out["arms"] = [_arm(a) for a in data.get("arms", []) if isinstance(a, Mapping)]
    return out


def _arm(a: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {k: _text(a.get(k)) for k in ("name", "start", "max", "lipschitz")}
    out["levels"] = " ".join(map(str, a.get("levels", [])))
    for key in ("effect", "harm"):
        one = a.get(key) if isinstance(a.get(key), Mapping) else {}
        assert one is not None
        out[f"{key}_curve"] = kind = str(one.get("curve", ""))
        out[f"{key}_values"] = _values(CURVES, kind, one)
    return out


def _text(x: Any) -> str:
    return "" if x is None else f"{x:g}" if isinstance(x, float) and abs(x) < 1e15 else str(x)


def from_fields(f: Mapping[str, str], base: Mapping[str, Any]) -> dict[str, Any]:
    """The data of the form; what it does not show stays as it was."""
    data = {k: v for k, v in base.items() if k not in (*FIELDS, "shape", "noise", "arms", "signals")}
    data["shape"] = f.get("shape", "linear")
    for key in FIELDS:
        if f.get(key, "").strip():
            data[key] = _value(f[key], whole=key == "budget")
    if f.get("signals", "any") != "any":
        data["signals"] = f["signals"]
    noises = []
    for key in ("effect", "harm"):
        kind = f.get(f"noise_{key}", "gaussian")
        noises.append({"kind": kind} | _from_values(KINDS, kind, f, f"noise_{key}"))
    data["noise"] = noises[0] if noises[0] == noises[1] else {"effect": noises[0], "harm": noises[1]}
    data["arms"] = [_from_arm(f, k, data["shape"]) for k in range(200) if f"arm{k}_name" in f]
    return data


def _from_arm(f: Mapping[str, str], k: int, shape: str) -> dict[str, Any]:
    def field(name: str) -> str:
        return f.get(f"arm{k}_{name}", "").strip()

    arm: dict[str, Any] = {"name": field("name")}
    for key in ("start", "max", "lipschitz"):
        if field(key) and shape != "levels":
            arm[key] = _value(field(key))
    if field("levels"):
        arm["levels"] = [_value(x) for x in field("levels").split()]
    for key in ("effect", "harm"):
        if kind := field(f"{key}_curve"):
            arm[key] = {"curve": kind} | _from_values(CURVES, kind, f, f"arm{k}_{key}")
    return arm


def _from_values(kinds: Mapping[str, Any], kind: str, f: Mapping[str, str], at: str) -> dict[str, Any]:
    """The fields of a curve or noise that are filled in; several numbers with blanks between are a list."""
    typed = {name: f.get(f"{at}_{name}", "").strip() for name in parameters(kinds).get(kind, [])}
    many = {name: kind == "table" or " " in text for name, text in typed.items()}
    return {
        name: [_value(x) for x in text.split()] if many[name] else _value(text) for name, text in typed.items() if text
    }


def _value(text: str, whole: bool = False) -> Any:
    """A number where it is one, else text, to be refused in words."""
    if text.strip() in ("true", "false", "True", "False"):
        return text.strip().casefold() == "true"
    try:
        x = float(text.strip().replace(",", "."))
    except ValueError:
        return text.strip()
    return int(x) if (whole and math.isfinite(x) and x == int(x)) else x


# Jobs
def characteristics(say: Say, text: str, designs: list[str], trials: int, budgets: list[int | None]) -> Any:
    """One row a scenario, design and budget."""
    problem, scenarios = read(text)
    _check(scenarios, designs, trials)
    cells = [(one, name, most) for one in scenarios for name in designs for most in budgets]
    rows, notes = [], dict[str, None]()
    plan = Plan(problem, scenarios, (), budgets, trials, SEED)
    for k, (one, name, most) in enumerate(cells):
        say(k / len(cells), f"{one.name}, {name}: {k} of {len(cells)}")
        table = plan.played(one, named(name), most, trials)
        rows.append(brief(table))
        notes |= dict.fromkeys(table.notes)
    return {"rows": rows, "trials": trials, "seed": SEED, "notes": list(notes)}


def report(say: Say, text: str, designs: list[str], trials: int, budgets: list[int | None]) -> Any:
    problem, scenarios = read(text)
    _check(scenarios, designs, trials)
    say(0.05, "simulating")
    plan = Plan(problem, scenarios, [named(name) for name in designs], budgets, trials, SEED)
    return {"html": to_html(plan.parts())}


def _check(scenarios: list[Scenario], designs: list[str], trials: int) -> None:
    if not scenarios:
        raise SurefootError("give every arm a curve of effect and of harm: what is to be simulated?")
    if not designs:
        raise SurefootError("choose at least one design")
    if not 1 <= trials <= MOST:
        raise SurefootError(f"trials must be from 1 to {MOST:,}; got {trials:,}")


WORK: dict[str, Callable[..., Any]] = {"characteristics": characteristics, "report": report}
