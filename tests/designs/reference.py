"""The paper's two algorithms written loop by loop from its pseudocode, one trial at a time, to hold designs against.

Beside the pseudocode there is what every design here has: levels, a tolerance, a budget, refining, and stopping an arm
whose start dose looks unsafe (`Referee`). `compare` plays a design and a transcription with the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from surefoot.designs.base import BEATEN, ENDINGS, RUNNING, STOPPED, Cohort, Design, Outcome
from surefoot.problem import Arm, Problem
from surefoot.scenario import Scenario

Read = Callable[[int, int, float, int], tuple[float, float]]  # round, arm, dose, n -> means of effects and of harms


def down(arm: Arm, dose: float) -> float:
    """A dose as it can be given: at most the largest, and at one of the levels where there are any."""
    dose = min(dose, arm.largest)
    return max((x for x in arm.levels if x <= dose), default=arm.start) if arm.levels else dose


@dataclass
class Referee:
    """Who is still in, why the others are out, and when it is over."""

    p: Problem
    rounds: list[dict[int, tuple[float, int]]] = field(default_factory=list)  # arm: (dose, n)
    pulls: int = 0
    out: dict[int, tuple[int, int, int, float, float]] = field(
        default_factory=dict
    )  # standing, round, by, upper, lower
    winner: int | None = None
    ending: str = "running"
    found: str = ""

    def __post_init__(self) -> None:
        d = len(self.p.arms)
        self.lower, self.upper = [-math.inf] * d, [math.inf] * d
        self.a_s = [arm.start for arm in self.p.arms]
        self.unsafe = [arm.largest for arm in self.p.arms]

    @property
    def active(self) -> list[int]:
        return [i for i in range(len(self.p.arms)) if i not in self.out]

    @property
    def playing(self) -> list[int]:
        return self.active if self.winner is None else [self.winner]

    def give(self, cohort: dict[int, tuple[float, int]]) -> bool:
        """Whether the budget allows this cohort."""
        cost = sum(n for _, n in cohort.values())
        if self.pulls + cost > self.p.budget:
            self.ending = self.found or "budget-spent"
            return False
        self.pulls += cost
        self.rounds.append(cohort)
        return True

    def conclude(self, harm_at_start: dict[int, float]) -> None:
        now = len(self.rounds)
        for i, harm in harm_at_start.items():
            if i in self.active and harm > self.p.limit:
                self.out[i] = (STOPPED, now, -1, math.nan, harm)
                if self.winner == i:
                    self.winner, self.found = None, ""
        if not self.active:
            self.ending = "all-stopped"
            return
        leader = max(self.active, key=lambda i: (self.lower[i], -i))
        for i in self.active:
            if i != leader and self.upper[i] <= self.lower[leader]:
                self.out[i] = (BEATEN, now, leader, self.upper[i], self.lower[leader])
                if self.winner == i:
                    self.winner, self.found = None, ""
        if self.winner is None:
            rivals = [self.upper[i] for i in self.active if i != leader]
            if not rivals:
                self.winner, self.found = leader, "best-arm"
            elif self.p.tolerance is not None and max(rivals) <= self.lower[leader] + self.p.tolerance:
                self.winner, self.found = leader, "within-tolerance"
        if self.winner is not None:
            width = self.unsafe[self.winner] - self.a_s[self.winner]
            if self.p.refine is None or width <= self.p.refine:
                self.ending = self.found


def algorithm_1(p: Problem, read: Read) -> Referee:
    ref, d, gamma, sigma = Referee(p), len(p.arms), p.limit, p.sigma
    l = 1
    while ref.ending == "running":
        eps = 2.0**-l
        N = math.ceil(2 * sigma**2 * math.log(8 * d * l**2 / p.delta) * eps**-2)
        if not ref.give({i: (ref.a_s[i], N) for i in ref.playing}):
            break
        harm_at_start = {}
        for i in ref.playing:
            a, a0, M = ref.a_s[i], p.arms[i].start, p.arms[i].largest
            y, z = read(l - 1, i, a, N)
            theta, mu = y / a, z / a
            if a < M:
                # a denominator at or below 0 certifies no dose as safe but the start, and none as unsafe
                safe = gamma / (mu + eps / a) if mu + eps / a > 0 else a0
                unsafe = gamma / (mu - eps / a) if mu - eps / a > 0 else M
                ref.a_s[i] = down(p.arms[i], max(safe, a0))
                ref.unsafe[i] = down(p.arms[i], max(unsafe, a0))
            else:
                ref.a_s[i], ref.unsafe[i] = M, M
            ref.lower[i] = ref.a_s[i] * (theta - eps / a)
            ref.upper[i] = ref.unsafe[i] * (theta + eps / a)
            harm_at_start[i] = a0 * (mu - eps / a)
        ref.conclude(harm_at_start)
        l += 1
    return ref


@dataclass
class Climb:
    """What Algorithm 2 keeps of one arm."""

    a_s: float
    a_u: float
    f_s: float = math.nan
    f_u: float = math.nan
    unsafe: bool = False


def epoch(p: Problem, arm: Arm, s: Climb, eps: float) -> Generator[float, tuple[float, float], None]:
    """One arm's turn in one epoch of Algorithm 2: yields doses to Estimate, is sent the two means."""
    gamma, K, M = p.limit, arm.lipschitz, arm.largest
    assert p.slack is not None

    # increase safe value to g^-1(gamma)
    s.f_s, g = yield s.a_s
    while gamma - g > 2 * eps:
        up = down(arm, s.a_s + (gamma - g - eps) / K)
        if up <= s.a_s:  # the largest dose, or no level in reach
            break
        s.a_s = up
        s.f_s, g = yield s.a_s
    if s.a_s >= M:  # the largest dose is safe: its estimate serves both bounds
        s.a_u, s.f_u = M, s.f_s
        return

    if not s.unsafe:
        # increase unsafe value to g^-1(gamma + slack)
        s.f_u, g = yield s.a_u
        while not g - eps >= gamma:
            if not gamma + p.slack - g > 2 * eps:
                return
            up = down(arm, s.a_u + (gamma + p.slack - g - eps) / K)
            if up <= s.a_u:
                return
            s.a_u = up
            s.f_u, g = yield s.a_u
        s.unsafe = True
    else:
        # decrease unsafe value to g^-1(gamma)
        low = s.a_s
        while True:
            a = down(arm, s.a_u / 2 + low / 2)
            first = low == s.a_s
            if a <= low or (not first and K * (s.a_u - a) <= eps):
                s.f_u, _ = yield s.a_u  # it gives up: back to the dose that was shown to be unsafe
                return
            f, g = yield a
            if g - eps >= gamma:
                s.a_u, s.f_u = a, f
                return
            low = a


