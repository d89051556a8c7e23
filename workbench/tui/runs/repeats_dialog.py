"""The dialog that asks how often to run."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input

from workbench.reports.visible import one_line
from workbench.suite.model import MOST_REPEATS
from workbench.tui.kit.dialogs import Dialog, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.painting import Bar
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Span

_USUAL = "3"


class RepeatsScreen(Dialog[int]):
    """Asks for a number from 1 to `MOST_REPEATS`."""

    TITLE_LINE: ClassVar[str] = "Run several times"
    DEFAULT_CSS = """
    RepeatsScreen > Vertical { width: 60; }
    RepeatsScreen Input { border: none; height: 1; padding: 0 1; background: $background; }
    """

    def __init__(self, what: str) -> None:
        super().__init__(keys_line(("Enter", "run"), ("Esc", "leave")))
        self._what = what

    def body(self) -> ComposeResult:
        yield Bar("asked")
        yield SafeInput(_USUAL, widget_id="times", whole_number=True, max_length=4)

    def on_mount(self) -> None:
        self.query_one("#asked", Bar).say(
            lambda _: (Span(f" How often to run {one_line(self._what)}, on each model?"),)
        )
        self.set_focus(self.query_one("#times"))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        if text.isdecimal() and 1 <= int(text) <= MOST_REPEATS:
            self.dismiss(int(text))
        else:
            self.say_keys((Span(f" {GLYPHS.warned} A number from 1 to {MOST_REPEATS:,}", "warned"),))
