"""The policy of Surefoot-Levels: which level of which arm comes next. No theorem rests on it (see `levels_evidence`).

Climb: an arm goes up, in small cohorts, while harm at the highest level tried seems to be at or below the limit; to see
that a level is too high it has to be tried, and no more than one level is.

Contest: of the claims "this rival is best" the one with the least evidence against it is attacked at its weakest point:
the value x and the largest safe levels b of the rival and of the leader that fit the readings best. Of the two arms'
levels up to one above what seems safe, the one is pulled where a reading is expected to tell most against that point,
a little optimistically. No level is left without readings for ever (`floor`), so no wrong estimate can last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from array_api_compat import array_namespace, device

from ..arrays import Array, like, pick
from ..problem import Noise, Shape, number
from .base import ACTIVE, Cohort
from .compose import Composed, Evidence, Policy
from .levels_evidence import STAKES, LevelsEvidence, LevelsState, means, seems_safe, value


class Look(NamedTuple):
    """What the policy makes of the readings, (trials, arms) or (trials, arms, levels)."""

    top: Array  # the highest level tried, -1 before the first
    safe: Array  # the level that seems to be the largest safe one
    climbing: Array  # whether the next level is to be tried
    leader: Array  # (trials,): the arm with the largest estimated value
    rival: Array  # (trials,): of the others, the one whose claim to be best has the least evidence against it
    x: Array  # the value at which that claim is weakest
    flags: Array  # (trials, arms, levels, stakes): which bets a reading would be staked on
    worth: Array  # the same: how many nats it would be worth to each


def look(s: LevelsState, margin: float) -> Look:
    """`margin`: what differs by less than so many standard errors is not bet on."""
    xp, p, level = array_namespace(s.pulls), s.problem, levels(s)
    effect, harm = means(s)
    live, arms = s.standing == ACTIVE, xp.arange(s.safe.shape[1], device=device(s.pulls))
    error, wrong = (margin * spread(noise, mean, s.n) for noise, mean in zip(p.noises, (effect, harm), strict=True))
    top = xp.max(xp.where(s.n > 0, level, -1.0), axis=-1)
    safe = seems_safe(s, harm)
    fine = seems_safe(s, harm - wrong)
    climbing = live & (top <= fine) & (top < like(top, p.largest)) & (top + 1 < s.barred)

    worth = xp.maximum(value(s), like(top, -1e300))
    leader = xp.argmax(xp.where(live, worth, -xp.inf), axis=1)
    leads = arms == leader[:, None]
    rival = xp.argmin(xp.where(live & ~leads, s.least, xp.inf), axis=1)
    gap = xp.where(xp.isfinite(worth), pick(worth, leader) - worth, 0.0)
    x = xp.clip(s.x, worth + 0.25 * gap, worth + 0.75 * gap)
    x = xp.where(leads, pick(x, rival), x)[..., None] + 0.0 * s.n
    weakest = pick(s.x, rival)[..., None] + 0.0 * s.n
    limit, ceiling = x * 0.0 + p.limit, x * 0.0 + p.ceiling

    seen, settled = s.n > 0, (s.n > 0) & ~climbing[..., None]
    flags = {
        "calm": (level > s.calm[..., None]) & ~(seen & (harm > ceiling)),
        "low": seen & (harm + wrong < limit),
        "high": seen & (harm - wrong > limit),
        "below": settled & ~leads[..., None] & (effect + error < x),
        "above": settled & leads[..., None] & (effect - error > x),
    }
    tested = {"calm": (harm, ceiling), "low": (harm, limit), "high": (harm, limit), "below": (xp.minimum(effect, weakest), weakest), "above": (xp.maximum(effect, weakest), weakest)}
    on = xp.stack([xp.astype(flags[name], xp.float64) for name in STAKES], axis=-1)
    nats = xp.stack([tells(p.noises[int(name in STAKES[:3])], *tested[name]) for name in STAKES], axis=-1)
    return Look(top, safe, climbing, leader, rival, weakest[:, 0, 0], on, xp.where(on > 0, nats, 0.0))


def levels(s: LevelsState) -> Array:
    return like(s.safe, [float(k) for k in range(s.n.shape[-1])])


def spread(noise: Noise, mean: Array, n: Array) -> Array:
    """The standard error of a mean of n readings."""
    xp = array_namespace(mean)
    if noise.kind != "bernoulli":
        return noise.scale / xp.sqrt(n + 1e-9)
    m = xp.clip(mean, 0.0, 1.0)
    return xp.sqrt((m * (1 - m) + 0.25 / (n + 1)) / (n + 1e-9))


def tells(noise: Noise, mean: Array, bound: Array) -> Array:
    """How many nats a reading of this mean tells against the bound."""
    xp = array_namespace(mean)
    if noise.kind != "bernoulli":
        return (mean - bound) ** 2 / (2 * noise.scale**2)
    q, b = xp.clip(mean, 1e-6, 1 - 1e-6), xp.clip(bound, 1e-6, 1 - 1e-6)
    return q * xp.log(q / b) + (1 - q) * xp.log((1 - q) / (1 - b))


@dataclass(frozen=True)
class LevelsPolicy(Policy[LevelsState]):
    """first: pulls of the first cohorts at a new level. growth: a cohort of the contest has this share of all pulls so
    far, and at least `first`. margin: what differs by less than so many standard errors is not bet on."""

    first: int = 3
    growth: float = 0.03
    margin: float = 0.5

    evidence: ClassVar[LevelsEvidence] = LevelsEvidence()

    def __post_init__(self) -> None:
        number("first", self.first, least=1)
        number("growth", self.growth, least=0)
        number("margin", self.margin, least=0)

    def choose(self, state: LevelsState, u: Array) -> Cohort:
        xp, s = array_namespace(state.pulls), state
        v, arms = look(s, self.margin), xp.arange(s.safe.shape[1], device=device(s.pulls))
        climbs = xp.any(v.climbing, axis=1, keepdims=True)
        arm, level = self.contest(s, v)
        up = xp.minimum(v.top + 1, self.evidence.certified(s))
        size = xp.maximum(xp.ceil(self.growth * xp.astype(s.pulls, xp.float64)), like(s.safe, float(self.first)))
        n = xp.where(arms == arm[:, None], size[:, None], 0.0)
        n = xp.where(climbs, xp.where(v.climbing, float(self.first), 0.0), n)
        return Cohort(xp.where(climbs, up, level[:, None]), xp.astype(n, xp.int64))

    def contest(self, s: LevelsState, v: Look) -> tuple[Array, Array]:
        """The arm and the level to pull, (trials,) each."""
        xp, level = array_namespace(s.pulls), levels(s)
        x, t = v.x[:, None], self.evidence.terms(s)
        b_k, b_j = (last_least(z[0][..., 0]) for z in (t.rival(x), t.led(x[:, None, :] + 0.0 * s.safe[..., None])))
        low, high, below, above = (v.worth[..., STAKES.index(name)] for name in STAKES[1:])
        mine = xp.maximum(xp.where(level >= b_k, below, 0.0), xp.where(level <= b_k, high, 0.0))
        theirs = xp.where(level <= b_j, above, low)

        arms = xp.arange(s.safe.shape[1], device=device(s.pulls))
        is_k, is_j = ((arms == z[:, None])[..., None] for z in (v.rival, v.leader))
        reach = xp.minimum(self.evidence.certified(s), v.safe + 1)[..., None]
        may = (is_k | is_j) & (level <= reach)
        worth = xp.where(may, xp.where(is_k, mine, theirs), -xp.inf)
        # where nothing is known to help, whatever is known least of what seems to be the largest safe level and above
        blank = ~xp.any(worth > 0, axis=(1, 2), keepdims=True)
        worth = xp.where(blank & may, xp.where(level >= v.safe[..., None], -s.n, -1e300), worth)
        best = xp.argmax(xp.reshape(worth, (worth.shape[0], -1)), axis=1)
        return best // level.shape[0], xp.astype(best % level.shape[0], xp.float64)

    def stakes(self, state: LevelsState, cohort: Cohort) -> Array:
        """Readings are bet on what they are expected to show."""
        xp = array_namespace(state.pulls)
        here = xp.astype(cohort.dose, xp.int64)[..., None, None]
        flags = look(state, self.margin).flags
        return xp.take_along_axis(flags, xp.broadcast_to(here, (*cohort.dose.shape, 1, len(STAKES))), axis=2)[:, :, 0, :]


def last_least(x: Array) -> Array:
    """Where the least along the last axis is, the last of them, as a float with that axis kept."""
    xp = array_namespace(x)
    back = xp.argmin(xp.flip(x, axis=-1), axis=-1)
    return xp.astype(x.shape[-1] - 1 - back, xp.float64)[..., None]


@dataclass(frozen=True)
class SurefootLevels(Composed[LevelsState]):
    """Ordered levels, nothing assumed but that effect and harm never fall from one to the next."""

    policy: Policy[LevelsState] = LevelsPolicy()  # noqa: RUF009 (frozen)

    evidence: ClassVar[Evidence[Any]] = LevelsEvidence()
    name: ClassVar[str] = "surefoot-levels"
    shape: ClassVar[Shape] = "levels"
    chunk: ClassVar[int] = 512
