"""JSON-RPC with an agent's process, one message per line, as in the Agent Client Protocol (ACP)."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass, json_text
from workbench.limits import MAX_ERROR_BYTES, MAX_MESSAGE_BYTES
from workbench.tools.answer import ServerError, clean_object
from workbench.tools.server_process import (
    LAST_LINES,
    MAX_LINE_CHARS,
    ends_within,
    kill_left_behind,
    new_mark,
    signal_group,
    started_process,
)
from workbench.trajectory.events import ServerOutput

_logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 16
_NO_METHOD = -32601
_SHOWN_CHARS = 120
"""The number of characters that a message quotes from an invalid line or an error."""

CANCEL_TIMEOUT_S = 5.0
"""The time limit, in seconds, for an agent to end a cancelled prompt."""
EXIT_TIMEOUT_S = 2.0
"""The time limit, in seconds, for an agent to end. It applies after closing the input, and again after SIGTERM."""
_REAP_TIMEOUT_S = 1.0


class AgentError(ServerError):
    """An agent could not be started, has ended, or broke the protocol. This is an infrastructure error.

    The message names the cause and the remedy."""


class JsonRpcError(Exception):
    def __init__(self, code: int, message: str, details: str = "") -> None:
        super().__init__(f"{message}: {details}" if details else message)
        self.code = code


@dataclass(frozen=True, slots=True)
class AgentLost:
    """The last message from an agent: the agent's process has ended, or has sent a message above the size limit."""


@dataclass(frozen=True, slots=True)
class Notification:
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request of the agent. The answer must carry the request's number."""

    number: str | int
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """A line of the agent's output that is not a JSON-RPC message. `text` is the beginning of the line."""

    text: str


IncomingMessage = Notification | IncomingRequest | MalformedLine | AgentLost


