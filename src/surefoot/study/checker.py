"""The checker: whether a study holds, from its export alone, with nothing but Python 3.11.

    python checker.py study.json [--head HASH]

It takes the events of a study one after the other, and derives anew: the chain of hashes, that each event may follow
those before it, that every dose given was certified by readings told before it was released, and that the ending
follows from the readings at delta. Then it says in words what was concluded and what happened on the way.

It imports nothing of the package, which uses it as its guard: a study releases a cohort, and names an arm, only if this
very code agrees. How doses are chosen is no matter: no theorem asks. To be read in this order: what may stand in an
event (`FIELDS`), the chain (`Event`), what events amount to (`Record`), bets on readings (`Kind`), and the theorems
(`THEOREMS`), by the lemmas of docs/guarantees.md. Exit codes: 0 it holds, 1 it does not, 2 it cannot be read.
"""

from __future__ import annotations

import copy
import gc
import hashlib
import json
import math
import random
import sys
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Any, ClassVar, NamedTuple

ORIGIN = "0" * 64  # what the first event has as the hash of the one before
CLOSE = 1e-9  # how far two computations of the same number may differ, relatively
VERSION = 2  # of the rows and payloads that this reads
MOST = 10_000_000  # assignments in one cohort
MANY = 10  # times as many subjects in a block as were asked for, and more, have to be confirmed
NAN, INF = math.nan, math.inf
READINGS, SPREADS = ("effect", "harm"), ("effect_spread", "harm_spread")
WATCHES = ("start", "certified", "falling", "steep", "line", "noise", "drift")
TOLD = (*READINGS, "dose", "n", *SPREADS)  # of a subject; the last three of a block alone

# All that may stand in an event, by its kind: what nobody reads could say anything. Not derived here is what no theorem
# rests on: who did it, when and why; how doses are chosen, by which code (design, options, versions); what a watch saw
FIELDS = {kind: frozenset(names.split()) for kind, names in {
    "created": "problem design options theorem seed voids worst blocks pipeline plausible lift watch versions",
    "opened": "dose n stakes certified", "told": f"id {' '.join(TOLD)}", "voided": "id",
    "corrected": f"id {' '.join(TOLD)} was confirmed", "assigned": "ids for", "returned": "ids",
    "paused": "by watch arm reading", "warned": "by watch arm reading", "resumed": "voids", "stopped": "", "closed": "",
    "ended": "ending after winner out withheld", "adopted": "digest versions", "exported": "versions",
    "imported": "versions", "checkpointed": "key", "clock": "",
}.items()}  # fmt: skip
REASONED = {"voided", "corrected", "returned", "paused", "resumed", "stopped", "closed", "adopted"}  # by whoever did so
LAST = {"corrected", "returned", "adopted", "exported", "imported", "checkpointed", "clock"}  # may follow a stop
# Of a problem, an arm, and kinds of noise; all but those in TEXTS are numbers
PROBLEM = {"arms", "shape", "noise", "signals", "limit", "slack", "delta", "tolerance", "budget", "refine"}
ARM = {"name", "levels", "start", "max", "lipschitz"}
NOISES = {"gaussian": ["sigma"], "rademacher": ["sigma"], "gaussian-guess": ["guess"], "bernoulli": [],
          "bounded": ["low", "high", "spread"], "poisson": ["about"]}  # fmt: skip
TEXTS = {"arms": list, "shape": str, "noise": dict, "signals": str, "name": str, "levels": list, "kind": str,
         "spread": bool, "digest": str, "do": str, "surefoot": str, "numpy": str, "python": str}  # fmt: skip
POSITIVE = {"sigma", "guess", "about", "lipschitz", "delta", "budget"}

Data = dict[str, Any]
Came = tuple[float, ...]  # how many readings, sum of effects, sum of harms; and where that counts, how both vary
Sums = dict[tuple[int, float], Came]  # by arm and dose
Stakes = Sequence[float | None] | None  # of an arm


class Broken(ValueError):
    """Something that does not follow."""


WRONG = (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError)  # so do these


def need(holds: Any, *words: Any) -> None:
    if not holds:
        raise Broken(" ".join(map(str, words)))


