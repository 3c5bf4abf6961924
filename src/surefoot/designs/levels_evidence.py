"""The evidence of Surefoot-Levels: arms with ordered levels, of which nothing is known but that effect and harm never
fall from one to the next. Theorem 3 of docs/guarantees.md.

b is an arm's largest level whose harm is at or below the limit; its value is the effect there. All evidence is of one
kind: sums of readings whose cohort staked them on a bet, and the log wealth of a mixture of such bets (`wager`).

    stake   the bet on a reading at level l                what it speaks against
    calm    harm is below the ceiling, limit + slack       the ceiling is passed at or below l
    low     harm is below the limit                        b < l
    high    harm is above the limit                        b >= l
    below   the effect is below x                          value >= x, for b <= l
    above   the effect is above x                          value <= x, for b >= l

Levels. Level j is certified when the calm wealth of levels j and above is enough: from the first level above the
ceiling on all are above it, so that is one fixed wager and no union over levels is paid. A level may be given when the
one just below it is certified; the first is known to be safe.

Verdict. "Arm k is best" says: at x = value of k, every other arm's value is at most x. For fixed x and b of every arm
the product of wagers (`Terms.rival` of k, `Terms.led` of the others) is one wager against that, in which every pull is
bet once; the claim is refuted when its infimum over all x and all b is enough. It needs no certificate of any level;
where there are some (`safe` and `unsafe`, at a share of delta of their own) they narrow the b that are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arrays import Array, array_namespace, device, like, replace
from ..bounds import Mixture
from ..noise import Unknown, Varying
from ..problem import Problem
from .base import ACTIVE, Cohort, Outcome, State, Verdict, blank
from .compose import Evidence
from .levels_wagers import FAR, NEAR, Terms, infimum, pooled, wager
from .recommend import Estimates, interval, isotonic, normal, standard_error
from .settle import conclude

# Shares of delta: levels calm (an arm each), levels good (an arm each), stops and levels over the limit, the verdict
CALM, GOOD, OVER, VERDICT = 0.1, 0.05, 0.05, 0.8
STAKES = ("calm", "low", "high", "below", "above")
INNER = 14  # cells of x between the effects of rivals and leaders, and how far the others reach on both sides
OUTER = (0.1, 0.3, 0.7, 1.5, 4.0)


@dataclass(frozen=True, kw_only=True)
class LevelsState(State):
    """Sums at every level, (trials, arms, levels): of all readings, and of those staked on each bet."""

    n: Array
    effect: Array
    harm: Array
    count: Array  # (trials, arms, levels, stakes)
    total: Array
    square: Any  # of readings whose spread is told, else None: squared distances from what was expected
    raw: Any  # where a sigma is not known, else None: n, sum, and squared distances from their mean, along a last axis
    calm: Array  # (trials, arms): the highest certified level
    barred: Array  # the lowest level shown to be above the ceiling; inf where none is
    against: Array  # log of the most evidence there was against "this arm is best", once it was enough; else 0
    least: Array  # about how much there is now (with a tolerance: against its being better by more than that)
    x: Array  # and the value at which it is least
    alarm: Array  # whether harm at the first level is shown to be above the limit


class LevelsEvidence(Evidence[LevelsState]):
    """Certified levels, and which claims "this arm is best" are refuted."""

    theorem: ClassVar[str] = "surefoot-levels/2"

    def begin(self, problem: Problem, trials: int, xp: Any) -> LevelsState:
        first = blank(problem, trials, xp)
        assert problem.levels is not None
        zero = xp.zeros((trials, *problem.levels.shape), dtype=xp.float64)
        bets = xp.zeros((*zero.shape, len(STAKES)), dtype=xp.float64)
        none = xp.zeros_like(first["safe"])
        varying, unknown = (any(isinstance(x, kind) for x in problem.noises) for kind in (Varying, Unknown))
        return LevelsState(
            **first, n=zero, effect=zero, harm=zero, count=bets, total=bets, square=bets if varying else None,
            raw=xp.stack([bets] * 3, axis=-1) if unknown else None,
            calm=none, barred=none + xp.inf, least=none, against=none, x=none, alarm=none > 0,
        )  # fmt: skip

    def stakes(self, problem: Problem) -> tuple[str, ...]:
        """A reading is staked on a bet where its number is above 0."""
        return STAKES

    def certified(self, state: LevelsState) -> Array:
        """One level above the highest that is certified, and below what is barred."""
        xp = array_namespace(state.pulls)
        top = xp.minimum(state.calm + 1, like(state.calm, state.problem.largest))
        return xp.maximum(xp.minimum(top, state.barred - 1), xp.zeros_like(top))

    def learn(self, state: LevelsState, cohort: Cohort, outcome: Outcome) -> LevelsState:
        s = self.certify(self.add(state, cohort, outcome))
        return self.judge(replace(s, rounds=s.rounds + 1))

    def add(self, s: LevelsState, cohort: Cohort, outcome: Outcome) -> LevelsState:
        """With these readings in the sums of their levels; a dose that is no level is set aside."""
        xp = array_namespace(s.pulls)
        here = (cohort.dose[..., None] == like(s.safe, s.problem.levels)) & (outcome.n > 0)[..., None]
        n, effect, harm, m, effects, k, harms = (
            xp.where(here, xp.astype(x, xp.float64)[..., None], 0.0)
            for x in (outcome.n, outcome.effect, outcome.harm, *outcome.weighed(0), *outcome.weighed(1))
        )
        staked = xp.astype(cohort.stakes > 0, xp.float64)[:, :, None, :]
        count, total = xp.stack([k, k, k, m, m], axis=-1), xp.stack([harms, harms, harms, effects, effects], axis=-1)
        square = s.square
        if square is not None:  # around the mean so far of their level, which was known before they came
            far, wide = (squared(s.n, x, n, y, xp.where(here, q[..., None], 0.0)) for x, y, q in (
                (s.harm, harm, outcome.squares[1]), (s.effect, effect, outcome.squares[0])))  # fmt: skip
            square = square + xp.stack([far, far, far, wide, wide], axis=-1) * staked
        raw = s.raw
        if raw is not None:
            far, wide = (xp.where(here, q[..., None], 0.0) for q in outcome.squares[::-1])
            new = (xp.stack([b, b, b, a, a], axis=-1) * staked for a, b in ((n, n), (effect, harm), (wide, far)))
            raw = xp.stack(joined(*(raw[..., i] for i in range(3)), *new), axis=-1)
        return replace(
            s, square=square, raw=raw, n=s.n + n, effect=s.effect + effect, harm=s.harm + harm,
            count=s.count + count * staked, total=s.total + total * staked,
        )  # fmt: skip

    def harms(self, s: LevelsState, stake: str, bound: float, prior: Mixture, above: bool) -> Array:
        """Log wealth at every level of the bets that harm is above (or below) a bound."""
        k = STAKES.index(stake)
        n, z, *more = (x[..., k] for x in sums(s, 1))
        return wager(n, z, n * 0.0 + bound, s.problem.noises[1], prior, above, *more)[0]

    def certify(self, s: LevelsState) -> LevelsState:
        """Levels calm and good, in order from below; levels barred and over the limit, in order from above."""
        xp, p, d = array_namespace(s.pulls), s.problem, len(s.problem.arms)
        calm = climb(self.harms(s, "calm", p.ceiling, FAR, above=False), math.log(d / (CALM * p.delta)))
        good = climb(self.harms(s, "low", p.limit, NEAR, above=False), math.log(d / (GOOD * p.delta)))
        barred = descend(self.harms(s, "high", p.ceiling, NEAR, above=True), math.log(d / (OVER * p.delta)))
        over = descend(self.harms(s, "high", p.limit, NEAR, above=True), math.log(d / (OVER * p.delta)))
        last = like(s.safe, p.largest)
        return replace(
            s, calm=xp.maximum(s.calm, xp.minimum(calm, last)), safe=xp.maximum(s.safe, xp.minimum(good, last)),
            barred=xp.minimum(s.barred, barred), unsafe=xp.minimum(s.unsafe, xp.maximum(over - 1, xp.zeros_like(over))),
            alarm=s.alarm | (over < 1),
        )  # fmt: skip

    def terms(self, s: LevelsState) -> Terms:
        xp, p = array_namespace(s.pulls), s.problem
        low, high = (self.harms(s, k, p.limit, NEAR, above=k == "high") for k in ("low", "high"))
        below, above = (STAKES.index(k) for k in ("below", "above"))
        level = like(s.safe, p.levels)
        real = xp.isfinite(level) & (s.n >= 0)
        return Terms(
            p.noises[0], together(from_top, [z[..., below] for z in sums(s, 0)]),
            together(from_first, [z[..., above] for z in sums(s, 0)]),
            xp.cumulative_sum(high, axis=-1) - high, high, from_top(low) - low,
            real & (level <= s.unsafe[..., None]), real & (level >= s.safe[..., None]),
        )  # fmt: skip

    def span(self, s: LevelsState) -> tuple[Array, Array]:
        """The values between which evidence is weak: from the least rival's effect to the most of those that led."""
        xp, unit = array_namespace(s.pulls), s.problem.noises[0].scale
        both = (s.count, s.total) if s.raw is None else (s.raw[..., 0], s.raw[..., 1])
        n, y = (xp.sum(z, axis=2) for z in both)
        mean = y / xp.maximum(n, 1.0)
        low = xp.min(xp.where(n[..., 3] > 0, mean[..., 3], xp.inf), axis=1)
        high = xp.max(xp.where(n[..., 4] > 0, mean[..., 4], -xp.inf), axis=1)
        low, high = xp.where(xp.isfinite(low), low, high - unit), xp.where(xp.isfinite(high), high, low + unit)
        low, high = (xp.where(xp.isfinite(z), z, e) for z, e in ((low, 0.0), (high, unit)))
        least = 2 * unit / xp.sqrt(1.0 + xp.sum(n[..., 3] + n[..., 4], axis=1))
        pad = xp.maximum(0.0 * low, 0.5 * (least - (high - low)))
        return low - pad, high + pad + (s.problem.tolerance or 0.0)

    def edges(self, s: LevelsState) -> Array:
        """The ends of the cells of x, (trials, cells + 1); a binary effect has a mean between 0 and 1."""
        xp, (low, high) = array_namespace(s.pulls), self.span(s)
        at = [-z for z in reversed(OUTER)] + [k / INNER for k in range(INNER + 1)] + [1 + z for z in OUTER]
        if s.problem.noises[0].kind == "bernoulli":
            at = [-1e9, *at[1:-1], 1e9]
        edges = low[:, None] + (high - low)[:, None] * like(low, at)
        return xp.clip(edges, 0.0, 1.0) if s.problem.noises[0].kind == "bernoulli" else edges

    def judge(self, s: LevelsState) -> LevelsState:
        """Who is refuted, who is stopped, and what that leaves."""
        xp, p, d = array_namespace(s.pulls), s.problem, len(s.problem.arms)
        goal, t, none = math.log(1 / (VERDICT * p.delta)), self.terms(s), xp.zeros_like(s.safe)
        live = (s.standing == ACTIVE) & ~s.alarm
        s = replace(s, estimate=value(s))
        s, least = self.weigh(s, t, live, none)
        s = replace(s, against=xp.maximum(s.against, least))

        # The arm to be named: of those not refuted the one with the largest estimate
        out, near = s.against >= goal, xp.zeros_like(live)
        guess = xp.where(live & ~out, xp.maximum(s.estimate, none - 1e300), xp.where(live, -1e301 - s.against, -xp.inf))
        leader = xp.argmax(guess, axis=1)
        if p.tolerance is not None:
            named = xp.arange(d, device=device(none)) == leader[:, None]
            s, least = self.weigh(s, t, live, xp.where(named, p.tolerance, none))
            near = least >= goal
        harm_at_start = xp.where(s.alarm, p.limit + 1e-9 * max(abs(p.limit), p.noises[1].scale), none - xp.inf)
        return conclude(s, harm_at_start, leader, out, near, s.x, s.x)

    def weigh(self, s: LevelsState, t: Terms, live: Array, shift: Array) -> tuple[LevelsState, Array]:
        """Where the evidence against each claim is weak, and a number that it is not below. `shift`: see `against`."""
        goal = math.log(1 / (VERDICT * s.problem.delta))
        bound, about, x = infimum(t, self.edges(s), shift, live, goal)
        return replace(s, least=about, x=x), bound

    def verdict(self, state: LevelsState, verdict: Verdict) -> Verdict:
        """With bounds on values that hold together, for all arms at all times, with probability 1 - delta: by the same
        wagers, at a share of delta for each arm and side. They are a statement of their own, beside the verdict."""
        xp, p, s = array_namespace(state.pulls), state.problem, state
        goal, t, (low, high) = math.log(2 * len(p.arms) / p.delta), self.terms(s).far(1.0), self.span(s)
        wide = high - low
        x = (low - wide)[:, None] + 3 * wide[:, None] * like(low, [k / 120 for k in range(121)])
        x = xp.clip(x, 0.0, 1.0) if p.noises[0].kind == "bernoulli" else x
        u, v = (xp.min(side(x[:, None, :])[0], axis=2) for side in (t.rival, t.led))
        lower = xp.max(xp.where(v >= goal, x[:, None, :], -xp.inf), axis=2)
        upper = xp.min(xp.where(u >= goal, x[:, None, :], xp.inf), axis=2)
        return replace(verdict, lower=lower, upper=upper)

    def against(self, state: LevelsState) -> Array:
        s, none = state, array_namespace(state.pulls).zeros_like(state.safe)
        bound, _, _ = infimum(self.terms(s), self.edges(s), none, ~s.alarm, -math.inf)
        return array_namespace(none).maximum(s.against, bound)

    def seems(self, state: LevelsState) -> Estimates:
        """At the level that seems to be the largest safe one."""
        xp, s, (f, g) = array_namespace(state.pulls), state, means(state)
        level = seems_safe(s, g)
        at = xp.astype(level, xp.int64)[..., None]
        n, y, z, effect, harm = (xp.take_along_axis(x, at, axis=-1)[..., 0] for x in (s.n, s.effect, s.harm, f, g))
        effect = xp.where(xp.isnan(effect), -xp.inf, effect)
        ends = (interval(noise, x, n) for noise, x in zip(s.problem.noises, (y, z), strict=True))
        top = xp.max(xp.where(s.n > 0, levels(s), -1.0), axis=-1)
        climbs = (level == top) & (level < like(s.safe, s.problem.largest))
        return Estimates(level, effect, harm, *ends, values=self.values(s, f, g), climbs=climbs)

    def values(self, s: LevelsState, effect: Array, harm: Array) -> tuple[Array, Array, Array]:
        """What the value of every arm may be: its effect at each level tried, by how likely that is to be its largest
        safe one. No level that was not tried counts, so while arms climb this says too much."""
        xp, p, level = array_namespace(s.pulls), s.problem, levels(s)
        n = xp.maximum(s.n, like(s.safe, 0.3))
        within = normal((p.limit - harm) / standard_error(p.noises[1], harm, n))
        within = xp.where(level == 0, 1.0, xp.where(tried(s), within, 0.0))
        within = xp.stack([xp.min(within[..., : k + 1], axis=-1) for k in range(s.n.shape[-1])], axis=-1)
        after = xp.concat([within[..., 1:], xp.zeros_like(within[..., :1])], axis=-1)
        return within - after, effect, standard_error(p.noises[0], effect, n)


