"""Leaving while operations are in progress: the app names them, stops those that can be stopped, and waits for nothing
unimportant."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, opened, suites_in
from tests.tui.held import Held, held, until
from tests.tui.histories import Made, well, write_history
from tests.tui.in_terminal import Terminal
from workbench.evaluation import regrade
from workbench.history import edits
from workbench.history.history import History
from workbench.tui.history import batch_work
from workbench.tui.history.batches_screen import HistoryScreen

__all__ = ["held"]

ASKS = "still under way: q again stops and quits"


def history_of(folder: Path) -> tuple[Path, Path]:
    suites = suites_in(folder, home=SMART_HOME)
    write_history(folder / "history.sqlite3", suites / "home.toml", Made(well("Movie night")), Made(well()))
    return suites, folder / "history.sqlite3"


@pytest.mark.parametrize("keys", first_of([["v"], ["h"]], 1))
async def test_ctrl_q_says_on_any_screen_that_it_asks(tmp_path: Path, keys: list[str]) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, history=history) as app:
        await app.run("home", "R")
        await app.press(*keys, "ctrl+q")
        assert app.app.screen is not app.app.main
        assert f"3 runs {ASKS}" in app.screen


async def test_whoever_leaves_while_a_batch_is_graded_again_is_asked_and_the_new_grades_are_dropped(
    tmp_path: Path, held: Held
) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await app.press("h")
        held.hold(regrade, "regrade_stored_runs")
        await app.pilot.press("equals_sign")
        await held.begun(app)
        await app.pilot.press("q")
        await app.pilot.pause()
        assert app.app.screen is app.app.main
        assert f"Regrading #2 {ASKS}" in app.screen
        await app.pilot.press("q")
        await until(app, lambda: "Quitting as soon as this is finished: regrading #2" in app.screen)
        assert app.app.return_code is None
        held.discard_stream()
        await until(app, lambda: app.app.return_code == 0)
    with History(history) as kept:
        assert kept.gradings(2) == []


async def test_whoever_leaves_while_recordings_are_saved_has_those_that_were(
    tmp_path: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await app.press("h")
        held.hold(batch_work, "export_recording")
        await app.pilot.press("w")
        await held.begun(app)
        await app.pilot.press("ctrl+q")
        await app.pilot.pause()
        assert f"Saving the runs of #2 {ASKS}" in app.screen
        await app.pilot.press("ctrl+q")
        await until(app, lambda: "Quitting as soon as this is finished" in app.screen)
        held.discard_stream()
        await until(app, lambda: app.app.return_code == 0)
    assert len(list((tmp_path / "recordings" / "batch-2").glob("*.run.jsonl"))) == 1


@pytest.mark.slow
async def test_what_has_to_come_to_its_end_is_waited_for_without_asking(tmp_path: Path, held: Held) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await app.press("h", "f2", *"best")
        held.hold(edits, "name_batch")
        await app.pilot.press("enter")
        await held.begun(app)
        await app.pilot.press("q")
        await until(app, lambda: "Quitting as soon as this is finished: naming #2" in app.screen)
        held.discard_stream()
        await until(app, lambda: app.app.return_code == 0)
    with History(history) as kept:
        assert [batch.name for batch in kept.batches()] == ["best", None]


@pytest.mark.slow
async def test_what_has_to_wait_for_something_else_says_for_what(tmp_path: Path, held: Held) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await app.press("h")
        screen = app.app.screen
        assert isinstance(screen, HistoryScreen)
        held.hold(regrade, "regrade_stored_runs")
        await app.pilot.press("equals_sign")
        await held.begun(app)
        await app.pilot.press("f2", *"best", "enter")
        await app.pilot.pause()
        assert "Naming #2 waits for another task: regrading #2" in app.screen
        held.discard_stream()
        await app.until(lambda: screen.state.batches[0].name == "best" and bool(screen.state.regraded))


async def test_input_that_still_waits_after_a_signal_is_dropped(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        case = app.app.main.selection.case
        app.app.leaving.is_urgent = True
        await app.press("down")
        assert app.app.main.selection.case == case
        app.app.leaving.is_urgent = False
        await app.press("down")
        assert app.app.main.selection.case != case


@pytest.mark.slow
async def test_a_mark_goes_with_the_two_batches_that_were_compared(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await app.press("h", "space")
        assert "◆#2" in app.screen
        await app.press("down", "space", "escape")
        assert isinstance(app.app.screen, HistoryScreen)
        assert "◆" not in app.screen


ENDLESS = """
import sys, threading
from pathlib import Path
import workbench.show.markdown as markdown

def endless(*_, **__):
    Path("begun").touch()
    threading.Event().wait()

markdown.document = endless
from workbench.cli.main import main
sys.exit(main())
"""


@pytest.mark.slow
def test_a_text_that_is_being_made_holds_nobody_up(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS, encoding="utf-8")
    arguments, runs = [str(suites), "--no-history"], (sys.executable, str(program))
    with Terminal(arguments, tmp_path / "state", program=runs, folder=tmp_path) as terminal:
        terminal.wait_for("Movie night")
        terminal.send("v")
        terminal.wait_for("Compare")
        terminal.send("y")
        terminal.wait_for((tmp_path / "begun").exists)
        terminal.send("q")
        assert terminal.end() == 0
