"""A design in two parts: what is proved, and what is chosen.

Evidence says what the readings entitle us to: the largest dose of every arm that may be given, which claims "this arm
is the best" are refuted, bounds. It rests on a theorem with a name and a number, and takes any cohort whose stakes were
fixed before its readings: any dose, any number of pulls, any order of arms.

A Policy says what to do next: doses, numbers of pulls, stakes. No theorem speaks of it. It sees the evidence and a
memory of its own, and whatever it chooses, `Composed` gives no dose that the evidence does not certify. So anybody's
policy is safe and right on our evidence, if slow:

    class OneByOne(MonotonicPolicy):
        def choose(self, state, u):
            arms = state.n.shape[1]
            turn = state.pulls[:, None] // 5 % arms
            largest = np.broadcast_to(state.problem.largest, state.n.shape)  # lowered to what is certified
            return Cohort(largest, np.where(np.arange(arms) == turn, 5, 0))

    design = SurefootMonotonic(policy=OneByOne())
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from inspect import get_annotations
from typing import Any, ClassVar, Generic, TypeVar

from ..arrays import Array, array_namespace, device, like, replace
from ..problem import Problem, SurefootError
from ..registry import Registry, a_class, meanings, no_shadows
from .base import ACTIVE, BUDGET_SPENT, RUNNING, Cohort, Design, Outcome, State, Verdict
from .readings import begin
from .recommend import Estimates
from .settle import round_down

E = TypeVar("E", bound=State)
C = TypeVar("C", bound="Composed[Any]")


class Evidence(ABC, Generic[E]):
    """What the readings entitle us to. Every method is pure."""

    theorem: ClassVar[str]  # name and number: it changes when what is concluded from the same readings may change

    @abstractmethod
    def begin(self, problem: Problem, trials: int, xp: Any) -> E:
        """Before the first reading."""

    @abstractmethod
    def stakes(self, problem: Problem) -> tuple[str, ...]:
        """The names of the numbers that a cohort stakes on an arm's readings: the last axis of `Cohort.stakes`."""

    @abstractmethod
    def learn(self, state: E, cohort: Cohort, outcome: Outcome) -> E:
        """With these readings taken in, by the stakes of their cohort, and all that follows from them concluded."""

    @abstractmethod
    def certified(self, state: E) -> Array:
        """The largest dose of every arm that may be given now."""

    def open(self, state: E) -> Array:
        """The arms that may be pulled: those that are left."""
        return state.standing == ACTIVE

    def verdict(self, state: E, verdict: Verdict) -> Verdict:
        """The verdict with bounds that need not be known before somebody asks for them."""
        return verdict

    def against(self, state: E) -> Array:
        """A number for every arm that the log of the evidence against "it is the best" is not below; None: not known.
        The theorem says what it is worth at any moment ("What the data support" in docs/guarantees.md)."""
        return None

    def seems(self, state: E) -> Estimates | None:
        """What every arm seems to be worth at the limit; None: no more than its effect at the certified dose."""
        return None


class Floor(ABC, Generic[E]):
    """What a policy's choices are put on so that a study ends: some cohorts are forced, and stakes have caps. Its own
    memory is `state.floor`."""

    @abstractmethod
    def begin(self, state: E) -> Any:
        """The memory before the first cohort."""

    @abstractmethod
    def visit(self, state: E, dose: Array, n: Array) -> tuple[Array, Array]:
        """Doses and numbers of pulls, forced ones where they are due."""

    @abstractmethod
    def stakes(self, state: E, cohort: Cohort, own: Array) -> Array:
        """The stakes of a cohort, given the policy's own."""

    @abstractmethod
    def remember(self, state: E, cohort: Cohort, outcome: Outcome, before: E) -> Any:
        """The memory after a cohort; `state` has its readings, `before` has not."""


