"""Operating characteristics: what a design did over many simulated trials, with the Monte-Carlo error of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .checks import html_table, markdown_table
from .designs.base import ALL_STOPPED, ENDINGS
from .results import no_single_best
from .scenario import hair
from .simulate import DOSE_BINS, Array, Result

ABOVE = ("above_limit", "above_ceiling")
SIDE_BY_SIDE = 4  # more results than these are shown one a row


def upper_bound(count: int, trials: int, level: float = 0.99) -> float:
    """The Clopper-Pearson upper bound: with `level` confidence the true rate is at most this."""
    from scipy.special import betaincinv

    return 1.0 if count >= trials else float(betaincinv(count + 1, trials - count, level))


@dataclass(frozen=True)
class Characteristics:
    """The operating characteristics of one Result, with their Monte-Carlo error.

    Parameters
    ----------
    result
        Of a simulation.
    least
        A lower bound on the mean pulls of any design, to compare with (see `theory.certified_lower_bound`).

    Examples
    --------
    >>> from surefoot import Characteristics, case, make, simulate
    >>> table = Characteristics(simulate(*case("paper-linear", 2), make("safebai-linear"), 20, progress=False))
    >>> table
    <Characteristics: safebai-linear on paper-linear, 20 trials, mean pulls ..., failed 0 (promised at most 0.1)>
    >>> table.to_dict()["failed"]["count"]  # `rows()` is for reading, `to_dict()` what `--json` prints
    0
    """

    result: Result
    least: float | None = None  # a lower bound on the mean pulls of any design (see theory.certified_lower_bound)

    @cached_property
    def numbers(self) -> dict[str, Any]:
        r, p, sums = self.result, self.result.problem, self.result.sums
        counts, pulls, trials = sums.counts, sum(x * k for x, k in sums.pulls.items()), sums.trials
        over = counts["over pulls"]
        return {
            "scenario": r.scenario.name,
            "design": r.design.name,
            "label": r.design.label,
            "arms": len(p.arms),
            "delta": p.delta,
            "slack": p.slack,
            "limit": p.limit,
            "signals": p.signals,
            "budget": p.most,
            "trials": r.trials,
            "seed": r.seed,
            "best": p.names[r.truth.best] if np.any(np.isfinite(r.truth.value)) else None,  # None: no arm is safe
            "no_single_best": no_single_best(p, r.truth),
            "guarantee": r.design.guarantee,
            "outside_assumptions": r.scenario.violations(p),
            "pulls": {
                "mean": sums.mean,
                "sd": sums.sd,
                "se": sums.sd / trials**0.5,
                "median": sums.quantile(0.5),
                "p90": sums.quantile(0.9),
                "max": max(sums.pulls),
            }
            | ({"of_least": sums.mean / self.least} if self.least else {}),
            "pulls_by_arm": self._by(r.by_arm.sum(axis=1), p.names),
            "pulls_by_dose": self._by_dose(),
            **({"pulls_by_level": self._levels(), **self._right()} if p.shape == "levels" else {}),
            "named_best": self._share("named best"),
            "recommended_best": self._share("recommended best"),
            "recommended_over_limit": self._share("recommended over"),
            "selection": self._selection(),
            "wrong": self._rate("wrong", "count"),
            "unsafe": {**self._rate("unsafe", "trials"), "pulls": counts["unsafe pulls"]},
            "failed": self._rate("failed", "count"),
            "over_limit": {
                "pulls_share": over / max(pulls, 1),
                "pulls": over / trials,
                "mean_excess": float(sums.excess) / over if over else 0.0,
            }
            | ({"above_ceiling": sum(x["above_ceiling"] for x in self.by_level)} if p.shape == "levels" else {}),
            "safe": {"share": float(sums.share) / counts["shares"] if counts["shares"] else None},
            "decisions": {"mean": counts["rounds"] / trials, "max": sums.most_rounds},
            "endings": {ENDINGS[k]: counts[f"ending {k}"] for k in range(1, len(ENDINGS))},
            "seconds": r.seconds,
        }

    def _by(self, sums: Array, names: Sequence[str]) -> dict[str, float]:
        return {name: float(x) / self.result.trials for name, x in zip(names, sums, strict=True)}

    def _by_dose(self) -> dict[str, float]:
        """By dose range; with ordered levels by their names, or where arms call them differently by which it is."""
        sums = self.result.by_arm.sum(axis=0)
        labels = [arm.labels or () for arm in self.result.problem.arms]
        most = max(labels, key=len)
        if not most:
            return self._by(sums, dose_ranges())
        same = all(x == most[: len(x)] for x in labels)
        return self._by(sums, [f"at {most[k]}" if same else f"level {k + 1}" for k in range(len(sums))])

    def _levels(self) -> dict[str, dict[str, dict[str, float]]]:
        found: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.by_level:
            found.setdefault(row["arm"], {})[row["level"]] = {k: row[k] for k in ("harm", "pulls", *ABOVE)}
        return found

    @cached_property
    def by_level(self) -> list[dict[str, Any]]:
        """Subjects a trial at every level of every arm, its true mean harm, and how many of them that is too many for:
        above the limit, and above the ceiling (limit + slack)."""
        r, p, found = self.result, self.result.problem, []
        harm = r.scenario.harms(np.minimum(np.arange(r.by_arm.shape[1])[:, None], p.largest))
        for i, arm in enumerate(p.arms):
            for k, label in enumerate(arm.labels or ()):
                n, h = float(r.by_arm[i, k]) / r.trials, float(harm[k, i])
                over = {key: n * (h > x + hair(x)) for key, x in zip(ABOVE, (p.limit, p.ceiling), strict=True)}
                found.append({"arm": arm.name, "level": str(label), "harm": h, "pulls": n} | over)
        return found

    def _right(self) -> dict[str, Any]:
        """How often the best arm was recommended at its largest safe level; nothing where there is no such arm."""
        truth = self.result.truth
        best = truth.best
        at = f"selected {best} {truth.dose[best]:.0f}"
        return {"recommended_right_level": self._share(at)} if np.isfinite(truth.value[best]) else {}

    def _rate(self, bad: str, word: str) -> dict[str, Any]:
        count, trials = self.result.sums.counts[bad], self.result.trials
        return {word: count, "rate": count / trials, "upper": upper_bound(count, trials)}

    def _share(self, what: str) -> dict[str, Any]:
        count, trials = self.result.sums.counts[what], self.result.trials
        about = (count + 2) / (trials + 4)  # so that no rate is said to be certain (Agresti and Coull 1998)
        return {"count": count, "rate": count / trials, "se": (about * (1 - about) / (trials + 4)) ** 0.5}

    def _selection(self) -> dict[str, float]:
        """How often each arm was recommended; with ordered levels each arm and level."""
        counts, trials, found = self.result.sums.counts, self.result.trials, dict[str, float]()
        for k, arm in enumerate(self.result.problem.arms):
            if arm.labels is None:
                found[arm.name] = counts[f"selected {k}"] / trials
            else:
                found |= {f"{arm.name} at {x}": counts[f"selected {k} {j}"] / trials for j, x in enumerate(arm.labels)}
        none = counts[f"ending {ALL_STOPPED}"] / trials
        return found | ({"none, all were stopped": none} if none else {})

    def to_dict(self) -> dict[str, Any]:
        """All numbers, by name."""
        return self.numbers

    def __repr__(self) -> str:
        n = self.numbers
        promise = f"promised at most {n['delta']:g}" if self.promised else "no promise"
        return (
            f"<Characteristics: {n['label']} on {n['scenario']}, {n['trials']:,} trials, mean pulls "
            f"{n['pulls']['mean']:,.0f}, failed {n['failed']['count']} ({promise})>"
        )

    def _repr_html_(self) -> str:
        return html_table(dict(self.rows()))

    def rows(self) -> list[tuple[str, str]]:
        """Names and values, for a table."""
        n, said = self.numbers, brief(self)
        rate = {k: f"{self._percent(n[k]['rate'])} (at most {self._percent(n[k]['upper'])}, at 99%)" for k in RATES}
        pulls, safe = n["pulls"], n["safe"]["share"]
        ceiling = "limit + slack" if n["slack"] is not None else "limit"
        promise = (
            f"failed (wrong or unsafe), promised at most {n['delta']:g}" if self.promised else "failed (no promise)"
        )
        return [
            ("pulls, mean", f"{pulls['mean']:,.1f} ± {pulls['se']:,.1f}"),
            ("pulls, sd", f"{pulls['sd']:,.1f}"),
            ("pulls, median / 90% / most", f"{pulls['median']:,.0f} / {pulls['p90']:,.0f} / {pulls['max']:,}"),
            *([("pulls, times the lower bound", f"{pulls['of_least']:.2f}")] if "of_least" in pulls else []),
            ("decisions, mean", f"{n['decisions']['mean']:,.1f}"),
            *(
                (key, said[key])
                for key in (NAMED, RECOMMENDED, RIGHT, "recommended dose over the limit")
                if key in said
            ),
            (promise, rate["failed"] + ("" if self.named == 1 else f"; an arm was named in {self.named:.1%}")),
            ("wrong arm", rate["wrong"]),
            (
                f"any pull above {ceiling}" if "pulls_by_level" not in n else "any level given that may not be",
                rate["unsafe"],
            ),
            (
                "pulls above the limit",
                f"{n['over_limit']['pulls_share']:.2%}, by {n['over_limit']['mean_excess']:.3g} on average",
            ),
            (
                "winner's safe dose as shown, of the way to the true one",
                "none" if safe is None else f"{safe:.1%}",
            ),
            ("endings", ", ".join(f"{name} {count:,}" for name, count in n["endings"].items() if count)),
            ("pulls by arm", ", ".join(_few([f"{k} {v:,.0f}" for k, v in n["pulls_by_arm"].items()]))),
            *self._dose_rows(),
        ]

    def _dose_rows(self) -> list[tuple[str, str]]:
        n = self.numbers
        by = ", ".join(f"{k} {v:,.0f}" for k, v in n["pulls_by_dose"].items())
        if "pulls_by_level" not in n:
            return [("pulls by dose, start to largest safe", by)]
        over = [
            ", ".join(_few([f"{x['arm']} at {x['level']} {x[key]:,.1f}" for x in self.by_level if x[key]]))
            for key in ABOVE
        ]
        return [
            ("pulls by level", by),
            ("pulls above the limit, by level", over[0] or "none"),
            ("pulls above limit + slack, by level", over[1] or "none"),
        ]

    @property
    def promised(self) -> bool:
        """Whether the guarantee is claimed here: the design has one, and the scenario keeps to the assumptions."""
        return bool(self.numbers["guarantee"]) and not self.numbers["outside_assumptions"]

    @property
    def named(self) -> float:
        """The share of trials that named an arm, right or wrong: only these could name a wrong one."""
        return float((self.numbers["named_best"]["count"] + self.numbers["wrong"]["count"]) / self.result.trials)

    @property
    def notes(self) -> list[str]:
        """What has to be known to read these numbers."""
        n = self.numbers
        said = [f"{n['scenario']}: {n['no_single_best']}"] if n["no_single_best"] else []
        said += [f"{n['scenario']}: outside the assumptions, so nothing is promised: {x}"
                 for x in n["outside_assumptions"]]  # fmt: skip
        if n["slack"] and n["over_limit"]["pulls"]:
            one = ", nor the level just above one within it" * ("pulls_by_level" in n)
            ceiling = f"limit + slack ({n['limit'] + n['slack']:g})"
            said.append(f"a dose over the limit and within {ceiling} is not failed{one}: see who was over the limit")
        if not n["guarantee"]:
            said.append(f"{n['design']} promises nothing: whatever it ends with counts as named, right or wrong")
        return said

    def _percent(self, rate: float) -> str:
        """With the digits that so many trials can tell."""
        return f"{rate:.{1 + (self.result.trials >= 2000) + (self.result.trials >= 20_000)}%}"


def _few(parts: list[str], most: int = 12) -> list[str]:
    return parts if len(parts) <= most else [*parts[: most - 1], f"{len(parts) - most + 1} more"]


def dose_ranges() -> list[str]:
    step = 100 // DOSE_BINS
    return [f"{k * step}-{(k + 1) * step}%" for k in range(DOSE_BINS)] + ["above"]


def brief(table: Characteristics) -> dict[str, str]:
    """One result in a row: what a planner asks first. Where there is not one best arm, that stands in its place."""
    n, percent = table.numbers, table._percent
    share = {key: f"{percent(n[key]['rate'])} ± {percent(n[key]['se'])}" for key in ASKED if key in n}
    wrong, recommended = percent(n["wrong"]["rate"]), share["recommended_best"]
    named = f"{percent(n['named_best']['rate'])} / {wrong}"
    if n["best"] is None:
        named = f"none safe / {wrong}"
        recommended = f"stopped {percent(n['endings']['all-stopped'] / n['trials'])}"
    elif (n["no_single_best"] or "").startswith("all arms"):
        named, recommended = f"any, {percent(table.named)}", "any will do"
        share.pop("recommended_right_level", None)
    pulls, over = n["pulls"], n["over_limit"]
    return {
        "scenario": n["scenario"],
        "design": n["label"],
        "at most": f"{n['budget']:,}" if n["budget"] else "the end",
        NAMED: named,
        RECOMMENDED: recommended,
        **({RIGHT: share["recommended_right_level"]} if "recommended_right_level" in share else {}),
        "failed (at most, 99%)": f"{percent(n['failed']['rate'])} ({percent(n['failed']['upper'])})",
        "promised": f"{n['delta']:g}" if table.promised else "nothing",
        "subjects over the limit": f"{over['pulls']:,.1f} ({over['pulls_share']:.0%})",
        "recommended dose over the limit": percent(n["recommended_over_limit"]["rate"]),
        "subjects: mean / 90%": f"{pulls['mean']:,.0f} / {pulls['p90']:,.0f}",
    }


NAMED, RECOMMENDED, RIGHT = "named: best / wrong", "recommended: best", "and at its largest safe level"
ASKED = ("recommended_best", "recommended_right_level")
RATES = ("wrong", "unsafe", "failed")


def to_markdown(tables: Sequence[Characteristics]) -> str:
    """Side by side, one column a result; of many, one row a result."""
    if len(tables) > SIDE_BY_SIDE:
        rows = [brief(one) for one in tables]
        return markdown_table([list(rows[0]), *(list(row.values()) for row in rows)]) + "\n"
    columns = [dict(_plain(t)) for t in tables]
    head = [", ".join(filter(None, (t.numbers["scenario"], t.numbers["label"], _at_most(t)))) for t in tables]
    cells = [[key, *(column.get(key, "") for column in columns)] for key in _keys(columns)]
    return markdown_table([["", *head], *cells]) + "\n"


def _at_most(table: Characteristics) -> str:
    return f"at most {table.numbers['budget']:,}" if table.numbers["budget"] else ""


def _plain(table: Characteristics) -> list[tuple[str, str]]:
    """The rows with the promise in one of its own, so that designs with and without one stand side by side."""
    promise = f"failed at most {table.numbers['delta']:g}" if table.promised else "none"
    rows = [("failed (wrong or unsafe)" if k.startswith("failed") else k, v) for k, v in table.rows()]
    return [("promise", promise), *rows]


def _keys(columns: Sequence[dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(key for column in columns for key in column))


def to_csv(tables: Sequence[Characteristics]) -> str:
    """One line a result, nested names joined by dots."""
    flat = [_flatten(t.numbers) for t in tables]
    names = list(dict.fromkeys(name for row in flat for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def _flatten(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            out |= _flatten(value, f"{prefix}{key}.")
        else:
            out[prefix + key] = "; ".join(value) if isinstance(value, list) else value
    return out


def to_rich(tables: Sequence[Characteristics]) -> Any:
    """For a terminal: a column a result, as many side by side as fit; of many results, a row a result."""
    from .tables import Fit

    first, names = tables[0].numbers, list(dict.fromkeys(t.numbers["scenario"] for t in tables))
    line = f"limit {first['limit']:g}" + (f" + slack {first['slack']:g}" if first["slack"] else "")
    title = f"{', '.join(names)}: {first['arms']} arms, {line}, delta {first['delta']:g}"
    title += f", {first['trials']:,} trials, seed {first['seed']}"
    if len(tables) > SIDE_BY_SIDE:
        some = list(dict.fromkeys(t.numbers["label"] for t in tables if t.numbers["guarantee"]))
        title += f"; failed: wrong or unsafe, promised at most {first['delta']:g} by {', '.join(some) or 'none'}"
        spent = all(t.numbers["budget"] == t.numbers["pulls"]["mean"] for t in tables)  # then that says how many
        skip = {"promised", "subjects: mean / 90%"} if spent else {"promised"}
        rows = [{key: x for key, x in brief(one).items() if key not in skip} for one in tables]
        return Fit(rows, title, "scenario", ("design", "at most"))
    heads = _heads(tables)
    columns = [dict(t.rows() if len(tables) == 1 else _plain(t)) for t in tables]
    rows = [{"": key} | {h: c.get(key, "") for h, c in zip(heads, columns, strict=True)} for key in _keys(columns)]
    return Fit(rows, title, keys=("",))


def _heads(tables: Sequence[Characteristics]) -> list[str]:
    """Names of results side by side: what differs of scenario, design and budget; the design where nothing does."""
    told = [(t.numbers["scenario"], t.numbers["label"], _at_most(t)) for t in tables]
    differ = [len(set(column)) > 1 for column in zip(*told, strict=True)]
    differ[1] |= not any(differ)
    heads = [", ".join(x for x, yes in zip(row, differ, strict=True) if yes and x) or "to the end" for row in told]
    return [head + f" ({k})" * (heads[:k].count(head) > 0) for k, head in enumerate(heads)]
