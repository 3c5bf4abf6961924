"""What is chosen in Surefoot-Monotonic: doses, numbers of pulls, stakes. No proof rests on anything here.

An arm has two places: a high one, where it is pulled as a rival, and a low one, where it is pulled as the leader. What
was read there lately, pulls at other doses fading, and the line through the two say what its harm and effect are about
there, at which dose its harm reaches the limit, and what its value is. The leader has the largest.

Dose. To refute that a rival is the best, both must be shown: that a dose is over the limit, and that the effect there
is below the leader's value. The one gets easier as the dose rises, the other harder, so a rival's high place is where
both are equally easy, as far as it can be reached. The leader's low place: under the limit and above the rival's value.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick, put, rows
from ..problem import number
from .base import Cohort, Outcome
from .compose import Policy
from .monotonic_evidence import MonotonicState, down, up
from .settle import round_down, wanted

ENOUGH = 0.3  # of the slack: no higher above the limit. What climbing costs grows with the cube of what is left of the
# slack, what it saves with the square of what is gone
RISE = 0.4  # of its Lipschitz constant: how fast harm is expected to rise before the pulls say how fast
NEAR = 0.5  # how fast pulls at other doses fade: by how much harm can change up to there, against what is left
LEVELS = [-0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.1]  # where between two effects the evidence is looked at
HIGH, LOW = 0, 1


@dataclass(frozen=True)
class Memory:
    """Of both places of every arm, (trials, arms, 2)."""

    place: Array
    count: Array  # pulls there, those at other doses faded
    effect: Array  # their readings summed
    harm: Array
    leads: Array  # (trials, arms): whether it was pulled as the leader


class Guess(NamedTuple):
    """What is estimated, (trials, arms, 2) at the two places and (trials, arms) between them."""

    harm: Array
    effect: Array
    harm_error: Array
    effect_error: Array
    rise: Array  # slope of the harm
    gain: Array  # slope of the effect
    crossing: Array  # the dose where harm reaches the limit, at most the largest
    value: Array  # the effect there


@dataclass(frozen=True)
class MonotonicPolicy(Policy[MonotonicState]):
    """growth: an arm is pulled for this share of its pulls near its dose before the next decision; cohort: and at least
    so often. growth=0 and cohort=3 is fixed cohorts of three. first: pulls of every arm to begin with."""

    growth: float = 0.1
    cohort: int = 1
    first: int = 10

    def __post_init__(self) -> None:
        number("growth", self.growth, least=0)
        number("cohort", self.cohort, least=1)
        number("first", self.first, least=1)

    def begin(self, state: MonotonicState) -> Memory:
        xp = array_namespace(state.base)
        two = xp.stack([state.base, state.base], axis=-1)
        return Memory(two, 0 * two, 0 * two, 0 * two, state.base < -xp.inf)

    def remember(self, state: MonotonicState, cohort: Cohort, outcome: Outcome) -> Memory:
        xp, m, p = array_namespace(state.base), state.memory, state.problem
        came, a = (outcome.n > 0)[..., None], cohort.dose[..., None]
        leads = (cohort.stakes[..., -1] > 0)[..., None]
        both = xp.concat([~leads, leads], axis=-1)
        same = m.place[..., :1] == m.place[..., 1:]
        here = came & (both | (same & (a == m.place)))
        moved = xp.where(came & both, a, m.place)
        seen = m.harm / xp.maximum(m.count, 1e-9)
        K = like(a, p.lipschitz)[:, None]
        left = xp.maximum(p.ceiling - seen, 0.25 * (p.ceiling - p.limit))
        fade = xp.exp(-K * xp.abs(moved - m.place) / (NEAR * left))
        add = [xp.where(here, x[..., None], 0.0) for x in (outcome.n, outcome.effect, outcome.harm)]
        count, effect, harm = (old * fade + new for old, new in zip((m.count, m.effect, m.harm), add, strict=True))
        return Memory(moved, count, effect, harm, xp.where(came[..., 0], leads[..., 0], m.leads))

    def guess(self, s: MonotonicState) -> Guess:
        xp, p, m = array_namespace(s.base), s.problem, s.memory
        K, M, slack = like(s.base, p.lipschitz), like(s.base, p.largest), p.ceiling - p.limit
        n = xp.maximum(m.count, 1e-9)
        harm = xp.where(m.count > 0, m.harm / n, p.limit - 0.5 * slack)
        root = xp.sqrt(xp.maximum(m.count, 1.0))
        errors = tuple(noise.scale / root for noise in p.noises)
        effect = m.effect / n
        apart = m.place[..., HIGH] - m.place[..., LOW]
        firm = (slack / K) ** 2
        rise, gain = (
            (apart * (x[..., HIGH] - x[..., LOW]) + firm * before) / (apart**2 + firm)
            for x, before in ((harm, RISE * K), (effect, 0.0))
        )
        rise, gain = xp.clip(rise, 0.05 * K, K), xp.maximum(gain, xp.zeros_like(gain))
        off = p.limit - harm
        crossing = weighted(m.place + off / rise[..., None], errors[1] ** 2 + (0.5 * off) ** 2)
        crossing = xp.clip(crossing, like(K, p.starts), M)
        off = gain[..., None] * xp.clip(crossing[..., None] - m.place, -(slack / K)[:, None], (slack / K)[:, None])
        value = weighted(effect + off, errors[0] ** 2 + (0.5 * off) ** 2)
        return Guess(harm, effect, errors[1], errors[0], rise, gain, crossing, value)

    def choose(self, state: MonotonicState, u: Array) -> Cohort:
        xp, p, s, m = array_namespace(state.base), state.problem, state, state.memory
        g = self.guess(s)
        live, seen, leader = wanted(s), s.n > 0, self.leader(s, g)
        is_leader = xp.arange(len(p.arms), device=device(leader)) == leader[:, None]
        rival = live & ~is_leader
        best = pick(g.value, leader)
        other = xp.max(xp.where(rival, g.value, -xp.inf), axis=1, keepdims=True)
        far = p.tolerance or 0.0  # a rival's value has to be below x + tolerance, and the leader's above x
        x = 0.5 * (best + xp.where(is_leader, xp.where(xp.isfinite(other), other, best), g.value) - far)
        dose = xp.where(is_leader, self.under(s, g, x), self.over(s, g, x + far))
        climbs = rival & (dose > m.place[..., HIGH])
        share = self.share(s, g, leader, rival & ~climbs)
        few = 5 * pick(s.n, leader) < xp.max(xp.where(rival, s.n, 0), axis=1, keepdims=True)
        chosen = xp.where(is_leader, (share >= 0.5) | few, climbs | (share <= 2.0))
        count = xp.where(is_leader, m.count[..., LOW], m.count[..., HIGH])
        size = xp.maximum(xp.ceil(self.growth * count), float(self.cohort))
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
        own = xp.minimum(*self.margins(s, g, at + far, HIGH))
        lead_h, lead_e = (pick(v, leader) for v in self.margins(s, g, xp.zeros_like(at), LOW))
        ahead = xp.minimum(lead_h, lead_e - at / s.problem.noises[0].scale)
        ratio = (xp.maximum(ahead, 0.0) / xp.maximum(own, 1e-12)) ** 2
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
        most = xp.where(g.crossing >= M, M, place + (enough - g.harm[..., HIGH]) / g.rise)
        meet = self.meet(s, g, x, HIGH)
        up = xp.maximum(xp.minimum(meet, most), place)
        up = xp.where(g.harm[..., HIGH] + g.harm_error[..., HIGH] < enough, M, up)
        down = xp.minimum(xp.maximum(meet, g.crossing), 0.5 * (place + xp.minimum(g.crossing, place)))
        target = xp.where((h < 0.5 * e) & ~there, up, xp.where(e < 0.5 * h, down, place))
        return round_down(p, xp.clip(target, like(x, p.starts), xp.minimum(s.base, M)))

    def under(self, s: MonotonicState, g: Guess, x: Array) -> Array:
        """Of the leader: where it is as far under the limit as its effect is above x."""
        xp, p, place = array_namespace(x), s.problem, s.memory.place[..., LOW]
        h, e = self.margins(s, g, x, LOW)
        meet = xp.minimum(self.meet(s, g, x, LOW), g.crossing)
        target = xp.where((e < 0.5 * h) | (h < 0.5 * e), meet, place)
        return round_down(p, xp.clip(target, like(x, p.starts), s.base))

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
        return s.memory.place[..., which] + off / (g.gain / sy + g.rise / sz)

    def stakes(self, state: MonotonicState, cohort: Cohort) -> Array:
        xp, p, s = array_namespace(state.base), state.problem, state
        K, slack, known = like(s.base, p.lipschitz), p.ceiling - p.limit, s.n > 0
        g = self.guess(s)
        leader = self.leader(s, g)
        is_leader = xp.arange(len(p.arms), device=device(leader)) == leader[:, None]
        here = xp.where(is_leader, LOW, HIGH)[..., None]
        place, harm, effect, error, noise = (
            xp.take_along_axis(v, here, axis=-1)[..., 0]
            for v in (s.memory.place, g.harm, g.effect, g.harm_error, g.effect_error)
        )
        harm, effect = harm + g.rise * (cohort.dose - place), effect + g.gain * (cohort.dose - place)
        reach = xp.maximum(cohort.dose + (p.ceiling - harm + 2 * error) / K - s.base, 1e-9 * like(K, p.largest - p.starts))
        sure = 0.5 * error
        over = xp.where(harm - sure > p.limit, harm - sure, xp.nan)
        under = xp.where(is_leader & (harm + sure < p.limit), harm + sure, xp.nan)
        best = pick(g.value, leader)
        gap = xp.abs(best - effect)
        near = xp.min(xp.where(is_leader | ~wanted(s), xp.inf, gap), axis=1, keepdims=True)
        size = xp.maximum(xp.where(is_leader & xp.isfinite(near), near, gap), noise) / p.noises[0].scale
        beyond = (harm > p.limit) | (cohort.dose >= like(K, p.largest))
        below = xp.where(known & ~is_leader & beyond & (effect < best), size, xp.nan)
        above = xp.where(known & is_leader, size, xp.nan)
        bet = xp.where(known, xp.where(is_leader & (harm < p.limit), under, over), xp.nan)
        return xp.stack([harm + sure, reach, bet, below, above], axis=-1)


def weighted(x: Array, variance: Array) -> Array:
    """The mean over the two places, by how sure they are."""
    xp = array_namespace(x)
    return xp.sum(x / variance, axis=-1) / xp.sum(1 / variance, axis=-1)
