"""The application: routes put together, errors in words, and the server that runs it."""

from __future__ import annotations

import logging
import socket
import ssl
import tempfile
import threading
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from .. import __version__
from ..checks import SurefootError, path_of, percent
from . import charts
from .access import ADMIN, ROLES, Access, Refused, Who
from .gate import CHANGE, ENTER, READ, Ask, Denied, Elsewhere, Guard, Needs, Safety, fresh_key
from .hub import Hub, Watchers
from .jobs import Jobs

HERE = Path(__file__).parent


@dataclass
class Site:
    """What all routes share."""

    url: str
    access: Access
    hub: Hub
    jobs: Jobs
    watchers: Watchers
    safety: Safety
    pages: jinja2.Environment
    key: Path | None = None  # that signs checkpoints
    demo: bool = False

    def render(self, ask: Ask, template: str, status: int = 200, **more: Any) -> Response:
        who = ask.who
        said = _said(self, ask)
        text = self.pages.get_template(template).render(
            who=who, site=self, path=ask.request.url.path, said=said, version=__version__,
            token=self.access.form_token(who) if who else "", may=_may(who), fresh_key=fresh_key, **more,
        )  # fmt: skip
        answer = HTMLResponse(text, status)
        if said:
            answer.delete_cookie("said", path="/")
        return answer

    def back(self, to: str, said: str = "") -> Response:
        """To another page, which says what was done."""
        answer = RedirectResponse(to, 303)
        if said:
            note = self.access.forms.dumps(["said", said])
            answer.set_cookie("said", note, max_age=30, httponly=True, samesite="strict", secure=self.safety.tls)
        return answer

    def set_session(self, answer: Response, cookie: str) -> Response:
        tls = self.safety.tls
        answer.set_cookie(self.safety.cookie, cookie, httponly=True, samesite="strict", secure=tls, path="/")
        return answer


def _said(site: Site, ask: Ask) -> str:
    from itsdangerous import BadSignature

    try:
        kind, words = site.access.forms.loads(ask.request.cookies.get("said", ""))
        return str(words) if kind == "said" else ""
    except (BadSignature, ValueError, TypeError):
        return ""


def _may(who: Who | None) -> dict[str, bool]:
    sets = {"read": READ, "enter": ENTER, "change": CHANGE, "admin": (ADMIN,)}
    return {name: who is not None and who.role in roles for name, roles in sets.items()}


def _environment() -> jinja2.Environment:
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    pages.filters |= {
        "number": charts.number,
        "percent": percent,
        "when": when,
        "part": path_of,
    }
    pages.globals |= {"charts": charts, "ROLES": ROLES}
    return pages


def when(at: Any) -> str:
    """A time for people, in UTC."""
    if isinstance(at, (int, float)):
        at = datetime.fromtimestamp(at, UTC).isoformat()
    return str(at)[:16].replace("T", " ")


def create_app(
    url: str | Path, safety: Safety | None = None, *, key: Path | None = None, demo: bool = False, spare: bool = False
) -> FastAPI:
    """The application over one database. It opens the file or makes it; no study is needed."""
    from . import accounts, api, entry, lab, pages

    safety, access = safety or Safety(), Access(url)
    hub = Hub(url)
    site = Site(str(url), access, hub, Jobs(spare), Watchers(hub), safety, _environment(), key, demo)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        site.jobs.close()

    app = FastAPI(
        title="Surefoot", version=__version__, docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan,
        description="The methods of a study, for services. Errors are problem details (RFC 9457).",
    )  # fmt: skip
    app.state.site = site
    routers = [accounts.router, pages.router, entry.router, lab.router, api.docs, api.router]
    for router in routers:
        app.include_router(router)
    app.state.routes = [route for router in routers for route in router.routes]
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    app.add_middleware(Guard, safety=safety)
    for kind in (SurefootError, Denied, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _failed)
    app.add_exception_handler(Elsewhere, _elsewhere)
    return app


