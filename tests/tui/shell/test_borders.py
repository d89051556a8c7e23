"""The borders between the panes: moved by keys and the mouse, remembered, and never so that a pane vanishes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import DescendantFocus, MouseDown, MouseMove, MouseUp

from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from workbench.tui.kit.actions import PANES, Pane
from workbench.tui.shell.panes import MIN_PANE_CELLS, borders_at, first_borders, move_border, panes_that_fit

SHARES = st.floats(0, 1, exclude_min=True, exclude_max=True)
RIGHT = st.sampled_from(["case", "run"])
FOCUSED = st.sampled_from(PANES)


@given(st.integers(80, 400), RIGHT, st.tuples(SHARES, SHARES), st.integers(-50, 500), st.integers(0, 1))
def test_no_pane_vanishes(width: int, right: Pane, shares: tuple[float, float], column: int, index: int) -> None:
    panes = panes_that_fit(width, "suites", right, False)
    at = borders_at(shares[: len(panes) - 1], panes, width)
    moved = move_border(at, min(index, len(at) - 1), column, panes, width)
    for borders in (first_borders(panes, width), at, moved):
        edges = (-1, *borders, width)
        widths = [end - start - 1 for start, end in pairwise(edges)]
        assert all(MIN_PANE_CELLS[pane] <= cells for pane, cells in zip(panes, widths, strict=True))
    assert borders_at([border / width for border in moved], panes, width) == moved, "the same width shows the same"


@given(st.integers(0, 400), FOCUSED, RIGHT, st.booleans())
def test_the_pane_with_the_focus_is_shown(width: int, focused: Pane, right: Pane, zoomed: bool) -> None:
    assert focused in panes_that_fit(width, focused, right, zoomed)


def _widths(app: Opened) -> list[int]:
    return [app.app.main.query_one(f"#{pane}-pane").region.width for pane in app.app.main.visible_panes]


async def _drag(app: Opened, splitter: str, column: int) -> None:
    """Drag a border, with a mouse that leaves the border at once."""
    begin = app.app.main.query_one(splitter).region.x
    for kind, x in ((MouseDown, begin), (MouseMove, (begin + column) // 2), (MouseMove, column), (MouseUp, column)):
        app.app.screen._forward_event(kind(None, x, 5, 0, 0, 1, False, False, False, screen_x=x, screen_y=5))
        await app.settle()


@pytest.mark.slow
async def test_borders_are_moved_by_keys_and_mouse_and_stand_there_the_next_time(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, one=SMART_HOME)
    async with opened(suites) as app:
        assert _widths(app) == [31, 39, 48]
        await app.press(">", ">", "2", "<", "3", "<")
        assert _widths(app) == [35, 35, 48]
        await _drag(app, "#splitter-1", 80)
        assert _widths(app) == [35, 44, 39]
        await _drag(app, "#splitter-0", 119)
        assert _widths(app) == [58, MIN_PANE_CELLS["case"], MIN_PANE_CELLS["run"]], "the border pushes the other one"
        await app.press("1", ">")
        assert "Suites cannot be wider" in app.screen
        await _drag(app, "#splitter-0", 40)
        wide = _widths(app)
        await app.press("z", "<")
        assert "Only one pane is shown" in app.screen
        await app.press("z")
        assert _widths(app) == wide == [40, 48, 30]
        app.app.remember()
    async with opened(suites, size=(80, 24)) as app:
        assert _widths(app) == [28, 51], "each layout has its own"
        await app.press("3", ">", "q")
        await app.until(lambda: not app.app.is_running)
    async with opened(suites, size=(80, 24)) as app:
        assert _widths(app) == [26, 53]
        await app.pilot.resize_terminal(120, 36)
        await app.settle()
        assert _widths(app) == wide
        await app.press("ctrl+p", *"resetthewidths", "enter")
        assert _widths(app) == [31, 39, 48]
        await app.pilot.resize_terminal(160, 48)
        await app.settle()
        assert _widths(app) == [49, 49, 60]


async def test_a_border_moves_beside_the_pane_that_has_the_focus_whatever_asks_for_another(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, one=SMART_HOME), size=(80, 24)) as app:
        main = app.app.main
        await app.press("2")
        main._begin_on_run(only=False)  # recordings are read after the first keys
        await app.press(">")
        assert main.visible_panes == ("suites", "case") and _widths(app) == [26, 53]
        await app.press("1")
        main.post_message(DescendantFocus(main.run_pane.target))  # it had the focus before
        await app.press("<")
        assert main.pane == "suites" and _widths(app) == [24, 55]
