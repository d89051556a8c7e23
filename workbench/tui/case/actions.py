"""The actions that edit cases and suites, in the case pane or in an external editor, and undo and redo."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.grading.status import Status
from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.actions import Action, MainActions, MainSituation, action, key_for, why_not_edit_held

if TYPE_CHECKING:
    from workbench.authoring.open_suite import OpenSuite
    from workbench.authoring.workspace import OpenSuites, SuiteChange
    from workbench.suite.problems import Place
    from workbench.tui.tree.state import Row


def _edit_held(situation: MainSituation) -> str | None:
    if situation.pane == "run" and situation.held is not None:
        return why_not_edit_held(situation)
    return situation.why_row_not_editable or situation.why_case_not_editable


def _undo(situation: MainSituation) -> str | None:
    if situation.undoable or situation.refused:
        return None
    return _no_change(situation, "undo")


def _redo(situation: MainSituation) -> str | None:
    if situation.redoable or situation.refused:
        return None
    return _no_change(situation, "redo")


def _no_change(situation: MainSituation, verb: str) -> str:
    if not situation.has_file:
        return f"put the cursor on the suite, or a case of it, whose change you want to {verb}"
    return f"there is nothing to {verb} in this suite"


def _open_in_editor(situation: MainSituation) -> str | None:
    if not situation.has_file:
        return "put the cursor on a suite or a case"
    # The editor opens the file, and the file lacks the unsaved changes.
    if situation.is_unsaved:
        part = f"{key_for('toml.outside')} opens the part shown"
        return f"this suite has unsaved changes: save it first ({key_for('save')}), or {part}"
    if situation.editor:
        return None
    return situation.why_no_editor


class EditActions(MainActions):
    """Edits the case or the suite's settings, undoes, redoes, and opens the user's editor."""

    GROUP = "Editing"

    @action(
        "e",
        "Edit the expectation that failed, the case, the settings, or a held step",
        name="edit",
        label="edit",
        needs=_edit_held,
        changes=True,
        words="change modify type write settings config prompt message expect assert",
    )
    def edit(self) -> None:
        """Edit the case: at the cursor if the case pane has the focus, otherwise at the failed expectation.

        The failed expectation is that of the displayed run, or else of the last stored run. If nothing failed, edit the
        first missing value or the message."""
        main = self.app.main
        last = self.app.selection.last_result
        # If the case was edited since the run, the failed expectation may be at another place now.
        if main.pane != "case" and last is not None and not last.edited and last.status == Status.FAILED:
            self.app.screens.edit_last_failure()
            return
        place = None
        if main.pane != "case":
            place = self._failed_place()
        if place is None:
            main.case_pane.edit()
        else:
            main.case_pane.edit_at(place)

    def _failed_place(self) -> Place | None:
        """Return the place of the failed expectation at the run's cursor, or else of the first failed expectation.

        Returns `None` if no expectation failed."""
        from workbench.authoring.failed_expectation import failed_place
        from workbench.show.views.run_items import CallItem, MissingItem, ResultItem

        main, run = self.app.main, self.app.selection.run
        if run is None or run.status != Status.FAILED or (result := run.shown_result) is None:
            return None
        item, before = main.run_pane.run_list.item_and_before
        if isinstance(item, ResultItem):
            item = before
        if main.pane != "run":
            item = None
        call = item.index if isinstance(item, CallItem) else None
        expected_call = item.expected if isinstance(item, MissingItem) else None
        return failed_place(run.shown_case, result, call=call, expected_call=expected_call)

    @action(
        "o ctrl+t",
        "Switch the view of the case: form or TOML",
        name="edit.view",
        label="form/toml",
        words="toml source text raw toggle switch",
    )
    def other_view(self) -> None:
        pane = self.app.main.case_pane
        if pane.view == "form":
            pane.show_as("toml")
        else:
            pane.show_as("form")
        self.app.main.go_to("case")

    @action("ctrl+z u", "Undo", name="edit.undo", needs=_undo, changes=True, priority=True, words="back revert")
    def undo(self) -> None:
        from workbench.authoring.workspace import undo

        self._undo_or_redo(undo, "Undone")

    @action("ctrl+y U", "Redo", name="edit.redo", needs=_redo, changes=True, priority=True, words="forward")
    def redo(self) -> None:
        from workbench.authoring.workspace import redo

        self._undo_or_redo(redo, "Redone")

    def _undo_or_redo(self, go: Callable[[OpenSuite, OpenSuites], list[SuiteChange] | str], what: str) -> None:
        """Undo or redo a change by calling `go`, and announce it. `what` is "Undone" or "Redone"."""
        pane = self.app.main.case_pane
        # Invalid text in a field is not part of any change yet. Users expect undo to discard the invalid text first.
        if (refused := pane.give_up_refused()) is not None:
            text = f"The field is as it was, and nothing else was {what.lower()}. Its text was invalid: {refused}"
            self.app.announce(text, "warned", GLYPHS.warned)
        elif (suite := self.app.selection.suite) is not None:
            shown = pane.shown
            self._announce_undone(go(suite, self.app.open_suites), what)
            pane.go_to_change(shown)

    def _announce_undone(self, changes: list[SuiteChange] | str, what: str) -> None:
        if isinstance(changes, str):
            self.app.announce(f"Nothing was changed: {changes}", "warned", GLYPHS.warned)
            return
        for _, change in changes:
            self.app.announce(f"{what}: {change.summary}{self.app.open_suites.moved_grades_text}")

    @action(
        "",
        "Open the whole file in your editor",
        name="edit.file",
        needs=_open_in_editor,
        changes=True,
        words="external vim nano editor",
    )
    def open_file(self) -> None:
        row, editor = self.app.selection.row, self.app.editor
        if row is not None and row.open is not None and editor.command is not None:
            self.app.services.reader.read_soon(editor.open_file(row.open.path, _line_of(row, row.open)))


EDIT_FAILED_EXPECTATION = Action(
    "edit", "Edit the expectation that failed", ("e",), label="edit expected", changes=True
)
"""The key of the key bar while a failed run is displayed."""


def _line_of(row: Row, suite: OpenSuite) -> int:
    if row.problem is not None:
        return row.problem.line or 1
    if row.case is not None and suite.file.suite is not None:
        return suite.file.case_lines(row.case.index)[0]
    return next((problem.line for problem in suite.file.errors if problem.line), 1)
