"""What services and screens need from the app: notices, dialogs, screens, and background work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from textual.await_complete import AwaitComplete
from textual.screen import Screen
from textual.worker import Worker

from workbench.show.spans import Role
from workbench.tools.python_code import in_thread
from workbench.tui.kit.actions import Action, Pane

Answer = TypeVar("Answer")


class ClosesOnce(Generic[Answer]):
    """A mixin to put before the class of a screen. Textual closes the top screen, whichever was asked to: a second key
    or click during closing would close the screen below."""

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close the screen, if it is the top one."""
        screen = cast(Screen[Answer], self)
        return Screen.dismiss(screen, result) if screen.is_current else AwaitComplete()


Take: TypeAlias = Callable[[Answer | None], None]
"""Takes the answer of a closed screen, `None` if there is none."""

Work: TypeAlias = Coroutine[Any, Any, object] | Callable[[], Awaitable[object]]
"""A coroutine, or a function that creates one when the work begins, for work that may be cancelled before."""


class Announce(Protocol):
    """Shows a notice at the bottom of a screen."""

    def __call__(self, text: str, role: Role = "text", sign: str = "") -> None: ...


class Stage(Protocol):
    """The app, as seen from its services and screens."""

    def announce(self, text: str, role: Role = "text", sign: str = "", *, gently: bool = False) -> None:
        """Show a notice at the bottom of the top screen, or of the main one if the top screen has no place for it. With
        `gently`, it is shown on the main screen and does not replace a warning."""
        ...

    def end_notice(self, only: str) -> None:
        """Remove a notice of the main screen early, if it is `only` this one."""
        ...

    async def ask(self, question: Screen[Answer]) -> Answer | None:
        """Show a screen above all others and wait for its answer. Works only inside `work`."""
        ...

    def show(
        self, screen: Screen[Answer], take: Take[Answer] | None = None, *, over: Screen[Any] | None = None
    ) -> None:
        """Show a screen above all others. `take` is called with its answer.

        A screen that took a while to create names the screen `over` which it was requested. If that is no longer the
        top one, nothing happens: the user has gone elsewhere, or a dialog is open.
        """
        ...

    def work(self, work: Work, group: str, *, exclusive: bool = False) -> Worker[object]:
        """Start background work. `exclusive` work cancels earlier work of its group."""
        ...

    @property
    def shown(self) -> Screen[Any]:
        """The top screen, which may be a dialog."""
        ...

    def shows(self, screen: Screen[Any]) -> bool:
        """Return whether this is the top screen."""
        ...

    @property
    def shows_main(self) -> bool:
        """Whether the main screen is the top one."""
        ...

    def call_later(self, callback: Callable[..., Any], *args: Any) -> bool:
        """Call a function after the waiting messages are handled."""
        ...

    def acted(self) -> None:
        """Note that the user did something, so that quitting with unsaved data asks again."""
        ...

    def suspend(self) -> AbstractContextManager[None]:
        """Give the terminal to a different program."""
        ...

    def copy(self, text: str, what: str, announce: Announce) -> None:
        """Copy a text without its secrets, and announce where it went. `what` is its name."""
        ...

    def keys_elsewhere(self, screen: str) -> Sequence[tuple[str, Sequence[Action]]]:
        """Return the keys of all places but a screen, by place, for its help."""
        ...

    def quit(self) -> None:
        """Close all screens above the main one and quit, which may ask something."""
        ...


class Panes(Protocol):
    """The panes of the main screen, as seen from its actions."""

    @property
    def pane(self) -> Pane:
        """The pane that has, or last had, the focus."""
        ...

    @property
    def panes_in_sight(self) -> tuple[Pane, ...]:
        """The visible panes."""
        ...

    def go_to(self, pane: Pane) -> None:
        """Focus a pane, showing it if it is hidden."""
        ...

    def bring(self, pane: Pane) -> None:
        """Show a pane without moving the focus, if there is room for both."""
        ...

    def refresh_bars(self) -> None:
        """Update titles, status and keys."""
        ...

    def show_titles(self) -> None:
        """Update the titles of the panes."""
        ...


Result = TypeVar("Result")


async def in_background(work: Callable[[], Result]) -> Result:
    """Run a function in a thread and return its result. The app does not wait for it when it ends, so anything that
    writes belongs elsewhere."""
    return await in_thread(work, name="worked out")
