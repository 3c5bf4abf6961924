"""Readings told in blocks, and effects that come late."""

import csv
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from surefoot import Arm, Noise, Problem, Scenario, SurefootError
from surefoot.catalogue import case
from surefoot.study import Study
from surefoot.study.cli import app

Rng = np.random.Generator


def problem(noise: Noise) -> tuple[Problem, Scenario]:
    asked, truth = case("paper-linear", 2)
    return asked.but(noise=noise), truth


def created(path: Path, asked: Problem, **more: Any) -> Study:
    return Study.create(path, path.stem, asked, actor="site 1", seed=7, watch="warn", **more)


def drawn(asked: Problem, truth: Scenario, arm: str, dose: float, n: int, rng: Rng, sigma: float = 0.3) -> list[Any]:
    """Effects and harms of n subjects."""
    i = asked.names.index(arm)
    return [float(curve[i](np.array(dose))) + sigma * rng.standard_normal(n) for curve in (truth.effect, truth.harm)]


def sums(effects: Any, harms: Any) -> dict[str, Any]:
    pairs = (("effect", effects), ("harm", harms))
    found = {key: math.fsum(x) for key, x in pairs} | {f"{key}_squares": math.fsum(x * x) for key, x in pairs}
    return {"n": len(effects), **found}


def numbers(state: Any) -> Any:
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            yield field.name, value
        elif hasattr(value, "__dataclass_fields__") and not isinstance(value, Problem):
            yield from numbers(value)


