"""`/api/v1`: the methods of a study for services. Tokens with a role and an expiry; errors are problem details.

Every command may carry an `Idempotency-Key`: sent again with the same one it counts once, and is answered as before.
What is read has an ETag; with `If-None-Match` it is sent again only if something changed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from anyio import to_thread
from fastapi import APIRouter
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response, StreamingResponse

from ..checks import path_of
from ..designs import make
from ..problem import Problem
from ..study import Study
from ..study.blocks import COLUMNS
from . import gate
from .access import ENTRY
from .gate import ANY, CHANGE, ENTER, READ, Ask, Count, Denied, identify, needs
from .lab_work import few_enough
from .pages import etag, made, not_changed
from .work import plain

router = APIRouter(prefix="/api/v1", tags=["studies"])
docs = APIRouter(include_in_schema=False)
MOST = 1000  # events or assignments in one answer


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Create(Body):
    name: str
    problem: dict[str, Any] = Field(description="as in a problem file")
    design: str | None = None
    options: dict[str, Any] = {}
    seed: int | None = None
    watch: str = "pause"
    watch_level: float = 0.01
    plausible: dict[str, tuple[float, float]] | None = None
    lift: str = "another"
    blocks: bool = False
    pipeline: int = 1


class Block(Body):
    """What came back; of many subjects as one: n, and sums or means."""

    id: str
    effect: Any = None
    harm: Any = None
    dose: Any = None
    n: Any = None
    effect_mean: Any = None
    harm_mean: Any = None
    effect_squares: Any = None
    harm_squares: Any = None
    effect_sd: Any = None
    harm_sd: Any = None

    @property
    def block(self) -> dict[str, Any]:
        return {k: x for k in COLUMNS if (x := getattr(self, k)) is not None}


class Reading(Block):
    key: str | None = None
    confirm: str | None = None


class Many(Body):
    rows: list[dict[str, Any]]


class Reserve(Body):
    count: int = Field(le=500)
    site: str | None = None


class Reason(Body):
    reason: str


class Void(Reason):
    id: str


class Return(Reason):
    ids: list[str]


class Correct(Block):
    reason: str
    confirm: bool = False


class Resume(Reason):
    voids: dict[str, float] | None = None


# What all of them share
def answer(ask: Ask, study: Study, data: Any, tag: str | None = None) -> Response:
    """Something that was read, unless the reader has it."""
    tag = tag or etag(study.name, ask.site.hub.head(study.name, now=True), ask.request.url.query)
    if not_changed(ask, tag):
        return Response(status_code=304, headers={"etag": tag})
    return JSONResponse(plain(data), headers={"etag": tag})


def once(ask: Ask, body: Body | None, do: Callable[[], Any]) -> Response:
    """A command: with a key that was used before, what was answered then."""
    key = ask.request.headers.get("idempotency-key")
    if key is None:
        return JSONResponse(plain(do()))
    if not 1 <= len(key) <= 200:
        raise Denied(400, "Not a key", "an Idempotency-Key has 1 to 200 characters")
    what = [ask.request.url.path, body.model_dump() if body else None]
    done, again = gate.once(ask, f"{ask.me.id} {key}", what, lambda: plain(do()))
    return JSONResponse(done, headers={"idempotent-replay": "true"} if again else None)


def write(ask: Ask, part: str, body: Body, command: str, **arguments: Any) -> Response:
    """One command of a study."""
    study = ask.site.hub.study(part)

    def do() -> Any:
        found = getattr(study, command)(**arguments, actor=ask.me.actor)
        ask.site.hub.heads.pop(study.name, None)
        done = {"done": found if isinstance(found, int) else True}
        done |= {"undone": found} if command == "correct" else {}
        return done if ask.me.role == ENTRY else done | head(study)

    return once(ask, body, do)


def head(study: Study) -> dict[str, Any]:
    return study.look(lambda view: {"standing": view.standing, "head": {"seq": view.seq, "hash": view.hash}})


# Studies
@router.get("/studies")
def studies(ask: Ask = needs(*ANY, bearer=True), after: str = "", limit: Count = 100) -> Response:
    """The names of the studies, in order, after one."""
    names = [name for name in ask.site.hub.journal.names() if name > after]
    return JSONResponse({"studies": names[: min(max(limit, 1), MOST)]})


@router.post("/studies", status_code=200)
def create(body: Create, ask: Ask = needs(*CHANGE, bearer=True)) -> Response:
    """Begin a study."""

    def do() -> Any:
        few_enough(body.problem)
        problem = Problem.from_dict(body.problem)
        chosen = make(body.design, **body.options) if body.design else None
        study = Study.create(
            ask.site.url, body.name, problem, chosen, actor=ask.me.actor, seed=body.seed, watch=body.watch,  # type: ignore[arg-type]
            watch_level=body.watch_level, plausible=body.plausible, lift=body.lift,  # type: ignore[arg-type]
            blocks=body.blocks, pipeline=body.pipeline,
        )  # fmt: skip
        return {"study": study.name, "path": f"/study/{path_of(study.name)}", **head(study)}

    return once(ask, body, do)


@router.get("/studies/{part}")
def status(part: str, ask: Ask = needs(*READ, bearer=True)) -> Response:
    """Where it stands, in plain numbers."""
    study = ask.site.hub.study(part)
    return answer(ask, study, study.status())


@router.get("/studies/{part}/assignments")
def assignments(
    part: str, ask: Ask = needs(*ENTER, bearer=True), limit: Count = MOST, site: str | None = None,
    blocks: bool | None = None,
) -> Response:  # fmt: skip
    """The open assignments: whom to give what. Who enters data sees those of their own site alone."""
    study = ask.site.hub.study(part)
    if ask.me.role == ENTRY:
        return answer(ask, study, {"assignments": study.desk(ask.me.desk).open()[:limit]})
    found = study.ask(min(max(limit, 1), 100_000), site=site, blocks=blocks)
    return answer(ask, study, {"assignments": [a._asdict() for a in found]})


@router.get("/studies/{part}/awaiting")
def awaiting(part: str, ask: Ask = needs(*ENTER, bearer=True), site: str | None = None) -> Response:
    """Those whose harm was told and whose effect is due."""
    study = ask.site.hub.study(part)
    if ask.me.role == ENTRY:
        return answer(ask, study, {"assignments": study.desk(ask.me.desk).awaiting()})
    return answer(ask, study, {"assignments": [a._asdict() for a in study.awaiting(site=site)]})


@router.post("/studies/{part}/assignments")
def reserve(part: str, body: Reserve, ask: Ask = needs(*ENTER, bearer=True)) -> Response:
    """Reserve the next assignments for a site."""
    study = ask.site.hub.study(part)

    def do() -> Any:
        if ask.me.role == ENTRY:
            return {"assignments": study.desk(ask.me.desk, actor=ask.me.actor).next(body.count)}
        if body.site is None:
            raise Denied(422, "Refused", "for which site? give site")
        found = study.assign(body.count, body.site, actor=ask.me.actor)
        return {"assignments": [a._asdict() for a in found]}

    return once(ask, body, do)


@router.post("/studies/{part}/readings")
def tell(part: str, body: Reading, ask: Ask = needs(*ENTER, bearer=True)) -> Response:
    """What came of an assignment. Its `key`, or the Idempotency-Key, goes into the journal: it counts once."""
    study = ask.site.hub.study(part)
    if ask.me.role == ENTRY:
        study.desk(ask.me.desk).check(body.id)
    key = body.key or ask.request.headers.get("idempotency-key")
    more = {"key": key, "confirm": body.confirm, "actor": ask.me.actor, **body.block}
    apart = study.tell(body.id, body.effect, body.harm, body.dose, **more)
    ask.site.hub.heads.pop(study.name, None)
    return JSONResponse({"done": True, "deviation": apart})


@router.post("/studies/{part}/readings/many")
def tell_many(part: str, body: Many, ask: Ask = needs(*ENTER, bearer=True)) -> Response:
    """Many at once: all of them or, if one is wrong, none. What was told before counts once."""
    study = ask.site.hub.study(part)
    if ask.me.role == ENTRY:
        study.desk(ask.me.desk).check(*(row.get("id") for row in body.rows))
    new = study.tell_many(body.rows, actor=ask.me.actor)
    ask.site.hub.heads.pop(study.name, None)
    return JSONResponse({"done": new})


@router.post("/studies/{part}/void")
def void(part: str, body: Void, ask: Ask = needs(*ENTER, bearer=True)) -> Response:
    """A subject dropped out before any reading."""
    if ask.me.role == ENTRY:
        ask.site.hub.study(part).desk(ask.me.desk).check(body.id)
    return write(ask, part, body, "void", id=body.id, reason=body.reason)


@router.post("/studies/{part}/return")
def give_back(part: str, body: Return, ask: Ask = needs(*CHANGE, bearer=True)) -> Response:
    """Assignments that were reserved and are not used."""
    return write(ask, part, body, "give_back", ids=body.ids, why=body.reason)


@router.post("/studies/{part}/correct")
def correct(part: str, body: Correct, ask: Ask = needs(*CHANGE, bearer=True)) -> Response:
    """A reading was wrong."""
    return write(ask, part, body, "correct", **{k: x for k, x in body.model_dump().items() if x is not None})


@router.post("/studies/{part}/pause")
def pause(part: str, body: Reason, ask: Ask = needs(*CHANGE, bearer=True)) -> Response:
    return write(ask, part, body, "pause", reason=body.reason)


@router.post("/studies/{part}/resume")
def resume(part: str, body: Resume, ask: Ask = needs(*CHANGE, bearer=True)) -> Response:
    return write(ask, part, body, "resume", reason=body.reason, voids=body.voids)


@router.post("/studies/{part}/stop")
def stop(part: str, body: Reason, ask: Ask = needs(*CHANGE, bearer=True)) -> Response:
    return write(ask, part, body, "stop", reason=body.reason)


@router.get("/studies/{part}/verdict")
def verdict(part: str, ask: Ask = needs(*READ, bearer=True)) -> Response:
    """The verdict's arrays, for a batch of one; None stands for numbers that are not finite."""
    study = ask.site.hub.study(part)

    def see(view: Any) -> Any:
        found = view.design.verdict(view.state)
        keys = [k for k in found.__dataclass_fields__ if k != "problem" and getattr(found, k) is not None]
        data = {k: [_exact(x) for x in getattr(found, k)[0].ravel().tolist()] for k in keys}
        return {"problem": view.setup["problem"], "verdict": data, "ending": found.endings()[0]}

    return answer(ask, study, study.look(see))