def algorithm_2(p: Problem, read: Read, constant: bool = False) -> Referee:
    ref, sigma = Referee(p), p.sigma
    arms = [Climb(arm.start, arm.start) for arm in p.arms]
    l, t = 1, 0
    eps, turns, asked = 0.5, dict[int, Generator[float, tuple[float, float], None]](), dict[int, float]()

    def open_epoch() -> None:
        nonlocal turns, asked
        turns = {i: epoch(p, p.arms[i], arms[i], eps) for i in ref.playing}
        asked = {i: next(turn) for i, turn in turns.items()}

    open_epoch()
    while ref.ending == "running":
        cohort = {}
        for i in sorted(asked):  # t is handed out round by round, in arm order
            t += 1
            log = math.log(8 * 8 / p.delta) if constant else math.log(8 * t**2 / p.delta)
            cohort[i] = (asked[i], math.ceil(2 * sigma**2 * log * eps**-2))
        if not ref.give(cohort):
            break
        asked, harm_at_start = {}, {}
        for i, (dose, n) in cohort.items():
            f, g = read(len(ref.rounds) - 1, i, dose, n)
            if dose == p.arms[i].start:
                harm_at_start[i] = g - eps
            with suppress(StopIteration):
                asked[i] = turns[i].send((f, g))
            ref.a_s[i] = arms[i].a_s
            if harm_at_start.get(i, -math.inf) > p.limit:
                asked.pop(i, None)
        ended = not asked
        if ended:
            for i in ref.playing:
                ref.lower[i] = arms[i].f_s - eps
                if arms[i].unsafe or arms[i].a_u >= p.arms[i].largest:
                    ref.upper[i] = arms[i].f_u + eps
                if arms[i].unsafe:
                    ref.unsafe[i] = arms[i].a_u
            l += 1
            eps = 2.0**-l
        ref.conclude(harm_at_start)
        if ended and ref.ending == "running":
            open_epoch()
        asked = {i: dose for i, dose in asked.items() if i in ref.playing}
    return ref


