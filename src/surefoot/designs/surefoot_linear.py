"""Surefoot-Linear: the guarantee of SafeBAI-Linear with all data pooled. Theorem 1 of docs/guarantees.md.

Every pull ever made counts, weighted by its information: an arm's data are the sums v = sum a^2, y = sum a*effect,
z = sum a*harm (doses in units of the start dose, readings in units of their sigma).

Dose. Every pull is at the largest certified dose: limit over an upper confidence sequence for the slope of the harm.
Binary harms have a sequence of their own, from their number and the sum of the doses.

Verdict. "Arm k is best" is tested for every k. If it is true then, at the level x that is k's value, k's value is at
least x and every other's at most x. Against the first, bet with all pulls of k; against the second, bet with the pulls
of whatever arm was leading when it was pulled. The product of these bets is a supermartingale at that x, so its
infimum over all x reaches 1/delta' with probability at most delta'. Only one of the claims is true, so there is no
union over arms or pairs to pay for. Whether an arm is leading is decided before it is pulled, so it is predictable.

Value. A level is t = x sigma_harm / (limit sigma_effect), or u = t / (1 + t), from 0 to 1. The reading
(1 - u) effect - u harm has mean above 0 where limit*theta/mu > x: a line, not a box, and its noise has sigma
hypot(1 - u, u) if the readings are independent, at most 1 whatever their dependence. With a largest dose M the value is
min(limit*theta/mu, M*theta): a leader must show both, a rival may show either (a mixture). With dose levels it is
theta times the largest safe level: that is at least the certified one and at most the last not shown to be unsafe.

Which arm. The challenger is the rival with the least evidence against it (plus the log of its pulls); leader or
challenger (or both) by whether the leader's share of the evidence, summed over rivals, is above 1: the condition that
the best allocation fulfils (Bandyopadhyay, Juneja and Agrawal 2024, for classical arms).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick, scatter
from ..bounds import ANY, CONTRAST, log_mixture, radius, rate_lower, rate_upper, slope_upper
from ..problem import Problem, Shape, number
from .base import ACTIVE, Cohort, Design, Outcome, State, Verdict, blank
from .settle import conclude, round_down, wanted

SAFETY, UNSAFE = 0.3, 0.05  # shares of delta: for the doses, for "unsafe at the start" and the largest safe dose
CAP = 0.2  # share of a rival's bet that is on the branch M*theta of its value
ESTABLISHED = 0.5  # nats by which a leader must be ahead before its pulls are bet on
TINY = 1e-16  # of 1 - u: what lies beyond is taken as there
BLOCK = 20_000  # how many cells are looked at together, so that memory is bounded


@dataclass(frozen=True, kw_only=True)
class LinearState(State):
    """Sums over the pulls of an arm: of information (v, y, z), of bets (the same with weight a * scale, and w = sum a *
    weight) against an arm's claim, and those among them that were made while the arm was leading (led_)."""

    n: Array
    given: Array  # sum of the doses
    harms: Array  # sum of the harms, as they came
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
class SurefootLinear(Design[LinearState]):
    """The paper's guarantee for lines through 0 with all data pooled: ten and more times fewer pulls.

    growth: an arm's next cohort is this share of its pulls and 20 more; cohort: and at least so many. growth=0 and
    cohort=3 is fixed cohorts of three, growth=0 and cohort=1 is after every pull. first: pulls of every arm at first.
    """

    growth: float = 0.1
    cohort: int = 1
    first: int = 5

    name: ClassVar[str] = "surefoot-linear"
    shape: ClassVar[Shape] = "linear"

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
            **first, **dict.fromkeys(("given", "harms", "v", "y", "z", *names), zero), n=none, want=none + self.first,
            scale=zero + min(0.3 * problem.limit / sigmas(problem)[1], 0.5),
            leading=xp.zeros_like(first["pulls"]) - 1, harm_at_start=zero - xp.inf,
        )  # fmt: skip

    def plan(self, state: LinearState, u: Array) -> Cohort:
        return Cohort(state.safe, state.want)

    def learn(self, state: LinearState, cohort: Cohort, outcome: Outcome) -> LinearState:
        xp, p = array_namespace(state.pulls), state.problem
        # beyond the largest dose nothing is known: a binary harm, for one, cannot go on rising
        came = (outcome.n > 0) & (cohort.dose != 0) & (cohort.dose <= like(state.v, p.largest))
        count = xp.where(came, outcome.n, 0)
        n = xp.astype(count, xp.float64)
        a = xp.where(came, cohort.dose / like(n, p.starts), 0.0)
        sy, sz = sigmas(p)
        harms = xp.where(came, outcome.harm, 0.0)
        effect, harm = xp.where(came, outcome.effect, 0.0) / sy, harms / sz
        s = state
        bet = xp.where(cohort.dose <= s.safe, a * s.scale, 0.0)
        leads = xp.arange(len(p.arms), device=device(n)) == s.leading[:, None]
        led = xp.where(leads, bet, 0.0)
        s = replace(
            s, n=s.n + count, rounds=s.rounds + 1, given=s.given + n * a, harms=s.harms + harms,
            v=s.v + n * a * a, y=s.y + a * effect, z=s.z + a * harm,
            bet_v=s.bet_v + n * bet * bet, bet_y=s.bet_y + bet * effect,
            bet_z=s.bet_z + bet * harm, bet_w=s.bet_w + n * bet * a,
            led_v=s.led_v + n * led * led, led_y=s.led_y + led * effect,
            led_z=s.led_z + led * harm, led_w=s.led_w + n * led * a,
        )  # fmt: skip
        return self.decide(self.certify(s, came))

    def verdict(self, state: LinearState) -> Verdict:
        """With intervals for values and effects that hold together, for all arms and times, with probability 1 - delta.

        They are a statement of their own: the verdict does not rest on them, nor they on it.
        """
        xp, p, s = array_namespace(state.pulls), state.problem, state
        alpha = p.delta / (4 * len(p.arms))
        sy, sz = sigmas(p)
        known = s.bet_w > 0
        v, w = xp.where(s.n > 0, s.v, 1.0), xp.where(known, s.bet_w, 1.0)
        theta, error = s.bet_y / w, xp.where(known, radius(s.bet_v, alpha, CONTRAST) / w, xp.inf)
        reach = [x[..., None] for x in self.reach(s)]
        guess = xp.maximum(s.y / v, 0.1 / xp.sqrt(v)) / xp.maximum(s.z / v, 0.1 / xp.sqrt(v))
        guess = xp.minimum(guess, sz / p.limit * xp.maximum(s.y / v, 0.1 / xp.sqrt(v)) * reach[1][..., 0])
        steps = xp.asarray([math.exp(9.0 * (i / 60) ** 3 + 0.6 * i / 60) for i in range(-60, 61)], device=device(v))
        ends = guess[..., None] * steps
        zero = xp.zeros_like(guess)[..., None]
        left, right = xp.concat([zero, ends], axis=-1), xp.concat([ends, zero + 1.0 / TINY], axis=-1)
        levels = [p.limit * sy / sz * x for x in (left, right)]
        left, right = left / (1 + left), right / (1 + right)
        y, z, w = (x[..., None] for x in (s.bet_y, s.bet_z, s.bet_w))
        info = s.bet_v[..., None] + xp.zeros_like(left)
        goal = math.log(1 / alpha)
        above = log_mixture(over(p, left, right, y, z, w, reach[0], stepped(p, v)[:, None]), info, CONTRAST) >= goal
        below = either(under(p, left, right, y, z, w, reach[1]), info, reach[1]) >= goal
        lower = xp.min(xp.where(above, xp.inf, levels[0]), axis=-1)
        upper = xp.max(xp.where(below, -xp.inf, xp.where(right < 1, levels[1], xp.inf)), axis=-1)
        rise = s.safe / like(v, p.starts) * sy
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
        a0, M, (sy, sz) = like(s.v, p.starts), like(s.v, p.largest), sigmas(p)
        top = p.limit / sz
        row, arm = xp.nonzero(came)
        sums = (xp.astype(s.n, xp.float64), s.given, s.harms, s.v, s.z)
        n, given, harms, v, z = (xp.take(xp.reshape(x, (-1,)), row * len(p.arms) + arm) for x in sums)
        risks = [share * p.delta / len(p.arms) for share in (SAFETY, UNSAFE)]
        if p.noises[1].binary:
            upper, lower = rate_upper(n, given, harms, risks[0], 2), rate_lower(n, given, harms, risks[1], 2)
            upper, lower = upper / sz, lower / sz
        else:
            upper, lower = slope_upper(v, z, risks[0], 2), (z - radius(v * top**2, risks[1], ANY, 1) / top) / v
        upper, lower = scatter(came, upper), scatter(came, lower)
        safe = round_down(p, xp.clip(a0 * top / xp.where(came, upper, 1.0), a0, M))
        unsafe = round_down(p, xp.clip(a0 * top / xp.where(lower > 0, lower, 1e-300), a0, M))
        effect = s.y / xp.where(s.n > 0, s.v, 1.0) * sy
        return replace(
            s,
            safe=xp.where(came, safe, s.safe),
            unsafe=xp.where(came, unsafe, s.unsafe),
            estimate=xp.where(came, safe / a0 * effect, s.estimate),
            harm_at_start=xp.where(came, lower * sz, s.harm_at_start),
        )

    def decide(self, s: LinearState) -> LinearState:
        xp, p = array_namespace(s.pulls), s.problem
        arms = xp.arange(len(p.arms), device=device(s.v))
        a0, reach = like(s.v, p.starts), like(s.v, p.largest / p.starts)
        sy, sz = sigmas(p)
        top = p.limit / sz
        live = (s.standing == ACTIVE) & (s.harm_at_start <= p.limit)
        n, seen = xp.astype(s.n, xp.float64), s.n > 0
        v = xp.where(seen, s.v, 1e-12)

        # Estimates, kept above 0 by a part of their own noise; values as t = x sigma_harm / (limit sigma_effect)
        floor = 0.5 / xp.sqrt(v)
        theta, mu = xp.maximum(s.y / v, 0.01 * floor), xp.maximum(s.z / v, floor)
        dose = xp.maximum(round_down(p, a0 * xp.minimum(top / mu, reach)) / a0, 1.0)
        reach = xp.where(stepped(p, v), dose, reach)
        value = theta / top * dose
        leader = xp.argmax(xp.where(live, xp.where(seen, value, -1.0), -2.0), axis=1)
        lead = pick(value, leader)
        rival = live & (arms != leader[:, None])

        y, z, info, far = ((x, pick(x, leader)) for x in (s.y, s.z, v, reach))
        t, ahead, behind = weakest(p, y, z, info, far, xp.where(seen, value, 0.0), lead)
        evidence = xp.where(rival, 0.5 * (ahead**2 * info[1] + behind**2 * v), xp.inf)
        beaten, near = self.judge(s, leader, value, t, rival, evidence)
        level = t * top * sy
        s = conclude(s, s.harm_at_start, leader, beaten, near, level, level)

        # The next cohort: the challengers, the leader, or both where the evidence is nearly in balance
        rival = rival & ~beaten
        evidence = xp.where(rival, evidence, xp.inf)
        index = evidence + xp.log(xp.maximum(n, 1.0))
        least = xp.min(index, axis=1, keepdims=True)
        gain, lead_gain = behind * s.safe / a0, ahead * pick(s.safe / a0, leader)
        share = xp.where(rival, xp.minimum((lead_gain / xp.maximum(gain, 1e-9)) ** 2, 1e3), 0.0)
        share = xp.sum(share, axis=1, keepdims=True)
        few = xp.log(xp.maximum(pick(n, leader), 1.0)) <= least
        turn = xp.where(arms == leader[:, None], (share >= 0.5) & few, (share <= 2.0) | ~few)
        chosen = turn & (~rival | (index <= least + 1.0))
        chosen = xp.where((s.found > 0)[:, None], arms == s.winner[:, None], chosen)
        size = xp.maximum(xp.ceil(self.growth * (n + 20)), float(self.cohort))
        size = xp.where(seen, xp.where(chosen, size, 0.0), float(self.first))
        # What an arm at 0 would have to show at the leader's level: its evidence is the share that it is short of that.
        # It is more on the cap, but too large a unit leaves small differences out of reach; too small costs little.
        norm = xp.sqrt(1 + lead**2) if p.signals == "independent" else 1 + lead
        scale = lead / norm * xp.maximum(mu, top / reach)
        return replace(
            s,
            scale=xp.where(seen, scale, s.scale),
            leading=xp.where(xp.min(evidence, axis=1) >= ESTABLISHED, leader, -1),
            want=xp.astype(xp.where(wanted(s), xp.where(size < 1e15, size, 1e15), 0.0), xp.int64),
        )

    def judge(self, s: LinearState, leader: Array, value: Array, t: Array, rival: Array, evidence: Array) -> Any:
        """Which rivals' claims to be best are refuted, and which rivals are within the tolerance of the leader."""
        xp, p, d, (sy, sz) = array_namespace(s.pulls), s.problem, len(s.problem.arms), sigmas(s.problem)
        spare = (1 - SAFETY - UNSAFE) * p.delta
        goal = math.log(1 / spare) if p.tolerance is None else math.log(2 / spare)
        hopeful = rival & (evidence >= goal + 2.5)  # a mixture is always well below the evidence at its best bet
        beaten = near = xp.zeros_like(rival)
        led = xp.sum(xp.astype(s.led_v > 0, xp.int64), axis=1, keepdims=True)
        order = xp.argsort(-s.led_v, axis=1)
        for most in {1, int(xp.max(led))}:  # nearly always only one arm has led so far
            which = hopeful & ((led <= 1) if most == 1 else (led > 1))
            beaten = beaten | self.refuted(s, which, order[:, :most], "led_", value, t, pick(value, leader), 0.0, goal)
        if p.tolerance is not None:
            # Only the named arm itself is known to be worse than the best by more than the tolerance where the claim
            # "arm k is best, and by more than that" holds, so pairs are tested, and d - 1 of them can be wrong.
            goal = math.log(2 * (d - 1) / spare)
            shift = p.tolerance * sz / (p.limit * sy)
            low, high = xp.maximum(value - shift, 0.0), pick(value, leader)
            near = self.refuted(s, rival & ~beaten, leader[:, None], "bet_", low, 0.5 * (low + high), high, shift, goal)
        return beaten, near

    def refuted(
        self, s: LinearState, which: Array, betting: Array, kind: str, low: Array, t: Array, high: Array,
        shift: float, goal: float,
    ) -> Array:  # fmt: skip
        """Where the bets against "k's value is at least t + shift, and that of each arm in `betting` at most t" come to
        e^goal for every t. One level is tried first, then some around it; only if these pass, all levels, cell by cell.
        """
        xp, d = array_namespace(s.pulls), len(s.problem.arms)
        low, u, high = (x / (1 + x) + 0.0 * low for x in (low, t, high))
        for stage, many in enumerate((0, 5, 22)):
            row, arm = xp.nonzero(which)
            at, block, parts = row * d + arm, BLOCK // (2 * many + 1), []
            for i in range(0, row.shape[0], block):
                here = slice(i, min(i + block, row.shape[0]))
                l, m, h = (xp.take(xp.reshape(x, (-1,)), at[here])[:, None] for x in (low, u, high))
                ends = cells(l, m, h, many) if many else m
                left, right = (ends, ends) if stage < 2 else (ends[:, :-1], ends[:, 1:])
                bets = xp.take(betting, row[here], axis=0)
                total = self.wealth(s, row[here], arm[here], bets, kind, left, right, shift)
                weakest = pick(ends, xp.argmin(total, axis=1))
                parts.append(xp.concat([xp.min(total, axis=1, keepdims=True), weakest], axis=1))
            if not parts:
                break
            found = xp.concat(parts, axis=0)
            u = scatter(which, found[:, 1])
            which = which & scatter(which, found[:, 0] >= goal)
        return which

    def reach(self, s: LinearState) -> tuple[Array, Array]:
        """Doses by which theta times them bounds an arm's value, from below (needed with levels only) and from above.

        With levels the value is theta * a*, and a* is between the certified level and the last that may be safe.
        """
        xp, p = array_namespace(s.pulls), s.problem
        a0, far = like(s.v, p.starts), like(s.v, p.largest / p.starts)
        return tuple(xp.where(stepped(p, s.v), x / a0, far) for x in (s.safe, s.unsafe))

    def wealth(
        self, s: LinearState, row: Array, arm: Array, betting: Array, kind: str, low: Array, high: Array, shift: float
    ) -> Array:
        """The least log of wealth from the bets against arm k's claim, over levels from low to high."""
        xp, p, d = array_namespace(s.pulls), s.problem, len(s.problem.arms)

        def of(x: Array, at: Array) -> Array:
            return xp.reshape(xp.take(xp.reshape(x, (-1,)), xp.reshape(at, (-1,))), (*at.shape, 1))

        certain, possible = self.reach(s)
        at = row[:, None] * d + betting
        y, z, w, v = (of(getattr(s, kind + name), at) for name in "yzwv")
        v = xp.where((betting == arm[:, None])[..., None], 0.0, v)  # an arm does not bet against itself
        ups = over(p, low[:, None, :], high[:, None, :], y, z, w, of(certain, at), of(stepped(p, s.v), betting))
        ups = log_mixture(xp.where(v > 0, ups, 0.0), v, CONTRAST)
        at = row * d + arm
        y, z, w, v = (of(getattr(s, f"bet_{name}"), at) for name in "yzwv")
        far = of(possible, at)
        pair = under(p, raised(low, shift), raised(high, shift), y, z, w, far)
        return xp.sum(ups, axis=1) + either(pair, v, far)


