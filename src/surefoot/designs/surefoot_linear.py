"""Surefoot-Linear: the guarantee of SafeBAI-Linear with all data pooled. Theorem 1 of docs/guarantees.md.

Every pull ever made counts, weighted by its information: an arm's data are the sums v = sum a^2, y = sum a*effect,
z = sum a*harm (doses in units of the start dose, readings in units of their sigma).

Dose. Every pull is at the largest certified dose: limit over an upper confidence sequence for the slope of the harm.

Verdict. "Arm k is best" is tested for every k. If it is true then, at the level x that is k's value, k's value is at
least x and every other's at most x. Against the first, bet with all pulls of k; against the second, bet with the pulls
of whatever arm was leading when it was pulled. The product of these bets is a supermartingale at that x, so its
infimum over all x reaches 1/delta' with probability at most delta'. Only one of the claims is true, so there is no
union over arms or pairs to pay for. Whether an arm is leading is decided before it is pulled, so it is predictable.

Value. With an angle phi for the level x, tan(phi) = x sigma_harm / (limit sigma_effect), the reading
cos(phi) effect - sin(phi) harm has mean above 0 where limit*theta/mu > x: a line, not a box, and its noise has sigma 1
if the readings are independent, at most cos + sin whatever their dependence. With a largest dose M the value is
min(limit*theta/mu, M*theta): a leader must show both, a rival may show either (a mixture).

Which arm. The challenger is the rival with the least evidence against it (plus the log of its pulls); leader or
challenger by whether the leader's share of the evidence, summed over rivals, is above 1: the condition that the best
allocation fulfils (Bandyopadhyay, Juneja and Agrawal 2024, for classical arms).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick, scatter
from ..bounds import ANY, CONTRAST, log_mixture, radius, slope_upper
from ..problem import Problem, Shape, number
from .base import ACTIVE, Cohort, Design, Outcome, State, Verdict, blank, conclude, round_down, wanted

SAFETY, UNSAFE = 0.3, 0.05  # shares of delta: for the doses, for "unsafe at the start" and the largest safe dose
CAP = 0.2  # share of a rival's bet that is on the branch M*theta of its value
ESTABLISHED = 1.0  # nats by which a leader must be ahead before its pulls are bet on


@dataclass(frozen=True, kw_only=True)
class LinearState(State):
    """Sums over the pulls of an arm: of information (v, y, z), of bets (the same with weight a * scale, and w = sum a *
    weight) against an arm's claim, and those among them that were made while the arm was leading (led_)."""

    n: Array
    v: Array
    y: Array
    z: Array
    bet_v: Array
    bet_y: Array
    bet_z: Array
    bet_w: Array
    led_v: Array
    led_y: Array
    led_z: Array
    led_w: Array
    scale: Array  # the size of an arm's signal, as known before the next pull
    leading: Array  # the arm that is ahead, -1 while none is established
    harm_at_start: Array  # a lower bound on it
    want: Array


