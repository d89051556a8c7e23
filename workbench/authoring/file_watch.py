"""Detects changed files and folders by a `stat` of each, not by notifications of the operating system."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from workbench.suite.project import is_installed

Stamp: TypeAlias = tuple[int, int, int]
"""The size, modification time (ns) and inode number of a file or folder. If they differ, it was probably changed."""

_SURE_AFTER_NS = 3_000_000_000
"""The age in nanoseconds from which a modification time is reliable. Some file systems store times in steps of one or
two seconds, so two changes in quick succession can have the same time."""


class _Folder(NamedTuple):
    stamp: Stamp
    folders: tuple[Path, ...]
    files: tuple[Path, ...]


class FolderWatch:
    """Lists the TOML files below some folders, with the same rules as `suite.project.Search`.

    A folder is read again only after its modification time changed."""

    def __init__(self) -> None:
        self._known: dict[Path, _Folder] = {}
        self._is_stopped = False

    def stop(self) -> None:
        self._is_stopped = True

    def scan(self, roots: Sequence[Path]) -> dict[Path, Stamp]:
        """Return the TOML files that exist now, each with the stamp that changes when the file does."""
        found: dict[Path, _Folder] = {}
        for root in roots:
            self._list(root, found, is_root=True)
        self._known = found
        stamps: dict[Path, Stamp] = {}
        for folder in found.values():
            for file in folder.files:
                if (stamp := stamp_of(file)) is not None:
                    stamps[file] = stamp
        return stamps

    def _list(self, path: Path, found: dict[Path, _Folder], *, is_root: bool = False) -> None:
        stamp = stamp_of(path)
        if stamp is None or path in found or self._is_stopped:  # roots may lie inside each other
            return
        # The modification time of a folder changes with its list of entries, but not with their content. Each file
        # therefore has its own stamp.
        known = self._known.get(path)
        if known is None or known.stamp != stamp or time.time_ns() - stamp[1] < _SURE_AFTER_NS:
            entries = tuple(_entries(path))
            if not is_root and is_installed(path.name, {entry.name for entry in entries}):
                entries = ()
            folders: list[Path] = []
            files: list[Path] = []
            for entry in entries:
                if not entry.name.startswith(".") and _is_folder(entry):
                    folders.append(Path(entry))
                if entry.name.endswith(".toml"):
                    files.append(Path(entry))
            known = _Folder(stamp, tuple(folders), tuple(files))
        found[path] = known
        for folder in known.folders:
            self._list(folder, found)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return  # a file, or an unreadable folder: reading it later reports the problem


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def stamp_of(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
