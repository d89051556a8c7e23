"""Finds suite files: a folder of suite files is a project, searched recursively."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from workbench.numerals import count_text, counted
from workbench.settings_name import SETTINGS_NAME
from workbench.startup import late_pattern
from workbench.suite.files import absolute

_CHUNK_BYTES = 1 << 16
_OVERLAP_BYTES = 256

_NAMES_FORMAT = late_pattern(rb"""\n(?:\xef\xbb\xbf)?[ \t]*(?:format|"format"|'format')[ \t]*=""")

_BEGINS_WITH_FORMAT = late_pattern(
    rb"""(?:\xef\xbb\xbf)?(?:[ \t]*+(?:#[^\n]*+)?\r?\n)*+[ \t]*+(?:format|"format"|'format')[ \t]*=[ \t]*[0-9]"""
)
"""The usual beginning: its first key is `format`, a number."""


INSTALLED_NAMES = frozenset({"dist-packages", "node_modules", "site-packages"})
"""Folders of other people's packages, whose suites are not the user's."""

_MARKS_ENVIRONMENT = "pyvenv.cfg"

_MAX_NAMED = 3


class Search:
    """A search for suites: its place, and its findings so far.

    Another thread may read it, and stop it."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        """The folder that is being searched, `None` before and afterwards."""
        self.found = 0
        """The number of suites."""
        self.skipped: list[Path] = []
        """Folders of installed packages, which are not searched."""
        self.is_stopped = False

    def stop(self) -> None:
        """End the search early: the findings so far are its result."""
        self.is_stopped = True

    @property
    def progress_message(self) -> str | None:
        """How far the search is; `None` while it does not search."""
        folder = self.folder
        if folder is None:
            return None
        return f"{counted(self.found, 'suite')} found, searching {folder.absolute()}"

    @property
    def skipped_message(self) -> str | None:
        """How many folders were not searched, and which; `None` if there are none."""
        if not self.skipped:
            return None
        names = [str(folder) for folder in self.skipped[:_MAX_NAMED]]
        more = len(self.skipped) - len(names)
        names += [f"{count_text(more)} more"] if more else []
        return f"{counted(len(self.skipped), 'folder')} of installed packages not searched: {', '.join(names)}"

    def files_below(self, root: Path, endings: tuple[str, ...]) -> Iterator[Path]:
        """Yield the files below a folder whose names end so.

        Hidden folders, links to folders and installed packages are skipped, but not the folder itself."""
        top = os.fspath(root)
        for parent, folders, files in os.walk(top):
            if self.is_stopped:
                break
            folder = Path(parent)
            if parent != top and is_installed(folder.name, files):
                self.skipped.append(folder)
                folders.clear()
                continue
            self.folder = folder
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                if name.endswith(endings):
                    yield Path(parent, name)
        self.folder = None

    def suites_below(self, root: Path) -> list[Path]:
        """Return the suites below a folder, sorted."""
        suites = []
        for path in self.files_below(root, (".toml",)):
            if path.is_file() and is_suite(path):
                suites.append(path)
                self.found += 1
        return sorted(suites)


def is_installed(name: str, files: Container[str]) -> bool:
    """Return whether a folder holds installed packages: by its name, or because it is a virtual environment."""
    return name in INSTALLED_NAMES or _MARKS_ENVIRONMENT in files


def find_suites(paths: Iterable[Path], search: Search | None = None) -> tuple[Path, ...]:
    """Return the suite files that paths name, in the order of the paths, each once.

    A folder is searched recursively and sorted, as `Search` does; other TOML files are skipped, and so are settings,
    which `*.toml` names too. Any other path is returned as it is, existing or not.
    """
    search = search or Search()
    found: dict[Path, Path] = {}
    for path in paths:
        for suite in search.suites_below(path) if path.is_dir() else (path,):
            if not is_settings(suite):
                found.setdefault(absolute(suite), suite)
    return tuple(found.values())


def is_settings(path: Path) -> bool:
    """Return whether a path is a `workbench.toml` that is no suite."""
    return path.name == SETTINGS_NAME and path.is_file() and not is_suite(path)


def is_suite(path: Path) -> bool:
    """Return whether a TOML file has a `format`; one that does not parse, whether a line begins with `format =`.

    A table of that name, as other tools' settings have it, is no format. A file that cannot be read counts, so that
    loading it says why.
    """
    try:
        is_one = _by_its_lines(path)
        if is_one is None:
            is_one = not isinstance(tomllib.loads(path.read_bytes().decode("utf-8")).get("format", {}), dict)
    except (OSError, ValueError, RecursionError):
        return True
    return is_one


def _by_its_lines(path: Path) -> bool | None:
    """Return whether a file is a suite, by its lines; `None` if only parsing can tell.

    It is one if its first key is `format`, and none if no line begins with `format =`. So most files need not be parsed
    twice, and a big one is not held in memory."""
    tail = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            if not tail and _BEGINS_WITH_FORMAT.match(chunk):
                return True
            window = (tail or b"\n") + chunk
            if _NAMES_FORMAT.search(window):
                return None
            tail = window[-_OVERLAP_BYTES:]
    return False
