"""The time that is left, on a terminal and elsewhere."""

import os
import pty
import sys
from contextlib import suppress

import pytest

from surefoot.progress import Bar, Pace, seconds_left, span


def test_how_long_the_rest_takes() -> None:
    """Half of one run took 10 seconds; the other, which has not begun, is taken to cost twice as much a trial."""
    assert seconds_left([Pace(100)], 5.0, 5.0) == (0.0, None), "nobody knows"
    one, other = Pace(100, 50, 10.0), Pace(100, weight=2.0)
    assert seconds_left([one, other], 10.0, 10.0) == pytest.approx((10 / 60, 50.0))
    assert [span(x) for x in (0.2, 60, 600, 7200)] == [
        "about 1 seconds", "about 60 seconds", "about 10 minutes", "about 2.0 hours",
    ]  # fmt: skip


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real one: it comes after two seconds, and lines are said beside it."""
    main, other = pty.openpty()
    with os.fdopen(other, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        bar = Bar([Pace(100, 25, 10.0)], True)
        bar.show()
        assert bar.wanted and bar.bar is None, "not yet"
        bar.began -= 10
        bar.said -= 10
        bar.show()
        bar.say("a worker was lost")
        bar.stop()
    said = ""
    with suppress(OSError):  # that of a terminal whose other end is closed
        while some := os.read(main, 10_000):
            said += some.decode()
    os.close(main)
    assert "a worker was lost" in said and "25%" in said


def test_lines_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar([Pace(100, 25, 10.0)], True, lines=True)
    bar.began -= 10
    bar.said -= 40
    bar.show()
    assert capsys.readouterr().err.strip() == "25% done; about 30 seconds left"
