"""Converts lines with roles to coloured strips. Only here do our widgets meet Textual's drawing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.segment import Segment
from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from workbench.show.spans import EMPTY, Line, Span, cells, cut_line, with_blanks_joined
from workbench.show.visible import one_line
from workbench.tui.kit.keymap import Keymap
from workbench.tui.terminal.composing import Update
from workbench.tui.terminal.driver import StagedDriver
from workbench.tui.terminal.key_queue import KeyQueueApp
from workbench.tui.terminal.output_stage import Frame
from workbench.tui.terminal.theming import Ground, Palette

LineFor = Callable[[int], Line]
"""Returns a line for a width in cells."""


class PaintedApp(KeyQueueApp):
    """An app with a palette for lines, and a keymap."""

    palette: Palette
    keymap: Keymap

    @property
    def _background_screens(self) -> list[Screen[object]]:
        """What is seen behind the top screen: of several dialogs only the last one shows."""
        return [screen for screen in super()._background_screens if not screen.is_modal]

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Send the terminal only what changes."""
        driver = self._driver
        if self._batch_count or not isinstance(driver, StagedDriver) or not isinstance(renderable, Update):
            super()._display(screen, renderable)
            return
        compositor = screen._compositor
        update: object = renderable
        if not driver.stage.knows(*compositor.size):
            update = compositor.render_update(full=True, screen_stack=self._background_screens)
        assert isinstance(update, Update)
        with driver.drawing():
            super()._display(screen, Frame(driver.stage, update, *compositor.size))

    def on_resize(self) -> None:
        """Draw everything anew. The terminal may have cut or moved what it showed, even if the size is back to what it
        was."""
        self._forget_shown()
        self.refresh()

    def action_draw_anew(self) -> None:
        """Draw everything anew: what the terminal shows may have been written by somebody else."""
        self._forget_shown()
        self.refresh(layout=True)

    def _forget_shown(self) -> None:
        if isinstance(self._driver, StagedDriver):
            self._driver.stage.forget()

    async def _on_key(self, event: events.Key) -> None:
        """Handle a key that nothing has taken. If a field can use it, the key was typed before the field had the focus,
        and must not become a command."""
        focused = self.focused
        if focused is not None and focused.check_consume_key(event.key, event.character):
            event.prevent_default()
            focused.post_message(events.Key(event.key, event.character))


_screen_resized = Screen._screen_resized


def _resized_as_app(self: Screen[Any], _: Size) -> None:
    """Lay a screen out for the size that the terminal has now, not for the one that a message tells.

    A layout for another size than the last one sends its own screen that size again. While frames are held back, two
    such messages do not become one: each would bring the other back, and the event loop would do nothing else any more.
    """
    _screen_resized(self, self.app.size)


Screen._screen_resized = _resized_as_app  # type: ignore[assignment, method-assign]


def keymap_of(node: DOMNode) -> Keymap:
    """Return the app's keymap."""
    app: App[Any] = node.app
    assert isinstance(app, PaintedApp)
    return app.keymap


def palette_of(widget: Widget) -> Palette:
    """Return the app's palette."""
    app: App[Any] = widget.app
    assert isinstance(app, PaintedApp)
    return app.palette


def safe_strip(strip: Strip) -> Strip:
    """Return a strip of a Textual field with control characters replaced, each by one cell."""
    if all(one_line(segment.text) == segment.text for segment in strip):
        return strip
    shown = [Segment("".join(map(_safe, text)), style, control) for text, style, control in strip]
    return Strip(shown).adjust_cell_length(strip.cell_length)


def _safe(character: str) -> str:
    picture = one_line(character)
    return picture if len(picture) == 1 else "\N{REPLACEMENT CHARACTER}"


def strip_of(line: Line, width: int, ground: Ground, palette: Palette) -> Strip:
    """Return exactly `width` cells of a line on a background."""
    return Strip(segments_of(line, width, ground, palette), width)


def segments_of(line: Line, width: int, ground: Ground, palette: Palette) -> list[Segment]:
    """Return exactly `width` cells of a line on a background, as segments."""
    line = cut_line(line, width)
    line = with_blanks_joined((*line, Span(" " * (width - cells(line)))))
    return [Segment(text, palette.style(role, ground)) for text, role in line]


class Bar(Widget):
    """One row that is redrawn only when it changes. Its content may depend on its width."""

    DEFAULT_CSS = "Bar { height: 1; }"
    ALLOW_SELECT = False
    GROUND: ClassVar[Ground] = "panel"

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self._line_for: LineFor = _nothing
        self._drawn: Line | None = None
        self._drawn_width = 0

    def say(self, line_for: LineFor) -> None:
        """Set the content, as a function of the width."""
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
