"""Copying a text, and announcing where it went: off the loop, since a clipboard's program may take its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from workbench.config.secrets import Secrets
from workbench.tui.kit.stage import Announce
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.terminal import clipboard
from workbench.tui.terminal.surroundings import Surroundings


async def copy_text(
    text: str,
    what: str,
    announce: Announce,
    *,
    secrets: Secrets,
    surroundings: Surroundings,
    folder: Path,
    copy_to_clipboard: Callable[[str], object],
) -> None:
    """Copy a text without its secrets, and announce where it went; `what` is what to call it.

    A terminal that takes it is given it by `copy_to_clipboard`. Where nothing else does, it is written into `folder`.
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
            in_tmux=surroundings.in_tmux,
            send=sent.append if surroundings.takes_osc52 else None,
            folder=folder,
            clipboards=surroundings.clipboards,
        )
    except OSError as error:
        announce(f"Nothing was copied: {error}", "error", GLYPHS.error)
        return
    for content in sent:
        copy_to_clipboard(content)
    announce(f"Copied {what} {where}", "passed", GLYPHS.passed)
