"""Prose as lines: messages, paragraphs and titles, with signs or indents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from workbench.show.spans import EMPTY, Line, Role, Span, cells, spread, wrap
from workbench.show.visible import one_line

LONGEST_SHOWN = 5_000
"""Lines of a file that are shown if no single case is."""

MAX_LINE_CHARS = 20_000
"""Characters of a line that are shown."""

NARROWEST = 24
"""The minimum layout width. Narrower screens cut the lines."""

Found = Mapping[int, Sequence[tuple[int, int, Role]]]
"""The matches of a search, by line from 0: start, end and role."""

Message = tuple[tuple[str, Role], ...]
"""The text of an empty pane: paragraphs, each with its role."""


def signed(sign: str, text: str, role: Role, width: int, indent: int) -> list[Line]:
    """Return a wrapped paragraph after a sign."""
    first, *others = wrap(one_line(text), width - indent - 2)
    return [
        (Span(" " * indent), Span(f"{sign} {first}", role)),
        *((Span(" " * (indent + 2)), Span(row, role)) for row in others),
    ]


def indented(lines: Sequence[Line], indent: int) -> list[Line]:
    """Indent lines."""
    return [(Span(" " * indent), *line) for line in lines]


def behind(head: Line, text: str, role: Role, room: int) -> list[Line]:
    """Return a text after a head, in rows of `room` cells that all begin in the same column."""
    first, *others = wrap(one_line(text), room)
    blank = Span(" " * cells(head))
    return [(*head, Span(first, role)), *((blank, Span(row, role)) for row in others)]


def paragraph(text: str, width: int, role: Role = "text", indent: int = 1) -> list[Line]:
    """Return an indented text in rows that leave a cell at the right."""
    return [(Span(" " * indent + row, role),) for row in wrap(one_line(text), max(width - indent - 1, 10))]


def with_margin(text: str, width: int, role: Role = "text") -> list[Line]:
    """Return a text in rows with two cells on either side, for dialogs."""
    return behind((Span("  "),), text, role, max(width - 4, 10))


def heading(text: str) -> Line:
    """Return the title of a section."""
    return (Span(f" {text}", "heading"),)


@lru_cache(maxsize=16)
def message_lines(texts: Message, width: int) -> tuple[Line, ...]:
    """Return the paragraphs of an empty pane, with a margin. An empty text is a blank line."""
    rows: list[Line] = [EMPTY]
    for text, role in texts:
        rows.extend((Span("  "), Span(row, role)) for row in wrap(text, max(width - 4, 10)))
    return tuple(rows)


def title_line(left: Line, ends: Sequence[Line], width: int) -> Line:
    """Return a title with the first of several endings, longest first, that fits without cutting the title."""
    end = next((end for end in ends if cells(left) + cells(end) < width), EMPTY)
    return spread(left, end, width)
