"""Writing of report files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from workbench.suite.files import resolved


def write_report(file: Path, pieces: Iterable[str]) -> None:
    """Write the pieces of a report into a file. The pieces must not hold secrets.

    An existing file is replaced only when all pieces are written. If it is a symbolic link, its target is replaced.
    Raise OSError if writing fails."""
    if _is_written_in_place(file):
        with file.open("w", encoding="utf-8", newline="") as opened:
            # `newline=""` keeps the line breaks of the report: CSV has `\r\n` on all systems.
            opened.writelines(pieces)
        return
    target = resolved(file)
    # The temporary file is in the target's folder, because a file cannot be renamed onto another disk.
    temporary = target.with_name(f".workbench-{os.urandom(6).hex()}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as opened:
            opened.writelines(pieces)
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    # This includes Ctrl-C: an interrupted command must leave no partial report.
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def why_not_writable(file: Path) -> str | None:
    """Return why a report cannot be written to a file, or `None` if it can."""
    if file.is_dir():
        return "the path is a folder"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}"
    if _is_written_in_place(file):
        if os.access(file, os.W_OK):
            return None
        return "permission denied"
    folder = resolved(file).parent
    if not os.access(folder, os.W_OK):
        return "permission denied"
    try:
        # A file system may be read-only even if the modes of its folders allow writing.
        with TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"cannot create a file in {folder}: {error.strerror}"


def _is_written_in_place(file: Path) -> bool:
    """Return whether a file must be written in place, because it is a device, a pipe, or in a read-only folder."""
    return file.exists() and (not file.is_file() or not os.access(resolved(file).parent, os.W_OK))
