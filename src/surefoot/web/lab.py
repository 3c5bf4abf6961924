"""The design lab: a problem as a form and as TOML, scenarios, operating characteristics, and the study they lead to."""

from __future__ import annotations

from typing import Any

import tomli_w
from fastapi import APIRouter
from starlette.responses import Response

from ..checks import path_of
from ..designs import policies
from ..noise import KINDS
from ..problem import SurefootError
from ..reports import STYLE
from ..scenario import CURVES
from ..study import Study
from ..study.published import default, live
from ..theory.resolvable import remarks
from . import charts, lab_work
from .entry import once
from .gate import CHANGE, Ask, Denied, needs
from .pages import show_job, styled

router = APIRouter(include_in_schema=False)


@router.get("/lab")
def lab_page(ask: Ask = needs(*CHANGE)) -> Response:
    return _lab(ask, lab_work.START)


def _lab(ask: Ask, text: str, status: int = 200, **more: Any) -> Response:
    show = {"wrong": "", "name": "", "trials": "200", "budgets": "end"} | more
    return ask.site.render(ask, "lab.html", status, **_state(text), **show)


def _state(text: str) -> dict[str, Any]:
    """All that the lab shows of a text, also where it does not hold yet."""
    out: dict[str, Any] = {"text": text, "problem": None, "scenarios": [], "remarks": [], "error": "", "truths": []}
    out |= {"parameters": list(CURVES), "noises": list(KINDS), "picture": None, "designs": [], "live": [], "f": None}
    try:
        data = lab_work.parse(text)
        out["f"] = lab_work.to_fields(data)
        out["problem"], out["scenarios"] = problem, scenarios = lab_work.read(text)
        broken = ((one.name, line) for one in scenarios for line in one.violations(problem))
        out["remarks"] = remarks(problem) + [f"{name}: outside of the assumptions: {line}." for name, line in broken]
        out["designs"], out["default"] = lab_work.fitting(problem.shape), default(problem.shape)
        out["live"] = live(problem.shape) + policies(problem.shape)
        for one in scenarios[:6]:
            best = one.truth(problem)
            out["truths"].append((one.name, problem.names[best.best], charts.curves(problem, one)))
    except SurefootError as error:
        out["error"] = str(error)
    except (ValueError, ArithmeticError, AttributeError, TypeError) as error:
        out["error"] = f"this cannot be read: {error}"
    out["f"] = out["f"] or lab_work.to_fields({})
    return out


def shape_of(fields: dict[str, Any]) -> str:
    """What the form looks like: when this changes, it is drawn anew."""
    arms = [(a["effect_curve"], a["harm_curve"]) for a in fields["arms"]]
    return f"{fields['shape']} {fields['noise_effect']} {fields['noise_harm']} {arms}"


@router.post("/lab/form")
def form(ask: Ask = needs(*CHANGE)) -> Response:
    """The form was changed: the text follows, and the form itself where its fields are others now."""
    f = ask.fields
    try:
        base = lab_work.parse(f.get("text", ""))
    except SurefootError:
        base = {}
    data = lab_work.from_fields(f, base)
    arms: list[Any] = data["arms"]
    if f.get("add"):
        arms.append(
            dict(arms[-1], name=f"arm {len(arms) + 1}") if arms else {"name": "arm 1", "start": 0.1, "max": 1.0}
        )
    if (gone := f.get("remove", "")).isdecimal() and int(gone) < len(arms):
        del arms[int(gone)]
    state = _state(tomli_w.dumps(data))
    redraw = shape_of(state["f"]) != f.get("drawn") or bool(f.get("add") or f.get("remove"))
    return ask.site.render(ask, "lab_follow.html", **state, redraw_form=redraw, redraw_text=True)


@router.post("/lab/text")
def text(ask: Ask = needs(*CHANGE)) -> Response:
    """The text was changed: the form follows, where it can be read."""
    state = _state(ask.fields.get("text", ""))
    return ask.site.render(ask, "lab_follow.html", **state, redraw_form=not state["error"], redraw_text=False)


@router.post("/lab/run")
def run(ask: Ask = needs(*CHANGE)) -> Response:
    f = ask.fields
    trials = ask.number("trials")
    if not isinstance(trials, float) or trials != int(trials):
        raise SurefootError(f"how many trials? a whole number; got {f.get('trials')!r}")
    designs = [key.removeprefix("design ") for key in f if key.startswith("design ")]
    budgets = _budgets(f.get("budgets", ""))
    kind = "report" if f.get("what") == "report" else "characteristics"
    job = ask.site.jobs.start(
        kind, ask.me.name, text=f.get("text", ""), designs=designs, trials=int(trials), budgets=budgets
    )
    return show_job(ask, job)


def _budgets(text: str) -> list[int | None]:
    try:
        return [None if x == "end" else int(x) for x in text.replace(",", " ").split()] or [None]
    except ValueError:
        raise SurefootError(f"budgets are whole numbers with blanks between, or `end`; got {text!r}") from None


@router.get("/lab/report/{id}")
def report(id: str, ask: Ask = needs(*CHANGE)) -> Response:
    """The protocol report."""
    job = ask.site.jobs.find(id, ask.me.name)
    if job is None or job.kind != "report" or job.state != "done":
        raise Denied(404, "Not there", "there is no such report, or it is too old")
    return styled(job.result["html"], STYLE)


@router.post("/lab/create")
def create(ask: Ask = needs(*CHANGE)) -> Response:
    text, name = ask.fields.get("text", ""), ask.fields.get("name", "").strip()

    def do() -> str:
        problem, _ = lab_work.read(text)
        design = lab_work.named(ask.field("design") or default(problem.shape))
        Study.create(ask.site.url, name, problem, design, actor=ask.me.actor)
        return f"The study {name} has begun."

    try:
        return once(ask, do, f"/study/{path_of(name)}")
    except SurefootError as error:
        return _lab(ask, text, 422, wrong=str(error), name=name)
