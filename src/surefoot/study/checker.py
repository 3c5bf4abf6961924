"""The checker: whether a study holds, from its export alone, with nothing but Python 3.11.

    python checker.py study.json [--head HASH]

It reads the events of a study one after the other and derives anew: the chain of hashes, that every event may follow
those before it, that every dose given was certified by readings told before it was released, and that the ending
follows from the readings at delta. Then it says in words what was concluded and what happened on the way.

It imports nothing of the package, and the package uses it as its guard: a study releases a cohort, and names an arm,
only if this very code agrees. It holds three things: the chain (`broken_link`), what events amount to (`Record`), and
the theorems (`THEOREMS`), one class each, in plain numbers. It says nothing about how doses are chosen: no theorem
does. Exit codes: 0 it holds, 1 it does not, 2 it cannot be read.
"""

from __future__ import annotations

import copy
import functools
import gc
import hashlib
import json
import math
import random
import sys
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

ORIGIN = "0" * 64  # what the first event has as the hash of the one before
CLOSE = 1e-9  # how far two computations of the same number may differ, relatively
NAN = math.nan
EFFECT, HARM = 0, 1
READINGS, SPREADS = ("effect", "harm"), ("effect_spread", "harm_spread")
SIGMA = 0.1  # share of delta: upper bounds on sigmas that are not known
VARY = (0.9, 0.75, 0.5, 0.3, 0.15, 0.06, 0.02)  # sizes of bets that learn how bounded readings vary
WIDER = [
    0.5 * (1.25**k - 1) for k in (0.03, 0.06, 0.12, 0.25, 0.5, 1, 2, 3, 4.5, 7, 11, 16, 20)
]  # bets that squares are small

Came = tuple[float, ...]  # how many readings, sum of effects, sum of harms; and where sigma is not known their squares
Sums = dict[tuple[int, float], Came]  # by arm and dose
Stakes = Sequence[float | None] | None  # of an arm


class Broken(ValueError):
    """Something that does not follow."""


def not_a_number(name: str) -> float:
    raise Broken(f"{name} is no number that a study may hold")


QUOTE, DECODE = json.encoder.encode_basestring_ascii, json.JSONDecoder(parse_constant=not_a_number).decode


class Event(NamedTuple):
    """One row of the journal. `payload` is the JSON text that was hashed."""

    study: str
    seq: int
    at: str  # UTC
    actor: str
    kind: str
    version: int
    reason: str | None
    key: str | None  # of a request that may be retried
    payload: str
    prev: str
    hash: str

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = DECODE(self.payload)
        return found

    def seal(self) -> str:
        """The hash of everything in the event but the hash itself; `prev` ties it to all events before."""
        parts = [QUOTE(x) if type(x) is str else "null" if x is None else str(x) for x in self[:-1]]
        return hashlib.sha256(f"[{', '.join(parts)}]".encode()).hexdigest()  # a JSON list, made fast


def broken_link(events: Sequence[Event]) -> tuple[int, str] | None:
    """The first event that does not hold in the chain, and why; None where all do."""
    hash_, study = ORIGIN, events[0].study if events else ""
    for seq, event in enumerate(events, 1):
        if event.seq != seq or event.study != study:
            return seq, f"event {seq} is missing: number {event.seq} stands in its place"
        if event.prev != hash_:
            return seq, f"event {seq} does not follow the one before it: the hashes differ"
        if event.seal() != event.hash:
            return seq, f"event {seq} was changed: its content does not have its hash"
        hash_ = event.hash
    return None


def need(holds: Any, *words: Any) -> None:
    if not holds:
        raise Broken(" ".join(map(str, words)))


