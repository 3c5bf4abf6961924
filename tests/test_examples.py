"""The loops in examples/ do what they say."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.study.conftest import postgres, url  # noqa: F401 (fixtures)

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
