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

import gc
import hashlib
import json
import math
import random
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

ORIGIN = "0" * 64  # what the first event has as the hash of the one before
CLOSE = 1e-9  # how far two computations of the same number may differ, relatively
NAN = math.nan

Came = tuple[int, float, float]  # how many readings, sum of effects, sum of harms
Sums = dict[tuple[int, float], Came]  # by arm and dose


class Broken(ValueError):
    """Something that does not follow."""


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
        found: dict[str, Any] = json.loads(self.payload)
        return found

    def seal(self) -> str:
        """The hash of everything in the event but the hash itself; `prev` ties it to all events before."""
        return hashlib.sha256(json.dumps(list(self[:-1]), ensure_ascii=True).encode()).hexdigest()


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


def near(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= CLOSE * max(abs(a), abs(b))


# What the events amount to


class Given:
    """A cohort that was released: which subjects get which arm at which dose."""

    def __init__(self, number: int, first: int, data: Mapping[str, Any], seed: int, at: str = "", seq: int = 0):
        self.number, self.first, self.at, self.seq = number, first, at, seq
        self.dose: list[float] = data["dose"]
        self.n: list[int] = data["n"]
        self.stakes: list[Any] = data.get("stakes") or [None] * len(self.n)
        self.certified: list[float | None] = data.get("certified") or [None] * len(self.n)
        self.size = self.left = sum(self.n)  # left: readings that have not come
        self.seed = seed
        self.next = first  # no assignment before this subject is open
        self.later: dict[int, int] = {}  # subject who took the place of one who dropped out -> arm
        self.closed = self.withdrawn = False
        self.came: Sums = {}  # what came back, by arm and dose given; known once it is closed

    @cached_property
    def arms(self) -> list[int]:
        """In the order of subjects."""
        arms = [arm for arm, n in enumerate(self.n) for _ in range(n)]
        draw = random.Random(f"surefoot {self.seed} {self.number}").random  # Python promises that these never change
        keys = [draw() for _ in arms]
        return [arms[k] for k in sorted(range(self.size), key=keys.__getitem__)]

    @cached_property
    def of(self) -> list[list[int]]:
        """The subjects of each arm."""
        found: list[list[int]] = [[] for _ in self.n]
        for subject, arm in self.subjects():
            found[arm].append(subject)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {key: x for key, x in vars(self).items() if key not in ("arms", "of")}

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
        self.setup: dict[str, Any] = {}
        self.cohorts: list[Given] = []
        self.effect, self.harm = array("d", [NAN]), array("d", [NAN])  # by subject, from 1 on
        self.other: dict[int, float] = {}  # subject -> the dose given, where it is not the one assigned
        self.gone: dict[int, str] = {}  # subject who dropped out -> open, counts (as a reading), replaced
        self.later: dict[int, Given] = {}  # subjects who took over from one who dropped out -> their cohort
        self.reserved: dict[int, str] = {}  # subject -> for whom
        self.keys: dict[str, str] = {}  # of requests -> payload
        self.paused: list[Event] = []  # since the last resume; empty while running
        self.stopped: Event | None = None
        self.concluded: dict[str, Any] | None = None  # the ending, while nothing came after it that changes it
        self.notes: list[Event] = []  # everything but readings and cohorts
        self.actors: set[str] = set()

    def take(self, event: Event, data: dict[str, Any] | None = None) -> None:
        if event.seq != self.seq + 1 or event.prev != self.hash:
            raise Broken(f"event {event.seq} does not follow event {self.seq} as it is known here")
        data, kind = event.data if data is None else data, event.kind
        if (kind == "created") != (self.seq == 0):
            raise Broken("a study begins with its creation, once")
        self.actors.add(event.actor)
        if kind == "told":
            self.told(data, event.reason is not None)
            if event.key is not None:
                self.keys[event.key] = event.payload
        elif kind in KINDS:
            getattr(self, f"_{kind}")(event, data)
            if kind != "opened":
                self.notes.append(event)
        else:
            raise Broken(f"event {event.seq} is of a kind that is not known here: {kind!r}; upgrade surefoot")
        self.seq, self.hash = event.seq, event.hash

    # One method for each kind of event
    def _created(self, event: Event, data: dict[str, Any]) -> None:
        self.created, self.name, self.setup = event, event.study, data
        self.seed: int = data["seed"]
        if data["theorem"]["name"] not in THEOREMS:
            raise Broken(f"the theorem {data['theorem']['name']!r} is not known to this checker")
        self.theorem = self._fresh()

    def _opened(self, event: Event, data: dict[str, Any]) -> None:
        if self.paused or self.stopped or self.open:
            raise Broken("a cohort is opened only while the study runs and no other is open")
        given = Given(len(self.cohorts) + 1, len(self.harm), data, self.seed, event.at, event.seq)
        if given.size < 1 or min(given.n) < 0:
            raise Broken("a cohort has at least one assignment")
        self.cohorts.append(given)
        blank = array("d", [NAN]) * given.size
        self.effect += blank
        self.harm += blank
        self.concluded = None

    def told(self, data: dict[str, Any], confirmed: bool = False) -> None:
        subject, given = data["id"], self.find(data["id"])
        effect, harm = data.get("effect"), data.get("harm")
        told = self.effect[subject], self.harm[subject]  # nan is not itself: not told yet
        if (effect is not None and told[0] == told[0]) or (harm is not None and told[1] == told[1]):
            raise Broken(f"subject {subject} was told before")
        if subject in self.gone or self.stopped or (harm is None and told[1] != told[1]):
            raise Broken(f"subject {subject} dropped out, has no harm, or the study was stopped")
        if not confirmed and not self.plausible(data):
            raise Broken(f"subject {subject} has a reading outside of the plausible range that nobody confirmed")
        if harm is not None:
            self.harm[subject] = harm
        if effect is not None:
            self.effect[subject] = effect
        if "dose" in data and data["dose"] != given.dose[given.arm(subject)]:
            self.other[subject] = data["dose"]
        if self.complete(subject):
            given.left -= 1
            if given.closed:
                self.again(given)  # a late reading of an assignment that had been withdrawn
            elif not given.left:
                self.close(given)

    def _corrected(self, event: Event, data: dict[str, Any]) -> None:
        subject, given = data["id"], self.find(data["id"])
        usual = given.dose[given.arm(subject)]
        was = {"effect": self.effect[subject], "harm": self.harm[subject], "dose": self.other.get(subject, usual)}
        if not event.reason or not data["was"] or any(was[key] != x for key, x in data["was"].items()):
            raise Broken("a correction has a reason, and says what was told before")
        if not self.plausible(data) and not data.get("confirmed"):
            raise Broken(f"subject {subject} was corrected to outside of the plausible range, and nobody confirmed it")
        self.effect[subject], self.harm[subject] = (data.get(key, was[key]) for key in ("effect", "harm"))
        self.other.pop(subject, None)
        if data.get("dose", was["dose"]) != usual:
            self.other[subject] = data.get("dose", was["dose"])
        if given.closed:
            self.again(given)

    def _voided(self, event: Event, data: dict[str, Any]) -> None:
        subject, given = data["id"], self.find(data["id"])
        if given.closed or self.harm[subject] == self.harm[subject] or subject in self.gone:
            raise Broken(f"subject {subject} cannot drop out any more")
        self.gone[subject] = "open"
        if self.setup["voids"] == "worst":
            self._count_voids(*self.setup["worst"])
        else:
            self.paused.append(event)

    def _paused(self, event: Event, data: dict[str, Any]) -> None:
        self.paused.append(event)

    def _resumed(self, event: Event, data: dict[str, Any]) -> None:
        if not self.paused or self.stopped:
            raise Broken("only a pause can be lifted")
        if self.setup["lift"] == "another" and len(self.actors) > 1 and alarmed_by(self.paused, event.actor):
            raise Broken(f"{event.actor} lifted a pause that followed from a reading of their own")
        self.paused = []
        if data.get("voids") is not None:
            self._count_voids(data["voids"]["effect"], data["voids"]["harm"])
        for subject in [s for s, how in self.gone.items() if how == "open"]:  # somebody else takes the place
            given = self.find(subject)
            given.later[len(self.harm)], self.later[len(self.harm)] = given.arm(subject), given
            vars(given).pop("of", None)
            self.gone[subject] = "replaced"
            self.effect.append(NAN)
            self.harm.append(NAN)

    def _count_voids(self, effect: float, harm: float) -> None:
        """Those who dropped out count as this reading."""
        for subject in [s for s, how in self.gone.items() if how == "open"]:
            given = self.find(subject)
            self.gone[subject], self.effect[subject], self.harm[subject] = "counts", effect, harm
            given.left -= 1
            if not given.left and not given.closed:
                self.close(given)

    def _stopped(self, event: Event, data: dict[str, Any]) -> None:
        self.stopped = event

    def _closed(self, event: Event, data: dict[str, Any]) -> None:
        if not self.open:
            raise Broken("no cohort is open")
        self.cohorts[-1].withdrawn = True
        self.close(self.cohorts[-1])

    def _ended(self, event: Event, data: dict[str, Any]) -> None:
        if self.paused or self.stopped:
            raise Broken("nothing is concluded in a pause, or after a stop")
        self.concluded = data

    def _assigned(self, event: Event, data: dict[str, Any]) -> None:
        for subject in data["ids"]:
            if subject in self.reserved or subject in self.gone or self.find(subject).closed:
                raise Broken(f"subject {subject} is not free")
            self.reserved[subject] = data["for"]

    def _returned(self, event: Event, data: dict[str, Any]) -> None:
        for subject in data["ids"]:
            del self.reserved[subject]

    def _noted(self, event: Event, data: dict[str, Any]) -> None:
        pass

    _warned = _adopted = _exported = _imported = _checkpointed = _clock = _noted

    # Readings
    @property
    def subjects(self) -> int:
        """How many numbers were given out."""
        return len(self.harm) - 1

    @property
    def open(self) -> Given | None:
        return self.cohorts[-1] if self.cohorts and not self.cohorts[-1].closed else None

    def find(self, subject: int) -> Given:
        """The cohort of a subject."""
        if type(subject) is not int or not 1 <= subject < len(self.harm):
            raise Broken(f"subject {subject!r} has not been assigned")
        if subject in self.later:
            return self.later[subject]
        if subject >= self.cohorts[-1].first:
            return self.cohorts[-1]
        return self.cohorts[bisect_right(self.cohorts, subject, key=lambda given: given.first) - 1]

    def complete(self, subject: int) -> bool:
        return self.effect[subject] == self.effect[subject] and self.harm[subject] == self.harm[subject]

    def plausible(self, data: Mapping[str, Any]) -> bool:
        ranges = self.setup["plausible"] or {}
        return all(low <= data.get(key, low) <= high for key, (low, high) in ranges.items())

    def sums(self, given: Given) -> Sums:
        """What came back of a cohort, summed exactly, so that the order in which it came does not matter."""
        lists: dict[tuple[int, float], list[int]] = {}
        for subject, arm in given.subjects():
            if self.complete(subject):
                lists.setdefault((arm, self.other.get(subject, given.dose[arm])), []).append(subject)
        return {
            at: (len(s), math.fsum(map(self.effect.__getitem__, s)), math.fsum(map(self.harm.__getitem__, s)))
            for at, s in lists.items()
        }

    # The evidence
    def _fresh(self) -> Theorem:
        return THEOREMS[self.setup["theorem"]["name"]](self.setup["problem"], self.setup["options"])

    def close(self, given: Given) -> None:
        """The cohort is complete (or what is missing was withdrawn): its readings are evidence."""
        given.closed, given.came = True, self.sums(given)
        self.theorem.take(given)

    def again(self, given: Given) -> None:
        """A reading of a cohort that was closed has changed: fold anew, by the stakes as they were published."""
        given.came = self.sums(given)
        *_, (_, self.theorem) = self.replay()

    def replay(self) -> Iterator[tuple[Given | None, Theorem]]:
        """Each cohort with what was proved before it, by what is known now; at last None and what is proved now."""
        theorem = self._fresh()
        for given in self.cohorts:
            theorem.publish(given.dose, given.stakes)
            yield given, theorem
            if given.closed:
                theorem.take(given)
        yield None, theorem

    def refusal(self, dose: Sequence[float], n: Sequence[int], stakes: Sequence[Any]) -> str | None:
        """Why a cohort may not be released now; None where it may."""
        self.theorem.publish(dose, stakes)
        return "; ".join(filter(None, (self.theorem.refusal(i, a) for i, a in enumerate(dose) if n[i]))) or None

    def unfounded(self, ending: Mapping[str, Any]) -> str | None:
        """Why an ending does not follow from the readings; None where it does. `out`: after which cohort an arm was."""
        names, kind, winner = [arm["name"] for arm in self.setup["problem"]["arms"]], ending["ending"], ending["winner"]
        out: dict[int, str | None] = {}
        for given, theorem in self.replay():
            done = given.number - 1 if given else len(self.cohorts)
            out |= {arm: theorem.out(arm) for arm, when in enumerate(ending["out"]) if when == done}
        if kind not in ("best-arm", "within-tolerance", "all-stopped"):
            return "an arm is named" if winner is not None else None
        left = [arm for arm in range(len(names)) if arm != winner and (out.get(arm) or theorem.out(arm)) is None]
        if kind == "within-tolerance" and winner is not None:
            left = [arm for arm in left if theorem.near(arm, winner) is None]
        if winner is not None and out.get(winner) is not None:
            return f"{names[winner]} is named, and {out[winner]}"
        if winner is None and kind != "all-stopped" and not ending.get("withheld"):
            return "it names no arm"
        if left and (winner is not None or kind == "all-stopped"):
            return f"{', '.join(names[arm] for arm in left)} may still be the best by what was read"
        return None


KINDS = ("created", "opened", "corrected", "voided", "paused", "warned", "resumed", "stopped", "closed", "ended",
         "assigned", "returned", "adopted", "exported", "imported", "checkpointed", "clock")  # fmt: skip  # and told


def alarmed_by(paused: Sequence[Event], actor: str) -> bool:
    """Whether a watch paused the study upon something that this actor told."""
    return any(e.actor == actor and e.kind == "paused" and e.data.get("by") == "watch" for e in paused)


# The theorems


class Theorem:
    """What readings prove. The numbers of a problem are those of the first event."""

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        self.problem, self.options = problem, options
        self.arms: list[dict[str, Any]] = problem["arms"]
        self.limit: float = problem["limit"]
        self.ceiling: float = problem["limit"] + problem.get("slack", 0.0)
        self.delta: float = problem["delta"]
        self.tolerance: float = problem.get("tolerance", 0.0)
        self.d = len(self.arms)

    def publish(self, dose: Sequence[float], stakes: Sequence[Any]) -> None:
        """A cohort with these doses and stakes is to be released."""

    def take(self, given: Given) -> None:
        """What came back of a cohort."""
        raise NotImplementedError

    def certified(self, arm: int) -> float:
        """The largest dose of an arm that may be given."""
        raise NotImplementedError

    def out(self, arm: int) -> str | None:
        """Why an arm is not the best, or has no safe dose; None where that is not proved."""
        raise NotImplementedError

    def near(self, arm: int, winner: int) -> str | None:
        """Why an arm is better than the winner by no more than the tolerance; None where that is not proved."""
        return None

    def largest(self, arm: int) -> float:
        it = self.arms[arm]
        return it["levels"][-1] if it.get("levels") else it.get("max", math.inf)  # type: ignore[no-any-return]

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

    def noise(self, reading: str) -> dict[str, Any]:
        return self.problem["noise"].get(reading, self.problem["noise"])  # type: ignore[no-any-return]

    def sigma(self, reading: str) -> float:
        noise = self.noise(reading)
        return 0.5 if noise["kind"] == "bernoulli" else float(noise["sigma"])


class Shown(NamedTuple):
    """Means of one arm at one dose, each within `radius` of the truth."""

    dose: float
    n: int
    effect: float
    harm: float
    radius: float


class Staged(Theorem):
    """The paper's designs. Stakes of an arm: how many pulls its stage has in all, and the number of its estimate.

    By Hoeffding a mean of n readings is within sigma sqrt(2 log(8 w t^2/delta)/n) of the truth, where the statements of
    all numbers t hold together with probability 1 - delta; n is fixed before they come, so other doses and more pulls
    than were asked for are set aside. A number that is used again (after a correction) replaces what had it before.
    """

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        super().__init__(problem, options)
        self.shown: dict[tuple[int, int], Shown] = {}  # by number and arm
        self.part: dict[tuple[int, int], tuple[float, int, float, float]] = {}  # a stage that is under way
        self.scale = max(self.sigma("effect"), self.sigma("harm"))

    def weight(self) -> int:
        raise NotImplementedError

    def publish(self, dose: Sequence[float], stakes: Sequence[Any]) -> None:
        first = min((staked[1] for staked in stakes if staked), default=math.inf)
        self.shown = {
            (number, arm): x
            for (number, arm), x in self.shown.items()
            if number < first or (stakes[arm] == [x.n, number] and x.dose == dose[arm])
        }

    def take(self, given: Given) -> None:
        if given.withdrawn:
            return
        for arm, staked in enumerate(given.stakes):
            if not staked or not given.n[arm]:
                continue
            want, number = staked
            dose, had = given.dose[arm], (given.dose[arm], 0, 0.0, 0.0)
            kept = self.part.get((number, arm), had)
            kept = kept if kept[0] == dose else had
            n, effect, harm = given.came.get((arm, dose), (0, 0.0, 0.0))
            if n > want - kept[1]:
                continue
            kept = (dose, kept[1] + n, kept[2] + effect, kept[3] + harm)
            self.part[number, arm] = kept
            if kept[1] == want:
                radius = self.scale * math.sqrt(2 * math.log(8 * self.weight() * number**2 / self.delta) / want)
                self.shown[number, arm] = Shown(dose, want, kept[2] / want, kept[3] / want, radius)
                del self.part[number, arm]

    def of(self, arm: int) -> list[Shown]:
        return [x for (_, i), x in self.shown.items() if i == arm]

    def lower(self, arm: int) -> float:
        raise NotImplementedError

    def upper(self, arm: int) -> float:
        raise NotImplementedError

    def harm_at_start(self, arm: int) -> float:
        raise NotImplementedError

    def out(self, arm: int) -> str | None:
        if self.harm_at_start(arm) > self.limit:
            return "its harm is above the limit at its start dose already"
        best = max(range(self.d), key=lambda i: self.lower(i) if i != arm else -math.inf)
        if best != arm and self.upper(arm) <= self.lower(best) + CLOSE * abs(self.lower(best)):
            return f"its value is at most {self.upper(arm):.6g}, and {self.arms[best]['name']}'s at least that"
        return None

    def near(self, arm: int, winner: int) -> str | None:
        bar = self.lower(winner) + self.tolerance
        return "it is near enough" if self.upper(arm) <= bar + CLOSE * abs(bar) else None


class SafeBAILinear(Staged):
    """Lemma 1 of the paper; the number is that of the epoch. Effect and harm are slopes times the dose."""

    def weight(self) -> int:
        return self.d

    def certified(self, arm: int) -> float:
        found = [self.limit * x.dose / top for x in self.of(arm) if (top := x.harm + x.radius) > 0]
        start = self.arms[arm]["start"]
        return self.rounded(arm, min(max([start, *found]), self.largest(arm)))

    def lower(self, arm: int) -> float:
        safe = self.certified(arm)
        return max((safe * (x.effect - x.radius) / x.dose for x in self.of(arm)), default=-math.inf)

    def upper(self, arm: int) -> float:
        top, values = self.largest(arm), []
        for x in self.of(arm):
            low = (x.harm - x.radius) / x.dose
            most = self.rounded(arm, max(min(self.limit / low, top) if low > 0 else top, self.arms[arm]["start"]))
            values.append(most * (x.effect + x.radius) / x.dose)
        return min(values, default=math.inf)

    def harm_at_start(self, arm: int) -> float:
        start = self.arms[arm]["start"]
        return max((start * (x.harm - x.radius) / x.dose for x in self.of(arm)), default=-math.inf)


class SafeBAIMonotonic(Staged):
    """Lemma 13 of the paper; the number is over all arms. Harm never falls, and rises by at most K a unit."""

    def weight(self) -> int:
        return 1

    def certified(self, arm: int, ceiling: float | None = None) -> float:
        it, most = self.arms[arm], self.ceiling if ceiling is None else ceiling
        found = [x.dose + (most - x.harm - x.radius) / it.get("lipschitz", 1.0) for x in self.of(arm)
                 if x.harm + x.radius <= most]  # fmt: skip
        return self.rounded(arm, min(max([it["start"], *found]), self.largest(arm)))

    def lower(self, arm: int) -> float:
        safe = self.certified(arm, self.limit)
        held = [x.effect - x.radius for x in self.of(arm) if x.dose <= safe * (1 + CLOSE) or x.dose <= safe]
        return max(held, default=-math.inf)

    def upper(self, arm: int) -> float:
        over = min((x.dose for x in self.of(arm) if x.harm - x.radius >= self.limit), default=self.largest(arm))
        return min((x.effect + x.radius for x in self.of(arm) if x.dose >= over), default=math.inf)

    def harm_at_start(self, arm: int) -> float:
        start = self.arms[arm]["start"]
        return max((x.harm - x.radius for x in self.of(arm) if x.dose <= start), default=-math.inf)


# Mixtures: values of g and the logarithms of their weights. A mean of exp(g s - g^2 v / 2) over them, s a sum of noise
# with weights fixed beforehand and v the sum of their squares, ever reaches 1/alpha with probability alpha (Ville).


def mixture(top: float, ratio: float, dense: int, below: int, above: int, tails: float, nothing: float) -> Atoms:
    middle = [top * ratio**-j for j in range(dense)]
    tail = [(middle[-1] * 2.5**-k, 1 / (k * (k + 1))) for k in range(1, below + 1)]
    tail += [(top * 2.5**k, 0.5 / (k * (k + 1))) for k in range(1, above + 1)]
    total = sum(w for _, w in tail)
    pairs = [(0.0, nothing)] if nothing else []
    pairs += [(g, (1 - tails - nothing) / dense) for g in middle] + [(g, tails * w / total) for g, w in tail]
    return [(g, math.log(w)) for g, w in pairs]


Atoms = list[tuple[float, float]]
SHORTFALL = mixture(0.9, 1.8, 5, 12, 0, 0.15, 0.0)
CONTRAST = mixture(0.7, 1.6, 5, 5, 1, 0.1, 0.15)
TOGETHER = mixture(1.6, 1.5, 5, 2, 1, 0.15, 0.0)
GAP = mixture(1.0, 1.7, 5, 8, 1, 0.1, 0.4)
TILT = mixture(2.0, 2.0, 7, 5, 0, 0.15, 0.15)
ANY = mixture(1.0, 1.8, 9, 12, 2, 0.15, 0.0)
LOWERED = mixture(2.5, 1.8, 6, 12, 1, 0.15, 0.0)
RAISED = mixture(1.6, 1.8, 6, 12, 0, 0.15, 0.0)
CALM = mixture(2.8, 2.0, 3, 6, 0, 0.1, 0.02)
NEAR = mixture(1.2, 2.0, 3, 7, 1, 0.12, 0.03)
APART = mixture(1.6, 2.0, 4, 7, 1, 0.1, 0.04)
FAR_OFF = 1e60  # as good as infinite


def log_sum(logs: Sequence[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs))


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


def descend(x: float, steps: int, goal: float, of: Callable[[float], list[tuple[float, float]]]) -> float:
    """Newton's method towards where the log of a sum of exponentials is the goal. The sum is convex, so that from
    outside it never passes that place, and may be stopped early. `of` gives logs and their derivatives."""
    for _ in range(steps):
        found = of(x)
        total = log_sum([e for e, _ in found])
        x -= (total - goal) / math.fsum(math.exp(e - total) * slope for e, slope in found)
    return x


class SurefootLinear(Theorem):
    """Theorem 1 of docs/guarantees.md, whose lemmas are named here. Doses are in units of the start dose, readings in
    units of their sigma: an arm's effect has mean theta a, its harm mu a. Stakes of an arm: `own`, `led`, and one for
    each arm's claim. Shares of delta: doses 0.3, stops 0.05, verdict 0.65."""

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        super().__init__(problem, options)
        self.binary = [self.noise(key)["kind"] == "bernoulli" for key in ("effect", "harm")]
        q = self.limit  # the sigma of a binary harm of mean q or less (Kearns and Saul)
        tight = 0.5 if q >= 0.499 else math.sqrt((1 - 2 * q) / (2 * math.log((1 - q) / q)))
        self.sy, self.sz = self.sigma("effect"), tight if self.binary[1] else self.sigma("harm")
        self.top = self.limit / self.sz
        self.shift = self.tolerance * self.sz / (self.limit * self.sy)
        self.safe: list[float] = [arm["start"] for arm in self.arms]
        self.unsafe = [self.largest(i) for i in range(self.d)]
        self.harm_low = [-math.inf] * self.d
        self.data = [[0.0] * 5 for _ in self.arms]  # n, sums of dose, harm, dose^2, dose * harm / sigma
        zero = [0.0] * 4  # v, y, z, w: sums of weight^2, weight * effect, weight * harm, weight * dose
        self.own, self.led = [zero[:] for _ in self.arms], [zero[:] for _ in self.arms]
        self.shared = [[zero[:] for _ in self.arms] for _ in self.arms]
        self.rates = {kind: [[0.0] * 3 for _ in self.arms] for kind in ("own", "led")}  # of binary effects

    def certified(self, arm: int) -> float:
        return self.safe[arm]

    def take(self, given: Given) -> None:
        for arm in range(self.d):
            main, stakes = given.dose[arm], given.stakes[arm]
            for dose in sorted((a for i, a in given.came if i == arm), key=lambda a: (a == main, a)):
                if 0 < dose <= self.largest(arm) * (1 + CLOSE):
                    self.learn(arm, dose, given.came[arm, dose], stakes if dose == main else None)
                    self.certify(arm)

    def learn(self, arm: int, dose: float, came: Came, stakes: Sequence[float | None] | None) -> None:
        """Lemma 1. Only pulls at a dose that was certified before them are bet on, and only with a stake above 0."""
        a, (n, effect, harm) = dose / self.arms[arm]["start"], came
        for k, x in enumerate((n, n * a, harm, n * a * a, a * harm / self.sz)):
            self.data[arm][k] += x
        if stakes is None or dose > self.safe[arm] * (1 + CLOSE):
            return
        bets = [self.own[arm], self.led[arm], *self.shared[arm]]
        for k, (stake, sums) in enumerate(zip(stakes, bets, strict=True)):
            counts = k < 2 or k - 2 == arm or (stakes[1] or 0.0) > 1e-50  # against others only with a stake `led` too
            if stake is not None and 1e-50 < stake < 1e50 and counts:
                w = a * stake
                for m, x in enumerate((n * w * w, w * effect / self.sy, w * harm / self.sz, n * w * a)):
                    sums[m] += x
                for m, x in enumerate((n, n * a, effect) if k < 2 else ()):
                    self.rates["led" if k else "own"][arm][m] += x

    def certify(self, arm: int) -> None:
        """Lemma 2: bounds on the slope of the harm. What was shown once stays shown."""
        start, top = self.arms[arm]["start"], self.top
        high, low = (math.log(self.d / (share * self.delta)) for share in (0.3, 0.05))
        n, dose, total, v, z = self.data[arm]
        if self.binary[1]:
            upper, lower = (x * n / dose / self.sz for x in (rate_upper(n, total, high), rate_lower(n, total, low)))
        else:
            qs = [(r, r - r * r / 2, w) for r, w in SHORTFALL]
            m = min((r * z + math.sqrt((r * z) ** 2 + 4 * v * q * (high - w))) / (2 * v * q) for r, q, w in qs)
            upper = descend(
                m, 2, high, lambda m: [(m * (m * v * q - r * z) + w, 2 * m * v * q - r * z) for r, q, w in qs]
            )
            rest = [(g, w - 0.5 * g * g * v * top**2) for g, w in ANY]
            u = min((low - e) / g for g, e in rest)
            lower = (z - descend(u, 1, low, lambda u: [(g * u + e, g) for g, e in rest]) / top) / v
        most, least = self.largest(arm), start * top / upper if upper > 0 else math.inf
        self.safe[arm] = max(self.safe[arm], self.rounded(arm, min(max(least, start), most)))
        over = start * top / lower if lower > 0 else math.inf
        self.unsafe[arm] = min(self.unsafe[arm], self.rounded(arm, min(max(over, start), most)))
        self.harm_low[arm] = max(self.harm_low[arm], lower * self.sz)

    def out(self, arm: int) -> str | None:
        if self.harm_low[arm] > self.limit:
            return f"its harm at its start dose is at least {self.harm_low[arm]:.6g}"
        return "the claim that it is the best is refuted" if self.refuted(arm) else None

    def near(self, arm: int, winner: int) -> str | None:
        return "it is near enough" if self.refuted(arm, winner) else None

    def refuted(self, arm: int, named: int | None = None) -> bool:
        """Lemma 6: the wealth against the claim of an arm is 1/(0.65 delta) at every bar u from 0 to 1."""
        marks = [self.shift / (1 + self.shift), 1.0]
        return everywhere(math.log(1 / (0.65 * self.delta)), marks, lambda x, y: self.wealth(arm, x, y, named))

    def wealth(self, k: int, low: float, high: float, named: int | None) -> float:
        """Lemma 5: the least log of the wealth against "arm k is best", over the bars from low to high."""
        led = [j for j in range(self.d) if self.led[j][0] > 0]
        ups, up, v = 0.0, 0.0, self.shared[k][k][0]
        for j in led or [0]:
            if j != k:
                ends = self.lowered(low), self.lowered(high) if j == named else high
                capped = bool(self.arms[j].get("levels")) or self.safe[j] >= self.largest(j)
                reach = (self.safe[j] if capped else self.largest(j)) / self.arms[j]["start"]
                up += self.over(*ends, self.shared[j][k], reach, capped)
                v += self.shared[j][k][0]
                ups += self.above(j, *ends, reach, capped)
        start, most = self.arms[k]["start"], self.largest(k)
        cap_share, reach = 1.0 if most <= start else 0.2 if math.isfinite(most) else 0.0, self.unsafe[k] / start
        line, cap = self.under(low, high, self.shared[k][k], reach)
        shared = either(log_mixture(up + line, v, TOGETHER), log_mixture(up + cap, v, TOGETHER), cap_share)
        line, cap = self.under(low, high, self.own[k], reach)
        own_cap = (
            self.ratio(self.rates["own"][k], low, reach, -1)
            if self.binary[0]
            else log_mixture(cap, self.own[k][0], CONTRAST)
        )
        below = either(log_mixture(line, self.own[k][0], CONTRAST), own_cap, cap_share)
        return either(ups + below, shared, 0.25)

    def above(self, j: int, low: float, high: float, reach: float, capped: bool) -> float:
        """Log of the wealth from bets with the pulls of an arm that leads, that its value is above."""
        bets = self.led[j]
        if not self.binary[0]:
            return log_mixture(self.over(low, high, bets, reach, capped), bets[0], CONTRAST)
        cap = self.ratio(self.rates["led"][j], high, reach, 1)
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
        ends = []
        for u in (low, high):
            noise = math.hypot((1 - u) * r, u) if free else (1 - u) * r + u
            ends.append(((1 - u) * y - u * z) / noise)
        turns = low * y + (1 - low) * r * r * z > 0 > high * y + (1 - high) * r * r * z
        return -math.hypot(y / r, z) if free and turns else min(ends)

    def height(self, u: float) -> float:
        """The bar at u, in units of the effect's sigma."""
        return u / max(1 - u, 1e-16) * self.top

    def lowered(self, u: float) -> float:
        fall = self.shift * (1 - u)
        return max(u - fall, 0.0) / max(1 - fall, 0.5e-16)

    def shrink(self, high: float) -> float:
        """The sigma of a binary effect at bars up to `high`, in units of 1/2 (lemma 3)."""
        if not self.binary[0]:
            return 1.0
        q = min(max(self.height(high) * self.sy, 1e-12), 0.499)
        return math.sqrt((1 - 2 * q) / (2 * math.log((1 - q) / q))) / self.sy

    def ratio(self, rates: Sequence[float], u: float, reach: float, sign: int) -> float:
        """Log of the wealth from likelihood ratios of binary effects against the bar at u."""
        n, dose, total = rates
        return log_odds(total, n, dose / max(n, 1.0) * self.height(u) * self.sy / reach, sign, TILT)


class Dose:
    """Bets of an arm at one dose: logs of wealth on harm (above the limit; below it; below it while leading), and sums
    over bets on the effect (below; above while leading): of weight^2, weight, weight * effect."""

    def __init__(self) -> None:
        self.over = self.under = self.led = 0.0
        self.below, self.above = [0.0] * 3, [0.0] * 3


class SurefootMonotonic(Theorem):
    """Theorem 2 of docs/guarantees.md. Stakes of an arm: guesses of its harm for the climb, how far the rungs go, for
    the verdict, and the sizes of its bets on the effect, below and above. Shares of delta: climb 0.35, verdict 0.53,
    stops 0.04."""

    RUNGS = 32

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        super().__init__(problem, options)
        self.base: list[float] = [arm["start"] for arm in self.arms]
        self.step = [(self.largest(i) - arm["start"]) / self.RUNGS for i, arm in enumerate(self.arms)]
        self.rungs = [[0.0] * self.RUNGS for _ in self.arms]  # logs of wealth
        self.at: list[dict[float, Dose]] = [{} for _ in self.arms]

    def certified(self, arm: int) -> float:
        return self.rounded(arm, self.base[arm])

    def take(self, given: Given) -> None:
        for arm in range(self.d):
            main, stakes = given.dose[arm], given.stakes[arm]
            for dose in sorted((a for i, a in given.came if i == arm), key=lambda a: (a == main, a)):
                if dose <= self.largest(arm) + CLOSE * abs(dose):
                    staked = stakes if stakes is not None and dose == main else [None] * 5
                    self.climb(arm, dose, given.came[arm, dose], staked[0], staked[1])
                    self.record(arm, dose, given.came[arm, dose], *staked[2:])

    def climb(self, arm: int, dose: float, came: Came, guess: float | None, reach: float | None) -> None:
        """Lemma 3: against "harm at a rung is above limit + slack" every reading of the arm is bet."""
        n, _, harm = came
        if reach is not None and 1e-150 < reach < 1e150 and self.step[arm] > 1e-150:
            finer = min(max(math.floor(math.log2(self.RUNGS * self.step[arm] / reach)), -1), 60)
            self.regrid(arm, 0, 0.5**finer)
        rungs, top, slope = self.rungs[arm], self.largest(arm), self.arms[arm].get("lipschitz", 1.0)
        if guess is not None:
            for j in range(self.RUNGS):
                rung = top if j == self.RUNGS - 1 else min(self.base[arm] + self.step[arm] * (j + 1), top)
                bound = self.ceiling - slope * max(rung - dose, 0.0)
                rungs[j] += bet(harm, n, bound, guess, self.noise("harm"), -1)
        goal = math.log(self.d / (0.35 * self.delta))
        passed = next((j for j, x in enumerate(rungs) if x < goal), self.RUNGS)
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

    def record(
        self, arm: int, dose: float, came: Came, guess: float | None, below: float | None, above: float | None
    ) -> None:
        """Lemma 5: the bets that these pulls make in the verdict."""
        n, effect, harm = came
        guess = self.limit if guess is None else guess  # at the limit nothing is bet
        over, under = (bet(harm, n, self.limit, guess, self.noise("harm"), sign) for sign in (1, -1))
        if self.arms[arm].get("levels") and dose not in self.arms[arm]["levels"]:
            under = 0.0  # between levels a dose above the largest safe one may be safe too
        below, above = (x if x is not None and 1e-60 < x < 1e60 else None for x in (below, above))
        if over or under or below or above or dose <= self.arms[arm]["start"]:
            it = self.at[arm].setdefault(dose, Dose())
            it.over, it.under, it.led = it.over + over, it.under + under, it.led + (under if above else 0.0)
            for size, sums in ((below or 0.0, it.below), (above or 0.0, it.above)):
                size = float(size > 0) if self.noise("effect")["kind"] == "bernoulli" else size
                for k, x in enumerate((n * size**2, n * size, size * effect)):
                    sums[k] += x

    def out(self, arm: int) -> str | None:
        start = self.arms[arm]["start"]
        if sum(x.over for a, x in self.at[arm].items() if a <= start) >= math.log(self.d / (0.04 * self.delta)):
            return "its harm is above the limit at its start dose already"
        return "the claim that it is the best is refuted" if self.refuted(arm) else None

    def near(self, arm: int, winner: int) -> str | None:
        return "it is near enough" if self.refuted(arm, winner) else None

    def refuted(self, arm: int, named: int | None = None) -> bool:
        """Lemma 6: the bets against "arm k is the best" (and better than the one to be named by more than the
        tolerance) come to 1/(0.53 delta) at every x; those that its value is below x rise with x, the others fall."""
        shift = 0.0 if named is None else self.tolerance
        led = [j for j in range(self.d) if j != arm and any(x.above[0] > 0 for x in self.at[j].values())]

        def total(low: float, high: float) -> float:
            ups = [self.side(j, high + (0.0 if j == named else shift), 1) for j in led]
            return self.side(arm, low + shift, -1) + math.fsum(ups)

        means = [x.below[2] / x.below[1] for x in self.at[arm].values() if x.below[1] > 0]
        means += [x.above[2] / x.above[1] for j in led for x in self.at[j].values() if x.above[1] > 0]
        return everywhere(math.log(1 / (0.53 * self.delta)), [-FAR_OFF, *means, FAR_OFF], total)

    def side(self, arm: int, x: float, sign: int) -> float:
        """The least evidence, over the largest safe dose b of an arm, that its value is above x, or below.

        Below: at doses up to b, harm is bet to be above the limit, and at those above b the effect to be below x.
        Above: the effect at doses up to b to be above x, and harm at those above b below the limit.
        """
        doses = sorted(self.at[arm])
        bets, start, noise = [self.at[arm][a] for a in doses], self.arms[arm]["start"], self.noise("effect")
        found = []
        for c in range(len(bets) + 1):  # b is from dose c - 1 to below dose c
            part = [b.below for b in bets[c:]] if sign < 0 else [b.above for b in bets[:c]]
            v, w, y = (math.fsum(column) for column in zip(*part, strict=True)) if part else (0.0, 0.0, 0.0)
            harm = math.fsum(b.over for b in bets[:c]) if sign < 0 else math.fsum(b.led for b in bets[c:])
            if noise["kind"] == "bernoulli":
                found.append(harm + log_odds(y, v, x, sign, TILT))
            else:
                found.append(harm + log_mixture(sign * (y - x * w) / self.sigma("effect"), v, GAP))
        least = list(found)
        for c, dose in enumerate(doses, 1):  # where b may be a dose that was pulled: half and half
            if sign < 0 and self.maybe(arm, dose):
                half = log_sum([found[c], found[c - 1]]) - math.log(2)
                least[c] = half if self.alone(arm, dose, doses[c : c + 1]) else min(half, found[c])
        return min(y for c, y in enumerate(least) if c == len(doses) or doses[c] > start)

    def maybe(self, arm: int, dose: float) -> bool:
        """Whether a largest safe dose may be exactly this one."""
        return dose >= self.largest(arm) or dose in (self.arms[arm].get("levels") or ())

    def alone(self, arm: int, dose: float, after: Sequence[float]) -> bool:
        """Whether one from this dose to before the next that was pulled can then be no other."""
        levels = self.arms[arm].get("levels") or ()
        return not any(dose < a < (after[0] if after else math.inf) for a in levels)


class SurefootLevels(Theorem):
    """Theorem 3 of docs/guarantees.md. Doses are the places of levels: 0, 1, and so on. Stakes of an arm, above 0 where
    its readings make a bet: that harm is below the ceiling (calm), below the limit (low), above it (high), that the
    effect is below x, above x. Shares of delta: calm 0.1, good 0.05, over 0.05, verdict 0.8."""

    READING = (2, 2, 2, 1, 1)  # of what came: what each stake is about

    def __init__(self, problem: Mapping[str, Any], options: Mapping[str, Any]):
        super().__init__(problem, options)
        places = [[float(k) for k in range(len(arm["levels"]))] for arm in self.arms]
        self.arms = [{"name": arm["name"], "start": 0.0, "levels": x} for arm, x in zip(self.arms, places, strict=True)]
        self.bets = [[[[0.0, 0.0] for _ in self.READING] for _ in x] for x in places]  # by level and stake: n, sum
        self.low, self.high = [[0.0] * len(x) for x in places], [[0.0] * len(x) for x in places]  # logs of wealth
        self.calm, self.good = [0] * self.d, [0] * self.d  # up to here harm is below the ceiling; below the limit
        self.barred, self.over = ([len(x) for x in places] for _ in range(2))  # from here on it is above

    def certified(self, arm: int) -> float:
        """One level above those that are calm, and below those that are barred."""
        return float(max(min(self.calm[arm] + 1, len(self.bets[arm]) - 1, self.barred[arm] - 1), 0))

    def take(self, given: Given) -> None:
        for arm, stakes in enumerate(given.stakes):
            dose = given.dose[arm]
            if stakes and (arm, dose) in given.came and dose in self.arms[arm]["levels"]:
                for stake, sums, reading in zip(stakes, self.bets[arm][int(dose)], self.READING, strict=True):
                    if stake is not None and stake > 0:
                        sums[0] += given.came[arm, dose][0]
                        sums[1] += given.came[arm, dose][reading]
                self.certify(arm)

    def wager(self, reading: str, sums: Sequence[float], x: float, sign: int, atoms: Atoms) -> float:
        """Log of the wealth of bets that a mean is above x (below it)."""
        n, total = sums
        if self.noise(reading)["kind"] == "bernoulli":
            return log_odds(total, n, x, sign, atoms)
        return log_mixture(sign * (total - n * x) / self.sigma(reading), n, atoms)

    def harms(self, arm: int, stake: int, bound: float, sign: int, atoms: Atoms) -> list[float]:
        return [self.wager("harm", bets[stake], bound, sign, atoms) for bets in self.bets[arm]]

    def certify(self, arm: int) -> None:
        """Levels below a bound in order from the second on, by the bets at and above each; levels above one in order
        from the last down, by the bets at and below each. What was shown once stays shown."""
        shown = math.log(self.d / (0.1 * self.delta)), math.log(self.d / (0.05 * self.delta))
        calm, barred = self.harms(arm, 0, self.ceiling, -1, CALM), self.harms(arm, 2, self.ceiling, 1, NEAR)
        self.low[arm] = self.harms(arm, 1, self.limit, -1, NEAR)
        self.high[arm] = self.harms(arm, 2, self.limit, 1, NEAR)
        for found, wealth, goal in ((self.calm, calm, shown[0]), (self.good, self.low[arm], shown[1])):
            passed = [math.fsum(wealth[j:]) >= goal for j in range(1, len(wealth))]
            found[arm] = max(found[arm], [*passed, False].index(False))
        for found, wealth in ((self.barred, barred), (self.over, self.high[arm])):
            passed = [math.fsum(wealth[:j]) >= shown[1] for j in range(len(wealth), 0, -1)]
            found[arm] = min(found[arm], len(wealth) - [*passed, False].index(False))

    def out(self, arm: int) -> str | None:
        if self.over[arm] < 1:
            return "its harm is above the limit at its first level already"
        return "the claim that it is the best is refuted" if self.refuted(arm) else None

    def near(self, arm: int, winner: int) -> str | None:
        return "it is near enough" if self.refuted(arm, winner) else None

    def refuted(self, arm: int, named: int | None = None) -> bool:
        """The bets against "arm k is the best" (and better than the one to be named by more than the tolerance) come to
        1/(0.8 delta) at every x; those that its value is below x rise with x, the others fall."""

        def total(low: float, high: float) -> float:
            ups = [self.above(j, high - (self.tolerance if j == named else 0.0)) for j in range(self.d) if j != arm]
            return self.below(arm, low) + math.fsum(ups)

        means = [bets[k][1] / bets[k][0] for j in range(self.d) for bets in self.bets[j] for k in (3, 4) if bets[k][0]]
        ends = [0.0, 1.0] if self.noise("effect")["kind"] == "bernoulli" else [-FAR_OFF, FAR_OFF]
        return everywhere(math.log(1 / (0.8 * self.delta)), [*ends, *means], total)

    def below(self, arm: int, x: float) -> float:
        """The least evidence, over its largest safe level b, that an arm's value is below x: at levels below b harm is
        bet to be above the limit, at those above b the effect to be below x, and at b itself one or the other."""
        high, found = self.high[arm], []
        for b in range(max(self.over[arm], 1)):
            effect = self.wager("effect", pooled(self.bets[arm][b:], 3), x, -1, APART)
            found.append(math.fsum(high[:b]) + either(effect, high[b], 0.25))
        return min(found)

    def above(self, arm: int, x: float) -> float:
        """The same that it is above x: at levels up to b the effect is bet to be, and harm above b below the limit."""
        low, bets = self.low[arm], self.bets[arm]
        return min(
            math.fsum(low[b + 1 :]) + self.wager("effect", pooled(bets[: b + 1], 4), x, 1, APART)
            for b in range(self.good[arm], len(low))
        )


def pooled(levels: Sequence[Sequence[Sequence[float]]], stake: int) -> list[float]:
    return [math.fsum(bets[stake][m] for bets in levels) for m in (0, 1)]


def bet(total: float, n: float, bound: float, guess: float, noise: Mapping[str, Any], sign: int) -> float:
    """Log of the wealth from one bet that a mean is above (or below) `bound`, by a guess made beforehand."""
    if noise["kind"] == "bernoulli":
        bound = (1e-3 if bound <= 0 else bound) if sign > 0 else (1 - 1e-3 if bound >= 1 else bound)
        if not 0 < bound < 1 or sign * (guess - bound) <= 0:
            return 0.0
        low, high = (bound, 0.5 * (1 + bound)) if sign > 0 else (0.5 * bound, bound)
        q = min(max(guess, low), high)
        return total * math.log(q / bound) + (n - total) * math.log((1 - q) / (1 - bound))
    stake = max(sign * (guess - bound), 0.0) / noise["sigma"] ** 2
    return float(stake * sign * (total - n * bound) - 0.5 * (stake * noise["sigma"]) ** 2 * n)


def either(a: float, b: float, share: float) -> float:
    """Log of the wealth of two bets, of which the second has this share of the stake."""
    return log_sum([x + math.log(part) for x, part in ((a, 1 - share), (b, share)) if part > 0])


def rate_upper(n: float, total: float, goal: float) -> float:
    """An upper bound on the mean of binary readings, at their mean dose."""
    rest = [(1 - math.exp(-g), w - g * total) for g, w in LOWERED]
    p = min(1.0, *((1 - math.exp((e - goal) / n)) / c for c, e in rest))
    for _ in range(2):
        p = min(
            descend(p, 1, goal, lambda p: [(e - n * math.log(1 - p * c), n * c / (1 - p * c)) for c, e in rest]), 1.0
        )
    return p


def rate_lower(n: float, total: float, goal: float) -> float:
    rest = [(math.exp(g) - 1, w + g * total) for g, w in RAISED]
    p = max(0.0, *((math.exp((e - goal) / n) - 1) / c for c, e in rest))
    for _ in range(2):
        p = max(
            descend(p, 1, goal, lambda p: [(e - n * math.log(1 + p * c), -n * c / (1 + p * c)) for c, e in rest]), 0.0
        )
    return p


THEOREMS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Theorem]] = {
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
            admit(record, event)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, ZeroDivisionError) as error:
            broken = event.seq, f"event {event.seq} ({event.kind}) does not follow from those before it: {error}"
            break
    if broken or not events:
        at, message = broken or (None, "there are no events")
        return report | {"event": at, "message": message}
    if head is not None and head not in {event.hash for event in events}:
        return report | {"event": None, "message": "no event has this head: one was changed or is missing"}
    return report | {"ok": True, "event": None, "message": f"all {len(events):,} events hold", "says": words(record)}


