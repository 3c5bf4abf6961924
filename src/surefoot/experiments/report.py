"""report.html: one file that opens from disk, with the figures inside it."""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .. import __version__
from .claims import Claim
from .paper import Plan, Runs

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem }
table { border-collapse: collapse; font-size: .85rem; margin: 1rem 0; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #ddd }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
figure { margin: 1rem 0 } img { width: 34rem; max-width: 100% } figcaption { font-size: .9rem; color: #444 }
.v { white-space: nowrap; font-weight: 600 }
.holds { color: #00664b } .fails { color: #a33c00 } .unknown { color: #555 }
code, pre { background: #f4f4f4; padding: .1rem .3rem } pre { padding: .6rem; overflow-x: auto }
"""
CLASS = {"holds": "holds", "does not hold": "fails"}


def html(
    plan: Plan, runs: Runs, claims: Sequence[Claim], tables: Mapping[str, list[dict[str, Any]]], out: Path, command: str
) -> str:
    trials = sorted({cell.trials for cell in runs})
    caps = sorted({cell.cap for cell in runs})
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Best arm identification with safety constraints: the experiments</title><style>{STYLE}</style></head>",
        "<body><h1>Best arm identification with safety constraints: the experiments, run again</h1>",
        f"<p>The figures of Wang, Wagenmaker and Jamieson's paper, {' and '.join(map(str, trials))} trials a point, "
        f"&delta; = {plan.delta:g}, slack (&epsilon;<sub>safe</sub>) = {plan.slack:g}, seed {plan.seed}. A trial is "
        f"capped at {' or '.join(f'{cap:,}' for cap in caps)} pulls; one that hit its cap counts as the cap and is "
        "shown as such.</p>",
    ]
    if plan.quick:
        parts.append(
            "<p><strong>A quick run</strong>: fewer arms, fewer trials, an early cap. Its figures are a sketch.</p>"
        )
    parts += ["<h2>What the paper says, and what was measured here</h2>", _claims(claims)]
    for it in plan.chosen:
        if it.name not in tables:
            continue
        picture = base64.b64encode((out / f"{it.name}.png").read_bytes()).decode()
        parts += [
            f"<h2>{escape(it.caption)}</h2><figure><img alt='{escape(it.caption)}: {escape(_alt(tables[it.name]))}' "
            f"src='data:image/png;base64,{picture}'><figcaption>{_caption(it.kind, it.arms)} "
            f"Also as <a href='{it.name}.svg'>SVG</a> and <a href='{it.name}.csv'>CSV</a>.</figcaption></figure>"
        ]
        if it.kind == "pulls":
            parts.append(_pulls(tables[it.name]))
    parts += [NOTES, _again(command), "</body></html>"]
    return "\n".join(parts) + "\n"


def _alt(rows: list[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(str(row["design"]) for row in rows))


def _caption(kind: str, arms: Sequence[int]) -> str:
    if kind == "pulls":
        return (
            "Mean pulls to the end of a trial against the number of arms, both axes logarithmic; bars are one standard "
            "deviation. Grey: what the theorems say: a lower bound for any design (Theorem 1 in the linear model), the "
            "sharper characteristic time of the linear model, and the upper bound that the paper proves."
        )
    return (
        "The best value less the true effect of the arm that would be named now, at the dose shown to be safe; "
        f"{arms[0]} arms, mean over trials, band of one standard error. A trial that has ended holds its last value."
    )


def _claims(claims: Sequence[Claim]) -> str:
    rows = [
        f"<tr><td>{escape(c.says)}</td><td>{escape(c.measured)}</td>"
        f"<td class='v {CLASS.get(c.verdict, 'unknown')}'>{c.verdict}</td></tr>"
        for c in claims
    ]
    return "<table><tr><th>the paper says</th><th>measured here</th><th>verdict</th></tr>" + "".join(rows) + "</table>"


def _pulls(rows: list[dict[str, Any]]) -> str:
    head = ("arms", "mean pulls", "sd", "trials", "hit the cap", "wrong", "unsafe", "pulls over the limit", "seconds")
    body = []
    for row in rows:
        if "sd" not in row:
            body.append(
                f"<tr><td>{escape(row['design'])}</td><td class=n>{row['arms']}</td><td class=n>{row['mean']:,.0f}</td>"
                + "<td></td>" * 7 + "</tr>"
            )  # fmt: skip
            continue
        least = "at least " if row["capped"] else ""
        cells = (
            f"{row['arms']}", f"{least}{row['mean']:,.0f}", f"{row['sd']:,.0f}", f"{row['trials']}", f"{row['capped']}",
            f"{row['wrong']}", f"{row['unsafe']}", f"{row['over_limit_share']:.1%}", f"{row['seconds']:,.1f}",
        )  # fmt: skip
        body.append(f"<tr><td>{escape(row['design'])}</td>" + "".join(f"<td class=n>{x}</td>" for x in cells) + "</tr>")
    heads = "<th>design</th>" + "".join(f"<th class=n>{x}</th>" for x in head)
    return f"<table><tr>{heads}</tr>{''.join(body)}</table>"


NOTES = """<h2>What had to be decided</h2><ul>
<li>The paper gives neither &delta; nor &epsilon;<sub>safe</sub> of its experiments. The variances it prints are taken
as variances.</li>
<li>Drug model: the appendix has a largest dose of &minus;0.5, where no &epsilon;<sub>safe</sub> above 0.08 has a
meaning; here that is the top of SafeOpt's grid, and the largest dose is 0.5 for the designs that climb.</li>
<li>SafeOpt has no stopping rule of its own. It stops when one arm's lower bound over safe doses is above every other
arm's upper bound over possibly safe doses. Which doses are expanders is not said either: here those that could enlarge
the safe set if their harm were read, without noise, at its lower bound; or, with Lipschitz expanders, those whose lower
bound + 0.25 &times; distance to a dose outside the set is at most the limit (the harm is nowhere steeper).</li>
<li>Linear model: SafeOpt's &beta;<sub>t</sub> uses parameter bounds of 1 (effect) and 5 (harm), Safe-LTS 5 for
both.</li>
<li>Algorithm 2 is shown twice: as its theorem has it, and with the constant schedule that the appendix says was
used.</li>
<li>Before its first decision a design would name an arm at random, at its start dose. The best arm stands last in the
list, so that no design has it from breaking ties by order.</li></ul>"""


def _again(command: str) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "matplotlib"))
    return (
        f"<h2>How to run it again</h2><pre>{escape(command)}</pre><p>The same seed gives the same numbers, whatever "
        f"the workers; only times differ. Made with surefoot {__version__}, {packages}, "
        f"Python {platform.python_version()}, {escape(platform.system())} {escape(platform.machine())}.</p>"
    )
