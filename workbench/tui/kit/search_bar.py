"""The search bar of a pane: a field for the text, and the number of matches."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input

from workbench.numerals import count_text, of_text
from workbench.show.spans import Line, Span
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.strips import Bar

COUNT_CELLS = 17


class SearchBar(Horizontal):
    """A one-row bar with a search field. `text` is the initial, selected text."""

    DEFAULT_CSS = f"""
    SearchBar {{ height: 1; background: $panel; }}
    SearchBar Input {{ width: 1fr; height: 1; border: none; padding: 0; background: $panel; }}
    SearchBar #search-sign {{ width: 3; }}
    SearchBar #search-count {{ width: {COUNT_CELLS}; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # The bindings have priority, because the field itself would take Enter.
        Binding("enter,ctrl+g,down", "step(1)", "Next match", show=False, priority=True),
        Binding("shift+enter,up", "step(-1)", "Previous match", show=False, priority=True),
        Binding("escape", "close", "End the search", show=False, priority=True),
    ]

    class Changed(Message):
        """Posted when the searched text changes."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Stepped(Message):
        """Posted when the user asks for the next (1) or previous (-1) match."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class Closed(Message):
        """Posted when the user ends the search."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._text = text
        self._found: tuple[int | None, int] | None = None

    def compose(self) -> ComposeResult:
        yield Bar("search-sign")
        yield SafeInput(self._text, "what to look for", widget_id="search-text")
        yield Bar("search-count")

    def on_mount(self) -> None:
        self.query_one("#search-sign", Bar).set_line(lambda _: (Span(" / ", "accent"),))
        self.take_focus()
        self._show_match_count()

    def take_focus(self) -> None:
        """Focus the search field. If the bar is not mounted yet, it takes the focus as soon as it is mounted."""
        for field in self.query("#search-text"):
            field.focus()

    def show_count(self, found: tuple[int | None, int]) -> None:
        """Show the position of the current match.

        `found` has the index of the match (from 0, `None` if there is no match), and the number of matches."""
        self._found = found
        self._show_match_count()

    def _show_match_count(self) -> None:
        if self._found is None or not self.is_mounted:
            return
        line = count_line(self._found, blank=not self.query_one("#search-text", Input).value.strip())
        self.query_one("#search-count", Bar).set_line(
            lambda width: (Span(" " * (width - cell_len(line[0].text))), *line)
        )

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    def action_step(self, step: int) -> None:
        self.post_message(self.Stepped(step))

    def action_close(self) -> None:
        self.post_message(self.Closed())


class SearchedPane(Vertical):
    """A pane with a search bar. A subclass finds and highlights the matches."""

    def __init__(self, widget_id: str | None = None, *, classes: str | None = None) -> None:
        super().__init__(id=widget_id, classes=classes)
        self.searching = False
        """Whether the search bar is open."""
        self._last_search = ""

    @property
    def searched(self) -> str:
        """The searched text, "" without a search."""
        return self._last_search if self.searching else ""

    def search(self) -> None:
        """Open the search bar with the text of the last search."""
        if self.searching:
            for bar in self.query(SearchBar):
                bar.take_focus()
            return
        self.searching = True
        # Only a mounted bar can show the number of matches.
        self.mount(SearchBar(self._last_search))
        self.call_after_refresh(self.mark_found)

    def find(self, step: int) -> None:
        """Go to the next (1) or previous (-1) match. If nothing is searched yet, open the search."""
        if not self.searching:
            self.search()
        self._go_to_match(step)

    def end_search(self) -> None:
        """Close the search bar. The cursor stays at the last match."""
        self.searching = False
        self.query(SearchBar).remove()
        self.mark_found()
        self._take_keyboard()

    def show_match_count(self, found: tuple[int | None, int]) -> None:
        """If the search bar is open, show the index of the current match (from 0) and the number of matches."""
        if not self.searching:
            # A bar that is being removed is still mounted.
            return
        for bar in self.query(SearchBar):
            bar.show_count(found)

    def mark_found(self) -> None:
        """Highlight the matches in the displayed lines, and show their number."""
        raise NotImplementedError

    def _go_to_match(self, step: int) -> None:
        raise NotImplementedError

    def _take_keyboard(self) -> None:
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


def count_line(found: tuple[int | None, int], *, blank: bool) -> Line:
    """Return the state of a search as text, such as `3 of 17` for the match with index 2 of 17.

    `blank` is whether nothing is searched yet. The text is then empty."""
    which, count = found
    if blank:
        return (Span(""),)
    if not count:
        return (Span("not found ", "warned"),)
    if which is None:
        return (Span(f"{count_text(count)} found ", "muted"),)
    return (Span(f"{of_text(which + 1, count)} ", "muted"),)
