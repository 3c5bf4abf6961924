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
from .levels_evidence import STAKES, LevelsEvidence, LevelsState, means, seems_safe


class Look(NamedTuple):
    """What the policy makes of the readings, (trials, arms) or (trials, arms, levels)."""

    top: Array  # the highest level tried, -1 before the first
    safe: Array  # the level that seems to be the largest safe one
    climbing: Array  # whether the next level is to be tried
    leader: Array  # (trials,): the arm with the largest estimated value
    rival: Array  # (trials,): of the others, the one whose claim to be best has the least evidence against it
    x: Array  # the value at which that claim is weakest
    flags: Array  # (trials, arms, levels, stakes): which bets a reading would be staked on
    nats: dict[str, Array]  # how many nats a reading might tell, by bet


def look(s: LevelsState, margin: float, hope: float) -> Look:
    """`margin`: what differs by less than so many standard errors is not bet on. `hope`: by how many of them a mean is
    taken to be better than estimated when it is asked where to pull; it grows slowly, so no level is left for ever."""
    xp, p, level = array_namespace(s.pulls), s.problem, levels(s)
    effect, harm = means(s)
    live, arms = s.standing == ACTIVE, xp.arange(s.safe.shape[1], device=device(s.pulls))
    error, wrong = (spread(noise, mean, s.n) for noise, mean in zip(p.noises, (effect, harm), strict=True))
    top = xp.max(xp.where(s.n > 0, level, -1.0), axis=-1)
    safe = seems_safe(s, harm)
    climbing = (
        live & (top <= seems_safe(s, harm - margin * wrong)) & (top < like(top, p.largest)) & (top + 1 < s.barred)
    )

    worth = xp.maximum(s.estimate, like(top, -1e300))
    leader = xp.argmax(xp.where(live, worth, -xp.inf), axis=1)
    leads = arms == leader[:, None]
    rival = xp.argmin(xp.where(live & ~leads, s.least, xp.inf), axis=1)
    gap = xp.where(xp.isfinite(worth), pick(worth, leader) - worth, 0.0)
    inner = xp.clip(s.x, worth + 0.1 * gap, worth + 0.9 * gap)  # where effects are bet on
    inner = xp.where(leads, pick(inner, rival), inner)
    x = pick(s.x, rival) + 0.0 * inner  # where the claim is weakest
    if p.tolerance is not None:  # the leader need only be better than that
        inner, x = (xp.where(leads, z - p.tolerance, z) for z in (inner, x))

    seen, high = (
        s.n > 0,
        level >= safe[..., None],
    )  # bets on effects are pooled over levels: those of low ones would hurt
    settled, leads = seen & high & ~climbing[..., None], leads[..., None]
    on = {
        "calm": (level > s.calm[..., None]) & ~(seen & (harm > p.ceiling)),
        "low": seen & leads & (harm + margin * wrong < p.limit),
        "high": seen & (harm - margin * wrong > p.limit),
        "below": settled & ~leads & (effect + margin * error < inner[..., None]),
        "above": settled & leads & (effect - margin * error > inner[..., None]),
    }
    more = hope * xp.sqrt(xp.log(2.0 + xp.astype(s.pulls, xp.float64)) / 6)[:, None, None]
    down, up, x, inner = effect - more * error, effect + more * error, x[..., None] + 0.0 * s.n, inner[..., None]
    nats = {
        "low": tells(p.noises[1], harm - more * wrong, p.limit + 0.0 * s.n, above=False),
        "high": tells(p.noises[1], harm + more * wrong, p.limit + 0.0 * s.n, above=True),
        "below": xp.where(high & (down < inner), tells(p.noises[0], down, x, above=False), 0.0),
        "above": xp.where(high & (up > inner), tells(p.noises[0], up, x, above=True), 0.0),
    }
    flags = xp.stack([xp.astype(on[name], xp.float64) for name in STAKES], axis=-1)
    return Look(top, safe, climbing, leader, rival, pick(s.x, rival)[:, 0], flags, nats)


def levels(s: LevelsState) -> Array:
    return like(s.safe, [float(k) for k in range(s.n.shape[-1])])


def spread(noise: Noise, mean: Array, n: Array) -> Array:
    """The standard error of a mean of n readings."""
    xp = array_namespace(mean)
    if noise.kind != "bernoulli":
        return noise.scale / xp.sqrt(n + 1e-9)
    m = xp.clip(mean, 0.0, 1.0)
    return xp.sqrt((m * (1 - m) + 0.25 / (n + 1)) / (n + 1e-9))


def tells(noise: Noise, mean: Array, bound: Array, above: bool) -> Array:
    """How many nats a reading of this mean tells for its being above (or below) the bound; 0 where it is not."""
    xp = array_namespace(mean)
    mean = xp.maximum(mean, bound) if above else xp.minimum(mean, bound)
    mean = xp.where(xp.isnan(mean), bound, mean)
    if noise.kind != "bernoulli":
        return (mean - bound) ** 2 / (2 * noise.scale**2)
    q, b = xp.clip(mean, 1e-6, 1 - 1e-6), xp.clip(bound, 1e-6, 1 - 1e-6)
    return q * xp.log(q / b) + (1 - q) * xp.log((1 - q) / (1 - b))


