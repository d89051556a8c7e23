"""The main screen as plain text, in common terminal sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import BROKEN, MOVIE_NIGHT, SMART_HOME, Opened, assert_golden, conversation, opened, suites_in

SIZES = [(80, 24), (120, 36), (160, 48)]


async def _everything_run(app: Opened) -> None:
    movie, lights, nothing = await app.run("home", "R")
    session = app.session
    session.finish(movie, conversation(movie, MOVIE_NIGHT, "I dimmed the lights. Enjoy the film."))
    session.finish(lights, conversation(lights, [("set_lights", {"brightness": 0})], "The lights are off."))
    session.finish(nothing, conversation(nothing, [], "Good night."))
    session.end_batch()
    await app.settle()


@pytest.mark.parametrize("size", first_of(SIZES, 1), ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_graded_run_looks_like_this(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(suites_in(tmp_path, broken=BROKEN, smart_home=SMART_HOME), size=size) as app:
        await _everything_run(app)
        await app.press("slash", *"movie", "enter")
        assert_golden(app.screen, f"graded-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", first_of(SIZES, 2), ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_first_screen_looks_like_this(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(suites_in(tmp_path, broken=BROKEN, smart_home=SMART_HOME), size=size) as app:
        assert_golden(app.screen, f"first-{size[0]}x{size[1]}")


async def test_below_80_columns_there_is_one_pane_with_the_titles_of_all(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(60, 16)) as app:
        await _everything_run(app)
        await app.press("1", "down", "3", "home")
        assert_golden(app.screen, "narrow-60x16")


@pytest.mark.parametrize("size", first_of([(40, 10), (20, 5), (300, 80)], 1), ids=lambda size: f"{size[0]}x{size[1]}")
async def test_any_size_can_be_worked_in(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(suites_in(tmp_path, broken=BROKEN, smart_home=SMART_HOME), size=size) as app:
        await _everything_run(app)
        await app.press("2", "3", "z", "question_mark", "escape", "m", "escape", "1")
        assert "suites" in app.screen


async def test_a_broken_suite_shows_its_problems_in_the_tree_and_at_their_lines(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, broken=BROKEN)) as app:
        await app.press("down", "down", "down")
        assert_golden(app.screen, "broken-120x36")


async def test_help_names_the_keys_of_the_pane_and_says_why_some_do_nothing(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(100, 48)) as app:
        await app.press("3", "question_mark")
        assert_golden(app.screen, "help-100x48")
