"""What every way of reaching a server has in common."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


MAX_SAID_CHARACTERS = 1000
"""Characters of an exception's words that messages hold: a server may say megabytes."""


class Connection(Protocol):
    """One connection to a server, made when it is entered and ended when it is left: a transport for `mcp.Client`.

    To be entered once, and left in the same task. Entering raises ServerError or OSError when there is no server.
    """

    @property
    def where(self) -> str:
        """Which server this is, for the brackets of a message: `command: …; log: …`."""

    @property
    def pid(self) -> int | None:
        """The process that was started for the server, if any."""

    @property
    def closed(self) -> bool:
        """Whether messages no longer pass."""

    @property
    def lost(self) -> asyncio.Future[None]:
        """Done when the server has ended the connection; to be awaited, never cancelled. There once it is entered."""

    async def __aenter__(self) -> TransportStreams: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None: ...

    def kill(self) -> None:
        """End the server at once, as far as that is in our power; harmless at any time."""

    def why_not_started(self, error: BaseException | None) -> str:
        """Why there was no listing of tools, to go after the server's name; `error` ended the attempt."""

    def hint(self) -> str:
        """What may be the matter with a server that does not answer, as the end of a sentence; may be empty."""

    def why_lost(self, error: BaseException | None) -> str:
        """How a connection that stood came to its end, to go after the server's name."""

    def why_unanswered(self, error: Exception) -> str | None:
        """Why a call has failed where that is not the server's own answer, else `None`."""


def first_line(error: BaseException | None) -> str:
    """What an exception says, in one line of moderate length; its type when it says nothing."""
    said = next(iter(str(error).splitlines()), "") or type(error).__name__
    return said if len(said) <= MAX_SAID_CHARACTERS else said[:MAX_SAID_CHARACTERS] + " …"


def innermost(error: BaseException) -> BaseException:
    """The first exception that is not a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
