"""What was concluded, at which delta, under which assumptions, from which evidence: as JSON and as a page that prints.

A certificate is a pure function of the journal up to its head, so that anybody who has the journal can make it again.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..designs.base import STANDINGS
from ..problem import Problem
from .ahead import tipping
from .fold import View, plain
from .watch import WATCHES, Watches

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
        return _page(self.content)


def _content(view: View) -> dict[str, Any]:
    p, verdict = view.problem, view.design.verdict(view.state)
    end = view.concluded or {}
    winner = -1 if end.get("winner") is None else int(end["winner"])
    low, high = verdict.effect_lower, verdict.effect_upper
    if low is None:  # the effect there is at most the value, and the design's lower bound on the value is one on it
        low, high = verdict.lower, verdict.upper
    ending = end.get("ending", "running")
    arms = []
    for i, arm in enumerate(p.arms):
        arms.append(
            {
                "arm": arm.name,
                "standing": "winner" if i == winner else STANDINGS[int(verdict.standing[0, i])],
                "reason": verdict.reason(i),
                "value": {"lower": _n(verdict.lower[0, i]), "upper": _n(verdict.upper[0, i])},
                "certified_dose": arm.said(float(verdict.safe[0, i])),
                "effect_there": {
                    "estimate": _n(verdict.estimate[0, i]),
                    "lower": _n(low[0, i]),
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
        "problem": plain(p),
        "design": {"name": view.design.name, "options": view.setup["options"], "theorem": view.setup["theorem"]},
        "concluded": {
            "standing": view.standing,
            "ending": ending,
            "winner": p.names[winner] if winner >= 0 else None,
            "words": _words(view, ending, winner),
            "final": bool(end) or bool(stopped),
            "withheld": end.get("withheld"),
        },
        "arms": arms,
        "covered": _covered(p),
        "not_covered": _not_covered(view),
        "assumptions": _assumptions(view),
        "pulls": _pulls(view),
        "exposure": _exposure(view),
        "cohorts": [
            {"cohort": c.number, "opened": c.at, "event": c.seq, "n": c.n}
            | {
                k: [None if x is None else a.said(x) for a, x in zip(p.arms, by, strict=True)]
                for k, by in (("dose", c.dose), ("certified", c.certified))
            }
            for c in view.cohorts
        ],
        "deviations": _deviations(view),
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
            + f"; the largest dose certified for it is {p.arms[winner].label(s.safe[0, winner])}, where its effect was "
            f"estimated as {s.estimate[0, winner]:.4g}."
        )
    if view.concluded:
        return {
            "budget-spent": f"No arm is named: the budget is spent. {view.design.recommendation(view.state).words(p)}",
            "all-stopped": "No arm is named: every arm was stopped, its start dose having looked unsafe.",
        }.get(
            ending, f"No arm is named: {view.concluded.get('withheld')} is above the limit, against what was assumed."
        )
    if view.stopped:
        return f"No arm is named: the study was stopped before the design had ended ({view.stopped.reason})."
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
    return found


def _assumptions(view: View) -> list[str]:
    p = view.problem
    noise = [f"{k} {n.assumption()}" for k, n in zip(("effect", "harm"), p.noises, strict=True)]
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
    if view.setup["voids"] == "worst":
        found.append(
            "Drop-outs count as the worst reading (harm 1, effect 0), so safety needs no assumption about them; who is "
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
    sums: dict[tuple[int, float], list[float]] = {}
    for given in view.cohorts:
        for at, came in sorted((given.came if given.closed else view.sums(given)).items()):
            into = sums.setdefault(at, [0, 0.0, 0.0])
            for k in range(3):
                into[k] += came[k]
    return [
        {"arm": view.problem.names[arm], "dose": view.problem.arms[arm].said(dose), "pulls": int(n)}
        | {"mean_effect": e / n, "mean_harm": h / n, "seems": _seems(view.problem, h / n)}
        for (arm, dose), (n, e, h) in sorted(sums.items())
    ]


def _seems(p: Problem, harm: float) -> str:
    """Where the mean harm of those who got a dose lies; an estimate."""
    return "above limit + slack" if harm > p.ceiling else "above the limit" if harm > p.limit else "within the limit"


def _exposure(view: View) -> dict[str, int]:
    """How many subjects got doses whose observed mean harm is above the limit, and above limit + slack (of these no
    more is known), and doses above the largest that can still be safe (that is shown, at 1 - delta)."""
    rows, p = _pulls(view), view.problem
    last = {arm.name: float(view.state.unsafe[0, i]) for i, arm in enumerate(p.arms)}
    place = {arm.name: arm.place for arm in p.arms}
    shown = [row for row in rows if float(place[row["arm"]](row["dose"])) > last[row["arm"]]]
    seems = {key: sum(row["pulls"] for row in rows if row["seems"] in which) for key, which in SEEMS.items()}
    return {"subjects": sum(row["pulls"] for row in rows), **seems, "shown_above_limit": sum(r["pulls"] for r in shown)}


SEEMS = {
    "seem_above_limit": ("above the limit", "above limit + slack"),
    "seem_above_ceiling": ("above limit + slack",),
}


def _deviations(view: View) -> list[dict[str, Any]]:
    """Doses assigned that the evidence from before, as it is now known, does not certify; and all doses given that are
    not the ones assigned."""
    found = []
    corrected = any(e.kind in ("corrected", "closed") for e in view.notes)
    for given, theorem in view.replay():
        if given is None:
            continue
        for arm, n in enumerate(given.n if corrected else ()):
            if n and (no := theorem.refusal(arm, given.dose[arm])):
                said = f"not certified by the corrected evidence: {no}"
                found.append(_deviation(view, given.number, arm, given.dose[arm], said))
        for subject, arm in given.subjects() if view.other else ():
            if (dose := view.other.get(subject)) is not None:
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
            data = e.data
            row = {"event": e.seq, "at": e.at, "actor": e.actor, "what": e.kind, "reason": e.reason}
            if "id" in data:
                row["id"] = view.identify(data["id"])
            row |= {k: data[k] for k in ("effect", "harm", "dose", "was", "by", "voids", "back", "key") if k in data}
            found.append(row)
    return found


def _watches(view: View) -> dict[str, Any]:
    level = view.setup["watch"]["level"]
    each = Watches(view.problem, level).level
    return {
        "level": level,
        "do": view.setup["watch"]["do"],
        "each": [{"watch": name, "looks_for": about, "level": each[name]} for name, about in WATCHES.items()],
        "fired": [
            {"watch": w, "arm": view.problem.names[arm], "reading": reading} for w, arm, reading in sorted(view.fired)
        ],
    }


# The page
STYLE = """
@page { size: A4; margin: 11mm 14mm }
* { box-sizing: border-box }
body { font: 10px/1.36 "Helvetica Neue", Helvetica, Arial, sans-serif; color: #1b1f24; max-width: 186mm;
  margin: 8mm auto; padding: 0 4mm }
