"""The fold: events in, what the study knows out. Pure: it reads no clock, no database and no hidden randomness.

A `View` is the checker's `Record` with the design's state beside it. Three kinds of method:
- `take` takes an event that is in the journal, and raises where it cannot follow;
- `check_*` say whether an event that somebody wants to add may be added, and raise SurefootError where it may not;
- `follow` says which event the present view calls for next: a cohort to open, a pause, an ending, or none.

So a command is: check, add, then add what follows until nothing does, all in one transaction. Verifying is the same
walk over events that are there already. Evidence comes from readings and from doses and stakes as they were published;
the policy is asked only when a new cohort is to be opened, so that another version of it changes nothing that was
concluded.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..designs import DESIGNS, Design, make
from ..designs.base import ACTIVE, ENDINGS, RUNNING, STANDINGS, STOPPED, Cohort, Outcome
from ..designs.compose import Composed
from ..problem import Problem, SurefootError, number
from .checker import CLOSE, THEOREMS, Broken, Event, Given, Record, near
from .watch import Watches

MOST = 10_000_000  # assignments in one cohort; more is a sign of a problem in other units than its readings
ROUNDING = 1e-6  # how far two versions of the same evidence may differ and be adopted
Follow = tuple[str, dict[str, Any], str | None]  # kind, payload, reason


class Assignment(NamedTuple):
    """One subject: give `arm` at `dose`, then tell the readings under `id`."""

    id: str
    subject: int
    arm: str
    dose: Any  # a number, or what the level is called where there are ordered levels
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


class View(Record):
    """What the events so far amount to."""

    def __init__(self, slip: float = CLOSE) -> None:
        super().__init__()
        self.slip = slip  # by how much what was certified may differ from what is computed here
        self.before: list[Any] = []  # the design's state before each cohort
        self.stale = False  # the open cohort is not what the corrected evidence leads to
        self.fired: set[tuple[str, int, str]] = set()  # watches that have spoken: name, arm, reading
        self.out: dict[int, int] = {}  # arm that is out -> the cohort after which it was
        self.trouble: str | None = None  # why this package does not see the evidence that was published
        self._watches: Watches | None = None

    # Events that are in the journal
    def follow_up(self, events: Iterable[Event]) -> View:
        """Take events from the journal, each with its seal."""
        for event in events:
            if event.seal() != event.hash:
                raise Broken(f"event {event.seq} was changed: its content does not have its hash")
            self.take(event)
        return self

    def _created(self, event: Event, data: dict[str, Any]) -> None:
        super()._created(event, data)
        # ids begin with it, so that a sheet of another study is noticed
        self.tag = hashlib.sha256(f"{self.seed} {self.name}".encode()).hexdigest()[:4]
        self.problem = Problem.from_dict(data["problem"])
        self.design: Design = make(data["design"], **data["options"])
        self.state = self.design.start(self.problem)
        self.digest: str = data["theorem"]["digest"]
        if theorem_of(self.design) != data["theorem"]["name"]:
            self.trouble = f"event 1 rests on {data['theorem']['name']}, this surefoot has {theorem_of(self.design)}"

    def _opened(self, event: Event, data: dict[str, Any]) -> None:
        super()._opened(event, data)
        self.before.append(self.state)
        self._compare(self.cohorts[-1], data["safe"])

    def _compare(self, given: Given, safe: Sequence[float]) -> None:
        """Whether what was certified then is what this package computes."""
        for arm, (then, now) in enumerate(zip(safe, certified(self.design, self.state), strict=True)):
            if not self.trouble and abs(then - now) > self.slip * max(abs(then), abs(now)):
                self.trouble = (
                    f"event {given.seq} certified {self.problem.names[arm]} up to {then!r}; "
                    f"this surefoot makes it {now!r}"
                )

    def _adopted(self, event: Event, data: dict[str, Any]) -> None:
        self.digest, self.slip, self.trouble = data["digest"], ROUNDING, None

    def _corrected(self, event: Event, data: dict[str, Any]) -> None:
        super()._corrected(event, data)
        self._watches = None
        self.fired.clear()

    def _warned(self, event: Event, data: dict[str, Any]) -> None:
        if data.get("by") == "watch":
            self.fired.add((data["watch"], data["arm"], data["reading"]))

    def _paused(self, event: Event, data: dict[str, Any]) -> None:
        super()._paused(event, data)
        self._warned(event, data)

    def close(self, given: Given) -> None:
        super().close(given)
        self.stale = False
        self.state = self._decide(given, self.state)

    def again(self, given: Given) -> None:
        """Fold again from this cohort on, with what is now known, against the cohorts as they were given."""
        super().again(given)
        self._watches = None
        state = self.before[given.number - 1]
        self.out = {arm: when for arm, when in self.out.items() if when < given.number}
        for later in self.cohorts[given.number - 1 :]:
            self.before[later.number - 1] = state
            if later.closed:
                state = self._decide(later, state)
            else:
                asked = self._asked(state, later) if self.staged else later
                same = all(k == m and (not m or near(a, b)) for a, k, b, m in zip(
                    asked.dose, asked.n, later.dose, later.n, strict=True))  # fmt: skip
                self.stale = not same or self.refusal(later.dose, later.n, later.stakes) is not None
        self.state = state

    def _decide(self, given: Given, state: Any) -> Any:
        if not (self.staged and given.withdrawn):  # a stage is whole or nothing
            for cohort, outcome in self._outcomes(given, state):
                state = self.design.tell(state, cohort, outcome)
        for arm in np.flatnonzero(state.standing[0] != ACTIVE).tolist():
            self.out.setdefault(arm, given.number)
        return state

    def _outcomes(self, given: Given, state: Any) -> Iterator[tuple[Cohort, Outcome]]:
        """What came back, for the design: first what was given at another dose than assigned, on which nothing was
        staked, then the rest."""
        main = self.released(given, state)
        dose = main.dose[0].tolist()
        others = [sorted(a for i, a in given.came if i == arm and a != given.dose[arm]) for arm in range(len(dose))]
        for k in range(max(map(len, others))):
            at = [row[k] if k < len(row) else None for row in others]
            came = [NOTHING if x is None else given.came[i, x] for i, x in enumerate(at)]
            yield _told([dose[i] if x is None else x for i, x in enumerate(at)], None, came)
        yield _told(dose, main.stakes, [given.came.get((i, a), NOTHING) for i, a in enumerate(given.dose)])

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
        return not isinstance(self.design, Composed)

    @property
    def ended(self) -> bool:
        return int(self.state.ending[0]) != RUNNING

    @property
    def standing(self) -> str:
        if self.stopped:
            return "stopped"
        return "paused" if self.paused else "ended" if self.ended else "running"

    @property
    def refuted_starts(self) -> list[str]:
        """The arms whose start dose, which was to be safe, the readings show not to be."""
        seen = {arm for watch, arm, _ in self.fired if watch == "start"}
        seen |= set(np.flatnonzero(self.state.standing[0] == STOPPED).tolist())
        return [self.problem.names[arm] for arm in sorted(seen)]

    @property
    def watches(self) -> Watches:
        if self._watches is None:
            self._watches = Watches(self.problem, self.setup["watch"]["level"])
        self._watches.update(self)
        return self._watches

    def identify(self, subject: int) -> str:
        return f"{self.tag}-{subject}"

    def assignments(self, limit: int | None = None, site: str | None = None) -> list[Assignment]:
        """The open ones, in their order: those who have no reading yet and are reserved for this site (for nobody)."""
        given, found = self.open, list[Assignment]()
        if given is None or self.standing != "running" or self.stale:
            return found
        why = [self._why(given, arm) for arm in range(len(given.n))]
        names, harm, reserved, gone = self.problem.names, self.harm, self.reserved, self.gone
        dose = [it.said(x) for it, x in zip(self.problem.arms, given.dose, strict=True)]
        while given.next < given.first + given.size and harm[given.next] == harm[given.next]:
            given.next += 1
        arms = ((s, given.arms[s - given.first]) for s in range(given.next, given.first + given.size))
        for subjects in (arms, given.later.items()):
            for subject, arm in subjects:
                if limit is not None and len(found) >= limit:
                    return found
                if harm[subject] != harm[subject] and subject not in gone and reserved.get(subject) == site:
                    found.append(Assignment(f"{self.tag}-{subject}", subject, names[arm], dose[arm], why[arm]))
        return found

    def awaiting(self) -> list[Assignment]:
        """Those whose harm was told and whose effect was not yet."""
        found = []
        for given in self.cohorts:
            for subject, arm in given.subjects() if given.left else ():
                if self.harm[subject] == self.harm[subject] and not self.complete(subject):
                    dose = self.problem.arms[arm].said(self.other.get(subject, given.dose[arm]))
                    id, name = self.identify(subject), self.problem.names[arm]
                    found.append(Assignment(id, subject, name, dose, "its effect is due"))
        return found

    def _why(self, given: Given, arm: int) -> str:
        it, most = self.problem.arms[arm], given.certified[arm]
        if given.dose[arm] <= it.start or most is None:
            return f"cohort {given.number}: the start dose, known to be safe"
        return f"cohort {given.number}: certified up to {it.label(most)} by the readings before it"

    def _asked(self, state: Any, given: Any = None) -> Any:
        cohort = len(self.cohorts) + 1 if given is None else given.number
        draws = np.random.PCG64(np.random.SeedSequence([self.seed, cohort, 1])).random_raw(self.design.draws)
        asked = self.design.ask(state, (draws >> np.uint64(11)).astype(float)[None] * 2.0**-53)
        return Asked(asked.dose[0].tolist(), asked.n[0].tolist(), stakes_of(self.design, state, asked))

    # What somebody wants to add
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

    def check_told(self, data: Mapping[str, Any], confirmed: bool = False) -> dict[str, Any] | None:
        """The payload to add; None where exactly this was told before."""
        self.check_open()
        subject = self.subject(data.get("id"))
        new, old = self.readings_in(subject, data), self.reading(subject)
        id, given = self.identify(subject), self.find(subject)
        if subject in self.gone:
            raise SurefootError(f"{id} was voided: its place is not open to readings any more")
        if not new.keys() & {"effect", "harm"}:
            raise SurefootError(f"{id}: nothing to tell; give its harm, its effect, or both")
        if "harm" not in new and "harm" not in old:
            raise SurefootError(
                f"{id}: harm is missing; tell it with the effect or before it: no reading counts without"
            )
        for key, value in new.items():
            was = old.get(key, given.dose[given.arm(subject)] if key == "dose" and "harm" in old else value)
            if was != value:
                raise SurefootError(
                    f"{id}: {key} was told as {self.as_told(subject, key, was)} before; "
                    f"got {self.as_told(subject, key, value)}: if that was wrong, use correct"
                )
        fresh = {key: value for key, value in new.items() if key not in old and (key != "dose" or "harm" not in old)}
        if not confirmed:
            self.check_plausible(id, fresh)
        return {"id": subject, **fresh} if fresh else None

    def check_plausible(self, id: str, data: Mapping[str, Any]) -> None:
        if not self.plausible(data):
            said = ", ".join(f"{k} from {low:g} to {high:g}" for k, (low, high) in self.setup["plausible"].items())
            raise SurefootError(
                f"{id}: got {', '.join(f'{k} {x:g}' for k, x in data.items())}; this study expects {said}: "
                f"if it is true all the same, confirm it with a reason"
            )

    def check_corrected(self, data: Mapping[str, Any], confirmed: bool = False) -> dict[str, Any]:
        subject = self.subject(data.get("id"))
        id, given = self.identify(subject), self.find(subject)
        if subject in self.gone:
            raise SurefootError(f"{id} was voided: there is no reading to correct")
        new, old = self.readings_in(subject, data), self.reading(subject)
        if not old:
            raise SurefootError(f"{id} has no reading yet: use tell")
        for key in new:
            if key != "dose" and key not in old:
                raise SurefootError(f"{id}: its {key} has not been told yet: use tell")
        old.setdefault("dose", given.dose[given.arm(subject)])
        changed = {key: value for key, value in new.items() if old[key] != value}
        if not changed:
            raise SurefootError(f"{id}: nothing to correct; the readings are as given already")
        if not confirmed:
            self.check_plausible(id, changed)
        out = {"id": subject, **changed, "was": {key: old[key] for key in changed}}
        return out if self.plausible(changed) else out | {"confirmed": True}

    def check_voided(self, data: Mapping[str, Any]) -> dict[str, Any]:
        self.check_open()
        subject = self.subject(data.get("id"))
        id = self.identify(subject)
        if subject in self.gone:
            raise SurefootError(f"{id} was voided before")
        if self.reading(subject):
            raise SurefootError(f"{id} has a reading: it cannot be voided; if the reading is wrong, use correct")
        if self.find(subject).closed:
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
        if "open" not in self.gone.values():
            raise SurefootError("nobody has dropped out since the last decision: leave out what a void counts as")
        if not isinstance(voids, Mapping) or set(voids) != {"effect", "harm"}:
            raise SurefootError(f"voids must give an effect and a harm; got {voids!r}")
        return {"voids": {key: self.check_reading(key, voids[key]) for key in ("effect", "harm")}}

    def check_reading(self, key: str, value: Any) -> float:
        return number(key, value) if key == "dose" else self.problem.noises[key == "harm"].reading(key, value)

    def readings_in(self, subject: int, data: Mapping[str, Any]) -> dict[str, float]:
        """What somebody tells of a subject, as the journal has it: levels by their places."""
        given = {k: data[k] for k in ("effect", "harm", "dose") if data.get(k) is not None}
        if "dose" in given:
            given["dose"] = self.problem.arms[self.find(subject).arm(subject)].place(given["dose"])
        return {k: self.check_reading(k, x) for k, x in given.items()}

    def as_told(self, subject: int, key: str, value: float) -> str:
        said = self.problem.arms[self.find(subject).arm(subject)].said(value) if key == "dose" else value
        return said if isinstance(said, str) else f"{said:.12g}"

    def reading(self, subject: int) -> dict[str, float]:
        """What was told of a subject."""
        found = {k: x for k, x in (("effect", self.effect[subject]), ("harm", self.harm[subject])) if x == x}
        return found | ({"dose": self.other[subject]} if subject in self.other else {})

    # What follows
    def follow(self) -> Follow | None:
        """The event that the present view calls for, if any."""
        due = self.due()
        return self._next_cohort() if due and due[0] == "opened" else due

    def due(self) -> Follow | None:
        """The same, but for the content of a cohort that is to be opened, which is for the policy to say."""
        if self.stopped or self.paused or self.trouble:
            return None
        for alarm in self.watches.alarms():
            if (alarm.watch, alarm.arm, alarm.reading) not in self.fired:
                kind = "paused" if self.setup["watch"]["do"] == "pause" else "warned"
                return kind, {"by": "watch", **alarm._asdict()}, alarm.message
        if self.ended:
            return self._ending() if self.concluded is None else None
        if self.open:
            return ("closed", {}, "the corrected evidence leads to another cohort") if self.stale else None
        return "opened", {}, None

    def _ending(self) -> Follow:
        s = self.state
        winner = int(s.winner[0])
        data: dict[str, Any] = {
            "ending": ENDINGS[int(s.ending[0])],
            "winner": winner if winner >= 0 else None,
            "standing": [STANDINGS[int(k)] for k in s.standing[0]],
            "out": [self.out.get(arm) for arm in range(len(self.problem.arms))],
            "safe": certified(self.design, s),
        }
        if self.refuted_starts and winner >= 0:
            data |= {"winner": None, "withheld": f"harm at the start dose of {', '.join(self.refuted_starts)}"}
        if no := self.unfounded(data):
            return "paused", {"by": "checker", "ending": data}, f"the design concludes what the checker does not: {no}"
        return "ended", data, None

    def _next_cohort(self) -> Follow:
        number, asked = len(self.cohorts) + 1, self._asked(self.state)
        size = sum(asked.n)
        if size > MOST:
            why = f"cohort {number} would hold {size:,} assignments: does sigma have the units of the readings?"
            return "paused", {"by": "size"}, why
        if no := self.refusal(*asked):
            why = f"the design certifies what the checker does not: {no}"
            return "paused", {"by": "checker", "asked": [asked.dose, asked.n]}, why
        most = [self.theorem.certified(arm) for arm in range(len(asked.n))]
        data = asked._asdict() | {"certified": [x if math.isfinite(x) else None for x in most]}
        return "opened", data | {"safe": certified(self.design, self.state)}, None


class Asked(NamedTuple):
    dose: list[float]
    n: list[int]
    stakes: list[Any]


NOTHING = (0, 0.0, 0.0)


def _told(dose: list[float], stakes: Any, came: Sequence[tuple[int, float, float]]) -> tuple[Cohort, Outcome]:
    n, effect, harm = (np.array([x]) for x in zip(*came, strict=True))
    return Cohort(np.array([dose]), n, stakes), Outcome(n, effect.astype(float), harm.astype(float))


def certified(design: Design, state: Any) -> list[float]:
    """The largest dose of every arm that may be given, as the design has it."""
    safe = design.evidence.certified(state) if isinstance(design, Composed) else state.safe
    return [float(x) for x in safe[0]]


def stakes_of(design: Design, state: Any, asked: Cohort) -> list[Any]:
    """What is published of an arm: its stakes, or for the paper's designs how many pulls its stage has in all, and the
    number of its estimate. None where nothing is staked."""
    if isinstance(design, Composed):
        rows = asked.stakes[0].tolist() if asked.stakes is not None else [[]] * asked.n.shape[1]
        return [[x if x == x else None for x in row] if any(x == x for x in row) else None for row in rows]
    want = state.want[0]
    if hasattr(state, "t"):  # Algorithm 2 counts the estimates of all arms, in arm order
        number = int(state.t[0]) - int((want > 0).sum()) + np.cumsum(want > 0)
    else:
        number = np.full(want.shape, int(state.rounds[0]) + 1)
    return [[int(w), int(k)] if w else None for w, k in zip(want, number, strict=True)]


def published(design: Any, problem: Problem, stakes: Sequence[Any]) -> Any:
    """Stakes as an array again."""
    none = [None] * len(design.evidence.stakes(problem))
    return np.array([[row or none for row in stakes]], dtype=float)


def theorem_of(design: Design) -> str:
    """The name and number of the theorem that a design rests on."""
    return design.evidence.theorem if isinstance(design, Composed) else f"{design.name}/1"


def digest_of(design: Design) -> str:
    """Of the text of the module that holds the evidence, and of those that its bets come from."""
    return _digest((type(design.evidence) if isinstance(design, Composed) else type(design)).__module__)


@cache
def _digest(module: str) -> str:
    package = __name__.split(".")[0]
    held = {str(getattr(x, "__module__", "")) for x in vars(importlib.import_module(module)).values()}
    bets = (f"{package}.bounds", f"{package}.noise", f"{package}.designs.l")  # of designs: ladder, levels_*, linear_*
    names = [module, *sorted(name for name in held - {module} if name.startswith(bets))]
    texts = [inspect.getsource(importlib.import_module(name)) for name in names]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def default(shape: str) -> str:
    """The design of a live study where none is asked for."""
    return next(name for name in (f"surefoot-{shape}", f"safebai-{shape}") if theorem_of(make(name)) in THEOREMS)


def plain(problem: Problem) -> dict[str, Any]:
    """The problem for JSON, which has no infinity: an arm without a largest dose has no `max`."""
    data = problem.to_dict()
    data["arms"] = [{k: v for k, v in arm.items() if v != math.inf} for arm in data["arms"]]
    return data


def setup(problem: Problem, design: Design, seed: int, **more: Any) -> dict[str, Any]:
    """The payload of the first event."""
    if theorem_of(design) not in THEOREMS or not design.guarantee:
        fit = [name for name, kind in DESIGNS.items()
               if kind.shape == problem.shape and theorem_of(make(name)) in THEOREMS]  # fmt: skip
        raise SurefootError(
            f"{design.name} as set has no theorem that certifies its doses, so it is for simulation only; "
            f"for a live study of this shape use {' or '.join(fit)}"
        )
    effect, harm = (noise.worst for noise in problem.noises)
    return {
        "problem": plain(problem),
        "design": design.name,
        "options": design.options,
        "theorem": {"name": theorem_of(design), "digest": digest_of(design)},
        "seed": seed,
        "voids": "worst" if effect and harm else "pause",
        "worst": [effect[0], harm[1]] if effect and harm else None,
        **more,
    }


__all__ = ["Assignment", "Broken", "View"]
