"""Drafts: what was changed in suites and not saved, written down as it is typed and found again after any end.

A journal is one file of JSON lines. The first names the suite and holds the text on which the changes are based; each
further one is a piece of text that took the place of another. A program holds a lock on the journals it writes: those
that nobody holds were left behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from workbench.suite.disk import absolute, flush_folder, resolved, why_not_written
from workbench.suite.saving import FileState, state_of
from workbench.suite.text_change import changed_part, with_part

VERSION = 1
SUFFIX = ".draft"
DAMAGED_SUFFIX = ".damaged"
"""Added to the name of a journal that cannot be read: it is kept, and looked at no more."""

SYNC_INTERVAL_S = 0.5
"""Between two times that what was written is pressed onto the disk."""


class DraftError(Exception):
    """A change could not be written down; the next one tries again. The message says why, and the way out."""


@dataclass(frozen=True)
class LeftDraft:
    """Unsaved changes that a program left behind: the text `base_text`, which was on the disk as `base_state` (`None`:
    a suite that was never saved), became `text`. `changed_at` is the time of the last change in seconds since 1970."""

    path: Path
    base_text: str
    base_state: FileState | None
    text: str
    changed_at: float
    journal: Path


@dataclass(frozen=True)
class LeftBehind:
    """What earlier programs left: drafts, the latest first, and journals that could not be read and were set aside."""

    drafts: tuple[LeftDraft, ...] = ()
    damaged: tuple[Path, ...] = ()


@dataclass
class _Journal:
    file: Path
    descriptor: int
    base_text: str
    base_state: FileState | None
    text: str
    size: int
    is_new: bool = True
    """Whether the folder was not flushed since the file came into it."""


@dataclass
class _Flushing:
    """What the flushing thread shares with its owner, under `changed`."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    waiting: set[int] = field(default_factory=set)
    """Descriptors with something to flush."""
    failure: OSError | None = None
    closed: bool = False


