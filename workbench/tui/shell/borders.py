"""The borders between the panes: where they stand, and how the mouse drags them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual import events
from textual.message import Message
from textual.widget import Widget

from workbench.tui.kit.actions import Pane
from workbench.tui.kit.memory import Layout

MIN_PANE_CELLS: Mapping[Pane, int] = {"suites": 20, "case": 30, "run": 30}
"""The least width of each pane. Together they fit where the panes are shown side by side."""

STEP = 2
"""By so many cells a key moves a border."""


def layout_of(panes: Sequence[Pane]) -> Layout | None:
    """Return the name of what is shown, `None` for a single pane, which has no borders."""
    return "wide" if len(panes) > 2 else "narrow" if len(panes) == 2 else None


def first_borders(panes: Sequence[Pane], width: int) -> tuple[int, ...]:
    """Return the columns of the borders that nobody has moved. Beyond 120 cells the tree grows faster, until names have
    room beside results."""
    tree = max(28, width * 26 // 100) if width <= 120 else min(31 + (width - 120) * 45 // 100, 60)
    return (tree, tree + (width - tree) * 5 // 11)[: len(panes) - 1]


def move_border(borders: Sequence[int], index: int, column: int, panes: Sequence[Pane], width: int) -> tuple[int, ...]:
    """Return the borders with one of them moved as near to a column as the least widths allow. It pushes the others."""
    found = list(borders)
    found[index] = column
    for left in range(index - 1, -1, -1):
        found[left] = min(found[left], found[left + 1] - 1 - MIN_PANE_CELLS[panes[left + 1]])
    for right in range(index + 1, len(found)):
        found[right] = max(found[right], found[right - 1] + 1 + MIN_PANE_CELLS[panes[right]])
    return _fitted(found, panes, width)


def borders_at(shares: Sequence[float], panes: Sequence[Pane], width: int) -> tuple[int, ...]:
    """Return the columns of borders that were moved, from their shares of the width."""
    if not shares or len(shares) != len(panes) - 1:
        return first_borders(panes, width)
    found = [round(share * width) for share in shares]
    # The first border pushes the other one where the least widths, or a damaged file, ask for it.
    return move_border(found, 0, found[0], panes, width)


def _fitted(borders: Sequence[int], panes: Sequence[Pane], width: int) -> tuple[int, ...]:
    """Return borders in ascending order, each with room for the least widths on both sides."""
    least = [MIN_PANE_CELLS[pane] for pane in panes]
    return tuple(
        min(max(column, sum(least[: at + 1]) + at), width - sum(least[at + 1 :]) - (len(borders) - at))
        for at, column in enumerate(borders)
    )


class Splitter(Widget):
    """A border between two panes, which the mouse drags."""

    DEFAULT_CSS = """
    Splitter { width: 1; height: 100%; border-left: solid $border; }
    Splitter.dragged { border-left: solid $accent; }
    """

    class Dragged(Message):
        """Posted when the mouse has dragged a border to a column of the screen. Only the latest counts."""

        def __init__(self, index: int, column: int) -> None:
            super().__init__()
            self.index = index
            self.column = column

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Splitter.Dragged)

    def __init__(self, index: int) -> None:
        super().__init__(id=f"splitter-{index}")
        self._index = index

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.button == 1:
            event.stop()
            self.capture_mouse()
            self.add_class("dragged")

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if not self.has_class("dragged"):
            return
        if event.button == 1:
            self.post_message(self.Dragged(self._index, event.screen_x))
        else:
            self._let_go()  # the button was let go outside of the terminal

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self.has_class("dragged"):
            event.stop()
            self._let_go()
            self.post_message(self.Dragged(self._index, event.screen_x))

    def on_hide(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        self.release_mouse()
        self.remove_class("dragged")
