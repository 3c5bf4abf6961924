"""Every route as nobody and as each role; forged, stolen, expired and cross-site requests; hostile text."""

from __future__ import annotations

import html
import re
import socket
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from surefoot import SurefootError
from surefoot.web import gate, serve
from surefoot.web.access import ROLES, Access, Limiter, Refused
from surefoot.web.accounts import _local
from surefoot.web.app import Patient, table
from surefoot.web.gate import Safety

from .server import PASSWORD, Server, play, serving, token

NASTY = [
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}'; DROP TABLE surefoot_events; --",
    "../../etc/passwd\r\nSet-Cookie: x=y" + "a" * 3000,
    "\u202egnp.exe \x00 %00",
]


def filled(path: str) -> str:
    return path.replace("{part}", "one").replace("{id}", "none")


def knock(client: httpx.Client, method: str, path: str, bearer: str | None, form: str | None) -> int:
    """The status of a request with the right token, and a body that means nothing."""
    url = filled(path)
    if path.endswith("/stream"):
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        with client.stream(method, url, headers=headers, follow_redirects=False) as answer:
            return answer.status_code
    if path.startswith("/api/v1/"):
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        return client.request(method, url, headers=headers, json={} if method == "POST" else None).status_code
    if method == "GET":
        return client.get(url, follow_redirects=False).status_code
    return client.post(url, data={"token": form or ""}, follow_redirects=False).status_code


SLOW = ("paste", "certificate", "readings.csv", "verify", "preview", "forecast")  # would start a process each


def test_each_route_for_each_role(server: Server) -> None:
    """What the table says is what happens: 401, 403 or the login page for who may not, anything else for who may."""
    rows = table(server.app)
    assert len(rows) > 50
    assert not [r for r in rows if not r[2] and r[1] not in ("/login", "/first")]
    for role in (None, *ROLES):
        name = f"all {role}"
        client = server.person(name, role) if role else server.client()
        bearer = server.site.access.add_token(f"t {role}", role, None, 1, "test") if role else None
        form = token(client) if role else None
        for method, path, roles in rows:
            allowed = not roles or role in roles
            if path == "/logout" or (allowed and any(word in path for word in SLOW)):
                continue
            status = knock(client, method, path, bearer, form)
            said = f"{method} {path} as {role}: {status}"
            if allowed:
                assert status not in (401, 500, 405), said
                assert status != 403 or path in ("/login", "/first"), said
            elif role is None:
                assert status in (401, 303), said
            else:
                assert status == 403, said


def test_other_verbs(server: Server) -> None:
    client = server.person("verbs", "admin")
    paths = sorted({filled(path) for _, path, _ in table(server.app)})
    for k, path in enumerate(paths):
        assert client.request(["PUT", "DELETE", "PATCH", "TRACE"][k % 4], path).status_code in (405, 403)


def test_from_elsewhere(server: Server) -> None:
    client = server.person("cross", "statistician")
    form = {"token": token(client), "command": "stop", "reason": "x", "step": "do", "key": "k"}
    for headers in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "none"}):
        assert client.post("/study/one/change", data=form, headers=headers).status_code == 403
    del client.headers["sec-fetch-site"]
    assert client.post("/study/one/change", data=form).status_code == 403
    assert client.post("/study/one/change", data=form, headers={"origin": "https://evil.example"}).status_code == 403
    assert client.post("/study/one/change", data=form, headers={"origin": "null"}).status_code == 403
    assert server.site.hub.study("one").status()["standing"] == "running"


def test_form_tokens_are_of_one_session(server: Server) -> None:
    mine, other = server.person("mine", "statistician"), server.person("other", "statistician")
    stolen = token(other)
    for bad in (stolen, "", "x", stolen[:-1], token(server.person("mine", "statistician"))):
        assert mine.post("/study/one/meeting", data={"token": bad}).status_code == 403
    assert mine.post("/study/one/meeting", data={"token": token(mine)}).status_code == 200


def test_a_session_is_new_at_login_and_over_at_logout(server: Server) -> None:
    server.person("fix", "reader")
    planted = server.site.access.begin("fix")
    client = server.client(headers={"cookie": f"surefoot={planted}"}, follow_redirects=False)
    form = {"name": "fix", "password": PASSWORD, "token": token(client)}
    answer = client.post("/login", data=form)
    found = re.search("surefoot=([^;]+)", answer.headers["set-cookie"])
    assert found and found[1] != planted, "whatever cookie came along, the session is a new one"
    mine = server.client(cookies={"surefoot": found[1]}, follow_redirects=False)
    assert mine.get("/").status_code == 200
    mine.post("/logout", data={"token": token(mine)})
    again = server.client(cookies={"surefoot": found[1]}, follow_redirects=False)
    assert again.get("/").status_code == 303, "the server has forgotten it"


