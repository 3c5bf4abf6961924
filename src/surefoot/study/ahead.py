"""Looking ahead, and looking at what might have been: the decision table, the forecast and the tipping points.

All three play the design on from a state of the study with readings that nobody has seen: `tell` is pure, so this costs
one call for a whole table.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..decisions import TURNS, turns, until_given, what_next
from ..designs.base import ENDINGS, RUNNING, STANDINGS, Outcome, expected_squares, repeat, take
from ..problem import Problem, SurefootError
from ..scenario import Scenario
from .checker import READINGS, Given
from .fold import View

FEW = 6  # of so few yes-or-no readings every number is looked at


def preview(
    view: View, harm: Sequence[float] | None = None, effect: Sequence[float] | None = None
) -> list[dict[str, Any]]:
    """The decision table: what the open cohort's mean harm and mean effect in one arm would lead to.

    One row an arm and pair of means, the other arms being at their means so far (those without a reading at a harm of
    the limit and an effect of 0): up to where it would be shown to be safe, its standing and how the study would end;
    `then` says in words what it is given next. Where others come first, they are played without harm.
    """
    given, problem = view.open, view.problem
    if given is None:
        return []
    base = [_so_far(view, given, arm) for arm in range(len(given.n))]
    rows = []
    for arm, n in enumerate(given.n):
        if not n:
            continue
        e0, h0 = base[arm]
        wide = [4 * noise.scale / math.sqrt(n) for noise in problem.noises]
        low, high = min(h0, problem.limit) - wide[1], max(h0, problem.ceiling) + wide[1]
        grids = [
            list(effect) if effect is not None else np.linspace(e0 - wide[0], e0 + wide[0], 3).tolist(),
            list(harm) if harm is not None else np.linspace(low, high, 7).tolist(),
        ]
        for r, noise in enumerate(problem.noises):
            if noise.worst is not None:
                grids[r] = np.clip(grids[r], *noise.worst).tolist()
            if noise.binary and n <= FEW and (effect, harm)[r] is None:
                grids[r] = [k / n for k in range(n + 1)]
            elif noise.counts:  # a mean of n whole numbers
                most = n if noise.binary else math.inf
                grids[r] = sorted({min(max(round(x * n), 0), most) / n for x in grids[r]})
        look = partial(_table, view, given, arm, base)
        if problem.noises[1].binary and n > FEW and harm is None:  # all of them, as far as they make a difference
            grids[1] = turns(np.arange(n + 1) / n, partial(_leads, look, grids[0])).tolist()
        rows += look(*grids)
    return rows


def _table(
    view: View, given: Given, arm: int, base: list[tuple[float, float]], effects: list[float], harms: list[float]
) -> list[dict[str, Any]]:
    """A row a harm and effect of one arm, all of them played at once."""
    problem, n, pairs = view.problem, given.n[arm], [(e, h) for h in harms for e in effects]
    means = np.repeat(np.array([base]), len(pairs), axis=0)
    means[:, arm] = pairs
    before = view.before[given.number - 1]
    after, was = _tell(view, given, before, means), repeat(view.released(given, before), len(pairs))
    wait = TURNS if problem.shape == "levels" else 0  # elsewhere cohorts are large, and many may come first
    later = until_given(problem, view.design, after, arm, wait)
    asked = view.design.ask(after, np.full((len(pairs), view.design.draws), 0.5))
    binary, rows = [noise.binary for noise in problem.noises], list[dict[str, Any]]()
    for k, (e, h) in enumerate(pairs):
        winner = int(after.winner[k])
        rows.append(
            {
                "arm": problem.names[arm],
                "n": n,
                "harm": h,
                "effect": e,
                **{f"{key}s": round(x * n) for key, x, yes in zip(READINGS, (e, h), binary, strict=True) if yes},
                "standing": STANDINGS[int(after.standing[k, arm])],
                "safe": problem.arms[arm].said(float(after.safe[k, arm])),
                "next": {"dose": problem.arms[arm].said(float(asked.dose[k, arm])), "n": int(asked.n[k, arm])}
                if asked.n[k, arm]
                else None,
                "then": what_next(problem, later[0], was, *later[1:], arm, k),
                "ending": ENDINGS[int(after.ending[k])],
                "winner": problem.names[winner] if winner >= 0 else None,
            }
        )
    return rows


def _leads(look: Callable[..., list[dict[str, Any]]], effects: list[float], harms: Any) -> list[Any]:
    """What each harm leads to, whatever the effect."""
    then = [_then(row) for row in look(effects, harms.tolist())]
    return [then[k : k + len(effects)] for k in range(0, len(then), len(effects))]


def _then(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row leads to."""
    return tuple((key, row[key]) for key in ("arm", "standing", "safe", "then", "ending", "winner"))


