"""Opens the screen of a program and its model: asks for the endpoint, and starts recording."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.models import ConfigError, Provider
from workbench.tui.kit.stage import in_background
from workbench.tui.tree.new_suites import NewSuites

if TYPE_CHECKING:
    from workbench.tui.observed.dialogs import Wanted
    from workbench.tui.shell.workbench import Workbench


_LISTEN = "127.0.0.1:0"


class Observer:
    """Asks for the endpoint to record, and starts.

    The last input is proposed again until the program ends."""

    def __init__(self, app: Workbench) -> None:
        self._stage = app
        self._selection = app.selection
        self._program = app.program
        self._typed: Wanted | None = None

    def ask(self, problem: str = "") -> None:
        """Ask for the endpoint to record, naming the problem with the last input."""
        from workbench.tui.observed.dialogs import ObserveScreen, Wanted

        def take(wanted: Wanted | None) -> None:
            if wanted is not None:
                self._typed = wanted
                self._stage.work(self._begin(wanted), "observe", exclusive=True)

        proposed = self._typed or Wanted(self._endpoint()[0], _LISTEN)
        self._stage.show(ObserveScreen(proposed, problem), take)

    def _endpoint(self) -> tuple[str, Provider | None]:
        """Return the endpoint of the chosen model, or of the suite's own, and its API."""
        suite = self._selection.suite
        now = suite.file.suite if suite is not None else None
        folder = suite.path.parent if suite is not None else Path()
        for models, by_suite in ((self._selection.models, False), (now.models if now is not None else (), True)):
            for model in models:
                with suppress(ConfigError):
                    spec = self._program.models.resolve(model, folder, by_suite=by_suite)
                    if spec.base_url:
                        return spec.base_url, spec.provider
        return "openai", None

    async def _begin(self, wanted: Wanted) -> None:
        """Listen, and show the screen; ask again, with the reason, where that is impossible."""
        await in_background(_imported)
        from workbench.exchange.observed.proxy import ListenError, listen_at, upstream_at
        from workbench.tui.observed.dialogs import CaseMaker
        from workbench.tui.observed.live import LiveRecording
        from workbench.tui.observed.screen import LiveScreen, environment_line

        loop, shown = asyncio.get_running_loop(), list[LiveScreen]()

        def take_news() -> None:
            for screen in shown:
                screen.take_news()

        def wake() -> None:
            with suppress(RuntimeError):  # the app has ended
                loop.call_soon_threadsafe(self._stage.call_later, take_news)

        live = LiveRecording(upstream_at(wanted.upstream), self._program.secrets, wake)
        try:
            await live.start(listen_at(wanted.listen))
        except ListenError as error:
            self.ask(str(error))
            return
        if not self._stage.shows_main:  # the user has gone elsewhere
            live.stop()
            return
        url, provider = self._endpoint()
        line = environment_line(live.address, provider if url == live.upstream else None, live.upstream)
        maker = CaseMaker(self._stage, self._selection, self._stage.part(NewSuites), self._program.secrets)
        shown.append(LiveScreen(self._stage, live, line, self._program.secrets, maker.make))
        self._stage.show(shown[0], lambda _: self._selection.show_again())


def _imported() -> None:
    """Import the slow modules in a thread, so that the screen does not stand still."""
    import aiohttp.web  # noqa: F401

    import workbench.tui.observed.screen  # noqa: F401
