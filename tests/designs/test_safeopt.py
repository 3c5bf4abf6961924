import numpy as np
import pytest

from surefoot import SurefootError, case, make, simulate
from surefoot.designs import Cohort, Outcome
from surefoot.designs.safeopt import SafeOpt, last, nearest
from surefoot.testing import DesignSuite, play

from . import small


class Linear(DesignSuite):
    """Ties between arms are broken by their order."""

    design = SafeOpt(grid=20, s_harm=1.0)
    symmetric = False
    small = property(lambda self: small.easy())

    def test_refuses_the_other_shape(self) -> None:
        """It takes both."""


class TestLinear(Linear):
    pass


class TestRBF(Linear):
    design = SafeOpt(grid=20, top=-0.5, length=3.0)
    small = property(lambda self: small.flat())


def expanders_by_hand(design: SafeOpt, state, noise: float):  # type: ignore[no-untyped-def]
    """Add the fake reading to every dose in turn and look whether the safe set grows."""
    b = design.bounds(state)
    out = np.zeros_like(state.expander)
    p = state.problem
    for i, arm in np.ndindex(state.standing.shape):
        phi, cov, g = state.grid.phi[arm], state.cov[i, arm], state.mean[i, arm, 1]
        K = phi @ cov @ phi.T
        beta = float(b.beta_g[i, 0, 0])
        for x in np.flatnonzero(b.safe[i, arm]):
            total = K[x, x] + noise
            mean = g + K[:, x] / total * (b.g_lower[i, arm, x] - g[x])
            sd = np.sqrt(np.maximum(np.diag(K) - K[:, x] ** 2 / total, 0))
            out[i, arm, x] = np.any((mean + beta * sd <= p.limit) & ~b.safe[i, arm] & b.possible[i, arm])
    return out


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("rule", ["noise-free", "noisy"])
def test_expanders_are_those_that_a_fake_reading_proves(rule: str, kernel: str) -> None:
    problem, scenario = small.linear() if kernel == "linear" else small.drug()
    design = SafeOpt(expanders=rule, grid=30, top=None if kernel == "linear" else -0.5)  # type: ignore[arg-type]
    seen, differ = 0, 0
    for k, (*_, state) in zip(range(150), play(design, problem, scenario), strict=False):
        if k % 10 == 0:
            by_hand = expanders_by_hand(design, state, 0.0 if rule == "noise-free" else problem.sigma**2)
            seen += int(by_hand.sum())
            differ += int((by_hand != state.expander).sum())
    assert seen > 30
    assert differ <= 3  # a bound that is at the limit to the last digit may fall on either side


def test_lipschitz_expanders() -> None:
    problem, scenario = small.drug()
    design = SafeOpt(expanders="lipschitz", grid=30, top=-0.5, lipschitz=0.25)
    for k, (*_, state) in zip(range(200), play(design, problem, scenario), strict=False):
        if k % 40 == 0:
            b, dose = design.bounds(state), state.grid.dose
            for i, arm, x in np.argwhere(b.safe):
                away = np.abs(dose[arm] - dose[arm, x])[~b.safe[i, arm]]
                assert state.expander[i, arm, x] == np.any(b.g_lower[i, arm, x] + 0.25 * away <= problem.limit)


def test_it_pulls_the_most_uncertain_maximiser_or_expander() -> None:
    design = SafeOpt(grid=30, top=-0.5)
    for _, (state, cohort, *_) in zip(range(300), play(design, *small.drug()), strict=False):
        b = design.bounds(state)
        for i in np.flatnonzero(state.ending == 0):
            bar = np.where(b.safe[i], b.f_lower[i], -np.inf).max()
            allowed = (b.safe[i] & (b.f_upper[i] >= bar)) | state.expander[i]
            arm = int(np.argmax(cohort.n[i]))
            at = int(np.argmin(np.abs(state.grid.dose[arm] - cohort.dose[i, arm])))
            assert b.sd[i, arm, at] == np.where(allowed, b.sd[i], -1).max()


def test_pulls_on_the_papers_linear_instance() -> None:
    """4,506 pulls were measured in 40 trials of three arms, sd 141; 4 trials are within 5.5 standard errors of that."""
    result = simulate(*small.linear(), SafeOpt(), 4, seed=5, progress=False)
    assert not result.wrong.any() and not result.unsafe.any()
    assert abs(result.pulls.mean() - 4_506) < 5.5 * 141 * (1 / 4 + 1 / 40) ** 0.5


def test_stopping_rules() -> None:
    """To have resolved every expander too takes longer, and ends with the same arm."""
    problem, scenario = small.linear()
    early, late = (
        simulate(problem.but(budget=20_000), scenario, SafeOpt(grid=5, s_harm=1.0, stop=stop), 5, progress=False)
        for stop in ("best-arm", "complete")
    )
    assert np.all(early.winner == 0)
    assert np.all(late.pulls >= early.pulls) and late.pulls.sum() > early.pulls.sum()


def test_an_unsafe_start_is_stopped() -> None:
    """Equal effects, so that nobody is beaten; the harm of the first arm is above the limit."""
    problem, design, n = small.linear()[0], SafeOpt(grid=10), np.full((1, 3), 10_000)
    dose = np.tile(problem.starts, (1, 1))
    harm = np.array([[1.5, 0.1, 0.1]])
    state = design.start(problem)
    for _ in range(3):
        state = design.tell(state, Cohort(dose, n), Outcome(n, 0.1 * n, harm * n))
    verdict = design.verdict(state)
    assert "stopped in round 1: harm at its start dose 0.1 is at least" in verdict.reason(0)
    assert verdict.standing.tolist() == [[3, 0, 0]] and verdict.endings() == ["running"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "cubic"}, "linear, rbf"),
        ({"beta": "big"}, "abbasi-yadkori"),
        ({"beta": "-1"}, "above 0"),
        ({"grid": "1"}, "at least 2"),
        ({"length": "0"}, "above 0"),
        ({"top": "high"}, "must be a dose"),
        ({"expanders": "none"}, "noise-free"),
        ({"stop": "never"}, "complete"),
        ({"lipschitz": "0"}, "above 0"),
    ],
)
def test_bad_options_say_what_is_needed(options: dict[str, str], words: str) -> None:
    with pytest.raises(SurefootError, match=words):
        make("safeopt", **options)


def test_options_come_as_strings_too() -> None:
    assert make("safeopt", beta="2.5", top="-0.5", grid="20") == SafeOpt(beta=2.5, top=-0.5, grid=20)
    with pytest.raises(SurefootError, match="largest dose"):
        SafeOpt().start(case("tiny-gap")[0])
    with pytest.raises(SurefootError, match="at or above every start"):
        SafeOpt(top=-4.0).start(case("paper-drug")[0])


def test_helpers() -> None:
    assert last(np.array([[True, False, True, False]])).tolist() == [2]
    dose = np.array([0.0, 1.0, 3.0, 6.0])
    assert nearest(dose, np.array([[True, False, False, True]])).tolist() == [[0.0, 1.0, 3.0, 0.0]]
    assert np.all(np.isinf(nearest(dose, np.zeros((1, 4), bool))))
