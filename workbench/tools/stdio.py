"""A server process: messages over its standard input and output, its standard error in a log, and a guaranteed end.

This is a transport for `mcp.Client`. It replaces the SDK's because the process must be known: it is killed with
everything it started, however often the task that owns it is cancelled.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import socket
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from workbench.limits import MAX_MESSAGE_BYTES, MAX_STRAY_LINE_CHARS, MAX_STRAY_LINES
from workbench.tools.clean import clean_json
from workbench.tools.server_log import ServerLog
from workbench.tools.watched_start import MARK, end_marked, packed

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

_FLUSH_S = 0.5
_REAP_S = 1.0
_POLL_S = 0.01
_GROUP_S = 0.2
"""Longer than killed processes take to disappear, where something reaps them; in some containers nothing does."""

_STARTER = str(Path(__file__).with_name("watched_start.py"))


class StdioTransport:
    """Starts a command on entry and ends it on exit, with its whole process group and what it started outside of that.
    A watcher in the group does so when this program is killed.

    On exit standard input is closed; a process that does not end within `polite_s` is sent SIGTERM, and after another
    `terminate_s` SIGKILL. Entering raises OSError when the command cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        log: ServerLog,
        polite_s: float,
        terminate_s: float,
    ) -> None:
        self._command = command
        self._folder = folder
        self._environment = environment
        self._log = log
        self._polite_s = polite_s
        self._terminate_s = terminate_s
        self._process: asyncio.subprocess.Process | None = None
        self._mark = new_mark()
        self._watcher: socket.socket | None = None
        """A socket to the watcher, which ends the process group when this end is closed."""
        self._ended = False
        self.closed = False
        """Whether messages no longer pass: the server ended or closed its pipes, or the transport is being left."""
        self.stray_lines = 0
        """Lines on standard output that were no MCP messages."""
        self.overlong = False
        """Whether a message exceeded the limit; nothing is read after it."""
        self.own_exit_code: int | None = None
        """How the process ended by itself; negative is a signal's number."""

    @property
    def pid(self) -> int | None:
        """The process id, which is also that of its group; `None` before the start."""
        return self._process.pid if self._process is not None else None

    @property
    def lost(self) -> asyncio.Task[None]:
        """Done when no further message can come. Await it, but never cancel it."""
        return self._reader

    async def __aenter__(self) -> TransportStreams:
        import anyio
        from mcp.shared.message import SessionMessage

        process, self._watcher = await started_process(
            self._command, folder=self._folder, environment=self._environment, limit=MAX_MESSAGE_BYTES, mark=self._mark
        )
        self._process = process
        assert process.stderr is not None
        to_client, self._client_reads = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        # Unbounded, so that a server that does not read cannot delay a call that is given up.
        self._client_writes, from_client = anyio.create_memory_object_stream[SessionMessage](math.inf)
        self._writer = asyncio.create_task(self._write(process, from_client, to_client))
        self._follower = asyncio.create_task(self._log.follow(process.stderr))
        self._reader = asyncio.create_task(self._read(process, to_client))
        return self._client_reads, self._client_writes

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        closed_by_server, self.closed = self.closed, True
        try:
            # A server that is blocked on writing cannot read, so the reader must be free to drain before stdin is
            # flushed.
            self._client_reads.close()
            self._client_writes.close()
            await asyncio.wait({self._writer}, timeout=_FLUSH_S)
            self._process.stdin.close()
            await self._end(self._process, closed_by_server)
            await asyncio.wait({self._follower}, timeout=_FLUSH_S)
        finally:
            self.kill()
            for task in (self._reader, self._writer, self._follower):
                task.cancel()
            if self._watcher is not None:
                self._watcher.close()
            # A process that left the group may still hold the pipes; asyncio has no public way to release them.
            self._process._transport.close()  # type: ignore[attr-defined]

    def kill(self) -> None:
        """Kill the process and everything that it started, at once. Harmless when it has ended or was never started."""
        if self._process is not None and not self._ended:
            signal_group(self._process, hard=True)
            self._end_left_behind(self._process)

    async def _end(self, process: asyncio.subprocess.Process, closed_by_server: bool) -> None:
        ended = await ends_within(process, self._polite_s)
        if closed_by_server:
            self.own_exit_code = process.returncode
        if not ended:
            signal_group(process, hard=False)
            await ends_within(process, self._terminate_s)
        signal_group(process, hard=True)
        self._end_left_behind(process)
        self._ended = True
        await ends_within(process, _REAP_S)
        await _group_ends_within(process.pid, _GROUP_S)

    def _end_left_behind(self, process: asyncio.subprocess.Process) -> None:
        for pid, command in left_behind(process, self._mark):
            self._log.note(f"process {pid} was left behind outside of the server's group, and killed: {command}")

    async def _read(
        self, process: asyncio.subprocess.Process, to_client: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        assert process.stdout is not None
        with to_client:
            listening = True
            while True:
                try:
                    line = await process.stdout.readline()
                except ValueError:
                    # Perhaps the very answer that a call waits for: ending is better than waiting in vain.
                    self.overlong = self.closed = True
                    return
                if not line:
                    self.closed = True
                    return
                if not listening or not line.strip():
                    continue
                message = message_in(line)
                if message is None:
                    self._note_stray_line(line)
                    continue
                try:
                    await to_client.send(SessionMessage(message))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    listening = False

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        from_client: MemoryObjectReceiveStream[SessionMessage],
        to_client: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        assert process.stdin is not None
        with from_client:
            async for outgoing in from_client:
                text = outgoing.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    if process.stdin.is_closing():
                        raise BrokenPipeError  # uvloop's writing would raise an error of another kind
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
                except OSError:
                    self.closed = True
                    # The stream is no longer read: let the client see the end instead of waiting for an answer.
                    to_client.close()
                    return

    def _note_stray_line(self, line: bytes) -> None:
        self.stray_lines += 1
        if self.stray_lines <= MAX_STRAY_LINES:
            self._log.write_line("[stdout] ", line.decode("utf-8", "backslashreplace"), MAX_STRAY_LINE_CHARS)


async def started_process(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], limit: int, mark: str
) -> tuple[asyncio.subprocess.Process, socket.socket | None]:
    """Start a command in a process group of its own, with pipes whose readers hold up to `limit` bytes. Close the
    socket when the group is to end: a watcher in it waits for that, and for the end of this program. By the `mark` in
    its environment, `left_behind` finds what it started. Raises OSError when it cannot be started."""
    environment = {**environment, MARK: mark}
    if sys.platform != "win32":
        return await _started_with_watcher(command, folder, environment, limit)
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=limit,
    )
    return process, None


