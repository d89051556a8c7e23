"""A field of one line for typing over a cell of a form, and what it has in common with one of several lines.

The keys that lead on from a field are taken by the field itself, which calls at once who is to be told of them: what is
typed after them in one burst is not for the cell before. A field is open while it has the class `open`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from textual import events
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from workbench.tui.kit.painting import safe_strip


class SafeInput(Input):
    """Each character of its text that a terminal would act on is shown by a sign of one cell."""

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
            compact=True,
        )
        self.cursor_blink = False

    def render_line(self, y: int) -> Strip:
        return safe_strip(super().render_line(y))


class FilterField(SafeInput):
    """The field in which a filter is typed, seen only meanwhile. It is what it looks like by itself: from a screen with
    two bases Textual takes the style of the first one only."""

    DEFAULT_CSS = "FilterField { height: 1; border: none; padding: 0 1; background: $panel; display: none; }"


Leave = Literal["done", "back", "next", "previous", "up", "down"]
"""How a key goes on from a field: it is done, or it is left for where the cursor was, the next cell, the one before, or
a choice further up or down."""

OnLeave = Callable[[Leave], object]
OnLineBreak = Callable[[str], object]
"""Takes the text that follows a line break which was typed or pasted where there is one line."""


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
    # Neither lays the screen out again, as `Input` has it for fields that grow: this one has its place given.
    value: reactive[str] = reactive("", init=False)
    virtual_size: reactive[Size] = reactive(Size(0, 0))

    def __init__(self, on_leave: OnLeave, on_line_break: OnLineBreak) -> None:
        super().__init__(select_on_focus=False)
        self._leave = on_leave
        self._break = on_line_break

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return key in _LINE_KEYS or key in BREAK_KEYS or super().check_consume_key(key, character)

    async def _on_key(self, event: events.Key) -> None:
        if not self.has_class("open"):
            event.prevent_default()  # struck before it was known to be closed: for what has the keyboard now
        elif event.key in _LINE_KEYS:
            taken(event)
            self._leave(_LINE_KEYS[event.key])
        elif event.key in BREAK_KEYS:
            taken(event)
            self._break("")
        else:
            await act_at_once(self, event)

    def _on_paste(self, event: events.Paste) -> None:
        if "\n" in event.text.strip("\n"):
            taken(event)
            self._break(event.text)

    def on_click(self, event: events.Click) -> None:
        event.stop()


async def act_at_once(field: Widget, event: events.Key) -> None:
    """Do what a key of the field's own does, such as Backspace, in turn with the letters. As a binding it would be done
    later: after letters that were struck behind it in one burst."""
    for binding in field._bindings.key_to_bindings.get(event.key, ()):
        if not binding.priority:
            taken(event)
            await field.run_action(binding.action)
            return


def taken(event: events.Key | events.Paste) -> None:
    """Let nobody else have it: Textual would ask every class of a widget in turn, and then the widgets around it."""
    event.stop()
    event.prevent_default()