class Policy(ABC, Generic[E]):
    """What to do next. `state` is the evidence, with the policy's own memory as `state.memory`.

    Examples
    --------
    What ours would do, in pairs of subjects:

    >>> from dataclasses import dataclass, replace
    >>> from surefoot import case, simulate
    >>> from surefoot.designs.linear_policy import LinearPolicy
    >>> from surefoot.designs.surefoot import SurefootLinear
    >>> @dataclass(frozen=True)
    ... class Pairs(LinearPolicy):
    ...     def choose(self, state, u):
    ...         cohort = super().choose(state, u)
    ...         return replace(cohort, n=cohort.n + cohort.n % 2)
    >>> bool(simulate(*case("paper-linear", 2), SurefootLinear(Pairs()), 2, progress=False).wrong.any())
    False
    """

    name: ClassVar[str]  # to be registered under
    on: ClassVar[str]  # the name of the design whose evidence it chooses on
    draws: ClassVar[int] = 0  # uniform draws it wants at every choice
    floor: ClassVar[Any] = None  # a `Floor`, where studies shall end whatever is chosen
    portable: ClassVar[bool] = True  # runs on any array-API namespace, not on NumPy alone

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        no_shadows(cls)

    @abstractmethod
    def choose(self, state: E, u: Array) -> Cohort:
        """The next cohort; doses above the certified ones are lowered to them. Stakes may be left out."""

    @abstractmethod
    def stakes(self, state: E, cohort: Cohort) -> Array:
        """The stakes of a cohort that has none."""

    def begin(self, state: E) -> Any:
        """The memory before the first cohort: a dataclass of arrays with trials as their first axis, or None."""
        return None

    def remember(self, state: E, cohort: Cohort, outcome: Outcome) -> Any:
        """The memory after a cohort; `state` has its readings and still the memory from before."""
        return state.memory


POLICIES: Registry[type[Policy]] = Registry("policies", {}, a_class(Policy))


