"""Coverage of every bound, over several decades of information and against somebody who sets the weights as they go."""

import math
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from surefoot import Noise
from surefoot.bounds import (
    ANY,
    CONTRAST,
    LOWERED,
    RAISED,
    SHORTFALL,
    Mixture,
    added,
    binary_bet,
    log_mixture,
    log_tilt,
    radius,
    rate_lower,
    rate_upper,
    slope_upper,
)
from surefoot.designs.monotonic_cells import GAP
from surefoot.testing import failures_allowed

Array = NDArray[np.float64]
Play = Callable[[int, Array, Array], Array]  # time, sum so far, information so far -> weight of the next readings

SEQUENCES, STEPS = 600, 120
MIXTURES = {
    "shortfall": SHORTFALL,
    "contrast": CONTRAST,
    "any": ANY,
    "gap": GAP,
    "lowered": LOWERED,
    "raised": RAISED,
}
LEVELS = (0.1, 0.01)


def steady(t: int, s: Array, v: Array) -> Array:
    return np.ones_like(s)


def gamble(t: int, s: Array, v: Array) -> Array:
    """Little while it goes well, much after it went badly: it hopes to cross by luck at any scale."""
    return np.where(s > np.sqrt(v), 0.1, 3.0)


def chase(t: int, s: Array, v: Array) -> Array:
    """The other way round: as much as the sum so far, which stays on the verge of crossing."""
    return np.clip(s / np.sqrt(v + 1e-12), 0.05, 10.0)


PLAYS = {play.__name__: play for play in (steady, gamble, chase)}


def walk(play: Play, seed: int, first: float = 0.01, growth: float = 1.1, steps: int = STEPS) -> tuple[Array, Array]:
    """Sums of weight * noise and of weight^2, (sequences, steps): cohorts of a growing size, of 5 decades in all."""
    rng = np.random.default_rng(seed)
    s = v = np.zeros(SEQUENCES)
    sums, infos = [], []
    for t in range(steps):
        weight, n = play(t, s, v), first * growth**t
        s = s + weight * math.sqrt(n) * rng.standard_normal(SEQUENCES)
        v = v + weight**2 * n
        sums.append(s)
        infos.append(v)
    return np.stack(sums, axis=1), np.stack(infos, axis=1)


def allowed(alpha: float) -> int:
    return failures_allowed(SEQUENCES, alpha, tests=100)


def ever(crossed: NDArray[np.bool_]) -> int:
    return int(crossed.any(axis=1).sum())


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
def test_a_prior_is_one(mixture: Mixture) -> None:
    g, log_weight = mixture.atoms
    assert np.exp(log_weight).sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(g >= 0) and (g == 0).sum() == (mixture.nothing > 0)
    assert log_mixture(np.zeros(3), np.zeros(3), mixture) == pytest.approx(0.0, abs=1e-12)
    if mixture.nothing:
        assert log_mixture(np.array([-1e9]), np.array([1e3]), mixture)[0] >= math.log(mixture.nothing) - 1e-12
        assert np.exp(log_weight[0]) == pytest.approx(mixture.nothing)


def test_the_slopes_prior_stays_below_one() -> None:
    """The proof that e(m) increases needs it."""
    assert SHORTFALL.atoms[0].max() < 1


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
def test_mixtures_and_radii_cover(mixture: Mixture, play: Play) -> None:
    s, v = walk(play, seed=1)
    assert np.median(v[:, -1] / v[:, 0]) > 1e4, "several decades"
    evidence = log_mixture(s, v, mixture)
    for alpha in LEVELS:
        crossed = ever(evidence >= math.log(1 / alpha))
        assert crossed <= allowed(alpha)
        assert ever(s >= radius(v, alpha, mixture)) <= crossed, "the radius is never inside the mixture's boundary"
    assert ever(evidence >= math.log(1 / 0.1)) > 0.005 * SEQUENCES, "and it is not so wide that nothing ever crosses"


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_a_product_of_mixtures_covers(play: Play) -> None:
    """Bets on several arms, each pull in one of them: the sum of the logs pays no union."""
    parts = [log_mixture(*walk(play, seed), CONTRAST) for seed in (2, 3, 4)]
    for alpha in LEVELS:
        assert ever(sum(parts, np.zeros(())) >= math.log(1 / alpha)) <= allowed(alpha)


