"""A recorded run without secrets, as exporters need it: with its conversation and the times of its parts."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass, json_text
from workbench.engine.recordings import result_of_recording
from workbench.engine.turns import answer_message, messages_before, result_messages
from workbench.grading.grade import RunResult
from workbench.show.views.grades import expected_lines
from workbench.suite.model import Case, Suite
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import (
    Event,
    JsonValue,
    Message,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunStarted,
    ToolCall,
    ToolDefinition,
)
from workbench.trajectory.recording import Header, Recording
from workbench.trajectory.system_prompt import prompt_of
from workbench.trajectory.trajectory import Round


class ConversationEntry(NamedTuple):
    """A message of a conversation as the model read it, or a system prompt.

    For an assistant's message, `answer` is the round that produced it, or `None` if the message comes from the case."""

    role: Literal["system", "user", "assistant", "tool"]
    message: Message
    answer: Round | None = None


class Span(NamedTuple):
    """The start and end of a request or a call, in milliseconds since the run began."""

    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class ExportedRun:
    """A recorded run without secrets.

    `expected` describes the calls that its case expects, one line for each call. `requests` holds the times of requests
    by round number. `answers` holds the times of tool calls by call id. `ended_ms` is the end of the run."""

    header: Header
    result: RunResult
    expected: tuple[str, ...] = ()
    requests: Mapping[int, Span] = field(default_factory=dict)
    answers: Mapping[str, Span] = field(default_factory=dict)
    ended_ms: float = 0.0

    @property
    def suite(self) -> str:
        return self.header.suite.path

    @cached_property
    def key(self) -> str:
        """The id of the run in exports: 32 hexadecimal digits, the same in each export of the run."""
        header = self.header
        parts = (header.started_at, header.run, header.suite.hash, header.case, header.model, header.repeat)
        # A model's text may contain half of a surrogate pair, which UTF-8 cannot encode.
        return hashlib.sha256(json_text(parts).encode(errors="surrogatepass")).hexdigest()[:32]

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        start = self.result.trajectory.start
        return () if start is None else start.tools

    @property
    def started(self) -> datetime:
        """The start of the run; 1 January 1970 if the recording has no valid time."""
        try:
            return datetime.fromisoformat(self.header.started_at).astimezone()
        except (ValueError, OverflowError):
            return datetime.fromisoformat("1970-01-01T00:00:00+00:00")

    def time(self, ms: float) -> str:
        """Return a time in milliseconds after the start as ISO 8601 text."""
        return (self.started + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")

    @property
    def facts(self) -> dict[str, JsonValue]:
        """The run's identity and result, for formats in which an exporter chooses the field names.

        Fields without a value are left out."""
        result = self.result
        facts: dict[str, JsonValue] = {
            "run": self.key,
            "suite": self.suite,
            "case": result.case_id,
            "model": result.model,
            "repeat": result.repeat,
            "started_at": self.header.started_at,
            "status": result.status,
            "score": result.score,
            "reason": result.reason,
        }
        return {name: value for name, value in facts.items() if value is not None}

    @property
    def conversation(self) -> list[ConversationEntry]:
        """All messages, including system prompts.

        An answer that broke off is left out, because the next request did not send it to the model."""
        return list(conversation(self.result, len(self.result.trajectory.rounds)))


def conversation(result: RunResult, rounds: int) -> Iterator[ConversationEntry]:
    start = result.trajectory.start
    if start is None:
        return
    system = prompt_of(start, start.system)
    if system is not None:
        yield ConversationEntry("system", Message("user", system))
    for message in start.messages:
        yield ConversationEntry(message.role, message)
    for done in result.trajectory.rounds[:rounds]:
        # A step of a chain may set another system prompt, which comes before the request of the step.
        yield from _before(done, start, system)
        system = _prompt_of(done, start) or system
        # The answer broke off, so it is left out. The next round repeated the request.
        if done.stop_reason is None:
            continue
        yield ConversationEntry("assistant", answer_message(done), done)
        for message in result_messages(done):
            yield ConversationEntry("tool", message)


def _before(round_: Round, start: RunStarted, system: str | None) -> Iterator[ConversationEntry]:
    prompt, user = _prompt_of(round_, start), None
    if round_.step is not None:
        user = round_.step.user
    if prompt not in (None, system):
        yield ConversationEntry("system", Message("user", prompt or ""))
    for message in messages_before(user, round_.added):
        yield ConversationEntry("user", message)


def _prompt_of(round_: Round, start: RunStarted) -> str | None:
    if round_.step is None or round_.step.system is None:
        return None
    return prompt_of(start, round_.step.system)


def request_messages(result: RunResult, round_: Round) -> list[ConversationEntry]:
    start = result.trajectory.start
    if start is None:
        return []
    at = result.trajectory.rounds.index(round_)
    entries = list(conversation(result, at))
    return [*entries, *_before(round_, start, last_text_of("system", entries))]


def last_text_of(role: str, entries: Iterable[ConversationEntry]) -> str | None:
    """Return the text of the last message with this role; `None` if there is none."""
    text = None
    for each in entries:
        if each.role == role:
            text = each.message.content
    return text


def exported_run(recording: Recording, secrets: Secrets, result: RunResult | None = None) -> ExportedRun:
    """Return a recorded run without secrets, so that it can be published.

    `result` replaces the result in the recording, for example after regrading. Raises RecordingError if the recording's
    result cannot be read."""
    header = recording.header
    if result is None:
        result = result_of_recording(recording)
    result = _with_finite_scores(result)
    requests, answers = _times(recording.events)
    case = case_in(header)
    expected: tuple[str, ...] = ()
    if case is not None:
        expected = tuple(expected_lines(case, result.grade))
    return ExportedRun(
        # No format has a field for the suite's text, which may contain more than this case, so it is removed.
        secrets.redacted(replace(header, suite=replace(header.suite, text=""))),
        secrets.redacted(result),
        secrets.redacted(expected),
        requests,
        answers,
        recording.events[-1].time_ms if recording.events else 0.0,
    )


def _with_finite_scores(result: RunResult) -> RunResult:
    """Replace infinite scores by the largest finite numbers, because JSON has no infinity."""
    most = sys.float_info.max
    grades = list(result.grades)
    for at, grade in enumerate(grades):
        if grade.score is not None:
            grades[at] = grade._replace(score=max(-most, min(grade.score, most)))
    return replace(result, grades=tuple(grades))


@lru_cache(maxsize=64)
def suite_in(text: str) -> Suite | None:
    """Return the suite in a recording's text; `None` if it is no longer valid.

    Runs of one suite share a cached result."""
    return parse_suite(text, Path("recorded.toml")).suite


def case_in(header: Header) -> Case | None:
    """Return a recording's case as it was when it ran; `None` if its suite is no longer valid."""
    suite = suite_in(header.suite.text)
    if suite is None:
        return None
    return next((case for case in suite.cases if case.id == header.case), None)


def _times(events: Iterable[Event]) -> tuple[dict[int, Span], dict[str, Span]]:
    requests: dict[int, Span] = {}
    answers: dict[str, Span] = {}
    for event in events:
        match event.payload:
            case RequestStarted(round=number):
                requests[number] = Span(event.time_ms, event.time_ms)
            case ResponseFinished(round=number) if number in requests:
                requests[number] = Span(requests[number].start_ms, event.time_ms)
            # No event marks the start of a call. Its start is the time of the result minus the duration of the call.
            case ResultReceived(call_id=call_id, latency_ms=latency_ms):
                answers[call_id] = Span(max(event.time_ms - latency_ms, 0.0), event.time_ms)
            case _:
                pass
    return requests, answers


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as JSON text, or the text that the model wrote if it is not valid JSON."""
    if call.problem is not None and call.raw is not None:
        return call.raw
    return json_text(dict(call.arguments))


def function_of(tool: ToolDefinition) -> dict[str, JsonValue]:
    function: dict[str, JsonValue] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = dict(tool.parameters) or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}
