"""The problem file: what may stand in it. One source for messages, for the reference page and for editors.

The fields and what they mean are said here once; what a value must be is checked by the classes themselves, so that a
file and a script are refused for the same reason in the same words. Curves and noise kinds say their own fields, those
of other packages too. A file with mistakes is told all of them at once, each with its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from .checks import NAME, SurefootError, choice
from .noise import KINDS, parse_noises
from .problem import HIDDEN, Arm, Problem, Shape, Signals, read_toml
from .scenario import CURVES, Scenario, parse_curve

Data = dict[str, Any]
Place = tuple[str | int, ...]

NUMBER: Data = {"type": "number"}
PROBLEM: dict[str, Data] = {
    "shape": {"enum": list(get_args(Shape)), "description": "What is known of the responses: lines through 0 (linear), "
              "curves that never fall and a bound on how fast harm rises (monotonic), ordered levels (levels)."},
    "limit": {**NUMBER, "description": "Harm must stay at or below it, in the units of the harm reading; a share "
              "between 0 and 1 where harm is yes or no."},
    "slack": {**NUMBER, "minimum": 0, "description": "How far above the limit a pull may go, in the same units. Needed "
              "in the monotonic and the levels shape; there is none in the linear one."},
    "delta": {**NUMBER, "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.05, "description": "The error "
              "probability, for a wrong arm or an unsafe pull together: 0.05 is five percent."},
    "noise": {"$ref": "#/$defs/noises", "description": "The noise of both readings, or `effect` and `harm` apart."},
    "signals": {"enum": list(get_args(Signals)), "default": "any", "description": "Whether the two readings of a pull "
                "may depend on each other (any) or do not (independent: fewer pulls in the linear shape)."},
    "tolerance": {**NUMBER, "exclusiveMinimum": 0, "description": "An arm whose value is within this of the best will "
                  "do; in units of the effect."},
    "budget": {"type": "integer", "minimum": 1, "default": 10**9, "description": "The most pulls there may ever be."},
    "refine": {**NUMBER, "exclusiveMinimum": 0, "description": "Go on with the winner until its largest safe dose is "
               "known to within this; in units of the dose. Not with levels."},
    "arms": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/arm"}, "description": "The options to choose "
             "between, each a table [[arms]]."},
}  # fmt: skip
ARM: dict[str, Data] = {
    "name": {"type": "string", "minLength": 1, "maxLength": NAME,
             "description": "What people call it; names must differ."},
    "start": {**NUMBER, "description": "A dose known to be safe. Not in the levels shape."},
    "max": {**NUMBER, "description": "The largest dose that may be given; needed in the monotonic shape; in the linear "
            "one there may be none."},
    "lipschitz": {**NUMBER, "exclusiveMinimum": 0, "description": "Harm rises by at most this much for every unit of "
                  "dose; needed in the monotonic shape, and not used in the others."},
    "levels": {"type": "array", "minItems": 1, "items": {"type": ["number", "string"]}, "description": "The doses that "
               "can be given, rising. In the levels shape numbers or names, the first known to be safe; else numbers "
               "that begin at the start dose."},
}  # fmt: skip
CURVE: Data = {"$ref": "#/$defs/curve"}
TRUTH: dict[str, Data] = {  # what no experimenter knows: for simulations
    "correlation": {**NUMBER, "minimum": -1, "maximum": 1, "default": 0, "description": "Of a pull's two readings."},
    "drift": {**NUMBER, "default": 0, "description": "By how much harm rises with every 1,000 pulls."},
    "actual_noise": {"$ref": "#/$defs/noises", "description": "The noise as it is, where another is declared."},
}  # fmt: skip
RESPONSES: dict[str, Data] = {
    "effect": {**CURVE, "description": "How the effect responds to the dose; for simulations."},
    "harm": {**CURVE, "description": "How the harm responds to the dose; for simulations."},
}
SCENARIO: dict[str, Data] = {
    "name": {"type": "string", "description": "What this truth is called."},
    "arms": {"type": "array", "items": {"$ref": "#/$defs/response"}, "description": "Curves, by the name of the arm."},
    **TRUTH,
}
SCENARIOS: Data = {
    "type": "array",
    "items": {"$ref": "#/$defs/scenario"},
    "description": "Several truths of one problem, each a table [[scenarios]]; what one leaves out is as in the file.",
}
assert set(HIDDEN) == {*TRUTH, "scenarios"}
TYPES = {"float": NUMBER, "int": {"type": "integer"}, "str": {"type": "string"}, "bool": {"type": "boolean"}}


def json_schema() -> Data:
    """The schema of a problem file, with or without its truth, for editors and other tools (JSON Schema 2020-12)."""
    one_noise = {"oneOf": [_kind(name, kind, "kind") for name, kind in KINDS.items()]}
    each = {"effect": {"$ref": "#/$defs/noise"}, "harm": {"$ref": "#/$defs/noise"}}
    arm = {**ARM, **RESPONSES}
    with_start: Data = {"properties": {"arms": {"items": {"required": ["start"]}}}}
    with_levels: Data = {"properties": {"arms": {"items": {"required": ["levels"], "not": {"required": ["start"]}}}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A problem of surefoot, with its truth where it is to be simulated",
        **_table({**PROBLEM, **TRUTH, "scenarios": SCENARIOS}, ["shape", "limit", "noise", "arms"]),
        "allOf": [
            {"if": _is("linear"), "then": {"not": {"required": ["slack"]}}, "else": {"required": ["slack"]}},
            {"if": _is("levels"), "then": with_levels, "else": with_start},
            {"if": _is("monotonic"), "then": {"properties": {"arms": {"items": {"required": ["lipschitz"]}}}}},
        ],
        "$defs": {
            "arm": _table(arm, ["name"]),
            "noise": one_noise,
            "noises": {"anyOf": [{"$ref": "#/$defs/noise"}, _table(each, ["effect", "harm"])]},
            "curve": {"oneOf": [_kind(name, kind, "curve") for name, kind in CURVES.items()]},
            "response": _table({"name": ARM["name"], **RESPONSES}, ["name"]),
            "scenario": _table(SCENARIO, []),
        },
    }


def _table(properties: Mapping[str, Data], required: list[str]) -> Data:
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def _is(shape: str) -> Data:
    return {"properties": {"shape": {"const": shape}}}


def _kind(name: str, kind: Any, by: str) -> Data:
    """A curve or a kind of noise, by its own fields."""
    parts: dict[str, Data] = {by: {"const": name}}
    for f in fields(kind):
        if f.init:
            parts[f.name] = of(f)
    needed = [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]
    if name == "bernoulli":
        parts["sigma"] = {"const": 0.5}
    if name == "table":
        needed.remove("dose")  # with ordered levels it is one value a level
    about = " ".join((kind.__doc__ or "").split())
    return _table(parts, [by, *needed]) | {"description": about}


def of(f: Any) -> Data:
    """What may stand for a field of a dataclass, by its annotation."""
    text = f.type if isinstance(f.type, str) else getattr(f.type, "__name__", str(f.type))
    names = [name.strip() for name in text.split("|")]
    listed = [name for name in names if name.startswith(("tuple", "list"))]
    found: Data = {"type": "array", "items": NUMBER} if listed else dict(TYPES.get(names[0], {}))
    default = {} if f.default in (MISSING, None) else {"default": f.default}
    return found | default | ({"description": f.metadata["help"]} if "help" in f.metadata else {})


# Reading a file


class Faults:
    """What is wrong with a file, each with its line."""

    def __init__(self, text: str):
        self.lines, self.found = places(text), list[tuple[int, str]]()

    def add(self, at: Place, message: str) -> None:
        line = next((self.lines[at[:k]] for k in range(len(at), 0, -1) if at[:k] in self.lines), 0)
        if (line, message) not in self.found:
            self.found.append((line, message))

    @contextmanager
    def at(self, *place: str | int) -> Any:
        try:
            yield
        except SurefootError as error:
            self.add(place, str(error))

    def keys(self, where: str, data: Any, known: Mapping[str, Any], *place: str | int) -> Data:
        """The keys that mean something here; the others are faults."""
        if not isinstance(data, Mapping):
            self.add(place, f"{where} must be a table of keys and values; got {data!r}")
            return {}
        for key in data:
            with self.at(*place, key):
                choice(f"a key of {where}", key, known)
        return {key: value for key, value in data.items() if key in known}

    def tables(self, where: str, data: Any, *place: str | int) -> list[Any]:
        if isinstance(data, list):
            return data
        name = ".".join(x for x in place if isinstance(x, str))
        self.add(place, f"{where} must be a list of tables ([[{name}]] in TOML); got {data!r}")
        return []

    def lacks(self, where: str, data: Data, needed: list[str], *place: str | int) -> bool:
        if missing := [key for key in needed if key not in data]:
            self.add(place, f"{where} lacks {', '.join(missing)}")
        return bool(missing)


def read(path: str | Path) -> Data:
    """The contents of a problem or scenario file, or an error with everything that is wrong in it."""
    data = read_toml(path)
    faults = Faults(Path(path).read_text(encoding="utf-8"))
    _check(data, faults)
    if faults.found:
        found = sorted(faults.found)
        said = [(f"line {line}: " if line else "") + message for line, message in found]
        many = f"{path} has {len(said)} things to correct:\n  " if len(said) > 1 else f"{path}, "
        raise SurefootError(many + "\n  ".join(said))
    return data


def _check(data: Data, faults: Faults) -> None:
    known = faults.keys("the problem", data, {**PROBLEM, **TRUTH, "scenarios": SCENARIOS})
    faults.lacks("the problem", known, ["shape", "limit", "noise", "arms"])
    noise: Any = None
    if "noise" in known:
        with faults.at("noise"):
            noise = parse_noises("noise", known["noise"])
    given = faults.tables("arms", known.get("arms", []), "arms")
    arms = [_arm(k, arm, known.get("shape"), faults) for k, arm in enumerate(given)]
    _problem(known, noise, arms, faults)
    _hidden(known, faults)
    _units(known, noise, faults)
    for k, part in enumerate(faults.tables("scenarios", known.get("scenarios", []), "scenarios")):
        _scenario(k, part, [arm for arm in arms if arm], faults)


def _hidden(known: Data, faults: Faults, *place: str | int) -> None:
    for key in known.keys() & TRUTH.keys():
        with faults.at(*place, key):
            if key == "actual_noise":
                parse_noises(key, known[key])
            else:
                Scenario((), (), **{key: known[key]})


def _arm(k: int, data: Any, shape: Any, faults: Faults) -> Arm | None:
    where = f"arm {k + 1}"
    arm = faults.keys(where, data, {**ARM, **RESPONSES}, "arms", k)
    known = {key: value for key, value in arm.items() if key in ARM}
    made = None
    if shape == "levels" and "start" in known:
        faults.add(("arms", k, "start"), f"{where} has a start dose: in the levels shape the first level is the start")
        known.pop("start")
    needed = ["name", "levels" if shape == "levels" else "start"]
    if not faults.lacks(where, known, needed, "arms", k):
        with faults.at("arms", k):
            made = Arm(**known)
    labels = len(made.labels) if made and made.labels else None
    for key in RESPONSES:
        if key in arm:
            with faults.at("arms", k, key):
                parse_curve(f"arm {known.get('name', k + 1)!r}: {key}", arm[key], labels)
    return made


USUAL: dict[str, Any] = {"limit": 1.0, "delta": 0.05, "signals": "any", "tolerance": None, "refine": None,
                         "budget": Problem.budget}  # fmt: skip


def _problem(known: Data, noise: Any, arms: list[Arm | None], faults: Faults) -> None:
    """Every field that Problem refuses: the one it names is set to something that it accepts, and it is asked again."""
    if "shape" not in known:
        return
    given = {key: value for key, value in known.items() if key in PROBLEM and key not in ("arms", "noise")}
    given = {"limit": 1.0, **given, "noise": noise or parse_noises("noise", {"kind": "gaussian", "sigma": 1.0})}
    given["arms"] = tuple(arm for arm in arms if arm)
    for _ in range(len(PROBLEM)):
        try:
            Problem(**given)
            return
        except SurefootError as error:
            key = str(error).split()[0].rstrip(":,")
            if key not in ("shape", "slack", *USUAL):
                if all(arms) and arms:  # about the arms; those that are wrong by themselves have been told
                    faults.add(("arms",), str(error))
                return
            faults.add((key,), str(error))
            near = get_close_matches(str(given["shape"]), get_args(Shape), 1)
            fix = {"shape": near[0] if near else "monotonic", "slack": None if given["shape"] == "linear" else 0.1}
            given[key] = (fix | USUAL)[key]


def _units(known: Data, noise: Any, faults: Faults) -> None:
    """Numbers that are allowed, and cannot be meant."""
    if noise and noise[1].worst == (0.0, 1.0):
        for key in ("limit", "slack"):
            x = known.get(key)
            if isinstance(x, (int, float)) and x > 1:
                faults.add((key,), f"{key} is a share here, where harm is yes or no: between 0 and 1; got {x:g}"
                           + (f" (is {x / 100:g} meant?)" if x <= 100 else ""))  # fmt: skip


def _scenario(k: int, part: Any, arms: list[Arm], faults: Faults) -> None:
    where = f"scenario {k + 1}"
    known = faults.keys(where, part, SCENARIO, "scenarios", k)
    _hidden(known, faults, "scenarios", k)
    names = {arm.name: arm for arm in arms}
    for j, arm in enumerate(faults.tables(f"{where}: arms", known.get("arms", []), "scenarios", k, "arms")):
        here = ("scenarios", k, "arms", j)
        clean = faults.keys(f"{where}, arm {j + 1}", arm, {"name": {}, **RESPONSES}, *here)
        if faults.lacks(f"{where}, arm {j + 1}", clean, ["name"], *here):
            continue
        with faults.at(*here):
            choice(f"{where}: the name of an arm", clean["name"], names)
            labels = names[clean["name"]].labels
            for key in RESPONSES:
                if key in clean:
                    parse_curve(f"arm {clean['name']!r}: {key}", clean[key], len(labels) if labels else None)


# Where things stand

HEAD = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"""([A-Za-z0-9_-]+|"[^"]*"|'[^']*')\s*=""")


