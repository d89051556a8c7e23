"""A run as it is shown: events and the grade folded into items, with word of which items changed.

It follows the same events as `TrajectoryFold`, but is forgiving: an event that does not fit is left out of the picture,
never a reason to fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.grading.grade import CallPairing, Issue, RunResult
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Event,
    ExecutionStarted,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
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
    OutcomeItem,
    ResultItem,
    RoundItem,
    TextItem,
    ToolsItem,
)
from workbench.tui.state.wrapped import GrowingText


class RunView:
    """The items of one run, in the order in which they are shown."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.graded = False
        self._changed: set[int] = set()
        self._rebuilt = False
        self._round: int | None = None
        self._calls: dict[str, int] = {}
        self._order: list[int] = []
        self._steps = 0
        self._outcome: int | None = None

    def add(self, event: Event) -> None:
        """Take one more event of the run."""
        match event.what:
            case RunStarted() as start:
                self._begin(start)
            case RequestStarted(round=number):
                if not self._is_under_way(number):
                    self._steps += 1
                    self._round = self._append(RoundItem(self._steps, number))
            case RequestFailed(error=error):
                if (asked := self._asked()) is not None:
                    asked.errors.append(error)
            case TextDelta(text=text):
                self._say(text, reasoning=False)
            case ReasoningDelta(text=text):
                self._say(text, reasoning=True)
            case CallStarted(call_id=call_id, tool=tool):
                if call_id not in self._calls:
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
            case ExecutionStarted(call_id=call_id, server=server):
                if (call := self._call(call_id)) is not None:
                    call.server = server
            case ResultReceived(call_id=call_id) as result:
                self._answer(call_id, result)
            case RunFinished() as finish:
                self._end(finish)

    def grade(self, result: RunResult, expected: Sequence[str] = ()) -> None:
        """Put the grade where it belongs: verdicts and issues to their calls, missing calls where they were expected.
        `expected` are the tools of the case's expected calls. Only the first grade counts."""
        if self.graded:
            return
        if self._outcome is None:
            self._outcome = self._append(OutcomeItem())
        if (asked := self._asked()) is not None:
            asked.over = True
        grade = result.grade
        issues = grade.issues if grade is not None else ()
        pairings = grade.pairings if grade is not None else ()
        for place, index in enumerate(self._order):
            call = self.items[index]
            assert isinstance(call, CallItem)
            call.issues = tuple(issue for issue in issues if issue.call == place)
            call.verdicts = next((pairing.arguments for pairing in pairings if pairing.call == place), ())
        outcome = self.items[self._outcome]
        assert isinstance(outcome, OutcomeItem)
        outcome.result = result
        placed = self._missing(pairings, issues, expected)
        shown = {issue.expected_call for _, item in placed for issue in item.issues}
        outcome.issues = tuple(
            issue
            for issue in issues
            if (issue.call is None or issue.call >= len(self._order))
            and (issue.expected_call is None or issue.expected_call not in shown)
        )
        for index, item in reversed(placed):
            self._insert(index, item)
        self.graded = self._rebuilt = True

    def take_changes(self) -> tuple[bool, list[int]]:
        """Whether items were put in between, and the indices of those that changed since this was last asked."""
        rebuilt, changed = self._rebuilt, sorted(self._changed)
        self._rebuilt = False
        self._changed.clear()
        return rebuilt, changed

    def _begin(self, start: RunStarted) -> None:
        if start.system:
            self._append(MessageItem("system", GrowingText(start.system)))
        if start.tools:
            self._append(ToolsItem(start.tools))
        for message in start.messages:
            self._steps += 1
            self._append(_message_item(message, self._steps))

    def _say(self, text: str, *, reasoning: bool) -> None:
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
        if call_id in self._calls:
            index = self._calls[call_id] + 1
            item = self.items[index]
            assert isinstance(item, ResultItem)
            item.result = result
            self._changed.update((index - 1, index))

    def _end(self, finish: RunFinished) -> None:
        self._finish_text()
        if (asked := self._asked()) is not None:
            asked.over = True
        if self._outcome is None:
            self._outcome = self._append(OutcomeItem(finish))

    def _missing(
        self, pairings: Sequence[CallPairing], issues: Sequence[Issue], tools: Sequence[str]
    ) -> list[tuple[int, MissingItem]]:
        """Expected calls that never came, each with the index before which it is shown: behind the call of the nearest
        earlier expectation that was met, else before the first call."""
        assert self._outcome is not None
        where = self._order[0] if self._order else self._outcome
        placed: list[tuple[int, MissingItem]] = []
        by_expected = {pairing.expected_call: pairing for pairing in pairings if pairing.expected_call is not None}
        lost = {issue.expected_call for issue in issues if issue.kind == "missing call"} | {
            expected for expected, pairing in by_expected.items() if pairing.call is None
        }
        for expected in sorted({*by_expected, *(index for index in lost if index is not None)}):
            pairing = by_expected.get(expected)
            if pairing is not None and pairing.call is not None and pairing.call < len(self._order):
                where = self._order[pairing.call] + 2
            elif expected in lost:
                own = tuple(issue for issue in issues if issue.expected_call == expected and issue.call is None)
                named = tools[expected] if expected < len(tools) else None
                tool = named or next((issue.tool for issue in own if issue.tool), "a call")
                placed.append((where, MissingItem(tool, pairing.arguments if pairing else (), own)))
        placed.sort(key=lambda pair: pair[0])
        return placed

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

    def _append(self, item: Item) -> int:
        self.items.append(item)
        self._changed.add(len(self.items) - 1)
        return len(self.items) - 1

    def _insert(self, index: int, item: Item) -> None:
        self.items.insert(index, item)
        moved = {call: at + 1 if at >= index else at for call, at in self._calls.items()}
        self._calls = moved
        self._order = [at + 1 if at >= index else at for at in self._order]
        if self._round is not None and self._round >= index:
            self._round += 1
        if self._outcome is not None and self._outcome >= index:
            self._outcome += 1


def _message_item(message: Message, number: int) -> MessageItem:
    return MessageItem(message.role, GrowingText(message.content), number, message.tool_calls)
