"""A lower bound that knows that a dose must be certified before it is given.

Theorem. A design is safe and right if on every instance of a problem (every truth within its assumptions) the
probability is at most delta that it pulls once above the ceiling (limit + slack; the limit in the linear shape) or does
not name the best arm. Let delta < 1/2, N_i(b) be its mean number of pulls of arm i at dose b on a truth with one best
arm i* and independent readings, and p_i(a) the probability that arm i is ever pulled above dose a. Write D(b) for the
Kullback-Leibler divergence of a pull on the truth from one on another instance, and kl+(q) for kl(q, delta), 0 where
q < delta. Then

(1) for every instance that differs in arm i alone, and where all doses of it above a are above the ceiling,
    sum over doses b <= a of N_i(b) D(b) >= kl+(p_i(a));
(2) for every instance with another best arm that differs in arms i and j alone, and all doses a_i and a_j,
    sum over b <= a_i of N_i(b) D(b) + sum over b <= a_j of N_j(b) D(b) >= kl+(1 - delta - p_i(a_i) - p_j(a_j)),
    where doses that are above the ceiling there count for nothing; a_i = inf, with p_i = 0, is allowed.

Limits of such instances will do, as D is continuous in them (a harm that is just above the limit, a value just above
the best one). So the least sum of all N under (1) and (2), over all N >= 0 and p in [0, 1], is a lower bound on the
mean pulls.

Proof. (1) Let s be the time of the first pull of arm i above a, that pull not included, or the end. The event that arm
i is pulled above a, A, is known at s; its probability is p_i(a) on the truth, and at most delta on the other instance,
where such a pull is unsafe. The log likelihood ratio at s has a mean of at most the sum (Wald: only pulls before s
count, and those of arm i are at doses <= a), and of at least kl(P(A), P'(A)) (Kaufmann, Cappe and Garivier 2016, Lemma
1). As P'(A) <= delta, that is kl+(p_i(a)) or more.
(2) Let s be the time of the first pull of i above a_i, of j above a_j, or of any arm at a dose that is above the
ceiling on either instance, or the end. E = {the end comes first and i* is named, or s is a pull above the ceiling of
the other instance, not of the truth}. On the truth, what is not in E is an error or one of the two climbs, so P(E) >=
1 - delta - p_i(a_i) - p_j(a_j). On the other instance E is an error: P'(E) <= delta. The rest is as in (1). QED.

As delta -> 0 both kl+ tend to q log(1/delta), and the least sum to C* log(1/delta): `rate` is C*, of the linear
programme with q in place of kl+. C* kl(delta, 1 - delta) is what such bounds are often quoted as; for a fixed delta it
is no bound on a design that climbs in some trials and not in others, and `pulls` is.

What is computed. kl+ is convex, so tangents make linear programmes, with the constraints added that are broken most
(Kelley 1960). Fewer constraints make the least sum smaller: which instances and which doses a are tried, and where it
is stopped, costs tightness only. N on a grid of doses could make it larger; so the dual solution is checked between the
grid's doses and scaled down by what it is above 1 there, after which it proves its value for all doses (weak duality).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are used: together they take as long as all the rest
from numpy.typing import NDArray

from ..problem import Problem
from ..scenario import Scenario
from .common import Array, NotStated, check_readings, within_assumptions

FINE = 1500  # doses of an arm where the dual is checked
LEVELS = (0.1, 0.2, 0.35, 0.5, 0.7)  # where between the best arm's value and a rival's the two may meet
ROUNDS, CLOSE = 60, 0.01  # of adding constraints; a constraint that is kept to 1% is kept
TANGENTS = 12  # of kl+
AS_IT_IS = {"presolve": False}  # to simplify these programs takes three times as long as to solve them
Pair = tuple[tuple[int, float, int], ...]  # of two arms: which, its value, which instance
MOST = 1e3  # nats; what a pull tells beyond that changes no bound by a hundredth of a pull


@dataclass(frozen=True)
class CertifiedBound:
    pulls: float  # any design's mean pulls are at least this
    rate: float  # C*: as delta -> 0 they are at least C* log(1/delta)
    by_arm: Array  # pulls of each arm in the least total
    over: float  # the share of them that is above the limit


def certified_lower_bound(problem: Problem, scenario: Scenario) -> CertifiedBound:
    """The theorem above, for this truth."""
    if problem.shape == "levels":
        raise NotStated("it is a statement about lines and curves; this problem has ordered levels")
    truth = within_assumptions(problem, scenario)
    check_readings(problem, scenario)
    kind = _Line if problem.shape == "linear" else _Curve
    arms = [kind(problem, scenario, i, i == truth.best, float(truth.dose[i])) for i in range(len(problem.arms))]
    keys = [arm.key for arm in arms]
    stands = [keys.index(key) for key in keys]  # arms that are alike in all have alike numbers: one stands for all
    second, first = np.sort(truth.value)[-2:]
    sides = {
        i: _Side(arms[i], stands.count(i), float(second if i == truth.best else first)) for i in sorted(set(stands))
    }
    linear, many = problem.shape == "linear", len(sides)
    for side in sides.values():  # programmes of a size that takes seconds
        side.arm.place(int(np.clip((56 if linear else 160) / math.sqrt(many), 16, 32 if linear else 64)))
    counts: dict[int, Array] = {}
    pulls = rate = 0.0
    for group in [list(sides)] if linear and many <= 12 else [[i] for i in sides]:
        some = [sides[i] for i in group]
        pairs = _Pairs(some, [float(truth.value[i]) for i in group], group.index(truth.best) if len(group) > 1 else 0)
        if problem.delta < 0.5:
            least, found = _Program(some, problem.delta, exact=True).solve(pairs)
            pulls, counts = pulls + least, counts | dict(zip(group, found, strict=True))
        rate += _Program(some, problem.delta, exact=False).solve(pairs)[0]
    by_arm = np.array([counts[i].sum() if counts else 0.0 for i in stands])
    over = sum(
        sides[i].weight * n[arms[i].g(arms[i].doses) > problem.limit * (1 + 1e-9)].sum() for i, n in counts.items()
    )
    return CertifiedBound(pulls, rate, by_arm, float(over / max(by_arm.sum(), 1e-300)))


class _Pairs:
    """Which values x the best arm and a rival can both have, by the nearest instances, for all that N tells."""

    def __init__(self, sides: Sequence[_Side], values: list[float], best: int):
        self.sides, self.values, self.best = sides, values, best
        self.known: dict[tuple[int, float], Array] = {}

    def told(self, n: int, x: float) -> Array:
        if (n, x) not in self.known:
            self.known[n, x] = self.sides[n].arm.others(x, self.sides[n].arm.doses)
        return self.known[n, x]

    def __call__(self, N: list[Array], enough: float) -> Iterator[Pair]:
        for k in range(len(self.sides)):
            for t in LEVELS if k != self.best else ():
                x = self.values[self.best] - t * (self.values[self.best] - self.values[k])
                both = [(n, x, self.told(n, x) @ N[n]) for n in (self.best, k)]
                if sum(float(seen.min()) for *_, seen in both) < enough:
                    yield tuple((n, x, int(seen.argmin())) for n, x, seen in both)


class _Arm(ABC):
    """Doses of one arm, and the instances that differ from the truth in it."""

    f: Any  # the true curves
    g: Any
    doses: Array
    edge: Array  # no dose above doses[j] is below this one
    certain: NDArray[np.bool_]  # where no instance has all doses above doses[j] above the ceiling

    def __init__(self, problem: Problem, scenario: Scenario, i: int, best: bool, top: float):
        self.effect, self.harm = scenario.noises(problem)
        self.limit, self.ceiling, self.it, self.best = problem.limit, problem.ceiling, problem.arms[i], best
        self.f, self.g, self.top = scenario.effect[i], scenario.harm[i], top
        self.key = (best, self.it.start, self.it.largest, self.it.lipschitz, self.it.levels, self.f, self.g)

    @abstractmethod
    def unsafe(self, y: Array) -> Array:
        """(1): what pulls at y tell from an instance with all doses above doses[j] above the ceiling, (j, y)."""

    @abstractmethod
    def others(self, x: float, y: Array) -> Array:
        """(2): what pulls at y tell from instances with a value of at most x (the best arm) or at least x, (any, y)."""

    @abstractmethod
    def place(self, many: int) -> None:
        """Choose doses, at most so many and the largest safe one."""

    def spread(self, high: float, many: int, steps: Any) -> None:
        """Doses from start to high, apart in proportion to `steps`; or the levels."""
        if self.it.levels:
            self.doses = np.array([x for x in self.it.levels if x <= high])
            levels = np.append(self.it.levels, math.inf)
            self.edge = levels[np.searchsorted(levels, self.doses, side="right")]
            return
        fine = np.linspace(self.it.start, high, 4001)
        along = np.concatenate([[0.0], np.cumsum(np.diff(fine) / steps(0.5 * (fine[1:] + fine[:-1])))])
        self.edge = self.doses = np.unique(np.append(np.interp(np.linspace(0, along[-1], many), along, fine), self.top))

    def level(self, dose: Array) -> Array:
        """The largest dose at or below that may be given."""
        levels = self.it.levels
        if not levels:
            return np.minimum(dose, self.it.largest)
        at = np.searchsorted(np.array(levels) - 1e-12 * np.abs(levels), dose, side="right") - 1
        return np.array(levels)[np.maximum(at, 0)]

    def told(self, y: Array, effect: Array, harm: Array) -> Array:
        """Nats of a pull at y against these means."""
        nats = self.effect.divergence(self.f(y), effect) + self.harm.divergence(self.g(y), harm)
        return np.asarray(np.minimum(nats, MOST))


class _Curve(_Arm):
    """Effect and harm never fall; harm rises by at most K for each unit of dose, and is at most the limit at start."""

    def __init__(self, problem: Problem, scenario: Scenario, i: int, best: bool, top: float):
        super().__init__(problem, scenario, i, best, top)
        self.K, self.most = self.it.lipschitz, 1.0 if self.harm.binary else math.inf

    def place(self, many: int) -> None:
        low, slack, at = self.it.start, self.ceiling - self.limit, np.linspace(self.it.start, self.it.largest, 20001)
        high = float(at[self.g(at) <= self.ceiling].max())
        self.spread(high, many, lambda a: np.maximum(self.ceiling - self.g(a), 0.6 * slack))
        self.certain = (self.edge <= low + slack / self.K) | (self.ceiling >= self.most)

    def unsafe(self, y: Array) -> Array:
        harm = np.minimum(np.maximum(self.g(y), self.ceiling - self.K * (self.edge[:, None] - y)), self.most)
        return np.where((y <= self.doses[:, None]) & ~self.certain[:, None], self.told(y, self.f(y), harm), 0.0)

    def others(self, x: float, y: Array) -> Array:
        """The largest safe dose is b, and the effect is changed where it must be: up to b (the best arm), or from there
        on. Harm is the truth, or the limit at b: then it rises to b as fast as it may. After b it comes back to the
        truth; or rises as fast as it may, to reach the ceiling at the next of our doses where it can."""
        b, g, f = self.doses[:, None], self.g(y), self.f(y)
        early, line = b <= self.top, self.limit + self.K * (y - b)
        before = np.where(early, np.maximum(g, line), np.minimum(g, self.limit))
        back = np.where(early, np.maximum(g, self.limit), np.minimum(g, line))
        harm = np.where(b == self.top, g, np.where(y <= b, before, back))
        end = self.doses + (self.ceiling - self.limit) / self.K
        end = np.append(self.doses, math.inf)[np.searchsorted(self.doses, end * (1 - 1e-12 * np.sign(end)))][:, None]
        rising = np.where(y <= b, harm, np.maximum(harm, self.ceiling - self.K * (end - y)))
        effect = np.where(y <= b, np.minimum(f, x), f) if self.best else np.where(y >= b, np.maximum(f, x), f)
        stays, ends = (self.told(y, effect, np.minimum(z, self.most)) for z in (harm, rising))
        return np.concatenate([stays, np.where(y <= end, ends, 0.0)[(end < math.inf)[:, 0]]])


class _Line(_Arm):
    """Lines through 0; harm at the start dose is at most the limit."""

    def __init__(self, problem: Problem, scenario: Scenario, i: int, best: bool, top: float):
        super().__init__(problem, scenario, i, best, top)
        self.theta, self.mu = float(self.f(np.array(top))) / top, max(float(self.g(np.array(top))) / top, 1e-200)
        self.most = [1 / self.it.largest if noise.binary else math.inf for noise in (self.effect, self.harm)]

    def place(self, many: int) -> None:
        self.spread(self.top, many, lambda a: a * np.maximum(self.limit / (a * self.mu) - 1, 0.1))
        slopes = self.limit / np.append(self.doses, self.edge[np.isfinite(self.edge)])
        self.certain = ~np.isfinite(self.edge) | (self.limit / self.edge > self.most[1])
        self.slopes = np.unique(np.concatenate([slopes, self.mu * np.linspace(0, 1, 33)]))

    def unsafe(self, y: Array) -> Array:
        told = self.told(y, self.theta * y, np.maximum(self.limit / self.edge[:, None], self.mu) * y)
        return np.where((y <= self.doses[:, None]) & ~self.certain[:, None], told, 0.0)

    def others(self, x: float, y: Array) -> Array:
        # beside the fixed slopes, those near the nearest instance: the foot of a perpendicular, for Gaussian readings
        v = self.harm.scale**2 / (self.limit**2 * self.effect.scale**2 + x**2 * self.harm.scale**2)
        near = self.mu + (self.limit * self.theta - x * self.mu) * x * v * np.array([0.25, 0.5, 1.0, 1.5, 2.0, 4.0])
        mu = np.concatenate([self.slopes, np.maximum(near, 0.0)])
        mu = mu[(mu <= self.limit / self.it.start) & (mu <= self.most[1])][:, None]
        last = self.limit / np.maximum(mu, 1e-200)
        theta = x / self.level(last)
        theta = np.minimum(self.theta, theta) if self.best else np.maximum(self.theta, theta)
        told = self.told(y, theta * y, mu * y)
        end = np.append(self.doses, math.inf)[
            np.searchsorted(self.doses, last * (1 - 1e-12))
        ]  # of ours; it may be later
        return np.where(y <= end, told, 0.0)[(theta <= self.most[0])[:, 0]]


@dataclass(frozen=True)
class _Side:
    """One arm in a programme: at the level that it must be told from alone, and what its doses tell then."""

    arm: _Arm
    weight: int  # how many arms it stands for
    level: float

    def told(self, y: Array) -> Array:
        return self.arm.others(self.level, y)


class _Program:
    """The least weighted sum of N under (1) and (2), for one arm or for the best arm and its rivals together.

    Variables are, for every arm and dose, N, p, and e >= kl+(p) and h >= kl+(1 - delta - p), by tangents. Of (2) there
    are all constraints on one arm alone; and those on two arms without a climb (p = 0), as they are broken.
    """

    def __init__(self, sides: Sequence[_Side], delta: float, exact: bool):
        self.sides, self.delta, self.exact = sides, delta, exact
        self.full = 1 - delta if exact else 1.0  # with q in place of kl+(q) if not exact
        self.enough = float(_kl_plus(self.full, delta)) if exact else 1.0
        ends = np.cumsum([0, *(len(side.arm.doses) for side in sides)])
        self.at, self.size = [slice(a, b) for a, b in pairwise(ends.tolist())], int(ends[-1])
        self.alone = [side.told(side.arm.doses) for side in sides]
        self.unit = 1 / float(np.median([told.max() for told in self.alone]))  # of N, so that numbers are near 1
        self.blocks = [self.unit * side.arm.unsafe(side.arm.doses) for side in sides]

    def solve(self, pairs: _Pairs) -> tuple[float, list[Array]]:
        """The bound, and N of every arm."""
        n, rows, least = self.size, *self.fixed()
        cost = np.concatenate([*(np.full(len(s.arm.doses), float(s.weight)) for s in self.sides), np.zeros(3 * n)])
        bounds = [(0, None)] * n + [(0, self.full)] * n + [(0, None)] * 2 * n
        broken, value = list[Pair](), 0.0
        for _ in range(ROUNDS):
            found = scipy.optimize.linprog(cost, -rows, -least, bounds=bounds, method="highs", options=AS_IT_IS)
            N = [found.x[at] * self.unit for at in self.at]
            new = list(pairs(N, (1 - CLOSE) * self.enough))
            if not new or found.fun < (1 + 0.2 * CLOSE) * value:
                break
            value = found.fun
            broken += new
            rows = scipy.sparse.vstack([rows, self.paired(new)], format="csr")
            least = np.append(least, np.full(len(new), self.enough))
        dual = -found.ineqlin.marginals
        return found.fun * self.unit / self.above(dual, broken), N

    def fixed(self) -> tuple[Any, Array]:
        """The constraints (1), the tangents, and the constraints (2) on one arm."""
        n, sparse = self.size, scipy.sparse
        one, none = sparse.identity(n, format="csr"), sparse.csr_array((n, n))
        certain = np.concatenate([side.arm.certain for side in self.sides])
        told = sparse.block_diag(self.blocks, format="csr")
        rows, least = [sparse.hstack([told, none, -one.multiply(~certain), none])], [np.zeros(n)]
        for q in np.linspace(self.delta, self.full, TANGENTS) if self.exact else [1.0]:
            s = float(_kl_slope(q, self.delta)) if self.exact else 1.0
            c = float(_kl_plus(q, self.delta)) - s * q if self.exact else 0.0
            rows += [sparse.hstack([none, -s * one, one, none]), sparse.hstack([none, s * one, none, one])]
            least += [np.full(n, c), np.full(n, c + s * self.full)]
        for at, alone in zip(self.at, self.alone, strict=True):
            m = alone.shape[1]
            upto = np.tril(np.ones((m, m)))[:, None, :] * alone * self.unit  # (where the climb ends, instance, dose)
            for h, block, need in ((-np.eye(m)[:, None, :], upto, 0.0), (np.zeros((1, 1, m)), upto[-1:], self.enough)):
                wide = np.zeros((block.shape[0] * block.shape[1], 4 * n))
                wide[:, at] = block.reshape(-1, m)
                wide[:, 3 * n + at.start : 3 * n + at.stop] = np.broadcast_to(h, block.shape).reshape(-1, m)
                rows.append(sparse.csr_array(wide))
                least.append(np.full(len(wide), need))
        return sparse.vstack(rows, format="csr"), np.concatenate(least)

    def paired(self, pairs: list[Pair]) -> Any:
        wide = np.zeros((len(pairs), 4 * self.size))
        for row, pair in zip(wide, pairs, strict=True):
            for n, x, c in pair:
                row[self.at[n]] = self.unit * self.sides[n].arm.others(x, self.sides[n].arm.doses)[c]
        return scipy.sparse.csr_array(wide)

    def above(self, dual: Array, pairs: list[Pair]) -> float:
        """By how much the dual solution is above what it may be, at the worst dose of any arm; at least 1."""
        worst, first = 1.0, self.size * (1 + 2 * (TANGENTS if self.exact else 1))
        paired = dual[len(dual) - len(pairs) :]
        for n, (side, at) in enumerate(zip(self.sides, self.at, strict=True)):
            C, m = self.alone[n].shape
            size = dual[first : first + C * (m + 1)].reshape(m + 1, C)
            first += C * (m + 1)
            if side.arm.it.levels:
                continue
            y = np.union1d(np.linspace(side.arm.doses[0], side.arm.doses[-1], FINE), side.arm.doses)
            upto = y <= np.append(side.arm.doses, math.inf)[:, None]
            total = dual[at] @ side.arm.unsafe(y) + np.sum((size.T @ upto) * side.told(y), axis=0)
            for weight, pair in zip(paired, pairs, strict=True):
                for _, x, c in (part for part in pair if part[0] == n and weight > 1e-12):
                    total = total + weight * side.arm.others(x, y)[c]
            worst = max(worst, self.unit * float(total.max()) / side.weight)
        return worst


def _kl_plus(q: Any, delta: float) -> Any:
    q = np.clip(q, delta, 1.0)
    return scipy.special.rel_entr(q, delta) + scipy.special.rel_entr(1 - q, 1 - delta)


def _kl_slope(q: Any, delta: float) -> Any:
    q = np.clip(q, delta, 1 - 1e-12)
    return np.log(q / delta) - np.log((1 - q) / (1 - delta))