def places(text: str) -> dict[Place, int]:
    """The line of every table and key of a TOML file, from 1; near enough to point at."""
    found: dict[Place, int] = {}
    here: Place = ()
    count: dict[str, int] = {}
    for line, content in enumerate(text.splitlines(), 1):
        if head := HEAD.match(content):
            here = _head(head[2], head[1] == "[[", count)
            found.setdefault(here, line)
            continue
        bare = re.sub(r'"[^"]*"(?!\s*=)|#.*', "", content)
        first: Place | None = None
        for key in KEY.finditer(bare):
            name = key[1].strip("\"'")
            place = (*here, name) if first is None else (*first, name)
            first = first or place
            found.setdefault(place, line)
    return found


def _head(name: str, listed: bool, count: dict[str, int]) -> Place:
    """`arms` of `[[arms]]` as ("arms", 0), then ("arms", 1)."""
    parts, place, so_far = [part.strip().strip("\"'") for part in name.split(".")], list[str | int](), ""
    for k, part in enumerate(parts):
        so_far += f".{part}"
        place.append(part)
        if listed and k == len(parts) - 1:
            count[so_far] = count.get(so_far, -1) + 1
            for deeper in [key for key in count if key.startswith(so_far + ".")]:
                del count[deeper]
        if so_far in count:
            place.append(count[so_far])
    return tuple(place)


