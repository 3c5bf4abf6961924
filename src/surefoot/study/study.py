"""A live study: ask, tell, and a certificate at the end, on a journal that loses nothing."""

from __future__ import annotations

import csv
import getpass
import json
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from ..designs import Design, make
from ..designs.base import STANDINGS, Verdict
from ..problem import Problem, SurefootError, choice, number
from ..scenario import Scenario
from . import guard
from .fold import Assignment, View, no_collecting, setup
from .journal import Event, Journal, broken_link

COLUMNS = ("id", "effect", "harm", "dose", "key")  # of a table of readings; dose and key may be left out


class Study:
    """One live run. Make it with `Study.create` or `Study.open`; any number of processes may hold the same one.

    Every command reads what is new in the journal, checks, and adds its events in one transaction: when it returns,
    they are on disk; when it raises, nothing was changed.
    """

    def __init__(self, journal: Journal, name: str, actor: str):
        self.journal, self.name, self.actor = journal, name, actor
        self._view = View()

    @classmethod
    def create(
        cls,
        url: str | Path,
        name: str,
        problem: Problem,
        design: str | Design | None = None,
        *,
        actor: str | None = None,
        seed: int | None = None,
        watch_level: float = 0.01,
        watch: Literal["pause", "warn"] = "pause",
    ) -> Study:
        """A new study in a database (`sqlite:///trial.db`, `postgresql+psycopg://..`, or the path of a SQLite file).

        The seed drives the order of assignments; it is drawn and recorded where none is given. `watch`: what an
        assumption watch does when it fires; all of them together do so wrongly with probability at most `watch_level`.
        """
        name = _text("a study's name", name, 200)
        chosen = design if isinstance(design, Design) else make(design or guard.default(problem.shape))
        choice("watch", watch, ("pause", "warn"))
        if not 0 < number("watch_level", watch_level) < 1:
            raise SurefootError(f"watch_level must be between 0 and 1, both excluded; got {watch_level!r}")
        if seed is None:
            seed = secrets.randbits(63)
        elif isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise SurefootError(f"seed must be a whole number from 0 to 2^64 - 1; got {seed!r}")
        first = setup(problem, chosen, seed, {"level": float(watch_level), "do": watch})
        chosen.start(problem)  # a shape that does not fit is refused here
        who = _actor(actor)
        study = cls(Journal(url, create=True), name, who)
        with study._writing() as add:
            if study._view.seq:
                raise SurefootError(f"there is a study {name!r} in {study.journal.shown} already: choose another name")
            add("created", first | {"versions": versions()})
            follows = study._view.follow()
            if follows is None or follows[0] != "opened":
                why = follows[2] if follows else f"its first cohort would exceed the budget of {problem.budget:,}"
                raise SurefootError(f"this study could not begin: {why}")
        return study

    @classmethod
    def open(cls, url: str | Path, name: str | None = None, *, actor: str | None = None) -> Study:
        """A study that is there. Its name may be left out where the database holds only one."""
        journal = Journal(url)
        names = journal.names()
        if not names:
            raise SurefootError(f"there is no study in {journal.shown}: create one first")
        if name is None and len(names) > 1:
            raise SurefootError(f"{journal.shown} holds several studies, name one: {', '.join(map(repr, names))}")
        return cls(journal, choice("study", name or names[0], names), _actor(actor))

    # Reading
    @property
    def view(self) -> View:
        """What the journal amounts to now."""
        if self._view.seq:
            self._take(self.journal.read(self.name, self._view.seq))
        else:
            with no_collecting():
                self._view = View.load(self.journal.load(self.name))
        return self._view

    def _take(self, events: Sequence[Event]) -> None:
        for event in events:
            self._view.apply(event)

    def ask(self, limit: int | None = None) -> list[Assignment]:
        """The open assignments (the next `limit` of them): whom to give what.

        They are the same until they are told, and the same for everybody: sites that work side by side share them out
        among themselves, by subject number for instance.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise SurefootError(f"limit must be a whole number of at least 1; got {limit!r}")
        return self.view.assignments(limit)

    def awaiting(self) -> list[Assignment]:
        """The assignments whose harm was told and whose effect is due."""
        return self.view.awaiting()

    def verdict(self) -> Verdict:
        view = self.view
        return view.design.verdict(view.state)

    def status(self) -> dict[str, Any]:
        """Where the study stands, in plain numbers."""
        view = self.view
        verdict, given = view.design.verdict(view.state), view.open
        told = [guard.summed(c.readings()) if not c.closed else c.round.came for c in view.cohorts]
        arms = []
        for i, name in enumerate(view.problem.names):
            low, high = float(verdict.lower[0, i]), float(verdict.upper[0, i])
            arms.append(
                {
                    "arm": name,
                    "standing": STANDINGS[int(verdict.standing[0, i])],
                    "certified": float(verdict.safe[0, i]),
                    "lower": low if math.isfinite(low) else None,
                    "upper": high if math.isfinite(high) else None,
                    "pulls": sum(came.n for by in told for (arm, _), came in by.items() if arm == i),
                    "open": sum(not given.read(p) for p in range(*given.offset[i : i + 2])) if given else 0,
                    "dose": given.dose[i] if given and given.n[i] else None,
                    "why": verdict.reason(i),
                }
            )
        return {
            "study": self.name,
            "standing": view.standing,
            "reasons": [event.reason for event in view.paused] if view.standing == "paused" else [],
            "design": view.design.name,
            "ending": verdict.endings()[0],
            "winner": view.problem.names[int(verdict.winner[0])] if int(verdict.winner[0]) >= 0 else None,
            "cohort": len(view.cohorts),
            "readings": sum(arm["pulls"] for arm in arms),
            "open": len(view.assignments()),
            "awaiting": len(view.awaiting()),
            "arms": arms,
            "head": {"seq": view.seq, "hash": view.hash},
        }

    def log(self) -> list[Event]:
        return list(self.journal.read(self.name))

    # Writing
    def tell(self, id: str, effect: Any = None, harm: Any = None, dose: Any = None, *, key: str | None = None) -> None:
        """What came of an assignment: both readings, or the harm now and the effect later; and the dose given, where it
        differs. A request with a `key` can be sent again: it counts once."""
        row = {"id": id, "effect": effect, "harm": harm, "dose": dose, "key": key}
        with self._writing() as add:
            self._tell(add, row)

    def tell_many(self, rows: str | Path | Iterable[Mapping[str, Any]]) -> int:
        """Readings from a CSV file, a table of rows (mappings) or a data frame: all of them or, if one is wrong, none.

        Columns: id, effect, harm, and if wanted dose and key. Returns how many were new.
        """
        table = list(_table(rows))
        wrong: list[str] = []
        new = 0
        with self._writing() as add:
            for line, row in table:
                try:
                    new += self._tell(add, row)
                except SurefootError as error:
                    wrong.append(f"{line}: {error}")
            if wrong:
                raise SurefootError("nothing was written; correct and send it again:\n" + "\n".join(wrong))
        return new

    def void(self, id: str, reason: str) -> None:
        """A subject dropped out before any reading."""
        with self._writing() as add:
            add("voided", self._view.check_voided({"id": id}), reason=_reason(reason))

    def correct(self, id: str, effect: Any = None, harm: Any = None, reason: str = "", *, dose: Any = None) -> None:
        """A reading was wrong. The old one stays in the journal; all decisions are taken anew with the right one."""
        with self._writing() as add:
            data = self._view.check_corrected({"id": id, "effect": effect, "harm": harm, "dose": dose})
            add("corrected", data, reason=_reason(reason))

    def pause(self, reason: str) -> None:
        """Give out no assignments until `resume`. Readings of subjects who were treated already can still be told."""
        with self._writing() as add:
            self._view.check_paused()
            add("paused", {"by": "actor"}, reason=_reason(reason))

    def resume(self, reason: str, *, voids: Mapping[str, float] | None = None) -> None:
        """Go on. Where subjects dropped out: others take their places, or they count as the reading `voids` (effect and
        harm)."""
        with self._writing() as add:
            add("resumed", self._view.check_resumed({"voids": voids}), reason=_reason(reason))

    def stop(self, reason: str) -> None:
        """End the study for good, whatever the design says."""
        with self._writing() as add:
            self._view.check_open()
            add("stopped", {}, reason=_reason(reason))

    def _tell(self, add: Any, row: Mapping[str, Any]) -> bool:
        """Add one reading; False where it was told before."""
        key = row.get("key")
        if key is not None:
            key = _text("a key", key, 200)
            if key in self._view.keys:
                self._same_request(key, row)
                return False
        data = self._view.check_told(row)
        if data is None:
            return False
        add("told", data, key=key)
        return True

    def _same_request(self, key: str, row: Mapping[str, Any]) -> None:
        told = json.loads(self._view.keys[key])
        now = {k: self._view.check_reading(k, row[k]) for k in ("effect", "harm", "dose") if row.get(k) is not None}
        if told["id"] != self._view.subject(row.get("id")) or any(told[k] != now.get(k) for k in told if k != "id"):
            raise SurefootError(f"key {key!r} was used for another request before: a new request needs a new key")

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        """One command: catch up with the journal, let the caller add events, add what follows from them."""
        with self._kept() as touched, self.journal.writing(self.name) as transaction:
            if self._view.seq:
                self._take(transaction.read(self._view.seq))
            else:
                with no_collecting():
                    self._view = View.load(transaction.load())

            def add(kind: str, data: Mapping[str, Any], reason: str | None = None, key: str | None = None) -> None:
                touched.append(True)
                self._view.apply(transaction.add(kind, data, self.actor, reason, key))

            yield add
            if transaction.added:
                while follows := self._view.follow():
                    kind, data, reason = follows
                    add(kind, data, reason)

    @contextmanager
    def _kept(self) -> Iterator[list[bool]]:
        """The view is only good if what was put into it is in the journal: else it is folded anew at the next use."""
        touched: list[bool] = []
        try:
            yield touched
        except BaseException:
            if touched:
                self._view = View()
            raise

    # Moving it
    def export(self) -> dict[str, Any]:
        """Everything, as JSON; `Study.load` makes the same study of it, hash for hash."""
        return {"surefoot": "study", "format": 1, "study": self.name, "events": [e._asdict() for e in self.log()]}

    @classmethod
    def load(cls, url: str | Path, data: Mapping[str, Any], *, actor: str | None = None) -> Study:
        """A study from what `export` gave, in another database."""
        try:
            events = [Event(**event) for event in data["events"]]
            fits = data["surefoot"] == "study" and events
        except (KeyError, TypeError):
            fits = False
        if not fits:
            raise SurefootError("this is not the export of a study: make one with `surefoot study export`")
        report = check(events)
        if not report["ok"]:
            raise SurefootError(f"the export does not hold, so nothing was written: {report['message']}")
        journal = Journal(url, create=True)
        with journal.writing(events[0].study) as transaction:
            if transaction.seq:
                raise SurefootError(f"there is a study {events[0].study!r} in {journal.shown} already")
            for event in events:
                transaction.copy(event)
        return cls(journal, events[0].study, _actor(actor))

    def readings(self) -> list[dict[str, Any]]:
        """One row a subject: what was assigned, given and read."""
        view = self.view
        rows = []
        for given in view.cohorts:
            for subject, place in given.subjects():
                arm = given.arm(place)
                row: dict[str, Any] = {"id": view.identify(subject), "subject": subject, "cohort": given.number}
                row |= {"arm": view.problem.names[arm], "assigned": given.dose[arm]}
                holds = given.holds(place, subject)
                told = view.reading(given, place) if holds else {}
                status = "told" if {"effect", "harm"} <= told.keys() else "effect due" if told else "open"
                if not holds:
                    status = "void"
                elif status == "open" and (given.closed or view.standing != "running"):
                    status = "withdrawn"
                row |= {"dose": told.get("dose", given.dose[arm]) if told else None}
                rows.append(row | {"effect": told.get("effect"), "harm": told.get("harm"), "status": status})
        return rows

    # What is worked out from it
    def certificate(self) -> Any:
        from .certificate import Certificate

        return Certificate.of(self.view)

    def verify(self, head: str | None = None, certificate: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Check the chain, the fold and (where given) a certificate anew. See `check`."""
        return check(self.log(), head, certificate)

    def preview(self, **grids: Sequence[float]) -> list[dict[str, Any]]:
        from .ahead import preview

        return preview(self.view, **grids)

    def forecast(
        self, scenarios: Scenario | Sequence[Scenario], trials: int = 1000, seed: int = 0
    ) -> list[dict[str, Any]]:
        from .ahead import forecast

        return forecast(self.view, [scenarios] if isinstance(scenarios, Scenario) else scenarios, trials, seed)


