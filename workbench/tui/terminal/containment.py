"""Limits an internal error to its widget or screen, so the app continues.

The error is logged and announced in one line. A widget that cannot be drawn shows a message until the next key. A
screen above the main screen that cannot be drawn is closed. The third equal error in a row ends the app."""

# Textual ends the app at the first error in a handler. The wrappers at the end of this file replace the five methods
# that call all handlers, layouts and drawings. Errors that Textual itself catches, in timers, workers and callbacks,
# are passed to `Containment.handle_caught_error`.

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextvars import ContextVar
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from rich.segment import Segment
from textual import events
from textual._context import NoActiveAppError, active_message_pump
from textual.box_model import BoxModel
from textual.geometry import Region, Size, Spacing
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import NoActiveWorker, WorkerFailed, get_current_worker

from workbench.config.logs import LOG_NAME
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


_log = logging.getLogger(__name__)

MAX_EQUAL_ERRORS = 3
"""The number of equal errors in a row that end the app."""

MAX_ERROR_CHARS = 60
"""The maximum length of an error in its announcement. The log has the whole error."""

UNDRAWN_ROWS = 3
"""The height of a widget if its height cannot be computed."""

CANNOT_BE_DRAWN = " this cannot be drawn; the log says why"


class Containment:
    """Handles an app's internal errors."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.handled = 0
        """The number of messages handled by the app's widgets."""
        self.recent: deque[Exception] = deque(maxlen=10)
        self.undrawn: WeakSet[Widget] = WeakSet()
        """Widgets that failed to draw since the last key. They are tried again after the next key."""
        self._closing: WeakSet[Any] = WeakSet()
        """Screens that are closing because they cannot be drawn."""
        self._last: tuple[object, ...] = ()
        self._in_a_row = 0
        self._was_quiet = True
        """Whether there was no error since the last key."""

    @property
    def is_urgent(self) -> bool:
        """Whether a signal has asked the app to end at once."""
        return self._app.leaving.is_urgent

    def handle_error(self, error: Exception, *, undrawn: Widget | None = None, ends: bool = False) -> None:
        """Log and announce an internal error.

        `undrawn` is the widget that could not be drawn or set up. The app ends if `ends` is true, or after
        `MAX_EQUAL_ERRORS` equal errors in a row."""
        cause = error
        if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
            cause = error.error
        app = self._app
        if app.is_ending or self._is_closing(undrawn or _current_widget()):
            _log.warning("while it closed", exc_info=cause)
            return
        kind = _kind(cause)
        self._in_a_row = self._in_a_row + 1 if kind == self._last else 1
        self._was_quiet = False
        self._last = kind
        self.recent.append(cause)
        _log.error("an error of the app, %d in a row", self._in_a_row, exc_info=cause)
        if ends or self._in_a_row >= MAX_EQUAL_ERRORS:
            app.leaving.leave_after_error(cause)
            return
        unusable = None
        if undrawn is not None:
            unusable = _screen_of(undrawn)
            if unusable is not None and unusable is not app.main:
                self._closing.add(unusable)
            elif undrawn is not app.main:
                self.undrawn.add(undrawn)
        # The error may have happened during a layout or a drawing, so the notice or the closing has to wait.
        app.call_later(self._announce_or_close, f"{type(cause).__name__}: {self._error_text(cause)}", unusable)

    def handle_caught_error(self, error: Exception) -> None:
        """Handle an error that Textual caught in a timer, a worker, a callback or a layout."""
        undrawn, main = _undrawn_widget(active_message_pump.get(None)), self._app.main
        self.handle_error(error, undrawn=undrawn, ends=undrawn is main and not main.is_mounted)

    def _is_closing(self, node: object) -> bool:
        """Return whether a node belongs to a closing screen. Errors there have no further effect."""
        if not isinstance(node, Widget):
            return False
        screen = _screen_of(node)
        if screen in self._app.screen_stack:
            return screen in self._closing
        return True

    def _error_text(self, error: Exception) -> str:
        return one_line(self._app.program.secrets.redact(str(error)))[:MAX_ERROR_CHARS]

    def _announce_or_close(self, message: str, unusable: Screen[Any] | None) -> None:
        app = self._app
        if not app.starting.has_ended:
            app.starting.show_first()
        if unusable is not None and unusable is not app.main:
            unusable.dismiss(None)
            if unusable in app.screen_stack:
                # `dismiss` does nothing if the screen is below another screen. The next failure to draw then closes it.
                self._closing.discard(unusable)
        log = one_line(str(app.program.folders.log / LOG_NAME))
        app.announce(f"Something failed, and the rest still works: {message} (details in {log})", "error", GLYPHS.error)

    def handle_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an error in a callback of the event loop. Textual does not see such errors."""
        error = context.get("exception")
        if isinstance(error, Exception):
            self.handle_error(error)
        else:
            loop.default_exception_handler(context)

    def retry_undrawn(self) -> None:
        """Redraw the widgets that could not be drawn. Called after each key.

        If a key caused no error, the count of equal errors begins again."""
        if self._was_quiet:
            self._last = ()
        self._was_quiet = not self.undrawn
        for widget in tuple(self.undrawn):
            self.undrawn.discard(widget)
            widget.refresh(layout=True)


def _screen_of(widget: Widget) -> Screen[Any] | None:
    for node in widget.ancestors_with_self:
        if isinstance(node, Screen):
            return node
    return None


def _kind(error: Exception) -> tuple[object, ...]:
    """Identify an error by its type and the innermost line of its traceback outside of Textual."""
    line, at = None, error.__traceback__
    while at is not None:
        if not at.tb_frame.f_globals.get("__name__", "").startswith(("textual.", __name__)):
            line = (at.tb_frame.f_code.co_filename, at.tb_lineno)
        at = at.tb_next
    return (type(error), line or str(error))


_drawing: ContextVar[Screen[Any] | None] = ContextVar("drawing", default=None)
"""The screen that is being laid out or drawn."""
_drawn_later: list[Screen[Any]] = []
"""The screens that are being laid out and drawn in full afterwards. A context variable would not do, because new tasks
would inherit its value."""


def _current_widget() -> object:
    """Return the widget of the current worker. Outside of workers, return the widget of the current message."""
    try:
        return get_current_worker().node
    except NoActiveWorker:
        return active_message_pump.get(None)


def _undrawn_widget(pump: MessagePump | None) -> Widget | None:
    """Return the screen being drawn or the widget being mounted when Textual caught an error."""
    screen = _drawing.get()
    if screen is not None:
        return screen
    if isinstance(pump, Widget) and not pump._is_mounted:
        return pump
    return None


def _containment_of(pump: MessagePump) -> Containment | None:
    try:
        found: object = getattr(pump.app, "containment", None)
    except NoActiveAppError:
        return None
    if isinstance(found, Containment):
        return found
    return None


_dispatch = MessagePump._dispatch_message
_render_lines = Widget.render_lines
_box_model = Widget._get_box_model
_layout = Screen._refresh_layout
_draw = Screen._compositor_refresh


async def _dispatch_contained(self: MessagePump, message: Message) -> None:
    containment = _containment_of(self)
    if containment is not None:
        containment.handled += 1
        if containment.is_urgent:
            # The event loop has to run to deliver the signal. A widget with waiting messages would never return to it.
            await asyncio.sleep(0)
            if isinstance(message, events.InputEvent | events.Paste):
                return
    try:
        await _dispatch(self, message)
    except Exception as error:
        if containment is None:
            raise
        # A widget that failed to start up cannot be drawn. Without the app object or the main screen, the app has to
        # end.
        begins = isinstance(message, events.Load | events.Compose | events.Mount)
        ends = begins and self in (self.app, self.app.main)  # type: ignore[attr-defined]  # `self.app` is a `Workbench`
        undrawn = self if begins and isinstance(self, Widget) else None
        containment.handle_error(error, undrawn=undrawn, ends=ends)
        if ends:
            raise


def _render_lines_contained(self: Widget, crop: Region) -> list[Strip]:
    containment = _containment_of(self)
    if containment is None or self not in containment.undrawn:
        try:
            return _render_lines(self, crop)
        except Exception as error:
            if containment is None:
                raise
            containment.handle_error(error, undrawn=self)
    first = CANNOT_BE_DRAWN if crop.y == 0 else ""
    style = self.rich_style
    rows = [first, *[""] * (crop.height - 1)]
    return [Strip([Segment(text, style)]).adjust_cell_length(crop.width, style) for text in rows[: crop.height]]


def _box_model_contained(self: Widget, container: Size, *args: Any, **kwargs: Any) -> BoxModel:
    containment = _containment_of(self)
    if containment is None or self not in containment.undrawn:
        try:
            return _box_model(self, container, *args, **kwargs)
        except Exception as error:
            if containment is None:
                raise
            containment.handle_error(error, undrawn=self)
    return BoxModel(Fraction(container.width), Fraction(min(container.height, UNDRAWN_ROWS)), Spacing())


def _layout_contained(self: Screen[Any], size: Size | None = None, scroll: bool = False) -> None:
    # Textual draws a new screen right after its first layout, and again when the widgets have reacted to their sizes.
    # It also draws twice if both a layout and a repaint of the whole screen are due. The first drawing is left out
    # here.
    is_first = not self.outer_size
    is_drawn_later = is_first or self._repaint_required
    before = _drawing.set(self)
    if is_drawn_later:
        _drawn_later.append(self)
    try:
        _layout(self, size, scroll)
    finally:
        _drawing.reset(before)
        if is_drawn_later:
            _drawn_later.remove(self)
        if is_first:
            self.refresh()


def _draw_contained(self: Screen[Any]) -> None:
    # While the app holds its drawing back, Textual would compose the changes in vain, and forget them.
    if self in _drawn_later or self.app._batch_count:
        return
    before = _drawing.set(self)
    try:
        _draw(self)
    except Exception as error:
        containment = _containment_of(self)
        if containment is None:
            raise
        containment.handle_error(error, undrawn=self)
    finally:
        _drawing.reset(before)


MessagePump._dispatch_message = _dispatch_contained  # type: ignore[method-assign]
Widget.render_lines = _render_lines_contained  # type: ignore[method-assign]
Widget._get_box_model = _box_model_contained  # type: ignore[method-assign]
Screen._refresh_layout = _layout_contained  # type: ignore[method-assign]
Screen._compositor_refresh = _draw_contained  # type: ignore[method-assign]