@dataclass(frozen=True)
class SurefootLinear(Design):
    """The paper's guarantee for lines through 0 with all data pooled: ten and more times fewer pulls.

    growth: decide again after an arm has this share more pulls; cohort: and at least so many. growth=0 and cohort=3 is
    fixed cohorts of three, growth=0 and cohort=1 is after every pull. first: pulls of every arm to begin with.
    """

    growth: float = 0.1
    cohort: int = 1
    first: int = 5

    name: ClassVar[str] = "surefoot-linear"
    shape: ClassVar[Shape] = "linear"
    chunk: ClassVar[int] = 512

    def __post_init__(self) -> None:
        number("growth", self.growth, least=0)
        number("cohort", self.cohort, least=1)
        number("first", self.first, least=1)

    def begin(self, problem: Problem, trials: int, xp: Any) -> LinearState:
        first = blank(problem, trials, xp)
        zero = xp.zeros_like(first["safe"])
        none = xp.zeros_like(first["standing"])
        names = [f"{kind}{name}" for kind in ("bet_", "led_") for name in "vyzw"]
        return LinearState(
            **first, **dict.fromkeys(("v", "y", "z", *names), zero), n=none, want=none + self.first,
            scale=zero + 0.3 * problem.limit / problem.noises[1].scale, leading=xp.zeros_like(first["pulls"]) - 1,
            harm_at_start=zero - xp.inf,
        )  # fmt: skip

    def reached(self, p: Problem, a: Array) -> Array:
        """By what to divide a level x to get the mean that a leader's pull at dose a cannot exceed if its value is x.

        By the largest dose over a, since its value is at most theta * M. With levels its value is theta times a level
        that is at or above a, as a is certified, so the mean of the pull itself is at most x.
        """
        xp = array_namespace(a)
        if p.levels is None:
            return a
        return xp.where(xp.isinf(like(a, p.levels[:, 0])), a, like(a, p.largest / p.starts) + 0.0 * a)

    def plan(self, state: LinearState, u: Array) -> Cohort:
        return Cohort(state.safe, state.want)

    def learn(self, state: LinearState, cohort: Cohort, outcome: Outcome) -> LinearState:
        xp, p = array_namespace(state.pulls), state.problem
        came = (outcome.n > 0) & (cohort.dose != 0)
        count = xp.where(came, outcome.n, 0)
        n = xp.astype(count, xp.float64)
        a = xp.where(came, cohort.dose / like(n, p.starts), 0.0)
        effect = xp.where(came, outcome.effect, 0.0) / p.noises[0].scale
        harm = xp.where(came, outcome.harm, 0.0) / p.noises[1].scale
        s = state
        bet = a * s.scale
        leads = (xp.arange(len(p.arms), device=device(n)) == s.leading[:, None]) & (cohort.dose <= s.safe)
        led = xp.where(leads, bet, 0.0)
        s = replace(
            s, n=s.n + count, rounds=s.rounds + 1,
            v=s.v + n * a * a, y=s.y + a * effect, z=s.z + a * harm,
            bet_v=s.bet_v + n * bet * bet, bet_y=s.bet_y + bet * effect,
            bet_z=s.bet_z + bet * harm, bet_w=s.bet_w + n * bet * a,
            led_v=s.led_v + n * led * led, led_y=s.led_y + led * effect,
            led_z=s.led_z + led * harm, led_w=s.led_w + n * led * self.reached(p, a),
        )  # fmt: skip
        return self.decide(self.certify(s, came))

    def verdict(self, state: LinearState) -> Verdict:
        """With intervals for values and effects that hold together, for all arms and times, with probability 1 - delta.

        They are a statement of their own: the verdict does not rest on them, nor they on it.
        """
        xp, p, s = array_namespace(state.pulls), state.problem, state
        alpha = p.delta / (4 * len(p.arms))
        sy, sz = (noise.scale for noise in p.noises)
        v, w = xp.where(s.n > 0, s.v, 1.0), xp.where(s.n > 0, s.bet_w, 1.0)
        theta, error = s.bet_y / w, xp.where(s.n > 0, radius(s.bet_v, alpha, CONTRAST) / w, xp.inf)
        reach = like(v, p.largest / p.starts)[:, None]
        guess = xp.maximum(s.y / v, 0.1 / xp.sqrt(v)) / xp.maximum(s.z / v, 0.1 / xp.sqrt(v))
        guess = xp.minimum(guess, sz / p.limit * xp.maximum(s.y / v, 0.1 / xp.sqrt(v)) * reach[:, 0])
        steps = xp.asarray([math.exp(9.0 * (i / 60) ** 3 + 0.6 * i / 60) for i in range(-60, 61)], device=device(v))
        ends = xp.atan(guess[..., None] * steps)
        zero = xp.zeros_like(guess)[..., None]
        left, right = xp.concat([zero, ends], axis=-1), xp.concat([ends, zero + math.pi / 2], axis=-1)
        y, z, w = (x[..., None] for x in (s.bet_y, s.bet_z, s.bet_w))
        info = s.bet_v[..., None] + xp.zeros_like(left)
        goal = math.log(1 / alpha)
        above = log_mixture(over(p, left, right, y, z, w, reach), info, CONTRAST) >= goal
        cone, cap = (log_mixture(x, info, CONTRAST) for x in under(p, left, right, y, z, w, reach))
        either = xp.logaddexp(cone + math.log(1 - CAP), cap + math.log(CAP))
        below = xp.where(xp.isfinite(reach), either, cone) >= goal
        scale = p.limit * sy / sz
        lower = xp.min(xp.where(above, xp.inf, xp.tan(left) * scale), axis=-1)
        upper = xp.max(xp.where(below, -xp.inf, xp.where(right < math.pi / 2, xp.tan(right) * scale, xp.inf)), axis=-1)
        rise = s.safe / like(v, p.starts) * sy
        known = s.n > 0
        if p.levels is not None:  # a certified level's effect is in reach; what lies between levels is not
            lower = xp.where(xp.isinf(like(v, p.levels[:, 0])), lower, rise * (theta - error))
        return replace(
            super().verdict(state),
            lower=xp.where(known, lower, -xp.inf),
            upper=xp.where(known, upper, xp.inf),
            effect_lower=rise * xp.where(known, theta - error, -xp.inf),
            effect_upper=rise * xp.where(known, theta + error, xp.inf),
        )

    def certify(self, s: LinearState, came: Array) -> LinearState:
        """The largest dose that is safe for sure, and one above which none is."""
        xp, p = array_namespace(s.pulls), s.problem
        a0, M, top = like(s.v, p.starts), like(s.v, p.largest), p.limit / p.noises[1].scale
        row, arm = xp.nonzero(came)
        v, z = (xp.take(xp.reshape(x, (-1,)), row * len(p.arms) + arm) for x in (s.v, s.z))
        upper = slope_upper(v, z, SAFETY * p.delta / len(p.arms))
        lower = (z - radius(v * top**2, UNSAFE * p.delta / len(p.arms), ANY) / top) / v
        upper, lower = (scatter(came, x) for x in (upper, lower))
        safe = round_down(p, xp.clip(a0 * top / xp.where(came, upper, 1.0), a0, M))
        unsafe = xp.clip(a0 * top / xp.where(lower > 0, lower, 1e-300), a0, M)
        effect = s.y / xp.where(s.n > 0, s.v, 1.0) * p.noises[0].scale
        return replace(
            s,
            safe=xp.where(came, safe, s.safe),
            unsafe=xp.where(came, unsafe, s.unsafe),
            estimate=xp.where(came, safe / a0 * effect, s.estimate),
            harm_at_start=xp.where(came, lower * p.noises[1].scale, s.harm_at_start),
        )

    def decide(self, s: LinearState) -> LinearState:
        xp, p = array_namespace(s.pulls), s.problem
        arms = xp.arange(len(p.arms), device=device(s.v))
        sy, sz = (noise.scale for noise in p.noises)
        reach = like(s.v, p.largest / p.starts) + xp.zeros_like(s.v)
        live = (s.standing == ACTIVE) & (s.harm_at_start <= p.limit)
        v = xp.where(s.n > 0, s.v, 1e-12)

        # Estimates, kept above 0 by a part of their own noise, and the size of the signal that they make
        floor = 0.5 / xp.sqrt(v)
        theta, mu = xp.maximum(s.y / v, floor), xp.maximum(s.z / v, floor)
        scale = xp.sqrt(2 * theta * mu)
        effect = xp.maximum(s.y / v, 0.01 * floor)
        a0 = like(v, p.starts)
        value = sy * effect * xp.maximum(round_down(p, a0 * xp.minimum(p.limit / (sz * mu), reach)) / a0, 1.0)
        value = xp.where(live, xp.where(s.n > 0, value, -1.0), -2.0)
        leader = xp.argmax(value, axis=1)
        rival = live & (arms != leader[:, None])

        # For every rival the level x at which the evidence is least: between the two values, by their precision
        own = xp.atan(xp.maximum(value, 0.0) * sz / (p.limit * sy))
        c, sn = xp.cos(own), xp.sin(own)
        turn = xp.hypot(theta, mu) if p.signals == "independent" else (theta + mu) / (c + sn) ** 2
        turn = xp.where(p.limit / (sz * mu) <= reach, turn, theta / xp.maximum(c * sn, 1e-9))
        precision = turn**2 * v
        b = [pick(x, leader) for x in (s.y, s.z, v, own, precision, reach, s.safe / like(v, p.starts))]
        mean = (b[4] * b[3] + precision * own) / (b[4] + precision)
        tries = [mean, *(own + (b[3] - own) * part for part in (0.03, 0.15, 0.3, 0.5, 0.7, 0.85, 0.97))]
        phi, evidence = mean, xp.where(rival, xp.inf, xp.inf + 0.0 * v)
        ahead = behind = 0.0 * v
        for angle in tries:
            up = xp.maximum(over(p, angle, angle, b[0], b[1], b[2], b[5]), 0.0) / b[2]
            cone, cap = under(p, angle, angle, s.y, s.z, v, reach)
            down = xp.maximum(xp.maximum(cone, cap), 0.0) / v
            total = 0.5 * (up**2 * b[2] + down**2 * v)
            better = rival & (total < evidence)
            phi, evidence = xp.where(better, angle, phi), xp.where(better, total, evidence)
            ahead, behind = xp.where(better, up, ahead), xp.where(better, down, behind)

        beaten, near = self.judge(s, leader, own, phi, rival, evidence)
        level = xp.tan(phi) * p.limit * sy / sz
        s = conclude(s, s.harm_at_start, leader, beaten, near, level, level)

        # The next cohort: the leader, or the challengers, each for so many pulls
        rival = rival & ~beaten
        evidence = xp.where(rival, evidence, xp.inf)
        n = xp.astype(s.n, xp.float64)
        gain, lead_gain = behind * s.safe / like(v, p.starts), ahead * b[6]
        share = xp.where(rival, xp.minimum((lead_gain / xp.maximum(gain, 1e-9)) ** 2, 1e3), 0.0)
        index = xp.where(rival, evidence + xp.log(xp.maximum(n, 1.0)), xp.inf)
        least = xp.min(index, axis=1, keepdims=True)
        challenger = rival & (index <= least + 0.5)
        few = xp.log(xp.maximum(pick(n, leader), 1.0)) <= least
        turn_of_leader = (xp.sum(share, axis=1, keepdims=True) >= 1) & few
        turn_of_leader = turn_of_leader | (s.found > 0)[:, None]
        chosen = xp.where(turn_of_leader, arms == xp.where(s.found > 0, s.winner, leader)[:, None], challenger)
        size = xp.maximum(xp.ceil(self.growth * n), float(self.cohort))
        size = xp.where(s.n > 0, xp.where(chosen, size, 0.0), float(self.first))
        established = xp.min(evidence, axis=1) >= ESTABLISHED
        return replace(
            s,
            scale=xp.where(s.n > 0, scale, s.scale),
            leading=xp.where(established, leader, -1),
            want=xp.astype(xp.where(wanted(s), xp.where(size < 1e15, size, 1e15), 0.0), xp.int64),
        )

    def judge(self, s: LinearState, leader: Array, own: Array, phi: Array, rival: Array, evidence: Array) -> Any:
        """Which rivals' claims to be best are refuted, and which rivals are within the tolerance of the leader."""
        xp, p, d = array_namespace(s.pulls), s.problem, len(s.problem.arms)
        spare = (1 - SAFETY - UNSAFE) * p.delta
        beaten = near = xp.zeros_like(rival)
        goal = math.log(1 / spare) if p.tolerance is None else math.log(2 / spare)
        hopeful = rival & (evidence >= goal + 2)  # a mixture is always well below the evidence at its best bet
        order = xp.argsort(-s.led_v, axis=1)
        most = max(int(xp.max(xp.sum(xp.astype(s.led_v > 0, xp.int64), axis=1))), 1)
        betting = order[:, :most]
        beaten = self.refuted(s, hopeful, betting, "led_", own, pick(own, leader), phi, 0.0, goal)
        if p.tolerance is not None:
            # Only the named arm itself is known to be worse than the best by more than the tolerance where the claim
            # "arm k is best, and by more than that" holds, so pairs are tested, and d - 1 of them can be wrong.
            goal = math.log(2 * (d - 1) / spare)
            kind = "bet_" if p.levels is None else "led_"
            near = self.refuted(
                s, rival & ~beaten, leader[:, None], kind, own, pick(own, leader), phi, p.tolerance, goal
            )
        return beaten, near

    def refuted(
        self, s: LinearState, which: Array, betting: Array, kind: str, own: Array, lead_own: Array, phi: Array,
        shift: float, goal: float,
    ) -> Array:  # fmt: skip
        """Where the bets against "k's value is at least x + shift, and that of each arm in `betting` at most x" come to
        e^goal for every x. The level at `phi` is tried first; only if it passes, all levels, cell by cell."""
        xp, p, d = array_namespace(s.pulls), s.problem, len(s.problem.arms)
        for stage in range(2):
            row, arm = xp.nonzero(which)
            if row.shape[0] == 0:
                break
            at = row * d + arm

            def of(x: Array, at: Array = at) -> Array:
                return xp.take(xp.reshape(x, (-1,)), at)[:, None]

            k = [of(x) for x in (s.bet_y, s.bet_z, s.bet_w, s.bet_v)]
            lead_arms = xp.take(betting, row, axis=0)
            lead_at = row[:, None] * d + lead_arms
            b = [xp.take(xp.reshape(getattr(s, kind + name), (-1,)), xp.reshape(lead_at, (-1,))) for name in "yzwv"]
            b = [xp.reshape(x, lead_at.shape)[:, None, :] for x in b]
            b[3] = xp.where((lead_arms == arm[:, None])[:, None, :], 0.0, b[3])  # an arm does not bet against itself
            reach = like(s.v, p.largest / p.starts)
            k_reach, b_reach = (
                xp.take(reach, arm)[:, None],
                xp.reshape(xp.take(reach, xp.reshape(lead_arms, (-1,))), lead_at.shape),
            )

            def least(
                low: Array, high: Array, k: Any = k, b: Any = b, k_reach: Array = k_reach, b_reach: Array = b_reach
            ) -> Array:
                ups = over(p, low[..., None], high[..., None], b[0], b[1], b[2], b_reach[:, None, :])
                ups = log_mixture(xp.where(b[3] > 0, ups, 0.0), b[3] + xp.zeros_like(ups), CONTRAST)
                cone, cap = under(p, raised(p, low, shift), raised(p, high, shift), k[0], k[1], k[2], k_reach)
                cone, cap = (log_mixture(x, k[3] + xp.zeros_like(x), CONTRAST) for x in (cone, cap))
                either = xp.logaddexp(cone + math.log(1 - CAP), cap + math.log(CAP))
                return xp.sum(ups, axis=-1) + xp.where(xp.isfinite(k_reach), either, cone)

            if stage == 0:
                passed = least(of(phi), of(phi))[:, 0] >= goal
            else:
                passed = everywhere(least, of(own), xp.take(lead_own, row, axis=0), goal)
            which = which & scatter(which, passed)
        return which


