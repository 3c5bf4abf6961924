"""What is chosen in Surefoot-Monotonic: doses, numbers of pulls, stakes. No proof rests on anything here.

An arm has two places: a high one, where it is pulled as a rival, and a low one, where it is pulled as the leader. What
was read there lately, pulls at other doses fading, and the line through the two say what its harm and effect are about
there, at which dose its harm reaches the limit, and what its value is. The leader has the largest.

Dose. To refute that a rival is the best, both must be shown: that a dose is over the limit, and that the effect there
is below the leader's value. The one gets easier as the dose rises, the other harder, so a rival's high place is where
both are equally easy, as far as it can be reached. The leader's low place: under the limit and above the rival's value.
"""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick, put, rows
from ..problem import Problem, number
from .base import Cohort, Outcome
from .compose import Policy
from .monotonic_evidence import MonotonicState, down, up
from .settle import round_down, wanted

ENOUGH = 0.3  # of the slack: no higher above the limit. What climbing costs grows with the cube of what is left of the
# slack, what it saves with the square of what is gone
RISE = 0.4  # of its Lipschitz constant: how fast harm is expected to rise before the pulls say how fast
BEND, NEAR, ODD = 0.2, 1.0, 12.0
DOSES, TOGETHER = 24, 0.1  # so many doses are remembered apart, and only if harm may differ by this part of the slack
LEVELS = [-0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.1]  # where between two effects the evidence is looked at
LEAST = 0.02  # a cohort is at least this part of what it would be if all pulls of the arm were near
HIGH, LOW, CROSS = 0, 1, 2


@dataclass(frozen=True)
class Guess:
    """What is estimated at the places, (trials, arms, 3): high, low, and where harm was thought to reach the limit."""

    harm: Array
    effect: Array
    harm_error: Array
    effect_error: Array
    rise: Array  # slope of the harm
    gain: Array  # slope of the effect
    count: Array  # pulls near
    crossing: Array  # (trials, arms): the dose where harm reaches the limit, at most the largest
    value: Array  # the effect there


@dataclass(frozen=True)
class Memory:
    """All pulls of every arm by dose, those at nearly the same dose together; the places; what follows from both."""

    known: Array  # (trials, arms, DOSES, 4): how many, and sums of their doses, effects and harms
    place: Array  # (trials, arms, 3)
    guess: Guess


