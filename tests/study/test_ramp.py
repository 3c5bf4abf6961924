"""A ramp-up on the command line, told in blocks: what went wrong on the way is said, and said truly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surefoot import Arm, Noise, Problem, Study, SurefootError

from .test_cli import Terminal

STAGES = ("1%", "5%", "20%", "50%")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_DB", "ramp.db")
    monkeypatch.setenv("SUREFOOT_ACTOR", "release")
    monkeypatch.setenv("COLUMNS", "200")
    arms = Arm("cart", levels=STAGES), Arm("search", levels=STAGES)
    Path("ramp.toml").write_text(Problem(arms, 0.01, "levels", Noise("bernoulli"), slack=0.005, delta=0.1).to_toml())
    terminal = Terminal(capsys)
    terminal("create", "ramp.toml", "--blocks", "--set", "first=1000", "--seed", "1")
    return terminal


def said(text: str) -> str:
    return " ".join(text.split())


def test_a_day_that_was_counted_wrongly(cli: Terminal) -> None:
    cart, search = (a["id"] for a in cli.json("ask")["assignments"])
    last, begin = re.findall(r"cart .*? (\d+) to (\d+) of 1,000 .*?cart .*? (\d+) to", said(cli("preview")))[0][1:]
    assert int(begin) == int(last) + 1, "at which count it turns"
    Path("day.csv").write_text(f"id,arm,n,effect,harm\n{cart},search,900,90,3\n")
    assert f"{cart} is of the arm 'cart'; got 'search'" in cli("tell", "--csv", "day.csv", code=2)
    Path("day.csv").write_text(f"id,arm,n,effect,harm\n{cart},cart,900,90,3\n{search},search,900,80,10\n")
    told = cli("tell", "--csv", "day.csv")
    assert f"{cart}: cart at 1%, n 900, effect 90, harm 3" in told and "2 told" in told
    again = said(cli("tell", cart, "--n", "1000", "--effect", "90", "--harm", "3", code=2))
    assert "a block is told once: add up its days, or tell the next one in the next block" in again
    status = cli("status")
    assert "3 of 900 (0.333%) " in status and "10 of 900 (1.11%), over" in status
    assert "harm 3.0" in cli("log") and "spread" not in cli("log"), "of yes or no it follows from the sum"

    told = said(cli("correct", cart, "--n", "950", "--effect", "95", "--harm", "60", "--reason", "a log came late"))
    assert "paused: start: cart: harm at the start dose 1% is about 0.06316" in told
    assert "also at a dose that was flagged. Somebody else than release resumes it" not in told, "there is nobody else"
    told = said(cli("correct", cart, "--harm", "6", "--reason", "typed wrongly", "--actor", "night"))
    assert "a reading was corrected since, and nothing is flagged now: resume it with a reason" in told
    assert "Somebody else than release resumes it" in told
    assert "another actor lifts that (night): who that is says --actor" in said(cli("resume", "--reason", "x", code=2))
    assert said(cli("resume", "--reason", "it was a slip", "--actor", "night")) == "the study goes on"

    found = Study.open("ramp.db").certificate()
    row = found.content["watches"]["fired"][0]
    assert (row["watch"], row["arm"], row["event"] < row["corrected"]) == ("start", "cart", True)
    page = found.to_html()
    assert f"start (cart, harm) fired at event {row['event']}, and looked anew after the correction of event" in page
    assert "(by a watch, upon what release told)" in page and "none fired" not in page
    assert f"{cart}: n 900 to 950, effect 90 to 95, harm 3 to 60: a log came late (release)" in page
    assert "6 of 950 (0.632%; " in page
    assert cli.json("verify")["ok"]


def test_a_stage_above_the_certified_is_confirmed(cli: Terminal) -> None:
    cart = cli.json("ask")["assignments"][0]["id"]
    block = "tell", cart, "--n", "1000", "--effect", "100", "--harm", "2", "--dose", "50%"
    no = said(cli(*block, code=2))
    assert "given at 50%, where 1% was assigned and up to 5% certified" in no and '--confirm "why"' in no
    study = Study.open("ramp.db")
    with pytest.raises(SurefootError, match="up to 5% certified"):
        study.tell(cart, n=1000, effect=100, harm=2, dose="20%")
    assert "deviation: " in cli(*block, "--confirm", "the flag was set by hand")
    cli("correct", cart, "--dose", "1%", "--reason", "it was not")
    page = study.certificate().to_html()
    assert f"{cart}: dose 50% to 1%: it was not (release)" in page
    assert study.certificate().content["corrections"][0]["was"] == {"dose": "50%"}
    Path("day.csv").write_text("id,converted\n")
    assert "needed are id, effect and harm, of blocks n too; if wanted arm, dose" in cli(
        "tell", "--csv", "day.csv", code=2
    )
