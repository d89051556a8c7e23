"""The text of the comparison: the visible columns, their heads, and the line about a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tui.comparison.test_state import Table, case, figures, over
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.show.spans import cells, plain
from workbench.suite.grading_model import Gate
from workbench.tui.comparison.sources import CellState, ComparedCase
from workbench.tui.comparison.state import CompareState
from workbench.tui.comparison.table import (
    Columns,
    ComparedTotals,
    cell_text,
    columns_of,
    empty_message,
    header_line,
    heads_of,
    names_of,
    names_width,
    row_line,
)

LONG_CASE = "A very long case name that goes on and on so that no terminal could ever show all of it at once"
LONG_MODELS = tuple(f"mediocre-quantized-instruct-q4_K_M-2026-11-{which}" for which in ("long", "short"))


def named(name: str) -> ComparedCase:
    return replace(case("1"), name=name)


def laid_out(state: CompareState, width: int, names: int | None = None) -> Columns:
    """The columns as the screen has them, whose totals are shown."""
    totals = ComparedTotals(state, lambda: 0.0)
    totals.update()
    names = names if names is not None else names_width(state.cases, with_suites=False)
    return columns_of(state, heads_of(state), names, totals.floors, 0, width)


def ran_on(models: Sequence[str], name: str = "Case 1") -> CompareState:
    one = named(name)
    return CompareState(
        Table([one], tuple(models), {one.on(model): over(figures(Status.PASSED, 1.0)) for model in models})
    )


@given(st.integers(79, 240), st.integers(3, 300), st.booleans())
def test_two_models_stand_side_by_side_however_long_a_name_is(width: int, names: int, base: bool) -> None:
    state = ran_on(LONG_MODELS)
    if base:
        state.make_base()
    columns = laid_out(state, width, names)
    assert (columns.first, columns.end) == (0, 2)
    assert columns.start(1) + columns.widths[1] <= width
    assert columns.names >= min(names, width // 3)


@pytest.mark.parametrize("width", [80, 100, 120, 160])
@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_as_many_columns_stand_beside_a_long_name_as_beside_a_shorter_one(width: int, count: int) -> None:
    state = ran_on([f"m{at}" for at in range(count)])
    shown = [laid_out(state, width - 1, names).end for names in (26, 40, 60, 90, 110, 300)]
    assert shown == sorted(shown, reverse=True)
    assert shown[-1] >= min(count, (width - 1) * 2 // 3 // 17)


def test_of_the_head_of_the_base_the_name_is_cut_and_not_the_sign() -> None:
    state = ran_on(LONG_MODELS, LONG_CASE)
    state.sort()
    state.make_base()
    columns = laid_out(state, 79)
    head = plain(header_line(state, columns, heads_of(state)))
    assert "  ↓ mediocre-q… = base  mediocre-quan…-short" in head
    assert cells(header_line(state, columns, heads_of(state))) <= 79


@pytest.mark.parametrize(("width", "whole"), [(159, 2), (99, 1), (79, 0)])
def test_long_heads_are_whole_where_nothing_else_takes_the_room(width: int, whole: int) -> None:
    state = ran_on((LONG_MODELS[0], "b") if whole == 1 else LONG_MODELS)
    state.make_base()
    head = plain(header_line(state, laid_out(state, width), heads_of(state)))
    assert sum(name in head for name in LONG_MODELS) == whole
    assert " = base" in head


@given(st.integers(20, 200), st.lists(st.integers(1, 90), min_size=1, max_size=6))
def test_wider_heads_push_no_column_out(width: int, lengths: list[int]) -> None:
    short = ran_on([f"{at}" for at in range(len(lengths))])
    long = ran_on([f"{at}".ljust(min(length, 20), "x") for at, length in enumerate(lengths)])
    longer = ran_on([f"{at}".ljust(length, "x") for at, length in enumerate(lengths)])
    columns = laid_out(longer, width)
    assert columns.end == laid_out(long, width).end <= laid_out(short, width).end
    for row in longer.rows:
        assert cells(row_line(longer, row, columns, has_cursor=True)) <= max(width, columns.start(columns.end))


ERROR = "connection refused by http://127.0.0.1:9104/v1 (errno 111)"


@pytest.mark.parametrize(
    "name", ["Case 1", LONG_CASE, "明日の天気を東京で調べてください、摂氏でお願いします、そして傘が必要か教えて"]
)
@pytest.mark.parametrize("model", ["a", LONG_MODELS[0]])
@pytest.mark.parametrize("width", [40, 80])
def test_status_and_reason_of_a_cell_are_said_however_long_its_names_are(name: str, model: str, width: int) -> None:
    broken = over(replace(figures(Status.ERROR), reason=ERROR))
    state = CompareState(Table([named(name)], (model,), {named(name).on(model): broken}))
    said = plain(cell_text(state, width))
    assert cell_len(said) <= width
    assert said.startswith(" ▲ ")
    at = said.index("  error: ") + 2
    assert len(said) - at >= min(len(f"error: {ERROR}"), width // 2)
    assert model[:4] in said and name[:2] in said


def test_what_all_has_room_is_said_whole() -> None:
    failed = over(replace(figures(Status.FAILED), reason="a call is missing: set_tv"))
    state = CompareState(Table([named(LONG_CASE)], ("a",), {named(LONG_CASE).on("a"): failed}))
    assert plain(cell_text(state, 160)) == f" ✗ {LONG_CASE} · a  failed: a call is missing: set_tv"


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (
            [*[figures(Status.PASSED, 1.0)] * 4, replace(figures(Status.ERROR), reason=ERROR)],
            f"; 1 of 5 runs in error: {ERROR}",
        ),
        ([figures(Status.PASSED, 1.0), figures(Status.STOPPED)], "; 1 of 2 runs stopped"),
        (
            [
                figures(Status.STOPPED),
                replace(figures(Status.ERROR), reason="a"),
                figures(Status.PASSED, 1.0),
                figures(Status.ERROR),
            ],
            "; 2 of 4 runs in error; 1 of 4 runs stopped",
        ),
        ([figures(Status.PASSED, 1.0)] * 2, ""),
    ],
)
def test_which_repeats_came_to_no_verdict_is_said_below_the_cells(runs: list[RunSummary], said: str) -> None:
    repeats = over(*(replace(run, repeat=at) for at, run in enumerate(runs)))
    state = CompareState(Table([case("1")], ("a",), {case("1").on("a"): repeats}))
    assert plain(cell_text(state, 160)) == f" ✓ Case 1 · a  passed{said}"
    state = CompareState(Table([named(LONG_CASE)], LONG_MODELS, {named(LONG_CASE).on(LONG_MODELS[0]): repeats}))
    line = plain(cell_text(state, 80))
    assert "  passed" + said[:35] in line
    assert cell_len(line) <= 80


def test_what_a_run_waits_for_is_said_below_the_cells() -> None:
    going = CellState("running", None, 2, wait_reason="retry 3 at 16:49:23: 429\nbusy")
    state = CompareState(Table([case("1")], ("a",), {case("1").on("a"): going}))
    assert plain(cell_text(state, 160)) == " … Case 1 · a  0/2 running; ↻ retry 3 at 16:49:23: 429⏎busy"


def test_where_no_repeat_came_to_a_verdict_the_status_says_so_already() -> None:
    repeats = over(replace(figures(Status.ERROR), reason=ERROR), replace(figures(Status.STOPPED), repeat=1))
    state = CompareState(Table([case("1")], ("a",), {case("1").on("a"): repeats}))
    assert plain(cell_text(state, 160)) == f" ▲ Case 1 · a  error: {ERROR}"


def test_what_is_to_come_is_told_apart_from_what_never_will() -> None:
    one, two = case("1"), case("2")
    table = Table([one, two], ("a",), {one.on("a"): CellState("to come", planned=1)})
    state = CompareState(table)
    columns = laid_out(state, 80)
    rows = [plain(row_line(state, row, columns, has_cursor=False)).split() for row in state.rows]
    assert rows == [["…", "Case", "1", "…", "to", "come"], ["·", "Case", "2", "·"]]
    assert plain(cell_text(state, 80)) == " … Case 1 · a  to come"


def test_with_one_model_nothing_can_differ_and_that_is_said() -> None:
    one, two = ran_on("a"), ran_on("ab")
    for state in (one, two):
        state.show_differences(True)
    assert empty_message(one)[0][0] == "There is only one model, so nothing differs."
    assert empty_message(two)[0][0] == "The models agree on all cases so far."
    two.set_filter("case")
    assert empty_message(two)[0][0] == "No case on which models differ fits the filter."


def test_where_there_is_no_model_that_is_the_cause() -> None:
    state = CompareState(Table([case("1")], ()))
    why = "No model is chosen: m chooses"
    assert plain(cell_text(state, 80)) == f" ! {why}"
    state.show_differences(True)
    assert empty_message(state)[0][0] == f"{why}."
    assert empty_message(CompareState(Table([])))[0][0] == "There is no case here yet."


def test_each_column_says_whether_its_model_meets_the_gates() -> None:
    one = case("1")
    table = Table(
        [one], of={one.on("a"): over(figures(Status.PASSED, 1.0)), one.on("b"): over(figures(Status.FAILED, 0.5))}
    )
    totals = ComparedTotals(CompareState(table), lambda: 0.0)
    totals.update()
    assert not any(name.startswith("gate") for name, _ in totals.rows)
    table.demanded = {figures(Status.PASSED).suite: Gate(min_score=0.75)}
    totals.update()
    assert [row for row in totals.rows if row[0].startswith("gate")] == [
        ("gate: mean score 0.75", ["1.00 met", "0.50 missed"])
    ]
    names = [name for name, _ in totals.rows]
    assert names.index("gate: mean score 0.75") == names.index("mean score") + 1


def test_totals_of_a_model_that_ran_nothing_are_a_dash_each() -> None:
    totals = ComparedTotals(CompareState(Table([case("1")])), lambda: 0.0)
    totals.update()
    assert {value for _, values in totals.rows for value in values} == {"–", "0", "0 of 1"}


def test_heads_are_without_providers_but_say_which_models_are_agents() -> None:
    assert names_of(["openai:gpt-6-luna", "agent:codex"]) == ("gpt-6-luna", "agent:codex")
    assert names_of(["openai:codex", "anthropic:codex"]) == ("openai:codex", "anthropic:codex")
