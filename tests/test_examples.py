"""The loops in examples/ do what they say."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, Study, SurefootError, make
from tests.study.conftest import postgres, url  # noqa: F401 (fixtures)
from tests.test_docs import ROOT, blocks, clean  # noqa: F401 (a fixture)

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_service_ramps_up_on_postgresql(url: str) -> None:  # noqa: F811
    study = example("service").main(url, days=8)
    assert study.verify()["ok"]
    given = [dose for cohort in study.view.cohorts for dose, n in zip(cohort.dose, cohort.n, strict=True) if n]
    assert max(given) > 1, "it has ramped up"
    assert all(event.kind in ("created", "opened", "told", "warned", "ended") for event in study.log())


def test_a_clinic_with_late_effects_takes_fewer_weeks(tmp_path: Path) -> None:
    weeks = []
    for pipeline in (1, 2):
        study, week = example("clinic").main(tmp_path / f"{pipeline}.db", pipeline)
        assert study.view.standing == "ended" and study.verify()["ok"]
        weeks.append(week / study.status()["readings"])
    assert weeks[1] < weeks[0]


@pytest.mark.usefixtures("clean")
def test_a_design_with_a_theorem_of_its_own_runs_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of plugins.md, as it stands there, from a module; what has no file is refused."""
    code = [
        code for code in blocks(ROOT / "docs" / "plugins.md", ("python",)) if "(Theorem)" in code or "Sums(" in code
    ]
    (tmp_path / "at_the_start.py").write_text("\n".join(code))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("at_the_start")
    arms = Arm("A", 0.5, 1.0), Arm("B", 0.5, 1.0), Arm("C", 0.5)
    problem = Problem(arms, 1.0, "linear", Noise("gaussian", 0.3), delta=0.1)
    study = Study.create(tmp_path / "x.db", "x", problem, design=make("at-the-start", each=5))
    rng = np.random.default_rng(1)
    slope = {"A": (2.0, 0.3), "B": (0.5, 0.3), "C": (0.4, 1.2)}
    while runs := study.ask():
        told = [[slope[a.arm][r] * a.dose + 0.3 * rng.standard_normal() for r in range(2)] for a in runs]
        study.tell_many([{"id": a.id, "effect": y, "harm": z} for a, (y, z) in zip(runs, told, strict=True)])
    verdict = study.verdict()
    assert verdict.endings() == ["best-arm"] and verdict.winner[0] == 0 and verdict.standing.tolist() == [[0, 1, 1]]
    assert study.verify()["ok"] and study.certificate().content["design"]["theorem"]["name"] == "at-the-start/1"

    space: dict[str, Any] = {"__name__": "typed"}
    for block in code:
        exec(compile(block.replace("at-the-start", "typed"), "typed", "exec", dont_inherit=True), space)
    with pytest.raises(SurefootError, match="typed has no file"):
        Study.create(tmp_path / "y.db", "y", problem, design=make("typed"))
