"""What services and screens may ask of the app: to announce, show or ask something, and to work in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from textual.screen import Screen
from textual.worker import Worker

from workbench.tui.kit.actions import Pane
from workbench.tui.kit.closing import Answer
from workbench.tui.lines.spans import Role

Take: TypeAlias = Callable[[Answer | None], None]
"""Takes the answer of a screen that has closed; `None` when it was left without one."""

Work: TypeAlias = Coroutine[Any, Any, object] | Callable[[], Awaitable[object]]
"""A coroutine, or a function that makes one when the work begins: for work that may be called off before."""


class Announce(Protocol):
    """Shows a notice at the bottom of a screen."""

    def __call__(self, text: str, role: Role = "text", sign: str = "") -> None: ...


class Stage(Protocol):
    """The app, as what stands behind any of its screens knows it."""

    def announce(self, text: str, role: Role = "text", sign: str = "", *, gently: bool = False) -> None:
        """Show a notice at the bottom of the screen that is shown, or of the main one where that has no place for it.
        With `gently` it is shown on the main screen, and not in the place of a warning."""
        ...

    def end_notice(self, only: str) -> None:
        """Take back a notice of the main screen before its time is over, if it is `only` this one."""
        ...

    async def ask(self, question: Screen[Answer]) -> Answer | None:
        """Show a screen over all others and wait for its answer. Works only inside `work`."""
        ...

    def show(
        self, screen: Screen[Answer], take: Take[Answer] | None = None, *, over: Screen[Any] | None = None
    ) -> None:
        """Show a screen over all others; `take` is called with its answer.

        A screen that took a while to make names the one `over` which it was wanted. If that one is not shown any more,
        nothing happens: the person has gone elsewhere, or a dialog asks something and keys are meant for that.
        """
        ...

    def work(self, work: Work, group: str, *, exclusive: bool = False) -> Worker[object]:
        """Begin work beside the messages of the app; `exclusive` work calls off what its group still does."""
        ...

    @property
    def shown(self) -> Screen[Any]:
        """The screen over all others, a dialog too."""
        ...

    def shows(self, screen: Screen[Any]) -> bool:
        """Returns whether this very screen is shown, with nothing over it."""
        ...

    @property
    def shows_main(self) -> bool:
        """Whether the main screen is shown, with nothing over it."""
        ...

    def call_later(self, callback: Callable[..., Any], *args: Any) -> bool:
        """Call a function once the messages that wait now are handled."""
        ...

    def acted(self) -> None:
        """Something was done: whoever asks to quit after that is asked again where something would be lost."""
        ...

    def suspend(self) -> AbstractContextManager[None]:
        """Give the terminal to another program meanwhile."""
        ...

    def copy(self, text: str, what: str, announce: Announce) -> None:
        """Copy a text, without its secrets, and announce where it went; `what` is what to call it."""
        ...

    def quit(self) -> None:
        """Close the screens over the main one and quit, which may ask something."""
        ...


class Panes(Protocol):
    """The panes of the main screen, as what its keys do knows them."""

    @property
    def pane(self) -> Pane:
        """The pane that has the keyboard, or had it last."""
        ...

    @property
    def panes_in_sight(self) -> tuple[Pane, ...]:
        """The panes that there is room for now."""
        ...

    def go_to(self, pane: Pane) -> None:
        """Focus a pane, bringing it to the screen where it is not."""
        ...

    def bring(self, pane: Pane) -> None:
        """Show a pane without leaving the one in use, where there is room for both."""
        ...

    def refresh_bars(self) -> None:
        """Show titles, status and keys as things are now."""
        ...

    def show_titles(self) -> None:
        """Name the panes and what they show."""
        ...
