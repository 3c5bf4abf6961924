"""Tables fit any terminal, and no word is broken."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from surefoot import Characteristics, case, make, simulate
from surefoot.characteristics import brief, to_rich
from surefoot.checks import between
from surefoot.tables import Fit


def printed(what: object, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(what)
    return out.getvalue()


def test_no_word_is_broken_and_no_line_is_too_long() -> None:
    words = ["recommended", "surefoot-monotonic:policy=blocks", "1,685 ± 19", "a sentence of several words"]
    rows = [{f"column {k} {word}": f"{word} {n}" for k, word in enumerate(words)} for n in range(3)]
    for width in (40, 60, 80, 120, 200):
        text = printed(Fit(rows, "A title"), width)
        assert all(len(line) <= width for line in text.splitlines())
        for word in " ".join(words).split():
            assert text.count(word) >= 3, (width, word)


def test_a_table_is_cut_where_it_is_too_wide_and_loses_nothing() -> None:
    rows = [{"name": f"n{k}", "much": f"value{k} " * 2, "long": "x" * 25 + str(k)} for k in range(3)]
    text = printed(Fit(rows, "T", keys=("name",)), 40)
    assert text.count("n2") == 2 and "x" * 25 + "2" in text and "value2 value2" in text
    assert printed(Fit(rows, "T", keys=("name",)), 100).count("n2") == 1


def test_what_is_the_same_everywhere_is_said_once() -> None:
    rows = [{"name": f"n{k}", "same": "always the same thing", "other": "x" * 20 + str(k)} for k in range(3)]
    text = printed(Fit(rows, "T"), 40)
    assert text.count("always the same thing") == 1 and "T; same: always the same thing" in " ".join(text.split())


def test_facts_below_each_other_where_a_table_has_no_room() -> None:
    rows = [{"name": f"n{k}", **{f"fact{i}": f"value{k}{i} and more" for i in range(9)}} for k in range(2)]
    lines = [line.split() for line in printed(Fit(rows), 50).splitlines()]
    assert ["fact3", "value13", "and", "more"] in lines and max(map(len, lines)) == 4


def test_a_table_for_each_group() -> None:
    rows = [{"scenario": f"scenario-{k % 2}", "design": f"design-{k}", "x": "y" * 20} for k in range(4)]
    text = printed(Fit(rows, "T", by="scenario"), 40)
    assert text.count("scenario: scenario-0") == 1 and text.count("scenario: scenario-1") == 1


@pytest.mark.parametrize("width", [80, 200])
def test_characteristics_fit(width: int) -> None:
    problem, truth = case("levels-thall", budget=60)
    one = Characteristics(simulate(problem, truth, make("boin"), 5, progress=False))
    for tables in ([one], [one] * 3, [one] * 6):
        text = printed(to_rich(tables), width)
        assert all(len(line) <= width for line in text.splitlines()) and "inf" not in text and "nan" not in text
        for cell in brief(one)["design"], brief(one)["named: best / wrong"]:
            assert text.count(cell) >= 1


def test_intervals_in_words() -> None:
    inf = float("inf")
    assert between(0.25, 0.5) == "0.25 to 0.5"
    assert between(0.25, inf) == "≥ 0.25" and between(-inf, 0.5) == "≤ 0.5" and between(-inf, inf) == "unknown"
