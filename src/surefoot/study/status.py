"""A study in plain numbers: where it stands, who is to be given what, and what was read of whom."""

from __future__ import annotations

import json
import math
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..designs.base import REFUTED, STANDINGS
from ..problem import SurefootError
from .checker import READINGS, Event, Given
from .fold import View

RATES = 8  # rows of an arm; neighbouring doses go together where more were given
TO_DO = {  # by who paused a study: what the people there can do
    "actor": "resume it with a reason, or stop it",
    "watch": "look at the readings behind it. One that is wrong is corrected; then resume. If the assumption is wrong, "
    "stop, and begin anew with a problem that is true. To resume otherwise says that the assumption holds all the "
    "same: the study goes on as before, also at a dose that was flagged",
    "voided": "resume it with a reason: others take the places of those who dropped out, or these count as a reading "
    "that you name",
    "size": "stop it, and begin anew with a sigma in the units of the readings",
    "checker": "keep a backup, and give nothing more: design and checker disagree, which is a fault of the software",
}

AGAIN = "looked at again now and then, lest a mistake lasts"
OWN = {"watch": "a watch", "size": "its size", "checker": "the checker"}  # what paused a study by itself


class Paused(SurefootError):
    """Nothing is given out until somebody resumes the study."""


class Assignment(NamedTuple):
    """One subject: give `arm` at `dose`, then tell the readings under `id`."""

    id: str
    subject: int
    arm: str
    dose: Any  # a number, or what the level is called where there are ordered levels
    why: str
    n: int = 1  # how many subjects, where they are told as one block


def assignments(view: View, limit: int | None = None, site: str | None = None) -> list[Assignment]:
    """The open ones, in their order: those who have no reading yet and are reserved for this site (for nobody)."""
    given, found = view.open, list[Assignment]()
    if given is None or view.standing != "running" or view.stale:
        return found
    why = [_why(view, given, arm) for arm in range(len(given.n))]
    names, harm, reserved, gone = view.problem.names, view.harm, view.reserved, view.gone
    dose = [it.said(x) for it, x in zip(view.problem.arms, given.dose, strict=True)]
    many = given.n if given.blocks else [1] * len(given.n)
    while view.first < given.first + given.size and harm[view.first] == harm[view.first]:
        view.first += 1
    arms = ((s, given.arms[s - given.first]) for s in range(view.first, given.first + given.size))
    for subject, arm in chain(arms, given.later.items()):
        if limit is not None and len(found) >= limit:
            return found
        if harm[subject] != harm[subject] and subject not in gone and reserved.get(subject) == site:
            found.append(Assignment(f"{view.tag}-{subject}", subject, names[arm], dose[arm], why[arm], many[arm]))
    return found


def to_do(view: View) -> str | None:
    """What to do in a pause; None where there is none. After a correction the watches are asked again."""
    if view.standing != "paused":
        return None
    by = {event.data.get("by", event.kind): event.seq for event in view.paused}
    what = {who: said for who, said in TO_DO.items() if who in by}
    if view.changed > by.get("watch", view.changed) and not (still := view.flagged()):
        what["watch"] = "a reading was corrected since, and nothing is flagged now: resume it with a reason"
    elif view.changed > by.get("watch", view.changed):
        what["watch"] = f"a reading was corrected since, and still {still[0].message}: {what['watch']}"
    if who := view.told_alarm:
        what["watch"] += f". Somebody else than {who} resumes it"
    return "; ".join(what.values())


def check_running(view: View) -> None:
    """That nothing is given out in a pause is said, with why, by whom and what to do: at an end there is just none."""
    if view.standing == "paused":
        who = [OWN.get(e.data.get("by", ""), e.actor) for e in view.paused]
        said = "; ".join(f"by {by} on {e.at[:10]}: {e.reason}" for by, e in zip(who, view.paused, strict=True))
        raise Paused(f"study {view.name!r} is paused {said}. What to do: {to_do(view)}")


def _again(view: View, given: Given, arm: int) -> bool:
    """Whether a cohort has subjects of an arm that was refuted when it was opened."""
    return bool(given.n[arm]) and int(view.before[given.number - 1].standing[0, arm]) == REFUTED


def _why(view: View, given: Given, arm: int) -> str:
    it, most = view.problem.arms[arm], given.certified[arm]
    alone = "" if sum(map(bool, given.n)) > 1 else "; the only arm of its cohort: nothing guards against drift"
    why = f"certified up to {it.label(most or it.start)} by the readings before it"
    if it.labels is not None and given.dose[arm] == it.start + 1:
        why = "one level above the start, which is declared safe"
    elif given.dose[arm] <= it.start or most is None:
        why = "the start dose, declared safe"
    if _again(view, given, arm):
        why = f"refuted, and {AGAIN}; {why}"
    return f"cohort {given.number}: {why}{alone}"


