"""Highlighting of TOML and JSON, line by line.

Text with syntax errors is coloured as far as it can be parsed. The spans of a line always cover the whole line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, Protocol

from rich.cells import get_character_cell_size

from workbench.show.lazy_lines import TAB
from workbench.show.spans import Line, Role, Span, cut, part, sliced, without_empty
from workbench.show.visible import visible
from workbench.startup import late_pattern

# The order of the alternatives decides: a date is tried before a number, a key before a string.
NUMBER = r"[-+]?(?:\d[\d_]*(?:\.[\d_]+)?(?:[eE][-+]?\d+)?|0[xob][\da-fA-F_]+|inf|nan)\b"
_DATE = r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[-+]\d\d:\d\d)?)?"
# Possessive quantifiers (`++`) prevent slow backtracking in a long text without a match.
_KEY = r"(?:[A-Za-z0-9_-]++|\"(?:[^\"\\]|\\.)*\"|'[^']*+')"

_TOML = late_pattern(
    r"(?P<comment>\#.*)"
    r"|(?P<open>\"\"\"|''')"
    rf"|(?P<key>(?<![\w-]){_KEY}(?:\s*\.\s*{_KEY})*(?=\s*=))"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*\"?|'[^']*'?)"
    rf"|(?P<date>{_DATE})"
    rf"|(?P<number>(?<![\w.]){NUMBER})"
    r"|(?P<literal>\b(?:true|false)\b)"
    r"|(?P<equals>=)"
    r"|(?P<punctuation>[\[\]{},]+)"
)
_TOML_ROLES: dict[str, Role] = {
    "comment": "comment",
    "key": "key",
    "string": "string",
    "date": "number",
    "number": "number",
    "literal": "literal",
    "equals": "key",
    "punctuation": "muted",
}
_HEADER = late_pattern(r"(\s*)(\[\[?[^\]]*\]\]?)(\s*)(\#.*)?$")

_JSON = late_pattern(
    r"(?P<key>\"[^\"\\]*+(?:\\.[^\"\\]*+)*\"(?=\s*:))"
    r"|(?P<string>\"[^\"\\]*+(?:\\.[^\"\\]*+)*(?:\"|\\?$)?)"
    rf"|(?P<number>(?<![\w.]){NUMBER})"
    r"|(?P<literal>\b(?:true|false|null|NaN|Infinity)\b)"
    r"|(?P<punctuation>[\[\]{}:,]+)"
)
_LOOKED_AHEAD = 2_000
"""Characters read beyond the visible part of a text."""

MAX_LINE_CHARS = 4_000
"""Lines of TOML with more characters are not coloured."""

LONGEST_JSON = 100_000
"""Lines of JSON with more characters are not coloured."""

KEPT_LINES = 2_000
"""Number of lines with cached colours."""


def toml_lines(lines: list[str]) -> list[Line]:
    """Highlight the lines of a TOML document."""
    painted: list[Line] = []
    delimiter: str | None = None
    depth = 0
    for text in lines:
        line, delimiter, depth = _toml_line(text, delimiter, depth)
        painted.append(line)
    return painted


class Colours(Protocol):
    """A highlighter of a text that is being edited."""

    def changed_from(self, line: int) -> None:
        """Forget the cached colours of a changed line and of all lines below it."""
        ...

    def line(self, lines: Sequence[str], index: int) -> Line:
        """Return the line at `index` of `lines`, in colour."""
        ...


class PlainColours:
    """A highlighter without colours."""

    def changed_from(self, line: int) -> None:
        """Do nothing: no colours are cached."""

    def line(self, lines: Sequence[str], index: int) -> Line:
        """Return the line at `index` of `lines`, without colours."""
        return (Span(shown(lines[index]).text),)


class JsonColours(PlainColours):
    """A highlighter of JSON. Strings in JSON never span lines, so each line is coloured independently."""

    def line(self, lines: Sequence[str], index: int) -> Line:
        """Return the line at `index` of `lines`, in colour."""
        return json_line(shown(lines[index]).text)


class TomlColours:
    """A highlighter of TOML that parses lines only when they are needed.

    After a change, it parses only the lines from the changed line to the last visible line."""

    def __init__(self) -> None:
        # For each line, the state at its start: the delimiter of an open multi-line string, and the depth of brackets.
        self._begins: list[tuple[str | None, int]] = [(None, 0)]

    def changed_from(self, line: int) -> None:
        """Forget the cached colours of a changed line and of all lines below it."""
        del self._begins[line + 1 :]

    def line(self, lines: Sequence[str], index: int) -> Line:
        """Return the line at `index` of `lines`, in colour."""
        for text in lines[len(self._begins) - 1 : index]:
            _, delimiter, depth = _toml_line(shown(text).text, *self._begins[-1])
            self._begins.append((delimiter, depth))
        return _toml_line(shown(lines[index]).text, *self._begins[index])[0]


@lru_cache(KEPT_LINES)
def _toml_line(text: str, delimiter: str | None, depth: int) -> tuple[Line, str | None, int]:
    """Return one line in colour, and the state at the start of the next line.

    `delimiter` is the delimiter of a multi-line string that is open at the start of the line. `depth` is the number of
    open brackets."""
    if len(text) > MAX_LINE_CHARS:
        return (Span(text),), delimiter, depth
    spans: list[Span] = []
    position = 0
    if delimiter is not None:
        end = text.find(delimiter)
        if end < 0:
            return (Span(text, "string"),), delimiter, depth
        position = end + len(delimiter)
        spans.append(Span(text[:position], "string"))
        delimiter = None
    # Within brackets, a `[` at the start of a line begins a list, not a table header.
    elif depth == 0 and (header := _HEADER.match(text)) is not None:
        blank, name, gap, comment = header.groups()
        return without_empty([Span(blank), Span(name, "heading"), Span(gap), Span(comment or "", "comment")]), None, 0
    while (match := _TOML.search(text, position)) is not None:
        spans.append(Span(text[position : match.start()]))
        kind = match.lastgroup
        if kind == "open":
            end = text.find(match[0], match.end())
            if end < 0:
                spans.append(Span(text[match.start() :], "string"))
                return without_empty(spans), match[0], depth
            position = end + len(match[0])
            spans.append(Span(text[match.start() : position], "string"))
            continue
        assert kind is not None
        if kind == "punctuation":
            depth = max(depth + sum((char in "[{") - (char in "]}") for char in match[0]), 0)
        spans.append(Span(match[0], _TOML_ROLES[kind]))
        position = match.end()
    spans.append(Span(text[position:]))
    return without_empty(spans), None, depth


def toml_value(text: str) -> Line:
    """Return an inline list or table of TOML in colour."""
    # Depth 1 makes `[` begin a list. At depth 0, it would begin a table header.
    return _toml_line(text, None, 1)[0]


def json_line(text: str) -> Line:
    if len(text) > LONGEST_JSON:
        return (Span(text),)
    spans: list[Span] = []
    position = 0
    for match in _JSON.finditer(text):
        kind = match.lastgroup
        assert kind is not None
        spans += [Span(text[position : match.start()]), Span(match[0], _TOML_ROLES[kind])]
        position = match.end()
    return without_empty([*spans, Span(text[position:])])


def cut_json(text: str, width: int) -> Line:
    """Return one line of JSON in colour, cut to `width` cells."""
    shown = cut(text, width)
    if shown == text:
        return json_line(text)
    # A string is a key if a colon follows, which may be in the text after the cut.
    painted = json_line(text[: len(shown) + _LOOKED_AHEAD])
    return (*part(painted, 0, len(shown) - 1), Span(shown[-1:], "muted"))


def json_rows(rows: Sequence[str], shown: int) -> list[Line]:
    """Return the first `shown` rows of a wrapped JSON text in colour.

    A string that is wrapped keeps its colour in all of its rows."""
    ends = list(accumulate(map(len, rows[:shown])))
    # A string is a key if a colon follows, which may be in the text after the last row.
    ahead = "".join(rows[shown : shown + 200])[:_LOOKED_AHEAD]
    return sliced(json_line("".join(rows[:shown]) + ahead), ends)


class ShownLine(NamedTuple):
    """A line as drawn on the screen (`text`), and the position of each character of the original line.

    For each character, `at` has its index in `text`, and `cells` has its column on the screen. Both lists have an extra
    last item for the end of the line."""

    text: str
    at: Sequence[int]
    cells: Sequence[int]


def _drawn(char: str) -> str:
    if char == "\t":
        return TAB
    return visible(char)


@lru_cache(KEPT_LINES)
def shown(line: str) -> ShownLine:
    """Return a line as it is drawn. Tabs become blanks, and control characters become visible."""
    # Most lines are drawn unchanged, with one character in each cell.
    if line.isascii() and line.isprintable():
        same = range(len(line) + 1)
        return ShownLine(line, same, same)
    pieces = list(map(_drawn, line))
    widths = accumulate(sum(map(get_character_cell_size, piece)) for piece in pieces)
    return ShownLine("".join(pieces), [0, *accumulate(map(len, pieces))], [0, *widths])
