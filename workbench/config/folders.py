"""The folders into which the program writes, and where it looks for the user's settings."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

import platformdirs

from workbench.dataclasses import dataclass
from workbench.settings_name import SETTINGS_NAME as SETTINGS_NAME

APP_NAME = "toolcall-workbench"

HISTORY_NAME = "history.sqlite3"


@dataclass(frozen=True)
class Folders:
    """The user's folders.

    Nothing is created before it is needed."""

    state: Path
    """State of the program: trust, drafts, breakpoints, listings of tools, the audit log, judgements."""
    log: Path
    """Logs, among them each MCP server's standard error."""
    config: Path
    """The user's settings: `workbench.toml` with models."""
    data: Path
    """The user's data: the history of all batches."""

    @property
    def trust_file(self) -> Path:
        return self.state / "trust.json"

    @property
    def listings(self) -> Path:
        """The tools that servers listed when they last ran."""
        return self.state / "listings"

    @property
    def drafts(self) -> Path:
        """Unsaved changes of suites, one journal for each."""
        return self.state / "drafts"

    @property
    def deleted(self) -> Path:
        """Suites that were deleted in the app."""
        return self.state / "deleted"

    @property
    def breakpoints(self) -> Path:
        """Breakpoints, one file for each project."""
        return self.state / "breakpoints"

    @property
    def audit_log(self) -> Path:
        """Every real execution of a tool, one JSON line each."""
        return self.state / "executions.jsonl"

    @property
    def judgements(self) -> Path:
        """Judgements of values, one JSON line each."""
        return self.state / "judgements.jsonl"

    @property
    def detached(self) -> Path:
        """Batches that go on without a terminal: their sockets, and their records."""
        return self.state / "batches"

    @property
    def history(self) -> Path:
        """The history of all batches, for projects without their own."""
        return self.data / HISTORY_NAME

    @property
    def server_logs(self) -> Path:
        return self.log / "servers"


def home_in(environment: Mapping[str, str]) -> Path | None:
    """Return the user's home, as the environment names it."""
    named = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(named).resolve() if named else None


def user_folders() -> Folders:
    """Return the folders of the current user.

    They follow the conventions of the platform, or `XDG_STATE_HOME`, `XDG_CONFIG_HOME` and `XDG_DATA_HOME`."""
    return Folders(
        state=platformdirs.user_state_path(APP_NAME, appauthor=False),
        log=platformdirs.user_log_path(APP_NAME, appauthor=False),
        config=platformdirs.user_config_path(APP_NAME, appauthor=False),
        data=platformdirs.user_data_path(APP_NAME, appauthor=False),
    )


# Finds the `workbench.toml` that belongs to the suites of a folder.

_PROJECT_ROOTS = (".git", "pyvenv.cfg")
"""Names that mark the root of a project: nothing above it is searched."""


def project_file(folder: Path, home: Path | None) -> Path | None:
    """Return the nearest `workbench.toml` in a folder or above it.

    The search ends at a repository's root, a virtual environment, the user's home and the root of the file system."""
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
    """Return a path relative to a project's folder, with slashes; an absolute path when it is not below it."""
    resolved = path.resolve()
    if resolved.is_relative_to(project):
        return resolved.relative_to(project).as_posix()
    return resolved.as_posix()


def project_folder(folder: Path, home: Path | None) -> Path:
    """Return the folder of the project that a folder belongs to, else the folder itself.

    It is the nearest one, at it or above, that holds a `workbench.toml` or is a project's root."""
    here = folder.resolve()
    for parent in (here, *here.parents):
        if parent in (home, parent.parent):
            break
        if any((parent / name).exists() for name in (SETTINGS_NAME, *_PROJECT_ROOTS)):
            return parent
    return here


# Finds the history file of a project.

PROJECT_HISTORY = ".workbench"
"""A folder of this name in a project holds the project's history."""


def history_file(folders: Folders, folder: Path, home: Path | None) -> Path:
    """Return the history file for suites in a folder: in their project's `.workbench`, else the user's own."""
    beside = project_folder(folder, home) / PROJECT_HISTORY
    if beside.is_dir():
        return beside / HISTORY_NAME
    return folders.history


def project_paths(files: Iterable[Path], home: Path | None) -> dict[Path, str]:
    """Return the paths of files in their projects, as histories have them."""
    return {file: path_in(project_folder(file.parent, home), file) for file in files}


def folder_of(path: Path) -> Path:
    """Return a folder itself, or the folder of a file."""
    return path if path.is_dir() else path.parent


def history_option(file: Path) -> str:
    """Return the option by which a command in the current folder uses this history, ` --history FILE`, quoted.

    It is empty if the command finds the history by itself."""
    try:
        found = history_file(user_folders(), Path(), home_in(os.environ)).resolve() == file.resolve()
    except OSError:  # the current folder no longer exists, and nothing is found from there
        found = False
    if found:
        return ""
    return f" --history {shlex.quote(str(file))}"


def is_beside_project(file: Path) -> bool:
    """Return whether a history belongs to a project folder, and may have come with it from elsewhere."""
    return file.absolute().parent.name == PROJECT_HISTORY


def is_named_as_ours(file: Path) -> bool:
    """Return whether a history has this program's own name at one of its own places.

    Such a file is ours, whatever it holds by now."""
    return file.name == HISTORY_NAME and file.absolute().parent.name in (PROJECT_HISTORY, APP_NAME)


_HERE = "./"
"""The prefix of stored folders that are relative to the project of the history."""


def stored_folder(file: Path, folder: Path) -> str:
    """Return the folder of a project as a history stores it: an absolute path, relative within its own project.

    The history moves with its own project and the folders below it."""
    beside = _project_beside(file)
    if beside is None or not folder.is_relative_to(beside):
        return str(folder)
    return f"{_HERE}{folder.relative_to(beside).as_posix()}"


def folder_of_stored(file: Path, stored: str) -> str:
    """Return the folder that a history stored in this form.

    A path that leads out of the project is returned unchanged."""
    beside = _project_beside(file)
    if beside is None or not stored.startswith(_HERE) or ".." in PurePosixPath(stored).parts:
        return stored
    return str(beside / stored.removeprefix(_HERE).lstrip("/"))


def _project_beside(file: Path) -> Path | None:
    if is_beside_project(file):
        return file.absolute().parent.parent.resolve()
    return None


# Finds the data that is installed with the program: the themes and the sample suites.

BundledName = Literal["themes", "sample_suites"]


class MissingResourceError(RuntimeError):
    """The installation lacks its data files."""


def bundled(name: BundledName) -> Path:
    """Return the folder of bundled data, from a wheel, an editable install or a checkout.

    Raises MissingResourceError when it is in none of these places."""
    package = Path(__file__).parent.parent
    installed = package / "_bundled" / name
    if installed.is_dir():
        return installed
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    raise MissingResourceError(f"this installation has no {name!r} folder: reinstall toolcall-workbench")
