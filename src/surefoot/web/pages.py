"""The pages that show: studies, the board, the journal, downloads, and what works in the background."""

from __future__ import annotations

import asyncio
import hashlib
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import APIRouter
from markupsafe import Markup
from starlette.responses import Response, StreamingResponse

from ..checks import path_of
from ..problem import SurefootError
from ..study import Study
from ..study.page import STYLE
from ..study.status import content
from . import board, charts
from .access import ENTRY
from .gate import ANY, CHANGE, READ, Ask, Count, Denied, identify, needs
from .jobs import Job

router = APIRouter(include_in_schema=False)
PAGE = 25  # studies on a page
EVENTS = 100
OFTEN_ENOUGH = 2.0  # seconds between two refreshes of a page that is open
KINDS = (
    "created", "opened", "told", "corrected", "voided", "paused", "resumed", "stopped", "closed", "ended", "assigned",
    "returned", "warned", "adopted", "exported", "imported", "checkpointed", "clock",
)  # fmt: skip


def not_changed(ask: Ask, tag: str) -> bool:
    """Whether the reader has this already."""
    given = ask.request.headers.get("if-none-match", "")
    return tag in [x.strip() for x in given.split(",")]


def etag(*parts: Any) -> str:
    return 'W/"' + hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:24] + '"'