def near(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= CLOSE * min(abs(a), abs(b))


def finite(x: Any) -> bool:
    """Whether it is a number, of a size with which one can compute."""
    return type(x) in (int, float) and abs(x) <= 1e100


def fields(table: Data, known: Iterable[str]) -> Data:
    """A table of the first event, if it holds what it may and numbers that can be."""
    need(table.keys() <= set(known), "the first event holds what is not known here:", *table)
    for key, x in table.items():
        sized = finite(x) and (x == 0 or 1e-50 <= abs(x) <= 1e50)
        fits = sized and (x > 0 or key not in POSITIVE) and (x >= 0 or key not in ("slack", "tolerance"))
        need(type(x) is TEXTS[key] if key in TEXTS else fits, key, "cannot be", x)
    return table


# The chain
def once(pairs: list[tuple[str, Any]]) -> Data:
    """An object of JSON. With a name in it twice it would say one thing to one reader and another to the next."""
    found = dict(pairs)
    need(len(found) == len(pairs), "a name stands twice")
    return found


QUOTE = json.encoder.encode_basestring_ascii
JSON = json.JSONDecoder(object_pairs_hook=once, parse_constant=lambda name: need(False, name, "is no number"))
DECODE = JSON.decode


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
    def data(self) -> Data:
        found: tuple[Data, int] = JSON.raw_decode(self.payload)
        need(found[1] == len(self.payload), "it goes on after its end")
        return found[0]

    def seal(self) -> str:
        """The hash of everything in the event but the hash itself; `prev` ties it to all events before."""
        study, seq, at, actor, kind, version, reason, key, payload, prev, _ = self
        why, key = "null" if reason is None else QUOTE(reason), "null" if key is None else QUOTE(key)
        who = f"{QUOTE(study)}, {seq!r}, {QUOTE(at)}, {QUOTE(actor)}, {QUOTE(kind)}, {version!r}, {why}, {key}"
        return hashlib.sha256(f"[{who}, {QUOTE(payload)}, {QUOTE(prev)}]".encode()).hexdigest()


# What the events amount to
class Given:
    """A cohort that was released: which subjects get which arm at which dose."""

    seq, at = 0, ""  # of its event

    def __init__(self, number: int, first: int, data: Data, seed: int, blocks: bool = False):
        self.number, self.first, self.seed = number, first, seed
        self.dose: list[float] = data["dose"]
        self.n: list[int] = data["n"]
        self.stakes: list[Any] = data.get("stakes", [None] * len(self.n))
        self.certified: list[float | None] = data.get("certified", [None] * len(self.n))
        self.blocks = blocks  # whether all subjects of an arm are told as one
        self.size = sum(map(bool, self.n) if blocks else self.n)
        self.left = self.harms = self.size  # readings that have not come; of which not even the harm has
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
    """What the events so far amount to. `take` raises where one does not follow from those before it."""

    def __init__(self) -> None:
        self.seq, self.hash, self.name, self.at = 0, ORIGIN, "", ""
        self.setup: Data = {}  # the first event
        self.cohorts: list[Given] = []
        self.told = {key: array("d", [NAN]) for key in TOLD[:3]}  # by subject, from 1 on; a dose: not the assigned one
        self.effect, self.harm = self.told["effect"], self.told["harm"]
        self.done = 0  # so many cohorts are evidence, one after the other
        self.changed = 0  # the last event that changed what was told
        self.gone: dict[int, str] = {}  # subject who dropped out -> open, counts (as a reading), replaced
        self.paused: list[Event] = []  # since the last resume; empty while running
        self.fired: set[tuple[str, int, str]] = set()  # watches that have spoken: name, arm, reading
        self.stopped: Event | None = None
        self.concluded: Data | None = None  # the ending, while nothing came after it that changes it
        self.notes: list[Event] = []  # everything but readings and cohorts

    def take(self, event: Event, data: Data | None = None) -> None:
        seq, kind = self.seq + 1, event.kind
        follows = event.seq == seq and event.prev == self.hash and event.study == (self.name or event.study)
        need(follows, "event", seq, "is missing or was changed: number", event.seq, "does not follow event", self.seq)
        need(event.seal() == event.hash, "event", seq, "was changed: its content does not have its hash")
        line = event.study + event.actor + (event.reason or "") + (event.key or "")
        plain = event.study and event.actor and (line.isprintable() or (min(line) >= " " and line.encode()))
        timed = event.at[4:20:3] + event.at[26:] == "--T::.+00:00" and datetime.fromisoformat(event.at)  # all alike
        need(plain and timed, "its study, actor, reason or key is no line of text, or its time none of UTC")
        need((event.at < self.at) == (kind == "clock"), "its time is before that of the last, and no event says so")
        need((kind == "created") == (self.seq == 0), "a study begins with its creation, once")
        need(kind in FIELDS and event.version == VERSION, "it is of a kind that is not known here; upgrade surefoot")
        data = event.data if data is None else data
        need(data.keys() <= FIELDS[kind], "it holds what is not known here")
        if "versions" in data:
            fields(data["versions"], {"surefoot", "numpy", "python"})
        need(event.reason or kind not in REASONED, "it needs a reason")
        need(kind in LAST or not self.stopped, "the study was stopped")
        if handle := getattr(self, f"_{kind}", None):
            handle(event, data)
        if kind not in ("told", "opened"):
            self.notes.append(event)
        self.seq, self.hash, self.at = event.seq, event.hash, event.at

    # One method for each kind of event that changes what is known
    def _created(self, event: Event, data: Data) -> None:
        self.created, self.name, self.setup = event, event.study, data
        need(data["theorem"]["name"] in THEOREMS, "the theorem is not known to this checker:", data["theorem"]["name"])
        self.theorem, self.seed, self.pipeline = self._fresh(), data["seed"], data.get("pipeline", 1)
        late = 100 if self.theorem.UNITS else 1  # the paper's stages are decided on as a whole
        fields(data["theorem"], {"name", "digest"})
        watch, ranges = fields(data["watch"], {"level", "do", "digest"}), data["plausible"] or {}
        types = [type(x) for x in (self.seed, self.pipeline, data.get("blocks", False), data["design"])]
        fits = types == [int, int, bool, str] and 1 <= self.pipeline <= late and 0 <= self.seed < 2**64
        known = data["lift"] in ("another", "anyone") and watch["do"] in ("pause", "warn") and 0 < watch["level"] < 1
        rise = all(finite(low) and finite(high) and low < high for low, high in ranges.values())
        need(fits and known and rise and ranges.keys() <= set(READINGS), "it has settings that cannot be")
        self.told |= {key: array("d", [NAN]) for key in TOLD[3:] if data.get("blocks")}
        self.squares = any(kind.guessed or kind.varying for kind in self.theorem.kinds)
        worst = [self.theorem.effect.ends[0], self.theorem.harm.ends[1]]
        counts = data["worst"] == (worst if data["voids"] == "worst" else None) and data["voids"] in ("worst", "pause")
        need(counts, "the worst reading is", worst, "not", data["worst"])

    def _opened(self, event: Event, data: Data) -> None:
        runs = not self.paused and self.concluded is None
        need(runs and self.free, "the study is paused or has ended, or another cohort is open, not for effects alone")
        staked = [x for row in (data["certified"], *data["stakes"]) for x in row or () if x is not None]
        whole = all(type(n) is int and 0 <= n <= 10**12 for n in data["n"]) and all(map(finite, data["dose"] + staked))
        need(whole and {len(x) for x in data.values()} == {self.theorem.d}, "it does not say what every arm is given")
        given = Given(len(self.cohorts) + 1, len(self.harm), data, self.seed, "n" in self.told)
        given.seq, given.at = event.seq, event.at
        need(1 <= given.size <= MOST, "a cohort has at least one assignment, and not too many")
        self.allow(given.dose, given.n, given.stakes)
        ahead = self.ahead()
        for arm, most in enumerate(given.certified):  # an arm without subjects rests: its dose is nobody's
            same = near(INF if most is None else most, now := ahead.certified(arm))
            need(same, "it says that", most, "was certified; the readings certify", now)
        self.theorem.publish(given.dose, given.stakes)
        self.cohorts.append(given)
        self.add_subjects(given.size)

    def add_subjects(self, count: int) -> None:
        for values in self.told.values():
            values.extend([NAN] * count)

    def _told(self, event: Event, data: Data) -> None:
        """Of a subject for the first time; or corrected, from what it `was`."""
        subject, given, corrects = data["id"], self.find(data["id"]), event.kind == "corrected"
        was, late = data["was"] if corrects else {}, given.closed
        need(subject not in self.gone, subject, "dropped out: it has no reading that could be corrected")
        new = {key: x for key, x in data.items() if key in TOLD}
        says = was.keys() == data.keys() - {"id", "was", "confirmed"} if corrects else "effect" in new or "harm" in new
        need(new and says, subject, "tells nothing, or does not say what was told before")
        self._put(subject, given, new, was, data.get("confirmed") is True if corrects else event.reason is not None)
        if corrects:
            self.fired.clear()
        if corrects or (late and self.complete(subject)):  # late: the assignment had been withdrawn
            if self.theorem.UNITS or not given.withdrawn:  # the paper's stages count without those
                self.changed = event.seq
            if late:
                self.again(given)

    _corrected = _told

    def _put(self, subject: int, given: Given, new: Data, was: Data, confirmed: bool) -> None:
        """Put down what is told of a subject for the first time, or corrected from what it `was`, if it may be."""
        known = self.reading(subject)
        same = was == {key: known[key] for key in new if key in known}
        need(same, subject, "was told before, or not what the correction says")
        for key, x in new.items():
            need(key in self.told and finite(x), subject, "has a", key, "that cannot be")
            self.told[key][subject] = x
        effect, harm, n = self.effect[subject], self.harm[subject], self.told["n"][subject] if given.blocks else 1
        need(n >= 1 and type(new.get("n", 1)) is int, subject, "is a block: it needs an n of at least 1")
        for key, spread in zip(READINGS, SPREADS, strict=True) if given.blocks else ():
            varies, asked = self.told[spread][subject], self.squares and key in new
            need(varies >= 0 or (math.isnan(varies) and not asked), subject, "does not say how its readings vary")
        can = harm == harm and self.theorem.harm.possible(harm, n) and self.theorem.effect.possible(effect, n)
        need(can, subject, "has no harm, or a reading that cannot be")
        few = not given.blocks or new.get("n", 0) <= MANY * given.n[given.arm(subject)]
        need(confirmed or (few and self.plausible(new, n)), subject, "is not plausible, and nobody confirmed it")
        if "dose" in new and new["dose"] == given.dose[given.arm(subject)]:
            self.told["dose"][subject] = NAN
        given.harms -= "harm" not in known
        given.left -= "effect" in new and "effect" not in known
        self.settle()

    def _voided(self, event: Event, data: Data) -> None:
        subject = data["id"]
        given, free = self.find(subject), math.isnan(self.harm[subject]) and subject not in self.gone
        need(free and not (given.closed or given.withdrawn), subject, "cannot drop out any more")
        self.gone[subject] = "open"
        if self.setup["voids"] == "worst":
            self._fill(dict(zip(READINGS, self.setup["worst"], strict=True)))
        else:
            self.paused.append(event)

    def _fill(self, voids: Data | None) -> None:
        """Those who dropped out count as this reading; or somebody else takes their places."""
        need(voids is None or voids.keys() == set(READINGS), "a drop-out counts as an effect and a harm")
        for subject in [s for s, how in self.gone.items() if how == "open"]:
            given, self.gone[subject] = self.find(subject), "replaced" if voids is None else "counts"
            if voids is None:
                given.later[len(self.harm)] = given.arm(subject)
                self.add_subjects(1)
            else:
                self._put(subject, given, voids, {}, True)

    def _warned(self, event: Event, data: Data) -> None:
        """By a watch, of which no more is checked here than that there is such a one; or somebody's pause."""
        if data["by"] == "watch":
            watch, arm, reading = data["watch"], data["arm"], data["reading"]
            known = watch in WATCHES and reading in READINGS and type(arm) is int and 0 <= arm < self.theorem.d
            self.fired.add((watch, arm, reading))
        else:
            known = data["by"] in ("actor", "checker", "size") and len(data) == 1 and event.kind == "paused"
        need(known, "there is no such watch, and nobody else who says so")
        if event.kind == "paused":
            self.paused.append(event)

    _paused = _warned

    def _assigned(self, event: Event, data: Data) -> None:
        for subject in data["ids"]:
            self.find(subject)

    _returned = _assigned

    def _resumed(self, event: Event, data: Data) -> None:
        need(self.paused, "only a pause can be lifted")
        self.paused = []
        self._fill(data.get("voids"))

    def _stopped(self, event: Event, data: Data) -> None:
        self.stopped = event

    def _closed(self, event: Event, data: Data) -> None:
        need(self.open and self.changed > self.open.seq, "a cohort is withdrawn only after a correction")
        self.cohorts[-1].withdrawn = True
        self.settle()

    def _ended(self, event: Event, data: Data) -> None:
        need(not self.paused and self.concluded is None, "nothing is concluded in a pause, or twice")
        self.conclude(data)
        self.concluded = data

    # Readings
    @property
    def open(self) -> Given | None:
        last = self.cohorts[-1] if self.cohorts else None
        return last if last and not (last.closed or last.withdrawn) else None

    @property
    def free(self) -> bool:
        """Whether another cohort may be opened: none is open, or all its harms are in; and few cohorts lack effects."""
        return not (self.open and self.open.harms) and len(self.cohorts) - self.done < self.pipeline

    def find(self, subject: int) -> Given:
        """The cohort of a subject. Who takes a place over is of the last one: no other is opened while one is free."""
        need(type(subject) is int and 1 <= subject < len(self.harm), subject, "has not been assigned")
        if subject >= self.cohorts[-1].first:
            return self.cohorts[-1]
        return self.cohorts[bisect_right(self.cohorts, subject, key=lambda given: given.first) - 1]

    def reading(self, subject: int) -> Data:
        """What was told of a subject, and the dose given."""
        if math.isnan(self.harm[subject]):
            return {}  # nothing is told before the harm
        given = self.find(subject)
        found: Data = {"dose": given.dose[given.arm(subject)]}
        found |= {key: values[subject] for key, values in self.told.items() if values[subject] == values[subject]}
        return found | {"n": int(found["n"])} if given.blocks else found

    def complete(self, subject: int) -> bool:
        return self.effect[subject] == self.effect[subject] and self.harm[subject] == self.harm[subject]

    def plausible(self, new: Data, n: float = 1) -> bool:
        """Whether a reading, or the mean of a block, is in the range in which readings are expected."""
        ranges = self.setup["plausible"]
        return not ranges or all(low <= new[key] / n <= high for key, (low, high) in ranges.items() if key in new)

    def sums(self, given: Given, harms: bool = False) -> Sums:
        """What came back of a cohort, summed exactly, so that the order in which it came does not matter; or, where its
        effects are awaited, its `harms` alone."""
        lists: dict[tuple[int, float], list[int]] = {}
        found, known, doses = Sums(), self.harm if harms else self.effect, self.told["dose"]
        for subject, arm in given.subjects():
            if known[subject] == known[subject]:  # no effect is told before the harm
                dose = doses[subject] if doses[subject] == doses[subject] else given.dose[arm]
                lists.setdefault((arm, dose), []).append(subject)
        for at, subjects in lists.items():
            sizes = [int(self.told["n"][s]) for s in subjects] if given.blocks else [1] * len(subjects)
            n, totals, apart = sum(sizes), [], []
            for key, spread in zip(READINGS, SPREADS, strict=True):
                known = self.told[key]
                values = [0.0] * len(subjects) if harms and key == "effect" else [known[s] for s in subjects]
                totals.append(math.fsum(values))
                if self.squares:
                    inside = [self.told[spread][s] for s in subjects] if given.blocks else []
                    between = [m * (x / m - totals[-1] / n) ** 2 for m, x in zip(sizes, values, strict=True)]
                    apart.append(math.fsum(x for x in inside + between if x == x))
            found[at] = n, *totals, *apart
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
        given.came, self.concluded, self.theorem = self.sums(given), None, self._fresh()
        for each in self.cohorts:
            self.theorem.publish(each.dose, each.stakes)
            if each.closed:
                self.theorem.take(each)

    def pending(self) -> list[Given]:
        """Cohorts whose harms are in and whose effects are awaited, or those of a cohort before, in their order."""
        return list(takewhile(lambda given: not given.harms or given.withdrawn, self.cohorts[self.done :]))

    def ahead(self) -> Theorem:
        """What is proved with harms of cohorts whose effects are awaited. Only its doses are used ("Late effects")."""
        pending = self.pending()
        theorem = copy.deepcopy(self.theorem) if pending else self.theorem
        for given in pending:
            theorem.take(given, self.sums(given, harms=True))
        return theorem

    def replay(self) -> Iterator[tuple[Given, Theorem]]:
        """Each cohort with what was proved of doses before it, by what is known now."""
        theorem = self._fresh()
        for given in self.cohorts:
            theorem.publish(given.dose, given.stakes)
            yield given, theorem
            theorem.take(given, given.came if given.closed else self.sums(given, harms=True))

    def allow(self, dose: Sequence[float], n: Sequence[int], stakes: Sequence[Stakes]) -> None:
        """Raises where a cohort may not be released now."""
        theorem, last = copy.copy(self.ahead()), self.cohorts[-1].seq if self.cohorts else 0
        theorem.publish(dose, stakes, anew=self.changed > last)
        no = [why for arm, a in enumerate(dose) if n[arm] and (why := theorem.refusal(arm, a))]
        need(not no, "; ".join(no))

    def conclude(self, ending: Data) -> None:
        """Raises where an ending does not follow. `after` which cohort it did, and after which an arm was `out`, or
        within the tolerance of the one named: what was proved then stays so. `withheld`: the arms whose start dose
        seems not to be safe, so that none is named."""
        kind, winner, after, out = (ending[key] for key in ("ending", "winner", "after", "out"))
        theorem, names, pulls = self._fresh(), [arm.name for arm in self.theorem.arms], 0.0
        held, tolerated = ending.get("withheld", []), winner if kind == "within-tolerance" else None
        named = kind in ("best-arm", "within-tolerance")
        one = winner is None or (type(winner) is int and 0 <= winner < len(names))
        need(one and (winner is not None) + bool(held) == named, "it names an arm where there is none, or none")
        need(named or kind in ("all-stopped", "budget-spent"), "there is no ending", kind)
        whole = all(type(x) is int and 0 < x <= after for x in out if x is not None) and len(out) == len(names)
        whole = whole and type(after) is int and 0 <= after <= self.done
        need(whole, "it does not say after which cohort it ended, and every arm was out")
        watched = {arm for watch, arm, _ in self.fired if watch == "start"}
        doubted = set(watched)
        for given in self.cohorts[:after]:  # all of them are complete: nothing is concluded from harms alone
            theorem.publish(given.dose, given.stakes)
            theorem.take(given)
            pulls += sum(came[0] for came in given.came.values())
            for arm in (arm for arm, when in enumerate(out) if when == given.number):
                far = not theorem.out(arm) and (tolerated is None or not theorem.out(arm, tolerated))
                need(not far, names[arm], "was not out after cohort", given.number)
                doubted |= {arm} if theorem.harmful(arm) else set()
        need(set(held) <= doubted, "nothing is known of the starts withheld")
        need(not named or watched <= set(held), "an arm is named, and a watch says that a start dose is not safe")
        if kind == "budget-spent":  # or, of the paper's designs, the next stage would not fit in
            spent = pulls >= self.setup["problem"].get("budget", 1e9) or not theorem.UNITS
            need(spent, f"the budget is not spent by {pulls:,.0f} readings")
        if winner is not None:
            for shown in (theorem, self.theorem):  # then, and now
                need(not shown.harmful(winner) and not out[winner], names[winner], "is named, and was out")
        if winner is not None or kind == "all-stopped":
            left = [arm for arm, when in enumerate(out) if arm != winner and not when]
            left = [arm for arm in left if not (theorem.out(arm) or theorem.out(arm, tolerated))]
            need(not left, ", ".join(names[arm] for arm in left), "may still be the best by what was read")


# From an export to words
def exported(data: Any) -> list[Event]:
    """The events of an export, which says nothing beside them."""
    known = {"surefoot": "study", "format": VERSION, "study": data["events"][0]["study"], "events": data["events"]}
    need(known | data == known and isinstance(data["events"], list), "this is not the export of a study")
    return [Event(**event) for event in data["events"]]


def check(events: Sequence[Event], head: str | None = None) -> Data:
    """Walk through the events; the report says whether they hold, the first that does not, and what they say."""
    record = Record()
    report: Data = {"ok": False, "events": len(events), "head": events[-1].hash if events else None, "event": None}
    for seq, event in enumerate(events, 1):
        try:
            record.take(event)
        except WRONG as error:
            return report | {"event": seq, "message": f"event {seq} ({event.kind}) does not hold: {error}"}
    known = [event.seq for event in events if head in (None, event.hash)]
    if not known:
        return report | {"message": "no event has this head: one was changed or is missing"}
    since = f"; the head is that of event {known[-1]:,}, and vouches for none after it"
    message = f"all {len(events):,} events hold{since if known[-1] < len(events) else ''}"
    return report | {"ok": True, "message": message, "says": words(record)}


def words(record: Record) -> list[str]:
    """What was concluded, and what happened on the way."""
    p, end, names = record.setup["problem"], record.concluded, [arm.name for arm in record.theorem.arms]
    line = f"the limit {p['limit']:g}" + (f" plus the slack {p['slack']:g}" if p.get("slack") else "")
    safe = f"no dose was assigned whose mean harm is above {line}"
    if p["shape"] == "levels":
        safe = f"no level was assigned but the first of an arm, or one above a level whose mean harm is at most {line}"
    said = f"no arm is named: the study is {'stopped' if record.stopped else 'not at its end'}"
    if end is not None:
        what = "the best arm" if end["ending"] == "best-arm" else f"within {p.get('tolerance', 0):g} of the best"
        said = f"it ended ({end['ending']}) and no arm is named"
        said = said if end["winner"] is None else f"{names[end['winner']]} is {what} (arm {end['winner'] + 1})"
    count = ", ".join(f"{n:,} {kind}" for kind, n in Counter(event.kind for event in record.notes).items())
    filled, other = sum(how == "counts" for how in record.gone.values()), sum(x == x for x in record.told["dose"])
    told = [s for s in range(1, len(record.harm)) if record.complete(s)]
    many = sum(int(record.told["n"][s]) for s in told) if record.setup.get("blocks") else len(told)
    late = [given.number for given, theorem in record.replay() for arm in range(len(names))
            if given.n[arm] and theorem.refusal(arm, given.dose[arm])]  # fmt: skip
    return [
        f"Study {record.name!r}, theorem {record.setup['theorem']['name']}: {said}.",
        f"With probability at least {1 - p['delta']:.15g}, under the assumptions in the first event, {safe}, "
        f"and an arm that is named is what it is said to be.",
        f"{len(record.cohorts):,} cohorts, {many:,} readings; every dose was certified by readings told before it.",
        f"Other events: {count}. Of those who dropped out {filled} count as a reading that was named instead; "
        f"{other} doses given were not the ones assigned.",
        f"Cohorts with a dose that the readings as corrected do not certify: {', '.join(map(str, late)) or 'none'}.",
        *record.theorem.aside(),
    ]


def shown(text: str) -> str:
    """For a terminal: what is no letter, or none that it has, as its code."""
    plain, has = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text), sys.stdout.encoding or "ascii"
    return plain.encode(has, "backslashreplace").decode(has)


