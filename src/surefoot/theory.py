"""What is known in theory about a problem whose truth is known: gaps, lower bounds, and how many pulls the paper's two
algorithms need.

Formulas carry the symbols of Wang, Wagenmaker and Jamieson: theta, mu, gamma (the limit), epsilon_safe (the slack), a0
and M (start and largest dose), S_i (the safe doses), i* (the best arm). The upper bounds are about `safebai-linear` and
`safebai-monotonic` as they are coded here, with `unit` 1; they hold with probability 1 - delta, whenever the two
readings of all Estimates are within epsilon_l. Where a formula had to be corrected for that, its docstring says how.

A theorem whose assumptions fail says nothing: `NotStated` is raised then, and says in words which one fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .checks import SurefootError
from .noise import Gaussian
from .problem import Problem, Shape
from .scenario import Scenario, Truth

Array = NDArray[np.float64]
HAIR = 1e-9  # relative; what differs by less is taken for rounding, as everywhere where pulls are judged
TINY = 1e-200  # in place of a harm slope of 0, so that ratios stay numbers


class NotStated(SurefootError):
    """A theorem says nothing about this problem; the message says which of its assumptions fails."""


# What every statement needs


def gaps(problem: Problem, scenario: Scenario) -> Array:
    """Delta_i of Section 3, both settings: how far each arm's value is below the best one's (inf: no safe dose)."""
    value = scenario.truth(problem).value
    return np.where(np.isfinite(value), value.max() - value, np.inf)


def kl(delta: float) -> float:
    """kl(delta, 1 - delta), the evidence that a delta-PAC algorithm needs against every alternative."""
    return (1 - 2 * delta) * math.log((1 - delta) / delta) if delta < 0.5 else 0.0


def _truth(problem: Problem, scenario: Scenario, shape: Shape, bound: Literal["lower", "upper"]) -> Truth:
    """The truth of a problem that the paper's statements are about; else NotStated."""
    if problem.shape != shape:
        raise NotStated(f"it is a statement about the {shape} shape; this problem is {problem.shape}")
    if problem.levels is not None:
        raise NotStated("doses may only be given at levels; the paper's doses have no steps")
    if broken := scenario.violations(problem):
        raise NotStated("the scenario is not as the problem declares: " + "; ".join(broken))
    truth = scenario.truth(problem)
    second, best = np.sort(truth.value)[-2:]
    if best - second <= HAIR * abs(best):
        raise NotStated("two arms have the same, largest value; the paper assumes that one arm is the best")
    if bound == "upper" and problem.refine is not None:
        raise NotStated("the problem asks to refine the winner's dose; the paper stops once the best arm is known")
    if bound == "lower":
        if problem.tolerance is not None:
            raise NotStated("the problem has a tolerance, so an algorithm need not find the best arm")
        if any(not isinstance(noise, Gaussian) for noise in scenario.noises(problem)):
            raise NotStated("the noise is not Gaussian, and a lower bound depends on its law")
        if scenario.correlation:
            raise NotStated(f"the two readings have correlation {scenario.correlation:g}; none is assumed")
    return truth


def _variances(problem: Problem, scenario: Scenario) -> tuple[float, float]:
    effect, harm = scenario.noises(problem)
    return effect.scale**2, harm.scale**2


def _named(problem: Problem, which: Any) -> str:
    names = [name for name, yes in zip(problem.names, which, strict=True) if yes]
    return ", ".join(names if len(names) < 6 else [*names[:4], f"and {len(names) - 4} others"])


