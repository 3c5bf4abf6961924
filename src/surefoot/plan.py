"""The protocol report: what a study would do, before it begins, in one page that prints.

Every number in it is simulated from a seed that it names, or stepped through by the design.
"""

from __future__ import annotations

import math
import platform
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from . import __version__
from .characteristics import Characteristics, brief
from .decisions import decision_table
from .designs.base import Design
from .designs.compose import Composed
from .problem import Arm, Problem, SurefootError
from .registry import about
from .reports import Part
from .results import no_single_best
from .scenario import Scenario
from .simulate import simulate
from .theory.resolvable import remarks

LONGEST, FEW = 100_000, 16  # subjects and trials, where no budget goes on to the end
COLORS = ("#0b6e4f", "#c1440e", "#2f4b8f", "#8a6d00", "#7b2d8b", "#444444")
SHAPES = {
    "linear": "effect and harm are lines through 0",
    "monotonic": "effect and harm never fall with the dose, and harm rises no faster than its Lipschitz constant",
    "levels": "effect and harm never fall from one level to the next; no distance and no slope is assumed",
}


@dataclass(frozen=True)
class Plan:
    """What is asked of a report: one problem, its truths, designs (the first is the one that is planned), budgets."""

    problem: Problem
    scenarios: Sequence[Scenario]
    designs: Sequence[Design]
    budgets: Sequence[int | None]
    trials: int = 500
    seed: int = 0
    workers: int = 1
    command: Sequence[str] = ()

    def parts(self) -> list[Part]:
        chapters = question, summary, promise, running, truths, odds, decisions, origin
        return [part for chapter in chapters for part in chapter(self)]

    @cached_property
    def tables(self) -> list[Characteristics]:
        """Scenario by scenario, design by design, budget by budget."""
        return [self.played(one, design, most, self.trials)
                for one in self.scenarios for design in self.designs for most in self.budgets]  # fmt: skip

    def played(self, one: Scenario, design: Design, most: int | None, trials: int) -> Characteristics:
        problem = self.problem if most is None else self.problem.but(budget=most)
        return Characteristics(simulate(problem, one, design, trials, self.seed, workers=self.workers))


def question(plan: Plan) -> Iterator[Part]:
    p = plan.problem
    yield Part("title", f"Protocol: which of {', '.join(p.names)} is the best")
    yield Part("heading", "The question")
    yield Part(
        "text",
        f"Which of {len(p.arms)} arms has the largest effect at its largest dose whose mean harm is at or below "
        f"{p.limit:g}?" + (f" An arm within {p.tolerance:g} of the best will do." if p.tolerance else ""),
    )  # fmt: skip
    rows = [["arm", "doses"], *([arm.name, _doses(arm)] for arm in p.arms)]
    yield Part("table", rows=rows)
    noise = "; ".join(f"{key}: {x.assumption()}" for key, x in zip(("effect", "harm"), p.noises, strict=True))
    yield Part("text", f"Assumed: {SHAPES[p.shape]}. Readings: {noise}.")
    yield from (Part("text", line) for line in remarks(p))


def _doses(arm: Arm) -> str:
    if arm.labels is not None:
        return ", ".join(map(str, arm.labels)) + "; the first is declared safe"
    if arm.levels is not None:
        return ", ".join(f"{x:g}" for x in arm.levels) + f"; begins at {arm.start:g}"
    return f"{arm.start:g} to {arm.max:g}, any; begins at {arm.start:g}, declared safe"


def summary(plan: Plan) -> Iterator[Part]:
    """What is asked first, of the design that is planned: over all scenarios that keep to the assumptions and have one
    best arm, and of each of the others by itself."""
    every = [t for t in plan.tables if t.result.design == plan.designs[0]]
    mine = [t for t in every if not _aside(t)]

    def span(values: Sequence[float]) -> str:
        ends = list(dict.fromkeys(f"{x:.0%}" for x in (min(values), max(values))))
        return " to ".join(ends)

    yield Part("heading", "In short")
    rows = [["at most", "an arm is named", "the best is recommended", "of subjects, over the limit"]]
    for most in plan.budgets if mine else ():
        own = [t for t in mine if t.numbers["budget"] == most]
        shares = [[t.named for t in own], [t.numbers["recommended_best"]["rate"] for t in own]]
        shares.append([t.numbers["over_limit"]["pulls_share"] for t in own])
        rows.append([f"{most:,}" if most else "the end", *map(span, shares)])
    if mine:
        over = ", ".join(dict.fromkeys(t.numbers["scenario"] for t in mine))
        yield Part("text", f"What {plan.designs[0].label} would come to, from the least to the most over {over}:")
        yield Part("table", rows=rows)
    for one in plan.scenarios:
        if others := [t for t in every if t.result.scenario is one and _aside(t)]:
            yield Part("text", f"{one.name} by itself, since {_aside(others[0])}:")
            yield Part("table", rows=[APART, *map(_apart, others)])
    yield Part(
        "text",
        (_to_a_name(plan, mine) if mine and plan.designs[0].guarantee else "")
        + "There is no rule for futility: where no arm has an effect one is recommended all the same. A control, as an "
        "arm with one dose, shows whether any is better than it.",
    )


