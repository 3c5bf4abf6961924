"""Whether a journal holds: chain, order, evidence, endings; a certificate, a head or a signed checkpoint of it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..problem import SurefootError
from .blocks import possible
from .checker import DECODE, READINGS, Broken, Event, near, need
from .checker import WRONG as BROKEN
from .fold import View
from .watch import DIGEST

WRONG = (SurefootError, *BROKEN)


def check(
    events: Sequence[Event],
    head: str | None = None,
    certificate: Any = None,
    checkpoint: Any = None,
    keys: Sequence[str] = (),
) -> dict[str, Any]:
    """Whether the events hold: each follows from the one before by hash, may follow by what was known then, and every
    cohort and ending is certified by readings and stakes that were published before.

    From outside of the database: `head`, the hash of an event; a `certificate`, as JSON or as the page; a `checkpoint`
    signed by one of `keys`. Each may be older than the journal: then it passes, and the report says what came since,
    and whether a certificate is `superseded`, other readings counting now, or `withdrawn`: it said how the study ended,
    and by a correction that is not how it stands now. The report's `compared` lists what was held against the journal.
    """
    report: dict[str, Any] = {"ok": False, "events": len(events), "head": events[-1].hash if events else None}
    report |= {
        "anchored": False,
        "authenticated": False,
        "event": None,
        "compared": [],
        "since": {},
        "superseded": False,
        "withdrawn": False,
    }
    try:
        upto, content, page = _certificate(certificate, events)
        signed = _checkpoint(checkpoint, events, keys)
        at = _head(head, events)
        at = max(at, upto, signed)
    except (Broken, SurefootError) as error:
        return report | {"message": str(error)}
    view = View()
    for seq, event in enumerate(events, 1):
        try:
            follows(view, event)
        except WRONG as error:
            if view.trouble:  # an event before it was certified otherwise
                break
            return report | {"event": seq, "message": f"event {seq} ({event.kind}) does not hold: {error}"}
        if content is not None and event.seq == upto:
            from .certificate import Certificate

            mine = Certificate.of(view)
            if differs := next(differences(mine.content, content, ""), None):
                return report | {"message": f"the certificate does not follow from the journal: {differs} differs"}
            if page is not None and page != mine.to_html():
                return report | {"message": "the page does not say what the certificate in it says"}
            report["compared"] = [*content, *(["the page"] if page is not None else [])]
    if not events:
        return report | {"message": "there are no events"}
    if view.trouble:
        return report | {"message": f"this surefoot does not come to what was published: {view.trouble}"}
    since = Counter(event.kind for event in events[at:]) if at else Counter()
    report |= {"ok": True, "anchored": at == len(events), "authenticated": signed > 0, "since": dict(since)}
    if content is not None and upto < len(events):
        from .certificate import Certificate

        now = Certificate.of(view).content
        report["superseded"] = any(now[key] != content[key] for key in ("concluded", "arms", "pulls", "deviations"))
        report["now"] = now["concluded"]["words"]
        was, is_ = ([x["concluded"][key] for key in ("ending", "winner")] for x in (content, now))
        report["withdrawn"] = content["concluded"]["final"] and was != is_
    return report | {"message": _words(report, at, upto, signed)}


def follows(view: View, event: Event) -> None:
    """Take an event; raise where it may not come next."""
    data, kind = event.data, event.kind
    by = data.get("by")
    if kind in ("told", "corrected"):
        n = int(data.get("n") or view.reading(data["id"])["n"]) if view.setup.get("blocks") else 0
        for key, noise in zip(READINGS, view.problem.noises, strict=True):
            if n and key in data:
                need(near(possible(key, noise, data[key], n), data[key]), key, "is not such a sum")
            elif key in data:
                noise.reading(key, data[key])
    if kind in ("opened", "closed", "ended") or by in ("watch", "checker", "size"):
        due = view.due()
        same = view.setup["watch"].get("digest") == DIGEST
        if by == "watch" and not same:
            due = None  # the watches of another version: they are heard, and not asked again
        elif due and due[0] in ("paused", "warned") and due[1].get("by") == "watch" and not same:
            due = (kind, data, event.reason)
        elif due is None or (due[0] != kind and by not in ("checker", "size")):
            raise Broken(f"what follows by the evidence is {due[0] if due else 'nothing'}")
        if due and due[0] == "opened" and (view.staged or by in ("checker", "size")):
            due = view.follow()
        if due and (due[0] != "opened" or view.staged) and any(differences(due[1], data, "")):
            said = "the stage asks for" if due[0] == "opened" else f"what follows by the evidence is {due[0]}"
            raise Broken(f"{said} {due[1]}")
        if due and due[0] == kind != "opened" and not alike(due[2] or "", event.reason or ""):
            raise Broken(f"its reason is {due[2]!r}, not {event.reason!r}")
    view.take(event, data)


def alike(a: str, b: str) -> bool:
    """The same words; numbers among them, which are rounded, to a hundredth."""
    return len(a.split()) == len(b.split()) and all(map(_alike, a.split(), b.split()))


def _alike(a: str, b: str) -> bool:
    try:
        return a == b or math.isclose(float(a.strip(",;:")), float(b.strip(",;:")), rel_tol=0.01)
    except ValueError:
        return False


def differences(a: Any, b: Any, path: str) -> Iterator[str]:
    """Where two JSON values differ, numbers by more than 1e-9, as they may under another CPU or NumPy; every field of
    both is compared."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in [*a, *(k for k in b if k not in a)]:
            if key not in a or key not in b:
                yield f"{path}{key}"
            else:
                yield from differences(a[key], b[key], f"{path}{key}.")
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield path.rstrip(".")
        for k, (x, y) in enumerate(zip(a, b, strict=False), 1):
            yield from differences(x, y, f"{path}{k}.")
    elif isinstance(a, float) and isinstance(b, (int, float)) and not isinstance(b, bool):
        if not near(a, b):
            yield path.rstrip(".")
    elif type(a) is not type(b) or a != b:
        yield path.rstrip(".")


