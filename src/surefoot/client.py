"""A study on a server, with the methods of `Study`: the same loop runs on a file or on a server.

Requests that were not answered are sent again with the same key, so they count once.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from .checks import path_of
from .designs import Design
from .designs.base import Verdict
from .problem import Problem, SurefootError

try:
    import httpx
except ImportError as error:
    raise SurefootError("the client needs httpx: pip install 'surefoot[web]'") from error

TRIES, PAUSE = 5, 0.2  # attempts where no answer comes, and seconds before the second


class Client:
    """`url`: of the server. `token`: from its page Access. `study`: which; may be left out where there is only one.

    Errors of the server are raised as SurefootError with its words.
    """

    def __init__(self, url: str, token: str, study: str | None = None, *, timeout: float = 60.0):
        self.url = url.rstrip("/")
        local = httpx.URL(self.url).host in ("localhost", "127.0.0.1", "::1")
        if not self.url.startswith("https://") and not (self.url.startswith("http://") and local):
            raise SurefootError(f"a token travels over https alone, or to this machine; got {url!r}")
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1", timeout=timeout, headers={"authorization": f"Bearer {token}"}
        )
        self._tags: dict[str, tuple[str, Any]] = {}
        self.name = study or self._only()

    @classmethod
    def create(
        cls, url: str, token: str, name: str, problem: Problem, design: str | Design | None = None, **more: Any
    ) -> Client:
        """A new study on the server; `more` as for `Study.create`."""
        client = cls(url, token, name)
        asked: dict[str, Any] = {"name": name, "problem": problem.to_dict(), **more}
        if isinstance(design, Design):
            asked |= {"design": design.name, "options": design.options}
        elif design is not None:
            asked["design"] = design
        client._send("POST", "/studies", asked)
        return client

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def _only(self) -> str:
        try:
            names = self.studies()
        except SurefootError:
            self.close()
            raise
        if len(names) != 1:
            self.close()
            said = ", ".join(map(repr, names)) or "none"
            raise SurefootError(f"{self.url} does not hold one study alone, name one: {said}")
        return names[0]

    def studies(self) -> list[str]:
        """The names of all studies there."""
        names: list[str] = []
        while some := self._send("GET", f"/studies?limit=1000&after={quote(names[-1] if names else '', safe='')}")[
            "studies"
        ]:
            names += some
            if len(some) < 1000:
                break
        return names

    # Asking
    def _send(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"idempotency-key": secrets.token_urlsafe(16)} if method == "POST" else {}
        if method == "GET" and path in self._tags:
            headers["if-none-match"] = self._tags[path][0]
        for k in range(TRIES):
            try:
                answer = self._http.request(method, path, headers=headers, json=body)
            except httpx.TransportError as error:
                if k == TRIES - 1:
                    raise SurefootError(
                        f"{self.url} does not answer ({error}); whether it was done is unknown: send it again"
                    ) from error
            else:
                if answer.status_code == 409 and k < TRIES - 1:  # the first try is being worked on
                    pass
                elif answer.status_code == 304:
                    return self._tags[path][1]
                else:
                    return self._read(path, answer)
            time.sleep(PAUSE * 2**k)
        raise SurefootError(f"{self.url} is still at work on this")

    def _read(self, path: str, answer: httpx.Response) -> Any:
        try:
            data = answer.json()
        except ValueError:
            raise SurefootError(f"{self.url} answered {answer.status_code}, and not in JSON: is it surefoot?") from None
        if answer.is_error:
            raise SurefootError(str(data.get("detail", data)) if isinstance(data, dict) else str(data))
        if tag := answer.headers.get("etag"):
            if len(self._tags) > 50:
                self._tags.clear()
            self._tags[path] = tag, data
        return data

    def _at(self, rest: str = "") -> str:
        return f"/studies/{path_of(self.name)}{rest}"

    # The methods of Study
    def ask(self, limit: int | None = None, *, site: str | None = None, blocks: bool | None = None) -> list[Any]:
        query = f"?limit={limit or 100_000}" + (f"&site={quote(site, safe='')}" if site else "")
        query += "" if blocks is None else f"&blocks={bool(blocks)}".lower()
        return _assignments(self._send("GET", self._at(f"/assignments{query}")))

    def awaiting(self, *, site: str | None = None) -> list[Any]:
        query = f"?site={quote(site, safe='')}" if site else ""
        return _assignments(self._send("GET", self._at(f"/awaiting{query}")))

    def assign(self, count: int, site: str | None = None) -> list[Any]:
        return _assignments(self._send("POST", self._at("/assignments"), {"count": count, "site": site}))

    def tell(
        self, id: str, effect: Any = None, harm: Any = None, dose: Any = None, *, key: str | None = None,
        confirm: str | None = None, **block: Any,
    ) -> str | None:  # fmt: skip
        body = {"id": id, "effect": effect, "harm": harm, "dose": dose, "key": key, "confirm": confirm, **block}
        said: str | None = self._send("POST", self._at("/readings"), _plain(body))["deviation"]
        return said

    def tell_many(self, rows: str | Path | Iterable[Mapping[str, Any]]) -> int:
        from .study.text import table

        found = [row for _, row in table(rows)]
        return int(self._send("POST", self._at("/readings/many"), {"rows": _plain(found)})["done"])

    def void(self, id: str, reason: str) -> None:
        self._send("POST", self._at("/void"), {"id": id, "reason": reason})

    def give_back(self, ids: Sequence[str], why: str) -> None:
        self._send("POST", self._at("/return"), {"ids": list(ids), "reason": why})

    def correct(
        self, id: str, effect: Any = None, harm: Any = None, reason: str = "", *, dose: Any = None,
        confirm: bool = False, **block: Any,
    ) -> str | None:  # fmt: skip
        body = {"id": id, "effect": effect, "harm": harm, "dose": dose, "reason": reason, "confirm": confirm, **block}
        said: str | None = self._send("POST", self._at("/correct"), _plain(body))["undone"]
        return said

    def pause(self, reason: str) -> None:
        self._send("POST", self._at("/pause"), {"reason": reason})

    def resume(self, reason: str, *, voids: Mapping[str, float] | None = None) -> None:
        self._send("POST", self._at("/resume"), {"reason": reason, "voids": dict(voids) if voids else None})

    def stop(self, reason: str) -> None:
        self._send("POST", self._at("/stop"), {"reason": reason})

    def status(self) -> dict[str, Any]:
        return dict(self._send("GET", self._at()))

    def verdict(self) -> Verdict:
        found = self._send("GET", self._at("/verdict"))
        one = {"pulls", "rounds", "ending", "winner"}
        kinds = {k: Verdict.__dataclass_fields__[k] for k in found["verdict"] if k in Verdict.__dataclass_fields__}
        arrays = {k: np.array([float(x) if isinstance(x, str) else x for x in found["verdict"][k]]) for k in kinds}
        batch = {k: a if k in one else a[None] for k, a in arrays.items()}
        return Verdict(problem=Problem.from_dict(found["problem"]), **batch)

    def certificate(self) -> Any:
        from .study.certificate import Certificate

        return Certificate(self._send("GET", self._at("/certificate")))

    def preview(self) -> list[dict[str, Any]]:
        return list(self._send("GET", self._at("/preview"))["rows"])

    def verify(self) -> dict[str, Any]:
        return dict(self._send("GET", self._at("/verify")))

    def log(self, after: int = 0) -> list[Any]:
        """The events after number `after`."""
        from .study.checker import Event

        found: list[Any] = []
        while some := self._send("GET", self._at(f"/events?after={found[-1].seq if found else after}"))["events"]:
            found += [Event(**event) for event in some]
        return found

    def follow(self, after: int = 0) -> Iterator[Any]:
        """Events as they come, for ever; those after number `after` first."""
        from .study.checker import Event

        with self._http.stream("GET", self._at(f"/stream?after={after}"), timeout=None) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield Event(**json.loads(line[6:]))


def _assignments(data: Mapping[str, Any]) -> list[Any]:
    from .study.status import Assignment

    return [Assignment(**({"subject": 0, "why": ""} | row)) for row in data["assignments"]]


def _plain(data: Any) -> Any:
    """For JSON: what is not finite, or nothing that JSON has, as text, so that the server refuses it in words."""
    if isinstance(data, dict):
        return {str(k): _plain(v) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(v) for v in data]
    if isinstance(data, np.generic):
        data = data.item()
    plain = data is None or isinstance(data, (str, int)) or (isinstance(data, float) and data - data == 0)
    return data if plain else str(data)
