"""Made-up runs, of which it is known what they show."""

import numpy as np
import pytest

from surefoot.experiments.cells import Cell, Ran
from surefoot.experiments.claims import FAILS, HOLDS, UNKNOWN, Claim, claims
from surefoot.experiments.cost import Cost
from surefoot.plots import axis_of

COST = [Cost(500, 3e-4, 0.02), Cost(2000, 3e-4, 0.4)]
AT = axis_of(1_000_000)


def ran(
    scenario: str, d: int, design: str, pulls: float, *, regret: float = 0.1, capped: bool = False, wrong: int = 0
) -> Ran:
    cell = Cell(scenario, d, design, 10, 1, 0.1, 0.2 if scenario == "paper-drug" else None, 10**6)
    trials = np.arange(10)
    return Ran(
        cell, pulls * (1 + 0.01 * (trials - 4.5)), np.full(10, 3 if capped else 1), trials < wrong, np.zeros(10, bool),
        np.zeros(10), AT, regret * np.ones((10, len(AT))) * (1 + 0.01 * trials[:, None]), 1.0,
    )  # fmt: skip


def judged(*rans: Ran) -> dict[str, Claim]:
    words = ("scales linearly", "outperforms", "fastest decrease", "constant schedule", "its theorem", "sooner",
             "always found", "posterior update")  # fmt: skip
    found = claims({r.cell: r for r in rans}, COST)
    return {word: next(c for c in found if word in c.says) for word in words}


def linear(**changes: float) -> list[Ran]:
    out = []
    for d in (5, 10, 20):
        out += [ran("paper-linear", d, "safebai-linear", changes.get("mine", 1800) * d, regret=0.1)]
        out += [
            ran("paper-linear", d, spec, 9000 * d, regret=changes.get("theirs", 0.2))
            for spec in ("safeopt", "safe-lts")
        ]
    return out


def drug(mine: float, theirs: float, **other: bool) -> list[Ran]:
    out = []
    for d in (3, 20):
        for spec in ("safebai-monotonic", "safebai-monotonic:schedule=paper"):
            out.append(ran("paper-drug", d, spec, mine * d, regret=0.01))
        out.append(ran("paper-drug", d, "safeopt", theirs * d, regret=0.02, **other))
    return out


def test_all_hold() -> None:
    found = judged(*linear(), *drug(5000, 10_000))
    assert {word: c.verdict for word, c in found.items() if c.verdict != HOLDS} == {"posterior update": FAILS}
    assert "5 (d = 5)" in found["outperforms"].measured and "0.5 (d = 20)" in found["constant schedule"].measured


def test_none_holds() -> None:
    found = judged(*linear(mine=20_000, theirs=0.05), *drug(10_000, 5000))
    for word in ("outperforms", "fastest decrease", "constant schedule", "its theorem"):
        assert found[word].verdict == FAILS, word


def test_what_was_not_run_cannot_be_told() -> None:
    found = judged(*drug(5000, 10_000))
    for word in ("scales linearly", "outperforms", "fastest decrease"):
        assert found[word] == Claim(found[word].says, "not run here", UNKNOWN)
    assert claims({}, COST)[-2].verdict == UNKNOWN


def test_caps_are_lower_bounds() -> None:
    """A rival that hit its cap took at least that many pulls: twice as many is sure, half as many is not."""
    found = judged(*drug(5000, 8000, capped=True))
    assert found["constant schedule"].verdict == UNKNOWN
    assert "hit their cap" in found["constant schedule"].measured and "<0.6" in found["constant schedule"].measured
    assert found["always found"].verdict == UNKNOWN


def test_a_wrong_answer_is_told() -> None:
    found = judged(*linear(), ran("paper-drug", 3, "safeopt", 1000, wrong=2))
    assert found["always found"].verdict == FAILS and "2 wrong" in found["always found"].measured


def test_a_bent_line() -> None:
    bent = [ran("paper-linear", d, "safebai-linear", 100 * d**2) for d in (5, 10, 20)]
    assert judged(*bent)["scales linearly"].verdict == FAILS
    assert judged(*bent[:2])["scales linearly"].verdict == UNKNOWN


def test_the_cost_of_a_pull() -> None:
    slow = claims({}, [Cost(500, 1e-3, 0.02), Cost(2000, 1e-2, 0.4)])[-1]
    assert slow.verdict == HOLDS
    assert judged()["posterior update"].measured.startswith(
        "textbook update: 400 ms at 2,000 samples, growing as t^2.2"
    )


@pytest.mark.parametrize("sizes", [(20, 40)])
def test_costs_are_measured(sizes: tuple[int, ...]) -> None:
    from surefoot.experiments.cost import costs

    found = costs(sizes)
    assert [c.t for c in found] == list(sizes)
    assert all(c.grid > 0 and c.textbook > 0 for c in found)
