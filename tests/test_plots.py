from pathlib import Path

import numpy as np
import pytest

from surefoot import Arm, Characteristics, Noise, Problem, Study, SurefootError, case, make, simulate
from surefoot.plots import (
    Bound,
    Pulls,
    axis_of,
    looks,
    pulls,
    pulls_data,
    regret,
    regret_data,
    responses,
    scenarios,
    scenarios_data,
    story,
    story_data,
)
from surefoot.simulate import Result
from surefoot.study.story import story_data as of_study

LINEAR = make("safebai-linear")


@pytest.fixture(scope="module")
def traced() -> Result:
    return simulate(*case("paper-linear", 3), LINEAR, 5, progress=False, trace=True)


def labels(figure) -> list[str]:  # type: ignore[no-untyped-def]
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_pulls_data() -> None:
    results = [simulate(*case("paper-linear", d), LINEAR, 20, progress=False) for d in (6, 3)]
    (line,) = pulls_data(results)
    assert line.name == "safebai-linear" and line.arms.tolist() == [3, 6]
    assert line.mean.tolist() == [r.pulls.mean() for r in results[::-1]]
    assert line.sd[1] == results[0].pulls.std(ddof=1) and line.capped.tolist() == [0, 0]
    problem, scenario = case("paper-linear", 3, budget=1000)
    assert pulls_data([simulate(problem, scenario, LINEAR, 20, progress=False)])[0].capped.tolist() == [20]


