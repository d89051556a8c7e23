"""Runs of the app and their history: both show the same, and batches can be resumed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.engine.agents.test_agents import OSLO, suite_of
from tests.tui.apps import SMART_HOME, opened, suites_in
from tests.tui.histories import Made, well, write_history
from workbench.history.history import History
from workbench.tui.history.batches_screen import HistoryScreen

CASES = ("movie-night", "lights-off", "nothing-to-do")


async def test_a_batch_goes_on_although_a_run_of_it_that_is_over_is_damaged(tmp_path: Path) -> None:
    suites, history = suites_in(tmp_path, home=SMART_HOME), tmp_path / "history.sqlite3"
    write_history(history, suites / "home.toml", Made(well(), cut_after=1))
    with closing(sqlite3.connect(history)) as connection, connection:
        connection.execute("UPDATE details SET events = x'00', outcome = x'00', block = NULL")
    async with opened(suites, live=True, history=history) as app:
        await app.press("h", "c")
        screen = app.app.screen
        assert isinstance(screen, HistoryScreen)
        await app.until(lambda: screen.state.batches[0].missing == 0 and not screen.state.active)
        made = [bool(app.app.main.book.finished((suites / "home.toml", case))) for case in CASES]
        assert made == [False, True, True]


async def test_the_details_of_a_batch_name_the_version_of_its_agent(tmp_path: Path) -> None:
    folder = tmp_path / "suites"
    folder.mkdir()
    suite_of(folder, OSLO, ["result"])
    async with opened(folder, live=True, trust=True, history=tmp_path / "history.sqlite3", size=(160, 40)) as app:
        await app.press("R")
        await app.until(lambda: bool(app.app.main.book.finished((folder / "weather.toml", "oslo"))))
        await app.press("h")
        await app.until(lambda: "subject: tests-agent 1.2.3" in app.screen)


async def test_when_a_run_began_and_ended_is_one_thing_in_the_app_and_in_the_history(tmp_path: Path) -> None:
    suites, history = suites_in(tmp_path, home=SMART_HOME), tmp_path / "history.sqlite3"
    async with opened(suites, live=True, history=history) as app:
        await app.press("R")
        book = app.app.main.book
        await app.until(lambda: all(book.finished((suites / "home.toml", case)) for case in CASES))
        in_app = [book.finished((suites / "home.toml", case))[0].figures for case in CASES]
    with History(history) as kept:
        in_history = [run.figures for run in kept.runs(1)]
    assert None not in in_app
    assert [(each.began_ms, each.ended_ms) for each in in_app if each] == [
        (each.began_ms, each.ended_ms) for each in in_history if each
    ]