@pytest.mark.parametrize("alpha", LEVELS)
def test_control_a_fixed_sample_bound_does_not_cover(alpha: float) -> None:
    s, v = walk(steady, seed=1)
    assert ever(s >= -scipy.special.ndtri(alpha) * np.sqrt(v)) > 2 * allowed(alpha)


@pytest.mark.parametrize("alpha", LEVELS)
def test_control_weights_that_know_the_reading_do_not_cover(alpha: float) -> None:
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((SEQUENCES, STEPS))
    weight = np.where(noise > 0, 1.0, 0.5)
    s, v = np.cumsum(weight * noise, axis=1), np.cumsum(weight**2, axis=1)
    assert ever(log_mixture(s, v, ANY) >= math.log(1 / alpha)) > 2 * allowed(alpha)


@pytest.mark.parametrize("alpha", LEVELS)
def test_control_dropping_what_went_badly_does_not_cover(alpha: float) -> None:
    """Logs clipped at 0 are no supermartingales: of a product only whole factors may be left out, beforehand."""
    parts = [np.maximum(log_mixture(*walk(steady, seed), CONTRAST), 0.0) for seed in range(10, 25)]
    assert ever(sum(parts, np.zeros(())) >= math.log(1 / alpha)) > 2 * allowed(alpha)


def doses(slope: float, alpha: float, rule: str, seed: int) -> tuple[Array, Array]:
    """v and z of pulls at doses that are chosen by the bound itself, or by a gambler."""
    rng = np.random.default_rng(seed)
    v, z, dose = np.zeros(SEQUENCES), np.zeros(SEQUENCES), np.ones(SEQUENCES)
    infos, sums = [], []
    for t in range(120):
        n = math.ceil(1.1**t)
        z = z + dose * (n * dose * slope + math.sqrt(n) * rng.standard_normal(SEQUENCES))
        v = v + n * dose**2
        infos.append(v)
        sums.append(z)
        if rule == "certified":
            dose = np.clip(1.0 / slope_upper(v, z, alpha), 1.0, 100.0)
        else:
            dose = np.where(z < slope * v - np.sqrt(v), 1.0, 10.0)
    return np.stack(infos, axis=1), np.stack(sums, axis=1)


@pytest.mark.parametrize("rule", ["certified", "gamble"])
@pytest.mark.parametrize("slope", [0.003, 0.1, 1.0, 30.0])
def test_slope_upper_covers(slope: float, rule: str) -> None:
    for alpha in LEVELS:
        v, z = doses(slope, alpha, rule, seed=6)
        assert ever(slope_upper(v, z, alpha) < slope) <= allowed(alpha)


@pytest.mark.parametrize("alpha", LEVELS)
def test_control_a_fixed_sample_slope_does_not_cover(alpha: float) -> None:
    v, z = doses(0.1, alpha, "gamble", seed=6)
    assert ever(z / v + -scipy.special.ndtri(alpha) / np.sqrt(v) < 0.1) > 2 * allowed(alpha)


def test_slope_upper_is_sharp_and_falls_with_information() -> None:
    v = np.logspace(-2, 6, 30)
    bound = slope_upper(v, v * 1.0, 0.05)
    assert np.all(np.diff(bound) < 0) and np.all(bound > 1.0) and bound[-1] < 1.01


@pytest.mark.parametrize("alpha", LEVELS)
@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
def test_radius_never_passes_the_root(mixture: Mixture, alpha: float) -> None:
    v = np.logspace(-4, 8, 61)
    for steps in (0, 1, 4, 50):
        u = radius(v, alpha, mixture, steps)
        goal = math.log(1 / alpha)
        assert np.all(log_mixture(u, v, mixture) >= goal - 1e-9), "at or above the boundary"
    root = [
        scipy.optimize.brentq(
            lambda x, i=i: log_mixture(np.array([x]), v[i : i + 1], mixture)[0] - goal, 0, 10 * u[i] + 1, xtol=1e-14
        )
        for i in range(len(v))
    ]
    four = radius(v, alpha, mixture)
    assert np.all(four >= np.array(root) * (1 - 1e-10))
    assert np.all(four <= np.array(root) * 1.02), "four steps come close"


def slope_evidence(m: float, v: float, z: float) -> float:
    r, log_weight = SHORTFALL.atoms
    return float(np.logaddexp.reduce(r * m * (m * v - z) - 0.5 * (r * m) ** 2 * v + log_weight))


