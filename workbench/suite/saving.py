"""Saves a suite's text: completely or not at all, and never over what another program wrote meanwhile."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from pathlib import Path

from workbench.dataclasses import dataclass
from workbench.suite.disk import flush_folder, why_not_written


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was read or written: the SHA-256 of its bytes in hex (`SuiteFile.hash`), and what shows quickly that
    it may have changed since: its size in bytes and its modification time in nanoseconds, -1 when not known."""

    hash: str
    size: int = -1
    mtime_ns: int = -1


class SavingError(Exception):
    """A file was not saved and is unchanged. The message says why and what to do, in one sentence."""


class ChangedOnDiskError(SavingError):
    """A file is not what it was expected to be; `found` is its present state, `None` when it no longer exists."""

    def __init__(self, message: str, found: FileState | None) -> None:
        super().__init__(message)
        self.found = found


def state_of(path: Path, known: FileState | None = None) -> FileState | None:
    """Returns the present state of a file; `None` when there is none. It is not read when size and time are those of
    `known`. Raises OSError when it cannot be read."""
    try:
        status = path.stat()
        if known is not None and (known.size, known.mtime_ns) == (status.st_size, status.st_mtime_ns):
            return known
        return _state(path.read_bytes(), status)
    except FileNotFoundError:
        return None


def save(path: Path, text: str, expected: FileState | None) -> FileState:
    """Write a text as UTF-8, byte for byte; the file is replaced as a whole, and is on the disk on return.

    `expected` is the file's state when it was read, compared by content; `None`: there must be no such file. Its mode
    is kept, and a symbolic link stays one: its target is replaced. Other hard links keep the old content.

    Raises ChangedOnDiskError when the file has changed, and SavingError when it cannot be written. Nothing is left
    behind then.
    """
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
        why = why_not_written(error, path.parent, "save somewhere else")
        raise SavingError(f"{path} was not saved: {why}") from error


def _replaced(
    path: Path, target: Path, content: bytes, before: os.stat_result | None, expected: FileState | None
) -> FileState:
    temporary = target.with_name(f".workbench-{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            if before is not None:
                _take_over(temporary, before)
            os.fsync(opened.fileno())
        _must_be(path, target, expected)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    # The new file is in place already, so a refusal changes nothing for the user.
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
    what = "deleted" if found is None else "changed on disk"
    raise ChangedOnDiskError(f"{path} was not saved: it was {what} since it was read", found)


def _take_over(temporary: Path, before: os.stat_result) -> None:
    """Copy the owner, where that is allowed, and the mode. The mode comes last, because changing the owner may clear
    bits."""
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
