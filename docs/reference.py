"""The reference pages that come out of the code: designs, the command line, the problem file, JSON, the API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

import surefoot
from surefoot import CASES, Characteristics, case, make, schema, simulate
from surefoot.cli import app
from surefoot.designs import DESIGNS, theorem_of
from surefoot.registry import about

API = {
    "What you know": ["surefoot.Problem", "surefoot.Arm", "surefoot.Noise", "surefoot.load", "surefoot.SurefootError"],
    "What is hidden": ["surefoot.Scenario", "surefoot.case"],
    "Designs": ["surefoot.Design", "surefoot.Policy", "surefoot.Cohort", "surefoot.Outcome", "surefoot.Verdict",
                "surefoot.make", "surefoot.register"],
    "Simulations": ["surefoot.simulate", "surefoot.Result", "surefoot.Characteristics"],
    "Live studies": ["surefoot.Study", "surefoot.Client"],
    "Pictures": ["surefoot.plots.story", "surefoot.plots.responses", "surefoot.plots.pulls", "surefoot.plots.regret",
                 "surefoot.plots.scenarios"],
}  # fmt: skip
METHODS = {
    "surefoot.Study": "create open ask awaiting assign give_back tell tell_many correct void pause resume stop status verdict log "
    "certificate verify checkpoint preview forecast readings export load backup desk adopt",
    "surefoot.Client": "create studies follow log",
    "surefoot.Problem": "but to_toml load ceiling", "surefoot.Scenario": "truth violations to_toml",
    "surefoot.Design": "start ask tell verdict recommendation guarantee options meanings but label",
    "surefoot.Policy": "choose stakes begin remember", "surefoot.Verdict": "endings reason guess",
    "surefoot.Result": "trials wrong unsafe", "surefoot.Characteristics": "to_dict rows",
}  # fmt: skip


def write_pages(folder: Path) -> None:
    """All of them, as Markdown; a page that has not changed is left alone."""
    folder.mkdir(exist_ok=True)
    pages = {
        "designs": designs(),
        "cli": cli(),
        "problem-file": problem_file(),
        "json": answers(),
        "api": api(),
        "more": more(folder.parent),
    }
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def designs() -> str:
    lines = ["# Designs", "", "`surefoot designs` lists them, those of other packages too; `surefoot designs NAME` is what stands here. Options: "
             "`--set KEY=VALUE`, or `make(name, key=value)`. With a theorem: no unsafe dose and the "
             "right arm, at 1 - delta ([proofs](../guarantees.md)). Costs are in [how many pulls](../cost.md).", ""]  # fmt: skip
    for name, kind in DESIGNS.items():
        if not kind.__module__.startswith("surefoot."):
            continue
        design, meant = kind(), kind().meanings
        promise = f"`{theorem_of(design)}`" if design.guarantee else "none: for simulations"
        lines += [f"## {name}", "", about(kind), "", "| | |", "|---|---|", f"| when | {meant['when']} |", f"| shape | {kind.shape} |",
                  f"| theorem | {promise} |", f"| runs on a GPU | {'yes' if design.portable else 'no: NumPy alone'} |", ""]  # fmt: skip
        if design.options:
            lines += ["| option | usual | |", "|---|---|---|",
                      *(f"| `{key}` | {x} | {meant[key]} |" for key, x in design.options.items()), ""]  # fmt: skip
    return "\n".join(lines)


def cli() -> str:
    from surefoot.study.cli import app as live

    lines = ["# Command line", "", "Exit codes: 0 done, 1 a promise was not kept, 2 something to correct, 130 interrupted. "
             "`surefoot --install-completion` makes the tab key work.", ""]  # fmt: skip
    for prog, it in (("surefoot", app), ("surefoot study", live)):
        command: Any = typer.main.get_command(it)
        for name, sub in sorted(command.commands.items()):
            about = (sub.help or "").split("\n\n")[0].replace("\n", " ")
            lines += [f"## {prog} {name}", "", about, "", "| | |", "|---|---|"]
            for parameter in sub.params:
                if parameter.param_type_name == "argument":
                    lines.append(
                        f"| `{parameter.metavar or parameter.name}` | {getattr(parameter, 'help', '') or ''} |"
                    )
                elif "--help" not in parameter.opts:
                    usual = parameter.default if isinstance(parameter.default, (int, float, str)) else None
                    usual = None if usual is False or usual is None else f" ({usual} by default)"
                    usual = f" (or the variable `{parameter.envvar}`)" if parameter.envvar else usual
                    names = ", ".join(f"`{opt}`" for opt in parameter.opts)
                    lines.append(f"| {names} | {(parameter.help or '').replace('|', '/')}{usual or ''} |")
            lines.append("")
    return "\n".join(lines)


def problem_file() -> str:
    head = ["# The problem file", "", "TOML. A *problem* file says what the experimenter knows; with curves it is a *scenario* file, "
            "which can be simulated too. `surefoot new FILE` writes one, `surefoot schema` prints its JSON Schema (for "
            "editors: with Even Better TOML, put `#:schema ./surefoot.schema.json` on the first line). A file with mistakes "
            "is told all of them at once, with lines.", ""]  # fmt: skip
    return "\n".join(head) + schema.page() + "\n"


def answers() -> str:
    """What `--json` prints: the keys of a small run of each."""
    table = Characteristics(simulate(*case("paper-linear", 2), make("safebai-linear"), 2, progress=False)).to_dict()
    shown = json.dumps(table | {"seconds": 0.1}, indent=2)
    one = {"name": "...", "about": "...", "arms": 10, "scales": True, "claim": True, "shape": "linear"}
    rows = {
        "simulate": "one object as below; of several scenarios `{\"scenarios\": [...]}`",
        "compare": '`{"scenario": ..., "designs": [as simulate, ...]}`; of several scenarios `{"scenarios": [...]}`',
        "check": '`{"trials", "seed", "broken", "rows": [as simulate, and "claim"]}`',
        "theory": "bounds, each with `pulls`, `by`, `holds`, or `why` it is not stated; and `arms`; of several as `simulate`",
        "scenarios": f"`{json.dumps({'scenarios': [one]})}`",
        "designs": '`{"designs": [{"name", "shape", "guarantee", "theorem", "about", "when", "options", "meanings", "from"}], "policies": [...]}`',
        "plan": '`{"files": [...]}`', "advise": '`{"advice": [{"subjects": {"mean", "at_least", ...}, ...}]}`; `at_least`: '
        "trials were given up, so that the mean is too small",
        "demo": '`{"winner", "picture", "db", "characteristics"}`',
        "study status": '`{"study", "standing", "reasons", "to_do", "ending", "winner", "recommendation", "arms": [...], '
        '"rates": [{"arm", "from", "to", "n", "effect", "harm"}], ...}`; `budget`: null where there is none; `reserved`: open ones by '
        'site; `rates`: means (of yes or no also `effects` and `harms`, counts) by arm and dose given, neighbouring '
        "doses together where there are more than eight",
        "study ...": "every command has `--json`: one object with what it prints",
    }  # fmt: skip
    lines = ["# JSON", "", "Every command that answers has `--json`, and `schema` prints nothing else: exactly one object on standard output; notes and errors go to standard error. "
             "Keys are added in later versions, never renamed within one.", "", "| command | prints |", "|---|---|",
             *(f"| `{key}` | {text} |" for key, text in rows.items()), "",
             "## One result", "", "Rates come with `upper`, a 99% upper bound (Clopper and Pearson); means with `se`.", "",
             "```json", shown, "```", ""]  # fmt: skip
    return "\n".join(lines)


def api() -> str:
    lines = ["# API", "", "The public names, and nothing else. Arrays have trials as their first axis.", ""]
    for title, names in API.items():
        lines += [f"## {title}", ""]
        for name in names:
            kind = "autofunction" if name.split(".")[-1].islower() else "autoclass"
            lines += ["```{eval-rst}", f".. {kind}:: {name}"]
            if name in METHODS:
                kind, members = getattr(surefoot, name.split(".")[1]), METHODS[name].split()
                if bare := [x for x in members if not getattr(kind, x).__doc__]:
                    raise ValueError(f"{name} has members without a docstring, which the page would not show: {bare}")
                lines.append(f"   :members: {', '.join(members)}")
            lines += ["```", ""]
    kinds = ", ".join(f"`{name}`" for name in CASES)
    return "\n".join([*lines, "## Scenarios by name", "", kinds, ""])


def more(docs: Path) -> str:
    """Pages that the first one does not name, so that none is lost."""
    known = (docs / "index.md").read_text(encoding="utf-8").split()
    others = [f"/{path.stem}" for path in sorted(docs.glob("*.md")) if path.stem not in (*known, "index")]
    return "\n".join(["# More", "", *(["```{toctree}", *others, "```", ""] if others else ["Nothing more.", ""])])
