"""Malformed values, as in files of other programs or damaged files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.trajectory.scripts import stamped
from workbench.grading.grade import (
    ArgumentVerdict,
    CallPairing,
    Grade,
    Issue,
    Judgement,
    Metric,
    RedactedPlace,
    StepGrade,
)
from workbench.grading.result_json import Outcome, outcome_to_json
from workbench.grading.status import Status
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallEdited,
    CallFinished,
    CallStarted,
    EventPayload,
    ExecutionProgress,
    ExecutionStarted,
    Forked,
    Message,
    MessageAdded,
    Paused,
    ReasoningDelta,
    Regenerated,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    ServerOutput,
    StepStarted,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
)
from workbench.trajectory.recording import Header, RecordedSuite, event_to_line, header_line, result_line

JUNK: tuple[Any, ...] = (
    None,
    True,
    "yesterday",
    "",
    "\0\n\ud800\u202e",
    "9999-12-31T23:59:59-23:00",
    -1,
    10**12,
    2**63,
    10**400,
    1e308,
    -1e308,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    [],
    {},
    [[1, "x"]],
    {"a": {"b": 1e308}},
)
"""Values of every type and size that JSON has. 10**400 fits into no float."""

SUITE = """
format = 1
name = "Weather"
[[tools]]
name = "t"
[[cases]]
id = "oslo"
name = "Oslo"
[[cases.steps]]
user = "One."
tool = "t"
args = { city = "Oslo" }
[[cases.steps]]
user = "Two."
tool = "t"
"""

_CALL = ToolCall("c0", "t", {"a": 1}, None, None)
EVERYTHING: tuple[EventPayload, ...] = (
    RunStarted(
        "hash",
        "oslo",
        "Oslo",
        "m-1",
        "Be brief.",
        (
            Message("user", "Go."),
            Message("assistant", "", (_CALL,), provider_state={"x": 1}),
            Message("tool", "ok", (), "c0", True),
        ),
        (ToolDefinition("t", "Does it.", {"type": "object", "properties": {"city": {"type": "string"}}}, {"a": 1}),),
        7,
        ("a notice",),
        (ServerOutput("home", ("line",), 1, "log"),),
    ),
    StepStarted(1, "Be very brief.", "One."),
    RequestStarted(1),
    RequestFailed(1, "busy"),
    RetryScheduled(1, 2, 5.0, "busy"),
    RequestStarted(1),
    ReasoningDelta(1, "Hm."),
    TextDelta(1, "I look."),
    CallStarted(1, "c1", "t"),
    CallArgumentsDelta("c1", '{"city":"Oslo"}'),
    CallFinished("c1", {"city": "Oslo"}),
    CallStarted(1, "c2", "t"),
    CallFinished("c2", {}, "{", "no JSON"),
    ResponseFinished(1, "tool calls", Usage(3, 5, 1, 2), 1.0, 2.0, {"state": [1]}),
    Paused("a call", "c1", "call", 1),
    CallEdited("c1", {"city": "Rome"}, {"city": "Oslo"}),
    Resumed(3.0),
    ExecutionStarted("c1", "home"),
    ExecutionProgress("c1", 1.0, 2.0, "half"),
    ResultReceived("c1", "rain", False, "server", 0.5),
    ResultEdited("c1", "sun", True, "rain", False),
    ResultReceived("c2", "bad", True, "default", 0.5),
    Forked("older", "m-1", 2, 1),
    MessageAdded("And then?"),
    StepStarted(2, None, "Two."),
    RequestStarted(2),
    TextDelta(2, "No."),
    ResponseFinished(2, "answered", None, None, 2.0),
    Regenerated(2),
    RequestStarted(2),
    TextDelta(2, "It rains."),
    ResponseFinished(2, "answered", Usage(3, 5), 1.0, 2.0),
    RunFinished("steps done", "why", ServerOutput("home", ("line",), 1, "log")),
)
"""A run with every event that can occur."""

_ISSUE = Issue("wrong argument", "city is Rome", "t", 0, 0, "city", "Oslo", "Rome", True)
_JUDGEMENT = Judgement("judge", "is kind", "a", True, "It is.", (1.0, 5.0), 4.0)
_OUTCOME = Outcome(
    status=Status.FAILED,
    error="why",
    score=0.5,
    grades=(
        Grade(
            "critics",
            0.5,
            Status.FAILED,
            "0.5 of 1",
            (
                CallPairing(
                    *(0, 0, True, 1.0, 1.0),
                    (ArgumentVerdict("city", False, 0.5, 1.0, "Oslo", "Rome", True, "is Rome"),),
                    *(0.5, "another city", None),
                    {"a": 0.5},
                ),
            ),
            (_ISSUE,),
            {"threshold": 0.9},
            Status.FAILED,
        ),
        Grade("trajectory", -1.0, Status.FAILED, "low", (), (), {"score": -1.0}, Status.FAILED),
    ),
    judgements=(_JUDGEMENT,),
    steps=(StepGrade(1, Status.FAILED, 0.5, "another city", 0, (_ISSUE,), 0),),
    latency_ms=4.0,
    loop_ms=5.0,
    redacted=(RedactedPlace("argument", 0, "city"),),
    metrics=(Metric("kind", 0.75, True, 4.0, (1.0, 5.0), "kind", "It is."),),
)


def recording_lines() -> list[Any]:
    """Return the lines of a whole recording as JSON values."""
    header = Header(
        "0.1.0",
        "run",
        "2026-11-22T20:31:49.000+00:00",
        RecordedSuite("w.toml", "abc", SUITE),
        "oslo",
        "m-1",
        0,
        "critics",
    )
    texts = [
        header_line(header),
        *map(event_to_line, stamped(EVERYTHING)),
        result_line("run", outcome_to_json(_OUTCOME)),
    ]
    return [json.loads(text) for text in texts]


def with_junk(value: Any, junk: Sequence[Any] = JUNK, only: tuple[type, ...] = (object,)) -> Iterator[tuple[str, Any]]:
    """Yield copies of a JSON value in which one part is replaced by junk, each with the place of that part. With
    `only`, only parts of these types are replaced."""
    for place, holder, key in _places(value, ""):
        kept = holder[key]
        for each in junk if isinstance(kept, only) and not (isinstance(kept, bool) and object not in only) else ():
            if type(each) is not type(kept) or each != kept:
                holder[key] = each
                yield place, value
        holder[key] = kept


def _places(value: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        inner = f"{place}.{key}" if place else str(key)
        yield inner, value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key], inner)
