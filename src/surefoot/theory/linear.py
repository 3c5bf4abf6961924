"""The linear setting: Theorem 1, T*, and how many pulls Algorithm 1 needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from ..scenario import Scenario
from .common import HAIR, TINY, Array, NotStated, kl, named, truth_of, variances


@dataclass(frozen=True)
class _Lines:
    """The truth of a linear problem in the paper's symbols; arrays are one number an arm."""

    theta: Array
    mu: Array
    a0: Array
    M: Array
    gamma: float
    dose: Array  # the largest safe one
    value: Array
    gap: Array
    best: int  # i*
    safe_M: NDArray[np.bool_]  # M_i in S_i
    alpha: Array  # gamma / (mu_i M_i) - 1 where M_i is safe, 0 where it is exactly at the limit

    @classmethod
    def of(cls, problem: Problem, scenario: Scenario, bound: Literal["lower", "upper"]) -> _Lines:
        truth = truth_of(problem, scenario, "linear", bound)
        a, gamma, M = truth.dose, problem.limit, problem.largest
        theta, mu = scenario.effects(a) / a, scenario.harms(a) / a
        safe_M = a == M
        alpha = np.where(safe_M, gamma / (np.maximum(mu, TINY) * np.where(safe_M, M, 1.0)) - 1, 0.0)
        alpha = np.where(alpha < HAIR, 0.0, alpha)
        gap = truth.value[truth.best] - truth.value
        return cls(theta, mu, problem.starts, M, gamma, a, truth.value, gap, truth.best, safe_M, alpha)

    @property
    def rivals(self) -> list[int]:
        return [i for i in range(len(self.theta)) if i != self.best]


def linear_lower_bound(problem: Problem, scenario: Scenario) -> Array:
    """Theorem 1 (thm:linear_lb), times sigma^2: mean pulls that any safe algorithm needs of each rival (best arm: 0).

    It holds for every algorithm that is right with probability 1 - delta on all instances and pulls safe doses only,
    even if an oracle tells it which are safe. The proof has sigma^2 = 1; with a variance of its own for each reading,
    the 1 (an alternative in theta) is multiplied by the effect's and the ratios (alternatives in mu) by the harm's.

    The theorem has M = inf. Its first two alternatives are all that the proof needs (the third, which can have a
    negative mu, gives less than the second). They remain alternatives under largest doses where no M is safe and none
    keeps a rival from the best arm's value: M_i theta_i >= gamma theta_i*/mu_i*. Otherwise it is not stated.
    """
    s = _Lines.of(problem, scenario, "lower")
    if np.any(s.safe_M):
        raise NotStated(f"Theorem 1 has no largest dose (M = inf); that of {named(problem, s.safe_M)} is safe")
    reach = s.theta * np.where(s.theta > 0, s.M, 0.0)
    if np.any(short := reach < s.value[s.best] * (1 - HAIR)):
        raise NotStated(
            "Theorem 1 has no largest dose (M = inf) and slopes above 0; here no harm, however low, could make "
            f"the best arm of {named(problem, short)}"
        )
    effect, harm = variances(problem, scenario)
    ratio, i, pulls = s.theta / s.mu, s.rivals, np.zeros(len(s.theta))
    pulls[i] = (effect + harm * (ratio[s.best] ** 2 + ratio[i] ** 2)) / s.gap[i] ** 2
    return 2 / 3 * max(math.log(1 / (2.4 * problem.delta)), 0.0) * pulls


@dataclass(frozen=True)
class CharacteristicTime:
    time: float  # T*
    pulls: float  # T* kl(delta, 1 - delta): the lower bound on the mean pulls
    shares: Array  # of the pulls, by arm, in the allocation that attains T*