def same(one: Any, other: Any, at: str = "") -> None:
    """Two certificates, but for names, times, the count of events, and what blocks cannot show (drift)."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one.keys() - {"study", "created", "opened", "at", "event", "head", "not_covered"}:
            same(one[key], other[key], f"{at}.{key}")
    elif isinstance(one, (list, tuple)):
        one = [x for x in one if not isinstance(x, dict) or x.get("watch") != "drift"]
        assert len(one) == len(other), at
        for x, y in zip(one, other, strict=True):
            same(x, y, at)
    else:
        assert one == (pytest.approx(other, rel=1e-9) if isinstance(one, float) else other), at


@pytest.mark.parametrize("noise", [Noise("gaussian", 0.3), Noise("gaussian-guess", 0.5)])
def test_a_block_is_the_same_evidence_as_its_readings_told_singly(tmp_path: Path, noise: Noise) -> None:
    asked, truth = problem(noise)
    singles, blocks = created(tmp_path / "singles.db", asked), created(tmp_path / "blocks.db", asked, blocks=True)
    rng = np.random.default_rng(1)
    for _ in range(60):
        todo = blocks.ask(blocks=True)
        if not todo:
            break
        read = {a.arm: drawn(asked, truth, a.arm, a.dose, a.n, rng) for a in todo}
        left = {arm: list(zip(*pair, strict=True)) for arm, pair in read.items()}
        rows = []
        for a in singles.ask():
            effect, harm = left[a.arm].pop()
            rows.append({"id": a.id, "effect": effect, "harm": harm})
        assert not any(left.values()), "the same cohort"
        singles.tell_many(rows)
        for a in todo:
            blocks.tell(a.id, **sums(*read[a.arm]))
    assert singles.view.ended and blocks.view.ended
    for (name, one), (_, other) in zip(numbers(singles.view.state), numbers(blocks.view.state), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=name)
    same(singles.certificate().content, blocks.certificate().content)
    count = sum(event.kind == "told" for event in blocks.log())
    assert count == sum(bool(n) for given in blocks.view.cohorts for n in given.n), "one event a block"
    assert singles.verify()["ok"] and blocks.verify()["ok"]
    with pytest.raises(SurefootError, match="told subject by subject"):
        singles.ask(blocks=True)
    with pytest.raises(SurefootError, match="told in blocks"):
        blocks.ask(blocks=False)


def test_no_block_goes_beyond_the_budget_unsaid(tmp_path: Path) -> None:
    asked, _ = problem(Noise("gaussian", 0.3))
    study = created(tmp_path / "a.db", asked.but(budget=30), blocks=True)
    a, b = study.ask()
    assert study.tell(a.id, n=20, effect=10.0, harm=4.0) is None
    with pytest.raises(SurefootError, match="11 subjects, where 4 were asked for and the budget has 10 left"):
        study.tell(b.id, n=11, effect=5.0, harm=2.0)
    said = study.tell(b.id, n=11, effect=5.0, harm=2.0, confirm="they came all at once")
    assert said == f"{b.id}: 11 subjects told as a block of 4: the certificate lists it as a deviation"
    with pytest.raises(SurefootError, match="200 subjects, where 4 were asked for"):
        study.correct(a.id, n=200, effect=100.0, harm=40.0, reason="counted again")
    certificate = study.certificate().content
    assert [d["what"] for d in certificate["deviations"]] == [
        f"{n} subjects were told as a block of 4" for n in (20, 11)
    ]
    assert not any(arm["certified"] or arm["open"] for arm in study.status()["arms"])
    other = created(tmp_path / "b.db", asked, blocks=True)
    other.stop("enough")
    words = other.certificate().content["concluded"]["words"]
    assert "stopped before the design had ended (enough). Best supported: " in words
    assert not any(arm["certified"] or arm["open"] for arm in other.status()["arms"])


def test_what_cannot_be_told_of_a_block(tmp_path: Path) -> None:
    asked, _ = problem(Noise("gaussian-guess", 0.3))
    study = created(tmp_path / "a.db", asked, blocks=True)
    a, b = study.ask()
    good = {"n": 20, "effect": 10.0, "effect_squares": 8.0, "harm": 4.0, "harm_sd": 0.3}
    events = study.view.seq
    for change, message in (
        ({"n": 0}, "n must be a whole number of at least 1; got 0"),
        ({"n": -3}, "n must be a whole number of at least 1"),
        ({"n": 2.5}, "n must be a whole number of at least 1"),
        ({"n": None}, "n is missing"),
        ({"effect_squares": 4.9}, r"too small for a sum of 10 over 20: at least 5"),
        ({"effect_squares": math.nan}, "effect_squares must be finite"),
        ({"harm_sd": -1.0}, "harm_sd must be finite and at least 0"),
        ({"harm_sd": None}, "sigma is not known in this study: tell harm_squares or harm_sd as well"),
        ({"harm_mean": 0.2}, "harm: a sum or a mean, not both"),
        ({"harm": None}, "harm: sd without its sum or mean"),
        ({"n": 10_000, "effect_squares": 80.0}, "10,000 subjects, where 4 were asked for"),
        ({"effekt": 1.0}, "did you mean 'effect_"),
    ):
        with pytest.raises(SurefootError, match=message):
            study.tell(a.id, **{**good, **change})  # type: ignore[arg-type]
    assert study.view.seq == events, "nothing half done"
    study.tell(a.id, **good)  # type: ignore[arg-type]
    study.tell(a.id, **good)  # type: ignore[arg-type]
    assert study.view.seq == events + 1
    with pytest.raises(SurefootError, match="n was told as 20 before; got 21"):
        study.tell(a.id, **{**good, "n": 21})  # type: ignore[arg-type]
    study.correct(a.id, reason="counted again", n=19, effect=9.5, effect_squares=7.0, harm=good["harm"], harm_sd=0.3)
    study.tell(b.id, n=10_000, effect_mean=0.5, effect_sd=0.3, harm_mean=0.1, harm_sd=0.3, confirm="a busy day")
    assert [row["what"] for row in study.certificate().content["deviations"]] == [
        "10,000 subjects were told as a block of 4"
    ]
    assert study.verify()["ok"]


def test_a_sum_must_be_possible(tmp_path: Path) -> None:
    asked, _ = case("paper-linear", 2)
    study = created(
        tmp_path / "a.db",
        asked.but(noise=(Noise("bounded", low=0, high=2), Noise("bernoulli")), limit=0.3),
        blocks=True,
    )
    a, b = study.ask()
    with pytest.raises(SurefootError, match="a mean of 3 is not between 0 and 2"):
        study.tell(a.id, n=10, effect=30, harm=1)
    with pytest.raises(SurefootError, match=r"readings sum up to a whole number; got 1\.5"):
        study.tell(a.id, n=10, effect=3, harm=1.5)
    with pytest.raises(SurefootError, match=r"a mean of -0\.1 is not between 0 and 1"):
        study.tell(a.id, n=10, effect=3, harm=-1)
    study.void(b.id, "the machine stood still")
    assert study.view.standing == "paused", "a block that is void is given again"
    study.resume("it runs again", actor="site 2")
    (again,) = study.ask()[-1:]
    study.tell(a.id, n=4, effect_mean=0.75, harm_mean=0.25)
    study.tell(again.id, n=again.n, effect=3, harm=0)
    assert study.view.cohorts[0].closed and study.verify()["ok"]


def test_by_csv_and_command_line(tmp_path: Path) -> None:
    asked, _ = problem(Noise("gaussian-guess", 0.3))
    (tmp_path / "p.toml").write_text(asked.to_toml())
    db, run = ["--db", str(tmp_path / "p.db")], CliRunner()
    made = run.invoke(app, ["create", str(tmp_path / "p.toml"), *db, "--blocks", "--pipeline", "2"])
    assert made.exit_code == 0, made.output
    study = Study.open(tmp_path / "p.db")
    assert study.view.pipeline == 2
    a, b = study.ask()
    told = run.invoke(app, ["tell", a.id, *db, "--n", "9", "--harm", "1.0", "--harm-sd", "0.3"])
    assert told.exit_code == 0, told.output
    with (tmp_path / "more.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "n", "effect_mean", "effect_sd", "harm_mean", "harm_sd"])
        writer.writerows([[a.id, 9, 0.5, 0.3, "", ""], [b.id, 12, 0.4, 0.3, 0.2, 0.31]])
    assert run.invoke(app, ["tell", "--csv", str(tmp_path / "more.csv"), *db]).exit_code == 0
    block = ["--n", "8", "--harm", "0.9", "--harm-sd", "0.3", "--effect-mean", "0.4", "--effect-sd", "0.3"]
    fixed = run.invoke(app, ["correct", a.id, *db, *block, "--reason", "counted twice"])
    assert fixed.exit_code == 0 and Study.open(tmp_path / "p.db").log()[-1].data["n"] == 8, fixed.output
    assert Study.open(tmp_path / "p.db").status()["readings"] == 20


def test_effects_that_come_late(tmp_path: Path) -> None:
    """Doses rest on harms as soon as all of a cohort are in; all else counts in the order of the cohorts."""
    asked, truth = problem(Noise("gaussian", 0.3))
    study, rng = created(tmp_path / "late.db", asked, pipeline=2, blocks=True), np.random.default_rng(4)

    def harms() -> list[tuple[str, Any]]:
        found = []
        for a in study.ask():
            effects, harm = drawn(asked, truth, a.arm, a.dose, a.n, rng)
            study.tell(a.id, n=a.n, harm=math.fsum(harm))
            found.append((a.id, math.fsum(effects)))
        return found

    first = harms()
    assert len(study.view.cohorts) == 2, "the next is open while effects are awaited"
    rises = zip(study.view.cohorts[1].certified, asked.arms, strict=True)
    assert any(most is not None and most > arm.start for most, arm in rises), "by the harms of the first"
    second = harms()
    assert len(study.view.cohorts) == 2 and not study.ask(), "two at once, and no more"
    before = study.view.state
    for id, effect in second:
        study.tell(id, effect=effect)
    assert study.view.state is before, "the second waits for the first"
    for id, effect in first:
        study.tell(id, effect=effect)
    assert study.view.done == 2 and len(study.view.cohorts) == 3
    pending: list[tuple[str, Any]] = []
    for _ in range(200):
        new = harms()
        for id, effect in pending if new else pending + new:
            study.tell(id, effect=effect)
        pending = new
        if not new and not study.awaiting():
            break
    assert study.view.ended and study.verify()["ok"]
    assert not study.certificate().content["deviations"]


def test_pipelines_that_cannot_be(tmp_path: Path) -> None:
    asked, _ = problem(Noise("gaussian", 0.3))
    for value in (0, 1.5, True, 1000):
        with pytest.raises(SurefootError, match="pipeline must be a whole number from 1 to 100"):
            created(tmp_path / "a.db", asked, pipeline=value)
    with pytest.raises(SurefootError, match="decides after whole stages"):
        Study.create(tmp_path / "a.db", "a", asked, "safebai-linear", pipeline=2)


def test_a_live_study_of_readings_that_vary_little(tmp_path: Path) -> None:
    """Design and checker come to the same, told singly and in blocks."""
    arms = (Arm("a", levels=(1, 2)), Arm("b", levels=(1, 2)))
    asked = Problem(arms=arms, limit=4.0, slack=1.0, delta=0.1, shape="levels", noise=Noise("bounded", 0.0, 10.0, True))
    rng, ended = np.random.default_rng(2), []
    for blocks in (False, True):
        study = created(tmp_path / f"{blocks}.db", asked, blocks=blocks)
        for _ in range(40):
            rows = []
            for a in study.ask():
                y, z = (rng.normal(mean + a.dose, 0.5, a.n).clip(0, 10) for mean in (4.0 if a.arm == "a" else 1.0, 0.5))
                rows.append({"id": a.id, **(sums(y, z) if blocks else {"effect": float(y[0]), "harm": float(z[0])})})
            if not rows:
                break
            study.tell_many(rows)
        ended.append(study.status()["winner"])
        assert study.verify()["ok"]
    assert ended == ["a", "a"]


def test_a_correction_of_n_alone_keeps_no_stale_spread(tmp_path: Path) -> None:
    """Squared distances from the mean of 100 are none of 120: too small a spread would be too small a sigma."""
    noise = Noise("gaussian-guess", guess=0.5)
    problem = Problem((Arm("a", 1.0, 3.0), Arm("b", 1.0, 3.0)), 2.0, "linear", noise, delta=0.1)
    study = Study.create(tmp_path / "s.db", "s", problem, blocks=True, seed=1)
    block = study.ask(blocks=True)[0]
    all_of_it: dict[str, Any] = {"effect": 3.0, "harm": 2.0, "effect_squares": 1.3, "harm_squares": 0.9}
    study.tell(block.id, n=10, **all_of_it)
    with pytest.raises(SurefootError, match="n alone leaves effect and harm as of 10"):
        study.correct(block.id, n=12, reason="counted again")
    study.correct(block.id, n=12, reason="counted again", **all_of_it)


def test_counts_beside_readings_that_need_squares(tmp_path: Path) -> None:
    """Of counts the sum is enough, and it is a whole number from 0 on."""
    arms = (Arm("a", levels=(1, 2)), Arm("b", levels=(1, 2)))
    noise = (Noise("gaussian-guess", 0.5), Noise("poisson", 1.0))
    asked = Problem(arms=arms, limit=1.2, slack=0.3, delta=0.2, shape="levels", noise=noise)
    study = Study.create(tmp_path / "x.db", "x", asked, seed=1, blocks=True)
    block = study.ask()[0]
    for harm in (-1, 2.5):
        with pytest.raises(SurefootError, match="harm is a count in this study"):
            study.tell(block.id, n=20, effect=10.0, effect_squares=8.0, harm=harm)
    study.tell(block.id, n=20, effect=10.0, effect_squares=8.0, harm=7)
    assert study.verify()["ok"]
