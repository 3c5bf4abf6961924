import pickle
from itertools import product
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from surefoot import Noise, SurefootError
from surefoot.bounds import ANY, log_mixture, log_tilt
from surefoot.noise import Bernoulli, Bounded, Gaussian, PerArm, Rademacher, draw_sums

Array = NDArray[Any]
FALSE_ALARM = 1e-7  # of one check; there are fewer than ten a test


def test_a_kind_by_its_name() -> None:
    assert Noise("gaussian", 0.4) == Noise(kind="gaussian", sigma=0.4) == Gaussian(0.4)
    assert Noise("rademacher", 0.4) == Rademacher(0.4)
    assert Noise("rademacher", 0.4) != Noise("gaussian", 0.4)
    assert Noise("bernoulli") == Noise("bernoulli", 0.5) == Bernoulli()
    for noise in KINDS:
        assert isinstance(noise, Noise)
        assert Noise(**noise.to_dict()) == noise == pickle.loads(pickle.dumps(noise))
        assert hash(noise) == hash(Noise(**noise.to_dict()))


def test_what_a_reading_may_be() -> None:
    for noise in KINDS:
        assert noise.reading("harm", 1) == 1.0
        with pytest.raises(SurefootError, match="harm must be finite; got nan"):
            noise.reading("harm", float("nan"))
    assert Gaussian(0.7).reading("effect", -3.5) == -3.5
    with pytest.raises(SurefootError, match=r"effect is binary in this study: it must be 0 or 1; got 0\.5"):
        Bernoulli().reading("effect", 0.5)
    assert [noise.worst for noise in KINDS] == [None, None, (0.0, 1.0)]
    assert [noise.assumption() for noise in KINDS] == [
        "gaussian (sigma 0.7, sub-Gaussian)", "rademacher (sigma 0.4, sub-Gaussian)", "yes or no",
    ]  # fmt: skip


def test_the_noise_in_a_sum_is_the_sum_less_its_mean() -> None:
    rng, n, mean = np.random.default_rng(5), np.array([[1, 7, 1000]]), np.array([[0.2, 0.5, 0.9]])
    for noise in KINDS:
        total, off = noise.draw(rng, n, mean)
        np.testing.assert_allclose(total, n * mean + noise.scale * off, atol=1e-9)


def test_divergences() -> None:
    """Of two laws, by summing over what can be read; where only sigma is assumed, that of two Gaussians."""
    x, y = np.array([0.0, 0.05, 0.5, 0.97, 1.0]), np.array([0.3, 0.06, 0.2, 0.9, 0.5])
    by_hand = [scipy.stats.entropy([p, 1 - p], [q, 1 - q]) for p, q in zip(x, y, strict=True)]
    np.testing.assert_allclose(Bernoulli().divergence(x, y), by_hand)
    z = np.linspace(-10, 11, 200_001)
    at, other = (scipy.stats.norm.logpdf(z, m, 0.7) for m in (0.5, 0.2))
    assert Gaussian(0.7).divergence(0.5, 0.2) == pytest.approx(np.sum(np.exp(at) * (at - other)) * (z[1] - z[0]))
    assert Rademacher(0.7).divergence(0.5, 0.2) == Gaussian(0.7).divergence(0.5, 0.2)
    assert [noise.exact for noise in KINDS] == [True, False, True]
    assert Bernoulli().divergence(np.array(0.5), np.array(1.0)) == np.inf
    assert np.all(Bernoulli().divergence(x, y) >= Rademacher(0.5).divergence(x, y)), "Pinsker: sharper than sigma 1/2"


def test_mixtures_are_those_of_the_bounds() -> None:
    total, w, v, x = (np.array(values) for values in ([40.0, 3.0], [100.0, 10.0], [120.0, 10.0], [0.3, 0.4]))
    for above, sign in ((True, 1), (False, -1)):
        off = sign * (total - x * w) / 0.7
        np.testing.assert_allclose(Gaussian(0.7).mixture(total, w, v, x, above, ANY), log_mixture(off, v, ANY))
        found = Bernoulli().mixture(total, w, w, x, above, ANY)
        np.testing.assert_allclose(found, log_tilt(total, w, x, above))
        for noise in KINDS:
            sums: Any = [array_api_strict.asarray(values) for values in (total, w, v, x)]
            strict = noise.mixture(sums[0], sums[1], sums[2], sums[3], above, ANY)
            np.testing.assert_allclose(np.asarray(strict), noise.mixture(total, w, v, x, above, ANY))


# Draws. A pull by itself is written here once more, from the words of the docstring.


def one_by_one(
    rng: np.random.Generator, n: int, means: tuple[float, float], noises: tuple[Noise, Noise], c: float, size: int
) -> tuple[Array, Array]:
    """Sums of n pulls that are drawn pull by pull."""
    shape = (size, n)
    kinds = [noise.kind for noise in noises]
    readings: list[Array]
    if "gaussian" not in kinds:
        u = rng.random(shape)
        other = np.where(rng.random(shape) < abs(c), u if c > 0 else 1 - u, rng.random(shape))
        readings = []
        for x, mean, noise in zip((other, u), means, noises, strict=True):
            if noise.binary:
                readings.append((x < mean).astype(float))
            else:
                readings.append(mean + np.where(x < 0.5, noise.scale, -noise.scale))
    else:
        first = 0 if kinds[0] != "gaussian" else 1  # the Gaussian one follows the other
        mean, noise = means[first], noises[first]
        if noise.kind == "gaussian":
            x = mean + noise.scale * rng.standard_normal(shape)
        elif noise.kind == "rademacher":
            x = mean + noise.scale * rng.choice([-1.0, 1.0], shape)
        else:
            x = (rng.random(shape) < mean).astype(float)
        fresh = rng.standard_normal(shape)
        y = means[1 - first] + noises[1 - first].scale * (c * (x - mean) / noise.scale + (1 - c**2) ** 0.5 * fresh)
        readings = [x, y] if first == 0 else [y, x]
    return readings[0].sum(axis=1), readings[1].sum(axis=1)


