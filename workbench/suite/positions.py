"""Finds the lines of keys, array elements and table headers in a TOML text.

`tomllib` gives values without positions. This scanner reads text that `tomllib` has accepted. It therefore need not
check the text, and it skips values without interpreting them."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property

from workbench.dataclasses import dataclass
from workbench.encoding import BYTE_ORDER_MARK
from workbench.startup import late_pattern
from workbench.suite.problems import Place


@dataclass(frozen=True, slots=True)
class Header:
    """A table header in a TOML text.

    `first_line` is the line of the first comment directly above the header, or the header's line. `last_line` is the
    last line of the values under the header, before any other header."""

    place: Place
    line: int
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Positions:
    """The lines of the parts of a TOML text, from 1.

    `lines` are the first lines of keys and elements. `ends` are the last lines of elements of inline top-level arrays.
    `head_end` is the last line of the values above all headers, or 0 if there are none."""

    lines: Mapping[Place, int]
    ends: Mapping[Place, int]
    headers: tuple[Header, ...]
    last_line: int
    head_end: int = 0
    are_known: bool = True
    """Whether the scanner understood the text. Otherwise every place has line 1, and there are no headers."""

    def line(self, place: Place) -> int:
        """Return the line of a place. If the text does not contain the place, use the nearest enclosing place."""
        while place:
            if (line := self.lines.get(place)) is not None:
                return line
            place = place[:-1]
        return 1

    def block(self, place: Place) -> tuple[int, int]:
        """Return the first and last line of an element of a top-level array of tables, such as `("cases", 3)`.

        Comment lines directly above a header belong to its element. The element extends to the next header that is not
        below it. Raises KeyError if there is no such element."""
        number = self._numbers.get(place)
        if number is None:
            return self.lines[place], self.ends[place]
        last = self.last_line
        for following in range(number + 1, len(self.headers)):
            header = self.headers[following]
            if header.place[: len(place)] != place:
                last = header.first_line - 1
                break
        return self.headers[number].first_line, last

    @cached_property
    def _numbers(self) -> dict[Place, int]:
        """The index of the first header of each place. It is cached because a big suite looks up all its cases."""
        numbers: dict[Place, int] = {}
        for number, header in enumerate(self.headers):
            numbers.setdefault(header.place, number)
        return numbers


def scan(text: str) -> Positions:
    """Find the lines of keys, array elements and headers in a text that `tomllib` accepts.

    The result's `are_known` is false if the scanner does not understand the text."""
    # An error here would make a valid file unusable only because of line numbers.
    try:
        return _Scanner(text.removeprefix(BYTE_ORDER_MARK)).scan()
    except (ValueError, LookupError):
        return Positions({}, {}, (), 1, are_known=False)


def scan_headers(text: str) -> Positions:
    """Find the headers as `scan` does, but no lines of keys and elements. This takes a third of the time."""
    try:
        return _Scanner(text.removeprefix(BYTE_ORDER_MARK), only_headers=True).scan()
    except (ValueError, LookupError):
        return scan(text)


# Possessive quantifiers (`++`, `*+`) never backtrack, so no text makes these patterns slow.
_GAP = late_pattern(r"(?:[ \t\r\n]++|#[^\n]*+)*")
_BLANK = late_pattern(r"[ \t]*+")
_KEY = late_pattern(r"""[A-Za-z0-9_-]++|"(?:[^"\\\n]++|\\.)*"|'[^'\n]*+'""")
_DOT = late_pattern(r"[ \t]*+\.[ \t]*+")
_PLAIN_KEY = late_pattern(r"([A-Za-z0-9_-]++)[ \t]*+=[ \t]*+")
_EQUALS = late_pattern(r"[ \t]*+=[ \t]*+")
_STRING = (
    r'''"""(?:[^"\\]++|\\[\s\S]|"{1,2}(?!"))*"{3,5}'''
    r"""|'''(?:[^']++|'{1,2}(?!'))*'{3,5}"""
    r"""|"(?:[^"\\\n]++|\\.)*"|'[^'\n]*+'"""
)
_SCALAR = late_pattern(rf"{_STRING}|[^,\]}}#\r\n]++")
_PAIRS = late_pattern(
    rf"""(?:[^"'#\n]++|{_STRING}|(?:#[^\n]*+)?\n(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+[ \t\r]*+(?![\[#]|\Z))++"""
)
"""Matches all keys and values up to a line that begins with a bracket. An unclosed string matches nothing."""
_CERTAIN_HEADER = late_pattern(r"\[\[?[ \t]*+(?!(?:true|false|inf|nan)\b)[A-Za-z_]")
"""Matches the beginning of a header that cannot be a line of an array."""


