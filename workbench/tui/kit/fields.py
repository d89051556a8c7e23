"""A one-line field over a cell of a form, and the base it shares with the field of several lines.

The field handles the keys that leave it and calls its owner at once, because text after them in the same burst
belongs to the next cell. A field is open while it has the class `open`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widgets import Input

from workbench.numerals import count_text
from workbench.tui.kit.strips import safe_strip
from workbench.tui.terminal.key_queue import act_at_once, taken

ONE_LINE = "this field takes one line"


class PasteChanged(Message, verbose=True):
    """Reports that a field changed a pasted text before taking it.

    `notice` says how."""

    def __init__(self, notice: str) -> None:
        super().__init__()
        self.notice = notice


class SafeInput(Input):
    """An input that shows each control character as a sign of one cell.

    Of a paste of several lines, it takes the first one that is not blank, and reports that."""

    # With the terminal's own colours, Textual's cursor is black on white, which may be reversed: unseen on dark ground.
    DEFAULT_CSS = """
    SafeInput { border: none; height: 1; padding: 0; }
    SafeInput:focus { border: none; }
    SafeInput:ansi > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    """

    def __init__(
        self,
        value: str = "",
        placeholder: str = "",
        *,
        widget_id: str | None = None,
        whole_number: bool = False,
        max_length: int = 0,
        select_on_focus: bool = True,
    ) -> None:
        super().__init__(
            value,
            placeholder,
            id=widget_id,
            type="integer" if whole_number else "text",
            max_length=max_length,
            select_on_focus=select_on_focus,
        )
        self.cursor_blink = False

    def render_line(self, y: int) -> Strip:
        return safe_strip(super().render_line(y))

    def on_paste(self, event: events.Paste) -> None:
        taken(event)
        pasted = event.text.splitlines()
        lines = [line for line in pasted if line.strip()] or pasted[:1]
        if not lines:
            return
        start, end = sorted(self.selection)
        if self.max_length and len(self.value) - (end - start) + len(lines[0]) > self.max_length:
            self.post_message(PasteChanged(f"Not pasted: this field takes at most {self.max_length} characters"))
            return
        self.replace(lines[0], start, end)
        if len(lines) > 1:
            self.post_message(PasteChanged(f"Pasted the first of {count_text(len(lines))} lines: {ONE_LINE}"))


class FilterField(SafeInput):
    """The field for a filter, visible only during typing.

    Its style is complete, because Textual uses only the first base's style for a screen with two bases."""

    DEFAULT_CSS = "FilterField { height: 1; border: none; padding: 0 1; background: $panel; display: none; }"


Leave = Literal["done", "back", "next", "previous", "up", "down"]
"""How a key leaves a field: done, back to the cursor's position, next cell, previous cell, or a choice further up or
down."""

OnLeave = Callable[[Leave], object]
OnLineBreak = Callable[[str], object]
"""Handles the text after a line break that was typed or pasted into a one-line field."""


_LINE_KEYS: dict[str, Leave] = {
    "enter": "done",
    "escape": "back",
    "tab": "next",
    "shift+tab": "previous",
    "up": "up",
    "down": "down",
}
BREAK_KEYS = frozenset({"alt+enter", "ctrl+j"})


class LineField(SafeInput):
    """One line of text."""

    TAKES_LINES = True
    DEFAULT_CSS = """
    LineField { position: absolute; display: none; border: none; height: 1; padding: 0; background: $panel; }
    LineField:focus { border: none; background-tint: $foreground 0%; }
    LineField.open { display: block; }
    """
    # Unlike in `Input`, these do not cause a new layout, because the field's place is set from outside.
    value: reactive[str] = reactive("", init=False)
    virtual_size: reactive[Size] = reactive(Size(0, 0))

    def __init__(self, on_leave: OnLeave, on_line_break: OnLineBreak) -> None:
        super().__init__(select_on_focus=False)
        self._leave = on_leave
        self._break = on_line_break

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return key in _LINE_KEYS or key in BREAK_KEYS or super().check_consume_key(key, character)

    async def on_key(self, event: events.Key) -> None:
        if not self.has_class("open"):
            event.prevent_default()  # typed before the field was known to be closed: for the focused widget
        elif event.key in _LINE_KEYS:
            taken(event)
            self._leave(_LINE_KEYS[event.key])
        elif event.key in BREAK_KEYS:
            taken(event)
            self._break("")
        else:
            await act_at_once(self, event)

    def on_paste(self, event: events.Paste) -> None:
        if "\n" in event.text.strip("\n"):
            taken(event)
            self._break(event.text)

    def take_joined(self, pasted: str) -> None:
        """Insert several lines as one, joined with blanks, and report that."""
        lines = pasted.splitlines()
        if lines:
            self.replace(" ".join(lines), *sorted(self.selection))
        if len(lines) > 1:
            self.post_message(PasteChanged(f"Pasted {count_text(len(lines))} lines as one: {ONE_LINE}"))

    def on_click(self, event: events.Click) -> None:
        event.stop()
