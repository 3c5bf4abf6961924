"""What is done of several runs, and how long the rest will take, in seconds that were measured on the way."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Pace:
    """One run: its trials, those of finished jobs and the seconds these took, and the jobs that are being played."""

    trials: int
    done: int = 0
    seconds: float = 0.0
    weight: float = 1.0  # about what a trial costs beside those of other runs, before it is known
    before: int = 0  # trials that were kept from an earlier time; they cost nothing now
    going: dict[int, tuple[int, float, float]] = field(default_factory=dict)  # trials, share that is done, begun at

    @property
    def ahead(self) -> float:
        """Trials that are done, counting parts of them."""
        return self.done + sum(size * share for size, share, _ in self.going.values())

    def cost(self, now: float) -> float | None:
        """Seconds a trial; None where nobody knows yet."""
        seconds = self.seconds + sum(now - began for _, share, began in self.going.values() if share > 0.02)
        trials = self.done + sum(size * share for size, share, _ in self.going.values() if share > 0.02)
        return seconds / trials if trials else None


def seconds_left(paces: list[Pace], elapsed: float, now: float) -> tuple[float, float | None]:
    """The share of all work that is done, and the time that is left; None where nobody can say.

    A run that has not begun is taken to cost what the others do, by their weights.
    """
    costs = [pace.cost(now) for pace in paces]
    known = [cost / pace.weight for cost, pace in zip(costs, paces, strict=True) if cost is not None]
    if not known:
        return 0.0, None
    usual = sum(known) / len(known)
    each = [usual * pace.weight if cost is None else cost for cost, pace in zip(costs, paces, strict=True)]
    done = sum(cost * pace.ahead for cost, pace in zip(each, paces, strict=True))
    whole = sum(cost * (pace.trials - pace.before) for cost, pace in zip(each, paces, strict=True))
    if done <= 0:
        return 0.0, None
    return min(done / whole, 1.0) if whole else 1.0, elapsed * max(whole - done, 0.0) / done


class Bar:
    """Shows it on a terminal once it has taken two seconds; elsewhere nothing, or with `lines` a line now and then."""

    def __init__(self, paces: list[Pace], wanted: bool, lines: bool = False) -> None:
        self.paces, self.began, self.said = paces, time.monotonic(), time.monotonic()
        self.wanted, self.lines = wanted and sys.stderr.isatty(), wanted and lines and not sys.stderr.isatty()
        self.bar: Any = None

    def say(self, text: str) -> None:
        """A line of its own."""
        if self.bar is not None:
            self.bar.console.print(text, highlight=False)
        elif self.lines:
            self.said = time.monotonic()
            _, left = seconds_left(self.paces, self.said - self.began, self.said)
            print(text + (f"; {span(left)} left" if left is not None else ""), file=sys.stderr, flush=True)

    def show(self) -> None:
        now = time.monotonic()
        if not (self.wanted or self.lines) or now - self.began < 2 or now - self.said < (0.2 if self.wanted else 30):
            return
        done, left = seconds_left(self.paces, now - self.began, now)
        if self.lines:
            self.say(f"{done:.0%} done")
            return
        self.said = now
        if self.bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

            columns = BarColumn(), TaskProgressColumn(), TextColumn("{task.description}")
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.bar.add_task("", total=1.0)
            self.bar.start()
        self.bar.update(self.bar.task_ids[0], completed=done, description=f"{span(left)} left" if left else "")

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()


def span(seconds: float) -> str:
    if seconds >= 5400:
        return f"about {seconds / 3600:.1f} hours"
    return f"about {seconds / 60:.0f} minutes" if seconds >= 90 else f"about {max(seconds, 1):.0f} seconds"
