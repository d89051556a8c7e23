"""What can be done where nothing may be changed: the actions that only look. Every other one is refused there."""

from __future__ import annotations

from workbench.config.read_only import WHY_NOT, is_read_only
from workbench.tui.kit.actions import Action, Situation

_MOVES = ("back", "copy", "filter", "find", "find_next", "help", "left", "open", "other", "quit", "right")
"""What lists and texts have in common."""

_OF_SCREENS = {
    "audit": _MOVES,
    "breakpoints": _MOVES,
    "call": _MOVES,
    "compare": (*_MOVES, "base", "differences", "mark", "pair", "reload", "sort", "timeline", "totals"),
    "diff": (*_MOVES, "timeline"),
    "failures": _MOVES,
    "faults": _MOVES,
    "grades": (*_MOVES, "bad", "explain", "next", "next_run", "previous", "previous_run", "show"),
    "history": (*_MOVES, "forks", "grading", "mark", "reload"),
    "live": _MOVES,
    "log": _MOVES,
    "pair": (*_MOVES, "expand", "first", "fold", "layout", "next", "previous", "second", "unfold"),
    "paired": _MOVES,
    "timeline": (*_MOVES, "mark"),
    "tools": (*_MOVES, "log", "show"),
    "trajectory": (*_MOVES, "expand", "grades"),
}

LOOKS: frozenset[str] = frozenset(
    {
        *(f"{screen}.{name}" for screen, names in _OF_SCREENS.items() for name in names),
        *("palette", "redraw", "theme", "log", "help", "quit", "back", "copy", "zoom", "reload", "server.log"),
        *("pane.suites", "pane.case", "pane.run", "pane.next", "pane.previous"),
        *("pane.narrower", "pane.wider", "pane.widths"),
        *("audit", "break.list", "compare", "failures", "grades", "history", "timeline", "tools", "edit.view"),
        *("run.find", "run.find_next", "run.next", "run.previous", "run.expand", "run.pair", "run.fix_prompt"),
        *("step.held", "tree.filter", "tree.fold", "tree.open", "tree.unfold"),
        *("form.every", "form.left", "form.right", "toml.find", "toml.find_next", "toml.problem"),
        *(f"move.{to}" for to in ("up", "down", "page_up", "page_down", "half_up", "half_down", "home", "end")),
    }
)


def is_offered(action: Action) -> bool:
    """Return whether a key bar has room for an action: one that is never available would only take it."""
    return action.id in LOOKS or not is_read_only()


def why_unavailable(action: Action, now: Situation) -> str | None:
    """Return why an action is unavailable in a situation, `None` if it is available."""
    if is_read_only() and action.id not in LOOKS:
        return WHY_NOT
    return action.why_not(now)