async def _elsewhere(request: Request, error: Exception) -> Response:
    assert isinstance(error, Elsewhere)
    if request.headers.get("hx-request"):
        return Response(status_code=401, headers={"hx-redirect": error.to})
    return RedirectResponse(error.to, 303)


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, Refused):
        wait = {"retry-after": f"{error.wait:.0f}"} if error.wait else {}
        return denied(request.scope, 429 if error.wait else 403, "Refused", str(error), **wait)
    if isinstance(error, Denied):
        return denied(request.scope, error.status, error.title, error.detail, **error.headers)
    if isinstance(error, SurefootError):
        return denied(request.scope, 422, "Refused", str(error))
    if isinstance(error, HTTPException):
        words = "there is nothing of that kind here" if error.status_code in (404, 405) else "it could not be read"
        return denied(request.scope, error.status_code, str(error.detail), words)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return denied(request.scope, 422, "Not understood", f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    logging.getLogger("surefoot.web").error("a defect: %s", type(error).__name__, exc_info=error)
    return denied(request.scope, 500, "A defect", "this is our fault; nothing was changed by it that is not shown")


def denied(scope: Any, status: int, title: str, detail: str, **headers: str) -> Response:
    """An error in words: as problem details for services, as a page for people."""
    if scope["path"].startswith("/api/"):
        body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
        return JSONResponse(body, status, headers, media_type="application/problem+json")
    app = scope.get("app")
    request = Request(scope)
    if app is None:
        return Response(f"{title}: {detail}\n", status, headers, media_type="text/plain")
    who = None
    site: Site = app.state.site
    cookie = request.cookies.get(site.safety.cookie)
    if cookie:
        who = site.access.by_cookie(cookie)
    template = "refused.html" if request.headers.get("hx-request") else "error.html"
    answer = site.render(Ask(request, site, who), template, status, title=title, detail=detail)
    for key, value in headers.items():
        answer.headers[key] = value
    return answer


def table(app: FastAPI) -> list[tuple[str, str, tuple[str, ...]]]:
    """Every route: its method, its path, and the roles that may use it; none where anybody may."""
    rows = []
    for route in app.state.routes:
        if isinstance(route, APIRoute):
            roles: tuple[str, ...] = ()
            for one in route.dependant.dependencies:
                if isinstance(one.call, Needs):
                    roles = one.call.roles
            rows += [(method, route.path, roles) for method in sorted(set(route.methods or ()) - {"HEAD"})]
    return sorted(rows, key=lambda row: (row[1], row[0]))


class Patient(H11Protocol):
    """A connection that brings no request is closed after a while; without this it could be held open for ever."""

    within = 20.0  # seconds from the connection, or the last answer, to the end of the headers

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect()

    def _expect(self) -> None:
        cycle = self.cycle
        self.loop.call_later(self.within, lambda: self.transport.close() if self.cycle is cycle else None)


SERVER: dict[str, Any] = {
    "http": Patient, "log_level": "warning", "access_log": False, "server_header": False, "proxy_headers": False,
    "timeout_graceful_shutdown": 2, "h11_max_incomplete_event_size": 32_768, "limit_concurrency": 2000,
}  # fmt: skip
LOCAL = ("127.0.0.1", "::1", "localhost")


def serve(
    url: str | Path, *, host: str = "127.0.0.1", port: int = 8642, names: tuple[str, ...] = (),
    behind_proxy: str | None = None, sso: str | None = None, certificate: Path | None = None,
    private_key: Path | None = None, key: Path | None = None, demo: bool = False, browse: bool = True,
    new_admin: bool = False,
) -> None:  # fmt: skip
    """Run the page until it is interrupted."""
    if host not in LOCAL and not certificate and not behind_proxy:
        raise SurefootError(
            f"{host} can be reached by others, and passwords would travel in the open: give --certificate and "
            f"--private-key, or --behind-proxy ADDRESS where a proxy does TLS"
        )
    if bool(certificate) != bool(private_key):
        raise SurefootError("TLS needs both --certificate and --private-key")
    if certificate:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, private_key)
        except (OSError, ValueError) as error:
            raise SurefootError(f"{certificate} and {private_key} are no certificate and its key: {error}") from error
    if sso and not behind_proxy:
        raise SurefootError("single sign-on by a header needs --behind-proxy ADDRESS: from nobody else is it believed")
    hosts = ("localhost", "127.0.0.1", "[::1]", *((host,) if host not in ("0.0.0.0", "::") else ()), *names)
    safety = Safety(hosts, behind_proxy, sso, tls=bool(certificate or behind_proxy))
    app = create_app(url, safety, key=key, demo=demo, spare=True)
    shown = (
        names[0] if names else f"[{host}]" if ":" in host else host if host not in ("0.0.0.0", "::") else "localhost"
    )
    try:  # before the link is shown: who follows it at once is let in as soon as all is ready
        held = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise SurefootError(f"nothing can be served at {host}:{port}: {error.strerror}. Give another --port") from error
    base = f"http{'s' if certificate else ''}://{shown}:{held.getsockname()[1]}"
    address = base
    access = app.state.site.access
    if new_admin or not access.has_admin():
        address = f"{base}/first#{access.link(None, 'start of the server')}"
        print(
            "This link lets you in."
            if demo
            else "This link makes an admin. It works once, for a day; show it to nobody:"
        )
    print(address, flush=True)
    config = uvicorn.Config(app, ssl_certfile=certificate, ssl_keyfile=private_key, **SERVER)
    if browse:
        threading.Timer(1.0, webbrowser.open, (address,)).start()
    uvicorn.Server(config).run(sockets=[held])


def demonstrate(**options: Any) -> None:
    """The page on a temporary database, with a study whose subjects arrive while one watches."""
    from .demo import Arrivals, begin

    with tempfile.TemporaryDirectory(prefix="surefoot-demo-") as folder:
        db = begin(Path(folder))
        arrivals = Arrivals(db)
        arrivals.start()
        try:
            serve(db, demo=True, **options)
        finally:
            arrivals.stop()