def test_pulls_picture(tmp_path: Path) -> None:
    arms = np.array([5, 10, 20])
    line = Pulls("one", arms, arms * 100.0, arms * 150.0, np.full(3, 10), np.array([0, 0, 2]))
    figure = pulls([line, line], [Bound("bound", arms, arms * 1.0)], tmp_path / "p.svg")
    axis = figure.axes[0]
    assert axis.get_xlabel() == "number of arms" and axis.get_ylabel() == "pulls to the end of a trial"
    assert [t.get_text() for t in axis.get_xticklabels()] == ["5", "10", "20"]
    assert sorted(labels(figure)) == ["bound", "one", "one", "some runs hit their cap"]
    first = (tmp_path / "p.svg").read_bytes()
    pulls([line, line], [Bound("bound", arms, arms * 1.0)], tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_bytes() == first, "the same data give the same file"


def test_regret_data_by_hand(traced: Result) -> None:
    at = axis_of(int(traced.pulls.max()))
    found = regret_data(traced)
    t = traced.trace
    assert t is not None and found.ended == traced.pulls.mean()
    expected = np.zeros((5, len(at)))
    for k in range(5):
        for j, now in enumerate(at):
            made = [i for i in range(t.rounds[k]) if t.pulls[k, i] <= now]
            if made:
                arm = t.guess[k, made[-1]]
                effect = [1.0, 0.9, 1.0][arm] * t.safe[k, made[-1], arm]
            else:
                effect = 0.1 * np.mean([1.0, 0.9, 1.0])
            expected[k, j] = 1.0 - effect
    np.testing.assert_allclose(found.mean, expected.mean(axis=0))
    np.testing.assert_allclose(found.se, expected.std(axis=0, ddof=1) / np.sqrt(5))


def test_regret_picture(traced: Result, tmp_path: Path) -> None:
    figure = regret([regret_data(traced)], tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 10_000
    assert "pulls" in figure.axes[0].get_xlabel() and "regret" in figure.axes[0].get_ylabel()
    assert labels(figure) == ["safebai-linear"]


def test_scenarios() -> None:
    tables = [
        Characteristics(simulate(*case(name), LINEAR, 50, progress=False)) for name in ("saturated-all", "rademacher")
    ]
    rows = scenarios_data(tables)
    assert [row.scenario for row in rows] == ["saturated-all", "rademacher"]
    assert rows[0].median == tables[0].numbers["pulls"]["median"] and rows[0].delta == 0.1
    figure = scenarios(rows)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["saturated-all", "rademacher"]
    assert set(labels(figure)) == {"safebai-linear", "delta"}


def test_a_story_needs_its_rounds(traced: Result) -> None:
    bare = simulate(*case("paper-linear", 3), LINEAR, 1, progress=False)
    for draw in (story, story_data, regret_data):
        with pytest.raises(SurefootError, match="trace=True"):
            draw(bare)
    arms = story_data(traced, 1)
    assert [arm.name for arm in arms] == ["arm 1", "arm 2", "arm 3"]
    assert arms[0].out is None and arms[2].out is not None and arms[2].out[1] == "beaten"
    assert sum(arm.given[2].sum() for arm in arms) == traced.pulls[1]


def test_story_picture(tmp_path: Path) -> None:
    result = simulate(*case("paper-drug", 3), make("safebai-monotonic"), 1, progress=False, trace=True)
    figure = story(result, path=tmp_path / "s.png")
    assert len(figure.axes) == 6 and (tmp_path / "s.png").exists()
    assert {"harm at the limit (truth)", "harm at limit + slack (truth)", "beaten"} <= set(labels(figure))


def test_pictures_do_what_one_expects(traced: Result, tmp_path: Path) -> None:
    story(traced, tmp_path / "s.svg")
    pulls([traced], tmp_path / "p.png")
    regret([traced], tmp_path / "g.png")
    scenarios([traced, Characteristics(traced)], tmp_path / "c.png")
    figure = responses(traced, tmp_path / "r.png")
    assert {"limit", "truth", "doses given", "shown to be safe"} <= set(labels(figure))
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("s.svg", "p.png", "g.png", "c.png", "r.png"))
    with pytest.raises(SurefootError, match="a picture is of a Result or a Study; got int"):
        responses(3)


def test_no_dose_is_above_what_certified_it() -> None:
    result = simulate(
        *case("paper-drug", 3, slack=0.5), make("surefoot-monotonic"), 1, seed=3, progress=False, trace=True
    )
    for arm in story_data(result):
        when, dose, _ = arm.given
        before = np.concatenate([[-3.0], arm.certified])[np.searchsorted(arm.pulls, when)]
        assert np.all(dose <= before + 1e-12)


def test_one_colour_a_design() -> None:
    names = ["surefoot-linear", "safebai-linear", "mine", "safeopt", "safeopt (lipschitz)", "yours"]
    first = dict(zip(names, looks(names), strict=True))
    assert [first[name][0] for name in names] == [look[0] for look in looks(names)]
    assert first["surefoot-linear"][0] == looks(["x", "surefoot-monotonic:growth=0"])[1][0]
    assert first["safeopt"][0] == first["safeopt (lipschitz)"][0] and first["safeopt"] != first["safeopt (lipschitz)"]
    assert len({first[name][0] for name in names}) == 5


def test_a_study_is_drawn_by_its_readings_its_levels_and_its_advice(tmp_path: Path) -> None:
    """Error bars by how readings vary where sigma is a guess; names of levels; the start solid only once it is shown;
    the recommended dose; and at an end nothing may be given."""
    arms = tuple(Arm(name, levels=(40, 50, 60)) for name in ("Pd", "Ni"))
    noise = Noise("gaussian-guess", 15.0), Noise("gaussian-guess", 6.0)
    problem = Problem(arms, 5.0, "levels", noise, 2.0, 0.2, budget=60)
    study, rng = Study.create(tmp_path / "x.db", "x", problem, seed=1), np.random.default_rng(1)
    while runs := study.ask():
        study.tell_many([
            {"id": a.id, "effect": a.dose * (2 if a.arm == "Pd" else 1) + rng.normal(0, 2.5),
             "harm": 0.02 * a.dose + rng.normal(0, 0.5)} for a in runs
        ])  # fmt: skip
    told = of_study(study.view)
    assert told[0].sigma is not None
    np.testing.assert_allclose(told[0].sigma, (2.5, 0.5), rtol=0.5)
    assert [arm.advised is not None for arm in told] == [True, False]
    over_time, doses = story(study), responses(study)
    assert [t.get_text() for t in over_time.axes[0].get_yticklabels()] == ["40", "50", "60"]
    assert over_time.axes[0].get_xscale() == "linear"
    assert {"declared safe, not shown", "shown to be safe", "recommended dose"} <= set(labels(over_time))
    assert {"might be given next", "recommended dose", "two standard errors"} <= set(labels(doses))
    assert "may be given" not in labels(doses)
    shown = [line for line in over_time.axes[0].lines if line.get_label() == "declared safe, not shown"]
    assert shown and max(shown[0].get_xdata()) < study.status()["readings"]


def test_pulls_with_one_number_of_arms(traced: Result) -> None:
    axis = pulls([traced, simulate(*case("paper-linear", 3), make("surefoot-linear"), 2, progress=False)]).axes[0]
    at = [float(bars[0].get_xdata()[0]) for bars in axis.containers]
    assert max(at) > 1.2 * min(at) and axis.get_xlim()[0] < min(at) and max(at) < axis.get_xlim()[1]
