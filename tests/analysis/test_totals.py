"""The totals of runs. Runs with errors and skipped and stopped runs are counted, and excluded from all means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import result
from tests.tables import each_row
from workbench.analysis.totals import nearest_rank, totals_of
from workbench.grading.status import Status
from workbench.trajectory.events import Usage


def test_errors_skipped_and_stopped_runs_are_in_no_mean_and_no_rate() -> None:
    totals = totals_of(
        [
            result(Status.PASSED, 1.0),
            result(Status.WARNED, 0.85),
            result(Status.FAILED, 0.25, rounds=3),
            result(Status.ERROR, error="no route"),
            result(Status.SKIPPED, error="later"),
            result(Status.STOPPED),
        ]
    )
    assert (totals.runs, totals.passed, totals.warned, totals.failed) == (6, 1, 1, 1)
    assert (totals.errors, totals.skipped, totals.stopped) == (1, 1, 1)
    assert totals.mean_score == pytest.approx(0.7)
    assert totals.pass_rate == pytest.approx(2 / 3)
    assert totals.latency is not None
    assert (totals.latency.p50_ms, totals.latency.max_ms) == (2.0, 6.0)
    assert totals.usage == Usage(15, 25)


def test_a_cost_is_the_sum_of_what_is_known_and_says_how_many_runs_are_not_in_it() -> None:
    runs = [
        result(Status.PASSED, 1.0, cost_usd=0.25),
        result(Status.FAILED, 0.0, cost_usd=0.5),
        result(Status.PASSED, 1.0),
    ]
    totals = totals_of([*runs, result(Status.SKIPPED)])
    assert (totals.cost_usd, totals.runs_of_unknown_cost) == (0.75, 1)


def test_a_cost_of_which_nothing_is_known_is_unknown_whatever_else_costs_nothing() -> None:
    totals = totals_of([result(Status.PASSED, 1.0), result(Status.SKIPPED)])
    assert (totals.cost_usd, totals.runs_of_unknown_cost) == (None, 1)


def test_runs_that_cost_nothing_cost_nothing_together() -> None:
    totals = totals_of([result(Status.PASSED, 1.0, cost_usd=0.0), result(Status.SKIPPED)])
    assert (totals.cost_usd, totals.runs_of_unknown_cost) == (0.0, 0)
    assert totals_of([]).cost_usd is None


def test_a_grader_that_does_not_apply_leaves_the_mean_alone_but_counts_for_the_pass_rate() -> None:
    totals = totals_of([result(Status.PASSED, None), result(Status.FAILED, 0.5)])
    assert totals.mean_score == 0.5
    assert totals.pass_rate == 0.5


def test_nothing_graded_has_no_mean_no_rate_and_no_latency() -> None:
    totals = totals_of([result(Status.ERROR, error="no route")])
    assert (totals.mean_score, totals.pass_rate, totals.latency, totals.usage) == (None, None, None, None)


@each_row(("percent", "expected"), [(0, 15), (5, 15), (30, 20), (40, 20), (50, 35), (95, 50), (100, 50)])
def test_percentiles_by_nearest_rank(percent: float, expected: float) -> None:
    assert nearest_rank([15, 20, 35, 40, 50], percent) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0.1, 100))
def test_a_percentile_is_the_smallest_value_that_covers_its_share(values: list[float], percent: float) -> None:
    ascending = sorted(values)
    value = nearest_rank(ascending, percent)
    covered = sum(1 for other in ascending if other <= value)
    below = sum(1 for other in ascending if other < value)
    share = percent / 100 * len(ascending)
    assert below < share + 1e-6
    assert covered >= share - 1e-6


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        nearest_rank([], 50)


def test_scores_whose_sum_is_beyond_a_float_have_a_mean() -> None:
    assert totals_of([result(Status.FAILED, -1.7e308), result(Status.FAILED, -1.7e308)]).mean_score == -1.7e308
