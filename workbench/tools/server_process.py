"""Runs a server as a process, with messages over its standard input and output and a log of its standard error.

The SDK's own transport gives no access to its process. Here, the server is killed with everything that it started, even
if the task that owns it is cancelled repeatedly."""

from __future__ import annotations

import array
import asyncio
import codecs
import json
import math
import os
import shlex
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from textwrap import shorten
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from workbench.config.secrets import Finder, RedactedPieces, Secrets
from workbench.limits import MAX_MESSAGE_BYTES, MAX_STRAY_LINE_CHARS, MAX_STRAY_LINES
from workbench.numerals import count_text
from workbench.suite.server_model import Server
from workbench.tools.answer import clean_json
from workbench.tools.connection import TimeLimits, expand_variables, first_line, inherited_variables
from workbench.tools.launchers import forwards_messages, has_download_rollback
from workbench.tools.listings import digest, readable_name
from workbench.tools.start_advice import start_advice
from workbench.tools.watched_start import MARK, kill_marked_processes, packed
from workbench.trajectory.events import ServerOutput

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

MAX_LOG_BYTES = 1024 * 1024
"""The size in bytes to which a log is shortened once it is twice as large."""

LAST_LINES = 10
"""The number of last lines that the error of a failed server shows."""

MAX_LINE_CHARS = 400
"""The number of characters to which the last lines are cut."""

_CHUNK_BYTES = 65_536
_MAX_LAST_CHARS = LAST_LINES * (MAX_LINE_CHARS + 1)


def log_file_of(folder: Path, suite_file: Path, server: Server) -> Path:
    """Return the path of a server's log file. `folder` has the log files of all servers."""
    return folder / f"{readable_name(suite_file, server)}-{digest(str(suite_file))[:8]}.log"


