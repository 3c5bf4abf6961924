"""What to do if it had to end now. Estimates, no certificates; only `p` has a theorem (docs/guarantees.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..arrays import Array, array_namespace, device, like
from ..problem import Noise, Problem

WIDER = {"linear": 1.5, "monotonic": 2.0}  # errors of values seem too small by this, as measured on random instances


def isotonic(total: Array, count: Array) -> Array:
    """Means of the levels along the last axis that never fall, nearest to the readings (weighted by their number).

    The min-max formula: of level l, the largest over i <= l of the least over j >= l of the mean of levels i to j. A
    level without readings takes after the nearest below it that has some.
    """
    xp, L = array_namespace(total), total.shape[-1]
    n, y = xp.astype(count, xp.float64), total
    ends = [xp.cumulative_sum(x, axis=-1, include_initial=True) for x in (n, y)]
    n, y = (x[..., None, 1:] - x[..., :-1, None] for x in ends)  # (..., i, j): of levels i to j
    mean = xp.where(n > 0, y / xp.where(n > 0, n, 1.0), xp.inf)
    least = (xp.min(mean[..., : l + 1, l:], axis=-1) for l in range(L))
    found = xp.stack([xp.max(xp.where(xp.isinf(x), -xp.inf, x), axis=-1) for x in least], axis=-1)
    some = xp.sum(xp.astype(count, xp.float64), axis=-1, keepdims=True) > 0
    return xp.where(some, found, xp.nan)


@dataclass(frozen=True)
class Estimates:
    """What every arm seems to be, (trials, arms): its largest safe dose, effect and harm there, each with a 95%
    interval of that dose alone. Without promise."""

    dose: Array
    effect: Array
    harm: Array
    effect_interval: tuple[Array, Array]
    harm_interval: tuple[Array, Array]
    values: tuple[Array, Array, Array] | None = field(
        default=None, kw_only=True
    )  # see `worth`; None: it follows from the others
    climbs: Array | None = field(default=None, kw_only=True)  # where it may be worth more above all that it was given


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """What to do if it had to end now, (trials,): the arm, the dose that seems to be its largest safe one, estimates of
    effect and harm there with 95% intervals (of that dose alone, without promise), the dose that is shown to be safe
    (nan: none), and p, the error probability that the data support: the least delta at which it would have been named.
    Beside it, without promise, `chance`: an estimated probability of being the best arm; nan where other arms climb.
    """

    arm: Array
    dose: Array
    safe: Array
    p: Array
    chance: Array
    effect: Array
    harm: Array
    effect_interval: tuple[Array, Array]
    harm_interval: tuple[Array, Array]
    claims: Array  # (trials, arms): the p of "this arm is best"; an arm that is stopped has none left
    climbing: Array  # (trials, arms): rivals that may be worth more higher up, where nobody knows what they are worth

    def words(self, problem: Problem, level: float | None = None, trial: int = 0) -> str:
        """The recommendation in three sentences, for arms excluded at this level, by default delta."""
        best, level = int(self.arm[trial]), problem.delta if level is None else level
        arm, dose, safe = problem.arms[best], float(self.dose[trial]), float(self.safe[trial])
        sure = "an estimate" + ", over the limit about as often as not" * (problem.shape != "levels")
        sure += "" if math.isnan(safe) else f"; {arm.sure(safe)}"
        sure = "shown to be safe" if dose <= safe else sure
        sure = "its start dose: declared safe, not shown" if dose <= arm.start else sure
        out, left, mute = list[str](), list[str](), list[str]()
        for k, name in enumerate(problem.names):
            if k != best:
                p = min(1.0, float(self.claims[trial, k]))
                (out if p <= level else mute if p == 1 else left).append(
                    name if not level < p < 1 else f"{name} (p = {p:.2g})"
                )
        left += [f"{_listed(mute)} (p = 1)"] if mute else []
        said = f"{_listed(out)} at the {100 * level:g}% level" if out else "no other arm"
        said = f"The data exclude {said}"
        said += f", not {_listed(left)}" if out and left else f": {_listed(left)}" if left else ""
        likely = float(self.chance[trial])  # it rests on the estimates alone, so it is never said to be certain
        likely_text = "above 0.99" if likely > 0.99 else f"{likely:.2g}"
        chance = f"Estimated probability that {arm.name} is the best, without promise: {likely_text}"
        if climbing := [name for k, name in enumerate(problem.names) if self.climbing[trial, k]]:
            chance = f"No probability that it is the best: {_listed(climbing)} may be worth more above what was given"
        return f"Best supported: {arm.name} at {arm.label(dose)} ({sure}). {said}. {chance}."


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def supported(against: Array, out: Array, arm: Array) -> Array:
    """p of naming `arm`: over the other arms, those `out` apart, the largest of 1 over the evidence against "it is
    best". `against` is its log, (trials, arms)."""
    xp = array_namespace(against)
    others = (xp.arange(against.shape[1], device=device(against)) != arm[:, None]) & ~out
    return xp.exp(xp.minimum(xp.max(xp.where(others, -against, -xp.inf), axis=1), xp.zeros_like(against[:, 0])))


