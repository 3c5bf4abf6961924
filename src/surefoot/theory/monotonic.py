"""The monotonic setting: a change of measure for every rival, and how many pulls Algorithm 2 needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..problem import Problem
from ..scenario import Scenario
from .common import HAIR, Array, NotStated, kl, named, truth_of, variances


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
    truth = truth_of(problem, scenario, "monotonic", "lower")
    effect, harm = variances(problem, scenario)
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
    truth = truth_of(problem, scenario, "monotonic", "upper")
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
                f"{named(problem, (epochs == 0) & ~best)} from the best arm (effect jumps there, or harm is level)"
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
    truth = truth_of(problem, scenario, "monotonic", "upper")
    a0, M, K, gamma, top = problem.starts, problem.largest, problem.lipschitz, problem.limit, problem.ceiling
    slack, d = top - gamma, len(a0)
    if np.any(short := scenario.harms(M) < top - HAIR * abs(top)):
        raise NotStated(
            f"Assumption 2 fails: harm does not reach limit + slack within the largest dose of {named(problem, short)}"
        )
    low = a0.copy()
    with np.errstate(all="ignore"):
        for k in range(-10, 60):
            low = np.where(scenario.harms(low) <= gamma - 1.5, low, a0 - 2.0**k)
        short = ~(scenario.harms(low) <= gamma - 1.5)
    if np.any(short):
        raise NotStated(f"Assumption 3 fails: no dose has a harm of limit - 3/2 or less, of {named(problem, short)}")

    def g_inverse(x: float) -> Array:
        return _inverse(scenario, np.full(d, x), low, M)

    dose = np.linspace(g_inverse(gamma - 1.5), g_inverse(top), 2001)
    slope = np.diff(scenario.harms(dose), axis=0).min(axis=0) / np.diff(dose[:2], axis=0)[0]
    if np.any(flat := slope <= HAIR):
        raise NotStated(f"Assumption 3 fails: harm is level in places, so there is no L, of {named(problem, flat)}")
    steep = np.diff(scenario.effects(dose), axis=0).max(axis=0) / np.diff(dose[:2], axis=0)[0]
    if np.any(fast := steep > K * (1 + 1e-6)):
        raise NotStated(
            "its proof assumes that effects are 1-Lipschitz (with doses in units of 1/K); "
            f"that of {named(problem, fast)} is not"
        )
    L = float(np.max(K / slope))
    at_limit = K * (g_inverse(gamma) - a0)
    first = K * np.maximum(g_inverse(top - 0.5) - a0, 0) + K * np.maximum(g_inverse(gamma - 0.5) - a0, 0)
    gap = truth.value[truth.best] - truth.value
    i = np.arange(d) != truth.best
    terms = (1 + L**3 + (1 + L) * at_limit[i] ** 2 / slack**2) / gap[i] ** 2
    return problem.sigma**2 * math.log(1 / problem.delta) * float(terms.sum() + first.sum())
