"""What is proved in Surefoot-Monotonic: Theorem 2 of docs/guarantees.md, step by step in its words.

Climb. Rungs are doses above the last one certified. Against "harm at the rung is above limit + slack" every reading of
the arm is bet: at a dose a it would then have a mean above limit + slack - K (rung - a)+. Rungs are certified in order.

Verdict. Against "arm k is the best" all readings are bet, by where they lie. Let x be the value of k and b an arm's
largest safe dose. Of k, at doses up to b, bet that harm is above the limit; at doses above b, that the effect is below
x. Of an arm j that was leading, at doses up to b, bet that the effect is above x; above b, that harm is below the
limit. At the true x and b each of these bets is against a true statement, so their product is a supermartingale; k is
refuted when the product is large enough at every x and every b of every arm (`monotonic_cells`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ..arrays import Array, Chosen, along, array_namespace, device, first, like, pick, put, replace, rows
from ..bounds import TILT
from ..noise import Noise
from ..problem import Problem
from .base import ACTIVE, REFUTED, Cohort, OnDemand, Outcome, State, Verdict, blank
from .compose import Evidence
from .ladder import RUNGS, first_false, ladder, moved, regrid
from .monotonic_cells import (
    ABOVE,
    BELOW,
    EFFECT,
    GAP,
    LED,
    OVER,
    UNDER,
    WIDTH,
    N,
    before,
    down,
    mean,
    table,
    told,
    up,
)
from .monotonic_estimates import seems
from .recommend import Estimates
from .settle import conclude, level_below, round_down

CLIMB, VERDICT, SAFE, UNSAFE, STOP = 0.35, 0.53, 0.04, 0.04, 0.04  # shares of delta
ALONE = 0.2  # of the stake against a claim is on the arm's own pulls: far above all effects those that led show nothing
HUGE = 1e60  # levels beyond which no value lies
LEVELS = [-HUGE, -10.0, -1.0, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 2.0, 11.0, HUGE]  # from one value to another
BETWEEN = slice(LEVELS.index(0.0), LEVELS.index(1.0) + 1)
FINER = 16  # parts of a cell between two levels
MORE = 16  # room for so many doses at a time


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
    doses: Array  # (trials, arms, doses) that were bet on, as they came; infinite where there are no more
    kept: Array  # how many these are
    at: Array  # (trials, arms, doses, WIDTH): what is kept of the pulls there
    total: Array  # (trials, arms, WIDTH): of all doses


class MonotonicEvidence(Evidence[MonotonicState]):
    theorem: ClassVar[str] = "surefoot-monotonic/4"

    def begin(self, problem: Problem, trials: int, xp: Any) -> MonotonicState:
        first = blank(problem, trials, xp)
        base, first = first["safe"], first | dict.fromkeys(("lower", "upper", "estimate"), OnDemand())
        wealth, at, total = (
            xp.zeros((*base.shape, *shape), dtype=xp.float64) for shape in ((RUNGS,), (MORE, WIDTH), (WIDTH,))
        )
        return MonotonicState(
            **first,
            wealth=wealth,
            base=base,
            step=(like(base, problem.largest) - base) / RUNGS,
            n=first["standing"],
            doses=xp.full((*base.shape, MORE), xp.inf, dtype=xp.float64),
            kept=first["standing"],
            at=at,
            total=total,
        )

    def stakes(self, problem: Problem) -> tuple[str, ...]:
        return Stakes._fields

    def certified(self, state: MonotonicState) -> Array:
        return round_down(state.problem, state.base)

    def learn(self, state: MonotonicState, cohort: Cohort, outcome: Outcome) -> MonotonicState:
        xp, s = array_namespace(state.pulls), replace(state, rounds=state.rounds + 1)
        came = Chosen((outcome.n > 0) & (cohort.dose <= like(s.base, s.problem.largest)))
        if came.count == 0:
            return s
        (m, effect), (n, harm) = (outcome.weighed(r) for r in (0, 1))
        dose, n, m, effect, harm, stakes = (came.rows(x) for x in (cohort.dose, n, m, effect, harm, cohort.stakes))
        arm = came.index % s.n.shape[1]
        pull = Pull(arm, dose, n, m, effect, harm, Stakes(*(stakes[:, i] for i in range(len(Stakes._fields)))))
        s = replace(self.climb(s, came, pull), n=s.n + outcome.n)
        new, start = bets(s.problem, pull), xp.take(like(s.base, s.problem.starts), pull.arm)
        staked = xp.any(new[:, OVER:] != 0, axis=-1) | (pull.dose <= start)
        if not bool(xp.any(staked)):
            return s
        news, dose = came.among(staked), rows(dose, staked)
        s = record(s, news, dose, rows(new, staked))
        stopped = self.stopped(s, news.among(dose <= rows(start, staked)))
        return self.judge(self.bracket(s, news), stopped, xp.any(news.mask, axis=1))

    def climb(self, s: MonotonicState, came: Chosen, pull: Pull) -> MonotonicState:
        """Lemma 3. The ladders of the arms that were pulled, and the doses that are certified now."""
        xp, p, guess = array_namespace(s.base), s.problem, pull.stakes.climb
        largest, K = (xp.take(like(s.base, x), pull.arm) for x in (p.largest, p.lipschitz))
        base, step, wealth = (came.rows(x) for x in (s.base, s.step, s.wealth))
        wealth, step = regrid(wealth, step, pull.stakes.reach)
        bound = p.ceiling - K * xp.maximum(ladder(base, step, largest) - pull.dose, 0.0)
        guess = xp.where(xp.isfinite(guess), guess, xp.inf)  # above every bound: nothing is bet
        wealth = wealth + first(p.noises[1].bet(pull.harm, pull.n, bound, guess, above=False))
        passed = first_false(wealth >= math.log(len(p.arms) / (CLIMB * p.delta)))
        base = xp.where(passed < RUNGS, xp.minimum(base + passed * step, largest), largest)
        wealth = moved(wealth, passed)
        wealth = came.put(s.wealth, wealth, s.owned)
        return replace(s, wealth=wealth, base=came.put(s.base, base), step=came.put(s.step, step))

    def bracket(self, s: MonotonicState, news: Chosen) -> MonotonicState:
        """Lemma 4. Between which doses the largest safe one lies: that it is b is refuted where the bets that harm is
        below the limit at doses above b, or above it at doses up to b, come to enough. All doses together must."""
        xp, p, d = array_namespace(s.at), s.problem, len(s.problem.arms)
        low, high = (math.log(d / (share * p.delta)) for share in (SAFE, UNSAFE))
        total = news.rows(s.total)
        may = (total[:, UNDER] > low - 1e-6) | (total[:, OVER] > high - 1e-6)
        if not bool(xp.any(may)):
            return s
        which = news.among(may)
        t = table(s, which.index // d, which.index % d)
        count = xp.arange(t.dose.shape[1], dtype=xp.float64, device=device(t.dose))
        under, over = before(t.at[..., UNDER], -1)[:, :-1], before(t.at[..., OVER])[:, 1:]
        good = first_false((under >= low) & xp.isfinite(t.dose))[:, None]
        bad = t.dose.shape[1] - first_false(xp.flip((over >= high) | xp.isinf(t.dose), axis=-1))[:, None]
        highest = xp.max(xp.where(count < good, t.dose, -xp.inf), axis=1)
        lowest = xp.min(xp.where(count >= bad, t.dose, xp.inf), axis=1)
        safe, unsafe = which.spread(highest, -xp.inf), level_below(p, which.spread(lowest, xp.inf))
        return replace(s, safe=xp.maximum(s.safe, safe), unsafe=xp.minimum(s.unsafe, unsafe))

    def stopped(self, s: MonotonicState, start: Chosen) -> Array:
        """Lemma 4. The arms, of those pulled at their start dose, whose harm is shown to be above the limit there."""
        xp, p, d = array_namespace(s.at), s.problem, len(s.problem.arms)
        here = start.rows(s.doses) <= xp.take(like(s.at, p.starts), start.index % d)[:, None]
        over = xp.sum(xp.where(here, start.rows(s.at)[..., OVER], 0.0), axis=-1)
        return start.spread(over >= math.log(d / (STOP * p.delta)), False)

    def judge(self, s: MonotonicState, stopped: Array, news: Array) -> MonotonicState:
        """Lemmas 5 and 6. Whose claim to be the best is refuted, who is stopped, and what follows."""
        xp, p, d = array_namespace(s.at), s.problem, len(s.problem.arms)
        over = p.limit + 1e-9 * max(abs(p.limit), p.noises[1].scale)
        harm_at_start = xp.where(stopped, over, xp.full_like(s.base, -xp.inf))
        live = (s.standing == ACTIVE) & ~stopped
        leader, other = most_bet_on(s, live)
        rival = live & news[:, None] & along(live, other)
        beaten, level = self.refuted(s, rival, other, 0.0)
        # the one bet on most may be bet on no more: then the next one leads
        leader = xp.where(pick(beaten, leader)[:, 0], pick(other, leader)[:, 0], leader)
        near = beaten
        if p.tolerance is not None:
            rest = rival & ~beaten & (xp.arange(d, device=device(leader)) != leader[:, None])
            near = beaten | self.refuted(s, rest, xp.broadcast_to(leader[:, None], other.shape), p.tolerance)[0]
            near = xp.where(news[:, None], near, s.near)
        return conclude(s, harm_at_start, leader, beaten, near, level, level)

    def refuted(self, s: MonotonicState, which: Array, other: Array, shift: float) -> tuple[Array, Array]:
        """Where the bets against "k is the best", or with a `shift` "and better than the `other` by more than that",
        come to enough for every x and every b; and an x where they come to little. Upper bounds of them come first."""
        xp, goal = array_namespace(s.at), goal_of(s.problem)
        low, high = mean(s.total[..., BELOW]) - shift, along(mean(s.total[..., ABOVE]), other)
        level, pairs = 0.5 * (low + high), over_all(s, which & (low < high), other, goal)
        no = xp.zeros(which.shape, dtype=xp.bool, device=device(low))
        x = between(pairs, low, high)
        at = x[:, BETWEEN]
        for exact in (False, True):  # at few levels; and then itself, at the one of them where its bound is least
            if pairs.count == 0:
                return no, level
            total = sum(sides(s, pairs.index, other, at, shift, exact))
            hopes = xp.min(total, axis=1) >= goal
            pairs, x, at = pairs.among(hopes), rows(x, hopes), rows(pick(at, xp.argmin(total, axis=1)), hopes)
        if pairs.count == 0:
            return no, level
        found, cell = least(s, pairs, other, x, shift, lambda found, cell: (found >= goal) & (cell < goal))
        weak = pick(x, xp.argmin(cell, axis=1))  # beyond the two values it is not worth telling
        level = pairs.put(level, xp.clip(weak[:, 0], x[:, BETWEEN][:, 0], x[:, BETWEEN][:, -1]))
        return pairs.spread((found[:, 0] >= goal) & xp.all(cell >= goal, axis=1), False), level

    def verdict(self, state: MonotonicState, verdict: Verdict) -> Verdict:
        """Lemma 7. Intervals for the values that hold together, for all arms and times, with probability 1 - delta (a
        statement of their own); and the mean effect at the certified dose."""
        xp, s = array_namespace(state.at), state
        here = s.doses == s.safe[..., None]
        n, effect = (xp.sum(xp.where(here, s.at[..., i], 0.0), axis=-1) for i in (N, EFFECT))
        estimate = xp.where(n > 0, effect / xp.where(n > 0, n, 1.0), -xp.inf)
        return replace(
            verdict, estimate=estimate, lower=self.bound(s, up, ABOVE, -1.0), upper=self.bound(s, down, BELOW, 1.0)
        )

    def against(self, state: MonotonicState) -> Array:
        """Lemma 6 by what is known now: the least over cells, those that matter cut again; of a claim that is refuted,
        what refuted it. 0 where the arm that was bet on most, of the others, does not seem to be better."""
        xp, s = array_namespace(state.at), state
        live = s.standing == ACTIVE
        _, other = most_bet_on(s, live)
        low, high = mean(s.total[..., BELOW]), along(mean(s.total[..., ABOVE]), other)
        pairs = Chosen((low < high) & live & along(live, other))
        out = xp.where(s.standing == REFUTED, goal_of(s.problem), xp.zeros_like(low))
        if pairs.count == 0:
            return out
        _, cell = least(s, pairs, other, between(pairs, low, high), 0.0, lambda found, cell: cell < found)
        return pairs.put(out, xp.maximum(xp.min(cell, axis=1), 0.0))

    def seems(self, state: MonotonicState) -> Estimates | None:
        return seems(state)

    def bound(self, s: MonotonicState, test: Any, sums: slice, sign: float) -> Array:
        """The x nearest to the mean at which the test, which grows with the distance, comes to enough."""
        xp, p = array_namespace(s.at), s.problem
        t = table(s, *xp.nonzero(s.standing >= 0))
        goal = math.log(2 * len(p.arms) / p.delta)
        middle = xp.reshape(mean(s.total[..., sums]), (-1, 1))
        near, far = (xp.full_like(middle, p.noises[0].scale * 2.0**k) for k in (-40, 20))
        some = test(p, t, middle + sign * far, True) >= goal
        for _ in range(24):  # 60 doublings apart, halved so often
            half = xp.sqrt(near * far)
            enough = test(p, t, middle + sign * half, True) >= goal
            near, far = xp.where(enough, near, half), xp.where(enough, half, far)
        return xp.reshape(xp.where(some, middle + sign * far, sign * xp.inf), s.base.shape)


def goal_of(p: Problem) -> float:
    """The log of the evidence that refutes a claim. Where every arm begins at its largest dose nothing is climbed."""
    climbs = bool((p.starts < p.largest).any())
    return math.log(1 / ((VERDICT if climbs else VERDICT + CLIMB) * p.delta))


class Pull(NamedTuple):
    """One cohort's pulls of the arms that were pulled, one after another: n harms and m effects, as they count."""

    arm: Array
    dose: Array
    n: Array
    m: Array
    effect: Array
    harm: Array
    stakes: Stakes


