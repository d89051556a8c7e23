"""What the actions of `actions.form` do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.glyphs import GLYPHS
from workbench.tui.widgets.form_view import FormView

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen


class FormCommands:
    """The methods of `actions.form`."""

    def __init__(self) -> None:
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "form.edit": lambda screen: _form(screen).edit(),
            "form.left": lambda screen: _form(screen).next_cell(-1),
            "form.right": lambda screen: _form(screen).next_cell(1),
            "form.add": lambda screen: _said(screen, _form(screen).add()),
            "form.duplicate": lambda screen: _said(screen, _form(screen).duplicate()),
            "form.remove": lambda screen: _said(screen, _form(screen).take_away()),
            "form.up": lambda screen: _said(screen, _form(screen).move(-1)),
            "form.down": lambda screen: _said(screen, _form(screen).move(1)),
            "form.group": lambda screen: _said(screen, _form(screen).group()),
            "form.ungroup": lambda screen: _said(screen, _form(screen).ungroup()),
            "form.every": lambda screen: _form(screen).show_every_key(),
        }


def _form(screen: MainScreen) -> FormView:
    return screen.query_one("#form", FormView)


def _said(screen: MainScreen, why: str | None) -> None:
    if why is not None:
        screen.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
