"""The comparison: its rows, their order, the filter and the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.analysis.cells import ran
from workbench.analysis.comparison import CellKey, cell_of, model_totals
from workbench.analysis.early_stop_state import PairEarlyStop
from workbench.authoring.case_list import CaseKey
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import WORST_FIRST, Status
from workbench.show.spans import cells, plain
from workbench.show.views.comparison import CellRooms, cell_line
from workbench.suite.grading_model import Gate
from workbench.tui.comparison.sources import NOT_RUN, CellState, ComparedCase
from workbench.tui.comparison.state import CompareState
from workbench.tui.comparison.table import (
    ComparedTotals,
    cell_state_line,
    cell_text,
    columns_of,
    header_line,
    heads_of,
    row_line,
)
from workbench.tui.run_book.record import RunRecord

MODELS = ("a", "b")


@dataclass
class Table:
    """A source whose cells a test writes down."""

    rows: list[ComparedCase]
    columns: tuple[str, ...] = MODELS
    of: dict[CellKey, CellState] = field(default_factory=dict)
    live: bool = True
    asked: list[str] = field(default_factory=list)
    """The cases that were looked at."""
    new: Sequence[ComparedCase] | None = None
    """The cases that have begun; `None` for all."""
    demanded: Mapping[str, Gate] = field(default_factory=dict)

    def suites(self) -> Sequence[object]:
        return ()

    def begun(self) -> Sequence[CaseKey]:
        return [(Path(each.suite), each.case_id) for each in (self.rows if self.new is None else self.new)]

    def cases(self) -> Sequence[ComparedCase]:
        return self.rows

    def models(self) -> Sequence[str]:
        return self.columns

    def planned(self, case: ComparedCase) -> Sequence[str]:
        return self.columns

    def gates(self) -> Mapping[str, Gate]:
        return self.demanded

    def cell_states(self, case: ComparedCase) -> Mapping[str, CellState]:
        self.asked.append(case.case_id)
        return {model: self.of[case.on(model)] for model in self.columns if case.on(model) in self.of}

    def watched(self) -> Sequence[PairEarlyStop]:
        return ()

    def why_nothing_runs(self) -> str | None:
        return None

    def active(self, key: CellKey) -> Sequence[int]:
        return ()

    async def open_run(self, key: CellKey, repeat: int | None = None) -> RunRecord:
        raise LookupError


def case(name: str, suite: str = "s", tags: tuple[str, ...] = ()) -> ComparedCase:
    return ComparedCase(suite, f"Suite {suite}", name, f"Case {name}", tags)


def over(*runs: RunSummary) -> CellState:
    return CellState("done", cell_of(runs), len(runs))


def figures(status: Status, score: float | None = None, latency_ms: float = 100.0) -> RunSummary:
    return replace(ran(status), score=score, latency_ms=latency_ms)


def shown(state: CompareState) -> list[str]:
    return [each.case_id for each in state.cases_shown]


GRADED: tuple[Status, ...] = (Status.PASSED, Status.WARNED, Status.FAILED)
scores = st.one_of(st.sampled_from([0.0, 0.5, 0.502, 0.506, 1.0]), st.floats(0, 1))
runs = st.one_of(
    st.builds(figures, st.sampled_from(GRADED), scores, st.floats(0, 1e6)),
    st.builds(figures, st.sampled_from([Status.ERROR, Status.SKIPPED, Status.STOPPED])),
)
standings = st.one_of(
    st.sampled_from([NOT_RUN, CellState("waiting", planned=1), CellState("running", planned=1)]), runs.map(over)
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    count = draw(st.integers(1, 5))
    suites = sorted(draw(st.lists(st.sampled_from("st"), min_size=count, max_size=count)))
    rows = [
        case(str(at), suite, draw(st.sampled_from([(), ("red",), ("red", "blue")]))) for at, suite in enumerate(suites)
    ]
    keys = [row.on(model) for row in rows for model in MODELS]
    return Table(
        rows, of=dict(zip(keys, draw(st.lists(standings, min_size=len(keys), max_size=len(keys))), strict=True))
    )


def rank(standing: CellState) -> tuple[int, float, float]:
    cell = standing.cell
    assert cell is not None
    return WORST_FIRST.index(cell.status), cell.score or 0.0, -(cell.latency_ms or 0.0)


@given(tables(), st.integers(0, 1))
def test_a_column_sorts_the_worst_first_then_the_best_then_as_in_the_suites(table: Table, column: int) -> None:
    state = CompareState(table)
    as_written = shown(state)
    state.move_to(0, column)
    state.sort()
    known = [each for each in state.cases_shown if state.at(each.on(MODELS[column])).cell is not None]
    ranks = [rank(state.at(each.on(MODELS[column]))) for each in known]
    assert ranks == sorted(ranks)
    assert state.cases_shown[: len(known)] == known
    rest = shown(state)[len(known) :]
    assert rest == [each for each in as_written if each in rest]
    state.sort()
    turned = [rank(state.at(each.on(MODELS[column]))) for each in state.cases_shown[: len(known)]]
    assert turned == ranks[::-1]
    assert shown(state)[len(known) :] == rest
    state.sort()
    assert shown(state) == as_written


@given(tables())
def test_only_differences_are_cases_of_different_status_or_score(table: Table) -> None:
    state = CompareState(table)
    state.show_differences(True)
    expected = []
    for row in table.rows:
        cells = (table.of[row.on(model)].cell for model in MODELS)
        found = [cell for cell in cells if cell is not None and cell.is_graded]
        if len(found) == 2:
            a, b = found
            both = a.score is not None and b.score is not None
            if a.status != b.status or (both and round(abs((a.score or 0) - (b.score or 0)), 6) > 0.005):
                expected.append(row.case_id)
    assert shown(state) == expected


@given(tables(), st.lists(st.sampled_from(["red", "blue", "case", "failed", "a:passed", "b:err", "suite t", "3", "x"])))
def test_the_filter_finds_every_word_in_name_tags_suite_and_statuses(table: Table, words: list[str]) -> None:
    state = CompareState(table)
    state.set_filter("  ".join(words).upper())
    wanted = " ".join(words).split()
    for row in table.rows:
        found = {model: table.of[row.on(model)] for model in MODELS}
        said = [f"{model}:{one.cell.status if one.cell else one.stage}" for model, one in found.items()]
        text = f"{row.suite_name} {row.name} {row.case_id} {' '.join(row.tags)} {' '.join(said)}".lower()
        assert (row.case_id in shown(state)) == all(word in text for word in wanted)


@given(tables(), st.lists(st.sampled_from(["up", "down", "sort", "differences", "filter", "right"]), max_size=12))
def test_the_cursor_is_always_on_a_case_and_stays_on_it_while_it_is_shown(table: Table, moves: list[str]) -> None:
    state = CompareState(table)
    for move in moves:
        before = state.case
        match move:
            case "up" | "down":
                state.move_to(state.cursor + (1 if move == "down" else -1), state.column)
            case "right":
                state.move_to(state.cursor, state.column + 1)
            case "sort":
                state.sort()
            case "differences":
                state.show_differences(not state.only_differences)
            case _:
                state.set_filter("" if state.filter else "red")
        assert (state.case is None) == (not state.rows)
        if move == "sort" and state.sorting is not None:
            assert state.case is (state.cases_shown[0] if state.rows else None)
        elif move in ("sort", "differences", "filter") and before in state.cases_shown:
            assert state.case is before


def test_suites_are_named_where_there_are_several_and_going_up_passes_the_name() -> None:
    state = CompareState(Table([case("1", "s"), case("2", "t")]))
    assert [row.case.case_id if row.case else row.suite_name for row in state.rows] == ["Suite s", "1", "Suite t", "2"]
    assert state.cursor == 1
    state.move_to(2, 0)
    assert state.cursor == 3
    state.move_to(2, 0)
    assert state.cursor == 1
    assert [row.case is None for row in CompareState(Table([case("1"), case("2")])).rows] == [False, False]


def test_rows_stay_where_they_are_until_nothing_runs_any_more() -> None:
    first, second = case("1"), case("2")
    table = Table([first, second], of={each.on("a"): CellState("running", planned=1) for each in (first, second)})
    state = CompareState(table)
    state.sort()
    table.of[first.on("a")] = over(figures(Status.PASSED, 1.0))
    state.update_runs([])
    assert shown(state) == ["1", "2"]
    table.of[second.on("a")] = over(figures(Status.FAILED, 0.0))
    assert state.update_runs([])
    assert shown(state) == ["2", "1"]


def test_what_differs_appears_as_soon_as_it_does() -> None:
    table = Table([case("1")], of={case("1").on("a"): over(figures(Status.PASSED, 1.0))})
    state = CompareState(table)
    state.show_differences(True)
    assert shown(state) == []
    table.of[case("1").on("b")] = over(figures(Status.FAILED, 0.0))
    assert state.update_runs([])
    assert shown(state) == ["1"]


@given(tables(), st.sampled_from(["", "red", "a:passed", "failed", "b:err"]), st.booleans(), st.data())
def test_what_is_shown_after_news_is_what_would_be_shown_from_the_beginning(
    table: Table, words: str, only: bool, data: st.DataObject
) -> None:
    state = CompareState(table)
    state.set_filter(words)
    state.show_differences(only)
    for _ in range(3):
        news = data.draw(st.sampled_from(table.rows))
        table.new, table.of[news.on("a")] = [news], data.draw(runs.map(over))
        before = list(state.rows)
        assert state.update_runs([]) == (state.rows != before)
        anew = CompareState(table)
        anew.set_filter(words)
        anew.show_differences(only)
        assert state.rows == anew.rows


def test_news_of_one_case_look_at_no_other_one_whatever_is_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [case(str(at)) for at in range(100)]
    table = Table(rows, of={each.on(model): over(figures(Status.PASSED)) for each in rows for model in MODELS})
    state = CompareState(table)
    state.show_differences(True)
    state.set_filter("failed")
    table.asked.clear()
    table.new, table.of[rows[7].on("a")] = (), over(figures(Status.FAILED, 0.0))
    differed: list[str] = []

    def differs(each: ComparedCase) -> bool:
        differed.append(each.case_id)
        return True

    monkeypatch.setattr(state, "differs", differs)
    assert state.update_runs([(Path("s"), "7")])
    assert (table.asked, differed, shown(state)) == (["7"], ["7"], ["7"])


def test_cells_are_better_or_worse_than_those_of_the_base() -> None:
    one, two, three = case("1"), case("2"), case("3")
    of = {
        one.on("a"): over(figures(Status.PASSED, 1.0)),
        one.on("b"): over(figures(Status.FAILED, 0.0)),
        two.on("a"): over(figures(Status.FAILED, 0.2)),
        two.on("b"): over(figures(Status.FAILED, 0.4)),
        three.on("a"): over(figures(Status.PASSED, 1.0)),
        three.on("b"): over(figures(Status.ERROR)),
    }
    state = CompareState(Table([one, two, three], of=of))
    assert [state.against_base(each.on("b")) for each in (one, two, three)] == [0, 0, 0]
    state.make_base()
    assert [state.against_base(each.on("b")) for each in (one, two, three)] == [-1, 1, 0]
    assert state.against_base(one.on("a")) == 0


def test_the_second_mark_gives_both_cells_and_the_same_cell_again_takes_it_away() -> None:
    state = CompareState(Table([case("1")]))
    assert state.mark() is None
    assert state.mark() is None
    assert state.marked is None
    state.mark()
    state.move_to(0, 1)
    assert state.mark() == (case("1").on("a"), case("1").on("b"))
    assert state.marked is None


def test_a_model_that_is_chosen_becomes_a_column_and_the_cursor_stays_on_its_own() -> None:
    table = Table([case("1")])
    state = CompareState(table)
    state.move_to(0, 1)
    table.columns = ("new", "a", "b")
    state.follow()
    assert (state.models, state.model) == (("new", "a", "b"), "b")


widths = st.integers(20, 220)


@given(tables(), widths, st.integers(3, 40))
def test_every_row_is_as_wide_as_its_columns_and_the_one_under_the_cursor_is_seen(
    table: Table, width: int, names: int
) -> None:
    state = CompareState(table)
    state.move_to(0, 1)
    columns = columns_of(state, heads_of(state), names, {}, 0, width)
    assert columns.first <= state.column < columns.end
    whole = columns.start(columns.end - 1) + columns.widths[columns.end - 1]
    assert whole <= width or columns.end - columns.first == 1
    for row in state.rows:
        if row.case is not None:
            assert cells(row_line(state, row, columns, has_cursor=True)) == whole
    assert cells(header_line(state, columns, heads_of(state))) >= whole
    assert [columns.at(columns.start(at)) for at in range(columns.first, columns.end)] == list(
        range(columns.first, columns.end)
    )


@given(st.lists(runs, min_size=1, max_size=12), st.integers(0, 3))
def test_a_graded_cell_takes_exactly_its_room(found: list[RunSummary], more: int) -> None:
    numbered = [replace(run, repeat=at, latency_ms=min(run.latency_ms, 9e4)) for at, run in enumerate(found)]
    rooms = CellRooms(len(str(len(numbered) + more)), True, 9)
    cell = cell_of(numbered)
    assert not cell.is_graded or cell_len(plain(cell_line(cell, rooms))) == rooms.cells


REPEATED = CellRooms(1, True, 7)


def test_a_cell_of_repeats_says_how_many_were_good_the_mean_and_the_spread() -> None:
    found = [replace(figures(Status.PASSED, 1.0, 412), repeat=at) for at in range(2)]
    standing = over(*found, replace(figures(Status.FAILED, 0.0, 412), repeat=2))
    assert plain(cell_state_line(standing, REPEATED)) == "✗ 2/3  0.67±0.47  412 ms"
    broken = over(*found, replace(figures(Status.ERROR), repeat=2))
    assert plain(cell_state_line(broken, REPEATED)) == "✓ 2/2▲ 1.00       412 ms"
    stopped = over(*found, replace(figures(Status.STOPPED), repeat=2))
    assert plain(cell_state_line(stopped, REPEATED)) == "✓ 2/2■ 1.00       412 ms"


@pytest.mark.parametrize("count", [1, 3])
def test_a_cell_that_runs_says_how_far_it_is(count: int) -> None:
    going = CellState("running", planned=count)
    assert plain(cell_state_line(going, REPEATED)) == ("… running" if count == 1 else "… 0/3 running")


def test_a_row_has_the_sign_of_its_worst_verdict_and_of_an_error_only_without_any() -> None:
    one, two = case("1"), case("2")
    dead = over(figures(Status.ERROR))
    passed = over(figures(Status.PASSED, 1.0))
    state = CompareState(Table([one, two], of={one.on("a"): passed, **{each.on("b"): dead for each in (one, two)}}))
    columns = columns_of(state, heads_of(state), 9, {}, 0, 80)
    assert [plain(row_line(state, row, columns, has_cursor=False))[0] for row in state.rows] == ["✓", "▲"]


def repeated(*found: float) -> CellState:
    return over(*(replace(figures(Status.PASSED, each), repeat=at) for at, each in enumerate(found)))


@pytest.mark.parametrize("repeats", [2, 10])
def test_two_models_stand_side_by_side_at_80_cells_however_long_a_name_is(repeats: int) -> None:
    cells_of_two = repeated(*(at / repeats for at in range(repeats)))
    models = tuple("abcdef")
    state = CompareState(Table([case("1")], models, {case("1").on(model): cells_of_two for model in models}))
    columns = columns_of(state, heads_of(state), 84, {}, 0, 79)
    assert columns.end == 2
    assert columns.names <= 80 / 3
    assert header_line(state, columns, heads_of(state))[-1].text == " →4"
    assert cells(header_line(state, columns, heads_of(state))) <= 79


def test_there_is_no_place_for_a_spread_where_no_scores_lie_apart() -> None:
    one = case("1")
    state = CompareState(Table([one], of={one.on("a"): repeated(1.0, 1.0), one.on("b"): repeated(1.0, 0.0)}))
    columns = columns_of(state, heads_of(state), 9, {}, 0, 80)
    assert [
        columns.part_widths[1].cells - columns.part_widths[0].cells,
        "1.00 100 ms" in plain(row_line(state, state.rows[0], columns, has_cursor=False)),
    ] == [5, True]


def test_the_status_line_names_the_model_without_the_sign_of_the_order() -> None:
    state = CompareState(Table([case("1")], of={case("1").on("a"): over(figures(Status.PASSED, 1.0))}))
    state.sort()
    assert plain(cell_text(state, 80)) == " ✓ Case 1 · a  passed"


def test_how_many_columns_are_out_of_sight_stands_at_the_edge_of_the_names() -> None:
    state = CompareState(Table([case("1")], tuple("abcdef")))
    state.move_to(0, 5)
    columns = columns_of(state, heads_of(state), 9, {}, 0, 40)
    assert plain(header_line(state, columns, heads_of(state)))[: columns.names].endswith(f" ←{columns.first}")


@given(tables(), st.floats(0.0, 0.1))
def test_totals_come_to_those_of_all_cells_however_little_time_there_is(table: Table, each_s: float) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += each_s
        return now[0]

    state = CompareState(table)
    totals = ComparedTotals(state, clock)
    for _ in range(200):
        if not totals.is_behind:
            break
        totals.update()
        now[0] += 1.0
    assert not totals.is_behind
    graded = dict(totals.rows)["graded cases"]
    for at, model in enumerate(MODELS):
        expected = model_totals(model, state.cells(model))
        assert graded[at] == f"{expected.graded} of {len(state.cases)}"
