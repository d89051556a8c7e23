"""The display of a stepped run: its hold, its edits, and what was set aside."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.results import result
from tests.tables import each_row
from tests.trajectory.scripts import scripts, stamped
from tests.tui.run_book.shown_runs import (
    ASKED,
    CHANGED,
    EVERYTHING,
    START,
    WRITTEN,
    answered,
    called,
    lines_with,
    received,
    screen_of,
    shown_by,
    view_of,
)
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Issue
from workbench.grading.status import Status
from workbench.show.views.copied_text import copied_text
from workbench.show.views.run_items import CallItem, ResultItem, RoundItem, SupersededItem
from workbench.show.views.run_view import RunPlace, RunView
from workbench.trajectory.events import (
    CallEdited,
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    MessageAdded,
    Paused,
    Regenerated,
    RequestStarted,
    ResultEdited,
    ResultReceived,
    Resumed,
    RunFinished,
    TextDelta,
)
from workbench.trajectory.fold import fold
from workbench.tui.trajectory.run_lines import RunLines


@pytest.mark.slow
@given(scripts())
def test_a_run_looks_the_same_whether_it_was_watched_or_is_shown_at_once(events: list[Event]) -> None:
    watched = RunView()
    lines = RunLines(watched, 60)
    for event in events:
        watched.add(event)
        lines.sync()
    whole = RunView()
    for event in events:
        whole.add(event)
    assert shown_by(lines) == screen_of(whole)


@pytest.mark.slow
@given(scripts())
def test_every_place_of_a_run_is_that_of_its_trajectory(events: list[Event]) -> None:
    view = RunView()
    for event in events:
        view.add(event)
    trajectory = fold(events)
    rounds = {round_.number: round_ for round_ in trajectory.rounds}
    for index, item in enumerate(view.items):
        place = view.place(index)
        if isinstance(item, CallItem | ResultItem):
            assert place is not None
            assert place.call_index is not None
            assert place.answered is not None
            record = trajectory.calls[place.call_index]
            assert (record.call.id, record.round) == (place.call_id, place.round)
            assert place.after_result == (isinstance(item, ResultItem) and item.result is not None)
            assert rounds[place.round].calls[place.answered - place.after_result].call.id == place.call_id
        elif isinstance(item, RoundItem):
            step = rounds[item.round].step
            assert place == RunPlace(item.round, step=step.step if step is not None else None)


# Held


def test_a_run_held_before_a_request_says_so_below_what_was_said_before_it() -> None:
    view = view_of(START, Paused("step by step", None, "request", 1), MessageAdded("Now!"))
    assert screen_of(view)[-4:] == [
        " 2 user   ✎ added by hand",
        "          Now!",
        " ‖ held before the request of round 1 · step by step",
        "   s next stop  c continue",
    ]
    assert view.held_index == len(view.items) - 1
    assert view.place(view.held_index) == RunPlace(1)


def test_a_run_held_before_a_call_says_so_above_the_call() -> None:
    view = view_of(*ASKED, Paused("breakpoint: tool set_lights", "a", "call", 1))
    lines = RunLines(view, 100)
    said = shown_by(lines)
    assert lines.held_line is not None
    assert said[lines.held_line] == " ‖ held before set_lights · breakpoint: tool set_lights · s next stop  c continue"
    assert said[lines.held_line + 1] == "   → set_lights"


def test_a_run_held_after_a_result_says_so_below_the_result() -> None:
    view = view_of(*ASKED, received(), Paused("step by step", "a", "result", 1))
    lines = RunLines(view, 90)
    said = shown_by(lines)
    assert lines.held_line is not None
    assert said[lines.held_line - 1] == "   ← suite mock · 12 ms  ok"
    assert said[lines.held_line] == " ‖ held after the result of set_lights · step by step · s next stop  c continue"


@pytest.mark.parametrize("width", [24, 40, 51, 90])
def test_the_mark_of_a_held_run_takes_the_whole_width(width: int) -> None:
    lines = RunLines(view_of(*ASKED, Paused("step by step", "a", "call", 1)), width)
    lines.settle(0, EVERYTHING)
    assert lines.held_line is not None
    (mark,) = lines.line(lines.held_line)
    assert (mark.role, len(mark.text)) == ("badge", width)


@pytest.mark.parametrize(("at", "call_id"), [("request", None), ("call", "a"), ("result", "a")])
def test_a_run_that_goes_on_bears_no_trace_of_where_it_was_held(at: str, call_id: str | None) -> None:
    before = [*ASKED, *([received()] if at == "result" else [])]
    held = Paused("step by step", call_id, at, 1)  # type: ignore[arg-type]
    view = view_of(*before, held, Resumed(12_000.0))
    assert screen_of(view) == screen_of(view_of(*before))
    assert view.held_index is None


def test_a_run_that_ends_while_it_is_held_is_not_held_any_more() -> None:
    view = view_of(*ASKED, Paused("step by step", "a", "call", 1), RunFinished("stopped"))
    assert not lines_with(view, "held")


# Edited


def test_arguments_as_edited_stand_beside_what_the_model_wrote() -> None:
    view = view_of(*ASKED, CallEdited("a", CHANGED, WRITTEN))
    assert screen_of(view)[-5:] == [
        "   → set_lights  ✎ edited",
        '      room        "hall"',
        "      brightness  60         ✎ sent 20",
        "      speed       2          ✎ not sent",
        '      scene       not given  ✎ sent "movie"',
    ]


def test_the_verdicts_on_an_edited_call_are_about_what_the_model_wrote() -> None:
    view = view_of(*ASKED, CallEdited("a", CHANGED, WRITTEN), received(), RunFinished("answered"))
    verdict = ArgumentVerdict("brightness", False, 0.0, 1.0, "5..40", 60, True, "too bright")
    grade = Grade("critics", 0.5, Status.FAILED, "", (CallPairing(0, 0, True, 1.0, 1.0, (verdict,)),))
    view.grade(result(Status.FAILED, 0.5, grade=grade))
    assert lines_with(view, "brightness") == ["      brightness  60         ✗ expected 5..40  ✎ sent 20"]


def test_arguments_edited_twice_are_shown_as_they_are_now() -> None:
    view = view_of(*ASKED, CallEdited("a", CHANGED, WRITTEN), CallEdited("a", {"brightness": 30}, WRITTEN))
    assert "      brightness  60      ✎ sent 30" in screen_of(view)
    assert not lines_with(view, "movie")


def test_broken_arguments_put_right_stand_below_what_the_model_wrote() -> None:
    broken: list[EventPayload] = [CallStarted(1, "a", "set_lights"), CallFinished("a", {}, '{"room"', "not JSON")]
    view = view_of(START, RequestStarted(1), *broken, answered(), CallEdited("a", {"room": "hall"}, {}))
    assert screen_of(view)[-4:] == [
        *("      ✗ not JSON", '      {"room"', "      ✎ sent instead:", '      room  "hall"'),
    ]


def test_a_long_original_is_shown_whole_once_it_is_expanded() -> None:
    view = view_of(
        START, RequestStarted(1), *called(text="word " * 40), CallEdited("a", {"text": "short"}, {"text": "word " * 40})
    )
    assert not lines_with(view, "word word word word word word word word word word word")
    assert "".join(screen_of(view, expanded=True)).count("word") >= 40


def test_an_edited_result_has_the_original_below_it_once_it_is_expanded() -> None:
    view = view_of(*ASKED, received(content="rain"), ResultEdited("a", "sun", True, "rain", False))
    assert screen_of(view, 80)[-1] == "   ← suite mock · 12 ms  error  ✎ edited, Enter: original  sun"
    assert screen_of(view, expanded=True)[-4:] == [
        "   ← suite mock · 12 ms  error  ✎ edited",
        "      sun",
        "   ✎ it was, no error",
        "      rain",
    ]


def test_a_result_edited_twice_keeps_what_the_tool_said() -> None:
    edits = [ResultEdited("a", "sun", False, "rain", False), ResultEdited("a", "snow", False, "sun", False)]
    said = screen_of(view_of(*ASKED, received(content="rain"), *edits), expanded=True)
    assert [line.strip() for line in said[-4:]] == ["← suite mock · 12 ms  ✎ edited", "snow", "✎ it was", "rain"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("edited", "✎ answered by hand"),
        ("skipped", "✎ skipped by hand"),
        ("replayed", "replayed"),
        ("reported", "reported"),
    ],
)
def test_what_took_no_time_of_its_own_says_none(source: str, said: str) -> None:
    view = view_of(*ASKED, ResultReceived("a", "no", False, source, 12.0))  # type: ignore[arg-type]
    assert screen_of(view)[-1] == f"   ← {said}  no"


def test_an_edited_call_and_result_are_copied_with_what_they_were() -> None:
    view = view_of(
        *ASKED,
        CallEdited("a", {"n": 1}, WRITTEN),
        received(content="rain"),
        ResultEdited("a", "sun", False, "rain", False),
    )
    call, answer = view.items[-2:]
    written = '{"room": "hall", "brightness": 60, "speed": 2}'
    assert copied_text(call) == (
        f'set_lights {written}\nedited: set_lights {{"n": 1}}',
        "the call as written and as edited",
    )
    assert copied_text(answer) == ("sun\nit was: rain", "the result as edited and as it was")


@each_row("text", ["movie", "rain", "sun", "60", "old thoughts", "step by step"])
def test_what_was_changed_and_what_it_was_are_both_found(text: str) -> None:
    view = view_of(
        START,
        RequestStarted(1),
        TextDelta(1, "old thoughts"),
        answered(),
        Regenerated(1),
        RequestStarted(1),
        *called(),
        answered(),
        CallEdited("a", CHANGED, WRITTEN),
        received(content="rain"),
        ResultEdited("a", "sun", False, "rain", False),
        Paused("step by step", None, "request", 2),
    )
    lines = RunLines(view, 60)
    lines.search(text)
    assert lines.matches == 1


# Set aside


def asked_again(*said: EventPayload) -> list[EventPayload]:
    first = [START, RequestStarted(1), *called(room="attic"), answered(), *said, Regenerated(1)]
    return [*first, RequestStarted(1), *called(room="hall"), answered(), received()]


def test_an_answer_set_aside_is_one_line_that_unfolds_and_the_new_one_follows() -> None:
    view = view_of(*asked_again())
    assert screen_of(view)[3:] == [
        ' 2 model  ↻ superseded: called set_lights(room="attic")',
        " 3 model  5 ms",
        "   → set_lights",
        '      room  "hall"',
        "   ← suite mock · 12 ms  ok",
    ]
    assert screen_of(view, expanded=True)[4:7] == [
        " 2 model  ↻ superseded  5 ms",
        "   → set_lights",
        '      room  "attic"',
    ]


def test_what_is_said_of_the_same_call_ids_coming_again_is_about_the_new_calls() -> None:
    view = view_of(*asked_again(received(content="gone")), RunFinished("answered"))
    issue = Issue("extra call", "nobody asked", call=0)
    view.grade(result(Status.FAILED, 0.5, grade=Grade("critics", 0.5, Status.FAILED, "", (), (issue,))))
    (call,) = [item for item in view.items if isinstance(item, CallItem)]
    (answer,) = [item for item in view.items if isinstance(item, ResultItem)]
    assert (call.arguments, call.index, call.issues) == ({"room": "hall"}, 0, (issue,))
    assert answer.result is not None
    assert answer.result.content == "ok"
    (aside,) = [item for item in view.items if isinstance(item, SupersededItem)]
    assert all(not item.issues for item in aside.items if isinstance(item, CallItem))


def test_what_was_said_to_the_model_before_an_answer_was_set_aside_stands_before_the_next_one() -> None:
    view = view_of(*asked_again(Paused("step by step", "a", "call", 1), MessageAdded("Try again."), Resumed(1.0)))
    said = screen_of(view)
    assert [line[:8].strip() for line in said[3:7]] == ["2 model", "3 user", "", "4 model"]


def test_what_is_expanded_above_stays_so_when_an_answer_is_set_aside() -> None:
    happenings = asked_again()
    view = RunView()
    lines = RunLines(view, 60)
    for event in stamped(happenings):
        if isinstance(event.payload, Regenerated):
            lines.toggle(1)
        view.add(event)
        lines.sync()
    assert shown_by(lines)[1:3] == ["   tools  1 offered", "          set_lights"]
