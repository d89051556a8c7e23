"""Counts which tool was called where which one was expected, over many runs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from workbench.dataclasses import dataclass
from workbench.grading.tool_names import normalised_name

Pair = tuple[str | None, str | None]
"""The expected tool (`None`: no call was expected) and the called one (`None`: no call was made)."""


@dataclass(frozen=True)
class Confusion:
    """How often each pair occurred."""

    counts: Mapping[Pair, int]

    @cached_property
    def mixed_up(self) -> list[tuple[Pair, int]]:
        """The pairs that differ where a call was expected, the most frequent first."""
        off = [(pair, count) for pair, count in self.counts.items() if pair[0] is not None and pair[0] != pair[1]]
        return sorted(off, key=lambda entry: (-entry[1], entry[0][0] or "", entry[0][1] or ""))

    @cached_property
    def _tools(self) -> list[str]:
        """All tools, the most confused ones first."""
        off: Counter[str] = Counter()
        for (expected, called), count in self.counts.items():
            for tool in (expected, called):
                if tool is not None:
                    off[tool] += count if expected != called else 0
        return sorted(off, key=lambda tool: (-off[tool], tool))

    @cached_property
    def rows(self) -> list[str | None]:
        """The expected tools; `None`, where there is such a row, means calls that were not expected."""
        there = {expected for expected, _ in self.counts}
        return [tool for tool in (*self._tools, None) if tool in there]

    @cached_property
    def columns(self) -> list[str | None]:
        """The called tools; `None`, where there is such a column, means no call, and comes first."""
        there = {called for _, called in self.counts}
        return [tool for tool in (None, *self._tools) if tool in there]

    @property
    def without_sure_ones(self) -> Confusion:
        """Returns the table without the tools that were called exactly where they were expected."""
        unsure = {tool for pair in self.counts if pair[0] != pair[1] for tool in pair}
        return Confusion({pair: count for pair, count in self.counts.items() if unsure.intersection(pair)})


def confusion_of(runs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Confusion:
    """Count runs, each given as the tools that it was expected to call and those that it called, in order. The deciding
    grader does not matter: within a run equal tools are paired in any order, and the rest is paired in order, so that a
    tool called in place of another is paired with it."""
    fold = ConfusionFold()
    for expected, called in runs:
        fold.add(expected, called)
    return fold.found()


class ConfusionFold:
    """Counts as `confusion_of`, run by run."""

    def __init__(self) -> None:
        self._counts: Counter[Pair] = Counter()
        self._names: dict[str, str] = {}
        self._known: dict[str, str] = {}

    def add(self, expected: Sequence[str], called: Sequence[str]) -> None:
        """Add a run."""
        self._counts.update(_pairs([*map(self._canonical, expected)], [*map(self._canonical, called)]))

    def found(self) -> Confusion:
        """Returns the counts so far."""
        return Confusion(self._counts)

    def _canonical(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = self._names.setdefault(normalised_name(name), name)
        return self._known[name]


def _pairs(expected: Sequence[str], called: Sequence[str]) -> Iterator[Pair]:
    open_calls = Counter(called)
    left: list[str] = []
    for tool in expected:
        if open_calls[tool]:
            open_calls[tool] -= 1
            yield tool, tool
        else:
            left.append(tool)
    # Of equal calls the first ones are taken, so those that are left are the last.
    over: deque[str] = deque()
    for tool in reversed(called):
        if open_calls[tool]:
            open_calls[tool] -= 1
            over.appendleft(tool)
    for tool in left:
        yield tool, over.popleft() if over else None
    for tool in over:
        yield None, tool
