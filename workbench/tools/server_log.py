"""The log of a server process: its standard error, redacted and limited in size."""

from __future__ import annotations

import asyncio
import codecs
import os
from pathlib import Path
from typing import BinaryIO

from workbench.config.finding import Pieces
from workbench.config.secrets import Secrets

MAX_LOG_BYTES = 1024 * 1024
"""Bytes logged for one start. A larger log is truncated when its server starts."""

_DROPPED = "[workbench] the rest of what the server says until it starts again is not kept\n"
_CHUNK_BYTES = 65_536


class ServerLog:
    """Appends to a file that only its owner may read. Where the file cannot be written, its content is dropped."""

    def __init__(self, file: Path, title: str, secrets: Secrets) -> None:
        self._secrets = secrets
        self._left = MAX_LOG_BYTES
        self.problem: str | None = None
        """Why there is no log file, if there is none."""
        try:
            self._file: BinaryIO | None = _open(file)
        except OSError as error:
            self.problem = f"{file} cannot be written, {error.strerror}"
            self._file = None
        self._append(f"== {title}\n")

    def write_line(self, beginning: str, text: str, limit: int) -> None:
        """Append a line, its text cut to a number of characters."""
        self._append(f"{beginning}{self._secrets.redact(text.rstrip())[:limit]}\n")

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Append everything from a stream until it ends. It is read to its end even when the log is full, so that the
        server never blocks. May be cancelled."""
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        pieces = Pieces()
        try:
            while chunk := await stream.read(_CHUNK_BYTES):
                if self._file is not None and self._left > 0:
                    self._append(pieces.add(decoder.decode(chunk), self._secrets.finder))
        finally:
            self._append(pieces.rest(self._secrets.finder))

    def close(self) -> None:
        """Close the file. Later writes are dropped."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, text: str) -> None:
        if self._file is None or self._left <= 0 or not text:
            return
        data = text.encode("utf-8", "backslashreplace")
        try:
            self._file.write(data[: self._left])
            if len(data) >= self._left:
                self._file.write(f"\n{_DROPPED}".encode())
        except OSError as error:
            self.problem = f"{error.strerror} after its beginning"
            data = bytes(self._left)
        self._left -= len(data)


def _open(path: Path) -> BinaryIO:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    too_long = path.exists() and path.stat().st_size > MAX_LOG_BYTES
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if too_long else 0)
    opened = os.fdopen(os.open(path, flags, mode=0o600), "ab", buffering=0)
    path.chmod(0o600)
    return opened
