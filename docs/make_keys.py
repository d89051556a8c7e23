"""Writes `docs/keys.md` from the registry of actions. A test keeps the two the same."""

from __future__ import annotations

from pathlib import Path

from workbench.tui.actions import ACTIONS, PANE_TITLES, Action, Where, keys_of

PAGE = Path(__file__).parent / "keys.md"

_SECTIONS: tuple[tuple[str, Where], ...] = (
    ("Everywhere", "everywhere"),
    *((f"In {title}", pane) for pane, title in PANE_TITLES.items()),
    ("Moving", "move"),
)

_HEAD = """# Keys

Made from the registry of actions by `python docs/make_keys.py`. In the app, `?` shows the keys of the pane you are in
and says why a key does nothing right now; `Ctrl+P` offers everything by name. The mouse works too: click a row or a
title, click a row again to open it, turn the wheel.
"""


def keys_page() -> str:
    """The page."""
    parts = [_HEAD]
    for title, where in _SECTIONS:
        actions = [action for action in ACTIONS if action.where == where]
        if actions:
            parts.append(f"\n## {title}\n\n| key | action |\n|---|---|\n" + "".join(map(_row, actions)))
    return "".join(parts)


def _row(action: Action) -> str:
    keys = " ".join(f"`{key}`" for key in keys_of(action).split()) or "palette"
    return f"| {keys} | {action.title} |\n"


if __name__ == "__main__":
    PAGE.write_text(keys_page(), encoding="utf-8")