@pytest.mark.parametrize("alpha", LEVELS)
def test_slope_upper_never_passes_the_root(alpha: float) -> None:
    rng = np.random.default_rng(7)
    v = 10.0 ** rng.uniform(-3, 6, 200)
    z = v * 10.0 ** rng.uniform(-3, 2, 200) * rng.choice([-1.0, 1.0], 200, p=[0.3, 0.7])
    goal = math.log(1 / alpha)
    four = slope_upper(v, z, alpha)
    for steps in (0, 1, 50):
        assert np.all(slope_upper(v, z, alpha, steps) >= four * (1 - 1e-10)) or steps == 50
    for m, info, total in zip(four, v, z, strict=True):
        start = max(total / info, 0.0)
        root = scipy.optimize.brentq(
            lambda x, i=info, t=total: slope_evidence(x, i, t) - goal, start, 2 * m + 1e-12, xtol=1e-16
        )
        assert root * (1 - 1e-9) <= m <= root * 1.02
        above = [slope_evidence(root * k, info, total) for k in (1.0, 1.1, 2.0, 10.0)]
        assert above == sorted(above), "every slope above the bound is refuted too"


def binary(rate: float, rule: str, alpha: float, seed: int) -> tuple[Array, Array, Array]:
    """n and the sums of doses and of binary readings, at doses chosen by the bound itself or by a gambler."""
    rng = np.random.default_rng(seed)
    n, given, total, dose = np.zeros(SEQUENCES), np.zeros(SEQUENCES), np.zeros(SEQUENCES), np.ones(SEQUENCES)
    out = []
    for t in range(110):
        size = math.ceil(1.1**t)
        n, given = n + size, given + size * dose
        total = total + rng.binomial(size, np.minimum(rate * dose, 1.0))
        out.append((n, given, total))
        if rule == "certified":
            dose = np.clip(0.3 / rate_upper(n, given, total, alpha), 1.0, 0.3 / rate if rate < 0.3 else 1.0)
        else:  # low doses after much harm, high ones after little, or the other way round
            much = total > rate * given
            dose = np.where(much if rule == "gamble" else ~much, 1.0, 0.9 / rate)
    n, given, total = (np.stack(x, axis=1) for x in zip(*out, strict=True))
    return n, given, total


@pytest.mark.parametrize("rule", ["certified", "gamble", "chase"])
@pytest.mark.parametrize("rate", [0.001, 0.05, 0.6])
def test_rates_cover(rate: float, rule: str) -> None:
    for alpha in LEVELS if rule == "certified" else LEVELS[:1]:
        sums = binary(rate, rule, alpha, seed=21)
        assert ever(rate_upper(*sums, alpha) < rate * (1 - 1e-12)) <= allowed(alpha)
        assert ever(rate_lower(*sums, alpha) > rate * (1 + 1e-12)) <= allowed(alpha)


def test_rates_are_not_so_wide_that_nothing_ever_crosses() -> None:
    sums = binary(0.03, "chase", 0.1, seed=22)
    for crossed in (rate_upper(*sums, 0.1) < 0.03, rate_lower(*sums, 0.1) > 0.03):
        assert ever(crossed) > 0.01 * SEQUENCES


@pytest.mark.parametrize("alpha", LEVELS)
def test_control_fixed_sample_rates_do_not_cover(alpha: float) -> None:
    n, given, total = binary(0.3, "chase", alpha, seed=21)
    rate = 0.3 * given / n
    far = (total - n * rate) / np.sqrt(n * rate * (1 - rate))
    for side in (-far, far):
        assert ever((side >= -scipy.special.ndtri(alpha)) & (n > 30)) > 2 * allowed(alpha)


def rate_evidence(p: float, n: float, total: float, sign: float) -> float:
    g, log_weight = (LOWERED if sign < 0 else RAISED).atoms
    return float(np.logaddexp.reduce(log_weight + sign * g * total - n * np.log1p(p * np.expm1(sign * g))))


