"""Helpers for paths and folders: where they lead, locks, and why writing fails."""

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
    """Returns an absolute path; the path unchanged when the current folder no longer exists."""
    try:
        return path.absolute()
    except OSError:
        return path


def resolved(path: Path) -> Path:
    """Returns the resolved path; the path unchanged when links form a loop or the current folder no longer exists."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def from_here(path: str) -> str:
    """Returns the resolved path relative to the current folder, with slashes; the path unchanged when no file can have
    it or the current folder no longer exists."""
    try:
        return _from(path, Path.cwd())
    except (OSError, ValueError):
        return path


@lru_cache(maxsize=1024)
def _from(path: str, folder: Path) -> str:
    return Path(os.path.relpath(resolved(Path(path)), folder)).as_posix()


def from_repository(path: str) -> str:
    """Returns a path relative to the folder of the Git repository that it is in, as services that show a repository
    know its files; relative to the current folder where there is none."""
    root = repository_of(resolved(Path(path)).parent)
    return from_here(path) if root is None else _from(path, root)


def is_outside(path: str) -> bool:
    """Returns whether a path of `from_repository` leads out of the folder that it is relative to."""
    return path.startswith(("../", "/")) or Path(path).is_absolute()


@lru_cache(maxsize=1024)
def repository_of(folder: Path) -> Path | None:
    """Returns the root of the Git repository that an absolute folder is in, `None` where there is none."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def shown_name(path: Path) -> str:
    """Returns the name of a folder, also for the current one."""
    return resolved(path).name or str(path)


def flush_folder(folder: Path) -> None:
    """Flush a folder's list of files to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class LockedError(Exception):
    """Another program did not release a lock in time."""


_LOCK_AGAIN_S = 0.005


@contextmanager
def locked(file: Path, timeout_s: float) -> Iterator[None]:
    """Hold a lock that one thread of one program can hold at a time, on a file that exists for this purpose alone. The
    system releases it when the program ends in any way. Blocks.

    Raises LockedError when it stays held for too long, and OSError.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        never = (
            threading.Event()
        )  # there is no notification of a released lock, so it is tried again after a short wait
        deadline = time.monotonic() + timeout_s
        while not _lock(descriptor):
            if time.monotonic() >= deadline:
                raise LockedError(f"another program has locked {file}")
            never.wait(_LOCK_AGAIN_S)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open file. Returns `False` when it is locked elsewhere. Closing the file releases the lock."""
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
    """Returns why nothing could be written in a folder, and the way out: that of the reason, or else `way_out`."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return f"the disk is full; make room, or {way_out}"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"the folder {folder} is not writable; make it writable, or {way_out}"
        case errno.ENOENT:
            return f"the folder {folder} no longer exists; {way_out}"
        case _:
            return f"{error.strerror or error} in the folder {folder}; {way_out}"