def test_cookies_cannot_be_read_by_scripts_or_sent_from_elsewhere(server: Server) -> None:
    server.person("cook", "reader")
    answer = server.client(follow_redirects=False).post("/login", data={"name": "cook", "password": PASSWORD})
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said and "samesite=strict" in said and PASSWORD not in said


def test_a_change_of_role_ends_sessions(server: Server) -> None:
    client = server.person("changes", "admin")
    boss = server.person("boss", "admin")
    assert client.get("/access", follow_redirects=False).status_code == 200
    form = {"token": token(boss), "name": "changes", "role": "reader", "do": "change"}
    assert boss.post("/access/change", data=form).status_code == 200
    assert client.get("/access", follow_redirects=False).status_code == 303
    assert boss.post("/access/change", data=form | {"name": "boss"}).status_code == 422, "not away from oneself"
    assert boss.post("/access/change", data=form | {"do": "bar"}).status_code == 200
    assert server.client().post("/login", data={"name": "changes", "password": PASSWORD}).status_code == 403


def test_tokens_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = server.site.access.add_token("short", "reader", None, 1, "test")
    with server.client(headers={"authorization": f"Bearer {secret}"}) as client:
        assert client.get("/api/v1/studies").status_code == 200
        later = time.time() + 2 * 86400
        monkeypatch.setattr("surefoot.web.access.time.time", lambda: later)
        server.site.access._known.clear()
        assert client.get("/api/v1/studies").status_code == 401
        monkeypatch.undo()
        server.site.access.end_token("short", "test")
        answer = client.get("/api/v1/studies")
        assert answer.status_code == 401 and answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == 401


def test_a_cookie_opens_no_api(server: Server) -> None:
    assert server.person("cookie", "admin").get("/api/v1/studies").status_code == 401


def test_wrong_logins(server: Server) -> None:
    """A thousand of them: a few are looked at, the others wait; the right password waits too, from there."""
    server.person("victim", "reader")
    client, seen = server.client(), []
    for k in range(12):
        seen.append(client.post("/login", data={"name": "victim", "password": f"guess {k} {k}"}).status_code)
    for k in range(1000):
        with pytest.raises(Refused) as error:
            server.site.access.login("victim", f"guess {k}", "127.0.0.1")
        seen.append(429 if error.value.wait else 403)
    assert seen.count(403) <= 15 and set(seen) == {403, 429}, "those that were looked at"
    for _ in range(8):  # a busy machine may be slower than the first waits
        server.site.access.by_pair.failed("victim 127.0.0.1")
    refused = client.post("/login", data={"name": "victim", "password": PASSWORD})
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
    limits = server.site.access.by_pair, server.site.access.by_address, server.site.access.by_name
    for limiter in limits:
        limiter.seen.clear()


def test_limits_double_and_are_bounded() -> None:
    limiter = Limiter(2)
    for _ in range(10):
        limiter.failed("x")
    assert 200 < limiter.wait("x") <= 256 and limiter.wait("y") == 0
    for k in range(11_000):
        limiter.failed(str(k))
    assert len(limiter.seen) <= 10_000


