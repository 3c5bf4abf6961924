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
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick, scatter
from ..bounds import ANY, CONTRAST, TOGETHER, log_mixture, log_tilt, radius, rate_lower, rate_upper, slope_upper
from ..problem import Problem
from .base import ACTIVE, REFUTED, Cohort, Outcome, State, Verdict, blank
from .compose import Evidence
from .linear_bars import (
    TINY,
    Bets,
    Pulls,
    Rates,
    binary,
    cells,
    cone,
    flat,
    height,
    lowered,
    over,
    sigmas,
    under,
)
from .linear_estimates import Look, look, slopes, stepped, tolerance
from .recommend import Estimates
from .settle import conclude, round_down

SAFETY, UNSAFE, VERDICT = 0.3, 0.05, 0.65  # shares of delta: doses; stops and largest safe doses; verdict or intervals
CAP = 0.2  # share of the bet against an arm's own claim that is on its cap, where it has cone and cap
SHARED = 0.25  # share of the bet against a claim that is of one size for all arms
SPARE = 0.5  # nats by which a mixture is always below the evidence at its best bet: no need to look before
EASE = 0.5  # and none before this part of what is missing has come
LARGEST = 1e50  # a stake beyond it is none, nor one below its inverse
BLOCK = 20_000  # how many cells are looked at together, so that memory is bounded


@dataclass(frozen=True, kw_only=True)
class LinearState(State):
    """Sums over the pulls of every arm."""

    n: Array
    dose: Array  # sum of the doses
    harms: Array  # sum of the harms, as they came
    data: Bets  # all pulls, with a stake of 1
    own: Bets  # against the arm's own claim
    led: Bets  # against the claims of the others
    shared: Bets  # (trials, arms, arms): of each arm's pulls against each arm's claim
    own_rates: Rates | None  # of binary effects
    led_rates: Rates | None
    harm_at_start: Array  # a lower bound on it
    look: Look
    again: Array  # how much evidence there should be when an arm's claim is looked at next


