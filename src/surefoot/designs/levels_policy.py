"""The policy of Surefoot-Levels: which level of which arm comes next. No theorem rests on it (see `levels_evidence`).

Climb: an arm goes up, in small cohorts, while harm at the highest level tried seems to be at or below the limit; to see
that a level is too high it has to be tried, and no more than one level is.

Contest: of the claims "this rival is best" the one with the least evidence against it is attacked at its weakest point:
the value x and the largest safe levels b of the rival and of the leader that fit the readings best. Of the two arms'
levels up to one above what seems safe, the one is pulled where a reading is expected to tell most against that point,
a little optimistically. Every arm that is left gets a few pulls (`few`), so that no wrong estimate can last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ..arrays import Array, array_namespace, device, like, pick, where_least
from ..problem import Noise, number
from .base import ACTIVE, Cohort
from .compose import Policy
from .levels_evidence import STAKES, LevelsEvidence, LevelsState, levels, means, seems_safe
from .recommend import standard_error

STARVED = 0.02  # of all pulls: two arms of nearly equal value may contest for long, and the best may seem to be a third


class Look(NamedTuple):
    """What the policy makes of the readings, (trials, arms) or (trials, arms, levels)."""

    effect: Array  # estimates that never fall with the level, and their standard errors
    harm: Array
    effect_error: Array
    harm_error: Array
    top: Array  # the highest level tried, -1 before the first
    safe: Array  # the level that seems to be the largest safe one
    reach: Array  # the highest that is worth a pull: one above it, unless the first level itself seems to be over
    climbing: Array  # whether the next level is to be tried
    leader: Array  # (trials,): the arm with the largest estimated value
    rival: Array  # (trials,): of the others, the one whose claim to be best has the least evidence against it
    leads: Array  # whether an arm is the leader


def look(s: LevelsState, margin: float) -> Look:
    """`margin`: harm above the limit by less than so many standard errors does not end a climb."""
    xp, p = array_namespace(s.pulls), s.problem
    effect, harm = means(s)
    error, wrong = standard_error(p.noises[0], effect, s.n), standard_error(p.noises[1], harm, s.n)
    live, arms = s.standing == ACTIVE, xp.arange(s.safe.shape[1], device=device(s.pulls))
    top = xp.max(xp.where(s.n > 0, levels(s), -1.0), axis=-1)
    safe, over = seems_safe(s, harm), xp.where(s.n > 0, harm - margin * wrong, -xp.inf) > p.limit
    fine = ~at(over, xp.maximum(top, xp.zeros_like(top)))
    climbing = live & fine & (top < like(top, p.largest)) & (top + 1 < s.barred)
    reach = xp.where(at(over, safe), safe, safe + 1)
    leader = xp.argmax(xp.where(live, xp.maximum(s.estimate, like(top, -1e300)), -xp.inf), axis=1)
    leads = arms == leader[:, None]
    rival = where_least(xp.where(live & ~leads, s.least, xp.inf), axis=1)
    return Look(effect, harm, error, wrong, top, safe, reach, climbing, leader, rival, leads)


def between(s: LevelsState, v: Look) -> Array:
    """The value at which bets on an arm's effects are placed, (trials, arms, 1): where its claim is weakest, but well
    between its own estimated value and the leader's. Of the leader: where it meets the rival."""
    xp, worth = array_namespace(s.pulls), finite(s.estimate)
    gap = pick(worth, v.leader) - worth
    x = xp.clip(s.x, worth + 0.1 * gap, worth + 0.9 * gap)
    # with a tolerance the leader need only be better than that
    return xp.where(v.leads, pick(x, v.rival) - (s.problem.tolerance or 0.0), x)[..., None]


def bets(s: LevelsState, v: Look, margin: float) -> Array:
    """Which bets a reading would be staked on, (trials, arms, levels, stakes), 0 or 1: on what it is expected to show,
    by more than `margin` standard errors. Bets on effects are pooled over levels, so those of low levels would hurt."""
    xp, p, x, level = array_namespace(s.pulls), s.problem, between(s, v), levels(s)
    seen, leads, error, wrong = s.n > 0, v.leads[..., None], margin * v.effect_error, margin * v.harm_error
    settled = seen & ~v.climbing[..., None] & (level >= v.safe[..., None])
    on = {
        "calm": (level > s.calm[..., None]) & ~(seen & (v.harm > p.ceiling)),
        "low": seen & leads & (v.harm + wrong < p.limit),
        "high": seen & (v.harm - wrong > p.limit),
        "below": settled & ~leads & (v.effect + error < x),
        "above": settled & leads & (v.effect - error > x),
    }
    return xp.stack([xp.astype(on[name], xp.float64) for name in STAKES], axis=-1)


