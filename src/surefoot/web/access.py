"""Who may come in: users, roles, sessions, tokens and one-time links, in tables of their own beside the journal.

No secret is ever stored: passwords as argon2, sessions, tokens and links as hashes. Every statement stands alone, so
that two at once cannot undo each other. What was done to accounts is kept, as E6(R3) asks of trials.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
import time
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import argon2
import sqlalchemy as sa
from itsdangerous import BadSignature, URLSafeSerializer

from ..checks import NAME, SurefootError, choice, line
from ..study.journal import Journal
from ..study.text import distinct

READER, ENTRY, STATISTICIAN, ADMIN = "reader", "data entry", "statistician", "admin"
ROLES = (READER, ENTRY, STATISTICIAN, ADMIN)
LEAST, MOST = 12, 500  # characters of a password
SESSION, LINK, DAY = 12 * 3600.0, 24 * 3600.0, 86400.0  # seconds that they live

_tables = sa.MetaData()


def _table(name: str, *columns: Any) -> sa.Table:
    return sa.Table(f"surefoot_web_{name}", _tables, *columns)


def _key(name: str, size: int = 64) -> Any:
    return sa.Column(name, sa.String(size), primary_key=True)


def _text(name: str, size: int = NAME, **more: Any) -> Any:
    return sa.Column(name, sa.String(size), **{"nullable": False} | more)


def _time(name: str) -> Any:
    return sa.Column(name, sa.Float, nullable=False)


_users = _table(
    "users", _key("name", NAME), _text("role", 20), _text("site", nullable=True), _text("password", nullable=True),
    sa.Column("active", sa.Boolean, nullable=False), _time("at"),
)  # fmt: skip
_sessions = _table("sessions", _key("hash"), _text("user"), _time("ends"))
_tokens = _table(
    "tokens", _key("hash"), _text("name", unique=True), _text("role", 20), _text("site", nullable=True), _text("by"),
    _time("at"), _time("ends"),
)  # fmt: skip
_links = _table("links", _key("hash"), _text("user", nullable=True), _time("ends"))  # of nobody: an admin's to be
_requests = _table("requests", _key("key"), _text("what", 64), _time("at"), sa.Column("answer", sa.Text))
_meetings = _table(
    "meetings", _key("study", NAME), sa.Column("seq", sa.BigInteger, nullable=False), _time("at"), _text("by")
)
_log = _table(
    "log", sa.Column("id", sa.Integer, primary_key=True, autoincrement=True), _time("at"), _text("by"),
    sa.Column("what", sa.Text, nullable=False),
)  # fmt: skip
_secrets = _table("secrets", _key("name", 20), _text("value", 100, nullable=True))


class Refused(SurefootError):
    """Somebody may not do this. `wait`: seconds until it may be tried again."""

    def __init__(self, words: str, wait: float = 0.0):
        super().__init__(words)
        self.wait = wait


@dataclass(frozen=True)
class Who:
    """Somebody who asks: by a session, a token, or a proxy that vouches for them."""

    name: str
    role: str
    site: str | None = None
    via: str = "session"
    id: str = ""  # of the session or token, hashed: form tokens are tied to it

    @property
    def actor(self) -> str:
        return f"{self.name} ({self.role}{', token' if self.via == 'token' else ''})"

    @property
    def desk(self) -> str:
        """The site whose assignments they see; a name of one's own where none is given."""
        return self.site or self.name


class Limiter:
    """After some wrong attempts each further one makes everybody at that name or address wait, twice as long each."""

    def __init__(self, free: int, longest: float = 900.0):
        self.free, self.longest = free, longest
        self.seen: OrderedDict[str, tuple[int, float]] = OrderedDict()  # attempts, and until when to wait
        self.lock = threading.Lock()

    def wait(self, key: str) -> float:
        with self.lock:
            return max(self.seen.get(key, (0, 0.0))[1] - time.monotonic(), 0.0)

    def failed(self, key: str) -> None:
        with self.lock:
            count = self.seen.pop(key, (0, 0.0))[0] + 1
            over = count - self.free
            self.seen[key] = count, time.monotonic() + (min(2.0 ** min(over, 20), self.longest) if over >= 0 else 0)
            while len(self.seen) > 10_000:
                self.seen.popitem(last=False)

    def passed(self, key: str) -> None:
        with self.lock:
            self.seen.pop(key, None)


