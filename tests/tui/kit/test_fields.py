"""Fields to type in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.tui.kit.fields import SafeInput


@pytest.mark.parametrize("theme", first_of(["sixteen", "sixteen-light"], 1))
async def test_the_cursor_of_a_field_is_seen_in_the_colours_of_the_terminal(tmp_path: Path, theme: str) -> None:
    """The cursor reverses the colours below it. Black on white was invisible on black."""
    async with opened(suites_in(tmp_path, home=SMART_HOME), environment={"COLORTERM": "", "TERM": "xterm"}) as app:
        app.app.theme = theme
        await app.press("ctrl+p", "x")
        cursor = app.app.screen.query_one(SafeInput).get_component_rich_style("input--cursor")
        assert cursor.reverse
        for colour in (cursor.color, cursor.bgcolor):
            assert colour is None or colour.is_default


@pytest.mark.parametrize("keys", first_of([("slash",), ("f2",), ("ctrl+p",)], 1), ids="".join)
async def test_what_is_typed_stands_a_cell_from_the_edge(tmp_path: Path, keys: tuple[str, ...]) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.press("down", *keys)
        field = app.app.focused
        assert isinstance(field, SafeInput)
        assert field.content_region.x == field.region.x + 1
