"""Screens that close once, however often they are asked to."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from textual.await_complete import AwaitComplete
from textual.screen import Screen

Answer = TypeVar("Answer")


class ClosesOnce(Generic[Answer]):
    """Goes before the class of a screen. Textual closes the uppermost screen, whichever was asked to close: a second
    key, or a click, that was under way when the screen closed would close the one below it."""

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close the screen, unless it is not the one that is shown."""
        screen = cast(Screen[Answer], self)
        return Screen.dismiss(screen, result) if screen.is_current else AwaitComplete()
