"""Measures an answer while it arrives, against the limits of one answer."""

from __future__ import annotations

from workbench.limits import MAX_ANSWER_CALLS, MAX_ANSWER_CHARS, MAX_ANSWER_VALUES, MAX_CALL_ARGUMENTS, Limit
from workbench.providers.model import TooMuchError
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
)
from workbench.trajectory.messages import JsonValue


class AnswerSize:
    """The size of one answer so far."""

    def __init__(self) -> None:
        self._characters = self._calls = self._values = 0

    def add(self, event: ModelEvent) -> None:
        """Count a piece of the answer. Raises TooMuchError when the answer exceeds a limit."""
        match event:
            case TextDelta(text=piece) | ReasoningDelta(text=piece) | CallArgumentsDelta(fragment=piece):
                self._characters = _counted(self._characters, len(piece), MAX_ANSWER_CHARS)
            case CallStarted():
                self._calls = _counted(self._calls, 1, MAX_ANSWER_CALLS)
            case CallFinished(arguments=arguments):
                _counted(0, len(arguments), MAX_CALL_ARGUMENTS)
                values = _values_in(dict(arguments), MAX_ANSWER_VALUES)
                self._values = _counted(self._values, values, MAX_ANSWER_VALUES)


def _counted(before: int, more: int, limit: Limit) -> int:
    if before + more > limit:
        raise TooMuchError(limit.reached())
    return before + more


def _values_in(value: JsonValue, most: int) -> int:
    """Returns the number of values nested in a value, at any depth. Counting stops soon after `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        value = waiting.pop()
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        count += len(inside)
        waiting.extend(inside)
    return count
