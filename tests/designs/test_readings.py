"""Readings whose sigma nobody knows, and bounded ones: docs/guarantees.md, "Readings"."""

from dataclasses import replace
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy

from surefoot import Arm, Noise, Problem, Scenario, SurefootError, make, simulate
from surefoot.bounds import count_bet, log_counts, sigma_upper
from surefoot.catalogue import case
from surefoot.designs.base import Outcome
from surefoot.designs.levels_evidence import joined, squared
from surefoot.designs.levels_wagers import GAP, Terms, pooled, wager
from surefoot.designs.readings import SIGMA, begin, within
from surefoot.noise import Bernoulli, Beta, Bounded, Gaussian, Guessed, PerArm, Poisson, Unknown, Varying, draw_squares
from surefoot.scenario import Table


def paths(trials: int, alpha: float, shrink: float = 1.0) -> int:
    """In how many of them the bound ever is below sigma, in cohorts whose size depends on what was seen."""
    rng, free, squares = np.random.default_rng(11), np.zeros(trials), np.zeros(trials)
    failed = np.zeros(trials, bool)
    for _ in range(60):
        seen = squares / np.maximum(free, 1)
        n = np.where(seen < 1, 2, 3 + (free / 3).astype(int))  # fewer where it looks small: a choice from the past
        free, squares = free + n - 1, squares + rng.chisquare(n - 1)
        failed |= shrink * sigma_upper(free, squares, alpha) < 1
    return int(failed.sum())


def test_a_sigma_is_rarely_above_its_bound_at_any_time() -> None:
    trials = 4000
    for alpha in (0.5, 0.1):
        assert paths(trials, alpha) <= scipy.stats.binom.isf(1e-7, trials, alpha)
    assert paths(trials, 0.1, 0.75) > scipy.stats.binom.isf(1e-7, trials, 0.1), (
        "and a bound a quarter lower would not do"
    )


def test_the_bound_has_no_unit_and_comes_down_to_sigma() -> None:
    free, squares = np.array([0.0, 2.0, 30.0, 1e3, 1e6]), np.array([0.0, 2.0, 30.0, 1e3, 1e6])
    found = sigma_upper(free, squares, 1e-3)
    assert np.isinf(found[:2]).all(), "two squares show nothing"
    assert found[2] < 2.5 and found[3] < 1.15 and 1 < found[4] < 1.02
    np.testing.assert_allclose(sigma_upper(free, 1e-6 * squares, 1e-3), 1e-3 * found)
    strict: Any = [array_api_strict.asarray(x) for x in (free, squares)]
    np.testing.assert_allclose(np.asarray(sigma_upper(strict[0], strict[1], 1e-3)), found)


