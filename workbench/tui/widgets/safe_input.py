"""Textual's field of one line, as it is used here: compact, without a blinking cursor, and safe to show any text in."""

from __future__ import annotations

from textual.strip import Strip
from textual.widgets import Input

from workbench.tui.painting import safe_strip


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
