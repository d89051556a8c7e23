"""What is known of paths and folders whatever is done with them: where they lead, and why writing there fails."""

from __future__ import annotations

import errno
import os
from functools import lru_cache
from pathlib import Path


def absolute(path: Path) -> Path:
    """A path from the root; as it is where the current folder is gone, so that it cannot be told from where."""
    try:
        return path.absolute()
    except OSError:
        return path


def resolved(path: Path) -> Path:
    """Where a path leads; as it is where links lead to each other or the current folder is gone."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def from_here(path: str) -> str:
    """Where a path leads, as a path from the current folder with slashes; as it is where no file can have that path, or
    the current folder is gone."""
    try:
        return _from(path, Path.cwd())
    except (OSError, ValueError):
        return path


@lru_cache(maxsize=1024)
def _from(path: str, folder: Path) -> str:
    return Path(os.path.relpath(resolved(Path(path)), folder)).as_posix()


def shown_name(path: Path) -> str:
    """What a folder is called, the current one too."""
    return resolved(path).name or str(path)


def flush_folder(folder: Path) -> None:
    """Press onto the disk which files a folder has. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def why_not_written(error: OSError, folder: Path, way_out: str) -> str:
    """Why nothing could be written in a folder, and what to do: what the reason asks for, or else `way_out`."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return f"the disk is full; make room, or {way_out}"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"the folder {folder} cannot be written into; make it writable, or {way_out}"
        case errno.ENOENT:
            return f"the folder {folder} is gone; {way_out}"
        case _:
            return f"{error.strerror or error} in the folder {folder}; {way_out}"
