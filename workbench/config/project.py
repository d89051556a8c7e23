"""Which `workbench.toml` belongs to the suites of a folder."""

from __future__ import annotations

from pathlib import Path

SETTINGS_NAME = "workbench.toml"

_PROJECT_ROOTS = (".git", "pyvenv.cfg")
"""What the root of a project holds: nothing above it is looked at."""


def project_file(folder: Path, home: Path | None) -> Path | None:
    """The nearest `workbench.toml` in a folder or above it, but not above a repository's root, a virtual environment or
    the user's home, nor in the root of the file system."""
    here = folder.resolve()
    for parent in (here, *here.parents):
        if parent == parent.parent:
            return None
        if (parent / SETTINGS_NAME).is_file():
            return parent / SETTINGS_NAME
        if parent == home or any((parent / name).exists() for name in _PROJECT_ROOTS):
            return None
    return None


def path_in(project: Path, path: Path) -> str:
    """A path below a project's folder, with slashes: the same wherever that folder is. One that is not below it is
    whole."""
    resolved = path.resolve()
    return resolved.relative_to(project).as_posix() if resolved.is_relative_to(project) else resolved.as_posix()


def project_folder(folder: Path, home: Path | None) -> Path:
    """The folder of the project that a folder belongs to: the nearest one, at it or above, that holds a
    `workbench.toml` or is a project's root; else the folder itself."""
    here = folder.resolve()
    for parent in (here, *here.parents):
        if parent in (home, parent.parent):
            break
        if any((parent / name).exists() for name in (SETTINGS_NAME, *_PROJECT_ROOTS)):
            return parent
    return here
