"""Line-by-line differences between two texts, drawn as lines."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from workbench.dataclasses import dataclass
from workbench.numerals import count_text, counted
from workbench.show.spans import Line, Role, Span, cut_line
from workbench.show.visible import one_line

Sign = Literal["-", "+", " ", "@"]

CONTEXT_LINES = 2
MAX_COMPARED = 4_000_000
"""Above this product of line counts, everything between the common start and end counts as replaced."""

MOST_SHOWN = 400
"""Maximum number of shown lines. Further lines are only counted."""

# A line of a minified file may have a million characters, but a screen shows only some hundreds.
_MAX_SHOWN_CHARS = 500

_ROLES: dict[Sign, Role] = {"-": "failed", "+": "passed", " ": "muted", "@": "comment"}


@dataclass(frozen=True)
class Difference:
    """A line-by-line difference of two texts: removed (`-`), added (`+`) and context lines.

    As in `diff -u`, each group of lines begins with its line numbers (`@`)."""

    lines: tuple[tuple[Sign, str], ...]

    @property
    def removed(self) -> int:
        return sum(sign == "-" for sign, _ in self.lines)

    @property
    def added(self) -> int:
        return sum(sign == "+" for sign, _ in self.lines)

    def __str__(self) -> str:
        """Return the number of changed, added and removed lines in words."""
        # Within a group, one removed and one added line count as one changed line.
        changed = sum(min(gone, came) for gone, came in self._groups())
        counts = ((changed, "changed"), (self.added - changed, "added"), (self.removed - changed, "removed"))
        texts: list[str] = []
        for count, verb in counts:
            if count:
                number = count_text(count) if texts else counted(count, "line")  # only the first number has a unit
                texts.append(f"{number} {verb}")
        return ", ".join(texts) or "no difference"

    def _groups(self) -> Iterator[tuple[int, int]]:
        for differs, lines in groupby(self.lines, lambda line: line[0] in "-+"):
            if differs:
                signs = [sign for sign, _ in lines]
                yield signs.count("-"), signs.count("+")

    def drawn(self, width: int) -> list[Line]:
        """Return a row of at most `width` cells for each line of the difference."""
        rows: list[Line] = []
        for sign, text in self.lines[:MOST_SHOWN]:
            lead = "" if sign == "@" else sign
            rows.append(cut_line((Span(f" {lead} {one_line(text[:_MAX_SHOWN_CHARS])}", _ROLES[sign]),), width))
        if (more := len(self.lines) - MOST_SHOWN) > 0:
            rows.append((Span(f"   and {counted(more, 'line')} more", "comment"),))
        return rows


def difference(old: str, new: str) -> Difference:
    return Difference(tuple(_lines(old.split("\n"), new.split("\n"))))


def _lines(old: list[str], new: list[str]) -> Iterator[tuple[Sign, str]]:
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    # Only the lines between the common start and end are compared, with some context.
    first = max(start - CONTEXT_LINES, 0)
    before = old[first : len(old) - end]
    after = new[first : len(new) - end]
    if before == after:
        return
    context = old[len(old) - end :][:CONTEXT_LINES]
    if len(before) * len(after) > MAX_COMPARED:
        # `SequenceMatcher` takes quadratic time, which is too slow for a dialog. In large texts, everything between the
        # common start and the common end therefore counts as replaced.
        same = start - first
        groups = [[("equal", 0, same, 0, same), ("replace", same, len(before), same, len(after))]]
    else:
        groups = list(SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT_LINES))
    for at, group in enumerate(groups):
        yield "@", f"line {first + group[0][3] + 1}"
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                for line in before[old_start:old_end]:
                    yield (" ", line)
            else:
                for line in before[old_start:old_end]:
                    yield ("-", line)
                for line in after[new_start:new_end]:
                    yield ("+", line)
        # The lines after the last change were not compared, so no group contains them.
        if at == len(groups) - 1:
            for line in context:
                yield (" ", line)


def _common(old: list[str], new: list[str]) -> int:
    for at, (left, right) in enumerate(zip(old, new, strict=False)):
        if left != right:
            return at
    return min(len(old), len(new))
