"""The connections of `workbench serve`: a bounded number, and none that says nothing for long."""

from __future__ import annotations

import asyncio
import logging

from aiohttp import web

SILENT_S = 10.0
"""How long a connection may take until it has asked for something that it may have."""
IDLE_S = 75.0
"""How long one that was let in is kept without a request."""


class Connections:
    """Which are open. With `most` of them, a new one takes the place of the one that waits longest to be let in;
    without such a one it is refused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[Connection] = set()
        self._outside: dict[Connection, asyncio.TimerHandle] = {}
        """Those that were not let in, the first one first, with what ends them."""

    def made(self, connection: Connection) -> bool:
        """Take a new connection in. Returns whether there is a place for it."""
        if len(self._open) >= self._most:
            if not self._outside:
                return False
            self._end(next(iter(self._outside)))
        self._open.add(connection)
        self._outside[connection] = asyncio.get_running_loop().call_later(SILENT_S, self._end, connection)
        return True

    def let_in(self, connection: object) -> None:
        """It has asked as only a visitor can."""
        if isinstance(connection, Connection) and (ending := self._outside.pop(connection, None)) is not None:
            ending.cancel()

    def lost(self, connection: Connection) -> None:
        """It has ended."""
        self.let_in(connection)
        self._open.discard(connection)

    def _end(self, connection: Connection) -> None:
        self.lost(connection)
        if connection.transport is not None:
            connection.transport.abort()


class Connection(web.RequestHandler):
    """One connection, of HTTP."""

    __slots__ = ("_connections",)

    def __init__(self, connections: Connections, server: web.Server, logger: logging.Logger) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # which is none, by its documentation
            logger=logger,
            keepalive_timeout=IDLE_S,
        )
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._connections.made(self):
            super().connection_made(transport)
        elif isinstance(transport, asyncio.Transport):
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.lost(self)
        super().connection_lost(exc)
