"""Cuts a TOML text into sections, one for each table header, so that one can be changed and the rest stays as it is.

The comment lines directly above a header belong to its section. Blank lines, and comments between blank lines, belong
to no section: they are the gap behind the one before.
"""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern
from workbench.suite.positions import scan
from workbench.suite.problems import Place

_LINE = late_pattern(r"[^\n]*\n|[^\n]+")
_LINE_END = late_pattern(r"\r?\n\Z")
_BLANK_AT_START = late_pattern(r"(?:[ \t]*\r?\n)*")
_BLANK_AT_END = late_pattern(r"[ \t\r\n]*\Z")


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a file: `lead` with comments and header line, `body` with the pairs, and `gap` at the end.

    `lead` is empty at the head of a file. Below a header, `body` begins with a line end; `gap` begins with the line end
    of the last pair."""

    place: Place
    lead: str
    body: str
    gap: str


def cut(text: str) -> list[Section]:
    """Return the head of a text (its place is empty) and the section of each header; joined, they are the text again.

    The text must be TOML, without a byte order mark. Raises ValueError if it cannot be cut, though it is.
    """
    positions = scan(text)
    if not positions.are_known:
        raise ValueError("its lines cannot be told, so only the whole text can be edited")
    lines: list[str] = _LINE.findall(text)
    head_end = positions.head_end
    if not head_end:
        first_header = positions.headers[0].first_line if positions.headers else len(lines) + 1
        head_end = max((number for number in range(1, first_header) if lines[number - 1].strip()), default=0)
    tables = [((), 0, 0, head_end)] + [
        (header.place, header.first_line - 1, header.line, header.last_line) for header in positions.headers
    ]
    ends = [start for _, start, _, _ in tables[1:]] + [len(lines)]
    sections = []
    for (place, start, header_line, last), end in zip(tables, ends, strict=True):
        while last < end and lines[last].lstrip().startswith("#"):
            last += 1
        content = _LINE_END.sub("", "".join(lines[start:last]))
        lead = _LINE_END.sub("", "".join(lines[start:header_line]))
        gap = "".join(lines[start:end])[len(content) :]
        sections.append(Section(place, lead, content[len(lead) :], gap))
    return sections


def joined(sections: list[Section]) -> str:
    """Return the text of sections."""
    return "".join(part for section in sections for part in (section.lead, section.body, section.gap))


def line_end_of(text: str) -> str:
    """Return how lines end: as the first one does."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def gap_without(before: str, after: str, *, at_end: bool) -> str:
    """Return the gap that is left when the text between two gaps is removed: comments stay, blank lines do not add up.

    `at_end` means that nothing follows; an empty `before` means that nothing precedes.
    """
    if not before:
        return _BLANK_AT_START.sub("", after, count=1)
    if not before.strip():
        if at_end or after.strip():
            return after
        return max(before, after, key=len)
    if not after.strip():
        return _BLANK_AT_END.sub("", before) + after if at_end else before
    return before + _BLANK_AT_START.sub("", after, count=1)
