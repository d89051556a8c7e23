"""The cost of displaying a long run, and searching in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import result
from tests.strategies import json_values
from tests.trajectory.scripts import events_of, stamped
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Issue, RunResult
from workbench.grading.status import Status
from workbench.show.lazy_lines import JsonLines, texts_of
from workbench.show.spans import Line, cells, plain
from workbench.show.views.run_view import RunView
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    JsonValue,
    Message,
    RequestStarted,
    ResultReceived,
    RunStarted,
    TextDelta,
)
from workbench.tui.trajectory.run_lines import RunLines

SCREEN_ROWS = 40


def long_run(rounds: int) -> RunView:
    view = RunView()
    for event in events_of([("A few words.", 1)] * rounds)[:-1]:
        view.add(event)
    return view


def run_with(arguments: dict[str, JsonValue], result: str = "ok") -> RunView:
    view = RunView()
    happenings: list[EventPayload] = [
        RunStarted("h", "c", "C", "m", None, (Message("user", "Go."),), ()),
        RequestStarted(1),
        CallStarted(1, "c", "look_up"),
        CallFinished("c", arguments),
        ResultReceived("c", result, False, "default", 1.0),
    ]
    for event in stamped(happenings):
        view.add(event)
    return view


def screen(lines: RunLines, top: int) -> list[str]:
    """A screen of lines, as the pane draws it."""
    top = lines.settle(top, 2 * SCREEN_ROWS)
    return [plain(lines.line(index)) for index in range(top, top + SCREEN_ROWS)]


def cost_of_a_frame(lines: RunLines, view: RunView, number: int) -> int:
    """Items laid out for one more piece of streamed text and a screen drawn at the end."""
    before = lines.laid_out
    view.add(Event("run", number, float(number), TextDelta(9_999_999, "more ")))
    lines.sync()
    screen(lines, lines.count - SCREEN_ROWS)
    return lines.laid_out - before


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [250, 2_500])
def test_a_frame_lays_out_only_what_changed(rounds: int) -> None:
    view = long_run(rounds)
    lines = RunLines(view, 80)
    view.add(Event("run", 0, 0.0, RequestStarted(9_999_999)))
    cost_of_a_frame(lines, view, 1)
    assert [cost_of_a_frame(lines, view, number) for number in range(2, 12)] == [1] * 10


@pytest.mark.parametrize("rounds", [250, 2_500])
def test_opening_jumping_and_resizing_lay_out_no_more_than_some_screens(rounds: int) -> None:
    lines = RunLines(long_run(rounds), 80)
    assert lines.laid_out == 0
    for top in (0, lines.count // 2, lines.count - SCREEN_ROWS):
        before = lines.laid_out
        screen(lines, top)
        lines.resize(lines.width + 1)
        screen(lines, top)
        assert lines.laid_out - before <= 2 * 5 * SCREEN_ROWS


def test_a_line_is_the_same_whatever_is_laid_out_above_it() -> None:
    view = RunView()
    for event in events_of([("word\n" * 7, 1)] * 60)[:-1]:
        view.add(event)
    lines = RunLines(view, 50)
    index = lines.settle(lines.count // 2, 10)
    shown = lines.line(index)
    place = lines.place_of(index)
    lines.settle(lines.count - 1, 1_000_000)
    assert lines.index_of(place, 0) != index
    assert lines.line(lines.index_of(place, 0)) == shown


def test_expanding_moves_what_is_below() -> None:
    view = RunView()
    view.add(Event("run", 0, 0.0, RunStarted("h", "c", "C", "m", "Be brief. " * 40, (Message("user", "Go."),), ())))
    lines = RunLines(view, 60)
    assert (lines.count, lines.start_of(1)) == (2, 1)
    lines.toggle(0)
    assert lines.start_of(1) > 5
    assert lines.item_at(lines.start_of(1)) == 1
    lines.toggle(0)
    assert (lines.count, lines.start_of(1)) == (2, 1)


def test_what_is_expanded_stays_so_when_the_grade_comes() -> None:
    view = run_with({"rows": list(range(100))})
    lines = RunLines(view, 60)
    lines.toggle(2)
    expanded = lines.settle(0, 10_000)
    assert lines.count > 100
    view.grade(_failed_with_missing())
    lines.sync()
    lines.settle(expanded, 10_000)
    assert lines.count > 100


def _failed_with_missing() -> RunResult:
    grade = Grade("critics", 0.0, Status.FAILED, "", (CallPairing(0, None, False, 0.0, 1.0),))
    return result(Status.FAILED, 0.0, grade=grade)


def test_a_megabyte_is_expanded_whole_and_coloured_only_where_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": number, "name": f"name {number}"} for number in range(30_000)]
    painted: list[int] = []
    made = JsonLines.line

    def counted(self: JsonLines, index: int) -> Line:
        painted.append(index)
        return made(self, index)

    monkeypatch.setattr(JsonLines, "line", counted)
    lines = RunLines(run_with({}, json.dumps(rows)), 80)
    lines.settle(0, 100)
    assert lines.count < 20
    lines.toggle(3)
    assert lines.count > 100_000
    last = screen(lines, lines.count - SCREEN_ROWS)
    assert '"name": "name 29999"' in "\n".join(last)
    assert len(painted) <= SCREEN_ROWS


@given(json_values, st.integers(1, 60), st.integers(0, 6))
def test_any_value_is_shown_whole_at_any_width(value: JsonValue, width: int, indent: int) -> None:
    lines = JsonLines(value, width, indent)
    shown = [plain(line) for line in lines]
    assert shown == list(texts_of(lines))
    assert all(cells(line) <= max(width, 8 + indent) for line in lines)


# Searching


def found(lines: RunLines, text: str, *steps: int) -> list[tuple[int | None, str]]:
    """Return the matches visited by the steps: each with its line number and text."""
    lines.search(text)
    gone = []
    for step in steps:
        line = lines.go_to_match(step, 0)
        assert line is not None
        gone.append((lines.match, plain(lines.line(line)).strip()))
    return gone


def test_matches_are_gone_through_in_order_and_around_the_end() -> None:
    lines = RunLines(run_with({"city": "Paris"}, "Paris, or PARIS?"), 60)
    gone = found(lines, "paris", 1, 1, 1, 1, -1)
    assert lines.matches == 3
    assert [number for number, _ in gone] == [0, 1, 2, 0, 2]
    assert gone[0][1] == 'city  "Paris"'


def test_what_is_folded_is_found_and_unfolded() -> None:
    lines = RunLines(run_with({"rows": list(range(500)), "last": "needle " * 3}), 60)
    ((_, line),) = found(lines, "499", 1)
    assert line == "499"


def test_a_match_that_goes_over_two_rows_is_found_and_marked_in_both() -> None:
    lines = RunLines(
        run_with({"text": "The light in the living room, the small lamp and all others are switched off"}), 36
    )
    lines.search("living room, the small lamp")
    line = lines.go_to_match(1, 0)
    assert line is not None
    marked = [span.text for at in (line, line + 1) for span in lines.line(at) if span.role == "badge"]
    assert " ".join(text.strip() for text in marked) == "living room, the small lamp"


def test_the_other_matches_are_marked_too() -> None:
    lines = RunLines(run_with({"city": "Paris"}, "Paris"), 60)
    lines.search("paris")
    assert [span.text for index in range(lines.count) for span in lines.line(index) if span.role == "match"] == [
        "Paris",
        "Paris",
    ]


def test_what_comes_while_one_searches_is_counted() -> None:
    view = long_run(3)
    lines = RunLines(view, 60)
    lines.search("words")
    assert lines.matches == 3
    view.add(Event("run", 0, 0.0, RequestStarted(9)))
    view.add(Event("run", 1, 0.0, TextDelta(9, "Words, words.")))
    lines.sync()
    assert lines.matches == 5


@given(st.text(max_size=6), json_values)
def test_any_text_can_be_searched_for(text: str, value: JsonValue) -> None:
    lines = RunLines(run_with({"value": value}), 30)
    for end in range(len(text)):
        lines.search(text[:end])
    lines.search(text)
    at_once = RunLines(run_with({"value": value}), 30)
    at_once.search(text)
    assert lines.matches == at_once.matches
    for step in (1, 1, -1):
        line = lines.go_to_match(step, 0)
        assert (line is None) == (lines.matches == 0)
    screen(lines, 0)


def test_what_a_schema_refuses_is_marked_at_the_argument_with_path_and_rule() -> None:
    why = "the tool's schema refuses it (maximum): 500 is greater than the maximum of 100"
    issues = (
        Issue("schema violation", why, "look_up", 0, argument="level", got="500", decides=True),
        Issue("schema violation", "it refuses (type): 5 is no text", "look_up", 0, argument="to[0].name", decides=True),
        Issue("tool error", "the tool answered: no", "look_up", 0),
    )
    right = ArgumentVerdict("level", True, 1.0, 1.0, "any value", 500, True, "")
    grade = Grade("critics", 1.0, Status.PASSED, "", (CallPairing(0, 0, True, 1.0, 1.0, (right,)),), issues)
    view = run_with({"level": 500, "to": [{"name": 5}]})
    view.grade(result(Status.FAILED, 1.0, grade=grade))
    rows = [row.strip() for row in screen(RunLines(view, 200), 0)]
    assert any(row.startswith("level") and row.endswith("✗ refused by the schema") for row in rows), rows
    assert f"✗ schema violation: level: got 500 ({why})" in rows
    assert "✗ schema violation: to[0].name (it refuses (type): 5 is no text)" in rows
    assert any("tool error (the tool answered: no)" in row for row in rows)
