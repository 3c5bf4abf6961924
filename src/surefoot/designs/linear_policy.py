"""Which arm next, and with which stakes, for lines through 0. No theorem speaks of it, but that it ends.

Every pull is at the largest certified dose. The challenger is the rival with the least evidence against it (plus the
log of its pulls); leader or challenger (or both) by whether the leader's share of the evidence, summed over rivals, is
above 1: the condition that the best allocation fulfils (Bandyopadhyay, Juneja and Agrawal 2024, for classical arms).
Others come in the same cohort for a part, the less the further they are from their turn. An arm that was refuted is
looked at again now and then, so that one that was by error does not leave the next two to be parted.

A cohort is small where much hangs on the next decision: at the end, when a claim may be refuted after any pull, and
while doses climb, when every pull may raise the next dose. So it is a share of the pulls that an arm has *at its
present dose*, counted by what they tell, and larger the less evidence there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, Chosen, array_namespace, clip, device, floats, last, like, pick
from ..problem import number
from .base import ACTIVE, Cohort
from .compose import Policy
from .linear_bars import sigmas, tolerance
from .linear_estimates import Look
from .linear_evidence import LinearState, goal, second
from .settle import wanted

ESTABLISHED = 0.5  # nats by which a leader must be ahead before its pulls are bet on: the toss of a coin is no leader
FLOOR = 0.05  # of an equal share of all pulls, for every arm that may be best: what is known of it stays true
REACH = 100.0  # stakes fall with the gap once it is below 1 in so many: so far the sizes of bets reach by themselves
CLOSE = 2.0  # nats more than the least evidence with which a rival still comes too, for less the more: fewer decisions
RARELY = 0.5  # of a cohort: an arm that is due less than this part rests, since a decision takes as long for few pulls
HASTE = 19.0  # cohorts are so many times larger, beyond 1, while there is no evidence: only its last part is cut finely
WORTH = 0.1  # of an arm's pulls count for its cohort at least: decisions stay few where sigma was guessed too low
LOSS = 2.5  # nats that bets lose against the evidence, about: how much of it is there when a claim is refuted


@dataclass(frozen=True)
class LinearPolicy(Policy[LinearState]):
    """The policy of Surefoot-Linear.

    growth: an arm's next cohort is this share of its pulls, counted by what they tell, where its claim is about to be
        refuted, and up to 20 times that before; 0 with cohort 3 is fixed cohorts of three, with cohort 1 a decision
        after every pull
    cohort: and it has at least so many
    first: pulls of every arm at first
    """

    on: ClassVar[str] = "surefoot-linear"

    growth: float = 0.01
    cohort: int = 1
    first: int = 4

    def __post_init__(self) -> None:
        number("growth", self.growth, least=0)
        number("cohort", self.cohort, least=1)
        number("first", self.first, least=1)

    def choose(self, state: LinearState, u: Array) -> Cohort:
        xp, s, n = array_namespace(state.pulls), state, floats(state.n)
        again = second(s)
        few, may, (leads, rival) = starved(s, n) | again, wanted(s) | again, roles(s)
        rival = rival & ~s.near  # of those that are nothing more is to be shown
        turn = xp.where(few | (s.found > 0)[:, None], 1.0, turns(s, n, leads, rival))
        growth = self.growth * turn * (1 + HASTE * (1 - xp.where(few, 0.0, progress(s, leads, rival))))
        # v counts pulls by dose^2: at the certified one, which is the largest ever, so many tell as much
        worth = clip(s.data.v * (like(n, s.problem.starts) / s.safe) ** 2, WORTH * n, n)
        size = xp.maximum(xp.ceil(growth * xp.where(few, n, worth)), like(n, float(self.cohort)))
        size = xp.where(s.n > 0, xp.where(turn > 0, size, 0.0), float(self.first))
        return Cohort(s.safe, xp.astype(xp.where(may, xp.minimum(size, like(n, 1e15)), 0.0), xp.int64))

    def stakes(self, state: LinearState, cohort: Cohort) -> Array:
        """Own: in units of what an arm without effect would be behind by. Led: the same, of a leader that is
        established. Shared: what each arm is expected to show at the bar where the evidence is weakest."""
        xp, look, (many, d), (leads, rival) = array_namespace(state.pulls), state.look, state.n.shape, roles(state)
        scale = xp.where(state.n > 0, look.scale * shrink(state, leads, rival), first_scale(state))
        stakes = xp.full((many, d, 2 + d), xp.nan, dtype=scale.dtype, device=device(scale))  # few of them are any
        led = Chosen(leads & established(look, rival))
        own, ahead = led.rows(scale)[:, None], xp.take(look.ahead, led.index // d, axis=0)
        stakes = led.put(stakes, xp.concat([own, own, xp.where(ahead > 0, ahead, xp.nan)], axis=1), over=True)
        arms = xp.reshape(xp.arange(many * d, device=device(scale)), (many, d))
        for x, place in ((scale, 0), (xp.where(look.behind > 0, look.behind, xp.nan), 2 + arms[0, :])):
            at = Chosen.at(xp.reshape(arms * (2 + d) + place, (-1,)), stakes.shape)
            stakes = at.put(stakes, xp.reshape(x, (-1,)), over=True)
        return stakes


def shrink(s: LinearState, leads: Array, rival: Array) -> Array:
    """Stakes of an arm, as a part of its scale: in proportion to how far its value is from the leader's (the leader's
    from the next), as a share of that, or could be for all that is known, so that no gap is too small for them."""
    xp, look = array_namespace(s.pulls), s.look
    best = pick(look.value, look.leader) + tolerance(s.problem)
    noise = 1 / (xp.maximum(look.scale, like(best, 1e-300)) * xp.sqrt(xp.maximum(s.data.v, like(best, 1e-12))))
    gap = 1 - look.value / xp.maximum(best, like(best, 1e-300)) + noise
    gap = xp.where(leads, least(gap, rival), gap)
    return xp.clip(REACH * gap, 0.0, 1.0)


def progress(s: LinearState, leads: Array, rival: Array) -> Array:
    """How much of the evidence that refutes an arm's claim is there, from 0 to 1; of the leader, that of the rival with
    the least."""
    xp = array_namespace(s.pulls)
    part = xp.clip(s.look.evidence / (goal(s.problem) + LOSS), 0.0, 1.0)
    return xp.where(leads, xp.minimum(least(part, rival), like(part, 1.0)), part)


def turns(s: LinearState, n: Array, leads: Array, rival: Array) -> Array:
    """Which part of a cohort each arm is pulled for, beside those that are starved. Of leader and rivals one for a
    whole one, the other for less the further the leader's share is from 1; rivals for less the more is against them."""
    xp, look = array_namespace(n), s.look
    pulled = xp.log(xp.maximum(n, like(n, 1.0)))
    index = look.evidence + pulled
    first = least(index, rival)
    share = xp.where(pick(pulled, look.leader) <= first, leaders_share(s, look, rival), 0.0)
    part = xp.where(rival, xp.clip(1 - (index - first) / CLOSE, 0.0, 1.0) / xp.maximum(share, like(share, 1.0)), 0.0)
    part = xp.where(leads, xp.minimum(share, like(share, 1.0)), part)
    return xp.where(part < RARELY, 0.0, part)


