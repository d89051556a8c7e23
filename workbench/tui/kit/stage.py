"""What screens and services share: a safe way to close a screen, notices, and background work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from textual.await_complete import AwaitComplete
from textual.screen import Screen

from workbench.show.spans import Role
from workbench.threads import in_thread

Answer = TypeVar("Answer")


class DismissOnce(Generic[Answer]):
    """A mixin that ignores a second `dismiss` of the same screen. It must precede the screen class among the bases."""

    # Textual's `dismiss` closes whatever screen is on top. While a screen is closing, a second key or click would
    # therefore close the screen below.

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close the screen if it is the top screen. Otherwise do nothing."""
        screen = cast("Screen[Answer]", self)
        if screen.is_current:
            return Screen.dismiss(screen, result)
        return AwaitComplete()


AnswerCallback: TypeAlias = Callable[[Answer | None], None]
"""Called with the answer of a closed screen, `None` without an answer."""

# Python warns about a coroutine that is never awaited. Work that may be cancelled before its start is passed as a
# function.
BackgroundWork: TypeAlias = Coroutine[Any, Any, object] | Callable[[], Awaitable[object]]
"""Background work: a coroutine, or a function called at the start that returns an awaitable."""


class Announce(Protocol):
    """A function that shows a notice at the bottom of a screen."""

    def __call__(self, text: str, role: Role = "text", sign: str = "") -> None: ...


Result = TypeVar("Result")


async def in_background(work: Callable[[], Result]) -> Result:
    """Run a function in a thread and return the result.

    The app does not wait for the thread when it quits, so the function must not write files."""
    return await in_thread(work, name="worked out")