# The linear setting


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
        truth = _truth(problem, scenario, "linear", bound)
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
        raise NotStated(f"Theorem 1 has no largest dose (M = inf); that of {_named(problem, s.safe_M)} is safe")
    reach = s.theta * np.where(s.theta > 0, s.M, 0.0)
    if np.any(short := reach < s.value[s.best] * (1 - HAIR)):
        raise NotStated(
            "Theorem 1 has no largest dose (M = inf) and slopes above 0; here no harm, however low, could make "
            f"the best arm of {_named(problem, short)}"
        )
    effect, harm = _variances(problem, scenario)
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
    i, b, (effect, harm) = s.rivals, s.best, _variances(problem, scenario)
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
        raise NotStated(f"Corollary 1 assumes that no largest dose is safe; that of {_named(problem, s.safe_M)} is")
    C, ratio, b = xi(math.sqrt(32), 2 * s.gamma), s.theta / s.mu, s.best
    first = [C * xi(4, 1 / x) for x in s.a0 * s.mu]
    terms = [
        (1 + ratio[b] ** 2 + ratio[i] ** 2) / s.gap[i] ** 2 + max(_power(s.gamma, -8.0), first[i], first[b])
        for i in s.rivals
    ]
    return float(problem.sigma**2 * math.log(len(ratio) / problem.delta) * sum(terms))


# The monotonic setting


def monotonic_lower_bound(problem: Problem, scenario: Scenario) -> Array:
    """The change of measure of Theorem 1's proof in the monotonic setting (not in the paper): mean pulls of each rival.

    It holds for every algorithm that is right with probability 1 - delta for all nondecreasing effects and all
    nondecreasing K-Lipschitz harms and never pulls above limit + slack; the best arm has 0. Two alternatives make a
    rival i the best arm and differ from the truth only in its curves:
    - its effect is at least the best value from its largest safe dose on: a pull tells Delta_i^2 / (2 sigma^2) or less;
    - its harm ends at the limit, so that its largest dose is safe: a pull tells slack^2 / (2 sigma^2) or less, or
      (g_i(M_i) - limit)^2 / (2 sigma^2) where that is less. That makes it the best arm if its effect at M_i is above
      the best value or can be so for all that was seen, which is when g_i(M_i) > limit + slack.
    """
    truth = _truth(problem, scenario, "monotonic", "lower")
    effect, harm = _variances(problem, scenario)
    best, slack = truth.value[truth.best], problem.ceiling - problem.limit
    over = scenario.harms(problem.largest) - problem.limit
    hides = (over > 0) & ((scenario.effects(problem.largest) > best) | (over > slack))
    with np.errstate(divide="ignore"):
        pulls = effect / (best - truth.value) ** 2
    pulls = np.maximum(pulls, np.where(hides, harm / np.where(hides, np.minimum(over, slack), 1.0) ** 2, 0.0))
    pulls[truth.best] = 0.0
    return np.asarray(2 * kl(problem.delta) * pulls)


def _inverse(scenario: Scenario, x: Array, low: Array, high: Array) -> Array:
    """g_i^-1(x): the smallest dose from low to high with a harm of x or more; low or high where x is out of reach."""
    low, high = (np.broadcast_to(a, x.shape).astype(float) for a in (low, high))
    start = low.copy()
    at_start = scenario.harms(start) >= x
    for _ in range(100):
        mid = 0.5 * (low + high)
        enough = scenario.harms(mid) >= x
        low, high = np.where(enough, low, mid), np.where(enough, mid, high)
    return np.where(at_start, start, high)


@dataclass(frozen=True)
class MonotonicBound:
    pulls: float
    epochs: Array  # the last epoch of each arm: l-bar(i), or the one by which it has crossed the limit if that is later
    estimates: Array  # of each arm; their sum is t-bar
    by_arm: Array  # pulls of each arm
    n: Array  # n-bar_{i,l}, (epochs, arms)
    m: Array  # m-bar_{i,l}
    a_u: Array  # a-bar_u^l(i)