def main(arguments: Sequence[str]) -> int:
    gc.disable()  # a million events are kept, and none of them is garbage
    head = arguments[2] if len(arguments) == 3 and arguments[1] == "--head" else None
    try:
        need(len(arguments) == (1 if head is None else 3), "python checker.py study.json [--head HASH]")
        with open(arguments[0], encoding="utf-8") as file:
            report = check(exported(DECODE(file.read())), head)
    except (OSError, *WRONG) as error:
        print(shown(f"error: {error}"), file=sys.stderr)
        return 2
    print("\n".join(map(shown, [report["message"], f"head {report['head']}", *report.get("says", [])])))
    if report["ok"] and head is None:
        print("Consistent, not authenticated: whoever could write the file could have made all of it anew.")
    return 0 if report["ok"] else 1


# Bets: logs of wealth, and mixtures of them

SIGMA = 0.1  # share of delta: upper bounds on sigmas that are not known
WIDER = [0.5 * (1.25**k - 1) for k in (0.03, 0.06, 0.12, 0.25, 0.5, 1, 2, 3, 4.5, 7, 11, 16, 20)]
VARY = (0.9, 0.75, 0.5, 0.3, 0.15, 0.06, 0.02)  # sizes of bets that learn how bounded readings vary
Atoms = list[tuple[float, float]]


