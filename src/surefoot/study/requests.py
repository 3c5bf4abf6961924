"""Whether what somebody wants to add may be added: each gives the payload of the event, or raises SurefootError."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..problem import SurefootError, number
from .blocks import COLUMNS, block_in
from .checker import MANY, READINGS
from .fold import View
from .text import skeleton

CONFIRM = 'if it is true all the same, confirm it with a reason: confirm="why", or --confirm "why"'
AGAIN = "if it is true all the same, confirm it: confirm=True, or --confirm"  # a correction has its reason anyway


def check_open(view: View) -> None:
    if view.stopped:
        raise SurefootError(f"study {view.name!r} was stopped ({view.stopped.reason}): it takes nothing more")


def told(view: View, data: Mapping[str, Any], confirmed: bool = False) -> dict[str, Any] | None:
    """None where exactly this was told before."""
    check_open(view)
    subject = view.subject(data.get("id"))
    new, old = readings_in(view, subject, data), view.reading(subject)
    id, given = view.identify(subject), view.find(subject)
    if data.get("arm", name := view.problem.names[given.arm(subject)]) not in (name, None):
        raise SurefootError(f"{id} is of the arm {name!r}; got {data['arm']!r}")
    if subject in view.gone:
        raise SurefootError(f"{id} was voided, which is for good: its place is not open to readings any more")
    if given.blocks and view.reading(subject).get("n", new.get("n")) is None:
        raise SurefootError(f"{id} is a block: tell n, how many subjects it has, with their sums")
    if not new.keys() & {"effect", "harm"}:
        raise SurefootError(f"{id}: nothing to tell; give its harm, its effect, or both")
    if "harm" not in new and "harm" not in old:
        raise SurefootError(f"{id}: harm is missing; tell it with the effect or before it: no reading counts without")
    for key, value in new.items():
        was = old.get(key, given.dose[given.arm(subject)] if key == "dose" and "harm" in old else value)
        if was != value:
            once = "a block is told once: add up its days, or tell the next one in the next block; " * given.blocks
            raise SurefootError(
                f"{id}: {key} was told as {_as_told(view, subject, key, was)} before; "
                f"got {_as_told(view, subject, key, value)}: {once}if that was wrong, use correct"
            )
    if not confirmed:
        _check_dose(view, subject, new.get("dose"))
    if given.blocks and not confirmed:
        _check_size(view, subject, new.get("n", 0))
    fresh = {key: value for key, value in new.items() if key not in old and (key != "dose" or "harm" not in old)}
    if not confirmed:
        _check_plausible(view, id, fresh, old.get("n", fresh.get("n", 1)))
    return {"id": subject, **fresh} if fresh else None


def deviation(view: View, id: str) -> str | None:
    """What a certificate lists of a reading besides itself, in words; None where all was as assigned."""
    subject = view.subject(id)
    given, said = view.find(subject), list[str]()
    arm, dose = given.arm(subject), view.told["dose"][subject]
    if dose == dose:
        it = view.problem.arms[arm]
        said.append(f"given at {it.label(dose)} instead of {it.label(given.dose[arm])}")
    if given.blocks and (n := view.reading(subject).get("n", 0)) > (1 if _left(view) < 0 else MANY) * given.n[arm]:
        said.append(f"{n:,} subjects told as a block of {given.n[arm]:,}")
    return f"{id}: {', '.join(said)}: the certificate lists it as a deviation" if said else None


def recorded(view: View, id: str, was: Mapping[str, Any] | None = None, actor: str | None = None) -> str:
    """What stands of an assignment now, in words; `was`: what stood there before. That one site tells of another's
    subject is allowed, and said."""
    subject = view.subject(id)
    given, site = view.find(subject), view.reserved.get(subject)
    now = {"dose": given.dose[given.arm(subject)]} | view.reading(subject)
    old = now | {"dose": given.dose[given.arm(subject)]} | dict(was) if was else now
    parts = [view.problem.names[given.arm(subject)]]
    for key in ("dose", "n", "effect", "harm"):
        if key in now:
            before, after = (_as_told(view, subject, key, x[key]) for x in (old, now))
            parts.append((key if key != "dose" else "at") + f" {before} ->" * (before != after) + f" {after}")
    parts += ["effect is due"] * ("effect" not in now and "harm" in now)
    parts += [f"reserved for {site}"] * (site is not None and actor in set(view.reserved.values()) - {site})
    return f"{id}: {parts[0]} {', '.join(parts[1:])}"


def _left(view: View) -> int:
    """Of the budget."""
    return view.problem.budget - int(sum(came[0] for c in view.cohorts for came in view.came(c).values()))


def same(view: View, key: str, data: Mapping[str, Any]) -> None:
    """A request that came before is the one that had its key."""
    old, subject = json.loads(view.keys[key]), view.subject(data.get("id"))
    now = {"id": subject, **readings_in(view, subject, data)}
    if any(now.get(k, x if k == "n" else None) != x for k, x in old.items()):
        raise SurefootError(f"key {key!r} was used for another request before: a new request needs a new key")


def _check_size(view: View, subject: int, n: float, confirm: str = CONFIRM) -> None:
    """Of a block: not many times what was asked for, nor more than that and than the budget has left."""
    id, given = view.identify(subject), view.find(subject)
    if n <= (asked := given.n[given.arm(subject)]):
        return
    left = _left(view) + view.reading(subject).get("n", 0)
    if n > MANY * asked or n > left:
        beyond = f" and the budget has {max(left, 0):,} left" if n > left else ""
        raise SurefootError(f"{id}: {n:,} subjects, where {asked:,} were asked for{beyond}: {confirm}")


def _check_dose(view: View, subject: int, dose: float | None) -> None:
    """A dose that was given in place of the one assigned: not above what was certified then."""
    given = view.find(subject)
    arm = given.arm(subject)
    most = given.certified[arm]
    if dose is not None and most is not None and dose > max(most, given.dose[arm]):
        it = view.problem.arms[arm]
        raise SurefootError(
            f"{view.identify(subject)}: given at {it.label(dose)}, where {it.label(given.dose[arm])} was assigned and "
            f"up to {it.label(most)} certified: {CONFIRM}"
        )


def _check_plausible(view: View, id: str, data: dict[str, Any], n: float, confirm: str = CONFIRM) -> None:
    """Of a block: its means."""
    if not view.plausible(data, n):
        said = ", ".join(f"{k} from {low:g} to {high:g}" for k, (low, high) in view.setup["plausible"].items())
        raise SurefootError(
            f"{id}: got {', '.join(f'{k} {data[k] / n:g}' for k in ('effect', 'harm') if k in data)}; "
            f"this study expects {said}: {confirm}"
        )


def corrected(view: View, data: Mapping[str, Any], confirmed: bool = False) -> dict[str, Any]:
    subject = view.subject(data.get("id"))
    id, given = view.identify(subject), view.find(subject)
    if subject in view.gone:
        raise SurefootError(f"{id} was voided: there is no reading to correct")
    new, old = readings_in(view, subject, data), view.reading(subject)
    if not old:
        raise SurefootError(f"{id} has no reading yet: use tell")
    for key in new:
        if key != "dose" and key not in old:
            raise SurefootError(f"{id}: its {key} has not been told yet: use tell")
    old.setdefault("dose", given.dose[given.arm(subject)])
    changed = {key: value for key, value in new.items() if old[key] != value}
    if not changed:
        raise SurefootError(f"{id}: nothing to correct; the readings are as given already")
    out = {"id": subject, **changed, "was": {key: old[key] for key in changed}}
    if not confirmed:
        _check_plausible(view, id, changed, changed.get("n") or old.get("n", 1), AGAIN)
        _check_size(view, subject, changed.get("n", 0), AGAIN)
    return out | {"confirmed": True} if confirmed else out


def undone(view: View, was: Mapping[str, Any] | None) -> str | None:
    """In words, that an ending is not what it was before a correction."""
    now = view.concluded
    if was is None or (now is not None and all(now[key] == was[key] for key in ("ending", "winner"))):
        return None
    before, after = (
        x and (x["ending"] if x["winner"] is None else view.problem.names[x["winner"]]) for x in (was, now)
    )
    stands = (
        f"it now ends with {after}" if now else "it runs again" if view.standing == "running" else "it is open again"
    )
    return f"the study had ended with {before}; {stands}, and certificates from before the correction are superseded"


def voided(view: View, id: Any) -> dict[str, Any]:
    check_open(view)
    subject = view.subject(id)
    if subject in view.gone:
        raise SurefootError(f"{id} was voided before")
    if view.reading(subject):
        raise SurefootError(f"{id} has a reading: it cannot be voided; if the reading is wrong, use correct")
    if (given := view.find(subject)).closed or given.withdrawn:
        raise SurefootError(f"{id} was withdrawn: there is nothing to void")
    return {"id": subject}


def paused(view: View) -> dict[str, Any]:
    check_open(view)
    if view.standing != "running":
        raise SurefootError(f"study {view.name!r} is {view.standing}: there is nothing to pause")
    return {"by": "actor"}


def resumed(view: View, voids: Any, who: str, actors: set[str]) -> dict[str, Any]:
    """`actors`: all who ever did something in the study."""
    check_open(view)
    if not view.paused:
        raise SurefootError(f"study {view.name!r} is {view.standing}, not paused: there is nothing to resume")
    others = sorted(actor for actor in actors if skeleton(actor) != skeleton(who))
    if view.lifts_own_alarm(who) and others:
        raise SurefootError(
            f"a reading that {who} told made a watch pause the study: another actor lifts that ({', '.join(others)}): "
            "who that is says --actor, in Python actor="
        )
    if voids is None:
        return {}
    if view.setup.get("blocks"):
        raise SurefootError("a block that was voided is given again; leave out what it would count as")
    if "open" not in view.gone.values():
        raise SurefootError("nobody has dropped out since the last decision: leave out what a void counts as")
    if not isinstance(voids, Mapping) or set(voids) != {"effect", "harm"}:
        raise SurefootError(f"voids must give an effect and a harm; got {voids!r}")
    return {"voids": {key: reading(view, key, voids[key]) for key in READINGS}}


def returned(view: View, ids: list[Any]) -> dict[str, Any]:
    subjects = sorted({view.subject(id) for id in ids})
    for subject in subjects:
        if subject not in view.reserved or view.reading(subject) or subject in view.gone:
            raise SurefootError(f"{view.identify(subject)} is not reserved, or was used: it cannot be returned")
    return {"ids": subjects}


def reading(view: View, key: str, value: Any) -> float:
    return number(key, value) if key == "dose" else view.problem.noises[key == "harm"].reading(key, value)


def readings_in(view: View, subject: int, data: Mapping[str, Any]) -> dict[str, float]:
    """What somebody tells of a subject, as the journal has it: levels by their places."""
    given = {k: data[k] for k in ("effect", "harm", "dose") if data.get(k) is not None}
    if "dose" in given:
        given["dose"] = view.problem.arms[view.find(subject).arm(subject)].place(given["dose"])
    if not view.find(subject).blocks:
        if extra := [key for key in COLUMNS if data.get(key) is not None]:
            raise SurefootError(f"{', '.join(extra)}: this study is told subject by subject, not in blocks")
        return {k: reading(view, k, x) for k, x in given.items()}
    dose = {"dose": number("dose", given["dose"])} if "dose" in given else {}
    told = view.reading(subject)
    try:
        found = block_in(view.problem.noises, data, told.get("n"), view.squares)
        stale = [key for key in READINGS if f"{key}_spread" in told and key not in found]
        if stale and found.get("n", told["n"]) != told["n"]:
            raise SurefootError(f"n alone leaves {' and '.join(stale)} as of {told['n']}: tell all of it anew")
        return found | dose
    except SurefootError as error:
        raise SurefootError(f"{view.identify(subject)}: {error}") from None


def _as_told(view: View, subject: int, key: str, value: float) -> str:
    said = view.problem.arms[view.find(subject).arm(subject)].said(value) if key == "dose" else value
    return said if isinstance(said, str) else f"{said:.12g}"
