"""What is known of paths and folders whatever is done with them: where they lead, and why writing there fails."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


class LockedError(Exception):
    """Another program has not let go of a lock in time."""


_LOCK_AGAIN_S = 0.005


@contextmanager
def locked(file: Path, timeout_s: float) -> Iterator[None]:
    """Hold a lock that one program, and one thread of it, holds at a time: of a file that is for this alone and stays
    there. The system lets go of it when the program ends, however it ends. Blocks. Raises LockedError when somebody
    else holds it for too long, and OSError."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        never = threading.Event()  # nothing tells when a lock is free: it is tried again, a moment apart
        deadline = time.monotonic() + timeout_s
        while not _lock(descriptor):
            if time.monotonic() >= deadline:
                raise LockedError(f"another program has locked {file}")
            never.wait(_LOCK_AGAIN_S)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open file, `False` where somebody else has locked it. Closing it lets go."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True


def why_not_written(error: OSError, folder: Path, way_out: str) -> str:
    """Why nothing could be written in a folder, and what to do: what the reason asks for, or else `way_out`."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return f"the disk is full; make room, or {way_out}"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"the folder {folder} is not writable; make it writable, or {way_out}"
        case errno.ENOENT:
            return f"the folder {folder} no longer exists; {way_out}"
        case _:
            return f"{error.strerror or error} in the folder {folder}; {way_out}"