def test_links_work_once(db: Path) -> None:
    it = Access(db)
    secret = it.link(None, "test")
    with pytest.raises(Refused):
        it.redeem("x" + secret, "ann", PASSWORD)
    with pytest.raises(ValueError, match="12 to 500"):
        it.redeem(secret, "ann", "short")
    assert not it.has_admin()
    it.redeem(secret, "ann", PASSWORD)
    assert it.has_admin()
    with pytest.raises(Refused):
        it.redeem(secret, "eve", PASSWORD)
    first, second = it.link(None, "test"), it.link(None, "test")
    with pytest.raises(Refused):
        it.redeem(first, "eve", PASSWORD)
    with pytest.raises(ValueError, match="look alike"):
        it.add_user("aпп".replace("п", "n").replace("a", "а"), "reader", None, "ann")  # noqa: RUF001
    assert second
    stored = b"".join(path.read_bytes() for path in db.parent.glob("studies.db*"))
    for hidden in (PASSWORD, secret, first, second):
        assert hidden.encode() not in stored


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_hostile_text_is_shown_or_refused_and_never_run(server: Server, text: str) -> None:
    """In every field of every form: no 500, and nothing that comes back is markup."""
    client = server.person("nasty", "admin")
    form = token(client)
    names = (
        "id", "effect", "harm", "dose", "confirm", "key", "reason", "text", "site", "count", "name", "role", "days",
        "command", "ids", "trials", "next", "link", "step",
    )  # fmt: skip
    for method, path, _ in table(server.app):
        if (
            method == "POST"
            and not path.startswith("/api/")
            and path not in ("/logout",)
            and not any(w in path for w in SLOW)
        ):
            fields = dict.fromkeys(names, text) | {"token": form, "password": text, "again": text}
            if path.endswith("/change") and "study" in path:
                fields |= {"command": "correct", "step": "do"}
            answer = client.post(filled(path), data=fields)
            assert answer.status_code < 500, f"{path}: {answer.text[:200]}"
            assert text not in answer.text or html.escape(text) == text, path
    for path in ("/", "/login?next=", "/study/one/journal?words=", "/study/one/enter?site=", "/?search="):
        answer = client.get(path + (quote(text) if "?" in path else ""))
        assert answer.status_code < 500 and "<script>alert" not in answer.text and "<img src=x" not in answer.text
    bearer = {"authorization": f"Bearer {_token(server)}"}
    for method, path, _ in table(server.app):
        if method == "POST" and path.startswith("/api/v1/") and path != "/api/v1/studies/{part}/stop":
            answer = client.post(filled(path), json=dict.fromkeys(names, text) | {"rows": [text]}, headers=bearer)
            assert 400 <= answer.status_code < 500, path


def _token(server: Server) -> str:
    access: Any = server.site.access
    if "nasty t" in [t.name for t in access.tokens()]:
        access.end_token("nasty t", "test")
    return str(access.add_token("nasty t", "admin", None, 1, "test"))


def test_downloads_stay_in_the_database(server: Server) -> None:
    client = server.person("path", "reader")
    for part in ("..%2f..%2fetc%2fpasswd", "%2e%2e", "....//", "~1etc~1passwd", "one%00", "/etc/passwd"):
        for what in ("readings.csv", "certificate.html", "journal"):
            assert client.get(f"/study/{part}/{what}").status_code == 404
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/access.py"):
        assert client.get(path).status_code == 404


def test_sizes_and_kinds(server: Server) -> None:
    client = server.person("size", "statistician")
    form = {"token": token(client), "text": "x" * 5_000_000}
    assert client.post("/study/one/paste", data=form).status_code == 413
    parts = (b"x" * 100_000 for _ in range(60))
    answer = client.post(
        "/study/one/paste", content=parts, headers={"content-type": "application/x-www-form-urlencoded"}
    )
    assert answer.status_code == 413
    assert client.post("/study/one/paste", files={"text": b"x"}).status_code == 415
    assert client.post("/study/one/paste", content=b"text=%ff%fe").status_code in (400, 415)


def test_headers_of_every_answer(server: Server) -> None:
    client = server.person("head", "reader")
    for path in ("/", "/login", "/nothing", "/static/page.js", "/study/one", "/api/v1/studies", "/study/one/board"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy and "default-src 'none'" in policy and "http" not in policy
        assert headers["x-content-type-options"] == "nosniff" and "server" not in headers
        assert headers["x-frame-options"] == "DENY"
    page = client.get("/study/one").text
    assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=|javascript:|https?://", page)


def test_other_hosts_are_refused(server: Server) -> None:
    client = server.person("host", "reader")
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:80", ""):
        assert client.get("/", headers={"host": host}).status_code in (400, 421)


def test_no_redirect_elsewhere(server: Server) -> None:
    for to in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/\n/evil", ""):
        assert _local(to) == "/"
    server.person("redirect", "reader")
    form = {"name": "redirect", "password": PASSWORD, "next": "//evil.example"}
    assert server.client(follow_redirects=False).post("/login", data=form).headers["location"] == "/"


def said(server: Server, *parts: bytes) -> bytes:
    """What the server answers to bytes as they are."""
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=60) as far:
        for part in parts:
            far.sendall(part)
        answer = b""
        while more := far.recv(65_536):
            answer += more
    return answer