def mixture(top: float, ratio: float, dense: int, below: int, above: int, tails: float, nothing: float) -> Atoms:
    """Values of g, and the logs of their weights. A mean of exp(g s - g^2 v / 2) over them, s a sum of noise with
    weights fixed beforehand and v the sum of their squares, ever reaches 1/alpha with probability alpha (Ville)."""
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


def log_mixture(s: float, v: float, atoms: Atoms) -> float:
    return log_sum([g * s - 0.5 * g * g * v + w for g, w in atoms])


def either(a: float, b: float, share: float) -> float:
    """Log of the wealth of two bets, of which the second has this share of the stake."""
    return log_sum([x + math.log(part) for x, part in ((a, 1 - share), (b, share)) if part > 0])


def descend(x: float, steps: int, goal: float, of: Callable[[float], Atoms], most: float = INF) -> float:
    """Newton's method towards where the log of a sum of exponentials is the goal. It is convex: from outside it never
    passes that place, and may be stopped early. `of` a number: the logs, and their derivatives."""
    for _ in range(steps):
        found = of(x)
        total = log_sum([e for e, _ in found])
        x -= (total - goal) / math.fsum(math.exp(e - total) * slope for e, slope in found)
        x = min(max(x, 0.0), most)
    return x


def rate(n: float, total: float, goal: float, sign: int, atoms: Atoms) -> float:
    """A bound on the mean of n binary readings: from below, or from above if sign is -1."""
    rest = [(math.exp(sign * g) - 1, w + sign * g * total) for g, w in atoms]
    ends = [(math.exp((e - goal) / n) - 1) / c for c, e in rest]
    p = max(0.0, *ends) if sign > 0 else min(1.0, *ends)
    return descend(p, 2, goal, lambda p: [(e - n * math.log(1 + p * c), -n * c / (1 + p * c)) for c, e in rest], 1.0)


def tight(q: float) -> float:
    """The sigma of a binary reading whose mean is q or less (Kearns and Saul)."""
    return math.sqrt((1 - 2 * q) / (2 * math.log((1 - q) / q)))


def add(sums: list[float], more: Iterable[float]) -> None:
    for k, x in enumerate(more):
        sums[k] += x


def everywhere(goal: float, marks: Sequence[float], total: Callable[[float, float], float]) -> bool:
    """Whether evidence comes to the goal at every x from the least mark to the largest. `total(x, y)` is not above
    what there is at any point from x to y, and exact where they are one: cells are split until it is known."""
    goal, cells = goal * (1 - CLOSE), list(pairwise(sorted(set(marks))))
    while cells:
        low, high = cells.pop()
        if not total(low, high) >= goal:  # nor is it where that is no number
            middle = (low + high) / 2
            if not low < middle < high or total(middle, middle) < goal:
                return False
            cells += [(low, middle), (middle, high)]
    return True


class Kind:
    """Effects, or harms: the one place that knows kinds of noise ("Readings" in docs/guarantees.md). A bet on one
    is exp(g * reading - cost(g, x)), whose mean is at most 1 where that of the reading is at most x (g < 0: at least).
    `units`: bounded readings are brought to [0, 1], where bets on binary ones hold for them."""

    def __init__(self, noise: Data, arms: int, units: bool):
        need(noise["kind"] in NOISES, "there is no kind of noise", noise["kind"])
        kind = fields(noise, {"kind", *NOISES[noise["kind"]]})["kind"]
        bounded, coin, self.counts = (kind == name for name in ("bounded", "bernoulli", "poisson"))
        self.whole, self.binary = coin or self.counts, coin or (bounded and units)
        low, high = (noise["low"], noise["high"]) if bounded else (0, 1) if coin else (0 if self.counts else -INF, INF)
        need(low < high, "readings are between two numbers that rise, not", low, high)
        self.ends, self.hair = (float(low), float(high)), CLOSE * max(abs(x) for x in (low, high, 0) if abs(x) < INF)
        self.low, self.wide = (self.ends[0], self.ends[1] - self.ends[0]) if bounded and units else (0.0, 1.0)
        self.likely = self.binary or self.counts  # bets are likelihood ratios, which have no sigma and no weights
        self.guessed, self.varying = kind == "gaussian-guess", noise.get("spread") is True  # how they vary is bet on
        self.sigma: float = 0.5 * (high - low) / self.wide if bounded or coin else noise[NOISES[kind][0]]
        self.squares = False  # whether bets need no sigma, but squares
        self.origin = NAN  # from which these are measured: the mean of the first readings
        self.weight = [0.0 if self.guessed else 1.0] * arms  # for how many readings of this sigma one counts
        self.seen = [(0.0, 0.0)] * arms  # degrees of freedom, and the squares

    def possible(self, total: float, n: float) -> bool:
        """Whether n readings can have this sum (nan: it is not known yet)."""
        low, high = n * (self.ends[0] - self.hair), n * (self.ends[1] + self.hair)
        return total != total or (low <= total <= high and not (self.whole and total % 1))

    def learn(self, arm: int, n: float, square: float, goal: float) -> None:
        """An upper bound on a sigma that is not known, by how readings vary within a cohort."""
        if not self.guessed or n <= 1:
            return
        free, q = self.seen[arm] = self.seen[arm][0] + n - 1, self.seen[arm][1] + square
        rest = [(0.5 * free * math.log1p(2 * g), g * q) for g in WIDER]
        if (y := max((e - goal) / s for e, s in rest) if q > 0 else 0.0) > 0:
            y = descend(y, 3, goal, lambda y: [(e - s * y, -s) for e, s in rest])
            self.weight[arm] = max(self.weight[arm], self.sigma**2 * y)

    def cost(self, g: float, x: float) -> float:
        if not self.likely:
            return g * x + 0.5 * (g * self.sigma) ** 2
        return x * math.expm1(g) if self.counts else math.log(1 + x * math.expm1(g))

    def guess_bet(self, n: float, total: float, bound: float, guess: float | None, sign: int) -> float:
        """Log of the wealth from one bet that the mean is above `bound` (below it), by a guess made beforehand."""
        low, top = 0.0 if self.likely else -INF, 1.0 if self.binary else INF  # what means are between
        hair = 1e-3 * (1.0 if self.binary else self.sigma)
        bound = low + hair if sign > 0 and bound <= low else top - hair if sign < 0 and bound >= top else bound
        if guess is None or not low < bound < top or sign * (guess - bound) <= 0:
            return 0.0
        q = min(max(guess, 0.5 * (low + bound)), 0.5 * (top + bound))
        odds = q * (1 - bound) / (bound * (1 - q)) if self.binary else q / bound if self.counts else NAN
        g = math.log(odds) if self.likely else (q - bound) / self.sigma**2
        return g * total - n * self.cost(g, bound)

    def wager(self, sums: Sequence[float], cell: tuple[float, float], sign: int, atoms: Atoms) -> float:
        """Log of the wealth of bets that a mean is above all numbers of a cell (below them), whose first end is the one
        where bets that are monotone are least. Sums of weight^2, weight, weight * reading; and what else they need."""
        (v, w, total, *square), x = sums, cell[0]
        if self.likely:
            q = min(max(x, 0.0), 1.0) if self.binary else x
            known = log_sum([sign * g * total - v * self.cost(sign * g, q) + p for g, p in atoms])
        else:
            known = log_mixture(sign * (total - x * w) / self.sigma, v, atoms)
        if self.varying:
            bets = [sign * l * (total - v * x) + (l + math.log1p(-l)) * square[0] for l in VARY]
            return either(known, log_sum(bets) - math.log(len(VARY)), 0.5)
        if not self.squares:
            return known
        # Bets exp(g a - g^2 a^2/2) on every reading x + a have a mean of at most 1 whatever sigma is. Their logs are
        # concave in x, so least at an end of a cell
        n, total, all_ = square[1:]
        ends = [(total - n * z, all_ - 2 * z * total + n * z * z) for z in (end - self.origin for end in cell)]
        sizes = [(sign * g / self.sigma, p) for g, p in atoms]
        return either(log_sum([min(g * a - 0.5 * g * g * aa for a, aa in ends) + p for g, p in sizes]), known, 0.1)


