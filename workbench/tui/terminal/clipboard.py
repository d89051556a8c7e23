"""Copying out of a terminal, down a ladder: the multiplexer's buffer, the desktop's clipboard, the terminal's own
(OSC 52), a file. Whoever copies is told which one it was.

What confirms comes before what does not: no terminal says whether it took an OSC 52, so that is asked only where no
desktop is at hand, over SSH above all.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

LONGEST_OSC52_BYTES = 74_000
"""Many terminals drop longer texts."""

TIMEOUT_S = 2.0

_TMUX = ("tmux", "load-buffer", "-w", "-")


def copy(
    text: str,
    *,
    in_tmux: bool,
    send: Callable[[str], None] | None,
    folder: Path,
    clipboards: Sequence[Sequence[str]] = (),
) -> str:
    """Copy `text` and say where it went. `clipboards` are commands that fill the desktop's clipboard; `send` passes the
    text to the terminal's, `None` where there is no way. May take seconds where a command hangs.

    Raises OSError when even a file could not be written.
    """
    content = text.encode("utf-8", errors="replace")
    if in_tmux and _taken_by(_TMUX, content):
        return "into tmux's buffer (and the clipboard, where tmux passes it on)"
    for command in clipboards:
        if _taken_by(command, content):
            return f"to the clipboard ({command[0]})"
    if send is not None and len(content) <= LONGEST_OSC52_BYTES:
        send(content.decode("utf-8"))
        return "to the terminal's clipboard (OSC 52), if it takes that"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "copied.txt"
    file.write_bytes(content)
    return f"into {file}"


def _taken_by(command: Sequence[str], content: bytes) -> bool:
    # Some stay behind to hand the text out: they must not hold pipes of ours open, nor end with our terminal.
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, input=content, stdout=quiet, stderr=quiet, timeout=TIMEOUT_S, check=False, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
