"""A batch without a terminal in another process: the app shows it while its runs are made."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.remote.batches import TOKEN, ToldBatch
from tests.tui.apps import SMART_HOME, opened, suites_in
from tests.tui.comparison.test_compared_batch import batch_screen, cells_of, title
from tests.tui.histories import _graded, well
from workbench.config.folders import Folders
from workbench.engine.events import RunDone, RunEvent
from workbench.grading.status import Status
from workbench.remote.viewer import Connection
from workbench.trajectory.events import Event, TextDelta
from workbench.tui.trajectory.screen import TrajectoryScreen


@contextmanager
def detached(folder: Path, suite: str = SMART_HOME) -> Iterator[tuple[Path, Path, ToldBatch]]:
    """A folder of suites, a history, and a batch of which one run is over and one has begun."""
    suites, history = suites_in(folder, home=suite), folder / "history.sqlite3"
    state = folder / "state"
    folders = Folders(state, state / "log", state / "config", state / "data")
    with closing(ToldBatch(folders, history, suites / "home.toml", well())) as batch:
        batch.go(0, slice(None))
        batch.finish(0)
        batch.go(1, slice(0, 2))
        yield suites, history, batch


@pytest.mark.slow
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
            batch.telling.send_output("the disk is full")
            await app.until(lambda: "the disk is full" in app.screen)
            batch.go(2, slice(None))
            batch.finish(2)
            batch.end()
            await app.until(lambda: "Batch 1 has ended, with exit code 0" in app.screen)
            await app.until(lambda: dict(screen.totals.rows)["graded cases"] == ["3 of 3"] and "…" not in title(app))


@pytest.mark.slow
async def test_a_repeat_that_runs_is_offered_beside_those_that_are_over(tmp_path: Path) -> None:
    often = SMART_HOME.replace('name = "Movie night"', 'name = "Movie night"\nrepeats = 3')
    with detached(tmp_path, often) as (suites, history, batch):
        batch.finish(1)
        batch.go(2, slice(0, 2))
        async with opened(suites, size=(80, 24), history=history) as app:
            await app.press("h", "enter")
            await app.until(lambda: "2/3 running" in cells_of(app, "Movie night"))
            await app.press("enter")
            await app.until(lambda: "Which run?" in app.screen and "3  … running" in app.screen)
            await app.press("enter")
            await app.until(lambda: isinstance(app.app.screen, TrajectoryScreen) and "running" in app.screen)
            batch.go(2, slice(2, None))
            batch.finish(2)
            await app.until(lambda: "✓ passed 1.00" in app.screen)


@pytest.mark.slow
async def test_the_last_news_before_a_pause_are_read_once_it_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.tui.comparison.batch_screen.RELOAD_INTERVAL_S", 2.0)
    with detached(tmp_path) as (suites, history, batch):
        async with opened(suites, size=(80, 24), history=history) as app:
            await app.press("h", "enter")
            await app.until(lambda: cells_of(app, "Lights off") == "… running")
            batch.finish(1)
            await app.until(lambda: "… 2 of 3" in title(app))


@pytest.mark.slow
async def test_a_viewer_that_is_let_go_attaches_again_by_itself(tmp_path: Path) -> None:
    with detached(tmp_path) as (suites, history, batch):
        async with opened(suites, size=(80, 24), history=history) as app:
            await app.press("h", "enter")
            await app.until(lambda: cells_of(app, "Lights off") == "… running")
            await app.press("down", "enter")
            for viewer in [*batch.telling._server._viewers]:
                viewer.connection.shutdown(socket.SHUT_RDWR)
            await app.until(lambda: not batch.telling._server.is_watched)
            await app.until(lambda: batch.telling._server.is_watched)
            batch.go(1, slice(2, None))
            batch.finish(1)
            await app.until(lambda: "✓ passed 1.00" in app.screen)
            assert app.screen.count("→ set_lights") == 1
            await app.press("escape")
            await app.until(lambda: cells_of(app, "Lights off").startswith("✓ 1.00") and "… 2 of 3" in title(app))


async def test_a_viewer_that_leaves_is_gone_and_what_is_told_holds_no_secret(tmp_path: Path) -> None:
    with detached(tmp_path) as (suites, history, batch):
        async with opened(suites, history=history) as app:
            await app.press("h", "enter")
            await app.until(lambda: batch.telling._server.is_watched)
            await app.press("escape")
            await app.until(lambda: not batch.telling._server.is_watched)
        run = batch.runs[2]
        said = [Event(run.run_id, at, float(at), TextDelta(1, text)) for at, text in enumerate((TOKEN[:9], TOKEN[9:]))]
        for early in (True, False):
            with Connection(batch.telling.known, "watch") as viewer:
                told = [viewer.receive()]
                for event in said if early else ():
                    batch.happens(RunEvent(event))
                if not early:
                    batch.happens(
                        RunDone(replace(_graded(run, batch.events[2]), status=Status.ERROR, error=f"no {TOKEN}"))
                    )
                while "done" not in told[-1] and not (early and told[-1].get("place") == 2):
                    told.append(viewer.receive())
            assert "$TOKEN" in str(told) and TOKEN not in str(told), told