def bets(p: Problem, pull: Pull) -> Array:
    """Lemma 1. What these pulls add to what is kept at their doses, (arms, WIDTH)."""
    xp, stakes = array_namespace(pull.dose), pull.stakes
    effect, harm = p.noises
    guess = xp.where(xp.isfinite(stakes.harm), stakes.harm, p.limit)  # at the limit nothing is bet
    limit = xp.full_like(guess, p.limit)
    over, under = (harm.bet(pull.harm, pull.n, limit, guess, above=above) for above in (True, False))
    if p.levels is not None:  # between levels a dose above the largest safe one may be safe too
        levels = xp.take(like(guess, p.levels), pull.arm, axis=0)
        known = xp.isinf(levels[:, 0]) | xp.any(levels == pull.dose[:, None], axis=1)
        under = xp.where(known, under, 0.0)
    below, above = (xp.where((x > 1 / HUGE) & (x < HUGE), x, 0.0) for x in (stakes.below, stakes.above))
    sums = [x for size in (below, above) for x in sums_of_bets(effect, size, pull)]
    return xp.stack([pull.m, pull.effect, over, under, xp.where(above > 0, under, 0.0), *sums], axis=-1)


def sums_of_bets(noise: Noise, size: Array, pull: Pull) -> tuple[Array, Array, Array]:
    """Sub-Gaussian effects in units of their sigma, bet with weights: sums of weight^2, weight, weight * effect. Binary
    effects and counts are bet with likelihood ratios, which need no weight: n, n, and their sum."""
    xp = array_namespace(size)
    if noise.ratios:
        on = xp.astype(size > 0, size.dtype)
        return on * pull.m, on * pull.m, on * pull.effect
    return pull.m * size**2, pull.m * size, size * pull.effect


