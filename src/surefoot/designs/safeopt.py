"""SafeOpt on a problem of arms.

From Sui, Gotovos, Burdick and Krause, "Safe exploration for optimization with Gaussian processes" (2015): the safe set,
the maximisers and the expanders, and pulling the most uncertain of them. From Berkenkamp, Krause and Schoellig's
SafeOpt-MC (2016): harm has a process of its own, and the safe set is read off its bounds. From the appendix of Wang,
Wagenmaker and Jamieson: an independent process per arm and reading on 50 even doses; linear kernel with the
Abbasi-Yadkori beta_t, or RBF kernel with beta = 3; and a stopping rule, since SafeOpt has none of its own.

Decided here, since none of them says:
- Which doses are expanders: those that could enlarge the safe set if their harm were read, without noise, at its lower
  bound (`noise-free`); if their lower bound + K * distance is at or below the limit (`lipschitz`); or if one noisy
  reading at the lower bound were added, as the authors' package does (`noisy`; it is not seen to stop). K is the option
  `lipschitz`, by default the arm's constant, or the bound s_harm on the slope in the linear shape. With a K well above
  the slopes there are, an arm can run out of expanders before it is resolved, and then the trial does not stop: on the
  paper's drug model that happens with K = 1, which the problem declares, and not with 0.25, the steepest slope.
- The stopping rule: `best-arm`: one arm's best lower bound over safe doses is above every other arm's upper bound over
  possibly safe doses. `complete`: there is no expander left either, the paper's words to the letter; it is hardly ever
  reached, since the grid's next dose is above the limit by less than the bounds can tell.
- s_effect = 1 and s_harm = 5 bound the slopes of the paper's linear instance; 1 is no bound on a harm slope of 5.
- One noise variance, the larger one, for both readings, so that they share a covariance; with beta_t it is lambda = 1.
- The bounds of the present posterior are used, not their intersection over time.

No guarantee is declared: a constant beta has no theorem, and beta_t as printed covers one reading, not two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ..arrays import Array, replace
from ..checks import number_or
from ..problem import Problem, SurefootError, choice, number
from .base import Cohort, Outcome, blank
from .baseline import AnyShape, abbasi_yadkori, conclude, finite_top
from .gp import GPState, Grid, absorb, linear_kernel, prior, rbf_kernel
from .settle import wanted

KernelName = Literal["auto", "linear", "rbf"]
Expanders = Literal["noise-free", "lipschitz", "noisy"]
Stop = Literal["best-arm", "complete"]


@dataclass(frozen=True, kw_only=True)
class SafeOptState(GPState):
    grid: Grid
    expander: Array  # (trials, arms, G)
    next: Array  # (trials,): which dose of which arm, arm * G + dose


@dataclass(frozen=True)
class Bounds:
    """Of effect (f) and harm (g) on the grid, (trials, arms, G), and what follows from them."""

    sd: Array
    beta_g: Array
    f_lower: Array
    f_upper: Array
    g_lower: Array
    safe: Array
    possible: Array  # may be safe


@dataclass(frozen=True)
class SafeOpt(AnyShape):
    """SafeOpt (Sui et al. 2015) with a Gaussian process per arm and reading.

    when: A Gaussian process and its kernel are believed. No promise of ours; to compare with.
    kernel: linear, rbf, or auto: by the shape
    beta: how wide its bounds are: a number, abbasi-yadkori, or auto: abbasi-yadkori for linear, else 3
    variance: of the kernel
    length: of the rbf kernel, in doses
    s_effect: a bound on the slope of effects, for abbasi-yadkori
    s_harm: and of harms
    grid: so many doses of every arm are tried
    top: the largest dose of the grid; none: that of the arm
    expanders: noise-free, lipschitz or noisy: which doses may enlarge the safe set
    lipschitz: the constant for these; none: that of the arm, or s_harm
    stop: best-arm, or complete: when all safe doses are known too
    """

    kernel: KernelName = "auto"
    beta: Any = "auto"
    variance: float = 1.0
    length: float = 1.0
    s_effect: float = 1.0
    s_harm: float = 5.0
    grid: int = 50
    top: float | None = None
    expanders: Expanders = "noise-free"
    lipschitz: float | None = None
    stop: Stop = "best-arm"

    name: ClassVar[str] = "safeopt"
    portable: ClassVar[bool] = False
    chunk: ClassVar[int] = 32

    def __post_init__(self) -> None:
        choice("kernel", self.kernel, get_args(KernelName))
        choice("expanders", self.expanders, get_args(Expanders))
        choice("stop", self.stop, get_args(Stop))
        object.__setattr__(self, "beta", number_or("beta", self.beta, "auto", "abbasi-yadkori"))
        for name in ("variance", "length", "s_effect", "s_harm"):
            number(name, getattr(self, name), above=0)
        number("grid", self.grid, least=2)
        if self.lipschitz is not None:
            object.__setattr__(self, "lipschitz", number_or("lipschitz", self.lipschitz))
        if self.top is not None:
            try:
                object.__setattr__(self, "top", number("top", float(self.top)))
            except (TypeError, ValueError):
                raise SurefootError(f"top must be a dose; got {self.top!r}") from None

    @property
    def guarantee(self) -> bool:
        return False

    # What "auto" means
    def linear(self, p: Problem) -> bool:
        return self.kernel == "linear" or (self.kernel == "auto" and p.shape == "linear")

    def constant(self, p: Problem) -> float | None:
        """beta, or None where it is the Abbasi-Yadkori one."""
        if self.beta == "abbasi-yadkori" or (self.beta == "auto" and self.linear(p)):
            return None
        return 3.0 if self.beta == "auto" else float(self.beta)

    def begin(self, problem: Problem, trials: int, xp: Any) -> SafeOptState:
        if self.top is None:
            top = finite_top(problem, self.name)
        elif np.any(problem.starts > self.top):
            raise SurefootError(f"top must be at or above every start dose; got {self.top:g}")
        else:
            top = np.minimum(problem.largest, self.top)
        kernel = linear_kernel(self.variance) if self.linear(problem) else rbf_kernel(self.variance, self.length)
        grid = Grid.of(kernel, problem, top, self.grid)
        none = np.zeros((trials, *grid.dose.shape), bool)
        s = SafeOptState(
            **blank(problem, trials, np), **prior(grid, trials), grid=grid, expander=none,
            next=np.zeros(trials, np.int64),
        )  # fmt: skip
        return self.look(s, np.ones(s.standing.shape, bool))

    def need(self, state: SafeOptState) -> Array:
        return np.ones_like(state.pulls)

    def plan(self, state: SafeOptState, u: Array) -> Cohort:
        d, G = state.grid.dose.shape
        arm, at = np.divmod(state.next, G)
        here = np.arange(d) == arm[:, None]
        dose = np.where(here, state.grid.dose[arm, at][:, None], state.problem.starts)
        return Cohort(dose, here.astype(np.int64))

    def learn(self, state: SafeOptState, cohort: Cohort, outcome: Outcome) -> SafeOptState:
        p = state.problem
        noise = 1.0 if self.constant(p) is None else p.sigma**2
        posterior = absorb(state, state.grid, noise, cohort, outcome)
        pulls = state.pulls + np.sum(outcome.n, axis=1)
        return self.look(replace(state, **posterior, rounds=state.rounds + 1, pulls=pulls), outcome.n > 0)

    def look(self, s: SafeOptState, changed: Array) -> SafeOptState:
        """Bounds, sets, verdict and the next dose, from the posterior; `changed`: the arms whose posterior is new."""
        b = self.bounds(s)
        arms, at_safe = np.arange(len(s.grid.dose)), last(b.safe)
        expander = self.expand(s, b, changed)
        s = replace(
            s,
            expander=expander,
            safe=s.grid.dose[arms, at_safe],
            unsafe=s.grid.dose[arms, last(b.possible)],
            estimate=s.mean[np.arange(len(s.pulls))[:, None], arms, 0, at_safe],
            lower=np.max(np.where(b.safe, b.f_lower, -np.inf), axis=2),
            upper=np.max(np.where(b.possible, b.f_upper, -np.inf), axis=2),
        )
        ready = np.asarray(True) if self.stop == "best-arm" else ~np.any(expander, axis=(1, 2))
        s = conclude(s, b.g_lower[:, :, 0], ready)
        return replace(s, next=self.choose(s, b))

    def bounds(self, s: SafeOptState) -> Bounds:
        p = s.problem
        constant = self.constant(p)
        if constant is None:
            L2 = float(np.max(np.sum(s.grid.phi**2, axis=2)))
            t = s.pulls[:, None, None] + 1
            beta_f, beta_g = (
                abbasi_yadkori(p, t, L2, S, noise.scale)
                for S, noise in zip((self.s_effect, self.s_harm), p.noises, strict=True)
            )
        else:
            beta_f = beta_g = np.full((len(s.pulls), 1, 1), constant)
        sd = np.sqrt(s.var)
        f, g, w_f, w_g = s.mean[:, :, 0], s.mean[:, :, 1], beta_f * sd, beta_g * sd
        safe = g + w_g <= p.limit
        safe[:, :, 0] = True  # the start dose is known to be safe
        return Bounds(sd, beta_g, f - w_f, f + w_f, g - w_g, safe, safe | (g - w_g <= p.limit))

    def expand(self, s: SafeOptState, b: Bounds, changed: Array) -> Array:
        """The expanders, (trials, arms, G); with a constant beta only `changed` arms can have new ones."""
        p, hope = s.problem, b.possible & ~b.safe  # what an expander might turn safe
        if self.expanders == "lipschitz":
            K = p.lipschitz[:, None] if p.shape == "monotonic" else self.s_harm
            K = K if self.lipschitz is None else self.lipschitz
            return b.safe & (b.g_lower + K * nearest(s.grid.dose, ~b.safe) <= p.limit)
        if s.grid.rank == 1 and self.expanders == "noise-free":  # one dose tells all
            return b.safe & np.any(hope, axis=2, keepdims=True)
        trial, arm = np.nonzero(changed if self.constant(p) is not None else np.ones_like(changed))
        expander = s.expander.copy()
        expander[trial, arm] = False
        columns = np.flatnonzero(np.any(hope[trial, arm], axis=0))
        if len(columns):
            some = slice(columns[0], columns[-1] + 1)  # a reading at x (rows) changes the bounds at these doses
            phi, sd, beta = s.grid.phi[arm], b.sd[trial, arm], b.beta_g[trial, 0, 0, None]
            cov = (phi @ s.cov[trial, arm]) @ phi[:, some].transpose(0, 2, 1)
            g, sd_there = s.mean[trial, arm, 1, some], sd[:, some]
            if self.expanders == "noise-free":
                # with rho = cov / (sd sd') the bound at a' would be g' + beta sd' (sqrt(1 - rho^2) - rho), which is
                # at or below the limit where rho is at least (t + sqrt(2 - t^2)) / 2, t = (g' - limit) / (beta sd')
                t = np.clip((g - p.limit) / (beta * sd_there + 1e-300), -1.0, 1.0)
                would = cov >= sd[:, :, None] * (0.5 * (t + np.sqrt(2.0 - t**2)) * sd_there)[:, None, :]
            else:
                gain = cov / (sd**2 + p.sigma**2)[:, :, None]
                mean = g[:, None, :] - (beta * sd)[:, :, None] * gain
                var = np.maximum(sd_there[:, None, :] ** 2 - gain * cov, 0.0)
                would = mean + beta[:, :, None] * np.sqrt(var) <= p.limit
            would &= hope[trial, arm, None, some]
            expander[trial, arm] = np.any(would, axis=2) & b.safe[trial, arm]
        return expander

    def choose(self, s: SafeOptState, b: Bounds) -> Array:
        """The most uncertain of maximisers and expanders. Both readings have the same sd, so that is the largest."""
        ours = wanted(s)
        bar = np.max(np.where(ours, s.lower, -np.inf), axis=1)[:, None, None]
        candidates = ((b.safe & (b.f_upper >= bar)) | s.expander) & ours[:, :, None]
        return pick(candidates, b.sd)


def pick(candidates: Array, score: Array) -> Array:
    """The candidate with the largest score, as arm * G + dose."""
    return np.argmax(np.where(candidates, score, -np.inf).reshape(len(score), -1), axis=1)


def last(mask: Array) -> Array:
    """The last index along the last axis where `mask` is true; it is true at 0."""
    return mask.shape[-1] - 1 - np.argmax(mask[..., ::-1], axis=-1)


def nearest(dose: Array, mask: Array) -> Array:
    """How far the nearest dose is where `mask` is true, (trials, arms, G); infinite where there is none."""
    at = np.where(mask, dose, math.inf)
    above = np.minimum.accumulate(at[..., ::-1], axis=-1)[..., ::-1] - dose
    below = dose - np.maximum.accumulate(np.where(mask, dose, -math.inf), axis=-1)
    return np.minimum(above, below)