def monotonic_upper_bound(problem: Problem, scenario: Scenario) -> MonotonicBound:
    """Theorem 3, full version (thm:monotonic_complexity2), with sigma^2, largest doses and Lipschitz constants K.

    Doses are measured from the start dose and in units of 1/K, in which g_i is 1-Lipschitz; effects need not be in
    [0, 1]. What differs from the printed theorem, so that it bounds Algorithm 2 as it is coded here:
    - n-bar, m-bar: rounded up. g~^-1 is a0 below g(a0), not only below the range of g: no dose is below a0.
    - l + 2 assumes a_u - a_s <= 1: the l is log2((a_u - a_s)/epsilon_l), rounded up, at least 1. The 2 are the first
      Estimates at a_s and a_u; the last round of a bisection makes none, which leaves one for the Estimate back at a_u.
    - a-bar_u: the recursion of Lemma 19 (lem:aunhat_bound2) itself, from g^-1(limit + slack) in epoch log2(8/slack).
      The closed form does not follow from it: it halves the dose of the crossing once too often and does not round
      log2(8/slack) up. Where the bisection gives up, a_u is within 2 epsilon_l of a dose that was tried, not 1.
    - t-bar: an arm stays until it has crossed the limit, also when that is after l-bar(i).
    - A largest dose M takes the place of Assumption 2. A climb that ends at M bounds the value as a crossing does, so
      log2(8/slack) stands. M itself is shown to be unsafe once 2 epsilon_l <= g(M) - limit, and a_u is M until then.
    """
    truth = _truth(problem, scenario, "monotonic", "upper")
    a0, M, K, gamma, top = problem.starts, problem.largest, problem.lipschitz, problem.limit, problem.ceiling
    slack, d, best = top - gamma, len(a0), np.arange(len(a0)) == truth.best
    hair = HAIR * max(abs(gamma), abs(top))  # so that rounding, or harm that is level somewhere, cannot break a bound

    def above(x: float) -> Array:  # no dose with a harm up to x lies above this one
        return K * (_inverse(scenario, np.full(d, min(x, top) + hair), a0, M) - a0)

    def below(x: float) -> Array:  # no dose with a harm from x on lies below this one
        return K * (_inverse(scenario, np.full(d, min(x, top) - hair), a0, M) - a0)

    def f(a: Array) -> Array:
        return scenario.effects(np.minimum(a0 + a / K, M))

    l_bound = max(math.ceil(math.log2(8 / slack)), 1)  # Lemma 22 (lem:ellhatun_upper)
    over = np.clip(scenario.harms(M) - gamma, 1e-300, slack)
    l_cross = np.maximum(l_bound, np.ceil(np.log2(2 / over)))
    epochs, rows, l = np.zeros(d), [], 0
    a_u = highest = above(top)
    while np.any(epochs == 0):
        l += 1
        e = 2.0**-l
        if l > 60:
            raise NotStated(
                f"l-bar is infinite, or above 60: doses ever closer to the limit do not tell "
                f"{_named(problem, (epochs == 0) & ~best)} from the best arm (effect jumps there, or harm is level)"
            )
        n = above(gamma - e) - (below(gamma - 6 * e) if l > 1 else 0)
        m = above(top - e) - (below(top - 6 * e) if l > 1 else 0)
        n, m = np.ceil(n / e - 1e-6), np.where(l <= l_cross, np.ceil(m / e - 1e-6), 0)  # 1e-6: rounding
        closer = a_u / 2 + (above(gamma + 2 * e) + 2 * e) / 2
        a_u = np.where(l > l_cross, np.minimum(a_u, closer), a_u)
        a_s = below(gamma - 3 * e)
        halvings = np.maximum(np.ceil(np.log2(np.maximum(highest - a_s, e) / e)), 1)
        rows.append((n, m, a0 + a_u / K, m + n + halvings + 2))
        gone = (f(a_u) + 4 * e <= f(a_s)[best]) & (l >= l_bound) & ~best
        epochs = np.where((epochs == 0) & gone, l, epochs)
        if np.all(epochs[~best] > 0):
            epochs[best] = l  # i* is pulled as long as the last rival
    n, m, a_u, estimates = (np.array(column) for column in zip(*rows, strict=True))
    ls = np.arange(1.0, l + 1)[:, None]
    estimates = np.where(ls <= epochs, estimates, 0.0)
    t = estimates.sum()
    N = np.ceil(2 * problem.sigma**2 * math.log(8 * t**2 / problem.delta) * 4.0**ls)  # N_{l, t-bar}
    by_arm = np.sum(estimates * N, axis=0)
    return MonotonicBound(float(by_arm.sum()), epochs, estimates.sum(axis=0), by_arm, n, m, a_u)


