"""What a problem costs, and what would make it cheaper: a first look before a study is planned.

Whether it can be resolved at all follows from the problem alone. The rest is about one truth: the bound that no design
can beat, about how many subjects ours takes (a few simulated trials, with their error), and what each assumption costs:
the same with one thing changed. Changes are compared under a coarser policy, which decides less often: what it adds to
the number of subjects it adds to both, and an answer comes in seconds. Of a budget: what it buys, by a few trials that
end there, and how often any design could have named the best by then, roughly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .characteristics import Characteristics
from .designs.base import BEST_ARM, WITHIN_TOLERANCE, Design
from .noise import Guessed, Noise
from .problem import Problem
from .results import no_single_best
from .scenario import Scenario
from .simulate import simulate
from .theory import NotStated, certified_lower_bound, doubts, kl
from .theory.resolvable import dear, refuse

LONGEST = 100_000  # subjects after which a trial of the first look is given up; at the budget, where that is larger
COARSE = 5  # so many times larger cohorts where changes are compared


@dataclass(frozen=True)
class Size:
    """About how many subjects it takes, and in which share of the trials it came to an end."""

    mean: float
    se: float
    p90: float
    ended: float
    upto: int = LONGEST

    def __str__(self) -> str:
        if self.at_least:
            given_up = f"{1 - self.ended:.0%} of trials were given up at {self.upto:,}"
            return f"at least {self.mean:,.0f} on average ({given_up})"
        return f"{self.mean:,.0f} ± {self.se:,.0f} on average, {self.p90:,.0f} in one of ten"

    @property
    def at_least(self) -> bool:
        """Some trials had no end by then: the mean is too small."""
        return self.ended < 1


@dataclass(frozen=True)
class Change:
    what: str
    ratio: float  # subjects with it, to subjects without
    se: float
    at_most: bool = False  # where trials without it were given up, so that they would take more
    unknown: bool = False  # where trials with it were

    def __str__(self) -> str:
        return f"{'at most ' * self.at_most}{self.ratio:.0%} ± {self.se:.0%}"


@dataclass(frozen=True)
class Bought:
    """What a budget buys: shares of simulated trials that end with it; without a truth, what could be told apart."""

    budget: int
    gap: float  # no design is expected to name the best arm by then whose value is less than about this above the rest
    named: float | None = None  # the best arm
    recommended: float | None = None
    over: float | None = None  # the recommended dose is above the limit
    most: float | None = None  # about how often any design with the promise can have named the best arm by then
    trials: int = 0
    exposed: float | None = None  # of all subjects, above the limit
    halved: tuple[float, float, float] | None = None  # on levels: half the slack; exposed, and the best named, with it

    def lines(self) -> Iterator[str]:
        if self.named is None or self.recommended is None:
            yield (
                f"A budget of {self.budget:,}: whatever the design, do not expect a name by then unless the best arm's "
                f"value is at least about {self.gap:.2g} above the others' (rough: as if all safe doses were known)."
            )
            return
        error = math.sqrt(max(self.recommended * (1 - self.recommended), 0.05) / self.trials)
        yield (
            f"A budget of {self.budget:,} buys: the best arm named in {self.named:.0%} of trials, recommended in "
            f"{self.recommended:.0%}; in {self.over:.0%} of all trials the dose recommended is over the limit "
            f"({self.trials} simulated trials, so ± {error:.0%})."
        )
        yield f"Of its subjects {self.exposed:.0%} are over the limit" + (
            "; with a slack of {:g} it is {:.0%}, and the best arm is named in {:.0%} of trials.".format(*self.halved)
            if self.halved
            else "."
        )
        if self.most is not None and self.most < 1:
            yield (
                f"About {self.most:.0%} is what the best design with this promise could name by then (rough: scaled "
                "from the bound above, as evidence grows with the subjects)."
            )


@dataclass(frozen=True)
class Advice:
    problem: Problem
    scenario: Scenario | None
    doubts: list[str]
    least: float | None = None  # no design can do with fewer on average, where the theorem is stated
    size: Size | None = None
    changes: tuple[Change, ...] = ()  # the most helpful first; all together last
    together: Change | None = None
    trials: int = 0
    bought: Bought | None = None
    unclear: str | None = None  # why there is not one best arm to be found

    def lines(self) -> list[str]:
        """In words."""
        said = [f"It may never end: {line}." for line in self.doubts] or ["It can be resolved."]
        said += [f"It is dear: {line}." for line in dear(self.problem)]
        if self.scenario:
            broken = self.scenario.violations(self.problem)
            said += [f"{self.scenario.name}: outside the assumptions, so nothing is promised: {x}." for x in broken]
        if self.scenario is None:
            said.append("How many subjects depends on the truth: give the arms effect and harm curves to learn more.")
        elif self.unclear:
            return [f"If {self.scenario.name} were the truth: {self.unclear}."]
        if self.size is None or self.scenario is None:
            return [*said, *(self.bought.lines() if self.bought else ())]
        said.append(
            f"If {self.scenario.name} were the truth it would take {self.size} (at delta {self.problem.delta:g})."
        )
        if self.least:
            said.append(f"No design that keeps the promise can do with fewer than {self.least:,.0f} on average.")
        said += self.bought.lines() if self.bought else ()
        clear = [change for change in self.changes if change.ratio + 2 * change.se < 1 and not change.unknown]
        if clear:
            first, *others = (f"{change.what} would take {change} of that" for change in clear)
            said += [f"What would save most: {first}.", *(f"Also: {other}." for other in others)]
        if rest := [change.what for change in self.changes if change not in clear]:
            said.append(f"No clear difference, in so few trials: {'; '.join(rest)}.")
        half = [change.what for change in clear if change.ratio <= 0.5]
        if half:
            said.append(f"It would be halved by {' or by '.join(half)}.")
        elif self.together and (self.together.unknown or (self.together.at_most and self.together.ratio > 0.5)):
            said.append(f"What would halve it is not seen: too many trials were given up at {self.size.upto:,}.")
        elif self.together:
            enough = "would halve it" if self.together.ratio <= 0.5 else "would not halve it"
            said.append(f"No single change halves it; all together {enough} ({self.together}).")
        said.append(f"A first look at {self.trials} simulated trials a line; ± is one standard error.")
        return said

    def to_dict(self) -> dict[str, Any]:
        rows = [
            {"change": x.what, "ratio": None if x.unknown else x.ratio, "se": x.se, "at_most": x.at_most}
            for x in self.changes
        ]
        return {
            "scenario": self.scenario.name if self.scenario else None, "doubts": self.doubts, "least": self.least,
            "subjects": vars(self.size) | {"at_least": self.size.at_least} if self.size else None,
            "changes": rows, "no_single_best": self.unclear,
            "budget": vars(self.bought) if self.bought else None,
            "together": self.together.ratio if self.together else None, "trials": self.trials, "words": self.lines(),
        }  # fmt: skip


def advise(problem: Problem, scenario: Scenario | None, design: Design, trials: int = 16, seed: int = 0) -> Advice:
    """A problem that nothing can resolve is refused, before anything is simulated."""
    refuse(problem)
    found = Advice(problem, scenario, doubts(problem), trials=trials)
    asked, problem = problem, problem.but(budget=Problem.budget)
    if asked.most:
        found = replace(found, bought=Bought(asked.most, apart(asked)))
    if scenario is None:
        return found
    if (unclear := no_single_best(problem, scenario.truth(problem))) and not problem.tolerance:
        return replace(found, unclear=unclear)
    rough = design.but(growth=COARSE * design.options["growth"]) if "growth" in design.options else design
    upto = min(max(LONGEST, asked.most or 0), 10 * LONGEST)
    usual, all_, changes = size(problem, scenario, rough, trials, seed, upto), problem, list[Change]()

    def compared(what: str, other: Problem) -> Change:
        then = size(other, scenario, rough, trials, seed, upto)
        ratio = then.mean / usual.mean
        se = ratio * math.hypot(then.se / then.mean, usual.se / usual.mean)
        return Change(what, ratio, se, usual.at_least, then.at_least)

    for what, key, value in variants(problem, scenario):
        changes.append(compared(what, problem.but(**{key: value})))
        all_ = all_.but(**{key: value})
    together = compared("all of these", all_) if len(changes) > 1 else None
    changes.sort(key=lambda change: change.ratio)
    now, bound = size(problem, scenario, design, trials, seed, upto), least(problem, scenario)
    if found.bought:
        found = replace(found, bought=buys(asked, scenario, design, 4 * trials, seed, bound))
    return replace(found, least=bound, size=now, changes=tuple(changes), together=together)


def buys(problem: Problem, scenario: Scenario, design: Design, trials: int, seed: int, least: float | None) -> Bought:
    """What trials that end with the budget come to."""
    n = Characteristics(simulate(problem, scenario, design, trials, seed)).numbers
    named, best, over = (n[key]["rate"] for key in ("named_best", "recommended_best", "recommended_over_limit"))
    most = None if least is None else reachable(problem.budget / least, problem.delta)
    exposed, halved = n["over_limit"]["pulls_share"], None
    if problem.shape == "levels" and problem.slack:
        half = problem.but(slack=problem.slack / 2)
        m = Characteristics(simulate(half, scenario, design, trials, seed)).numbers
        halved = half.slack or 0.0, m["over_limit"]["pulls_share"], m["named_best"]["rate"]
    return Bought(problem.budget, apart(problem), named, best, over, most, trials, exposed, halved)


def reachable(share: float, delta: float) -> float:
    """How often the best can be named with this share of the least mean: the q whose kl(q, delta) is that share of
    kl(delta, 1 - delta). A bound where there is one rival at one dose, and else about it (see theory.certified)."""
    low, high = delta, 1 - delta
    if share >= 1 or not 0 < delta < 0.5:
        return 1.0
    for _ in range(40):
        q = (low + high) / 2
        told = q * math.log(q / delta) + (1 - q) * math.log((1 - q) / (1 - delta))
        low, high = (q, high) if told < share * kl(delta) else (low, q)
    return low


def apart(problem: Problem) -> float:
    """The gap at which the budget is the least mean of any design, all rivals equal, one known dose each: d Gaussian
    arms take 2 sigma^2 (1 + sqrt(d - 1))^2 kl(delta, 1 - delta) / gap^2 (Garivier and Kaufmann 2016)."""
    wide = problem.noises[0].scale * (1 + math.sqrt(len(problem.arms) - 1))
    return wide * math.sqrt(2 * kl(problem.delta) / problem.budget)


def size(problem: Problem, scenario: Scenario, design: Design, trials: int, seed: int, upto: int) -> Size:
    result = simulate(problem.but(budget=upto), scenario, design, trials, seed)
    pulls = result.pulls.astype(float)
    se = float(pulls.std(ddof=1)) / math.sqrt(trials) if trials > 1 else 0.0
    ended = float(np.isin(result.ending, (BEST_ARM, WITHIN_TOLERANCE)).mean())
    return Size(float(pulls.mean()), se, float(np.quantile(pulls, 0.9)), ended, upto)


def least(problem: Problem, scenario: Scenario) -> float | None:
    """The bound of theory.certified; it is about doses, not about ordered levels."""
    if problem.shape == "levels":
        return None
    try:
        return certified_lower_bound(problem, scenario).pulls
    except NotStated:
        return None


def variants(problem: Problem, scenario: Scenario) -> Iterator[tuple[str, str, Any]]:
    """One thing changed: in words, and as a field of the problem."""
    if problem.slack:
        yield f"a slack of {2 * problem.slack:g} in place of {problem.slack:g}", "slack", 2 * problem.slack
    if problem.delta < 0.5:
        yield f"a delta of {2 * problem.delta:g} in place of {problem.delta:g}", "delta", 2 * problem.delta
    if scenario.noise is None and any(hasattr(noise, "sigma") for noise in problem.noises):
        noise = tuple(Noise(x.kind, x.scale / math.sqrt(2)) if hasattr(x, "sigma") else x for x in problem.noises)
        yield "the mean of two readings a subject (sigma lower by the root of 2)", "noise", noise
    if scenario.noise is None and problem.squares and any(isinstance(noise, Guessed) for noise in problem.noises):
        noise = tuple(Noise("gaussian", x.scale) if isinstance(x, Guessed) else x for x in problem.noises)
        yield "a sigma that is known, such as earlier readings give (surefoot pilot)", "noise", noise
    if problem.shape == "monotonic":
        steep = steepest(problem, scenario)
        arms = tuple(replace(x, lipschitz=max(k, 0.5 * x.lipschitz)) for x, k in zip(problem.arms, steep, strict=True))
        if any(new.lipschitz < 0.99 * old.lipschitz for new, old in zip(arms, problem.arms, strict=True)):
            yield "Lipschitz constants half as large, where the truth allows it", "arms", arms
    if problem.tolerance is None:
        values = np.sort(scenario.truth(problem).value)
        gap = float(values[-1] - values[-2])
        if 0 < gap < math.inf:
            yield f"a tolerance of {gap:.3g} (the second best arm would do too)", "tolerance", gap * (1 + 1e-6)


def steepest(problem: Problem, scenario: Scenario) -> list[float]:
    """How fast harm rises at most in every arm, as seen on a fine grid."""
    dose = np.linspace(problem.starts, problem.largest, 2001)
    width = np.diff(dose, axis=0)
    rise = np.diff(scenario.harms(dose), axis=0) / np.where(width > 0, width, 1.0)
    return [float(x) * (1 + 1e-6) for x in np.maximum(rise.max(axis=0), 1e-9)]
