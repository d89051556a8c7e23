"""A server started by a command: its environment, its log, and the messages for its failures."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import shorten
from types import TracebackType
from typing import TYPE_CHECKING

from workbench.config.secrets import Secrets
from workbench.limits import MAX_MESSAGE_BYTES
from workbench.suite.model import Server
from workbench.tools.connection import TimeLimits, first_line
from workbench.tools.environment import INHERITED, filled
from workbench.tools.server_log import ServerLog
from workbench.tools.stdio import StdioTransport
from workbench.trajectory.events import ServerOutput

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

MAX_COMMAND_CHARS = 200
"""Characters of a command shown in messages."""


class CommandConnection:
    """A `Connection` over a command's standard input and output. It runs in `folder`, that of the suite file."""

    def __init__(
        self,
        server: Server,
        command: tuple[str, ...],
        folder: Path,
        log_file: Path,
        environment: Mapping[str, str],
        secrets: Secrets,
        limits: TimeLimits,
        log_changed: Callable[[], object] = lambda: None,
    ) -> None:
        self._server = server
        self._command = command
        self._folder = folder
        self._log_file = log_file
        self._environment = environment
        self._secrets = secrets
        self._limits = limits
        self._log_changed = log_changed
        self._log: ServerLog | None = None
        self._transport: StdioTransport | None = None

    @property
    def where(self) -> str:
        problem = self._log.problem if self._log is not None else None
        log = f"log: {self._log_file}" if problem is None else f"no log: {problem}"
        return f"command: {self._shown_command}; {log}"

    @property
    def pid(self) -> int | None:
        return self._transport.pid if self._transport is not None else None

    @property
    def output(self) -> ServerOutput | None:
        if self._log is None:
            return None
        lines, earlier = self._log.last_lines()
        log = str(self._log_file) if self._log.problem is None else None
        return ServerOutput(self._server.name, lines, earlier, log)

    @property
    def closed(self) -> bool:
        return self._transport is None or self._transport.closed

    @property
    def lost(self) -> asyncio.Future[None]:
        assert self._transport is not None
        return self._transport.lost

    async def __aenter__(self) -> TransportStreams:
        given = {name: filled(value, self._environment, self._secrets) for name, value in self._server.env.items()}
        inherited = {name: self._environment[name] for name in INHERITED if name in self._environment}
        program, *arguments = self._command
        title = f"server {self._server.name!r}: {self._shown_command}"
        self._log = ServerLog(self._log_file, self._secrets.redact(title), self._secrets, self._log_changed)
        self._transport = StdioTransport(
            (sys.executable if program == "python" else program, *arguments),
            folder=self._folder,
            environment={**inherited, **given},
            log=self._log,
            polite_s=self._limits.polite_s,
            terminate_s=self._limits.terminate_s,
        )
        try:
            return await self._transport.__aenter__()
        except BaseException as error:
            if isinstance(error, OSError):
                self._log.note(f"cannot be started: {self._in_words(error)}")
            self._log.close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._log is not None
        assert self._transport is not None
        try:
            await self._transport.__aexit__(kind, error, traceback)
        finally:
            own_end = self._transport.own_exit_code is not None
            self._log.note(self.why_lost(None) if own_end else "was closed")
            self._log.close()

    def kill(self) -> None:
        if self._transport is not None:
            self._transport.kill()

    def why_not_started(self, error: BaseException | None) -> str:
        if self._transport is not None and self._transport.own_exit_code is not None:
            return f"{self.why_lost(error)} before it listed its tools"
        if isinstance(error, OSError) and self.pid is None:
            return f"cannot be started: {self._in_words(error)}"
        if self._transport is not None and self._transport.overlong:
            return self.why_lost(error)
        return f"does not speak MCP as expected: {first_line(error)}"

    def hint(self) -> str:
        if self._transport is not None and self._transport.stray_lines:
            return "; it writes to standard output something that is not an MCP message"
        return ""

    def why_lost(self, error: BaseException | None) -> str:
        transport = self._transport
        if transport is not None and transport.overlong:
            return MAX_MESSAGE_BYTES.reached(what="a message")
        code = transport.own_exit_code if transport is not None else None
        if code is None:
            return "closed its output"
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def why_unanswered(self, error: Exception) -> str | None:
        return None

    @property
    def _shown_command(self) -> str:
        """The command on one line of limited length."""
        return shorten(shlex.join(self._command), MAX_COMMAND_CHARS, placeholder=" …")

    def _in_words(self, error: OSError) -> str:
        if not self._folder.is_dir():
            return f"the folder {self._folder} does not exist"
        if isinstance(error, FileNotFoundError):
            return f"there is no program {self._command[0]!r}"
        return f"{error.strerror or error}: {error.filename or self._command[0]}"
