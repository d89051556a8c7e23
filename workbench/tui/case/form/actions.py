"""The actions of the form of a case, or of a suite's settings."""

from __future__ import annotations

from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.actions import Action, MainActions, MainSituation, action


def _edit(now: MainSituation) -> str | None:
    return now.not_editable


class FormActions(MainActions):
    """Edits the form of a case, or of a suite's settings."""

    GROUP = "Editing"

    @action(
        "enter",
        "Edit the value, or switch it",
        name="form.edit",
        where="form",
        label="edit",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def edit(self) -> None:
        """Edit the value at the cursor, or switch it."""
        self.app.main.case_pane.form.edit()

    @action("left", "Previous cell of the row", name="form.left", where="form", listed=False)
    def left(self) -> None:
        """Go to the previous cell."""
        self.app.main.case_pane.form.next_cell(-1)

    @action("right", "Next cell of the row", name="form.right", where="form", listed=False)
    def right(self) -> None:
        """Go to the next cell."""
        self.app.main.case_pane.form.next_cell(1)

    @action(
        "n",
        "New here: a call, an argument, a message, a mock …",
        name="form.add",
        where="form",
        label="add",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def add(self) -> None:
        """Add an element of the list at the cursor. Elsewhere, a suite without cases gets its first one."""
        if self.app.main.case_pane.form.page.begins_with_case:
            self.app.perform("tree.new")
        else:
            self._report(self.app.main.case_pane.form.add())

    @action(
        "d",
        "Duplicate the call, message, mock …",
        name="form.duplicate",
        where="form",
        label="duplicate",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def duplicate(self) -> None:
        """Duplicate the element at the cursor."""
        self._report(self.app.main.case_pane.form.duplicate())

    @action(
        "del",
        "Remove it, or reset it to its default",
        name="form.remove",
        where="form",
        label="remove",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def remove(self) -> None:
        """Remove the element at the cursor, or reset the value."""
        self._report(self.app.main.case_pane.form.take_away())

    @action("K alt+up", "Move it up", name="form.up", where="form", needs=_edit, changes=True, listed=False)
    def up(self) -> None:
        """Move the element up."""
        self._report(self.app.main.case_pane.form.move(-1))

    @action("J alt+down", "Move it down", name="form.down", where="form", needs=_edit, changes=True, listed=False)
    def down(self) -> None:
        """Move the element down."""
        self._report(self.app.main.case_pane.form.move(1))

    @action("(", "Make an any-order group", name="form.group", where="form", needs=_edit, changes=True, listed=False)
    def group(self) -> None:
        """Make an any-order group."""
        self._report(self.app.main.case_pane.form.group())

    @action(")", "Take out of the group", name="form.ungroup", where="form", needs=_edit, changes=True, listed=False)
    def ungroup(self) -> None:
        """Take the call out of its group."""
        self._report(self.app.main.case_pane.form.ungroup())

    @action(".", "Show all: every key, or only those that are set", name="form.every", where="form", listed=False)
    def show_every_key(self) -> None:
        """Show all keys, or only those that are set."""
        self.app.main.case_pane.form.show_every_key()

    def _report(self, why_not: str | None) -> None:
        if why_not is not None:
            self.app.announce(why_not[:1].upper() + why_not[1:], "warned", GLYPHS.warned)


TYPING: tuple[Action, ...] = (
    Action("typing.done", "Done; on to what comes next", ("enter",), "form", "done"),
    Action("typing.next", "To the next cell", ("tab",), "form", "next"),
    Action("typing.end", "Close the completions, or the field, and keep what is typed", ("escape",), "form", "keep"),
    Action("edit.undo", "Undo", ("ctrl+z",), "form", "undo"),
)
"""Labels of keys while a field is open. The field handles them itself."""
