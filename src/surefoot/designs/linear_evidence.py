"""Evidence for lines through 0, with all data pooled: Theorem 1 of docs/guarantees.md, whose lemmas are named here.

Doses. Every pull ever made counts, weighted by its information. The certified dose is the largest that ever was limit
over an upper confidence sequence for the slope of the harm.

Verdict. "Arm k is best" is tested for every k. If it is true then, at the bar x that is k's value, k's value is at
least x and every other's at most x. Against the first, bet with the pulls of k; against the second, bet with the pulls
of the arms that lead. The product of these bets is a supermartingale at that x, so its infimum over all x reaches
1/alpha with probability at most alpha. Only one of the claims is true, so there is no union over arms or pairs to pay
for. Which pulls are bet, and with which stakes, is decided before their readings by whoever chooses them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

from array_api_compat import is_numpy_array

from ..arrays import Array, Chosen, array_namespace, clip, device, floats, last, like, replace, rows
from ..bounds import ANY, CONTRAST, radius, rate_lower, rate_upper, slope_upper
from ..problem import Problem
from .base import ACTIVE, REFUTED, Cohort, Outcome, State, Verdict, blank
from .compose import Evidence
from .linear_bars import TINY, Bets, Cells, Pulls, Rates, binary, flat, sigmas, tolerance
from .linear_estimates import Look, Slopes, look, slopes, stepped
from .linear_wealth import Claims, Places, Reaches, above, below, infimum, refutation, taken
from .recommend import Estimates
from .settle import conclude, round_down

SAFETY, UNSAFE, VERDICT = 0.3, 0.05, 0.65  # shares of delta: doses; stops and largest safe doses; verdict or intervals
CAP = 0.15  # share of the bet against an arm's own claim that is on its cap, where it has cone and cap
SPARE = 0.5  # nats by which a mixture is always below the evidence at its best bet: no need to look before
EASE = 0.7  # and none before this part of what is missing has come
LARGEST = 1e50  # a stake beyond it is none, nor one below its inverse
BLOCK = 2**14  # claims that are looked at together, so that memory is bounded
FEW = 400  # claims: so many are looked at as one, though most need less work than others
SECOND = 0.015  # of the pulls of those left, for an arm that was refuted, which comes back if it may well be best:
HOPE = 2.0  # with so many standard errors in its favour


@dataclass(frozen=True, kw_only=True)
class LinearState(State):
    """Sums over the pulls of every arm."""

    n: Array
    dose: Array  # sum of the doses
    harms: Array  # sum of the harms, as they came
    data: Bets  # all pulls, with a stake of 1
    own: Bets  # against the arm's own claim
    led: Bets  # against the claims of the others
    own_shared: Bets  # against the arm's own claim, with the size that all arms share
    led_shared: Bets  # (trials, arms, arms): so against the claim of each of the others
    own_rates: Rates | None  # of binary effects
    led_rates: Rates | None
    harm_at_start: Array  # a lower bound on it
    look: Look
    again: Array  # how much evidence there should be when an arm's claim is looked at next
    weak: Array  # the bar where the wealth was least when it was looked at last; nan before


class LinearEvidence(Evidence[LinearState]):
    """Surefoot's for the linear shape."""

    theorem: ClassVar[str] = "surefoot-linear/6"
    shares: ClassVar[dict[str, float]] = {"doses": SAFETY, "stops": UNSAFE, "verdict": VERDICT}

    def intervals_share(self, problem: Problem) -> float:
        """What all intervals of a verdict together, with the doses, may be wrong by, as a share of delta."""
        return 1.0

    def stakes(self, problem: Problem) -> tuple[str, ...]:
        """Sizes of the bets with an arm's readings: against its own claim; against the claims of all others, alone;
        and, with one size for all arms, against each claim."""
        return ("own", "led", *(f"against {name}" for name in problem.names))

    def begin(self, problem: Problem, trials: int, xp: Any) -> LinearState:
        first = blank(problem, trials, xp)
        zero = xp.zeros_like(first["safe"])
        none, rates = Bets(zero, zero, zero, zero), Rates(zero, zero, zero) if binary(problem)[0] else None
        wide = xp.zeros((*zero.shape, zero.shape[1]), dtype=xp.float64)
        return LinearState(
            **first, n=xp.zeros_like(first["standing"]), dose=zero, harms=zero, data=none, own=none, led=none,
            own_shared=none, led_shared=Bets(wide, wide, wide, wide), own_rates=rates, led_rates=rates,
            harm_at_start=zero - xp.inf, look=look(problem, none, slopes(problem, none), first["standing"] == ACTIVE),
            again=zero + goal(problem) + SPARE, weak=zero + xp.nan,
        )  # fmt: skip

    def certified(self, state: LinearState) -> Array:
        return state.safe

    def open(self, state: LinearState) -> Array:
        return (state.standing == ACTIVE) | second(state)

    def learn(self, state: LinearState, cohort: Cohort, outcome: Outcome) -> LinearState:
        # beyond the largest dose nothing is known: a binary harm, for one, cannot go on rising
        came = (outcome.n > 0) & (cohort.dose > 0) & (cohort.dose <= like(state.dose, state.problem.largest))
        s = certify(take_in(state, came, cohort, outcome), came)
        lines = slopes(s.problem, s.data)
        s = back(s, lines)
        live = (s.standing == ACTIVE) & (s.harm_at_start <= s.problem.limit)
        s = replace(s, rounds=s.rounds + 1, look=look(s.problem, s.data, lines, live, state.look))
        return judge(s, live, state.look.leader)

    def verdict(self, state: LinearState, verdict: Verdict) -> Verdict:
        """With intervals for values and effects that hold together with the doses, for all arms and times, with
        probability 1 - delta. They are a statement of their own: the verdict does not rest on them, nor they on it."""
        xp, p, s = array_namespace(state.pulls), state.problem, state
        alpha, known = VERDICT * p.delta / (4 * len(p.arms)), s.own.w > 0
        w = xp.where(known, s.own.w, 1.0)
        theta, error = s.own.y / w, xp.where(known, radius(s.own.v, alpha, CONTRAST) / w, xp.inf)
        lower, upper = intervals(s, math.log(1 / alpha))
        rise = s.safe / like(w, p.starts) * sigmas(p)[0]
        return replace(
            verdict,
            lower=xp.where(known, lower, -xp.inf),
            upper=xp.where(known, upper, xp.inf),
            effect_lower=rise * xp.where(known, theta - error, -xp.inf),
            effect_upper=rise * xp.where(known, theta + error, xp.inf),
        )

    def against(self, state: LinearState) -> Array:
        """By what is known now (lemma 7); of a claim that is refuted, what refuted it; of the winner's, nothing."""
        xp, d = array_namespace(state.pulls), len(state.problem.arms)
        which = (state.standing == ACTIVE) & (xp.arange(d, device=device(state.dose)) != state.winner[:, None])
        claims = Chosen(which)
        known = xp.where(state.standing == REFUTED, xp.full_like(state.dose, goal(state.problem)), 0.0)
        return claims.put(known, each(state, claims, None, infimum)[0])

    def seems(self, state: LinearState) -> Estimates:
        """At the dose where the estimated line of harm reaches the limit."""
        xp, p, (sy, sz) = array_namespace(state.pulls), state.problem, sigmas(state.problem)
        theta, mu, dose = slopes(p, state.data)
        error = 1.96 * dose / xp.sqrt(xp.where(state.data.v > 0, state.data.v, 1e-12))
        effect, harm = xp.where(state.data.v > 0, sy * theta * dose, -xp.inf), sz * mu * dose
        ends = ((mean - s * error, mean + s * error) for mean, s in ((effect, sy), (harm, sz)))
        return Estimates(dose * like(dose, p.starts), effect, harm, *ends)


