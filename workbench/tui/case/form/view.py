"""The form of a case or of a suite's settings, with the actions of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import BindingType

from workbench.authoring.form.additions import AdditionSearch
from workbench.authoring.form.edits import Edit, edited, name_of, toggled
from workbench.authoring.form.field_text import tool_of_call
from workbench.authoring.form.row import FormRow, FormSource, cell_id
from workbench.authoring.form.row_changes import addition_at, duplicated, grouped, moved, removed, ungrouped
from workbench.authoring.form.rows import every_row
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line
from workbench.suite.problems import Place
from workbench.tui.case.form.fields_view import FormFields
from workbench.tui.case.form.page import main_cell
from workbench.tui.kit.actions import Action, MainActions, MainSituation, action, actions_at, bindings_for, key_for
from workbench.tui.kit.edited_text import with_breakpoint
from workbench.tui.kit.line_view import Motion
from workbench.tui.kit.strips import keymap_of


def _edit(situation: MainSituation) -> str | None:
    return situation.why_row_not_editable or situation.why_case_not_editable


class FormActions(MainActions):
    """The actions on the rows of a form."""

    GROUP = "Editing"

    @action(
        "enter",
        "Edit the value, or switch it",
        name="form.edit",
        scope="form",
        label="edit",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def edit(self) -> None:
        self.app.main.case_pane.form.edit()

    @action("left", "Previous cell of the row", name="form.left", scope="form", listed=False)
    def left(self) -> None:
        self.app.main.case_pane.form.next_cell(-1)

    @action("right", "Next cell of the row", name="form.right", scope="form", listed=False)
    def right(self) -> None:
        self.app.main.case_pane.form.next_cell(1)

    @action(
        "+",
        "Add: a call, an argument, a message, a mock …",
        name="form.add",
        scope="form",
        label="add",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def add(self) -> None:
        self._report(self.app.main.case_pane.form.add())

    @action(
        "d",
        "Duplicate the call, message, mock …",
        name="form.duplicate",
        scope="form",
        label="duplicate",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def duplicate(self) -> None:
        self._report(self.app.main.case_pane.form.duplicate())

    @action(
        "del",
        "Remove it, or reset it to its default",
        name="form.remove",
        scope="form",
        label="remove",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def remove(self) -> None:
        self._report(self.app.main.case_pane.form.remove_element())

    @action("K alt+up", "Move it up", name="form.up", scope="form", needs=_edit, changes=True, listed=False)
    def up(self) -> None:
        self._report(self.app.main.case_pane.form.move(-1))

    @action("J alt+down", "Move it down", name="form.down", scope="form", needs=_edit, changes=True, listed=False)
    def down(self) -> None:
        self._report(self.app.main.case_pane.form.move(1))

    @action("(", "Make an any-order group", name="form.group", scope="form", needs=_edit, changes=True, listed=False)
    def group(self) -> None:
        self._report(self.app.main.case_pane.form.group())

    @action(")", "Take out of the group", name="form.ungroup", scope="form", needs=_edit, changes=True, listed=False)
    def ungroup(self) -> None:
        self._report(self.app.main.case_pane.form.ungroup())

    @action(
        "&",
        "Add anything: search for it",
        name="form.search",
        scope="form",
        label="add …",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def search(self) -> None:
        self._report(self.app.main.case_pane.form.search())

    @action(".", "Show every key, or only those that are set", name="form.every", scope="form", listed=False)
    def show_every_key(self) -> None:
        self.app.main.case_pane.form.show_every_key()

    def _report(self, why_not: str | None) -> None:
        if why_not is not None:
            self.app.announce(why_not[:1].upper() + why_not[1:], "warned", GLYPHS.warned)


TYPING: tuple[Action, ...] = (
    Action("typing.done", "Keep it and go to the next value", ("enter",), "form", "keep"),
    Action("typing.next", "Keep it and go to the next cell", ("tab",), "form", "keep, next"),
    Action("typing.end", "Close the completions, or leave the value as it was", ("escape",), "form", "leave as it was"),
    Action("edit.undo", "Undo", ("ctrl+z",), "form", "undo"),
)
"""Actions that an open field handles itself. The key bar shows them."""


class FormView(FormFields):
    """The form of a case or of a suite's settings, with its actions.

    A method that changes the form returns why the change was refused, or `None` if it was made."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(actions_at("form", FormActions))

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.breakpoints: frozenset[str] = frozenset()

    def line_at(self, index: int) -> Line:
        line = super().line_at(index)
        if self.breakpoints and self._has_breakpoint(index):
            return with_breakpoint(line)
        return line

    def _has_breakpoint(self, index: int) -> bool:
        page = self.page
        at = page.row_of(index)
        # A row may take several lines. Only its first line shows the mark of a breakpoint.
        if page.source is None or at >= len(page.rows) or page.lines_of(at)[0] != index:
            return False
        return tool_of_call(page.source.table, page.rows[at].place) in self.breakpoints

    def action_move(self, motion: Motion) -> None:
        """Move the cursor. An open field is closed first."""
        # The field handles keys itself, but a key may arrive before the field has the focus.
        if not self.typing or self._leave_field():
            super().action_move(motion)

    def on_click(self, event: events.Click) -> None:
        line = self.top + event.y
        if not self.page.rows or event.x == self.size.width - 1 or line >= self.page.line_count:
            return
        # Without this call, Textual would call the handlers of all base classes, too.
        event.prevent_default()
        row = self.page.row_of(line)
        before = (self.page.row, self.page.cell, self.typing)
        if self.typing and not self._leave_field():
            return
        self.page.row, self.page.cell = row, 0
        if self.page.rows[row].cells:
            self.page.cell = self.page.cell_at(line, event.x)
        self._moved()
        # A first click selects a cell. A second click edits the cell.
        if before == (row, self.page.cell, False):
            self.edit()

    def edit_from_start(self) -> None:
        """Edit the first missing required value, or else the message of the case."""
        if self.page.rows and not self.typing:
            self.page.go(self.page.start)
        self.edit()

    def edit(self) -> None:
        """Edit the selected cell, toggle a yes-or-no cell, or add an element to the selected list."""
        row, cell, source = self.page.current, self.page.current_cell, self.page.source
        if row is None or source is None:
            return
        if row.kind == "more" and source.every_key:
            self.show_every_key()
        elif self._fixed is not None:
            self._post_refusal(self._fixed)
        elif cell is None:
            self._post_refusal(self.add())
        elif (other := toggled(cell)) is not None:
            self._apply(edited(source, row, cell, other), by_keys=True)
        else:
            self._open()

    def type_value(self) -> bool:
        """Edit the main cell of the selected row. Return whether the cell takes text."""
        row = self.page.current
        if row is None or not row.cells or self.typing or self._fixed is not None:
            return self.typing
        self.page.cell = main_cell(row)
        if toggled(row.cells[self.page.cell]) is not None:
            return False
        self._open()
        return self.typing

    def fill_in(self, place: Place) -> bool:
        """If the key at a place is hidden, show it and open its field. Return whether it was hidden."""
        source = self.page.source
        if source is None or self.typing or self._fixed or self.page.row_at_place(place) is not None:
            return False
        is_folded = any(row.place == place and row.cells for row in every_row(source))
        if is_folded:
            self._open_unset_key(place)
        return is_folded

    def add(self) -> str | None:
        """Add an element at the cursor. Ask for a name if the element needs one."""
        row, source = self.page.current, self.page.source
        if row is None or source is None:
            return "there is no form here"
        if self._fixed is not None:
            return self._fixed
        found = addition_at(source, row)
        if isinstance(found, str):
            return self.search()
        if found.asks:
            self.page.ask(found)
            self._open()
        else:
            self._added(found.make(""), by_keys=True)
        return None

    def search(self) -> str | None:
        """Open a search among all elements that can be added to the form."""
        row, source = self.page.current, self.page.source
        if row is None or source is None:
            return "there is no form here"
        if self._fixed is not None:
            return self._fixed
        self.page.ask(AdditionSearch(source, row.place))
        self._open()
        return None

    def remove_element(self) -> str | None:
        """Remove the selected element, or discard its invalid text. The form tells how to undo a removal."""
        row, source, at = self.page.current, self.page.source, self.page.row
        cells = () if row is None else row.cells
        invalid = [cell for cell in cells if cell.invalid is not None]
        if invalid and source is not None:
            for cell in invalid:
                self.invalid_texts.pop((self.case, cell_id(cell)), None)
            self.page.show(self._visible_source(source))
            self._moved()
            return None
        why_not = self._restructure(removed, by_keys=True)
        if why_not is None and row is not None and source is not None:
            text = f"{name_of(source, row)} removed: {key_for('edit.undo')} undoes"
            self.page.show_above(at, " " * row.indent + keymap_of(self).in_words(text))
            self._moved()
        return why_not

    def duplicate(self) -> str | None:
        return self._restructure(duplicated)

    def move(self, step: int) -> str | None:
        """Move the selected element up (-1) or down (1)."""
        return self._restructure(lambda source, row: moved(source, row, step))

    def group(self) -> str | None:
        """Put the selected call into a group of calls that may be made in any order."""
        return self._restructure(grouped)

    def ungroup(self) -> str | None:
        """Take the selected call out of its group."""
        return self._restructure(ungrouped)

    def refusals(self) -> dict[str, str]:
        """Return the actions that are unavailable on the selected row: the reason of each, by action id."""
        row, source = self.page.current, self.page.source
        if row is None or source is None:
            return dict.fromkeys(_AT_ROWS, "there is no form here")
        # Each change is tried and its result dropped, because only the change itself tells whether it is possible.
        refused: dict[str, str] = {}
        for name, attempt in _AT_ROWS.items():
            why = attempt(source, row)
            if isinstance(why, str):
                refused[name] = why
        return refused

    def _restructure(self, change: Callable[[FormSource, FormRow], Edit | str], *, by_keys: bool = False) -> str | None:
        row, source = self.page.current, self.page.source
        if row is None or source is None:
            return "there is no form here"
        if self._fixed is not None:
            return self._fixed
        made = change(source, row)
        if isinstance(made, str):
            return made
        return self._apply(made, by_keys=by_keys)


_AT_ROWS: dict[str, Callable[[FormSource, FormRow], object]] = {
    "form.duplicate": duplicated,
    "form.remove": removed,
    "form.up": lambda source, row: moved(source, row, -1),
    "form.down": lambda source, row: moved(source, row, 1),
    "form.group": grouped,
    "form.ungroup": ungrouped,
}
"""The changes of a row by action id. Each returns a text if the change is impossible."""
