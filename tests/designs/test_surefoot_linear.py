import math
from typing import Any

import numpy as np
import pytest

from surefoot import Arm, Noise, Problem, Scenario, case, simulate
from surefoot.designs.base import REFUTED, STOPPED, Cohort, Outcome
from surefoot.designs.surefoot_linear import CAP, SAFETY, UNSAFE, SurefootLinear, cells, over, sigmas, statistic, under
from surefoot.scenario import Linear
from surefoot.simulate import Result
from surefoot.testing import DesignSuite, failures_allowed, play

DESIGN = SurefootLinear()


class TestConformance(DesignSuite):
    design = DESIGN
    trials = 100
    symmetric = False  # sums over arms are taken in another order

    def simulated(self, name: str) -> Result:
        if name == "hundred-arms":
            return simulate(*case(name, 15), self.design, self.trials, seed=1)
        budget = 30_000 if name in ("equal-arms", "tiny-gap", "small-values") else 10**9
        return simulate(*case(name, budget=budget), self.design, self.trials, seed=1)


def two(ratio: float = 0.95, **changes: Any) -> tuple[Problem, Scenario]:
    """Two arms, one of which has `ratio` times the value of the other by less effect and less harm."""
    arms = (Arm("a", 0.5, 10.0), Arm("b", 0.5, 10.0))
    problem = Problem(arms, 1.0, "linear", Noise("gaussian", 0.5), delta=0.1)
    return problem.but(**changes), Scenario((Linear(1.0), Linear(0.8 * ratio)), (Linear(1.0), Linear(0.8)))


def failed(result: Result) -> int:
    return int((result.wrong | result.unsafe).sum())


def test_the_shares_of_delta() -> None:
    """What is left of delta by doses and stops is the verdict's, so all shares make one."""
    assert min(SAFETY, UNSAFE, CAP) > 0 and max(SAFETY + UNSAFE, CAP) < 1


@pytest.mark.parametrize("signals", ["independent", "any"])
def test_two_arms_of_nearly_equal_value(signals: str) -> None:
    """Where being wrong is easiest; a budget ends those that would go on for long."""
    for ratio, seed in ((0.999, 3), (0.97, 4)):
        result = simulate(*two(ratio, budget=3000, signals=signals), DESIGN, 600, seed=seed)
        assert failed(result) <= failures_allowed(600, 0.1, 10)
    close = simulate(*two(0.8, signals=signals), DESIGN, 200, seed=5)
    assert np.all(close.winner >= 0), "and these do end"


@pytest.mark.parametrize("correlation", [-1.0, 1.0])
@pytest.mark.parametrize("largest", [10.0, 0.8])
def test_any_dependence_of_the_readings(correlation: float, largest: float) -> None:
    """Readings tied to each other, in either way, at values near each other, saturated and not."""
    problem, scenario = two(0.97, budget=5000)
    arms = tuple(Arm(arm.name, arm.start, largest) for arm in problem.arms)
    tied = Scenario(scenario.effect, scenario.harm, correlation=correlation)
    result = simulate(problem.but(arms=arms), tied, DESIGN, 400, seed=6)
    assert failed(result) <= failures_allowed(400, 0.1, 10)


@pytest.mark.parametrize("options", [{"growth": 0.0}, {"growth": 0.0, "cohort": 3}, {"growth": 1.0}, {"first": 1}])
def test_cohorts(options: dict[str, Any]) -> None:
    problem, scenario = two(0.4, noise=Noise("gaussian", 0.2))
    design = SurefootLinear(**options)
    result = simulate(problem, scenario, design, 60, seed=7)
    assert failed(result) <= failures_allowed(60, 0.1, 10)
    assert np.all(result.winner >= 0)


def test_fixed_cohorts_have_their_size() -> None:
    design = SurefootLinear(growth=0.0, cohort=3, first=3)
    for state, cohort, _, _ in play(design, *case("paper-linear", 3), trials=4):
        assert set(np.unique(cohort.n)) <= {0, 3}
        assert np.all((cohort.n.sum(axis=1) > 0) == (state.ending == 0))


def test_every_pull_is_at_the_certified_dose() -> None:
    for state, cohort, *_ in play(DESIGN, *case("saturated-none"), trials=20):
        given = cohort.n > 0
        assert np.all(~given | (cohort.dose <= state.safe))


