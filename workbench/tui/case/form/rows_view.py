"""A read-only form: its rows, with one cell selected."""

from __future__ import annotations

from dataclasses import replace

from textual import events
from textual.message import Message as TextualMessage

from workbench.authoring.form.rows import nearest
from workbench.show.spans import EMPTY, Line, Message, message_lines
from workbench.suite.problems import Place, written
from workbench.tui.case.form.page import FormPage
from workbench.tui.kit.line_view import LineView, Motion, steps_of


class FormRows(LineView):
    """The rows of `page`, or a message if there is no form."""

    class Moved(TextualMessage):
        """Posted when the cursor moves or a field is opened or closed, so that different actions apply."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.page = FormPage()
        self._message: Message = ()
        self._every_key = False

    def line_count(self) -> int:
        return self.page.line_count if self.page.rows else len(message_lines(self._message, self.text_width))

    def line_at(self, index: int) -> Line:
        if self.page.rows:
            return self.page.line(index, marked=self.has_focus)
        rows = message_lines(self._message, self.text_width)
        return rows[index] if index < len(rows) else EMPTY

    @property
    def has_cursor(self) -> bool:
        return bool(self.page.rows)

    @property
    def typing(self) -> bool:
        """Whether a field is open."""
        return self.page.opened is not None

    @property
    def text(self) -> str:
        """The content of the selected cell, for copying."""
        cell = self.page.current_cell
        return cell.text if cell is not None else ""

    def go_to(self, place: Place) -> None:
        """Select the row of a place in the form, or the nearest enclosing one."""
        if self.page.source is not None and not self.typing:
            self.page.go_to(place)
            self._moved()

    def go_to_problem(self, where: str) -> None:
        """Select the row of a problem, given as `Problem.where`."""
        source = self.page.source
        if source is not None:
            places = {written((*source.at, *row.place)): row.place for row in reversed(self.page.rows)}
            self.go_to(places.get(nearest(where, places), ()))

    def action_move(self, motion: Motion) -> None:
        page = self.page
        if not page.rows:
            super().action_move(motion)
            return
        lines = steps_of(self.size.height)
        rows = {"up": page.row - 1, "down": page.row + 1, "home": 0, "end": len(page.rows) - 1}
        page.go(
            rows[motion]
            if motion in rows
            else page.row_of(min(max(self.cursor + lines[motion], 0), page.line_count - 1))
        )
        self._moved()

    def next_cell(self, step: int) -> None:
        """Select the next or previous cell of the row."""
        row = self.page.current
        if row is not None and 0 <= self.page.cell + step < len(row.cells):
            self.page.cell += step
            self._moved()

    def on_resize(self, event: events.Resize) -> None:
        self.page.resize(self.text_width)
        self._follow()

    def _moved(self) -> None:
        self._follow()
        self.post_message(self.Moved())

    def _follow(self) -> None:
        """Scroll to the selected row, to all of it if there is room."""
        if self.page.rows:
            start, end = self.page.lines_of(self.page.row)
            self.top = min(max(self.top, end - self.size.height), start)
            self.move_cursor(start)
        else:
            self.repaint()

    def show_every_key(self) -> None:
        """Show or hide rarely used keys."""
        self._every_key = not self._every_key
        if self.page.source is not None:
            self.page.show(replace(self.page.source, every_key=self._every_key))
            self._moved()
