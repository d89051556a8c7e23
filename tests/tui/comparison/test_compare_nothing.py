"""The comparison with nothing to compare names the cause and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.comparison.test_compare import comparing

BROKEN = SMART_HOME + "temprature = 1\n"
ERRORS = "The suite cannot run yet: it has errors; Esc, then e edits it"
EMPTY = 'format = 1\nname = "Empty"\n'


async def said(app: Opened, key: str) -> str:
    """Return the message after a key."""
    await app.press(key)
    return app.screen.splitlines()[-1].strip(" !")


@pytest.mark.parametrize("key", first_of(["R", "T", "r", "p", "o"], 1))
async def test_of_a_suite_that_cannot_run_it_says_that_it_has_errors(tmp_path: Path, key: str) -> None:
    async with opened(suites_in(tmp_path, broken=BROKEN), size=(80, 24)) as app:
        screen = await comparing(app)
        assert (len(screen.state.cases), screen.state.models) == (3, ())
        assert app.screen.count(ERRORS) == 1  # below the cells, before any key
        assert await said(app, key) == ERRORS
        await app.press("full_stop")
        assert f"{ERRORS}." in app.screen
        assert "only one model" not in app.screen
        await app.press("full_stop", "escape", "e")
        assert app.app.main.pane == "case"


async def test_of_several_that_cannot_run_it_says_so_of_all(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, one=BROKEN, two=BROKEN)) as app:
        app.app.main.selection.tree.move_to(0)
        assert "the suite, or a case of it, whose change you want to undo" in await said(app, "u")
        await comparing(app, "home")
        said_of_all = "The suites cannot run yet: they have errors; Esc, then e edits them"
        assert said_of_all in app.screen


@pytest.mark.parametrize("key", first_of(["R", "p"], 1))
async def test_a_suite_without_cases_says_that_it_has_none(tmp_path: Path, key: str) -> None:
    async with opened(suites_in(tmp_path, a_empty=EMPTY, home=SMART_HOME), size=(80, 24)) as app:
        screen = await comparing(app, "home", "down")
        assert screen.state.cases == ()
        assert app.screen.splitlines()[1].startswith("  case")
        none = "There is no case here yet; Esc, then n makes one"
        assert f"{none}." in app.screen
        assert await said(app, key) == none
        await app.press("full_stop")
        assert f"{none}." in app.screen
