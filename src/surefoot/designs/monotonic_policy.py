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
from typing import ClassVar, NamedTuple

from ..arrays import Array, Chosen, array_namespace, device, floats, like, pick, put, rows
from ..problem import number
from .base import Cohort, Outcome
from .compose import Policy
from .ladder import RUNGS
from .monotonic_cells import ABOVE, BELOW, LED, OVER, UNDER, down, evidence, told, up
from .monotonic_estimates import CROSS, HIGH, LOW, Guess, guess, nothing, remember
from .monotonic_evidence import MonotonicState, or_alone, unbet
from .monotonic_floor import MonotonicFloor
from .settle import level_above, open_claims, round_down

ENOUGH = 0.3  # of the slack: no higher above the limit. What climbing costs grows with the cube of what is left of the
# slack, what it saves with the square of what is gone
FLAT = 0.1  # of its Lipschitz constant: harm that rises less may bend where a rival is pulled
UP, DOWN = 0.7, 0.3  # a rival moves up where its harm is over the limit by less than this part of what its effect is
# below x, in sigmas, since the lesser of the two decides; and down where the effect is below x by less than that part
# of the harm: sooner up than down, as pulls further down still tell of effects
BALANCE = 3.0  # leader and rivals both, where the leader's share is within this factor of 1
CLIMBING = 2.0  # times larger cohorts on the way up, where one more decision gains less
ASIDE = 1 / 3  # of the way from one value to the other: x is no nearer to either, slopes being guesses
LEVELS = [-0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.1]  # where between two effects the evidence is looked at
NARROW = 0.4  # of the width asked for: how far off the limit the winner's dose is refined
MOST = 64.0  # nats, about, that a cohort may be staked for on effects, and as much again as all before it: a bet on a
# passing error must not outweigh all later ones
RISK = 2.0, 4.0  # and on harm; half of it once bets on the arm's harm have lost so many: guesses that are always a bit
# off must not lose more than can be won back
PLENTY = 100.0  # squared errors by which the leader may be seen to be under the limit before it is pulled nearer to it
PART = 0.5  # of the way to where harm may reach the ceiling: so far the rungs go, since the last ones tell too little
LEAST = 0.02  # a cohort is at least this part of what it would be if all pulls of the arm were near


@dataclass(frozen=True)
class Memory:
    """All pulls of every arm by dose, those at nearly the same dose together; the places; what follows from both."""

    known: Array  # (trials, arms, DOSES, 4): how many, and sums of their doses, effects and harms
    place: Array  # (trials, arms, 3)
    guess: Guess


class Now(NamedTuple):
    """Who leads, (trials,), and for every arm: whether it does, whether it is a rival, the value x to be told from, the
    dose, and whether that is on the way up or a new place."""

    leader: Array
    leads: Array
    rival: Array
    x: Array
    dose: Array
    climbs: Array
    moves: Array


