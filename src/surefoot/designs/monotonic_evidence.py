"""What is proved in Surefoot-Monotonic: Theorem 2 of docs/guarantees.md, step by step in its words.

Climb. Rungs are doses above the last one certified. Against "harm at the rung is above limit + slack" every reading of
the arm is bet: at a dose a it would then have a mean above limit + slack - K (rung - a)+. Rungs are certified in order.

Verdict. Against "arm k is the best" all readings are bet, by where they lie. Let x be the value of k and b an arm's
largest safe dose. Of k, at doses up to b, bet that harm is above the limit; at doses above b, that the effect is below
x. Of an arm j that was leading, at doses up to b, bet that the effect is above x; above b, that harm is below the
limit. At the true x and b each of these bets is against a true statement, so their product is a supermartingale; k is
refuted when the product is large enough at every x and every b of every arm. The doses that were pulled cut an arm's
line into cells (`cells`), within which it makes no difference where b is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick, put, rows, scatter
from ..bounds import Mixture
from ..noise import Noise
from ..problem import Problem
from .base import ACTIVE, REFUTED, Cohort, Outcome, State, Verdict, blank
from .compose import Evidence
from .ladder import RUNGS, first_false, ladder, regrid
from .monotonic_estimates import Guess
from .recommend import Estimates
from .settle import conclude, level_below, round_down

CLIMB, VERDICT, SAFE, UNSAFE, STOP = 0.35, 0.53, 0.04, 0.04, 0.04  # shares of delta
GAP = Mixture(top=1.0, ratio=1.7, dense=5, above=1, tails=0.1, nothing=0.4)  # the difference seen is 1
HUGE = 1e60  # levels beyond which no value lies
LEVELS = [-HUGE, -10.0, -1.0, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 2.0, 11.0, HUGE]  # from one value to another
ZERO, ONE = LEVELS.index(0.0), LEVELS.index(1.0)
FINER = 16  # parts of a cell between two levels
SPARE = 0.9  # nats by which an upper bound of the evidence has to be more than enough: as much as is never bet

# What is kept of an arm's pulls at one dose: how many and the sum of their effects; the logs of wealth from bets on
# harm (above the limit; below it; below it while leading); sums of bets on the effect (below x; above x while leading)
DOSE, N, EFFECT, OVER, UNDER, LED, BELOW, ABOVE = 0, 1, 2, 3, 4, 5, slice(6, 9), slice(9, 12)
WIDTH, MORE = 12, 8


class Stakes(NamedTuple):
    """What is staked on an arm's readings: guesses of its harm for the climb and for the verdict, how far above the
    last certified dose the rungs go, and the sizes of the bets on the effect, for an arm that leads `above`."""

    climb: Array
    reach: Array
    harm: Array
    below: Array
    above: Array


@dataclass(frozen=True, kw_only=True)
class MonotonicState(State):
    """The ladder of every arm, and what is known at every dose that was pulled."""

    wealth: Array  # (trials, arms, rungs): logs, at the doses base + step, base + 2 step, ..., largest
    base: Array  # the largest dose that is certified for limit + slack
    step: Array
    n: Array  # pulls
    at: Array  # (trials, arms, doses, WIDTH), doses that were bet on, rising; infinite where there are no more


class MonotonicEvidence(Evidence[MonotonicState]):
    theorem: ClassVar[str] = "surefoot-monotonic/2"

    def begin(self, problem: Problem, trials: int, xp: Any) -> MonotonicState:
        first = blank(problem, trials, xp)
        base = first["safe"]
        wealth, at = (xp.zeros((*base.shape, *shape), dtype=xp.float64) for shape in ((RUNGS,), (MORE, WIDTH)))
        return MonotonicState(
            **first,
            wealth=wealth,
            base=base,
            step=(like(base, problem.largest) - base) / RUNGS,
            n=first["standing"],
            at=at + _none(at),
        )

    def stakes(self, problem: Problem) -> tuple[str, ...]:
        return Stakes._fields

    def certified(self, state: MonotonicState) -> Array:
        return round_down(state.problem, state.base)

    def learn(self, state: MonotonicState, cohort: Cohort, outcome: Outcome) -> MonotonicState:
        xp, s = array_namespace(state.pulls), replace(state, rounds=state.rounds + 1)
        came = (outcome.n > 0) & (cohort.dose <= like(s.base, s.problem.largest))
        if not bool(xp.any(came)):
            return s
        (m, effect), (n, harm) = (outcome.weighed(r) for r in (0, 1))
        dose, n, m, effect, harm = (rows(x, came) for x in (cohort.dose, n, m, effect, harm))
        stakes = Stakes(*(rows(cohort.stakes[..., i], came) for i in range(len(Stakes._fields))))
        pull = Pull(dose, n, m, effect, harm, stakes)
        s = replace(self.climb(s, came, pull), n=s.n + outcome.n, at=record(s.problem, s.at, came, pull))
        return self.judge(self.bracket(s, came))

    def climb(self, s: MonotonicState, came: Array, pull: Pull) -> MonotonicState:
        """Lemma 3. The ladders of the arms that were pulled, and the doses that are certified now."""
        xp, p, stakes = array_namespace(s.base), s.problem, pull.stakes
        largest, K = (rows(xp.zeros_like(s.base) + like(s.base, x), came) for x in (p.largest, p.lipschitz))
        base, step, wealth = (rows(x, came) for x in (s.base, s.step, s.wealth))
        wealth, step = regrid(wealth, step, xp.zeros_like(pull.n), stakes.reach)
        bound = p.ceiling - K[:, None] * xp.maximum(ladder(base, step, largest) - pull.dose[:, None], 0.0)
        guess = xp.where(xp.isfinite(stakes.climb), stakes.climb, xp.inf)  # above every bound: nothing is bet
        wealth = wealth + p.noises[1].bet(pull.harm[:, None], pull.n[:, None], bound, guess[:, None], above=False)
        passed = first_false(wealth >= math.log(len(p.arms) / (CLIMB * p.delta)))
        base = xp.where(passed < RUNGS, xp.minimum(base + passed * step, largest), largest)
        wealth, step = regrid(wealth, step, passed, RUNGS * step)
        new = {"wealth": wealth, "base": base, "step": step}
        return replace(s, **{name: put(getattr(s, name), came, x) for name, x in new.items()})

    def bracket(self, s: MonotonicState, came: Array) -> MonotonicState:
        """Lemma 4. Between which doses the largest safe one lies: that it is b is refuted where the bets that harm is
        below the limit at doses above b, or above it at doses up to b, come to enough."""
        xp, p, d = array_namespace(s.at), s.problem, len(s.problem.arms)
        at = rows(s.at, came)
        dose, count = at[..., DOSE], xp.arange(at.shape[1], dtype=xp.float64, device=device(at))
        under, over = before(at[..., UNDER], -1)[:, :-1], before(at[..., OVER])[:, 1:]
        good = first_false((under >= math.log(d / (SAFE * p.delta))) & xp.isfinite(dose))[:, None]
        shown = (over >= math.log(d / (UNSAFE * p.delta))) | xp.isinf(dose)
        bad = dose.shape[1] - first_false(xp.flip(shown, axis=-1))[:, None]
        highest = xp.max(xp.where(count < good, dose, -xp.inf), axis=1)
        lowest = xp.min(xp.where(count >= bad, dose, xp.inf), axis=1)
        unsafe = level_below(p, put(xp.zeros_like(s.unsafe) + xp.inf, came, lowest))
        return replace(s, safe=xp.maximum(s.safe, put(s.safe, came, highest)), unsafe=xp.minimum(s.unsafe, unsafe))

    def judge(self, s: MonotonicState) -> MonotonicState:
        """Lemmas 5 and 6. Whose claim to be the best is refuted, who is stopped, and what follows."""
        xp, p, d = array_namespace(s.at), s.problem, len(s.problem.arms)
        at_start = s.at[..., DOSE] <= like(s.at, p.starts)[:, None]
        stopped = xp.sum(xp.where(at_start, s.at[..., OVER], 0.0), axis=-1) >= math.log(d / (STOP * p.delta))
        harm_at_start = xp.where(stopped, p.limit + 1e-9 * max(abs(p.limit), 1.0), xp.full_like(s.base, -xp.inf))
        live = (s.standing == ACTIVE) & ~stopped
        led = xp.sum(s.at[..., ABOVE][..., 0], axis=-1)
        leader = xp.argmax(xp.where(live, led, -1.0), axis=1)  # who was bet on most
        rival = live & (xp.arange(d, device=device(led)) != leader[:, None])
        beaten, level = self.refuted(s, rival, leader, 0.0)
        near = beaten
        if p.tolerance is not None:
            near = beaten | self.refuted(s, rival & ~beaten, leader, p.tolerance)[0]
        return conclude(s, harm_at_start, leader, beaten, near, level, level)

    def refuted(self, s: MonotonicState, which: Array, leader: Array, shift: float) -> tuple[Array, Array]:
        """Where the bets against "k is the best", or with a `shift` "and better than the leader by more than that",
        come to enough for every x and every b; and an x where they come to little. Screens first: an upper bound of the
        evidence at some levels of x, then the evidence there; then cell by cell, and again in finer cells."""
        xp, goal = array_namespace(s.at), math.log(1 / (VERDICT * s.problem.delta))
        low, high = mean(s.at[..., BELOW]) - shift, pick(mean(s.at[..., ABOVE]), leader)
        which, level = which & (low < high) & over_all(s, goal), 0.5 * (low + high)
        row, arm = xp.nonzero(which)
        if row.shape[0] == 0:
            return which, level
        l, h = (rows(xp.zeros_like(low) + x, which)[:, None] for x in (low, high))
        x = l + (h - l) * like(l, LEVELS)
        hopes = xp.min(sum(sides(s, row, arm, leader, x, shift, False)), axis=1) >= goal + SPARE
        which, (row, arm, x) = which & scatter(which, hopes), (rows(y, hopes) for y in (row, arm, x))
        if row.shape[0] == 0:
            return which, level
        mine, theirs = sides(s, row, arm, leader, x, shift, True)
        weak = pick(x, xp.argmin(mine + theirs, axis=1))  # beyond the two values it is not worth telling
        level = put(level, which, xp.clip(weak, x[:, ZERO : ZERO + 1], x[:, ONE : ONE + 1])[:, 0])
        enough = xp.min(mine + theirs, axis=1) >= goal
        doubt = enough[:, None] & (mine[:, :-1] + theirs[:, 1:] < goal)  # cells that need a closer look
        i = xp.nonzero(doubt)[0]
        if i.shape[0] > 0:
            left, right = (rows(y, doubt)[:, None] for y in (x[:, :-1], x[:, 1:]))
            parts = left + (right - left) * like(left, [j / FINER for j in range(FINER + 1)])
            mine, theirs = sides(s, xp.take(row, i), xp.take(arm, i), leader, parts, shift, True)
            short = scatter(doubt, xp.min(mine[:, :-1] + theirs[:, 1:], axis=1) < goal)
            enough = enough & ~xp.any(doubt & short, axis=1)
        return which & scatter(which, enough), level

    def verdict(self, state: MonotonicState, verdict: Verdict) -> Verdict:
        """Lemma 7. Intervals for the values that hold together, for all arms and times, with probability 1 - delta (a
        statement of their own); and the mean effect at the certified dose."""
        xp, s = array_namespace(state.at), state
        here = s.at[..., DOSE] == s.safe[..., None]
        n, effect = (xp.sum(xp.where(here, s.at[..., i], 0.0), axis=-1) for i in (N, EFFECT))
        estimate = xp.where(n > 0, effect / xp.where(n > 0, n, 1.0), -xp.inf)
        return replace(
            verdict, estimate=estimate, lower=self.bound(s, up, ABOVE, -1.0), upper=self.bound(s, down, BELOW, 1.0)
        )

    def against(self, state: MonotonicState) -> Array:
        """Lemma 6 by what is known now: the least over cells, those that matter cut again; of a claim that is refuted
        at least what refuted it. 0 where the arm that was bet on most does not seem to be better."""
        xp, s, goal = array_namespace(state.at), state, math.log(1 / (VERDICT * state.problem.delta))
        leader = xp.argmax(xp.sum(s.at[..., ABOVE][..., 0], axis=-1), axis=1)
        low, high = mean(s.at[..., BELOW]), pick(mean(s.at[..., ABOVE]), leader)
        which = (low < high) & (xp.arange(low.shape[1], device=device(low)) != leader[:, None])
        found = xp.where(s.standing == REFUTED, goal, xp.zeros_like(low))
        row, arm = xp.nonzero(which)
        if row.shape[0] == 0:
            return found
        l, h = (rows(xp.zeros_like(low) + x, which)[:, None] for x in (low, high))
        x = l + (h - l) * like(l, LEVELS)
        mine, theirs = sides(s, row, arm, leader, x, 0.0, True)
        cell = mine[:, :-1] + theirs[:, 1:]
        doubt = cell < xp.min(mine + theirs, axis=1)[:, None]  # a cell can be least only where it is below that
        i = xp.nonzero(doubt)[0]
        if i.shape[0] > 0:
            left, right = (rows(y, doubt)[:, None] for y in (x[:, :-1], x[:, 1:]))
            parts = left + (right - left) * like(left, [j / FINER for j in range(FINER + 1)])
            mine, theirs = sides(s, xp.take(row, i), xp.take(arm, i), leader, parts, 0.0, True)
            cell = put(cell, doubt, xp.min(mine[:, :-1] + theirs[:, 1:], axis=1))
        return xp.maximum(found, put(xp.zeros_like(low), which, xp.min(cell, axis=1)))

    def seems(self, state: MonotonicState) -> Estimates | None:
        """Where harm seems to reach the limit, as far as doses may be given; by the estimates of the policy, if any."""
        guess = getattr(state.memory, "guess", None)
        if not isinstance(guess, Guess):
            return None
        xp, p = array_namespace(state.base), state.problem
        dose = round_down(p, xp.minimum(guess.crossing, state.base))
        off = dose - guess.crossing
        effect = xp.where(state.n > 0, guess.value + guess.gain[..., -1] * off, -xp.inf)
        harm = guess.harm[..., -1] + guess.rise[..., -1] * off
        ends = (
            (y - 1.96 * error[..., -1], y + 1.96 * error[..., -1])
            for y, error in ((effect, guess.effect_error), (harm, guess.harm_error))
        )
        return Estimates(dose, effect, harm, *ends)

    def bound(self, s: MonotonicState, test: Any, sums: slice, sign: float) -> Array:
        """The x nearest to the mean at which the test, which grows with the distance, comes to enough."""
        xp, p = array_namespace(s.at), s.problem
        row, arm = xp.nonzero(s.standing >= 0)
        goal = math.log(2 * len(p.arms) / p.delta)
        middle = xp.reshape(mean(s.at[..., sums]), (-1, 1))
        near, far = (xp.full_like(middle, p.noises[0].scale * 2.0**k) for k in (-40, 20))
        some = test(s, row, arm, middle + sign * far, True) >= goal
        for _ in range(24):  # 60 doublings apart, halved so often
            half = xp.sqrt(near * far)
            enough = test(s, row, arm, middle + sign * half, True) >= goal
            near, far = xp.where(enough, near, half), xp.where(enough, half, far)
        return xp.reshape(xp.where(some, middle + sign * far, sign * xp.inf), s.base.shape)


class Pull(NamedTuple):
    """One cohort's pulls of the arms that were pulled, one after another: n harms and m effects, as they count."""

    dose: Array
    n: Array
    m: Array
    effect: Array
    harm: Array
    stakes: Stakes


