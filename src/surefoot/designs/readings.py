"""Readings as evidence takes them, where they do not come with a sigma: docs/guarantees.md, "Readings".

*Bounded* readings are brought to [0, 1], where the bets on binary readings hold for them. Readings with a sigma that
*nobody knows* count for less than one of the guessed sigma each, or for more, by an upper bound on their sigma: with
u such a bound, known before a cohort, and s the guess, n readings count as n (s/u)^2 of sigma s. The bound is shown by
how the readings of a cohort vary, at a share of delta, and holds for all arms, both readings and all times at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..arrays import Array, array_namespace, replace
from ..bounds import sigma_upper
from ..noise import Bernoulli, Bounded, Unknown, Varying
from ..problem import Problem
from .base import Outcome, Verdict
from .recommend import Estimates

SIGMA = 0.1  # share of delta: the bounds on sigma
LEAST = 4  # a cohort has at least so many pulls of an arm: one has no spread


@dataclass(frozen=True)
class Readings:
    """The problem as it was asked, and for every arm what is known of the sigma of its effect and harm, (trials, arms,
    2): an upper bound, and the squares that it rests on: how many, less 1 for every cohort, and their sum."""

    problem: Problem
    bound: Array
    free: Array
    squares: Array

    EVERY: ClassVar[tuple[str, str]] = ("effect", "harm")

    def weight(self) -> Array:
        """For how many of the guessed sigma a reading counts, (trials, arms, 2); 0 before there is a bound."""
        xp = array_namespace(self.bound)
        return xp.stack(
            [xp.ones_like(self.bound[..., r]) if noise.known else (noise.scale / self.bound[..., r]) ** 2
             for r, noise in enumerate(self.problem.noises)], axis=-1,
        )  # fmt: skip

    def inside(self, outcome: Outcome) -> Outcome:
        """An outcome in the units of the evidence, each reading with its weight."""
        changes: dict[str, Any] = {"weight": self.weight()} if self.problem.squares else {}
        for key, noise in zip(self.EVERY, self.problem.noises, strict=True):
            if isinstance(noise, Bounded):
                off = getattr(outcome, key) - noise.low * outcome.n
                changes[key] = off / (noise.high - noise.low)
        if outcome.squares is not None:
            wide = [x.high - x.low if isinstance(x, Bounded) else 1.0 for x in self.problem.noises]
            changes["squares"] = tuple(x / w**2 for x, w in zip(outcome.squares, wide, strict=True))
        return replace(outcome, **changes)

    def learn(self, outcome: Outcome) -> Readings:
        """With the squares of a cohort."""
        if not self.problem.squares:
            return self
        xp = array_namespace(self.bound)
        assert outcome.squares is not None
        n, many = xp.astype(outcome.n, xp.float64)[..., None], outcome.n[..., None] > 1
        free = self.free + xp.where(many, n - 1, 0.0)
        squares = self.squares + xp.where(many, xp.stack(list(outcome.squares), axis=-1), 0.0)
        if all(noise.known for noise in self.problem.noises):
            return self
        many = len(self.problem.arms) * sum(not noise.known for noise in self.problem.noises)
        alpha = SIGMA * self.problem.delta / many
        return replace(
            self, bound=xp.minimum(self.bound, sigma_upper(free, squares, alpha)), free=free, squares=squares
        )

    def enough(self, n: Array) -> Array:
        """Numbers of pulls of a cohort, raised to what shows a sigma."""
        if all(noise.known for noise in self.problem.noises):
            return n
        xp = array_namespace(n)
        return xp.where((n > 0) & (n < LEAST), LEAST, n)

    def outside(self, verdict: Verdict) -> Verdict:
        """A verdict in the units of the readings."""
        changes: dict[str, Any] = {"problem": self.problem}
        for keys, noise in zip((EFFECTS, HARMS), self.problem.noises, strict=True):
            if isinstance(noise, Bounded):
                for key in keys:
                    x = getattr(verdict, key)
                    changes[key] = None if x is None else noise.low + (noise.high - noise.low) * x
        if "out_lower" in changes or isinstance(self.problem.noises[0], Bounded):
            changes |= self._reasons(verdict)
        return replace(verdict, **changes)

    def _reasons(self, verdict: Verdict) -> dict[str, Any]:
        """The number in the reason: a harm where an arm was stopped, else an effect."""
        xp = array_namespace(verdict.pulls)
        maps = [(x.low, x.high - x.low) if isinstance(x, Bounded) else (0.0, 1.0) for x in self.problem.noises]
        effect, harm = (a + b * verdict.out_lower for a, b in maps)
        return {"out_lower": xp.where(verdict.standing == 3, harm, effect)}

    def seen(self, seems: Estimates) -> Estimates:
        """Estimates in the units of the readings."""
        found: dict[str, Any] = {}
        for key, noise in zip(self.EVERY, self.problem.noises, strict=True):
            if isinstance(noise, Bounded):
                low, wide = noise.low, noise.high - noise.low
                found[key] = low + wide * getattr(seems, key)
                found[f"{key}_interval"] = tuple(low + wide * x for x in getattr(seems, f"{key}_interval"))
        if "effect" in found and seems.values is not None:
            weight, mean, error = seems.values
            effect: Any = self.problem.noises[0]
            found["values"] = weight, effect.low + (effect.high - effect.low) * mean, (effect.high - effect.low) * error
        return replace(seems, **found)


EFFECTS = ("lower", "upper", "estimate", "out_upper", "effect_lower", "effect_upper")
HARMS = ("out_lower",)


def begin(problem: Problem, trials: int, xp: Any) -> tuple[Problem, Readings | None]:
    """The problem as the evidence takes it, and what is to be kept beside it; None where nothing is."""
    if not problem.squares and not any(isinstance(noise, Bounded) for noise in problem.noises):
        return problem, None
    none = xp.zeros((trials, len(problem.arms), 2), dtype=xp.float64)
    return within(problem), Readings(problem, none + xp.inf, none, none)


def within(problem: Problem) -> Problem:
    """The problem as the evidence takes it: bounded readings in [0, 1], and less delta where sigmas must be shown."""
    unknown = not all(noise.known for noise in problem.noises)
    changes: dict[str, Any] = {"delta": problem.delta * (1 - SIGMA)} if unknown else {}
    effect, harm = problem.noises
    if isinstance(effect, Bounded) and problem.tolerance is not None:
        changes["tolerance"] = problem.tolerance / (effect.high - effect.low)
    if isinstance(harm, Bounded):
        wide = harm.high - harm.low
        arms = tuple(replace(arm, lipschitz=arm.lipschitz / wide) for arm in problem.arms)
        changes |= {"limit": (problem.limit - harm.low) / wide, "arms": arms}
        changes |= {"slack": problem.slack / wide} if problem.slack is not None else {}
    return problem.but(noise=tuple(_plain(noise) for noise in (effect, harm)), **changes)


def _plain(noise: Any) -> Any:
    if isinstance(noise, Bounded):
        return Varying() if noise.spread else Bernoulli()
    return noise if noise.known else Unknown(noise.scale)
