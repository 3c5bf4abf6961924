"""Checker and design on many random studies: python -m tests.study.agree DESIGN 1000"""

from __future__ import annotations

import sys

from .test_checker import agree

if __name__ == "__main__":
    name, many = sys.argv[1], int(sys.argv[2])
    cohorts = sum(agree(name, seed) for seed in range(many))
    print(f"{name}: {many:,} studies, {cohorts:,} cohorts, no disagreement")