def squared(n: Array, total: Array, more: Array, sum_: Array, squares: Array) -> Array:
    """Of `more` readings: squared distances from the mean of the n before them, a half where there is none."""
    xp = array_namespace(n)
    centre = (total + 0.5) / (n + 1)
    return squares + more * (sum_ / xp.maximum(more, like(n, 1.0)) - centre) ** 2


def joined(n: Array, total: Array, q: Array, m: Array, other: Array, p: Array) -> tuple[Array, Array, Array]:
    """Numbers, sums and squared distances from the mean, of two sets of readings taken together."""
    xp = array_namespace(n)
    one = xp.ones_like(n)
    apart = total / xp.maximum(n, one) - other / xp.maximum(m, one)
    return n + m, total + other, q + p + n * m / xp.maximum(n + m, one) * apart**2


def sums(s: LevelsState, r: int) -> tuple[Array, ...]:
    """What `wager` takes of effects (r = 0) or harms, by level and stake. Bets that are not monotone in x do not go
    with a tolerance."""
    if isinstance(s.problem.noises[r], Varying):
        return s.count, s.total, s.square
    if isinstance(s.problem.noises[r], Unknown) and (r or s.problem.tolerance is None):
        return s.count, s.total, *(s.raw[..., i] for i in range(3))
    return s.count, s.total


