"""Keys and clicks that come before a list is filled, a bar is there, or after a dialog has closed."""

from __future__ import annotations

from pathlib import Path

from rich.style import Style
from textual import events
from textual.widgets import OptionList

from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.tui.case.form.view import FormView
from workbench.tui.kit.help import HelpScreen
from workbench.tui.kit.search_bar import SearchBar
from workbench.tui.shell.palette import Palette


async def test_the_palette_takes_keys_before_it_is_filled(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        for key in ("pagedown", "pageup", "down", "end", "shift+end"):
            app.app.push_screen(palette := Palette())
            await app.pilot.pause(0)
            palette._action_command_list("first")
            palette._action_command_list("page_down")
            palette.post_message(events.Key(key, None))
            await app.settle()
            assert app.app.screen_stack[1:] == [palette]
            await app.press("escape")
            assert len(app.app.screen_stack) == 1


async def test_the_palette_does_what_was_chosen_once_and_closes_once(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("ctrl+p")
        palette = app.app.screen
        await app.until(lambda: palette.query_one(OptionList).option_count > 0)
        listed = palette.query_one(OptionList)
        wanted = next(i for i, option in enumerate(listed.options) if "Keys and help" in str(option.prompt))
        for _ in range(3):
            palette.post_message(OptionList.OptionSelected(listed, listed.options[wanted], wanted))
        await app.settle()
        assert [type(screen) for screen in app.app.screen_stack] == [type(app.app.main), HelpScreen]
        for _ in range(3):
            app.app.screen.dismiss(None) if isinstance(app.app.screen, HelpScreen) else palette.dismiss(None)
        await app.settle()
        assert app.app.screen is app.app.main


async def test_a_click_beside_the_palette_or_on_what_is_no_longer_listed_does_no_harm(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.press("ctrl+p")
        palette = app.app.screen
        listed = palette.query_one(OptionList)
        for x, y, option in ((500, 500, None), (5, 5, 500)):
            style = Style.from_meta({"option": option} if option is not None else {})
            click = events.Click(listed, x, y, 0, 0, 1, False, False, False, x, y, style)
            (palette if option is None else listed).post_message(click)
            await app.settle()
        assert app.app.screen is palette


async def test_a_move_that_comes_when_a_field_of_the_form_is_open_leaves_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("2", "home", *["down"] * 6, "right", "e")
        form = app.app.main.query_one(FormView)
        assert form.typing
        form.action_move("page_down")
        await app.settle()
        assert not form.typing


async def test_a_paste_that_is_too_long_for_a_field_is_refused(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        for keys in (["2", "home", "down", "down", "e"], ["ctrl+p"], ["1", "n"], ["1", "slash"]):
            await app.press("escape", "escape", *keys)
            app.app.post_message(events.Paste("漢e\u0301" * 300_000))
            await app.settle()
            assert app.app.screen is not app.app.main or "are too many to paste here" in app.screen
            app.app.post_message(events.Paste("a line\n" * 150_000))
            await app.settle()
            await app.press("escape", "escape", "escape")
        assert not app.app.main.open_suites.dirty


async def test_a_search_that_was_never_opened_begins_with_its_next_match(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("2", "o")
        pane = app.app.main.case_pane.toml
        pane.find(1)
        pane.find(1)
        pane.say_found((0, 3))
        await app.settle()
        assert len(pane.query(SearchBar)) == 1
        await app.press(*"night")
        assert " found" in app.screen
        for _ in range(2):
            pane.query_one(SearchBar).post_message(SearchBar.Closed())
        pane.search()
        await app.settle()
        run = app.app.main.run_pane
        run.find(1)
        run.find(1)
        await app.settle()
        assert len(run.query(SearchBar)) <= 1
