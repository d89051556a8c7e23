"""Copying out of a terminal: the multiplexer's buffer, else the terminal's clipboard (OSC 52), else a file. Whoever
copies is told which one it was."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

LONGEST_OSC52_BYTES = 74_000
"""Many terminals drop longer texts."""

TMUX_TIMEOUT_S = 2.0


def copy(text: str, *, in_tmux: bool, send: Callable[[str], None] | None, folder: Path) -> str:
    """Copy `text` and say where it went. `send` passes it to the terminal's clipboard, `None` where there is no way.

    Raises OSError when even a file could not be written.
    """
    size = len(text.encode("utf-8", errors="replace"))
    if in_tmux and _into_tmux(text):
        return "into tmux's buffer (and the clipboard, where tmux passes it on)"
    if send is not None and size <= LONGEST_OSC52_BYTES:
        send(text)
        return "to the terminal's clipboard (OSC 52)"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "copied.txt"
    file.write_text(text, encoding="utf-8", errors="replace")
    return f"into {file}"


def _into_tmux(text: str) -> bool:
    command = ["tmux", "load-buffer", "-w", "-"]
    content = text.encode("utf-8", errors="replace")
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=TMUX_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
