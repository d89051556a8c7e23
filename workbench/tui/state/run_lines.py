"""A run as one list of lines of a given width: which item is where is found by bisection over prefix sums, and laid out
items are kept for a while, so that a screen costs its visible lines however long the run is."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence

from workbench.reports.issues import issue_text
from workbench.tui.state.items import (
    CallItem,
    Item,
    MessageItem,
    MissingItem,
    NoticeItem,
    OutcomeItem,
    ResultItem,
    RoundItem,
    TextItem,
    ToolsItem,
)
from workbench.tui.state.layout import lines_of
from workbench.tui.state.run_view import RunView
from workbench.tui.state.spans import EMPTY, Line

KEPT_LAYOUTS = 512
"""Items whose lines are kept."""


class RunLines:
    """The lines of one run at one width."""

    def __init__(self, view: RunView, width: int) -> None:
        self.view = view
        self.width = width
        self.laid_out = 0
        """How many items were laid out since this was made: what a frame costs."""
        self._expanded: set[int] = set()
        self._heights: list[int] = []
        self._starts: list[int] = [0]
        self._valid = 0
        self._layouts: dict[int, Sequence[Line]] = {}
        view.take_changes()
        view.take_cut()
        self._measure(range(len(view.items)))

    @property
    def count(self) -> int:
        """Number of lines."""
        self._sum_up()
        return self._starts[-1]

    def line(self, index: int) -> Line:
        """One line; an empty one beyond the end."""
        item = self.item_at(index)
        if item is None:
            return EMPTY
        return self._lines(item)[index - self._starts[item]]

    def item_at(self, index: int) -> int | None:
        """The item to which a line belongs."""
        if not 0 <= index < self.count:
            return None
        return bisect_right(self._starts, index) - 1

    def start_of(self, item: int) -> int:
        """The first line of an item."""
        self._sum_up()
        return self._starts[item]

    def heights_from(self, first: int) -> int:
        """How many items from `first` on have lines to show."""
        return sum(height > 0 for height in self._heights[first:])

    def sync(self) -> bool:
        """Take over what changed in the run; whether anything did."""
        rebuilt, changed = self.view.take_changes()
        cut = self.view.take_cut()
        if rebuilt:
            self._expanded = set()
            self._measure(range(len(self.view.items)), forget=True)
        else:
            if cut is not None:
                self._forget_from(cut)
            self._measure(changed)
        return rebuilt or cut is not None or bool(changed)

    def resize(self, width: int) -> None:
        """Lay everything out at another width."""
        if width != self.width:
            self.width = width
            self._measure(range(len(self.view.items)), forget=True)

    def toggle(self, item: int) -> None:
        """Expand an item, or fold it again."""
        self._expanded ^= {item}
        self._measure([item])

    def _forget_from(self, first: int) -> None:
        del self._heights[first:]
        self._valid = min(self._valid, first)
        self._expanded = {item for item in self._expanded if item < first}
        self._layouts = {item: lines for item, lines in self._layouts.items() if item < first}

    def _measure(self, items: range | list[int], *, forget: bool = False) -> None:
        if forget:
            self._layouts.clear()
            self._heights = []
            self._valid = 0
        for item in items:
            self._layouts.pop(item, None)
            height = len(self._lines(item))
            if item < len(self._heights):
                if self._heights[item] == height:
                    continue
                self._heights[item] = height
            else:
                self._heights.append(height)
            self._valid = min(self._valid, item)

    def _lines(self, item: int) -> Sequence[Line]:
        lines = self._layouts.get(item)
        if lines is None:
            lines = lines_of(self.view.items[item], self.width, item in self._expanded)
            self.laid_out += 1
            self._layouts[item] = lines
            if len(self._layouts) > KEPT_LAYOUTS:
                del self._layouts[next(iter(self._layouts))]
        return lines

    def _sum_up(self) -> None:
        if self._valid == len(self._heights) and len(self._starts) == len(self._heights) + 1:
            return
        del self._starts[self._valid + 1 :]
        total = self._starts[self._valid]
        for height in self._heights[self._valid :]:
            total += height
            self._starts.append(total)
        self._valid = len(self._heights)


def copied_text(item: Item) -> tuple[str, str]:
    """What copying an item yields, unshortened, and what to call it."""
    match item:
        case MessageItem() | TextItem():
            return item.text.text, "the text"
        case ToolsItem():
            return "\n".join(tool.name for tool in item.tools), "the tools' names"
        case NoticeItem():
            return item.text, "the notice"
        case RoundItem():
            return "\n".join(item.errors), "the errors"
        case CallItem():
            return _call_text(item), "the call"
        case ResultItem():
            return (item.result.content if item.result else ""), "the result"
        case MissingItem():
            wanted = "\n".join(f"{verdict.argument} = {verdict.expected}" for verdict in item.verdicts)
            return f"{item.tool}\n{wanted}".strip(), "the expected call"
        case OutcomeItem():
            return _outcome_text(item), "the outcome"


def _call_text(item: CallItem) -> str:
    arguments = item.raw if item.raw is not None or item.arguments is None else json.dumps(dict(item.arguments))
    return f"{item.tool} {arguments if arguments is not None else ''.join(item.fragments)}"


def _outcome_text(item: OutcomeItem) -> str:
    result = item.result
    if result is None:
        return ""
    issues = [issue_text(issue) for grade in result.grades for issue in grade.issues]
    head = f"{result.case_name} [{result.model}]: {result.status}"
    return "\n".join([head, *([result.error] if result.error else []), *issues])
