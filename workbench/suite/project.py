"""Finds the suite files of a project by searching its folder recursively."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from workbench.encoding import is_utf_16, toml_of
from workbench.numerals import count_text, counted
from workbench.settings_name import SETTINGS_NAME
from workbench.startup import late_pattern
from workbench.suite.files import absolute

# A file is read in overlapping chunks, so that a line `format = 1` at the border of two chunks is found. The overlap is
# longer than such a line, including usual white space.
_CHUNK_BYTES = 1 << 16
_OVERLAP_BYTES = 256

_NAMES_FORMAT = late_pattern(rb"""\n(?:\xef\xbb\xbf)?[ \t]*(?:format|"format"|'format')[ \t]*=""")

_BEGINS_WITH_FORMAT = late_pattern(
    rb"""(?:\xef\xbb\xbf)?(?:[ \t]*+(?:#[^\n]*+)?\r?\n)*+[ \t]*+(?:format|"format"|'format')[ \t]*=[ \t]*[0-9]"""
)
"""The usual beginning of a suite. Its first key is `format`, with a number."""


INSTALLED_NAMES = frozenset({"dist-packages", "node_modules", "site-packages"})
"""Names of folders with installed packages. Suites in them are not the user's."""

_MARKS_ENVIRONMENT = "pyvenv.cfg"

_MAX_NAMED = 3


class Search:
    """A search for suites, with its progress and results so far.

    Another thread may read and stop the search."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        """The folder that is being searched, or `None` before and after the search."""
        self.found = 0
        """The number of suites."""
        self.skipped: list[Path] = []
        """Folders of installed packages, which are not searched."""
        self.is_stopped = False

    def stop(self) -> None:
        """End the search early. Its result is the suites found so far."""
        self.is_stopped = True

    @property
    def progress_message(self) -> str | None:
        """The progress in words, or `None` before and after the search."""
        folder = self.folder
        if folder is None:
            return None
        return f"{counted(self.found, 'suite')} found, searching {folder.absolute()}"

    @property
    def skipped_message(self) -> str | None:
        """The skipped folders in words, or `None` if there are none."""
        if not self.skipped:
            return None
        names = [str(folder) for folder in self.skipped[:_MAX_NAMED]]
        more = len(self.skipped) - len(names)
        if more:
            names.append(f"{count_text(more)} more")
        return f"{counted(len(self.skipped), 'folder')} of installed packages not searched: {', '.join(names)}"

    def files_below(self, root: Path, endings: tuple[str, ...]) -> Iterator[Path]:
        """Yield the files below a folder whose names have one of the endings.

        Hidden folders, links to folders and installed packages below `root` are skipped. `root` itself is always
        searched."""
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
            # `os.walk` enters the folders that remain in its list.
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                if name.endswith(endings):
                    yield Path(parent, name)
        self.folder = None

    def suites_below(self, root: Path) -> list[Path]:
        suites = []
        for path in self.files_below(root, (".toml",)):
            if path.is_file() and is_suite(path):
                suites.append(path)
                self.found += 1
        return sorted(suites)


def is_installed(name: str, files: Container[str]) -> bool:
    """Return whether a folder holds installed packages.

    Such a folder is recognized by its name, or by the marker file of a virtual environment."""
    return name in INSTALLED_NAMES or _MARKS_ENVIRONMENT in files


def find_suites(paths: Iterable[Path], search: Search | None = None) -> tuple[Path, ...]:
    """Return the suite files that paths name, each once, in the order of the paths.

    A folder stands for the suites below it, sorted. Settings files are left out, because a shell's `*.toml` includes
    them. Any other path is returned even if it does not exist, so that loading it reports the problem."""
    search = search or Search()
    found: dict[Path, Path] = {}
    for path in paths:
        suites = [path]
        if path.is_dir():
            suites = search.suites_below(path)
        for suite in suites:
            if not is_settings(suite):
                found.setdefault(absolute(suite), suite)
    return tuple(found.values())


def is_settings(path: Path) -> bool:
    """Return whether a path is a `workbench.toml` with settings, and not a suite of that name."""
    return path.name == SETTINGS_NAME and path.is_file() and not is_suite(path)


def is_suite(path: Path) -> bool:
    """Return whether a TOML file is a suite: it has the key `format`, and the key's value is not a table.

    A file that is not TOML is a suite if one of its lines begins with `format =`. An unreadable file is also a suite,
    so that loading reports the problem."""
    try:
        is_one = _by_its_lines(path)
        if is_one is None:
            content = path.read_bytes()
            # A suite in UTF-16 is recognized too, although it cannot be loaded, so that loading reports the encoding.
            text = content.decode("utf-16" if is_utf_16(content) else "utf-8")
            is_one = not isinstance(toml_of(text).get("format", {}), dict)
    except (OSError, ValueError, RecursionError):
        return True
    return is_one


def _by_its_lines(path: Path) -> bool | None:
    """Return whether the lines of a file show that it is a suite, or `None` if the file has to be parsed."""
    # A suite usually begins with `format`, and other TOML files have no such line. Most files are therefore not parsed
    # here, and memory never holds a whole big file.
    tail = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            if not tail and is_utf_16(chunk):
                return None
            if not tail and _BEGINS_WITH_FORMAT.match(chunk):
                return True
            window = (tail or b"\n") + chunk
            if _NAMES_FORMAT.search(window):
                return None
            tail = window[-_OVERLAP_BYTES:]
    return False
