"""Finds the history file of a project."""

from __future__ import annotations

import os
import shlex
from pathlib import Path, PurePosixPath

from workbench.config.folders import APP_NAME, HISTORY_NAME, Folders, home_in, user_folders
from workbench.config.project import project_folder

PROJECT_HISTORY = ".workbench"
"""A folder of this name in a project holds the project's history."""


def history_file(folders: Folders, folder: Path, home: Path | None) -> Path:
    """Returns the history file for suites in a folder: in the folder `.workbench` of their project if there is one,
    else the user's own."""
    beside = project_folder(folder, home) / PROJECT_HISTORY
    return beside / HISTORY_NAME if beside.is_dir() else folders.history


def history_option(file: Path) -> str:
    """Returns the option that a command needs, typed in the current folder, to use this history: nothing where it finds
    it by itself, else ` --history FILE`, quoted for a shell."""
    try:
        found = history_file(user_folders(), Path(), home_in(os.environ)).resolve() == file.resolve()
    except OSError:  # the current folder no longer exists, and nothing is found from there
        found = False
    return "" if found else f" --history {shlex.quote(str(file))}"


def is_beside_project(file: Path) -> bool:
    """Returns whether a history belongs to a project folder, and may have come with it from elsewhere."""
    return file.absolute().parent.name == PROJECT_HISTORY


def is_named_as_ours(file: Path) -> bool:
    """Returns whether a history has this program's own name at one of its own places: that file is ours, whatever it
    holds by now."""
    return file.name == HISTORY_NAME and file.absolute().parent.name in (PROJECT_HISTORY, APP_NAME)


_HERE = "./"
"""The prefix of stored folders that are relative to the project of the history."""


def stored_folder(file: Path, folder: Path) -> str:
    """Returns how a history stores the folder of a project: as an absolute path, except for the history's own project
    and folders below it, because the history moves with them."""
    beside = _project_beside(file)
    if beside is None or not folder.is_relative_to(beside):
        return str(folder)
    return f"{_HERE}{folder.relative_to(beside).as_posix()}"


def folder_of_stored(file: Path, stored: str) -> str:
    """Returns the folder that a history stored in this form. A path that leads out of the project is returned
    unchanged."""
    beside = _project_beside(file)
    if beside is None or not stored.startswith(_HERE) or ".." in PurePosixPath(stored).parts:
        return stored
    return str(beside / stored.removeprefix(_HERE).lstrip("/"))


def _project_beside(file: Path) -> Path | None:
    return file.absolute().parent.parent.resolve() if is_beside_project(file) else None
