"""An MCP server of a suite: started, called and closed, over the one connection that it has at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from workbench.config.secrets import Secrets
from workbench.numerals import seconds_text
from workbench.suite.model import Server
from workbench.tools.answer import OnProgress, ServerError, ToolAnswer
from workbench.tools.connection import Connection, ListingIssue, TimeLimits
from workbench.tools.handshake import Handshake
from workbench.tools.servers import Session
from workbench.trajectory.events import JsonValue, ServerOutput, ToolDefinition


async def _tell_nobody() -> None:
    pass


class McpServer:
    """An MCP server of a suite, however it is reached; `connect` returns a new connection to it, not opened yet.

    Every ServerError names it with its command, address or module, redacted. `relisted` is called after it has listed
    other tools than before."""

    def __init__(
        self,
        server: Server,
        connect: Callable[[], Connection],
        secrets: Secrets,
        limits: TimeLimits,
        relisted: Callable[[], Awaitable[object]] = _tell_nobody,
    ) -> None:
        self._server = server
        self._connect = connect
        self._secrets = secrets
        self._limits = limits
        self._tell_relisted = relisted
        self._closed = False
        self._session = self._next_session(server.protocol)
        self.notices: tuple[str, ...] = ()
        """What its start had of note, for the runs that use it."""

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """The tools that runs offer, with prefixed names: those of the first listing, until `adopt`."""
        return self._session.tools

    @property
    def listed(self) -> tuple[ToolDefinition, ...]:
        """The tools of the last listing, with prefixed names."""
        return self._session.listed

    @property
    def task_tools(self) -> tuple[str, ...]:
        """The prefixed names of tools that can be called as tasks of MCP only; they are not offered."""
        return self._session.task_tools

    @property
    def issues(self) -> tuple[ListingIssue, ...]:
        """The violations of the protocol in the last listing, redacted."""
        return self._session.issues

    def adopt(self) -> None:
        """Offer the tools of the last listing."""
        self._session.adopt()

    @property
    def down(self) -> str | None:
        """The reason why the server can no longer be called, `None` while it can."""
        return self._session.down

    @property
    def output(self) -> ServerOutput | None:
        """The end of its standard error before it went down."""
        return self._session.output

    @property
    def pid(self) -> int | None:
        """The id of the server's process, `None` without one."""
        return self._session.pid

    async def start(self) -> None:
        """Connect to the server and list its tools; call it once.

        A server that cannot be asked for the newest protocol is started once more with `initialize` as the first
        message. Raises ServerError if the server cannot be reached, does not answer in time, or its listing does not
        end."""
        first = self._session
        try:
            await first.start()
        except ServerError:
            if not first.wants_initialize or self._closed:
                raise
            self._session = self._next_session("legacy")
            await self._session.start()
            happened = "ended"
            if first.was_silent:
                happened = "said nothing more"
            self._note(f"{happened} after the question server/discover, and was started once more without it")
        else:
            if first.was_silent:
                waited = seconds_text(self._limits.probe_s)
                self._note(f"left server/discover without an answer for {waited}")

    async def call(
        self, tool: str, arguments: Mapping[str, JsonValue], on_progress: OnProgress | None = None
    ) -> ToolAnswer:
        """Call a tool by its listed name and return its answer, which may be a tool error.

        Raises ServerError if the server is down, dies, or does not answer within its time limit."""
        return await self._session.call(tool, arguments, on_progress)

    async def changed(self, seen: tuple[ToolDefinition, ...]) -> None:
        """Wait until a started server is down, or has listed other tools than `seen`."""
        await self._session.changed(seen)

    async def close(self) -> None:
        """End the server and everything that it started, within the limits; may be called at any time, repeatedly."""
        self._closed = True
        await self._session.close()

    def _next_session(self, protocol: str) -> Session:
        connection = self._connect()
        handshake = None
        if protocol == "auto":
            handshake = Handshake(connection, self._limits)
        return Session(self._server, connection, handshake, self._secrets, self._limits, self._tell_relisted)

    def _note(self, what: str) -> None:
        name = self._server.name
        text = f'server {name!r} {what}: `protocol = "legacy"` in its [[servers]] saves the time'
        self.notices = (*self.notices, text)
