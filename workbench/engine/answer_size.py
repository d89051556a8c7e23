"""Measures an answer while it arrives, against the limits of `providers.model`."""

from __future__ import annotations

from workbench.providers.model import MOST_ARGUMENTS, MOST_CALLS, MOST_CHARACTERS, MOST_VALUES, TooMuchError
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
                self._characters = _counted(self._characters, len(piece), MOST_CHARACTERS, "characters")
            case CallStarted():
                self._calls = _counted(self._calls, 1, MOST_CALLS, "calls")
            case CallFinished(arguments=arguments):
                _counted(0, len(arguments), MOST_ARGUMENTS, "arguments of a call")
                values = _values_in(dict(arguments), MOST_VALUES)
                self._values = _counted(self._values, values, MOST_VALUES, "values in the arguments of calls")


def _counted(before: int, more: int, most: int, what: str) -> int:
    if before + more > most:
        raise TooMuchError(f"the model sent too much: more than {most:,} {what} in one answer")
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