def _exact(x: Any) -> Any:
    return str(x) if isinstance(x, float) and x - x != 0 else x


@router.get("/studies/{part}/certificate")
def certificate(part: str, ask: Ask = needs(*READ, bearer=True)) -> Response:
    study = ask.site.hub.study(part)
    tag = etag(study.name, ask.site.hub.head(study.name, now=True), "certificate")
    if not_changed(ask, tag):
        return Response(status_code=304, headers={"etag": tag})
    found = made(ask, study, "certificate")["json"]
    return Response(found, media_type="application/json", headers={"etag": tag})


@router.get("/studies/{part}/preview")
def preview(part: str, ask: Ask = needs(*READ, bearer=True)) -> Response:
    study = ask.site.hub.study(part)
    return answer(ask, study, made(ask, study, "preview", most=100))


@router.get("/studies/{part}/verify")
def verify(part: str, ask: Ask = needs(*READ, bearer=True)) -> Response:
    study = ask.site.hub.study(part)
    return answer(ask, study, made(ask, study, "verify"))


@router.get("/studies/{part}/events")
def events(part: str, ask: Ask = needs(*READ, bearer=True), after: Count = 0, limit: Count = MOST) -> Response:
    """The journal's events after number N, as they stand there."""
    study, found = ask.site.hub.study(part), []
    for event in ask.site.hub.journal.each(study.name, max(after, 0)):
        found.append(event._asdict())
        if len(found) >= min(max(limit, 1), MOST):
            break
    return answer(ask, study, {"events": found})