def take_in(s: LinearState, came: Array, cohort: Cohort, outcome: Outcome) -> LinearState:
    """Lemma 1: every pull enters sums with weights that were fixed before its readings.

    Only pulls at a dose that was certified before them are bet on, with a stake above 0, and if they count (where sigma
    is not known they may not yet). Shared stakes against the claims of others count where there is a stake `led` too:
    by its v all who bet against others are known.
    """
    xp, p, (sy, sz) = array_namespace(s.pulls), s.problem, sigmas(s.problem)
    count = xp.where(came, outcome.n, 0)
    n, dose = xp.astype(count, xp.float64), xp.where(came, cohort.dose / like(s.dose, p.starts), 0.0)
    raw = Pulls(n, dose, xp.where(came, outcome.effect, 0.0), xp.where(came, outcome.harm, 0.0))
    pulls = every = Pulls(n, dose, raw.effect / sy, raw.harm / sz)
    if outcome.weight is not None:  # doses rest on harms; a bet with both readings takes both at the lesser weight
        pulls, every = pulls.times(xp.min(outcome.weight, axis=-1)), pulls.times(outcome.weight[..., 1])
    one, stakes = Bets.on(pulls), cohort.stakes
    may = came & (cohort.dose <= s.safe) & (one.v > 1 / LARGEST)
    both = (stakes[..., 0], stakes[..., 1], xp.linalg.diagonal(stakes[..., 2:]))
    own, led, itself = (staked(xp.asarray(x, copy=True), may) for x in both)
    return replace(
        s, n=s.n + count, dose=s.dose + n * dose, harms=s.harms + raw.harm,
        data=s.data.add(one if every is pulls else Bets.on(every), 1.0), own=s.own.add(one, own),
        led=s.led.add(one, led), own_shared=s.own_shared.add(one, itself),
        led_shared=shared(s.led_shared, Chosen(led > 0), one, stakes, s.owned),
        own_rates=s.own_rates and s.own_rates.add(raw, own > 0),
        led_rates=s.led_rates and s.led_rates.add(raw, led > 0),
    )  # fmt: skip


