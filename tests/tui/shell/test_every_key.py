"""Every key that the registry names is pressed on the screen that it belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.comparison.test_compare import compared
from tests.tui.histories import write_history
from tests.tui.history.test_history import BATCHES
from tests.tui.tools.test_tools import SHOP, remember
from workbench.analysis.fault_matrix import FaultMatrix, FaultTrial
from workbench.show.spans import plain
from workbench.trajectory.events import ToolDefinition
from workbench.tui.faults.screen import FaultsScreen
from workbench.tui.kit.actions import PANES
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.side_screen import SideScreen
from workbench.tui.shell.actions import ALL_ACTIONS, SCREENS
from workbench.tui.shell.main_screen import MainScreen

HOME, SHOP_FILE = "home.toml", "shop.toml"

OPENED_BY = {
    "breakpoints": (HOME, "B"),
    "trajectory": (HOME, "v enter"),
    "tools": (SHOP_FILE, "t"),
    "log": (SHOP_FILE, "l"),
    "call": (SHOP_FILE, "t end i"),
    "grades": (HOME, "down equals_sign"),
    "failures": (HOME, "f"),
    "faults": (HOME, ""),  # without a key: it is shown after runs
    "audit": (HOME, "exclamation_mark"),
    "compare": (HOME, "v"),
    "paired": (HOME, "v right p"),
    "history": (HOME, "h"),
    "diff": (HOME, "h space down space"),
    "timeline": (HOME, "v h"),
    "pair": (HOME, "v left space right space"),
    "live": (HOME, "O enter"),
}
"""By screen: the suite on which the tree's cursor is, and the keys that open the screen from there."""


async def open_screen(app: Opened, name: str, suites: Path) -> SideScreen[object]:
    """Go back to the main screen, and from there to a screen."""
    while len(app.app.screen_stack) > 1:
        app.app.pop_screen()
    suite, keys = OPENED_BY[name]
    app.app.selection.select(suites / suite)
    app.app.main.go_to("suites")
    await app.settle()
    if name == "faults":
        tried = FaultTrial(HOME, "a", "A", "one", "look", "error", "once", "disclosed", "the answer says 'fail'")
        app.app.show(FaultsScreen(app.app, FaultMatrix((tried,)), "home"))
        await app.settle()
    await app.press(*keys.split())
    shown = app.app.screen
    assert isinstance(shown, SideScreen) and name == shown.NAME, (name, shown)
    return shown


@pytest.mark.slow
async def test_each_key_of_each_screen_takes_its_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert OPENED_BY.keys() == SCREENS.keys()
    suites, history = suites_in(tmp_path, home=SMART_HOME, shop=SHOP), tmp_path / "history.sqlite3"
    write_history(history, suites / HOME, *BATCHES)
    remember(suites, ToolDefinition("add", "Adds.", {"properties": {"a": {"enum": [1, 2]}}}))
    taken: list[str] = []
    async with opened(suites, models=("one", "two"), history=history) as app:
        await compared(app)
        for name in SCREENS:
            monkeypatch.undo()
            shown = await open_screen(app, name, suites)
            monkeypatch.setattr(SideScreen, "action_do", lambda screen, action_id: taken.append(action_id))
            assert {*shown.ACTIONS} == {action for action in ALL_ACTIONS.values() if action.scope == name}
            for action in shown.ACTIONS:
                why = action.why_not(shown.situation)
                assert why is None or why[0].islower(), action.id
                for key in action.keys:
                    taken.clear()
                    await app.pilot.press(key)
                    assert taken == [action.id], key


@pytest.mark.slow
async def test_each_screen_is_searched_or_filtered_with_one_key(tmp_path: Path) -> None:
    suites, history = suites_in(tmp_path, home=SMART_HOME, shop=SHOP), tmp_path / "history.sqlite3"
    write_history(history, suites / HOME, *BATCHES)
    remember(suites, ToolDefinition("add", "Adds.", {"properties": {"a": {"enum": [1, 2]}}}))
    async with opened(suites, models=("one", "two"), history=history) as app:
        await compared(app)
        for name in SCREENS:
            shown = await open_screen(app, name, suites)
            before = app.app.focused
            await app.press("slash", *"jgG")
            assert isinstance(app.app.focused, Input) and app.app.focused.value == "jgG", name
            await app.press("escape")
            assert app.app.screen is shown and app.app.focused is before, name
        await open_screen(app, "grades", suites)
        view = app.app.screen.query_one("#grades-list", LineView)
        last = plain(view.line_at(view.group_start(view.line_count() - 1))).split()[1]
        await app.press("slash", *last)
        assert last in plain(view.line_at(view.cursor)) and "1 of " in app.screen
        await app.press("escape")
        assert app.app.focused is view and view.cursor


async def test_each_key_of_each_pane_takes_its_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr(MainScreen, "action_do", lambda screen, action_id: taken.append(action_id))
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.press("down")
        for actions in ALL_ACTIONS.places():
            place = {action.scope for action in actions}
            if "everywhere" not in place:
                continue
            app.app.main.case_pane.view = "toml" if "toml" in place else "form"
            app.app.main.go_to(next((pane for pane in PANES if pane in place), "case"))
            views = place & {"form", "toml", "suites", "run"}
            own = [action for action in actions if action.scope in views]
            shadowed = {key for action in own for key in action.keys}
            common = [action for action in actions if action.scope == "everywhere"]
            for action in (*own, *common):
                for key in action.keys:
                    if action in own or key not in shadowed:
                        taken.clear()
                        await app.pilot.press(key)
                        assert taken == [action.id], (place, key, taken)