def held(view: View) -> dict[str, list[int]]:
    """By site: the subjects that are reserved for it and have no reading yet."""
    found: dict[str, list[int]] = {}
    for subject in sorted(waiting(view) & view.reserved.keys()):
        found.setdefault(view.reserved[subject], []).append(subject)
    return found


def idle(view: View, site: str | None = None, most: int = 5) -> str:
    """Why nothing is to be given now, or nothing by this site, in words."""
    if view.standing != "running":
        return f"nothing is free: the study is {view.standing}"
    if site and (free := len(assignments(view))):
        return f"nothing that is reserved for {site} is open; {free:,} are free"
    of = {s: f" ({view.reserved[s]})" for s in view.reserved}
    waits, due = sorted(waiting(view)), [a.subject for a in awaiting(view)]
    if not waits:
        of, waits = {s: f"{said}, whose effect is due" for s, said in (dict.fromkeys(due, "") | of).items()}, due
    said = ", ".join(view.identify(s) + of.get(s, "") for s in waits[:most])
    more = f" and {len(waits) - most:,} more" if len(waits) > most else ""
    return f"nothing is free: cohort {len(view.cohorts)} waits for {said or 'nobody'}{more}"


def awaiting(view: View) -> list[Assignment]:
    """Those whose harm was told and whose effect was not yet."""
    found = []
    for given in view.cohorts:
        for subject, arm in given.subjects() if given.left else ():
            if view.harm[subject] == view.harm[subject] and not view.complete(subject):
                told = view.reading(subject)
                dose, many = view.problem.arms[arm].said(told["dose"]), told.get("n", 1)
                id, name = view.identify(subject), view.problem.names[arm]
                found.append(Assignment(id, subject, name, dose, "its effect is due", many))
    return found


def status(view: View, trouble: str | None) -> dict[str, Any]:
    """Where a study stands, in plain numbers."""
    verdict, over = view.design.verdict(view.state), view.standing in ("ended", "stopped")
    given = None if over else view.open
    by = doses(view)
    arms = []
    for i, (name, it) in enumerate(zip(view.problem.names, view.problem.arms, strict=True)):
        bounds = verdict.lower, verdict.upper, verdict.safe, verdict.certified
        low, high, safe, top = (float(x[0, i]) for x in bounds)
        standing = STANDINGS[int(verdict.standing[0, i])]
        again = given is not None and standing == "refuted" and _again(view, given, i)
        counts = standing != "stopped"  # of an arm whose start looks unsafe no dose and no value means anything
        arms.append(
            {
                "arm": name,
                "standing": standing,
                "safe": it.said(safe) if counts else None,  # the largest that is
                "safe_is": it.safe_is(safe) if counts else None,  # declared, or shown by readings
                "certified": it.said(top) if (standing == "active" or again) and not over else None,  # may be given
                "lower": low if counts and math.isfinite(low) else None,
                "upper": high if counts and math.isfinite(high) else None,
                "pulls": sum(row["n"] for row in by[i]),
                "open": sum(not view.complete(s) for s, a in given.subjects() if a == i) if given else 0,
                "dose": it.said(given.dose[i]) if given and given.n[i] else None,
                "why": verdict.reason(i) + f"; {AGAIN}" * again,
            }
        )
    end = view.concluded
    return {
        "study": view.name,
        "standing": view.standing,
        "holds": True,
        "trouble": trouble,
        "reasons": [event.reason for event in view.paused] if view.standing == "paused" else [],
        "to_do": to_do(view),
        "design": view.design.name,
        "theorem": view.setup["theorem"]["name"],
        "ending": end["ending"] if end else "stopped" if view.stopped else "running",
        "winner": view.problem.names[end["winner"]] if end and end["winner"] is not None else None,
        "cohort": len(view.cohorts),
        "readings": sum(arm["pulls"] for arm in arms),
        "budget": view.problem.most,
        "open": len(assignments(view)) + len(view.reserved.keys() & waiting(view)),
        "reserved": {site: len(own) for site, own in held(view).items()},
        "awaiting": len(awaiting(view)),
        "recommendation": view.design.recommendation(view.state).words(view.problem),
        "arms": arms,
        "rates": rates(view, by),
        "head": {"seq": view.seq, "hash": view.hash},
    }


def sums(view: View) -> list[list[tuple[float, float, float, float]]]:
    """By arm: every dose given, in rising order, with its number of readings and the sums of effects and of harms."""
    found: list[dict[float, tuple[float, float, float]]] = [{} for _ in view.problem.arms]
    for given in view.cohorts:
        for (arm, dose), came in view.came(given).items():
            n, effect, harm = found[arm].get(dose, (0, 0.0, 0.0))
            found[arm][dose] = n + came[0], effect + came[1], harm + came[2]
    return [[(dose, *came) for dose, came in sorted(by.items()) if came[0]] for by in found]