def test_tolerance() -> None:
    problem, scenario = two(0.97)
    exact = simulate(problem.but(budget=10**6), scenario, DESIGN, 40, seed=8)
    loose = simulate(problem.but(tolerance=0.3), scenario, DESIGN, 40, seed=8)
    assert failed(loose) <= failures_allowed(40, 0.1, 10)
    assert np.all(loose.winner >= 0) and loose.pulls.mean() < 0.5 * exact.pulls.mean()


def test_equal_arms_end_with_a_tolerance() -> None:
    problem, scenario = case("equal-arms", budget=10**6)
    result = simulate(problem, scenario, DESIGN, 20, seed=9)
    assert np.all(result.winner >= 0), "arms that cannot be told apart are within the tolerance of each other"


def test_refine_knows_the_winners_dose() -> None:
    problem, scenario = two(0.5)
    width = 0.05
    plain, refined = (simulate(problem.but(refine=r), scenario, DESIGN, 60, seed=10) for r in (None, width))
    assert failed(refined) <= failures_allowed(60, 0.1, 10)
    assert refined.pulls.mean() > plain.pulls.mean()
    assert np.mean((refined.safe <= 1.0) & (refined.safe >= 1.0 - width)) >= 0.8


def test_a_start_dose_above_the_limit_is_stopped() -> None:
    problem, scenario = two(0.5)
    hot = Scenario(scenario.effect, (Linear(4.0), scenario.harm[1]))
    result = simulate(problem, hot, DESIGN, 40, seed=11, trace=True)
    assert np.mean(result.winner == 1) >= 0.8
    assert result.trace is not None
    verdict = result.trace.verdict
    stopped = np.flatnonzero(verdict.standing[:, 0] == STOPPED)
    assert len(stopped) >= 35
    assert "above the limit" in verdict.reason(0, int(stopped[0]))
    n = np.full((1, 2), 200)
    state = DESIGN.tell(DESIGN.start(problem), Cohort(np.full((1, 2), 0.5), n), Outcome(n, 1.0 * n, 8.0 * n))
    assert DESIGN.verdict(state).endings() == ["all-stopped"] and state.winner[0] == -1


def test_an_arm_that_was_stopped_is_never_named() -> None:
    """Though the other has not been pulled yet."""
    problem, _ = two()
    n = np.array([[200, 0]])
    state = DESIGN.tell(DESIGN.start(problem), Cohort(np.full((1, 2), 0.5), n), Outcome(n, 1.0 * n, 8.0 * n))
    assert state.standing[0, 0] == STOPPED and state.winner[0] != 0


def test_an_arm_whose_first_pulls_are_lost_is_judged_as_the_others() -> None:
    problem, scenario = two(0.5)
    rng = np.random.default_rng(13)
    state, first = DESIGN.start(problem, 10), True
    while np.any(state.ending == 0) and state.pulls.max() < 100_000:
        cohort = DESIGN.ask(state)
        n = np.where(first, np.array([1, 0]), 1) * cohort.n
        effect, harm, _ = scenario.draw(rng, problem, cohort.dose, n, state.pulls)
        state, first = DESIGN.tell(state, Cohort(cohort.dose, n), Outcome(n, effect, harm)), False
    assert np.all(state.standing[:, 1] == REFUTED)


def test_a_dose_of_zero_tells_nothing() -> None:
    problem, _ = two()
    one, zero = np.ones((1, 2), np.int64), np.zeros((1, 2))
    state = DESIGN.tell(DESIGN.start(problem), Cohort(zero, one), Outcome(one, zero, zero))
    assert np.all(DESIGN.ask(state).dose == 0.5)


