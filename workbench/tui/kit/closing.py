"""Screens that close only once."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from textual.await_complete import AwaitComplete
from textual.screen import Screen

Answer = TypeVar("Answer")


class ClosesOnce(Generic[Answer]):
    """A mixin to put before the class of a screen. Textual closes the top screen, whichever was asked to: a second key
    or click during closing would close the screen below."""

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close the screen, if it is the top one."""
        screen = cast(Screen[Answer], self)
        return Screen.dismiss(screen, result) if screen.is_current else AwaitComplete()
