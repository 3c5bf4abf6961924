"""A live study: ask, tell, and a certificate at the end, on a journal that loses nothing."""

from __future__ import annotations

import getpass
import json
import math
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..designs import Design, make
from ..designs.base import STANDINGS, Verdict
from ..problem import Problem, SurefootError, choice, number
from ..scenario import Scenario
from ..theory.resolvable import refuse
from . import cache
from .checker import Event, alarmed_by
from .fold import ROUNDING, Assignment, View, default, digest_of, no_collecting, setup
from .journal import Journal
from .text import distinct, line, reason, skeleton, table
from .text import file as named
from .verify import WRONG, check
from .watch import DIGEST


Seen = TypeVar("Seen")


class Unsound(SurefootError):
    """The journal does not hold."""


class Study:
    """One live run. Make it with `Study.create` or `Study.open`; any number of threads and processes may use it.

    Every command reads what is new in the journal, checks, and adds its events in one transaction: when it returns,
    they are on disk; when it raises, nothing was changed (or it says that this is unknown: then send it again, it will
    not double). `actor` says who does it; what is given here serves where a command has none.
    """

    def __init__(self, journal: Journal, name: str, actor: str | None = None):
        self.journal, self.name, self.actor = journal, name, _actor(actor)
        self._view, self._lock = View(), threading.RLock()
        self._kept = 0  # the event that the cache stands at
        self._passed: tuple[Any, Any] = (None, None)  # the open cohort and the evidence that it was last checked by

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
        plausible: Mapping[str, Sequence[float]] | None = None,
        lift: Literal["another", "anyone"] = "another",
    ) -> Study:
        """A new study in a database (`sqlite:///trial.db`, `postgresql+psycopg://..`, or the path of a SQLite file).

        The seed drives the order of assignments; it is drawn and recorded where none is given. `watch`: what an
        assumption watch does when it fires; all of them together do so wrongly with probability at most `watch_level`.
        `plausible`: the range of effect and of harm outside of which a reading must be confirmed. `lift`: who may lift
        a pause by a watch; by default another actor than the one whose reading fired it, where two are known.
        """
        name = line("a study's name", name)
        if not isinstance(problem, Problem):
            raise SurefootError(f"a study needs a Problem; got {problem!r}")
        distinct("the arms", [line("an arm's name", arm) for arm in problem.names])
        chosen = design if isinstance(design, Design) else make(design or default(problem.shape))
        choice("watch", watch, ("pause", "warn"))
        choice("lift", lift, ("another", "anyone"))
        if not 0 < number("watch_level", watch_level) < 1:
            raise SurefootError(f"watch_level must be between 0 and 1, both excluded; got {watch_level!r}")
        if seed is None:
            seed = secrets.randbits(63)
        elif isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise SurefootError(f"seed must be a whole number from 0 to 2^64 - 1; got {seed!r}")
        more = {
            "plausible": _ranges(plausible),
            "lift": lift,
            "watch": {"level": float(watch_level), "do": watch, "digest": DIGEST},
        }
        first = setup(problem, chosen, seed, **more)
        chosen.start(problem)  # a shape that does not fit is refused here
        refuse(problem)
        who = _actor(actor)
        study = cls(Journal(url, create=True), name, who)
        distinct("the studies", [name, *(other for other in study.journal.names() if other != name)])
        with study._writing() as add:
            if study._view.seq:
                raise SurefootError(f"there is a study {name!r} in {study.journal.shown} already: choose another name")
            add("created", first | {"versions": versions()})
            follows = study._view.follow()
            if follows is None or follows[0] != "opened":
                why = follows[2] if follows and follows[2] else f"its budget of {problem.budget:,} is too small"
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
        return cls(journal, choice("study", name or names[0], names), actor)

    # Reading
    @property
    def view(self) -> View:
        """What the journal amounts to now. Not for use by several threads at once: the methods below are."""
        with self._lock:
            self._catch_up(self.journal)
            self._remember()
            return self._view

    def look(self, at: Callable[[View], Seen]) -> Seen:
        """What a function sees in the view, while no other thread changes it. It must be quick, and change nothing."""
        with self._lock:
            return at(self.view)

    def _catch_up(self, source: Any) -> None:
        """Take in what is new; each event's seal is checked, and that it is the next."""
        of = (self.name,) if source is self.journal else ()
        try:
            with no_collecting():
                if not self._view.seq:
                    self._view = self._remembered(source, *of) or View()
                self._view.follow_up(source.each(*of, self._view.seq))
        except BaseException as error:
            self._view = View()
            if not isinstance(error, WRONG) or type(error) is SurefootError:
                raise
            raise Unsound(f"the journal does not hold: {error}; see verify") from error

    def _remembered(self, source: Any, *of: str) -> View | None:
        """From the cache, if the event that it stands at, the first and the one of the open cohort are in the journal
        with their hashes: what is handed out is what the journal says."""
        kept = self.journal.kept(self.name)
        at = cache.key(kept) if kept else None
        first = source.event(*of, 1) if at else None
        if not kept or not at or not first:
            return None
        last, view = source.event(*of, at[0]), cache.load(kept, first)
        if not view or not last or (view.seq, view.hash, last.hash) != (*at, at[1]) or view.created != first:
            return None
        given = view.open
        opened = source.event(*of, given.seq) if given else None
        for event in filter(None, (first, last, opened)):
            if event.seal() != event.hash:
                return None
        if given and (not opened or [opened.data[k] for k in ("dose", "n")] != [given.dose, given.n]):
            return None
        self._kept = view.seq
        return view

    def _remember(self) -> None:
        """Keep a cache, where many events have come since the last."""
        if self._view.seq - self._kept >= cache.STEP:
            self._kept = self._view.seq
            self.journal.keep(self.name, cache.dump(self._view))

    def ask(self, limit: int | None = None, *, site: str | None = None) -> list[Assignment]:
        """The open assignments (the next `limit` of them): whom to give what.

        They are the same until they are told, and the same for everybody. Sites that work side by side reserve theirs
        with `assign`; here are those that are reserved for `site`, or for nobody.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise SurefootError(f"limit must be a whole number of at least 1; got {limit!r}")
        with self._lock:
            self._sound(self.view)
            return self._view.assignments(limit, site)

    def awaiting(self, *, site: str | None = None) -> list[Assignment]:
        """The assignments whose harm was told and whose effect is due; of one site alone, where it is given."""
        with self._lock:
            view = self.view
            return [a for a in view.awaiting() if site is None or view.reserved.get(a.subject) == site]

    def verdict(self) -> Verdict:
        with self._lock:
            view = self.view
            return view.design.verdict(view.state)

    def status(self) -> dict[str, Any]:
        """Where the study stands, in plain numbers. `trouble`: why nothing may be asked and told any more. Where the
        journal does not hold, `holds` is false, and this is what there was before the first event that does not."""
        with self._lock:
            try:
                return self._status(self.view)
            except Unsound:
                events = self.log()
                report = check(events)
                before = View().follow_up(events[: (report["event"] or 1) - 1])
                if not before.seq:
                    raise
                said = f"{report['message']}; shown is what was known before event {report['event']:,}"
                return self._status(before) | {"holds": False, "trouble": said}

    def _status(self, view: View) -> dict[str, Any]:
        verdict, given = view.design.verdict(view.state), view.open
        told = [c.came if c.closed else view.sums(c) for c in view.cohorts]
        arms = []
        for i, (name, it) in enumerate(zip(view.problem.names, view.problem.arms, strict=True)):
            low, high = float(verdict.lower[0, i]), float(verdict.upper[0, i])
            arms.append(
                {
                    "arm": name,
                    "standing": STANDINGS[int(verdict.standing[0, i])],
                    "certified": it.said(float(verdict.safe[0, i])),
                    "lower": low if math.isfinite(low) else None,
                    "upper": high if math.isfinite(high) else None,
                    "pulls": sum(came[0] for by in told for (arm, _), came in by.items() if arm == i),
                    "open": sum(not view.complete(s) for s, a in given.subjects() if a == i) if given else 0,
                    "dose": it.said(given.dose[i]) if given and given.n[i] else None,
                    "why": verdict.reason(i),
                }
            )
        end = view.concluded
        return {
            "study": self.name,
            "standing": view.standing,
            "holds": True,
            "trouble": self._doubt(view),
            "reasons": [event.reason for event in view.paused] if view.standing == "paused" else [],
            "design": view.design.name,
            "theorem": view.setup["theorem"]["name"],
            "ending": end["ending"] if end else "running",
            "winner": view.problem.names[end["winner"]] if end and end["winner"] is not None else None,
            "cohort": len(view.cohorts),
            "readings": sum(arm["pulls"] for arm in arms),
            "open": len(view.assignments()) + len(view.reserved.keys() & _waiting(view)),
            "awaiting": len(view.awaiting()),
            "recommendation": view.design.recommendation(view.state).words(view.problem),
            "arms": arms,
            "head": {"seq": view.seq, "hash": view.hash},
        }

    def log(self) -> list[Event]:
        return list(self.journal.read(self.name))

    # Writing
    def tell(
        self, id: str, effect: Any = None, harm: Any = None, dose: Any = None, *, key: str | None = None,
        confirm: str | None = None, actor: str | None = None,
    ) -> None:  # fmt: skip
        """What came of an assignment: both readings, or the harm now and the effect later; and the dose given, where it
        differs. A request with a `key` can be sent again: it counts once. `confirm`: why a reading outside of the
        plausible range is true all the same."""
        row = {"id": id, "effect": effect, "harm": harm, "dose": dose, "key": key, "confirm": confirm}
        with self._writing(actor) as add:
            self._tell(add, row)

    def tell_many(self, rows: str | Path | Iterable[Mapping[str, Any]], *, actor: str | None = None) -> int:
        """Readings from a CSV file, a table of rows (mappings) or a data frame: all of them or, if one is wrong, none.

        Columns: id, effect, harm, and if wanted dose, key and confirm. Returns how many were new.
        """
        found = list(table(rows))
        wrong: list[str] = []
        new = 0
        with self._writing(actor) as add:
            for name, row in found:
                try:
                    new += self._tell(add, row)
                except SurefootError as error:
                    wrong.append(f"{name}: {error}")
            if wrong:
                raise SurefootError("nothing was written; correct and send it again:\n" + "\n".join(wrong))
        return new

    def assign(self, count: int, site: str, *, actor: str | None = None) -> list[Assignment]:
        """Reserve the next assignments for a site: nobody else is given them. Fewer come where fewer are open."""
        site = line("a site", site)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise SurefootError(f"count must be a whole number of at least 1; got {count!r}")
        with self._writing(actor) as add:
            distinct("the sites", {site, *self._view.reserved.values()})
            found = self._view.assignments(count)
            if found:
                add("assigned", {"ids": [a.subject for a in found], "for": site})
        return found

    def desk(self, site: str, *, actor: str | None = None) -> Desk:
        """What somebody who treats subjects and enters data sees."""
        return Desk(self, line("a site", site), self._who(actor))

    def give_back(self, ids: Sequence[str], why: str, *, actor: str | None = None) -> None:
        """Assignments that were reserved and are not used: others may have them."""
        with self._writing(actor) as add:
            view, subjects = self._view, sorted({self._view.subject(id) for id in _list(ids)})
            for subject in subjects:
                if subject not in view.reserved or view.reading(subject) or subject in view.gone:
                    raise SurefootError(f"{view.identify(subject)} is not reserved, or was used: it cannot be returned")
            if subjects:
                add("returned", {"ids": subjects}, reason(why))

    def void(self, id: str, reason: str, *, actor: str | None = None) -> None:
        """A subject dropped out before any reading."""
        with self._writing(actor) as add:
            add("voided", self._view.check_voided({"id": id}), _reason(reason))

    def correct(
        self, id: str, effect: Any = None, harm: Any = None, reason: str = "", *, dose: Any = None,
        confirm: bool = False, actor: str | None = None,
    ) -> None:  # fmt: skip
        """A reading was wrong. The old one stays in the journal; all decisions are taken anew with the right one.
        `confirm`: it is true although it is outside of the plausible range."""
        with self._writing(actor) as add:
            data = self._view.check_corrected({"id": id, "effect": effect, "harm": harm, "dose": dose}, bool(confirm))
            add("corrected", data, _reason(reason))

    def pause(self, reason: str, *, actor: str | None = None) -> None:
        """Give out no assignments until `resume`. Readings of subjects who were treated already can still be told."""
        with self._writing(actor) as add:
            self._view.check_paused()
            add("paused", {"by": "actor"}, _reason(reason))

    def resume(self, reason: str, *, voids: Mapping[str, float] | None = None, actor: str | None = None) -> None:
        """Go on. Where subjects dropped out: others take their places, or they count as the reading `voids` (effect and
        harm)."""
        with self._writing(actor) as add:
            data = self._view.check_resumed({"voids": voids})
            who = self._who(actor)
            if self._view.setup["lift"] == "another" and alarmed_by(self._view.paused, who):
                others = sorted(self._now.actors() - {who})
                if others:
                    raise SurefootError(
                        f"a reading that {who} told made a watch pause the study: another actor lifts that "
                        f"({', '.join(others)})"
                    )
            add("resumed", data, _reason(reason))

    def stop(self, reason: str, *, actor: str | None = None) -> None:
        """End the study for good, whatever the design says."""
        with self._writing(actor) as add:
            self._view.check_open()
            add("stopped", {}, _reason(reason))

    def adopt(self, reason: str, *, actor: str | None = None) -> None:
        """Go on with a package whose evidence is the same theorem and differs in rounding alone."""
        why = _reason(reason)
        with self._writing(actor, doubtful=True) as add:
            view = self._view
            if self._doubt(view) is None:
                raise SurefootError("the evidence is what it was: there is nothing to adopt")
            trial = View(slip=ROUNDING)
            for event in self._now.read():
                trial.take(event)
            if trial.trouble:
                raise SurefootError(f"this cannot be adopted, it is not rounding: {trial.trouble}")
            add("adopted", {"digest": digest_of(view.design), "versions": versions()}, why)

    def _tell(self, add: Callable[..., None], row: Mapping[str, Any]) -> bool:
        """Add one reading; False where it was told before."""
        key, confirm = row.get("key"), row.get("confirm")
        if key is not None:
            key = line("a key", key, 200)
            if key in self._view.keys:
                self._same_request(key, row)
                return False
        confirm = None if confirm is None else reason(confirm)
        data = self._view.check_told(row, confirm is not None)
        if data is None:
            return False
        add("told", data, confirm, key)
        return True

    def _same_request(self, key: str, row: Mapping[str, Any]) -> None:
        told = json.loads(self._view.keys[key])
        subject = self._view.subject(row.get("id"))
        now = self._view.readings_in(subject, row)
        if told["id"] != subject or any(told[k] != now.get(k) for k in told if k != "id"):
            raise SurefootError(f"key {key!r} was used for another request before: a new request needs a new key")

    def _who(self, actor: str | None) -> str:
        return self.actor if actor is None else _actor(actor)

    @contextmanager
    def _writing(self, actor: str | None = None, doubtful: bool = False) -> Iterator[Callable[..., None]]:
        """One command: catch up with the journal, let the caller add events, add what follows from them.

        The view is only good if what was put into it is in the journal: else it is folded anew at the next use.
        """
        who, touched = self._who(actor), False
        with self._lock:
            try:
                with self.journal.writing(self.name) as transaction:
                    self._now = transaction
                    self._catch_up(transaction)
                    if self._view.seq and not doubtful:
                        self._sound(self._view)

                    def add(
                        kind: str, data: Mapping[str, Any], reason: str | None = None, key: str | None = None
                    ) -> None:
                        nonlocal touched
                        touched = True
                        if (back := transaction.clock_back()) > 0:
                            self._view.take(transaction.add("clock", {"back": back}, who))
                        self._view.take(transaction.add(kind, data, who, reason, key))

                    yield add
                    if transaction.added:
                        while follows := self._view.follow():
                            add(*follows)
                self._remember()
            except BaseException:
                if touched:
                    self._view = View()
                raise

    def _sound(self, view: View) -> None:
        """Nothing is handed out or taken in on evidence that is not the one that was published."""
        if doubt := self._doubt(view):
            raise SurefootError(f"study {self.name!r} can only be looked at: {doubt}")

    def _doubt(self, view: View) -> str | None:
        if view.trouble:
            return f"{view.trouble}; go on with the version that it was begun with ({_begun(view)})"
        if view.digest != digest_of(view.design):
            return (
                f"the module that holds the evidence ({view.setup['theorem']['name']}) is not the one that it was "
                f"begun with ({_begun(view)}); all {len(view.cohorts):,} cohorts come out the same: "
                f"adopt it with a reason"
            )
        given = view.open
        if given and not view.stale and self._passed != (given, view.theorem):
            if no := view.refusal(given.dose, given.n, given.stakes):
                return f"event {given.seq} opened a cohort that its readings do not certify: {no}"
            self._passed = given, view.theorem
        return None

    # Moving it
    def export(self, *, actor: str | None = None) -> dict[str, Any]:
        """Everything, as JSON; `Study.load` makes the same study of it, hash for hash. That it was is an event."""
        if not self.journal.archive:
            with self._writing(actor, doubtful=True) as add:
                add("exported", {"versions": versions()})
        return {"surefoot": "study", "format": 2, "study": self.name, "events": [e._asdict() for e in self.log()]}

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
        study = cls(_copied(Journal(url, create=True), events), events[0].study, actor)
        with study._writing(doubtful=True) as add:
            add("imported", {"versions": versions()})
        return study

    def backup(self, file: str | Path) -> Path:
        """A SQLite file with this study as it is now; at any time, whoever is at work."""
        path = named(file)
        if path.exists():
            raise SurefootError(f"{path} is there already: a backup replaces nothing")
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)
        try:
            _copied(Journal(part, create=True), self.log()).engine.dispose()
            part.rename(path)
        except OSError as error:
            raise SurefootError(f"cannot write {path}: {error.strerror or error}") from error
        return path

    def readings(self) -> list[dict[str, Any]]:
        """One row a subject: what was assigned, given and read."""
        with self._lock:
            view, rows = self.view, []
            for given in view.cohorts:
                for subject, arm in given.subjects():
                    told = {} if subject in view.gone else view.reading(subject)
                    status = "told" if {"effect", "harm"} <= told.keys() else "effect due" if told else "open"
                    if subject in view.gone:
                        status = "void"
                    elif status == "open" and (given.closed or view.standing in ("ended", "stopped")):
                        status = "withdrawn"
                    row: dict[str, Any] = {"id": view.identify(subject), "subject": subject, "cohort": given.number}
                    it = view.problem.arms[arm]
                    row |= {"arm": it.name, "assigned": it.said(given.dose[arm])}
                    row |= {"dose": it.said(told.get("dose", given.dose[arm])) if told else None}
                    row |= {"effect": told.get("effect"), "harm": told.get("harm"), "status": status}
                    rows.append(row | {"site": view.reserved.get(subject)})
            return rows

    # What is worked out from it
    def certificate(self) -> Any:
        from .certificate import Certificate

        with self._lock:
            return Certificate.of(self.view)

    def verify(
        self, head: str | None = None, certificate: Any = None, checkpoint: Any = None, keys: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Check the chain, the fold and (where given) a certificate or a signed checkpoint anew. See `verify.check`."""
        with no_collecting():
            return check(self.log(), head, certificate, checkpoint, keys)

    def checkpoint(self, key: str | Path, *, actor: str | None = None) -> dict[str, Any]:
        """A small signed note of where the journal stands; whoever has it can tell whether it was changed before."""
        from .keys import Key, sign

        mine = Key.load(key)
        with self._writing(actor, doubtful=True) as add:
            add("checkpointed", {"key": mine.public})
            note = {"study": self.name, "events": self._view.seq, "head": self._view.hash}
        return sign(note, mine)

    def preview(self, **grids: Sequence[float]) -> list[dict[str, Any]]:
        from .ahead import preview

        with self._lock:
            return preview(self.view, **grids)

    def forecast(
        self, scenarios: Scenario | Sequence[Scenario], trials: int = 1000, seed: int = 0
    ) -> list[dict[str, Any]]:
        from .ahead import forecast

        with self._lock:
            return forecast(self.view, [scenarios] if isinstance(scenarios, Scenario) else scenarios, trials, seed)


