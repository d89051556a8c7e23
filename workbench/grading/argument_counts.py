"""The measure "valid arguments": the number of calls of each tool whose arguments are valid by the tool's schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from workbench.dataclasses import dataclass


class ToolArguments(NamedTuple):
    """The number of calls of one tool, by the validity of their arguments.

    `checked` calls were validated against the tool's schema, and the `valid` ones among them passed. The other calls
    are `unknown`, because they had no usable schema."""

    tool: str
    valid: int
    checked: int
    unknown: int


@dataclass(frozen=True, slots=True)
class ValidArguments:
    """The calls of some runs counted by tool, in the order of the first calls. `ToolArguments` explains the counts.

    Runs that were not graded add no calls. Neither do runs that were graded by a version without this measure."""

    tools: tuple[ToolArguments, ...] = ()

    @property
    def valid(self) -> int:
        return sum(tool.valid for tool in self.tools)

    @property
    def checked(self) -> int:
        return sum(tool.checked for tool in self.tools)

    @property
    def unknown(self) -> int:
        return sum(tool.unknown for tool in self.tools)

    @property
    def invalid_tools(self) -> tuple[ToolArguments, ...]:
        return tuple(tool for tool in self.tools if tool.valid < tool.checked)

    @property
    def rate(self) -> float | None:
        """Valid calls divided by checked calls, 0..1, or `None` if no call was checked."""
        if checked := self.checked:
            return self.valid / checked
        return None


NOTHING_CHECKED = ValidArguments()


class _Called(Protocol):
    @property
    def called(self) -> tuple[str, ...]: ...
    @property
    def valid_arguments(self) -> tuple[bool | None, ...]: ...


class ArgumentsFold:
    """The call counts of each tool, updated by each run."""

    def __init__(self) -> None:
        self._tools: dict[str, list[int]] = {}

    def add(self, run: _Called) -> None:
        # If an answer exceeds a limit, its calls are not validated. They are the last items of `called`, and
        # `valid_arguments` has no items for them.
        for tool, valid in zip(run.called, run.valid_arguments, strict=False):
            self._add(tool, valid is True, valid is not None, valid is None)

    def add_counts(self, counts: Iterable[ToolArguments]) -> None:
        for tool, *numbers in counts:
            self._add(tool, *numbers)

    def _add(self, tool: str, valid: int, checked: int, unknown: int) -> None:
        counts = self._tools.setdefault(tool, [0, 0, 0])
        counts[0] += valid
        counts[1] += checked
        counts[2] += unknown

    def counts(self) -> ValidArguments:
        if not self._tools:
            return NOTHING_CHECKED
        by_tool = [ToolArguments(tool, *counts) for tool, counts in self._tools.items()]
        return ValidArguments(tuple(by_tool))


def valid_arguments_of(run: _Called) -> ValidArguments:
    fold = ArgumentsFold()
    fold.add(run)
    return fold.counts()


def valid_arguments_in(counts: Iterable[Iterable[ToolArguments]]) -> ValidArguments:
    fold = ArgumentsFold()
    for of_run in counts:
        fold.add_counts(of_run)
    return fold.counts()
