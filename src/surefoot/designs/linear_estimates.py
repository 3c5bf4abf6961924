"""Where to look: estimates of values, who leads, and at which bar the evidence against each rival is weakest.

No theorem speaks of these numbers. Evidence looks there first, to save work; a policy chooses by them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Array, Chosen, array_namespace, clip, device, like, pick, where_least
from ..problem import Problem
from .linear_bars import Bets, binary, flat, sigmas, tolerance
from .settle import round_down

Slopes = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Look:
    """Values and bars are written t, see `linear_bars`. (trials, arms) but for the leader, (trials,)."""

    leader: Array
    value: Array
    bar: Array  # where the evidence against an arm is weakest, between its value and the leader's
    ahead: Array  # how far the leader's reading is above that bar, in sigmas for each unit of dose
    behind: Array  # and the arm's below it
    evidence: Array  # against each arm that is not the leader, in nats, as a likelihood ratio would have it
    scale: Array  # what an arm without effect would be behind by at the leader's value (and tolerance)


def look(p: Problem, data: Bets, slopes: Slopes, live: Array, before: Look | None = None) -> Look:
    """From sums over all pulls; `live` are the arms that may still be best. With a tolerance the leader counts as
    better by that much."""
    xp, d, shift, top = array_namespace(live), live.shape[1], tolerance(p), p.limit / sigmas(p)[1]
    theta, mu, dose = slopes
    value = theta * dose / top
    leader = leading(p, data, value, live, before)
    lead = pick(value, leader)
    unit = effect_sigma(p, lead)
    high, cap = (lead + shift) / unit, top / xp.where(stepped(p, mu), dose, like(mu, p.largest / p.starts))
    scale = high / (xp.sqrt(1 + high**2) if p.signals == "independent" else 1 + high) * xp.maximum(mu, cap)

    rivals = Chosen(live & (xp.arange(d, device=device(live)) != leader[:, None]))
    index = rivals.index
    row = index // d
    unit, high = flat(unit, row), flat(high, row)

    def line(at: Array) -> Line:
        return Line(
            flat(theta, at) / unit, flat(mu, at), flat(cap, at), xp.maximum(flat(data.v, at), like(unit, 1e-12))
        )

    one, other = line(index), line(row * d + xp.take(leader, row))
    low = xp.where(one.v > 1e-12, flat(value, index), 0.0) / unit
    first = 0.5 * (low + high) if before is None else xp.clip(flat(before.bar, index) / unit, low, high)
    bar, *found = Pair(one, other, shift / unit, p.signals == "independent").weakest(low, first, high)
    ahead, behind, evidence = (rivals.spread(x, 0.0) for x in found)
    return Look(leader, value, rivals.put(value, bar * unit), ahead, behind, evidence, scale)


def leading(p: Problem, data: Bets, value: Array, live: Array, before: Look | None) -> Array:
    """The arm with the largest value of those that were pulled; with a tolerance the one from before keeps its place up
    to half of it."""
    xp, shift = array_namespace(value), tolerance(p)
    if shift and before is not None:
        arms = xp.arange(value.shape[1], device=device(value))
        value = value + xp.where(arms == before.leader[:, None], 0.5 * shift, 0.0)
    return where_least(xp.where(live, xp.where(data.v > 0, -value, 1.0), 2.0), axis=1)


def effect_sigma(p: Problem, value: Array) -> Array:
    """In units of `sigmas`: of a binary effect at this value."""
    xp, (sy, sz) = array_namespace(value), sigmas(p)
    if not binary(p)[0]:
        return xp.ones_like(value)
    q = xp.clip(value * (p.limit / sz * sy), 1e-6, 0.5)
    return xp.sqrt(q * (1 - q)) / sy


def slopes(p: Problem, data: Bets) -> Slopes:
    """Of effect and harm, and the dose where harm seems to reach the limit; in units of sigmas and start doses.

    Kept above 0 by a part of their noise; and start doses are safe, so harm there is not taken to be above the limit.
    """
    xp, top = array_namespace(data.v), p.limit / sigmas(p)[1]
    v = xp.where(data.v > 0, data.v, 1e-12)
    a0, reach, floor = like(v, p.starts), like(v, p.largest / p.starts), 0.5 / xp.sqrt(v)
    theta, mu = xp.maximum(data.y / v, 0.01 * floor), xp.minimum(xp.maximum(data.z / v, floor), like(v, top))
    return theta, mu, xp.maximum(round_down(p, a0 * xp.minimum(top / mu, reach)) / a0, like(v, 1.0))


def stepped(p: Problem, x: Array) -> Array:
    """Which arms have levels, in the namespace of `x`."""
    return like(x, [arm.levels is not None for arm in p.arms])


@dataclass(frozen=True)
class Line:
    """An arm as it is estimated: slopes of effect and harm, theta for each t on the cap, sum of a^2."""

    theta: Array
    mu: Array
    cap: Array
    v: Array

    def form(self, caps: Array, norm: Array, lower: Array) -> tuple[Array, Array, Array]:
        """Twice the evidence by its cap or its cone, against what is `lower` by so much, times norm(t)^2: A, B and C
        of A - 2Bt + Ct^2. Caps, which have no norm, are weighted to the same form."""
        xp = array_namespace(norm)
        slope, weight = xp.where(caps, self.cap, self.mu), xp.where(caps, self.v * norm, self.v)
        theta = self.theta + lower * slope
        return weight * theta**2, weight * theta * slope, weight * slope**2


@dataclass(frozen=True)
class Pair:
    """A rival and the leader. The leader is compared with what is lower by `shift`."""

    rival: Line
    leader: Line
    shift: Array
    independent: bool

    def weakest(self, low: Array, t: Array, high: Array) -> tuple[Array, ...]:
        """Where between the values of the two the evidence against the rival is nearly least; there by how much for
        each unit of dose the leader is ahead, and the rival behind, and the evidence; from a `t` between them, at best
        where it was least before.

        The leader shows the lesser of cone and cap, so that the evidence may be least at two places: near the leader's
        value, where the cap shows nothing, and nearer to the rival's, where it is the cone that shows little.
        """
        xp, (found, rival_caps, leader_caps) = array_namespace(t), self.at(t)
        norm = 1 + t**2 if self.independent else (1 + t) ** 2
        rival = self.rival.form(rival_caps, norm, xp.zeros_like(t))
        for caps in (leader_caps, ~leader_caps):
            both = (x + y for x, y in zip(rival, self.leader.form(caps, norm, self.shift), strict=True))
            new = self.at(clip(self.least(*both), low, high))[0]
            better = new[3] < found[3]
            found = tuple(xp.where(better, x, y) for x, y in zip(new, found, strict=True))
        return found

    def at(self, t: Array) -> tuple[tuple[Array, ...], Array, Array]:
        """A bar, how far the leader is ahead there and the rival behind, the evidence; and whose caps these are."""
        xp, rival, leader, less = array_namespace(t), self.rival, self.leader, t - self.shift
        root = xp.sqrt(1 + t**2) if self.independent else 1 + t
        cone, cap = (t * rival.mu - rival.theta) / root, t * rival.cap - rival.theta
        rival_caps, behind = cap > cone, xp.maximum(xp.maximum(cone, cap), 0.0)
        cone, cap = (leader.theta - less * leader.mu) / root, leader.theta - less * leader.cap
        leader_caps = cap < cone
        ahead = xp.maximum(xp.minimum(cap, cone), 0.0)
        evidence = 0.5 * (ahead**2 * leader.v + behind**2 * rival.v)
        return (t, ahead, behind, evidence), rival_caps, leader_caps

    def least(self, A: Array, B: Array, C: Array) -> Array:
        """Where (A - 2Bt + Ct^2) / norm(t)^2 is least."""
        xp = array_namespace(A)
        tiny = like(A, 1e-300)
        if not self.independent:
            return (A + B) / xp.maximum(B + C, tiny)
        half = 0.5 * (C - A)
        return B / xp.maximum(xp.sqrt(half**2 + B**2) + half, tiny)