@router.get("/")
def studies(ask: Ask = needs(*ANY), search: str = "", page: Count = 1) -> Response:
    hub = ask.site.hub
    names = [name for name in hub.journal.names() if search.casefold() in name.casefold()]
    page = min(max(page, 1), max(-(-len(names) // PAGE), 1))
    rows = []
    for name in names[(page - 1) * PAGE : page * PAGE]:
        study = hub.named(name)
        try:
            found = hub.worked_out(study, "summary", partial(study.look, board.summary))[1]
        except SurefootError as error:
            found = {"study": name, "standing": "does not hold", "sentence": str(error)}
        if ask.me.role == ENTRY:  # how it goes is not for who enters
            found = {"study": name, "standing": found["standing"], "mine": len(_mine(study, ask))}
        rows.append(found | {"at": hub.head(name)[2]})
    return ask.site.render(
        ask, "studies.html", rows=rows, search=search, page=page, pages=max(-(-len(names) // PAGE), 1), count=len(names)
    )


def _mine(study: Study, ask: Ask) -> list[Any]:
    try:
        return study.ask(site=ask.me.desk)
    except SurefootError:
        return []


# The board
@router.get("/study/{part}")
def board_page(part: str, ask: Ask = needs(*ANY)) -> Response:
    if ask.me.role == ENTRY:
        return ask.site.back(f"/study/{path_of(ask.site.hub.study(part).name)}/enter")
    study = ask.site.hub.study(part)
    seq, html = _board(ask, study)
    return ask.site.render(ask, "board.html", study=study.name, seq=seq, fragment=html, tab="board")


@router.get("/study/{part}/board")
async def board_fragment(part: str, ask: Ask = needs(*READ)) -> Response:
    """What changes when events come: the rest of the page stays as it is."""
    if found := ask.site.hub.recent(part, "board"):
        study, seq, html = found
        html = _again(ask, study, seq, html)
    else:
        study = await to_thread.run_sync(ask.site.hub.study, part)
        seq, html = await to_thread.run_sync(_board, ask, study)
    tag = etag(study.name, seq, ask.site.hub.head(study.name)[0] > seq)
    if not_changed(ask, tag):
        return Response(status_code=304, headers={"etag": tag})
    return Response(str(html), headers={"etag": tag}, media_type="text/html")


def _board(ask: Ask, study: Study) -> tuple[int, Markup]:
    site = ask.site

    def make() -> Markup:
        try:
            found = study.look(board.board)
        except SurefootError as error:
            return Markup(site.pages.get_template("broken.html").render(study=study.name, error=str(error)))
        met = site.access.meeting(study.name)
        changed = study.look(lambda view: board.since(view, met.seq)) if met else []
        counts = site.hub.journal.counts(study.name, met.seq) if met else {}
        return Markup(
            site.pages.get_template("board_part.html").render(
                b=found, met=met, changed=changed, counts=counts, pictures=charts.story_pictures(found),
                ends=charts.value_ends(found["arms"]), site=site, study=study.name,
            )
        )  # fmt: skip

    seq, html = site.hub.worked_out(study, "board", make)
    return seq, _again(ask, study, seq, html)


def _again(ask: Ask, study: Study, seq: int, html: Markup) -> Markup:
    """What was worked out a moment ago, for an event before the last: the page asks once more."""
    if seq >= ask.site.hub.head(study.name)[0]:
        return html
    again = '<span hx-get="/study/{}/board" hx-trigger="load delay:2s" hx-target="#board"></span>'
    return html + Markup(again).format(path_of(study.name))


@router.get("/study/{part}/stream")
async def stream(part: str, ask: Ask = needs(*READ), since: Count = 0) -> Response:
    """Tells an open page that there are new events; not which."""
    site = ask.site
    study = await to_thread.run_sync(site.hub.study, part)
    last = ask.request.headers.get("last-event-id", "")
    since = max(since, int(last) if last.isdecimal() and len(last) < 18 else 0)

    async def events() -> AsyncIterator[str]:
        yield "retry: 1000\n\n"
        async for head in site.watchers.changes(study.name, since):
            who = await to_thread.run_sync(identify, ask.request, site.access, site.safety, False)
            if who is None or who.role not in READ:
                return  # logged out, or another role by now
            yield f"id: {head}\nevent: changed\ndata: {head}\n\n" if head is not None else ": still here\n\n"
            if head is not None:
                await asyncio.sleep(OFTEN_ENOUGH)

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events(), media_type="text/event-stream", headers=headers)


@router.post("/study/{part}/meeting")
def meeting(part: str, ask: Ask = needs(*CHANGE)) -> Response:
    study = ask.site.hub.study(part)
    ask.site.access.meet(study.name, ask.site.hub.head(study.name, now=True)[0], ask.me.name)
    ask.site.hub.touched(study.name)
    return ask.site.back(f"/study/{path_of(study.name)}", "From now on the board says what changed since this moment.")


# What works in the background
def begin(ask: Ask, study: Study, kind: str, **asked: Any) -> Response:
    job = ask.site.jobs.start(kind, ask.me.name, study.name, url=ask.site.url, study=study.name, **asked)
    return show_job(ask, job)


def show_job(ask: Ask, job: Job) -> Response:
    return ask.site.render(ask, "job_part.html" if ask.htmx else "job.html", job=job, plain=not ask.htmx)


@router.get("/job/{id}")
def job_page(id: str, ask: Ask = needs(*READ)) -> Response:
    return show_job(ask, _job(ask, id))


@router.post("/job/{id}/cancel")
def job_cancel(id: str, ask: Ask = needs(*READ)) -> Response:
    job = _job(ask, id)
    ask.site.jobs.cancel(job)
    return show_job(ask, job)


def _job(ask: Ask, id: str) -> Job:
    job = ask.site.jobs.find(id, ask.me.name)
    if job is None:
        raise Denied(404, "Not there", "this was worked out for somebody else, or too long ago")
    return job


@router.post("/study/{part}/preview")
def preview(part: str, ask: Ask = needs(*READ)) -> Response:
    return begin(ask, ask.site.hub.study(part), "preview")


@router.post("/study/{part}/forecast")
def forecast(part: str, ask: Ask = needs(*READ)) -> Response:
    trials = ask.number("trials") or 400.0
    if not isinstance(trials, float):
        raise SurefootError(f"how many trials? a whole number; got {trials!r}")
    return begin(ask, ask.site.hub.study(part), "forecast", trials=int(trials), text=ask.field("text"))


@router.post("/study/{part}/verify")
def verify(part: str, ask: Ask = needs(*READ)) -> Response:
    return begin(ask, ask.site.hub.study(part), "verify")


# The journal
@router.get("/study/{part}/journal")
def journal(
    part: str, ask: Ask = needs(*READ), before: Count | None = None, kind: str = "", words: str = ""
) -> Response:
    study = ask.site.hub.study(part)
    kind = kind if kind in KINDS else ""
    events = ask.site.hub.journal.page(study.name, before, EVENTS + 1, kind or None, words.strip()[:200] or None)
    try:
        said = study.look(lambda view: [content(view, e) for e in events[:EVENTS]])
    except SurefootError:  # a journal that does not hold is shown as it stands
        said = [content(None, e) for e in events[:EVENTS]]
    rows = [e._asdict() | {"content": words} for e, words in zip(events, said, strict=False)]
    more = events[EVENTS - 1].seq if len(events) > EVENTS else None
    return ask.site.render(
        ask, "journal.html", study=study.name, events=rows, more=more, kind=kind, words=words, kinds=KINDS,
        before=before, tab="journal", head=ask.site.hub.head(study.name),
    )  # fmt: skip


# Downloads: every one is made in a process of its own, and has a name that is ours
def _file(name: str, text: str, kind: str, **headers: str) -> Response:
    headers |= {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)


def made(ask: Ask, study: Study, kind: str, **asked: Any) -> Any:
    """What a job makes, waited for."""
    job = ask.site.jobs.start(kind, ask.me.actor, study.name, url=ask.site.url, study=study.name, **asked)
    return ask.site.jobs.wait(job, 300.0)


@router.get("/study/{part}/certificate")
def certificate_page(part: str, ask: Ask = needs(*READ)) -> Response:
    return styled(made(ask, ask.site.hub.study(part), "certificate")["html"], STYLE)


def styled(html: str, style: str) -> Response:
    """A page with a style of its own, which its policy names by its hash."""
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; frame-ancestors 'none'"
    return Response(html, media_type="text/html", headers={"content-security-policy": policy})


@router.get("/study/{part}/certificate.html")
def certificate_html(part: str, ask: Ask = needs(*READ)) -> Response:
    return _file("certificate.html", made(ask, ask.site.hub.study(part), "certificate")["html"], "text/html")


@router.get("/study/{part}/certificate.json")
def certificate_json(part: str, ask: Ask = needs(*READ)) -> Response:
    return _file("certificate.json", made(ask, ask.site.hub.study(part), "certificate")["json"], "application/json")


@router.get("/study/{part}/readings.csv")
def readings(part: str, ask: Ask = needs(*READ)) -> Response:
    return _file("readings.csv", made(ask, ask.site.hub.study(part), "readings"), "text/csv; charset=utf-8")


@router.post("/study/{part}/export")
def export(part: str, ask: Ask = needs(*CHANGE)) -> Response:
    """Everything, as JSON. That it was is an event, so it is asked for by a form."""
    study = ask.site.hub.study(part)
    data = study.export(actor=ask.me.actor)
    return _file("study.json", json.dumps(data, allow_nan=False) + "\n", "application/json")


@router.post("/study/{part}/checkpoint")
def checkpoint(part: str, ask: Ask = needs(*CHANGE)) -> Response:
    study = ask.site.hub.study(part)
    if ask.site.key is None:
        raise SurefootError("this server has no key to sign with: start it with --key FILE (surefoot key new)")
    note = study.checkpoint(ask.site.key, actor=ask.me.actor)
    return _file("checkpoint.json", json.dumps(note, indent=2) + "\n", "application/json")