# The theorems
class Arm(NamedTuple):
    name: str
    start: float  # known to be safe
    top: float  # the largest dose
    lipschitz: float  # harm rises by no more a unit
    levels: list[float]  # the only doses, if any

    def within(self, dose: float) -> float:
        """From the start dose to the largest, and down to a level."""
        dose = min(max(dose, self.start), self.top)
        return max((x for x in self.levels if x <= dose * (1 + CLOSE)), default=dose)


class Theorem:
    """What readings prove. The numbers of a problem are those of the first event. Every theorem says by itself:"""

    theorem: ClassVar[str]  # its name and number
    shape: str  # of the problems that it is about
    bet: Callable[[int, float, Came, Stakes], None]  # an arm, what came back at a dose, and what was staked on that
    refuted: Callable[[int, int | None], bool]  # whether it is proved that it is not the best; see `out`
    COUNTS = False  # whether it has bets on counts
    UNITS = True  # whether bounded readings are brought to [0, 1], and a sigma that is not known can be shown

    def __init__(self, problem: Data, options: Data):
        fields(problem, PROBLEM)
        need(problem["shape"] == self.shape, f"the theorem is about problems of the shape {self.shape!r}")
        fits = problem["delta"] < 1 and problem.get("signals", "any") in ("any", "independent")
        need(fits, "the theorem is about a delta below 1, and readings that are independent, or of any kind")
        noise, self.d, self.problem = problem["noise"], len(problem["arms"]), problem
        need("kind" in noise or noise.keys() == set(READINGS), "there is noise that nobody reads")
        self.kinds = [Kind(noise if "kind" in noise else noise[key], self.d, self.UNITS) for key in READINGS]
        self.effect, self.harm = self.kinds
        guessed, wide = sum(kind.guessed for kind in self.kinds), self.harm.wide
        need(self.UNITS or not guessed, "this theorem needs a sigma that is known")
        need(self.COUNTS or not any(kind.counts for kind in self.kinds), "this theorem has no bets on counts")
        need(self.shape == "levels" or not any(kind.varying for kind in self.kinds), "it has no bets on how they vary")
        self.delta: float = problem["delta"] * (1 - SIGMA * bool(guessed))
        self.spread = math.log(len(WIDER) * max(guessed, 1) * self.d / (SIGMA * problem["delta"]))
        self.limit: float = (problem["limit"] - self.harm.low) / wide
        self.ceiling = self.limit + problem.get("slack", 0.0) / wide
        self.tolerance: float = problem.get("tolerance", 0.0) / self.effect.wide
        self.arms = [self.arm_of(fields(arm, ARM), wide) for arm in problem["arms"]]
        lines = self.limit > 0 and all(kind.ends[0] in (0.0, -INF) for kind in self.kinds)
        need(
            lines or self.shape != "linear", "lines go through 0: limits are above it, and bounded readings begin there"
        )
        need(all(arm.top < INF for arm in self.arms) or self.shape == "linear", "an arm has a largest dose")
        names = {arm.name.strip() for arm in self.arms}
        need(len(names) == self.d and all(names), "arms have names, each its own")
        self.safe, self.harmed = [arm.start for arm in self.arms], [False] * self.d

    def arm_of(self, arm: Data, wide: float) -> Arm:
        start, levels = arm["start"], arm.get("levels") or []
        top = levels[-1] if levels else arm.get("max", INF)
        rise = sorted({*levels, start}) == (levels or [start])  # from the start dose on
        need((start > 0 or self.shape != "linear") and start <= top and rise, "doses cannot be so")
        return Arm(arm["name"], start, top, arm["lipschitz"] / wide if self.shape == "monotonic" else INF, levels)

    def certified(self, arm: int) -> float:
        """The largest dose of an arm that may be given."""
        return self.safe[arm]

    def harmful(self, arm: int) -> bool:
        """Whether harm at an arm's start dose is shown to be above the limit."""
        return self.harmed[arm]

    def publish(self, dose: Sequence[float], stakes: Sequence[Stakes], anew: bool = True) -> None:
        """A cohort with these doses and stakes is to be released; `anew`: after a correction."""

    def take(self, given: Given, came: Sums | None = None) -> None:
        """What came back of a cohort: first the doses that were given instead of the one assigned, without stakes."""
        came = given.came if came is None else came
        for arm, main in enumerate(given.dose):
            for dose in sorted((a for i, a in came if i == arm), key=lambda a: (a == main, a)):
                n, *sums = came[arm, dose]
                scaled = [(x - n * kind.low) / kind.wide for x, kind in zip(sums, self.kinds, strict=False)]
                squares = [x / kind.wide**2 for x, kind in zip(sums[2:] or (0.0, 0.0), self.kinds, strict=True)]
                self.bet(arm, dose, (n, *scaled, *squares), given.stakes[arm] if dose == main else None)
                for kind, square in zip(self.kinds, squares, strict=True):
                    kind.learn(arm, n, square, self.spread)

    def out(self, arm: int, named: int | None = None) -> bool:
        """Whether an arm is shown not to be the best, or to have no safe dose; or, where another is `named`, not to be
        better than that by more than the tolerance."""
        return (named is None and self.harmful(arm)) or self.refuted(arm, named)

    def aside(self) -> list[str]:
        """What was read and counts for nothing, in words."""
        return []

    def goal(self, share: float, each: bool = True) -> float:
        """The log of a wealth that is reached with probability at most a share of delta: of `each` arm, or of all."""
        return math.log((self.d if each else 1) / (share * self.delta))

    def refusal(self, arm: int, dose: float, free: bool = False) -> str | None:
        """Why this dose may not be given; None where it may. `free`: between levels as well."""
        it = self.arms[arm]
        most = it.start if dose <= it.start else self.certified(arm)
        below = dose <= min(most, it.top) + CLOSE * max(abs(most), abs(dose)) and (dose > 0 or self.shape != "linear")
        if below and (free or dose in (it.levels or [dose])):
            return None
        levels = f", of its levels {', '.join(f'{x:g}' for x in it.levels)}" if it.levels else ""
        words = f"{most:.9g} is the largest dose that the readings before it allow"
        return f"{it.name} at dose {dose:.6g} is not certified: {words}{levels}"


class Stage(NamedTuple):
    """What a cohort of the paper's designs asked for, and what came back of it, by arm."""

    dose: Sequence[float]
    stakes: Sequence[Any]
    first: int  # the cohort with which the stage began
    came: dict[int, Came]

    def asks(self, dose: Sequence[float], stakes: Sequence[Any]) -> bool:
        """Whether this is of the same stage: doses, numbers of pulls, and of estimates."""
        rows = zip(self.stakes, stakes, self.dose, dose, strict=True)
        return all((not x and not y) or (x and y and x[:2] == y[:2] and near(a, b)) for x, y, a, b in rows)


