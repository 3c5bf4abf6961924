"""The protocol of the game.

A design decides what to try next and when to stop. It plays many trials side by side: every array has trials as its
first axis, and a live study is a batch of one. One turn goes like this:

1. `ask(state, u)` gives a Cohort: for every arm a dose and how many pulls (none where it rests). Trials that have
   ended rest. `u`, shape (trials, design.draws), are uniform draws for designs that randomise; others ignore it.
2. The world, real or simulated, answers with an Outcome: per arm how many pulls came back and the sums of their
   effects and harms.
3. `tell(state, cohort, outcome)` gives the next state. The cohort is what was actually given: it may differ from what
   was asked for. A missing or non-finite reading is an error, never "safe".
4. `verdict(state)` says which trials have ended and how, who won, every arm's bounds and why an arm is out;
   `recommendation(state)` what to do if it had to end now, and what that is worth.

All of them are pure: arrays in, arrays out. States are frozen dataclasses, so a state may be kept, compared, and played
on from twice. The arrays may come from any array-API namespace (NumPy, PyTorch, CuPy, array-api-strict).
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from array_api_compat import is_array_api_obj

from ..arrays import Array, Chosen, array_namespace, device, like, pick, replace
from ..checks import between, html_table
from ..problem import Problem, Shape, SurefootError
from ..registry import meanings, no_shadows
from .recommend import Estimates, Recommendation, chances, supported, worth

Batch = TypeVar("Batch")  # a dataclass of arrays, trials first, such as a Cohort, an Outcome or a State

ENDINGS = ("running", "best-arm", "within-tolerance", "budget-spent", "all-stopped")
RUNNING, BEST_ARM, WITHIN_TOLERANCE, BUDGET_SPENT, ALL_STOPPED = range(5)
STANDINGS = ("active", "beaten", "refuted", "stopped")
ACTIVE, BEATEN, REFUTED, STOPPED = range(4)


def out_since(standing: Any) -> int:
    """From which of these moments on an arm is out for good; how many there are where it is in."""
    return int(max(np.flatnonzero(standing == ACTIVE), default=-1)) + 1


@dataclass(frozen=True)
class Cohort:
    """What to give next: for every trial and arm a dose, and how many pulls.

    Parameters
    ----------
    dose, n
        Arrays (trials, arms); n is 0 where the arm rests.
    stakes
        The numbers, fixed before the readings, with which these will be bet, (trials, arms, any); nan where nothing is.
        Designs whose proof has no bets have none.

    Examples
    --------
    >>> from surefoot import case, make
    >>> design, (problem, _) = make("surefoot-linear"), case("paper-linear", 2)
    >>> design.ask(design.start(problem, trials=1)).n
    array([[4, 4]])
    """

    dose: Array
    n: Array
    stakes: Array = None


@dataclass(frozen=True)
class Outcome:
    """What came back, per trial and arm.

    Parameters
    ----------
    n, effect, harm
        Arrays (trials, arms): number of pulls, sum of their effects, sum of their harms.
    squares
        Where the problem wants them: of effects and of harms, the sums of squared distances from their mean in the
        cohort.
    weight
        (trials, arms, 2), set within a design: how much a reading counts (see `readings`).

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import Outcome
    >>> Outcome(np.array([[2, 0]]), np.array([[1.5, 0.0]]), np.array([[0.4, 0.0]])).effect.sum()
    np.float64(1.5)
    """

    n: Array
    effect: Array
    harm: Array
    squares: Any = None
    weight: Array = None

    def weighed(self, r: int) -> tuple[Array, Array]:
        """How many effects (r = 0) or harms (r = 1) there are, and their sum, as they count."""
        xp, total = array_namespace(self.n), (self.effect, self.harm)[r]
        n = xp.astype(self.n, xp.float64)
        return (n, total) if self.weight is None else (self.weight[..., r] * n, self.weight[..., r] * total)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Where every trial stands. Arrays are (trials,) or (trials, arms); `endings()` and `reason(arm)` say it in words.

    Examples
    --------
    >>> from surefoot import case, make
    >>> design, (problem, _) = make("surefoot-linear"), case("paper-linear", 2)
    >>> verdict = design.verdict(design.start(problem))
    >>> verdict.endings(), verdict.reason(0)
    (['running'], 'active: value unknown, largest safe dose 0.1 to 1.5')

    Notes
    -----
    `lower` and `upper` bound the value of an arm, `safe` is its largest dose that is shown to be within the limit,
    `certified` the largest that may be given now, and no safe dose lies above `unsafe`. `standing` says how an arm
    left, and `out_*` why, in round `out_round`. Beaten: its upper bound `out_upper` was at or below the lower bound
    `out_lower` of arm `out_by`. Refuted: so was the claim that it is the best, most narrowly at a
    value of `out_upper`, between it and `out_by`. Stopped: the harm at its start dose was shown to be above the limit,
    and at least `out_lower` where that is known.
    """

    problem: Problem
    pulls: Array  # made so far
    rounds: Array  # decisions taken so far
    ending: Array  # index into ENDINGS
    winner: Array  # arm, -1 where none is named
    standing: Array  # index into STANDINGS
    lower: Array
    upper: Array
    estimate: Array  # of the effect at the safe dose; -inf before the first
    safe: Array
    unsafe: Array
    out_round: Array
    out_by: Array
    out_upper: Array
    out_lower: Array
    effect_lower: Array = None  # bounds on the effect at the safe dose, where the design has them
    effect_upper: Array = None
    certified: Array = None  # the largest dose that may be given now: certified for limit + slack, where there is one

    def __repr__(self) -> str:
        ends, count = self.endings(), [(name, self.endings().count(name)) for name in ENDINGS]
        said = ", ".join(f"{n} {name}" for name, n in count if n)
        return f"<{type(self).__name__}: {ends[0] if len(ends) == 1 else said}, {len(self.problem.arms)} arms>"

    def _repr_html_(self) -> str:
        if len(self.pulls) > 1:
            return f"<p>{html.escape(repr(self))}</p>"
        return f"<p>{self.endings()[0]}</p>" + html_table(
            {name: self.reason(arm) for arm, name in enumerate(self.problem.names)}
        )

    @property
    def guess(self) -> Array:
        """The winner, or while there is none the active arm with the largest estimated effect at its safe dose."""
        xp = array_namespace(self.pulls)
        seen = xp.where(self.standing == ACTIVE, xp.where(self.estimate > -1e300, self.estimate, -1e300), -xp.inf)
        return xp.where(self.winner >= 0, self.winner, xp.argmax(seen, axis=1))

    def endings(self) -> list[str]:
        """The ending of every trial, by name."""
        return [ENDINGS[int(k)] for k in self.ending]

    def reason(self, arm: int, trial: int = 0) -> str:
        """Why an arm stands where it stands, in words and numbers."""
        p, at, label = self.problem, (trial, arm), self.problem.arms[arm].label
        standing = int(self.standing[at])
        if standing == STOPPED:
            return (
                f"stopped in round {int(self.out_round[at])}: harm at its start dose {label(p.arms[arm].start)} is "
                f"at least {float(self.out_lower[at]):.4g}, above the limit {p.limit:.4g}"
            )
        if standing == REFUTED:
            return (
                f"refuted in round {int(self.out_round[at])}: it is not the best; the evidence is least at a "
                f"value of {float(self.out_upper[at]):.4g}, between it and {p.names[int(self.out_by[at])]}"
            )
        if standing == BEATEN:
            return (
                f"beaten in round {int(self.out_round[at])}: its value is at most {float(self.out_upper[at]):.4g}, "
                f"and {p.names[int(self.out_by[at])]}'s is at least {float(self.out_lower[at]):.4g}"
            )
        best = f"value {between(float(self.lower[at]), float(self.upper[at]))}"
        safe = label(float(self.safe[at]))
        top = float(self.unsafe[at])
        dose = f"largest safe dose {f'{safe} to {label(top)}' if top < 1e300 else f'≥ {safe}'}"
        if int(self.winner[trial]) == arm:
            if self.effect_lower is not None:
                low, high = float(self.effect_lower[at]), float(self.effect_upper[at])
                dose += f", effect at {safe} {between(low, high)}"
            return f"{ENDINGS[int(self.ending[trial])] if int(self.ending[trial]) else 'winner'}: {best}, {dose}"
        return f"active: {best}, {dose}"


