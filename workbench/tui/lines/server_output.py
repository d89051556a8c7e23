"""What a server wrote to standard error before it failed, as lines."""

from __future__ import annotations

from workbench.reports.server_output import output_title
from workbench.reports.visible import one_line
from workbench.trajectory.events import ServerOutput
from workbench.tui.lines.prose import paragraph
from workbench.tui.lines.spans import Line, Span, wrap


def server_output_lines(output: ServerOutput, width: int, indent: int) -> list[Line]:
    """Return a title and the last lines, wrapped, with control characters made visible."""
    lines = paragraph(f"{output_title(output)}{':' if output.lines else ''}", width, "muted", indent)
    for text in output.lines:
        for row in wrap(one_line(text), max(width - indent - 3, 10)):
            lines.append((Span(" " * (indent + 2)), Span(row, "text")))
    return lines