def monotonic_corollary(problem: Problem, scenario: Scenario) -> float:
    """Corollary 2 (cor:mon_simplified_complexity), times sigma^2: pulls up to the constants and logarithms of O-tilde.

    Doses are measured from the start dose and in units of 1/K. Its proof also uses that every f_i is 1-Lipschitz, and
    has log(1/delta) before both sums. Derivatives are taken as slopes between 2,001 doses.
    """
    truth = _truth(problem, scenario, "monotonic", "upper")
    a0, M, K, gamma, top = problem.starts, problem.largest, problem.lipschitz, problem.limit, problem.ceiling
    slack, d = top - gamma, len(a0)
    if np.any(short := scenario.harms(M) < top - HAIR * abs(top)):
        raise NotStated(
            f"Assumption 2 fails: harm does not reach limit + slack within the largest dose of {_named(problem, short)}"
        )
    low = a0.copy()
    with np.errstate(all="ignore"):
        for k in range(-10, 60):
            low = np.where(scenario.harms(low) <= gamma - 1.5, low, a0 - 2.0**k)
        short = ~(scenario.harms(low) <= gamma - 1.5)
    if np.any(short):
        raise NotStated(f"Assumption 3 fails: no dose has a harm of limit - 3/2 or less, of {_named(problem, short)}")

    def g_inverse(x: float) -> Array:
        return _inverse(scenario, np.full(d, x), low, M)

    dose = np.linspace(g_inverse(gamma - 1.5), g_inverse(top), 2001)
    slope = np.diff(scenario.harms(dose), axis=0).min(axis=0) / np.diff(dose[:2], axis=0)[0]
    if np.any(flat := slope <= HAIR):
        raise NotStated(f"Assumption 3 fails: harm is level in places, so there is no L, of {_named(problem, flat)}")
    steep = np.diff(scenario.effects(dose), axis=0).max(axis=0) / np.diff(dose[:2], axis=0)[0]
    if np.any(fast := steep > K * (1 + 1e-6)):
        raise NotStated(
            "its proof assumes that effects are 1-Lipschitz (with doses in units of 1/K); "
            f"that of {_named(problem, fast)} is not"
        )
    L = float(np.max(K / slope))
    at_limit = K * (g_inverse(gamma) - a0)
    first = K * np.maximum(g_inverse(top - 0.5) - a0, 0) + K * np.maximum(g_inverse(gamma - 0.5) - a0, 0)
    gap = truth.value[truth.best] - truth.value
    i = np.arange(d) != truth.best
    terms = (1 + L**3 + (1 + L) * at_limit[i] ** 2 / slack**2) / gap[i] ** 2
    return problem.sigma**2 * math.log(1 / problem.delta) * float(terms.sum() + first.sum())


# All of it