@dataclass(frozen=True, kw_only=True)
class State(Verdict):
    """A verdict and what a design keeps beside it. `found`: how the winner was found, while refining goes on."""

    found: Array  # index into ENDINGS, 0 while no winner is known
    near: Array  # whether an arm is shown to be no better than the leader by more than the tolerance
    memory: Any = None  # of a policy; a dataclass of arrays
    floor: Any = None  # of what it is put on (`compose.Floor`), likewise
    readings: Any = None  # how readings come, where the evidence does not take them as they are (see `readings`)
    owned: bool = False  # nobody else holds its arrays: the largest may be written over by what becomes of them


@dataclass(frozen=True)
class OnDemand:
    """In a state, in the place of numbers that only a verdict has: so that no policy takes what is empty for known."""

    shared: ClassVar[bool] = True

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise SurefootError(
            "lower, upper and estimate are not kept in the state of monotone curves: self.values(state) of a "
            "MonotonicPolicy is about what every arm is worth, and design.verdict(state) has the bounds"
        )


def take(batch: Batch, rows: Array) -> Batch:
    """These trials of a batch (of states, cohorts, outcomes or verdicts)."""
    xp = array_namespace(rows)
    return _map(lambda x: xp.take(x, rows, axis=0), batch)


def repeat(batch: Batch, times: int) -> Batch:
    """Every trial of a batch, `times` times."""
    xp = _namespace(batch)
    return _map(lambda x: xp.repeat(x, times, axis=0), batch)


