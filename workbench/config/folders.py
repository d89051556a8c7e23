"""The places of files: the user's folders, the settings and the history of a project, and the bundled data."""

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
    """The folders in which the program keeps files of the user. Each folder is created on first use."""

    state: Path
    """The program's state, such as trust, drafts, listings of tools and the audit log."""
    log: Path
    """Logs of the program and of MCP servers."""
    config: Path
    """The user's settings: `workbench.toml` with models."""
    data: Path
    """The user's data: the history of all batches."""

    @property
    def trust_file(self) -> Path:
        return self.state / "trust.json"

    @property
    def listings(self) -> Path:
        """Stored lists of the tools of MCP servers."""
        return self.state / "listings"

    @property
    def logins(self) -> Path:
        """Access tokens for MCP servers, in one private file for each login."""
        return self.state / "logins"

    @property
    def drafts(self) -> Path:
        """Unsaved changes of suites, in one journal for each suite."""
        return self.state / "drafts"

    @property
    def deleted(self) -> Path:
        """Suites that the user deleted in the app."""
        return self.state / "deleted"

    @property
    def breakpoints(self) -> Path:
        """Breakpoints, in one file for each project."""
        return self.state / "breakpoints"

    @property
    def audit_log(self) -> Path:
        """The audit log, with a JSON line for each execution of a tool."""
        return self.state / "executions.jsonl"

    @property
    def judgements(self) -> Path:
        """The cached answers of judges, as JSON lines."""
        return self.state / "judgements.jsonl"

    @property
    def user_messages(self) -> Path:
        """The cached answers of models that simulate users, as JSON lines."""
        return self.state / "user_messages.jsonl"

    @property
    def detached(self) -> Path:
        """Sockets and records of batches that run without a terminal."""
        return self.state / "batches"

    @property
    def history(self) -> Path:
        """The history for projects that have no history of their own."""
        return self.data / HISTORY_NAME

    @property
    def server_logs(self) -> Path:
        return self.log / "servers"


def home_folder(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("HOME") or environment.get("USERPROFILE")
    if named:
        return Path(named).resolve()
    return None


def user_folders() -> Folders:
    """Return the folders of the current user.

    They are the platform's usual folders, or the folders in `XDG_STATE_HOME`, `XDG_CONFIG_HOME` and `XDG_DATA_HOME`."""
    return Folders(
        state=platformdirs.user_state_path(APP_NAME, appauthor=False),
        log=platformdirs.user_log_path(APP_NAME, appauthor=False),
        config=platformdirs.user_config_path(APP_NAME, appauthor=False),
        data=platformdirs.user_data_path(APP_NAME, appauthor=False),
    )


_PROJECT_ROOTS = (".git", "pyvenv.cfg")
"""Names that mark the root of a project. The search for settings stops there."""


def project_file(folder: Path, home: Path | None) -> Path | None:
    """Return the nearest `workbench.toml` in a folder or above it, or `None` if there is none.

    The search ends at a repository's root, a virtual environment, the user's home or the root of the file system."""

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
    """Return a path with forward slashes, relative to the project folder, or absolute for a file outside it."""
    resolved = path.resolve()
    if resolved.is_relative_to(project):
        return resolved.relative_to(project).as_posix()
    return resolved.as_posix()


def project_folder(folder: Path, home: Path | None) -> Path:
    """Return the root folder of the project that contains `folder`.

    The root is the nearest folder with a `workbench.toml`, a `.git` or a `pyvenv.cfg`. If there is no such folder,
    return `folder`."""
    here = folder.resolve()
    for parent in (here, *here.parents):
        if parent in (home, parent.parent):
            break
        if any((parent / name).exists() for name in (SETTINGS_NAME, *_PROJECT_ROOTS)):
            return parent
    return here


PROJECT_HISTORY = ".workbench"
"""The name of a folder in a project that holds the project's own history."""


def history_file(folders: Folders, folder: Path, home: Path | None) -> Path:
    """Return the path of the history for the suites in a folder.

    This is the history in the suites' project if there is one, otherwise the history in the user's folders."""
    beside = project_folder(folder, home) / PROJECT_HISTORY
    if beside.is_dir():
        return beside / HISTORY_NAME
    return folders.history


def project_paths(files: Iterable[Path], home: Path | None) -> dict[Path, str]:
    """Return the paths of files relative to their projects, as histories store them."""
    return {file: path_in(project_folder(file.parent, home), file) for file in files}


def folder_of(path: Path) -> Path:
    if path.is_dir():
        return path
    return path.parent


def history_option(file: Path) -> str:
    """Return the option ` --history FILE` for commands in the current folder, quoted for a shell.

    Return "" if commands there find this history without the option."""
    # If the current folder no longer exists, commands cannot search from it and need the option.
    try:
        found = history_file(user_folders(), Path(), home_folder(os.environ)).resolve() == file.resolve()
    except OSError:
        found = False
    if found:
        return ""
    return f" --history {shlex.quote(str(file))}"


def is_beside_project(file: Path) -> bool:
    """Return whether a history lies in a project folder, so that it may have come with the project from elsewhere."""
    return file.absolute().parent.name == PROJECT_HISTORY


def has_usual_history_name(file: Path) -> bool:
    """Return whether a file has the usual name and place of a history.

    Such a file belongs to the program even if it is damaged."""
    return file.name == HISTORY_NAME and file.absolute().parent.name in (PROJECT_HISTORY, APP_NAME)


_RELATIVE_PREFIX = "./"
"""The prefix of stored folders that are relative to the project of the history."""


def stored_folder(file: Path, folder: Path) -> str:
    """Convert a project folder to the form in which a history stores it.

    The form is a relative path for the project that contains the history, and for folders in it. For all other folders,
    the form is an absolute path."""
    # A relative path still leads to the suites after the project was moved together with its history.
    beside = _project_beside(file)
    if beside is None or not folder.is_relative_to(beside):
        return str(folder)
    return f"{_RELATIVE_PREFIX}{folder.relative_to(beside).as_posix()}"


def folder_of_stored(file: Path, stored: str) -> str:
    """Convert the form that `stored_folder` returned back to the project folder.

    A relative path that leads out of the project that contains the history is returned unchanged."""
    beside = _project_beside(file)
    if beside is None or not stored.startswith(_RELATIVE_PREFIX) or ".." in PurePosixPath(stored).parts:
        return stored
    return str(beside / stored.removeprefix(_RELATIVE_PREFIX).lstrip("/"))


def _project_beside(file: Path) -> Path | None:
    if is_beside_project(file):
        return file.absolute().parent.parent.resolve()
    return None


BundledName = Literal["themes", "sample_suites"]


class MissingResourceError(RuntimeError):
    """A defect of the installation: the themes or the sample suites are missing."""


def bundled(name: BundledName) -> Path:
    """Return the folder of the bundled themes or sample suites.

    Raises MissingResourceError if the installation lacks it."""
    # A wheel has the data inside the package. In a checkout or an editable install, it is beside the package.
    package = Path(__file__).parent.parent
    installed = package / "_bundled" / name
    if installed.is_dir():
        return installed
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    raise MissingResourceError(f"this installation has no {name!r} folder: reinstall toolcall-workbench")
