"""Our designs against the paper's, side by side in one run: how many pulls, how safe, how fast.

python -m benchmarks.ours          a few minutes on one core
python -m benchmarks.ours --full   2,000 trials wherever failures are counted; hours
python -m benchmarks.ours versus --before ../0.1.0/src --count 100
                                   random-linear instances beside another version, each in a process of its own

A ratio is mean pulls of `safebai-*` over mean pulls of `surefoot-*`, both with their defaults, on the same problem.
± is one standard error. Trials that spent their budget count with the pulls they made.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from surefoot import CASES, Problem, Scenario, case, make, simulate, theory
from surefoot.characteristics import upper_bound
from surefoot.designs.base import ENDINGS
from surefoot.simulate import Result

SEED = 11
BUDGET = 10**10  # of a random instance, so that none goes on for ever
FAMILIES = ("random-linear", "random-monotonic")


@dataclass(frozen=True)
class Plan:
    """How many trials, of each part."""

    paper: int = 200  # each of the paper's instances
    instances: int = 200  # of each random family
    few: int = 12  # each of them
    catalogue: int = 100
    speed: int = 1_024
    first: int = 0  # instance of versus
    before: str = ""  # the sources of another version


FULL = Plan(paper=2_000, few=50, catalogue=2_000, speed=4_096)


HOW: dict[str, Any] = {}  # what `simulate` is told beside its defaults: --device


def run(problem: Problem, scenario: Scenario, whose: str, trials: int, **options: Any) -> Result:
    how = HOW if whose == "surefoot" else {}
    return simulate(problem, scenario, make(f"{whose}-{problem.shape}", **options), trials, SEED, progress=False, **how)


@dataclass(frozen=True)
class Pair:
    """One problem, both designs."""

    theirs: Result
    ours: Result

    @classmethod
    def of(cls, problem: Problem, scenario: Scenario, trials: int) -> Pair:
        return cls(run(problem, scenario, "safebai", trials), run(problem, scenario, "surefoot", trials))

    @property
    def ratio(self) -> tuple[float, float]:
        """And its standard error."""
        (a, ea), (b, eb) = mean(self.theirs), mean(self.ours)
        return a / b, a / b * math.hypot(ea / a, eb / b)

    @property
    def numbers(self) -> dict[str, Any]:
        return {"theirs": mean(self.theirs), "ours": mean(self.ours), "ratio": self.ratio}


def mean(result: Result) -> tuple[float, float]:
    pulls = result.pulls.astype(float)
    return float(pulls.mean()), float(pulls.std(ddof=1)) / result.trials**0.5


def failures(result: Result) -> int:
    return int((result.wrong | result.unsafe).sum())


def spent(result: Result) -> int:
    return int((result.ending == ENDINGS.index("budget-spent")).sum())


def failed(result: Result) -> str:
    bad, trials = failures(result), result.trials
    return f"{bad}/{trials}, ≤ {upper_bound(bad, trials):.1%}"


def with_error(it: tuple[float, float]) -> str:
    digits = 1 if it[0] < 100 else 0
    return f"{it[0]:,.{digits}f} ± {it[1]:,.{digits}f}"


def tail(result: Result) -> str:
    """The most pulls of any trial, in medians."""
    return f"{result.pulls.max() / np.median(result.pulls):.1f}"


def over(result: Result) -> str:
    """Pulls above the limit: their share, and how many a trial."""
    count = float(result.over_pulls.mean())
    return f"{count / result.pulls.mean():.0%} ({count:,.0f})"


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    sys.stdout.flush()


def paper_linear(plan: Plan, found: dict[str, Any]) -> None:
    rows = []
    for delta in (0.1, 0.01):
        for d in (5, 10, 20):
            problem, scenario = case("paper-linear", d, delta=delta)
            pair = Pair.of(problem, scenario, plan.paper)
            any_ = run(problem.but(signals="any"), scenario, "surefoot", plan.paper)
            least = theory.characteristic_time(problem, scenario).pulls
            times = [mean(one)[0] / least for one in (pair.theirs, pair.ours, any_)]
            rows.append((
                d, delta, with_error(mean(pair.theirs)), with_error(mean(pair.ours)), f"**{with_error(pair.ratio)}**",
                with_error(mean(any_)), with_error(Pair(pair.theirs, any_).ratio), *(f"{x:.1f}" for x in times),
                failed(pair.ours), failed(any_),
            ))  # fmt: skip
            found[f"paper-linear d={d} delta={delta}"] = {**pair.numbers, "over_least": times[1]}
            say(f"paper-linear d={d} delta={delta}: {with_error(pair.ratio)}")
    head = ("d", "delta", "safebai", "surefoot", "ratio", "surefoot, any", "ratio, any", "safebai / T* kl",
            "surefoot / T* kl", "any / T* kl", "failed, 99% bound", "failed, any")  # fmt: skip
    table(f"`paper-linear`, mean pulls ({plan.paper:,} trials)", head, rows)


def paper_drug(plan: Plan, found: dict[str, Any]) -> None:
    rows = []
    for slack in (0.5, 0.2, 0.1):
        for d in (3, 5, 10, 20):
            problem, scenario = case("paper-drug", d, slack=slack)
            pair = Pair.of(problem, scenario, plan.paper)
            rows.append((
                slack, d, with_error(mean(pair.theirs)), with_error(mean(pair.ours)), f"**{with_error(pair.ratio)}**",
                over(pair.theirs), over(pair.ours), tail(pair.ours), failed(pair.ours),
            ))  # fmt: skip
            found[f"paper-drug d={d} slack={slack}"] = {**pair.numbers, "over": over(pair.ours)}
            say(f"paper-drug d={d} slack={slack}: {with_error(pair.ratio)}")
    head = ("slack", "d", "safebai", "surefoot", "ratio", "safebai: pulls above limit", "surefoot: pulls above limit",
            "most / median", "failed, 99% bound")  # fmt: skip
    table(f"`paper-drug`, delta 0.1, mean pulls ({plan.paper:,} trials)", head, rows)


def random_instances(plan: Plan, found: dict[str, Any], families: Sequence[str] = FAMILIES) -> None:
    for family in families:
        summary: list[tuple[object, ...]] = []
        worst: list[tuple[object, ...]] = []
        pairs, fair = [], []
        for k in range(plan.instances):
            problem, scenario = case(family, 8, instance=k, budget=BUDGET)
            pair = Pair.of(problem, scenario, plan.few)
            # the paper's first step is 1 in whatever unit; the better of that and the limit is what a user could set
            other = mean(run(problem, scenario, "safebai", plan.few, unit=problem.limit))[0]
            pairs.append(pair)
            fair.append(min(other, mean(pair.theirs)[0]) / mean(pair.ours)[0])
            if pair.ratio[0] < 2 or spent(pair.ours):
                say(f"{family} {k}: {with_error(pair.ratio)}, {spent(pair.ours)} of {plan.few} spent the budget")
            if (k + 1) % 20 == 0:
                now = np.median([one.ratio[0] for one in pairs])
                say(f"{family}: {k + 1} instances, median ratio {now:.1f}")
        ratios = np.array([pair.ratio for pair in pairs])
        rank = np.argsort(ratios[:, 0])
        low = ratios[rank[0]]
        below = int(np.sum(ratios[:, 0] + 2 * ratios[:, 1] < 1))
        for signals in ("independent", "any"):
            of = [x for x, pair in zip(ratios[:, 0], pairs, strict=True) if pair.ours.problem.signals == signals]
            summary.append((family, signals, len(of), f"{np.median(of):.1f}", f"{np.min(of):.2f}", *[""] * 5))
        summary.append((
            family, "all", len(pairs), f"**{np.median(ratios[:, 0]):.1f}**", f"**{low[0]:.2f} ± {low[1]:.2f}**", below,
            f"{np.median(fair):.1f} / {np.min(fair):.2f}", sum(spent(pair.ours) for pair in pairs),
            f"{sum(failures(pair.ours) for pair in pairs)} of {plan.few * len(pairs):,}",
            f"{max(pair.ours.pulls.max() / np.median(pair.ours.pulls) for pair in pairs):.1f}",
        ))  # fmt: skip
        bad = [
            k
            for n, k in enumerate(rank)
            if n < 12 or ratios[k, 0] < 2 or spent(pairs[k].ours) or failures(pairs[k].ours) > 0.25 * plan.few
        ]
        for k in bad:
            one, p = pairs[k], pairs[k].ours.problem
            value = np.sort(one.ours.truth.value)
            worst.append((
                family, k, f"{ratios[k, 0]:.2f} ± {ratios[k, 1]:.2f}", f"{fair[k]:.2f}", f"{mean(one.theirs)[0]:,.3g}",
                f"{mean(one.ours)[0]:,.3g}", f"{np.median(one.ours.pulls):,.3g}", spent(one.ours), failures(one.ours),
                f"{value[-1]:.3g}", f"{1 - value[-2] / value[-1]:.1%}", p.noises[0].kind + "/" + p.noises[1].kind,
                p.signals,
            ))  # fmt: skip
        found[family] = [
            {"instance": k, "ratio": list(ratios[k]), "spent": spent(one.ours), "failures": failures(one.ours)}
            for k, one in enumerate(pairs)
        ]
        head: tuple[str, ...] = ("family", "signals", "instances", "median ratio", "worst ratio", "below 1 by 2 errors",
                                 "better `unit`: median / worst", "trials that spent 10^10", "failed",
                                 "most / median")  # fmt: skip
        table(f"Random instances, d = 8, delta 0.1 ({plan.few} trials each)", head, summary)
        head = ("family", "K", "ratio", "better `unit`", "safebai", "surefoot", "its median", "spent", "failed",
                "value", "gap", "noise", "signals")  # fmt: skip
        table("The worst of them", head, worst)


def catalogue(plan: Plan, found: dict[str, Any]) -> None:
    rows = []
    for name, it in CASES.items():
        if not it.claim or it.family:
            continue
        problem, scenario = case(name)
        if problem.shape == "levels":  # the paper has no algorithm for them
            continue
        began = time.perf_counter()
        pair = Pair.of(problem, scenario, plan.catalogue)
        row: list[object] = [name, with_error(mean(pair.theirs)), with_error(mean(pair.ours)), with_error(pair.ratio)]
        bound = upper_bound(failures(pair.ours), pair.ours.trials)
        row += [f"{np.median(pair.ours.pulls):,.0f}", tail(pair.ours), failed(pair.ours)]
        row += ["yes" if bound <= problem.delta else "**no**"]
        rows.append([*row, spent(pair.ours)])
        found[name] = {**pair.numbers, "failures": failures(pair.ours), "spent": spent(pair.ours)}
        say(f"{name}: {with_error(pair.ratio)}, failed {failed(pair.ours)} ({time.perf_counter() - began:.0f} s)")
    head = ("scenario", "safebai", "surefoot", "ratio", "surefoot, median", "most / median", "failed, 99% bound",
            "at most delta", "spent")  # fmt: skip
    table(f"The catalogue, mean pulls ({plan.catalogue:,} trials)", head, rows)


BEFORE = """
import sys
from surefoot import case, make, simulate
k, trials, seed = map(int, sys.argv[1:])
problem, scenario = case("random-linear", 8, instance=k, budget=10**10)
print(simulate(problem, scenario, make("surefoot-linear"), trials, seed, progress=False).pulls.mean())
"""


def versus(plan: Plan, found: dict[str, Any]) -> None:
    """Mean pulls on random-linear instances as a part of what another version takes."""
    if not plan.before:
        say("versus: no --before, the sources of the other version")
        return
    for k in range(plan.first, plan.first + plan.instances):
        key = f"versus {k} trials={plan.few}"
        if key not in found:
            ours = mean(run(*case("random-linear", 8, instance=k, budget=BUDGET), "surefoot", plan.few))[0]
            command = [sys.executable, "-c", BEFORE, str(k), str(plan.few), str(SEED)]
            there = subprocess.run(
                command, env={**os.environ, "PYTHONPATH": plan.before}, capture_output=True, text=True, check=True
            )
            found[key] = math.log(ours / float(there.stdout))
            keep(found)
    logs = np.array([x for key, x in found.items() if key.startswith("versus ") and key.endswith(f"trials={plan.few}")])
    error = logs.std(ddof=1) / len(logs) ** 0.5 if len(logs) > 1 else math.nan
    row = (len(logs), f"**{math.exp(logs.mean()):.3f}** ± {error:.3f}", f"{math.exp(logs.max()):.2f}")
    table("random-linear: pulls as a part of the other version's", ("instances", "geometric mean", "worst"), [row])


def tolerance(plan: Plan, found: dict[str, Any]) -> None:
    """Pulls with a tolerance as a part of those without, on random instances of every shape."""
    gaps, rows = (0.3, 1.0, 3.0, 10.0), []
    for family in (*FAMILIES, "random-levels"):
        parts = []
        for k in range(plan.first, plan.first + min(plan.instances, 14)):
            problem, scenario = case(family, instance=k, budget=BUDGET)
            second, first = np.sort(scenario.truth(problem).value)[-2:]
            plain, *others = (
                run(problem.but(tolerance=gap * (first - second) or None), scenario, "surefoot", 2 * plan.few)
                for gap in (0.0, *gaps)
            )
            parts.append([mean(one)[0] / mean(plain)[0] for one in others])
            found[f"tolerance {family} {k}"] = parts[-1]
            say(f"{family} {k}: {' '.join(f'{part:.2f}' for part in parts[-1])}")
        of_gap = np.array(parts).T
        rows.append((family, *(f"{np.exp(np.log(x).mean()):.2f} (worst {x.max():.2f})" for x in of_gap)))
    table("Pulls with a tolerance, of those without", ("instances", *(f"{gap:g} gaps" for gap in gaps)), rows)


def speed(plan: Plan, found: dict[str, Any]) -> None:
    rows = []
    for name in ("paper-linear", "paper-drug"):
        problem, scenario = case(name, 10)
        for whose in ("safebai", "surefoot"):
            began = time.process_time()  # of this process alone, whatever else the machine is doing
            result = run(problem, scenario, whose, plan.speed)
            rate = plan.speed / (time.process_time() - began)
            rows.append((name, f"{whose}-{problem.shape}", f"{rate:,.0f}", f"{result.rounds.mean():,.0f}"))
            found[f"speed {name} {whose}"] = rate
            say(f"{name} {whose}: {rate:,.0f} trials a second")
    table("Simulated trials a second on one core, 10 arms", ("scenario", "design", "trials/s", "decisions"), rows)


PARTS: dict[str, Callable[[Plan, dict[str, Any]], None]] = {
    "speed": speed,
    "linear": paper_linear,
    "drug": paper_drug,
    "catalogue": catalogue,
    "random": random_instances,
    **{family: partial(random_instances, families=[family]) for family in FAMILIES},
    "tolerance": tolerance,
    "versus": versus,
}
KEPT: list[Path] = []  # where numbers are kept


def keep(found: dict[str, Any]) -> None:
    """As they come: a run that was ended goes on where it was."""
    for path in KEPT:
        path.write_text(json.dumps(found, indent=1), encoding="utf-8")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ours", description="Our designs against the paper's.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--full", action="store_true", help="2,000 trials wherever failures are counted")
    parser.add_argument("--instances", "--count", type=int, help="of each random family")
    parser.add_argument("--few", type=int, help="trials of each of them")
    parser.add_argument("--first", type=int, default=0, help="instance of versus")
    parser.add_argument("--before", default="", help="the sources of another version, for versus")
    parser.add_argument("--device", help="where our designs are simulated, such as cuda")
    parser.add_argument("--json", type=Path, help="keep the numbers in this file (drawn by benchmarks.picture)")
    asked = parser.parse_args(arguments)
    if unknown := [part for part in asked.parts if part not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    some = {"first": asked.first, "before": asked.before}
    if asked.instances:
        some |= {"instances": asked.instances}
    if asked.few:
        some |= {"few": asked.few}
    plan = replace(FULL if asked.full else Plan(), **some)
    if asked.device:
        HOW["device"] = asked.device
    there = bool(asked.json and asked.json.exists())
    found: dict[str, Any] = json.loads(asked.json.read_text(encoding="utf-8")) if there else {}
    found["plan"] = vars(plan)
    KEPT[:] = [asked.json] if asked.json else []
    for part in asked.parts or [part for part in PARTS if part not in (*FAMILIES, "versus")]:
        PARTS[part](plan, found)
        keep(found)


if __name__ == "__main__":
    main(sys.argv[1:])
