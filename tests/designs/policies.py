"""Policies that nobody should use, to show that the promise is the evidence's alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from surefoot.arrays import array_namespace, device, like
from surefoot.designs.base import Cohort
from surefoot.designs.compose import Policy


def spread(u: Any, many: int, first: int) -> Any:
    """So many of the draws as (trials, many)."""
    return u[:, first : first + many]


@dataclass(frozen=True)
class Anyhow(Policy[Any]):
    """Random arms, numbers, doses and stakes over ten decades, some of them nan, below 0 or infinite."""

    draws: ClassVar[int] = 2 * 10 + 10 * 12  # for up to ten arms

    def choose(self, state: Any, u: Any) -> Cohort:
        xp, d = array_namespace(u), state.n.shape[1]
        n = xp.astype(xp.floor(0.3 + 40 * spread(u, d, 0) ** 8), xp.int64)
        dose = state.safe * (0.2 + 1.6 * spread(u, d, 10))  # too low and too high: it is not asked
        names = d + 2
        x = xp.reshape(spread(u, d * names, 20), (u.shape[0], d, names))
        stakes = 10.0 ** (12 * (x - 0.8))
        stakes = xp.where(x < 0.1, xp.nan, xp.where(x < 0.15, -stakes, xp.where(x > 0.99, xp.inf, stakes)))
        return Cohort(dose, n, stakes)

    def stakes(self, state: Any, cohort: Cohort) -> Any:
        raise AssertionError("its cohorts have stakes")


@dataclass(frozen=True)
class Hostile(Anyhow):
    """Pulls what says least: the arm most is known about; says that whoever is behind leads, and stakes on that."""

    def choose(self, state: Any, u: Any) -> Cohort:
        xp, cohort = array_namespace(u), super().choose(state, u)
        arms = xp.arange(state.n.shape[1], device=device(u))
        most = arms == xp.argmax(state.n, axis=1)[:, None]
        worst = arms == xp.argmin(state.look.value, axis=1)[:, None]
        stakes = xp.where((worst | (u[:, :1] > 0.6))[..., None], xp.abs(cohort.stakes), 0.3)
        return Cohort(state.safe, xp.where(most | worst, 3, cohort.n), stakes)


@dataclass(frozen=True)
class OnlyArmThree(Policy[Any]):
    """Only ever pulls arm 3, with the stakes of a leader."""

    def choose(self, state: Any, u: Any) -> Cohort:
        xp = array_namespace(u)
        n = xp.where(xp.arange(state.n.shape[1], device=device(u)) == 2, 5, 0) + xp.zeros_like(state.n)
        return Cohort(state.safe, n)

    def stakes(self, state: Any, cohort: Cohort) -> Any:
        xp, d = array_namespace(cohort.dose), cohort.dose.shape[1]
        return xp.full((*cohort.dose.shape, d + 2), 0.3, dtype=xp.float64)


@dataclass(frozen=True)
class Astray(Anyhow):
    """The same for monotone curves: doses anywhere up to the certified one, guesses of harm on both sides of the limit,
    anybody said to lead."""

    def choose(self, state: Any, u: Any) -> Cohort:
        xp, p, d = array_namespace(u), state.problem, state.n.shape[1]
        n = xp.astype(xp.floor(0.3 + 40 * spread(u, d, 0) ** 8), xp.int64)
        start, largest = (like(u, x) for x in (p.starts, p.largest))
        step = xp.where(largest > start, (largest - start) / 8, 1.0)  # few doses, so that states stay small
        dose = start + step * xp.floor(1.2 * spread(u, d, 10) * (state.base - start) / step)
        return Cohort(dose, n, self.any_stakes(state, u))

    def any_stakes(self, state: Any, u: Any) -> Any:
        xp, p, d = array_namespace(u), state.problem, state.n.shape[1]
        x = xp.reshape(spread(u, 5 * d, 20), (u.shape[0], d, 5))
        harm = p.limit + (p.ceiling - p.limit) * (5 * x - 2.5)
        size = 10.0 ** (8 * (x - 0.7))
        stakes = xp.stack([harm[..., 0], size[..., 1], harm[..., 2], size[..., 3], size[..., 4]], axis=-1)
        return xp.where(x < 0.1, xp.nan, xp.where(x < 0.12, -stakes, xp.where(x > 0.99, xp.inf, stakes)))


@dataclass(frozen=True)
class OnEdge(Astray):
    """Knows the largest safe doses, which nobody does, and pulls on them, a hair below and a hair above; stakes what
    would win fastest if the truth was just on the wrong side, and only on those who are behind that they lead."""

    edges: tuple[float, ...] = ()
    hair: float = 0.02

    def choose(self, state: Any, u: Any) -> Cohort:
        xp, p, d = array_namespace(u), state.problem, state.n.shape[1]
        side = xp.floor(3 * spread(u, d, 10)) - 1
        dose = like(u, list(self.edges)) + self.hair * side
        one = xp.ones_like(dose)
        effect = state.total[..., 1] / xp.maximum(state.total[..., 0], one)
        behind = effect < xp.max(effect, axis=1, keepdims=True)
        far = 0.5 * p.noises[1].scale * (0.1 + spread(u, d, 20))
        over = (side <= 0) & ~behind
        size = 0.1 + spread(u, d, 30)
        stakes = xp.stack(
            [
                p.ceiling - far,
                one * 0.1 * (p.ceiling - p.limit),
                p.limit + xp.where(over, far, -far),
                xp.where(behind, xp.nan, size),
                xp.where(behind, size, xp.nan),
            ],
            axis=-1,
        )
        return Cohort(dose, xp.where(spread(u, d, 0) < 0.7, 2, 0) + xp.zeros_like(state.n), stakes)
