"""Editing texts and files in the user's editor, which takes over the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.actions import NO_EDITOR
from workbench.tui.terminal.outside_editor import EditorError, edit_outside, run_editor

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench

_NO_TERMINAL = "This terminal cannot be handed over to an editor"


class OutsideEditing:
    """Runs the editor in `command`, if there is one; `missing` says why there is none. If the user did not name it, the
    first use says which it is."""

    def __init__(self, stage: Workbench, command: str | None, *, named: bool, missing: str = NO_EDITOR) -> None:
        self._stage = stage
        self.command = command
        self._missing = missing
        self._says_which = not named

    def changed(self, text: str, name: str, line: int) -> str | None:
        """Edit a text in a file of this name and return it. Returns `None` and announces why if that fails."""
        if self.command is None:
            self._stage.announce(self._missing[:1].upper() + self._missing[1:], "warned", GLYPHS.warned)
            return None
        after, failure = text, None
        try:
            with self._stage.suspend():
                try:  # an exception through `suspend` would not restore the terminal
                    after = edit_outside(self.command, text, name, line)
                except EditorError as error:
                    failure = str(error)
            self._say_which()
        except SuspendNotSupported:
            failure = _NO_TERMINAL
        if failure is not None:
            self._stage.announce(failure, "error", GLYPHS.error)
        return after if failure is None else None

    def open_file(self, path: Path, line: int) -> str | None:
        """Open a file at a line. Returns what went wrong, if anything."""
        try:
            with self._stage.suspend():
                failure = run_editor(self.command or "", path, line)
            self._say_which()
            return failure
        except SuspendNotSupported:
            return _NO_TERMINAL

    def _say_which(self) -> None:
        """Say once which editor was taken, behind the notice of what it did."""
        if self._says_which:
            self._says_which = False
            text = f"This was {self.command}, the first editor found here: VISUAL or EDITOR names another"
            self._stage.call_later(lambda: self._stage.announce(text, gently=True))