def admit(record: Record, event: Event, data: dict[str, Any] | None = None) -> None:
    """Take an event, and check what it claims by the theorem."""
    data = event.data if data is None else data
    if event.kind == "opened":
        if no := record.refusal(data["dose"], data["n"], data["stakes"]):
            raise Broken(no)
        for arm, most in enumerate(data["certified"]):
            if most is not None and not near(most, now := record.theorem.certified(arm)):
                raise Broken(f"it says that {most!r} was certified; the readings certify {now!r}")
    if event.kind == "ended" and (no := record.unfounded(data)):
        raise Broken(f"the ending does not follow: {no}")
    record.take(event, data)


def words(record: Record) -> list[str]:
    """What was concluded, and what happened on the way."""
    p, end = record.setup["problem"], record.concluded
    names = [arm["name"] for arm in p["arms"]]
    line = f"the limit {p['limit']:g}" + (f" plus the slack {p['slack']:g}" if p.get("slack") else "")
    safe = f"no dose was assigned whose mean harm is above {line}"
    if p["shape"] == "levels":
        safe = f"no level was assigned but the first of an arm, or one above a level whose mean harm is at most {line}"
    count = {kind: sum(e.kind == kind for e in record.notes) for kind in KINDS}
    read = sum(map(record.complete, range(1, len(record.harm))))
    late = [given.number for given, theorem in record.replay() if given for arm in range(len(names))
            if given.n[arm] and theorem.refusal(arm, given.dose[arm])]  # fmt: skip
    said = f"no arm is named: the study is {'stopped' if record.stopped else 'not at its end'}"
    if end is not None:
        named = names[end["winner"]] if end["winner"] is not None else None
        what = "the best arm" if end["ending"] == "best-arm" else f"within {p.get('tolerance', 0):g} of the best"
        said = f"{named} is {what}" if named else f"it ended ({end['ending']}) and no arm is named"
    return [
        f"Study {record.name!r}, theorem {record.setup['theorem']['name']}: {said}.",
        f"With probability at least {1 - p['delta']:g}, under the assumptions in the first event, {safe}, "
        f"and an arm that is named is what it is said to be.",
        f"{len(record.cohorts):,} cohorts, {read:,} readings; every dose was certified by readings told before it.",
        f"{count['voided']} dropped out, {count['corrected']} readings were corrected, {len(record.other)} doses given "
        f"were not the ones assigned, {count['paused']} pauses, {count['warned']} warnings, "
        f"{count['adopted']} adoptions, {count['clock']} times the clock went backwards.",
        f"Cohorts with a dose that the readings as corrected do not certify: {', '.join(map(str, late)) or 'none'}.",
    ]


def read(path: str) -> list[Event]:
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    if data.get("surefoot") != "study" or not isinstance(data["events"], list):
        raise ValueError("this is not the export of a study")
    return [Event(**event) for event in data["events"]]


def main(arguments: Sequence[str]) -> int:
    gc.disable()  # a million events are kept, and none of them is garbage
    head = arguments[2] if len(arguments) == 3 and arguments[1] == "--head" else None
    try:
        if len(arguments) != (1 if head is None else 3):
            raise ValueError("python checker.py study.json [--head HASH]")
        report = check(read(arguments[0]), head)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join([report["message"], f"head {report['head']}", *report.get("says", [])]))
    if report["ok"] and head is None:
        print("Consistent, not authenticated: whoever could write the file could have made all of it anew.")
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
