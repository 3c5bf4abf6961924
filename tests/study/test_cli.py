"""The commands: one JSON object each, exit code 2 and a line of words for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surefoot import Study
from surefoot.cli import main
from surefoot.study.keys import Key

from .subjects import problem, scenario, subjects


class Terminal:
    def __init__(self, capsys: pytest.CaptureFixture[str]):
        self.capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as stop:
            main(["study", *arguments])
        said = self.capsys.readouterr()
        assert stop.value.code == code, said.out + said.err
        return said.out if code != 2 else said.err

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self(*arguments, "--json", code=code))
        return found


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_DB", "trial.db")
    monkeypatch.setenv("COLUMNS", "200")
    Path("headache.toml").write_text(problem(sigma=0.1).to_toml())
    terminal = Terminal(capsys)
    terminal("create", "headache.toml", "--seed", "3", "--actor", "ann")
    return terminal


def test_a_study_on_the_command_line(cli: Terminal, tmp_path: Path) -> None:
    people = subjects(problem(sigma=0.1))
    found = cli.json("ask")
    assert found["assignments"][0].keys() >= {"id", "arm", "dose"}
    first, second, third = (a["id"] for a in found["assignments"][:3])
    assert cli.json("ask", "--limit", "1")["assignments"] == found["assignments"][:1]
    told = cli("tell", first, "--effect", "0.1", "--harm", "0.2", "--key", "k")
    assert f"1 told; {first}: {found['assignments'][0]['arm']} at 0.2, effect 0.1, harm 0.2" in told
    assert cli.json("tell", first, "--effect", "0.1", "--harm", "0.2", "--key", "k")["told"] == 0
    cli("tell", second, "--harm", "0.2")
    assert [a["id"] for a in cli.json("ask", "--awaiting")["assignments"]] == [second]
    cli("tell", second, "--effect", "0.2")
    changed = cli.json("correct", first, "--harm", "0.1", "--reason", "typo")
    assert changed["deviations"] == [] and changed["recorded"].endswith("effect 0.1, harm 0.2 -> 0.1")
    assert "paused" in cli("void", third, "--reason", "gone")
    assert cli.json("status")["standing"] == "paused"
    cli("resume", "--reason", "fine")
    assert "what to do: resume it with a reason, or stop it" in cli("pause", "--reason", "weekend")
    assert "is paused by" in cli("ask", code=2) and "weekend" in cli("next", "--for", "x", code=2) + cli("status")
    cli("resume", "--reason", "monday")
    fourth = cli.json("ask")["assignments"][0]["id"]
    given = "tell", fourth, "--effect", "0.1", "--harm", "0.1", "--dose", "0.15"
    said = f"{fourth}: given at 0.15 instead of 0.2: the certificate lists it as a deviation"
    assert said in " ".join(cli(*given).split()) and cli.json(*given)["deviations"] == [said]
    assert "mean harm" in cli("status") and {(r["from"], r["n"]) for r in cli.json("status")["rates"]} == {
        (0.15, 1), (0.2, 1)
    }  # fmt: skip
    assert cli.json("preview")["rows"]
    while True:
        study = Study.open("trial.db")
        if not (asked := study.ask()):
            break
        rows = people.rows(asked)
        Path("r.csv").write_text(
            "id,effect,harm\n" + "".join(f"{r['id']},{r['effect']!r},{r['harm']!r}\n" for r in rows)
        )
        found = cli.json("tell", "--csv", "r.csv")
        assert (found["told"], found["deviations"]) == (len(rows), [])
    assert "ended" in cli("status") and "refuted" in cli("status")
    status = cli.json("status")
    assert status["winner"] == "A" and status["standing"] == "ended"
    head = status["head"]["hash"]
    assert cli.json("verify", "--head", head)["ok"]
    assert not cli.json("verify", "--head", "0" * 64, code=1)["ok"]
    assert "to notice removed last events, give the head that you noted" in " ".join(cli("verify").split())
    assert "A is the best arm" in cli("certificate", "--out", "c.html")
    cli("certificate", "--out", "c.json")
    assert not cli.json("verify", "--certificate", "c.json")["superseded"]
    said = " ".join(cli("correct", second, "--harm", "0.3", "--reason", "typo").split())
    assert "reopened: the study had ended with A; it runs again, and certificates from before" in said
    said = cli("verify", "--certificate", "c.json", code=1)
    assert "holds, but withdrawn:" in said and "--certificate" not in said
    cli("certificate", "--out", "interim.json")
    cli("correct", second, "--harm", "0.29", "--reason", "typo")
    assert "holds, but superseded:" in cli("verify", "--certificate", "interim.json")
    cli("correct", second, "--harm", "0.2", "--reason", "no typo")
    assert cli.json("certificate")["concluded"]["winner"] == "A"
    assert Path("c.html").read_text().startswith("<!doctype html>")
    events = cli.json("log")["events"]
    assert [events[0]["kind"], events[0]["actor"]] == ["created", "ann"]
    assert "typo" in cli("log") and len(cli.json("log", "--last", "2")["events"]) == 2
    assert cli("export").splitlines()[0] == "id,subject,cohort,arm,assigned,dose,effect,harm,status,site"
    cli("export", "--out", "all.json")
    cli("export", "--out", "readings.csv")
    cli("import", "all.json", "--db", "copy.db")
    assert cli.json("status", "--db", "copy.db")["arms"] == status["arms"]
    cli("story", "--out", "s.png")
    assert cli.json("list")["studies"] == ["headache"]
    Path("truth.toml").write_text(scenario(problem(sigma=0.1)).to_toml(problem(sigma=0.1)))
    assert cli.json("forecast", "truth.toml", "--trials", "10")["forecasts"][0]["pulls"]["mean"] == 0
    cli("forecast", "truth.toml", "--trials", "10")
    Path("truth.toml").write_text(Path("truth.toml").read_text().replace('"A"', '"Z"'))
    assert "is about the arms Z, B, C; this study has A, B, C" in cli("forecast", "truth.toml", code=2)
    cli("preview")
    assert "the study is ended" in cli("next", "--for", "north")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["tell", "x", "--harm", "1"], "looks like"),
        (["tell"], "by its ID, or many"),
        (["tell", "ID", "--harm", "nan", "--effect", "1"], "finite"),
        (["tell", "ID", "--effect", "1"], "harm is missing"),
        (["tell", "--csv", "none.csv"], "cannot read"),
        (["void", "ID"], "reason"),
        (["void", "ID", "--reason", " "], "a reason must be"),
        (["correct", "ID", "--harm", "1", "--reason", "r"], "no reading yet"),
        (["resume", "--reason", "r"], "not paused"),
        (["resume", "--reason", "r", "--void-harm", "1"], "both"),
        (["status", "--db", "none.db"], "no file"),
        (["status", "--study", "none"], "must be one of"),
        (["ask", "--limit", "0"], "at least 1"),
        (["ask", "--for", "nobody"], "nobody has reserved as 'nobody'; known: none yet"),
        (["create", "headache.toml"], "already"),
        (["create", "none.toml"], "cannot read"),
        (["create", "headache.toml", "--set", "x", "--study", "n"], "KEY=VALUE"),
        (["import", "headache.toml"], "not valid JSON"),
        (["export", "--out", "no/such/folder.json"], "cannot write"),
        (["certificate", "--out", "no/such/folder.html"], "cannot write"),
        (["story", "--out", "no/such/folder.png"], "cannot write"),
        (["verify", "--certificate", "none.json"], "cannot read"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_changes(cli: Terminal, arguments: list[str], said: str) -> None:
    id = cli.json("ask", "--limit", "1")["assignments"][0]["id"]
    before = cli.json("status")["head"]
    assert said in cli(*[id if a == "ID" else a for a in arguments], code=2)
    assert cli.json("status")["head"] == before


def test_stop(cli: Terminal) -> None:
    cli("stop", "--reason", "no money")
    assert "no money" in cli("status") and cli.json("certificate")["concluded"]["ending"] == "stopped"
    assert "stopped, 0 readings" in repr(Study.open("trial.db"))
    assert cli.json("status")["standing"] == "stopped"


def test_reserved_signed_and_kept_elsewhere(cli: Terminal, tmp_path: Path) -> None:
    assert "--reserve needs --for SITE" in cli("ask", "--reserve", "1", code=2)
    (mine,) = cli.json("ask", "--reserve", "1", "--for", "north")["assignments"]
    assert [a["id"] for a in cli.json("ask", "--for", "north")["assignments"]] == [mine["id"]]
    assert "1 returned" in cli("return", mine["id"], "--reason", "not needed")
    (given,) = cli.json("next", "--for", "south")["assignments"]
    assert set(given) == {"id", "arm", "dose"} and given["id"] not in cli("next", "--for", "south", "--count", "2")
    assert "known: 'south'" in cli("ask", "--for", "sout", code=2) and " for " in cli("ask").splitlines()[1]
    cli("next", "--for", "north", "--count", "99")
    said = f"nothing is free: cohort 1 waits for {given['id']} (south), "
    assert said in cli("next", "--for", "west") and said in cli("ask") and cli.json("ask")["note"].startswith(said)
    status = cli.json("status")
    assert status["reserved"] == {"south": 3, "north": status["open"] - 3} and "3 for south" in " ".join(
        cli("status").split()
    )
    told = cli("tell", given["id"], "--harm", "0.1", "--actor", "north")
    assert "effect is due, reserved for south" in told and "nothing that is" not in cli("ask", "--for", "south")
    assert "no effect is due" in cli("ask", "--awaiting", "--for", "north")
    for name in ("ours", "theirs"):
        Key.new(tmp_path / name)
    assert "signed: event" in cli("checkpoint", "c.json", "--key", "ours")
    assert len(cli.json("witness", "c.json", "--key", "theirs")["signatures"]) == 2
    assert "can be read by others" in cli("witness", "c.json", "--key", "headache.toml", code=2)
    cli("backup", "copy.db")
    assert cli.json("status", "--db", "copy.db")["head"] == cli.json("status")["head"]
    assert "READING=LOW:HIGH" in cli("create", "headache.toml", "--study", "n", "--plausible", "harm=x", code=2)


def test_which_database(cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUREFOOT_DB")
    assert "SUREFOOT_DB" in cli("status", code=2)
    assert "headache" in cli("list", "--db", "trial.db")


def test_a_newer_journal(cli: Terminal) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect("trial.db")) as raw, raw:
        raw.execute("UPDATE surefoot_events SET version = 99 WHERE seq = 2")
    assert "newer surefoot" in cli("status", code=2)


def test_at_80_columns_no_word_is_broken(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """Of ask, status and log: every word that is printed is one that was meant."""
    from surefoot import Arm, Noise, Problem
    from surefoot.study import terminal

    arms = tuple(Arm(f"acetylsalicylic-acid {k}", 0.2, 1.0) for k in "AB")
    p = Problem(arms, 1.0, "linear", Noise("gaussian", 0.2))
    study = Study.create(tmp_path / "s.db", "s", p, seed=1, actor="dr-montgomery", watch="warn")
    while (asked := study.ask()) and len(study.log()) < 4_000:
        best = {"acetylsalicylic-acid A": 1.0, "acetylsalicylic-acid B": 0.2}
        study.tell_many([{"id": a.id, "effect": best[a.arm] * a.dose, "harm": 0.7 * a.dose} for a in asked])
    assert study.status()["winner"]
    other = Study.create(tmp_path / "s.db", "t", p, seed=1, actor="dr-montgomery")
    texts = {}
    for width in (80, 4_000):
        monkeypatch.setattr(terminal.console, "width", width)
        for command in (["status", "--study", "s"], ["log", "--study", "s"], ["ask", "--study", "t"]):
            with pytest.raises(SystemExit, match="0"):
                main(["study", *command, "--db", str(tmp_path / "s.db")])
            texts[command[0], width] = capsys.readouterr().out
    for name in ("status", "log", "ask"):
        lines = texts[name, 80].splitlines()
        assert max(map(len, lines)) <= 80, name
        words = {w for line in lines for w in line.strip(FRAME).split()} - set(FRAME)
        meant = set(texts[name, 4_000].split()) | {w for a in p.names for w in a.split()}
        assert {w.strip(FRAME) for w in words} <= {w.strip(FRAME) for w in meant}, name
    assert other.ask()


FRAME = "│┃┏┳┓┗┻┛━┡╇┩├┼┤└┴┘─╞═╡ ,"
