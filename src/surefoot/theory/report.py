"""All statements about one problem, as plain numbers and as a table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..problem import Problem
from ..scenario import Scenario
from .certified import certified_lower_bound
from .common import NotStated, gaps
from .linear import characteristic_time, linear_complexity, linear_corollary, linear_lower_bound, linear_upper_bound
from .monotonic import monotonic_corollary, monotonic_lower_bound, monotonic_upper_bound


def summary(problem: Problem, scenario: Scenario) -> dict[str, Any]:
    """All of the above as plain numbers for JSON; what is not available is {"why": ...} in its place."""
    truth, linear = scenario.truth(problem), problem.shape == "linear"

    def tell(statement: Callable[[Problem, Scenario], Any]) -> Any:
        try:
            return statement(problem, scenario)
        except NotStated as no:
            return {"why": str(no)}

    def part(told: Any, key: str) -> Any:
        return told if isinstance(told, dict) else getattr(told, key)

    def total(told: Any, pulls: Callable[[Any], Any], by: str, holds: str) -> dict[str, Any]:
        return told if isinstance(told, dict) else {"pulls": _plain(pulls(told)), "by": by, "holds": holds}

    time: Any = {"why": "it is for the linear shape: of the monotonic one, whole curves would have to be told apart"}
    N: Any = {"why": "Theorem 2 is about the linear shape"}
    case: Any = {"why": "cases are of the linear shape"}
    if linear:
        lower, lower_by = tell(linear_lower_bound), "Theorem 1, times sigma^2"
        time, N = tell(characteristic_time), tell(linear_complexity)
        upper, upper_by = tell(linear_upper_bound), "Lemma 10, with L_i of Lemma 9"
        case, corollary = part(upper, "case"), tell(linear_corollary)
    else:
        lower, lower_by = tell(monotonic_lower_bound), "a change of measure for every rival"
        upper, upper_by = tell(monotonic_upper_bound), "Theorem 3"
        corollary = tell(monotonic_corollary)

    certified = tell(certified_lower_bound)
    unsafe = "its start dose is not safe, so it has no value"
    columns = {
        "value": (np.where(np.isnan(truth.dose), np.nan, truth.value), unsafe),
        "largest_safe_dose": (truth.dose, unsafe),
        "gap": (np.where(np.isnan(truth.dose), np.nan, gaps(problem, scenario)), unsafe),
        "lower_bound": (lower, ""),
        "share": (part(time, "shares"), ""),
        "certified": (part(certified, "by_arm"), ""),
        "case": (case, "it is the best arm"),
        "epochs": (part(upper, "epochs"), ""),
        "pulls": (part(upper, "by_arm"), ""),
        "complexity": (N, "it is the best arm"),
    }
    arms: list[dict[str, Any]] = [{"name": name} for name in problem.names]
    for key, (cells, why) in columns.items():
        for k, row in enumerate(arms):
            row[key] = cells if isinstance(cells, dict) else _plain(cells[k], why)

    order = problem.sigma**2 * math.log(len(arms) / problem.delta)
    mean, hidden = "for the mean", "up to constants and logarithmic factors (O-tilde)"
    return {
        "scenario": scenario.name,
        "shape": problem.shape,
        "delta": problem.delta,
        "best": problem.names[truth.best],
        "gaps": {row["name"]: row["gap"] for row in arms},
        "lower_bound": total(lower, np.sum, lower_by, mean),
        "characteristic_time": total(time, lambda t: t.pulls, "T* kl(delta, 1 - delta)", mean)
        | ({} if isinstance(time, dict) else {"time": time.time}),
        "certified_bound": total(certified, lambda c: c.pulls, "doses must be certified before they are given", mean)
        | ({} if isinstance(certified, dict) else {"rate": _plain(certified.rate), "over": _plain(certified.over)}),
        "upper_bound": total(upper, lambda u: u.pulls, upper_by, "with probability 1 - delta"),
        "order": total(N, lambda n: order * np.nansum(n), "Theorem 2", hidden),
        "corollary": total(corollary, float, "Corollary 1" if linear else "Corollary 2", hidden),
        "arms": arms,
    }


def _plain(x: Any, why: str = "") -> Any:
    """A number for JSON; `why` where there is none."""
    if x is None or math.isnan(x):
        return {"why": why}
    return x if isinstance(x, int) else float(x) if math.isfinite(x) else {"why": "infinite, or above 1e308"}


SAID = ("pulls", "by", "holds")


def show(found: dict[str, Any]) -> Any:
    """A summary as a table for the terminal."""
    from rich.console import Group

    from ..tables import Fit

    def cell(x: Any) -> str:
        if isinstance(x, float) and not math.isfinite(x):
            return "none"
        return f"{x:,.4g}" if isinstance(x, (int, float)) else "" if isinstance(x, dict) else str(x)

    bounds = []
    for key in ("lower_bound", "characteristic_time", "certified_bound", "upper_bound", "order", "corollary"):
        bound = found[key]
        said = {"pulls": "not stated", "by": bound["why"]} if "why" in bound else {k: cell(bound[k]) for k in SAID}
        bounds.append({"": key.replace("_", " "), **said})
    names = [key for key in found["arms"][0] if any(not isinstance(arm[key], dict) for arm in found["arms"])]
    arms = [{name.replace("_", " "): cell(arm[name]) for name in names} for arm in found["arms"]]
    title = f"{found['scenario']}: best is {found['best']}, delta {found['delta']:g}"
    return Group(Fit(bounds, title), Fit(arms, keys=("name",)))
