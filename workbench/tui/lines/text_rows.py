"""Texts as wrapped rows, cut to the number that is useful."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.suite.numerals import counted
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.growing_text import DISPLAY_LIMIT, GrowingText
from workbench.tui.lines.json_lines import JoinedLines, LazyLines
from workbench.tui.lines.spans import Line, Role, Span, cut


class TextLines(LazyLines):
    """The rows of a text as lines, built on demand, since streamed text can be long."""

    def __init__(self, rows: list[str], indent: int, role: Role) -> None:
        self._rows = rows
        self._indent = Span(" " * indent)
        self._role = role
        self._count = next((at for at in range(len(rows), 0, -1) if rows[at - 1].strip()), 0)

    def __len__(self) -> int:
        return self._count

    def line(self, index: int) -> Line:
        return self._indent, Span(self._rows[index], self._role)


def text_rows(text: GrowingText, width: int, limit: int | None, role: Role, indent: int) -> Sequence[Line]:
    """Return the wrapped rows of a text, indented, at most `limit` of them. The last one describes what is not
    shown."""
    rows = text.rows(width - indent)
    lead = Span(" " * indent)
    if limit == 1 and len(rows) > 1:
        return [(lead, Span(cut(rows[0] + " " + rows[1], width - indent), role))]
    lines = TextLines(rows, indent, role)
    # A note in place of a single line would save nothing.
    if limit is not None and len(lines) > limit + (0 if text.hidden else 1):
        note = f"{GLYPHS.running} {counted(len(lines) - limit, 'more line')}, Enter shows them"
        if text.hidden:
            note = f"{GLYPHS.running} {text.hidden + DISPLAY_LIMIT:,} characters in all, Enter shows more"
        return [*lines[:limit], (lead, Span(cut(note, width - indent), "comment"))]
    if not text.hidden:
        return lines
    note = f"{GLYPHS.running} {text.hidden:,} more characters; y copies all of them"
    return JoinedLines([lines, [(lead, Span(cut(note, width - indent), "comment"))]])
