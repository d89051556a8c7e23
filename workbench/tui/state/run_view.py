"""A run as it is shown: events and the grade folded into items, with word of which items changed.

It follows the same events as `TrajectoryFold`, but is forgiving: an event that does not fit is left out of the picture,
never a reason to fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from workbench.grading.grade import Issue, RunResult
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Event,
    ExecutionProgress,
    ExecutionStarted,
    Paused,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    TextDelta,
)
from workbench.trajectory.messages import Message
from workbench.tui.state.items import (
    CallItem,
    Item,
    MessageItem,
    MissingItem,
    NoticeItem,
    OutcomeItem,
    ResultItem,
    RoundItem,
    TextItem,
    ToolsItem,
)
from workbench.tui.state.missing import PlacedCall, missing_calls
from workbench.tui.state.words import duration
from workbench.tui.state.wrapped import GrowingText


class RunView:
    """The items of one run, in the order in which they are shown."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.graded = False
        self.began: datetime | None = None
        """When the run began, where that is known: waits then say when they end."""
        self._changed: set[int] = set()
        self._rebuilt = False
        self._cut: int | None = None
        self._round: int | None = None
        self._calls: dict[str, int] = {}
        self._order: list[int] = []
        self._steps = 0
        self._outcome: int | None = None
        self._pause: int | None = None
        """The item that shows where the run is held."""

    def add(self, event: Event) -> None:
        """Take one more event of the run."""
        match event.what:
            case RunStarted() as start:
                self._begin(start)
            case RequestStarted(round=number):
                if self._is_under_way(number):
                    self._begin_again()
                else:
                    self._steps += 1
                    self._round = self._append(RoundItem(self._steps, number))
            case RequestFailed(error=error):
                if (asked := self._asked()) is not None:
                    asked.errors.append(error)
            case RetryScheduled() as retry:
                if (asked := self._asked()) is not None:
                    asked.retry = retry
                    end_ms = event.time_ms + retry.wait_ms
                    asked.retry_at = self.began + timedelta(milliseconds=end_ms) if self.began else None
            case TextDelta(text=text):
                self._say(text, reasoning=False)
            case ReasoningDelta(text=text):
                self._say(text, reasoning=True)
            case CallStarted(call_id=call_id, tool=tool):
                if call_id not in self._calls:
                    self._answers()
                    self._finish_text()
                    self._calls[call_id] = self._append(CallItem(call_id, tool, len(self._order)))
                    self._order.append(self._calls[call_id])
                    self._append(ResultItem())
            case CallArgumentsDelta(call_id=call_id, fragment=fragment):
                if (call := self._call(call_id)) is not None:
                    call.fragments.append(fragment)
            case CallFinished(call_id=call_id) as finished:
                if (call := self._call(call_id)) is not None:
                    call.arguments, call.raw, call.problem = finished.arguments, finished.raw, finished.problem
            case ResponseFinished() as response:
                self._finish_text()
                if (asked := self._asked()) is not None:
                    asked.response, asked.over = response, True
            case Paused(why=why, call_id=call_id):
                self._hold(why, call_id)
            case Resumed(held_ms=held_ms):
                self._go_on(held_ms)
            case ExecutionStarted(call_id=call_id, server=server):
                if (call := self._call(call_id)) is not None and (answer := self._result(call_id)) is not None:
                    call.server, answer.executing = server, True
            case ExecutionProgress(call_id=call_id) as progress:
                if (answer := self._result(call_id)) is not None:
                    answer.progress = progress
            case ResultReceived(call_id=call_id) as result:
                self._answer(call_id, result)
            case RunFinished() as finish:
                self._end(finish)

    def grade(self, result: RunResult, expected: Sequence[PlacedCall] = (), former: RunResult | None = None) -> None:
        """Put the grade where it belongs: verdicts and issues to their calls, missing calls where they were expected.
        `expected` are the case's expected calls with their places. It takes the place of any grade before it; `former`
        is then what the run came to when it ran."""
        if self._outcome is None:
            self._outcome = self._append(OutcomeItem())
        if (asked := self._asked()) is not None:
            asked.over = True
        before = self._take_missing()
        grade = result.grade
        issues = grade.issues if grade is not None else ()
        pairings = grade.pairings if grade is not None else ()
        outcome = self.items[self._outcome]
        assert isinstance(outcome, OutcomeItem)
        touched: set[int] = {id(outcome)}
        issues_of: defaultdict[int | None, tuple[Issue, ...]] = defaultdict(tuple)
        for issue in issues:
            issues_of[issue.call] += (issue,)
        verdicts_of = {pairing.call: pairing.arguments for pairing in reversed(pairings)}
        for place, index in enumerate(self._order):
            call = self.items[index]
            assert isinstance(call, CallItem)
            found, verdicts = issues_of[place], verdicts_of.get(place, ())
            if (found, verdicts) != (call.issues, call.verdicts):
                call.issues, call.verdicts = found, verdicts
                touched.add(id(call))
        outcome.result, outcome.former = result, former
        placed = missing_calls(pairings, issues, expected, self._order, self._outcome)
        if placed == before:
            placed = before  # the very same items: one may be unfolded, or under the cursor
        else:
            self._rebuilt = True
        shown = {issue.expected_call for _, item in placed for issue in item.issues}
        outcome.issues = tuple(
            issue
            for issue in issues
            if (issue.call is None or issue.call >= len(self._order))
            and (issue.expected_call is None or issue.expected_call not in shown)
        )
        for index, item in reversed(placed):
            self._insert(index, item)
        self._changed.update(index for index, item in enumerate(self.items) if id(item) in touched)
        self._rebuilt = self._rebuilt or not self.graded
        self.graded = True

    def _take_missing(self) -> list[tuple[int, MissingItem]]:
        """Take the missing calls out; each with the index of the item before which it stood, without the others."""
        taken: list[tuple[int, MissingItem]] = []
        for index in range(len(self.items) - 1, -1, -1):
            item = self.items[index]
            if isinstance(item, MissingItem):
                del self.items[index]
                taken.append((index, item))
                self._move_from(index, -1)
        return [(index - number, item) for number, (index, item) in enumerate(reversed(taken))]

    def take_changes(self) -> tuple[bool, list[int]]:
        """Whether items were put in between, and the indices of those that changed since this was last asked."""
        rebuilt, changed = self._rebuilt, sorted(self._changed)
        self._rebuilt = False
        self._changed.clear()
        return rebuilt, changed

    def take_cut(self) -> int | None:
        """How many of the first items are still those that they were when this was last asked; `None` for all of them.
        The others were void, and there may be new ones in their places."""
        cut, self._cut = self._cut, None
        return cut

    def _begin(self, start: RunStarted) -> None:
        for notice in start.notices:
            self._append(NoticeItem(notice))
        if start.system:
            self._append(MessageItem("system", GrowingText(start.system)))
        if start.tools:
            self._append(ToolsItem(start.tools))
        for message in start.messages:
            self._steps += 1
            self._append(_message_item(message, self._steps))

    def _begin_again(self) -> None:
        """A retry: what the failed attempt said is void, why it failed stays."""
        asked = self._asked()
        if asked is None or self._round is None or self._outcome is not None:
            return
        asked.retry, asked.begun = None, False
        kept = self._round + 1
        if kept < len(self.items):
            del self.items[kept:]
            self._cut = kept if self._cut is None else min(self._cut, kept)
            self._changed = {index for index in self._changed if index < kept}
            self._calls = {call: index for call, index in self._calls.items() if index < kept}
            self._order = [index for index in self._order if index < kept]
            self._pause = None

    def _hold(self, why: str, call_id: str | None) -> None:
        if call_id is None:
            self._pause = self._append(NoticeItem(f"held: {why}", held=True))
        elif (answer := self._result(call_id)) is not None:
            answer.held = why
            self._pause = self._calls[call_id] + 1

    def _go_on(self, held_ms: float | None) -> None:
        if self._pause is None:
            return
        item = self.items[self._pause]
        self._changed.add(self._pause)
        self._pause = None
        if isinstance(item, ResultItem):
            item.held, item.held_ms = None, item.held_ms + (held_ms or 0.0)
        elif isinstance(item, NoticeItem):
            item.text, item.held = item.text + (f" (for {duration(held_ms)})" if held_ms is not None else ""), False

    def _answers(self) -> None:
        """The model says the first thing of its answer."""
        if self._round is not None:
            item = self.items[self._round]
            assert isinstance(item, RoundItem)
            if not item.begun:
                item.begun = True
                self._changed.add(self._round)

    def _say(self, text: str, *, reasoning: bool) -> None:
        self._answers()
        last = self.items[-1] if self.items else None
        if isinstance(last, TextItem) and last.reasoning == reasoning and not last.done:
            last.text.append(text)
            self._changed.add(len(self.items) - 1)
        else:
            self._finish_text()
            self._append(TextItem(GrowingText(text), reasoning))

    def _finish_text(self) -> None:
        last = self.items[-1] if self.items else None
        if isinstance(last, TextItem) and not last.done:
            last.done = True
            self._changed.add(len(self.items) - 1)

    def _answer(self, call_id: str, result: ResultReceived) -> None:
        if (item := self._result(call_id)) is not None:
            item.result = result
            self._changed.add(self._calls[call_id])

    def _end(self, finish: RunFinished) -> None:
        self._finish_text()
        if (asked := self._asked()) is not None:
            asked.over, asked.retry = True, None
            if asked.errors and asked.errors[-1] == finish.error:
                asked.errors.pop()  # the outcome says it
        self._go_on(None)
        if self._outcome is None:
            self._outcome = self._append(OutcomeItem(finish))

    def _is_under_way(self, number: int) -> bool:
        asked = self._asked()
        return asked is not None and asked.round == number and asked.response is None

    def _asked(self) -> RoundItem | None:
        if self._round is None:
            return None
        item = self.items[self._round]
        assert isinstance(item, RoundItem)
        self._changed.add(self._round)
        return item

    def _call(self, call_id: str) -> CallItem | None:
        index = self._calls.get(call_id)
        if index is None:
            return None
        item = self.items[index]
        assert isinstance(item, CallItem)
        self._changed.add(index)
        return item

    def _result(self, call_id: str) -> ResultItem | None:
        index = self._calls.get(call_id)
        if index is None:
            return None
        item = self.items[index + 1]
        assert isinstance(item, ResultItem)
        self._changed.add(index + 1)
        return item

    def _append(self, item: Item) -> int:
        self.items.append(item)
        self._changed.add(len(self.items) - 1)
        return len(self.items) - 1

    def _insert(self, index: int, item: Item) -> None:
        self.items.insert(index, item)
        self._move_from(index, 1)

    def _move_from(self, index: int, by: int) -> None:
        """What stood at an index, or below, is elsewhere now."""
        self._calls = {call: at + by if at >= index else at for call, at in self._calls.items()}
        self._order = [at + by if at >= index else at for at in self._order]
        if self._round is not None and self._round >= index:
            self._round += by
        if self._outcome is not None and self._outcome >= index:
            self._outcome += by


def _message_item(message: Message, number: int) -> MessageItem:
    return MessageItem(message.role, GrowingText(message.content), number, message.tool_calls)