@pytest.mark.parametrize("signals", ["independent", "any"])
def test_cells_bound_every_level_within(signals: Any) -> None:
    """Over random sums and cells: the bound is below the statistic at every level of the cell, troughs included."""
    problem = two(signals=signals)[0]
    rng = np.random.default_rng(14)
    y, z = rng.normal(size=(2, 3000, 1))
    w, reach = rng.uniform(0, 2, (3000, 1)), rng.choice([2.0, math.inf], (3000, 1))
    low, high = np.sort(rng.uniform(0, 1, (2, 3000, 1)), axis=0)
    high = np.where(rng.random((3000, 1)) < 0.2, 1.0, high)
    u = low + (high - low) * np.linspace(0, 1, 201)
    level = u / np.maximum(1 - u, 1e-12) * problem.limit / 0.5
    cone, cap = statistic(problem, u, y, z), y - w * level / reach
    assert np.all(over(problem, low, high, y, z, w, reach) <= np.minimum(cone, cap) + 1e-9)
    assert np.all(over(problem, low, high, y, z, w, reach, True) <= cap + 1e-9)
    low_cone, low_cap = under(problem, low, high, y, z, w, reach)
    assert np.all(low_cone <= -cone + 1e-9) and np.all(low_cap <= -cap + 1e-9)
    troughs = (low_cone < np.minimum(-cone[:, :1], -cone[:, -1:]) - 1e-6).sum()
    assert (troughs > 50) == (signals == "independent"), "some cells have their least value inside"


def test_cells_cover_every_level() -> None:
    """From 0 to 1 without gaps, wherever the two values are, the same or turned round."""
    rng = np.random.default_rng(16)
    low, u, high = rng.uniform(0, 1, (3, 500, 1))
    low[:100], high[:100] = u[:100], u[:100]
    low[:50] = high[:50] = 0.0
    for many in (5, 22):
        ends = cells(low, u, high, many)
        assert np.all(ends[:, 0] == 0) and np.all(ends[:, -1] == 1) and np.all(np.diff(ends, axis=1) >= 0)


def binary(ratio: float, limit: float, **changes: Any) -> tuple[Problem, Scenario]:
    """Two arms with binary readings; the second has `ratio` times the value of the first."""
    arms = tuple(Arm(name, 0.1, 1.0) for name in "ab")
    problem = Problem(arms, limit, "linear", Noise("bernoulli"), delta=0.1)
    return problem.but(**changes), Scenario((Linear(0.9), Linear(0.9 * ratio)), (Linear(limit), Linear(limit * 1.2)))


