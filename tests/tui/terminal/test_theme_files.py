"""Themes are data: complete, readable, refused with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from rich.color import ColorSystem
from rich.style import Style

from tests.tables import each_row
from workbench.config.folders import bundled
from workbench.show.spans import Role
from workbench.tui.terminal.cells import cell_style_of
from workbench.tui.terminal.colour_depth import FIXED, GROUNDS, contrast, fitted_to_256
from workbench.tui.terminal.theme import COLOURS, Palette, ThemeFile, Themes, folder_state, load_themes, textual_theme

THEMES = load_themes(bundled("themes"), Path("none")).by_name

LEAST_CONTRAST = 4.5
"""The contrast that WCAG requires of text."""

HIGH_CONTRAST = {"contrast": 7.0, "daylight": 7.0}
"""The contrast that WCAG requires of text for low vision."""

TEXTS = tuple(name for name in COLOURS if name not in (*GROUNDS, "border", "on_accent"))


def with_own(folder: Path, **texts: str) -> Themes:
    """The bundled themes and some of the user's."""
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(text)
    return load_themes(bundled("themes"), folder)


def test_there_are_dark_light_contrasting_and_sixteen_colour_themes() -> None:
    assert len(THEMES) >= 6
    assert THEMES.keys() >= {"graphite", "paper", "contrast", "sixteen"}
    for dark in (True, False):
        names = {theme.name for theme in THEMES.values() if theme.dark is dark and not theme.is_ansi}
        assert len(names - HIGH_CONTRAST.keys()) >= 2
        assert names & HIGH_CONTRAST.keys()
    assert THEMES["sixteen"].is_ansi


@each_row("theme", [theme for theme in THEMES.values() if not theme.is_ansi])
def test_everything_can_be_read_on_everything(theme: ThemeFile) -> None:
    wanted = HIGH_CONTRAST.get(theme.name, LEAST_CONTRAST)
    for text in TEXTS:
        for ground in GROUNDS:
            found = contrast(theme.colours[text], theme.colours[ground])
            assert found >= wanted, f"{text} on {ground}: {found:.2f}"
    assert contrast(theme.colours["on_accent"], theme.colours["accent"]) >= LEAST_CONTRAST


@each_row("theme", [theme for theme in THEMES.values() if not theme.is_ansi])
def test_with_256_colours_everything_can_be_read_and_what_differs_still_does(theme: ThemeFile) -> None:
    fitted = fitted_to_256(theme.colours)
    assert fitted.keys() == theme.colours.keys()
    assert set(fitted.values()) <= FIXED.keys()
    for text in TEXTS:
        for ground in GROUNDS:
            wanted = LEAST_CONTRAST if "cursor" in ground else HIGH_CONTRAST.get(theme.name, LEAST_CONTRAST)
            found = contrast(fitted[text], fitted[ground])
            assert found >= wanted, f"{text} on {ground}: {found:.2f}"
    assert contrast(fitted["on_accent"], fitted["accent"]) >= LEAST_CONTRAST
    for alike in (("border", *GROUNDS), TEXTS):
        assert len({fitted[name] for name in alike}) == len({theme.colours[name] for name in alike})
    for status in ("passed", "failed", "error"):
        assert len({fitted[status][at : at + 2] for at in (1, 3, 5)}) > 1, f"{status} is a grey"
    for text in TEXTS:
        style = cell_style_of(Style(color=fitted[text], bgcolor=fitted["cursor"]), ColorSystem.EIGHT_BIT)
        assert (style.fg, style.bg) == (f"38;5;{FIXED[fitted[text]]}", f"48;5;{FIXED[fitted['cursor']]}")


LEAST_CONTRAST_OF_SELECTION = 3.0


@each_row("theme", [theme for theme in THEMES.values() if not theme.is_ansi])
def test_what_is_selected_in_a_field_is_seen_and_read(theme: ThemeFile) -> None:
    for colours in (theme.colours, fitted_to_256(theme.colours)):
        variables = textual_theme(replace(theme, colours=colours)).variables
        selected, text = (variables[f"input-selection-{part}"] for part in ("background", "foreground"))
        assert contrast(selected, text) >= LEAST_CONTRAST
        for ground in ("background", "panel"):
            assert contrast(selected, colours[ground]) >= LEAST_CONTRAST_OF_SELECTION


LEAST_CONTRAST_OF_DIM = 3.0