class LinearEvidence(Evidence[LinearState]):
    """Surefoot's for the linear shape."""

    theorem: ClassVar[str] = "surefoot-linear/2"
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
            shared=Bets(wide, wide, wide, wide), own_rates=rates, led_rates=rates, harm_at_start=zero - xp.inf,
            look=look(problem, none, first["standing"] == ACTIVE), again=zero + goal(problem) + SPARE,
        )  # fmt: skip

    def certified(self, state: LinearState) -> Array:
        return state.safe

    def learn(self, state: LinearState, cohort: Cohort, outcome: Outcome) -> LinearState:
        # beyond the largest dose nothing is known: a binary harm, for one, cannot go on rising
        came = (outcome.n > 0) & (cohort.dose > 0) & (cohort.dose <= like(state.dose, state.problem.largest))
        s = certify(take_in(state, came, cohort, outcome), came)
        live = (s.standing == ACTIVE) & (s.harm_at_start <= s.problem.limit)
        s = replace(s, rounds=s.rounds + 1, look=look(s.problem, s.data, live, state.look))
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
        """By what is known now (lemma 7); of a claim that is refuted at least what refuted it."""
        xp, at = array_namespace(state.pulls), state.look
        high = pick(at.value, at.leader) + tolerance(state.problem)
        low, u, high = (x / (1 + x) for x in (at.value, at.bar, xp.maximum(high, at.value)))
        every = state.standing >= 0
        _, u = least(state, every, (low, xp.clip(u, low, high), high), 12, False, None)
        found, _ = least(state, every, (low, u, high), 36, True, None)
        return xp.where(state.standing == REFUTED, xp.maximum(found, like(found, goal(state.problem))), found)

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

    Only pulls at a dose that was certified before them are bet on, and only with a stake above 0; shared stakes against
    the claims of others count where there is a stake `led` too, so that all who bet against others are known by it.
    """
    xp, p, (sy, sz) = array_namespace(s.pulls), s.problem, sigmas(s.problem)
    count = xp.where(came, outcome.n, 0)
    n, dose = xp.astype(count, xp.float64), xp.where(came, cohort.dose / like(s.dose, p.starts), 0.0)
    effects, harms = xp.where(came, outcome.effect, 0.0), xp.where(came, outcome.harm, 0.0)
    on = (came & (cohort.dose <= s.safe))[..., None] & (cohort.stakes > 1 / LARGEST) & (cohort.stakes < LARGEST)
    stakes = xp.where(on, cohort.stakes, 0.0)
    own, led, arms = stakes[..., 0], stakes[..., 1], xp.arange(len(p.arms), device=device(s.dose))
    against = xp.where((led > 0)[..., None] | (arms[:, None] == arms), stakes[..., 2:], 0.0)
    pulls = every = Pulls(n, dose, effects / sy, harms / sz)
    if outcome.weight is not None:  # doses rest on harms; a bet with both readings takes both at the lesser weight
        pulls, every = pulls.times(xp.min(outcome.weight, axis=-1)), pulls.times(outcome.weight[..., 1])
    wide = Pulls(*(x[..., None] for x in (pulls.n, dose, pulls.effect, pulls.harm)))
    raw = Pulls(n, dose, effects, harms)
    return replace(
        s, n=s.n + count, dose=s.dose + n * dose, harms=s.harms + harms,
        data=s.data.add(every, xp.ones_like(n)), own=s.own.add(pulls, own), led=s.led.add(pulls, led),
        shared=s.shared.add(wide, against),
        own_rates=s.own_rates and s.own_rates.add(raw, own > 0),
        led_rates=s.led_rates and s.led_rates.add(raw, led > 0),
    )  # fmt: skip


def certify(s: LinearState, came: Array) -> LinearState:
    """Lemma 2: a dose that is safe for sure, and one above which none is. What was shown once stays shown."""
    xp, p, (sy, sz) = array_namespace(s.pulls), s.problem, sigmas(s.problem)
    a0, largest, top = like(s.dose, p.starts), like(s.dose, p.largest), p.limit / sz
    came = came & (s.data.v > 0)
    row, arm = xp.nonzero(came)
    sums = (xp.astype(s.n, xp.float64), s.dose, s.harms, s.data.v, s.data.z)
    n, dose, harms, v, z = (xp.take(xp.reshape(x, (-1,)), row * len(p.arms) + arm) for x in sums)
    safety, unsafety = (share * p.delta / len(p.arms) for share in (SAFETY, UNSAFE))
    if binary(p)[1]:
        upper, lower = rate_upper(n, dose, harms, safety, 2) / sz, rate_lower(n, dose, harms, unsafety, 2) / sz
    else:
        upper, lower = slope_upper(v, z, safety, 2), (z - radius(v * top**2, unsafety, ANY, 1) / top) / v
    upper, lower = scatter(came, upper), scatter(came, lower)
    safe = round_down(p, xp.clip(a0 * top / xp.where(came, upper, 1.0), a0, largest))
    unsafe = round_down(p, xp.clip(a0 * top / xp.where(lower > 1e-100, lower, 1e-100), a0, largest))
    safe = xp.where(came, xp.maximum(s.safe, safe), s.safe)
    return replace(
        s,
        safe=safe,
        unsafe=xp.where(came, xp.minimum(s.unsafe, unsafe), s.unsafe),
        estimate=xp.where(s.data.v > 0, safe / a0 * sy * s.data.y / xp.where(s.data.v > 0, s.data.v, 1.0), -xp.inf),
        harm_at_start=xp.where(came, xp.maximum(s.harm_at_start, lower * sz), s.harm_at_start),
    )


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
    falls = xp.clip(at.evidence + EASE * first, first, xp.inf)  # evidence that was there by mistake is not waited for
    again = xp.where((at.leader == before)[:, None], xp.minimum(s.again, falls), first)
    rival = live & (xp.arange(len(p.arms), device=device(s.dose)) != at.leader[:, None])
    due = rival & (at.evidence >= again)
    beaten, short = refuted(s, due)
    near = beaten
    if p.tolerance is not None:
        near, short = refuted(s, due & ~beaten, at.leader)
    again = xp.where(short > 0, at.evidence + EASE * short, again)
    bar = at.bar * (p.limit * sigmas(p)[0] / sigmas(p)[1])
    return conclude(replace(s, again=again), s.harm_at_start, at.leader, beaten, near, bar, bar)


def refuted(s: LinearState, which: Array, named: Array = None) -> tuple[Array, Array]:
    """Where the wealth against an arm's claim has reached the goal at every bar (see `wealth`), and what is missing.

    Some bars are tried first; only if these pass, all bars, cell by cell.
    """
    xp, at = array_namespace(s.pulls), s.look
    high = pick(at.value, at.leader) + tolerance(s.problem)
    low, u, high = (x / (1 + x) for x in (at.value, at.bar, xp.maximum(high, at.value)))
    short = xp.zeros_like(u)
    for many, whole in ((3, False), (22, True)):
        total, u = least(s, which, (low, xp.clip(u, low, high), high), many, whole, named)
        short = xp.where(which, goal(s.problem) - total, short)
        which = which & (short <= 0)
    return which, short


def least(
    s: LinearState, which: Array, places: tuple[Array, Array, Array], many: int, whole: bool, named: Array
) -> tuple[Array, Array]:
    """The least log of the wealth against each of `which` claims, and the bar there: over all cells where `whole`, else
    at their ends only. In groups by how many arms have led (nearly always one), and in blocks."""
    xp, d, shift = array_namespace(s.pulls), len(s.problem.arms), tolerance(s.problem)
    order, doses = xp.argsort(-s.led.v, axis=1), reaches(s)
    led = xp.sum(xp.astype(s.led.v > 0, xp.int64), axis=1, keepdims=True)
    total, place = xp.zeros_like(s.dose), places[1]
    for group in {1, max(1, int(xp.max(led)))}:
        these = which & ((led <= 1) if group == 1 else (led > 1))
        row, arm = xp.nonzero(these)
        found, size = [], max(1, BLOCK // ((2 * many + 1) * group))
        for i in range(0, row.shape[0], size):
            r, k = (x[i : min(i + size, row.shape[0])] for x in (row, arm))
            low, u, high = (flat(x, r * d + k) for x in places)
            ends = xp.maximum(cells(low, u, high, many), like(u, shift / (1 + shift)))
            left, right = (ends[:, :-1], ends[:, 1:]) if whole else (ends, ends)
            log = wealth(s, doses, r, k, xp.take(order[:, :group], r, axis=0), left, right, named)
            found.append(xp.concat([xp.min(log, axis=1, keepdims=True), pick(ends, xp.argmin(log, axis=1))], axis=1))
        if found:
            both = xp.concat(found, axis=0)
            total, place = (xp.where(these, scatter(these, both[:, j]), x) for j, x in ((0, total), (1, place)))
    return total, place


def wealth(
    s: LinearState, doses: Any, row: Array, arm: Array, leaders: Array, low: Array, high: Array, named: Array
) -> Array:
    """Lemma 5: the least log of the wealth against "arm k is best", over the bars from low to high.

    With a tolerance an arm that leads is bet to be above the bar, and above what is lower by the tolerance,
    whichever is less; the arm that is to be `named` only above the latter.
    """
    xp, p, d = array_namespace(s.pulls), s.problem, len(s.problem.arms)
    k, j, shift = row * d + arm, row[:, None] * d + leaders, tolerance(p)
    others = (leaders != arm[:, None])[..., None]
    low_j, high_j = lowered(low, shift)[:, None, :], high[:, None, :]
    if named is not None:
        is_named = (leaders == xp.take(named, row)[:, None])[..., None]
        high_j = xp.where(is_named, lowered(high, shift)[:, None, :], high_j)
    certain, possible, capped, on_cap = (flat(x, i) for x, i in zip(doses, (j, k, j, k), strict=True))
    against = s.shared.at(j * d + arm[:, None]).where(others)
    up = over(p, low_j, high_j, against, certain, capped)
    line, cap = under(p, low, high, s.shared.at(k * d + arm), possible)
    up, v = xp.sum(up, axis=1), xp.sum(against.v, axis=1) + flat(s.shared.v, k * d + arm)
    together = either(log_mixture(up + line, v, TOGETHER), log_mixture(up + cap, v, TOGETHER), on_cap)
    ups = above(s, j, low_j, high_j, certain, capped)
    apart = xp.sum(xp.where(others, ups, 0.0), axis=1) + below(s, k, low, high, possible, on_cap)
    return xp.logaddexp(apart + math.log(1 - SHARED), together + math.log(SHARED))


def reaches(s: LinearState) -> tuple[Array, Array, Array, Array]:
    """Lemma 4: doses between which the largest safe one is, by which theta times them bounds a value; whether that is
    all that a leader has to show (levels, or its largest dose is certified); the share of the own bet on the cap."""
    xp, p = array_namespace(s.pulls), s.problem
    a0, largest = like(s.dose, p.starts), like(s.dose, p.largest)
    capped = stepped(p, s.dose) | (s.safe >= largest)
    share = like(s.dose, [1.0 if arm.largest <= arm.start else CAP * math.isfinite(arm.largest) for arm in p.arms])
    return xp.where(capped, s.safe, largest) / a0, s.unsafe / a0, capped, share + 0.0 * s.dose


def above(s: LinearState, at: Array, low: Array, high: Array, reach: Array, capped: Array) -> Array:
    """Log of the wealth from bets with the pulls of an arm that leads, that its value is above."""
    xp, p, bets = array_namespace(s.pulls), s.problem, s.led.at(at)
    if s.led_rates is None:
        return log_mixture(over(p, low, high, bets, reach, capped), bets.v, CONTRAST)
    line = log_mixture(cone(p, low, high, bets.y, bets.z), bets.v, CONTRAST)
    cap = ratio(p, s.led_rates.at(at), high, reach, True)
    return xp.where(capped, cap, xp.minimum(line, cap))


def below(s: LinearState, at: Array, low: Array, high: Array, reach: Array, on_cap: Array) -> Array:
    """Log of the wealth from bets with an arm's own pulls, that its value is below."""
    bets = s.own.at(at)
    line, cap = under(s.problem, low, high, bets, reach)
    v = bets.v
    if s.own_rates is None:
        return either(log_mixture(line, v, CONTRAST), log_mixture(cap, v, CONTRAST), on_cap)
    return either(log_mixture(line, v, CONTRAST), ratio(s.problem, s.own_rates.at(at), low, reach, False), on_cap)