def characteristic_time(problem: Problem, scenario: Scenario) -> CharacteristicTime:
    """T* kl(delta, 1 - delta), the lower bound behind Theorem 1 (Lemma 1 of Kaufmann et al., 2016) at its largest.

    It holds for the algorithms of Theorem 1, and M may be anything. Every instance with another best arm must be told
    from this one: n_i* D_i*(x) + n_i D_i(x) >= 1 for all rivals i and all x, where D(x) is the KL divergence of a pull
    from the nearest slopes with value at most x (the best arm) or at least x (a rival). Pulls at the largest safe dose
    tell most. What the learner knows narrows the alternatives: slopes are at or above 0, and start doses are safe.
    Fewest pulls in all: n_i = max_x (1 - n_i* D_i*(x)) / D_i(x), and then the sum is convex in n_i*.
    """
    from scipy.optimize import minimize_scalar

    s = _Lines.of(problem, scenario, "lower")
    i, b, (effect, harm) = s.rivals, s.best, variances(problem, scenario)
    grid, fine = 1 / (1 + np.exp(-np.linspace(-14, 14, 400))), np.linspace(0, 1, 40)

    def D_best(x: Array) -> Array:
        theta, mu, top = s.theta[b], s.mu[b], s.gamma / s.a0[b]
        off = s.gamma * theta - x * mu
        step = off / (s.gamma**2 * effect + x**2 * harm)
        line = np.where(
            mu + step * x * harm <= top,
            step * off,  # to the line gamma theta' = x mu'
            (theta - x / s.a0[b]) ** 2 / effect + (top - mu) ** 2 / harm,  # to its end: the start dose is safe
        )
        cap = np.maximum(theta - x / s.M[b], 0.0) ** 2 / effect  # to M theta' = x
        return np.asarray(s.dose[b] ** 2 / 2 * np.minimum(line, cap))

    def D_rival(x: Array) -> Array:
        theta, mu, M = s.theta[i], s.mu[i], s.M[i]
        off = s.gamma * theta - x * mu
        step = off / (s.gamma**2 * effect + x**2 * harm)
        far = np.maximum(mu - s.gamma / M, 0.0)
        corner = (x / M - theta) ** 2 / effect + far**2 / harm  # to M theta' = x, and to a safe M
        line = (off < 0) & (theta - step * s.gamma * effect >= x / M)
        return np.asarray(s.dose[i] ** 2 / 2 * np.where(line, step * off, corner))

    def n(n_best: float) -> Array:
        low, high = s.value[i], np.full(len(i), s.value[b])
        for t in (np.append(grid, 1.0), *[fine] * 4):  # a global search for the worst x, then ever closer
            x = low + (high - low) * t[:, None]
            need = (1 - n_best * D_best(x)) / D_rival(x)
            k = np.argmax(need, axis=0)
            at = (np.maximum(k - 1, 0), np.minimum(k + 1, len(t) - 1))
            low, high = (np.take_along_axis(x, j[None], axis=0)[0] for j in at)
        return np.asarray(need.max(axis=0))

    def total(log_n: float) -> float:
        return math.exp(log_n) + float(np.sum(n(math.exp(log_n))))

    least = math.log(1 / float(np.min(D_best(s.value[i]))))  # with fewer pulls of i*, no number of n_i is enough
    most = math.log(total(least + 1))
    found = minimize_scalar(total, bounds=(least, most), method="bounded", options={"xatol": 1e-9})
    shares = np.zeros(len(s.theta))
    shares[b], shares[i] = math.exp(found.x), n(math.exp(found.x))
    time = float(shares.sum())
    return CharacteristicTime(time, time * kl(problem.delta), shares / time)


def xi(a: float, x: float) -> float:
    """xi_a(x) = 2^(a sqrt(log2 max(x, 2))) of Section 5.1."""
    return math.inf if math.isinf(x) else _power(2.0, a * math.sqrt(math.log2(max(x, 2.0))))


def xi_bound(a: float, x: float, z: float) -> float:
    """Proposition 1 (prop:exp_sqrt_fun): xi_a(x) is at most this for every z > 0, and at least 1."""
    return _power(max(x, 2.0), z) + _power(2.0, a**2 / z)


