"""What somebody who treats subjects and enters data sees of a study."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..problem import SurefootError
from .status import Assignment, Paused

if TYPE_CHECKING:
    from .study import Study


class Desk:
    """For who treats subjects and enters data at one site: arm and dose of the subjects that are reserved for it.

    No bounds, no seed, no order of those to come: they would tell what comes next, and how it goes. It keeps them from
    being seen by chance; who can read the database can read them all.
    """

    def __init__(self, study: Study, site: str, actor: str):
        self.site, self.actor, self._study = site, actor, study

    def next(self, count: int = 1) -> list[dict[str, Any]]:
        """So many more subjects, reserved for this site."""
        return self._brief(lambda: self._study.assign(count, self.site, actor=self.actor))

    def open(self) -> list[dict[str, Any]]:
        """Those that are reserved for this site and have no reading yet."""
        return self._brief(lambda: self._study.ask(site=self.site) if self._known() else self._study.ask(1)[:0])

    def awaiting(self) -> list[dict[str, Any]]:
        """Those of this site whose effect is due."""
        return self._brief(lambda: self._study.awaiting(site=self.site))

    def tell(self, id: str, effect: Any = None, harm: Any = None, dose: Any = None, **more: Any) -> str | None:
        self.check(id)
        return self._study.tell(id, effect, harm, dose, actor=self.actor, **more)

    def void(self, id: str, reason: str) -> None:
        self.check(id)
        self._study.void(id, reason, actor=self.actor)

    def check(self, *ids: Any) -> None:
        """Whether these are reserved for this site; about others it says nothing."""
        wrong = self._study.look(lambda view: [id for id in ids if view.reserved.get(view.subject(id)) != self.site])
        if wrong:
            raise SurefootError(f"{wrong[0]} is not reserved for {self.site}")

    def _known(self) -> bool:
        """Whether anything was ever reserved for this site."""
        return self._study.look(lambda view: self.site in view.reserved.values())

    def _brief(self, find: Callable[[], list[Assignment]]) -> list[dict[str, Any]]:
        try:
            found = find()
        except Paused:  # the reason may say how it goes
            raise Paused(f"study {self._study.name!r} is paused: nothing is given out until it is resumed") from None
        keys = ("id", "arm", "dose", "n") if self._study.view.setup.get("blocks") else ("id", "arm", "dose")
        return [{key: getattr(a, key) for key in keys} for a in found]
