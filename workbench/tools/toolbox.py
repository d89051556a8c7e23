"""The tools of a run: what the model is shown and who answers its calls; and the servers that many runs share."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.checks.evaluate import CallPython
from workbench.suite.model import Case, Server, Suite, Tool
from workbench.tools.answer import ToolAnswer
from workbench.tools.errors import ServerError, ToolsError, UntrustedError
from workbench.tools.mocks import Mocks, PlannedAnswer, default_answer, mock_answer
from workbench.tools.python_reference import PythonFunctions
from workbench.tools.servers import StdioServer, TimeLimits
from workbench.trajectory.messages import JsonValue, ResultSource, ToolCall, ToolDefinition


@dataclass(frozen=True)
class _Started:
    server: StdioServer
    start: asyncio.Task[tuple[ToolDefinition, ...]]


class ServerPool:
    """The servers of suites, started when first needed and kept until the pool is closed.

    A server is known by its suite file and its definition, and is shared by all runs. `log_folder` takes one log per
    server, `environment_of` gives what `$NAME` refers to in the suites of a folder. To be used on one event loop.
    """

    def __init__(
        self,
        log_folder: Path,
        environment_of: Callable[[Path], Mapping[str, str]],
        limits: TimeLimits | None = None,
    ) -> None:
        self._log_folder = log_folder
        self._environment_of = environment_of
        self._limits = limits or TimeLimits()
        self._servers: dict[tuple[Path, str], _Started] = {}
        self._functions: dict[tuple[Path, bool], PythonFunctions] = {}
        self._closed = False

    async def open_toolbox(
        self, suite: Suite, case: Case, suite_file: Path, *, execute: bool, trusted: bool
    ) -> Toolbox:
        """The tools of one run of a case, all servers of its suite started.

        Raises UntrustedError when the suite has servers and is not trusted, ServerError when one does not start, and
        ToolsError when two tools have one name or the case offers a tool that does not exist.
        """
        if suite.servers and not trusted:
            names = ", ".join(server.name for server in suite.servers)
            raise UntrustedError(f"{suite_file} is not trusted, so its servers are not started: {names}")
        started = await asyncio.gather(*(self._started(suite_file, server) for server in suite.servers))
        definitions = [_definition(tool) for tool in suite.tools]
        for _, tools in started:
            definitions.extend(tools)
        folder = suite_file.parent
        functions = self._functions.setdefault((folder, trusted), PythonFunctions(folder, trusted=trusted))
        return Toolbox(
            _offered(definitions, case),
            Mocks(case.mocks, suite.mocks, functions),
            {tool.name: server for server, tools in started for tool in tools} if execute else {},
            functions.answer,
        )

    async def renew(self) -> None:
        """Forget the servers that failed to start or died, so that the next batch that needs one starts it again.

        Within a batch a dead server stays down: one that dies of every call would be started without end.
        """
        dead = {key: started for key, started in self._servers.items() if started.server.down is not None}
        for key in dead:
            del self._servers[key]
        await asyncio.gather(*(started.server.close() for started in dead.values()))

    async def close(self) -> None:
        """Close all servers at the same time, within their limits. May be called more than once."""
        self._closed = True
        await asyncio.gather(*(started.server.close() for started in self._servers.values()))

    async def _started(self, suite_file: Path, definition: Server) -> tuple[StdioServer, tuple[ToolDefinition, ...]]:
        if self._closed:
            raise ServerError(f"server {definition.name!r} is not started: the program is ending")
        key = (suite_file, definition.model_dump_json())
        if key not in self._servers:
            self._servers[key] = self._begin(suite_file, definition)
        started = self._servers[key]
        # A run that is stopped while it waits must not take the server from the others.
        return started.server, await asyncio.shield(started.start)

    def _begin(self, suite_file: Path, definition: Server) -> _Started:
        if definition.command is None:
            key = "url" if definition.url is not None else "module"
            raise ServerError(f"server {definition.name!r} has {key!r}, which this version cannot open: give a command")
        server = StdioServer(
            definition,
            suite_file.parent,
            self._log_file(suite_file, definition),
            self._environment_of(suite_file.parent),
            self._limits,
        )
        start = asyncio.create_task(server.start())
        start.add_done_callback(_look_at)
        return _Started(server, start)

    def _log_file(self, suite_file: Path, definition: Server) -> Path:
        readable = re.sub(r"[^\w.-]+", "-", f"{suite_file.stem}-{definition.name}")
        digest = hashlib.sha256(str(suite_file).encode()).hexdigest()[:8]
        return self._log_folder / f"{readable}-{digest}.log"


class Toolbox:
    """What the model is shown in one run, and what answers its calls.

    `servers` holds, by tool name, the servers on which tools really run; empty without real execution. `call_python`
    calls the functions of the suite's `python` checks. `notices` say where a listing is not a server's own of now.
    """

    def __init__(
        self,
        definitions: Sequence[ToolDefinition],
        mocks: Mocks,
        servers: Mapping[str, StdioServer],
        call_python: CallPython,
        notices: tuple[str, ...] = (),
    ) -> None:
        self.definitions = tuple(definitions)
        self.notices = notices
        self.call_python = call_python
        self._offered = {definition.name: definition for definition in definitions}
        self._mocks = mocks
        self._servers = servers

    async def plan(self, call: ToolCall, step_mock: JsonValue = None) -> PlannedAnswer:
        """Who will answer a call, asked once per call: the step's mock, the case's mocks, the suite's, the server, the
        default answer, in this order. A tool that is not on offer and broken arguments are answered by a tool error.
        """
        if step_mock is not None:
            return _ready("step mock", mock_answer(step_mock, call.arguments))
        if call.tool not in self._offered:
            return _ready("default", ToolAnswer(f"There is no tool named {call.tool}.", is_error=True))
        if call.problem is not None:
            return _ready("default", ToolAnswer(f"The arguments are not a JSON object: {call.problem}", is_error=True))
        mocked = await self._mocks.plan(call)
        if mocked is not None:
            return mocked
        if call.tool in self._servers:
            server = self._servers[call.tool]
            return PlannedAnswer(
                "server", lambda: server.call(call.tool, call.arguments), self._offered[call.tool].server
            )
        return _ready("default", default_answer(call))


def _ready(source: ResultSource, answer: ToolAnswer) -> PlannedAnswer:
    async def run() -> ToolAnswer:
        return answer

    return PlannedAnswer(source, run)


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(tool.name, tool.description, tool.parameters, tool.annotations.model_dump(exclude_none=True))


def _offered(definitions: Sequence[ToolDefinition], case: Case) -> list[ToolDefinition]:
    """The definitions that the case offers; raises ToolsError for two tools of one name and for unknown names."""
    by_name: dict[str, ToolDefinition] = {}
    for definition in definitions:
        other = by_name.setdefault(definition.name, definition)
        if other is not definition:
            raise ToolsError(
                f"there are two tools named {definition.name!r}, {_origin(other)} and {_origin(definition)}: "
                "give a server a prefix, or rename one"
            )
    if case.offer is None:
        return list(definitions)
    unknown = [name for name in case.offer if name not in by_name]
    if unknown:
        raise ToolsError(
            f"case {case.id!r} offers {', '.join(map(repr, unknown))}, but there is no such tool; "
            f"there are: {', '.join(by_name) or 'none'}"
        )
    return [definition for definition in definitions if definition.name in case.offer]


def _origin(definition: ToolDefinition) -> str:
    return f"one of server {definition.server!r}" if definition.server is not None else "one written out"


def _look_at(start: asyncio.Task[tuple[ToolDefinition, ...]]) -> None:
    """Take note of a failure that nobody may be waiting for any more, or asyncio would complain on the terminal."""
    if not start.cancelled():
        start.exception()
