"""What the screens of the history consist of: rows with a cursor, and everything about the one under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from typing import ClassVar, Protocol, TypeVar

from textual.message import Message

from workbench.tui.kit.dialogs import ReadLines
from workbench.tui.kit.line_view import LineView
from workbench.tui.lines.prose import Message as Said
from workbench.tui.lines.prose import message_lines
from workbench.tui.lines.spans import Line
from workbench.tui.terminal.theming import Ground


class Rows(Protocol):
    """What is listed: rows, of which one has the cursor."""

    cursor: int

    @property
    def rows(self) -> Sized: ...

    def move_to(self, index: int) -> None:
        """Put the cursor on a row."""


class KeptRows(LineView):
    """Rows of a state, each drawn by a function of its index and the width; without any, what there is to say."""

    class Moved(Message):
        """The cursor is on another row."""

    class Opened(Message):
        """A row was clicked once more."""

    def __init__(
        self, state: Rows, row_line: Callable[[int, int], Line], said: Callable[[], Said], widget_id: str
    ) -> None:
        super().__init__(widget_id)
        self._state = state
        self._row_line = row_line
        self._said = said
        self.cursor = state.cursor

    def line_count(self) -> int:
        return len(self._state.rows) or len(self._message())

    @property
    def has_cursor(self) -> bool:
        return bool(self._state.rows)

    def line_at(self, index: int) -> Line:
        return self._row_line(index, self.text_width) if self._state.rows else self._message()[index]

    def moved(self) -> None:
        self._state.move_to(self.cursor)
        self.post_message(self.Moved())

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())

    def _message(self) -> tuple[Line, ...]:
        return message_lines(self._said(), self.text_width)


class KeptHead(ReadLines, can_focus=False):
    """What there is to say of all of it."""

    GROUND: ClassVar[Ground] = "background"


class KeptDetail(ReadLines):
    """Everything about the row that the cursor is on."""

    GROUND: ClassVar[Ground] = "background"


Row = TypeVar("Row")

_MARKS_MAX = 2


def turned(marked: tuple[int, ...], one: int) -> tuple[int, ...]:
    """The ids that are marked once `one` is, or is no longer; of three the first loses its mark."""
    if one in marked:
        return tuple(other for other in marked if other != one)
    return (*marked, one)[-_MARKS_MAX:]


def pair_of(found: Sequence[Row]) -> tuple[Row, Row] | None:
    """Two rows that are marked; `None` while there are not two."""
    return (found[0], found[1]) if len(found) == _MARKS_MAX else None
