"""Themes: the style of each role on each background. The user's own theme files."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from rich.color import Color
from rich.style import Style
from textual.theme import Theme

from workbench.dataclasses import dataclass
from workbench.show.spans import Role
from workbench.startup import late_pattern

_ROLE_COLOURS: dict[Role, str] = {"heading": "accent", "comment": "muted"}
_BOLD: frozenset[Role] = frozenset({"strong", "heading", "failed", "error", "running", "tool"})
_ITALIC: frozenset[Role] = frozenset({"comment"})


_ANSI_ON_DARK = {"ansi-background": "ansi_black", "ansi-foreground": "ansi_white"}
_ANSI_ON_LIGHT = {"ansi-background": "ansi_white", "ansi-foreground": "ansi_black"}


def textual_theme(theme: ThemeFile) -> Theme:
    """Return a theme in the form used by Textual's widgets."""
    colour = theme.colours
    # Selected text in a field needs its own colour, because the next letter replaces it.
    selection, on_selection = colour["accent"], colour["on_accent"]
    if theme.is_ansi:
        selection, on_selection = colour["cursor"], "ansi_black"
    return Theme(
        name=theme.name,
        primary=colour["accent"],
        secondary=colour["accent"],
        warning=colour["warned"],
        error=colour["failed"],
        success=colour["passed"],
        accent=colour["accent"],
        foreground=colour["text"],
        background=colour["background"],
        surface=colour["background"],
        panel=colour["panel"],
        boost=colour["panel"],
        dark=theme.dark,
        ansi=theme.is_ansi,
        variables={
            **(_ANSI_ON_DARK if theme.dark else _ANSI_ON_LIGHT),
            "border": colour["border"],
            "border-blurred": colour["border"],
            "text-muted": colour["muted"],
            "on-accent": colour["on_accent"],
            "cursor": colour["cursor"],
            "block-cursor-background": colour["accent"],
            "block-cursor-foreground": colour["on_accent"],
            "block-cursor-text-style": "bold",
            "block-cursor-blurred-background": colour["resting_cursor"],
            "block-cursor-blurred-foreground": colour["text"],
            "input-cursor-background": colour["text"],
            "input-cursor-foreground": colour["background"],
            "input-selection-background": selection,
            "input-selection-foreground": on_selection,
        },
    )


Ground = Literal["background", "panel", "cursor", "resting_cursor"]
"""The background of a line. `resting_cursor` is the cursor's background in a pane without the focus."""


class Palette:
    """The styles of the app's own lines in one theme, one per role and background."""

    # In a theme without colours, or with the terminal's own colours, no fixed colour is sure to be readable. The cursor
    # is then reversed, and secondary text is dim.

    def __init__(self, theme: ThemeFile, *, no_colour: bool = False) -> None:
        self._colours = {name: _rich_colour(value) for name, value in theme.colours.items()}
        self._plain = theme.is_ansi or no_colour
        self._styles: dict[tuple[Role, Ground], Style] = {}
        for role in get_args(Role):
            for ground in get_args(Ground):
                self._styles[role, ground] = self._build_style(role, ground)

    def style(self, role: Role, ground: Ground = "background") -> Style:
        return self._styles[role, ground]

    def _build_style(self, role: Role, ground: Ground) -> Style:
        # For Rich, `None` keeps an attribute, while `False` disables it.
        bold = role in _BOLD or None
        italic = role in _ITALIC or None
        if role == "badge":
            if self._plain:
                return Style(bold=True, reverse=True)
            return Style(color=self._colours["on_accent"], bgcolor=self._colours["accent"], bold=True)
        if role == "match" and self._plain:
            return Style(bold=True, underline=True, reverse=ground == "cursor" or None)
        if role == "selected":
            if self._plain:
                return Style(reverse=True)
            return self._build_style("text", "cursor")
        if role == "match":
            return Style(color=self._colours["background"], bgcolor=self._colours["warned"])
        if self._plain and ground == "cursor":
            return Style(bold=bold, italic=italic, reverse=True)
        return Style(
            color=self._colours[_ROLE_COLOURS.get(role, role)],
            bgcolor=self._colours[ground],
            bold=bold,
            italic=italic,
            dim=(self._plain and role in ("muted", "comment")) or None,
            underline=(self._plain and ground == "resting_cursor") or None,
        )


def _rich_colour(value: str) -> Color:
    return Color.parse(value.removeprefix(ANSI))


COLOURS = (
    "background",
    "panel",
    "border",
    "text",
    "strong",
    "muted",
    "accent",
    "on_accent",
    "cursor",
    "resting_cursor",
    "passed",
    "warned",
    "failed",
    "error",
    "running",
    "tool",
    "key",
    "string",
    "number",
    "literal",
)
"""The names of the colours in every theme."""

SETTINGS = ("name", "title", "dark", "extends", "colours")

ANSI = "ansi_"
"""The prefix of the names of the terminal's own colours."""

_COLOUR = late_pattern(
    r"#[0-9a-fA-F]{6}|ansi_(?:default|(?:bright_)?(?:black|red|green|yellow|blue|magenta|cyan|white))"
)
_NAME = late_pattern(r"[A-Za-z][A-Za-z0-9_-]*")


