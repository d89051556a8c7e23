"""What every way of reaching a server has in common."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol

from workbench.trajectory.messages import ToolDefinition

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


ServerState = Literal["not started", "starting", "running", "down"]


@dataclass(frozen=True)
class ServerStatus:
    """With its tools when it runs, with the reason when it is down."""

    state: ServerState = "not started"
    tools: tuple[ToolDefinition, ...] = ()
    reason: str = ""


MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""A server that sends a longer message is closed. Legacy SSE has a limit of the SDK's own, 1 MiB."""

MAX_PAGES = 100
"""Pages of a tool listing that are read; a listing that goes on after that is refused."""

MAX_PROGRESS_CHARACTERS = 200
"""A message about progress is cut there."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long a server may take, in seconds: to start and list its tools, to answer one call, to end once its input is
    closed, and to end after SIGTERM."""

    start_s: float = 30.0
    call_s: float = 60.0
    polite_s: float = 2.0
    terminate_s: float = 1.0

    @property
    def close_s(self) -> float:
        """When closing has failed and the last resort is due: what the polite way may take, and a little more."""
        return self.polite_s + self.terminate_s + 1.5


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
