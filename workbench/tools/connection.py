"""The protocol of connections to servers by command, URL or module, and its shared helpers."""

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

    `tool` is the name of the tool with the server's prefix, "" if the list itself is at fault. `where` is the field,
    such as `inputSchema.type`. `message` says what is wrong with the field. `outcome` is the consequence: the tool was
    `left out`, it is used as `repaired`, only the first of its `duplicate` definitions is used, or the list was `cut
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

    `tools` are its tools while it runs, and `starting_s` the seconds since its start began. `downloads` means that a
    launcher is still downloading it. `reason` says why it is down, and `output` is the end of its standard error.
    `task_tools` are tools that are not offered because they can be called only as MCP tasks. `issues` are the
    violations of the protocol in its list of tools, and `instructions` is its text on the use of the tools."""

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
    """Limits of a server's time, in seconds.

    `start_s` is for starting and listing its tools, without the download by a launcher such as `npx`. The download may
    take `download_s`. `call_s` is for one call; each report of progress restarts it. `polite_s` is for the exit after
    its input was closed, and `terminate_s` for the exit after SIGTERM. `probe_s` is for the answer to `server/discover`
    once the server has read it, and `greeting_s` for the following answer to `initialize`. `rollback_s` is for a
    package manager that rolls back a download after SIGTERM. `return_s` is for a lost server behind a URL to become
    reachable again."""

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
        """Return these limits, where the server's own settings take precedence."""
        start_s = server.start_timeout_s or self.start_s
        call_s = server.call_timeout_s or self.call_s
        return replace(self, start_s=start_s, call_s=call_s, download_s=max(self.download_s, start_s))


class AnnounceStart(Protocol):
    """Reports a start-up, such as `server weather`, around the body of the returned context.

    If the server `downloads`, the context yields a function. Call it when the download has ended."""

    def __call__(self, what: str, *, downloads: bool = False) -> AbstractContextManager[Callable[[], object]]: ...


def announce_nothing(what: str, *, downloads: bool = False) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(lambda: None)


class Refusal:
    """The reason why one call was not executed. `expired` means that the server has forgotten the session."""

    expired = False


REFUSAL: ContextVar[Refusal | None] = ContextVar("refusal", default=None)
"""The refusal of the call that a task makes; the requests of a call inherit it."""


class Connection(Protocol):
    """A connection to a server, open while it is entered; a transport for `mcp.Client`.

    Enter it once, and leave it in the same task. Entering raises ServerError or OSError if the server cannot be
    reached. The methods `why_…` return a reason; the server's name is put before it in messages."""

    @property
    def where(self) -> str:
        """The command, address or module of the server, for messages, such as `command: …; log: …`."""

    @property
    def pid(self) -> int | None:
        """The id of the server's process, `None` without one."""

    @property
    def closed(self) -> bool:
        """Whether the connection can no longer carry messages."""

    @property
    def rollback_s(self) -> float:
        """The additional seconds that closing may take while a package manager rolls back a download."""

    @property
    def disconnected(self) -> asyncio.Future[None]:
        """A future that is done when the server has ended the connection.

        Await it, but never cancel it. It exists once the connection is entered."""

    async def __aenter__(self) -> TransportStreams: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None: ...

    @property
    def has_read(self) -> bool | None:
        """Whether the server has read everything that was sent to it; `None` if that is unknown."""

    @property
    def is_direct(self) -> bool:
        """Whether the server reads the messages itself, not a program that forwards them."""

    @property
    def expired(self) -> bool:
        """Whether the server has forgotten the session.

        The `Refusal` of a call says whether the call was refused."""

    @property
    def output(self) -> ServerOutput | None:
        """The end of the server's standard error; `None` if it cannot be read."""

    def kill(self) -> None:
        """End the server at once, as far as possible. Harmless at any time."""

    def why_not_started(self, error: BaseException | None) -> str:
        """Return why the server listed no tools. `error` is the exception that ended the attempt."""

    def advice(self) -> str:
        """Return a sentence with advice on a server that did not start, or ""."""

    def hint(self) -> str:
        """Return a hint on why a server does not answer; "" if there is none.

        The hint is appended to a message."""

    def ended_by_server(self, error: BaseException) -> bool:
        """Return whether the server was reached and then ended the connection.

        `error` is the exception that ended the attempt."""

    def why_lost(self, error: BaseException | None) -> str:
        """Return why an established connection ended."""

    def why_unanswered(self, error: Exception) -> str | None:
        """Return why a call failed; `None` if `error` is the server's own answer."""


def first_line(error: BaseException | None) -> str:
    """Return the first line of an exception's text, cut to a limit.

    An exception without text is represented by its type."""
    message = next(iter(str(error).splitlines()), "") or type(error).__name__
    if len(message) <= MAX_SERVER_ERROR_CHARS:
        return message
    return message[:MAX_SERVER_ERROR_CHARS] + " …"


def innermost(error: BaseException) -> BaseException:
    """Return the first exception inside an exception group, or the exception itself if it is not a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class MissingVariableError(LookupError):
    """A referenced variable is not set; `name` is its name."""

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
    """Return the environment variables that a started program inherits, and those in `passed`.

    Their values are registered as secrets."""
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
            # The scheme is not part of the secret: in `Bearer abc`, the secret is `abc`.
            secrets.add(variable, value.rpartition(" ")[2])
        else:
            secrets.add_if_it_looks_secret(variable, value)


def expand_variables(text: str, environment: Mapping[str, str], secrets: Secrets) -> str:
    """Replace `$NAME` and `${NAME}` by the variable's value, and `$$` by a dollar sign.

    Any other `$` stays. The values are added to `secrets`. Raises MissingVariableError if a variable is not set."""

    def value_of(name: str) -> str:
        if name not in environment:
            raise MissingVariableError(name)
        secrets.add(name, environment[name])
        return environment[name]

    return with_variables(text, value_of)