@dataclass(frozen=True)
class MonotonicPolicy(Policy[MonotonicState]):
    """growth: an arm is pulled for this share of its pulls near its dose before the next decision; cohort: and at least
    so often. growth=0 and cohort=3 is fixed cohorts of three. first: pulls of every arm to begin with."""

    growth: float = 0.07
    cohort: int = 1
    first: int = 10

    def __post_init__(self) -> None:
        number("growth", self.growth, least=0)
        number("cohort", self.cohort, least=1)
        number("first", self.first, least=1)

    def begin(self, state: MonotonicState) -> Memory:
        xp = array_namespace(state.base)
        known = xp.zeros((*state.base.shape, DOSES, 4), dtype=xp.float64, device=device(state.base))
        place = xp.stack([state.base] * 3, axis=-1)
        return Memory(known, place, guess(state.problem, known, place))

    def remember(self, state: MonotonicState, cohort: Cohort, outcome: Outcome) -> Memory:
        xp, m, p = array_namespace(state.base), state.memory, state.problem
        came, a = outcome.n > 0, cohort.dose
        leads = cohort.stakes[..., -1] > 0
        high, low = xp.where(came & ~leads, a, m.place[..., HIGH]), xp.where(came & leads, a, m.place[..., LOW])
        place = xp.stack([high, low, m.guess.crossing], axis=-1)
        n = m.known[..., 0]
        off = xp.where(n > 0, xp.abs(m.known[..., 1] / xp.where(n > 0, n, 1.0) - a[..., None]), xp.inf)
        near = xp.argmin(off, axis=-1)
        close = xp.min(off, axis=-1) <= TOGETHER * (p.ceiling - p.limit) / like(a, p.lipschitz)
        spare = xp.argmin(
            xp.where(n > 0, n / xp.maximum(off, 1e-150) ** 2, -1.0), axis=-1
        )  # empty, or the least telling
        count = xp.arange(DOSES, device=device(a))
        here, fresh = (came[..., None] & (count == xp.where(close, near, spare)[..., None]), (came & ~close)[..., None])
        n = xp.astype(outcome.n, xp.float64)
        new = xp.stack([n, n * a, outcome.effect, outcome.harm], axis=-1)[..., None, :]
        known = xp.where((here & fresh)[..., None], 0.0, m.known) + xp.where(here[..., None], new, 0.0)
        return Memory(known, place, guess(p, known, place))

    def choose(self, state: MonotonicState, u: Array) -> Cohort:
        xp, p, s = array_namespace(state.base), state.problem, state
        g = s.memory.guess
        live, seen, leader = wanted(s), s.n > 0, self.leader(s, g)
        is_leader = xp.arange(len(p.arms), device=device(leader)) == leader[:, None]
        rival = live & ~is_leader
        best = pick(g.value, leader)
        other = xp.max(xp.where(rival, g.value, -xp.inf), axis=1, keepdims=True)
        far = p.tolerance or 0.0  # a rival's value has to be below x + tolerance, and the leader's above x
        x = 0.5 * (best + xp.where(is_leader, xp.where(xp.isfinite(other), other, best), g.value) - far)
        target = xp.where(is_leader, self.under(s, g, x), self.over(s, g, x + far))
        dose = round_down(p, xp.clip(target, like(x, p.starts), s.base))
        climbs = rival & (target > s.base)
        new = ~climbs & (dose != xp.where(is_leader, s.memory.place[..., LOW], s.memory.place[..., HIGH]))
        share = self.share(s, g, leader, rival & ~climbs & ~new)
        few = 5 * pick(s.n, leader) < xp.max(xp.where(rival, s.n, 0), axis=1, keepdims=True)
        chosen = xp.where(is_leader, (share >= 0.5) | few, climbs | new | (share <= 2.0))
        count = xp.where(is_leader, g.count[..., LOW], g.count[..., HIGH])
        size = xp.ceil(self.growth * xp.maximum(count, LEAST * xp.astype(s.n, x.dtype)))
        # a first look at a new place is worth some pulls
        margin = xp.minimum(
            *(
                xp.where(is_leader, a, b)
                for a, b in zip(self.margins(s, g, x, LOW), self.margins(s, g, x + far, HIGH), strict=True)
            )
        )
        look = xp.minimum(0.5 / xp.maximum(margin, 1e-9) ** 2, self.growth * xp.astype(s.n, x.dtype))
        size = xp.maximum(xp.maximum(size, xp.where(new, xp.ceil(look), 0.0)), float(self.cohort))
        chosen = chosen & live
        chosen = chosen & (size <= 4 * xp.min(xp.where(chosen, size, xp.inf), axis=1, keepdims=True))
        size = xp.where(seen, xp.where(chosen, size, 0.0), xp.where(live, float(self.first), 0.0))
        return Cohort(xp.where(seen, dose, s.base), xp.astype(xp.where(size < 1e15, size, 1e15), xp.int64))

    def share(self, s: MonotonicState, g: Guess, leader: Array, settled: Array) -> Array:
        """By how much a pull of the leader gains more than one of a rival, at the x where the evidence is least, summed
        over rivals: at the best allocation it is 1."""
        xp, d = array_namespace(s.base), len(s.problem.arms)
        row, arm = xp.nonzero(settled)
        total = xp.zeros_like(s.base)
        if row.shape[0] == 0:
            return xp.sum(total, axis=1, keepdims=True)
        far = s.problem.tolerance or 0.0
        low = rows(g.effect[..., HIGH], settled)[:, None] - far
        high = xp.take(pick(g.effect[..., LOW], leader), row, axis=0)
        width = xp.maximum(xp.abs(high - low), rows(g.effect_error[..., HIGH], settled)[:, None])
        x = xp.minimum(low, high) + width * like(low, LEVELS)
        lead = xp.take(leader, row)
        weak = down(s, row, arm, x + far, False) + up(s, row, lead, x, False)
        x = pick(x, xp.argmin(weak, axis=1))
        at = put(xp.zeros_like(s.base), settled, x[:, 0])
        sure = 0.5 * xp.maximum(
            g.harm_error[..., HIGH] / s.problem.noises[1].scale, g.effect_error[..., HIGH] / s.problem.noises[0].scale
        )
        h, e = self.margins(s, g, at + far, HIGH)
        own = xp.maximum(xp.where(g.crossing >= like(at, s.problem.largest), e, xp.minimum(h, e)), sure)
        lead_h, lead_e = (pick(v, leader) for v in self.margins(s, g, xp.zeros_like(at), LOW))
        ahead = xp.minimum(lead_h, lead_e - at / s.problem.noises[0].scale)
        ratio = (xp.maximum(ahead, 0.0) / own) ** 2
        return xp.sum(xp.where(settled, xp.minimum(ratio, 1e3), 0.0), axis=1, keepdims=True)

    def leader(self, s: MonotonicState, g: Guess) -> Array:
        xp = array_namespace(s.base)
        return xp.argmax(xp.where(wanted(s), xp.where(s.n > 0, g.value, -1e300), -xp.inf), axis=1)

    def over(self, s: MonotonicState, g: Guess, x: Array) -> Array:
        """Of a rival: where it is as far over the limit as its effect is below x, in sigmas, or as far up as it may."""
        xp, p, place = array_namespace(x), s.problem, s.memory.place[..., HIGH]
        M = like(x, p.largest)
        h, e = self.margins(s, g, x, HIGH)
        enough = p.limit + ENOUGH * (p.ceiling - p.limit)
        there = g.harm[..., HIGH] - 0.25 * g.harm_error[..., HIGH] >= enough
        most = xp.where(g.crossing >= M, M, place + (enough - g.harm[..., HIGH]) / g.rise[..., HIGH])
        meet = self.meet(s, g, x, HIGH)
        up = xp.maximum(xp.minimum(meet, most), place)
        up = xp.where(g.crossing >= s.base, M, up)  # all that can be given is below the limit
        down = xp.minimum(xp.maximum(meet, g.crossing), 0.5 * (place + xp.minimum(g.crossing, place)))
        target = xp.where((h < 0.5 * e) & ~there, up, xp.where(e < 0.5 * h, down, place))
        return xp.minimum(target, M)

    def under(self, s: MonotonicState, g: Guess, x: Array) -> Array:
        """Of the leader: where it is as far under the limit as its effect is above x."""
        xp, place = array_namespace(x), s.memory.place[..., LOW]
        h, e = self.margins(s, g, x, LOW)
        meet = xp.minimum(self.meet(s, g, x, LOW), g.crossing)
        return xp.where((e < 0.5 * h) | (h < 0.5 * e), meet, place)

    def margins(self, s: MonotonicState, g: Guess, x: Array, which: int) -> tuple[Array, Array]:
        """How far a rival's harm is over the limit and its effect below x, and the leader's the other way round, in
        sigmas, and with an error in favour."""
        sign = 1.0 if which == HIGH else -1.0
        sy, sz = (noise.scale for noise in s.problem.noises)
        h = sign * (g.harm[..., which] - s.problem.limit) + g.harm_error[..., which]
        e = sign * (x - g.effect[..., which]) + g.effect_error[..., which]
        return h / sz, e / sy

    def meet(self, s: MonotonicState, g: Guess, x: Array, which: int) -> Array:
        """The dose where the two are equal."""
        sy, sz = (noise.scale for noise in s.problem.noises)
        off = (x - g.effect[..., which]) / sy + (s.problem.limit - g.harm[..., which]) / sz
        return s.memory.place[..., which] + off / (g.gain[..., which] / sy + g.rise[..., which] / sz)

    def stakes(self, state: MonotonicState, cohort: Cohort) -> Array:
        xp, p, s = array_namespace(state.base), state.problem, state
        K, slack, known = like(s.base, p.lipschitz), p.ceiling - p.limit, s.n > 0
        g = s.memory.guess
        leader = self.leader(s, g)
        is_leader = xp.arange(len(p.arms), device=device(leader)) == leader[:, None]
        here = xp.where(is_leader, LOW, HIGH)[..., None]
        place, harm, effect, error, noise, rise, gain = (
            xp.take_along_axis(v, here, axis=-1)[..., 0]
            for v in (s.memory.place, g.harm, g.effect, g.harm_error, g.effect_error, g.rise, g.gain)
        )
        harm, effect = harm + rise * (cohort.dose - place), effect + gain * (cohort.dose - place)
        reach = xp.maximum(
            cohort.dose + (p.ceiling - harm + 2 * error) / K - s.base, 1e-9 * like(K, p.largest - p.starts)
        )
        sure = 0.5 * error
        over = xp.where(harm - sure > p.limit, harm - sure, xp.nan)
        under = xp.where(is_leader & (harm + sure < p.limit), harm + sure, xp.nan)
        best = pick(g.value, leader) + (p.tolerance or 0.0)
        gap = xp.abs(best - effect)
        near = xp.min(xp.where(is_leader | ~wanted(s), xp.inf, gap), axis=1, keepdims=True)
        size = xp.maximum(xp.where(is_leader & xp.isfinite(near), near, gap), noise) / p.noises[0].scale
        beyond = (harm > p.limit) | (cohort.dose >= like(K, p.largest))
        below = xp.where(known & ~is_leader & beyond & (effect < best), size, xp.nan)
        above = xp.where(known & is_leader, size, xp.nan)
        bet = xp.where(known, xp.where(is_leader & (harm < p.limit), under, over), xp.nan)
        return xp.stack([harm + sure, reach, bet, below, above], axis=-1)