@dataclass(frozen=True)
class MonotonicPolicy(Policy[MonotonicState]):
    """The policy of Surefoot-Monotonic.

    growth: an arm is pulled for this share of its pulls near its dose before the next decision, and twice that on the
        way up; 0 is fixed cohorts of three
    cohort: and at least so often: one by one, decisions gain little
    first: pulls of every arm to begin with
    """

    on: ClassVar[str] = "surefoot-monotonic"
    floor: ClassVar[MonotonicFloor] = MonotonicFloor()

    growth: float = 0.035
    cohort: int = 3
    first: int = 10

    def __post_init__(self) -> None:
        number("growth", self.growth, least=0)
        number("cohort", self.cohort, least=1)
        number("first", self.first, least=1)

    def begin(self, state: MonotonicState) -> Memory:
        xp = array_namespace(state.base)
        place = xp.stack([state.base] * 3, axis=-1)
        known = nothing(state.base)
        return Memory(known, place, guess(state.problem, known, place))

    def remember(self, state: MonotonicState, cohort: Cohort, outcome: Outcome) -> Memory:
        xp, m, came = array_namespace(state.base), state.memory, outcome.n > 0
        if state.floor is not None:  # visits are made for themselves
            came = came & ~state.floor.forced[:, None]
        if not bool(xp.any(came)):
            return Memory(m.known, m.place, m.guess)
        leads = cohort.stakes[..., -1] > 0
        high = xp.where(came & ~leads, self.places(state, cohort.dose), m.place[..., HIGH])
        low = xp.where(came & leads, cohort.dose, m.place[..., LOW])
        place = xp.stack([high, low, m.guess.crossing], axis=-1)
        known, now = remember(state.problem, m.known, place, Chosen(came), cohort, outcome, m.guess)
        return Memory(known, place, now)

    def places(self, s: MonotonicState, dose: Array) -> Array:
        """The high place of a rival that is pulled at a dose: where it is pulled at two levels, the higher one."""
        xp, high = array_namespace(dose), s.memory.place[..., HIGH]
        return (
            dose if s.problem.levels is None else xp.where((dose == beside(s)[0]) & (high == beside(s)[1]), high, dose)
        )

    def choose(self, state: MonotonicState, u: Array) -> Cohort:
        xp, s, p = array_namespace(state.base), state, state.problem
        live, now = open_claims(s), self.now(s)
        share = self.share(s, now, now.rival & ~now.climbs & ~now.moves)
        few = 5 * pick(s.n, now.leader) < xp.max(xp.where(now.rival, s.n, 0), axis=1, keepdims=True)
        chosen = live & xp.where(now.leads, (share >= 1 / BALANCE) | few, now.climbs | now.moves | (share <= BALANCE))
        size = self.sizes(s, now)
        # what is cheap comes first: an arm that wants many times more pulls than another waits for it
        chosen = chosen & (size <= 4 * xp.min(xp.where(chosen, size, xp.inf), axis=1, keepdims=True))
        size = xp.where(s.n > 0, xp.where(chosen, size, 0.0), xp.where(live, float(self.first), 0.0 * size))
        dose = xp.where(s.n > 0, now.dose, s.base)
        if p.refine is not None:
            won = live & (s.found > 0)[:, None]
            dose = xp.where(won, self.refine(s, p.refine), dose)
            size = xp.where(
                won, xp.maximum(xp.ceil(self.growth * xp.astype(s.n, size.dtype)), float(self.cohort)), size
            )
        return Cohort(dose, xp.astype(xp.where(size < 1e15, size, 1e15), xp.int64))

    def values(self, s: MonotonicState) -> Array:
        """About what every arm is worth, (trials, arms)."""
        return s.memory.guess.value

    def now(self, s: MonotonicState) -> Now:
        """Who leads, and the doses that follow."""
        xp, p = array_namespace(s.base), s.problem
        leader = self.leader(s)
        leads = xp.arange(len(p.arms), device=device(leader)) == leader[:, None]
        value, rival = self.values(s), open_claims(s) & ~leads
        best = pick(value, leader)
        others = xp.where(rival, value, -xp.inf)
        other = xp.max(others, axis=1, keepdims=True)
        other = xp.where(xp.isfinite(other), other, best)
        low = xp.where(leads, other, self.worth(s, best)) - (p.tolerance or 0.0)
        x = low + self.part(s, leader, leads, xp.argmax(others, axis=1)) * (best - low)
        target = xp.where(leads, self.under(s, x), self.over(s, x + (p.tolerance or 0.0)))
        if p.levels is not None:
            target = self.on_levels(s, target, x, leads)
        dose = round_down(p, xp.clip(target, like(x, p.starts), s.base))
        climbs = rival & (target > s.base)
        moves = ~climbs & xp.where(
            leads, dose != s.memory.place[..., LOW], self.places(s, dose) != s.memory.place[..., HIGH]
        )
        return Now(leader, leads, rival, x, dose, climbs, moves)

    def part(self, s: MonotonicState, leader: Array, leads: Array, other: Array) -> Array:
        """How far x is from a rival's value to the leader's. Where harm rises slowly beside the effect, effects far
        from the value are read: to tell it from x, k times their distance takes pulls like k^2 over its square. The sum
        of both is least with distances in proportion to k^(2/3)."""
        xp, p, g = array_namespace(s.base), s.problem, s.memory.guess
        if p.levels is not None:
            return 0.5 * xp.ones_like(s.base)
        sy, sz = (noise.scale for noise in p.noises)
        slopes = xp.where(g.crossing >= like(s.base, p.largest), 0.0, g.gain[..., CROSS] / g.rise[..., CROSS])
        k = (sy + sz * slopes) ** (2 / 3)
        ours, theirs = pick(k, leader), xp.where(leads, pick(k, other), k)
        return xp.clip(theirs / (ours + theirs), ASIDE, 1 - ASIDE)

    def worth(self, s: MonotonicState, best: Array) -> Array:
        """What a rival may be worth, to be told from the leader. Where harm hardly rises, a line says little of where
        it reaches the limit, and may end at a bend: so it counts as rising faster, from the limit on."""
        xp, p, g = array_namespace(best), s.problem, s.memory.guess
        if p.levels is not None:
            return g.value
        steep = FLAT * like(best, p.lipschitz)
        over = xp.maximum(g.harm[..., HIGH] - p.limit, 0.0 * steep) / steep
        near = xp.minimum(g.effect[..., HIGH] - g.gain[..., HIGH] * over, best)
        return xp.where(g.rise[..., HIGH] < steep, xp.maximum(g.value, near), g.value)

    def sizes(self, s: MonotonicState, now: Now) -> Array:
        """A part of the pulls that are near; and at a new place, enough for a first look."""
        xp, g, n = array_namespace(s.base), s.memory.guess, floats(s.n)
        count = xp.where(now.leads, g.count[..., LOW], g.count[..., HIGH])
        low, high = self.margins(s, now.x, LOW), self.margins(s, now.x + (s.problem.tolerance or 0.0), HIGH)
        margin = xp.where(now.leads, xp.minimum(*low), xp.minimum(*high))
        look = xp.minimum(0.25 / xp.maximum(margin, 1e-9 + 0.0 * margin) ** 2, self.growth * n)
        size = self.growth * xp.maximum(count, LEAST * n)
        size = xp.maximum(xp.where(now.climbs, CLIMBING * size, size), xp.where(now.moves, look, 0.0))
        return xp.maximum(xp.ceil(size), float(self.cohort) + 0.0 * size)

    def refine(self, s: MonotonicState, width: float) -> Array:
        """Of the winner: near where harm seems to reach the limit, on the side where less is shown."""
        xp, p, cross = array_namespace(s.base), s.problem, s.memory.guess.crossing
        above = xp.maximum(cross + NARROW * width, level_above(p, cross))
        dose = xp.where(s.unsafe - cross > cross - s.safe, above, cross - NARROW * width)
        M = like(dose, p.largest)
        return round_down(p, xp.clip(xp.where(cross >= M, M, dose), like(dose, p.starts), s.base))

    def share(self, s: MonotonicState, now: Now, settled: Array) -> Array:
        """By how much a pull of the leader gains more than one of a rival, at the x where the evidence is least, summed
        over rivals: at the best allocation it is 1."""
        xp, p, g = array_namespace(s.base), s.problem, s.memory.guess
        row, arm = xp.nonzero(settled)
        if row.shape[0] == 0:
            return xp.zeros_like(s.base[:, :1])
        far, (sy, sz) = p.tolerance or 0.0, (noise.scale for noise in p.noises)
        low = g.effect[..., HIGH] if p.levels is None else xp.minimum(g.effect[..., HIGH], g.value)
        low = rows(low, settled)[:, None] - far
        high = xp.take(pick(g.effect[..., LOW], now.leader), row, axis=0)
        width = xp.maximum(xp.abs(high - low), rows(g.effect_error[..., HIGH], settled)[:, None])
        x = xp.minimum(low, high) + width * like(low, LEVELS)
        weak = told(down, s, row, arm, x + far, False) + told(up, s, row, xp.take(now.leader, row), x, False)
        x = put(xp.zeros_like(s.base), settled, pick(x, xp.argmin(weak, axis=1))[:, 0])
        h, e = self.margins(s, x + far, HIGH)
        own = xp.where(self.at_last(s, s.memory.place[..., HIGH]), e, xp.minimum(h, e))
        both = self.pair(s, x + far) if p.levels is not None else own
        own = xp.where(both > own, both, own)
        own = xp.maximum(own, xp.maximum(g.harm_error[..., HIGH] / sz, g.effect_error[..., HIGH] / sy))
        # where it goes: it may stand where it tells nothing, and would never leave
        h, e = (pick(v, now.leader) for v in self.margins(s, xp.zeros_like(x), LOW, now.dose))
        ratio = (xp.maximum(xp.minimum(h, e - x / sy), xp.zeros_like(x)) / own) ** 2
        return xp.sum(xp.where(settled, xp.minimum(ratio, 1e3 + 0.0 * x), 0.0), axis=1, keepdims=True)

    def leader(self, s: MonotonicState) -> Array:
        xp, value = array_namespace(s.base), self.values(s)
        return xp.argmax(xp.where(open_claims(s), xp.where(s.n > 0, value, -1e300), -xp.inf), axis=1)

    def over(self, s: MonotonicState, x: Array) -> Array:
        """Of a rival: where it is as far over the limit as its effect is below x, in sigmas, or as far up as it may."""
        xp, p, g, place = array_namespace(x), s.problem, s.memory.guess, s.memory.place[..., HIGH]
        M = like(x, p.largest)
        h, e = self.margins(s, x, HIGH)
        enough = p.limit + ENOUGH * (p.ceiling - p.limit)
        there = g.harm[..., HIGH] - 0.25 * g.harm_error[..., HIGH] >= enough
        most = xp.where(g.crossing >= M, M, place + (enough - g.harm[..., HIGH]) / g.rise[..., HIGH])
        meet = self.meet(s, x, HIGH)
        up = xp.maximum(xp.minimum(meet, most), place)
        up = xp.where(g.crossing >= s.base, M, up)  # all that can be given is below the limit
        down = xp.minimum(xp.maximum(meet, g.crossing), 0.5 * (place + xp.minimum(g.crossing, place)))
        target = xp.where((h < UP * e) & ~there, up, xp.where(e < DOWN * h, down, place))
        # rounded down, a target just over the limit would be a level under it, which tells nothing of a rival
        return xp.minimum(xp.maximum(target, level_above(p, g.crossing)), M)

    def under(self, s: MonotonicState, x: Array) -> Array:
        """Of the leader: where it is as far under the limit as its effect is above x; and with more pulls there than
        that takes, as near to the limit as they can tell, for the rivals' sake: its effect is what they are told from.
        """
        xp, g, place = array_namespace(x), s.memory.guess, s.memory.place[..., LOW]
        h, e = self.margins(s, x, LOW)
        target = xp.where((e < 0.5 * h) | (h < 0.5 * e), self.meet(s, x, LOW), place)
        tell = s.problem.noises[1].scale * xp.sqrt(PLENTY / xp.maximum(g.count[..., LOW], 1.0))
        near = place + (s.problem.limit - g.harm[..., LOW] - tell) / g.rise[..., LOW]
        target = xp.where(near > place, xp.maximum(target, near), target)
        return xp.where(target == place, place, xp.minimum(target, g.crossing))

    def at_last(self, s: MonotonicState, dose: Array) -> Array:
        """Whether an arm's value is told at this dose whatever its harm is: nothing is over the limit, or it is the
        level below where harm reaches it."""
        end = s.memory.guess.crossing >= like(dose, s.problem.largest)
        return end if s.problem.levels is None else end | (dose == beside(s)[0])

    def on_levels(self, s: MonotonicState, target: Array, x: Array, leads: Array) -> Array:
        """Nothing is told between two levels. The leader is told at one beside its target or at the last under the
        limit; a rival at one beside its target or at that last one and the next by turns: wherever it tells most."""
        xp, p, (last, over) = array_namespace(x), s.problem, beside(s)
        mine, most = self.better(s, x, LOW, target, last)
        mine = xp.where(xp.minimum(*self.margins(s, x, LOW, last)) > most, last, mine)
        x = x + (p.tolerance or 0.0)
        theirs, most = self.better(s, x, HIGH, xp.maximum(target, over), s.base)
        theirs = xp.where(self.pair(s, x) > most, xp.where(shown(s, x), last, over), theirs)
        theirs = xp.where(s.memory.guess.crossing >= like(x, p.largest), target, theirs)
        return xp.where(xp.isfinite(like(x, p.levels)[:, 0]), xp.where(leads, mine, theirs), target)

    def better(self, s: MonotonicState, x: Array, which: int, target: Array, top: Array) -> tuple[Array, Array]:
        """Of the target and the level above it, if that is not above the top, the one that tells more; and how much."""
        xp, p = array_namespace(x), s.problem
        above, low = level_above(p, target), xp.maximum(round_down(p, target), like(x, p.starts))
        above = xp.where((above > low) & (above <= top), above, low)
        up, here = (xp.minimum(*self.margins(s, x, which, y)) for y in (above, low))
        return xp.where(up > here, above, target), xp.maximum(up, here)

    def pair(self, s: MonotonicState, x: Array) -> Array:
        """What a rival tells, in sigmas, where it is pulled at the last level under the limit and at the next: that the
        next is its largest safe one is refuted by harm there alone, that it is a lower one by effects at both."""
        xp, (last, over) = array_namespace(x), beside(s)
        h, e = (xp.maximum(y, 0.0 * y) for y in self.margins(s, x, HIGH, over))
        f = self.margins(s, x, HIGH, last)[1]
        f = xp.maximum(f, 0.0 * f)
        return xp.where(e < h, h * f / xp.sqrt(xp.maximum(f**2 + h**2 - e**2, 1e-12 + 0.0 * f)), h)

    def margins(self, s: MonotonicState, x: Array, which: int, dose: Array | None = None) -> tuple[Array, Array]:
        """How far a rival's harm is over the limit and its effect below x, and the leader's the other way round, in
        sigmas, and with an error in favour."""
        sign, (sy, sz) = 1.0 if which == HIGH else -1.0, (noise.scale for noise in s.problem.noises)
        harm, effect, error, noise = about(s, which, dose)
        return (sign * (harm - s.problem.limit) + error) / sz, (sign * (x - effect) + noise) / sy

    def meet(self, s: MonotonicState, x: Array, which: int) -> Array:
        """The dose where the two are equal."""
        g, (sy, sz) = s.memory.guess, (noise.scale for noise in s.problem.noises)
        off = (x - g.effect[..., which]) / sy + (s.problem.limit - g.harm[..., which]) / sz
        return s.memory.place[..., which] + off / (g.gain[..., which] / sy + g.rise[..., which] / sz)

    def stakes(self, state: MonotonicState, cohort: Cohort) -> Array:
        xp, p, s = array_namespace(state.base), state.problem, state
        leader = self.leader(s)
        leads = xp.arange(len(p.arms), device=device(leader)) == leader[:, None]
        harm, effect, error, noise = (
            xp.where(leads, x, y) for x, y in zip(*(about(s, which, cohort.dose) for which in (LOW, HIGH)), strict=True)
        )
        below, above = self.bets(s, leader, leads, cohort, effect, noise)
        K, M = like(s.base, p.lipschitz), like(s.base, p.largest)
        beyond, seen = (harm > p.limit) | (cohort.dose >= M) | self.at_last(s, cohort.dose), s.n > 0
        # an error in disfavour: the place was chosen by it; a leader is bet on below the limit, too
        high, low = (p.limit + sign * self.farthest(s, cohort, which) for sign, which in ((1, OVER), (-1, UNDER)))
        over, under = (
            xp.where(x, y, xp.nan)
            for x, y in (
                (harm - error > p.limit, xp.minimum(harm - error, high)),
                (leads & (harm + error < p.limit), xp.maximum(harm + error, low)),
            )
        )
        reach = PART * (cohort.dose + (p.ceiling - harm + 2 * error) / K - s.base)
        reach = self.rungs(s, xp.maximum(reach, 1e-9 * (M - like(M, p.starts))))
        bet = xp.where(seen, xp.where(harm < p.limit, under, over), xp.nan)
        below, above = xp.where(seen & beyond, below, xp.nan), xp.where(seen, above, xp.nan)
        return xp.stack([harm + 0.5 * error, reach, bet, below, above], axis=-1)

    def rungs(self, s: MonotonicState, reach: Array) -> Array:
        """How far they go: as they do, unless that is much too far, or not far enough. Each change of them forgets."""
        xp, now = array_namespace(reach), RUNGS * s.step
        return xp.where(reach > now, reach, xp.where(3 * reach < now, 1.5 * reach, now))

    def farthest(self, s: MonotonicState, cohort: Cohort, which: int) -> Array:
        """How far from the limit a guess of the harm may be."""
        xp, (most, half) = array_namespace(s.base), RISK
        lost = xp.maximum(-s.total[..., which], 0.0)
        most = most / (1 + lost / half) / xp.maximum(floats(cohort.n), 1.0)
        return s.problem.noises[1].scale * xp.sqrt(2 * most)

    def bets(
        self, s: MonotonicState, leader: Array, leads: Array, cohort: Cohort, effect: Array, noise: Array
    ) -> tuple[Array, Array]:
        """In units of the difference to be shown: of a rival to the leader, of the leader to the nearest rival."""
        xp, p = array_namespace(effect), s.problem
        best = pick(self.values(s), leader) + (p.tolerance or 0.0)
        gap = xp.abs(best - effect)
        near = xp.min(xp.where(leads | ~open_claims(s), xp.inf, gap), axis=1, keepdims=True)
        size = xp.maximum(xp.where(leads & xp.isfinite(near), near, gap), noise) / p.noises[0].scale
        before = xp.where(leads, s.total[..., ABOVE][..., 0], s.total[..., BELOW][..., 0])
        size = xp.minimum(size, xp.sqrt((MOST + before) / xp.maximum(floats(cohort.n), 1.0)))
        return xp.where(~leads & (effect < best), size, xp.nan), xp.where(leads, size, xp.nan)


