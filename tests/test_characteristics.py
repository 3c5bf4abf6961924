import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from surefoot import Characteristics, case, make, simulate
from surefoot.characteristics import brief, dose_ranges, to_csv, to_markdown, to_rich, upper_bound

MONO = make("safebai-monotonic")
RESULT = simulate(*case("paper-drug", 3), MONO, 200, seed=4)
TABLE = Characteristics(RESULT)
OTHER = Characteristics(simulate(*case("paper-drug", 3), make("safebai-monotonic", schedule="paper"), 200, seed=4))


@given(st.integers(1, 100_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_clopper_pearson(counts: tuple[int, int]) -> None:
    count, trials = counts
    interval = scipy.stats.binomtest(count, trials, alternative="less").proportion_ci(0.99, "exact")
    assert upper_bound(count, trials) == pytest.approx(interval.high, rel=1e-7)


def test_clopper_pearson_by_its_definition() -> None:
    """At the bound, so few failures or fewer would come in one run of a hundred."""
    assert scipy.stats.binom.cdf(3, 500, upper_bound(3, 500)) == pytest.approx(0.01)
    assert upper_bound(0, 2000) == pytest.approx(1 - 0.01 ** (1 / 2000))
    assert upper_bound(7, 7) == 1


def test_the_promised_keys() -> None:
    n = TABLE.to_dict()
    promised = (
        "scenario design arms delta slack limit trials seed best pulls pulls_by_arm wrong unsafe failed over_limit "
        "endings seconds"
    )
    assert set(promised.split()) <= set(n)
    assert set(n["pulls"]) == {"mean", "sd", "se", "median", "p90", "max"}
    assert set(n["wrong"]) == {"count", "rate", "upper"}
    assert set(n["unsafe"]) == {"trials", "rate", "upper", "pulls"}
    assert set(n["failed"]) == {"count", "rate", "upper"}
    assert "pulls_share" in n["over_limit"]
    assert list(n["pulls_by_arm"]) == ["drug 1", "drug 2", "drug 3"]
    assert set(n["endings"]) == {"best-arm", "within-tolerance", "budget-spent", "all-stopped"}
    assert json.loads(json.dumps(n, allow_nan=False)) == n


def test_the_numbers() -> None:
    n, pulls = TABLE.numbers, RESULT.pulls
    assert (n["scenario"], n["design"], n["arms"], n["trials"], n["seed"]) == ("paper-drug", MONO.name, 3, 200, 4)
    assert (n["delta"], n["slack"], n["limit"], n["best"]) == (0.1, 0.2, 0.3, "drug 1")
    assert n["pulls"]["mean"] == pytest.approx(pulls.mean())
    assert n["pulls"]["sd"] == pytest.approx(np.std(pulls, ddof=1))
    assert n["pulls"]["se"] == pytest.approx(scipy.stats.sem(pulls))
    assert n["pulls"]["median"] == np.median(pulls)
    assert n["pulls"]["p90"] == pytest.approx(np.quantile(pulls, 0.9))
    assert n["pulls"]["max"] == pulls.max()
    assert sum(n["pulls_by_arm"].values()) == pytest.approx(pulls.mean())
    assert sum(n["pulls_by_dose"].values()) == pytest.approx(pulls.mean())
    assert n["pulls_by_dose"]["above"] == pytest.approx(n["over_limit"]["pulls_share"] * pulls.mean())
    assert sum(n["endings"].values()) == 200
    assert 0.5 < n["safe"]["share"] <= 1
    assert n["decisions"]["mean"] == RESULT.rounds.mean()
    assert dose_ranges() == ["0-20%", "20-40%", "40-60%", "60-80%", "80-100%", "above"]


def test_failures_are_counted_once() -> None:
    wrong = np.arange(200) % 10 == 0
    unsafe = np.arange(200) % 20 == 0
    changed = {"winner": np.where(wrong, 1, 0), "unsafe_pulls": np.where(unsafe, 5, 0)}
    marks = replace(RESULT.marks, columns={**RESULT.marks.columns, **changed})
    n = Characteristics(replace(RESULT, sums=marks.sums(RESULT.by_arm, 256))).numbers
    assert (n["wrong"]["count"], n["unsafe"]["trials"], n["failed"]["count"]) == (20, 10, 20)
    assert n["unsafe"]["pulls"] == 50
    assert n["failed"]["rate"] == 0.1
    assert n["failed"]["upper"] == upper_bound(20, 200)


@pytest.mark.parametrize("budget", [1, 10**9])
def test_one_trial_and_no_winner(budget: int) -> None:
    """No nan anywhere: it could not be written as JSON."""
    table = Characteristics(simulate(*case("paper-drug", 3, budget=budget), MONO, 1))
    json.dumps(table.to_dict(), allow_nan=False)
    assert table.rows()
    assert (table.numbers["safe"]["share"] is None) is (budget == 1)


def test_unsafe_starts_make_no_nan() -> None:
    table = Characteristics(simulate(*case("unsafe-start"), make("safebai-linear"), 50))
    json.dumps(table.to_dict(), allow_nan=False)
    assert not table.promised
    assert TABLE.promised
    assert not OTHER.promised  # the paper's schedule has no guarantee


def test_where_no_arm_is_safe() -> None:
    """Whoever is named then is named wrongly, and there is no best arm and no way to a safe dose."""
    result = simulate(*case("paper-drug", 3, limit=0.01), MONO, 50)
    n = Characteristics(result).numbers
    json.dumps(n, allow_nan=False)
    assert n["best"] is None and "no arm is safe" in n["no_single_best"]
    assert brief(Characteristics(result))["named: best / wrong"].startswith("none safe / ")
    assert n["wrong"]["count"] == (result.winner >= 0).sum() > 0
    assert n["pulls_by_dose"]["above"] == result.pulls.mean()
    assert n["safe"]["share"] is None


def test_a_tie_and_a_rate_of_failures_without_a_name_are_said() -> None:
    tie = Characteristics(simulate(*case("equal-arms", budget=50, tolerance=None), make("surefoot-linear"), 5))
    assert tie.notes[0].startswith("equal-arms: all arms are equally the best")
    assert brief(tie)["recommended: best"] == "any will do"
    assert dict(tie.rows())["failed (wrong or unsafe), promised at most 0.1"].endswith("an arm was named in 0.0%")


def test_markdown_parses_back() -> None:
    lines = to_markdown([TABLE, OTHER]).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {len(row) for row in cells} == {3}
    assert cells[0] == ["", "paper-drug, safebai-monotonic", "paper-drug, safebai-monotonic:schedule=paper"]
    assert set("".join(cells[1])) == {"-"}
    rows = {name: values for name, *values in cells[2:]}
    assert rows["pulls, mean"][0].startswith(f"{RESULT.pulls.mean():,.1f} ± ")
    assert rows["endings"] == ["best-arm 200"] * 2


def test_csv_parses_back() -> None:
    first, second = csv.DictReader(io.StringIO(to_csv([TABLE, OTHER])))
    assert float(first["pulls.mean"]) == RESULT.pulls.mean()
    assert int(first["wrong.count"]) == 0
    assert float(second["pulls_by_arm.drug 3"]) == OTHER.numbers["pulls_by_arm"]["drug 3"]
    assert first["slack"] == "0.2"


def test_the_table_shows_what_is_promised() -> None:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(to_rich([TABLE]))
    console.print(to_rich([OTHER]))
    text = console.export_text()
    assert "paper-drug: 3 arms, limit 0.3 + slack 0.2, delta 0.1, 200 trials, seed 4" in text
    assert "promised at most 0.1" in text
    assert "failed (no promise)" in text


def test_subjects_over_the_limit_by_level() -> None:
    problem, scenario = case("levels-cliff")
    result = simulate(problem, scenario, make("boin"), 50)
    table = Characteristics(result)
    n, rows = table.numbers, table.by_level
    assert sum(row["pulls"] for row in rows) == pytest.approx(result.pulls.mean())
    assert sum(row["above_limit"] for row in rows) == pytest.approx(n["over_limit"]["pulls"])
    assert n["over_limit"]["above_ceiling"] == n["over_limit"]["pulls"] > 0  # 0.9 and 0.95, the ceiling is 0.5
    at = n["pulls_by_level"]["drug A"]["3"]
    assert at["above_limit"] == at["above_ceiling"] == at["pulls"] and at["harm"] == 0.9
    assert n["pulls_by_level"]["drug A"]["2"]["above_limit"] == 0
    told = dict(table.rows())
    assert "drug A at 3" in told["pulls above limit + slack, by level"]
    assert "pulls_by_level.drug A.3.above_ceiling" in to_csv([table])
    assert list(n["pulls_by_dose"]) == [f"at {k}" for k in (1, 2, 3, 4)]
