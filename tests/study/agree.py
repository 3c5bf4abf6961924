"""Checker and design on many random studies: python -m tests.study.agree DESIGN 1000 [READINGS] [FIRST SEED]

And designs that are too sure of themselves, of which the guard catches every one: python -m tests.study.agree sure 100
"""

from __future__ import annotations

import sys

from surefoot.designs import DESIGNS

from .test_checker import SURE, agree, caught

if __name__ == "__main__":
    name, many = sys.argv[1], int(sys.argv[2])
    most, first = (int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((3, 100), (4, 0)))
    if name == "sure":
        for kind in SURE:
            own, DESIGNS.known[kind.name] = DESIGNS.known[kind.name], kind
            print(f"{kind.name}: caught in {sum(caught(kind, seed) for seed in range(many)):,} of {many:,}", flush=True)
            DESIGNS.known[kind.name] = own
    else:
        cohorts = sum(agree(name, seed, most) for seed in range(first, first + many))
        print(f"{name}: {many:,} studies of {most} readings and more, {cohorts:,} cohorts, no disagreement")