def record(s: MonotonicState, news: Chosen, dose: Array, new: Array) -> MonotonicState:
    """With these bets added to those at their doses, or kept at the next free place."""
    xp, doses, at, free = array_namespace(s.at), s.doses, s.at, news.rows(s.kept)
    if int(xp.max(free)) == doses.shape[2]:  # no room for another dose
        doses = xp.concat([doses, xp.full((*doses.shape[:2], MORE), xp.inf, dtype=at.dtype, device=device(at))], axis=2)
        more = xp.zeros((*doses.shape[:2], MORE, WIDTH), dtype=at.dtype, device=device(at))
        at = xp.concat([at, more], axis=2)
    same = news.rows(doses) == dose[:, None]
    place = xp.argmax(xp.astype(same, xp.int8), axis=1)
    place = xp.where(pick(same, place)[:, 0], place, free)
    spot, kept = news.within(place, doses.shape[2]), news.put(s.kept, xp.maximum(free, place + 1))
    at, doses = spot.put(at, spot.rows(at) + new, s.owned), spot.put(doses, dose, s.owned)
    return replace(s, doses=doses, kept=kept, at=at, total=news.put(s.total, news.rows(s.total) + new))


def unbet(p: Problem) -> float:
    """What an arm that was leading takes from the evidence at an x far above its effects: what it never bets."""
    return -math.log(TILT.nothing if p.noises[0].ratios else GAP.nothing)


