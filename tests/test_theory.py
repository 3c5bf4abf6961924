"""The bounds against hand-made figures, against a second method, against an adversary and against simulation.

The upper bounds hold whenever every mean is within epsilon_l of the truth. The adversary plays on exactly that event
and chooses the errors, so a single trial above a bound refutes it.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from surefoot import CASES, Arm, Noise, Problem, Scenario, case, theory
from surefoot.designs import make
from surefoot.designs.base import RUNNING, Outcome
from surefoot.scenario import Linear, Logistic, Table
from surefoot.simulate import simulate
from surefoot.theory import NotStated

Array = NDArray[Any]
Made = tuple[Problem, Scenario]
STATED = [
    name
    for name, c in CASES.items()
    if c.claim
    and name not in ("equal-arms", "equal-drugs", "dose-levels", "far-levels")
    and case(name)[0].shape != "levels"
]


def lines(theta: Any, mu: Any, a0: Any, M: Any, limit: float = 1.0, sigma: Any = 0.5, **more: Any) -> Made:
    theta, mu, a0, M = (np.broadcast_to(np.asarray(x, float), np.shape(theta)) for x in (theta, mu, a0, M))
    arms = tuple(Arm(f"arm {i}", float(a0[i]), float(M[i])) for i in range(len(theta)))
    effect, harm = np.broadcast_to(sigma, 2)
    noise = (Noise("gaussian", float(effect)), Noise("gaussian", float(harm)))
    problem = Problem(arms, limit, "linear", noise, **{"delta": 0.1, **more})
    return problem, Scenario(tuple(Linear(float(x)) for x in theta), tuple(Linear(float(x)) for x in mu))


def curves(effect: list[Any], harm: list[Any], a0: float, M: float, limit: float, slack: float, K: float = 1.0) -> Made:
    arms = tuple(Arm(f"arm {i}", a0, M, K) for i in range(len(effect)))
    problem = Problem(arms, limit, "monotonic", (Noise("gaussian", 0.5),) * 2, slack=slack, delta=0.1)
    return problem, Scenario(tuple(effect), tuple(harm))


def upper(problem: Problem, scenario: Scenario) -> Any:
    linear = problem.shape == "linear"
    return (theory.linear_upper_bound if linear else theory.monotonic_upper_bound)(problem, scenario)


# Figures known beforehand


@pytest.mark.parametrize(
    "d, theorem_1, time, time_at_1_percent", [(5, 11.6, 89.6, 230), (10, 19.1, 118.9, 305), (20, 34.3, 177, 454)]
)
def test_reference_figures(d: int, theorem_1: float, time: float, time_at_1_percent: float) -> None:
    made = case("paper-linear", arms=d)
    assert theory.linear_lower_bound(*made).sum() == pytest.approx(theorem_1, abs=0.05)
    assert theory.characteristic_time(*made).pulls == pytest.approx(time, rel=2e-3)
    assert theory.characteristic_time(*case("paper-linear", arms=d, delta=0.01)).pulls == pytest.approx(
        time_at_1_percent, rel=2e-3
    )


def test_gaps_cases_and_epochs_by_hand() -> None:
    # best: M unsafe, value 1; case 1 at gap 2^-10; case 2 at gap 1/2, M mu = 1/4
    made = lines([1, 1 - 2.0**-10, 0.5], [1, 1, 0.25], [1 / 16, 1 / 16, 1 / 4], [2, 4, 1])
    assert theory.gaps(*made) == pytest.approx([0, 2.0**-10, 0.5])
    bound = theory.linear_upper_bound(*made)
    assert bound.case == [None, 1, 2]
    # Psi^1 = log2(4 (2 + 1 + 1 - 2^-10) 2^10), just below 14; for the other arm Phi is at its floor of 8
    assert bound.epochs.tolist() == [14, 14, 8]
    expected = sum(8 * 0.25 * math.log(8 * 3 * L**2 / 0.1) * 4.0**L + 2 * L for L in (14, 8))
    assert bound.pulls == pytest.approx(expected)
    # N_1: 2/gap^2, xi_4(16) xi_4(2) = 256 * 16; N_2: alpha = 3, so another xi_4(1/3) = 16
    N = theory.linear_complexity(*made)
    assert math.isnan(N[0])
    assert N[1] == pytest.approx((1 + 1 + (1 - 2.0**-10) ** 2) * 2.0**20 + 4096)
    assert N[2] == pytest.approx((1 + 0.25) * 4 + 4096 * 16)

    best_safe = lines([1, 0.5, 0.5], [0.5, 1, 0.5], 0.1, [1, 2, 1])
    assert theory.linear_upper_bound(*best_safe).case == [None, 3, 4]
    # Psi^3 = log2(4 2^10); Psi^2 = log2(4 (2 + 1) 2^10), just below 14
    close = lines([1, 1 - 2.0**-10, 1 - 2.0**-10], [0.5, 0.5, 1], 0.1, [1, 1, 2])
    assert theory.linear_upper_bound(*close).epochs.tolist() == [14, 12, 14]


def test_corollary_1_by_hand() -> None:
    made = lines([1, 0.5], [1, 1], 1 / 16, 2)
    C, first = 2 ** math.sqrt(32), 256
    assert theory.linear_corollary(*made) == pytest.approx(0.25 * math.log(2 / 0.1) * (2.25 / 0.25 + C * first))


def test_theorem_3_and_corollary_2_by_hand() -> None:
    made = curves([Linear(1.0), Linear(0.5)], [Linear(1.0)] * 2, a0=0, M=2, limit=1, slack=0.5)
    bound = theory.monotonic_upper_bound(*made)
    # l = 1: from 0 to 1 - 1/2 in steps of 1/2; l = 2: from 0 to 3/4 in steps of 1/4; then 5 epsilon in steps of epsilon
    assert bound.n[:4, 0].tolist() == [1, 3, 5, 5]
    assert bound.m[:5, 0].tolist() == [2, 5, 5, 5, 0]
    # log2(8/slack) = 4: a_u is at most 3/2 in epoch 4, half of it and of 1 + 2/32 + 2/32 in epoch 5
    assert bound.a_u[3:5, 1] == pytest.approx([1.5, 0.75 + 0.5625])
    # f(a_u) + 4/16 = 1 > 1 - 3/16 in epoch 4; 0.65625 + 4/32 <= 1 - 3/32 in epoch 5
    assert bound.epochs.tolist() == [5, 5]
    # steps of the bisection: log2((3/2 - (1 - 3 epsilon))/epsilon), rounded up: 2 (from 3/2), 3, 3, 4, 5
    estimates = [2 + 1 + 2 + 2, 5 + 3 + 3 + 2, 5 + 5 + 3 + 2, 5 + 5 + 4 + 2, 5 + 5 + 2]
    t = 2 * sum(estimates)
    assert bound.estimates.tolist() == [t / 2, t / 2]
    N = [math.ceil(2 * 0.25 * math.log(8 * t**2 / 0.1) * 4**l) for l in range(1, 6)]
    assert bound.pulls == 2 * sum(k * n for k, n in zip(estimates, N, strict=True))
    # A largest dose of harm limit + 1/10: shown unsafe when 2 epsilon <= 1/10, in epoch 5; halved from epoch 6 on
    short = curves([Linear(1.0), Linear(0.9)], [Linear(1.0)] * 2, a0=0, M=1.1, limit=1, slack=0.5)
    assert theory.monotonic_upper_bound(*short).a_u[3:6, 1] == pytest.approx([1.1, 1.1, 0.55 + (1 + 4 / 64) / 2])
    # L = 1: (1 + 1 + 2 * 1/0.25) / 0.25 = 40, and 1 + 1/2 for each of the two arms
    assert theory.monotonic_corollary(*made) == pytest.approx(0.25 * math.log(10) * 43)


def test_monotonic_lower_bound_by_hand() -> None:
    problem, scenario = case("paper-drug", arms=20, slack=0.1)
    each = theory.monotonic_lower_bound(problem, scenario)
    assert each[0] == 0
    assert each[1:] == pytest.approx(2 * 0.1 * 0.8 * math.log(9) / 0.1**2)
    # Where a largest dose within reach has an effect below the best one's, only the gap counts.
    effect = [Linear(0, 0.9), Linear(0, 0.5)]
    made = curves(effect, [Linear(1.0)] * 2, a0=0, M=1.1, limit=1, slack=0.2)
    assert theory.monotonic_lower_bound(*made) == pytest.approx([0, 2 * 0.25 * 0.8 * math.log(9) / 0.4**2])
    # Where it is above, the harm there counts, which is less than the slack above the limit.
    jumps: list[Any] = [Linear(0, 0.9), Table((1, 1.05), (0.5, 1.0))]
    made = curves(jumps, [Linear(1.0)] * 2, a0=0, M=1.1, limit=1, slack=0.2)
    assert theory.monotonic_lower_bound(*made) == pytest.approx([0, 2 * 0.25 * 0.8 * math.log(9) / 0.1**2])


# The characteristic time by a second method


def brute_time(problem: Problem, scenario: Scenario) -> float:
    """T* as a linear program with a row for each alternative, the nearest by a scan from the definition of a value."""
    from scipy.optimize import linprog

    truth = scenario.truth(problem)
    (vf, vg), gamma = [noise.scale**2 for noise in scenario.noises(problem)], problem.limit
    b, rows, d = truth.best, [], len(problem.arms)

    def nearest(k: int, x: float, rises: bool) -> float:
        a = truth.dose[k]
        theta, mu, top = (
            scenario.effects(truth.dose)[k] / a,
            scenario.harms(truth.dose)[k] / a,
            gamma / problem.starts[k],
        )
        mu2 = np.concatenate(
            [np.linspace(0, top, 5001)[1:], np.geomspace(1e-6 * (mu or top), top, 5000), [mu or 1e-12]]
        )
        theta2 = x / np.minimum(gamma / mu2, problem.largest[k])  # the effect slope that gives the value x
        theta2 = np.maximum(theta2, theta) if rises else np.minimum(theta2, theta)
        return float(np.min(a**2 / 2 * ((theta2 - theta) ** 2 / vf + (mu2 - mu) ** 2 / vg)))

    for i in range(d):
        if i != b:
            for t in 1 / (1 + np.exp(-np.linspace(-7, 7, 600))):
                x = truth.value[i] + (truth.value[b] - truth.value[i]) * t
                row = np.zeros(d)
                row[b], row[i] = nearest(b, x, False), nearest(i, x, True)
                rows.append(row)
    return float(linprog(np.ones(d), A_ub=-np.array(rows), b_ub=-np.ones(len(rows))).fun)


@pytest.mark.parametrize(
    "made",
    [
        case("paper-linear", arms=3),
        case("saturated-none", arms=2),
        case("saturated-rivals", arms=3),
        case("saturated-best", arms=2),
        case("saturated-all", arms=2),
        case("start-at-limit", arms=2),
        lines([1, 0.9], [0.9, 1.1], [0.9, 0.3], [1.05, 0.95], sigma=(0.2, 1.5)),  # caps, corners and starts that matter
        lines([1, 2, 5], [1, 2.5, 0.1], [0.8, 0.01, 0.01], [3, 0.45, 0.15], sigma=(2, 0.3)),
        lines([1, 0.6], [0, 0], 0.1, 1),  # no harm at all
    ],
)
def test_characteristic_time_by_a_second_method(made: Made) -> None:
    assert theory.characteristic_time(*made).time == pytest.approx(brute_time(*made), rel=2e-3)


slopes = st.floats(-3, 3).map(lambda x: 10**x)


@settings(max_examples=50)
@given(slopes, slopes, slopes, st.floats(0.01, 0.99), st.floats(-9, 9), st.floats(-9, 9))
def test_characteristic_time_over_decades(
    mu0: float, mu1: float, v: float, rest: float, dose: float, effect: float
) -> None:
    """It is at or above Theorem 1, and blind to the units of doses and effects."""
    theta = np.array([v, v * rest]) * [mu0, mu1]
    plain = lines(theta, [mu0, mu1], 1e-4 / max(mu0, mu1), math.inf)
    time = theory.characteristic_time(*plain)
    assert np.all(time.shares > 0)
    assert time.pulls >= theory.linear_lower_bound(*plain).sum() * (1 - 1e-6)
    a, y = 10**dose, 10**effect
    other = lines(theta * y / a, np.array([mu0, mu1]) / a, 1e-4 / max(mu0, mu1) * a, math.inf, sigma=(0.5 * y, 0.5))
    assert theory.characteristic_time(*other).time == pytest.approx(time.time, rel=1e-5)


def test_many_arms_are_fast() -> None:
    time = theory.characteristic_time(*case("hundred-arms"))
    assert time.shares.sum() == pytest.approx(1)
    assert time.shares.argmax() == 0


# xi


@given(st.floats(0.01, 10), st.floats(0, 1e12), st.floats(0.01, 10))
def test_proposition_1(a: float, x: float, z: float) -> None:
    assert 1 <= theory.xi(a, x) <= theory.xi_bound(a, x, z) * (1 + 1e-12)


# The upper bounds against an adversary


def adversary(problem: Problem, scenario: Scenario, trials: int = 64, seed: int = 0) -> tuple[Any, Array, Array]:
    """Trials in which every mean is off by up to epsilon_l: at random, or always to one side. Also the last epoch and
    the number of cohorts of every arm."""
    problem = problem.but(budget=10**12)
    design, rng = make(f"safebai-{problem.shape}", unit=1.0), np.random.default_rng(seed)
    shape = trials, len(problem.arms)
    state = design.start(problem, trials)
    side, way = rng.choice([-1.0, 1.0], (2, *shape)), rng.integers(0, 3, (2, *shape))
    last, count = np.zeros(shape), np.zeros(shape)
    while np.any(state.ending == RUNNING):
        cohort = design.ask(state)
        l = (state.epoch if problem.shape == "monotonic" else state.rounds + 1)[:, None]
        u = rng.uniform(-1, 1, (2, *shape))
        error = 0.999999 * 2.0 ** -l.astype(float) * np.where(way == 0, side, np.where(way == 1, np.sign(u), u))
        f, g, n = scenario.effects(cohort.dose), scenario.harms(cohort.dose), cohort.n
        assert np.all((g <= problem.ceiling + 1e-9 * abs(problem.ceiling)) | (n == 0))
        last, count = np.where(n > 0, l, last), count + (n > 0)
        state = design.tell(state, cohort, Outcome(n, n * (f + error[0]), n * (g + error[1])))
    return state, last, count


def holds(made: Made, seed: int = 0) -> None:
    bound, (state, last, count) = upper(*made), adversary(*made, seed=seed)
    assert np.all(state.winner == made[1].truth(made[0]).best)
    assert np.all(last <= bound.epochs)
    assert np.all(state.pulls <= bound.pulls)
    if made[0].shape == "monotonic":
        assert np.all(count <= bound.estimates)


@pytest.mark.parametrize("name", STATED)
def test_upper_bound_holds_against_an_adversary(name: str) -> None:
    holds(case(name, arms=4 if name == "hundred-arms" else None))


@pytest.mark.parametrize("seed", range(12))
def test_upper_bound_of_random_lines(seed: int) -> None:
    """Gaps down to a thousandth; largest doses below, at and above the limit."""
    rng = np.random.default_rng(seed)
    limit, d = 10 ** rng.uniform(-1, 1), 3
    mu = limit * 10 ** rng.uniform(-1, 1, d)
    M = limit / mu * rng.choice([1.0, 0.8, 0.95, 1.1, 1.5, math.inf], d)
    top = np.minimum(M, limit / mu)
    value = limit * 10 ** rng.uniform(-1, 1) * np.append(1, 1 - 10 ** rng.uniform(-3, -0.5, d - 1))
    holds(lines(value / top, mu, top * 10 ** rng.uniform(-2, 0, d), M, limit, sigma=1e-3), seed)


@pytest.mark.parametrize("seed", range(6))
def test_upper_bound_of_random_curves(seed: int) -> None:
    """Bent harms that end below, at or above limit + slack; effects that rise where it hurts; K other than 1."""
    rng = np.random.default_rng(seed)
    limit, slack, K = rng.uniform(-1, 1), 10 ** rng.uniform(-1, 0.7), 10 ** rng.uniform(-1, 1)
    effect, harm = [], []
    for value in (1.0, 0.6, 0.3):
        ends = limit - rng.choice([0.0, 0.3, 2.0]), limit + slack * rng.choice([-0.1, 0.3, 1.0, 2.0])
        z = np.sort(np.append(ends, rng.uniform(min(ends), max(ends), 4)))
        a = np.append(0, np.cumsum(np.maximum(np.diff(z) / np.minimum(1, 10 ** rng.uniform(-1.5, 0.3, 5)), 1e-3))) / K
        harm.append(Table(tuple(a / a[-1]), tuple(z)))
        at = float(np.interp(limit, z, a / a[-1]))  # the largest safe dose, or the largest
        effect.append(Table((at - 0.1, at, at + 0.1), (0.9 * value, value, 3 * value)))
    fastest = max(float(np.max(np.diff(h.value) / np.diff(h.dose))) for h in harm)
    holds(curves(effect, harm, a0=0, M=1, limit=limit, slack=slack, K=fastest), seed)


def test_lemma_9_as_printed_does_not_hold() -> None:
    """Negative control: with M of the best arm safe, the alternative condition in gamma theta*/mu* comes too soon."""
    made = lines([1, 0.995], [0.5, 1], 0.1, [1, 2], sigma=0.01)
    printed = max(math.log2(4 * (2 + 2 + 0.995) / (2 - 0.995)), 8)  # Psi^1(gamma theta*/mu* - gamma theta/mu), Phi
    _, last, _ = adversary(*made)
    assert last.max() > printed
    assert last.max() <= theory.linear_upper_bound(*made).epochs[1]


def test_lemma_9_needs_the_dose_of_the_epoch_before() -> None:
    """Phi is reached one epoch too late for a tiny start dose; there L takes one epoch more."""
    gamma, a0 = 0.184, 1e-10
    phi = math.ceil(theory.Phi(1, a0, gamma))
    doses = [a0]
    for l in range(1, phi + 1):
        doses.append(gamma / (1 + 2.0 ** (1 - l) / doses[-1]))
    assert doses[phi - 1] < gamma / 2 <= doses[phi]
    assert theory.linear_upper_bound(*lines([1, 0.1], [1, 1], a0, math.inf, gamma)).epochs[1] == phi + 1


def test_lipschitz_constant_is_a_unit_of_the_dose() -> None:
    def bound(c: float) -> theory.MonotonicBound:
        effect = [Logistic(2.0 / c), Logistic(0.5 / c)]
        return theory.monotonic_upper_bound(*curves(effect, [Logistic(2.0 / c, 0.5)] * 2, -c, 2 * c, 0.6, 0.2, 0.5 / c))

    assert bound(8.0).pulls == bound(1.0).pulls
    assert bound(8.0).a_u == pytest.approx(8 * bound(1.0).a_u)


# Simulation: lower bound <= mean pulls, and the upper bound holds in 1 - delta of the trials


@pytest.mark.parametrize(
    "made",
    [
        case("paper-linear", arms=5),
        case("paper-linear", arms=5, delta=0.01),
        *(case(f"saturated-{which}", arms=3) for which in ("none", "rivals", "best", "all")),
        case("start-at-limit"),
        case("small-values"),
        case("paper-drug", arms=3),
        case("paper-drug", arms=3, slack=0.5),  # limit + slack is above the harm of the largest dose
        case("start-near-limit"),
        case("lipschitz-tight"),
        case("harmless"),
        case("emax"),
    ],
    ids=lambda made: f"{made[1].name} {made[0].delta} {made[0].slack}",
)
def test_measured_pulls_lie_between_the_bounds(made: Made) -> None:
    problem, scenario = made
    pulls = simulate(problem, scenario, make(f"safebai-{problem.shape}", unit=1.0), 2000, seed=1, progress=False).pulls
    if problem.shape == "linear":
        least = theory.characteristic_time(problem, scenario).pulls
    else:
        least = float(theory.monotonic_lower_bound(problem, scenario).sum())
    assert 0 < least <= pulls.mean()
    # Not the mean: with probability delta nothing is claimed, and such a trial may run until its budget is spent.
    assert np.mean(pulls <= upper(problem, scenario).pulls) >= 1 - problem.delta


# What is not stated, and why


@pytest.mark.parametrize(
    "statement, made, why",
    [
        (theory.linear_lower_bound, case("saturated-rivals"), "M = inf"),
        (theory.linear_lower_bound, case("saturated-none"), "no harm, however low"),
        (theory.linear_lower_bound, lines([1, 0], 1, 0.1, math.inf), "arm 1"),
        (theory.linear_lower_bound, case("rademacher"), "not Gaussian"),
        (theory.linear_lower_bound, case("paper-drug"), "linear shape"),
        (theory.characteristic_time, case("correlated-same"), "correlation 1"),
        (theory.characteristic_time, case("paper-linear", tolerance=0.1), "tolerance"),
        (theory.characteristic_time, case("equal-arms"), "same, largest value"),
        (theory.characteristic_time, case("wrong-sigma"), "sigma 0.9"),
        (theory.linear_upper_bound, case("bent-lines"), "not a line"),
        (theory.linear_upper_bound, case("unsafe-start"), "start dose"),
        (theory.linear_upper_bound, case("paper-linear", refine=0.1), "refine"),
        (theory.linear_corollary, case("saturated-best"), "arm 1"),
        (theory.monotonic_lower_bound, case("binary"), "not Gaussian"),
        (theory.monotonic_upper_bound, case("dose-levels"), "levels"),
        (theory.monotonic_upper_bound, case("wrong-lipschitz"), "Lipschitz"),
        (
            theory.monotonic_upper_bound,  # the rival's effect jumps exactly at the limit
            curves([Linear(0, 0.5), lambda a: 1.0 * (a > 1)], [Linear(1.0)] * 2, a0=0, M=2, limit=1, slack=0.5),
            "l-bar is infinite",
        ),
        (theory.monotonic_corollary, case("harmless"), "Assumption 2"),
        (theory.monotonic_corollary, case("paper-drug"), "limit - 3/2"),
        (
            theory.monotonic_corollary,
            curves([Linear(3.0), Linear(1.0)], [Linear(1.0)] * 2, a0=0, M=2, limit=1, slack=0.5),
            "1-Lipschitz .* arm 0",
        ),
        (
            theory.monotonic_corollary,
            curves([Linear(0, 1.0), Linear(0, 0.5)], [Table((-3, 0, 1, 2), (-2, 0.5, 0.5, 1.5))] * 2, 0, 2, 1.0, 0.4),
            "level in places",
        ),
    ],
)
def test_a_failing_assumption_is_named(statement: Any, made: Made, why: str) -> None:
    with pytest.raises(NotStated, match=why):
        statement(*made)


def test_largest_dose_exactly_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.theory.certified.ROUNDS", 1)
    made = lines([1, 0.5], [1, 1], 0.1, [1, 2])
    assert theory.linear_upper_bound(*made).epochs.tolist() == [8, 8]  # no alpha is needed
    told = theory.summary(*made)
    assert told["order"]["pulls"] == {"why": "infinite, or above 1e308"}
    assert told["arms"][1]["case"] == 3


@pytest.mark.parametrize("name", list(CASES)[::4])
def test_summary_is_plain_and_complete(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.theory.certified.ROUNDS", 1)  # a bound all the same, and a fast one
    problem, scenario = case(name, None if CASES[name].fixed else 2)
    told = theory.summary(problem, scenario)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    keys = ("lower_bound", "characteristic_time", "upper_bound", "order", "corollary")
    for told_part in [told[key] for key in keys] + [x for row in told["arms"] for x in row.values()]:
        if isinstance(told_part, dict):
            assert told_part.get("why") or {"pulls", "by", "holds"} <= set(told_part)
    assert [row["name"] for row in told["arms"]] == list(told["gaps"]) == problem.names
    assert len({tuple(row) for row in told["arms"]}) == 1
    assert ("pulls" in told["upper_bound"]) == (name in STATED)


def test_no_lower_bound_for_an_even_coin() -> None:
    assert theory.kl(0.5) == theory.kl(0.9) == 0
    assert theory.linear_lower_bound(*case("paper-linear", delta=0.45)).sum() == 0