def shared(bets: Bets, which: Chosen, one: Bets, stakes: Array, owned: bool) -> Bets:
    """With the bets of these arms' pulls against every claim added: few of all arms."""
    one = taken(one, lambda x: which.rows(x)[:, None])
    new = taken(bets, which.rows).add(one, staked(which.rows(stakes)[:, 2:], one.v > 0))
    return Bets(*(which.put(x, y, owned) for x, y in zip(vars(bets).values(), vars(new).values(), strict=True)))


def staked(stakes: Array, may: Array) -> Array:
    """Where a bet may be made and there is a stake, that; else 0."""
    xp = array_namespace(stakes)
    return xp.where(may & (stakes > 1 / LARGEST) & (stakes < LARGEST), stakes, 0.0)


def certify(s: LinearState, came: Array) -> LinearState:
    """Lemma 2: a dose that is safe for sure, and one above which none is. What was shown once stays shown."""
    xp, p, (sy, sz) = array_namespace(s.pulls), s.problem, sigmas(s.problem)
    a0, largest, seen = like(s.dose, p.starts), like(s.dose, p.largest), s.data.v > 0
    limit = a0 * (p.limit / sz)
    upper, lower = harm_slopes(s, Chosen(came & seen))
    safe = round_down(p, clip(limit / upper, a0, largest))
    unsafe = round_down(p, clip(limit / xp.maximum(lower, like(lower, 1e-100)), a0, largest))
    safe = xp.maximum(s.safe, safe)
    return replace(
        s,
        safe=safe,
        unsafe=xp.minimum(s.unsafe, unsafe),
        estimate=xp.where(seen, safe / a0 * sy * s.data.y / xp.where(seen, s.data.v, 1.0), -xp.inf),
        harm_at_start=xp.maximum(s.harm_at_start, lower * sz),
    )


def harm_slopes(s: LinearState, came: Chosen) -> tuple[Array, Array]:
    """Upper and lower bounds on the slopes of the harm of the arms that `came`; infinite where they would move neither
    dose.

    No mixture is above its best bet, exp((mv - z)^2 / 2v): where not even that would move a dose, nothing is computed.
    """
    p, sz, safe, arm = s.problem, sigmas(s.problem)[1], came.rows(s.safe), came.index % len(s.problem.arms)
    up, down = (share * p.delta / len(p.arms) for share in (SAFETY, UNSAFE))
    rises = safe < flat(like(safe, p.largest), arm)
    if binary(p)[1]:
        rising, falling = came.among(rises), came
        upper, lower = (
            rate(floats(at.rows(s.n)), at.rows(s.dose), at.rows(s.harms), alpha, 2) / sz
            for at, rate, alpha in ((rising, rate_upper, up), (falling, rate_lower, down))
        )
    else:
        xp, top, v, z = array_namespace(safe), p.limit / sz, came.rows(s.data.v), came.rows(s.data.z)
        mean, error, limit = z / v, 1 / xp.sqrt(v), flat(like(safe, p.starts), arm) * top
        falls = (mean - math.sqrt(-2 * math.log(down)) * error) * came.rows(s.unsafe) > limit
        rises = rises & ((mean + math.sqrt(-2 * math.log(up)) * error) * safe < limit)
        rising, falling = came.among(rises), came.among(falls)
        upper = slope_upper(rows(v, rises), rows(z, rises), up, 2)
        v, z = rows(v, falls), rows(z, falls)
        lower = (z - radius(v * top**2, down, ANY, 1) / top) / v
    return rising.spread(upper, math.inf), falling.spread(lower, -math.inf)


