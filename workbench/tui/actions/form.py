"""What is done in the form of a case, or of a suite's settings."""

from __future__ import annotations

from workbench.tui.actions.action import Action, Situation, Why


def _at_row(action_id: str) -> Why:
    def why_not(now: Situation) -> str | None:
        return now.not_editable or now.form_refuses.get(action_id)

    return why_not


def _edit(now: Situation) -> str | None:
    return now.not_editable


def _action(action_id: str, title: str, keys: tuple[str, ...], label: str = "") -> Action:
    return Action(action_id, title, keys, "form", label, _at_row(action_id), listed=False)


TYPING: tuple[Action, ...] = (
    Action("typing.done", "Done; go on below", ("enter",), "form", "done"),
    Action("typing.next", "To the next cell", ("tab",), "form", "next"),
    Action("typing.end", "Close the completions, or the field", ("escape",), "form", "close"),
)
"""What the keys are called while a field is open, which has them itself."""

ACTIONS: tuple[Action, ...] = (
    Action("form.edit", "Edit the value, or switch it", ("enter",), "form", "edit", _edit, listed=False),
    Action("form.left", "Previous cell of the row", ("left",), "form", listed=False),
    Action("form.right", "Next cell of the row", ("right",), "form", listed=False),
    _action("form.add", "Add here: a call, an argument, a message, a mock …", ("n",), "add"),
    _action("form.duplicate", "Duplicate the call, message, mock …", ("d",), "duplicate"),
    _action("form.remove", "Remove it, or set it back to its default", ("delete",), "remove"),
    _action("form.up", "Move it up", ("K", "alt+up")),
    _action("form.down", "Move it down", ("J", "alt+down")),
    _action("form.group", "Make an any-order group", ("G",)),
    _action("form.ungroup", "Take out of the group", ("U",)),
    Action("form.every", "Show every key, or only those that are set", ("full_stop",), "form", listed=False),
)
