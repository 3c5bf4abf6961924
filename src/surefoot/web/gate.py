"""What stands before every route: hosts, sizes, where a request comes from, who sends it, and what every answer says.

A route asks for `needs(roles)`; the table route x role in the documents is read off these. `Guard` is the outermost
layer: it sees every request, also those for routes that do not exist.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, unquote_plus, urlsplit

from anyio import to_thread
from fastapi import Depends, Query, Request
from starlette.datastructures import Headers, MutableHeaders

from .access import ADMIN, ENTRY, READER, STATISTICIAN, Access, Who

if TYPE_CHECKING:
    from .app import Site

READ = (READER, STATISTICIAN, ADMIN)  # looks, and changes nothing
ENTER = (ENTRY, STATISTICIAN, ADMIN)  # tells readings
CHANGE = (STATISTICIAN, ADMIN)
ANY = (READER, ENTRY, STATISTICIAN, ADMIN)
SAFE = ("GET", "HEAD", "OPTIONS")
BODY, SMALL = 4_000_000, 20_000  # bytes that a request may have; of somebody who is not known
BODY_WITHIN = 60.0  # seconds that it may take to arrive
Count = Annotated[int, Query(ge=0, le=2**53)]  # in an address: what databases and scripts take for whole numbers

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "private, no-cache",
}


class Denied(Exception):
    """An answer other than what was asked for, in words."""

    def __init__(self, status: int, title: str, detail: str, **headers: str):
        super().__init__(detail)
        self.status, self.title, self.detail, self.headers = status, title, detail, headers


class Elsewhere(Exception):
    """Somebody who is not known yet is sent to log in."""

    def __init__(self, to: str):
        super().__init__(to)
        self.to = to


@dataclass(frozen=True)
class Safety:
    """How the server is reached. `proxy`: the one address whose headers are believed; `sso`: the header by which it
    names who is logged in; `hosts`: the names that the server answers to."""

    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]", "testserver")
    proxy: str | None = None
    sso: str | None = None
    tls: bool = False

    @property
    def cookie(self) -> str:
        """Of the session. The prefix keeps other hosts of the same domain from planting one of theirs."""
        return "__Host-surefoot" if self.tls else "surefoot"

    def user(self, scope: Any) -> str | None:
        """Whom the proxy names. Two headers are one too many: the first may be what the browser sent."""
        names = Headers(scope=scope).getlist(self.sso) if self.sso and self.from_proxy(scope) else []
        return names[0] if len(names) == 1 else None

    def from_proxy(self, scope: Any) -> bool:
        client = scope.get("client")
        return bool(self.proxy and client and _same_address(client[0], self.proxy))

    def address(self, scope: Any) -> str:
        """Whose limit of attempts it is."""
        seen = Headers(scope=scope).getlist("x-forwarded-for") if self.from_proxy(scope) else []
        return ",".join(seen).rpartition(",")[2].strip() or str((scope.get("client") or ("unknown",))[0])


def _same_address(a: str, b: str) -> bool:
    try:
        return ipaddress.ip_address(a) == ipaddress.ip_address(b)
    except ValueError:
        return False


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: Any, safety: Safety):
        self.app, self.safety = app, safety
        self.headers = HEADERS | ({"strict-transport-security": "max-age=31536000"} if safety.tls else {})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, seen, known, arrived = Headers(scope=scope), 0, False, False
        until = asyncio.get_running_loop().time() + BODY_WITHIN

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                for key, value in self.headers.items():
                    out.setdefault(key, value)
                if "server" in out:
                    del out["server"]
            await send(message)

        async def limited() -> Any:
            nonlocal seen, known, arrived
            if arrived:  # what comes then is that the reader is gone
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), until - asyncio.get_running_loop().time())
            except TimeoutError:
                raise Denied(408, "Too slow", f"a request has {BODY_WITHIN:.0f} seconds to arrive") from None
            arrived = not message.get("more_body", False)
            seen += len(message.get("body", b""))
            known = known or seen <= SMALL or await _known(scope)
            if seen > (BODY if known else SMALL):
                raise Denied(413, "Too large", f"a request may have {BODY:,} bytes, of nobody in particular {SMALL:,}")
            return message

        if words := self.refusal(scope["method"], scope["path"], headers):
            from .app import denied

            await _heard_out(receive)
            await denied(scope, *words, connection="close")(scope, receive, answer)
            return
        await self.app(scope, limited, answer)

    def refusal(self, method: str, path: str, headers: Headers) -> tuple[int, str, str] | None:
        host = headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if name not in {h.strip("[]") for h in self.safety.hosts}:
            return 421, "Not here", "this server does not answer to that name: start it with --name"
        length = headers.get("content-length", "0")
        if "content-length" in headers and "transfer-encoding" in headers:
            return 400, "Two lengths", "a request has one length: a proxy may have seen another end of it than we do"
        if not length.isdecimal() or int(length) > BODY:
            return 413, "Too large", f"a request may have {BODY:,} bytes"
        bearer = path.startswith("/api/v1/") and headers.get("authorization", "").startswith("Bearer ")
        if method not in SAFE and not bearer:
            site, origin = headers.get("sec-fetch-site"), headers.get("origin")
            here = urlsplit(origin or "").netloc == host
            if (site is not None and site != "same-origin") or (origin is not None and not here) or not (site or here):
                return 403, "From elsewhere", "this was not sent from a page of this server: open it and try again"
        return None


async def _heard_out(receive: Any) -> None:
    """A body that is refused is let come for a while: who is cut off while sending never reads why."""
    seen, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            while more and seen <= 4 * BODY:
                message = await receive()
                seen, more = seen + len(message.get("body", b"")), message.get("more_body", False)


async def _known(scope: Any) -> bool:
    """Whether it comes from somebody who has an account here."""
    site, bearer = scope["app"].state.site, scope["path"].startswith("/api/v1/")
    return await to_thread.run_sync(identify, Request(scope), site.access, site.safety, bearer) is not None


@dataclass
class Ask:
    """One request: who asks, of which server, and what the form says."""

    request: Request
    site: Site
    who: Who | None
    fields: dict[str, str] = field(default_factory=dict)

    @cached_property
    def me(self) -> Who:
        assert self.who is not None
        return self.who

    @property
    def htmx(self) -> bool:
        return self.request.headers.get("hx-request") == "true"

    def field(self, name: str) -> str | None:
        """What was typed, without blanks around it; None where nothing was."""
        return self.fields.get(name, "").strip() or None

    def number(self, name: str) -> Any:
        """A number where it is one, else as it was typed, to be refused in words."""
        text = self.field(name)
        try:
            return None if text is None else float(text.replace(",", "."))
        except ValueError:
            return text


class Needs:
    """A dependency: somebody with one of these roles. Unsafe requests must bring the token of a form made for them."""

    def __init__(self, roles: Iterable[str], bearer: bool = False):
        self.roles, self.bearer = tuple(roles), bearer

    async def __call__(self, request: Request) -> Ask:
        site: Site = request.app.state.site
        cookie = request.cookies.get(site.safety.cookie) if not self.bearer and not site.safety.sso else None
        who = site.access.by_cookie(cookie, known=True) if cookie else None
        who = who or await to_thread.run_sync(identify, request, site.access, site.safety, self.bearer)
        if self.roles and who is None:
            if self.bearer:
                raise Denied(401, "Who are you?", "a valid token is needed", **{"www-authenticate": "Bearer"})
            path = quote(request.url.path) if request.method in SAFE and not request.headers.get("hx-request") else "/"
            raise Elsewhere(f"/login?next={path}")
        if self.roles and who and who.role not in self.roles:
            raise Denied(403, "Not for this role", f"this is for {' or '.join(self.roles)}; you are {who.role}")
        fields = {} if self.bearer or request.method in SAFE else await fields_of(request)
        if who and not self.bearer and request.method not in SAFE:
            token = fields.get("token") or request.headers.get("x-form-token", "")
            if not site.access.is_form_token(token, who):
                raise Denied(403, "An old form", "the form is not of this session: load the page again, then send it")
        return Ask(request, site, who, fields)


def needs(*roles: str, bearer: bool = False) -> Any:
    return Depends(Needs(roles, bearer))


def identify(request: Request, access: Access, safety: Safety, bearer: bool) -> Who | None:
    if bearer:
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        return access.by_token(secret) if kind == "Bearer" and secret else None
    if safety.sso and safety.from_proxy(request.scope):
        name = safety.user(request.scope)
        return access.by_proxy(name) if name else None
    cookie = request.cookies.get(safety.cookie)
    return access.by_cookie(cookie) if cookie else None


async def fields_of(request: Request) -> dict[str, str]:
    """The fields of a form: text alone; of fields with one name the last."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind not in ("application/x-www-form-urlencoded", ""):
        raise Denied(415, "Not a form", f"a form is sent as application/x-www-form-urlencoded; got {kind!r}")
    try:
        text = (await request.body()).decode("ascii")
        pairs = (part.partition("=") for part in text.split("&") if part)
        return {unquote_plus(k): unquote_plus(x, errors="strict") for k, _, x in pairs}
    except UnicodeDecodeError:
        raise Denied(400, "Not text", "the form is not UTF-8") from None


def fresh_key() -> str:
    """Of a form, so that it counts once however often it is sent."""
    return secrets.token_urlsafe(16)


def once(ask: Ask, whose: str, what: Any, do: Callable[[], Any]) -> tuple[Any, bool]:
    """Do it, unless it was done under this key: then what was answered, and True."""
    claim, about = (hashlib.sha256(x.encode()).hexdigest() for x in (whose, json.dumps(what, default=str)))
    new, row = ask.site.access.claim(claim, about)
    if not new:
        if row is None or row.what != about:
            raise Denied(422, "Another request", "this key was used for another request: a new request needs a new key")
        if row.answer is None:
            raise Denied(409, "Being worked on", "this was sent before and is not done yet: look at the study")
        return json.loads(row.answer), True
    try:
        done = do()
    except BaseException:
        ask.site.access.settle(claim, None)
        raise
    ask.site.access.settle(claim, json.dumps(done))
    return done, False