@dataclass(frozen=True)
class LevelsPolicy(Policy[LevelsState]):
    """first: pulls of the first cohorts at a new level. growth: a cohort of the contest has this share of all pulls so
    far, and at least `first`. margin, hope: see `look`. few: every arm that is left gets so many times the square root
    of all pulls at the level that seems to be its largest safe one, and half as many at the next."""

    first: int = 3
    growth: float = 0.03
    margin: float = 0.5
    hope: float = 1.0
    few: float = 1.0

    evidence: ClassVar[LevelsEvidence] = LevelsEvidence()

    def __post_init__(self) -> None:
        number("first", self.first, least=1)
        number("growth", self.growth, least=0)
        number("margin", self.margin, least=0)
        number("hope", self.hope, least=0)
        number("few", self.few, above=0)

    def choose(self, state: LevelsState, u: Array) -> Cohort:
        xp, s = array_namespace(state.pulls), state
        v, arms = look(s, self.margin, self.hope), xp.arange(s.safe.shape[1], device=device(s.pulls))
        climbs = xp.any(v.climbing, axis=1, keepdims=True)
        arm, level = self.contest(s, v)
        up = xp.minimum(v.top + 1, self.evidence.certified(s))
        size = xp.maximum(xp.ceil(self.growth * xp.astype(s.pulls, xp.float64)), like(s.safe, float(self.first)))
        n = xp.where(arms == arm[:, None], size[:, None], 0.0)
        here = xp.take_along_axis(s.n, xp.astype(up, xp.int64)[..., None], axis=-1)[..., 0]
        step = xp.maximum(xp.ceil(2 * self.growth * here), like(here, float(self.first)))
        n = xp.where(climbs, xp.where(v.climbing, step, 0.0), n)
        dose = xp.where(climbs, up, level[:, None])
        return Cohort(dose, xp.astype(n, xp.int64), self.staked(v, dose))

    def contest(self, s: LevelsState, v: Look) -> tuple[Array, Array]:
        """The arm and the level to pull, (trials,) each."""
        xp, level = array_namespace(s.pulls), levels(s)
        x, t = v.x[:, None], self.evidence.terms(s)
        b_k, b_j = (last_least(z[0][..., 0]) for z in (t.rival(x), t.led(x[:, None, :] - self.shift(s, v)[..., None])))
        low, high, below, above = (v.nats[name] for name in STAKES[1:])
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
        # no wrong estimate lasts: the level that seems to be an arm's largest safe one, and the next, get a few pulls
        few = self.few * xp.sqrt(xp.astype(s.pulls, xp.float64))[:, None, None]
        want = xp.where(level == v.safe[..., None], few, xp.where(level == v.safe[..., None] + 1, 0.5 * few, 0.0))
        lacks = xp.where((s.standing == ACTIVE)[..., None] & (level <= reach), want - s.n, -1.0)
        worth = xp.where(xp.any(lacks > 0, axis=(1, 2), keepdims=True), lacks, worth)
        best = xp.argmax(xp.reshape(worth, (worth.shape[0], -1)), axis=1)
        return best // level.shape[0], xp.astype(best % level.shape[0], xp.float64)

    def shift(self, s: LevelsState, v: Look) -> Array:
        """By how much less than x the leader's value may be: the tolerance."""
        xp, arms = array_namespace(s.pulls), s.safe.shape[1]
        leads = xp.arange(arms, device=device(s.pulls)) == v.leader[:, None]
        return xp.where(leads, s.problem.tolerance or 0.0, xp.zeros_like(s.safe))

    def stakes(self, state: LevelsState, cohort: Cohort) -> Array:
        return self.staked(look(state, self.margin, self.hope), cohort.dose)

    def staked(self, v: Look, dose: Array) -> Array:
        """Readings are bet on what they are expected to show."""
        xp = array_namespace(dose)
        here = xp.astype(dose, xp.int64)[..., None, None]
        return xp.take_along_axis(v.flags, xp.broadcast_to(here, (*dose.shape, 1, len(STAKES))), axis=2)[:, :, 0, :]


def last_least(x: Array) -> Array:
    """Where the least along the last axis is, the last of them, as a float with that axis kept."""
    xp = array_namespace(x)
    back = xp.argmin(xp.flip(x, axis=-1), axis=-1)
    return xp.astype(x.shape[-1] - 1 - back, xp.float64)[..., None]


@dataclass(frozen=True)
class SurefootLevels(Composed[LevelsState]):
    """Ordered levels, nothing assumed but that effect and harm never fall from one to the next."""

    policy: Policy[LevelsState] = LevelsPolicy()

    evidence: ClassVar[Evidence[Any]] = LevelsEvidence()
    name: ClassVar[str] = "surefoot-levels"
    shape: ClassVar[Shape] = "levels"
    chunk: ClassVar[int] = 512
