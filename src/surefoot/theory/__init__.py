"""What is known in theory about a problem whose truth is known: gaps, lower bounds, and how many pulls the paper's two
algorithms need.

Formulas carry the symbols of Wang, Wagenmaker and Jamieson: theta, mu, gamma (the limit), epsilon_safe (the slack), a0
and M (start and largest dose), S_i (the safe doses), i* (the best arm). The upper bounds are about `safebai-linear` and
`safebai-monotonic` as they are coded here, with `unit` 1; they hold with probability 1 - delta, whenever the two
readings of all Estimates are within epsilon_l. Where a formula had to be corrected for that, its docstring says how.

A theorem whose assumptions fail says nothing: `NotStated` is raised then, and says in words which one fails.
"""

from .certified import CertifiedBound, certified_lower_bound
from .common import NotStated, gaps, kl
from .linear import (
    CharacteristicTime,
    LinearBound,
    Phi,
    characteristic_time,
    linear_complexity,
    linear_corollary,
    linear_lower_bound,
    linear_upper_bound,
    xi,
    xi_bound,
)
from .monotonic import MonotonicBound, monotonic_corollary, monotonic_lower_bound, monotonic_upper_bound
from .report import show, summary
from .resolvable import doubts, impossible

__all__ = [
    "CertifiedBound",
    "CharacteristicTime",
    "LinearBound",
    "MonotonicBound",
    "NotStated",
    "Phi",
    "certified_lower_bound",
    "characteristic_time",
    "doubts",
    "gaps",
    "impossible",
    "kl",
    "linear_complexity",
    "linear_corollary",
    "linear_lower_bound",
    "linear_upper_bound",
    "monotonic_corollary",
    "monotonic_lower_bound",
    "monotonic_upper_bound",
    "show",
    "summary",
    "xi",
    "xi_bound",
]
