"""Copies text in a thread, because clipboard programs may take a while, and announces where it went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from workbench.config.secrets import Secrets
from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.stage import Announce
from workbench.tui.terminal import clipboard
from workbench.tui.terminal.environment import TerminalEnvironment


async def copy_text(
    text: str,
    what: str,
    announce: Announce,
    *,
    secrets: Secrets,
    terminal: TerminalEnvironment,
    folder: Path,
    copy_to_clipboard: Callable[[str], object],
) -> None:
    """Copy a text without its secrets, and announce where it went. `what` is its name.

    The terminal's clipboard is filled by `copy_to_clipboard`. If nothing else works, the text is written into `folder`.
    """
    text = secrets.redact(text)
    if not text:
        announce("There is nothing to copy here", "warned", GLYPHS.warned)
        return
    sent: list[str] = []
    try:
        where = await asyncio.to_thread(
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
    announce(f"Copied {what} {where}", "passed", GLYPHS.passed)