def record(p: Problem, at: Array, came: Array, pull: Pull) -> Array:
    """The bets that these pulls make in the verdict, added to those at their doses."""
    xp, stakes = array_namespace(at), pull.stakes
    effect, harm = p.noises
    guess = xp.where(xp.isfinite(stakes.harm), stakes.harm, p.limit)  # at the limit nothing is bet
    limit = xp.zeros_like(guess) + p.limit
    over, under = (harm.bet(pull.harm, pull.n, limit, guess, above=above) for above in (True, False))
    if p.levels is not None:  # between levels a dose above the largest safe one may be safe too
        given = xp.zeros_like(at[..., 0, 0]) + put(at[..., 0, 0], came, pull.dose)
        under = xp.where(rows(round_down(p, given) == given, came), under, 0.0)
    below, above = (xp.where((x > 1 / HUGE) & (x < HUGE), x, 0.0) for x in (stakes.below, stakes.above))
    led = xp.where(above > 0, under, 0.0)
    sums = [x for size in (below, above) for x in sums_of_bets(effect, size, pull)]
    new = xp.stack([xp.zeros_like(pull.n), pull.m, pull.effect, over, under, led, *sums], axis=-1)
    start = rows(xp.zeros_like(at[..., 0, 0]) + like(at, p.starts), came)
    staked = xp.any(new[:, OVER:] != 0, axis=-1) | (pull.dose <= start)
    if not bool(xp.any(staked)):
        return at
    if bool(xp.any(xp.isfinite(at[..., -1, DOSE]))):  # no room for another dose
        more = xp.zeros((*at.shape[:-2], MORE, WIDTH), dtype=at.dtype, device=device(at))
        at = xp.concat([at, more + _none(more)], axis=-2)
    which = came & scatter(came, staked)
    new, dose, mine = rows(new, staked), rows(pull.dose, staked)[:, None], rows(at, which)
    here = mine[..., DOSE] == dose
    count = xp.arange(here.shape[1], dtype=xp.float64, device=device(at))
    fresh = ~xp.any(here, axis=1, keepdims=True) & (count == first_false(xp.isfinite(mine[..., DOSE]))[:, None])
    mine = mine + xp.where((here | fresh)[..., None], new[:, None, :], 0.0)
    doses = xp.where(fresh, dose, mine[..., DOSE])
    mine = xp.concat([doses[..., None], mine[..., 1:]], axis=-1)
    if bool(xp.any(fresh)):
        order = xp.argsort(doses, axis=1)
        mine = xp.take_along_axis(mine, xp.broadcast_to(order[..., None], mine.shape), axis=1)
    return put(at, which, mine)


