import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import surefoot
from surefoot import CASES, DESIGNS, Noise, Problem, case, simulate
from surefoot.cli import main
from surefoot.designs import default

from .test_scenario import EXAMPLE, SET


class Ran:
    def __init__(self, code: Any, out: str, err: str):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        """Exactly one JSON object, and nothing else."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        assert self.err == ""
        return found


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("surefoot.cli.console", Console(width=200))

    def go(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as exit:
            main(arguments)
        return Ran(exit.value.code, *capfd.readouterr())

    return go


def test_help_and_version(run: Any) -> None:
    assert run("--version").out.startswith(f"surefoot {surefoot.__version__} (")
    assert "NumPy" in run("--version").out and "--install-completion" in run("--help").out
    told = run("--help")
    assert told.code == 0
    for command in ("simulate", "compare", "plan", "advise", "check", "theory", "scenarios", "designs", "demo"):
        assert command in told.out
        assert run(command, "--help").code == 0


def test_python_m_surefoot() -> None:
    done = subprocess.run([sys.executable, "-m", "surefoot", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"surefoot {surefoot.__version__} (")
    bad = subprocess.run([sys.executable, "-m", "surefoot", "simulate", "x"], capture_output=True, text=True)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: scenario must be one of paper-linear, paper-drug,")


def test_simulate_json(run: Any) -> None:
    n = run("simulate", "paper-linear", "--design", "safebai-linear", "--trials", "50", "--seed", "7", "--json").json
    assert (n["scenario"], n["design"], n["arms"], n["trials"], n["seed"]) == (
        "paper-linear",
        "safebai-linear",
        10,
        50,
        7,
    )
    assert n["slack"] is None
    chosen = ("simulate", "paper-linear", "--design", "safebai-linear", "--trials", "50", "--seed", "7")
    for again in (run(*chosen, "--format", "json").json, run(*chosen, "--json", "--workers", "2").json):
        assert again | {"seconds": 0} == n | {"seconds": 0}


def test_simulate_overrides(run: Any) -> None:
    n = run(
        "simulate", "paper-drug", "--design", "safebai-monotonic", "--arms", "3", "--trials", "5",
        "--delta", "0.2", "--slack", "0.5", "--limit", "0.25",
        "--tolerance", "0.4", "--budget", "100000", "--refine", "0.5", "--set", "schedule=paper", "--set", "unit=0.5",
        "--json",
    ).json  # fmt: skip
    assert (n["arms"], n["delta"], n["slack"], n["limit"]) == (3, 0.2, 0.5, 0.25)
    assert n["guarantee"] is False  # the option arrived


def test_simulate_prints(run: Any) -> None:
    two = "simulate", "paper-drug", "--arms", "2", "--trials", "2", "--budget", "60"
    table = run(*two)
    assert table.code == 0
    assert "pulls, mean" in table.out
    outside = run("simulate", "drift", "--trials", "1", "--budget", "60").out
    assert "outside the assumptions, so nothing is promised: harm drifts by 0.02" in outside
    assert run(*two, "--format", "markdown").out.startswith("|  | paper-drug, ")
    assert run(*two, "--format", "csv").out.startswith("scenario,design,label,arms,")


def test_a_file(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    n = run("simulate", str(path), "--trials", "20", "--json").json
    assert (n["scenario"], n["best"], n["endings"]["best-arm"]) == ("mine", "drug A", 20)
    assert "a file has the arms it lists" in run("simulate", str(path), "--arms", "3").err
    path.write_text(case("paper-drug", 3)[0].to_toml(), encoding="utf-8")
    assert "this is a problem file; a simulation needs a scenario" in run("simulate", str(path)).err


def test_compare(run: Any) -> None:
    n = run("compare", "paper-drug", "--arms", "3", "--trials", "5", "--designs", "safebai-monotonic", "--json").json
    assert n["scenario"] == "paper-drug"
    assert [row["design"] for row in n["designs"]] == ["safebai-monotonic"]
    shown = run(
        "compare", "paper-linear", "--arms", "3", "--trials", "5", "--designs", "safebai-linear, safebai-linear"
    )
    assert shown.code == 0
    assert shown.out.count("safebai-linear") == 2


def test_scenarios_designs_and_budgets_in_one_table(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "set.toml"
    path.write_text(SET, encoding="utf-8")
    command = "compare", str(path), "--designs", "surefoot-levels,boin", "--budgets", "9,18", "--trials", "2"
    found = run(*command, "--json").json["scenarios"]
    assert [part["scenario"] for part in found] == ["A is better", "B is better"]
    assert [(row["design"], row["budget"]) for row in found[0]["designs"]] == [
        (name, most) for name in ("surefoot-levels", "boin") for most in (9, 18)
    ]
    assert len(run(*command, "--format", "csv").out.splitlines()) == 9
    shown = run(*command, "--format", "markdown").out.splitlines()
    assert len(shown) == 10
    assert "named: best / wrong" in shown[0] and "recommended dose over the limit" in shown[0]
    assert "0.0% / 0.0%" in shown[2]  # no failure, and no answer either
    few = "compare", str(path), "--designs", "boin,three-plus-three", "--budgets", "200,1000", "--trials", "2"
    assert "subjects: mean" in " ".join(run(*few).out.split()), "3+3 is done long before the budget is spent"
    one = tmp_path / "one.toml"
    one.write_text(SET.split('[[scenarios]]\nname = "B')[0].replace("delta = 0.1", "delta = 0.9"), encoding="utf-8")
    usual = run("compare", str(one), "--trials", "1", "--json").json["designs"]
    assert {row["design"] for row in usual} == {"surefoot-levels", "boin", "three-plus-three"}
    assert [row["budget"] for row in usual[:4]] == [60, 200, 1000, None]
    one = run(*command, "--json", "--set", "first=2").json["scenarios"][0]["designs"]  # of those that have it
    assert [row["label"] for row in one] == ["surefoot-levels:first=2"] * 2 + ["boin"] * 2
    for name in ("compare", "plan", "advise"):
        assert "an option of surefoot-levels must be one of" in run(name, str(path), "--set", "frist=2").err
    assert "--set takes KEY=VALUE" in run("advise", str(path), "--set", "first").err
    both = run("simulate", str(path), "paper-linear", "--trials", "2")
    assert "different shapes" in both.err
    assert len(run("simulate", str(path), "--trials", "2", "--budget", "20", "--json").json["scenarios"]) == 2
    assert "budgets are whole numbers" in run("compare", str(path), "--budgets", "many").err


def test_lists(run: Any) -> None:
    assert [row["name"] for row in run("designs", "--json").json["designs"]] == list(DESIGNS)
    rows = run("scenarios", "--json").json["scenarios"]
    assert [row["name"] for row in rows] == list(CASES)
    assert {row["shape"] for row in rows} == {"linear", "monotonic", "levels"}
    assert all(name in run("designs").out for name in DESIGNS)
    told = run("scenarios").out
    assert all(name in told for name in CASES)
    assert "outside the assumptions" in told


def test_check_fails_where_the_promise_is_not_shown(run: Any) -> None:
    """Ten trials cannot show a failure rate below 0.1 at 99%: exit code 1. Two hundred can."""
    short = run("check", "--design", "safebai-linear", "--trials", "10", "--json")
    assert short.code == 1
    assert short.json["broken"] == sum(row["claim"] for row in short.json["rows"])
    long = run("check", "--design", "safebai-linear", "--trials", "200")
    assert long.code == 0
    assert "paper-linear" in long.out


def test_check_over_instances_on_a_page(run: Any, tmp_path: Path) -> None:
    page = tmp_path / "checked.md"
    few = "--trials", "2", "--instances", "3", "--instance-trials", "2", "--budget", "2000"
    assert run("check", "--design", "safebai-linear", *few, "--markdown", str(page)).code == 1
    text = page.read_text()
    assert "surefoot check --design safebai-linear --trials 2 --seed" in text and f"--markdown {page}" in text
    assert "| safebai-linear | random-linear, 3 instances | 6 |" in text and "## Outside the assumptions" in text


def test_a_new_file_a_schema_and_a_key(run: Any, tmp_path: Path) -> None:
    file, key = tmp_path / "new.toml", tmp_path / "key"
    assert "Next: surefoot advise" in run("new", str(file), "--shape", "monotonic", "--arms", "a, b").out
    assert run("simulate", str(file), "--trials", "1", "--budget", "50", "--json").json["arms"] == 2
    assert "is there already" in run("new", str(file), "--shape", "linear").err
    for shape, limit in (("monotonic", "1.5"), ("linear", "0.9"), ("levels", "2")):  # also of what is no share
        harm = "yes-no" if limit == "0.9" else "0.1"
        made = run("new", str(file), "--shape", shape, "--limit", limit, "--harm", harm, "--force")
        assert "Wrote" in made.out and "outside" not in run("simulate", str(file), "--trials", "1", "--budget", "9").out
    assert "cannot write" in run("new", str(tmp_path / "no" / "new.toml")).err
    run("new", str(file), "--shape", "levels", "--harm", "guess:0.6", "--limit", "5", "--force")
    assert Problem.load(file).noises[1] == Noise("gaussian-guess", 0.6)
    assert "--instance is for the random families" in run("simulate", str(file), "--instance", "1").err
    assert "arms" in run("schema").json["properties"]
    public = run("key", "new", str(key), "--json").json["public"]
    assert public and key.exists() and "there already" in run("key", "new", str(key)).err
    assert run("key", "new", str(tmp_path / "other")).out.strip() != public
    assert "surefoot key new FILE; got 'old'" in run("key", "old", str(key)).err


def test_theory(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.theory.certified.ROUNDS", 1)
    assert run("theory", "paper-linear", "--arms", "2", "--json").json
    told = run("theory", "paper-drug", "--arms", "2", "--delta", "0.01")
    assert told.code == 0 and told.out


def test_demo(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = quick(monkeypatch)
    db, out = str(tmp_path / "demo.db"), str(tmp_path / "demo.png")
    told = run("demo", "--out", out, "--db", db)
    assert told.code == 0
    for word in ("which one works best at its highest safe dose?", "Verdict: best-arm", "refuted in round"):
        assert word in told.out
    assert asked == [2000]
    assert f"surefoot study status --db {db}" in told.out
    assert Path(out).read_bytes().startswith(b"\x89PNG")
    status = run("study", "status", "--db", db, "--json").json
    assert (status["study"], status["standing"], status["winner"]) == ("demo", "ended", "drug 1")


def quick(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two simulated trials in place of the two thousand, and readings that scatter less. What was asked is noted."""
    asked = list[int]()

    def quiet(name: str, arms: int) -> Any:
        problem, truth = case(name, arms)
        return problem.but(noise=Noise("gaussian", 0.08)), truth

    monkeypatch.setattr("surefoot.cli.case", quiet)

    def few(problem: Any, truth: Any, design: Any, trials: int, seed: int, **options: Any) -> Any:
        asked.append(trials)
        return simulate(problem, truth, design, min(trials, 2), **options)

    monkeypatch.setattr("surefoot.cli.run", few)
    return asked