class ThemeError(ValueError):
    """Raised for an invalid theme file. The message names the file, the error and the remedy."""


@dataclass(frozen=True)
class ThemeFile:
    """A theme: name, title, and colours by name."""

    name: str
    title: str
    dark: bool
    colours: Mapping[str, str]

    @property
    def is_ansi(self) -> bool:
        """Whether the theme uses the terminal's own colours."""
        return self.colours["background"].startswith(ANSI)


@dataclass(frozen=True)
class Themes:
    """All valid themes by name, in display order, and the problems of invalid themes."""

    by_name: Mapping[str, ThemeFile]
    problems: tuple[str, ...] = ()


FolderState = tuple[tuple[str, int, int], ...]
"""The state of a theme folder: name, modification time (ns) and size (bytes) of each file."""


def load_themes(bundled: Path, user_folder: Path) -> Themes:
    """Read the bundled themes and the themes in the user's folder `user_folder`, if the folder exists.

    A user's theme replaces a bundled theme of the same name. An invalid theme of the user is skipped and reported as a
    problem.

    Raises:
        ThemeError: A bundled theme is invalid."""
    themes: dict[str, ThemeFile] = {}
    for path in sorted(bundled.glob("*.toml")):
        theme = _theme(path, _read(path), {})
        themes[theme.name] = theme
    problems: list[str] = []
    waiting: dict[Path, dict[str, Any]] = {}
    for path in _theme_files(user_folder):
        try:
            waiting[path] = _read(path)
        except ThemeError as error:
            problems.append(str(error))
    # A theme may extend another file of the folder, so themes are read in the order of their dependencies.
    while waiting:
        try:
            theme = _theme(*_pop_independent(waiting), themes)
        except ThemeError as error:
            problems.append(str(error))
        else:
            themes[theme.name] = theme
    return Themes(themes, tuple(problems))


def folder_state(folder: Path) -> FolderState:
    """Return the state of a theme folder. Every change of a file changes the state."""
    found = []
    for path in _theme_files(folder):
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((path.name, status.st_mtime_ns, status.st_size))
    return tuple(found)


def _theme_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.toml") if not path.name.startswith("."))


def _pop_independent(waiting: dict[Path, dict[str, Any]]) -> tuple[Path, dict[str, Any]]:
    """Remove and return a file that extends no other waiting file.

    If the files extend each other in a cycle, removes one and raises ThemeError."""
    # A theme that extends its own name extends the bundled theme of the same name.
    names = {_name(path, data): path for path, data in waiting.items()}
    for path, data in waiting.items():
        if names.get(str(data.get("extends")), path) == path:
            return path, waiting.pop(path)
    path, data = waiting.popitem()
    raise ThemeError(f"{path}: extends {data['extends']!r}, which extends this one: extend a bundled theme")


def _name(path: Path, data: Mapping[str, Any]) -> str:
    return str(data.get("name", path.stem))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ThemeError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ThemeError(f"{path}: is not UTF-8: save it as UTF-8 text") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ThemeError(f"{path}: is not valid TOML: {error}") from error


_NO_THEME = ThemeFile("", "", dark=False, colours={})
"""The base of themes without `extends`."""


def _theme(path: Path, data: Mapping[str, Any], known: Mapping[str, ThemeFile]) -> ThemeFile:
    if unknown := next((key for key in data if key not in SETTINGS), None):
        raise ThemeError(f"{path}: {unknown} is not a setting of a theme: {_change_text(unknown, SETTINGS)}")
    name, extends, own = _name(path, data), data.get("extends"), data.get("colours", {})
    if not _NAME.fullmatch(name):
        raise ThemeError(f"{path}: name cannot be the name of a theme: use letters, digits, - and _, a letter first")
    if extends is not None and (not isinstance(extends, str) or extends not in known):
        raise ThemeError(f"{path}: extends names no theme that can be used: {_change_text(str(extends), tuple(known))}")
    base = known[extends] if extends is not None else _NO_THEME
    title, dark = data.get("title", name), data.get("dark", base.dark)
    if not isinstance(title, str) or not isinstance(dark, bool):
        raise ThemeError(f"{path}: title must be a text, and dark must be true or false")
    if not isinstance(own, dict):
        raise ThemeError(f"{path}: colours must be a table: write [colours], and below it text = '#d3d8df'")
    if unknown := next((key for key in own if key not in COLOURS), None):
        raise ThemeError(f"{path}: colours.{unknown} is not a colour of a theme: {_change_text(unknown, COLOURS)}")
    colours = {**base.colours, **own}
    for key in COLOURS:
        if key not in colours:
            raise ThemeError(f"{path}: colours.{key} is missing: give it, or extend a theme: extends = 'graphite'")
        if not isinstance(colours[key], str) or not _COLOUR.fullmatch(colours[key]):
            raise ThemeError(f"{path}: colours.{key} must be a colour such as '#74b3f0' or 'ansi_cyan'")
    return ThemeFile(name, title, dark, colours)


def _change_text(wrong: str, there_are: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(wrong, there_are, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there are {', '.join(there_are)}"
