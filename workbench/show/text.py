"""Blocks as text for a terminal or a file, with or without colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from rich.cells import cell_len

from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.show.doc import Block, Diff, Facts, Heading, Items, Matrix, Paragraph, Row, Section, Table
from workbench.show.rows import GAP, TableLayout, columns_from, fact_rows, filled, is_apart, matrix_rooms
from workbench.show.spans import Line, Role, Span, cells, cut_line, cut_middle, padded, wrap_line
from workbench.show.visible import visible

# The basic ANSI colours. Every terminal maps them to its theme.
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
    """A function that colours text by role.

    Text must be safe to show before it is coloured."""

    enabled: bool

    def __call__(self, text: str, tone: Role) -> str:
        code = _CODES.get(tone, "")
        if not self.enabled or not code:
            return text
        return f"\x1b[{code}m{text}\x1b[0m"

    def line(self, line: Line) -> str:
        """Return a line of spans as coloured text, without blanks at its end."""
        painted = ""
        for text, role in line:
            # Colour codes around blanks would lengthen the output and keep `rstrip` from removing the blanks.
            if text.strip():
                text = self(text, role)
            painted += text
        return painted.rstrip()


def paint_for(stream: TextIO, environment: Mapping[str, str]) -> Paint:
    """Return the painter for a stream.

    The painter uses colours on a terminal unless `NO_COLOR` is set or `TERM` is `dumb`.

    See https://no-color.org."""
    wanted = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    return Paint(wanted and stream.isatty())


_DIFF_ROLES: Mapping[str, Role] = {"+": "passed", "-": "failed", "@": "muted"}
"""The role of a line of a diff by its first character."""

_UNCUT = 100_000
"""A width in cells at which no text is cut."""


def block_lines(blocks: Iterable[Block], width: int | None, paint: Paint) -> Iterator[str]:
    """Yield the lines of blocks. If `width` is `None`, nothing is cut or wrapped."""
    before: Block | None = None
    for block in blocks:
        if is_apart(block, before):
            yield ""
        before = block
        yield from _block_lines(block, width or _UNCUT, paint)


def _block_lines(block: Block, width: int, paint: Paint) -> Iterator[str]:
    match block:
        case Heading(line):
            yield paint.line(_in_bold(line))
        case Paragraph(line):
            yield from map(paint.line, wrap_line(line, width))
        case Items():
            for line in block.lines[: block.most]:
                yield from map(paint.line, wrap_line(line, width, hang=2))
            if (more := len(block.lines) - block.most) > 0:
                yield paint(f"… and {counted(more, block.noun)}", "muted")
        case Facts():
            for name, text in fact_rows(block):
                yield from map(paint.line, wrap_line((*name, text), width, hang=cells(name)))
        case Section():
            yield paint.line(_in_bold(block.title))
            for each in block.blocks:
                for inner in _block_lines(each, width - 2, paint):
                    yield f"  {inner}"
        case Table():
            yield from table_lines(block, width, paint)
        case Matrix():
            yield from _matrix_lines(block, width, paint)
        case Diff():
            for changed in block.lines:
                yield paint(visible(changed), _DIFF_ROLES.get(changed[:1], "text"))


def _in_bold(line: Line) -> Line:
    return tuple(Span(text, _BOLD.get(role, role)) for text, role in line)


_BOLD: Mapping[Role, Role] = {"text": "strong"}


def _matrix_lines(matrix: Matrix[Row], width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of a matrix. Columns that do not fit follow in another table below, with the same rows."""
    first = matrix.first
    names: list[Line] = []
    texts: list[list[Line]] = []
    lengths = [0] * len(matrix.heads)
    for row in matrix.rows:
        names.append(first.cell(row).spans)
        texts.append([matrix.cell(row, at).spans for at in range(len(matrix.heads))])
        lengths = list(map(max, lengths, map(cells, texts[-1])))
    longest = max(first.least, *map(cells, names))
    heads = [cell_len(head) for head in matrix.heads]
    room, widths = matrix_rooms(longest, lengths, heads, width, min_width=first.least)
    parts = [columns_from(0, widths, width - room)]
    while parts[-1].stop < len(widths):
        parts.append(columns_from(parts[-1].stop, widths, width - room))
    # All parts of the matrix have the same first column, so the widest part determines how much space the first column
    # gets.
    used = 0
    for columns in parts:
        used = max(used, sum(widths[columns.start : columns.stop]) + GAP * len(columns))
    room += max(min(width - room - used, longest - room), 0)
    gap = Span(" " * GAP)
    for columns in parts:
        if columns.start:
            yield ""
        titles = []
        for at in columns:
            titles.append(padded(cut_middle(matrix.heads[at], widths[at]), widths[at]))
        yield paint(gap.text.join((padded(first.name, room), *titles)).rstrip(), "strong")
        for row, name, line in zip(matrix.rows, names, texts, strict=True):
            if cells(name) > room and first.fit is not None:
                name = first.fit(row, room).spans
            spans = [*filled(name, room)]
            for at in columns:
                spans += [gap, *filled(line[at], widths[at])]
            yield paint.line(tuple(spans))


def table_lines(table: Table[Row], width: int, paint: Paint, *, titled: bool = False) -> Iterator[str]:
    """Yield the lines of a table, with each remark below its row.

    With `titled`, the titles of the columns come first."""
    indent = Span("    ")
    # A command writes all rows at once, so it measures all of them. A list in the app measures only the first rows.
    laid = TableLayout(table, titled=titled, measured=len(table.rows))
    if titled and table.rows:
        yield paint.line(laid.titles(width))
    for row in table.rows:
        yield paint.line(laid.line(row, width))
        if table.note is not None and (note := table.note(row).spans):
            yield paint.line(cut_line((indent, *note), width))