def test_demo_without_the_extras(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    for name in [name for name in sys.modules if name.startswith(("surefoot.study", "sqlalchemy"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.delattr(surefoot, "study", raising=False)
    db = tmp_path / "demo.db"
    assert run("demo", "--out", str(tmp_path / "no" / "where.png")).code == 2
    n = run("demo", "--json", "--out", str(tmp_path / "a.png"), "--db", str(db)).json
    assert (n["winner"], n["picture"], n["db"]) == ("drug 1", str(tmp_path / "a.png"), None)
    assert n["characteristics"]["design"] == default("monotonic")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = run("demo", "--db", str(db))
    assert told.code == 0
    assert "which one works best" in told.out and "Verdict: best-arm" in told.out
    assert "surefoot study" not in told.out and not db.exists()


def test_demo_leaves_other_files_alone(run: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine.db"
    mine.write_text("my notes")
    told = run("demo", "--db", str(mine))
    assert (told.code, told.out) == (2, "")
    assert "is not an earlier demo" in told.err
    assert mine.read_text() == "my notes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("simulate paper-dug", "(did you mean 'paper-drug'?)"),
        ("simulate paper-drug --design safebai", f"design must be one of {', '.join(DESIGNS)}; got 'safebai'"),
        (
            "simulate paper-drug --design safebai-linear",
            "safebai-linear is for the linear shape; this problem is monotonic",
        ),
        ("simulate paper-drug --design safebai-monotonic --set schedule", "--set takes KEY=VALUE; got 'schedule'"),
        ("simulate paper-drug --design safebai-monotonic --set schedul=paper", "(did you mean 'schedule'?)"),
        (
            "simulate paper-drug --design safebai-monotonic --set schedule=theori",
            "schedule must be one of theory, paper; got 'theori'",
        ),
        (
            "simulate paper-drug --design safebai-monotonic --set unit=big",
            "unit must be a number above 0 or auto; got 'big'",
        ),
        ("simulate paper-drug --delta 2", "delta must be between 0 and 1, both excluded; got 2.0"),
        ("simulate paper-drug --delta nan", "delta must be finite; got nan"),
        (
            "simulate paper-linear --slack 0.1",
            "slack is for monotonic and levels; leave it out here; got 0.1",
        ),
        ("simulate paper-drug --trials 0", "trials must be a whole number of at least 1; got 0"),
        ("simulate paper-drug --seed -1", "seed must be a whole number of at least 0; got -1"),
        ("simulate paper-drug --arms 1", "arms must be a whole number of at least 2; got 1"),
        ("simulate nowhere.toml", "cannot read nowhere.toml: No such file or directory"),
        ("compare paper-drug --designs a,b", "design must be one of"),
        ("theory paper-dug", "(did you mean 'paper-drug'?)"),
        ("check --design nothing", "design must be one of"),
    ],
)
def test_errors_say_what_to_do(run: Any, arguments: str, message: str) -> None:
    ran = run(*arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert message in ran.err


@pytest.mark.parametrize(
    "arguments", ["simulate", "simulat", "simulate paper-drug --trials x", "simulate paper-drug -q"]
)
def test_usage_errors(run: Any, arguments: str) -> None:
    ran = run(*arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert "Usage" in ran.err


def test_no_arguments_show_the_help(run: Any) -> None:
    ran = run()
    assert "Usage" in ran.out + ran.err
