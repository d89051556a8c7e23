"""Results of earlier calls, read for the values that a later call needs."""

from __future__ import annotations

import json
import re
from functools import cached_property

from workbench.dataclasses import dataclass
from workbench.providers.offline.language import split_name
from workbench.trajectory.events import JsonValue

_NUMBER = re.compile(r"(?<![\w.])-?\d{1,18}(?:\.\d{1,15})?(?![\w]|\.\d)", re.ASCII)
_TELLING_KEYS = ("result", "value", "answer", "total", "output", "sum")
_MAX_TOLD_CHARS = 400
_DEEPEST = 6
"""The most levels of nesting that are searched for a value."""
_MAX_PARSED = 200_000
"""The most characters of a result that are parsed as JSON."""


@dataclass(frozen=True)
class ToolResult:
    """The result of an earlier call, from the content of its tool message."""

    content: str
    is_error: bool = False

    @cached_property
    def data(self) -> JsonValue:
        """The content parsed as JSON, or the text if it is not JSON."""
        if len(self.content) > _MAX_PARSED:
            return self.content
        try:
            return _finite(json.loads(self.content))
        except (ValueError, RecursionError):
            return self.content

    @cached_property
    def number(self) -> int | float | None:
        """The single number of the result, if there is one."""
        return _number_in(self.data, _DEEPEST)

    def named(self, name: str) -> JsonValue:
        """Return the first value that the result holds under a name; None if there is none.

        Names are compared word by word: `orderId` finds `order_id`."""
        return _under(self.data, split_name(name), _DEEPEST)

    @property
    def line(self) -> str:
        """The result in one readable line of bounded length."""
        text = " ".join(_readable(self.data).split())
        if len(text) <= _MAX_TOLD_CHARS:
            return text
        return text[: _MAX_TOLD_CHARS - 1] + "…"


def _finite(data: JsonValue) -> JsonValue:
    # Python parses NaN and Infinity, which are not JSON and could not be sent in an argument. This raises ValueError.
    json.dumps(data, allow_nan=False)
    return data


def _number_in(data: JsonValue, depth: int) -> int | float | None:
    if isinstance(data, bool) or data is None or depth == 0:
        return None
    if isinstance(data, int | float):
        return data
    if isinstance(data, str):
        found = _NUMBER.findall(data[:_MAX_TOLD_CHARS])
        if not found:
            return None
        return float(found[-1]) if "." in found[-1] else int(found[-1])
    if isinstance(data, list):
        if len(data) != 1:
            return None
        return _number_in(data[0], depth - 1)
    for key in _TELLING_KEYS:
        if key in data and (number := _number_in(data[key], depth - 1)) is not None:
            return number
    # Among several numbers under other keys, none is the obvious result.
    numbers = []
    for value in data.values():
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers.append(value)
    return numbers[0] if len(numbers) == 1 else None


def _under(data: JsonValue, words: list[str], depth: int) -> JsonValue:
    if depth == 0:
        return None
    if isinstance(data, dict):
        for key, value in data.items():
            if split_name(key) == words and value is not None:
                return value
        inner = list(data.values())
    elif isinstance(data, list):
        inner = data
    else:
        return None
    for one in inner:
        found = _under(one, words, depth - 1)
        if found is not None:
            return found
    return None


def _readable(data: JsonValue) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, dict) and all(not isinstance(value, dict | list) for value in data.values()):
        return ", ".join(f"{key} {_plain(value)}" for key, value in data.items()) or "{}"
    return json.dumps(data, ensure_ascii=False)


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
