"""Thousands of calls that nobody should make: no traceback, exit codes as documented, nothing written by a refusal."""

from __future__ import annotations

import math
import random
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from surefoot import Study, SurefootError
from surefoot.cli import main

from .subjects import problem

ODD: list[Any] = [
    None, "", " ", "x", "[/]", "[red]", "\x00", "\x1b[31m", "\u202e", "a" * 300, "é" * 70, 0, 1, -1, 2.5, True,
    math.nan, math.inf, -math.inf, 10**400, 1e308, 1e-320, [], [1], {}, {"x": 1}, {"effect": 1}, b"x", object(), "=1+1",
    "../../etc", "-1", "--help",
    "null", "0" * 64, {"head": None}, "<!doctype html>", {"harm": (0, 1)}, {"effect": 0.0, "harm": math.nan},
]  # fmt: skip

METHODS = {
    "tell": ("id", "effect", "harm", "dose", "key", "confirm", "actor"), "tell_many": ("rows", "actor"),
    "void": ("id", "reason", "actor"), "correct": ("id", "effect", "harm", "reason", "dose"),
    "pause": ("reason",), "resume": ("reason", "voids"), "assign": ("count", "site"), "give_back": ("ids", "why"),
    "ask": ("limit",), "verify": ("head", "certificate", "checkpoint", "keys"), "adopt": ("reason",),
    "checkpoint": ("key",), "stop": ("reason",), "desk": ("site",),
}  # fmt: skip
REFUSED = (SurefootError, TypeError)  # a TypeError of Python's own: a missing or unknown argument


def test_python_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(5)
    study = Study.create(tmp_path / "s.db", "s", problem(), seed=1)
    ids = [a.id for a in study.ask()]
    told = refused = 0
    for _ in range(800):
        method = rng.choice([m for m in METHODS if m != "stop"])
        names = METHODS[method]
        values = {n: rng.choice(ids) if n == "id" and rng.random() < 0.5 else rng.choice(ODD) for n in names}
        before = study.log()[-1].seq
        try:
            getattr(study, method)(**values)
            told += 1
        except SurefootError:
            refused += 1
            assert study.log()[-1].seq == before, (method, values)
    assert told > 10 and refused > 300
    for _ in range(200):
        names = ("name", "problem", "design", "actor", "seed", "watch_level", "watch", "plausible", "lift")
        changed: Any = {"name": "n", "problem": problem()} | {rng.choice(names): rng.choice(ODD)}
        try:
            Study.create(tmp_path / "c.db", **changed).journal.engine.dispose()
            (tmp_path / "c.db").unlink()
        except SurefootError:
            refused += 1
    for odd in ODD:
        with pytest.raises(REFUSED):
            Study.load(tmp_path / "l.db", odd)
    assert study.verify()["ok"]


COMMANDS = (
    "ask", "tell", "void", "correct", "pause", "resume", "status", "log", "preview", "verify", "export", "return",
    "next", "import", "certificate", "checkpoint", "witness", "adopt", "backup", "list", "create",
)  # fmt: skip
FLAGS = (
    "--effect", "--harm", "--dose", "--reason", "--limit", "--reserve", "--for", "--count", "--key", "--csv", "--out",
    "--head", "--certificate", "--checkpoint", "--actor", "--study", "--last", "--json", "--void-effect", "--confirm",
    "--nonsense", "--set", "--seed", "--plausible", "--watch-level", "--db", "--awaiting",
)  # fmt: skip
WORDS = [
    "x",
    "",
    " ",
    "[/]",
    "1",
    "-1",
    "nan",
    "inf",
    "1e400",
    "s.db",
    "p.toml",
    "none.json",
    "a=b",
    "harm=1:2",
    "\u202e",
]


def written() -> dict[str, int]:
    """The events of each study in the file."""
    with closing(sqlite3.connect("s.db")) as file:
        return dict(file.execute("SELECT study, max(seq) FROM surefoot_events GROUP BY study"))


def test_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_DB", "s.db")
    Path("p.toml").write_text(problem().to_toml())
    study = Study.create("s.db", "s", problem(), seed=1)
    id, rng, codes = study.ask()[0].id, random.Random(3), set[Any]()
    keep = Path("s.db").read_bytes()
    for _ in range(150):
        words = [rng.choice((*WORDS, id)) for _ in range(rng.randint(0, 2))]
        for _ in range(rng.randint(0, 3)):
            words += [rng.choice(FLAGS), rng.choice((*WORDS, id))][: rng.randint(1, 2)]
        before = written()
        with pytest.raises(SystemExit) as stop:
            main(["study", rng.choice(COMMANDS), *words])
        said = capsys.readouterr()
        assert "Traceback" not in said.err + said.out
        code = stop.value.code
        codes.add(code)
        assert code in (0, 1, 2), (words, code)
        if code:
            assert said.err or said.out, words
            assert written() == before, words
        for other in tmp_path.iterdir():
            if other.name not in ("s.db", "p.toml"):
                other.unlink() if other.is_file() else None
        if len(written()) > 1 or written()["s"] > 40:
            Path("s.db").write_bytes(keep)
    assert {0, 2} <= codes
    assert sys.getrecursionlimit() > 100
