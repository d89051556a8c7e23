"""Hand-made recorded runs for tests of exporters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.results import result
from tests.trajectory.scripts import stamped
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.exchange.exporters.exported import ExportedRun, exported_run
from workbench.grading.grade import Grade, Issue, RunResult
from workbench.grading.status import Status
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    Message,
    ReasoningDelta,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
)
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import Header, RecordedSuite, Recording

SUITE = """
format = 1
name = "Weather"
[[tools]]
name = "get_weather"
[[cases]]
id = "oslo"
name = "Oslo"
user = "Is it raining in Oslo?"
[[cases.ordered]]
tool = "get_weather"
args = { city = "Oslo" }
"""

TOOL = ToolDefinition("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})

Said = tuple[str, str, Sequence[tuple[ToolCall, str | None, bool]]]
"""An answer: its text, its reasoning, and its calls. Each call has its result (`None` without one), and whether the
result is an error."""


def events_of(
    rounds: Sequence[Said],
    *,
    system: str | None = "Be brief.",
    opening: Sequence[Message] = (Message("user", "Is it raining in Oslo?"),),
    tools: Sequence[ToolDefinition] = (TOOL,),
) -> list[Event]:
    """Return the events of a run with these answers. Each answer uses 3 input tokens and 5 output tokens."""
    happenings: list[EventPayload] = [RunStarted("hash", "oslo", "Oslo", "m-1", system, tuple(opening), tuple(tools))]
    for number, (text, reasoning, calls) in enumerate(rounds, start=1):
        happenings += [RequestStarted(number), ReasoningDelta(number, reasoning), TextDelta(number, text)]
        for call, _, _ in calls:
            happenings += [
                CallStarted(number, call.id, call.tool),
                CallFinished(call.id, call.arguments, call.raw, call.problem),
            ]
        happenings.append(ResponseFinished(number, "tool calls" if calls else "answered", Usage(3, 5), 1.0, 2.0))
        happenings += [
            ResultReceived(call.id, content, is_error, "case mock", 0.5)
            for call, content, is_error in calls
            if content is not None
        ]
    return stamped([*happenings, RunFinished("answered")])


def recording_of(events: Sequence[Event]) -> Recording:
    """Return a recording of events without a file or a result."""
    suite = RecordedSuite("weather.toml", "abc", SUITE)
    header = Header("0.1.0", "run-1", "2026-11-22T20:31:49.000+00:00", suite, "oslo", "m-1", 0)
    return Recording(Path("runs/x.run.jsonl"), header, tuple(events), fold(events), None)


def run_of(events: Sequence[Event], secrets: Secrets = NO_SECRETS, came_to: RunResult | None = None) -> ExportedRun:
    """Return the run of these events. Without `came_to`, the run has passed."""
    recording = recording_of(events)
    came_to = came_to or result(Status.PASSED, 1.0, case="oslo", model="m-1", trajectory=recording.trajectory)
    return exported_run(recording, secrets, came_to)


LOOKED = (ToolCall("c1", "get_weather", {"city": "Bergen"}), "rain", False)
ISSUE = Issue("wrong argument", "city is Bergen", "get_weather", 0, 0, "city", "Oslo", "Bergen", True)


def wrong_run(secrets: Secrets = NO_SECRETS) -> ExportedRun:
    """Return a run that failed because the model asked for another city."""
    events = events_of([("", "I look.", [LOOKED]), ("It rains.", "", ())])
    grade = Grade("critics", 0.5, Status.FAILED, "0.5 of 1", issues=(ISSUE,), status=Status.FAILED)
    failed = result(Status.FAILED, 0.5, case="oslo", model="m-1", grade=grade, trajectory=fold(events))
    return run_of(events, secrets, failed)
