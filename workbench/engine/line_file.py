"""Appends whole lines to a file that several programs write at the same time."""

from __future__ import annotations

import os
from pathlib import Path


def append_line(file: Path, line: bytes) -> None:
    """Append a line, including its line end, with one system call.

    A new file is readable by the user only. Raises OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode=0o600)
    try:
        if os.fstat(descriptor).st_size:
            os.lseek(descriptor, -1, os.SEEK_END)
            if os.read(descriptor, 1) != b"\n":  # the last line was written only in part
                line = b"\n" + line
        if os.write(descriptor, line) < len(line):
            raise OSError(f"only a part of a line of {len(line)} bytes was written")
    finally:
        os.close(descriptor)
