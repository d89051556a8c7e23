"""The common behaviour of the screens beside the main one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from textual.color import Color

from tests.sampled_rows import first_of, first_rows
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.comparison.test_compare import compared
from tests.tui.histories import Made, well, write_history
from workbench.tui.comparison.screen import CompareScreen
from workbench.tui.failures.screen import FailuresScreen
from workbench.tui.grades.screen import GradesScreen
from workbench.tui.history.batches_screen import HistoryScreen
from workbench.tui.kit.fields import FilterField
from workbench.tui.kit.help import HelpScreen
from workbench.tui.tools.screen import ToolsScreen

OPENS: dict[type[Any], tuple[str, ...]] = {
    HistoryScreen: ("h",),
    CompareScreen: (),
    ToolsScreen: ("escape", "t"),
    FailuresScreen: ("escape", "f"),
    GradesScreen: ("enter", "equals_sign"),
    HelpScreen: ("question_mark",),
}


async def opened_on(app: Opened, screen: type[Any]) -> None:
    if screen is not HistoryScreen:
        await compared(app)
    await app.press(*OPENS[screen])
    assert isinstance(app.app.screen, screen)


@pytest.mark.parametrize("screen", first_of(OPENS, 1))
async def test_each_handler_of_opening_a_screen_is_called_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screen: type[Any]
) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    write_history(tmp_path / "history.sqlite3", suites / "home.toml", Made(well("Movie night")))
    calls: Counter[str] = Counter()

    def counting(owner: type[Any]) -> None:
        handler = owner.__dict__["on_mount"]

        def counted(self: Any) -> Any:
            calls[owner.__name__] += isinstance(self, screen)
            return handler(self)

        monkeypatch.setattr(owner, "on_mount", counted)

    own = [each for each in screen.__mro__ if each.__module__.startswith("workbench.") and "on_mount" in vars(each)]
    for each in own:
        counting(each)
    async with opened(suites, models=("one", "two"), history=tmp_path / "history.sqlite3") as app:
        await opened_on(app, screen)
        assert calls == {each.__name__: 1 for each in own}


@pytest.mark.parametrize("screens", first_of([(HistoryScreen, CompareScreen), (ToolsScreen,), (FailuresScreen,)], 1))
async def test_the_field_of_the_filter_is_a_line_on_its_own_ground_and_seen_only_meanwhile(
    tmp_path: Path, screens: tuple[type[Any], ...]
) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    write_history(tmp_path / "history.sqlite3", suites / "home.toml", Made(well("Movie night")))
    async with opened(suites, models=("one", "two"), history=tmp_path / "history.sqlite3") as app:
        for screen in screens:
            await opened_on(app, screen)
            field = app.app.screen.query_one(FilterField)
            assert not field.display
            await app.press("slash", "z")
            assert app.app.focused is field
            assert (field.display, field.region.height, field.styles.border.top[0]) == (True, 1, "")
            assert field.styles.background == Color.parse(app.app.theme_variables["panel"])
            await app.press("enter")
            assert not field.display
            assert "/z" in app.screen.splitlines()[0]
            await app.press("escape")
            assert isinstance(app.app.screen, screen)
            assert "/z" not in app.screen
            await app.press("escape")


@pytest.mark.parametrize(("name", "cells"), first_rows([("get", 40), ("x" * 60, 76), ("x" * 200, 80)], 2))
async def test_a_list_is_as_wide_as_its_names_need(tmp_path: Path, name: str, cells: int) -> None:
    """At least a quarter of the screen for tools, at most half, including the marks and tokens after the name."""
    suite = f'format = 1\nname = "S"\n[[tools]]\nname = "{name}"\ndescription = "Does it"\n'
    async with opened(suites_in(tmp_path, s=suite), size=(160, 24)) as app:
        await app.press("t")
        assert isinstance(app.app.screen, ToolsScreen)
        column = app.app.screen.query_one("#list-column")
        assert column.region.width == cells
        await app.pilot.resize_terminal(80, 24)
        await app.settle()
        assert column.region.width == 80


async def test_a_notice_of_a_screen_that_is_being_closed_is_shown_below_it_or_by_none(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.press("t")
        screen = app.app.screen
        assert isinstance(screen, ToolsScreen)
        closed = screen.dismiss()
        assert screen.is_attached
        screen.announce("Copied the definition")
        await closed
        await app.settle()
        assert "Copied the definition" in app.screen
        # At its end, the app removes the parts of its screens first. A notice meanwhile does no harm.
        await app.press("t")
        screen = app.app.screen
        assert isinstance(screen, ToolsScreen)
        await screen.remove_children()
        screen.announce("Copied the definition")
        app.app.exit()
