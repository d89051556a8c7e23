"""Cuts a suite's text down to one case, so that a run can be stored together with all that it was graded by."""

from __future__ import annotations

import tomllib
from pathlib import Path

from workbench.suite.loading import SuiteFile
from workbench.suite.splice import SpliceError, SuiteText

Blocks = tuple[tuple[str, int, int], ...]
"""For each case its id, and where its block starts and ends in the suite's text, counted in characters."""


class Excerpts:
    """Cuts cases out of suite files. Each file is taken apart once, because a batch asks for hundreds of its cases."""

    def __init__(self) -> None:
        self._files: dict[tuple[Path, str], tuple[SuiteText, Blocks] | None] = {}
        self._standing_alone: dict[tuple[Path, str, str], bool] = {}

    def of(self, file: SuiteFile, case_id: str) -> str:
        """Returns the suite with only this case, everything else as it is written, comments too.

        Returns the whole text when the cases do not stand in blocks of their own, or when there is no such case.
        """
        key = (file.path, file.hash)
        if key not in self._files:
            self._files[key] = _taken_apart(file)
        known = self._files[key]
        if known is None or not self._stands_alone(file, *known, case_id):
            return file.text
        return cut_out(file.text, known[1], case_id)

    def _stands_alone(self, file: SuiteFile, parts: SuiteText, blocks: Blocks, case_id: str) -> bool:
        key = (file.path, file.hash, case_id)
        if key not in self._standing_alone:
            index = next((number for number, (known, _, _) in enumerate(blocks) if known == case_id), None)
            self._standing_alone[key] = index is not None and _stands_alone(parts, index)
        return self._standing_alone[key]


def case_blocks(file: SuiteFile) -> Blocks | None:
    """Returns where the cases stand in a suite's text; `None` when they do not stand in blocks of their own. The blank
    lines below a case belong to its block."""
    known = _taken_apart(file)
    return known[1] if known is not None else None


def _taken_apart(file: SuiteFile) -> tuple[SuiteText, Blocks] | None:
    try:
        parts = SuiteText.of(file.text)
    except SpliceError:
        return None
    if file.suite is None or not parts.blocks:
        return None
    blocks: list[tuple[str, int, int]] = []
    end = 0
    for case, before, block, after in zip(
        file.suite.cases, parts.between, parts.blocks, parts.between[1:], strict=False
    ):
        first = end + len(before)
        end = first + len(block)
        blocks.append((case.id, first, end + len(after) - len(after.lstrip())))
    return parts, tuple(blocks)


def _stands_alone(parts: SuiteText, index: int) -> bool:
    """Whether the block of a case by itself says the same case, and nothing else."""
    try:
        return tomllib.loads(parts.blocks[index]) == {"cases": [parts.cases[index]]}
    except ValueError:
        return False


def cut_out(text: str, blocks: Blocks, case_id: str) -> str:
    """Returns a suite's text without the blocks of all cases but one; the whole text when there is no such case."""
    return CutText(text, blocks).of(case_id)


class CutText:
    """A suite's text, taken apart once to cut many cases out of it."""

    def __init__(self, text: str, blocks: Blocks) -> None:
        self._text = text
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        """For each case, where its block belongs in what is between the blocks, and where it is in the text."""
        between: list[str] = []
        end = cut = 0
        for case, first, after in blocks:
            between.append(text[end:first])
            cut += len(between[-1])
            self._places.setdefault(case, []).append((cut, first, after))
            end = after
        self._between = "".join((*between, text[end:]))

    @property
    def without_cases(self) -> str:
        """The text without the block of any case."""
        return self._between

    def of(self, case_id: str) -> str:
        """Returns the text without the blocks of all other cases; the whole text when there is no such case."""
        if case_id not in self._places:
            return self._text
        parts: list[str] = []
        end = 0
        for cut, first, after in self._places[case_id]:
            parts += (self._between[end:cut], self._text[first:after])
            end = cut
        return "".join((*parts, self._between[end:]))
