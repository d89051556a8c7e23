"""Saves work of apps under test: parsing the same stylesheets, and drawing frames that nobody sees.

Each test opens its own app, and nine tenths of the work until its first frame is always the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.screen import Screen

import workbench.tui.terminal.containment  # noqa: F401  # what it puts around drawing belongs to what is put off here

_parsed: dict[frozenset[tuple[str, str]], LRUCache[tuple[Any, ...], list[RuleSet]]] = {}
"""The parsed rules of the stylesheets, by the variables of a theme."""
_postpones = True
_undrawn: WeakSet[Screen[Any]] = WeakSet()
"""Screens that have to be drawn when the app is calm."""

_init = Stylesheet.__init__
_set_variables = Stylesheet.set_variables
_draw = Screen._compositor_refresh


def _init_shared(self: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
    _init(self, variables=variables)
    _share(self)


def _set_variables_shared(self: Stylesheet, variables: dict[str, str]) -> None:
    self._parse_cache = LRUCache(1)  # what is cleared here is another's too
    _set_variables(self, variables)
    _share(self)


def _share(sheet: Stylesheet) -> None:
    sheet._parse_cache = _parsed.setdefault(frozenset(sheet._variables.items()), LRUCache(1024))


def _draw_later(self: Screen[Any]) -> None:
    if _postpones and self.app.is_headless and self is self.app.screen:
        _undrawn.add(self)
    else:
        _draw(self)


@contextmanager
def every_frame() -> Iterator[None]:
    """Draw each frame at its time, for tests that do not wait until the app is calm."""
    global _postpones
    _postpones = False
    try:
        yield
    finally:
        _postpones = True


def draw_what_is_seen() -> bool:
    """Draw what changed on the screens since they were last drawn. Return whether anything had changed."""
    screens = list(_undrawn)
    _undrawn.clear()
    for screen in screens:
        if screen.is_running and screen.is_attached:
            with screen._context():
                _draw(screen)
    return bool(screens)


def spare_what_is_not_seen() -> None:
    """Make the apps of this process share parsed stylesheets, and draw only when they are calm."""
    for parts, new in (
        (Stylesheet, {"__init__": _init_shared, "set_variables": _set_variables_shared}),
        (Screen, {"_compositor_refresh": _draw_later}),
    ):
        for name, function in new.items():
            setattr(parts, name, function)
