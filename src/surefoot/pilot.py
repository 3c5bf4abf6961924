"""What earlier readings say about a problem: sigmas, signs that an assumption is wrong, lines for a problem file.

Nothing here is promised by a theorem of ours: textbook intervals and tests, for whoever writes the problem.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .checks import SurefootError, number

COLUMNS = ("arm", "dose", "effect", "harm")
READINGS = COLUMNS[2:]
LEVEL = 0.95  # of an upper bound on sigma
DOUBT = 0.01  # a test below it is a sign


@dataclass(frozen=True)
class Spread:
    """Of one reading of an arm: how many, their standard deviation around the mean of their dose, a 95% upper bound on
    sigma if they are normal, and the range."""

    arm: str
    reading: str
    n: int
    sigma: float
    upper: float
    low: float
    high: float


@dataclass(frozen=True)
class Pilot:
    """What earlier readings say."""

    spreads: list[Spread]
    signs: list[str]
    lipschitz: dict[str, float]  # of each arm: the steepest rise of harm from one dose to the next, and two errors more
    kinds: dict[str, str] = field(default_factory=dict)

    def lines(self) -> str:
        """For a problem file."""
        parts = []
        for reading in READINGS:
            mine = [s for s in self.spreads if s.reading == reading]
            low, high = min(s.low for s in mine), max(s.high for s in mine)
            wide = max((s.sigma for s in mine if math.isfinite(s.sigma)), default=math.nan)
            parts.append(
                f"{reading} = " + {
                    "binary": '{ kind = "bernoulli" }',
                    "share": f'{{ kind = "bounded", low = {min(low, 0.0):g}, high = {max(high, 1.0):g} }}'
                    f'  # if none can ever be outside; else kind = "gaussian-guess", guess = {wide:.3g}',
                }.get(self.kinds[reading], f'{{ kind = "gaussian-guess", guess = {wide:.3g} }}')
            )  # fmt: skip
        found = ["[noise]", *parts]
        for arm, steep in self.lipschitz.items():
            found += ["", "[[arms]]", f'name = "{arm}"']
            found.append(
                f"# lipschitz = {steep:.3g}  # the steepest rise seen (monotonic shape). It is NO bound beyond these"
            )
            found.append("# doses, and one that is too small voids the promise: put one that you know")
        return "\n".join(found) + "\n"

    def to_dict(self) -> dict[str, Any]:
        return {
            "spreads": [asdict(s) for s in self.spreads], "signs": self.signs, "lipschitz": self.lipschitz,
            "kinds": self.kinds, "lines": self.lines(),
        }  # fmt: skip


def read(path: str | Path) -> list[dict[str, Any]]:
    """Rows with arm, dose, effect and harm from a CSV file."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if lacks := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
                there = ", ".join(reader.fieldnames or ()) or "none"
                raise SurefootError(f"{path} lacks the column {', '.join(lacks)}; it has {there}: rename them")
            return [dict(row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SurefootError(f"cannot read {path}: {error}") from error


def pilot(rows: str | Path | Iterable[Mapping[str, Any]]) -> Pilot:
    """What these readings say: a CSV file, or rows with arm, dose, effect and harm."""
    table = _table(read(rows) if isinstance(rows, (str, Path)) else rows)
    spreads, signs, steep = list[Spread](), list[str](), dict[str, float]()
    for arm, doses in table.items():
        for r, reading in enumerate(READINGS):
            groups = {dose: np.array([pair[r] for pair in pairs]) for dose, pairs in sorted(doses.items())}
            spreads.append(_spread(arm, reading, list(groups.values())))
            signs += _signs(arm, reading, groups)
        steep[arm] = _steepest({dose: np.array([pair[1] for pair in pairs]) for dose, pairs in sorted(doses.items())})
    every = {r: np.concatenate([[p[k] for p in ps] for d in table.values() for ps in d.values()])
             for k, r in enumerate(READINGS)}  # fmt: skip
    kinds = {
        r: "binary" if np.isin(x, (0.0, 1.0)).all() else "share" if x.min() >= 0 and x.max() <= 1 else "number"
        for r, x in every.items()
    }
    return Pilot(spreads, signs, {k: x for k, x in steep.items() if math.isfinite(x)}, kinds)


def _table(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[float, list[tuple[float, float]]]]:
    found: dict[str, dict[float, list[tuple[float, float]]]] = {}
    for k, row in enumerate(rows, 1):
        try:
            dose, effect, harm = (number(f"row {k}: {name}", float(row[name])) for name in COLUMNS[1:])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, SurefootError):
                raise
            raise SurefootError(
                f"row {k} needs an arm and numbers for {', '.join(COLUMNS[1:])}; got {dict(row)}"
            ) from None
        found.setdefault(str(row.get("arm", "")).strip(), {}).setdefault(dose, []).append((effect, harm))
    if not found:
        raise SurefootError("there are no readings: one row for every subject, with arm, dose, effect and harm")
    return found


def _spread(arm: str, reading: str, groups: list[Any]) -> Spread:
    from scipy import stats

    every, free = np.concatenate(groups), sum(len(x) - 1 for x in groups)
    squares = sum(float(((x - x.mean()) ** 2).sum()) for x in groups)
    sigma, upper = math.nan, math.inf
    if free > 0:
        sigma, upper = math.sqrt(squares / free), math.sqrt(squares / stats.chi2.ppf(1 - LEVEL, free))
    return Spread(arm, reading, len(every), sigma, upper, float(every.min()), float(every.max()))


def _signs(arm: str, reading: str, groups: Mapping[float, Any]) -> list[str]:
    """That a line through 0 does not fit, that means fall, that readings scatter more at one dose than at another."""
    from scipy import stats

    found = list[str]()
    big = {dose: x for dose, x in groups.items() if len(x) > 1 and x.std() > 0}
    if len(big) < 2:
        return found
    dose, mean = np.array(list(big)), np.array([x.mean() for x in big.values()])
    error = np.array([x.std(ddof=1) / math.sqrt(len(x)) for x in big.values()])
    if (dose > 0).all():
        w = 1 / error**2
        slope = float((w * dose * mean).sum() / (w * dose**2).sum())
        p = stats.chi2.sf(float((((mean - slope * dose) / error) ** 2).sum()), len(big) - 1)
        if p < DOUBT:
            found.append(f"{arm}, {reading}: a line through 0 does not fit (p = {p:.2g}): the linear shape is doubtful")
    for k in range(len(dose) - 1):
        p = stats.norm.cdf((mean[k + 1] - mean[k]) / math.hypot(error[k], error[k + 1]))
        if p < DOUBT:
            found.append(f"{arm}, {reading}: it falls from dose {dose[k]:g} to {dose[k + 1]:g} (p = {p:.2g})")
    if all(len(x) > 4 for x in big.values()) and (p := float(stats.levene(*big.values()).pvalue)) < DOUBT:
        found.append(
            f"{arm}, {reading}: it scatters more at some doses than at others (p = {p:.2g}): that sigma is the same at "
            f"every dose is doubtful; declare one that holds for all"
        )
    return found


def _steepest(groups: Mapping[float, Any]) -> float:
    found = [
        ((b.mean() - a.mean()) + 2 * math.hypot(*(x.std(ddof=1) / math.sqrt(len(x)) for x in (a, b)))) / (high - low)
        for (low, a), (high, b) in zip(list(groups.items())[:-1], list(groups.items())[1:], strict=True)
        if len(a) > 1 and len(b) > 1
    ]
    return max(found, default=math.nan)