KINDS = [Noise("gaussian", 0.7), Noise("rademacher", 0.4), Noise("bernoulli")]


@pytest.mark.parametrize("c", [-1.0, 0.0, 0.8, 1.0])
@pytest.mark.parametrize("noises", list(product(KINDS, KINDS)), ids=lambda pair: "-".join(x.kind for x in pair))
def test_sums_are_distributed_as_sums_of_pulls(noises: tuple[Noise, Noise], c: float) -> None:
    rng, n, means, size = np.random.default_rng(1), 7, (0.3, 0.6), 20_000
    slow = one_by_one(rng, n, means, noises, c, size)
    full = np.full((size, 1), n)
    fast = [x[:, 0] for x in draw_sums(rng, full, (0.0 * full + means[0], 0.0 * full + means[1]), noises, c)]
    for a, b in ((1, 0), (0, 1), (1, 1), (1, -2)):
        assert _same_distribution(a * slow[0] + b * slow[1], a * fast[0] + b * fast[1]) > FALSE_ALARM


def _same_distribution(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """The p-value of two samples being of one distribution: chi-square over values where they are few, else KS."""
    x, y = np.round(x, 9), np.round(y, 9)
    values, at = np.unique(np.concatenate([x, y]), return_inverse=True)
    if len(values) > 200:
        return float(scipy.stats.ks_2samp(x, y).pvalue)
    counts = np.array([np.bincount(part, minlength=len(values)) for part in (at[: len(x)], at[len(x) :])])
    often = counts.sum(axis=0) >= 20
    table = np.column_stack([counts[:, often], counts[:, ~often].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return 1.0 if table.shape[1] < 2 else float(scipy.stats.chi2_contingency(table).pvalue)


@pytest.mark.parametrize("c", [-1.0, -0.3, 0.0, 1.0])
def test_moments_of_gaussian_sums(c: float) -> None:
    size = 40_000
    n = np.tile([[1, 50, 10**9]], (size, 1))
    means = np.full(n.shape, 0.3), np.full(n.shape, -2.0)
    noises = Noise("gaussian", 0.5), Noise("gaussian", 3.0)
    z = [
        (x - n * m) / (s.scale * np.sqrt(n))
        for x, m, s in zip(draw_sums(np.random.default_rng(2), n, means, noises, c), means, noises, strict=True)
    ]
    for x in z:
        assert np.all(np.abs(x.mean(axis=0)) < 6 / size**0.5)
        assert np.all(np.abs(x.var(axis=0) - 1) < 6 * (2 / size) ** 0.5)
    assert np.all(np.abs((z[0] * z[1]).mean(axis=0) - c) < 6 * ((1 + c**2) / size) ** 0.5)


@pytest.mark.parametrize("c", [-1.0, 0.0, 0.5, 1.0])
def test_binary_readings_at_0_and_1(c: float) -> None:
    """Means at the ends, and past them by rounding, give sure readings, and no warning."""
    n = np.array([[5, 5, 5, 0]])
    f, g = np.array([[0.0, 1.0, 1.0 + 1e-16, 0.5]]), np.array([[1.0, 1.0, -1e-16, 0.5]])
    effect, harm = draw_sums(np.random.default_rng(0), n, (f, g), (Noise("bernoulli"),) * 2, c)
    assert effect.tolist() == [[0, 5, 5, 0]]
    assert harm.tolist() == [[5, 5, 0, 0]]


def test_readings_that_cannot_be() -> None:
    for noise, bad, words in (
        (Bounded(0, 2), 2.5, "x is between 0 and 2 in this study; got 2.5"),
        (Noise("poisson", 2.0), 1.5, "x is a count in this study: a whole number from 0 on; got 1.5"),
        (Noise("poisson", 2.0), -1, "x is a count"),
    ):
        with pytest.raises(SurefootError, match=words):
            noise.reading("x", bad)
        assert noise.reading("x", 1) == 1.0
    with pytest.raises(SurefootError, match="spread must be true or false; got 1"):
        Bounded(0, 2, spread=1)  # type: ignore[arg-type]


def test_what_a_kind_does_not_say_is_an_error_when_it_is_needed() -> None:
    class Mute(Noise):
        kind = "mute"

    mute, some = Mute.__new__(Mute), np.ones((1, 1))
    for ask in (lambda: mute.scale, lambda: mute.draw(None, some, some), lambda: mute.squares(None, some, some, some)):  # type: ignore[arg-type]
        with pytest.raises(SurefootError, match="Mute noise does not say"):
            ask()


def test_every_arm_with_a_noise_of_its_own() -> None:
    both = PerArm((Noise("gaussian", 0.5), Noise("bernoulli")))
    rng, n = np.random.default_rng(1), np.full((2000, 2), 10)
    total, off = both.draw(rng, n, np.full((2000, 2), 0.3))
    assert np.all(np.abs(total.mean(axis=0) - 3) < 6 * np.sqrt(10 * np.array([0.25, 0.21]) / 2000))
    assert both.scale == 0.5 and off.shape == (2000, 2) and set(np.unique(total[:, 1])) <= set(range(11))
    sums, squares = both.both(rng, n, np.full((2000, 2), 0.3))
    assert np.all(np.abs(squares.mean(axis=0) / 9 - [0.25, 0.21]) < 0.02) and sums.shape == (2000, 2)