def statistic(p: Problem, phi: Array, y: Array, z: Array) -> Array:
    """Standardised evidence that limit*theta/mu is above the level at phi; the opposite below it."""
    xp = array_namespace(phi)
    c, s = xp.cos(phi), xp.sin(phi)
    return (c * y - s * z) / (1.0 if p.signals == "independent" else c + s)


def turns(p: Problem, low: Array, high: Array, y: Array, z: Array, sign: float) -> Array:
    """Whether sign * statistic falls at `low` and rises at `high`: then its smallest value between is -hypot(y, z).

    For any dependence the statistic is monotone in phi (its derivative is -(y + z) / (cos + sin)^2).
    """
    xp = array_namespace(low)
    slope = [-sign * (xp.sin(phi) * y + xp.cos(phi) * z) for phi in (low, high)]
    return (slope[0] < 0) & (slope[1] > 0) if p.signals == "independent" else slope[0] != slope[0]


def level(p: Problem, phi: Array) -> Array:
    """x / (sigma_effect), with x the level at phi; doses are in units of the start dose."""
    xp = array_namespace(phi)
    return xp.tan(xp.minimum(phi, math.pi / 2)) * p.limit / p.noises[1].scale


def raised(p: Problem, phi: Array, shift: float) -> Array:
    """The angle of the level that is higher by `shift`."""
    xp = array_namespace(phi)
    return (
        xp.atan(xp.tan(xp.minimum(phi, math.pi / 2)) + shift * p.noises[1].scale / (p.limit * p.noises[0].scale))
        if shift
        else phi
    )


