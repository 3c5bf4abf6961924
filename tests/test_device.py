"""A device without one: another namespace, whose arrays live apart and refuse to be mixed with those of the host."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import array_api_strict as xp
import numpy as np
import pytest

from surefoot import Scenario, SurefootError, case, make, simulate
from surefoot.device import Device
from surefoot.play import Job, play
from surefoot.scenario import Emax, Linear, Logistic, Table

THERE, HERE = xp.Device("device1"), xp.Device("CPU_DEVICE")


def host(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else np.asarray(x.to_device(HERE))


class Draws:
    """NumPy's numbers, as if they had been drawn there."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def standard_normal(self, shape: tuple[int, ...]) -> Any:
        return xp.asarray(self.rng.standard_normal(shape), device=THERE)

    def random(self, shape: tuple[int, ...]) -> Any:
        return xp.asarray(self.rng.random(shape), device=THERE)

    def binomial(self, n: Any, p: Any) -> Any:
        return xp.asarray(self.rng.binomial(host(n).astype(np.int64), host(p)).astype(float), device=THERE)


class Strict:
    """As `Device`, of array-api-strict."""

    def put(self, batch: Any) -> Any:
        moved = {}
        for f in fields(batch):
            x = getattr(batch, f.name)
            if type(x).__module__.startswith("array_api_strict"):
                moved[f.name] = x.to_device(THERE)
            elif is_dataclass(x) and f.name != "problem":
                moved[f.name] = self.put(x)
        return replace(batch, **moved)

    @contextmanager
    def ready(self) -> Iterator[None]:
        yield

    def generator(self, seed: int, first: int) -> Draws:
        return Draws(seed)


THEIRS: Any = Strict()


@pytest.fixture(autouse=True)
def newest(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("surefoot.play.numpy", host)
    with xp.ArrayAPIStrictFlags(api_version="2024.12"):
        yield


@pytest.mark.parametrize(
    ("name", "scenario", "trials"),
    [
        ("safebai-linear", "correlated-opposite", 400),
        ("safebai-monotonic", "binary-harm", 60),
        ("surefoot-linear", "paper-linear", 6),
        ("surefoot-monotonic", "emax", 6),
        ("surefoot-levels", "levels-tie", 6),
    ],
)
def test_the_whole_step_stays_there(name: str, scenario: str, trials: int) -> None:
    """Nothing is mixed with the host's arrays, and the numbers are about those of NumPy."""
    problem, truth = case(scenario, 3, budget=30_000 if "safebai" in name else 40)
    one = Job(problem, truth, make(name), truth.truth(problem), 1, 0, trials, True)
    there = play(replace(one, xp=xp, device=THEIRS, width=max(trials // 2, 4)))
    here = play(one)
    assert there.sums.trials == here.sums.trials == trials
    assert there.sums.by_arm.sum() == sum(n * k for n, k in there.sums.pulls.items())
    se = np.hypot(here.sums.sd, there.sums.sd) / trials**0.5
    assert abs(here.sums.mean - there.sums.mean) <= 6 * se


def test_curves_there() -> None:
    table = Table((0.0, 1.0, 3.0), (0.1, 0.4, 0.5))
    mixed = Scenario(
        (Linear(2.0, 0.5), table, Logistic(1.0, -1.0), Emax(1.0, 2.0, 1.5), Linear(1.0)), (Linear(1.0),) * 5
    )
    dose = np.linspace(-1, 5, 70).reshape(14, 5)
    moved: Any = xp.asarray(dose, device=THERE)
    for curves in (mixed.effects, mixed.harms):
        got = curves(moved)
        assert got.device == THERE
        np.testing.assert_allclose(host(got), curves(dose), rtol=1e-14, atol=1e-15)
    assert float(host(Table((1.0,), (0.3,))(moved)).max()) == 0.3


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SurefootError, match=r"needs PyTorch.*surefoot\[torch\]"):
        simulate(*case("paper-linear", 3), make("safebai-linear"), 4, device="cuda")
    with pytest.raises(SurefootError, match="of this machine: leave out the cluster"):
        simulate(*case("paper-linear", 3), make("safebai-linear"), 4, device="cuda", cluster="tcp://127.0.0.1:1")


def test_torch_where_there_is_one() -> None:
    pytest.importorskip("torch")
    with pytest.raises(SurefootError, match="cannot use device 'cuda:9'"):
        Device("cuda:9")
    problem, scenario = case("paper-linear", 3)
    ways: list[dict[str, Any]] = [{}, {"device": "cpu"}, {"device": "cpu", "workers": 2}]
    results = [simulate(problem, scenario, make("safebai-linear"), 500, 1, **way) for way in ways]
    np.testing.assert_array_equal(results[1].pulls, results[2].pulls)  # the same seed, device and width
    assert abs(results[0].pulls.mean() - results[1].pulls.mean()) < 6 * results[0].pulls.std() * (2 / 500) ** 0.5