@router.get("/studies/{part}/stream")
async def stream(part: str, ask: Ask = needs(*READ, bearer=True), after: Count = 0) -> Response:
    """Server-sent events: the journal's events after number N, and then as they come."""
    site = ask.site
    study = await to_thread.run_sync(site.hub.study, part)
    last = ask.request.headers.get("last-event-id", "")
    after = max(after, int(last) if last.isdecimal() and len(last) < 18 else 0)

    async def each() -> AsyncIterator[str]:
        seq = after
        async for head in site.watchers.changes(study.name, after):
            if await to_thread.run_sync(identify, ask.request, site.access, site.safety, True) is None:
                return
            if head is None:
                yield ": still here\n\n"
                continue
            for event in await to_thread.run_sync(site.hub.journal.read, study.name, seq):
                seq = event.seq
                yield f"id: {seq}\nevent: {event.kind}\ndata: {json.dumps(event._asdict())}\n\n"

    return StreamingResponse(each(), media_type="text/event-stream", headers={"cache-control": "no-store"})


# The description of all this
def openapi(ask: Ask) -> dict[str, Any]:
    return get_openapi(title="Surefoot", version=ask.request.app.version, routes=router.routes, description=__doc__)


@docs.get("/api/v1/openapi.json")
def openapi_json(ask: Ask = needs(*ANY, bearer=True)) -> Response:
    return JSONResponse(openapi(ask))


@docs.get("/api/docs")
def docs_page(ask: Ask = needs(*ANY)) -> Response:
    schema = openapi(ask)
    return ask.site.render(ask, "docs.html", schema=schema, models=schema.get("components", {}).get("schemas", {}))
