"""The results of tools: as a source of values, and as text for the answer."""

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
_MAX_PARSED = 200_000


@dataclass(frozen=True)
class ToolResult:
    """The content of a tool message."""

    content: str
    is_error: bool = False

    @cached_property
    def data(self) -> JsonValue:
        """The content as JSON, or as text."""
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
        """Returns the first value in the result under a name, however that is spelt; None without one."""
        return _under(self.data, split_name(name), _DEEPEST)

    @property
    def line(self) -> str:
        """Returns the result in one readable line of bounded length."""
        text = " ".join(_told(self.data).split())
        return text if len(text) <= _MAX_TOLD_CHARS else text[: _MAX_TOLD_CHARS - 1] + "…"


def _finite(data: JsonValue) -> JsonValue:
    """Parses JSON that can be written again: NaN and Infinity, which Python reads, are refused."""
    json.dumps(data, allow_nan=False)
    return data


def _number_in(data: JsonValue, depth: int) -> int | float | None:
    if isinstance(data, bool) or data is None or depth == 0:
        return None
    if isinstance(data, int | float):
        return data
    if isinstance(data, str):
        found = _NUMBER.findall(data[:_MAX_TOLD_CHARS])
        return (float(found[-1]) if "." in found[-1] else int(found[-1])) if found else None
    if isinstance(data, list):
        return _number_in(data[0], depth - 1) if len(data) == 1 else None
    for key in _TELLING_KEYS:
        if key in data and (number := _number_in(data[key], depth - 1)) is not None:
            return number
    numbers = [value for value in data.values() if isinstance(value, int | float) and not isinstance(value, bool)]
    return numbers[0] if len(numbers) == 1 else None


def _under(data: JsonValue, words: list[str], depth: int) -> JsonValue:
    if depth == 0:
        return None
    if isinstance(data, dict):
        for key, value in data.items():
            if split_name(key) == words and value is not None:
                return value
    inner = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []
    return next((found for one in inner if (found := _under(one, words, depth - 1)) is not None), None)


def _told(data: JsonValue) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, dict) and all(not isinstance(value, dict | list) for value in data.values()):
        return ", ".join(f"{key} {_plain(value)}" for key, value in data.items()) or "{}"
    return json.dumps(data, ensure_ascii=False)


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
