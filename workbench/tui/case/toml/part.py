"""The part of a suite's text that the TOML view shows: the block of a case, the head, or the whole file if it is not
TOML or not in blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.authoring.document import HEAD, CaseOutline, Document
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.show.spans import Role
from workbench.suite.problems import Problem
from workbench.tui.kit.typed_text import LONGEST_SHOWN, MAX_LINE_CHARS, Found, Place
from workbench.tui.tree.state import Row


@dataclass(frozen=True)
class TomlPart:
    """A part of an open suite. `index` is that of the case, `HEAD`, or `None` for the whole file. `key` is that of the
    case."""

    suite: OpenSuite
    index: int | None
    key: str | None = None

    @property
    def text(self) -> str:
        """The current text. Raises IndexError if the case no longer exists."""
        document = self.suite.document
        return document.text if self.index is None else document.block(self.index)

    @property
    def first(self) -> int:
        """The line number in the file of its first line."""
        return 1 if self.index is None or self.index == HEAD else self.suite.document.first_line(self.index)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of the part."""
        return self.suite.file.problems if self.index is None else self.suite.problems_of(self.index)

    @property
    def name(self) -> str:
        """The name of the part in a sentence."""
        if self.index is None:
            return self.suite.path.name
        case = self._case
        return case.name if case is not None else f"the head of {self.suite.path.name}"

    @property
    def file_name(self) -> str:
        """The name of a file with only this part."""
        case = self._case
        stem = re.sub(r"[^\w-]+", "-", case.id if case is not None else self.suite.path.stem).strip("-")
        return f"{stem[:60] or 'suite'}.toml"

    @property
    def _case(self) -> CaseOutline | None:
        return next((case for case in self.suite.cases if case.index == self.index), None)

    @property
    def too_large(self) -> str | None:
        """Why the part is too large to be edited here, if it is."""
        lines = self.text.split("\n")
        longest = max(map(len, lines))
        if len(lines) > LONGEST_SHOWN:
            return f"{self.name} has {len(lines):,} lines: F4 opens it in your editor"
        if longest > MAX_LINE_CHARS:
            return f"{self.name} has a line of {longest:,} characters: F4 opens it in your editor"
        return None

    def with_text(self, text: str) -> Document:
        """Return the document with different text in this part, valid or not."""
        document = self.suite.document
        return document.with_text(text) if self.index is None else document.with_block(self.index, text)


def part_of(row: Row | None) -> TomlPart | None:
    """Return the part for a row, `None` if it has no suite."""
    if row is None or row.open is None:
        return None
    if not row.open.document.in_blocks:
        return TomlPart(row.open, None)
    return TomlPart(row.open, row.case.index, row.case.key) if row.case is not None else TomlPart(row.open, HEAD)


def found_in(lines: Sequence[str], text: str, current: Place | None = None) -> Found:
    """Return the matches of a text in lines, ignoring case. The match at `current` is highlighted."""
    if not text.strip():
        return {}
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    found: dict[int, list[tuple[int, int, Role]]] = {}
    for index, line in enumerate(lines):
        for match in pattern.finditer(line):
            role: Role = "badge" if (index, match.start()) == current else "match"
            found.setdefault(index, []).append((*match.span(), role))
    return found
