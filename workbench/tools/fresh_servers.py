"""Servers with `state = "run"`: each run gets a new server. The server for the next run starts in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from workbench.dataclasses import dataclass
from workbench.limits import MAX_FAILED_STARTS, MAX_SERVED_RUNS
from workbench.tools.answer import ServerError
from workbench.tools.grant import Grant
from workbench.tools.listings import ListingChange
from workbench.trajectory.events import ToolDefinition

if TYPE_CHECKING:
    from workbench.tools.mcp_server import McpServer


@dataclass(frozen=True)
class StartingServer:
    server: McpServer
    start: asyncio.Task[None]


BeginStart = Callable[[Grant, bool], StartingServer]
"""Begins to start a server. The second argument is true for the first server of a batch, whose start is announced to
the user."""


class FreshServers:
    """Starts a new server for each run, always from the same definition.

    `name` is the server's name in messages. Use this object on one event loop."""

    def __init__(self, name: str, begin: BeginStart, background: BackgroundClosing) -> None:
        self._name = name
        self._begin = begin
        self._background = background
        self._spare: StartingServer | None = None
        self._used: set[McpServer] = set()
        self._taken = 0
        self._tools: tuple[ToolDefinition, ...] | None = None
        """The tools that the first server of the batch listed."""
        self._failures = 0
        self._failure: ServerError | None = None
        self._told = False

    def is_first_report(self) -> bool:
        """Return `True` on the first call in a batch.

        A notice that concerns all servers is then reported by one run only."""
        told, self._told = self._told, True
        return not told

    async def acquire(self, grant: Grant) -> McpServer:
        """Return a server that no other run has used. Pass it to `release` after the run.

        Raises ServerError if the server does not start, or if its tools differ from those of the batch's first
        server."""
        if self._failure is not None and self._failures >= MAX_FAILED_STARTS:
            message = MAX_FAILED_STARTS.reached(server=self._name, error=str(self._failure))
            raise ServerError(message, self._failure.output)
        self._taken += 1
        starting, self._spare = self._spare, None
        if starting is not None and starting.server.down_reason is not None:
            self._background.close_later(starting.server.close())
            starting = None
        if starting is None:
            starting = self._begin(grant, self._taken == 1)
        server = starting.server
        self._used.add(server)
        # The server for the next run is started only from the second run on, because a single run would never use it.
        if self._taken > 1 and len(self._used) < MAX_SERVED_RUNS:
            self._spare = self._begin(grant, False)
        try:
            # If the run is stopped meanwhile, the start continues, and the server is closed below.
            await asyncio.shield(starting.start)
            self._compare(server.tools)
        except BaseException as error:
            if isinstance(error, ServerError):
                self._failures, self._failure = self._failures + 1, error
            self.release(server)
            raise
        self._failures = 0
        return server

    def release(self, server: McpServer) -> asyncio.Task[None]:
        """Close a server after its run, in the background. Returns the task that closes it."""
        self._used.discard(server)
        return self._background.close_later(server.close())

    def begin_batch(self) -> None:
        """Begin a new batch: servers may list different tools than before, and may start again after failures."""
        self.drop_spare()
        self._tools, self._failure, self._failures, self._taken = None, None, 0, 0
        self._told = False

    def drop_spare(self) -> None:
        if self._spare is not None:
            self._background.close_later(self._spare.server.close())
            self._spare = None

    async def close(self) -> None:
        """Close all servers, including those in use."""
        servers = [*self._used]
        if self._spare is not None:
            servers.append(self._spare.server)
        self._used.clear()
        self._spare = None
        await asyncio.gather(*(server.close() for server in servers))

    def _compare(self, tools: tuple[ToolDefinition, ...]) -> None:
        if self._tools is None:
            self._tools = tools
        elif tools != self._tools:
            raise ServerError(
                f"server {self._name!r} lists different tools than for the first run of this batch, so the two cannot "
                f"be compared: {ListingChange.between(self._tools, tools)}"
            )


class BackgroundClosing:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def close_later(self, closing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Await `closing`, which closes a server, in the background. Return the task."""
        task = asyncio.get_running_loop().create_task(closing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait_closed(self) -> None:
        """Wait until every server that is being closed in the background is closed."""
        while self._tasks:
            await asyncio.wait(self._tasks)


class RunServers:
    """The servers that only one run uses.

    `places` limits how many runs can have such servers at once. A run occupies its place until all its servers have
    ended."""

    def __init__(self, places: asyncio.Semaphore, background: BackgroundClosing) -> None:
        self._places = places
        self._background = background
        self._held: list[tuple[FreshServers, McpServer]] = []
        self._has_place = False
        self._closed = False

    async def wait_for_place(self) -> None:
        """Wait for a free place. Call this method once, before the first server is acquired."""
        # A run occupies one place for all its servers. If each server occupied a place, two runs could wait for each
        # other for ever.
        await self._places.acquire()
        self._has_place = True

    async def acquire(self, servers: FreshServers, grant: Grant) -> McpServer:
        """Return a server that only this run uses.

        Raises ServerError."""
        server = await servers.acquire(grant)
        if self._closed:
            servers.release(server)
        else:
            self._held.append((servers, server))
        return server

    def close(self) -> None:
        """Close all servers in the background. A server that is still starting is closed after its start."""
        self._closed = True
        ending = [servers.release(server) for servers, server in self._held]
        self._held.clear()
        if self._has_place:
            self._has_place = False
            self._background.close_later(self._free_after(ending))

    async def _free_after(self, ending: Sequence[asyncio.Task[None]]) -> None:
        if ending:
            await asyncio.wait(ending)
        self._places.release()
