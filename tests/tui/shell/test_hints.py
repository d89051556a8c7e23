"""Ctrl+C ends nothing. On every screen it shows the keys that stop runs and leave the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_rows
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.comparison.test_compare import compared, comparing
from tests.tui.histories import utc
from tests.tui.history.test_history import history_of
from workbench.tui.kit.side_screen import SideScreen

__all__ = ["utc"]

WAYS = "Esc goes back, q quits, ? shows all keys"
ON_MAIN = "q quits, x stops the case, ? shows all keys"


async def hint(app: Opened) -> str:
    """Return the hint after Ctrl+C."""
    await app.press("ctrl+c")
    return app.screen.splitlines()[-1].strip()


async def test_in_the_comparison_it_names_what_stops_a_cell_and_how_one_leaves(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two"), size=(80, 24)) as app:
        await comparing(app)
        await app.run("R")
        assert await hint(app) == f"x stops the cell, X stops all, {WAYS}"
        await app.press("escape")
        assert "stops the c" not in app.screen
        assert await hint(app) == ON_MAIN


@pytest.mark.slow
async def test_the_screens_over_the_comparison_name_their_own(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await compared(app)
        for keys in (["right", "p"], ["enter"], ["escape", "escape", "enter"]):  # tests, two runs, one run
            await app.press(*keys)
            assert await hint(app) == WAYS


@pytest.mark.parametrize(
    ("keys", "screen", "said"),
    first_rows(
        [
            ("h", "history", WAYS),
            ("h enter", "compare", f"X stops all, {WAYS}"),
            ("h space down space", "diff", WAYS),
            ("down v h", "timeline", WAYS),
            ("t", "tools", f"x stops the server, {WAYS}"),
            ("exclamation_mark", "audit", WAYS),
            ("B", "breakpoints", WAYS),
        ],
        3,
    ),
)
async def test_every_screen_says_it_itself(keys: str, screen: str, said: str, tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, history=history) as app:
        await app.press(*keys.split())
        shown = app.app.screen
        assert isinstance(shown, SideScreen) and screen == shown.NAME
        assert await hint(app) == said
        assert ON_MAIN not in app.screen


@pytest.mark.slow
@pytest.mark.parametrize(("key", "screen"), [("equals_sign", "grades"), ("f", "failures")])
async def test_the_screens_about_runs_say_it_too(key: str, screen: str, tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await compared(app)
        await app.press("escape", *["down"] * 2, key)
        shown = app.app.screen
        assert isinstance(shown, SideScreen) and screen == shown.NAME
        assert await hint(app) == WAYS


async def test_while_something_is_typed_no_letters_are_named(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await app.press("slash")
        assert await hint(app) == "Esc ends typing"
        await app.press("escape", "v", "slash")
        assert await hint(app) == "Esc ends typing"


async def test_nothing_is_said_below_a_dialog(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await app.press("m")
        before = app.screen
        await app.press("ctrl+c")
        assert app.screen == before
        await app.press("escape")
        assert ON_MAIN not in app.screen
