"""Checker and design on many random studies: python -m tests.study.agree DESIGN 1000 [READINGS]"""

from __future__ import annotations

import sys

from .test_checker import agree

if __name__ == "__main__":
    name, many = sys.argv[1], int(sys.argv[2])
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    cohorts = sum(agree(name, seed, most) for seed in range(many))
    print(f"{name}: {many:,} studies of {most} readings and more, {cohorts:,} cohorts, no disagreement")
