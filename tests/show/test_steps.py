"""The steps of a run as lines, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.trajectory.scripts import stamped
from workbench.show.text import Paint
from workbench.show.views.trajectory import StepLines, changes_by_hand
from workbench.show.views.values import content_text
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallEdited,
    CallFinished,
    CallStarted,
    EventPayload,
    ExecutionProgress,
    ExecutionStarted,
    Forked,
    MessageAdded,
    Paused,
    ReasoningDelta,
    Regenerated,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    ResultSource,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    StepStarted,
    TextDelta,
)
from workbench.trajectory.fold import fold

RUN: list[EventPayload] = [
    RequestStarted(1),
    ReasoningDelta(1, "get_weather fits"),
    TextDelta(1, "Let me "),
    TextDelta(1, "look."),
    CallStarted(1, "a", "get_weather"),
    CallArgumentsDelta("a", '{"city": "Oslo"}'),
    CallFinished("a", {"city": "Oslo"}),
    CallStarted(1, "b", "send"),
    CallFinished("b", {}, '{"to": ', "it ends too early"),
    ResponseFinished(1, "tool calls", None, 1.0, 12.0),
    ExecutionStarted("a", "home"),
    ResultReceived("a", '{\n  "rain": true\n}', False, "server", 3.25),
    ResultReceived("b", "no JSON\nobject", True, "default", 0.0),
    RequestStarted(2),
    RequestFailed(2, "no route"),
]


def lines(run: Sequence[EventPayload] = RUN, *, verbose: bool = False, width: int = 100) -> list[str]:
    steps = StepLines(Paint(False), verbose=verbose, width=width)
    return [line for event in stamped(run) for line in steps.lines(event)]


def test_words_come_before_the_calls_they_announce() -> None:
    assert lines() == [
        "« Let me look.",
        '→ get_weather(city="Oslo")',
        '→ send broken arguments (it ends too early): {"to": ',
        '← server home · 3 ms  { "rain": true }',
        "← default · 0 ms  error no JSON⏎object",
    ]


def test_an_error_that_ends_the_run_is_left_to_the_runs_end() -> None:
    assert lines([RequestStarted(1), RequestFailed(1, "no route"), RunFinished("error", "no route")]) == []


def test_verbose_adds_reasoning_and_latency() -> None:
    said = lines(verbose=True)
    assert said[0] == "· get_weather fits"
    assert "· model answered in 12 ms" in said


def test_lines_are_cut_to_the_width_unless_verbose() -> None:
    assert max(map(len, lines(width=20))) == 20
    assert max(map(len, lines(width=20, verbose=True))) > 20


def test_a_retry_says_why_once_and_forgets_what_the_failed_attempt_said() -> None:
    said = lines(
        [
            RunStarted("h", "c", "C", "m", None, (), (), notices=("seed is not\nsent",)),
            RequestStarted(1),
            TextDelta(1, "Let me"),
            RequestFailed(1, "429: too many requests"),
            RetryScheduled(1, 2, 1_500.0, "429: too many requests"),
            RequestStarted(1),
            TextDelta(1, "Rain."),
            ResponseFinished(1, "answered", None, 1.0, 2.0),
        ]
    )
    assert said == ["▲ seed is not⏎sent", "▲ 429: too many requests", "↻ retry 2 in 1.5 s", "« Rain."]


def test_where_a_run_is_held_and_how_long_is_said_and_progress_only_if_verbose() -> None:
    run: list[EventPayload] = [
        CallStarted(1, "a", "send"),
        CallFinished("a", {}),
        Paused("may send be executed?", "a"),
        Resumed(3_210.0),
        ExecutionStarted("a", "home"),
        ExecutionProgress("a", 3.0, 10.0, "reading\x1b"),
        ResultReceived("a", "done", False, "server", 3.25),
    ]
    brief = ["→ send()", "‖ held: may send be executed?", "‖ continues after 3.2 s", "← server home · 3 ms  done"]
    assert lines(run) == brief
    assert lines(run, verbose=True) == [*brief[:3], "· send: 3 of 10  reading␛", brief[3]]


BY_HAND: list[EventPayload] = [
    RunStarted("h", "c", "C", "m", None, (), ()),
    Paused("step by step", None, "request", 1),
    MessageAdded("It is\nFriday."),
    Resumed(1_000.0),
    RequestStarted(1),
    CallStarted(1, "a", "dim"),
    CallFinished("a", {"to": 60}),
    ResponseFinished(1, "tool calls", None, 1.0, 12.0),
    Paused("step by step", "a", "call", 1),
    Resumed(1_000.0),
    Regenerated(1),
    RequestStarted(1),
    CallStarted(1, "a", "dim"),
    CallFinished("a", {"to": 70}),
    ResponseFinished(1, "tool calls", None, 1.0, 12.0),
    Paused("breakpoint: tool dim", "a", "call", 1),
    CallEdited("a", {"to": 20}, {"to": 70}),
    Resumed(3_210.0),
    ResultReceived("a", "ok", False, "suite mock", 3.25),
    Paused("step by step", "a", "result", 1),
    ResultEdited("a", "broken", True, "ok", False),
    Resumed(1_000.0),
]


def test_what_a_person_does_is_said_where_it_is_done() -> None:
    assert lines(BY_HAND) == [
        "‖ held before the request of round 1: step by step",
        "✎ added: It is⏎Friday.",
        "‖ continues after 1.0 s",
        "→ dim(to=60)",
        "‖ held before dim: step by step",
        "‖ continues after 1.0 s",
        "↻ the answer of round 1 is superseded; the model is asked again",
        "→ dim(to=70)",
        "‖ held before dim: breakpoint: tool dim",
        "✎ edited: dim(to=20)",
        "‖ continues after 3.2 s",
        "← suite mock · 3 ms  ok",
        "‖ held after the result of dim: step by step",
        "✎ edited result: error broken",
        "‖ continues after 1.0 s",
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("edited", "✎ answered by hand"),
        ("skipped", "✎ skipped by hand"),
        ("replayed", "replayed"),
        ("reported", "reported"),
    ],
)
def test_an_answer_that_took_no_time_says_none(source: ResultSource, said: str) -> None:
    run: list[EventPayload] = [CallStarted(1, "a", "dim"), ResultReceived("a", "no", True, source, 9.0)]
    assert lines(run) == [f"← {said}  error no"]


def test_steps_and_forks_say_where_they_begin() -> None:
    run: list[EventPayload] = [StepStarted(1), Forked("run-7", "m", 2, 1), StepStarted(2, "Be kind.", "Now\ndim.")]
    assert lines(run) == [
        "step 1",
        "↳ forked from the run on m after result 1 of round 2; live from here on",
        "step 2  » Now⏎dim.",
    ]


def test_an_empty_message_and_an_answer_without_words_or_calls_leave_a_line() -> None:
    said_nothing = ResponseFinished(1, "answered", None, None, 12.0)
    run: list[EventPayload] = [StepStarted(1, user=" "), RequestStarted(1), said_nothing]
    assert lines(run) == ["step 1  » (empty)", "« (empty)"]
    called: list[EventPayload] = [RequestStarted(1), CallStarted(1, "a", "dim"), CallFinished("a", {}), said_nothing]
    assert lines(called) == ["→ dim()"]


def test_everything_that_a_person_changed_is_counted() -> None:
    added, set_aside, call, result = 1, 1, 1, 1
    assert changes_by_hand(fold(stamped(BY_HAND))) == added + set_aside + call + result


ANSWER: list[EventPayload] = [
    RequestStarted(2),
    TextDelta(2, "Snow."),
    ResponseFinished(2, "answered", None, 1.0, 12.0),
]


@pytest.mark.parametrize(
    ("suites", "steps", "line"),
    [
        ("Be brief.", "Be brief.", "answer"),
        ("Be brief.", "Be kind.", "answer  system: Be brief."),
        (None, "Be kind.", "answer  no system prompt"),
    ],
)
def test_the_request_for_the_final_answer_of_a_chain_is_told_as_no_steps(
    suites: str | None, steps: str, line: str
) -> None:
    step: list[EventPayload] = [
        RunStarted("h", "c", "C", "m", suites, (), ()),
        StepStarted(1, steps),
        RequestStarted(1),
        RequestFailed(1, "busy"),
        RetryScheduled(1, 2, 1.0, "busy"),
        RequestStarted(1),
        ResponseFinished(1, "tool calls", None, 1.0, 12.0),
    ]
    assert lines([*step, *ANSWER])[-2:] == [line, "« Snow."]
    assert sum(said.startswith("answer") for said in lines([*step, *ANSWER, Regenerated(2), *ANSWER])) == 1
    assert lines([*step[:1], *ANSWER]) == ["« Snow."]


def test_the_line_of_a_result_takes_time_by_its_length() -> None:
    # A search from each of its blanks would take hours.
    assert content_text("{" + " " * 1_000_000 + "}").endswith("}")
    assert content_text('{\n  "a": 1 \n}') == '{ "a": 1 }'