def or_alone(led: Array) -> Array:
    """With a part of the stake on the arm's own pulls alone: what those that led add to their evidence, or take."""
    xp = array_namespace(led)
    return xp.logaddexp(led + math.log(1 - ALONE), xp.full_like(led, math.log(ALONE)))


def most_bet_on(s: MonotonicState, live: Array) -> tuple[Array, Array]:
    """Who was bet on most while leading, (trials,), and of the others of each arm, (trials, arms)."""
    xp = array_namespace(s.at)
    bet = xp.where(live, s.total[..., ABOVE][..., 0], -1.0)
    most = xp.argmax(bet, axis=1)
    mine = xp.arange(bet.shape[1], device=device(bet)) == most[:, None]
    return most, xp.where(mine, xp.argmax(xp.where(mine, -2.0, bet), axis=1)[:, None], most[:, None])


def over_all(s: MonotonicState, which: Array, other: Array, goal: float) -> Chosen:
    """Of these claims those where the bets that harm is above the limit come to enough by themselves, less what was
    never bet of the leader: they must where b is above all doses that were pulled and x far off, unless b can only be
    the last of them."""
    xp, p = array_namespace(s.at), s.problem
    some = Chosen(which & (along(s.total[..., ABOVE][..., 0], other) > 0))
    enough = some.rows(s.total)[:, OVER] >= goal - or_alone(like(s.at, -unbet(p)))
    if p.levels is not None:
        return some
    doses, largest = some.rows(s.doses), xp.take(like(s.at, p.largest), some.index % which.shape[1])
    return some.among(enough | xp.any((doses >= largest[:, None]) & xp.isfinite(doses), axis=-1))