class ServerLog:
    """The log of a server process: its redacted standard error, in a file that only its owner may read.

    If the file becomes too large, its oldest lines are removed. The last lines are available even if the file cannot be
    written. `changed` is called after each change."""

    def __init__(
        self,
        file: Path,
        title: str,
        secrets: Secrets,
        changed: Callable[[], object] = lambda: None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._path = file
        self._secrets = secrets
        self._changed = changed
        self._size = 0
        self._last = ""
        """The end of the server's output."""
        self._lines: dict[tuple[str, int], _RedactedLines] = {}
        """The lines of the server that are held back because a secret may continue in the next line."""
        self._line_ends = 0
        """The number of line ends in the server's whole output."""
        self.problem: str | None = None
        """The reason why there is no log file, `None` if there is one."""
        try:
            self._file: BinaryIO | None = _open(file)
            self._size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            self.problem = f"{file} cannot be written, {error.strerror}"
            self._file = None
        self._write(f"== {title}, started {now():%Y-%m-%d %H:%M:%S}\n")

    def write_line(self, beginning: str, text: str, limit: int) -> None:
        """Append a line that the server wrote: `beginning`, and then `text`, cut to `limit` characters.

        The lines of a private key are held back until the key is complete, so that it can be redacted."""
        self._lines.setdefault((beginning, limit), _RedactedLines()).add(f"{text.rstrip()}\n", self._secrets.finder)
        self._append_lines()

    def write_note(self, text: str) -> None:
        """Append a line that Workbench writes about the server.

        The line is not among the server's `last_lines`."""
        begin = ""
        if self._last and not self._last.endswith("\n"):
            begin = "\n"
        self._write(f"{begin}[workbench] {self._secrets.redact(text)}\n")

    def last_lines(self) -> tuple[tuple[str, ...], int]:
        """Return the last lines of the server, and how many lines came before them."""
        whole = self._last.removesuffix("\n")
        if not whole:
            return (), self._line_ends
        of_all = self._line_ends + (not self._last.endswith("\n"))
        known = whole.split("\n")
        lines = [_cut(line) for line in known[-LAST_LINES:]]
        # The beginning of the oldest stored line is lost, so the end of the line is shown.
        if len(self._last) == _MAX_LAST_CHARS and len(known) == len(lines):
            lines[0] = f"…{known[0][-MAX_LINE_CHARS:]}"
        return tuple(lines), of_all - len(lines)

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Append everything that comes from a stream, until the stream ends or the caller is cancelled."""
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        pieces = RedactedPieces()
        try:
            while chunk := await stream.read(_CHUNK_BYTES):
                self._append(pieces.add(decoder.decode(chunk), self._secrets.finder))
        finally:
            self._append(pieces.flush(self._secrets.finder))

    def close(self) -> None:
        """Close the file. Later writes are dropped."""
        for lines in self._lines.values():
            lines.end(self._secrets.finder)
        self._append_lines()
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append_lines(self) -> None:
        for (beginning, limit), lines in self._lines.items():
            for line in lines.pop_complete():
                self._append(f"{beginning}{line[:limit]}\n")

    def _append(self, text: str) -> None:
        if text:
            self._line_ends += text.count("\n")
            self._last = (self._last + text)[-_MAX_LAST_CHARS:]
            self._write(text)

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        data = text.encode("utf-8", "backslashreplace")
        try:
            self._file.write(data)
            self._size += len(data)
            if self._size > 2 * MAX_LOG_BYTES:
                self._shorten(self._file)
        except OSError as error:
            self.problem = f"{self._path} cannot be written any more, {error.strerror}"
            self._close_file()
        self._changed()

    def _shorten(self, file: BinaryIO) -> None:
        # The file is truncated in place, not replaced, because another Workbench may be writing to it.
        with self._path.open("rb") as reading:
            if not os.path.samestat(os.fstat(reading.fileno()), os.fstat(file.fileno())):
                raise FileNotFoundError(0, "it was moved or replaced", str(self._path))
            size = reading.seek(0, os.SEEK_END)
            reading.seek(max(size - MAX_LOG_BYTES, 0))
            kept = reading.read(MAX_LOG_BYTES)
        kept = kept[kept.find(b"\n") + 1 :]
        file.truncate(0)
        notice = f"[workbench] {count_text(size - len(kept))} bytes that came before this line were dropped\n".encode()
        file.write(notice + kept)
        self._size = len(notice) + len(kept)


class _RedactedLines:
    """Lines that are redacted together, because a secret may span several lines."""

    def __init__(self) -> None:
        self._pieces = RedactedPieces()
        self._shown = ""

    def add(self, line: str, finder: Finder) -> None:
        self._shown += self._pieces.add(line, finder)

    def end(self, finder: Finder) -> None:
        self._shown += self._pieces.flush(finder)

    def pop_complete(self) -> list[str]:
        *lines, self._shown = self._shown.split("\n")
        return lines


def _cut(line: str) -> str:
    line = line.removesuffix("\r")
    if len(line) <= MAX_LINE_CHARS:
        return line
    return line[:MAX_LINE_CHARS] + "…"


def _open(path: Path) -> BinaryIO:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=0o600), "ab", buffering=0)
    path.chmod(0o600)
    return opened


_FLUSH_S = 0.5
_REAP_S = 1.0
_POLL_S = 0.01
# A killed process disappears when its parent reaps it. In some containers nothing reaps it, so the wait is limited.
_GROUP_S = 0.2

_STARTER = str(Path(__file__).with_name("watched_start.py"))


class StdioTransport:
    """The process of a server, as a context manager that is a transport for `mcp.Client`.

    The process and everything that it started end with this object, including processes outside its process group. A
    watcher in the group makes sure of that even if this program is killed.

    On exit, the standard input is closed. If the process does not end within `polite_s` seconds, it gets SIGTERM, and
    after another `terminate_s` seconds SIGKILL. If `rollback_s` is given and the command has not sent a message yet,
    the command gets SIGTERM at once. It then has `rollback_s` seconds to roll back a download. If npm were killed
    during a download, half a package would stay and never be completed. Entering raises OSError if the command cannot
    be started."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        log: ServerLog,
        polite_s: float,
        terminate_s: float,
        rollback_s: float = 0.0,
    ) -> None:
        self._command = command
        self._folder = folder
        self._environment = environment
        self._log = log
        self._polite_s = polite_s
        self._terminate_s = terminate_s
        self._rollback_s = rollback_s
        self._process: asyncio.subprocess.Process | None = None
        self._mark = new_mark()
        self._watcher: socket.socket | None = None
        """The socket to the watcher, which ends the process group when this end is closed."""
        self._ended = False
        self._sent = False
        self.closed = False
        """Whether no more messages can pass: the server ended or closed its pipes, or the transport is being left."""
        self.stray_lines = 0
        """The number of lines on standard output that were not MCP messages."""
        self.overlong = False
        """Whether a message exceeded the limit. Nothing is read after such a message."""
        self.own_exit_code: int | None = None
        """The exit code of a process that ended by itself, or the negative number of the signal that killed it."""

    @property
    def pid(self) -> int | None:
        """The id of the process, which is also the id of its process group. `None` before the start."""
        if self._process is not None:
            return self._process.pid
        return None

    @property
    def has_read(self) -> bool | None:
        """Whether the process has read everything that was sent to it.

        `False` if nothing was sent, `None` if the answer is unknown."""
        if self._process is None or not self._sent:
            return False
        if self._process.stdin is None or self._process.stdin.is_closing():
            return None
        return _is_read(self._process.stdin.transport)

    @property
    def disconnected(self) -> asyncio.Task[None]:
        """A task that ends when no further message can arrive. Await it, but never cancel it."""
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
        # The stream has no limit. If the server does not read, a call that is given up must still end.
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
            # Reading goes on while stdin is flushed, because a server that is blocked on writing does not read.
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
            # A process outside of the group may still hold the pipes open. asyncio has no public method to release
            # them.
            self._process._transport.close()  # type: ignore[attr-defined]

    def kill(self) -> None:
        """Kill the process and everything that it started, at once.

        May be called before the start and after the end."""
        if self._process is not None and not self._ended:
            signal_group(self._process, hard=True)
            self._end_left_behind(self._process)

    @property
    def rollback_s(self) -> float:
        """The seconds that a command gets to roll back a download. 0 once it has sent a message."""
        return self._rollback_s

    async def _end(self, process: asyncio.subprocess.Process, closed_by_server: bool) -> None:
        if self._rollback_s and not closed_by_server:
            signal_group(process, hard=False)
            await ends_within(process, self._rollback_s)
        ended = await ends_within(process, self._polite_s)
        if closed_by_server:
            self.own_exit_code = process.returncode
        # The group and the marked processes are killed even if the server has ended by itself, because it may leave
        # children.
        if not ended:
            signal_group(process, hard=False)
            await ends_within(process, self._terminate_s)
        signal_group(process, hard=True)
        self._end_left_behind(process)
        self._ended = True
        await ends_within(process, _REAP_S)
        await _group_ends_within(process.pid, _GROUP_S)

    def _end_left_behind(self, process: asyncio.subprocess.Process) -> None:
        for pid, command in kill_left_behind(process, self._mark):
            self._log.write_note(f"process {pid} was left behind outside of the server's group, and killed: {command}")

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
                    # The line is too long. A call may be waiting for this line as its answer, so the connection ends.
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
                self._rollback_s = 0.0
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
                        raise BrokenPipeError  # asyncio itself would drop the message without an error
                    process.stdin.write(text.encode() + b"\n")
                    self._sent = True
                    await process.stdin.drain()
                except OSError:
                    self.closed = True
                    # Earlier answers may still arrive. After them, the client must see that the connection has ended,
                    # or it would wait for ever.
                    await asyncio.wait({self._reader}, timeout=_FLUSH_S)
                    to_client.close()
                    return

    def _note_stray_line(self, line: bytes) -> None:
        self.stray_lines += 1
        if self.stray_lines <= MAX_STRAY_LINES:
            self._log.write_line("[stdout] ", line.decode("utf-8", "backslashreplace"), MAX_STRAY_LINE_CHARS)


