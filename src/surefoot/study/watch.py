"""Assumption watches: anytime-valid tests on the recorded readings that can only pause a study, never move it.

All of them together ever fire in a study that keeps to its assumptions with probability at most `level`: a fifth of it
each for `start` and `certified`, two for the shape (`falling`, `steep`, `line`), a tenth each for `noise` and `drift`.
Each is a wealth made of bets against the assumption (Ville): it may be looked at as often as one wants. And no arm is
named where `start` alone would fire at 0.05. All proofs: Theorem 5 of docs/guarantees.md.

With ordered levels nothing is known of distances: `start` looks at the first level alone, and `certified` is left out,
since a level may be given that is one above those certified.

- A bound that is known: under the assumption a reading at dose a has a mean of at most b(a). All readings of an arm are
  bet to be above. Which doses count is mixed over: those from a band on, or up to one.
- A number m that is not known (a mean, the harm at a dose): readings at lower doses are bet to be on one side of it,
  those at higher doses on the other. The product is a fair bet at the true m; it counts as evidence what it comes to at
  the least favourable m.
- A slope that is not known: `Slopes`, where it cancels. Most of the stake is that harm per dose rises, which is
  what makes doses unsafe; then that the effect per dose falls; the rest is on the two other ways.

Half of each stake is on single arms, half on all of them together: an assumption that is wrong in one is often wrong in
all, and then many readings that say little each come to much.

An arm's readings are taken in the order of assignment: it does not matter in which order they arrive. Where one is
missing those after it count only for the two tests of known bounds, the missing one being taken at its lowest: 0 if
binary, the end of the plausible range, or five sigma below 0 in the linear shape, where no mean is below 0. Else
nothing can be said: a reading that is held back could be as low as it likes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem import Problem
from .watch_bets import ODDS, Slopes, Sums, mean, noise_evidence, one_or_all, one_sided, pair, running

if TYPE_CHECKING:
    from .checker import Given, Record

BANDS = 8  # of doses above the start dose; the start dose is band 0
MISSING = 8  # readings of an arm that may be held back before nothing is said
READINGS = ("effect", "harm")
LINE = ((1, 1, 0.6), (0, -1, 0.2), (1, -1, 0.1), (0, 1, 0.1))  # reading, whether it rises per dose, share of level
SHARES = {"start": 0.2, "certified": 0.2, "noise": 0.1, "drift": 0.1}  # of the level; the rest is the shape's
DOUBT = 0.05  # where an arm is to be named, `start` is asked once more, at this level: see docs/guarantees.md
HERE = Path(__file__)
DIGEST = hashlib.sha256(  # another version may see what this one does not
    b"".join(file.read_bytes() for file in (HERE, HERE.with_name("watch_bets.py")))
).hexdigest()

WATCHES = {
    "start": "harm at the start dose is above the limit",
    "certified": "harm is above what is allowed at doses that were certified",
    "falling": "a reading falls as the dose rises (monotonic shape)",
    "steep": "harm rises faster with the dose than the Lipschitz constant says (monotonic shape)",
    "line": "readings are off the line through 0 (linear shape)",
    "noise": "readings scatter more than the declared sigma",
    "drift": "readings at one dose change over time",
}


def looking(problem: Problem, blocks: bool) -> dict[str, str]:
    """The watches that can fire: those of the shape, on readings with a sigma that is known; for their scatter also
    without ends, which bound it by themselves; for drift not on blocks, which do not say who came first."""
    known = [noise.known and noise.subgaussian for noise in problem.noises]
    scatter = any(k and noise.worst is None for k, noise in zip(known, problem.noises, strict=True))
    can = {
        "start": known[1], "certified": known[1] and problem.shape != "levels",
        "falling": any(known) and problem.shape != "linear", "steep": known[1] and problem.shape == "monotonic",
        "line": any(known) and problem.shape == "linear", "noise": scatter, "drift": any(known) and not blocks,
    }  # fmt: skip
    return {name: about for name, about in WATCHES.items() if can[name]}


Key = tuple[str, int, int, int]  # of a test of the shape: watch, reading, the band that a split is above, sign


class Alarm(NamedTuple):
    watch: str
    arm: int
    reading: str
    message: str

    @property
    def said(self) -> dict[str, Any]:
        """What an event holds beside the message, which is its reason."""
        return {"watch": self.watch, "arm": self.arm, "reading": self.reading}


class Watches:
    """Sums by arm and reading; `update` takes in what is new, `alarms` looks at the arms that changed."""

    def __init__(self, problem: Problem, level: float):
        d = len(problem.arms)
        self.problem = problem
        self.level = {name: SHARES.get(name, 0.4) * level for name in WATCHES}
        # a sigma that is not known says nothing: no bet on such a reading ever wins
        self.sigma = [noise.scale if noise.known and noise.subgaussian else math.inf for noise in problem.noises]
        self.binary = [noise.binary for noise in problem.noises]
        self.edges = [_edges(problem, i) for i in range(d)]
        self.bands = [[[Sums()] * (BANDS + 1) for _ in READINGS] for _ in range(d)]
        self.noise = np.zeros((d, 2, 2))  # pairs, and the sum of their squared differences / 2
        self.drift = np.zeros((d, 2, 2))  # pairs, and the sum of their differences / sqrt(2)
        self.cohort = 0  # this many are taken in wholly
        self.at = np.zeros((d, 2), np.int64)  # and of the next one, so many places of each arm
        self.after: dict[int, tuple[int, Sums]] = {}  # arm -> band and harms after the first that is missing
        self.looked = [0.0] * d  # readings at the last look
        self.known: list[dict[Any, float]] = [{} for _ in range(d)]  # what was seen then
        self.alarmed: list[Alarm] = []
        splits = [(r, j) for r in range(2) for j in range(BANDS)]
        self.keys: list[Key] = [("falling", r, j, -1) for r, j in splits] if problem.shape != "linear" else []
        if problem.shape == "monotonic":
            self.keys += [("steep", 1, j, 1) for j in range(BANDS)]
        self.slopes = Slopes(self.edges, problem.starts, self.sigma) if problem.shape == "linear" else None
        self.touched: set[int] = set()
        self.places: tuple[Any, list[list[int]]] = (None, [])  # the subjects of each arm of one cohort

    def update(self, record: Record) -> None:
        for given in record.cohorts[self.cohort :]:
            if given.blocks:
                self._take_blocks(record, given)
            for arm, n in enumerate(given.n if not given.blocks else ()):
                if n:
                    for r, values in enumerate((record.effect, record.harm)):
                        self._advance(record, given, arm, r, values)
            if not given.closed:
                return
            self.cohort += 1
            self.at[:] = 0
            self.looked = [-1.0] * len(self.looked)

    def _take_blocks(self, record: Record, given: Given) -> None:
        """Blocks of a cohort, once all of them are in: their sums, and their squares where they were told. Who came
        first is not known, so that no drift is seen."""
        other = record.told["dose"]  # where that was not the one assigned
        for subject, arm in given.subjects() if given.closed else ():
            if subject in record.gone or other[subject] == other[subject] or not record.complete(subject):
                continue
            dose, block = given.dose[arm], record.reading(subject)
            band = int(np.searchsorted(self.edges[arm], dose))
            for r, values in enumerate((record.effect, record.harm)):
                self.bands[arm][r][band] = self.bands[arm][r][band].plus(Sums.of(block["n"], dose, values[subject]))
                if self.slopes:
                    self.slopes.add_block(arm, r, dose, block["n"], values[subject])
                if (spread := block.get(f"{READINGS[r]}_spread")) is not None:
                    self.noise[arm, r] += block["n"] - 1, spread
            self.touched.add(arm)

    def _advance(self, record: Record, given: Given, arm: int, r: int, values: Any) -> None:
        subjects, old, gone, other = self._subjects(given)[arm], int(self.at[arm, r]), record.gone, record.told["dose"]
        n, new = len(subjects), old
        while new < n and (given.closed or values[subjects[new]] == values[subjects[new]] or subjects[new] in gone):
            new += 1
        band, dose = int(np.searchsorted(self.edges[arm], given.dose[arm])), given.dose[arm]
        if r == 1:
            self.after.pop(arm, None)
            if new < n and (low := self._lowest(record)) is not None:
                self._look_past(record, subjects[new:], arm, band, dose, low)
        if new == old:
            return
        self.at[arm, r] = new
        self.touched.add(arm)

        def read(begin: int, end: int) -> Any:
            """Not those who dropped out or had another dose."""
            found = [math.nan if s in gone or other[s] == other[s] else values[s] for s in subjects[begin:end]]
            return np.array(found)

        fresh = read(old, new)
        fresh = fresh[~np.isnan(fresh)]
        if self.slopes:
            self.slopes.add(arm, r, dose, fresh)
        bands = self.bands[arm][r]
        bands[band] = bands[band].plus(Sums.of(len(fresh), dose, float(fresh.sum())))
        pairs = read(old - old % 2, new - new % 2)
        pair(self.noise[arm, r], pairs[::2], pairs[1::2], 2)
        h = given.n[arm] // 2  # for the drift, place j of the first half goes with place j of the second
        begin, end = max(old - h, 0), min(new - h, h)
        if end > begin:
            pair(self.drift[arm, r], read(begin, end), read(begin + h, end + h), 1)

    def _subjects(self, given: Given) -> list[list[int]]:
        """Of each arm of a cohort, in the order of assignment."""
        of = given.number, len(given.later)
        if self.places[0] != of:
            self.places = of, [[] for _ in given.n]
            for subject, arm in given.subjects():
                self.places[1][arm].append(subject)
        return self.places[1]

    def _look_past(self, record: Record, subjects: Sequence[int], arm: int, band: int, dose: float, low: float) -> None:
        """Harms after one that is missing, which is taken at its lowest, if few are."""
        harm, other, seen, missing, extra = record.harm, record.told["dose"], list[float](), 0, 0
        for s in subjects:
            if s in record.gone or other[s] == other[s]:
                continue
            if harm[s] == harm[s]:
                seen += [low] * extra + [harm[s]]
                missing, extra = missing + extra, 0
            else:
                extra += 1
            if missing + extra > MISSING:
                break
        if seen:
            self.after[arm] = band, Sums.of(len(seen), dose, math.fsum(seen))
            self.touched.add(arm)

    def _lowest(self, record: Record) -> float | None:
        ranges = record.setup.get("plausible") or {}
        if self.binary[1] or "harm" in ranges:
            return 0.0 if self.binary[1] else float(ranges["harm"][0])
        return -5 * self.sigma[1] if self.problem.shape == "linear" else None

    def doubts(self) -> Iterator[Alarm]:
        """Whether, where an arm is to be named, a start dose seems to be unsafe: then none is."""
        found = [self._start(arm) for arm in range(len(self.problem.arms))]
        if one_or_all(found) >= math.log(1 / DOUBT):
            arm = found.index(max(found))
            yield self._alarm("start", arm, 1, self._words("start", arm))

    def alarms(self) -> Iterator[Alarm]:
        """What is out of bounds now; in long studies not after each reading but after a twentieth more of an arm's."""
        changed = False
        for arm in sorted(self.touched):
            count = sum(s.n for s in self.bands[arm][1]) + (self.after[arm][1].n if arm in self.after else 0.0)
            if abs(count - self.looked[arm]) >= 0.05 * count:
                self.known[arm], self.looked[arm], changed = self._look(arm), count, True
        if changed or self.alarmed:
            self.alarmed = [*self._joint(), *(alarm for arm in sorted(self.touched) for alarm in self._alone(arm))]
        if not self.alarmed:
            self.touched.clear()
        yield from self.alarmed

    def _look(self, arm: int) -> dict[Any, float]:
        """Log of an arm's wealth in each test; of those with a number that is not known, at most that."""
        found: dict[Any, float] = {"start": self._start(arm), "certified": self._certified(arm)}
        groups = [(running(bands), running(bands[::-1])) for bands in self.bands[arm]]
        return found | {key: self._contrast(arm, key, groups[key[1]], True) for key in self.keys}

    def _joint(self) -> Iterator[Alarm]:
        """Half of the stake is on one arm, half on all of them: the product of their bets."""
        for watch in ("start", "certified"):
            found = [known.get(watch, 0.0) for known in self.known]
            if one_or_all(found) >= math.log(1 / self.level[watch]):
                arm = found.index(max(found))
                yield self._alarm(watch, arm, 1, self._words(watch, arm))
        for r, sign, share in LINE if self.slopes else ():
            log, arm, j = self.slopes.evidence(r, sign) if self.slopes else (0.0, 0, 0)
            if log >= math.log(1 / (share * self.level["line"])):
                yield self._alarm("line", arm, r, self._words(("line", r, j, sign), arm))
        goal = math.log(max(len(self.keys), 1) / self.level["falling"])
        for key in self.keys:
            most = [known.get(key, 0.0) for known in self.known]
            if max(most) < goal and sum(most) < goal:
                continue
            each = [bands[key[1]] for bands in self.bands]
            found = [self._contrast(arm, key, (running(b), running(b[::-1])), False) for arm, b in enumerate(each)]
            if one_or_all(found) >= goal:
                arm = found.index(max(found))
                yield self._alarm(key[0], arm, key[1], self._words(key, arm))

    def _alone(self, arm: int) -> Iterator[Alarm]:
        d = len(self.problem.arms)
        for r, reading in enumerate(READINGS):
            pairs, squares = self.noise[arm, r].tolist()
            if noise_evidence(pairs, squares / self.sigma[r] ** 2) >= math.log(2 * d / self.level["noise"]):
                said = f"{reading} scatters with sigma about {math.sqrt(squares / pairs):.4g}"
                yield self._alarm("noise", arm, r, f"{said}, declared {self.sigma[r]:.4g}")
            pairs, change = self.drift[arm, r].tolist()
            both = [one_sided(sign * change / self.sigma[r], pairs, 1.0) for sign in (1, -1)]
            if pairs and mean(both) >= math.log(2 * d / self.level["drift"]):
                by = change * math.sqrt(2) / pairs
                yield self._alarm(
                    "drift", arm, r, f"{reading} changes over time: by about {by:+.3g} within half a cohort"
                )

    def _alarm(self, watch: str, arm: int, r: int, said: str) -> Alarm:
        return Alarm(watch, arm, READINGS[r], f"{watch}: {self.problem.names[arm]}: {said}")

    def _harms(self, arm: int) -> list[Sums]:
        bands = list(self.bands[arm][1])
        if arm in self.after:
            band, more = self.after[arm]
            bands[band] = bands[band].plus(more)
        return bands

    def _start(self, arm: int) -> float:
        """Harm at the start dose is at most the limit, so at dose a at most a limit/start, or limit + K (a - start)."""
        p, it = self.problem, self.problem.arms[arm]
        groups = running(self._harms(arm))
        if p.shape == "linear":
            return mean([self.wealth(arm, 1, s, 0.0, p.limit / it.start, 1) for s in (groups[0], groups[-1])])
        if p.shape == "levels":
            return self.wealth(arm, 1, groups[0], p.limit, 0.0, 1)
        return mean([self.wealth(arm, 1, s, p.limit - it.lipschitz * it.start, it.lipschitz, 1) for s in groups])

    def _certified(self, arm: int) -> float:
        """Harm at doses that were certified is at most limit + slack."""
        if self.problem.shape == "levels":
            return 0.0
        groups = running(self._harms(arm)[::-1])
        return mean([self.wealth(arm, 1, s, self.problem.ceiling, 0.0, 1) for s in groups])

    def _contrast(self, arm: int, key: Key, groups: tuple[list[Sums], list[Sums]], quick: bool) -> float:
        """Log of the wealth that readings above a dose are higher (lower) than those up to it say, at the least
        favourable m: that is the mean, or for `steep` m + K (a - the dose). If `quick`, at an m that is nearly so."""
        watch, r, j, sign = key
        edge, l, h = float(self.edges[arm][j]), groups[0][j], groups[1][BANDS - j - 1]
        if not l.n or not h.n:
            return 0.0
        K = self.problem.arms[arm].lipschitz if watch == "steep" else 0.0

        def total(m: float) -> float:
            return sum(self.wealth(arm, r, s, m - K * edge, K, side) for s, side in ((l, -sign), (h, sign)))

        (a, va), (b, vb) = (((s.x - K * (s.a - edge * s.n)) / s.n, s.n) for s in (l, h))
        begin, end = min(a, b), max(a, b)
        for _ in range(0 if quick else 40):  # the sum is convex in m
            one, two = begin + 0.382 * (end - begin), begin + 0.618 * (end - begin)
            begin, end = (begin, two) if total(one) <= total(two) else (one, end)
        return total((va * a + vb * b) / (va + vb) if quick else (begin + end) / 2)

    def _words(self, key: Any, arm: int) -> str:
        p, it = self.problem, self.problem.arms[arm]
        every = running(self._harms(arm))
        if key == "start":
            s = every[-1] if p.shape == "linear" else next(s for s in every if s.n)
            mean = it.start * s.ax / s.aa if p.shape == "linear" else s.x / s.n
            return f"harm at the start dose {it.label(it.start)} is about {mean:.4g}, above the limit {p.limit:.4g}"
        if key == "certified":
            s = next(s for s in reversed(self._harms(arm)) if s.n)
            return f"harm at doses of about {s.a / s.n:.4g} is about {s.x / s.n:.4g}, and {p.ceiling:.4g} is allowed"
        watch, r, j, _ = key
        l, h = running(self.bands[arm][r])[j], running(self.bands[arm][r][::-1])[BANDS - j - 1]
        if not h.n:  # none were given more: a slope below 0
            return f"{READINGS[r]} per dose is about {l.ax / l.aa:.4g}"
        was, now = (s.ax / s.aa if watch == "line" else s.x / s.n for s in (l, h))
        what = f"{READINGS[r]} per dose" if watch == "line" else READINGS[r]
        edge = self.edges[arm][j] if it.labels is None else math.floor(self.edges[arm][j])
        said = f"{what} goes from about {was:.4g} at doses up to {it.label(edge)} to {now:.4g} above"
        return f"{said}: faster than {it.lipschitz:g} a unit" if watch == "steep" else said

    def wealth(self, arm: int, r: int, s: Sums, fixed: float, slope: float, sign: int) -> float:
        """Log of the wealth from bets that readings are above (below) a mean of fixed + slope a."""
        if not s.n:
            return 0.0
        if self.binary[r]:
            q = min(max((fixed * s.n + slope * s.a) / s.n, 0.0), 1.0)  # the product is least where all are at one dose
            logs = [sign * g * s.x - s.n * math.log1p(q * math.expm1(sign * g)) for g in ODDS]
            return mean(logs)
        if self.problem.shape == "linear" and not fixed:  # weighted by the dose: more of it tells more of a slope
            unit = self.problem.arms[arm].start ** 2
            return one_sided(sign * (s.ax - slope * s.aa) / self.sigma[r], s.aa, unit)
        return one_sided(sign * (s.x - fixed * s.n - slope * s.a) / self.sigma[r], s.n, 1.0)


def _edges(problem: Problem, arm: int) -> Any:
    """Upper ends of the bands: the start dose, then eight equal steps (equal ratios in the linear shape)."""
    it = problem.arms[arm]
    if problem.shape == "linear":
        ratio = it.largest / it.start if math.isfinite(it.largest) else 2.0**BANDS
        return it.start * np.maximum(ratio, 1.0) ** (np.arange(BANDS) / BANDS)
    return it.start + (it.largest - it.start) * np.arange(BANDS) / BANDS


__all__ = ["WATCHES", "Alarm", "Watches"]
