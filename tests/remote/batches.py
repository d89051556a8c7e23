"""A batch in a process without a terminal, with events from the test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tui.histories import _SETTINGS, Does, _graded
from workbench.config.folders import Folders
from workbench.config.program import create_program
from workbench.engine.events import BatchDone, RunDone, RunEvent, combined_listener, with_times
from workbench.engine.history_recorder import HistoryRecorder
from workbench.engine.plan import plan_runs
from workbench.evaluation.plan import Plan
from workbench.history.writer import HistoryWriter
from workbench.remote.batch_server import BatchBroadcast
from workbench.remote.records import DetachedBatch, claim_process, socket_address
from workbench.suite.suite_file import load_suite
from workbench.trajectory.events import Event
from workbench.version import __version__

TOKEN = "planted-0815-token"
"""The secret of the batch."""


class ToldBatch:
    """A batch as its process sees it: events are stored, and sent to attached viewers."""

    def __init__(self, folders: Folders, history: Path, suite: Path, does: Does) -> None:
        program = create_program(folders, {})
        program.secrets.add("TOKEN", TOKEN)
        self._writer = HistoryWriter(history, pytest.fail)
        self.runs = plan_runs([load_suite(suite)])
        recorder = HistoryRecorder(self._writer, self.runs, _SETTINGS, program.secrets, home=None)
        assert self._writer.wait_until_written(10)
        claim_process(program.folders, history, 1)
        path = str(socket_address(program.folders, history, 1))
        known = DetachedBatch(
            str(history), 1, "run", __version__, os.getpid(), path, len(self.runs), "2026-03-02T09:30:00Z"
        )
        self.telling = BatchBroadcast(Plan.of(self.runs, program), known, lambda: None)
        self.happens = with_times(combined_listener(recorder.on_event, self.telling.on_event))
        self.events = [
            [Event(run.run_id, at, float(at), what) for at, what in enumerate(does(run))] for run in self.runs
        ]

    def go(self, run: int, events: slice) -> None:
        for event in self.events[run][events]:
            self.happens(RunEvent(event))

    def finish(self, run: int) -> None:
        self.happens(RunDone(_graded(self.runs[run], self.events[run])))
        assert self._writer.wait_until_written(10)

    def end(self) -> None:
        self.happens(BatchDone("batch"))
        self._writer.close()
        self.telling.end(0)

    def close(self) -> None:
        self._writer.close()
        self.telling.serve_reports(None)
