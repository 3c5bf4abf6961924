"""Where to look: estimates of values, who leads, and at which bar the evidence against each rival is weakest.

No theorem speaks of these numbers. Evidence looks there first, to save work; a policy chooses by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick
from ..problem import Problem
from .linear_bars import Bets, binary, sigmas
from .settle import round_down


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


def look(p: Problem, data: Bets, live: Array, before: Look | None = None) -> Look:
    """From sums over all pulls; `live` are the arms that may still be best.

    With a tolerance the leader counts as better by that much, and the one from before keeps its place up to half of it.
    """
    xp, (sy, sz) = array_namespace(live), sigmas(p)
    reach, top = like(data.v, p.largest / p.starts), p.limit / sz
    seen = data.v > 0
    v = xp.where(seen, data.v, 1e-12)
    theta, mu, dose = slopes(p, data)
    value = theta / top * dose
    shift = tolerance(p)
    ranked = value
    if shift and before is not None:
        arms = xp.arange(v.shape[1], device=device(v))
        ranked = value + xp.where(arms == before.leader[:, None], 0.5 * shift, 0.0)
    leader = xp.argmax(xp.where(live, xp.where(seen, ranked, -1.0), -2.0), axis=1)
    lead = pick(value, leader)
    sigma: Any = 1.0  # of the effect, in units of sy: of a binary one at the leader's value
    if binary(p)[0]:
        q = xp.clip(lead * (top * sy), 1e-6, 0.5)
        sigma = xp.sqrt(q * (1 - q)) / sy

    reach = xp.where(stepped(p, v), dose, reach)
    low, high = xp.where(seen, value, 0.0) / sigma, lead / sigma
    shift = shift / sigma
    rival = Line(theta / sigma, mu, top / reach, v)
    leading = Line(*(pick(x, leader) for x in (rival.theta, rival.mu, rival.cap, v)))
    high = high + shift
    bar, ahead, behind = weakest(p, rival, leading, low, high, shift)
    evidence = 0.5 * (ahead**2 * leading.v + behind**2 * v)
    norm = xp.sqrt(1 + high**2) if p.signals == "independent" else 1 + high
    scale = high / norm * xp.maximum(mu, rival.cap)
    return Look(leader, value, bar * sigma, ahead, behind, evidence, scale)


def slopes(p: Problem, data: Bets) -> tuple[Array, Array, Array]:
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


def tolerance(p: Problem) -> float:
    """As a difference of t."""
    return (p.tolerance or 0.0) * sigmas(p)[1] / (p.limit * sigmas(p)[0])


def weakest(p: Problem, rival: Line, leader: Line, low: Array, high: Array, shift: Any) -> tuple[Array, Array, Array]:
    """Where between the values `low` of a rival and `high` of the leader the evidence against the rival is nearly
    least, and by how much for each unit of dose the leader is ahead there, and the rival behind. The leader is compared
    with what is lower by `shift`.

    With branches fixed the evidence is (A - 2Bt + Ct^2) / norm(t)^2 / 2 for cones, least at a root of a quadratic; caps
    are weighted to the same form. Two steps come close from anywhere.
    """
    xp, independent = array_namespace(low), p.signals == "independent"
    t = 0.5 * (low + high)
    found = t, t, t, xp.inf + t
    for _ in range(3):
        norm = 1 + t**2 if independent else (1 + t) ** 2
        root = xp.sqrt(norm)
        cone, cap = (t * rival.mu - rival.theta) / root, t * rival.cap - rival.theta
        rival_caps = cap > cone
        behind = xp.maximum(xp.where(rival_caps, cap, cone), like(t, 0.0))
        cone, cap = (leader.theta - (t - shift) * leader.mu) / root, leader.theta - (t - shift) * leader.cap
        leader_caps = cap < cone
        ahead = xp.maximum(xp.where(leader_caps, cap, cone), like(t, 0.0))
        now = t, ahead, behind, behind**2 * rival.v + ahead**2 * leader.v
        found = tuple(xp.where(now[3] < found[3], new, old) for new, old in zip(now, found, strict=True))
        A = B = C = 0.0 * t
        for line, caps, less in ((rival, rival_caps, 0.0), (leader, leader_caps, shift)):
            slope, weight = xp.where(caps, line.cap, line.mu), line.v * xp.where(caps, norm, 1.0)
            theta = line.theta + less * slope
            A, B, C = A + weight * theta**2, B + weight * theta * slope, C + weight * slope**2
        above, below = (B, xp.hypot(0.5 * (C - A), B) + 0.5 * (C - A)) if independent else (A + B, B + C)
        t = xp.clip(above / xp.where(below > 0, below, 1e-300), low, high)
    return found[0], found[1], found[2]
