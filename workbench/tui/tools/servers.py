"""The servers of the screen of tools. They are started and stopped on the engine's thread and watched without
polling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from workbench.engine.server_calls import ServerOf, Serving
from workbench.tools.connection import ServerStatus
from workbench.tui.runs.runner import Runner
from workbench.tui.tools.shelves import Shelf, ShelfKey

if TYPE_CHECKING:
    from workbench.tools.pool import Grant


class ToolServers:
    """Starts and stops servers, and reports every change of their state to `tell` on the app's loop."""

    def __init__(
        self, runner: Runner, call_later: Callable[..., object], tell: Callable[[ShelfKey, ServerStatus], None]
    ) -> None:
        self._runner = runner
        self._call_later = call_later
        self._tell = tell
        self._watched: dict[ShelfKey, Future[ServerStatus]] = {}

    async def look(self, shelves: Iterable[Shelf]) -> None:
        """Report the present state of servers. Without a runtime, none was started."""
        serving = self._runner.serving
        servers = [(shelf.key, server) for shelf in shelves if (server := server_of(shelf)) is not None]
        if serving is None or not servers:
            return
        found = await asyncio.wrap_future(serving.status([server for _, server in servers]))
        for (key, server), status in zip(servers, found, strict=True):
            self._report(serving, key, server, status)

    async def start(self, key: ShelfKey, server: ServerOf, grant: Grant) -> ServerStatus:
        """Start a server, or restart it if it is down. Returns its state."""
        self._forget(key)
        serving = await self._runner.open_serving()
        self._tell(key, ServerStatus("starting"))
        status = await asyncio.wrap_future(serving.start(server, grant))
        self._report(serving, key, server, status)
        return status

    async def stop(self, key: ShelfKey, server: ServerOf) -> None:
        """Stop a server."""
        self._forget(key)
        serving = await self._runner.open_serving()
        self._report(serving, key, server, await asyncio.wrap_future(serving.stop(server)))

    def close(self) -> None:
        """Stop reporting. Servers keep their state."""
        for key in tuple(self._watched):
            self._forget(key)

    def _report(self, serving: Serving, key: ShelfKey, server: ServerOf, status: ServerStatus) -> None:
        self._forget(key)
        self._tell(key, status)
        if status.state not in ("starting", "running"):
            return
        loop = asyncio.get_running_loop()
        future = self._watched[key] = serving.changed(server, status)

        def on_done(done: Future[ServerStatus]) -> None:
            if not (done.cancelled() or loop.is_closed()):
                loop.call_soon_threadsafe(self._call_later, self._changed, serving, key, server, done)

        future.add_done_callback(on_done)

    def _changed(self, serving: Serving, key: ShelfKey, server: ServerOf, done: Future[ServerStatus]) -> None:
        if self._watched.get(key) is done:
            self._report(serving, key, server, done.result())

    def _forget(self, key: ShelfKey) -> None:
        if (future := self._watched.pop(key, None)) is not None:
            future.cancel()


def server_of(shelf: Shelf) -> ServerOf | None:
    """Return the server of a shelf, `None` for tools defined in the suite."""
    return ServerOf(shelf.file.path, shelf.server) if shelf.server is not None else None
