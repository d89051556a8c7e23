"""Asks under which name a suite is saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from workbench.reports.visible import one_line
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.naming import named_path
from workbench.tui.state.spans import EMPTY, Line, Span, wrap
from workbench.tui.widgets.dialogs import Dialog, ReadLines, keys_line
from workbench.tui.widgets.safe_input import SafeInput

_OTHER_ROWS = 5
"""Border, title, name and keys."""


class SaveAsScreen(Dialog[Path]):
    """Answers with a path at which there is nothing yet. `refusal` says why a path will not do, or `None`."""

    TITLE_LINE = "Save under another name"
    DEFAULT_CSS = """
    SaveAsScreen Input { height: 1; border: none; padding: 0 1; margin: 0 1; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, proposed: Path, said: str, refusal: Callable[[Path], str | None]) -> None:
        super().__init__(keys_line(("Enter", "save"), ("Esc", "not now")))
        self._proposed = proposed
        self._said = said
        self._refusal = refusal

    def body(self) -> ComposeResult:
        yield ReadLines(self._lines, "reading")
        yield SafeInput(str(self._proposed), widget_id="name")

    def _make_room(self, height: int) -> None:
        self.query_one("#reading").styles.max_height = max(height - _OTHER_ROWS, 1)

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#name", Input))

    def _lines(self, width: int) -> list[Line]:
        return [EMPTY, *((Span("  "), Span(row)) for row in wrap(self._said, max(width - 4, 10))), EMPTY]

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if not event.value.strip():
            return
        path = named_path(Path(), event.value.strip(), self._refusal)
        if isinstance(path, Path):
            self.dismiss(path)
        else:
            self.say_keys((Span(f" {GLYPHS.warned} {one_line(path)}", "warned"),))
