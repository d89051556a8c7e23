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
        screen.change(part.suite, document, f"Changing {part.name} in your editor", case=part.key)
        wrong = part.problems
        if wrong:
            screen.announce(f"{part.name[:1].upper()}{part.name[1:]}: {wrong[0].message}", "warned", GLYPHS.warned)
        else:
            screen.announce(f"Took {part.name} over from your editor", "passed", GLYPHS.passed)