def summary(problem: Problem, scenario: Scenario) -> dict[str, Any]:
    """All of the above as plain numbers for JSON; what is not available is {"why": ...} in its place."""
    truth, linear = scenario.truth(problem), problem.shape == "linear"

    def tell(statement: Callable[[Problem, Scenario], Any]) -> Any:
        try:
            return statement(problem, scenario)
        except NotStated as no:
            return {"why": str(no)}

    def part(told: Any, key: str) -> Any:
        return told if isinstance(told, dict) else getattr(told, key)

    def total(told: Any, pulls: Callable[[Any], Any], by: str, holds: str) -> dict[str, Any]:
        return told if isinstance(told, dict) else {"pulls": _plain(pulls(told)), "by": by, "holds": holds}

    time: Any = {"why": "it is for the linear shape: of the monotonic one, whole curves would have to be told apart"}
    N: Any = {"why": "Theorem 2 is about the linear shape"}
    case: Any = {"why": "cases are of the linear shape"}
    if linear:
        lower, lower_by = tell(linear_lower_bound), "Theorem 1, times sigma^2"
        time, N = tell(characteristic_time), tell(linear_complexity)
        upper, upper_by = tell(linear_upper_bound), "Lemma 10, with L_i of Lemma 9"
        case, corollary = part(upper, "case"), tell(linear_corollary)
    else:
        lower, lower_by = tell(monotonic_lower_bound), "a change of measure for every rival"
        upper, upper_by = tell(monotonic_upper_bound), "Theorem 3"
        corollary = tell(monotonic_corollary)

    unsafe = "its start dose is not safe, so it has no value"
    columns = {
        "value": (np.where(np.isnan(truth.dose), np.nan, truth.value), unsafe),
        "largest_safe_dose": (truth.dose, unsafe),
        "gap": (np.where(np.isnan(truth.dose), np.nan, gaps(problem, scenario)), unsafe),
        "lower_bound": (lower, ""),
        "share": (part(time, "shares"), ""),
        "case": (case, "it is the best arm"),
        "epochs": (part(upper, "epochs"), ""),
        "pulls": (part(upper, "by_arm"), ""),
        "complexity": (N, "it is the best arm"),
    }
    arms: list[dict[str, Any]] = [{"name": name} for name in problem.names]
    for key, (cells, why) in columns.items():
        for k, row in enumerate(arms):
            row[key] = cells if isinstance(cells, dict) else _plain(cells[k], why)

    order = problem.sigma**2 * math.log(len(arms) / problem.delta)
    mean, hidden = "for the mean", "up to constants and logarithmic factors (O-tilde)"
    return {
        "scenario": scenario.name,
        "shape": problem.shape,
        "delta": problem.delta,
        "best": problem.names[truth.best],
        "gaps": {row["name"]: row["gap"] for row in arms},
        "lower_bound": total(lower, np.sum, lower_by, mean),
        "characteristic_time": total(time, lambda t: t.pulls, "T* kl(delta, 1 - delta)", mean)
        | ({} if isinstance(time, dict) else {"time": time.time}),
        "upper_bound": total(upper, lambda u: u.pulls, upper_by, "with probability 1 - delta"),
        "order": total(N, lambda n: order * np.nansum(n), "Theorem 2", hidden),
        "corollary": total(corollary, float, "Corollary 1" if linear else "Corollary 2", hidden),
        "arms": arms,
    }


def _plain(x: Any, why: str = "") -> Any:
    """A number for JSON; `why` where there is none."""
    if x is None or math.isnan(x):
        return {"why": why}
    return x if isinstance(x, int) else float(x) if math.isfinite(x) else {"why": "infinite, or above 1e308"}


__all__ = [
    "CharacteristicTime",
    "LinearBound",
    "MonotonicBound",
    "NotStated",
    "Phi",
    "characteristic_time",
    "gaps",
    "kl",
    "linear_complexity",
    "linear_corollary",
    "linear_lower_bound",
    "linear_upper_bound",
    "monotonic_corollary",
    "monotonic_lower_bound",
    "monotonic_upper_bound",
    "summary",
    "xi",
    "xi_bound",
]


def show(found: dict[str, Any]) -> Any:
    """A summary as a table for the terminal."""
    from rich.console import Group
    from rich.table import Table

    def cell(x: Any) -> str:
        return f"{x:,.4g}" if isinstance(x, (int, float)) else "" if isinstance(x, dict) else str(x)

    head = Table(
        "", "pulls", "by", "holds", title=f"{found['scenario']}: best is {found['best']}, delta {found['delta']:g}"
    )
    for key in ("lower_bound", "characteristic_time", "upper_bound", "order", "corollary"):
        bound = found[key]
        row = (
            ["not stated", bound["why"], ""] if "why" in bound else [cell(bound["pulls"]), bound["by"], bound["holds"]]
        )
        head.add_row(key.replace("_", " "), *row)
    names = [key for key in found["arms"][0] if any(not isinstance(arm[key], dict) for arm in found["arms"])]
    arms = Table(*(name.replace("_", " ") for name in names))
    for arm in found["arms"]:
        arms.add_row(*(cell(arm[name]) for name in names))
    return Group(head, arms)
