"""One-line text fields: in dialogs, for filters, and over a cell of a form."""

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
from workbench.tui.terminal.key_queue import mark_handled, run_own_binding

ONE_LINE = "this field takes one line"


class PasteChanged(Message, verbose=True):
    """Posted when a field changes a pasted text or refuses it. `notice` tells the user so."""

    def __init__(self, notice: str) -> None:
        super().__init__()
        self.notice = notice


class SafeInput(Input):
    """A one-line input in which each control character is visible and one cell wide.

    Of a pasted text, only the first line that is not blank is inserted. If there were more lines, `PasteChanged` is
    posted."""

    # With the terminal's own colours, Textual draws the cursor black on white. If the terminal reverses these colours,
    # the cursor is invisible on a dark background.
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
        mark_handled(event)
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
    """The input field of a filter. It is hidden while no filter is set."""

    # Textual takes default CSS only from a class and its first bases. `FilterScreen` is the second base of
    # `ListScreen`, so the style of the field is defined here.
    DEFAULT_CSS = "FilterField { height: 1; border: none; padding: 0 1; background: $panel; display: none; }"


FieldExit = Literal["done", "back", "next", "previous", "up", "down"]
"""The effect of a key that leaves a field.

`done` accepts the text, and `back` discards it. `next` and `previous` go to another cell. `up` and `down` move in the
list of choices."""

OnFieldExit = Callable[[FieldExit], object]
"""Called by a field for a key that leaves the field."""

OnLineBreak = Callable[[str], object]
"""Called by a one-line field with pasted lines. A typed line break passes an empty text."""


_LINE_KEYS: dict[str, FieldExit] = {
    "enter": "done",
    "escape": "back",
    "tab": "next",
    "shift+tab": "previous",
    "up": "up",
    "down": "down",
}
LINE_BREAK_KEYS = frozenset({"alt+enter", "ctrl+j"})


def _is_part_removed(before: str, now: str) -> bool:
    start = 0
    while start < len(now) and before[start : start + 1] == now[start]:
        start += 1
    return len(now) <= len(before) and before.endswith(now[start:])


class LineField(SafeInput):
    """A one-line field over a cell of a form. It is visible while it has the CSS class `open`."""

    # A key that leaves the field calls its owner directly. A message would come too late: text that is typed or pasted
    # together with the key must already go to the next cell.
    TAKES_LINES = True
    DEFAULT_CSS = """
    LineField { position: absolute; display: none; height: 1; padding: 0; background: $panel; }
    LineField, LineField:focus { border: none; border-left: outer $accent; border-right: outer $accent; }
    LineField:focus { background-tint: $foreground 0%; }
    LineField.open { display: block; }
    """
    # `Input` requests a new layout when one of these attributes changes. Here, the owner sets the field's place, so no
    # layout is needed.
    value: reactive[str] = reactive("", init=False)
    virtual_size: reactive[Size] = reactive(Size(0, 0))

    def __init__(self, on_leave: OnFieldExit, on_line_break: OnLineBreak) -> None:
        super().__init__(select_on_focus=False)
        self._on_field_exit = on_leave
        self._break = on_line_break
        self._by_keys = ""

    @property
    def is_by_keys(self) -> bool:
        """Whether the whole change since `fill` was typed. `False` if a part of it was pasted."""
        return self.value == self._by_keys

    def fill(self, text: str, known: str) -> None:
        """Put a text into the field.

        `known` is the value that counts as typed, so that only later pastes make `is_by_keys` false."""
        self.value, self._by_keys = text, known
        self.cursor_position = len(text)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return key in _LINE_KEYS or key in LINE_BREAK_KEYS or super().check_consume_key(key, character)

    async def on_key(self, event: events.Key) -> None:
        if not self.has_class("open"):
            # The key was typed while the field was open, and belongs to the widget that has the focus now.
            event.prevent_default()
        elif event.key in _LINE_KEYS:
            mark_handled(event)
            self._on_field_exit(_LINE_KEYS[event.key])
        elif event.key in LINE_BREAK_KEYS:
            mark_handled(event)
            self._break("")
        else:
            await self._edit(event)

    async def _edit(self, event: events.Key) -> None:
        before, was_by_keys = self.value, self.is_by_keys
        if event.is_printable and event.character is not None:
            mark_handled(event)
            self.replace(event.character, *self.selection)
        else:
            await run_own_binding(self, event)
        # A key such as Ctrl+V inserts more than one character, so only characters and deletions count as typed.
        if was_by_keys and (event.is_printable or _is_part_removed(before, self.value)):
            self._by_keys = self.value

    def on_paste(self, event: events.Paste) -> None:
        if "\n" in event.text.strip("\n"):
            mark_handled(event)
            self._break(event.text)

    def insert_joined(self, pasted: str) -> None:
        """Insert pasted lines as one line, joined with blanks, and post `PasteChanged`."""
        lines = pasted.splitlines()
        if lines:
            self.replace(" ".join(lines), *sorted(self.selection))
        if len(lines) > 1:
            self.post_message(PasteChanged(f"Pasted {count_text(len(lines))} lines as one: {ONE_LINE}"))

    def on_click(self, event: events.Click) -> None:
        event.stop()
