"""The lines of a run at one width, with a search."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from workbench.show.lazy_lines import LazyLayout
from workbench.show.search import Found, found_in, marked, pattern_for
from workbench.show.spans import Line, Role
from workbench.show.views.run_items import (
    CallItem,
    HoldItem,
    Item,
    MissingItem,
    ResultItem,
    ServerRequestItem,
    StepItem,
)
from workbench.show.views.run_lines import lines_of, rough_height
from workbench.show.views.run_view import RunView


class Place(NamedTuple):
    """A reference to a line of an item, which stays valid while lines are added above it.

    `line` counts from the first line of the item. `number` is the last known index of the item."""

    item: Item
    line: int
    number: int


Annotate: TypeAlias = Callable[[CallItem, int], Sequence[Line] | None]
"""Returns the lines to show for a call at a width, or `None` to show the call's own lines."""


class RunLines(LazyLayout):
    """The lines of one run at one width, with a search.

    Items near the screen are laid out. The heights of other items are estimates."""

    def __init__(self, view: RunView, width: int) -> None:
        super().__init__(width)
        self.view = view
        self.looked_for = ""
        """The searched text, "" without a search."""
        self._pattern: re.Pattern[str] | None = None
        self._times: list[int] = []
        """The number of matches in each item."""
        self._found: dict[int, list[Found]] = {}
        self._current: tuple[int, int] | None = None
        """The selected match: the index of its item, and its index within the item."""
        self._annotate: Annotate | None = None
        self._expanded: set[int] = set()
        """The identities of the expanded items. Their indices can change."""
        view.take_changes()
        view.take_cut()
        self._reset()

    def line(self, index: int) -> Line:
        """Return one line with highlighted matches. Return an empty line beyond the end."""
        line, item = super().line(index), self.item_at(index)
        if not line or item is None:
            return line
        pieces = self._pieces(item, index - self.start_of(item))
        if not pieces:
            return line
        return marked(line, pieces)

    @property
    def held_line(self) -> int | None:
        """The line at which the run is held. `None` if the run is not held or asks for permission."""
        if self.view.held_index is None or self.view.held_index >= len(self._items):
            return None
        match self._items[self.view.held_index]:
            case HoldItem() | CallItem() | ServerRequestItem():
                return self.start_of(self.view.held_index)
            case ResultItem(hold_reason=str()):
                self._set_height(self.view.held_index)
                # The last lines of a held result are its actions, drawn as badges. The first of them is the line of the
                # hold.
                start = self.start_of(self.view.held_index + 1)
                for line in reversed(self._lines(self.view.held_index)):
                    if not line or line[0].role != "badge":
                        break
                    start -= 1
                return start
            case _:
                return None

    def step_start(self, step: int) -> int | None:
        """Return the line of the heading of a step (from 1), `None` if the step has not begun."""
        for index, item in enumerate(self._items):
            if isinstance(item, StepItem) and item.step == step:
                # An empty line comes before the heading.
                return self.start_of(index) + 1
        return None

    @property
    def failure_start(self) -> int | None:
        """The line of the first call with an issue, or of the first missing expected call."""
        for index, item in enumerate(self._items):
            if isinstance(item, CallItem | MissingItem) and item.issues:
                return self.start_of(index)
        return None

    def item_count_from(self, first: int) -> int:
        """Return the number of visible items from the item `first` to the end."""
        return self._heights.shown_from(first)

    def place_of(self, index: int) -> Place | None:
        """Return a reference to a line. The reference stays valid while lines are added above."""
        item = self.item_at(index)
        if item is None:
            return None
        return Place(self._items[item], index - self._heights.start_of(item), item)

    def index_of(self, place: Place | None, default: int) -> int:
        """Return the current index of a place, or `default` if its item is gone.

        If the item became shorter, return its last line."""
        if place is None:
            return default
        # The fast case comes first: nearly always, the item still has its index.
        if self._items[place.number : place.number + 1] and self._items[place.number] is place.item:
            return self._index_in(place.number, place.line)
        for item, other in enumerate(self._items):
            if other is place.item:
                return self._index_in(item, place.line)
        return min(default, self.count)

    def sync(self) -> bool:
        """Apply the changes of the run. Return whether there were any."""
        rebuilt, changed = self.view.take_changes()
        cut = self.view.take_cut()
        if rebuilt:
            self._reset()
        else:
            if cut is not None:
                self._forget_from(cut)
            self._add_items(changed)
        return rebuilt or cut is not None or bool(changed)

    def resize(self, width: int) -> None:
        if width != self.width:
            self._found.clear()
        super().resize(width)

    def annotate(self, annotate: Annotate | None) -> None:
        """Set a function that renders calls in place of their own lines. `None` removes it."""
        if annotate is self._annotate:
            return
        self._annotate = annotate
        for index, item in enumerate(self._items):
            if isinstance(item, CallItem):
                self._measure(index)

    def call_start(self, call: int) -> int | None:
        """Return the line of a call, by its index in the run."""
        for index, item in enumerate(self._items):
            if isinstance(item, CallItem) and item.index == call:
                self._set_height(index)
                return self.start_of(index)
        return None

    def toggle(self, item: int) -> None:
        self._expanded ^= {id(self._items[item])}
        self._measure(item)

    # Searching

    def search(self, text: str) -> None:
        """Search for a text. A blank text ends the search."""
        longer = bool(self.looked_for.strip()) and text.startswith(self.looked_for)
        self.looked_for, self._pattern, self._current = text, pattern_for(text), None
        self._found.clear()
        self._count_matches(longer=longer)

    @property
    def matches(self) -> int:
        return sum(self._times)

    @property
    def match(self) -> int | None:
        """The index of the selected match among all matches."""
        if self._current is None:
            return None
        item, number = self._current
        return sum(self._times[:item]) + number

    def go_to_match(self, step: int, line: int) -> int | None:
        """Select the next (`step` 1) or previous (-1) match, wrapping around. Return its line.

        Without a selected match, the search begins at `line`. Returns `None` if there are no matches."""
        total = self.matches
        if not total:
            return None
        now = self.match
        if now is None:
            item = self.item_at(line) or 0
            now = sum(self._times[:item])
            if self._times[item]:
                now += bisect_left([found.line for found in self._matches_in(item)], line - self.start_of(item))
            # The next match is the first match at or after the line, so it must not be stepped over.
            if step > 0:
                now -= step
        wanted = (now + step) % total
        item = 0
        while wanted >= self._times[item]:
            wanted -= self._times[item]
            item += 1
        self._current = item, wanted
        # A match in a folded part of the item is shown by unfolding the item.
        if len(self._matches_in(item)) < self._times[item] and id(self._items[item]) not in self._expanded:
            self.toggle(item)
        found = self._matches_in(item)
        if not found:
            return self.start_of(item)
        return self.start_of(item) + found[min(wanted, len(found) - 1)].line

    def _count_matches(self, *, longer: bool = False) -> None:
        """Count the matches of all items. If `longer` is true, the search text was only extended at its end."""
        pattern, before = self._pattern, self._times
        if pattern is None:
            self._times = [0] * len(self._items)
            return
        self._times = []
        for index, item in enumerate(self._items):
            # An item that did not match the shorter text cannot match the longer text.
            if longer and not before[index]:
                self._times.append(0)
            else:
                self._times.append(self._match_count(item, pattern))

    def _match_count(self, item: Item, pattern: re.Pattern[str]) -> int:
        return len(found_in(lines_of(item, self.width, expanded=True), pattern))

    def _matches_in(self, item: int) -> list[Found]:
        if self._pattern is None or not self._times[item]:
            return []
        if item not in self._found:
            self._found[item] = found_in(self._lines(item), self._pattern)
        return self._found[item]

    def _pieces(self, item: int, line: int) -> list[tuple[int, int, Role]]:
        """Return the parts of an item's line to highlight as matches, each with start, end and role."""
        found = self._matches_in(item)
        current = -1
        if self._current is not None and self._current[0] == item:
            current = min(self._current[1], len(found) - 1)
        # A match that ends on this line begins at most `len(looked_for)` lines before it.
        first = bisect_left(found, line - len(self.looked_for), key=lambda each: each.line)
        pieces: list[tuple[int, int, Role]] = []
        for number in range(first, len(found)):
            if found[number].line > line:
                break
            role: Role = "match"
            if number == current:
                role = "badge"
            for at, start, end in found[number].pieces:
                if at == line:
                    pieces.append((start, end, role))
        return pieces

    # Laying out

    def _reset(self) -> None:
        self._items = list(self.view.items)
        self._begin(rough_height(item, self.width) for item in self._items)
        self._found.clear()
        self._current = None
        self._count_matches()

    def _forget_from(self, first: int) -> None:
        del self._items[first:], self._known[first:], self._times[first:]
        self._heights.cut(first)
        self._expanded &= {id(item) for item in self.view.items}
        self._layouts = {item: lines for item, lines in self._layouts.items() if item < first}
        self._found = {item: found for item, found in self._found.items() if item < first}
        if self._current is not None and self._current[0] >= first:
            self._current = None

    def _add_items(self, changed: Iterable[int]) -> None:
        for item in changed:
            if item == len(self._items):
                self._items.append(self.view.items[item])
                self._heights.append(0)
                self._known.append(0)
                self._times.append(0)
            self._measure(item)
            if self._pattern is not None:
                self._times[item] = self._match_count(self._items[item], self._pattern)

    def lay_out(self, item: int) -> Sequence[Line]:
        shown = self._items[item]
        if self._annotate is not None and isinstance(shown, CallItem):
            lines = self._annotate(shown, self.width)
            if lines is not None:
                return lines
        return lines_of(shown, self.width, id(shown) in self._expanded)

    def _forget(self, item: int) -> None:
        super()._forget(item)
        self._found.pop(item, None)