def _aside(table: Characteristics) -> str:
    """Why a scenario is not counted with the others; empty where it is."""
    n = table.numbers
    outside = [f"it is outside the assumptions: {', '.join(n['outside_assumptions'])}"] * bool(n["outside_assumptions"])
    return "; ".join([*outside, *filter(None, [n["no_single_best"]])])


APART = ["at most", "an arm is named", "and that is wrong", "all are stopped", "of subjects, over the limit"]


def _apart(table: Characteristics) -> list[str]:
    n = table.numbers
    shares = table.named, n["wrong"]["rate"], n["endings"]["all-stopped"] / n["trials"], n["over_limit"]["pulls_share"]
    return [f"{n['budget']:,}" if n["budget"] else "the end", *(f"{x:.0%}" for x in shares)]


def _to_a_name(plan: Plan, mine: Sequence[Characteristics]) -> str:
    """Of a design that names an arm as soon as that is proved; one without a proof takes what there is."""
    ends = [t for t in mine if t.numbers["budget"] is None]
    ends = ends or [plan.played(t.result.scenario, plan.designs[0], LONGEST, FEW) for t in mine[:: len(plan.budgets)]]
    about = ", ".join(f"{t.numbers['scenario']} {t.numbers['pulls']['mean']:,.0f}" for t in ends)
    return (
        f"To a name it takes, about: {about} subjects. A study whose budget is spent before that names no arm: its "
        "answer is the recommendation, with the error probability that the data support and no promise about its dose. "
    )


def running(plan: Plan) -> Iterator[Part]:
    worst = all(noise.worst is not None for noise in plan.problem.noises)
    lost = "count as the worst reading" if worst else "pause the study until somebody has said how they count"
    yield Part("heading", "While it runs")
    yield Part(
        "text",
        f"A cohort is released only after a checker, written apart from the design, has derived it again from all "
        f"readings. Subjects who drop out {lost}. An effect that comes late holds up the next cohort, unless the study "
        "is begun with a pipeline: then harms decide on doses meanwhile. Watches look for readings that contradict the "
        "assumptions, and pause the study. Who monitors it may look, pause or stop at any time: what is promised holds "
        "for every rule of stopping.",
    )


def promise(plan: Plan) -> Iterator[Part]:
    p, design = plan.problem, plan.designs[0]
    yield Part("heading", "The design and its promise")
    options = ", ".join(f"{key} {value}" for key, value in design.options.items())
    yield Part("text", f"{design.name}" + (f" ({options})" if options else "") + ". " + about(type(design)))
    given = (
        "a level is given only if it is the first, or the mean harm of the one just below it is at or below"
        if p.shape == "levels"
        else "every dose given has a mean harm at or below"
    )
    if design.guarantee:
        line = f"the limit {p.limit:g}" + (f" plus the slack {p.slack:g}" if p.slack else "")
        yield Part(
            "text",
            f"With probability at least {1 - p.delta:g}, whatever the truth within the assumptions: {given} {line}, "
            f"and the arm that is named is {'within the tolerance of ' if p.tolerance else ''}the best. One delta, "
            f"{p.delta:g}, covers both. " + _theorem(design)
            + " The slack is what is accepted for some on the way: to show that a dose is over the limit, somebody "
            "must get it." * bool(p.slack),
        )  # fmt: skip
    else:
        yield Part("text", "Nothing is promised: this design has no guarantee.")
    yield Part("heading", "When it stops")
    stops = [
        ["ending", "when", "what is said"],
        [
            "best-arm",
            "every other arm is shown not to be the best, or stopped",
            "the best arm, and up to where it is shown to be safe",
        ],
        ["budget-spent", "the budget is spent before that", "no name; the arm that is supported best, with its p"],
        ["all-stopped", "harm at every start dose is shown to be above the limit", "no name"],
    ]
    if p.tolerance is not None:
        stops.insert(2, ["within-tolerance", "no rival can be better by more than the tolerance", "an arm good enough"])
    yield Part("table", rows=stops)
    yield Part(
        "text",
        "An arm is stopped as soon as harm at its start dose is shown to be above the limit. The last arm that is left "
        "is named without a test of its own start dose, as that is declared safe."
        + " Live, no arm is named where the watch `start` doubts a start dose at 0.05. " * design.guarantee
        + _pauses(p) * design.guarantee,
    )


