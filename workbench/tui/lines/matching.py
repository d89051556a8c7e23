"""Finds a text in lines. Matches ignore case and line wraps."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from workbench.dataclasses import dataclass
from workbench.show.spans import Line, Role, Span
from workbench.show.visible import visible
from workbench.tui.lines.json_lines import texts_of

_BROKEN_ROW = r"(?:\n *)?"
"""A value may continue on the next row wherever a pane wraps it."""


@dataclass(frozen=True)
class Found:
    """The place of one match in lines: for each line, the characters from `start` to `end`."""

    pieces: tuple[tuple[int, int, int], ...]

    @property
    def line(self) -> int:
        """The line where the match begins."""
        return self.pieces[0][0]


def pattern_for(text: str) -> re.Pattern[str] | None:
    """Return the pattern of a searched text, `None` for a blank one."""
    words = [_BROKEN_ROW.join(map(re.escape, word)) for word in visible(text).split()]
    return re.compile(r"\s+".join(words), re.IGNORECASE) if words else None


def found_in(lines: Sequence[Line], pattern: re.Pattern[str]) -> list[Found]:
    """Return the matches in lines, in order."""
    texts = list(texts_of(lines))
    starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
    return [_placed(match, starts) for match in pattern.finditer("\n".join(texts))]


def _placed(match: re.Match[str], starts: Sequence[int]) -> Found:
    line = bisect_right(starts, match.start()) - 1
    column = match.start() - starts[line]
    pieces: list[tuple[int, int, int]] = []
    for text in match[0].split("\n"):
        blank = len(text) - len(text.lstrip(" ")) if pieces else 0
        pieces.append((line, column + blank, column + len(text)))
        line, column = line + 1, 0
    return Found(tuple(pieces))


def marked(line: Line, pieces: Sequence[tuple[int, int, Role]]) -> Line:
    """Give parts of a line, in order, different roles."""
    spans: list[Span] = []
    position = 0
    for text, role in line:
        at = 0
        for start, end, found in pieces:
            first, last = max(start - position, at), min(end - position, len(text))
            if first < last:
                spans += [Span(text[at:first], role), Span(text[first:last], found)]
                at = last
        spans.append(Span(text[at:], role))
        position += len(text)
    return tuple(span for span in spans if span.text)
