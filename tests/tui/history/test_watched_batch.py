"""A batch that goes on without a terminal, in another process: the app shows it while its runs are made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, opened, suites_in
from tests.tui.comparing.test_compared_batch import batch_screen, cells_of, title
from tests.tui.histories import _SETTINGS, _graded, well
from workbench.attaching.records import Detached, address, claim_process, write_record
from workbench.attaching.telling import Telling
from workbench.attaching.viewing import Connection
from workbench.batches.events import BatchDone, RunDone, RunEvent, in_turn, timed
from workbench.batches.history_recorder import HistoryRecorder
from workbench.batches.plan import plan_runs
from workbench.config.folders import Folders
from workbench.config.program import program_in
from workbench.evaluation.plan import Plan
from workbench.history.writing import HistoryWriter
from workbench.suite.loading import load_suite
from workbench.trajectory.events import Event, TextDelta
from workbench.tui.trajectory.screen import TrajectoryScreen
from workbench.version import __version__

TOKEN = "planted-0815-token"


class Batch:
    """A batch as its process has it: it is stored, and told to whoever attaches."""

    def __init__(self, folder: Path, history: Path, suite: Path) -> None:
        state = folder / "state"
        program = program_in(Folders(state, state / "log", state / "config", state / "data"), {})
        program.secrets.add("TOKEN", TOKEN)
        self._writer = HistoryWriter(history, pytest.fail)
        self.runs = plan_runs([load_suite(suite)])
        recorder = HistoryRecorder(self._writer, self.runs, _SETTINGS, program.secrets, home=None)
        assert self._writer.settle(10)
        claim_process(program.folders, history, 1)
        path = str(address(program.folders, history, 1))
        known = Detached(str(history), 1, "run", __version__, os.getpid(), path, len(self.runs), "2026-03-02T09:30:00Z")
        self.telling = Telling(Plan.of(self.runs, program), known, lambda: None)
        write_record(program.folders, known)
        self.happens = timed(in_turn(recorder.take, self.telling.take))
        self.events = [
            [Event(run.run_id, at, float(at), what) for at, what in enumerate(well()(run))] for run in self.runs
        ]

    def go(self, run: int, events: slice) -> None:
        for event in self.events[run][events]:
            self.happens(RunEvent(event))

    def finish(self, run: int) -> None:
        self.happens(RunDone(_graded(self.runs[run], self.events[run])))
        assert self._writer.settle(10)

    def end(self) -> None:
        self.happens(BatchDone("batch"))
        self._writer.close()
        self.telling.end(0)

    def close(self) -> None:
        self._writer.close()
        self.telling.serve_reports(None)


@contextmanager
def detached(folder: Path) -> Iterator[tuple[Path, Path, Batch]]:
    """A folder of suites, a history, and a batch of which one run is over and one has begun."""
    suites, history = suites_in(folder, home=SMART_HOME), folder / "history.sqlite3"
    with closing(Batch(folder, history, suites / "home.toml")) as batch:
        batch.go(0, slice(None))
        batch.finish(0)
        batch.go(1, slice(0, 2))
        yield suites, history, batch


async def test_its_cells_fill_in_and_the_steps_of_a_run_stream(tmp_path: Path) -> None:
    with detached(tmp_path) as (suites, history, batch):
        async with opened(suites, size=(80, 24), history=history) as app:
            await app.press("h", "enter")
            screen = batch_screen(app)
            await app.until(lambda: cells_of(app, "Lights off") == "… running")
            assert "… 1 of 3 runs" in title(app) and "as of" not in title(app)
            assert cells_of(app, "Nothing to do") == "… to come"
            await app.press("down", "enter")
            assert isinstance(app.app.screen, TrajectoryScreen)
            await app.until(lambda: "running" in app.screen and "→ set_lights" not in app.screen)
            batch.go(1, slice(2, None))
            await app.until(lambda: "→ set_lights" in app.screen)
            batch.finish(1)
            await app.until(lambda: "✓ passed 1.00" in app.screen)
            await app.press("escape")
            await app.until(lambda: cells_of(app, "Lights off").startswith("✓ 1.00") and "… 2 of 3" in title(app))
            batch.telling.said("the disk is full")
            await app.until(lambda: "the disk is full" in app.screen)
            batch.go(2, slice(None))
            batch.finish(2)
            batch.end()
            await app.until(lambda: "Batch 1 has ended, with exit code 0" in app.screen)
            await app.until(lambda: dict(screen.totals.rows)["graded cases"] == ["3 of 3"] and "…" not in title(app))


async def test_a_viewer_that_leaves_is_gone_and_what_is_told_holds_no_secret(tmp_path: Path) -> None:
    with detached(tmp_path) as (suites, history, batch):
        async with opened(suites, history=history) as app:
            await app.press("h", "enter")
            await app.until(lambda: batch.telling._server.watched)
            await app.press("escape")
            await app.until(lambda: not batch.telling._server.watched)
        run = batch.runs[2]
        said = [Event(run.run_id, at, float(at), TextDelta(1, text)) for at, text in enumerate((TOKEN[:9], TOKEN[9:]))]
        for early in (True, False):
            with Connection(batch.telling.known, "watch") as viewer:
                told = [viewer.receive()]
                for event in said if early else ():
                    batch.happens(RunEvent(event))
                if not early:
                    batch.happens(RunDone(replace(_graded(run, batch.events[2]), status="error", error=f"no {TOKEN}")))
                while "done" not in told[-1] and not (early and told[-1].get("place") == 2):
                    told.append(viewer.receive())
            assert "$TOKEN" in str(told) and TOKEN not in str(told), told
