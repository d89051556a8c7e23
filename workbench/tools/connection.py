"""What all connections to servers provide, whatever the transport, and functions that they share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol

from workbench.config.passed_variables import add_passed
from workbench.config.secrets import Secrets
from workbench.config.variables import environment_names, with_variables
from workbench.dataclasses import dataclass
from workbench.limits import MAX_SERVER_ERROR_CHARS
from workbench.suite.server_model import Server
from workbench.trajectory.events import ServerOutput, ToolDefinition

if TYPE_CHECKING:
    import asyncio

    from mcp.client._transport import TransportStreams

ServerState = Literal["not started", "starting", "running", "down"]

ListingOutcome = Literal["left out", "repaired", "duplicate", "cut short"]


@dataclass(frozen=True, slots=True)
class ListingIssue:
    """A violation of the protocol in a server's list of tools.

    `tool` is the name of the tool with the server's prefix, "" if the fault is in the list itself. `where` is the
    field, such as `inputSchema.type`. `message` says what is wrong with it. `outcome` is the consequence: the tool was
    `left out`, the tool is used as `repaired`, only the first of `duplicate` definitions is used, or the list was `cut
    short`."""

    tool: str
    where: str
    message: str
    outcome: ListingOutcome

    def __str__(self) -> str:
        about = f"{self.tool}: " if self.tool else ""
        return f"{about}{self.where} {self.message}"


@dataclass(frozen=True)
class ServerStatus:
    """The state of a server.

    `tools` are its tools while it runs. `starting_s` is the number of seconds since its start began. `downloads` is
    whether a launcher is still downloading it. `reason` says why it is down, and `output` is the end of its standard
    error. `task_tools` are tools that are not offered because they can be called only as MCP tasks. `issues` are
    violations of the protocol in its list of tools. `instructions` is the server's text on how to use the tools."""

    state: ServerState = "not started"
    tools: tuple[ToolDefinition, ...] = ()
    reason: str = ""
    output: ServerOutput | None = None
    starting_s: float = 0.0
    task_tools: tuple[str, ...] = ()
    issues: tuple[ListingIssue, ...] = ()
    downloads: bool = False
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """The time limits of a server, in seconds.

    - `start_s`: starting the server and listing its tools, except for a download by a launcher such as `npx`.
    - `download_s`: the download.
    - `call_s`: one call. A report of progress restarts the limit.
    - `polite_s`: the server's exit after its input was closed.
    - `terminate_s`: its exit after SIGTERM.
    - `probe_s`: the answer to `server/discover`, once the server has read the request.
    - `greeting_s`: the answer to the `initialize` that follows.
    - `rollback_s`: the rollback of a download by a package manager after SIGTERM.
    - `return_s`: the time in which a lost server behind a URL may become reachable again."""

    start_s: float = 60.0
    call_s: float = 60.0
    polite_s: float = 2.0
    terminate_s: float = 1.0
    probe_s: float = 2.0
    greeting_s: float = 3.0
    download_s: float = 300.0
    rollback_s: float = 20.0
    return_s: float = 20.0

    @property
    def close_s(self) -> float:
        """The seconds after which a closing server is killed: `polite_s`, `terminate_s` and a reserve."""
        return self.polite_s + self.terminate_s + 1.5

    def of(self, server: Server) -> TimeLimits:
        """Return the limits for a server. Limits in the server's settings replace these."""
        start_s = server.start_timeout_s or self.start_s
        call_s = server.call_timeout_s or self.call_s
        return replace(self, start_s=start_s, call_s=call_s, download_s=max(self.download_s, start_s))


class AnnounceStart(Protocol):
    """Reports that something starts, such as `server weather`. The start is the body of the returned context manager.

    With `downloads`, the context manager yields a function to call when the download has ended."""

    def __call__(
        self, description: str, *, downloads: bool = False
    ) -> AbstractContextManager[Callable[[], object]]: ...


def announce_nothing(description: str, *, downloads: bool = False) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(lambda: None)


class Refusal:
    """Why one call was not executed. `expired` is whether the server has forgotten the session."""

    expired = False


REFUSAL: ContextVar[Refusal | None] = ContextVar("refusal", default=None)
"""The refusal of the call that the current task makes. The tasks of the call's requests inherit it."""


