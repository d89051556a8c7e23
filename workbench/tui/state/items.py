"""What one run shows, piece by piece: plain data that grows with the run's events and is laid out elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from workbench.grading.grade import ArgumentVerdict, Issue, RunResult
from workbench.trajectory.events import (
    ExecutionProgress,
    ResponseFinished,
    ResultReceived,
    RetryScheduled,
    RunFinished,
)
from workbench.trajectory.messages import JsonValue, ToolCall, ToolDefinition
from workbench.tui.state.wrapped import GrowingText


@dataclass(slots=True)
class MessageItem:
    """A message that stood before the first request; `number` counts the steps shown, `None` for the system prompt."""

    role: str
    text: GrowingText
    number: int | None = None
    calls: tuple[ToolCall, ...] = ()


@dataclass(slots=True)
class ToolsItem:
    """The tools that the model was shown."""

    tools: tuple[ToolDefinition, ...]


@dataclass(slots=True)
class NoticeItem:
    """Something about the run that is nobody's doing in the conversation: a notice, or where the run is or was held."""

    text: str
    held: bool = False


@dataclass(slots=True)
class RoundItem:
    """A model request: under way until `response` or an end of the run arrives. `begun` says that something
    of an answer has come. `retry` is set while it waits to be made again, which is done at `retry_at`."""

    number: int
    round: int
    response: ResponseFinished | None = None
    errors: list[str] = field(default_factory=list)
    begun: bool = False
    retry: RetryScheduled | None = None
    retry_at: datetime | None = None
    over: bool = False


@dataclass(slots=True)
class TextItem:
    """What the model says, or thinks."""

    text: GrowingText
    reasoning: bool = False
    done: bool = False


@dataclass(slots=True)
class CallItem:
    """A tool call with, once graded, what was found about it. `index` is its place among the run's calls."""

    call_id: str
    tool: str
    index: int
    fragments: list[str] = field(default_factory=list)
    arguments: Mapping[str, JsonValue] | None = None
    raw: str | None = None
    problem: str | None = None
    server: str | None = None
    verdicts: tuple[ArgumentVerdict, ...] = ()
    issues: tuple[Issue, ...] = ()


@dataclass(slots=True)
class ResultItem:
    """What answered a call; until that has arrived, why it is held or how far its execution is, if it is either."""

    result: ResultReceived | None = None
    held: str | None = None
    held_ms: float = 0.0
    executing: bool = False
    progress: ExecutionProgress | None = None


@dataclass(slots=True)
class MissingItem:
    """A call that was expected and never came. `expected` is its place among the case's expected calls."""

    tool: str
    expected: int
    verdicts: tuple[ArgumentVerdict, ...] = ()
    issues: tuple[Issue, ...] = ()


@dataclass(slots=True)
class OutcomeItem:
    """How the run ended and, once it is graded, what it is worth; `former` is what it was when it ran, where it was
    graded anew since."""

    finish: RunFinished | None = None
    result: RunResult | None = None
    former: RunResult | None = None
    issues: tuple[Issue, ...] = ()


Item = MessageItem | ToolsItem | NoticeItem | RoundItem | TextItem | CallItem | ResultItem | MissingItem | OutcomeItem
