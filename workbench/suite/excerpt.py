"""A suite's text cut down to one case, so that a run can be kept together with all that it was graded by."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from workbench.suite.loading import SuiteFile

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Excerpts:
    """Cuts cases out of suite files. What was found out about a file is kept, since a batch asks for hundreds."""

    def __init__(self) -> None:
        self._files: dict[tuple[Path, str], _File | None] = {}

    def of(self, file: SuiteFile, case_id: str) -> str:
        """The suite with only this case, everything else as it is written, comments too.

        The whole text when the cases do not stand in blocks of their own, or when there is no such case.
        """
        key = (file.path, file.hash)
        if key not in self._files:
            self._files[key] = _taken_apart(file)
        parts = self._files[key]
        index = next((n for n, case in enumerate(file.suite.cases if file.suite else ()) if case.id == case_id), None)
        if parts is None or index is None or not parts.stands_alone(index):
            return file.text
        return parts.text_with(index)


Blocks = tuple[tuple[str, int, int], ...]
"""For each case its id and where its block begins and ends in the suite's text, counted in characters."""


def case_blocks(file: SuiteFile) -> Blocks | None:
    """Where the cases of a suite stand in its text; `None` when they do not stand in blocks of their own."""
    parts = _taken_apart(file)
    if parts is None or file.suite is None:
        return None
    blocks: list[tuple[str, int, int]] = []
    end = 0
    for case, before, block in zip(file.suite.cases, parts.between, parts.blocks, strict=False):
        first = end + len(before)
        end = first + len(block)
        blocks.append((case.id, first, end))
    return tuple(blocks)


def cut_out(text: str, blocks: Blocks, case_id: str) -> str:
    """A suite's text without the blocks of all cases but one; the whole text when there is no such case."""
    if not any(known == case_id for known, _, _ in blocks):
        return text
    kept: list[str] = []
    end = 0
    for known, first, after in blocks:
        kept.append(text[end:first])
        if known == case_id:
            kept.append(text[first:after])
        end = after
    return "".join((*kept, text[end:]))


@dataclass
class _File:
    """A text as the blocks of its cases and what stands before each of them and after the last, each with its line
    ends. `cases` are the tables of the cases."""

    between: list[str]
    blocks: list[str]
    cases: list[object]
    _alone: dict[int, bool] = field(default_factory=dict)

    def stands_alone(self, index: int) -> bool:
        """Whether a block by itself says the same case, and nothing else."""
        if index not in self._alone:
            self._alone[index] = _table(self.blocks[index]) == {"cases": [self.cases[index]]}
        return self._alone[index]

    def text_with(self, index: int) -> str:
        return "".join([*self.between[: index + 1], self.blocks[index], *self.between[index + 1 :]])


def _taken_apart(file: SuiteFile) -> _File | None:
    """`None` when the rest of the suite does not stand by itself either: cases in brackets, for one."""
    document = _table(file.text) or {}
    cases = document.pop("cases", None)
    if not isinstance(cases, list):
        return None
    lines = _LINE.findall(file.text)
    between: list[str] = []
    blocks: list[str] = []
    end = 0
    for index in range(len(cases)):
        first, last = file.positions.block(("cases", index))
        if first <= end:
            return None
        between.append("".join(lines[end : first - 1]))
        blocks.append("".join(lines[first - 1 : last]))
        end = last
    between.append("".join(lines[end:]))
    # A case's block opens with its header and ends before another: together the parts say what they say apart.
    return _File(between, blocks, cases) if _table("".join(between)) == document else None


def _table(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
