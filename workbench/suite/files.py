"""Writes files completely or not at all, locks files, and explains why writing failed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from workbench.dataclasses import dataclass


def absolute(path: Path) -> Path:
    """Return the absolute path. If the current folder no longer exists, return the path unchanged."""
    try:
        return path.absolute()
    except OSError:
        return path


def resolved(path: Path) -> Path:
    """Return the resolved path.

    If links form a loop or the current folder no longer exists, return the path unchanged."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def relative_to_cwd(path: str) -> str:
    """Return the resolved path relative to the current folder, with slashes.

    The path is unchanged if it cannot be a file's path or the current folder no longer exists."""
    try:
        # Reports call this function for each run, and `Path.cwd` takes ten times as long.
        return _from(path, os.getcwd())  # noqa: PTH109
    except (OSError, ValueError):
        return path


@lru_cache(maxsize=1024)
def _from(path: str, folder: str) -> str:
    return Path(os.path.relpath(resolved(Path(path)), folder)).as_posix()


def relative_to_repository(path: str) -> str:
    """Return a path relative to its Git repository. CI services name files in this form.

    Outside a repository, the path is relative to the current folder."""
    root = repository_of(resolved(Path(path)).parent)
    if root is None:
        return relative_to_cwd(path)
    return _from(path, str(root))


def is_outside(path: str) -> bool:
    """Return whether a path from `relative_to_repository` leads out of its repository or the current folder."""
    return path.startswith(("../", "/")) or Path(path).is_absolute()


@lru_cache(maxsize=1024)
def repository_of(folder: Path) -> Path | None:
    """Return the root of the Git repository of an absolute folder, or `None` if there is no repository."""
    for parent in (folder, *folder.parents):
        # `.git` is a folder in a repository, and a file in a worktree or a submodule.
        if (parent / ".git").exists():
            return parent
    return None


def folder_name(path: Path) -> str:
    """Return the name of a folder. The path is resolved first, because the path `.` has no name."""
    return resolved(path).name or str(path)


def flush_folder(folder: Path) -> None:
    """Flush a folder's list of files to the disk.

    Otherwise, a power failure can lose a new or renamed file. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(file: Path, content: bytes) -> None:
    """Replace a whole file. Only its owner can read and write it.

    Another program sees either the old or the new content, also after a power failure. Raises OSError."""
    import tempfile  # lazy import: validating suites writes no file

    # A rename is atomic only within one file system, so the temporary file is in the same folder.
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


class LockedError(Exception):
    """Another program did not release a lock in time."""


_LOCK_AGAIN_S = 0.005


@contextmanager
def locked(file: Path, timeout_s: float) -> Iterator[None]:
    """Hold an exclusive lock on a file that exists only for locking. Only one thread of one program can hold it.

    The call waits for the lock. The system releases the lock when the program ends in any way. Raises LockedError if
    another holder keeps the lock for longer than `timeout_s` seconds, and OSError."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        # The system does not report released locks, so locking is retried after a short wait.
        never = threading.Event()
        deadline = time.monotonic() + timeout_s
        while not _lock(descriptor):
            if time.monotonic() >= deadline:
                raise LockedError(f"another program has locked {file}")
            never.wait(_LOCK_AGAIN_S)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Try to lock an open file. Return whether it worked. Closing the file releases the lock."""
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


def write_problem(error: OSError, folder: Path, advice: str) -> str:
    """Return why nothing could be written in a folder, with advice.

    `advice` is the advice for a reason that has no advice of its own."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return f"the disk is full; make room, or {advice}"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"the folder {folder} is not writable; make it writable, or {advice}"
        case errno.ENOENT:
            return f"the folder {folder} no longer exists; {advice}"
        case _:
            return f"{error.strerror or error} in the folder {folder}; {advice}"


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file: SHA-256 in hex, size in bytes, and modification time in nanoseconds.

    A different size or time shows quickly that the file may have changed. Both are -1 if unknown."""

    hash: str
    size: int = -1
    mtime_ns: int = -1


class SavingError(Exception):
    """A file was not saved and is unchanged. The message gives the reason and advice."""


class ChangedOnDiskError(SavingError):
    """Another program changed the file. `found` is the file's present state, or `None` if it no longer exists."""

    def __init__(self, message: str, state: FileState | None) -> None:
        super().__init__(message)
        self.found = state


