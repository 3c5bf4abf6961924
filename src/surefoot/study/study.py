"""A live study: ask, tell, and a certificate at the end, on a journal that loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from io import TextIOBase
from pathlib import Path
from typing import Any, Literal

from ..checks import html_table, line
from ..designs import Design, make
from ..designs.base import Verdict
from ..problem import Problem, SurefootError, choice, known_keys
from ..scenario import Scenario
from ..theory.resolvable import refuse
from . import requests
from .blocks import COLUMNS as BLOCK
from .checker import VERSION, Broken, Event, exported
from .desk import Desk
from .fold import ROUNDING, View
from .journal import Journal, copied
from .live import Brought, Live, Unsound, no_collecting, who_is
from .published import default, digest_of, setup, versions
from .status import Assignment, assignments, awaiting, check_running, readings, status
from .text import content_of, distinct, reason, table
from .text import file as named
from .verify import check
from .watch import DIGEST


class Study(Live):
    """One live run. Make it with `Study.create` or `Study.open`; any number of threads and processes may use it.

    Every command reads what is new in the journal, checks, and adds its events in one transaction: when it returns,
    they are on disk; when it raises, nothing was changed (or it says that this is unknown: then send it again, it will
    not double). `actor` says who does it; what is given here serves where a command has none.

    Examples
    --------
    >>> from surefoot import Study, case
    >>> problem, _ = case("paper-linear", 2)
    >>> study = Study.create("trial.db", "headache", problem, actor="site 1", seed=1)
    >>> first = study.ask()[0]
    >>> first.dose
    0.1
    >>> study.tell(first.id, effect=0.2, harm=0.1)
    >>> study
    <Study 'headache': running, 1 reading, surefoot-linear>
    """

    def __repr__(self) -> str:
        status = self.status()
        readings = f"{status['readings']:,} reading{'s' * (status['readings'] != 1)}"
        ending = "paused" if status["standing"] == "paused" else status["ending"]
        return f"<Study {self.name!r}: {ending}, {readings}, {self.view.design.label}>"

    def _repr_html_(self) -> str:
        found = self.status()
        upto = f" of {found['budget']:,}" if found["budget"] else ""
        over = found["standing"] in ("ended", "stopped")
        said = f"{found['ending' if over else 'standing']}, {found['readings']:,}{upto} readings, {found['design']}"
        lines = [f"<b>{escape(self.name)}</b>: {said}", *map(escape, found["reasons"])]
        lines.append(escape(f"{'at its end' if over else 'if it had to end now'}: {found['recommendation']}"))
        return "".join(f"<p>{x}</p>" for x in lines) + html_table({arm["arm"]: arm["why"] for arm in found["arms"]})

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
        blocks: bool = False,
        pipeline: int = 1,
    ) -> Study:
        """A new study in a database (`sqlite:///trial.db`, `postgresql+psycopg://..`, or the path of a SQLite file).

        The seed drives the order of assignments; it is drawn and recorded where none is given. `watch`: what an
        assumption watch does when it fires; all of them together do so wrongly with probability at most `watch_level`.
        `plausible`: ranges outside of which a reading must be confirmed, as in `{"harm": (0, 5)}`. `lift`: who may
        lift a pause by a watch; by default another actor than the one whose reading fired it, where two are known.
        `blocks`: all subjects of an arm in a cohort are told as one, by their number and sums. `pipeline`: so many
        cohorts may be under way at once, all but the last of them waiting for effects alone.
        """
        name = line("a study's name", name)
        if not isinstance(problem, Problem):
            raise SurefootError(f"a study needs a Problem; got {problem!r}")
        distinct("the arms", problem.names)
        chosen = design if isinstance(design, Design) else make(design or default(problem.shape))
        watches = {"level": watch_level, "do": watch, "digest": DIGEST}
        first = setup(problem, chosen, seed, watches, lift, plausible, bool(blocks), pipeline)
        chosen.start(problem)  # a shape that does not fit is refused here
        refuse(problem)
        who = who_is(actor)  # before there is a file
        study = cls(Journal(url, create=True), name, who)
        distinct("the studies", [name, *(other for other in study.journal.names() if other != name)])
        with study._writing() as add:
            if study._view.seq:
                raise SurefootError(
                    f"there is a study {name!r} in {study.journal.shown} already: go on with it by Study.open "
                    f"(`surefoot study ask`), or choose another name"
                )
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

    def ask(self, limit: int | None = None, *, site: str | None = None, blocks: bool | None = None) -> list[Assignment]:
        """The open assignments (the next `limit` of them): whom to give what. In a study that is told in `blocks`, one
        for every arm of the cohort, with n, how many subjects it is for.

        They are the same until they are told, and the same for everybody. Sites that work side by side reserve theirs
        with `assign`; here are those that are reserved for `site`, or for nobody. None are left where the study is at
        its end, or waits for effects or for those that are reserved; in a pause `Paused` is raised, which says why.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise SurefootError(f"limit must be a whole number of at least 1; got {limit!r}")
        with self._lock:
            self._sound(self.view)
            told = bool(self._view.setup.get("blocks"))
            if blocks is not None and bool(blocks) != told:
                raise SurefootError(
                    f"study {self.name!r} is told {'in blocks' if told else 'subject by subject'}: "
                    f"that is chosen when a study is created"
                )
            check_running(self._view)
            return assignments(self._view, limit, _site(self._view, site))

    def awaiting(self, *, site: str | None = None) -> list[Assignment]:
        """The assignments whose harm was told and whose effect is due; of one site alone, where it is given."""
        with self._lock:
            view = self.view
            return [a for a in awaiting(view) if site is None or view.reserved.get(a.subject) == site]

    def verdict(self) -> Verdict:
        """How every arm stands, by its bounds: a `Verdict` of one trial."""
        with self._lock:
            view = self.view
            return view.design.verdict(view.state)

    def status(self) -> dict[str, Any]:
        """Where the study stands, in plain numbers. `trouble`: why nothing may be asked and told any more. Where the
        journal does not hold, `holds` is false, and this is what there was before the first event that does not."""
        with self._lock:
            try:
                return status(view := self.view, self._doubt(view))
            except Unsound:
                events = self.log()
                report = check(events)
                before = View().follow_up(events[: (report["event"] or 1) - 1])
                if not before.seq:
                    raise
                said = f"{report['message']}; shown is what was known before event {report['event']:,}"
                return status(before, said) | {"holds": False}

    def log(self) -> list[Event]:
        """Every event of the journal: number, time, actor, kind, data, reason, hash."""
        return list(self.journal.read(self.name))

    # Writing
    def tell(
        self, id: str, effect: Any = None, harm: Any = None, dose: Any = None, *, key: str | None = None,
        confirm: str | None = None, actor: str | None = None, **block: Any,
    ) -> str | None:  # fmt: skip
        """What came of an assignment: both readings, or the harm now and the effect later; and the dose given, where it
        differs. A request with a `key` can be sent again: it counts once. `confirm`: why a reading outside of the
        plausible range, a dose above the certified ones or a much larger block is true all the same. Returns, in words,
        what a certificate lists as a deviation.

        Of a block: `n`, how many subjects came, with effect and harm as sums over them, or effect_mean and harm_mean;
        and effect_squares and harm_squares (sums of squares), or effect_sd and harm_sd, where sigma is not known.
        """
        known_keys("what is told", block, BLOCK)
        row = {"id": id, "effect": effect, "harm": harm, "dose": dose, "key": key, "confirm": confirm, **block}
        self._bring(Brought(row, self._who(actor)), self._tell_each)
        if dose is None and "n" not in block:
            return None
        with self._lock:
            return requests.deviation(self.view, id)

    def tell_many(
        self, rows: str | Path | TextIOBase | Iterable[Mapping[str, Any]], *, actor: str | None = None
    ) -> int:
        """Readings from a CSV file, a table of rows (mappings) or a data frame: all of them or, if one is wrong, none.

        Columns: id, effect, harm, and if wanted arm (it is checked), dose, key and confirm; of blocks n and the others
        of `tell`. Returns how many were new.
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
            check_running(self._view)
            distinct("the sites", {site, *self._view.reserved.values()})
            found = assignments(self._view, count)
            if found:
                add("assigned", {"ids": [a.subject for a in found], "for": site})
        return found

    def desk(self, site: str, *, actor: str | None = None) -> Desk:
        """What somebody who treats subjects and enters data sees."""
        return Desk(self, line("a site", site), self._who(actor))

    def give_back(self, ids: Sequence[str], why: str, *, actor: str | None = None) -> None:
        """Assignments that were reserved and are not used: others may have them."""
        with self._writing(actor) as add:
            data = requests.returned(self._view, _list(ids))
            if data["ids"]:
                add("returned", data, reason(why))

    def void(self, id: str, reason: str, *, actor: str | None = None) -> None:
        """A subject dropped out before any reading, or a block is lost. It is for good: no reading is taken then."""
        with self._writing(actor) as add:
            add("voided", requests.voided(self._view, id), _reason(reason))

    def correct(
        self, id: str, effect: Any = None, harm: Any = None, reason: str = "", *, dose: Any = None,
        confirm: bool = False, actor: str | None = None, **block: Any,
    ) -> str | None:  # fmt: skip
        """A reading was wrong, or a block (see `tell`). The old one stays in the journal; what was concluded is
        concluded anew. `confirm`: it is true although it is outside of the plausible range. Returns, in words, that an
        ending does not hold any more."""
        known_keys("what is told", block, BLOCK)
        with self._lock:
            with self._writing(actor) as add:
                was = self._view.concluded
                new = {"id": id, "effect": effect, "harm": harm, "dose": dose, **block}
                add("corrected", requests.corrected(self._view, new, bool(confirm)), _reason(reason))
            return requests.undone(self._view, was)

    def pause(self, reason: str, *, actor: str | None = None) -> None:
        """Give out no assignments until `resume`. Readings of what was given before can still be told."""
        with self._writing(actor) as add:
            add("paused", requests.paused(self._view), _reason(reason))

    def resume(self, reason: str, *, voids: Mapping[str, float] | None = None, actor: str | None = None) -> None:
        """Go on. Where subjects dropped out: others take their places, or they count as the reading `voids` (effect and
        harm)."""
        with self._writing(actor) as add:
            data = requests.resumed(self._view, voids, self._who(actor), self._now.actors())
            add("resumed", data, _reason(reason))

    def stop(self, reason: str, *, actor: str | None = None) -> None:
        """End the study for good, whatever the design says."""
        with self._writing(actor) as add:
            requests.check_open(self._view)
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

    def _tell_each(self, batch: list[Brought]) -> None:
        """Readings of several people in one transaction: each counts or is refused by itself, as if told alone."""
        with self._writing(batch[0].who) as add:
            for one in batch:
                before, one.refused = self._now.seq, None
                try:
                    if self._tell(partial(add, by=one.who), one.row):
                        self._follow(partial(add, by=one.who))
                except SurefootError as error:
                    if self._now.seq != before:
                        raise
                    one.refused = error
        for one in batch:
            one.done = True

    def _tell(self, add: Callable[..., None], row: Mapping[str, Any]) -> bool:
        """Add one reading; False where it was told before."""
        key, confirm = row.get("key"), row.get("confirm")
        if key is not None:
            key = line("a key", key, 200)
            if key in self._view.keys:
                requests.same(self._view, key, row)
                return False
        confirm = None if confirm is None else reason(confirm)
        data = requests.told(self._view, row, confirm is not None)
        if data is None:
            return False
        add("told", data, confirm, key)
        return True

    # Moving it
    def export(self, *, actor: str | None = None) -> dict[str, Any]:
        """Everything, as JSON; `Study.load` makes the same study of it, hash for hash. That it was is an event."""
        if not self.journal.archive:
            with self._writing(actor, doubtful=True) as add:
                add("exported", {"versions": versions()})
        return {"surefoot": "study", "format": VERSION, "study": self.name, "events": [e._asdict() for e in self.log()]}

    @classmethod
    def load(cls, url: str | Path, data: Mapping[str, Any], *, actor: str | None = None) -> Study:
        """A study from what `export` gave, in another database."""
        try:
            events = exported(data)
        except (KeyError, TypeError, IndexError, Broken):
            raise SurefootError("this is not the export of a study: make one with `surefoot study export`") from None
        report = check(events)
        if not report["ok"]:
            raise SurefootError(f"the export does not hold, so nothing was written: {report['message']}")
        name = line("a study's name", events[0].study)
        journal = Journal(url, create=True)
        distinct("the studies", [name, *journal.names()])
        study = cls(copied(journal, events), name, actor)
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
            copied(Journal(part, create=True), self.log()).close()
            part.rename(path)
        except OSError as error:
            raise SurefootError(f"cannot write {path}: {error.strerror or error}") from error
        return path

    def readings(self) -> list[dict[str, Any]]:
        """One row a subject: what was assigned, given and read."""
        with self._lock:
            return readings(self.view)

    # What is worked out from it
    def certificate(self) -> Any:
        """What was concluded, at which delta, under which assumptions: `.content`, `.to_html()`, `.to_json()`."""
        from .certificate import Certificate

        with self._lock:
            return Certificate.of(self.view)

    def verify(
        self, head: str | None = None, certificate: Any = None, checkpoint: Any = None, keys: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Check the chain, the fold and (where given) a certificate or a signed checkpoint anew: each the path of a
        file, its text, or what was read from it. See `verify.check`."""
        with no_collecting():
            return check(self.log(), head, content_of(certificate), content_of(checkpoint), keys)

    def checkpoint(self, key: str | Path, *, actor: str | None = None) -> dict[str, Any]:
        """A small signed note of where the journal stands; whoever has it can tell whether it was changed before."""
        from .keys import Key, sign

        mine = Key.load(key)
        with self._writing(actor, doubtful=True) as add:
            add("checkpointed", {"key": mine.public})
            note = {"study": self.name, "events": self._view.seq, "head": self._view.hash}
        return sign(note, mine)

    def preview(self, **grids: Sequence[float]) -> list[dict[str, Any]]:
        """What the open cohort would lead to, by its mean `harm` and `effect` in each arm (lists of numbers to try)."""
        from .ahead import preview

        with self._lock:
            return preview(self.view, **grids)

    def forecast(
        self, scenarios: Scenario | Sequence[Scenario], trials: int = 1000, seed: int = 0
    ) -> list[dict[str, Any]]:
        """How many pulls are still to go and who would win, if these scenarios were the truth."""
        from .ahead import forecast

        with self._lock:
            return forecast(self.view, [scenarios] if isinstance(scenarios, Scenario) else scenarios, trials, seed)


_reason = reason  # methods have an argument of that name


def _site(view: View, site: str | None) -> str | None:
    """A site that somebody has reserved for: a name with a slip of the pen would look like one that has no work."""
    known = sorted(set(view.reserved.values()))
    if site is not None and site not in known:
        raise SurefootError(f"nobody has reserved as {site!r}; known: {', '.join(map(repr, known)) or 'none yet'}")
    return site


def _list(ids: Any) -> list[str]:
    if isinstance(ids, str) or not isinstance(ids, Sequence):
        raise SurefootError(f"ids must be a list of ids; got {ids!r}")
    return list(ids)
