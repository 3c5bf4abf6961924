"""Our designs: evidence and a policy on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..problem import Shape
from .compose import Composed, Evidence, Policy
from .linear_evidence import LinearEvidence, LinearState
from .linear_policy import LinearPolicy


@dataclass(frozen=True)
class SurefootLinear(Composed[LinearState]):
    """The paper's guarantee for lines through 0 with all data pooled: ten and more times fewer pulls.

    growth: an arm's next cohort is this share of its pulls and 20 more; cohort: and at least so many. growth=0 and
    cohort=3 is fixed cohorts of three, growth=0 and cohort=1 is after every pull. first: pulls of every arm at first.
    """

    policy: Policy[Any] = field(default_factory=LinearPolicy)

    name: ClassVar[str] = "surefoot-linear"
    shape: ClassVar[Shape] = "linear"
    evidence: ClassVar[Evidence[Any]] = LinearEvidence()
