"""What jobs do, in a process of its own: one JSON line in, lines of progress, one result out.

It may read the database; it writes nothing that lasts.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..designs.recommend import isotonic
from ..problem import SurefootError
from ..scenario import Linear, Scenario, Table
from ..study import Study
from ..study.ahead import merged, same_arms
from ..study.fold import View
from ..study.rehearsal import rehearse
from ..study.status import doses
from ..study.text import to_csv

FARTHEST = 20_000  # subjects that a forecast looks ahead
PARTS = 5  # that it is played in, to say how far it is
MEMORY = 4 << 30  # bytes that one may take
Say = Callable[[float, str], None]


def preview(say: Say, url: str, study: str, most: int = 6) -> Any:
    """The decision table, of the first arms that the open cohort has."""
    it = Study.open(url, study, actor="page")
    rows = it.preview()
    names = list(dict.fromkeys(row["arm"] for row in rows))
    rows = [row for row in rows if row["arm"] in names[:most]]
    return {"seq": it.look(lambda view: view.seq), "arms": names[:most], "left_out": max(len(names) - most, 0),
            "rows": rows, "table": merged(rows)}  # fmt: skip


def forecast(say: Say, url: str, study: str, trials: int = 400, text: str | None = None) -> Any:
    """Subjects still to go: if things are as they were read so far, or as scenarios in TOML say. Trials that would take
    more than FARTHEST are given up there."""
    from .lab_work import read

    it = Study.open(url, study, actor="page")
    it.look(_within_reach)
    if text:
        problem, scenarios = read(text)
        it.look(lambda view: same_arms(view, problem, "this text"))
    else:
        scenarios = [it.look(as_read)]
    if not 1 <= trials <= 20_000:
        raise SurefootError(f"a forecast plays 1 to 20,000 trials; got {trials:,}")
    out = []
    for k, scenario in enumerate(scenarios):
        rows, sizes = [], [len(x) for x in np.array_split(np.arange(trials), min(PARTS, trials))]
        for j, size in enumerate(sizes):
            say((k + j / len(sizes)) / len(scenarios), f"{scenario.name}: {sum(sizes[:j]):,} of {trials:,}")
            rows.append(it.forecast(scenario, size, seed=1000 * k + j)[0])
        out.append(_together(rows, sizes, scenario.name))
    return {"forecasts": out, "farthest": FARTHEST}


def _within_reach(view: View) -> None:
    """An end to every trial. The view is of this process alone."""
    view.problem = view.problem.but(budget=min(view.problem.budget, view.subjects + FARTHEST))
    view.state = replace(view.state, problem=view.problem)


def _together(rows: list[dict[str, Any]], sizes: list[int], name: str) -> dict[str, Any]:
    """Parts of a forecast as one; quantiles are means of those of the parts."""
    total = sum(sizes)
    pulls = {
        k: sum(r["pulls"][k] * s for r, s in zip(rows, sizes, strict=True)) / total
        for k in ("mean", "p10", "p50", "p90")
    }
    ends: dict[str, float] = {}
    best: dict[str, float] = {}
    advised: dict[str, float] = {}
    for row, size in zip(rows, sizes, strict=True):
        of = (ends, "endings", 1.0), (best, "winners", float(size)), (advised, "recommended", float(size))
        for into, key, by in of:
            for what, share in row[key].items():
                into[what] = into.get(what, 0.0) + share * by / total
    found = {"endings": ends, "winners": best, "recommended": advised}
    return {"scenario": name, "trials": total, "pulls": pulls, **found}


def as_read(view: View) -> Scenario:
    """A truth made of the means that were read: a line through 0, or means that never fall, carried on upwards."""
    p, at = view.problem, doses(view)
    curves: dict[str, list[Any]] = {"effect": [], "harm": []}
    for i, arm in enumerate(p.arms):
        rows = at[i]
        for r, key in enumerate(curves):
            if p.shape == "linear":
                square = sum(row["n"] * row["dose"] ** 2 for row in rows)
                slope = sum(row["n"] * row["dose"] * row[key] for row in rows) / square if square else 0.0
                least = 1e-6 if key == "harm" else 0.0
                curves[key].append(Linear(max(slope, least)))
                continue
            x = [row["dose"] for row in rows] or [arm.start]
            y = isotonic(
                np.array([row[key] * row["n"] for row in rows] or [0.0]), np.array([row["n"] for row in rows] or [1])
            ).tolist()
            rise = (y[-1] - y[0]) / (x[-1] - x[0]) if x[-1] > x[0] else 0.0
            if key == "harm":
                rise = min(rise, arm.lipschitz) if p.shape == "monotonic" else max(rise, 0.05)
            if x[0] > arm.start:
                x, y = [arm.start, *x], [y[0], *y]
            if x[-1] < arm.largest:
                x, y = [*x, arm.largest], [*y, y[-1] + rise * (arm.largest - x[-1])]
            if p.noises[r].binary:
                y = [min(max(v, 0.0), 1.0) for v in y]
            if len(x) == 1:
                x, y = [x[0], x[0] + 1.0], [y[0], y[0]]
            curves[key].append(Table(tuple(x), tuple(y)))
    return Scenario(effect=tuple(curves["effect"]), harm=tuple(curves["harm"]), name="as read so far")


def look(say: Say, url: str, study: str, command: str, actor: str, arguments: dict[str, Any]) -> Any:
    if command == "tell_many":
        arguments = {"rows": io.StringIO(arguments["text"])}
    return rehearse(url, study, command, actor=actor, **arguments)


def verify(say: Say, url: str, study: str) -> Any:
    say(0.1, "reading the journal")
    return Study.open(url, study, actor="page").verify()


def certificate(say: Say, url: str, study: str) -> Any:
    made = Study.open(url, study, actor="page").certificate()
    return {"json": made.to_json(), "html": made.to_html()}


def readings(say: Say, url: str, study: str) -> Any:
    return to_csv(Study.open(url, study, actor="page").readings())


WORK: dict[str, Callable[..., Any]] = {f.__name__: f for f in (preview, forecast, look, verify, certificate, readings)}


def plain(x: Any) -> Any:
    """For JSON: no infinities, no arrays."""
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, np.generic):
        x = x.item()
    return None if isinstance(x, float) and not math.isfinite(x) else x


def main() -> None:
    out = sys.stdout
    with contextlib.suppress(OSError):
        os.nice(10)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    asked = json.loads(sys.stdin.readline() or "{}")
    if not asked:
        return

    def answer(**said: Any) -> None:
        print(json.dumps(plain(said), allow_nan=False), file=out, flush=True)

    try:
        kind = asked.pop("kind")
        if kind not in WORK:
            from .lab_work import WORK as MORE

            WORK.update(MORE)
        answer(result=WORK[kind](lambda part, words: answer(progress=part, words=words), **asked))
    except SurefootError as error:
        answer(error=str(error))
    except MemoryError:
        answer(error="it needed more memory than a job may have")
    except Exception as error:
        answer(error=f"it failed, and this is a defect: {type(error).__name__}")


if __name__ == "__main__":
    main()
