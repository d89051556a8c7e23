"""Two runs side by side: folded parts, differences, and lines at any width."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.sampled_rows import first_of
from tests.trajectory.scripts import scripts
from tests.tui.run_pair.pairs import DEAR, flight, record_with
from workbench.show.spans import cells, plain
from workbench.show.views.run_pair import TWO_COLUMNS_CELLS
from workbench.trajectory.events import Event
from workbench.tui.run_pair.state import Fold, PairLines, PairState, copied_pair, header_lines


def booked(rounds: int = 3) -> PairState:
    return PairState(
        record_with(flight(dear=False, rounds=rounds), "small"), record_with(flight(dear=True, rounds=rounds), "big")
    )


def text_of(state: PairState, width: int = 100, *, stacked: bool = False) -> str:
    lines = PairLines(state, width, stacked=stacked)
    return "\n".join(plain(line).rstrip() for entry in range(len(state.entries)) for line in lines.lay_out(entry))


def entry_with(state: PairState, tool: str) -> int:
    rows = (row for row in state.rows if row.part.kind == "call" and row.part.call is not None)
    return state.entry_of(next(state.rows.index(row) for row in rows if row.part.call and row.part.call.tool == tool))


def test_rounds_that_are_alike_are_folded_into_one_line() -> None:
    text = text_of(booked())
    assert "▸ the same beginning\n▸ 3 rounds alike\nround 4" in text
    assert "search" not in text


def test_a_fold_opens_where_it_is_and_closes_again() -> None:
    state = booked()
    lines, before = PairLines(state, 100, stacked=False), list(state.entries)
    assert lines.turn(1, None)
    assert plain(lines.line(1)).startswith("▾ 3 rounds alike")
    assert plain(lines.line(2)).startswith("round 1")
    assert state.fold_at(5) == 1
    assert lines.turn(1, True)
    assert state.entries == before


def test_arguments_that_differ_are_marked_and_the_others_are_dim() -> None:
    state = booked()
    lines = PairLines(state, 100, stacked=False).lay_out(entry_with(state, "book"))
    said = {plain(line).split()[0]: line for line in lines}
    assert {span.role for span in said["flight"] if span.text.strip()} == {"muted", "border"}
    assert " ≠ " in plain(said["class"])
    assert "warned" in {span.role for span in said["class"]}
    assert " < " in plain(said["bags"])
    assert any(" > " in plain(line) and "seat" in plain(line) for line in lines)


def test_the_title_says_the_first_difference_and_the_cursor_begins_on_it() -> None:
    state = booked()
    assert state.sentence == "In 2, round 4: calls book without bags, not with 1"
    assert state.first is not None
    assert state.entry_of(state.first) == entry_with(state, "book")


def test_one_goes_from_difference_to_difference_and_around_the_end() -> None:
    state = booked()
    entry, seen = 0, []
    for _ in range(len(state.differences) + 1):
        found = state.difference_from(entry, 1)
        assert found is not None
        entry = found[0]
        seen.append(found[1])
    assert seen == [*range(len(state.differences)), 0]
    assert state.difference_from(entry, -1) == (
        state.entry_of(state.differences[-1]),
        len(state.differences) - 1,
    )


def test_what_answers_a_call_that_is_alone_is_no_difference_of_its_own() -> None:
    kinds = [booked().rows[index].part.kind for index in booked().differences]
    assert kinds == ["call", "result", "call", "text"]


def test_two_runs_that_do_the_same_have_nothing_to_go_to() -> None:
    state = PairState(record_with(flight(dear=True)), record_with(flight(dear=True)))
    assert state.sentence == "both runs say and do the same"
    assert state.first is None
    assert state.difference_from(0, 1) is None
    assert "▸ 6 rounds alike" in text_of(state)


def test_a_text_is_cut_near_its_difference_and_whole_when_it_is_unfolded() -> None:
    state = booked()
    text = next(index for index in state.differences if state.rows[index].part.kind == "text")
    lines = PairLines(state, 80, stacked=False)
    entry = state.entry_of(text)
    short = "\n".join(map(plain, lines.lay_out(entry)))
    assert "business" in short
    assert "…" in short
    lines.turn(entry, False)
    whole = "".join(plain(line)[41:] for line in lines.lay_out(entry))
    assert whole.replace(" ", "") == DEAR.replace(" ", "")


def test_one_above_the_other_says_what_is_the_same_once() -> None:
    text = text_of(booked(), 60, stacked=True)
    assert text.count('flight  "BA 700"') == 1
    assert '≠1     class   "economy"\n 2     class   "business"' in text
    assert "<1     bags    1" in text
    assert '>2     seat    "12A"' in text


def test_both_are_named_and_runs_of_one_model_by_their_repeats() -> None:
    left, right = record_with(flight(dear=False), "small"), record_with(flight(dear=True), "small", repeat=1)
    (line,) = header_lines(PairState(left, right), 100, stacked=False)
    assert plain(line).startswith("1 small #1 ")
    assert "│ 2 small #2 " in plain(line)


@pytest.mark.parametrize("stacked", [False, True])
def test_runs_of_two_batches_are_told_apart_by_these_however_little_room_there_is(*, stacked: bool) -> None:
    left, right = record_with(flight(dear=False), "small"), record_with(flight(dear=True), "small")
    state = PairState(left, right)
    state.batches = ("#3", "#14")
    said = "\n".join(plain(line) for line in header_lines(state, 60, stacked=stacked))
    assert "1 #3 small " in said
    assert "2 #14 small " in said


def test_what_is_copied_says_all_but_what_is_folded() -> None:
    copied = copied_pair(booked())
    assert copied.startswith("1 small  … waiting\n2 big  … waiting\nIn 2, round 4: calls book")
    assert "3 rounds alike" in copied
    assert DEAR.strip()[-20:] in copied.replace("\n     ", "")


@pytest.mark.slow
@pytest.mark.parametrize("stacked", first_of([False, True], 1))
def test_a_screen_of_a_long_comparison_costs_what_one_of_a_short_one_does(*, stacked: bool) -> None:
    def laid_out(rounds: int) -> int:
        left, right = record_with(flight(dear=False, rounds=rounds)), record_with(flight(dear=True, rounds=rounds))
        lines = PairLines(PairState(left, right), 100, stacked=stacked)
        lines.turn(1, False)
        lines.settle(lines.count // 2, 40)
        return lines.laid_out

    assert laid_out(2_000) <= laid_out(200)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(scripts(), scripts(), st.integers(24, 130), st.booleans())
def test_lines_are_never_wider_than_the_screen(
    left: list[Event], right: list[Event], width: int, stacked: bool
) -> None:
    records = [record_with(iter([event.payload for event in events])) for events in (left, right)]
    state = PairState(*records)
    lines = PairLines(state, width, stacked=stacked or width < TWO_COLUMNS_CELLS, whole=width % 2 == 0)
    for entry in range(len(state.entries)):
        if isinstance(state.entries[entry], Fold):
            lines.turn(entry, False)
        for line in lines.lay_out(entry):
            assert cells(line) <= width
            assert "\n" not in plain(line)


def test_a_run_that_goes_on_is_compared_as_far_as_it_is() -> None:
    *so_far, _ = flight(dear=False)
    state = PairState(record_with(flight(dear=False)), record_with(iter(so_far)))
    assert state.sentence == "In 2, round 5: is not over, while the other run ends (answered)"