def _pauses(p: Problem, level: float = 0.01) -> str:
    """How many harms at the first level of one arm pause a live study, begun as usual, whatever the other arms show."""
    if p.shape != "levels" or not p.noises[1].binary:
        return ""
    try:
        from .study.watch import Watches
        from .study.watch_bets import Sums
    except SurefootError:  # the extra is not installed
        return ""
    watch, found = Watches(p, level), list[str]()
    goal = math.log(2 * len(p.arms) / watch.level["start"])  # half of the stake is on single arms
    for n in range(1, 61):
        wealth = (watch.wealth(0, 1, Sums.of(n, 0.0, r), p.limit, 0.0, 1) for r in range(n + 1))
        if (not found or n in (20, 30, 60)) and (r := next((r for r, x in enumerate(wealth) if x >= goal), None)):
            found.append(f"{r} of {n}")
    return (
        f"It pauses the study at the latest when so many are harmed at the first level of one arm: {', '.join(found)}; "
        "sooner, if at all, by what the first levels of the others show." * bool(found)
    )


def _theorem(design: Design) -> str:
    named = f" ({design.evidence.theorem})" if isinstance(design, Composed) else ""
    return f"The theorem and its proof{named} are in the documentation, under What is guaranteed, and why."


def truths(plan: Plan) -> Iterator[Part]:
    p = plan.problem
    yield Part("heading", "What is assumed in the simulations")
    yield Part("text", "No design sees any of this. The dotted line is the limit.")
    for one in plan.scenarios:
        truth = one.truth(p)
        rows = [["arm", "largest safe dose", "effect there"]]
        for arm, dose, value in zip(p.arms, truth.dose, truth.value, strict=True):
            safe = not np.isnan(dose)
            rows.append([arm.name, arm.label(float(dose)) if safe else "none", f"{value:.4g}" if safe else ""])
        best = no_single_best(p, truth) or f"{p.names[truth.best]} is the best"
        yield Part("text", f"{one.name}: {best}." + _outside(one.violations(p)))
        yield Part("table", rows=rows)
        yield Part("picture", f"{one.name}: mean harm and mean effect by dose", [[curves(p, one)]])


def _outside(broken: list[str]) -> str:
    return f" Outside the assumptions, so nothing is promised: {'; '.join(broken)}." if broken else ""


def odds(plan: Plan) -> Iterator[Part]:
    """Operating characteristics over scenarios, designs and budgets."""
    p, tables = plan.problem, plan.tables
    yield Part("heading", "Operating characteristics")
    yield Part(
        "text",
        f"{plan.trials:,} simulated trials a row, seed {plan.seed}; ± is one standard error. Named: the study ended "
        "with a name, of the best arm or a wrong one; in the other trials none was named, so that none could be wrong. "
        "Recommended: the arm that is supported best when it ends, with no promise about its dose. Failed: a wrong arm "
        "was named, or a dose was given that may not be; beside it, in brackets, a 99% upper bound on that. No watch "
        "is simulated: where readings contradict the assumptions a live study may pause before it comes to this.",
    )
    if notes := list(dict.fromkeys(x for table in tables for x in table.notes)):
        yield Part("text", f"To be known: {'; '.join(notes)}.")
    skip = "subjects: mean / 90%", "promised"
    rows = [{key: x for key, x in brief(table).items() if key not in skip} for table in tables]
    head = list(dict.fromkeys(key for row in rows for key in row))
    yield Part("table", rows=[head, *([row.get(key, "") for key in head] for row in rows)])
    yield Part("heading", "Sample sizes and exposure")
    yield Part("table", rows=list(sizes(p, tables)))
    yield Part("heading", "Who gets what, and what is recommended")
    yield Part(
        "text",
        "Subjects a trial on average and, in brackets, how often it was recommended; * is over the limit in truth.",
    )
    wide = len(plan.designs) * len(plan.budgets) > 9  # than a page: then a table for each budget
    for one in plan.scenarios:
        yield Part("text", f"{one.name}:")
        own = [t for t in tables if t.result.scenario is one]
        for k in range(len(plan.budgets) if wide else 1):
            yield Part("table", rows=list(grid(p, one, own[k :: len(plan.budgets)] if wide else own)))


