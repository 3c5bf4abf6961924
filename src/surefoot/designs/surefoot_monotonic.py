"""Surefoot-Monotonic: the guarantee of SafeBAI-Monotonic with all data pooled. Theorem 2 of docs/guarantees.md.

For every arm there is a ladder of doses, and for every rung j three bets run, each with the log of its wealth:
- `calm`: that harm at the rung is above limit + slack is refuted. If it were, harm at any dose a would be above
  limit + slack - K (rung - a) (Lipschitz; for a above the rung: monotone), and readings below that speak against it.
- `good`: the same with the limit.
- `over`: that harm at the rung is at or below the limit is refuted, by readings at doses at or below the rung.
The stake on each reading is set before it is taken, from the estimate of the harm so far, so each wealth is a
supermartingale where what it bets against is true; all pulls count for all rungs. Rungs are certified in order, from
below (calm, good) or from above (over). What is bet against is nested in the same order, so the first false certificate
has to be at one fixed rung, and no union over rungs is paid.

Dose. A pull is at a rung that is calm for certain. A rival climbs until its harm looks to be above the limit, and stays
there until that is shown. The leader never needs to go over the limit: it is pulled at its highest good rung.

Verdict. As in Surefoot-Linear, "arm k is best" is tested for every k by the product of two bets at every level x of
effect: that k's value is at least x, by its pulls at the dose where it stays (once that dose is known to be over the
limit, or if it is the largest dose); and that all others' are at most x, by the pulls of the leading arm at good rungs.
Where the effect is steep, the rival comes down by halves, as in the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick, scatter
from ..bounds import Mixture, bet, log_mixture, radius
from ..problem import Problem, Shape, number
from .base import ACTIVE, Cohort, Design, Outcome, State, Verdict, blank, conclude, wanted

# Shares of delta: doses calm, doses good (an arm each), the best arm's dose over the limit, verdict, stop at the start
CALM, GOOD, OVER, VERDICT, STOP = 0.3, 0.2, 0.15, 0.3, 0.05
GAP = Mixture(top=1.0, ratio=1.7, dense=5, above=1, tails=0.1, nothing=0.15)  # in units of the difference seen so far
FINENESS, MOST_RUNGS = 48, 3000  # rungs to a slack, and how many there may be


@dataclass(frozen=True, kw_only=True)
class MonotonicState(State):
    """Wealth by rung (trials, arms, rungs), recent sums for estimates, and the two sums of bets for the verdict."""

    calm: Array
    good: Array
    over: Array
    n: Array
    dose: Array  # where the arm is
    excess: Array  # by how much harm looked to be above the limit at `unsafe`
    calm_to: Array  # the highest dose certified not to exceed limit + slack
    high_n: Array  # recent pulls on the way up and over the limit, those at lower doses fading: effects and harms
    high_effect: Array
    high_harm: Array
    low_n: Array  # and at the highest good rung
    low_effect: Array
    low_harm: Array
    high_dose: Array
    low_dose: Array
    at_good: Array  # whether the next pulls are there
    stay: Array  # the dose at which a rival stays to be shown over the limit; inf while it climbs
    moves: Array  # how often that was changed
    below: Array  # a dose that looks to be below the limit; bisection goes on above it
    bet_v: Array  # bets at `stay`, against a value of x or more
    bet_w: Array
    bet_y: Array
    led_v: Array  # bets while leading, at good rungs, against a value of x or less
    led_w: Array
    led_y: Array
    scale: Array
    leading: Array
    want: Array


@dataclass(frozen=True)
class SurefootMonotonic(Design):
    """The paper's guarantee for monotone curves with all data pooled.

    growth: decide again after an arm has this share more pulls; cohort: and at least so many. growth=0 and cohort=3 is
    fixed cohorts of three, growth=0 and cohort=1 is after every pull. first: pulls of every arm to begin with.
    """

    growth: float = 0.1
    cohort: int = 1
    first: int = 10

    name: ClassVar[str] = "surefoot-monotonic"
    shape: ClassVar[Shape] = "monotonic"
    chunk: ClassVar[int] = 64

    def __post_init__(self) -> None:
        number("growth", self.growth, least=0)
        number("cohort", self.cohort, least=1)
        number("first", self.first, least=1)

    def ladder(self, problem: Problem) -> Any:
        """Doses (arms, rungs), the last one repeated to fill up."""
        rows = []
        for arm in problem.arms:
            fine = max(arm.lipschitz * FINENESS / (problem.slack or 1.0), 3 / (problem.refine or math.inf))
            width = (arm.max - arm.start) * fine
            count = min(max(math.ceil(width), 1), MOST_RUNGS) + 1
            rows.append(np.array(arm.levels) if arm.levels else np.linspace(arm.start, arm.max, count))
        most = max(map(len, rows))
        return np.stack([np.concatenate([row, np.full(most - len(row), row[-1])]) for row in rows])

    def begin(self, problem: Problem, trials: int, xp: Any) -> MonotonicState:
        first = blank(problem, trials, xp)
        zero, none = xp.zeros_like(first["safe"]), xp.zeros_like(first["standing"])
        rungs = xp.zeros((trials, *self.ladder(problem).shape), dtype=xp.float64)
        names = (
            "high_n",
            "high_effect",
            "high_harm",
            "low_n",
            "low_effect",
            "low_harm",
            "bet_v",
            "bet_w",
            "bet_y",
            "led_v",
            "led_w",
            "led_y",
        )
        return MonotonicState(
            **first, **dict.fromkeys(names, zero), calm=rungs, good=rungs, over=rungs, n=none,
            dose=first["safe"], calm_to=first["safe"], excess=zero, at_good=none < 0,
            high_dose=first["safe"], low_dose=first["safe"],
            stay=zero + xp.inf, moves=none, below=first["safe"], scale=zero, leading=xp.zeros_like(first["pulls"]) - 1,
            want=none + self.first,
        )  # fmt: skip

    def plan(self, state: MonotonicState, u: Array) -> Cohort:
        return Cohort(state.dose, state.want)

    def verdict(self, state: MonotonicState) -> Verdict:
        """With intervals for values that hold together, for all arms at all times, with probability 1 - delta, given
        the certificates. Below: from pulls at good rungs while leading; above: from pulls where a rival stays."""
        xp, p, s = array_namespace(state.pulls), state.problem, state
        alpha, sy = p.delta / (4 * len(p.arms)), p.noises[0].scale
        shown = (s.unsafe <= s.stay) | (s.stay >= like(s.safe, p.largest))
        led, met = (s.led_v > 0), (s.bet_v > 0) & shown & xp.isfinite(s.stay)
        moved = 0.6 * 0.4 ** xp.astype(s.moves, xp.float64)  # every place to stay has its share of alpha
        low = (s.led_y - radius(s.led_v, alpha, GAP)) / xp.where(led, s.led_w, 1.0)
        high = (s.bet_y + radius(s.bet_v, alpha * moved, GAP)) / xp.where(met, s.bet_w, 1.0)
        lower, upper = xp.where(led, low * sy, -xp.inf), xp.where(met, high * sy, xp.inf)
        return replace(super().verdict(state), lower=lower, upper=upper, effect_lower=lower, effect_upper=upper)

    def sides(self, s: MonotonicState) -> Any:
        """Harm, its standard error, effect, its standard error: at the high side, and at the good rung."""
        xp, p = array_namespace(s.pulls), s.problem
        guess = p.limit - 0.5 * (p.ceiling - p.limit)
        out = []
        for n, effect, harm in ((s.high_n, s.high_effect, s.high_harm), (s.low_n, s.low_effect, s.low_harm)):
            m = xp.maximum(n, 1e-9)
            root = xp.sqrt(xp.maximum(n, 1.0))
            out.append(
                (xp.where(n > 0, harm / m, guess), p.noises[1].scale / root, effect / m, p.noises[0].scale / root)
            )
        return out

    def learn(self, state: MonotonicState, cohort: Cohort, outcome: Outcome) -> MonotonicState:
        xp, p, s = array_namespace(state.pulls), state.problem, state
        came = outcome.n > 0
        n, a = xp.astype(outcome.n, xp.float64), xp.where(came, cohort.dose, state.dose)
        effect, harm = (xp.where(came, x, 0.0) for x in (outcome.effect, outcome.harm))
        rung, K = like(n, self.ladder(p)), like(n, p.lipschitz)[:, None]

        # Wealth by rung; the stakes come from the estimate before these readings
        high, low = self.sides(s)
        seen, error = (xp.where(s.at_good, y, x)[..., None] for x, y in zip(high[:2], low[:2], strict=True))
        gap = K * xp.maximum(rung - a[..., None], 0.0)
        total, count, noise = harm[..., None], n[..., None], p.noises[1]
        # If harm were above the bound at a rung, it would be above bound - gap here. Half an error is left as margin.
        calm = s.calm + bet(total, count, p.ceiling - gap, seen + 0.5 * error, noise, above=False)
        good = s.good + bet(total, count, p.limit - gap, seen + 0.5 * error, noise, above=False)
        higher = bet(total, count, xp.zeros_like(seen) + p.limit, seen, noise, above=True)
        over = s.over + xp.where(rung >= a[..., None], higher, 0.0)  # a rung below this dose says nothing about it

        # Bets for the verdict: at the dose where a rival stays, and on the leader at doses known to be good
        arms = xp.arange(len(p.arms), device=device(n))
        sy = p.noises[0].scale
        staying = came & ((a >= s.stay) | (a >= like(n, p.largest)))
        leads = came & (arms == s.leading[:, None]) & (a <= s.safe)
        bets, led = (xp.where(x, s.scale, 0.0) for x in (staying, leads))
        up, down = (xp.astype(x | (s.n == 0), xp.float64) for x in (~s.at_good, s.at_good))
        s = replace(
            s, calm=calm, good=good, over=over, rounds=s.rounds + 1, n=s.n + outcome.n,
            high_n=s.high_n + n * up, high_effect=s.high_effect + effect * up, high_harm=s.high_harm + harm * up,
            low_n=s.low_n + n * down, low_effect=s.low_effect + effect * down, low_harm=s.low_harm + harm * down,
            bet_v=s.bet_v + n * bets * bets, bet_w=s.bet_w + n * bets, bet_y=s.bet_y + bets * effect / sy,
            led_v=s.led_v + n * led * led, led_w=s.led_w + n * led, led_y=s.led_y + led * effect / sy,
        )  # fmt: skip
        return self.decide(s)

    def decide(self, s: MonotonicState) -> MonotonicState:
        xp, p, d = array_namespace(s.pulls), s.problem, len(s.problem.arms)
        arms = xp.arange(d, device=device(s.high_n))
        rung, M, K = like(s.high_n, self.ladder(p)), like(s.high_n, p.largest), like(s.high_n, p.lipschitz)
        slack = p.ceiling - p.limit

        # Certificates, in order along the ladder; the start dose is safe to begin with
        calm = xp.maximum(climbed(rung, s.calm >= math.log(d / (CALM * p.delta))), s.calm_to)
        safe = xp.maximum(climbed(rung, s.good >= math.log(d / (GOOD * p.delta))), s.safe)
        unsafe = xp.minimum(lowest(rung, s.over >= math.log(1 / (OVER * p.delta))), s.unsafe)
        stopped = s.over[..., 0] >= math.log(d / (STOP * p.delta))
        harm_at_start = xp.where(stopped, p.limit + 1e-9 * max(abs(p.limit), 1.0), xp.full_like(s.safe, -xp.inf))
        live = (s.standing == ACTIVE) & ~stopped

        # The leader has the largest effect at its good rung. How far from the limit are both ends?
        (seen, error, effect, noise), (low_harm, low_error, low_effect, low_noise) = self.sides(s)
        leader = xp.argmax(xp.where(live, xp.where(s.low_n > 0, low_effect, -1e300), -xp.inf), axis=1)
        rival = live & (arms != leader[:, None])
        best, best_noise = pick(low_effect, leader), pick(low_noise, leader)
        room = xp.maximum(p.limit - low_harm + low_error, 0.0)
        step = K * (xp.min(xp.where(rung > safe[..., None], rung, xp.inf), axis=-1) - safe)
        room = xp.where(room > step, room, 0.0)  # where the next rung is out of reach, there is no room left
        scale = xp.maximum(xp.abs(best - effect), xp.hypot(noise, best_noise)) / p.noises[0].scale
        nearest = xp.min(xp.where(rival, scale, xp.inf), axis=1, keepdims=True)
        scale = xp.where(arms == leader[:, None], xp.where(xp.isfinite(nearest), nearest, scale), scale)

        # What a rival has to show: that where it stays is over the limit (or is the largest dose)
        staying = xp.isfinite(s.stay)
        ready = staying & ((unsafe <= s.stay) | (s.stay >= M))
        excess = xp.where(unsafe < s.unsafe, xp.maximum(seen - p.limit, 0.02 * slack), s.excess)
        s = replace(s, excess=excess, calm_to=calm, safe=safe, unsafe=unsafe, scale=scale, estimate=low_effect)
        beaten, near, level = self.judge(s, leader, rival & ready)
        s = conclude(s, harm_at_start, leader, beaten, near, level, level)
        rival = rival & ~beaten
        left = xp.sum(xp.astype(rival, xp.int64), axis=1, keepdims=True)

        # Going up: a rival arrives where harm looks to be a third of the slack above the limit, and stays
        begun = s.high_n > 0
        arrives = ~staying & begun & ((seen - 0.25 * error >= p.limit + 0.3 * slack) | (s.dose >= M)) & ~s.at_good
        stay = xp.where(~staying & (unsafe < M) & (unsafe <= calm), unsafe, xp.where(arrives, s.dose, s.stay))
        under = ~staying & begun & ~s.at_good & (seen + 0.5 * error < p.limit)
        # Too low there to be shown over the limit: on upwards, or halfway back to a dose that is known to be
        bar = xp.where(unsafe < M, 0.1 * excess, 0.06 * slack)
        low = staying & ~ready & (seen + 0.5 * error < p.limit + bar) & (error < 4 * bar)
        below = xp.maximum(xp.where(low, s.stay, xp.where(under, s.dose, s.below)), safe)
        # Shown, but with more effect than the leader: of the three ends that may be off, move the one furthest off
        clash = ready & rival & (effect + noise > best - best_noise)
        over_gap = xp.where(unsafe <= s.stay, xp.maximum(seen - p.limit, 0.0), 0.0)
        lead_room = pick(room, leader)
        halfway = xp.max(xp.where(rung <= ((below + unsafe) / 2)[..., None], rung, -xp.inf), axis=-1)
        can = (halfway > below) & (halfway < unsafe) & (halfway <= calm)
        below = xp.where(
            (clash | ((s.found > 0)[:, None] & ready)) & ~can, safe, below
        )  # what looked to be below may have been above after all
        won = (s.found > 0)[:, None]
        mine = won & (arms == s.winner[:, None])
        furthest = 1.5 * over_gap >= xp.maximum(room, lead_room)
        descends = can & (halfway < s.stay) & ((clash & furthest) | (mine & ready))
        upmost = effect >= xp.max(xp.where(clash, effect, -xp.inf), axis=1, keepdims=True)
        own_turn = clash & ~descends & (room >= lead_room * (1.0 - 0.5 * xp.astype(upmost, xp.float64)))
        rises = low & (unsafe < M) & can
        stay = xp.where(descends | rises, halfway, xp.where(low, xp.inf, stay))
        changed = descends | low
        keep = xp.astype(~changed, xp.float64)

        # Whom to pull: rivals with something to show of their harm; else leader or rival, the less known of the two
        n = xp.astype(s.n, xp.float64)
        lead_n = pick(s.led_v / xp.maximum(s.scale, 1e-9) ** 2, leader)
        own_n = s.bet_v / xp.maximum(s.scale, 1e-9) ** 2
        asks_leader = (
            rival & ready & ~descends & ~own_turn & (clash | (own_n * xp.sqrt(xp.astype(left, xp.float64)) > lead_n))
        )
        most = xp.max(xp.where(rival, n, 0.0), axis=1, keepdims=True)
        lead_turn = xp.any(asks_leader, axis=1, keepdims=True) | (5 * pick(n, leader) < most)
        is_leader = arms == leader[:, None]
        chosen = xp.where(is_leader, lead_turn, rival & ~asks_leader)
        chosen = xp.where(won, mine, chosen)
        at_good = xp.where(won, (s.rounds % 2 == 0)[:, None], is_leader | own_turn)
        dose = xp.where(at_good, safe, xp.where(xp.isfinite(stay), stay, xp.minimum(calm, M)))
        dose = xp.where(chosen, dose, s.dose)
        at_good = xp.where(chosen, at_good, s.at_good)
        width = xp.maximum(p.ceiling - seen, 0.25 * slack)
        fade = xp.exp(-2 * K * xp.abs(dose - s.high_dose) / width)
        fade = xp.where(at_good | ~chosen, 1.0, fade)
        drop = xp.exp(-2 * K * xp.abs(safe - s.low_dose) / xp.maximum(p.limit - low_harm, 0.1 * slack))
        drop = xp.where(at_good & chosen, drop, 1.0)
        size = xp.maximum(xp.ceil(self.growth * n), float(self.cohort))
        enough = xp.ceil(8 * (math.log(1 / (VERDICT * p.delta)) + 3) / s.scale**2)
        enough = xp.maximum(enough, xp.maximum(xp.ceil(0.2 * self.growth * n), float(self.cohort)))
        calmly = ~xp.any(clash, axis=1, keepdims=True)
        size = xp.where((ready & ~clash) | (is_leader & calmly), xp.minimum(size, enough), size)
        size = xp.where(s.n > 0, xp.where(chosen, size, 0.0), float(self.first))
        return replace(
            s, stay=stay, below=below, moves=s.moves + xp.astype(changed, xp.int64), dose=dose,
            high_n=s.high_n * fade, high_effect=s.high_effect * fade, high_harm=s.high_harm * fade,
            low_n=s.low_n * drop, low_effect=s.low_effect * drop, low_harm=s.low_harm * drop, at_good=at_good,
            high_dose=xp.where(at_good | ~chosen, s.high_dose, dose),
            low_dose=xp.where(at_good & chosen, safe, s.low_dose),
            bet_v=s.bet_v * keep, bet_w=s.bet_w * keep, bet_y=s.bet_y * keep, leading=leader,
            want=xp.astype(xp.where(wanted(s), xp.where(size < 1e15, size, 1e15), 0.0), xp.int64),
        )  # fmt: skip

    def judge(self, s: MonotonicState, leader: Array, which: Array) -> tuple[Array, Array, Array]:
        """Which of these rivals' claims to be best are refuted, which are within the tolerance, and the level x."""
        xp, p, d = array_namespace(s.pulls), s.problem, len(s.problem.arms)
        level = xp.zeros_like(s.safe)
        beaten = near = xp.zeros_like(which)
        row, arm = xp.nonzero(which)
        if row.shape[0] == 0:
            return beaten, near, level
        sy = p.noises[0].scale

        def of(x: Array) -> Array:
            return xp.take(xp.reshape(x, (-1,)), row * d + arm)[:, None]

        k_v, k_w, k_y, moves = (of(x) for x in (s.bet_v, s.bet_w, s.bet_y, xp.astype(s.moves, xp.float64)))
        cost = math.log(0.6) + moves * math.log(0.4)  # every place to stay has a share of the stake set aside for it
        mean = k_y / xp.maximum(k_w, 1e-12)
        lead = xp.take(leader, row)[:, None]
        b = [xp.take(x, row, axis=0) for x in (s.led_v, s.led_w, s.led_y)]
        lead_mean = xp.take_along_axis(b[2] / xp.maximum(b[1], 1e-12), lead, axis=1)
        mine = xp.arange(d, device=device(row)) == arm[:, None]
        named = xp.arange(d, device=device(row)) == lead

        def refuted(goal: float, shift: float, who: Array) -> Array:
            steps = xp.asarray([-0.2 + 1.4 * i / 95 for i in range(96)], device=device(row))
            x = mean - shift / sy + (lead_mean - mean + shift / sy) * steps
            up = xp.where(who[:, None, :], b[2][:, None, :] - x[..., None] * b[1][:, None, :], 0.0)
            up = log_mixture(up, xp.where(who, b[0], 0.0)[:, None, :] + xp.zeros_like(up), GAP)
            up = xp.sum(up, axis=-1)
            down = log_mixture((x + shift / sy) * k_w - k_y, k_v + xp.zeros_like(x), GAP) + cost
            # between two levels, the least evidence of each kind; beyond the last ones, what was never bet
            nothing = math.log(GAP.nothing)
            count = xp.sum(xp.astype(who & (b[0] > 0), xp.float64), axis=1)
            inner = xp.min(up[:, 1:] + down[:, :-1], axis=1)
            outer = xp.minimum(up[:, 0] + nothing + cost[:, 0], nothing * count + down[:, -1])
            return (xp.minimum(inner, outer) >= goal) & (lead_mean > mean - shift / sy)[:, 0]

        share = VERDICT * p.delta * (1.0 if p.tolerance is None else 0.5)
        beaten = which & scatter(which, refuted(math.log(1 / share), 0.0, ~mine))
        if p.tolerance is not None:
            near = which & scatter(which, refuted(math.log((d - 1) / share), p.tolerance, named))
        level = scatter(which, xp.reshape(0.5 * (mean + lead_mean) * sy, (-1,)))
        return beaten, near, level