def ratio(p: Problem, rates: Rates, u: Array, reach: Array, up: bool) -> Array:
    """Log of the wealth from likelihood ratios of binary effects, that theta * reach is above (below) the bar at u:
    their mean at the mean dose is compared (lemma 3)."""
    xp = array_namespace(u)
    mean = rates.dose / xp.maximum(rates.n, like(u, 1.0)) * height(p, u) * sigmas(p)[0] / reach
    return log_tilt(rates.total + 0.0 * u, rates.n + 0.0 * u, mean, up)


def either(line: Array, cap: Array, on_cap: Array) -> Array:
    """Log of the wealth of two bets that share one stake."""
    xp = array_namespace(line)
    shares = [xp.where(x > 0, xp.log(xp.where(x > 0, x, 1.0)), -xp.inf) for x in (1 - on_cap, on_cap)]
    return xp.logaddexp(line + shares[0], cap + shares[1])


def intervals(s: LinearState, goal: float) -> tuple[Array, Array]:
    """Bounds on every arm's value, by the bets with its own pulls: all bars that are not refuted lie between them."""
    xp, p, (sy, sz) = array_namespace(s.pulls), s.problem, sigmas(s.problem)
    a0, v = like(s.dose, p.starts), xp.where(s.data.v > 0, s.data.v, 1.0)
    certain, possible, capped, on_cap = (x[..., None] for x in reaches(s))
    floor = 0.1 / xp.sqrt(v)
    theta, mu = xp.maximum(s.data.y / v, floor), xp.maximum(s.data.z / v, floor)
    guess = xp.minimum(theta / mu, sz / p.limit * theta * like(v, p.largest) / a0)
    steps = xp.asarray([math.exp(9.0 * (i / 60) ** 3 + 0.6 * i / 60) for i in range(-60, 61)], device=device(v))
    ends, zero = guess[..., None] * steps, xp.zeros_like(guess)[..., None]
    left, right = xp.concat([zero, ends], axis=-1), xp.concat([ends, zero + 1.0 / TINY], axis=-1)
    bars = [p.limit * sy / sz * x for x in (left, right)]
    left, right = left / (1 + left), right / (1 + right)
    every = xp.reshape(xp.arange(s.n.shape[0] * s.n.shape[1], device=device(v)), s.n.shape)
    mine = replace(s, led=s.own, led_rates=s.own_rates)
    high = above(mine, every, left, right, certain, capped) >= goal
    low = below(s, every, left, right, possible, on_cap) >= goal
    lower = xp.min(xp.where(high, xp.inf, bars[0]), axis=-1)
    upper = xp.max(xp.where(low, -xp.inf, xp.where(right < 1, bars[1], xp.inf)), axis=-1)
    return lower, upper