def test_those_who_hold_the_door(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers and bodies that do not end, bodies that nobody in particular sends, requests with two ends."""
    head = b"%b HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nsec-fetch-site: same-origin\r\n%b\r\n\r\n"
    for what, patience, sent, answer in (
        (Patient, "within", [b"GET / HT"], b""),  # closed without a word
        (gate, "BODY_WITHIN", [head % (b"POST /login", b"content-length: 100"), b"name=x"], b"HTTP/1.1 408 "),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(what, patience, 0.3)
            assert said(server, *sent)[:13] == answer
    paste = head % (b"POST /study/one/paste", b"content-length: 3000000")
    assert b" 303 " in said(server, paste, b"x" * 10_000)[:20], "of nobody it is not even read"
    kind = b"content-length: 3000000\r\ncontent-type: application/json\r\nauthorization: Bearer x"
    assert b" 400 " in said(server, head % (b"POST /api/v1/studies", kind), b" " * 30_000)[:20], "no more than a little"
    hidden = b"0\r\n\r\nGET /x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    twice = head.replace(b"connection: close\r\n", b"") % (
        b"POST /",
        b"content-length: 4\r\ntransfer-encoding: chunked",
    )
    assert said(server, twice, hidden).count(b"HTTP/1.1 ") == 1, "what hides behind the first end is not looked at"


def test_numbers_and_texts_without_end(server: Server) -> None:
    admin, huge = server.person("huge", "admin"), "9" * 40
    for path in ("/?page=", "/access?before=", "/study/one/journal?before=", "/study/one/enter?page="):
        assert admin.get(path + huge).status_code == 422 and admin.get(path + "-1").status_code == 422
    api = server.client(headers={"authorization": f"Bearer {_token(server)}"})
    for path in ("/events?after=", "/events?limit=", "/assignments?limit="):
        assert api.get(f"/api/v1/studies/one{path}{huge}").status_code == 422
    assert api.post("/api/v1/studies/one/assignments", json={"count": 501, "site": "x"}).status_code == 422
    many = {"name": "x", "problem": {"arms": [{"name": f"a{k}"} for k in range(20_000)]}}
    assert "at most 500 arms" in api.post("/api/v1/studies", json=many).text
    form = {"token": token(admin)}
    for text in ("a = " + "[" * 4_000, "a." * 50_000 + "b = 1", "a = 1\n" * 50_000, "[[arms]]\nname = 'x'\n" * 501):
        answer = admin.post("/lab/text", data=form | {"text": text})
        assert answer.status_code == 200 and "wrong" in answer.text


def test_what_was_typed_in_the_wrong_field_is_kept_nowhere(server: Server) -> None:
    assert server.client().post("/login", data={"name": PASSWORD, "password": "ann"}).status_code == 403
    assert PASSWORD not in str(server.site.access.history()) and server.site.access.history()[0].by == "nobody"


def test_keys_of_others(server: Server) -> None:
    """An Idempotency-Key is of one token: nobody is answered what another was."""
    access = server.site.access
    one, two = (
        server.client(headers={"authorization": f"Bearer {access.add_token(f'key {k}', 'statistician', None, 1, 'x')}"})
        for k in "ab"
    )
    path, key, body = "/api/v1/studies/one/pause", {"idempotency-key": "k"}, {"reason": "lunch"}
    answers = [far.post(path, json=body, headers=key) for far in (one, one, two)]
    assert [a.headers.get("idempotent-replay") for a in answers] == [None, "true", None]
    assert one.post(path, json={"reason": "tea"}, headers=key).status_code == 422
    server.site.hub.study("one").resume("back")


def test_a_stream_ends_with_its_session(server: Server) -> None:
    """After logout and after a change of role nothing more is heard, whatever happens in the study."""
    for k, end in enumerate(("logout", "role", "token")):
        client = server.person(f"hears {k}", "reader")
        secret = server.site.access.add_token(f"hears t{k}", "reader", None, 1, "x")
        api = server.client(headers={"authorization": f"Bearer {secret}"})
        far, path = (api, "/api/v1/studies/one/stream") if end == "token" else (client, "/study/one/stream")
        with far.stream(
            "GET", path, params={"since": (at := server.site.hub.head("one", now=True)[0]), "after": at}
        ) as heard:
            if end == "logout":
                client.post("/logout", data={"token": token(client)})
            elif end == "role":
                server.site.access.change_user(f"hears {k}", "data entry", None, True, "test")
            else:
                server.site.access.end_token(f"hears t{k}", "test")
            server.site.hub.study("one").pause("something happens")
            server.site.hub.study("one").resume("and is over")
            assert "data" not in "".join(heard.iter_text()), end


def test_sign_on_by_a_proxy(tmp_path: Path) -> None:
    """The header counts from the proxy's address alone, and only for who has an account."""
    db = tmp_path / "sso.db"
    play(db, "one", "paper-linear", 3, most=1)
    for proxy, believed in (("127.0.0.1", True), ("10.9.8.7", False)):
        with serving(db, Safety(proxy=proxy, sso="x-user")) as server:
            if believed:
                server.person("ann", "reader")
            client = server.client(follow_redirects=False)
            assert (client.get("/", headers={"x-user": "ann"}).status_code == 200) is believed
            assert client.get("/", headers={"x-user": "nobody"}).status_code == 303
            assert client.get("/").status_code == 303
            twice = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nx-user: ann\r\nx-user: eve\r\n\r\n"
            assert b" 303 " in said(server, twice)[:20], "the first may be the browser's own"
    headers = [(b"x-forwarded-for", b"1.1.1.1"), (b"x-forwarded-for", b"2.2.2.2, 3.3.3.3")]
    scope = {"type": "http", "client": ("127.0.0.1", 1), "headers": headers}
    assert Safety(proxy="127.0.0.1").address(scope) == "3.3.3.3", "what the proxy saw, not what a browser says"


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate of `localhost` and its private key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    signed = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False).sign(key, SHA256())
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(signed.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


def test_tls(tmp_path: Path) -> None:
    """The command itself, with a real certificate: https alone, cookies that never travel in the open."""
    certificate, key = self_signed(tmp_path)
    with pytest.raises(SurefootError, match="are no certificate and its key"):
        serve(tmp_path / "s.db", certificate=key, private_key=certificate)
    how = ["--certificate", str(certificate), "--private-key", str(key), "--port", "0", "--no-browser"]
    command = [sys.executable, "-m", "surefoot", "serve", "--db", str(tmp_path / "s.db"), *how, "--name", "localhost"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            link = [server.stdout.readline().strip() for _ in range(2)][1]
            base, _, secret = link.partition("/first#")
            found = re.fullmatch(r"https://localhost:(\d+)", base)
            assert found
            here = {"sec-fetch-site": "same-origin"}
            trusted = ssl.create_default_context(cafile=certificate)
            with httpx.Client(base_url=base, verify=trusted, headers=here, timeout=60) as client:
                page = client.get("/login")
                assert page.headers["strict-transport-security"].startswith("max-age=")
                form = {"link": secret, "name": "ann", "password": PASSWORD, "again": PASSWORD}
                said = client.post("/first", data=form).headers.get_list("set-cookie")
                assert len(said) == 2 and all("secure" in x.lower() and "httponly" in x.lower() for x in said)
                assert said[1].startswith("__Host-surefoot=") and "domain" not in said[1].lower()
                assert "No study yet" in client.get("/").text
            with pytest.raises(httpx.TransportError):
                httpx.get(f"http://localhost:{found[1]}/login", timeout=60)
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                httpx.get(f"{base}/login", timeout=60)
            with pytest.raises(SurefootError, match="Give another --port"):
                serve(tmp_path / "s.db", port=int(found[1]))
        finally:
            server.terminate()


def test_entry_sees_no_more_than_its_own(server: Server) -> None:
    """No bounds, no journal, no order ahead, no picture: also not in what the API answers."""
    study = server.site.hub.study("one")
    mine = study.assign(1, "north", actor="test")[0]
    other = study.ask(1)[0]
    client = server.person("nurse", "data entry", "north")
    page = client.get("/study/one", follow_redirects=True)
    assert mine.id in page.text and other.id not in page.text
    for word in ("certified", "Safe dose", "still in", 'svg class="chart', "recommend", "Best supported", other.id):
        assert word not in page.text, word
    form = {"token": token(client, "/study/one/enter"), "effect": "0.1", "harm": "0.1", "key": "n1"}
    assert client.post("/study/one/tell", data=form | {"id": other.id}).status_code == 422
    assert (
        client.post(
            "/study/one/paste", data=form | {"text": f"id,effect,harm\n{other.id},1,1", "step": "tell"}
        ).status_code
        == 422
    )
    assert client.post("/study/one/dropped", data=form | {"id": other.id, "reason": "x"}).status_code == 422
    secret = server.site.access.add_token("nurse robot", "data entry", "north", 1, "test")
    with server.client(headers={"authorization": f"Bearer {secret}"}) as api:
        found = api.get("/api/v1/studies/one/assignments").json()["assignments"]
        assert [set(row) for row in found] == [{"id", "arm", "dose"}]
        assert api.post("/api/v1/studies/one/readings", json={"id": other.id, "harm": 1}).status_code == 422
        done = api.post("/api/v1/studies/one/readings", json={"id": mine.id, "harm": 0.1, "effect": 0.2})
        assert done.json() == {"done": True, "deviation": None}
    assert study.log()[-1].actor == "nurse robot (data entry, token)"