h1 { font-size: 19px; margin: 0 0 1px; letter-spacing: -.01em }
h2 { font-size: 10.5px; text-transform: uppercase; letter-spacing: .06em; color: #0072b2; margin: 10px 0 3px;
  border-bottom: 1px solid #d5dbe1; padding-bottom: 2px }
p, ul { margin: 3px 0 } ul { padding-left: 15px } li { margin: 1px 0 }
.sub { color: #57606a } .verdict { font-size: 13.5px; line-height: 1.4; border-left: 4px solid #009e73;
  background: #f1f8f5; padding: 7px 10px; margin: 8px 0 }
.verdict.open { border-color: #e69f00; background: #fdf7ea }
table { border-collapse: collapse; width: 100%; margin: 3px 0; font-variant-numeric: tabular-nums }
th { text-align: left; font-weight: 600; color: #57606a; border-bottom: 1px solid #aab4be; padding: 2px 8px 2px 0 }
td { border-bottom: 1px solid #e8ecef; padding: 2px 8px 2px 0; vertical-align: top }
td:first-child { white-space: nowrap } td.n, th.n { text-align: right }
tr.win td { font-weight: 600; background: #f1f8f5 }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 0 18px } .none { color: #8a949e }
code { font: 9.5px ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere }
footer { margin-top: 12px; border-top: 1px solid #d5dbe1; padding-top: 5px; color: #57606a; font-size: 9.5px }
h2, tr { break-after: avoid; break-inside: avoid } tr { break-after: auto }
@media print { body { margin: 0; padding: 0 } }
"""


def _page(c: Mapping[str, Any]) -> str:
    e, done = html.escape, c["concluded"]
    arms = _rows(
        ["arm", "standing", "value at the limit", "certified dose", "effect there", "why"],
        [
            [a["arm"], a["standing"], f"{g(a['value']['lower'])} to {g(a['value']['upper'])}", g(a["certified_dose"]),
             g(a["effect_there"]["estimate"]), a["reason"]]
            for a in c["arms"]
        ],
        mark=[a["standing"] == "winner" for a in c["arms"]],
    )  # fmt: skip
    doses = _by_dose(c["pulls"])
    half = (len(doses) + 1) // 2
    pulls = "".join(
        f"<div>{_rows(['arm', 'dose', 'pulls', 'mean effect', 'mean harm'], part, numbers=(1, 2, 3, 4))}</div>"
        for part in (doses[:half], doses[half:])
        if part
    )

    def lines(rows: list[Any], say: Any) -> list[str]:
        return [f"{n['at'][:16].replace('T', ' ')} {say(n)} ({n['actor']})" for n in rows]

    notes = {
        "Deviations": [f"cohort {d['cohort']}, {d['arm']} at {g(d['dose'])}: {d['what']}" for d in c["deviations"]],
        "Corrections": lines(c["corrections"], lambda n: f"{n['id']}: {_change(n)}: {n['reason']}"),
        "Drop-outs": lines(c["voids"]["subjects"], lambda n: f"{n['id']}: {n['reason']}")
        + [_tip(t) for t in c["voids"]["tipping_points"]],
        "Pauses and stops": lines(c["pauses"], lambda n: f"{n['what']}: {n['reason']}"),
        "Warnings": lines(c["warnings"], lambda n: n["reason"]),
    }
    along = "".join(f"<p><b>{name}.</b></p>{_list(rows)}" for name, rows in notes.items() if rows)
    if none := [name.lower() for name, rows in notes.items() if not rows]:
        along += f"<p class=none>No {', no '.join(none)}.</p>"
    watches = c["watches"]
    fired = [f"{f['watch']} ({f['arm']}, {f['reading']})" for f in watches["fired"]] or ["none fired"]
    v, head = c["versions"], c["head"]
    title, sub = f"Study {c['study']}", f"design {c['design']['name']} · delta {c['problem']['delta']:g}"
    word = done["ending"] if done["standing"] == "ended" else done["standing"]
    seen = f"Watched at a joint level of {watches['level']:g} ({', '.join(w['watch'] for w in watches['each'])})"
    embedded = json.dumps(c).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{e(title)}: certificate</title><style>{STYLE}</style></head><body>
<h1>{e(title)}</h1>
<div class="sub">Certificate · begun {e(c["created"][:10])} · {e(sub)}</div>
<div class="verdict{"" if done["winner"] else " open"}"><b>{e(word)}.</b> {e(done["words"])}</div>
<h2>What was asked</h2><p>{e(c["asked"])}</p>
<h2>What was found</h2>{arms}
<div class="two"><div><h2>What delta covers</h2><p>{e(c["covered"])}</p></div>
<div><h2>What it does not</h2>{_list(c["not_covered"])}</div></div>
<h2>Assumptions</h2>{_list(c["assumptions"])}
<p class="sub">{e(seen)}: {e(", ".join(fired))}.</p>
<h2>Pulls by arm and dose</h2><div class="two">{pulls}</div>
<h2>Along the way</h2>{along}
<footer>surefoot {e(v["surefoot"])}, numpy {e(v["numpy"])}, python {e(v["python"])} when the study began.
Theorem {e(c["design"]["theorem"]["name"])}.
Journal head: event {head["seq"]:,}, <code>{e(head["hash"])}</code>. Anybody with the journal can make this page again
and check it: <code>surefoot study verify --certificate</code> this file</footer>
<script type="application/json" id="certificate">{embedded}</script>
</body></html>
"""


def _by_dose(pulls: list[dict[str, Any]], most: int = 24) -> list[list[str]]:
    """A row an arm and dose; where that would not go on a page, neighbouring doses share one (the JSON has all)."""
    names = list(dict.fromkeys(row["arm"] for row in pulls))
    each = len(pulls) if len(pulls) <= most else max(most // len(names), 2)
    rows = []
    for name in names:
        own = [row for row in pulls if row["arm"] == name]
        for k in range(min(each, len(own))):
            part = own[k * len(own) // min(each, len(own)) : (k + 1) * len(own) // min(each, len(own))]
            n = sum(row["pulls"] for row in part)
            means = [sum(row["pulls"] * row[key] for row in part) / n for key in ("mean_effect", "mean_harm")]
            dose = g(part[0]["dose"]) + (f" to {g(part[-1]['dose'])}" if len(part) > 1 else "")
            rows.append([name, dose, f"{n:,}", *map(g, means)])
    return rows


def g(x: float | str | None) -> str:
    return "?" if x is None else x if isinstance(x, str) else f"{x:.4g}"


def _rows(head: list[str], rows: list[list[str]], numbers: tuple[int, ...] = (), mark: list[bool] | None = None) -> str:
    def cells(row: list[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=n' if k in numbers else ''}>{html.escape(str(x))}</{tag}>" for k, x in enumerate(row)
        )

    body = "".join(
        f"<tr{' class=win' if mark and mark[k] else ''}>{cells(row, 'td')}</tr>" for k, row in enumerate(rows)
    )
    return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _list(lines: list[str], most: int = 40) -> str:
    shown = lines[:most] + ([f"and {len(lines) - most} more, in the JSON"] if len(lines) > most else [])
    return "<ul>" + "".join(f"<li>{html.escape(x)}</li>" for x in shown) + "</ul>"


def _change(n: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} {n['was'][k]:.6g} to {n[k]:.6g}" for k in ("effect", "harm", "dose") if k in n)


def _tip(t: Mapping[str, Any]) -> str:
    said = []
    for reading in ("effect", "harm"):
        r = t[reading]
        sides = [f"{side} {r[side]:.4g}" for side in ("below", "above") if r[side] is not None]
        said.append(f"{reading} {' or '.join(sides) or 'at no value'} (the others {r['others']:.4g})")
    return (
        f"Tipping point, cohort {t['cohort']}, {t['arm']}, {t['dropped']} dropped out of {t['dropped'] + t['read']}: "
        f"what was decided then changes if they average {' or '.join(said)}"
    )
