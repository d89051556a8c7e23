"""Actions in the form of a case, or of a suite's settings."""

from __future__ import annotations

from workbench.tui.kit.actions import Action, Feature, MainSituation, Why, key_for, why_not_edit_held


def _at_row(action_id: str) -> Why:
    def why_not(now: MainSituation) -> str | None:
        return now.not_editable or now.form_refuses.get(action_id)

    return why_not


def _edit(now: MainSituation) -> str | None:
    return now.not_editable


def _action(action_id: str, title: str, keys: tuple[str, ...], label: str = "") -> Action:
    return Action(action_id, title, keys, "form", label, _at_row(action_id), listed=False)


TYPING: tuple[Action, ...] = (
    Action("typing.done", "Done; on to what comes next", ("enter",), "form", "done"),
    Action("typing.next", "To the next cell", ("tab",), "form", "next"),
    Action("typing.end", "Close the completions, or the field, and keep what is typed", ("escape",), "form", "keep"),
    Action("edit.undo", "Undo", ("ctrl+z",), "form", "undo"),
)
"""Labels of keys while a field is open. The field handles them itself."""

ACTIONS: tuple[Action, ...] = (
    Action("form.edit", "Edit the value, or switch it", ("enter",), "form", "edit", _edit, listed=False),
    Action("form.left", "Previous cell of the row", ("left",), "form", listed=False),
    Action("form.right", "Next cell of the row", ("right",), "form", listed=False),
    _action("form.add", "New here: a call, an argument, a message, a mock …", ("n",), "add"),
    _action("form.duplicate", "Duplicate the call, message, mock …", ("d",), "duplicate"),
    _action("form.remove", "Remove it, or reset it to its default", ("delete",), "remove"),
    _action("form.up", "Move it up", ("K", "alt+up")),
    _action("form.down", "Move it down", ("J", "alt+down")),
    _action("form.group", "Make an any-order group", ("left_parenthesis",)),
    _action("form.ungroup", "Take out of the group", ("right_parenthesis",)),
    Action("form.every", "Show all: every key, or only those that are set", ("full_stop",), "form", listed=False),
)


def _edit_held(now: MainSituation) -> str | None:
    return why_not_edit_held(now) if now.pane == "run" and now.held is not None else now.not_editable


def _undo(now: MainSituation) -> str | None:
    return None if now.undoable or now.refused else _no_change(now, "undo")


def _redo(now: MainSituation) -> str | None:
    return None if now.redoable or now.refused else _no_change(now, "redo")


def _no_change(now: MainSituation, verb: str) -> str:
    if not now.has_file:
        return f"put the cursor on the suite, or a case of it, whose change you want to {verb}"
    return f"there is nothing to {verb} in this suite"


def _open_in_editor(now: MainSituation) -> str | None:
    if not now.has_file:
        return "put the cursor on a suite or a case"
    if now.dirty:
        what_is_shown = f"or {key_for('toml.outside')} for what is shown"
        return f"this suite has changes that are not saved: save it first ({key_for('save')}), {what_is_shown}"
    return None if now.editor else now.no_editor


EDITING_ACTIONS: tuple[Action, ...] = (
    Action(
        "edit",
        "Edit the case, the suite's settings, or what a run is held at",
        ("e",),
        label="edit",
        why_not=_edit_held,
    ),
    Action("edit.view", "Other view of the case: form or TOML", ("o", "ctrl+t"), label="form/toml"),
    Action("edit.undo", "Undo", ("ctrl+z", "u"), why_not=_undo, priority=True),
    Action("edit.redo", "Redo", ("ctrl+y", "U"), why_not=_redo, priority=True),
    Action("edit.file", "Open the whole file in your editor", (), why_not=_open_in_editor),
    Action("reload", "Reload the suites from disk", ("f5", "ctrl+r"), label="reload"),
)


def _edit_toml(now: MainSituation) -> str | None:
    return now.not_editable


def _outside(now: MainSituation) -> str | None:
    return now.not_editable or (None if now.editor else now.no_editor)


def _shown(now: MainSituation) -> str | None:
    return (
        None
        if now.view == "toml" and now.has_file
        else f"show the TOML of a suite or a case first ({key_for('edit.view')})"
    )


TYPING_TOML: tuple[Action, ...] = (
    Action("toml.end", "Done typing", ("escape",), "toml", "done"),
    Action("toml.problem", "Next problem", ("f8",), "toml", "next problem"),
    Action("toml.outside", "Your editor", ("f4",), "toml", "your editor"),
    Action("edit.undo", "Undo", ("ctrl+z",), "toml", "undo"),
)
"""The keys shown in the key bar while text is typed."""

TOML_ACTIONS: tuple[Action, ...] = (
    Action("toml.edit", "Type in the TOML, at the cursor", ("enter",), "toml", "type", _edit_toml, listed=False),
    Action("toml.problem", "Next line with a problem", ("f8",), "toml", "", _shown),
    Action("toml.find", "Search the TOML", ("slash",), "toml", "find", _shown),
    Action("toml.find_next", "Next match of the search", ("ctrl+g",), "toml", "", _shown, listed=False),
    Action("toml.outside", "Open the TOML that is selected in your editor", ("f4",), "everywhere", "", _outside),
)

FEATURE = Feature("case", (*EDITING_ACTIONS, *ACTIONS, *TOML_ACTIONS), group="Editing")
