"""TOML while it is typed, in the place of the view."""

from __future__ import annotations

from collections.abc import Callable

from workbench.tui.highlight import TomlColours
from workbench.tui.widgets.text_editor import TextEditor


class TomlEditor(TextEditor):
    """A part of a suite to type in."""

    def __init__(self, tell: Callable[[str, int], None], widget_id: str | None = None) -> None:
        super().__init__(tell, TomlColours, widget_id)