class Drafts:
    """The journals in one folder. Every text that `keep` was given is there again after the program was killed, and,
    half a second later, after the power went. To be used from one thread.

    Relative paths are told from the folder that is the current one at the beginning, also once that is gone.
    """

    def __init__(self, folder: Path, *, sync_interval_s: float = SYNC_INTERVAL_S) -> None:
        self._folder = folder
        self._here = absolute(Path())
        self._journals: dict[Path, _Journal] = {}
        self._offered: dict[Path, int] = {}
        """Journals of others that were found, locked until it is decided what becomes of them."""
        self._flushing = _Flushing()
        self._interval_s = sync_interval_s
        self._thread: threading.Thread | None = None

    def known_as(self, path: Path) -> Path:
        """The one name of a file for drafts, however its folder is reached. A link keeps its own name."""
        path = self._here / path
        return resolved(path) if path.name in ("", "..") else resolved(path.parent) / path.name

    def places(self, root: Path) -> tuple[Path, ...]:
        """Where the suites at or below a path are: what a link to a folder is called is no part of their names."""
        known = self.known_as(root)
        return (known, resolved(known)) if known.is_dir() else (known,)

    def keep(self, path: Path, base_text: str, base_state: FileState | None, text: str) -> None:
        """Write down what a suite says now; `base_text` and `base_state` are what is on the disk, as it was read.

        Raises DraftError when that cannot be written.
        """
        path = self.known_as(path)
        journal = self._journals.get(path)
        try:
            if journal is None or not _is_based_on(journal, base_text, base_state):
                fresh = self._begun(path, base_text, base_state)
                self._journals[path] = fresh
                if journal is not None:
                    self._append(fresh, text)
                    self._end(journal)
                journal = fresh
            self._append(journal, text)
            self._flush_soon(journal)
        except OSError as error:
            raise self._refusal("unsaved changes cannot be backed up", error) from error

    def forget(self, path: Path) -> None:
        """A suite was saved, or says again what is on the disk."""
        journal = self._journals.pop(self.known_as(path), None)
        if journal is not None:
            self._end(journal)

    def left_behind(self, roots: Iterable[Path]) -> LeftBehind:
        """The drafts of programs that are gone, of suites at or below some paths; no other program is offered them
        until `close`. Those that say what is on the disk anyway are removed.

        Raises DraftError when the folder cannot be read.
        """
        places = tuple(place for root in roots for place in self.places(root))
        drafts: list[LeftDraft] = []
        damaged: list[Path] = []
        try:
            for file in sorted(self._folder.glob(f"*{SUFFIX}")):
                try:
                    if (draft := self._found(file, places)) is not None:
                        drafts.append(draft)
                except _DamagedError:
                    damaged.append(file.rename(file.with_name(file.name + DAMAGED_SUFFIX)))
        except OSError as error:
            raise self._refusal("unsaved changes of an earlier session cannot be read", error) from error
        return LeftBehind(tuple(sorted(drafts, key=lambda draft: -draft.changed_at)), tuple(damaged))

    def take_over(self, draft: LeftDraft) -> None:
        """Go on with a draft that was left behind: its journal becomes this program's own."""
        descriptor = self._offered.pop(draft.journal)
        size = _end_of_lines(_content(descriptor))
        os.ftruncate(descriptor, size)
        self.forget(draft.path)
        self._journals[draft.path] = _Journal(
            draft.journal, descriptor, draft.base_text, draft.base_state, draft.text, size, is_new=False
        )

    def throw_away(self, draft: LeftDraft) -> None:
        """Delete a draft that was left behind."""
        descriptor = self._offered.pop(draft.journal)
        draft.journal.unlink(missing_ok=True)
        os.close(descriptor)

    def close(self) -> None:
        """Press everything onto the disk and let go of it: what was not forgotten is left behind."""
        with self._flushing.changed:
            self._flushing.closed = True
            self._flushing.changed.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        descriptors = [journal.descriptor for journal in self._journals.values()]
        for descriptor in (*descriptors, *self._offered.values()):
            os.close(descriptor)
        self._journals.clear()
        self._offered.clear()

    # Writing

    def _refusal(self, what: str, error: OSError) -> DraftError:
        return DraftError(f"{what}: {why_not_written(error, self._folder, 'save often')}")

    def _begun(self, path: Path, base_text: str, base_state: FileState | None) -> _Journal:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self._folder / f"{path.stem[:40]}-{secrets.token_hex(8)}{SUFFIX}"
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            journal = _Journal(file, descriptor, base_text, base_state, base_text, 0)
            state = base_state and [base_state.hash, base_state.size, base_state.mtime_ns]
            _write(journal, {"draft": VERSION, "path": str(path), "state": state, "base": base_text})
        except BaseException:
            file.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return journal

    def _append(self, journal: _Journal, text: str) -> None:
        if text == journal.text:
            return
        at, end_before, end_after = changed_part(journal.text, text)
        _write(journal, {"at": at, "cut": end_before - at, "put": text[at:end_after]})
        journal.text = text

    def _end(self, journal: _Journal) -> None:
        with contextlib.suppress(OSError):
            journal.file.unlink(missing_ok=True)
        with self._flushing.changed:
            self._flushing.waiting.discard(journal.descriptor)
            os.close(journal.descriptor)

    def _flush_soon(self, journal: _Journal) -> None:
        flushing = self._flushing
        with flushing.changed:
            failure, flushing.failure = flushing.failure, None
            flushing.waiting.add(journal.descriptor)
            flushing.changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._flush, name="drafts", daemon=True)
            self._thread.start()
        if failure is not None:
            raise failure

    def _flush(self) -> None:
        flushing = self._flushing
        while True:
            with flushing.changed:
                flushing.changed.wait_for(lambda: flushing.waiting or flushing.closed)
                closed = flushing.closed
                descriptors: list[int] = []
                try:
                    for descriptor in tuple(flushing.waiting):
                        # The journals' own descriptors may be closed meanwhile.
                        descriptors.append(os.dup(descriptor))
                        flushing.waiting.discard(descriptor)
                except OSError as error:  # too many open files: the rest waits for the next time
                    flushing.failure = error
            try:
                for descriptor in descriptors:
                    os.fsync(descriptor)
                if descriptors:
                    flush_folder(self._folder)
            except OSError as error:
                with flushing.changed:
                    flushing.failure = error
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            if closed:
                return
            with flushing.changed:
                flushing.changed.wait_for(lambda: flushing.closed, self._interval_s)

    # Reading

    def _found(self, file: Path, places: tuple[Path, ...]) -> LeftDraft | None:
        """The draft in a journal, locked; `None` when a program has it, it is about another suite, or nothing is lost
        without it."""
        if file in self._offered or any(journal.file == file for journal in self._journals.values()):
            return None
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            return None
        keeps = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft = _read(file, _content(descriptor), os.fstat(descriptor).st_mtime)
            if draft is None or not any(draft.path.is_relative_to(place) for place in places):
                return None
            if _is_on_disk(draft):
                file.unlink(missing_ok=True)
                return None
            self._offered[file] = descriptor
            keeps = True
            return draft
        except BlockingIOError:
            return None
        finally:
            if not keeps:
                os.close(descriptor)


class _DamagedError(Exception):
    """A journal says what no program wrote."""


def _is_based_on(journal: _Journal, text: str, state: FileState | None) -> bool:
    return journal.base_text == text and (journal.base_state and journal.base_state.hash) == (state and state.hash)


def _write(journal: _Journal, line: dict[str, object]) -> None:
    """One line, by one call, so that no end of the program can come between; when it fails, nothing of it stays."""
    content = json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"
    try:
        if os.write(journal.descriptor, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(journal.descriptor, journal.size)
        raise
    journal.size += len(content)


def _content(descriptor: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as opened:
        opened.seek(0)
        return opened.read()


def _end_of_lines(content: bytes) -> int:
    return content.rfind(b"\n") + 1


def _read(file: Path, content: bytes, changed_at: float) -> LeftDraft | None:
    """The draft in a journal; what follows the last whole line was cut off by the end of the program. `None` where not
    even the first line is whole, or a later version wrote it. Raises _DamagedError."""
    lines = content[: _end_of_lines(content)].split(b"\n")[:-1]
    if not lines:
        return None
    try:
        head = json.loads(lines[0])
        if head["draft"] != VERSION:
            return None
        path, base, written = Path(head["path"]), head["base"], head["state"]
        state = None if written is None else FileState(str(written[0]), int(written[1]), int(written[2]))
        text = base
        for line in lines[1:]:
            text = with_part(text, json.loads(line))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise _DamagedError(str(file)) from error
    return LeftDraft(path, base, state, text, changed_at, file)


def _is_on_disk(draft: LeftDraft) -> bool:
    try:
        state = state_of(draft.path)
    except OSError:
        return False
    if state is None:
        return draft.base_state is None and draft.text == draft.base_text
    return state.hash == hashlib.sha256(draft.text.encode("utf-8", errors="surrogatepass")).hexdigest()
