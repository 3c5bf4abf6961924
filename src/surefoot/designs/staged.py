"""Designs that decide after fixed numbers of pulls: the paper's."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

from ..arrays import Array, array_namespace, replace
from ..problem import Problem
from .base import RUNNING, Cohort, Design, Outcome, State, select


@dataclass(frozen=True, kw_only=True)
class StageState(State):
    """What the present stage asks of every arm, and what has come back of it so far."""

    dose: Array
    want: Array
    n: Array
    effect: Array
    harm: Array


T = TypeVar("T", bound=StageState)


class Staged(Design[T]):
    """A design that asks for so many pulls of each arm at one dose, waits for all of them, then decides.

    What a stage did not ask for (another dose, more pulls) is set aside and asked for again: its bounds hold for a
    number of pulls that was fixed before they were made. A subclass writes `begin` and `decide`.
    """

    @abstractmethod
    def decide(self, state: T) -> T:
        """The next state from a complete stage, with the next stage's `dose` and `want` (see `stage`)."""

    def plan(self, state: T, u: Array) -> Cohort:
        return Cohort(state.dose, state.want - state.n)

    def learn(self, state: T, cohort: Cohort, outcome: Outcome) -> T:
        xp = array_namespace(state.pulls)
        ours = (cohort.dose == state.dose) & (outcome.n <= state.want - state.n)
        s = replace(
            state,
            n=state.n + xp.where(ours, outcome.n, 0),
            effect=state.effect + xp.where(ours & (outcome.n > 0), outcome.effect, 0.0),
            harm=state.harm + xp.where(ours & (outcome.n > 0), outcome.harm, 0.0),
        )
        waits, running = xp.any(s.n < s.want, axis=1), s.ending == RUNNING
        if not bool(xp.any(running & ~waits)):
            return s
        decided = self.decide(replace(s, rounds=s.rounds + 1))  # of trials that have ended `tell` keeps the old state
        return select(~waits, decided, s) if bool(xp.any(running & waits)) else decided


def units(p: Problem, unit: Any, auto: float) -> tuple[float, float, float]:
    """epsilon_l 2^l of effect and of harm, and the sigma that goes with the latter. "auto": `auto` of the harm, and of
    the effect as many sigmas as that, so that no number depends on the units of doses and readings; else the same for
    both, with the larger sigma, as in the paper. Twelve digits: an instance of the paper has 1, and no hair less."""
    if unit != "auto":
        return unit, unit, p.sigma
    effect, harm = (noise.scale for noise in p.noises)
    return float(f"{auto * effect / harm:.12g}"), float(f"{auto:.12g}"), harm


def stage(s: T, dose: Array, want: Array) -> T:
    """`s` with a new stage opened: `want` pulls (a float array, rounded up) at `dose`."""
    xp = array_namespace(s.pulls)
    zero = xp.zeros_like(dose)
    whole = xp.astype(xp.ceil(xp.where(want < 1e15, want, 1e15)), xp.int64)  # 1e15 is above any budget
    return replace(s, dose=dose, want=whole, n=xp.zeros_like(whole), effect=zero, harm=zero)