class Staged(Theorem):
    """The paper's designs. Stakes of an arm: how many pulls its stage has in all, the number of its estimate, and the
    cohort with which the stage began. A stage is made of the cohorts since then that asked for the same; the one before
    it ends with the cohort before that. So every cohort says which readings count; other doses, more pulls than were
    asked for and, after a correction, stages that it does not lead to are set aside."""

    UNITS = False
    bounds: Callable[[int], tuple[float, float, float, bool]]  # certified dose, value from and to, whether harmful

    def __init__(self, problem: Data, options: Data):
        super().__init__(problem, options)
        self.past: list[Stage] = []  # by cohort
        self.union = self.d if self.shape == "linear" else 1  # an epoch's number is that of all arms

    def publish(self, dose: Sequence[float], stakes: Sequence[Any], anew: bool = True) -> None:
        rows, this = [row for row in stakes if row], len(self.past) + 1
        whole = all(type(x) is int and x > 0 for row in rows for x in row) and {len(row) for row in rows} == {3}
        need(whole, "stages have whole numbers from 1 on")
        numbers, first = [row[1] for row in rows], rows[0][2]
        need({row[2] for row in rows} == {first} and first <= this, "a stage began with one cohort, before or now")
        need(self.union > 1 or len(set(numbers)) == len(numbers), "no two estimates have the same number")
        before = next(self.path(first - 1), [])
        rises = not before or max(row[1] for row in before[-1].stakes if row) < min(numbers)
        over = first == this and all(self.pulls(before, arm)[1] for arm in range(self.d))
        goes_on = this > 1 and self.past[-1].first == first and self.past[-1].asks(dose, stakes)
        need(rises and (anew or over or goes_on), "a number is used once, and a stage goes on to its end")
        self.past = [*self.past, Stage(dose, stakes, first, {})]

    def take(self, given: Given, came: Sums | None = None) -> None:
        if not given.withdrawn:  # a stage is whole or nothing
            super().take(given, came)

    def bet(self, arm: int, dose: float, came: Came, stakes: Any) -> None:
        if stakes:
            self.past[-1].came[arm] = came[:3]

    def path(self, end: int) -> Iterator[list[Stage]]:
        """The stages that count up to a cohort, the last one first: each as the cohorts that it is made of."""
        while end:
            last = self.past[end - 1]
            yield [x for x in self.past[last.first - 1 : end] if x.asks(last.dose, last.stakes)]
            end = last.first - 1

    def aside(self) -> list[str]:
        count = len(self.past) - sum(map(len, self.path(len(self.past))))
        return [f"Cohorts of stages that were set aside after a correction: {count:,}."] if count else []

    def pulls(self, stage: list[Stage], arm: int) -> tuple[list[float], bool]:
        """How many there are of an arm, with the sums of what was read; and whether that is all that were asked for."""
        want, sums = (stage[-1].stakes[arm] or [0])[0] if stage else 0, [0.0] * 3
        for came in (x.came[arm] for x in stage if arm in x.came):
            if sums[0] + came[0] <= want:
                add(sums, came)
        return sums, sums[0] == want

    def estimates(self, arm: int) -> Iterator[tuple[float, ...]]:
        """Of each stage that is complete: its dose, and what mean effect and mean harm are between (Hoeffding)."""
        for stage in self.path(len(self.past)):
            (n, *sums), complete = self.pulls(stage, arm)
            if n and complete:
                number = stage[-1].stakes[arm][1]
                unit = math.sqrt(2 * math.log(8 * self.union * number**2 / self.delta) / n)
                means = zip(sums, self.kinds, strict=True)
                yield stage[-1].dose[arm], *(x / n + kind.sigma * unit * sign for x, kind in means for sign in (-1, 1))

    def certified(self, arm: int) -> float:
        return self.bounds(arm)[0]

    def harmful(self, arm: int) -> bool:
        return self.bounds(arm)[3]

    def refuted(self, arm: int, named: int | None) -> bool:
        others = [named] if named is not None else [i for i in range(self.d) if i != arm]
        bar = max(self.bounds(i)[1] for i in others) + (self.tolerance if named is not None else 0.0)
        return self.bounds(arm)[2] <= bar + CLOSE * abs(bar)


class SafeBAILinear(Staged):
    """Lemma 1 of the paper; the number is that of the epoch. Effect and harm are slopes times the dose."""

    theorem, shape = "safebai-linear/1", "linear"

    def bounds(self, arm: int) -> tuple[float, float, float, bool]:
        it, limit, found = self.arms[arm], self.limit, list(self.estimates(arm))
        none = it.top if math.isfinite(it.top) else it.start  # where there is shown to be no harm
        doses = [none if most <= 0 else limit * dose / most for dose, _, _, _, most in found]
        safe = it.within(max([it.start, *doses]))
        lower = max((safe * worst / dose for dose, worst, *_ in found), default=-INF)
        over = [it.within(limit * dose / least if least > 0 else it.top) for dose, _, _, least, _ in found]
        upper = min((most * x[2] / x[0] for most, x in zip(over, found, strict=True)), default=INF)
        return safe, lower, upper, any(it.start * x[3] / x[0] > limit for x in found)


class SafeBAIMonotonic(Staged):
    """Lemma 13 of the paper; the number is over all arms. Harm never falls, and rises by at most K a unit."""

    theorem, shape = "safebai-monotonic/1", "monotonic"

    def bounds(self, arm: int) -> tuple[float, float, float, bool]:
        it, found = self.arms[arm], list(self.estimates(arm))
        safe, good = (
            it.within(max([it.start, *(x[0] + (bound - x[4]) / it.lipschitz for x in found if x[4] <= bound)]))
            for bound in (self.ceiling, self.limit)
        )
        over = min((x[0] for x in found if x[3] >= self.limit), default=it.top)
        lower = max((x[1] for x in found if x[0] <= good + CLOSE * abs(good)), default=-INF)
        upper = min((x[2] for x in found if x[0] >= over), default=INF)
        return safe, lower, upper, any(x[0] <= it.start and x[3] > self.limit for x in found)


