"""The parts that all ways of reaching a server share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol

from workbench.checks.values import environment_names, with_variables
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.limits import MAX_SAID_CHARS
from workbench.suite.model import Server
from workbench.trajectory.events import ServerOutput, ToolDefinition

if TYPE_CHECKING:
    import asyncio

    from mcp.client._transport import TransportStreams

ServerState = Literal["not started", "starting", "running", "down"]


@dataclass(frozen=True)
class ServerStatus:
    """The state of a server, with its tools when it runs and the time for which it has been starting.

    When it is down, it has the reason and the end of its standard error. `task_tools` are not offered: only tasks may
    call them."""

    state: ServerState = "not started"
    tools: tuple[ToolDefinition, ...] = ()
    reason: str = ""
    output: ServerOutput | None = None
    starting_s: float = 0.0
    task_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long a server may take, in seconds.

    The limits are for starting and listing its tools, for one call, for ending once its input is closed, and after
    SIGTERM."""

    start_s: float = 30.0
    call_s: float = 60.0
    polite_s: float = 2.0
    terminate_s: float = 1.0

    @property
    def close_s(self) -> float:
        """When closing has failed and the server is killed: after the limits above, and a little more."""
        return self.polite_s + self.terminate_s + 1.5


class Connection(Protocol):
    """One connection to a server, opened when it is entered and closed when it is left: a transport for `mcp.Client`.

    Enter it once, and leave it in the same task.

    Entering raises ServerError or OSError when the server cannot be reached.
    """

    @property
    def where(self) -> str:
        """Describes the server for the brackets of a message: `command: …; log: …`."""

    @property
    def pid(self) -> int | None:
        """The process that was started for the server, if any."""

    @property
    def closed(self) -> bool:
        """Whether messages no longer pass."""

    @property
    def lost(self) -> asyncio.Future[None]:
        """Done when the server has ended the connection.

        Await it, but never cancel it. Available once the connection is entered."""

    async def __aenter__(self) -> TransportStreams: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None: ...

    @property
    def output(self) -> ServerOutput | None:
        """The end of the server's standard error; `None` when that cannot be read here."""

    def kill(self) -> None:
        """End the server at once, as far as possible.

        Harmless at any time."""

    def why_not_started(self, error: BaseException | None) -> str:
        """Return why there was no listing of tools, to follow the server's name; `error` ended the attempt."""

    def hint(self) -> str:
        """Return a hint on why a server does not answer, as the end of a sentence; may be empty."""

    def why_lost(self, error: BaseException | None) -> str:
        """Return how an established connection ended, to follow the server's name."""

    def why_unanswered(self, error: Exception) -> str | None:
        """Return why a call has failed where that is not the server's own answer, else `None`."""


def first_line(error: BaseException | None) -> str:
    """Return an exception's text in one line of limited length; its type when it has none."""
    message = next(iter(str(error).splitlines()), "") or type(error).__name__
    if len(message) <= MAX_SAID_CHARS:
        return message
    return message[:MAX_SAID_CHARS] + " …"


def innermost(error: BaseException) -> BaseException:
    """Return the first exception that is not a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


# Fills in references to environment variables in a server's settings, and registers their values as secrets.


class MissingVariableError(LookupError):
    """A referenced variable is not set; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


INHERITED = (
    (
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    )
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)
"""The variables that every started program has: those of `mcp.client.stdio`, which takes a second to import."""


_AUTHORIZING = ("authorization", "proxy-authorization", "cookie")


def learn_written(server: Server, secrets: Secrets) -> None:
    """Register the secrets in a server's settings as written in the suite.

    These are credentials in its headers, values in its `env` that look like keys, and passwords in addresses. Other
    texts are not secret."""
    secrets.add_passwords(server.name, server.url or "")
    for name, value in server.env.items():
        if not environment_names(value):
            secrets.guess(name, value)
    for name, value in server.headers.items():
        variable = name.upper().replace("-", "_")
        if environment_names(value):
            continue
        if name.lower() in _AUTHORIZING:
            secrets.add(variable, value.rpartition(" ")[2])
        else:
            secrets.guess(variable, value)


def filled(text: str, environment: Mapping[str, str], secrets: Secrets) -> str:
    """Replace `$NAME` and `${NAME}` by the variable's value and `$$` by a dollar sign; any other `$` stays.

    Every value used is added to `secrets`.

    Raises MissingVariableError when a variable is not set.
    """

    def value_of(name: str) -> str:
        if name not in environment:
            raise MissingVariableError(name)
        secrets.add(name, environment[name])
        return environment[name]

    return with_variables(text, value_of)
