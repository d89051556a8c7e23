"""The log of a server process: its standard error, redacted and limited in size."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from workbench.config.finding import Finder, Pieces
from workbench.config.secrets import Secrets
from workbench.suite.model import Server
from workbench.tools.listings import digest, readable_name

MAX_LOG_BYTES = 1024 * 1024
"""How much a log keeps when it is shortened, which happens whenever it is twice as large."""

LAST_LINES = 10
"""The lines that a failed server's errors show."""

MAX_LINE_CHARS = 400
"""Of the last lines, longer ones are cut."""

_CHUNK_BYTES = 65_536
_MAX_LAST_CHARS = LAST_LINES * (MAX_LINE_CHARS + 1)


def log_file_of(folder: Path, suite_file: Path, server: Server) -> Path:
    """Returns the log of a suite's server in a folder of logs."""
    return folder / f"{readable_name(suite_file, server)}-{digest(str(suite_file))[:8]}.log"


class ServerLog:
    """Appends to a file that only its owner may read, and drops the oldest lines of one that becomes too large. The
    last lines are known even if there is no such file. `changed` is called after each change."""

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
        self._lines: dict[tuple[str, int], _Lines] = {}
        """What of the server's lines is not decided, by what they begin with."""
        self._line_ends = 0
        """The line ends of its whole output."""
        self.problem: str | None = None
        """Why there is no log file, if there is none."""
        try:
            self._file: BinaryIO | None = _open(file)
            self._size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            self.problem = f"{file} cannot be written, {error.strerror}"
            self._file = None
        self._write(f"== {title}, started {now():%Y-%m-%d %H:%M:%S}\n")

    def write_line(self, beginning: str, text: str, limit: int) -> None:
        """Append a line of the server, its text cut to a number of characters. The lines of a private key wait for its
        end."""
        self._lines.setdefault((beginning, limit), _Lines()).add(f"{text.rstrip()}\n", self._secrets.finder)
        self._append_lines()

    def note(self, text: str) -> None:
        """Append a line about the server, without secrets. It is not among the last lines."""
        begin = "" if not self._last or self._last.endswith("\n") else "\n"
        self._write(f"{begin}[workbench] {self._secrets.redact(text)}\n")

    def last_lines(self) -> tuple[tuple[str, ...], int]:
        """Returns the last lines of the server, and how many came before them."""
        whole = self._last.removesuffix("\n")
        if not whole:
            return (), self._line_ends
        of_all = self._line_ends + (not self._last.endswith("\n"))
        known = whole.split("\n")
        lines = [_cut(line) for line in known[-LAST_LINES:]]
        if len(self._last) == _MAX_LAST_CHARS and len(known) == len(lines):
            lines[0] = f"…{known[0][-MAX_LINE_CHARS:]}"  # its beginning is lost
        return tuple(lines), of_all - len(lines)

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Append everything from a stream until it ends. May be cancelled."""
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        pieces = Pieces()
        try:
            while chunk := await stream.read(_CHUNK_BYTES):
                self._append(pieces.add(decoder.decode(chunk), self._secrets.finder))
        finally:
            self._append(pieces.rest(self._secrets.finder))

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
            for line in lines.taken():
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
        """Keep only the end of the file. Another Workbench may write to it too, so it stays the same file."""
        with self._path.open("rb") as reading:
            if not os.path.samestat(os.fstat(reading.fileno()), os.fstat(file.fileno())):
                raise FileNotFoundError(0, "it was moved or replaced", str(self._path))
            size = reading.seek(0, os.SEEK_END)
            reading.seek(max(size - MAX_LOG_BYTES, 0))
            kept = reading.read(MAX_LOG_BYTES)
        kept = kept[kept.find(b"\n") + 1 :]
        file.truncate(0)
        notice = f"[workbench] {size - len(kept):,} bytes that came before this line were dropped\n".encode()
        file.write(notice + kept)
        self._size = len(notice) + len(kept)


class _Lines:
    """Redacts a text whose lines come one by one, across their borders."""

    def __init__(self) -> None:
        self._pieces = Pieces()
        self._shown = ""

    def add(self, line: str, finder: Finder) -> None:
        self._shown += self._pieces.add(line, finder)

    def end(self, finder: Finder) -> None:
        self._shown += self._pieces.rest(finder)

    def taken(self) -> list[str]:
        """Returns the lines that are whole."""
        *lines, self._shown = self._shown.split("\n")
        return lines


def _cut(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + "…"


def _open(path: Path) -> BinaryIO:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=0o600), "ab", buffering=0)
    path.chmod(0o600)
    return opened
