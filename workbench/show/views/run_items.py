"""The items of a shown run, and their list. Items are plain data that grows with the run's events."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.grading.grade import ArgumentVerdict, Issue, RunResult, StepGrade
from workbench.show.lazy_lines import GrowingText
from workbench.show.views.values import AnswerProgress
from workbench.trajectory.events import (
    ExecutionProgress,
    Forked,
    JsonValue,
    OwnCallAnswered,
    ProviderTool,
    ResponseFinished,
    ResultReceived,
    RetryScheduled,
    RunFinished,
    ServerAsked,
    ToolCall,
    ToolDefinition,
    UserRefused,
    UserSaid,
)

if TYPE_CHECKING:
    from workbench.providers.model import HttpRequest


@dataclass(slots=True)
class MessageItem:
    """A message before a request.

    `number` counts the shown messages and answers. It is `None` for a system prompt. `by_hand` is true if a person
    added the message while the run was paused. `source` says where a message of a simulated user came from. `refused`
    has the simulated user's earlier attempts, which were not sent because they broke a rule."""

    role: str
    text: GrowingText
    number: int | None = None
    calls: tuple[ToolCall, ...] = ()
    by_hand: bool = False
    source: str = ""
    refused: tuple[UserRefused, ...] = ()


@dataclass(slots=True)
class ToolsItem:
    """The tools that the model was offered."""

    tools: tuple[ToolDefinition, ...]


@dataclass(slots=True)
class NoticeItem:
    """A deviation from the suite or, with `is_waiting`, a delay of the next request. `quiet` makes it inconspicuous."""

    text: str
    is_waiting: bool = False
    quiet: bool = False


@dataclass(slots=True)
class SuiteCallItem:
    """A call that the suite made before or after the run, with its result.

    For a call after a graded run, `holds` says whether the result is as expected."""

    call: OwnCallAnswered
    holds: bool | None = None


@dataclass(slots=True)
class ServerRequestItem:
    """A request that an MCP server sent to the client during a call, with the reply."""

    request: ServerAsked
    hold_reason: str | None = None
    """The reason why the run is held before the reply."""
    is_waiting: bool = False


@dataclass(slots=True)
class StepItem:
    """The beginning of a step of a chain.

    `of` is the number of steps, if known. `step` is `None` for the request of the final answer, after the last step.
    `unprompted` is true if the step has no system prompt although other steps have one. `grade` is set once the run
    is graded."""

    step: int | None
    of: int | None = None
    unprompted: bool = False
    grade: StepGrade | None = None

    @property
    def name(self) -> str:
        if self.step is None:
            return "answer"
        return f"step {self.step}"


@dataclass(slots=True)
class HoldItem:
    """A place before the request of a round, where the run is paused while `why` is set.

    `request` is the request, or the reason why it cannot be sent, if known. `user_message` is a message of the
    simulated user that the request will contain."""

    round: int
    why: str | None
    request: HttpRequest | str | None = None
    user_message: UserSaid | None = None


@dataclass(slots=True)
class ForkItem:
    """The place where a fork begins to differ from its origin.

    `difference` describes the first difference, once known. `origin` names the original run, or is empty if the name
    is unknown."""

    fork: Forked
    origin: str = ""
    difference: str = ""


@dataclass(slots=True)
class RoundItem:
    """A model request. It is in flight until `response` is set or the run ends (`has_ended`).

    `begun` is true once a part of the answer has arrived. Until then, `awaited` has the progress of the request, and
    `now_s` is the current time on the run's clock, if known. `retry` is set while the request waits for its retry at
    `retry_at`. `replayed` is true if a fork copied the request from its original run."""

    number: int
    round: int
    response: ResponseFinished | None = None
    errors: list[str] = field(default_factory=list)
    begun: bool = False
    retry: RetryScheduled | None = None
    retry_at: datetime | None = None
    has_ended: bool = False
    replayed: bool = False
    awaited: AnswerProgress = field(default_factory=lambda: AnswerProgress(0.0))
    now_s: float | None = None


@dataclass(slots=True)
class SupersededItem:
    """An answer that was replaced when the user regenerated it. `items` begins with the request's item."""

    round: int
    number: int
    items: tuple[Item, ...]


@dataclass(slots=True)
class TextItem:
    """A text from the model, or its reasoning."""

    text: GrowingText
    reasoning: bool = False
    done: bool = False
    replayed: bool = False