def second(s: LinearState) -> Array:
    """Refuted arms with so few pulls that they are to be looked at again, before anything is found; none whose start
    dose was shown to be above the limit."""
    xp, left = array_namespace(s.pulls), s.standing == ACTIVE
    lost = (s.standing == REFUTED) & (s.found == 0)[:, None] & (s.harm_at_start <= s.problem.limit)
    if not bool(xp.any(lost)):
        return lost
    n = floats(s.n)
    of, many = (xp.sum(last(x), axis=0) for x in (xp.where(left, n, 0.0), xp.astype(left, xp.float64)))
    return lost & (n < (SECOND * of / xp.maximum(many, like(of, 1.0)))[:, None])


def back(s: LinearState, lines: Slopes) -> LinearState:
    """With the arms that were refuted and may well be best after all: by HOPE errors. Lemma 6 asks for claims that were
    refuted once; a stricter rule errs less."""
    xp, lost, d = array_namespace(s.pulls), Chosen((s.standing == REFUTED) & (s.found == 0)[:, None]), s.n.shape[1]
    if lost.count == 0:
        return s
    theta, _, dose = lines
    best = xp.max(last(xp.where(s.standing == ACTIVE, theta * dose, -xp.inf)), axis=0)
    theta, mu, dose, v = (lost.rows(x) for x in (*lines, s.data.v))
    gap = xp.maximum(xp.take(best, lost.index // d) / dose - theta, 0.0 * theta)
    may = (gap * mu) ** 2 * v < HOPE**2 * (mu**2 + theta**2)
    return replace(s, standing=lost.put(s.standing, xp.where(may, ACTIVE, lost.rows(s.standing))))


def goal(p: Problem) -> float:
    """The log of the wealth that refutes a claim."""
    return math.log(1 / (VERDICT * p.delta))


def judge(s: LinearState, live: Array, before: Array) -> LinearState:
    """Lemma 6: an arm is out when its claim is refuted; with a tolerance the leader may also be near enough to win.

    A claim is looked at when there is evidence enough for it to be worth the work; `before` is who led when it was
    settled how much that is.
    """
    xp, p, at = array_namespace(s.pulls), s.problem, s.look
    first = goal(p) + SPARE
    falls = xp.maximum(
        at.evidence + EASE * first, like(at.evidence, first)
    )  # evidence that was there by mistake is not waited for
    again = xp.where((at.leader == before)[:, None], xp.minimum(s.again, falls), first)
    rival = live & (xp.arange(len(p.arms), device=device(s.dose)) != at.leader[:, None])
    due = rival & (at.evidence >= again)
    beaten, short, s = refuted(s, due)
    near = beaten
    if p.tolerance is not None:
        near, short, s = refuted(s, due & ~beaten, at.leader)
    again = xp.where(short > 0, at.evidence + EASE * short, again)
    bar = at.bar * (p.limit * sigmas(p)[0] / sigmas(p)[1])
    return conclude(replace(s, again=again), s.harm_at_start, at.leader, beaten, near, bar, bar)


def refuted(s: LinearState, which: Array, named: Array = None) -> tuple[Array, Array, LinearState]:
    """Where the wealth against an arm's claim has reached the goal at every bar, and what is missing."""
    enough, claims = goal(s.problem), Chosen(which)
    total, weak = each(s, claims, named, partial(refutation, goal=enough))
    short = claims.spread(enough - total, 0.0)
    return which & (short <= 0), short, replace(s, weak=claims.put(s.weak, weak))


def each(s: LinearState, which: Chosen, named: Array, find: Callable[..., tuple[Array, Array]]) -> tuple[Array, Array]:
    """What `find` finds for each of these claims. In blocks: first those against which one arm has bet, nearly all of
    them, which is less work for each."""
    xp, d, many = array_namespace(s.pulls), len(s.problem.arms), which.count
    if many == 0:
        return s.dose[:0, 0], s.dose[:0, 0]
    row = which.index // d
    v = xp.take(s.led.v, row, axis=0)
    led, leaders = xp.sum(xp.astype(v > 0, xp.int64), axis=1), xp.argsort(-v, axis=1).T
    order, found = xp.argsort(led), []
    alone = int(xp.sum(xp.astype(led <= 1, xp.int64))) if many > FEW and is_numpy_array(row) else 0
    for i, j in pairwise(sorted({*range(0, many, BLOCK), alone, many})):
        at = order[i:j]
        r, k = xp.take(row, at), xp.take(which.index, at)
        most = max(1, int(xp.max(xp.take(led, at))))
        claims = claimed(s, r, k - r * d, xp.take(leaders[:most, :], at, axis=1), named)
        found.append(xp.stack(find(s.problem, claims, places(s, r, k))))
    both = xp.take(xp.concat(found, axis=1), xp.argsort(order), axis=1)
    return both[0, :], both[1, :]


def claimed(s: LinearState, row: Array, arm: Array, leaders: Array, named: Array = None) -> Claims:
    """The claims of these arms, and what was bet against them by arms that led."""
    xp, d = array_namespace(s.pulls), len(s.problem.arms)
    k, j, others = row * d + arm, row * d + leaders, leaders != arm

    def of_others(x: Any) -> Any:
        return taken(x, lambda y: xp.where(others, y, 0.0))

    return Claims(
        own=s.own.at(k), led=of_others(s.led.at(j)),
        own_shared=s.own_shared.at(k), led_shared=of_others(s.led_shared.at(j * d + arm)),
        own_rates=s.own_rates and s.own_rates.at(k), led_rates=s.led_rates and of_others(s.led_rates.at(j)),
        arm=reaches(s, k), leaders=reaches(s, j),
        named=None if named is None else leaders == xp.take(named, row),
    )  # fmt: skip


def places(s: LinearState, row: Array, index: Array) -> Places:
    """Where the wealth against each claim is about least: between the arm's value and the leader's."""
    xp, at, shift, d = array_namespace(s.pulls), s.look, tolerance(s.problem), len(s.problem.arms)
    value, bar, weak = (flat(x, index) for x in (at.value, at.bar, s.weak))
    high = xp.maximum(flat(at.value, row * d + xp.take(at.leader, row)) + shift, value)
    low, u, high = (x / (1 + x) for x in (value, xp.maximum(bar, like(high, shift)), high))
    before = xp.where(xp.isnan(weak), u, weak)
    return low, xp.clip(u, low, high), high, xp.clip(before, low, high)


def reaches(s: LinearState, index: Array) -> Reaches:
    """Lemma 4: doses between which the largest safe one is, by which theta times them bounds a value; of the arms at
    these places of all."""
    xp, p, arm = array_namespace(s.pulls), s.problem, index % len(s.problem.arms)
    share = [1.0 if arm.largest <= arm.start else CAP * math.isfinite(arm.largest) for arm in p.arms]
    logs = [[math.log(x) if x else -math.inf for x in part] for part in ([1 - x for x in share], share)]
    a0, largest, line, cap = (flat(like(s.dose, x), arm) for x in (p.starts, p.largest, *logs))
    safe = flat(s.safe, index)
    capped = flat(stepped(p, s.dose), arm) | (safe >= largest)
    return Reaches(xp.where(capped, safe, largest) / a0, flat(s.unsafe, index) / a0, capped, line, cap)


def intervals(s: LinearState, goal: float) -> tuple[Array, Array]:
    """Bounds on every arm's value, by the bets with its own pulls: all bars that are not refuted lie between them."""
    xp, p, (sy, sz) = array_namespace(s.pulls), s.problem, sigmas(s.problem)
    a0, v = like(s.dose, p.starts), xp.where(s.data.v > 0, s.data.v, 1.0)
    floor = 0.1 / xp.sqrt(v)
    theta, mu = xp.maximum(s.data.y / v, floor), xp.maximum(s.data.z / v, floor)
    guess = xp.minimum(theta / mu, sz / p.limit * theta * like(v, p.largest) / a0)
    steps = xp.asarray([math.exp(9.0 * (i / 60) ** 3 + 0.6 * i / 60) for i in range(-60, 61)], device=device(v))
    ends, zero = guess * steps[:, None, None], xp.zeros_like(guess)[None, ...]
    left, right = xp.concat([zero, ends]), xp.concat([ends, zero + 1.0 / TINY])
    everyone = xp.reshape(xp.arange(math.prod(v.shape), device=device(v)), v.shape)
    cells, reach = Cells.between(p, left / (1 + left), right / (1 + right)), reaches(s, everyone)
    high = above(p, cells, s.own, s.own_rates, reach) >= goal
    low = below(p, cells, s.own, s.own_rates, reach) >= goal
    unit = p.limit * sy / sz
    lower = xp.min(xp.where(high, xp.inf, unit * left), axis=0)
    upper = xp.max(xp.where(low, -xp.inf, xp.where(right < 1 / TINY, unit * right, xp.inf)), axis=0)
    return lower, upper
