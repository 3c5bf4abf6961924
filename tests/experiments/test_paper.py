import pytest

from surefoot import SurefootError
from surefoot.experiments.paper import FIGURES, Plan, label


def test_the_papers_cells() -> None:
    plan = Plan(designs=("safebai-linear", "safebai-monotonic", "safeopt"))
    arms = {(it.name): [cell.arms for cell in plan.cells_of(it).values()] for it in plan.chosen}
    assert arms["linear-pulls"] == [5, 10, 20] * 2 and arms["drug-pulls"] == [3, 5, 10, 20] * 2
    assert arms["linear-regret"] == [10] * 2 and arms["drug-regret"] == [20] * 2
    assert len(plan.cells) == 2 * 3 + 2 * 4  # the regret figures use cells of the others
    assert {cell.trials for cell in plan.cells if cell.scenario == "paper-linear"} == {10}
    assert {cell.trials for cell in plan.cells if cell.scenario == "paper-drug"} == {20}
    assert {cell.slack for cell in plan.cells} == {None, 0.2}


def test_the_default_has_the_papers_designs() -> None:
    plan = Plan()
    assert {"safebai-linear", "safeopt", "safe-lts", "oracle"} <= set(plan.specs(FIGURES["linear-pulls"]))
    assert "oracle" not in plan.specs(FIGURES["linear-regret"])
    assert "safeopt:expanders=lipschitz:lipschitz=0.25" in plan.specs(FIGURES["drug-pulls"])


def test_quick_caps_what_takes_long_and_nothing_else() -> None:
    caps = {cell.design: cell.cap for cell in Plan(quick=True).cells}
    assert caps["safeopt"] == caps["safe-lts"] < caps["safebai-linear"]


def test_what_cannot_be_run_is_refused_at_once() -> None:
    with pytest.raises(SurefootError, match=r"figure must be one of linear-pulls.*drug-regret; got 'linear'"):
        Plan(figures=("linear",))
    with pytest.raises(SurefootError, match=r"design must be one of .*safebai-linear.*got 'safe-opt'"):
        Plan(designs=("safe-opt",))
    with pytest.raises(SurefootError, match="expanders must be one of noise-free"):
        Plan(designs=("safeopt:expanders=all",))
    with pytest.raises(SurefootError, match="none of safe-lts is for drug-pulls"):
        Plan(figures=("drug-pulls",), designs=("safe-lts",))
    with pytest.raises(SurefootError, match="trials"):
        Plan(trials=-1)
    with pytest.raises(SurefootError, match="delta"):
        Plan(delta=2.0)


def test_labels() -> None:
    assert label("safeopt:expanders=lipschitz:grid=30") == "safeopt (lipschitz, 30)"
    assert label("oracle") == "oracle"
