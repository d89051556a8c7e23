"""The items that make up the display of a run: plain data that grows with its events and is laid out elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.grading.grade import ArgumentVerdict, Issue, RunResult, StepGrade
from workbench.show.lazy_lines import GrowingText
from workbench.show.views.waiting import Awaited
from workbench.trajectory.events import (
    ExecutionProgress,
    Forked,
    JsonValue,
    ResponseFinished,
    ResultReceived,
    RetryScheduled,
    RunFinished,
    ToolCall,
    ToolDefinition,
)

if TYPE_CHECKING:
    from workbench.providers.model import HttpRequest


@dataclass(slots=True)
class MessageItem:
    """A message before a request. `number` counts the messages and answers shown, `None` for a system prompt. `by_hand`
    is true if the user added it while the run was held."""

    role: str
    text: GrowingText
    number: int | None = None
    calls: tuple[ToolCall, ...] = ()
    by_hand: bool = False


@dataclass(slots=True)
class ToolsItem:
    """The tools offered to the model."""

    tools: tuple[ToolDefinition, ...]


@dataclass(slots=True)
class NoticeItem:
    """Something that deviates from the suite or, with `waits`, delays the next request."""

    text: str
    waits: bool = False


@dataclass(slots=True)
class StepItem:
    """The beginning of a step. `of` is the number of steps, if known. `step` is `None` for the final request after the
    last step. `unprompted` is true if it has no system prompt and other steps do. `grade` is set once the run is
    graded."""

    step: int | None
    of: int | None = None
    unprompted: bool = False
    grade: StepGrade | None = None

    @property
    def name(self) -> str:
        return "answer" if self.step is None else f"step {self.step}"


@dataclass(slots=True)
class HoldItem:
    """The place before the request of a round. The run is held there while `why` is set. `request` is what is about to
    be sent, or why it cannot be, if known."""

    round: int
    why: str | None
    request: HttpRequest | str | None = None


@dataclass(slots=True)
class ForkItem:
    """Where a fork departs from its origin. `difference` is the first difference, once known. `origin` names the run,
    empty if only the event is known."""

    fork: Forked
    origin: str = ""
    difference: str = ""


@dataclass(slots=True)
class RoundItem:
    """A model request, under way until `response` or the end of the run arrives. `begun` is true once part of an answer
    arrived. `awaited` is what is known of the answer until then, and `now_s` the present, as far as known, by the run's
    clock. `retry` is set while it waits to be repeated at `retry_at`. `replayed` is true if it was copied from the
    origin of a fork."""

    number: int
    round: int
    response: ResponseFinished | None = None
    errors: list[str] = field(default_factory=list)
    begun: bool = False
    retry: RetryScheduled | None = None
    retry_at: datetime | None = None
    over: bool = False
    replayed: bool = False
    awaited: Awaited = field(default_factory=lambda: Awaited(0.0))
    now_s: float | None = None


@dataclass(slots=True)
class SetAsideItem:
    """A superseded answer: the items that showed it, from its round on."""

    round: int
    number: int
    items: tuple[Item, ...]


@dataclass(slots=True)
class TextItem:
    """Text or reasoning of the model."""

    text: GrowingText
    reasoning: bool = False
    done: bool = False
    replayed: bool = False


@dataclass(slots=True)
class CallItem:
    """A tool call and, once graded, its verdicts and issues. `index` is its position among the run's calls. `edited`
    are arguments that the user replaced. `held` is why the run is held before it."""

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
    """The result of a call of `tool`, as the model reads it. `unedited` is the original of an edited result. Until it
    arrives, `asks` is why the run asks for permission, or `progress` that of the execution. `held_ms` is how long it
    asked. `held` is why the run is held after it."""

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
    """An expected call that was not made. `expected` is its index among the case's expected calls."""

    tool: str
    expected: int
    verdicts: tuple[ArgumentVerdict, ...] = ()
    issues: tuple[Issue, ...] = ()


@dataclass(slots=True)
class OutcomeItem:
    """The end of the run and, once graded, its result. `former` is the original result of a run that was regraded."""

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
