"""The widgets of quick add below the panes: a title, and the field for a request."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message

from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Role, Span, cells, cut_line
from workbench.tui.kit.actions import actions_at, actions_of, bindings_for
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.strips import Bar, keymap_of
from workbench.tui.quick_add.actions import QuickAddActions
from workbench.tui.terminal.key_queue import mark_handled


class RequestField(SafeInput):
    """The input field for a request. While `has_commands` is true, a letter key is a command for the result above."""

    DEFAULT_CSS = "RequestField { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(actions_at("line", QuickAddActions))

    class Unused(Message):
        """Posted when the user presses a letter that is not a command."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Turned(Message):
        """Posted when the field gets or loses the focus."""

    def __init__(self) -> None:
        super().__init__(widget_id="request", select_on_focus=False)
        self.has_commands = False

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return not self.has_commands and super().check_consume_key(key, character)

    def on_key(self, event: events.Key) -> None:
        if not self.has_commands or not event.is_printable:
            return
        # Without this call, the base class would insert the letter.
        event.prevent_default()
        keymap = keymap_of(self)
        own = {key for action in actions_of(QuickAddActions) for key in keymap.keys(action)}
        if event.key not in own:
            # Without this call, the letter would be a command of the panes.
            event.stop()
            self.post_message(self.Unused(event.key))

    def on_paste(self, event: events.Paste) -> None:
        mark_handled(event)
        if not self.has_commands:
            # A pasted request may have several lines. The field shows a line break as a sign.
            self.replace(event.text.strip("\n"), *sorted(self.selection))

    def on_focus(self) -> None:
        self.post_message(self.Turned())

    def on_blur(self) -> None:
        self.post_message(self.Turned())


class RequestLine(Vertical):
    """The input line for new cases: a title and a field. Hidden until it is opened."""

    # The line is hidden instead of mounted on demand, because a widget cannot take the next key while it is mounted.
    DEFAULT_CSS = """
    RequestLine { height: 2; display: none; }
    RequestLine.open { display: block; }
    RequestLine > Horizontal { height: 1; background: $panel; }
    RequestLine #request-sign { width: 3; }
    """

    def __init__(self) -> None:
        super().__init__(id="request-line")
        self.field = RequestField()
        self._title = Bar("request-title")
        self._sign = Bar("request-sign")

    def compose(self) -> ComposeResult:
        yield self._title
        with Horizontal():
            yield self._sign
            yield self.field

    def on_mount(self) -> None:
        self._sign.set_line(lambda _: (Span(" > ", "accent"),))

    @property
    def is_open(self) -> bool:
        return self.has_class("open")

    @property
    def typing(self) -> bool:
        return self.is_open and self.screen.focused is self.field

    def show_title(self, title: str, role: Role = "strong") -> None:
        """Show the title within a rule."""

        def line(width: int) -> Line:
            start: Line = (Span(f" {GLYPHS.rest * 2} ", "muted"), Span(title, role), Span(" "))
            return cut_line((*start, Span(GLYPHS.rest * max(width - cells(start) - 1, 0), "muted")), width)

        self._title.set_line(line)