def sums_of_bets(noise: Noise, size: Array, pull: Pull) -> tuple[Array, Array, Array]:
    """Sub-Gaussian effects in units of their sigma, bet with weights: sums of weight^2, weight, weight * effect. Binary
    effects are bet with likelihood ratios, which need no weight: n, n, and how many were 1."""
    xp = array_namespace(size)
    if noise.binary:
        on = xp.astype(size > 0, size.dtype)
        return on * pull.m, on * pull.m, on * pull.effect
    return pull.m * size**2, pull.m * size, size * pull.effect


def evidence(noise: Noise, sums: Array, x: Array, above: bool, exact: bool) -> Array:
    """The log of the wealth from bets that the effect is above x (or below); if not `exact`, at most by how much: what
    the best of all sizes of bet would have come to."""
    xp = array_namespace(x)
    v, w, y = (sums[..., i] for i in range(3))
    if exact:
        return noise.mixture(y + 0.0 * x, w + 0.0 * x, v + 0.0 * x, x, above, GAP)
    m = y / xp.where(w > 0, w, 1.0)
    best = (m - x) ** 2 * w**2 / (2 * noise.scale**2 * xp.where(v > 0, v, 1.0))
    if noise.binary:
        q, x = xp.clip(m, 1e-12, 1 - 1e-12), xp.clip(x, 1e-12, 1 - 1e-12)
        best = v * (q * xp.log(q / x) + (1 - q) * xp.log((1 - q) / (1 - x)))
    return xp.where((m > x) if above else (m < x), best, 0.0)


