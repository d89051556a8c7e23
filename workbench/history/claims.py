"""Claims on batches: locks that tell other programs that a batch is running.

A claim locks one byte of a file next to the history, at the offset of the batch's number. The system drops the locks of
a program that ends for any reason, so no claim outlives its program. Claims work between programs on one machine. They
work between machines if the network file system supports such locks."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from workbench.dataclasses import dataclass
from workbench.history.records import HistoryError

_ENDING = "-claims"
_OPENING = 0
"""The byte that is locked to open, rename or create a history. Batch numbers begin at 1."""

# A program that only checks whether a batch is claimed holds the lock for a moment. So claiming is retried.
_CLAIM_TIMEOUT_S = 0.2
"""The seconds for which claiming a batch is retried."""

_RETRY_INTERVAL_S = 0.01


@dataclass
class _Locks:
    descriptor: int
    held: set[int] = field(default_factory=set)


# POSIX record locks belong to the whole program, and closing any descriptor of a file drops all of the program's locks
# on it. So each file is opened once, and closed with its last lock. The system would grant one program the same lock
# twice. `held` prevents this.
_files: dict[tuple[int, int], _Locks] = {}
"""The files in which this program holds a lock, keyed by device and inode."""

_guard = threading.Lock()


class Claim:
    """This program's exclusive right to run or remove a batch, until it releases the right.

    Releasing a claim more than once is harmless."""

    def __init__(self, key: tuple[int, int], number: int) -> None:
        self._key = key
        self._number = number

    def release(self) -> None:
        """Let other programs claim the batch."""
        with _guard:
            locks = _files.get(self._key)
            if locks is None or self._number not in locks.held:
                return
            fcntl.lockf(locks.descriptor, fcntl.LOCK_UN, 1, self._number)
            locks.held.remove(self._number)
            _close_if_unused(self._key)


def claim(file: Path, number: int) -> Claim:
    """Claim a batch of the history `file`, so that no other program resumes or removes the batch.

    Claim a batch before you read its missing runs, because another program may finish the batch in between. Raises
    HistoryError if the batch is already claimed, by this program or another."""
    try:
        taken = claim_if_free(file, number)
    except OSError as error:
        raise HistoryError(f"the history {file} cannot be written: {error.strerror or error}") from error
    if taken is None:
        raise HistoryError(f"batch {number} is running in another program, or in this one: stop it there, or wait")
    return taken


def claim_if_free(file: Path, number: int) -> Claim | None:
    """Claim a batch of the history `file`; return `None` if it is already claimed.

    Raises OSError if the file of claims cannot be opened."""
    return _claim_with_retries(file, number, _CLAIM_TIMEOUT_S)


def is_claimed(file: Path, number: int) -> bool:
    """Return whether any program, including this one, is running a batch of the history `file`.

    A batch that has not ended and is not claimed was interrupted. The check is fast enough for any thread. It raises no
    errors."""
    path = _lock_file(file)
    with _guard:
        try:
            found = path.lstat()
            locks = _files.get((found.st_dev, found.st_ino))
            if locks is not None:
                return number in locks.held or _is_locked(locks.descriptor, number)
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:  # the lock file does not exist or cannot be opened
            return False
        try:
            return _is_locked(descriptor, number)
        finally:
            os.close(descriptor)


@contextmanager
def exclusive_opening(file: Path, timeout_s: float) -> Iterator[None]:
    """Hold the exclusive right to create a history or to rename a damaged history.

    Raises HistoryError if another program holds the right for longer than `timeout_s` seconds. Also raises OSError."""
    taken = _claim_with_retries(file, _OPENING, timeout_s)
    if taken is None:
        raise HistoryError(
            f"the history {file} is being opened by another program: end that program, or wait and try again"
        )
    try:
        yield
    finally:
        taken.release()


def _lock_file(file: Path) -> Path:
    return Path(f"{file}{_ENDING}")


def _claim_with_retries(file: Path, number: int, timeout_s: float) -> Claim | None:
    # The system does not report that a lock was released, so retry after a short wait.
    never = threading.Event()
    deadline = time.monotonic() + timeout_s
    while (taken := _claim_now(_lock_file(file), number)) is None and time.monotonic() < deadline:
        never.wait(_RETRY_INTERVAL_S)
    return taken


def _claim_now(path: Path, number: int) -> Claim | None:
    with _guard:
        key = _opened(path)
        locks = _files[key]
        try:
            if number in locks.held:
                return None
            fcntl.lockf(locks.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            locks.held.add(number)
            return Claim(key, number)
        except (BlockingIOError, PermissionError):
            return None
        finally:
            _close_if_unused(key)


def _opened(path: Path) -> tuple[int, int]:
    try:
        found = path.lstat()
        if (found.st_dev, found.st_ino) in _files:
            return found.st_dev, found.st_ino
    except FileNotFoundError:
        pass
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    found = os.fstat(descriptor)
    _files[found.st_dev, found.st_ino] = _Locks(descriptor)
    return found.st_dev, found.st_ino


def _close_if_unused(key: tuple[int, int]) -> None:
    if not _files[key].held:
        os.close(_files.pop(key).descriptor)


def _is_locked(descriptor: int, number: int) -> bool:
    # A request for a shared lock fails if another program holds an exclusive lock. Unlike a request for an exclusive
    # lock, it works with a read-only descriptor.
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, number)
    except (BlockingIOError, PermissionError):
        return True
    fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, number)
    return False
