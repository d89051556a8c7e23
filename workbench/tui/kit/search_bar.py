"""One line to search a pane with: what to look for, and which of how many it is."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
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


class SearchedPane(Vertical):
    """A pane that can be searched; the search bar is there only meanwhile. A subclass marks what is found."""

    def __init__(self, widget_id: str | None = None, *, classes: str | None = None) -> None:
        super().__init__(id=widget_id, classes=classes)
        self.searching = False
        """Whether the search bar is there."""
        self._last_search = ""

    @property
    def searched(self) -> str:
        """What is looked for now; empty while nothing is."""
        return self._last_search if self.searching else ""

    def search(self) -> None:
        """Let a text be typed that is searched for; the last one stands there already."""
        if self.searching:
            for bar in self.query(SearchBar):
                bar.take_focus()
            return
        self.searching = True
        self.mount(SearchBar(self._last_search))
        self.call_after_refresh(self.mark_found)

    def find(self, step: int) -> None:
        """Go to the next match, or with -1 to the one before; without a search, begin one."""
        if not self.searching:
            self.search()
        self._go_to_match(step)

    def end_search(self) -> None:
        """Take the search bar away; the cursor stays where it is."""
        self.searching = False
        self.query(SearchBar).remove()
        self.mark_found()
        self._take_keyboard()

    def say_found(self, found: tuple[int | None, int]) -> None:
        """Show in the search bar, if it is there, which match was gone to, from 0, and how many there are."""
        for bar in self.query(SearchBar) if self.searching else ():
            bar.say(found)

    def mark_found(self) -> None:
        """Mark what is looked for in what is shown, and say how much that is."""
        raise NotImplementedError

    def _go_to_match(self, step: int) -> None:
        raise NotImplementedError

    def _take_keyboard(self) -> None:
        """Give the keyboard to what was searched."""
        raise NotImplementedError

    @on(SearchBar.Changed)
    def _search_changed(self, event: SearchBar.Changed) -> None:
        event.stop()
        self._last_search = event.text
        self.mark_found()

    @on(SearchBar.Stepped)
    def _search_stepped(self, event: SearchBar.Stepped) -> None:
        event.stop()
        self.find(event.step)

    @on(SearchBar.Closed)
    def _search_closed(self, event: SearchBar.Closed) -> None:
        event.stop()
        self.end_search()


def count_line(found: tuple[int | None, int], *, blank: bool = False) -> Line:
    """`3 of 17`, or that there is none."""
    which, count = found
    if blank:
        return (Span(""),)
    if not count:
        return (Span("not found ", "warned"),)
    return (Span(f"{which + 1:,} of {count:,} " if which is not None else f"{count:,} found ", "muted"),)