@dataclass(slots=True)
class CallItem:
    """A tool call. Once the run is graded, it has verdicts and issues.

    `index` is the call's index among the run's calls, or `None` for a call that is shown but not graded. `edited` has
    the arguments that the user put in place of the model's. `hold_reason` says why the run is paused before the
    call."""

    call_id: str
    tool: str
    index: int | None
    fragments: list[str] = field(default_factory=list)
    arguments: Mapping[str, JsonValue] | None = None
    raw: str | None = None
    problem: str | None = None
    server: str | None = None
    by_provider: bool = False
    verdicts: tuple[ArgumentVerdict, ...] = ()
    issues: tuple[Issue, ...] = ()
    edited: Mapping[str, JsonValue] | None = None
    hold_reason: str | None = None


@dataclass(slots=True)
class ResultItem:
    """The result of a call, as the model reads it. `tool` is the called tool.

    `unedited` is the original of an edited result. Before the result arrives, `asks` says why the user must permit the
    call, and `progress` is the progress of its execution. `held_ms` is the time until the user permitted it.
    `hold_reason` says why the run is paused after the result."""

    result: ResultReceived | None = None
    unedited: ResultReceived | None = None
    asks: str | None = None
    hold_reason: str | None = None
    held_ms: float = 0.0
    executing: bool = False
    progress: ExecutionProgress | None = None
    tool: str = ""


@dataclass(slots=True)
class MissingItem:
    """An expected call that the model did not make.

    `expected` is the call's index among the case's expected calls."""

    tool: str
    expected: int
    verdicts: tuple[ArgumentVerdict, ...] = ()
    issues: tuple[Issue, ...] = ()


@dataclass(slots=True)
class OutcomeItem:
    """The end of the run and, once the run is graded, its result.

    `former` is the original result of a run that was regraded. `requirements` is the number of the case's requirements
    on the final state. `met` describes the requirements that the run met, and `issues` describes the requirements that
    it missed."""

    finish: RunFinished | None = None
    result: RunResult | None = None
    former: RunResult | None = None
    issues: tuple[Issue, ...] = ()
    met: tuple[str, ...] = ()
    requirements: int = 0


Item = (
    MessageItem
    | ToolsItem
    | NoticeItem
    | SuiteCallItem
    | ServerRequestItem
    | StepItem
    | HoldItem
    | ForkItem
    | RoundItem
    | SupersededItem
    | TextItem
    | CallItem
    | ResultItem
    | MissingItem
    | OutcomeItem
)