def _dimmed(text: str, background: str) -> str:
    """Return dim text as terminals draw it: two thirds of its colour, one third of the background."""
    parts = ((int(text[at : at + 2], 16) * 2 + int(background[at : at + 2], 16)) // 3 for at in (1, 3, 5))
    return "#" + "".join(f"{part:02x}" for part in parts)


_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")

_ALL_NAMES = (*_NAMES, *(f"bright_{name}" for name in _NAMES))

TERMINALS = {
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
    "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
    "console": "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa "
    "555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff",
    "Tango": "000000 cc0000 4e9a06 c4a000 3465a4 75507b 06989a d3d7cf "
    "555753 ef2929 8ae234 fce94f 729fcf ad7fa8 34e2e2 eeeeec",
    "Windows": "0c0c0c c50f1f 13a10e c19c00 0037da 881798 3a96dd cccccc "
    "767676 e74856 16c60c f9f1a5 3b78ff b4009e 61d6d6 f2f2f2",
    "GNOME": "171421 c01c28 26a269 a2734c 12488b a347ba 2aa1b3 d0cfcc "
    "5e5c64 f66151 33da7a e9ad0c 2a7bde c061cb 33c7de ffffff",
}
"""The 16 colours of common terminals, as they come."""


@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize(("name", "ground", "text"), [("sixteen", "black", "white"), ("sixteen-light", "", "black")])
def test_with_16_colours_everything_can_be_read(terminal: str, name: str, ground: str, text: str) -> None:
    has = {f"ansi_{colour}": f"#{value}" for colour, value in zip(_ALL_NAMES, TERMINALS[terminal].split(), strict=True)}
    background = has.get(f"ansi_{ground}", "#ffffff")
    has["ansi_default"] = has[f"ansi_{text}"]
    colours = THEMES[name].colours
    for role in TEXTS:
        found = contrast(has[colours[role]], background)
        assert found >= LEAST_CONTRAST, f"{role}, {colours[role]}: {found:.2f}"
    assert contrast(_dimmed(has["ansi_default"], background), background) >= LEAST_CONTRAST_OF_DIM
    assert contrast(has[colours["on_accent"]], has[colours["accent"]]) >= LEAST_CONTRAST
    assert contrast(has["ansi_black"], has[colours["cursor"]]) >= LEAST_CONTRAST, "selected text"
    for alike in (("passed", "failed", "error", "warned"), ("key", "string", "number", "literal")):
        assert len({colours[role] for role in alike}) == len(alike)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "colours.background is missing: give it"),
        ("name = x", "is not valid TOML: Invalid value (at line 1, column 8)"),
        ('[colours]\nbackground = "red"', "colours.background must be a colour such as"),
        ('extends = "graphite"\n[colours]\ntext = 7', "colours.text must be a colour such as"),
        ('extends = "graphit"', "extends names no theme that can be used: did you mean 'graphite'?"),
        ('extends = "graphite"\n[colours]\ntex = "#ffffff"', "tex is not a colour of a theme: did you mean 'text'?"),
        ('extends = "graphite"\ncolour = {}', "colour is not a setting of a theme: did you mean 'colours'?"),
        ('extends = "graphite"\ncolours = 1', "colours must be a table"),
        ('extends = "graphite"\ndark = 1', "dark must be true or false"),
        ('name = "a b"\nextends = "graphite"', "name cannot be the name of a theme"),
    ],
)
def test_a_theme_that_cannot_be_used_says_why_and_does_no_harm(tmp_path: Path, text: str, why: str) -> None:
    themes = with_own(tmp_path, oak=text)
    assert themes.by_name == THEMES
    (problem,) = themes.problems
    assert problem.startswith(f"{tmp_path / 'oak.toml'}: ")
    assert why in problem


def test_a_theme_that_is_no_text_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "oak.toml").write_bytes(b"\xff")
    (tmp_path / "elm.toml").mkdir()
    themes = load_themes(bundled("themes"), tmp_path)
    assert themes.by_name == THEMES
    assert [problem.rpartition(": ")[2] for problem in themes.problems] == ["Is a directory", "save it as UTF-8 text"]


def test_a_theme_extends_another_by_the_colours_it_changes(tmp_path: Path) -> None:
    themes = with_own(
        tmp_path,
        aspen='extends = "oak"\ntitle = "Aspen"\n[colours]\ntext = "#eeeeee"',
        oak='extends = "paper"\ndark = true\n[colours]\naccent = "#123456"',
    )
    assert not themes.problems
    aspen = themes.by_name["aspen"]
    assert aspen == ThemeFile(
        "aspen", "Aspen", True, {**THEMES["paper"].colours, "accent": "#123456", "text": "#eeeeee"}
    )


def test_a_theme_of_the_users_takes_the_place_of_a_bundled_one_and_may_extend_it(tmp_path: Path) -> None:
    themes = with_own(tmp_path, graphite='extends = "graphite"\n[colours]\ntext = "#ffffff"')
    assert not themes.problems
    assert list(themes.by_name) == list(THEMES)
    assert themes.by_name["graphite"].colours == {**THEMES["graphite"].colours, "text": "#ffffff"}


def test_themes_that_extend_each_other_are_left_out_with_a_reason(tmp_path: Path) -> None:
    themes = with_own(tmp_path, one='extends = "two"', two='extends = "one"', three='extends = "graphite"')
    assert themes.by_name.keys() == {*THEMES, "three"}
    assert any("which extends this one" in problem for problem in themes.problems)


def test_a_changed_theme_file_is_noticed(tmp_path: Path) -> None:
    assert folder_state(tmp_path / "none") == ()
    before = folder_state(tmp_path)
    with_own(tmp_path, oak="")
    assert folder_state(tmp_path) != before


def test_every_bundled_theme_names_every_colour() -> None:
    assert all(set(theme.colours) == set(COLOURS) for theme in THEMES.values())


def test_without_colour_the_cursor_is_reversed_and_secondary_text_dim() -> None:
    palette = Palette(THEMES["sixteen"], no_colour=True)
    assert all(palette.style(role, "cursor").reverse for role in get_args(Role))
    assert palette.style("muted").dim
    assert palette.style("badge").reverse


def test_the_page_of_themes_names_every_theme_and_colour() -> None:
    page = (Path(__file__).parents[3] / "docs" / "terminal.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in THEMES)
    assert all(f"`{colour}`" in page for colour in COLOURS)
