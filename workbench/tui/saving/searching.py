"""Searches for suites while the app runs: a long one is shown, and stops at a key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from workbench.suite.project import Search
from workbench.tui.kit.actions import key_for

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench

SHOWN_AFTER_S = 1.0
_SHOWN_EVERY_S = 0.5

Found = TypeVar("Found")


class Searches:
    """Runs searches in threads. At most one of them is shown, which `stop` ends."""

    def __init__(self, stage: Workbench) -> None:
        self._stage = stage
        self._shown: Search | None = None
        self._notice = ""

    async def run(self, search: Search, find: Callable[[], Found]) -> Found:
        """Return what `find`, which uses a search, returns in a thread."""
        showing = asyncio.create_task(self._show(search))
        try:
            found = await asyncio.to_thread(find)
        except asyncio.CancelledError:
            search.stop()  # otherwise the end of the app would wait for the thread
            raise
        finally:
            showing.cancel()
        self._stage.end_notice(self._notice)
        return found

    def stop(self) -> bool:
        """Stop the search that is shown. Returns whether there was one: what it found may already be read."""
        if self._shown is None or self._shown.folder is None:
            return False
        self._shown.stop()
        return True

    async def _show(self, search: Search) -> None:
        await asyncio.sleep(SHOWN_AFTER_S)
        self._shown = search
        try:
            while True:
                if (message := search.progress_message) is not None:
                    self._notice = f"{key_for('back')} stops: {message}"
                    self._stage.announce(self._notice, "muted", gently=True)
                await asyncio.sleep(_SHOWN_EVERY_S)
        finally:
            self._shown = None
