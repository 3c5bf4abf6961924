"""Ordered levels: how often right at a budget, a guardrail beside a classical sequential test.

python -m benchmarks.levels budgets [--trials 300]      published cases at N = 60, 200, 1,000, beside BOIN and 3+3
python -m benchmarks.levels answer [--trials 200]       the same for a policy that spends the last of a budget otherwise
python -m benchmarks.levels chance [--trials 40]        is the estimated probability of being best calibrated?
python -m benchmarks.levels guardrail [--trials 40]     crashes: at most 1%, in five ramp stages
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot import case, make, simulate
from surefoot.designs import default
from surefoot.designs.base import Cohort, Outcome
from surefoot.designs.levels_evidence import LevelsState
from surefoot.designs.levels_policy import LevelsPolicy, Look
from surefoot.designs.recommend import normal
from surefoot.designs.surefoot import SurefootLevels

PUBLISHED = ("levels-thall", "levels-riviere", "levels-brock", "levels-boinet")
SEED = 17


def row(*cells: Any) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*cells: str) -> None:
    row(*cells)
    row(*["---"] * len(cells))


def budgets(trials: int) -> None:
    print("right drug recommended / recommended level over the limit / share of subjects over the limit\n")
    head("", "N", "surefoot-levels", "boin", "three-plus-three")
    for name in PUBLISHED:
        for n in (60, 200, 1000):
            cells = []
            for design in ("surefoot-levels", "boin", "three-plus-three"):
                problem, truth = case(name, budget=n)
                ran = simulate(problem, truth, make(design), trials, SEED, progress=False)
                right = ran.good[ran.recommended][ran.recommended >= 0].sum() / trials
                over = ran.over_pulls.sum() / ran.pulls.sum()
                advised = ran.sums.counts["recommended over"] / trials
                cells.append(f"{right:.2f} / {advised:.2f} / {over:.2f}")
            row(name, n, *cells)
        problem, truth = case(name)
        ran = simulate(problem, truth, make("surefoot-levels"), trials, SEED, progress=False)
        said = f"median {np.median(ran.pulls):,.0f}, 90% {np.quantile(ran.pulls, 0.9):,.0f}, wrong {ran.wrong.sum()}"
        row(name, "the end", said, "", "")


@dataclass(frozen=True)
class ForTheAnswer(LevelsPolicy):
    """Once so much of the budget is left it pulls where the recommendation is in doubt: how far the value of an arm may
    be from what it seems, by level, the more the nearer it is to the leader's."""

    last: float = 0.3

    def contest(self, s: LevelsState, v: Look) -> tuple[Any, Any]:
        arm, level = super().contest(s, v)
        weight, mean, error = self.evidence.values(s, v.effect, v.harm)
        mean = np.nan_to_num(mean)
        expected = (weight * mean).sum(axis=2)
        part = weight * (error**2 + (mean - expected[..., None]) ** 2)
        wide = part.sum(axis=2)
        rows = np.arange(len(arm))
        gap = expected[rows, v.leader][:, None] - expected
        near = normal(-gap / np.sqrt(wide + wide[rows, v.leader][:, None]))
        reach = np.minimum(self.evidence.certified(s), v.reach)[..., None]
        may = (s.standing == 0)[..., None] & (np.arange(s.n.shape[2]) <= reach)
        doubt = np.where(may, near[..., None] * part / (s.n + 1), -1.0).reshape(len(arm), -1).argmax(axis=1)
        late = s.pulls >= (1 - self.last) * s.problem.budget
        return np.where(late, doubt // s.n.shape[2], arm), np.where(late, 1.0 * (doubt % s.n.shape[2]), level)


def answer(trials: int, instances: int = 12) -> None:
    print("right arm recommended, and arm named, N = 200\n")
    head("spent for the answer", *PUBLISHED, f"{instances} random instances")
    for last in (0.0, 0.3, 0.7):
        design, cells = SurefootLevels(policy=ForTheAnswer(last=last)), []
        made = [[case(name, budget=200)] for name in PUBLISHED]
        made.append([case("random-levels", instance=500 + i, budget=200) for i in range(instances)])
        for group in made:
            rans = [simulate(*it, design, max(trials // len(group), 10), SEED, progress=False) for it in group]
            right = np.mean([ran.good[ran.recommended].mean() for ran in rans])
            cells.append(f"{right:.3f}, {np.mean([(ran.winner >= 0).mean() for ran in rans]):.2f}")
        row(f"{last:.0%}", *cells)


def chance(trials: int, instances: int = 20) -> None:
    print("estimated probability of being best: said, and how often it was so (how many); none while arms climb")
    bins = np.array([0.5, 0.7, 0.85, 0.95])
    for family, budgets in (("levels", (60, 200)), ("monotonic", (200, 1000, 3000)), ("linear", (200, 1000))):
        print()
        head(f"random-{family}, N", "no word", "below .5", "to .7", "to .85", "to .95", "above")
        for n in budgets:
            said, was = list[float](), list[bool]()
            for i in range(instances):
                problem, truth = case(f"random-{family}", instance=500 + i, budget=n)
                design, rng = make(default(problem.shape)), np.random.default_rng(SEED + i)
                state = design.start(problem, trials)
                while np.any(state.ending == 0):
                    cohort: Cohort = design.ask(state)
                    effect, harm, _ = truth.draw(rng, problem, cohort.dose, cohort.n, state.pulls)
                    state = design.tell(state, cohort, Outcome(cohort.n, effect, harm))
                found, value = design.recommendation(state), truth.truth(problem).value
                open_ = state.winner < 0
                said += found.chance[open_].tolist()
                was += (value[found.arm] >= value.max() - 1e-9)[open_].tolist()
            place = np.where(np.isnan(said), -1, np.digitize(said, bins))
            parts = [(np.array(said)[place == k], np.array(was)[place == k]) for k in range(5)]
            cells = (f"{a.mean():.2f}, {b.mean():.2f} ({len(a)})" if len(a) else "" for a, b in parts)
            row(n, f"{np.mean(place < 0):.0%}", *cells)


def classical(rng: np.random.Generator, harm: Sequence[float], effect: Sequence[float], p: Any) -> tuple[int, int]:
    """Two changes at full exposure, users in turn. Wald's sequential test of each crash rate, limit against limit +
    slack, at a quarter of delta each and both ways; of two that pass, Wald's test of which converts more, told by how
    much they differ. Users in all, and users of a change that is over the guardrail."""
    step, gap, spread = 500, abs(effect[0] - effect[1]), 2 * effect[0] * (1 - effect[0])
    users, crashes, gains = np.zeros(2), np.zeros(2), 0.0
    passed, failed = np.zeros(2, bool), np.zeros(2, bool)
    while users.max() < 10**7:
        gains += float(np.diff(rng.binomial(step, effect))[0]) if not failed.any() else 0.0
        users, crashes = users + step * ~failed, crashes + rng.binomial(step, harm) * ~failed
        odds = np.log(p.ceiling / p.limit), np.log((1 - p.ceiling) / (1 - p.limit))
        told = crashes * odds[0] + (users - crashes) * odds[1]
        passed = passed | (~failed & (told <= -np.log(4 / p.delta)))
        failed = failed | (~passed & (told >= np.log(4 / p.delta)))
        apart = abs(2 * gap * gains / spread) >= np.log(2 / p.delta)
        if bool((passed | failed).all()) and (bool(failed.any()) or apart):
            break
    return int(users.sum()), int(users[np.array(harm) > p.limit].sum())


def guardrail(trials: int) -> None:
    problem, truth = case("ramp-crashes")
    top = np.full((1, 2), 4.0)
    harm, effect = truth.harms(top)[0], truth.effects(top)[0]
    rng = np.random.default_rng(SEED)
    theirs = np.array([classical(rng, harm, effect, problem) for _ in range(trials)])
    ran = simulate(problem, truth, make("surefoot-levels"), trials, SEED, progress=False)
    print("users, and users over the guardrail (1% of sessions crash), two changes, delta 0.05\n")
    head("", "users, median", "90%", "over the guardrail, median", "mean excess of their crash rate", "wrong")
    mine = float(ran.excess.sum() / max(ran.over_pulls.sum(), 1))
    for name, users, over, excess, wrong in (
        ("surefoot-levels, five stages", ran.pulls, ran.over_pulls, mine, f"{ran.wrong.sum()} of {trials}"),
        ("Wald's tests at full exposure", theirs[:, 0], theirs[:, 1], float(max(harm) - problem.limit), ""),
    ):
        sizes = (np.median(users), np.quantile(users, 0.9), np.median(over))
        row(name, *(f"{x:,.0f}" for x in sizes), f"{excess:.4f}", wrong)


def main(arguments: Sequence[str] | None = ("budgets", "--trials", "40")) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["budgets", "answer", "chance", "guardrail"])
    parser.add_argument("--trials", type=int)
    args = parser.parse_args(arguments)
    part, trials = {
        "budgets": (budgets, 300),
        "answer": (answer, 200),
        "chance": (chance, 40),
        "guardrail": (guardrail, 40),
    }[args.what]
    part(args.trials or trials)


if __name__ == "__main__":
    main(None)