class Connection(Protocol):
    """A connection to a server, as a context manager that is a transport for `mcp.Client`.

    Enter it once, and leave it in the same task. Entering raises ServerError or OSError if the server cannot be
    reached. The methods `why_…` return a reason without a subject. Messages put the server's name before it."""

    @property
    def where(self) -> str:
        """The command, address or module of the server, for messages, such as `command: …; log: …`."""

    @property
    def pid(self) -> int | None:
        """The id of the server's process, `None` if the server has no process of its own."""

    @property
    def closed(self) -> bool:
        """Whether the connection can no longer carry messages."""

    @property
    def rollback_s(self) -> float:
        """How many seconds longer closing may take, because a package manager rolls back a download."""

    @property
    def disconnected(self) -> asyncio.Future[None]:
        """A future that is done when the server has ended the connection.

        The future exists only after the connection was entered. Await it, but never cancel it."""

    async def __aenter__(self) -> TransportStreams: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None: ...

    @property
    def has_read(self) -> bool | None:
        """Whether the server has read everything that was sent to it, `None` if that is unknown."""

    @property
    def is_direct(self) -> bool:
        """Whether messages go to the server itself, not to a program that forwards them."""

    @property
    def expired(self) -> bool:
        """Whether the server has forgotten the session.

        The `Refusal` of a call tells whether the call was refused for this reason."""

    @property
    def output(self) -> ServerOutput | None:
        """The end of the server's standard error, `None` if it cannot be read."""

    def kill(self) -> None:
        """End the server at once, as far as possible. May be called at any time."""

    def start_failure(self, error: BaseException | None) -> str:
        """Return why the server did not list its tools. `error` is the exception that ended the start."""

    def advice(self) -> str:
        """Return a sentence of advice on a server that did not start, "" if there is none."""

    def hint(self) -> str:
        """Return why the server may not answer, as the end of a message. Return "" if nothing is known."""

    def ended_by_server(self, error: BaseException) -> bool:
        """Return whether the server was reached, but then ended the connection.

        `error` is the exception that ended the start."""

    def loss_reason(self, error: BaseException | None) -> str:
        """Return why a connection ended after it had been established."""

    def unanswered_reason(self, error: Exception) -> str | None:
        """Return why a call failed. Return `None` if `error` is the server's answer to the call."""


def first_line(error: BaseException | None) -> str:
    """Return the first line of an exception's text, shortened if it is long.

    If the text is empty, return the name of the exception's type."""
    message = next(iter(str(error).splitlines()), "") or type(error).__name__
    if len(message) <= MAX_SERVER_ERROR_CHARS:
        return message
    return message[:MAX_SERVER_ERROR_CHARS] + " …"


def innermost_error(error: BaseException) -> BaseException:
    """Return the first exception inside an exception group, or the exception itself if it is not a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class MissingVariableError(LookupError):
    """Raised if a variable in a setting is not set. `name` is the name of the variable."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


# The same list as in `mcp.client.stdio`, which takes a second to import.
INHERITED: tuple[str, ...] = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
if sys.platform == "win32":
    INHERITED = (
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    )
"""The environment variables that every started program inherits."""


def inherited_variables(environment: Mapping[str, str], passed: Iterable[str], secrets: Secrets) -> dict[str, str]:
    """Return the environment variables that a started program gets: the usual variables, and the variables in `passed`.

    The secret parts of the variables in `passed` are registered, so that they are redacted."""
    add_passed(passed, environment, secrets)
    inherited = {}
    for name in (*INHERITED, *passed):
        if name in environment:
            inherited[name] = environment[name]
    return inherited


_AUTHORIZING = ("authorization", "proxy-authorization", "cookie")


def register_server_secrets(server: Server, secrets: Secrets) -> None:
    """Register the secrets in a server's settings.

    Secrets are credentials in headers, values in `env` that look like keys, and passwords in addresses."""
    secrets.add_passwords(server.name, server.url or "")
    for name, value in server.env.items():
        if not environment_names(value):
            secrets.add_if_it_looks_secret(name, value)
    for name, value in server.headers.items():
        variable = name.upper().replace("-", "_")
        if environment_names(value):
            continue
        if name.lower() in _AUTHORIZING:
            # Only the last word is the secret: `abc` in `Bearer abc`.
            secrets.add(variable, value.rpartition(" ")[2])
        else:
            secrets.add_if_it_looks_secret(variable, value)


def expand_variables(text: str, environment: Mapping[str, str], secrets: Secrets) -> str:
    """Replace `$NAME` and `${NAME}` by the variable's value, and `$$` by a dollar sign.

    Any other `$` is kept. The values are added to `secrets`. Raises MissingVariableError if a variable is not set."""

    def value_of(name: str) -> str:
        if name not in environment:
            raise MissingVariableError(name)
        secrets.add(name, environment[name])
        return environment[name]

    return with_variables(text, value_of)
