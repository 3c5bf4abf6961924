"""The fold: events in, what the study knows out. Pure: it reads no clock, no database and no hidden randomness.

A `View` takes events one by one. Three kinds of method:
- `apply` takes an event that is in the journal, and trusts it;
- `check_*` say whether an event that somebody wants to add may be added, and raise SurefootError where it may not;
- `follow` says which event the present view calls for next: a cohort to open, a pause, or none.

So a command is: check, add, then add what follows until nothing does, all in one transaction. Verifying is the same
walk over events that are there already.
"""

from __future__ import annotations

import gc
import hashlib
import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..designs import DESIGNS, Design, make
from ..designs.base import RUNNING
from ..problem import Problem, SurefootError, number
from . import guard
from .given import Given, raw, same
from .journal import Event, Load
from .watch import Watches

MOST = 10_000_000  # assignments in one cohort; more is a sign of a problem in other units than its readings
KINDS = ("created", "corrected", "voided", "paused", "warned", "resumed", "stopped", "closed")  # and opened, told
Follow = tuple[str, dict[str, Any], str | None]  # kind, payload, reason


class Assignment(NamedTuple):
    """One subject: give `arm` at `dose`, then tell the readings under `id`."""

    id: str
    subject: int
    arm: str
    dose: float
    why: str


