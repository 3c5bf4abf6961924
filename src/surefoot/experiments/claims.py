"""What the paper's experimental section claims, and what was measured here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..characteristics import upper_bound
from ..simulate import Array
from .cells import Ran
from .cost import Cost
from .paper import FIGURES, LIPSCHITZ, Runs, find

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"
Z = 2.58  # 99% of a normal distribution lies within so many standard errors


@dataclass(frozen=True)
class Claim:
    says: str
    measured: str
    verdict: str


def claims(runs: Runs, cost: Sequence[Cost]) -> list[Claim]:
    out = []
    for check in (straight_line, beats_both, linear_regret, half_of_safeopt, half_theory, drug_regret):
        says, judge = check(runs)
        measured, verdict = judge() if judge else ("not run here", UNKNOWN)
        out.append(Claim(says, measured, verdict))
    return [*out, no_errors(runs), slow(cost)]


Check = tuple[str, Callable[[], tuple[str, str]] | None]


def straight_line(runs: Runs) -> Check:
    says = "Linear model: the number of pulls of Algorithm 1 scales linearly with d."
    mine = find(runs, "paper-linear", "safebai-linear")

    def judge() -> tuple[str, str]:
        d, mean = np.array(list(mine)), np.array([ran.pulls.mean() for ran in mine.values()])
        text = f"mean pulls {_by_arms(mine)}"
        if len(d) < 3:
            return text + "; a line needs three numbers of arms", UNKNOWN
        slope, start = np.polyfit(d, mean, 1)
        off = float(np.max(np.abs(start + slope * d - mean) / mean))
        noise = max(_se(ran) / ran.pulls.mean() for ran in mine.values())
        text += f"; off the line {start:,.0f} + {slope:,.0f} d by at most {off:.1%} (standard errors {noise:.1%})"
        return text, HOLDS if off <= 0.1 else FAILS if off > 3 * noise else UNKNOWN

    return says, judge if mine else None


def beats_both(runs: Runs) -> Check:
    says = "Linear model: Algorithm 1 outperforms SafeOpt and Safe-LTS significantly."
    mine = find(runs, "paper-linear", "safebai-linear")
    others = {spec: find(runs, "paper-linear", spec) for spec in ("safeopt", "safe-lts")}

    def judge() -> tuple[str, str]:
        parts, verdicts = [], []
        for spec, them in others.items():
            parts.append(f"{spec} takes {_ratios(them, mine)} times as many")
            verdicts += [_fewer(mine[d], them[d]) for d in them if d in mine]
        return "; ".join(parts) + _cap_note(*others.values()), _all(verdicts)

    return says, judge if mine and all(others.values()) else None


def linear_regret(runs: Runs) -> Check:
    says = (
        "Linear model, d = 10: Algorithm 1 has the fastest decrease in simple regret, near zero once the best arm is "
        "identified; Safe-LTS and SafeOpt decrease more slowly."
    )
    return says, _regret(runs, "paper-linear", "safebai-linear", ("safeopt", "safe-lts"))


def half_of_safeopt(runs: Runs) -> Check:
    says = (
        "Drug model: Algorithm 2 (with the appendix's constant schedule) takes roughly half the drug evaluations of "
        "SafeOpt in all instances. (delta and the slack are not given there.)"
    )
    return says, _half(runs, "safebai-monotonic:schedule=paper")


def half_theory(runs: Runs) -> Check:
    return "The same for Algorithm 2 as its theorem has it.", _half(runs, "safebai-monotonic")


def drug_regret(runs: Runs) -> Check:
    says = (
        "Drug model, d = 20: Algorithm 2 performs much better in simple regret: it identifies the best drug sooner, "
        "and its intermediate estimates are better."
    )
    return says, _regret(runs, "paper-drug", "safebai-monotonic:schedule=paper", ("safeopt",))


def no_errors(runs: Runs) -> Claim:
    says = "Every algorithm always found the best arm, and none pulled any unsafe arm."
    mine = [ran for cell, ran in runs.items() if cell.design.split(":")[0] in PAPERS]
    if not mine:
        return Claim(says, "not run here", UNKNOWN)
    trials = sum(ran.cell.trials for ran in mine)
    wrong, unsafe, capped = (int(sum(getattr(ran, key).sum() for ran in mine)) for key in ("wrong", "unsafe", "capped"))
    text = (
        f"{wrong} wrong and {unsafe} unsafe in {trials:,} trials (99% upper bounds {upper_bound(wrong, trials):.1%} "
        f"and {upper_bound(unsafe, trials):.1%}); unsafe: a pull above the limit, in the drug model above limit + slack"
    )
    if capped:
        text += f"; {capped} trials hit their cap and named no arm"
    return Claim(says, text, FAILS if wrong or unsafe else UNKNOWN if capped else HOLDS)


PAPERS = ("safebai-linear", "safebai-monotonic", "safeopt", "safe-lts")


def slow(cost: Sequence[Cost]) -> Claim:
    says = "The expensive posterior update makes SafeOpt slow to run beyond 5,000 samples."
    first, last = cost[0], cost[-1]
    growth = np.log(last.textbook / first.textbook) / np.log(last.t / first.t)
    at = last.textbook * (5000 / last.t) ** growth
    text = (
        f"textbook update: {last.textbook * 1e3:,.0f} ms at {last.t:,} samples, growing as t^{growth:.1f}, so about "
        f"{at:,.1f} s at 5,000; on the grid with rank-one updates a whole pull takes {first.grid * 1e6:,.0f} us at "
        f"{first.t:,} samples and {last.grid * 1e6:,.0f} us at {last.t:,}: slow is the implementation, not SafeOpt"
    )
    return Claim(says, text, FAILS if last.grid < 2 * first.grid else HOLDS)


def _half(runs: Runs, spec: str) -> Callable[[], tuple[str, str]] | None:
    mine = find(runs, "paper-drug", spec)
    them = find(runs, "paper-drug", "safeopt")
    other = find(runs, "paper-drug", LIPSCHITZ)

    def judge() -> tuple[str, str]:
        text = f"{_ratios(mine, them)} of SafeOpt"
        if other:
            text += f"; {_ratios(mine, other)} of SafeOpt with Lipschitz expanders"
        verdicts = []
        for d in mine:
            ratio = mine[d].pulls.mean() / them[d].pulls.mean()
            roughly = 1 / 3 <= ratio <= 2 / 3
            verdicts.append(UNKNOWN if them[d].capped.any() and ratio > 1 / 3 else HOLDS if roughly else FAILS)
        return text + " (roughly half: a third to two thirds)" + _cap_note(them, other), _all(verdicts)

    return judge if mine and them else None


def _regret(runs: Runs, scenario: str, spec: str, others: Sequence[str]) -> Callable[[], tuple[str, str]] | None:
    """Compared over the pulls that the design itself takes, from a hundredth of them on: before, all are guessing."""
    mine = find(runs, scenario, spec)
    them = {other: find(runs, scenario, other) for other in others}
    arms = [d for d in mine if all(d in rans for rans in them.values())]
    drawn = [d for it in FIGURES.values() if (it.scenario, it.kind) == (scenario, "regret") for d in it.arms]

    def judge() -> tuple[str, str]:
        d = max(set(drawn) & set(arms), default=arms[-1])  # what the figure shows
        ran = mine[d]
        end = float(ran.pulls.mean())
        inside = (ran.at >= end / 100) & (ran.at <= end)
        steps = np.gradient(np.log(ran.at[inside]))
        area = {"it": _area(ran, inside, steps)} | {o: _area(r[d], inside, steps) for o, r in them.items()}
        last = int(np.searchsorted(ran.at, ran.pulls.max()))
        final = float(ran.regret[:, min(last, len(ran.at) - 1)].mean())
        text = f"d = {d}: mean regret between {end / 100:,.0f} and {end:,.0f} pulls (mean over the logarithm): "
        text += ", ".join(f"{name} {m:.3f} ± {se:.3f}" for name, (m, se) in area.items())
        text += f"; {final:.3f} when it has ended"
        m, se = area.pop("it")
        lead = [(x - m) / np.hypot(se, s) if np.hypot(se, s) else np.sign(x - m) * 99 for x, s in area.values()]
        if d not in drawn:  # a sketch with fewer arms says nothing about the figure's
            return f"{text}; the claim is about d = {drawn[-1]}, which was not run", UNKNOWN
        return text, HOLDS if min(lead) > Z else FAILS if min(lead) < -Z else UNKNOWN

    return judge if arms else None


def _area(ran: Ran, inside: Array, steps: Array) -> tuple[float, float]:
    each = (ran.regret[:, inside] * steps).sum(axis=1) / steps.sum()
    return float(each.mean()), float(each.std(ddof=1) / len(each) ** 0.5) if len(each) > 1 else 0.0


def _se(ran: Ran) -> float:
    return float(ran.pulls.std(ddof=1) / len(ran.pulls) ** 0.5) if len(ran.pulls) > 1 else 0.0


def _fewer(mine: Ran, them: Ran) -> str:
    """Whether `mine` takes fewer pulls; a capped run took at least its cap."""
    gap, noise = them.pulls.mean() - mine.pulls.mean(), np.hypot(_se(mine), _se(them))
    if mine.capped.any():
        return UNKNOWN
    return HOLDS if gap > Z * noise else FAILS if gap < -Z * noise and not them.capped.any() else UNKNOWN


def _all(verdicts: Sequence[str]) -> str:
    return FAILS if FAILS in verdicts else UNKNOWN if UNKNOWN in verdicts or not verdicts else HOLDS


def _by_arms(rans: dict[int, Ran]) -> str:
    return ", ".join(f"{ran.pulls.mean():,.0f} (d = {d})" for d, ran in rans.items())


def _ratios(top: dict[int, Ran], bottom: dict[int, Ran]) -> str:
    both = [d for d in top if d in bottom]
    marks = [(">" if top[d].capped.any() else "") + ("<" if bottom[d].capped.any() else "") for d in both]
    values = [top[d].pulls.mean() / bottom[d].pulls.mean() for d in both]
    return ", ".join(f"{m}{v:.2g} (d = {d})" for d, v, m in zip(both, values, marks, strict=True))


def _cap_note(*groups: dict[int, Ran]) -> str:
    capped = sum(int(ran.capped.sum()) for group in groups for ran in group.values())
    return f"; {capped} of these runs hit their cap and count as the cap" if capped else ""