def gains(s: LevelsState, v: Look, hope: float) -> dict[str, Array]:
    """How many nats a reading may tell where the rival's claim is weakest, by bet: (trials, arms, levels). Means are
    taken to be better than estimated by `hope` standard errors, slowly more, so no level is left for ever; effects
    count where they would then be bet on."""
    xp, p, x = array_namespace(s.pulls), s.problem, between(s, v)
    more = hope * xp.sqrt(xp.log(2.0 + xp.astype(s.pulls, xp.float64)) / 6)[:, None, None]
    low, high = v.effect - more * v.effect_error, v.effect + more * v.effect_error
    weakest = pick(s.x, v.rival)[..., None] - shift(s, v)[..., None] + 0.0 * s.n
    limit, may = p.limit + 0.0 * s.n, levels(s) >= v.safe[..., None]
    return {
        "low": tells(p.noises[1], v.harm - more * v.harm_error, limit, above=False),
        "high": tells(p.noises[1], v.harm + more * v.harm_error, limit, above=True),
        "below": xp.where(may & (low < x), tells(p.noises[0], low, weakest, above=False), 0.0),
        "above": xp.where(may & (high > x), tells(p.noises[0], high, weakest, above=True), 0.0),
    }


def shift(s: LevelsState, v: Look) -> Array:
    """By how much less than x the leader's value may be, (trials, arms): the tolerance."""
    xp = array_namespace(s.pulls)
    return xp.where(v.leads, s.problem.tolerance or 0.0, xp.zeros_like(s.safe))


def at(x: Array, level: Array) -> Array:
    """What x, (trials, arms, levels), is at a level of every arm."""
    xp = array_namespace(x)
    return xp.take_along_axis(x, xp.astype(level, xp.int64)[..., None], axis=-1)[..., 0]


def each(s: LevelsState) -> Array:
    """All pulls so far, (trials,); of many arms the part of three: no cohort and no floor may outgrow an arm."""
    xp = array_namespace(s.pulls)
    many = xp.astype(xp.sum(xp.astype(s.standing == ACTIVE, xp.int64), axis=1), xp.float64)
    return 3 * xp.astype(s.pulls, xp.float64) / xp.maximum(many, like(many, 3.0))


def finite(x: Array) -> Array:
    """With a number in place of what is not finite."""
    xp = array_namespace(x)
    return xp.where(xp.isfinite(x), x, xp.zeros_like(x))


def tells(noise: Noise, mean: Array, bound: Array, above: bool) -> Array:
    """How many nats a reading of this mean tells for its being above (or below) the bound; 0 where it is not."""
    xp = array_namespace(mean)
    mean = xp.maximum(mean, bound) if above else xp.minimum(mean, bound)
    mean = xp.where(xp.isnan(mean), bound, mean)
    if noise.counts and not noise.binary:
        q, b = xp.maximum(mean, like(mean, 1e-6)), xp.maximum(bound, like(bound, 1e-6))
        return q * xp.log(q / b) - q + b
    if not noise.binary:
        return (mean - bound) ** 2 / (2 * noise.scale**2)
    q, b = xp.clip(mean, 1e-6, 1 - 1e-6), xp.clip(bound, 1e-6, 1 - 1e-6)
    return q * xp.log(q / b) + (1 - q) * xp.log((1 - q) / (1 - b))


