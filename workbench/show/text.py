"""Blocks as text for a terminal or a file, in colours where they are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TextIO

from workbench.dataclasses import dataclass
from workbench.show.doc import Row, Table
from workbench.show.rows import Laid
from workbench.show.spans import Line, Role, Span, cut_line

_CODES: Mapping[Role, str] = {
    "strong": "1",
    "muted": "2",
    "passed": "32",
    "warned": "33",
    "failed": "31",
    "error": "35",
}


@dataclass(frozen=True)
class Paint:
    """Colours a text by its meaning. Call it with a text that is already safe to show."""

    enabled: bool

    def __call__(self, text: str, tone: Role) -> str:
        code = _CODES.get(tone, "") if self.enabled else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code else text

    def line(self, line: Line) -> str:
        """Return a line of spans, without blanks at its end."""
        return "".join(self(text, role) if text.strip() else text for text, role in line).rstrip()


def paint_for(stream: TextIO, environment: Mapping[str, str]) -> Paint:
    """Return colours on a terminal that has them, unless `NO_COLOR` is set or `TERM` is `dumb`."""
    wanted = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    return Paint(wanted and stream.isatty())


def table_lines(table: Table[Row], width: int, paint: Paint, *, titled: bool = False) -> Iterator[str]:
    """Yield the rows of a table, each note on a line below its row; with `titled`, the titles of its columns first."""
    indent = Span("    ")
    laid = Laid(table, titled=titled, measured=len(table.rows))
    if titled and table.rows:
        yield paint.line(laid.titles(width))
    for row in table.rows:
        yield paint.line(laid.line(row, width))
        if table.note is not None and (note := table.note(row).spans):
            yield paint.line(cut_line((indent, *note), width))