def together(way: Callable[[Array], Array], sums: Sequence[Array]) -> tuple[Array, ...]:
    """The same of levels together."""
    return *map(way, sums[: 3 if len(sums) == 3 else 2]), *(pooled(way, *sums[2:]) if len(sums) == 5 else ())


def from_first(x: Array) -> Array:
    """Sums over levels from the first to each one."""
    return array_namespace(x).cumulative_sum(x, axis=-1)


def from_top(x: Array) -> Array:
    """Sums over levels from each one to the last."""
    xp = array_namespace(x)
    return xp.flip(xp.cumulative_sum(xp.flip(x, axis=-1), axis=-1), axis=-1)


def climb(wealth: Array, goal: float) -> Array:
    """The highest level up to which all of them, from the second on, have `goal` at and above them."""
    xp = array_namespace(wealth)
    passed = xp.astype(from_top(wealth) >= goal, xp.float64)[..., 1:]
    return xp.sum(xp.cumulative_prod(passed, axis=-1), axis=-1)


def descend(wealth: Array, goal: float) -> Array:
    """The lowest level from which on all have `goal` at and below them; inf where there is none."""
    xp, L = array_namespace(wealth), wealth.shape[-1]
    passed = xp.flip(xp.astype(xp.cumulative_sum(wealth, axis=-1) >= goal, xp.float64), axis=-1)
    many = xp.sum(xp.cumulative_prod(passed, axis=-1), axis=-1)
    return xp.where(many > 0, L - many, xp.inf)


