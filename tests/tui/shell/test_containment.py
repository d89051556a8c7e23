"""An error in the app stops only the operation in which it occurs. It is logged and shown, and documents and runs
continue."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widget import Widget

from tests.tui.apps import SMART_HOME, Opened, conversation, opened, suites_in
from workbench.suite.drafts import Drafts
from workbench.tui.kit.dialogs import TextView
from workbench.tui.kit.help import HelpScreen
from workbench.tui.kit.rows import RowsView
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.terminal.containment import CANNOT_BE_DRAWN
from workbench.tui.tools.screen import ToolsScreen
from workbench.tui.trajectory.view import RunList
from workbench.tui.tree.view import SuiteTree

SAID = "Something failed, and the rest still works"


class PilotEnded(Exception):  # noqa: N818
    """The app has ended before its first screen."""


class PlantedError(Exception):
    """An unexpected error, planted by a test."""


def fails(*_: object, **__: object) -> NoReturn:
    raise PlantedError("on purpose")


async def fails_later() -> None:
    fails()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    handler = logging.FileHandler(tmp_path / "log")
    logging.getLogger().addHandler(handler)
    yield tmp_path / "log"
    logging.getLogger().removeHandler(handler)


async def still_works(app: Opened) -> None:
    """Check that documents and runs are there, and that keys work."""
    (run,) = await app.run("escape", "1", "home", "down", "down", "r")
    app.session.finish(run, conversation(run, [], "Done."))
    await app.settle()
    await app.press("3")
    assert "Done." in app.screen
    await app.press("1", "d")
    (suite,) = app.app.main.open_suites.dirty
    await app.press("ctrl+s")
    await app.until(lambda: not suite.dirty)
    assert "Saved in" in app.screen


@pytest.mark.slow
async def test_errors_of_handlers_timers_workers_and_callbacks_are_said_and_logged(tmp_path: Path, log: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), errs=True) as app:
        main, tree = app.app.main, app.app.main.query_one(SuiteTree)
        plants: list[Callable[[], object]] = [
            lambda: tree.post_message(events.Callback(callback=fails)),
            lambda: tree.set_timer(0.01, fails),
            lambda: tree.set_interval(0.01, fails, repeat=1),
            lambda: main.call_next(fails),
            lambda: main.call_after_refresh(fails),
            lambda: app.app.call_later(fails),
            lambda: main.run_worker(fails_later()),
            lambda: asyncio.get_running_loop().call_soon(fails),
        ]
        for number, plant in enumerate(plants):
            await app.press("escape")
            assert SAID not in app.screen
            plant()
            await app.until(lambda: SAID in app.screen)
            assert "PlantedError: on purpose (details in" in " ".join(app.screen.split())
            assert log.read_text().count("Traceback") > number
            await app.press("down")
        await still_works(app)


async def test_a_pane_that_cannot_be_drawn_says_so_and_is_tried_again_at_the_next_key(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), errs=True) as app:
        with monkeypatch.context() as planted:
            planted.setattr(RunList, "render_line", fails)
            app.app.main.query_one(RunList).refresh()
            await app.until(lambda: SAID in app.screen)
            assert CANNOT_BE_DRAWN in app.screen
            assert "Movie night" in app.screen
            await app.press("down")
            assert SAID in app.screen, "it was tried again"
            assert log.read_text().count("Traceback") == 2
        await app.press("up")
        assert CANNOT_BE_DRAWN not in app.screen
        await still_works(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "plants"),
    [
        ("question_mark", [(HelpScreen, "compose"), (HelpScreen, "on_mount"), (HelpScreen, "arrange")]),
        ("question_mark", [(TextView, "render_line"), (TextView, "get_content_height")]),
        ("t", [(ToolsScreen, "compose"), (ToolsScreen, "on_mount"), (RowsView, "render_line"), (RowsView, "on_mount")]),
    ],
)
async def test_a_screen_over_the_main_one_that_cannot_be_drawn_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, plants: list[tuple[type[Widget], str]]
) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), errs=True) as app:
        for where, what in plants:
            with monkeypatch.context() as planted:
                planted.setattr(where, what, fails, raising=False)
                await app.press(key)
                await app.until(lambda: SAID in app.screen)
                assert app.app.screen is app.app.main, (where, what)
            await app.press("escape", key)
            await app.until(lambda: app.app.screen is not app.app.main)
            assert SAID not in app.screen
            await app.press("escape")
        await still_works(app)


@pytest.mark.slow
async def test_the_same_error_three_times_in_a_row_ends_the_app_and_drafts_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(folder, errs=True) as app:
        await app.press("1", "end", "d")
        for _ in range(3):
            for _ in range(2):
                app.app.main.call_later(fails)
            await app.settle()
            await app.press("down", "up")  # the row is over
        assert app.app.is_running
        for _ in range(3):
            app.app.main.call_later(fails)
        assert app.app._task is not None
        await asyncio.wait([app.app._task], timeout=20)
        assert app.app.return_code == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "workbench failed: PlantedError: on purpose (details in" in said
    command = re.search(r"; 'workbench (.*?)' offers your unsaved changes again", said)
    assert command is not None, said
    drafts = Drafts(tmp_path / "state" / "drafts")
    assert len(drafts.recoverable([Path(command[1].replace(" ", ""))]).drafts) == 1  # wrapped on the screen
    drafts.close()


async def ended(pilot: Pilot[int], timeout: float = 0) -> bool:  # noqa: ASYNC109
    """Replaces the wait for a screen that never appears."""
    assert pilot.app._task is not None
    await asyncio.wait([pilot.app._task], timeout=20)
    raise PilotEnded


@pytest.mark.parametrize("what", ["compose", "on_mount"])
async def test_without_a_main_screen_the_app_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    monkeypatch.setattr(MainScreen, what, fails, raising=False)
    monkeypatch.setattr(Pilot, "_wait_for_screen", ended)
    with pytest.raises(PilotEnded):
        async with opened(suites_in(tmp_path, smart_home=SMART_HOME), errs=True):
            pass
    assert "workbench failed: PlantedError" in capsys.readouterr().err
