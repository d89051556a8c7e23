"""Moving in anything that has lines."""

from __future__ import annotations

from workbench.tui.actions.action import Action

ACTIONS: tuple[Action, ...] = (
    Action("move.up", "Up", ("up",), "move", listed=False),
    Action("move.down", "Down", ("down",), "move", listed=False),
    Action("move.page_up", "A page up", ("pageup",), "move", listed=False),
    Action("move.page_down", "A page down", ("pagedown",), "move", listed=False),
    Action("move.home", "To the beginning", ("home",), "move", listed=False),
    Action("move.end", "To the end; a run is then followed as it grows", ("end",), "move", listed=False),
)
