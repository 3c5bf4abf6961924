"""The picture of benchmarks.ours: python -m benchmarks.picture numbers.json docs/ours.png"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from surefoot.plots import COLOURS

THEIRS, OURS = COLOURS[:2]


def paper(axis: Axes, found: dict[str, Any], key: str, arms: Sequence[int], names: tuple[str, str], title: str) -> None:
    """Mean pulls of both against the number of arms, and by how many times they differ."""
    rows = [found[key.format(d=d)] for d in arms]
    for whose, name, colour, marker in (("theirs", names[0], THEIRS, "o"), ("ours", names[1], OURS, "s")):
        axis.plot(arms, [row[whose][0] for row in rows], color=colour, marker=marker, ms=4, label=name)
    for d, row in zip(arms, rows, strict=True):
        middle = (row["theirs"][0] * row["ours"][0]) ** 0.5
        axis.annotate(f"÷ {row['ratio'][0]:.0f}", (d, middle), ha="center", va="center", fontsize=7)
    axis.set(xscale="log", yscale="log", xlabel="number of arms", ylabel="mean pulls to a verdict")
    axis.set_title(title, fontsize=8)
    axis.set_xticks(arms, [str(d) for d in arms])
    axis.minorticks_off()
    axis.legend(fontsize=7, frameon=False, loc="upper left")
    axis.set_ylim(top=axis.get_ylim()[1] * 4)
    axis.margins(x=0.12)


def random(axis: Axes, found: dict[str, Any]) -> None:
    """How the ratio is spread over the random instances."""
    for family, colour, style in (("random-linear", COLOURS[2], "-"), ("random-monotonic", COLOURS[3], "--")):
        ratio = np.sort([one["ratio"][0] for one in found[family]])
        axis.plot(ratio, np.arange(1, len(ratio) + 1) / len(ratio), color=colour, ls=style, label=family)
    axis.axvline(1, color="#777777", lw=0.8, ls=":")
    axis.set(xscale="log", xlabel="times fewer pulls", ylabel="share of instances at or below", ylim=(0, 1))
    axis.set_xlim(0.7, 1e3)
    axis.set_title("random instances, 8 arms", fontsize=8)
    axis.legend(fontsize=7, frameon=False, loc="lower right")


def draw(numbers: str, path: str) -> None:
    found = json.loads(Path(numbers).read_text(encoding="utf-8"))
    with plt.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), dpi=160, layout="constrained")
        both = ("safebai", "surefoot")
        paper(axes[0], found, "paper-linear d={d} delta=0.1", (5, 10, 20), both, "paper-linear, delta 0.1")
        paper(axes[1], found, "paper-drug d={d} slack=0.2", (3, 5, 10, 20), both, "paper-drug, slack 0.2, delta 0.1")
        random(axes[2], found)
        figure.savefig(path)


if __name__ == "__main__":
    draw(*sys.argv[1:])
