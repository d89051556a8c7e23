"""When an app under test draws: no frame that nobody sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from textual.screen import Screen

import workbench.tui.terminal.containment  # noqa: F401  # what it puts around drawing belongs to what is put off here

_postpones = True
_undrawn: WeakSet[Screen[Any]] = WeakSet()
"""Screens of which something is to be drawn as soon as the app is calm."""

_draw = Screen._compositor_refresh


def _draw_later(self: Screen[Any]) -> None:
    if _postpones and self.app.is_headless and self is self.app.screen:
        _undrawn.add(self)
    else:
        _draw(self)


@contextmanager
def every_frame() -> Iterator[None]:
    """Draw each frame when its time comes, where a test does not wait until the app is calm."""
    global _postpones
    _postpones = False
    try:
        yield
    finally:
        _postpones = True


def draw_what_is_seen() -> bool:
    """Draw what changed on the screens since they were last drawn. Returns whether anything had."""
    screens = list(_undrawn)
    _undrawn.clear()
    for screen in screens:
        if screen.is_running and screen.is_attached:
            with screen._context():
                _draw(screen)
    return bool(screens)


def draw_when_calm() -> None:
    """Have the apps of this process draw only when they are calm."""
    parts: Any = Screen
    parts._compositor_refresh = _draw_later
