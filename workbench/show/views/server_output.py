"""The last lines that a server wrote to standard error before it failed, as text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from workbench.numerals import counted
from workbench.show.spans import Line, Span, paragraph, wrap
from workbench.show.text import Paint
from workbench.show.visible import one_line
from workbench.trajectory.events import ServerOutput

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult


def output_title(output: ServerOutput) -> str:
    """Return a title for the lines: "standard error of server weather, the last 10 of 25 lines"."""
    name = one_line(output.server)
    if not output.lines:
        return f"server {name} wrote nothing to standard error"
    shown = len(output.lines)
    of_all = counted(output.earlier + shown, "line")
    return f"standard error of server {name}, {f'the last {shown} of ' if output.earlier else ''}{of_all}"


def server_output_lines(output: ServerOutput, width: int, indent: int) -> list[Line]:
    """Return a title and the last lines, wrapped, with control characters made visible."""
    lines = paragraph(f"{output_title(output)}{':' if output.lines else ''}", width, "muted", indent)
    for text in output.lines:
        for row in wrap(one_line(text), max(width - indent - 3, 10)):
            lines.append((Span(" " * (indent + 2)), Span(row, "text")))
    return lines


def output_lines(output: ServerOutput, paint: Paint, indent: int) -> Iterator[str]:
    """Yield the same for a terminal or a file, where no line is wrapped."""
    return map(paint.line, server_output_lines(output, sys.maxsize, indent))


class ServerOutputs:
    """Lines of the output of each server, once, whichever runs it has ended."""

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
        finish = result.trajectory.finish
        yield from self.lines(result.suite, [finish.server_output if finish is not None else None], indent)


def last_said(output: ServerOutput | None) -> str:
    """Return the last line that a server wrote to standard error and that says something, otherwise nothing."""
    return one_line(next((line.strip() for line in reversed(output.lines) if line.strip()), "")) if output else ""


def failure_text(reason: str, output: ServerOutput | None, log_key: str) -> str:
    """Return why a server is down, for a notice: the failure, its last line, and the key of its log.

    A notice has no room for command and file.
    """
    what, command, _ = reason.rpartition(" (command: ")
    if not command:
        return one_line(reason)
    said = last_said(output)
    return f"{one_line(what)}{f': {said}' if said else ''}; log: {log_key} opens it"
