"""The command line. It shows and decides nothing: every command is a few lines over the library."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum, auto
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console
from rich.markup import escape

from . import __version__
from .catalogue import CASES, case
from .characteristics import Characteristics, to_csv, to_markdown, to_rich
from .checks import write
from .designs import DESIGNS, POLICIES, Design, default, find, make, options_of, policies, theorem_of
from .problem import Problem, SurefootError, choice
from .registry import about, meanings
from .scenario import Scenario, has_truth, load_all
from .simulate import Run, simulate_all
from .simulate import simulate as run
from .tables import Fit

app = typer.Typer(
    name="surefoot",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Which of several options is best at its highest safe level, found without stepping over the limit.",
)
console = Console()


class Format(StrEnum):
    table, markdown, csv, json = auto(), auto(), auto(), auto()


ScenarioName = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="A name from `surefoot scenarios`, or a TOML file.", show_default=False),
]
ScenarioNames = Annotated[
    list[str],
    typer.Argument(metavar="SCENARIO...", help="Names from `surefoot scenarios`, or TOML files.", show_default=False),
]
Budgets = Annotated[
    str | None,
    typer.Option(help="The most pulls, several with commas between, `end` for no limit; on levels 60,200,1000,end."),
]
USUAL = "60,200,1000,end"  # what trials with dose levels can afford, and what it takes
Arms = Annotated[int | None, typer.Option(help="Number of arms, where the scenario scales.")]
Instance = Annotated[int | None, typer.Option(help="Which one of a random family; 0 by default.")]
Trials = Annotated[int, typer.Option(help="Simulated trials.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers, whatever the workers.")]
Workers = Annotated[int, typer.Option(help="Processes; -1 for every core.")]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="tcp://HOST:PORT or tls://HOST:PORT (Dask), or ray://HOST:PORT (Ray)."),
]
OnDevice = Annotated[str | None, typer.Option("--device", help="An accelerator of PyTorch's, such as cuda.")]
Width = Annotated[int | None, typer.Option(help="Trials side by side; by default what suits design and device.")]
Out = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Keep what is done there; the same command goes on from it.")
]
Keep = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Keep every trial: a .csv, or a .parquet with the extra parquet.")
]
Delta = Annotated[float | None, typer.Option(help="Error probability: of a wrong arm or an unsafe pull.")]
Slack = Annotated[float | None, typer.Option(help="How far above the limit a pull may go (monotonic and levels).")]
Limit = Annotated[float | None, typer.Option(help="Harm must stay at or below it.")]
Tolerance = Annotated[float | None, typer.Option(help="Stop at an arm whose value is within this of the best.")]
Budget = Annotated[int | None, typer.Option(help="The most pulls.")]
Refine = Annotated[float | None, typer.Option(help="Go on until the winner's largest safe dose is known to this.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="An option of the design; repeatable.")
]
SetAny = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="An option of those designs that have it; repeatable."),
]
As = Annotated[Format, typer.Option("--format", help="How to print it.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object and nothing else.")]


def resolvable(problem: Problem) -> None:
    """Refuse a problem that nothing can resolve, and say what may keep it from ending."""
    from .theory.resolvable import dear, doubts, refuse

    refuse(problem)
    for line in (*doubts(problem), *dear(problem)):
        print(f"note: {line}", file=sys.stderr)


def _set(
    names: Sequence[str], arms: int | None, instance: int | None, **changes: Any
) -> list[tuple[Problem, Scenario]]:
    """All truths of these scenarios: a file may hold several."""
    found, changes = [], {key: value for key, value in changes.items() if value is not None}
    for name in names:
        if name in CASES or not (name.endswith(".toml") or Path(name).exists()):
            found.append(case(name, arms, instance=instance, **changes))
            continue
        if arms is not None:
            raise SurefootError("--arms is for scenarios that scale; a file has the arms it lists")
        if instance is not None:
            raise SurefootError("--instance is for the random families; a file is one scenario")
        problem, truths = load_all(name)
        problem = problem.but(**changes)
        resolvable(problem)
        found += [(problem, truth) for truth in truths]
    if len({problem.shape for problem, _ in found}) > 1:
        raise SurefootError("scenarios of different shapes have no design in common; give those of one shape")
    return found


def budgets_of(text: str | None) -> list[int | None]:
    """`60,200,end` as numbers; None is to the end."""
    try:
        return [None if x.strip() == "end" else int(x) for x in text.split(",")] if text else [None]
    except ValueError:
        raise SurefootError(f"budgets are whole numbers with commas between, or `end`; got {text!r}") from None


def _played(runs: Sequence[Run], keep: Path | None, out: Path | None, **how: Any) -> list[Characteristics]:
    from .columns import opened

    with going_on(out), opened(keep) as sink:
        return [Characteristics(result) for result in simulate_all(runs, sink=sink, out=out, **how)]


@contextmanager
def going_on(out: Path | None) -> Iterator[None]:
    """Ctrl-C loses nothing that is in a folder."""
    try:
        yield
    except KeyboardInterrupt:
        if out is None:
            raise
        print("interrupted; what was run is kept: the same command goes on from there", file=sys.stderr)
        raise SystemExit(130) from None


def _design(name: str | None, problem: Problem, truth: Scenario, options: Sequence[str] | None = None) -> Design:
    from .experiments import design_for

    own = [f"{key}={value}" for key, value in options_of(options).items()]
    return design_for(":".join([name or default(problem.shape), *own]), problem, truth)


def _designs(names: Sequence[str], problem: Problem, truth: Scenario, options: Sequence[str] | None) -> list[Design]:
    """Each with those of the options that it has; what none of them has is refused."""
    keys = [{*_design(name, problem, truth).options} for name in names]
    for option in options or ():
        if not any(option.partition("=")[0] in known for known in keys):
            _design(names[0], problem, truth, [option])  # says what there is
    own = [[x for x in options or () if x.partition("=")[0] in known] for known in keys]
    return [_design(name, problem, truth, mine) for name, mine in zip(names, own, strict=True)]


def _show(tables: list[Characteristics], form: Format, as_json: bool, whole: dict[str, Any]) -> None:
    if as_json or form is Format.json:
        print_json(whole)
    elif form is Format.table:
        console.print(to_rich(tables))
        for line in dict.fromkeys(note for table in tables for note in table.notes):
            console.print(f"[yellow]note:[/] {escape(line)}", highlight=False)
    else:
        print(to_markdown(tables) if form is Format.markdown else to_csv(tables), end="")


def _there(path: Path, what: str = "report") -> None:
    """Said before the work, which may take minutes."""
    if not path.parent.is_dir():
        raise SurefootError(f"cannot write the {what} to {path}: there is no folder {path.parent}")


def print_json(data: dict[str, Any]) -> None:
    print(json.dumps(data, allow_nan=False))


@app.command()
def simulate(
    scenario: ScenarioNames, design: Annotated[str | None, typer.Option(help="A name from `surefoot designs`.")] = None,
    trials: Trials = 1000, seed: Seed = 0, arms: Arms = None, delta: Delta = None, slack: Slack = None,
    limit: Limit = None, tolerance: Tolerance = None, budget: Budget = None, refine: Refine = None,
    instance: Instance = None, workers: Workers = 1, cluster: Cluster = None, device: OnDevice = None,
    width: Width = None, out: Out = None, keep: Keep = None, set_: Set = None, form: As = Format.table,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Simulate a design on one or more scenarios and print its operating characteristics."""
    asked = {"delta": delta, "slack": slack, "limit": limit, "tolerance": tolerance, "budget": budget, "refine": refine}
    one: dict[str, Any] = {"trials": trials, "seed": seed, "keep": keep is not None, "device": device, "width": width}
    problems = _set(scenario, arms, instance, **asked)
    runs = [Run(problem, truth, _design(design, problem, truth, set_), **one) for problem, truth in problems]
    tables = _played(runs, keep, out, workers=workers, cluster=cluster)
    found = [table.to_dict() for table in tables]
    _show(tables, form, as_json, found[0] if len(found) == 1 else {"scenarios": found})


