"""Who is out, who has won, whether it ends: what follows from the bounds, for every design alike."""

from __future__ import annotations

from ..arrays import Array, Chosen, array_namespace, device, like, replace
from ..problem import Problem
from .base import ACTIVE, ALL_STOPPED, BEATEN, BEST_ARM, REFUTED, RUNNING, STOPPED, WITHIN_TOLERANCE, S, State


def settle(s: S, harm_at_start: Array) -> S:
    """Stop, eliminate, name the winner and end, from the bounds in `s` and lower bounds on the harm at the start.

    The leader is the active arm with the largest lower bound; arms whose upper bound is at or below it are beaten
    (Algorithm 1 writes <, Algorithm 2 <=; at equality the arm is no better than the leader, so <= loses nothing). The
    leader is not compared with itself, so the active set cannot become empty by elimination. With a tolerance, a leader
    whose lower bound is within it of every rival's upper bound wins too.
    """
    xp, p = array_namespace(s.pulls), s.problem
    active = (s.standing == ACTIVE) & ~(harm_at_start > p.limit)
    low = xp.where(active, xp.maximum(s.lower, like(s.lower, -1e300)), -xp.inf)
    leader = xp.argmax(low, axis=1)
    bar = xp.max(low, axis=1, keepdims=True)
    beaten = active & (s.upper <= bar)
    near = active & (s.upper <= bar + p.tolerance) if p.tolerance else beaten
    return conclude(s, harm_at_start, leader, beaten, near, s.upper, bar, BEATEN)


def conclude(
    s: S,
    harm_at_start: Array,
    leader: Array,
    beaten: Array,
    near: Array,
    upper: Array,
    lower: Array,
    how: int = REFUTED,
) -> S:
    """Stop arms whose harm at the start dose is above the limit, put out those that the `leader` has `beaten`, name a
    winner where one arm is left or, with a tolerance, where all rivals are `near`, and end. `upper` and `lower` are the
    numbers to give as the reason."""
    xp, p = array_namespace(s.pulls), s.problem
    arms = xp.arange(len(p.arms), device=device(s.pulls))
    stops = (s.standing == ACTIVE) & (harm_at_start > p.limit)
    active = (s.standing == ACTIVE) & ~stops
    others = arms != leader[:, None]
    beaten = active & beaten & others
    left = xp.sum(xp.astype(active & ~beaten, xp.int64), axis=1)

    known = (s.found > 0) & xp.any(active & ~beaten & (arms == s.winner[:, None]), axis=1)
    found = xp.where(known, s.found, xp.where(left == 1, BEST_ARM, xp.zeros_like(s.found)))
    if p.tolerance is not None:
        close, s = xp.all(near | ~active | beaten | ~others, axis=1), replace(s, near=near & others)
        found = xp.where((found == RUNNING) & (left > 1) & close, WITHIN_TOLERANCE, found)
    winner = xp.where(found > 0, xp.where(known, s.winner, leader), -1)
    ending = found
    if p.refine is not None:
        width = xp.sum(xp.where(arms == winner[:, None], s.unsafe - s.safe, 0.0), axis=1)
        ending = xp.where(width <= p.refine, found, RUNNING)
    ending = xp.where(left == 0, ALL_STOPPED, ending)

    out, lost, d = Chosen(stops | beaten), Chosen(beaten), len(p.arms)
    lower = xp.where(beaten, lower, harm_at_start)
    return replace(
        s,
        found=found,
        winner=winner,
        ending=ending,
        standing=out.put(s.standing, xp.where(out.rows(stops), STOPPED, xp.full_like(out.index, how))),
        out_round=out.put(s.out_round, xp.take(s.rounds, out.index // d)),
        out_by=lost.put(s.out_by, xp.take(leader, lost.index // d)),
        out_upper=lost.put(s.out_upper, lost.rows(upper)),
        out_lower=out.put(s.out_lower, out.rows(lower)),
    )


def wanted(s: State) -> Array:
    """The arms still worth pulling, (trials, arms): the active ones, and once the winner is known only that one."""
    xp = array_namespace(s.pulls)
    arms = xp.arange(len(s.problem.arms), device=device(s.pulls))
    return (s.standing == ACTIVE) & ((s.found == 0)[:, None] | (arms == s.winner[:, None]))


def open_claims(s: State) -> Array:
    """Those of them that are not near, too: with a tolerance nothing more is to be shown of the others."""
    return wanted(s) & (~s.near | (s.found > 0)[:, None])


def round_down(problem: Problem, dose: Array) -> Array:
    """The largest allowed level at or below `dose`; the dose itself for arms without levels."""
    if problem.levels is None:
        return dose
    xp = array_namespace(dose)
    levels = like(dose, problem.levels)
    floor = xp.max(xp.where(levels <= dose[..., None], levels, -xp.inf), axis=-1)
    return xp.where(xp.isinf(levels[:, 0]), dose, floor)


def level_below(problem: Problem, dose: Array) -> Array:
    """The largest level below a dose that is over the limit; the dose itself for arms without levels."""
    if problem.levels is None:
        return dose
    xp = array_namespace(dose)
    levels = like(dose, problem.levels)
    below = xp.max(xp.where(levels < dose[..., None], levels, -xp.inf), axis=-1)
    return xp.where(xp.isinf(levels[:, 0]), dose, below)


def level_above(problem: Problem, dose: Array) -> Array:
    """The least level above a dose, infinite where there is none; minus infinity for arms without levels."""
    xp = array_namespace(dose)
    if problem.levels is None:
        return xp.full_like(dose, -xp.inf)
    levels = like(dose, problem.levels)
    above = xp.min(xp.where(levels > dose[..., None], levels, xp.inf), axis=-1)
    return xp.where(xp.isinf(levels[:, 0]), -xp.inf, above)