EMBEDDED = re.compile(r'<script type="application/json" id="certificate">(.*?)</script>', re.S)


def _certificate(given: Any, events: Sequence[Event]) -> tuple[int, dict[str, Any] | None, str | None]:
    """Of which event it is; its content; and the page, where it is one."""
    if given is None:
        return 0, None, None
    page = given if isinstance(given, str) and given.lstrip().lower().startswith("<!doctype") else None
    try:
        if page is not None:
            found = EMBEDDED.search(page)
            content = DECODE(found.group(1)) if found else None
        else:
            text = given.decode() if isinstance(given, bytes) else given
            content = DECODE(text) if isinstance(text, str) else getattr(given, "content", given)
    except ValueError:
        content = None
    if not isinstance(content, Mapping) or content.get("surefoot") != "certificate":
        raise Broken("this is not a certificate: give the JSON or the page that `certificate` wrote, or its file")
    head = content.get("head")
    seq, hash_ = (head.get("seq"), head.get("hash")) if isinstance(head, Mapping) else (None, None)
    if type(seq) is not int or not 1 <= seq <= len(events):
        raise Broken(f"the certificate is about event {seq!r}; the journal has 1 to {len(events):,}")
    if events[seq - 1].hash != hash_:
        raise Broken(f"the certificate is of another journal: event {seq:,} has another hash")
    return seq, dict(content), page


def _head(head: Any, events: Sequence[Event]) -> int:
    if head is None:
        return 0
    at = next((event.seq for event in events if event.hash == head), None)
    if at is None:
        raise Broken("the chain may hold in itself, but no event has this head: one was changed or is missing")
    return at


def _checkpoint(note: Any, events: Sequence[Event], keys: Sequence[str]) -> int:
    if note is None:
        return 0
    from .keys import signers

    if isinstance(note, str):
        try:
            note = DECODE(note)
        except ValueError as error:
            raise Broken(f"the checkpoint is not valid JSON: {error}") from None
    if not keys:
        raise Broken("whose checkpoint? give the public key of who signed it")
    if not signers(note) & set(keys):
        raise Broken("the checkpoint is not signed by this key")
    at = note["events"]
    if type(at) is not int or not 1 <= at <= len(events) or (events[at - 1].study, events[at - 1].hash) != (
        note["study"], note["head"]
    ):  # fmt: skip
        raise Broken("the journal does not extend the checkpoint: an event before it was changed, or is missing")
    return at


def _words(report: Mapping[str, Any], at: int, certificate: int, signed: int) -> str:
    count = report["events"]
    said = f"all {count:,} events hold"
    if certificate:
        said += (
            f", and the certificate follows from the first {certificate:,}: {len(report['compared'])} parts compared"
        )
    if report["withdrawn"]:
        said += f"; what it concluded was withdrawn by a correction after it: {report['now'].rstrip('.')}"
    elif report["superseded"]:
        said += f"; it is superseded by what came after it, and another is due: {report['now'].rstrip('.')}"
    if signed:
        said += f"; authenticated up to event {signed:,} by a signed checkpoint"
    else:
        said += "; consistent, not authenticated: whoever may write there could have made all of it anew"
    if at and at < count:
        since = ", ".join(f"{n:,} {kind}" for kind, n in report["since"].items())
        said += f"; since event {at:,}: {since}"
    if at < count:
        last = f"events after {at:,} that were removed" if at else "removed last events"
        said += f"; to notice {last}, give the head that you noted: --head HASH"
        said += "" if certificate else ", or --certificate FILE"
    return said
