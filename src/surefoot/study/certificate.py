"""What was concluded, at which delta, under which assumptions, from which evidence: as JSON and as a page that prints.

A certificate is a pure function of the journal up to its head, so that anybody who has the journal can make it again.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ..designs.base import STANDINGS, STOPPED
from ..designs.recommend import interval
from ..problem import Problem
from .ahead import tipping
from .checker import MANY, READINGS
from .fold import View
from .page import g, page
from .status import named, sums
from .watch import Watches, looking

FORMAT = 1


@dataclass(frozen=True)
class Certificate:
    content: dict[str, Any]

    @classmethod
    def of(cls, view: View) -> Certificate:
        return cls(json.loads(json.dumps(_content(view), allow_nan=False)))

    def to_dict(self) -> dict[str, Any]:
        return self.content

    def to_json(self) -> str:
        return json.dumps(self.content, indent=2, allow_nan=False) + "\n"

    def to_html(self) -> str:
        return page(self.content)

    def __repr__(self) -> str:
        return f"<Certificate of {self.content['study']!r}: {self.content['concluded']['words']}>"

    def _repr_html_(self) -> str:  # in a frame: the page has a style of its own
        return f'<iframe srcdoc="{escape(self.to_html())}" style="width: 100%; height: 40em; border: 0"></iframe>'


def _content(view: View) -> dict[str, Any]:
    p, verdict = view.problem, view.design.verdict(view.state)
    end = view.concluded or {}
    winner = -1 if end.get("winner") is None else int(end["winner"])
    low, high = verdict.effect_lower, verdict.effect_upper
    if high is None:  # the effect at a safe dose is at most the value
        high = verdict.upper
    ending = end.get("ending", "stopped" if view.stopped else "running")
    arms, given = [], _pulls(view)
    seen = {(row["arm"], row["dose"]): row["mean_effect"] for row in given}
    for i, arm in enumerate(p.arms):
        top, estimate, out = float(verdict.safe[0, i]), _n(verdict.estimate[0, i]), int(verdict.standing[0, i])
        safe = None if out == STOPPED else arm.said(top)  # of an arm whose start looks unsafe no dose means anything
        arms.append(
            {
                "arm": arm.name,
                "standing": "winner" if i == winner else STANDINGS[out],
                "reason": verdict.reason(i),
                "value": {"lower": _n(verdict.lower[0, i]), "upper": _n(verdict.upper[0, i])},
                "safe_dose": safe,
                "safe_is": None if safe is None else arm.safe_is(top),
                "effect_there": {
                    "estimate": seen.get((arm.name, safe)) if p.shape == "levels" else estimate,
                    "lower": None if low is None else _n(low[0, i]),
                    "upper": _n(high[0, i]),
                },
            }
        )
    stopped = view.stopped
    return {
        "surefoot": "certificate",
        "format": FORMAT,
        "study": view.name,
        "created": view.created.at,
        "head": {"seq": view.seq, "hash": view.hash},
        "asked": _estimand(p),
        "problem": p.to_dict(),
        "design": {"name": view.design.name, "options": view.setup["options"], "theorem": view.setup["theorem"]},
        "concluded": {
            "standing": view.standing,
            "ending": ending,
            "winner": p.names[winner] if winner >= 0 else None,
            "words": _words(view, ending, winner),
            "final": bool(end) or bool(stopped),
            "withheld": [p.names[arm] for arm in end.get("withheld", ())],
        },
        "arms": arms,
        "covered": _covered(p),
        "not_covered": _not_covered(view),
        "assumptions": _assumptions(view),
        "pulls": given,
        "exposure": _exposure(view, given),
        "cohorts": [
            {"cohort": c.number, "opened": c.at, "event": c.seq, "n": c.n}
            | {
                k: [None if x is None else a.said(x) for a, x in zip(p.arms, by, strict=True)]
                for k, by in (("dose", c.dose), ("certified", c.certified))
            }
            for c in view.cohorts
        ],
        "deviations": _deviations(view, given),
        "corrections": _notes(view, "corrected"),
        "voids": {"count_as": view.setup["voids"], "subjects": _notes(view, "voided"), "tipping_points": tipping(view)},
        "pauses": _notes(view, "paused", "resumed", "stopped", "closed"),
        "record": _notes(view, "ended", "adopted", "exported", "imported", "checkpointed", "clock"),
        "warnings": _notes(view, "warned"),
        "watches": _watches(view),
        "versions": view.setup["versions"],
    }


def _n(x: Any) -> float | None:
    return float(x) if math.isfinite(x) else None


def _estimand(p: Problem) -> str:
    return (
        f"Which of {len(p.arms)} arms ({', '.join(p.names)}) has the largest value: the mean effect at its largest "
        f"dose whose mean harm is at or below the limit {p.limit:g}"
        + (f", to within {p.tolerance:g} of the best" if p.tolerance else "")
        + "."
    )


def _words(view: View, ending: str, winner: int) -> str:
    p, s = view.problem, view.design.verdict(view.state)
    if winner >= 0:
        best = {"best-arm": "is the best arm", "within-tolerance": f"is within {p.tolerance} of the best arm"}[ending]
        return (
            f"{p.names[winner]} {best}. Its value at the limit is at least {s.lower[0, winner]:.4g}"
            + (f" and at most {s.upper[0, winner]:.4g}" if math.isfinite(s.upper[0, winner]) else "")
            + f"; it is {p.arms[winner].sure(float(s.safe[0, winner]))}"
            + _seen_there(view, winner, float(s.estimate[0, winner]))
        )
    if view.concluded:
        starts = ", ".join(p.names[arm] for arm in view.concluded.get("withheld", ()))
        doubt = f"No arm is named: harm at the start dose of {starts} seems above the limit, against what was assumed."
        return {
            "budget-spent": f"No arm is named: the budget of {p.budget:,} subjects is spent. "
            + view.design.recommendation(view.state).words(p),
            "all-stopped": "No arm is named: every arm was stopped, its start dose having looked unsafe.",
        }.get(ending, doubt)
    if view.stopped:
        stopped = f"No arm is named: the study was stopped before the design had ended ({view.stopped.reason}). "
        return stopped + view.design.recommendation(view.state).words(p)
    return f"No arm is named yet: the study is {view.standing}. This is an interim statement, not a conclusion."


def _covered(p: Problem) -> str:
    line = f"the limit {p.limit:g}" + (f" plus the slack {p.slack:g}" if p.slack else "")
    safe = f"no dose was assigned whose mean harm is above {line}"
    if p.shape == "levels":
        safe = f"no level was assigned but the first of an arm, or one above a level whose mean harm is at most {line}"
    return (
        f"With probability at least {1 - p.delta:g}, whatever the truth within the assumptions: {safe}, "
        f"and an arm that is named is "
        + ("the best." if not p.tolerance else f"within {p.tolerance:g} of the best.")
        + " One delta covers both. Every dose was also certified by a checker that is written apart from the design."
    )


def _not_covered(view: View) -> list[str]:
    binary = view.setup["voids"] == "worst"
    found = [
        "What happens when an assumption below does not hold.",
        "How the arms that are out compare with each other.",
        "Single readings: harm of one subject may be far above the mean harm that is bounded.",
        "A recommendation where no arm is named: of the arm no more is said than p, of its dose nothing is promised.",
        "Doses given that are not the ones assigned (see deviations).",
    ]
    if view.design.verdict(view.state).effect_lower is not None:
        share = getattr(getattr(view.design, "evidence", None), "intervals_share", lambda _: 1.0)
        lost = view.problem.delta * share(view.problem)
        found.append(
            f"The bounds on values and effects: they are a statement of their own, of probability at least "
            f"{1 - lost:g}. The number given as the reason of an elimination is no bound on the value of either arm."
        )
    if any(e.kind == "voided" for e in view.notes):
        found.append(
            "Who is the best arm, should drop-outs have depended on their readings (see the tipping points); safety "
            + ("is covered even then, since drop-outs count as harmed." if binary else "is not covered then either.")
        )
    if view.setup.get("blocks"):
        found.append("Drift within a cohort: blocks do not say who came first, so that no watch looks for it.")
    if view.problem.squares:
        found.append(
            "What the watches would see: they rest on sigmas, and are silent on readings whose sigma is not known."
        )
    return found


def _assumptions(view: View) -> list[str]:
    p = view.problem
    noise = [f"{k} {n.assumption()}" for k, n in zip(READINGS, p.noises, strict=True)]
    found = [
        "The start dose of every arm is safe: " + ", ".join(f"{a.name} {a.said(a.start)}" for a in p.arms) + ".",
        {
            "linear": "Mean effect and mean harm are lines through 0 in the dose, with slopes at or above 0.",
            "monotonic": "Mean effect and mean harm never fall as the dose rises; harm rises by at most its Lipschitz "
            "constant a unit of dose: " + ", ".join(f"{a.name} {a.lipschitz:g}" for a in p.arms) + ".",
            "levels": "Mean effect and mean harm never fall from one level to the next.",
        }[p.shape],
        f"Noise: {', '.join(noise)}; subjects are independent of each other and alike over time.",
        "The two readings of one subject "
        + ("may depend on each other." if p.signals == "any" else "do not depend on each other."),
        "Subjects take the assignments in any way that does not look at what their readings would be.",
    ]
    if view.setup.get("pipeline", 1) > 1:
        found.append(
            "Harms counted when all of a cohort were in, effects when all were in, in the order of the cohorts: who "
            "answers early may differ from who answers late."
        )
    if view.setup["voids"] == "worst":
        effect, harm = view.setup["worst"]
        found.append(
            f"Drop-outs count as the worst reading (harm {harm:g}, effect {effect:g}), so safety needs no assumption "
            "about them; who is "
            "the best arm does."
        )
    elif any(e.kind == "voided" for e in view.notes):
        found.append(
            "Where a subject dropped out and another took the place, dropping out did not depend on the readings; "
            "where drop-outs were counted as a reading instead, the pauses say as which."
        )
    if any(e.kind == "corrected" for e in view.notes):
        found.append("Corrections were made because readings were wrong, not because of what followed from them.")
    return found


def _pulls(view: View) -> list[dict[str, Any]]:
    """What was read at every dose, with 95% intervals of that dose alone, and whether it seems to be safe."""
    from scipy.optimize import isotonic_regression  # as long to import as all the rest

    p, found = view.problem, list[dict[str, Any]]()
    for i, (arm, rows) in enumerate(zip(p.arms, sums(view), strict=True)):
        if not rows:
            continue
        dose, n, *totals = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        harms = isotonic_regression(totals[1] / n, weights=n).x
        ends = [interval(noise, total, n) for noise, total in zip(p.noises, totals, strict=True)]
        declared = (dose <= arm.start) & (view.state.standing[0, i] != STOPPED)
        for k, x in enumerate(dose):
            row = {"arm": arm.name, "dose": arm.said(float(x)), "pulls": int(n[k])}
            for key, total, (low, high) in zip(READINGS, totals, ends, strict=True):
                row |= {f"mean_{key}": total[k] / n[k]}
                row |= {f"{key}_interval": None if p.squares else [float(low[k]), float(high[k])]}
            found.append(row | {"seems": "declared safe" if declared[k] else _seems(p, harms[k])})
    return found


def _seen_there(view: View, winner: int, effect: float) -> str:
    """Of levels the estimate is that of the level that seems to be the largest safe one, not of the one shown so."""
    if view.problem.shape != "levels":
        return f", where its effect was estimated as {effect:.4g}."
    seems = view.problem.arms[winner].label(float(view.design.recommendation(view.state).dose[0]))
    return f"; by estimate, without promise, it is safe up to {seems}, with an effect of {effect:.4g} there."


def _seems(p: Problem, harm: float) -> str:
    """Where a mean harm lies; it is an estimate."""
    return "above limit + slack" if harm > p.ceiling else "above the limit" if harm > p.limit else "within the limit"


def _exposure(view: View, rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many subjects got doses whose mean harm seems to be above the limit, and above limit + slack: estimates that
    never fall with the dose, no more is known; and above the largest that can still be safe (shown, at 1 - delta)."""
    p = view.problem
    last = {arm.name: float(view.state.unsafe[0, i]) for i, arm in enumerate(p.arms)}
    place = {arm.name: arm.place for arm in p.arms}
    shown = [row for row in rows if float(place[row["arm"]](row["dose"])) > last[row["arm"]]]
    seems = {key: sum(row["pulls"] for row in rows if row["seems"] in which) for key, which in SEEMS.items()}
    return {"subjects": sum(row["pulls"] for row in rows), **seems, "shown_above_limit": sum(r["pulls"] for r in shown)}