class AgentConnection:
    """An agent's process and its connection.

    `on_message` is called with the agent's requests and notifications in order. No further message is read until
    `on_message` returns."""

    def __init__(self, name: str, on_message: Callable[[IncomingMessage], Awaitable[None]], redacting: Secrets) -> None:
        self._name = name
        self._on_message = on_message
        self._secrets = redacting
        self._mark = new_mark()
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._errors = bytearray()
        self._earlier_lines = 0
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._why_lost = ""
        self._ignores_messages = False
        self._command = ""
        self.has_session = False
        """Whether the agent has opened a session. The owner of the connection sets this flag."""
        self.lost = asyncio.Event()
        """An event that is set when the agent has ended, or has exceeded the limit of a message."""

    async def start(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start the agent's command in its own process group.

        Raises OSError and ValueError."""
        self._command = shlex.join(command)
        self._process, self._watcher = await started_process(
            command, folder=folder, environment=environment, limit=MAX_MESSAGE_BYTES, mark=self._mark
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._tasks = [
            asyncio.create_task(self._read(self._process.stdout)),
            asyncio.create_task(self._read_errors(self._process.stderr)),
        ]

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return its result.

        Raises JsonRpcError for an error, and AgentError if the agent ends."""
        answer = self.sent_request(method, params)
        return await answer

    def sent_request(self, method: str, params: Mapping[str, Any]) -> asyncio.Future[Any]:
        """Send a request and return a future of its result. The future raises the errors of `request`."""
        self._number += 1
        number = self._number
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # Retrieve the exception even if no caller waits for the answer any more, because asyncio logs exceptions that
        # were never retrieved.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        if self._why_lost:
            answer.set_exception(self.lost_error())
            return answer
        self._waiting[number] = answer
        self._send({"id": number, "method": method, "params": params})
        return answer

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def answer(self, request: IncomingRequest, result: Mapping[str, Any]) -> None:
        self._send({"id": request.number, "result": result})

    def refuse(self, request: IncomingRequest) -> None:
        """Answer a request of the agent with the error "method not found"."""
        error = {"code": _NO_METHOD, "message": f"{request.method} is not offered by this client"}
        self._send({"id": request.number, "error": error})

    def error(self, message: str) -> AgentError:
        return AgentError(self._secrets.redact(message), self.output)

    def lost_error(self) -> AgentError:
        """Return an error which reports that the agent has ended, with its exit and its last output."""
        advice = "" if self.has_session else f"; it opened no session, so {self._how_to_look}"
        return self.error(f"the agent {self._name} {self._why_lost or 'has ended'}{self._said}{advice}")

    def slow_error(self, limit_s: float) -> AgentError:
        """Return an error which reports that the agent opened no session within a time limit."""
        why = f"did not open a session within {limit_s:g} s"
        return self.error(f"the agent {self._name} {why}{self._said}; {self._how_to_look}")

    @property
    def _how_to_look(self) -> str:
        return f"run its command in a terminal to see what is missing: {self._command}"

    @property
    def output(self) -> ServerOutput | None:
        """The end of the agent's standard error; `None` if the agent wrote nothing there."""
        lines = self._error_lines
        if not lines:
            return None
        earlier = self._earlier_lines + len(lines[:-LAST_LINES])
        return ServerOutput(self._name, lines[-LAST_LINES:], earlier, is_agent=True)

    @property
    def _said(self) -> str:
        lines = [line.strip() for line in self._error_lines if line.strip()]
        return f": {lines[-1]}" if lines else ""

    @property
    def _error_lines(self) -> tuple[str, ...]:
        text = self._secrets.redact(self._errors.decode("utf-8", "replace"))
        return tuple([line[:MAX_LINE_CHARS] for line in text.splitlines()])

    def _send(self, message: Mapping[str, Any]) -> None:
        process = self._process
        # Writing does not wait, because messages are small. An agent that reads nothing is ended by the time limit.
        with suppress(OSError, RuntimeError):
            if process is not None and process.stdin is not None and not process.stdin.is_closing():
                process.stdin.write(json_text({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _read(self, stdout: asyncio.StreamReader) -> None:
        try:
            while line := await stdout.readline():
                await self._handle_line(line)
            why = await self._how_it_ended()
        except ValueError:
            why = MAX_MESSAGE_BYTES.exceeded(what="a message")
        self._why_lost = why
        self.lost.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self.lost_error())
        self._waiting.clear()
        await self._pass_on(AgentLost())

    async def _handle_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            await self._pass_on(MalformedLine(_beginning(line.decode("utf-8", "replace"))))
            return
        message = clean_object(message)
        number, method, params = message.get("id"), message.get("method"), message.get("params")
        if not isinstance(params, dict):
            params = {}
        if isinstance(method, str) and isinstance(number, str | int):
            await self._pass_on(IncomingRequest(number, method, params))
        elif isinstance(method, str):
            await self._pass_on(Notification(method, params))
        elif isinstance(number, int) and (waiting := self._waiting.pop(number, None)) is not None:
            _settle(waiting, message)
        else:
            await self._pass_on(MalformedLine(_beginning(line.decode("utf-8", "replace"))))

    async def _pass_on(self, incoming: IncomingMessage) -> None:
        if not self._ignores_messages:
            await self._on_message(incoming)

    async def _read_errors(self, stderr: asyncio.StreamReader) -> None:
        while piece := await stderr.read(_CHUNK_BYTES):
            self._errors += piece
            if len(self._errors) > MAX_ERROR_BYTES:
                dropped = self._errors[:-MAX_ERROR_BYTES]
                self._earlier_lines += dropped.count(b"\n")
                del self._errors[:-MAX_ERROR_BYTES]

    async def _how_it_ended(self) -> str:
        process = self._process
        assert process is not None
        if not await ends_within(process, _REAP_TIMEOUT_S):
            return "closed its output"
        # After a crash, the last output may still be in the pipe. Wait until it is read.
        await asyncio.wait(self._tasks[1:], timeout=_REAP_TIMEOUT_S)
        assert process.returncode is not None
        if process.returncode < 0:
            return f"was ended by {signal.Signals(-process.returncode).name}"
        return f"ended with exit code {process.returncode}"

    def ignore_messages(self) -> None:
        """Discard all further messages of the agent.

        The messages are still read, because a full pipe would block the agent."""
        self._ignores_messages = True

    async def end(self, cancelled: asyncio.Future[Any] | None = None) -> None:
        """Close the agent's standard input, and wait a few seconds for its exit.

        `cancelled` is the future of a cancelled prompt, which the agent may answer first. An agent that does not exit
        must be ended with `kill`."""
        process = self._process
        if process is None:
            return
        if cancelled is not None:
            await asyncio.wait({cancelled}, timeout=CANCEL_TIMEOUT_S)
        if process.stdin is not None:
            process.stdin.close()
        if not await ends_within(process, EXIT_TIMEOUT_S):
            signal_group(process, hard=False)
            await ends_within(process, EXIT_TIMEOUT_S)

    async def kill(self) -> None:
        """Kill the agent and every process that it started, and release its pipes."""
        process = self._process
        if process is None:
            return
        # Some agents leave servers and models running, inside or outside their process group.
        signal_group(process, hard=True)
        for pid, left in kill_left_behind(process, self._mark):
            _logger.warning("process %d was left behind by the agent %s, and killed: %s", pid, self._name, left)
        try:
            await ends_within(process, _REAP_TIMEOUT_S)
        finally:
            for task in self._tasks:
                task.cancel()
            if self._watcher is not None:
                self._watcher.close()
            process._transport.close()  # type: ignore[attr-defined]  # as in `StdioTransport`


def _settle(waiting: asyncio.Future[Any], message: Mapping[str, Any]) -> None:
    if waiting.done():
        return
    error = message.get("error")
    if error is None:
        waiting.set_result(message.get("result"))
        return
    code, text, details = 0, "an error without a message", ""
    if isinstance(error, dict):
        code = error["code"] if isinstance(error.get("code"), int) else 0
        text = str(error.get("message") or text)
        if (data := error.get("data")) is not None:
            details = data if isinstance(data, str) else json_text(data)
    waiting.set_exception(JsonRpcError(code, _beginning(text), _beginning(details)))


def _beginning(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]} …"


def command_with_full_path(command: Sequence[str], path: str | None) -> tuple[str, ...] | None:
    """Replace the program of a command by its full path; return `None` if there is no such program.

    `python` means this program's interpreter, as in all commands of suites."""
    if command[0] == "python":
        return (sys.executable, *command[1:])
    program = shutil.which(command[0], path=path)
    if program is None:
        return None
    return (program, *command[1:])
