"""A certificate as a page that prints. It carries its JSON, so that it can be verified too."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

from ..checks import between, percent
from ..problem import Problem
from .checker import READINGS
from .status import OWN

MOST, FEW = Problem.budget, 12  # rows that have room for their intervals
STANDING = {
    "active": "still in",
    "beaten": "out: another is better",
    "refuted": "out: not the best",
    "stopped": "stopped: start dose not safe",
    "winner": "the best",
}
INTERVALS = " In brackets: 95% intervals of each dose by itself, without promise."
P_MEANS = """<p class="sub">p of an arm: if it is the best, readings that speak so much against it come with at most
this probability, however often one looks; 1 is no evidence against it.</p>
"""
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


def page(c: Mapping[str, Any]) -> str:
    e, done = html.escape, c["concluded"]
    stood = STANDING | ({"active": "undecided"} if done["final"] else {})
    arms = _rows(
        ["arm", "standing", "value: effect at the limit", "safe up to (declared or shown)", "effect there", "why"],
        [
            [a["arm"], stood[a["standing"]], between(a["value"]["lower"], a["value"]["upper"]),
             f"{g(a['safe_dose'])} ({a['safe_is']})" if a["safe_is"] else "none",
             g(a["effect_there"]["estimate"]), a["reason"].partition(": ")[2]]
            for a in c["arms"]
        ],
        mark=[a["standing"] == "winner" for a in c["arms"]],
    )  # fmt: skip
    binary = [c["problem"]["noise"].get(k, c["problem"]["noise"]).get("kind") == "bernoulli" for k in READINGS]
    heads = [k if yes else f"mean {k}" for k, yes in zip(READINGS, binary, strict=True)]
    doses = _by_dose(c["pulls"], binary)
    half = (len(doses) + 1) // 2 if len(doses) > FEW else len(doses)
    pulls = "".join(
        f"<div>{_rows(['arm', 'dose', 'subjects', *heads], part, numbers=(1, 2, 3, 4))}</div>"
        for part in (doses[:half], doses[half:])
        if part
    )
    pulls = f'<div class="two">{pulls}</div>' if half < len(doses) else pulls

    def lines(rows: list[Any], say: Any) -> list[str]:
        return [f"{n['at'][:16].replace('T', ' ')} {say(n)} ({_by(n)})" for n in rows]

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
    fired = [
        f"{f['watch']} ({f['arm']}, {f['reading']}) fired at event {f['event']:,}"
        + (f", and looked anew after the correction of event {f['corrected']:,}" if f["corrected"] else "")
        for f in watches["fired"]
    ] or ["none fired"]
    v, head = c["versions"], c["head"]
    p, title = c["problem"], f"Study {c['study']}"
    sub = f"design {c['design']['name']} · limit {p['limit']:g}" + (
        f" + slack {p['slack']:g}" if p.get("slack") else ""
    )
    sub += f" · delta {p['delta']:g} · " + (f"at most {p['budget']:,} subjects" if p["budget"] < MOST else "no budget")
    word = "Concluded" if done["winner"] else "Ended undecided" if done["final"] else f"Not ended: {done['standing']}"
    seen = f"Watched at a joint level of {watches['level']:g} ({', '.join(w['watch'] for w in watches['each'])})"
    seen = seen if watches["each"] else "No watch can speak here, since each rests on a sigma that is known"
    embedded = json.dumps(c).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{e(title)}: certificate</title><style>{STYLE}</style></head><body>
<h1>{e(title)}</h1>
<div class="sub">Certificate · begun {e(c["created"][:10])} · {e(sub)}</div>
<div class="verdict{"" if done["winner"] else " open"}"><b>{e(word)}.</b> {e(done["words"])}</div>
{P_MEANS if "(p = " in done["words"] else ""}<h2>What was asked</h2><p>{e(c["asked"])}</p>
<h2>What was found</h2>{arms}
<div class="two"><div><h2>What delta covers</h2><p>{e(c["covered"])}</p></div>
<div><h2>What it does not</h2>{_list(c["not_covered"])}</div></div>
<h2>Assumptions</h2>{_list(c["assumptions"])}
<p class="sub">{e(seen)}: {e("; ".join(fired))}.</p>
<h2>Subjects by arm and dose</h2><p>{e(_exposed(c["exposure"]))}{INTERVALS * (len(doses) <= FEW)}</p>{pulls}
<h2>Along the way</h2>{along}
<footer>surefoot {e(v["surefoot"])}, numpy {e(v["numpy"])}, python {e(v["python"])} when the study began.
Theorem {e(c["design"]["theorem"]["name"])}.
Journal head: event {head["seq"]:,}, <code>{e(head["hash"])}</code>. Anybody with the journal can make this page again
and check it: <code>surefoot study verify --certificate</code> this file</footer>
<script type="application/json" id="certificate">{embedded}</script>
</body></html>
"""