@dataclass(frozen=True)
class LevelsPolicy(Policy[LevelsState]):
    """The policy of Surefoot-Levels.

    first: pulls of the first cohorts at a new level, and the least of any cohort (4 at least where sigma is a guess):
        with thousands of users a day, thousands
    growth: a later cohort has this share of all pulls so far (of many arms, of the pulls of three); larger is fewer
        decisions and more pulls
    margin: a bet is placed on what a reading is expected to show by more than so many standard errors, and harm above
        the limit by less does not end a climb
    hope: means are taken to be better than estimated by so many standard errors where it is chosen what to pull
    few: every arm that is left gets so many times the square root of all pulls, or STARVED of them (a fiftieth),
        at the level that seems to be its largest safe one, and half as many at the next
    rare: a level that clearly seems to be above the ceiling gets no more than this share of an arm's pulls
    """

    on: ClassVar[str] = "surefoot-levels"

    first: int = 3
    growth: float = 0.02
    margin: float = 0.5
    hope: float = 1.0
    few: float = 1.0
    rare: float = 0.5

    evidence: ClassVar[LevelsEvidence] = LevelsEvidence()

    def __post_init__(self) -> None:
        number("first", self.first, least=1)
        number("growth", self.growth, least=0)
        number("margin", self.margin, least=0)
        number("hope", self.hope, least=0)
        number("few", self.few, above=0)
        number("rare", self.rare, above=0)

    def choose(self, state: LevelsState, u: Array) -> Cohort:
        xp, s = array_namespace(state.pulls), state
        v, arms = look(s, self.margin), xp.arange(s.safe.shape[1], device=device(s.pulls))
        climbs = xp.any(v.climbing, axis=1, keepdims=True)
        arm, level = self.contest(s, v)
        up = xp.minimum(v.top + 1, self.evidence.certified(s))
        here = at(s.n, up)
        least = like(here, float(self.first))
        steps = xp.where(v.climbing, xp.maximum(xp.ceil(2 * self.growth * here), least), 0.0)
        size = xp.maximum(xp.ceil(self.growth * each(s))[:, None], least)
        n = xp.where(climbs, steps, xp.where(arms == arm[:, None], size, 0.0))
        dose = xp.where(climbs, up, level[:, None])
        return Cohort(dose, xp.astype(n, xp.int64), self.staked(s, v, dose))

    def contest(self, s: LevelsState, v: Look) -> tuple[Array, Array]:
        """The arm and the level to pull, (trials,) each."""
        xp, level = array_namespace(s.pulls), levels(s)
        reach = xp.minimum(self.evidence.certified(s), v.reach)[..., None]
        arms = xp.arange(s.safe.shape[1], device=device(s.pulls))
        may = ((arms == v.rival[:, None]) | v.leads)[..., None] & (level <= reach)
        worth = xp.where(may, self.worth(s, v), -xp.inf)
        # where nothing is known to help, whatever is known least of what seems to be the largest safe level and above
        blank = ~xp.any(worth > 0, axis=(1, 2), keepdims=True)
        worth = xp.where(blank & may, xp.where(level >= v.safe[..., None], -s.n, -1e300), worth)
        # no wrong estimate lasts: the level that seems to be an arm's largest safe one, and the next, get a few pulls
        few = self.few * xp.maximum(xp.sqrt(each(s)), STARVED * each(s))[:, None, None]
        over = level - v.safe[..., None]
        want = xp.where(over == 0, few, xp.where(over == 1, 0.5 * few, xp.zeros_like(s.n)))
        lacks = xp.where((s.standing == ACTIVE)[..., None] & (level <= reach), want - s.n, -1.0)
        worth = xp.where(xp.any(lacks > 0, axis=(1, 2), keepdims=True), lacks, worth)
        best = xp.argmax(xp.reshape(worth, (worth.shape[0], -1)), axis=1)
        arm, chosen = best // level.shape[0], xp.astype(best % level.shape[0], xp.float64)
        held = pick(at(self.hold(s, v), chosen[:, None] + 0.0 * v.safe), arm)[:, 0]
        return arm, xp.where(held, pick(v.safe, arm)[:, 0], chosen)

    def hold(self, s: LevelsState, v: Look) -> Array:
        """Levels that clearly seem to be above the ceiling, and have had their share of the arm's pulls: to show that
        takes a few more, but the level below comes first."""
        xp = array_namespace(s.pulls)
        clear = (s.n > 0) & (v.harm - v.harm_error > s.problem.ceiling)
        return clear & (s.n >= self.rare * xp.sum(s.n, axis=-1, keepdims=True))

    def worth(self, s: LevelsState, v: Look) -> Array:
        """How many nats a reading of the rival, or of the leader, may tell against the weakest point."""
        xp, level, nats, t = array_namespace(s.pulls), levels(s), gains(s, v, self.hope), self.evidence.terms(s)
        x = pick(s.x, v.rival)
        b_k, b_j = (
            last_least(z[0][..., 0]) for z in (t.rival(x[:, None, :]), t.led(x[:, None, :] - shift(s, v)[..., None]))
        )
        high, below = xp.where(level <= b_k, nats["high"], 0.0), xp.where(level >= b_k, nats["below"], 0.0)
        return xp.where(v.leads[..., None], xp.where(level <= b_j, nats["above"], nats["low"]), xp.maximum(high, below))

    def stakes(self, state: LevelsState, cohort: Cohort) -> Array:
        return self.staked(state, look(state, self.margin), cohort.dose)

    def staked(self, s: LevelsState, v: Look, dose: Array) -> Array:
        """The stakes of readings at these levels."""
        xp = array_namespace(dose)
        here = xp.broadcast_to(xp.astype(dose, xp.int64)[..., None, None], (*dose.shape, 1, len(STAKES)))
        return xp.take_along_axis(bets(s, v, self.margin), here, axis=2)[:, :, 0, :]


def last_least(x: Array) -> Array:
    """Where the least along the last axis is, the last of them, as a float with that axis kept."""
    xp = array_namespace(x)
    back = where_least(xp.flip(x, axis=-1), axis=-1)
    return xp.astype(x.shape[-1] - 1 - back, xp.float64)[..., None]
