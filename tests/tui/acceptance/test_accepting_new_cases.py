"""A case that expects nothing takes the model's calls as its first expectation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, opened, suites_in


@pytest.mark.parametrize("size", first_of([(80, 24), (120, 36)], 1), ids=["80x24", "120x36"])
async def test_a_new_case_is_run_and_accepted_and_passes(tmp_path: Path, size: tuple[int, int]) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=size, live=True) as app:
        message = ("space" if letter == " " else letter for letter in "Turns the TV on or off")
        await app.press("n", "tab", "tab", "tab", *message, "enter", "escape", "r")
        await app.until(lambda: "not graded: expects nothing yet" in app.screen)
        await app.press("a")
        assert "Accept the run as the expectation?" in app.screen
        await app.press("enter")
        await app.until(lambda: "the run now passes" in app.screen)
        suite = app.app.main.selection.suite
        assert suite is not None
        block = next(suite.document.block(case.index) for case in suite.cases if case.name.startswith("Turns"))
        assert 'tool = "set_tv"' in block and "expect_nothing_yet" not in block


async def test_where_two_panes_are_shown_the_run_takes_the_keys_from_a_form_that_it_hides(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.run("r")
        assert app.app.main.pane == "suites", "what stays in sight keeps the keys"
        await app.press("down", "2")
        await app.run("r")
        assert "case" not in app.app.main.visible_panes
        assert app.app.focused is app.app.main.run_pane.run_list
