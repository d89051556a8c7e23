"""Suites as the Python API loads them, and the errors of the API."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from workbench.dataclasses import dataclass
from workbench.suite.files import absolute
from workbench.suite.model import Case, Suite
from workbench.suite.problems import Problem, did_you_mean
from workbench.suite.project import is_installed
from workbench.suite.project import is_suite as is_suite_file
from workbench.suite.rules import replaces_statuses
from workbench.suite.settings import settings_of
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.suite.trust import SuiteNeeds


class WorkbenchError(Exception):
    """The base class of errors that the caller can correct. The message says how."""


class UsageError(WorkbenchError, ValueError):
    """Raised for unusable arguments, such as an unknown case or an unreachable model."""


class ApprovalError(WorkbenchError):
    """Raised if suites have needs that were not approved. Nothing was started.

    `suites` are the paths of the refused suite files, and `needs` are the needs of these suites, in the same order.
    `refused` is the message without its advice."""

    def __init__(self, refused: Iterable[tuple[str, SuiteNeeds, Sequence[str]]]) -> None:
        suites: list[str] = []
        needs: list[SuiteNeeds] = []
        lines = ["not approved, so nothing was started:"]
        for suite, of_suite, needed in refused:
            suites.append(suite)
            needs.append(of_suite)
            lines.append(f"{suite} would, on this machine:")
            lines += (f"  {line}" for line in needed)
        self.suites, self.needs = tuple(suites), tuple(needs)
        self.refused = "\n".join(lines)
        super().__init__(
            f"{self.refused}\n"
            "Allow all of it with approve=workbench.ALL, or decide in a function: approve=lambda needs: …"
        )


SuitePath = str | os.PathLike[str]
"""The path of a suite file, or of a folder with suite files."""


class SuiteError(WorkbenchError, ValueError):
    """Raised if suite files have errors, so that they cannot be used.

    Each of `problems` has a `file`, a `line`, a `where`, a `message` and a `hint`. `line` counts from 1 and is `None`
    for the whole file. `where` is a path in the file, such as `cases[3].ordered[0].args.city`."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problem for problem in problems if problem.severity == "error")
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(frozen=True)
class SuiteCase:
    """A case of a loaded suite."""

    suite: LoadedSuite = field(repr=False)
    definition: Case = field(repr=False)
    """The case as the suite file defines it."""
    id: str
    name: str
    _index: int = field(repr=False)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the suite and of the case. `evaluate` can select cases by these tags."""
        return tuple(dict.fromkeys((*self.suite.definition.tags, *self.definition.tags)))

    @property
    def line(self) -> int:
        """The line of the suite file, from 1, where the case begins."""
        return self.suite.file.line_of(("cases", self._index))


class Cell(NamedTuple):
    """A case with a model. In a report, all repeats of a cell share one line."""

    case: SuiteCase
    model: str

    @property
    def key(self) -> tuple[Path, str, str]:
        """The unique key of the cell: the absolute path of the suite, the id of the case, the model."""
        return absolute(self.case.suite.path), self.case.id, self.model


@dataclass(frozen=True)
class LoadedSuite:
    """A suite file that was read without errors."""

    name: str
    path: Path
    file: SuiteFile = field(repr=False)
    is_own: bool = field(default=False, repr=False)
    """Whether the caller's code built the suite as a `workbench.Suite`: its needs then require no approval."""

    @property
    def definition(self) -> Suite:
        """The suite as its file defines it."""
        # A file without errors has a suite, and `load` refuses any other file.
        assert self.file.suite is not None
        return self.file.suite

    @property
    def decides_together(self) -> bool:
        """Whether the suite has a gate over all its runs, so that a single failed case does not decide the result."""
        return replaces_statuses(self.definition)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The warnings about the file. They do not prevent runs."""
        return self.file.warnings

    @cached_property
    def cases(self) -> tuple[SuiteCase, ...]:
        """All cases, in the order of the file."""
        cases = []
        for index, case in enumerate(self.definition.cases):
            cases.append(SuiteCase(self, case, case.id, case.name, index))
        return tuple(cases)

    def cells(self, models: Sequence[str] = ()) -> tuple[Cell, ...]:
        """Return the cells that `evaluate` runs: each case with each of the models, by default the case's own."""
        cells = []
        for case in self.cases:
            # A model that is named twice is run once.
            for model in dict.fromkeys(models or settings_of(self.definition, case.definition).models):
                cells.append(Cell(case, model))
        return tuple(cells)

    def case(self, case_id: str) -> SuiteCase:
        """Return the case with an id.

        A case without an `id` gets an id from its name: "Time in Bergen" becomes `time-in-bergen`. Raises KeyError for
        an unknown id. The message suggests similar ids, or lists all ids."""
        for case in self.cases:
            if case.id == case_id:
                return case
        ids = [case.id for case in self.cases]
        near = did_you_mean(case_id, ids)
        raise KeyError(f"{self.path} has no case {case_id!r}: {near or 'its cases are ' + ', '.join(ids)}")


def load(path: SuitePath) -> LoadedSuite:
    """Read a suite file.

    Raises SuiteError if the file cannot be read or has errors. The error's `problems` has all of them.

    >>> import workbench
    >>> suite = workbench.load("clock.toml")
    >>> suite.name, [case.id for case in suite.cases]
    ('Clock', ['time-in-bergen', 'small-talk'])
    >>> suite.case("time-in-bergen").definition.user
    'What time is it in Bergen?'

    >>> try:
    ...     workbench.load("broken.toml")
    ... except workbench.SuiteError as error:
    ...     for problem in error.problems:
    ...         print(problem.line, problem.where, "-", problem.message, "-", problem.hint)
    6 cases[0].expect_no_cals - unknown key `expect_no_cals` in a case - did you mean `expect_no_calls`?"""
    return _sound(load_suite(Path(path)))


def is_suite(path: SuitePath) -> bool:
    """Return whether a file is a suite, which is a TOML file with the key `format`.

    An unreadable file counts as a suite, so that loading it reports the reason.

    >>> import workbench
    >>> workbench.is_suite("clock.toml")
    True"""
    return is_suite_file(Path(path))


def holds_packages(folder: Path) -> bool:
    """Return whether a folder holds installed packages. The user did not write the suites in such a folder."""
    return is_installed(folder.name, {entry.name for entry in folder.iterdir()})


def _sound(file: SuiteFile) -> LoadedSuite:
    if file.suite is None:
        raise SuiteError(file.problems)
    return LoadedSuite(file.suite.name, file.path, file)
