"""Lists of rows: which there are, filtered, folded and marked, and the widgets that show them with their details."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized
from typing import ClassVar, Generic, Protocol, TypeVar

from textual.message import Message

from workbench.tui.kit.dialogs import ReadLines
from workbench.tui.kit.line_view import LineView
from workbench.tui.lines.prose import Message as Text
from workbench.tui.lines.prose import message_lines
from workbench.tui.lines.spans import Line
from workbench.tui.terminal.theming import Ground

Row = TypeVar("Row")


class ListState(Generic[Row]):
    """Rows, one of which has the cursor. A filter hides those that lack one of its words.

    A subclass says which rows there are (`_found`), and what tells one from another (`_key`) where that is more than
    being equal.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.cursor = 0
        self.filter = ""
        self._texts: dict[Hashable, str] = {}
        """What the filter looks for words in."""

    @property
    def selected(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def move_to(self, index: int) -> None:
        """Put the cursor on a row, the nearest one there is."""
        self.cursor = min(max(index, 0), max(len(self.rows) - 1, 0))

    def set_filter(self, text: str) -> None:
        """Show only what has every word of `text`."""
        self.filter = text
        self._rebuild()

    def _found(self) -> Sequence[Row]:
        """Returns the rows that the filter and the folds leave."""
        raise NotImplementedError

    def _key(self, row: Row) -> Hashable:
        """Returns what a row stands for, the same when rows are made anew."""
        return row

    def _rebuild(self, stay_on: Hashable | None = None) -> None:
        """Make the rows anew, with the cursor on what it was on, or on the row with this key."""
        if stay_on is None and self.selected is not None:
            stay_on = self._key(self.selected)
        self.rows = list(self._found())
        self.move_to(next((at for at, row in enumerate(self.rows) if self._key(row) == stay_on), self.cursor))

    @property
    def _words(self) -> list[str]:
        return self.filter.casefold().split()

    def _fits(self, key: Hashable, text: Callable[[], str]) -> bool:
        """Returns whether a text, which is made once for each key, has every word of the filter."""
        words = self._words
        if words and key not in self._texts:
            self._texts[key] = text().casefold()
        return all(word in self._texts[key] for word in words)


class FoldingState(ListState[Row]):
    """Rows in groups that can be folded. While a filter is set all groups are unfolded."""

    def __init__(self) -> None:
        super().__init__()
        self._folded: set[Hashable] = set()

    def _group(self, row: Row) -> Hashable | None:
        """Returns the group that a row is in or, as its first row, stands for; `None` for a row of no group."""
        raise NotImplementedError

    def is_folded(self, group: Hashable) -> bool:
        """Whether the rows of a group are hidden."""
        return group in self._folded and not self.filter

    def fold(self, folded: bool) -> bool:
        """Fold or unfold the group that the cursor is in. Returns whether that changed anything."""
        row = self.selected
        group = self._group(row) if row is not None else None
        if row is None or group is None or self.filter or self.is_folded(group) == folded:
            return False
        first = next(each for each in self.rows if self._group(each) == group)
        (self._folded.add if folded else self._folded.discard)(group)
        self._rebuild(self._key(first if folded else row))
        return True


_MARKS_MAX = 2


class MarkedState(ListState[Row]):
    """Rows of which two can be marked."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: tuple[int, ...] = ()
        """The ids of the marked rows, in the order in which they were marked."""

    def _id(self, row: Row) -> int:
        raise NotImplementedError

    def _in_order(self) -> Sequence[Row]:
        """Returns all rows, shown or not, the earliest first."""
        raise NotImplementedError

    def mark(self) -> None:
        """Mark the row under the cursor, or take its mark away; of three the first loses its mark."""
        if (row := self.selected) is None:
            return
        one = self._id(row)
        others = tuple(other for other in self.marked if other != one)
        self.marked = others if one in self.marked else (*others, one)[-_MARKS_MAX:]

    def unmark(self) -> None:
        """Take all marks away."""
        self.marked = ()

    @property
    def pair(self) -> tuple[Row, Row] | None:
        """The two marked rows, the earlier one first; `None` while there are not two."""
        found = [row for row in self._in_order() if self._id(row) in self.marked]
        return (found[0], found[1]) if len(found) == _MARKS_MAX else None


class Rows(Protocol):
    """What is listed: rows, of which one has the cursor."""

    @property
    def cursor(self) -> int: ...

    @property
    def rows(self) -> Sized: ...

    def move_to(self, index: int) -> None:
        """Put the cursor on a row."""


class RowsView(LineView):
    """Rows of a state, each drawn by a function of its index and the width; without any, what there is to say."""

    class Moved(Message):
        """The cursor is on another row."""

    class Opened(Message):
        """A row was clicked once more."""

    def __init__(
        self, state: Rows, row_line: Callable[[int, int], Line], message: Callable[[], Text], widget_id: str
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
        return self._row_line(index, self.text_width) if self.state.rows else self._message_lines()[index]

    def moved(self) -> None:
        self.state.move_to(self.cursor)
        self.post_message(self.Moved())

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())

    def _message_lines(self) -> tuple[Line, ...]:
        return message_lines(self._message(), self.text_width)


class Detail(ReadLines):
    """Everything about the row that the cursor is on."""

    GROUND: ClassVar[Ground] = "background"


class Head(Detail, can_focus=False):
    """What there is to say of all rows, above them."""