def climbed(rung: Array, certain: Array) -> Array:
    """The highest rung such that it and all below are certain; the lowest always is."""
    count, _ = run_of(certain[..., 1:])
    return at_rung(rung, count)


def lowest(rung: Array, certain: Array) -> Array:
    """The lowest rung such that it and all above are certain; infinite where not even the highest is."""
    xp, last = array_namespace(certain), rung.shape[-1] - 1
    count, any_ = run_of(xp.flip(certain, axis=-1))
    return xp.where(any_, at_rung(rung, xp.minimum(last + 1 - count, last)), xp.inf)


def run_of(certain: Array) -> tuple[Array, Array]:
    """How many are true before the first that is not, along the last axis, and whether any are."""
    xp = array_namespace(certain)
    end = xp.zeros((*certain.shape[:-1], 1), dtype=xp.uint8, device=device(certain)) + xp.asarray(1, dtype=xp.uint8)
    count = xp.argmax(xp.concat([xp.astype(~certain, xp.uint8), end], axis=-1), axis=-1)
    return count, count > 0


def at_rung(rung: Array, index: Array) -> Array:
    """rung[arm, index[trial, arm]]"""
    xp = array_namespace(rung)
    arms = xp.arange(rung.shape[0], device=device(rung))
    return xp.reshape(xp.take(xp.reshape(rung, (-1,)), xp.reshape(arms * rung.shape[1] + index, (-1,))), index.shape)
