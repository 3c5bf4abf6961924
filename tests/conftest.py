import os
from collections.abc import Iterator
from functools import cache

import pytest
import typer.main
from hypothesis import settings

# The same examples in every run: a failure is a change in the code, not in the dice.
# To look for new ones: pytest --hypothesis-profile=search
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile("fixed")

# A command line is put together from its annotations once in a process, as it is for a user, not once a call.
typer.main.get_command = cache(typer.main.get_command)  # type: ignore[assignment]

# Tests that take a second of a core or more: thousands of trials, whole studies, many processes. `make test-fast`
# leaves them out. They are not traced for coverage, which costs them 40% and finds no line that the others do not.
SLOW = {
    "test_a_climb_onto_a_ledge", "test_a_sound_design_passes", "test_a_study_goes_on_from_it_as_from_its_events",
    "test_a_valid_study_is_hardly_ever_paused", "test_the_study_decides_as_the_design_does",
    "test_a_true_claim_is_refuted_no_more_often_than_promised", "test_agrees_on_random_studies",
    "test_an_unsafe_start_is_stopped", "test_any_policy_is_safe_and_right",
    "test_any_tampering_is_found_given_the_head",
    "test_bounds_hold", "test_bounds_of_a_verdict_hold", "test_command_lines", "test_coverage",
    "test_eight_processes_tell_together", "test_ends_whatever_comes_back", "test_ends_without_a_runaway_tail",
    "test_guarantee", "test_intervals_hold_together_with_the_doses", "test_is_the_pseudocode_on_any_problem",
    "test_it_runs_on_the_letter_of_the_standard_with_binary_readings",
    "test_levels_and_binary_readings_under_any_policy", "test_nothing_is_lost_by_40_kills", "test_on_postgres",
    "test_on_sqlite", "test_overconfidence_is_caught", "test_p_is_an_error_probability", "test_python_calls",
    "test_refining_cells_only_helps_and_decides", "test_safe_and_right_under_any_policy",
    "test_the_forecast_from_the_beginning_is_the_simulation", "test_the_tutorial_runs_as_printed",
    "test_the_wealth_against_a_true_claim_is_that_of_a_fair_game", "test_sums_are_distributed_as_sums_of_pulls",
}  # fmt: skip

TRACED = "COVERAGE_PROCESS_CONFIG"  # tells processes of a traced one to be traced as well


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if getattr(item, "originalname", item.name) in SLOW:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Nor are the processes that a slow test starts."""
    told = os.environ.pop(TRACED, None) if item.get_closest_marker("slow") else None
    try:
        return (yield)
    finally:
        if told:
            os.environ[TRACED] = told
