"""Lines that are built on demand: values of any size as indented, coloured JSON, and lists of such lines."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import overload

from workbench.show.spans import Line, Role, Span, plain, row_ends
from workbench.show.visible import one_line, visible
from workbench.trajectory.events import JsonValue

_NARROWEST = 8
_KEY = re.compile(r' *(?:"(?:[^"\\]|\\.)*": )?')
_ROLES: dict[str, Role] = {
    '"': "string",
    **dict.fromkeys("tfnNI", "literal"),
    **dict.fromkeys("{}[]", "muted"),
}
"""The role of a value by its first character, numbers excepted."""
TOO_DEEP = "a value too deep to show"


class LazyLines(Sequence[Line]):
    """Lines by index. `texts` yields them without colours."""

    def line(self, index: int) -> Line:
        """Return the line at an index."""
        raise NotImplementedError

    def texts(self) -> Iterator[str]:
        """Yield the text of each line."""
        return (plain(self.line(index)) for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        if isinstance(index, slice):
            return [self.line(at) for at in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self.line(index % len(self))


class JoinedLines(LazyLines):
    """Several lists of lines, one after the other."""

    def __init__(self, parts: Sequence[Sequence[Line]]) -> None:
        self._parts = [part for part in parts if part]
        self._starts = [0, *accumulate(map(len, self._parts))]

    def __len__(self) -> int:
        return self._starts[-1]

    def line(self, index: int) -> Line:
        part = bisect_right(self._starts, index) - 1
        return self._parts[part][index - self._starts[part]]

    def texts(self) -> Iterator[str]:
        for part in self._parts:
            yield from texts_of(part)


class JsonLines(LazyLines):
    """A value as indented JSON in rows of at most `width` cells, of which `indent` are blank. Only counting the rows
    reads all of the value."""

    def __init__(self, value: JsonValue, width: int, indent: int = 0) -> None:
        self._indent = " " * indent
        self._width = max(width - indent, _NARROWEST)
        self._written = visible(_pretty(value)).split("\n")
        self._starts = [0, *accumulate(map(self._height, self._written))]
        self._wrapped: tuple[int, list[int]] = (-1, [])

    def __len__(self) -> int:
        return self._starts[-1]

    def line(self, index: int) -> Line:
        number = bisect_right(self._starts, index) - 1
        if self._wrapped[0] != number:
            self._wrapped = number, self._ends(self._written[number])
        written, ends, row = self._written[number], self._wrapped[1], index - self._starts[number]
        start = ends[row - 1] if row else 0
        key, role = _key_and_role(written)
        name, value = written[start : max(key, start)][: ends[row] - start], written[max(key, start) : ends[row]]
        comma = "," if row == len(ends) - 1 and value.endswith(",") else ""
        spans = (
            Span(self._lead(written, row) + name, "key"),
            Span(value.removesuffix(comma), role),
            Span(comma, "muted"),
        )
        return tuple(span for span in spans if span.text)

    def texts(self) -> Iterator[str]:
        for written in self._written:
            start = 0
            for row, end in enumerate(self._ends(written)):
                yield self._lead(written, row) + written[start:end]
                start = end

    def _height(self, written: str) -> int:
        return 1 if len(written) <= self._width and written.isascii() else len(self._ends(written))

    def _ends(self, written: str) -> list[int]:
        return row_ends(written, self._width, self._hang(written))

    def _lead(self, written: str, row: int) -> str:
        return self._indent + " " * self._hang(written) if row else self._indent

    def _hang(self, written: str) -> int:
        return min(len(written) - len(written.lstrip(" ")) + 2, self._width // 2)


def texts_of(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the text of each line."""
    return lines.texts() if isinstance(lines, LazyLines) else map(plain, lines)


def compact_json(value: JsonValue, limit: int) -> str:
    """Return a value as JSON on one line, cut after `limit` characters."""
    try:
        return one_line(json.dumps(value, ensure_ascii=False)[:limit])
    except RecursionError:
        return TOO_DEEP


def _pretty(value: JsonValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return compact_json(value, 1 << 62)


def _key_and_role(written: str) -> tuple[int, Role]:
    """Return where the value in a line of indented JSON begins, after blanks and the key, and its role."""
    match = _KEY.match(written)
    assert match is not None
    return match.end(), _ROLES.get(written[match.end() : match.end() + 1], "number")


def parsed_json(content: str, longest: int) -> JsonValue:
    """Return the JSON object or list that a text contains, `None` if it is not one or has more than `longest`
    characters."""
    if content[:1] not in ("{", "[") or len(content) > longest:
        return None
    try:
        value: JsonValue = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value