def check(
    events: Sequence[Event], head: str | None = None, certificate: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Whether the events hold: each follows from the one before by hash, may follow by what was known then, and every
    cohort is what the design asked for and the guard let pass. `head`: the last hash, from outside of the database; a
    certificate from outside holds one too.
    """
    report: dict[str, Any] = {"ok": False, "events": len(events), "head": events[-1].hash if events else None}
    report |= {"anchored": False, "event": None}
    broken = broken_link(events)
    view, seen = View(), 0
    until = certificate.get("head", {}).get("seq") if certificate else None
    for event in events[: broken[0] - 1 if broken else len(events)]:
        try:
            _admit(view, event)
            view.apply(event)
        except (SurefootError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            broken = event.seq, f"event {event.seq} ({event.kind}) does not follow from those before it: {error}"
            break
        seen = event.seq
        if certificate and seen == until:
            from .certificate import Certificate

            if differs := Certificate.of(view).differs(certificate):
                return report | {"message": f"the certificate does not follow from the journal: {differs} differs"}
    if broken or not events:
        at, message = broken or (None, "there are no events")
        return report | {"event": at, "message": message}
    if certificate and (until is None or until > len(events)):
        return report | {"message": f"the certificate is about event {until}; the journal ends at {len(events)}"}
    if head is not None and head != report["head"]:
        at = next((event.seq for event in events if event.hash == head), None)
        if at is None:
            message = (
                "the chain holds in itself, but it is not the one of this head: an event was changed or is missing"
            )
        else:
            message = f"the head is event {at}; {len(events) - at} events follow that it does not cover"
        return report | {"event": at and at + 1, "message": message}
    message, known = f"all {len(events):,} events hold", len(events) if head else until or 0
    message += ", and the certificate follows from them" if certificate else ""
    if known < len(events):
        message += f"; the tail after event {known:,} is unanchored: without its hash from elsewhere, a cut goes unseen"
    return report | {"ok": True, "anchored": known == len(events), "message": message}


def _admit(view: View, event: Event) -> None:
    """Raise where an event may not come next."""
    data, kind = event.data, event.kind
    if (kind == "created") != (view.seq == 0):
        raise SurefootError("a study begins with its creation, once")
    if kind in ("told", "corrected", "voided"):
        if not isinstance(data["id"], int) or not 1 <= data["id"] <= view.subjects:
            raise SurefootError(f"subject {data['id']!r} has not been assigned")
        check_ = {"told": view.check_told, "corrected": view.check_corrected, "voided": view.check_voided}[kind]
        if check_({**data, "id": view.identify(data["id"])}) != data:
            raise SurefootError("it was told before, or something else was")
    elif kind == "resumed":
        view.check_resumed(data)
    elif kind in ("opened", "closed") or data.get("by") in ("watch", "guard", "size"):
        follows = view.follow()
        if follows is None or follows[0] != kind or not _close(follows[1], data):
            came = "nothing" if follows is None else f"{follows[0]} {follows[1]}"
            raise SurefootError(f"what follows by the design and the guard is {came}")
    elif kind == "paused":
        view.check_paused()
    elif kind == "stopped":
        view.check_open()
    elif kind != "created":
        raise SurefootError(f"the kind {kind!r} is not known")


def _close(a: Any, b: Any) -> bool:
    """Equal but for rounding: another CPU or NumPy may differ in the last digits, and not beyond 1e-9."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_close(a[k], b[k]) for k in a if k != "message")
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-9 * max(1e-3, abs(a), abs(b)) or a == b
    return bool(a == b)


def versions() -> dict[str, str]:
    import platform

    import numpy

    from .. import __version__

    return {"surefoot": __version__, "numpy": numpy.__version__, "python": platform.python_version()}


def _actor(actor: str | None) -> str:
    if actor is None:
        try:
            actor = getpass.getuser()
        except (OSError, KeyError):
            actor = "unknown"
    return _text("actor", actor, 200)


def _reason(reason: Any) -> str:
    return _text("a reason", reason, 10_000)


def _text(what: str, value: Any, most: int) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > most or not value.isprintable():
        shown = repr(value) if not isinstance(value, str) or len(value) < 100 else f"{len(value):,} characters"
        raise SurefootError(f"{what} must be a line of text of 1 to {most:,} characters; got {shown}")
    return value.strip()


def _table(rows: str | Path | Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows with a name each for error messages."""
    if isinstance(rows, (str, Path)):
        yield from _csv(Path(rows))
        return
    if hasattr(rows, "to_dict"):  # a data frame
        rows = rows.to_dict("records")
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise SurefootError(f"tell_many takes the path of a CSV file or a table of rows; got {rows!r}")
    table: list[Any] = list(rows)
    for k, row in enumerate(table, 1):
        if not isinstance(row, Mapping) or set(row) - set(COLUMNS):
            raise SurefootError(f"row {k} must be a mapping with the keys {', '.join(COLUMNS)}; got {row!r}")
    yield from ((f"row {k}", dict(row)) for k, row in enumerate(table, 1))


def _csv(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            head = [name.strip() for name in next(reader, [])]
            for what, names in (
                ("lacks the column", [n for n in COLUMNS[:3] if n not in head]),
                ("has a column that means nothing here:", [n for n in head if n not in COLUMNS]),
                ("has a column twice:", sorted({n for n in head if head.count(n) > 1})),
            ):
                if names:
                    raise SurefootError(
                        f"{path} {what} {', '.join(map(repr, names))}; columns are {', '.join(COLUMNS)}"
                    )
            for cells in reader:
                if not cells:
                    continue
                line = f"line {reader.line_num}"
                row: dict[str, Any] = dict(zip(head, (c.strip() or None for c in cells), strict=False))
                if len(cells) != len(head):
                    row = {"id": f"{len(cells)} cells instead of {len(head)}"}
                for name in ("effect", "harm", "dose"):
                    if row.get(name) is not None:
                        with suppress(ValueError):  # else it is told as it stands, and refused with its name
                            row[name] = float(row[name])
                yield line, row
    except OSError as error:
        raise SurefootError(f"cannot read {path}: {error.strerror or error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise SurefootError(f"{path} is not a CSV file: {error}") from error


__all__ = ["Study", "check"]
