"""The form of a call by hand, the request and the answer as one list of lines."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input

from workbench.show.spans import EMPTY, Line
from workbench.tui.kit.fields import Leave, LineField
from workbench.tui.kit.line_view import LineView
from workbench.tui.tools.call_lines import CallForm, CallPicture


class CallView(LineView):
    """The lines of a call. The cursor stops only at parameters; a field opens over the value."""

    def __init__(self, form: CallForm, build: Callable[[int], CallPicture], widget_id: str) -> None:
        super().__init__(widget_id)
        self._form = form
        self._build = build
        self._picture = CallPicture([], [], 0)
        self._built_at = -1
        self._typed: str | None = None
        """The parameter being typed."""
        self._before = ""

    def compose(self) -> ComposeResult:
        yield LineField(self._leave_field, self._line_break)

    def line_count(self) -> int:
        if self._built_at != self.text_width:
            self._built_at = self.text_width
            self._picture = self._build(self.text_width)
        return len(self._picture.lines)

    def line_at(self, index: int) -> Line:
        return self._picture.lines[index] if index < self.line_count() else EMPTY

    def moved(self) -> None:
        self.close_field()

    def chosen(self, index: int) -> None:
        self.open_field()

    def repaint(self) -> None:
        super().repaint()
        self._place_field()

    @property
    def parameter(self) -> str | None:
        """The parameter under the cursor."""
        return self._picture.fields[self.cursor] if self.cursor < self.line_count() else None

    def show_anew(self) -> None:
        """Update the lines. The cursor stays on its parameter."""
        name = self.parameter
        self._built_at = -1
        if self.line_count() and name is not None and self.parameter != name:
            self.cursor = self._picture.fields.index(name)
        self.move_cursor(self.cursor)

    def show_answer(self) -> None:
        """Scroll to the answer."""
        self.top = max(self._picture.answer - self.size.height // 3, 0)
        self.repaint()

    def _go(self, step: int) -> None:
        """Go to the next (1) or previous (-1) parameter, if there is one."""
        fields, now = self._picture.fields, self.parameter
        rest = range(self.cursor, len(fields)) if step > 0 else range(self.cursor, -1, -1)
        other = next((fields[at] for at in rest if fields[at] not in (None, now)), now)
        if other is not None:
            self.move_cursor(fields.index(other))

    # Typing

    @property
    def is_typing(self) -> bool:
        """Whether the field is open."""
        return self._typed is not None

    def open_field(self) -> None:
        """Open the field over the value of the selected parameter."""
        if (name := self.parameter) is None:
            return
        self._typed, self._before = name, self._form.text(name)
        field = self.query_one(LineField)
        field.value = self._before
        field.cursor_position = len(self._before)
        field.add_class("open")
        self._place_field()
        self.screen.set_focus(field)

    def close_field(self, *, keep: bool = True) -> None:
        """Close the field. Without `keep`, the value is restored."""
        if self._typed is None:
            return
        name, self._typed = self._typed, None
        if not keep:
            self._form.set(name, self._before)
        self.query_one(LineField).remove_class("open")
        self.screen.set_focus(self)
        self.show_anew()

    @on(Input.Changed)
    def _text_changed(self, event: Input.Changed) -> None:
        if self._typed is not None and event.value != self._form.text(self._typed):
            self._form.set(self._typed, event.value)
            self.show_anew()

    def _leave_field(self, how: Leave) -> None:
        self.close_field(keep=how != "back")
        if how != "back":
            self._go(-1 if how in ("previous", "up") else 1)
        if how in ("next", "previous"):
            self.open_field()

    def _line_break(self, text: str) -> None:
        r"""Pasted text stays on one line, since a text contains line breaks as `\n` in quotes."""
        self.query_one(LineField).take_joined(text)

    def _place_field(self) -> None:
        if self._typed is None or self._typed not in self._picture.fields:
            return
        field = self.query_one(LineField)
        field.styles.offset = (self._picture.value_at, self._picture.fields.index(self._typed) - self.top)
        field.styles.width = max(self.text_width - self._picture.value_at, 4)

    def choose(self, step: int) -> None:
        """Select the next value that the schema lists."""
        name = self.parameter
        if name is not None and self._form.choices(name):
            self._form.choose_next(name, step)
            self.show_anew()

    def clear_argument(self) -> None:
        """Remove the argument."""
        if (name := self.parameter) is not None:
            self._form.set(name, "")
            self.show_anew()
