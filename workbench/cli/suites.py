"""Suites named on the command line: found, loaded, their problems said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from workbench.cli.door import complain as complain
from workbench.config.secrets import Secrets
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.problems import Problem
from workbench.suite.project import find_suites
from workbench.trajectory.recording import SUFFIX, RecordingError, read_header


class NoSuitesError(Exception):
    """Nothing to work on; the message says where was looked."""


def load_suites(paths: Sequence[str]) -> tuple[SuiteFile, ...]:
    """Load every suite at or below the paths; raises NoSuitesError when there is none."""
    if "" in paths:
        # Path("") is the current folder, and an unset variable in a script does not mean that.
        raise NoSuitesError("an empty text is no path: write '.' for the current folder")
    found = find_suites(Path(path) for path in paths)
    for path in found:
        if path.suffix != ".toml" and _is_recording(path):
            raise NoSuitesError(
                f"{path} is a recording, no suite: 'workbench grade {path}' grades it again, and the model "
                f"'replay:{path}' plays it"
            )
    if not found:
        recorded = [path for path in paths if any(Path(path).glob(f"*{SUFFIX}"))]
        if recorded:
            raise NoSuitesError(
                f"no suite at {', '.join(paths)}: there are recordings, which 'workbench grade {recorded[0]}' grades "
                f"again and the model 'replay:{recorded[0]}' plays"
            )
        raise NoSuitesError(f"no suite at {', '.join(paths)}: a suite is a TOML file that says 'format = 1'")
    return tuple(load_suite(path) for path in found)


def _is_recording(path: Path) -> bool:
    try:
        read_header(path)
    except RecordingError:
        return False
    return True


def say_problems(problems: Iterable[Problem], secrets: Secrets | None = None) -> None:
    """Problems go to standard error, one a line."""
    for problem in problems:
        complain(str(problem), secrets)
