"""Finds and loads the suites that a caller names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workbench.suite.project import Search, find_suites, is_settings
from workbench.suite.suite_file import SuiteFile, load_suite


class NoSuitesError(Exception):
    """No suite was found. The message names the places that were searched."""


def load_suites(suites: Sequence[str | Path | SuiteFile], search: Search | None) -> tuple[SuiteFile, ...]:
    """Load every suite at or below the paths. Suites that are already loaded are returned unchanged.

    Raises NoSuitesError if there is no suite."""
    if "" in suites:
        # An empty text is usually an unset variable of a script. `Path("")` would be the current folder.
        raise NoSuitesError("an empty path is not allowed: write '.' for the current folder")
    paths: list[Path] = []
    loaded: list[SuiteFile] = []
    for suite in suites:
        if isinstance(suite, SuiteFile):
            loaded.append(suite)
        else:
            paths.append(Path(suite))
    found = find_suites(paths, search)
    for path in found:
        if path.suffix != ".toml" and _is_recording(path):
            raise NoSuitesError(
                f"{path} is a recording, not a suite: 'workbench grade {path}' regrades it, and the model "
                f"'replay:{path}' plays it"
            )
    if not found and not loaded:
        from workbench.trajectory.recording import SUFFIX

        names = ", ".join(map(str, suites))
        if any(map(is_settings, paths)):
            raise NoSuitesError(
                f"no suite at {names}, because a workbench.toml holds settings: name suites, or their folder"
            )
        recorded = [path for path in paths if any(path.glob(f"*{SUFFIX}"))]
        if recorded:
            raise NoSuitesError(
                f"no suite at {names}, only recordings: regrade them with 'workbench grade {recorded[0]}', or replay "
                f"them with the model 'replay:{recorded[0]}'"
            )
        raise NoSuitesError(f"no suite at {names}: a suite is a TOML file with 'format = 1'")
    return (*loaded, *map(load_suite, found))


def _is_recording(path: Path) -> bool:
    # This import is lazy, because most of the given files are suites and not recordings.
    from workbench.trajectory.recording import RecordingError, read_header

    try:
        read_header(path)
    except RecordingError:
        return False
    return True
