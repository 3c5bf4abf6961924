"""Runs the cells of a plan, those that are kept from before left out, and writes the folder."""

from __future__ import annotations

import csv
import importlib.util
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import plots
from ..checks import SurefootError, write
from ..reports import to_html
from ..simulate import simulate_all
from ..store import MARK, Store
from . import paper
from .cells import Cell, Ran
from .claims import claims
from .cost import costs
from .paper import Plan
from .report import parts


def reproduce(plan: Plan, out: Path, workers: int = 1, force: bool = False, cluster: str | None = None) -> Path:
    """Run what is not there yet, draw, and write `out`/report.html. Interrupted, it goes on where it was."""
    if importlib.util.find_spec("matplotlib") is None:
        raise SurefootError("the figures need matplotlib: pip install 'surefoot[plots]'")
    store, cells = Store(out, force), sorted(plan.cells, key=lambda cell: -expected(cell))  # the longest first
    runs = [cell.run(expected(cell)) for cell in cells]
    there = sum(store.kept(run).done == run.trials for run in runs)
    _say(f"{there} of {len(runs)} cells are there already" if there else f"{len(runs)} cells to run")
    results = simulate_all(runs, workers=workers, cluster=cluster, out=store, progress="lines")
    ran = {cell: Ran.of(cell, result) for cell, result in zip(cells, results, strict=True)}
    _say("drawing")
    return _write(plan, {cell: ran[cell] for cell in plan.cells}, out)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def expected(cell: Cell) -> int:
    """About how many decisions a cell takes, one after another: measured, rounded up; for the time that is left."""
    name, drug = cell.design.split(":")[0], cell.scenario == "paper-drug"
    if name in ("safeopt", "stageopt"):
        per_arm = (18_000 if "lipschitz" in cell.design else 40_000) if drug else 5_500
        return min(per_arm * cell.arms, cell.cap)
    return min(650_000, cell.cap) if name == "safe-lts" else 1_000


# Writing


def _write(plan: Plan, runs: dict[Cell, Ran], out: Path) -> Path:
    tables = {}
    for it in plan.chosen:
        base = out / it.name
        if not plan.specs(it):
            continue
        if it.kind == "pulls":
            lines, bounds = paper.pulls_of(plan, it, runs)
            rows = _pulls_rows(plan, it, runs) + [
                {"design": bound.name, "arms": int(d), "mean": float(x)}
                for bound in bounds
                for d, x in zip(bound.arms, bound.pulls, strict=True)
            ]
            for suffix in (".png", ".svg"):
                plots.pulls(lines, bounds, base.with_suffix(suffix))
        else:
            curves = paper.regret_lines(plan, it, runs)
            rows = [
                {"design": curve.name, "pulls": int(t), "mean": float(m), "se": float(s)}
                for curve in curves
                for t, m, s in zip(curve.pulls, curve.mean, curve.se, strict=True)
            ]
            for suffix in (".png", ".svg"):
                plots.regret(curves, base.with_suffix(suffix))
        _csv(base.with_suffix(".csv"), rows)
        tables[it.name] = rows
    judged = claims(runs, costs())
    facts = {"command": command(plan), "plan": asdict(plan), "claims": [asdict(claim) for claim in judged]}
    (out / MARK).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    report = out / "report.html"
    write(report, to_html(list(parts(plan, runs, judged, tables, out, command(plan)))))
    return report


def _pulls_rows(plan: Plan, it: paper.Figure, runs: dict[Cell, Ran]) -> list[dict[str, Any]]:
    rows = []
    for (spec, d), cell in plan.cells_of(it).items():
        ran = runs[cell]
        sd = float(ran.pulls.std(ddof=1)) if cell.trials > 1 else 0.0
        rows.append(
            {
                "design": paper.label(spec), "arms": d, "mean": float(ran.pulls.mean()), "sd": sd,
                "se": sd / cell.trials**0.5, "trials": cell.trials, "capped": int(ran.capped.sum()),
                "wrong": int(ran.wrong.sum()), "unsafe": int(ran.unsafe.sum()),
                "over_limit_share": float(ran.over.sum() / ran.pulls.sum()), "cap": cell.cap, "delta": cell.delta,
                "slack": cell.slack, "seed": cell.seed, "seconds": ran.seconds,
            }
        )  # fmt: skip
    return rows


def _csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)


def command(plan: Plan) -> str:
    """The command that runs this plan again."""
    parts = ["surefoot", "reproduce"]
    default = Plan()
    if plan.figures != default.figures:
        parts += ["--figures", ",".join(plan.figures)]
    if plan.designs is not None:
        parts += ["--designs", ",".join(plan.designs)]
    for key in ("trials", "delta", "slack", "seed"):
        if getattr(plan, key) != getattr(default, key):
            parts += [f"--{key}", str(getattr(plan, key))]
    return shlex.join(parts + (["--quick"] if plan.quick else []))
