import numpy as np

from surefoot import case


def test_the_published_ones_are_as_published() -> None:
    problem, scenario = case("levels-thall")
    dose = np.arange(5.0)[:, None] + np.zeros(3)
    np.testing.assert_allclose(scenario.effects(dose)[:, 0], [0.2, 0.4, 0.6, 0.8, 0.9])
    np.testing.assert_allclose(scenario.harms(dose)[:, 2], [0.05, 0.1, 0.15, 0.2, 0.4])
    truth = scenario.truth(problem)
    assert truth.dose.tolist() == [3.0, 3.0, 3.0]
    np.testing.assert_allclose(truth.value, [0.8, 0.48, 0.32])


def test_random_instances_keep_to_the_assumptions_and_can_be_resolved() -> None:
    kinds, tops = set(), []
    for k in range(100):
        problem, scenario = case("random-levels", instance=k)
        truth = scenario.truth(problem)
        assert scenario.violations(problem) == [], k
        value = np.sort(truth.value)
        assert value[-2] <= 0.91 * value[-1], k
        harm = scenario.harms(truth.dose)
        assert np.all(harm < 0.91 * problem.limit), "no largest safe level lies at the limit itself"
        tops.append(np.mean(truth.dose == problem.largest))
        kinds |= {noise.kind for noise in problem.noises}
    assert 0.1 < np.mean(tops) < 0.6
    assert kinds == {"bernoulli", "gaussian"}