def _fitting(problems: Sequence[tuple[Problem, Scenario]]) -> list[str]:
    """Designs to put side by side: those with a guarantee and, on levels, what is used today."""
    shape = problems[0][0].shape
    clinic = shape == "levels" and all(p.noises[1].binary for p, _ in problems)
    fitting = [name for name, kind in DESIGNS.items() if kind.shape == shape and (clinic or kind().guarantee)]
    fitting += policies(shape)
    if any(p.squares for p, _ in problems):  # the others need a sigma
        fitting = [name for name in fitting if name not in DESIGNS or DESIGNS[name].learns]
    return fitting


@app.command()
def compare(
    scenario: ScenarioNames,
    designs: Annotated[
        str | None, typer.Option(help="Names, commas between; by default all with a guarantee, on levels all.")
    ] = None,
    budgets: Budgets = None,
    trials: Trials = 1000, seed: Seed = 0, arms: Arms = None, delta: Delta = None, slack: Slack = None,
    limit: Limit = None, tolerance: Tolerance = None, budget: Budget = None, refine: Refine = None,
    instance: Instance = None, workers: Workers = 1, cluster: Cluster = None, device: OnDevice = None,
    width: Width = None, out: Out = None, keep: Keep = None, set_: SetAny = None, form: As = Format.table,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Simulate several designs on one or more scenarios, at one or more budgets, side by side."""
    asked = {"delta": delta, "slack": slack, "limit": limit, "tolerance": tolerance, "budget": budget, "refine": refine}
    problems = _set(scenario, arms, instance, **asked)
    if problems[0][0].shape == "levels" and budget is None:
        budgets = budgets or USUAL
    names = [name.strip() for name in designs.split(",")] if designs else _fitting(problems)
    one: dict[str, Any] = {"trials": trials, "seed": seed, "keep": keep is not None, "device": device, "width": width}
    runs = [
        Run(p if most is None else p.but(budget=most), truth, design, **one)
        for p, truth in problems
        for design in _designs(names, p, truth, set_)
        for most in budgets_of(budgets)
    ]
    tables = _played(runs, keep, out, workers=workers, cluster=cluster)
    rows = [table.to_dict() for table in tables]
    whole = [{"scenario": t.name, "designs": [r for r in rows if r["scenario"] == t.name]} for _, t in problems]
    _show(tables, form, as_json, whole[0] if len(whole) == 1 else {"scenarios": whole})


@app.command()
def plan(
    scenario: ScenarioNames,
    budgets: Budgets = USUAL,
    out: Annotated[Path, typer.Option(help="report.html or report.md; both are written.")] = Path("plan.html"),
    designs: Annotated[
        str | None,
        typer.Option(help="Names, commas between; the first is the one planned. On levels by default as `compare`."),
    ] = None,
    trials: Trials = 500, seed: Seed = 0, delta: Delta = None, slack: Slack = None, limit: Limit = None,
    tolerance: Tolerance = None, workers: Workers = 1, set_: SetAny = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Write the protocol report: question, design, promise, operating characteristics, decision table."""
    from .plan import Plan
    from .reports import to_html
    from .reports import to_markdown as markdown

    _there(out)
    problems = _set(scenario, None, None, delta=delta, slack=slack, limit=limit, tolerance=tolerance)
    problem = problems[0][0]
    if any(p != problem for p, _ in problems):
        raise SurefootError("a report is about one problem with many truths; these files hold different problems")
    usual = [default(problem.shape), *(_fitting(problems) if problem.shape == "levels" else ())]
    names = [name.strip() for name in designs.split(",")] if designs else list(dict.fromkeys(usual))
    chosen = _designs(names, problem, problems[0][1], set_)
    command = ["surefoot", "plan", *scenario, "--budgets", budgets or "end", "--designs", ",".join(names)]
    command += ["--trials", str(trials), "--seed", str(seed)]
    changed = {"--delta": delta, "--slack": slack, "--limit": limit, "--tolerance": tolerance}
    command += [str(x) for key, value in changed.items() if value is not None for x in (key, value)]
    command += [x for option in set_ or () for x in ("--set", option)]
    truths = [truth for _, truth in problems]
    report = Plan(problem, truths, chosen, budgets_of(budgets), trials, seed, workers, command).parts()
    pages = {out.with_suffix(".html"): to_html(report), out.with_suffix(".md"): markdown(report)}
    for path, text in pages.items():
        write(path, text)
    first, second = pages
    print_json({"files": [str(path) for path in pages]}) if as_json else console.print(
        f"[bold]Open[/] {first} (the same as text, without pictures: {second})"
    )


@app.command()
def advise(
    scenario: ScenarioName, design: Annotated[str | None, typer.Option(help="A name from `surefoot designs`.")] = None,
    trials: Annotated[int, typer.Option(help="Simulated trials of the first look.")] = 16, seed: Seed = 0,
    arms: Arms = None, delta: Delta = None, slack: Slack = None, limit: Limit = None, tolerance: Tolerance = None,
    budget: Budget = None, instance: Instance = None, set_: Set = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Can it be resolved, how many subjects will it take about, what does a budget buy, what would halve it?"""
    from .advise import advise as look

    asked = {"delta": delta, "slack": slack, "limit": limit, "tolerance": tolerance, "budget": budget}
    truths: list[Scenario | None] = [None]
    if scenario not in CASES and Path(scenario).exists() and not has_truth(scenario):
        problem = Problem.load(scenario).but(**{key: value for key, value in asked.items() if value is not None})
        chosen = make(design or default(problem.shape), **options_of(set_))
    else:
        problems = _set([scenario], arms, instance, **asked)
        problem, first = problems[0]
        truths, chosen = [truth for _, truth in problems], _design(design, problem, first, set_)
    found = [look(problem, truth, chosen, trials, seed) for truth in truths]
    if as_json:
        print_json({"advice": [one.to_dict() for one in found]})
        return
    for k, one in enumerate(found):
        if len(found) > 1 and one.scenario:
            console.print("\n" * bool(k) + f"[bold]{escape(one.scenario.name)}[/]", highlight=False)
        for line in one.lines():
            console.print(line, markup=False, highlight=False)


@app.command()
def check(
    design: Annotated[str | None, typer.Option(help="One design; all that have a guarantee by default.")] = None,
    trials: Trials = 20_000, seed: Seed = 1,
    instances: Annotated[int, typer.Option(help="Random instances of each family, pooled.")] = 0,
    instance_trials: Annotated[int, typer.Option(help="Simulated trials of each of them.")] = 2000,
    delta: Delta = None, budget: Budget = 10**9,
    workers: Workers = 1, cluster: Cluster = None, device: OnDevice = None, out: Out = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table there as a page.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Try to break the guarantee: every scenario of the catalogue, and what happens outside the assumptions.

    Exit code 1 if, where the assumptions hold, the 99% upper bound on the failure rate is above delta anywhere."""
    if design:
        name, options = find(design)
        chosen = [make(name, **options)]
    else:
        chosen = [kind() for kind in DESIGNS.values()]
        chosen += [make(kind.on, policy=name) for name, kind in POLICIES.items()]
    if markdown:
        _there(markdown)
    from . import check as checking

    with going_on(out):
        rows = checking.check(
            [one for one in chosen if one.guarantee or design], trials, seed, instances, instance_trials, device,
            {"budget": budget} | ({"delta": delta} if delta else {}), workers=workers, cluster=cluster, out=out,
        )  # fmt: skip
    broken = checking.broken(rows)
    if markdown:
        options = {"--design": design, "--trials": trials, "--seed": seed, "--instances": instances}
        options |= {"--instance-trials": instance_trials, "--delta": delta, "--budget": budget, "--device": device}
        words = [str(x) for name, value in options.items() if value is not None for x in (name, value)]
        command = shlex.join(["surefoot", "check", *words, "--markdown", str(markdown)])
        write(markdown, checking.to_markdown(rows, command, seed, __version__))
    if as_json:
        print_json({"trials": trials, "seed": seed, "broken": len(broken), "rows": rows})
    else:
        every = (checking.cells(row, broken) for row in sorted(rows, key=lambda row: not row["claim"]))
        shown = [{k: "[red]no[/]" if (k, x) == ("kept", "no") else x for k, x in one.items() if k != "trials"}
                 for one in every]  # fmt: skip
        console.print(Fit(shown, "Failed: wrong arm or unsafe pull", "design", ("scenario",)))
        if any(row["no_single_best"] for row in rows):
            console.print(checking.NOT_ONE)
    if broken:
        raise typer.Exit(1)


@app.command()
def theory(
    scenario: ScenarioName, arms: Arms = None, delta: Delta = None, slack: Slack = None, limit: Limit = None,
    instance: Instance = None, as_json: Json = False,
) -> None:  # fmt: skip
    """What the theorems say about a scenario: gaps, lower bounds, upper bounds."""
    from .theory import show, summary

    found = [summary(*one) for one in _set([scenario], arms, instance, delta=delta, slack=slack, limit=limit)]
    if as_json:
        print_json(found[0] if len(found) == 1 else {"scenarios": found})
    for one in () if as_json else found:
        console.print(show(one))


@app.command()
def scenarios(as_json: Json = False) -> None:
    """List the scenarios."""
    rows: list[dict[str, Any]] = [
        {"name": it.name, "about": it.about, "arms": it.arms, "scales": not it.fixed, "claim": it.claim}
        | {"shape": it.make(it.arms)[0].shape}
        for it in CASES.values()
    ]
    if as_json:
        print_json({"scenarios": rows})
        return
    for claim, title in ((True, "the guarantee holds"), (False, "outside the assumptions: nothing is claimed")):
        kept = ("shape", "arms", "about")
        shown = [{"scenario": row["name"]} | {k: str(row[k]) for k in kept} for row in rows if row["claim"] is claim]
        console.print(Fit(shown, title))


@app.command()
def designs(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One design or policy, with its options.")] = None,
    as_json: Json = False,
) -> None:
    """List the designs, or all about one of them: when to use it, what it promises, its options."""
    every = {one: kind() for one, kind in DESIGNS.items()}
    on = {one: make(kind.on, policy=one) for one, kind in POLICIES.items()}
    if name is not None:
        chosen, options = find(name)
        rows = [_about(make(chosen, **options), options.get("policy", name))]
    else:
        rows = [_about(design, one) for one, design in (every | on).items()]
    if as_json:
        split = [[row for row in rows if (row["name"] in on) is other] for other in (False, True)]
        print_json({"designs": split[0], "policies": [{"on": POLICIES[row["name"]].on, **row} for row in split[1]]})
    elif name is not None:
        row = rows[0]
        facts = {row["name"]: row["about"], "when": row["when"], "shape": row["shape"]}
        for key, x in (facts | {"promise": row["theorem"] or "none, for simulations alone"}).items():
            console.print(f"{key}: {x}", markup=False, highlight=False) if x else None
        told = [
            {"option (--set)": key, "usual": "none" if x is None else str(x), "": escape(row["meanings"].get(key, ""))}
            for key, x in row["options"].items()
            if key != "policy"
        ]
        console.print(Fit(told) if told else "It has no options.", highlight=False)
    else:
        for title, registry in (("Designs", DESIGNS), ("Policies on the evidence of a design", POLICIES)):
            shown = [
                {"name": row["name"], "shape": row["shape"], "promise": "yes" if row["guarantee"] else "no",
                 "from": row["from"], "when": escape(row["when"] or row["about"])}
                for row in rows if row["name"] in registry
            ]  # fmt: skip
            if shown:
                console.print(Fit(shown, title))
        console.print("All about one: surefoot designs NAME", highlight=False)


def _about(design: Design, name: str) -> dict[str, Any]:
    known = POLICIES if name in POLICIES else DESIGNS
    kind = known[name] if name in known else type(design)
    meant = design.meanings
    return {
        "name": name, "shape": design.shape, "guarantee": design.guarantee,
        "theorem": theorem_of(design) if design.guarantee else None,
        "about": about(kind), "when": meant.pop("when", "") if kind is type(design) else meanings(kind).get("when", ""),
        "options": design.options, "meanings": {key: meant[key] for key in design.options if key in meant},
        "from": known.origin(name) if name in known else kind.__module__,
    }  # fmt: skip


@app.command()
def pilot(
    file: Annotated[Path, typer.Argument(metavar="READINGS.csv", help="Columns arm, dose, effect, harm.")],
    as_json: Json = False,
) -> None:
    """What earlier readings say: sigmas, signs that an assumption is wrong, lines for a problem file."""
    from .pilot import pilot as look

    found = look(file)
    if as_json:
        print_json(found.to_dict())
        return
    rows = [{"arm": escape(s.arm), "reading": s.reading, "n": f"{s.n:,}", "sigma": f"{s.sigma:.3g}",
             "at most (95%)": f"{s.upper:.3g}", "range": f"{s.low:.3g} to {s.high:.3g}"}
            for s in found.spreads]  # fmt: skip
    console.print(Fit(rows))
    for sign in found.signs or ["No sign that a line, a rise or an equal spread is wrong."]:
        console.print(f"- {escape(sign)}")
    console.print("\nFor the problem file:\n")
    print(found.lines())


@app.command()
def schema() -> None:
    """The JSON Schema of a problem file, for editors: `surefoot schema > surefoot.schema.json`."""
    from .schema import json_schema

    print_json(json_schema())


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.", show_default=False)],
    shape: Annotated[str | None, typer.Option(help="linear, monotonic or levels.")] = None,
    arms: Annotated[str | None, typer.Option(help="Names, commas between.")] = None,
    limit: Limit = None, slack: Slack = None, delta: Delta = None,
    effect: Annotated[str | None, typer.Option(help="Standard deviation of effect, guess:0.6, or yes-no.")] = None,
    harm: Annotated[str | None, typer.Option(help="Standard deviation of harm, guess:0.6, or yes-no.")] = None,
    start: Annotated[float | None, typer.Option(help="A dose known to be safe.")] = None,
    largest: Annotated[float | None, typer.Option("--max", help="The largest dose.")] = None,
    lipschitz: Annotated[float | None, typer.Option(help="How fast harm can rise with the dose.")] = None,
    levels: Annotated[str | None, typer.Option(help="Levels, commas between.")] = None,
    truth: Annotated[bool, typer.Option(help="With curves to simulate with, as a first guess.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:  # fmt: skip
    """Write a commented problem file. What is not given by a flag is asked for on a terminal, and else the usual."""
    from .new import QUESTIONS, asked
    from .new import write as problem_file
    from .problem import Shape
    from .schema import read

    given = {"arms": arms, "limit": limit, "slack": slack, "delta": delta, "effect": effect, "harm": harm}
    given |= {"start": start, "max": largest, "lipschitz": lipschitz, "levels": levels}
    if file.exists() and not force:
        raise SurefootError(f"{file} is there already: choose another name, or --force")
    shape = choice("shape", shape or _answer(*QUESTIONS["shape"]), get_args(Shape))
    answers = {"shape": shape} | {
        key: _answer(*QUESTIONS[key]) if given[key] is None else str(given[key]) for key in asked(shape)[1:]
    }
    write(file, problem_file(answers, truth))
    read(file)
    console.print(f"Wrote {file}. Next: surefoot advise {file}", highlight=False, soft_wrap=True)


def _answer(question: str, usual: str) -> str:
    return str(typer.prompt(question, usual)) if sys.stdin.isatty() else usual


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("surefoot-demo.png"),
    db: Annotated[Path, typer.Option(help="The study's file; an earlier demo is replaced.")] = Path("surefoot-demo.db"),
    seed: Seed = 3, as_json: Json = False,
) -> None:  # fmt: skip
    """The drug problem of the paper: one study told round by round, with a picture, and the odds over 2,000 trials.

    The study is a real one with simulated subjects, kept in a file that `surefoot study` reads."""
    from .demo import introduce, tell

    _there(out, "picture")
    problem, truth = case("paper-drug", 3)
    design = make(default(problem.shape))
    study = _live(problem, truth, design, db, seed)
    one = None if study else run(problem, truth, design, 1, seed, trace=True)
    winner = int((one or study.verdict()).winner[0])
    picture = _picture(one or study, out)
    table = Characteristics(run(problem, truth, design, 2000, seed))
    if as_json:
        found = {"winner": problem.names[winner] if winner >= 0 else None, "picture": picture}
        print_json(found | {"db": str(db) if study else None, "characteristics": table.to_dict()})
        return
    introduce(console, problem)
    tell(console, one or study, truth)
    extra = "not drawn: pip install 'surefoot\\[plots]'"
    console.print(f"\n[bold]A picture of this trial:[/] {picture or extra}")
    if study:
        console.print(f"[bold]The study itself is in[/] {db}; look at it with")
        for command in ("status", "log --last 5", "verify", "certificate --out certificate.html"):
            console.print(f"  surefoot study {command} --db {shlex.quote(str(db))}", soft_wrap=True, highlight=False)
    console.print(f"\n[bold]What to expect of {design.name}:[/]")
    console.print(to_rich([table]))


def _live(problem: Problem, truth: Scenario, design: Design, db: Path, seed: int) -> Any:
    """The study of the demo; None where the extra for live studies is not installed."""
    try:
        from .study import demo
        from .study.published import checked
        from .study.published import default as live_default
    except SurefootError:
        return None
    live = design if checked(theorem_of(design)) else make(live_default(problem.shape))
    return demo.play(db, problem, truth, live, seed)


def _picture(of: Any, out: Path) -> str | None:
    """Draw a simulated trial or a study; None where the extra for pictures is not installed."""
    try:
        from .plots import story

        story(of, out)
    except ImportError:
        return None
    except OSError as error:
        raise SurefootError(f"cannot write the picture to {out}: {error.strerror or error}") from error
    return str(out)


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="The folder for figures, data and report.html.")] = Path("reproduction"),
    figures: Annotated[str | None, typer.Option(help="Names with commas between; all four by default.")] = None,
    designs: Annotated[
        str | None, typer.Option(help="Names with commas between, options after a colon: safeopt:expanders=lipschitz.")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="A point; the paper's 10 or 20 by default.")] = None,
    delta: Annotated[float, typer.Option(help="Error probability.")] = 0.1,
    slack: Annotated[float, typer.Option(help="Slack of the drug model.")] = 0.2,
    seed: Seed = 1, workers: Workers = 1, cluster: Cluster = None,
    quick: Annotated[bool, typer.Option("--quick", help="A sketch in two minutes: fewer arms and trials.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder that holds something else.")] = False,
) -> None:  # fmt: skip
    """Run the paper's experiments: four figures, their data, and what holds of what the paper says."""
    from .experiments.paper import FIGURES, Plan
    from .experiments.reproduce import reproduce as make_report

    named, specs = ([x.strip() for x in text.split(",")] if text else None for text in (figures, designs))
    plan = Plan(tuple(named or FIGURES), trials, delta, slack, tuple(specs) if specs else None, seed, quick)
    with going_on(out):
        report = make_report(plan, out, workers, force, cluster)
    console.print(f"[bold]Open[/] {report}")


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def study(context: typer.Context) -> Any:
    """Run a live study: ask, tell, certificate (`surefoot study --help`)."""
    from .study.cli import app as live  # only here: SQLAlchemy is an extra, and takes a while to import

    command: Callable[..., Any] = typer.main.get_command(live)
    return command(context.args, standalone_mode=False, prog_name="surefoot study")


