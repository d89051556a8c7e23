"""The user's own editor, opened at a line."""

from __future__ import annotations

import shlex
from pathlib import Path

_PLUS_LINE = ("vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg", "jed")
_COLON_LINE = ("hx", "helix", "subl", "zed")
_GOTO_LINE = ("code", "codium", "code-insiders", "cursor")


def editor_command(editor: str, file: Path, line: int) -> list[str]:
    """The command that opens `file` at `line` (from 1) and waits; an unknown editor gets the file alone.

    Raises ValueError when `editor` is not a command.
    """
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
        waiting = [] if "--wait" in words or "-w" in words else ["--wait"]
        return [*words, *waiting, "--goto", f"{target}:{line}"]
    return [*words, target]
