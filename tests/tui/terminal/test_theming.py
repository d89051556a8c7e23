"""Themes in the app: previewed, remembered, and read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_rows
from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.config.folders import Folders, bundled
from workbench.tui.kit.memory import Memory
from workbench.tui.terminal.environment import terminal_environment
from workbench.tui.terminal.served_driver import own_colours
from workbench.tui.terminal.theme import load_themes, textual_theme
from workbench.tui.themes.appearance import Appearance


async def test_a_theme_is_tried_as_the_cursor_moves_and_kept_with_enter(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        before = app.app.theme
        app.app.appearance.choose(app.app)
        await app.press("down")
        tried = app.app.theme
        assert tried != before
        await app.press("escape")
        assert app.app.theme == before
        app.app.appearance.choose(app.app)
        await app.press("down", "enter")
        assert app.app.theme == tried


@pytest.mark.parametrize(
    ("environment", "theme"),
    first_rows(
        [
            ({"COLORTERM": "truecolor"}, "graphite"),
            ({"COLORTERM": "", "TERM": "xterm-256color"}, "graphite"),
            ({"COLORTERM": "", "TERM": "xterm"}, "sixteen"),
            ({"COLORTERM": "", "TERM": "xterm", "COLORFGBG": "0;15"}, "sixteen-light"),
            ({"NO_COLOR": "1"}, "sixteen"),
        ],
        3,
    ),
)
async def test_the_terminal_decides_the_first_theme(tmp_path: Path, environment: dict[str, str], theme: str) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), environment=environment) as app:
        assert app.app.theme == theme
        assert "Movie night" in app.screen


def test_the_command_line_may_name_a_theme_and_is_told_when_there_is_none(tmp_path: Path) -> None:
    folders, memory = Folders(tmp_path, tmp_path, tmp_path, tmp_path), Memory(tmp_path / "app.json")
    plain = terminal_environment({"TERM": "xterm"})
    named = Appearance(folders, plain, memory, "ember")
    assert (named.first, named.unknown) == ("ember", None)
    unknown = Appearance(folders, plain, memory, "embers")
    assert (unknown.first, unknown.unknown) == ("sixteen", "embers")


async def test_the_title_of_a_theme_is_shown_safely(tmp_path: Path) -> None:
    own = tmp_path / "state" / "config" / "themes"
    own.mkdir(parents=True)
    (own / "oak.toml").write_text('title = "Oak [red]x[/] \\u001b[31m"\nextends = "graphite"\n')
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        app.app.appearance.choose(app.app)
        await app.settle()
        assert "Oak [red]x[/] ␛[31m" in app.screen


@pytest.mark.slow
async def test_a_chosen_theme_that_is_gone_is_missed(tmp_path: Path) -> None:
    own = tmp_path / "state" / "config" / "themes"
    own.mkdir(parents=True)
    (own / "oak.toml").write_text('extends = "graphite"\n')
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        app.app.appearance.choose(app.app)
        await app.press("end", "enter")
        assert app.app.theme == "oak"
    (own / "oak.toml").unlink()
    async with opened(suites) as app:
        assert "The theme oak, chosen last time, no longer exists: this is graphite" in app.screen


@pytest.mark.parametrize(
    ("name", "colours"),
    [
        ("paper", ("#000000", None)),
        ("graphite", ("#ffffff", None)),
        ("sixteen", ("#ffffff", "#000000")),
        ("sixteen-light", ("#000000", "#ffffff")),
    ],
)
def test_a_browser_has_the_ground_of_the_theme(name: str, colours: tuple[str, str | None]) -> None:
    theme = load_themes(bundled("themes"), Path()).by_name[name]
    text, ground = colours
    ground = ground or theme.colours["background"]
    assert own_colours(textual_theme(theme)) == f"\x1b]10;{text}\x07\x1b]11;{ground}\x07"
