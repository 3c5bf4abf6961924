import numpy as np
import pytest

from surefoot import Arm, Noise, Problem
from surefoot.designs.base import Cohort, Outcome, blank
from surefoot.designs.gp import GPState, Grid, Kernel, absorb, linear_kernel, prior, rbf_kernel
from surefoot.experiments.cost import textbook


def problem(**arm: object) -> Problem:
    arms = tuple(Arm(f"arm {i}", 0.1, 2.0 + i, **{"lipschitz": 1.0} | arm) for i in range(3))  # type: ignore[arg-type]
    return Problem(arms, 1.0, "monotonic", Noise("gaussian", 0.3), slack=0.1)


@pytest.mark.parametrize("kernel", [linear_kernel(1.5), rbf_kernel(1.0, 1.0), rbf_kernel(0.7, 0.3)])
def test_the_posterior_is_the_textbook_one(kernel: Kernel) -> None:
    p, noise, t = problem(), 0.1, 600
    grid = Grid.of(kernel, p, p.largest, 50)
    rng = np.random.default_rng(0)
    state = GPState(**blank(p, 2, np), **prior(grid, 2))
    told: list[list[tuple[float, float, float]]] = [[], []]
    for _ in range(t):
        arm, at = rng.integers(3, size=2), rng.integers(50, size=2)
        n = (np.arange(3) == arm[:, None]).astype(int)
        dose = np.where(n, grid.dose[arm, at][:, None], 0.1)
        y, z = np.sin(dose) + 0.3 * rng.standard_normal((2, 2, 3))
        state = GPState(
            **{f: getattr(state, f) for f in blank(p, 1, np)},
            **absorb(state, grid, noise, Cohort(dose, n), Outcome(n, y, z)),
        )
        for i in range(2):
            if arm[i] == 1:
                told[i].append((dose[i, 1], y[i, 1], z[i, 1]))
    for i in range(2):
        doses, y, z = np.array(told[i]).T
        for signal, readings in enumerate((y, z)):
            mean, var = textbook(kernel, noise, grid.dose[1], doses, readings)
            np.testing.assert_allclose(state.mean[i, 1, signal], mean, atol=1e-9)
            np.testing.assert_allclose(state.var[i, 1], var, atol=1e-9)
        np.testing.assert_allclose(state.mean[i], np.einsum("agr,asr->asg", grid.phi, state.weights[i]), atol=1e-9)


def test_any_dose_and_any_number_of_pulls() -> None:
    """Off the grid, several arms at once, and n readings in one sum."""
    p, kernel, noise = problem(), rbf_kernel(1.0, 1.0), 0.1
    grid = Grid.of(kernel, p, p.largest, 50)
    state = GPState(**blank(p, 1, np), **prior(grid, 1))
    dose, n = np.array([[0.777, 1.234, 0.5]]), np.array([[3, 0, 40]])
    y = np.array([[2.0, np.nan, 11.0]])
    fields = absorb(state, grid, noise, Cohort(dose, n), Outcome(n, y, y))
    for arm, mean in ((0, 2 / 3), (2, 11 / 40)):
        doses, readings = np.full(n[0, arm], dose[0, arm]), np.full(n[0, arm], mean)
        expected, var = textbook(kernel, noise, grid.dose[arm], doses, readings)
        np.testing.assert_allclose(fields["mean"][0, arm, 0], expected, atol=1e-7)
        np.testing.assert_allclose(fields["var"][0, arm], var, atol=1e-7)
    np.testing.assert_array_equal(fields["mean"][0, 1], 0.0)


def test_levels_are_the_grid() -> None:
    p = problem(levels=(0.1, 0.4, 1.0))
    grid = Grid.of(linear_kernel(1.0), p, p.largest, 50)
    np.testing.assert_array_equal(grid.dose, [[0.1, 0.4, 1.0]] * 3)
    assert grid.rank == 1
