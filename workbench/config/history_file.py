"""Which file the history of a project is kept in."""

from __future__ import annotations

import os
import shlex
from pathlib import Path, PurePosixPath

from workbench.config.folders import APP_NAME, HISTORY_NAME, Folders, home_in, user_folders
from workbench.config.project import project_folder

PROJECT_HISTORY = ".workbench"
"""A folder of this name in a project keeps the project's history beside it."""


def history_file(folders: Folders, folder: Path, home: Path | None) -> Path:
    """Where batches of suites in a folder are kept: in the folder `.workbench` of their project if there is one, else
    in the user's own history."""
    beside = project_folder(folder, home) / PROJECT_HISTORY
    return beside / HISTORY_NAME if beside.is_dir() else folders.history


def history_option(file: Path) -> str:
    """What a command needs, typed where this program runs, to work with this history: nothing where it is the one that
    the command finds by itself, else ` --history FILE`, quoted for a shell."""
    try:
        found = history_file(user_folders(), Path(), home_in(os.environ)).resolve() == file.resolve()
    except OSError:  # the current folder is gone, and nothing is found from there
        found = False
    return "" if found else f" --history {shlex.quote(str(file))}"


def is_beside_project(file: Path) -> bool:
    """Whether a history stands beside a project, and may have come with it from elsewhere."""
    return file.absolute().parent.name == PROJECT_HISTORY


def is_named_as_ours(file: Path) -> bool:
    """Whether a history has our own name at one of our own places: what is there is ours, whatever it holds by now."""
    return file.name == HISTORY_NAME and file.absolute().parent.name in (PROJECT_HISTORY, APP_NAME)


_HERE = "./"
"""How the folders begin that are kept as those below the project that a history stands beside."""


def folder_as_kept(file: Path, folder: Path) -> str:
    """How a history names the folder of a project: as a whole path, but for the project that it stands beside and those
    below that, since the history goes where they go."""
    beside = _project_beside(file)
    if beside is None or not folder.is_relative_to(beside):
        return str(folder)
    return f"{_HERE}{folder.relative_to(beside).as_posix()}"


def folder_of_kept(file: Path, kept: str) -> str:
    """Where the folder is that a history names so. What leads out of the project beside it is left as it is."""
    beside = _project_beside(file)
    if beside is None or not kept.startswith(_HERE) or ".." in PurePosixPath(kept).parts:
        return kept
    return str(beside / kept.removeprefix(_HERE).lstrip("/"))


def _project_beside(file: Path) -> Path | None:
    return file.absolute().parent.parent.resolve() if is_beside_project(file) else None
