"""The app as services and screens see it: notices, dialogs, screens, and background work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from textual.await_complete import AwaitComplete
from textual.screen import Screen

from workbench.show.spans import Role
from workbench.threads import in_thread

Answer = TypeVar("Answer")


class ClosesOnce(Generic[Answer]):
    """A mixin to put before the class of a screen.

    Textual closes the top screen, whichever was asked to: a second key or click during closing would close the screen
    below."""

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close the screen, if it is the top one."""
        screen = cast("Screen[Answer]", self)
        if screen.is_current:
            return Screen.dismiss(screen, result)
        return AwaitComplete()


Take: TypeAlias = Callable[[Answer | None], None]
"""Takes the answer of a closed screen, `None` if there is none."""

Work: TypeAlias = Coroutine[Any, Any, object] | Callable[[], Awaitable[object]]
"""A coroutine, or a function that creates one when the work begins, for work that may be cancelled before."""


class Announce(Protocol):
    """Shows a notice at the bottom of a screen."""

    def __call__(self, text: str, role: Role = "text", sign: str = "") -> None: ...


Result = TypeVar("Result")


async def in_background(work: Callable[[], Result]) -> Result:
    """Run a function in a thread and return its result.

    The app does not wait for it when it ends, so anything that writes belongs elsewhere."""
    return await in_thread(work, name="worked out")
