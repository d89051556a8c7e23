"""The servers of suites. They are started on first use, shared by runs or started for each run, and closed together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from workbench.checks.check import CheckContext
from workbench.checks.clock import Clock
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.limits import MAX_SERVED_RUNS
from workbench.suite.files import resolved
from workbench.suite.model import Case, Mock, Suite, ToolChange
from workbench.suite.server_model import Server, ServerProtocol
from workbench.suite.trust import provider_tool_need, server_folder
from workbench.tools.answer import ServerError, UntrustedError
from workbench.tools.case_answers import Answers
from workbench.tools.connection import (
    AnnounceStart,
    Connection,
    ServerStatus,
    TimeLimits,
    announce_nothing,
    register_server_secrets,
)
from workbench.tools.fresh_servers import BackgroundClosing, FreshServers, RunServers, StartingServer
from workbench.tools.grant import Grant
from workbench.tools.listings import (
    DamagedListingError,
    Listing,
    ListingChange,
    StoredListings,
    definition_of_provider,
    definitions_for,
)
from workbench.tools.login_file import Logins
from workbench.tools.mocks import Mocks
from workbench.tools.python_code import HashedCode, PythonFunctions
from workbench.tools.tool_pages import issues_notice
from workbench.tools.toolbox import Toolbox, changed_definitions, offered_tools
from workbench.trajectory.events import JsonValue, ServerInstructions, ServerOutput, ToolDefinition
from workbench.trajectory.system_prompt import cut_instructions, too_long

if TYPE_CHECKING:
    from workbench.tools.mcp_server import McpServer, RunServer


NO_INSTRUCTIONS: Mapping[str, str] = MappingProxyType({})

_CHANGED_INSTRUCTIONS = (
    "the instructions of server {server} have changed: this run was sent the same ones as earlier runs of its batch"
)


@dataclass(frozen=True)
class _Listed:
    """The tools of a server for one run.

    If the server does not run, `server` is `None` and the tools come from a stored listing. `notices` then say why, and
    `outputs` have the output of a server that failed. If the server runs, `notices` report violations in its list of
    tools and its last starts."""

    tools: tuple[ToolDefinition, ...]
    instructions: str
    server: RunServer | None = None
    notices: tuple[str, ...] = ()
    outputs: tuple[ServerOutput, ...] = ()


class ServerPool:
    """The running servers of suites, until the pool is closed.

    A server is identified by its suite file and its definition. All runs share it, except with `state = "run"`
    (`workbench.tools.fresh_servers`). A server is started only if the grant of the suite covers it. A later grant does
    not change a running server. Use the pool on one event loop.

    `program` has the folders for logs and listings, and `now` returns the time. `starting` is entered around each start
    of a server, with a description of the start. `listed` is called after a server's tools were stored, with the suite
    file, the server's name, and the change since the last listing, if any."""

    def __init__(
        self,
        program: Program,
        limits: TimeLimits | None = None,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        starting: AnnounceStart = announce_nothing,
        on_listing: Callable[[Path, str, ListingChange | None], object] = lambda _suite_file, _server, _change: None,
    ) -> None:
        self._starting = starting
        self._tell_listed = on_listing
        self._program = program
        self._limits = limits or TimeLimits()
        self._listings = StoredListings(program.folders.listings, now)
        self._servers: dict[tuple[Path, str], StartingServer] = {}
        self._fresh: dict[tuple[Path, str], FreshServers] = {}
        self._places = asyncio.Semaphore(MAX_SERVED_RUNS)
        self._background = BackgroundClosing()
        self._remembered: WeakKeyDictionary[McpServer, tuple[tuple[ToolDefinition, ...], str]] = WeakKeyDictionary()
        """The last listing of each server, redacted."""
        self._protocols: dict[tuple[Path, str], ServerProtocol] = {}
        """The way in which the next session of each server begins, as its last start found out."""
        untrusted = PythonFunctions(None)
        self._functions: dict[HashedCode | None, PythonFunctions] = {None: untrusted}
        self._latest_functions: tuple[HashedCode | None, PythonFunctions] = (None, untrusted)
        self._closed = False
        self.secrets = program.secrets
        """The known secrets. Starting a server adds those of its settings."""

    def functions(self, code: HashedCode | None) -> PythonFunctions:
        # There is one object for each approved code, so that the runs of a batch load a module only once.
        # Hashing the code at each call would take a sixth of the time that a run needs to get its tools ready.
        if code is not self._latest_functions[0]:
            if code not in self._functions:
                self._functions[code] = PythonFunctions(code)
            self._latest_functions = code, self._functions[code]
        return self._latest_functions[1]

    async def open_toolbox(
        self,
        suite: Suite,
        case: Case,
        suite_file: Path,
        *,
        execute: bool,
        grant: Grant | None,
        changes: Sequence[ToolChange] = (),
        instructions: Mapping[str, str] = NO_INSTRUCTIONS,
        clock: Clock | None = None,
        of_subject: bool = False,
    ) -> Toolbox:
        """Return the tools for one run of a case. `changes` are a variant's changes, which `case` already includes.

        `of_subject` is whether the suite's subject (an agent of the user) makes the run. The subject may have tools of
        its own.

        `instructions` are the servers' instructions in earlier runs of the batch, by the servers' names. They replace
        the current instructions. Dates in conditions of mocks and answers are relative to `clock`.

        Only servers that the grant covers are started. If a server does not run and nothing is executed, its stored
        tools are used, and a notice says so. Raises UntrustedError and ServerError if a server's tools are not
        available, and the errors of `offered_tools`."""
        leases = RunServers(self._places, self._background)
        try:
            if execute and grant is not None and any(server.state == "run" for server in suite.servers):
                await leases.wait_for_place()
            return await self._open(
                *(suite, case, suite_file, execute, grant, changes, instructions, clock, leases, of_subject)
            )
        except BaseException:
            leases.close()
            raise

    async def _open(
        self,
        suite: Suite,
        case: Case,
        suite_file: Path,
        execute: bool,
        grant: Grant | None,
        changes: Sequence[ToolChange],
        instructions: Mapping[str, str],
        clock: Clock | None,
        leases: RunServers,
        of_subject: bool,
    ) -> Toolbox:
        listings = []
        for server in suite.servers:
            of_run = leases if execute and server.state == "run" else None
            listings.append(self._listed(suite_file, server, execute=execute, grant=grant, leases=of_run))
        of_servers: dict[str, str] = {}
        definitions = definitions_for(suite, case)
        servers: dict[str, RunServer] = {}
        notices: list[str] = []
        outputs: list[ServerOutput] = []
        found = await asyncio.gather(*listings) if listings else ()
        for server, listed in zip(suite.servers, found, strict=True):
            definitions.extend(listed.tools)
            if server.instructions == "system":
                of_servers[server.name] = listed.instructions
            if execute and listed.server is not None:
                servers |= dict.fromkeys((tool.name for tool in listed.tools), listed.server)
            notices.extend(listed.notices)
            outputs.extend(listed.outputs)
        known = definitions
        if changes:
            definitions = changed_definitions(definitions, changes)
            known = [*known, *definitions]
        code = None
        if grant is not None:
            code = grant.code
        shared = self.functions(code)
        modules = frozenset(_modules_of_runs((*case.mocks, *suite.mocks)))
        functions = shared.for_run(modules)
        mocks = Mocks(case.mocks, suite.mocks, functions, row=case.row, clock=clock)
        tools = offered_tools(definitions, suite, case, of_subject=of_subject)
        forms = _withheld(suite, grant)
        withheld = [tool.name for tool in tools if tool.provider in forms]
        if case.offer is not None:
            # If the case's `offer` names no tool of a server, that server's instructions are left out.
            present = {tool.server for tool in tools}
            of_servers = {name: text for name, text in of_servers.items() if name in present}
        sent = self._sent(of_servers)
        if instructions:
            sent, changed = self._earlier_instructions(sent, of_servers, instructions)
            notices += changed

        def close() -> None:
            functions.forget()
            leases.close()

        return Toolbox(
            tools,
            mocks,
            servers,
            functions.answer,
            tuple(notices),
            tuple(outputs),
            changes,
            close=close,
            known=known,
            withheld=withheld,
            instructions=sent,
            owns_state=bool(modules) or any(execute and server.state == "run" for server in suite.servers),
            answers=Answers(case.answers, suite.answers, CheckContext(functions.answer, clock=clock)),
        )

    def _sent(self, instructions: Mapping[str, str]) -> tuple[ServerInstructions, ...]:
        sent = []
        for server, text in instructions.items():
            # Redaction comes before cutting, because half of a secret would not be recognised.
            if too_long(text) is not None:
                text = self.secrets.redact(text)
            if text:
                sent.append(ServerInstructions(server, cut_instructions(text)))
        return tuple(sent)

    def _earlier_instructions(
        self, current: Sequence[ServerInstructions], servers: Iterable[str], earlier: Mapping[str, str]
    ) -> tuple[tuple[ServerInstructions, ...], list[str]]:
        by_server = {each.server: each for each in current}
        sent, notices = [], []
        for server in servers:
            present = by_server.get(server)
            # Earlier instructions were stored redacted, so the current instructions are compared redacted.
            text = self.secrets.redact(present.text) if present is not None else ""
            before = earlier.get(server, text)
            if before == text:
                sent += [present] if present is not None else []
                continue
            notices.append(_CHANGED_INSTRUCTIONS.format(server=repr(server)))
            if before:
                sent.append(ServerInstructions(server, before))
        return tuple(sent), notices

    async def running_server(self, suite_file: Path, server: Server, grant: Grant) -> McpServer:
        """Return a running server of a suite.

        The server is started first if it has not run yet, if it has died, or if it has lost its session.

        Raises UntrustedError if the grant does not cover the server. Raises ServerError if the server does not start or
        has died too often. After `stop` or `begin_batch`, it may start again."""
        self._refuse(suite_file, server, grant)
        key = _key(suite_file, server)
        if key not in self._servers:
            self._servers[key] = self._begin(suite_file, server, grant)
        started = self._servers[key]
        # If one run is stopped while it waits, the start goes on for the other runs.
        await asyncio.shield(started.start)
        await started.server.ready()
        return started.server

    def _refuse(self, suite_file: Path, server: Server, grant: Grant) -> None:
        if not grant.covers(server):
            raise UntrustedError(
                f"server {server.name!r} of {suite_file} is not started: its definition has changed since it was "
                "approved; start again to approve it as it is now"
            )
        if self._closed:
            raise ServerError(f"server {server.name!r} is not started: the program is quitting")

    async def _leased(self, suite_file: Path, server: Server, grant: Grant, leases: RunServers) -> McpServer:
        """Return a server that only one run uses.

        Raises the errors of `running_server`."""
        self._refuse(suite_file, server, grant)
        key = _key(suite_file, server)
        if key not in self._fresh:
            begin = partial(self._begin_fresh, suite_file, server)
            self._fresh[key] = FreshServers(server.name, begin, self._background)
        return await leases.acquire(self._fresh[key], grant)

    def status(self, suite_file: Path, server: Server) -> ServerStatus:
        started = self._servers.get(_key(suite_file, server))
        if started is None:
            return ServerStatus()
        server_now = started.server
        if not started.start.done() or server_now.renewal is not None:
            starting_s = time.monotonic() - server_now.began_s
            return ServerStatus("starting", starting_s=starting_s, downloads=server_now.downloads)
        if server_now.down_reason is not None:
            return ServerStatus("down", reason=server_now.down_reason, output=server_now.output)
        return ServerStatus(
            "running",
            server_now.listed,
            task_tools=server_now.task_tools,
            issues=server_now.issues,
            instructions=self.secrets.redact(server_now.listed_instructions),
        )

    async def wait_for_change(
        self, suite_file: Path, server: Server, known_tools: tuple[ToolDefinition, ...] = ()
    ) -> None:
        """Wait until the status of a server changes. `known_tools` are the tools in the status that the caller knows.

        The status changes in these cases:

        - A server that was starting was downloaded, runs now, or has failed.
        - A server that was running has gone down, or lists different tools.
        - A server that was down starts again."""
        started = self._servers.get(_key(suite_file, server))
        if started is None:
            return
        start = started.server.renewal
        if not started.start.done():
            start = started.start
        if start is not None:
            await started.server.wait_for_start(start)
        else:
            await started.server.wait_for_change(known_tools)

    async def stop(self, suite_file: Path, server: Server) -> None:
        """Close a server in whatever state it is. The next run that needs the server starts it again."""
        key = _key(suite_file, server)
        if key in self._fresh:
            self._fresh[key].begin_batch()
        started = self._servers.pop(key, None)
        if started is not None:
            await started.server.close()

    async def begin_batch(self) -> None:
        """Prepare the servers for the next batch.

        Servers that died may start again. All others offer the tools that they listed last."""
        # Offered tools may change only between batches, because runs with different tools cannot be compared.
        for started in self._servers.values():
            started.server.begin_batch()
        for fresh in self._fresh.values():
            fresh.begin_batch()
        dead = {key: started for key, started in self._servers.items() if started.server.down_reason is not None}
        for key in dead:
            del self._servers[key]
        await asyncio.gather(*(started.server.close() for started in dead.values()))

    async def close(self) -> None:
        """Close all servers at the same time, within their time limits. May be called repeatedly."""
        self._closed = True
        closing = [started.server.close() for started in self._servers.values()]
        closing += [fresh.close() for fresh in self._fresh.values()]
        await asyncio.gather(*closing)
        await self._background.wait_closed()

    def drop_spares(self) -> None:
        """End the servers that were started for a next run and not used."""
        for fresh in self._fresh.values():
            fresh.drop_spare()

    def stored_listings(self, suite: Suite, suite_file: Path) -> Mapping[str, Listing]:
        """Return the stored listings of the servers of a suite, by the servers' names.

        If every server has a listing, the suite can run with mocks and no server."""
        return self._listings.of(suite, suite_file)

    async def _listed(
        self, suite_file: Path, server: Server, *, execute: bool, grant: Grant | None, leases: RunServers | None
    ) -> _Listed:
        """Return the tools of a server. With `leases`, the server is one that only a single run uses."""
        try:
            if grant is None:
                raise UntrustedError(
                    f"{suite_file} is not trusted, so its server {server.name!r} is not started, and no earlier run "
                    "has listed its tools: trust the suite, with --trust for this run alone"
                )
            if leases is not None:
                started = await self._leased(suite_file, server, grant, leases)
            else:
                started = await self.running_server(suite_file, server, grant)
        except (ServerError, UntrustedError) as error:
            if execute or self._closed:
                raise
            why = str(error) if grant is not None else "the suite is not trusted"
            return self._recalled(suite_file, server, why, error)
        from workbench.tools.mcp_server import RunServer

        notices, outputs = [], []
        for news in started.pop_start_notices():
            notices.append(news.notice)
            if news.output is not None:
                outputs.append(news.output)
        cannot_tell = leases is not None and server.url is not None and started.is_stateless
        if cannot_tell and self._fresh[_key(suite_file, server)].is_first_report():
            notices.append(
                f"server {server.name!r} speaks a protocol without sessions, so it cannot distinguish runs: "
                'state = "run" separates nothing behind its URL; protocol = "legacy" in its [[servers]] gives each run '
                "a session, if the server has sessions"
            )
        if started.issues:
            notices.append(issues_notice(server.name, started.issues))
        return _Listed(started.tools, started.instructions, RunServer(started), tuple(notices), tuple(outputs))

    def _recalled(self, suite_file: Path, server: Server, reason: str, error: ServerError | UntrustedError) -> _Listed:
        try:
            listing = self._listings.recall(suite_file, server)
        except DamagedListingError as damage:
            text = f"{error}; {damage}"
            failed = ServerError(text, error.output) if isinstance(error, ServerError) else UntrustedError(text)
            raise failed from error
        if listing is None:
            raise error
        moment = f"{listing.listed_at:%Y-%m-%d %H:%M}"
        notice = f"tools of server {server.name!r} as listed on {moment}: {reason}"
        outputs: tuple[ServerOutput, ...] = ()
        if isinstance(error, ServerError) and error.output is not None:
            outputs = (error.output,)
        return _Listed(listing.tools, listing.instructions, None, (notice,), outputs)

    def _begin_fresh(self, suite_file: Path, definition: Server, grant: Grant, first: bool) -> StartingServer:
        """Start a server that only one run uses. `first` is whether it is the first in its batch.

        The first server of a batch determines the tools of all later servers."""
        return self._begin(suite_file, definition, grant, quiet=not first)

    def _begin(self, suite_file: Path, definition: Server, grant: Grant, *, quiet: bool = False) -> StartingServer:
        # This import is lazy, because most suites have no server.
        from workbench.tools.mcp_server import McpServer

        async def relisted() -> None:
            if not quiet:
                await self._remember(suite_file, definition, server)

        limits = self._limits.of(definition)
        connect = partial(self._connection, suite_file, definition, grant, limits)
        server = McpServer(
            definition,
            connect,
            self._program.secrets,
            limits,
            relisted,
            announce_nothing if quiet else self._starting,
            known=self._listings.has(suite_file, definition),
            protocol=self._protocols.get(_key(suite_file, definition)),
            roots=_roots(definition, suite_file),
        )
        start = asyncio.create_task(self._start(suite_file, definition, server, quiet=quiet))
        start.add_done_callback(_status_of)
        return StartingServer(server, start)

    async def _start(self, suite_file: Path, definition: Server, server: McpServer, *, quiet: bool) -> None:
        await server.start()
        self._protocols[_key(suite_file, definition)] = server.protocol
        if not quiet:
            await self._remember(suite_file, definition, server)

    async def _remember(self, suite_file: Path, definition: Server, server: McpServer) -> None:
        now = (self.secrets.redacted(server.listed), self.secrets.redact(server.listed_instructions))
        before = self._remembered.get(server)
        if now == before:
            return
        self._remembered[server] = now
        await asyncio.to_thread(self._listings.remember, suite_file, definition, *now)
        change = None
        if before is not None:
            change = ListingChange.between(before[0], now[0])
        self._tell_listed(suite_file, definition.name, change)

    def _connection(self, suite_file: Path, server: Server, grant: Grant, limits: TimeLimits) -> Connection:
        secrets = self._program.secrets
        register_server_secrets(server, secrets)
        if server.module is not None:
            from workbench.tools.module_connection import ModuleConnection

            return ModuleConnection(server.module, server.object or "mcp", grant.code, limits)
        environment = grant.variables(server)
        if server.url is not None:
            from workbench.tools.url_connection import UrlConnection

            logins = Logins(self._program.folders.logins, suite_file)
            return UrlConnection(server, server.url, environment, secrets, limits, logins)
        if server.command is not None:
            from workbench.tools.server_process import CommandConnection, log_file_of

            folder = server_folder(server, suite_file.parent)
            log_file = log_file_of(self._program.folders.server_logs, suite_file, server)
            passed = grant.needs.passed
            return CommandConnection(
                server, server.command, folder, log_file, environment, secrets, limits, passed=passed
            )
        raise ServerError(f"server {server.name!r} has neither a command nor a url nor a module")