def _power(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


def Phi(alpha: float, a0_mu: float, gamma: float) -> float:
    """Phi_i(alpha) of Lemma 8 (lem:asafe_linear_lb2): from this epoch on a_s is at least gamma / ((1 + alpha) mu_i)."""
    if alpha <= 0 or a0_mu * alpha <= 0:
        return math.inf
    x = max(math.log2(4 / (gamma * alpha)), 3.0)  # the proof's; at 3 the floor of 8 covers it
    return max(
        8.0,
        math.sqrt(max(8 * math.log2(2 * gamma / alpha), 0.0)),
        math.sqrt(max(4 * math.log2(2 * gamma / (a0_mu * alpha)), 0.0)),
        4 * math.log2(math.sqrt(2) / gamma),
        x + 2 * math.log2(x),
    )


@dataclass(frozen=True)
class LinearBound:
    pulls: float
    case: list[int | None]  # 1 to 4; None for the best arm
    epochs: Array  # L_i: arm i is eliminated by then
    by_arm: Array  # pulls of each arm


def linear_upper_bound(problem: Problem, scenario: Scenario) -> LinearBound:
    """Lemma 10 (thm:linear_upper_bound), with L_i of Lemma 9 (lem:i_termination_bound), rounded up.

    Two corrections to Lemma 9. (1) Where M_i* is safe, its alternative conditions let the best arm's lower bound rise
    to gamma theta_i*/mu_i*, which it cannot: it ends at M_i* theta_i*. They hold with the value of i* in place of
    gamma theta_i*/mu_i*: case 1 applies to mu = gamma/M_i*, since a_s(i*) >= gamma / (mu + 2 epsilon/a_s) for it too.
    (2) Epoch l measures at the dose of epoch l - 1, so that dose must be large enough: Phi_i is loose enough for that
    except for tiny start doses, where it takes one epoch more (see `reached`).
    """
    s = _Lines.of(problem, scenario, "upper")
    b, gamma, d = s.best, s.gamma, len(s.theta)
    mu, alpha = np.maximum(s.mu, TINY), s.alpha
    ratio = s.theta / mu

    def reached(j: int, alpha: float) -> float:
        """The epoch that measures arm j at gamma / ((1 + alpha) mu_j) or more: Phi_j, or one later."""
        phi, a = Phi(alpha, s.a0[j] * mu[j], gamma), float(s.a0[j])
        if math.isinf(phi):
            return phi
        for l in range(1, math.ceil(phi)):
            a = gamma / (mu[j] + 2.0 ** (1 - l) / a)  # the recursion of Lemma 7 (lem:asafe_lb)
        return math.ceil(phi) + int(a < gamma / ((1 + alpha) * mu[j]))

    def Psi(top: float, x: float) -> float:
        return math.ceil(math.log2(4 * top / x)) if x > 0 else math.inf

    def L(i: int) -> float:
        x = s.value[b] - gamma * ratio[i]  # correction 1; as printed, gamma (ratio[b] - ratio[i])
        Psi1 = Psi(2 + ratio[b] + ratio[i], x)
        enough = [max(Psi1, reached(i, 1), reached(b, 1))]
        if s.safe_M[i]:
            Psi2 = max(Psi(2 + s.M[i] * s.theta[i] / gamma, s.gap[i]), math.ceil(math.log2(4 / gamma)))
            enough.append(max(Psi2, reached(i, alpha[i]), reached(b, 1)))
        if s.safe_M[b]:
            Psi2 = max(Psi(2 + s.M[b] * s.theta[b] / gamma, x), math.ceil(math.log2(4 / gamma)))
            enough.append(max(Psi2, reached(i, 1), reached(b, alpha[b])))
        if s.safe_M[i] and s.safe_M[b]:
            enough.append(max(Psi(1, s.gap[i]), reached(i, alpha[i]), reached(b, alpha[b])))
        return max(min(enough), 1)

    epochs = np.array([L(i) if i != b else 0 for i in range(d)], dtype=float)
    epochs[b] = epochs.max()  # i* is pulled as long as the last rival
    with np.errstate(over="ignore"):
        by_arm = 4 * problem.sigma**2 * np.log(8 * d * epochs**2 / problem.delta) * 4.0**epochs + epochs
    case = [1 + int(s.safe_M[i]) + 2 * int(s.safe_M[b]) if i != b else None for i in range(d)]
    return LinearBound(2 * float(np.sum(by_arm[s.rivals])), case, epochs, by_arm)


def linear_complexity(problem: Problem, scenario: Scenario) -> Array:
    """N_{c(i),i} of Theorem 2, full version (thm:linear_complexity2); nan for the best arm.

    The pulls are at most sigma^2 log(d/delta) times their sum, up to constants and logarithmic factors (O-tilde), which
    the theorem does not give. The 16 in N_{3,i}, one of those constants, is left out as it is in the other cases.
    """
    s = _Lines.of(problem, scenario, "upper")
    b, gamma, r32 = s.best, s.gamma, math.sqrt(32)

    def warm_up(j: int) -> list[float]:
        """2^(2 Phi_j) by Lemma 11 (lem:ellsafe_simplified), with alpha = 1, or alpha_j where M_j is safe."""
        a0_mu = s.a0[j] * s.mu[j]
        first = xi(4, 1 / a0_mu if a0_mu > 0 else math.inf) * xi(4, 2 * gamma)
        if not s.safe_M[j]:
            return [xi(r32, 2 * gamma), first]
        x = 1 / s.alpha[j] if s.alpha[j] > 0 else math.inf  # M_j mu_j / (gamma - M_j mu_j)
        return [xi(r32, 2 * gamma) * xi(r32, x), first * xi(4, x), (x / gamma) ** 2]

    def N(i: int) -> float:
        if s.safe_M[i] and s.safe_M[b]:
            top = 1.0
        elif s.safe_M[i] or s.safe_M[b]:
            j = i if s.safe_M[i] else b
            top = 1 + (s.M[j] * s.theta[j] / gamma) ** 2
        else:
            top = 1 + (s.theta[b] / s.mu[b]) ** 2 + (s.theta[i] / s.mu[i]) ** 2
        return float(top / s.gap[i] ** 2 + max(_power(gamma, -8.0), *warm_up(i), *warm_up(b)))

    return np.array([N(i) if i != b else math.nan for i in range(len(s.theta))])


def linear_corollary(problem: Problem, scenario: Scenario) -> float:
    """Corollary 1 (cor:linear_simplified), times sigma^2: pulls up to the constants and logarithms of O-tilde."""
    s = _Lines.of(problem, scenario, "upper")
    if np.any(s.safe_M):
        raise NotStated(f"Corollary 1 assumes that no largest dose is safe; that of {named(problem, s.safe_M)} is")
    C, ratio, b = xi(math.sqrt(32), 2 * s.gamma), s.theta / s.mu, s.best
    first = [C * xi(4, 1 / x) for x in s.a0 * s.mu]
    terms = [
        (1 + ratio[b] ** 2 + ratio[i] ** 2) / s.gap[i] ** 2 + max(_power(s.gamma, -8.0), first[i], first[b])
        for i in s.rivals
    ]
    return float(problem.sigma**2 * math.log(len(ratio) / problem.delta) * sum(terms))
