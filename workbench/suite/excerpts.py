"""The text of a suite with only one case. It is stored with a run and suffices to grade the run."""

from __future__ import annotations

import tomllib
from pathlib import Path

from workbench.suite.suite_file import SuiteFile
from workbench.suite.suite_text import SuiteText

Blocks = tuple[tuple[str, int, int], ...]
"""The places of the cases in the suite's text. Each has the case's id, and the start and end of its block in
characters."""


class Excerpts:
    """Excerpts of suite files with a single case each.

    Each file is split only once, because a batch asks for hundreds of its cases."""

    def __init__(self) -> None:
        self._files: dict[tuple[Path, str], tuple[SuiteText, Blocks] | None] = {}
        self._standing_alone: dict[tuple[Path, str, str], bool] = {}

    def of(self, file: SuiteFile, case_id: str) -> str:
        """Return the text of the suite without the other cases and their comments.

        Return the whole text if there is no such case, or if the cases are not written as separate `[[cases]]` blocks.
        """
        file = file.standalone
        key = (file.path, file.hash)
        if key not in self._files:
            self._files[key] = _taken_apart(file)
        known = self._files[key]
        if known is None or not self._stands_alone(file, *known, case_id):
            return file.text
        return SplitSuiteText(file.text, known[1]).of(case_id)

    def _stands_alone(self, file: SuiteFile, parts: SuiteText, blocks: Blocks, case_id: str) -> bool:
        key = (file.path, file.hash, case_id)
        if key not in self._standing_alone:
            index = next((number for number, (known, _, _) in enumerate(blocks) if known == case_id), None)
            self._standing_alone[key] = index is not None and _stands_alone(parts, index)
        return self._standing_alone[key]


def case_blocks(file: SuiteFile) -> Blocks | None:
    """Return where each case stands in a suite's text, or `None` if the cases are not separate `[[cases]]` blocks.

    The blank lines below a case belong to its block."""
    file = file.standalone
    if file.suite is None or not file.case_places:
        return None
    blocks = []
    for case, place in zip(file.suite.cases, file.case_places, strict=True):
        blocks.append((case.id, *place))
    return tuple(blocks)


def _taken_apart(file: SuiteFile) -> tuple[SuiteText, Blocks] | None:
    blocks, parts = case_blocks(file), file.parts
    if blocks is None or parts is None:
        return None
    return parts, blocks


def _stands_alone(parts: SuiteText, index: int) -> bool:
    """Return whether the block of a case, parsed alone, is exactly this case."""
    try:
        return tomllib.loads(parts.blocks[index]) == {"cases": [parts.cases[index]]}
    except ValueError:
        return False


class SplitSuiteText:
    """A suite's text, split once for cutting out many cases."""

    def __init__(self, text: str, blocks: Blocks) -> None:
        self._text = text
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        """For each case, the position of its block in the text without cases, and start and end in the whole text."""
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
        """The text without its cases."""
        return self._between

    def of(self, case_id: str, block: str | None = None) -> str:
        """Return the text without the blocks of other cases, or the whole text if there is no such case.

        `block` replaces the text of the case."""
        if case_id not in self._places:
            return self._text
        parts: list[str] = []
        end = 0
        for cut, first, after in self._places[case_id]:
            parts += (self._between[end:cut], self._text[first:after] if block is None else block)
            end = cut
        return "".join((*parts, self._between[end:]))
