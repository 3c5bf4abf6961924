"""Pictures as SVG, made on the server: colours come from the style sheet, so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from markupsafe import Markup

from ..pictures import ArmStory

HUGE = 1e90  # stands for no bound in the designs
POINTS = 48  # of a line over time
COLOURS = 8  # classes c0 to c7 of the style sheet: those of the figures


def n(x: float) -> str:
    return f"{x:.1f}".rstrip("0").rstrip(".")


def number(x: Any, digits: int = 4) -> str:
    """A number as people read it; a name as it is."""
    if x is None:
        return "?"
    if isinstance(x, str):
        return x
    return (f"{x:,.0f}" if 1e4 <= abs(x) < 1e9 else f"{x:.{digits}g}").replace("-", "\N{MINUS SIGN}")


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    step = 10.0 ** math.floor(math.log10(span / most))
    step *= next(k for k in (1, 2, 5, 10) if span / (step * k) <= most)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def short(text: str, most: int = 8) -> str:
    return text if len(text) < most else text[: most - 1] + "…"


class Axes:
    """A box with two scales; everything is drawn in its coordinates."""

    def __init__(self, box: tuple[float, float, float, float], x: tuple[float, float], y: tuple[float, float]):
        self.left, self.top, self.wide, self.high = box
        self.x, self.y = x, y
        self.parts: list[str] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        (a, b), (c, d) = self.x, self.y
        y = min(max(y, c - (d - c)), d + (d - c))
        return (
            self.left + self.wide * (x - a) / ((b - a) or 1.0),
            self.top + self.high * (1 - (y - c) / ((d - c) or 1.0)),
        )

    def grid(
        self, x_labels: Sequence[str] | None = None, x_name: str = "", y_name: str = "",
        y_labels: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        bottom = self.top + self.high
        whole = [float(k) for k in range(len(y_labels or ())) if self.y[0] <= k <= self.y[1]]
        for v in whole[:: -(-len(whole) // 5)] if whole else ticks(*self.y, 4):
            _, y = self.at(self.x[0], v)
            self.add(
                f'<line class="rule" x1="{n(self.left)}" x2="{n(self.left + self.wide)}" y1="{n(y)}" y2="{n(y)}"/>'
            )
            self.text(self.left - 6, y + 3.5, short(y_labels[int(v)]) if y_labels else number(v), "end")
        marks = list(enumerate(x_labels)) if x_labels else [(v, number(v)) for v in ticks(*self.x, 5)]
        for v, label in marks:
            x, _ = self.at(float(v), self.y[0])
            self.add(f'<line class="axis" x1="{n(x)}" x2="{n(x)}" y1="{n(bottom)}" y2="{n(bottom + 4)}"/>')
            self.text(x, bottom + 16, short(label, 12), "middle")
        ends = f'x1="{n(self.left)}" x2="{n(self.left + self.wide)}"'
        self.add(f'<line class="axis" {ends} y1="{n(bottom)}" y2="{n(bottom)}"/>')
        if x_name:
            self.text(self.left + self.wide, bottom + 30, x_name, "end", "name")
        if y_name:
            self.text(self.left, self.top - 8, y_name, "start", "name")

    def add(self, part: str) -> None:
        self.parts.append(part)

    def text(self, x: float, y: float, words: str, anchor: str = "start", kind: str = "tick") -> None:
        self.add(f'<text class="{kind}" x="{n(x)}" y="{n(y)}" text-anchor="{anchor}">{escape(words)}</text>')

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        path = " ".join(f"{n(x)},{n(y)}" for x, y in (self.at(*p) for p in points))
        self.add(f'<polyline class="{kind}" points="{path}"/>')

    def steps(self, xs: Sequence[float], ys: Sequence[float | None], kind: str) -> None:
        """A line that keeps its height until the next point; broken where there is none."""
        run: list[tuple[float, float]] = []
        for k, y in enumerate(ys):
            if y is None:
                if len(run) > 1:
                    self.line(run, kind)
                run = []
                continue
            run.append((xs[k], y))
            run.append((xs[k + 1] if k + 1 < len(xs) else self.x[1], y))
        if run:
            self.line(run, kind)

    def dot(self, x: float, y: float, r: float, kind: str, words: str = "") -> None:
        cx, cy = self.at(x, y)
        title = f"<title>{escape(words)}</title>" if words else ""
        self.add(f'<circle class="{kind}" cx="{n(cx)}" cy="{n(cy)}" r="{n(r)}">{title}</circle>')

    def band(self, xs: Sequence[float], low: Sequence[float | None], high: Sequence[float | None], kind: str) -> None:
        for k, (a, b) in enumerate(zip(low, high, strict=True)):
            if a is None:
                continue
            x0, y1 = self.at(xs[k], self.y[1] if b is None else min(b, self.y[1]))
            x1, y0 = self.at(xs[k + 1] if k + 1 < len(xs) else self.x[1], max(a, self.y[0]))
            self.add(
                f'<rect class="{kind}" x="{n(x0)}" y="{n(y1)}" width="{n(max(x1 - x0, 0.5))}" '
                f'height="{n(max(y0 - y1, 0.5))}"/>'
            )


def svg(wide: float, high: float, label: str, *axes: Axes, kind: str = "chart") -> Markup:
    body = "".join(part for one in axes for part in one.parts)
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {n(wide)} {n(high)}" role="img" aria-label="{escape(label)}" '
        f'preserveAspectRatio="xMidYMid meet">{body}</svg>'
    )


def _span(values: Sequence[float], at_least: Sequence[float] = ()) -> tuple[float, float]:
    found = [v for v in (*values, *at_least) if math.isfinite(v)]
    if not found:
        return 0.0, 1.0
    low, high = min(found), max(found)
    room = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return low - room, high + room


def dose_picture(board: dict[str, Any]) -> Markup:
    """Mean harm and mean effect by dose, one colour an arm; the limit; the safe dose of each as a tick."""
    shown = [board["arms"][i] | {"index": i} for i in board["story"]]
    points = [p for a in shown for p in a["points"]]
    labels = next((a["labels"] for a in shown if a["labels"]), None)
    ends = [a["max"] for a in shown if a["max"] is not None] if labels else []
    safe = [a["safe"] for a in shown if math.isfinite(a["safe"])]
    x = _span([p["dose"] for p in points], [*safe, *ends])
    out = []
    for key in ("harm", "effect"):
        axes = _by_dose(key, x, [p[key] for p in points], labels, board["limit"], board["ceiling"], " read")
        most = max((p["n"] for p in points), default=1)
        for a in shown:
            colour = f"c{a['index'] % COLOURS}"
            if len(a["points"]) > 1:
                axes.line([(p["dose"], p[key]) for p in a["points"]], f"faint {colour}")
            for p in a["points"]:
                words = f"{a['arm']}, dose {number(p['dose'])}: mean {key} {number(p[key])} of {p['n']:,}"
                axes.dot(p["dose"], p[key], 2.5 + 4 * math.sqrt(p["n"] / most), f"dot {colour}", words)
            if math.isfinite(a["safe"]):
                x0, y0 = axes.at(a["safe"], axes.y[0])
                axes.add(
                    f'<path class="tick-mark {colour}" d="M{n(x0)} {n(y0)}l-4 7h8z">'
                    f"<title>{escape(a['arm'])}: {escape(a['sure'])}</title></path>"
                )
        out.append(axes)
    words = f"by dose for {len(shown)} arms; the limit of harm is {number(board['limit'])}"
    return two_panels(out, f"Mean harm {words}", f"Mean effect {words}")


def _by_dose(
    key: str, x: tuple[float, float], values: Sequence[float], labels: Sequence[str] | None, limit: float,
    ceiling: float, how: str = "",
) -> Axes:  # fmt: skip
    """Axes of one of the two panels; that of harm shows what is allowed."""
    axes = Axes((52, 30, 272, 190), x, _span(values, [limit, ceiling, 0.0] if key == "harm" else []))
    axes.grid(labels, "level" if labels else "dose", f"mean {key}{how}")
    if key == "harm":
        if ceiling > limit:
            axes.line([(x[0], ceiling), (x[1], ceiling)], "ceiling")
        axes.line([(x[0], limit), (x[1], limit)], "limit")
        axes.text(328, axes.at(0, limit)[1] + 3.5, f"limit {number(limit)}", "start", "limit-text")
    return axes


def two_panels(axes: Sequence[Axes], *words: str) -> Markup:
    """Side by side, or one below the other where there is no room."""
    panels = Markup("").join(svg(372, 258, label, one) for one, label in zip(axes, words, strict=True))
    return Markup('<div class="panels">{}</div>').format(panels)


def story_picture(arm: ArmStory, index: int, labels: Sequence[str] | None, ends: dict[str, Any]) -> Markup:
    """One arm over time: doses given and the safe dose above, bounds on its value below."""
    top = Axes((46, 14, 204, 74), (0, ends["subjects"]), ends["dose"])
    low = Axes((46, 104, 204, 74), (0, ends["subjects"]), ends["value"])
    top.grid(x_name="" if ends["known"] else "subjects", y_labels=labels)
    low.grid(x_name="subjects")
    if ends["known"]:
        top.parts = [p for p in top.parts if 'text-anchor="middle"' not in p]
    given = [column.tolist() for column in arm.given]
    most, few = max(given[2], default=1), max(len(given[0]) // POINTS, 1)
    for at, dose, k in list(zip(*given, strict=True))[::few]:
        top.dot(at, dose, 1.5 + 2.5 * math.sqrt(k / most), f"dot c{index % COLOURS}")
    upto, safe, allowed, lower, upper = map(known, (arm.pulls, arm.safe, arm.certified, arm.lower, arm.upper))
    if allowed != safe:
        top.steps(upto, allowed, "allowed")
    top.steps(upto, safe, "certified")
    low.band(upto, lower, upper, "band")
    drawn = (top, low) if ends["known"] else (top,)
    for axes in drawn:
        if arm.out:
            axes.line([(arm.out[0], axes.y[0]), (arm.out[0], axes.y[1])], "gone")
    words = f"{arm.name}: doses given, safe dose and bounds on its value, over {ends['subjects']:,.0f} subjects"
    return svg(256, 212 if ends["known"] else 124, words, *drawn, kind="chart story")


def known(bounds: Any) -> list[Any]:
    """Numbers, None where there is no bound."""
    return [x if math.isfinite(x) and abs(x) < HUGE else None for x in bounds.tolist()]


def story_pictures(board: dict[str, Any]) -> list[tuple[ArmStory, Markup]]:
    story: dict[int, ArmStory] = board["story"]
    arms = list(story.values())
    if not len(arms[0].pulls):
        return []
    late = len(arms[0].pulls) // 2  # the wide bounds of the first cohorts would flatten all that came later
    lines = [x for arm in arms for x in (*known(arm.safe), *known(arm.certified))]  # none leaves its axes
    value = [x for arm in arms for x in (*known(arm.lower[late:]), *known(arm.upper[late:])) if x is not None]
    ends = {
        "subjects": float(arms[0].pulls[-1]) * 1.04,
        "dose": _span([*(d for arm in arms for d in arm.given[1].tolist()), *(x for x in lines if x is not None)]),
        "value": _span(value),
        "known": bool(value),
    }
    return [(arm, story_picture(arm, i, board["arms"][i]["labels"], ends)) for i, arm in story.items()]


def harm_bar(value: float | None, limit: float, ceiling: float) -> Markup:
    """A small bar: harm against the limit. The number stands beside it."""
    if value is None or not limit > 0:
        return Markup("")
    full = max(ceiling, limit) * 1.25
    wide, at = 88 * min(max(value / full, 0.0), 1.0), 88 * limit / full
    kind = "bar over" if value > limit else "bar"
    return Markup(
        f'<svg class="mini" viewBox="0 0 88 12" width="88" height="12" aria-hidden="true">'
        f'<rect class="track" width="88" height="12" rx="2"/>'
        f'<rect class="{kind}" width="{n(wide)}" height="12" rx="2"/>'
        f'<line class="mark" x1="{n(at)}" x2="{n(at)}" y1="0" y2="12"/></svg>'
    )


def interval(low: float | None, high: float | None, ends: tuple[float, float], best: bool) -> Markup:
    """A small interval on a scale that all arms share; open where a bound is not known."""
    a, b = ends
    if low is None and high is None:
        return Markup("")
    x0 = 88 * min(max(((a if low is None else low) - a) / ((b - a) or 1), 0), 1)
    x1 = 88 * min(max(((b if high is None else high) - a) / ((b - a) or 1), 0), 1)
    return Markup(
        f'<svg class="mini" viewBox="0 0 88 12" width="88" height="12" aria-hidden="true">'
        f'<rect class="track" y="5" width="88" height="2"/>'
        f'<rect class="span{" best" if best else ""}" x="{n(x0)}" y="2" width="{n(max(x1 - x0, 2))}" height="8"/>'
        f"</svg>"
    )


def value_ends(arms: Sequence[dict[str, Any]]) -> tuple[float, float]:
    found = [a[k] for a in arms for k in ("lower", "upper") if a[k] is not None]
    return _span(found) if found else (0.0, 1.0)


def curves(problem: Any, scenario: Any) -> Markup:
    """Mean harm and mean effect of every arm by dose, of a truth that somebody supposes."""
    import numpy as np

    p, truth = problem, scenario.truth(problem)
    most = np.where(np.isfinite(p.largest), p.largest, np.where(np.isnan(truth.dose), p.starts, 1.5 * truth.dose))
    dose = np.linspace(p.starts, most, 61)
    labels = [str(x) for x in max((a.labels or () for a in p.arms), key=len)] or None
    if labels:
        dose = np.minimum(np.arange(len(labels), dtype=float)[:, None], p.largest)
    out = []
    for k, (key, values) in enumerate((("harm", scenario.harms(dose)), ("effect", scenario.effects(dose)))):
        x = _span(dose.ravel().tolist())
        axes = _by_dose(key, x, values.ravel().tolist(), labels, p.limit, p.ceiling)
        for i in range(min(len(p.arms), 12)):
            points = list(zip(dose[:, i].tolist(), values[:, i].tolist(), strict=True))
            axes.line(points, f"curve c{i % COLOURS} d{i // COLOURS}")
            if np.isfinite(truth.dose[i]):
                at_best = (scenario.harms, scenario.effects)[k](truth.dose[None])[0, i]
                words = f"{p.names[i]}: largest safe dose {p.arms[i].label(float(truth.dose[i]))}"
                axes.dot(float(truth.dose[i]), float(at_best), 4, f"dot c{i % COLOURS}", words)
        out.append(axes)
    return two_panels(out, *(f"Mean {key} by dose of {len(p.arms)} arms, as supposed" for key in ("harm", "effect")))
