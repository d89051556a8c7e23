"""The dialog that asks for a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input

from workbench.reports.visible import one_line
from workbench.tui.kit.dialogs import Dialog, ReadLines, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import EMPTY, Line, Span, wrap

_Answer = TypeVar("_Answer")

Refusal = Callable[[str], str | None]
"""Returns why a text cannot be used, if so."""

LOW_ROWS = 14
"""On a lower screen, only the title is shown."""

_ROWS_AROUND = 8
"""The rows that a dialog needs besides its choices."""


class _Naming(Dialog[_Answer]):
    """A dialog with one line to type in."""

    DEFAULT_CSS = """
    _Naming Input { height: 1; border: none; padding: 0 1; margin: 0 1 1 1; background: $background; }
    _Naming.low Input { margin: 0 1; }
    _Naming.low ReadLines { display: none; }
    """

    def __init__(self, title: str, proposed: str, said: str, refusal: Refusal, keys: Line) -> None:
        super().__init__(keys)
        self.TITLE_LINE = title  # type: ignore[misc]
        self._proposed = proposed
        self._said = said
        self._refusal = refusal

    def body(self) -> ComposeResult:
        yield ReadLines(self._lines, "reading")
        yield SafeInput(self._proposed, widget_id="name")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#name", Input))

    def answer(self, text: str) -> None:
        """Close with a valid text."""
        raise NotImplementedError

    def submit(self) -> None:
        """Check the text, and close with it or show why it cannot be used."""
        text = self.query_one("#name", Input).value.strip()
        why = self._refusal(text) if text else "a name is needed"
        if why is None:
            self.answer(text)
        else:
            self.say_keys((Span(f" {GLYPHS.warned} {one_line(why)}", "warned"),))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.submit()

    @on(Input.Changed)
    def _changed(self) -> None:
        self.say_keys(self._keys)

    def _lines(self, width: int) -> list[Line]:
        said = wrap(one_line(self._said), max(width - 4, 10))
        return [EMPTY, *((Span("  "), Span(row)) for row in said)]

    def _make_room(self, height: int) -> None:
        super()._make_room(height)
        self.set_class(height < LOW_ROWS, "low")


class NameScreen(_Naming[str]):
    """Asks for a name."""

    def __init__(self, title: str, proposed: str, said: str, refusal: Refusal) -> None:
        super().__init__(title, proposed, said, refusal, keys_line(("Enter", "take it"), ("Esc", "leave")))

    def answer(self, text: str) -> None:
        self.dismiss(text)