class RunItems:
    """The items of a shown run, in a list that grows at its end.

    Each call is followed directly by its result."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.order: list[int] = []
        """The indices of calls, in the order in which the model emitted them."""
        self.rounds: list[int] = []
        """The indices of requests, except superseded requests."""
        self.steps: list[int] = []
        """The indices of step headings."""
        self.round: int | None = None
        """The index of the last request."""
        self.outcome: int | None = None
        self.held_index: int | None = None
        """The index of the item where the run is held or asks for permission."""
        self._calls: dict[str, int] = {}
        self._changed: set[int] = set()
        self._rebuilt = False
        self._first_removed: int | None = None

    @property
    def last(self) -> Item | None:
        """The item at the end, or `None` if there are no items."""
        if not self.items:
            return None
        return self.items[-1]

    @property
    def asked(self) -> RoundItem | None:
        """The last request, for reading only, or `None` if there is none. To change the request, call `request`."""
        if self.round is None:
            return None
        item = self.items[self.round]
        if not isinstance(item, RoundItem):
            return None
        return item

    def append(self, item: Item) -> int:
        self.items.append(item)
        self._changed.add(len(self.items) - 1)
        return len(self.items) - 1

    def append_round(self, item: RoundItem) -> None:
        """Append a request and remember it as the last request."""
        self.round = self.append(item)
        self.rounds.append(self.round)

    def append_step(self, item: StepItem) -> None:
        self.steps.append(self.append(item))

    def append_call(self, call_id: str, tool: str, by_provider: ProviderTool | None) -> None:
        """Append a call with an empty result, unless a call with this id exists."""
        if call_id in self._calls:
            return
        # The result is the next item, so `result` finds it at the next index.
        counts = by_provider != "other"
        call = CallItem(call_id, tool, len(self.order) if counts else None, by_provider=by_provider is not None)
        self._calls[call_id] = self.append(call)
        if counts:
            self.order.append(self._calls[call_id])
        self.append(ResultItem(tool=tool))

    def finish_text(self) -> None:
        """Mark the last item as complete if it is a text that is being streamed."""
        # Only the text at the end can still grow.
        if isinstance(last := self.last, TextItem) and not last.done:
            last.done = True
            self._changed.add(len(self.items) - 1)

    def insert(self, index: int, item: Item) -> None:
        """Insert an item. The caller must call `rebuild` after its last change."""
        self.items.insert(index, item)
        self._move_from(index, 1)

    def remove(self, index: int) -> None:
        """Remove an item. The caller must call `rebuild` after its last change."""
        del self.items[index]
        self._move_from(index, -1)

    def cut(self, first: int) -> list[Item]:
        """Remove and return all items from an index on."""
        void = self.items[first:]
        if void:
            del self.items[first:]
            # If there were several cuts since the last `take_cut`, the lowest index is reported.
            self._first_removed = min(first, first if self._first_removed is None else self._first_removed)
            self._changed = {index for index in self._changed if index < first}
            self._calls = {call: index for call, index in self._calls.items() if index < first}
            for indices in (self.order, self.rounds, self.steps):
                # Indices are only appended, or shifted together, so the lists are sorted.
                del indices[bisect_left(indices, first) :]
            if self.held_index is not None and self.held_index >= first:
                self.held_index = None
        return void

    # Items about to change

    def changed(self, index: int) -> Item:
        """Mark an item as changed, and return it."""
        self._changed.add(index)
        return self.items[index]

    def request(self) -> RoundItem | None:
        """Return the last request, marked as changed, or `None` if there is none."""
        if self.round is None:
            return None
        item = self.changed(self.round)
        assert isinstance(item, RoundItem)
        return item

    def end(self) -> OutcomeItem:
        """Return the end of the run, marked as changed. It is created on first use."""
        if self.outcome is None:
            self.outcome = self.append(OutcomeItem())
        item = self.changed(self.outcome)
        assert isinstance(item, OutcomeItem)
        return item

    def call(self, call_id: str | None) -> CallItem | None:
        """Return the call with this id and mark it as changed. Return `None` if no call has the id."""
        if (index := self.index_of(call_id)) is None:
            return None
        item = self.changed(index)
        assert isinstance(item, CallItem)
        return item

    def result(self, call_id: str | None) -> ResultItem | None:
        """Return the result of the call with this id and mark it as changed. Return `None` if no call has the id."""
        if (index := self.index_of(call_id)) is None:
            return None
        item = self.changed(index + 1)
        assert isinstance(item, ResultItem)
        return item

    def index_of(self, call_id: str | None) -> int | None:
        """Return the index of the call with this id, or `None` if no call has the id."""
        if call_id is None:
            return None
        return self._calls.get(call_id)

    def take_held(self) -> CallItem | ResultItem | HoldItem | ServerRequestItem | None:
        """End a pause. Return the item at which the run was paused, marked as changed.

        Return `None` if the run was not paused."""
        if self.held_index is None:
            return None
        item = self.changed(self.held_index)
        self.held_index = None
        assert isinstance(item, CallItem | ResultItem | HoldItem | ServerRequestItem)
        return item

    # Reporting changes

    def rebuild(self) -> None:
        """Report in the next `take_changes` that items moved."""
        self._rebuilt = True

    def take_changes(self) -> tuple[bool, list[int]]:
        """Return whether items moved since the last call, and the indices of items that changed since then."""
        rebuilt, changed = self._rebuilt, sorted(self._changed)
        self._rebuilt = False
        self._changed.clear()
        return rebuilt, changed

    def take_cut(self) -> int | None:
        """Return the lowest index at which the items were cut off since the last call, or `None` if they were not cut.

        After the cut, new items may have been appended."""
        cut, self._first_removed = self._first_removed, None
        return cut

    def _move_from(self, index: int, offset: int) -> None:
        def moved(at: int) -> int:
            return at + offset * (at >= index)

        def moved_if_known(at: int | None) -> int | None:
            if at is None:
                return None
            return moved(at)

        self._calls = {call: moved(at) for call, at in self._calls.items()}
        for indices in (self.order, self.rounds, self.steps):
            indices[:] = map(moved, indices)
        self._changed = set(map(moved, self._changed))
        self.round, self.outcome, self.held_index = map(moved_if_known, (self.round, self.outcome, self.held_index))