@contextmanager
def no_collecting() -> Iterator[None]:
    """Leave garbage for later: a hundred thousand small objects are made and kept here, and none of them is garbage."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


class View:
    """What the events so far amount to."""

    def __init__(self) -> None:
        self.seq, self.hash = 0, ""
        self.cohorts: list[Given] = []
        self.before: list[Any] = []  # the design's state before each cohort
        self.subjects = 0  # numbers given out
        self.later: dict[int, Given] = {}  # subjects who took over a place -> their cohort
        self.keys: dict[str, str] = {}  # of requests -> payload
        self.paused: list[Event] = []  # since the last resume; empty while running
        self.stopped: Event | None = None
        self.notes: list[Event] = []  # everything but readings and cohorts
        self.stale = False  # the open cohort is not what the corrected evidence leads to
        self.fired: set[tuple[str, int, str]] = set()  # watches that have spoken: name, arm, reading
        self._watches: Watches | None = None

    # Events that are in the journal
    @classmethod
    def load(cls, load: Load) -> View:
        """Fold a whole study."""
        view, at = cls(), 0
        seqs = [row[0] for row in load.told]
        readings = json.loads(f"[{','.join([row[1] for row in load.told])}]")  # one long text parses fastest
        for event in load.events:
            upto = bisect_left(seqs, event.seq, at)
            view._told_many(readings[at:upto])
            view.apply(event)
            at = upto
        view._told_many(readings[at:])
        view.keys = {row[2]: row[1] for row in load.told if row[2] is not None}
        view.seq, view.hash = max(view.seq, seqs[-1] if seqs else 0), load.hash
        return view

    def _told_many(self, readings: Sequence[dict[str, Any]]) -> None:
        """`_told` for many, with a short way for the usual case: both readings at once, of the open cohort."""
        given = self.open
        for data in readings:
            usual = given and len(data) == 3 and "effect" in data and "harm" in data
            if given and usual and 0 <= (s := data["id"] - given.first) < given.size:
                place = given.place[s]
                given.effect[place] = data["effect"]
                given.harm[place] = data["harm"]
                given.left -= 1
                if s == given.next:
                    given.next = s + 1
                if not given.left:
                    self._close(given)
                    given = None
                continue
            self._told(data)
            given = self.open

    def apply(self, event: Event, data: dict[str, Any] | None = None) -> None:
        data = event.data if data is None else data
        kind = event.kind
        if kind == "told":
            self._told(data)
            if event.key is not None:
                self.keys[event.key] = event.payload
        elif kind == "opened":
            self._open(Given(len(self.cohorts) + 1, self.subjects + 1, data, self.seed, event.at, event.seq))
        else:
            if kind not in KINDS:
                raise SurefootError(
                    f"event {event.seq} is of a kind that is not known here: {kind!r}; upgrade surefoot"
                )
            getattr(self, f"_{kind}")(event, data)
            self.notes.append(event)
        self.seq, self.hash = event.seq, event.hash

    def _created(self, event: Event, data: dict[str, Any]) -> None:
        self.created, self.name, self.setup = event, event.study, data
        self.problem = Problem.from_dict(data["problem"])
        self.design: Design = make(data["design"], **data["options"])
        self.seed: int = data["seed"]
        # ids begin with it, so that a sheet of another study is noticed
        self.tag = hashlib.sha256(f"{self.seed} {self.name}".encode()).hexdigest()[:4]
        self.state = self.design.start(self.problem)

    def _open(self, given: Given) -> None:
        self.before.append(self.state)
        given.ask(self._asked(self.state, given.number))
        self.cohorts.append(given)
        self.subjects += given.size

    def _told(self, data: dict[str, Any]) -> None:
        given, place = self._place(data["id"])
        was = given.read(place)
        if "dose" in data and data["dose"] != given.dose[given.arm(place)]:
            given.other[place] = data["dose"]
        if "harm" in data:
            given.harm[place] = data["harm"]
        if "effect" in data:
            given.effect[place] = data["effect"]
        if not was and given.read(place):
            given.left -= 1
            if given.closed:
                self._again(given)  # a late reading of an assignment that had been withdrawn
            elif not given.left:
                self._close(given)

    def _corrected(self, event: Event, data: dict[str, Any]) -> None:
        given, place = self._place(data["id"])
        for key, into in (("effect", given.effect), ("harm", given.harm)):
            if key in data:
                into[place] = data[key]
        if "dose" in data:
            given.other.pop(place, None)
            if data["dose"] != given.dose[given.arm(place)]:
                given.other[place] = data["dose"]
        self._watches = None
        self.fired.clear()
        if given.closed:
            self._again(given)

    def _voided(self, event: Event, data: dict[str, Any]) -> None:
        given, place = self._place(data["id"])
        given.vacant[place] = data["id"]
        if self.setup["voids"] == "worst":
            effect, harm = (noise.worst for noise in self.problem.noises)
            assert effect and harm
            self._count_voids(effect[0], harm[1])
        else:
            self.paused.append(event)

    def _paused(self, event: Event, data: dict[str, Any]) -> None:
        self.paused.append(event)
        self._warned(event, data)

    def _warned(self, event: Event, data: dict[str, Any]) -> None:
        if data.get("by") == "watch":
            self.fired.add((data["watch"], data["arm"], data["reading"]))

    def _resumed(self, event: Event, data: dict[str, Any]) -> None:
        self.paused.clear()
        if data.get("voids") is not None:
            self._count_voids(data["voids"]["effect"], data["voids"]["harm"])
        for given in self.cohorts:
            for place in list(given.vacant):  # somebody else takes over the place
                self.subjects += 1
                given.later[self.subjects], given.holder[place] = place, self.subjects
                self.later[self.subjects] = given
                del given.vacant[place]

    def _stopped(self, event: Event, data: dict[str, Any]) -> None:
        self.stopped = event

    def _closed(self, event: Event, data: dict[str, Any]) -> None:
        self._close(self.cohorts[-1])

    def _count_voids(self, effect: float, harm: float) -> None:
        for given in self.cohorts:
            for place, subject in list(given.vacant.items()):
                given.effect[place], given.harm[place] = effect, harm
                given.voids[place] = subject
                del given.vacant[place]
                given.left -= 1
            if not given.left and not given.closed:
                self._close(given)

    def _close(self, given: Given) -> None:
        """The cohort is complete (or what is missing was withdrawn): the design decides."""
        given.closed, self.stale = True, False
        self.state = self._decide(given, self.state)

    def _decide(self, given: Given, state: Any) -> Any:
        for cohort, outcome in given.outcomes():
            state = self.design.tell(state, cohort, outcome)
        return state

    def _again(self, given: Given) -> None:
        """Fold again from this cohort on, with what is now known, against the cohorts as they were given."""
        self._watches = None
        state = self.before[given.number - 1]
        for later in self.cohorts[given.number - 1 :]:
            self.before[later.number - 1] = state
            later.ask(self._asked(state, later.number))
            if later.closed:
                state = self._decide(later, state)
            else:
                self.stale = not _alike(later.asked, later.dose, later.n)
        self.state = state

    # Reading it
    @property
    def open(self) -> Given | None:
        return self.cohorts[-1] if self.cohorts and not self.cohorts[-1].closed else None

    @property
    def ended(self) -> bool:
        return int(self.state.ending[0]) != RUNNING

    @property
    def standing(self) -> str:
        return "stopped" if self.stopped else "ended" if self.ended else "paused" if self.paused else "running"

    @property
    def watches(self) -> Watches:
        if self._watches is None:
            self._watches = Watches(self.problem, self.setup["watch"]["level"])
        self._watches.update(self.cohorts)
        return self._watches

    def identify(self, subject: int) -> str:
        return f"{self.tag}-{subject}"

    def assignments(self, limit: int | None = None) -> list[Assignment]:
        """The open ones, in their order: those who have no reading yet."""
        given = self.open
        found: list[Assignment] = []
        if given is None or self.standing != "running" or self.stale:
            return found
        why = [self._why(given, arm) for arm in range(len(given.n))]
        names, offset = self.problem.names, given.offset
        gone = given.voids.keys() | given.holder.keys()
        for s in range(given.next, given.size):
            if limit is not None and len(found) >= limit:
                return found
            place = given.place[s]
            harm = given.harm[place]
            if harm != harm and place not in gone:
                arm = bisect_right(offset, place) - 1
                subject = given.first + s
                found.append(Assignment(f"{self.tag}-{subject}", subject, names[arm], given.dose[arm], why[arm]))
            elif s == given.next:
                given.next += 1
        for place, subject in given.holder.items():
            if math.isnan(given.harm[place]) and (limit is None or len(found) < limit):
                arm = given.arm(place)
                found.append(Assignment(self.identify(subject), subject, names[arm], given.dose[arm], why[arm]))
        return found

    def awaiting(self) -> list[Assignment]:
        """Those whose harm was told and whose effect was not yet."""
        found = []
        for given in self.cohorts:
            for subject, place in given.subjects() if given.left else ():
                if given.holds(place, subject) and given.harm[place] == given.harm[place] and not given.read(place):
                    arm = given.arm(place)
                    name, dose = self.problem.names[arm], given.other.get(place, given.dose[arm])
                    found.append(Assignment(self.identify(subject), subject, name, dose, "its effect is due"))
        return found

    def _why(self, given: Given, arm: int) -> str:
        upper = given.bound[arm]
        if upper is None:
            return f"cohort {given.number}: the start dose, known to be safe"
        return f"cohort {given.number}: harm there is at most {upper:.4g}, and {self.problem.ceiling:.4g} is allowed"

    def _asked(self, state: Any, cohort: int) -> tuple[tuple[float, int], ...]:
        u = (raw(self.seed, cohort, 1, self.design.draws) >> np.uint64(11)).astype(float)[None] * 2.0**-53
        asked = self.design.ask(state, u)
        return tuple((float(a), int(n)) for a, n in zip(asked.dose[0], asked.n[0], strict=True))

    def theorem(self, before: int | None = None) -> guard.Bound:
        """The guard's bound on harm, from the rounds before this cohort (all that are complete, where None)."""
        cohorts = self.cohorts if before is None else self.cohorts[: before - 1]
        return self.theorem_of([given.round for given in cohorts if given.closed])

    def theorem_of(self, rounds: Sequence[guard.Round]) -> guard.Bound:
        return guard.THEOREMS[self.design.name](self.problem, self.setup["options"], rounds)

    # What somebody wants to add
    def _place(self, subject: int) -> tuple[Given, int]:
        given = self.later.get(subject, self.cohorts[-1])
        if subject < given.first:
            given = self.cohorts[bisect_right(self.cohorts, subject, key=lambda given: given.first) - 1]
        return given, given.where(subject)

    def subject(self, id: Any) -> int:
        """The subject number behind an assignment's id."""
        tag, dash, digits = id.partition("-") if isinstance(id, str) else ("", "", "")
        if not dash or not digits.isdecimal() or not digits.isascii():
            raise SurefootError(f"an assignment's id looks like {self.identify(1)}; got {id!r}: take it from ask")
        if tag != self.tag:
            raise SurefootError(f"{id} is not of study {self.name!r}: its ids begin with {self.tag}-")
        subject = int(digits[:18])
        if not 1 <= subject <= self.subjects:
            raise SurefootError(f"{id} has not been assigned: study {self.name!r} has given out {self.subjects:,} ids")
        return subject

    def check_open(self) -> None:
        if self.stopped:
            raise SurefootError(f"study {self.name!r} was stopped ({self.stopped.reason}): it takes nothing more")

    def check_told(self, data: Mapping[str, Any]) -> dict[str, Any] | None:
        """The payload to add; None where exactly this was told before."""
        self.check_open()
        subject = self.subject(data.get("id"))
        given, place = self._place(subject)
        new = {k: self.check_reading(k, data[k]) for k in ("effect", "harm", "dose") if data.get(k) is not None}
        old = self.reading(given, place)
        id = self.identify(subject)
        if not given.holds(place, subject):
            raise SurefootError(f"{id} was voided: its place is not open to readings any more")
        if not new.keys() & {"effect", "harm"}:
            raise SurefootError(f"{id}: nothing to tell; give its harm, its effect, or both")
        if "harm" not in new and "harm" not in old:
            raise SurefootError(
                f"{id}: harm is missing; tell it with the effect or before it: no reading counts without"
            )
        for key, value in new.items():
            was = old.get(key, given.dose[given.arm(place)] if key == "dose" and "harm" in old else value)
            if was != value:
                raise SurefootError(
                    f"{id}: {key} was told as {was:.12g} before; got {value:.12g}: if that was wrong, use correct"
                )
        fresh = {key: value for key, value in new.items() if key not in old and (key != "dose" or "harm" not in old)}
        return {"id": subject, **fresh} if fresh else None

    def check_corrected(self, data: Mapping[str, Any]) -> dict[str, Any]:
        subject = self.subject(data.get("id"))
        given, place = self._place(subject)
        id = self.identify(subject)
        if not given.holds(place, subject):
            raise SurefootError(f"{id} was voided: there is no reading to correct")
        old = self.reading(given, place)
        new = {k: self.check_reading(k, data[k]) for k in ("effect", "harm", "dose") if data.get(k) is not None}
        if not old:
            raise SurefootError(f"{id} has no reading yet: use tell")
        for key in new:
            if key != "dose" and key not in old:
                raise SurefootError(f"{id}: its {key} has not been told yet: use tell")
        old.setdefault("dose", given.dose[given.arm(place)])
        changed = {key: value for key, value in new.items() if old[key] != value}
        if not changed:
            raise SurefootError(f"{id}: nothing to correct; the readings are as given already")
        return {"id": subject, **changed, "was": {key: old[key] for key in changed}}

    def check_voided(self, data: Mapping[str, Any]) -> dict[str, Any]:
        self.check_open()
        subject = self.subject(data.get("id"))
        given, place = self._place(subject)
        id = self.identify(subject)
        if not given.holds(place, subject):
            raise SurefootError(f"{id} was voided before")
        if self.reading(given, place):
            raise SurefootError(f"{id} has a reading: it cannot be voided; if the reading is wrong, use correct")
        if given.closed:
            raise SurefootError(f"{id} was withdrawn: there is nothing to void")
        return {"id": subject}

    def check_paused(self) -> None:
        self.check_open()
        if self.standing != "running":
            raise SurefootError(f"study {self.name!r} is {self.standing}: there is nothing to pause")

    def check_resumed(self, data: Mapping[str, Any]) -> dict[str, Any]:
        self.check_open()
        if not self.paused:
            raise SurefootError(f"study {self.name!r} is {self.standing}, not paused: there is nothing to resume")
        voids = data.get("voids")
        if voids is None:
            return {}
        if not any(given.vacant for given in self.cohorts):
            raise SurefootError("nobody has dropped out since the last decision: leave out what a void counts as")
        return {"voids": {key: self.check_reading(key, voids[key]) for key in ("effect", "harm")}}

    def check_reading(self, key: str, value: Any) -> float:
        return number(key, value) if key == "dose" else self.problem.noises[key == "harm"].reading(key, value)

    def reading(self, given: Given, place: int) -> dict[str, float]:
        """What was told of a place."""
        found = {k: x for k, x in (("effect", given.effect[place]), ("harm", given.harm[place])) if x == x}
        return found | ({"dose": given.other[place]} if place in given.other else {})

    # What follows
    def follow(self) -> Follow | None:
        """The event that the present view calls for, if any."""
        if self.standing != "running":
            return None
        for alarm in self.watches.alarms():
            if (alarm.watch, alarm.arm, alarm.reading) not in self.fired:
                kind = "paused" if self.setup["watch"]["do"] == "pause" else "warned"
                return kind, {"by": "watch", **alarm._asdict()}, alarm.message
        if self.open:
            return ("closed", {}, "the corrected evidence leads to another cohort") if self.stale else None
        return self._next_cohort()

    def _next_cohort(self) -> Follow:
        number = len(self.cohorts) + 1
        asked = self._asked(self.state, number)
        size = sum(n for _, n in asked)
        if size > MOST:
            why = f"cohort {number} would hold {size:,} assignments: does sigma have the units of the readings?"
            return "paused", {"by": "size"}, why
        bound = self.theorem()
        said = [guard.refusal(self.problem, bound, arm, dose) for arm, (dose, n) in enumerate(asked) if n]
        if no := [text for text in said if text]:
            why = "the design certifies what the guard does not: " + "; ".join(no)
            return "paused", {"by": "guard", "asked": [list(x) for x in asked]}, why
        upper = [
            bound(arm, dose) if n and dose > self.problem.arms[arm].start else None
            for arm, (dose, n) in enumerate(asked)
        ]
        return "opened", {"dose": [dose for dose, _ in asked], "n": [n for _, n in asked], "bound": upper}, None


def _alike(asked: Sequence[tuple[float, int]], dose: Sequence[float], n: Sequence[int]) -> bool:
    return all(k == m and (not m or same(a, b)) for (a, k), b, m in zip(asked, dose, n, strict=True))


def plain(problem: Problem) -> dict[str, Any]:
    """The problem for JSON, which has no infinity: an arm without a largest dose has no `max`."""
    data = problem.to_dict()
    data["arms"] = [{k: v for k, v in arm.items() if v != math.inf} for arm in data["arms"]]
    return data


def setup(problem: Problem, design: Design, seed: int, watch: dict[str, Any]) -> dict[str, Any]:
    """The payload of the first event."""
    if design.name not in guard.THEOREMS or not design.guarantee:
        fit = [name for name, kind in DESIGNS.items() if kind.shape == problem.shape and name in guard.THEOREMS]
        raise SurefootError(
            f"{design.name} as set has no theorem that certifies its doses, so it is for simulation only; "
            f"for a live study of this shape use {' or '.join(fit)}"
        )
    return {
        "problem": plain(problem),
        "design": design.name,
        "options": design.options,
        "seed": seed,
        "watch": watch,
        "voids": "worst" if all(noise.worst for noise in problem.noises) else "pause",
    }