def state_of(path: Path, known: FileState | None = None) -> FileState | None:
    """Return the present state of a file, or `None` if the file does not exist.

    If the size and time equal those of `known`, the file is not read. Raises OSError if it cannot be read."""
    try:
        status = path.stat()
        if known is not None and (known.size, known.mtime_ns) == (status.st_size, status.st_mtime_ns):
            return known
        return _state(path.read_bytes(), status)
    except FileNotFoundError:
        return None


def save(path: Path, text: str, expected: FileState | None) -> FileState:
    """Save a text as UTF-8: replace the whole file and flush it to the disk.

    `expected` is the state of the file when it was read, compared by content. `None` demands that the file does not
    exist. The file keeps its mode. If the path is a symbolic link, its target is replaced. Other hard links keep the
    old content.

    Raises ChangedOnDiskError if another program changed the file, and SavingError if it cannot be written. Both leave
    the file unchanged and no temporary file behind."""
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise SavingError(f"{path} was not saved: line {line} contains half of a character; retype it") from error
    try:
        target = path.resolve()
        before = _status(target)
        _must_be_writable(path, target, before)
        return _replaced(path, target, content, before, expected)
    except RuntimeError as error:
        raise SavingError(f"{path} was not saved: it is a link that leads to itself") from error
    except OSError as error:
        why = write_problem(error, path.parent, "save somewhere else")
        raise SavingError(f"{path} was not saved: {why}") from error


def _replaced(
    path: Path, target: Path, content: bytes, before: os.stat_result | None, expected: FileState | None
) -> FileState:
    temporary = target.with_name(f".workbench-{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            if before is not None:
                _take_over(temporary, before)
            os.fsync(opened.fileno())
        # Writing and flushing may have taken seconds, so another program's change is checked for once more.
        _must_be(path, target, expected)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    # The new file is already in place, so a failed flush is not a failed save.
    with contextlib.suppress(OSError):
        flush_folder(target.parent)
    return _state(content, target.stat())


def _must_be_writable(path: Path, target: Path, status: os.stat_result | None) -> None:
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise SavingError(f"{path} was not saved: it is not a regular file; save under another name")
    if status is not None and not os.access(target, os.W_OK):
        raise SavingError(f"{path} was not saved: the file is read-only; make it writable or save under another name")
    if not target.parent.is_dir():
        raise SavingError(f"{path} was not saved: the folder {target.parent} no longer exists; save somewhere else")


def _must_be(path: Path, target: Path, expected: FileState | None) -> None:
    found = state_of(target)
    if (found and found.hash) == (expected and expected.hash):
        return
    if expected is None:
        raise ChangedOnDiskError(f"{path} was not saved: the file already exists", found)
    change = "deleted" if found is None else "changed on disk"
    raise ChangedOnDiskError(f"{path} was not saved: it was {change} since it was read", found)


def _take_over(temporary: Path, before: os.stat_result) -> None:
    """Copy the mode of a file to its replacement, and the owner if the system allows it."""
    # The mode comes last, because the system clears some mode bits when the owner changes.
    status = temporary.stat()
    if (status.st_uid, status.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(PermissionError):
            os.chown(temporary, before.st_uid, before.st_gid)
    temporary.chmod(stat.S_IMODE(before.st_mode))


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _state(content: bytes, status: os.stat_result) -> FileState:
    return FileState(hashlib.sha256(content).hexdigest(), status.st_size, status.st_mtime_ns)
