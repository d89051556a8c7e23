"""A history in the app of which something is damaged, or which cannot be written: the rest of it is as usable as
ever."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.histories import Made, shown, utc, well, write_history
from workbench.history import database
from workbench.history.claims import is_claimed
from workbench.show.markdown import document_table
from workbench.tui.history.changes import BatchDiffScreen
from workbench.tui.history.timeline import TimelineScreen

__all__ = ["utc"]


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    return suites_in(tmp_path, home=SMART_HOME)


@pytest.fixture
def history(tmp_path: Path, suites: Path) -> Path:
    """Three batches; the last one lacks runs."""
    file = tmp_path / "history.sqlite3"
    write_history(file, suites / "home.toml", Made(well()), Made(well("Movie night")), Made(well(), cut_after=1))
    return file


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def words(app: Opened) -> str:
    return " ".join(app.screen.split())


@pytest.mark.slow
@pytest.mark.usefixtures("utc")
async def test_a_damaged_batch_is_listed_as_that_and_can_only_be_removed(suites: Path, history: Path) -> None:
    change(history, "UPDATE batches SET settings = '{' WHERE id = 3")
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app)
        assert [batch.number for batch in screen.state.rows] == [3, 2, 1]
        assert "This batch is damaged: settings Expecting property name" in words(app)
        for key in ("enter", "space", "f2", "c", "equals_sign", "w"):
            await app.press(key)
            assert app.app.screen is screen and "The batch is damaged: settings" in words(app), key
        assert document_table(screen.state.table).count("| damaged |") == 1 and not screen.state.marked
        await app.press("delete")
        assert "#3 and its runs would be removed" in words(app)
        await app.press("1")
        await app.until(lambda: [batch.number for batch in screen.state.rows] == [2, 1])
        await app.press("space", "down", "space")
        await app.until(lambda: isinstance(app.app.screen, BatchDiffScreen))


async def test_a_damaged_run_is_left_out_of_its_case_over_time(suites: Path, history: Path) -> None:
    change(history, "UPDATE runs SET status = 'x' WHERE batch = 2")
    async with opened(suites, live=True, history=history) as app:
        app.app.main.action_do("timeline")
        await app.until(lambda: isinstance(app.app.screen, TimelineScreen))
        await app.until(lambda: "1 damaged run left out · 2 runs in 2 batches" in words(app))


async def test_a_batch_does_not_go_on_while_the_history_is_locked(
    suites: Path, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app)
        with closing(sqlite3.connect(history, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await app.press("c")
            await app.until(lambda: "Nothing was run: the history" in words(app))
            assert not app.app.main.book.active_runs() and not is_claimed(history, 3)
        await app.press("c")
        await app.until(lambda: screen.state.batches[0].missing == 0 and not screen.state.active)
