"""Our own designs: evidence, and a policy on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ..problem import Shape
from .compose import Composed, Policy
from .monotonic_evidence import MonotonicEvidence, MonotonicState
from .monotonic_policy import MonotonicPolicy


@dataclass(frozen=True)
class SurefootMonotonic(Composed[MonotonicState]):
    """The paper's guarantee for monotone curves with all data pooled."""

    policy: Policy[MonotonicState] = field(default_factory=MonotonicPolicy)

    name: ClassVar[str] = "surefoot-monotonic"
    shape: ClassVar[Shape] = "monotonic"
    chunk: ClassVar[int] = 512
    evidence: ClassVar[MonotonicEvidence] = MonotonicEvidence()
