"""Edits a text in the user's own editor, such as vim, while the app is suspended."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from workbench.encoding import BYTE_ORDER_MARK
from workbench.show.glyphs import GLYPHS

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


# Three groups of editors, which differ in how their command names the line to open: `+7 FILE`, `FILE:7`, `--goto
# FILE:7`.
_PLUS_LINE = (
    *("sensible-editor", "editor", "vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak"),
    *("joe", "ne", "mg", "jed"),
)
_COLON_LINE = ("hx", "helix", "subl", "zed")
_GOTO_LINE = ("code", "codium", "code-insiders", "cursor")


def editor_command(editor: str, file: Path, line: int) -> list[str]:
    """Return the command that opens `file` at `line` (from 1) and ends when the user closes the editor.

    An unknown editor gets only the file. Raises ValueError if `editor` is empty or has an unclosed quote."""
    words = shlex.split(editor)
    if not words:
        raise ValueError("the editor's command is empty")
    name = Path(words[0]).stem
    target = str(file.absolute())
    if name in _PLUS_LINE:
        return [*words, f"+{line}", target]
    if name in _COLON_LINE:
        return [*words, f"{target}:{line}"]
    if name in _GOTO_LINE:
        # Without `--wait`, these editors return at once, before the user has changed the text.
        waiting = [] if "--wait" in words or "-w" in words else ["--wait"]
        return [*words, *waiting, "--goto", f"{target}:{line}"]
    return [*words, target]


class EditorError(Exception):
    """Raised when the editor returns no text. The message names the file that still has the changed text."""


def edit_in_editor(editor: str, text: str, name: str, line: int) -> str:
    """Edit a text in the user's editor, and return the new text.

    The editor opens a temporary file called `name` at `line` (from 1). Blocks until the editor ends. Suspend the app
    first.

    Raises:
        EditorError: The editor cannot be started, reports failure, or writes text that is not UTF-8."""
    before = text.encode("utf-8", errors="surrogatepass")
    try:
        file = Path(tempfile.mkdtemp(prefix="workbench-")) / name
        file.write_bytes(before)
    except OSError as error:
        raise EditorError(f"No temporary file can be written: {error.strerror}") from error
    # The file is deleted unless it is the only copy of the user's changes.
    changed = False
    try:
        failure = run_editor(editor, file, line)
        try:
            after = file.read_bytes()
        except OSError as error:
            raise EditorError(failure or f"The editor's file cannot be read: {error.strerror}") from error
        changed = after != before
        if failure is not None:
            raise EditorError(failure + _kept_text_notice(file) if changed else failure)
        if not changed:
            return text
        edited = after.decode("utf-8")
        # An editor may add a byte order mark. The mark must not get into the middle of a file.
        if not text.startswith(BYTE_ORDER_MARK):
            edited = edited.removeprefix(BYTE_ORDER_MARK)
        changed = False
        return edited
    except UnicodeDecodeError as error:
        raise EditorError(f"The text saved by the editor is not UTF-8{_kept_text_notice(file)}") from error
    finally:
        if not changed:
            shutil.rmtree(file.parent, ignore_errors=True)


def run_editor(editor: str, file: Path, line: int) -> str | None:
    """Open a file in the user's editor at a line (from 1). Return why that failed, `None` if it succeeded.

    Blocks until the editor ends. Suspend the app first."""
    try:
        command = editor_command(editor, file, line)
    except ValueError as error:
        return f"The editor cannot be started: {error}"
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"
    if code:
        return f"{command[0]} ended with code {code}"
    return None


def _kept_text_notice(file: Path) -> str:
    return f", so nothing was changed; your text is in {file}"


_NO_TERMINAL = "This terminal cannot be handed over to an editor"


class ExternalEditor:
    """Runs the user's editor.

    If there is no `command`, `missing` says why. `named` is whether the user chose the editor. If not, a notice names
    the editor after its first use."""

    def __init__(self, app: Workbench, command: str | None, *, named: bool, missing: str) -> None:
        self._app = app
        self.command = command
        self._missing = missing
        self._announces_name = not named

    def changed(self, text: str, name: str, line: int) -> str | None:
        """Let the user edit a text in a temporary file called `name`. Return the new text.

        If that fails, announce the reason and return `None`."""
        if self.command is None:
            self._app.announce(self._missing[:1].upper() + self._missing[1:], "warned", GLYPHS.warned)
            return None
        after: str | None = None
        failure = None
        try:
            with self._app.suspend():
                try:  # Textual's `suspend` does not restore the terminal after an exception
                    after = edit_in_editor(self.command, text, name, line)
                except EditorError as error:
                    failure = str(error)
            self._announce_editor()
        except SuspendNotSupported:
            failure = _NO_TERMINAL
        if failure is not None:
            self._app.announce(failure, "error", GLYPHS.error)
        return after

    def open_file(self, path: Path, line: int) -> str | None:
        """Open a file at a line (from 1). Return why that failed, `None` if it succeeded."""
        try:
            with self._app.suspend():
                failure = run_editor(self.command or "", path, line)
            self._announce_editor()
            return failure
        except SuspendNotSupported:
            return _NO_TERMINAL

    def _announce_editor(self) -> None:
        if self._announces_name:
            # The caller announces its result first. With `keep_warning`, this notice does not replace a warning.
            self._announces_name = False
            text = f"This was {self.command}, the first editor found here: VISUAL or EDITOR names another"
            self._app.call_later(lambda: self._app.announce(text, keep_warning=True))
