"""The fold: events in, what the study knows out. Pure: it reads no clock, no database and no hidden randomness.

A `View` is the checker's `Record` with the design's state beside it, and what a study keeps that no theorem needs:
who reserved what, requests that may come again, who may lift a pause. `take` takes an event that is in the journal, and
raises where it cannot follow; `follow` says which event the present view calls for next: a cohort to open, a pause, an
ending, or none.

So a command is: check it (`requests`), add, then add what follows until nothing does, all in one transaction. Verifying
is the same walk over events that are there already. Evidence comes from readings and from doses and stakes as they were
published; the policy is asked only when a new cohort is to be opened, so that another version of it changes nothing
that was concluded.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..designs import Design
from ..designs.base import ENDINGS, RUNNING, STOPPED, Cohort, Outcome, out_since
from ..designs.staged import Staged
from ..problem import Problem, SurefootError
from .checker import CLOSE, MOST, Broken, Event, Given, Record, Stage, Sums, near, need
from .published import Asked, absent, certified, checked, designed, published, stage_of, stakes_of, theorem_of, told
from .text import distinct, skeleton
from .watch import Alarm, Watches

ROUNDING = 1e-6  # how far two versions of the same evidence may differ and be adopted
Follow = tuple[str, dict[str, Any], str | None]  # kind, payload, reason


class View(Record):
    """What the events so far amount to."""

    def __init__(self, slip: float = CLOSE) -> None:
        super().__init__()
        self.slip = slip  # by how much what was certified may differ from what is computed here
        self.reserved: dict[int, str] = {}  # subject -> for whom
        self.keys: dict[str, str] = {}  # of requests -> payload
        self.actors: set[str] = set()
        self.reader = ""  # who told or corrected the last reading
        self.alarmed: set[str] = set()  # whose reading made a watch pause the study, as the eye reads their names
        self.before: list[Any] = []  # the design's state before each cohort
        self.stale = False  # the open cohort is not what the corrected evidence leads to
        self.trouble: str | None = None  # why this package does not see the evidence that was published
        self.apart = 0.0  # by how much that differs, at most
        self._watches: Watches | None = None
        self._ahead: tuple[Any, Any, Any] = (None, None, None)  # what the last `ahead_state` was made of, and itself
        self.corrections = 0
        self.first = 1  # no subject before it is open

    # Events that are in the journal
    def follow_up(self, events: Iterable[Event]) -> View:
        """Take events from the journal, each with its seal; first, where something is known, the last that is."""
        known = self.seq
        for event in events:
            if known:
                same = (event.seq, event.hash, event.seal()) == (known, self.hash, self.hash)
                need(same, "event", known, "was changed: it is not the one that was read before")
                known = 0
            else:
                self.take(event)
        need(not known, "event", known, "is gone: it was there before")
        return self

    def take(self, event: Event, data: dict[str, Any] | None = None) -> None:
        super().take(event, data)
        self.actors.add(event.actor)
        if event.kind in ("told", "corrected"):
            self.reader = event.actor
        if event.key is not None:
            need(event.key not in self.keys, "its key was that of another request")
            self.keys[event.key] = event.payload

    def _created(self, event: Event, data: dict[str, Any]) -> None:
        checked(str(data["theorem"]["name"]))  # a theorem of another package is loaded
        super()._created(event, data)
        # ids begin with it, so that a sheet of another study is noticed
        self.tag = hashlib.sha256(f"{self.seed} {self.name}".encode()).hexdigest()[:4]
        self.problem = Problem.from_dict(data["problem"])
        distinct("the arms", self.problem.names)
        self.design: Design = designed(data)
        self.state = self.design.start(self.problem)
        self.digest: str = data["theorem"]["digest"]
        if theorem_of(self.design) != data["theorem"]["name"]:
            self.trouble = f"event 1 rests on {data['theorem']['name']}, this surefoot has {theorem_of(self.design)}"
            self.apart = math.inf

    def _opened(self, event: Event, data: dict[str, Any]) -> None:
        super()._opened(event, data)
        self.first = self.cohorts[-1].first
        self.before.append(self.state)
        self._compare(self.cohorts[-1])

    @property
    def ahead_state(self) -> Any:
        """The design's state with cohorts whose effects are awaited, by their harms and the mean effects so far. Doses
        rest on the former alone; the latter are for the policy, which may guess as it likes."""
        state, pending = self.state, self.pending()
        of, now = (self.corrections, [given.harms for given in pending]), state
        if not pending or (self._ahead[0] is now and self._ahead[1] == of):
            return self._ahead[2] if pending else state
        for given in pending:
            harms = self.sums(given, harms=True)
            expected = {at: (n, n * self._mean_effect(at[0]), *more) for at, (n, _, *more) in harms.items()}
            for cohort, outcome in self._outcomes(given, state, expected):
                state = self.design.tell(state, cohort, outcome)
        self._ahead = now, of, state
        return state

    def _mean_effect(self, arm: int) -> float:
        """Of the last cohorts that are complete."""
        came = [
            x
            for given in self.cohorts[max(self.done - 50, 0) : self.done]
            for (i, _), x in given.came.items()
            if i == arm
        ]
        return math.fsum(x[1] for x in came) / math.fsum(x[0] for x in came) if came else 0.0

    def _compare(self, given: Given) -> None:
        """Whether what was certified then is what this package computes; of the paper's designs, whose stages are their
        proof, what they ask for."""
        state = self.ahead_state
        their = given.dose if self.staged else [math.inf if x is None else x for x in given.certified]
        mine = state.dose[0].tolist() if self.staged else certified(self.design, state)
        for arm, (then, now) in enumerate(zip(their, mine, strict=True)):
            off = 0.0 if then == now else abs(then - now) / max(min(abs(then), abs(now)), 1e-300)
            self.apart = max(self.apart, off)
            if not self.trouble and off > self.slip:
                did, upto = ("gives", "at") if self.staged else ("certified", "up to")
                said = f"event {given.seq} {did} {self.problem.names[arm]} {upto} {then!r}"
                self.trouble = f"{said}; this surefoot makes it {now!r}"

    def _adopted(self, event: Event, data: dict[str, Any]) -> None:
        self.digest, self.slip = data["digest"], ROUNDING
        if self.apart <= ROUNDING:  # anything else cannot be adopted, whoever says so
            self.trouble = None

    def _corrected(self, event: Event, data: dict[str, Any]) -> None:
        super()._corrected(event, data)
        self.corrections += 1
        given = self.open
        if given and not self.find(data["id"]).closed and self.refusal(given.dose, given.n, given.stakes):
            self.stale = True  # its doses rested on harms that were wrong
        self._watches = None

    def _paused(self, event: Event, data: dict[str, Any]) -> None:
        super()._paused(event, data)
        if data["by"] == "watch":
            self.alarmed.add(skeleton(self.reader))

    def _resumed(self, event: Event, data: dict[str, Any]) -> None:
        own = self.lifts_own_alarm(event.actor) and len({skeleton(actor) for actor in self.actors | {event.actor}}) > 1
        need(not own, event.actor, "lifted a pause that followed from a reading of their own")
        super()._resumed(event, data)
        self.alarmed.clear()

    def lifts_own_alarm(self, actor: str) -> bool:
        """Whether a watch paused the study upon something that this actor told, so that another is to lift it."""
        return self.setup["lift"] == "another" and skeleton(actor) in self.alarmed

    @property
    def told_alarm(self) -> str:
        """Who may not lift a pause by a watch, where there are others who can."""
        own = sorted(actor for actor in self.actors if self.lifts_own_alarm(actor))
        return " or ".join(own) if len(own) < len(self.actors) else ""

    def _assigned(self, event: Event, data: dict[str, Any]) -> None:
        for subject in data["ids"]:
            given, free = self.find(subject), subject not in self.reserved and subject not in self.gone
            need(free and not (given.closed or given.withdrawn), subject, "is not free")
            self.reserved[subject] = data["for"]

    def _returned(self, event: Event, data: dict[str, Any]) -> None:
        for subject in data["ids"]:
            del self.reserved[subject]

    def _closed(self, event: Event, data: dict[str, Any]) -> None:
        self.stale = False
        super()._closed(event, data)

    def close(self, given: Given) -> None:
        super().close(given)
        self.stale = False
        self.before[given.number - 1] = self.state
        self.state = self._decide(given, self.state)

    def again(self, given: Given) -> None:
        """Fold again from this cohort on, with what is now known, against the cohorts as they were given."""
        super().again(given)
        self._watches = None
        state = self.before[given.number - 1]
        for later in self.cohorts[given.number - 1 :]:
            self.before[later.number - 1] = state
            if later.closed:
                state = self._decide(later, state)
            elif later is self.open:
                same = not self.staged or (self._counts(later, state) and self._asked(state, later).n == later.n)
                self.stale = not same or self.refusal(later.dose, later.n, later.stakes) is not None
        self.state = state

    def _decide(self, given: Given, state: Any) -> Any:
        for cohort, outcome in self._outcomes(given, state):
            state = self.design.tell(state, cohort, outcome)
        return state

    def _outcomes(self, given: Given, state: Any, came: Any = None) -> Iterator[tuple[Cohort, Outcome]]:
        """What came back, for the design: first what was given at another dose than assigned, on which nothing was
        staked, then the rest."""
        main, came, nothing = self.released(given, state), came or given.came, (0, *[0.0] * (4 if self.squares else 2))
        dose = main.dose[0].tolist()
        if self.staged and not self._counts(given, state):  # all of it is set aside, as what is given at other doses is
            every = [[nothing, *(x for (i, _), x in came.items() if i == arm)] for arm in range(len(dose))]
            aside = [tuple(map(sum, zip(*rows, strict=True))) for rows in every]
            yield told([math.nextafter(x, math.inf) for x in state.dose[0].tolist()], None, aside)
            return
        others = [sorted(a for i, a in came if i == arm and a != given.dose[arm]) for arm in range(len(dose))]
        for k in range(max(map(len, others))):
            at = [row[k] if k < len(row) else None for row in others]
            found = [nothing if x is None else came[i, x] for i, x in enumerate(at)]
            yield told([dose[i] if x is None else x for i, x in enumerate(at)], None, found)
        yield told(dose, main.stakes, [came.get((i, a), nothing) for i, a in enumerate(given.dose)])

    def _counts(self, given: Given, state: Any) -> bool:
        """Whether a cohort is of the stage that a design is in: by the stakes as published, and not by its doses alone,
        since the readings as corrected may have led elsewhere."""
        stage = Stage(state.dose[0].tolist(), stage_of(state), 1, {})
        return not given.withdrawn and stage.asks(given.dose, given.stakes)

    def released(self, given: Given, state: Any) -> Cohort:
        """A cohort for the design. A dose within 1e-9 of what this package computes is that: under another CPU or NumPy
        its own numbers may differ in the last digit."""
        fit = state.dose[0].tolist() if self.staged else certified(self.design, state)
        dose = [b if near(a, b) and (self.staged or a > b) else a for a, b in zip(given.dose, fit, strict=True)]
        stakes = None if self.staged else published(self.design, self.problem, given.stakes)
        return Cohort(np.array([dose]), np.array([given.n]), stakes)

    # Reading it
    @property
    def staged(self) -> bool:
        return isinstance(self.design, Staged)

    @property
    def subjects(self) -> int:
        """How many numbers were given out."""
        return len(self.harm) - 1

    @property
    def ended(self) -> bool:
        return int(self.state.ending[0]) != RUNNING

    @property
    def standing(self) -> str:
        if self.stopped:
            return "stopped"
        return "paused" if self.paused else "ended" if self.ended else "running"

    @property
    def refuted_starts(self) -> list[int]:
        """The arms whose start dose, which was to be safe, the readings show not to be."""
        seen = {arm for watch, arm, _ in self.fired if watch == "start"}
        return sorted(seen | set(np.flatnonzero(self.state.standing[0] == STOPPED).tolist()))

    @property
    def watches(self) -> Watches:
        if self._watches is None:
            self._watches = Watches(self.problem, self.setup["watch"]["level"])
        self._watches.update(self)
        return self._watches

    def came(self, given: Given) -> Sums:
        """What was told of a cohort, by arm and dose, as far as it has come."""
        return given.came if given.closed else self.sums(given)

    def identify(self, subject: int) -> str:
        return f"{self.tag}-{subject}"

    def _asked(self, state: Any, given: Any = None) -> Any:
        cohort = len(self.cohorts) + 1 if given is None else given.number
        draws = np.random.PCG64(np.random.SeedSequence([self.seed, cohort, 1])).random_raw(self.design.draws)
        asked = self.design.ask(state, (draws >> np.uint64(11)).astype(float)[None] * 2.0**-53)
        first = 1 + sum(int(x.rounds[0]) < int(state.rounds[0]) for x in self.before)
        stakes = stage_of(state, first) if self.staged else stakes_of(asked)
        return Asked(asked.dose[0].tolist(), asked.n[0].tolist(), stakes)

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

    def refusal(self, dose: Sequence[float], n: Sequence[int], stakes: Sequence[Any]) -> str | None:
        """Why a cohort may not be released now, by the checker; None where it may."""
        return _why_not(self.allow, dose, n, stakes)

    def unfounded(self, ending: dict[str, Any]) -> str | None:
        """Why an ending does not follow from the readings, by the checker; None where it does."""
        return _why_not(self.conclude, ending)

    # What follows
    def follow(self) -> Follow | None:
        """The event that the present view calls for, if any."""
        due = self.due()
        return self._next_cohort() if due and due[0] == "opened" else due

    def due(self) -> Follow | None:
        """The same, but for the content of a cohort that is to be opened, which is for the policy to say."""
        if self.stopped or self.paused or self.trouble:
            return None
        for alarm in self._alarms(self.watches):
            if (alarm.watch, alarm.arm, alarm.reading) not in self.fired:
                kind = "paused" if self.setup["watch"]["do"] == "pause" else "warned"
                return kind, {"by": "watch", **alarm.said}, alarm.message
        if self.ended:
            return self._ending() if self.concluded is None else None
        if self.open and self.stale:
            return "closed", {}, "the corrected evidence leads to another cohort"
        return ("opened", {}, None) if self.free and not self._waits() else None

    def _alarms(self, watches: Watches) -> Iterator[Alarm]:
        yield from watches.alarms()
        if self.concluded is None and int(self.state.winner[0]) >= 0:  # before an arm is named
            yield from watches.doubts()

    def flagged(self) -> list[Alarm]:
        """What the watches would say now; they are asked apart, so that when they look does not depend on it."""
        return list(self._alarms(copy.deepcopy(self.watches)))

    def _waits(self) -> bool:
        """Whether the policy would rather wait for effects: by what is expected of them it is about decided."""
        return len(self.cohorts) > self.done and not absent(self.design) and not any(self._asked(self.ahead_state).n)

    def _ending(self) -> Follow:
        s = self.state
        winner = int(s.winner[0])
        after = [*self.before[1 : self.done], s]  # every cohort
        out = [out_since(stood) + 1 for stood in np.stack([x.standing[0] for x in after]).T]
        near = out_since(np.array([int(x.winner[0]) == winner for x in after])) + 1  # all that were left
        data: dict[str, Any] = {
            "ending": ENDINGS[int(s.ending[0])],
            "after": sum(int(x.ending[0]) == RUNNING for x in self.before[: self.done]),
            "winner": winner if winner >= 0 else None,
        }
        if self.refuted_starts and winner >= 0:
            data |= {"winner": None, "withheld": self.refuted_starts}
        left = near if data["winner"] is not None else None
        data["out"] = [when if when <= len(after) else None if i == winner else left for i, when in enumerate(out)]
        if no := self.unfounded(data):
            return "paused", {"by": "checker"}, f"the design concludes what the checker does not: {no}"
        return "ended", data, None

    def _next_cohort(self) -> Follow:
        state = self.ahead_state
        number, asked = len(self.cohorts) + 1, self._asked(state)
        size = sum(asked.n)
        if size > MOST and not self.setup.get("blocks"):
            why = f"cohort {number} would hold {size:,} assignments: does sigma have the units of the readings?"
            return "paused", {"by": "size"}, why
        if no := self.refusal(*asked):
            return "paused", {"by": "checker"}, f"the design certifies what the checker does not: {no}"
        ahead = self.ahead()
        most = [ahead.certified(arm) for arm in range(len(asked.n))]
        return "opened", asked._asdict() | {"certified": [x if math.isfinite(x) else None for x in most]}, None


def _why_not(check: Callable[..., None], *of: Any) -> str | None:
    try:
        check(*of)
    except Broken as error:
        return str(error)
    return None
