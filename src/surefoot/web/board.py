"""What the pages show of a study, as plain data: functions of its view, quick whatever its length."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from ..designs.base import STANDINGS
from ..problem import Arm, Problem
from ..study.certificate import _words as conclusion
from ..study.fold import View
from ..study.page import STANDING
from ..study.published import absent
from ..study.status import awaiting, doses, grouped, status, waiting
from ..study.story import story_data
from .charts import HUGE, POINTS

SHOWN = 12  # arms in pictures


def summary(view: View) -> dict[str, Any]:
    """A line of the list of studies."""
    standing = view.state.standing[0]
    return {
        "study": view.name,
        "standing": view.standing,
        "sentence": sentence(view),
        "arms": len(view.problem.arms),
        "in": int((standing == 0).sum()),
        "subjects": sum(row["n"] for rows in doses(view) for row in rows),
        "open": still_open(view),
        "awaiting": len(awaiting(view)),
        "alarms": len(view.fired),
    }


def sentence(view: View) -> str:
    """How it stands, in one sentence."""
    p = view.problem
    if view.stopped:
        return f"Stopped for good: {view.stopped.reason}."
    if view.paused:
        return "Paused: " + "; ".join(str(e.reason) for e in view.paused) + "."
    if view.concluded:
        winner = view.concluded["winner"]
        return "Ended: " + conclusion(view, view.concluded["ending"], -1 if winner is None else winner)
    left = int((view.state.standing[0] == 0).sum())
    many = f"{left} of {len(p.arms)} arms still in" if left < len(p.arms) else f"all {len(p.arms)} arms still in"
    return f"Running: cohort {len(view.cohorts)}, {many}, {count(still_open(view), 'assignment')} open."


def count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def still_open(view: View) -> int:
    """Assignments that have no reading yet, whoever they are reserved for."""
    return len(waiting(view)) if view.standing in ("running", "paused") else 0


def harm_at(problem: Problem, arm: int, safe: float, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Harm at the safe dose, as read: along the line through 0, or at the highest dose given that is not above."""
    if problem.shape == "linear":
        square = sum(r["n"] * r["dose"] ** 2 for r in rows)
        if not square or not math.isfinite(safe):
            return None
        slope = sum(r["n"] * r["dose"] * r["harm"] for r in rows) / square
        return {"value": slope * safe, "n": sum(r["n"] for r in rows), "how": "by the line through its readings"}
    below = [r for r in rows if r["dose"] <= safe + 1e-9 * (1 + abs(safe))]
    if not below:
        return None
    label = said(problem.arms[arm], below[-1]["dose"])
    return {"value": below[-1]["harm"], "n": below[-1]["n"], "how": f"mean of {below[-1]['n']:,} at {label}"}


def board(view: View) -> dict[str, Any]:
    """Everything on the page of the meeting but what looks ahead."""
    p, verdict, given = view.problem, view.design.verdict(view.state), view.open
    at, told, found = doses(view), story_data(view, POINTS), status(view, view.trouble or absent(view.design))
    winner = view.concluded["winner"] if view.concluded else None
    open_ = waiting(view)
    waits = Counter(a for s, a in given.subjects() if s in open_) if given else Counter[int]()
    arms = []
    for i, (it, row) in enumerate(zip(p.arms, found["arms"], strict=True)):
        standing = "winner" if i == winner else row["standing"]
        safe = float(verdict.safe[0, i])
        arms.append(
            {
                "arm": it.name,
                "standing": standing,
                "words": STANDING[standing],
                "sure": it.sure(safe) if math.isfinite(safe) else "",
                "shown": said(it, safe) if math.isfinite(safe) and standing != "stopped" else "none",
                "tried": said(it, at[i][-1]["dose"]) if at[i] and at[i][-1]["dose"] > safe else None,
                "safe": safe,
                "harm": harm_at(p, i, safe, at[i]),
                "lower": row["lower"],
                "upper": row["upper"],
                "readings": row["pulls"],
                "why": so_far(verdict, i) if standing == "active" else row["why"].partition(": ")[2],
                "points": grouped(at[i]),
                "max": it.largest if math.isfinite(it.largest) else None,
                "labels": [str(x) for x in it.labels] if it.labels else None,
            }
        )
    return found | {
        "sentence": sentence(view),
        "recommendation": brief(found["recommendation"]),
        "limit": p.limit,
        "ceiling": p.ceiling,
        "slack": p.slack,
        "delta": p.delta,
        "open": still_open(view),
        "arms": arms,
        "next": [
            {"arm": it.name, "dose": said(it, given.dose[i]), "n": given.n[i]} | {"open": waits[i]}
            for i, it in enumerate(p.arms)
            if given.n[i]
        ]
        if given and view.standing in ("running", "paused")
        else [],
        "alarms": alarms(view),
        "story": {i: told[i] for i in shown(view)},
    }


def brief(text: str, most: int = 300) -> str:
    text = text if len(text) <= most else text[:most].rpartition(", ")[0] + " …"
    return re.sub(r"(?<=[ (])-(?=[0-9])", "\N{MINUS SIGN}", text)


def so_far(verdict: Any, arm: int) -> str:
    """What is known of an arm that is still in, in words."""
    it = verdict.problem.arms[arm]
    low, high, safe, unsafe = (float(getattr(verdict, k)[0, arm]) for k in ("lower", "upper", "safe", "unsafe"))
    known = f"value at least {low:.3g}" + (f", at most {high:.3g}" if math.isfinite(high) else "")
    over = f", too harmful above {said(it, unsafe)}" if safe < unsafe < min(it.largest, HUGE) else ""
    return (known if math.isfinite(low) else "nothing is known of its value yet") + f"; {it.sure(safe)}{over}"


def said(arm: Arm, dose: float) -> str:
    """A dose for people, with a minus sign that is one."""
    return arm.label(dose) if arm.labels else arm.label(dose).replace("-", "\N{MINUS SIGN}")


def alarms(view: View, most: int = 10) -> list[dict[str, Any]]:
    found = [e for e in view.notes if e.kind in ("warned", "paused") and e.data.get("by") != "actor"]
    lifted = {e.seq for e in view.notes if e.kind == "resumed"}
    return [
        {"at": e.at, "what": e.reason, "kind": e.kind, "over": any(seq > e.seq for seq in lifted)}
        for e in reversed(found[-most:])
    ]


def shown(view: View) -> list[int]:
    """The arms that pictures show: the winner, those still in, the others, in their order."""
    winner = view.concluded["winner"] if view.concluded else None
    standing = view.state.standing[0]
    order = sorted(range(len(standing)), key=lambda i: (i != winner, int(standing[i]) != 0, i))
    return sorted(order[:SHOWN])


def since(view: View, seq: int) -> list[dict[str, Any]]:
    """What is different of each arm from how it stood when event `seq` was the last."""
    k = next((k for k, c in enumerate(view.cohorts) if c.seq > seq), None)
    if k is None:
        return []
    then, now = view.design.verdict(view.before[k]), view.design.verdict(view.state)
    rows = []
    for i, it in enumerate(view.problem.arms):
        was, is_ = (STANDING[STANDINGS[int(v.standing[0, i])]] for v in (then, now))
        a, b = (said(it, float(v.safe[0, i])) for v in (then, now))
        changes = [f"{was} → {is_}"] if was != is_ else []
        changes += [f"safe dose {a} → {b}"] if a != b else []
        if changes:
            rows.append({"arm": it.name, "changes": changes})
    return rows
