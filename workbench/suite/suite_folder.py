"""Opens files that a suite names: regular files of limited size in the suite's folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from workbench.limits import Limit


class FolderFileError(Exception):
    """A suite cannot use a file. The message is the predicate of a sentence about the file, and `hint` is advice."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def open_in_folder(folder: Path, name: str, limit: Limit) -> BinaryIO:
    """Open a file in a folder.

    Raises OSError, and FolderFileError if the file is outside the folder, is not a regular file, or is too large."""
    try:
        root = folder.resolve()
        path = (root / name).resolve()
    except ValueError as error:
        raise FolderFileError("cannot be a path: it holds a null character") from error
    except RuntimeError as error:
        raise FolderFileError("is a link that leads back to itself") from error
    if not path.is_relative_to(root):
        raise FolderFileError("leads out of the folder of the suite", "copy the file into that folder")
    # Links are already resolved, so a link that appears later is refused. Opening a pipe must not wait for its writer.
    for_reading = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, for_reading)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= limit:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise FolderFileError("is not a regular file")
    raise FolderFileError(limit.exceeded(), limit.way_out)


def read_error_text(error: OSError) -> str:
    """Return why a file could not be read, as the predicate of a sentence about the file."""
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    return f"cannot be read: {error.strerror or error}"