def join(one: Batch, other: Batch) -> Batch:
    """The trials of both batches; an array that has grown in one is filled up in the other by its last entry."""
    xp = _namespace(one)

    def fill(x: Array, shape: tuple[int, ...]) -> Array:
        for axis in range(1, x.ndim):
            if (lacks := shape[axis] - x.shape[axis]) > 0:
                last = xp.take(x, like(x, [x.shape[axis] - 1] * lacks), axis=axis)
                x = xp.concat([x, last], axis=axis)
        return x

    return _map(lambda x, y: xp.concat([fill(x, y.shape), fill(y, x.shape)], axis=0), one, other)


def _namespace(batch: Any) -> Any:
    """Of the first array in a dataclass."""
    values = [getattr(batch, f.name) for f in fields(batch)]
    return array_namespace(next(x for x in values if is_array_api_obj(x)))


def select(rows: Array, new: Batch, old: Batch) -> Batch:
    """`new` in the trials where `rows` is true, `old` in the others; an array that has grown is taken from `new`."""
    xp, others = array_namespace(rows), Chosen(~rows)

    def chosen(x: Array, y: Array) -> Array:
        if x is y or x.shape != y.shape:
            return x
        before = others.rows(y)
        return x if bool(xp.all(others.rows(x) == before)) else others.put(x, before)

    return _map(chosen, new, old)


def _map(change: Any, *batches: Batch) -> Batch:
    """Every array of a dataclass changed, and of the dataclasses in it that are not `shared` by all trials."""
    found: dict[str, Any] = {}
    for name in (f.name for f in fields(batches[0])):  # type: ignore[arg-type]
        values = [getattr(b, name) for b in batches]
        if is_array_api_obj(values[0]):
            found[name] = change(*values)
        elif is_dataclass(values[0]) and getattr(type(values[0]), "shared", False) is not True:
            found[name] = _map(change, *values)
    return replace(batches[0], **found)  # type: ignore[type-var]


S = TypeVar("S", bound=State)
D = TypeVar("D", bound="Design[Any]")


