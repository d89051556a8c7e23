"""Results of earlier calls, read for the values that a later call needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cached_property

from workbench.dataclasses import dataclass
from workbench.providers.offline.words import split_name
from workbench.startup import late_pattern
from workbench.trajectory.events import JsonValue

_NUMBER = late_pattern(r"(?<![\w.])-?\d{1,18}(?:\.\d{1,15})?(?![\w]|\.\d)", re.ASCII)
_RESULT_KEYS = ("result", "value", "answer", "total", "output", "sum")
_MAX_SHOWN_CHARS = 400
_MAX_DEPTH = 6
"""The most levels of nesting that are searched for a value."""
_MAX_PARSED_CHARS = 200_000


@dataclass(frozen=True)
class ToolResult:
    """The result of an earlier call, from the content of its tool message."""

    content: str
    is_error: bool = False

    @cached_property
    def data(self) -> JsonValue:
        """The content parsed as JSON, or the text if it is not JSON."""
        try:
            data: JsonValue = json.loads(self.content[:_MAX_PARSED_CHARS])
            # Python parses NaN and Infinity, which are not JSON and could not be sent in an argument.
            json.dumps(data, allow_nan=False)
        except (ValueError, RecursionError):
            return self.content
        return data

    @cached_property
    def number(self) -> int | float | None:
        """The single number of the result, if there is one."""
        return _number_in(self.data, _MAX_DEPTH)

    def named(self, name: str) -> JsonValue:
        """Return the first value that the result holds under a name; None if there is none.

        Names are compared word by word: `orderId` finds `order_id`."""
        return _under(self.data, split_name(name), _MAX_DEPTH)

    @property
    def line(self) -> str:
        """The result in one readable line of bounded length."""
        text = " ".join(_readable(self.data).split())
        return text if len(text) <= _MAX_SHOWN_CHARS else text[: _MAX_SHOWN_CHARS - 1] + "…"


def _number_in(data: JsonValue, depth: int) -> int | float | None:
    if isinstance(data, bool) or depth == 0:
        return None
    if isinstance(data, int | float):
        return data
    if isinstance(data, str):
        found = _NUMBER.findall(data[:_MAX_SHOWN_CHARS])
        if not found:
            return None
        return float(found[-1]) if "." in found[-1] else int(found[-1])
    if isinstance(data, list):
        return _number_in(data[0], depth - 1) if len(data) == 1 else None
    if not isinstance(data, dict):
        return None
    for key in _RESULT_KEYS:
        if key in data and (number := _number_in(data[key], depth - 1)) is not None:
            return number
    # Among several numbers under other keys, none is the obvious result.
    numbers = [value for value in data.values() if isinstance(value, int | float) and not isinstance(value, bool)]
    return numbers[0] if len(numbers) == 1 else None


def _under(data: JsonValue, words: tuple[str, ...], depth: int) -> JsonValue:
    inner: Iterable[JsonValue] = data if isinstance(data, list) else ()
    if isinstance(data, dict):
        for key, value in data.items():
            if split_name(key) == words and value is not None:
                return value
        inner = data.values()
    found = (_under(one, words, depth - 1) for one in inner if depth > 1)
    return next((one for one in found if one is not None), None)


def _readable(data: JsonValue) -> str:
    if isinstance(data, dict) and all(not isinstance(value, dict | list) for value in data.values()):
        return ", ".join(f"{key} {_plain(value)}" for key, value in data.items()) or "{}"
    return _plain(data)


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
