"""The base of the app: draws through the output stage, and contains internal errors."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from textual import events
from textual.filter import LineFilter
from textual.geometry import Size
from textual.screen import Screen

from workbench.tui.terminal.containment import Containment
from workbench.tui.terminal.driver import StagedDriver
from workbench.tui.terminal.key_queue import KeyQueueApp
from workbench.tui.terminal.output_stage import Frame, Update


class StagedApp(KeyQueueApp):
    """An app that sends only changes to the terminal, and survives internal errors if it has a `containment`."""

    containment: Containment | None = None

    def begin_with_theme(self, name: str) -> None:
        """Set the theme of an app that does not run yet."""
        self.theme = name
        # Textual would parse all styles in the colours of its own theme, and then again in those of this theme.
        self._next_callbacks.clear()
        self.stylesheet.set_variables(self.get_css_variables())

    def filter_output(self, line_filter: LineFilter) -> None:
        """Add a filter for everything that is drawn."""
        self._filters.append(line_filter)

    @property
    def is_exiting(self) -> bool:
        return self._exit

    @property
    def staged_driver(self) -> StagedDriver | None:
        """The driver with an output stage. `None` in tests, where nothing is drawn."""
        if isinstance(self._driver, StagedDriver):
            return self._driver
        return None

    def _handle_exception(self, error: Exception) -> None:
        if self.containment is None:
            super()._handle_exception(error)
        else:
            self.containment.handle_caught_error(error)

    @property
    def _background_screens(self) -> list[Screen[object]]:
        """The screens to draw behind the top screen. Of several open dialogs, only the top dialog is visible."""
        return [screen for screen in super()._background_screens if not screen.is_modal]

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Send the terminal the difference from its current content."""
        driver = self.staged_driver
        if self._batch_count or driver is None or not isinstance(renderable, Update):
            super()._display(screen, renderable)
            return
        compositor = screen._compositor
        update: object = renderable
        if not renderable.is_complete and not driver.stage.is_valid_for(*compositor.size):
            update = compositor.render_update(full=True, screen_stack=self._background_screens)
        assert isinstance(update, Update)
        with driver.drawing():
            super()._display(screen, Frame(driver.stage, update, *compositor.size))

    def on_resize(self) -> None:
        """Draw the whole screen again."""
        # The terminal may have cut or moved its content, even at an unchanged size.
        self._redraw_all()
        self.refresh()

    def action_draw_anew(self) -> None:
        """Draw the whole screen again after another program wrote to the terminal."""
        self._redraw_all()
        self.refresh(layout=True)

    def _redraw_all(self) -> None:
        if (driver := self.staged_driver) is not None:
            driver.stage.forget()

    async def on_key(self, event: events.Key) -> None:
        """Handle a key that no widget used."""
        # The focused field can use this key, so the key was typed before the field got the focus. It must not become a
        # command.
        focused = self.focused
        if focused is not None and focused.check_consume_key(event.key, event.character):
            event.prevent_default()
            focused.post_message(events.Key(event.key, event.character))


_screen_resized = Screen._screen_resized
_screen_resumed = Screen._on_screen_resume


def _resized_as_app(self: Screen[Any], _: Size) -> None:
    """Lay out a screen for the terminal's current size instead of the size in a message."""
    # A layout for a new size posts this size to the screen as a message. While frames are held back, two messages with
    # different sizes may be waiting. Each would cause the other again, and the event loop would do nothing else.
    # Textual would also repeat the layout for the posted size.
    if self.outer_size != self.app.size:
        _screen_resized(self, self.app.size)


def _resumed_with_styles(self: Screen[Any], event: events.ScreenResume) -> None:
    """Show a screen. Leave out the refresh of its styles when it is first shown, because its widgets just got them."""
    if not self.stack_updates:
        event.refresh_styles = False
    _screen_resumed(self, event)


Screen._screen_resized = _resized_as_app  # type: ignore[assignment, method-assign]
Screen._on_screen_resume = _resumed_with_styles  # type: ignore[method-assign]