def _is_read(pipe: asyncio.WriteTransport) -> bool | None:
    if sys.platform != "linux":
        return None
    import fcntl
    import termios

    # Depending on the version of Python, asyncio's stream is a socket or a pipe.
    end, of = pipe.get_extra_info("socket"), termios.TIOCOUTQ
    if end is None:
        end, of = pipe.get_extra_info("pipe"), termios.FIONREAD
    left = array.array("i", [0])
    try:
        fcntl.ioctl(end.fileno(), of, left)
    except OSError:
        return None
    return left[0] == 0 and pipe.get_write_buffer_size() == 0


async def started_process(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], limit: int, mark: str
) -> tuple[asyncio.subprocess.Process, socket.socket | None]:
    """Start a command in its own process group, with pipes whose readers buffer up to `limit` bytes.

    A watcher in the group ends the group when the returned socket is closed or this program ends. On Windows, there is
    no watcher, and the socket is `None`. `kill_left_behind` finds processes by the `mark` in their environment. Raises
    OSError if the command cannot be started."""
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
    """Start a command by the script `watched_start`, so that its process group ends with this program."""

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
        await ends_within(process, _REAP_S)  # asyncio fails if its transport is closed before the process has ended
        process._transport.close()  # type: ignore[attr-defined]
        ours.close()
        raise
    return process, ours