def worth(problem: Problem, seems: Estimates) -> tuple[Array, Array, Array]:
    """What the value of every arm may be: weights, means and standard errors of normals, (trials, arms, any).

    If a design says no more it is one normal: the effect at the dose that seems to be the largest safe one, with the
    error of that effect, and for lines with what an error of that dose adds.
    """
    if seems.values is not None:
        return seems.values
    xp = array_namespace(seems.effect)
    ends = *seems.effect_interval, *seems.harm_interval
    known = xp.isfinite(seems.effect) & xp.isfinite(ends[0]) & xp.isfinite(ends[1])
    low, high, harm_low, harm_high, effect, harm = (
        xp.where(known & xp.isfinite(x), x, 0.0) for x in (*ends, seems.effect, seems.harm)
    )
    error = (high - low) / 3.92 * WIDER.get(problem.shape, 1.0)
    if problem.shape == "linear":
        free = harm > 0.999 * problem.limit  # else the largest dose is the largest safe one
        moved = xp.where(free, effect * (harm_high - harm_low) / 3.92 / xp.where(free, harm, 1.0), 0.0)
        error = xp.sqrt(error**2 + moved**2)
    return xp.ones_like(error)[..., None], seems.effect[..., None], xp.where(known, error, xp.inf)[..., None]


def chances(values: tuple[Array, Array, Array], live: Array, cells: int = 100) -> Array:
    """The probability of every live arm to have the largest value, if values were as `worth` has them; where nothing is
    known of one of them all have the same."""
    weight, mean, error = values
    xp, known = array_namespace(mean), all_known(mean, error, live)
    mean, error = (xp.where(xp.isfinite(x) & known[:, None, None], x, 1.0) for x in (mean, error))
    error = xp.maximum(error, 1e-12 * (1 + xp.abs(mean)))
    counts = live[..., None] & (weight > 0)
    low = xp.min(xp.where(counts, mean - 4 * error, xp.inf), axis=(1, 2))
    high = xp.max(xp.where(counts, mean + 4 * error, -xp.inf), axis=(1, 2))
    low, high = (xp.where(xp.isfinite(x), x, e) for x, e in ((low, 0.0), (high, 1.0)))
    x = low[:, None] + (high - low)[:, None] * like(low, [k / cells for k in range(cells + 1)])
    z = (x[:, None, None, :] - mean[..., None]) / error[..., None]
    below = xp.where(live[..., None], xp.sum(weight[..., None] * normal(z), axis=2), 1.0)
    middle = xp.log(xp.maximum(0.5 * (below[..., 1:] + below[..., :-1]), like(low, 1e-300)))
    rest = xp.exp(xp.sum(middle, axis=1, keepdims=True) - middle)  # all others are below
    wins = xp.where(live, xp.sum((below[..., 1:] - below[..., :-1]) * rest, axis=2), 0.0)
    wins = xp.where(known[:, None], wins, xp.astype(live, xp.float64))
    return wins / xp.maximum(xp.sum(wins, axis=1, keepdims=True), like(low, 1e-300))


def all_known(mean: Array, error: Array, live: Array) -> Array:
    """Whether something is known of the value of every live arm, (trials,)."""
    xp = array_namespace(mean)
    return xp.all(xp.all(xp.isfinite(mean) & xp.isfinite(error), axis=2) | ~live, axis=1)


def normal(z: Array) -> Array:
    """The normal distribution function, to 0.00014 (Bowling and others 2009)."""
    xp = array_namespace(z)
    return 1 / (1 + xp.exp(-xp.clip(1.5976 * z + 0.07056 * z**3, -100.0, 100.0)))


def wilson(total: Array, n: Array) -> tuple[Array, Array]:
    """The 95% interval of Wilson (1927) for a rate; everything where there are no readings."""
    xp, z2 = array_namespace(total), 1.96**2
    rate = total / xp.maximum(n, 1.0)
    half = 1.96 * xp.sqrt(rate * (1 - rate) * n + z2 / 4) / (n + z2)
    middle = (total + z2 / 2) / (n + z2)
    return middle - half, middle + half


def interval(noise: Noise, total: Array, n: Array) -> tuple[Array, Array]:
    """A 95% interval for a mean of n readings."""
    if noise.kind == "bernoulli":
        return wilson(total, n)
    xp = array_namespace(total)
    some = n > 0
    mean = total / xp.where(some, n, 1.0)
    half = 1.96 * standard_error(noise, mean, xp.where(some, n, 1.0))
    return xp.where(some, mean - half, -xp.inf), xp.where(some, mean + half, xp.inf)


def standard_error(noise: Noise, mean: Array, n: Array) -> Array:
    """That of a mean of n readings."""
    xp = array_namespace(mean)
    if noise.counts and not noise.binary:
        return xp.sqrt((xp.maximum(mean, 0.0 * mean) + 0.5 / (n + 1)) / (n + 1e-9))
    if not noise.binary:
        return noise.scale / xp.sqrt(n + 1e-9)
    m = xp.clip(mean, 0.0, 1.0)
    return xp.sqrt((m * (1 - m) + 0.25 / (n + 1)) / (n + 1e-9))
