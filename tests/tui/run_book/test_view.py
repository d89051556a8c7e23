"""A run as items: its events in order, and the grade at its place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import result
from tests.trajectory.scripts import events_of, scripts, stamped
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Issue, RunResult
from workbench.grading.status import Status
from workbench.show.spans import cells, plain
from workbench.show.views.copied_text import copied_text
from workbench.show.views.run_grade import PlacedCall
from workbench.show.views.run_items import CallItem, MissingItem, OutcomeItem, ResultItem, RoundItem, TextItem
from workbench.show.views.run_view import RunView
from workbench.suite.expected_calls import ExpectedCall
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Deviation,
    Event,
    ExecutionProgress,
    ExecutionStarted,
    Message,
    Paused,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    TextDelta,
    TextWasReasoning,
    Usage,
)
from workbench.trajectory.fold import fold
from workbench.tui.trajectory.run_lines import RunLines

EVERYTHING = 1_000_000
"""More lines than any run here has."""


def view_of(events: list[Event]) -> RunView:
    view = RunView()
    for event in events:
        view.add(event)
    return view


def graded(*pairings: CallPairing, issues: tuple[Issue, ...] = (), score: float = 0.5) -> RunResult:
    return result(Status.FAILED, score, grade=Grade("critics", score, Status.FAILED, "", pairings, issues))


def screen_of(view: RunView, width: int = 60) -> str:
    lines = RunLines(view, width)
    lines.settle(0, EVERYTHING)
    return "\n".join(plain(lines.line(index)) for index in range(lines.count))


def two_calls() -> RunView:
    return view_of(events_of([("", 2), ("Done.", 0)]))


def ordered(*tools: str) -> list[PlacedCall]:
    return [(("ordered", index), ExpectedCall(tool=tool)) for index, tool in enumerate(tools)]


def unordered(*tools: str) -> list[PlacedCall]:
    return [(("unordered", index), ExpectedCall(tool=tool)) for index, tool in enumerate(tools)]


def pair(expected: int | None, call: int | None, *verdicts: ArgumentVerdict) -> CallPairing:
    return CallPairing(expected, call, True, 1.0, 1.0, verdicts)


@pytest.mark.slow
@given(scripts(), st.integers(1, 90), st.integers(1, 90), st.booleans())
def test_any_run_can_be_shown_at_any_width_at_any_moment(
    events: list[Event], width: int, other_width: int, expand: bool
) -> None:
    view = RunView()
    lines = RunLines(view, width)
    for number, event in enumerate(events):
        view.add(event)
        lines.sync()
        if expand and lines.count:
            item = lines.item_at(number % lines.count)
            assert item is not None
            lines.toggle(item)
    view.grade(result(Status.PASSED, 1.0))
    lines.sync()
    lines.settle(0, EVERYTHING)
    fresh = RunLines(view, width)
    fresh.settle(0, EVERYTHING)
    if expand:
        fresh = lines
    assert [fresh.line(index) for index in range(fresh.count)] == [lines.line(index) for index in range(lines.count)]
    lines.resize(other_width)
    lines.settle(0, EVERYTHING)
    for index in range(lines.count):
        assert cells(lines.line(index)) <= max(other_width, 24)
        item = lines.item_at(index)
        assert item is not None
        assert lines.start_of(item) <= index < lines.start_of(item + 1)
        copied_text(view.items[item])


@pytest.mark.slow
@given(scripts(), st.randoms(use_true_random=False))
def test_events_that_do_not_fit_are_left_out_without_failing(events: list[Event], random: object) -> None:
    random.shuffle(events)  # type: ignore[attr-defined]
    view = view_of(events)
    view.grade(result(Status.FAILED, 0.0))
    assert isinstance(view.items[-1], OutcomeItem) or any(isinstance(item, OutcomeItem) for item in view.items)


@given(scripts())
def test_calls_stand_in_the_order_of_the_trajectory(events: list[Event]) -> None:
    view = view_of(events)
    shown = [item.call_id for item in view.items if isinstance(item, CallItem)]
    assert shown == [record.call.id for record in fold(events).calls]


def test_text_that_streams_in_is_one_item_until_something_else_comes() -> None:
    view = view_of(
        stamped(
            [
                RunStarted("h", "c", "C", "m", None, (Message("user", "Hi"),), ()),
                RequestStarted(1),
                TextDelta(1, "Hello, "),
                TextDelta(1, "you."),
                CallStarted(1, "a", "t"),
                TextDelta(1, "And more."),
            ]
        )
    )
    texts = [item.text.text for item in view.items if isinstance(item, TextItem)]
    assert texts == ["Hello, you.", "And more."]


def test_text_that_was_reasoning_is_shown_as_such_and_repairs_stand_at_the_request() -> None:
    view = view_of(
        stamped(
            [
                RunStarted("h", "c", "C", "m", None, (Message("user", "Hi"),), ()),
                RequestStarted(1),
                TextDelta(1, "Hm."),
                TextWasReasoning(1),
                TextDelta(1, "Hello."),
                ResponseFinished(1, "answered", None, None, 5.0, deviations=(Deviation("kind", "so it was"),)),
            ]
        )
    )
    texts = [(item.text.text, item.reasoning) for item in view.items if isinstance(item, TextItem)]
    assert texts == [("Hm.", True), ("Hello.", False)]
    assert "repaired: so it was" in screen_of(view)


def test_a_request_that_is_tried_again_is_one_step_with_its_error() -> None:
    view = view_of(
        stamped(
            [
                RunStarted("h", "c", "C", "m", None, (), ()),
                RequestStarted(1),
                RequestFailed(1, "503"),
                RequestStarted(1),
                ResponseFinished(1, "answered", Usage(1, 1), None, 5.0),
            ]
        )
    )
    (asked,) = [item for item in view.items if isinstance(item, RoundItem)]
    assert asked.errors == ["503"]
    assert asked.response is not None


def retried() -> list[Event]:
    return stamped(
        [
            RunStarted("h", "c", "C", "m", None, (), (), notices=("seed is not sent",)),
            RequestStarted(1),
            TextDelta(1, "Half a tho"),
            CallStarted(1, "a", "void"),
            CallArgumentsDelta("a", '{"x"'),
            RequestFailed(1, "cut off"),
            RetryScheduled(1, 2, 1_500.0, "cut off"),
            RequestStarted(1),
            CallStarted(1, "a", "real"),
            CallFinished("a", {"x": 1}),
            ResponseFinished(1, "tool calls", Usage(9, 5, 4, 3), 1.0, 5.0),
            Paused("may real be executed?", "a"),
            Resumed(2_000.0),
            ExecutionStarted("a", "home"),
            ExecutionProgress("a", 1.0, 4.0, "reading"),
            ResultReceived("a", "done", False, "server", 7.0),
            RunFinished("answered"),
        ]
    )


def test_what_a_failed_attempt_said_is_void_and_why_it_failed_stays() -> None:
    events = retried()
    view = view_of(events[:7])
    lines = RunLines(view, 60)
    said = screen_of(view)
    assert "! seed is not sent" in said
    assert "↻ retry 2 in 1.5 s" in said
    assert "→ void" in said
    for event in events[7:]:
        view.add(event)
        lines.sync()
    said = screen_of(view)
    assert [plain(lines.line(index)) for index in range(lines.count)] == said.split("\n")
    assert "void" not in said and "Half" not in said and "retry" not in said
    assert "! cut off" in said
    assert "9 in (4 cached), 5 out (3 reasoning)" in said
    assert "← server · 7 ms · held 2.0 s  done" in said
    assert [item.call_id for item in view.items if isinstance(item, CallItem)] == ["a"]


def test_a_retry_says_until_when_it_waits() -> None:
    began = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    view = RunView()
    view.began = began
    view.add(Event("run", 0, 0.0, RequestStarted(1)))
    assert "waiting for the model …" in screen_of(view)
    view.add(Event("run", 1, 10_000.0, RequestFailed(1, "busy")))
    view.add(Event("run", 2, 10_000.0, RetryScheduled(1, 2, 60_000.0, "busy")))
    at = (began + timedelta(seconds=70)).astimezone()
    assert f"↻ retry 2 at {at:%H:%M:%S} (in 60.0 s)" in screen_of(view)
    view.add(Event("run", 3, 70_000.0, RequestStarted(1)))
    assert "waiting for the model …" in screen_of(view)
    view.add(Event("run", 4, 70_001.0, TextDelta(1, "Hi")))
    assert "answering …" in screen_of(view)


def test_what_is_expanded_above_a_retry_stays_so() -> None:
    events = retried()
    start = RunStarted("h", "c", "C", "m", "Be brief. " * 40, (), ())
    view = view_of([Event("run", 0, 0.0, start), *events[1:7]])
    lines = RunLines(view, 60)
    lines.toggle(0)
    height = lines.start_of(1)
    view.add(events[7])
    assert lines.sync()
    assert lines.start_of(1) == height > 5


@pytest.mark.parametrize(
    ("seen", "said"),
    [(12, "‖ asks: may real be executed?"), (14, "… executing"), (15, "… 1 of 4  reading")],
)
def test_the_place_of_a_result_says_what_it_waits_for(seen: int, said: str) -> None:
    assert said in screen_of(view_of(retried()[:seen]))


def test_a_run_that_ends_while_it_is_held_asks_no_more() -> None:
    view = view_of([*retried()[:12], Event("run", 12, 12.0, RunFinished("stopped"))])
    assert "asks" not in screen_of(view)


def test_a_result_stands_under_its_own_call() -> None:
    view = two_calls()
    kinds = [type(item) for item in view.items if isinstance(item, CallItem | ResultItem)]
    assert kinds == [CallItem, ResultItem, CallItem, ResultItem]


def test_verdicts_and_issues_stand_at_the_call_they_are_about() -> None:
    view = two_calls()
    verdict = ArgumentVerdict("n", False, 0.0, 1.0, "5..40", 60, True, "too much")
    about_second = Issue("extra call", "nobody asked", call=1)
    view.grade(graded(pair(0, 0, verdict), issues=(about_second,)))
    first, second = [item for item in view.items if isinstance(item, CallItem)]
    assert (first.verdicts, first.issues) == ((verdict,), ())
    assert (second.verdicts, second.issues) == ((), (about_second,))


def placed(view: RunView) -> list[str]:
    """Return the displayed calls, and the tools of the displayed missing calls."""
    calls = [item for item in view.items if isinstance(item, CallItem | MissingItem)]
    return [item.tool if isinstance(item, MissingItem) else "call" for item in calls]


def test_a_missing_call_of_a_sequence_stands_before_the_call_that_was_to_follow_it() -> None:
    view = view_of(events_of([("", 3), ("Done.", 0)]))
    view.grade(graded(pair(0, 0), pair(1, None), pair(2, 2)), ordered("t", "b", "t"))
    assert placed(view) == ["call", "call", "b", "call"]


def test_a_missing_call_of_no_sequence_stands_behind_all_calls() -> None:
    view = view_of(events_of([("", 2), ("Done.", 0)]))
    view.grade(graded(pair(0, None), pair(1, 0)), unordered("b", "t"))
    assert placed(view) == ["call", "call", "b"]


def test_a_missing_call_of_a_group_stands_behind_the_others_of_the_group() -> None:
    view = view_of(events_of([("", 2), ("Done.", 0)]))
    group: list[PlacedCall] = [
        (("ordered", 0, "any_order", number), ExpectedCall(tool=tool)) for number, tool in enumerate(("b", "t"))
    ]
    view.grade(graded(pair(0, None), pair(1, 0)), group)
    assert placed(view) == ["call", "b", "call"]


def test_missing_calls_stand_in_sequence_among_those_that_were_made() -> None:
    view = two_calls()
    view.grade(
        graded(
            pair(0, 0),
            pair(1, None),
            pair(2, None),
            pair(3, 1),
            pair(4, None),
            issues=(Issue("missing call", "never called", expected_call=1),),
        ),
        ordered("t", "b", "c", "t", "e"),
    )
    assert placed(view) == ["call", "b", "c", "call", "e"]


def test_a_missing_call_before_all_others_stands_before_them() -> None:
    view = two_calls()
    view.grade(graded(pair(0, None), pair(1, 0)), ordered("a", "t"))
    shown = [type(item) for item in view.items if isinstance(item, CallItem | MissingItem)]
    assert shown == [MissingItem, CallItem, CallItem]


def test_missing_calls_of_a_run_without_calls_stand_before_its_outcome() -> None:
    view = view_of(events_of([("No.", 0)]))
    view.grade(graded(pair(0, None), pair(1, None)), ordered("a", "b"))
    tools = [item.tool for item in view.items[-3:-1] if isinstance(item, MissingItem)]
    assert tools == ["a", "b"]
    assert isinstance(view.items[-1], OutcomeItem)


def test_issues_that_belong_to_no_call_stand_at_the_end() -> None:
    view = two_calls()
    late = Issue("latency exceeded", "took 20 s")
    view.grade(graded(pair(0, 0), issues=(late, Issue("missing call", "gone", expected_call=1))), ordered("t", "u"))
    outcome = view.items[-1]
    assert isinstance(outcome, OutcomeItem)
    assert outcome.issues == (late,)


def test_the_same_grade_again_leaves_every_item_where_it_is() -> None:
    view = two_calls()
    view.grade(graded(pair(0, 0), pair(1, None)), ordered("t", "u"))
    before = [id(item) for item in view.items]
    view.take_changes()
    view.grade(graded(pair(0, 0), pair(1, None)), ordered("t", "u"))
    assert [id(item) for item in view.items] == before
    assert view.take_changes()[0] is False


def test_another_grade_takes_its_missing_calls_out_and_puts_others_in() -> None:
    view = two_calls()
    before = len(view.items)
    view.grade(graded(pair(0, None), pair(1, None)), ordered("a", "b"))
    view.grade(graded(pair(0, 0), pair(1, None)), ordered("t", "c"), result(Status.PASSED, 1.0))
    assert [item.tool for item in view.items if isinstance(item, MissingItem)] == ["c"]
    view.grade(graded(pair(0, 0)), ordered("t"))
    fresh = two_calls()
    fresh.grade(graded(pair(0, 0)), ordered("t"))
    assert [type(item) for item in view.items] == [type(item) for item in fresh.items]
    assert len(view.items) == len(fresh.items) >= before
    outcome = view.items[-1]
    assert isinstance(outcome, OutcomeItem)
    assert outcome.former is None


def test_changes_are_told_once() -> None:
    view = two_calls()
    assert view.take_changes()[1]
    assert view.take_changes() == (False, [])


def test_arguments_are_aligned_each_with_its_verdict() -> None:
    view = view_of(
        stamped(
            [
                RunStarted("h", "c", "C", "m", None, (Message("user", "Go"),), ()),
                RequestStarted(1),
                CallStarted(1, "a", "set_lights"),
                CallFinished("a", {"room": "living room", "brightness": 60}),
            ]
        )
    )
    view.grade(
        graded(
            pair(
                0,
                0,
                ArgumentVerdict("room", True, 0.5, 0.5, '"living room"', "living room", True, "equal"),
                ArgumentVerdict("brightness", False, 0.0, 0.5, "5..40", 60, True, "outside"),
                ArgumentVerdict("colour", False, 0.0, 0.5, '"warm"', None, False, "missing"),
            )
        )
    )
    assert screen_of(view, 60).splitlines()[2:6] == [
        "   → set_lights",
        '      room        "living room"  ✓',
        "      brightness  60             ✗ expected 5..40",
        '      colour      not given      ✗ expected "warm"',
    ]


def test_an_argument_that_holds_but_earns_less_is_no_plain_yes() -> None:
    view = view_of(stamped([RequestStarted(1), CallStarted(1, "a", "t"), CallFinished("a", {"n": 19})]))
    verdict = ArgumentVerdict("n", True, 0.25, 0.5, "near 21", 19, True, "close")
    issue = Issue("partial credit", "holds, but earns 0.25 of 0.50", call=0, argument="n")
    view.grade(graded(pair(0, 0, verdict), issues=(issue,)))
    assert screen_of(view, 60).splitlines()[2] == "      n  19      ! 50% expected near 21"


def test_an_argument_that_does_not_hold_shows_the_part_that_it_earned_and_the_run_why_it_passed() -> None:
    view = view_of(
        stamped([RequestStarted(1), CallStarted(1, "a", "t"), CallFinished("a", {"n": 27}), RunFinished("answered")])
    )
    verdict = ArgumentVerdict("n", False, 0.35, 0.5, "near 21", 27, True, "far")
    issue = Issue("wrong argument", "far; earns 70% of its weight", call=0, argument="n")
    grade = Grade("critics", 0.85, Status.WARNED, "", (pair(0, 0, verdict),), (issue,))
    view.grade(result(Status.WARNED, 0.85, grade=grade))
    lines = screen_of(view, 80).splitlines()
    assert lines[2] == "      n  27      ✗ 70% expected near 21"
    assert "   warned: score 0.85 meets the threshold 0.8, not 0.9" in lines


def test_where_it_is_narrow_the_expectation_moves_below() -> None:
    view = view_of(stamped([RequestStarted(1), CallStarted(1, "a", "t"), CallFinished("a", {"city": "Paris"})]))
    verdict = ArgumentVerdict("city", False, 0.0, 1.0, 'similar to "The city of light"', "Paris", True, "no")
    view.grade(graded(pair(0, 0, verdict)))
    assert screen_of(view, 36).splitlines()[2:5] == [
        '      city  "Paris"',
        "            ✗ expected similar to",
        '              "The city of light"',
    ]


def test_arguments_that_are_still_coming_in_are_shown_as_they_are() -> None:
    view = view_of(stamped([RequestStarted(1), CallStarted(1, "a", "t"), CallArgumentsDelta("a", '{"city": "Par')]))
    assert '{"city": "Par' in screen_of(view)


def test_broken_arguments_say_why_and_show_what_came() -> None:
    view = view_of(
        stamped([RequestStarted(1), CallStarted(1, "a", "t"), CallFinished("a", {}, '{"city":', "it ends too early")])
    )
    shown = screen_of(view)
    assert "✗ it ends too early" in shown
    assert '{"city":' in shown


def test_an_infrastructure_error_is_told_in_plain_words_and_blames_no_model() -> None:
    view = view_of(
        stamped([RunStarted("h", "c", "C", "m", None, (), ()), RequestStarted(1), RunFinished("error", "no route")])
    )
    view.grade(result(Status.ERROR, error="no route to host"))
    shown = screen_of(view)
    assert "▲ error" in shown
    assert "no route to host" in shown
    assert "not the model's fault" in shown
