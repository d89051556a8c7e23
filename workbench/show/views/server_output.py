"""The last lines that a server wrote to standard error before it failed, as text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from workbench.numerals import counted
from workbench.show.spans import Line, Span, paragraph, wrap
from workbench.show.text import Paint
from workbench.show.visible import after, one_line
from workbench.trajectory.events import ServerOutput

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult


def output_title(output: ServerOutput) -> str:
    """Return a title for the lines: `standard error of server weather, the last 10 of 25 lines`."""
    name, shown = one_line(output.server), len(output.lines)
    if not shown:
        return f"server {name} wrote nothing to standard error"
    lines = counted(output.earlier + shown, "line")
    if output.earlier:
        lines = f"the last {shown} of {lines}"
    return f"standard error of server {name}, {lines}"


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
    """The lines of each server's output, once, however many runs the server ended."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._shown: set[tuple[str, str]] = set()

    def lines(self, suite: str, outputs: Iterable[ServerOutput | None], indent: int) -> Iterator[str]:
        """Yield the lines of the outputs of a suite's servers that were not shown before."""
        for output in outputs:
            if output is not None and (suite, output.server) not in self._shown:
                self._shown.add((suite, output.server))
                yield from output_lines(output, self._paint, indent)

    def of_end(self, result: RunResult, indent: int) -> Iterator[str]:
        """Yield the lines of the server that ended a run, if one did."""
        if (finish := result.trajectory.finish) is not None:
            yield from self.lines(result.suite, [finish.server_output], indent)


def last_said(output: ServerOutput | None) -> str:
    """Return the last line with text that a server wrote to standard error; empty without one."""
    if output is None:
        return ""
    for line in reversed(output.lines):
        if line.strip():
            return one_line(line.strip())
    return ""


def failure_text(reason: str, output: ServerOutput | None, log_key: str) -> str:
    """Return why a server is down, for a notice: the failure, its last line, and the key of its log.

    A notice has no room for the command and the file.
    """
    # The failure of a server ends with the command that started it.
    failure, command, _ = reason.rpartition(" (command: ")
    if not command:
        return one_line(reason)
    return f"{one_line(failure)}{after(': ', last_said(output))}; log: {log_key} opens it"
