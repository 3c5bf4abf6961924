"""Logging in and out, one-time links, and the page where an admin gives roles."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter
from starlette.responses import Response

from ..problem import SurefootError
from .access import ADMIN, Refused
from .gate import ANY, Ask, Count, fresh_key, needs

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login_page(ask: Ask = needs(), next: str = "/") -> Response:
    return ask.site.render(ask, "login.html", next=_local(next), wrong="")


@router.post("/login")
def login(ask: Ask = needs()) -> Response:
    try:
        address = ask.site.safety.address(ask.request.scope)
        cookie = ask.site.access.login(ask.fields.get("name", ""), ask.fields.get("password", ""), address)
    except Refused as error:
        status = 429 if error.wait else 403
        answer = ask.site.render(ask, "login.html", status, next=_local(ask.fields.get("next", "/")), wrong=str(error))
        if error.wait:
            answer.headers["retry-after"] = f"{error.wait:.0f}"
        return answer
    return ask.site.set_session(ask.site.back(_local(ask.fields.get("next", "/"))), cookie)


def _local(path: str) -> str:
    """A page of this server and no other."""
    parts = urlsplit(path)
    good = path.startswith("/") and not path.startswith("//") and not parts.scheme and not parts.netloc
    return path if good and "\\" not in path and path.isprintable() else "/"


@router.post("/logout")
def logout(ask: Ask = needs(*ANY)) -> Response:
    ask.site.access.logout(ask.me)
    answer = ask.site.back("/login")
    answer.delete_cookie(ask.site.safety.cookie, path="/", secure=ask.site.safety.tls)
    answer.headers["clear-site-data"] = '"storage"'
    return answer


@router.get("/first")
def first_page(ask: Ask = needs()) -> Response:
    """The secret of the link is behind a # and never sent; a script moves it into the form."""
    first = not ask.site.access.has_admin()
    return ask.site.render(ask, "first.html", wrong="", name="", first=first, demo_password=fresh_key())


@router.post("/first")
def first(ask: Ask = needs()) -> Response:
    access, f = ask.site.access, ask.fields
    try:
        if f.get("password") != f.get("again"):
            raise SurefootError("the two passwords differ")
        name = access.redeem(f.get("link", ""), f.get("name", ""), f.get("password", ""))
    except SurefootError as error:
        status = 403 if isinstance(error, Refused) else 422
        first = not access.has_admin()
        more = {"name": f.get("name", ""), "demo_password": fresh_key()}
        return ask.site.render(ask, "first.html", status, wrong=str(error), first=first, **more)
    return ask.site.set_session(ask.site.back("/", f"Welcome, {name}."), access.begin(name))


@router.get("/access")
def access_page(ask: Ask = needs(ADMIN), before: Count | None = None) -> Response:
    return _access(ask, before=before)


def _access(ask: Ask, status: int = 200, **more: Any) -> Response:
    access = ask.site.access
    show = {"wrong": "", "link": "", "secret": "", "before": None} | more
    log = access.history(show["before"])
    return ask.site.render(
        ask, "access.html", status, users=access.users(), tokens=access.tokens(), log=log, now=time.time(), **show
    )


@router.post("/access/user")
def add_user(ask: Ask = needs(ADMIN)) -> Response:
    try:
        secret = ask.site.access.add_user(
            ask.fields.get("name", ""), ask.fields.get("role", ""), ask.field("site"), ask.me.name
        )
    except SurefootError as error:
        return _access(ask, 422, wrong=str(error))
    return _access(ask, link=_link(ask, secret), name=ask.field("name"))


@router.post("/access/change")
def change_user(ask: Ask = needs(ADMIN)) -> Response:
    f, access = ask.fields, ask.site.access
    try:
        name = f.get("name", "")
        if f.get("do") == "link":
            return _access(ask, link=_link(ask, access.link(name, ask.me.name)), name=name)
        active = f.get("do") != "bar"
        access.change_user(name, f.get("role", ""), ask.field("site"), active, ask.me.name)
    except SurefootError as error:
        return _access(ask, 422, wrong=str(error))
    return ask.site.back("/access", f"{name} is {f.get('role')} now, and has to log in again.")


def _link(ask: Ask, secret: str) -> str:
    return f"{ask.request.url.scheme}://{ask.request.headers.get('host')}/first#{secret}"


@router.post("/access/token")
def add_token(ask: Ask = needs(ADMIN)) -> Response:
    f = ask.fields
    try:
        days = ask.number("days")
        if not isinstance(days, float):
            raise SurefootError(f"for how many days is the token? got {days!r}")
        secret = ask.site.access.add_token(f.get("name", ""), f.get("role", ""), ask.field("site"), days, ask.me.name)
    except SurefootError as error:
        return _access(ask, 422, wrong=str(error))
    return _access(ask, secret=secret, name=ask.field("name"))


@router.post("/access/token/end")
def end_token(ask: Ask = needs(ADMIN)) -> Response:
    ask.site.access.end_token(ask.fields.get("name", ""), ask.me.name)
    return ask.site.back("/access", "The token has ended.")