class _Scanner:
    def __init__(self, text: str, *, only_headers: bool = False) -> None:
        self._text = text
        self._only_headers = only_headers
        self._position = 0
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._lines: dict[Place, int] = {}
        self._ends: dict[Place, int] = {}
        self._headers: list[tuple[Place, int, int]] = []
        self._ends_of_tables: list[int] = []
        """The lines where the values above all headers end, and the values under each header but the last."""
        self._lengths: dict[Place, int] = {}
        """The number of elements so far, by array of tables."""

    def scan(self) -> Positions:
        table: Place = ()
        while True:
            start = self._position
            gap = self._skip(_GAP)
            if self._position >= len(self._text):
                self._ends_of_tables.append(self._end_line(start))
                last_line = len(self._newlines) + (not self._text.endswith("\n"))
                head_end, *ends = self._ends_of_tables
                headers = tuple(Header(*found, end) for found, end in zip(self._headers, ends, strict=True))
                return Positions(self._lines, self._ends, headers, last_line, head_end)
            if self._text[self._position] == "[":
                if self._only_headers and not _CERTAIN_HEADER.match(self._text, self._position):
                    raise ValueError("this line may be a part of an array")
                self._ends_of_tables.append(self._end_line(start))
                # The first line of a gap is the rest of a line with a value, except at the start of the text. The last
                # line is the beginning of the header's line. Both are left out, because only whole lines count.
                whole_lines = gap.split("\n")[bool(start) : -1]
                table = self._header(whole_lines)
            elif self._only_headers:
                self._skip(_PAIRS)
            else:
                self._pair(table)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._position)
        if match is None:
            raise ValueError(f"this is not TOML (at character {self._position})")
        self._position = match.end()
        return match[0]

    def _line(self) -> int:
        return self._line_at(self._position)

    def _line_at(self, position: int) -> int:
        return bisect_right(self._newlines, position - 1) + 1

    def _end_line(self, position: int) -> int:
        if position:
            return self._line_at(position)
        return 0

    def _key(self) -> list[str]:
        parts = [_key_text(self._skip(_KEY))]
        while dot := _DOT.match(self._text, self._position):
            self._position = dot.end()
            parts.append(_key_text(self._skip(_KEY)))
        return parts

    def _header(self, lines_above: list[str]) -> Place:
        line = self._line()
        is_array = self._text.startswith("[[", self._position)
        brackets = 2 if is_array else 1
        self._position += brackets
        self._skip(_BLANK)
        *parents, name = self._key()
        self._skip(_BLANK)
        self._position += brackets
        place: Place = ()
        for parent in parents:
            place = self._entered((*place, parent), line)
        place = (*place, name)
        if is_array:
            self._lines.setdefault(place, line)
            index = self._lengths.get(place, 0)
            self._lengths[place] = index + 1
            place = (*place, index)
        self._lines[place] = line
        self._headers.append((place, line, line - _comments_at_end(lines_above)))
        return place

    def _entered(self, place: Place, line: int) -> Place:
        """Return the place to which keys after a header belong. For an array of tables, this is its last element."""
        self._lines.setdefault(place, line)
        length = self._lengths.get(place)
        if length is None:
            return place
        return (*place, length - 1)

    def _pair(self, table: Place) -> None:
        line = self._line()
        # Most keys are plain. One pattern for key and equals sign is faster than three patterns.
        if plain := _PLAIN_KEY.match(self._text, self._position):
            self._position = plain.end()
            place = (*table, plain[1])
            self._lines[place] = line
        else:
            place = table
            for part in self._key():
                place = (*place, part)
                self._lines.setdefault(place, line)
            self._skip(_EQUALS)
        self._value(place)

    def _value(self, place: Place) -> None:
        start = self._text[self._position]
        if start == "[":
            self._array(place)
        elif start == "{":
            self._inline_table(place)
        else:
            self._skip(_SCALAR)

    def _array(self, place: Place) -> None:
        index = 0
        self._position += 1
        self._skip(_GAP)
        while self._text[self._position] != "]":
            element = (*place, index)
            self._lines[element] = self._line()
            self._value(element)
            if len(element) == 2:
                self._ends[element] = self._line()
            index += 1
            self._next()
        self._position += 1

    def _inline_table(self, place: Place) -> None:
        self._position += 1
        self._skip(_GAP)
        while self._text[self._position] != "}":
            self._pair(place)
            self._next()
        self._position += 1

    def _next(self) -> None:
        """Skip a comma before the next element or the closing bracket."""
        self._skip(_GAP)
        if self._text[self._position] == ",":
            self._position += 1
            self._skip(_GAP)


def _comments_at_end(lines: list[str]) -> int:
    count = 0
    for line in reversed(lines):
        if not line.lstrip().startswith("#"):
            break
        count += 1
    return count


def _key_text(token: str) -> str:
    if token[0] == "'":
        return token[1:-1]
    if token[0] == '"':
        if "\\" not in token:
            return token[1:-1]
        return str(tomllib.loads(f"key = {token}")["key"])
    return token