async def _started_with_watcher(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], limit: int
) -> tuple[asyncio.subprocess.Process, socket.socket]:
    """Start a command through `watched_start`, which ends its group when this program ends."""
    words = packed([os.fsencode(word) for word in command])
    if any(not name or "=" in name for name in environment):
        raise ValueError("illegal environment variable name")
    variables = packed([os.fsencode(f"{name}={value}") for name, value in environment.items()])
    ours, theirs = socket.socketpair()
    failed, told = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _STARTER, str(theirs.fileno()), str(told)),
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            pass_fds=(theirs.fileno(), told),
            limit=limit,
        )
    except BaseException:
        os.close(failed)
        ours.close()
        raise
    finally:
        os.close(told)
        theirs.close()
    ours.setblocking(False)
    try:
        assert process.stdin is not None
        process.stdin.write(words + variables)
        if number := await _read_to_end(failed):
            raise OSError(int(number), os.strerror(int(number)), command[0])
    except BaseException:
        signal_group(process, hard=True)
        await ends_within(process, _REAP_S)  # closing its transport before that would confuse asyncio
        process._transport.close()  # type: ignore[attr-defined]
        ours.close()
        raise
    return process, ours


def new_mark() -> str:
    """Returns a mark for one start of a command."""
    return uuid.uuid4().hex


def left_behind(process: asyncio.subprocess.Process, mark: str) -> Iterator[tuple[int, str]]:
    """Kill what a command started outside of its group, which has been killed, and return ids and command lines."""
    for pid, command in end_marked(mark.encode(), process.pid):
        yield pid, command.decode("utf-8", "replace")


def signal_group(process: asyncio.subprocess.Process, *, hard: bool) -> None:
    """End a process and everything in its group, at once or politely. Harmless when it has ended."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill() if hard else process.terminate()
        else:
            # The group outlives its leader as long as the leader's children live.
            os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)


def message_in(line: bytes) -> JSONRPCMessage | None:
    """Returns the message on a line of JSON, `None` when there is none. Bytes that are no UTF-8 and lone surrogates
    become �: an answer with a flaw is better than a call that waits for it in vain."""
    from mcp_types import jsonrpc_message_adapter

    with suppress(ValueError):
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    if line.startswith(b"{"):
        with suppress(ValueError, RecursionError):
            mended = clean_json(json.loads(line.decode("utf-8", "replace")))
            return jsonrpc_message_adapter.validate_python(mended, by_name=False)
    return None


async def _read_to_end(descriptor: int) -> bytes:
    """Returns everything that comes through a pipe, then closes it."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    try:
        return await reader.read()
    finally:
        transport.close()


async def _group_ends_within(group: int, seconds: float) -> None:
    """Wait for the end of a process group that was killed. Afterwards the number may belong to another group."""
    if sys.platform == "win32":
        return
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    with suppress(ProcessLookupError, PermissionError):
        while clock() < deadline:
            os.killpg(group, 0)
            await asyncio.sleep(_POLL_S)


async def ends_within(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Returns whether the process ends in time."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    while process.returncode is None and clock() < deadline:  # noqa: ASYNC110
        # Process.wait would also wait for processes that inherited the pipes.
        await asyncio.sleep(_POLL_S)
    return process.returncode is not None
