"""The decision table, the forecast and the tipping points agree with what then happens."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from surefoot import Study, SurefootError, simulate

from .subjects import problem, run, scenario, subjects


@pytest.mark.parametrize("shape", ["linear", "monotonic"])
def test_the_preview_is_what_happens(shape: str, tmp_path: Path) -> None:
    """Tell the open cohort readings whose means are a row of the table: the row comes true."""
    p = problem(shape)
    study = Study.create(tmp_path / "s.db", "s", p, seed=3, watch="warn")
    people = subjects(p)
    study.tell_many(people.rows(study.ask()))
    for a in study.ask():  # the others at their means, told exactly
        if a.arm != "A":
            study.tell(a.id, 0.2, 0.2)
    rows = [r for r in study.preview(harm=[0.05, 0.3, 0.9], effect=[0.0, 0.5]) if r["arm"] == "A"]
    assert len(rows) == 6
    data = study.export()
    for k, row in enumerate(rows):
        copy = Study.load(tmp_path / f"copy{k}.db", data)
        copy.tell_many([{"id": a.id, "effect": row["effect"], "harm": row["harm"]} for a in copy.ask()])
        after = copy.view.before[-1] if copy.view.open else copy.view.state
        assert math.isclose(float(after.safe[0, 0]), row["safe"], rel_tol=1e-9)
        assert after.endings()[0] == row["ending"]
        if row["next"] and copy.view.open:
            given = copy.view.open
            assert given.n[0] == row["next"]["n"] and math.isclose(given.dose[0], row["next"]["dose"], rel_tol=1e-9)


def test_the_preview_of_binary_readings_has_whole_counts(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "s.db", "s", problem(binary=True), seed=3)
    n = study.view.cohorts[0].n[0]
    assert all(abs(r["harm"] * n - round(r["harm"] * n)) < 1e-9 for r in study.preview())
    study.stop("done")
    assert run(study, subjects(problem(binary=True))).preview() is not None


def test_the_forecast_from_the_beginning_is_the_simulation(tmp_path: Path) -> None:
    p = problem(sigma=0.3)
    truth = scenario(p)
    study = Study.create(tmp_path / "s.db", "s", p, seed=3)
    (found,) = study.forecast(truth, trials=2000, seed=1)
    whole = simulate(p, truth, study.view.design, 2000, seed=2, progress=False)
    error = math.hypot(found["pulls"]["se"], float(whole.pulls.std() / math.sqrt(2000)))
    assert abs(found["pulls"]["mean"] - whole.pulls.mean()) < 5 * error
    assert sum(found["endings"].values()) == 2000


def test_the_forecast_goes_on_from_what_is_known(tmp_path: Path) -> None:
    p = problem(sigma=0.3)
    truth, people = scenario(p), subjects(p)
    study = Study.create(tmp_path / "s.db", "s", p, seed=3)
    before = study.forecast([truth], trials=300)[0]["pulls"]["mean"]
    study.tell_many(people.rows(study.ask()))
    study.tell_many(people.rows(study.ask()[:10]))
    after = study.forecast([truth], trials=300)[0]["pulls"]["mean"]
    told = study.status()["readings"]
    assert after < before
    assert abs(after + told - before) < 0.5 * before
    run(study, people)
    assert study.forecast(truth, trials=10)[0]["pulls"]["mean"] == 0
    with pytest.raises(SurefootError, match="trials"):
        study.forecast(truth, trials=0)


def test_tipping_points_tip(tmp_path: Path) -> None:
    """Just inside, the cohort is decided as it was; just outside, it is not."""
    p = problem(sigma=0.2)
    people = subjects(p)
    study = Study.create(tmp_path / "s.db", "s", p, design="safebai-linear", seed=3)
    for a in study.ask()[:2]:
        study.void(a.id, "left")
    study.resume("no reason to think that it matters")
    study.tell_many(people.rows(study.ask()))
    tips = study.certificate().content["voids"]["tipping_points"]
    assert sum(t["dropped"] for t in tips) == 2
    for t in tips:
        arm = p.names.index(t["arm"])
        first = study.view.cohorts[0]
        n, others, edge = first.n[arm], t["harm"]["others"], t["harm"]["above"]
        share = t["dropped"] / (t["dropped"] + n)
        mean = others + share * (edge - others)
        # Lemma 1, by hand: the slope of harm is at most (mean + radius)/start, and the next dose times it is allowed
        radius = 0.2 * math.sqrt(2 * math.log(8 * 3 / p.delta) / n)
        following = study.view.cohorts[1].dose[arm]
        stops = mean - 0.5  # or the start dose looks unsafe
        assert math.isclose((mean + radius) / 0.2 * following, 1.0, rel_tol=1e-6) or math.isclose(stops, 1.0)
        assert t["effect"]["above"] is None or t["effect"]["above"] > t["effect"]["others"]


def test_the_story(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from surefoot.plots import responses, story
    from surefoot.study.story import story_data

    p = problem()
    study = Study.create(tmp_path / "s.db", "s", p, seed=3)
    story(study, tmp_path / "empty.png")
    study.tell_many(subjects(p).rows(study.ask()[:2]))
    assert sum(n for arm in story_data(study.view) for n in arm.given[2]) == 2, "an open cohort counts"
    run(study, subjects(p))
    data = story_data(study.view)
    assert [arm.name for arm in data] == p.names
    assert sum(n for arm in data for n in arm.given[2]) == study.status()["readings"]
    assert all(np.diff(arm.pulls).min() > 0 for arm in data)
    assert all(np.all(arm.given[1] <= np.r_[p.starts[i], arm.certified].max()) for i, arm in enumerate(data))
    story(study, tmp_path / "s.png")
    responses(study, tmp_path / "r.png")
    assert (tmp_path / "s.png").stat().st_size > 10_000
    p = problem("levels", binary=True)
    study = Study.create("sqlite://", "s", p, seed=3)
    study.tell_many([{"id": a.id, "effect": 0, "harm": 0} for a in study.ask()])
    figure = responses(study)
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "declared safe, not shown" in said and "shown to be safe" not in said
    assert all(-0.05 < end < 1.05 for axis in figure.axes for end in axis.get_ylim())