def starved(s: LinearState, n: Array) -> Array:
    """The arms that may be best and have hardly been pulled."""
    xp = array_namespace(n)
    count = total(floats(s.standing == ACTIVE))
    return n < FLOOR * total(n) / xp.maximum(count, like(n, 1.0))


def leaders_share(s: LinearState, look: Look, rival: Array) -> Array:
    """How much more the leader's next pull adds to the evidence than the rival's does, summed over rivals."""
    xp = array_namespace(rival)
    dose = s.safe / like(s.safe, s.problem.starts)
    gain, lead = look.behind * dose, look.ahead * pick(dose, look.leader)
    share = xp.minimum((lead / xp.maximum(gain, like(gain, 1e-9))) ** 2, like(gain, 1e3))
    return total(xp.where(rival, share, 0.0))


def roles(s: LinearState) -> tuple[Array, Array]:
    """Which arm leads, and which are its rivals."""
    leads = array_namespace(s.n).arange(s.n.shape[1], device=device(s.n)) == s.look.leader[:, None]
    return leads, (s.standing == ACTIVE) & ~leads


def established(look: Look, rival: Array) -> Array:
    """In which trials the leader is ahead of every rival, as a column."""
    return least(look.evidence, rival) >= ESTABLISHED


def first_scale(s: LinearState) -> float:
    """The own stake of an arm's first pulls, of which nothing is known."""
    return min(0.3 * s.problem.limit / sigmas(s.problem)[1], 0.5)


def least(x: Array, which: Array) -> Array:
    """Of these arms, as a column; infinite where there is none."""
    xp = array_namespace(x)
    return xp.min(xp.where(which, x, xp.inf), axis=1, keepdims=True)


def total(x: Array) -> Array:
    """Over arms, as a column."""
    return array_namespace(x).sum(last(x), axis=0)[:, None]