def means(s: LevelsState) -> tuple[Array, Array]:
    """Estimates of effect and harm at every level that never fall."""
    return isotonic(s.effect, s.n), isotonic(s.harm, s.n)


def seems_safe(s: LevelsState, harm: Array) -> Array:
    """The highest level tried whose estimated harm is at or below the limit; the first if there is none."""
    xp = array_namespace(s.pulls)
    return xp.max(xp.where(tried(s) & (harm <= s.problem.limit), levels(s), 0.0), axis=-1)


def levels(s: LevelsState) -> Array:
    return like(s.safe, [float(k) for k in range(s.n.shape[-1])])


def tried(s: LevelsState) -> Array:
    """Levels up to the highest that was tried."""
    xp, level = array_namespace(s.pulls), levels(s)
    return level <= xp.max(xp.where(s.n > 0, level, 0.0), axis=-1, keepdims=True)


def value(s: LevelsState) -> Array:
    """The estimated effect at the level that seems to be the largest safe one; -inf before the first reading."""
    xp = array_namespace(s.pulls)
    effect, harm = means(s)
    at = xp.astype(seems_safe(s, harm), xp.int64)
    found = xp.take_along_axis(effect, at[..., None], axis=-1)[..., 0]
    return xp.where(xp.isnan(found), -xp.inf, found)