SEEMS = {
    "seem_above_limit": ("above the limit", "above limit + slack"),
    "seem_above_ceiling": ("above limit + slack",),
}


def _deviations(view: View, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Doses assigned that the evidence from before, as it is now known, does not certify; and all doses given that are
    not the ones assigned."""
    found = []
    corrected = any(e.kind in ("corrected", "closed") for e in view.notes)
    beyond = sum(row["pulls"] for row in rows) > view.problem.budget
    for given, theorem in view.replay():
        for arm, n in enumerate(given.n if corrected else ()):
            if n and (no := theorem.refusal(arm, given.dose[arm])):
                said = f"not certified by the corrected evidence: {no}"
                found.append(_deviation(view, given.number, arm, given.dose[arm], said))
        for subject, arm in given.subjects() if given.blocks else ():
            came = view.reading(subject).get("n", 0)
            if came > (1 if beyond else MANY) * given.n[arm]:
                said = f"{came:,} subjects were told as a block of {given.n[arm]:,}"
                found.append(_deviation(view, given.number, arm, given.dose[arm], said))
        for subject, arm in given.subjects():
            dose = view.told["dose"][subject]
            if dose == dose:  # another than the one assigned
                no = theorem.refusal(arm, dose, free=True)
                said = f"given instead of {g(view.problem.arms[arm].said(given.dose[arm]))}; "
                said += f"not certified: {no}" if no else "certified too"
                found.append(_deviation(view, given.number, arm, dose, said))
    return found


def _deviation(view: View, cohort: int, arm: int, dose: float, said: str) -> dict[str, Any]:
    return {"cohort": cohort, "arm": view.problem.names[arm], "dose": view.problem.arms[arm].said(dose), "what": said}


def _notes(view: View, *kinds: str) -> list[dict[str, Any]]:
    found = []
    for e in view.notes:
        if e.kind in kinds:
            data = named(view, e)
            row = {"event": e.seq, "at": e.at, "actor": e.actor, "what": e.kind, "reason": e.reason}
            row |= {k: data[k] for k in ("id", "n", "effect", "harm", "dose", "was", "by", "voids", "key") if k in data}
            found.append(row)
    return found


def _watches(view: View) -> dict[str, Any]:
    level = view.setup["watch"]["level"]
    each = Watches(view.problem, level).level
    corrected = [e.seq for e in view.notes if e.kind == "corrected"]
    return {
        "level": level,
        "do": view.setup["watch"]["do"],
        "each": [
            {"watch": name, "looks_for": about, "level": each[name]}
            for name, about in looking(view.problem, bool(view.setup.get("blocks"))).items()
        ],
        "fired": [
            {"watch": e.data["watch"], "arm": view.problem.names[e.data["arm"]], "reading": e.data["reading"]}
            | {"event": e.seq, "corrected": next((x for x in corrected if x > e.seq), None)}  # then it looks anew
            for e in view.notes
            if e.data.get("by") == "watch"
        ],
    }