def guess(p: Problem, known: Array, place: Array) -> Guess:
    """Every dose pulled tells of harm and effect at a place, the less the further off it is."""
    xp, slack = array_namespace(place), p.ceiling - p.limit
    K, M = like(place, p.lipschitz)[:, None], like(place, p.largest)
    n = known[..., 0][:, :, None, :]
    some = xp.where(n > 0, n, 1.0)
    dose, effect, harm = (known[..., i][:, :, None, :] / some for i in (1, 2, 3))
    off = xp.where(n > 0, dose - place[..., None], 0.0)
    wide, off0, local = 2 * slack / K, off, xp.abs(off) <= TOGETHER * slack / K[..., None]
    w = n / (1 + (off / wide[..., None]) ** 2)
    total = xp.sum(w, axis=-1)
    middle = xp.sum(w * off, axis=-1) / xp.maximum(total, 1e-9)
    var = xp.sum(w * (off - middle[..., None]) ** 2, axis=-1)

    def line(seen: Array, sigma: float, expected: Array, most: Array, least: Array, blank: float) -> tuple[Array, ...]:
        """Mean at the places, its error, and slope. All pulls tell of the slope; of the mean the less the further
        off they are, by half of what the slope may make of that."""
        cov = xp.sum(w * (off - middle[..., None]) * seen, axis=-1)
        slope = xp.clip((cov + wide**2 * expected) / (var + wide**2), least, most)
        near = xp.where(n > 0, 1 / (sigma**2 / some + (BEND * slope[..., None] * off) ** 2), 0.0)
        here, there = (xp.where(x, near, 0.0) for x in (local, ~local))
        sure, others = (xp.sum(x, axis=-1) for x in (here, there))
        mean, other = (
            xp.sum(x * (seen - slope[..., None] * off), axis=-1) / xp.where(y > 0, y, 1.0)
            for x, y in ((here, sure), (there, others))
        )
        # where the other doses say something else, they say that much less
        both = (sure > 0) & (others > 0)
        apart = (mean - other) ** 2 - ODD * (1 / xp.where(both, sure, 1.0) + 1 / xp.where(both, others, 1.0))
        others = xp.where(both, 1 / (1 / xp.where(both, others, 1.0) + xp.maximum(apart, 0.0 * apart)), others)
        total = sure + others
        mean = (sure * mean + others * other) / xp.where(total > 0, total, 1.0)
        return xp.where(total > 0, mean, blank), 1 / xp.sqrt(xp.where(total > 0, total, 1 / sigma**2)), slope

    sy, sz = (noise.scale for noise in p.noises)
    one = xp.ones_like(place)
    g, g_error, rise = line(harm, sz, RISE * K * one, K * one, 0.05 * K * one, p.limit - 0.5 * slack)
    f, f_error, gain = line(effect, sy, 0.0 * one, xp.inf * one, 0.0 * one, 0.0)
    last = place[..., CROSS]
    crossing = xp.clip(last + (p.limit - g[..., CROSS]) / rise[..., CROSS], like(M, p.starts), M)
    value = f[..., CROSS] + gain[..., CROSS] * (crossing - last)
    left = xp.maximum(p.ceiling - g, 0.25 * slack)
    count = xp.sum(n[:, :, 0, :][:, :, None, :] * xp.exp(-(K / (NEAR * left))[..., None] * xp.abs(off0)), axis=-1)
    return Guess(g, f, g_error, f_error, rise, gain, count, crossing, value)
