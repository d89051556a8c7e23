"""The suites that the app is open on: found, read, and read again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.config.resources import bundled
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.project import find_suites


@dataclass(frozen=True)
class Workspace:
    """Where suites were looked for, and what was found there. `samples` says that it is the bundled ones, shown because
    the current folder has none."""

    roots: tuple[Path, ...]
    files: tuple[SuiteFile, ...]
    samples: bool = False

    @property
    def place(self) -> str:
        """A name for the status line."""
        if self.samples:
            return "sample suites"
        names = [root.resolve().name or str(root) for root in self.roots]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more" if names else ""


def open_workspace(paths: Sequence[Path]) -> Workspace:
    """Find and read suites: those that paths name, else those of the current folder, else the bundled samples."""
    if paths:
        return _read(tuple(paths), samples=False)
    here = Path()
    if found := find_suites([here]):
        return Workspace((here,), tuple(map(load_suite, found)))
    return _read((bundled("sample_suites"),), samples=True)


def read_again(workspace: Workspace) -> Workspace:
    """Find and read everything anew."""
    return _read(workspace.roots, workspace.samples)


def is_stale(file: SuiteFile) -> bool:
    """Whether the file on disk is no longer what was read."""
    try:
        return hashlib.sha256(file.path.read_bytes()).hexdigest() != file.hash
    except OSError:
        return True


def lost(workspace: Workspace) -> tuple[Path, ...]:
    """The files that were read and are no longer there."""
    return tuple(file.path for file in workspace.files if file.hash and _is_gone(file.path))


def trouble(workspace: Workspace, path: Path) -> str | None:
    """Why the suite at `path` cannot run, if it cannot: it is gone, or has errors, of which this names the first."""
    file = next((file for file in workspace.files if file.path == path), None)
    if _is_gone(path):
        return f"{path.name} is gone"
    if file is None:
        return f"{path.name} is no suite any more"
    if not file.errors:
        return None
    first = file.errors[0]
    return f"{path.name}, line {first.line}: {first.message}" if first.line else f"{path.name} {first.message}"


def _is_gone(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _read(roots: tuple[Path, ...], samples: bool) -> Workspace:
    return Workspace(roots, tuple(map(load_suite, find_suites(roots))), samples)
