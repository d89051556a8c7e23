"""The result of a slow operation appears only where it was requested, and covered screens draw nothing."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from textual.app import App
from textual.screen import Screen

from tests.sampled_rows import first_of
from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Opened, conversation, opened, suites_in
from tests.tui.comparison.test_compare import compared
from tests.tui.held import Held, held
from tests.tui.histories import Made, well, write_history
from workbench.analysis import paired
from workbench.tui.comparison.paired import PairedScreen
from workbench.tui.comparison.screen import CompareScreen
from workbench.tui.history import changes
from workbench.tui.history.batches_screen import HistoryScreen
from workbench.tui.history.changes import BatchDiffScreen, DiffList
from workbench.tui.history.questions import BatchNameScreen
from workbench.tui.kit.help import HelpScreen
from workbench.tui.run_book import stored_batches as history_reading
from workbench.tui.run_pair import screen as pair
from workbench.tui.run_pair.screen import PairScreen
from workbench.tui.trajectory.screen import TrajectoryScreen

__all__ = ["held"]

MADE = Made(well("Movie night")), Made(well("Lights off"))


async def asked_and_left(app: Opened, held: Held, asks: str, *leaves: str) -> Screen[object]:
    """Press a key whose screen is held back, then others. Return the current screen once the held screen may appear."""
    await app.pilot.press(asks)
    await held.begun(app)
    await app.pilot.press(*leaves)
    shown: Screen[object] = app.app.screen
    held.discard_stream()
    await app.settle()
    return shown


FROM_HISTORY: dict[str, tuple[ModuleType, list[str], type[Screen[None]]]] = {
    "read_cases": (history_reading, ["enter"], CompareScreen),
    "read_two": (changes, ["home", "space", "down", "space"], BatchDiffScreen),
}
"""For each reading function: the module that calls it, the keys that trigger it, and the resulting screen."""


@pytest.mark.slow
@pytest.mark.parametrize("name", first_of(FROM_HISTORY, 1))
async def test_what_is_read_of_the_history_comes_up_only_there(tmp_path: Path, held: Held, name: str) -> None:
    module, keys, comes = FROM_HISTORY[name]
    suites = suites_in(tmp_path, home=SMART_HOME)
    write_history(tmp_path / "history.sqlite3", suites / "home.toml", *MADE)
    async with opened(suites, live=True, history=tmp_path / "history.sqlite3") as app:
        await app.press("h", *keys[:-1])
        held.hold(module, name)
        await asked_and_left(app, held, keys[-1], "escape")
        assert app.app.screen is app.app.main
        await app.press("h", *keys)
        assert isinstance(app.app.screen, comes)


async def test_nothing_comes_up_over_a_dialog_in_which_somebody_types(tmp_path: Path, held: Held) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    write_history(tmp_path / "history.sqlite3", suites / "home.toml", *MADE)
    async with opened(suites, live=True, history=tmp_path / "history.sqlite3") as app:
        held.hold(history_reading, "read_cases")
        await app.press("h")
        shown = await asked_and_left(app, held, "enter", "f2", "a", "b")
        assert isinstance(shown, BatchNameScreen)
        await app.press("c", "enter")
        assert isinstance(app.app.screen, HistoryScreen)
        assert "#2 abc" in app.screen


@pytest.mark.slow
async def test_what_is_worked_out_for_the_comparison_comes_up_only_there(tmp_path: Path, held: Held) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        screen = await compared(app)
        await app.press("right")
        held.hold(paired, "compare_with_first")
        shown = await asked_and_left(app, held, "p", "question_mark")
        assert isinstance(shown, HelpScreen)
        assert app.app.screen_stack[-2:] == [screen, shown]
        await app.press("escape", "p")
        assert isinstance(app.app.screen, PairedScreen)


@pytest.mark.slow
async def test_two_runs_come_up_side_by_side_only_where_that_was_asked_for(tmp_path: Path, held: Held) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        screen = await compared(app)
        await app.press("right", "p")
        assert isinstance(app.app.screen, PairedScreen)
        held.hold(pair, "PairState")
        await asked_and_left(app, held, "enter", "escape")
        assert app.app.screen_stack[-1] is screen, "it was asked for on the screen over that one"
        await app.press("p", "enter")
        assert isinstance(app.app.screen, PairScreen)


@pytest.mark.slow
async def test_the_text_of_the_changes_is_made_while_keys_are_taken(tmp_path: Path, held: Held) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    write_history(tmp_path / "history.sqlite3", suites / "home.toml", *MADE)
    async with opened(suites, live=True, history=tmp_path / "history.sqlite3") as app:
        await app.press("h", "home", "space", "down", "space")
        screen = app.app.screen
        assert isinstance(screen, BatchDiffScreen)
        held.hold(DiffList, "as_text")
        await asked_and_left(app, held, "y", "down", "down")
        assert screen.is_current
        assert screen.state.cursor == 2
        assert app.app.clipboard == screen.state.as_text()
        assert "Copied the changes" in app.screen


# Covered screens


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records each output to the terminal."""
    drawings: list[str] = []
    display = App._display

    def counted(app: App[object], screen: Screen[object], renderable: Any) -> None:
        if renderable is not None and (text := renderable.render_segments(app.console)):
            drawings.append(text)
        display(app, screen, renderable)

    monkeypatch.setattr(App, "_display", counted)
    return drawings


async def all_drawn(app: Opened) -> None:
    """Wait until nothing waits to be drawn."""
    shown = app.app.screen
    await app.settle()
    await app.until(lambda: not (shown._repaint_required or shown._layout_required or shown._dirty_widgets))


@pytest.mark.slow
async def test_a_history_below_another_screen_draws_nothing_and_is_right_when_it_is_seen_again(
    tmp_path: Path, drawn: list[str]
) -> None:
    suites, history = suites_in(tmp_path, home=SMART_HOME), tmp_path / "history.sqlite3"
    write_history(history, suites / "home.toml", *MADE)
    async with opened(suites, history=history, models=("offline", "other")) as app:
        runs = await app.run("home", "R")
        await app.press("h", "enter")
        assert isinstance(app.app.screen, CompareScreen)
        await all_drawn(app)
        write_history(history, suites / "home.toml", Made(well()))
        drawn.clear()
        for run in runs:
            app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
            await all_drawn(app)
        app.session.end_batch()
        await all_drawn(app)
        assert drawn == []
        await app.press("escape")
        assert isinstance(app.app.screen, HistoryScreen)
        assert "3 batches" in app.screen
        assert "#3" in app.screen


async def test_a_pair_below_one_of_its_runs_draws_nothing_when_others_end(tmp_path: Path, drawn: list[str]) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await app.press("v")
        first, other, *rest = await app.run("R")
        app.session.finish(first, conversation(first, MOVIE_NIGHT, "Done."))
        await app.settle()
        await app.press("space", "right", "space", "1")
        assert isinstance(app.app.screen, TrajectoryScreen)
        await all_drawn(app)
        drawn.clear()
        for run in (other, *rest):
            if run.case.id != first.case.id:
                app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
        await all_drawn(app)
        assert drawn == []
