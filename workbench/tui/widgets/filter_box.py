"""The field in which the tree's filter is typed, below the tree while it is."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.widgets import Input

from workbench.tui.widgets.safe_input import SafeInput

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

    def open(self, text: str) -> None:
        """Begin to type, with what is filtered for now."""
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        self.add_class("open")
        self.screen.set_focus(self)

    def close(self) -> None:
        """Be gone."""
        self.remove_class("open")
