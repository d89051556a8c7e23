"""Editing in the case pane, undo and redo, the user's editor, and reading again from the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from workbench.authoring.undo import Went, redo, undo
from workbench.suite.splice import SpliceError
from workbench.tui.case.form.view import FormView
from workbench.tui.case.toml.part import TomlPart, part_of
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.stepping.commands import edit_held
from workbench.tui.terminal.outside_editor import EditorError, edit_outside, run_editor
from workbench.tui.tree.state import Row

if TYPE_CHECKING:
    from workbench.authoring.open_suite import OpenSuite
    from workbench.authoring.open_suites import OpenSuites
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


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
            self._go(screen, redo, "Redone")

    def _go(self, screen: MainScreen, go: Callable[[OpenSuite, OpenSuites], list[Went] | str], what: str) -> None:
        """Undo or redo. What a field refuses is no change yet, and nothing is changed behind it: it is closed."""
        if (refused := screen.case_pane.give_up_refused()) is not None:
            kept = f"Its text is invalid: {refused}. Enter in its cell shows it again"
            said = f"The field was closed, and nothing else was {what.lower()}. {kept}"
            screen.announce(said, "warned", GLYPHS.warned)
        elif (suite := screen.selected_suite) is not None:
            shown = screen.case_pane.shown
            self._went(screen, go(suite, screen.desk), what)
            screen.case_pane.go_to_change(shown)

    def _went(self, screen: MainScreen, went: list[Went] | str, what: str) -> None:
        if isinstance(went, str):
            screen.announce(f"Nothing was changed: {went}", "warned", GLYPHS.warned)
            return
        for _, change in went:
            screen.announce(f"{what}: {change.said}{screen.and_moved}")

    def _read_again(self, screen: MainScreen) -> None:
        self._app.saver.put_off.clear()
        self._app.reader.read_soon()

    def _open_in_editor(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None or row.open is None or self._app.surroundings.editor is None:
            return
        try:
            with self._app.suspend():
                failure = run_editor(self._app.surroundings.editor, row.open.path, _line_of(row, row.open))
        except SuspendNotSupported:
            failure = "This terminal cannot be handed over to an editor"
        self._app.reader.read_soon(failure)


def _line_of(row: Row, suite: OpenSuite) -> int:
    if row.problem is not None:
        return row.problem.line or 1
    if row.case is not None and suite.file.suite is not None:
        return suite.file.case_lines(row.case.index)[0]
    return next((problem.line for problem in suite.file.errors if problem.line), 1)


class FormCommands:
    """The methods of `actions.form`."""

    def __init__(self) -> None:
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "form.edit": lambda screen: _form(screen).edit(),
            "form.left": lambda screen: _form(screen).next_cell(-1),
            "form.right": lambda screen: _form(screen).next_cell(1),
            "form.add": lambda screen: _said(screen, _form(screen).add()),
            "form.duplicate": lambda screen: _said(screen, _form(screen).duplicate()),
            "form.remove": lambda screen: _said(screen, _form(screen).take_away()),
            "form.up": lambda screen: _said(screen, _form(screen).move(-1)),
            "form.down": lambda screen: _said(screen, _form(screen).move(1)),
            "form.group": lambda screen: _said(screen, _form(screen).group()),
            "form.ungroup": lambda screen: _said(screen, _form(screen).ungroup()),
            "form.every": lambda screen: _form(screen).show_every_key(),
        }


def _form(screen: MainScreen) -> FormView:
    return screen.query_one("#form", FormView)


def _said(screen: MainScreen, why: str | None) -> None:
    if why is not None:
        screen.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)


class TomlCommands:
    """The methods of `actions.toml`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "toml.edit": lambda screen: screen.case_pane.edit(),
            "toml.problem": lambda screen: screen.case_pane.toml.go_to_problem(),
            "toml.find": self._find,
            "toml.find_next": lambda screen: screen.case_pane.toml.find(1),
            "toml.outside": self._edit_outside,
        }

    def _find(self, screen: MainScreen) -> None:
        screen.go_to("case")
        screen.case_pane.toml.search()

    def _edit_outside(self, screen: MainScreen) -> None:
        held = screen.run_pane.editor
        part = part_of(screen.suites.selected)
        if held is not None and screen.run_pane.typing is not None:
            line = held.editor.typed.cursor[0] + 1
            if (text := self._outside(screen, held.text, held.held.file_name, line)) is not None:
                # An editor ends what it writes with a line end, which nobody typed.
                held.take(text if held.text.endswith("\n") else text.removesuffix("\n"))
        elif part is not None:
            before = part.text
            text = self._outside(screen, before, part.file_name, screen.case_pane.line_of(part))
            if text is not None and text.rstrip("\n") == before.rstrip("\n"):
                screen.announce(f"Nothing was changed in {part.name}")
            elif text is not None:
                self._take(screen, part, text)

    def _outside(self, screen: MainScreen, before: str, name: str, line: int) -> str | None:
        """What the user's editor made of a text; `None`, and said why, where that went wrong."""
        editor = self._app.surroundings.editor
        text, failure = before, None
        try:
            with self._app.suspend():
                try:  # what is raised through `suspend` leaves the terminal handed over
                    text = edit_outside(editor or "", before, name, line)
                except EditorError as error:
                    failure = str(error)
        except SuspendNotSupported:
            failure = "This terminal cannot be handed over to an editor"
        if failure is not None:
            screen.announce(failure, "error", GLYPHS.error)
        return text if failure is None else None

    def _take(self, screen: MainScreen, part: TomlPart, text: str) -> None:
        part.suite.end_group()
        try:
            document = part.with_text(text)
        except SpliceError as error:
            screen.announce(str(error), "error", GLYPHS.error)
            return
        screen.open_suites.change(part.suite, document, f"Changing {part.name} in your editor", case=part.key)
        wrong = part.problems
        if wrong:
            screen.announce(f"{part.name[:1].upper()}{part.name[1:]}: {wrong[0].message}", "warned", GLYPHS.warned)
        else:
            screen.announce(f"Took {part.name} over from your editor", "passed", GLYPHS.passed)
