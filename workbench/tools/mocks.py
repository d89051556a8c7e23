"""Mocks: chooses the mock that answers a call, and makes its answer (docs/tools-and-mocks.md)."""

from __future__ import annotations

import asyncio
import copy
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from workbench.checks.check import (
    CallPython,
    Check,
    CheckContext,
    Checks,
    CheckVerdict,
    Judge,
    all_hold,
    asks,
    with_parts,
)
from workbench.checks.combined_kinds import Judged, PythonCheck
from workbench.checks.patterns import CheckError
from workbench.checks.text_kinds import Pattern
from workbench.dataclasses import dataclass, json_text
from workbench.suite.model import Mock
from workbench.tools.answer import OnProgress, ToolAnswer, ToolsError
from workbench.tools.python_code import PythonFunctions, in_thread
from workbench.trajectory.events import JsonValue, ResultSource, ToolCall

AskJudge = Callable[[Judged, JsonValue], Awaitable[CheckVerdict]]
"""Asks a language model to judge a value. Raises CheckError where that is impossible."""

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


class Run(Protocol):
    """Produces the answer; progress notices of a server go to `on_progress`."""

    async def __call__(self, on_progress: OnProgress | None = None) -> ToolAnswer: ...


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """Which source will answer a call, decided before anything runs; `server` is set for a real execution.

    `run` may be awaited once; it raises ToolsError for failures that are not the model's."""

    source: ResultSource
    run: Run
    server: str | None = None


