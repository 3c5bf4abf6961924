import math
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem
from surefoot.designs.linear_bars import Bets, Cells, Rates, directions, height, lowered, shrink, sigmas, spread
from surefoot.designs.linear_wealth import Claims, Reaches, wealth


def problem(kind: str = "gaussian", limit: float = 1.0, **changes: Any) -> Problem:
    arms = (Arm("a", 0.5, 10.0), Arm("b", 0.5, 10.0))
    noise = Noise("bernoulli") if kind == "bernoulli" else Noise("gaussian", 0.5)
    return Problem(arms, limit, "linear", noise).but(**changes)


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("signals", ["independent", "any"])
def test_cells_bound_every_bar_within(signals: Any, kind: str) -> None:
    """Over random sums and cells: the bound is below the statistic at every bar of the cell, troughs included."""
    p = problem(kind, signals=signals)
    rng = np.random.default_rng(14)
    y, z = rng.normal(size=(2, 3000, 1))
    w, reach = rng.uniform(0, 2, (3000, 1)), rng.choice([2.0, math.inf], (3000, 1))
    low, high = np.sort(rng.uniform(0, 1, (2, 3000, 1)), axis=0)
    high = np.where(rng.random((3000, 1)) < 0.2, 1.0, high)
    u = low + (high - low) * np.linspace(0, 1, 201)
    x = u / np.maximum(1 - u, 1e-12) * p.limit / sigmas(p)[1]
    r = shrink(p, u)
    along, across = directions(u, r, signals == "independent")
    cone, cap = along * y - across * z, (y - w * x / reach) / r
    bets, cells = Bets(w, y, z, w), Cells.between(p, low, high)
    assert np.all(cells.over(bets, reach, False) <= np.minimum(cone, cap) + 1e-9)
    assert np.all(cells.over(bets, reach, True) <= cap + 1e-9)
    low_cone, low_cap = cells.under(bets, reach)
    assert np.all(low_cone <= -cone + 1e-9) and np.all(low_cap <= -cap + 1e-9)
    troughs = (low_cone < np.minimum(-cone[:, :1], -cone[:, -1:]) - 1e-6).sum()
    inside = signals == "independent" or kind == "bernoulli"  # of binary effects: the bound is below what is there
    assert (troughs > 50) == inside, "some cells have their least value inside"


def test_cells_cover_every_bar() -> None:
    """From 0 to 1 without gaps, wherever the two values are, the same or turned round."""
    rng = np.random.default_rng(16)
    low, u, high = rng.uniform(0, 1, (3, 500))
    low[:100], high[:100] = u[:100], u[:100]
    low[:50] = high[:50] = 0.0
    for least in (0.0, 0.2):
        ends = spread(low, u, high, least)
        np.testing.assert_allclose(ends[0], least)
        assert np.all(ends[-1] == 1) and np.all(np.diff(ends, axis=0) >= 0)


def test_a_bar_lowered_by_the_tolerance() -> None:
    t = np.array([0.0, 0.1, 0.3, 1.0, 50.0])
    np.testing.assert_allclose(lowered(t / (1 + t), 0.2), np.maximum(t - 0.2, 0) / (1 + np.maximum(t - 0.2, 0)))
    assert lowered(np.array([1.0]), 3.0)[0] == 1.0
    assert np.all(lowered(np.array([0.0, 0.3]), 1e9) == 0)


def bounded(g: Any, q: Any, sigma: Any) -> bool:
    """E exp(g (b - q)) <= exp(g^2 sigma^2 / 2), by enumeration."""
    return bool(np.all(np.log1p(q * np.expm1(g)) - g * q <= 0.5 * g**2 * sigma**2 + 1e-12))


def test_sigmas_of_binary_readings() -> None:
    """Of a harm for every mean up to the limit, of an effect for every mean up to the bar."""
    g, q = np.linspace(-30, 30, 601)[:, None], np.linspace(0, 1, 201)[1:-1]
    for most in (0.003, 0.1, 0.4, 0.4995, 0.5, 0.9, 3.0):
        p = problem("bernoulli", most)
        assert bounded(g, q[q <= most], sigmas(p)[1]) and sigmas(p)[1] <= 0.5
    p = problem("bernoulli", 0.3)
    for u in np.linspace(0.01, 0.99, 25):
        bar = float(height(p, np.array(u))) * sigmas(p)[0]
        assert bounded(g, q[q <= bar], float(shrink(p, np.array(u))) * sigmas(p)[0])


@pytest.mark.parametrize("tolerance", [None, 0.03])
@pytest.mark.parametrize("signals", ["independent", "any"])
def test_a_cell_has_at_most_the_wealth_of_its_parts(signals: Any, tolerance: float | None) -> None:
    """Lemma 7 for binary effects, whose sigma is another at every bar: over random sums of a claim and two who led,
    also where there is enough to refute it. A larger sigma makes losses smaller too: the largest is no bound."""
    p, rng, many = problem("bernoulli", 0.3, signals=signals, tolerance=tolerance), np.random.default_rng(18), 4000

    def bets(*shape: int) -> Bets:
        y, z = rng.normal(scale=6, size=(2, *shape))
        return Bets(rng.uniform(0, 60, shape), y, z, rng.uniform(0, 20, shape))

    def rates(*shape: int) -> Rates:
        n = rng.integers(1, 200, shape).astype(float)
        return Rates(n, n * rng.uniform(1, 2, shape), rng.binomial(n.astype(int), 0.2).astype(float))

    def reach(*shape: int) -> Reaches:
        most, share = rng.uniform(2, 4, shape), np.full(shape, 0.2)
        return Reaches(most, most, rng.random(shape) < 0.5, np.log(1 - share), np.log(share))

    claims = Claims(
        bets(many), bets(2, many), bets(many), bets(2, many), rates(many), rates(2, many), reach(many), reach(2, many),
        None if tolerance is None else rng.random((2, many)) < 0.5,
    )  # fmt: skip
    low, high = np.sort(rng.uniform(0.02, 0.6, (2, 1, many)), axis=0)
    ends = low + (high - low) * np.linspace(0, 1, 9)[:, None]
    whole, parts, bars = (wealth(p, claims, *x) for x in ((low, high), (ends[:-1], ends[1:]), (ends, ends)))
    assert np.all(whole <= parts + 1e-9) and np.all(parts <= np.minimum(bars[:-1], bars[1:]) + 1e-9)
    assert np.mean(bars > math.log(1 / 0.065)) > 0.1, "many are refuted"