class Desk:
    """For who treats subjects and enters data at one site: arm and dose of the subjects that are reserved for it.

    No bounds, no seed, no order of those to come: they would tell what comes next, and how it goes. It keeps them from
    being seen by chance; who can read the database can read them all.
    """

    def __init__(self, study: Study, site: str, actor: str):
        self.site, self.actor, self._study = site, actor, study

    def next(self, count: int = 1) -> list[dict[str, Any]]:
        """So many more subjects, reserved for this site."""
        return [_brief(a) for a in self._study.assign(count, self.site, actor=self.actor)]

    def open(self) -> list[dict[str, Any]]:
        """Those that are reserved for this site and have no reading yet."""
        return [_brief(a) for a in self._study.ask(site=self.site)]

    def awaiting(self) -> list[dict[str, Any]]:
        """Those of this site whose effect is due."""
        return [_brief(a) for a in self._study.awaiting(site=self.site)]

    def tell(self, id: str, effect: Any = None, harm: Any = None, dose: Any = None, **more: Any) -> None:
        self.check(id)
        self._study.tell(id, effect, harm, dose, actor=self.actor, **more)

    def void(self, id: str, reason: str) -> None:
        self.check(id)
        self._study.void(id, reason, actor=self.actor)

    def check(self, *ids: Any) -> None:
        """Whether these are reserved for this site; about others it says nothing."""
        wrong = self._study.look(lambda view: [id for id in ids if view.reserved.get(view.subject(id)) != self.site])
        if wrong:
            raise SurefootError(f"{wrong[0]} is not reserved for {self.site}")


