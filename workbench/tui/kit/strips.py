"""Converts lines of the app to Textual's coloured strips, and shows them in the one-row widget `Bar`."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, cast

from rich.segment import Segment
from textual.dom import DOMNode
from textual.strip import Strip
from textual.widget import Widget

from workbench.show.spans import EMPTY, Line, Span, cells, cut_line, with_blanks_joined
from workbench.show.visible import one_line
from workbench.tui.kit.actions import Keymap
from workbench.tui.terminal.theme import Ground, Palette

LineBuilder = Callable[[int], Line]
"""Returns a line for a width in cells."""


class DrawingContext(Protocol):
    """The parts of the app that drawing needs: the colours, and the names of keys."""

    palette: Palette
    keymap: Keymap


def keymap_of(node: DOMNode) -> Keymap:
    return cast("DrawingContext", node.app).keymap


def palette_of(widget: Widget) -> Palette:
    return cast("DrawingContext", widget.app).palette


def safe_strip(strip: Strip) -> Strip:
    """Return a strip of a Textual field in which each control character is replaced by one visible cell."""
    if all(one_line(segment.text) == segment.text for segment in strip):
        return strip
    # Each character must stay one cell wide, because Textual computes the cursor's position from the original text.
    shown = []
    for text, style, control in strip:
        shown.append(Segment("".join(map(_safe, text)), style, control))
    return Strip(shown).adjust_cell_length(strip.cell_length)


def _safe(character: str) -> str:
    picture = one_line(character)
    if len(picture) == 1:
        return picture
    return "\N{REPLACEMENT CHARACTER}"


def strip_of(line: Line, width: int, ground: Ground, palette: Palette) -> Strip:
    """Return a line on a background as a strip, cut or filled to exactly `width` cells."""
    return Strip(segments_of(line, width, ground, palette), width)


def segments_of(line: Line, width: int, ground: Ground, palette: Palette) -> list[Segment]:
    """Return a line on a background as segments, cut or filled to exactly `width` cells."""
    line = cut_line(line, width)
    line = with_blanks_joined((*line, Span(" " * (width - cells(line)))))
    return [Segment(text, palette.style(role, ground)) for text, role in line]


class Bar(Widget):
    """A one-row widget.

    A function returns its content for a width. The widget is redrawn only if the content changes."""

    DEFAULT_CSS = "Bar { height: 1; }"
    ALLOW_SELECT = False
    GROUND: ClassVar[Ground] = "panel"

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self._line_for: LineBuilder = _nothing
        self._drawn: Line | None = None
        self._drawn_width = 0

    def set_line(self, line_for: LineBuilder) -> None:
        """Set the function that returns the content for a width."""
        self._line_for = line_for
        width = self.size.width
        if self._drawn is None or self._drawn_width != width or self._drawn != line_for(width):
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y:
            return Strip.blank(width)
        self._drawn, self._drawn_width = self._line_for(width), width
        return strip_of(self._drawn, width, self.GROUND, palette_of(self))


def _nothing(_: int) -> Line:
    return EMPTY