def doses(view: View) -> list[list[dict[str, Any]]]:
    """The same with means."""
    return [
        [{"dose": dose, "n": int(n), "effect": e / n, "harm": h / n} for dose, n, e, h in rows] for rows in sums(view)
    ]


def grouped(rows: list[dict[str, Any]], most: int = RATES) -> list[dict[str, Any]]:
    """Neighbouring doses together, `from` and `to`, each group with about as many readings."""
    upto = np.cumsum([row["n"] for row in rows])
    group = np.minimum((upto - 1) * most // upto[-1], most - 1) if len(rows) > most else np.arange(len(rows))
    out = []
    for k in np.unique(group):
        own = [row for row, g in zip(rows, group, strict=True) if g == k]
        n = sum(row["n"] for row in own)
        means = {key: sum(row["n"] * row[key] for row in own) / n for key in ("dose", "effect", "harm")}
        out.append({"from": own[0]["dose"], "to": own[-1]["dose"], "n": n, **means})
    return out


def rates(view: View, by: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What was read at each dose of an arm, a level by its name: how many, and their means; of yes or no, how often
    yes; whether its harm is over the limit, as read."""
    binary = [key for key, noise in zip(READINGS, view.problem.noises, strict=True) if noise.binary]
    return [
        {"arm": it.name, "from": it.said(row["from"]), "to": it.said(row["to"])}
        | {key: row[key] for key in ("n", "effect", "harm")}
        | {"over_limit": row["harm"] > view.problem.limit}
        | {f"{key}s": round(row["n"] * row[key]) for key in binary}
        for it, rows in zip(view.problem.arms, by, strict=True)
        for row in grouped(rows, len(it.labels or ()) or RATES)
    ]


def waiting(view: View) -> set[int]:
    """The subjects (or blocks) of the open cohort of whom nothing was told yet, and who did not drop out."""
    given = view.open
    return {s for s, _ in given.subjects() if view.harm[s] != view.harm[s] and s not in view.gone} if given else set()


def readings(view: View) -> list[dict[str, Any]]:
    """One row a subject: what was assigned, given and read."""
    rows: list[dict[str, Any]] = []
    for given in view.cohorts:
        for subject, arm in given.subjects():
            told = {} if subject in view.gone else view.reading(subject)
            status = "told" if {"effect", "harm"} <= told.keys() else "effect due" if told else "open"
            if subject in view.gone:
                status = "void"
            elif status == "open" and (given.closed or given.withdrawn or view.standing in ("ended", "stopped")):
                status = "withdrawn"
            row: dict[str, Any] = {"id": view.identify(subject), "subject": subject, "cohort": given.number}
            row |= {"n": told.get("n"), "asked": given.n[arm]} if given.blocks else {}
            it = view.problem.arms[arm]
            row |= {"arm": it.name, "assigned": it.said(given.dose[arm])}
            row |= {"dose": it.said(told.get("dose", given.dose[arm])) if told else None}
            row |= {"effect": told.get("effect"), "harm": told.get("harm"), "status": status}
            rows.append(row | {"site": view.reserved.get(subject)})
    return rows


def named(view: View, event: Event) -> dict[str, Any]:
    """A payload with the names that people know: ids, levels, and of a cohort how many get what; without what follows
    from the rest."""
    data, arms = event.data, view.problem.arms
    if event.kind == "opened":
        given = zip(arms, data["n"], data["dose"], strict=True)
        return {it.name: f"{n:,} at {it.label(dose)}" for it, n, dose in given if n}
    if "ids" in data:
        data |= {"ids": " ".join(map(view.identify, data["ids"]))}
    if "id" in data:
        it = arms[view.find(data["id"]).arm(data["id"])]
        for part in (data, data.get("was", {})):
            part |= {"dose": it.said(part["dose"])} if "dose" in part else {}
            for key, noise in zip(READINGS, view.problem.noises, strict=True):
                part.pop(f"{key}_spread" if noise.binary else "", None)
        data["id"] = view.identify(data["id"])
    return data


def content(view: View | None, event: Event, most: int = 200) -> str:
    """A payload in words, cut between two of them where it is long; as it stands where the journal does not hold."""
    data = named(view, event) if view else event.data
    if event.kind == "created":
        problem = data["problem"]
        data = {"design": data["design"], "arms": len(problem["arms"]), "limit": problem["limit"]}
    text = ", ".join(f"{k} {x if isinstance(x, str) else json.dumps(x, ensure_ascii=False)}" for k, x in data.items())
    return text if len(text) <= most else text[:most].rpartition(" ")[0] + " ..."
