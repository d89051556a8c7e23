"""The steps of a run as lines, in the order in which they happen."""

from __future__ import annotations

from tests.trajectory.scripts import stamped
from workbench.reports.paint import Paint
from workbench.reports.steps import StepLines
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    ExecutionStarted,
    Happening,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    TextDelta,
)

RUN: list[Happening] = [
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


def lines(*, verbose: bool = False, width: int = 100) -> list[str]:
    steps = StepLines(Paint(False), verbose=verbose, width=width)
    return [line for event in stamped(RUN) for line in steps.lines(event)]


def test_words_come_before_the_calls_they_announce() -> None:
    assert lines() == [
        "« Let me look.",
        '→ get_weather(city="Oslo")',
        '→ send broken arguments (it ends too early): {"to": ',
        '← server home 3.2 ms  { "rain": true }',
        "← default 0.0 ms  error no JSON⏎object",
        "⚠ no route",
    ]


def test_verbose_adds_reasoning_and_latency() -> None:
    said = lines(verbose=True)
    assert said[0] == "· get_weather fits"
    assert "· model answered in 12 ms" in said


def test_lines_are_cut_to_the_width_unless_verbose() -> None:
    assert max(map(len, lines(width=20))) == 20
    assert max(map(len, lines(width=20, verbose=True))) > 20