def _roots(server: Server, suite_file: Path) -> list[Path]:
    """Return the folders that a server may use. Symbolic links are resolved.

    Raises ServerError for a root that is not a folder inside the suite's folder."""
    inside, roots = resolved(suite_file.absolute().parent), []
    for number, root in enumerate(server.roots):
        folder = resolved(inside / root)
        where = f"server {server.name!r} is not started: roots[{number}], {root!r},"
        if not folder.is_relative_to(inside):
            raise ServerError(f"{where} leads out of the suite's folder, to {folder}; name a folder inside it")
        if not folder.is_dir():
            raise ServerError(f"{where} is not a folder: create {folder}, or correct it")
        roots.append(folder)
    return roots


def _modules_of_runs(mocks: Iterable[Mock]) -> Iterator[str]:
    for mock in mocks:
        if mock.python is not None and mock.state == "run":
            yield mock.python.partition(":")[0]


def _withheld(suite: Suite, grant: Grant | None) -> list[Mapping[str, JsonValue] | None]:
    """Return the tools of model providers that the suite's grant does not cover, in the provider's format."""
    withheld = []
    for tool in suite.provider_tools:
        if grant is None or provider_tool_need(tool) not in grant.needs.provider_tools:
            withheld.append(definition_of_provider(tool).provider)
    return withheld


def _key(suite_file: Path, server: Server) -> tuple[Path, str]:
    return suite_file, server.model_dump_json()


def _status_of(start: asyncio.Task[None]) -> None:
    # If no task awaits the failed start, asyncio would print its error on the terminal.
    if not start.cancelled():
        start.exception()