@pytest.mark.parametrize("alpha", LEVELS)
def test_rates_never_pass_the_root(alpha: float) -> None:
    rng = np.random.default_rng(23)
    n = np.ceil(10.0 ** rng.uniform(0, 6, 300))
    total = np.round(n * rng.choice([0.0, 0.003, 0.1, 0.5, 0.99, 1.0], 300))
    goal = math.log(1 / alpha)
    for steps in (0, 1, 2, 4, 50):
        upper, lower = (bound(n, n, total, alpha, steps) for bound in (rate_upper, rate_lower))
        for k in range(300):
            assert upper[k] == 1 or rate_evidence(upper[k], n[k], total[k], -1) >= goal - 1e-9 * n[k] ** 0.5
            assert lower[k] == 0 or rate_evidence(lower[k], n[k], total[k], 1) >= goal - 1e-9 * n[k] ** 0.5
            if steps >= 2 and upper[k] < 1:
                assert rate_evidence(upper[k] * 0.99, n[k], total[k], -1) < goal, "two steps come close"
            if steps >= 2 and lower[k] > 0:
                assert rate_evidence(lower[k] * 1.01, n[k], total[k], 1) < goal


def test_rates_are_sharper_than_with_sigma() -> None:
    n, total = np.array([100.0, 1000.0]), np.array([5.0, 50.0])
    assert np.all(rate_upper(n, n, total, 0.01) < 0.85 * 0.5 * slope_upper(n, total / 0.5, 0.01))


NOISES = {"gaussian": Noise("gaussian", 0.5), "rademacher": Noise("rademacher", 0.5), "bernoulli": Noise("bernoulli")}


def bets(noise: Noise, mean: float, bound: float, above: bool, peek: bool = False) -> Array:
    """Log of wealth, (sequences, steps), staked by the running mean (which `peek` lets know the reading)."""
    rng = np.random.default_rng(8)
    total, count = np.zeros(SEQUENCES), 2.0
    total += 2 * (bound + (0.1 if above else -0.1))
    wealth, out = np.zeros(SEQUENCES), []
    for _ in range(400):
        if noise.kind == "bernoulli":
            x = (rng.random(SEQUENCES) < mean).astype(float)
        elif noise.kind == "rademacher":
            x = mean + noise.scale * rng.choice([-1.0, 1.0], SEQUENCES)
        else:
            x = mean + noise.scale * rng.standard_normal(SEQUENCES)
        guess = (total + x) / (count + 1) if peek else total / count
        one = np.ones(SEQUENCES)
        wealth = wealth + noise.bet(x, one, bound * one, guess, above)
        total, count = total + x, count + 1
        out.append(wealth)
    return np.stack(out, axis=1)


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_bets_cover(noise: Noise, above: bool) -> None:
    for bound in (0.1, 0.5, 0.9):
        for shift in (0.0, 0.03):  # at the bound, and on the side where nothing may be claimed
            wealth = bets(noise, bound - shift if above else bound + shift, bound, above)
            for alpha in LEVELS:
                assert ever(wealth >= math.log(1 / alpha)) <= allowed(alpha)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_bets_win_where_they_should(noise: Noise) -> None:
    assert np.median(bets(noise, 0.7, 0.5, True)[:, -1]) > 10
    assert np.median(bets(noise, 0.3, 0.5, False)[:, -1]) > 10


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_control_a_guess_that_knows_the_reading_does_not_cover(noise: Noise) -> None:
    wealth = bets(noise, 0.5, 0.5, True, peek=True)
    for alpha in LEVELS:
        assert ever(wealth >= math.log(1 / alpha)) > 1.2 * allowed(alpha)


@pytest.mark.parametrize("above", [True, False])
def test_a_binary_bet_is_fair_at_its_bound_and_unfair_beyond(above: bool) -> None:
    """By enumeration: the expected wealth, for all bounds, guesses and means that refute nothing."""
    bound, guess, far = (x.ravel() for x in np.meshgrid(*[np.linspace(-0.2, 1.2, 29)] * 2, np.linspace(0, 1, 21)))
    mean = np.clip(bound - far if above else bound + far, 0, 1)
    holds = (mean <= bound) if above else (mean >= bound)  # a bound beyond 0 or 1 may be one that no mean keeps to
    one = np.ones_like(bound)
    win, lose = (np.exp(binary_bet(x * one, one, bound, guess, above)) for x in (1.0, 0.0))
    assert np.all((mean * win + (1 - mean) * lose)[holds] <= 1 + 1e-12)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_a_cohorts_bet_is_the_sum_of_its_readings_bets(noise: Noise) -> None:
    x = np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    one = np.ones(5)
    each = noise.bet(x, one, 0.4 * one, 0.6 * one, True).sum()
    whole = noise.bet(np.array([3.0]), np.array([5.0]), np.array([0.4]), np.array([0.6]), True)
    assert whole[0] == pytest.approx(each)