def new_mark() -> str:
    """Return a random text that marks all processes of one start of a command."""
    return uuid.uuid4().hex


def kill_left_behind(process: asyncio.subprocess.Process, mark: str) -> Iterator[tuple[int, str]]:
    """Kill the processes that a killed command had started outside its process group.

    Yields their ids and command lines."""
    for pid, command in kill_marked_processes(mark.encode(), process.pid):
        yield pid, command.decode("utf-8", "replace")


def signal_group(process: asyncio.subprocess.Process, *, hard: bool) -> None:
    """Send SIGKILL (if `hard`) or SIGTERM to a process and everything in its group.

    Does nothing if the process has ended."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill() if hard else process.terminate()
        else:
            # The group exists as long as it has a process, even if its leader has ended.
            os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)


def message_in(line: bytes) -> JSONRPCMessage | None:
    """Parse the MCP message on a line. Return `None` if the line has none.

    Bytes that are not UTF-8 and lone surrogates become �."""
    # If a faulty answer were dropped, its call would wait until the time limit. So the answer is repaired as far as
    # possible.
    from mcp_types import jsonrpc_message_adapter

    with suppress(ValueError):
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    if line.startswith(b"{"):
        with suppress(ValueError, RecursionError):
            mended = clean_json(json.loads(line.decode("utf-8", "replace")))
            return jsonrpc_message_adapter.validate_python(mended, by_name=False)
    return None


async def _read_to_end(descriptor: int) -> bytes:
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    try:
        return await reader.read()
    finally:
        transport.close()


async def _group_ends_within(group: int, seconds: float) -> None:
    """Wait at most `seconds` until a killed process group has ended."""
    if sys.platform == "win32":
        return
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    with suppress(ProcessLookupError, PermissionError):
        while clock() < deadline:
            os.killpg(group, 0)
            await asyncio.sleep(_POLL_S)


async def ends_within(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Wait at most `seconds` until a process has ended. Returns whether it has ended."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    while process.returncode is None and clock() < deadline:  # noqa: ASYNC110
        # The process is polled, because `Process.wait` would also wait for processes that inherited its pipes.
        await asyncio.sleep(_POLL_S)
    return process.returncode is not None


_CLOSED = "Connection closed"
"""The error of the SDK for a request without an answer, after the server has closed its output."""

MAX_COMMAND_CHARS = 200
"""The number of characters after which a command is cut in messages."""


class CommandConnection:
    """A `Connection` over the standard input and output of a command. The command runs in `folder`.

    `passed` are the variables of the shell that every command gets (`workbench.config.passed_variables`)."""

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
        passed: Sequence[str] = (),
    ) -> None:
        self._server = server
        self._passed = passed
        self._given: Collection[str] = ()
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
        log = f"log: {self._log_file}"
        if self._log is not None and self._log.problem is not None:
            log = f"no log: {self._log.problem}"
        return f"command: {self._shown_command}; {log}"

    @property
    def pid(self) -> int | None:
        if self._transport is not None:
            return self._transport.pid
        return None

    @property
    def output(self) -> ServerOutput | None:
        if self._log is None:
            return None
        lines, earlier = self._log.last_lines()
        log = None
        if self._log.problem is None:
            log = str(self._log_file)
        return ServerOutput(self._server.name, lines, earlier, log)

    @property
    def has_read(self) -> bool | None:
        if self._transport is None:
            return False
        return self._transport.has_read

    @property
    def is_direct(self) -> bool:
        return not forwards_messages(self._command)

    @property
    def expired(self) -> bool:
        return False

    @property
    def closed(self) -> bool:
        return self._transport is None or self._transport.closed

    @property
    def disconnected(self) -> asyncio.Future[None]:
        assert self._transport is not None
        return self._transport.disconnected

    async def __aenter__(self) -> TransportStreams:
        given = {}
        for name, value in self._server.env.items():
            given[name] = expand_variables(value, self._environment, self._secrets)
        inherited = inherited_variables(self._environment, self._passed, self._secrets)
        self._given = {**inherited, **given}.keys()
        # The word `python` means the interpreter that runs this program.
        program, *arguments = self._command
        if program == "python":
            program = sys.executable
        rollback_s = 0.0
        if has_download_rollback(self._command):
            rollback_s = self._limits.rollback_s
        title = f"server {self._server.name!r}: {self._shown_command}"
        self._log = ServerLog(self._log_file, self._secrets.redact(title), self._secrets, self._log_changed)
        self._transport = StdioTransport(
            (program, *arguments),
            folder=self._folder,
            environment={**inherited, **given},
            log=self._log,
            polite_s=self._limits.polite_s,
            terminate_s=self._limits.terminate_s,
            rollback_s=rollback_s,
        )
        try:
            return await self._transport.__aenter__()
        except BaseException as error:
            if isinstance(error, OSError):
                self._log.write_note(f"cannot be started: {self._in_words(error)}")
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
            ended = "was closed"
            if self._transport.own_exit_code is not None:
                ended = self.loss_reason(None)
            self._log.write_note(ended)
            self._log.close()

    def kill(self) -> None:
        if self._transport is not None:
            self._transport.kill()

    def start_failure(self, error: BaseException | None) -> str:
        if self._transport is not None and self._transport.own_exit_code is not None:
            return f"{self.loss_reason(error)} before it listed its tools"
        if isinstance(error, OSError) and self.pid is None:
            return f"cannot be started: {self._in_words(error)}"
        if self._transport is not None and self._transport.overlong:
            return self.loss_reason(error)
        return f"does not speak MCP as expected: {first_line(error)}"

    @property
    def rollback_s(self) -> float:
        return 0.0 if self._transport is None else self._transport.rollback_s

    def advice(self) -> str:
        # If the program does not exist, advice on its variables is useless.
        if self.pid is None or self.output is None:
            return ""
        return start_advice(self._environment, self._given, self.output.lines, self._server.name)

    def hint(self) -> str:
        if self._transport is not None and self._transport.stray_lines:
            return "; it writes to standard output something that is not an MCP message"
        return ""

    def ended_by_server(self, error: BaseException) -> bool:
        transport = self._transport
        if transport is None or transport.overlong:
            return False
        # A server may close its output without ending, which ends the connection as well.
        return transport.own_exit_code is not None or first_line(error) == _CLOSED

    def loss_reason(self, error: BaseException | None) -> str:
        transport = self._transport
        if transport is not None and transport.overlong:
            return MAX_MESSAGE_BYTES.reached(what="a message")
        if transport is None or transport.own_exit_code is None:
            return "closed its output"
        code = transport.own_exit_code
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def unanswered_reason(self, error: Exception) -> str | None:
        return None

    @property
    def _shown_command(self) -> str:
        return shorten(shlex.join(self._command), MAX_COMMAND_CHARS, placeholder=" …")

    def _in_words(self, error: OSError) -> str:
        if not self._folder.is_dir():
            return f"the folder {self._folder} does not exist"
        if isinstance(error, FileNotFoundError):
            return f"there is no program {self._command[0]!r}"
        return f"{error.strerror or error}: {error.filename or self._command[0]}"
