"""One run as lines that grow: followed at its end until the user looks elsewhere."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from workbench.tui.actions import bindings_for
from workbench.tui.state.items import Item
from workbench.tui.state.run_lines import RunLines
from workbench.tui.state.run_view import RunView
from workbench.tui.state.source import Message as Text
from workbench.tui.state.source import message_lines
from workbench.tui.state.spans import EMPTY, Line
from workbench.tui.theming import Ground
from workbench.tui.widgets.line_view import LineView


class RunList(LineView):
    """The lines of a run. Posts `News` when the number of steps below, unseen, has changed."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for("run")
    RESTING_GROUND: ClassVar[Ground] = "background"

    class News(Message):
        """There is something new to say about what is out of sight."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.lines: RunLines | None = None
        self.following = True
        self.unseen = 0
        """Steps that were added since the end was left."""
        self._known = 0
        self._text: Text = ()

    @property
    def has_cursor(self) -> bool:
        return self.lines is not None

    @property
    def item(self) -> Item | None:
        """The item under the cursor."""
        if self.lines is None:
            return None
        index = self.lines.item_at(self.cursor)
        return self.lines.view.items[index] if index is not None else None

    def show(self, view: RunView | None, message: Text = ()) -> None:
        """Show a run, or a message where there is none. A run that is over is shown from its beginning."""
        if view is not None and self.lines is not None and self.lines.view is view:
            self.flush()
            return
        self._text = message
        self.lines = RunLines(view, self.text_width) if view is not None else None
        self.following = view is not None and not view.graded
        self._seen()
        self.cursor = self.top = 0
        if self.following:
            self.move_cursor(self.line_count())
        self.repaint()

    def flush(self) -> None:
        """Take over what happened in the run since."""
        if self.lines is None or not self.lines.sync():
            return
        if self.following:
            self._seen()
            self.move_cursor(self.line_count())
            return
        fresh = self.lines.heights_from(self._known)
        if fresh != self.unseen:
            self.unseen = fresh
            self.post_message(self.News())
        self.repaint()

    def toggle(self) -> None:
        """Expand the item under the cursor, or fold it; the cursor stays on it."""
        if self.lines is None or (index := self.lines.item_at(self.cursor)) is None:
            return
        offset = self.cursor - self.top
        self.lines.toggle(index)
        start = self.lines.start_of(index)
        self.cursor = min(self.cursor, max(start, self.lines.start_of(index + 1) - 1))
        self.top = max(self.cursor - offset, 0)
        self.following = False
        self._known = len(self.lines.view.items)
        self.move_cursor(self.cursor)

    def line_count(self) -> int:
        return self.lines.count if self.lines is not None else len(self._message_lines())

    def line_at(self, index: int) -> Line:
        if self.lines is not None:
            return self.lines.line(index)
        rows = self._message_lines()
        return rows[index] if index < len(rows) else EMPTY

    def moved(self) -> None:
        if self.lines is None:
            return
        at_end = self.cursor >= self.line_count() - 1 and self.top >= self.last_top
        if at_end != self.following:
            self.following = at_end
            self._seen()
            self.post_message(self.News())

    def chosen(self, index: int) -> None:
        self.toggle()

    def on_resize(self, event: events.Resize) -> None:
        if self.lines is not None:
            item = self.lines.item_at(self.cursor)
            self.lines.resize(self.text_width)
            if self.following:
                self.cursor = self.line_count() - 1
            elif item is not None:
                self.cursor = self.lines.start_of(item)
        super().on_resize(event)

    def _message_lines(self) -> list[Line]:
        return message_lines(self._text, self.text_width)

    def _seen(self) -> None:
        self.unseen = 0
        self._known = len(self.lines.view.items) if self.lines is not None else 0
