"""What the commands of all screens beside the main one have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from textual.screen import Screen

if TYPE_CHECKING:
    from workbench.tui.actions import ScreenName
    from workbench.tui.commands.areas import Method
    from workbench.tui.screens.beside import BesideScreen
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.workbench import Workbench

Answer = TypeVar("Answer")
Shown = TypeVar("Shown", bound="BesideScreen[Any]")
Take: TypeAlias = Callable[[Answer | None], None]


def push_from(app: Workbench, asked: Screen[Any], screen: Screen[Answer], take: Take[Answer] | None = None) -> None:
    """Show a screen that took a while to make, if the one on which it was asked for is still shown: else somebody has
    gone elsewhere meanwhile, or a dialog asks something, and keys are meant for that. `take` is told its answer."""
    if app.screen is asked:
        app.push_screen(screen, take)


def on_beside(
    app: Workbench, name: ScreenName, methods: dict[str, Callable[[Shown], object]]
) -> dict[str, Callable[[MainScreen], object]]:
    """The methods of a screen by the ids of its actions: `methods` by what follows the screen's name in them, help and
    quit. They do nothing while another screen is shown."""

    def performing(do: Callable[[Shown], object]) -> Method:
        def perform(_: MainScreen) -> None:
            # By its name, so that a screen that was never opened need not be imported.
            if getattr(app.screen, "NAME", None) == name:
                do(cast(Shown, app.screen))

        return perform

    def quit_(shown: Shown) -> None:
        """Quit by way of the main screen, where there may be something to ask."""
        shown.dismiss()
        while app.screen is not app.main:
            app.pop_screen()
        app.main.call_after_refresh(app.ask_to_quit)

    own = {"help": lambda shown: shown.help(), "quit": quit_, **methods}
    return {f"{name}.{key}": performing(do) for key, do in own.items()}
