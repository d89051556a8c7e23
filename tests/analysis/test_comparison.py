"""The cells of a comparison, and the totals of a model's cells."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.cells import FIGURES, column, ran
from tests.tables import each_row
from workbench.analysis.batch_diff import batch_diff
from workbench.analysis.comparison import cell_of, cells_of, model_totals, scores_differ
from workbench.analysis.side_by_side import cells_differ as cells_differ
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.show.views.timing import timing_line, timing_of

STATUSES: tuple[Status, ...] = (
    Status.PASSED,
    Status.WARNED,
    Status.FAILED,
    Status.ERROR,
    Status.SKIPPED,
    Status.STOPPED,
)

SCORES = [
    (0.5, 0.5, False),
    (0.505, 0.5, False),
    (0.7, 0.695, False),
    (0.7, 0.694, True),
    (-math.inf, 0.5, True),
    (-math.inf, -math.inf, False),
]
"""Two scores, and whether they differ. Some differ by 0.005 plus a rounding error of binary fractions."""


def test_a_cell_says_what_its_repeats_come_to() -> None:
    runs = [ran(Status.PASSED, repeat=0, rule="majority"), ran(Status.FAILED, repeat=1, rule="majority")]
    cell = cell_of([ran(Status.WARNED, repeat=2, rule="majority"), *runs, ran(Status.ERROR, repeat=3, rule="majority")])
    assert [run.repeat for run in cell.runs] == [0, 1, 2, 3]
    assert (cell.status, cell.good, cell.graded) == ("warned", 2, 3)
    assert cell.score == pytest.approx(1.85 / 3)
    assert cell.spread == pytest.approx(0.4403, abs=1e-4)


def test_the_latency_of_a_cell_is_the_mean_of_what_was_graded() -> None:
    slow, broken = (
        replace(FIGURES, latency_ms=300.0, repeat=1),
        replace(ran(Status.ERROR, repeat=2), latency_ms=9_000.0),
    )
    assert cell_of([FIGURES, slow, broken]).latency_ms == 200.0


def test_a_cell_without_a_graded_run_has_no_score_and_no_latency() -> None:
    cell = cell_of([replace(ran(Status.ERROR), reason="no route"), ran(Status.SKIPPED, repeat=1)])
    assert (cell.status, cell.score, cell.spread, cell.latency_ms) == ("error", None, None, None)
    assert (cell.reason, cell.is_graded, cell.is_good) == ("no route", False, False)


def test_cells_are_told_apart_by_suite_case_and_model() -> None:
    others = [replace(FIGURES, suite="other.toml"), replace(FIGURES, case_id="rome"), replace(FIGURES, model="b")]
    assert list(cells_of([FIGURES, *others, replace(FIGURES, repeat=1)])) == [
        ("weather.toml", "oslo", "a"),
        ("other.toml", "oslo", "a"),
        ("weather.toml", "rome", "a"),
        ("weather.toml", "oslo", "b"),
    ]


def test_a_fork_is_in_no_cell() -> None:
    assert cells_of([replace(FIGURES, is_fork=True)]) == {}


def test_a_run_that_was_made_again_stands_in_for_the_one_before() -> None:
    (cell,) = cells_of([ran(Status.ERROR), ran(Status.PASSED)]).values()
    assert [run.status for run in cell.runs] == ["passed"]


def test_totals_count_cases_and_leave_out_of_the_rate_what_was_not_graded() -> None:
    totals = model_totals(
        "a",
        column(
            "a",
            Status.PASSED,
            Status.PASSED,
            Status.WARNED,
            Status.FAILED,
            Status.ERROR,
            Status.SKIPPED,
            Status.STOPPED,
        ),
    )
    assert (totals.cases, totals.graded, totals.passed, totals.warned, totals.failed) == (7, 4, 2, 1, 1)
    assert (totals.errors, totals.skipped, totals.stopped) == (1, 1, 1)
    assert totals.pass_rate == 0.75
    assert totals.mean_score == pytest.approx(2.85 / 4)


def test_the_interval_is_over_cases_and_not_over_runs() -> None:
    cells = column("a", Status.PASSED, Status.FAILED)
    once = model_totals("a", cells)
    often = model_totals("a", [cell_of([replace(cell.runs[0], repeat=nth) for nth in range(9)]) for cell in cells])
    assert once.interval == often.interval
    assert once.interval is not None
    assert once.interval == pytest.approx((0.025, 0.975), abs=1e-4)


def test_runs_in_error_are_counted_where_the_case_was_graded_all_the_same() -> None:
    totals = model_totals(
        "a", [cell_of([ran(Status.PASSED), ran(Status.ERROR, repeat=1), ran(Status.ERROR, repeat=2)])]
    )
    assert (totals.errors, totals.runs_in_error, totals.runs) == (0, 2, 3)


def test_latency_and_first_token_are_of_graded_runs() -> None:
    runs = [replace(ran(case=str(n)), latency_ms=float(n), first_token_ms=n / 2) for n in range(1, 101)]
    broken = replace(ran(Status.ERROR, case="x"), latency_ms=1e6, first_token_ms=1e6)
    silent = replace(ran(case="y"), latency_ms=50.0, first_token_ms=None)
    totals = model_totals("a", cells_of([*runs, silent, broken]).values())
    assert totals.latency is not None
    assert (totals.latency.p50_ms, totals.latency.p95_ms, totals.latency.max_ms) == (50.0, 95.0, 100.0)
    assert totals.first_token is not None
    assert (totals.first_token.p50_ms, totals.first_token.max_ms) == (25.0, 50.0)


def test_tokens_and_cost_are_of_all_runs_and_what_is_unknown_is_said() -> None:
    free = replace(ran(Status.FAILED, case="1"), cost_usd=None, input_tokens=None, output_tokens=None)
    totals = model_totals("a", cells_of([FIGURES, ran(Status.ERROR, case="2"), free]).values())
    assert (totals.input_tokens, totals.output_tokens) == (20, 10)
    assert (totals.cost_usd, totals.runs_of_unknown_cost) == (0.5, 1)


@each_row(("one", "other", "differ"), SCORES)
def test_scores_differ_where_a_person_sees_it_whatever_compares_them(one: float, other: float, differ: bool) -> None:
    before, after = ran(Status.FAILED, one), replace(ran(Status.FAILED, other), model="b")
    assert scores_differ(one, other) == scores_differ(other, one) == differ
    assert cells_differ([cell_of([before]), cell_of([after])]) == differ
    assert bool(batch_diff([before], [after]).of("moved")) == differ


def test_what_nobody_told_is_not_zero() -> None:
    silent = replace(FIGURES, input_tokens=None, output_tokens=None, cost_usd=None, first_token_ms=None)
    totals = model_totals("a", [cell_of([silent])])
    assert (totals.input_tokens, totals.output_tokens, totals.cost_usd, totals.first_token) == (None, None, None, None)
    assert (totals.cases_a_minute, totals.runs_of_unknown_cost) == (None, 1)


def test_a_clock_that_was_set_back_makes_no_time() -> None:
    backwards = replace(ran(case="1"), began_ms=5_000.0, ended_ms=3_000.0)
    forwards = replace(ran(case="2"), began_ms=0.0, ended_ms=60_000.0)
    assert model_totals("a", cells_of([backwards]).values()).cases_a_minute is None
    assert model_totals("a", cells_of([backwards, forwards]).values()).cases_a_minute == 2


def test_cases_a_minute_go_by_the_time_in_which_something_ran() -> None:
    def at(case: str, began_s: float, ended_s: float, status: Status = Status.PASSED) -> RunSummary:
        return replace(ran(status, case=case), began_ms=began_s * 1000, ended_ms=ended_s * 1000)

    side_by_side = [at("1", 0, 20), at("2", 5, 10), at("3", 15, 30)]
    resumed_a_day_later = [at("4", 86_400, 86_430, Status.ERROR), at("5", 86_400, 86_410)]
    assert model_totals("a", cells_of([*side_by_side, *resumed_a_day_later]).values()).cases_a_minute == 4.0


@pytest.mark.parametrize(("repeats", "runs_a_minute"), [(1, 4.0), (5, 20.0)])
def test_a_case_that_runs_several_times_is_one_case_a_minute(repeats: int, runs_a_minute: float) -> None:
    runs = [replace(ran(case=case, repeat=r), began_ms=0.0, ended_ms=30_000.0) for case in "ab" for r in range(repeats)]
    timing = timing_of(31_000.0, 0.0, runs)
    assert (timing.cases_a_minute, timing.runs_a_minute) == (4.0, runs_a_minute)
    assert timing_line(timing) == "took 31.0 s"


def test_repeats_say_how_likely_k_tries_are_good() -> None:
    good, bad = [ran(repeat=r) for r in range(4)], [ran(Status.FAILED, case="rome", repeat=r) for r in range(3)]
    totals = model_totals("a", cells_of([*good, *bad, ran(case="rome", repeat=3)]).values())
    assert totals.pass_at == pytest.approx({1: 0.625, 2: 0.75, 3: 0.875, 4: 1.0})
    assert totals.pass_all == pytest.approx({1: 0.625, 2: 0.5, 3: 0.5, 4: 0.5})


def test_nothing_graded_has_no_figures() -> None:
    totals = model_totals("a", column("a", Status.ERROR, Status.SKIPPED))
    assert (totals.pass_rate, totals.interval, totals.mean_score, totals.latency, totals.passing) == (*[None] * 4, ())


@given(st.lists(st.sampled_from(STATUSES), max_size=12), st.randoms())
def test_totals_do_not_depend_on_the_order_of_cases(statuses: list[Status], random: Random) -> None:
    cells = column("a", *statuses)
    assert model_totals("a", cells) == model_totals("a", random.sample(cells, len(cells)))
