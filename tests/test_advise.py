"""The first look: what a problem costs, and what would make it cheaper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from surefoot import Arm, Noise, Problem, SurefootError, case, make
from surefoot.advise import LONGEST, Advice, Change, Size, advise, buys, reachable, variants
from surefoot.designs import default
from surefoot.theory.resolvable import dear

from .designs.small import drug, easy
from .test_cli import run  # noqa: F401
from .test_scenario import EXAMPLE, SET


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound takes seconds; after one round it is one, too."""
    monkeypatch.setattr("surefoot.theory.certified.ROUNDS", 1)


def test_what_costs_most() -> None:
    """Half the variance halves a problem that is all noise; no design does with fewer than the bound."""
    problem, truth = easy()
    found = advise(problem.but(noise=case("paper-linear", 3)[0].noise), truth, make("surefoot-linear"), trials=12)
    assert found.size is not None and found.least is not None
    assert found.size.ended == 1
    assert 0 < found.least < found.size.mean
    assert [change.ratio for change in found.changes] == sorted(change.ratio for change in found.changes)
    by_key = {change.what.split()[1]: change.ratio for change in found.changes}
    assert by_key["mean"] < 0.8
    assert by_key["mean"] < by_key["delta"] <= 1.05
    assert found.together is not None and found.together.ratio < 0.7
    assert any(line.startswith("What would save most") for line in found.lines())


def test_a_truth_outside_the_assumptions_is_called_so_and_noise_is_no_advice() -> None:
    problem, truth = easy()
    said = Advice(problem.but(limit=0.001), truth, []).lines()
    assert any("outside the assumptions, so nothing is promised" in line for line in said)
    changes = Change("sure", 0.6, 0.1), Change("noise", 0.9, 0.2)
    said = Advice(problem, truth, [], size=Size(100, 1, 120, 1), changes=changes).lines()
    assert "What would save most: sure would take 60% ± 10% of that." in said
    assert "No clear difference, in so few trials: noise." in said
    capped = Change("better", 0.4, 0.1, at_most=True), Change("no better", 0.6, 0.1, unknown=True)
    found = Advice(problem, truth, [], size=Size(50_000, 1, 100_000, 0.75), changes=capped)
    assert "it would take at least 50,000 on average (25% of trials were given up at 100,000)" in found.lines()[1]
    assert "were given up at 300,000)" in str(Size(200_000, 1, 300_000, 0.75, 300_000))
    assert "What would save most: better would take at most 40% ± 10% of that." in found.lines()
    assert found.to_dict()["subjects"]["at_least"] and found.to_dict()["changes"][1]["ratio"] is None


def test_a_sigma_that_is_known_is_a_lever() -> None:
    """On ordered levels far from the limit a guess of it takes twice the readings, and is what would halve it."""
    problem, truth = case("levels-gaussian", 2)
    guessed = problem.but(noise=tuple(Noise("gaussian-guess", noise.scale) for noise in problem.noises))
    found = {what: value for what, _, value in variants(guessed, truth)}
    assert found["a sigma that is known, such as earlier readings give (surefoot pilot)"] == problem.noises
    assert not any("sigma that is known" in what for what, *_ in variants(problem, truth))


def test_variants_keep_to_the_assumptions() -> None:
    for problem, truth in (easy(), drug(), case("levels-thall"), case("binary", 3)):
        for _, key, value in variants(problem, truth):
            assert not truth.violations(problem.but(**{key: value}))


@pytest.mark.parametrize("name", ["levels-thall", "paper-drug", "paper-linear"])
def test_no_doubts_about_what_ends(name: str) -> None:
    problem, _ = case(name)
    assert advise(problem, None, make(default(problem.shape))).lines()[0] == "It can be resolved."


def test_what_cannot_be_resolved_is_refused_before_anything_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["surefoot.advise"], "simulate", None)
    problem, truth = case("levels-thall", budget=2)
    with pytest.raises(
        SurefootError, match="this problem cannot be resolved: a budget of 2 leaves arms that are never pulled"
    ):
        advise(problem, truth, make("surefoot-levels"))


def test_the_command(run: Any, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "set.toml"
    path.write_text(SET.replace("delta = 0.1", "delta = 0.4"), encoding="utf-8")  # ends sooner
    found = run("advise", str(path), "--trials", "4", "--json").json["advice"]
    assert [one["scenario"] for one in found] == ["A is better", "B is better"]
    assert found[0]["subjects"]["ended"] == 1
    out = run("advise", str(path), "--trials", "2", "--budget", "30").out
    assert out.startswith("A is better\nIt can be resolved.") and "\n\nB is better\n" in out
    assert "of all trials the dose recommended is over the limit" in " ".join(out.split())
    lines = [line for line in EXAMPLE.splitlines() if not line.startswith(("effect", "harm"))]
    path.write_text("\n".join(lines), encoding="utf-8")  # the problem alone
    said = run("advise", str(path), "--budget", "100").out
    assert "give the arms effect and harm curves" in said
    assert "A budget of 100: whatever the design" in said


def test_what_a_budget_buys() -> None:
    problem, truth = easy()
    few = advise(problem.but(budget=6), truth, make("surefoot-linear"), trials=4)
    assert few.size and few.size.upto == LONGEST
    much = advise(problem.but(budget=2 * LONGEST), truth, make("surefoot-linear"), trials=2)
    assert much.size and much.size.upto == 2 * LONGEST, "as far as the budget"
    assert few.bought is not None and few.bought.named == 0 and few.size is not None and few.size.mean > 6
    assert any(line.startswith("A budget of 6 buys: the best arm named in 0% of trials") for line in few.lines())
    assert reachable(1.2, 0.1) == 1 and 0.5 < reachable(0.3, 0.1) < reachable(0.6, 0.1) < 0.9
    levels, truth = case("levels-thall", budget=300)
    wide = buys(levels.but(slack=0.2), truth, make("surefoot-levels"), 20, 1, None)
    assert wide.halved and wide.exposed and wide.halved[0] == 0.1 and wide.halved[1] < wide.exposed
    said = f"Of its subjects {wide.exposed:.0%} are over the limit; with a slack of 0.1 it is {wide.halved[1]:.0%}, and"
    assert any(line.startswith(said) for line in wide.lines())
    problem, truth = easy()
    tied = advise(problem.but(limit=1e-9), truth, make("surefoot-linear"), trials=4)
    assert "no arm is safe" in tied.lines()[0]


def test_ends_far_from_the_limit_are_dear() -> None:
    """In 0 to 100 a limit of 5 takes many readings a step, and is said to; nearer ends, or a coin, are not."""
    arms = tuple(Arm(name, levels=(40, 50, 60)) for name in "AB")
    problem = Problem(arms, 5.0, "levels", (Noise("gaussian", 3.0), Noise("bounded", 0, 100)), 2.0, 0.1)
    said = advise(problem, None, make("surefoot-levels")).lines()[1]
    assert said.startswith(
        "It is dear: harm is declared between 0 and 100, and limit + slack is 7: a level is certified"
    )
    assert "by no fewer than 32 readings of an arm" in said
    for near in (problem.but(noise=(Noise("gaussian", 3.0), Noise("bounded", 0, 20))), case("levels-thall")[0]):
        assert dear(near) == []