def grid(p: Problem, one: Scenario, tables: Sequence[Characteristics]) -> Iterator[list[str]]:
    """Arms, and where there are ordered levels each of them, down; designs and budgets across."""
    said = [list(brief(table).values())[1:3] for table in tables]
    levels = ["level", "mean harm", "mean effect"] if p.shape == "levels" else []
    yield ["arm", *levels, *(f"{design}, {most}" for design, most in said)]
    if not levels:
        for name in p.names:
            rows = [(t.numbers["pulls_by_arm"][name], t.numbers["selection"][name]) for t in tables]
            yield [name, *(f"{n:,.0f} ({share:.0%})" for n, share in rows)]
        return
    for k, row in enumerate(tables[0].by_level):
        arm, level = row["arm"], row["level"]
        dose = np.full(len(p.arms), float(p.arms[i := p.names.index(arm)].place(level)))
        facts = [f"{row['harm']:.3g}{' *' * bool(row['harm'] > p.limit)}", f"{one.effects(dose)[i]:.3g}"]
        cells = [(t.by_level[k]["pulls"], t.numbers["selection"][f"{arm} at {level}"]) for t in tables]
        yield [arm, level, *facts, *(f"{n:,.1f} ({share:.0%})" for n, share in cells)]


def sizes(p: Problem, tables: Sequence[Characteristics]) -> Iterator[list[str]]:
    ceiling = (
        f"over {p.ceiling:g}, trials with any" if p.shape != "levels" else "trials with a level that may not be given"
    )
    head = ["scenario", "design", "at most", "subjects, mean", "median", "90%", "most", "over the limit", "mean excess"]
    count = p.shape == "levels" and p.noises[1].binary
    yield [*head, ceiling, *(["harmed"] * count)]
    for table in tables:
        n, few = table.numbers, list(brief(table).values())
        pulls, over = n["pulls"], n["over_limit"]
        numbers = [f"{pulls['median']:,.0f}", f"{pulls['p90']:,.0f}", f"{pulls['max']:,}"]
        risk = [f"{over['pulls']:,.1f} ({over['pulls_share']:.1%})", f"{over['mean_excess']:.3g}"]
        risk += [f"{n['unsafe']['rate']:.2%}"]
        risk += [f"{sum(x['harm'] * x['pulls'] for x in table.by_level):,.1f}"] if count else []
        yield [*few[:3], f"{pulls['mean']:,.1f} ± {pulls['se']:,.1f}", *numbers, *risk]


def decisions(plan: Plan) -> Iterator[Part]:
    """What happens after each possible number of harms in the first cohorts of the first arm."""
    p, design = plan.problem, plan.designs[0]
    if None not in plan.budgets:
        p = p.but(budget=max(most or 0 for most in plan.budgets))
    how = "exact; in a large cohort halved to where it turns" if p.noises[1].binary else "for some mean harms"
    yield Part("heading", "The first cohorts")
    yield Part(
        "text",
        f"What the design does after each possible outcome of the first cohorts of {p.names[0]}, found by stepping it "
        f"({how}); the other arms have no harm, and half of the "
        "readings show an effect. Later cohorts follow from all readings by then: `surefoot study preview` shows what "
        "each outcome of an open cohort would lead to.",
    )
    yield Part("table", rows=decision_table(p, design))


def origin(plan: Plan) -> Iterator[Part]:
    yield Part("heading", "Where the numbers come from")
    yield Part(
        "text",
        f"surefoot {__version__}, Python {platform.python_version()}, NumPy {np.__version__}; seed {plan.seed}, "
        f"{plan.trials:,} trials a row. The same command with the same versions gives the same numbers.",
    )
    if plan.command:
        yield Part("code", shlex.join(plan.command))