@dataclass(frozen=True)
class Composed(Design[E]):
    """Evidence and a policy on it."""

    policy: Policy[E]

    evidence: ClassVar[Evidence[Any]]
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise SurefootError(f"policy of {self.name} must be a Policy; got {self.policy!r}")

    @property
    def options(self) -> dict[str, Any]:
        """Those of its policy, and that policy's name where it is another's."""
        kind, own = type(self.policy), dict[str, Any]()
        if kind is not type(type(self)().policy):  # type: ignore[call-arg]
            known = kind in POLICIES.known.values()
            own["policy"] = POLICIES.name(kind) if known else f"{kind.__module__}/{kind.__qualname__}"
        return own | (
            {f.name: getattr(self.policy, f.name) for f in fields(self.policy)} if is_dataclass(self.policy) else {}
        )

    @property
    def meanings(self) -> dict[str, str]:
        kind, found = type(self.policy), meanings(type(self)) | meanings(type(self.policy))
        if "policy" in self.options and is_dataclass(kind):
            base, own = kind.__mro__[1].__name__, get_annotations(kind)
            for key in (f.name for f in fields(kind) if f.name not in own):
                found[key] = (
                    f"{found.get(key, '')} (of {base}: used where {kind.__name__} leaves the choice to it)".strip()
                )
        return found

    @property
    def usual(self) -> dict[str, Any]:
        return {key: x for key, x in replace(self, policy=type(self.policy)()).options.items() if key != "policy"}

    @property
    def label(self) -> str:
        """As a command line takes it: a policy by its own name, not by that of the design that it is on."""
        long, name = super().label, self.options.get("policy", "/")
        return long if "/" in name else long.replace(f"{self.name}:policy={name}", name, 1)

    def but(self: C, policy: str | None = None, **options: Any) -> C:
        chosen: Any = self.policy
        if policy is not None:
            chosen = POLICIES[policy]()
            if chosen.on != self.name:
                raise SurefootError(f"the policy {policy} is for {chosen.on}; got {self.name}")
        return replace(self, policy=replace(chosen, **options) if options else chosen)

    @property
    def draws(self) -> int:  # type: ignore[override]
        return self.policy.draws

    @property
    def portable(self) -> bool:  # type: ignore[override]
        return self.policy.portable

    def begin(self, problem: Problem, trials: int, xp: Any) -> E:
        inside, readings = begin(problem, trials, xp)
        state: E = replace(self.evidence.begin(inside, trials, xp), readings=readings)
        floor = self.policy.floor
        state = replace(state, certified=self.evidence.certified(state))
        return replace(state, memory=self.policy.begin(state), floor=floor and floor.begin(state))

    def plan(self, state: E, u: Array) -> Cohort:
        xp, p = array_namespace(state.pulls), state.problem
        cohort = self.policy.choose(state, u)
        for what, x in (("dose", cohort.dose), ("n", cohort.n)):
            if getattr(x, "shape", None) != state.standing.shape:
                need = f"an array of shape {tuple(state.standing.shape)}, (trials, arms)"
                raise SurefootError(f"{what} of a policy's Cohort must be {need}; got {x!r}"[:300])
        may, left = self.evidence.open(state), state.standing == ACTIVE
        n = xp.where(may, cohort.n, 0)
        idle = ~xp.any(n > 0, axis=1, keepdims=True)  # a running trial goes on, whatever the policy
        n, dose, floor = xp.where(idle & left, 1, n), cohort.dose, None if state.floor is None else self.policy.floor
        if floor is not None:
            dose, n = floor.visit(state, dose, n)
        dose = round_down(p, xp.clip(dose, like(dose, p.starts), state.certified))
        n = n if state.readings is None else state.readings.enough(n)
        before = xp.cumulative_sum(n, axis=1) - n
        left = p.budget - state.pulls[:, None] - before
        n = xp.clip(n, xp.zeros_like(n), xp.maximum(left, xp.zeros_like(n)))
        cohort, own = Cohort(dose, n), cohort.stakes
        if own is None:
            own = self.policy.stakes(state, cohort)
        return replace(cohort, stakes=own if floor is None else floor.stakes(state, cohort, own))

    def learn(self, state: E, cohort: Cohort, outcome: Outcome) -> E:
        if cohort.stakes is None:  # nothing was staked on these readings
            xp, names = array_namespace(state.pulls), self.evidence.stakes(state.problem)
            none = xp.full((*cohort.dose.shape, len(names)), xp.nan, dtype=xp.float64, device=device(state.pulls))
            cohort = replace(cohort, stakes=none)
        if state.readings is not None:  # what they count for was known before they came
            readings, outcome = state.readings.learn(outcome), state.readings.inside(outcome)
            state = replace(state, readings=readings)
        new: E = self.evidence.learn(state, cohort, outcome)
        new = replace(new, certified=self.evidence.certified(new))
        if state.floor is not None:
            new = replace(new, floor=self.policy.floor.remember(new, cohort, outcome, state))
        return replace(new, memory=self.policy.remember(new, cohort, outcome))

    def verdict(self, state: E) -> Verdict:
        verdict = self.evidence.verdict(state, replace(super().verdict(state), certified=state.certified))
        return verdict if state.readings is None else state.readings.outside(verdict)

    def against(self, state: E) -> Array:
        return self.evidence.against(state)

    def seems(self, state: E) -> Estimates:
        seems = self.evidence.seems(state) or super().seems(state)
        if self.shape == "monotonic":  # curves are known as far as doses go: short of the limit, they climb
            p, some = state.problem, array_namespace(state.pulls).isfinite(seems.effect)
            top = seems.dose >= round_down(p, state.certified)
            seems = replace(seems, climbs=top & some & (seems.dose < like(seems.dose, p.largest)))
        return seems if state.readings is None else state.readings.seen(seems)

    def _within_budget(self, s: E) -> E:
        """All of the budget is used; if the winner is known by then, refining ends there."""
        xp = array_namespace(s.pulls)
        spent = (s.ending == RUNNING) & (s.pulls >= s.problem.budget)
        return replace(s, ending=xp.where(spent, xp.where(s.found > 0, s.found, BUDGET_SPENT), s.ending))
