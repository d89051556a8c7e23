"""Saves recordings of runs on request. A held run is saved up to its hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.workspace import recordings_folder
from workbench.config.secrets import Secrets
from workbench.engine.recordings import save_recording
from workbench.show.glyphs import GLYPHS
from workbench.trajectory.recording import RecordingError
from workbench.tui.kit.stage import Announce
from workbench.tui.run_book.record import RunRecord

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class RunSaver:
    """Saves one run at a time, in a thread, and announces the file."""

    def __init__(self, app: Workbench, is_bundled: Callable[[Path], bool], secrets: Secrets) -> None:
        self._app = app
        self._is_bundled = is_bundled
        self._secrets = secrets
        self._busy = asyncio.Lock()

    def save_soon(self, run: RunRecord, announce: Announce) -> None:
        """Save a run and announce the file. An unchanged run is not saved again."""
        self._app.work(self._save(run, announce), group="save")

    async def _save(self, run: RunRecord, announce: Announce) -> None:
        async with self._busy:
            if run.saved_in is not None and await asyncio.to_thread(run.saved_in.is_file):
                announce(f"Already saved in {run.saved_in}", "text", GLYPHS.passed)
            else:
                await self._save_new(run, announce)

    async def _save_new(self, run: RunRecord, announce: Announce) -> None:
        planned, result = run.plan_to_save
        events = tuple(run.events)
        folder = recordings_folder(run.path, of_samples=self._is_bundled(run.path))
        secrets, began = self._secrets, run.started_at
        try:
            file = await asyncio.to_thread(
                save_recording, folder, planned, events, result, started_at=began, secrets=secrets
            )
        except RecordingError as error:
            announce(f"Nothing was saved: {error}", "error", GLYPHS.error)
            return
        # Events that arrived meanwhile are not in the file, so the run still counts as unsaved.
        if len(run.events) == len(events):
            run.saved_in = file
        so_far = ""
        if result is None:
            so_far = " so far"
        announce(f"Saved{so_far} in {file}", "passed", GLYPHS.passed)
