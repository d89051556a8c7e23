"""Splits a TOML text into sections, one for each table header. An edit of one section leaves the others unchanged.

Comment lines directly above a header belong to its section. Blank lines, and comments between blank lines, form the gap
after the section above them."""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern
from workbench.suite.positions import scan_headers
from workbench.suite.problems import Place

_LINE = late_pattern(r"[^\n]*\n|[^\n]+")
_LINE_END = late_pattern(r"\r?\n\Z")
_BLANK_AT_START = late_pattern(r"(?:[ \t]*\r?\n)*")
_BLANK_AT_END = late_pattern(r"[ \t\r\n]*\Z")


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a file: `lead` with comments and header line, `body` with keys and values, and `gap` at the end.

    `lead` is empty at the head of a file. Below a header, `body` begins with a line end. `gap` begins with the line end
    of the last value."""

    place: Place
    lead: str
    body: str
    gap: str


def split_sections(text: str) -> list[Section]:
    """Split a TOML text into its head and one section for each header. The head's place is empty.

    The text must be valid TOML without a byte order mark. `join_sections` restores the text. Raises ValueError if the
    lines of the text are not known."""
    positions = scan_headers(text)
    if not positions.are_known:
        raise ValueError("the lines of the text cannot be found, so only the whole text can be edited")
    lines: list[str] = _LINE.findall(text)
    head_end = positions.head_end
    # A head without keys ends with its last comment.
    if not head_end:
        first_header = len(lines) + 1
        if positions.headers:
            first_header = positions.headers[0].first_line
        for number in range(1, first_header):
            if lines[number - 1].strip():
                head_end = number
    tables: list[tuple[Place, int, int, int]] = [((), 0, 0, head_end)]
    for header in positions.headers:
        tables.append((header.place, header.first_line - 1, header.line, header.last_line))
    ends = [start for _, start, _, _ in tables[1:]] + [len(lines)]
    sections = []
    for (place, start, header_line, last), end in zip(tables, ends, strict=True):
        # Comments directly below the last value belong to the section.
        while last < end and lines[last].lstrip().startswith("#"):
            last += 1
        content = _LINE_END.sub("", "".join(lines[start:last]))
        lead = _LINE_END.sub("", "".join(lines[start:header_line]))
        gap = "".join(lines[start:end])[len(content) :]
        sections.append(Section(place, lead, content[len(lead) :], gap))
    return sections


def join_sections(sections: list[Section]) -> str:
    return "".join(f"{section.lead}{section.body}{section.gap}" for section in sections)


def line_end_of(text: str) -> str:
    r"""Return the line end of the first line of a text, `\n` or `\r\n`."""
    first = text.find("\n")
    if first > 0 and text[first - 1] == "\r":
        return "\r\n"
    return "\n"


def gap_without(before: str, after: str, *, at_end: bool) -> str:
    """Join the gaps before and after a removed section. Comments stay, and blank lines are not doubled.

    `at_end` is true if the last section was removed. `before` is empty if the first section was removed."""
    if not before:
        return _BLANK_AT_START.sub("", after, count=1)
    if not before.strip():
        if at_end or after.strip():
            return after
        return max(before, after, key=len)
    if not after.strip():
        if at_end:
            return _BLANK_AT_END.sub("", before) + after
        return before
    return before + _BLANK_AT_START.sub("", after, count=1)
