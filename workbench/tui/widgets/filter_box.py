"""The field in which the tree's filter is typed, below the tree while it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.binding import BindingType
from textual.widgets import Input

from workbench.tui.state.source import tree_message
from workbench.tui.widgets.safe_input import SafeInput
from workbench.tui.widgets.suite_tree import SuiteTree

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen

LONGEST_FILTER = 200
"""Characters; nobody types more, and a pasted file is no filter."""


class FilterBox(SafeInput):
    """One line, always there, so that it has the keyboard as soon as it is opened."""

    DEFAULT_CSS = """
    FilterBox { height: 1; border: none; padding: 0 1; background: $panel; display: none; }
    FilterBox.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self) -> None:
        super().__init__("", "name, id, tag or suite", widget_id="filter", max_length=LONGEST_FILTER)

    @property
    def main(self) -> MainScreen:
        return cast("MainScreen", self.screen)

    @property
    def typing(self) -> bool:
        """Whether the filter is being typed."""
        return self.screen.focused is self

    def begin(self) -> None:
        """Type to filter the tree, with what is filtered for now."""
        self.main.go_to("suites")
        text = self.main.suites.filter
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        self.add_class("open")
        self.screen.set_focus(self)
        self.main.refresh_bars()

    def end(self, *, keep: bool) -> None:
        """Back to the tree, with what the filter left, or with everything."""
        self.remove_class("open")
        if not keep:
            self.main.suites.set_filter("")
        self._tree.follow_state()
        self.main.go_to("suites")
        self.main.post_message(self.main.Free())

    @property
    def _tree(self) -> SuiteTree:
        return self.screen.query_one("#suites", SuiteTree)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        main = self.main
        main.suites.set_filter(event.value, main.book)
        self._tree.message = tree_message(main.suites.filter)
        self._tree.follow_state()
        main.show_titles()

    @on(Input.Submitted)
    def _taken(self) -> None:
        self.end(keep=True)
