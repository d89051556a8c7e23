"""Converts a theme's colours to a Textual theme and to the styles of the app's own lines."""

from __future__ import annotations

from typing import Literal, get_args

from rich.color import Color
from rich.style import Style
from textual.theme import Theme

from workbench.tui.lines.spans import Role
from workbench.tui.terminal.theme_files import ANSI, ThemeFile

_ROLE_COLOURS: dict[Role, str] = {"heading": "accent", "comment": "muted"}
_BOLD: frozenset[Role] = frozenset({"strong", "heading", "failed", "error", "running", "tool"})
_ITALIC: frozenset[Role] = frozenset({"comment"})


def textual_theme(theme: ThemeFile) -> Theme:
    """Return the theme for Textual's own widgets."""
    colour = theme.colours
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
            "input-selection-background": colour["cursor"],
            "ansi-background": "ansi_black" if theme.dark else "ansi_white",
            "ansi-foreground": "ansi_white" if theme.dark else "ansi_black",
        },
    )


Ground = Literal["background", "panel", "cursor", "resting_cursor"]
"""The background of a line. The cursor rests if its pane has no focus."""


class Palette:
    """The styles of the app's own lines under one theme.

    With the terminal's own colours, or none, the cursor is reversed and secondary text is dim, since no colour of ours
    is sure to be readable.
    """

    def __init__(self, theme: ThemeFile, *, no_colour: bool = False) -> None:
        self._colours = {name: _rich_colour(value) for name, value in theme.colours.items()}
        self._plain = theme.is_ansi or no_colour
        self._styles = {
            (role, ground): self._made(role, ground) for role in get_args(Role) for ground in get_args(Ground)
        }

    def style(self, role: Role, ground: Ground = "background") -> Style:
        """Return the style of a role on a ground."""
        return self._styles[role, ground]

    def _made(self, role: Role, ground: Ground) -> Style:
        bold = True if role in _BOLD else None
        italic = True if role in _ITALIC else None
        if role == "badge":
            if self._plain:
                return Style(bold=True, reverse=True)
            return Style(color=self._colours["on_accent"], bgcolor=self._colours["accent"], bold=True)
        if role == "match" and self._plain:
            return Style(bold=True, underline=True, reverse=True if ground == "cursor" else None)
        if role == "selected":
            return Style(reverse=True) if self._plain else self._made("text", "cursor")
        if role == "match":
            return Style(color=self._colours["background"], bgcolor=self._colours["warned"])
        if self._plain and ground == "cursor":
            return Style(bold=bold, italic=italic, reverse=True)
        return Style(
            color=self._colours[_ROLE_COLOURS.get(role, role)],
            bgcolor=self._colours[ground],
            bold=bold,
            italic=italic,
            dim=True if self._plain and role in ("muted", "comment") else None,
            underline=True if self._plain and ground == "resting_cursor" else None,
        )


def _rich_colour(value: str) -> Color:
    return Color.parse(value.removeprefix(ANSI))