def cells(x: Array, sums: Array, noise: Noise, above: bool, exact: bool) -> Array:
    """The evidence of each cell at each x, (arms, doses + 1, x): from the doses up to it if `above`, else from the
    doses above it. It changes only at doses where something was bet, of which there are few."""
    xp = array_namespace(x)
    staked = sums[..., 0] > 0
    most = max(int(xp.max(xp.sum(xp.astype(staked, xp.int64), axis=1))), 1)
    order = xp.argsort(xp.astype(~staked, xp.int8), axis=1, stable=True)[:, :most]
    few = xp.take_along_axis(sums, xp.broadcast_to(order[..., None], (*order.shape, 3)), axis=1)
    total = before(few, 1 if above else -1, axis=1)
    found = evidence(noise, total[:, :, None, :], x[:, None, :], above, exact)
    which = xp.astype(before(xp.astype(staked, xp.float64)), xp.int64)
    return xp.take_along_axis(found, xp.broadcast_to(which[..., None], (*which.shape, x.shape[1])), axis=1)


def down(s: MonotonicState, row: Array, arm: Array, x: Array, exact: bool) -> Array:
    """Of these arms: the least evidence, over their largest safe dose b, that the value is below x."""
    xp, p = array_namespace(x), s.problem
    at = arms_at(s, row, arm)
    found = before(at[..., OVER])[..., None] + cells(x, at[..., BELOW], p.noises[0], False, exact)
    same, only = exactly(s, at, arm)
    if bool(xp.any(same)):  # b may be a dose that was pulled: its own pulls speak of harm and of effect, half and half
        half = xp.logaddexp(found[:, 1:, :], found[:, :-1, :]) - math.log(2)
        half = xp.where(only[..., None], half, xp.minimum(half, found[:, 1:, :]))
        found = xp.concat([found[:, :1, :], xp.where(same[..., None], half, found[:, 1:, :])], axis=1)
    return xp.min(xp.where(possible(s, at, arm)[..., None], found, xp.inf), axis=1)