def near(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= CLOSE * max(abs(a), abs(b))


# What the events amount to


class Given:
    """A cohort that was released: which subjects get which arm at which dose."""

    def __init__(self, number: int, first: int, data: Mapping[str, Any], seed: int, at: str = "", seq: int = 0,
                 blocks: bool = False):  # fmt: skip
        self.number, self.first, self.seed, self.at, self.seq = number, first, seed, at, seq
        self.dose: list[float] = data["dose"]
        self.n: list[int] = data["n"]
        self.stakes: list[Any] = data.get("stakes") or [None] * len(self.n)
        self.certified: list[float | None] = data.get("certified") or [None] * len(self.n)
        self.blocks = blocks  # whether all subjects of an arm are told as one
        self.size = self.left = self.harms = sum(map(bool, self.n) if blocks else self.n)
        # left: readings that have not come; harms: of which not even the harm has
        self.later: dict[int, int] = {}  # subject who took the place of one who dropped out -> arm
        self.closed = self.withdrawn = False
        self.came: Sums = {}  # what came back, by arm and dose given; known once it is closed

    @cached_property
    def arms(self) -> list[int]:
        """In the order of subjects, which the seed decides."""
        arms = [arm for arm, n in enumerate(self.n) for _ in range(min(n, 1) if self.blocks else n)]
        draw = random.Random(f"surefoot {self.seed} {self.number}").random  # Python promises that these never change
        keys = [draw() for _ in arms]
        return [arms[k] for k in sorted(range(self.size), key=keys.__getitem__)]

    def arm(self, subject: int) -> int:
        return self.later[subject] if subject in self.later else self.arms[subject - self.first]

    def subjects(self) -> Iterator[tuple[int, int]]:
        """All who ever were assigned, and their arms."""
        yield from enumerate(self.arms, self.first)
        yield from self.later.items()


class Record:
    """What the events so far amount to. `take` raises where one cannot follow."""

    def __init__(self) -> None:
        self.seq, self.hash = 0, ORIGIN
        self.setup: dict[str, Any] = {}  # the first event
        self.cohorts: list[Given] = []
        self.effect, self.harm = array("d", [NAN]), array("d", [NAN])  # by subject, from 1 on
        self.other: dict[int, float] = {}  # subject -> the dose given, where it is not the one assigned
        self.block: dict[int, dict[str, float]] = {}  # of a block: n, and how its effects and harms vary
        self.done = 0  # so many cohorts are evidence, one after the other
        self.gone: dict[int, str] = {}  # subject who dropped out -> open, counts (as a reading), replaced
        self.later: dict[int, Given] = {}  # subjects who took over from one who dropped out -> their cohort
        self.paused: list[Event] = []  # since the last resume; empty while running
        self.stopped: Event | None = None
        self.concluded: dict[str, Any] | None = None  # the ending, while nothing came after it that changes it
        self.notes: list[Event] = []  # everything but readings and cohorts

    def take(self, event: Event, data: dict[str, Any] | None = None) -> None:
        follows = event.seq == self.seq + 1 and event.prev == self.hash
        need(follows, "event", event.seq, "does not follow event", self.seq, "as it is known here")
        need((event.kind == "created") == (self.seq == 0), "a study begins with its creation, once")
        need(event.kind in KINDS, f"event {event.seq} is of a kind that is not known here; upgrade surefoot")
        if handle := getattr(self, f"_{event.kind}", None):
            handle(event, event.data if data is None else data)
        if event.kind not in ("told", "opened"):
            self.notes.append(event)
        self.seq, self.hash = event.seq, event.hash

    # One method for each kind of event that changes what is known
    def _created(self, event: Event, data: dict[str, Any]) -> None:
        self.created, self.name, self.setup = event, event.study, data
        self.seed: int = data["seed"]
        need(data["theorem"]["name"] in THEOREMS, "the theorem is not known to this checker:", data["theorem"]["name"])
        self.theorem = self._fresh()
        self.pipeline: int = data.get("pipeline", 1)
        noise = data["problem"]["noise"]
        noises = [noise.get(key, noise) for key in READINGS]
        self.squares = any("guess" in each or each.get("spread") for each in noises)

    def _opened(self, event: Event, data: dict[str, Any]) -> None:
        runs = not (self.paused or self.stopped) and self.free
        need(runs, "a cohort is opened only while the study runs and no other is open, or but for its effects")
        blocks = bool(self.setup.get("blocks"))
        given = Given(len(self.cohorts) + 1, len(self.harm), data, self.seed, event.at, event.seq, blocks)
        need(given.size >= 1 and min(given.n) >= 0, "a cohort has at least one assignment")
        self.cohorts.append(given)
        self._more(given.size)
        self.concluded = None

    def _more(self, count: int) -> None:
        """So many more subjects, without readings."""
        self.effect.extend([NAN] * count)
        self.harm.extend([NAN] * count)

    def _told(self, event: Event, data: dict[str, Any]) -> None:
        subject, given = data["id"], self.find(data["id"])
        effect, harm = data.get("effect"), data.get("harm")
        need(subject not in self.gone and not self.stopped, subject, "dropped out, or the study was stopped")
        need(event.reason is not None or self.plausible(data), subject, "is not plausible, and nobody confirmed it")
        need(all(map(math.isfinite, data.values())), subject, "has a reading that is not finite")
        if given.blocks:
            self._told_block(subject, data)
        if harm is not None:
            need(math.isnan(self.harm[subject]), subject, "was told before")
            self.harm[subject] = harm
            given.harms -= 1
        if effect is not None:
            need(math.isnan(self.effect[subject]), subject, "was told before")
            self.effect[subject] = effect
        need(self.harm[subject] == self.harm[subject], subject, "has no harm")  # nan is not itself: not told yet
        if "dose" in data and data["dose"] != given.dose[given.arm(subject)]:
            self.other[subject] = data["dose"]
        if self.complete(subject):
            given.left -= 1
            if given.closed:
                self.again(given)  # a late reading of an assignment that had been withdrawn
            else:
                self.settle()

    def _told_block(self, subject: int, data: dict[str, Any]) -> None:
        """A block's n, once and at least 1, and where sigma is not known how its readings vary."""
        block = self.block.setdefault(subject, {})
        fresh = {key: data[key] for key in ("n", *SPREADS) if key in data}
        need(not fresh.keys() & block.keys(), subject, "was told before")
        block |= fresh
        need(type(block.get("n")) is int and block["n"] >= 1, subject, "is a block: it needs an n of at least 1")
        good = all(fresh.get(key, 0.0) >= 0 and (key in fresh or not self.squares or data.get(key[:-7]) is None)
                   for key in SPREADS)  # fmt: skip
        need(good, subject, "does not say how its readings vary")

    def _corrected(self, event: Event, data: dict[str, Any]) -> None:
        subject, given = data["id"], self.find(data["id"])
        usual = given.dose[given.arm(subject)]
        was = {"effect": self.effect[subject], "harm": self.harm[subject], "dose": self.other.get(subject, usual)}
        was |= (block := self.block.get(subject, {}))
        true = data["was"] and all(was[key] == x for key, x in data["was"].items())
        need(event.reason and true, "a correction has a reason, and says what was told before")
        need(self.plausible(data) or data.get("confirmed"), subject, "is not plausible, and nobody confirmed it")
        need(all(math.isfinite(data.get(key, 0.0)) for key in was), subject, "has a reading that is not finite")
        block |= {key: data[key] for key in block if key in data}
        need(block.get("n", 1) >= 1, subject, "is a block: it needs an n of at least 1")
        self.effect[subject], self.harm[subject], dose = (data.get(key, was[key]) for key in ("effect", "harm", "dose"))
        self.other.pop(subject, None)
        if dose != usual:
            self.other[subject] = dose
        if given.closed:
            self.again(given)

    def _voided(self, event: Event, data: dict[str, Any]) -> None:
        subject = data["id"]
        free = not self.find(subject).closed and math.isnan(self.harm[subject]) and subject not in self.gone
        need(free, subject, "cannot drop out any more")
        self.gone[subject] = "open"
        if self.setup["voids"] == "worst":
            self._count_voids(*self.setup["worst"])
        else:
            self.paused.append(event)

    def _count_voids(self, effect: float, harm: float) -> None:
        """Those who dropped out count as this reading."""
        for subject in [s for s, how in self.gone.items() if how == "open"]:
            given = self.find(subject)
            self.gone[subject], self.effect[subject], self.harm[subject] = "counts", effect, harm
            given.left, given.harms = given.left - 1, given.harms - 1
        self.settle()

    def _paused(self, event: Event, data: dict[str, Any]) -> None:
        self.paused.append(event)

    def _resumed(self, event: Event, data: dict[str, Any]) -> None:
        need(self.paused and not self.stopped, "only a pause can be lifted")
        self.paused = []
        if data.get("voids") is not None:
            self._count_voids(data["voids"]["effect"], data["voids"]["harm"])
        for subject in [s for s, how in self.gone.items() if how == "open"]:  # somebody else takes the place
            given = self.find(subject)
            given.later[len(self.harm)], self.later[len(self.harm)] = given.arm(subject), given
            self.gone[subject] = "replaced"
            self._more(1)

    def _stopped(self, event: Event, data: dict[str, Any]) -> None:
        self.stopped = event

    def _closed(self, event: Event, data: dict[str, Any]) -> None:
        need(self.open, "no cohort is open")
        self.cohorts[-1].withdrawn = True
        self.settle()

    def _ended(self, event: Event, data: dict[str, Any]) -> None:
        need(not self.paused and not self.stopped, "nothing is concluded in a pause, or after a stop")
        self.concluded = data

    # Readings
    @property
    def open(self) -> Given | None:
        return self.cohorts[-1] if self.cohorts and not self.cohorts[-1].closed else None

    @property
    def free(self) -> bool:
        """Whether another cohort may be opened: none is open, or all harms are in and few cohorts lack effects."""
        last = self.open
        return last is None or (not last.harms and len(self.cohorts) - self.done < self.pipeline)

    def find(self, subject: int) -> Given:
        """The cohort of a subject."""
        need(type(subject) is int and 1 <= subject < len(self.harm), subject, "has not been assigned")
        if subject in self.later:
            return self.later[subject]
        if subject >= self.cohorts[-1].first:
            return self.cohorts[-1]
        return self.cohorts[bisect_right(self.cohorts, subject, key=lambda given: given.first) - 1]

    def complete(self, subject: int) -> bool:
        return self.effect[subject] == self.effect[subject] and self.harm[subject] == self.harm[subject]

    def count(self) -> int:
        """How many readings there are."""
        return sum(int(self.block[s]["n"]) if s in self.block else 1
                   for s in range(1, len(self.harm)) if self.complete(s))  # fmt: skip

    def plausible(self, data: Mapping[str, Any]) -> bool:
        """Whether a reading, or the mean of a block, is in the range in which readings are expected."""
        ranges = self.setup["plausible"]
        if not ranges:
            return True
        n = data.get("n") or self.block.get(data["id"], {}).get("n", 1)
        return all(low <= data.get(key, n * low) / n <= high for key, (low, high) in ranges.items())

    def sums(self, given: Given) -> Sums:
        """What came back of a cohort, summed exactly, so that the order in which it came does not matter."""
        lists: dict[tuple[int, float], list[int]] = {}
        for subject, arm in given.subjects():
            if self.complete(subject):
                lists.setdefault((arm, self.other.get(subject, given.dose[arm])), []).append(subject)
        return {at: self._summed(given, s) for at, s in lists.items()}

    def _summed(self, given: Given, subjects: Sequence[int], harm: bool = False) -> Came:
        """Of these subjects; or of their `harm` alone."""
        readings = [[0.0 if harm and values is self.effect else values[s] for s in subjects]
                    for values in (self.effect, self.harm)]  # fmt: skip
        totals = [math.fsum(x) for x in readings]
        if given.blocks:
            blocks = [self.block[s] for s in subjects]  # one: an arm has one block in a cohort
            spread = [math.fsum(b.get(key, 0.0) for b in blocks) for key in SPREADS] if self.squares else []
            return sum(int(b["n"]) for b in blocks), *totals, *spread
        n = len(subjects)
        spread = [math.fsum((x - total / n) ** 2 for x in each) for each, total in zip(readings, totals, strict=True)]
        return n, *totals, *(spread if self.squares else ())

    def harms(self, given: Given) -> Sums:
        """The same of a cohort whose effects are awaited: its harms, once all of them are in."""
        lists: dict[tuple[int, float], list[int]] = {}
        for subject, arm in given.subjects():
            if self.harm[subject] == self.harm[subject] and self.gone.get(subject, "counts") == "counts":
                lists.setdefault((arm, self.other.get(subject, given.dose[arm])), []).append(subject)
        return {at: self._summed(given, s, True) for at, s in lists.items()}

    def pending(self) -> list[Given]:
        """Cohorts whose harms are in and whose effects are awaited, in their order."""
        return list(takewhile(lambda given: not given.harms, self.cohorts[self.done :]))

    def ahead(self) -> Theorem:
        """What is proved with the harms of cohorts whose effects are awaited. Only its doses are used: they rest on
        harms alone, which count in the order of the cohorts, by stakes that were fixed before."""
        pending = self.pending()
        found = copy.deepcopy(self.theorem) if pending else self.theorem
        for given in pending:
            found.take(given, self.harms(given))
        return found

    # The evidence
    def _fresh(self) -> Theorem:
        return THEOREMS[self.setup["theorem"]["name"]](self.setup["problem"], self.setup["options"])

    def settle(self) -> None:
        """Cohorts that are complete (or what is missing was withdrawn) are evidence, in the order they were opened."""
        while self.done < len(self.cohorts) and (not (given := self.cohorts[self.done]).left or given.withdrawn):
            self.close(given)
            self.done += 1

    def close(self, given: Given) -> None:
        given.closed, given.came = True, self.sums(given)
        self.theorem.take(given)

    def again(self, given: Given) -> None:
        """A reading of a cohort that was closed has changed: fold anew, by the stakes as they were published."""
        given.came = self.sums(given)
        *_, (_, self.theorem) = self.replay()

    def replay(self) -> Iterator[tuple[Given | None, Theorem]]:
        """Each cohort with what was proved before it, by what is known now; at last None and what is proved now."""
        theorem, ahead = self._fresh(), None
        for given in self.cohorts:
            now = ahead or theorem
            now.publish(given.dose, given.stakes)
            yield given, now
            if given.closed:
                theorem.take(given)
            elif not given.harms:  # what was known of doses before the next: its effects are awaited
                ahead = copy.deepcopy(now)
                ahead.take(given, self.harms(given))
        yield None, theorem

    def refusal(self, dose: Sequence[float], n: Sequence[int], stakes: Sequence[Stakes]) -> str | None:
        """Why a cohort may not be released now; None where it may."""
        theorem = self.ahead()
        theorem.publish(dose, stakes)
        return "; ".join(filter(None, (theorem.refusal(i, a) for i, a in enumerate(dose) if n[i]))) or None

    def unfounded(self, ending: Mapping[str, Any]) -> str | None:
        """Why an ending does not follow from the readings; None where it does. `out`: after which cohort an arm was."""
        names, kind, winner = [arm["name"] for arm in self.setup["problem"]["arms"]], ending["ending"], ending["winner"]
        out = set()
        for given, theorem in self.replay():
            done = given.number - 1 if given else len(self.cohorts)
            out |= {arm for arm, when in enumerate(ending["out"]) if when == done and theorem.out(arm)}
        if kind not in ("best-arm", "within-tolerance", "all-stopped"):
            return "an arm is named" if winner is not None else None
        left = [arm for arm in range(len(names)) if arm != winner and arm not in out and not theorem.out(arm)]
        if kind == "within-tolerance" and winner is not None:
            left = [arm for arm in left if not theorem.out(arm, winner)]
        if winner in out:
            return f"{names[winner]} is named, and was shown not to be the best"
        if winner is None and kind != "all-stopped" and not ending.get("withheld"):
            return "it names no arm"
        if left and (winner is not None or kind == "all-stopped"):
            return f"{', '.join(names[arm] for arm in left)} may still be the best by what was read"
        return None


KINDS = ("created", "opened", "told", "corrected", "voided", "paused", "warned", "resumed", "stopped", "closed",
         "ended", "assigned", "returned", "adopted", "exported", "imported", "checkpointed", "clock")  # fmt: skip


# The theorems


class Theorem:
    """What readings prove. The numbers of a problem are those of the first event. Every theorem says by itself:"""

    bet: Callable[[int, float, Came, Stakes], None]  # an arm, what came back at a dose, and what was staked on that
    certified: Callable[[int], float]  # the largest dose of an arm that may be given
    harmful: Callable[[int], bool]  # whether harm at an arm's start dose is shown to be above the limit
    refuted: Callable[[int, int | None], bool]  # whether it is proved that it is not the best; see `out`
    SQUARES = False  # whether it is told how readings vary
    UNITS = True  # whether bounded readings are brought to [0, 1], and a sigma that is not known can be shown

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        self.weight = [[1.0, 1.0] for _ in problem["arms"]]  # how much an effect and a harm of an arm count
        self.seen = [[[0.0, 0.0], [0.0, 0.0]] for _ in problem["arms"]]  # squares: how many, and their sum
        noises = [problem["noise"].get(key, problem["noise"]) for key in READINGS]
        self.guessed, self.units = ["guess" in noise for noise in noises], [(0.0, 1.0)] * 2
        self.varying = [bool(noise.get("spread")) for noise in noises]  # bounded, and how they vary is bet on
        if self.UNITS:
            problem = self.within(problem, noises)
        self.problem, self.delta = problem, float(problem["delta"])
        self.arms: list[dict[str, Any]] = problem["arms"]
        self.d, self.limit = len(self.arms), float(problem["limit"])
        self.ceiling, self.tolerance = self.limit + problem.get("slack", 0.0), float(problem.get("tolerance", 0.0))
        noises = [problem["noise"].get(key, problem["noise"]) for key in READINGS]
        self.binary, self.counts = ([noise["kind"] == kind for noise in noises] for kind in ("bernoulli", "poisson"))
        self.sigma = [0.5 * (noise["high"] - noise["low"]) if noise["kind"] == "bounded" else 0.5 if binary
                      else float(noise.get("sigma") or noise.get("guess") or noise["about"])
                      for noise, binary in zip(noises, self.binary, strict=True)]  # fmt: skip

    def within(self, problem: Mapping[str, Any], noises: list[Any]) -> dict[str, Any]:
        """The problem as its evidence has it: bounded readings in [0, 1], where bets on binary ones hold for them, and
        less delta where sigmas have to be shown."""
        found = {**problem, "delta": problem["delta"] * (1 - SIGMA * any(self.guessed))}
        for r, noise in enumerate(noises):
            for arm in self.weight if self.guessed[r] else ():
                arm[r] = 0.0
            if noise["kind"] == "bounded":
                self.units[r] = noise["low"], (wide := noise["high"] - noise["low"])
                if r == HARM:
                    found["limit"] = (problem["limit"] - noise["low"]) / wide
                    found["arms"] = [{**arm, "lipschitz": arm.get("lipschitz", 1.0) / wide} for arm in problem["arms"]]
                key = "slack" if r == HARM else "tolerance"
                found |= {key: problem[key] / wide} if key in problem else {}
        kinds = [{"kind": "bernoulli"} if noise["kind"] == "bounded" else noise for noise in noises]
        return found | {"noise": dict(zip(READINGS, kinds, strict=True))}

    def publish(self, dose: Sequence[float], stakes: Sequence[Stakes]) -> None:
        """A cohort with these doses and stakes is to be released."""

    def take(self, given: Given, came: Sums | None = None) -> None:
        """What came back of a cohort: first the doses that were given instead of the one assigned, without stakes."""
        came = given.came if came is None else came
        for arm, (main, stakes) in enumerate(zip(given.dose, given.stakes, strict=True)):
            for dose in sorted((a for i, a in came if i == arm), key=lambda a: (a == main, a)):
                n, *totals = came[arm, dose][:3]
                scaled = [(x - n * low) / wide for x, (low, wide) in zip(totals, self.units, strict=True)]
                wide = [q / wide**2 for q, (_, wide) in zip(came[arm, dose][3:], self.units, strict=False)]
                self.bet(arm, dose, (n, *scaled, *(wide if self.SQUARES else ())), stakes if dose == main else None)
                self.spread(arm, n, came[arm, dose][3:])

    def spread(self, arm: int, n: float, squares: Sequence[float]) -> None:
        """Upper bounds on the sigmas that are not known, by how readings vary within a cohort ("Readings" in
        docs/guarantees.md), and so for how many readings of the guessed sigma one counts."""
        goal = math.log(len(WIDER) * max(sum(self.guessed), 1) * self.d / (SIGMA / (1 - SIGMA) * self.delta))
        for r, new in enumerate(squares):
            if self.guessed[r] and n > 1:
                add(self.seen[arm][r], (n - 1, new))
                free, q = self.seen[arm][r]
                rest = [(0.5 * free * math.log1p(2 * g), g * q) for g in WIDER]
                if (y := max((e - goal) / s for e, s in rest) if q > 0 else 0.0) > 0:
                    y = descend(y, 3, goal, functools.partial(falling, rest))
                    self.weight[arm][r] = max(self.weight[arm][r], self.sigma[r] ** 2 * y)

    def out(self, arm: int, named: int | None = None) -> bool:
        """Whether it is proved that an arm is not the best, or has no safe dose; or, where another arm is `named`, that
        it is not better than that by more than the tolerance."""
        return (named is None and self.harmful(arm)) or self.refuted(arm, named)

    def largest(self, arm: int) -> float:
        it = self.arms[arm]
        return float(it["levels"][-1] if it.get("levels") else it.get("max", math.inf))

    def rounded(self, arm: int, dose: float) -> float:
        """Down to a level, where there are any."""
        levels = self.arms[arm].get("levels")
        return dose if not levels else max((x for x in levels if x <= dose * (1 + CLOSE)), default=dose)

    def refusal(self, arm: int, dose: float, free: bool = False) -> str | None:
        """Why this dose may not be given; None where it may. `free`: between levels as well."""
        it, top = self.arms[arm], self.largest(arm)
        here = f"{it['name']} at dose {dose:.6g}"
        if not math.isfinite(dose) or dose > top + CLOSE * abs(top):
            return f"{here} is above its largest dose {top:.6g}"
        if it.get("levels") and dose not in it["levels"] and not free:
            return f"{here} is none of its levels {', '.join(f'{x:g}' for x in it['levels'])}"
        if dose <= it["start"]:
            return None  # known to be safe
        most = self.certified(arm)
        if dose <= most + CLOSE * max(abs(most), abs(dose)):
            return None
        return f"{here} is not certified: {most:.9g} is the largest dose that the readings before it allow"


class Shown(NamedTuple):
    """Means of one arm at one dose; harm is within `radius` of the truth, the effect within `error`."""

    dose: float
    n: int
    effect: float
    harm: float
    radius: float
    error: float


class Staged(Theorem):
    """The paper's designs. Stakes of an arm: how many pulls its stage has in all, and the number of its estimate.

    By Hoeffding a mean of n readings is within sigma sqrt(2 log(8 w t^2/delta)/n) of the truth, where the statements of
    all numbers t hold together with probability 1 - delta; n is fixed before they come, so other doses and more pulls
    than were asked for are set aside. A number that is used again (after a correction) replaces what had it before.
    """

    UNITS = False
    lower: Callable[[int], float]  # bounds on the value of an arm
    upper: Callable[[int], float]

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        super().__init__(problem, options)
        self.shown: dict[tuple[int, int], Shown] = {}  # by number and arm
        self.part: dict[tuple[int, int], tuple[float, float, float, float]] = {}  # a stage that is under way
        self.union = self.d if problem["shape"] == "linear" else 1

    def publish(self, dose: Sequence[float], stakes: Sequence[Any]) -> None:
        staked = [x for want_and_number in stakes if want_and_number for x in want_and_number]
        need(all(type(x) is int and x > 0 for x in staked), "stages have whole numbers from 1 on")
        numbers = staked[1::2]
        need(self.union > 1 or len(set(numbers)) == len(numbers), "no two estimates have the same number")
        first = min(numbers, default=math.inf)
        self.shown = {
            (number, arm): x
            for (number, arm), x in self.shown.items()
            if number < first or (stakes[arm] == [x.n, number] and x.dose == dose[arm])
        }
        self.part = {  # of a stage that was begun anew nothing is kept
            (number, arm): x
            for (number, arm), x in self.part.items()
            if stakes[arm] and stakes[arm][1] == number and x[0] == dose[arm]
        }

    def take(self, given: Given, came: Sums | None = None) -> None:
        if not given.withdrawn:  # a stage is whole or nothing
            super().take(given, came)

    def bet(self, arm: int, dose: float, came: Came, stakes: Any) -> None:
        if stakes is None:
            return
        (want, number), (more, effect, harm) = stakes, came
        _, had, *sums = self.part.get((number, arm), (dose, 0, 0.0, 0.0))
        n, effect, harm = had + more, sums[0] + effect, sums[1] + harm
        if n < want:
            self.part[number, arm] = dose, n, effect, harm
        elif n == want:
            unit = math.sqrt(2 * math.log(8 * self.union * number**2 / self.delta) / want)
            error, radius = (sigma * unit for sigma in self.sigma)
            self.shown[number, arm] = Shown(dose, want, effect / want, harm / want, radius, error)
            self.part.pop((number, arm), None)

    def of(self, arm: int) -> list[Shown]:
        return [x for (_, i), x in self.shown.items() if i == arm]

    def refuted(self, arm: int, named: int | None) -> bool:
        others = [named] if named is not None else [i for i in range(self.d) if i != arm]
        bar = max(map(self.lower, others), default=-math.inf) + (self.tolerance if named is not None else 0.0)
        return self.upper(arm) <= bar + CLOSE * abs(bar)


class SafeBAILinear(Staged):
    """Lemma 1 of the paper; the number is that of the epoch. Effect and harm are slopes times the dose."""

    def certified(self, arm: int) -> float:
        start, most = self.arms[arm]["start"], self.largest(arm)
        none = most if math.isfinite(most) else start  # where there is shown to be no harm
        tops = [(x.dose, x.harm + x.radius) for x in self.of(arm)]
        found = [self.limit * dose / top if top > 0 else none for dose, top in tops]
        return self.rounded(arm, min(max([start, *found]), most))

    def lower(self, arm: int) -> float:
        safe = self.certified(arm)
        return max((safe * (x.effect - x.error) / x.dose for x in self.of(arm)), default=-math.inf)

    def upper(self, arm: int) -> float:
        top, values = self.largest(arm), []
        for x in self.of(arm):
            low = (x.harm - x.radius) / x.dose
            most = self.rounded(arm, max(min(self.limit / low, top) if low > 0 else top, self.arms[arm]["start"]))
            values.append(most * (x.effect + x.error) / x.dose)
        return min(values, default=math.inf)

    def harmful(self, arm: int) -> bool:
        return any(self.arms[arm]["start"] * (x.harm - x.radius) / x.dose > self.limit for x in self.of(arm))


class SafeBAIMonotonic(Staged):
    """Lemma 13 of the paper; the number is over all arms. Harm never falls, and rises by at most K a unit."""

    def certified(self, arm: int, ceiling: float | None = None) -> float:
        it, most = self.arms[arm], self.ceiling if ceiling is None else ceiling
        room = [(x.dose, most - x.harm - x.radius) for x in self.of(arm)]
        found = [dose + left / it.get("lipschitz", 1.0) for dose, left in room if left >= 0]
        return self.rounded(arm, min(max([it["start"], *found]), self.largest(arm)))

    def lower(self, arm: int) -> float:
        safe = self.certified(arm, self.limit)
        held = [x.effect - x.error for x in self.of(arm) if x.dose <= safe + CLOSE * abs(safe)]
        return max(held, default=-math.inf)

    def upper(self, arm: int) -> float:
        over = min((x.dose for x in self.of(arm) if x.harm - x.radius >= self.limit), default=self.largest(arm))
        return min((x.effect + x.error for x in self.of(arm) if x.dose >= over), default=math.inf)

    def harmful(self, arm: int) -> bool:
        return any(x.dose <= self.arms[arm]["start"] and x.harm - x.radius > self.limit for x in self.of(arm))


# Mixtures: values of g and the logarithms of their weights. A mean of exp(g s - g^2 v / 2) over them, s a sum of noise
# with weights fixed beforehand and v the sum of their squares, ever reaches 1/alpha with probability alpha (Ville).

Atoms = list[tuple[float, float]]


def mixture(top: float, ratio: float, dense: int, below: int, above: int, tails: float, nothing: float) -> Atoms:
    middle = [top * ratio**-j for j in range(dense)]
    tail = [(middle[-1] * 2.5**-k, 1 / (k * (k + 1))) for k in range(1, below + 1)]
    tail += [(top * 2.5**k, 0.5 / (k * (k + 1))) for k in range(1, above + 1)]
    total = sum(w for _, w in tail)
    pairs = [(0.0, nothing)] if nothing else []
    pairs += [(g, (1 - tails - nothing) / dense) for g in middle] + [(g, tails * w / total) for g, w in tail]
    return [(g, math.log(w)) for g, w in pairs]


SHORTFALL = mixture(0.9, 1.8, 5, 12, 0, 0.15, 0.0)
CONTRAST = mixture(0.7, 1.6, 5, 5, 1, 0.1, 0.15)
TOGETHER = mixture(1.6, 1.5, 5, 2, 1, 0.15, 0.0)
GAP = mixture(1.0, 1.7, 5, 8, 1, 0.1, 0.4)
TILT = mixture(1.0, 2.0, 5, 6, 1, 0.1, 0.15)
ANY = mixture(1.0, 1.8, 9, 12, 2, 0.15, 0.0)
LOWERED = mixture(2.5, 1.8, 6, 12, 1, 0.15, 0.0)
RAISED = mixture(1.6, 1.8, 6, 12, 0, 0.15, 0.0)
CALM = mixture(2.8, 2.0, 3, 6, 0, 0.1, 0.02)
NEAR = mixture(1.2, 2.0, 3, 7, 1, 0.12, 0.03)
APART = mixture(0.8, 2.0, 5, 6, 2, 0.12, 0.04)


def log_sum(logs: Sequence[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs))


def either(a: float, b: float, share: float) -> float:
    """Log of the wealth of two bets, of which the second has this share of the stake."""
    return log_sum([x + math.log(part) for x, part in ((a, 1 - share), (b, share)) if part > 0])


def log_mixture(s: float, v: float, atoms: Atoms) -> float:
    return log_sum([g * s - 0.5 * g * g * v + w for g, w in atoms])


def log_odds(total: float, n: float, x: float, sign: int, atoms: Atoms) -> float:
    """The same for n binary readings: bets that their mean is above x (below it), by their likelihood ratios."""
    q = min(max(x, 0.0), 1.0)
    return log_sum([sign * g * total - n * math.log(1 + q * math.expm1(sign * g)) + w for g, w in atoms])


def everywhere(goal: float, marks: Sequence[float], total: Callable[[float, float], float]) -> bool:
    """Whether evidence comes to the goal at every x from the least mark to the largest. `total(x, y)` is not above
    what there is at any point from x to y, and exact where they are one: cells are split until it is known."""
    goal, cells = goal * (1 - CLOSE), list(pairwise(sorted(set(marks))))
    while cells:
        low, high = cells.pop()
        if total(low, high) >= goal:
            continue
        middle = (low + high) / 2
        if not low < middle < high or total(middle, middle) < goal:
            return False
        cells += [(low, middle), (middle, high)]
    return True


def descend(
    x: float, steps: int, goal: float, of: Callable[[float], list[tuple[float, float]]],
    least: float = -math.inf, most: float = math.inf,
) -> float:  # fmt: skip
    """Newton's method towards where the log of a sum of exponentials is the goal. The sum is convex, so that from
    outside it never passes that place, and may be stopped early. `of` gives logs and their derivatives."""
    for _ in range(steps):
        found = of(x)
        total = log_sum([e for e, _ in found])
        x -= (total - goal) / math.fsum(math.exp(e - total) * slope for e, slope in found)
        x = min(max(x, least), most)
    return x


def falling(rest: Sequence[tuple[float, float]], y: float) -> list[tuple[float, float]]:
    """Lines that fall, and their slopes."""
    return [(e - s * y, -s) for e, s in rest]


def rate(n: float, total: float, goal: float, sign: int, atoms: Atoms) -> float:
    """A bound on the mean of n binary readings: from below, or from above if sign is -1."""
    rest = [(math.exp(sign * g) - 1, w + sign * g * total) for g, w in atoms]
    ends = [(math.exp((e - goal) / n) - 1) / c for c, e in rest]
    p = max(0.0, *ends) if sign > 0 else min(1.0, *ends)
    return descend(
        p, 2, goal, lambda p: [(e - n * math.log(1 + p * c), -n * c / (1 + p * c)) for c, e in rest], 0.0, 1.0
    )


def add(sums: list[float], more: Iterable[float]) -> None:
    for k, x in enumerate(more):
        sums[k] += x


class SurefootLinear(Theorem):
    """Theorem 1 of docs/guarantees.md, whose lemmas are named here. Doses are in units of the start dose, readings in
    units of their sigma: an arm's effect has mean theta a, its harm mu a. Stakes of an arm: `own`, `led`, and one for
    each arm's claim. Shares of delta: doses 0.3, stops 0.05, verdict 0.65."""

    OWN, LED, SHARED = 0, 1, 2  # and on

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        super().__init__(problem, options)
        self.sy, self.sz = self.sigma
        if self.binary[HARM] and self.limit < 0.499:
            self.sz = tight(self.limit)
        self.top = self.limit / self.sz
        self.shift = self.tolerance * self.sz / (self.limit * self.sy)
        self.safe: list[float] = [arm["start"] for arm in self.arms]
        self.unsafe = [self.largest(i) for i in range(self.d)]
        self.least = [-math.inf] * self.d  # harm at the start dose
        self.data = [[0.0] * 5 for _ in self.arms]  # n, sums of dose, harm, dose^2, dose * harm / sigma
        # by stake: v, y, z, w, sums of weight^2, weight * effect, weight * harm, weight * dose; then n, dose, effect
        self.bets = [[[0.0] * 7 for _ in range(2 + self.d)] for _ in self.arms]

    def certified(self, arm: int) -> float:
        return self.safe[arm]

    def bet(self, arm: int, dose: float, came: Came, stakes: Stakes) -> None:
        """Lemma 1. Only pulls at a dose that was certified before them are bet on, and only with a stake above 0."""
        if not 0 < dose <= self.largest(arm) * (1 + CLOSE):
            return
        a, (n, effect, harm) = dose / self.arms[arm]["start"], came
        share, least = self.weight[arm][HARM], min(self.weight[arm])
        add(self.data[arm], (n, n * a, harm, share * n * a * a, share * a * harm / self.sz))
        staked = [x if x is not None and 1e-50 < x < 1e50 else 0.0 for x in stakes or ()]
        for k, stake in enumerate(staked if dose <= self.safe[arm] * (1 + CLOSE) else ()):
            if stake and (k in (self.OWN, self.LED, self.SHARED + arm) or staked[self.LED]):  # others': if it leads
                w = a * stake
                more = n * w * w, w * effect / self.sy, w * harm / self.sz, n * w * a
                add(self.bets[arm][k], (*(least * x for x in more), n, n * a, effect))
        self.certify(arm)

    def certify(self, arm: int) -> None:
        """Lemma 2: bounds on the slope of the harm. What was shown once stays shown."""
        high, low = (math.log(self.d / (share * self.delta)) for share in (0.3, 0.05))
        n, dose, total, v, z = self.data[arm]
        if v <= 0:
            return
        if self.binary[HARM]:
            upper, lower = rate(n, total, high, -1, LOWERED), rate(n, total, low, 1, RAISED)
            upper, lower = (x * n / dose / self.sz for x in (upper, lower))
        else:
            qs = [(r, r - r * r / 2, w) for r, w in SHORTFALL]
            m = min((r * z + math.sqrt((r * z) ** 2 + 4 * v * q * (high - w))) / (2 * v * q) for r, q, w in qs)
            upper = descend(
                m, 2, high, lambda m: [(m * (m * v * q - r * z) + w, 2 * m * v * q - r * z) for r, q, w in qs]
            )
            rest = [(g, w - 0.5 * g * g * v * self.top**2) for g, w in ANY]
            u = min((low - e) / g for g, e in rest)
            lower = (z - descend(u, 1, low, lambda u: [(g * u + e, g) for g, e in rest]) / self.top) / v
        start, most = self.arms[arm]["start"], self.largest(arm)
        safe, over = (start * self.top / x if x > 0 else math.inf for x in (upper, lower))
        safe, over = (self.rounded(arm, min(max(x, start), most)) for x in (safe, over))
        self.safe[arm], self.unsafe[arm] = max(self.safe[arm], safe), min(self.unsafe[arm], over)
        self.least[arm] = max(self.least[arm], lower * self.sz)

    def harmful(self, arm: int) -> bool:
        return self.least[arm] > self.limit

    def refuted(self, arm: int, named: int | None) -> bool:
        """Lemma 6: the wealth against the claim of an arm is 1/(0.65 delta) at every bar u from 0 to 1."""
        marks = [self.shift / (1 + self.shift), 1.0]
        return everywhere(math.log(1 / (0.65 * self.delta)), marks, lambda x, y: self.wealth(arm, x, y, named))

    def wealth(self, k: int, low: float, high: float, named: int | None) -> float:
        """Lemma 5: the least log of the wealth against "arm k is best", over the bars from low to high."""
        own, mine = self.bets[k][self.OWN], self.bets[k][self.SHARED + k]
        ups, up, v = 0.0, 0.0, mine[0]
        for j in range(self.d):
            led, theirs = self.bets[j][self.LED], self.bets[j][self.SHARED + k]
            if j != k and led[0] > 0:
                ends = self.lowered(low), self.lowered(high) if j == named else high
                capped = bool(self.arms[j].get("levels")) or self.safe[j] >= self.largest(j)
                reach = (self.safe[j] if capped else self.largest(j)) / self.arms[j]["start"]
                up, v = up + self.over(*ends, theirs, reach, capped), v + theirs[0]
                ups += self.above(led, *ends, reach, capped)
        start, most = self.arms[k]["start"], self.largest(k)
        share, reach = 1.0 if most <= start else 0.2 if math.isfinite(most) else 0.0, self.unsafe[k] / start
        line, cap = self.under(low, high, mine, reach)
        shared = either(log_mixture(up + line, v, TOGETHER), log_mixture(up + cap, v, TOGETHER), share)
        line, cap = self.under(low, high, own, reach)
        cap = self.ratio(own, low, reach, -1) if self.binary[EFFECT] else log_mixture(cap, own[0], CONTRAST)
        return either(ups + either(log_mixture(line, own[0], CONTRAST), cap, share), shared, 0.25)

    def above(self, bets: Sequence[float], low: float, high: float, reach: float, capped: bool) -> float:
        """Log of the wealth from bets with the pulls of an arm that leads, that its value is above."""
        if not self.binary[EFFECT]:
            return log_mixture(self.over(low, high, bets, reach, capped), bets[0], CONTRAST)
        cap = self.ratio(bets, high, reach, 1)
        return cap if capped else min(cap, log_mixture(self.cone(low, high, bets[1], bets[2]), bets[0], CONTRAST))

    def over(self, low: float, high: float, bets: Sequence[float], reach: float, capped: bool) -> float:
        """Lemma 4: the least evidence over a cell of bars that a value is above."""
        cap = (bets[1] - bets[3] * self.height(high) / reach) / self.shrink(high)
        return cap if capped else min(cap, self.cone(low, high, bets[1], bets[2]))

    def under(self, low: float, high: float, bets: Sequence[float], reach: float) -> tuple[float, float]:
        """The same that a value is below, by its two readings and by its effect alone."""
        cap = (bets[3] * self.height(low) / reach - bets[1]) / self.shrink(high)
        return self.cone(low, high, -bets[1], -bets[2]), cap

    def cone(self, low: float, high: float, y: float, z: float) -> float:
        """The least over a cell of (1 - u) y - u z in units of its noise: at an end or, of independent readings, in
        between, where it is a sinusoid in the angle of the bar."""
        r, free = self.shrink(high), self.problem.get("signals") == "independent"
        if free and low * y + (1 - low) * r * r * z > 0 > high * y + (1 - high) * r * r * z:
            return -math.hypot(y / r, z)
        noise = math.hypot if free else lambda *parts: math.fsum(parts)
        return min(((1 - u) * y - u * z) / noise((1 - u) * r, u) for u in (low, high))

    def height(self, u: float) -> float:
        """The bar at u, in units of the effect's sigma."""
        return u / max(1 - u, 1e-16) * self.top

    def lowered(self, u: float) -> float:
        """The bar that is lower by the tolerance."""
        fall = self.shift * (1 - u)
        return max(u - fall, 0.0) / max(1 - fall, 0.5e-16)

    def shrink(self, high: float) -> float:
        """The sigma of a binary effect at bars up to `high`, in units of 1/2 (lemma 3)."""
        return tight(min(max(self.height(high) * self.sy, 1e-12), 0.499)) / self.sy if self.binary[EFFECT] else 1.0

    def ratio(self, bets: Sequence[float], u: float, reach: float, sign: int) -> float:
        """Log of the wealth from likelihood ratios of binary effects against the bar at u."""
        n, dose, total = bets[4:]
        return log_odds(total, n, dose / max(n, 1.0) * self.height(u) * self.sy / reach, sign, TILT)


def tight(q: float) -> float:
    """The sigma of a binary reading whose mean is q or less (Kearns and Saul)."""
    return math.sqrt((1 - 2 * q) / (2 * math.log((1 - q) / q)))


class Joint(Theorem):
    """Theorems 2 and 3: an arm's claim is refuted by all readings jointly, at every value x that it may have.

    `below` is the least evidence, over its largest safe dose b, that an arm's value is below x: up to b harm is bet to
    be above the limit, and above b the effect to be below x. `above`, that it is above x: up to b the effect is bet to
    be above x, and above b harm to be below the limit."""

    SHARE: float  # of delta, for the verdict
    origin: list[float]  # from which readings are measured in sums of squares
    prior: Atoms  # of the bets on effects
    below: Callable[[int, float, float], float]  # at no x from the first number to the second is it less than this
    above: Callable[[int, float, float], float]
    means: Callable[[], list[float]]  # of effects that were bet on: x that are worth a look

    def refuted(self, arm: int, named: int | None) -> bool:
        """The bets that an arm's value is below x, and those of others above x (above x - the tolerance, of the one to
        be named), come to 1/(share delta) at every x. The former rise with x, the others fall."""

        def total(low: float, high: float) -> float:
            shifts = [self.tolerance if j == named else 0.0 for j in range(self.d)]
            ups = [self.above(j, high - shift, low - shift) for j, shift in enumerate(shifts) if j != arm]
            return self.below(arm, low, high) + math.fsum(ups)

        ends = [0.0, 1.0] if self.binary[EFFECT] else [-1e60 * (not self.counts[EFFECT]), 1e60]  # as good as infinite
        return everywhere(math.log(1 / (self.SHARE * self.delta)), [*ends, *self.means()], total)

    def wager(self, reading: int, sums: Sequence[float], x: float, sign: int, atoms: Atoms, y: float) -> float:
        """Log of the wealth of bets that a mean is above x (below it), or above all numbers from y to x (below those
        from x to y). Sums of weight^2, weight, weight * reading."""
        v, w, total, *square = sums
        if self.binary[reading] and not self.varying[reading]:
            return log_odds(total, v, x, sign, atoms)
        if self.binary[reading]:  # half of the stake is on bets that learn how bounded readings vary
            bets = [sign * l * (total - v * x) + (l + math.log1p(-l)) * square[0] for l in VARY]
            return either(log_odds(total, v, x, sign, atoms), log_sum(bets) - math.log(len(VARY)), 0.5)
        if self.counts[reading]:  # likelihood ratios of means e^g times higher (lower)
            return log_sum([sign * g * total - v * x * math.expm1(sign * g) + w for g, w in atoms])
        s, far = self.sigma[reading], log_mixture(sign * (total - x * w) / self.sigma[reading], v, atoms)
        if not self.SQUARES or not self.guessed[reading] or (reading == EFFECT and "tolerance" in self.problem):
            return far
        # exp(g a - g^2 a^2/2) for every reading x + a has a mean of at most 1 whatever sigma is; its log is concave in
        # x, so least at an end
        (n, t, q), ends = square[1:], [z - self.origin[reading] for z in (x, y)]
        lines = [[(sign * g * (t - n * z) / s - 0.5 * (g / s) ** 2 * (q - 2 * z * t + n * z * z)) for z in ends]
                 for g, _ in atoms]  # fmt: skip
        return either(log_sum([min(two) + w for two, (_, w) in zip(lines, atoms, strict=True)]), far, 0.1)

    def effects(self, parts: Sequence[Sequence[float]], x: float, sign: int, y: float) -> float:
        """The same of the effects of several doses together."""
        pooled = [math.fsum(column) for column in zip(*parts, strict=True)] if parts else [0.0] * 7
        return self.wager(EFFECT, pooled, x, sign, self.prior, y)


class SurefootMonotonic(Joint):
    """Theorem 2 of docs/guarantees.md. Stakes of an arm: guesses of its harm for the climb, how far the rungs go, for
    the verdict, and the sizes of its bets on the effect, below and above. Shares of delta: climb 0.35, verdict 0.53,
    stops 0.04."""

    RUNGS, SHARE = 32, 0.53

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        super().__init__(problem, options)
        self.base: list[float] = [arm["start"] for arm in self.arms]
        self.step = [(self.largest(i) - arm["start"]) / self.RUNGS for i, arm in enumerate(self.arms)]
        self.rungs = [[0.0] * self.RUNGS for _ in self.arms]  # logs of wealth
        # by dose: logs of wealth that harm is above the limit, and below it while leading; then the sums of bets that
        # the effect is below, and above while leading
        self.at: list[dict[float, tuple[list[float], list[float], list[float]]]] = [{} for _ in self.arms]
        if all(arm["start"] >= self.largest(i) for i, arm in enumerate(self.arms)):  # nothing is climbed
            self.SHARE = 0.88
        self.prior = TILT if self.binary[EFFECT] or self.counts[EFFECT] else GAP

    def certified(self, arm: int) -> float:
        return self.rounded(arm, self.base[arm])

    def bet(self, arm: int, dose: float, came: Came, stakes: Stakes) -> None:
        if dose <= self.largest(arm) + CLOSE * abs(dose):
            guess, reach, *rest = stakes or [None] * 5
            self.climb(arm, dose, came, guess, reach)
            self.record(arm, dose, came, *rest)

    def harm_bet(self, came: Came, bound: float, guess: float | None, sign: int) -> float:
        """Log of the wealth from one bet that mean harm is above (or below) `bound`, by a guess made beforehand."""
        (n, _, total), s = came, self.sigma[HARM]
        if guess is None:
            return 0.0
        if self.counts[HARM]:
            bound = 1e-3 * s if sign > 0 and bound <= 0 else bound
            if bound <= 0 or sign * (guess - bound) <= 0:
                return 0.0
            q = max(guess, 0.5 * bound)
            return total * math.log(q / bound) - n * (q - bound)
        if not self.binary[HARM]:
            stake = max(sign * (guess - bound), 0.0) / s**2
            return stake * sign * (total - n * bound) - 0.5 * (stake * s) ** 2 * n
        bound = 1e-3 if sign > 0 and bound <= 0 else 1 - 1e-3 if sign < 0 and bound >= 1 else bound
        if not 0 < bound < 1 or sign * (guess - bound) <= 0:
            return 0.0
        low, high = (bound, 0.5 * (1 + bound)) if sign > 0 else (0.5 * bound, bound)
        q = min(max(guess, low), high)
        return total * math.log(q / bound) + (n - total) * math.log((1 - q) / (1 - bound))

    def climb(self, arm: int, dose: float, came: Came, guess: float | None, reach: float | None) -> None:
        """Lemma 3: against "harm at a rung is above limit + slack" every reading of the arm is bet."""
        if reach is not None and 1e-150 < reach < 1e150 and self.step[arm] > 1e-150:
            finer = min(max(math.floor(math.log2(self.RUNGS * self.step[arm] / reach)), -1), 60)
            self.regrid(arm, 0, 0.5**finer)
        rungs, top, slope = self.rungs[arm], self.largest(arm), self.arms[arm].get("lipschitz", 1.0)
        for j in range(self.RUNGS):
            rung = top if j == self.RUNGS - 1 else min(self.base[arm] + self.step[arm] * (j + 1), top)
            rungs[j] += self.weight[arm][HARM] * self.harm_bet(
                came, self.ceiling - slope * max(rung - dose, 0.0), guess, -1
            )
        goal = math.log(self.d / (0.35 * self.delta))
        passed = next((j for j, x in enumerate(rungs) if not x >= goal), self.RUNGS)
        self.base[arm] = min(self.base[arm] + passed * self.step[arm], top) if passed < self.RUNGS else top
        self.regrid(arm, passed, 1.0)

    def regrid(self, arm: int, passed: int, times: float) -> None:
        """A new rung takes the wealth of the old one at or above it, or the least where there are two; the last one,
        at the largest dose, the least of all."""
        old, last = self.rungs[arm], self.RUNGS - 1
        new = [old[min(passed + math.floor(j * times), last)] for j in range(self.RUNGS)]
        if times > 1:
            new = [min(x, old[min(passed + math.ceil((j + 1) * times) - 1, last)]) for j, x in enumerate(new)]
        if times != 1:
            new[last] = min(old)
        self.rungs[arm], self.step[arm] = new, self.step[arm] * times

    def record(self, arm: int, dose: float, came: Came, guess: float | None, *sizes: float | None) -> None:
        """Lemma 5: the bets that these pulls make in the verdict."""
        n, effect, _ = came
        below, above = (x if x is not None and 1e-60 < x < 1e60 else 0.0 for x in sizes)
        weight, share = self.weight[arm]
        over, under = (share * self.harm_bet(came, self.limit, guess, sign) for sign in (1, -1))
        if self.arms[arm].get("levels") and dose not in self.arms[arm]["levels"]:
            under = 0.0  # between levels a dose above the largest safe one may be safe too
        harms, *effects = self.at[arm].setdefault(dose, ([0.0] * 2, [0.0] * 3, [0.0] * 3))
        add(harms, (over, under if above else 0.0))
        for size, sums in zip((below, above), effects, strict=True):
            size = float(size > 0) if self.binary[EFFECT] else size
            add(sums, (weight * n * size**2, weight * n * size, weight * size * effect))

    def harmful(self, arm: int) -> bool:
        over = [bets[0][0] for dose, bets in self.at[arm].items() if dose <= self.arms[arm]["start"]]
        return sum(over) >= math.log(self.d / (0.04 * self.delta))

    def means(self) -> list[float]:
        return [s[2] / s[1] for at in self.at for bets in at.values() for s in bets[1:] if s[1] > 0]

    def below(self, arm: int, x: float, y: float) -> float:
        doses, bets = self.by_dose(arm)
        found = [  # b is from dose c - 1 to below dose c
            math.fsum(bet[0][0] for bet in bets[:c]) + self.effects([bet[1] for bet in bets[c:]], x, -1, y)
            for c in range(len(bets) + 1)
        ]
        least, levels, top = list(found), self.arms[arm].get("levels") or (), self.largest(arm)
        for c, (dose, after) in enumerate(pairwise([*doses, math.inf]), 1):
            if dose >= top or dose in levels:  # b may be this very dose: half and half
                least[c] = either(found[c], found[c - 1], 0.5) if self.arms[arm]["start"] < top else found[c - 1]
                if any(dose < a < after for a in levels):  # or another
                    least[c] = min(least[c], found[c])
        return min(y for c, y in enumerate(least) if c == len(doses) or doses[c] > self.arms[arm]["start"])

    def above(self, arm: int, x: float, y: float) -> float:
        doses, bets = self.by_dose(arm)
        return min(
            math.fsum(bet[0][1] for bet in bets[c:]) + self.effects([bet[2] for bet in bets[:c]], x, 1, y)
            for c in range(len(bets) + 1)
            if c == len(bets) or doses[c] > self.arms[arm]["start"]
        )

    def by_dose(self, arm: int) -> tuple[list[float], list[Any]]:
        doses = sorted(self.at[arm])
        return doses, [self.at[arm][a] for a in doses]


class SurefootLevels(Joint):
    """Theorem 3 of docs/guarantees.md. Doses are the places of levels: 0, 1, and so on. Stakes of an arm, above 0 where
    its readings make a bet: that harm is below the ceiling (calm), below the limit (low), above it (high), that the
    effect is below x, above x. Shares of delta: calm 0.1, good 0.05, over 0.05, verdict 0.8."""

    SHARE, prior, SQUARES = 0.8, APART, True

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        super().__init__(problem, options)
        places = [[float(k) for k in range(len(arm["levels"]))] for arm in self.arms]
        self.arms = [{"name": arm["name"], "start": 0.0, "levels": x} for arm, x in zip(self.arms, places, strict=True)]
        # by level and stake: n, n, sum, as they count; squares from what was expected; n, sum and squares from the
        # origin. By level: all that was read
        self.bets = [[[[0.0] * 7 for _ in range(5)] for _ in x] for x in places]
        self.origin = []
        self.read = [[[0.0] * 3 for _ in x] for x in places]
        self.low, self.high = ([[0.0] * len(x) for x in places] for _ in range(2))  # logs of wealth
        self.calm, self.good = [0] * self.d, [0] * self.d  # up to here harm is below the ceiling; below the limit
        self.barred, self.over = ([len(x) for x in places] for _ in range(2))  # from here on it is above

    def certified(self, arm: int) -> float:
        """One level above those that are calm, and below those that are barred."""
        return float(max(min(self.calm[arm] + 1, len(self.bets[arm]) - 1, self.barred[arm] - 1), 0))

    def bet(self, arm: int, dose: float, came: Came, stakes: Stakes) -> None:
        """Levels are below a bound in order from the second on, by the bets at and above each; above one in order from
        the last down, by the bets at and below each. What was shown once stays shown."""
        if dose not in self.arms[arm]["levels"]:
            return
        read, (n, *totals), squares = self.read[arm][int(dose)], came[:3], came[3:] or (0.0, 0.0)
        # around the mean so far of the level, which was known before
        square = [
            q + n * (x / n - (had + 0.5) / (read[0] + 1)) ** 2
            for q, x, had in zip(squares, totals, read[1:], strict=True)
        ]
        add(read, (n, *totals))
        if not stakes:
            return
        self.origin = self.origin or [x / n for x in totals]
        offs = [x - n * middle for x, middle in zip(totals, self.origin, strict=True)]
        for k, (stake, sums) in enumerate(zip(stakes, self.bets[arm][int(dose)], strict=True)):
            r = HARM if k < 3 else EFFECT
            if stake is not None and stake > 0:
                counted = (self.weight[arm][r] * x for x in (n, n, totals[r]))
                add(sums, (*counted, square[r] * self.varying[r], n, offs[r], squares[r] + offs[r] ** 2 / n))

        def logs(stake: int, bound: float, sign: int, atoms: Atoms) -> list[float]:
            return [self.wager(HARM, level[stake], bound, sign, atoms, bound) for level in self.bets[arm]]

        calm, barred = logs(0, self.ceiling, -1, CALM), logs(2, self.ceiling, 1, NEAR)
        self.low[arm], self.high[arm] = logs(1, self.limit, -1, NEAR), logs(2, self.limit, 1, NEAR)
        for shown, wealth, share in ((self.calm, calm, 0.1), (self.good, self.low[arm], 0.05)):
            passed = [math.fsum(wealth[j:]) >= math.log(self.d / (share * self.delta)) for j in range(1, len(wealth))]
            shown[arm] = max(shown[arm], [*passed, False].index(False))
        for shown, wealth in ((self.barred, barred), (self.over, self.high[arm])):
            passed = [
                math.fsum(wealth[:j]) >= math.log(self.d / (0.05 * self.delta)) for j in range(len(wealth), 0, -1)
            ]
            shown[arm] = min(shown[arm], len(wealth) - [*passed, False].index(False))

    def harmful(self, arm: int) -> bool:
        return self.over[arm] < 1

    def means(self) -> list[float]:
        return [level[k][2] / level[k][1] for arm in self.bets for level in arm for k in (3, 4) if level[k][1]]

    def below(self, arm: int, x: float, y: float) -> float:
        high, bets = self.high[arm], self.bets[arm]
        return min(
            math.fsum(high[:b]) + either(self.effects([level[3] for level in bets[b:]], x, -1, y), high[b], 0.25)
            for b in range(max(self.over[arm], 1))
        )

    def above(self, arm: int, x: float, y: float) -> float:
        low, bets = self.low[arm], self.bets[arm]
        return min(
            math.fsum(low[b + 1 :]) + self.effects([level[4] for level in bets[: b + 1]], x, 1, y)
            for b in range(self.good[arm], len(low))
        )


THEOREMS: dict[str, type[Theorem]] = {
    "safebai-linear/1": SafeBAILinear,
    "safebai-monotonic/1": SafeBAIMonotonic,
    "surefoot-linear/2": SurefootLinear,
    "surefoot-monotonic/2": SurefootMonotonic,
    "surefoot-levels/1": SurefootLevels,
}


# From an export to words


def check(events: Sequence[Event], head: str | None = None) -> dict[str, Any]:
    """Walk through the events; the report says whether they hold, the first that does not, and what they say."""
    record, broken = Record(), broken_link(events)
    report: dict[str, Any] = {"ok": False, "events": len(events), "head": events[-1].hash if events else None}
    for event in events[: broken[0] - 1 if broken else None]:
        try:
            admit(record, event, event.data)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
            broken = event.seq, f"event {event.seq} ({event.kind}) does not follow from those before it: {error}"
            break
    if broken or not events:
        at, message = broken or (None, "there are no events")
        return report | {"event": at, "message": message}
    if head is not None and head not in {event.hash for event in events}:
        return report | {"event": None, "message": "no event has this head: one was changed or is missing"}
    return report | {"ok": True, "event": None, "message": f"all {len(events):,} events hold", "says": words(record)}


def admit(record: Record, event: Event, data: dict[str, Any]) -> None:
    """Take an event, and check what it claims by the theorem."""
    if event.kind == "opened":
        no = record.refusal(data["dose"], data["n"], data["stakes"])
        need(no is None, no)
        ahead = record.ahead()
        for arm, most in enumerate(data["certified"]):
            now = ahead.certified(arm)
            need(most is None or near(most, now), "it says that", most, "was certified; the readings certify", now)
    if event.kind == "ended":
        no = record.unfounded(data)
        need(no is None, "the ending does not follow:", no)
    record.take(event, data)


def words(record: Record) -> list[str]:
    """What was concluded, and what happened on the way."""
    p, end = record.setup["problem"], record.concluded
    names = [arm["name"] for arm in p["arms"]]
    line = f"the limit {p['limit']:g}" + (f" plus the slack {p['slack']:g}" if p.get("slack") else "")
    safe = f"no dose was assigned whose mean harm is above {line}"
    if p["shape"] == "levels":
        safe = f"no level was assigned but the first of an arm, or one above a level whose mean harm is at most {line}"
    said = f"no arm is named: the study is {'stopped' if record.stopped else 'not at its end'}"
    if end is not None:
        what = "the best arm" if end["ending"] == "best-arm" else f"within {p.get('tolerance', 0):g} of the best"
        said = f"it ended ({end['ending']}) and no arm is named"
        said = said if end["winner"] is None else f"{names[end['winner']]} is {what}"
    count = Counter(event.kind for event in record.notes)
    late = [given.number for given, theorem in record.replay() if given for arm in range(len(names))
            if given.n[arm] and theorem.refusal(arm, given.dose[arm])]  # fmt: skip
    return [
        f"Study {record.name!r}, theorem {record.setup['theorem']['name']}: {said}.",
        f"With probability at least {1 - p['delta']:g}, under the assumptions in the first event, {safe}, "
        f"and an arm that is named is what it is said to be.",
        f"{len(record.cohorts):,} cohorts, {record.count():,} readings; "
        f"every dose was certified by readings told before it.",
        f"{count['voided']} dropped out, {count['corrected']} readings were corrected, {len(record.other)} doses given "
        f"were not the ones assigned, {count['paused']} pauses, {count['warned']} warnings, "
        f"{count['adopted']} adoptions, {count['clock']} times the clock went backwards.",
        f"Cohorts with a dose that the readings as corrected do not certify: {', '.join(map(str, late)) or 'none'}.",
    ]


def main(arguments: Sequence[str]) -> int:
    gc.disable()  # a million events are kept, and none of them is garbage
    head = arguments[2] if len(arguments) == 3 and arguments[1] == "--head" else None
    try:
        if len(arguments) != (1 if head is None else 3):
            raise ValueError("python checker.py study.json [--head HASH]")
        with open(arguments[0], encoding="utf-8") as file:
            data = json.load(file)
        if data.get("surefoot") != "study" or not isinstance(data["events"], list):
            raise ValueError("this is not the export of a study")
        report = check([Event(**event) for event in data["events"]], head)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join([report["message"], f"head {report['head']}", *report.get("says", [])]))
    if report["ok"] and head is None:
        print("Consistent, not authenticated: whoever could write the file could have made all of it anew.")
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
