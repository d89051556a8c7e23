"""Records the calls of an MCP server. A client starts this program in place of the server.

The program starts the server, forwards every byte in both directions as it arrives, and logs tools and calls in a file.
It adds nothing to what the server sends to the client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from time import monotonic, time
from types import FrameType

from workbench.config.secrets import Secrets
from workbench.config.typed_keys import KEY_OPTION, looks_like_key
from workbench.dataclasses import json_text, parsed_json
from workbench.exchange.importers.import_files import register_keys
from workbench.exchange.importers.source_files import Node
from workbench.limits import MAX_PIPED_BYTES
from workbench.trajectory.events import JsonValue

_PIECE_BYTES = 64 * 1024
_PASSED_ON = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
)
_CANNOT_RUN, _NOT_FOUND = 126, 127
_ERROR = 2


class ServerLogWriter:
    """Writes the log of a server.

    The log has a line for the start, for each list of tools, and for each call with its result. Several threads may use
    the writer. The first write error is reported, and ends the log."""

    def __init__(self, path: Path, secrets: Secrets, complain: Callable[[str], object]) -> None:
        """Open the log. Raises OSError if the file cannot be written."""
        self._path = path
        self._secrets = secrets
        self._complain = complain
        self._lock = threading.Lock()
        self._asked: dict[str, tuple[float, float, dict[str, JsonValue]]] = {}
        """The unanswered requests by id: the time of day, the time of the monotonic clock, and the message."""
        self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def started(self, command: Sequence[str]) -> None:
        self._write({"seen": "start", "at": _iso(time()), "command": Path(command[0]).name})

    def log_line(self, line: bytes, *, by_client: bool) -> None:
        now_s = time()
        try:
            message = parsed_json(line.decode("utf-8"))
        except (ValueError, RecursionError):
            # A line that is not JSON is not a message of the protocol.
            return
        for each in message if isinstance(message, list) else [message]:
            if isinstance(each, dict):
                self._log_message(each, now_s, by_client=by_client)

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _log_message(self, message: dict[str, JsonValue], now_s: float, *, by_client: bool) -> None:
        asked_as = json_text(message.get("id"))
        if by_client:
            if message.get("method") in ("tools/list", "tools/call"):
                self._asked[asked_as] = (now_s, monotonic(), message)
            return
        if "method" in message or asked_as not in self._asked:
            return
        at_s, began_s, asked = self._asked.pop(asked_as)
        result = message.get("result")
        if asked["method"] == "tools/list":
            if isinstance(result, dict) and isinstance(result.get("tools"), list):
                self._write({"seen": "tools", "at": _iso(now_s), "tools": result["tools"]})
            return
        params = Node(asked).at("params")
        record: dict[str, JsonValue] = {
            "seen": "call",
            "at": _iso(at_s),
            "ms": round((monotonic() - began_s) * 1000, 3),
            "tool": params.value_of("name"),
            "arguments": params.value_of("arguments") or {},
        }
        if result is not None:
            record["result"] = result
        else:
            record["error"] = Node(message).at("error").value_of("message") or "The server refused the call."
        self._write(record)

    def _write(self, record: dict[str, JsonValue]) -> None:
        register_keys([record], "RECORDED_KEY", self._secrets)
        line = json_text(self._secrets.redacted(record)).encode() + b"\n"
        with self._lock:
            if self._file is None:
                return
            try:
                os.write(self._file, line)
            except OSError as error:
                os.close(self._file)
                self._file = None
                self._complain(f"{self._path} cannot be written any more: {error.strerror}; the server goes on")


def run_tee(command: Sequence[str], to: Path, secrets: Secrets, complain: Callable[[str], object]) -> int:
    """Start a server for the client, and forward and log messages until the server ends.

    Returns the server's exit code, or 128 plus the number of the signal that ended it. `complain` is called with lines
    for standard error."""
    _register_command_secrets(command, secrets)
    try:
        log = ServerLogWriter(to, secrets, complain)
    except OSError as error:
        complain(f"{to} cannot be written: {error.strerror}")
        return _ERROR
    try:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    except OSError as error:
        complain(f"the server {command[0]} cannot be started: {error.strerror}")
        if isinstance(error, FileNotFoundError):
            return _NOT_FOUND
        return _CANNOT_RUN

    # A client sends signals to this program, because the client started it. The signals are forwarded to the server.
    def pass_on(number: int, _: FrameType | None) -> None:
        with suppress(OSError):
            server.send_signal(number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    assert server.stdin is not None and server.stdout is not None
    log.started(command)
    to_server = threading.Thread(
        target=_forward, args=(sys.stdin.fileno(), server.stdin.fileno(), log, True, server.stdin.close), daemon=True
    )
    to_server.start()
    _forward(server.stdout.fileno(), sys.stdout.fileno(), log, False, lambda: None)
    # The client has disconnected. When the pipe is closed, the server notices that too.
    server.stdout.close()
    # `wait` returns the negative number of a signal. Shells report it as 128 plus the number.
    code = server.wait()
    log.close()
    return code if code >= 0 else 128 - code


def _register_command_secrets(command: Sequence[str], secrets: Secrets) -> None:
    """Register the keys in the server's command as secrets, because the server may repeat them in a message."""
    for option, word in pairwise(command):
        name, _, value = word.partition("=")
        if "://" in word:
            secrets.add_passwords("RECORDED_KEY", word)
        elif KEY_OPTION.fullmatch(option) or looks_like_key(word):
            secrets.add("RECORDED_KEY", word)
        elif value and (KEY_OPTION.fullmatch(name) or looks_like_key(value)):
            secrets.add("RECORDED_KEY", value)


def _forward(source: int, target: int, log: ServerLogWriter, by_client: bool, at_end: Callable[[], object]) -> None:
    """Forward bytes from `source` to `target` until `source` ends.

    Each complete line is logged after it was forwarded."""
    lines = _Lines()
    # An OSError means that one side has ended. The other side learns that when its stream is closed.
    with suppress(OSError):
        while chunk := os.read(source, _PIECE_BYTES):
            view = memoryview(chunk)
            while view:
                view = view[os.write(target, view) :]
            for line in lines.add(chunk):
                log.log_line(line, by_client=by_client)
    with suppress(OSError):
        at_end()


class _Lines:
    def __init__(self) -> None:
        self._rest = bytearray()
        self._too_long = False

    def add(self, chunk: bytes) -> list[bytes]:
        pieces = chunk.split(b"\n")
        found: list[bytes] = []
        for piece in pieces[:-1]:
            line = bytes(self._rest) + piece
            self._rest.clear()
            if line.strip() and not self._too_long:
                found.append(line)
            self._too_long = False
        if len(self._rest) + len(pieces[-1]) > MAX_PIPED_BYTES:
            self._rest.clear()
            self._too_long = True
        elif not self._too_long:
            self._rest += pieces[-1]
        return found


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