class SurefootLinear(Theorem):
    """Theorem 1. Doses are in units of the start dose, readings in units of their sigma: an arm's effect has mean
    theta a, its harm mu a. Stakes of an arm: `own`, `led`, and one for each arm's claim. Shares of delta: doses 0.3,
    stops 0.05, verdict 0.65."""

    theorem, shape = "surefoot-linear/6", "linear"
    OWN, LED, SHARED = 0, 1, 2  # and on

    def __init__(self, problem: Data, options: Data):
        super().__init__(problem, options)
        self.sy, self.sz = self.effect.sigma, self.harm.sigma
        if self.harm.binary and self.limit < 0.499:
            self.sz = tight(self.limit)
        self.top = self.limit / self.sz
        self.shift = self.tolerance * self.sz / (self.limit * self.sy)
        self.unsafe = [arm.top for arm in self.arms]
        self.data = [[0.0] * 5 for _ in self.arms]  # n, sums of dose, harm, dose^2, dose * harm / sigma
        # by stake: v, y, z, w, sums of weight^2, weight * effect, weight * harm, weight * dose; then n, dose, effect
        self.bets = [[[0.0] * 7 for _ in range(2 + self.d)] for _ in self.arms]

    def bet(self, arm: int, dose: float, came: Came, stakes: Stakes) -> None:
        """Lemma 1. Only pulls at a dose that was certified before them are bet on, and only with a stake above 0."""
        if not 0 < dose <= self.arms[arm].top * (1 + CLOSE):
            return
        a, (n, effect, harm, *_) = dose / self.arms[arm].start, came
        share, least = self.harm.weight[arm], min(kind.weight[arm] for kind in self.kinds)
        add(self.data[arm], (n, n * a, harm, share * n * a * a, share * a * harm / self.sz))
        staked = [x if x is not None and 1e-50 < x < 1e50 else 0.0 for x in stakes or ()]
        may = dose <= self.safe[arm] * (1 + CLOSE) and least * n * a * a > 1e-50  # readings that count
        for k, stake in enumerate(staked if may else ()):
            if stake and (k in (self.OWN, self.LED, self.SHARED + arm) or staked[self.LED]):  # others': if it leads
                w = a * stake
                more = n * w * w, w * effect / self.sy, w * harm / self.sz, n * w * a
                add(self.bets[arm][k], (*(least * x for x in more), n, n * a, effect))
        if self.data[arm][3] > 0:
            self.certify(arm)

    def certify(self, arm: int) -> None:
        """Lemma 2: bounds on the slope of the harm. What was shown once stays shown."""
        high, low, it = self.goal(0.3), self.goal(0.05), self.arms[arm]
        n, dose, total, v, z = self.data[arm]
        if self.harm.binary:
            upper, lower = rate(n, total, high, -1, LOWERED), rate(n, total, low, 1, RAISED)
            upper, lower = (x * n / dose / self.sz for x in (upper, lower))
        else:
            qs = [(r * z, v * (r - r * r / 2), w) for r, w in SHORTFALL]
            m = min((b + math.sqrt(b * b + 4 * c * (high - w))) / (2 * c) for b, c, w in qs)
            upper = descend(m, 2, high, lambda m: [(m * (m * c - b) + w, 2 * m * c - b) for b, c, w in qs])
            rest = [(g, w - 0.5 * g * g * v * self.top**2) for g, w in ANY]
            u = min((low - e) / g for g, e in rest)
            lower = (z - descend(u, 1, low, lambda u: [(g * u + e, g) for g, e in rest]) / self.top) / v
        safe, over = (it.within(INF if x <= 0 else it.start * self.top / x) for x in (upper, lower))
        self.safe[arm], self.unsafe[arm] = max(self.safe[arm], safe), min(self.unsafe[arm], over)
        self.harmed[arm] |= lower * self.sz > self.limit

    def refuted(self, arm: int, named: int | None) -> bool:
        """Lemma 6: the wealth against the claim of an arm is 1/(0.65 delta) at every bar u from 0 to 1. If another
        is `named`, it is near enough to any below the tolerance."""
        marks = [0.0 if named is None else self.shift / (1 + self.shift), 1.0]
        return everywhere(self.goal(0.65, each=False), marks, lambda x, y: self.wealth(arm, x, y, named))

    def wealth(self, k: int, low: float, high: float, named: int | None) -> float:
        """Lemma 5: the least log of the wealth against "arm k is best", over the bars from low to high."""
        own, mine = self.bets[k][self.OWN], self.bets[k][self.SHARED + k]
        ups, up, v = 0.0, 0.0, mine[0]
        for j, it in enumerate(self.arms):
            led, theirs = self.bets[j][self.LED], self.bets[j][self.SHARED + k]
            if j != k and led[0] > 0:
                ends = self.lowered(low), self.lowered(high) if j == named else high  # above both bars, or the lower
                capped = bool(it.levels) or self.safe[j] >= it.top
                reach = (self.safe[j] if capped else it.top) / it.start
                up, v = up + min(self.sides(theirs, *ends, reach, 1)[capped:]), v + theirs[0]
                ups += min(self.logs(led, *ends, reach, 1)[capped:])
        start, most = self.arms[k].start, self.arms[k].top
        share, reach = 1.0 if most <= start else 0.15 if math.isfinite(most) else 0.0, self.unsafe[k] / start
        line, cap = (log_mixture(up + down, v, TOGETHER) for down in self.sides(mine, low, high, reach, -1))
        alone = either(*self.logs(own, low, high, reach, -1), share)
        return either(ups + alone, either(line, cap, share), 0.4)

    def sides(self, bets: Sequence[float], low: float, high: float, reach: float, sign: int) -> tuple[float, float]:
        """Lemma 4: the least evidence over a cell of bars that a value is above (below): by cone, and by cap."""
        (y, z, w), at = (sign * x for x in bets[1:4]), self.height(high if sign > 0 else low)
        noises = {self.shrink(low), self.shrink(high)}  # at the bars between, the effect's is between
        return min(self.cone(low, high, r, y, z) for r in noises), min((y - w * at / reach) / r for r in noises)

    def logs(self, bets: Sequence[float], low: float, high: float, reach: float, sign: int) -> tuple[float, float]:
        """Logs of the wealth from these; of binary effects alone by their likelihood ratios (lemma 3)."""
        line, cap = (log_mixture(s, bets[0], CONTRAST) for s in self.sides(bets, low, high, reach, sign))
        if self.effect.binary:
            (n, dose, total), at = bets[4:], self.height(high if sign > 0 else low) * self.sy
            x = dose / max(n, 1.0) * at / reach
            cap = self.effect.wager((n, n, total), (x, x), sign, TILT)
        return line, cap

    def cone(self, low: float, high: float, r: float, y: float, z: float) -> float:
        """Lemma 7: the least of a cone over a cell, of an effect with sigma r: at an end or, a sinusoid, in between."""
        free = self.problem.get("signals") == "independent"
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

    def shrink(self, u: float) -> float:
        """The sigma of a binary effect at a bar, in units of 1/2 (lemma 3)."""
        bar = self.height(u) * self.sy
        return tight(max(bar, 1e-12)) / self.sy if self.effect.binary and bar < 0.499 else 1.0


class Ladder(NamedTuple):
    """What was bet on an arm, by rising doses: logs of wealth that harm is over the limit and under it, and the sums of
    bets that the effect is below a value and above it (as `Kind.wager` takes them)."""

    known: int  # how many of the doses are at most the largest safe one, in any case
    dose: list[float]
    over: list[float]
    under: list[float]
    below: list[list[float]]
    above: list[list[float]]


class Joint(Theorem):
    """Theorems 2 and 3: an arm's claim is refuted by all readings jointly, at every value x that it may have. `below`:
    the least evidence, over its largest safe dose b, that its value is below x, by harms up to b and effects above b.
    `above`: that it is above x, by effects up to b and harms above b."""

    COUNTS = True
    SHARE: float  # of delta, for the verdict
    ALONE = 0.0  # of the stake, on the arm's own pulls alone
    prior: Atoms  # of the bets on effects
    ladder: Callable[[int], Ladder]
    below: Callable[[int, Ladder, float, float], float]  # at no x between these two is it less

    def refuted(self, arm: int, named: int | None) -> bool:
        """The bets that its value is below x, which rise with x, and those of others above x (above x - the tolerance,
        of the one to be named), which fall, come to 1/(share delta) at every x."""
        ladders = [self.ladder(j) for j in range(self.d)]

        def total(low: float, high: float) -> float:
            shifts = [self.tolerance if j == named else 0.0 for j in range(self.d)]
            ups = [self.above(ladders[j], high - x, low - x) for j, x in enumerate(shifts) if j != arm]
            return self.below(arm, ladders[arm], low, high) + either(math.fsum(ups), 0.0, self.ALONE)

        sums = [x for ladder in ladders for x in (*ladder.below, *ladder.above) if x[1] > 0]
        ends = [0.0, 1.0] if self.effect.binary else [0.0 if self.effect.counts else -1e60, 1e60]  # as good as infinite
        return everywhere(self.goal(self.SHARE, each=False), [*ends, *(x[2] / x[1] for x in sums)], total)

    def above(self, ladder: Ladder, x: float, y: float) -> float:
        cuts = range(ladder.known, len(ladder.dose) + 1)
        return min(math.fsum(ladder.under[c:]) + self.effects(ladder.above[:c], x, y, 1) for c in cuts)

    def effects(self, parts: Sequence[Sequence[float]], x: float, y: float, sign: int) -> float:
        """Log of the wealth of bets on the effects at several doses together, that their mean is above x (below it)."""
        pooled = [math.fsum(column) for column in zip(*parts, strict=True)] if parts else [0.0] * 7
        return self.effect.wager(pooled, (x, y), sign, self.prior)


