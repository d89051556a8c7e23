"""States of lists (filtered, folded and marked rows), and widgets that show them with details."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized
from typing import ClassVar, Generic, Protocol, TypeVar

from textual.message import Message

from workbench.show.spans import Line, message_lines
from workbench.show.spans import Message as Text
from workbench.tui.kit.dialogs import ReadLines
from workbench.tui.kit.line_view import LineView
from workbench.tui.terminal.theme import Ground

Row = TypeVar("Row")


class ListState(Generic[Row]):
    """Rows, one of them selected.

    A filter hides those that lack one of its words.

    A subclass supplies the rows (`_found`) and, unless rows are compared by equality, their identity (`_key`).
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.cursor = 0
        self.filter = ""
        self._texts: dict[Hashable, str] = {}
        """The texts that the filter searches."""

    @property
    def selected(self) -> Row | None:
        """The selected row."""
        return self.rows[self.cursor] if self.rows else None

    def move_to(self, index: int) -> None:
        """Select a row, or the nearest one."""
        self.cursor = min(max(index, 0), max(len(self.rows) - 1, 0))

    def set_filter(self, text: str) -> None:
        """Show only rows with every word of `text`."""
        self.filter = text
        self._rebuild()

    def _found(self) -> Sequence[Row]:
        """Return the rows that the filter and folds leave."""
        raise NotImplementedError

    def _key(self, row: Row) -> Hashable:
        """Return the identity of a row, stable when rows are rebuilt."""
        return row

    def _rebuild(self, stay_on: Hashable | None = None) -> None:
        """Rebuild the rows.

        Selects the same row as before, or the one with this key."""
        if stay_on is None and self.selected is not None:
            stay_on = self._key(self.selected)
        self.rows = list(self._found())
        self.move_to(next((at for at, row in enumerate(self.rows) if self._key(row) == stay_on), self.cursor))

    @property
    def _words(self) -> list[str]:
        return self.filter.casefold().split()

    def _fits(self, key: Hashable, text: Callable[[], str]) -> bool:
        """Return whether a text has every word of the filter.

        The text is built once for each key."""
        words = self._words
        if words and key not in self._texts:
            self._texts[key] = text().casefold()
        return all(word in self._texts[key] for word in words)


class FoldingState(ListState[Row]):
    """Rows in groups that can be folded.

    With a filter, all groups are unfolded."""

    def __init__(self) -> None:
        super().__init__()
        self._folded: set[Hashable] = set()

    def _group(self, row: Row) -> Hashable | None:
        """Return the group that a row belongs to or heads, `None` if there is none."""
        raise NotImplementedError

    def is_folded(self, group: Hashable) -> bool:
        """Return whether a group is folded."""
        return group in self._folded and not self.filter

    def fold(self, folded: bool) -> bool:
        """Fold or unfold the selected group.

        Returns whether that changed anything."""
        row = self.selected
        group = self._group(row) if row is not None else None
        if row is None or group is None or self.filter or self.is_folded(group) == folded:
            return False
        first = next(each for each in self.rows if self._group(each) == group)
        (self._folded.add if folded else self._folded.discard)(group)
        self._rebuild(self._key(first if folded else row))
        return True


_MAX_MARKS = 2


class MarkedState(ListState[Row]):
    """Rows of which two can be marked."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: tuple[int, ...] = ()
        """The ids of the marked rows, in the order of marking."""

    def _id(self, row: Row) -> int:
        raise NotImplementedError

    def _in_order(self) -> Sequence[Row]:
        """Return all rows, displayed or not, the earliest first."""
        raise NotImplementedError

    def mark(self) -> None:
        """Mark or unmark the selected row.

        With a third mark, the first one is dropped."""
        if (row := self.selected) is None:
            return
        one = self._id(row)
        others = tuple(other for other in self.marked if other != one)
        self.marked = others if one in self.marked else (*others, one)[-_MAX_MARKS:]

    def unmark(self) -> None:
        """Remove all marks."""
        self.marked = ()

    @property
    def pair(self) -> tuple[Row, Row] | None:
        """The two marked rows, the earlier one first, `None` if there are not two."""
        found = []
        for row in self._in_order():
            if self._id(row) in self.marked:
                found.append(row)
        if len(found) == _MAX_MARKS:
            return (found[0], found[1])
        return None


class Rows(Protocol):
    """A list of rows, one of them selected."""

    @property
    def cursor(self) -> int: ...

    @property
    def rows(self) -> Sized: ...

    def move_to(self, index: int) -> None:
        """Select a row."""


class RowsView(LineView):
    """The rows of a state, each drawn by a function of its index and the width, or a message if there are none."""

    class Moved(Message):
        """Posted when the cursor moves to a different row."""

    class Opened(Message):
        """Posted when the selected row is clicked."""

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


class Detail(ReadLines):
    """The details of the selected row."""

    GROUND: ClassVar[Ground] = "background"


class Head(Detail, can_focus=False):
    """The head above all rows."""
