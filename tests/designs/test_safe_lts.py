import numpy as np

from surefoot import SurefootError, case, simulate
from surefoot.designs.safe_lts import SafeLTS, spread
from surefoot.testing import DesignSuite, play

from . import small


class TestConformance(DesignSuite):
    design = SafeLTS(s_effect=1.0, s_harm=1.0)
    symmetric = False  # the arms' draws are in arm order
    small = property(lambda self: small.easy())


def test_every_pull_is_the_largest_sampled_effect() -> None:
    design = SafeLTS()
    rng = np.random.default_rng(0)
    for k, (state, *_) in zip(range(100), play(design, *small.linear()), strict=False):
        u = rng.random((3, 1))
        cohort = design.ask(state, u)
        assert np.all(cohort.n.sum(axis=1) == 1), k
        chosen = cohort.n > 0
        assert np.all((cohort.dose == state.safe)[chosen] | (cohort.dose == state.problem.starts)[chosen])


def test_ridge_estimates() -> None:
    """Against the formulas on the raw pulls."""
    design, rows = SafeLTS(), []
    problem, scenario = small.linear()
    for _, (_, cohort, outcome, after) in zip(range(201), play(design, problem, scenario), strict=False):  # noqa: B007
        arm = int(np.argmax(cohort.n[0]))
        rows.append((arm, cohort.dose[0, arm], outcome.effect[0, arm], outcome.harm[0, arm]))
    arms, a, y, z = np.array(rows).T
    t, d = len(rows), 3
    for i in range(d):
        mine = arms == i
        V = 1 + np.sum(a[mine] ** 2)
        theta, mu = np.sum((a * y)[mine]) / V, np.sum((a * z)[mine]) / V
        radius = (0.1 * np.sqrt(np.log(d * (1 + t * 1.5**2) / problem.delta)) + 5.0) / np.sqrt(V)
        safe = np.clip(1.0 / (mu + radius), 0.1, 1.5)
        assert np.isclose(after.safe[0, i], safe)
        assert np.isclose(after.lower[0, i], safe * (theta - radius))


def test_spread_is_uniform_and_independent() -> None:
    """Kolmogorov-Smirnov on each of 20 columns and the correlation of each pair: rarer than one in a million."""
    x = spread(np.random.default_rng(0).random(20_000), 20)
    assert x.min() > 0 and x.max() < 1
    n = len(x)
    gaps = np.abs(np.sort(x, axis=0) - (np.arange(n)[:, None] + 0.5) / n).max()
    assert gaps < 3.2 / np.sqrt(n)  # 20 * 2 exp(-2 * 3.2^2) is below 1e-7
    correlation = np.corrcoef(x.T) - np.eye(20)
    assert np.abs(correlation).max() < 6.5 / np.sqrt(n)
    serial = np.corrcoef(x[:-1].T, x[1:].T)[:20, 20:]
    assert np.abs(serial).max() < 6.5 / np.sqrt(n)


def test_the_seed_decides() -> None:
    problem, scenario = small.easy()
    one, two, other = (simulate(problem, scenario, SafeLTS(1.0, 1.0), 4, seed, progress=False) for seed in (1, 1, 2))
    assert one.pulls.tolist() == two.pulls.tolist() != other.pulls.tolist()
    assert np.all(one.winner == 0)


def test_needs_a_largest_dose() -> None:
    try:
        SafeLTS().start(case("tiny-gap")[0])
    except SurefootError as error:
        assert "largest dose" in str(error)
    else:
        raise AssertionError
