import csv
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from surefoot import SurefootError
from surefoot.cli import app
from surefoot.noise import parse_noises
from surefoot.pilot import pilot


def rows(bend: float = 0.0, wide: float = 0.0) -> list[dict[str, object]]:
    rng = np.random.default_rng(3)
    return [
        {"arm": arm, "dose": dose, "effect": dose + 0.5 * rng.standard_normal(),
         "harm": 0.4 * dose + bend * dose**2 + (0.2 + wide * dose) * rng.standard_normal()}
        for arm in ("A", "B") for dose in (0.5, 1.0, 2.0) for _ in range(60)
    ]  # fmt: skip


def test_sigmas_and_lines_for_the_problem_file() -> None:
    found = pilot(rows())
    assert not found.signs
    for s in found.spreads:
        true = 0.5 if s.reading == "effect" else 0.2
        assert s.n == 180 and 0.8 * true < s.sigma < 1.2 * true < 1.6 * s.upper
        assert s.sigma < s.upper
    lines = tomllib.loads(found.lines())
    effect, harm = parse_noises("noise", lines["noise"])
    assert effect.kind == harm.kind == "gaussian-guess" and 0.4 < effect.scale < 0.6
    assert all("lipschitz" not in arm for arm in lines["arms"]) and found.lines().count("# lipschitz = ") == 2


def test_signs_that_an_assumption_is_wrong() -> None:
    assert any("a line through 0 does not fit" in sign for sign in pilot(rows(bend=0.5)).signs)
    assert any("it falls from dose" in sign for sign in pilot(rows(bend=-0.5)).signs)
    assert any("scatters more at some doses" in sign for sign in pilot(rows(wide=0.5)).signs)


def test_kinds_of_readings() -> None:
    data = [{**row, "harm": float(k % 3 == 0), "effect": 0.1 + 0.001 * k} for k, row in enumerate(rows())]
    found = pilot(data)
    assert found.kinds == {"effect": "share", "harm": "binary"}
    effect, harm = parse_noises("noise", tomllib.loads(found.lines())["noise"])
    assert (effect.kind, harm.kind) == ("bounded", "bernoulli")


def test_by_command_line(tmp_path: Path) -> None:
    path = tmp_path / "readings.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["arm", "dose", "effect", "harm"])
        writer.writeheader()
        writer.writerows(rows())
    ran = CliRunner().invoke(app, ["pilot", str(path)])
    assert ran.exit_code == 0 and "gaussian-guess" in ran.output and "No sign" in ran.output
    told = json.loads(CliRunner().invoke(app, ["pilot", str(path), "--json"]).output)
    assert told["spreads"][0]["n"] == 180 and told["signs"] == []
    with pytest.raises(SurefootError, match="cannot read"):
        pilot(tmp_path / "none.csv")
    path.write_text("arm,dose,effect\nA,1,2\n")
    with pytest.raises(SurefootError, match="lacks the column harm"):
        pilot(path)
    path.write_text("arm,dose,effect,harm\nA,1,2,x\n")
    with pytest.raises(SurefootError, match="row 1 needs an arm and numbers"):
        pilot(path)
    with pytest.raises(SurefootError, match="there are no readings"):
        pilot([])