def about(s: MonotonicState, which: int, dose: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """Harm and effect at a place, or by the line through it at a dose, and their errors; at the last level under the
    limit, by what was read there."""
    xp, g, p = array_namespace(s.base), s.memory.guess, s.problem
    harm, effect, *errors = (x[..., which] for x in (g.harm, g.effect, g.harm_error, g.effect_error))
    if dose is None:
        return harm, effect, *errors
    off = dose - s.memory.place[..., which]
    found = [harm + g.rise[..., which] * off, effect + g.gain[..., which] * off, *errors]
    if p.levels is not None:
        last, off = beside(s)[0], dose - round_down(p, s.memory.place[..., CROSS])
        there = [
            g.harm[..., CROSS] + g.rise[..., CROSS] * off,
            g.value,
            g.harm_error[..., CROSS],
            g.effect_error[..., CROSS],
        ]
        found = [xp.where(dose == last, y, x) for x, y in zip(found, there, strict=True)]
    return found[0], found[1], found[2], found[3]


def beside(s: MonotonicState) -> tuple[Array, Array]:
    """The levels below and above where harm seems to reach the limit; above all of them, the largest. nan for arms
    without levels: nothing is compared with it."""
    xp, p, cross = array_namespace(s.base), s.problem, s.memory.guess.crossing
    above = level_above(p, cross)
    both = round_down(p, cross), xp.minimum(above, like(cross, p.largest))
    last, over = (xp.where(above > -xp.inf, x, xp.nan) for x in both)
    return last, over


def shown(s: MonotonicState, x: Array) -> Array:
    """Of a rival's two levels beside the limit: whether more is shown of harm at the higher one than of effects below x
    at the lower one. Harm must also refute an x above all effects, where those that led take from the evidence."""
    xp, p, (last, over) = array_namespace(x), s.problem, beside(s)
    led, doses = s.total[..., ABOVE][..., 0] > 0, s.doses
    harm = xp.sum(xp.where(doses <= over[..., None], s.at[..., OVER], 0.0), axis=-1)
    lost = unbet(p) - xp.sum(xp.where(s.at[..., LED] < 0, s.at[..., LED], 0.0), axis=-1)
    sums = xp.sum(xp.where((doses >= last[..., None])[..., None], s.at[..., BELOW], 0.0), axis=-2)
    harm = harm + or_alone(-xp.sum(xp.where(led, lost, 0.0), axis=1, keepdims=True))
    return harm > evidence(p.noises[0], sums, x, False, False)