def merged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The table for people: what leads to the same is one row, of each harm the effects, then of these the harms; of
    yes-or-no readings how many of how many."""
    effects, harms = dict[tuple[Any, ...], list[str]](), dict[tuple[Any, ...], list[Any]]()
    every = {
        arm: sorted({r["harms"] for r in rows if r["arm"] == arm and "harms" in r}) for arm in {r["arm"] for r in rows}
    }
    for r in rows:
        of = tuple(f" of {r['n']:,}" if f"{key}s" in r else "" for key in READINGS)
        effects.setdefault((r.get("harms", r["harm"]), of, _then(r)), []).append(f"{r.get('effects', r['effect']):.6g}")
    for (harm, of, then), came in effects.items():
        harms.setdefault((", ".join(came), of, then), []).append(harm)
    return [
        dict(then)
        | {
            "effect": effect + of[0],
            "harm": (_runs(came, every[then[0][1]]) if of[1] else ", ".join(f"{x:.4g}" for x in came)) + of[1],
        }
        for (effect, of, then), came in harms.items()
    ]


def _runs(counts: list[int], every: list[int]) -> str:
    """Counts of which none that was looked at lies between them are one: 0 to 43."""
    runs = list[list[int]]()
    for k in counts:
        if runs and every.index(k) == every.index(runs[-1][-1]) + 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    return ", ".join(f"{run[0]:,}" + (f" to {run[-1]:,}" if len(run) > 1 else "") for run in runs)


def _so_far(view: View, given: Given, arm: int) -> tuple[float, float]:
    """An arm's mean effect and harm in this cohort, else in the last before it that has any."""
    for cohort in reversed(view.cohorts[: given.number]):
        means = []
        for values in (view.effect, view.harm):
            seen = [s for s, i in cohort.subjects() if i == arm and values[s] == values[s]]
            many = sum(view.reading(s).get("n", 1) for s in seen)
            means.append(math.fsum(values[s] for s in seen) / many if seen else math.nan)
        if not math.isnan(sum(means)):
            return means[0], means[1]
    return 0.0, view.problem.limit


def _tell(view: View, given: Given, state: Any, means: Any) -> Any:
    """Clones of a state, each told this cohort with other means, (clones, arms, 2)."""
    n = np.repeat(np.array([given.n]), len(means), axis=0)
    cohort = repeat(view.released(given, state), len(means))
    outcome = Outcome(n, n * means[..., 0], n * means[..., 1], expected_squares(view.problem, n))
    return view.design.tell(repeat(state, len(means)), cohort, outcome)


def forecast(view: View, scenarios: Sequence[Scenario], trials: int, seed: int) -> list[dict[str, Any]]:
    """How many pulls are still to go, by simulation from the present state, if a scenario were the truth.

    Readings that the open cohort has already count as they are. Pauses, voids and corrections are not foreseen.
    """
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise SurefootError(f"trials must be a whole number of at least 1; got {trials!r}")
    return [_forecast(view, scenario, trials, np.random.default_rng([seed, k])) for k, scenario in enumerate(scenarios)]


def same_arms(view: View, problem: Problem, what: str) -> None:
    """Refuse the truths of another problem: a scenario has curves, and no names."""
    if problem.names != view.problem.names:
        said = f"{what} is about the arms {', '.join(problem.names)}; this study has {', '.join(view.problem.names)}"
        raise SurefootError(f"{said}: a forecast needs a truth of the same arms, in the same order")


def _forecast(view: View, scenario: Scenario, trials: int, rng: np.random.Generator) -> dict[str, Any]:
    problem, design = view.problem, view.design
    scenario.check(problem)
    state = repeat(view.state, trials)
    pulls = np.zeros(trials, np.int64)
    rows = np.arange(trials)
    ending = np.array(state.ending)
    winner, best = np.array(state.winner), np.full(trials, -1)
    given = view.open if view.standing in ("running", "paused") else None
    while True:
        done = np.asarray(state.ending) != RUNNING
        ending[rows], winner[rows] = state.ending, state.winner
        if done.any():  # if that is all there is: what would be recommended
            best[rows[done]] = design.recommendation(take(state, np.flatnonzero(done)), odds=False).arm
        if done.all() or view.stopped:
            break
        rows, state = rows[~done], take(state, np.flatnonzero(~done))
        if given is not None:
            d = len(problem.arms)
            came = [[x for (arm, _), x in view.sums(given).items() if arm == i] for i in range(d)]
            had, *sums = (np.array([sum(x[k] for x in row) for row in came]) for k in range(3))
            cohort = repeat(view.released(given, view.state), len(rows))
            n, given = np.maximum(cohort.n - had, 0), None
            cohort = replace(cohort, n=n + had)
        else:
            cohort = design.ask(state, rng.random((len(rows), design.draws)))
            n, sums = cohort.n, [np.zeros(len(problem.arms))] * 2
        effect, harm, _, *squares = scenario.draw(rng, problem, cohort.dose, n, state.pulls)
        pulls[rows] += n.sum(axis=1)
        outcome = Outcome(cohort.n, sums[0] + effect, sums[1] + harm, tuple(squares) or None)
        state = design.tell(state, cohort, outcome)
    return {
        "scenario": scenario.name,
        "trials": trials,
        "pulls": {
            "mean": float(pulls.mean()),
            "se": float(pulls.std(ddof=1) / math.sqrt(trials)) if trials > 1 else 0.0,
            **{f"p{q}": float(np.quantile(pulls, q / 100)) for q in (10, 50, 90)},
        },
        "endings": {name: int((ending == k).sum()) for k, name in enumerate(ENDINGS) if (ending == k).any()},
        "winners": _shares(problem, winner),
        "recommended": _shares(problem, best),  # the winner, or where none is named who seems to be the best
    }