def up(s: MonotonicState, row: Array, arm: Array, x: Array, exact: bool) -> Array:
    """Of these arms, by the bets made while they led: the least evidence, over b, that the value is above x."""
    xp = array_namespace(x)
    at = arms_at(s, row, arm)
    found = before(at[..., LED], -1)[..., None] + cells(x, at[..., ABOVE], s.problem.noises[0], True, exact)
    return xp.min(xp.where(possible(s, at, arm)[..., None], found, xp.inf), axis=1)


def others(s: MonotonicState, row: Array, arm: Array, leader: Array, x: Array, shift: float, exact: bool) -> Array:
    """The evidence of all arms but these that their values are above x (above x + shift but for the leader's)."""
    xp, d = array_namespace(x), len(s.problem.arms)
    led = xp.take(xp.sum(s.at[..., ABOVE][..., 0], axis=-1) > 0, row, axis=0)
    led = led & (xp.arange(d, device=device(x)) != arm[:, None])
    i, j = xp.nonzero(led)
    if i.shape[0] == 0:
        return xp.zeros_like(x)
    there = xp.take(row, i)
    raised = shift * xp.astype(xp.take(leader, there) != j, x.dtype)[:, None]
    found = up(s, there, j, xp.take(x, i, axis=0) + raised, exact)
    return xp.sum(put(xp.zeros((*led.shape, x.shape[1]), dtype=x.dtype, device=device(x)), led, found), axis=1)


