"""What a server wrote to standard error before it failed, as lines."""

from __future__ import annotations

from workbench.show.spans import Line, Span, wrap
from workbench.show.views.server_output import output_title
from workbench.show.visible import one_line
from workbench.trajectory.events import ServerOutput
from workbench.tui.lines.prose import paragraph


def last_said(output: ServerOutput | None) -> str:
    """Return the last line that a server wrote to standard error and that says something, otherwise nothing."""
    return one_line(next((line.strip() for line in reversed(output.lines) if line.strip()), "")) if output else ""


def failure_text(reason: str, output: ServerOutput | None, log_key: str) -> str:
    """Return why a server is down for a notice: what happened, what it said last, and the key of its log, in place of
    command and file, for which a notice has no room."""
    what, command, _ = reason.rpartition(" (command: ")
    if not command:
        return one_line(reason)
    said = last_said(output)
    return f"{one_line(what)}{f': {said}' if said else ''}; log: {log_key} opens it"


def server_output_lines(output: ServerOutput, width: int, indent: int) -> list[Line]:
    """Return a title and the last lines, wrapped, with control characters made visible."""
    lines = paragraph(f"{output_title(output)}{':' if output.lines else ''}", width, "muted", indent)
    for text in output.lines:
        for row in wrap(one_line(text), max(width - indent - 3, 10)):
            lines.append((Span(" " * (indent + 2)), Span(row, "text")))
    return lines