class Design(ABC, Generic[S]):
    """A rule that decides what to try next and when to stop. A subclass writes `begin`, `plan` and `learn`.

    Examples
    --------
    One turn of three trials side by side, with readings that are as they are in truth:

    >>> from surefoot import Outcome, case, make
    >>> problem, truth = case("paper-linear", 2)
    >>> design = make("surefoot-linear")
    >>> state = design.start(problem, trials=3)
    >>> cohort = design.ask(state)
    >>> readings = Outcome(cohort.n, cohort.n * truth.effects(cohort.dose), cohort.n * truth.harms(cohort.dose))
    >>> design.tell(state, cohort, readings).pulls
    array([8, 8, 8])
    """

    name: ClassVar[str]
    shape: ClassVar[Shape]
    draws: ClassVar[int] = 0  # uniform draws it wants at every `ask`
    chunk: ClassVar[int] = 2048  # how many trials are best simulated side by side; below 256, that many have one seed
    portable: ClassVar[bool] = True  # runs on any array-API namespace, not on NumPy alone
    learns: ClassVar[bool] = False  # takes readings whose sigma nobody knows

    @property
    def options(self) -> dict[str, Any]:
        """What it is set by: `make(name, **options)` gives it again."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    @property
    def meanings(self) -> dict[str, str]:
        """What its options mean and `when` to use it, as the docstring has it in lines `name: words`."""
        return meanings(type(self))

    @property
    def usual(self) -> dict[str, Any]:
        """Its options as they are by default."""
        return type(self)().options

    @property
    def label(self) -> str:
        """Its name and what is set otherwise than by default, as a command line takes it: `safeopt:grid=30`."""
        usual = self.usual
        said = {key: x for key, x in self.options.items() if isinstance(x, (str, int, float))}
        return ":".join([self.name, *(f"{key}={x}" for key, x in said.items() if usual.get(key) != x)])

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        no_shadows(cls, "guarantee", "draws", "portable")
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign] # a dataclass would write one of its own

    def __repr__(self) -> str:
        return f"<{self.label}: {self.shape}, {'with' if self.guarantee else 'without'} a guarantee>"

    def but(self: D, **options: Any) -> D:
        """The same design with some options changed."""
        return replace(self, **options)  # type: ignore[type-var]

    @property
    def guarantee(self) -> bool:
        """Whether a theorem says: with probability 1 - delta, no unsafe pull and the right arm."""
        return True

    @abstractmethod
    def begin(self, problem: Problem, trials: int, xp: Any) -> S:
        """The state before the first pull."""

    @abstractmethod
    def plan(self, state: S, u: Array) -> Cohort:
        """What to try next. How many pulls that takes in all may not depend on `u`."""

    @abstractmethod
    def learn(self, state: S, cohort: Cohort, outcome: Outcome) -> S:
        """The state with this outcome taken in and, where it is time, decided upon (see `settle`)."""

    def need(self, state: S) -> Array:
        """How many pulls the next cohort takes, (trials,)."""
        xp = array_namespace(state.pulls)
        u = xp.zeros((state.pulls.shape[0], self.draws), dtype=xp.float64, device=device(state.pulls))
        return xp.sum(self.plan(state, u).n, axis=1)

    def start(self, problem: Problem, trials: int = 1, xp: Any = np) -> S:
        """The state of so many trials before the first pull. An error where the problem is not one for this design."""
        if problem.shape != self.shape:
            raise SurefootError(f"{self.name} is for the {self.shape} shape; this problem is {problem.shape}")
        if self.shape != "levels" and any(getattr(noise, "spread", False) for noise in problem.noises):
            raise SurefootError(
                f"{self.name} bets on bounded readings by their sums, and only surefoot-levels by how they vary: leave "
                f"spread out of the noise"
            )
        if not all(noise.subgaussian for noise in problem.noises) and (self.shape == "linear" or not self.learns):
            raise SurefootError(
                f"{self.name} bets on readings with a sigma, and counts have none that holds: surefoot-monotonic and "
                f"surefoot-levels bet on them by likelihood ratios; for others declare them bounded, or their square "
                f"roots gaussian"
            )
        if problem.squares and not self.learns:
            raise SurefootError(
                f"{self.name} needs a sigma that is known; this problem has a guess of one. The designs that learn it "
                f"are surefoot-linear, surefoot-monotonic and surefoot-levels"
            )
        if trials < 1:
            raise SurefootError(f"trials must be at least 1; got {trials}")
        return self._within_budget(self.begin(problem, trials, xp))

    def ask(self, state: S, u: Array = None) -> Cohort:
        """What to try next, in every trial that has not ended. `u`: the uniform draws of a design that randomises."""
        xp = array_namespace(state.pulls)
        if u is None:
            if self.draws:
                raise SurefootError(
                    f"{self.name} randomises: ask needs u, uniform draws of shape (trials, {self.draws})"
                )
            u = xp.zeros((state.pulls.shape[0], 0), dtype=xp.float64, device=device(state.pulls))
        cohort = self.plan(state, u)
        return replace(cohort, n=xp.where((state.ending == RUNNING)[:, None], cohort.n, 0))

    def tell(self, state: S, cohort: Cohort, outcome: Outcome) -> S:
        """The state with what came back. Any dose and any number may be told, not only what was asked for."""
        xp = array_namespace(state.pulls)
        _check_outcome(xp, state, cohort, outcome)
        _check_squares(xp, state, outcome)
        running = state.ending == RUNNING
        everyone = bool(xp.all(running))
        if not everyone:
            outcome = replace(outcome, n=xp.where(running[:, None], outcome.n, 0))
        new = replace(self.learn(state, cohort, outcome), pulls=state.pulls + xp.sum(outcome.n, axis=1))
        new = self._within_budget(new)
        return new if everyone else select(running, new, state)

    def verdict(self, state: S) -> Verdict:
        """How every trial stands."""
        return replace(Verdict(**{f.name: getattr(state, f.name) for f in fields(Verdict)}), certified=state.safe)

    def against(self, state: S) -> Array:
        """The log of the evidence against "this arm is the best", for every arm; None where the design has none."""
        return None

    def seems(self, state: S) -> Estimates:
        """What every arm seems to be worth at the dose that seems to be its largest safe one."""
        xp = array_namespace(state.pulls)
        unknown = state.safe * xp.nan
        every = unknown - xp.inf, unknown + xp.inf
        effect = state.safe * 0 - xp.inf if isinstance(state.estimate, OnDemand) else state.estimate
        return Estimates(state.safe, effect, unknown, every, every)

    def recommendation(self, state: S, odds: bool = True) -> Recommendation:
        """What to do if it had to end now: the winner, or while there is none the arm that seems to be the best.
        Without `odds` the chance of being the best is left out (nan): of many trials it takes longer than the rest."""
        xp, seems, against = array_namespace(state.pulls), self.seems(state), self.against(state)
        arm = state.winner
        if odds or bool(xp.any(arm < 0)):
            values, live = worth(state.problem, seems), state.standing == ACTIVE
            expected = xp.sum(xp.where(values[0] > 0, values[0] * values[1], 0.0), axis=2)
            rank = xp.where(live, xp.where(expected > -1e300, expected, -1e300), -xp.inf)
            arm = xp.where(arm >= 0, arm, xp.argmax(rank, axis=1))
        against = xp.zeros_like(state.safe) if against is None else against
        stopped, arms = state.standing == STOPPED, xp.arange(state.safe.shape[1], device=device(state.safe))
        unknown, climbing = state.safe * xp.nan, (state.standing == ACTIVE) & (arms != arm[:, None])
        climbing = climbing & (False if seems.climbs is None else seems.climbs)

        def of(x: Array) -> Array:
            return pick(x, arm)[:, 0]

        return Recommendation(
            arm=arm, dose=of(seems.dose), safe=of(state.safe if self.guarantee else unknown),
            p=supported(against, stopped, arm),
            chance=xp.where(xp.any(climbing, axis=1), xp.nan, of(chances(values, ~stopped) if odds else unknown)),
            effect=of(seems.effect), harm=of(seems.harm),
            effect_interval=(of(seems.effect_interval[0]), of(seems.effect_interval[1])),
            harm_interval=(of(seems.harm_interval[0]), of(seems.harm_interval[1])),
            claims=xp.where(stopped, 0.0, xp.exp(-against)), climbing=climbing,
        )  # fmt: skip

    def _within_budget(self, s: S) -> S:
        """A cohort that would exceed the budget is not opened; if the winner is known by then, refining ends there."""
        xp = array_namespace(s.pulls)
        spent = (s.ending == RUNNING) & (s.pulls + self.need(s) > s.problem.budget)
        return replace(s, ending=xp.where(spent, xp.where(s.found > 0, s.found, BUDGET_SPENT), s.ending))


def _check_outcome(xp: Any, state: State, cohort: Cohort, outcome: Outcome) -> None:
    shape = state.standing.shape
    for name, x in (("cohort.dose", cohort.dose), ("n", outcome.n), ("effect", outcome.effect), ("harm", outcome.harm)):
        if x.shape != shape:
            raise SurefootError(f"{name} must have shape {tuple(shape)} (trials, arms); got {tuple(x.shape)}")
    if not bool(xp.all(outcome.n >= 0)):
        raise SurefootError("an outcome's n must be 0 or more in every arm; got one that is negative or nan")
    for name, x in (("dose", cohort.dose), ("effect", outcome.effect), ("harm", outcome.harm)):
        finite = xp.isfinite(x)
        if not bool(xp.all(finite)) and not bool(xp.all(finite | (outcome.n == 0))):
            raise SurefootError(f"every {name} that came back must be finite; got nan or infinity; leave that pull out")


def _check_squares(xp: Any, state: State, outcome: Outcome) -> None:
    if state.readings is None or not state.readings.problem.squares:
        return
    if outcome.squares is None:
        raise SurefootError("sigma is not known here: an outcome needs its squares, a pair (of effects, of harms)")
    for name, x in zip(("effect", "harm"), outcome.squares, strict=True):
        if x.shape != outcome.n.shape or not bool(xp.all((x >= 0) & xp.isfinite(x) | (outcome.n <= 0))):
            raise SurefootError(f"squares of {name} must be finite and 0 or more, one for every trial and arm")


def expected_squares(problem: Problem, n: Array) -> Any:
    """Squares for an outcome that is only supposed, as the scale has them; None where the problem wants none."""
    if not problem.squares:
        return None
    xp = array_namespace(n)
    free = xp.astype(xp.where(n > 1, n - 1, xp.zeros_like(n)), xp.float64)
    return tuple(noise.scale**2 * free for noise in problem.noises)


def blank(problem: Problem, trials: int, xp: Any) -> dict[str, Any]:
    """The fields of a State before the first pull."""
    shape = (trials, len(problem.arms))
    starts, largest = xp.asarray(problem.starts), xp.asarray(problem.largest)
    whole = {"dtype": xp.int64}
    return {
        "problem": problem,
        "pulls": xp.zeros(trials, **whole),
        "rounds": xp.zeros(trials, **whole),
        "ending": xp.zeros(trials, **whole),
        "found": xp.zeros(trials, **whole),
        "winner": xp.full(trials, -1, **whole),
        "near": xp.zeros(shape, dtype=xp.bool),
        "standing": xp.zeros(shape, **whole),
        "lower": xp.full(shape, -xp.inf, dtype=xp.float64),
        "upper": xp.full(shape, xp.inf, dtype=xp.float64),
        "estimate": xp.full(shape, -xp.inf, dtype=xp.float64),
        "safe": starts + xp.zeros(shape, dtype=xp.float64),
        "unsafe": largest + xp.zeros(shape, dtype=xp.float64),
        "out_round": xp.zeros(shape, **whole),
        "out_by": xp.full(shape, -1, **whole),
        "out_upper": xp.full(shape, xp.nan, dtype=xp.float64),
        "out_lower": xp.full(shape, xp.nan, dtype=xp.float64),
    }
