"""Surefoot-Monotonic: the guarantee of SafeBAI-Monotonic with all data pooled. Theorem 2 of docs/guarantees.md.

Doses are certified by bets. For a rung (a dose) there are two, each with the log of its wealth:
- `calm`: that harm at the rung is above limit + slack is refuted. If it were, harm at any dose a would be above
  limit + slack - K (rung - a) (Lipschitz; for a above the rung: monotone), and readings below that speak against it.
- `good`: the same with the limit.
The stake on each reading is set before it is taken, from the estimate of the harm so far, so each wealth is a
supermartingale where what it bets against is true; all pulls count for all rungs. Rungs are certified in order from
below. What is bet against is nested in the same order, so the first false certificate has to be at the lowest rung that
is too high, and no union over rungs is paid. The rungs are those within reach, a few above the last certain dose: they
move up with it, and get finer as the reach gets shorter (`regrid`).

Dose. An arm has two places. High: a rival climbs to the highest calm dose until its harm looks to be above the limit,
and stays there until that is shown (`over`, a bet too). Good: the leader never needs to go over the limit, and is
pulled at its highest good dose.

Verdict. As in Surefoot-Linear, "arm k is best" is tested for every k by the product of two bets at every level x of
effect: that k's value is at least x, by its pulls at the dose where it stays (once that dose is known to be over the
limit, or if it is the largest dose); and that all others' are at most x, by the pulls of the leading arm at good doses.
Where the effect is steep, the rival comes down by halves, as in the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick, put, rows, scatter
from ..bounds import TILT, Mixture, log_mixture, log_tilt, radius
from ..problem import Problem, Shape, number
from .base import ACTIVE, Cohort, Design, Outcome, State, Verdict, blank
from .settle import conclude, round_down, wanted

# Shares of delta: doses calm, doses good (an arm each), the best arm's dose over the limit, verdict, stop at the start
CALM, GOOD, OVER, VERDICT, STOP = 0.4, 0.16, 0.12, 0.28, 0.04
GAP = Mixture(top=1.0, ratio=1.7, dense=5, above=1, tails=0.1, nothing=TILT.nothing)  # the difference seen is 1
RUNGS = 32
DRIFT = 0.4  # how much of what K allows harm is expected to rise from where it was seen
HIGH, LOW = 0, 1  # the two places of an arm, and the two ladders: calm and good


@dataclass(frozen=True, kw_only=True)
class MonotonicState(State):
    """The two ladders, the two places, and the two sums of bets for the verdict."""

    wealth: Array  # (trials, arms, 2, rungs): of calm and good, at the doses base + step, base + 2 step, ..., largest
    base: Array  # (trials, arms, 2): the highest dose that is certain
    step: Array
    over: Array  # wealth of the bet that harm at the high place is above the limit
    alarm: Array  # and at the start dose
    n: Array
    place: Array  # (trials, arms, 2): the doses of the two places
    count: Array  # recent pulls there, those at other doses fading: how many, their doses, effects and harms
    dosed: Array
    effect: Array
    harm: Array
    at_good: Array  # whether the next pulls are at the low place
    staying: Array  # whether the high place is fixed, so that it can be shown to be over the limit
    moves: Array  # how often that was changed
    below: Array  # a dose that looks to be below the limit; bisection goes on above it
    excess: Array  # by how much harm looked to be above the limit at `unsafe`
    bet_v: Array  # bets where it stays, against a value of x or more
    bet_w: Array
    bet_y: Array
    led_v: Array  # bets while leading, at good doses, against a value of x or less
    led_w: Array
    led_y: Array
    scale: Array
    leading: Array
    want: Array


class Ends(NamedTuple):
    """What becomes of the high places of all arms (see `move`), as (trials, arms)."""

    high: Array
    staying: Array
    below: Array
    moved: Array  # to a new dose to stay at
    changed: Array  # or given up
    room: Array  # how far harm at the good dose may be from the limit
    clash: Array  # shown to be over the limit, but not clearly with less effect than the leader
    own_turn: Array  # then: it goes on from its good dose
    leads: Array  # or the leader does
    behind: Array  # (trials,): some arm that is shown over the limit has more effect than the leader


@dataclass(frozen=True)
class SurefootMonotonic(Design[MonotonicState]):
    """The paper's guarantee for monotone curves with all data pooled.

    growth: decide again after an arm has this share more pulls about where it is; cohort: and at least so many.
    growth=0 and cohort=3 is fixed cohorts of three, growth=0 and cohort=1 is after every pull. first: pulls of every
    arm to begin with.
    """

    growth: float = 0.1
    cohort: int = 1
    first: int = 10

    name: ClassVar[str] = "surefoot-monotonic"
    shape: ClassVar[Shape] = "monotonic"
    chunk: ClassVar[int] = 512

    def __post_init__(self) -> None:
        number("growth", self.growth, least=0)
        number("cohort", self.cohort, least=1)
        number("first", self.first, least=1)

    def begin(self, problem: Problem, trials: int, xp: Any) -> MonotonicState:
        first = blank(problem, trials, xp)
        zero, none = xp.zeros_like(first["safe"]), xp.zeros_like(first["standing"])
        two = xp.zeros((*zero.shape, 2), dtype=xp.float64)
        base = first["safe"][..., None] + two
        sums = ("over", "alarm", "excess", "bet_v", "bet_w", "bet_y", "led_v", "led_w", "led_y", "scale")
        return MonotonicState(
            **first, **dict.fromkeys(sums, zero), n=none, moves=none, want=none + self.first,
            wealth=xp.zeros((*two.shape, RUNGS), dtype=xp.float64),
            base=base, step=(like(zero, problem.largest)[:, None] - base) / RUNGS,
            place=base, count=two, dosed=two, effect=two, harm=two,
            at_good=none < 0, staying=none < 0, below=first["safe"], leading=xp.zeros_like(first["pulls"]) - 1,
        )  # fmt: skip

    def plan(self, state: MonotonicState, u: Array) -> Cohort:
        xp, s = array_namespace(state.pulls), state
        return Cohort(xp.where(s.at_good, s.place[..., LOW], s.place[..., HIGH]), s.want)

    def verdict(self, state: MonotonicState) -> Verdict:
        """With intervals for values that hold together, for all arms at all times, with probability 1 - delta, given
        the certificates. Below: from pulls at good doses while leading; above: from pulls where a rival stays."""
        xp, p, s = array_namespace(state.pulls), state.problem, state
        alpha, sy = p.delta / (4 * len(p.arms)), p.noises[0].scale
        led, met = s.led_v > 0, (s.bet_v > 0) & self.shown(s)
        low = (s.led_y - radius(s.led_v, alpha, GAP)) / xp.where(led, s.led_w, 1.0)
        high = (s.bet_y + radius(s.bet_v, alpha * xp.exp(share(s)), GAP)) / xp.where(met, s.bet_w, 1.0)
        lower, upper = xp.where(led, low * sy, -xp.inf), xp.where(met, high * sy, xp.inf)
        return replace(super().verdict(state), lower=lower, upper=upper, effect_lower=lower, effect_upper=upper)

    def shown(self, s: MonotonicState) -> Array:
        """Whether no safe dose lies above the high place: it is over the limit, or the largest."""
        high = s.place[..., HIGH]
        return s.staying & ((s.unsafe <= high) | (high >= like(high, s.problem.largest)))

    def estimates(self, s: MonotonicState) -> Any:
        """Harm, its standard error, effect, its standard error: (trials, arms, 2), at both places."""
        xp, p = array_namespace(s.pulls), s.problem
        guess = p.limit - 0.5 * (p.ceiling - p.limit)
        n, root = xp.maximum(s.count, 1e-9), xp.sqrt(xp.maximum(s.count, 1.0))
        harm = xp.where(s.count > 0, s.harm / n, guess)
        return harm, p.noises[1].scale / root, s.effect / n, p.noises[0].scale / root

    def learn(self, state: MonotonicState, cohort: Cohort, outcome: Outcome) -> MonotonicState:
        xp, p, s = array_namespace(state.pulls), state.problem, state
        came = outcome.n > 0
        n, a = xp.astype(outcome.n, xp.float64), xp.where(came, cohort.dose, s.safe)
        effect, harm = (xp.where(came, x, 0.0) for x in (outcome.effect, outcome.harm))

        # All bets are staked by what was known before these readings: estimates, places, the leader
        seen, error, _, _ = self.estimates(s)
        mean = xp.where(s.count > 0, s.dosed / xp.maximum(s.count, 1e-9), s.place)
        seen, error, mean = (xp.where(s.at_good, x[..., LOW], x[..., HIGH]) for x in (seen, error, mean))
        guess = seen + 0.5 * error + DRIFT * like(n, p.lipschitz) * xp.maximum(a - mean, 0.0)
        higher = p.noises[1].bet(harm, n, xp.zeros_like(n) + p.limit, seen, above=True)
        stays = came & ((s.staying & (a >= s.place[..., HIGH])) | (a >= like(n, p.largest)))
        leads = came & (xp.arange(len(p.arms), device=device(n)) == s.leading[:, None]) & (a <= s.safe)
        bets, led = (xp.where(x, s.scale, 0.0) for x in (stays, leads))
        same = s.place[..., HIGH] == s.place[..., LOW]
        here = xp.astype(xp.stack([~s.at_good | same, s.at_good | same], axis=-1), xp.float64)
        y = effect / p.noises[0].scale
        s = replace(
            s, rounds=s.rounds + 1, n=s.n + outcome.n,
            over=s.over + xp.where(a <= s.place[..., HIGH], higher, 0.0),
            alarm=s.alarm + xp.where(a <= like(n, p.starts), higher, 0.0),
            count=s.count + n[..., None] * here, dosed=s.dosed + (n * a)[..., None] * here,
            effect=s.effect + effect[..., None] * here, harm=s.harm + harm[..., None] * here,
            bet_v=s.bet_v + n * bets * bets, bet_w=s.bet_w + n * bets, bet_y=s.bet_y + bets * y,
            led_v=s.led_v + n * led * led, led_w=s.led_w + n * led, led_y=s.led_y + led * y,
        )  # fmt: skip
        return self.decide(self.certify(self.climb(s, came, a, n, harm, guess)))

    def climb(self, s: MonotonicState, came: Array, a: Array, n: Array, harm: Array, guess: Array) -> MonotonicState:
        """The ladders of the arms that were pulled: their wealth, the doses that are certain now, the rungs from there.
        `guess`: what harm was expected to be, with half an error as margin."""
        xp, p = array_namespace(s.pulls), s.problem
        ends = [xp.zeros_like(a) + like(a, x) for x in (p.starts, p.largest, p.lipschitz)]
        wealth, base, step = (rows(x, came) for x in (s.wealth, s.base, s.step))
        dose, count, total, guess, start, M, K = (rows(x, came)[:, None] for x in (a, n, harm, guess, *ends))

        # If harm were above the bound at a rung, it would be above bound - gap at this dose
        gap = K[..., None] * xp.maximum(rungs(base, step, M) - dose[..., None], 0.0)
        bound = like(a, [[p.ceiling], [p.limit]]) - gap
        total, count, guess = (x[..., None] for x in (total, count, guess))
        wealth = wealth + p.noises[1].bet(total, count, bound, guess, above=False)
        shares = [math.log(len(p.arms) / (share * p.delta)) for share in (CALM, GOOD)]
        passed = first_false(wealth >= like(a, shares)[:, None])
        base = xp.where(passed < RUNGS, xp.minimum(base + xp.astype(passed, xp.float64) * step, M), M)

        # How far up anything can be certified by pulls at this place, with two errors as margin
        place, seen, error = (rows(xp.where(s.at_good[..., None], x[..., 1:], x[..., :1]), came)
                              for x in (s.place, *self.estimates(s)[:2]))  # fmt: skip
        need = place + (like(a, [p.ceiling, p.limit]) - seen + 2 * error) / K - base
        wealth, step = regrid(wealth, step, passed, xp.maximum(need, xp.maximum(1e-9 * (M - start), 1e-12 * xp.abs(M))))
        wealth, base, step = (put(x, came, new) for x, new in ((s.wealth, wealth), (s.base, base), (s.step, step)))
        return replace(s, wealth=wealth, base=base, step=step, safe=xp.maximum(round_down(p, base[..., LOW]), s.safe))

    def certify(self, s: MonotonicState) -> MonotonicState:
        """The lowest dose that is over the limit, and by how much it seems to be."""
        xp, p = array_namespace(s.pulls), s.problem
        high, low, slack = s.place[..., HIGH], s.place[..., LOW], p.ceiling - p.limit
        shown = s.over + share(s) >= math.log(1 / (OVER * p.delta))
        unsafe = xp.where(shown, xp.minimum(high, s.unsafe), s.unsafe)
        lower = (unsafe < s.unsafe) | (shown & (s.excess == 0))
        seen, error = (x[..., HIGH] for x in self.estimates(s)[:2])
        excess = xp.where(lower, xp.maximum(seen - p.limit, 0.002 * slack), s.excess)
        at_most = xp.minimum(excess, xp.maximum(seen + 3 * error - p.limit, error))
        known = xp.where(seen - p.limit > 6 * error, seen - p.limit, at_most)
        excess = xp.where((s.excess > 0) & (high == unsafe), known, excess)
        # What looked to be below the limit cannot be so near, and was not if coming down has hardly lowered the harm
        below = xp.where(lower, xp.minimum(s.below, unsafe - excess / like(high, p.lipschitz)), s.below)
        below = xp.where(lower & (s.excess > 0) & (excess > 0.75 * s.excess), s.safe, below)
        s = replace(s, unsafe=unsafe, excess=excess, below=below)
        # Where the high place is good, it is the low place too
        same = ((high <= s.safe) & (high > low))[..., None]
        kept = {name: getattr(s, name) for name in ("place", "count", "dosed", "effect", "harm")}
        return replace(s, **{name: xp.where(same, x[..., :1], x) for name, x in kept.items()})

    def decide(self, s: MonotonicState) -> MonotonicState:
        """The leader, who is out, and what the others do next."""
        xp, p, d = array_namespace(s.pulls), s.problem, len(s.problem.arms)
        stopped = s.alarm >= math.log(d / (STOP * p.delta))
        harm_at_start = xp.where(stopped, p.limit + 1e-9 * max(abs(p.limit), 1.0), xp.full_like(s.safe, -xp.inf))
        live = (s.standing == ACTIVE) & ~stopped

        # The leader has the largest effect at its good dose. Bets are in units of the difference to be shown; on binary
        # readings they are likelihood ratios, without a unit.
        effect, noise = self.estimates(s)[2:]
        good = xp.where(s.count[..., LOW] > 0, effect[..., LOW], -1e300)
        leader = xp.argmax(xp.where(live, good, -xp.inf), axis=1)
        is_leader = xp.arange(d, device=device(s.over)) == leader[:, None]
        rival = live & ~is_leader
        gap = xp.abs(pick(effect[..., LOW], leader) + (p.tolerance or 0.0) - effect[..., HIGH])
        scale = xp.maximum(gap, xp.hypot(noise[..., HIGH], pick(noise[..., LOW], leader))) / p.noises[0].scale
        nearest = xp.min(xp.where(rival, scale, xp.inf), axis=1, keepdims=True)
        scale = xp.where(is_leader & xp.isfinite(nearest), nearest, scale)
        binary = p.noises[0].binary
        s = replace(s, scale=xp.ones_like(scale) if binary else scale, estimate=effect[..., LOW])
        beaten, near, level = self.judge(s, leader, rival & self.shown(s))
        s = conclude(s, harm_at_start, leader, beaten, near, level, level)
        rival = rival & ~beaten
        return self.allot(s, leader, rival, scale, self.move(s, leader, rival))

    def move(self, s: MonotonicState, leader: Array, rival: Array) -> Ends:
        """Where the high places go, and whose turn it is where the effects of a rival and of the leader clash."""
        xp, p = array_namespace(s.pulls), s.problem
        M, K, slack, high = like(s.over, p.largest), like(s.over, p.lipschitz), p.ceiling - p.limit, s.place[..., HIGH]
        calm, ready = round_down(p, s.base[..., HIGH]), self.shown(s)
        both = self.estimates(s)
        (seen, error, effect, noise), (low_harm, low_error, low_effect, low_noise) = (
            tuple(x[..., side] for x in both) for side in (HIGH, LOW)
        )
        best, best_noise = pick(low_effect, leader) + (p.tolerance or 0.0), pick(low_noise, leader)
        at_most = xp.where(high >= s.place[..., LOW], seen + 3 * error, xp.inf)  # harm never falls
        room = xp.maximum(p.limit - xp.minimum(low_harm, at_most), 0.0) + low_error
        room = xp.where((s.safe < M) & (room > K * (next_up(p, s.safe) - s.safe)), room, 0.0)

        # Going up: a rival arrives where harm looks to be a third of the slack above the limit, and stays
        climbs = ~s.staying & ~s.at_good & (s.count[..., HIGH] > 0)
        arrives = climbs & ((seen - 0.25 * error >= p.limit + 0.3 * slack) | (high >= M) | (s.unsafe <= high))
        under = climbs & (seen + error < p.limit) & (error < 0.3 * slack)
        # Too low there to be shown over the limit: on upwards, or halfway back to a dose that is known to be
        bar = xp.where(s.excess > 0, 0.35 * s.excess, 0.06 * slack)
        low = s.staying & ~ready & (((seen + error < p.limit + bar) & (error < 1.5 * bar)) | (high < s.safe))
        below = xp.where(low | under, high, s.below)
        falls = high - xp.maximum(seen - 2 * error - p.limit, 0.0) / K  # harm falls by at most K a unit of dose
        below = xp.maximum(xp.where(ready, xp.minimum(below, falls), below), s.safe)

        # Shown, but not clearly with less effect than the leader: more pulls, or move an end towards the limit
        gap, unsure = best - effect, 2 * xp.hypot(noise, best_noise)
        clash = ready & rival & (gap < unsure)
        mine = ready & (s.found > 0)[:, None] & (xp.arange(len(p.arms), device=device(high)) == s.winner[:, None])
        halfway = round_down(p, (below + s.unsafe) / 2)
        fits = (halfway > below) & (halfway < s.unsafe) & (halfway <= calm) & (s.excess > 0)
        # Nothing left in between: what looked to be below may have been above after all
        below = xp.where(((clash & (gap < -unsure)) | mine) & ~fits, s.safe, below)
        can = fits & (halfway < high)
        # Which end: the further it is off in harm, and the more effect it may win, the better
        off = xp.maximum(xp.maximum(seen, low_harm - 3 * low_error) - p.limit, 0.0) + error
        off = xp.where(can | (s.excess == 0), off, 0.0)
        spread = xp.maximum(effect - low_effect, noise)
        slope = xp.abs(effect - low_effect) / xp.maximum(xp.abs(seen - low_harm), error + low_error)
        rise = pick(slope * room + low_noise, leader)
        part = off / xp.maximum(off + room, 1e-12)
        better = effect - spread * part > best + rise
        up = xp.where(better | (off == 0), spread * (1 - part) * room, 0.0)
        down = xp.where(better, 0.0, spread * part * off)
        many = xp.maximum(xp.sum(xp.astype(clash, xp.float64), axis=1, keepdims=True), 1.0)
        lead = rise * pick(room, leader) * xp.sqrt(many)
        lead_count = pick(s.count[..., LOW], leader)
        fewer = xp.maximum(xp.minimum(s.count[..., HIGH], lead_count), 1.0)
        again = xp.where(gap > -unsure, 2 * p.noises[1].scale * unsure / xp.sqrt(fewer), 0.0)
        most = xp.maximum(xp.maximum(up, down), xp.maximum(lead, again))
        comes_down = clash & (down >= most)
        descends = can & (comes_down | mine)
        own_turn = clash & ~comes_down & (up >= most) & (room > 0)
        leads = clash & ~comes_down & ~own_turn & ((lead >= most) | (lead_count <= s.count[..., HIGH]))

        moved = descends | (low & (s.excess > 0))
        staying = (s.staying & ~low) | arrives | moved
        back = xp.where(fits, halfway, xp.minimum(s.unsafe, calm))
        return Ends(
            high=xp.where(moved, back, xp.where(staying, high, xp.maximum(calm, high))),
            staying=staying, below=below, moved=moved, changed=descends | low, room=room, clash=clash,
            own_turn=own_turn, leads=leads, behind=xp.any(ready & rival & (gap <= 0), axis=1),
        )  # fmt: skip

    def allot(self, s: MonotonicState, leader: Array, rival: Array, scale: Array, ends: Ends) -> MonotonicState:
        """Whom to pull: rivals that have something to show of their harm; else leader or rival, the less known."""
        xp, p, K = array_namespace(s.pulls), s.problem, like(s.over, s.problem.lipschitz)
        arms, ready, clash = xp.arange(len(p.arms), device=device(s.over)), self.shown(s), ends.clash
        is_leader, won, n = arms == leader[:, None], (s.found > 0)[:, None], xp.astype(s.n, xp.float64)
        left = xp.sum(xp.astype(rival, xp.float64), axis=1, keepdims=True)
        lead_n = pick(s.led_v / xp.maximum(s.scale, 1e-9) ** 2, leader)
        own_n = s.bet_v / xp.maximum(s.scale, 1e-9) ** 2
        asks_leader = ends.leads | (rival & ready & ~clash & (own_n * xp.sqrt(left) > lead_n))
        most = xp.max(xp.where(rival, n, 0.0), axis=1, keepdims=True)
        lead_turn = xp.any(asks_leader, axis=1, keepdims=True) | (5 * pick(n, leader) < most)
        chosen = xp.where(is_leader, lead_turn, rival & ~asks_leader)
        chosen = xp.where(won, arms == s.winner[:, None], chosen)
        at_good = xp.where(won, (s.excess > 0) & (ends.room > s.excess), is_leader | ends.own_turn)
        at_good = xp.where(chosen, at_good, s.at_good)

        # Pulls at other doses fade as that difference grows against what is left to the bound
        place = xp.stack([ends.high, xp.where(at_good, s.safe, s.place[..., LOW])], axis=-1)
        seen, error = self.estimates(s)[:2]
        high_width = xp.maximum(p.ceiling - seen[..., HIGH], 0.25 * (p.ceiling - p.limit))
        low_width = xp.clip(p.limit - seen[..., LOW], error[..., LOW], 3 * error[..., LOW])
        fade = xp.exp(-2 * K[:, None] * xp.abs(place - s.place) / xp.stack([high_width, low_width], axis=-1))
        fade = fade * xp.stack([xp.astype(~ends.moved, xp.float64), xp.ones_like(n)], axis=-1)
        recent = s.count * fade
        size = xp.ceil(self.growth * xp.where(at_good, recent[..., LOW], recent[..., HIGH]))
        few = 0.5 * (p.noises[1].scale / xp.maximum(s.excess, 1e-9)) ** 2  # a first look at a new place
        few = xp.where(ends.moved, xp.ceil(xp.minimum(few, self.growth * n)), 0.0)
        few = xp.maximum(few, xp.ceil(0.01 * self.growth * n))  # so that no study goes on for ever by small steps
        size = xp.maximum(xp.maximum(size, few), float(self.cohort))
        enough = xp.ceil(8 * (math.log(1 / (VERDICT * p.delta)) + 3) / scale**2)
        enough = xp.maximum(enough, xp.maximum(xp.ceil(0.2 * self.growth * n), float(self.cohort)))
        calmly = ~xp.any(clash, axis=1, keepdims=True)
        size = xp.where((ready & ~clash) | (is_leader & calmly), xp.minimum(size, enough), size)
        # What is cheap comes first: an arm that wants many times more pulls than another waits for it
        chosen = chosen & (size <= 4 * xp.min(xp.where(chosen & wanted(s), size, xp.inf), axis=1, keepdims=True))
        size = xp.where(s.n > 0, xp.where(chosen, size, 0.0), float(self.first))
        keep = xp.astype(~ends.changed, xp.float64)  # a new place, new bets
        return replace(
            s, place=place, count=recent, dosed=s.dosed * fade, effect=s.effect * fade, harm=s.harm * fade,
            at_good=at_good, staying=ends.staying, below=ends.below, moves=s.moves + xp.astype(ends.changed, xp.int64),
            over=s.over * keep, bet_v=s.bet_v * keep, bet_w=s.bet_w * keep, bet_y=s.bet_y * keep,
            leading=xp.where(ends.behind, -1, leader),  # while it is behind, its pulls are not bet on
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

        k_v, k_w, k_y, cost = (rows(x, which)[:, None] for x in (s.bet_v, s.bet_w, s.bet_y, share(s)))
        mean = k_y / xp.maximum(k_w, 1e-12)
        lead = xp.take(leader, row)[:, None]
        b = [xp.take(x, row, axis=0) for x in (s.led_v, s.led_w, s.led_y)]
        lead_mean = xp.take_along_axis(b[2] / xp.maximum(b[1], 1e-12), lead, axis=1)
        mine = xp.arange(d, device=device(row)) == arm[:, None]
        named = xp.arange(d, device=device(row)) == lead

        def evidence(x: Array, shift: float, who: Array, i: Array) -> tuple[Array, Array]:
            """That others' values are above x, and that the arm's is below x + shift, at rivals i, as (rivals, x)."""
            v, w, y = (xp.take(z, i, axis=0)[:, None, :] for z in b)
            rival_v, rival_w, rival_y, costs = (xp.take(z, i, axis=0) for z in (k_v, k_w, k_y, cost))
            some = xp.take(who, i, axis=0)[:, None, :] & (v > 0)
            far = (x + shift / sy)[..., None] if shift else x[..., None]
            if p.noises[0].binary:
                up = log_tilt(y * sy, v, x[..., None] * sy, above=True)
                down = log_tilt((rival_y * sy)[..., None], rival_v[..., None], far * sy, above=False)
            else:
                up = log_mixture(y - x[..., None] * w, v + 0.0 * x[..., None], GAP)
                down = log_mixture(far * rival_w[..., None] - rival_y[..., None], rival_v[..., None] + 0.0 * far, GAP)
            return xp.sum(xp.where(some, up, 0.0), axis=-1), down[..., 0] + costs

        def refuted(goal: float, shift: float, who: Array) -> Array:
            low = mean - shift / sy
            # the evidence at any level is more than the least: few of them show what is not worth more
            tries = low + (lead_mean - low) * like(low, [0.1, 0.3, 0.5, 0.7, 0.9])
            up, down = evidence(tries, shift, who, xp.arange(row.shape[0], device=device(row)))
            hopeful = (lead_mean > low)[:, 0] & xp.all(up + down >= goal, axis=1)
            i = xp.nonzero(hopeful)[0]
            if i.shape[0] == 0:
                return hopeful
            steps = like(low, [-0.2 + 1.4 * j / 95 for j in range(96)])
            low, top = (xp.take(x, i, axis=0) for x in (low, lead_mean))
            up, down = evidence(low + (top - low) * steps, shift, who, i)
            # between two levels, the least evidence of each kind; beyond the last ones, what was never bet
            nothing = math.log(GAP.nothing)
            count = xp.sum(xp.astype(xp.take(who & (b[0] > 0), i, axis=0), xp.float64), axis=1)
            inner = xp.min(up[:, 1:] + down[:, :-1], axis=1)
            outer = xp.minimum(up[:, 0] + nothing + xp.take(cost[:, 0], i), nothing * count + down[:, -1])
            return hopeful & scatter(hopeful, xp.minimum(inner, outer) >= goal)

        spare = VERDICT * p.delta * (1.0 if p.tolerance is None else 0.5)
        beaten = which & scatter(which, refuted(math.log(1 / spare), 0.0, ~mine))
        if p.tolerance is not None:
            near = which & scatter(which, refuted(math.log((d - 1) / spare), p.tolerance, named))
        level = scatter(which, xp.reshape(0.5 * (mean + lead_mean) * sy, (-1,)))
        return beaten, near, level


def rungs(base: Array, step: Array, largest: Array) -> Array:
    """The doses of ladders, (..., 2, rungs)."""
    xp = array_namespace(base)
    up = like(base, [float(j + 1) for j in range(RUNGS)])
    here = xp.minimum(base[..., None] + step[..., None] * up, largest[..., None])
    return xp.where(up == RUNGS, largest[..., None], here)


def regrid(wealth: Array, step: Array, passed: Array, need: Array) -> tuple[Array, Array]:
    """The ladders from the new base: `passed` rungs up, finer or coarser by powers of 2 so that they cover `need`.

    A new rung takes the wealth of the old one at or above it, or the least where there are two: if harm is too high at
    the new rung then so it is there. The last rung, at the largest dose, takes the least of all that are left out.
    """
    xp = array_namespace(wealth)
    some = (need > 0) & (step > 0)
    finer = xp.log2(xp.where(some, RUNGS * step, 1.0) / xp.where(some, need, 1.0))
    finer = xp.clip(xp.floor(finer), -1.0, 60.0)
    which = (passed > 0) | (finer != 0)
    old, k, times = (rows(x, which) for x in (wealth, xp.astype(passed, xp.float64), 0.5**finer))
    if old.shape[0] == 0:
        return wealth, step
    j = xp.arange(RUNGS, dtype=xp.float64, device=device(step))
    k, times = k[:, None], times[:, None]

    def at(index: Array) -> Array:
        return xp.take_along_axis(old, xp.astype(xp.minimum(k + index, RUNGS - 1.0), xp.int64), axis=-1)

    new = at(xp.floor(j * times))
    if bool(xp.any(times > 1)):
        new = xp.minimum(new, at(xp.ceil((j + 1) * times) - 1))
    new = xp.where((j == RUNGS - 1) & (times != 1), xp.min(old, axis=-1, keepdims=True), new)
    return put(wealth, which, new), step * 0.5**finer


def share(s: MonotonicState) -> Array:
    """The log of the share of the stake that was set aside for this place to stay: 1/2, 1/6, 1/12, ... sum to 1."""
    xp = array_namespace(s.pulls)
    r = xp.astype(s.moves, xp.float64)
    return -xp.log((r + 1) * (r + 2))


def next_up(problem: Problem, dose: Array) -> Array:
    """The lowest level above a dose (infinite above the last); the dose itself for arms without levels."""
    if problem.levels is None:
        return dose
    xp = array_namespace(dose)
    levels = like(dose, problem.levels)
    above = xp.min(xp.where(levels > dose[..., None], levels, xp.inf), axis=-1)
    return xp.where(xp.isinf(levels[:, 0]), dose, above)


def first_false(certain: Array) -> Array:
    """How many are true before the first that is not, along the last axis."""
    xp = array_namespace(certain)
    count = xp.argmin(xp.astype(certain, xp.int8), axis=-1)
    return xp.where(xp.all(certain, axis=-1), certain.shape[-1], count)