def sides(
    s: MonotonicState, row: Array, arm: Array, leader: Array, x: Array, shift: float, exact: bool
) -> tuple[Array, Array]:
    """The evidence that these arms' values are below x + shift, and that others' are above (see `others`)."""
    return down(s, row, arm, x + shift, exact), others(s, row, arm, leader, x, shift, exact)


def over_all(s: MonotonicState, goal: float) -> Array:
    """Where the bets that harm is above the limit come to enough by themselves: they must where b is above all doses
    that were pulled, unless that can only be the last of them."""
    xp, p = array_namespace(s.at), s.problem
    last = xp.any((s.at[..., DOSE] >= like(s.at, p.largest)[:, None]) & xp.isfinite(s.at[..., DOSE]), axis=-1)
    return last | (xp.sum(s.at[..., OVER], axis=-1) >= goal) | (p.levels is not None)


def arms_at(s: MonotonicState, row: Array, arm: Array) -> Array:
    xp = array_namespace(s.at)
    return xp.take(xp.reshape(s.at, (-1, *s.at.shape[2:])), row * s.at.shape[1] + arm, axis=0)


def possible(s: MonotonicState, at: Array, arm: Array) -> Array:
    """The cells that may hold b: (arms, doses + 1). It is never below the start dose."""
    xp = array_namespace(at)
    dose, start = at[..., DOSE], xp.take(like(at, s.problem.starts), arm)[:, None]
    yes = xp.ones_like(start) > 0
    return xp.concat([dose > start, yes], axis=1) & xp.concat([yes, xp.isfinite(dose)], axis=1)


