"""A study in plain numbers: where it stands, and what was read of whom."""

from __future__ import annotations

import math
from typing import Any

from ..designs.base import STANDINGS
from .fold import View


def status(view: View, trouble: str | None) -> dict[str, Any]:
    """Where a study stands, in plain numbers."""
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
        "study": view.name,
        "standing": view.standing,
        "holds": True,
        "trouble": trouble,
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


def _waiting(view: View) -> set[int]:
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
            elif status == "open" and (given.closed or view.standing in ("ended", "stopped")):
                status = "withdrawn"
            row: dict[str, Any] = {"id": view.identify(subject), "subject": subject, "cohort": given.number}
            row |= {"n": told.get("n"), "asked": given.n[arm]} if given.blocks else {}
            it = view.problem.arms[arm]
            row |= {"arm": it.name, "assigned": it.said(given.dose[arm])}
            row |= {"dose": it.said(told.get("dose", given.dose[arm])) if told else None}
            row |= {"effect": told.get("effect"), "harm": told.get("harm"), "status": status}
            rows.append(row | {"site": view.reserved.get(subject)})
    return rows
