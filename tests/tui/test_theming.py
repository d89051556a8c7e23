"""Themes are data: complete, readable, refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from rich.color import Color

from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.config.resources import bundled
from workbench.tui.state.spans import Role
from workbench.tui.theming import Palette, ThemeError, ThemeFile, load_theme, load_themes

THEMES = load_themes(bundled("themes"))

LEAST_CONTRAST = 4.5
"""What WCAG asks of text."""


def _luminance(colour: Color) -> float:
    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = colour.get_truecolor()
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1..21, as WCAG 2 defines it."""
    darker, lighter = sorted(_luminance(Color.parse(colour)) for colour in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


def test_there_is_a_dark_a_light_a_contrasting_and_a_sixteen_colour_theme() -> None:
    assert THEMES.keys() >= {"graphite", "paper", "contrast", "sixteen"}
    assert {theme.dark for theme in THEMES.values()} == {True, False}
    assert THEMES["sixteen"].is_ansi


@pytest.mark.parametrize(
    "theme", [theme for theme in THEMES.values() if not theme.is_ansi], ids=lambda theme: theme.name
)
def test_everything_can_be_read_on_everything(theme: ThemeFile) -> None:
    grounds = ("background", "panel", "cursor", "resting_cursor")
    texts = set(theme.colours) - {*grounds, "border", "on_accent"}
    least = 7.0 if theme.name == "contrast" else LEAST_CONTRAST
    for text in sorted(texts):
        for ground in grounds:
            wanted = LEAST_CONTRAST if ground == "cursor" else least
            found = contrast(theme.colours[text], theme.colours[ground])
            assert found >= wanted, f"{text} on {ground}: {found:.2f}"
    assert contrast(theme.colours["on_accent"], theme.colours["accent"]) >= LEAST_CONTRAST


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "needs a name and a table of colours"),
        ("name = ", "Invalid value"),
        ('name = "x"\n[colours]\nbackground = "red"', "colours.background must be a colour"),
    ],
)
def test_a_theme_that_cannot_be_used_says_why(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text)
    with pytest.raises(ThemeError, match=r"x\.toml") as raised:
        load_theme(file)
    assert why in str(raised.value)


def test_unknown_colours_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text((bundled("themes") / "paper.toml").read_text() + 'sparkle = "#ffffff"\n')
    with pytest.raises(ThemeError, match="unknown colours: sparkle"):
        load_theme(file)


def test_without_colour_the_cursor_is_reversed_and_secondary_text_dim() -> None:
    palette = Palette(THEMES["sixteen"], no_colour=True)
    assert all(palette.style(role, "cursor").reverse for role in get_args(Role))
    assert palette.style("muted").dim
    assert palette.style("badge").reverse


async def test_a_theme_is_tried_as_the_cursor_moves_and_kept_with_enter(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        before = app.app.theme
        app.app.choose_theme()
        await app.press("down")
        tried = app.app.theme
        assert tried != before
        await app.press("escape")
        assert app.app.theme == before
        app.app.choose_theme()
        await app.press("down", "enter")
        assert app.app.theme == tried


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"COLORTERM": "truecolor"}, "graphite"),
        ({"COLORTERM": "", "TERM": "xterm-256color"}, "graphite"),
        ({"COLORTERM": "", "TERM": "xterm"}, "sixteen"),
        ({"NO_COLOR": "1"}, "sixteen"),
    ],
)
async def test_the_terminal_decides_the_first_theme(tmp_path: Path, environment: dict[str, str], theme: str) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), environment=environment) as app:
        assert app.app.theme == theme
        assert "Movie night" in app.screen
