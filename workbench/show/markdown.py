"""Blocks as GitHub Markdown. Markup in text from models, tools and files is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from workbench.numerals import count_text
from workbench.show.doc import Block, Diff, Facts, Heading, Items, Matrix, Paragraph, Row, Section, Table
from workbench.show.spans import Line, Span, plain
from workbench.show.visible import one_line
from workbench.startup import late_pattern

_MARKUP = late_pattern(r"[\\`*_\[\]<>~&$#]")
_ACTED_ON = late_pattern(r"@|://|www\.|#\d|\bGH-\d|:[\w+-]+:")
"""Parts of a text that GitHub turns into links even when they are escaped. Only code prevents this."""
_BAR = r"\|"
_LIST = late_pattern(r"^(\d+(?=[.)](?:\s|$))|(?=[-+=]))([-+=.)])")
"""The beginning of a line that Markdown reads as a list item or as the underline of a title."""
_WORDS = late_pattern(r"\S+")
_TICKS = late_pattern(r"`+")


def text(plain: str) -> str:
    """Return Markdown that GitHub shows as exactly this text, on one line."""
    return _WORDS.sub(lambda word: _word(word[0]), one_line(plain).strip())


def _word(word: str) -> str:
    # A mention in a model's answer would notify people, and a link could lead to a foreign site.
    if _ACTED_ON.search(word):
        return code(word)
    return _MARKUP.sub(r"\\\g<0>", word)


def code(plain: str) -> str:
    """Return inline code that GitHub shows as exactly this text, on one line."""
    line = one_line(plain).strip()
    if not line:
        return ""
    # The fence is longer than every run of backticks in the text, so the text cannot close it.
    fence = "`" * (1 + _longest_ticks(line))
    # A backtick next to the fence would become part of the fence.
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def fenced(lines: Iterable[str]) -> str:
    """Return lines as a code block. Its fence is longer than any fence in the lines."""
    shown = list(map(one_line, lines))
    fence = "`" * max(3, 1 + max(map(_longest_ticks, shown), default=0))
    return "\n".join([fence, *shown, fence])


def _longest_ticks(line: str) -> int:
    return max(map(len, _TICKS.findall(line)), default=0)


def cut_markdown(whole: str, max_bytes: int) -> Iterator[str]:
    """Yield the lines of a Markdown text up to `max_bytes` bytes, then a line that counts the omitted lines."""
    # A hundred bytes are reserved for the line that counts the omitted lines.
    left, lines = max_bytes - 100, whole.splitlines(keepends=True)
    for place, line in enumerate(lines):
        left -= len(line.encode())
        if left < 0:
            left_out = count_text(len(lines) - place)
            yield f"\n{left_out} lines are left out: the place takes {count_text(max_bytes)} bytes.\n"
            return
        yield line


def table(titles: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table whose cells are Markdown.

    A `|` in a cell is escaped, because it would end the cell."""
    for cells in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(cell.replace('|', _BAR) for cell in cells)} |"


def document(blocks: Iterable[Block], redact: Callable[[str], str] = str) -> str:
    """Return blocks as a Markdown document. `redact` replaces secrets in its texts."""
    return "".join(_parts(blocks, redact)).rstrip("\n") + "\n"


def _parts(blocks: Iterable[Block], redact: Callable[[str], str]) -> Iterator[str]:
    """Yield blocks, each with an empty line after it."""

    def shown(line: Line) -> str:
        return _LIST.sub(r"\1\\\2", text(redact(plain(line))))

    for block in blocks:
        match block:
            case Heading(line, level):
                yield f"{'#' * (level + 1)} {shown(line)}\n\n"
            case Paragraph(line):
                yield f"{shown(line)}\n\n"
            case Items():
                for line in block.lines:
                    yield f"- {shown(line)}\n"
                yield "\n"
            case Facts():
                for name, fact in block.facts:
                    yield f"- **{shown(name)}** {shown((fact,))}\n"
                yield "\n"
            case Section():
                yield f"**{shown(block.title)}**\n\n"
                yield from _parts(block.blocks, redact)
            case Table():
                yield f"{document_table(block, redact)}\n\n"
            case Matrix():
                yield "\n".join(_matrix(block, shown)) + "\n\n"
            case Diff():
                yield f"{fenced(map(redact, block.lines))}\n\n"


def _matrix(matrix: Matrix[Row], shown: Callable[[Line], str]) -> Iterator[str]:
    """Yield the lines of a matrix. The blanks that align cells in a terminal are removed."""
    titles = [matrix.first.name, *(shown((Span(head),)) for head in matrix.heads)]
    rows = []
    for row in matrix.rows:
        cells = [shown(matrix.first.cell(row).spans)]
        for at in range(len(matrix.heads)):
            cells.append(" ".join(shown(matrix.cell(row, at).spans).split()))
        rows.append(cells)
    return table(titles, rows)


def document_table(shown: Table[Row], redact: Callable[[str], str] = str) -> str:
    """Return a table in Markdown, with its texts escaped. The remarks on rows become the last column."""
    columns = shown.lasting_columns
    titles = [column.name for column in columns]
    notes: list[str] = []
    if shown.note is not None:
        notes = [redact(shown.note(row).text) for row in shown.rows]
    has_notes = any(notes)
    if has_notes:
        titles.append("note")
    cells = []
    for at, row in enumerate(shown.rows):
        cells.append([redact(column.cell(row).text) for column in columns])
        if has_notes:
            cells[-1].append(notes[at])
    return text_table(titles, cells)


def text_table(titles: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown from plain texts, which are escaped."""
    return "\n".join(table(titles, (map(text, row) for row in rows)))
