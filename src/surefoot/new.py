"""A commented problem file, from a few answers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from textwrap import wrap
from typing import Any

from .schema import ARM, PROBLEM, RESPONSES

QUESTIONS: dict[str, tuple[str, str]] = {  # what is asked, and what is taken if nothing is answered
    "shape": ("What is known of the responses: linear, monotonic or levels?", "monotonic"),
    "arms": ("The arms, commas between", "A, B"),
    "limit": ("Harm must stay at or below", "0.3"),
    "slack": ("How far above that may a pull go", "0.2"),
    "delta": ("Error probability, for a wrong arm or an unsafe pull together", "0.05"),
    "effect": ("The effect reading: its standard deviation, a guess of it (guess:0.4), or yes-no", "0.4"),
    "harm": ("The harm reading: its standard deviation, a guess of it (guess:0.4), or yes-no", "yes-no"),
    "start": ("A dose known to be safe, in every arm", "0.05"),
    "max": ("The largest dose", "3.0"),
    "lipschitz": ("By how much harm rises at most, for one unit of dose", "1.0"),
    "levels": ("The levels, commas between, the first known to be safe", "1, 2, 3, 4"),
}


def asked(shape: str) -> list[str]:
    """The questions that matter for a shape."""
    without = {"linear": ("slack", "lipschitz", "levels"), "monotonic": ("levels",)}
    return [key for key in QUESTIONS if key not in without.get(shape, ("start", "max", "lipschitz"))]


def write(answers: Mapping[str, str], truth: bool = True) -> str:
    """The file: every key with what it means. With `truth`, curves to simulate with, as a first guess to be changed."""
    shape = answers["shape"]
    a = {key: answers.get(key) or QUESTIONS[key][1] for key in asked(shape)}
    lines = ["# A problem for surefoot: `surefoot advise` says what it costs, `surefoot simulate` what to expect,",
             "# `surefoot study create` runs it. `surefoot schema` is for your editor."]  # fmt: skip
    lines += _key("shape", json.dumps(shape), PROBLEM)
    lines += [line for key in ("limit", "slack", "delta") if key in a for line in _key(key, a[key], PROBLEM)]
    lines += _key("noise", f"{{ effect = {_noise(a['effect'])}, harm = {_noise(a['harm'])} }}", PROBLEM)
    for key, value in (("signals", '"any"'), ("budget", "1000")):
        lines += [*_key(key, value, PROBLEM)[:-1], f"# {key} = {value}"]
    levels = [_word(x) for x in a["levels"].split(",")] if "levels" in a else []
    for k, name in enumerate(x.strip() for x in a["arms"].split(",")):
        lines += ["", "[[arms]]", f"name = {json.dumps(name)}"]
        own = (
            {"levels": f"[{', '.join(levels)}]"}
            if levels
            else {x: a[x] for x in ("start", "max", "lipschitz") if x in a}
        )
        for key, value in own.items():
            lines += [f"{key} = {value}"] if k else _key(key, value, ARM)
        if truth:
            lines += [] if k else ["", "# For simulations alone, and only a guess: what is not known. Change it."]
            lines += [f"{key} = {_curve(key, shape, a, k, len(levels))}" for key in RESPONSES]
    return "\n".join(lines) + "\n"


def _key(key: str, value: str, table: Mapping[str, Any]) -> list[str]:
    return ["", *(f"# {line}" for line in wrap(table[key]["description"], 116)), f"{key} = {value}"]


def _noise(answer: str) -> str:
    if answer.strip() == "yes-no":
        return '{ kind = "bernoulli" }'
    guess, colon, sigma = answer.partition(":")
    if colon and guess.strip() == "guess":
        return f'{{ kind = "gaussian-guess", guess = {sigma.strip()} }}'
    return f'{{ kind = "gaussian", sigma = {answer} }}'


def _word(text: str) -> str:
    try:
        float(text)
    except ValueError:
        return json.dumps(text.strip())
    return text.strip()


def _curve(key: str, shape: str, a: Mapping[str, str], k: int, levels: int) -> str:
    """Something that fits: harm at the limit two thirds of the way, the first arm the best; beside rare harms an effect
    that is rare, too."""
    top = float(a["limit"]) if key == "harm" else (0.6 if k == 0 else 0.3)
    if key == "effect" and a["effect"].strip() == a["harm"].strip() == "yes-no":
        top *= min(1.0, 20 * float(a["limit"]))
    most = 0.95 if a[key].strip() == "yes-no" else math.inf
    if shape == "levels":
        values = [round(top * (j + 1) / (0.7 * levels), 3) for j in range(levels)]
        return f'{{ curve = "table", value = [{", ".join(str(min(x, most)) for x in values)}] }}'
    low, high = float(a["start"]), float(a["max"])
    at = low + 0.66 * (high - low)
    if shape == "linear":
        return f'{{ curve = "linear", slope = {min(top / at, most / high):.4g} }}'
    steep = float(a["lipschitz"]) if key == "harm" else math.inf
    there = min(top, steep * (at - low))
    value = f"[0.0, {there:.4g}, {min(1.5 * top, max(most, there), there + steep * (high - at)):.4g}]"
    return f'{{ curve = "table", dose = [{low:g}, {at:.4g}, {high:g}], value = {value} }}'
