"""What is done in the TOML of a case, of a suite's head, or of a file that is not TOML."""

from __future__ import annotations

from workbench.tui.actions.action import Action, Situation
from workbench.tui.state.held_kinds import HELD_KINDS


def _edit(now: Situation) -> str | None:
    return now.not_editable


def _outside(now: Situation) -> str | None:
    if now.not_editable and now.typing not in HELD_KINDS:
        return now.not_editable
    return None if now.editor else "set VISUAL or EDITOR to the editor of your choice"


def _shown(now: Situation) -> str | None:
    return None if now.view == "toml" and now.has_file else "show the TOML of a suite or a case first (o)"


TYPING: tuple[Action, ...] = (
    Action("toml.end", "Done typing", ("escape",), "toml", "done"),
    Action("toml.problem", "Next problem", ("f8",), "toml", "next problem"),
    Action("toml.outside", "Your editor", ("f4",), "toml", "your editor"),
    Action("edit.undo", "Undo", ("ctrl+z",), "toml", "undo"),
)
"""What the bar of keys names while text is typed."""

ACTIONS: tuple[Action, ...] = (
    Action("toml.edit", "Type in the TOML, at the cursor", ("enter",), "toml", "type", _edit, listed=False),
    Action("toml.problem", "Next line with a problem", ("f8",), "toml", "", _shown),
    Action("toml.find", "Search the TOML", ("slash",), "toml", "find", _shown),
    Action("toml.find_next", "Next match of the search", ("ctrl+g",), "toml", "", _shown, listed=False),
    Action("toml.outside", "Open the TOML that is selected in your editor", ("f4",), "everywhere", "", _outside),
)