def compare(
    design: Design,
    algorithm: Callable[[Problem, Read], Referee],
    p: Problem,
    scenario: Scenario,
    trials: int,
    seed: int,
    loud: float = 1.0,
) -> list[str]:
    """Play both with the same noise, hold every number of one against the other, and return how the trials ended.

    Noise that is so many times as loud as declared leads to where the bounds contradict each other.
    """
    sigmas = loud * np.array([noise.scale for noise in p.noises])

    def noise(k: int) -> np.ndarray:
        drawn: np.ndarray = np.random.default_rng([seed, k]).standard_normal((trials, len(p.arms), 2))
        return drawn

    state, cohorts = design.start(p, trials), list[Cohort]()
    while np.any(state.ending == RUNNING):
        cohort = design.ask(state)
        assert np.all((cohort.n.sum(axis=1) > 0) == (state.ending == RUNNING))
        means = np.stack([scenario.effects(cohort.dose), scenario.harms(cohort.dose)], axis=-1)
        n = cohort.n[..., None]
        sums = n * means + sigmas * np.sqrt(n) * noise(len(cohorts))
        state = design.tell(state, cohort, Outcome(cohort.n, sums[..., 0], sums[..., 1]))
        cohorts.append(cohort)
        assert len(cohorts) <= 5000, "it does not end"

    drawn = [noise(k) for k in range(len(cohorts))]
    v = design.verdict(state)
    for trial in range(trials):

        def read(k: int, i: int, dose: float, n: int, trial: int = trial) -> tuple[float, float]:
            at = np.array([dose] * len(p.arms))
            z = sigmas * drawn[k][trial, i] / math.sqrt(n)
            return float(scenario.effects(at)[i] + z[0]), float(scenario.harms(at)[i] + z[1])

        ref = algorithm(p, read)
        assert len(ref.rounds) == v.rounds[trial]
        for k, row in enumerate(ref.rounds):
            n = cohorts[k].n[trial]
            assert {i: n[i] for i in np.flatnonzero(n)} == {i: n for i, (_, n) in row.items()}, f"round {k}"
            same([cohorts[k].dose[trial, i] for i in row], [dose for dose, _ in row.values()])
        assert ENDINGS[v.ending[trial]] == ref.ending
        assert v.pulls[trial] == ref.pulls
        assert v.winner[trial] == (-1 if ref.winner is None else ref.winner)
        stayed = [i for i in range(len(p.arms)) if ref.out.get(i, (0,))[0] != STOPPED]
        for ours, theirs in ((v.lower, ref.lower), (v.upper, ref.upper), (v.safe, ref.a_s), (v.unsafe, ref.unsafe)):
            same(ours[trial][stayed], np.array(theirs)[stayed])
        outs = [ref.out.get(i, (0, 0, -1, math.nan, math.nan)) for i in range(len(p.arms))]
        for k, ours in enumerate((v.standing, v.out_round, v.out_by, v.out_upper, v.out_lower)):
            same(ours[trial], [out[k] for out in outs])
    return v.endings()


def same(ours: object, theirs: object) -> None:
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-9, atol=1e-12)
