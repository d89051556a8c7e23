"""The widgets of the suite tree: the tree with the signs and scores of its rows, and the filter's input line."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input

from workbench.limits import MAX_FILTER_CHARS
from workbench.show.spans import EMPTY, Line, Role, message_lines
from workbench.tui.kit.actions import actions_at, bindings_for
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.line_view import LineView, Motion
from workbench.tui.run_book.book import RunBook
from workbench.tui.tree.actions import TreeActions
from workbench.tui.tree.lines import fold_cell, tree_line, tree_message
from workbench.tui.tree.selection import Selection
from workbench.tui.tree.state import TreeState

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen


class SuiteTree(LineView):
    """The tree of folders, suites and cases."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(actions_at("suites", TreeActions))
    CURSOR_CHANGES_LINES = False

    class Moved(Message):
        """Posted when the cursor moves to a different row."""

    class Blocked(Message):
        """Posted when a movement key on a folded row has no effect because the tree has no other row."""

    class Opened(Message):
        """Posted when the selected row is clicked."""

    def __init__(self, state: TreeState, book: RunBook, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.state = state
        self.book = book
        self.message: tuple[tuple[str, Role], ...] = ()
        """The message for an empty tree."""

    @property
    def has_cursor(self) -> bool:
        return bool(self.state.rows)

    def line_count(self) -> int:
        return len(self.state.rows) or len(message_lines(self.message, self.text_width))

    def line_at(self, index: int) -> Line:
        if not self.state.rows:
            rows = message_lines(self.message, self.text_width)
            if index < len(rows):
                return rows[index]
            return EMPTY
        return tree_line(self.state, self.state.rows[index], self.book, self.text_width)

    def moved(self) -> None:
        if self.state.rows and self.state.cursor != self.cursor:
            self.state.move_to(self.cursor)
            self.post_message(self.Moved())

    def action_move(self, motion: Motion) -> None:
        before = self.cursor
        super().action_move(motion)
        if self.state.rows and self.cursor == before:
            row = self.state.rows[before]
            if self.state.is_foldable(row) and self.state.is_folded(row):
                self.post_message(self.Blocked())

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """Fold or unfold a row if its fold sign is clicked."""
        index = self.top + event.y
        if index >= len(self.state.rows):
            return
        row = self.state.rows[index]
        if self.state.is_foldable(row) and event.x == fold_cell(row):
            # Without this call, Textual would also call the handler of the base class, which opens the row.
            event.prevent_default()
            self.state.move_to(index)
            self.state.fold(row, not self.state.is_folded(row))
            self.follow_state()

    def follow_state(self) -> None:
        """Show the tree after folding, filtering or reloading."""
        self.move_cursor(self.state.cursor)
        self.post_message(self.Moved())


class FilterBox(SafeInput):
    """The input line of the tree's filter. Hidden until it is used."""

    # The field is hidden, not mounted on demand, because a widget cannot take a key while it is being mounted.
    DEFAULT_CSS = """
    FilterBox { height: 1; border: none; padding: 0 1; background: $panel; display: none; }
    FilterBox.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    class Ended(Message):
        """Posted when the user has finished typing the filter."""

    def __init__(self, selection: Selection, panes: MainScreen) -> None:
        super().__init__("", "words, status:failed, tag:…", widget_id="filter", max_length=MAX_FILTER_CHARS)
        self._selection = selection
        self._panes = panes

    @property
    def typing(self) -> bool:
        """Whether the filter has the focus."""
        return self.screen.focused is self

    def begin(self) -> None:
        """Begin to type. Start with the current filter."""
        self._panes.go_to("suites")
        text = self._selection.tree.filter
        # The filter is already active, so this must not count as a change.
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        self.add_class("open")
        self.screen.set_focus(self)
        self._panes.refresh_bars()

    def end(self, *, keep: bool) -> None:
        """Return to the tree. Keep or clear the filter."""
        self.remove_class("open")
        if not keep:
            self._selection.tree.set_filter("")
        self._tree.follow_state()
        self._panes.go_to("suites")
        self.post_message(self.Ended())

    @property
    def _tree(self) -> SuiteTree:
        return self.screen.query_one("#suites", SuiteTree)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        state = self._selection.tree
        state.set_filter(event.value, self._selection.book)
        self._tree.message = tree_message(state.filter)
        self._tree.follow_state()
        self._panes.show_titles()

    @on(Input.Submitted)
    def _taken(self) -> None:
        self.end(keep=True)