def _exposed(x: Mapping[str, int]) -> str:
    return (
        f"Of {x['subjects']:,} subjects {x['seem_above_limit']:,} got doses that seem to be above the limit, "
        f"{x['seem_above_ceiling']:,} of them above limit + slack (estimates that never fall with the dose, without "
        f"start doses, which are declared safe); {x['shown_above_limit']:,} got doses that are now shown to be above "
        "the limit."
    )


def _by_dose(pulls: list[dict[str, Any]], binary: list[bool], most: int = 24) -> list[list[str]]:
    """A row an arm and dose; where that would not go on a page, neighbouring doses share one (the JSON has all)."""
    names = list(dict.fromkeys(row["arm"] for row in pulls))
    each = len(pulls) if len(pulls) <= most else max(most // len(names), 2)
    rows = []
    for name in names:
        own = [row for row in pulls if row["arm"] == name]
        for k in range(min(each, len(own))):
            part = own[k * len(own) // min(each, len(own)) : (k + 1) * len(own) // min(each, len(own))]
            n = sum(row["pulls"] for row in part)
            dose, read = g(part[0]["dose"]) + (f" to {g(part[-1]['dose'])}" if len(part) > 1 else ""), list[str]()
            for key, yes in zip(READINGS, binary, strict=True):
                total, ends = sum(row["pulls"] * row[f"mean_{key}"] for row in part), part[0][f"{key}_interval"]
                more = [percent(total / n)] * yes
                more += [between(ends[0], ends[1], ".2g")] * bool(ends and len(pulls) <= FEW)
                read.append(
                    (f"{total:,.0f}{f' of {n:,}' * (len(pulls) <= FEW)}" if yes else g(total / n))
                    + (f" ({'; '.join(more)})" if more else "")
                )
            rows.append([name, dose, f"{n:,}", *read])
    return rows


def g(x: float | str | None) -> str:
    return "not known" if x is None else x if isinstance(x, str) else f"{x:.4g}"


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


def _by(n: Mapping[str, Any]) -> str:
    """Who did something; what follows from a reading by itself is not said to be done by who told it."""
    return f"by {OWN[n['by']]}, upon what {n['actor']} told" if n.get("by") in OWN else str(n["actor"])


def _change(n: Mapping[str, Any]) -> str:
    def said(x: Any) -> str:
        return x if isinstance(x, str) else f"{x:.12g}"

    return ", ".join(f"{k} {said(n['was'][k])} to {said(n[k])}" for k in ("dose", "n", *READINGS) if k in n)


def _tip(t: Mapping[str, Any]) -> str:
    said = []
    for reading in READINGS:
        r = t[reading]
        sides = [f"{side} {r[side]:.4g}" for side in ("below", "above") if r[side] is not None]
        said.append(f"{reading} {' or '.join(sides) or 'at no value'} (the others {r['others']:.4g})")
    return (
        f"Tipping point, cohort {t['cohort']}, {t['arm']}, {t['dropped']} dropped out of {t['dropped'] + t['read']}: "
        f"what was decided then changes if they average {' or '.join(said)}"
    )
