"""Finds suite files: a folder of suite files is a project, searched recursively."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from workbench.late_patterns import late_pattern
from workbench.settings_name import SETTINGS_NAME
from workbench.suite.disk import absolute

_CHUNK_BYTES = 1 << 16
_OVERLAP_BYTES = 256

_NAMES_FORMAT = late_pattern(rb"""\n(?:\xef\xbb\xbf)?[ \t]*(?:format|"format"|'format')[ \t]*=""")

_BEGINS_WITH_FORMAT = late_pattern(
    rb"""(?:\xef\xbb\xbf)?(?:[ \t]*+(?:#[^\n]*+)?\r?\n)*+[ \t]*+(?:format|"format"|'format')[ \t]*=[ \t]*[0-9]"""
)
"""The usual beginning: its first key is `format`, a number."""


def find_suites(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Returns the suite files that paths name, in the order of the paths, each once.

    A folder is searched recursively and sorted; hidden folders and links to folders are skipped, and so are TOML files
    that are not suites, and settings, which `*.toml` names too. Any other path is returned as it is, existing or not.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        for suite in _suites_below(path) if path.is_dir() else (path,):
            if not is_settings(suite):
                found.setdefault(absolute(suite), suite)
    return tuple(found.values())


def is_settings(path: Path) -> bool:
    """Whether a path is a `workbench.toml` that is no suite."""
    return path.name == SETTINGS_NAME and path.is_file() and not is_suite(path)


def _suites_below(folder: Path) -> Iterator[Path]:
    candidates = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        candidates += [Path(parent, name) for name in files if name.endswith(".toml")]
    return (path for path in sorted(candidates) if path.is_file() and is_suite(path))


def is_suite(path: Path) -> bool:
    """Whether a TOML file has a `format`; one that does not parse, whether a line begins with `format =`.

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
    """Whether a file is a suite: it is one if its first key is `format`, and none if no line begins with `format =`.
    Otherwise `None`. Most files need not be parsed twice then, and a big one is not held in memory."""
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
