"""Cells side by side: rows, columns, differing cases, and the pairs of compared models."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analysis.cells import column, ran
from tests.tables import each_row
from workbench.analysis.comparison import cell_of, cells_of
from workbench.analysis.side_by_side import cells_differ, compare_cells
from workbench.grading.status import Status
from workbench.show.views.comparison import weakest_text


def test_rows_stand_in_the_order_of_the_runs_and_cells_in_that_of_the_models() -> None:
    runs = [ran(case="rome", model="b"), ran(case="oslo", model="a"), ran(case="rome", model="a"), ran(model="c")]
    comparison = compare_cells(cells_of(runs), ("a", "b", "a"), {"weather.toml": "Weather"})
    assert comparison.models == ("a", "b")
    assert [(row.case_id, row.suite_name) for row in comparison.rows] == [("rome", "Weather"), ("oslo", "Weather")]
    assert [[cell and cell.model for cell in row.cells] for row in comparison.rows] == [["a", "b"], ["a", None]]
    assert [totals.cases for totals in comparison.totals] == [2, 1]


def test_one_case_in_two_suites_is_two_rows() -> None:
    comparison = compare_cells(cells_of([ran(), replace(ran(), suite="home.toml")]), ("a",), {})
    assert [row.suite for row in comparison.rows] == ["weather.toml", "home.toml"]
    assert comparison.has_suites


@pytest.mark.parametrize(("scores", "apart"), [((1.0, 1.0), False), ((0.5, 0.5049), False), ((0.5, 0.51), True)])
def test_scores_differ_when_a_person_can_tell(scores: tuple[float, float], apart: bool) -> None:
    assert cells_differ(column("a", Status.FAILED, Status.FAILED, scores=scores)) is apart


def test_statuses_differ_and_what_did_not_run_does_not() -> None:
    passed, failed = cell_of([ran(Status.PASSED)]), cell_of([ran(Status.FAILED, 1.0)])
    assert cells_differ([passed, failed])
    assert not cells_differ([passed, None])
    assert not cells_differ([None, None])


def test_an_error_is_no_verdict_and_differs_from_nothing() -> None:
    passed, failed, broken = (cell_of([ran(status)]) for status in (Status.PASSED, Status.FAILED, Status.ERROR))
    assert not cells_differ([passed, broken, passed])
    assert cells_differ([passed, broken, failed])


@pytest.mark.parametrize(("models", "pairs"), [(1, 0), (2, 1), (3, 3), (4, 3)])
def test_few_models_are_compared_with_each_other_and_many_with_the_first(models: int, pairs: int) -> None:
    names = [f"m{number}" for number in range(models)]
    found = compare_cells(cells_of(ran(model=name) for name in names), names, {}).pairs
    assert len(found) == pairs
    assert all(len(pair.found.family) == pairs for pair in found)
    assert models <= 3 or {pair.first for pair in found} == {"m0"}


def test_models_are_held_against_each_other_on_the_cases_that_all_of_them_have() -> None:
    """One is cheap for it ran on one easy case alone; one that did not run at all takes no case away."""
    whole = [ran(case="oslo"), ran(Status.FAILED, case="rome"), ran(Status.FAILED, case="bergen")]
    runs = [*whole, ran(case="oslo", model="b"), ran(Status.ERROR, case="rome", model="b")]
    comparison = compare_cells(cells_of(runs), ("a", "b", "c"), {})
    assert [(each.cases, each.graded, each.mean_score) for each in comparison.totals[:2]] == [
        (3, 3, 1 / 3),
        (2, 1, 1.0),
    ]
    assert [(each.graded, each.mean_score) for each in comparison.on_same_cases] == [(1, 1.0), (1, 1.0), (0, None)]


@each_row(
    ("failing", "text"),
    [
        ({"a": "", "b": ""}, None),  # of two models, the test of the pair says it
        ({"a": "", "b": "", "c": ""}, "every case passes with all 3"),
        ({"a": "0", "b": "0", "c": "0"}, "with all 3, the same 1 of 4 cases failed"),
        ({"a": "0", "b": "1", "c": "2"}, "with all 3, 1 of 4 cases failed, but not the same ones"),
        ({"a": "", "b": "012", "c": "0"}, "most failures with b (3 of 4 cases), only there 1, 2; fewest with a (0)"),
        (
            {"a": "", "b": "0", "c": "1"},
            "most failures with b and c (1 of 4 cases), only there 0, 1; fewest with a (0)",
        ),
        ({"a": "0", "b": "0123", "c": "01"}, "most failures with b (4 of 4 cases), only there 2, 3; fewest with a (1)"),
    ],
)
def test_a_sentence_names_the_model_that_fails_most_and_where(failing: dict[str, str], text: str | None) -> None:
    columns = {}
    for model, bad in failing.items():
        statuses = [Status.FAILED if str(case) in bad else Status.PASSED for case in range(4)]
        columns[model] = column(model, *statuses)
    assert weakest_text(columns) == text


def test_a_case_that_is_not_graded_with_every_model_counts_for_none() -> None:
    columns = {model: column(model, Status.PASSED, Status.FAILED) for model in "abc"}
    columns["c"] = column("c", Status.PASSED, Status.ERROR)
    assert weakest_text(columns) == "every case passes with all 3"
