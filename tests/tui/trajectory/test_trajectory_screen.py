"""The screen of one run: finished, in progress and stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Opened, assert_golden, conversation, opened, suites_in
from workbench.tui.grades.screen import GradesScreen
from workbench.tui.run_book import book as runs
from workbench.tui.run_book.record import RecentRuns
from workbench.tui.trajectory.screen import TrajectoryScreen
from workbench.tui.trajectory.view import RunList


async def over(app: Opened) -> TrajectoryScreen:
    """A run that is over, on its screen."""
    (run,) = await app.run("down", "r")
    app.session.finish(run, conversation(run, MOVIE_NIGHT, "It is dark now."))
    app.session.end_batch()
    await app.settle()
    return await shown(app)


async def shown(app: Opened) -> TrajectoryScreen:
    record = app.app.main.selection.run
    assert record is not None
    screen = TrajectoryScreen(app.app, record, "batch #7, 22 Nov")
    app.app.push_screen(screen)
    await app.settle()
    return screen


@pytest.mark.parametrize("size", first_of([(80, 24), (160, 48)], 1), ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_run_alone_looks_like_this(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=size) as app:
        await over(app)
        assert_golden(app.screen, f"trajectory_{size[0]}x{size[1]}")


async def test_enter_expands_and_slash_searches(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await over(app)
        await app.press("slash", *"dark")
        assert "1 of 1" in app.screen
        await app.press("escape")
        assert not app.app.screen.query("SearchBar")
        await app.press("escape")
        assert app.app.screen is app.app.main


async def test_its_grades_are_one_key_away(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        screen = await over(app)
        await app.press("equals_sign")
        assert isinstance(app.app.screen, GradesScreen)
        await app.press("escape")
        assert screen.is_current


async def test_it_can_be_saved_as_a_recording(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        screen = await over(app)
        await app.press("w")
        assert screen.record.saved_in is not None
        assert screen.record.saved_in.is_file()
        assert "Saved in" in app.screen


async def test_a_run_that_goes_on_is_followed_until_somebody_looks_elsewhere(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 14)) as app:
        (run,) = await app.run("down", "r")
        happenings = conversation(run, [*MOVIE_NIGHT] * 5, "It is dark now.")
        app.session.say(run, *happenings[:6])
        await app.settle()
        screen = await shown(app)
        lines = screen.query_one(RunList)
        assert "… running" in app.screen
        app.session.say(run, *happenings[6:12], first=6)
        await app.settle()
        assert lines.is_following
        await app.press("home")
        app.session.say(run, *happenings[12:], first=12)
        await app.settle()
        assert not lines.is_following
        assert "new ↓ End" in app.screen
        await app.press("equals_sign")
        assert "This run is not finished yet" in app.screen


@pytest.mark.slow
async def test_a_run_that_is_read_stays_as_it_is_when_others_push_it_off_the_shelf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RecentRuns", lambda: RecentRuns(1))
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 14), models=("one", "two")) as app:
        await app.press("v")
        read, of_other_model, *others = await app.run("R")
        assert read.case.id == of_other_model.case.id
        app.session.finish(read, conversation(read, [*MOVIE_NIGHT] * 5, "It is dark now."))
        await app.settle()
        await app.press("enter", "down", "down", "down", "down", "enter")
        screen = app.app.screen
        assert isinstance(screen, TrajectoryScreen)
        seen, cursor = app.screen, screen.run.run_list.cursor
        assert cursor
        for run in (*others, of_other_model):
            app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
            await app.settle()
        assert (app.screen, screen.run.run_list.cursor) == (seen, cursor)


async def test_quitting_leads_by_way_of_the_main_screen_from_any_depth(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("down", "r")
        app.session.say(run, *conversation(run, MOVIE_NIGHT, "It is dark now.")[:3])
        await app.settle()
        await shown(app)
        await shown(app)
        await app.press("q")
        assert app.app.screen is app.app.main
        assert "1 run still under way: q again stops and quits" in app.screen