def curves(p: Problem, one: Scenario) -> str:
    """Mean harm and mean effect of every arm by dose, side by side, as SVG."""
    parts, wide, high = [], 300, 180
    top = np.where(np.isfinite(p.largest), p.largest, np.where(np.isnan(d := one.truth(p).dose), p.starts, 1.5 * d))
    dose = np.linspace(p.starts, top, 61)
    if p.shape == "levels":
        dose = np.minimum(np.arange(int(p.largest.max()) + 1.0)[:, None], p.largest)
    left, right = float(dose.min()), float(max(dose.max(), dose.min() + 1e-9))
    rows = _ticks(p, left, right)
    for k, (title, y) in enumerate((("mean harm", one.harms(dose)), ("mean effect", one.effects(dose)))):
        low = -_round(-min(0.0, float(y.min())))
        up = _round(max(float(y.max()), p.ceiling if k == 0 else 0.0, low + 1e-9))

        def at(a: Any, v: Any, x0: int = 50 + k * (wide + 80), low: float = low, up: float = up) -> str:
            return f"{x0 + wide * (a - left) / (right - left):.1f},{30 + high * (1 - (v - low) / (up - low)):.1f}"

        def line(points: list[str], style: str) -> str:
            return f'<polyline points="{" ".join(points)}" fill="none" {style}/>'

        x0 = 50 + k * (wide + 80)
        parts.append(f'<text x="{x0}" y="18" font-weight="bold">{title}</text>')
        parts.append(f'<rect x="{x0}" y="30" width="{wide}" height="{high}" fill="none" stroke="#999"/>')
        parts += [
            f'<text x="{x0 - 6}" y="{y_}" text-anchor="end">{v:.3g}</text>' for y_, v in ((36, up), (30 + high, low))
        ]
        parts += [
            f'<text x="{x0 + wide * (v - left) / (right - left):.0f}" y="{high + 46 + 15 * row}" text-anchor="{how}" '
            f'fill="{COLORS[row % len(COLORS)] if len(rows) > 1 else "#000"}">{name}</text>'
            for row, ticks in enumerate(rows)
            for v, how, name in ticks
        ]
        if k == 0:
            parts.append(line([at(left, p.limit), at(right, p.limit)], 'stroke="#a00" stroke-dasharray="2 4"'))
            x, y_ = at(right, p.limit).split(",")  # beside the picture, where no curve crosses it
            parts.append(f'<text x="{float(x) + 4}" y="{float(y_) + 4:.0f}" fill="#a00">{p.limit:g}</text>')
        for i in range(len(p.arms)):
            gaps = f"10 {4 * i}" if i else "none"  # so that curves on top of each other are both seen
            style = f'stroke="{COLORS[i % len(COLORS)]}" stroke-width="2" stroke-dasharray="{gaps}"'
            parts.append(line([at(a, v) for a, v in zip(dose[:, i], y[:, i], strict=True)], style))
            for a, v in zip(dose[:, i], y[:, i], strict=True) if p.shape == "levels" else ():
                cx, cy = at(a, v).split(",")
                parts.append(f'<circle cx="{cx}" cy="{cy}" r="3.5" fill="{COLORS[i % len(COLORS)]}"/>')
    names = [
        f'<tspan fill="{COLORS[i % len(COLORS)]}" dx="{0 if i == 0 else 14}">{escape(name)}</tspan>'
        for i, name in enumerate(p.names)
    ]
    tall = high + 55 + 15 * len(rows)
    parts.append(f'<text x="50" y="{tall}">{"".join(names)}</text>')
    return (
        f'<svg viewBox="0 0 760 {tall + 10}" width="760" font-family="sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def _round(x: float) -> float:
    """A number of one or two digits that is not below x."""
    step = 10.0 ** np.floor(np.log10(x)) / 2 if x > 0 else 1.0
    return float(np.ceil(x / step - 1e-9) * step)


def _ticks(p: Problem, left: float, right: float) -> list[list[tuple[float, str, str]]]:
    """Where a dose is written below a picture, how it is aligned, and what is written: both ends; or every level, in
    a row for each arm where they are called differently."""
    if p.shape != "levels":
        return [[(v, how, escape(p.arms[0].label(v))) for v, how in ((left, "start"), (right, "end"))]]
    labels = [[str(x) for x in arm.labels or ()] for arm in p.arms]
    longest = max(labels, key=len)
    rows = [longest] if all(x == longest[: len(x)] for x in labels) else labels
    if len(rows) > len(COLORS):
        rows = [[f"level {k + 1}" for k in range(len(longest))]]
    step = 1 + max(sum(len(name) + 2 for name in row) for row in rows) // 50  # so that they do not touch
    return [[(float(k), "middle", escape(x)) for k, x in enumerate(row) if k % step == 0] for row in rows]
