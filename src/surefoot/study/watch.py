"""Assumption watches: anytime-valid tests on the recorded readings that can only pause a study, never move it.

All of them together ever fire in a study that keeps to its assumptions with probability at most `level`. Half of the
level goes to confidence sequences for the mean readings in bands of doses (Robbins' normal mixture), all of which hold
together; from these follow five watches at no further cost. A quarter goes to `noise`, a quarter to `drift`.

An arm's readings are taken in the order of assignment, and only as far as none is missing: it does not matter in which
order they arrive, and late ones may be as informative as they like. A test may be looked at as often as one wants.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem import Problem

if TYPE_CHECKING:
    from .checker import Given, Record

DIGEST = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()  # another version may see what this one does not

BANDS = 8  # of doses above the start dose; the start dose is band 0
RHO = 50.0  # pulls after which the mixture is tightest
TILTS = np.array([0.1, 0.3, 0.6, 0.9])  # of the noise test
READINGS = ("effect", "harm")

WATCHES = {
    "start": "harm at the start dose is above the limit",
    "certified": "harm is above what is allowed at doses that were certified",
    "falling": "a reading falls as the dose rises",
    "steep": "harm rises faster with the dose than the Lipschitz constant says (monotonic shape)",
    "line": "readings are off the line through 0 (linear shape)",
    "noise": "readings scatter more than the declared sigma",
    "drift": "readings at one dose change over time",
}


class Alarm(NamedTuple):
    watch: str
    arm: int
    reading: str
    level: float
    message: str


class Watches:
    """Sums by arm and reading; `update` takes in what is new, `alarms` looks at the arms that changed."""

    def __init__(self, problem: Problem, level: float):
        d = len(problem.arms)
        self.problem = problem
        self.level = {name: level / (4 if name in ("noise", "drift") else 2) for name in WATCHES}
        self.sigma = [noise.scale for noise in problem.noises]
        self.edges = [_edges(problem, i) for i in range(d)]
        self.n = np.zeros((d, 2, BANDS + 1))  # readings, their sum and the sum of their doses, by band
        self.sum = np.zeros((d, 2, BANDS + 1))
        self.dose = np.zeros((d, 2, BANDS + 1))
        self.noise = np.zeros((d, 2, 2))  # pairs, and the sum of their squared differences / 2
        self.drift = np.zeros((d, 2, 2))  # pairs, and the sum of their differences / sqrt(2)
        self.cohort = 0  # this many are taken in wholly
        self.at = np.zeros((d, 2), np.int64)  # and of the next one, so many places of each arm
        self.touched: set[int] = set()

    def update(self, record: Record) -> None:
        for given in record.cohorts[self.cohort :]:
            for arm, n in enumerate(given.n):
                if n:
                    for r, values in enumerate((record.effect, record.harm)):
                        self._advance(record, given, arm, r, values)
            if not given.closed:
                return
            self.cohort += 1
            self.at[:] = 0

    def _advance(self, record: Record, given: Given, arm: int, r: int, values: Any) -> None:
        subjects, old = given.of[arm], int(self.at[arm, r])
        n, new, gone = len(subjects), old, record.gone
        if given.closed:
            new = n
        while new < n and (values[subjects[new]] == values[subjects[new]] or subjects[new] in gone):
            new += 1
        if new == old:
            return
        self.at[arm, r] = new
        self.touched.add(arm)
        h = n // 2  # for the drift, place j of the first half goes with place j of the second
        skip = gone.keys() | record.other.keys()  # not readings of this dose

        def read(begin: int, end: int) -> Any:
            return np.array([math.nan if s in skip else values[s] for s in subjects[begin:end]])

        band, dose = int(np.searchsorted(self.edges[arm], given.dose[arm])), given.dose[arm]
        fresh = read(old, new)
        fresh = fresh[~np.isnan(fresh)]
        self.n[arm, r, band] += len(fresh)
        self.sum[arm, r, band] += fresh.sum()
        self.dose[arm, r, band] += dose * len(fresh)
        pairs = read(old - old % 2, new - new % 2)
        _pair(self.noise[arm, r], pairs[::2], pairs[1::2], 2)
        begin, end = max(old - h, 0), min(new - h, h)
        if end > begin:
            _pair(self.drift[arm, r], read(begin, end), read(begin + h, end + h), 1)

    def alarms(self) -> Iterator[Alarm]:
        """What is out of bounds now, of the arms that changed since all was well."""
        for arm in sorted(self.touched):
            found = list(self._look(arm))
            if not found:
                self.touched.discard(arm)
            yield from found

    def _look(self, arm: int) -> Iterator[Alarm]:
        p, it = self.problem, self.problem.arms[arm]
        d = len(p.arms)

        def alarm(watch: str, reading: str, message: str) -> Alarm:
            return Alarm(watch, arm, reading, self.level[watch], f"{watch}: {it.name}: {message}")

        alpha = self.level["start"] / (d * 2 * (BANDS + 1))
        for r, reading in enumerate(READINGS):
            seen = np.flatnonzero(self.n[arm, r])
            n = self.n[arm, r, seen]
            mean, dose = self.sum[arm, r, seen] / n, self.dose[arm, r, seen] / n
            radius = self.sigma[r] * np.array([mixture_radius(k, alpha) for k in n.tolist()]) / n
            low, high = mean - radius, mean + radius
            if reading == "harm":
                if len(seen) and seen[0] == 0 and low[0] > p.limit:
                    said = (
                        f"harm at the start dose {it.start:.4g} is at least {low[0]:.4g}, above the limit {p.limit:.4g}"
                    )
                    yield alarm("start", reading, said)
                over = np.flatnonzero(low > p.ceiling)
                if len(over):
                    k = over[0]
                    said = (
                        f"harm at doses of about {dose[k]:.4g} is at least {low[k]:.4g}, and {p.ceiling:.4g} is allowed"
                    )
                    yield alarm("certified", reading, said)
            if len(seen) > 1:
                fall = low[:, None] - high[None, :]  # of the higher dose against the lower one: must not be above 0
                i, j = np.unravel_index(np.argmax(np.triu(fall, 1)), fall.shape)
                if i < j and fall[i, j] > 0:
                    said = f"{reading} falls from at least {low[i]:.4g} at dose {dose[i]:.4g}"
                    yield alarm("falling", reading, f"{said} to at most {high[j]:.4g} at {dose[j]:.4g}")
                if p.shape == "linear":
                    i, j = np.argmax(low / dose), np.argmin(high / dose)
                    if low[i] / dose[i] > high[j] / dose[j]:
                        said = f"{reading} per dose is at least {low[i] / dose[i]:.4g} at {dose[i]:.4g}"
                        yield alarm("line", reading, f"{said} and at most {high[j] / dose[j]:.4g} at {dose[j]:.4g}")
                elif reading == "harm":
                    rise = low[None, :] - high[:, None] - it.lipschitz * (dose[None, :] - dose[:, None])
                    i, j = np.unravel_index(np.argmax(np.triu(rise, 1)), rise.shape)
                    if i < j and rise[i, j] > 0:
                        said = f"harm rises by at least {low[j] - high[i]:.4g} from dose {dose[i]:.4g} to {dose[j]:.4g}"
                        yield alarm("steep", reading, f"{said}: faster than {it.lipschitz:g} a unit")
            pairs, squares = self.noise[arm, r]
            if noise_evidence(pairs, squares / self.sigma[r] ** 2) >= math.log(2 * d / self.level["noise"]):
                said = f"{reading} scatters with sigma about {math.sqrt(squares / pairs):.4g}"
                yield alarm("noise", reading, f"{said}, declared {self.sigma[r]:.4g}")
            pairs, change = self.drift[arm, r]
            if pairs and abs(change) > self.sigma[r] * mixture_radius(pairs, self.level["drift"] / (2 * d)):
                said = (
                    f"{reading} changes over time: by about {change * math.sqrt(2) / pairs:+.3g} within half a cohort"
                )
                yield alarm("drift", reading, said)


def _pair(into: Any, a: Any, b: Any, power: int) -> None:
    """Add to a number of pairs and a sum; a pair's difference / sqrt(2) has mean 0 and the sigma of one reading."""
    difference = b - a
    difference = difference[~np.isnan(difference)] / math.sqrt(2)
    into[0] += len(difference)
    into[1] += (difference**power).sum()


def mixture_radius(n: float, alpha: float) -> float:
    """Robbins' normal mixture: P(some n has |sum of n 1-sub-Gaussian, mean-0 terms| above this) <= alpha."""
    return math.sqrt((n + RHO) * (2 * math.log(1 / alpha) + math.log1p(n / RHO)))


def noise_evidence(pairs: float, squares: float) -> float:
    """The log of a supermartingale: a 1-sub-Gaussian mean-0 D has E exp(s D^2/2) <= (1 - s)^(-1/2); mixed over s."""
    logs = TILTS * squares / 2 + pairs * np.log1p(-TILTS) / 2
    return float(np.logaddexp.reduce(logs) - math.log(len(TILTS)))


def _edges(problem: Problem, arm: int) -> Any:
    """Upper ends of the bands: the start dose, then eight equal steps (equal ratios in the linear shape)."""
    it = problem.arms[arm]
    if problem.shape == "linear":
        ratio = it.largest / it.start if math.isfinite(it.largest) else 2.0**BANDS
        return it.start * np.maximum(ratio, 1.0) ** (np.arange(BANDS) / BANDS)
    return it.start + (it.largest - it.start) * np.arange(BANDS) / BANDS