def _shares(problem: Problem, arm: Any) -> dict[str, float]:
    return {name: float((arm == i).mean()) for i, name in enumerate(problem.names) if (arm == i).any()}


def tipping(view: View) -> list[dict[str, Any]]:
    """For every cohort and arm with drop-outs: how far their readings would have to lie from the others' before the
    decision of that cohort changed, or a dose given next was not certified. Other arms and cohorts stay as they are.
    """
    return [
        _tip(view, given, arm, count)
        for given in view.cohorts
        if given.closed and not given.blocks  # of a block nobody drops out: it has as many as came
        for arm, count in _dropped(view, given).items()
    ]


def _dropped(view: View, given: Given) -> dict[int, int]:
    """Drop-outs by arm, whether they count as a reading or somebody took over."""
    count: dict[int, int] = {}
    for subject, arm in given.subjects():
        if subject in view.gone:
            count[arm] = count.get(arm, 0) + 1
    return count


def _tip(view: View, given: Given, arm: int, count: int) -> dict[str, Any]:
    problem, state, names = view.problem, view.before[given.number - 1], view.problem.names
    kept = [(a, view.effect[s], view.harm[s]) for s, a in given.subjects() if view.complete(s) and s not in view.gone]
    means = np.zeros((1, len(given.n), 2))
    for i in range(len(given.n)):
        if own := [(e, h) for a, e, h in kept if a == i]:
            means[0, i] = math.fsum(e for e, _ in own) / len(own), math.fsum(h for _, h in own) / len(own)
    seen = sum(1 for a, *_ in kept if a == arm)
    share = count / (count + seen)
    factual = _decision(view.before[given.number] if given.number < len(view.before) else view.state)
    following = view.cohorts[given.number] if given.number < len(view.cohorts) else None
    before = copy.deepcopy(next(theorem for cohort, theorem in view.replay() if cohort is given))
    at = (arm, given.dose[arm])

    def unchanged(r: int, x: float) -> bool:
        """Whether the cohort is decided as it was, and its arm's next dose certified, had the drop-outs averaged x."""
        changed = means.copy()
        changed[0, arm, r] += share * (x - means[0, arm, r])
        if _decision(_tell(view, given, state, changed)) != factual:
            return False
        if r == 0 or following is None or not following.n[arm] or at not in given.came:
            return True
        n, theorem, told = given.came[at][0], copy.deepcopy(before), copy.copy(given)
        told.came = {**given.came, at: (n, n * float(changed[0, arm, 0]), n * float(changed[0, arm, 1]))}
        theorem.take(told)
        theorem.publish(following.dose, following.stakes)
        return theorem.refusal(arm, following.dose[arm]) is None

    row: dict[str, Any] = {"cohort": given.number, "arm": names[arm], "dropped": count, "read": seen}
    for r, reading in enumerate(READINGS):
        noise = problem.noises[r]
        others = float(means[0, arm, r])
        far = noise.worst or (others - 50 * noise.scale, others + 50 * noise.scale)
        below, above = (_edge(partial(unchanged, r), others, end) for end in far)
        row[reading] = {"others": others, "below": below, "above": above}
    return row


def _decision(state: Any) -> tuple[Any, ...]:
    return tuple(state.standing[0].tolist()), int(state.winner[0]), int(state.ending[0])


def _edge(holds: Callable[[float], bool], inside: float, outside: float) -> float | None:
    """Where it ceases to hold on the way out, by bisection; None where it holds all the way."""
    if not holds(inside):
        return inside
    if holds(outside):
        return None
    for _ in range(40):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return outside
