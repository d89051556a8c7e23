"""Lines of text with roles in place of colours. All panes of the app are built from such lines.

Widths are terminal cells, never characters. Text from models, tools or files passes `visible` or `one_line` of
`workbench.show.visible` before it becomes a span."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rich.cells import cell_len, get_character_cell_size

from workbench.show.visible import one_line

Role = Literal[
    "text",
    "strong",
    "muted",
    "accent",
    "heading",
    "passed",
    "warned",
    "failed",
    "error",
    "running",
    "tool",
    "key",
    "string",
    "number",
    "literal",
    "comment",
    "badge",
    "match",
    "selected",
    "border",
]
"""The meaning of a piece of text. Themes define its style."""


class Span(NamedTuple):
    """A piece of text with one role."""

    text: str
    role: Role = "text"


Line = tuple[Span, ...]
EMPTY: Line = ()
ELLIPSIS = "…"


def cells(line: Line) -> int:
    """Return the width of a line in cells."""
    width = 0
    for text, _ in line:
        width += len(text) if text.isascii() else cell_len(text)
    return width


def plain(line: Line) -> str:
    """Return the text of a line without roles."""
    return "".join(span.text for span in line)


def end_within(text: str, start: int, width: int) -> int:
    """Return the end index of the longest piece of text that begins at `start` and fits into `width` cells."""
    # Nearly all text is ASCII. Every ASCII character takes one cell.
    if text.isascii():
        return min(start + width, len(text))
    used = 0
    for index in range(start, len(text)):
        used += get_character_cell_size(text[index])
        if used > width:
            return index
    return len(text)


def cut(text: str, width: int) -> str:
    """Return a text cut to at most `width` cells, with an ellipsis if it was cut."""
    if width <= 0:
        return ""
    # A character takes at least one cell, so a text with more than `width` characters is cut without measuring it.
    if len(text) <= width and cell_len(text) <= width:
        return text
    if end_within(text, 0, width) == len(text):
        return text
    return text[: end_within(text, 0, width - 1)].rstrip() + ELLIPSIS


_MIN_MIDDLE_CELLS = 12
"""Least width in cells for a cut in the middle. Narrower texts are cut at the end."""


def cut_middle(text: str, width: int) -> str:
    """Return a text of at most `width` cells. If it is cut, its middle is omitted.

    The end stays visible, because similar names often differ only at the end."""
    if width < _MIN_MIDDLE_CELLS or cell_len(text) <= width:
        return cut(text, width)
    tail = len(text)
    while cell_len(text[tail - 1 :]) <= (width - 1) // 3:
        tail -= 1
    end = text[tail:].lstrip()
    return text[: end_within(text, 0, width - 1 - cell_len(end))].rstrip() + ELLIPSIS + end


def cut_line(line: Line, width: int) -> Line:
    """Return a line cut to at most `width` cells, with an ellipsis if it was cut."""
    if cells(line) <= width:
        return line
    cut: list[Span] = []
    left = width - 1
    for span in line:
        end = end_within(span.text, 0, left)
        cut.append(Span(span.text[:end], span.role))
        left -= cell_len(span.text[:end])
        if end < len(span.text):
            break
    if width > 0:
        return (*cut, Span(ELLIPSIS, "muted"))
    return EMPTY


def padded(text: str, width: int) -> str:
    """Return a text cut or filled to exactly `width` cells."""
    text = cut(text, width)
    return text + " " * (width - cell_len(text))


def spread(left: Line, right: Line, width: int) -> Line:
    """Return a line with `left` at its left end and `right` at its right end. `left` is cut if necessary."""
    room = width - cells(right)
    if room <= 0:
        return cut_line(right, width)
    gap = 0
    if right:
        gap = 1
    left = cut_line(left, room - gap)
    return (*left, Span(" " * (room - cells(left))), *right)


def natural_cells(line: Line) -> int:
    """Return the least width at which a line made by `spread` shows both its parts.

    Blanks that align a number in the right part count as part of the number."""
    text = plain(line).rstrip()
    # Five or more blanks separate the parts of a row. Fewer blanks may be part of a number.
    gap = max((len(blanks) for blanks in re.findall(" {5,}", text.lstrip())), default=4)
    return cell_len(text) - gap + 4


def wrap(text: str, width: int) -> list[str]:
    """Return one line of text as rows of at most `width` cells, wrapped at blanks where possible.

    A path that is too long is wrapped after a slash."""
    width = max(width, 1)
    if len(text) <= width and (text.isascii() or cell_len(text) <= width):
        return [text]
    return list(_rows(text, width))


def _rows(text: str, width: int) -> Iterator[str]:
    start = 0
    while True:
        end = end_within(text, start, width)
        if end >= len(text):
            yield text[start:]
            return
        # A character that is wider than the row gets a row of its own. Otherwise the loop would never end.
        end = max(end, start + 1)
        blank = text.rfind(" ", start, end + 1)
        if blank > start and text[start:blank].strip():
            yield text[start:blank]
            start = blank + 1
        else:
            # A break in the first half of the row would waste more space than a break inside the path.
            end = (text.rfind("/", start + (end - start) // 2, end) + 1) or end
            yield text[start:end]
            start = end


def wrap_line(line: Line, width: int, hang: int = 0) -> list[Line]:
    """Return the rows of a line of spans. A row is wrapped after a blank if there is one near its end.

    Rows after the first are indented by `hang` cells."""
    width = max(width, hang + 1)
    if cells(line) <= width:
        return [line]
    ends = row_ends(plain(line), width, hang)
    rows = sliced(line, ends)
    lead = Span(" " * hang)
    if not hang:
        return rows
    return [rows[0], *((lead, *row) for row in rows[1:])]


def row_ends(text: str, width: int, hang: int) -> list[int]:
    """Return the index at which each row of a text ends. Rows wrap as in `wrap_line` and cover the whole text."""
    ends: list[int] = []
    start = 0
    while start < len(text):
        room = width - hang if ends else width
        end = max(end_within(text, start, room), start + 1)
        if end < len(text):
            # Wrapping at a blank in the first half of the row would leave the row too short.
            blank = text.rfind(" ", start + (end - start) // 2, end)
            end = blank + 1 if blank > 0 else end
        ends.append(end)
        start = end
    return ends


def sliced(line: Line, ends: Sequence[int]) -> list[Line]:
    """Split a line at the ascending indices `ends`. Text after the last index is omitted."""
    rows: list[Line] = []
    row: list[Span] = []
    position = 0
    for span in line:
        start = 0
        while len(rows) < len(ends) and ends[len(rows)] <= position + len(span.text):
            end = ends[len(rows)] - position
            if end > start:
                row.append(Span(span.text[start:end], span.role))
            rows.append(tuple(row))
            row, start = [], end
        if start < len(span.text):
            row.append(Span(span.text[start:], span.role))
        position += len(span.text)
    return rows


_FILLED: frozenset[Role] = frozenset({"badge", "match", "selected"})
"""Roles with a background, on which blanks are visible."""


def with_blanks_joined(line: Line) -> Line:
    """Merge each blank span into the span before it, or into the span after it if there is none before."""
    joined: list[Span] = []
    for span in line:
        if joined and span.role not in _FILLED and joined[-1].role not in _FILLED:
            before = joined[-1]
            if span.role == before.role or not span.text.strip(" "):
                joined[-1] = Span(before.text + span.text, before.role)
                continue
            if not before.text.strip(" "):
                joined[-1] = Span(before.text + span.text, span.role)
                continue
        if span.text:
            joined.append(span)
    return tuple(joined)


def without_empty(spans: Iterable[Span]) -> Line:
    return tuple(span for span in spans if span.text)


def part(line: Line, start: int, end: int | None) -> Line:
    """Return the characters of a line between two indices."""
    spans: list[Span] = []
    position = 0
    for span in line:
        first, last = max(start - position, 0), None
        if end is not None:
            last = max(end - position, 0)
        piece = span.text[first:last]
        if piece:
            spans.append(Span(piece, span.role))
        position += len(span.text)
    return tuple(spans)


def recoloured(line: Line, start: int, end: int, role: Role) -> Line:
    """Return a line with another role for the characters between two indices."""
    middle = plain(part(line, start, end))
    if middle:
        return (*part(line, 0, start), Span(middle, role), *part(line, end, None))
    return line


NARROWEST = 24
"""Narrowest layout in cells. Narrower screens cut its lines."""

Message = tuple[tuple[str, Role], ...]
"""The message in an empty pane: paragraphs, each with its role."""


class Note(NamedTuple):
    """A sentence with a sign before it, both in the same role."""

    sign: str
    text: str
    role: Role = "muted"


def sign_paragraph(sign: str, text: str, role: Role, width: int, indent: int) -> list[Line]:
    """Return the wrapped rows of a paragraph that follows a sign."""
    first, *others = wrap(one_line(text), width - indent - 2)
    lines: list[Line] = [(Span(" " * indent), Span(f"{sign} {first}", role))]
    for row in others:
        lines.append((Span(" " * (indent + 2)), Span(row, role)))
    return lines


def indented(lines: Sequence[Line], indent: int) -> list[Line]:
    """Return lines indented by `indent` cells."""
    return [(Span(" " * indent), *line) for line in lines]


def hanging_paragraph(head: Line, text: str, role: Role, max_width: int) -> list[Line]:
    """Return `head` followed by a text wrapped at `max_width` cells. All rows of the text begin in the same column."""
    first, *others = wrap(one_line(text), max_width)
    blank = Span(" " * cells(head))
    rows: list[Line] = [(*head, Span(first, role))]
    for row in others:
        rows.append((blank, Span(row, role)))
    return rows


def paragraph(text: str, width: int, role: Role = "text", indent: int = 1) -> list[Line]:
    """Return a text as indented rows. One cell at the right stays empty."""
    rows: list[Line] = []
    for row in wrap(one_line(text), max(width - indent - 1, 10)):
        rows.append((Span(" " * indent + row, role),))
    return rows


def with_margin(text: str, width: int, role: Role = "text") -> list[Line]:
    """Return a text as rows for a dialog, with two empty cells at each side."""
    return hanging_paragraph((Span("  "),), text, role, max(width - 4, 10))


def heading(text: str) -> Line:
    return (Span(f" {text}", "heading"),)


@lru_cache(maxsize=16)
def message_lines(texts: Message, width: int) -> tuple[Line, ...]:
    """Return the message for an empty pane as lines with a margin. An empty paragraph becomes a blank line."""
    rows: list[Line] = [EMPTY]
    for text, role in texts:
        for row in wrap(text, max(width - 4, 10)):
            rows.append((Span("  "), Span(row, role)))
    return tuple(rows)


def title_line(left: Line, ends: Sequence[Line], width: int) -> Line:
    """Return a title with the longest of `ends` that fits at its right. The longest line must be first in `ends`."""
    for end in ends:
        if cells(left) + cells(end) < width:
            return spread(left, end, width)
    return spread(left, EMPTY, width)
