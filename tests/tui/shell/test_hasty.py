"""Keys and clicks before a list is filled, before a bar exists, or after a dialog has closed."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.tui.case.form.view import FormView
from workbench.tui.kit.search_bar import SearchBar


@pytest.mark.slow
async def test_a_move_that_comes_when_a_field_of_the_form_is_open_leaves_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("2", "home", *["down"] * 6, "right", "e")
        form = app.app.main.query_one(FormView)
        assert form.typing
        form.action_move("page_down")
        await app.settle()
        assert not form.typing


@pytest.mark.slow
async def test_a_paste_that_is_too_long_for_a_field_is_refused(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        for keys in (["2", "home", "down", "down", "e"], ["ctrl+p"], ["1", "n"], ["1", "slash"]):
            await app.press("escape", "escape", *keys)
            app.app.post_message(events.Paste("漢e\u0301" * 300_000))
            await app.settle()
            assert app.app.screen is not app.app.main or "are too many for this field" in app.screen
            app.app.post_message(events.Paste("a line\n" * 150_000))
            await app.settle()
            await app.press("escape", "escape", "escape")
        assert not app.app.main.open_suites.dirty


@pytest.mark.slow
async def test_a_search_that_was_never_opened_begins_with_its_next_match(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("2", "o")
        pane = app.app.main.case_pane.toml
        pane.find(1)
        pane.find(1)
        pane.show_match_count((0, 3))
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
