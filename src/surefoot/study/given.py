"""A cohort that was released to subjects, and what came back."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..designs.base import Cohort, Outcome
from . import guard

NAN = math.nan


def raw(seed: int, cohort: int, stream: int, count: int) -> Any:
    """64-bit draws, the same under every NumPy: the streams of bit generators never change, those of `random` may."""
    return np.random.PCG64(np.random.SeedSequence([seed, cohort, stream])).random_raw(count)


def same(a: float, b: float) -> bool:
    """But for rounding."""
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


class Given:
    """A cohort that was released: who gets what, and what came back.

    An arm's pulls have consecutive places, in the order of time; `place` maps the cohort's subjects to them in the
    randomised order. A subject who takes over from one who dropped out takes over the place.
    """

    def __init__(self, number: int, first: int, data: Mapping[str, Any], seed: int, at: str, seq: int):
        self.number, self.first, self.at, self.seq = number, first, at, seq
        self.dose: list[float] = data["dose"]
        self.n: list[int] = data["n"]
        self.bound: list[float | None] = data["bound"]
        self.size = sum(self.n)
        self.offset = [0, *accumulate(self.n)]
        arms = np.repeat(np.arange(len(self.n)), self.n)
        shuffled = arms[np.argsort(raw(seed, number, 0, self.size), kind="stable")]
        place = np.empty(self.size, np.int64)
        place[np.argsort(shuffled, kind="stable")] = np.arange(self.size)
        self.place: list[int] = place.tolist()
        self.effect: array[float] = array("d", [NAN]) * self.size  # by place
        self.harm: array[float] = array("d", [NAN]) * self.size
        self.other: dict[int, float] = {}  # place -> the dose given, where it is not the one assigned
        self.voids: dict[int, int] = {}  # place -> subject, for those who dropped out and count as a reading
        self.vacant: dict[int, int] = {}  # place -> subject who dropped out, until it is decided how that counts
        self.later: dict[int, int] = {}  # subject -> place, for those who took over a place
        self.holder: dict[int, int] = {}  # place -> the last of them
        self.left = self.size  # places that still wait for a reading
        self.next = 0  # no assignment before this one is open
        self.closed = False
        self.asked: tuple[tuple[float, int], ...] = ()  # what the design asks for at this point, by what is now known
        self._round: guard.Round | None = None

    def arm(self, place: int) -> int:
        return bisect_right(self.offset, place) - 1

    def where(self, subject: int) -> int:
        return self.later[subject] if subject in self.later else self.place[subject - self.first]

    def subjects(self) -> Iterator[tuple[int, int]]:
        """All who ever were assigned, with their places."""
        yield from ((self.first + s, place) for s, place in enumerate(self.place))
        yield from self.later.items()

    def read(self, place: int) -> bool:
        """Whether both readings are there."""
        return not (math.isnan(self.effect[place]) or math.isnan(self.harm[place]))

    def holds(self, place: int, subject: int) -> bool:
        """Whether the place is still this subject's (and not vacated or taken over)."""
        return place not in self.vacant and place not in self.voids and self.holder.get(place, subject) == subject

    @property
    def main(self) -> list[float]:
        """The doses assigned. One within 1e-9 of what the design asks for is what it asks for: under another CPU or
        NumPy its own numbers may differ in the last digit."""
        return [a if same(a, b) else b for (a, _), b in zip(self.asked, self.dose, strict=True)]

    def readings(self) -> Iterator[tuple[int, float, float, float]]:
        """Complete ones: arm, dose given, effect, harm."""
        for arm, dose in enumerate(self.main):
            for place in range(self.offset[arm], self.offset[arm + 1]):
                if self.read(place):
                    yield arm, self.other.get(place, dose), self.effect[place], self.harm[place]

    @property
    def round(self) -> guard.Round:
        if self._round is None:
            self._round = guard.Round(self.asked, guard.summed(self.readings()))
        return self._round

    def ask(self, asked: tuple[tuple[float, int], ...]) -> None:
        self.asked, self._round = asked, None

    def outcomes(self) -> Iterator[tuple[Cohort, Outcome]]:
        """What came back, for the design: first what was given at another dose than assigned, then the rest."""
        d, main = len(self.n), self.main
        if not self.other and self.left == 0:
            slices = [slice(self.offset[i], self.offset[i + 1]) for i in range(d)]
            yield _told(
                main, self.n, [math.fsum(self.effect[s]) for s in slices], [math.fsum(self.harm[s]) for s in slices]
            )
            return
        groups: list[dict[float, tuple[list[float], list[float]]]] = [{} for _ in range(d)]
        for arm, dose, effect, harm in self.readings():
            effects, harms = groups[arm].setdefault(dose, ([], []))
            effects.append(effect)
            harms.append(harm)
        usual = [groups[i].pop(main[i], ([], [])) for i in range(d)]
        for layer in range(max(map(len, groups))):
            rows = [
                sorted(group.items())[layer] if layer < len(group) else (main[i], ([], []))
                for i, group in enumerate(groups)
            ]
            yield _layer([dose for dose, _ in rows], [lists for _, lists in rows])
        yield _layer(main, usual)


def _layer(dose: list[float], lists: Sequence[tuple[list[float], list[float]]]) -> tuple[Cohort, Outcome]:
    return _told(dose, [len(e) for e, _ in lists], [math.fsum(e) for e, _ in lists], [math.fsum(h) for _, h in lists])


def _told(dose: list[float], n: list[int], effect: list[float], harm: list[float]) -> tuple[Cohort, Outcome]:
    count = np.array([n], np.int64)
    return Cohort(np.array([dose]), count), Outcome(count, np.array([effect]), np.array([harm]))
