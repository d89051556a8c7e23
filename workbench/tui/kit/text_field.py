"""A text field of several lines over a cell of a form."""

# A separate module, because Textual's text area takes long to import.

from __future__ import annotations

from textual import events
from textual.strip import Strip
from textual.widgets import TextArea

from workbench.tui.kit.fields import LINE_BREAK_KEYS, FieldExit, OnFieldExit
from workbench.tui.kit.strips import safe_strip
from workbench.tui.terminal.key_queue import mark_handled, run_own_binding

_TEXT_KEYS: dict[str, FieldExit] = {"escape": "back", "ctrl+enter": "done", "tab": "next", "shift+tab": "previous"}


class TextField(TextArea):
    """A field of several lines over a cell of a form. It is visible while it has the CSS class `open`.

    While the text has a single line, Enter accepts it, as in a one-line field."""

    DEFAULT_CSS = """
    TextField { position: absolute; display: none; padding: 0; background: $panel; }
    TextField, TextField:focus { border: none; border-left: outer $accent; border-right: outer $accent; }
    TextField.open { display: block; }
    """

    def __init__(self, on_leave: OnFieldExit) -> None:
        super().__init__(compact=True, soft_wrap=True, highlight_cursor_line=False)
        self.cursor_blink = False
        self._on_field_exit = on_leave

    def render_line(self, y: int) -> Strip:
        return safe_strip(super().render_line(y))

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        return key in _TEXT_KEYS or key in LINE_BREAK_KEYS or super().check_consume_key(key, character)

    async def on_key(self, event: events.Key) -> None:
        if not self.has_class("open"):
            event.prevent_default()
        elif event.key in _TEXT_KEYS:
            mark_handled(event)
            self._on_field_exit(_TEXT_KEYS[event.key])
        elif event.key in LINE_BREAK_KEYS:
            mark_handled(event)
            self.replace("\n", *self.selection, maintain_selection_offset=False)
        elif event.key == "enter" and self.document.line_count == 1:
            mark_handled(event)
            self._on_field_exit("done")
        else:
            await run_own_binding(self, event)

    def on_click(self, event: events.Click) -> None:
        event.stop()
