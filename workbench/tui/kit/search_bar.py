"""One line to search a pane with: what to look for, and which of how many it is."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.painting import Bar
from workbench.tui.lines.spans import Line, Span

COUNT_CELLS = 17


class SearchBar(Horizontal):
    """Asks what to look for while it is mounted. `text` is what the field begins with, all of it selected."""

    DEFAULT_CSS = f"""
    SearchBar {{ height: 1; background: $panel; }}
    SearchBar Input {{ width: 1fr; height: 1; border: none; padding: 0; background: $panel; }}
    SearchBar #search-sign {{ width: 3; }}
    SearchBar #search-count {{ width: {COUNT_CELLS}; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,ctrl+g,down", "step(1)", "Next match", show=False, priority=True),
        Binding("shift+enter,up", "step(-1)", "Previous match", show=False, priority=True),
        Binding("escape", "close", "End the search", show=False, priority=True),
    ]

    class Changed(Message):
        """Something else is looked for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Stepped(Message):
        """The next match is wanted, or with -1 the one before."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class Closed(Message):
        """The search is over."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._text = text
        self._found: tuple[int | None, int] | None = None

    def compose(self) -> ComposeResult:
        yield Bar("search-sign")
        yield SafeInput(self._text, "what to look for", widget_id="search-text")
        yield Bar("search-count")

    def on_mount(self) -> None:
        self.query_one("#search-sign", Bar).say(lambda _: (Span(" / ", "accent"),))
        self.take_focus()
        self._say_found()

    def take_focus(self) -> None:
        """Give the field the keyboard, which it takes by itself once it is there."""
        for field in self.query("#search-text"):
            field.focus()

    def say(self, found: tuple[int | None, int]) -> None:
        """Say which match was gone to, from 0, and how many there are."""
        self._found = found
        self._say_found()

    def _say_found(self) -> None:
        if self._found is None or not self.is_mounted:
            return
        line = count_line(self._found, blank=not self.query_one("#search-text", Input).value.strip())
        self.query_one("#search-count", Bar).say(lambda width: (Span(" " * (width - cell_len(line[0].text))), *line))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    def action_step(self, step: int) -> None:
        """Go on, or back."""
        self.post_message(self.Stepped(step))

    def action_close(self) -> None:
        """End the search."""
        self.post_message(self.Closed())


def count_line(found: tuple[int | None, int], *, blank: bool = False) -> Line:
    """`3 of 17`, or that there is none."""
    which, count = found
    if blank:
        return (Span(""),)
    if not count:
        return (Span("not found ", "warned"),)
    return (Span(f"{which + 1:,} of {count:,} " if which is not None else f"{count:,} found ", "muted"),)