def test_namespaces_agree() -> None:
    xp = array_api_strict
    v, s = np.logspace(-3, 5, 24).reshape(4, 6), np.linspace(-30, 300, 24).reshape(4, 6)
    v2, s2 = xp.asarray(v), xp.asarray(s)
    one, bound, guess = np.ones_like(v), np.full_like(v, 0.4), np.linspace(0, 1, 24).reshape(4, 6)
    pairs: list[tuple[Any, Any]] = [(slope_upper(v, s, 0.05), slope_upper(v2, s2, 0.05))]
    for rate in (rate_upper, rate_lower):
        pairs.append((rate(one + v, one + 2 * v, 0.3 * v, 0.05), rate(1 + v2, 1 + 2 * v2, 0.3 * v2, 0.05)))
    for mixture in MIXTURES.values():
        pairs.append((log_mixture(s, v, mixture), log_mixture(s2, v2, mixture)))
        pairs.append((radius(v, 0.05, mixture), radius(v2, 0.05, mixture)))
        pairs.append((radius(v, 0.05 / (1 + v), mixture), radius(v2, 0.05 / (1 + v2), mixture)))
    for noise in NOISES.values():
        for above in (True, False):
            n, b, g = (xp.asarray(x) for x in (one, bound, guess))
            pairs.append((noise.bet(one, one, bound, guess, above), noise.bet(n, n, b, g, above)))
    for a, b in pairs:
        assert isinstance(b, type(v2))
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-12)


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("mean", [0.001, 0.05, 0.5, 0.97])
def test_tilts_cover(mean: float, above: bool) -> None:
    """Binary readings in cohorts of a growing size: at the mean itself, and further on the null's side."""
    rng = np.random.default_rng(17)
    size = np.ceil(1.1 ** np.arange(STEPS)).astype(int)
    total = np.cumsum(rng.binomial(size, mean, (SEQUENCES, STEPS)), axis=1).astype(float)
    for x in (mean, min(mean + 0.02, 1.0) if above else max(mean - 0.02, 0.0)):
        wealth = log_tilt(total, np.cumsum(size) + 0.0 * total, x + 0.0 * total, above)
        for alpha in LEVELS:
            assert ever(wealth >= math.log(1 / alpha)) <= allowed(alpha)
    other = 0.5 * mean if above else mean + 0.5 * (1 - mean)
    late = log_tilt(total[:, -1:], size.sum() + 0.0 * total[:, -1:], other + 0.0 * total[:, -1:], above)
    assert np.mean(late > math.log(1 / 0.01)) > 0.9, "and they win where the null is far from true"


@pytest.mark.parametrize("alpha", LEVELS)
def test_control_a_tilt_chosen_afterwards_does_not_cover(alpha: float) -> None:
    """The likelihood ratio of the mean that was seen, whatever it was."""
    rng = np.random.default_rng(18)
    size = np.ceil(1.1 ** np.arange(STEPS)).astype(int)
    total, n = np.cumsum(rng.binomial(size, 0.3, (2000, STEPS)), axis=1), np.cumsum(size)
    seen = np.clip(total / n, 1e-9, 1 - 1e-9)
    ratio = total * np.log(seen / 0.3) + (n - total) * np.log((1 - seen) / 0.7)
    assert ever((seen > 0.3) & (ratio >= math.log(1 / alpha))) > failures_allowed(2000, alpha, tests=100)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2,), (1, 2), (5, 1), (3, 1, 50), (0,)])
def test_mixtures_are_added_in_one_order(shape: tuple[int, ...]) -> None:
    """What a sum is, to the last digit, does not depend on what is summed beside it."""
    x = np.random.default_rng(3).random((14, *shape)) * 10.0 ** np.arange(14).reshape(-1, *[1] * len(shape))
    for y in (x, x.transpose(0, *range(x.ndim - 1, 0, -1))):
        expected = y[0]
        for row in y[1:]:
            expected = expected + row
        np.testing.assert_array_equal(added(y), expected)


def test_tilts_are_monotone_in_the_level() -> None:
    x = np.linspace(-0.2, 1.2, 141)
    for above, sign in ((True, -1), (False, 1)):
        assert np.all(sign * np.diff(log_tilt(0 * x + 30, 0 * x + 100, x, above)) >= 0)
