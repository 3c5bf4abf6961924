from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from benchmarks.track import INSTANCES, instance
from surefoot import Arm, Noise, Problem, Scenario, SurefootError, case, make, simulate
from surefoot.designs.track_and_stop import best_shares, likelihood_ratio
from surefoot.scenario import Linear
from surefoot.testing import failures_allowed

GAUSSIAN, BINARY = Noise("gaussian", 0.5), Noise("bernoulli")


def shares(mean: Any, noise: Noise) -> NDArray[np.float64]:
    row = np.array([mean])
    leader = np.argmax(row, axis=1)[:, None]
    return np.asarray(best_shares(row, leader, np.ones_like(row, bool), 0.0, noise)[0])


@pytest.mark.parametrize("noise", [GAUSSIAN, BINARY], ids=lambda noise: noise.kind)
@pytest.mark.parametrize("mean", [*INSTANCES, (0.2, 0.6), (0.1, 0.12, 0.9, 0.5)])
def test_shares_are_those_that_tell_apart_soonest(mean: tuple[float, ...], noise: Noise) -> None:
    """Against a general-purpose search for the largest of the least likelihood ratio."""
    row, leader = np.array([mean]), np.array([[int(np.argmax(mean))]])

    def least(w: Any) -> float:
        ratio = likelihood_ratio(w[None], row, leader, 0.0, noise)[0]
        return float(np.delete(ratio, leader[0, 0]).min())

    found = least(shares(mean, noise))
    start = np.zeros(len(mean))
    search = scipy.optimize.minimize(
        lambda z: -1e3 * least(np.exp(z) / np.exp(z).sum()), start, method="Nelder-Mead",
        options={"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-8, "fatol": 1e-10},
    )  # fmt: skip
    assert found >= -search.fun / 1e3 * (1 - 1e-3)


def test_two_gaussian_arms_have_halves() -> None:
    np.testing.assert_allclose(shares((0.3, 0.7), GAUSSIAN), 0.5, atol=1e-4)


def test_means_at_the_ends_and_ties_are_no_trouble() -> None:
    for mean in ((0.0, 1.0), (1.0, 1.0, 0.0), (0.0, 0.0), (0.5, 0.5, 0.5)):
        for noise in (GAUSSIAN, BINARY):
            found = shares(mean, noise)
            assert np.all(np.isfinite(found)) and np.all(found > 0) and found.sum() == pytest.approx(1)


def test_the_published_table() -> None:
    """Garivier and Kaufmann, Table 1: 4,052 and 1,406 mean pulls with the heuristic threshold."""
    for means, pulls in zip(INSTANCES, (4052, 1406), strict=True):
        ran = simulate(*instance(means, "monotonic"), make("track-and-stop", threshold="heuristic", growth=0.05), 60,
                       seed=2, progress=False)  # fmt: skip
        assert abs(ran.pulls.mean() - pulls) < 5 * ran.pulls.std() / 60**0.5 + 0.03 * pulls


@pytest.mark.parametrize("noise", [GAUSSIAN, BINARY, Noise("rademacher", 0.5)], ids=lambda noise: noise.kind)
def test_the_proven_threshold_errs_at_most_delta(noise: Noise) -> None:
    arms = tuple(Arm(f"arm {i}", 1.0, 1.0, levels=(1.0,)) for i in range(3))
    problem = Problem(arms, 2.0, "linear", noise, delta=0.5)
    scenario = Scenario((Linear(0.5), Linear(0.4), Linear(0.35)), (Linear(0.1),) * 3)
    ran = simulate(problem, scenario, make("track-and-stop", growth=0.1), 150, progress=False)
    assert ran.wrong.sum() <= failures_allowed(150, 0.5)


def test_options() -> None:
    with pytest.raises(SurefootError, match="threshold must be one of proven, heuristic; got 'prooven'"):
        make("track-and-stop", threshold="prooven")
    with pytest.raises(SurefootError, match="largest dose"):
        make("track-and-stop").start(case("saturated-none")[0].but(arms=(Arm("a", 1.0), Arm("b", 1.0))))


def test_one_at_a_time_as_printed() -> None:
    problem, scenario = instance((0.9, 0.1), "monotonic")
    ran = simulate(problem, scenario, make("track-and-stop", growth=0.0), 50, progress=False)
    assert np.all(ran.winner == 0)
    assert ran.rounds.mean() == ran.pulls.mean() - 1  # the first cohort is one pull of each arm