def _brief(a: Assignment) -> dict[str, Any]:
    return {"id": a.id, "arm": a.arm, "dose": a.dose}


def _copied(journal: Journal, events: Sequence[Event]) -> Journal:
    with journal.writing(events[0].study) as transaction:
        if transaction.seq:
            raise SurefootError(f"there is a study {events[0].study!r} in {journal.shown} already")
        for event in events:
            transaction.copy(event)
    return journal


def _waiting(view: View) -> set[int]:
    given = view.open
    return {s for s, _ in given.subjects() if view.harm[s] != view.harm[s] and s not in view.gone} if given else set()


def _begun(view: View) -> str:
    return f"surefoot {view.setup['versions']['surefoot']}"


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
    return line("actor", actor)


_reason = reason  # methods have an argument of that name


def _ranges(plausible: Any) -> dict[str, list[float]] | None:
    if plausible is None:
        return None
    if not isinstance(plausible, Mapping) or not plausible:
        raise SurefootError(f"plausible must give a range for effect, harm or both; got {plausible!r}")
    found = {}
    for key, ends in plausible.items():
        choice("a plausible reading", key, ("effect", "harm"))
        if isinstance(ends, str) or not isinstance(ends, Sequence) or len(ends) != 2:
            raise SurefootError(f"the plausible range of {key} must be two numbers; got {ends!r}")
        found[key] = [number(f"an end of the plausible {key}", x) for x in ends]
        if found[key][0] >= found[key][1]:
            raise SurefootError(f"the plausible range of {key} must rise; got {ends!r}")
    return found


def _list(ids: Any) -> list[str]:
    if isinstance(ids, str) or not isinstance(ids, Sequence):
        raise SurefootError(f"ids must be a list of ids; got {ids!r}")
    return list(ids)


__all__ = ["Study", "check", "skeleton"]
