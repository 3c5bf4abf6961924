"""Every guaranteed design over the whole catalogue and over random instances: is the promise kept?"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import reports
from .catalogue import CASES, case
from .characteristics import Characteristics, upper_bound
from .designs.base import Design
from .reports import Part
from .simulate import Run, simulate_all

Row = dict[str, Any]

WIDE = 16384  # trials side by side on a device: several processes share it, a run each


def check(
    designs: Sequence[Design],
    trials: int,
    seed: int,
    instances: int = 0,
    each: int = 2000,
    device: str | None = None,
    problem: dict[str, Any] | None = None,
    **how: Any,
) -> list[Row]:
    """A row for every design and case of its shape; one for every family, over `instances` of it with `each` trials.
    With no `trials`, the families alone. `problem` is changed in all of them, such as its delta."""
    runs: list[tuple[str, Run]] = []

    def add(label: str, one: Design, many: int, name: str, instance: int | None = None) -> None:
        width = min(many, WIDE) if device else None
        made = case(name, instance=instance, **(problem or {}))
        runs.append((label, Run(*made, one, many, seed, keep=False, device=device, width=width)))

    for one in designs:
        for name, it in CASES.items():
            if it.make(it.arms)[0].shape == one.shape:
                if trials:
                    add(name, one, trials, name)
                for k in range(instances if it.family else 0):
                    add(f"{name}, {instances} instances", one, each, name, k)
    results = simulate_all([run for _, run in runs], **how)
    found: dict[tuple[str, str], list[Row]] = {}
    for (name, run), result in zip(runs, results, strict=True):
        claim = CASES[name.split(",")[0]].claim and run.design.guarantee
        row = {"claim": claim, **Characteristics(result).to_dict()}
        pulls, row["no_end"] = row["pulls"], row["endings"]["budget-spent"]
        row["tail"] = pulls["max"] / max(pulls["median"], 1.0)  # a budget below a first stage: no pull
        found.setdefault((run.design.label, name), []).append(row)
    return [rows[0] if len(rows) == 1 else _pooled(name, rows) for (_, name), rows in found.items()]


def _pooled(name: str, rows: Sequence[Row]) -> Row:
    """One row over the instances of a family: they are pooled, so that nobody picks the best or the worst."""
    trials = sum(row["trials"] for row in rows)
    row = {**rows[0], "scenario": name, "trials": trials, "instances": len(rows)}
    for key, word in (("wrong", "count"), ("unsafe", "trials"), ("failed", "count")):
        count = sum(one[key][word] for one in rows)
        row[key] = {word: count, "rate": count / trials, "upper": upper_bound(count, trials)}
    named = sum(one["named_best"]["count"] for one in rows)
    pulls = float(np.mean([one["pulls"]["mean"] for one in rows]))
    worst = max(rows, key=lambda one: float(one["failed"]["upper"]))
    row |= {"named_best": {"count": named, "rate": named / trials}, "pulls": {"mean": pulls}}
    row |= {"tail": max(one["tail"] for one in rows), "no_end": sum(one["no_end"] for one in rows)}
    return row | {"worst": worst["failed"]["upper"]}


def broken(rows: Sequence[Row]) -> list[Row]:
    """Where the promise is claimed and not shown: the 99% upper bound on the rate of failures is above delta, of any
    instance where there are several."""
    return [row for row in rows if row["claim"] and row.get("worst", row["failed"]["upper"]) > row["delta"]]


NOT_ONE = "* there is not one best arm: none is safe, or several are as good"


def cells(row: Row, bad: Sequence[Row]) -> dict[str, str]:
    """A row in words; `bad`: those that are broken."""
    kept = "yes" if row not in bad else "no" if row["failed"]["rate"] > row["delta"] else "not shown"
    best = "none is safe" if row["best"] is None else f"{row['named_best']['rate']:.1%}"
    worst = f" ({row['worst']:.2%})" if "worst" in row else ""
    return {
        "scenario": row["scenario"], "design": row["label"], "kept": kept if row["claim"] else "outside",
        "failed": f"{row['failed']['rate']:.3%}", "at most, 99%": f"{row['failed']['upper']:.3%}{worst}",
        "best named": best + "*" * bool(row["no_single_best"]),
        "promised": f"{row['delta']:.0%}" if row["claim"] else "", "wrong": f"{row['wrong']['rate']:.3%}",
        "unsafe": f"{row['unsafe']['rate']:.3%}", "pulls": f"{row['pulls']['mean']:,.0f}",
        "tail": f"{row['tail']:.1f}", "no end": f"{row['no_end']}", "trials": f"{row['trials']:,}",
    }  # fmt: skip


def to_markdown(rows: Sequence[Row], command: str, seed: int, version: str) -> str:
    """A page with the version, the seed, and the command that makes it again."""
    bad = broken(rows)
    kept = sum(bool(row["claim"]) for row in rows)
    verdict = "in all of them." if not bad else f"in all but {len(bad)} of them."
    parts = [
        Part("title", "Is the promise kept?"),
        Part(
            "text",
            "Every design with a guarantee over the whole catalogue, and random instances of every family pooled. Of "
            f"{kept} rows where the assumptions hold, the 99% upper bound on the rate of failures (a wrong arm or an "
            f"unsafe pull) is at or below delta {verdict} Of instances the worst one's bound counts, in brackets. The "
            "tail is the most pulls of any trial, over the median; trials without an end spent "
            "their budget. Outside the assumptions nothing is promised.",
        ),
        Part(
            "text",
            f"surefoot {version}, seed {seed}, Python {platform.python_version()}, NumPy {np.__version__}. Made by",
        ),
        Part("code", command),
    ]
    head = ["design", "scenario", "trials", "pulls", "best named", "wrong", "unsafe", "failed", "at most, 99%"]
    head += ["tail", "no end"]
    for claim, title in ((True, "The assumptions hold"), (False, "Outside the assumptions")):
        keys = [*head, "promised", "kept"] if claim else head
        said = [cells(row, bad) for row in rows if bool(row["claim"]) is claim]
        parts += [Part("heading", title), Part("table", rows=[keys, *([one[key] for key in keys] for one in said)])]
    return reports.to_markdown([*parts, Part("text", NOT_ONE.replace("*", "\\*"))])
