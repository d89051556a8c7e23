"""Agrees with a server on the protocol's version: first asks for the newest version, then sends `initialize`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from workbench.tools.connection import Connection, TimeLimits

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.session import ClientSession

_POLL_INTERVAL_S = 0.05

_QUESTION = "server/discover"


class SilentServerError(Exception):
    """Raised if a server has read `server/discover`, but answers neither this request nor `initialize`."""


class Handshake:
    """The first requests to a server whose protocol version is not known.

    A server may take long to start. Therefore the time limit for its answer begins when it has read the first
    request."""

    def __init__(self, connection: Connection, limits: TimeLimits) -> None:
        self._connection = connection
        self._limits = limits
        self._has_begun: bool | None = False
        """Whether the server has read the first request, `None` if that cannot be known."""
        self.asked = False
        """Whether `server/discover` was sent."""
        self.agreed = False
        """Whether the server has answered, so that the protocol is known."""
        self.unanswered = False
        """Whether `server/discover` was not answered in time, so that `initialize` was sent as well."""

    def attach_to(self, client: Client) -> None:
        """Replace the client's own negotiation of the protocol, which would wait ten seconds for an answer."""
        build = client._build_session

        async def built(exit_stack: AsyncExitStack[bool | None]) -> ClientSession:
            session = await build(exit_stack)
            self._attach_to_session(session)
            return session

        client._build_session = built  # type: ignore[method-assign]

    def _attach_to_session(self, session: ClientSession) -> None:
        from mcp import MCPError
        from mcp_types import REQUEST_TIMEOUT

        send, discover = session._dispatcher.send_raw_request, session.send_discover

        async def untimed(
            method: str, params: Mapping[str, Any] | None, opts: Any = None, **more: Any
        ) -> dict[str, Any]:
            if method == _QUESTION:
                opts = {**opts, "timeout": None}
            return await send(method, params, opts, **more)

        async def first_answer(version: str) -> dict[str, Any]:
            self.asked = True
            asked = asyncio.create_task(discover(version))
            greeted: asyncio.Task[Any] | None = None
            try:
                if await self._answered(asked, seconds=self._limits.probe_s):
                    return asked.result()
                # The server may be slow. Both requests stay open, and the first good answer counts.
                self.unanswered = True
                greeted = asyncio.create_task(session.initialize())
                answered = await self._answered(asked, greeted, seconds=self._limits.greeting_s)
                if not answered and self._has_begun and self._connection.is_direct:
                    self._connection.kill()
                    raise SilentServerError
                await asyncio.wait({asked, greeted}, return_when=asyncio.FIRST_COMPLETED)
                # The server was slow, not silent, if it has answered by now, even with a refusal.
                self.unanswered = not asked.done()
                if greeted.done() and greeted.exception() is None:
                    # This error makes the client use the answer to `initialize`, which has come already.
                    raise MCPError(REQUEST_TIMEOUT, f"{_QUESTION} was not answered")
                result = await asked
                self.unanswered = False
                return result
            except MCPError:
                # The server refused after `initialize` had been sent. `initialize` is not sent a second time.
                if greeted is not None:
                    await asyncio.wait({greeted})
                raise
            finally:
                for task in (asked, greeted):
                    if task is not None:
                        await _end(task)

        session._dispatcher.send_raw_request = untimed  # type: ignore[method-assign]
        session.send_discover = first_answer  # type: ignore[method-assign]

    async def _answered(self, *tasks: asyncio.Task[Any], seconds: float) -> bool:
        """Wait until one of the tasks is done. Return `False` if that takes too long.

        The wait is at most `seconds`, counted from when the server has read everything that was sent."""
        left = seconds
        while left > 0:
            done, _ = await asyncio.wait(tasks, timeout=_POLL_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return True
            if self._has_begun is False:
                self._has_begun = self._connection.has_read
            if self._has_begun is not False:
                left -= _POLL_INTERVAL_S
        return False


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and retrieve its error, which asyncio would otherwise print."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