def exactly(s: MonotonicState, at: Array, arm: Array) -> tuple[Array, Array]:
    """The cells but the first that begin at the largest dose or at a level, so that b may be that dose exactly; and
    those of them in which it can be no other: with no other level before the next dose that was pulled."""
    xp, p = array_namespace(at), s.problem
    dose = at[..., DOSE]
    same = only = dose >= xp.take(like(at, p.largest), arm)[:, None]
    if p.levels is not None:
        levels = xp.take(like(at, p.levels), arm, axis=0)[:, None, :]
        above = xp.concat([dose[:, 1:], xp.full_like(dose[:, :1], xp.inf)], axis=1)[..., None]
        between = xp.any((levels > dose[..., None]) & (levels < above) & xp.isfinite(levels), axis=-1)
        same = same | xp.any(levels == dose[..., None], axis=-1)
        only = same & ~between
    return same & xp.isfinite(dose), only


def before(x: Array, way: int = 1, axis: int = -1) -> Array:
    """Sums of all before each, and of all; backwards: of each and all after it, and of none."""
    xp = array_namespace(x)
    axis = axis % x.ndim
    none = xp.zeros_like(xp.take(x, xp.arange(1, device=device(x)), axis=axis))
    if way > 0:
        return xp.concat([none, xp.cumulative_sum(x, axis=axis)], axis=axis)
    return xp.concat([xp.flip(xp.cumulative_sum(xp.flip(x, axis=axis), axis=axis), axis=axis), none], axis=axis)


def mean(sums: Array) -> Array:
    """The mean effect of the pulls that were bet on, (trials, arms); 0 where there are none."""
    xp = array_namespace(sums)
    w, y = (xp.sum(sums[..., i], axis=-1) for i in (1, 2))
    return y / xp.where(w > 0, w, 1.0)


def _none(at: Array) -> Array:
    """To be added to a new dose: there is none yet."""
    xp = array_namespace(at)
    return xp.where(
        xp.arange(WIDTH, device=device(at)) == DOSE, xp.inf, xp.zeros(WIDTH, dtype=at.dtype, device=device(at))
    )
