"""Chooses the mock that answers a tool call, and makes the answer (docs/tools-and-mocks.md)."""

from __future__ import annotations

import asyncio
import copy
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from workbench.checks.check import (
    Check,
    CheckContext,
    Checks,
    CheckVerdict,
    Judge,
    all_hold,
    has_kind,
    with_parts,
)
from workbench.checks.clock import Clock
from workbench.checks.combined_kinds import Judged, PythonCheck
from workbench.checks.patterns import CheckError
from workbench.checks.text_kinds import Pattern
from workbench.dataclasses import dataclass, json_text
from workbench.suite.case_rows import COLUMN, NO_ROW
from workbench.suite.model import Mock
from workbench.tools.answer import OnProgress, PythonReferenceError, ToolAnswer, ToolsError
from workbench.tools.python_code import PythonFunctions, in_thread
from workbench.trajectory.events import JsonValue, ResultSource, ToolCall

if TYPE_CHECKING:
    from workbench.suite.row_files import Row
    from workbench.tools.questions import AskRun

AskJudge = Callable[[Judged, JsonValue], Awaitable[CheckVerdict]]
"""Asks a language model to judge a value. Raises CheckError if that is impossible."""

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


class MakeAnswer(Protocol):
    """Makes the answer to a call.

    If a server is called, `on_progress` gets the server's reports of progress, and `ask` gets the server's requests."""

    async def __call__(self, on_progress: OnProgress | None = None, ask: AskRun | None = None) -> ToolAnswer: ...


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """What will answer a call. If a server executes the call, `server` is its name.

    Await `run` once, inside the context manager `turn`, which may wait for other calls of the server. `run` raises
    ToolsError for a failure for which the model is not responsible."""

    source: ResultSource
    run: MakeAnswer
    server: str | None = None
    turn: Callable[[], AbstractAsyncContextManager[object]] = nullcontext


