"""Lists of rows: states that filter, fold and mark rows, and the widgets that show them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized
from typing import ClassVar, Generic, Protocol, TypeVar

from textual.message import Message

from workbench.show.spans import Line, message_lines
from workbench.show.spans import Message as Text
from workbench.tui.kit.dialogs import TextView
from workbench.tui.kit.line_view import LineView
from workbench.tui.terminal.theme import Ground

Row = TypeVar("Row")


class ListState(Generic[Row]):
    """A list of rows with a selected row and a filter. A row is visible if it contains every word of the filter.

    A subclass supplies the rows (`_shown_rows`). If equality does not identify a row, it also supplies a key
    (`_key`)."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.cursor = 0
        self.filter = ""
        self._texts: dict[Hashable, str] = {}
        """The casefolded texts that the filter searches, by the key of the row."""

    @property
    def selected(self) -> Row | None:
        """The selected row, `None` in an empty list."""
        return self.rows[self.cursor] if self.rows else None

    def move_to(self, index: int) -> None:
        """Select the row at an index or the nearest row."""
        self.cursor = min(max(index, 0), max(len(self.rows) - 1, 0))

    def set_filter(self, text: str) -> None:
        """Show only the rows that contain every word of `text`."""
        self.filter = text
        self._rebuild()

    def _shown_rows(self) -> Sequence[Row]:
        """Return the rows to show: those that match the filter and are not folded."""
        raise NotImplementedError

    def _key(self, row: Row) -> Hashable:
        """Return a key that identifies a row, even after the rows were rebuilt."""
        return row

    def _rebuild(self, stay_on: Hashable | None = None) -> None:
        """Rebuild the rows. Select the row with the key `stay_on`, by default the row that was selected before."""
        if stay_on is None and self.selected is not None:
            stay_on = self._key(self.selected)
        self.rows = list(self._shown_rows())
        for at, row in enumerate(self.rows):
            if self._key(row) == stay_on:
                self.cursor = at
                return
        # The row is gone, so select the row that is now at its position.
        self.move_to(self.cursor)

    @property
    def _words(self) -> list[str]:
        return self.filter.casefold().split()

    def _fits(self, key: Hashable, text: Callable[[], str]) -> bool:
        # The texts of long lists take time to build, so nothing is built before the user types a filter.
        words = self._words
        if words and key not in self._texts:
            self._texts[key] = text().casefold()
        return all(word in self._texts[key] for word in words)


class FoldingState(ListState[Row]):
    """A list of rows in groups that can be folded. While a filter is set, all groups are unfolded."""

    def __init__(self) -> None:
        super().__init__()
        self._folded: set[Hashable] = set()

    def _group(self, row: Row) -> Hashable | None:
        """Return the group that a row belongs to or is the heading of, `None` if there is none."""
        raise NotImplementedError

    def is_folded(self, group: Hashable) -> bool:
        return group in self._folded and not self.filter

    def fold(self, folded: bool) -> bool:
        """Fold or unfold the group of the selected row. Return whether anything changed."""
        row = self.selected
        if row is None or self.filter:
            return False
        group = self._group(row)
        if group is None or self.is_folded(group) == folded:
            return False
        if not folded:
            self._folded.discard(group)
            self._rebuild(self._key(row))
            return True
        # Folding hides the selected row, so the group's heading becomes selected.
        heading = next(each for each in self.rows if self._group(each) == group)
        self._folded.add(group)
        self._rebuild(self._key(heading))
        return True


_MAX_MARKS = 2


class MarkedState(ListState[Row]):
    """A list in which two rows can be marked."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: tuple[int, ...] = ()
        """The ids of the marked rows, in the order of marking."""

    def _id(self, row: Row) -> int:
        raise NotImplementedError

    def _in_order(self) -> Sequence[Row]:
        """Return all rows, including hidden rows, with the earliest row first."""
        raise NotImplementedError

    def mark(self) -> None:
        """Mark or unmark the selected row. If two rows are already marked, unmark the row that was marked first."""
        if (row := self.selected) is None:
            return
        marked = list(self.marked)
        if self._id(row) in marked:
            marked.remove(self._id(row))
        else:
            marked.append(self._id(row))
        self.marked = tuple(marked[-_MAX_MARKS:])

    def unmark(self) -> None:
        self.marked = ()

    @property
    def pair(self) -> tuple[Row, Row] | None:
        """The two marked rows, the earlier row first. `None` if fewer rows are marked."""
        found = [row for row in self._in_order() if self._id(row) in self.marked]
        if len(found) == _MAX_MARKS:
            return (found[0], found[1])
        return None


class RowSource(Protocol):
    """The state of a list that `RowsView` shows: the rows and the selected row."""

    @property
    def cursor(self) -> int: ...

    @property
    def rows(self) -> Sized: ...

    def move_to(self, index: int) -> None:
        """Select the row at an index."""


class RowsView(LineView):
    """A list of rows. If it is empty, a message is shown. `row_line` returns the line for an index and a width."""

    class Moved(Message):
        """Posted when the cursor moves to a different row."""

    class Opened(Message):
        """Posted when the selected row is clicked."""

    def __init__(
        self, state: RowSource, row_line: Callable[[int, int], Line], message: Callable[[], Text], widget_id: str
    ) -> None:
        super().__init__(widget_id)
        self.state = state
        self._row_line = row_line
        self._message = message
        self.cursor = state.cursor

    def line_count(self) -> int:
        return len(self.state.rows) or len(self._message_lines())

    @property
    def has_cursor(self) -> bool:
        return bool(self.state.rows)

    def line_at(self, index: int) -> Line:
        if self.state.rows:
            return self._row_line(index, self.text_width)
        return self._message_lines()[index]

    def moved(self) -> None:
        self.state.move_to(self.cursor)
        self.post_message(self.Moved())

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())

    def _message_lines(self) -> tuple[Line, ...]:
        return message_lines(self._message(), self.text_width)


class Detail(TextView):
    """The pane with the details of the selected row."""

    GROUND: ClassVar[Ground] = "background"


class Head(Detail, can_focus=False):
    """The lines above a list. They never have the focus."""
