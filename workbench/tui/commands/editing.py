"""Editing in the case pane, undo and redo, the user's editor, and reading again from the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from workbench.tui.commands.stepping import edit_held
from workbench.tui.editor import run_editor
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.moves import Went, redo, undo
from workbench.tui.state.tree import Row

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.state.desk import Desk
    from workbench.tui.state.open_suite import OpenSuite
    from workbench.tui.workbench import Workbench


class EditingCommands:
    """The methods of `actions.editing`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "edit": self._edit,
            "edit.view": self._other_view,
            "edit.undo": self._undo,
            "edit.redo": self._redo,
            "edit.file": self._open_in_editor,
            "reload": self._read_again,
        }

    def _edit(self, screen: MainScreen) -> None:
        if screen.pane == "run" and screen.run_shown is not None and screen.run_shown.held:
            edit_held(screen)
        else:
            screen.case_pane.edit()

    def _other_view(self, screen: MainScreen) -> None:
        screen.case_pane.show_as("toml" if screen.case_pane.view == "form" else "form")
        screen.go_to("case")

    def _undo(self, screen: MainScreen) -> None:
        if screen.run_pane.typing is not None and screen.run_pane.editor is not None:
            screen.run_pane.editor.undo()
        else:
            self._go(screen, undo, "Undone")

    def _redo(self, screen: MainScreen) -> None:
        if screen.run_pane.typing is not None and screen.run_pane.editor is not None:
            screen.run_pane.editor.undo(again=True)
        else:
            self._go(screen, redo, "Done again")

    def _go(self, screen: MainScreen, go: Callable[[OpenSuite, Desk], list[Went] | str], what: str) -> None:
        """Undo or redo. What a field refuses is no change yet, and nothing is changed behind it: it is closed."""
        if (refused := screen.case_pane.give_up_refused()) is not None:
            kept = f"what was typed is not taken over: {refused}; Enter in its cell shows it again"
            screen.announce(f"The field is closed, nothing else is {what.lower()}: {kept}", "warned", GLYPHS.warned)
        elif (suite := screen.selected_suite) is not None:
            shown = screen.case_pane.shown
            self._went(screen, go(suite, screen.desk), what)
            screen.case_pane.go_to_change(shown)

    def _went(self, screen: MainScreen, went: list[Went] | str, what: str) -> None:
        if isinstance(went, str):
            screen.announce(f"Nothing was changed: {went}", "warned", GLYPHS.warned)
            return
        for suite, change in went:
            screen.follow_change(suite, change.case)
            screen.announce(f"{what}: {change.said}{screen.and_moved}")

    def _read_again(self, screen: MainScreen) -> None:
        self._app.saver.put_off.clear()
        self._app.read_again()

    def _open_in_editor(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None or row.open is None or self._app.surroundings.editor is None:
            return
        try:
            with self._app.suspend():
                failure = run_editor(self._app.surroundings.editor, row.open.path, _line_of(row, row.open))
        except SuspendNotSupported:
            failure = "This terminal cannot be handed over to an editor"
        self._app.read_again(failure)


def _line_of(row: Row, suite: OpenSuite) -> int:
    if row.problem is not None:
        return row.problem.line or 1
    if row.case is not None and suite.file.suite is not None:
        return suite.file.case_lines(row.case.index)[0]
    return next((problem.line for problem in suite.file.errors if problem.line), 1)
