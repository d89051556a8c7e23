"""Copies text out of a terminal, and reports where the text went.

The possible destinations are the buffer of tmux, the clipboard of the desktop, the clipboard of the terminal, and a
file. They are tried in this order. A command such as `wl-copy` fills the clipboard of the desktop, and the escape
sequence OSC 52 that of the terminal."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.config.secrets import Secrets
from workbench.limits import MAX_CLIPBOARD_BYTES
from workbench.show.glyphs import GLYPHS
from workbench.tui.kit import clipboard
from workbench.tui.kit.stage import Announce
from workbench.tui.terminal.environment import TerminalEnvironment

TIMEOUT_S = 2.0

_TMUX = ("tmux", "load-buffer", "-w", "-")


def copy(
    text: str,
    *,
    in_tmux: bool,
    send: Callable[[str], None] | None,
    folder: Path,
    in_browser: bool = False,
    clipboards: Sequence[Sequence[str]] = (),
) -> str:
    """Copy `text` and return the destination, such as `into tmux's buffer`.

    `clipboards` are commands that fill the desktop's clipboard from standard input. A command that hangs is given up
    after `TIMEOUT_S` seconds. `send` passes text to the terminal, and is `None` for a terminal without OSC 52. The file
    is written into `folder`.

    Raises:
        OSError: Every destination failed, including the file."""
    content = text.encode("utf-8", errors="replace")
    # Destinations that report success are tried first. OSC 52 comes after the desktop's commands, because no terminal
    # confirms it. Over SSH, there are no such commands. tmux comes before all, because by default it drops OSC 52.
    if in_tmux and _run_copy_command(_TMUX, content):
        return "into tmux's buffer (and the clipboard, where tmux passes it on)"
    for command in clipboards:
        if _run_copy_command(command, content):
            return f"to the clipboard ({command[0]})"
    if send is not None and (in_browser or len(content) <= MAX_CLIPBOARD_BYTES):
        send(content.decode("utf-8"))
        if in_browser:
            return "to the browser's clipboard, if it lets this page"
        return "to the terminal's clipboard (OSC 52), if it supports that"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "copied.txt"
    file.write_bytes(content)
    return f"into {file}"


def _run_copy_command(command: Sequence[str], content: bytes) -> bool:
    # Some of these commands stay in the background to provide the text. They must not keep this program's pipes open,
    # and must not end with the terminal.
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, input=content, stdout=quiet, stderr=quiet, timeout=TIMEOUT_S, check=False, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


async def copy_text(
    text: str,
    noun: str,
    announce: Announce,
    *,
    secrets: Secrets,
    terminal: TerminalEnvironment,
    folder: Path,
    copy_to_clipboard: Callable[[str], object],
) -> None:
    """Copy a text without its secrets, and announce the destination.

    `noun` names the text in the notice. `copy_to_clipboard` sends the escape sequence OSC 52. If no clipboard works,
    the text goes to a file in `folder`."""
    text = secrets.redact(text)
    if not text:
        announce("There is nothing to copy here", "warned", GLYPHS.warned)
        return
    # The commands run in a thread, but only the event loop may write to the terminal. Text for the terminal is
    # therefore collected, and written afterwards.
    sent: list[str] = []
    try:
        destination = await asyncio.to_thread(
            clipboard.copy,
            text,
            in_tmux=terminal.in_tmux,
            send=sent.append if terminal.takes_osc52 else None,
            folder=folder,
            in_browser=terminal.served,
            clipboards=terminal.clipboards,
        )
    except OSError as error:
        announce(f"Nothing was copied: {error}", "error", GLYPHS.error)
        return
    for content in sent:
        copy_to_clipboard(content)
    announce(f"Copied {noun} {destination}", "passed", GLYPHS.passed)