@pytest.mark.parametrize("correlation", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("limit", [0.02, 0.3, 0.6])
def test_binary_readings(limit: float, correlation: float) -> None:
    """Values near each other, harms from rare to frequent; a budget ends those that would go on for long."""
    problem, scenario = binary(1.17, limit, budget=20_000, signals="any" if correlation else "independent")
    tied = Scenario(scenario.effect, scenario.harm, correlation=correlation)
    result = simulate(problem, tied, DESIGN, 400, seed=20)
    assert failed(result) <= failures_allowed(400, 0.1, 20)


def test_binary_harms_take_fewer_pulls_than_a_sigma_of_one_half() -> None:
    problem, scenario = binary(0.5, 0.1)
    sigma = Noise("gaussian", 0.5)
    told, untold = (
        simulate(
            problem.but(noise=noise), Scenario(scenario.effect, scenario.harm, noise=problem.noises), DESIGN, 60, 21
        )
        for noise in (problem.noises, (sigma, sigma))
    )
    assert np.all(told.winner >= 0) and told.pulls.mean() < 0.7 * untold.pulls.mean()


def test_sigma_of_a_binary_harm() -> None:
    """E exp(g (b - q)) <= exp(g^2 sigma^2 / 2) for every mean q up to the limit, by enumeration."""
    g, q = np.linspace(-30, 30, 601)[:, None], np.linspace(0, 1, 201)[1:-1]
    for limit in (0.003, 0.1, 0.4, 0.4995, 0.5, 0.9, 3.0):
        sigma = sigmas(binary(0.5, limit)[0])[1]
        safe = q[q <= limit]
        assert np.all(np.log1p(safe * np.expm1(g)) - g * safe <= 0.5 * g**2 * sigma**2 + 1e-12)
        assert sigma <= 0.5


def test_pulls_above_the_certified_dose_are_not_bet_on() -> None:
    problem, _ = binary(0.5, 0.3)
    n = np.full((1, 2), 50)
    start = DESIGN.start(problem)
    state = DESIGN.tell(start, Cohort(np.array([[0.1, 0.9]]), n), Outcome(n, 0.2 * n, 0.1 * n))
    assert state.bet_v[0, 0] > 0 and state.bet_v[0, 1] == 0 and np.all(state.v > 0)
    assert DESIGN.verdict(state).lower[0, 1] == -math.inf


LEVELS = (0.25, 0.5, 1.0)


def stepped(theta: float, mu: float = 1.2, **changes: Any) -> tuple[Problem, Scenario]:
    """Two arms with levels: one of value 1 at its last level, one of theta / 2, as its last level is not safe."""
    arms = tuple(Arm(name, 0.25, levels=LEVELS) for name in "ab")
    problem = Problem(arms, 1.0, "linear", Noise("gaussian", 0.5), delta=0.1)
    return problem.but(**changes), Scenario((Linear(1.0), Linear(theta)), (Linear(0.8), Linear(mu)))


@pytest.mark.parametrize("signals", ["independent", "any"])
def test_levels_are_what_a_value_is_judged_by(signals: str) -> None:
    """Between its levels the rival would be as good as the winner; it cannot be given there."""
    problem, scenario = stepped(1.5, signals=signals, budget=100_000)
    assert list(scenario.truth(problem).value) == [1.0, 0.75] and 1.5 / 1.2 == 1.0 / 0.8
    result = simulate(problem, scenario, DESIGN, 100, seed=17, trace=True)
    assert failed(result) <= failures_allowed(100, 0.1, 10)
    assert np.all(result.winner >= 0) and result.pulls.mean() < 3000
    assert result.trace is not None
    unsafe = result.trace.verdict.unsafe
    assert np.isin(unsafe, LEVELS).all() and np.mean(unsafe[:, 1] == 0.5) > 0.9


@pytest.mark.parametrize("signals", ["independent", "any"])
@pytest.mark.parametrize("theta, mu", [(1.98, 1.05), (1.98, 1.98), (0.98, 1.0)])
def test_levels_of_nearly_equal_value(theta: float, mu: float, signals: str) -> None:
    """Where being wrong is easiest: by levels next to the limit, on either side, and by effects."""
    problem, scenario = stepped(theta, mu, signals=signals, budget=3000)
    for tolerance in (None, 0.005):
        result = simulate(problem.but(tolerance=tolerance), scenario, DESIGN, 400, seed=18)
        assert failed(result) <= failures_allowed(400, 0.1, 20)


def test_levels_and_doses_side_by_side() -> None:
    """One arm with levels, one without, with a tolerance and a dose to be found."""
    problem, scenario = stepped(1.5, refine=0.1, tolerance=0.1, budget=100_000)
    mixed = problem.but(arms=(problem.arms[0], Arm("b", 0.25, 3.0)))
    result = simulate(mixed, Scenario(scenario.effect, (Linear(0.8), Linear(2.0))), DESIGN, 60, seed=19)
    assert failed(result) <= failures_allowed(60, 0.1, 10) and np.all(result.winner >= 0)


@pytest.mark.parametrize("of", [two(0.7, budget=2000), stepped(1.9, budget=2000)], ids=["doses", "levels"])
def test_intervals_hold_together(of: tuple[Problem, Scenario]) -> None:
    problem, scenario = of
    truth = scenario.truth(problem).value
    bad = np.zeros(60, bool)
    for *_, after in play(DESIGN, problem, scenario, trials=60, seed=15):
        v = DESIGN.verdict(after)
        bad |= ((v.lower > truth) | (v.upper < truth)).any(axis=1)
        effect = scenario.effects(v.safe)
        bad |= ((v.effect_lower > effect) | (v.effect_upper < effect)).any(axis=1)
    assert bad.sum() <= failures_allowed(60, 0.1, 10)


def test_doses_beyond_the_largest_are_set_aside() -> None:
    """A binary harm cannot go on rising: counted as if it did, it would certify what is not safe."""
    arms = (Arm("a", 0.5, 4.0), Arm("b", 0.5, 4.0))
    problem = Problem(arms, 0.2, "linear", Noise("bernoulli"), delta=0.05)
    rng, n, state = np.random.default_rng(1), np.full((200, 2), 30), DESIGN.start(problem, 200)
    for k in range(12):
        asked = DESIGN.ask(state)
        dose = np.where(k % 2, 50.0, asked.dose)
        readings = [rng.binomial(n, np.minimum(0.1 * dose, 1.0)).astype(float) for _ in range(2)]
        state = DESIGN.tell(state, Cohort(dose, n), Outcome(n, *readings))
    assert np.mean(np.any(state.safe > 2.0, axis=1)) <= 0.05