def page() -> str:
    """The reference page of the problem file, in Markdown."""
    return "\n".join(_page())


def _page() -> Any:
    for title, table, needed in (
        ("The problem", PROBLEM, ["shape", "limit", "noise", "arms"]), ("An arm, `[[arms]]`", ARM, ["name"]),
        ("For simulations: curves of an arm", RESPONSES, []), ("For simulations: what else is hidden", TRUTH, []),
        ("Several truths, `[[scenarios]]`", SCENARIO, []),
    ):  # fmt: skip
        yield f"\n## {title}\n\n| key | | meaning |\n|---|---|---|"
        for key, it in table.items():
            yield f"| `{key}` | {_said(it)}{', needed' if key in needed else ''} | {it.get('description', '')} |"
    kinds: list[tuple[str, Mapping[str, Any], str]] = [("Noise", KINDS, "kind"), ("Curves", CURVES, "curve")]
    for title, registry, by in kinds:
        yield f"\n## {title}\n\n| `{by}` | fields | |\n|---|---|---|"
        for name, kind in registry.items():
            own = [f"`{f.name}`" + ("" if f.default is MISSING else f" ({f.default})") for f in fields(kind) if f.init]
            yield f"| `{name}` | {', '.join(own) or 'none'} | {' '.join((kind.__doc__ or '').split())} |"


def _said(it: Data) -> str:
    """What a value may be, in a few words."""
    if "enum" in it:
        return " or ".join(f"`{x}`" for x in it["enum"])
    low = {"minimum": "at least", "exclusiveMinimum": "above", "exclusiveMaximum": "below", "maximum": "at most"}
    ends = ", ".join(f"{word} {it[key]:g}" for key, word in low.items() if key in it)
    kind = {"array": "a list", "integer": "a whole number", "string": "text"}.get(str(it.get("type")), it.get("type"))
    kind = kind or ("a curve" if it.get("$ref", "").endswith("curve") else "a noise")
    default = f", {it['default']:g} by default" if isinstance(it.get("default"), (int, float)) else ""
    return f"{'a number' if kind == 'number' else kind}{', ' + ends if ends else ''}{default}"


__all__ = ["json_schema", "page", "read"]
