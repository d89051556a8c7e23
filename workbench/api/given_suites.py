"""The forms in which the API takes suites: paths, loaded suites, and suites built in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from workbench.api.suite_builder import Case, Suite
from workbench.api.suites import LoadedSuite, SuiteError, SuitePath, UsageError, load
from workbench.suite.problems import Problem
from workbench.suite.project import find_suites
from workbench.suite.suite_file import load_suite

AnySuite = SuitePath | LoadedSuite | Suite
"""The path of a suite file or of a folder with suite files, a suite from `load`, or a suite built in Python."""

Suites = AnySuite | Iterable[AnySuite]
"""One or several suites."""


def loaded(suites: Suites) -> tuple[LoadedSuite, ...]:
    """Load suites. Read paths of files and folders. A file that is named twice is loaded once.

    Raises SuiteError with the errors of all suites. Raises UsageError for a path without a suite, and for two suites
    that would look alike in a report."""
    given: Iterable[AnySuite]
    given = [suites] if isinstance(suites, str | os.PathLike | LoadedSuite | Suite | Case) else suites
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise _no_suite(given)
    # Suites are identified by their absolute paths. A suite that is given both as a file and with its folder runs once.
    found: dict[Path, LoadedSuite] = {}
    # All suites are read before the error is raised, so that it lists all problems.
    problems: list[Problem] = []
    for each in given:
        try:
            for suite in _suites_of(each):
                known = found.setdefault(suite.path.absolute(), suite)
                if known.is_own != suite.is_own or (suite.is_own and known.file.text != suite.file.text):
                    raise UsageError(f"two suites are called {suite.path.name}: give the built one another name")
        except SuiteError as error:
            problems += error.problems
    if problems:
        raise SuiteError(problems)
    if not found:
        raise UsageError("there is no suite to evaluate: give a path, a loaded or built suite, or several of them")
    return tuple(found.values())


def one_suite(suite: AnySuite) -> LoadedSuite:
    """Return one suite. Read the suite if a path is given. Raises SuiteError."""
    if isinstance(suite, str | os.PathLike):
        return load(suite)
    (found,) = _suites_of(suite)
    return found


def _suites_of(given: AnySuite) -> Iterator[LoadedSuite]:
    match given:
        case LoadedSuite():
            yield given
        case Suite():
            yield given.load()
        case Case():
            raise UsageError(f"{given!r} is one case: give its suite, for example with .suite at the end of a chain")
        case str() | os.PathLike():
            yield from _read(given)
        case _:
            raise _no_suite(given)


def _no_suite(given: object) -> UsageError:
    return UsageError(f"a suite is a path, a workbench.Suite, or one that workbench.load returned, not {given!r}")


def _read(path: SuitePath) -> Iterator[LoadedSuite]:
    if not os.fspath(path):
        raise UsageError("an empty path is not allowed: give '.' for the current folder")
    files = [*map(load_suite, find_suites([Path(path)]))]
    if not files:
        raise UsageError(f"there is no suite in {path}: a suite is a TOML file with 'format = 1'")
    if problems := [problem for file in files if file.suite is None for problem in file.problems]:
        raise SuiteError(problems)
    for file in files:
        assert file.suite is not None
        yield LoadedSuite(file.suite.name, file.path, file)