def between(pairs: Chosen, low: Array, high: Array) -> Array:
    """Levels of x from one value to another, and beyond."""
    l, h = (pairs.rows(y + 0.0 * low)[:, None] for y in (low, high))
    return l + (h - l) * like(l, LEVELS)


def least(
    s: MonotonicState, pairs: Chosen, other: Array, x: Array, shift: float, closer: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """The evidence against these claims where it is least of the levels, and the least in each cell between two of
    them. What is bet on k rises with x, on the others it falls; `closer` says which cells are cut again."""
    xp = array_namespace(x)
    mine, theirs = sides(s, pairs.index, other, x, shift, True)
    found, cell = xp.min(mine + theirs, axis=1, keepdims=True), mine[:, :-1] + theirs[:, 1:]
    doubt = Chosen(closer(found, cell))
    if doubt.count > 0:
        left, right = (doubt.rows(y)[:, None] for y in (x[:, :-1], x[:, 1:]))
        parts = left + (right - left) * like(left, [j / FINER for j in range(FINER + 1)])
        pair = xp.take(pairs.index, doubt.index // cell.shape[1])
        mine, theirs = sides(s, pair, other, parts, shift, True)
        cell = doubt.put(cell, xp.min(mine[:, :-1] + theirs[:, 1:], axis=1))
    return found, cell


def sides(s: MonotonicState, pair: Array, other: Array, x: Array, shift: float, exact: bool) -> tuple[Array, Array]:
    """The evidence that the values of these (trial, arm) are below x + shift, and what is added to it that all others'
    are above x + shift, or for the `other` one's above x."""
    xp, d = array_namespace(x), len(s.problem.arms)
    row, arm = pair // d, pair % d
    mine = told(down, s, row, arm, x + shift, exact)
    led = s.total[..., ABOVE][..., 0] > 0
    if s.readings is not None:  # its harms may have been bet on before its effects counted
        led = led | xp.any(s.at[..., LED] != 0, axis=-1)
    led = xp.take(led, row, axis=0) & (xp.arange(d, device=device(x)) != arm[:, None])
    i, j = xp.nonzero(led)
    if i.shape[0] == 0:
        return mine, xp.zeros_like(x)
    there = xp.take(row, i)
    named = xp.take(xp.reshape(other, (-1,)), xp.take(pair, i))
    raised = shift * xp.astype(named != j, x.dtype)[:, None]
    found = told(up, s, there, j, xp.take(x, i, axis=0) + raised, exact)
    none = xp.zeros((*led.shape, x.shape[1]), dtype=x.dtype, device=device(x))
    return mine, or_alone(xp.sum(put(none, led, found), axis=1))
