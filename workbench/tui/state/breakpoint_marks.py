"""How a breakpoint is marked in the lines of runs and forms."""

from __future__ import annotations

from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.spans import Line, Span

_MARK = f"{GLYPHS.breakpoint} "


def with_breakpoint(line: Line) -> Line:
    """A line with the mark in the blanks that it begins with; without enough of them, the line as it is."""
    first = line[0] if line else None
    if first is None or not first.text.isspace() or len(first.text) < len(_MARK):
        return line
    return (Span(first.text[: -len(_MARK)]), Span(_MARK, "failed"), *line[1:])
