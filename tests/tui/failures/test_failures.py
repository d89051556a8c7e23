"""The screen of failures: opened for the selection in the tree, with a link to each run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Call, Opened, assert_golden, conversation, opened, suites_in
from workbench.tui.failures.screen import FailuresScreen
from workbench.tui.kit.help import HelpScreen

GARDEN = SMART_HOME.replace("Smart home", "Garden", 1).replace("Movie night", "Watering")
FAILING: dict[str, list[Call]] = {
    "Movie night": list(MOVIE_NIGHT),
    "Watering": list(MOVIE_NIGHT),
    "Lights off": [("set_tv", {"power": "off"})],
    "Nothing to do": [],
}


async def failing(app: Opened, *keys: str) -> FailuresScreen:
    """Run cases by keys, let most of them fail, and open the screen."""
    for planned in await app.run(*keys):
        app.session.finish(planned, conversation(planned, FAILING[planned.case.name], "Done."))
    app.session.end_batch()
    await app.settle()
    await app.press("f")
    screen = app.app.screen
    assert isinstance(screen, FailuresScreen)
    return screen


async def test_failures_stand_by_cause_with_advice_and_enter_goes_to_the_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two"), size=(120, 36)) as app:
        await failing(app, "R")
        assert_golden(app.screen, "failures-120x36")
        assert "4 of 6 graded runs failed" in app.screen
        await app.press("down", "enter")
        main = app.app.main
        assert app.app.screen is main
        assert main.pane == "run"
        assert main.selection.run is not None
        assert (main.selection.run.case_name, main.selection.run.model) == ("Lights off", "two")
        await app.press("f")
        assert isinstance(app.app.screen, FailuresScreen)
        assert app.app.screen.state.record is main.selection.run


async def test_before_anything_failed_the_key_says_so(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.press("f")
        assert app.app.screen is app.app.main
        assert "Nothing has failed; R runs the suite or folder" in app.screen


async def test_the_screen_covers_what_the_trees_cursor_covers(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, garden=GARDEN, home=SMART_HOME)) as app:
        screen = await failing(app, "home", "R")
        assert len(screen.state.failures.runs) == 4
        assert "Garden › Watering" in app.screen
        await app.press("escape", "down", "f")
        again = app.app.screen
        assert isinstance(again, FailuresScreen)
        assert {run.result.case_name for run in again.state.failures.runs} == {"Watering", "Lights off"}


@pytest.mark.slow
async def test_a_low_and_narrow_terminal_shows_one_column_after_the_other(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(40, 10)) as app:
        screen = await failing(app, "R")
        assert "wrong tool" in app.screen
        assert "What to do" not in app.screen
        await app.press("tab")
        assert "wrong tool" in app.screen
        await app.press("end")
        assert "expected" in app.screen
        await app.press("right", "left", "left")
        assert screen.column == "list"
        await app.press("question_mark")
        assert [type(shown) for shown in app.app.screen_stack[1:]] == [FailuresScreen, HelpScreen]
        await app.press("escape", "escape")
        assert app.app.screen_stack == [app.app.main]


async def test_at_80_by_24_both_columns_are_seen_and_the_table_scrolls_sideways(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(80, 24)) as app:
        await failing(app, "R")
        await app.press("end", "tab")
        assert_golden(app.screen, "failures-80x24")


async def test_the_filter_and_folding_narrow_the_list(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        screen = await failing(app, "R")
        await app.press("slash", *"brightness", "enter")
        assert {row.group.cause for row in screen.state.rows if row.group is not None} >= {"wrong argument"}
        assert "Lights off" not in [row.run.result.case_name for row in screen.state.rows if row.run is not None]
        await app.press("escape", "home", "left")
        assert "▸ wrong tool" in app.screen
        await app.press("right")
        assert "▾ wrong tool" in app.screen


@pytest.mark.slow
async def test_what_is_folded_is_folded_for_its_suite_only(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, garden=GARDEN, home=SMART_HOME)) as app:
        await failing(app, "home", "R")
        await app.press("home", "left")
        assert "▸ wrong tool" in app.screen
        await app.press("escape", "down", "f")
        assert "▾ wrong tool" in app.screen
        await app.press("escape", "up", "f")
        assert "▸ wrong tool" in app.screen


@pytest.mark.slow
async def test_where_nothing_failed_the_key_opens_the_failures_elsewhere(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, garden=GARDEN, home=SMART_HOME)) as app:
        await app.press("home", "down", "down")
        await failing(app, "R")
        await app.press("escape", "end", "f")
        assert isinstance(app.app.screen, FailuresScreen)
        assert "garden.toml · nothing has failed in home.toml" in app.screen
        assert "Watering" in app.screen


@pytest.mark.slow
async def test_while_the_filter_is_typed_only_its_own_keys_are_offered(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await failing(app, "R")
        await app.press("slash")
        assert app.screen.splitlines()[-1].split() == ["Enter", "keep", "Esc", "show", "all"]
        await app.press("enter")
        assert "/ filter" in app.screen
        await app.press("escape", "1", "slash")
        assert app.screen.splitlines()[-1].split() == ["Enter", "keep", "Esc", "show", "all"]
        await app.press("escape")
        assert "r run" in app.screen


@pytest.mark.slow
async def test_a_click_on_the_name_of_a_key_presses_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await failing(app, "R")
        for name, offset in (("Esc", 1), ("back", 3)):
            shown = app.screen.splitlines()[-1]
            await app.pilot.click("#failures-keys", offset=(shown.index(name) + offset, 0))
            await app.settle()
            assert app.app.screen is app.app.main
            await app.press("f")


async def test_copying_takes_all_of_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await failing(app, "R")
        await app.press("y")
        await app.until(lambda: "Copied the failures" in app.screen)


async def test_the_next_failed_case_is_a_key_away_and_so_is_the_expectation_that_failed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(80, 24)) as app:
        await failing(app, "R")
        await app.press("escape", "1", "home")
        main = app.app.main
        names = []
        for key in ("right_square_bracket", "right_square_bracket", "right_square_bracket", "left_square_bracket"):
            await app.press(key)
            assert main.selection.outline is not None
            names.append(main.selection.outline.name)
        assert names == ["Movie night", "Lights off", "Movie night", "Lights off"]
        bar = "a accept   e edit expected   ] next failed   f failures   v compare   ? keys"
        assert app.screen.splitlines()[-1].strip() == bar
        await app.press("left_square_bracket", "e")
        form = main.case_pane.form
        assert form.typing and form.page.current is not None
        assert form.page.current.place == ("ordered", 0, "args", "brightness"), app.screen
        await app.press("escape", "1", "left_square_bracket", "e")
        assert form.typing, "the tool of a call that is missing is typed too"
