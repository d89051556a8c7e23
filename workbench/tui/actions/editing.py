"""Changing suites, taking changes back, and what is on the disk."""

from __future__ import annotations

from workbench.tui.actions import stepping
from workbench.tui.actions.action import Action, Situation
from workbench.tui.state.held_kinds import HELD_KINDS


def _edit(now: Situation) -> str | None:
    return stepping.edit(now) if now.pane == "run" and now.held is not None else now.not_editable


def _undo(now: Situation) -> str | None:
    return None if now.typing in HELD_KINDS or now.undoable or now.refused else "there is nothing to undo in this suite"


def _redo(now: Situation) -> str | None:
    return None if now.typing in HELD_KINDS or now.redoable or now.refused else "there is nothing to redo in this suite"


def _open_in_editor(now: Situation) -> str | None:
    if not now.has_file:
        return "put the cursor on a suite or a case"
    if now.dirty:
        return "this suite has changes that are not saved: save it first (Ctrl+S), or F4 for what is shown"
    return None if now.editor else "set VISUAL or EDITOR to the editor of your choice"


ACTIONS: tuple[Action, ...] = (
    Action("edit", "Edit the case or the suite's settings; what a run is held at", ("e",), label="edit", why_not=_edit),
    Action("edit.view", "Form or TOML", ("o", "ctrl+t"), label="form/toml"),
    Action("edit.undo", "Undo", ("ctrl+z",), why_not=_undo, priority=True),
    Action("edit.redo", "Redo", ("ctrl+y",), why_not=_redo, priority=True),
    Action("edit.file", "Open the whole file in your editor", (), why_not=_open_in_editor),
    Action("reload", "Read the suites again from disk", ("f5", "ctrl+r"), label="reload"),
)