def sigmas(p: Problem) -> tuple[float, float]:
    """Of effect and harm. All bets are on pulls at certified doses: there a binary harm has a mean of at most the
    limit, and below 1/2 its sigma increases with the mean (Kearns and Saul 1998)."""
    effect, harm = p.noises
    if not harm.binary or p.limit >= 0.499:
        return effect.scale, harm.scale
    return effect.scale, math.sqrt((1 - 2 * p.limit) / (2 * math.log((1 - p.limit) / p.limit)))


def weakest(p: Problem, y: Any, z: Any, v: Any, reach: Any, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Where between the values `low` of a rival and `high` of the leader the evidence against the rival is nearly
    least, and by how much for each unit of dose the leader is ahead of it there, and the rival behind.

    y, z, v, reach: of rival and leader. With branches fixed the evidence is (A - 2Bt + Ct^2) / norm(t)^2 / 2 for cones,
    least at a root of a quadratic; caps are weighted to the same form. Two steps come close from anywhere.
    """
    xp = array_namespace(low)
    independent, top = p.signals == "independent", p.limit / sigmas(p)[1]
    capped = [x * (top / far) for x, far in zip(v, reach, strict=True)]
    t = 0.5 * (low + high)
    found = t, t, t, xp.inf + t
    for _ in range(3):
        norm = 1 + t**2 if independent else (1 + t) ** 2
        root = xp.sqrt(norm)
        down, up = (t * z[0] - y[0]) / root, (y[1] - t * z[1]) / root
        down_cap, up_cap = t * capped[0] - y[0], y[1] - t * capped[1]
        use = down_cap > down, up_cap < up
        down = xp.maximum(xp.where(use[0], down_cap, down), 0.0) / v[0]
        up = xp.maximum(xp.where(use[1], up_cap, up), 0.0) / v[1]
        total = down**2 * v[0] + up**2 * v[1]
        now = t, up, down, total
        found = tuple(xp.where(total < found[3], new, old) for new, old in zip(now, found, strict=True))
        (k, m), (a, b) = ((xp.where(use[i], norm, 1.0) / v[i], xp.where(use[i], capped[i], z[i])) for i in (0, 1))
        A, B, C = k * y[0] ** 2 + a * y[1] ** 2, k * y[0] * m + a * y[1] * b, k * m**2 + a * b**2
        above, below = (B, xp.hypot(0.5 * (C - A), B) + 0.5 * (C - A)) if independent else (A + B, B + C)
        t = xp.clip(above / xp.where(below > 0, below, 1e-300), low, high)
    return found[:3]


def statistic(p: Problem, u: Array, y: Array, z: Array) -> Array:
    """Standardised evidence that limit*theta/mu is above the level at u; the opposite below it."""
    xp = array_namespace(u)
    total = (1 - u) * y - u * z
    return total / xp.hypot(1 - u, u) if p.signals == "independent" else total


def cone(p: Problem, low: Array, high: Array, y: Array, z: Array) -> Array:
    """The least statistic over levels between low and high: at one of them, but of independent readings -hypot(y, z)
    where it falls at `low` and rises at `high`."""
    xp = array_namespace(low)
    if low is high:
        return statistic(p, low, y, z)
    ends = xp.minimum(statistic(p, low, y, z), statistic(p, high, y, z))
    turns = (low * y + (1 - low) * z > 0) & (high * y + (1 - high) * z < 0)
    return xp.where(turns, -xp.hypot(y, z), ends) if p.signals == "independent" else ends


def level(p: Problem, u: Array) -> Array:
    """x / (sigma_effect), with x the level at u; doses are in units of the start dose."""
    xp = array_namespace(u)
    return u / xp.maximum(1 - u, TINY) * (p.limit / sigmas(p)[1])


def raised(u: Array, shift: float) -> Array:
    """The u of the level that is higher by `shift`."""
    rise = shift * (1 - u)
    return (u + rise) / (1 + rise) if shift else u


def stepped(p: Problem, x: Array) -> Array:
    """Which arms have levels, in the namespace of `x`."""
    return like(x, [arm.levels is not None for arm in p.arms])


def over(p: Problem, low: Array, high: Array, y: Array, z: Array, w: Array, reach: Array, capped: Any = False) -> Array:
    """The least evidence, over levels between low and high, that a value is above: it takes both branches of it, but
    for arms whose value is `capped`, theta * reach, whatever their harm."""
    xp = array_namespace(low)
    line, cap = cone(p, low, high, y, z), y - w * level(p, high) / reach
    return xp.where(capped | (cap < line), cap, line)


def under(p: Problem, low: Array, high: Array, y: Array, z: Array, w: Array, reach: Array) -> tuple[Array, Array]:
    """The least evidence, over levels between low and high, that a value is below, by each branch of it."""
    return cone(p, low, high, -y, -z), w * level(p, low) / reach - y


def either(branches: tuple[Array, Array], v: Array, reach: Array) -> Array:
    """The log of the wealth from bets on both branches, or on the first alone where there is no largest dose."""
    xp = array_namespace(v)
    line, cap = (log_mixture(x, v, CONTRAST) for x in branches)
    return xp.where(xp.isfinite(reach), xp.logaddexp(line + math.log(1 - CAP), cap + math.log(CAP)), line)


def cells(low: Array, u: Array, high: Array, many: int) -> Array:
    """The ends of cells that cover [0, 1], finest at u, where the evidence is nearly least.

    A cell's bound is short by its width times a slope. The evidence grows with the square of the distance from u, so
    cells that do so too are all as good as the first.
    """
    xp = array_namespace(u)
    unit = xp.minimum(xp.abs(u - low), xp.abs(high - u)) + 0.15 * xp.abs(high - low)
    steps = [0.12 * math.tan(math.pi / 2 * i / (many + 1)) for i in range(1, many + 1)] + [3.0, 6.0, math.inf]
    ends = [-x for x in reversed(steps)] + [0.0] + steps
    return xp.clip(u + (unit + TINY) * xp.asarray(ends, device=device(u)), 0.0, 1.0)
