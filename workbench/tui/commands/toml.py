"""Typing TOML here, searching it, and opening it in the user's own editor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from workbench.suite.splice import SpliceError
from workbench.tui.editor import EditorError, edit_outside
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.toml_part import TomlPart, part_of

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.workbench import Workbench


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
        part = part_of(screen.suites.selected)
        editor = self._app.surroundings.editor
        if part is None or editor is None:
            return
        before = text = part.text
        line = screen.case_pane.line_of(part)
        failure: str | None = None
        try:
            with self._app.suspend():
                try:  # what is raised through `suspend` leaves the terminal handed over
                    text = edit_outside(editor, before, part.file_name, line)
                except EditorError as error:
                    failure = str(error)
        except SuspendNotSupported:
            failure = "This terminal cannot be handed over to an editor"
        if failure is not None:
            screen.announce(failure, "error", GLYPHS.error)
        elif text.rstrip("\n") == before.rstrip("\n"):
            screen.announce(f"Nothing was changed in {part.name}")
        else:
            self._take(screen, part, text)

    def _take(self, screen: MainScreen, part: TomlPart, text: str) -> None:
        part.suite.end_group()
        try:
            document = part.with_text(text)
        except SpliceError as error:
            screen.announce(str(error), "error", GLYPHS.error)
            return
        screen.change(part.suite, document, f"Changing {part.name} in your editor", case=part.key)
        wrong = part.problems
        if wrong:
            screen.announce(f"{part.name[:1].upper()}{part.name[1:]}: {wrong[0].message}", "warned", GLYPHS.warned)
        else:
            screen.announce(f"Took {part.name} over from your editor", "passed", GLYPHS.passed)
