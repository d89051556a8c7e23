"""What the commands of all screens beside the main one have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from workbench.tui.actions import ScreenName
    from workbench.tui.commands.areas import Method
    from workbench.tui.screens.beside import BesideScreen
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.workbench import Workbench

Shown = TypeVar("Shown", bound="BesideScreen[Any]")


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
        app.main.call_after_refresh(app.ask_to_quit)

    own = {"help": lambda shown: shown.help(), "quit": quit_, **methods}
    return {f"{name}.{key}": performing(do) for key, do in own.items()}
