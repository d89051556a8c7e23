"""Backs up the unsaved changes of suites while the user types, to recover them after a crash.

The unsaved changes of one suite are a draft."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from workbench.dataclasses import dataclass
from workbench.suite.files import FileState, absolute, flush_folder, resolved, state_of, write_problem

# A draft is a journal, a file of JSON lines. The first line names the suite and holds the original text. Each further
# line replaces a part of the text, so a key press writes only a few bytes. A running program locks the journals that it
# writes. A journal without a lock was therefore left by an earlier session.


def changed_part(old: str, new: str) -> tuple[int, int, int]:
    """Return the start of the difference of two texts, and its ends in the old and the new text."""
    start = _common(old, new, min(len(old), len(new)), from_end=False)
    same_at_end = _common(old, new, min(len(old), len(new)) - start, from_end=True)
    return start, len(old) - same_at_end, len(new) - same_at_end


def _common(old: str, new: str, maximum: int, *, from_end: bool) -> int:
    # Bisection is used because Python compares slices far faster than a loop compares characters.
    low, high = 0, maximum
    while low < high:
        middle = (low + high + 1) // 2
        if from_end:
            equal = old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]
        else:
            equal = old[low:middle] == new[low:middle]
        if equal:
            low = middle
        else:
            high = middle - 1
    return low


def with_change_applied(text: str, change: Mapping[str, object]) -> str:
    """Return a text with one part replaced: `cut` characters from `at` on become `put`.

    Raises KeyError, TypeError or IndexError if the change does not fit the text."""
    at, removed, put = change["at"], change["cut"], change["put"]
    if not (isinstance(at, int) and isinstance(removed, int) and isinstance(put, str)):
        raise TypeError("a change in a journal must have the numbers `at` and `cut` and the text `put`")
    if not 0 <= at <= at + removed <= len(text):
        raise IndexError("a change in a journal lies outside of the draft's text")
    return text[:at] + put + text[at + removed :]


VERSION = 1
SUFFIX = ".draft"
DAMAGED_SUFFIX = ".damaged"
"""Suffix of an unreadable journal. The journal stays on the disk and is not read again."""

SYNC_INTERVAL_S = 0.5
"""Seconds between two flushes to the disk."""


class DraftError(Exception):
    """A change could not be backed up, or drafts could not be read. The message gives the reason and advice.

    After a failed backup, the next change of the text tries again."""


@dataclass(frozen=True)
class RecoveredDraft:
    """Unsaved changes of a suite from an earlier session. They turned `base_text` into `text`.

    `base_state` is the state of the file when it contained `base_text`, or `None` if the suite was never saved.
    `changed_at` is the time of the last change in seconds since 1970."""

    path: Path
    base_text: str
    base_state: FileState | None
    text: str
    changed_at: float
    journal: Path


@dataclass(frozen=True)
class RecoverableDrafts:
    """The drafts of earlier sessions, latest first, and the journals that could not be read."""

    drafts: tuple[RecoveredDraft, ...] = ()
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
    """Whether the file's entry in its folder may not be on the disk yet."""


