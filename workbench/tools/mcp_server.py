"""An MCP server of a suite. If it has died or forgotten its session, it is started or connected again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from pathlib import Path

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.numerals import counted, seconds_text
from workbench.suite.server_model import Server, ServerProtocol
from workbench.tools.answer import OnProgress, ServerError, ToolAnswer
from workbench.tools.client_requests import answer_nothing
from workbench.tools.connection import AnnounceStart, Connection, ListingIssue, TimeLimits, announce_nothing
from workbench.tools.handshake import Handshake
from workbench.tools.launchers import launcher_of
from workbench.tools.listings import ListingChange
from workbench.tools.questions import AskRun
from workbench.tools.session import ExpiredError, Session
from workbench.trajectory.events import JsonValue, ServerOutput, ToolDefinition

MAX_RESTARTS = 3
"""The most restarts of a server in one batch."""

_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.25, 1.0
"""The first and the longest pause between two attempts to reach a lost server at a URL."""

_STEADY_AFTER_CALLS = 10
"""If a server fails after this number of answers, its earlier restarts no longer count for `MAX_RESTARTS`."""


async def _ignore_listing() -> None:
    pass


@dataclass(frozen=True)
class StartNotice:
    """A notice on a start of a server. `output` is what an earlier start printed, if that was not reported yet."""

    notice: str
    output: ServerOutput | None = None


class McpServer:
    """An MCP server of a suite, however it is reached.

    It has one session at a time. If the session has ended or expired, the next run gets a new session. Every
    ServerError names the server with its command, address or module, redacted.

    `connect` returns a new connection, which is not open yet. `relisted` is called after the server has listed
    different tools than before, and `announce` is entered around each start. `known` is whether the server has run
    before on this machine, so that no launcher has to download it. `protocol` replaces the suite's `protocol` if an
    earlier start found that another protocol works. `roots` are the folders that the server may use."""

    def __init__(
        self,
        server: Server,
        connect: Callable[[], Connection],
        secrets: Secrets,
        limits: TimeLimits,
        relisted: Callable[[], Awaitable[object]] = _ignore_listing,
        announce: AnnounceStart = announce_nothing,
        *,
        known: bool = False,
        protocol: ServerProtocol | None = None,
        roots: Sequence[Path] = (),
    ) -> None:
        self._server = server
        self._connect = connect
        self._secrets = secrets
        self._limits = limits
        self._tell_relisted = relisted
        self._announce = announce
        self._launcher = launcher_of(server.command or ("",))
        self._roots = tuple(roots)
        self._turn = asyncio.Lock()
        self.protocol = protocol or server.protocol
        """The way in which the server's next session begins."""
        # The suite answers requests of the server, which the newest protocol does not allow during a call.
        if server.answers:
            self.protocol = "legacy"
        self._sessions: list[Session] = []
        self._session = self._next_session()
        self._renewal: asyncio.Task[None] | None = None
        self._retirements: set[asyncio.Task[None]] = set()
        self._is_up = False
        """Whether the server has started once. Otherwise, it is not started again."""
        self._closed = False
        self._restarts = 0
        self._tools: tuple[ToolDefinition, ...] = ()
        self._instructions = ""
        self._news: list[StartNotice] = []
        self._lists_others: str | None = None
        """A notice that the restarted server lists other tools than at the start of the batch."""
        self.downloads = self._launcher is not None and not known
        """Whether a launcher may be downloading the server."""
        self._launched = asyncio.Event()
        self._start = asyncio.Event()
        """Set when the next start begins."""
        self.began_s = time.monotonic()
        """The monotonic time at which the last start began.

        Before the first start, it is the time of the request to start."""

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """The tools that are offered in runs, with prefixed names.

        During a batch, these stay the tools of the first listing."""
        return self._tools

    @property
    def listed(self) -> tuple[ToolDefinition, ...]:
        """The tools of the last listing, with prefixed names."""
        return self._session.listed

    @property
    def task_tools(self) -> tuple[str, ...]:
        """The prefixed names of tools that are not offered, because they can be called only as MCP tasks."""
        return self._session.task_tools

    @property
    def issues(self) -> tuple[ListingIssue, ...]:
        """The violations of the protocol in the last listing, redacted."""
        return self._session.issues

    @property
    def instructions(self) -> str:
        """The server's instructions that runs send to the model.

        During a batch, these stay the instructions of the first session."""
        return self._instructions

    @property
    def listed_instructions(self) -> str:
        """The server's instructions in the current session, "" if there are none."""
        return self._session.instructions

    def begin_batch(self) -> None:
        """Begin a batch: offer the tools that the server lists now, and reset the number of restarts."""
        self._tools, self._instructions = self._session.listed, self._session.instructions
        self._lists_others = None
        self._restarts = 0

    @property
    def down_reason(self) -> str | None:
        """Why the server cannot be called now, `None` if it can."""
        return self._session.down_reason

    @property
    def output(self) -> ServerOutput | None:
        """The end of the server's standard error before it ended or lost the connection, `None` if unknown."""
        return self._session.output

    @property
    def is_stateless(self) -> bool:
        """Whether the server's protocol has no sessions, so that it cannot distinguish its clients."""
        return self._session.is_stateless

    @property
    def pid(self) -> int | None:
        return self._session.pid

    @property
    def renewal(self) -> asyncio.Task[None] | None:
        """The task that is starting the server again, `None` if no such start is in progress."""
        return self._renewal

    def pop_start_notices(self) -> list[StartNotice]:
        """Return the notices for the next run. A notice on a start is returned only once.

        If the server lists different tools than at the start of the batch, a notice tells this to every run."""
        news, self._news = self._news, []
        if self._lists_others is not None:
            news.append(StartNotice(self._lists_others))
        return news

    async def start(self) -> None:
        """Connect to the server and list its tools. Call this method once.

        Some servers end when they get the request for the newest protocol. They are started once more with `initialize`
        as the first message. Raises ServerError if the server cannot be reached, does not answer in time, or lists
        tools without end."""
        with self._announced() as launched:
            await self._begin(self._session, launched)
        self._tools, self._instructions = self._session.listed, self._session.instructions
        self._is_up = True

    async def ready(self) -> None:
        """Return when the server can be called. If necessary, begin a new session.

        If the caller is cancelled, the start continues. Raises ServerError if the server does not start again, or has
        died too often."""
        if self._renewal is None and self._is_up:
            # The run has made no call yet, so it has no state in this session. If the server is going down, the run
            # gets the next session.
            await self._session.wait_until_down()
        if self._renewal is None:
            if not self._is_up or self._closed or not (self._session.expired or self._session.down_reason is not None):
                return
            self._renewal = asyncio.create_task(self._renew(self._session))
            self._renewal.add_done_callback(self._renewed)
        await asyncio.shield(self._renewal)

    def turn(self) -> AbstractAsyncContextManager[object]:
        """Return a context manager for one call.

        If the server may send requests during a call, entering it waits until other calls have ended."""
        return self._turn if self._server.serializes_calls else nullcontext()

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, JsonValue],
        on_progress: OnProgress | None = None,
        ask: AskRun = answer_nothing,
    ) -> ToolAnswer:
        """Call a tool without keeping the session for later calls. See `RunServer.call`."""
        async with self.turn():
            return await RunServer(self).call(tool, arguments, on_progress, ask)

    async def wait_for_start(self, start: asyncio.Task[None]) -> None:
        """Wait until a launcher has downloaded the server, or until the task `start` has ended."""
        waiting = {start}
        if self.downloads:
            waiting.add(asyncio.create_task(_until(self._launched)))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting - {start}:
                task.cancel()

    async def wait_for_change(self, known_tools: tuple[ToolDefinition, ...]) -> None:
        """Wait until the status of the server changes.

        The status changes when a running server goes down or lists different tools than `known_tools`, and when a
        server that is down starts."""
        if self._session.down_reason is not None:
            await self._start.wait()
        else:
            await self._session.wait_for_change(known_tools)

    async def close(self) -> None:
        """End the server and everything that it started, within the time limits. May be called repeatedly."""
        self._closed = True
        await asyncio.gather(*(session.close() for session in self._sessions))
        tasks = set(self._retirements)
        if self._renewal is not None:
            tasks.add(self._renewal)
        if tasks:
            await asyncio.wait(tasks, timeout=self._limits.close_s)

    async def session(self) -> Session:
        """Return the session for the first call of a run.

        Raises ServerError like `ready`."""
        await self.ready()
        return self._session

    @contextmanager
    def _announced(self) -> Iterator[Callable[[], object]]:
        """Report that the server starts. Yields a function to call when a launcher has downloaded it."""
        self.began_s = time.monotonic()
        self._start.set()
        self._start = asyncio.Event()
        with self._announce(f"server {self._server.name}", downloads=self.downloads) as launched:

            def report_launched() -> None:
                self.downloads = False
                self._launched.set()
                launched()

            yield report_launched

    async def _begin(self, session: Session, launched: Callable[[], object]) -> None:
        """Start a session.

        If the server requires `initialize` as the first message, start a second session in its place."""
        try:
            await session.start(launched)
        except ServerError:
            if not session.wants_initialize or self._closed:
                raise
            second = self._session = self._next_session("legacy")
            self._sessions.remove(session)
            await second.start(launched)
            self.protocol = "legacy"
            happened = "ended"
            if session.was_silent:
                happened = "said nothing more"
            self._note_wait(f"{happened} after the question server/discover, and was started once more without it")
            return
        if session.was_silent:
            self.protocol = "legacy"
            waited = seconds_text(self._limits.probe_s)
            self._note_wait(f"left server/discover without an answer for {waited}")

    async def _renew(self, old: Session) -> None:
        name = self._server.name
        if old.expired:
            notice, output = f"server {name!r} had forgotten the session, and got a new one", None
        else:
            if old.answered_count >= _STEADY_AFTER_CALLS:
                self._restarts = 0
            if self._restarts >= MAX_RESTARTS:
                stays = f"it has failed {counted(1 + MAX_RESTARTS, 'time')} in this batch, and stays down"
                raise ServerError(f"{old.down_reason}; {stays}", old.output)
            self._restarts += 1
            notice, output = f"started again: {old.down_reason}", old.output
            if old.failed_call:
                output = None
        with self._announced() as launched:
            await self._replace(launched)
        self._news.append(StartNotice(notice, output))
        self._lists_others = self._difference()
        await self._tell_relisted()

    async def _replace(self, launched: Callable[[], object]) -> None:
        """Begin a new session in place of the current one.

        A server behind a URL gets some time to become reachable again."""
        clock = asyncio.get_running_loop().time
        deadline, pause_s = clock(), _FIRST_PAUSE_S
        if self._server.url is not None:
            deadline += self._limits.return_s
        while True:
            # `close` may have been called meanwhile, and would not end a session that begins now.
            if self._closed:
                raise ServerError(f"server {self._server.name!r} is not started again, because it was closed")
            self._retire(self._session)
            self._session = self._next_session()
            try:
                await self._begin(self._session, launched)
            except ServerError:
                if self._closed or clock() + pause_s > deadline:
                    raise
            else:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LAST_PAUSE_S)

    def _difference(self) -> str | None:
        what = []
        if self.listed != self._tools:
            what.append(f"other tools ({ListingChange.between(self._tools, self.listed)})")
        if self.listed_instructions != self._instructions:
            what.append("other instructions")
        if not what:
            return None
        has = f"server {self._server.name!r} has {' and '.join(what)} since it was started again"
        return f"{has}, but the runs of this batch still get the earlier ones"

    def _renewed(self, renewal: asyncio.Task[None]) -> None:
        self._renewal = None
        if not renewal.cancelled():
            renewal.exception()  # the waiting runs report the error, so asyncio must not print it

    def _retire(self, session: Session) -> None:
        retirement = asyncio.create_task(session.close_when_idle())
        self._retirements.add(retirement)

        def over(_: asyncio.Task[None]) -> None:
            self._retirements.discard(retirement)
            self._sessions.remove(session)

        retirement.add_done_callback(over)

    def _next_session(self, protocol: ServerProtocol | None = None) -> Session:
        connection = self._connect()
        handshake = None
        if (protocol or self.protocol) == "auto":
            handshake = Handshake(connection, self._limits)
        session = Session(
            self._server,
            connection,
            handshake,
            self._launcher,
            self._secrets,
            self._limits,
            self._tell_relisted,
            self._roots,
        )
        self._sessions.append(session)
        return session

    def _note_wait(self, description: str) -> None:
        name = self._server.name
        text = f'server {name!r} {description}: `protocol = "legacy"` in its [[servers]] saves the time'
        self._news.append(StartNotice(text))


class RunServer:
    """A server for the calls of one run.

    All calls of the run use the same session, and so share the server's state."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._session: Session | None = None
        """The session of the run's first call."""

    def turn(self) -> AbstractAsyncContextManager[object]:
        """Return a context manager for one call, as `McpServer.turn` does."""
        return self._server.turn()

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, JsonValue],
        on_progress: OnProgress | None = None,
        ask: AskRun = answer_nothing,
    ) -> ToolAnswer:
        """Call a tool by its listed name, and return its answer, which may be a tool error.

        If the server has forgotten the session before the run's first call, the call is repeated over a new session.
        Raises ServerError if the server forgets the session later, or if the server is down, dies, or does not answer
        within its time limit."""
        if self._session is not None:
            try:
                return await self._session.call(tool, arguments, on_progress, ask)
            except ExpiredError as error:
                raise ServerError(
                    f"{error}: the state that this run had there may be lost, so the run ends; the next run gets a new "
                    "session"
                ) from None
        self._session = await self._server.session()
        try:
            return await self._session.call(tool, arguments, on_progress, ask)
        except ExpiredError:
            self._session = await self._server.session()
        return await self._session.call(tool, arguments, on_progress, ask)


async def _until(event: asyncio.Event) -> None:
    await event.wait()
