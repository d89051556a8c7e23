"""The last lines that a failed server wrote to standard error, as text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from workbench.numerals import counted
from workbench.show.spans import Line, Span, paragraph, wrap
from workbench.show.visible import after, one_line
from workbench.trajectory.events import ServerOutput

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.show.text import Paint


def output_title(output: ServerOutput) -> str:
    """Return a title for output, such as `standard error of server weather, the last 10 of 25 lines`."""
    kind = "agent" if output.is_agent else "server"
    name, shown = f"{kind} {one_line(output.server)}", len(output.lines)
    if not shown:
        return f"{name} wrote nothing to standard error"
    lines = counted(output.earlier + shown, "line")
    if output.earlier:
        lines = f"the last {shown} of {lines}"
    return f"standard error of {name}, {lines}"


def server_output_lines(output: ServerOutput, width: int, indent: int) -> list[Line]:
    """Return a title and the last lines, wrapped, with control characters made visible."""
    title = output_title(output)
    if output.lines:
        title += ":"
    lines = paragraph(title, width, "muted", indent)
    for text in output.lines:
        for row in wrap(one_line(text), max(width - indent - 3, 10)):
            lines.append((Span(" " * (indent + 2)), Span(row, "text")))
    return lines


def output_lines(output: ServerOutput, paint: Paint, indent: int) -> Iterator[str]:
    """Yield the title and the last lines for a terminal or a file, without wraps."""
    return map(paint.line, server_output_lines(output, sys.maxsize, indent))


class ServerOutputs:
    """The output of failed servers. Each output is shown only once, even if the server ended many runs."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._shown: set[tuple[str, str]] = set()

    def lines(self, suite: str, outputs: Iterable[ServerOutput | None], indent: int) -> Iterator[str]:
        """Yield the lines of outputs that were not shown before. All outputs must be of servers of one suite."""
        for output in outputs:
            if output is not None and (suite, output.server) not in self._shown:
                self._shown.add((suite, output.server))
                yield from output_lines(output, self._paint, indent)

    def of_end(self, result: RunResult, indent: int) -> Iterator[str]:
        """Yield the output of the server that ended a run. Yield nothing if no server ended it."""
        if (finish := result.trajectory.finish) is not None:
            yield from self.lines(result.suite, [finish.server_output], indent)


def last_said(output: ServerOutput | None) -> str:
    """Return the last line of a server's standard error that is not blank, or an empty text."""
    if output is None:
        return ""
    for line in reversed(output.lines):
        if line.strip():
            return one_line(line.strip())
    return ""


def failure_text(reason: str, output: ServerOutput | None, log_key: str) -> str:
    """Return why a server is down: the failure, the last line of its output, and the key that opens its log.

    The server's command and its log file are omitted, because a notice in the app has no room for them."""
    # The reason of a server's failure ends with the command that started the server.
    failure, command, _ = reason.rpartition(" (command: ")
    if not command:
        return one_line(reason)
    return f"{one_line(failure)}{after(': ', last_said(output))}; log: {log_key} opens it"
