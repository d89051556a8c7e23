"""What one run shows, piece by piece: plain data that grows with the run's events and is laid out elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from workbench.grading.grade import ArgumentVerdict, Issue, RunResult, StepGrade
from workbench.trajectory.events import (
    ExecutionProgress,
    Forked,
    ResponseFinished,
    ResultReceived,
    RetryScheduled,
    RunFinished,
)
from workbench.trajectory.messages import JsonValue, ToolCall, ToolDefinition
from workbench.tui.lines.growing_text import GrowingText


@dataclass(slots=True)
class MessageItem:
    """A message that stands before a request; `number` counts the messages and answers shown, `None` for a system
    prompt. `by_hand`: a person said it while the run was held."""

    role: str
    text: GrowingText
    number: int | None = None
    calls: tuple[ToolCall, ...] = ()
    by_hand: bool = False


@dataclass(slots=True)
class ToolsItem:
    """The tools that the model was shown."""

    tools: tuple[ToolDefinition, ...]


@dataclass(slots=True)
class NoticeItem:
    """What is not as the suite would have it; or, with `waits`, what keeps the run from making its next request."""

    text: str
    waits: bool = False


@dataclass(slots=True)
class StepItem:
    """Where a step of a chain begins; `of` is how many there are, where that is known. `step` is `None` for the request
    behind the last one, which is made for the final answer and belongs to no step. `unprompted`: it has no system
    prompt, where others have one. `grade` is there once the run is graded."""

    step: int | None
    of: int | None = None
    unprompted: bool = False
    grade: StepGrade | None = None

    @property
    def name(self) -> str:
        return "answer" if self.step is None else f"step {self.step}"


@dataclass(slots=True)
class HoldItem:
    """The place before the request of a round, at which the run is held as long as `why` says so."""

    round: int
    why: str | None


@dataclass(slots=True)
class ForkItem:
    """Where a run that was forked from another one begins to be its own, and how it differs first from that, once it is
    over and that is known. `origin` says which run that is; empty where only the event tells."""

    fork: Forked
    origin: str = ""
    difference: str = ""


@dataclass(slots=True)
class RoundItem:
    """A model request: under way until `response` or an end of the run arrives. `begun` says that something
    of an answer has come. `retry` is set while it waits to be made again, which is done at `retry_at`. `replayed`: it
    was told again from another run."""

    number: int
    round: int
    response: ResponseFinished | None = None
    errors: list[str] = field(default_factory=list)
    begun: bool = False
    retry: RetryScheduled | None = None
    retry_at: datetime | None = None
    over: bool = False
    replayed: bool = False


@dataclass(slots=True)
class SetAsideItem:
    """An answer that a person had asked for again: the items that showed it, from its round on."""

    round: int
    number: int
    items: tuple[Item, ...]


@dataclass(slots=True)
class TextItem:
    """What the model says, or thinks."""

    text: GrowingText
    reasoning: bool = False
    done: bool = False
    replayed: bool = False


@dataclass(slots=True)
class CallItem:
    """A tool call with, once graded, what was found about it. `index` is its place among the run's calls. `arguments`
    are what the model wrote, and `edited` what a person put in their place; `held` is why the run is held before it."""

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
    edited: Mapping[str, JsonValue] | None = None
    held: str | None = None


@dataclass(slots=True)
class ResultItem:
    """What answered a call of a `tool`, as the model reads it, and `unedited` what it was before a person changed that.
    Until it has arrived, why the run `asks` whether the call may be made, or how far its execution is, if it is either;
    `held_ms` is how long it asked. `held` is why the run is held after it."""

    result: ResultReceived | None = None
    unedited: ResultReceived | None = None
    asks: str | None = None
    held: str | None = None
    held_ms: float = 0.0
    executing: bool = False
    progress: ExecutionProgress | None = None
    tool: str = ""


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


Item = (
    MessageItem
    | ToolsItem
    | NoticeItem
    | StepItem
    | HoldItem
    | ForkItem
    | RoundItem
    | SetAsideItem
    | TextItem
    | CallItem
    | ResultItem
    | MissingItem
    | OutcomeItem
)