@dataclass
class _Flushing:
    """State shared with the flushing thread, guarded by `changed`."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    waiting: set[int] = field(default_factory=set)
    """Descriptors to flush."""
    failure: OSError | None = None
    closed: bool = False


class Drafts:
    """The drafts of this session and of earlier sessions. Each draft is a journal file in one folder.

    A text given to `keep` can be recovered if the program is killed. Half a second later, it can also be recovered
    after a power failure.

    Use an instance from one thread. Relative paths are relative to the folder that was current at the start, even if
    that folder no longer exists."""

    def __init__(self, folder: Path, *, sync_interval_s: float = SYNC_INTERVAL_S) -> None:
        self._folder = folder
        self._here = absolute(Path())
        self._journals: dict[Path, _Journal] = {}
        self._offered: dict[Path, int] = {}
        """Journals of ended programs with their descriptors, locked until they are taken over or released."""
        self._flushing = _Flushing()
        self._interval_s = sync_interval_s
        self._thread: threading.Thread | None = None

    def draft_path(self, path: Path) -> Path:
        """Return the absolute path by which drafts identify a suite file.

        Symbolic links in the path of its folder are resolved. If the file itself is a link, the link is not
        followed."""
        path = self._here / path
        if path.name in ("", ".."):
            return resolved(path)
        return resolved(path.parent) / path.name

    def places(self, root: Path) -> tuple[Path, ...]:
        """Return the resolved paths of a file or folder. Its drafts have these paths or paths below them.

        A folder that is a link has two such paths: the link itself and its target."""
        known = self.draft_path(root)
        if known.is_dir():
            return (known, resolved(known))
        return (known,)

    def keep(self, path: Path, base_text: str, base_state: FileState | None, text: str) -> None:
        """Back up the current text of a suite.

        `base_text` and `base_state` are the text and the state of the file when it was read. Raises DraftError if the
        current text cannot be written."""
        path = self.draft_path(path)
        journal = self._journals.get(path)
        try:
            if journal is None or not _is_based_on(journal, base_text, base_state):
                # The old journal is deleted only when the new journal has the text, so the text is always in a journal.
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
        journal = self._journals.pop(self.draft_path(path), None)
        if journal is not None:
            self._end(journal)

    def recoverable(self, roots: Iterable[Path]) -> RecoverableDrafts:
        """Return the drafts of earlier sessions for suites at or below some paths. They stay locked until `close`.

        A draft that equals the file on the disk is deleted. Raises DraftError if the folder of drafts cannot be
        read."""
        places: tuple[Path, ...] = ()
        for root in roots:
            places += self.places(root)
        drafts: list[RecoveredDraft] = []
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
        return RecoverableDrafts(tuple(sorted(drafts, key=lambda draft: -draft.changed_at)), tuple(damaged))

    def adopt(self, draft: RecoveredDraft) -> None:
        """Continue a draft of an earlier session. The draft's journal then belongs to this session."""
        descriptor = self._offered.pop(draft.journal)
        # The last line may be cut off. The next change must begin a new line.
        size = _end_of_lines(_content(descriptor))
        os.ftruncate(descriptor, size)
        self.forget(draft.path)
        self._journals[draft.path] = _Journal(
            draft.journal, descriptor, draft.base_text, draft.base_state, draft.text, size, is_new=False
        )

    def discard(self, draft: RecoveredDraft) -> None:
        descriptor = self._offered.pop(draft.journal)
        draft.journal.unlink(missing_ok=True)
        os.close(descriptor)

    def close(self) -> None:
        """Flush all journals and unlock them.

        The next session can recover the drafts that were not passed to `forget`."""
        with self._flushing.changed:
            self._flushing.closed = True
            self._flushing.changed.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        for journal in self._journals.values():
            os.close(journal.descriptor)
        for descriptor in self._offered.values():
            os.close(descriptor)
        self._journals.clear()
        self._offered.clear()

    def _refusal(self, action: str, error: OSError) -> DraftError:
        return DraftError(f"{action}: {write_problem(error, self._folder, 'save often')}")

    def _begun(self, path: Path, base_text: str, base_state: FileState | None) -> _Journal:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self._folder / f"{path.stem[:40]}-{os.urandom(8).hex()}{SUFFIX}"
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
                        # The thread of `Drafts` may close a journal at any time, so a copy of its descriptor is
                        # flushed.
                        descriptors.append(os.dup(descriptor))
                        flushing.waiting.discard(descriptor)
                except OSError as error:
                    # Too many files are open, so the remaining descriptors wait for the next round.
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

    def _found(self, file: Path, places: tuple[Path, ...]) -> RecoveredDraft | None:
        """Lock a journal and return its draft.

        Returns `None` if a running program has locked the journal, if the draft belongs to another suite, or if its
        text equals the file on the disk."""
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
    """A journal has content that Workbench never writes."""


def _is_based_on(journal: _Journal, text: str, state: FileState | None) -> bool:
    return journal.base_text == text and (journal.base_state and journal.base_state.hash) == (state and state.hash)


def _write(journal: _Journal, line: dict[str, object]) -> None:
    """Write one line completely or not at all."""
    # One call writes the whole line, so a killed program does not leave half a line.
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


def _read(file: Path, content: bytes, changed_at: float) -> RecoveredDraft | None:
    """Return the draft in a journal, or `None` if its first line is incomplete or of another version.

    Raises _DamagedError for content that Workbench never writes."""
    # Text after the last line end is an incomplete line of a program that was killed while it wrote.
    lines = content[: _end_of_lines(content)].split(b"\n")[:-1]
    if not lines:
        return None
    try:
        head = json.loads(lines[0])
        if head["draft"] != VERSION:
            return None
        path, base, written = Path(head["path"]), head["base"], head["state"]
        state = None
        if written is not None:
            state = FileState(str(written[0]), int(written[1]), int(written[2]))
        text = base
        for line in lines[1:]:
            text = with_change_applied(text, json.loads(line))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise _DamagedError(str(file)) from error
    return RecoveredDraft(path, base, state, text, changed_at, file)


def _is_on_disk(draft: RecoveredDraft) -> bool:
    try:
        state = state_of(draft.path)
    except OSError:
        return False
    if state is None:
        return draft.base_state is None and draft.text == draft.base_text
    return state.hash == hashlib.sha256(draft.text.encode("utf-8", errors="surrogatepass")).hexdigest()
