"""One MCP server over standard input and output: started, listed, called and ended by one owner task.

An `mcp.Client` must be entered and left in the same task, and that task must not be cancelled twice; calls may come
from any task. `mcp` is imported when the first server starts, in a thread, because that takes most of a second.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, BinaryIO

from workbench.suite.model import Server
from workbench.suite.references import environment_names
from workbench.tools.answer import ToolAnswer
from workbench.tools.content import answer_of
from workbench.tools.environment import MissingVariableError, filled, redacted
from workbench.tools.errors import ServerError
from workbench.tools.stdio import MAX_MESSAGE_BYTES, StdioTransport
from workbench.trajectory.messages import JsonValue, ToolDefinition

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool

MAX_PAGES = 100
"""Pages of a tool listing that are read; a listing that goes on after that is refused."""

MAX_OLD_LOG_BYTES = 1024 * 1024
"""A log that has grown beyond this is begun anew when its server starts."""

MAX_SHOWN_COMMAND = 200
"""Characters of a command that messages show."""

_LAST_RESORT_S = 0.5


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


class StdioServer:
    """An MCP server that a suite starts by a command.

    `folder` is the suite file's, `environment` the one that `$NAME` in the server's `env` refers to. What the server
    writes to standard error goes to `log_file`. Every ServerError names the server, its command and that file.
    """

    def __init__(
        self,
        server: Server,
        folder: Path,
        log_file: Path,
        environment: Mapping[str, str],
        limits: TimeLimits = TimeLimits(),
    ) -> None:
        if server.command is None:
            raise ValueError(f"server {server.name!r} has no command")
        self._server = server
        self._command = server.command
        self._folder = folder
        self._log_file = log_file
        self._log_note = f"log: {log_file}"
        self._environment = environment
        self._limits = limits
        names = {name for value in server.env.values() for name in environment_names(value)}
        self._secrets = {name: environment[name] for name in names if name in environment}
        self._owner: asyncio.Task[None] | None = None
        self._cancelled = False
        self._stop: asyncio.Future[None] | None = None
        self._connecting = True
        self._client: Client | None = None
        self._transport: StdioTransport | None = None
        self._tools: tuple[ToolDefinition, ...] = ()
        self._error: BaseException | None = None
        self._down: str | None = None

    @property
    def down(self) -> str | None:
        """Why the server cannot be called any more; `None` while it can."""
        return self._down

    @property
    def pid(self) -> int | None:
        """The process started for the server, if any."""
        return self._transport.pid if self._transport is not None else None

    async def start(self) -> tuple[ToolDefinition, ...]:
        """Start the server and list its tools, names prefixed. To be called once.

        Raises ServerError when it cannot be started, does not answer in time, or lists no end of tools.
        """
        try:
            return await self._start()
        except ServerError as error:
            self._down = str(error)
            raise
        except asyncio.CancelledError:
            self._cancel_owner()
            raise

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> ToolAnswer:
        """Call a tool by the name it was listed under and say what it answered, a tool error included.

        Raises ServerError when the server is down, dies, or does not answer within its time limit.
        """
        client, transport = self._client, self._transport
        if client is None or transport is None:
            raise ServerError(self._down or self._says("is not running"))
        if not _is_text(arguments):
            return ToolAnswer("The arguments hold text that is not valid Unicode.", is_error=True)
        from mcp import MCPError

        limit_s = self._limits.call_s
        own_name = tool.removeprefix(self._server.prefix)
        try:
            async with asyncio.timeout(limit_s):
                return self._without_secrets(answer_of(await client.call_tool(own_name, dict(arguments))))
        except TimeoutError:
            raise ServerError(self._says(f"did not answer a call of {tool} within {limit_s:g} s")) from None
        except (MCPError, RuntimeError, ValueError) as error:
            # MCPError is an error of the server's own or the connection's end, and both may have the same code;
            # RuntimeError and ValueError mean that the answer breaks the tool's output schema or the protocol.
            if self._client is client and not transport.closed:
                said = error.message if isinstance(error, MCPError) else _first_line(error)
                return self._without_secrets(ToolAnswer(said, is_error=True))
        await self._end()
        raise ServerError(self._down or self._says("is not running"))

    async def close(self) -> None:
        """End the server and everything it started, within the limits. May be called at any time, more than once."""
        if self._down is None:
            self._down = self._says("was closed")
        await self._end()

    async def _start(self) -> tuple[ToolDefinition, ...]:
        given = self._given_environment()
        await asyncio.to_thread(importlib.import_module, "mcp")
        _silence_sdk_logging()
        if self._down is not None:
            raise ServerError(self._down)
        loop = asyncio.get_running_loop()
        self._stop = loop.create_future()
        listed: asyncio.Future[None] = loop.create_future()
        owner = asyncio.create_task(self._own(given, listed, self._stop), name=f"server {self._server.name}")
        self._owner = owner
        await asyncio.wait({listed, owner}, timeout=self._limits.start_s, return_when=asyncio.FIRST_COMPLETED)
        if listed.done():
            return self._tools
        if owner.done():
            raise self._start_error()
        await self._end()
        stray = self._transport is not None and self._transport.stray_lines
        hint = "; it writes to standard output what is no MCP message" if stray else ""
        raise ServerError(self._says(f"did not answer within {self._limits.start_s:g} s{hint}"))

    async def _own(
        self,
        given: Mapping[str, str],
        listed: asyncio.Future[None],
        stop: asyncio.Future[None],
    ) -> None:
        """The life of the connection, from first to last in one task."""
        from mcp import Client
        from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS

        inherited = {name: self._environment[name] for name in DEFAULT_INHERITED_ENV_VARS if name in self._environment}
        program, *arguments = self._command
        try:
            with self._open_log() as log:
                self._transport = transport = StdioTransport(
                    (sys.executable if program == "python" else program, *arguments),
                    folder=self._folder,
                    environment={**inherited, **given},
                    log=log,
                    redact=lambda text: redacted(text, self._secrets),
                    polite_s=self._limits.polite_s,
                    terminate_s=self._limits.terminate_s,
                )
                async with Client(transport) as client:
                    self._tools = await self._list_tools(client)
                    self._client, self._connecting = client, False
                    listed.set_result(None)
                    await asyncio.wait({stop, transport.exited}, return_when=asyncio.FIRST_COMPLETED)
                    self._client = None
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 (kept, and put into words by whoever waits for this task)
            self._error = _innermost(error)
        finally:
            self._client = None
            if listed.done() and self._down is None:
                self._down = self._says(self._how_it_ended())

    async def _list_tools(self, client: Client) -> tuple[ToolDefinition, ...]:
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools.extend(page.tools)
            cursor = page.next_cursor
            if cursor is None:
                return tuple(self._definition(tool) for tool in tools)
        raise ServerError(self._says(f"lists its tools on more than {MAX_PAGES} pages"))

    def _definition(self, tool: Tool) -> ToolDefinition:
        annotations = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
        return ToolDefinition(
            name=self._server.prefix + tool.name,
            description=tool.description or "",
            parameters=tool.input_schema,
            annotations=annotations,
            server=self._server.name,
        )

    async def _end(self) -> None:
        """Bring the owner task to its end: by asking while it serves, by its one cancellation while it connects."""
        owner, stop = self._owner, self._stop
        if owner is None or stop is None:
            return
        if not stop.done():
            stop.set_result(None)
            if self._connecting:
                self._cancel_owner()
        await asyncio.wait({owner}, timeout=self._limits.close_s)
        if not owner.done() and self._transport is not None:
            self._transport.kill()
            await asyncio.wait({owner}, timeout=_LAST_RESORT_S)

    def _open_log(self) -> BinaryIO:
        """The server's log. Where none can be written, as in a read-only container, the server runs without one."""
        try:
            return _open_log(self._log_file, f"server {self._server.name!r}: {self._shown_command}")
        except OSError as error:
            self._log_note = f"no log: {self._log_file} cannot be written, {error.strerror}"
            return Path(os.devnull).open("wb", buffering=0)

    def _cancel_owner(self) -> None:
        if self._owner is not None and not self._cancelled:
            self._cancelled = True
            self._owner.cancel()

    def _given_environment(self) -> dict[str, str]:
        """The variables that the suite gives the server."""
        try:
            return {name: filled(value, self._environment) for name, value in self._server.env.items()}
        except MissingVariableError as error:
            raise ServerError(self._says(f"needs the environment variable {error.name}, which is not set")) from None

    def _without_secrets(self, answer: ToolAnswer) -> ToolAnswer:
        """What a server says of the values it was given goes neither to a model nor into a report."""
        return ToolAnswer(redacted(answer.content, self._secrets), answer.is_error)

    @property
    def _shown_command(self) -> str:
        """The command on one line of moderate length."""
        return shorten(shlex.join(self._command), MAX_SHOWN_COMMAND, placeholder=" …")

    def _says(self, what: str) -> str:
        sentence = f"server {self._server.name!r} {what} (command: {self._shown_command}; {self._log_note})"
        return redacted(sentence, self._secrets)

    def _start_error(self) -> ServerError:
        """Why the owner task ended before the tools were listed."""
        error = self._error
        if isinstance(error, ServerError):
            return error
        if self._down is not None:
            return ServerError(self._down)
        if self._transport is not None and self._transport.own_exit_code is not None:
            return ServerError(self._says(f"{self._how_it_ended()} before it listed its tools"))
        if isinstance(error, OSError) and self.pid is None:
            return ServerError(self._says(f"cannot be started: {self._in_words(error)}"))
        return ServerError(self._says(f"does not speak MCP as expected: {_first_line(error)}"))

    def _in_words(self, error: OSError) -> str:
        if not self._folder.is_dir():
            return f"there is no folder {self._folder}"
        if isinstance(error, FileNotFoundError):
            return f"there is no program {self._command[0]!r}"
        return f"{error.strerror or error}: {error.filename or self._command[0]}"

    def _how_it_ended(self) -> str:
        if self._transport is not None and self._transport.overlong:
            return f"sent a message of more than {MAX_MESSAGE_BYTES // 2**20} MiB"
        code = self._transport.own_exit_code if self._transport is not None else None
        if code is None:
            return "closed its output"
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"


def _innermost(error: BaseException) -> BaseException:
    """The first exception that is not a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _first_line(error: BaseException | None) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _is_text(arguments: Mapping[str, JsonValue]) -> bool:
    """Whether the arguments can be written as UTF-8; a model can send half of a surrogate pair."""
    try:
        json.dumps(dict(arguments), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _open_log(path: Path, title: str) -> BinaryIO:
    """Open a log for appending, unbuffered because the server writes to it too, and begin it with a title line.

    Only its owner may read it: a server may say anything."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    too_long = path.exists() and path.stat().st_size > MAX_OLD_LOG_BYTES
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if too_long else 0)
    log = os.fdopen(os.open(path, flags, mode=0o600), "ab", buffering=0)
    log.write(f"== {title}\n".encode())
    return log


def _silence_sdk_logging() -> None:
    """Keep the SDK's log lines off the terminal: the server's own log and our errors say what matters."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