class Mocks:
    """The mocks of one run, the case's before the suite's, with their state during it.

    `sleep` waits a number of seconds."""

    def __init__(
        self,
        case_mocks: tuple[Mock, ...],
        suite_mocks: tuple[Mock, ...],
        functions: PythonFunctions,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._mocks: tuple[tuple[Mock, ResultSource], ...] = (
            *((mock, "case mock") for mock in case_mocks),
            *((mock, "suite mock") for mock in suite_mocks),
        )
        self._functions = functions
        self._sleep = sleep
        self._answered: Counter[int] = Counter()

    async def plan(self, call: ToolCall, judge: AskJudge | None = None) -> PlannedAnswer | None:
        """Return the answer of the first mock whose tool and condition match, `None` when none does.

        Every plan counts as one call for a mock with `results`. A judge is asked only where everything else in a
        condition holds. Raises ToolsError when a condition cannot be evaluated."""
        for index, (mock, source) in enumerate(self._mocks):
            if mock.tool == call.tool and await self._holds(mock, call, judge):
                self._answered[index] += 1
                return PlannedAnswer(source, self._answer(mock, call, self._answered[index]))
        return None

    def count(self, call: ToolCall, answer: ToolAnswer) -> None:
        """Count a replayed call that was already answered, without asking a judge or Python.

        A mock whose condition needs one matches if the answer is its own. Raises ToolsError as `plan` does."""
        for index, (mock, _) in enumerate(self._mocks):
            if mock.tool != call.tool:
                continue
            held = self._held(mock, call)
            if held or (held is None and _written_answer(mock, call, self._answered[index] + 1) == answer):
                self._answered[index] += 1
                return

    def _held(self, mock: Mock, call: ToolCall) -> bool | None:
        """Return whether a condition holds; `None` where that cannot be known without a judge or Python."""
        when, arguments = mock.when or {}, call.arguments
        known = {}
        for n, check in when.items():
            if n not in arguments or not check.asks_outside:
                known[n] = check
        try:
            holds = all_hold(known, arguments)
        except CheckError as error:
            raise _condition_error(mock, error) from error
        if holds and len(known) < len(when):
            return None
        return holds

    async def _holds(self, mock: Mock, call: ToolCall, judge: AskJudge | None) -> bool:
        try:
            return await condition_holds(mock.when or {}, call.arguments, self._functions.answer, judge)
        except CheckError as error:
            raise _condition_error(mock, error) from error

    def _answer(self, mock: Mock, call: ToolCall, occurrence: int) -> Run:
        async def answer(on_progress: OnProgress | None = None) -> ToolAnswer:
            if mock.delay_ms:
                await self._sleep(mock.delay_ms / 1000)
            written = _written_answer(mock, call, occurrence)
            if written is not None:
                return written
            assert mock.python is not None
            reference = mock.python
            return await in_thread(lambda: self._computed(reference, call.arguments))

        return answer

    def _computed(self, reference: str, arguments: Mapping[str, JsonValue]) -> ToolAnswer:
        function = self._functions.function(reference)
        try:
            # A copy, or the function could change the recorded arguments of the call.
            value = function(copy.deepcopy(dict(arguments)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a stranger's code; the model is told, as of any tool)
            return ToolAnswer(f"{type(error).__name__}: {error}", is_error=True)
        try:
            return ToolAnswer(value if isinstance(value, str) else json_text(value))
        except (TypeError, ValueError, RecursionError) as error:
            return ToolAnswer(f"{reference} returned what is not JSON: {error}", is_error=True)


"""Checks that need a judge or Python."""


def _written_answer(mock: Mock, call: ToolCall, occurrence: int) -> ToolAnswer | None:
    """Return a mock's result for its matching call number `number`; `None` where its Python produces it."""
    if mock.error is not None:
        return ToolAnswer(mock.error, is_error=True)
    if mock.python is not None:
        return None
    if mock.results is not None:
        return mock_answer(mock.results[min(occurrence, len(mock.results)) - 1], call.arguments)
    return mock_answer(mock.result, call.arguments)


def _condition_error(mock: Mock, error: CheckError) -> ToolsError:
    return ToolsError(f"the condition of a mock for {mock.tool!r} cannot be evaluated: {error}")


async def condition_holds(
    when: Checks, arguments: Mapping[str, JsonValue], call_python: CallPython, judge: AskJudge | None
) -> bool:
    """Return whether the checks of a condition hold for a call's arguments.

    A judge is asked only where everything else holds. Raises CheckError when it cannot be evaluated."""
    # Among the other checks, a judged check would report that it needs a judge, or that its argument is missing.
    asked = []
    for name, check in when.items():
        if judge is not None and name in arguments and asks(check, Judged):
            asked.append(name)
    others = {}
    for name, check in when.items():
        if name not in asked:
            others[name] = check
    if not await _all_hold(others, arguments, CheckContext(call_python)):
        return False
    for name in asked:
        if judge is not None and not await _judged_holds(when[name], arguments[name], call_python, judge):
            return False
    return True


async def _all_hold(checks: Checks, arguments: Mapping[str, JsonValue], context: CheckContext) -> bool:
    if any(asks(check, PythonCheck, Pattern) for check in checks.values()):
        return await in_thread(lambda: all_hold(checks, arguments, context=context))
    return all_hold(checks, arguments, context=context)


async def _judged_holds(check: Check, value: JsonValue, call_python: CallPython, judge: AskJudge) -> bool:
    """Return whether a check with judged parts holds.

    A judge is asked only where the other parts do not decide."""

    async def holds(say: Judge) -> bool:
        return await _all_hold({"": check}, {"": value}, CheckContext(call_python, say))

    if not await holds(lambda _check, _value: CheckVerdict(1.0, True)):
        return False
    if await holds(lambda _check, _value: CheckVerdict(0.0, False)):
        return True
    judgements = {id(part): await judge(part, value) for part in with_parts(check) if isinstance(part, Judged)}
    return await holds(lambda part, _value: judgements[id(part)])


def mock_answer(result: JsonValue, arguments: Mapping[str, JsonValue]) -> ToolAnswer:
    """Return a mock's result as the model reads it: a text unchanged, anything else as compact JSON.

    In every text `{name}` is replaced by that argument of the call."""
    value = _filled(result, arguments)
    return ToolAnswer(value if isinstance(value, str) else json_text(value))


def default_answer(call: ToolCall) -> ToolAnswer:
    """Return the answer to a call that has no other source."""
    return ToolAnswer(
        json_text(
            {
                "status": "success",
                "result": f"Mock result for {call.tool}",
                "input_received": dict(call.arguments),
            }
        )
    )


def _filled(value: JsonValue, arguments: Mapping[str, JsonValue]) -> JsonValue:
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: _argument(match, arguments), value)
    if isinstance(value, list):
        return [_filled(item, arguments) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, arguments) for key, item in value.items()}
    return value


def _argument(match: re.Match[str], arguments: Mapping[str, JsonValue]) -> str:
    if match[1] not in arguments:
        return match[0]
    value = arguments[match[1]]
    if isinstance(value, str):
        return value
    return json_text(value)
