"""Our designs: evidence and a policy on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..problem import Shape
from .compose import Composed, Evidence, Policy
from .levels_evidence import LevelsEvidence, LevelsState
from .levels_policy import LevelsPolicy
from .linear_evidence import LinearEvidence, LinearState
from .linear_policy import LinearPolicy
from .monotonic_evidence import MonotonicEvidence, MonotonicState
from .monotonic_policy import MonotonicPolicy


@dataclass(frozen=True)
class SurefootLinear(Composed[LinearState]):
    """The paper's guarantee for lines through 0 with all data pooled: ten and more times fewer pulls.

    when: Effect and harm grow in proportion to the dose, through 0. The first choice there.
    """

    policy: Policy[Any] = field(default_factory=LinearPolicy)

    name: ClassVar[str] = "surefoot-linear"
    shape: ClassVar[Shape] = "linear"
    chunk: ClassVar[int] = 8192
    evidence: ClassVar[Evidence[Any]] = LinearEvidence()


@dataclass(frozen=True)
class SurefootMonotonic(Composed[MonotonicState]):
    """The paper's guarantee for monotone curves with all data pooled: fifteen and more times fewer pulls.

    when: Any curves that never fall, and a bound on how fast harm rises. The first choice with doses.
    """

    policy: Policy[Any] = field(default_factory=MonotonicPolicy)

    name: ClassVar[str] = "surefoot-monotonic"
    shape: ClassVar[Shape] = "monotonic"
    evidence: ClassVar[Evidence[Any]] = MonotonicEvidence()


@dataclass(frozen=True)
class SurefootLevels(Composed[LevelsState]):
    """Ordered levels, nothing assumed but that effect and harm never fall from one to the next.

    when: A few ordered levels, nothing known of distances: dose levels, ramp-up stages. Needs no constant.
    """

    policy: Policy[Any] = field(default_factory=LevelsPolicy)

    name: ClassVar[str] = "surefoot-levels"
    shape: ClassVar[Shape] = "levels"
    chunk: ClassVar[int] = 512
    evidence: ClassVar[Evidence[Any]] = LevelsEvidence()
