"""The bets of the watches: each gives the log of a wealth that stays below 1/alpha for ever with probability 1 - alpha
in a study that keeps to its assumptions: Theorem 5 of docs/guarantees.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

RHO = (10.0, 200.0, 4000.0)  # pulls (at the start dose) after which a mixture is tightest; they share a stake
TILTS = np.array([0.1, 0.3, 0.6, 0.9])  # of the noise test
ODDS = [2.0 * 2.0**-k for k in range(7)]  # bets on binary readings, in log odds
SIZES = 0.8 * 2.0 ** -np.arange(4.0)  # of bets on slopes, readings being in units of sigma and doses of the start
PARTS = np.array([0.25, 0.06])  # what a reading at a higher dose weighs: there are many, and few at lower doses


class Sums(NamedTuple):
    """Over readings x at doses a."""

    n: float = 0.0
    a: float = 0.0
    aa: float = 0.0
    x: float = 0.0
    ax: float = 0.0

    def plus(self, other: Sums) -> Sums:
        return Sums(*map(sum, zip(self, other, strict=True)))

    @classmethod
    def of(cls, n: float, dose: float, x: float) -> Sums:
        return cls(n, n * dose, n * dose * dose, x, x * dose)


def one_sided(s: float, v: float, unit: float) -> float:
    """Robbins' normal mixture, one-sided: s a sum of 1-sub-Gaussian mean-0 terms with weights, v of their squares."""
    logs = []
    for rho in RHO:
        all_, z = v + rho * unit, s / math.sqrt(v + rho * unit)
        tail = math.log(0.5 * math.erfc(-z / math.sqrt(2))) if z > -30 else -0.5 * z * z - math.log(-z * 2.5066282746)
        logs.append(0.5 * math.log(4 * rho * unit / all_) + 0.5 * z * z + tail)
    return mean(logs)


def mean(logs: Sequence[float]) -> float:
    """The log of the mean of exponentials."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs) / len(logs))


def running(bands: Sequence[Sums]) -> list[Sums]:
    found, total = [], Sums()
    for s in bands:
        total = total.plus(s) if s.n else total
        found.append(total)
    return found


def pair(into: Any, a: Any, b: Any, power: int) -> None:
    """Add to a number of pairs and a sum; a pair's difference / sqrt(2) has mean 0 and the sigma of one reading."""
    difference = b - a
    difference = difference[~np.isnan(difference)] / math.sqrt(2)
    into[0] += len(difference)
    into[1] += (difference**power).sum()


def noise_evidence(pairs: float, squares: float) -> float:
    """The log of a supermartingale: a 1-sub-Gaussian mean-0 D has E exp(s D^2/2) <= (1 - s)^(-1/2); mixed over s."""
    logs = TILTS * squares / 2 + pairs * np.log1p(-TILTS) / 2
    return mean(logs.tolist())


def one_or_all(logs: Sequence[float]) -> float:
    return mean([mean(logs), math.fsum(logs)])


class Slopes:
    """Whether readings per dose differ between lower and higher doses, of each arm: a line through 0 has one, which
    cancels (Theorem 5, lemma 3). Edges, parts and sizes share the stake, and are the same for all arms: if the shape is
    wrong it is so in many of them."""

    def __init__(self, edges: Any, starts: Any, sigma: Sequence[float]):
        self.edges, self.starts, self.sigma = edges, starts, sigma
        self.sums = np.zeros((3, len(starts), 2, len(edges[0]), len(PARTS)))  # B, S, V by arm, reading, edge, part

    def add(self, arm: int, r: int, dose: float, readings: Any) -> None:
        """Readings at one dose, in their order."""
        if not len(readings):
            return
        a, z = dose / self.starts[arm], readings / self.sigma[r]
        n, total = len(z), np.concatenate([[0.0], np.cumsum(z)])
        B, S, V = self.sums[:, arm, r]
        low = (dose <= self.edges[arm])[:, None]
        whole = np.minimum(B // (PARTS * a * a), n).astype(int)  # this many have their full weight
        rest = np.where(whole < n, B - whole * PARTS * a * a, 0.0) / a  # and the next one this
        then = np.append(z, 0.0)[whole]
        left = np.where(whole < n, 0.0, np.maximum(B - n * PARTS * a * a, 0.0))
        higher = left, S + PARTS * a * total[whole] + rest * then, V + whole * (PARTS * a) ** 2 + rest**2
        self.sums[:, arm, r] = np.where(low, (B + n * a * a, S - a * total[-1], V + n * a * a), higher)

    def add_block(self, arm: int, r: int, dose: float, n: float, total: float) -> None:
        """The sum of n readings at one dose, which all have one weight."""
        a, z = dose / self.starts[arm], total / self.sigma[r]
        B, S, V = self.sums[:, arm, r]
        w = np.where(dose <= self.edges[arm][:, None], -a, np.minimum(PARTS * a, B / (n * a)))
        self.sums[:, arm, r] = np.maximum(B - n * w * a, 0.0), S + w * z, V + n * w * w

    def evidence(self, r: int, sign: int) -> tuple[float, int, int]:
        """Log of the wealth that readings per dose rise (fall) with the dose, half of it on single arms and half on all
        together; and the arm and the edge that show it most."""
        B, S, V = self.sums[:, :, r, :, :, None]
        logs = sign * SIZES * S - 0.5 * SIZES**2 * V
        logs = np.where((B > 0) & (sign < 0), -1e6, logs)  # nothing is known of its mean then
        alone = [mean(one.ravel().tolist()) for one in logs]
        arm = alone.index(max(alone))
        edge = int(logs[arm].max(axis=(1, 2)).argmax())
        return mean([mean(alone), mean(logs.sum(axis=0).ravel().tolist())]), arm, edge