class Mocks:
    """The mocks of one run, and how many calls each has answered.

    Mocks of the case precede mocks of the suite. `sleep` waits a number of seconds. `row` is the row of data for the
    case."""

    def __init__(
        self,
        case_mocks: tuple[Mock, ...],
        suite_mocks: tuple[Mock, ...],
        functions: PythonFunctions,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        row: Row = NO_ROW,
        clock: Clock | None = None,
    ) -> None:
        self.row = row
        self._mocks: list[tuple[Mock, ResultSource]] = [(mock, "case mock") for mock in case_mocks]
        self._mocks += [(mock, "suite mock") for mock in suite_mocks]
        self._functions = functions
        self._context = CheckContext(functions.answer, clock=clock)
        self._sleep = sleep
        self._answered: dict[int, int] = defaultdict(int)

    async def plan(self, call: ToolCall, judge: AskJudge | None = None) -> PlannedAnswer | None:
        """Return the answer of the first mock whose tool and condition match, `None` if no mock matches.

        Each use of this method counts as a call of the mock, which may give its `results` in turn. A judge is asked
        only if all other checks of a condition pass. Raises ToolsError if a condition cannot be evaluated."""
        for index, (mock, source) in enumerate(self._mocks):
            if mock.tool == call.tool and self._has_answers_left(index) and await self._holds(mock, call, judge):
                self._answered[index] += 1
                return PlannedAnswer(source, self._answer(mock, call, self._answered[index]))
        return None

    def count_replayed(self, call: ToolCall, answer: ToolAnswer) -> None:
        """Count a call whose recorded answer was replayed, for the mock that gave the answer.

        No judge is asked and no Python is called. Raises ToolsError if a condition cannot be evaluated."""
        # If a condition needs a judge or Python, the mock is assumed to have answered if it would give the same answer.
        for index, (mock, _) in enumerate(self._mocks):
            if mock.tool != call.tool or not self._has_answers_left(index):
                continue
            held = self._holds_without_judge(mock, call)
            if held or (held is None and _written_answer(mock, call, self._answered[index] + 1, self.row) == answer):
                self._answered[index] += 1
                return

    def _has_answers_left(self, index: int) -> bool:
        times = self._mocks[index][0].times
        return times is None or self._answered[index] < times

    def _holds_without_judge(self, mock: Mock, call: ToolCall) -> bool | None:
        when, arguments = mock.when or {}, call.arguments
        # If an argument is missing, its check fails without a judge.
        known = {name: check for name, check in when.items() if name not in arguments or not check.uses_outside_service}
        try:
            holds = all_hold(known, arguments, context=self._context)
        except CheckError as error:
            raise _condition_error(mock, error) from error
        if holds and len(known) < len(when):
            return None
        return holds

    async def _holds(self, mock: Mock, call: ToolCall, judge: AskJudge | None) -> bool:
        try:
            return await condition_holds(mock.when or {}, call.arguments, self._context, judge)
        except CheckError as error:
            raise _condition_error(mock, error) from error

    def _answer(self, mock: Mock, call: ToolCall, occurrence: int) -> MakeAnswer:
        async def answer(on_progress: OnProgress | None = None, ask: AskRun | None = None) -> ToolAnswer:
            if mock.delay_ms:
                await self._sleep(mock.delay_ms / 1000)
            written = _written_answer(mock, call, occurrence, self.row)
            if written is not None:
                return written
            assert mock.python is not None
            reference = mock.python
            return await in_thread(lambda: self._computed(reference, call.arguments))

        return answer

    def _computed(self, reference: str, arguments: Mapping[str, JsonValue]) -> ToolAnswer:
        function = self._functions.function(reference)
        # The suite's code may raise anything. The model then gets a tool error, as from any tool.
        try:
            # The function gets a copy, so it cannot change the recorded arguments of the call.
            value = function(copy.deepcopy(dict(arguments)))
        except (Exception, SystemExit) as error:
            if isinstance(error, TypeError) and error.__traceback__ is not None and error.__traceback__.tb_next is None:
                # The function was not entered. This is a mistake of the suite, not an answer for the model.
                raise PythonReferenceError(f"{reference} must take one argument, a dict: {error}") from error
            return ToolAnswer(f"{type(error).__name__}: {error}", is_error=True)
        try:
            return ToolAnswer(_as_text(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise PythonReferenceError(f"{reference} returned what is not JSON: {error}") from error


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json_text(value)


def _written_answer(mock: Mock, call: ToolCall, occurrence: int, row: Row) -> ToolAnswer | None:
    if mock.error is not None:
        return ToolAnswer(mock.error, is_error=True)
    if mock.python is not None:
        return None
    # After the last of several results, that result is repeated.
    if mock.results is not None:
        return mock_answer(mock.results[min(occurrence, len(mock.results)) - 1], call.arguments, row)
    return mock_answer(mock.result, call.arguments, row)


def _condition_error(mock: Mock, error: CheckError) -> ToolsError:
    return ToolsError(f"the condition of a mock for {mock.tool!r} cannot be evaluated: {error}")


async def condition_holds(
    when: Checks, arguments: Mapping[str, JsonValue], context: CheckContext, judge: AskJudge | None
) -> bool:
    """Return whether a call's arguments pass the checks of a condition.

    A judge is asked only if all other checks pass. Raises CheckError if a check cannot be evaluated."""
    # A judge is asked only if there is one and the argument exists. All other checks are evaluated directly, and report
    # what is missing.
    asked, others = {}, {}
    for name, check in when.items():
        if judge is not None and name in arguments and has_kind(check, Judged):
            asked[name] = check
        else:
            others[name] = check
    if not await _all_hold(others, arguments, context):
        return False
    for name, check in asked.items():
        if judge is not None and not await _judged_holds(check, arguments[name], context, judge):
            return False
    return True


async def _all_hold(checks: Checks, arguments: Mapping[str, JsonValue], context: CheckContext) -> bool:
    if any(has_kind(check, PythonCheck, Pattern) for check in checks.values()):
        return await in_thread(lambda: all_hold(checks, arguments, context=context))
    return all_hold(checks, arguments, context=context)


async def _judged_holds(check: Check, value: JsonValue, context: CheckContext, judge: AskJudge) -> bool:
    """Return whether a value passes a check that contains checks for a judge.

    The judge is asked only if the other parts of the check do not decide."""
    # No judge is needed if the check fails even with perfect judgements, or holds even if all judgements are zero.

    async def holds(judge: Judge) -> bool:
        return await _all_hold({"": check}, {"": value}, replace(context, judge=judge))

    if not await holds(lambda _check, _value: CheckVerdict(1.0, True)):
        return False
    if await holds(lambda _check, _value: CheckVerdict(0.0, False)):
        return True
    judgements = {}
    for part in with_parts(check):
        if isinstance(part, Judged):
            judgements[id(part)] = await judge(part, value)
    return await holds(lambda part, _value: judgements[id(part)])


def mock_answer(result: JsonValue, arguments: Mapping[str, JsonValue], row: Row = NO_ROW) -> ToolAnswer:
    """Convert a mock's result to an answer. Text stays text, and any other value becomes compact JSON.

    In every text, `{name}` is replaced by the argument of that name, and `{row.name}` is replaced by the row's column
    of that name. A text that is only a column becomes the column's value, which need not be text."""
    return ToolAnswer(_as_text(_filled(result, arguments, row)))


def default_answer(call: ToolCall) -> ToolAnswer:
    """Return the answer to a call that neither a mock nor a server answers."""
    answer = {
        "status": "success",
        "result": f"Mock result for {call.tool}",
        "input_received": dict(call.arguments),
    }
    return ToolAnswer(json_text(answer))


def _filled(value: JsonValue, arguments: Mapping[str, JsonValue], row: Row) -> JsonValue:
    if isinstance(value, str):
        alone = COLUMN.fullmatch(value)
        if alone is not None and alone[1] in row:
            return row[alone[1]]
        return _PLACEHOLDER.sub(lambda match: _argument(match, arguments, row), value)
    if isinstance(value, list):
        return [_filled(item, arguments, row) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, arguments, row) for key, item in value.items()}
    return value


def _argument(match: re.Match[str], arguments: Mapping[str, JsonValue], row: Row) -> str:
    column = match[1].removeprefix("row.")
    if column != match[1] and column in row:
        return _as_text(row[column])
    # If there is no such argument, the braces are ordinary text, for example JSON.
    if match[1] not in arguments:
        return match[0]
    return _as_text(arguments[match[1]])