@pytest.mark.parametrize(
    "noise", [Gaussian(0.7), Bernoulli(), Noise("rademacher", 0.4), Bounded(-1, 3), Beta(0, 1, sd=0.1), Poisson(2.0)]
)
def test_squares_are_those_of_readings_drawn_one_by_one(noise: Noise) -> None:
    """By their mean and, with the sum, their correlation: within what chance allows."""
    rng, n, size = np.random.default_rng(3), 7, 4000
    mean = np.full((size, 1), 0.3)
    effect, _, squares, others = draw_squares(rng, np.full((size, 1), n), (mean, mean), (noise, noise), 0.0)
    one, _ = noise.draw(rng, np.ones((size * n, 1), int), np.full((size * n, 1), 0.3))
    singles = one.reshape(size, n)
    by_hand = ((singles - singles.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    for found in (squares[:, 0], others[:, 0]):
        assert np.all(found >= -1e-12)
        assert scipy.stats.ks_2samp(found.round(9), by_hand.round(9)).pvalue > 1e-7
    wide = np.hypot(*(np.std(x) / np.sqrt(size) for x in (effect * squares, singles.sum(axis=1) * by_hand)))
    assert abs(np.mean(effect * squares) - np.mean(singles.sum(axis=1) * by_hand)) < 6 * wide


@pytest.mark.parametrize(
    ("name", "instance"), [("surefoot-linear", "paper-linear"), ("surefoot-monotonic", "paper-drug")]
)
def test_the_promise_where_sigmas_differ_and_nobody_knows_them(name: str, instance: str) -> None:
    """One arm's effects scatter eight times as much as another's, and the guess is a quarter of the least."""
    problem, scenario = case(instance, 2)
    sigma = 0.5 * problem.sigma
    truth = replace(scenario, noise=(PerArm((Gaussian(sigma), Gaussian(4 * sigma))), Gaussian(sigma)))
    asked = problem.but(noise=Guessed(sigma / 4), delta=0.5, budget=50_000)
    result = simulate(asked, truth, make(name), trials=30, seed=8)
    failed = int(np.sum(result.wrong | (result.unsafe_pulls > 0)))
    assert failed <= scipy.stats.binom.isf(1e-6, 30, 0.5)
    assert np.mean(result.ending == 1) > 0.9


def test_before_there_is_a_bound_nothing_is_certified_and_cohorts_show_a_spread() -> None:
    problem, _ = case("paper-linear", 3)
    design = make("surefoot-linear")
    state = design.start(problem.but(noise=Guessed(0.7)))
    assert np.all(design.ask(state).n >= 4)
    cohort = design.ask(state)
    none = np.zeros_like(cohort.dose)
    with pytest.raises(SurefootError, match="an outcome needs its squares"):
        design.tell(state, cohort, Outcome(cohort.n, none, none))
    with pytest.raises(SurefootError, match="squares of harm must be finite and 0 or more"):
        design.tell(state, cohort, Outcome(cohort.n, none, none, (none, none - 1)))
    after = design.tell(
        state, replace(cohort, n=np.ones_like(cohort.n)), Outcome(np.ones_like(cohort.n), none, none, (none, none))
    )
    np.testing.assert_array_equal(after.safe, state.safe)
    assert np.all(after.readings.weight() == 0)


def test_designs_that_need_a_sigma_say_so() -> None:
    problem, _ = case("paper-linear", 2)
    with pytest.raises(SurefootError, match="safebai-linear needs a sigma that is known"):
        make("safebai-linear").start(problem.but(noise=Guessed(1.0)))
    with pytest.raises(SurefootError, match="where nobody knows it, see gaussian-guess"):
        Noise("gaussian")
    assert Noise("gaussian-guess", 2.0) == Guessed(2.0)
    with pytest.raises(SurefootError, match="begin at low = 0 in the linear shape"):
        problem.but(noise=Bounded(-1, 1))
    with pytest.raises(SurefootError, match="low below high"):
        Noise("bounded", low=1, high=1)


def test_a_problem_as_its_evidence_has_it() -> None:
    problem, _ = case("paper-drug", 2)
    asked = problem.but(noise=(Guessed(0.4), Bounded(-1, 3)), tolerance=0.1, limit=0.5, slack=0.2)
    inside = within(asked)
    assert inside.delta == pytest.approx(asked.delta * (1 - SIGMA))
    assert inside.noises == (Unknown(0.4), Bernoulli())
    assert [inside.limit, inside.slack, inside.tolerance] == pytest.approx([1.5 / 4, 0.05, 0.1])
    np.testing.assert_allclose(inside.lipschitz, asked.lipschitz / 4)
    assert begin(problem, 3, np) == (problem, None), "nothing to do for what the evidence takes as it is"


@pytest.mark.parametrize("name", ["surefoot-linear", "surefoot-monotonic", "surefoot-levels"])
def test_bounded_readings_are_bet_on_as_binary_ones(name: str) -> None:
    """What is one of the two ends is binary: the same study, in units of its own."""
    if name == "surefoot-levels":
        curves = [Table((0, 1), (0.3, 0.6)), Table((0, 1), (0.2, 0.3)), Table((0, 1), (0.1, 0.2))]
        arms = (Arm("a", levels=(1, 2)), Arm("b", levels=(1, 2)))
        problem = Problem(arms=arms, limit=0.4, slack=0.1, delta=0.1, shape="levels", noise=Bernoulli())
        scenario = Scenario((curves[0], curves[1]), (curves[2], curves[2]))
    else:
        problem, scenario = case("paper-linear" if name == "surefoot-linear" else "paper-drug", 2)
        problem = problem.but(noise=Bernoulli(), limit=0.3, budget=1000)
    binary, bounded = (
        simulate(
            problem.but(noise=noise), replace(scenario, noise=(Bernoulli(), Bernoulli())), make(name), trials=2, seed=1
        )
        for noise in (Bernoulli(), Bounded(0, 1))
    )
    np.testing.assert_array_equal(binary.pulls, bounded.pulls)
    np.testing.assert_array_equal(binary.safe, bounded.safe)


def bound_is_broken(above: bool, mean: float, trials: int) -> int:
    """In how many trials the bets that learn how readings vary ever reach 10 against a true mean."""
    rng, sums = np.random.default_rng(6), np.zeros((4, trials))
    reached = np.zeros(trials, bool)
    for k in range(40):
        n = np.full((trials, 1), 1 + k // 4)
        law = Bounded(0, 1) if k % 3 == 0 else Beta(0, 1, sd=0.1)  # it may change: nothing is assumed of the law
        total, squares = (x[:, 0] for x in law.both(rng, n, np.full((trials, 1), mean)))
        square = squared(sums[0], sums[1], n[:, 0].astype(float), total, squares)
        sums = sums + np.stack([n[:, 0], total, square, n[:, 0]])
        reached |= wager(sums[0], sums[1], np.full(trials, mean), Varying(), GAP, above, sums[2])[0] >= np.log(10)
    return int(reached.sum())


def test_bets_that_learn_how_readings_vary_hold_at_any_time() -> None:
    trials = 3000
    for above in (True, False):
        for mean in (0.1, 0.5):
            assert bound_is_broken(above, mean, trials) <= scipy.stats.binom.isf(1e-7, trials, 0.1)


def test_readings_that_vary_little_take_fewer_pulls() -> None:
    arms = (Arm("a", levels=("only",)), Arm("b", levels=("only",)))
    problem = Problem(arms=arms, limit=0.5, slack=0.1, delta=0.1, shape="levels", noise=Bounded(0, 1))
    curves = [Table((0.0,), (x,)) for x in (0.2, 0.1)]
    truth = Scenario((curves[0], curves[1]), (curves[1], curves[1]), noise=(Beta(0, 1, sd=0.1), Bernoulli()))
    sums, squares = (
        simulate(
            problem.but(noise=(Bounded(0, 1, spread), Bernoulli())), truth, make("surefoot-levels"), trials=6, seed=2
        )
        for spread in (False, True)
    )
    assert squares.pulls.mean() < 0.6 * sums.pulls.mean() and not np.any(squares.wrong)
    other, _ = case("paper-drug", 2)
    with pytest.raises(SurefootError, match="leave spread out of the noise"):
        make("surefoot-monotonic").start(other.but(noise=Bounded(0, 1, True)))


def reached_ten(above: bool, beyond: float, trials: int, squares: float = 1.0) -> int:
    """In how many trials the bets without a sigma ever reach 10 against a number that the mean is not above (below),
    by `beyond`. Cohorts are larger, and readings vary more, after what looks like a gain."""
    rng, (m, had, q) = np.random.default_rng(6), np.zeros((3, trials))
    reached, sign, none = np.zeros(trials, bool), 1.0 if above else -1.0, np.zeros(trials)
    for k in range(40):
        gain = sign * had > 0
        n, sigma = np.where(gain, 1 + k // 4, 2), np.where(gain, 3.0, 0.5)
        total = sigma * np.sqrt(n) * rng.standard_normal(trials) - sign * beyond * n
        within_ = squares * sigma**2 * np.where(n > 1, rng.chisquare(np.maximum(n - 1, 1)), 0.0)
        m, had, q = joined(m, had, q, n.astype(float), total, within_)
        wealth = wager(none, none, none, Unknown(1.0), GAP, above, m, had, q)[0]
        reached |= wealth >= np.log(10)
    return int(reached.sum())


def test_bets_without_a_sigma_hold_at_any_time() -> None:
    trials = 4000
    for above in (True, False):
        for beyond in (0.0, 0.2):
            assert reached_ten(above, beyond, trials) <= scipy.stats.binom.isf(1e-7, trials, 0.1)
    assert reached_ten(True, 0.0, trials, 0.1) > scipy.stats.binom.isf(1e-7, trials, 0.1), "and they need all squares"


def test_the_mean_of_a_bet_without_a_sigma() -> None:
    """exp(g a - g^2 a^2/2), a normal with a mean at or below 0: at most 1 for every g and sigma, by quadrature."""
    z = np.linspace(-12, 12, 6001)
    weight = scipy.stats.norm.pdf(z) * (z[1] - z[0])
    for g in (0.01, 0.3, 1.0, 4.0):
        for sigma in (0.01, 0.5, 1.0, 2.0):
            for mean in (0.0, -0.1, -3.0):
                a = g * (mean + sigma * z)
                found = np.sum(weight * np.exp(a - a**2 / 2))
                t = (g * sigma) ** 2
                assert found <= 1 + 1e-9
                assert found == pytest.approx(
                    np.exp(0.5 - (1 - g * mean) ** 2 / (2 + 2 * t)) / np.sqrt(1 + t), abs=1e-6
                )


def test_a_wager_without_a_sigma_is_not_below_what_it_says_for_a_cell() -> None:
    """Its tangent at the middle, over the whole cell; and sums of levels taken together are those of all readings."""
    rng = np.random.default_rng(2)
    for above in (True, False):
        y = rng.normal(3.0, 2.0, size=(4, 6))
        raw = [np.full((1, 4), 6.0), y.sum(axis=1)[None], 6 * y.var(axis=1)[None]]
        n, total, q = (z[..., -1:] for z in pooled(lambda z: np.cumsum(z, axis=-1), *raw))
        assert (n.item(), total.item(), q.item()) == pytest.approx((24, y.sum(), 24 * y.var()))
        for half in (0.01, 0.5, 3.0):
            for middle in np.linspace(-3, 9, 13):
                at, of = np.linspace(middle - half, middle + half, 9)[None], (n * 0.3, total * 0.3)
                value, slope = wager(*of, np.full((1, 1), middle), Unknown(2.0), GAP, above, n, total, q, half=half)
                true = wager(*of, at, Unknown(2.0), GAP, above, n, total, q)[0]
                assert np.all(value + slope * (at - middle) <= true + 1e-9)


def test_what_is_left_far_from_all_readings() -> None:
    """Of two arms, the first has no bound on its sigma yet: its readings do not count, and are bet on nevertheless."""
    sums = tuple(np.reshape(x, (1, 2, 1)) for x in ([0.0, 50], [0.0, 250], [4.0, 50], [4.0, 250], [3.0, 49]))
    zero = np.zeros((1, 2, 1))
    terms = Terms(Unknown(1.0), sums, sums, zero, zero, zero, zero == 0, zero == 0)
    rival, led = terms.floors()
    for x in (-1e3, 0.0, 2.0, 1e3):
        assert np.all(rival <= np.min(terms.rival(np.full((1, 1, 1), x))[0], axis=(2, 3)) + 1e-9)
        assert np.all(led <= np.min(terms.led(np.full((1, 2, 1), x))[0], axis=(2, 3)) + 1e-9)


def test_bets_on_counts_have_a_mean_of_at_most_one() -> None:
    """By summing over all counts, for means on both sides of what is tested, and exactly 1 there."""
    count = np.arange(250.0)
    for x in (0.05, 1.0, 12.0):
        for above in (True, False):
            for far in (1.0, 0.5, 0.1):
                mean = x * far if above else x / far
                law = scipy.stats.poisson.pmf(count, mean)
                at = np.full_like(count, x)
                mixed = np.exp(log_counts(count, np.ones_like(count), at, above)) @ law
                single = (
                    np.exp(count_bet(count, np.ones_like(count), at, 2 * at if above else at / 4, 1e-3, above)) @ law
                )
                assert mixed <= 1 + 1e-9 and single <= 1 + 1e-9
                assert far < 1 or (mixed, single) == pytest.approx((1, 1))
    assert np.all(count_bet(count, count, at, at, 1e-3, True) == 0), "a guess at the bound bets nothing"
    wrong = np.exp(log_counts(count, np.ones_like(count), at, True)) @ scipy.stats.nbinom.pmf(count, 2, 2 / (2 + x))
    assert wrong > 1.1, "and counts that vary more than Poisson ones would not do"


def test_counts() -> None:
    arms = (Arm("a", levels=(1, 2)), Arm("b", levels=(1, 2)))
    curves = [Table((0, 1), y) for y in ((2.0, 4.0), (1.5, 3.0), (0.5, 1.0))]
    scenario = Scenario((curves[0], curves[1]), (curves[2], curves[2]))
    problem = Problem(arms=arms, limit=1.2, slack=0.3, delta=0.5, shape="levels", noise=Poisson(2.0))
    assert scenario.violations(problem) == []
    result = simulate(problem, scenario, make("surefoot-levels"), trials=40, seed=4)
    assert int(np.sum(result.wrong | (result.unsafe_pulls > 0))) <= scipy.stats.binom.isf(1e-6, 40, 0.5)
    assert np.all(result.ending == 1)
    drug, truth = case("paper-drug", 2)
    drug = drug.but(noise=(Gaussian(0.3), Poisson(1.0)))
    result = simulate(drug, replace(truth, noise=None), make("surefoot-monotonic"), trials=5, seed=4)
    assert np.all(result.ending == 1) and not np.any(result.wrong)
    line, _ = case("paper-linear", 2)
    for name in ("surefoot-linear", "safebai-linear"):
        with pytest.raises(SurefootError, match="counts have none that holds"):
            make(name).start(line.but(noise=Poisson(1.0)))
    for value in (-1, 1.5):
        with pytest.raises(SurefootError, match="a whole number from 0 on"):
            Poisson(1.0).reading("harm", value)
