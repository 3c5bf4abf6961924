"""What is kept of a run, and how it goes on."""

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import Scenario, SurefootError, case, make, simulate
from surefoot.columns import opened
from surefoot.results import Sums
from surefoot.simulate import Run, simulate_all
from surefoot.store import Store

LINEAR = make("safebai-linear")


class Small(type(LINEAR)):  # type: ignore[misc]
    """In small parts, so that a few trials make several."""

    chunk = 16


RUN = Run(*case("paper-linear", 3), Small(), 200, 7)


def risen(dose: Any, slope: float) -> Any:
    return slope * dose


class Stop(Exception):
    pass


def stopped_after(jobs: int) -> Any:
    """A sink that gives up after some jobs, as a kill would."""
    seen = list[int]()

    def sink(run: Run, columns: dict[str, Any]) -> None:
        seen.append(len(columns["pulls"]))
        if len(seen) == jobs:
            raise Stop

    return sink


def assert_same(one: Any, two: Any) -> None:
    assert one.sums.to_dict() == two.sums.to_dict()
    for name, column in one.columns.items():
        np.testing.assert_array_equal(column, two.columns[name], err_msg=name)


@pytest.fixture
def whole() -> Any:
    return simulate_all([RUN], progress=False)[0]


def test_it_goes_on_where_it_was(tmp_path: Path, whole: Any) -> None:
    with pytest.raises(Stop):
        simulate_all([RUN], out=tmp_path, progress=False, sink=stopped_after(1))
    kept = Store(tmp_path).kept(RUN)
    assert 0 < kept.done < 200
    assert_same(simulate_all([RUN], out=tmp_path, progress=False)[0], whole)
    assert Store(tmp_path).kept(RUN).done == 200
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert_same(simulate_all([RUN], out=tmp_path, progress=False)[0], whole)  # read, and nothing is written
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_any_other_setting_is_another_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    problem, scenario = case("paper-linear", 4)
    changes: list[dict[str, Any]] = [
        {"seed": 8}, {"trials": 201}, {"keep": False}, {"design": LINEAR}, {"problem": RUN.problem.but(delta=0.2)},
        {"problem": problem, "scenario": scenario}, {"scenario": replace(RUN.scenario, correlation=0.5)},
    ]  # fmt: skip
    names = {store.kept(replace(RUN, **change)).name for change in changes} | {store.kept(RUN).name}
    assert len(names) == len(changes) + 1


@pytest.mark.parametrize("damage", ["cut", "empty", "short", "other", "columns"])
def test_what_is_damaged_is_not_used(damage: str, tmp_path: Path, whole: Any) -> None:
    simulate_all([RUN], out=tmp_path, progress=False)
    kept = Store(tmp_path).kept(RUN)
    path = tmp_path / "parts" / f"{kept.name}.json"
    data = json.loads(path.read_text())
    if damage == "short":
        data["sums"]["pulls"].pop()
    if damage == "other":
        data["identity"]["seed"] = 99
    if damage == "columns":
        next((tmp_path / "parts").glob("*.npz")).write_bytes(b"PK")
    text = {"cut": path.read_text()[:200], "empty": ""}.get(damage, json.dumps(data))
    path.write_text(text)
    with pytest.warns(UserWarning, match="damaged .*playing it again"):
        again = simulate_all([RUN], out=tmp_path, progress=False)[0]
    assert_same(again, whole)


def test_a_full_disk_loses_nothing(tmp_path: Path, whole: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, calls = os.fsync, list[int]()

    def full(file: int) -> None:
        calls.append(file)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SurefootError, match=r"No space left on device.*the same command goes on from there"):
        simulate_all([RUN], out=tmp_path, progress=False)
    monkeypatch.undo()
    assert Store(tmp_path).kept(RUN).done > 0
    assert not list(tmp_path.rglob("*.half"))
    assert_same(simulate_all([RUN], out=tmp_path, progress=False)[0], whole)


def test_sums_come_back_exactly(whole: Any) -> None:
    back = Sums.from_dict(json.loads(json.dumps(whole.sums.to_dict())))
    assert back.to_dict() == whole.sums.to_dict()
    assert back.excess == whole.sums.excess and (back + back).trials == 400


def test_python_functions_are_kept_apart(tmp_path: Path) -> None:
    problem, scenario = case("paper-linear", 3)
    for slope, files in ((0.5, 1), (0.5, 1), (0.6, 2)):
        curves: list[Any] = [lambda dose, slope=slope: slope * dose, partial(risen, slope=slope)]
        for kind, curve in enumerate(curves):
            mine = Scenario(scenario.effect, (curve,) * 3)
            simulate(problem, mine, LINEAR, 4, out=tmp_path / str(kind))
            assert len(list((tmp_path / str(kind) / "parts").glob("*.json"))) == files


def test_a_trace_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(SurefootError, match="leave out trace, or out"):
        simulate(*case("paper-linear", 3), LINEAR, 4, out=tmp_path, trace=True)


def test_columns_are_kept_where_they_are_asked_for() -> None:
    few = simulate(*case("paper-linear", 3), LINEAR, 50, keep=False)
    with pytest.raises(SurefootError, match="pulls of every trial was not kept"):
        few.pulls  # noqa: B018
    with pytest.raises(SurefootError, match="keep=True"):
        few.wrong  # noqa: B018
    with pytest.raises(AttributeError):
        few.colour  # noqa: B018
    many = simulate(*case("paper-linear", 3), LINEAR, 50)
    assert many.sums.to_dict() == few.sums.to_dict()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_every_trial_in_a_file(suffix: str, tmp_path: Path, whole: Any) -> None:
    path = tmp_path / f"trials.{suffix}"
    with opened(path) as sink:
        simulate_all([RUN, replace(RUN, seed=8)], progress=False, sink=sink)
    rows: list[dict[str, Any]]
    if suffix == "csv":
        rows = list(csv.DictReader(path.read_text().splitlines()))
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    mine = sorted((row for row in rows if int(row["seed"]) == 7), key=lambda row: int(row["trial"]))
    assert len(rows) == 400 and [int(row["trial"]) for row in mine] == list(range(200))
    assert [int(row["pulls"]) for row in mine] == whole.pulls.tolist()
    assert [float(row["safe"]) for row in mine] == whole.safe.tolist()
    assert {row["winner"] for row in mine} == {"arm 1"} and {row["ending"] for row in mine} == {"best-arm"}
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_refuses_files_and_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SurefootError, match=r"\.csv or a \.parquet"), opened(tmp_path / "trials.xlsx"):
        pass
    with pytest.raises(SurefootError, match="there is no such folder"), opened(tmp_path / "none" / "trials.csv"):
        pass
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(SurefootError, match="holds something else"):
        simulate_all([RUN], out=tmp_path, progress=False)


def test_a_killed_command_goes_on(tmp_path: Path) -> None:
    """The same table as one that was never killed."""
    command = [
        sys.executable,
        "-m",
        "surefoot",
        "simulate",
        "paper-drug",
        "--arms",
        "3",
        "--design",
        "safebai-monotonic",
    ]
    command += ["--trials", "3000", "--json"]
    out, said = ["--out", str(tmp_path / "run")], []
    with subprocess.Popen([*command, *out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        while child.poll() is None and not list(tmp_path.glob("run/parts/*.json")):
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
    with warnings.catch_warnings():
        for more in (out, []):
            done = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
            said.append(json.loads(done.stdout) | {"seconds": 0})
    assert said[0] == said[1]