class SurefootMonotonic(Joint):
    """Theorem 2. Stakes of an arm: guesses of its harm for the climb, how far the rungs go, for the verdict, and the
    sizes of its bets on the effect, below and above. Shares of delta: climb 0.35, verdict 0.53, stops 0.04."""

    theorem, shape = "surefoot-monotonic/4", "monotonic"
    RUNGS, SHARE, ALONE = 32, 0.53, 0.2

    def __init__(self, problem: Data, options: Data):
        super().__init__(problem, options)
        self.base = [arm.start for arm in self.arms]
        self.step = [(arm.top - arm.start) / self.RUNGS for arm in self.arms]
        self.rungs = [[0.0] * self.RUNGS for _ in self.arms]  # logs of wealth
        self.at: list[dict[float, list[list[float]]]] = [{} for _ in self.arms]  # dose -> over and under, below, above
        if all(arm.start >= arm.top for arm in self.arms):  # nothing is climbed
            self.SHARE = 0.88
        self.prior = TILT if self.effect.likely else GAP

    def bet(self, arm: int, dose: float, came: Came, stakes: Stakes) -> None:
        if dose <= self.arms[arm].top + CLOSE * abs(dose):
            guess, reach, *rest = stakes or [None] * 5
            self.climb(arm, dose, came, guess, reach)
            self.record(arm, dose, came, *rest)
            ladder = self.ladder(arm)
            self.harmed[arm] = sum(ladder.over[: ladder.known]) >= self.goal(0.04)

    def climb(self, arm: int, dose: float, came: Came, guess: float | None, reach: float | None) -> None:
        """Lemma 3: against "harm at a rung is above limit + slack" every reading of the arm is bet."""
        if reach is not None and 1e-150 < reach < 1e150 and self.step[arm] > 1e-150:
            finer = min(max(math.floor(math.log2(self.RUNGS * self.step[arm] / reach)), -1), 60)
            self.regrid(arm, 0, 0.5**finer)
        rungs, it = self.rungs[arm], self.arms[arm]
        for j in range(self.RUNGS):
            rung = it.top if j == self.RUNGS - 1 else min(self.base[arm] + self.step[arm] * (j + 1), it.top)
            bound = self.ceiling - it.lipschitz * max(rung - dose, 0.0)
            rungs[j] += self.harm.weight[arm] * self.harm.guess_bet(came[0], came[2], bound, guess, -1)
        goal = self.goal(0.35)
        passed = next((j for j, x in enumerate(rungs) if not x >= goal), self.RUNGS)
        self.base[arm] = min(self.base[arm] + passed * self.step[arm], it.top) if passed < self.RUNGS else it.top
        self.safe[arm] = it.within(self.base[arm])
        self.regrid(arm, passed, 1.0)

    def regrid(self, arm: int, passed: int, times: float) -> None:
        """A new rung takes the wealth of the old one at or above it, the lesser of two; the last the least of all."""
        old, last = self.rungs[arm], self.RUNGS - 1
        ends = [(math.floor(j * times), math.ceil((j + 1) * times) - 1) for j in range(self.RUNGS)]
        new = [min(old[min(passed + k, last)] for k in cell) for cell in ends]
        new[last] = min(old) if times != 1 else new[last]
        self.rungs[arm], self.step[arm] = new, self.step[arm] * times

    def record(self, arm: int, dose: float, came: Came, guess: float | None, *sizes: float | None) -> None:
        """Lemma 5: the bets that these pulls make in the verdict."""
        (n, effect, harm, *_), levels = came, self.arms[arm].levels
        below, above = (x if x is not None and 1e-60 < x < 1e60 else 0.0 for x in sizes)
        over, under = (self.harm.weight[arm] * self.harm.guess_bet(n, harm, self.limit, guess, k) for k in (1, -1))
        if not above or (levels and dose not in levels):
            under = 0.0  # it does not lead; or between levels a dose above the largest safe one may be safe too
        harms, *effects = self.at[arm].setdefault(dose, [[0.0] * 2, [0.0] * 3, [0.0] * 3])
        add(harms, (over, under))
        for size, sums in zip((below, above), effects, strict=True):
            size = float(size > 0) if self.effect.likely else size
            add(sums, (self.effect.weight[arm] * x for x in (n * size**2, n * size, size * effect)))

    def ladder(self, arm: int) -> Ladder:
        doses = sorted(self.at[arm])
        harms, below, above = ([self.at[arm][dose][k] for dose in doses] for k in range(3))
        known, (over, under) = bisect_right(doses, self.arms[arm].start), ([x[k] for x in harms] for k in (0, 1))
        return Ladder(known, doses, over, under, below, above)

    def below(self, arm: int, ladder: Ladder, x: float, y: float) -> float:
        cuts = range(len(ladder.dose) + 1)  # b is from the dose before c to below the dose c
        found = [math.fsum(ladder.over[:c]) + self.effects(ladder.below[c:], x, y, -1) for c in cuts]
        least, it = list(found), self.arms[arm]
        for c, (dose, after) in enumerate(pairwise([*ladder.dose, INF]), 1):
            if dose >= it.top or dose in it.levels:  # b may be this very dose: half and half
                least[c] = either(found[c], found[c - 1], 0.5) if it.start < it.top else found[c - 1]
                if any(dose < a < after for a in it.levels):  # or another
                    least[c] = min(least[c], found[c])
        return min(least[ladder.known :])


class SurefootLevels(Joint):
    """Theorem 3. Doses are the places of levels: 0, 1, and so on. Stakes of an arm, above 0 where its readings make a
    bet: that harm is below the ceiling (calm), below the limit (low), above it (high), that the effect is below x,
    above x. Shares of delta: calm 0.1, good 0.05, over 0.05, verdict 0.8."""

    theorem, shape = "surefoot-levels/2", "levels"
    SHARE, prior = 0.8, APART

    def __init__(self, problem: Data, options: Data):
        super().__init__(problem, options)
        for kind in self.kinds:  # not monotone in x, as bets have to be with a tolerance
            kind.squares = kind.guessed and (kind is self.harm or "tolerance" not in problem)
        counts = [len(arm.levels) for arm in self.arms]
        # by level and stake: n, n, sum, as they count; squares from what was expected; n, sum and squares from the
        # origin. By level: all that was read
        self.bets = [[[[0.0] * 7 for _ in range(5)] for _ in range(count)] for count in counts]
        self.read = [[[0.0] * 3 for _ in range(count)] for count in counts]
        self.safe = [min(1.0, count - 1.0) for count in counts]
        self.low, self.high = ([[0.0] * count for count in counts] for _ in range(2))  # logs of wealth
        self.calm, self.good = [0] * self.d, [0] * self.d  # up to here harm is below the ceiling; below the limit
        self.barred, self.over = list(counts), list(counts)  # from here on it is above

    def arm_of(self, arm: Data, wide: float) -> Arm:
        places, names = [float(k) for k in range(len(arm["levels"]))], arm["levels"]
        named = len(set(map(str, names))) == len(names) > 0 and all(type(x) is str or finite(x) for x in names)
        need(named, "levels have names, each its own")
        return Arm(arm["name"], 0.0, places[-1], INF, places)

    def bet(self, arm: int, dose: float, came: Came, stakes: Stakes) -> None:
        """Levels are below a bound in order from the second on, by the bets at and above each; above one in order from
        the last down, by the bets at and below each. What was shown once stays shown. What may be given is one level
        above those that are calm, and below those that are barred."""
        if dose not in self.arms[arm].levels:
            return
        read, n = self.read[arm][int(dose)], came[0]
        for k, (stake, sums) in enumerate(zip(stakes or (), self.bets[arm][int(dose)], strict=bool(stakes))):
            if stake is not None and stake > 0:
                r = 1 if k < 3 else 0
                kind, total, apart = self.kinds[r], came[1 + r], came[3 + r]
                mean = (read[1 + r] + 0.5) / (read[0] + 1)  # so far of the level, which was known before
                kind.origin = total / n if kind.origin != kind.origin else kind.origin
                off, counts = total - n * kind.origin, kind.weight[arm]
                known = counts * n, counts * n, counts * total
                add(sums, (*known, apart + n * (total / n - mean) ** 2, n, off, apart + off * off / n))
        add(read, came[:3])

        def logs(stake: int, bound: float, sign: int, atoms: Atoms) -> list[float]:
            return [self.harm.wager(level[stake], (bound, bound), sign, atoms) for level in self.bets[arm]]

        calm, barred = logs(0, self.ceiling, -1, CALM), logs(2, self.ceiling, 1, NEAR)
        self.low[arm], self.high[arm] = logs(1, self.limit, -1, NEAR), logs(2, self.limit, 1, NEAR)
        count = len(calm)
        for shown, wealth, share in ((self.calm, calm, 0.1), (self.good, self.low[arm], 0.05)):
            passed = [math.fsum(wealth[j:]) >= self.goal(share) for j in range(1, count)]
            shown[arm] = max(shown[arm], [*passed, False].index(False))
        for shown, wealth in ((self.barred, barred), (self.over, self.high[arm])):
            passed = [math.fsum(wealth[:j]) >= self.goal(0.05) for j in range(count, 0, -1)]
            shown[arm] = min(shown[arm], count - [*passed, False].index(False))
        self.safe[arm] = float(max(min(self.calm[arm] + 1, count - 1, self.barred[arm] - 1), 0))
        self.harmed[arm] = self.over[arm] < 1

    def ladder(self, arm: int) -> Ladder:
        below, above = ([level[k] for level in self.bets[arm]] for k in (3, 4))
        return Ladder(self.good[arm] + 1, self.arms[arm].levels, self.high[arm], self.low[arm], below, above)

    def below(self, arm: int, ladder: Ladder, x: float, y: float) -> float:
        """A quarter of the stake is on the harm at b itself."""
        above_b = (self.effects(ladder.below[b:], x, y, -1) for b in range(max(self.over[arm], 1)))
        return min(
            math.fsum(ladder.over[:b]) + either(effect, ladder.over[b], 0.25) for b, effect in enumerate(above_b)
        )


THEOREMS: dict[str, type[Theorem]] = {
    it.theorem: it for it in (SafeBAILinear, SafeBAIMonotonic, SurefootLinear, SurefootMonotonic, SurefootLevels)
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