@app.command()
def key(
    what: Annotated[str, typer.Argument(metavar="new", help="`new` makes one.")],
    out: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)],
    as_json: Json = False,
) -> None:
    """A key to sign checkpoints of studies with: the file is yours alone, what is printed is for everybody."""
    if what != "new":
        raise SurefootError(f"surefoot key new FILE; got {what!r}")
    from .study.keys import Key

    public = Key.new(out).public
    print_json({"public": public, "file": str(out)}) if as_json else print(public)


@app.command()
def serve(
    db: Annotated[str | None, typer.Option("--db", envvar="SUREFOOT_DB", help="SQLite file or database URL.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="A study whose simulated subjects arrive as you watch.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen at; only this machine by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option()] = 8642,
    name: Annotated[list[str] | None, typer.Option(help="A host name that the server answers to.")] = None,
    behind_proxy: Annotated[str | None, typer.Option(help="Address of the proxy that does TLS.")] = None,
    sso_header: Annotated[str | None, typer.Option(help="Its header that names who is logged in.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="For TLS: the certificate.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="For TLS: its private key.")] = None,
    key: Annotated[Path | None, typer.Option(help="Signs checkpoints; from `surefoot key new`.")] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    new_admin: Annotated[bool, typer.Option("--new-admin", help="Print a link that makes one more admin.")] = False,
) -> None:
    """The page: studies for people who never open a terminal, and an API for services."""
    from .web import demonstrate
    from .web import serve as run_server

    tls: dict[str, Any] = {"certificate": certificate, "private_key": private_key, "behind_proxy": behind_proxy}
    how = {"host": host, "port": port, "names": tuple(name or ()), "sso": sso_header, "browse": browser, **tls}
    if demo:
        demonstrate(**how)
    elif not db:
        raise SurefootError("which database? give --db FILE, set SUREFOOT_DB, or look at --demo")
    else:
        run_server(db, key=key, new_admin=new_admin, **how)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(f"surefoot {__version__} ({build()})")
        raise typer.Exit


def build() -> str:
    """What is running: the commit of a checkout, or an installed package; and on which Python and NumPy."""
    import platform
    import subprocess

    import numpy as np

    here, where = Path(__file__).resolve().parent, "installed"
    if (here.parents[1] / ".git").exists():
        said = ["git", "-C", str(here), "describe", "--always", "--dirty"]
        with suppress(OSError, subprocess.SubprocessError):
            where = subprocess.run(said, capture_output=True, text=True, check=True, timeout=5).stdout.strip()
    return f"{where}, Python {platform.python_version()}, NumPy {np.__version__}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done, 1 a promise was not kept, 2 something to correct, 130 interrupted."""
    command: Callable[..., Any] = typer.main.get_command(app)
    try:
        code = command(arguments, standalone_mode=False, prog_name="surefoot")
    except SurefootError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        if not hasattr(error, "exit_code"):
            raise
        show = getattr(error, "show", None)
        if show:
            show()
        code = error.exit_code
    if code == 130:  # typer turns Ctrl-C into it as well
        print("interrupted; nothing was kept", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)
