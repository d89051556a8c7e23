"""Copying a text, and saying where it went: off the loop, since a clipboard's program may take its time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workbench.tui.kit.stage import Announce
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.terminal import clipboard

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


def copy_text(app: Workbench, text: str, what: str, announce: Announce) -> None:
    """Copy a text and announce where it went; `what` is what to call it."""
    text = app.program.secrets.redact(text)
    if not text:
        announce("There is nothing to copy here", "warned", GLYPHS.warned)
        return

    async def copy() -> None:
        around = app.surroundings
        sent: list[str] = []
        try:
            where = await asyncio.to_thread(
                clipboard.copy,
                text,
                in_tmux=around.in_tmux,
                send=sent.append if around.takes_osc52 else None,
                folder=app.program.folders.state,
                clipboards=around.clipboards,
            )
        except OSError as error:
            announce(f"Nothing was copied: {error}", "error", GLYPHS.error)
            return
        for content in sent:
            app.copy_to_clipboard(content)
        announce(f"Copied {what} {where}", "passed", GLYPHS.passed)

    app.run_worker(copy(), group="copy")
