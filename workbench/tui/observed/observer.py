"""Starts a recording: asks for the endpoint, starts the proxy, and shows the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.models import ConfigError, Provider
from workbench.tui.kit.stage import in_background
from workbench.tui.tree.new_suites import NewSuites

if TYPE_CHECKING:
    from workbench.tui.observed.dialogs import TypedRecording
    from workbench.tui.shell.workbench import Workbench


_LISTEN = "127.0.0.1:0"
"""The proposed address of the proxy: a free port of this machine."""


class Observer:
    """Starts recordings. The form of the next recording contains the user's last input."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._program = app.program
        self._typed: TypedRecording | None = None

    def ask(self, problem: str = "") -> None:
        """Ask for the endpoint, and start the recording.

        `problem` is why the last attempt failed, "" before any attempt."""
        from workbench.tui.observed.dialogs import ObserveScreen, TypedRecording

        def on_answer(recording: TypedRecording | None) -> None:
            if recording is not None:
                self._typed = recording
                self._app.work(self._begin(recording), "observe", exclusive=True)

        proposed = self._typed or TypedRecording(self._endpoint()[0], _LISTEN)
        self._app.show(ObserveScreen(proposed, problem), on_answer)

    def _endpoint(self) -> tuple[str, Provider | None]:
        folder = Path()
        wanted: list[tuple[Sequence[str], bool]] = [(self._selection.models, False)]
        suite = self._selection.suite
        if suite is not None:
            folder = suite.path.parent
            if suite.file.suite is not None:
                wanted.append((suite.file.suite.models, True))
        for models, by_suite in wanted:
            for model in models:
                with suppress(ConfigError):
                    spec = self._program.models.resolve(model, folder, by_suite=by_suite)
                    # Requests to a cloud are signed for the cloud's own address, so a proxy cannot forward them.
                    if spec.base_url and spec.cloud is None:
                        return spec.base_url, spec.provider
        return "openai", None

    async def _begin(self, recording: TypedRecording) -> None:
        await in_background(_imported)
        from workbench.exchange.observed.proxy import ListenError, parse_listen_address, parse_upstream
        from workbench.tui.observed.dialogs import CaseMaker
        from workbench.tui.observed.live import LiveRecording
        from workbench.tui.observed.screen import LiveScreen, environment_line

        loop, shown = asyncio.get_running_loop(), list[LiveScreen]()

        def show_observations() -> None:
            for screen in shown:
                screen.show_observations()

        # The proxy's thread calls `wake`, possibly before the screen exists. When the screen opens, it takes what has
        # come by then.
        def wake() -> None:
            # The call raises RuntimeError if the app has ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._app.call_later, show_observations)

        live = LiveRecording(parse_upstream(recording.upstream), self._program.secrets, wake)
        try:
            await live.start(parse_listen_address(recording.listen))
        except ListenError as error:
            self.ask(str(error))
            return
        # The user may have opened another screen meanwhile.
        if not self._app.shows_main:
            live.stop()
            return
        url, provider = self._endpoint()
        line = environment_line(live.address, provider if url == live.upstream else None, live.upstream)
        maker = CaseMaker(self._app, self._selection, self._app.part(NewSuites), self._program.secrets)
        shown.append(LiveScreen(self._app, live, line, self._program.secrets, maker.make))
        self._app.show(shown[0], lambda _: self._selection.notify_all())


def _imported() -> None:
    """Import modules that load slowly. Called in a thread, so that the app still handles keys."""
    import aiohttp.web  # noqa: F401

    import workbench.tui.observed.screen  # noqa: F401
