"""Finds the `workbench.toml` that belongs to the suites of a folder."""

from __future__ import annotations

from pathlib import Path

from workbench.settings_name import SETTINGS_NAME as SETTINGS_NAME

_PROJECT_ROOTS = (".git", "pyvenv.cfg")
"""Names that mark the root of a project: nothing above it is searched."""


def project_file(folder: Path, home: Path | None) -> Path | None:
    """Returns the nearest `workbench.toml` in a folder or above it, but not above a repository's root, a virtual
    environment or the user's home, nor in the root of the file system."""
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
    """Returns a path relative to a project's folder, with slashes; an absolute path when it is not below it."""
    resolved = path.resolve()
    return resolved.relative_to(project).as_posix() if resolved.is_relative_to(project) else resolved.as_posix()


def project_folder(folder: Path, home: Path | None) -> Path:
    """Returns the folder of the project that a folder belongs to: the nearest one, at it or above, that holds a
    `workbench.toml` or is a project's root; else the folder itself."""
    here = folder.resolve()
    for parent in (here, *here.parents):
        if parent in (home, parent.parent):
            break
        if any((parent / name).exists() for name in (SETTINGS_NAME, *_PROJECT_ROOTS)):
            return parent
    return here
