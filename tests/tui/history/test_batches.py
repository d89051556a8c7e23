"""The history as rows and lines: without a screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from tests.tui.apps import SMART_HOME
from tests.tui.histories import Made, utc, well, write_history
from workbench.analysis.trends import TrendKey, trends_of
from workbench.grading.status import Status
from workbench.history.records import BatchPart, BatchRow, MergedShards, Regrade, SuiteRef
from workbench.show.markdown import document_table
from workbench.show.spans import Line, cells, plain
from workbench.trajectory.events import JsonValue
from workbench.tui.history import batches as history_lines
from workbench.tui.history import batches as history_list
from workbench.tui.history.batches import HistoryList
from workbench.tui.run_book.stored_batches import LoadedBatches, read_batches, read_cases

__all__ = ["utc"]

HOME = SuiteRef(1, "/somewhere", "suites/home.toml", "a", "Smart home", 3)


def part_of(good: int, bad: int, *, suite: SuiteRef = HOME, model: str = "offline", cases: int = 3) -> BatchPart:
    counts = dict.fromkeys(Status, 0) | {Status.PASSED: good, Status.FAILED: bad}
    return BatchPart(suite, model, cases, cases, counts)


def batch_of(
    number: int, *parts: BatchPart, name: str | None = None, kind: str = "runs", going: bool = False
) -> BatchRow:
    at = f"2026-03-{number:02}T09:30:00+00:00"
    planned = sum(part.planned for part in parts)
    return BatchRow(number, name, kind, at, None if going else at, "0.1.0", {}, planned, parts)  # type: ignore[arg-type]


def listed(*batches: BatchRow, going: Sequence[int] = ()) -> HistoryList:
    """A history of these batches, the oldest given first."""
    state = HistoryList()
    state.replace_all(LoadedBatches(batches[::-1], active=frozenset(going)))
    return state


def row_of(state: HistoryList, batch: BatchRow, width: int) -> Line:
    return state.layout.line(state.facts(batch), width)


def numbers(state: HistoryList) -> list[int]:
    return [batch.number for batch in state.rows]


@pytest.mark.parametrize(("width", "cut"), [(53, False), (36, True)])
def test_the_name_of_a_model_is_cut_only_where_its_figures_leave_no_room(width: int, cut: bool) -> None:
    batch = batch_of(1, part_of(29_000, 10_000))
    (line,) = (row for row in history_lines.detail_lines(listed(batch), batch, width) if "✗10,000" in plain(row))
    assert ("offline (baseline)" not in plain(line)) == cut and cells(line) <= width


@pytest.mark.parametrize(
    ("good", "bad", "counts"),
    [(29_000, 10_500, "  ✓29k ✗10k  73.4%"), (987, 13, "  ✓987 ✗13  98.7%"), (3, 0, "  ✓3  100.0%")],
)
def test_counts_of_any_size_keep_to_their_column(good: int, bad: int, counts: str) -> None:
    batch = batch_of(1, part_of(good, bad, cases=good + bad))
    assert plain(row_of(listed(batch), batch, 80)).endswith(counts)


def test_the_newest_batch_stands_first_and_forks_are_hidden() -> None:
    state = listed(
        batch_of(1, part_of(3, 0)), batch_of(2, part_of(1, 0, cases=1), kind="fork"), batch_of(3, part_of(2, 1))
    )
    assert numbers(state) == [3, 1]
    state.show_forks(True)
    assert numbers(state) == [3, 2, 1]


@each_row(
    ("words", "found"),
    [("base", [1]), ("#2", [2]), ("other", [2]), ("smart 03-01", [1]), ("home.toml", [2, 1]), ("none", [])],
)
def test_the_filter_takes_number_name_date_suite_and_model(words: str, found: list[int]) -> None:
    state = listed(batch_of(1, part_of(3, 0), name="baseline"), batch_of(2, part_of(3, 0, model="other")))
    state.set_filter(words)
    assert numbers(state) == found


def test_the_cursor_stays_on_its_batch_when_others_come_and_on_the_newest_otherwise() -> None:
    first, second, third = (batch_of(number, part_of(3, 0)) for number in (1, 2, 3))
    state = listed(first, second)
    state.replace_all(LoadedBatches((third, second, first)))
    assert state.selected is third
    state.move_to(1)
    state.replace_all(LoadedBatches((batch_of(4, part_of(3, 0)), third, second, first)))
    assert state.selected is second


def test_of_two_marked_batches_the_earlier_one_is_first_whichever_was_marked_first() -> None:
    state = listed(batch_of(1, part_of(3, 0)), batch_of(2, part_of(3, 0)), batch_of(3, part_of(3, 0)))
    state.mark()
    assert state.pair is None
    state.move_to(2)
    state.mark()
    assert state.pair is not None
    assert [batch.number for batch in state.pair] == [1, 3]


def test_a_batch_that_is_removed_is_marked_no_more() -> None:
    first, second = batch_of(1, part_of(3, 0)), batch_of(2, part_of(3, 0))
    state = listed(first, second)
    state.mark()
    state.replace_all(LoadedBatches((first,)))
    assert state.marked == ()


def test_a_fork_is_compared_with_nothing() -> None:
    state = listed(batch_of(1, part_of(3, 0)), batch_of(2, part_of(1, 0, cases=1), kind="fork"))
    assert "history.mark" not in state.refusals()
    state.show_forks(True)
    state.move_to(0)
    assert "cannot be compared with a batch" in state.refusals()["history.mark"]


def test_a_trend_is_of_whole_batches_of_the_same_suite_and_model_up_to_the_batch() -> None:
    other = replace(HOME, id=2, hash="b")
    elsewhere = replace(HOME, id=3, path="suites/garden.toml")
    state = listed(
        batch_of(1, part_of(1, 2)),
        batch_of(2, part_of(1, 0, cases=1)),  # some cases only
        batch_of(3, part_of(2, 0), going=True),  # something is missing
        batch_of(4, part_of(3, 0), kind="fork"),
        batch_of(5, part_of(0, 3, model="other")),
        batch_of(6, part_of(0, 3, suite=elsewhere)),
        batch_of(7, part_of(2, 1, suite=other)),  # edited, and still the same suite
        batch_of(8, part_of(3, 0)),
    )
    eighth, seventh = (state.at(number) for number in (8, 7))
    assert eighth is not None
    assert seventh is not None
    assert state.trend(eighth, eighth.parts[0]) == pytest.approx([1 / 3, 2 / 3, 1])
    assert state.trend(seventh, seventh.parts[0]) == pytest.approx([1 / 3, 2 / 3])


def test_a_batch_that_goes_on_costs_no_trends_and_joins_them_when_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    state = listed(batch_of(1, part_of(1, 2)), batch_of(2, part_of(1, 0), going=True), going=[2])
    first, second = (state.at(number) for number in (1, 2))
    assert first is not None
    assert second is not None
    assert state.trend(second, second.parts[0]) == pytest.approx([1 / 3])
    looked_at: list[int] = []

    def counted(batches: Iterable[BatchRow]) -> dict[TrendKey, list[tuple[int, float]]]:
        given = list(batches)
        looked_at.extend(batch.number for batch in given)
        return trends_of(given)

    monkeypatch.setattr(history_list, "trends_of", counted)
    for good, rates in ((2, [1 / 3]), (3, [1 / 3, 1]), (3, [1 / 3, 1])):
        state.renew([batch_of(2, part_of(good, 0), going=True)], frozenset([2]))
        assert state.trend(second, second.parts[0]) == pytest.approx(rates)
    assert set(looked_at) == {2}


def test_what_is_missing_is_said_and_whether_the_batch_goes_on() -> None:
    cut, goes_on = batch_of(1, part_of(2, 0), going=True), batch_of(2, part_of(2, 0), going=True)
    state = listed(cut, goes_on, going=[2])
    said = ["\n".join(map(plain, history_lines.detail_lines(state, batch, 80))) for batch in (cut, goes_on)]
    assert "1 of 3 runs missing: interrupted; c runs exactly these." in said[0]
    merged = replace(cut, settings={"merged": MergedShards(None, ((1, 2),)).settings})
    said_of_it = " ".join(plain(line).strip() for line in history_lines.detail_lines(state, merged, 80))
    lacks = "1 of 3 runs missing: merged from 1 of 2 shards; merge the other shards too, or c runs exactly these."
    assert lacks in said_of_it
    assert "Running: 2 of 3 runs finished." in said[1]
    assert "its runs are under way" in state.refusals()["history.resume"]


def test_what_a_batch_was_made_with_is_said() -> None:
    reached: dict[str, JsonValue] = {
        "provider": "openai-chat",
        "model": "small",
        "base_url": "http://localhost:1/v1",
        "params": {"temperature": 0.2},
        "price": {"input": 1.5, "output": 6},
    }
    batch = replace(batch_of(1, part_of(3, 0)), settings={"concurrency": 4, "models": {"one": reached}})
    said = " ".join(plain(line).strip() for line in history_lines.detail_lines(listed(batch), batch, 200))
    assert "4 runs at a time" in said
    assert "small · openai-chat · http://localhost:1/v1 · temperature 0.2 · 1.5 and 6 USD" in said


@given(st.text(max_size=40), st.text(min_size=1, max_size=40), st.integers(1, 200))
def test_no_line_is_wider_than_there_is_room(name: str, model: str, width: int) -> None:
    suite = replace(HOME, name=name or "x", path=f"{name}.toml")
    batch = batch_of(1, part_of(2, 1, suite=suite, model=model), name=name or None)
    state = listed(batch, batch_of(2, part_of(3, 0, suite=suite, model=model)))
    assert cells(row_of(state, batch, width)) <= width
    if width >= 20:
        assert all(cells(line) <= width for line in history_lines.detail_lines(state, batch, width))


def test_the_copied_table_has_a_row_for_each_batch_that_is_shown() -> None:
    state = listed(batch_of(1, part_of(2, 1), name="a|b"), batch_of(2, part_of(3, 0)))
    assert document_table(state.table).splitlines()[-1].startswith("| `#1` a\\|b | 2026-03-01")


def test_only_what_there_is_apart_from_the_graded_runs_is_said() -> None:
    cases: list[tuple[dict[Status, int], str]] = [
        ({Status.ERROR: 8}, "Also 8 in error."),
        ({Status.SKIPPED: 2}, "Also 2 skipped."),
        ({Status.ERROR: 1, Status.SKIPPED: 2}, "Also 1 in error, 2 skipped."),
        ({}, ""),
    ]
    for counts, said in cases:
        part = replace(part_of(3, 0), planned=13, counts={**part_of(3, 0).counts, **counts})
        batch = batch_of(1, part)
        lines = [plain(line).strip() for line in history_lines.detail_lines(listed(batch), batch, 80)]
        assert [line for line in lines if "Also" in line] == ([said] if said else [])


@pytest.mark.usefixtures("utc")
def test_by_which_grades_a_sum_is_stands_beside_it(tmp_path: Path) -> None:
    suite = tmp_path / "home.toml"
    suite.write_text(SMART_HOME, encoding="utf-8")
    file = tmp_path / "history.sqlite3"
    write_history(file, suite, Made(well("Lights off")), Made(well()))
    (part,) = read_cases(file, 1).batch.parts
    better = (replace(part, counts={**dict.fromkeys(part.counts, 0), Status.PASSED: 3}),)
    grading = Regrade(1, 1, 1, "2026-03-05T11:18:00+00:00", "0.1.0")
    state = HistoryList()
    state.replace_all(replace(read_batches(file), regraded={1: 1}))
    other, batch = state.rows

    def said(width: int = 80) -> tuple[str, str]:
        lines = history_lines.detail_lines(state, batch, 100)
        return plain(row_of(state, batch, width)), plain(lines[1]).strip()

    row, first = said()
    assert row.rstrip().endswith("as it ran  ✓2 ✗1   66.7%") and "↻" not in row
    assert first == "66.7% passed: 2 of 3 graded runs, as graded when it ran; there are later grades"
    assert "↻" not in said(50)[0]
    state.set_gradings(1, [(grading, better)])
    assert said()[0] == row, "that they were read changes nothing"
    state.select_grading(1, 1)
    row, first = said()
    assert row.rstrip().endswith("↻ grading 1  ✓3  100.0%")
    assert first == "100.0% passed: 3 of 3 graded runs, as regraded 2026-03-05 11:18 (grading 1)"
    assert said(50)[0].endswith("↻ grading 1  100.0%")
    assert "| ↻ grading 1 | ✓3 | 100.0% |" in document_table(state.table)
    assert "as it ran" not in plain(row_of(state, other, 80))
    heights = " ".join(plain(line).strip() for line in history_lines.detail_lines(state, other, 80))
    assert "as they were graded when they ran" in heights


@pytest.mark.usefixtures("utc")
def test_what_tells_batches_apart_stays_where_there_is_little_room() -> None:
    state = listed(batch_of(14, part_of(1, 2)))
    row = plain(row_of(state, state.rows[0], 38))
    assert row.startswith(" #14  03-14 09:30 ") and row.endswith("33.3%")


def test_before_it_is_read_the_list_says_that_it_is_being_read() -> None:
    assert history_lines.list_message(HistoryList(), "history.sqlite3")[0][0] == "Reading the history …"


def test_reading_a_history_that_is_not_there_finds_nothing(tmp_path: Path) -> None:
    assert read_batches(tmp_path / "none.sqlite3").batches == ()
