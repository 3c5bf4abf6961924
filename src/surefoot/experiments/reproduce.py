"""Runs the cells of a plan, those that are kept from before left out, and writes the folder."""

from __future__ import annotations

import csv
import importlib.util
import json
import multiprocessing
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .. import plots
from ..problem import SurefootError
from . import paper
from .cells import Cell, Ran, kept, run
from .claims import claims
from .cost import costs
from .paper import Plan
from .report import html

MARK = "run.json"  # a folder with this file in it is ours


def reproduce(plan: Plan, out: Path, workers: int = 1, force: bool = False) -> Path:
    """Run what is not there yet, draw, and write `out`/report.html. Interrupted, it goes on where it was."""
    if workers < 1 and workers != -1:
        raise SurefootError(f"workers must be a whole number of at least 1 (or -1 for every core); got {workers!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise SurefootError("the figures need matplotlib: pip install 'surefoot[plots]'")
    folder = _folder(out, force)
    runs: dict[Cell, Ran] = {}
    for cell in plan.cells:
        if (ran := kept(cell, folder)) is not None:
            runs[cell] = ran
    missing = [cell for cell in plan.cells if cell not in runs]
    if missing:
        _say(f"{len(runs)} of {len(plan.cells)} cells are there already" if runs else f"{len(missing)} cells to run")
        for ran in _played(missing, os.cpu_count() or 1 if workers == -1 else workers):
            ran.save(folder)
            runs[ran.cell] = ran
    _say("drawing")
    return _write(plan, {cell: runs[cell] for cell in plan.cells}, out)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _folder(out: Path, force: bool) -> Path:
    try:
        if out.exists() and not out.is_dir():
            raise SurefootError(f"--out must be a folder; {out} is a file")
        if out.exists() and any(out.iterdir()) and not (out / MARK).exists() and not force:
            raise SurefootError(f"{out} holds something else; choose another folder, or write into it with --force")
        (out / "cells").mkdir(parents=True, exist_ok=True)
        if not (out / MARK).exists():
            (out / MARK).write_text("{}\n", encoding="utf-8")
    except OSError as error:
        raise SurefootError(f"cannot write to {out}: {error.strerror or error}") from error
    return out / "cells"


# Running


def expected(cell: Cell) -> int:
    """About how many decisions a cell takes, one after another: measured, rounded up; for the time that is left."""
    name, drug = cell.design.split(":")[0], cell.scenario == "paper-drug"
    if name in ("safeopt", "stageopt"):
        per_arm = (18_000 if "lipschitz" in cell.design else 40_000) if drug else 5_500
        return min(per_arm * cell.arms, cell.cap)
    return min(650_000, cell.cap) if name == "safe-lts" else 1_000


def _seconds(cell: Cell) -> float:
    """About how long it takes here: the time of its first pulls times how many there will be."""
    if expected(cell) <= 1_000:
        return 1.0
    first = [run(replace(cell, cap=pulls)).seconds for pulls in (20, 120)]
    return max((first[1] - first[0]) / 100, 1e-5) * expected(cell)


def _played(cells: Sequence[Cell], workers: int) -> Iterator[Ran]:
    """The cells as they end, the longest begun first; says beforehand how long it will take, then what is left."""
    took = {cell: _seconds(cell) for cell in cells}
    order = sorted(cells, key=lambda cell: -took[cell])
    _say(f"this takes {_span(max(sum(took.values()) / workers, max(took.values())))} with {_count(workers, 'worker')}")
    processes = multiprocessing.get_context("spawn")  # a fork would inherit the threads of a linear algebra library
    queue: Any = processes.SimpleQueue()
    share, began = dict.fromkeys((cell.file for cell in cells), 0.0), time.monotonic()
    weight, total = {cell.file: took[cell] for cell in cells}, sum(took.values())
    steps = {cell.file: expected(cell) for cell in cells}
    with processes.Pool(workers, _share, (queue,)) as pool, _bar(total) as show:
        waiting = [(cell, pool.apply_async(_play, (cell,))) for cell in order]
        while waiting:
            time.sleep(0.05)
            while not queue.empty():
                file, pulls = queue.get()
                share[file] = max(share[file], min(pulls / steps[file], 0.98))
            ended = [pair for pair in waiting if pair[1].ready()]
            waiting = [pair for pair in waiting if pair not in ended]
            for cell, result in ended:
                share[cell.file] = 1.0
                yield result.get()
            done = sum(weight[file] * part for file, part in share.items())
            left = (time.monotonic() - began) * (total - done) / done if done else sum(took.values())
            show(done, [f"{c.scenario} d = {c.arms}, {paper.label(c.design)}: done" for c, _ in ended], left)


_queue: Any = None


def _share(queue: Any) -> None:
    global _queue
    _queue = queue
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers


def _play(cell: Cell) -> Ran:
    return run(cell, lambda pulls, left: _queue.put((cell.file, pulls)))


@contextmanager
def _bar(total: float) -> Iterator[Any]:
    """Shows what is done: a bar on a terminal, else a line a cell, and one every half minute."""
    if not sys.stderr.isatty():
        said = time.monotonic()

        def tell(done: float, lines: list[str], left: float) -> None:
            nonlocal said
            if not lines and time.monotonic() > said + 30:
                lines = [f"{done / total:.0%} done"]
            for line in lines:
                said = time.monotonic()
                _say(f"{line}; {_span(left)} left")

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = BarColumn(), TaskProgressColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)

        def show(done: float, lines: list[str], left: float) -> None:
            for line in lines:
                progress.console.print(line, highlight=False)
            progress.update(task, completed=done, description=f"{_span(left)} left")

        yield show


def _span(seconds: float) -> str:
    return f"about {seconds / 60:.0f} minutes" if seconds >= 90 else f"about {max(seconds, 1):.0f} seconds"


def _count(n: int, word: str) -> str:
    return f"{n} {word}" + ("" if n == 1 else "s")


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
    report.write_text(html(plan, runs, judged, tables, out, command(plan)), encoding="utf-8")
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