def over(p: Problem, low: Array, high: Array, y: Array, z: Array, w: Array, reach: Array) -> Array:
    """The least evidence, over levels between low and high, that a value is above: it takes both branches of it."""
    xp = array_namespace(low)
    cone = statistic(p, low, y, z)
    if low is not high:
        cone = xp.minimum(cone, statistic(p, high, y, z))
        cone = xp.where(turns(p, low, high, y, z, 1.0), -xp.hypot(y, z), cone)
    return xp.minimum(cone, y - w * level(p, high) / reach)


def under(p: Problem, low: Array, high: Array, y: Array, z: Array, w: Array, reach: Array) -> tuple[Array, Array]:
    """The least evidence, over levels between low and high, that a value is below, by each branch of it."""
    xp = array_namespace(low)
    cone = -statistic(p, low, y, z)
    if low is not high:
        cone = xp.minimum(cone, -statistic(p, high, y, z))
        cone = xp.where(turns(p, low, high, y, z, -1.0), -xp.hypot(y, z), cone)
    return cone, w * level(p, low) / reach - y


def everywhere(
    least: Any, low: Array, high: Array, goal: float, cells: int = 20, worst: int = 5, parts: int = 16
) -> Array:
    """Whether `least`, a lower bound over an interval of angles, is at least `goal` on all of [0, pi/2].

    The cells are finest between the two values, and the worst of them are divided once more.
    """
    xp = array_namespace(low)
    steps = xp.asarray([-0.3 + 1.6 * i / (cells - 2) for i in range(cells - 1)], device=device(low))
    ends = xp.clip(low + (high - low) * steps, 0.0, math.pi / 2)
    zero = xp.zeros_like(low)
    left, right = xp.concat([zero, ends], axis=1), xp.concat([ends, zero + math.pi / 2], axis=1)
    bound = least(left, right)
    order = xp.argsort(bound, axis=1)[:, : worst + 1]
    rest = xp.take_along_axis(bound, order[:, worst:], axis=1)[:, 0] >= goal
    left, right = (xp.take_along_axis(x, order[:, :worst], axis=1)[..., None] for x in (left, right))
    cut = xp.asarray([i / parts for i in range(parts + 1)], device=device(low))
    ends = left + (right - left) * cut
    shape = (low.shape[0], worst * parts)
    return rest & xp.all(least(xp.reshape(ends[..., :-1], shape), xp.reshape(ends[..., 1:], shape)) >= goal, axis=1)
