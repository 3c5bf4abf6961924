"""The pages that write: enter readings one by one or as a table, and change what was told. Each does one call of Study.

What is told carries a key of its form into the journal; other commands keep theirs beside it. So a double click, a
reload or a second try after a lost connection never counts twice.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import Response

from ..checks import path_of
from ..problem import SurefootError
from ..study import Study
from ..study.blocks import COLUMNS
from ..study.status import to_do
from ..study.text import table
from . import gate
from .access import ENTRY
from .gate import CHANGE, ENTER, Ask, Count, Denied, fresh_key, needs
from .pages import made

router = APIRouter(include_in_schema=False)
ROWS = 50  # of the worklist on a page
COMMANDS = {
    "correct": "Correct a reading",
    "void": "A subject dropped out",
    "pause": "Pause the study",
    "resume": "Go on after a pause",
    "stop": "End the study for good",
    "give_back": "Return reserved assignments",
}


def once(ask: Ask, do: Callable[[], str], to: str) -> Response:
    """Do it, unless a form with this key has been done: then say the same again."""
    if not ask.field("key"):
        raise Denied(400, "An old form", "the form has no key: load the page again")
    what = [ask.request.url.path, ask.fields.get("command", "")]
    return ask.site.back(to, gate.once(ask, f"{ask.me.name} {ask.fields['key']}", what, do)[0])


# Enter
def _desk(ask: Ask, site: str | None) -> str | None:
    """Whose assignments are shown: of who enters data always their own."""
    return ask.me.desk if ask.me.role == ENTRY else site or None


@router.get("/study/{part}/enter")
def enter_page(part: str, ask: Ask = needs(*ENTER), site: str = "", page: Count = 1) -> Response:
    return _enter(ask, ask.site.hub.study(part), _desk(ask, site), page)


def _enter(ask: Ask, study: Study, site: str | None, page: int = 1, status: int = 200, **more: Any) -> Response:
    page = max(page, 1)
    trouble, rows = "", []
    try:
        rows = study.ask(min(page, 200) * ROWS + 1, site=site)
    except SurefootError as error:
        trouble = "" if ask.me.role == ENTRY else str(error)
    due = study.awaiting(site=site)
    first = (page - 1) * ROWS
    facts = study.look(
        lambda view: {
            "standing": view.standing,
            "sites": sorted(set(view.reserved.values())),
            "tag": view.tag,
            "blocks": view.setup.get("blocks"),
        }
    )
    show = {"checked": None, "text": "", "wrong": "", "paste_open": False} | more
    return ask.site.render(
        ask, "enter.html", status, study=study.name, tab="enter", rows=rows[first : first + ROWS],
        due=due[:ROWS], due_more=max(len(due) - ROWS, 0), desk=site, facts=facts, page=page,
        more=len(rows) > first + ROWS, blocks=facts["blocks"], trouble=trouble, row_error=None, **show,
    )  # fmt: skip


@router.post("/study/{part}/take")
def take(part: str, ask: Ask = needs(*ENTER)) -> Response:
    """Reserve the next assignments for a site."""
    study = ask.site.hub.study(part)
    site = _desk(ask, ask.field("site"))
    if site is None:
        raise SurefootError("for which site? give its name")
    count = ask.number("count")

    def do() -> str:
        if not isinstance(count, float) or count != int(count) or not 1 <= count <= 500:
            raise SurefootError(f"how many? a whole number from 1 to 500; got {ask.field('count')!r}")
        found = study.desk(site, actor=ask.me.actor).next(int(count))
        ask.site.hub.touched(study.name)
        return f"{len(found)} reserved for {site}." if found else "No assignment is open at present."

    to = f"/study/{path_of(study.name)}/enter"
    return once(ask, do, to if ask.me.role == ENTRY else f"{to}?site={quote(site, safe='')}")


@router.post("/study/{part}/tell")
def tell(part: str, ask: Ask = needs(*ENTER)) -> Response:
    study, f = ask.site.hub.study(part), ask
    id, key = f.field("id") or "", f.field("key")
    try:
        given = {k: f.number(k) for k in ("effect", "harm", "dose", *COLUMNS)}
        more = {"key": key, "confirm": f.field("confirm"), "actor": ask.me.actor}
        if ask.me.role == ENTRY:
            study.desk(ask.me.desk, actor=ask.me.actor).check(id)
        apart = study.tell(id, **given, **more)
    except SurefootError as error:
        row = {"id": id, "arm": f.field("arm") or "", "dose": f.field("assigned") or "", "key": key}
        row |= {k: f.fields.get(k, "") for k in ("effect", "harm", "confirm", "given", *COLUMNS)}
        row |= {"other": f.fields.get("dose", "")}
        if not ask.htmx:
            raise
        return ask.site.render(
            ask, "row.html", 422, row=row, study=study.name, row_error=str(error), late=bool(f.field("due")),
            blocks=f.field("blocks"),
        )  # fmt: skip
    ask.site.hub.heads.pop(study.name, None)
    said = "harm told, effect due" if given["effect"] is None and not f.field("due") else "told"
    if ask.htmx:
        return ask.site.render(
            ask, "row_done.html", id=id, arm=f.field("arm") or "", done=said, given=given, apart=apart
        )
    return ask.site.back(
        f"/study/{path_of(study.name)}/enter", f"{id}: {said}.{f' Deviation: {apart}.' if apart else ''}"
    )


@router.post("/study/{part}/dropped")
def dropped(part: str, ask: Ask = needs(*ENTER)) -> Response:
    """Somebody at the desk says that a subject dropped out before any reading."""
    study, id = ask.site.hub.study(part), ask.field("id") or ""

    def do() -> str:
        if ask.me.role == ENTRY:
            study.desk(ask.me.desk, actor=ask.me.actor).void(id, ask.fields.get("reason", ""))
        else:
            study.void(id, ask.fields.get("reason", ""), actor=ask.me.actor)
        ask.site.hub.touched(study.name)
        return f"{id} is void."

    return once(ask, do, f"/study/{path_of(study.name)}/enter")


@router.post("/study/{part}/paste")
def paste(part: str, ask: Ask = needs(*ENTER)) -> Response:
    """A table from a spreadsheet: checked first, then told as a whole or not at all."""
    study, text = ask.site.hub.study(part), ask.fields.get("text", "")
    site = _desk(ask, ask.field("site"))
    try:
        tidy = _commas(text)
        _check_own(ask, study, tidy)
        if ask.field("step") == "tell":
            new = study.tell_many(io.StringIO(tidy), actor=ask.me.actor)
            ask.site.hub.touched(study.name)
            said = f"{new:,} told." if new else "All of these were told before: nothing is new."
            return ask.site.back(f"/study/{path_of(study.name)}/enter", said)
        found = _rehearsed(ask, study, "tell_many", {"text": tidy})
    except SurefootError as error:
        return _enter(ask, study, site, status=422, wrong=str(error), text=text, paste_open=True)
    found["rows"] = sum(1 for _ in table(io.StringIO(tidy)))
    return _enter(ask, study, site, checked=found, text=text, paste_open=True)


def _commas(text: str) -> str:
    """What a spreadsheet puts on the clipboard has tabs; some write semicolons, and commas in numbers."""
    head = text.lstrip("\ufeff").partition("\n")[0]
    sign = "\t" if "\t" in head else ";" if ";" in head else ","
    if sign == ",":
        return text.lstrip("\ufeff")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    try:
        for cells in csv.reader(io.StringIO(text.lstrip("\ufeff")), delimiter=sign, strict=True):
            writer.writerow(
                [c.replace(",", ".") if c.replace(",", "").replace("-", "").isdigit() else c for c in cells]
            )
    except csv.Error as error:
        raise SurefootError(f"the table cannot be read: {error}") from error
    return out.getvalue()


def _check_own(ask: Ask, study: Study, text: str) -> None:
    if ask.me.role != ENTRY:
        return
    desk, wrong = study.desk(ask.me.desk, actor=ask.me.actor), []
    for name, row in table(io.StringIO(text)):
        try:
            desk.check(row.get("id"))
        except SurefootError as error:
            wrong.append(f"{name}: {error}")
    if wrong:
        raise SurefootError("nothing was written; correct and send it again:\n" + "\n".join(wrong))


def _rehearsed(ask: Ask, study: Study, command: str, arguments: dict[str, Any]) -> Any:
    return made(ask, study, "look", command=command, actor=ask.me.actor, arguments=arguments)


# Change
@router.get("/study/{part}/change")
def change_page(part: str, ask: Ask = needs(*CHANGE), id: str = "") -> Response:
    return _change(ask, ask.site.hub.study(part), id=id)


def _change(ask: Ask, study: Study, status: int = 200, **more: Any) -> Response:
    facts = study.look(
        lambda view: {
            "standing": view.standing,
            "to_do": to_do(view),
            "dropped": "open" in view.gone.values(),
            "blocks": view.setup.get("blocks"),
        }
    )
    show: dict[str, Any] = {"wrong": "", "id": "", "f": {}} | facts | more
    return ask.site.render(ask, "change.html", status, study=study.name, tab="change", **show)


@router.post("/study/{part}/change")
def change(part: str, ask: Ask = needs(*CHANGE)) -> Response:
    """First what it would come to, then the command itself."""
    study, command = ask.site.hub.study(part), ask.fields.get("command", "")
    if command not in COMMANDS:
        raise Denied(400, "Not understood", "there is no such change")
    try:
        arguments = _arguments(ask, command)
        if ask.field("step") != "do":
            found = _rehearsed(ask, study, command, arguments)
            return ask.site.render(
                ask, "look.html", study=study.name, tab="change", found=found, command=command, name=COMMANDS[command],
                fields={k: x for k, x in ask.fields.items() if k not in ("token", "key", "step")}, key=fresh_key(),
            )  # fmt: skip

        def do() -> str:
            said = getattr(study, command)(**arguments, actor=ask.me.actor)
            ask.site.hub.touched(study.name)
            return f"Done: {COMMANDS[command].lower()}." + (f" {said}." if isinstance(said, str) else "")

        return once(ask, do, f"/study/{path_of(study.name)}")
    except SurefootError as error:
        return _change(ask, study, 422, wrong=str(error), id=ask.fields.get("id", ""), f=ask.fields)


def _arguments(ask: Ask, command: str) -> dict[str, Any]:
    why = ask.fields.get("reason", "")
    if not why.strip():
        raise SurefootError("a reason is needed: it goes into the journal")
    if command == "correct":
        new = {k: ask.number(k) for k in ("effect", "harm", "dose", *COLUMNS)}
        return {"id": ask.field("id") or "", **new, "reason": why, "confirm": ask.field("confirm") is not None}
    if command == "void":
        return {"id": ask.field("id") or "", "reason": why}
    if command == "give_back":
        return {"ids": (ask.field("ids") or "").replace(",", " ").split(), "why": why}
    if command == "resume":
        voids = {k: ask.number(f"void_{k}") for k in ("effect", "harm")}
        return {"reason": why, "voids": voids if any(x is not None for x in voids.values()) else None}
    return {"reason": why}