class Access:
    """The accounts of one database."""

    def __init__(self, url: str | Path):
        journal = Journal(url, create=True)  # checks the address, and makes a file that is to hold both
        journal.close()
        if journal.engine is None:
            raise SurefootError(f"the page keeps accounts in SQLite or PostgreSQL beside the studies; got {url}")
        self.engine = sa.create_engine(journal.engine.url, isolation_level="AUTOCOMMIT", pool_pre_ping=True)
        weakref.finalize(self, self.engine.dispose)
        if self.engine.name == "sqlite":
            sa.event.listen(self.engine, "connect", lambda c, _: c.execute("PRAGMA busy_timeout = 60000"))
        _tables.create_all(self.engine)
        self._known: dict[str, tuple[Who | None, float]] = {}  # looked up a moment ago
        self._insert_new(_secrets, {"name": "signing", "value": secrets.token_urlsafe(48)})
        key = self._one(sa.select(_secrets.c.value).where(_secrets.c.name == "signing"))
        self.signer = URLSafeSerializer(key.value, salt="surefoot session")
        self.forms = URLSafeSerializer(key.value, salt="surefoot form")
        self.hasher = argon2.PasswordHasher()
        self.blank = self.hasher.hash(secrets.token_hex(8))  # so that an unknown name takes as long as a wrong password
        self.hashing = threading.Semaphore(2)  # argon2 is dear on purpose
        self.by_pair, self.by_address, self.by_name = Limiter(5), Limiter(50), Limiter(50)

    # Statements
    def _all(self, query: Any) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(query).all())

    def _one(self, query: Any) -> Any:
        found = self._all(query)
        return found[0] if found else None

    def _do(self, statement: Any) -> int:
        self._known.clear()
        with self.engine.connect() as connection:
            return int(connection.execute(statement).rowcount)

    def _insert_new(self, table: sa.Table, row: dict[str, Any]) -> bool:
        """False where there is one with that key already."""
        try:
            self._do(table.insert().values(**row))
        except sa.exc.IntegrityError:
            return False
        return True

    def note(self, by: str, what: str) -> None:
        self._do(_log.insert().values(at=time.time(), by=by, what=what))

    def history(self, before: int | None = None, most: int = 50) -> list[Any]:
        query = sa.select(_log).order_by(_log.c.id.desc()).limit(most)
        return self._all(query.where(_log.c.id < before) if before else query)

    # Users and links
    def users(self) -> list[Any]:
        return self._all(sa.select(_users).order_by(_users.c.name))

    def has_admin(self) -> bool:
        is_one = (_users.c.role == ADMIN) & _users.c.active & _users.c.password.is_not(None)
        return self._one(sa.select(_users.c.name).where(is_one).limit(1)) is not None

    def link(self, user: str | None, by: str) -> str:
        """A one-time link for a user to set a password; for nobody: for an admin, who chooses a name."""
        self._do(_links.delete().where((_links.c.user == user) if user else _links.c.user.is_(None)))
        secret = secrets.token_urlsafe(32)
        self._do(_links.insert().values(hash=_hash(secret), user=user, ends=time.time() + LINK))
        self.note(by, f"a one-time link for {user or 'an admin'}")
        return secret

    def add_user(self, name: str, role: str, site: str | None, by: str) -> str:
        """A user without a password yet; returns the secret of a one-time link to set it."""
        name = line("a user's name", name)
        taken = [row.name for row in self.users()] + [row.name for row in self.tokens()]
        if name in taken:
            raise SurefootError(f"there is a user or token {name!r} already: choose another name")
        distinct("the users", [*taken, name])
        row = {"name": name, "role": choice("role", role, ROLES), "site": _site(site), "active": True}
        self._do(_users.insert().values(**row, at=time.time()))
        self.note(by, f"user {name} added as {role}" + (f" at {site}" if site else ""))
        return self.link(name, by)

    def change_user(self, name: str, role: str, site: str | None, active: bool, by: str) -> None:
        """Another role, site or standing: it ends all sessions of theirs."""
        choice("role", role, ROLES)
        if name == by and (role != ADMIN or not active):
            raise SurefootError("nobody takes the last admin away from themselves: let another admin do it")
        values = {"role": role, "site": _site(site), "active": active}
        if not self._do(_users.update().where(_users.c.name == name).values(**values)):
            raise SurefootError(f"there is no user {name!r}")
        self._do(_sessions.delete().where(_sessions.c.user == name))
        self.note(by, f"user {name}: {role}{f' at {site}' if site else ''}{'' if active else ', may not log in'}")

    def redeem(self, secret: str, name: str, password: str) -> str:
        """Use a one-time link: it sets the password, and makes the first admin. Returns the user's name."""
        where = (_links.c.hash == _hash(secret)) & (_links.c.ends > time.time())
        found = self._one(sa.select(_links).where(where))
        if not found:
            raise Refused("this link was used, is older than a day, or never was: ask for a new one")
        name = found.user or line("your name", name)
        hashed = self._hash_password(name, password)
        if not self._do(_links.delete().where(where)):
            raise Refused("this link was used a moment ago")
        if found.user is None:
            self._insert_new(_users, {"name": name, "role": ADMIN, "active": True, "at": time.time()})
            self._do(_users.update().where(_users.c.name == name).values(role=ADMIN, active=True))
        self._do(_users.update().where(_users.c.name == name).values(password=hashed))
        self._do(_sessions.delete().where(_sessions.c.user == name))
        self.note(name, "set a password")
        return name

    def _hash_password(self, name: str, password: str) -> str:
        if not LEAST <= len(password) <= MOST or password.casefold() == name.casefold():
            raise SurefootError(f"a password has {LEAST} to {MOST} characters, and is not the name")
        with self.hashing:
            return self.hasher.hash(password)

    # Sessions
    def login(self, name: str, password: str, address: str) -> str:
        """The cookie of a new session."""
        keys = ((self.by_pair, f"{name} {address}"), (self.by_address, address), (self.by_name, name))
        if wait := math.ceil(max(limiter.wait(key) for limiter, key in keys)):  # who waits so long is let in
            raise Refused(f"too many attempts: try again in {wait:,} seconds", wait)
        found = self._one(sa.select(_users).where((_users.c.name == name) & _users.c.active))
        try:
            with self.hashing:
                self.hasher.verify((found and found.password) or self.blank, password[:MOST])
        except argon2.exceptions.Argon2Error:
            found = None
        if not found:
            for limiter, key in keys:
                limiter.failed(key)
            known = self._one(sa.select(_users.c.name).where(_users.c.name == name))  # else it may be a password
            self.note(known.name if known else "nobody", f"could not log in from {address}")
            raise Refused("that name and password do not go together")
        self.by_pair.passed(keys[0][1])
        return self.begin(found.name)

    def begin(self, name: str) -> str:
        """A session of this user: always a new one, whatever cookie came along."""
        self._do(_sessions.delete().where(_sessions.c.ends < time.time()))
        sid = secrets.token_urlsafe(32)
        self._do(_sessions.insert().values(hash=_hash(sid), user=name, ends=time.time() + SESSION))
        self.note(name, "logged in")
        return str(self.signer.dumps(sid))

    def by_cookie(self, cookie: str, known: bool = False) -> Who | None:
        """Whose session it is; `known`: only if it was looked up a moment ago, without asking the database."""
        try:
            hashed = _hash(str(self.signer.loads(cookie)))
        except BadSignature:
            return None
        found = self._known.get(hashed)
        if known:
            return found[0] if found and found[1] > time.monotonic() else None
        return self._lookup(hashed, self._by_session)

    def _by_session(self, hashed: str) -> Who | None:
        u, s = _users.c, _sessions.c
        good = (s.hash == hashed) & (s.ends > time.time()) & u.active
        row = self._one(sa.select(u.name, u.role, u.site).join_from(_sessions, _users, s.user == u.name).where(good))
        return Who(row[0], row[1], row[2], "session", hashed) if row else None

    def by_proxy(self, name: str) -> Who | None:
        """Somebody whom the proxy vouches for; only who has an account here has a role."""
        row = self._one(sa.select(_users).where((_users.c.name == name) & _users.c.active))
        return Who(row.name, row.role, row.site, "proxy", _hash(f"proxy {name}")) if row else None

    def logout(self, who: Who) -> None:
        self._do(_sessions.delete().where(_sessions.c.hash == who.id))
        self.note(who.name, "logged out")

    # Tokens
    def tokens(self) -> list[Any]:
        return self._all(sa.select(_tokens).order_by(_tokens.c.name))

    def add_token(self, name: str, role: str, site: str | None, days: float, by: str) -> str:
        name = line("a token's name", name)
        if name in [row.name for row in self.users()]:
            raise SurefootError(f"there is a user {name!r}: a token needs a name of its own")
        if not 0 < days <= 400:
            raise SurefootError(f"a token lives for up to 400 days; got {days!r}")
        secret, now = f"sf_{secrets.token_urlsafe(32)}", time.time()
        row = {"hash": _hash(secret), "name": name, "role": choice("role", role, ROLES), "site": _site(site)}
        if not self._insert_new(_tokens, row | {"by": by, "at": now, "ends": now + days * DAY}):
            raise SurefootError(f"there is a token {name!r} already: choose another name")
        self.note(by, f"token {name} made as {role}")
        return secret

    def end_token(self, name: str, by: str) -> None:
        if not self._do(_tokens.delete().where(_tokens.c.name == name)):
            raise SurefootError(f"there is no token {name!r}")
        self.note(by, f"token {name} ended")

    def by_token(self, secret: str) -> Who | None:
        return self._lookup(_hash(secret), self._by_token)

    def _by_token(self, hashed: str) -> Who | None:
        good = (_tokens.c.hash == hashed) & (_tokens.c.ends > time.time())
        row = self._one(sa.select(_tokens.c.name, _tokens.c.role, _tokens.c.site).where(good))
        return Who(row[0], row[1], row[2], "token", hashed) if row else None

    def _lookup(self, hashed: str, find: Any) -> Who | None:
        """Kept for two seconds, and forgotten at any change made here: another process may have ended it."""
        now = time.monotonic()
        if (known := self._known.get(hashed)) and known[1] > now:
            return known[0]
        found = find(hashed)
        if len(self._known) > 5_000:
            self._known.clear()
        if found:
            self._known[hashed] = found, now + 2.0
        return found  # type: ignore[no-any-return]

    # Form tokens, requests that count once, meetings
    def form_token(self, who: Who) -> str:
        return str(self.forms.dumps(who.id[:32]))

    def is_form_token(self, token: str, who: Who) -> bool:
        try:
            return secrets.compare_digest(str(self.forms.loads(token)), who.id[:32])
        except BadSignature:
            return False

    def claim(self, key: str, what: str) -> tuple[bool, Any]:
        """Whether a request with this key is new; else what it was about and what was answered."""
        self._do(_requests.delete().where(_requests.c.at < time.time() - 7 * DAY))
        if self._insert_new(_requests, {"key": key, "what": what, "at": time.time()}):
            return True, None
        return False, self._one(sa.select(_requests).where(_requests.c.key == key))

    def settle(self, key: str, answer: str | None) -> None:
        """Keep what was answered; where it failed, forget that it was asked."""
        if answer is None:
            self._do(_requests.delete().where(_requests.c.key == key))
        else:
            self._do(_requests.update().where(_requests.c.key == key).values(answer=answer))

    def meeting(self, study: str) -> Any:
        return self._one(sa.select(_meetings).where(_meetings.c.study == study))

    def meet(self, study: str, seq: int, by: str) -> None:
        self._do(_meetings.delete().where(_meetings.c.study == study))
        self._do(_meetings.insert().values(study=study, seq=seq, at=time.time(), by=by))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _site(site: str | None) -> str | None:
    return line("a site", site) if site and site.strip() else None
