"""What a command would change, without changing it: the same command, on a journal that forgets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .certificate import Certificate
from .rows import Rows, Transaction
from .sql import SqlJournal
from .status import status
from .study import Study


class Rehearsal(SqlJournal):
    """Reads a journal like any other, holds no lock, and writes nothing."""

    @contextmanager
    def writing(self, study: str) -> Iterator[Transaction]:
        with self._reading() as connection:
            yield Transaction(Rows(connection), study)

    def keep(self, study: str, body: bytes) -> None:
        pass


def rehearse(url: str | Path, name: str, command: str, *, actor: str, **arguments: Any) -> dict[str, Any]:
    """What a command (a method of Study) would come to: the events it would add, each arm before and after, and the
    deviations that it would lay open. Raises what the command would raise."""
    study = Study(Rehearsal(url), name, actor)
    before, seq = study.status(), study.look(lambda view: view.seq)
    known = study.certificate().content["deviations"]
    told = getattr(study, command)(**arguments)
    after = status(study._view, None)
    return {
        "seq": seq,
        "told": told if isinstance(told, int) else None,
        "standing": [before["standing"], after["standing"]],
        "reasons": after["reasons"],
        "winner": [before["winner"], after["winner"]],
        "cohort": [before["cohort"], after["cohort"]],
        "arms": [
            {"arm": a["arm"]} | {k: [a[k], b[k]] for k in ("standing", "safe", "certified", "lower", "upper", "dose")}
            for a, b in zip(before["arms"], after["arms"], strict=True)
        ],
        "deviations": [d for d in Certificate.of(study._view).content["deviations"] if d not in known],
    }


__all__ = ["Rehearsal", "rehearse"]
